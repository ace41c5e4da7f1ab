//! The smallest crack-free meshes of all levels at once.
//!
//! Levels nest: a vertex that one level has, all finer ones have too. So one small number a vertex
//! says everything: its *rank*, one more than the coarsest level that has it, 0 for none. Ranks
//! obey three rules, and the smallest ranks that do are the answer; there is exactly one, whatever
//! the order of work:
//!
//! - a triangle exists where the middle that its parent was split at does: up to the rank of its
//!   own right-angled corner;
//! - where a triangle exists and needs a split (its error is above the level's threshold, or a
//!   rule asks for it, and the level's lattice has the middle), the middle of its hypotenuse has
//!   at least that rank;
//! - the right-angled corners of a diamond have at least the rank of its middle: both triangles
//!   are there to be split together.
//!
//! Raising ranks until nothing changes gives what refining level by level gives; each triangle is
//! measured once, but for the few that closure makes exist at coarser levels later.

use super::triangle::Triangle;
use glam::{IVec2, ivec2};

/// One more than the coarsest level that has a vertex; 0 when none has. Live thresholds take the
/// steps of one level for levels.
pub type Rank = u8;

/// Two triangles that share a hypotenuse, from `middle - arm` to `middle + arm`; their right
/// angles lie as far to its sides. Either may lie outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diamond {
    pub middle: IVec2,
    pub arm: IVec2,
}

impl Diamond {
    /// The diamond of a middle, wherever its triangles lie. `even(corner, size)` says whether a
    /// square is split along its NW-SE diagonal.
    pub fn of(middle: IVec2, even: impl Fn(IVec2, i32) -> bool) -> Self {
        let half = 1 << (middle.x | middle.y).trailing_zeros();
        let arm = match (middle.x & half != 0, middle.y & half != 0) {
            (true, true) if even(middle - half, 2 * half) => ivec2(half, half),
            (true, true) => ivec2(half, -half),
            (true, false) => ivec2(half, 0),
            _ => ivec2(0, half),
        };
        Diamond { middle, arm }
    }

    /// Its triangles: the one whose right angle lies along the arm turned by a quarter, clockwise
    /// on a map, and the opposite one.
    pub fn triangles(self) -> [Triangle; 2] {
        [self.arm, -self.arm].map(|arm| Triangle {
            a: self.middle + arm,
            b: self.middle - arm,
            c: self.middle + arm.perp(),
        })
    }

    /// The diamond that a triangle belongs to, unless it is one of the smallest.
    pub fn around(triangle: Triangle) -> Option<Self> {
        let middle = triangle.split_middle()?;
        let arm = triangle.a - middle;
        Some(Diamond { middle, arm })
    }
}

/// A part of the hierarchy whose ranks can be raised.
pub trait Ranked {
    fn rank(&self, vertex: IVec2) -> Rank;

    fn set_rank(&mut self, vertex: IVec2, rank: Rank);

    /// The rank that lattices allow a vertex.
    fn highest_rank(&self, vertex: IVec2) -> Rank;

    fn is_inside(&self, vertex: IVec2) -> bool;

    /// The diamond of a vertex; none where none of this part has it as its middle.
    fn diamond(&self, middle: IVec2) -> Option<Diamond>;

    /// Triangles that begin to exist with a vertex though they are not halves of its diamond here.
    fn roots_at(&self, vertex: IVec2) -> [Option<Triangle>; 2];

    /// The highest rank at which a triangle needs its split, if it lies above `least`; `least` if
    /// not. At most `most`, which is above `least`.
    fn need(&mut self, triangle: Triangle, least: Rank, most: Rank) -> Rank;

    /// A faster way to draw the conclusions from a diamond whose middle had the rank `before`;
    /// false where there is none.
    fn settle_fast(&mut self, _: Diamond, _before: Rank, _: &mut Raised) -> bool {
        false
    }
}

/// What is left to do.
#[derive(Default)]
pub struct Raised {
    /// Diamonds whose middle's rank went up, with the rank that it had.
    diamonds: Vec<(Diamond, Rank)>,
}

impl Raised {
    /// A diamond whose middle had the rank `before`.
    #[inline]
    pub fn push(&mut self, diamond: Diamond, before: Rank) {
        self.diamonds.push((diamond, before));
    }

    pub fn is_empty(&self) -> bool {
        self.diamonds.is_empty()
    }
}

/// Gives a vertex at least a rank; [`settle`] draws the conclusions.
pub fn raise(part: &mut impl Ranked, vertex: IVec2, rank: Rank, raised: &mut Raised) {
    let before = part.rank(vertex);
    if before >= rank {
        return;
    }
    part.set_rank(vertex, rank);
    if let Some(diamond) = part.diamond(vertex) {
        raised.push(diamond, before);
    }
    for root in part.roots_at(vertex).into_iter().flatten() {
        consider(part, root, before, rank, raised);
    }
}

/// Works until all ranks obey the rules.
pub fn settle(part: &mut impl Ranked, raised: &mut Raised) {
    while let Some((diamond, before)) = raised.diamonds.pop() {
        if part.settle_fast(diamond, before, raised) {
            continue;
        }
        let rank = part.rank(diamond.middle);
        for triangle in diamond.triangles() {
            if !part.is_inside(triangle.c) {
                continue;
            }
            if part.rank(triangle.c) < rank {
                raise(part, triangle.c, rank, raised);
            }
            for half in triangle.halves() {
                consider(part, half, before, rank, raised);
            }
        }
    }
}

/// A triangle existed up to one rank and now exists up to a higher one: does it need a split?
#[inline]
pub fn consider(
    part: &mut impl Ranked,
    triangle: Triangle,
    before: Rank,
    now: Rank,
    raised: &mut Raised,
) {
    let Some(diamond) = Diamond::around(triangle) else {
        return;
    };
    let rank = part.rank(diamond.middle);
    let highest = part.highest_rank(diamond.middle);
    let most = now.min(highest);
    // A middle below what was asked for was measured to the end: it needs no more.
    let known = before > 0 && rank < before.min(highest);
    if rank < most && !known {
        let need = part.need(triangle, rank, most);
        if need > rank {
            part.set_rank(diamond.middle, need);
            raised.push(diamond, rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diamond_is_found_from_its_middle_and_from_its_triangles() {
        let even = |corner: IVec2, size: i32| (corner.x / size + corner.y / size) % 2 == 0;
        let mut triangles: Vec<Triangle> = Triangle::roots(IVec2::ZERO, 16, true).into();
        let mut at = 0;
        while at < triangles.len() {
            let triangle = triangles[at];
            at += 1;
            let Some(diamond) = Diamond::around(triangle) else {
                continue;
            };
            let found = Diamond::of(diamond.middle, even);
            assert!(
                [diamond.arm, -diamond.arm].contains(&found.arm),
                "{triangle:?}"
            );
            let apexes = [
                found.middle + found.arm.perp(),
                found.middle - found.arm.perp(),
            ];
            assert!(apexes.contains(&triangle.c), "{triangle:?}");
            triangles.extend(triangle.halves());
        }
        assert_eq!(at, 2 * (2 * 16 * 16 - 1));
    }
}
