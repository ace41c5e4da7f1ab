//! What a frame is made of: a short list of things that draw into one pass, one after another.

use super::gpu::Gpu;
use super::ground::DrawPatch;
use crate::settings::Settings;
use crate::terrain::camera::Views;
use crate::world::Meta;
use std::ops::AddAssign;

/// What a frame shows.
pub struct FrameView<'a> {
    pub meta: &'a Meta,
    /// The lowest ground under the sea, in height steps.
    pub sea_floor: f64,
    pub views: &'a Views,
    pub settings: &'a Settings,
    pub draws: &'a [DrawPatch],
    pub seconds: f64,
}

/// Something that draws.
pub(super) trait Layer {
    /// Draws what the frame has of it; group 0 is bound, the pass is else as the layer
    /// before left it.
    fn draw(&mut self, gpu: &Gpu, pass: &mut wgpu::RenderPass, frame: &FrameView) -> Counts;
}

/// What was drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Of the ground.
    pub triangles: u64,
    pub skirt_triangles: u64,
    /// Calls for ground: one a pipeline, or one a patch.
    pub draws: u64,
    /// That the frame wrote: uniforms, instances, draws.
    pub bytes: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.triangles += other.triangles;
        self.skirt_triangles += other.skirt_triangles;
        self.draws += other.draws;
        self.bytes += other.bytes;
    }
}
