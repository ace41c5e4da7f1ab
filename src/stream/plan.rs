//! What to read, build and drop next: pure decisions, tested without a thread.
//!
//! Every stream patch has one state per level (a *section*): unprepared, preparing, prepared, or
//! failed; every patch of a prepared section is unloaded, loading, loaded or failed. A section
//! needs the heights of the coarser one under it, so what is ordered for a want is the coarsest
//! link that is missing. Every job has a ticket; an arrival whose ticket is not the one that its
//! section or patch waits for is dropped. What fails waits, twice as long each time, and is
//! forgotten when nobody wants it any more.
//!
//! Invariants: at most `max_jobs` tickets are open; at most `max_patches` patches are loading or
//! loaded; the global repository is never dropped; a patch that was touched in the current frame
//! is never evicted.

mod sections;

use super::BuiltPatch;
use crate::settings::StreamStats;
use crate::terrain::lod::Want;
use crate::world::{FormatError, HeightGrid, Layout, PatchKey, Section, SectionKey};
use rustc_hash::FxHashMap;
use sections::{SectionState, Sections};
use std::sync::Arc;

pub type Ticket = u64;

/// More would take a frame's thread longer than a frame; memory is counted in bytes elsewhere.
pub const MOST_PATCHES: usize = 1 << 14;

const FIRST_PAUSE_S: f64 = 0.25;
const LONGEST_PAUSE_S: f64 = 30.0;
/// After so many failures more tries are hardly worth waiting for.
const LASTING_TRIES: u32 = 3;
/// A failure that nobody tries again for so long after its pause is forgotten.
const FORGET_AFTER_S: f64 = 10.0;

#[derive(Clone, Copy, Debug)]
pub struct PlanLimits {
    /// Most jobs at the workers at a time.
    pub max_jobs: usize,
    /// Most patches loaded or loading.
    pub max_patches: usize,
    /// Bytes of sections kept in memory besides the global repository.
    pub section_bytes: usize,
}

impl Default for PlanLimits {
    fn default() -> Self {
        PlanLimits {
            max_jobs: 128,
            max_patches: MOST_PATCHES,
            section_bytes: 512 << 20,
        }
    }
}

/// Work for a worker.
#[derive(Debug)]
pub enum Job {
    Prepare {
        ticket: Ticket,
        key: SectionKey,
        coarser: Option<Arc<HeightGrid>>,
    },
    Build {
        ticket: Ticket,
        key: PatchKey,
        section: Arc<Section>,
        parent: Option<Arc<Section>>,
    },
}

/// What came of a job.
#[derive(Debug)]
pub enum Done {
    Prepared {
        ticket: Ticket,
        key: SectionKey,
        result: Result<Section, FormatError>,
    },
    Built {
        ticket: Ticket,
        key: PatchKey,
        result: Result<BuiltPatch, FormatError>,
    },
}

/// What the streamer must know of an arrival.
#[derive(Debug)]
pub enum Event {
    Built(BuiltPatch),
    /// Said once for each section and patch.
    FirstFailure(String),
}

/// Something a worker is on; `tries` failed before.
#[derive(Debug)]
struct Pending {
    ticket: Ticket,
    tries: u32,
}

#[derive(Debug)]
struct Pause {
    tries: u32,
    until_s: f64,
    why: String,
}

#[derive(Debug)]
enum PatchState {
    Loading(Pending),
    Loaded { visited: u64 },
    Failed(Pause),
}

pub struct Plan {
    layout: Layout,
    limits: PlanLimits,
    sections: Sections,
    patches: FxHashMap<PatchKey, PatchState>,
    last_ticket: Ticket,
    open_tickets: usize,
    frame: u64,
}

impl Plan {
    pub fn new(layout: Layout, limits: PlanLimits) -> Self {
        Plan {
            layout,
            limits,
            sections: Sections::default(),
            patches: FxHashMap::default(),
            last_ticket: 0,
            open_tickets: 0,
            frame: 0,
        }
    }

    /// Takes a section of the global repository.
    pub fn keep_forever(&mut self, section: Arc<Section>) {
        self.sections.keep_forever(section);
    }

    pub fn section(&self, key: SectionKey) -> Option<&Arc<Section>> {
        match self.sections.get(key) {
            Some(SectionState::Prepared { section, .. }) => Some(section),
            _ => None,
        }
    }

    pub fn is_loaded(&self, key: PatchKey) -> bool {
        matches!(self.patches.get(&key), Some(PatchState::Loaded { .. }))
    }

