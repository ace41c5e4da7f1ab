//! Patches on their way from the file to the GPU's door, without a frame ever waiting.
//!
//! A pure [`plan`] decides what to read, build and drop; [`workers`] only do. Nothing here knows
//! the GPU: what is built is handed out as bytes, and the scene says what became of it.

pub mod plan;
pub mod workers;

use crate::terrain::lod::{Residency, Want};
use crate::terrain::mesh::PatchMesh;
use crate::world::{FormatError, HeightGrid, PatchKey, SectionKey, World};
use plan::{Event, Plan, PlanLimits};
use std::collections::HashMap;
use std::sync::Arc;
use workers::Workers;

/// A patch as it goes into GPU memory.
#[derive(Clone, Debug)]
pub struct BuiltPatch {
    pub key: PatchKey,
    pub mesh: PatchMesh,
    /// Row by row, `lattice_cells + 1` texels a side.
    pub normals: Vec<[i8; 4]>,
    /// Stored errors in metres.
    pub error_m: f32,
    pub parent_error_m: f32,
}

impl BuiltPatch {
    /// Bytes that go to the GPU.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.mesh.vertices[..])
            + size_of_val(&self.mesh.indices[..])
            + size_of_val(&self.normals[..])
    }
}

/// Counters of the stream, for the overlay and scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct StreamStats {
    pub sections_in_memory: usize,
    pub section_bytes: usize,
    pub jobs_in_flight: usize,
    /// Sections and patches that failed and wait for another try.
    pub failed: usize,
}

/// One world's stream.
pub struct Streamer {
    world: Arc<World>,
    plan: Plan,
    workers: Workers,
    /// Built and not handed out yet, oldest first.
    ready: std::collections::VecDeque<BuiltPatch>,
    frame: u64,
}

impl Streamer {
    /// Reads the global repository, so that there is ground from the first frame on.
    pub fn open(
        world: Arc<World>,
        worker_count: usize,
        limits: PlanLimits,
    ) -> Result<Self, FormatError> {
        let layout = world.meta.layout;
        let mut plan = Plan::new(layout, limits);
        let mut grids: HashMap<SectionKey, Arc<HeightGrid>> = HashMap::new();
        for level in (layout.stream_levels..layout.levels).rev() {
            let key = SectionKey { level, x: 0, z: 0 };
            let coarser = layout.coarser_section(key).and_then(|key| grids.get(&key));
            let section = world.read_section(key, coarser)?;
            grids.insert(key, section.heights.clone());
            plan.keep_forever(Arc::new(section));
        }
        let workers = Workers::start(world.clone(), worker_count);
        Ok(Streamer {
            world,
            plan,
            workers,
            ready: Default::default(),
            frame: 0,
        })
    }

    /// Builds the coarsest patches here and now.
    pub fn build_roots(&mut self) -> Result<Vec<BuiltPatch>, FormatError> {
        let level = self.world.meta.layout.coarsest();
        let section = self
            .plan
            .section(SectionKey { level, x: 0, z: 0 })
            .expect("the repository was read")
            .clone();
        let [x0, z0, x1, z1] = section.area;
        let keys = (z0..z1).flat_map(|z| (x0..x1).map(move |x| PatchKey::new(level, x, z)));
        keys.map(|key| {
            self.plan.assume_loaded(key);
            workers::build_patch(&self.world.meta, key, &section, None)
        })
        .collect()
    }

    /// Takes in what the workers finished, orders more, and hands out built patches up to
    /// `budget_bytes` (one at least).
    pub fn update(
        &mut self,
        wants: &[Want],
        visited: &[PatchKey],
        budget_bytes: usize,
        now_s: f64,
    ) -> Vec<BuiltPatch> {
        self.frame += 1;
        self.plan.touch(visited, self.frame);
        for done in self.workers.finished() {
            match self.plan.arrive(done, now_s) {
                Some(Event::Built(patch)) => self.ready.push_back(patch),
                Some(Event::FirstFailure(text)) => log::warn!("{text}; it will be tried again"),
                None => {}
            }
        }
        for job in self.plan.next_jobs(wants, now_s) {
            self.workers.order(job);
        }
        self.take_ready(budget_bytes)
    }

    /// Patches to drop so that `count` more fit, least recently visited first; what was visited
    /// in the last frame stays.
    pub fn make_room(&mut self, count: usize) -> Vec<PatchKey> {
        self.plan.evict(count, self.frame)
    }

    /// The scene has a patch on the GPU.
    pub fn loaded(&mut self, key: PatchKey) {
        self.plan.loaded(key);
    }

    /// The scene has no room for a patch.
    pub fn refused(&mut self, key: PatchKey, now_s: f64) {
        self.plan.refused(key, now_s);
    }

    /// True when patches must go before others can come.
    pub fn is_full(&self) -> bool {
        self.plan.is_full()
    }

    /// The height of the ground in height steps at a position in samples, from the finest
    /// section in memory.
    pub fn ground_height(&self, x: f64, z: f64) -> f64 {
        let layout = &self.world.meta.layout;
        let sample = [x, z].map(|v| v.max(0.0) as u32);
        let finest = (0..layout.levels).find_map(|level| {
            let size = layout.patch_size(level);
            let [nx, nz] = layout.patches(level);
            let key = PatchKey::new(
                level,
                (sample[0] / size).min(nx - 1),
                (sample[1] / size).min(nz - 1),
            );
            self.plan.section(layout.section_of(key))
        });
        finest.map_or(0.0, |section| bilinear(&section.heights, x, z))
    }

    pub fn stats(&self) -> StreamStats {
        self.plan.stats()
    }

    fn take_ready(&mut self, budget_bytes: usize) -> Vec<BuiltPatch> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(patch) = self.ready.front() {
            bytes += patch.bytes();
            if bytes > budget_bytes && !taken.is_empty() {
                break;
            }
            taken.extend(self.ready.pop_front());
        }
        taken
    }
}

impl Residency for Streamer {
    fn height_range(&self, key: PatchKey) -> Option<[i32; 2]> {
        let section = self.plan.section(self.world.meta.layout.section_of(key))?;
        let record = section.patch(key);
        Some([record.min, record.max])
    }

    fn is_loaded(&self, key: PatchKey) -> bool {
        self.plan.is_loaded(key)
    }
}

fn bilinear(grid: &HeightGrid, x: f64, z: f64) -> f64 {
    let stride = grid.rect.stride as f64;
    let place = |v: f64, first: i32, count: u32| {
        let v = (v / stride).clamp(first as f64, (first + count as i32 - 1) as f64 - 1e-6);
        (v.floor() as i32, v - v.floor())
    };
    let (column, u) = place(x, grid.rect.x0, grid.rect.width);
    let (row, v) = place(z, grid.rect.z0, grid.rect.height);
    let at = |dx, dz| grid.at(column + dx, row + dz) as f64;
    let north = at(0, 0) * (1.0 - u) + at(1, 0) * u;
    let south = at(0, 1) * (1.0 - u) + at(1, 1) * u;
    north * (1.0 - v) + south * v
}
