//! Random meshes and damaged trees, against the plain way and against what every mesh must be.

use super::twin::{Ground, twin};
use super::*;
use crate::terrain::triangle::Triangle;
use crate::world::{Bits, LatticeRect};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::HashSet;

/// Random meshes without T-junctions of a patch and its parent, and rough heights.
#[derive(Clone, Debug)]
struct Meshes {
    layout: Layout,
    key: PatchKey,
    patch: (PatchRecord, HeightGrid),
    parent: (PatchRecord, HeightGrid),
}

impl Meshes {
    fn build(&self, with_parent: bool) -> Result<PatchMesh, FormatError> {
        let [patch, parent] = self.data();
        build(&self.layout, self.key, patch, with_parent.then_some(parent))
    }

    fn twin(&self, with_parent: bool) -> Option<Ground> {
        let [patch, parent] = self.data();
        twin(&self.layout, self.key, patch, with_parent.then_some(parent))
    }

    fn data(&self) -> [PatchData<'_>; 2] {
        [&self.patch, &self.parent].map(|(record, heights)| PatchData { record, heights })
    }
}

/// Positions in the square of four patches of 8 or 16 lattice cells.
fn positions() -> impl Strategy<Value = Vec<IVec2>> {
    prop::collection::vec((0..=32, 0..=32).prop_map(|(x, z)| ivec2(x, z)), 0..12)
}

/// Meshes in which these positions are vertices, where the lattice has them; the patch's nests in
/// the parent's if told so.
fn meshes(nested: impl Strategy<Value = bool>) -> impl Strategy<Value = Meshes> {
    let key = (0u8..2, 0u32..2, 0u32..2).prop_map(|(level, x, z)| PatchKey::new(level, x, z));
    let parts = (key, positions(), positions(), any::<u32>(), nested);
    parts.prop_map(|(key, coarse, fine, seed, nested)| {
        let layout = Layout::new([32, 32], 8, 8).expect("a sound layout");
        let cells = layout.lattice_cells(key.level) as i32;
        let step = (layout.stride(key.level + 1) / layout.stride(key.level)) as i32;
        let place = ivec2(key.x as i32, key.z as i32) * cells;
        let coarse_roots = Triangle::roots(IVec2::ZERO, 2 * cells, key.parent().splits_nw_se());
        let fine_roots = Triangle::roots(place, cells, key.splits_nw_se());
        let coarse = closed(&coarse_roots, step, coarse);
        let wanted = fine
            .into_iter()
            .chain(coarse.iter().copied().filter(|_| nested));
        let fine = closed(&fine_roots, 1, wanted);
        Meshes {
            layout,
            key,
            patch: (
                record(&fine_roots, 1, &fine),
                grid(&layout, key.level, seed),
            ),
            parent: (
                record(&coarse_roots, step, &coarse),
                grid(&layout, key.level + 1, seed),
            ),
        }
    })
}

/// The fewest vertices with these among them that make a mesh without T-junctions.
fn closed(
    roots: &[Triangle; 2],
    step: i32,
    wanted: impl IntoIterator<Item = IVec2>,
) -> HashSet<IVec2> {
    fn drag(t: Triangle, step: i32, vertices: &mut HashSet<IVec2>) -> bool {
        if !on_lattice(t, step) {
            return false;
        }
        let [first, second] = t.halves().map(|half| drag(half, step, vertices));
        let needed = first || second || vertices.contains(&t.middle());
        if needed {
            vertices.insert(t.middle());
        }
        needed
    }
    let mut vertices: HashSet<IVec2> = wanted.into_iter().collect();
    loop {
        let before = vertices.len();
        for &root in roots {
            drag(root, step, &mut vertices);
        }
        if vertices.len() == before {
            return vertices;
        }
    }
}

fn on_lattice(t: Triangle, step: i32) -> bool {
    (t.a + t.b) % (2 * step) == IVec2::ZERO
}

fn record(roots: &[Triangle; 2], step: i32, vertices: &HashSet<IVec2>) -> PatchRecord {
    fn write(t: Triangle, step: i32, vertices: &HashSet<IVec2>, bits: &mut Bits) {
        let split = on_lattice(t, step) && vertices.contains(&t.middle());
        bits.push(split);
        if split {
            t.halves()
                .into_iter()
                .for_each(|half| write(half, step, vertices, bits));
        }
    }
    let trees = roots.map(|root| {
        let mut bits = Bits::default();
        write(root, step, vertices, &mut bits);
        bits
    });
    PatchRecord {
        min: 0,
        max: 0,
        error_m: 0.0,
        exhausted: false,
        absent: false,
        trees,
    }
}

/// Heights up to the largest that a compiler lets through.
fn grid(layout: &Layout, level: u8, seed: u32) -> HeightGrid {
    let stride = layout.stride(level);
    let side = 32 / stride + 5;
    let rect = LatticeRect {
        stride,
        x0: -2,
        z0: -2,
        width: side,
        height: side,
    };
    let largest = i32::MAX / 2 / layout.height_units();
    HeightGrid::from_fn(rect, |x, z| {
        let [x, z] = [x, z].map(|v| (v * stride as i32) as u32);
        let place = x.wrapping_mul(0x9e37_79b1) ^ z.wrapping_mul(0x85eb_ca6b) ^ seed;
        let mixed = place.wrapping_mul(0xc2b2_ae35);
        (mixed ^ mixed >> 15) as i32 % largest
    })
}

