//! Ground that is made of patches: which levels are wanted, what is loaded, what is drawn.
//!
//! The stream's plan says what is built, the [`PatchTree`] what lies in GPU memory; the renderer's
//! store is asked by key and need not have it.

use super::bad_world;
use super::cull::{self, Drawn};
use super::pops::PopMeter;
use crate::error::{Error, Result};
use crate::render::{DrawPatch, Gpu, Renderer};
use crate::settings::{Settings, Setup, Stats};
use crate::stream::plan::{MOST_PATCHES, PlanLimits};
use crate::stream::{BuiltPatch, Streamer};
use crate::terrain::camera::{Viewpoint, Views};
use crate::terrain::decision::Decision;
use crate::terrain::lod::{self, Memory, Selection};
use crate::terrain::mesh::Mesher;
use crate::terrain::patch_tree::PatchTree;
use crate::world::{Layout, Meta, PatchKey, World};
use std::sync::Arc;
use std::time::Duration;

/// Patches of one world, streamed and drawn.
pub struct PatchGround {
    mesher: Mesher,
    streamer: Streamer,
    /// What is on the GPU.
    patches: PatchTree,
    /// How many patches a view may take, since GPU memory was found full; none while it was not.
    room: Option<usize>,
    /// Where it was found so: elsewhere other patches have other sizes.
    eye_at: PatchKey,
    /// Bytes uploaded since the last frame was drawn.
    upload_bytes: u64,
    pops: PopMeter,
    /// Of the last frame: what is drawn again, and memory for the next.
    decision: Decision,
    selection: Selection,
    drawn: Drawn,
}

impl PatchGround {
    /// Reads the global repository and loads the coarsest patches.
    pub fn open(
        gpu: &Gpu,
        renderer: &mut Renderer,
        world: &Arc<World>,
        setup: &Setup,
    ) -> Result<Self> {
        let workers = std::thread::available_parallelism()
            .map_or(2, |cores| cores.get().saturating_sub(1).max(1));
        let limits = PlanLimits::default();
        let opened = Streamer::open(world.clone(), setup.mesher, workers, limits)
            .and_then(|mut streamer| Ok((streamer.build_roots()?, streamer)));
        let (roots, streamer) = opened.map_err(|error| bad_world(world, &error.to_string()))?;
        let mut ground = PatchGround {
            mesher: setup.mesher,
            streamer,
            patches: PatchTree::new(world.meta.layout),
            room: None,
            eye_at: PatchKey::new(0, 0, 0),
            upload_bytes: 0,
            pops: PopMeter::default(),
            decision: Decision::Keep,
            selection: Selection::default(),
            drawn: Drawn::default(),
        };
        for root in roots {
            if !ground.put(gpu, renderer, &root) {
                return Err(Error::Gpu(
                    "the coarsest patches alone do not fit into GPU memory".into(),
                ));
            }
        }
        Ok(ground)
    }

    /// What the last [`PatchGround::cull`] found to draw.
    pub fn draws(&self) -> &[DrawPatch] {
        &self.drawn.draws
    }

    /// Patches that the last selection missed.
    pub fn missing(&self) -> usize {
        self.selection.wants.len()
    }

    /// Why what is missing will not come.
    pub fn stuck(&self) -> Option<&str> {
        self.streamer.stuck()
    }

    /// Waits until a worker has finished something, but no longer than `timeout`.
    pub fn wait(&mut self, timeout: Duration) {
        self.streamer.wait(timeout);
    }

    /// The height of the ground in height steps at a place in samples, from the finest heights in
    /// memory.
    pub fn height(&self, [x, z]: [f64; 2]) -> f64 {
        self.streamer.ground_height(x, z)
    }

