//! The finest vertices of a tile, 31 of 32, taken row by row instead of one by one.
//!
//! What their triangles need is found beforehand, each once. Then the rules of
//! [`super::hierarchy`] are the smallest and the largest of a few rows of ranks, many vertices at
//! once. A sweep *down* gives middles what the apexes above them let exist; one *up* gives apexes
//! the ranks of their middles. Coarser vertices are left to the list of what was raised, in turns,
//! until nothing changes; the naive twin of the meshes watches over both.
//!
//! Vertices are of two kinds, each in steps of 1, 2, 4 and so on:
//!
//! - *edges*: one place an odd multiple of the step, the other an even one; their apexes lie a step
//!   to both sides, across the odd place;
//! - *centres*: both places odd multiples; their apexes are the two corners of the square of two
//!   steps that its diagonal leaves out: edges of twice the step.
//!
//! The apexes of edges are the centres of the same step. Swept are the edges of steps 1, 2 and 4
//! and the centres of steps 1 and 2; the centres of step 4 are the *anchors*: apexes only.

use super::hierarchy::{Diamond, Raised, Rank, Ranked, raise};
use super::needs::Needs;
use super::stencil::Stencil;
use super::tile::Tile;
use super::triangle::Triangle;
use glam::{IVec2, ivec2};
use multiversion::multiversion;

/// The step of the coarsest edges.
pub(super) const WIDEST: usize = 4;
/// Rows and columns of zeros round the ranks: apexes outside the tile.
const MARGIN: usize = WIDEST;

/// Ranks and needs of a tile's vertices.
pub(super) struct Sweep {
    /// Vertices a row of the tile.
    width: usize,
    /// Row by row, with the margin.
    ranks: Vec<Rank>,
    /// By vertex: the rank that the triangle with the apex to the north or west needs, and the one
    /// with the apex to the south or east; 0 where coarser ones are.
    needs: [Vec<Rank>; 2],
    masks: Masks,
    /// A row of ranks with its margin, before it changes.
    row: Vec<Rank>,
}

/// By the power of two that columns are divided by, and by what remains: all ones in such columns.
pub(super) struct Masks(Vec<Vec<Vec<u8>>>);

impl Masks {
    fn new(width: usize) -> Self {
        let mask = |divisor: usize, rest: usize| -> Vec<u8> {
            let by_column = |x: usize| if x % divisor == rest { 0xff } else { 0 };
            (0..width).map(by_column).collect()
        };
        let divisors = (0..=(2 * WIDEST).ilog2()).map(|power| 1 << power);
        let masks = divisors.map(|divisor| (0..divisor).map(|rest| mask(divisor, rest)).collect());
        Masks(masks.collect())
    }

    fn of(&self, divisor: usize, rest: usize) -> &[u8] {
        &self.0[divisor.ilog2() as usize][rest]
    }

    pub fn edges(&self, z: usize, step: usize) -> &[u8] {
        self.of(2 * step, step - z % (2 * step))
    }

    /// Those whose square is split from its north-west to its south-east corner, and the others.
    pub fn centres(&self, z: usize, step: usize) -> [&[u8]; 2] {
        let rest = z % (4 * step);
        [rest, 4 * step - rest].map(|rest| self.of(4 * step, rest))
    }
}

impl Sweep {
    /// None where the tile is too small or its finest vertices are no part of any mesh. `heights`
    /// are those of all vertices, whole numbers whose distances in quarters are exact.
    pub fn new(tile: &mut Tile, heights: &[f32]) -> Option<Self> {
        let tiling = tile.tiling;
        let width = tiling.side as usize + 1;
        let caps = [tiling.highest_rank(0), tiling.highest_rank(1)];
        if width <= 2 * WIDEST || caps[1] == 0 {
            return None;
        }
        let masks = Masks::new(width);
        let needs = Needs {
            width,
            heights,
            rules: tile.rules,
            caps,
            masks: &masks,
        };
        let mut needs = needs.find();
        measure(tile, heights, &mut needs);
        let padded = width + 2 * MARGIN;
        Some(Sweep {
            width,
            ranks: vec![0; padded * padded],
            needs,
            masks,
            row: vec![0; padded],
        })
    }

