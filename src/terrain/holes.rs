//! Whether a ray that met no ground should have met some: what counts as a hole pixel.
//!
//! A pixel without ground is a hole when its ray, having come from above the ground, passes over
//! present ground below the heights less the largest stored error that was drawn: no mesh within
//! that error of the heights can let it through. A ray that enters under the ground through the
//! cut edge of the world sees the world's underside, which is no hole; nor does one that goes
//! through a kept void, or might: over a cell with an absent corner only what stays above it counts.
//!
//! Heights of a cell are taken as the lowest (or, for the start, the highest) of its corners, so
//! a verdict does not depend on how the cell is triangulated.

use super::height_map::HeightMap;
use glam::{DVec3, dvec3};
use std::ops::ControlFlow;

const BLOCK: u32 = 32;
/// Samples along the cut edge where rounding decides whether a pixel is cut.
const EDGE: f64 = 0.01;

/// The full-resolution ground in the form rays are tested against.
pub struct HoleTest {
    map: HeightMap,
    /// World metres a sample, [x, height step, z]; heights as they are drawn.
    scale: DVec3,
    /// Highest height of each block of cells, row by row.
    block_max: Vec<i32>,
    blocks_x: usize,
    range: (i32, i32),
    /// Which samples are kept voids, empty where none is, and which blocks have some.
    absent: Vec<bool>,
    block_has_voids: Vec<bool>,
}

impl HoleTest {
    /// `step_m` is the height step times any exaggeration.
    pub fn new(map: HeightMap, spacing_m: [f64; 2], step_m: f64) -> Self {
        let blocks = |samples: u32| (samples - 1).div_ceil(BLOCK).max(1) as usize;
        let (blocks_x, blocks_z) = (blocks(map.width), blocks(map.height));
        let highest = |bx: usize, bz: usize| {
            let (x0, z0) = (bx as i64 * BLOCK as i64, bz as i64 * BLOCK as i64);
            let rows = z0..=z0 + BLOCK as i64;
            rows.flat_map(|z| (x0..=x0 + BLOCK as i64).map(move |x| (x, z)))
                .map(|(x, z)| map.at(x, z))
                .max()
                .unwrap_or(0)
        };
        let block_max: Vec<i32> = (0..blocks_z)
            .flat_map(|z| (0..blocks_x).map(move |x| (x, z)))
            .map(|(x, z)| highest(x, z))
            .collect();
        let range = map.range();
        HoleTest {
            scale: dvec3(spacing_m[0], step_m, spacing_m[1]),
            absent: Vec::new(),
            block_has_voids: vec![false; block_max.len()],
            block_max,
            blocks_x,
            range,
            map,
        }
    }

    /// Of the samples these are kept voids.
    pub fn leave_out(mut self, absent: Vec<bool>) -> Self {
        let width = self.map.width as usize;
        for at in (0..absent.len()).filter(|&at| absent[at]) {
            // A sample on a border is a corner in all blocks there.
            let blocks = |n: usize| [n.saturating_sub(1), n].map(|n| n as i64 / BLOCK as i64);
            for bz in blocks(at / width) {
                for bx in blocks(at % width) {
                    let index = self.block_index(bx, bz);
                    self.block_has_voids[index] = true;
                }
            }
        }
        self.absent = absent;
        self
    }

    /// True when a ray from `eye` must meet any mesh within `error_m` of the heights;
    /// `error_at_eye_m` is that of the mesh at the eye itself.
    pub fn must_hit(
        &self,
        eye: DVec3,
        direction: DVec3,
        error_m: f64,
        error_at_eye_m: f64,
    ) -> bool {
        let ray = Ray {
            origin: eye / self.scale,
            direction: direction / self.scale,
        };
        let error = error_m / self.scale.y;
        let Some((enter, leave)) = self.clip(&ray, error) else {
            return false;
        };
        let start_error = if enter > 0.0 {
            error
        } else {
            error_at_eye_m / self.scale.y
        };
        // Nothing is known of a ray that comes out of a void until it is seen above the ground.
        let start = ray.at(enter);
        let mut doubtful = self.is_open(start.x.floor() as i64, start.z.floor() as i64);
        if !doubtful && !self.starts_above(&ray, enter, start_error) {
            return false;
        }
        let hit = ray.walk(BLOCK as f64, enter, leave, |bx, bz, from, to| {
            let index = self.block_index(bx, bz);
            let above = ray.lowest(from, to) >= self.block_max[index] as f64 - error;
            if above && !self.block_has_voids[index] {
                return ControlFlow::Continue(());
            }
            ray.walk(1.0, from, to, |x, z, from, to| {
                let (low, high) = self.cell(x, z);
                if self.is_open(x, z) {
                    doubtful = true;
                    return if ray.lowest(from, to) < high + error {
                        ControlFlow::Break(false)
                    } else {
                        ControlFlow::Continue(())
                    };
                }
                if std::mem::take(&mut doubtful) && ray.at(from).y < high + error {
                    return ControlFlow::Break(false);
                }
                if ray.lowest(from, to) < low - error {
                    ControlFlow::Break(true)
                } else {
                    ControlFlow::Continue(())
                }
            })
        });
        hit == ControlFlow::Break(true)
    }

