//! A world that is flown over: the one place where streaming and rendering meet.
//!
//! [`Scene::frame`] is a whole frame: select, stream, cull, draw. Windows, screenshots and tests
//! all call it. Time comes as an argument, so a screenshot has none.

mod cull;
pub mod hole_check;
mod patch_ground;
mod pops;
mod spans;

use crate::error::{Error, Result};
use crate::files;
use crate::render::gpu::WindowFrame;
use crate::render::painter::{OverlayShapes, Painter};
use crate::render::target::{Picture, PictureTarget};
use crate::render::{FrameView, Gpu, Renderer, WindowSurface};
use crate::settings::{CpuTimes, Settings, Setup, Stats};
use crate::terrain::camera::Pose;
use crate::world::water::surface_m;
use crate::world::{WaterMask, World};
use patch_ground::PatchGround;
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
    ground: PatchGround,
    renderer: Renderer,
    adapter: String,
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
            draws: self.ground.draws(),
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
        let meta = &self.world.meta;
        self.ground.select(meta, &views.lod, settings, seconds);
        cpu_ms.select = spans.lap();
        self.ground.stream(gpu, &mut self.renderer, settings);
        cpu_ms.stream = spans.lap();
        self.ground.cull(meta, &views, settings, seconds);
        let stats = self.ground.stats(&meta.layout, &self.renderer);
        cpu_ms.cull = spans.lap();
        Stats {
            adapter: self.adapter.clone(),
            cpu_ms,
            ..stats
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
            draws: self.ground.draws(),
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
            let meta = &self.world.meta;
            self.ground.select(meta, &views.lod, settings, LONG_AGO_S);
            self.ground.stream(gpu, &mut self.renderer, settings);
            let missing = self.ground.missing();
            if missing == 0 {
                return Ok(());
            }
            if let Some(failure) = self.ground.stuck() {
                return Err(bad_world(&self.world, failure));
            }
            if start.elapsed() > timeout {
                return Err(Error::Check(format!(
                    "streaming did not settle within {:.0} s: {missing} patches are missing (try a longer --settle-timeout)",
                    timeout.as_secs_f64()
                )));
            }
            self.ground.wait(PATIENCE);
        }
    }

    /// The height of the ground as drawn, or of the sea over it, in metres, from the finest
    /// heights in memory.
    pub fn ground_height_m(&self, x_m: f64, z_m: f64, exaggeration: f64) -> f64 {
        let meta = &self.world.meta;
        let [x, z] = [x_m / meta.spacing_m[0], z_m / meta.spacing_m[1]];
        let ground_m = self.ground.height([x, z]) * meta.height_step_m;
        exaggeration * surface_m(meta, self.water.as_ref(), [x, z], ground_m)
    }

    fn new(
        gpu: &Gpu,
        world: Arc<World>,
        water: Option<WaterMask>,
        mut renderer: Renderer,
        setup: &Setup,
    ) -> Result<Self> {
        let ground = PatchGround::open(gpu, &mut renderer, &world, setup)?;
        Ok(Scene {
            sea_floor: sea_floor(&world, water.as_ref(), &ground),
            world,
            water,
            ground,
            renderer,
            adapter: gpu.describe() + setup.note(),
        })
    }
}

fn water_mask(world: &World) -> Result<Option<WaterMask>> {
    let mask = world.read_water_mask();
    mask.map_err(|error| bad_world(world, &error.to_string()))
}

/// The lowest ground in height steps where water is, as far as the coarse heights tell.
fn sea_floor(world: &World, water: Option<&WaterMask>, ground: &PatchGround) -> f64 {
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
    let floor = wet.map(|place| ground.height(place)).reduce(f64::min);
    // No sounding hits a small lake.
    floor.unwrap_or(meta.height_range[0] as f64)
}

fn bad_world(world: &World, what: &str) -> Error {
    files::bad_world(Path::new(&world.name), what)
}
