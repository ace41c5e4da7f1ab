//! What the compiler counts of a level.

use crate::world::{LevelMeta, PatchRecord};

/// Sums and largest values over patches; the order of counting does not show.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    patches: u64,
    exhausted_patches: u64,
    triangles: u64,
    /// Edges of triangles along the border of the level's ground.
    rim_edges: u64,
    max_error_m: f64,
    /// The largest difference between a patch's highest and lowest sample, in height steps.
    tallest: i64,
    topology_bits: u64,
}

impl Facts {
    pub fn count(&mut self, record: &PatchRecord, rim_edges: u64) {
        self.add(&Facts {
            patches: 1,
            exhausted_patches: record.exhausted as u64,
            triangles: record.triangles() as u64,
            rim_edges,
            max_error_m: record.error_m as f64,
            tallest: record.max as i64 - record.min as i64,
            topology_bits: record.trees.iter().map(|tree| tree.len() as u64).sum(),
        });
    }

    pub fn add(&mut self, other: &Facts) {
        self.patches += other.patches;
        self.exhausted_patches += other.exhausted_patches;
        self.triangles += other.triangles;
        self.rim_edges += other.rim_edges;
        self.max_error_m = self.max_error_m.max(other.max_error_m);
        self.tallest = self.tallest.max(other.tallest);
        self.topology_bits += other.topology_bits;
    }

    /// As a world tells it. Euler: V - E + F = 1 and 2 E = 3 F + rim give the vertices of a mesh
    /// that has neither holes nor T-junctions.
    pub fn level_meta(&self, threshold: f64, step_m: f64) -> LevelMeta {
        LevelMeta {
            patches: self.patches,
            exhausted_patches: self.exhausted_patches,
            triangles: self.triangles,
            vertices: 1 + (self.triangles + self.rim_edges) / 2,
            threshold,
            max_error_m: self.max_error_m,
            tallest_patch_m: self.tallest as f64 * step_m,
            topology_bits: self.topology_bits,
        }
    }
}
