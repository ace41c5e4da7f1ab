//! Reads a world by range: facts first, then any section alone.
//!
//! A reader never trusts: sizes are bounded by what the layout allows before memory is asked
//! for, and whatever is wrong comes back as an error that names the chunk.

use super::container::{self, Entry};
use super::meta::MAX_META_BYTES;
use super::nodes::{self, SectionTrees};
use super::{ChunkId, ChunkKind, Coverage, FormatError, HeightGrid, Meta};
use super::{PatchKey, PatchRecord, SectionKey, StoredHeights};
use super::{WaterMask, coverage, heights, live, topology, water};
use std::collections::HashMap;
use std::sync::Arc;

/// Where the bytes are: a file, memory, one day a server.
pub trait ReadAt: Send + Sync {
    /// Fills `buffer` from `offset`, or says why it cannot.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FormatError>;
    fn len(&self) -> u64;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FormatError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = start
            .checked_add(buffer.len())
            .and_then(|end| self.get(start..end))
            .ok_or_else(|| FormatError::new("a read behind the end"))?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }
}

/// An open world: its facts and where each chunk lies.
pub struct World {
    pub meta: Meta,
    /// What errors call it: the file's path.
    pub name: String,
    source: Box<dyn ReadAt>,
    entries: HashMap<ChunkId, Entry>,
    order: Vec<ChunkId>,
}

/// A step for each node of a patch's two trees, in the order of their bit-streams.
pub type LiveSteps = [Vec<u8>; 2];

/// One section, decoded: heights with their apron, and the patches row by row.
#[derive(Debug)]
pub struct Section {
    pub key: SectionKey,
    pub heights: Arc<HeightGrid>,
    /// First patch and one past the last, [x0, z0, x1, z1].
    pub area: [u32; 4],
    pub patches: Vec<PatchRecord>,
    /// Which samples have ground, at level 0; none where all have.
    pub samples: Option<Coverage>,
    /// Which cells of the lattice have ground; none where all have.
    pub cells: Option<Coverage>,
    /// Bytes in memory; heights shared with another level count there too.
    pub bytes: usize,
}

impl Section {
    /// The record of a patch that lies in this section.
    pub fn patch(&self, key: PatchKey) -> &PatchRecord {
        let [x0, z0, x1, _] = self.area;
        &self.patches[((key.z - z0) * (x1 - x0) + key.x - x0) as usize]
    }

    /// Which cells of a patch's lattice, so many a side, have ground; none where all have.
    pub fn patch_cells(&self, key: PatchKey, cells: u32) -> Option<Coverage> {
        let corner = [
            (key.x - self.area[0]) * cells,
            (key.z - self.area[1]) * cells,
        ];
        let all = self.cells.as_ref()?;
        let present = |x, z| all.is_present(corner[0] + x, corner[1] + z);
        let own = Coverage::from_fn([cells; 2], present);
        own.lacks_any([cells; 2]).then_some(own)
    }
}

impl World {
    /// Opens a world that errors will call `name`.
    pub fn open(source: Box<dyn ReadAt>, name: impl Into<String>) -> Result<Self, FormatError> {
        let file_bytes = source.len();
        let mut header = vec![0; container::HEADER_BYTES.min(file_bytes as usize)];
        source.read_at(0, &mut header)?;
        let info = container::parse_header(&header, file_bytes)?;
        let mut table = vec![0; info.chunks as usize * container::ENTRY_BYTES];
        source.read_at(container::HEADER_BYTES as u64, &mut table)?;
        let list = container::parse_table(&table, &info, file_bytes)?;
        let order: Vec<ChunkId> = list.iter().map(|entry| entry.id).collect();
        let entries: HashMap<ChunkId, Entry> =
            list.into_iter().map(|entry| (entry.id, entry)).collect();
        if entries.len() != order.len() {
            return Err(FormatError::new("two chunks of the same name"));
        }
        let bytes = read_chunk(source.as_ref(), &entries, META_CHUNK, MAX_META_BYTES)?;
        let meta = Meta::from_bytes(&bytes)?;
        // Whoever goes over all sections does not go over more than the file can have.
        let sections = meta.layout.section_count();
        let topologies = order.iter().filter(|id| id.kind == ChunkKind::Topology);
        let topologies = topologies.count() as u64;
        if topologies < sections {
            return Err(FormatError(format!(
                "{topologies} chunks of meshes where its facts say {sections}"
            )));
        }
        Ok(World {
            meta,
            name: name.into(),
            source,
            entries,
            order,
        })
    }

