//! What lies under a patch in its parent's mesh.
//!
//! The patch's two root triangles are the parent's halved twice. Where the parent's mesh halves
//! them too, its tree goes on below them; where it has a larger leaf, the leaf's plane is all
//! there is.

use super::PatchData;
use crate::terrain::triangle::Triangle;
use crate::world::{BitReader, Layout, PatchKey};
use glam::{IVec2, ivec2};

/// The parent's mesh under a patch.
pub struct Under<'a> {
    /// Its surface at the patch's corners (north-west, north-east, south-west, south-east), in
    /// height units.
    pub corners: [i32; 4],
    /// Its tree from each of the patch's root triangles on.
    pub trees: [Option<BitReader<'a>>; 2],
}

impl<'a> Under<'a> {
    pub fn find(layout: &Layout, key: PatchKey, parent: PatchData<'a>) -> Self {
        let cells = layout.lattice_cells(key.level) as i32;
        // In this patch's lattice cells, from its own corner.
        let corner = ivec2(key.x as i32 % 2, key.z as i32 % 2) * -cells;
        let roots = Triangle::roots(corner, 2 * cells, key.parent().splits_nw_se());
        let mut search = Search {
            roots: Triangle::roots(IVec2::ZERO, cells, key.splits_nw_se()),
            parent,
            origin: ivec2(key.x as i32, key.z as i32) * cells,
            stride: (layout.stride(key.level + 1) / layout.stride(key.level)) as i32,
            units: layout.height_units(),
            found: Under {
                corners: [0; 4],
                trees: [None, None],
            },
        };
        for (root, tree) in roots.into_iter().zip(&parent.record.trees) {
            let heights = [root.a, root.b, root.c].map(|p| search.height(p));
            search.descend(root, heights, 0, Some(&mut tree.reader()));
        }
        search.found
    }
}

struct Search<'a> {
    roots: [Triangle; 2],
    parent: PatchData<'a>,
    /// Where the patch's corner lies in the whole lattice.
    origin: IVec2,
    /// This lattice's cells in one of the parent's.
    stride: i32,
    units: i32,
    found: Under<'a>,
}

impl<'a> Search<'a> {
    /// Goes two halvings down, with the parent's surface at the corners and, as long as its mesh
    /// is halved too, its tree.
    fn descend(
        &mut self,
        triangle: Triangle,
        heights: [i32; 3],
        depth: u32,
        tree: Option<&mut BitReader<'a>>,
    ) {
        if depth == 2 {
            return self.arrive(triangle, heights, tree);
        }
        let mut tree = tree.and_then(|tree| tree.next().then_some(tree));
        let [a, b, c] = heights;
        let middle = match tree {
            Some(_) => self.height(triangle.middle()),
            None => a.midpoint(b),
        };
        let [first, second] = triangle.halves();
        self.descend(first, [c, a, middle], depth + 1, tree.as_deref_mut());
        self.descend(second, [b, c, middle], depth + 1, tree);
    }

    /// Takes a triangle of the size of the patch's roots, and passes over its tree.
    fn arrive(&mut self, triangle: Triangle, heights: [i32; 3], tree: Option<&mut BitReader<'a>>) {
        if let Some(half) = self.roots.iter().position(|&root| root == triangle) {
            self.found.trees[half] = tree.as_deref().cloned();
            let corners = [triangle.a, triangle.b, triangle.c];
            for (p, height) in corners.into_iter().zip(heights) {
                self.found.corners[usize::from(p.x > 0) + 2 * usize::from(p.y > 0)] = height;
            }
        }
        if let Some(tree) = tree {
            tree.skip_tree();
        }
    }

    /// The height of a vertex of the parent's mesh.
    fn height(&self, p: IVec2) -> i32 {
        let p = (self.origin + p) / self.stride;
        self.parent.heights.at(p.x, p.y).wrapping_mul(self.units)
    }
}
