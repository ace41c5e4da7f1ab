//! The third step: what the meshes say of every patch, and the heights, packed by section.

use super::cover::Cover;
use super::facts::Facts;
use super::job::{Job, usage};
use super::meshes::Meshes;
use super::nodes::write_nodes;
use super::sections::{pack_heights, pack_topology};
use super::survey::CoarseHeights;
use crate::error::Result;
use crate::terrain::tile_ground::TileGround;
use crate::terrain::trees::{self, Piece, TileTrees, record, upper_trees};
use crate::world::layout::APRON;
use crate::world::{PatchKey, PatchRecord, SectionKey, StoredHeights, WorldWriter, coverage};
use glam::{IVec2, ivec2};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Mutex;

/// Lowest and highest sample of patches.
type Bounds = HashMap<PatchKey, [i32; 2]>;

/// What the levels of the global repository need of the tiles.
#[derive(Default)]
struct Gathered {
    /// By tile and by level above it.
    pieces: HashMap<IVec2, Vec<[Piece; 2]>>,
    /// Of the tiles' own patches.
    bounds: Bounds,
    /// Of levels that are not streamed though no wider than a tile.
    records: HashMap<PatchKey, PatchRecord>,
}

/// Packs all sections; the facts of each level, finest first.
pub fn write(
    job: &Job,
    meshes: &Meshes,
    coarse: &CoarseHeights,
    writer: &WorldWriter,
) -> Result<Vec<Facts>> {
    let layout = &job.tiling.layout;
    let facts = Mutex::new(vec![Facts::default(); layout.levels as usize]);
    let gathered = Mutex::new(Gathered::default());
    let unpoisoned = "no holder of the lock panics";
    meshes.worked_on().into_par_iter().try_for_each(|place| {
        let found = write_tile(job, meshes, place, writer)?;
        let mut facts = facts.lock().expect(unpoisoned);
        for (all, tile) in facts.iter_mut().zip(&found.facts) {
            all.add(tile);
        }
        drop(facts);
        let mut gathered = gathered.lock().expect(unpoisoned);
        gathered.pieces.insert(place, found.pieces);
        gathered.bounds.extend(found.bounds);
        gathered.records.extend(found.records);
        drop(gathered);
        if job.is_present(place) {
            job.finished(place)?;
        }
        Ok::<(), crate::error::Error>(())
    })?;
    let mut facts = facts.into_inner().expect(unpoisoned);
    let gathered = gathered.into_inner().expect(unpoisoned);
    let global = write_global(job, meshes, coarse, gathered, writer, &mut facts)?;
    if job.heights == StoredHeights::Nodes {
        write_nodes(job, meshes, coarse, &global, writer)?;
    }
    Ok(facts)
}

/// What a tile leaves to the levels above it.
struct Left {
    facts: Vec<Facts>,
    pieces: Vec<[Piece; 2]>,
    bounds: Bounds,
    records: HashMap<PatchKey, PatchRecord>,
}

impl Left {
    /// The record of a patch, which is counted.
    fn take(
        &mut self,
        job: &Job,
        key: PatchKey,
        halves: [Piece; 2],
        bounds: [i32; 2],
        is_absent: bool,
    ) -> PatchRecord {
        self.bounds.insert(key, bounds);
        let rim_edges = halves.iter().map(|half| half.rim_edges).sum();
        let mut record = record(halves, bounds, job.source.step_m);
        record.absent = is_absent;
        self.facts[key.level as usize].count(&record, rim_edges);
        record
    }
}

fn write_tile(job: &Job, meshes: &Meshes, place: IVec2, writer: &WorldWriter) -> Result<Left> {
    let layout = &job.tiling.layout;
    let rim = rim(job);
    let window = job.is_present(place).then(|| job.window(place, rim));
    let window = window.transpose()?;
    let ground = window
        .as_ref()
        .map(|window| job.ground_of(place, window, rim));
    let ground = ground.transpose()?;
    let tile = meshes.tile(place, ground.as_ref())?;
    let TileTrees {
        mut patches,
        pieces,
    } = trees::tile_trees(&tile);
    let mut left = Left {
        facts: vec![Facts::default(); job.tiling.level as usize + 1],
        pieces,
        bounds: Bounds::new(),
        records: HashMap::new(),
    };
    let (Some(window), Some(ground)) = (&window, &ground) else {
        return Ok(left);
    };
    let corner = place * job.tiling.side - rim;
    let from = |sample: IVec2| {
        let p = sample - corner;
        &window.heights[p.y as usize * window.width as usize + p.x as usize..]
    };
    let mut cover = Cover::of_tile(job, place)?;
    for level in 0..=job.tiling.level {
        let cells = job.tiling.side as u32 / layout.stride(level);
        if let Some(cover) = cover.as_mut().filter(|_| level > 0) {
            cover.climb(layout.stride(level), [cells; 2]);
        }
        let keys = job.tiling.patches_of(place, level);
        let first = keys[0];
        let mut records = Vec::with_capacity(keys.len());
        for &key in &keys {
            let bounds = patch_bounds(job, ground, place, key, &left.bounds);
            let halves = patches.remove(&key);
            let halves = halves.expect("every present patch was walked");
            let absent = |cover: &Cover| {
                cover.is_absent(key, [first.x, first.z], layout.lattice_cells(level))
            };
            let is_absent = cover.as_ref().is_some_and(absent);
            records.push(left.take(job, key, halves, bounds, is_absent));
        }
        if layout.is_global(level) {
            left.records.extend(keys.into_iter().zip(records));
            continue;
        }
        let section = SectionKey {
            level,
            x: place.x as u32,
            z: place.y as u32,
        };
        writer
            .add(pack_topology(section, &records).map_err(usage)?)
            .map_err(usage)?;
        let fill = |start: IVec2, stride: usize, row: &mut [i32]| {
            let heights = from(start);
            let last = (row.len() - 1) * stride;
            for (to, from) in row.iter_mut().zip(heights[..=last].iter().step_by(stride)) {
                *to = *from;
            }
        };
        add_heights(job, section, fill, writer)?;
        if let Some(cover) = &cover {
            cover.write(section, writer)?;
        }
    }
    left.bounds.retain(|key, _| key.level == job.tiling.level);
    Ok(left)
}

