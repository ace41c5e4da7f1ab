//! The last step: samples become the integer heights of a world, and holes are filled; those that
//! are kept too, so that every mesh has heights to lie on.
//!
//! Whole numbers that are heights already stay where they are; others are turned into a store of
//! their own. Either way the samples are read once more at most, band by band.

use super::fill;
use super::grid::Grid;
use super::holes::{Grouped, Run, Voids};
use super::ingest::Progress;
use super::lint::Warning;
use super::numbers::{Kind, Number, Numbers, each_kind};
use super::options::{ImportOptions, VoidFill};
use super::store::{Store, StoredGround};
use crate::error::Result;
use crate::source::Area;

/// Height units a sample: `sample * scale + offset`, rounded away from zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Units {
    pub scale: f64,
    pub offset: f64,
}

impl Units {
    fn of(&self, sample: f64) -> i32 {
        (sample * self.scale + self.offset).round() as i32
    }

    /// Whether a whole sample is its height.
    fn are_samples(&self) -> bool {
        self.scale == 1.0 && self.offset == 0.0
    }
}

/// Samples whose ends are known.
pub(super) struct Samples {
    pub store: Store,
    pub integer: bool,
    pub low: f64,
    pub high: f64,
    /// The first of the highest.
    pub summit: [u32; 2],
}

/// Heights without holes.
pub(super) fn finish(
    samples: Samples,
    holes: Grouped,
    units: Units,
    options: &ImportOptions,
    progress: &mut Progress,
) -> Result<StoredGround> {
    let way = options.voids;
    let ends = [samples.low, samples.high].map(|sample| units.of(sample));
    let range = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    if samples.integer && samples.store.kind <= Kind::I32 && units.are_samples() {
        let mut ground = StoredGround {
            store: samples.store,
            range,
            summit: samples.summit,
            kept: Voids::default(),
        };
        fill_holes(&mut ground, None, &holes, units, way)?;
        return Ok(ground.keeping(holes, way));
    }
    let fits = i16::try_from(range.0).is_ok() && i16::try_from(range.1).is_ok();
    let kind = if fits { Kind::I16 } else { Kind::I32 };
    let size = samples.store.size;
    let mut ground = StoredGround {
        store: Store::new(size, kind, &options.shelf())?,
        range,
        summit: [u32::MAX; 2],
        kept: Voids::default(),
    };
    for band in samples.store.bands() {
        let numbers = samples.store.read(band)?;
        let heights = each_kind!(&numbers, numbers => ground.note(band, numbers, units));
        ground.store.write(band, heights)?;
        progress.add(numbers.len())?;
    }
    fill_holes(&mut ground, Some(&samples.store), &holes, units, way)?;
    Ok(ground.keeping(holes, way))
}

impl StoredGround {
    /// The heights of some rows, of which voids have none to speak of yet.
    fn note<T: Number>(&mut self, band: Area, numbers: &[T], units: Units) -> Numbers {
        let heights: Vec<i32> = numbers.iter().map(|n| units.of(n.to_f64())).collect();
        if self.summit == [u32::MAX; 2] {
            let mut heights = heights.iter().zip(numbers);
            let first = heights.position(|(h, n)| *h == self.range.1 && !n.is_void());
            if let Some(first) = first {
                let [x, z] = [first % band.width as usize, first / band.width as usize];
                self.summit = [x as u32, band.z + z as u32];
            }
        }
        match self.store.kind {
            Kind::I16 => Numbers::I16(heights.iter().map(|height| *height as i16).collect()),
            _ => Numbers::I32(heights),
        }
    }

    /// Holes that are filled can be the first of the highest.
    fn note_filled(&mut self, run: &Run, heights: &[i32]) {
        if let Some(first) = heights.iter().position(|height| *height == self.range.1) {
            let [x, z] = self.summit;
            let (z, x) = (z, x).min((run.z, run.x0 + first as u32));
            self.summit = [x, z];
        }
    }

    fn keeping(mut self, holes: Grouped, way: VoidFill) -> StoredGround {
        if way == VoidFill::Keep {
            self.kept = holes.into_voids();
        }
        self
    }

    fn put(&mut self, run: &Run, heights: Vec<i32>) -> Result<()> {
        let area = Area {
            x: run.x0,
            z: run.z,
            width: run.x1 - run.x0,
            height: 1,
        };
        let heights = match self.store.kind {
            Kind::I16 => Numbers::I16(heights.iter().map(|height| *height as i16).collect()),
            _ => Numbers::I32(heights),
        };
        self.store.write(area, heights)
    }
}

/// Fills holes of the ground by the samples it was made of; by itself where it still has them.
fn fill_holes(
    ground: &mut StoredGround,
    samples: Option<&Store>,
    holes: &Grouped,
    units: Units,
    way: VoidFill,
) -> Result<()> {
    for hole in holes.holes() {
        let samples = samples.unwrap_or(&ground.store);
        let filled = fill::fill(hole, samples.size, way, &|area| samples.read(area))?;
        for run in hole {
            let heights = filled.run(run).into_iter().map(|v| units.of(v));
            let heights: Vec<i32> = heights.collect();
            if way != VoidFill::Keep {
                ground.note_filled(run, &heights);
            }
            ground.put(run, heights)?;
        }
    }
    Ok(())
}

/// All samples in memory, without holes.
pub(super) fn whole(store: &Store, holes: &Grouped, way: VoidFill) -> Result<Grid> {
    let [width, height] = store.size;
    let mut samples = Vec::new();
    for band in store.bands() {
        samples.extend(store.read(band)?.to_f64());
    }
    for hole in holes.holes() {
        let filled = fill::fill(hole, store.size, way, &|area| store.read(area))?;
        for run in hole {
            let start = run.z as usize * width as usize + run.x0 as usize;
            let values = filled.run(run);
            samples[start..start + values.len()].copy_from_slice(&values);
        }
    }
    Ok(Grid::plain(width, height, samples, false))
}

/// Holes that are filled coarsely are told.
pub(super) fn block_warning(holes: &Grouped, size: [u32; 2]) -> Option<Warning> {
    let block = holes.holes().map(|hole| fill::block_of(hole, size)).max();
    block.filter(|block| *block > 1).map(|block| {
        let text = format!(
            "a hole is too large to be filled sample by sample: it is filled in blocks of {block} x {block}"
        );
        Warning::new("large hole", text, "--crop X,Z,W,H to leave it out")
    })
}
