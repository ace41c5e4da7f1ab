//! The second step: the meshes of all levels, tile by tile, until neighbours agree.
//!
//! Tiles of one colour of a chessboard share no border, so they are worked on at the same time;
//! the other colour then starts from what they raised. A tile whose border or corner was raised
//! by another is taken up again where it was left. Ranks only grow and end in the one smallest
//! solution, so neither the order nor the number of threads shows.

use super::job::{Job, usage};
use crate::error::Result;
use crate::terrain::hierarchy::Rank;
use crate::terrain::tile::{Border, Tile};
use crate::terrain::tile_ground::TileGround;
use crate::terrain::upper::Upper;
use crate::world::Spool;
use glam::{IVec2, ivec2};
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap};

/// The settled meshes: each tile's ranks lie in a spool.
pub struct Meshes<'a> {
    job: &'a Job<'a>,
    pub upper: Upper<'a>,
    spool: &'a dyn Spool,
    tiles: HashMap<IVec2, Settled>,
    /// What the tiles on both sides of a border have raised: a tile's north border, and its west
    /// one (`true`). Missing ones are all 0.
    borders: HashMap<(IVec2, bool), Border>,
}

/// A tile that was worked on.
#[derive(Clone, Copy)]
struct Settled {
    ranks_at: u64,
    corners: [Rank; 4],
}

/// What comes out of working on a tile.
struct Outcome {
    tile: IVec2,
    settled: Settled,
    borders: [Border; 4],
}

impl<'a> Meshes<'a> {
    pub fn settle(job: &'a Job<'a>, mut upper: Upper<'a>, spool: &'a dyn Spool) -> Result<Self> {
        upper.take_touched();
        let mut meshes = Meshes {
            job,
            upper,
            spool,
            tiles: HashMap::new(),
            borders: HashMap::new(),
        };
        let by_row = |tile: IVec2| (tile.y, tile.x);
        let mut open: BTreeSet<(i32, i32)> = job.present_tiles().into_iter().map(by_row).collect();
        while !open.is_empty() {
            for colour in 0..2 {
                let tiles = open.iter().map(|&(z, x)| ivec2(x, z));
                let batch: Vec<IVec2> = tiles.filter(|t| (t.x + t.y) % 2 == colour).collect();
                open.retain(|&(z, x)| (x + z) % 2 != colour);
                let outcomes: Result<Vec<Outcome>> = batch
                    .into_par_iter()
                    .map(|tile| meshes.work_on(tile))
                    .collect();
                for outcome in outcomes? {
                    open.extend(meshes.take(outcome).into_iter().map(by_row));
                }
            }
        }
        Ok(meshes)
    }

    /// The tiles that were worked on, row by row: all present ones, and the absent ones that
    /// closure reached.
    pub fn worked_on(&self) -> Vec<IVec2> {
        let mut tiles: Vec<IVec2> = self.tiles.keys().copied().collect();
        tiles.sort_by_key(|tile| (tile.y, tile.x));
        tiles
    }

    /// A tile as it was left.
    pub fn tile<'b>(&'b self, place: IVec2, ground: Option<&'b TileGround>) -> Result<Tile<'b>> {
        let mut tile = Tile::new(self.job.tiling, place, &self.job.rules, ground);
        let settled = self.tiles[&place];
        self.spool
            .read_at(settled.ranks_at, &mut tile.ranks)
            .map_err(usage)?;
        Ok(tile)
    }

    fn work_on(&self, place: IVec2) -> Result<Outcome> {
        let ground = self.job.tile_ground(place)?;
        let corners = self.upper.corners(place);
        let borders = self.border_names(place).map(|name| {
            let border = self.borders.get(&name);
            border.map_or(&[][..], |border| &border[..])
        });
        let tile = if self.tiles.contains_key(&place) {
            let mut tile = self.tile(place, ground.as_ref())?;
            tile.go_on(corners, borders);
            tile
        } else {
            let mut tile = Tile::new(self.job.tiling, place, &self.job.rules, ground.as_ref());
            if self.job.is_present(place) {
                tile.start(corners, borders);
                self.job.finished(place)?;
            } else {
                tile.go_on(corners, borders);
            }
            tile
        };
        let settled = Settled {
            ranks_at: self.spool.append(&tile.ranks).map_err(usage)?,
            corners: tile.corner_ranks(),
        };
        Ok(Outcome {
            tile: place,
            settled,
            borders: tile.borders(),
        })
    }

    /// Takes over what a tile raised; the tiles that must follow.
    fn take(&mut self, outcome: Outcome) -> Vec<IVec2> {
        let Outcome {
            tile,
            settled,
            borders,
        } = outcome;
        self.tiles.insert(tile, settled);
        let mut open = Vec::new();
        let neighbours = [ivec2(0, -1), ivec2(0, 1), ivec2(-1, 0), ivec2(1, 0)];
        let names = self.border_names(tile);
        for ((name, border), offset) in names.into_iter().zip(borders).zip(neighbours) {
            let before = self.borders.get(&name);
            let raised = match before {
                Some(before) => *before != border,
                None => border.iter().any(|&rank| rank > 0),
            };
            if raised {
                self.borders.insert(name, border);
                open.push(tile + offset);
            }
        }
        self.upper.raise_corners(tile, settled.corners);
        for touched in self.upper.take_touched() {
            let known = self.tiles.get(&touched).map(|settled| settled.corners);
            // A tile that was not worked on will see its corners then, if it ever is.
            if known.is_some_and(|known| known != self.upper.corners(touched)) {
                open.push(touched);
            }
        }
        // So does this one, where another of its batch raised a corner meanwhile.
        if settled.corners != self.upper.corners(tile) {
            open.push(tile);
        }
        let extent = self.job.tiling.extent();
        open.retain(|tile| tile.min_element() >= 0 && tile.cmplt(extent).all());
        open
    }

    /// The north, south, west and east border of a tile.
    fn border_names(&self, tile: IVec2) -> [(IVec2, bool); 4] {
        [
            (tile, false),
            (tile + ivec2(0, 1), false),
            (tile, true),
            (tile + ivec2(1, 0), true),
        ]
    }
}
