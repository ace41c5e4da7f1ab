//! The pop meter: how far, on screen, a change of levels moved any vertex between two pictures.
//!
//! A patch that takes its parent's place, or gives it back, jumps by what its morph is short of
//! the parent's shape where it is nearest to the eye. Jumps are bounds: the largest morph of any
//! vertex of a patch, seen from the nearest place of its box.

use super::Loaded;
use crate::render::DrawPatch;
use crate::world::{Layout, PatchKey};
use rustc_hash::FxHashMap;

/// What the pictures of a scene were made of.
#[derive(Default)]
pub struct PopMeter {
    last: FxHashMap<PatchKey, Jump>,
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
        loaded: &Loaded,
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
}

impl PopMeter {
    /// Takes in the next picture; the largest jump since the one before, 0 for the first.
    pub fn next(&mut self, layout: &Layout, now: FxHashMap<PatchKey, Jump>) -> f64 {
        let split = largest_climb(layout, &now, &self.last);
        let merged = largest_climb(layout, &self.last, &now);
        self.last = now;
        split.max(merged)
    }
}

/// The largest jump of patches in `finer` from or to an ancestor in `coarser`.
fn largest_climb(
    layout: &Layout,
    finer: &FxHashMap<PatchKey, Jump>,
    coarser: &FxHashMap<PatchKey, Jump>,
) -> f64 {
    let climbs = finer.iter().filter_map(|(&key, jump)| {
        if coarser.contains_key(&key) {
            return None;
        }
        let mut at = key;
        let mut steps = 0.0;
        while at.level < layout.coarsest() {
            at = at.parent();
            steps += 1.0;
            if coarser.contains_key(&at) {
                // Over more than one level each may move as far as the finest one.
                return Some(jump.to_parent_px + (steps - 1.0) * jump.whole_px);
            }
        }
        None
    });
    climbs.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let picture =
            |keys: &[(PatchKey, f64)]| keys.iter().map(|&(k, px)| (k, jump(px))).collect();
        let coarse = || picture(&[(parent, 3.0)]);
        let fine = || picture(&[(children[0], 0.5), (children[1], 0.25)]);
        let mut meter = PopMeter::default();
        assert_eq!(meter.next(&layout, coarse()), 0.0, "nothing before");
        assert_eq!(meter.next(&layout, coarse()), 0.0, "nothing changed");
        assert_eq!(meter.next(&layout, fine()), 0.5, "split");
        assert_eq!(meter.next(&layout, coarse()), 0.5, "merged");
        let elsewhere = picture(&[(PatchKey::new(0, 30, 0), 7.0)]);
        assert_eq!(meter.next(&layout, elsewhere), 0.0, "another place");
        let grandparent = picture(&[(parent.parent(), 1.0)]);
        meter.next(&layout, fine());
        assert_eq!(meter.next(&layout, grandparent), 8.5, "two levels at once");
    }
}
