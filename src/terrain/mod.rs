//! The ground, as pure values: triangle trees, errors, meshes, level of detail.
//!
//! No GPU, no files, no threads, no clock: values in, values out. The compiler and the viewer
//! both stand on this layer, which knows only the values of the world file.

pub mod absent;
pub mod archipelago;
mod blocks;
pub mod camera;
pub mod decision;
pub mod detail;
mod distances;
mod fine;
pub mod flight;
pub mod height_map;
pub mod hierarchy;
pub mod holes;
pub mod leaves;
pub mod live;
pub mod lod;
pub mod measure;
pub mod mesh;
mod needs;
pub mod noise;
pub mod normals;
pub mod patch_tree;
pub mod rules;
pub mod scan;
pub mod serial;
pub mod soundness;
mod stencil;
pub mod surface;
mod sweep;
pub mod talus;
pub mod tile;
pub mod tile_ground;
pub mod trees;
pub mod triangle;
pub mod upper;
pub mod water;
