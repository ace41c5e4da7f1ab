//! Patches at their full lattice: what renderers without triangle trees draw.
//!
//! For comparison only. A full lattice is a full bintree, so it takes the same way through the
//! mesh builder as any other: it nests, morphs and meets its neighbours.

use super::Mesher;
use crate::world::{Bits, Layout, PatchKey, PatchRecord};

/// The record of a patch whose trees go down to the lattice everywhere. On the lattice of all
/// samples its error is 0.
pub fn full(layout: &Layout, key: PatchKey, record: &PatchRecord) -> PatchRecord {
    let mut tree = Bits::default();
    split(&mut tree, layout.tree_depth(key.level));
    let exact = layout.stride(key.level) == 1;
    PatchRecord {
        error_m: if exact {
            0.0
        } else {
            Mesher::Grid.error_factor() * record.error_m
        },
        trees: [tree.clone(), tree],
        ..*record
    }
}

/// A tree whose leaves all lie `depth` halvings down.
fn split(tree: &mut Bits, depth: u32) {
    tree.push(depth > 0);
    if depth > 0 {
        split(tree, depth - 1);
        split(tree, depth - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PatchData, build};
    use super::*;
    use crate::world::{HeightGrid, LatticeRect};

    #[test]
    fn every_lattice_position_is_a_vertex_with_its_own_height() {
        let layout = Layout::new([64, 64], 8, 16).unwrap();
        for level in 0..layout.levels {
            let key = PatchKey::new(level, 0, 0);
            let cells = layout.lattice_cells(level);
            let height = |x: i32, z: i32| (x * 37 + z * 101) % 23;
            let rect = LatticeRect {
                stride: layout.stride(level),
                x0: 0,
                z0: 0,
                width: cells + 1,
                height: cells + 1,
            };
            let heights = HeightGrid::from_fn(rect, height);
            let mut leaf = Bits::default();
            leaf.push(false);
            let stored = PatchRecord {
                min: 0,
                max: 22,
                error_m: 3.0,
                exhausted: false,
                absent: false,
                trees: [leaf.clone(), leaf],
            };
            let record = full(&layout, key, &stored);
            let patch = PatchData {
                record: &record,
                heights: &heights,
            };
            let mesh = build(&layout, key, patch, None).unwrap();
            assert_eq!(mesh.ground_indices, 6 * cells * cells);
            let ground: std::collections::HashSet<u16> = mesh.indices
                [..mesh.ground_indices as usize]
                .iter()
                .copied()
                .collect();
            assert_eq!(ground.len() as u32, (cells + 1).pow(2));
            for &i in &ground {
                let vertex = mesh.vertices[i as usize];
                let own = height(vertex.x.into(), vertex.z.into()) * layout.height_units();
                assert_eq!(vertex.own, own);
            }
            let exact = layout.stride(level) == 1;
            assert_eq!(record.error_m, if exact { 0.0 } else { 6.0 });
        }
    }
}
