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

/// The heights of a section, from those at samples of the world, beyond its edge too; none where
/// the coarser level has the same lattice.
pub fn pack_heights(
    layout: &Layout,
    key: SectionKey,
    height: impl Fn(IVec2) -> i32,
) -> Result<Option<PackedChunk>, FormatError> {
    let coarser = layout.coarser_section(key);
    if coarser.is_some_and(|coarser| layout.stride(coarser.level) == layout.stride(key.level)) {
        return Ok(None);
    }
    let rect = layout.section_rect(key);
    let stride = rect.stride as i32;
    let grid = HeightGrid::from_fn(rect, |x, z| height(ivec2(x, z) * stride));
    let bytes = heights::encode(grid, coarser.is_some());
    let chunk = pack(chunk_of(ChunkKind::Heights, key), Coding::Raw, bytes)?;
    Ok(Some(chunk))
}