    /// Takes over ranks of all vertices, row by row.
    pub fn take(&mut self, ranks: &[Rank]) {
        for (z, row) in ranks.chunks_exact(self.width).enumerate() {
            let start = self.start(z);
            self.ranks[start..start + self.width].copy_from_slice(row);
        }
    }

    /// Hands them back.
    pub fn give(&self, ranks: &mut [Rank]) {
        for (z, row) in ranks.chunks_exact_mut(self.width).enumerate() {
            let start = self.start(z);
            row.copy_from_slice(&self.ranks[start..start + self.width]);
        }
    }

    /// Coarse before fine: middles get the rank up to which a triangle of theirs exists and needs
    /// its split.
    pub fn down(&mut self) {
        for step in [4, 2, 1] {
            (0..self.width)
                .step_by(step)
                .for_each(|z| self.split_edges(z, step));
            let half = step / 2;
            if half > 0 {
                let rows = (half..self.width).step_by(step);
                rows.for_each(|z| self.split_centres(z, half));
            }
        }
    }

    /// Fine before coarse: apexes get the ranks of their middles. Whether any but an anchor was
    /// raised.
    pub fn up(&mut self) -> bool {
        let mut raised = false;
        for step in [1, 2] {
            for z in (step..self.width).step_by(2 * step) {
                raised |= self.close_centres(z, step);
            }
            for z in (0..self.width).step_by(2 * step) {
                raised |= self.close_edges(z, 2 * step);
            }
        }
        for z in (WIDEST..self.width).step_by(2 * WIDEST) {
            self.close_centres(z, WIDEST);
        }
        raised
    }

    pub fn anchors(&self) -> impl Iterator<Item = IVec2> + use<> {
        let end = self.width as i32;
        let places = move || (WIDEST as i32..end).step_by(2 * WIDEST);
        places().flat_map(move |z| places().map(move |x| ivec2(x, z)))
    }

    pub fn rank(&self, vertex: IVec2) -> Rank {
        self.ranks[self.start(vertex.y as usize) + vertex.x as usize]
    }

    /// Where a row of the tile starts.
    fn start(&self, z: usize) -> usize {
        (z + MARGIN) * (self.width + 2 * MARGIN) + MARGIN
    }

    /// A row, and those some rows above and below it.
    fn rows(&mut self, z: usize, step: usize) -> Rows<'_> {
        let start = self.start(z);
        let (width, padded) = (self.width, self.width + 2 * MARGIN);
        let needs = self
            .needs
            .each_ref()
            .map(|needs| &needs[z * width..][..width]);
        self.row
            .copy_from_slice(&self.ranks[start - MARGIN..][..padded]);
        let (above, rest) = self.ranks.split_at_mut(start);
        let (row, below) = rest.split_at_mut(width);
        Rows {
            row,
            before: &self.row,
            above: &above[start - step * padded - MARGIN..][..padded],
            below: &below[step * padded - width - MARGIN..][..padded],
            needs,
            masks: &self.masks,
        }
    }

    fn split_edges(&mut self, z: usize, step: usize) {
        let rows = self.rows(z, step);
        let columns = step as isize;
        let apexes = if z.is_multiple_of(2 * step) {
            [shifted(rows.above, 0), shifted(rows.below, 0)]
        } else {
            [
                shifted(rows.before, -columns),
                shifted(rows.before, columns),
            ]
        };
        split(rows.row, rows.needs, apexes, rows.masks.edges(z, step));
    }

    fn split_centres(&mut self, z: usize, step: usize) {
        let rows = self.rows(z, step);
        let [falling, rising] = rows.masks.centres(z, step);
        let columns = step as isize;
        let apexes = |columns| [shifted(rows.above, columns), shifted(rows.below, -columns)];
        split(rows.row, rows.needs, apexes(columns), falling);
        split(rows.row, rows.needs, apexes(-columns), rising);
    }

    /// Centres get the ranks of the edges round them.
    fn close_centres(&mut self, z: usize, step: usize) -> bool {
        let rows = self.rows(z, step);
        let columns = step as isize;
        let middles = [
            shifted(rows.above, 0),
            shifted(rows.below, 0),
            shifted(rows.before, -columns),
            shifted(rows.before, columns),
        ];
        close(rows.row, middles, rows.masks.of(2 * step, step))
    }

    /// Edges get the ranks of the centres of half their step round them.
    fn close_edges(&mut self, z: usize, step: usize) -> bool {
        let rows = self.rows(z, step / 2);
        let columns = step as isize / 2;
        let middles = [
            shifted(rows.above, -columns),
            shifted(rows.above, columns),
            shifted(rows.below, -columns),
            shifted(rows.below, columns),
        ];
        close(rows.row, middles, rows.masks.edges(z, step))
    }
}