    /// Decides of the levels, and finds the cut through them.
    pub fn select(&mut self, meta: &Meta, view: &Viewpoint, settings: &Settings, seconds: f64) {
        let ranges = lod::ranges(meta, &settings.lod, view.pixels_per_radian);
        self.decision = Decision::Ranges(ranges);
        let eye = view.eye;
        let eye = [eye.x / meta.spacing_m[0], eye.z / meta.spacing_m[1]];
        let eye_at = meta
            .layout
            .patch_at(meta.layout.stream_levels.saturating_sub(1), eye);
        if eye_at != self.eye_at {
            (self.room, self.eye_at) = (None, eye_at);
        }
        let memory = Memory {
            loaded: &self.patches,
            heights: |key| self.streamer.height_range(key),
            most: self.room.unwrap_or(MOST_PATCHES),
        };
        let (exaggeration, selection) = (settings.lod.exaggeration, &mut self.selection);
        lod::select(meta, &self.decision, exaggeration, view, &memory, selection);
        let cut = selection.cut.iter().map(|selected| selected.slot);
        let replaced = selection.replaced.iter().copied();
        self.patches.note_cut(cut, replaced, seconds);
    }

    /// Takes in what came, orders what is missing, drops what nobody needs.
    pub fn stream(&mut self, gpu: &Gpu, renderer: &mut Renderer, settings: &Settings) {
        let old = self.streamer.begin_frame(&self.selection.visited);
        self.drop_patches(renderer, &old);
        let budget = settings.upload_budget_bytes;
        for patch in self.streamer.update(&self.selection.wants, budget) {
            if !self.put_somewhere(gpu, renderer, &patch) {
                self.streamer.refused(patch.key);
                // A little less, so that what comes next has room.
                let most = self.selection.visited.len() - self.selection.wants.len();
                self.room = Some(most - most / 16);
            }
        }
    }

    /// Leaves out what is not in view.
    pub fn cull(&mut self, meta: &Meta, views: &Views, settings: &Settings, seconds: f64) {
        let culled = cull::Culled {
            meta,
            patches: &self.patches,
            views,
            settings,
            ranges: self.decision.ranges(),
            mesher: self.mesher,
            seconds,
        };
        cull::cull(culled, &self.selection, &mut self.drawn);
    }

    /// What is to be said of the last frame.
    pub fn stats(&mut self, layout: &Layout, renderer: &Renderer) -> Stats {
        let largest_pop_px = self.pops.next(layout, &self.drawn.jumps);
        let [gpu_bytes, gpu_allocated_bytes] = renderer.ground_bytes();
        let Drawn {
            errors,
            patches_by_level,
            neighbour_level_steps,
            ..
        } = &self.drawn;
        Stats {
            patches_selected: self.selection.cut.len() as u64,
            patches_drawn: patches_by_level.clone(),
            patches_resident: renderer.resident(),
            patches_missing: self.selection.wants.len() as u64,
            upload_bytes: std::mem::take(&mut self.upload_bytes),
            gpu_bytes,
            gpu_allocated_bytes,
            largest_drawn_error_m: errors.metres,
            error_at_eye_m: errors.at_eye_m,
            largest_error_px: errors.pixels,
            largest_pop_px,
            neighbour_level_steps: neighbour_level_steps.clone(),
            ranges: self.decision.ranges().to_vec(),
            finest_level: self.selection.finest_level,
            stream: self.streamer.stats(),
            ..Stats::default()
        }
    }

    /// Puts a patch into GPU memory, in the place of those visited longest ago where it is full;
    /// false when all that is there is needed in this frame.
    fn put_somewhere(&mut self, gpu: &Gpu, renderer: &mut Renderer, patch: &BuiltPatch) -> bool {
        while !self.put(gpu, renderer, patch) {
            let old = self.streamer.evict();
            if old.is_empty() {
                return false;
            }
            self.drop_patches(renderer, &old);
        }
        true
    }

    fn drop_patches(&mut self, renderer: &mut Renderer, keys: &[PatchKey]) {
        for &key in keys {
            renderer.remove(key);
            self.patches.remove(key);
        }
    }

    fn put(&mut self, gpu: &Gpu, renderer: &mut Renderer, patch: &BuiltPatch) -> bool {
        let BuiltPatch {
            mesh,
            normals,
            cells,
            ..
        } = patch;
        let fits = renderer.upload(gpu, patch.key, mesh, normals, cells.as_ref());
        if fits {
            self.upload_bytes += patch.bytes() as u64;
            self.patches.insert(patch.key, patch.facts);
        }
        fits
    }
}
