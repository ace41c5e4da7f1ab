//! What a strategy of level of detail decides, and why a patch is drawn at the level that it is.

use super::lod::{Range, RangeReason};
use crate::world::{Layout, PatchKey};
use rustc_hash::FxHashMap;

/// Which levels are to be drawn where.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// By distance, finest level first, none for the coarsest; vertices morph.
    Ranges(Vec<Range>),
    /// By stream patch; nothing morphs, skirts hide the steps.
    Fixed(FixedLevels),
    /// What was drawn last, and nothing is asked for.
    Keep,
}

impl Decision {
    /// The ranges, where they decide.
    pub fn ranges(&self) -> &[Range] {
        match self {
            Decision::Ranges(ranges) => ranges,
            Decision::Fixed(_) | Decision::Keep => &[],
        }
    }
}

/// The finest level to draw in each stream patch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FixedLevels {
    /// Where no other is said.
    pub level: u8,
    levels: FxHashMap<PatchKey, u8>,
}

impl FixedLevels {
    /// The same level everywhere.
    pub fn everywhere(level: u8) -> Self {
        FixedLevels {
            level,
            levels: FxHashMap::default(),
        }
    }

    /// Sets the level of one stream patch.
    pub fn set(&mut self, stream_patch: PatchKey, level: u8) {
        self.levels.insert(stream_patch, level);
    }

    pub fn get(&self, stream_patch: PatchKey) -> u8 {
        let level = self.levels.get(&stream_patch);
        level.copied().unwrap_or(self.level)
    }

    /// Whether a patch is to be replaced by finer ones: its stream patch, or one of those under
    /// it, asks for that.
    pub fn splits(&self, layout: &Layout, key: PatchKey) -> bool {
        let stream_level = layout.stream_levels.saturating_sub(1);
        let shift = |a: u8, b: u8| a.saturating_sub(b);
        if key.level <= stream_level {
            let up = shift(stream_level, key.level);
            return self.get(PatchKey::new(stream_level, key.x >> up, key.z >> up)) < key.level;
        }
        let up = shift(key.level, stream_level);
        let is_under = |other: &PatchKey| [other.x >> up, other.z >> up] == [key.x, key.z];
        self.level < key.level
            || self
                .levels
                .iter()
                .any(|(other, level)| *level < key.level && is_under(other))
    }
}

/// Why a patch is drawn, and not its parent or its children.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case", tag = "because")]
pub enum Why {
    /// There is nothing finer.
    Finest,
    /// It is further away than the next finer level reaches, and what set that.
    Range {
        finer_ends_m: f64,
        set_by: RangeReason,
    },
    /// Its level was chosen by hand.
    Fixed,
    /// Not all of its children are loaded.
    Waits,
    /// Memory has no room for anything finer.
    NoRoom,
    /// It was drawn before, and nothing changes.
    Kept,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_patch_splits_where_a_stream_patch_under_it_asks_for_finer(
            seeds in prop::collection::vec((0u32..8, 0u32..8, 0u8..7), 0..6),
            level in 0u8..7,
        ) {
            let layout = Layout::new([1024, 1024], 32, 128).unwrap();
            let stream = layout.stream_levels - 1;
            let mut fixed = FixedLevels::everywhere(level);
            seeds.iter().for_each(|(x, z, level)| fixed.set(PatchKey::new(stream, *x, *z), *level));
            for key in (0..layout.levels).flat_map(|level| layout.keys(level)) {
                let naive = layout.keys(stream).any(|patch| {
                    let [a, b] = if key.level > stream { [patch, key] } else { [key, patch] };
                    let up = b.level - a.level;
                    let together = [a.x >> up, a.z >> up] == [b.x, b.z];
                    together && fixed.get(patch) < key.level
                });
                prop_assert_eq!(fixed.splits(&layout, key), naive, "{}", key);
            }
        }
    }
}
