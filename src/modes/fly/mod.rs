//! `highfell fly`: the window, or pictures of a short flight where there is no display.

mod app;
pub mod bindings;
pub mod controller;
mod engine;
mod recorder;

use super::cli::FlyArgs;
use super::flight::{self, Pictures, Way};
use super::recorded::{read_flight, write_flight};
use super::{check_may_write, first_pose, open_shared, settings, setup};
use crate::error::{Error, Result};
use crate::render::Gpu;
use crate::scene::Scene;
use crate::settings::{Settings, Setup};
use crate::terrain::flight::Flight;
use crate::world::World;
use std::path::Path;
use std::sync::Arc;
use winit::event_loop::EventLoop;

/// Where a flight without a display leaves its pictures.
const PICTURE_FOLDER: &str = "highfell-pictures";

pub fn run(args: &FlyArgs) -> Result<()> {
    let inputs: Vec<&Path> = args.world.iter().chain(&args.play).map(|p| &**p).collect();
    if let Some(path) = &args.record {
        check_may_write(path, args.force, &inputs)?;
    }
    let recorded = args.play.as_deref().map(read_flight).transpose()?;
    let event_loop = EventLoop::new();
    let world = open_shared(args.world.as_deref())?;
    let settings = settings(&args.view, &world)?;
    match event_loop {
        Ok(event_loop) => {
            let flown = app::fly(event_loop, world, settings, args, recorded)?;
            match (&args.record, flown) {
                (Some(path), Some(flight)) => {
                    write_flight(path, args.force, &flight)?;
                    tell!("wrote {} ({:.1} s)", path.display(), flight.seconds());
                    Ok(())
                }
                _ => Ok(()),
            }
        }
        Err(error) => {
            log::debug!("{error}");
            if args.record.is_some() {
                return Err(Error::Usage(
                    "--record needs a display to fly on (set DISPLAY or WAYLAND_DISPLAY)".into(),
                ));
            }
            let pictures = Pictures::new(Path::new(PICTURE_FOLDER), args.force)?;
            fly_without_display(world, &settings, args, recorded.as_ref(), &pictures)
        }
    }
}

fn fly_without_display(
    world: Arc<World>,
    settings: &Settings,
    args: &FlyArgs,
    recorded: Option<&Flight>,
    pictures: &Pictures,
) -> Result<()> {
    let gpu = Gpu::open(&args.view.adapter)?;
    let start = first_pose(args.camera.as_ref(), &world, settings.lod.exaggeration)?;
    let mut scene = Scene::for_pictures(&gpu, world, &setup(&args.view, Setup::default()))?;
    tell!(
        "no display to open a window on (set DISPLAY or WAYLAND_DISPLAY for one); flying without it"
    );
    let way = match recorded {
        Some(flight) => Way::Recorded(flight),
        None => Way::In(start),
    };
    let written = flight::fly_headless(&gpu, &mut scene, &way, settings, pictures)?;
    for path in &written {
        tell!("wrote {}", path.display());
    }
    tell!(
        "{} pictures of the flight are in {PICTURE_FOLDER}",
        written.len()
    );
    Ok(())
}
