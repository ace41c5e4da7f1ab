//! The ground: patches that lie in GPU memory, drawn where a frame says.
//!
//! A patch's vertices, indices and normals are written once, when it is uploaded. A frame writes
//! one [`PatchInstance`] and one draw for each patch it draws and nothing else. Only patches that
//! lack some cells are drawn by the pipelines that read which.

mod commands;
mod pipelines;
mod store;

use super::frame_buffer::FrameBuffer;
use super::gpu::Gpu;
use super::layer::{Counts, FrameView, Layer};
use super::target::TargetFormat;
use crate::settings::{Setup, View};
use crate::terrain::mesh::PatchMesh;
use crate::terrain::normals::Texel;
use crate::world::{Coverage, Layout, Meta, PatchKey};
use bytemuck::{Pod, Zeroable};
use commands::Commands;
use std::collections::HashMap;
use store::{PatchStore, Resident};

/// One drawn patch; `Patch` in shaders/ground.wgsl.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct PatchInstance {
    pub origin: [i32; 2],
    pub stride: i32,
    pub level: u32,
    pub morph: [f32; 4],
    pub texel: [u32; 2],
    pub first_index: u32,
    pub first_vertex: u32,
}

/// What a frame says of a patch it draws.
#[derive(Clone, Copy, Debug)]
pub struct DrawPatch {
    pub key: PatchKey,
    /// Corner in samples, from the eye's cell.
    pub origin: [i32; 2],
    pub morph_from_m: f32,
    pub morph_to_m: f32,
    /// The patch is at least so far morphed to its parent.
    pub least_morph: f32,
    pub skirt_m: f32,
    pub cut: Cut,
}

/// What of a patch is not drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cut {
    Nowhere,
    /// What lies beyond the border of the source.
    Border,
    /// That, and cells without ground.
    Voids,
}

pub struct Ground {
    layout: Layout,
    store: PatchStore,
    instances: FrameBuffer,
    /// The draws, where one call takes many.
    commands: FrameBuffer,
    multi_draw: bool,
    pipelines: HashMap<(View, Cut), wgpu::RenderPipeline>,
}

impl Ground {
    pub(super) fn new(
        gpu: &Gpu,
        globals: &wgpu::BindGroupLayout,
        format: TargetFormat,
        meta: &Meta,
        setup: &Setup,
    ) -> Self {
        let (layout, has_voids) = (meta.layout, meta.kept_voids > 0);
        let store = PatchStore::new(gpu, layout, has_voids);
        let group = store.group_layout();
        Ground {
            pipelines: pipelines::create(gpu, globals, group, format, has_voids, setup.plain),
            layout,
            store,
            instances: FrameBuffer::new(gpu, "instances", 1 << 16, wgpu::BufferUsages::VERTEX),
            commands: FrameBuffer::new(gpu, "draws", 1 << 14, wgpu::BufferUsages::INDIRECT),
            multi_draw: setup.multi_draw && gpu.draws_many(),
        }
    }

    /// Writes a patch into free room; false when there is none.
    pub(super) fn upload(
        &mut self,
        gpu: &Gpu,
        key: PatchKey,
        mesh: &PatchMesh,
        normals: &[Texel],
        cells: Option<&Coverage>,
    ) -> bool {
        self.store.upload(gpu, key, mesh, normals, cells)
    }

    pub(super) fn remove(&mut self, key: PatchKey) {
        self.store.remove(key);
    }

    /// Patches in memory by level.
    pub(super) fn resident(&self) -> Vec<u64> {
        let mut counts = vec![0; self.layout.levels as usize];
        let keys = self.store.keys();
        keys.for_each(|key| counts[key.level as usize] += 1);
        counts
    }

    /// Bytes that patches take, and that were allocated for them.
    pub(super) fn bytes(&self) -> [u64; 2] {
        [self.store.used_bytes(), self.store.allocated_bytes()]
    }

    fn instance(&self, draw: &DrawPatch, patch: &Resident) -> PatchInstance {
        let length = draw.morph_to_m - draw.morph_from_m;
        let per_metre = if length > 0.0 { 1.0 / length } else { 0.0 };
        PatchInstance {
            origin: draw.origin,
            stride: self.layout.stride(draw.key.level) as i32,
            level: draw.key.level as u32,
            morph: [draw.morph_from_m, per_metre, draw.least_morph, draw.skirt_m],
            texel: patch.texel,
            first_index: patch.first_word * 2,
            first_vertex: patch.first_vertex,
        }
    }
}

impl Layer for Ground {
    fn draw(&mut self, gpu: &Gpu, pass: &mut wgpu::RenderPass, frame: &FrameView) -> Counts {
        let (view, draws) = (frame.settings.view, frame.draws);
        let mut instances = Vec::with_capacity(draws.len());
        let mut commands = Commands::default();
        for draw in draws {
            if let Some(patch) = self.store.get(draw.key) {
                instances.push(self.instance(draw, patch));
                commands.add(draw, patch);
            }
        }
        let pulled = view == View::Wireframe;
        let mut counts = commands.counts;
        counts.bytes = (self.instances).write(gpu, bytemuck::cast_slice(&instances));
        if self.multi_draw {
            counts.bytes += self.commands.write(gpu, &commands.bytes(pulled));
        }
        pass.set_bind_group(1, &self.store.bind_group, &[]);
        if pulled {
            pass.set_vertex_buffer(0, self.instances.buffer().slice(..));
        } else {
            pass.set_vertex_buffer(0, self.store.vertices.slice(..));
            pass.set_vertex_buffer(1, self.instances.buffer().slice(..));
            pass.set_index_buffer(self.store.indices.slice(..), wgpu::IndexFormat::Uint16);
        }
        for (cut, group) in &commands.groups {
            pass.set_pipeline(&self.pipelines[&(view, *cut)]);
            if self.multi_draw {
                Commands::draw_at_once(pass, self.commands.buffer(), group, pulled);
                counts.draws += 1;
            } else {
                commands.draw_each(pass, group, pulled);
                counts.draws += u64::from(group.end - group.start);
            }
        }
        counts
    }
}
