//! Between the window and the overlay: events in, clipboard and cursor out.

use super::Overlay;
use winit::event::WindowEvent;
use winit::window::Window;

pub struct OverlayInput(egui_winit::State);

impl OverlayInput {
    pub fn new(overlay: &Overlay, window: &Window) -> Self {
        let scale = window.scale_factor() as f32;
        let state = egui_winit::State::new(
            overlay.context.clone(),
            egui::ViewportId::ROOT,
            window,
            Some(scale),
            window.theme(),
            None,
        );
        OverlayInput(state)
    }

    /// Passes an event on; true when the overlay wants it for itself.
    pub fn on_event(&mut self, window: &Window, event: &WindowEvent) -> bool {
        self.0.on_window_event(window, event).consumed
    }

    pub fn take(&mut self, window: &Window) -> egui::RawInput {
        self.0.take_egui_input(window)
    }

    pub fn give(&mut self, window: &Window, output: egui::PlatformOutput) {
        self.0.handle_platform_output(window, output);
    }
}
