//! A patch's normal texture: light that does not depend on the mesh.
//!
//! Texels lie on the patch's lattice samples. Each holds the x and z of the normal of its own
//! level's heights and of the parent's, which the ground shader blends by the same morph as the
//! shape. Between the parent's samples its normals are averaged as the sampler would.

use super::mesh::PatchData;
use crate::world::{HeightGrid, Layout, PatchKey};
use glam::{IVec2, Vec2, ivec2, vec2};
use half::f16;

/// Texels along a side of a level's textures.
pub fn texels(layout: &Layout, level: u8) -> u32 {
    layout.lattice_cells(level) + 1
}

/// A texel: own x and z, parent's x and z. Half floats hold the means of a parent's texels so well
/// that a patch and its children at the end of their morph are lit alike; whole bytes do not.
pub type Texel = [f16; 4];

/// The texels, row by row.
pub fn build(
    layout: &Layout,
    key: PatchKey,
    patch: PatchData,
    parent: Option<PatchData>,
    spacing_m: [f64; 2],
    step_m: f64,
) -> Vec<Texel> {
    let cells = layout.lattice_cells(key.level) as i32;
    let corner = ivec2(key.x as i32, key.z as i32) * cells;
    let parent = parent.unwrap_or(patch).heights;
    let ratio = (parent.rect.stride / patch.heights.rect.stride) as i32;
    let own_slopes = Slopes::new(patch.heights, spacing_m, step_m);
    let parent_slopes = Slopes::new(parent, spacing_m, step_m);
    let mut texture = Vec::with_capacity(((cells + 1) * (cells + 1)) as usize);
    for z in 0..=cells {
        for x in 0..=cells {
            let p = corner + ivec2(x, z);
            let own = own_slopes.normal(p);
            let below = between(p, ratio, |p| parent_slopes.normal(p));
            texture.push([own.x, own.y, below.x, below.y].map(f16::from_f32));
        }
    }
    texture
}

/// The mean of the values round a position in a lattice `ratio` (1 or 2) times as wide.
fn between(p: IVec2, ratio: i32, value: impl Fn(IVec2) -> Vec2) -> Vec2 {
    let low = p.div_euclid(IVec2::splat(ratio));
    let high = (p + ratio - 1).div_euclid(IVec2::splat(ratio));
    let corners = [low, ivec2(high.x, low.y), ivec2(low.x, high.y), high];
    corners.into_iter().map(value).sum::<Vec2>() / 4.0
}

struct Slopes<'a> {
    heights: &'a HeightGrid,
    /// Slope of a difference of one step over two lattice cells.
    scale: Vec2,
}

impl<'a> Slopes<'a> {
    fn new(heights: &'a HeightGrid, spacing_m: [f64; 2], step_m: f64) -> Self {
        let scale =
            spacing_m.map(|spacing| (step_m / (2.0 * spacing * heights.rect.stride as f64)) as f32);
        Slopes {
            heights,
            scale: Vec2::from(scale),
        }
    }

    /// x and z of the unit normal at a lattice sample, from its four neighbours.
    fn normal(&self, p: IVec2) -> Vec2 {
        let h = |dx, dz| self.heights.at(p.x + dx, p.y + dz);
        let rise = vec2((h(1, 0) - h(-1, 0)) as f32, (h(0, 1) - h(0, -1)) as f32);
        let slope = rise * self.scale;
        -slope / (1.0 + slope.length_squared()).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Bits, LatticeRect, PatchRecord};

    #[test]
    fn a_tilted_plane_has_one_normal_at_both_levels() {
        let layout = Layout::new([31, 31], 8, 8).unwrap();
        let mut leaf = Bits::default();
        leaf.push(false);
        let record = PatchRecord {
            min: 0,
            max: 0,
            error_m: 0.0,
            exhausted: false,
            absent: false,
            trees: [leaf.clone(), leaf],
        };
        let grid = |stride: i32| {
            let rect = LatticeRect {
                stride: stride as u32,
                x0: -2,
                z0: -2,
                width: 40,
                height: 40,
            };
            HeightGrid::from_fn(rect, |x, z| 20 * x * stride - 10 * z * stride)
        };
        let (fine, coarse) = (grid(1), grid(2));
        let data = |heights| PatchData {
            record: &record,
            heights,
        };
        let key = PatchKey::new(1, 1, 0);
        let texture = build(
            &layout,
            key,
            data(&fine),
            Some(data(&coarse)),
            [10.0, 10.0],
            0.5,
        );
        assert_eq!(texture.len(), 17 * 17);
        // Slopes 1 east and -1/2 south: normal (-1, 1, 0.5) / 1.5.
        let expected = [-2.0 / 3.0, 1.0 / 3.0, -2.0 / 3.0, 1.0 / 3.0].map(f16::from_f32);
        assert!(texture.iter().all(|&t| t == expected), "{:?}", texture[0]);
    }
}
