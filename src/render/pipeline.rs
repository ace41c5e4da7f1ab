//! What all pipelines have in common, said once.

use super::gpu::Gpu;
use super::target::{DEPTH_FORMAT, TargetFormat};

/// What differs from one pipeline to the next.
pub struct PipelineSpec<'a> {
    pub label: &'a str,
    pub layout: &'a wgpu::PipelineLayout,
    pub module: &'a wgpu::ShaderModule,
    pub vertex: &'a str,
    pub fragment: &'a str,
    pub buffers: &'a [Option<wgpu::VertexBufferLayout<'a>>],
    pub constants: &'a [(&'a str, f64)],
    /// Without what a software adapter is slow at.
    pub plain: bool,
    pub cull: bool,
    pub blend: Option<wgpu::BlendState>,
    pub writes_depth: bool,
    pub format: TargetFormat,
}

pub fn create(gpu: &Gpu, spec: &PipelineSpec) -> wgpu::RenderPipeline {
    let plain = [("PLAIN", f64::from(spec.plain))];
    let constants = [spec.constants, &plain].concat();
    let options = wgpu::PipelineCompilationOptions {
        constants: &constants,
        ..Default::default()
    };
    let target = wgpu::ColorTargetState {
        format: spec.format.color,
        blend: spec.blend,
        write_mask: wgpu::ColorWrites::ALL,
    };
    gpu.device
        .create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some(spec.label),
            layout: Some(spec.layout),
            vertex: wgpu::VertexState {
                module: spec.module,
                entry_point: Some(spec.vertex),
                compilation_options: options.clone(),
                buffers: spec.buffers,
            },
            primitive: wgpu::PrimitiveState {
                cull_mode: spec.cull.then_some(wgpu::Face::Back),
                ..Default::default()
            },
            depth_stencil: Some(wgpu::DepthStencilState {
                format: DEPTH_FORMAT,
                depth_write_enabled: Some(spec.writes_depth),
                // Depth is reversed: 1 at the near plane, 0 infinitely far.
                depth_compare: Some(wgpu::CompareFunction::GreaterEqual),
                stencil: Default::default(),
                bias: Default::default(),
            }),
            multisample: wgpu::MultisampleState {
                count: spec.format.samples,
                ..Default::default()
            },
            fragment: Some(wgpu::FragmentState {
                module: spec.module,
                entry_point: Some(spec.fragment),
                compilation_options: options,
                targets: &[Some(target)],
            }),
            multiview_mask: None,
            cache: None,
        })
}

/// How ground is coloured and lit.
pub const SHADING: &str = include_str!("../../shaders/shading.wgsl");

/// A shader with what all shaders share in front of it.
pub fn shader(gpu: &Gpu, label: &str, sources: &[&str]) -> wgpu::ShaderModule {
    let common = include_str!("../../shaders/common.wgsl");
    let source = common.to_owned() + &sources.concat();
    gpu.device
        .create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(label),
            source: wgpu::ShaderSource::Wgsl(source.into()),
        })
}

pub fn layout(gpu: &Gpu, label: &str, groups: &[&wgpu::BindGroupLayout]) -> wgpu::PipelineLayout {
    let groups: Vec<_> = groups.iter().map(|group| Some(*group)).collect();
    gpu.device
        .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(label),
            bind_group_layouts: &groups,
            immediate_size: 0,
        })
}
