//! Which patches to draw: ranges by distance, and the cut through the patch maps.
//!
//! A patch is replaced by its children when its box is nearer than `r_k`, the range of its
//! children's level k. A level's vertices morph to the parent's shape over the last share m of
//! the ring between `r_{k-1}` and `r_k`. Drawn neighbours then differ by at most one level, the
//! finer one fully morphed and the coarser not yet, when `(1 - m)(r_{k+1} - r_k)` is at least the
//! largest diagonal of a box of level k+1; [`ranges`] makes it so. (The scheme of ranges follows
//! Strugar, "Continuous distance-dependent level of detail", 2010.)

use super::camera::{Bounds, Viewpoint};
use super::decision::{Decision, Why};
use super::patch_tree::{PatchTree, Slot};
use crate::world::{Layout, Meta, PatchKey};
use glam::dvec3;

/// Vertices are fully morphed a little before the range ends, so that rounding cannot open it:
/// by this share of the range, or of the morph where the ring is narrow.
const MORPH_MARGIN: f64 = 0.005;
const NARROW_MARGIN: f64 = 0.1;

/// What made a range as long as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RangeReason {
    /// The pixel error asked for.
    Error,
    /// The morph: neighbours would differ too much with less.
    Morph,
    /// The user.
    Hand,
}

/// How far a level is drawn.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Range {
    /// Distance at which the level ends.
    pub end_m: f64,
    /// Distance at which its vertices begin to morph to the next level.
    pub morph_from_m: f64,
    /// Distance at which they have its shape.
    pub morph_to_m: f64,
    pub reason: RangeReason,
}

/// What the ranges depend on besides the world.
#[derive(Clone, Debug, PartialEq)]
pub struct LodSettings {
    /// Largest error on screen, in pixels at the middle of the picture.
    pub pixel_error: f64,
    /// Share of a ring over which vertices morph, 0.05 to 0.6.
    pub morph_share: f64,
    /// Ranges set by hand, finest first; none where the error decides.
    pub by_hand_m: Vec<Option<f64>>,
    /// Heights are drawn this many times as high.
    pub exaggeration: f64,
}

impl Default for LodSettings {
    fn default() -> Self {
        LodSettings {
            pixel_error: 2.0,
            morph_share: 0.3,
            by_hand_m: Vec::new(),
            exaggeration: 1.0,
        }
    }
}

/// The ranges of all levels but the coarsest, which has no end.
pub fn ranges(meta: &Meta, settings: &LodSettings, pixels_per_radian: f64) -> Vec<Range> {
    let (errors, morph) = (meta.errors_m(), settings.morph_share);
    let mut last_end = 0.0;
    (0..meta.layout.levels.saturating_sub(1))
        .map(|level| {
            let error = errors[level as usize + 1] * settings.exaggeration;
            let asked = error * pixels_per_radian / settings.pixel_error;
            let hand = settings.by_hand_m.get(level as usize).copied().flatten();
            // A little more than the bound, so that rounding never falls below it.
            let least = last_end
                + 1.001 * largest_diagonal_m(meta, level, settings.exaggeration) / (1.0 - morph);
            let wanted = hand.unwrap_or(asked);
            let reason = match hand {
                _ if wanted < least => RangeReason::Morph,
                Some(_) => RangeReason::Hand,
                None => RangeReason::Error,
            };
            let end_m = wanted.max(least);
            let morph_m = morph * (end_m - last_end);
            last_end = end_m;
            Range {
                end_m,
                morph_from_m: end_m - morph_m,
                morph_to_m: end_m - (MORPH_MARGIN * end_m).min(NARROW_MARGIN * morph_m),
                reason,
            }
        })
        .collect()
}

/// The largest 3-D diagonal of a box of a level.
fn largest_diagonal_m(meta: &Meta, level: u8, exaggeration: f64) -> f64 {
    let size = meta.layout.patch_size(level) as f64;
    let tallest = meta.levels[level as usize].tallest_patch_m * exaggeration;
    dvec3(size * meta.spacing_m[0], tallest, size * meta.spacing_m[1]).length()
}

/// A patch that should be loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Want {
    pub key: PatchKey,
    pub distance_m: f64,
    pub in_view: bool,
}

/// A patch to draw, with its box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selected {
    pub key: PatchKey,
    pub slot: Slot,
    pub bounds: Bounds,
    /// From where levels are chosen.
    pub distance_m: f64,
    pub why: Why,
}

