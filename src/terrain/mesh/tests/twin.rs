//! The ground of a patch's mesh, found plainly: a recursion that reads bit by bit and asks the
//! parent's plane at every vertex.

use super::*;
use crate::terrain::triangle::{Plane, Triangle};
use crate::world::BitReader;
use std::collections::BTreeMap;

/// Vertices by position, and triangles, each from its first position on.
#[derive(Debug, Default, PartialEq)]
pub struct Ground {
    pub vertices: BTreeMap<(u16, u16), PatchVertex>,
    pub triangles: Vec<[(u16, u16); 3]>,
}

impl Ground {
    pub fn of(mesh: &PatchMesh) -> Self {
        let ground = &mesh.indices[..mesh.ground_indices as usize];
        let on_ground = |v: &&PatchVertex| v.x >> SIDE_SHIFT == 0;
        let vertices = mesh.vertices.iter().filter(on_ground);
        let place = |i: u16| (mesh.vertices[i as usize].x, mesh.vertices[i as usize].z);
        let mut found = Ground {
            vertices: vertices.map(|v| ((v.x, v.z), *v)).collect(),
            ..Default::default()
        };
        for t in ground.chunks_exact(3) {
            found.add([t[0], t[1], t[2]].map(place));
        }
        found.triangles.sort();
        found
    }

    fn add(&mut self, mut corners: [(u16, u16); 3]) {
        let first = (0..3).min_by_key(|&i| corners[i]).unwrap_or(0);
        corners.rotate_left(first);
        self.triangles.push(corners);
    }
}

struct Twin<'a> {
    patch: PatchData<'a>,
    parent: Option<PatchData<'a>>,
    units: i64,
    /// Lattice position of the patch's corner.
    corner: IVec2,
    roots: [Triangle; 2],
    nests: bool,
    ground: Ground,
}

/// The ground of a patch, if it nests in its parent's.
pub fn twin(
    layout: &Layout,
    key: PatchKey,
    patch: PatchData,
    parent: Option<PatchData>,
) -> Option<Ground> {
    let cells = layout.lattice_cells(key.level) as i32;
    let mut twin = Twin {
        patch,
        parent,
        units: layout.height_units() as i64,
        corner: ivec2(key.x as i32, key.z as i32) * cells,
        roots: Triangle::roots(IVec2::ZERO, cells, key.splits_nw_se()),
        nests: true,
        ground: Ground::default(),
    };
    match parent {
        None => (0..2).for_each(|half| twin.walk_half(half, None, None)),
        Some(parent) => {
            let corner = ivec2(key.x as i32 % 2, key.z as i32 % 2) * -cells;
            let roots = Triangle::roots(corner, 2 * cells, key.parent().splits_nw_se());
            for (root, tree) in roots.into_iter().zip(&parent.record.trees) {
                twin.descend(root, 0, Some(&mut tree.reader()), None);
            }
        }
    }
    twin.ground.triangles.sort();
    twin.nests.then_some(twin.ground)
}

impl Twin<'_> {
    fn descend(
        &mut self,
        t: Triangle,
        depth: u32,
        mut tree: Option<&mut BitReader>,
        mut under: Option<Plane>,
    ) {
        if depth == 2 {
            match (self.roots.iter().position(|&root| root == t), tree) {
                (Some(half), tree) => self.walk_half(half, tree, under),
                (None, Some(tree)) => tree.skip_tree(),
                (None, None) => {}
            }
            return;
        }
        if tree.as_mut().is_some_and(|tree| !tree.next()) {
            (tree, under) = (None, Some(self.plane(t)));
        }
        for half in t.halves() {
            self.descend(half, depth + 1, tree.as_deref_mut(), under);
        }
    }

    fn walk_half(&mut self, half: usize, parent: Option<&mut BitReader>, under: Option<Plane>) {
        let tree = &mut self.patch.record.trees[half].reader();
        self.walk(self.roots[half], tree, parent, under);
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
            return;
        }
        if let Some(parent) = parent {
            self.nests = false;
            (0..2).for_each(|_| parent.skip_tree());
        }
        let corners = [t.a, t.b, t.c].map(|p| self.vertex(p, under));
        self.ground.add(corners);
    }

    fn vertex(&mut self, p: IVec2, under: Option<Plane>) -> (u16, u16) {
        let own = self.height(p) as i64 * self.units;
        let parent = under.map_or(own, |plane| {
            let scaled = plane.at(p) * self.units;
            assert_eq!(scaled % plane.denominator, 0, "exact in height units");
            scaled / plane.denominator
        });
        let vertex = PatchVertex {
            x: p.x as u16,
            z: p.y as u16,
            own: own as i32,
            parent: parent as i32,
        };
        let place = (vertex.x, vertex.z);
        let first = *self.ground.vertices.entry(place).or_insert(vertex);
        assert!(
            first == vertex || !self.nests,
            "a parent's surface is whole"
        );
        place
    }

    /// The parent's leaf as a plane over this patch's lattice.
    fn plane(&self, t: Triangle) -> Plane {
        let parent = self.parent.expect("a plane is a parent's").heights;
        let stride = (parent.rect.stride / self.patch.heights.rect.stride) as i32;
        let height = |p: IVec2| {
            let p = (self.corner + p) / stride;
            parent.at(p.x, p.y)
        };
        Plane::through(t, height(t.a), height(t.b), height(t.c))
    }

    fn height(&self, p: IVec2) -> i32 {
        let p = self.corner + p;
        self.patch.heights.at(p.x, p.y)
    }
}
