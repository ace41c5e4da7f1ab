//! The sea: one triangle over the picture, whose pixels find the plane themselves.

use super::gpu::Gpu;
use super::pipeline::{self, PipelineSpec};
use super::target::create_texture;
use crate::world::WaterMask;

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

/// Where water is drawn: a texel for each cell between the middles of the mask's squares, white
/// where one of them is; a single white one without a mask.
pub(super) fn mask_texture(gpu: &Gpu, mask: Option<&WaterMask>) -> wgpu::Texture {
    let cells = mask.map(WaterMask::cells);
    let size = cells
        .as_ref()
        .map_or([1; 2], |cells| [cells.width, cells.height]);
    let is_wet = |x, z| cells.as_ref().is_none_or(|cells| cells.is_present(x, z));
    let texels: Vec<u8> = (0..size[1])
        .flat_map(|z| (0..size[0]).map(move |x| (x, z)))
        .map(|(x, z)| if is_wet(x, z) { u8::MAX } else { 0 })
        .collect();
    let usage = wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST;
    let format = wgpu::TextureFormat::R8Unorm;
    let texture = create_texture(gpu, "water mask", size, format, usage);
    let layout = wgpu::TexelCopyBufferLayout {
        offset: 0,
        bytes_per_row: Some(size[0]),
        rows_per_image: None,
    };
    let place = texture.as_image_copy();
    gpu.queue
        .write_texture(place, &texels, layout, texture.size());
    texture
}
