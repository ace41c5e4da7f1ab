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
    let layout = &job.tiling.layout;
    let wider = level > job.tiling.level;
    let tiles = meshes.worked_on();
    type Found = (Vec<(PatchKey, [Steps; 2])>, [Steps; 2]);
    let found: Vec<Found> = tiles
        .par_iter()
        .map(|&place| {
            let tile = meshes.tile(place, None)?;
            if wider {
                return Ok((Vec::new(), tile_steps(&tile)));
            }
            let patches = job.tiling.patches_of(place, level);
            let steps = patches
                .into_iter()
                .map(|key| (key, patch_steps(&tile, key)));
            Ok((steps.collect(), Default::default()))
        })
        .collect::<Result<_>>()?;
    let mut patches: HashMap<PatchKey, [Steps; 2]> = HashMap::new();
    let mut halves = HashMap::new();
    for (&place, (own, pieces)) in tiles.iter().zip(found) {
        patches.extend(own);
        halves.insert(place, pieces);
    }
    for section in layout.sections(level) {
        let [x0, z0, x1, z1] = layout.section_patches(section);
        let keys = (z0..z1).flat_map(|z| (x0..x1).map(move |x| PatchKey::new(level, x, z)));
        let steps = keys.map(|key| {
            if wider {
                upper_steps(&meshes.upper, &job.tiling, key, &halves)
            } else {
                patches
                    .remove(&key)
                    .expect("every present patch was walked")
            }
        });
        pack_steps(section, &steps.collect::<Vec<_>>(), writer)?;
    }
    Ok(())
}

fn pack_steps(section: SectionKey, steps: &[[Steps; 2]], writer: &WorldWriter) -> Result<()> {
    let id = chunk_of(ChunkKind::Live, section);
    let chunk = pack(id, Coding::Zstd, live::encode(steps)).map_err(usage)?;
    writer.add(chunk).map_err(usage)
}
