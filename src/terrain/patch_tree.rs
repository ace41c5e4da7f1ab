//! The patches that are loaded, as selection and culling walk them: four siblings side by side.
//!
//! A hash map of patches costs a miss of the cache for each question; here what is asked of a
//! patch and its siblings lies in one line of it, and neighbours are found by their numbers. A
//! *slot* is a patch's number: four times its quad's, and which of the siblings it is (1 east of
//! the first, 2 south of it). Slots stay while their patch is loaded.
//!
//! Invariants: a quad is there exactly when one of its patches is loaded or above one that is, or
//! when it holds coarsest patches; frames are counted from 1, so a patch of no frame has 0.

use crate::world::{Layout, PatchKey};

pub type Slot = u32;

const NONE: u32 = u32::MAX;

/// What is known of a patch when it is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PatchFacts {
    /// Lowest and highest sample in height steps.
    pub heights: [i32; 2],
    /// Stored errors in metres.
    pub error_m: f32,
    pub parent_error_m: f32,
    /// The farthest that a vertex morphs to the parent's shape, in metres.
    pub largest_morph_m: f32,
    /// Some of its cells have no ground.
    pub has_voids: bool,
    /// None has any: there is nothing to draw.
    pub absent: bool,
}

impl PatchFacts {
    /// Of its own mesh and its parent's, between which it morphs.
    pub fn largest_error_m(&self) -> f64 {
        self.error_m.max(self.parent_error_m) as f64
    }
}

/// The side of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    North,
    East,
    South,
    West,
}

impl Side {
    pub const ALL: [Side; 4] = [Side::North, Side::East, Side::South, Side::West];

    /// Which bit of a sibling's number tells its place across, and whether the side is at the
    /// greater one.
    fn axis(self) -> (u32, bool) {
        match self {
            Side::North => (2, false),
            Side::East => (1, true),
            Side::South => (2, true),
            Side::West => (1, false),
        }
    }
}

/// Four siblings, as the walk down needs them; one line of the cache.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Quad {
    heights: [[i32; 2]; 4],
    /// The quads of their children.
    children: [u32; 4],
    /// The slot of the patch above.
    parent: Slot,
    /// A bit for each that is loaded.
    loaded: u8,
}

/// What one patch was in the last frames that were selected.
#[derive(Clone, Copy, Default)]
struct Places {
    /// The last frame that it was in the cut of.
    cut: u32,
    /// The last in whose cut its children, or theirs, stood in its place.
    replaced: u32,
}

/// The rest of what is known of a loaded patch.
#[derive(Clone, Copy)]
struct Rest {
    facts: PatchFacts,
    /// When it took its parent's place in the picture.
    replaced_parent_s: f64,
}

pub struct PatchTree {
    layout: Layout,
    quads: Vec<Quad>,
    places: Vec<[Places; 4]>,
    rest: Vec<[Rest; 4]>,
    free: Vec<u32>,
    frame: u32,
}

impl PatchTree {
    pub fn new(layout: Layout) -> Self {
        let mut tree = PatchTree {
            layout,
            quads: Vec::new(),
            places: Vec::new(),
            rest: Vec::new(),
            free: Vec::new(),
            frame: 1,
        };
        let [columns, rows] = layout.patches(layout.coarsest());
        for _ in 0..columns.div_ceil(2) * rows.div_ceil(2) {
            tree.add_quad(NONE);
        }
        tree
    }

    /// Takes in a patch, in the place of what was known of it.
    pub fn insert(&mut self, key: PatchKey, facts: PatchFacts) {
        let coarsest = self.layout.coarsest();
        let shift = coarsest - key.level;
        let mut slot = self.root(PatchKey::new(coarsest, key.x >> shift, key.z >> shift));
        for level in (key.level..coarsest).rev() {
            let quad = match self.children(slot) {
                Some(quad) => quad,
                None => {
                    let quad = self.add_quad(slot);
                    self.quads[quad_of(slot)].children[corner_of(slot)] = quad;
                    quad
                }
            };
            let shift = level - key.level;
            slot = quad * 4 + (key.x >> shift & 1) + (key.z >> shift & 1) * 2;
        }
        let (quad, corner) = (quad_of(slot), corner_of(slot));
        self.quads[quad].loaded |= 1 << corner;
        self.quads[quad].heights[corner] = facts.heights;
        self.places[quad][corner] = Places::default();
        self.rest[quad][corner] = Rest {
            facts,
            replaced_parent_s: f64::NEG_INFINITY,
        };
    }