    /// Whether a corner of a cell is a kept void.
    fn is_open(&self, x: i64, z: i64) -> bool {
        let corner = |x: i64, z: i64| {
            let x = x.clamp(0, self.map.width as i64 - 1) as usize;
            let z = z.clamp(0, self.map.height as i64 - 1) as usize;
            self.absent[z * self.map.width as usize + x]
        };
        let corners = [(0, 0), (1, 0), (0, 1), (1, 1)];
        !self.absent.is_empty() && corners.iter().any(|(dx, dz)| corner(x + dx, z + dz))
    }

    /// The part of the ray that is over present ground and neither above all of it nor so deep
    /// that everything is decided.
    fn clip(&self, ray: &Ray, error: f64) -> Option<(f64, f64)> {
        let (mut enter, mut leave) = (0.0f64, f64::INFINITY);
        let far = [
            (ray.origin.x, ray.direction.x, self.map.width),
            (ray.origin.z, ray.direction.z, self.map.height),
        ];
        for (origin, direction, samples) in far {
            let (first, last) = (EDGE, (samples - 1) as f64 - EDGE);
            if direction == 0.0 {
                if origin < first || origin > last {
                    return None;
                }
                continue;
            }
            let (a, b) = ((first - origin) / direction, (last - origin) / direction);
            enter = enter.max(a.min(b));
            leave = leave.min(a.max(b));
        }
        let reaches = |height: f64| (height - ray.origin.y) / ray.direction.y;
        if ray.direction.y > 0.0 {
            leave = leave.min(reaches(self.range.1 as f64));
        } else if ray.direction.y < 0.0 {
            leave = leave.min(reaches(self.range.0 as f64 - error - 1.0));
        } else if ray.origin.y > self.range.1 as f64 {
            return None;
        }
        (enter < leave && leave.is_finite()).then_some((enter, leave))
    }

    /// Where the ray begins, or enters over the cut edge, the ground must clearly be below.
    fn starts_above(&self, ray: &Ray, enter: f64, error: f64) -> bool {
        let p = ray.at(enter);
        let (_, high) = self.cell(p.x.floor() as i64, p.z.floor() as i64);
        p.y >= high + error
    }

    /// Lowest and highest corner of a cell.
    fn cell(&self, x: i64, z: i64) -> (f64, f64) {
        let corners = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(dx, dz)| self.map.at(x + dx, z + dz));
        let low = corners.into_iter().min().unwrap_or(0);
        let high = corners.into_iter().max().unwrap_or(0);
        (low as f64, high as f64)
    }

    fn block_index(&self, bx: i64, bz: i64) -> usize {
        let blocks_z = self.block_max.len() / self.blocks_x;
        let x = bx.clamp(0, self.blocks_x as i64 - 1) as usize;
        let z = bz.clamp(0, blocks_z as i64 - 1) as usize;
        z * self.blocks_x + x
    }
}

/// A ray in samples and height steps.
struct Ray {
    origin: DVec3,
    direction: DVec3,
}

impl Ray {
    fn at(&self, t: f64) -> DVec3 {
        self.origin + self.direction * t
    }

    fn lowest(&self, from: f64, to: f64) -> f64 {
        self.at(from).y.min(self.at(to).y)
    }

