//! From the mesh of a level to each patch's two bit-streams.

use super::refine::{MeasureAll, Refiner};
use super::triangle::Triangle;
use crate::world::{Bits, Layout, PatchKey};
use glam::ivec2;

/// The bintrees of a patch in the mesh that was refined last, which must be of its level.
pub fn patch_trees<M: MeasureAll>(
    refiner: &Refiner<M>,
    layout: &Layout,
    key: PatchKey,
) -> [Bits; 2] {
    let size = layout.patch_size(key.level) as i32;
    let corner = ivec2(key.x as i32, key.z as i32) * size;
    Triangle::roots(corner, size, key.splits_nw_se()).map(|root| {
        let mut bits = Bits::default();
        write_tree(refiner, root, &mut bits);
        bits
    })
}

/// Depth first: 1 and both halves, or 0. The depth is bounded by the lattice.
fn write_tree<M: MeasureAll>(refiner: &Refiner<M>, triangle: Triangle, bits: &mut Bits) {
    let split = refiner.is_split(triangle);
    bits.push(split);
    if split {
        triangle
            .halves()
            .into_iter()
            .for_each(|half| write_tree(refiner, half, bits));
    }
}
