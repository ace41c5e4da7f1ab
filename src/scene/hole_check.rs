//! Counts hole pixels: draws the hole view and asks of every pixel without ground whether its
//! ray must have met some.

use super::{Scene, bad_world};
use crate::error::Result;
use crate::render::{Gpu, Picture};
use crate::settings::{Settings, Stats, View};
use crate::terrain::camera::{Pose, Viewpoint};
use crate::terrain::height_map::HeightMap;
use crate::terrain::holes::HoleTest;
use crate::world::{FormatError, HeightGrid, StoredHeights, World};

/// A check holds all heights of its world in memory: no more than 1 GiB of them.
const MOST_SAMPLES: u64 = 1 << 28;

/// Corners are snapped to fractions of a pixel before triangles are filled; what is decided by
/// less is no hole.
const SNAP_PX: f64 = 1.0 / 64.0;

/// The full-resolution ground of a world, as rays are tested against it.
pub struct HoleCheck {
    test: HoleTest,
    /// How far these heights may be from the true ones, in metres as drawn.
    rebuilt_error_m: f64,
}

impl HoleCheck {
    /// Reads all heights of a world.
    pub fn new(world: &World, exaggeration: f64) -> Result<Self> {
        let map = all_heights(world).map_err(|error| bad_world(world, &error.to_string()))?;
        let meta = &world.meta;
        let rebuilt_error_m = match meta.heights {
            StoredHeights::All => 0.0,
            StoredHeights::Nodes => meta.levels[0].max_error_m + meta.height_step_m / 2.0,
        };
        let mut test = HoleTest::new(map, meta.spacing_m, meta.height_step_m * exaggeration);
        if meta.kept_voids > 0 {
            let absent = all_voids(world);
            test = test.leave_out(absent.map_err(|error| bad_world(world, &error.to_string()))?);
        }
        Ok(HoleCheck {
            test,
            rebuilt_error_m: rebuilt_error_m * exaggeration,
        })
    }

    /// Hole pixels of a frame; what is missing is not waited for.
    pub fn count(
        &self,
        gpu: &Gpu,
        scene: &mut Scene,
        pose: &Pose,
        settings: &Settings,
        size: [u32; 2],
        seconds: f64,
    ) -> Result<u64> {
        let settings = hole_view(settings);
        let (picture, stats) = scene.picture(gpu, pose, &settings, size, seconds)?;
        Ok(self.holes(&picture, &stats, pose, &settings))
    }

    /// Hole pixels of the last frame, which had these counters, from its pose.
    pub fn count_again(
        &self,
        gpu: &Gpu,
        scene: &mut Scene,
        pose: &Pose,
        settings: &Settings,
        size: [u32; 2],
        stats: &Stats,
    ) -> Result<u64> {
        let settings = hole_view(settings);
        let picture = scene.picture_again(gpu, pose, &settings, size, 0.0)?;
        Ok(self.holes(&picture, stats, pose, &settings))
    }

    fn holes(&self, picture: &Picture, stats: &Stats, pose: &Pose, settings: &Settings) -> u64 {
        let size = picture.size;
        let [error_m, at_eye_m] = [stats.largest_drawn_error_m, stats.error_at_eye_m]
            .map(|error_m| error_m + self.rebuilt_error_m);
        let viewpoint = Viewpoint::new(pose, settings.fov_deg, size);
        let must_hit = |x: f64, y: f64| {
            let ray = viewpoint.ray(x / size[0] as f64, y / size[1] as f64);
            self.test.must_hit(pose.eye, ray, error_m, at_eye_m)
        };
        let is_hole = |(i, pixel): (usize, &[u8; 4])| {
            let (x, y) = (i as u32 % size[0], i as u32 / size[0]);
            let (x, y) = (x as f64 + 0.5, y as f64 + 0.5);
            let around = [
                (0.0, -SNAP_PX),
                (0.0, SNAP_PX),
                (-SNAP_PX, 0.0),
                (SNAP_PX, 0.0),
            ];
            pixel[1] == 0 && around.iter().all(|(dx, dy)| must_hit(x + dx, y + dy))
        };
        let pixels = picture.pixels.iter().enumerate();
        pixels.filter(|&pixel| is_hole(pixel)).count() as u64
    }
}

fn hole_view(settings: &Settings) -> Settings {
    Settings {
        view: View::Hole,
        ..settings.clone()
    }
}

/// All heights of a world, from its finest sections.
pub fn all_heights(world: &World) -> std::result::Result<HeightMap, FormatError> {
    let layout = &world.meta.layout;
    let [width, height] = layout.size_cells.map(|cells| cells + 1);
    let samples = width as u64 * height as u64;
    if samples > MOST_SAMPLES {
        return Err(FormatError(format!(
            "{samples} heights at once; at most {MOST_SAMPLES} are expected"
        )));
    }
    let mut map = HeightMap {
        width,
        height,
        heights: vec![0; samples as usize],
    };
    let repository = world.read_repository()?;
    let coarse = &repository
        .last()
        .expect("at least the coarsest level")
        .heights;
    match layout.stream_levels.checked_sub(1) {
        None => copy(&mut map, coarse),
        Some(level) => {
            for stream_patch in layout.keys(level) {
                copy(&mut map, world.read_finest(stream_patch, coarse)?.as_ref());
            }
        }
    }
    Ok(map)
}

/// Which samples of a world are kept voids, row by row.
fn all_voids(world: &World) -> std::result::Result<Vec<bool>, FormatError> {
    let layout = &world.meta.layout;
    let [width, height] = layout.size_cells.map(|cells| cells + 1);
    let mut absent = vec![false; width as usize * height as usize];
    for section in layout.sections(0) {
        let Some(samples) = world.read_coverage(section)? else {
            continue;
        };
        let [x0, z0, ..] = layout.section_patches(section);
        let [x0, z0] = [x0, z0].map(|patch| patch * layout.patch_cells);
        for z in z0..(z0 + samples.height).min(height) {
            for x in x0..(x0 + samples.width).min(width) {
                absent[z as usize * width as usize + x as usize] =
                    !samples.is_present(x - x0, z - z0);
            }
        }
    }
    Ok(absent)
}

/// Copies what a grid of full resolution has of the map.
fn copy(map: &mut HeightMap, grid: &HeightGrid) {
    let rect = grid.rect;
    let columns = rect.x0.max(0)..(rect.x0 + rect.width as i32).min(map.width as i32);
    for z in rect.z0.max(0)..(rect.z0 + rect.height as i32).min(map.height as i32) {
        for x in columns.clone() {
            map.heights[z as usize * map.width as usize + x as usize] = grid.at(x, z);
        }
    }
}
