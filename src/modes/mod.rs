//! What the program can do, one file a verb.

pub mod builtin;
pub mod cli;
pub mod compile;
pub mod fly;
pub mod inspect;
pub mod shot;

mod flight;

use crate::error::{Error, Result};
use crate::files;
use crate::render::gpu;
use crate::settings::Settings;
use crate::terrain::camera::{CameraArg, Pose};
use crate::world::{Meta, World};
use clap::Parser;
use cli::{Cli, Command, ViewArgs};
use glam::dvec3;
use std::path::Path;
use std::sync::Arc;

/// Parses the command line and does what it says.
pub fn run() -> Result<()> {
    let cli = Cli::parse();
    let default_level = if cli.verbose { "highfell=debug,warn" } else { "highfell=warn,error" };
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(default_level))
        .format(|out, record| {
            use std::io::Write;
            writeln!(out, "highfell: {}: {}", record.level().as_str().to_lowercase(), record.args())
        })
        .init();
    if cli.list_adapters {
        return list_adapters();
    }
    match cli.command {
        None => fly::run(None, &cli.view, None),
        Some(Command::Fly(args)) => fly::run(args.world.as_deref(), &args.view, args.camera.as_ref()),
        Some(Command::Compile(args)) => compile::run(&args),
        Some(Command::Shot(args)) => shot::run(&args),
        Some(Command::Inspect(args)) => inspect::run(&args),
    }
}

/// Opens a world, or the built-in one.
pub fn open_world(path: Option<&Path>) -> Result<World> {
    match path {
        Some(path) => files::open_world(path),
        None => builtin::open(),
    }
}

/// The settings that the flags ask for.
pub fn settings(args: &ViewArgs) -> Settings {
    let mut settings = Settings { view: args.view, fov_deg: args.fov, ..Settings::default() };
    settings.lod.exaggeration = args.exaggerate;
    settings.lod.pixel_error = args.pixel_error;
    settings.lod.by_hand_m = args.ranges.iter().map(|&range| Some(range)).collect();
    [settings.sun_azimuth_deg, settings.sun_height_deg] = args.sun.0;
    settings.fog_m = args.fog_km * 1000.0;
    settings.water = !args.no_water;
    settings.skirts = !args.no_skirts;
    settings.hidden_patch = args.hide_patch;
    settings
}

/// A first look at a world: from its south-west, over the ground, at its middle.
pub fn start_pose(meta: &Meta, exaggeration: f64) -> Pose {
    let [width, depth] = meta.size_m();
    let top = meta.height_range[1] as f64 * meta.height_step_m * exaggeration;
    let low = meta.height_range[0] as f64 * meta.height_step_m * exaggeration;
    let low = meta.sea_level_m.map_or(low, |sea| low.max(sea * exaggeration));
    let away = 0.42 * width.max(depth);
    let eye = dvec3(width * 0.5 - away * 0.55, top + 0.10 * away, depth * 0.5 + away * 0.83);
    Pose::looking_at(eye, dvec3(width * 0.5, low + 0.3 * (top - low), depth * 0.5))
}

/// The camera a flag asks for, its height counted from the ground where it says so.
pub fn pose_of(arg: &CameraArg, ground_m: impl Fn(f64, f64) -> f64) -> Pose {
    let mut pose = arg.pose;
    if arg.above_ground {
        pose.eye.y += ground_m(pose.eye.x, pose.eye.z);
    }
    pose
}

/// True when nothing could be overwritten, or may be.
fn check_may_write(path: &Path, force: bool) -> Result<()> {
    if path.exists() && !force {
        return Err(Error::Usage(format!(
            "{}: exists already; pass --force to overwrite it, or another name with -o",
            path.display()
        )));
    }
    Ok(())
}

fn list_adapters() -> Result<()> {
    let adapters = gpu::list_adapters();
    if adapters.is_empty() {
        // Says what to install.
        gpu::Gpu::open(&Default::default())?;
    }
    adapters.iter().for_each(|adapter| println!("{adapter}"));
    Ok(())
}

fn open_shared(path: Option<&Path>) -> Result<Arc<World>> {
    Ok(Arc::new(open_world(path)?))
}
