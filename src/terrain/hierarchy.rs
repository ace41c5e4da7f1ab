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

/// One more than the coarsest level that has a vertex; 0 when none has.
pub type Rank = u8;

/// A part of the hierarchy whose ranks can be raised.
pub trait Ranked {
    fn rank(&self, vertex: IVec2) -> Rank;

    fn set_rank(&mut self, vertex: IVec2, rank: Rank);

    /// The rank that lattices allow a vertex.
    fn highest_rank(&self, vertex: IVec2) -> Rank;

    /// The triangles of this part whose hypotenuse has this middle.
    fn diamond(&self, middle: IVec2) -> [Option<Triangle>; 2];

    /// Triangles that begin to exist with a vertex though they are not halves of its diamond here.
    fn roots_at(&self, vertex: IVec2) -> [Option<Triangle>; 2];

    /// The highest rank at which a triangle needs its split, if it lies above `least`; `least` if
    /// not. At most `most`, which is above `least`.
    fn need(&self, triangle: Triangle, least: Rank, most: Rank) -> Rank;
}

/// Vertices whose rank went up, with the rank that they had.
pub type Raised = Vec<(IVec2, Rank)>;

/// Gives a vertex at least a rank; [`settle`] draws the conclusions.
pub fn raise(part: &mut impl Ranked, vertex: IVec2, rank: Rank, raised: &mut Raised) {
    let before = part.rank(vertex);
    if before < rank {
        part.set_rank(vertex, rank);
        raised.push((vertex, before));
    }
}

/// Works until all ranks obey the rules.
pub fn settle(part: &mut impl Ranked, raised: &mut Raised) {
    while let Some((vertex, before)) = raised.pop() {
        let rank = part.rank(vertex);
        for triangle in part.roots_at(vertex).into_iter().flatten() {
            consider(part, triangle, before, rank, raised);
        }
        for triangle in part.diamond(vertex).into_iter().flatten() {
            raise(part, triangle.c, rank, raised);
            for half in triangle.halves() {
                consider(part, half, before, rank, raised);
            }
        }
    }
}

/// A triangle existed up to one rank and now exists up to a higher one: does it need a split?
pub fn consider(
    part: &mut impl Ranked,
    triangle: Triangle,
    before: Rank,
    now: Rank,
    raised: &mut Raised,
) {
    let Some(middle) = triangle.split_middle() else {
        return;
    };
    let rank = part.rank(middle);
    let highest = part.highest_rank(middle);
    let most = now.min(highest);
    // A middle below what was asked for was measured to the end: it needs no more.
    let known = before > 0 && rank < before.min(highest);
    if rank < most && !known {
        let need = part.need(triangle, rank, most);
        raise(part, middle, need, raised);
    }
}

/// The two triangles whose hypotenuse has this middle, wherever they lie. `even(corner, size)`
/// says whether a square is split along its NW-SE diagonal.
pub fn diamond(v: IVec2, even: impl Fn(IVec2, i32) -> bool) -> [Triangle; 2] {
    let half = 1 << (v.x | v.y).trailing_zeros();
    let (east, south) = (ivec2(half, 0), ivec2(0, half));
    let triangle = |a, b, c| Triangle { a, b, c };
    match (v.x & half != 0, v.y & half != 0) {
        (true, true) => {
            let corner = v - east - south;
            Triangle::roots(corner, 2 * half, even(corner, 2 * half))
        }
        (true, false) => [
            triangle(v - east, v + east, v - south),
            triangle(v + east, v - east, v + south),
        ],
        _ => [
            triangle(v + south, v - south, v - east),
            triangle(v - south, v + south, v + east),
        ],
    }
}
