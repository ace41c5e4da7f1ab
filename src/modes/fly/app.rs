//! The window: events in, frames out.

use super::bindings::{self, Action};
use super::controller::{FlyCamera, Held};
use super::engine::{Engine, icon};
use super::recorder::Recorder;
use crate::error::{Error, Result};
use crate::modes::cli::{FlyArgs, ViewArgs};
use crate::modes::first_pose;
use crate::overlay::OverlayView;
use crate::scene::Target;
use crate::settings::{Settings, Stats, View};
use crate::terrain::camera::CameraArg;
use crate::terrain::flight::Flight;
use crate::world::World;
use glam::DVec3;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use winit::application::ApplicationHandler;
use winit::dpi::LogicalSize;
use winit::event::{
    DeviceEvent, DeviceId, ElementState, KeyEvent, MouseButton, MouseScrollDelta, WindowEvent,
};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop};
use winit::keyboard::{KeyCode, PhysicalKey};
use winit::window::{CursorGrabMode, Fullscreen, Window, WindowId};

/// A longer step (a stall, a dragged window) would throw the camera far away.
const LONGEST_STEP: Duration = Duration::from_millis(100);
/// How often a window that cannot be seen looks whether it can.
const HIDDEN_PAUSE: Duration = Duration::from_millis(50);
const LEAST_PIXEL_ERROR: f64 = 0.25;
const MOST_PIXEL_ERROR: f64 = 32.0;

/// Flies until the window is closed; returns the way that was flown, if it is to be recorded.
pub fn fly(
    event_loop: EventLoop<()>,
    world: Arc<World>,
    settings: Settings,
    args: &FlyArgs,
    recorded: Option<Flight>,
) -> Result<Option<Flight>> {
    let title = args.world.as_deref().and_then(Path::file_name);
    let title = title.map_or("built-in archipelago".into(), |name| name.to_string_lossy());
    let mut app = App {
        start: Start {
            world,
            settings,
            view: args.view.clone(),
            camera: args.camera,
            recorded,
            records: args.record.is_some(),
            lose_after: args.lose_device_after,
            title: title.into(),
        },
        running: None,
        outcome: Ok(()),
    };
    event_loop
        .run_app(&mut app)
        .map_err(|error| Error::Gpu(format!("the window's event loop ended: {error}")))?;
    app.outcome?;
    Ok(app.running.and_then(|running| running.recorder.flight()))
}

/// What it takes to open the window.
pub struct Start {
    pub world: Arc<World>,
    settings: Settings,
    pub view: ViewArgs,
    camera: Option<CameraArg>,
    /// What is flown until a key moves the camera.
    recorded: Option<Flight>,
    records: bool,
    /// The frame after which the device is lost, for tests.
    pub lose_after: Option<u64>,
    title: String,
}

struct App {
    start: Start,
    running: Option<Running>,
    outcome: Result<()>,
}

impl App {
    fn reopen(&mut self, event_loop: &ActiveEventLoop, why: &str) {
        let Some(running) = self.running.take() else {
            return;
        };
        match running.reopened(event_loop, &self.start, why) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                self.outcome = Err(error);
                event_loop.exit();
            }
        }
    }
}

impl ApplicationHandler for App {
    fn resumed(&mut self, event_loop: &ActiveEventLoop) {
        if self.running.is_some() {
            return;
        }
        match Running::open(event_loop, &self.start) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                self.outcome = Err(error);
                event_loop.exit();
            }
        }
    }

    fn window_event(&mut self, event_loop: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        let Some(running) = &mut self.running else {
            return;
        };
        match event {
            WindowEvent::CloseRequested => event_loop.exit(),
            WindowEvent::RedrawRequested => {
                running.draw();
                if let Some(why) = running.engine.gpu.lost() {
                    self.reopen(event_loop, &why);
                }
            }
            event => {
                if running.handle(&event) == After::Quit {
                    event_loop.exit();
                }
            }
        }
    }

    fn device_event(&mut self, _: &ActiveEventLoop, _: DeviceId, event: DeviceEvent) {
        if let (Some(running), DeviceEvent::MouseMotion { delta: (dx, dy) }) =
            (&mut self.running, event)
            && running.looking
        {
            running.camera.turn(dx, dy);
        }
    }

    fn about_to_wait(&mut self, event_loop: &ActiveEventLoop) {
        let Some(running) = &self.running else { return };
        if running.can_be_seen() {
            event_loop.set_control_flow(ControlFlow::Poll);
            running.window.request_redraw();
        } else {
            event_loop.set_control_flow(ControlFlow::wait_duration(HIDDEN_PAUSE));
        }
    }
}

