//! How far a triangle is from the ground, by two measures.
//!
//! Every full-resolution sample in the closed triangle counts, present ones only; a sample on an
//! edge counts on both sides. The usual test of the hypotenuse's middle alone is no bound at all.
//! Integers throughout, 128-bit ones for sums; dividing the result by a power of two rounds at
//! most once, so comparisons do not depend on the machine.

use super::absent::present_runs;
use super::height_map::HeightMap;
use super::rules::Shore;
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

    /// Metres, or cubic metres, in one of the units that complexity is measured in.
    pub fn unit(self, step_m: f64, spacing_m: [f64; 2]) -> f64 {
        match self {
            Metric::Max => step_m,
            Metric::Sum => step_m * spacing_m[0] * spacing_m[1],
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
    /// A rule asks for a split whatever the complexity.
    pub must_split: bool,
}

/// The ground and how it is measured.
#[derive(Clone, Copy)]
pub struct Measurer<'a> {
    map: &'a HeightMap,
    metric: Metric,
    /// Samples up to this height lie under the sea.
    sea: Option<i32>,
    /// Which samples are kept voids.
    absent: Option<&'a [bool]>,
    /// Which samples a water mask keeps dry.
    dry: Option<&'a [bool]>,
}

/// Measures a triangle given in samples, by the largest distance.
pub fn measure(map: &HeightMap, triangle: Triangle) -> Measure {
    Measurer::new(map, Metric::Max, None).measure(triangle)
}

impl<'a> Measurer<'a> {
    /// `sea_level` in height steps. Where there is one, triangles that cross it must be split, so
    /// that shorelines are smooth; ground at the very level of the sea lies under it.
    pub fn new(map: &'a HeightMap, metric: Metric, sea_level: Option<f64>) -> Self {
        let sea = sea_level.map(|level| level.floor() as i32);
        Measurer {
            map,
            metric,
            sea,
            absent: None,
            dry: None,
        }
    }

    /// Of the map's samples these are absent and count as nothing.
    pub fn leave_out(self, absent: Option<&'a [bool]>) -> Self {
        Measurer { absent, ..self }
    }

    /// Of the map's samples these are no water, however low they lie.
    pub fn keep_dry(self, dry: Option<&'a [bool]>) -> Self {
        Measurer { dry, ..self }
    }

    /// Measures a triangle given in samples.
    pub fn measure(&self, triangle: Triangle) -> Measure {
        match (self.metric, self.sea.is_some()) {
            (Metric::Max, false) => self.scan::<false, false>(triangle),
            (Metric::Max, true) => self.scan::<false, true>(triangle),
            (Metric::Sum, false) => self.scan::<true, false>(triangle),
            (Metric::Sum, true) => self.scan::<true, true>(triangle),
        }
    }

    /// Most triangles are small, so nothing is done for them that is not asked for.
    fn scan<const SUM: bool, const SEA: bool>(&self, triangle: Triangle) -> Measure {
        let map = self.map;
        let plane = self.plane(triangle);
        let denominator = plane.denominator as f64;
        let mut tally = Tally::<SUM>::default();
        let rows = triangle.rows();
        for z in rows.z.0.max(0)..=rows.z.1.min(map.height as i32 - 1) {
            let (x0, x1) = rows.interval(z);
            let (x0, x1) = (x0.max(0), x1.min(map.width as i32 - 1));
            if x0 > x1 {
                continue;
            }
            let start = z as usize * map.width as usize;
            let row = start + x0 as usize..start + x1 as usize + 1;
            let mut add = |run: std::ops::Range<usize>| {
                let first = IVec2::new((run.start - start) as i32, z);
                let heights = &map.heights[run.clone()];
                tally.add_row(heights, &plane, first);
                if SEA {
                    let dry = self.dry.map(|dry| &dry[run]);
                    tally.shore.add(heights, self.sea.unwrap_or(i32::MIN), dry);
                }
            };
            match self.absent {
                None => add(row),
                Some(absent) => present_runs(&absent[row.clone()])
                    .for_each(|run| add(row.start + run.start..row.start + run.end)),
            }
        }
        Measure {
            error: tally.largest as f64 / denominator,
            complexity: tally.complexity(denominator),
            must_split: tally.shore.is_crossed(),
        }
    }

    fn plane(&self, triangle: Triangle) -> Plane {
        let height = |p: IVec2| self.map.at(p.x as i64, p.y as i64);
        Plane::through(
            triangle,
            height(triangle.a),
            height(triangle.b),
            height(triangle.c),
        )
    }
}

/// What the rows so far say, in exact numbers.
#[derive(Default)]
struct Tally<const SUM: bool> {
    largest: i64,
    sum: i128,
    shore: Shore,
}

impl<const SUM: bool> Tally<SUM> {
    fn add_row(&mut self, row: &[i32], plane: &Plane, start: IVec2) {
        let (shift, slope) = (plane.denominator.trailing_zeros(), plane.slope_x());
        let mut on_plane = plane.at(start);
        let (mut largest, mut sum) = (self.largest, 0i128);
        for &height in row {
            let distance = (on_plane - ((height as i64) << shift)).abs();
            largest = largest.max(distance);
            if SUM {
                sum += distance as i128;
            }
            on_plane += slope;
        }
        self.largest = largest;
        self.sum += sum;
    }

    fn complexity(&self, denominator: f64) -> f64 {
        if SUM {
            self.sum as f64 / denominator
        } else {
            self.largest as f64 / denominator
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The naive twin: every sample of the map, barycentric coordinates in `f64`; the largest
    /// distance and the sum.
    fn naive(map: &HeightMap, absent: &[bool], t: Triangle) -> (f64, f64) {
        let h = |p: IVec2| map.at(p.x as i64, p.y as i64) as f64;
        let area = (t.b - t.a).perp_dot(t.c - t.a) as f64;
        let (mut largest, mut sum) = (0.0f64, 0.0);
        for z in 0..map.height as i32 {
            for x in 0..map.width as i32 {
                if absent[(z * map.width as i32 + x) as usize] {
                    continue;
                }
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
        fn agrees_with_the_naive_twin(heights in prop::collection::vec(-500i32..500, 15 * 13), path in 0u32..256, depth in 0u32..8) {
            let map = HeightMap { width: 15, height: 13, heights };
            let mut t = Triangle::roots(IVec2::ZERO, 16, path & 1 == 1)[(path >> 1 & 1) as usize];
            for level in 0..depth {
                t = t.halves()[(path >> level & 1) as usize];
            }
            let (largest, sum) = naive(&map, &[false; 15 * 13], t);
            let some: Vec<bool> = map.heights.iter().map(|height| height % 3 == 0).collect();
            let (of_some, sum_of_some) = naive(&map, &some, t);
            let without = Measurer::new(&map, Metric::Sum, None).leave_out(Some(&some)).measure(t);
            prop_assert!((without.error - of_some).abs() < 1e-9 && (without.complexity - sum_of_some).abs() < 1e-6);
            prop_assert!((measure(&map, t).error - largest).abs() < 1e-9);
            let exact = Measurer::new(&map, Metric::Sum, None).measure(t);
            prop_assert!((exact.complexity - sum).abs() < 1e-6);
            prop_assert_eq!(exact.error, measure(&map, t).error);
        }
    }
}
