//! The sky: one triangle behind everything.

use super::gpu::Gpu;
use super::pipeline::{self, PipelineSpec};
use super::target::TargetFormat;

pub struct Sky {
    pipeline: wgpu::RenderPipeline,
}

impl Sky {
    pub(super) fn new(
        gpu: &Gpu,
        globals: &wgpu::BindGroupLayout,
        format: TargetFormat,
        plain: bool,
    ) -> Self {
        let module = pipeline::shader(gpu, "sky", &[include_str!("../../shaders/sky.wgsl")]);
        let pipeline = pipeline::create(
            gpu,
            &PipelineSpec {
                label: "sky",
                layout: &pipeline::layout(gpu, "sky", &[globals]),
                module: &module,
                vertex: "vs_sky",
                fragment: "fs_sky",
                buffers: &[],
                constants: &[],
                plain,
                cull: false,
                blend: None,
                writes_depth: false,
                format,
            },
        );
        Sky { pipeline }
    }

    pub(super) fn draw(&self, pass: &mut wgpu::RenderPass) {
        pass.set_pipeline(&self.pipeline);
        pass.draw(0..3, 0..1);
    }
}
