//! The mesh of many patches of one level as one surface in metres, for programs of others.
//!
//! Vertices on patch borders are shared. Where asked, the surface ends exactly at the source's
//! rectangle, through the triangles there: their edges lie along the axes or the diagonals, so
//! every cut is at a whole sample and its height is exact, the same from both sides of an edge.
//! Normals are those of the mesh: its triangles', weighted by area.

use super::leaves::visit_leaves;
use super::mesh::PatchData;
use super::triangle::Triangle;
use crate::world::{Coverage, Meta, PatchKey};
use glam::{DVec3, IVec2, dvec3, ivec2};
use std::collections::HashMap;

/// A triangle mesh: x east, y up, z south, in metres.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surface {
    pub positions: Vec<DVec3>,
    /// Unit normals, one a position.
    pub normals: Vec<DVec3>,
    /// Counter-clockwise from above.
    pub triangles: Vec<[u32; 3]>,
}

/// Collects the patches of a surface.
pub struct SurfaceBuilder<'a> {
    meta: &'a Meta,
    /// The last sample, [x, z], of the source, where the surface shall end there.
    last: Option<IVec2>,
    seen: HashMap<IVec2, u32>,
    surface: Surface,
}

/// A corner of what is left of a triangle: its sample and its height in steps.
type Corner = (IVec2, f64);

impl<'a> SurfaceBuilder<'a> {
    /// With `whole_patches` the ground that continues beyond the source stays.
    pub fn new(meta: &'a Meta, whole_patches: bool) -> Self {
        let [x, z] = meta.layout.size_cells.map(|cells| cells as i32);
        SurfaceBuilder {
            meta,
            last: (!whole_patches).then_some(ivec2(x, z)),
            seen: HashMap::new(),
            surface: Surface::default(),
        }
    }

    /// Adds a patch; all patches of a surface are of one level. Where `cells` says which cells of
    /// its lattice have ground, triangles over none of them are left out.
    pub fn add(&mut self, key: PatchKey, patch: PatchData, cells: Option<&Coverage>) {
        let layout = self.meta.layout;
        let corner = ivec2(key.x as i32, key.z as i32) * layout.patch_size(key.level) as i32;
        let stride = layout.stride(key.level) as i32;
        visit_leaves(&layout, key, &patch.record.trees, |triangle| {
            let in_cells = |p: IVec2| (p - corner) / stride;
            if cells.is_none_or(|cells| is_over_ground(triangle, in_cells, cells)) {
                self.add_triangle(triangle, patch);
            }
        });
    }

    /// The surface with its normals.
    pub fn finish(mut self) -> Surface {
        self.surface.normals = normals(&self.surface);
        self.surface
    }

    fn add_triangle(&mut self, triangle: Triangle, patch: PatchData) {
        let stride = patch.heights.rect.stride as i32;
        let corner = |p: IVec2| (p, patch.heights.at(p.x / stride, p.y / stride) as f64);
        let mut polygon = vec![corner(triangle.a), corner(triangle.b), corner(triangle.c)];
        if let Some(last) = self.last {
            polygon = cut(&polygon, last.x, |p| p.x);
            // What only touches the edge has no area, and must not be cut again.
            if polygon.len() < 3 {
                return;
            }
            polygon = cut(&polygon, last.y, |p| p.y);
        }
        let vertices: Vec<u32> = if polygon.len() < 3 {
            return;
        } else {
            polygon.iter().map(|&corner| self.vertex(corner)).collect()
        };
        for pair in vertices[1..].windows(2) {
            self.surface.triangles.push([vertices[0], pair[0], pair[1]]);
        }
    }

    /// The vertex at a sample, made at its first use.
    fn vertex(&mut self, (p, height): Corner) -> u32 {
        let next = self.surface.positions.len() as u32;
        let index = *self.seen.entry(p).or_insert(next);
        if index == next {
            let [x, z] = self.meta.spacing_m;
            let y = height * self.meta.height_step_m;
            self.surface
                .positions
                .push(dvec3(p.x as f64 * x, y, p.y as f64 * z));
        }
        index
    }
}

