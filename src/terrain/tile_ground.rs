//! The heights of a tile, and how far a triangle in it is from them.
//!
//! A tile is a square of ground that is worked on alone: a stream patch, or the coarsest patch
//! where that is smaller. Its window holds a rim of samples around it; beyond the source the edge
//! goes on, so that every plane is defined, but only present samples count as errors.
//!
//! Positions are samples from the tile's north-west corner. Distances are whole numbers in units
//! of a height step divided by a power of two; 32 bits are enough unless heights are enormous.

use super::height_map::HeightMap;
use super::hierarchy::Rank;
use super::measure::Metric;
use super::rules::Rules;
use super::scan::{Rows, Scan};
use super::triangle::Triangle;
use glam::{IVec2, ivec2};
use std::ops::{Add, Shl, Sub};

/// Below it a height times twice the largest tile's side, less another, fits 32 bits.
const NARROW: i32 = 1 << 20;

/// A tile's heights.
pub struct TileGround {
    window: HeightMap,
    rim: i32,
    /// The last present sample towards the south-east.
    last: IVec2,
    narrow: bool,
    /// Whether samples lie on both sides of the sea level.
    coastal: bool,
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
    /// `window` begins `rim` samples to the north-west of the tile; `last` is the last sample of
    /// the source towards the south-east.
    pub fn new(window: HeightMap, rim: u32, last: IVec2, rules: &Rules) -> Self {
        let (low, high) = window.range();
        TileGround {
            rim: rim as i32,
            last,
            narrow: low >= -NARROW && high <= NARROW,
            coastal: rules.sea.is_some_and(|sea| low <= sea && high > sea),
            metric: rules.metric,
            window,
        }
    }

    /// The height at a sample of the window.
    pub fn height(&self, p: IVec2) -> i32 {
        self.window.heights[self.index(p)]
    }

    /// Lowest and highest present sample of a square; none where it lies beyond the source.
    pub fn range(&self, corner: IVec2, size: i32) -> Option<[i32; 2]> {
        let end = (corner + size).min(self.last);
        if corner.cmpgt(end).any() {
            return None;
        }
        let row = |z: i32| {
            let start = self.index(ivec2(corner.x, z));
            &self.window.heights[start..=start + (end.x - corner.x) as usize]
        };
        let fold = |[low, high]: [i32; 2], height: &i32| [low.min(*height), high.max(*height)];
        Some((corner.y..=end.y).fold([i32::MAX, i32::MIN], |range, z| {
            row(z).iter().fold(range, fold)
        }))
    }

    /// The highest rank at which the rules split a triangle, if it is above `least`.
    pub fn need(&self, rules: &Rules, triangle: Triangle, least: Rank, most: Rank) -> Rank {
        let shift;
        let found = match self.smallest(triangle) {
            Some((distance, halvings)) => {
                shift = halvings;
                distance as i64
            }
            None => {
                let scan = self.scan(triangle);
                shift = scan.shift;
                if self.coastal && self.crosses_sea(rules, &scan) {
                    return most;
                }
                self.complexity(&scan, rules.limit(most, shift))
            }
        };
        let exceeded = |rank: &Rank| found > rules.limit(*rank, shift);
        (least + 1..=most).rev().find(exceeded).unwrap_or(least)
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
        let error = self.tally::<false>(&scan, i64::MAX) as f64 / unit;
        let complexity = match self.metric {
            Metric::Max => error,
            Metric::Sum => self.tally::<true>(&scan, i64::MAX) as f64 / unit,
        };
        Certificate { error, complexity }
    }

    fn complexity(&self, scan: &Scan, limit: i64) -> i64 {
        match self.metric {
            Metric::Max => self.tally::<false>(scan, limit),
            Metric::Sum => self.tally::<true>(scan, limit),
        }
    }

