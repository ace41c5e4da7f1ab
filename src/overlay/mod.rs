//! The egui overlay: shows what the frame was made of and edits the settings.
//!
//! Panels are functions of plain data; only [`input`] knows the window.

pub mod input;
pub mod panels;

use crate::render::painter::OverlayShapes;
use crate::settings::{Settings, Stats};
use crate::terrain::camera::Pose;
use crate::world::Meta;

/// What the overlay shows.
pub struct OverlayView<'a> {
    pub meta: &'a Meta,
    pub stats: &'a Stats,
    /// Milliseconds from frame to frame, smoothed.
    pub frame_ms: f64,
    pub pose: &'a Pose,
    pub speed_m_s: f64,
    /// Keys and what they do.
    pub keys: &'a [(&'static str, &'static str)],
}

pub struct Overlay {
    context: egui::Context,
    pub show_help: bool,
    pub show_panel: bool,
}

impl Overlay {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let context = egui::Context::default();
        context.set_visuals(egui::Visuals::dark());
        Overlay {
            context,
            show_help: false,
            show_panel: true,
        }
    }

    /// True while a text or number is being typed.
    pub fn is_typing(&self) -> bool {
        self.context.text_edit_focused()
    }

    pub fn is_under_pointer(&self) -> bool {
        self.context.is_pointer_over_egui()
    }

    /// Puts a text on the clipboard with the next frame.
    pub fn copy(&self, text: String) {
        self.context.copy_text(text);
    }

    /// One frame: what to paint, and what the platform should do.
    pub fn run(
        &mut self,
        raw: egui::RawInput,
        settings: &mut Settings,
        view: &OverlayView,
    ) -> (OverlayShapes, egui::PlatformOutput) {
        let (panel, mut help) = (self.show_panel, self.show_help);
        let output = self.context.run_ui(raw, |ui| {
            if panel {
                panels::main_panel(ui, settings, view);
            }
            panels::help_window(ui.ctx(), &mut help, view);
        });
        self.show_help = help;
        let shapes = OverlayShapes {
            triangles: self
                .context
                .tessellate(output.shapes, output.pixels_per_point),
            textures: output.textures_delta,
            pixels_per_point: output.pixels_per_point,
        };
        (shapes, output.platform_output)
    }
}
