//! Where there is ground and where a kept void, level by level, as the file tells it.
//!
//! The coarsest cells can be wider than a tile, so the levels of the global repository begin with
//! the whole source, band by band; what is streamed begins with the samples of a tile.

use super::job::{Job, usage};
use crate::error::Result;
use crate::source::Area;
use crate::world::container::pack;
use crate::world::reader::chunk_of;
use crate::world::{ChunkKind, Coding, Coverage, PatchKey, SectionKey, WorldWriter, coverage};
use glam::IVec2;

/// The coverage of one level after the other, finest first, of sections that have any kept void.
pub struct Cover {
    /// Of samples; only at level 0.
    samples: Option<Coverage>,
    cells: Coverage,
    /// Samples a cell.
    stride: u32,
    /// The last sample of the source, seen from the sections' corner.
    last: [u32; 2],
}

impl Cover {
    /// Of a tile's sections, from level 0 on; none where no sample is a kept void.
    pub fn of_tile(job: &Job, tile: IVec2) -> Result<Option<Cover>> {
        let Some(absent) = job.absent(tile)? else {
            return Ok(None);
        };
        let side = job.tiling.side as u32 + 1;
        let samples = Coverage::from_fn([side; 2], |x, z| {
            !absent[z as usize * side as usize + x as usize]
        });
        Ok(Some(Cover {
            cells: samples.cells(),
            samples: Some(samples),
            stride: 1,
            last: job.tiling.last_sample(tile).to_array().map(|n| n as u32),
        }))
    }

    /// Of the global repository, from its finest level on; none where voids are not kept.
    pub fn of_repository(job: &Job) -> Result<Option<Cover>> {
        let layout = &job.tiling.layout;
        let level = layout.stream_levels;
        if job.source.ground.absent_count() == 0 {
            return Ok(None);
        }
        let size = coverage::size(layout, SectionKey { level, x: 0, z: 0 });
        let stride = layout.stride(level);
        let last = layout.size_cells;
        let (samples, cells) = if level == 0 {
            let samples = gathered(job, size, 1, 1)?;
            let cells = samples.cells();
            (Some(samples), cells)
        } else {
            (None, gathered(job, size, stride, stride + 1)?)
        };
        Ok(Some(Cover {
            samples,
            cells,
            stride,
            last,
        }))
    }

    /// Goes on to the next coarser level, of so many cells.
    pub fn climb(&mut self, stride: u32, size: [u32; 2]) {
        self.samples = None;
        self.cells = if self.stride < stride {
            self.cells.halved(size)
        } else {
            self.cells.within(size)
        };
        self.stride = stride;
    }

    /// Whether all samples of a patch are kept voids; `first` is the first patch of the section.
    pub fn is_absent(&self, key: PatchKey, first: [u32; 2], cells: u32) -> bool {
        let from = [(key.x - first[0]) * cells, (key.z - first[1]) * cells];
        !self.cells.any(from, from.map(|from| from + cells - 1))
    }

    /// Packs the chunk of a section that lacks any ground inside the source.
    pub fn write(&self, section: SectionKey, writer: &WorldWriter) -> Result<()> {
        let inside = self.last.map(|last| last / self.stride + 1);
        let own = self.samples.as_ref().unwrap_or(&self.cells);
        if !own.lacks_any(inside) {
            return Ok(());
        }
        let id = chunk_of(ChunkKind::Coverage, section);
        let chunk = pack(id, Coding::Zstd, own.encode()).map_err(usage)?;
        writer.add(chunk).map_err(usage)
    }
}

/// The coverage of squares `stride` samples apart and `reach` samples wide, over the whole source.
fn gathered(job: &Job, size: [u32; 2], stride: u32, reach: u32) -> Result<Coverage> {
    let ground = &job.source.ground;
    let [width, height] = ground.size();
    let mut rows: Vec<Vec<bool>> = Vec::with_capacity(size[1] as usize);
    for z in (0..size[1]).map(|row| row * stride) {
        let band = Area {
            x: 0,
            z,
            width,
            height: reach.min(height.saturating_sub(z)),
        };
        let absent = if band.height > 0 {
            ground.absent(band)?
        } else {
            None
        };
        let is_present = |x: u32| {
            let columns = (x * stride).min(width)..(x * stride + reach).min(width);
            band.height > 0
                && match &absent {
                    None => !columns.is_empty(),
                    Some(absent) => absent
                        .chunks(width as usize)
                        .any(|row| columns.clone().any(|x| !row[x as usize])),
                }
        };
        rows.push((0..size[0]).map(is_present).collect());
    }
    Ok(Coverage::from_fn(size, |x, z| rows[z as usize][x as usize]))
}