    pub fn file_bytes(&self) -> u64 {
        self.source.len()
    }

    /// Stored bytes of all chunks of a kind.
    pub fn bytes_of(&self, kind: ChunkKind) -> u64 {
        let chunks = self.entries.values().filter(|entry| entry.id.kind == kind);
        chunks.map(|entry| entry.stored_bytes as u64).sum()
    }

    /// The chunks of known kinds, in the file's order.
    pub fn chunks(&self) -> &[ChunkId] {
        &self.order
    }

    /// Reads a chunk and compares its checksum.
    pub fn check_chunk(&self, id: ChunkId) -> Result<(), FormatError> {
        let check = || {
            let entry = self.entries.get(&id);
            let entry = entry.ok_or_else(|| FormatError::new("it is missing"))?;
            let stored = read_stored(self.source.as_ref(), entry)?;
            if crc32fast::hash(&stored) == entry.crc {
                Ok(())
            } else {
                Err(FormatError::new("its checksum differs"))
            }
        };
        check().map_err(name_chunk(id))
    }

    /// Reads every chunk of a known kind and compares its checksum.
    pub fn check_all_chunks(&self) -> Result<(), FormatError> {
        self.order.iter().try_for_each(|&id| self.check_chunk(id))
    }

    /// Reads the global repository, coarsest level first.
    pub fn read_repository(&self) -> Result<Vec<Section>, FormatError> {
        let layout = &self.meta.layout;
        let mut sections: Vec<Section> = Vec::new();
        for level in (layout.stream_levels..layout.levels).rev() {
            let coarser = sections.last().map(|section| &section.heights);
            let section = self.read_section(SectionKey { level, x: 0, z: 0 }, coarser)?;
            sections.push(section);
        }
        Ok(sections)
    }

    /// The full-resolution heights of one stream patch; `repository` are those of the
    /// repository's finest level. In a world without stream patches they are the answer.
    pub fn read_finest(
        &self,
        stream_patch: PatchKey,
        repository: &Arc<HeightGrid>,
    ) -> Result<Arc<HeightGrid>, FormatError> {
        let mut grid = repository.clone();
        for level in (0..self.meta.layout.stream_levels).rev() {
            let key = SectionKey {
                level,
                x: stream_patch.x,
                z: stream_patch.z,
            };
            grid = self.read_grid(key, &grid)?;
        }
        Ok(grid)
    }

