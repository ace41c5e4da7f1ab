//! What to read, build, upload and drop next: pure decisions, tested without a thread.
//!
//! Every stream patch has one state per level (a *section*), and every patch of a prepared section
//! one of its own; both are kept in [`Slots`]. A section needs the heights of the coarser one under
//! it, so what is ordered for a want is the coarsest link that is missing. A patch that was built
//! waits, and counts as memory, until it is handed out, the most urgent one first.
//!
//! Invariants: at most `max_jobs` tickets are open; at most `max_patches` patches are loading or
//! loaded; the global repository is never dropped; a patch that was touched in the current frame
//! is never evicted.

use super::BuiltPatch;
use super::slots::{Arrival, Slots, Ticket};
use crate::settings::StreamStats;
use crate::terrain::lod::Want;
use crate::world::{FormatError, HeightGrid, Layout, PatchKey, Section, SectionKey};
use std::sync::Arc;

/// More would take a frame's thread longer than a frame; memory is counted in bytes elsewhere.
pub const MOST_PATCHES: usize = 1 << 14;

#[derive(Clone, Copy, Debug)]
pub struct PlanLimits {
    /// Most jobs at the workers at a time.
    pub max_jobs: usize,
    /// Most patches loaded or loading.
    pub max_patches: usize,
    /// Bytes of sections and of built patches kept in memory, besides the global repository.
    pub bytes: usize,
}

