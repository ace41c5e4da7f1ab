//! `highfell fly`: the window, or pictures of a short flight where there is no display.

use super::cli::ViewArgs;
use super::{flight, open_shared, settings, start_pose};
use crate::error::Result;
use crate::render::Gpu;
use crate::scene::Scene;
use crate::terrain::camera::CameraArg;
use std::path::Path;

pub fn run(world: Option<&Path>, args: &ViewArgs, _camera: Option<&CameraArg>) -> Result<()> {
    let world = open_shared(world)?;
    let gpu = Gpu::open(&args.adapter)?;
    let settings = settings(args, &world.meta);
    let mut scene = Scene::for_pictures(&gpu, world)?;
    let start = start_pose(&scene.world().meta, settings.lod.exaggeration);
    let folder = Path::new("highfell-pictures");
    let written = flight::fly_headless(&gpu, &mut scene, &start, &settings, folder)?;
    eprintln!("wrote {} pictures to {}", written.len(), folder.display());
    Ok(())
}
