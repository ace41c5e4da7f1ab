//! The right triangles of the bintree hierarchy and the planes through them.
//!
//! A triangle's two children halve its hypotenuse. All triangles of a world belong to one
//! hierarchy (patches' diagonals alternate), so all meshes made from it nest: Evans, Kirkpatrick
//! and Townsend, "Right-triangulated irregular networks", 2001; Duchaineau et al., "ROAMing
//! terrain", 1997. Positions are integers, in samples or in lattice cells.
//!
//! Invariants: seen from above, a, b, c run counter-clockwise (x east, z south); the legs are
//! equal and lie along the axes or along the diagonals.

use glam::{DVec2, IVec2, ivec2};

/// A right triangle: hypotenuse from `a` to `b`, right angle at `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    pub a: IVec2,
    pub b: IVec2,
    pub c: IVec2,
}

impl Triangle {
    /// The two halves of a square: the one towards the north first.
    pub fn roots(corner: IVec2, size: i32, splits_nw_se: bool) -> [Triangle; 2] {
        let nw = corner;
        let ne = corner + ivec2(size, 0);
        let sw = corner + ivec2(0, size);
        let se = corner + ivec2(size, size);
        if splits_nw_se {
            [
                Triangle {
                    a: nw,
                    b: se,
                    c: ne,
                },
                Triangle {
                    a: se,
                    b: nw,
                    c: sw,
                },
            ]
        } else {
            [
                Triangle {
                    a: sw,
                    b: ne,
                    c: nw,
                },
                Triangle {
                    a: ne,
                    b: sw,
                    c: se,
                },
            ]
        }
    }

    /// Where the triangle is halved: the middle of its hypotenuse.
    pub fn middle(self) -> IVec2 {
        (self.a + self.b) / 2
    }

    /// Where the triangle is halved, if there is a sample; the smallest ones have none.
    pub fn split_middle(self) -> Option<IVec2> {
        let sum = self.a + self.b;
        ((sum.x | sum.y) & 1 == 0).then_some(sum / 2)
    }

    /// The two children.
    pub fn halves(self) -> [Triangle; 2] {
        let middle = self.middle();
        [
            Triangle {
                a: self.c,
                b: self.a,
                c: middle,
            },
            Triangle {
                a: self.b,
                b: self.c,
                c: middle,
            },
        ]
    }

    /// The square of side `size` that holds the triangle, as its column and row.
    pub fn square(self, size: i32) -> IVec2 {
        // Four times a point strictly inside, so that a triangle on a border is never ambiguous.
        (self.a + self.b + 2 * self.c) / (4 * size)
    }

    /// Whether another triangle of the hierarchy, no larger, lies inside.
    pub fn contains(self, inner: Triangle) -> bool {
        // Four times a point strictly inside the inner one; products would overflow an `i32`.
        let [a, b, c] = [self.a, self.b, self.c].map(|p| p.as_dvec2());
        let [inner_a, inner_b, inner_c] = [inner.a, inner.b, inner.c].map(|p| p.as_dvec2());
        let p = inner_a + inner_b + 2.0 * inner_c;
        let side = |a: DVec2, b: DVec2| (b - a).perp_dot(p - 4.0 * a) < 0.0;
        side(a, b) && side(b, c) && side(c, a)
    }

    /// The samples inside the closed triangle, as an interval of x for each row.
    pub fn rows(self) -> Rows {
        let mut rows = Rows {
            from: [-FAR; 3],
            to: [FAR; 3],
            z: (
                self.a.y.min(self.b.y).min(self.c.y),
                self.a.y.max(self.b.y).max(self.c.y),
            ),
        };
        for (p, q) in [(self.a, self.b), (self.b, self.c), (self.c, self.a)] {
            rows.cut(p, (q - p).signum());
        }
        rows
    }
}

/// Further than any sample, and far enough from overflow.
const FAR: i32 = 1 << 29;

/// The rows of a triangle. Edges lean by -1, 0 or 1 a row or are rows themselves, so an interval
/// is a maximum and a minimum of three terms: one fixed, one that grows with z, one that shrinks.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    from: [i32; 3],
    to: [i32; 3],
    /// First and last row.
    pub z: (i32, i32),
}

impl Rows {
    /// First and last x of a row; nothing is inside where the first is beyond the last.
    pub fn interval(&self, z: i32) -> (i32, i32) {
        let from = self.from[0].max(self.from[1] + z).max(self.from[2] - z);
        let to = self.to[0].min(self.to[1] + z).min(self.to[2] - z);
        (from, to)
    }

    /// Keeps what lies to the left of an edge through `p`, seen from above.
    fn cut(&mut self, p: IVec2, direction: IVec2) {
        let bound = if direction.y > 0 {
            &mut self.from
        } else {
            &mut self.to
        };
        match (direction.x * direction.y, direction.y) {
            (_, 0) => {}
            (0, _) => bound[0] = p.x,
            (1, _) => bound[1] = p.x - p.y,
            _ => bound[2] = p.x + p.y,
        }
    }
}

