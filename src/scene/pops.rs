//! The pop meter: how far, on screen, a change of levels moved any vertex between two pictures.
//!
//! A patch that takes its parent's place, or gives it back, jumps by what its morph is short of
//! the parent's shape where it is nearest to the eye. Jumps are bounds: the largest morph of any
//! vertex of a patch, seen from the nearest place of its box.

use crate::render::DrawPatch;
use crate::terrain::patch_tree::PatchFacts;
use crate::world::{Layout, PatchKey};
use std::cmp::Ordering;

/// What the pictures of a scene were made of.
#[derive(Default)]
pub struct PopMeter {
    last: Vec<(PatchKey, Jump)>,
}

/// By how many pixels a patch can jump where it stands.
#[derive(Clone, Copy)]
pub struct Jump {
    /// To its parent's shape.
    pub to_parent_px: f64,
    /// From its own shape to its parent's.
    pub whole_px: f64,
}

impl Jump {
    /// The distances are those of the patch's box: for its morph, and from the eye.
    pub fn of(
        loaded: &PatchFacts,
        draw: &DrawPatch,
        [lod_m, nearest_m]: [f64; 2],
        exaggeration: f64,
        pixels_per_radian: f64,
    ) -> Jump {
        let largest_m = loaded.largest_morph_m as f64 * exaggeration;
        let length = (draw.morph_to_m - draw.morph_from_m) as f64;
        let by_distance = if length > 0.0 {
            (lod_m - draw.morph_from_m as f64) / length
        } else {
            0.0
        };
        let morph = by_distance.clamp(0.0, 1.0).max(draw.least_morph as f64);
        // No nearer than the near plane, or than the patch can come.
        let distance_m = nearest_m.max(largest_m).max(1.0);
        let whole_px = largest_m / distance_m * pixels_per_radian;
        Jump {
            to_parent_px: (1.0 - morph) * whole_px,
            whole_px,
        }
    }

    /// To the shape of a patch so many levels above.
    fn climb_px(&self, levels: u8) -> f64 {
        // Over more than one level each may move as far as the finest one.
        self.to_parent_px + f64::from(levels - 1) * self.whole_px
    }
}

impl PopMeter {
    /// Takes in the next picture, its patches in the order of a walk down the levels; the largest
    /// jump since the one before, 0 for the first.
    pub fn next(&mut self, layout: &Layout, now: &[(PatchKey, Jump)]) -> f64 {
        let (mut left, mut right) = (&self.last[..], now);
        let mut largest_px: f64 = 0.0;
        while let ([(a, from), ..], [(b, to), ..]) = (left, right) {
            let [mut skip_left, mut skip_right] = [true; 2];
            match a.level.cmp(&b.level) {
                Ordering::Less if covers(*b, *a) => {
                    largest_px = largest_px.max(from.climb_px(b.level - a.level));
                    skip_right = false;
                }
                Ordering::Greater if covers(*a, *b) => {
                    largest_px = largest_px.max(to.climb_px(a.level - b.level));
                    skip_left = false;
                }
                _ if a == b => {}
                _ if comes_before(layout, *a, *b) => skip_right = false,
                _ => skip_left = false,
            }
            left = &left[usize::from(skip_left)..];
            right = &right[usize::from(skip_right)..];
        }
        self.last.clear();
        self.last.extend_from_slice(now);
        largest_px
    }
}

fn covers(coarse: PatchKey, fine: PatchKey) -> bool {
    let shift = coarse.level - fine.level;
    [fine.x >> shift, fine.z >> shift] == [coarse.x, coarse.z]
}

