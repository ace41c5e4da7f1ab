//! How far a triangle is from the ground, by two measures.
//!
//! Every full-resolution sample in the closed triangle counts, present ones only; a sample on an
//! edge counts on both sides. The usual test of the hypotenuse's middle alone is no bound at all.
//! Integers throughout, 128-bit ones for sums; dividing the result by a power of two rounds at
//! most once, so comparisons do not depend on the machine.

use super::height_map::HeightMap;
use super::triangle::{Plane, Triangle};
use glam::IVec2;

/// What decides whether a triangle is split. Certificates are `Max` under both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// The largest vertical distance between plane and samples, in height steps.
    #[default]
    Max,
    /// The distances summed over the samples: Avalanche's measure, in height steps times cells.
    Sum,
}

impl Metric {
    pub fn name(self) -> &'static str {
        match self {
            Metric::Max => "max",
            Metric::Sum => "sum",
        }
    }

    /// What a level's threshold is multiplied with to be the next coarser one's: errors double
    /// with the lattice, sums grow with its area as well.
    pub fn growth(self) -> f64 {
        match self {
            Metric::Max => 2.0,
            Metric::Sum => 8.0,
        }
    }
}

impl std::str::FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Metric::Max, Metric::Sum]
            .into_iter()
            .find(|metric| metric.name() == text)
            .ok_or_else(|| format!("'{text}' is no metric; expected max or sum"))
    }
}

/// What the samples of a triangle say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The largest distance, in height steps; 0 where no sample is present.
    pub error: f64,
    /// What the metric compares with the threshold.
    pub complexity: f64,
    /// Lowest and highest sample; none where no sample is present.
    pub range: Option<(i32, i32)>,
}

/// A triangle to be measured. Above the limit the exact complexity does not matter, and the
/// measure may stop with any value above it.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub triangle: Triangle,
    pub limit: f64,
}

/// Measures a triangle given in samples, by the largest distance, to the end.
pub fn measure(map: &HeightMap, triangle: Triangle) -> Measure {
    let limit = f64::INFINITY;
    measure_task(map, Metric::Max, &Task { triangle, limit })
}

/// Measures a triangle given in samples, as far as its limit asks.
pub fn measure_task(map: &HeightMap, metric: Metric, task: &Task) -> Measure {
    let triangle = task.triangle;
    let height = |p: IVec2| map.at(p.x as i64, p.y as i64);
    let (a, b, c) = (height(triangle.a), height(triangle.b), height(triangle.c));
    let plane = Plane::through(triangle, a, b, c);
    let mut tally = Tally::new(metric, plane.denominator);
    let rows = triangle.rows();
    for z in rows.z.0.max(0)..=rows.z.1.min(map.height as i32 - 1) {
        let (x0, x1) = rows.interval(z);
        let (x0, x1) = (x0.max(0), x1.min(map.width as i32 - 1));
        if x0 > x1 {
            continue;
        }
        let start = z as usize * map.width as usize;
        let row = &map.heights[start + x0 as usize..=start + x1 as usize];
        tally.add_row(row, &plane, IVec2::new(x0, z));
        if tally.complexity() > task.limit {
            break;
        }
    }
    tally.measure()
}

/// What the rows so far say, in exact numbers.
struct Tally {
    metric: Metric,
    denominator: i64,
    largest: i64,
    sum: i128,
    low: i32,
    high: i32,
}

impl Tally {
    fn new(metric: Metric, denominator: i64) -> Self {
        Tally {
            metric,
            denominator,
            largest: 0,
            sum: 0,
            low: i32::MAX,
            high: i32::MIN,
        }
    }

    fn add_row(&mut self, row: &[i32], plane: &Plane, start: IVec2) {
        let shift = self.denominator.trailing_zeros();
        let slope = plane.slope_x();
        let first = plane.at(start);
        let distance =
            |i: usize, height: i32| (first + slope * i as i64 - ((height as i64) << shift)).abs();
        let mut largest = self.largest;
        for (i, &height) in row.iter().enumerate() {
            largest = largest.max(distance(i, height));
            self.low = self.low.min(height);
            self.high = self.high.max(height);
        }
        self.largest = largest;
        if self.metric == Metric::Sum {
            let distances = row.iter().enumerate().map(|(i, &h)| distance(i, h) as i128);
            self.sum += distances.sum::<i128>();
        }
    }

    fn complexity(&self) -> f64 {
        let denominator = self.denominator as f64;
        match self.metric {
            Metric::Max => self.largest as f64 / denominator,
            Metric::Sum => self.sum as f64 / denominator,
        }
    }

    fn measure(&self) -> Measure {
        Measure {
            error: self.largest as f64 / self.denominator as f64,
            complexity: self.complexity(),
            range: (self.low <= self.high).then_some((self.low, self.high)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The naive twin: every sample of the map, barycentric coordinates in `f64`; the largest
    /// distance and the sum.
    fn naive(map: &HeightMap, t: Triangle) -> (f64, f64) {
        let h = |p: IVec2| map.at(p.x as i64, p.y as i64) as f64;
        let area = (t.b - t.a).perp_dot(t.c - t.a) as f64;
        let (mut largest, mut sum) = (0.0f64, 0.0);
        for z in 0..map.height as i32 {
            for x in 0..map.width as i32 {
                let p = IVec2::new(x, z);
                let wa = (t.b - p).perp_dot(t.c - p) as f64 / area;
                let wb = (t.c - p).perp_dot(t.a - p) as f64 / area;
                let wc = 1.0 - wa - wb;
                if wa >= 0.0 && wb >= 0.0 && wc >= 0.0 {
                    let on_plane = wa * h(t.a) + wb * h(t.b) + wc * h(t.c);
                    let distance = (on_plane - h(p)).abs();
                    largest = largest.max(distance);
                    sum += distance;
                }
            }
        }
        (largest, sum)
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_twin(heights in prop::collection::vec(-500i32..500, 15 * 13), path in 0u32..256, depth in 0u32..8, limit in 0.0f64..2000.0) {
            let map = HeightMap { width: 15, height: 13, heights };
            let mut t = Triangle::roots(IVec2::ZERO, 16, path & 1 == 1)[(path >> 1 & 1) as usize];
            for level in 0..depth {
                t = t.halves()[(path >> level & 1) as usize];
            }
            let (largest, sum) = naive(&map, t);
            prop_assert!((measure(&map, t).error - largest).abs() < 1e-9);
            let exact = measure_task(&map, Metric::Sum, &Task { triangle: t, limit: f64::INFINITY });
            prop_assert!((exact.complexity - sum).abs() < 1e-6);
            prop_assert_eq!(exact.error, measure(&map, t).error);
            for metric in [Metric::Max, Metric::Sum] {
                let limited = measure_task(&map, metric, &Task { triangle: t, limit });
                let full = measure_task(&map, metric, &Task { triangle: t, limit: f64::INFINITY });
                prop_assert_eq!(limited.complexity > limit, full.complexity > limit);
                prop_assert!(full.complexity > limit || limited == full);
            }
        }
    }
}