#[derive(PartialEq, Eq)]
enum After {
    GoOn,
    Quit,
}

/// An open window and all that is behind it.
struct Running {
    window: Arc<Window>,
    engine: Engine,
    settings: Settings,
    camera: FlyCamera,
    recorder: Recorder,
    held: HashSet<KeyCode>,
    looking: bool,
    occluded: bool,
    began: Instant,
    last_frame: Instant,
    frame_ms: f64,
    /// The largest error of level 0.
    finest_error_m: f64,
    stats: Stats,
}

impl Running {
    fn open(event_loop: &ActiveEventLoop, start: &Start) -> Result<Self> {
        let attributes = Window::default_attributes()
            .with_title(format!("Highfell: {}", start.title))
            .with_inner_size(LogicalSize::new(1280, 720))
            .with_min_inner_size(LogicalSize::new(320, 200))
            .with_window_icon(icon());
        let window = event_loop
            .create_window(attributes)
            .map_err(|error| Error::Gpu(format!("a window cannot be opened: {error}")))?;
        let window = Arc::new(window);
        let engine = Engine::open(event_loop, &window, start)?;
        let settings = start.settings.clone();
        let pose = match &start.recorded {
            Some(flight) => flight.at(0.0),
            None => {
                let exaggeration = settings.lod.exaggeration;
                first_pose(start.camera.as_ref(), &start.world, exaggeration)?
            }
        };
        Ok(Running {
            camera: FlyCamera::new(pose, &start.world.meta),
            recorder: Recorder::new(start.recorded.clone(), start.records),
            window,
            engine,
            settings,
            held: HashSet::new(),
            looking: false,
            occluded: false,
            began: Instant::now(),
            last_frame: Instant::now(),
            frame_ms: 0.0,
            finest_error_m: start.world.meta.levels[0].max_error_m,
            stats: Stats::default(),
        })
    }

    /// With everything made again that went with a lost device.
    fn reopened(self, event_loop: &ActiveEventLoop, start: &Start, why: &str) -> Result<Self> {
        let engine = self.engine.reopened(event_loop, &self.window, start, why)?;
        Ok(Running { engine, ..self })
    }

    fn can_be_seen(&self) -> bool {
        let size = self.window.inner_size();
        !self.occluded
            && size.width > 0
            && size.height > 0
            && self.window.is_minimized() != Some(true)
    }

    fn handle(&mut self, event: &WindowEvent) -> After {
        let taken = self.engine.input.on_event(&self.window, event);
        match event {
            WindowEvent::Resized(size) => {
                self.engine.surface.resize(&self.engine.gpu, (*size).into())
            }
            WindowEvent::Occluded(occluded) => self.occluded = *occluded,
            WindowEvent::Focused(false) => {
                self.held.clear();
                self.look(false);
            }
            WindowEvent::KeyboardInput { event, .. } => return self.key(event),
            WindowEvent::MouseInput {
                state,
                button: MouseButton::Right,
                ..
            } => {
                let pressed = *state == ElementState::Pressed;
                if !pressed || !self.engine.overlay.is_under_pointer() {
                    self.look(pressed);
                }
            }
            WindowEvent::MouseWheel { delta, .. } if !taken => {
                self.camera.change_speed(match delta {
                    MouseScrollDelta::LineDelta(_, lines) => *lines as f64,
                    MouseScrollDelta::PixelDelta(pixels) => pixels.y / 40.0,
                })
            }
            _ => {}
        }
        After::GoOn
    }

    fn key(&mut self, event: &KeyEvent) -> After {
        let PhysicalKey::Code(code) = event.physical_key else {
            return After::GoOn;
        };
        if event.state == ElementState::Released {
            self.held.remove(&code);
            return After::GoOn;
        }
        if self.engine.overlay.is_typing() || event.repeat {
            return After::GoOn;
        }
        self.held.insert(code);
        if bindings::motion_of(code) != [0.0; 3] {
            self.recorder.stop();
        }
        if code == KeyCode::KeyQ && self.is_held([KeyCode::ControlLeft, KeyCode::ControlRight]) {
            return After::Quit;
        }
        if let Some(action) = bindings::action_of(code) {
            self.act(action);
        }
        After::GoOn
    }

