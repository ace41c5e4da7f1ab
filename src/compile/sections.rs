//! Packs a section: its patches, and what it adds to the heights of the level above.

use crate::world::container::pack;
use crate::world::reader::chunk_of;
use crate::world::{
    ChunkKind, Coding, FormatError, HeightGrid, Layout, PackedChunk, PatchRecord, SectionKey,
};
use crate::world::{heights, topology};
use glam::{IVec2, ivec2};

/// The patches of a section, row by row.
pub fn pack_topology(key: SectionKey, records: &[PatchRecord]) -> Result<PackedChunk, FormatError> {
    let bytes = topology::encode(records);
    pack(chunk_of(ChunkKind::Topology, key), Coding::Zstd, bytes)
}

/// The heights of a section; none where the coarser level has the same lattice. `fill` writes a row
/// of heights: from a sample of the world, or beyond its edge, every so many samples to the east.
pub fn pack_heights(
    layout: &Layout,
    key: SectionKey,
    fill: impl Fn(IVec2, usize, &mut [i32]),
) -> Result<Option<PackedChunk>, FormatError> {
    let coarser = layout.coarser_section(key);
    if coarser.is_some_and(|coarser| layout.stride(coarser.level) == layout.stride(key.level)) {
        return Ok(None);
    }
    let rect = layout.section_rect(key);
    let mut heights = vec![0; rect.len()];
    let rows = heights.chunks_exact_mut(rect.width as usize);
    for (row, z) in rows.zip(rect.z0..) {
        let start = ivec2(rect.x0, z) * rect.stride as i32;
        fill(start, rect.stride as usize, row);
    }
    let bytes = heights::encode(HeightGrid { rect, heights }, coarser.is_some());
    let chunk = pack(chunk_of(ChunkKind::Heights, key), Coding::Raw, bytes)?;
    Ok(Some(chunk))
}
