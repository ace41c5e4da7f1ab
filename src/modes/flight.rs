//! What `fly` does without a display: a short flight whose pictures stay behind.

use super::ground_m;
use super::shot::write_png;
use crate::error::{Error, Result};
use crate::render::Gpu;
use crate::scene::Scene;
use crate::settings::Settings;
use crate::terrain::camera::Pose;
use crate::world::Meta;
use glam::dvec3;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SIZE: [u32; 2] = [1280, 720];
const PICTURES: u32 = 4;
const CLEARANCE_M: f64 = 60.0;
const PATIENCE: Duration = Duration::from_secs(60);

/// Flies from the start pose in towards the middle of the world; returns the pictures' paths.
pub fn fly_headless(
    gpu: &Gpu,
    scene: &mut Scene,
    start: &Pose,
    settings: &Settings,
    folder: &Path,
) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Error::io(folder, "cannot be created", error))?;
    let mut written = Vec::new();
    for number in 0..PICTURES {
        let share = number as f64 / (PICTURES - 1) as f64;
        let mut pose = along(&scene.world().meta, start, share, settings.lod.exaggeration);
        let (x, z) = (pose.eye.x, pose.eye.z);
        let ground = ground_m(scene.world(), x, z, settings.lod.exaggeration)?;
        pose.eye.y = pose.eye.y.max(ground + CLEARANCE_M);
        scene.settle(gpu, &pose, settings, SIZE, PATIENCE)?;
        let (picture, _) = scene.picture(gpu, &pose, settings, SIZE, 0.0)?;
        let path = folder.join(format!("flight-{}.png", number + 1));
        write_png(&path, true, &picture)?;
        written.push(path);
    }
    Ok(written)
}

/// A place on the way from the start to a quarter before the middle of the world, descending.
fn along(meta: &Meta, start: &Pose, share: f64, exaggeration: f64) -> Pose {
    let [width, depth] = meta.size_m();
    let top = meta.height_range[1] as f64 * meta.height_step_m * exaggeration;
    let middle = dvec3(width * 0.5, top * 0.4, depth * 0.5);
    let eye = start.eye.lerp(middle, 0.75 * share);
    Pose::looking_at(eye, middle)
}