impl Default for PlanLimits {
    fn default() -> Self {
        PlanLimits {
            max_jobs: 128,
            max_patches: MOST_PATCHES,
            bytes: 512 << 20,
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

/// A patch that was built.
#[derive(Debug)]
enum Patch {
    /// Waits to be uploaded.
    Ready(Box<BuiltPatch>),
    /// The scene has it.
    Loaded,
}

pub struct Plan {
    layout: Layout,
    limits: PlanLimits,
    sections: Slots<SectionKey, Arc<Section>>,
    patches: Slots<PatchKey, Patch>,
    last_ticket: Ticket,
    open_tickets: usize,
    frame: u64,
}

impl Plan {
    pub fn new(layout: Layout, limits: PlanLimits) -> Self {
        Plan {
            layout,
            limits,
            sections: Slots::default(),
            patches: Slots::default(),
            last_ticket: 0,
            open_tickets: 0,
            frame: 0,
        }
    }

    /// Takes a section of the global repository.
    pub fn keep_forever(&mut self, section: Arc<Section>) {
        let bytes = section.bytes;
        self.sections.pin(section.key, section, bytes);
    }

    pub fn section(&self, key: SectionKey) -> Option<&Arc<Section>> {
        self.sections.get(key)
    }

    pub fn is_loaded(&self, key: PatchKey) -> bool {
        matches!(self.patches.get(key), Some(Patch::Loaded))
    }

    /// A coarsest patch, loaded before the first frame and kept.
    pub fn assume_loaded(&mut self, key: PatchKey) {
        self.patches.pin(key, Patch::Loaded, 0);
    }

    /// Notes what this frame's selection visited.
    pub fn touch(&mut self, keys: &[PatchKey], frame: u64) {
        self.frame = frame;
        for key in keys {
            self.patches.touch(*key, frame);
            self.sections.touch(self.layout.section_of(*key), frame);
        }
    }

    /// Orders what the wants need, in their order, as far as jobs and room allow.
    pub fn next_jobs(&mut self, wants: &[Want], now_s: f64) -> Vec<Job> {
        self.sections.forget_failures(now_s);
        self.patches.forget_failures(now_s);
        self.shrink();
        let mut jobs = Vec::new();
        let mut room = self
            .limits
            .max_patches
            .saturating_sub(self.patches.occupied());
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

    /// Takes what a worker finished; late arrivals are dropped. What failed for the first time is
    /// told.
    pub fn arrive(&mut self, done: Done, now_s: f64) -> Option<String> {
        self.open_tickets -= 1;
        let (arrival, why) = match done {
            Done::Prepared {
                ticket,
                key,
                result,
            } => {
                let result = result.map_err(|error| error.to_string());
                let why = result.as_ref().err().cloned();
                let result = result.map(|section| {
                    let bytes = section.bytes;
                    (Arc::new(section), bytes)
                });
                (
                    self.sections.arrive(key, ticket, result, self.frame, now_s),
                    why,
                )
            }
            Done::Built {
                ticket,
                key,
                result,
            } => {
                let result = result.map_err(|error| format!("patch {key}: {error}"));
                let why = result.as_ref().err().cloned();
                let result = result.map(|patch| {
                    let bytes = patch.bytes();
                    (Patch::Ready(Box::new(patch)), bytes)
                });
                (
                    self.patches.arrive(key, ticket, result, self.frame, now_s),
                    why,
                )
            }
        };
        why.filter(|_| arrival == Arrival::Failed(true))
    }

    /// Hands out patches that were built, the most urgent first, up to so many bytes (one at least).
    pub fn take_ready(&mut self, wants: &[Want], budget_bytes: usize) -> Vec<BuiltPatch> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for want in wants {
            let Some(Patch::Ready(patch)) = self.patches.get(want.key) else {
                continue;
            };
            bytes += patch.bytes();
            if bytes > budget_bytes && !taken.is_empty() {
                break;
            }
            let patch = self.patches.get_mut(want.key);
            if let Some(Patch::Ready(patch)) = patch.map(|p| std::mem::replace(p, Patch::Loaded)) {
                self.patches.resize(want.key, 0);
                taken.push(*patch);
            }
        }
        taken
    }

    /// There was no room for a patch that was handed out: it is as if it had never been asked for.
    pub fn refused(&mut self, key: PatchKey) {
        self.patches.release(key);
    }

    /// True when patches must go before others can come.
    pub fn is_full(&self) -> bool {
        self.patches.occupied() >= self.limits.max_patches
    }

    /// Patches to drop so that `count` more fit: least recently touched first; of those left at the
    /// same time the finest, since their ancestors can stand in.
    pub fn evict(&mut self, count: usize) -> Vec<PatchKey> {
        let mut old = self.patches.oldest(self.frame);
        old.truncate(count);
        for key in &old {
            self.patches.release(*key);
        }
        old
    }

    /// Why something failed again and again, of what is still tried.
    pub fn lasting_failure(&self) -> Option<&str> {
        let patches = self.patches.lasting_failure();
        self.sections.lasting_failure().or(patches)
    }

    pub fn stats(&self) -> StreamStats {
        StreamStats {
            sections_in_memory: self.sections.here().count(),
            section_bytes: self.sections.bytes(),
            waiting_bytes: self.patches.bytes(),
            jobs_in_flight: self.open_tickets,
            failed: self.sections.failed() + self.patches.failed(),
        }
    }

    /// Gives up what nobody visited for longest: built patches that nobody came for, then sections.
    fn shrink(&mut self) {
        let most = self.limits.bytes;
        let sections = self.sections.loose_bytes();
        if self.patches.loose_bytes() > most.saturating_sub(sections) {
            let frame = self.frame;
            for key in self.patches.oldest(frame) {
                if matches!(self.patches.get(key), Some(Patch::Ready(_))) {
                    self.patches.release(key);
                }
            }
        }
        let rest = most.saturating_sub(self.patches.loose_bytes());
        self.sections.shrink(rest, self.frame);
    }

    /// The next job on the way to a loaded patch, if none is under way.
    fn job_for(&mut self, key: PatchKey, has_room: bool, now_s: f64) -> Option<Job> {
        if !self.patches.may_ask(key, now_s) {
            return None;
        }
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
        self.patches.ask(key, ticket);
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
        if !self.sections.may_ask(key, now_s) {
            return None;
        }
        let coarser = self.layout.coarser_section(key);
        let coarser = coarser
            .and_then(|key| self.section(key))
            .map(|section| section.heights.clone());
        let ticket = self.new_ticket();
        self.sections.ask(key, ticket);
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
}

#[cfg(test)]
mod tests;
