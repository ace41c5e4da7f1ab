//! One picture: ground, sky, water, overlay, in that order.

use super::clock::GpuClock;
use super::frame_buffer::FrameBuffer;
use super::globals::{self, Globals};
use super::gpu::{Gpu, WindowFrame, WindowSurface};
use super::ground::Ground;
use super::layer::{Counts, FrameView, Layer};
use super::painter::{OverlayShapes, Painter};
use super::sky::Sky;
use super::target::{Attachments, PICTURE_FORMAT, PictureTarget, TargetFormat};
use super::water::{self, Water};
use crate::settings::Setup;
use crate::terrain::mesh::PatchMesh;
use crate::terrain::normals::Texel;
use crate::world::{Coverage, Meta, PatchKey, WaterMask};

/// Draws one world, in one colour format.
pub struct Renderer {
    globals: FrameBuffer,
    globals_group: wgpu::BindGroup,
    /// Samples along a square of the water mask; 0 without one.
    water_square: u32,
    ground: Ground,
    sky: Sky,
    water: Water,
    format: TargetFormat,
    attachments: Option<Attachments>,
    clock: GpuClock,
}

impl Renderer {
    /// A renderer of pictures that are read back.
    pub fn for_pictures(gpu: &Gpu, meta: &Meta, mask: Option<&WaterMask>, setup: &Setup) -> Self {
        Self::new(gpu, meta, mask, PICTURE_FORMAT, setup)
    }

    pub fn for_window(
        gpu: &Gpu,
        meta: &Meta,
        mask: Option<&WaterMask>,
        surface: &WindowSurface,
        setup: &Setup,
    ) -> Self {
        Self::new(gpu, meta, mask, surface.format(), setup)
    }

    /// Writes a patch into GPU memory; false when it does not fit. Ground is drawn over `cells` of
    /// its lattice, or over all.
    pub fn upload(
        &mut self,
        gpu: &Gpu,
        key: PatchKey,
        mesh: &PatchMesh,
        normals: &[Texel],
        cells: Option<&Coverage>,
    ) -> bool {
        self.ground.upload(gpu, key, mesh, normals, cells)
    }

    pub fn remove(&mut self, key: PatchKey) {
        self.ground.remove(key);
    }

    /// Patches in GPU memory by level.
    pub fn resident(&self) -> Vec<u64> {
        self.ground.resident()
    }

    /// Bytes that patches take, and that were allocated for them.
    pub fn ground_bytes(&self) -> [u64; 2] {
        self.ground.bytes()
    }

    pub fn clock(&mut self) -> &mut GpuClock {
        &mut self.clock
    }

    pub fn draw_picture(
        &mut self,
        gpu: &Gpu,
        frame: &FrameView,
        target: &PictureTarget,
        size: [u32; 2],
    ) -> Counts {
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        let counts = self.encode(gpu, &mut encoder, frame, &target.view, size);
        self.clock.submit(gpu, encoder);
        counts
    }

    /// Draws a window's frame and the overlay over it, if there is one.
    pub fn draw_window(
        &mut self,
        gpu: &Gpu,
        frame: &FrameView,
        window: &WindowFrame,
        overlay: Option<(&mut Painter, OverlayShapes)>,
    ) -> Counts {
        let view = window.0.texture.create_view(&Default::default());
        let size = [window.0.texture.width(), window.0.texture.height()];
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        let counts = self.encode(gpu, &mut encoder, frame, &view, size);
        if let Some((painter, shapes)) = overlay {
            let query = self.clock.begin("overlay", &mut encoder);
            let writes = query.render_pass_timestamp_writes();
            painter.paint(gpu, &mut encoder, &view, size, shapes, writes);
            self.clock.end(&mut encoder, query);
        }
        self.clock.submit(gpu, encoder);
        counts
    }

    fn new(
        gpu: &Gpu,
        meta: &Meta,
        mask: Option<&WaterMask>,
        color: wgpu::TextureFormat,
        setup: &Setup,
    ) -> Self {
        let format = TargetFormat {
            color,
            samples: setup.msaa,
        };
        let size = size_of::<Globals>() as u64;
        let globals = FrameBuffer::new(gpu, "globals", size, wgpu::BufferUsages::UNIFORM);
        let layout = globals::layout(gpu);
        let mask = mask.map(|mask| mask.within(water::most_squares(gpu)));
        let mask = mask.as_ref();
        let mask_view = water::mask_texture(gpu, mask).create_view(&Default::default());
        let globals_group = globals::group(gpu, &layout, globals.buffer(), &mask_view);
        Renderer {
            water_square: mask.map_or(0, WaterMask::square_samples),
            ground: Ground::new(gpu, &layout, format, meta, setup),
            sky: Sky::new(gpu, &layout, format, setup.plain),
            water: Water::new(gpu, &layout, format, setup.plain),
            format,
            attachments: None,
            clock: GpuClock::new(gpu),
            globals,
            globals_group,
        }
    }

    fn encode(
        &mut self,
        gpu: &Gpu,
        encoder: &mut wgpu::CommandEncoder,
        frame: &FrameView,
        target: &wgpu::TextureView,
        size: [u32; 2],
    ) -> Counts {
        let globals = globals::globals(frame, self.water_square);
        let bytes = self.globals.write(gpu, bytemuck::bytes_of(&globals));
        let mut counts = Counts {
            bytes,
            ..Counts::default()
        };
        let query = self.clock.begin("world", encoder);
        self.attachments.take_if(|last| last.size != size);
        let attachments =
            (self.attachments).get_or_insert_with(|| Attachments::new(gpu, size, self.format));
        let (view, resolve_target, store) = match &attachments.samples {
            Some(samples) => (samples, Some(target), wgpu::StoreOp::Discard),
            None => (target, None, wgpu::StoreOp::Store),
        };
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("world"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view,
                depth_slice: None,
                resolve_target,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color::BLACK),
                    store,
                },
            })],
            depth_stencil_attachment: Some(wgpu::RenderPassDepthStencilAttachment {
                view: &attachments.depth,
                depth_ops: Some(wgpu::Operations {
                    load: wgpu::LoadOp::Clear(0.0),
                    store: wgpu::StoreOp::Discard,
                }),
                stencil_ops: None,
            }),
            timestamp_writes: query.render_pass_timestamp_writes(),
            ..Default::default()
        });
        pass.set_bind_group(0, &self.globals_group, &[]);
        let layers: [&mut dyn Layer; 3] = [&mut self.ground, &mut self.sky, &mut self.water];
        for layer in layers {
            counts += layer.draw(gpu, &mut pass, frame);
        }
        drop(pass);
        self.clock.end(encoder, query);
        counts
    }
}