/// Whether a triangle covers any part of a cell with ground: it covers half a cell at least, so
/// the cell's middle lies in it or on its edge.
fn is_over_ground(t: Triangle, in_cells: impl Fn(IVec2) -> IVec2, cells: &Coverage) -> bool {
    let [a, b, c] = [t.a, t.b, t.c].map(|p| 2 * in_cells(p));
    let (low, high) = (a.min(b).min(c) / 2, a.max(b).max(c) / 2);
    let inside = |p: IVec2| {
        let side = |from: IVec2, to: IVec2| (to - from).perp_dot(p - from) <= 0;
        side(a, b) && side(b, c) && side(c, a)
    };
    (low.y..high.y).any(|z| {
        (low.x..high.x).any(|x| inside(2 * ivec2(x, z) + 1) && cells.is_present(x as u32, z as u32))
    })
}

/// The part of a polygon up to `last` along an axis (Sutherland and Hodgman 1974).
fn cut(polygon: &[Corner], last: i32, axis: impl Fn(IVec2) -> i32) -> Vec<Corner> {
    let mut kept = Vec::with_capacity(polygon.len() + 1);
    for (i, &from) in polygon.iter().enumerate() {
        let to = polygon[(i + 1) % polygon.len()];
        let (here, there) = (axis(from.0), axis(to.0));
        if here <= last {
            kept.push(from);
        }
        if (here < last && there > last) || (here > last && there < last) {
            kept.push(between(from, to, last - here, there - here));
        }
    }
    kept
}

/// The corner `part` of `whole` along an edge.
fn between(from: Corner, to: Corner, part: i32, whole: i32) -> Corner {
    let place = from.0 + (to.0 - from.0) * part / whole;
    let height = from.1 + (to.1 - from.1) * part as f64 / whole as f64;
    (place, height)
}

fn normals(surface: &Surface) -> Vec<DVec3> {
    let mut sums = vec![DVec3::ZERO; surface.positions.len()];
    for triangle in &surface.triangles {
        let [a, b, c] = triangle.map(|i| surface.positions[i as usize]);
        // The cross product is as long as twice the area.
        let normal = (b - a).cross(c - a);
        triangle
            .iter()
            .for_each(|&vertex| sums[vertex as usize] += normal);
    }
    sums.into_iter().map(DVec3::normalize).collect()
}

#[cfg(test)]
mod tests {
    use super::super::leaves::tree;
    use super::*;
    use crate::world::{HeightGrid, LatticeRect, Layout, LevelMeta, PatchRecord, SourceInfo};

    /// A world of one level whose ground is a tilted plane, 2 patches by 2.
    fn meta(size_cells: [u32; 2]) -> Meta {
        let level = LevelMeta {
            patches: 4,
            exhausted_patches: 0,
            triangles: 0,
            vertices: 0,
            threshold: 1.0,
            max_error_m: 0.0,
            tallest_patch_m: 0.0,
            topology_bits: 0,
        };
        Meta {
            layout: Layout {
                levels: 1,
                ..Layout::new(size_cells, 8, 8).unwrap()
            },
            spacing_m: [10.0, 20.0],
            height_step_m: 0.5,
            heights: Default::default(),
            height_range: [-1000, 1000],
            summit: [0, 0],
            sea_level_m: None,
            metric: "max".into(),
            live_factor: None,
            kept_voids: 0,
            levels: vec![level],
            source: SourceInfo::made_up("made up", [0.0, 0.0]),
        }
    }

    fn surface(size_cells: [u32; 2], whole_patches: bool) -> Surface {
        covered(size_cells, whole_patches, None)
    }

