//! Paints the overlay's shapes over the picture.

use super::gpu::{Gpu, WindowSurface};
use egui_wgpu::{RendererOptions, ScreenDescriptor};

/// The shapes of one frame of the overlay.
pub struct OverlayShapes {
    pub triangles: Vec<egui::ClippedPrimitive>,
    pub textures: egui::TexturesDelta,
    pub pixels_per_point: f32,
}

pub struct Painter {
    renderer: egui_wgpu::Renderer,
}

impl Painter {
    pub fn new(gpu: &Gpu, surface: &WindowSurface) -> Self {
        let options = RendererOptions {
            dithering: false,
            ..Default::default()
        };
        Painter {
            renderer: egui_wgpu::Renderer::new(&gpu.device, surface.format(), options),
        }
    }

    pub(super) fn paint(
        &mut self,
        gpu: &Gpu,
        encoder: &mut wgpu::CommandEncoder,
        target: &wgpu::TextureView,
        size: [u32; 2],
        mut shapes: OverlayShapes,
        timestamp_writes: Option<wgpu::RenderPassTimestampWrites>,
    ) {
        for (id, deltas) in &shapes.textures.set {
            for delta in deltas {
                self.renderer
                    .update_texture(&gpu.device, &gpu.queue, *id, delta);
            }
        }
        let screen = ScreenDescriptor {
            size_in_pixels: size,
            pixels_per_point: shapes.pixels_per_point,
        };
        self.renderer
            .update_buffers(&gpu.device, &gpu.queue, encoder, &shapes.triangles, &screen);
        let pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("overlay"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: target,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Load,
                    store: wgpu::StoreOp::Store,
                },
            })],
            timestamp_writes,
            ..Default::default()
        });
        self.renderer
            .render(&mut pass.forget_lifetime(), &shapes.triangles, &screen);
        for id in &shapes.textures.free {
            self.renderer.free_texture(id);
        }
        shapes.textures.clear();
    }
}
