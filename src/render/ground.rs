//! The ground: patches in fixed arenas.
//!
//! A patch's vertices, indices and normals are written once, when it is uploaded. A frame writes
//! one [`PatchInstance`] and one draw for each patch it draws and nothing else.
//!
//! Where voids are kept, a second atlas beside the normals' says which cells have ground; only
//! patches that lack some are drawn by the pipelines that read it.

mod commands;
mod pipelines;

use super::arena::Arena;
use super::frame_buffer::{FrameBuffer, create_buffer};
use super::gpu::Gpu;
use super::target::{TargetFormat, create_texture};
use crate::settings::View;
use crate::terrain::mesh::{PatchMesh, PatchVertex};
use crate::terrain::normals::{self, Texel};
use crate::world::{Coverage, Layout, Meta, PatchKey};
use bytemuck::{Pod, Zeroable};
use commands::Commands;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// As much as every adapter can bind at once.
const VERTEX_BYTES: u64 = 128 << 20;
const INDEX_BYTES: u64 = 128 << 20;
const ATLAS_TEXELS: u32 = 4096;

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

/// What was drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroundCounts {
    pub triangles: u64,
    pub skirt_triangles: u64,
    /// Calls: one a pipeline, or one a patch.
    pub draws: u64,
    /// That the frame wrote: uniforms, instances, draws.
    pub bytes: u64,
}

pub struct Ground {
    layout: Layout,
    vertices: wgpu::Buffer,
    /// Also the index buffer's words, two indices each, for the pulled vertices.
    indices: wgpu::Buffer,
    atlas: wgpu::Texture,
    instances: FrameBuffer,
    /// The draws, where one call takes many.
    commands: FrameBuffer,
    multi_draw: bool,
    bind_group: wgpu::BindGroup,
    /// Which cells have ground, where the normals' atlas has their north-west corners; a single
    /// texel where no voids are kept.
    coverage: wgpu::Texture,
    pipelines: HashMap<(View, Cut), wgpu::RenderPipeline>,
    vertex_arena: Arena,
    index_arena: Arena,
    texel_slots: Vec<u32>,
    capacity: usize,
    patches: FxHashMap<PatchKey, Resident>,
}

/// Where a patch lies.
#[derive(Clone, Copy)]
struct Resident {
    first_vertex: u32,
    vertices: u32,
    first_word: u32,
    indices: u32,
    ground_indices: u32,
    texel_slot: u32,
}

impl Ground {
    pub(super) fn new(
        gpu: &Gpu,
        globals: &wgpu::BindGroupLayout,
        format: TargetFormat,
        meta: &Meta,
        multi_draw: bool,
    ) -> Self {
        let (layout, has_voids) = (meta.layout, meta.kept_voids > 0);
        let storage = wgpu::BufferUsages::STORAGE;
        let vertices = create_buffer(
            gpu,
            "patch vertices",
            VERTEX_BYTES,
            storage | wgpu::BufferUsages::VERTEX,
        );
        let indices = create_buffer(
            gpu,
            "patch indices",
            INDEX_BYTES,
            storage | wgpu::BufferUsages::INDEX,
        );
        let instances = FrameBuffer::new(gpu, "instances", 1 << 16, wgpu::BufferUsages::VERTEX);
        let commands = FrameBuffer::new(gpu, "draws", 1 << 14, wgpu::BufferUsages::INDIRECT);
        let usage = wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST;
        let atlas = create_texture(
            gpu,
            "patch normals",
            [ATLAS_TEXELS; 2],
            wgpu::TextureFormat::Rgba16Float,
            usage,
        );
        let coverage = create_texture(
            gpu,
            "patch coverage",
            [if has_voids { ATLAS_TEXELS } else { 1 }; 2],
            wgpu::TextureFormat::R8Uint,
            usage,
        );
        let group_layout = pipelines::group_layout(gpu);
        let textures = [&atlas, &coverage];
        let bind_group = pipelines::bind_group(gpu, &group_layout, textures, &vertices, &indices);
        let (page_vertices, page_words) = page_lengths(&layout);
        let per_row = ATLAS_TEXELS / normals::texels(&layout, layout.coarsest());
        let vertex_pages = (VERTEX_BYTES / (page_vertices as u64 * 12)) as u32;
        let index_pages = (INDEX_BYTES / (page_words as u64 * 4)) as u32;
        let texel_slots = per_row * per_row;
        Ground {
            capacity: vertex_pages.min(index_pages).min(texel_slots) as usize,
            vertex_arena: Arena::new(page_vertices, vertex_pages),
            index_arena: Arena::new(page_words, index_pages),
            texel_slots: (0..texel_slots).rev().collect(),
            pipelines: pipelines::create(gpu, globals, &group_layout, format, has_voids),
            patches: FxHashMap::default(),
            layout,
            vertices,
            indices,
            atlas,
            coverage,
            instances,
            commands,
            multi_draw: multi_draw && gpu.draws_many(),
            bind_group,
        }
    }

    /// So many patches always fit: each touches one page of each arena at most, so with fewer
    /// patches than pages there is always a whole page left.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Writes a patch into free slots; false when there are none.
    pub(super) fn upload(
        &mut self,
        gpu: &Gpu,
        key: PatchKey,
        mesh: &PatchMesh,
        normals: &[Texel],
        cells: Option<&Coverage>,
    ) -> bool {
        self.remove(key);
        let Some(resident) = self.take_slots(mesh) else {
            return false;
        };
        let vertex_bytes = bytemuck::cast_slice::<PatchVertex, u8>(&mesh.vertices);
        gpu.queue.write_buffer(
            &self.vertices,
            resident.first_vertex as u64 * 12,
            vertex_bytes,
        );
        let mut index_words = mesh.indices.clone();
        // Writes go by whole words.
        index_words.resize(index_words.len().next_multiple_of(2), 0);
        gpu.queue.write_buffer(
            &self.indices,
            resident.first_word as u64 * 4,
            bytemuck::cast_slice(&index_words),
        );
        let texels = bytemuck::cast_slice(normals);
        self.write_texels(gpu, &self.atlas, key, resident.texel_slot, texels);
        if let Some(cells) = cells {
            let texels = coverage_texels(cells);
            self.write_texels(gpu, &self.coverage, key, resident.texel_slot, &texels);
        }
        self.patches.insert(key, resident);
        true
    }