    fn covered(size_cells: [u32; 2], whole_patches: bool, cells: Option<&Coverage>) -> Surface {
        let meta = meta(size_cells);
        let rect = LatticeRect {
            stride: 1,
            x0: -2,
            z0: -2,
            width: 21,
            height: 21,
        };
        // One metre up for ten metres east: 2 steps a sample.
        let heights = HeightGrid::from_fn(rect, |x, _| 2 * x);
        let record = PatchRecord {
            min: 0,
            max: 0,
            error_m: 0.0,
            exhausted: false,
            absent: false,
            trees: [tree("1100100"), tree("1100100")],
        };
        let mut builder = SurfaceBuilder::new(&meta, whole_patches);
        for key in meta.layout.keys(0) {
            let patch = PatchData {
                record: &record,
                heights: &heights,
            };
            builder.add(key, patch, cells);
        }
        builder.finish()
    }

    fn area(surface: &Surface) -> f64 {
        let corners = |t: &[u32; 3]| t.map(|i| surface.positions[i as usize]);
        let area = |[a, b, c]: [DVec3; 3]| (b - a).cross(c - a).y / 2.0;
        surface.triangles.iter().map(|t| area(corners(t))).sum()
    }

    #[test]
    fn patches_share_their_border_and_triangles_look_up() {
        let whole = surface([16, 16], true);
        assert_eq!(whole.triangles.len(), 4 * 8);
        // Corners, middles of sides and centres of a grid of two by two squares.
        assert_eq!(whole.positions.len(), 25);
        assert_eq!(area(&whole), 160.0 * 320.0);
        let normal = dvec3(-0.1, 1.0, 0.0).normalize();
        assert!(whole.normals.iter().all(|n| n.distance(normal) < 1e-12));
        assert_eq!(surface([16, 16], false), whole, "nothing to cut");
    }

    #[test]
    fn triangles_over_no_ground_are_left_out() {
        // Each patch has eight triangles over 4 by 4 cells' worth of legs.
        let triangles = |present: fn(u32, u32) -> bool| {
            let cells = Coverage::from_fn([8, 8], present);
            covered([16, 16], true, Some(&cells)).triangles.len()
        };
        assert_eq!(triangles(|_, _| true), 4 * 8);
        assert_eq!(triangles(|_, _| false), 0);
        // A cell on a diagonal has two triangles, one beside it has one.
        assert_eq!(triangles(|x, z| (x, z) == (1, 0)), 4);
        assert_eq!(
            triangles(|x, z| (x, z) == (0, 0)) + triangles(|x, z| (x, z) == (3, 0)),
            4 * 3
        );
    }

    #[test]
    fn no_triangle_is_left_of_what_only_touches_the_edge() {
        let mut cut_sizes = 0;
        for (width, depth) in (4..=16).flat_map(|x| (4..=16).map(move |z| (x, z))) {
            let part = surface([width, depth], false);
            let is_flat = |[a, b, c]: &[u32; 3]| a == b || b == c || c == a;
            assert!(!part.triangles.iter().any(is_flat), "{width} x {depth}");
            assert_eq!(area(&part), (width * 10 * depth * 20) as f64);
            cut_sizes += !part.triangles.len().is_multiple_of(8) as usize;
        }
        assert!(cut_sizes > 50);
    }

    #[test]
    fn the_cut_follows_the_source_exactly() {
        let part = surface([11, 13], false);
        assert_eq!(area(&part), 110.0 * 260.0);
        let last = part.positions.iter().fold(DVec3::ZERO, |a, &b| a.max(b));
        assert_eq!(last, dvec3(110.0, 11.0, 260.0));
        let on_plane = |p: &&DVec3| (p.y - p.x / 10.0).abs() < 1e-12;
        assert_eq!(
            part.positions.iter().filter(on_plane).count(),
            part.positions.len()
        );
        let corners = |t: &[u32; 3]| t.map(|i| part.positions[i as usize]);
        assert!(
            part.triangles
                .iter()
                .map(corners)
                .all(|[a, b, c]| { (b - a).cross(c - a).y > 0.0 })
        );
    }
}