    /// A coarsest patch, loaded before the first frame and kept.
    pub fn assume_loaded(&mut self, key: PatchKey) {
        self.patches
            .insert(key, PatchState::Loaded { visited: u64::MAX });
    }

    /// Notes what this frame's selection visited.
    pub fn touch(&mut self, keys: &[PatchKey], frame: u64) {
        self.frame = frame;
        for key in keys {
            if let Some(PatchState::Loaded { visited }) = self.patches.get_mut(key) {
                *visited = frame.max(*visited);
            }
            self.sections.touch(self.layout.section_of(*key), frame);
        }
    }

    /// Orders what the wants need, in their order, as far as jobs and room allow.
    pub fn next_jobs(&mut self, wants: &[Want], now_s: f64) -> Vec<Job> {
        self.forget_failures(now_s);
        self.sections
            .drop_old(self.limits.section_bytes, self.frame);
        let mut jobs = Vec::new();
        let mut room = self.limits.max_patches.saturating_sub(self.occupied());
        for want in wants {
            if self.open_tickets >= self.limits.max_jobs {
                break;
            }
            let job = self.job_for(want.key, room > 0, now_s);
            room -= usize::from(matches!(job, Some(Job::Build { .. })));
            jobs.extend(job);
        }
        jobs
    }

    /// Takes what a worker finished; late arrivals are dropped.
    pub fn arrive(&mut self, done: Done, now_s: f64) -> Option<Event> {
        self.open_tickets -= 1;
        match done {
            Done::Prepared {
                ticket,
                key,
                result,
            } => self.arrive_section(ticket, key, result, now_s),
            Done::Built {
                ticket,
                key,
                result,
            } => self.arrive_patch(ticket, key, result, now_s),
        }
    }

    /// The scene has the patch on the GPU.
    pub fn loaded(&mut self, key: PatchKey) {
        if let Some(state) = self.patches.get_mut(&key) {
            *state = PatchState::Loaded {
                visited: self.frame,
            };
        }
    }

    /// There was no room for a patch that was built: it is as if it had never been asked for.
    pub fn refused(&mut self, key: PatchKey) {
        self.patches.remove(&key);
    }

    /// True when patches must go before others can come.
    pub fn is_full(&self) -> bool {
        self.occupied() >= self.limits.max_patches
    }

    /// Patches to drop so that `count` more fit: least recently touched first.
    pub fn evict(&mut self, count: usize) -> Vec<PatchKey> {
        let mut old: Vec<(u64, PatchKey)> = self
            .patches
            .iter()
            .filter_map(|(&key, state)| match state {
                PatchState::Loaded { visited } if *visited < self.frame => Some((*visited, key)),
                _ => None,
            })
            .collect();
        // Of patches left at the same time the finest go first: their ancestors can stand in.
        old.sort_by_key(|&(visited, key)| (visited, key.level, key.x, key.z));
        old.truncate(count);
        let old: Vec<PatchKey> = old.into_iter().map(|(_, key)| key).collect();
        self.patches.retain(|key, _| !old.contains(key));
        old
    }

    /// Why something failed again and again, of what is still tried.
    pub fn lasting_failure(&self) -> Option<&str> {
        let sections = self.sections.values().filter_map(|state| match state {
            SectionState::Failed(pause) => Some(pause),
            _ => None,
        });
        let patches = self.patches.values().filter_map(|state| match state {
            PatchState::Failed(pause) => Some(pause),
            _ => None,
        });
        let mut lasting = sections
            .chain(patches)
            .filter(|pause| pause.tries >= LASTING_TRIES);
        lasting.next().map(|pause| pause.why.as_str())
    }

    pub fn stats(&self) -> StreamStats {
        let prepared = self
            .sections
            .values()
            .filter(|state| matches!(state, SectionState::Prepared { .. }));
        let failed_sections = self
            .sections
            .values()
            .filter(|state| matches!(state, SectionState::Failed(_)));
        let failed_patches = self
            .patches
            .values()
            .filter(|state| matches!(state, PatchState::Failed(_)));
        StreamStats {
            sections_in_memory: prepared.count(),
            section_bytes: self.sections.bytes(),
            jobs_in_flight: self.open_tickets,
            failed: failed_sections.count() + failed_patches.count(),
        }
    }

    /// Patches that have or will have their place.
    fn occupied(&self) -> usize {
        let has_place = |state: &&PatchState| !matches!(state, PatchState::Failed(_));
        self.patches.values().filter(has_place).count()
    }

