//! The heights of a tile, and how far a triangle in it is from them.
//!
//! A tile is a square of ground that is worked on alone: a stream patch, or the coarsest patch
//! where that is smaller. Beyond the source its edge goes on, so that every plane is defined, but
//! only present samples count as errors.
//!
//! Positions are samples from the tile's north-west corner. Distances are whole numbers in units
//! of a height step divided by a power of two: in `f32` where no sample is missing and all stay
//! below 2^24, which is nearly always and fastest, else in `i64`.

use super::absent::present_runs;
use super::detail;
use super::distances::{Heights, LANES, largest_distance, lowest_and_highest};
use super::fine::Kind;
use super::height_map::HeightMap;
use super::hierarchy::Rank;
use super::measure::Metric;
use super::rules::{Rules, Shore};
use super::scan::{Rows, Scan};
use super::triangle::Triangle;
use glam::{IVec2, ivec2};
use std::ops::Range;

/// Bits of a whole number that an `f32` always holds.
const EXACT_BITS: u32 = 24;

/// A tile's heights.
pub struct TileGround {
    /// Heights less `base`: whole numbers, row by row, and some more behind the last one.
    heights: Vec<f32>,
    base: i32,
    width: usize,
    /// The last present sample towards the south-east.
    last: IVec2,
    /// Planes whose units are steps halved so often have all distances exact in `f32`.
    exact_shift: u32,
    /// Whether samples lie on both sides of the shoreline.
    coastal: bool,
    /// Which samples the water mask keeps dry, empty where none is.
    dry: Vec<bool>,
    /// Whether all samples are present.
    complete: bool,
    /// Whether the smallest triangles can be measured the short way: all samples are present, by
    /// the largest distance, exact in `f32`, and nothing else counts.
    plain: bool,
    /// How much detail is asked for at each sample, empty where none is.
    greys: Vec<u8>,
    /// Which samples are kept voids, empty where none is.
    absent: Vec<bool>,
    metric: Metric,
}

/// What the samples of a leaf say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certificate {
    /// The largest distance, in height steps.
    pub error: f64,
    /// What the metric compares with thresholds.
    pub complexity: f64,
}

impl TileGround {
    /// `window` holds the heights of all vertices of the tile and of a rim round them; `last` is the
    /// last sample of the source towards the south-east, seen from the tile. Heights differ by less
    /// than 2^24. `greys` are a detail mask's at all vertices, or empty; `dry` says which of them a
    /// water mask keeps dry, empty where none is.
    pub fn new(
        window: &HeightMap,
        rim: u32,
        greys: Vec<u8>,
        dry: Vec<bool>,
        last: IVec2,
        rules: &Rules,
    ) -> Self {
        let width = (window.width - 2 * rim) as usize;
        let rows = window.heights.chunks_exact(window.width as usize);
        let rows = rows.skip(rim as usize).take(width);
        let rows = rows.map(|row| &row[rim as usize..][..width]);
        let (low, high) = rows.clone().fold((i32::MAX, i32::MIN), |(low, high), row| {
            let low = row.iter().fold(low, |low, &height| low.min(height));
            (low, row.iter().fold(high, |high, &height| high.max(height)))
        });
        // A distance is at most the range, a step of a plane beyond its end twice that.
        let bits = u32::BITS - (high - low).leading_zeros() + 1;
        let exact_shift = EXACT_BITS.saturating_sub(bits);
        let coastal = rules.is_coastal(rows.clone(), (low, high), &dry);
        let side = width as i32 - 1;
        let greys = if greys.iter().any(|&grey| grey > 0) {
            greys
        } else {
            Vec::new()
        };
        let mut padded = Vec::with_capacity(width * width + LANES);
        for row in rows {
            padded.extend(row.iter().map(|&height| (height - low) as f32));
        }
        padded.extend([0.0; LANES]);
        TileGround {
            heights: padded,
            base: low,
            width,
            last,
            complete: last.min_element() >= side,
            plain: exact_shift >= 3
                && last.min_element() >= side
                && !coastal
                && greys.is_empty()
                && rules.metric == Metric::Max,
            exact_shift,
            coastal,
            dry,
            greys,
            absent: Vec::new(),
            metric: rules.metric,
        }
    }

    /// Of the samples at all vertices these are absent: they count as no errors.
    pub fn leave_out(mut self, absent: Vec<bool>) -> Self {
        (self.plain, self.complete) = (false, false);
        self.absent = absent;
        self
    }

    /// Lowest and highest sample of a square, kept voids' heights among them: what is drawn reaches
    /// from present samples to those beside them. None where it lies beyond the source.
    pub fn range(&self, corner: IVec2, size: i32) -> Option<[i32; 2]> {
        let end = (corner + size).min(self.last);
        if corner.cmpgt(end).any() {
            return None;
        }
        let rows = (corner.y..=end.y).map(|z| {
            let start = self.index(ivec2(corner.x, z));
            &self.heights[start..=start + (end.x - corner.x) as usize]
        });
        let ends = lowest_and_highest(rows);
        Some(ends.map(|height| height as i32 + self.base))
    }

