//! Where patches lie in GPU memory: their vertices, indices and normals, by bytes.
//!
//! Buffers and textures begin small and are doubled as they are needed, up to what every adapter
//! can bind at once; what was written is copied over. A patch takes what it needs and no more.
//!
//! Where voids are kept, a second atlas beside the normals' says which cells have ground.

use super::super::arena::Arena;
use super::super::frame_buffer::create_buffer;
use super::super::gpu::Gpu;
use super::super::target::create_texture;
use super::pipelines;
use crate::terrain::mesh::{PatchMesh, PatchVertex};
use crate::terrain::normals::{self, Texel};
use crate::world::{Coverage, Layout, PatchKey};
use guillotiere::{AllocId, AtlasAllocator, size2};
use rustc_hash::FxHashMap;

const VERTEX_BYTES: u64 = size_of::<PatchVertex>() as u64;
/// Two indices.
const WORD_BYTES: u64 = 4;
const FIRST_BYTES: u64 = 8 << 20;
const MOST_BYTES: u64 = 128 << 20;
const FIRST_TEXELS: u32 = 1024;
const MOST_TEXELS: u32 = 4096;

/// Where a patch lies.
#[derive(Clone, Copy)]
pub struct Resident {
    pub first_vertex: u32,
    vertices: u32,
    pub first_word: u32,
    pub indices: u32,
    pub ground_indices: u32,
    /// Corner in the atlas.
    pub texel: [u32; 2],
    texel_id: AllocId,
    /// Texels along a side.
    side: u32,
}

pub struct PatchStore {
    layout: Layout,
    has_voids: bool,
    group_layout: wgpu::BindGroupLayout,
    pub vertices: wgpu::Buffer,
    /// Also the index buffer's words, two indices each, for the pulled vertices.
    pub indices: wgpu::Buffer,
    atlas: wgpu::Texture,
    /// Which cells have ground, where the normals' atlas has their north-west corners; a single
    /// texel where no voids are kept.
    coverage: wgpu::Texture,
    pub bind_group: wgpu::BindGroup,
    vertex_arena: Arena,
    word_arena: Arena,
    texel_arena: AtlasAllocator,
    used_texels: u64,
    patches: FxHashMap<PatchKey, Resident>,
}

impl PatchStore {
    pub fn new(gpu: &Gpu, layout: Layout, has_voids: bool) -> Self {
        let vertices = vertex_buffer(gpu, FIRST_BYTES);
        let indices = index_buffer(gpu, FIRST_BYTES);
        let atlas = atlas(gpu, FIRST_TEXELS);
        let coverage = coverage(gpu, if has_voids { FIRST_TEXELS } else { 1 });
        let group_layout = pipelines::group_layout(gpu);
        let textures = [&atlas, &coverage];
        PatchStore {
            bind_group: pipelines::bind_group(gpu, &group_layout, textures, &vertices, &indices),
            layout,
            has_voids,
            group_layout,
            vertices,
            indices,
            atlas,
            coverage,
            vertex_arena: Arena::new((FIRST_BYTES / VERTEX_BYTES) as u32),
            word_arena: Arena::new((FIRST_BYTES / WORD_BYTES) as u32),
            texel_arena: AtlasAllocator::new(size2(FIRST_TEXELS as i32, FIRST_TEXELS as i32)),
            used_texels: 0,
            patches: FxHashMap::default(),
        }
    }

    pub fn group_layout(&self) -> &wgpu::BindGroupLayout {
        &self.group_layout
    }

    pub fn get(&self, key: PatchKey) -> Option<&Resident> {
        self.patches.get(&key)
    }

    pub fn keys(&self) -> impl Iterator<Item = &PatchKey> {
        self.patches.keys()
    }

