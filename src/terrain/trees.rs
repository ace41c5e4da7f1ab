//! From ranks to what a world stores: bit-streams, errors and bounds of every patch.
//!
//! One walk over a tile's hierarchy serves all levels: each level's stream gets a bit for every
//! triangle that exists in it, and each leaf is measured once for all levels that have it. Levels
//! wider than a tile get *pieces*, the tile's two halves, which a walk over the hierarchy above
//! joins.

use super::fine::Kind;
use super::hierarchy::{Rank, Ranked};
use super::tile::{Tile, Tiling};
use super::tile_ground::Certificate;
use super::triangle::Triangle;
use super::upper::Upper;
use crate::world::{BitWriter, Bits, PatchKey, PatchRecord};
use glam::{IVec2, ivec2, uvec2};
use std::collections::HashMap;
use std::ops::Range;

/// Part of a level's tree, and the truth about its leaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    pub bits: Bits,
    /// The largest error of a leaf, in height steps.
    pub error: f64,
    /// Whether a leaf is above the threshold, the lattice being too wide.
    pub exhausted: bool,
    /// Edges of leaves along the border of the level's ground.
    pub rim_edges: u64,
}

impl Piece {
    fn and(&mut self, other: &Piece) {
        self.bits.append(&other.bits);
        self.error = self.error.max(other.error);
        self.exhausted |= other.exhausted;
        self.rim_edges += other.rim_edges;
    }
}

/// What a tile says of its patches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TileTrees {
    /// Of the tile's level and the finer ones: both halves of each patch.
    pub patches: HashMap<PatchKey, [Piece; 2]>,
    /// Of each level above the tile's, the nearest first: the tile's two halves.
    pub pieces: Vec<[Piece; 2]>,
}

/// Walks a settled tile.
pub fn tile_trees(tile: &Tile) -> TileTrees {
    let tiling = tile.tiling;
    let levels = tiling.layout.levels;
    let on_rim = (0..levels).any(|level| Rim::of(tile, level).meets_tile());
    let above = tiling.level as usize + 1..levels as usize;
    let mut walk = Walk {
        tile,
        width: tiling.side as u32 + 1,
        heights: tile.ground.and_then(|ground| ground.plain_heights()),
        open: vec![Open::default(); levels as usize],
        trees: TileTrees::default(),
        on_rim,
        most_finest: tile.rules.small_limit(1, 2) as f64 / 4.0,
    };
    walk.trees.pieces = vec![Default::default(); above.len()];
    let halvings = 2 * tiling.side.ilog2();
    for (half, root) in tile.roots().into_iter().enumerate() {
        walk.open.iter_mut().for_each(Open::clear);
        let places = [root.a, root.b, root.c].map(|p| tile.index(p) as u32);
        walk.visit(places, halvings, tile.rank(root.c));
        for level in above.clone() {
            walk.trees.pieces[level - above.start][half] = walk.open[level].piece();
        }
    }
    walk.trees
}

/// A piece that is being written.
#[derive(Clone, Default)]
struct Open {
    bits: BitWriter,
    error: f64,
    exhausted: bool,
    rim_edges: u64,
}

impl Open {
    fn clear(&mut self) {
        self.bits.clear();
        (self.error, self.exhausted, self.rim_edges) = (0.0, false, 0);
    }

    fn piece(&self) -> Piece {
        Piece {
            bits: self.bits.bits(),
            error: self.error,
            exhausted: self.exhausted,
            rim_edges: self.rim_edges,
        }
    }
}

/// Triangles are the places of their corners in the tile's rows, so that the middle of two is
/// their mean.
struct Walk<'a> {
    tile: &'a Tile<'a>,
    /// Vertices a row.
    width: u32,
    /// Where the smallest triangles can be measured the short way.
    heights: Option<&'a [f32]>,
    /// By level: what is being written.
    open: Vec<Open>,
    trees: TileTrees,
    /// Whether any level's ground ends in the tile.
    on_rim: bool,
    /// What the smallest leaves of the finest level are not above, in height steps: its lattice has
    /// all samples, so what is above is split. Where a leaf reached it they need not be measured.
    most_finest: f64,
}

