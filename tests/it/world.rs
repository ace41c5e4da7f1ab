//! Laws of whole worlds, from the compiler through the file's format to the meshes.
//!
//! Rough made-up ground of awkward size, and a real file: borders are shared, levels nest, and a
//! patch that is fully morphed is its parent.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use glam::{IVec2, ivec2};
use highfell::compile::CompileOptions;
use highfell::import::{ImportOptions, load};
use highfell::terrain::mesh::{self, PatchData, PatchMesh, PatchVertex};
use highfell::terrain::triangle::Triangle;
use highfell::world::{BitReader, PatchKey, Section, SectionKey, World};

use crate::common::{data_file, in_memory, rough_source};

#[test]
fn the_laws_hold_on_rough_ground() {
    let options = CompileOptions {
        patch_cells: 8,
        sea_level_m: Some(20.0),
        ..Default::default()
    };
    let world = in_memory(&rough_source(203, 150), &options);
    check_laws(&Whole::read(world));
}

#[test]
fn the_laws_hold_on_real_ground() {
    let Some(path) = data_file("reduced_Gironde.tif") else {
        return;
    };
    let source = load(&path, &ImportOptions::default()).expect("a sound file");
    let options = CompileOptions {
        error: Some(4.0),
        sea_level_m: Some(0.0),
        ..Default::default()
    };
    check_laws(&Whole::read(in_memory(&source, &options)));
}

fn check_laws(world: &Whole) {
    assert!(world.layout().levels >= 5);
    for level in 0..world.layout().levels {
        neighbours_share_their_border(world, level);
        counts_are_those_of_the_meshes(world, level);
    }
    for level in 0..world.layout().coarsest() {
        a_level_contains_the_next(world, level);
        fully_morphed_patches_are_their_parents(world, level);
    }
}

/// Same places, same heights, same heights of the parents' surfaces.
fn neighbours_share_their_border(world: &Whole, level: u8) {
    let n = world.layout().lattice_cells(level) as i32;
    let border = |key, on: fn(IVec2, i32) -> bool, along: fn(IVec2) -> i32| {
        let vertices = ground_vertices(world.mesh(key));
        let on_border = vertices.filter(|v| on(place(v), n));
        let mut found: Vec<_> = on_border
            .map(|v| (along(place(v)), v.own, v.parent))
            .collect();
        found.sort_unstable();
        found
    };
    for key in world.keys(level) {
        let east = PatchKey::new(level, key.x + 1, key.z);
        if world.layout().contains(east) {
            let here = border(key, |p, n| p.x == n, |p| p.y);
            assert_eq!(here, border(east, |p, _| p.x == 0, |p| p.y), "{key}");
        }
        let south = PatchKey::new(level, key.x, key.z + 1);
        if world.layout().contains(south) {
            let here = border(key, |p, n| p.y == n, |p| p.x);
            assert_eq!(here, border(south, |p, _| p.y == 0, |p| p.x), "{key}");
        }
    }
}

/// What the facts say of a level is what its meshes have.
fn counts_are_those_of_the_meshes(world: &Whole, level: u8) {
    let facts = &world.world.meta.levels[level as usize];
    let keys: Vec<PatchKey> = world.keys(level).collect();
    let triangles = keys
        .iter()
        .map(|&key| world.mesh(key).ground_indices as u64 / 3);
    assert_eq!(triangles.sum::<u64>(), facts.triangles);
    let n = world.layout().lattice_cells(level) as i32;
    let places = keys.iter().flat_map(|&key| {
        let corner = ivec2(key.x as i32, key.z as i32) * n;
        ground_vertices(world.mesh(key)).map(move |v| corner + place(v))
    });
    assert_eq!(places.collect::<HashSet<_>>().len() as u64, facts.vertices);
}

