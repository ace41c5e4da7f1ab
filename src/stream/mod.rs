//! Patches on their way from the file to the GPU's door, without a frame ever waiting.
//!
//! A pure [`plan`] decides what to read, build and drop; [`workers`] only do. Nothing here knows
//! the GPU: what is built is handed out as bytes, and the scene says what became of it.

pub mod plan;
pub mod slots;
pub mod workers;

use crate::settings::StreamStats;
use crate::terrain::lod::Want;
use crate::terrain::mesh::{Mesher, PatchMesh};
use crate::terrain::normals::Texel;
use crate::terrain::patch_tree::PatchFacts;
use crate::world::{Coverage, FormatError, PatchKey, SectionKey, World};
use plan::{Plan, PlanLimits};
use std::sync::Arc;
use std::time::{Duration, Instant};
use workers::{Builder, Workers};

/// Patches that go at once when there is no room.
const EVICTED_AT_ONCE: usize = 64;

/// A patch as it goes into GPU memory.
#[derive(Clone, Debug)]
pub struct BuiltPatch {
    pub key: PatchKey,
    pub mesh: PatchMesh,
    /// Row by row, `lattice_cells + 1` texels a side.
    pub normals: Vec<Texel>,
    /// Which cells of its lattice have ground; none where all have.
    pub cells: Option<Coverage>,
    pub facts: PatchFacts,
}

impl BuiltPatch {
    /// Bytes that go to the GPU.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.mesh.vertices[..])
            + size_of_val(&self.mesh.indices[..])
            + size_of_val(&self.normals[..])
            + self.cells.as_ref().map_or(0, Coverage::bytes)
    }
}

/// One world's stream.
pub struct Streamer {
    world: Arc<World>,
    mesher: Mesher,
    plan: Plan,
    workers: Workers,
    /// Built and not handed out yet, oldest first.
    frame: u64,
    born: Instant,
}

impl Streamer {
    /// Reads the global repository, so that there is ground from the first frame on.
    pub fn open(
        world: Arc<World>,
        mesher: Mesher,
        worker_count: usize,
        limits: PlanLimits,
    ) -> Result<Self, FormatError> {
        let mut plan = Plan::new(world.meta.layout, limits);
        for section in world.read_repository()? {
            plan.keep_forever(Arc::new(section));
        }
        let workers = Workers::start(world.clone(), mesher, worker_count);
        Ok(Streamer {
            world,
            mesher,
            plan,
            workers,
            frame: 0,
            born: Instant::now(),
        })
    }

    /// Builds the coarsest patches here and now.
    pub fn build_roots(&mut self) -> Result<Vec<BuiltPatch>, FormatError> {
        let layout = self.world.meta.layout;
        let level = layout.coarsest();
        let key = SectionKey { level, x: 0, z: 0 };
        let section = self
            .plan
            .section(key)
            .expect("the repository was read")
            .clone();
        let mut builder = Builder::new(self.mesher);
        layout
            .keys(level)
            .map(|key| {
                self.plan.assume_loaded(key);
                builder.build(&self.world.meta, key, &section, None)
            })
            .collect()
    }

    /// Begins a frame whose selection visited these patches: none of them will be dropped in it.
    /// Returns patches to drop, where room is needed: those visited longest ago.
    pub fn begin_frame(&mut self, visited: &[PatchKey]) -> Vec<PatchKey> {
        self.frame += 1;
        self.plan.touch(visited, self.frame);
        if self.plan.is_full() {
            self.plan.evict(EVICTED_AT_ONCE)
        } else {
            Vec::new()
        }
    }

    /// Takes in what the workers finished, orders more, and hands out built patches up to
    /// `budget_bytes` (one at least).
    ///
    /// Pauses after failures go by the streamer's own clock: frames may be at any time they like.
    pub fn update(&mut self, wants: &[Want], budget_bytes: usize) -> Vec<BuiltPatch> {
        let now_s = self.born.elapsed().as_secs_f64();
        for done in self.workers.finished() {
            if let Some(failure) = self.plan.arrive(done, now_s) {
                log::warn!("{}: {failure}; it will be tried again", self.world.name);
            }
        }
        for job in self.plan.next_jobs(wants, now_s) {
            self.workers.order(job);
        }
        self.plan.take_ready(wants, budget_bytes)
    }

    /// Why nothing more will come: all that is wanted has failed so often that it is hardly worth
    /// another wait. To be asked after [`Streamer::update`].
    pub fn stuck(&self) -> Option<&str> {
        let stats = self.plan.stats();
        let waiting = stats.jobs_in_flight > 0 || stats.waiting_bytes > 0;
        self.plan.lasting_failure().filter(|_| !waiting)
    }

    /// Waits until a worker has finished something, but no longer than `timeout`.
    pub fn wait(&mut self, timeout: Duration) {
        if self.plan.stats().waiting_bytes == 0 {
            self.workers.wait(timeout);
        }
    }

    /// Patches to drop for others that have no room: those visited longest ago, none of them in
    /// this frame.
    pub fn evict(&mut self) -> Vec<PatchKey> {
        self.plan.evict(EVICTED_AT_ONCE)
    }

    /// The scene has no room for a patch.
    pub fn refused(&mut self, key: PatchKey) {
        self.plan.refused(key);
    }

    /// The height of the ground in height steps at a position in samples, from the finest
    /// section in memory.
    pub fn ground_height(&self, x: f64, z: f64) -> f64 {
        let layout = &self.world.meta.layout;
        let finest = (0..layout.levels).find_map(|level| {
            let key = layout.patch_at(level, [x, z]);
            self.plan.section(layout.section_of(key))
        });
        finest.map_or(0.0, |section| section.heights.between_samples(x, z))
    }

    /// Lowest and highest sample of a patch in height steps, where its section is in memory.
    pub fn height_range(&self, key: PatchKey) -> Option<[i32; 2]> {
        let section = self.plan.section(self.world.meta.layout.section_of(key))?;
        let record = section.patch(key);
        Some([record.min, record.max])
    }

    pub fn stats(&self) -> StreamStats {
        self.plan.stats()
    }
}