    /// The heights above some base where the smallest triangles can be measured the short way.
    pub fn plain_heights(&self) -> Option<&[f32]> {
        self.plain.then_some(&self.heights[..])
    }

    /// The highest rank at which the rules split a triangle, if it is above `least`; and its error
    /// where that was found on the way and is not found again at once.
    pub fn need(
        &self,
        rules: &Rules,
        triangle: Triangle,
        least: Rank,
        most: Rank,
    ) -> (Rank, Option<f32>) {
        let (found, shift) = match self.smallest(triangle) {
            Some((distance, shift)) => (distance as i32 as i64, shift),
            None => {
                let scan = self.scan(triangle);
                if self.coastal && self.crosses_sea(rules, &scan) {
                    return (most, None);
                }
                if !self.greys.is_empty() {
                    let grey = self.lightest(triangle, &scan);
                    return (self.need_under_mask(rules, &scan, grey, least, most), None);
                }
                let limit = rules.limit(most, scan.shift);
                if self.at_middle(triangle, &scan) > limit {
                    return (most, None);
                }
                (self.complexity(&scan, limit), scan.shift)
            }
        };
        if found > rules.limit(most, shift) {
            return (most, None);
        }
        let exceeded = |rank: &Rank| found > rules.limit(*rank, shift);
        let need = (least + 1..most).rev().find(exceeded).unwrap_or(least);
        let exact = shift <= self.exact_shift && self.metric == Metric::Max;
        (need, exact.then(|| found as f32 / (1u32 << shift) as f32))
    }

    /// The same where a detail mask takes a share of the thresholds away.
    fn need_under_mask(
        &self,
        rules: &Rules,
        scan: &Scan,
        grey: u8,
        least: Rank,
        most: Rank,
    ) -> Rank {
        let share = detail::share(grey);
        if share == 0.0 {
            return most;
        }
        let unit = (1u64 << scan.shift) as f64;
        let limit = |rank: Rank| (rules.threshold(rank - 1) * share * unit).floor() as i64;
        let found = self.complexity(scan, limit(most));
        let exceeded = |rank: &Rank| found > limit(*rank);
        (least + 1..=most).rev().find(exceeded).unwrap_or(least)
    }

    /// The lightest grey in a triangle; black where it lies beyond the source and only touches it.
    fn lightest(&self, triangle: Triangle, scan: &Scan) -> u8 {
        let mut lightest = 0;
        let nearest = triangle.a.min(triangle.b).min(triangle.c);
        if nearest.cmpge(self.last).any() {
            return lightest;
        }
        for rows in scan.rows.into_iter().flatten() {
            self.visit(scan, rows, |row, _| {
                lightest = self.greys[row]
                    .iter()
                    .fold(lightest, |most, &grey| grey.max(most));
                lightest < detail::WHITE
            });
        }
        lightest
    }

    /// The truth about a leaf.
    pub fn certificate(&self, triangle: Triangle) -> Certificate {
        if let Some((distance, shift)) = self.smallest(triangle) {
            let error = distance as f64 / (1u64 << shift) as f64;
            return Certificate {
                error,
                complexity: error,
            };
        }
        let scan = self.scan(triangle);
        let unit = (1u64 << scan.shift) as f64;
        let error = self.largest(&scan, i64::MAX) as f64 / unit;
        let complexity = match self.metric {
            Metric::Max => error,
            Metric::Sum => self.sum(&scan, i64::MAX) as f64 / unit,
        };
        Certificate { error, complexity }
    }

    /// The distance of the middle of a hypotenuse, where it is present: seldom the largest one, but
    /// nearly always enough to know that the limit is exceeded.
    fn at_middle(&self, triangle: Triangle, scan: &Scan) -> i64 {
        let middle = triangle.middle();
        let is_absent = |absent: &bool| *absent;
        if middle.cmpgt(self.last).any()
            || self.absent.get(self.index(middle)).is_some_and(is_absent)
        {
            return 0;
        }
        (scan.at(middle) - ((self.above_base(middle) as i64) << scan.shift)).abs()
    }

    fn complexity(&self, scan: &Scan, limit: i64) -> i64 {
        match self.metric {
            Metric::Max => self.largest(scan, limit),
            Metric::Sum => self.sum(scan, limit),
        }
    }

    /// The smallest kinds of triangles, which are most of them, without rows and planes: their
    /// distance, and the halvings of a step that it is counted in.
    #[inline]
    fn smallest(&self, t: Triangle) -> Option<(f32, u32)> {
        let kind = Kind::of(t.a - t.c).filter(|_| self.plain)?;
        let corners = [t.a, t.b, t.c].map(|p| self.index(p));
        let middle = (corners[0] + corners[1]) / 2;
        let distance = kind.distance(&self.heights, corners, middle);
        Some((distance, kind.shift()))
    }

    fn scan(&self, t: Triangle) -> Scan {
        Scan::new(t, [t.a, t.b, t.c].map(|p| self.above_base(p)))
    }

