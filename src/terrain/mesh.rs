//! A patch's static vertex buffer, from its bit-streams, its parent's, and the heights.
//!
//! The patch's tree and its parent's are walked together. Each vertex stores its own height and
//! the height of the parent's surface under it: where the parent's leaf is larger than the
//! patch's root triangles, the parent's plane. Meshes nest, so with all vertices at their second
//! height the mesh *is* the parent's surface; heights are integers in units of the height step
//! divided by [`Layout::height_units`], in which every such height is exact, so patches that
//! share a vertex agree on its bits.
//!
//! Skirts hang from the four borders: two triangles an edge, whose lower vertices repeat the
//! upper ones with the side they belong to; how deep they hang is decided when they are drawn.

use super::triangle::{Plane, Triangle};
use crate::world::{BitReader, FormatError, HeightGrid, Layout, PatchKey, PatchRecord};
use bytemuck::{Pod, Zeroable};
use glam::{IVec2, ivec2};

/// Lattice x of a vertex takes the lower bits, its side the upper: 0 for the ground, 1 to 4 for
/// the lower edge of the north, east, south and west skirt.
pub const SIDE_SHIFT: u32 = 12;
const UNSEEN: u16 = u16::MAX;

/// One vertex: 12 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct PatchVertex {
    /// Lattice position in the patch; [`SIDE_SHIFT`] says what the upper bits hold.
    pub x: u16,
    pub z: u16,
    /// Own height, and the parent's surface here, in height units.
    pub own: i32,
    pub parent: i32,
}

/// Vertices and triangles of one patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchMesh {
    pub vertices: Vec<PatchVertex>,
    /// Three a triangle, counter-clockwise from above; the ground's first, then the skirts'.
    pub indices: Vec<u16>,
    /// How many of the indices are the ground's.
    pub ground_indices: u32,
}

/// A patch and the heights of its section.
#[derive(Clone, Copy)]
pub struct PatchData<'a> {
    pub record: &'a PatchRecord,
    pub heights: &'a HeightGrid,
}

/// Builds a patch's mesh. Without a parent (the coarsest level) each vertex morphs to itself.
pub fn build(
    layout: &Layout,
    key: PatchKey,
    patch: PatchData,
    parent: Option<PatchData>,
) -> Result<PatchMesh, FormatError> {
    let mut builder = Builder::new(layout, key, patch, parent);
    match parent {
        None => builder.walk_alone()?,
        Some(parent) => builder.walk_with_parent(key, parent.record)?,
    }
    builder.finish()
}

/// What lies under a triangle in the parent's mesh.
enum Under<'a, 'b> {
    /// The same triangle; its stream goes on here.
    Tree(&'a mut BitReader<'b>),
    /// A leaf at least as large.
    Leaf(Plane),
    /// No parent at all.
    Own,
}

struct Builder<'a> {
    patch: PatchData<'a>,
    /// The heights of the parent's section and how many of this lattice's strides are one of its.
    parent_heights: &'a HeightGrid,
    parent_stride: i32,
    cells: i32,
    units: i64,
    /// Lattice position of the patch's corner.
    corner: IVec2,
    roots: [Triangle; 2],
    /// Index of the vertex at each lattice position, row by row.
    seen: Vec<u16>,
    mesh: PatchMesh,
}

impl<'a> Builder<'a> {
    fn new(
        layout: &Layout,
        key: PatchKey,
        patch: PatchData<'a>,
        parent: Option<PatchData<'a>>,
    ) -> Self {
        let cells = layout.lattice_cells(key.level) as i32;
        let parent_heights = parent.unwrap_or(patch).heights;
        Builder {
            patch,
            parent_heights,
            parent_stride: (parent_heights.rect.stride / patch.heights.rect.stride) as i32,
            cells,
            units: layout.height_units() as i64,
            corner: ivec2(key.x as i32, key.z as i32) * cells,
            roots: Triangle::roots(IVec2::ZERO, cells, key.splits_nw_se()),
            seen: vec![UNSEEN; ((cells + 1) * (cells + 1)) as usize],
            mesh: PatchMesh::default(),
        }
    }

    fn walk_alone(&mut self) -> Result<(), FormatError> {
        for root in self.roots {
            self.add_corners(root, |_, own| own);
            self.walk_root(root, &mut Under::Own)?;
        }
        Ok(())
    }

    fn walk_with_parent(&mut self, key: PatchKey, parent: &PatchRecord) -> Result<(), FormatError> {
        // The parent's square in this patch's lattice cells.
        let corner = ivec2(key.x as i32 % 2, key.z as i32 % 2) * -self.cells;
        let roots = Triangle::roots(corner, 2 * self.cells, key.parent().splits_nw_se());
        for (root, tree) in roots.into_iter().zip(&parent.trees) {
            self.descend(root, 0, &mut tree.reader())?;
        }
        Ok(())
    }

    /// Goes down the parent's tree to this patch's roots, two halvings below the parent's.
    fn descend(
        &mut self,
        triangle: Triangle,
        depth: u32,
        tree: &mut BitReader,
    ) -> Result<(), FormatError> {
        if depth == 2 {
            if self.is_root(triangle) {
                self.add_corners(triangle, |_, own| own);
                return self.walk_root(triangle, &mut Under::Tree(tree));
            }
            tree.skip_tree();
            return Ok(());
        }
        if tree.next() {
            for half in triangle.halves() {
                self.descend(half, depth + 1, tree)?;
            }
            return Ok(());
        }
        let plane = self.plane(triangle);
        for root in self
            .roots
            .into_iter()
            .filter(|&root| contains(triangle, root))
        {
            let units = self.units;
            self.add_corners(root, |p, _| on_plane(&plane, p, units));
            self.walk_root(root, &mut Under::Leaf(plane))?;
        }
        Ok(())
    }

