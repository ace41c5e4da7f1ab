//! Reads a world by range: facts first, then any section alone.
//!
//! A reader never trusts: sizes are bounded by what the layout allows before memory is asked
//! for, and whatever is wrong comes back as an error that names the chunk.

use super::container::{self, Entry};
use super::meta::MAX_META_BYTES;
use super::{ChunkId, ChunkKind, FormatError, HeightGrid, Meta, PatchKey, PatchRecord, SectionKey};
use super::{heights, topology};
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
    source: Box<dyn ReadAt>,
    entries: HashMap<ChunkId, Entry>,
    order: Vec<ChunkId>,
}

/// One section, decoded: heights with their apron, and the patches row by row.
#[derive(Debug)]
pub struct Section {
    pub key: SectionKey,
    pub heights: Arc<HeightGrid>,
    /// First patch and one past the last, [x0, z0, x1, z1].
    pub area: [u32; 4],
    pub patches: Vec<PatchRecord>,
}

impl Section {
    /// The record of a patch that lies in this section.
    pub fn patch(&self, key: PatchKey) -> &PatchRecord {
        let [x0, z0, x1, _] = self.area;
        &self.patches[((key.z - z0) * (x1 - x0) + key.x - x0) as usize]
    }

    /// Bytes in memory; heights shared with another level count there too.
    pub fn bytes(&self) -> usize {
        let trees: usize = self
            .patches
            .iter()
            .flat_map(|p| &p.trees)
            .map(|t| t.bytes().len())
            .sum();
        self.heights.heights.len() * 4 + self.patches.len() * size_of::<PatchRecord>() + trees
    }
}

impl World {
    pub fn open(source: Box<dyn ReadAt>) -> Result<Self, FormatError> {
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
        let id = ChunkId {
            kind: ChunkKind::Meta,
            level: 0,
            x: 0,
            z: 0,
        };
        let bytes = read_chunk(source.as_ref(), &entries, id, MAX_META_BYTES)?;
        let meta = Meta::from_bytes(&bytes)?;
        Ok(World {
            meta,
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

    /// Reads every chunk and compares its checksum.
    pub fn check_all_chunks(&self) -> Result<(), FormatError> {
        self.order.iter().try_for_each(|id| {
            let entry = &self.entries[id];
            let stored = read_stored(self.source.as_ref(), entry)?;
            if crc32fast::hash(&stored) == entry.crc {
                Ok(())
            } else {
                Err(name_chunk(*id)(FormatError::new("its checksum differs")))
            }
        })
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
        let heights = self.read_heights(key, coarser)?;
        Ok(Section {
            key,
            heights,
            area,
            patches,
        })
    }

    fn read_heights(
        &self,
        key: SectionKey,
        coarser: Option<&Arc<HeightGrid>>,
    ) -> Result<Arc<HeightGrid>, FormatError> {
        let rect = self.meta.layout.section_rect(key);
        if let Some(coarser) = coarser
            && coarser.rect.stride == rect.stride
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
        let grid =
            heights::decode(&bytes, rect, coarser.map(Arc::as_ref)).map_err(name_chunk(id))?;
        Ok(Arc::new(grid))
    }
}

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
