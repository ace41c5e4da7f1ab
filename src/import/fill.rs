//! Fills holes one by one, each from nothing but its own rim.
//!
//! So a hole is filled alike whatever lies around it, however the source was cut into files, and
//! in memory for one box. A hole whose box is too large for that is filled in blocks of samples
//! and smoothed between them.
//!
//! - Filled heights lie within those of the rim.
//! - The rim are the samples beside, above and below a void; where a hole touches the source's
//!   edge it has none.

use super::holes::Run;
use super::numbers::Numbers;
use super::options::VoidFill;
use super::{membrane, nearest};
use crate::error::Result;
use crate::source::Area;

/// Samples, or blocks of them, of the largest box that is filled at once.
const MOST_CELLS: u64 = 1 << 25;

/// Marks what is neither void nor rim.
pub(super) const OUTSIDE: f64 = f64::INFINITY;

/// Reads samples as the file had them.
pub(super) type ReadSamples<'a> = dyn Fn(Area) -> Result<Numbers> + 'a;

/// A filled hole.
pub(super) struct Filled {
    frame: Frame,
    /// Heights of the box's blocks.
    values: Vec<f64>,
}

/// The box about a hole and its rim, in blocks.
#[derive(Clone, Copy, Debug)]
struct Frame {
    x: u32,
    z: u32,
    /// In blocks.
    width: u32,
    height: u32,
    /// Samples a side of a block.
    block: u32,
}

/// Fills the hole of `runs` in a source of `size` samples.
pub(super) fn fill(
    runs: &[Run],
    size: [u32; 2],
    way: VoidFill,
    read: &ReadSamples,
) -> Result<Filled> {
    fill_within(runs, size, way, read, MOST_CELLS)
}

fn fill_within(
    runs: &[Run],
    size: [u32; 2],
    way: VoidFill,
    read: &ReadSamples,
    most_cells: u64,
) -> Result<Filled> {
    let frame = Frame::about(runs, size, most_cells);
    let mut values = blocks(&frame, runs, size, read)?;
    match way {
        VoidFill::Smooth | VoidFill::Keep => membrane::fill(frame.width, frame.height, &mut values),
        VoidFill::Nearest => nearest::fill(frame.width, &mut values),
    }
    Ok(Filled { frame, values })
}

/// Samples a side of the blocks in which a hole is filled: 1 but for the largest.
pub(super) fn block_of(runs: &[Run], size: [u32; 2]) -> u32 {
    Frame::about(runs, size, MOST_CELLS).block
}

impl Frame {
    fn about(runs: &[Run], size: [u32; 2], most_cells: u64) -> Frame {
        let west = runs.iter().map(|run| run.x0).min().unwrap_or(0);
        let east = runs.iter().map(|run| run.x1).max().unwrap_or(1);
        let north = runs.first().map_or(0, |run| run.z);
        let south = runs.last().map_or(1, |run| run.z + 1);
        let (x, z) = (west.saturating_sub(1), north.saturating_sub(1));
        let [width, height] = [(east + 1).min(size[0]) - x, (south + 1).min(size[1]) - z];
        let mut block = 1;
        let blocks = |block: u32| [width.div_ceil(block), height.div_ceil(block)];
        let cells = |block| {
            blocks(block)
                .iter()
                .map(|side| u64::from(*side))
                .product::<u64>()
        };
        while cells(block) > most_cells {
            block *= 2;
        }
        let [width, height] = blocks(block);
        Frame {
            x,
            z,
            width,
            height,
            block,
        }
    }

    fn index(&self, x: u32, z: u32) -> usize {
        let (x, z) = ((x - self.x) / self.block, (z - self.z) / self.block);
        z as usize * self.width as usize + x as usize
    }
}

/// The rim's mean in each block that has some of it, NaN where there are only voids.
fn blocks(frame: &Frame, runs: &[Run], size: [u32; 2], read: &ReadSamples) -> Result<Vec<f64>> {
    let count = frame.width as usize * frame.height as usize;
    let mut values = vec![OUTSIDE; count];
    let mut rims = vec![0u32; if frame.block > 1 { count } else { 0 }];
    for run in runs {
        let touched = frame.index(run.x0, run.z)..=frame.index(run.x1 - 1, run.z);
        for value in values[touched].iter_mut().filter(|v| **v == OUTSIDE) {
            *value = f64::NAN;
        }
        for (x, z, sample) in rim(run, size, read)? {
            let at = frame.index(x, z);
            match rims.get_mut(at) {
                None => values[at] = sample,
                Some(rims) => {
                    let sum = if *rims == 0 { 0.0 } else { values[at] };
                    (values[at], *rims) = (sum + sample, *rims + 1);
                }
            }
        }
    }
    for (value, rims) in values.iter_mut().zip(rims).filter(|(_, rims)| *rims > 0) {
        *value /= f64::from(rims);
    }
    Ok(values)
}

