//! What a frame's list of patches becomes: one draw each, and how they are handed over.
//!
//! Draws of one pipeline lie side by side, so that each pipeline takes one call where the adapter
//! draws many at once, and one call a patch where it does not. Both read the same list.

use super::super::layer::Counts;
use super::{Cut, DrawPatch, Resident};
use std::ops::Range;
use wgpu::util::{DrawIndexedIndirectArgs, DrawIndirectArgs};

/// The draws of a frame.
#[derive(Default)]
pub struct Commands {
    draws: Vec<DrawIndexedIndirectArgs>,
    /// Which of them are drawn by which pipeline.
    pub groups: Vec<(Cut, Range<u32>)>,
    pub counts: Counts,
}

impl Commands {
    /// Adds a patch that lies in memory as said; its instance is the next one.
    pub(super) fn add(&mut self, draw: &DrawPatch, patch: &Resident) {
        let indices = if draw.skirt_m > 0.0 {
            patch.indices
        } else {
            patch.ground_indices
        };
        let number = self.draws.len() as u32;
        self.draws.push(DrawIndexedIndirectArgs {
            index_count: indices,
            instance_count: 1,
            first_index: patch.first_word * 2,
            base_vertex: patch.first_vertex as i32,
            first_instance: number,
        });
        match self.groups.last_mut() {
            Some((cut, range)) if *cut == draw.cut => range.end += 1,
            _ => self.groups.push((draw.cut, number..number + 1)),
        }
        self.counts.triangles += patch.ground_indices as u64 / 3;
        self.counts.skirt_triangles += (indices - patch.ground_indices) as u64 / 3;
    }

    /// As the GPU reads them. `pulled`: without an index buffer.
    pub fn bytes(&self, pulled: bool) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size_of_val(&self.draws[..]));
        for draw in &self.draws {
            if pulled {
                bytes.extend_from_slice(pulled_args(draw).as_bytes());
            } else {
                bytes.extend_from_slice(draw.as_bytes());
            }
        }
        bytes
    }

    /// Draws a group in one call, from a buffer that holds [`Commands::bytes`].
    pub fn draw_at_once(
        pass: &mut wgpu::RenderPass,
        buffer: &wgpu::Buffer,
        group: &Range<u32>,
        pulled: bool,
    ) {
        let count = group.end - group.start;
        let start = |size: usize| u64::from(group.start) * size as u64;
        if pulled {
            pass.multi_draw_indirect(buffer, start(size_of::<DrawIndirectArgs>()), count);
        } else {
            let start = start(size_of::<DrawIndexedIndirectArgs>());
            pass.multi_draw_indexed_indirect(buffer, start, count);
        }
    }

    /// Draws a group patch by patch.
    pub fn draw_each(&self, pass: &mut wgpu::RenderPass, group: &Range<u32>, pulled: bool) {
        for draw in &self.draws[group.start as usize..group.end as usize] {
            let instances = draw.first_instance..draw.first_instance + 1;
            if pulled {
                pass.draw(0..draw.index_count, instances);
            } else {
                let indices = draw.first_index..draw.first_index + draw.index_count;
                pass.draw_indexed(indices, draw.base_vertex, instances);
            }
        }
    }
}

/// The instance says where the patch's own vertices begin.
fn pulled_args(draw: &DrawIndexedIndirectArgs) -> DrawIndirectArgs {
    DrawIndirectArgs {
        vertex_count: draw.index_count,
        instance_count: draw.instance_count,
        first_vertex: 0,
        first_instance: draw.first_instance,
    }
}
