//! A buffer that a frame may write anew: only what differs from the frame before is written.

use super::gpu::Gpu;

pub struct FrameBuffer {
    buffer: wgpu::Buffer,
    label: &'static str,
    last: Vec<u8>,
}

impl FrameBuffer {
    pub fn new(gpu: &Gpu, label: &'static str, size: u64, usage: wgpu::BufferUsages) -> Self {
        FrameBuffer {
            buffer: create_buffer(gpu, label, size, usage),
            label,
            last: Vec::new(),
        }
    }

    pub fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }

    /// Makes the buffer begin with these bytes; it grows where it is too small. Returns how many
    /// were written: none where they are there already.
    pub fn write(&mut self, gpu: &Gpu, bytes: &[u8]) -> u64 {
        if self.last == bytes {
            return 0;
        }
        let needed = bytes.len() as u64;
        if self.buffer.size() < needed {
            let size = needed.next_power_of_two();
            self.buffer = create_buffer(gpu, self.label, size, self.buffer.usage());
        }
        gpu.queue.write_buffer(&self.buffer, 0, bytes);
        self.last.clear();
        self.last.extend_from_slice(bytes);
        needed
    }
}

/// A buffer that is written to.
pub fn create_buffer(gpu: &Gpu, label: &str, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some(label),
        size,
        usage: usage | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}
