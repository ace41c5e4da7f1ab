//! Counts hole pixels: draws the hole view and asks of every pixel without ground whether its
//! ray must have met some.

use super::{Scene, Target};
use crate::error::{Error, Result};
use crate::render::Gpu;
use crate::render::target::PictureTarget;
use crate::settings::{Settings, View};
use crate::terrain::camera::{Pose, Viewpoint};
use crate::terrain::height_map::HeightMap;
use crate::terrain::holes::HoleTest;
use crate::world::{FormatError, HeightGrid, SectionKey, World};
use std::sync::Arc;

/// The full-resolution ground of a world, as rays are tested against it.
pub struct HoleCheck {
    test: HoleTest,
}

impl HoleCheck {
    /// Reads all heights of a world.
    pub fn new(world: &World, exaggeration: f64) -> Result<Self> {
        let map = all_heights(world)
            .map_err(|error| Error::Usage(format!("heights for the hole check: {error}")))?;
        let meta = &world.meta;
        Ok(HoleCheck {
            test: HoleTest::new(map, meta.spacing_m, meta.height_step_m * exaggeration),
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
        let target = PictureTarget::new(gpu, size);
        let settings = Settings {
            view: View::Hole,
            ..settings.clone()
        };
        let stats = scene.frame(
            gpu,
            pose,
            &settings,
            seconds,
            Target::Picture {
                target: &target,
                size,
            },
        );
        let picture = target.read(gpu)?;
        let viewpoint = Viewpoint::new(pose, settings.fov_deg, size);
        let is_hole = |(i, pixel): (usize, &[u8; 4])| {
            let (x, y) = (i as u32 % size[0], i as u32 / size[0]);
            let ray = viewpoint.ray(
                (x as f64 + 0.5) / size[0] as f64,
                (y as f64 + 0.5) / size[1] as f64,
            );
            pixel[1] == 0
                && self
                    .test
                    .must_hit(pose.eye, ray, stats.largest_drawn_error_m)
        };
        Ok(picture
            .pixels
            .iter()
            .enumerate()
            .filter(|&pixel| is_hole(pixel))
            .count() as u64)
    }
}

/// All heights of a world, from its finest sections.
pub fn all_heights(world: &World) -> std::result::Result<HeightMap, FormatError> {
    let layout = &world.meta.layout;
    let [width, height] = layout.size_cells.map(|cells| cells + 1);
    let mut map = HeightMap {
        width,
        height,
        heights: vec![0; width as usize * height as usize],
    };
    let mut global: Vec<Option<Arc<HeightGrid>>> = vec![None; layout.levels as usize];
    for level in (layout.stream_levels..layout.levels).rev() {
        let coarser = global.get(level as usize + 1).cloned().flatten();
        let section = world.read_section(SectionKey { level, x: 0, z: 0 }, coarser.as_ref())?;
        global[level as usize] = Some(section.heights);
    }
    let coarsest_streamed = global[layout.stream_levels as usize].clone();
    if layout.stream_levels == 0 {
        copy(&mut map, &coarsest_streamed.expect("it was read"));
        return Ok(map);
    }
    for region in layout.sections(layout.stream_levels - 1) {
        let mut grid = coarsest_streamed.clone();
        for level in (0..layout.stream_levels).rev() {
            grid = Some(
                world
                    .read_section(SectionKey { level, ..region }, grid.as_ref())?
                    .heights,
            );
        }
        copy(&mut map, &grid.expect("it was read"));
    }
    Ok(map)
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
