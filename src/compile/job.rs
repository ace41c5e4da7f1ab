//! What all steps of a compile share: the ground tile by tile, the rules, and how far it is.

use super::Progress;
use crate::error::{Error, Result};
use crate::source::{Area, Source};
use crate::terrain::detail::DetailMask;
use crate::terrain::height_map::HeightMap;
use crate::terrain::rules::Rules;
use crate::terrain::tile::Tiling;
use crate::terrain::tile_ground::TileGround;
use crate::world::{FormatError, StoredHeights};
use glam::{IVec2, ivec2};
use std::sync::atomic::{AtomicU64, Ordering};

/// One compile.
pub struct Job<'a> {
    pub source: &'a Source,
    pub tiling: Tiling,
    pub rules: Rules,
    pub mask: Option<&'a DetailMask>,
    pub report: &'a (dyn Fn(Progress) -> Result<()> + Sync),
    pub done: &'a AtomicU64,
    /// Which heights the world stores.
    pub heights: StoredHeights,
    /// Every sample is gone over so often: to survey, to settle the meshes, to write, once for each
    /// level's live thresholds, and once more for heights at nodes.
    pub passes: u64,
}

impl Job<'_> {
    /// The tiles that hold ground, row by row.
    pub fn present_tiles(&self) -> Vec<IVec2> {
        let present = self.tiling.present();
        let row = |z| (0..present.x).map(move |x| ivec2(x, z));
        (0..present.y).flat_map(row).collect()
    }

    pub fn is_present(&self, tile: IVec2) -> bool {
        tile.cmplt(self.tiling.present()).all()
    }

    /// Tells how far the compile is after one step over one tile; an error stops it.
    pub fn finished(&self, tile: IVec2) -> Result<()> {
        let cells = (self.tiling.last_sample(tile)).min(IVec2::splat(self.tiling.side));
        let samples = cells.x as u64 * cells.y as u64;
        let done = self.done.fetch_add(samples, Ordering::Relaxed) + samples;
        self.tell(done)
    }

    /// An error where the user ended the compile; for steps that are no step forward.
    pub fn go_on(&self) -> Result<()> {
        self.tell(self.done.load(Ordering::Relaxed))
    }

    fn tell(&self, done: u64) -> Result<()> {
        let [x, z] = self.tiling.layout.size_cells.map(u64::from);
        let total = self.passes * x * z;
        (self.report)(Progress { done, total })
    }

    /// The samples of a tile's own square: its south and east border are the neighbours', unless
    /// the source ends there.
    pub fn own_samples(&self, tile: IVec2) -> Result<HeightMap> {
        self.source.ground.read(self.own_area(tile))
    }

    /// Which of them are kept voids; none where no one is.
    pub fn own_absent(&self, tile: IVec2) -> Result<Option<Vec<bool>>> {
        self.source.ground.absent(self.own_area(tile))
    }

    fn own_area(&self, tile: IVec2) -> Area {
        let origin = tile * self.tiling.side;
        let present = self.tiling.present();
        let last = self.tiling.last_sample(tile);
        let count = |place: i32, tiles: i32, last: i32| {
            if place + 1 == tiles {
                last + 1
            } else {
                self.tiling.side
            }
        };
        Area {
            x: origin.x as u32,
            z: origin.y as u32,
            width: count(tile.x, present.x, last.x) as u32,
            height: count(tile.y, present.y, last.y) as u32,
        }
    }

    /// The ground of a tile; none where it is absent.
    pub fn tile_ground(&self, tile: IVec2) -> Result<Option<TileGround>> {
        if !self.is_present(tile) {
            return Ok(None);
        }
        self.ground_of(tile, &self.window(tile, 0)?, 0).map(Some)
    }

    /// The ground of a present tile whose heights and those of a rim are known.
    pub fn ground_of(&self, tile: IVec2, window: &HeightMap, rim: i32) -> Result<TileGround> {
        let side = self.tiling.side;
        let greys = self.greys(tile, side + 1).unwrap_or_default();
        let dry = self.rules.dry(tile * side, [side as u32 + 1; 2]);
        let last = self.tiling.last_sample(tile);
        let ground = TileGround::new(window, rim as u32, greys, dry, last, &self.rules);
        Ok(match self.absent(tile)? {
            Some(absent) => ground.leave_out(absent),
            None => ground,
        })
    }

    /// Which samples at a tile's vertices are absent, those beyond the source among them; none
    /// where no sample is a kept void.
    pub fn absent(&self, tile: IVec2) -> Result<Option<Vec<bool>>> {
        let origin = tile * self.tiling.side;
        let side = self.tiling.side as usize + 1;
        let inside = self.inside(origin, side as i32);
        let Some(absent) = self.source.ground.absent(inside)? else {
            return Ok(None);
        };
        let mut all = vec![true; side * side];
        let rows = absent.chunks(inside.width as usize);
        for (row, absent) in all.chunks_mut(side).zip(rows) {
            row[..absent.len()].copy_from_slice(absent);
        }
        Ok(Some(all))
    }

    /// The detail mask over a square from a tile's north-west corner, if there is a mask.
    pub fn greys(&self, tile: IVec2, side: i32) -> Option<Vec<u8>> {
        let samples = self.source.ground.size();
        let mask = self.mask?;
        Some(mask.square(tile * self.tiling.side, side, samples))
    }

    /// The heights of all vertices of a tile with a rim round it; beyond the source its edge goes
    /// on.
    pub fn window(&self, tile: IVec2, rim: i32) -> Result<HeightMap> {
        let origin = tile * self.tiling.side - rim;
        self.square(origin, self.tiling.side + 1 + 2 * rim)
    }

    /// A square of samples; beyond the source its edge goes on.
    fn square(&self, origin: IVec2, side: i32) -> Result<HeightMap> {
        let inside = self.inside(origin, side);
        let first = ivec2(inside.x as i32, inside.z as i32);
        let end = first + ivec2(inside.width as i32, inside.height as i32) - 1;
        let inside = self.source.ground.read(inside)?;
        if inside.width as i32 == side && inside.height as i32 == side {
            return Ok(inside);
        }
        let mut heights = Vec::with_capacity(side as usize * side as usize);
        for z in origin.y..origin.y + side {
            let row = (z.clamp(first.y, end.y) - first.y) as usize * inside.width as usize;
            let row = &inside.heights[row..row + inside.width as usize];
            let (west, east) = (
                (first.x - origin.x) as usize,
                (origin.x + side - 1 - end.x) as usize,
            );
            heights.extend(std::iter::repeat_n(row[0], west));
            heights.extend(row);
            heights.extend(std::iter::repeat_n(row[row.len() - 1], east));
        }
        Ok(HeightMap {
            width: side as u32,
            height: side as u32,
            heights,
        })
    }

    /// The samples of a square that the source has.
    fn inside(&self, origin: IVec2, side: i32) -> Area {
        let [columns, rows] = self.source.ground.size().map(|n| n as i32);
        let last = ivec2(columns, rows) - 1;
        let first = origin.clamp(IVec2::ZERO, last);
        let end = (origin + side - 1).clamp(IVec2::ZERO, last);
        Area {
            x: first.x as u32,
            z: first.y as u32,
            width: (end.x - first.x + 1) as u32,
            height: (end.y - first.y + 1) as u32,
        }
    }
}

/// The world cannot hold what the source asks for.
pub fn usage(error: FormatError) -> Error {
    Error::Usage(format!("this source cannot be compiled: {error}"))
}
