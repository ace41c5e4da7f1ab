//! The sections' states, and what they take in memory.
//!
//! Invariant: the totals are the sums over the sections, though nobody adds them up.

use super::{Pause, Pending};
use crate::world::{Section, SectionKey};
use rustc_hash::FxHashMap;
use std::sync::Arc;

#[derive(Debug)]
pub enum SectionState {
    Preparing(Pending),
    Prepared { section: Arc<Section>, visited: u64 },
    Failed(Pause),
}

impl SectionState {
    fn bytes(&self) -> usize {
        match self {
            SectionState::Prepared { section, .. } => section.bytes,
            _ => 0,
        }
    }
}

/// A section that is visited for ever is the global repository's.
const FOR_EVER: u64 = u64::MAX;

#[derive(Default)]
pub struct Sections {
    states: FxHashMap<SectionKey, SectionState>,
    /// Bytes of all prepared sections, and of the global repository's among them.
    bytes: usize,
    kept_bytes: usize,
}

impl Sections {
    pub fn get(&self, key: SectionKey) -> Option<&SectionState> {
        self.states.get(&key)
    }

    pub fn values(&self) -> impl Iterator<Item = &SectionState> {
        self.states.values()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn keep_forever(&mut self, section: Arc<Section>) {
        let (key, visited) = (section.key, FOR_EVER);
        self.kept_bytes += section.bytes;
        self.set(key, SectionState::Prepared { section, visited });
    }

    pub fn set(&mut self, key: SectionKey, state: SectionState) {
        self.bytes += state.bytes();
        let before = self.states.insert(key, state);
        self.bytes -= before.map_or(0, |state| state.bytes());
    }

    pub fn touch(&mut self, key: SectionKey, frame: u64) {
        if let Some(SectionState::Prepared { visited, .. }) = self.states.get_mut(&key) {
            *visited = frame.max(*visited);
        }
    }

    /// Forgets failures that wait no longer; they take no bytes.
    pub fn forget_failures(&mut self, waits: impl Fn(&Pause) -> bool) {
        self.states
            .retain(|_, state| !matches!(state, SectionState::Failed(pause) if !waits(pause)));
    }

    /// Drops the sections that nobody has visited for longest, none of them in this frame, while
    /// all but the global repository take more than `most_bytes`.
    pub fn drop_old(&mut self, most_bytes: usize, frame: u64) {
        if self.streamed_bytes() <= most_bytes {
            return;
        }
        let old = self.states.iter().filter_map(|(&key, state)| match state {
            SectionState::Prepared { visited, .. } if *visited < frame => Some((*visited, key)),
            _ => None,
        });
        let mut old: Vec<(u64, SectionKey)> = old.collect();
        old.sort();
        for (_, key) in old {
            if self.streamed_bytes() <= most_bytes {
                break;
            }
            let dropped = self.states.remove(&key);
            self.bytes -= dropped.map_or(0, |state| state.bytes());
        }
    }

    fn streamed_bytes(&self) -> usize {
        self.bytes - self.kept_bytes
    }

    /// The totals, all and streamed, the long way.
    #[cfg(test)]
    pub fn sums(&self) -> [usize; 2] {
        let streamed = self.values().filter(|state| {
            !matches!(state, SectionState::Prepared { visited, .. } if *visited == FOR_EVER)
        });
        let all = self.values().map(SectionState::bytes).sum();
        [all, streamed.map(SectionState::bytes).sum()]
    }

    #[cfg(test)]
    pub fn totals(&self) -> [usize; 2] {
        [self.bytes, self.streamed_bytes()]
    }
}
