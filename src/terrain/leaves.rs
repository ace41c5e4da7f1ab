//! A patch's triangles, straight from its bit-streams, in samples of the whole world.
//!
//! No heights and no vertex buffers: what `export`, `verify` and the figure of a patch walk.

use super::triangle::Triangle;
use crate::world::{BitReader, Bits, Layout, PatchKey};
use glam::ivec2;

/// The two halves of a patch, in the order of its bit-streams.
pub fn roots(layout: &Layout, key: PatchKey) -> [Triangle; 2] {
    let size = layout.patch_size(key.level) as i32;
    let corner = ivec2(key.x as i32, key.z as i32) * size;
    Triangle::roots(corner, size, key.splits_nw_se())
}

/// Calls `visit` for every triangle that is drawn, depth first.
pub fn visit_leaves(
    layout: &Layout,
    key: PatchKey,
    trees: &[Bits; 2],
    mut visit: impl FnMut(Triangle),
) {
    for (root, tree) in roots(layout, key).into_iter().zip(trees) {
        walk(root, tree, |triangle, _, split| {
            if !split {
                visit(triangle);
            }
        });
    }
}

/// Calls `visit` for every bit of a tree, in its order: the triangle, its halvings below the
/// root, and whether it is split.
pub fn walk(root: Triangle, tree: &Bits, mut visit: impl FnMut(Triangle, u32, bool)) {
    walk_from(root, 0, &mut tree.reader(), &mut visit);
}

/// Checked trees are at most `2 log2(lattice cells)` deep.
fn walk_from(
    triangle: Triangle,
    depth: u32,
    tree: &mut BitReader,
    visit: &mut impl FnMut(Triangle, u32, bool),
) {
    let split = tree.next();
    visit(triangle, depth, split);
    if split {
        for half in triangle.halves() {
            walk_from(half, depth + 1, tree, visit);
        }
    }
}

#[cfg(test)]
pub(super) fn tree(shape: &str) -> Bits {
    let mut bits = Bits::default();
    shape.chars().for_each(|bit| bits.push(bit == '1'));
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_come_in_the_order_of_the_bits_and_cover_the_patch() {
        let layout = Layout::new([32, 32], 8, 8).unwrap();
        let key = PatchKey::new(0, 1, 2);
        let trees = [tree("110 0 0".replace(' ', "").as_str()), tree("0")];
        let mut depths = Vec::new();
        walk(roots(&layout, key)[0], &trees[0], |_, depth, split| {
            depths.push((depth, split));
        });
        assert_eq!(
            depths,
            [(0, true), (1, true), (2, false), (2, false), (1, false)]
        );
        let (mut leaves, mut area) = (0, 0);
        visit_leaves(&layout, key, &trees, |t| {
            leaves += 1;
            area -= (t.b - t.a).perp_dot(t.c - t.a);
            assert!(t.a.cmpge(ivec2(8, 16)).all() && t.a.cmple(ivec2(16, 24)).all());
        });
        assert_eq!((leaves, area), (4, 2 * 8 * 8));
    }
}
