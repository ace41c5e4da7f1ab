//! The error of a triangle: the largest vertical distance between its plane and the samples.
//!
//! Every full-resolution sample in the closed triangle counts, present ones only. The usual test
//! of the hypotenuse's middle alone is no bound at all. Integers throughout; the quotient by a
//! power of two is exact in an `f64`, so comparing errors is exact too.

use super::height_map::HeightMap;
use super::triangle::{Plane, Triangle};
use glam::IVec2;

/// What the samples of a triangle say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The largest distance, in height steps; 0 where no sample is present.
    pub error: f64,
    /// Lowest and highest sample; none where no sample is present.
    pub range: Option<(i32, i32)>,
}

/// Measures a triangle given in samples.
pub fn measure(map: &HeightMap, triangle: Triangle) -> Measure {
    let height = |p: IVec2| map.at(p.x as i64, p.y as i64);
    let (a, b, c) = (height(triangle.a), height(triangle.b), height(triangle.c));
    let plane = Plane::through(triangle, a, b, c);
    let (z0, z1) = triangle.z_range();
    let (mut largest, mut range) = (0i64, None);
    for z in z0.max(0)..=z1.min(map.height as i32 - 1) {
        let Some((x0, x1)) = triangle.row(z) else {
            continue;
        };
        let (x0, x1) = (x0.max(0), x1.min(map.width as i32 - 1));
        if x0 > x1 {
            continue;
        }
        let start = z as usize * map.width as usize;
        let row = &map.heights[start + x0 as usize..=start + x1 as usize];
        largest = largest.max(row_error(row, &plane, IVec2::new(x0, z)));
        let (low, high) = row_range(row);
        let (low_so_far, high_so_far) = range.unwrap_or((low, high));
        range = Some((low.min(low_so_far), high.max(high_so_far)));
    }
    Measure {
        error: largest as f64 / plane.denominator as f64,
        range,
    }
}

fn row_error(row: &[i32], plane: &Plane, start: IVec2) -> i64 {
    let (shift, slope) = (plane.denominator.trailing_zeros(), plane.slope_x());
    let mut on_plane = plane.at(start);
    let mut largest = 0;
    for &height in row {
        largest = largest.max((on_plane - ((height as i64) << shift)).abs());
        on_plane += slope;
    }
    largest
}

fn row_range(row: &[i32]) -> (i32, i32) {
    row.iter().fold((i32::MAX, i32::MIN), |(low, high), &h| {
        (low.min(h), high.max(h))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The naive twin: every sample of the map, barycentric coordinates in `f64`.
    fn naive(map: &HeightMap, t: Triangle) -> f64 {
        let h = |p: IVec2| map.at(p.x as i64, p.y as i64) as f64;
        let area = (t.b - t.a).perp_dot(t.c - t.a) as f64;
        let mut largest = 0.0f64;
        for z in 0..map.height as i32 {
            for x in 0..map.width as i32 {
                let p = IVec2::new(x, z);
                let wa = (t.b - p).perp_dot(t.c - p) as f64 / area;
                let wb = (t.c - p).perp_dot(t.a - p) as f64 / area;
                let wc = 1.0 - wa - wb;
                if wa >= 0.0 && wb >= 0.0 && wc >= 0.0 {
                    let on_plane = wa * h(t.a) + wb * h(t.b) + wc * h(t.c);
                    largest = largest.max((on_plane - h(p)).abs());
                }
            }
        }
        largest
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_twin(heights in prop::collection::vec(-500i32..500, 15 * 13), path in 0u32..256, depth in 0u32..8) {
            let map = HeightMap { width: 15, height: 13, heights };
            let mut t = Triangle::roots(IVec2::ZERO, 16, path & 1 == 1)[(path >> 1 & 1) as usize];
            for level in 0..depth {
                t = t.halves()[(path >> level & 1) as usize];
            }
            prop_assert!((measure(&map, t).error - naive(&map, t)).abs() < 1e-9);
        }
    }
}
