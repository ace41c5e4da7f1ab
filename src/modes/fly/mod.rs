//! `highfell fly`: the window, or pictures of a short flight where there is no display.

mod app;
pub mod bindings;
pub mod controller;

use super::cli::ViewArgs;
use super::flight::{self, Pictures};
use super::{first_pose, open_shared, settings, setup};
use crate::error::Result;
use crate::render::Gpu;
use crate::scene::Scene;
use crate::settings::Settings;
use crate::terrain::camera::CameraArg;
use crate::world::World;
use std::path::Path;
use std::sync::Arc;
use winit::event_loop::EventLoop;

/// Where a flight without a display leaves its pictures.
const PICTURE_FOLDER: &str = "highfell-pictures";

/// `force` is for the pictures.
pub fn run(
    world: Option<&Path>,
    args: &ViewArgs,
    camera: Option<&CameraArg>,
    force: bool,
) -> Result<()> {
    let title = world
        .and_then(Path::file_name)
        .map_or("built-in archipelago".into(), |name| {
            name.to_string_lossy().into_owned()
        });
    let event_loop = EventLoop::new();
    let world = open_shared(world)?;
    let settings = settings(args, &world)?;
    match event_loop {
        Ok(event_loop) => app::fly(event_loop, world, settings, args, camera, &title),
        Err(error) => {
            log::debug!("{error}");
            let pictures = Pictures::new(Path::new(PICTURE_FOLDER), force)?;
            fly_without_display(world, &settings, args, camera, &pictures)
        }
    }
}

fn fly_without_display(
    world: Arc<World>,
    settings: &Settings,
    args: &ViewArgs,
    camera: Option<&CameraArg>,
    pictures: &Pictures,
) -> Result<()> {
    let gpu = Gpu::open(&args.adapter)?;
    let start = first_pose(camera, &world, settings.lod.exaggeration)?;
    let mut scene = Scene::for_pictures(&gpu, world, &setup(args, 1))?;
    tell!(
        "no display to open a window on (set DISPLAY or WAYLAND_DISPLAY for one); flying without it"
    );
    let written = flight::fly_headless(&gpu, &mut scene, &start, settings, pictures)?;
    for path in &written {
        tell!("wrote {}", path.display());
    }
    tell!(
        "{} pictures of the flight are in {PICTURE_FOLDER}",
        written.len()
    );
    Ok(())
}
