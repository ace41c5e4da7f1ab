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
            assert_eq!(plan.arrive(work(job, false), frame as f64), None);
            plan.take_ready(&wants, 1);
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
fn an_arrival_that_nobody_waits_for_is_dropped() {
    let mut plan = plan(PlanLimits::default());
    let key = PatchKey::new(3, 1, 1);
    let jobs = plan.next_jobs(&[want(key)], 0.0);
    let [Job::Build { .. }] = &jobs[..] else {
        panic!("its sections are in the repository: {jobs:?}")
    };
    // The patch is forgotten while a worker is on it.
    plan.refused(key);
    for job in jobs {
        plan.arrive(work(job, false), 0.0);
    }
    assert!(plan.take_ready(&[want(key)], 1).is_empty());
    assert!(!plan.is_loaded(key));
}

proptest! {
    /// Random flights with failures and late answers: limits hold, tickets are settled, what was
    /// just visited and the repository stay.
    #[test]
    fn the_plan_keeps_its_promises(seeds in prop::collection::vec((0u32..8, 0u32..8, 0u8..4, 0u8..10), 1..120)) {
        let limits = PlanLimits { max_jobs: 5, max_patches: 12, bytes: 20_000 };
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
            prop_assert!(plan.patches.occupied() <= limits.max_patches);
            // Some workers are slow, some fail.
            let answered = if luck < 3 { 0 } else { at_work.len().min(luck as usize) };
            for job in at_work.drain(..answered).collect::<Vec<_>>() {
                plan.arrive(work(job, luck == 9), now_s);
                plan.take_ready(&wants, 1);
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
    fn sections_are_dropped_and_their_bytes_with_them(seeds in prop::collection::vec((0u32..32, 0u32..32, 0u8..4, 0u8..10), 100..400)) {
        let limits = PlanLimits { max_jobs: 8, max_patches: 30, bytes: 300 };
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
                plan.arrive(done, now_s);
                plan.take_ready(&[want(key)], 1);
            }
            let sum: usize = plan.sections.here().map(|(_, section)| section.bytes).sum();
            prop_assert_eq!(plan.stats().section_bytes, sum);
            most = most.max(plan.sections.loose_bytes());
        }
        prop_assert!(most > limits.bytes, "nothing had to be dropped");
    }
}

#[test]
fn what_waits_is_handed_out_by_urgency_and_counts_as_memory() {
    let mut plan = plan(PlanLimits {
        bytes: 1,
        ..PlanLimits::default()
    });
    let keys = [0, 1, 2].map(|x| PatchKey::new(3, x, 0));
    let wants = keys.map(want);
    for job in plan.next_jobs(&wants, 0.0) {
        let mut done = work(job, false);
        if let Done::Built {
            result: Ok(patch), ..
        } = &mut done
        {
            patch.normals = vec![Default::default(); 100];
        }
        plan.arrive(done, 0.0);
    }
    let patch_bytes = plan.stats().waiting_bytes / 3;
    assert!(patch_bytes >= 800);
    // After a jump others are urgent: the last one that was asked for goes first.
    let taken = plan.take_ready(&[wants[2], wants[0]], patch_bytes);
    assert_eq!(
        taken.iter().map(|patch| patch.key).collect::<Vec<_>>(),
        [keys[2]]
    );
    assert!(plan.is_loaded(keys[2]));
    assert_eq!(plan.stats().waiting_bytes, 2 * patch_bytes);
    // What nobody came for goes when memory is short; what was just visited stays.
    plan.touch(&[keys[0]], 1);
    plan.next_jobs(&[], 0.0);
    assert_eq!(plan.stats().waiting_bytes, patch_bytes);
    assert_eq!(plan.take_ready(&wants, 1).len(), 1);
}