    /// Reads one section. `coarser` holds the heights of the next coarser level there; only the
    /// coarsest level has none.
    pub fn read_section(
        &self,
        key: SectionKey,
        coarser: Option<&Arc<HeightGrid>>,
    ) -> Result<Section, FormatError> {
        let layout = &self.meta.layout;
        let area = layout.section_patches(key);
        let count = (area[2] - area[0]) as usize * (area[3] - area[1]) as usize;
        let depth = layout.tree_depth(key.level);
        let id = chunk_of(ChunkKind::Topology, key);
        let limit = topology::largest_chunk(count, depth);
        let bytes = read_chunk(self.source.as_ref(), &self.entries, id, limit)?;
        let patches = topology::decode(&bytes, count, depth).map_err(name_chunk(id))?;
        let [low, high] = self.meta.height_range;
        if patches
            .iter()
            .any(|patch| patch.min < low || patch.max > high)
        {
            return Err(name_chunk(id)(FormatError::new(
                "a patch beyond the world's heights",
            )));
        }
        let heights = self.read_heights(key, coarser, &patches)?;
        let trees = patches.iter().flat_map(|patch| &patch.trees);
        let tree_bytes: usize = trees.map(|tree| tree.bytes().len()).sum();
        let covered = self.read_coverage(key)?;
        let (samples, cells) = if key.level == 0 {
            let cells = covered.as_ref().map(Coverage::cells);
            (covered, cells)
        } else {
            (None, covered)
        };
        let covered_bytes = [&samples, &cells]
            .into_iter()
            .flatten()
            .map(Coverage::bytes);
        let bytes = heights.heights.len() * 4
            + size_of_val(&patches[..])
            + tree_bytes
            + covered_bytes.sum::<usize>();
        Ok(Section {
            key,
            heights,
            area,
            patches,
            samples,
            cells,
            bytes,
        })
    }

    /// How far the threshold can rise until each node of a section's trees is no longer split;
    /// none where the world does not have it.
    pub fn read_live(&self, section: &Section) -> Result<Option<Vec<LiveSteps>>, FormatError> {
        if self.meta.live_factor.is_none() {
            return Ok(None);
        }
        let id = chunk_of(ChunkKind::Live, section.key);
        let limit = live::stored_bytes(&section.patches);
        let bytes = read_chunk(self.source.as_ref(), &self.entries, id, limit)?;
        let steps = live::decode(&bytes, &section.patches).map_err(name_chunk(id))?;
        Ok(Some(steps))
    }

    /// Where a section has ground: its samples at level 0, the cells of its lattice at any other;
    /// none where all of it has.
    pub fn read_coverage(&self, key: SectionKey) -> Result<Option<Coverage>, FormatError> {
        let id = chunk_of(ChunkKind::Coverage, key);
        if self.meta.kept_voids == 0 || !self.entries.contains_key(&id) {
            return Ok(None);
        }
        let size = coverage::size(&self.meta.layout, key);
        let limit = coverage::stored_bytes(size);
        let bytes = read_chunk(self.source.as_ref(), &self.entries, id, limit)?;
        let found = Coverage::decode(&bytes, size).map_err(name_chunk(id))?;
        Ok(Some(found))
    }

    /// Where water is; none where it is everywhere up to the sea level.
    pub fn read_water_mask(&self) -> Result<Option<WaterMask>, FormatError> {
        if !self.entries.contains_key(&WATER_CHUNK) {
            return Ok(None);
        }
        let samples = self.meta.layout.size_cells.map(|cells| cells + 1);
        let limit = water::stored_bytes(samples);
        let bytes = read_chunk(self.source.as_ref(), &self.entries, WATER_CHUNK, limit)?;
        let mask = WaterMask::decode(&bytes, samples).map_err(name_chunk(WATER_CHUNK))?;
        Ok(Some(mask))
    }

    /// The heights of a section, without its patches where they are not needed.
    fn read_grid(
        &self,
        key: SectionKey,
        coarser: &Arc<HeightGrid>,
    ) -> Result<Arc<HeightGrid>, FormatError> {
        match self.meta.heights {
            StoredHeights::All => self.read_heights(key, Some(coarser), &[]),
            StoredHeights::Nodes => Ok(self.read_section(key, Some(coarser))?.heights),
        }
    }

