//! One picture: ground, sky, water, overlay, in that order.

use super::clock::GpuClock;
use super::frame_buffer::FrameBuffer;
use super::gpu::{Gpu, WindowFrame, WindowSurface};
use super::ground::{Ground, GroundCounts};
use super::painter::{OverlayShapes, Painter};
use super::sky::Sky;
use super::target::{Attachments, PICTURE_FORMAT, PictureTarget, TargetFormat};
use super::water::{self, Water};
use crate::settings::{Settings, Setup, View};
use crate::terrain::camera::Views;
use crate::terrain::mesh::PatchMesh;
use crate::terrain::normals::Texel;
use crate::world::{Coverage, Meta, PatchKey, WaterMask};
use bytemuck::{Pod, Zeroable};
use glam::{DVec3, IVec2, Vec3, Vec4};

pub use super::ground::{Cut, DrawPatch};

/// What every pass of a frame sees; `Globals` in shaders/common.wgsl.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Globals {
    pub clip_from_eye: [[f32; 4]; 4],
    pub ray_forward: [f32; 4],
    pub ray_right: [f32; 4],
    pub ray_up: [f32; 4],
    pub sun: [f32; 4],
    pub spacing_m: [f32; 2],
    pub unit_m: f32,
    pub exaggeration: f32,
    pub eye_cell: [i32; 2],
    pub eye_units: i32,
    pub sea: u32,
    pub eye_rest_m: [f32; 3],
    pub sea_m: f32,
    pub last_sample: [f32; 2],
    pub eye_height_m: f32,
    pub fog_m: f32,
    pub ground_low_m: f32,
    pub ground_high_m: f32,
    pub water_square: f32,
    pub pixel_rad: f32,
    pub lod_eye: [f32; 4],
}

/// Where no ground is deeper under the sea there is no sea floor, only a flat sea.
const FLAT_SEA_M: f64 = 20.0;

/// What a frame shows.
pub struct FrameView<'a> {
    pub meta: &'a Meta,
    /// The lowest ground under the sea, in height steps.
    pub sea_floor: f64,
    pub views: &'a Views,
    pub settings: &'a Settings,
    pub draws: &'a [DrawPatch],
    pub seconds: f64,
}

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
    ) -> GroundCounts {
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
    ) -> GroundCounts {
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
        let layout = globals_layout(gpu);
        let mask = mask.map(|mask| mask.within(water::most_squares(gpu)));
        let mask = mask.as_ref();
        let mask_view = water::mask_texture(gpu, mask).create_view(&Default::default());
        let globals_group = globals_group(gpu, &layout, globals.buffer(), &mask_view);
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
    ) -> GroundCounts {
        let globals = globals(frame, self.water_square);
        let bytes = self.globals.write(gpu, bytemuck::bytes_of(&globals));
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
        let view = frame.settings.view;
        let mut counts = self.ground.draw(gpu, &mut pass, view, frame.draws);
        counts.bytes += bytes;
        if view != View::Hole {
            self.sky.draw(&mut pass);
        }
        let watery =
            view == View::Shaded && frame.settings.water && frame.meta.sea_level_m.is_some();
        if watery {
            self.water.draw(&mut pass);
        }
        drop(pass);
        self.clock.end(encoder, query);
        counts
    }
}

/// What all shaders see, in group 0.
fn globals_layout(gpu: &Gpu) -> wgpu::BindGroupLayout {
    let entry = |binding, visibility, ty| wgpu::BindGroupLayoutEntry {
        binding,
        visibility,
        ty,
        count: None,
    };
    let buffer = wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Uniform,
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    let mask = wgpu::BindingType::Texture {
        sample_type: wgpu::TextureSampleType::Float { filterable: true },
        view_dimension: wgpu::TextureViewDimension::D2,
        multisampled: false,
    };
    let sampler = wgpu::BindingType::Sampler(wgpu::SamplerBindingType::Filtering);
    gpu.device
        .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some("globals"),
            entries: &[
                entry(0, wgpu::ShaderStages::VERTEX_FRAGMENT, buffer),
                entry(1, wgpu::ShaderStages::FRAGMENT, mask),
                entry(2, wgpu::ShaderStages::FRAGMENT, sampler),
            ],
        })
}

