//! Every knob and every counter, as plain data.
//!
//! The overlay edits `Settings` and shows `Stats`; command-line flags fill the same struct, and
//! scripts read the same counters.

use crate::terrain::camera::{HeldCamera, Pose, Viewpoint, Views};
use crate::terrain::lod::{LodSettings, Range};
use crate::terrain::mesh::Mesher;
use crate::world::PatchKey;
use serde::Serialize;
use std::collections::BTreeMap;

/// How the ground is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum View {
    /// As it might look.
    #[default]
    Shaded,
    /// Its triangles, coloured by level.
    Wireframe,
    /// Its patches' levels as colours.
    Level,
    /// Green where the ground shows its face, red where a back face comes first, black where
    /// there is none; no sky, no water.
    Hole,
}

impl View {
    /// The views a user goes through.
    pub const ALL: [View; 4] = [View::Shaded, View::Wireframe, View::Level, View::Hole];

    pub fn name(self) -> &'static str {
        match self {
            View::Shaded => "shaded",
            View::Wireframe => "wireframe",
            View::Level => "levels",
            View::Hole => "hole check",
        }
    }
}

/// How much is made of ground and sea.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shading {
    /// With all that there is.
    Full,
    /// Without noise and waves, several times as fast where the processor draws.
    Plain,
}

/// What a scene is opened with and keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub mesher: Mesher,
    /// Samples a pixel: 1 or 4.
    pub msaa: u32,
    /// Many draws in one call, where the adapter can.
    pub multi_draw: bool,
    /// Ground and sea without what a software adapter is slow at.
    pub plain: bool,
}

impl Setup {
    /// What a user should know of it beside the adapter's name.
    pub fn note(&self) -> &'static str {
        if self.plain { ", plain shading" } else { "" }
    }
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            mesher: Mesher::Static,
            msaa: 1,
            multi_draw: true,
            plain: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub lod: LodSettings,
    pub view: View,
    /// Vertical field of view in degrees.
    pub fov_deg: f64,
    /// Degrees clockwise from north, and above the horizon.
    pub sun_azimuth_deg: f64,
    pub sun_height_deg: f64,
    /// Metres over which the air thickens.
    pub fog_m: f64,
    /// What is drawn, and how fine, is chosen from here instead of from the camera.
    pub lod_camera: Option<HeldCamera>,
    /// Vertices move to the next level's shape before it takes their place.
    pub morph: bool,
    pub water: bool,
    pub skirts: bool,
    /// The camera stays this far above the ground, where it is kept above at all.
    pub clearance_m: Option<f64>,
    /// Bytes of patches that go to the GPU a frame.
    pub upload_budget_bytes: usize,
    /// A patch that is left out, to prove that a check notices.
    pub hidden_patch: Option<PatchKey>,
}

impl Settings {
    /// From where a picture of so many pixels is looked at, and its content chosen.
    pub fn views(&self, pose: &Pose, size: [u32; 2]) -> Views {
        let draw = Viewpoint::new(pose, self.fov_deg, size);
        let held = self.lod_camera.as_ref();
        Views {
            draw,
            lod: held.map_or(draw, |held| Viewpoint::new(&held.pose, self.fov_deg, size)),
            lod_culls: held.is_some_and(|held| held.culls),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            lod: LodSettings::default(),
            view: View::Shaded,
            fov_deg: 60.0,
            sun_azimuth_deg: 300.0,
            sun_height_deg: 38.0,
            fog_m: 60_000.0,
            lod_camera: None,
            morph: true,
            water: true,
            skirts: true,
            clearance_m: Some(2.0),
            upload_budget_bytes: 4 << 20,
            hidden_patch: None,
        }
    }
}

/// Counters of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StreamStats {
    pub sections_in_memory: usize,
    pub section_bytes: usize,
    /// Bytes of patches that were built and wait to be uploaded.
    pub waiting_bytes: usize,
    pub jobs_in_flight: usize,
    /// Sections and patches that failed and wait for another try.
    pub failed: usize,
}

/// Milliseconds that a frame took on its thread, by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CpuTimes {
    /// The ranges, and the cut through the levels.
    pub select: f64,
    /// The plan, arrivals, uploads.
    pub stream: f64,
    /// What is in view, morphs, skirts, bounds of errors.
    pub cull: f64,
    /// Commands for the GPU, and handing them over.
    pub encode: f64,
    pub total: f64,
}

/// What the last frame was made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    pub adapter: String,
    /// Triangles of the ground that were drawn; skirts are counted apart.
    pub triangles: u64,
    pub skirt_triangles: u64,
    /// Draw calls: one a pipeline where the adapter takes many patches at once, else one a patch.
    pub draws: u64,
    /// Patches that cover the ground, in view or not.
    pub patches_selected: u64,
    /// By level, finest first.
    pub patches_drawn: Vec<u64>,
    pub patches_resident: Vec<u64>,
    /// Patches that are wanted and not loaded.
    pub patches_missing: u64,
    /// Bytes of patches that went to the GPU since the frame before was drawn.
    pub upload_bytes: u64,
    /// Bytes of uniforms, instances and draws that the frame wrote; what is as before is not written.
    pub frame_bytes: u64,
    /// Bytes that patches take in GPU memory, and that were allocated for them.
    pub gpu_bytes: u64,
    pub gpu_allocated_bytes: u64,
    /// The largest stored error that was drawn, in metres as drawn.
    pub largest_drawn_error_m: f64,
    /// The largest stored error of the patch over or under the eye; 0 beside the ground.
    pub error_at_eye_m: f64,
    /// A bound on the error on screen in the middle of the picture.
    pub largest_error_px: f64,
    /// The farthest, in pixels, that a change of levels moved a vertex since the last picture.
    pub largest_pop_px: f64,
    /// How often drawn neighbours are 0, 1, 2... levels apart.
    pub neighbour_level_steps: Vec<u64>,
    pub ranges: Vec<Range>,
    /// The finest level that GPU memory has room for in this view; 0 unless it is full.
    pub finest_level: u8,
    pub stream: StreamStats,
    pub cpu_ms: CpuTimes,
    /// Milliseconds by pass of the last frame that the GPU has told of.
    pub gpu_ms: BTreeMap<String, f64>,
}