    /// The largest distance; may stop above the limit.
    fn largest(&self, scan: &Scan, limit: i64) -> i64 {
        if self.complete && scan.shift <= self.exact_shift {
            let heights = Heights {
                heights: &self.heights,
                width: self.width,
            };
            let limit = limit.min(1 << EXACT_BITS) as f32;
            return largest_distance(&heights, scan, limit) as i64;
        }
        self.gather(scan, limit, i64::max)
    }

    /// The sum of all distances; may stop above the limit.
    fn sum(&self, scan: &Scan, limit: i64) -> i64 {
        self.gather(scan, limit, |sum, distance| sum + distance)
    }

    /// All distances one by one, wherever samples are missing; may stop above the limit.
    fn gather(&self, scan: &Scan, limit: i64, add: impl Fn(i64, i64) -> i64) -> i64 {
        let mut found = 0;
        for rows in scan.rows.into_iter().flatten() {
            self.visit(scan, rows, |row, mut plane| {
                for &height in &self.heights[row] {
                    found = add(found, (plane - ((height as i64) << scan.shift)).abs());
                    plane += scan.slope_x;
                }
                found <= limit
            });
            if found > limit {
                break;
            }
        }
        found
    }

    fn crosses_sea(&self, rules: &Rules, scan: &Scan) -> bool {
        let sea = rules.sea.unwrap_or(i32::MIN).saturating_sub(self.base) as f32;
        let mut shore = Shore::default();
        for rows in scan.rows.into_iter().flatten() {
            self.visit(scan, rows, |row, _| {
                shore.add(&self.heights[row.clone()], sea, self.dry.get(row));
                !shore.is_crossed()
            });
        }
        shore.is_crossed()
    }

    /// Where present samples lie, row by row, with the plane at each row's start, as long as
    /// `visit` says so.
    fn visit(&self, scan: &Scan, rows: Rows, mut visit: impl FnMut(Range<usize>, i64) -> bool) {
        let mut plane = scan.at(rows.start);
        let row_step = scan.row_step(&rows);
        let mut first = self.index(rows.start);
        let index_step = (self.width as i32 + rows.start_step) as usize;
        let mut samples = rows.samples;
        let mut present = self.last.x - rows.start.x + 1;
        let count = rows.count.min(self.last.y - rows.start.y + 1);
        for _ in 0..count {
            let some = samples.min(present);
            let row = first..first + some.max(0) as usize;
            let go_on = if self.absent.is_empty() {
                some <= 0 || visit(row, plane)
            } else {
                let mut runs = present_runs(&self.absent[row]);
                runs.all(|run| {
                    let start = plane + scan.slope_x * run.start as i64;
                    visit(first + run.start..first + run.end, start)
                })
            };
            if !go_on {
                return;
            }
            plane += row_step;
            first += index_step;
            samples += rows.samples_step;
            present -= rows.start_step;
        }
    }

    fn above_base(&self, p: IVec2) -> i32 {
        self.heights[self.index(p)] as i32
    }

    fn index(&self, p: IVec2) -> usize {
        p.y as usize * self.width + p.x as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::measure::Measurer;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Up to heights for which `f32` no longer holds all distances, whatever kernel is taken.
        #[test]
        fn certificates_are_exact_at_any_relief(
            bits in 3u32..24, seed in any::<u32>(), whole: bool, base in -4_000_000i32..4_000_000,
        ) {
            let side = 32;
            let mixed = |i: u32| (i ^ seed).wrapping_mul(2_654_435_761) >> 5;
            let height = |i: u32| match mixed(i) % 9 {
                0 => (1 << bits) - 1,
                1 => 0,
                _ => (mixed(i + 7) % (1 << bits)) as i32,
            };
            let map = HeightMap {
                width: side + 1,
                height: side + 1,
                heights: (0..(side + 1) * (side + 1)).map(|i| base + height(i)).collect(),
            };
            let last = IVec2::splat(if whole { 90 } else { side as i32 - 5 });
            let threshold = (1 << bits) as f64 / 7.3;
            let rules = Rules::new(Metric::Max, vec![threshold, 2.0 * threshold], None);
            let ground = TileGround::new(&map, 0, Vec::new(), Vec::new(), last, &rules);
            let measurer = Measurer::new(&map, Metric::Max, None);
            let mut open: Vec<Triangle> = Triangle::roots(IVec2::ZERO, side as i32, true).into();
            while let Some(triangle) = open.pop() {
                let inside = [triangle.a, triangle.b, triangle.c]
                    .iter()
                    .all(|corner| corner.cmple(last).all());
                if inside {
                    let error = measurer.measure(triangle).error;
                    prop_assert_eq!(ground.certificate(triangle).error, error, "{:?}", triangle);
                    if triangle.split_middle().is_some() {
                        let (need, _) = ground.need(&rules, triangle, 0, 2);
                        let limits = [threshold, 2.0 * threshold];
                        let expected = limits.iter().filter(|limit| error > **limit).count();
                        prop_assert_eq!(need as usize, expected, "{:?}", triangle);
                    }
                }
                if triangle.split_middle().is_some() {
                    open.extend(triangle.halves());
                }
            }
        }
    }
}
