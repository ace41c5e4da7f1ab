//! Threads that read, decode and build; they decide nothing.
//!
//! Joined when dropped. A worker that panics would be a bug of ours: the job's answer is then an
//! error like any other, so that its ticket is settled.

use super::BuiltPatch;
use super::plan::{Done, Job};
use crate::terrain::mesh::{MeshBuilder, Mesher, PatchData, grid};
use crate::terrain::normals;
use crate::terrain::patch_tree::PatchFacts;
use crate::world::{FormatError, Meta, PatchKey, PatchRecord, Section, World};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

pub struct Workers {
    /// None only while dropping.
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    /// What came while somebody waited for it.
    early: Vec<Done>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    pub fn start(world: Arc<World>, mesher: Mesher, count: usize) -> Self {
        let (jobs, job_queue) = unbounded::<Job>();
        let (done_queue, done) = unbounded();
        let threads = (0..count.max(1))
            .map(|i| {
                let (world, job_queue, done_queue) =
                    (world.clone(), job_queue.clone(), done_queue.clone());
                let work = move || {
                    let mut builder = Builder::new(mesher);
                    for job in job_queue {
                        if done_queue.send(run(&world, &mut builder, job)).is_err() {
                            break;
                        }
                    }
                };
                let thread = std::thread::Builder::new().name(format!("stream-{i}"));
                thread.spawn(work).expect("the system starts a thread")
            })
            .collect();
        Workers {
            jobs: Some(jobs),
            done,
            early: Vec::new(),
            threads,
        }
    }

    pub fn order(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The queue is only closed when the workers are dropped.
            let _ = jobs.send(job);
        }
    }

    /// What was finished since the last call.
    pub fn finished(&mut self) -> Vec<Done> {
        let mut finished = std::mem::take(&mut self.early);
        finished.extend(self.done.try_iter());
        finished
    }

    /// Waits until something is finished, but no longer than `timeout`.
    pub fn wait(&mut self, timeout: Duration) {
        if self.early.is_empty() {
            self.early.extend(self.done.recv_timeout(timeout));
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.jobs = None;
        // Jobs that nobody waits for any more are not worth finishing.
        let (_, empty) = unbounded();
        self.done = empty;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Builds what patches need on the GPU, one after another in the same memory.
pub struct Builder {
    mesher: Mesher,
    meshes: MeshBuilder,
}

impl Builder {
    pub fn new(mesher: Mesher) -> Self {
        Builder {
            mesher,
            meshes: MeshBuilder::default(),
        }
    }

    /// Builds one from its section and its parent's.
    pub fn build(
        &mut self,
        meta: &Meta,
        key: PatchKey,
        section: &Section,
        parent: Option<&Section>,
    ) -> Result<BuiltPatch, FormatError> {
        let record = self.record(meta, key, section);
        let patch = PatchData {
            record: &record,
            heights: &section.heights,
        };
        let record = parent.map(|parent| self.record(meta, key.parent(), parent));
        let parent = parent
            .zip(record.as_deref())
            .map(|(parent, record)| PatchData {
                record,
                heights: &parent.heights,
            });
        let mesh = self.meshes.build(&meta.layout, key, patch, parent)?;
        let unit_m = meta.height_step_m / meta.layout.height_units() as f64;
        let cells = section.patch_cells(key, meta.layout.lattice_cells(key.level));
        let facts = PatchFacts {
            heights: [patch.record.min, patch.record.max],
            error_m: patch.record.error_m,
            parent_error_m: parent.unwrap_or(patch).record.error_m,
            largest_morph_m: (mesh.largest_morph() as f64 * unit_m) as f32,
            has_voids: cells.is_some(),
            absent: patch.record.absent,
        };
        Ok(BuiltPatch {
            key,
            mesh,
            normals: normals::build(
                &meta.layout,
                key,
                patch,
                parent,
                meta.spacing_m,
                meta.height_step_m,
            ),
            cells,
            facts,
        })
    }

    fn record<'a>(&self, meta: &Meta, key: PatchKey, section: &'a Section) -> Cow<'a, PatchRecord> {
        let record = section.patch(key);
        match self.mesher {
            Mesher::Static => Cow::Borrowed(record),
            Mesher::Grid => Cow::Owned(grid::full(&meta.layout, key, record)),
        }
    }
}

fn run(world: &World, builder: &mut Builder, job: Job) -> Done {
    match job {
        Job::Prepare {
            ticket,
            key,
            coarser,
        } => {
            let result = settle(|| world.read_section(key, coarser.as_ref()));
            Done::Prepared {
                ticket,
                key,
                result,
            }
        }
        Job::Build {
            ticket,
            key,
            section,
            parent,
        } => {
            let parent = parent.as_deref();
            let result = settle(|| builder.build(&world.meta, key, &section, parent));
            Done::Built {
                ticket,
                key,
                result,
            }
        }
    }
}

fn settle<T>(work: impl FnOnce() -> Result<T, FormatError>) -> Result<T, FormatError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(FormatError("a worker panicked".into())))
}
