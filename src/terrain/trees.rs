//! From ranks to what a world stores: bit-streams, errors and bounds of every patch.
//!
//! One walk over a tile's hierarchy serves all levels: each level's stream gets a bit for every
//! triangle that exists in it, and each leaf is measured once for all levels that have it. Levels
//! wider than a tile get *pieces*, the tile's two halves, which a walk over the hierarchy above
//! joins.

use super::hierarchy::{Rank, Ranked};
use super::tile::{Tile, Tiling};
use super::tile_ground::Certificate;
use super::triangle::Triangle;
use super::upper::Upper;
use crate::world::{Bits, PatchKey, PatchRecord};
use glam::{IVec2, ivec2};
use std::collections::HashMap;

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

    fn clear(&mut self) {
        self.bits.clear();
        (self.error, self.exhausted, self.rim_edges) = (0.0, false, 0);
    }
}

/// What a tile says of its patches.
#[derive(Clone, Debug, Default)]
pub struct TileTrees {
    /// Of the tile's level and the finer ones: both halves of each patch.
    pub patches: HashMap<PatchKey, [Piece; 2]>,
    /// Of each level above the tile's, the nearest first: the tile's two halves.
    pub pieces: Vec<[Piece; 2]>,
}

/// Walks a settled tile.
pub fn tile_trees(tile: &Tile) -> TileTrees {
    let mut walk = Walk {
        tile,
        open: vec![Piece::default(); tile.tiling.layout.levels as usize],
        trees: TileTrees::default(),
        on_rim: (0..tile.tiling.layout.levels).any(|level| Rim::of(tile, level).meets_tile()),
    };
    let above = tile.tiling.level as usize + 1..walk.open.len();
    walk.trees.pieces = vec![Default::default(); above.len()];
    for (half, root) in tile.roots().into_iter().enumerate() {
        walk.open.iter_mut().for_each(Piece::clear);
        walk.visit(root, 0, tile.rank(root.c));
        for level in above.clone() {
            let piece = std::mem::take(&mut walk.open[level]);
            walk.trees.pieces[level - above.start][half] = piece;
        }
    }
    walk.trees
}

struct Walk<'a> {
    tile: &'a Tile<'a>,
    /// By level: what is being written.
    open: Vec<Piece>,
    trees: TileTrees,
    /// Whether any level's ground ends in the tile.
    on_rim: bool,
}

