//! Bit-streams to meshes, on one thread, beside the same work done plainly: a recursion that reads
//! bit by bit, asks a grid for every corner, and evaluates the parent's plane at every vertex.

use glam::{IVec2, ivec2};
use highfell::compile::{CompileOptions, compile};
use highfell::source::Source;
use highfell::terrain::height_map::HeightMap;
use highfell::terrain::mesh::topology::Topology;
use highfell::terrain::mesh::{MeshBuilder, PatchData};
use highfell::terrain::triangle::{Plane, Triangle};
use highfell::world::{BitReader, Layout, PatchKey, Section, SectionKey, SourceInfo, World};
use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

const RUNS: usize = 25;
const ERROR_M: f64 = 5.0;

/// Prints a table, in millions of triangles a second: shared lattice positions and indices, then
/// whole vertex buffers with morph targets (ours with skirts).
pub fn table(map: &HeightMap) {
    println!(
        "| patches | triangles | indexed, M/s | plainly | times | with morph targets, M/s | plainly | times |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let small = Patches::compile(map, 32);
    row("32 cells, level 0", &small, &small.finest());
    let large = Patches::compile(map, 512);
    row("512 cells, one", &large, &[PatchKey::new(0, 1, 1)]);
}

fn row(name: &str, patches: &Patches, keys: &[PatchKey]) {
    let triangles = keys.iter().map(|&key| patches.data(key).record.triangles());
    let triangles: u32 = triangles.sum();
    let mut topology = Topology::default();
    let mut positions: Vec<[u16; 2]> = Vec::new();
    let mut builder = MeshBuilder::default();
    let layout = patches.layout();
    let cells = layout.lattice_cells(0);
    let seconds = fastest(
        keys,
        [
            &mut |key| {
                let trees = &patches.data(key).record.trees;
                let sound = topology.read(cells, key.splits_nw_se(), trees);
                sound.expect("a sound world");
                positions.clear();
                positions.extend(topology.positions().map(|p| p.map(|v| v as u16)));
                black_box((&positions, topology.indices()));
            },
            &mut |key| drop(black_box(plain(patches, key, false))),
            &mut |key| {
                let [patch, parent] = [key, key.parent()].map(|key| patches.data(key));
                let mesh = builder.build(layout, key, patch, Some(parent));
                black_box(mesh.expect("a sound world"));
            },
            &mut |key| drop(black_box(plain(patches, key, true))),
        ],
    );
    let [a, plain_a, b, plain_b] = seconds.map(|seconds| triangles as f64 / 1e6 / seconds);
    println!(
        "| {name} | {triangles} | {a:.1} | {plain_a:.1} | {:.2} | {b:.1} | {plain_b:.1} | {:.2} |",
        a / plain_a,
        b / plain_b
    );
}

/// The shortest time of each kind of work on all patches; the kinds take turns, so that whatever
/// else the machine does meets them alike.
fn fastest<const N: usize>(
    keys: &[PatchKey],
    mut kinds: [&mut dyn FnMut(PatchKey); N],
) -> [f64; N] {
    let mut fastest = [f64::INFINITY; N];
    for _ in 0..RUNS {
        for (kind, fastest) in kinds.iter_mut().zip(&mut fastest) {
            let start = Instant::now();
            keys.iter().for_each(|&key| kind(key));
            *fastest = fastest.min(start.elapsed().as_secs_f64());
        }
    }
    fastest
}

/// A compiled world's sections, all in memory.
struct Patches {
    world: World,
    sections: HashMap<SectionKey, Section>,
}

impl Patches {
    fn compile(map: &HeightMap, patch_cells: u32) -> Self {
        let (low, high) = map.range();
        let source = Source {
            ground: Box::new(HeightMap {
                width: map.width,
                height: map.height,
                heights: map.heights.clone(),
            }),
            step_m: 1.0,
            spacing_m: [30.0; 2],
            info: SourceInfo::made_up("fractal", [low as f64, high as f64]),
        };
        let options = CompileOptions {
            error: Some(ERROR_M),
            patch_cells,
            ..Default::default()
        };
        let (writer, _) = compile(&source, &options, |_| Ok(())).expect("the map can be compiled");
        let mut bytes = Vec::new();
        writer.write(&mut bytes).expect("memory takes it");
        let world = World::open(Box::new(bytes), "fractal").expect("a sound world");
        let mut patches = Patches {
            world,
            sections: HashMap::new(),
        };
        patches.read();
        patches
    }

    fn read(&mut self) {
        let layout = self.world.meta.layout;
        let repository = self.world.read_repository().expect("a sound world");
        self.sections
            .extend(repository.into_iter().map(|section| (section.key, section)));
        for key in (0..layout.stream_levels)
            .rev()
            .flat_map(|level| layout.sections(level))
        {
            let coarser = layout
                .coarser_section(key)
                .map(|key| &self.sections[&key].heights);
            let section = self
                .world
                .read_section(key, coarser)
                .expect("a sound world");
            self.sections.insert(key, section);
        }
    }

    fn layout(&self) -> &Layout {
        &self.world.meta.layout
    }

    fn finest(&self) -> Vec<PatchKey> {
        self.layout().keys(0).collect()
    }

    fn data(&self, key: PatchKey) -> PatchData<'_> {
        let section = &self.sections[&self.layout().section_of(key)];
        PatchData {
            record: section.patch(key),
            heights: &section.heights,
        }
    }
}