    /// Writes a patch into free room; false when there is none.
    pub fn upload(
        &mut self,
        gpu: &Gpu,
        key: PatchKey,
        mesh: &PatchMesh,
        normals: &[Texel],
        cells: Option<&Coverage>,
    ) -> bool {
        self.remove(key);
        let Some(resident) = self.take(gpu, key, mesh) else {
            return false;
        };
        let place = u64::from(resident.first_vertex) * VERTEX_BYTES;
        let vertices = bytemuck::cast_slice::<PatchVertex, u8>(&mesh.vertices);
        gpu.queue.write_buffer(&self.vertices, place, vertices);
        let mut words = mesh.indices.clone();
        // Writes go by whole words.
        words.resize(words.len().next_multiple_of(2), 0);
        let place = u64::from(resident.first_word) * WORD_BYTES;
        let words = bytemuck::cast_slice(&words);
        gpu.queue.write_buffer(&self.indices, place, words);
        write_texels(gpu, &self.atlas, &resident, bytemuck::cast_slice(normals));
        if let Some(cells) = cells {
            write_texels(gpu, &self.coverage, &resident, &coverage_texels(cells));
        }
        self.patches.insert(key, resident);
        true
    }

    pub fn remove(&mut self, key: PatchKey) {
        if let Some(resident) = self.patches.remove(&key) {
            self.give_back(&resident);
        }
    }

    /// Bytes that patches take.
    pub fn used_bytes(&self) -> u64 {
        let texel_bytes = size_of::<Texel>() as u64 + u64::from(self.has_voids);
        self.vertex_arena.used() * VERTEX_BYTES
            + self.word_arena.used() * WORD_BYTES
            + self.used_texels * texel_bytes
    }

    /// Bytes of the buffers and textures that they lie in.
    pub fn allocated_bytes(&self) -> u64 {
        let texels = |texture: &wgpu::Texture| u64::from(texture.width()).pow(2);
        let normals = texels(&self.atlas) * size_of::<Texel>() as u64;
        self.vertices.size() + self.indices.size() + normals + texels(&self.coverage)
    }

    /// Takes room of each kind, or of none.
    fn take(&mut self, gpu: &Gpu, key: PatchKey, mesh: &PatchMesh) -> Option<Resident> {
        let side = normals::texels(&self.layout, key.level);
        let size = size2(side as i32, side as i32);
        let texels = loop {
            match self.texel_arena.allocate(size) {
                Some(texels) => break texels,
                None => self.grow_atlas(gpu)?,
            }
        };
        let (vertices, indices) = (mesh.vertices.len() as u32, mesh.indices.len() as u32);
        let words = indices.div_ceil(2);
        let ranges = self.take_vertices(gpu, vertices).and_then(|first_vertex| {
            let first_word = self.take_words(gpu, words);
            if first_word.is_none() {
                self.vertex_arena.give_back(first_vertex, vertices);
            }
            Some([first_vertex, first_word?])
        });
        let Some([first_vertex, first_word]) = ranges else {
            self.texel_arena.deallocate(texels.id);
            return None;
        };
        self.used_texels += u64::from(side * side);
        let corner = texels.rectangle.min;
        Some(Resident {
            first_vertex,
            vertices,
            first_word,
            indices,
            ground_indices: mesh.ground_indices,
            texel: [corner.x as u32, corner.y as u32],
            texel_id: texels.id,
            side,
        })
    }

    fn give_back(&mut self, resident: &Resident) {
        let words = resident.indices.div_ceil(2);
        (self.vertex_arena).give_back(resident.first_vertex, resident.vertices);
        self.word_arena.give_back(resident.first_word, words);
        self.texel_arena.deallocate(resident.texel_id);
        self.used_texels -= u64::from(resident.side * resident.side);
    }

    fn take_vertices(&mut self, gpu: &Gpu, count: u32) -> Option<u32> {
        loop {
            if let Some(first) = self.vertex_arena.take(count) {
                return Some(first);
            }
            let bytes = doubled(&self.vertices)?;
            let larger = vertex_buffer(gpu, bytes);
            copy_buffer(gpu, &self.vertices, &larger);
            self.vertices = larger;
            self.vertex_arena.grow((bytes / VERTEX_BYTES) as u32);
            self.bind(gpu);
        }
    }

    fn take_words(&mut self, gpu: &Gpu, count: u32) -> Option<u32> {
        loop {
            if let Some(first) = self.word_arena.take(count) {
                return Some(first);
            }
            let bytes = doubled(&self.indices)?;
            let larger = index_buffer(gpu, bytes);
            copy_buffer(gpu, &self.indices, &larger);
            self.indices = larger;
            self.word_arena.grow((bytes / WORD_BYTES) as u32);
            self.bind(gpu);
        }
    }