impl Walk<'_> {
    /// `halvings`: how many lead to the smallest triangles. `exists`: up to which rank the
    /// triangle does.
    fn visit(&mut self, corners: [u32; 3], halvings: u32, exists: Rank) {
        let tiling = self.tile.tiling;
        let depth = 2 * tiling.side.ilog2() - halvings;
        let middle = (corners[0] + corners[1]) / 2;
        let split = self.split_rank(middle, halvings);
        // Every second halving leads to the halves of the next finer level's patches.
        let finest = (tiling.level as u32).saturating_sub(depth / 2) as usize;
        let is_patch = depth.is_multiple_of(2) && depth / 2 <= tiling.level as u32;
        if is_patch {
            self.open[finest].clear();
        }
        for level in finest..exists as usize {
            self.open[level].bits.push(level < split as usize);
        }
        if split < exists {
            let levels = finest.max(split as usize)..exists as usize;
            self.close_leaf(corners, halvings, levels);
        }
        if split > 0 {
            let [a, b, c] = corners;
            // Below, nothing but the finest level is left.
            let only_finest = split == 1 && depth >= 2 * tiling.level as u32;
            for half in [[c, a, middle], [b, c, middle]] {
                if only_finest {
                    self.visit_finest(half, halvings - 1);
                } else {
                    self.visit(half, halvings - 1, split);
                }
            }
        }
        if is_patch {
            self.close_patch(self.triangle(corners), finest as u8);
        }
    }

    /// A triangle inside a finest patch that no other level has: most are.
    fn visit_finest(&mut self, corners: [u32; 3], halvings: u32) {
        let [a, b, c] = corners;
        let middle = (a + b) / 2;
        let split = self.split_rank(middle, halvings) > 0;
        self.open[0].bits.push(split);
        if split {
            self.visit_finest([c, a, middle], halvings - 1);
            self.visit_finest([b, c, middle], halvings - 1);
            return;
        }
        let is_small = self.heights.is_some() && Kind::above(halvings).is_some();
        if self.on_rim || !is_small || self.open[0].error < self.most_finest {
            self.close_leaf(corners, halvings, 0..1);
        }
    }

    #[inline]
    fn split_rank(&self, middle: u32, halvings: u32) -> Rank {
        if halvings == 0 {
            return 0;
        }
        self.tile.ranks[middle as usize]
    }

    /// A leaf of some levels: measured once for all of them.
    #[inline]
    fn close_leaf(&mut self, corners: [u32; 3], halvings: u32, levels: Range<usize>) {
        // All samples of the smallest triangles are corners.
        if halvings > 0 {
            self.measure_leaf(corners, halvings, levels.clone());
        }
        if self.on_rim {
            let triangle = self.triangle(corners);
            for level in levels {
                let rim = Rim::of(self.tile, level as u8);
                self.open[level].rim_edges += rim.edges(triangle);
            }
        }
    }

    #[inline]
    fn measure_leaf(&mut self, corners: [u32; 3], halvings: u32, levels: Range<usize>) {
        let Some(truth) = self.truth(corners, halvings) else {
            return;
        };
        for level in levels {
            let open = &mut self.open[level];
            open.error = open.error.max(truth.error);
            open.exhausted |= truth.complexity > self.tile.rules.threshold(level as u8);
        }
    }

    /// None where the tile has no ground.
    #[inline]
    fn truth(&self, corners: [u32; 3], halvings: u32) -> Option<Certificate> {
        let ground = self.tile.ground?;
        let only = |error| Certificate {
            error,
            complexity: error,
        };
        let kind = Kind::above(halvings).zip(self.heights);
        if let Some((kind, heights)) = kind {
            let [a, b, c] = corners.map(|corner| corner as usize);
            let distance = kind.distance(heights, [a, b, c], (a + b) / 2);
            return Some(only(distance as f64 / (1 << kind.shift()) as f64));
        }
        let middle = (corners[0] + corners[1]) / 2;
        let known = self
            .tile
            .errors
            .at(self.vertex(middle), corners[2] < middle);
        let measured = || ground.certificate(self.triangle(corners));
        Some(known.map(only).unwrap_or_else(measured))
    }

    fn triangle(&self, corners: [u32; 3]) -> Triangle {
        let [a, b, c] = corners.map(|corner| self.vertex(corner));
        Triangle { a, b, c }
    }

    fn vertex(&self, place: u32) -> IVec2 {
        uvec2(place % self.width, place / self.width).as_ivec2()
    }

    fn close_patch(&mut self, triangle: Triangle, level: u8) {
        let tiling = self.tile.tiling;
        let size = tiling.layout.patch_size(level) as i32;
        let square = triangle.square(size);
        let place = self.tile.place * (tiling.side / size) + square;
        let key = PatchKey::new(level, place.x as u32, place.y as u32);
        if tiling.layout.contains(key) {
            let halves = self.trees.patches.entry(key).or_default();
            let first = Triangle::roots(square * size, size, key.splits_nw_se())[0];
            halves[(first.c != triangle.c) as usize] = self.open[level as usize].piece();
        }
    }
}

/// Where a level's ground ends, in whatever positions the triangles have.
struct Rim {
    north_west: IVec2,
    south_east: IVec2,
    side: i32,
}

