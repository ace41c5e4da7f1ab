//! A world that is flown over: the one place where streaming and rendering meet.
//!
//! [`Scene::frame`] is a whole frame: select, stream, cull, draw. Windows, screenshots and tests
//! all call it. Time comes as an argument, so a screenshot has none.

mod cull;
pub mod hole_check;
mod pops;
mod spans;

use crate::error::{Error, Result};
use crate::files;
use crate::render::gpu::WindowFrame;
use crate::render::painter::{OverlayShapes, Painter};
use crate::render::target::{Picture, PictureTarget};
use crate::render::{FrameView, Gpu, Renderer, WindowSurface};
use crate::settings::{CpuTimes, Settings, Setup, Stats};
use crate::stream::plan::{MOST_PATCHES, PlanLimits};
use crate::stream::{BuiltPatch, Streamer};
use crate::terrain::camera::{Pose, Viewpoint};
use crate::terrain::decision::Decision;
use crate::terrain::lod::{self, Memory, Selection};
use crate::terrain::mesh::Mesher;
use crate::terrain::patch_tree::PatchTree;
use crate::world::water::surface_m;
use crate::world::{PatchKey, WaterMask, World};
use cull::Drawn;
use pops::PopMeter;
use spans::Spans;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Seconds over which a patch that comes late takes its own shape.
const FADE_S: f64 = 0.3;
/// What comes while a picture settles was always there: nothing fades in it.
const LONG_AGO_S: f64 = f64::NEG_INFINITY;
/// How long settling waits for a worker before it looks at the clock again.
const PATIENCE: Duration = Duration::from_millis(20);

/// So many times to the east and to the south the sea's depth is measured.
const SOUNDINGS: u32 = 256;

/// What is drawn to.
pub enum Target<'a> {
    Picture {
        target: &'a PictureTarget,
        size: [u32; 2],
    },
    Window {
        frame: &'a WindowFrame,
        size: [u32; 2],
        overlay: Option<(&'a mut Painter, OverlayShapes)>,
    },
}

impl Target<'_> {
    fn size(&self) -> [u32; 2] {
        match self {
            Target::Picture { size, .. } | Target::Window { size, .. } => *size,
        }
    }
}

pub struct Scene {
    world: Arc<World>,
    water: Option<WaterMask>,
    /// The lowest ground under the sea, in height steps.
    sea_floor: f64,
    mesher: Mesher,
    streamer: Streamer,
    renderer: Renderer,
    /// What is on the GPU.
    patches: PatchTree,
    /// How many patches a view may take, since GPU memory was found full; none while it was not.
    room: Option<usize>,
    /// Where it was found so: elsewhere other patches have other sizes.
    eye_at: PatchKey,
    adapter: String,
    /// Bytes uploaded since the last frame was drawn.
    upload_bytes: u64,
    pops: PopMeter,
    /// Of the last frame: what is drawn again, and memory for the next.
    selection: Selection,
    drawn: Drawn,
}

impl Scene {
    /// Opens a scene whose pictures are read back.
    pub fn for_pictures(gpu: &Gpu, world: Arc<World>, setup: &Setup) -> Result<Self> {
        let water = water_mask(&world)?;
        let renderer = Renderer::for_pictures(gpu, &world.meta, water.as_ref(), setup);
        Self::new(gpu, world, water, renderer, setup)
    }

