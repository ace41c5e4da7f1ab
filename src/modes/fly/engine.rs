//! What a window is drawn with: device, surface, scene, overlay. All of it goes when the device is
//! lost (a driver that was updated or hung, an adapter unplugged), and is then made again.

use super::app::Start;
use crate::error::{Error, Result};
use crate::modes::setup;
use crate::overlay::Overlay;
use crate::overlay::input::OverlayInput;
use crate::render::painter::Painter;
use crate::render::{Gpu, WindowSurface};
use crate::scene::Scene;
use crate::settings::Setup;
use std::sync::Arc;
use std::time::{Duration, Instant};
use winit::event_loop::ActiveEventLoop;
use winit::window::{Icon, Window};

/// A device that is lost so soon after another one will be lost again.
const LEAST_LIFE: Duration = Duration::from_secs(10);

pub struct Engine {
    pub scene: Scene,
    pub painter: Painter,
    pub surface: WindowSurface,
    pub gpu: Gpu,
    pub overlay: Overlay,
    pub input: OverlayInput,
    opened: Instant,
    /// How many devices were lost before this one.
    losses: u32,
    frames: u64,
    lose_after: Option<u64>,
}

impl Engine {
    pub fn open(event_loop: &ActiveEventLoop, window: &Arc<Window>, start: &Start) -> Result<Self> {
        let size = window.inner_size().into();
        let display = event_loop.owned_display_handle();
        let (gpu, surface) = Gpu::open_window(window.clone(), display, size, &start.view.adapter)?;
        let overlay = Overlay::new();
        let setup = setup(&start.view, usual(gpu.is_software()));
        if setup.plain && start.view.shading.is_none() {
            log::warn!("the processor draws: plain shading (--shading full for all of it)");
        }
        Ok(Engine {
            scene: Scene::for_window(&gpu, start.world.clone(), &surface, &setup)?,
            painter: Painter::new(&gpu, &surface),
            input: OverlayInput::new(&overlay, window),
            overlay,
            surface,
            gpu,
            opened: Instant::now(),
            losses: 0,
            frames: 0,
            lose_after: start.lose_after,
        })
    }

    /// Another one in the place of one whose device is lost, for a reason.
    pub fn reopened(
        self,
        event_loop: &ActiveEventLoop,
        window: &Arc<Window>,
        start: &Start,
        why: &str,
    ) -> Result<Self> {
        let lost = |what: &str| Error::Gpu(format!("the GPU was lost ({why}) {what}"));
        if self.losses > 0 && self.opened.elapsed() < LEAST_LIFE {
            let what = "again at once; expected a driver that works, or --adapter software";
            return Err(lost(what));
        }
        log::warn!("the GPU was lost ({why}); everything on it is made again");
        let losses = self.losses + 1;
        let Overlay {
            show_help,
            show_panel,
            ..
        } = self.overlay;
        // A window has one surface at a time.
        drop(self);
        let engine = Engine::open(event_loop, window, start);
        let mut engine = engine.map_err(|error| lost(&format!("and cannot be opened: {error}")))?;
        engine.overlay.show_help = show_help;
        engine.overlay.show_panel = show_panel;
        Ok(Engine {
            losses,
            lose_after: None,
            ..engine
        })
    }

    /// A frame is on its way.
    pub fn drawn(&mut self) {
        self.frames += 1;
        if self.lose_after == Some(self.frames) {
            self.gpu.lose();
        }
    }
}

/// What a window is opened with where no flag says.
fn usual(software: bool) -> Setup {
    Setup {
        msaa: if software { 1 } else { 4 },
        plain: software,
        ..Setup::default()
    }
}

/// The summit of the built-in world, for systems that show window icons.
pub fn icon() -> Option<Icon> {
    let png = include_bytes!("../../../assets/icon.png");
    let picture = image::load_from_memory(png).ok()?.into_rgba8();
    let (width, height) = picture.dimensions();
    Icon::from_rgba(picture.into_raw(), width, height).ok()
}