/// What the plain way makes: positions or vertices, and indices.
type PlainMesh = (Vec<[i32; 4]>, Vec<u32>);

struct Plain<'a> {
    patch: PatchData<'a>,
    corner: IVec2,
    cells: i32,
    units: i64,
    with_heights: bool,
    seen: Vec<u32>,
    mesh: PlainMesh,
}

fn plain(patches: &Patches, key: PatchKey, with_parent: bool) -> PlainMesh {
    let cells = patches.layout().lattice_cells(key.level) as i32;
    let patch = patches.data(key);
    let mut plain = Plain {
        patch,
        corner: ivec2(key.x as i32, key.z as i32) * cells,
        cells,
        units: patches.layout().height_units() as i64,
        with_heights: with_parent,
        seen: vec![u32::MAX; (cells as usize + 1).pow(2)],
        mesh: Default::default(),
    };
    let roots = Triangle::roots(IVec2::ZERO, cells, key.splits_nw_se());
    if !with_parent {
        for (root, tree) in roots.into_iter().zip(&patch.record.trees) {
            plain.walk(root, &mut tree.reader(), None, None);
        }
        return plain.mesh;
    }
    let parent = patches.data(key.parent()).record;
    let corner = ivec2(key.x as i32 % 2, key.z as i32 % 2) * -cells;
    let parents = Triangle::roots(corner, 2 * cells, key.parent().splits_nw_se());
    for (triangle, tree) in parents.into_iter().zip(&parent.trees) {
        plain.descend(triangle, 0, Some(&mut tree.reader()), None, &roots);
    }
    plain.mesh
}

impl Plain<'_> {
    /// Goes down the parent's tree to the patch's own roots.
    fn descend(
        &mut self,
        t: Triangle,
        depth: u32,
        mut tree: Option<&mut BitReader>,
        mut under: Option<Plane>,
        roots: &[Triangle; 2],
    ) {
        if depth == 2 {
            match (roots.iter().position(|&root| root == t), tree) {
                (Some(half), tree) => {
                    self.walk(t, &mut self.patch.record.trees[half].reader(), tree, under)
                }
                (None, Some(tree)) => tree.skip_tree(),
                (None, None) => {}
            }
            return;
        }
        if tree.as_mut().is_some_and(|tree| !tree.next()) {
            (tree, under) = (None, Some(self.plane(t)));
        }
        for half in t.halves() {
            self.descend(half, depth + 1, tree.as_deref_mut(), under, roots);
        }
    }

    fn walk(
        &mut self,
        t: Triangle,
        tree: &mut BitReader,
        mut parent: Option<&mut BitReader>,
        mut under: Option<Plane>,
    ) {
        if parent.as_mut().is_some_and(|parent| !parent.next()) {
            (parent, under) = (None, Some(self.plane(t)));
        }
        if tree.next() {
            for half in t.halves() {
                self.walk(half, tree, parent.as_deref_mut(), under);
            }
        } else {
            let corners = [t.a, t.b, t.c].map(|p| self.vertex(p, under));
            self.mesh.1.extend(corners);
        }
    }

    fn vertex(&mut self, p: IVec2, under: Option<Plane>) -> u32 {
        let at = (p.y * (self.cells + 1) + p.x) as usize;
        if self.seen[at] == u32::MAX {
            self.seen[at] = self.mesh.0.len() as u32;
            let [own, below] = if self.with_heights {
                self.heights(p, under)
            } else {
                [0; 2]
            };
            self.mesh.0.push([p.x, p.y, own, below]);
        }
        self.seen[at]
    }

    fn heights(&self, p: IVec2, under: Option<Plane>) -> [i32; 2] {
        let own = self.height(p) as i64 * self.units;
        let below = under.map_or(own, |plane| plane.at(p) * self.units / plane.denominator);
        [own, below].map(|height| height as i32)
    }

    fn plane(&self, t: Triangle) -> Plane {
        Plane::through(t, self.height(t.a), self.height(t.b), self.height(t.c))
    }

    fn height(&self, p: IVec2) -> i32 {
        let p = p + self.corner;
        self.patch.heights.at(p.x, p.y)
    }
}