    /// The two smallest kinds of triangles, which are most of them, without rows and planes.
    /// Their distance, and the halvings of a step that it is counted in.
    fn smallest(&self, t: Triangle) -> Option<(i32, u32)> {
        let leg = (t.a - t.c).abs();
        if leg.max_element() > 2
            || !self.narrow
            || self.coastal
            || self.metric != Metric::Max
            || t.a.max(t.b).max(t.c).cmpgt(self.last).any()
        {
            return None;
        }
        let [a, b, c] = [t.a, t.b, t.c].map(|p| self.height(p));
        let at = |p: IVec2, q: IVec2| self.height((p + q) / 2);
        let between = |(p, ph): (IVec2, i32), (q, qh): (IVec2, i32)| (ph + qh - 2 * at(p, q)).abs();
        let (a, b, c) = ((t.a, a), (t.b, b), (t.c, c));
        match (leg.min_element(), leg.max_element()) {
            (0, 1) => Some((0, 0)),
            (1, _) => Some((between(a, b), 1)),
            (0, _) => Some((between(a, b).max(between(a, c)).max(between(b, c)), 1)),
            _ => {
                let middle = (t.a + t.b) / 2;
                let quarter = |p: IVec2, ph: i32, qh: i32| {
                    (3 * ph + qh - 4 * self.height((p + middle) / 2)).abs()
                };
                let inner = a.1 + b.1 + 2 * c.1 - 4 * at(middle, t.c);
                let legs = 2 * between(a, b).max(between(a, c)).max(between(b, c));
                let quarters = quarter(t.a, a.1, b.1).max(quarter(t.b, b.1, a.1));
                Some((legs.max(quarters).max(inner.abs()), 2))
            }
        }
    }

    fn scan(&self, t: Triangle) -> Scan {
        Scan::new(t, [t.a, t.b, t.c].map(|p| self.height(p)))
    }

    /// The largest distance, or the sum of them all; may stop above the limit.
    fn tally<const SUM: bool>(&self, scan: &Scan, limit: i64) -> i64 {
        let mut total = 0i64;
        for rows in scan.rows.into_iter().flatten() {
            total = if self.narrow && !SUM {
                let limit = i32::try_from(limit).unwrap_or(i32::MAX);
                self.largest::<i32>(scan, rows, limit, total as i32) as i64
            } else if SUM {
                self.sum(scan, rows, limit, total)
            } else {
                self.largest::<i64>(scan, rows, limit, total)
            };
            if total > limit {
                break;
            }
        }
        total
    }

    fn largest<N: Whole>(&self, scan: &Scan, rows: Rows, limit: N, mut largest: N) -> N {
        let slope = N::of(scan.slope_x);
        self.visit(rows, |row, start| {
            let mut plane = N::of(scan.at(start));
            for &height in row {
                let distance = (plane - (N::of(height as i64) << scan.shift)).distance();
                largest = largest.max(distance);
                plane = plane + slope;
            }
            largest <= limit
        });
        largest
    }

    fn sum(&self, scan: &Scan, rows: Rows, limit: i64, mut sum: i64) -> i64 {
        self.visit(rows, |row, start| {
            let mut plane = scan.at(start);
            for &height in row {
                sum += (plane - ((height as i64) << scan.shift)).abs();
                plane += scan.slope_x;
            }
            sum <= limit
        });
        sum
    }

    fn crosses_sea(&self, rules: &Rules, scan: &Scan) -> bool {
        let sea = rules.sea.unwrap_or(i32::MIN);
        let (mut under, mut above) = (false, false);
        for rows in scan.rows.into_iter().flatten() {
            self.visit(rows, |row, _| {
                under |= row.iter().any(|&height| height <= sea);
                above |= row.iter().any(|&height| height > sea);
                !(under && above)
            });
        }
        under && above
    }

    /// Present samples row by row, with where each row starts, as long as `visit` says so.
    fn visit(&self, rows: Rows, mut visit: impl FnMut(&[i32], IVec2) -> bool) {
        let (mut start, mut samples) = (rows.start, rows.samples);
        let count = rows.count.min(self.last.y - start.y + 1);
        for _ in 0..count {
            let present = samples.min(self.last.x - start.x + 1);
            if present > 0 {
                let first = self.index(start);
                let row = &self.window.heights[first..first + present as usize];
                if !visit(row, start) {
                    return;
                }
            }
            start += ivec2(rows.start_step, 1);
            samples += rows.samples_step;
        }
    }

    fn index(&self, p: IVec2) -> usize {
        (p.y + self.rim) as usize * self.window.width as usize + (p.x + self.rim) as usize
    }
}

/// The whole numbers that distances are computed in.
trait Whole: Copy + Ord + Add<Output = Self> + Sub<Output = Self> + Shl<u32, Output = Self> {
    fn of(value: i64) -> Self;
    fn distance(self) -> Self;
}

impl Whole for i32 {
    fn of(value: i64) -> Self {
        value as i32
    }

    fn distance(self) -> Self {
        self.abs()
    }
}

impl Whole for i64 {
    fn of(value: i64) -> Self {
        value
    }

    fn distance(self) -> Self {
        self.abs()
    }
}
