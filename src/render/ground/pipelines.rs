//! The pipelines of the ground, one a view and a kind of cut, and what they read.

use super::super::gpu::Gpu;
use super::super::pipeline::{self, PipelineSpec};
use super::super::target::TargetFormat;
use super::{Cut, PatchInstance};
use crate::settings::View;
use crate::terrain::mesh::PatchVertex;
use std::collections::HashMap;

pub fn group_layout(gpu: &Gpu) -> wgpu::BindGroupLayout {
    let entry = |binding, visibility, ty| wgpu::BindGroupLayoutEntry {
        binding,
        visibility,
        ty,
        count: None,
    };
    let texture = wgpu::BindingType::Texture {
        sample_type: wgpu::TextureSampleType::Float { filterable: true },
        view_dimension: wgpu::TextureViewDimension::D2,
        multisampled: false,
    };
    let numbers = wgpu::BindingType::Texture {
        sample_type: wgpu::TextureSampleType::Uint,
        view_dimension: wgpu::TextureViewDimension::D2,
        multisampled: false,
    };
    let storage = wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Storage { read_only: true },
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    gpu.device
        .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some("ground"),
            entries: &[
                entry(0, wgpu::ShaderStages::FRAGMENT, texture),
                entry(
                    1,
                    wgpu::ShaderStages::FRAGMENT,
                    wgpu::BindingType::Sampler(wgpu::SamplerBindingType::Filtering),
                ),
                entry(2, wgpu::ShaderStages::VERTEX, storage),
                entry(3, wgpu::ShaderStages::VERTEX, storage),
                entry(4, wgpu::ShaderStages::FRAGMENT, numbers),
            ],
        })
}

pub fn bind_group(
    gpu: &Gpu,
    layout: &wgpu::BindGroupLayout,
    textures: [&wgpu::Texture; 2],
    vertices: &wgpu::Buffer,
    indices: &wgpu::Buffer,
) -> wgpu::BindGroup {
    let sampler = gpu.device.create_sampler(&wgpu::SamplerDescriptor {
        label: Some("normals"),
        mag_filter: wgpu::FilterMode::Linear,
        min_filter: wgpu::FilterMode::Linear,
        ..Default::default()
    });
    let views = textures.map(|texture| texture.create_view(&Default::default()));
    let resources = [
        wgpu::BindingResource::TextureView(&views[0]),
        wgpu::BindingResource::Sampler(&sampler),
        vertices.as_entire_binding(),
        indices.as_entire_binding(),
        wgpu::BindingResource::TextureView(&views[1]),
    ];
    let entries: Vec<_> = (0..)
        .zip(resources)
        .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource })
        .collect();
    gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("ground"),
        layout,
        entries: &entries,
    })
}

pub fn create(
    gpu: &Gpu,
    globals: &wgpu::BindGroupLayout,
    group: &wgpu::BindGroupLayout,
    format: TargetFormat,
    has_voids: bool,
    plain: bool,
) -> HashMap<(View, Cut), wgpu::RenderPipeline> {
    let ground = include_str!("../../../shaders/ground.wgsl");
    let module = pipeline::shader(gpu, "ground", &[pipeline::SHADING, ground]);
    let layout = pipeline::layout(gpu, "ground", &[globals, group]);
    let per_vertex = wgpu::vertex_attr_array![0 => Uint16x2, 1 => Sint32x2];
    let per_patch = wgpu::vertex_attr_array![
        2 => Sint32x2, 3 => Sint32, 4 => Uint32, 5 => Float32x4, 6 => Uint32x2, 7 => Uint32, 8 => Uint32
    ];
    let vertices = wgpu::VertexBufferLayout {
        array_stride: size_of::<PatchVertex>() as u64,
        step_mode: wgpu::VertexStepMode::Vertex,
        attributes: &per_vertex,
    };
    let instances = wgpu::VertexBufferLayout {
        array_stride: size_of::<PatchInstance>() as u64,
        step_mode: wgpu::VertexStepMode::Instance,
        attributes: &per_patch,
    };
    let deep = gpu.loses_depth();
    let one = |view: View, cut: Cut| {
        let fragment = match (view, deep) {
            (View::Shaded, false) => "fs_shaded",
            (View::Shaded, true) => "fs_shaded_deep",
            (View::Wireframe, false) => "fs_wireframe",
            (View::Wireframe, true) => "fs_wireframe_deep",
            (View::Level, false) => "fs_level",
            (View::Level, true) => "fs_level_deep",
            (View::Hole, _) => "fs_hole",
        };
        let (vertex, buffers): (_, &[_]) = if view == View::Wireframe {
            ("vs_pulled", &[Some(instances.clone())])
        } else {
            (
                "vs_indexed",
                &[Some(vertices.clone()), Some(instances.clone())],
            )
        };
        let spec = PipelineSpec {
            label: "ground",
            layout: &layout,
            module: &module,
            vertex,
            fragment,
            buffers,
            constants: &[
                ("CUT", f64::from(cut != Cut::Nowhere)),
                ("VOIDS", f64::from(cut == Cut::Voids)),
                ("EXACT_DEPTH", f64::from(deep)),
            ],
            plain,
            cull: view != View::Hole,
            blend: None,
            writes_depth: true,
            format,
        };
        pipeline::create(gpu, &spec)
    };
    let cuts: &[Cut] = if has_voids {
        &[Cut::Nowhere, Cut::Border, Cut::Voids]
    } else {
        &[Cut::Nowhere, Cut::Border]
    };
    let keys = View::ALL
        .into_iter()
        .flat_map(|view| cuts.iter().map(move |&cut| (view, cut)));
    keys.map(|(view, cut)| ((view, cut), one(view, cut)))
        .collect()
}
