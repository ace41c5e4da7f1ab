//! The plan without a thread: a made-up world, and workers that are the test itself.

use super::*;
use crate::terrain::mesh::PatchMesh;
use crate::world::{Bits, PatchRecord};
use proptest::prelude::*;

fn layout() -> Layout {
    Layout::new([1024, 1024], 32, 128).unwrap()
}

fn section(layout: &Layout, key: SectionKey) -> Section {
    let area = layout.section_patches(key);
    let mut leaf = Bits::default();
    leaf.push(false);
    let record = PatchRecord {
        min: 0,
        max: 9,
        error_m: 1.0,
        exhausted: false,
        absent: false,
        trees: [leaf.clone(), leaf],
    };
    let rect = crate::world::LatticeRect {
        width: 1,
        height: 1,
        ..layout.section_rect(key)
    };
    Section {
        key,
        heights: Arc::new(HeightGrid {
            rect,
            heights: vec![0],
        }),
        area,
        samples: None,
        cells: None,
        bytes: 4,
        patches: vec![record; ((area[2] - area[0]) * (area[3] - area[1])) as usize],
    }
}

fn plan(limits: PlanLimits) -> Plan {
    let layout = layout();
    let mut plan = Plan::new(layout, limits);
    for level in layout.stream_levels..layout.levels {
        plan.keep_forever(Arc::new(section(&layout, SectionKey { level, x: 0, z: 0 })));
    }
    plan.assume_loaded(PatchKey::new(layout.coarsest(), 0, 0));
    plan
}

fn want(key: PatchKey) -> Want {
    Want {
        key,
        distance_m: 0.0,
        in_view: true,
    }
}

fn built(key: PatchKey) -> BuiltPatch {
    BuiltPatch {
        key,
        mesh: PatchMesh::default(),
        normals: vec![],
        cells: None,
        facts: Default::default(),
    }
}

/// Does a job as a worker would, or fails it.
fn work(job: Job, fails: bool) -> Done {
    let failure = || FormatError("made to fail".into());
    match job {
        Job::Prepare { ticket, key, .. } => {
            let result = if fails {
                Err(failure())
            } else {
                Ok(section(&layout(), key))
            };
            Done::Prepared {
                ticket,
                key,
                result,
            }
        }
        Job::Build { ticket, key, .. } => {
            let result = if fails {
                Err(failure())
            } else {
                Ok(built(key))
            };
            Done::Built {
                ticket,
                key,
                result,
            }
        }
    }
}

#[test]
fn what_a_patch_needs_is_read_coarse_first_and_once() {
    let mut plan = plan(PlanLimits::default());
    let wants = [want(PatchKey::new(0, 5, 5)), want(PatchKey::new(0, 6, 5))];
    let mut prepared = Vec::new();
    for frame in 0..10 {
        for job in plan.next_jobs(&wants, frame as f64) {
            if let Job::Prepare {
                key, ref coarser, ..
            } = job
            {
                assert!(coarser.is_some(), "{key:?} without the heights above it");
                prepared.push(key.level);
            }
            if let Some(Event::Built(patch)) = plan.arrive(work(job, false), frame as f64) {
                plan.loaded(patch.key);
            }
        }
    }
    assert_eq!(prepared, [2, 1, 0]);
    assert!(wants.iter().all(|want| plan.is_loaded(want.key)));
    assert_eq!(plan.stats().jobs_in_flight, 0);
}

#[test]
fn what_fails_is_said_once_and_tried_again_after_growing_pauses() {
    let mut plan = plan(PlanLimits::default());
    let wants = [want(PatchKey::new(2, 1, 1))];
    let (mut tries, mut said) = (Vec::new(), 0);
    for tick in 0..400 {
        let now_s = tick as f64 * 0.1;
        for job in plan.next_jobs(&wants, now_s) {
            tries.push(now_s);
            said += plan.arrive(work(job, true), now_s).is_some() as u32;
            assert_eq!(plan.stats().failed, 1);
        }
    }
    assert_eq!(said, 1);
    assert!(tries.len() >= 5, "{tries:?}");
    let pauses: Vec<f64> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        pauses.windows(2).all(|pair| pair[1] > pair[0] * 1.4),
        "{pauses:?}"
    );
}

#[test]
fn a_failure_that_nobody_wants_any_more_is_forgotten() {
    let mut plan = plan(PlanLimits::default());
    for job in plan.next_jobs(&[want(PatchKey::new(3, 1, 1))], 0.0) {
        plan.arrive(work(job, true), 0.0);
    }
    assert_eq!(plan.stats().failed, 1);
    plan.next_jobs(&[], FIRST_PAUSE_S + FORGET_AFTER_S + 0.1);
    assert_eq!(plan.stats().failed, 0);
}