/// A triangle's plane in exact numbers: heights are `at(p) / denominator`.
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    corner: IVec2,
    height: i64,
    slope_x: i64,
    slope_z: i64,
    /// A power of two.
    pub denominator: i64,
}

impl Plane {
    /// The plane through a triangle whose corners have these heights.
    pub fn through(triangle: Triangle, a: i32, b: i32, c: i32) -> Self {
        let (leg_a, leg_b) = (triangle.a - triangle.c, triangle.b - triangle.c);
        let length = leg_a.x.abs().max(leg_a.y.abs());
        // The legs as unit steps: along an axis a leg is `length` of them, along a diagonal
        // each counts twice in the dot product.
        let (unit_a, unit_b) = (leg_a / length, leg_b / length);
        let denominator = length as i64 * unit_a.length_squared() as i64;
        let (rise_a, rise_b) = (a as i64 - c as i64, b as i64 - c as i64);
        Plane {
            corner: triangle.c,
            height: c as i64 * denominator,
            slope_x: rise_a * unit_a.x as i64 + rise_b * unit_b.x as i64,
            slope_z: rise_a * unit_a.y as i64 + rise_b * unit_b.y as i64,
            denominator,
        }
    }

    /// The height at `p`, times the denominator.
    pub fn at(&self, p: IVec2) -> i64 {
        let offset = p - self.corner;
        self.height + self.slope_x * offset.x as i64 + self.slope_z * offset.y as i64
    }

    /// What one sample further east adds to [`Plane::at`].
    pub fn slope_x(&self) -> i64 {
        self.slope_x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::PatchKey;

    fn area_doubled(t: Triangle) -> i32 {
        (t.b - t.a).perp_dot(t.c - t.a)
    }

    #[test]
    fn halves_keep_the_winding_and_the_ground() {
        for nw_se in [false, true] {
            for root in Triangle::roots(ivec2(8, 16), 8, nw_se) {
                let mut triangles = vec![root];
                for _ in 0..6 {
                    let area: i32 = triangles.iter().map(|&t| area_doubled(t)).sum();
                    assert_eq!(
                        area, -64,
                        "x east and z south: counter-clockwise is negative"
                    );
                    triangles = triangles.iter().flat_map(|t| t.halves()).collect();
                }
            }
        }
    }

    #[test]
    fn a_patch_halved_twice_gives_the_roots_of_its_children() {
        for (x, z) in [(0, 0), (1, 0), (0, 1), (1, 1), (2, 3)] {
            let key = PatchKey::new(1, x, z);
            let corner = ivec2(x as i32, z as i32) * 16;
            let mut from_parent: Vec<_> = Triangle::roots(corner, 16, key.splits_nw_se())
                .into_iter()
                .flat_map(|root| root.halves())
                .flat_map(|half| half.halves())
                .map(|t| [t.a.to_array(), t.b.to_array(), t.c.to_array()])
                .collect();
            let mut from_children: Vec<_> = key
                .children()
                .into_iter()
                .flat_map(|c| {
                    Triangle::roots(ivec2(c.x as i32, c.z as i32) * 8, 8, c.splits_nw_se())
                })
                .map(|t| [t.a.to_array(), t.b.to_array(), t.c.to_array()])
                .collect();
            from_parent.sort();
            from_children.sort();
            assert_eq!(from_parent, from_children);
        }
    }

    #[test]
    fn a_plane_passes_through_its_corners_and_their_middle() {
        for nw_se in [false, true] {
            let [root, _] = Triangle::roots(ivec2(0, 0), 8, nw_se);
            for t in root.halves().into_iter().chain([root]) {
                let plane = Plane::through(t, 5, -7, 100);
                assert_eq!(plane.at(t.a), 5 * plane.denominator);
                assert_eq!(plane.at(t.b), -7 * plane.denominator);
                assert_eq!(plane.at(t.c), 100 * plane.denominator);
                assert_eq!(plane.at(t.middle()) * 2, -2 * plane.denominator);
            }
        }
    }

    #[test]
    fn rows_hold_exactly_the_samples_inside() {
        for nw_se in [false, true] {
            let [root, _] = Triangle::roots(ivec2(0, 0), 8, nw_se);
            for t in root.halves().into_iter().chain([root]) {
                for z in -1..10 {
                    let inside = |x: i32| {
                        let p = ivec2(x, z);
                        let side = |a: IVec2, b: IVec2| (b - a).perp_dot(p - a) <= 0;
                        side(t.a, t.b) && side(t.b, t.c) && side(t.c, t.a)
                    };
                    let samples: Vec<i32> = (-2..12).filter(|&x| inside(x)).collect();
                    let rows = t.rows();
                    let (x0, x1) = rows.interval(z);
                    let inside = rows.z.0 <= z && z <= rows.z.1;
                    let row: Vec<i32> = if inside { (x0..=x1).collect() } else { vec![] };
                    assert_eq!(row, samples, "{t:?} row {z}");
                }
            }
        }
    }
}
