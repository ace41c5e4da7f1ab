//! What every shader of a frame sees: the camera, the eye's place, sun, sea, air.
//!
//! The eye is split into whole samples and height units, which are exact, and a small rest: what is
//! far from the origin is drawn as exactly as what is near.

use super::gpu::Gpu;
use super::layer::FrameView;
use crate::world::Meta;
use bytemuck::{Pod, Zeroable};
use glam::{DVec3, IVec2, Vec3, Vec4};

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

/// What all shaders see, in group 0.
pub fn layout(gpu: &Gpu) -> wgpu::BindGroupLayout {
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

pub fn group(
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

/// What a frame's shaders see. `water_square`: samples along a square of the water mask; 0 without one.
pub fn globals(frame: &FrameView, water_square: u32) -> Globals {
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
