//! The sky: one triangle behind everything.

use super::gpu::Gpu;
use super::layer::{Counts, FrameView, Layer};
use super::pipeline::{self, PipelineSpec};
use super::target::TargetFormat;
use crate::settings::View;

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
}

impl Layer for Sky {
    fn draw(&mut self, _gpu: &Gpu, pass: &mut wgpu::RenderPass, frame: &FrameView) -> Counts {
        if frame.settings.view != View::Hole {
            pass.set_pipeline(&self.pipeline);
            pass.draw(0..3, 0..1);
        }
        Counts::default()
    }
}