/// Draws the conclusions from a raised diamond while sweeps go over the finest ones: nothing of
/// those, and of an anchor what it closes. False of coarser ones.
pub(super) fn settle_swept(tile: &mut Tile, diamond: Diamond, raised: &mut Raised) -> bool {
    let reach = diamond.arm.abs();
    let widest = IVec2::splat(WIDEST as i32);
    if reach == widest {
        let rank = tile.rank(diamond.middle);
        for Triangle { c: apex, .. } in diamond.triangles() {
            if tile.is_inside(apex) {
                raise(tile, apex, rank, raised);
            }
        }
    }
    reach.cmple(widest).all()
}

/// Measures the triangles that are split at centres of step 2 or edges of step 4, and notes their
/// errors.
fn measure(tile: &mut Tile, heights: &[f32], needs: &mut [Vec<Rank>; 2]) {
    let (side, step) = (tile.tiling.side, WIDEST as i32);
    let width = side as usize + 1;
    let shapes = |arm: IVec2| {
        let middle = IVec2::ZERO;
        Diamond { middle, arm }
            .triangles()
            .map(|t| (t.c, Stencil::new(t, width)))
    };
    // Arms by which the first triangle's apex lies to the north, or to the west.
    let half = step / 2;
    let [falling, rising] = [ivec2(-half, -half), ivec2(-half, half)].map(shapes);
    let [level, upright] = [ivec2(-step, 0), ivec2(0, step)].map(shapes);
    let mut measure = |middle: IVec2, shapes: &[(IVec2, Stencil); 2]| {
        let at = tile.index(middle);
        let most = tile.highest_rank(middle);
        for (which, (to_apex, shape)) in shapes.iter().enumerate() {
            if tile.is_inside(middle + to_apex) {
                let apex = at as isize + tile.step(*to_apex);
                let error = shape.error(heights, apex as usize);
                tile.errors.note_at(middle, which == 0, error);
                needs[which][at] = tile.rules.exceeded(error as f64, most);
            }
        }
    };
    for z in (half..side).step_by(WIDEST) {
        for x in (half..side).step_by(WIDEST) {
            let is_falling = (x ^ z) & step == 0;
            measure(ivec2(x, z), if is_falling { &falling } else { &rising });
        }
    }
    for z in (0..=side).step_by(WIDEST) {
        let first = step - z % (2 * step);
        for x in (first..=side).step_by(2 * WIDEST) {
            measure(ivec2(x, z), if first > 0 { &level } else { &upright });
        }
    }
}

/// A row that changes and what it depends on; `before`, `above` and `below` with their margins.
struct Rows<'a> {
    row: &'a mut [Rank],
    before: &'a [Rank],
    above: &'a [Rank],
    below: &'a [Rank],
    needs: [&'a [Rank]; 2],
    masks: &'a Masks,
}

/// A row with its margin, seen some columns further to the east.
fn shifted(row: &[Rank], columns: isize) -> &[Rank] {
    let first = (MARGIN as isize + columns) as usize;
    &row[first..first + row.len() - 2 * MARGIN]
}

/// Gives middles the higher rank of their two triangles: up to which it exists and needs a split.
#[multiversion(targets("x86_64+avx2"))]
fn split(row: &mut [Rank], needs: [&[Rank]; 2], apexes: [&[Rank]; 2], mask: &[u8]) {
    let first = needs[0].iter().zip(apexes[0]);
    let second = needs[1].iter().zip(apexes[1]);
    for (((rank, mask), first), second) in row.iter_mut().zip(mask).zip(first).zip(second) {
        let asked = (*first.0).min(*first.1).max((*second.0).min(*second.1));
        *rank = (*rank).max(asked & mask);
    }
}

