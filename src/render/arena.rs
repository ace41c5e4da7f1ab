//! Ranges of a buffer: what is written into one stays there until it is given back.
//!
//! `range-alloc` finds the room, best fit first; nothing is ever moved. The arena begins small and
//! may be made longer.
//!
//! Invariant: ranges in use never overlap.

use range_alloc::RangeAllocator;

/// Hands out ranges of elements; holds no buffer itself.
#[derive(Debug)]
pub struct Arena {
    ranges: RangeAllocator<u32>,
    used: u64,
}

impl Arena {
    pub fn new(len: u32) -> Self {
        Arena {
            ranges: RangeAllocator::new(0..len),
            used: 0,
        }
    }

    /// The first of `len` elements, or none when no such range is free.
    pub fn take(&mut self, len: u32) -> Option<u32> {
        let range = self.ranges.allocate_range(len.max(1)).ok()?;
        self.used += u64::from(len);
        Some(range.start)
    }

    /// Gives back the range that [`Arena::take`] returned for `len`.
    pub fn give_back(&mut self, start: u32, len: u32) {
        self.ranges.free_range(start..start + len.max(1));
        self.used -= u64::from(len);
    }

    /// Makes the arena longer.
    pub fn grow(&mut self, len: u32) {
        self.ranges.grow_to(len);
    }

    /// Elements in use.
    pub fn used(&self) -> u64 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_never_overlap_and_all_come_back(steps in prop::collection::vec((any::<bool>(), 1u32..=100, any::<prop::sample::Index>()), 1..300)) {
            let (mut arena, mut all) = (Arena::new(500), 500);
            let mut live: Vec<(u32, u32)> = Vec::new();
            for (number, (take, len, pick)) in steps.into_iter().enumerate() {
                if number == 100 {
                    all = 800;
                    arena.grow(all);
                }
                if take || live.is_empty() {
                    if let Some(start) = arena.take(len) {
                        prop_assert!(start + len <= all);
                        prop_assert!(live.iter().all(|&(other, other_len)| start + len <= other || other + other_len <= start));
                        live.push((start, len));
                    }
                } else {
                    let (start, len) = live.swap_remove(pick.index(live.len()));
                    arena.give_back(start, len);
                }
                prop_assert_eq!(arena.used(), live.iter().map(|&(_, len)| u64::from(len)).sum::<u64>());
            }
            for (start, len) in live {
                arena.give_back(start, len);
            }
            // Whole again.
            prop_assert_eq!(arena.take(all), Some(0));
            prop_assert_eq!(arena.take(1), None);
        }
    }
}
