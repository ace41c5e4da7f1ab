//! Highfell: a terrain compiler and a real-time terrain LOD viewer.
//!
//! The layers, from the bottom: [`world`] (bytes to values of the world file), [`terrain`] (pure
//! analysis and meshes), then [`stream`] and [`render`], which never meet, then [`scene`] with
//! the one frame function, then [`modes`], one a verb. `README.md` has the architecture on a page.

pub mod compile;
pub mod error;
pub mod export;
pub mod files;
pub mod import;
pub mod modes;
pub mod overlay;
mod position;
pub mod render;
pub mod scene;
pub mod settings;
pub mod source;
pub mod stream;
pub mod terrain;
pub mod world;
