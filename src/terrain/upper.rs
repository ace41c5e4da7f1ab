//! The hierarchy above the tiles: triangles wider than a tile, whose corners are tiles' corners.
//!
//! Their errors against every sample are gathered tile by tile, in exact numbers that are added
//! in any order; then their ranks follow the same rules as those inside the tiles. There are few,
//! and where a source is narrow most of them lie over nothing, so they live in maps.
//!
//! Positions are tile corners, counted in tiles from the north-west.

use super::absent::present_runs;
use super::blocks::Blocks;
use super::detail;
use super::height_map::HeightMap;
use super::hierarchy::{Diamond, Raised, Rank, Ranked, consider, raise, settle};
use super::measure::Metric;
use super::rules::{Rules, Shore};
use super::tile::{CORNERS, Tiling};
use super::triangle::{Plane, Triangle};
use glam::{IVec2, ivec2};
use multiversion::multiversion;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// What is known of the samples in a triangle: distances in units of a step divided by the
/// denominator of its plane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub largest: i64,
    pub sum: i128,
    pub denominator: i64,
    /// On which sides of the shoreline samples lie.
    pub shore: Shore,
    /// The lightest grey of a detail mask.
    pub grey: u8,
}

impl Tally {
    /// Both together.
    pub fn and(self, other: Tally) -> Tally {
        Tally {
            largest: self.largest.max(other.largest),
            sum: self.sum + other.sum,
            denominator: self.denominator.max(other.denominator),
            shore: self.shore.and(other.shore),
            grey: self.grey.max(other.grey),
        }
    }

    /// The largest distance in height steps.
    pub fn error(&self) -> f64 {
        self.largest as f64 / self.denominator.max(1) as f64
    }

    /// What the metric compares with thresholds.
    pub fn complexity(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Max => self.error(),
            Metric::Sum => self.sum as f64 / self.denominator.max(1) as f64,
        }
    }
}

/// The tallies of triangles by their corners.
pub type Tallies = HashMap<[IVec2; 3], Tally>;

fn name(t: Triangle) -> [IVec2; 3] {
    [t.a, t.b, t.c]
}

/// The triangles wider than a tile that samples of a tile lie in: those of its own square, its
/// north and west border included, its south and east border left to the neighbours.
pub fn triangles_over(tiling: &Tiling, tile: IVec2) -> Vec<Triangle> {
    let mut found = Vec::new();
    for place in CORNERS.map(|offset| tile - offset) {
        if place.min_element() < 0 {
            continue;
        }
        let even = (place.x + place.y) % 2 == 0;
        for root in Triangle::roots(place, 1, even) {
            for above in ancestors(tiling, root) {
                if !found.contains(&above) {
                    found.push(above);
                }
            }
        }
    }
    found
}

/// The triangles that hold a half of a tile, from the coarsest patch's half down.
fn ancestors(tiling: &Tiling, root: Triangle) -> Vec<Triangle> {
    let size = 1 << (tiling.layout.coarsest() - tiling.level);
    let square = root.square(size);
    let even = (square.x + square.y) % 2 == 0;
    let mut chain = Vec::new();
    let halves = Triangle::roots(square * size, size, even);
    let mut at = halves.into_iter().find(|t| t.contains(root));
    while let Some(t) = at.filter(|t| *t != root) {
        chain.push(t);
        at = t.halves().into_iter().find(|half| half.contains(root));
    }
    chain
}

/// A tile's own samples, and what is said of each.
pub struct Own<'a> {
    /// Starts at the tile's north-west corner and holds samples of the source only, one row and
    /// column less than the tile's vertices where the source goes on.
    pub window: &'a HeightMap,
    /// Which of them are kept voids.
    pub absent: Option<&'a [bool]>,
    /// A detail mask's, in a square as wide as the window's longer side.
    pub greys: Option<&'a [u8]>,
}

/// Measures the samples of a tile against triangles wider than it. `corner` gives the height at a
/// tile corner. `known` is what other tiles' samples said so far: what cannot be larger than that
/// may be left out.
pub fn tally(
    tiling: &Tiling,
    tile: IVec2,
    own: &Own,
    rules: &Rules,
    corner: impl Fn(IVec2) -> i32,
    known: impl Fn([IVec2; 3]) -> Tally,
) -> Tallies {
    let Own {
        window,
        absent,
        greys,
    } = *own;
    let side = tiling.side;
    let blocks =
        (rules.only_largest() && absent.is_none()).then(|| Blocks::new(window, tile * side));
    let scaled = |t: Triangle| Triangle {
        a: t.a * side,
        b: t.b * side,
        c: t.c * side,
    };
    let dry = rules.dry(tile * side, [window.width, window.height]);
    let measured = triangles_over(tiling, tile).into_iter().map(|t| {
        let plane = Plane::through(scaled(t), corner(t.a), corner(t.b), corner(t.c));
        let present = Present {
            window,
            absent,
            dry: &dry,
            origin: tile * side,
        };
        let mut tally = match &blocks {
            Some(blocks) => Tally {
                denominator: plane.denominator,
                largest: blocks.largest(scaled(t), &plane, known(name(t)).largest, |row, start| {
                    largest_distance(row, &plane, start)
                }),
                ..Tally::default()
            },
            None => tally_one(scaled(t), &plane, &present, rules),
        };
        if let Some(greys) = greys {
            tally.grey = lightest(scaled(t), greys, &present);
        }
        (name(t), tally)
    });
    measured.collect()
}