/// The cut to draw and the patches it needs.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The loaded patches that cover the ground once, whether in view or not.
    pub cut: Vec<Selected>,
    /// The patches above them, whose children take their place.
    pub replaced: Vec<Slot>,
    /// What is missing, most urgent first.
    pub wants: Vec<Want>,
    /// Every patch that is drawn, wanted, or above one that is: must stay loaded.
    pub visited: Vec<PatchKey>,
    /// No finer level was considered: 0, or more where that would have taken too many patches.
    pub finest_level: u8,
}

impl Selection {
    /// Goes on with what was selected, seen from another place.
    fn keep(&mut self, view: &Viewpoint) {
        self.wants.clear();
        for selected in &mut self.cut {
            selected.distance_m = selected.bounds.distance(view.eye);
            selected.why = Why::Kept;
        }
    }

    /// Forgets all but the memory it had.
    fn clear(&mut self, finest_level: u8) {
        self.cut.clear();
        self.replaced.clear();
        self.wants.clear();
        self.visited.clear();
        self.finest_level = finest_level;
    }
}

/// What is in memory, and how much may be.
pub struct Memory<'a, H> {
    /// The coarsest patches must be in it.
    pub loaded: &'a PatchTree,
    /// Lowest and highest sample of patches that are not, in height steps, where they are known.
    pub heights: H,
    /// Where the view would take more patches, the finest levels are left out.
    pub most: usize,
}

/// Selects top-down, into the memory of the last selection.
pub fn select<H: Fn(PatchKey) -> Option<[i32; 2]>>(
    meta: &Meta,
    decision: &Decision,
    exaggeration: f64,
    view: &Viewpoint,
    memory: &Memory<H>,
    out: &mut Selection,
) {
    if *decision == Decision::Keep && !out.cut.is_empty() {
        return out.keep(view);
    }
    let coarsest = meta.layout.coarsest();
    let mut selector = Selector {
        places: LevelPlace::of(meta),
        step_m: meta.height_step_m * exaggeration,
        layout: &meta.layout,
        decision,
        view,
        memory,
        out,
    };
    for finest_level in 0..=coarsest {
        selector.out.clear(finest_level);
        for key in meta.layout.keys(coarsest) {
            let slot = memory.loaded.root(key);
            let here = Here {
                key,
                slot: Some(slot),
                is_loaded: memory.loaded.is_loaded(slot),
            };
            selector.visit(here, meta.height_range, true);
        }
        if selector.out.visited.len() <= memory.most {
            break;
        }
    }
    out.wants.sort_by(|a, b| {
        let urgency = |want: &Want| (!want.in_view, std::cmp::Reverse(want.key.level));
        urgency(a)
            .cmp(&urgency(b))
            .then(a.distance_m.total_cmp(&b.distance_m))
            .then(a.key.cmp(&b.key))
    });
}

/// What the place of a patch is reckoned from.
#[derive(Clone, Copy)]
struct LevelPlace {
    /// Sides of a patch in metres, [x, z].
    size_m: [f64; 2],
    /// Patches of the level, [x, z].
    patches: [u32; 2],
}

impl LevelPlace {
    /// Of all levels, finest first.
    fn of(meta: &Meta) -> Vec<LevelPlace> {
        let layout = &meta.layout;
        let place = |level| LevelPlace {
            size_m: (meta.spacing_m).map(|spacing| layout.patch_size(level) as f64 * spacing),
            patches: layout.patches(level),
        };
        (0..layout.levels).map(place).collect()
    }
}

/// A patch that the walk has come to; no slot where neither it nor any below it is loaded.
#[derive(Clone, Copy)]
struct Here {
    key: PatchKey,
    slot: Option<Slot>,
    is_loaded: bool,
}

struct Selector<'a, H> {
    places: Vec<LevelPlace>,
    step_m: f64,
    layout: &'a Layout,
    decision: &'a Decision,
    view: &'a Viewpoint,
    memory: &'a Memory<'a, H>,
    out: &'a mut Selection,
}