    /// Visits the squares of side `size` that the ray crosses between `from` and `to`, each with
    /// the part of the ray inside it.
    fn walk(
        &self,
        size: f64,
        from: f64,
        to: f64,
        mut visit: impl FnMut(i64, i64, f64, f64) -> ControlFlow<bool>,
    ) -> ControlFlow<bool> {
        // Which square a border belongs to is decided a little further along the ray.
        let start = self.at(from + (to - from).min(1.0) * 1e-9);
        let mut cell = [
            (start.x / size).floor() as i64,
            (start.z / size).floor() as i64,
        ];
        let axes = [
            (self.origin.x, self.direction.x),
            (self.origin.z, self.direction.z),
        ];
        let exit = |cell: [i64; 2], axis: usize| {
            let (origin, direction) = axes[axis];
            let border = cell[axis] + i64::from(direction > 0.0);
            if direction == 0.0 {
                f64::INFINITY
            } else {
                (border as f64 * size - origin) / direction
            }
        };
        let mut t = from;
        while t < to {
            let exits = [exit(cell, 0), exit(cell, 1)];
            let axis = usize::from(exits[1] < exits[0]);
            let end = exits[axis].max(t).min(to);
            visit(cell[0], cell[1], t, end)?;
            t = exits[axis].max(t);
            cell[axis] += if axes[axis].1 > 0.0 { 1 } else { -1 };
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hill() -> HeightMap {
        let height = |x: i32, z: i32| 100 - (x - 50).abs() - (z - 50).abs();
        HeightMap {
            width: 101,
            height: 101,
            heights: (0..101 * 101).map(|i| height(i % 101, i / 101)).collect(),
        }
    }

    /// The naive twin: many small steps.
    fn naive(map: &HeightMap, eye: DVec3, direction: DVec3, error: f64) -> bool {
        let over = |p: DVec3| [p.x, p.z].iter().all(|v| (EDGE..=100.0 - EDGE).contains(v));
        let corners = |p: DVec3| {
            let (x, z) = (p.x.floor() as i64, p.z.floor() as i64);
            [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(a, b)| map.at(x + a, z + b) as f64)
        };
        let mut above = false;
        for i in 0..40_000 {
            let p = eye + direction * (i as f64 * 0.01);
            if !over(p) {
                if above {
                    return false;
                }
                continue;
            }
            let (low, high) = corners(p)
                .into_iter()
                .fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
            if !above {
                let margin = if i > 0 { error } else { 0.0 };
                if p.y < high + margin {
                    return false;
                }
                above = true;
            }
            if p.y < low - error - 0.05 {
                return true;
            }
        }
        false
    }

    proptest! {
        #[test]
        fn agrees_with_small_steps(x in -40.0f64..140.0, y in 0.0f64..150.0, z in -40.0f64..140.0, yaw in 0.0f64..6.2, pitch in -1.2f64..0.4, error in 0.0f64..10.0) {
            let direction = dvec3(yaw.sin() * pitch.cos(), pitch.sin(), yaw.cos() * pitch.cos());
            let eye = dvec3(x, y, z);
            let test = HoleTest::new(hill(), [1.0, 1.0], 1.0);
            let fast = test.must_hit(eye, direction, error, 0.0);
            // The small steps ask for a little more depth, so they may only miss, never add.
            let slow = naive(&hill(), eye, direction, error);
            let shallow = naive(&hill(), eye, direction, (error - 0.2).max(0.0));
            prop_assert!(!slow || fast, "missed");
            prop_assert!(!fast || shallow || error < 0.2 || !naive_starts_alike(eye, direction, error), "made up");
        }
    }

    /// Rays that enter near the height that decides are left out of the comparison.
    fn naive_starts_alike(eye: DVec3, direction: DVec3, error: f64) -> bool {
        let over = |p: DVec3| [p.x, p.z].iter().all(|v| (EDGE..=100.0 - EDGE).contains(v));
        let entry = (0..40_000)
            .map(|i| eye + direction * (i as f64 * 0.01))
            .find(|&p| over(p));
        entry.is_none_or(|p| {
            let ground = 100.0 - (p.x - 50.0).abs() - (p.z - 50.0).abs();
            (p.y - ground - error).abs() > 3.0 && (p.y - ground).abs() > 3.0
        })
    }

    #[test]
    fn rays_through_a_void_prove_nothing() {
        // All that is higher than 60 is a void, 40 samples to each side of the summit.
        let absent: Vec<bool> = hill().heights.iter().map(|&height| height > 60).collect();
        let whole = HoleTest::new(hill(), [1.0, 1.0], 1.0);
        let test = HoleTest::new(hill(), [1.0, 1.0], 1.0).leave_out(absent);
        let looks = [
            // Down into the void.
            (dvec3(50.5, 200.0, 50.5), -DVec3::Y, false),
            // Into it and then against the slope behind it, from below.
            (dvec3(5.0, 100.0, 50.2), dvec3(1.0, -1.2, 0.0), false),
            // Over it, down to the slope on the other side.
            (dvec3(50.5, 160.0, 50.2), dvec3(1.0, -2.4, 0.0), true),
            // The slope on this side.
            (dvec3(5.0, 100.0, 50.2), dvec3(1.0, -20.0, 0.0), true),
        ];
        for (eye, direction, hits) in looks {
            assert!(whole.must_hit(eye, direction, 1.0, 0.0), "{direction}");
            assert_eq!(test.must_hit(eye, direction, 1.0, 0.0), hits, "{direction}");
        }
    }

    #[test]
    fn a_look_at_the_hill_must_hit_it_and_one_at_the_sky_not() {
        let test = HoleTest::new(hill(), [10.0, 10.0], 2.0);
        let eye = dvec3(100.0, 300.0, 100.0);
        assert!(test.must_hit(eye, dvec3(1.0, -0.4, 1.0), 5.0, 0.0));
        assert!(test.must_hit(eye, -DVec3::Y, 5.0, 0.0));
        assert!(!test.must_hit(eye, dvec3(1.0, 0.4, 1.0), 5.0, 0.0));
        assert!(!test.must_hit(eye, DVec3::Y, 5.0, 0.0));
        assert!(
            !test.must_hit(eye, dvec3(1.0, -0.4, 1.0), 500.0, 0.0),
            "nothing is certain within such an error"
        );
        assert!(
            !test.must_hit(dvec3(100.0, 10.0, 100.0), dvec3(1.0, 0.0, 1.0), 5.0, 0.0),
            "starts below the ground"
        );
    }
}
