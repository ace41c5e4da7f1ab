//! The samples under a right triangle, row by row, beside the triangle's plane.
//!
//! A right triangle of the hierarchy lies in one of eight ways. In each its rows start and grow by
//! a fixed step from row to row, so that a triangle is one or two runs of rows, and its plane has
//! whole slopes in units of a height step divided by a power of two. Nothing is rounded.

use super::triangle::Triangle;
use glam::IVec2;

/// Rows one below the other, each a run of samples from west to east.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Where the first row starts.
    pub start: IVec2,
    /// How many rows, and samples in the first one.
    pub count: i32,
    pub samples: i32,
    /// What each next row's start and number of samples are off by.
    pub start_step: i32,
    pub samples_step: i32,
}

/// A triangle's plane and rows. `height = (level + slope_x * x + slope_z * z) / 2^shift` with x
/// and z counted from `from`.
#[derive(Clone, Copy, Debug)]
pub struct Scan {
    pub from: IVec2,
    pub level: i64,
    pub slope_x: i64,
    pub slope_z: i64,
    pub shift: u32,
    /// The second one only where the hypotenuse goes from north to south.
    pub rows: [Option<Rows>; 2],
}

impl Scan {
    /// A triangle whose corners have these heights.
    pub fn new(t: Triangle, [a, b, c]: [i32; 3]) -> Self {
        let (to_a, to_b) = (t.a - t.c, t.b - t.c);
        let heights = [a as i64, b as i64, c as i64];
        if to_a.x == 0 || to_a.y == 0 {
            along_axes(t, heights, to_a, to_b)
        } else if t.a.y == t.b.y {
            under_horizontal(t, heights)
        } else {
            beside_vertical(t, heights)
        }
    }

    /// What the plane, times `2^shift`, rises from one row's start to the next one's.
    pub fn row_step(&self, rows: &Rows) -> i64 {
        self.slope_z + self.slope_x * rows.start_step as i64
    }

    /// The plane at a sample, times `2^shift`.
    pub fn at(&self, p: IVec2) -> i64 {
        let offset = p - self.from;
        self.level + self.slope_x * offset.x as i64 + self.slope_z * offset.y as i64
    }
}

/// Legs along the axes: rows from the corner of the right angle, each a sample shorter.
fn along_axes(t: Triangle, [a, b, c]: [i64; 3], to_a: IVec2, to_b: IVec2) -> Scan {
    let a_is_level = to_a.y == 0;
    let (x, z) = if a_is_level {
        (to_a.x, to_b.y)
    } else {
        (to_b.x, to_a.y)
    };
    let (level_end, upright_end) = if a_is_level { (a, b) } else { (b, a) };
    let n = x.abs();
    let west = if x > 0 { t.c.x } else { t.c.x - n };
    let rows = if z > 0 {
        let start_step = if x > 0 { 0 } else { 1 };
        run(IVec2::new(west, t.c.y), n + 1, n + 1, start_step, -1)
    } else {
        let start_step = if x > 0 { 0 } else { -1 };
        run(IVec2::new(t.c.x, t.c.y - n), n + 1, 1, start_step, 1)
    };
    Scan {
        from: t.c,
        level: c * n as i64,
        slope_x: (level_end - c) * x.signum() as i64,
        slope_z: (upright_end - c) * z.signum() as i64,
        shift: n.trailing_zeros(),
        rows: [Some(rows), None],
    }
}

/// The hypotenuse from west to east: rows from it to the apex, or the other way.
fn under_horizontal(t: Triangle, [a, b, c]: [i64; 3]) -> Scan {
    let rise = t.c.y - t.a.y;
    let n = rise.abs();
    let (west, east) = if t.a.x < t.b.x { (a, b) } else { (b, a) };
    let rows = if rise > 0 {
        run(IVec2::new(t.a.x.min(t.b.x), t.a.y), n + 1, 2 * n + 1, 1, -2)
    } else {
        run(t.c, n + 1, 1, -1, 2)
    };
    Scan {
        from: t.c,
        level: c * 2 * n as i64,
        slope_x: east - west,
        slope_z: (2 * c - a - b) * rise.signum() as i64,
        shift: (2 * n).trailing_zeros(),
        rows: [Some(rows), None],
    }
}