/// The heights about a run.
fn rim(run: &Run, size: [u32; 2], read: &ReadSamples) -> Result<Vec<(u32, u32, f64)>> {
    let (x, z) = (run.x0.saturating_sub(1), run.z.saturating_sub(1));
    let area = Area {
        x,
        z,
        width: (run.x1 + 1).min(size[0]) - x,
        height: (run.z + 2).min(size[1]) - z,
    };
    let samples = read(area)?.to_f64();
    let places = (z..z + area.height).flat_map(|z| (x..x + area.width).map(move |x| (x, z)));
    let beside = |x: u32, z: u32| z == run.z || (run.x0..run.x1).contains(&x);
    let inside = |x: u32, z: u32| z == run.z && (run.x0..run.x1).contains(&x);
    let around = places.zip(samples);
    let around =
        around.filter(|((x, z), sample)| beside(*x, *z) && !inside(*x, *z) && !sample.is_nan());
    Ok(around.map(|((x, z), sample)| (x, z, sample)).collect())
}

impl Filled {
    /// The heights of one of the hole's runs.
    pub fn run(&self, run: &Run) -> Vec<f64> {
        let frame = &self.frame;
        if frame.block == 1 {
            let start = frame.index(run.x0, run.z);
            return self.values[start..][..(run.x1 - run.x0) as usize].to_vec();
        }
        (run.x0..run.x1).map(|x| self.between(x, run.z)).collect()
    }

    /// Bilinear between the blocks' centres; what is outside counts as the block itself.
    fn between(&self, x: u32, z: u32) -> f64 {
        let frame = &self.frame;
        let here = self.values[frame.index(x, z)];
        let [(x0, x1, u), (z0, z1, v)] = [
            neighbours(x - frame.x, frame.block, frame.width),
            neighbours(z - frame.z, frame.block, frame.height),
        ];
        let at = |x: usize, z: usize| {
            let value = self.values[z * frame.width as usize + x];
            if value.is_finite() { value } else { here }
        };
        let row = |z| (1.0 - u) * at(x0, z) + u * at(x1, z);
        (1.0 - v) * row(z0) + v * row(z1)
    }
}

