//! The step beside the others: at which threshold each vertex leaves its level's mesh.
//!
//! Each level is settled once more with sixteen thresholds in place of the levels'. Costly, so
//! only where it is asked for.

use super::job::{Job, usage};
use super::meshes::Meshes;
use crate::error::Result;
use crate::terrain::live::{Steps, patch_steps, thresholds, tile_steps, upper_steps};
use crate::terrain::tile::{Ladder, Tiling};
use crate::terrain::upper::{Tallies, Upper};
use crate::world::container::pack;
use crate::world::reader::chunk_of;
use crate::world::{ChunkKind, Coding, PatchKey, SectionKey, Spool, WorldWriter, live};
use glam::IVec2;
use rayon::prelude::*;
use std::collections::HashMap;

/// Packs the live thresholds of all levels.
pub fn write_live(
    job: &Job,
    tallies: &Tallies,
    scratch: &dyn Spool,
    writer: &WorldWriter,
) -> Result<()> {
    for level in 0..job.tiling.layout.levels {
        let own = thresholds(job.rules.metric, job.rules.threshold(level));
        let job = Job {
            tiling: Tiling {
                ladder: Ladder::Steps { level },
                ..job.tiling
            },
            rules: job.rules.with_thresholds(own),
            ..*job
        };
        let upper = Upper::new(job.tiling, &job.rules, tallies.clone());
        let meshes = Meshes::settle(&job, upper, scratch)?;
        write_level(&job, &meshes, level, writer)?;
    }
    Ok(())
}

fn write_level(job: &Job, meshes: &Meshes, level: u8, writer: &WorldWriter) -> Result<()> {
    if job.tiling.layout.is_global(level) {
        write_global(job, meshes, level, writer)
    } else {
        write_streamed(job, meshes, level, writer)
    }
}

/// A tile is a section.
fn write_streamed(job: &Job, meshes: &Meshes, level: u8, writer: &WorldWriter) -> Result<()> {
    job.present_tiles().into_par_iter().try_for_each(|place| {
        let tile = meshes.tile(place, None)?;
        let patches = job.tiling.patches_of(place, level).into_iter();
        let steps: Vec<[Steps; 2]> = patches.map(|key| patch_steps(&tile, key)).collect();
        let (x, z) = (place.x as u32, place.y as u32);
        pack_steps(SectionKey { level, x, z }, &steps, writer)
    })
}

/// A section holds the whole level.
fn write_global(job: &Job, meshes: &Meshes, level: u8, writer: &WorldWriter) -> Result<()> {
    let wider = level > job.tiling.level;
    let found: Vec<TileSteps> = meshes
        .worked_on()
        .into_par_iter()
        .map(|place| {
            let tile = meshes.tile(place, None)?;
            if wider {
                return Ok((place, Vec::new(), tile_steps(&tile)));
            }
            let patches = job.tiling.patches_of(place, level).into_iter();
            let steps = patches.map(|key| (key, patch_steps(&tile, key)));
            Ok((place, steps.collect(), Default::default()))
        })
        .collect::<Result<_>>()?;
    let mut patches: HashMap<PatchKey, [Steps; 2]> = HashMap::new();
    let mut halves = HashMap::new();
    for (place, own, pieces) in found {
        patches.extend(own);
        halves.insert(place, pieces);
    }
    let steps = job.tiling.layout.keys(level).map(|key| {
        if wider {
            upper_steps(&meshes.upper, &job.tiling, key, &halves)
        } else {
            patches
                .remove(&key)
                .expect("every present patch was walked")
        }
    });
    let section = SectionKey { level, x: 0, z: 0 };
    pack_steps(section, &steps.collect::<Vec<_>>(), writer)
}

/// What a tile says of a level: its patches' steps, or those of its two halves.
type TileSteps = (IVec2, Vec<(PatchKey, [Steps; 2])>, [Steps; 2]);

fn pack_steps(section: SectionKey, steps: &[[Steps; 2]], writer: &WorldWriter) -> Result<()> {
    let id = chunk_of(ChunkKind::Live, section);
    let chunk = pack(id, Coding::Zstd, live::encode(steps)).map_err(usage)?;
    writer.add(chunk).map_err(usage)
}
