//! What the compiler writes down of a level: bounds, errors and counts.

use crate::terrain::height_map::HeightMap;
use crate::terrain::refine::{MeasureAll, Refiner};
use crate::terrain::trees::patch_trees;
use crate::world::{Layout, LevelMeta, PatchKey, PatchRecord};
use rayon::prelude::*;

/// Lowest and highest sample of every patch, by level and then row by row.
pub fn height_bounds(layout: &Layout, map: &HeightMap) -> Vec<Vec<[i32; 2]>> {
    let mut levels: Vec<Vec<[i32; 2]>> = Vec::new();
    for level in 0..layout.levels {
        let bounds = match levels.last() {
            None => layout
                .keys(level)
                .collect::<Vec<_>>()
                .into_par_iter()
                .map(|key| finest_bounds(layout, map, key))
                .collect(),
            Some(finer) => layout
                .keys(level)
                .map(|key| merged_bounds(layout, finer, key))
                .collect(),
        };
        levels.push(bounds);
    }
    levels
}

/// The records of a level's patches, row by row; the level was refined last.
pub fn patch_records<M: MeasureAll>(
    refiner: &Refiner<M>,
    layout: &Layout,
    level: u8,
    bounds: &[[i32; 2]],
    step_m: f64,
) -> Vec<PatchRecord> {
    let [nx, nz] = layout.patches(level).map(|n| n as i32);
    let mut errors = vec![(0.0f64, false); bounds.len()];
    for leaf in refiner.leaves() {
        let square = leaf.triangle.square(layout.patch_size(level) as i32);
        // Leaves dragged in over absent ground lie in no patch.
        if square.x < nx && square.y < nz {
            let (error, exhausted) = &mut errors[(square.y * nx + square.x) as usize];
            *error = error.max(leaf.measure.error);
            *exhausted |= leaf.exhausted;
        }
    }
    let patches = layout.keys(level).zip(bounds).zip(errors);
    patches
        .map(|((key, &[min, max]), (error, exhausted))| PatchRecord {
            min,
            max,
            error_m: round_up(error * step_m),
            exhausted,
            trees: patch_trees(refiner, layout, key),
        })
        .collect()
}

/// The facts of a level that was refined last.
pub fn level_meta<M: MeasureAll>(
    refiner: &Refiner<M>,
    level: u8,
    records: &[PatchRecord],
    threshold: f64,
    step_m: f64,
) -> LevelMeta {
    let tallest = records
        .iter()
        .map(|patch| patch.max as i64 - patch.min as i64)
        .max()
        .unwrap_or(0);
    LevelMeta {
        patches: records.len() as u64,
        exhausted_patches: records.iter().filter(|patch| patch.exhausted).count() as u64,
        triangles: records.iter().map(|patch| patch.triangles() as u64).sum(),
        vertices: refiner.vertices(level),
        threshold,
        max_error_m: records
            .iter()
            .map(|patch| patch.error_m as f64)
            .fold(0.0, f64::max),
        tallest_patch_m: tallest as f64 * step_m,
        topology_bits: records
            .iter()
            .flat_map(|patch| &patch.trees)
            .map(|tree| tree.len() as u64)
            .sum(),
    }
}

fn finest_bounds(layout: &Layout, map: &HeightMap, key: PatchKey) -> [i32; 2] {
    let size = layout.patch_size(key.level);
    let range = |start: u32, samples: u32| {
        (start * size).min(samples - 1)..=((start + 1) * size).min(samples - 1)
    };
    let (mut low, mut high) = (i32::MAX, i32::MIN);
    for z in range(key.z, map.height) {
        for x in range(key.x, map.width) {
            let height = map.at(x as i64, z as i64);
            (low, high) = (low.min(height), high.max(height));
        }
    }
    [low, high]
}

fn merged_bounds(layout: &Layout, finer: &[[i32; 2]], key: PatchKey) -> [i32; 2] {
    let nx = layout.patches(key.level - 1)[0];
    layout
        .present_children(key)
        .map(|child| finer[(child.z * nx + child.x) as usize])
        .fold([i32::MAX, i32::MIN], |[low, high], [l, h]| {
            [low.min(l), high.max(h)]
        })
}

/// To the next `f32` that is not smaller: a certificate must not promise too much.
fn round_up(value: f64) -> f32 {
    let rounded = value as f32;
    if (rounded as f64) < value {
        rounded.next_up()
    } else {
        rounded
    }
}