    /// The next job on the way to a loaded patch, if none is under way.
    fn job_for(&mut self, key: PatchKey, has_room: bool, now_s: f64) -> Option<Job> {
        let tries = match self.patches.get(&key) {
            Some(PatchState::Loading(_) | PatchState::Loaded { .. }) => return None,
            Some(PatchState::Failed(pause)) if now_s < pause.until_s => return None,
            Some(PatchState::Failed(pause)) => pause.tries,
            None => 0,
        };
        let own = self.layout.section_of(key);
        if let Some(missing) = self.missing_link(own) {
            return self.prepare(missing, now_s);
        }
        if !has_room {
            return None;
        }
        let section = self.section(own)?.clone();
        let parent = self.layout.coarser_section(own);
        let parent = parent.and_then(|parent| self.section(parent)).cloned();
        let ticket = self.new_ticket();
        let state = PatchState::Loading(Pending { ticket, tries });
        self.patches.insert(key, state);
        Some(Job::Build {
            ticket,
            key,
            section,
            parent,
        })
    }

    /// The coarsest section that is not prepared among those a patch's building needs.
    fn missing_link(&self, own: SectionKey) -> Option<SectionKey> {
        let mut missing = self.section(own).is_none().then_some(own);
        let mut next = self.layout.coarser_section(own);
        // The parent's section is always needed, those above it only while they are missing.
        while let Some(key) = next {
            if self.section(key).is_some() {
                break;
            }
            missing = Some(key);
            next = self.layout.coarser_section(key);
        }
        missing
    }

    fn prepare(&mut self, key: SectionKey, now_s: f64) -> Option<Job> {
        let tries = match self.sections.get(key) {
            Some(SectionState::Preparing(_)) => return None,
            Some(SectionState::Failed(pause)) if now_s < pause.until_s => return None,
            Some(SectionState::Failed(pause)) => pause.tries,
            _ => 0,
        };
        let coarser = self.layout.coarser_section(key);
        let coarser = coarser
            .and_then(|key| self.section(key))
            .map(|section| section.heights.clone());
        let ticket = self.new_ticket();
        let state = SectionState::Preparing(Pending { ticket, tries });
        self.sections.set(key, state);
        Some(Job::Prepare {
            ticket,
            key,
            coarser,
        })
    }

    fn new_ticket(&mut self) -> Ticket {
        self.open_tickets += 1;
        self.last_ticket += 1;
        self.last_ticket
    }

    fn arrive_section(
        &mut self,
        ticket: Ticket,
        key: SectionKey,
        result: Result<Section, FormatError>,
        now_s: f64,
    ) -> Option<Event> {
        let tries = match self.sections.get(key) {
            Some(SectionState::Preparing(pending)) if pending.ticket == ticket => pending.tries,
            _ => return None,
        };
        let (state, event) = match result {
            Ok(section) => {
                let section = Arc::new(section);
                let visited = self.frame;
                (SectionState::Prepared { section, visited }, None)
            }
            Err(error) => {
                let why = error.to_string();
                let event = (tries == 0).then(|| Event::FirstFailure(why.clone()));
                (SectionState::Failed(next_pause(tries, now_s, why)), event)
            }
        };
        self.sections.set(key, state);
        event
    }

    fn arrive_patch(
        &mut self,
        ticket: Ticket,
        key: PatchKey,
        result: Result<BuiltPatch, FormatError>,
        now_s: f64,
    ) -> Option<Event> {
        let tries = match self.patches.get(&key) {
            Some(PatchState::Loading(pending)) if pending.ticket == ticket => pending.tries,
            _ => return None,
        };
        match result {
            Ok(patch) => Some(Event::Built(patch)),
            Err(error) => {
                let why = format!("patch {key}: {error}");
                let event = (tries == 0).then(|| Event::FirstFailure(why.clone()));
                let state = PatchState::Failed(next_pause(tries, now_s, why));
                self.patches.insert(key, state);
                event
            }
        }
    }

    fn forget_failures(&mut self, now_s: f64) {
        let waits = |pause: &Pause| now_s < pause.until_s + FORGET_AFTER_S;
        self.patches
            .retain(|_, state| !matches!(state, PatchState::Failed(pause) if !waits(pause)));
        self.sections.forget_failures(waits);
    }
}

/// The pause after one more failure.
fn next_pause(tries: u32, now_s: f64, why: String) -> Pause {
    let pause_s = (FIRST_PAUSE_S * 2f64.powi(tries as i32)).min(LONGEST_PAUSE_S);
    Pause {
        tries: tries.saturating_add(1),
        until_s: now_s + pause_s,
        why,
    }
}

#[cfg(test)]
mod tests;