/// The samples of a tile's own, and which of them are present.
#[derive(Clone, Copy)]
struct Present<'a> {
    window: &'a HeightMap,
    absent: Option<&'a [bool]>,
    /// Which of them a water mask keeps dry, empty where none is.
    dry: &'a [bool],
    /// The sample of the window's north-west corner.
    origin: IVec2,
}

fn lightest(triangle: Triangle, greys: &[u8], present: &Present) -> u8 {
    let side = present.window.width.max(present.window.height) as usize;
    let mut lightest = 0;
    visit_rows(triangle, present, |z, columns| {
        let row = &greys[z * side..][columns];
        lightest = row.iter().fold(lightest, |most, &grey| grey.max(most));
    });
    lightest
}

/// The present samples of a triangle in a window, as a row's number and a range of columns.
fn visit_rows(triangle: Triangle, present: &Present, mut visit: impl FnMut(usize, Range<usize>)) {
    let Present {
        window,
        absent,
        origin,
        ..
    } = *present;
    let rows = triangle.rows();
    let last = origin + ivec2(window.width as i32, window.height as i32) - 1;
    for z in rows.z.0.max(origin.y)..=rows.z.1.min(last.y) {
        let (x0, x1) = rows.interval(z);
        let (x0, x1) = (x0.max(origin.x), x1.min(last.x));
        if x0 <= x1 {
            let columns = (x0 - origin.x) as usize..(x1 - origin.x + 1) as usize;
            let row = (z - origin.y) as usize;
            let Some(absent) = absent else {
                visit(row, columns);
                continue;
            };
            let first = columns.start;
            let row_absent = &absent[row * window.width as usize..][columns];
            present_runs(row_absent).for_each(|run| visit(row, first + run.start..first + run.end));
        }
    }
}

fn tally_one(triangle: Triangle, plane: &Plane, present: &Present, rules: &Rules) -> Tally {
    let Present { window, origin, .. } = *present;
    let mut tally = Tally {
        denominator: plane.denominator,
        ..Tally::default()
    };
    visit_rows(triangle, present, |z, columns| {
        let start = origin + ivec2(columns.start as i32, z as i32);
        let first = z * window.width as usize;
        let row = first + columns.start..first + columns.end;
        let heights = &window.heights[row.clone()];
        add_row(&mut tally, heights, plane, start, rules.metric);
        if let Some(sea) = rules.sea {
            tally.shore.add(heights, sea, present.dry.get(row));
        }
    });
    tally
}

fn add_row(tally: &mut Tally, row: &[i32], plane: &Plane, start: IVec2, metric: Metric) {
    let shift = plane.denominator.trailing_zeros();
    let mut sum = 0i128;
    if metric == Metric::Sum {
        let (mut on_plane, slope) = (plane.at(start), plane.slope_x());
        for &height in row {
            sum += (on_plane - ((height as i64) << shift)).unsigned_abs() as i128;
            on_plane += slope;
        }
    }
    tally.largest = tally.largest.max(largest_distance(row, plane, start));
    tally.sum += sum;
}

/// All numbers stay below 2^53, so `f64` holds them exactly; two fit a register everywhere.
#[multiversion(targets("x86_64+avx2"))]
fn largest_distance(row: &[i32], plane: &Plane, start: IVec2) -> i64 {
    const LANES: usize = 4;
    let (unit, slope) = (plane.denominator as f64, plane.slope_x() as f64);
    let at = |lane: usize| plane.at(start) as f64 + slope * lane as f64;
    let mut planes: [f64; LANES] = std::array::from_fn(at);
    let (mut low, mut high) = ([0.0f64; LANES], [0.0f64; LANES]);
    let mut take = |heights: &[i32], planes: &mut [f64; LANES]| {
        for lane in 0..heights.len() {
            let distance = planes[lane] - heights[lane] as f64 * unit;
            low[lane] = if distance < low[lane] {
                distance
            } else {
                low[lane]
            };
            high[lane] = if distance > high[lane] {
                distance
            } else {
                high[lane]
            };
            planes[lane] += slope * LANES as f64;
        }
    };
    let mut chunks = row.chunks_exact(LANES);
    for chunk in &mut chunks {
        let chunk: &[i32; LANES] = chunk.try_into().expect("LANES heights");
        take(chunk, &mut planes);
    }
    take(chunks.remainder(), &mut planes);
    let least = low.into_iter().fold(0.0, f64::min);
    high.into_iter().fold(-least, f64::max) as i64
}