/// Trees as a damaged file may hold them: whole, but of no mesh.
fn damaged() -> impl Strategy<Value = Bits> {
    prop::collection::vec(any::<bool>(), 0..120).prop_map(|wanted| {
        let mut wanted = wanted.into_iter();
        let mut bits = Bits::default();
        fn write(depth: u32, wanted: &mut impl Iterator<Item = bool>, bits: &mut Bits) {
            let split = depth < 6 && wanted.next().unwrap_or(false);
            bits.push(split);
            (0..2 * u32::from(split)).for_each(|_| write(depth + 1, wanted, bits));
        }
        write(0, &mut wanted, &mut bits);
        bits
    })
}

fn place_of(v: (u16, u16)) -> IVec2 {
    ivec2(v.0 as i32, v.1 as i32)
}

proptest! {
    #[test]
    fn a_mesh_is_what_the_plain_way_finds(meshes in meshes(Just(true)), with_parent in any::<bool>()) {
        let mesh = meshes.build(with_parent).expect("a mesh that nests");
        prop_assert_eq!(Some(Ground::of(&mesh)), meshes.twin(with_parent));
    }

    #[test]
    fn triangles_cover_the_patch_once_and_no_vertex_lies_within_an_edge(meshes in meshes(Just(true))) {
        let ground = Ground::of(&meshes.build(true).expect("a mesh that nests"));
        let cells = meshes.layout.lattice_cells(meshes.key.level) as i32;
        let mut area = 0;
        for &corners in &ground.triangles {
            let [a, b, c] = corners.map(place_of);
            let doubled = -(b - a).perp_dot(c - a);
            prop_assert!(doubled > 0, "counter-clockwise from above");
            area += doubled;
            for (p, q) in [(a, b), (b, c), (c, a)] {
                let steps = (q - p).abs().max_element();
                let between = (1..steps).map(|i| p + (q - p) / steps * i);
                let hit = between.into_iter().find(|p| ground.vertices.contains_key(&(p.x as u16, p.y as u16)));
                prop_assert_eq!(hit, None);
            }
        }
        prop_assert_eq!(area, 2 * cells * cells);
    }

    #[test]
    fn one_builder_gives_what_fresh_ones_give(all in prop::collection::vec(meshes(any::<bool>()), 1..6)) {
        let mut builder = MeshBuilder::default();
        for meshes in all {
            let [patch, parent] = meshes.data();
            let mesh = builder.build(&meshes.layout, meshes.key, patch, Some(parent));
            prop_assert_eq!(mesh.ok(), meshes.build(true).ok());
        }
    }

    #[test]
    fn skirts_hang_from_every_vertex_of_the_border(meshes in meshes(Just(true))) {
        let mesh = meshes.build(true).expect("a mesh that nests");
        let cells = meshes.layout.lattice_cells(meshes.key.level) as u16;
        let sides: [fn(u16, u16, u16) -> bool; 4] =
            [|_, z, _| z == 0, |x, _, n| x == n, |_, z, n| z == n, |x, _, _| x == 0];
        for (side, is_on) in (1u16..).zip(sides) {
            let lower = |v: &&PatchVertex| v.x >> SIDE_SHIFT == side;
            let upper = |v: &&PatchVertex| v.x >> SIDE_SHIFT == 0 && is_on(v.x, v.z, cells);
            let bare = |v: &PatchVertex| (v.x & ((1 << SIDE_SHIFT) - 1), v.z, v.own, v.parent);
            let mut found: Vec<_> = mesh.vertices.iter().filter(lower).map(bare).collect();
            let mut wanted: Vec<_> = mesh.vertices.iter().filter(upper).map(bare).collect();
            found.sort();
            wanted.sort();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn damaged_trees_are_a_mesh_or_an_error(mut meshes in meshes(any::<bool>()), own in [damaged(), damaged()], parent in [damaged(), damaged()], spoil_own in any::<bool>()) {
        meshes.parent.0.trees = parent;
        if spoil_own {
            meshes.patch.0.trees = own;
        }
        let triangles = meshes.patch.0.triangles();
        for with_parent in [false, true] {
            if let Ok(mesh) = meshes.build(with_parent) {
                prop_assert_eq!(mesh.ground_indices, 3 * triangles);
                prop_assert!(mesh.indices.iter().all(|&i| (i as usize) < mesh.vertices.len()));
            }
        }
    }

    /// Bits that never passed a check.
    #[test]
    fn bits_that_are_no_tree_lead_nowhere(bits in [prop::collection::vec(prop::bool::weighted(0.5), 0..200), prop::collection::vec(prop::bool::weighted(0.9), 0..200)]) {
        let trees = bits.map(|bits| {
            let mut packed = Bits::default();
            bits.into_iter().for_each(|bit| packed.push(bit));
            packed
        });
        let mut topology = Topology::default();
        if topology.read(8, true, &trees).is_ok() {
            let vertices = topology.positions().len() as u16;
            prop_assert!(topology.indices().iter().all(|&i| i < vertices));
        }
    }
}

#[test]
fn what_does_not_nest_is_an_error_and_nothing_else_is() {
    let mut runner = TestRunner::deterministic();
    let mut errors = 0;
    for _ in 0..300 {
        let meshes = meshes(any::<bool>()).new_tree(&mut runner);
        let meshes = meshes.expect("nothing is rejected").current();
        let ground = meshes.build(true).ok().map(|mesh| Ground::of(&mesh));
        errors += u32::from(ground.is_none());
        assert_eq!(ground, meshes.twin(true));
    }
    assert!((50..250).contains(&errors), "{errors} of 300 did not nest");
}

#[test]
fn positions_are_exact_on_every_lattice() {
    for cells in (0..=11).map(|k| 1u32 << k) {
        let pitch = cells + 1;
        let ends = (0..pitch).flat_map(|z| [[0, z], [cells, z]]);
        let places: Vec<u32> = ends.clone().map(|[x, z]| z * pitch + x).collect();
        assert!(topology::positions(pitch, &places).eq(ends));
    }
}