    /// `patches` are the section's; they only matter where heights are stored at nodes.
    fn read_heights(
        &self,
        key: SectionKey,
        coarser: Option<&Arc<HeightGrid>>,
        patches: &[PatchRecord],
    ) -> Result<Arc<HeightGrid>, FormatError> {
        let layout = &self.meta.layout;
        let rect = layout.section_rect(key);
        let at_nodes = self.meta.heights == StoredHeights::Nodes;
        if let Some(coarser) = coarser
            && coarser.rect.stride == rect.stride
            && !at_nodes
        {
            return Ok(coarser.clone());
        }
        let id = chunk_of(ChunkKind::Heights, key);
        let bytes = read_chunk(
            self.source.as_ref(),
            &self.entries,
            id,
            rect.len() * 8 + 4096,
        )?;
        let coarser = coarser.map(Arc::as_ref);
        let grid = if at_nodes {
            let trees: Vec<_> = patches.iter().map(|patch| &patch.trees).collect();
            let trees = &trees;
            nodes::decode(&bytes, SectionTrees { layout, key, trees }, coarser)
        } else {
            heights::decode(&bytes, rect, coarser)
        };
        let grid = grid.map_err(name_chunk(id))?;
        // Everything after relies on heights that fit the vertices.
        let [low, high] = self.meta.height_range;
        if grid
            .heights
            .iter()
            .any(|height| !(low..=high).contains(height))
        {
            return Err(name_chunk(id)(FormatError::new(
                "a height beyond the world's heights",
            )));
        }
        Ok(Arc::new(grid))
    }
}

/// The finest heights of a world, read where they are asked for: the global repository once, and a
/// stream patch again only after another one.
pub struct HeightReader<'a> {
    world: &'a World,
    repository: Arc<HeightGrid>,
    last: Option<(PatchKey, Arc<HeightGrid>)>,
}

impl<'a> HeightReader<'a> {
    pub fn new(world: &'a World) -> Result<Self, FormatError> {
        let repository = world.read_repository()?;
        let finest = repository.last().expect("at least the coarsest level");
        Ok(HeightReader {
            world,
            repository: finest.heights.clone(),
            last: None,
        })
    }

    /// The height in steps at a position in samples.
    pub fn at(&mut self, x: f64, z: f64) -> Result<f64, FormatError> {
        let layout = &self.world.meta.layout;
        let Some(level) = layout.stream_levels.checked_sub(1) else {
            return Ok(self.repository.between_samples(x, z));
        };
        let key = layout.patch_at(level, [x, z]);
        let grid = match &self.last {
            Some((last, grid)) if *last == key => grid.clone(),
            _ => self.world.read_finest(key, &self.repository)?,
        };
        self.last = Some((key, grid.clone()));
        Ok(grid.between_samples(x, z))
    }
}

/// Where the facts are.
pub const META_CHUNK: ChunkId = ChunkId {
    kind: ChunkKind::Meta,
    level: 0,
    x: 0,
    z: 0,
};

/// Where the water mask is, in worlds that have one.
pub const WATER_CHUNK: ChunkId = ChunkId {
    kind: ChunkKind::Water,
    level: 0,
    x: 0,
    z: 0,
};

/// The chunk of a kind that belongs to a section.
pub fn chunk_of(kind: ChunkKind, key: SectionKey) -> ChunkId {
    ChunkId {
        kind,
        level: key.level,
        x: key.x,
        z: key.z,
    }
}

fn read_chunk(
    source: &dyn ReadAt,
    entries: &HashMap<ChunkId, Entry>,
    id: ChunkId,
    limit: usize,
) -> Result<Vec<u8>, FormatError> {
    let read = || {
        let entry = entries
            .get(&id)
            .ok_or_else(|| FormatError::new("it is missing"))?;
        container::unpack(entry, read_stored(source, entry)?, limit)
    };
    read().map_err(name_chunk(id))
}

fn read_stored(source: &dyn ReadAt, entry: &Entry) -> Result<Vec<u8>, FormatError> {
    let mut stored = vec![0; entry.stored_bytes as usize];
    source.read_at(entry.offset, &mut stored)?;
    Ok(stored)
}

fn name_chunk(id: ChunkId) -> impl Fn(FormatError) -> FormatError {
    move |error| {
        let kind = format!("{:?}", id.kind).to_lowercase();
        FormatError(format!(
            "{kind} chunk {}/{}/{}: {error}",
            id.level, id.x, id.z
        ))
    }
}