#[test]
fn an_arrival_that_nobody_waits_for_is_dropped() {
    let mut plan = plan(PlanLimits::default());
    let key = PatchKey::new(3, 1, 1);
    let jobs = plan.next_jobs(&[want(key)], 0.0);
    let [Job::Build { .. }] = &jobs[..] else {
        panic!("its sections are in the repository: {jobs:?}")
    };
    // The patch is forgotten while a worker is on it.
    plan.patches.remove(&key);
    for job in jobs {
        assert!(plan.arrive(work(job, false), 0.0).is_none());
    }
    assert!(!plan.is_loaded(key));
}

proptest! {
    /// Random flights with failures and late answers: limits hold, tickets are settled, what was
    /// just visited and the repository stay.
    #[test]
    fn the_plan_keeps_its_promises(seeds in prop::collection::vec((0u32..8, 0u32..8, 0u8..4, 0u8..10), 1..120)) {
        let limits = PlanLimits { max_jobs: 5, max_patches: 12, section_bytes: 20_000 };
        let mut plan = plan(limits);
        let mut at_work: Vec<Job> = Vec::new();
        for (frame, &(x, z, level, luck)) in (1u64..).zip(&seeds) {
            let now_s = frame as f64 * 0.3;
            let keys: Vec<PatchKey> = (0..3).map(|i| PatchKey::new(level, (x + i) % 4, z % 4)).collect();
            plan.touch(&keys, frame);
            if plan.is_full() {
                let gone = plan.evict(4);
                prop_assert!(gone.iter().all(|key| !keys.contains(key) && key.level < layout().coarsest()));
            }
            let wants: Vec<Want> = keys.iter().filter(|&&key| !plan.is_loaded(key)).map(|&key| want(key)).collect();
            at_work.extend(plan.next_jobs(&wants, now_s));
            let stats = plan.stats();
            prop_assert_eq!(stats.jobs_in_flight, at_work.len());
            prop_assert!(stats.jobs_in_flight <= limits.max_jobs);
            prop_assert!(plan.occupied() <= limits.max_patches);
            // Some workers are slow, some fail.
            let answered = if luck < 3 { 0 } else { at_work.len().min(luck as usize) };
            for job in at_work.drain(..answered).collect::<Vec<_>>() {
                if let Some(Event::Built(patch)) = plan.arrive(work(job, luck == 9), now_s) {
                    plan.loaded(patch.key);
                }
            }
            let repository = SectionKey { level: layout().coarsest(), x: 0, z: 0 };
            prop_assert!(plan.section(repository).is_some());
        }
        for job in at_work.drain(..) {
            plan.arrive(work(job, false), 1e3);
        }
        prop_assert_eq!(plan.stats().jobs_in_flight, 0);
    }

    /// Long flights far and wide, with little memory and sections of all sizes.
    #[test]
    fn the_running_total_of_bytes_is_their_sum(seeds in prop::collection::vec((0u32..32, 0u32..32, 0u8..4, 0u8..10), 100..400)) {
        let limits = PlanLimits { max_jobs: 8, max_patches: 30, section_bytes: 300 };
        let mut plan = plan(limits);
        let mut at_work: Vec<Job> = Vec::new();
        let mut most = 0;
        for (frame, &(x, z, level, luck)) in (1u64..).zip(&seeds) {
            let now_s = frame as f64 * 0.3;
            let key = PatchKey::new(level, x >> level, z >> level);
            plan.touch(&[key], frame);
            if plan.is_full() {
                plan.evict(4);
            }
            at_work.extend(plan.next_jobs(&[want(key)], now_s));
            for job in at_work.drain(..at_work.len().min(luck as usize)) {
                let mut done = work(job, luck == 9);
                if let Done::Prepared { key, result: Ok(section), .. } = &mut done {
                    section.bytes = (key.x * 7 + key.z * 13 + 1) as usize;
                }
                if let Some(Event::Built(patch)) = plan.arrive(done, now_s) {
                    plan.loaded(patch.key);
                }
            }
            let totals = plan.sections.totals();
            prop_assert_eq!(totals, plan.sections.sums());
            prop_assert_eq!(plan.stats().section_bytes, totals[0]);
            most = most.max(totals[1]);
        }
        prop_assert!(most > limits.section_bytes, "nothing had to be dropped");
    }
}