/// The ranks of all tile corners.
pub struct Upper<'a> {
    tiling: Tiling,
    rules: &'a Rules,
    tallies: Tallies,
    ranks: HashMap<IVec2, Rank>,
    /// Tiles with a corner that was raised since they were last asked for.
    touched: HashSet<IVec2>,
}

impl<'a> Upper<'a> {
    /// Plants the coarsest patches, raises the corners of all present patches that are no
    /// smaller than a tile, and settles.
    pub fn new(tiling: Tiling, rules: &'a Rules, tallies: Tallies) -> Self {
        let mut upper = Upper {
            tiling,
            rules,
            tallies,
            ranks: HashMap::new(),
            touched: HashSet::new(),
        };
        let mut raised = Raised::default();
        for level in tiling.level..tiling.layout.levels {
            let size = 1 << (level - tiling.level);
            let [nx, nz] = tiling.layout.patches(level).map(|n| n as i32);
            for z in 0..=nz {
                for x in 0..=nx {
                    let rank = tiling.corner_rank(level);
                    raise(&mut upper, ivec2(x, z) * size, rank, &mut raised);
                }
            }
        }
        for root in upper.roots() {
            consider(&mut upper, root, 0, tiling.top_rank(), &mut raised);
        }
        settle(&mut upper, &mut raised);
        upper
    }

    /// Raises the corners of a tile, [north-west, north-east, south-west, south-east].
    pub fn raise_corners(&mut self, tile: IVec2, ranks: [Rank; 4]) {
        let mut raised = Raised::default();
        for (corner, rank) in corners_of(tile).into_iter().zip(ranks) {
            raise(self, corner, rank, &mut raised);
        }
        settle(self, &mut raised);
    }

    pub fn corners(&self, tile: IVec2) -> [Rank; 4] {
        corners_of(tile).map(|corner| self.rank(corner))
    }

    /// The tiles with a corner that was raised since the last call.
    pub fn take_touched(&mut self) -> HashSet<IVec2> {
        std::mem::take(&mut self.touched)
    }

    pub fn metric(&self) -> Metric {
        self.rules.metric
    }

    /// What is known of a triangle wider than a tile.
    pub fn tally(&self, triangle: Triangle) -> Tally {
        self.tallies
            .get(&name(triangle))
            .copied()
            .unwrap_or_default()
    }

    /// Both halves of every coarsest patch.
    fn roots(&self) -> Vec<Triangle> {
        let layout = &self.tiling.layout;
        let size = 1 << (layout.coarsest() - self.tiling.level);
        let halves = layout.keys(layout.coarsest()).flat_map(|key| {
            let corner = ivec2(key.x as i32, key.z as i32) * size;
            Triangle::roots(corner, size, key.splits_nw_se())
        });
        halves.collect()
    }
}

fn corners_of(tile: IVec2) -> [IVec2; 4] {
    CORNERS.map(|offset| tile + offset)
}

impl Ranked for Upper<'_> {
    fn rank(&self, vertex: IVec2) -> Rank {
        self.ranks.get(&vertex).copied().unwrap_or(0)
    }

    fn set_rank(&mut self, vertex: IVec2, rank: Rank) {
        self.ranks.insert(vertex, rank);
        let extent = self.tiling.extent();
        let around = CORNERS.map(|offset| vertex - offset);
        let inside = |tile: &IVec2| tile.min_element() >= 0 && tile.cmplt(extent).all();
        self.touched.extend(around.into_iter().filter(inside));
    }

    fn highest_rank(&self, vertex: IVec2) -> Rank {
        let halvings = (vertex.x | vertex.y).trailing_zeros();
        self.tiling
            .highest_rank(halvings + self.tiling.side.trailing_zeros())
    }

    fn is_inside(&self, vertex: IVec2) -> bool {
        vertex.min_element() >= 0 && vertex.cmple(self.tiling.extent()).all()
    }

    fn diamond(&self, middle: IVec2) -> Option<Diamond> {
        let coarsest = self.tiling.layout.coarsest() - self.tiling.level;
        // A corner of the coarsest patches is the middle of nothing.
        if (middle.x | middle.y).trailing_zeros() >= coarsest as u32 {
            return None;
        }
        let even = |corner: IVec2, size: i32| (corner.x / size + corner.y / size) % 2 == 0;
        Some(Diamond::of(middle, even))
    }

    fn roots_at(&self, _: IVec2) -> [Option<Triangle>; 2] {
        [None; 2]
    }

    fn need(&mut self, triangle: Triangle, least: Rank, most: Rank) -> Rank {
        let tally = self.tally(triangle);
        if tally.shore.is_crossed() {
            return most;
        }
        let complexity = tally.complexity(self.rules.metric);
        let share = detail::share(tally.grey);
        if share == 0.0 {
            return most;
        }
        let exceeded = |rank: &Rank| complexity > self.rules.threshold(rank - 1) * share;
        (least + 1..=most).rev().find(exceeded).unwrap_or(least)
    }
}