/// Samples round a tile that its sections' aprons need.
fn rim(job: &Job) -> i32 {
    let layout = &job.tiling.layout;
    let widest = layout.stream_levels.saturating_sub(1);
    APRON * layout.stride(widest) as i32
}

/// From the samples at the finest level, from the finer patches above it.
fn patch_bounds(
    job: &Job,
    ground: &TileGround,
    tile: IVec2,
    key: PatchKey,
    finer: &Bounds,
) -> [i32; 2] {
    let layout = &job.tiling.layout;
    if key.level > 0 {
        return merged(layout.present_children(key).map(|child| finer[&child]));
    }
    let size = layout.patch_size(0) as i32;
    let corner = ivec2(key.x as i32, key.z as i32) * size - tile * job.tiling.side;
    ground.range(corner, size).unwrap_or_default()
}

fn merged(bounds: impl Iterator<Item = [i32; 2]>) -> [i32; 2] {
    bounds.fold([i32::MAX, i32::MIN], |[low, high], [l, h]| {
        [low.min(l), high.max(h)]
    })
}

/// The levels of the global repository, whole. Returns their patches, finest level first.
fn write_global(
    job: &Job,
    meshes: &Meshes,
    coarse: &CoarseHeights,
    mut gathered: Gathered,
    writer: &WorldWriter,
    facts: &mut [Facts],
) -> Result<Vec<Vec<PatchRecord>>> {
    let layout = &job.tiling.layout;
    let mut global = Vec::new();
    let mut cover = Cover::of_repository(job)?;
    for level in layout.stream_levels..layout.levels {
        let section = SectionKey { level, x: 0, z: 0 };
        if let Some(cover) = cover.as_mut().filter(|_| level > layout.stream_levels) {
            cover.climb(layout.stride(level), coverage::size(layout, section));
        }
        let mut records: Vec<PatchRecord> = if level <= job.tiling.level {
            let records = &mut gathered.records;
            let take = |key| {
                records
                    .remove(&key)
                    .expect("every present patch has a record")
            };
            layout.keys(level).map(take).collect()
        } else {
            join(
                job,
                meshes,
                level,
                &mut gathered,
                &mut facts[level as usize],
            )
        };
        if let Some(cover) = &cover {
            for (key, record) in layout.keys(level).zip(&mut records) {
                record.absent = cover.is_absent(key, [0, 0], layout.lattice_cells(level));
            }
            cover.write(section, writer)?;
        }
        writer
            .add(pack_topology(section, &records).map_err(usage)?)
            .map_err(usage)?;
        let fill = |start: IVec2, stride: usize, row: &mut [i32]| {
            for (i, height) in row.iter_mut().enumerate() {
                *height = coarse.at(start + ivec2((i * stride) as i32, 0));
            }
        };
        add_heights(job, section, fill, writer)?;
        global.push(records);
    }
    Ok(global)
}

/// Packs the heights of a section, where all are stored.
fn add_heights(
    job: &Job,
    section: SectionKey,
    fill: impl Fn(IVec2, usize, &mut [i32]),
    writer: &WorldWriter,
) -> Result<()> {
    if job.heights == StoredHeights::Nodes {
        return Ok(());
    }
    match pack_heights(&job.tiling.layout, section, fill).map_err(usage)? {
        Some(chunk) => writer.add(chunk).map_err(usage),
        None => Ok(()),
    }
}

/// The records of a level whose patches are wider than tiles, row by row.
fn join(
    job: &Job,
    meshes: &Meshes,
    level: u8,
    gathered: &mut Gathered,
    facts: &mut Facts,
) -> Vec<PatchRecord> {
    let layout = &job.tiling.layout;
    let threshold = job.rules.threshold(level);
    let halves = upper_trees(
        &meshes.upper,
        &job.tiling,
        level,
        threshold,
        &gathered.pieces,
    );
    let patches = layout.keys(level).zip(halves);
    let records = patches.map(|(key, halves)| {
        let children = layout.present_children(key);
        let bounds = merged(children.map(|child| gathered.bounds[&child]));
        gathered.bounds.insert(key, bounds);
        let rim_edges = halves.iter().map(|half| half.rim_edges).sum();
        let record = record(halves, bounds, job.source.step_m);
        facts.count(&record, rim_edges);
        record
    });
    records.collect()
}