/// Gives apexes the highest rank of their four middles; whether that raised any.
#[multiversion(targets("x86_64+avx2"))]
fn close(row: &mut [Rank], middles: [&[Rank]; 4], mask: &[u8]) -> bool {
    let [a, b, c, d] = middles;
    let middles = a.iter().zip(b).zip(c.iter().zip(d));
    let mut changes = 0;
    for ((rank, mask), ((a, b), (c, d))) in row.iter_mut().zip(mask).zip(middles) {
        let highest = (*rank).max(*a.max(b).max(c.max(d)) & mask);
        changes |= highest ^ *rank;
        *rank = highest;
    }
    changes != 0
}

#[cfg(test)]
mod tests {
    use super::super::height_map::HeightMap;
    use super::super::measure::Metric;
    use super::super::rules::Rules;
    use super::super::tile::{Ladder, Tiling};
    use super::super::tile_ground::TileGround;
    use super::super::trees::tile_trees;
    use super::*;
    use crate::world::Layout;
    use proptest::prelude::*;

    /// Hills with rough spots.
    fn window(side: u32, seed: i32, roughness: i32) -> HeightMap {
        let height = |i: i32| {
            let (x, z) = (i % (side as i32 + 1), i / (side as i32 + 1));
            let mixed = (x * 7919 + z * 104_729 + seed * 31).wrapping_mul(-1_640_531_535) >> 7;
            let hill = ((x + seed) as f64 / 9.0).sin() * 40.0 + (z as f64 / 7.0).cos() * 30.0;
            let is_rough = (x / 8 + z / 8 + seed) % 3 == 0;
            hill as i32
                + if is_rough {
                    mixed.rem_euclid(roughness)
                } else {
                    0
                }
        };
        HeightMap {
            width: side + 1,
            height: side + 1,
            heights: (0..(side as i32 + 1).pow(2)).map(height).collect(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn sweeps_give_what_the_list_of_raised_vertices_gives(
            power in 2u32..7, patch_power in 2u32..4, seed in 0i32..1000, roughness in 1i32..90,
            threshold in 0.2f64..30.0, bias in 0u8..3, steps in prop::option::of(0u8..3), borders in prop::collection::vec(0u8..4, 0..300),
        ) {
            let side = 1 << power.max(patch_power);
            let patch_cells = 1 << patch_power;
            let layout =
                Layout::with_levels([2 * side, 2 * side], patch_cells, side, 12, bias).unwrap();
            let level = steps.map(|level| level.min(layout.coarsest()));
            let ladder = level.map_or(Ladder::Levels, |level| Ladder::Steps { level });
            let tiling = Tiling { ladder, ..Tiling::new(layout) };
            let thresholds = (0..tiling.top_rank() as i32).map(|k| threshold * 2f64.powi(k));
            let rules = Rules::new(Metric::Max, thresholds.collect(), None);
            let heights = window(tiling.side as u32, seed, roughness);
            let ground = || {
                let last = IVec2::splat(2 * side as i32);
                TileGround::new(&heights, 0, Vec::new(), Vec::new(), last, &rules)
            };
            let swept = ground();
            prop_assert!(swept.plain_heights().is_some());
            // With a list of absent samples, if of none, sweeps do not apply.
            let listed = ground().leave_out(vec![false; heights.heights.len()]);
            prop_assert!(listed.plain_heights().is_none());
            let inner = tiling.side as usize - 1;
            let highest = |at: usize| tiling.highest_rank((at as u32 + 1).trailing_zeros());
            // What neighbours raised, the four borders one behind the other.
            let raised = |side: usize, less: Rank| -> Vec<Rank> {
                let there = borders.iter().skip(side * inner).take(inner).enumerate();
                there.map(|(at, rank)| rank.saturating_sub(less).min(highest(at))).collect()
            };
            let settled = |ground: &TileGround| {
                let mut tile = Tile::new(tiling, ivec2(1, 0), &rules, Some(ground));
                let corner = tiling.corner_rank(tiling.level);
                for less in [2, 0] {
                    let borders: [_; 4] = std::array::from_fn(|side| raised(side, less));
                    let borders = borders.each_ref().map(|border| &border[..]);
                    if less > 0 {
                        tile.start([corner; 4], borders);
                    } else {
                        tile.go_on([corner + 1; 4], borders);
                    }
                }
                let trees = (tiling.ladder == Ladder::Levels).then(|| tile_trees(&tile));
                (tile.ranks, trees)
            };
            prop_assert_eq!(settled(&swept), settled(&listed));
        }
    }
}
