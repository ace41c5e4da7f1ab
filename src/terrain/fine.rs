//! The finest diamonds of a tile: the four triangles that one makes exist, at once.
//!
//! Most triangles are so small that a handful of samples lies in them, always in the same places
//! seen from the diamond's middle. Their distances need neither rows nor planes, and the four
//! share their corners. It is what [`super::hierarchy::settle`] does one by one, only faster; the
//! naive twin of the meshes watches over both.
//!
//! Vertices are places in the tile's rows, so that the middle of two is their mean.

use super::hierarchy::{Diamond, Raised, Rank, Ranked, raise};
use super::tile::Tile;
use glam::IVec2;

/// The kinds of triangles, by the arm of the diamond whose middle is their right angle: one of
/// their legs.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Arm (1, 0): legs of one cell, all samples are corners.
    Whole,
    /// Arm (1, 1): the hypotenuse is two cells long; its middle counts.
    Half,
    /// Arm (2, 0): the middles of all three edges count.
    Edges,
    /// Arm (2, 2): besides, the quarters of the hypotenuse and the middle of the height on it.
    Quarters,
}

impl Kind {
    pub(super) fn of(arm: IVec2) -> Option<Self> {
        match (arm.x * arm.x, arm.y * arm.y) {
            (0, 1) | (1, 0) => Some(Kind::Whole),
            (1, 1) => Some(Kind::Half),
            (0, 4) | (4, 0) => Some(Kind::Edges),
            (4, 4) => Some(Kind::Quarters),
            _ => None,
        }
    }

    /// The kind of a triangle that so many halvings make the smallest ones.
    pub(super) fn above(halvings: u32) -> Option<Self> {
        match halvings {
            0 => Some(Kind::Whole),
            1 => Some(Kind::Half),
            2 => Some(Kind::Edges),
            3 => Some(Kind::Quarters),
            _ => None,
        }
    }

    /// Halvings of a height step that distances are counted in.
    pub(super) fn shift(self) -> u32 {
        if self == Kind::Quarters { 2 } else { 1 }
    }

    /// How often the places of the triangles' middles divide by two.
    fn halvings(self) -> u32 {
        if self == Kind::Quarters { 1 } else { 0 }
    }

    /// The largest distance in a triangle from `a` to `b` with its right angle at `c`, all of
    /// whose samples are present; `middle` is that of the hypotenuse.
    #[inline]
    pub(super) fn distance(self, heights: &[f32], [a, b, c]: [usize; 3], middle: usize) -> f32 {
        let between =
            |p: usize, q: usize| (heights[p] + heights[q] - 2.0 * heights[(p + q) / 2]).abs();
        let edges = || between(a, b).max(between(a, c)).max(between(b, c));
        match self {
            Kind::Whole => 0.0,
            Kind::Half => between(a, b),
            Kind::Edges => edges(),
            Kind::Quarters => {
                let quarter = |near: usize, far: usize| {
                    let at = heights[(near + middle) / 2];
                    (3.0 * heights[near] + heights[far] - 4.0 * at).abs()
                };
                let at = heights[(middle + c) / 2];
                let inner = (heights[a] + heights[b] + 2.0 * heights[c] - 4.0 * at).abs();
                (2.0 * edges())
                    .max(inner)
                    .max(quarter(a, b))
                    .max(quarter(b, a))
            }
        }
    }
}

/// Draws the conclusions from a raised diamond, if it is one of the finest and nothing but the
/// largest distance counts in the tile.
pub(super) fn settle_fine(
    tile: &mut Tile,
    diamond: Diamond,
    before: Rank,
    raised: &mut Raised,
) -> bool {
    let Some(heights) = tile.ground.and_then(|ground| ground.plain_heights()) else {
        return false;
    };
    let Some(kind) = Kind::of(diamond.arm) else {
        return false;
    };
    let Diamond { middle, arm } = diamond;
    let now = tile.rank(middle);
    let highest = tile.tiling.highest_rank(kind.halvings());
    let most = now.min(highest);
    let asked_before = before.min(highest);
    let across = arm.perp();
    let at = tile.index(middle);
    let place = |p: IVec2| (at as isize + tile.step(p - middle)) as usize;
    let ends = [middle + arm, middle - arm].map(|end| (end, place(end)));
    let apexes = [middle + across, middle - across].map(|apex| (apex, place(apex)));
    for (apex, apex_at) in apexes {
        if !tile.is_inside(apex) {
            continue;
        }
        if tile.rank(apex) < now {
            raise(tile, apex, now, raised);
        }
        if kind == Kind::Whole {
            continue;
        }
        for (end, end_at) in ends {
            let split = (apex_at + end_at) / 2;
            let rank = tile.ranks[split];
            // A middle below what was asked for was measured to the end: it needs no more.
            let known = before > 0 && rank < asked_before;
            if rank >= most || known {
                continue;
            }
            let distance = kind.distance(heights, [apex_at, end_at, at], split);
            let error = distance as f64 / (1 << kind.shift()) as f64;
            let need = tile.rules.exceeded(error, most);
            if need > rank {
                tile.ranks[split] = need;
                let middle = (apex + end) / 2;
                let arm = apex - middle;
                raised.push(Diamond { middle, arm }, rank);
            }
        }
    }
    true
}