/// The hypotenuse from north to south: rows that grow to the apex's and shrink again.
fn beside_vertical(t: Triangle, [a, b, c]: [i64; 3]) -> Scan {
    let reach = t.c.x - t.a.x;
    let n = reach.abs();
    let (north, south) = if t.a.y < t.b.y { (a, b) } else { (b, a) };
    let top = IVec2::new(t.a.x, t.a.y.min(t.b.y));
    let west = if reach > 0 { 0 } else { -1 };
    let upper = run(top, n + 1, 1, west, 1);
    let lower_start = IVec2::new(top.x + west * (n - 1), t.c.y + 1);
    let lower = run(lower_start, n, n, -west, -1);
    Scan {
        from: t.c,
        level: c * 2 * n as i64,
        slope_x: (2 * c - a - b) * reach.signum() as i64,
        slope_z: south - north,
        shift: (2 * n).trailing_zeros(),
        rows: [Some(upper), Some(lower)],
    }
}

fn run(start: IVec2, count: i32, samples: i32, start_step: i32, samples_step: i32) -> Rows {
    Rows {
        start,
        count,
        samples,
        start_step,
        samples_step,
    }
}

#[cfg(test)]
mod tests {
    use super::super::triangle::Plane;
    use super::*;
    use glam::ivec2;

    /// All eight ways a triangle can lie, at several sizes.
    fn triangles() -> Vec<Triangle> {
        let mut all: Vec<Triangle> = [true, false]
            .iter()
            .flat_map(|&even| Triangle::roots(ivec2(8, 16), 16, even))
            .collect();
        for at in 0..60 {
            if all[at].split_middle().is_some() {
                let halves = all[at].halves();
                all.extend(halves);
            }
        }
        all
    }

    #[test]
    fn rows_hold_exactly_the_samples_inside() {
        let mut ways = std::collections::HashSet::new();
        for t in triangles() {
            let scan = Scan::new(t, [0; 3]);
            let mut found: Vec<IVec2> = Vec::new();
            for rows in scan.rows.into_iter().flatten() {
                for i in 0..rows.count {
                    let start = rows.start + ivec2(rows.start_step * i, i);
                    let samples = rows.samples + rows.samples_step * i;
                    found.extend((0..samples).map(|x| start + ivec2(x, 0)));
                }
            }
            let (low, high) = (t.a.min(t.b).min(t.c), t.a.max(t.b).max(t.c));
            let inside = |p: &IVec2| {
                let side = |a: IVec2, b: IVec2| (b - a).perp_dot(*p - a) <= 0;
                side(t.a, t.b) && side(t.b, t.c) && side(t.c, t.a)
            };
            let all = (low.y..=high.y).flat_map(|z| (low.x..=high.x).map(move |x| ivec2(x, z)));
            let expected: Vec<IVec2> = all.filter(inside).collect();
            assert_eq!(found, expected, "{t:?}");
            ways.insert(((t.a - t.c).signum(), (t.b - t.c).signum()));
        }
        assert_eq!(ways.len(), 8);
    }

    #[test]
    fn the_plane_is_the_plane() {
        for t in triangles() {
            let scan = Scan::new(t, [5, -70, 1000]);
            let plane = Plane::through(t, 5, -70, 1000);
            for p in [t.a, t.b, t.c, t.a + ivec2(3, 1)] {
                assert_eq!(
                    scan.at(p) * plane.denominator,
                    plane.at(p) << scan.shift,
                    "{t:?}"
                );
            }
        }
    }
}