    pub fn remove(&mut self, key: PatchKey) {
        let Some(slot) = self.find(key) else {
            return;
        };
        let mut quad = quad_of(slot);
        self.quads[quad].loaded &= !(1 << corner_of(slot));
        loop {
            let Quad {
                loaded,
                children,
                parent,
                ..
            } = self.quads[quad];
            if loaded != 0 || children != [NONE; 4] || parent == NONE {
                return;
            }
            self.free.push(quad as u32);
            quad = quad_of(parent);
            self.quads[quad].children[corner_of(parent)] = NONE;
        }
    }

    /// The slot of a loaded patch.
    pub fn find(&self, key: PatchKey) -> Option<Slot> {
        let coarsest = self.layout.coarsest();
        let shift = coarsest - key.level;
        let mut slot = self.root(PatchKey::new(coarsest, key.x >> shift, key.z >> shift));
        for shift in (0..shift).rev() {
            slot = self.children(slot)? * 4 + (key.x >> shift & 1) + (key.z >> shift & 1) * 2;
        }
        self.is_loaded(slot).then_some(slot)
    }

    /// The slot of a coarsest patch, loaded or not.
    pub fn root(&self, key: PatchKey) -> Slot {
        let columns = self.layout.patches(key.level)[0].div_ceil(2);
        (key.z / 2 * columns + key.x / 2) * 4 + (key.x & 1) + (key.z & 1) * 2
    }

    pub fn is_loaded(&self, slot: Slot) -> bool {
        self.loaded(slot / 4) >> (slot % 4) & 1 != 0
    }

    /// A bit for each patch of a quad that is loaded.
    pub fn loaded(&self, quad: u32) -> u8 {
        self.quads[quad as usize].loaded
    }

    /// The quad of a patch's children, where one of them is loaded or above one that is.
    pub fn children(&self, slot: Slot) -> Option<u32> {
        let quad = self.quads[quad_of(slot)].children[corner_of(slot)];
        (quad != NONE).then_some(quad)
    }

    /// Lowest and highest sample of a loaded patch, in height steps.
    pub fn heights(&self, slot: Slot) -> [i32; 2] {
        self.quads[quad_of(slot)].heights[corner_of(slot)]
    }

    pub fn facts(&self, slot: Slot) -> &PatchFacts {
        &self.rest[quad_of(slot)][corner_of(slot)].facts
    }

    /// When a loaded patch took its parent's place in the picture; long ago where it did not.
    pub fn replaced_parent_s(&self, slot: Slot) -> f64 {
        self.rest[quad_of(slot)][corner_of(slot)].replaced_parent_s
    }

    /// Notes what the next frame's cut is made of, and which patches above are replaced by it.
    /// Patches that take their parent's place do it now.
    pub fn note_cut(
        &mut self,
        cut: impl Iterator<Item = Slot>,
        replaced: impl Iterator<Item = Slot>,
        now_s: f64,
    ) {
        let last = self.frame;
        self.frame += 1;
        for slot in cut {
            let (quad, corner) = (quad_of(slot), corner_of(slot));
            let place = &mut self.places[quad][corner];
            let came = place.cut != last;
            place.cut = self.frame;
            let parent = self.quads[quad].parent;
            if came && parent != NONE && self.place(parent).cut == last {
                self.rest[quad][corner].replaced_parent_s = now_s;
            }
        }
        for slot in replaced {
            self.places[quad_of(slot)][corner_of(slot)].replaced = self.frame;
        }
    }

    /// The level of what is drawn across a side of a patch of the last cut, where it is no finer;
    /// none at the world's border.
    pub fn level_across(&self, slot: Slot, key: PatchKey, side: Side) -> Option<u8> {
        let (mut at, mut level) = self.across(slot, key, side)?;
        loop {
            let place = self.place(at);
            if place.cut == self.frame {
                return Some(level);
            }
            let parent = self.quads[quad_of(at)].parent;
            if place.replaced == self.frame || parent == NONE {
                return None;
            }
            (at, level) = (parent, level + 1);
        }
    }