impl<H: Fn(PatchKey) -> Option<[i32; 2]>> Selector<'_, H> {
    /// `around` bounds the heights of a patch of which nothing is in memory yet; `drawn` is true
    /// when all ancestors are replaced by their children.
    fn visit(&mut self, here: Here, around: [i32; 2], drawn: bool) {
        let key = here.key;
        let heights = match here.slot {
            Some(slot) if here.is_loaded => self.memory.loaded.heights(slot),
            _ => (self.memory.heights)(key).unwrap_or(around),
        };
        let bounds = self.bounds(key, heights);
        let distance_m = bounds.distance(self.view.eye);
        self.out.visited.push(key);
        if !here.is_loaded {
            self.out.wants.push(Want {
                key,
                distance_m,
                in_view: self.view.sees(&bounds),
            });
        }
        if let Some(why) = self.stays(key, distance_m) {
            return self.take(here, bounds, distance_m, drawn, why);
        }
        let tree = self.memory.loaded;
        let quad = here.slot.and_then(|slot| tree.children(slot));
        let present = self.present_children(key);
        let loaded = quad.map_or(0, |quad| tree.loaded(quad));
        let replaced = drawn && present & !loaded == 0;
        match here.slot {
            Some(slot) if replaced => self.out.replaced.push(slot),
            _ => self.take(here, bounds, distance_m, drawn, Why::Waits),
        }
        for (corner, child) in (0..4).zip(key.children()) {
            if present >> corner & 1 != 0 {
                let child = Here {
                    key: child,
                    slot: quad.map(|quad| quad * 4 + corner),
                    is_loaded: loaded >> corner & 1 != 0,
                };
                self.visit(child, heights, replaced);
            }
        }
    }

    /// Why a patch is not to be replaced by its children; none where it is.
    fn stays(&self, key: PatchKey, distance_m: f64) -> Option<Why> {
        let Some(finer) = key.level.checked_sub(1) else {
            return Some(Why::Finest);
        };
        let why = match self.decision {
            Decision::Ranges(ranges) => {
                let range = &ranges[finer as usize];
                (distance_m >= range.end_m).then_some(Why::Range {
                    finer_ends_m: range.end_m,
                    set_by: range.reason,
                })
            }
            Decision::Fixed(levels) => (!levels.splits(self.layout, key)).then_some(Why::Fixed),
            Decision::Keep => Some(Why::Kept),
        };
        let is_full = self.out.visited.len() > self.memory.most;
        let no_room = key.level <= self.out.finest_level || is_full;
        why.or(no_room.then_some(Why::NoRoom))
    }

    /// Into the cut, if nothing above is there.
    fn take(&mut self, here: Here, bounds: Bounds, distance_m: f64, drawn: bool, why: Why) {
        if let Some(slot) = here.slot.filter(|_| drawn) {
            self.out.cut.push(Selected {
                key: here.key,
                slot,
                bounds,
                distance_m,
                why,
            });
        }
    }

    /// A bit for each of a patch's children that holds any ground.
    fn present_children(&self, key: PatchKey) -> u8 {
        let [columns, rows] = self.places[key.level as usize - 1].patches;
        let east = key.x * 2 + 1 < columns;
        let south = key.z * 2 + 1 < rows;
        1 | u8::from(east) << 1 | u8::from(south) << 2 | u8::from(east && south) << 3
    }

    fn bounds(&self, key: PatchKey, heights: [i32; 2]) -> Bounds {
        let [width, depth] = self.places[key.level as usize].size_m;
        let (x, z) = (key.x as f64 * width, key.z as f64 * depth);
        let [low, high] = heights.map(|height| height as f64 * self.step_m);
        Bounds {
            min: dvec3(x, low, z),
            max: dvec3(x + width, high, z + depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::camera::Pose;
    use super::super::decision::FixedLevels;
    use super::super::patch_tree::PatchFacts;
    use super::*;
    use crate::world::{LevelMeta, SourceInfo};
    use glam::DVec3;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Height steps from the lowest to the highest sample.
    const TALL: i32 = 300;

    /// A world of 1000 x 700 cells whose patches of level k are `tall[k]` steps high.
    fn meta(errors: &[f64], tall: f64) -> Meta {
        let layout = Layout::new([1000, 700], 32, 128).unwrap();
        let level = |level: u8| LevelMeta {
            patches: layout.patch_count(level),
            exhausted_patches: 0,
            triangles: 0,
            vertices: 0,
            threshold: 1.0,
            max_error_m: errors[level as usize % errors.len()],
            tallest_patch_m: tall,
            topology_bits: 0,
        };
        Meta {
            layout,
            spacing_m: [10.0, 14.0],
            height_step_m: 1.0,
            heights: Default::default(),
            height_range: [0, tall as i32],
            summit: [0, 0],
            sea_level_m: None,
            metric: "max".into(),
            live_factor: None,
            kept_voids: 0,
            levels: (0..layout.levels).map(level).collect(),
            source: SourceInfo::made_up("made up", [0.0, tall]),
        }
    }

    fn heights(key: PatchKey, tall: i32) -> [i32; 2] {
        let low = (key.x * 7 + key.z * 13) as i32 % (tall / 2 + 1);
        [low, low + tall / 2]
    }

    /// The coarsest patches and those of which a number says so, or all.
    fn loaded(layout: &Layout, seed: u64, all: bool) -> PatchTree {
        let mut tree = PatchTree::new(*layout);
        for key in (0..layout.levels).flat_map(|level| layout.keys(level)) {
            let number = (key.level as u64) << 40 | (key.x as u64) << 20 | key.z as u64;
            let chosen = (number ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62 != 0;
            if all || chosen || key.level == layout.coarsest() {
                let facts = PatchFacts {
                    heights: heights(key, TALL),
                    ..PatchFacts::default()
                };
                tree.insert(key, facts);
            }
        }
        tree
    }

    /// A selection over a world that is `TALL` high.
    fn selection(meta: &Meta, tree: &PatchTree, eye: [f64; 3]) -> Selection {
        let ranges = ranges(meta, &LodSettings::default(), 600.0);
        let [x, y, z] = eye;
        let memory = Memory {
            loaded: tree,
            heights: |key| Some(heights(key, TALL)),
            most: usize::MAX,
        };
        let mut out = Selection::default();
        let decision = Decision::Ranges(ranges);
        select(meta, &decision, 1.0, &view(x, y, z), &memory, &mut out);
        out
    }

    fn view(x: f64, y: f64, z: f64) -> Viewpoint {
        let pose = Pose {
            eye: DVec3::new(x, y, z),
            yaw_deg: 20.0,
            pitch_deg: -10.0,
        };
        Viewpoint::new(&pose, 60.0, [1280, 720])
    }

    /// A selection of a decision, over what an earlier one left.
    fn decided(
        meta: &Meta,
        tree: &PatchTree,
        decision: &Decision,
        most: usize,
        out: &mut Selection,
    ) {
        let memory = Memory {
            loaded: tree,
            heights: |key| Some(heights(key, TALL)),
            most,
        };
        select(meta, decision, 1.0, &view(3e3, 500.0, 3e3), &memory, out);
    }

    #[test]
    fn every_patch_says_why_it_is_drawn() {
        let meta = meta(&[1.0, 2.0, 5.0, 9.0, 20.0, 40.0], TALL.into());
        let by_range = Decision::Ranges(ranges(&meta, &LodSettings::default(), 600.0));
        let whole = loaded(&meta.layout, 0, true);
        let mut out = Selection::default();
        decided(&meta, &whole, &by_range, usize::MAX, &mut out);
        let (mut finest, mut far) = (0, 0);
        for selected in &out.cut {
            match selected.why {
                Why::Finest => {
                    assert_eq!(selected.key.level, 0);
                    finest += 1;
                }
                Why::Range {
                    finer_ends_m,
                    set_by,
                } => {
                    let range = by_range.ranges()[selected.key.level as usize - 1];
                    assert_eq!((finer_ends_m, set_by), (range.end_m, range.reason));
                    assert!(selected.distance_m >= finer_ends_m);
                    far += 1;
                }
                why => panic!("{} {why:?}", selected.key),
            }
        }
        assert!(finest > 10 && far > 10, "{finest} {far}");
        decided(
            &meta,
            &loaded(&meta.layout, 3, false),
            &by_range,
            usize::MAX,
            &mut out,
        );
        assert!(out.cut.iter().any(|selected| selected.why == Why::Waits));
        decided(&meta, &whole, &by_range, 40, &mut out);
        assert!(out.finest_level > 0 && out.visited.len() <= 40);
        assert!(out.cut.iter().any(|selected| selected.why == Why::NoRoom));
    }

    #[test]
    fn levels_by_hand_and_what_was_drawn_before_are_kept_to() {
        let meta = meta(&[1.0, 2.0, 5.0, 9.0, 20.0, 40.0], TALL.into());
        let tree = loaded(&meta.layout, 0, true);
        let stream = meta.layout.stream_levels - 1;
        let chosen = PatchKey::new(stream, 1, 1);
        let mut levels = FixedLevels::everywhere(stream);
        levels.set(chosen, 0);
        let mut out = Selection::default();
        decided(&meta, &tree, &Decision::Fixed(levels), usize::MAX, &mut out);
        for Selected { key, why, .. } in &out.cut {
            let up = stream - key.level;
            let inside = [key.x >> up, key.z >> up] == [chosen.x, chosen.z];
            assert_eq!(key.level, if inside { 0 } else { stream }, "{key}");
            assert!(matches!(why, Why::Finest | Why::Fixed));
        }
        let keys = |out: &Selection| out.cut.iter().map(|s| s.key).collect::<Vec<_>>();
        let before = keys(&out);
        decided(&meta, &tree, &Decision::Keep, usize::MAX, &mut out);
        assert_eq!(keys(&out), before);
        assert!(out.wants.is_empty() && out.cut.iter().all(|s| s.why == Why::Kept));
        // Where nothing was drawn yet, the coarsest patches are.
        let mut none = Selection::default();
        decided(&meta, &tree, &Decision::Keep, usize::MAX, &mut none);
        assert!(
            none.cut
                .iter()
                .all(|s| s.key.level == meta.layout.coarsest())
        );
        assert_eq!(
            none.cut.len() as u64,
            meta.layout.patch_count(meta.layout.coarsest())
        );
    }

    proptest! {
        #[test]
        fn rings_are_wide_enough_for_the_morph(errors in prop::collection::vec(0.0f64..50.0, 6), tall in 0.0f64..2000.0, pixel_error in 0.3f64..20.0, share in 0.05f64..0.6, hand in prop::option::of(1.0f64..100_000.0)) {
            let meta = meta(&errors, tall);
            let settings = LodSettings { pixel_error, morph_share: share, by_hand_m: vec![None, hand], exaggeration: 1.0 };
            let ranges = ranges(&meta, &settings, 600.0);
            prop_assert_eq!(ranges.len(), meta.layout.levels as usize - 1);
            let bound = meta.errors_m();
            for (k, pair) in ranges.windows(2).enumerate() {
                let needed = largest_diagonal_m(&meta, k as u8 + 1, 1.0);
                prop_assert!((1.0 - share) * (pair[1].end_m - pair[0].end_m) >= needed);
                prop_assert!(pair[1].morph_from_m - pair[0].end_m >= needed * 0.999);
                prop_assert!(pair[1].morph_from_m < pair[1].morph_to_m && pair[1].morph_to_m < pair[1].end_m);
            }
            for (k, range) in ranges.iter().enumerate().filter(|(_, range)| range.reason == RangeReason::Error) {
                prop_assert!(bound[k + 1] * 600.0 / range.end_m <= pixel_error * 1.000_001);
            }
            prop_assert!(ranges.iter().all(|range| range.reason != RangeReason::Hand || hand == Some(range.end_m)));
        }

        #[test]
        fn the_cut_covers_the_ground_once_whatever_is_loaded(x in -2e3f64..12e3, y in 0.0f64..3e3, z in -2e3f64..12e3, seed: u64, all: bool) {
            let meta = meta(&[1.0, 2.0, 5.0, 9.0, 20.0, 40.0], TALL.into());
            let tree = loaded(&meta.layout, seed, all);
            let selection = selection(&meta, &tree, [x, y, z]);
            let [nx, nz] = meta.layout.patches(0);
            let mut covered = vec![0; (nx * nz) as usize];
            for selected in &selection.cut {
                prop_assert_eq!(tree.find(selected.key), Some(selected.slot));
                let shift = selected.key.level;
                for cz in (selected.key.z << shift)..((selected.key.z + 1) << shift).min(nz) {
                    for cx in (selected.key.x << shift)..((selected.key.x + 1) << shift).min(nx) {
                        covered[(cz * nx + cx) as usize] += 1;
                    }
                }
            }
            prop_assert!(covered.iter().all(|&count| count == 1));
            prop_assert!(selection.wants.iter().all(|want| tree.find(want.key).is_none()));
            prop_assert!(!all || selection.wants.is_empty());
        }

        #[test]
        fn settled_neighbours_are_at_most_one_level_apart(x in 0.0f64..10e3, y in 0.0f64..3e3, z in 0.0f64..10e3) {
            let meta = meta(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], TALL.into());
            let tree = loaded(&meta.layout, 0, true);
            let selection = selection(&meta, &tree, [x, y, z]);
            let cut: HashSet<PatchKey> = selection.cut.iter().map(|selected| selected.key).collect();
            let level_at = |cx: u32, cz: u32| (0..meta.layout.levels).find(|&k| cut.contains(&PatchKey::new(k, cx >> k, cz >> k))).unwrap();
            let [nx, nz] = meta.layout.patches(0);
            for (cx, cz) in (0..nz - 1).flat_map(|cz| (0..nx - 1).map(move |cx| (cx, cz))) {
                let level = level_at(cx, cz);
                prop_assert!(level.abs_diff(level_at(cx + 1, cz)) <= 1 && level.abs_diff(level_at(cx, cz + 1)) <= 1);
            }
        }
    }
}