    pub(super) fn remove(&mut self, key: PatchKey) {
        if let Some(resident) = self.patches.remove(&key) {
            self.vertex_arena
                .give_back(resident.first_vertex, resident.vertices);
            self.index_arena
                .give_back(resident.first_word, resident.indices.div_ceil(2));
            self.texel_slots.push(resident.texel_slot);
        }
    }

    /// Patches in memory by level.
    pub(super) fn resident(&self) -> Vec<u64> {
        let mut counts = vec![0; self.layout.levels as usize];
        self.patches
            .keys()
            .for_each(|key| counts[key.level as usize] += 1);
        counts
    }

    /// Bytes of slots in use.
    pub(super) fn used_bytes(&self) -> u64 {
        let side = normals::texels(&self.layout, self.layout.coarsest()) as u64;
        self.vertex_arena.used() * 12
            + self.index_arena.used() * 4
            + self.patches.len() as u64 * side * side * size_of::<Texel>() as u64
    }

    pub(super) fn draw(
        &mut self,
        gpu: &Gpu,
        pass: &mut wgpu::RenderPass,
        view: View,
        draws: &[DrawPatch],
    ) -> GroundCounts {
        let mut instances = Vec::with_capacity(draws.len());
        let mut commands = Commands::default();
        for draw in draws {
            if let Some(patch) = self.patches.get(&draw.key) {
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
        pass.set_bind_group(1, &self.bind_group, &[]);
        if pulled {
            pass.set_vertex_buffer(0, self.instances.buffer().slice(..));
        } else {
            pass.set_vertex_buffer(0, self.vertices.slice(..));
            pass.set_vertex_buffer(1, self.instances.buffer().slice(..));
            pass.set_index_buffer(self.indices.slice(..), wgpu::IndexFormat::Uint16);
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

    fn instance(&self, draw: &DrawPatch, patch: &Resident) -> PatchInstance {
        let length = draw.morph_to_m - draw.morph_from_m;
        let per_metre = if length > 0.0 { 1.0 / length } else { 0.0 };
        let (x, z) = self.texel_corner(patch.texel_slot);
        PatchInstance {
            origin: draw.origin,
            stride: self.layout.stride(draw.key.level) as i32,
            level: draw.key.level as u32,
            morph: [draw.morph_from_m, per_metre, draw.least_morph, draw.skirt_m],
            texel: [x, z],
            first_index: patch.first_word * 2,
            first_vertex: patch.first_vertex,
        }
    }

    /// Takes one slot of each kind, or none at all.
    fn take_slots(&mut self, mesh: &PatchMesh) -> Option<Resident> {
        let (vertices, indices) = (mesh.vertices.len() as u32, mesh.indices.len() as u32);
        let texel_slot = *self.texel_slots.last()?;
        let first_vertex = self.vertex_arena.take(vertices)?;
        let Some(first_word) = self.index_arena.take(indices.div_ceil(2)) else {
            self.vertex_arena.give_back(first_vertex, vertices);
            return None;
        };
        self.texel_slots.pop();
        let ground_indices = mesh.ground_indices;
        Some(Resident {
            first_vertex,
            vertices,
            first_word,
            indices,
            ground_indices,
            texel_slot,
        })
    }

    fn texel_corner(&self, slot: u32) -> (u32, u32) {
        let side = normals::texels(&self.layout, self.layout.coarsest());
        let per_row = ATLAS_TEXELS / side;
        (slot % per_row * side, slot / per_row * side)
    }

    fn write_texels(
        &self,
        gpu: &Gpu,
        atlas: &wgpu::Texture,
        key: PatchKey,
        slot: u32,
        texels: &[u8],
    ) {
        let side = normals::texels(&self.layout, key.level);
        let (x, y) = self.texel_corner(slot);
        let mut place = atlas.as_image_copy();
        place.origin = wgpu::Origin3d { x, y, z: 0 };
        gpu.queue.write_texture(
            place,
            texels,
            wgpu::TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(texels.len() as u32 / side),
                rows_per_image: None,
            },
            wgpu::Extent3d {
                width: side,
                height: side,
                depth_or_array_layers: 1,
            },
        );
    }
}

/// 1 for each cell with ground; a row and a column more, as a patch has texels, which repeat the
/// last ones, so that rounding at the border does not show.
fn coverage_texels(cells: &Coverage) -> Vec<u8> {
    let at = |x: u32, z: u32| cells.is_present(x.min(cells.width - 1), z.min(cells.height - 1));
    let rows = (0..=cells.height).flat_map(|z| (0..=cells.width).map(move |x| (x, z)));
    rows.map(|(x, z)| u8::from(at(x, z))).collect()
}

/// Vertices and index words of the largest patch: its whole lattice and four skirts.
fn page_lengths(layout: &Layout) -> (u32, u32) {
    let n = layout.lattice_cells(layout.coarsest());
    let vertices = ((n + 1) * (n + 1) + 4 * (n + 1)).min(u16::MAX as u32);
    let indices = 6 * n * n + 24 * n;
    (vertices, indices.div_ceil(2))
}