/// The blocks whose centres lie about a sample, and its way from the first to the second.
fn neighbours(sample: u32, block: u32, blocks: u32) -> (usize, usize, f64) {
    let place = (f64::from(sample) + 0.5) / f64::from(block) - 0.5;
    let place = place.clamp(0.0, f64::from(blocks - 1));
    let first = place.floor();
    let second = (first as usize + 1).min(blocks as usize - 1);
    (first as usize, second, place - first)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Random;
    use super::super::holes::{Grouped, Holes};
    use super::*;

    struct Ground {
        size: [u32; 2],
        samples: Vec<f64>,
    }

    impl Ground {
        fn new(
            size: [u32; 2],
            height: impl Fn(f64, f64) -> f64,
            hole: impl Fn(u32, u32) -> bool,
        ) -> Ground {
            let places = (0..size[1]).flat_map(|z| (0..size[0]).map(move |x| (x, z)));
            let samples = places.map(|(x, z)| match hole(x, z) {
                true => f64::NAN,
                false => height(f64::from(x), f64::from(z)),
            });
            let samples = samples.collect();
            Ground { size, samples }
        }

        fn holes(&self) -> Grouped {
            let mut holes = Holes::default();
            for (z, row) in (0..).zip(self.samples.chunks(self.size[0] as usize)) {
                holes.row(z, row.iter().map(|v| v.is_nan())).unwrap();
            }
            holes.collect()
        }

        fn read(&self, area: Area) -> Result<Numbers> {
            let rows = self.samples.chunks(self.size[0] as usize);
            let rows = rows.skip(area.z as usize).take(area.height as usize);
            let columns = area.x as usize..(area.x + area.width) as usize;
            Ok(Numbers::F64(
                rows.flat_map(|row| &row[columns.clone()])
                    .copied()
                    .collect(),
            ))
        }

        fn filled(&self, way: VoidFill, most_cells: u64) -> Vec<f64> {
            let mut samples = self.samples.clone();
            let read = |area| self.read(area);
            for hole in self.holes().holes() {
                let filled = fill_within(hole, self.size, way, &read, most_cells).unwrap();
                for run in hole {
                    let start = (run.z * self.size[0] + run.x0) as usize;
                    let values = filled.run(run);
                    samples[start..start + values.len()].copy_from_slice(&values);
                }
            }
            samples
        }
    }

    fn worst(found: &[f64], expected: &Ground) -> f64 {
        let pairs = found.iter().zip(&expected.samples);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn a_plane_comes_back_with_holes_beside_and_within_each_other() {
        let plane = |x: f64, z: f64| 2.0 * x - 3.0 * z;
        let ring = |x: u32, z: u32| {
            let far = x.abs_diff(30).max(z.abs_diff(30));
            (15..22).contains(&far) || far < 6 || (x + z == 8 && x > 0 && z > 0)
        };
        let ground = Ground::new([64, 60], plane, ring);
        assert_eq!(ground.holes().holes().count(), 9);
        let filled = ground.filled(VoidFill::Smooth, u64::MAX);
        assert!(worst(&filled, &Ground::new([64, 60], plane, |_, _| false)) < 0.2);
    }

    #[test]
    fn a_hole_is_filled_alike_whatever_is_around_it() {
        let hill = |x: f64, z: f64| (x / 9.0).sin() * 50.0 + z;
        let hole = |x: u32, z: u32| (20..31).contains(&x) && (12..25).contains(&z);
        let alone = Ground::new([70, 40], hill, hole);
        let beside =
            |x: u32, z: u32| hole(x, z) || x < 18 || (x > 40 && z > 3) || (x, z) == (19, 11);
        let other = Ground::new(
            [70, 40],
            |x, z| hill(x, z) + if x > 33.0 { 900.0 } else { 0.0 },
            beside,
        );
        for way in [VoidFill::Smooth, VoidFill::Nearest] {
            let (alone, other) = (alone.filled(way, u64::MAX), other.filled(way, u64::MAX));
            for (at, value) in alone.iter().enumerate() {
                let at_hole = hole(at as u32 % 70, at as u32 / 70);
                assert!(!at_hole || *value == other[at]);
            }
        }
    }

    #[test]
    fn the_nearest_height_is_the_nearest_of_all() {
        let mut random = Random(8);
        for part in [3, 7] {
            let mut samples: Vec<f64> = (0..30 * 24)
                .map(|at| {
                    if random.below(10) < part {
                        f64::NAN
                    } else {
                        f64::from(at)
                    }
                })
                .collect();
            samples[99] = 99.0;
            let mut naive = samples.clone();
            nearest::fill(30, &mut naive);
            let ground = Ground {
                size: [30, 24],
                samples,
            };
            assert_eq!(ground.filled(VoidFill::Nearest, u64::MAX), naive);
        }
    }

    #[test]
    fn a_hole_too_large_is_filled_in_blocks_near_to_what_it_would_be() {
        let plane = |x: f64, z: f64| 2.0 * x + z;
        let disc = |x: u32, z: u32| x.abs_diff(60).pow(2) + z.abs_diff(50).pow(2) < 45 * 45;
        let ground = Ground::new([121, 101], plane, disc);
        let whole = Ground::new([121, 101], plane, |_, _| false);
        for most_cells in [3000, 800, 200] {
            let hole = ground.holes();
            let hole = hole.holes().next().unwrap();
            let block = Frame::about(hole, ground.size, most_cells).block;
            assert!(block > 1);
            let filled = ground.filled(VoidFill::Smooth, most_cells);
            let off = worst(&filled, &whole);
            assert!(off < 4.0 * f64::from(block), "{block}: {off}");
        }
        let nearest = ground.filled(VoidFill::Nearest, 800);
        assert!(nearest.iter().all(|v| v.is_finite()));
    }

    #[test]
    fn a_hole_that_touches_the_edge_has_a_free_edge() {
        let step = |x: f64, _: f64| if x < 50.0 { 10.0 } else { 20.0 };
        let ground = Ground::new([100, 40], step, |x, _| x > 30);
        let filled = ground.filled(VoidFill::Smooth, u64::MAX);
        assert!(filled.iter().all(|v| (v - 10.0).abs() < 1e-6));
    }
}
