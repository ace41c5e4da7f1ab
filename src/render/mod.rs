//! Everything that touches the GPU: the only layer that names `wgpu`.
//!
//! One file here and one shader for each thing drawn; a renderer holds what never changes, a
//! draw gets plain data. It knows nothing of streaming: patches come as bytes and go by key.

pub mod arena;
pub mod clock;
pub mod gpu;
pub mod ground;
pub mod painter;
pub mod sky;
pub mod target;
pub mod water;

mod frame_buffer;
mod globals;
mod layer;
mod pipeline;
mod renderer;

pub use globals::{Globals, split_eye};
pub use gpu::{AdapterChoice, Gpu, WindowSurface};
pub use ground::{Cut, DrawPatch};
pub use layer::FrameView;
pub use renderer::Renderer;
pub use target::Picture;
