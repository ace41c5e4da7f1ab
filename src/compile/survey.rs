//! The first step: triangles wider than a tile get their exact errors, and the coarse levels
//! their heights.

use super::job::Job;
use crate::error::Result;
use crate::source::Area;
use crate::terrain::height_map::HeightMap;
use crate::terrain::upper::{Own, Tallies, tally};
use glam::{IVec2, ivec2};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Mutex;

/// The heights that the levels of the global repository need: every so many samples, and the
/// source's last row and column, which goes on beyond it.
pub struct CoarseHeights {
    stride: i32,
    last_sample: IVec2,
    /// Columns and rows; the last of each is the source's last.
    count: IVec2,
    heights: Vec<i32>,
}

impl CoarseHeights {
    fn new(job: &Job) -> Self {
        let layout = &job.tiling.layout;
        let stride = layout.stride(layout.stream_levels) as i32;
        let last_sample = job.tiling.last_sample(IVec2::ZERO);
        let count = (last_sample + stride - 1) / stride + 1;
        CoarseHeights {
            stride,
            last_sample,
            count,
            heights: vec![0; count.x as usize * count.y as usize],
        }
    }

    /// The height at a sample of a coarse lattice; beyond the source its edge goes on.
    pub fn at(&self, sample: IVec2) -> i32 {
        let place = |sample: i32, last: i32, count: i32| {
            if sample >= last {
                count - 1
            } else {
                sample.max(0) / self.stride
            }
        };
        let x = place(sample.x, self.last_sample.x, self.count.x);
        let z = place(sample.y, self.last_sample.y, self.count.y);
        self.heights[z as usize * self.count.x as usize + x as usize]
    }

    /// Takes over what lies in a tile's own samples.
    fn take(&mut self, origin: IVec2, window: &HeightMap) {
        let end = origin + ivec2(window.width as i32, window.height as i32);
        let places = |from: i32, to: i32, last: i32, count: i32| {
            let stride = self.stride;
            let first = (from + stride - 1) / stride;
            (first..count)
                .map(move |place| (place, (place * stride).min(last)))
                .take_while(move |&(_, sample)| sample < to)
        };
        for (z, sample_z) in places(origin.y, end.y, self.last_sample.y, self.count.y) {
            for (x, sample_x) in places(origin.x, end.x, self.last_sample.x, self.count.x) {
                let height = window.at((sample_x - origin.x) as i64, (sample_z - origin.y) as i64);
                self.heights[z as usize * self.count.x as usize + x as usize] = height;
            }
        }
    }
}

const UNPOISONED: &str = "no holder of the lock panics";

/// Goes over all samples once.
pub fn survey(job: &Job) -> Result<(Tallies, CoarseHeights)> {
    let corners = corner_heights(job)?;
    let tallies = Mutex::new(Tallies::new());
    let coarse = Mutex::new(CoarseHeights::new(job));
    job.present_tiles().into_par_iter().try_for_each(|tile| {
        let window = job.own_samples(tile)?;
        let absent = job.own_absent(tile)?;
        let greys = job.greys(tile, window.width.max(window.height) as i32);
        let corner = |corner| corners[&corner];
        let own = Own {
            window: &window,
            absent: absent.as_deref(),
            greys: greys.as_deref(),
        };
        let known = |name| {
            let tallies = tallies.lock().expect(UNPOISONED);
            tallies.get(&name).copied().unwrap_or_default()
        };
        let found = tally(&job.tiling, tile, &own, &job.rules, corner, known);
        {
            let mut tallies = tallies.lock().expect(UNPOISONED);
            for (name, tally) in found {
                let sum = tallies.entry(name).or_default();
                *sum = sum.and(tally);
            }
        }
        let origin = tile * job.tiling.side;
        let mut coarse = coarse.lock().expect(UNPOISONED);
        coarse.take(origin, &window);
        drop(coarse);
        job.finished(tile)
    })?;
    Ok((
        tallies.into_inner().expect(UNPOISONED),
        coarse.into_inner().expect(UNPOISONED),
    ))
}

/// The heights at all tile corners that triangles over present tiles can have.
fn corner_heights(job: &Job) -> Result<HashMap<IVec2, i32>> {
    let mut heights = HashMap::new();
    let last = job.tiling.last_sample(IVec2::ZERO);
    for tile in job.present_tiles() {
        for triangle in crate::terrain::upper::triangles_over(&job.tiling, tile) {
            for corner in [triangle.a, triangle.b, triangle.c] {
                if let std::collections::hash_map::Entry::Vacant(place) = heights.entry(corner) {
                    let sample = (corner * job.tiling.side).min(last);
                    let one = job.source.ground.read(Area {
                        x: sample.x as u32,
                        z: sample.y as u32,
                        width: 1,
                        height: 1,
                    })?;
                    place.insert(one.heights[0]);
                }
            }
        }
    }
    Ok(heights)
}