    fn act(&mut self, action: Action) {
        let lod = &mut self.settings.lod;
        match action {
            Action::ToggleWireframe => self.toggle_view(View::Wireframe),
            Action::ToggleLevels => self.toggle_view(View::Level),
            Action::ShadedView => self.settings.view = View::Shaded,
            Action::ToggleHelp => self.engine.overlay.show_help = !self.engine.overlay.show_help,
            Action::TogglePanels => {
                self.engine.overlay.show_panel = !self.engine.overlay.show_panel
            }
            Action::ToggleClamp => {
                let default = Settings::default().clearance_m;
                self.settings.clearance_m = if self.settings.clearance_m.is_some() {
                    None
                } else {
                    default
                };
            }
            Action::ToggleLook => self.look(!self.looking),
            Action::FreeMouse => self.look(false),
            Action::Home => {
                self.recorder.stop();
                self.camera.go_home();
            }
            Action::ResetSpeed => self.camera.reset_speed(),
            Action::FinerError => lod.pixel_error = (lod.pixel_error / 1.25).max(LEAST_PIXEL_ERROR),
            Action::CoarserError => {
                lod.pixel_error = (lod.pixel_error * 1.25).min(MOST_PIXEL_ERROR)
            }
            Action::CopyPose => self.engine.overlay.copy(self.camera.pose.to_string()),
            Action::FullScreen => {
                let full = self
                    .window
                    .fullscreen()
                    .is_none()
                    .then_some(Fullscreen::Borderless(None));
                self.window.set_fullscreen(full);
            }
        }
    }

    fn toggle_view(&mut self, view: View) {
        self.settings.view = if self.settings.view == view {
            View::Shaded
        } else {
            view
        };
    }

    /// Takes the mouse for looking, or frees it.
    fn look(&mut self, on: bool) {
        if self.looking == on {
            return;
        }
        self.looking = on;
        if on {
            self.recorder.stop();
        }
        self.window.set_cursor_visible(!on);
        if on {
            // X11 cannot lock the cursor, macOS cannot confine it.
            let grabbed = self.window.set_cursor_grab(CursorGrabMode::Locked);
            if let Err(error) =
                grabbed.or_else(|_| self.window.set_cursor_grab(CursorGrabMode::Confined))
            {
                log::debug!("the cursor stays free: {error}");
            }
        } else if let Err(error) = self.window.set_cursor_grab(CursorGrabMode::None) {
            log::warn!("the cursor cannot be freed: {error}");
        }
    }

    fn draw(&mut self) {
        let now = Instant::now();
        let step = now - self.last_frame;
        self.last_frame = now;
        self.frame_ms += (step.as_secs_f64() * 1000.0 - self.frame_ms) * 0.1;
        let seconds = self.began.elapsed().as_secs_f64();
        match self.recorder.played(seconds) {
            Some(pose) => self.camera.pose = pose,
            None => self.move_camera(step.min(LONGEST_STEP).as_secs_f64()),
        }
        if !self.can_be_seen() {
            return;
        }
        let Some(frame) = self.engine.surface.next_frame(&self.engine.gpu) else {
            return;
        };
        let shapes = {
            let view = OverlayView {
                meta: &self.engine.scene.world().meta,
                stats: &self.stats,
                frame_ms: self.frame_ms,
                pose: &self.camera.pose,
                speed_m_s: self.camera.speed_m_s,
                keys: &bindings::help(),
            };
            let raw = self.engine.input.take(&self.window);
            let (shapes, platform) = self.engine.overlay.run(raw, &mut self.settings, &view);
            self.engine.input.give(&self.window, platform);
            shapes
        };
        let size = self.engine.surface.size();
        let target = Target::Window {
            frame: &frame,
            size,
            overlay: Some((&mut self.engine.painter, shapes)),
        };
        self.recorder.note(seconds, &self.camera.pose);
        self.stats = self.engine.scene.frame(
            &self.engine.gpu,
            &self.camera.pose,
            &self.settings,
            seconds,
            target,
        );
        self.window.pre_present_notify();
        self.engine.surface.show(&self.engine.gpu, frame);
        self.engine.drawn();
    }

    fn move_camera(&mut self, seconds: f64) {
        let motion = self
            .held
            .iter()
            .map(|&code| DVec3::from(bindings::motion_of(code)))
            .sum();
        let held = Held {
            motion,
            fast: self.is_held([KeyCode::ShiftLeft, KeyCode::ShiftRight]),
            slow: self.is_held([KeyCode::ControlLeft, KeyCode::ControlRight]),
        };
        let exaggeration = self.settings.lod.exaggeration;
        let clearance = self.settings.clearance_m;
        // The mesh may lie above the ground by its error.
        let error_m = self.finest_error_m * exaggeration;
        let floor = |x, z| match clearance {
            Some(clearance) => {
                self.engine.scene.ground_height_m(x, z, exaggeration) + error_m + clearance
            }
            None => f64::NEG_INFINITY,
        };
        self.camera.advance(&held, seconds, floor);
    }

    fn is_held(&self, codes: [KeyCode; 2]) -> bool {
        codes.iter().any(|code| self.held.contains(code))
    }
}