    /// The patch across a side, or the finest above it that is here, and its level.
    fn across(&self, slot: Slot, key: PatchKey, side: Side) -> Option<(Slot, u8)> {
        let (bit, forward) = side.axis();
        if (slot & bit == 0) == forward {
            return Some((slot ^ bit, key.level));
        }
        if key.level == self.layout.coarsest() {
            return self.root_across(key, side).map(|slot| (slot, key.level));
        }
        let parent = self.quads[quad_of(slot)].parent;
        let (above, level) = self.across(parent, key.parent(), side)?;
        let quad = (self.children(above)).filter(|_| level == key.level + 1);
        Some(match quad {
            Some(quad) => (quad * 4 + ((slot % 4) ^ bit), key.level),
            None => (above, level),
        })
    }

    fn root_across(&self, key: PatchKey, side: Side) -> Option<Slot> {
        let (bit, forward) = side.axis();
        let step = if forward { 1 } else { -1 };
        let (dx, dz) = if bit == 1 { (step, 0) } else { (0, step) };
        let (x, z) = (key.x.checked_add_signed(dx)?, key.z.checked_add_signed(dz)?);
        let across = PatchKey::new(key.level, x, z);
        self.layout.contains(across).then(|| self.root(across))
    }

    fn place(&self, slot: Slot) -> Places {
        self.places[quad_of(slot)][corner_of(slot)]
    }

    fn add_quad(&mut self, parent: Slot) -> u32 {
        let quad = Quad {
            heights: [[0; 2]; 4],
            children: [NONE; 4],
            parent,
            loaded: 0,
        };
        let places = [Places::default(); 4];
        let unknown = Rest {
            facts: PatchFacts::default(),
            replaced_parent_s: f64::NEG_INFINITY,
        };
        if let Some(number) = self.free.pop() {
            self.quads[number as usize] = quad;
            self.places[number as usize] = places;
            self.rest[number as usize] = [unknown; 4];
            return number;
        }
        self.quads.push(quad);
        self.places.push(places);
        self.rest.push([unknown; 4]);
        self.quads.len() as u32 - 1
    }
}

fn quad_of(slot: Slot) -> usize {
    slot as usize / 4
}