impl Rim {
    fn of(tile: &Tile, level: u8) -> Self {
        let tiling = tile.tiling;
        let origin = tile.place * tiling.side;
        let [nx, nz] = tiling.layout.patches(level).map(|n| n as i32);
        Rim {
            north_west: -origin,
            south_east: ivec2(nx, nz) * tiling.layout.patch_size(level) as i32 - origin,
            side: tiling.side,
        }
    }

    fn meets_tile(&self) -> bool {
        let inside = |n: i32| (0..=self.side).contains(&n);
        let ends = [self.north_west, self.south_east];
        ends.iter().any(|end| inside(end.x) || inside(end.y))
    }

    /// Edges of a triangle along the rim.
    fn edges(&self, t: Triangle) -> u64 {
        let along = |p: IVec2, q: IVec2| {
            let x = p.x == q.x && (p.x == self.north_west.x || p.x == self.south_east.x);
            let z = p.y == q.y && (p.y == self.north_west.y || p.y == self.south_east.y);
            let middle = (p + q).cmpge(2 * self.north_west).all()
                && (p + q).cmple(2 * self.south_east).all();
            ((x || z) && middle) as u64
        };
        along(t.a, t.b) + along(t.b, t.c) + along(t.c, t.a)
    }
}

/// Joins what the tiles say of a level above them: both halves of each of its patches, row by
/// row. Tiles that are not in `pieces` were never touched: each half is one leaf over nothing.
pub fn upper_trees(
    upper: &Upper,
    tiling: &Tiling,
    level: u8,
    threshold: f64,
    pieces: &HashMap<IVec2, Vec<[Piece; 2]>>,
) -> Vec<[Piece; 2]> {
    let size = 1 << (level - tiling.level);
    let [nx, nz] = tiling.layout.patches(level).map(|n| n as i32);
    let rim = Rim {
        north_west: IVec2::ZERO,
        south_east: ivec2(nx, nz) * size,
        side: 0,
    };
    let mut join = Join {
        upper,
        rim,
        level,
        threshold,
        above: (level - tiling.level) as usize - 1,
        pieces,
        piece: Piece::default(),
    };
    let patches = tiling.layout.keys(level).map(|key| {
        let corner = ivec2(key.x as i32, key.z as i32) * size;
        Triangle::roots(corner, size, key.splits_nw_se()).map(|root| {
            join.visit(root);
            std::mem::take(&mut join.piece)
        })
    });
    patches.collect()
}

struct Join<'a> {
    upper: &'a Upper<'a>,
    rim: Rim,
    level: u8,
    threshold: f64,
    /// Which of a tile's pieces.
    above: usize,
    pieces: &'a HashMap<IVec2, Vec<[Piece; 2]>>,
    piece: Piece,
}

impl Join<'_> {
    fn visit(&mut self, triangle: Triangle) {
        let Some(middle) = triangle.split_middle() else {
            return self.visit_tile(triangle);
        };
        let split = self.upper.rank(middle) > self.level;
        self.piece.bits.push(split);
        if split {
            triangle
                .halves()
                .into_iter()
                .for_each(|half| self.visit(half));
        } else {
            let tally = self.upper.tally(triangle);
            self.piece.error = self.piece.error.max(tally.error());
            self.piece.exhausted |= tally.complexity(self.upper.metric()) > self.threshold;
            self.piece.rim_edges += self.rim.edges(triangle);
        }
    }

    fn visit_tile(&mut self, half: Triangle) {
        let tile = half.square(1);
        let even = (tile.x + tile.y) % 2 == 0;
        match self.pieces.get(&tile) {
            Some(pieces) => {
                let first = Triangle::roots(tile, 1, even)[0];
                self.piece
                    .and(&pieces[self.above][(first != half) as usize]);
            }
            None => {
                self.piece.bits.push(false);
                self.piece.rim_edges += self.rim.edges(half);
            }
        }
    }
}

/// The record of a patch with these halves and these lowest and highest heights.
pub fn record(halves: [Piece; 2], [min, max]: [i32; 2], step_m: f64) -> PatchRecord {
    let error = halves[0].error.max(halves[1].error);
    PatchRecord {
        min,
        max,
        error_m: round_up(error * step_m),
        exhausted: halves.iter().any(|half| half.exhausted),
        absent: false,
        trees: halves.map(|half| half.bits),
    }
}

/// To the next `f32` that is not smaller: a certificate must not promise too much.
fn round_up(value: f64) -> f32 {
    let rounded = value as f32;
    if (rounded as f64) < value {
        rounded.next_up()
    } else {
        rounded
    }
}

#[cfg(test)]
pub(super) mod tests;
