//! The walls that hang from a patch's four borders.
//!
//! Two triangles an edge. The lower vertices repeat the upper ones with the side they belong to;
//! how deep they hang is decided when they are drawn.

use super::topology::Topology;
use super::{PatchMesh, SIDE_SHIFT};

/// Hangs all four skirts from a mesh of the ground alone.
pub fn hang(mesh: &mut PatchMesh, topology: &Topology, cells: u32) {
    // Euler's formula, for triangles that fill a square: what is on its border.
    let triangles = mesh.indices.len() / 3;
    let edges = (2 * mesh.vertices.len()).saturating_sub(2 + triangles);
    mesh.vertices.reserve_exact(edges + 4);
    mesh.indices.reserve_exact(6 * edges);
    for side in 0..4 {
        hang_from(mesh, topology, cells, side);
    }
}

/// Hangs a wall from every vertex along a side.
fn hang_from(mesh: &mut PatchMesh, topology: &Topology, cells: u32, side: u16) {
    // Along each side with the patch on the left hand, so that the wall faces outwards.
    let position = |i| match side {
        0 => (cells - i, 0),
        1 => (cells, cells - i),
        2 => (i, cells),
        _ => (0, i),
    };
    let vertex_at = |(x, z)| topology.vertex_at(x, z);
    let mut last: Option<[u16; 2]> = None;
    for top in (0..=cells).map(position).filter_map(vertex_at) {
        let bottom = mesh.vertices.len() as u16;
        let mut vertex = mesh.vertices[top as usize];
        vertex.x |= (side + 1) << SIDE_SHIFT;
        mesh.vertices.push(vertex);
        if let Some([last_top, last_bottom]) = last {
            // A lower vertex first: it is the one that says of the whole triangle that it is a
            // skirt's.
            mesh.indices
                .extend([last_bottom, top, last_top, last_bottom, bottom, top]);
        }
        last = Some([top, bottom]);
    }
}