    fn is_root(&self, triangle: Triangle) -> bool {
        self.roots.contains(&triangle)
    }

    fn walk_root(&mut self, root: Triangle, under: &mut Under) -> Result<(), FormatError> {
        let half = usize::from(root != self.roots[0]);
        self.walk(root, &mut self.patch.record.trees[half].reader(), under)
    }

    /// Walks a triangle of this patch with what lies under it in the parent's mesh.
    fn walk(
        &mut self,
        triangle: Triangle,
        tree: &mut BitReader,
        under: &mut Under,
    ) -> Result<(), FormatError> {
        let split = tree.next();
        let mut below = match under {
            Under::Tree(parent) => match (parent.next(), split) {
                (false, _) => Under::Leaf(self.plane(triangle)),
                (true, true) => Under::Tree(parent),
                (true, false) => {
                    return Err(FormatError::new(
                        "a patch whose mesh does not nest in its parent's",
                    ));
                }
            },
            Under::Leaf(plane) => Under::Leaf(*plane),
            Under::Own => Under::Own,
        };
        if !split {
            self.add_triangle(triangle);
            return Ok(());
        }
        let (middle, units) = (triangle.middle(), self.units);
        match &below {
            Under::Leaf(plane) => self.add_vertex(middle, |p, _| on_plane(plane, p, units)),
            Under::Tree(_) | Under::Own => self.add_vertex(middle, |_, own| own),
        };
        for half in triangle.halves() {
            self.walk(half, tree, &mut below)?;
        }
        Ok(())
    }

    /// The parent's leaf as a plane over this patch's lattice.
    fn plane(&self, triangle: Triangle) -> Plane {
        let height = |p: IVec2| {
            let p = (self.corner + p) / self.parent_stride;
            self.parent_heights.at(p.x, p.y)
        };
        Plane::through(
            triangle,
            height(triangle.a),
            height(triangle.b),
            height(triangle.c),
        )
    }

    fn height(&self, p: IVec2) -> i32 {
        let p = self.corner + p;
        self.patch.heights.at(p.x, p.y)
    }

    fn add_corners(&mut self, root: Triangle, parent: impl Fn(IVec2, i32) -> i32 + Copy) {
        for corner in [root.a, root.b, root.c] {
            self.add_vertex(corner, parent);
        }
    }

    /// The vertex at a lattice position, made at its first use; `parent` gives its second height
    /// from its position and its own height.
    fn add_vertex(&mut self, p: IVec2, parent: impl Fn(IVec2, i32) -> i32) {
        let index = (p.y * (self.cells + 1) + p.x) as usize;
        if self.seen[index] != UNSEEN {
            return;
        }
        let own = (self.height(p) as i64 * self.units) as i32;
        self.seen[index] = self.mesh.vertices.len() as u16;
        self.mesh.vertices.push(PatchVertex {
            x: p.x as u16,
            z: p.y as u16,
            own,
            parent: parent(p, own),
        });
    }

    fn add_triangle(&mut self, triangle: Triangle) {
        let corners = [triangle.a, triangle.b, triangle.c];
        self.mesh
            .indices
            .extend(corners.map(|p| self.seen[(p.y * (self.cells + 1) + p.x) as usize]));
    }

    fn finish(mut self) -> Result<PatchMesh, FormatError> {
        self.mesh.ground_indices = self.mesh.indices.len() as u32;
        for side in 0..4 {
            self.add_skirt(side);
        }
        if self.mesh.vertices.len() > UNSEEN as usize {
            return Err(FormatError(format!(
                "a patch of {} vertices; at most {UNSEEN} can be drawn (compile with smaller patches)",
                self.mesh.vertices.len()
            )));
        }
        Ok(self.mesh)
    }

    /// Hangs a wall from every vertex along a side.
    fn add_skirt(&mut self, side: usize) {
        let n = self.cells;
        // Along each side with the patch on the left hand, so that the wall faces outwards.
        let position = |i: i32| match side {
            0 => ivec2(n - i, 0),
            1 => ivec2(n, n - i),
            2 => ivec2(i, n),
            _ => ivec2(0, i),
        };
        let mut last: Option<[u16; 2]> = None;
        for i in 0..=n {
            let p = position(i);
            let top = self.seen[(p.y * (n + 1) + p.x) as usize];
            if top == UNSEEN {
                continue;
            }
            let bottom = self.mesh.vertices.len() as u16;
            let mut vertex = self.mesh.vertices[top as usize];
            vertex.x |= (side as u16 + 1) << SIDE_SHIFT;
            self.mesh.vertices.push(vertex);
            if let Some([last_top, last_bottom]) = last {
                // A lower vertex first: it is the one that says of the whole triangle that it is a skirt's.
                self.mesh
                    .indices
                    .extend([last_bottom, top, last_top, last_bottom, bottom, top]);
            }
            last = Some([top, bottom]);
        }
    }
}

/// The plane's height in height units: exact, since the units divide every such plane.
fn on_plane(plane: &Plane, p: IVec2, units: i64) -> i32 {
    (plane.at(p) * units / plane.denominator) as i32
}

fn contains(outer: Triangle, inner: Triangle) -> bool {
    // Twice the centre of the inner hypotenuse plus its apex lies strictly inside the inner one.
    let p = inner.a + inner.b + 2 * inner.c;
    let side = |a: IVec2, b: IVec2| (b - a).perp_dot(p - 4 * a) < 0;
    side(outer.a, outer.b) && side(outer.b, outer.c) && side(outer.c, outer.a)
}

#[cfg(test)]
mod tests {
    use super::super::height_map::HeightMap;
    use super::super::measure::Metric;
    use super::super::rules::Rules;
    use super::super::trees::tests::all_trees;
    use super::*;
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
}