fn globals_group(
    gpu: &Gpu,
    layout: &wgpu::BindGroupLayout,
    globals: &wgpu::Buffer,
    mask: &wgpu::TextureView,
) -> wgpu::BindGroup {
    // Blends between cells.
    let sampler = gpu.device.create_sampler(&wgpu::SamplerDescriptor {
        label: Some("water mask"),
        mag_filter: wgpu::FilterMode::Linear,
        min_filter: wgpu::FilterMode::Linear,
        ..Default::default()
    });
    let resources = [
        globals.as_entire_binding(),
        wgpu::BindingResource::TextureView(mask),
        wgpu::BindingResource::Sampler(&sampler),
    ];
    let entries: Vec<_> = (0..)
        .zip(resources)
        .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource })
        .collect();
    gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("globals"),
        layout,
        entries: &entries,
    })
}

/// Where the eye is as whole samples and height units, and the rest in metres.
pub fn split_eye(meta: &Meta, exaggeration: f64, eye: DVec3) -> (IVec2, i32, Vec3) {
    let unit_m = height_unit_m(meta, exaggeration);
    let cell = |metres: f64, spacing: f64| ((metres / spacing).floor()).clamp(-1e9, 1e9);
    let (x, z) = (
        cell(eye.x, meta.spacing_m[0]),
        cell(eye.z, meta.spacing_m[1]),
    );
    // Heights reach a quarter of an i32's range to either side; so may the eye's whole part.
    let units = (eye.y / unit_m)
        .floor()
        .clamp(-(2f64.powi(29)), 2f64.powi(29));
    let rest = eye - DVec3::new(x * meta.spacing_m[0], units * unit_m, z * meta.spacing_m[1]);
    (IVec2::new(x as i32, z as i32), units as i32, rest.as_vec3())
}

/// Metres a unit of the heights in vertices, as drawn.
fn height_unit_m(meta: &Meta, exaggeration: f64) -> f64 {
    meta.height_step_m * exaggeration / meta.layout.height_units() as f64
}

/// `water_square`: samples along a square of the water mask; 0 without one.
fn globals(frame: &FrameView, water_square: u32) -> Globals {
    let FrameView {
        meta,
        views,
        settings,
        ..
    } = *frame;
    let viewpoint = &views.draw;
    let exaggeration = settings.lod.exaggeration;
    let (eye_cell, eye_units, eye_rest) = split_eye(meta, exaggeration, viewpoint.eye);
    let [azimuth, height] =
        [settings.sun_azimuth_deg, settings.sun_height_deg].map(f64::to_radians);
    let sun = DVec3::new(
        azimuth.sin() * height.cos(),
        height.sin(),
        -azimuth.cos() * height.cos(),
    );
    let forward = viewpoint.ray(0.5, 0.5);
    let right = viewpoint.ray(1.0, 0.5) - forward;
    let up = viewpoint.ray(0.5, 0.0) - forward;
    let ray = |v: DVec3| v.as_vec3().extend(0.0).to_array();
    let step_m = meta.height_step_m * exaggeration;
    // Half a step higher: ground stored at the sea's very level lies under it.
    let sea_m = (meta.sea_level_m.unwrap_or(0.0) + meta.height_step_m / 2.0) * exaggeration;
    Globals {
        clip_from_eye: viewpoint.clip_from_eye.to_cols_array_2d(),
        ray_forward: ray(forward),
        ray_right: ray(right),
        ray_up: ray(up),
        sun: Vec4::from((sun.as_vec3(), frame.seconds as f32)).to_array(),
        spacing_m: meta.spacing_m.map(|spacing| spacing as f32),
        unit_m: height_unit_m(meta, exaggeration) as f32,
        exaggeration: exaggeration as f32,
        eye_cell: eye_cell.to_array(),
        eye_units,
        sea: match meta.sea_level_m.is_some() && settings.water {
            false => 0,
            true => 1 + u32::from(frame.sea_floor * step_m > sea_m - FLAT_SEA_M),
        },
        eye_rest_m: eye_rest.to_array(),
        sea_m: sea_m as f32,
        last_sample: meta.layout.size_cells.map(|cells| cells as f32),
        eye_height_m: viewpoint.eye.y as f32,
        fog_m: settings.fog_m as f32,
        ground_low_m: (meta.height_range[0] as f64 * step_m) as f32,
        ground_high_m: (meta.height_range[1] as f64 * step_m) as f32,
        water_square: water_square as f32,
        pixel_rad: (1.0 / viewpoint.pixels_per_radian) as f32,
        lod_eye: ray(views.lod.eye - viewpoint.eye),
    }
}
