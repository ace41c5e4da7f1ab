//! A patch's static vertex buffer, from its bit-streams, its parent's, and the heights.
//!
//! Each vertex stores its own height and the height of the parent's surface under it. Meshes
//! nest, so with all vertices at their second height the mesh *is* the parent's surface: first
//! the vertices are found that the parent's mesh has in this patch, whose two heights are the
//! same; then the patch's own, each the middle of two others over a leaf of the parent, where the
//! surface is a plane and so at half their height.
//!
//! Heights are integers in units of the height step divided by [`Layout::height_units`], in which
//! every such height is exact (a leaf's plane rises by a multiple of one unit from one lattice
//! position to the next), so a mean of two is too, and patches that share a vertex agree on its
//! bits.

pub mod grid;
mod skirts;
pub mod topology;
mod under;

use crate::world::{FormatError, HeightGrid, Layout, PatchKey, PatchRecord};
use bytemuck::{Pod, Zeroable};
use topology::Topology;
use under::Under;

/// Which triangles are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mesher {
    /// The compiled triangle trees.
    #[default]
    Static,
    /// The whole lattice of every patch, for comparison: what CDLOD and clipmaps draw.
    Grid,
}

impl Mesher {
    /// How many times as large as the stored errors those of the mesh can be.
    ///
    /// Between two positions of the lattice both a tree's mesh and the whole lattice are planes
    /// over the same triangles, and at the positions the lattice is right: so the two are nowhere
    /// further apart than the stored error, and the lattice's own error is at most twice that.
    pub fn error_factor(self) -> f32 {
        match self {
            Mesher::Static => 1.0,
            Mesher::Grid => 2.0,
        }
    }
}

impl std::str::FromStr for Mesher {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "static" => Ok(Mesher::Static),
            "grid" => Ok(Mesher::Grid),
            _ => Err(format!("'{text}' is neither static nor grid")),
        }
    }
}

/// Lattice x of a vertex takes the lower bits, its side the upper: 0 for the ground, 1 to 4 for
/// the lower edge of the north, east, south and west skirt.
pub const SIDE_SHIFT: u32 = 12;

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

impl PatchMesh {
    /// The farthest that a vertex is from its parent's surface, in height units.
    pub fn largest_morph(&self) -> u32 {
        let morphs = self.vertices.iter().map(|v| v.own.abs_diff(v.parent));
        morphs.max().unwrap_or(0)
    }
}

/// A patch and the heights of its section.
#[derive(Clone, Copy)]
pub struct PatchData<'a> {
    pub record: &'a PatchRecord,
    pub heights: &'a HeightGrid,
}

/// Builds one patch's mesh; for many, keep a [`MeshBuilder`].
pub fn build(
    layout: &Layout,
    key: PatchKey,
    patch: PatchData,
    parent: Option<PatchData>,
) -> Result<PatchMesh, FormatError> {
    MeshBuilder::default().build(layout, key, patch, parent)
}

/// Builds meshes one after another in the same memory.
#[derive(Default)]
pub struct MeshBuilder {
    topology: Topology,
}

impl MeshBuilder {
    /// Builds a patch's mesh. Without a parent (the coarsest level) each vertex morphs to itself.
    pub fn build(
        &mut self,
        layout: &Layout,
        key: PatchKey,
        patch: PatchData,
        parent: Option<PatchData>,
    ) -> Result<PatchMesh, FormatError> {
        let cells = layout.lattice_cells(key.level);
        self.topology.begin(cells);
        let under = parent.map(|parent| Under::find(layout, key, parent));
        let known = self.read(key, patch.record, under.as_ref())?;
        self.topology.check_count()?;
        let mut vertices = self.own_vertices(layout, key, patch.heights);
        if let Some(under) = under {
            self.set_parents(&mut vertices, &under, known);
        }
        let mut mesh = PatchMesh {
            vertices,
            indices: self.topology.indices().to_vec(),
            ground_indices: self.topology.indices().len() as u32,
        };
        skirts::hang(&mut mesh, &self.topology, cells);
        topology::check_count(mesh.vertices.len())?;
        Ok(mesh)
    }

    /// Finds the vertices and triangles. Returns how many vertices the parent has too; they are
    /// the first.
    fn read(
        &mut self,
        key: PatchKey,
        patch: &PatchRecord,
        under: Option<&Under>,
    ) -> Result<usize, FormatError> {
        let (topology, nw_se) = (&mut self.topology, key.splits_nw_se());
        let mut nodes = 0;
        for (half, tree) in under
            .iter()
            .flat_map(|under| under.trees.iter().enumerate())
        {
            if let Some(tree) = tree {
                nodes += topology.add_vertices(nw_se, half, tree.clone())?;
            }
        }
        let known = topology.count();
        if topology.add_trees(nw_se, &patch.trees, known)? != nodes {
            return Err(FormatError::new(
                "a patch whose mesh does not nest in its parent's",
            ));
        }
        Ok(known)
    }

    /// The vertices with their own heights, twice.
    fn own_vertices(
        &self,
        layout: &Layout,
        key: PatchKey,
        heights: &HeightGrid,
    ) -> Vec<PatchVertex> {
        let (cells, units) = (layout.lattice_cells(key.level), layout.height_units());
        let [x0, z0] = [key.x, key.z].map(|patches| patches * cells);
        let vertex = |[x, z]: [u32; 2]| {
            let height = heights.at((x0 + x) as i32, (z0 + z) as i32);
            let own = height.wrapping_mul(units);
            PatchVertex {
                x: x as u16,
                z: z as u16,
                own,
                parent: own,
            }
        };
        self.topology.positions().map(vertex).collect()
    }

    /// Puts the parent's surface under the corners and under what the parent does not have.
    fn set_parents(&self, vertices: &mut [PatchVertex], under: &Under, known: usize) {
        for (vertex, height) in vertices.iter_mut().zip(under.corners) {
            vertex.parent = height;
        }
        for (i, ends) in self.topology.ends().iter().enumerate().skip(known) {
            let [a, b] = [ends.a(), ends.b()].map(|end| vertices[end as usize].parent);
            vertices[i].parent = a.midpoint(b);
        }
    }
}

#[cfg(test)]
mod tests;
