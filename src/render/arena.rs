//! Slots of a fixed buffer: a patch's vertices are written once into one and stay there.
//!
//! The buffer is cut into pages as large as the largest patch; a page is cut into equal slots
//! when its first slot is taken and is whole again when its last one is given back. Patches of
//! one size share pages, so nothing is ever moved and nothing fragments for long.
//!
//! Invariants: slots in use never overlap; a page's slots are all of one size.

use std::collections::HashMap;

/// How many slots a page may be cut into.
const CUTS: [u32; 11] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48];

/// Hands out ranges of a buffer of `pages * page_len` elements; holds no buffer itself.
#[derive(Debug)]
pub struct Arena {
    page_len: u32,
    free_pages: Vec<u32>,
    /// Free slots by number of slots a page, as first elements.
    free_slots: HashMap<u32, Vec<u32>>,
    /// Slots in use of each page that is cut.
    cut_pages: HashMap<u32, u32>,
    used: u64,
}

impl Arena {
    pub fn new(page_len: u32, pages: u32) -> Self {
        Arena {
            page_len,
            free_pages: (0..pages).rev().collect(),
            free_slots: HashMap::new(),
            cut_pages: HashMap::new(),
            used: 0,
        }
    }

    /// The first element of a slot for `len` elements, or none when no slot is free.
    pub fn take(&mut self, len: u32) -> Option<u32> {
        let cuts = self.cuts_for(len)?;
        let slot = match self.free_slots.get_mut(&cuts).and_then(Vec::pop) {
            Some(slot) => slot,
            None => self.cut_page(cuts)?,
        };
        let in_use = self
            .cut_pages
            .get_mut(&(slot / self.page_len))
            .expect("a slot's page is cut");
        *in_use += 1;
        self.used += (self.page_len / cuts) as u64;
        Some(slot)
    }

    /// Gives back the slot that [`Arena::take`] returned for `len`.
    pub fn give_back(&mut self, slot: u32, len: u32) {
        let page = slot / self.page_len;
        let cuts = self.cuts_for(len).expect("the length was taken before");
        let in_use = self.cut_pages.get_mut(&page).expect("a slot's page is cut");
        *in_use -= 1;
        let page_is_empty = *in_use == 0;
        self.used -= (self.page_len / cuts) as u64;
        let free = self.free_slots.entry(cuts).or_default();
        if page_is_empty {
            free.retain(|slot| slot / self.page_len != page);
            self.cut_pages.remove(&page);
            self.free_pages.push(page);
        } else {
            free.push(slot);
        }
    }

    /// Elements in slots that are in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    fn cuts_for(&self, len: u32) -> Option<u32> {
        CUTS.into_iter()
            .rev()
            .find(|&cuts| len <= self.page_len / cuts)
    }

    fn cut_page(&mut self, cuts: u32) -> Option<u32> {
        let page = self.free_pages.pop()?;
        let (start, slot_len) = (page * self.page_len, self.page_len / cuts);
        self.cut_pages.insert(page, 0);
        let free = self.free_slots.entry(cuts).or_default();
        free.extend((1..cuts).rev().map(|i| start + i * slot_len));
        Some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slots_never_overlap_and_all_come_back(steps in prop::collection::vec((any::<bool>(), 1u32..=100, any::<prop::sample::Index>()), 1..300)) {
            let mut arena = Arena::new(100, 8);
            let mut live: Vec<(u32, u32)> = Vec::new();
            for (take, len, pick) in steps {
                if take || live.is_empty() {
                    match arena.take(len) {
                        Some(slot) => {
                            prop_assert!(slot + len <= 800);
                            prop_assert!(live.iter().all(|&(other, other_len)| slot + len <= other || other + other_len <= slot));
                            live.push((slot, len));
                        }
                        // Only when every page has a slot in use.
                        None => prop_assert!(live.len() >= 8),
                    }
                } else {
                    let (slot, len) = live.swap_remove(pick.index(live.len()));
                    arena.give_back(slot, len);
                }
            }
            for (slot, len) in live {
                arena.give_back(slot, len);
            }
            prop_assert_eq!(arena.used(), 0);
            // Whole again: every page can be had at full length.
            for _ in 0..8 {
                prop_assert!(arena.take(100).is_some());
            }
            prop_assert!(arena.take(1).is_none());
        }
    }

    #[test]
    fn too_long_is_refused() {
        assert_eq!(Arena::new(100, 8).take(101), None);
    }
}
