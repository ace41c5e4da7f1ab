//! The sea: one triangle over the picture, whose pixels find the plane themselves.

use super::gpu::Gpu;
use super::layer::{Counts, FrameView, Layer};
use super::pipeline::{self, PipelineSpec};
use super::target::TargetFormat;
use super::target::create_texture;
use crate::settings::View;
use crate::world::WaterMask;

pub struct Water {
    pipeline: wgpu::RenderPipeline,
}

impl Water {
    pub(super) fn new(
        gpu: &Gpu,
        globals: &wgpu::BindGroupLayout,
        format: TargetFormat,
        plain: bool,
    ) -> Self {
        let module = pipeline::shader(gpu, "water", &[include_str!("../../shaders/water.wgsl")]);
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
                plain,
                cull: false,
                blend: Some(wgpu::BlendState::ALPHA_BLENDING),
                writes_depth: false,
                format,
            },
        );
        Water { pipeline }
    }
}

impl Layer for Water {
    fn draw(&mut self, _gpu: &Gpu, pass: &mut wgpu::RenderPass, frame: &FrameView) -> Counts {
        let settings = frame.settings;
        if settings.view == View::Shaded && settings.water && frame.meta.sea_level_m.is_some() {
            pass.set_pipeline(&self.pipeline);
            pass.draw(0..3, 0..1);
        }
        Counts::default()
    }
}

/// Texels round the cells: their edge goes on for one, the other says what is beyond the source.
const FRAME: u32 = 2;

/// As many as there is a texture for; some adapters take fewer than a mask can have.
pub(super) fn most_squares(gpu: &Gpu) -> u32 {
    gpu.device.limits().max_texture_dimension_2d - 2 * FRAME
}

/// Where water is drawn: a texel for each cell between the middles of the mask's squares, white
/// where one of them is, and the frame; a single white one without a mask.
pub(super) fn mask_texture(gpu: &Gpu, mask: Option<&WaterMask>) -> wgpu::Texture {
    let (size, texels) = mask.map_or(([1; 2], vec![u8::MAX]), texels);
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

fn texels(mask: &WaterMask) -> ([u32; 2], Vec<u8>) {
    let cells = mask.cells();
    let size = [cells.width, cells.height].map(|cells| cells + 2 * FRAME);
    let is_wet = |x: u32, z: u32| {
        let is_frame = |place: u32, texels: u32| place == 0 || place + 1 == texels;
        if is_frame(x, size[0]) || is_frame(z, size[1]) {
            return mask.goes_on();
        }
        let cell = |place: u32, cells: u32| place.saturating_sub(FRAME).min(cells - 1);
        cells.is_present(cell(x, cells.width), cell(z, cells.height))
    };
    let places = (0..size[1]).flat_map(|z| (0..size[0]).map(move |x| (x, z)));
    let texel = |(x, z)| if is_wet(x, z) { u8::MAX } else { 0 };
    (size, places.map(texel).collect())
}
