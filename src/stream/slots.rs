//! One state machine for all that is loaded piece by piece: sections of a world, patches on the
//! GPU, and whatever else comes in parts.
//!
//! A piece is not asked for (then nothing is kept of it), asked for, here, or failed. Every request
//! has a ticket; an answer whose ticket is not the one that its piece waits for is late and counts
//! for nothing. What fails waits, twice as long each time, and is forgotten when nobody asks for
//! it any more. What is here has a size and the last frame that visited it; pinned pieces are
//! visited for ever.
//!
//! Invariants: the running totals are the sums over all pieces; what was visited in a frame is not
//! given up in it.

use rustc_hash::FxHashMap;
use std::hash::Hash;

pub type Ticket = u64;

const FIRST_PAUSE_S: f64 = 0.25;
const LONGEST_PAUSE_S: f64 = 30.0;
/// After so many failures more tries are hardly worth waiting for.
const LASTING_TRIES: u32 = 3;
/// A failure that nobody tries again for so long after its pause is forgotten.
const FORGET_AFTER_S: f64 = 10.0;
const FOR_EVER: u64 = u64::MAX;

#[derive(Debug)]
enum State<V> {
    /// `tries` failed before.
    Asked { ticket: Ticket, tries: u32 },
    Here {
        value: V,
        bytes: usize,
        visited: u64,
    },
    Failed {
        tries: u32,
        until_s: f64,
        why: String,
    },
}

/// What became of an answer.
#[derive(Debug, PartialEq)]
pub enum Arrival {
    /// Nobody waits for it.
    Late,
    Here,
    /// True for the first time.
    Failed(bool),
}

#[derive(Debug)]
pub struct Slots<K, V> {
    states: FxHashMap<K, State<V>>,
    /// Bytes of all that is here, and of what is pinned among it.
    bytes: usize,
    pinned_bytes: usize,
}

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        Slots {
            states: FxHashMap::default(),
            bytes: 0,
            pinned_bytes: 0,
        }
    }
}