fn corner_of(slot: Slot) -> usize {
    slot as usize % 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn layout(size: [u32; 2], most_levels: u8) -> Layout {
        Layout::with_levels(size, 32, 128, most_levels, 1).unwrap()
    }

    fn facts(number: i32) -> PatchFacts {
        PatchFacts {
            heights: [number, number + 1],
            error_m: number as f32,
            ..PatchFacts::default()
        }
    }

    /// A cut through the levels: what a number says is split is split, if all its children are
    /// in the tree.
    fn cut(
        layout: &Layout,
        seed: u64,
        key: PatchKey,
        loaded: &HashMap<PatchKey, PatchFacts>,
        cut: &mut [HashSet<PatchKey>; 2],
    ) {
        let number = (key.level as u64) << 40 | (key.x as u64) << 20 | key.z as u64;
        let wanted = (number ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 != 0;
        let are_loaded = || {
            let mut children = layout.present_children(key);
            children.all(|child| loaded.contains_key(&child))
        };
        if key.level > 0 && wanted && are_loaded() {
            cut[1].insert(key);
            for child in layout.present_children(key) {
                self::cut(layout, seed, child, loaded, cut);
            }
        } else {
            cut[0].insert(key);
        }
    }

    /// What is drawn across a side, looked up by names.
    fn across(
        layout: &Layout,
        [cut, replaced]: &[HashSet<PatchKey>; 2],
        key: PatchKey,
        side: Side,
    ) -> Option<u8> {
        let (dx, dz) = match side {
            Side::North => (0, -1),
            Side::East => (1, 0),
            Side::South => (0, 1),
            Side::West => (-1, 0),
        };
        let (x, z) = (key.x.checked_add_signed(dx)?, key.z.checked_add_signed(dz)?);
        let mut at = PatchKey::new(key.level, x, z);
        while layout.contains(at) && !replaced.contains(&at) {
            if cut.contains(&at) {
                return Some(at.level);
            }
            at = at.parent();
        }
        None
    }

    proptest! {
        #[test]
        fn it_knows_what_a_map_of_names_knows(
            size in prop::array::uniform2(1u32..900),
            most_levels in 1u8..6,
            moves in prop::collection::vec((any::<u64>(), 0u8..6, 0u8..4), 1..400),
            seed: u64,
        ) {
            let layout = layout(size, most_levels);
            let mut tree = PatchTree::new(layout);
            let mut twin: HashMap<PatchKey, PatchFacts> = HashMap::new();
            for key in layout.keys(layout.coarsest()) {
                tree.insert(key, facts(0));
                twin.insert(key, facts(0));
            }
            for (number, (place, level, luck)) in moves.into_iter().enumerate() {
                let level = level % layout.levels;
                let [nx, nz] = layout.patches(level);
                let key = PatchKey::new(level, place as u32 % nx, (place >> 32) as u32 % nz);
                if luck == 0 && level < layout.coarsest() {
                    tree.remove(key);
                    twin.remove(&key);
                } else {
                    tree.insert(key, facts(number as i32));
                    twin.insert(key, facts(number as i32));
                }
            }
            for key in (0..layout.levels).flat_map(|level| layout.keys(level)) {
                let found = tree.find(key).map(|slot| *tree.facts(slot));
                prop_assert_eq!(found, twin.get(&key).copied());
                let heights = tree.find(key).map(|slot| tree.heights(slot));
                prop_assert_eq!(heights, twin.get(&key).map(|facts| facts.heights));
            }
            let used = tree.quads.len() - tree.free.len();
            let above = |&key: &PatchKey| std::iter::successors(Some(key), |key| Some(key.parent())).take_while(|key| key.level < layout.coarsest());
            let quads: HashSet<PatchKey> = twin.keys().flat_map(|key| above(key).collect::<Vec<_>>()).map(PatchKey::parent).collect();
            let [columns, rows] = layout.patches(layout.coarsest()).map(|n| n.div_ceil(2) as usize);
            prop_assert_eq!(used, quads.len() + columns * rows);

            let mut sets = [HashSet::new(), HashSet::new()];
            for key in layout.keys(layout.coarsest()) {
                cut(&layout, seed, key, &twin, &mut sets);
            }
            let slots = |keys: &HashSet<PatchKey>| keys.iter().map(|&key| tree.find(key).unwrap()).collect::<Vec<_>>();
            let [in_cut, replaced] = [slots(&sets[0]), slots(&sets[1])];
            tree.note_cut(in_cut.into_iter(), replaced.into_iter(), 0.0);
            for &key in &sets[0] {
                for side in Side::ALL {
                    let level = tree.level_across(tree.find(key).unwrap(), key, side);
                    prop_assert_eq!(level, across(&layout, &sets, key, side), "{} {:?}", key, side);
                }
            }
        }
    }

    #[test]
    fn who_takes_its_parents_place_is_noted_once() {
        let layout = layout([128, 128], 9);
        let mut tree = PatchTree::new(layout);
        let parent = PatchKey::new(1, 0, 1);
        let child = parent.children()[2];
        for key in (0..layout.levels).flat_map(|level| layout.keys(level)) {
            tree.insert(key, facts(1));
        }
        let [above, below] = [parent, child].map(|key| tree.find(key).unwrap());
        let mut note = |cut, replaced, now_s| {
            tree.note_cut([cut].into_iter(), std::iter::once(replaced), now_s);
            tree.replaced_parent_s(below)
        };
        let root = PatchTree::new(layout).root(PatchKey::new(2, 0, 0));
        assert_eq!(note(above, root, 1.0), f64::NEG_INFINITY);
        assert_eq!(note(below, above, 2.0), 2.0);
        assert_eq!(note(below, above, 3.0), 2.0, "it was there already");
        assert_eq!(note(root, root, 4.0), 2.0);
        assert_eq!(note(below, above, 5.0), 2.0, "its parent was not drawn");
    }
}