impl Walk<'_> {
    /// `exists`: up to which rank the triangle does.
    fn visit(&mut self, triangle: Triangle, depth: u32, exists: Rank) {
        let tiling = self.tile.tiling;
        let middle = triangle.split_middle();
        let split = middle.map_or(0, |middle| self.tile.rank(middle));
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
            self.close_leaf(triangle, finest.max(split as usize), exists as usize);
        }
        if split > 0 {
            for half in triangle.halves() {
                self.visit(half, depth + 1, split);
            }
        }
        if is_patch {
            self.close_patch(triangle, finest as u8);
        }
    }

    /// A leaf of some levels: measured once for all of them.
    fn close_leaf(&mut self, triangle: Triangle, finest: usize, end: usize) {
        // All samples of the smallest triangles are corners.
        let measured = triangle.split_middle().is_some();
        if let Some(ground) = self.tile.ground.filter(|_| measured) {
            let known = self.tile.errors.of(triangle).map(|error| Certificate {
                error,
                complexity: error,
            });
            let truth = known.unwrap_or_else(|| ground.certificate(triangle));
            for level in finest..end {
                let piece = &mut self.open[level];
                piece.error = piece.error.max(truth.error);
                piece.exhausted |= truth.complexity > self.tile.rules.threshold(level as u8);
            }
        }
        if self.on_rim {
            for level in finest..end {
                let rim = Rim::of(self.tile, level as u8);
                self.open[level].rim_edges += rim.edges(triangle);
            }
        }
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
            halves[(first.c != triangle.c) as usize] = self.open[level as usize].clone();
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
pub(super) mod tests {
    use super::super::detail::DetailMask;
    use super::super::height_map::HeightMap;
    use super::super::leaves::visit_leaves;
    use super::super::measure::{Measurer, Metric, Task};
    use super::super::rules::Rules;
    use super::super::serial::Grounds;
    use super::*;
    use crate::world::{Layout, WaterMask};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    /// The records of all patches of a world.
    pub fn all_trees(
        map: &HeightMap,
        layout: Layout,
        rules: &Rules,
    ) -> HashMap<PatchKey, PatchRecord> {
        trees_of(map, None, None, layout, rules)
    }

    fn trees_of(
        map: &HeightMap,
        absent: Option<&[bool]>,
        mask: Option<&DetailMask>,
        layout: Layout,
        rules: &Rules,
    ) -> HashMap<PatchKey, PatchRecord> {
        let grounds = Grounds::new(map, absent, mask, layout, rules);
        let (tiles, upper) = grounds.settle(rules);
        collect(&Tiling::new(layout), &tiles, &upper, rules)
    }

    fn collect(
        tiling: &Tiling,
        tiles: &[Tile],
        upper: &Upper,
        rules: &Rules,
    ) -> HashMap<PatchKey, PatchRecord> {
        let mut pieces = HashMap::new();
        let mut records = HashMap::new();
        for tile in tiles {
            let trees = tile_trees(tile);
            pieces.insert(tile.place, trees.pieces);
            let bounded = |(key, halves)| (key, record(halves, [-100, 100], 1.0));
            records.extend(trees.patches.into_iter().map(bounded));
        }
        for level in tiling.level + 1..tiling.layout.levels {
            let halves = upper_trees(upper, tiling, level, rules.threshold(level), &pieces);
            let keys = tiling.layout.keys(level);
            records.extend(keys.zip(halves.into_iter().map(|h| record(h, [-100, 100], 1.0))));
        }
        records
    }

    /// The naive twin: whole sets of triangles of one level over the whole world, split until
    /// nothing changes.
    fn naive(
        map: &HeightMap,
        absent: Option<&[bool]>,
        mask: Option<&DetailMask>,
        dry: Option<&[bool]>,
        layout: &Layout,
        rules: &Rules,
        level: u8,
    ) -> BTreeSet<[i32; 6]> {
        let sea = rules.sea.map(f64::from);
        let measurer = Measurer::new(map, rules.metric, sea);
        let measurer = measurer.leave_out(absent).keep_dry(dry);
        let needs = |t: &Triangle| {
            let limit = f64::INFINITY;
            let found = measurer.measure(&Task {
                triangle: *t,
                limit,
            });
            let share = mask.map_or(1.0, |mask| least_share(map, absent, mask, t));
            found.complexity > rules.threshold(level) * share || found.must_split || share == 0.0
        };
        let stride = layout.stride(level) as i32;
        let size = layout.patch_size(level) as i32;
        let divisible = |t: &Triangle| ((t.a + t.b) % (2 * stride)) == IVec2::ZERO;
        let wide = |t: &Triangle| (t.a - t.b).abs().max_element() > size;
        let present = |t: &Triangle| {
            let square = t.square(size);
            layout.contains(PatchKey::new(level, square.x as u32, square.y as u32))
        };
        let coarsest = layout.coarsest();
        let mut mesh: Vec<Triangle> = layout
            .keys(coarsest)
            .flat_map(|key| super::super::leaves::roots(layout, key))
            .collect();
        loop {
            let corners: BTreeSet<[i32; 2]> = mesh
                .iter()
                .flat_map(|t| [t.a, t.b, t.c])
                .map(|p| p.to_array())
                .chain(layout.keys(level).flat_map(|key| {
                    let corner = ivec2(key.x as i32, key.z as i32) * size;
                    [
                        [corner.x, corner.y],
                        [corner.x + size, corner.y],
                        [corner.x, corner.y + size],
                        [corner.x + size, corner.y + size],
                    ]
                }))
                .collect();
            let cut = |p: IVec2, q: IVec2| {
                (p + q) % 2 == IVec2::ZERO && corners.contains(&((p + q) / 2).to_array())
            };
            let hanging = |t: &Triangle| cut(t.a, t.b) || cut(t.b, t.c) || cut(t.c, t.a);
            let split =
                |t: &Triangle| hanging(t) || wide(t) && present(t) || divisible(t) && needs(t);
            if !mesh.iter().any(split) {
                break;
            }
            mesh = mesh
                .iter()
                .flat_map(|t| {
                    if split(t) {
                        t.halves().to_vec()
                    } else {
                        vec![*t]
                    }
                })
                .collect();
        }
        mesh.iter()
            .filter(|t| present(t))
            .map(|t| corners_of(*t))
            .collect()
    }

    /// The smallest share of a threshold that a mask leaves in a triangle.
    fn least_share(
        map: &HeightMap,
        absent: Option<&[bool]>,
        mask: &DetailMask,
        t: &Triangle,
    ) -> f64 {
        let mut least = 1.0f64;
        let nearest = t.a.min(t.b).min(t.c);
        if nearest.x >= map.width as i32 - 1 || nearest.y >= map.height as i32 - 1 {
            return least;
        }
        for z in t.rows().z.0..=t.rows().z.1.min(map.height as i32 - 1) {
            let (x0, x1) = t.rows().interval(z);
            for x in x0..=x1.min(map.width as i32 - 1) {
                let index = (z * map.width as i32 + x) as usize;
                if absent.is_some_and(|absent| absent[index]) {
                    continue;
                }
                let pixel =
                    |sample: i32, samples: u32, pixels: u32| sample as u32 * pixels / samples;
                let [px, pz] = [
                    pixel(x, map.width, mask.size[0]),
                    pixel(z, map.height, mask.size[1]),
                ];
                let grey = mask.greys[(pz * mask.size[0] + px) as usize];
                least = least.min((255 - grey) as f64 / 255.0);
            }
        }
        least
    }

    fn corners_of(t: Triangle) -> [i32; 6] {
        [t.a.x, t.a.y, t.b.x, t.b.y, t.c.x, t.c.y]
    }

    fn mesh_of(
        layout: &Layout,
        level: u8,
        records: &HashMap<PatchKey, PatchRecord>,
    ) -> BTreeSet<[i32; 6]> {
        let mut mesh = BTreeSet::new();
        for key in layout.keys(level) {
            visit_leaves(layout, key, &records[&key].trees, |t| {
                assert!(mesh.insert(corners_of(t)), "{key}: a triangle twice");
            });
        }
        mesh
    }

    /// Rough ground, so that neighbouring tiles drag each other in.
    fn rough(width: u32, height: u32, seed: i64) -> HeightMap {
        let at = |x: i64, z: i64| {
            let mixed = (x * 7919 + z * 104_729 + seed * 31).wrapping_mul(2_654_435_761) >> 7;
            (mixed % 37 + (x - z) * (x + 2 * z) % 91) as i32
        };
        HeightMap {
            width,
            height,
            heights: (0..(width * height) as i64)
                .map(|i| at(i % width as i64, i / width as i64))
                .collect(),
        }
    }

    /// No void, single ones, or one that may hold whole tiles.
    fn absent(map: &HeightMap, seed: i64, holed: u32) -> Option<Vec<bool>> {
        let samples = (0..map.height).flat_map(|z| (0..map.width).map(move |x| (x, z)));
        let (x0, z0) = (seed as u32 % map.width, seed as u32 / 3 % map.height);
        let single = |x: u32, z: u32| (x * 7 + z * 13 + x * z) % 5 < 2;
        let large = |x: u32, z: u32| x.abs_diff(x0) < 17 && z.abs_diff(z0) < 14;
        let is_absent = |(x, z): (u32, u32)| {
            if holed == 1 {
                single(x, z)
            } else {
                large(x, z)
            }
        };
        (holed > 0).then(|| samples.map(is_absent).collect())
    }

    /// No water, a pond, a lake with an arm of it, or water everywhere, in squares of so many
    /// samples; none where there is no mask. And which samples it leaves dry.
    fn lake(map: &HeightMap, seed: i64, squares: Option<u32>) -> Option<(WaterMask, Vec<bool>)> {
        let shift = squares?;
        let (x0, z0) = (seed as u32 % map.width, seed as u32 / 7 % map.height);
        let [x0, z0] = [x0 >> shift, z0 >> shift];
        let is_water = |x: u32, z: u32| match seed % 4 {
            0 => false,
            1 => x.abs_diff(x0).max(z.abs_diff(z0)) < 2,
            2 => x.abs_diff(x0) < 7 >> shift || z == z0,
            _ => true,
        };
        let mask = WaterMask::from_fn([map.width, map.height], shift, is_water);
        let samples = (0..map.height).flat_map(|z| (0..map.width).map(move |x| (x, z)));
        let dry = samples
            .map(|(x, z)| !is_water(x >> shift, z >> shift))
            .collect();
        Some((mask, dry))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(120))]
        #[test]
        fn every_level_is_the_smallest_mesh(
            width in 10u32..42, height in 10u32..42, seed in 0i64..1000, error in 0u32..60,
            sum: bool, sea in 0u32..3, bias in 0u8..3, levels in 1u8..6, masked: bool, holed in 0u32..3,
            squares in prop::option::of(0u32..3),
        ) {
            let map = rough(width, height, seed);
            let metric = if sum { Metric::Sum } else { Metric::Max };
            let layout = Layout::with_levels([width - 1, height - 1], 8, 16, levels, bias).unwrap();
            let thresholds = (0..layout.levels as i32)
                .map(|level| error as f64 * metric.growth().powi(level))
                .collect();
            // None, one among the heights, or one above all of them.
            let sea = [None, Some(20.0), Some(500.0)][sea as usize];
            let (water, dry) = lake(&map, seed, squares).unzip();
            let rules = Rules::new(metric, thresholds, sea).with_water(water.map(Arc::new));
            let mask = DetailMask { size: [3, 2], greys: vec![0, 120, 0, 255, 0, 200] };
            let mask = masked.then_some(&mask);
            let absent = absent(&map, seed, holed);
            let absent = absent.as_deref();
            let records = trees_of(&map, absent, mask, layout, &rules);
            for level in 0..layout.levels {
                prop_assert_eq!(mesh_of(&layout, level, &records), naive(&map, absent, mask, dry.as_deref(), &layout, &rules, level), "level {}", level);
            }
        }
    }

    #[test]
    fn one_large_tile_agrees_with_many_small_ones() {
        let map = rough(65, 65, 5);
        let rules = |layout: &Layout| {
            let thresholds = (0..layout.levels).map(|level| 30.0 * (1 << level) as f64);
            Rules::new(Metric::Max, thresholds.collect(), Some(10.0))
        };
        let trees = |stream_cells: u32| {
            let layout = Layout::new([64, 64], 8, stream_cells).unwrap();
            (
                Tiling::new(layout).side,
                all_trees(&map, layout, &rules(&layout)),
            )
        };
        let ((small, many), (large, one)) = (trees(8), trees(32));
        assert!(small < large);
        assert_eq!(many, one);
    }
}
