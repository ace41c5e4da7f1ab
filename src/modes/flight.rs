//! What `fly` does without a display: a short flight whose pictures stay behind.
//!
//! - Pictures of an earlier flight are replaced only where that is asked for.

use super::shot::write_png;
use super::{GroundReader, landmark};
use crate::error::{Error, Result};
use crate::render::Gpu;
use crate::scene::Scene;
use crate::settings::Settings;
use crate::terrain::camera::Pose;
use crate::terrain::flight::Flight;
use glam::DVec3;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SIZE: [u32; 2] = [1280, 720];
const PICTURES: u32 = 4;
const CLEARANCE_M: f64 = 60.0;
const PATIENCE: Duration = Duration::from_secs(60);

/// The pictures that a flight will leave in a folder, which need not be there.
pub struct Pictures {
    folder: PathBuf,
    force: bool,
}

impl Pictures {
    /// Refuses before the flight what would replace pictures of an earlier one.
    pub fn new(folder: &Path, force: bool) -> Result<Self> {
        let pictures = Pictures {
            folder: folder.to_owned(),
            force,
        };
        let old = pictures
            .paths()
            .find(|path| path.symlink_metadata().is_ok());
        match old.filter(|_| !force) {
            Some(path) => Err(Error::Usage(format!(
                "{}: is left from an earlier flight; pass --force to overwrite it, or fly in another folder",
                path.display()
            ))),
            None => Ok(pictures),
        }
    }

    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        (1..=PICTURES).map(|number| self.folder.join(format!("flight-{number}.png")))
    }
}

/// Where a flight goes.
pub enum Way<'a> {
    /// From a pose in towards the landmark, well above the ground.
    In(Pose),
    Recorded(&'a Flight),
}

/// Returns the paths of the pictures.
pub fn fly_headless(
    gpu: &Gpu,
    scene: &mut Scene,
    way: &Way,
    settings: &Settings,
    pictures: &Pictures,
) -> Result<Vec<PathBuf>> {
    let folder = &pictures.folder;
    std::fs::create_dir_all(folder)
        .map_err(|error| Error::io(folder, "cannot be created", error))?;
    let exaggeration = settings.lod.exaggeration;
    let target = landmark(&scene.world().meta, exaggeration);
    let paths: Vec<PathBuf> = pictures.paths().collect();
    for (number, path) in paths.iter().enumerate() {
        let share = number as f64 / (PICTURES - 1) as f64;
        let pose = match way {
            Way::Recorded(flight) => flight.at(share * flight.seconds()),
            Way::In(start) => {
                let mut pose = along(start, target, share);
                let (x, z) = (pose.eye.x, pose.eye.z);
                let ground = GroundReader::open(scene.world(), exaggeration)?.at(x, z)?;
                pose.eye.y = pose.eye.y.max(ground + CLEARANCE_M);
                pose
            }
        };
        scene.settle(gpu, &pose, settings, SIZE, PATIENCE)?;
        let (picture, _) = scene.picture(gpu, &pose, settings, SIZE, 0.0)?;
        write_png(path, pictures.force, &picture)?;
    }
    Ok(paths)
}

/// A place on the way from the start to a quarter before the target, descending.
fn along(start: &Pose, target: DVec3, share: f64) -> Pose {
    Pose::looking_at(start.eye.lerp(target, 0.75 * share), target)
}
