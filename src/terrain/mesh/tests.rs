//! Meshes of a rough little world: they morph to their parents, meet, and cover their patches.

mod random;
mod twin;

use super::*;
use crate::terrain::height_map::HeightMap;
use crate::terrain::measure::Metric;
use crate::terrain::rules::Rules;
use crate::terrain::trees::tests::all_trees;
use glam::{IVec2, ivec2};
use std::collections::HashMap;

/// A rough little world of three levels, its records and grids by level.
fn world() -> (Layout, HashMap<PatchKey, PatchRecord>, Vec<HeightGrid>) {
    let rough = |x: i64, z: i64| ((x * 37 + z * 101) % 23 + (x * x + 3 * z) % 17) as i32;
    let heights = (0..33 * 33).map(|i| rough(i % 33, i / 33)).collect();
    let map = HeightMap {
        width: 33,
        height: 33,
        heights,
    };
    let layout = Layout::new([32, 32], 8, 8).unwrap();
    let thresholds = (0..layout.levels).map(|level| 4.0 * (1 << level) as f64);
    let rules = Rules::new(Metric::Max, thresholds.collect(), None);
    let records = all_trees(&map, layout, &rules);
    let grids = (0..layout.levels)
        .map(|level| {
            let stride = layout.stride(level) as i64;
            let side = (32 / stride) as u32 + 5;
            let rect = crate::world::LatticeRect {
                stride: stride as u32,
                x0: -2,
                z0: -2,
                width: side,
                height: side,
            };
            HeightGrid::from_fn(rect, |x, z| map.at(x as i64 * stride, z as i64 * stride))
        })
        .collect();
    (layout, records, grids)
}

fn build_patch(
    world: &(Layout, HashMap<PatchKey, PatchRecord>, Vec<HeightGrid>),
    key: PatchKey,
) -> PatchMesh {
    let (layout, records, grids) = world;
    let data = |key: PatchKey| {
        let record = records.get(&key)?;
        Some(PatchData {
            record,
            heights: &grids[key.level as usize],
        })
    };
    build(layout, key, data(key).unwrap(), data(key.parent())).unwrap()
}

/// Height of a mesh's surface at a lattice position, from whichever height `pick` takes.
fn surface(mesh: &PatchMesh, p: IVec2, pick: impl Fn(&PatchVertex) -> i32) -> i64 {
    let ground = &mesh.indices[..mesh.ground_indices as usize];
    for triangle in ground.chunks_exact(3) {
        let v: Vec<_> = triangle
            .iter()
            .map(|&i| mesh.vertices[i as usize])
            .collect();
        let [a, b, c] = [0, 1, 2].map(|i| ivec2(v[i].x as i32, v[i].z as i32));
        let area = (b - a).perp_dot(c - a) as i64;
        let weights = [
            (b - p).perp_dot(c - p),
            (c - p).perp_dot(a - p),
            (a - p).perp_dot(b - p),
        ]
        .map(i64::from);
        if weights
            .iter()
            .all(|&w| w == 0 || w.signum() == area.signum())
        {
            let sum: i64 = (0..3).map(|i| weights[i] * pick(&v[i]) as i64).sum();
            assert_eq!(sum % area, 0, "heights are exact in height units");
            return sum / area;
        }
    }
    panic!("no triangle over {p}");
}

#[test]
fn at_morph_one_a_patch_is_exactly_its_parent() {
    let world = world();
    let (layout, records, _) = &world;
    let mut compared = 0;
    for &key in records.keys().filter(|key| key.level < layout.coarsest()) {
        let (mesh, parent) = (build_patch(&world, key), build_patch(&world, key.parent()));
        let step = layout.stride(key.level + 1) / layout.stride(key.level);
        let n = layout.lattice_cells(key.level) as i32;
        let offset = ivec2(key.x as i32 % 2, key.z as i32 % 2) * n;
        for vertex in &mesh.vertices[..] {
            let p = ivec2((vertex.x & 0xfff) as i32, vertex.z as i32);
            // In the parent's lattice the position may be a half: compare at twice the scale.
            let at = (p + offset) * 2 / step as i32;
            let scaled = PatchMesh {
                vertices: parent
                    .vertices
                    .iter()
                    .map(|v| PatchVertex {
                        x: (v.x & 0xfff) * 2,
                        z: v.z * 2,
                        ..*v
                    })
                    .collect(),
                ..parent.clone()
            };
            assert_eq!(
                vertex.parent as i64,
                surface(&scaled, at, |v| v.own),
                "{key} at {p}"
            );
            compared += 1;
        }
    }
    assert!(compared > 1000, "only {compared} vertices were compared");
}

#[test]
fn neighbours_share_the_vertices_of_their_border() {
    let world = world();
    let (layout, records, _) = &world;
    let mut compared = 0;
    for &key in records.keys() {
        let east = PatchKey {
            x: key.x + 1,
            ..key
        };
        if !records.contains_key(&east) {
            continue;
        }
        let n = layout.lattice_cells(key.level) as u16;
        let border = |mesh: PatchMesh, x: u16| {
            let mut vertices: Vec<_> = mesh
                .vertices
                .iter()
                .filter(|v| v.x == x)
                .map(|v| (v.z, v.own, v.parent))
                .collect();
            vertices.sort();
            vertices
        };
        let shared = border(build_patch(&world, key), n);
        assert_eq!(
            shared,
            border(build_patch(&world, east), 0),
            "{key} and {east}"
        );
        compared += shared.len();
    }
    assert!(compared > 100, "only {compared} vertices were compared");
}

#[test]
fn a_mesh_covers_its_patch_once_and_hangs_skirts_all_round() {
    let world = world();
    for &key in world.1.keys() {
        let mesh = build_patch(&world, key);
        let n = world.0.lattice_cells(key.level) as i32;
        let at = |i: &u16| {
            let v = mesh.vertices[*i as usize];
            ivec2((v.x & 0xfff) as i32, v.z as i32)
        };
        let (ground, skirts) = mesh.indices.split_at(mesh.ground_indices as usize);
        let area: i32 = ground
            .chunks_exact(3)
            .map(|t| -(at(&t[1]) - at(&t[0])).perp_dot(at(&t[2]) - at(&t[0])))
            .sum();
        assert_eq!(area, 2 * n * n);
        assert_eq!(ground.len() / 3, world.1[&key].triangles() as usize);
        let length: i32 = skirts
            .chunks_exact(6)
            .map(|q| (at(&q[0]) - at(&q[1])).abs().element_sum())
            .sum();
        assert_eq!(length, 4 * n);
    }
}

#[test]
fn a_patch_that_does_not_nest_is_an_error() {
    let mut world = world();
    let leaf = world.1[&PatchKey::new(0, 0, 0)].trees.clone();
    assert!(leaf[0].len() > 1, "the finest patch is split");
    let mut flat = crate::world::Bits::default();
    flat.push(false);
    let coarse = PatchKey::new(1, 0, 0);
    assert!(
        world.1[&coarse].trees[0].len() > 7,
        "the parent is split below the roots"
    );
    world.1.get_mut(&PatchKey::new(0, 0, 0)).unwrap().trees = [flat.clone(), flat];
    let data = |key: PatchKey| PatchData {
        record: &world.1[&key],
        heights: &world.2[key.level as usize],
    };
    assert!(
        build(
            &world.0,
            PatchKey::new(0, 0, 0),
            data(PatchKey::new(0, 0, 0)),
            Some(data(coarse))
        )
        .is_err()
    );
}