    pub fn for_window(
        gpu: &Gpu,
        world: Arc<World>,
        surface: &WindowSurface,
        setup: &Setup,
    ) -> Result<Self> {
        let water = water_mask(&world)?;
        let renderer = Renderer::for_window(gpu, &world.meta, water.as_ref(), surface, setup);
        Self::new(gpu, world, water, renderer, setup)
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    /// Draws one frame; `seconds` is the time of all that moves.
    pub fn frame(
        &mut self,
        gpu: &Gpu,
        pose: &Pose,
        settings: &Settings,
        seconds: f64,
        target: Target,
    ) -> Stats {
        let mut spans = Spans::start();
        let size = target.size();
        let mut stats = self.prepare(gpu, pose, settings, size, seconds, &mut spans);
        let view = FrameView {
            meta: &self.world.meta,
            sea_floor: self.sea_floor,
            views: &settings.views(pose, size),
            settings,
            draws: &self.drawn.draws,
            seconds,
        };
        let counts = match target {
            Target::Picture { target, size } => {
                self.renderer.draw_picture(gpu, &view, target, size)
            }
            Target::Window { frame, overlay, .. } => {
                self.renderer.draw_window(gpu, &view, frame, overlay)
            }
        };
        stats.cpu_ms.encode = spans.lap();
        stats.triangles = counts.triangles;
        stats.skirt_triangles = counts.skirt_triangles;
        stats.draws = counts.draws;
        stats.frame_bytes = counts.bytes;
        stats.gpu_ms = self.renderer.clock().pass_ms().clone();
        stats.cpu_ms = spans.total(stats.cpu_ms);
        stats
    }

    /// All of a frame but the drawing; the counters of that stay 0.
    pub fn frame_without_drawing(
        &mut self,
        gpu: &Gpu,
        pose: &Pose,
        settings: &Settings,
        size: [u32; 2],
        seconds: f64,
    ) -> Stats {
        self.prepare(gpu, pose, settings, size, seconds, &mut Spans::start())
    }

    fn prepare(
        &mut self,
        gpu: &Gpu,
        pose: &Pose,
        settings: &Settings,
        size: [u32; 2],
        seconds: f64,
        spans: &mut Spans,
    ) -> Stats {
        let mut cpu_ms = CpuTimes::default();
        let views = settings.views(pose, size);
        let decision = self.select(&views.lod, settings, seconds);
        cpu_ms.select = spans.lap();
        self.stream(gpu, settings);
        cpu_ms.stream = spans.lap();
        let mut drawn = std::mem::take(&mut self.drawn);
        let selection = &self.selection;
        cull::cull(
            self,
            &views,
            settings,
            decision.ranges(),
            selection,
            seconds,
            &mut drawn,
        );
        self.drawn = drawn;
        let largest_pop_px = (self.pops).next(&self.world.meta.layout, &self.drawn.jumps);
        cpu_ms.cull = spans.lap();
        let [gpu_bytes, gpu_allocated_bytes] = self.renderer.ground_bytes();
        Stats {
            adapter: self.adapter.clone(),
            patches_selected: self.selection.cut.len() as u64,
            patches_drawn: self.drawn.patches_by_level.clone(),
            patches_resident: self.renderer.resident(),
            patches_missing: self.selection.wants.len() as u64,
            upload_bytes: std::mem::take(&mut self.upload_bytes),
            gpu_bytes,
            gpu_allocated_bytes,
            largest_drawn_error_m: self.drawn.errors.metres,
            error_at_eye_m: self.drawn.errors.at_eye_m,
            largest_error_px: self.drawn.errors.pixels,
            largest_pop_px,
            neighbour_level_steps: self.drawn.neighbour_level_steps.clone(),
            ranges: decision.ranges().to_vec(),
            finest_level: self.selection.finest_level,
            stream: self.streamer.stats(),
            cpu_ms,
            ..Stats::default()
        }
    }

    /// Draws one frame and reads it back; what is missing is not waited for.
    pub fn picture(
        &mut self,
        gpu: &Gpu,
        pose: &Pose,
        settings: &Settings,
        size: [u32; 2],
        seconds: f64,
    ) -> Result<(Picture, Stats)> {
        let target = PictureTarget::new(gpu, size)?;
        let to = Target::Picture {
            target: &target,
            size,
        };
        let stats = self.frame(gpu, pose, settings, seconds, to);
        Ok((target.read(gpu)?, stats))
    }

    /// Draws again what the last frame drew, from the same pose but perhaps in another view, and
    /// reads it back. Nothing is selected or streamed.
    pub fn picture_again(
        &mut self,
        gpu: &Gpu,
        pose: &Pose,
        settings: &Settings,
        size: [u32; 2],
        seconds: f64,
    ) -> Result<Picture> {
        let target = PictureTarget::new(gpu, size)?;
        let view = FrameView {
            meta: &self.world.meta,
            sea_floor: self.sea_floor,
            views: &settings.views(pose, size),
            settings,
            draws: &self.drawn.draws,
            seconds,
        };
        self.renderer.draw_picture(gpu, &view, &target, size);
        target.read(gpu)
    }

    /// Milliseconds by pass of the last frame that the GPU has finished.
    pub fn gpu_ms(&mut self, gpu: &Gpu) -> BTreeMap<String, f64> {
        let clock = self.renderer.clock();
        clock.take_finished(gpu);
        clock.pass_ms().clone()
    }

    /// Streams until all that a camera wants is there; an error when it takes longer than
    /// `timeout`.
    pub fn settle(
        &mut self,
        gpu: &Gpu,
        pose: &Pose,
        settings: &Settings,
        size: [u32; 2],
        timeout: Duration,
    ) -> Result<()> {
        let start = Instant::now();
        let views = settings.views(pose, size);
        loop {
            self.select(&views.lod, settings, LONG_AGO_S);
            self.stream(gpu, settings);
            let missing = self.selection.wants.len();
            if missing == 0 {
                return Ok(());
            }
            if let Some(failure) = self.streamer.stuck() {
                return Err(bad_world(&self.world, failure));
            }
            if start.elapsed() > timeout {
                return Err(Error::Check(format!(
                    "streaming did not settle within {:.0} s: {missing} patches are missing (try a longer --settle-timeout)",
                    timeout.as_secs_f64()
                )));
            }
            self.streamer.wait(PATIENCE);
        }
    }

    /// The height of the ground as drawn, or of the sea over it, in metres, from the finest
    /// heights in memory.
    pub fn ground_height_m(&self, x_m: f64, z_m: f64, exaggeration: f64) -> f64 {
        let meta = &self.world.meta;
        let [x, z] = [x_m / meta.spacing_m[0], z_m / meta.spacing_m[1]];
        let ground_m = self.streamer.ground_height(x, z) * meta.height_step_m;
        exaggeration * surface_m(meta, self.water.as_ref(), [x, z], ground_m)
    }

    fn new(
        gpu: &Gpu,
        world: Arc<World>,
        water: Option<WaterMask>,
        renderer: Renderer,
        setup: &Setup,
    ) -> Result<Self> {
        let workers = std::thread::available_parallelism()
            .map_or(2, |cores| cores.get().saturating_sub(1).max(1));
        let limits = PlanLimits::default();
        let opened = Streamer::open(world.clone(), setup.mesher, workers, limits)
            .and_then(|mut streamer| Ok((streamer.build_roots()?, streamer)));
        let (roots, streamer) = opened.map_err(|error| bad_world(&world, &error.to_string()))?;
        let mut scene = Scene {
            sea_floor: sea_floor(&world, water.as_ref(), &streamer),
            patches: PatchTree::new(world.meta.layout),
            room: None,
            eye_at: PatchKey::new(0, 0, 0),
            world,
            water,
            mesher: setup.mesher,
            streamer,
            renderer,
            adapter: gpu.describe() + setup.note(),
            upload_bytes: 0,
            pops: PopMeter::default(),
            selection: Selection::default(),
            drawn: Drawn::default(),
        };
        for root in roots {
            if !scene.put(gpu, &root) {
                return Err(Error::Gpu(
                    "the coarsest patches alone do not fit into GPU memory".into(),
                ));
            }
        }
        Ok(scene)
    }

    /// What is decided of the levels; the cut through them goes into `selection`.
    fn select(&mut self, view: &Viewpoint, settings: &Settings, seconds: f64) -> Decision {
        let meta = &self.world.meta;
        let ranges = lod::ranges(meta, &settings.lod, view.pixels_per_radian);
        let decision = Decision::Ranges(ranges);
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
        lod::select(meta, &decision, exaggeration, view, &memory, selection);
        let cut = selection.cut.iter().map(|selected| selected.slot);
        let replaced = selection.replaced.iter().copied();
        self.patches.note_cut(cut, replaced, seconds);
        decision
    }

    /// Takes in what came, orders what is missing, drops what nobody needs.
    fn stream(&mut self, gpu: &Gpu, settings: &Settings) {
        let old = self.streamer.begin_frame(&self.selection.visited);
        self.drop_patches(&old);
        let budget = settings.upload_budget_bytes;
        for patch in self.streamer.update(&self.selection.wants, budget) {
            if !self.put_somewhere(gpu, &patch) {
                self.streamer.refused(patch.key);
                // A little less, so that what comes next has room.
                let most = self.selection.visited.len() - self.selection.wants.len();
                self.room = Some(most - most / 16);
            }
        }
    }

    /// Puts a patch into GPU memory, in the place of those visited longest ago where it is full;
    /// false when all that is there is needed in this frame.
    fn put_somewhere(&mut self, gpu: &Gpu, patch: &BuiltPatch) -> bool {
        while !self.put(gpu, patch) {
            let old = self.streamer.evict();
            if old.is_empty() {
                return false;
            }
            self.drop_patches(&old);
        }
        true
    }

    fn drop_patches(&mut self, keys: &[PatchKey]) {
        for &key in keys {
            self.renderer.remove(key);
            self.patches.remove(key);
        }
    }

    fn put(&mut self, gpu: &Gpu, patch: &BuiltPatch) -> bool {
        let BuiltPatch {
            mesh,
            normals,
            cells,
            ..
        } = patch;
        let fits = (self.renderer).upload(gpu, patch.key, mesh, normals, cells.as_ref());
        if fits {
            self.upload_bytes += patch.bytes() as u64;
            self.patches.insert(patch.key, patch.facts);
        }
        fits
    }
}

fn water_mask(world: &World) -> Result<Option<WaterMask>> {
    let mask = world.read_water_mask();
    mask.map_err(|error| bad_world(world, &error.to_string()))
}

/// The lowest ground in height steps where water is, as far as the coarse heights tell.
fn sea_floor(world: &World, water: Option<&WaterMask>, streamer: &Streamer) -> f64 {
    let meta = &world.meta;
    let Some(water) = water else {
        return meta.height_range[0] as f64;
    };
    let place = |axis: usize, i: u32| {
        f64::from(i) / f64::from(SOUNDINGS - 1) * f64::from(meta.layout.size_cells[axis])
    };
    let places =
        (0..SOUNDINGS).flat_map(|z| (0..SOUNDINGS).map(move |x| [place(0, x), place(1, z)]));
    let wet = places.filter(|&[x, z]| water.reaches(x, z));
    let floor = wet
        .map(|[x, z]| streamer.ground_height(x, z))
        .reduce(f64::min);
    // No sounding hits a small lake.
    floor.unwrap_or(meta.height_range[0] as f64)
}

fn bad_world(world: &World, what: &str) -> Error {
    files::bad_world(Path::new(&world.name), what)
}
