//! The sea: one triangle over the picture, whose pixels find the plane themselves.

use super::gpu::Gpu;
use super::pipeline::{self, PipelineSpec};

pub struct Water {
    pipeline: wgpu::RenderPipeline,
}

impl Water {
    pub(super) fn new(
        gpu: &Gpu,
        globals: &wgpu::BindGroupLayout,
        format: wgpu::TextureFormat,
    ) -> Self {
        let module = pipeline::shader(gpu, "water", include_str!("../../shaders/water.wgsl"));
        let pipeline = pipeline::create(
            gpu,
            &PipelineSpec {
                label: "water",
                layout: &pipeline::layout(gpu, "water", &[globals]),
                module: &module,
                vertex: "vs_water",
                fragment: "fs_water",
                buffers: &[],
                constants: &[],
                cull: false,
                blend: Some(wgpu::BlendState::ALPHA_BLENDING),
                writes_depth: false,
                format,
            },
        );
        Water { pipeline }
    }

    pub(super) fn draw(&self, pass: &mut wgpu::RenderPass) {
        pass.set_pipeline(&self.pipeline);
        pass.draw(0..3, 0..1);
    }
}