    /// `None` where it is as large as it may be.
    fn grow_atlas(&mut self, gpu: &Gpu) -> Option<()> {
        let side = self.atlas.width() * 2;
        if side > MOST_TEXELS {
            return None;
        }
        let larger = atlas(gpu, side);
        copy_texture(gpu, &self.atlas, &larger);
        self.atlas = larger;
        if self.has_voids {
            let larger = coverage(gpu, side);
            copy_texture(gpu, &self.coverage, &larger);
            self.coverage = larger;
        }
        self.texel_arena.grow(size2(side as i32, side as i32));
        self.bind(gpu);
        Some(())
    }

    fn bind(&mut self, gpu: &Gpu) {
        let textures = [&self.atlas, &self.coverage];
        let (vertices, indices) = (&self.vertices, &self.indices);
        self.bind_group =
            pipelines::bind_group(gpu, &self.group_layout, textures, vertices, indices);
    }
}

fn vertex_buffer(gpu: &Gpu, bytes: u64) -> wgpu::Buffer {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::VERTEX;
    create_buffer(
        gpu,
        "patch vertices",
        bytes,
        usage | wgpu::BufferUsages::COPY_SRC,
    )
}

fn index_buffer(gpu: &Gpu, bytes: u64) -> wgpu::Buffer {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::INDEX;
    create_buffer(
        gpu,
        "patch indices",
        bytes,
        usage | wgpu::BufferUsages::COPY_SRC,
    )
}

fn atlas(gpu: &Gpu, side: u32) -> wgpu::Texture {
    growing_texture(gpu, "patch normals", side, wgpu::TextureFormat::Rgba16Float)
}

fn coverage(gpu: &Gpu, side: u32) -> wgpu::Texture {
    growing_texture(gpu, "patch coverage", side, wgpu::TextureFormat::R8Uint)
}

fn growing_texture(
    gpu: &Gpu,
    label: &str,
    side: u32,
    format: wgpu::TextureFormat,
) -> wgpu::Texture {
    let usage = wgpu::TextureUsages::TEXTURE_BINDING
        | wgpu::TextureUsages::COPY_DST
        | wgpu::TextureUsages::COPY_SRC;
    create_texture(gpu, label, [side; 2], format, usage)
}

/// Twice as many bytes, unless that is more than there may be.
fn doubled(buffer: &wgpu::Buffer) -> Option<u64> {
    Some(buffer.size() * 2).filter(|bytes| *bytes <= MOST_BYTES)
}

fn copy_buffer(gpu: &Gpu, from: &wgpu::Buffer, to: &wgpu::Buffer) {
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(from, 0, to, 0, from.size());
    gpu.queue.submit([encoder.finish()]);
}

fn copy_texture(gpu: &Gpu, from: &wgpu::Texture, to: &wgpu::Texture) {
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    encoder.copy_texture_to_texture(from.as_image_copy(), to.as_image_copy(), from.size());
    gpu.queue.submit([encoder.finish()]);
}

fn write_texels(gpu: &Gpu, atlas: &wgpu::Texture, resident: &Resident, texels: &[u8]) {
    let side = resident.side;
    let [x, y] = resident.texel;
    let mut place = atlas.as_image_copy();
    place.origin = wgpu::Origin3d { x, y, z: 0 };
    let layout = wgpu::TexelCopyBufferLayout {
        offset: 0,
        bytes_per_row: Some(texels.len() as u32 / side),
        rows_per_image: None,
    };
    let size = wgpu::Extent3d {
        width: side,
        height: side,
        depth_or_array_layers: 1,
    };
    gpu.queue.write_texture(place, texels, layout, size);
}

/// 1 for each cell with ground; a row and a column more, as a patch has texels, which repeat the
/// last ones, so that rounding at the border does not show.
fn coverage_texels(cells: &Coverage) -> Vec<u8> {
    let at = |x: u32, z: u32| cells.is_present(x.min(cells.width - 1), z.min(cells.height - 1));
    let rows = (0..=cells.height).flat_map(|z| (0..=cells.width).map(move |x| (x, z)));
    rows.map(|(x, z)| u8::from(at(x, z))).collect()
}
