//! Packs a level's sections: what each adds to the heights of the level above, and its patches.

use crate::terrain::height_map::HeightMap;
use crate::world::container::pack;
use crate::world::reader::chunk_of;
use crate::world::{
    ChunkKind, Coding, FormatError, HeightGrid, Layout, PackedChunk, PatchRecord, SectionKey,
};
use crate::world::{heights, topology};
use rayon::prelude::*;

/// The chunks of all sections of a level, in file order.
pub fn pack_level(
    layout: &Layout,
    map: &HeightMap,
    level: u8,
    records: &[PatchRecord],
) -> Result<Vec<PackedChunk>, FormatError> {
    let sections: Vec<Vec<PackedChunk>> = layout
        .sections(level)
        .into_par_iter()
        .map(|key| pack_section(layout, map, key, records))
        .collect::<Result<_, _>>()?;
    Ok(sections.into_iter().flatten().collect())
}

fn pack_section(
    layout: &Layout,
    map: &HeightMap,
    key: SectionKey,
    records: &[PatchRecord],
) -> Result<Vec<PackedChunk>, FormatError> {
    let [x0, z0, x1, z1] = layout.section_patches(key).map(|n| n as usize);
    let nx = layout.patches(key.level)[0] as usize;
    let patches: Vec<PatchRecord> = (z0..z1)
        .flat_map(|z| &records[z * nx + x0..z * nx + x1])
        .cloned()
        .collect();
    let mut chunks = vec![pack(
        chunk_of(ChunkKind::Topology, key),
        Coding::Zstd,
        topology::encode(&patches),
    )?];
    let coarser = layout.coarser_section(key);
    let shared =
        coarser.is_some_and(|coarser| layout.stride(coarser.level) == layout.stride(key.level));
    if !shared {
        let bytes = heights::encode(
            &grid(layout, map, key),
            coarser.map(|key| grid(layout, map, key)).as_ref(),
        );
        chunks.push(pack(chunk_of(ChunkKind::Heights, key), Coding::Raw, bytes)?);
    }
    Ok(chunks)
}

/// The lattice samples of a section; ground beyond the source continues its edge.
fn grid(layout: &Layout, map: &HeightMap, key: SectionKey) -> HeightGrid {
    let rect = layout.section_rect(key);
    let stride = rect.stride as i64;
    HeightGrid::from_fn(rect, |x, z| map.at(x as i64 * stride, z as i64 * stride))
}