impl<K: Copy + Eq + Hash + Ord, V> Slots<K, V> {
    pub fn get(&self, key: K) -> Option<&V> {
        match self.states.get(&key) {
            Some(State::Here { value, .. }) => Some(value),
            _ => None,
        }
    }

    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        match self.states.get_mut(&key) {
            Some(State::Here { value, .. }) => Some(value),
            _ => None,
        }
    }

    /// All that is here.
    pub fn here(&self) -> impl Iterator<Item = (K, &V)> {
        self.states.iter().filter_map(|(key, state)| match state {
            State::Here { value, .. } => Some((*key, value)),
            _ => None,
        })
    }

    /// Takes a piece that nobody asked for; it stays for ever.
    pub fn pin(&mut self, key: K, value: V, bytes: usize) {
        self.set(
            key,
            State::Here {
                value,
                bytes,
                visited: FOR_EVER,
            },
        );
    }

    /// Whether a piece may be asked for now: it is neither here nor on its way nor in a pause.
    pub fn may_ask(&self, key: K, now_s: f64) -> bool {
        match self.states.get(&key) {
            None => true,
            Some(State::Failed { until_s, .. }) => now_s >= *until_s,
            Some(_) => false,
        }
    }

    /// Notes that a piece is asked for.
    pub fn ask(&mut self, key: K, ticket: Ticket) {
        let tries = match self.states.get(&key) {
            Some(State::Failed { tries, .. }) => *tries,
            _ => 0,
        };
        self.set(key, State::Asked { ticket, tries });
    }

    /// Takes an answer, with its size where it is one.
    pub fn arrive(
        &mut self,
        key: K,
        ticket: Ticket,
        result: Result<(V, usize), String>,
        frame: u64,
        now_s: f64,
    ) -> Arrival {
        let tries = match self.states.get(&key) {
            Some(State::Asked {
                ticket: asked,
                tries,
            }) if *asked == ticket => *tries,
            _ => return Arrival::Late,
        };
        match result {
            Ok((value, bytes)) => {
                self.set(
                    key,
                    State::Here {
                        value,
                        bytes,
                        visited: frame,
                    },
                );
                Arrival::Here
            }
            Err(why) => {
                let pause_s = (FIRST_PAUSE_S * 2f64.powi(tries as i32)).min(LONGEST_PAUSE_S);
                let failed = State::Failed {
                    tries: tries.saturating_add(1),
                    until_s: now_s + pause_s,
                    why,
                };
                self.set(key, failed);
                Arrival::Failed(tries == 0)
            }
        }
    }

    /// Changes how much memory a piece takes that is here.
    pub fn resize(&mut self, key: K, size: usize) {
        if let Some(State::Here { bytes, visited, .. }) = self.states.get_mut(&key) {
            self.bytes = self.bytes - *bytes + size;
            if *visited == FOR_EVER {
                self.pinned_bytes = self.pinned_bytes - *bytes + size;
            }
            *bytes = size;
        }
    }

    pub fn touch(&mut self, key: K, frame: u64) {
        if let Some(State::Here { visited, .. }) = self.states.get_mut(&key) {
            *visited = frame.max(*visited);
        }
    }

    /// Gives a piece up, whatever state it is in.
    pub fn release(&mut self, key: K) -> Option<V> {
        let state = self.states.remove(&key)?;
        self.count(&state, -1);
        match state {
            State::Here { value, .. } => Some(value),
            _ => None,
        }
    }

    /// What is here and was not visited in this frame, those visited longest ago first and of
    /// those left at the same time the lesser keys.
    pub fn oldest(&self, frame: u64) -> Vec<K> {
        let old = self.states.iter().filter_map(|(&key, state)| match state {
            State::Here { visited, .. } if *visited < frame => Some((*visited, key)),
            _ => None,
        });
        let mut old: Vec<(u64, K)> = old.collect();
        old.sort_unstable();
        old.into_iter().map(|(_, key)| key).collect()
    }

    /// Gives up what nobody visited for longest while all but the pinned pieces take more bytes.
    pub fn shrink(&mut self, most_bytes: usize, frame: u64) {
        if self.loose_bytes() <= most_bytes {
            return;
        }
        for key in self.oldest(frame) {
            if self.loose_bytes() <= most_bytes {
                break;
            }
            self.release(key);
        }
    }

    /// Forgets failures that nobody asks for again.
    pub fn forget_failures(&mut self, now_s: f64) {
        self.states.retain(|_, state| {
            !matches!(state, State::Failed { until_s, .. } if now_s >= *until_s + FORGET_AFTER_S)
        });
    }

    /// Bytes of all that is here.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Those of pieces that are not pinned.
    pub fn loose_bytes(&self) -> usize {
        self.bytes - self.pinned_bytes
    }

    /// Pieces here or on their way.
    pub fn occupied(&self) -> usize {
        self.states.len() - self.failed()
    }

    pub fn failed(&self) -> usize {
        let failed = |state: &&State<V>| matches!(state, State::Failed { .. });
        self.states.values().filter(failed).count()
    }

    /// Why a piece failed again and again that is still tried.
    pub fn lasting_failure(&self) -> Option<&str> {
        let mut lasting = self.states.values().filter_map(|state| match state {
            State::Failed { tries, why, .. } if *tries >= LASTING_TRIES => Some(why.as_str()),
            _ => None,
        });
        lasting.next()
    }

    fn set(&mut self, key: K, state: State<V>) {
        self.count(&state, 1);
        if let Some(before) = self.states.insert(key, state) {
            self.count(&before, -1);
        }
    }

    fn count(&mut self, state: &State<V>, sign: isize) {
        if let State::Here { bytes, visited, .. } = state {
            let change = sign * *bytes as isize;
            self.bytes = self.bytes.wrapping_add_signed(change);
            if *visited == FOR_EVER {
                self.pinned_bytes = self.pinned_bytes.wrapping_add_signed(change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fails_waits_longer_each_time_and_is_told_once() {
        let mut slots: Slots<u32, ()> = Slots::default();
        let (mut tried, mut told) = (Vec::new(), 0);
        for tick in 0..400u32 {
            let now_s = f64::from(tick) * 0.1;
            if slots.may_ask(7, now_s) {
                slots.ask(7, tick.into());
                assert!(slots.lasting_failure().is_none() || tried.len() >= 3);
                let failed = slots.arrive(7, tick.into(), Err("no".into()), 0, now_s);
                told += u32::from(failed == Arrival::Failed(true));
                tried.push(now_s);
                assert_eq!(slots.lasting_failure().is_some(), tried.len() >= 3);
            }
        }
        let pauses: Vec<f64> = tried.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(tried.len() >= 5 && pauses.windows(2).all(|pair| pair[1] > pair[0] * 1.4));
        assert_eq!((told, slots.failed(), slots.occupied()), (1, 1, 0));
        slots.forget_failures(1e3);
        assert_eq!(slots.failed(), 0);
    }

    #[test]
    fn late_answers_count_for_nothing_and_pinned_pieces_stay() {
        let mut slots: Slots<u32, char> = Slots::default();
        slots.ask(1, 10);
        slots.release(1);
        slots.ask(1, 11);
        assert_eq!(slots.arrive(1, 10, Ok(('a', 5)), 0, 0.0), Arrival::Late);
        assert_eq!(slots.arrive(1, 11, Ok(('b', 5)), 0, 0.0), Arrival::Here);
        assert_eq!(slots.arrive(1, 11, Ok(('c', 5)), 0, 0.0), Arrival::Late);
        slots.pin(2, 'p', 100);
        slots.shrink(0, 9);
        assert_eq!((slots.get(1), slots.get(2)), (None, Some(&'p')));
        assert_eq!((slots.bytes(), slots.loose_bytes()), (100, 0));
    }

    proptest! {
        #[test]
        fn totals_are_sums_and_what_was_just_visited_stays(
            moves in prop::collection::vec((0u8..6, 0u32..8, 0usize..50), 1..200),
        ) {
            let mut slots: Slots<u32, usize> = Slots::default();
            for (frame, (what, key, size)) in (1u64..).zip(moves) {
                match what {
                    0 | 1 if slots.may_ask(key, frame as f64) => {
                        slots.ask(key, frame);
                        let result = if what == 0 { Ok((size, size)) } else { Err("no".into()) };
                        slots.arrive(key, frame, result, frame, frame as f64);
                    }
                    2 if key < 2 => slots.pin(key, size, size),
                    3 => {
                        if let Some(value) = slots.get_mut(key) {
                            *value = size;
                        }
                        slots.resize(key, size);
                    }
                    4 => {
                        slots.touch(key, frame);
                        let was_here = slots.get(key).is_some();
                        slots.shrink(size, frame);
                        prop_assert_eq!(slots.get(key).is_some(), was_here);
                        let others = slots.oldest(frame).len();
                        prop_assert!(slots.loose_bytes() <= size || others == 0);
                    }
                    5 => drop(slots.release(key)),
                    _ => {}
                }
                prop_assert_eq!(slots.bytes(), slots.here().map(|(_, value)| value).sum::<usize>());
            }
        }
    }
}
