//! What is drawn to: a colour and a depth texture, and the way back to the CPU.

use super::gpu::Gpu;
use crate::error::{Error, Result};

pub const DEPTH_FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Depth32Float;
pub const PICTURE_FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

/// A picture on the CPU: four bytes a pixel, rows from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub size: [u32; 2],
    pub pixels: Vec<[u8; 4]>,
}

/// A colour texture that can be read back.
pub struct PictureTarget {
    texture: wgpu::Texture,
    pub(super) view: wgpu::TextureView,
}

impl PictureTarget {
    pub fn new(gpu: &Gpu, size: [u32; 2]) -> Result<Self> {
        let largest = gpu.device.limits().max_texture_dimension_2d;
        if size.iter().any(|&side| side > largest) {
            return Err(Error::Usage(format!(
                "a picture of {} x {} pixels; {} draws at most {largest} a side",
                size[0],
                size[1],
                gpu.describe()
            )));
        }
        let usage = wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC;
        let texture = create_texture(gpu, "picture", size, PICTURE_FORMAT, usage);
        let view = texture.create_view(&Default::default());
        Ok(PictureTarget { texture, view })
    }

    /// Waits for the GPU and copies the picture.
    pub fn read(&self, gpu: &Gpu) -> Result<Picture> {
        let size = [self.texture.width(), self.texture.height()];
        let row_bytes = size[0] * 4;
        let padded = row_bytes.next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT);
        let buffer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("picture readback"),
            size: padded as u64 * size[1] as u64,
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        let layout = wgpu::TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(padded),
            rows_per_image: None,
        };
        encoder.copy_texture_to_buffer(
            self.texture.as_image_copy(),
            wgpu::TexelCopyBufferInfo {
                buffer: &buffer,
                layout,
            },
            self.texture.size(),
        );
        gpu.queue.submit([encoder.finish()]);
        buffer.map_async(wgpu::MapMode::Read, .., |_| ());
        let failed =
            |what: String| Error::Gpu(format!("the picture could not be read back: {what}"));
        gpu.device
            .poll(wgpu::PollType::wait_indefinitely())
            .map_err(|error| failed(error.to_string()))?;
        let bytes = buffer
            .get_mapped_range(..)
            .map_err(|error| failed(error.to_string()))?;
        let rows = bytes.chunks_exact(padded as usize);
        let pixels = rows.flat_map(|row| row[..row_bytes as usize].chunks_exact(4));
        let pixels = pixels
            .map(|pixel| pixel.try_into().expect("four bytes"))
            .collect();
        gpu.check()?;
        Ok(Picture { size, pixels })
    }
}

/// The colours of a target and the samples of its pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetFormat {
    pub color: wgpu::TextureFormat,
    pub samples: u32,
}

/// What a picture is drawn with besides its target: depth, and colours of all samples where a
/// pixel has several.
pub(super) struct Attachments {
    pub size: [u32; 2],
    pub depth: wgpu::TextureView,
    pub samples: Option<wgpu::TextureView>,
}

impl Attachments {
    pub fn new(gpu: &Gpu, size: [u32; 2], format: TargetFormat) -> Self {
        let view = |label, color| {
            let usage = wgpu::TextureUsages::RENDER_ATTACHMENT;
            let texture = create_sampled(gpu, label, size, color, usage, format.samples);
            texture.create_view(&Default::default())
        };
        Attachments {
            size,
            depth: view("depth", DEPTH_FORMAT),
            samples: (format.samples > 1).then(|| view("samples", format.color)),
        }
    }
}

pub(super) fn create_texture(
    gpu: &Gpu,
    label: &str,
    size: [u32; 2],
    format: wgpu::TextureFormat,
    usage: wgpu::TextureUsages,
) -> wgpu::Texture {
    create_sampled(gpu, label, size, format, usage, 1)
}

fn create_sampled(
    gpu: &Gpu,
    label: &str,
    size: [u32; 2],
    format: wgpu::TextureFormat,
    usage: wgpu::TextureUsages,
    sample_count: u32,
) -> wgpu::Texture {
    gpu.device.create_texture(&wgpu::TextureDescriptor {
        label: Some(label),
        size: wgpu::Extent3d {
            width: size[0],
            height: size[1],
            depth_or_array_layers: 1,
        },
        mip_level_count: 1,
        sample_count,
        dimension: wgpu::TextureDimension::D2,
        format,
        usage,
        view_formats: &[],
    })
}