/// Of two patches of which neither covers the other: whether a walk comes to `a` first.
fn comes_before(layout: &Layout, a: PatchKey, b: PatchKey) -> bool {
    let place = |key: PatchKey| [key.x, key.z].map(|v| v << key.level);
    let ([ax, az], [bx, bz]) = (place(a), place(b));
    let root = |x: u32, z: u32| [z, x].map(|v| v >> layout.coarsest());
    let by_root = root(ax, az).cmp(&root(bx, bz));
    // Siblings go west to east, then north to south: the highest bit in which the places differ
    // decides, and of x and z the one that has it.
    let (dx, dz) = (ax ^ bx, az ^ bz);
    let x_decides = dz < dx && dz < (dx ^ dz);
    let within = if x_decides { ax.cmp(&bx) } else { az.cmp(&bz) };
    by_root.then(within) == Ordering::Less
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn jump(to_parent_px: f64) -> Jump {
        Jump {
            to_parent_px,
            whole_px: 8.0,
        }
    }

    #[test]
    fn a_change_of_levels_jumps_by_what_its_morph_lacks() {
        let layout = Layout::new([1024, 1024], 32, 128).unwrap();
        let parent = PatchKey::new(1, 2, 3);
        let children: Vec<PatchKey> = layout.present_children(parent).collect();
        let picture = |keys: &[(PatchKey, f64)]| {
            keys.iter()
                .map(|&(k, px)| (k, jump(px)))
                .collect::<Vec<_>>()
        };
        let coarse = || picture(&[(parent, 3.0)]);
        let fine = || picture(&[(children[0], 0.5), (children[1], 0.25)]);
        let mut meter = PopMeter::default();
        assert_eq!(meter.next(&layout, &coarse()), 0.0, "nothing before");
        assert_eq!(meter.next(&layout, &coarse()), 0.0, "nothing changed");
        assert_eq!(meter.next(&layout, &fine()), 0.5, "split");
        assert_eq!(meter.next(&layout, &coarse()), 0.5, "merged");
        let elsewhere = picture(&[(PatchKey::new(0, 30, 0), 7.0)]);
        assert_eq!(meter.next(&layout, &elsewhere), 0.0, "another place");
        let grandparent = picture(&[(parent.parent(), 1.0)]);
        meter.next(&layout, &fine());
        assert_eq!(meter.next(&layout, &grandparent), 8.5, "two levels at once");
    }

    /// Some of a cut through the levels, in the order of the walk.
    fn walk(
        layout: &Layout,
        key: PatchKey,
        random: &mut impl Iterator<Item = u8>,
        out: &mut Vec<(PatchKey, Jump)>,
    ) {
        let number = random.next().expect("endless");
        if key.level > 0 && !number.is_multiple_of(4) {
            for child in layout.present_children(key) {
                walk(layout, child, random, out);
            }
        } else if !number.is_multiple_of(5) {
            out.push((key, jump(f64::from(number) / 32.0)));
        }
    }

    /// The same by looking at every pair.
    fn largest_climb_px(finer: &[(PatchKey, Jump)], coarser: &[(PatchKey, Jump)]) -> f64 {
        let pairs = finer
            .iter()
            .flat_map(|fine| coarser.iter().map(move |(coarse, _)| (fine, coarse)));
        let climbs = pairs
            .filter(|((fine, _), coarse)| coarse.level > fine.level && covers(**coarse, *fine))
            .map(|((fine, jump), coarse)| jump.climb_px(coarse.level - fine.level));
        climbs.fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn what_jumps_is_found_in_one_walk(
            size in prop::array::uniform2(1u32..900),
            most_levels in 1u8..5,
            numbers in prop::array::uniform2(prop::collection::vec(any::<u8>(), 1..200)),
        ) {
            let layout = Layout::with_levels(size, 32, 128, most_levels, 1).unwrap();
            let [last, now] = numbers.map(|numbers| {
                let mut random = numbers.into_iter().cycle();
                let mut picture = Vec::new();
                for key in layout.keys(layout.coarsest()) {
                    walk(&layout, key, &mut random, &mut picture);
                }
                picture
            });
            let expected = largest_climb_px(&last, &now).max(largest_climb_px(&now, &last));
            let mut meter = PopMeter::default();
            prop_assert_eq!(meter.next(&layout, &last), 0.0);
            prop_assert_eq!(meter.next(&layout, &now), expected);
        }
    }
}
