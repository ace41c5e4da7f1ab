//! At which threshold each vertex leaves its level's mesh.
//!
//! A level's mesh is the smallest at its own threshold. Were the threshold raised step by step,
//! each time by the same factor, vertices would leave it one after another; meshes nest, so one
//! number a vertex, the last step at which the mesh still has it, gives all these meshes at once.
//! A viewer that has the numbers follows a slider without measuring anything: a node is split
//! when its step is not below the wanted one.
//!
//! Ranks find them as they find levels: here a rank is one more than the step.

use super::hierarchy::{Rank, Ranked};
use super::measure::Metric;
use super::tile::{Tile, Tiling};
use super::triangle::Triangle;
use super::upper::Upper;
use crate::world::PatchKey;
use crate::world::live::STEPS;
use glam::{IVec2, ivec2};
use std::collections::HashMap;

/// The steps of a tree's nodes in the order of its bit-stream.
pub type Steps = Vec<u8>;

/// What a threshold is multiplied with from step to step: two of them are a level.
pub fn factor(metric: Metric) -> f64 {
    metric.growth().sqrt()
}

/// A level's thresholds, its own first.
pub fn thresholds(metric: Metric, own: f64) -> Vec<f64> {
    (0..STEPS as i32)
        .map(|step| own * factor(metric).powi(step))
        .collect()
}

/// Both halves of a patch that lies in a settled tile.
pub fn patch_steps(tile: &Tile, key: PatchKey) -> [Steps; 2] {
    let size = tile.tiling.layout.patch_size(key.level) as i32;
    let corner = ivec2(key.x as i32, key.z as i32) * size - tile.place * tile.tiling.side;
    Triangle::roots(corner, size, key.splits_nw_se()).map(|root| {
        let mut steps = Steps::new();
        walk(tile, root, &mut steps);
        steps
    })
}

/// The two halves of a tile, for a level whose patches are wider.
pub fn tile_steps(tile: &Tile) -> [Steps; 2] {
    tile.roots().map(|root| {
        let mut steps = Steps::new();
        walk(tile, root, &mut steps);
        steps
    })
}

fn walk(tile: &Tile, triangle: Triangle, steps: &mut Steps) {
    let rank: Rank = triangle
        .split_middle()
        .map_or(0, |middle| tile.rank(middle));
    if rank > 0 {
        steps.push(rank - 1);
        for half in triangle.halves() {
            walk(tile, half, steps);
        }
    }
}

/// Both halves of a patch wider than tiles, from those of its tiles; untouched tiles have none.
pub fn upper_steps(
    upper: &Upper,
    tiling: &Tiling,
    key: PatchKey,
    tiles: &HashMap<IVec2, [Steps; 2]>,
) -> [Steps; 2] {
    let size = 1 << (key.level - tiling.level);
    let corner = ivec2(key.x as i32, key.z as i32) * size;
    Triangle::roots(corner, size, key.splits_nw_se()).map(|root| {
        let mut steps = Steps::new();
        join(upper, root, tiles, &mut steps);
        steps
    })
}

fn join(upper: &Upper, triangle: Triangle, tiles: &HashMap<IVec2, [Steps; 2]>, steps: &mut Steps) {
    let Some(middle) = triangle.split_middle() else {
        let tile = triangle.square(1);
        let first = Triangle::roots(tile, 1, (tile.x + tile.y) % 2 == 0)[0];
        if let Some(halves) = tiles.get(&tile) {
            steps.extend(&halves[(first != triangle) as usize]);
        }
        return;
    };
    let rank = upper.rank(middle);
    if rank > 0 {
        steps.push(rank - 1);
        for half in triangle.halves() {
            join(upper, half, tiles, steps);
        }
    }
}