/// What is split in the coarser level is split in this one, as far as this one's patches go.
fn a_level_contains_the_next(world: &Whole, level: u8) {
    let mut compared = 0;
    for parent in world.keys(level + 1) {
        let coarse = world.split_triangles(parent);
        for key in world.layout().present_children(parent) {
            let size = world.layout().patch_size(level) as i32;
            let square = ivec2(key.x as i32, key.z as i32);
            let fine: HashSet<[IVec2; 3]> = world
                .split_triangles(key)
                .into_iter()
                .map(corners)
                .collect();
            let inside = coarse.iter().filter(|t| {
                let legs_fit = (t.a - t.c).length_squared() <= size * size;
                legs_fit && t.square(size) == square
            });
            for triangle in inside {
                assert!(
                    fine.contains(&corners(*triangle)),
                    "{key}: {triangle:?} is not split"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 0, "level {} is not split", level + 1);
}

/// Over every lattice position, inside triangles too.
fn fully_morphed_patches_are_their_parents(world: &Whole, level: u8) {
    let layout = world.layout();
    let n = layout.lattice_cells(level) as i32;
    let scale = (layout.stride(level + 1) / layout.stride(level)) as i32;
    let parent_cells = layout.lattice_cells(level + 1) as i32 * scale;
    for parent in world.keys(level + 1) {
        let below = Surface::of(world.mesh(parent), scale, parent_cells, |v| v.own);
        for key in layout.present_children(parent) {
            let morphed = Surface::of(world.mesh(key), 1, n, |v| v.parent);
            let offset = ivec2(key.x as i32 % 2, key.z as i32 % 2) * n;
            for p in (0..=n).flat_map(|z| (0..=n).map(move |x| ivec2(x, z))) {
                assert_eq!(morphed.at(p), below.at(p + offset), "{key} at {p}");
            }
        }
    }
}

/// A world with all its sections and meshes.
struct Whole {
    world: Arc<World>,
    sections: HashMap<SectionKey, Section>,
    meshes: HashMap<PatchKey, PatchMesh>,
}

impl Whole {
    fn read(world: Arc<World>) -> Self {
        let layout = world.meta.layout;
        let mut sections: HashMap<SectionKey, Section> = HashMap::new();
        for level in (0..layout.levels).rev() {
            for key in layout.sections(level) {
                let coarser = layout
                    .coarser_section(key)
                    .map(|key| &sections[&key].heights);
                let section = world.read_section(key, coarser).expect("a sound world");
                sections.insert(key, section);
            }
        }
        let mut whole = Whole {
            world,
            sections,
            meshes: HashMap::new(),
        };
        let keys = (0..layout.levels).flat_map(|level| whole.keys(level));
        whole.meshes = keys.map(|key| (key, whole.build(key))).collect();
        whole
    }

    fn layout(&self) -> &highfell::world::Layout {
        &self.world.meta.layout
    }

    fn keys(&self, level: u8) -> impl Iterator<Item = PatchKey> + use<> {
        let [nx, nz] = self.layout().patches(level);
        (0..nz).flat_map(move |z| (0..nx).map(move |x| PatchKey::new(level, x, z)))
    }

    fn mesh(&self, key: PatchKey) -> &PatchMesh {
        &self.meshes[&key]
    }

    fn data(&self, key: PatchKey) -> PatchData<'_> {
        let section = &self.sections[&self.layout().section_of(key)];
        PatchData {
            record: section.patch(key),
            heights: &section.heights,
        }
    }

    fn build(&self, key: PatchKey) -> PatchMesh {
        let has_parent = key.level < self.layout().coarsest();
        let parent = has_parent.then(|| self.data(key.parent()));
        let mesh = mesh::build(self.layout(), key, self.data(key), parent);
        mesh.unwrap_or_else(|error| panic!("{key}: {error}"))
    }

    /// The triangles of a patch, in samples, that its trees split.
    fn split_triangles(&self, key: PatchKey) -> Vec<Triangle> {
        let size = self.layout().patch_size(key.level) as i32;
        let corner = ivec2(key.x as i32, key.z as i32) * size;
        let roots = Triangle::roots(corner, size, key.splits_nw_se());
        let mut found = Vec::new();
        for (root, tree) in roots.into_iter().zip(&self.data(key).record.trees) {
            collect_split(root, &mut tree.reader(), &mut found);
        }
        found
    }
}

/// The height of a mesh at every position of a lattice.
struct Surface {
    cells: i32,
    heights: Vec<Option<i64>>,
}

impl Surface {
    /// `scale` positions lie between two of the mesh's own; `pick` takes one of its heights.
    fn of(mesh: &PatchMesh, scale: i32, cells: i32, pick: fn(&PatchVertex) -> i32) -> Self {
        let mut surface = Surface {
            cells,
            heights: vec![None; ((cells + 1) * (cells + 1)) as usize],
        };
        for triangle in mesh.indices[..mesh.ground_indices as usize].chunks_exact(3) {
            let vertices = [0, 1, 2].map(|i| &mesh.vertices[triangle[i] as usize]);
            surface.fill(vertices.map(|v| place(v) * scale), vertices.map(pick));
        }
        surface
    }

    fn at(&self, p: IVec2) -> i64 {
        self.heights[self.index(p)].expect("a mesh covers its patch")
    }

    /// Every position inside a triangle, by its barycentric weights.
    fn fill(&mut self, [a, b, c]: [IVec2; 3], heights: [i32; 3]) {
        let area = (b - a).perp_dot(c - a) as i64;
        let (low, high) = (a.min(b).min(c), a.max(b).max(c));
        for p in (low.y..=high.y).flat_map(|z| (low.x..=high.x).map(move |x| ivec2(x, z))) {
            let weights =
                [(b, c), (c, a), (a, b)].map(|(from, to)| (from - p).perp_dot(to - p) as i64);
            if weights
                .iter()
                .all(|&w| w == 0 || w.signum() == area.signum())
            {
                let sum: i64 = (0..3).map(|i| weights[i] * heights[i] as i64).sum();
                assert_eq!(sum % area, 0, "heights are exact in their units");
                let index = self.index(p);
                let known = self.heights[index].replace(sum / area);
                assert!(
                    known.is_none_or(|known| known == sum / area),
                    "a crack at {p}"
                );
            }
        }
    }

    fn index(&self, p: IVec2) -> usize {
        (p.y * (self.cells + 1) + p.x) as usize
    }
}

fn collect_split(triangle: Triangle, tree: &mut BitReader, found: &mut Vec<Triangle>) {
    if tree.next() {
        found.push(triangle);
        for half in triangle.halves() {
            collect_split(half, tree, found);
        }
    }
}

/// The vertices that are no skirt's.
fn ground_vertices(mesh: &PatchMesh) -> impl Iterator<Item = &PatchVertex> {
    mesh.vertices
        .iter()
        .filter(|v| v.x >> mesh::SIDE_SHIFT == 0)
}

fn place(vertex: &PatchVertex) -> IVec2 {
    ivec2(vertex.x as i32, vertex.z as i32)
}

fn corners(triangle: Triangle) -> [IVec2; 3] {
    [triangle.a, triangle.b, triangle.c]
}
