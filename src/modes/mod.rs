//! What the program can do, one file a verb.

/// A line on stderr; where nobody reads it, the work is done all the same.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

pub mod bench;
pub mod builtin;
pub mod cli;
pub mod compile;
pub mod export;
pub mod fly;
pub mod inspect;
pub mod shot;
pub mod values;
pub mod verify;

mod arguments;
mod flight;
mod patch;
mod recorded;
mod sections;

use crate::error::{Error, Result};
use crate::files;
use crate::render::gpu;
use crate::settings::{Settings, Setup, Shading};
use crate::terrain::camera::{CameraArg, Pose};
use crate::world::water::surface_m;
use crate::world::{HeightReader, Meta, WaterMask, World};
use cli::{Command, FlyArgs, ViewArgs};
use glam::{DVec3, dvec3};
use std::path::Path;
use std::sync::Arc;

/// Calls a function when the user or the system asks the program to end.
fn on_interrupt(what: impl FnMut() + Send + 'static) {
    if let Err(error) = ctrlc::set_handler(what) {
        log::warn!("Ctrl-C will not end this cleanly: {error}");
    }
}

/// For verbs that write files and have nothing else to clean up.
fn leave_nothing_unfinished() {
    on_interrupt(|| {
        files::remove_unfinished();
        std::process::exit(2);
    });
}

/// Parses the command line and does what it says.
pub fn run() -> Result<()> {
    let Some(cli) = arguments::read()? else {
        return Ok(());
    };
    // What the Vulkan loader says of missing drivers comes back as an error of ours.
    let default_level = if cli.verbose {
        "highfell=debug,warn"
    } else {
        "highfell=warn,wgpu_hal::vulkan::instance=off,error"
    };
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(default_level))
        .format(|out, record| {
            use std::io::Write;
            writeln!(
                out,
                "highfell: {}: {}",
                record.level().as_str().to_lowercase(),
                record.args()
            )
        })
        .init();
    if cli.list_adapters {
        return list_adapters();
    }
    match cli.command {
        None => fly::run(&FlyArgs {
            lose_device_after: None,
            world: None,
            camera: None,
            record: None,
            play: None,
            force: cli.force,
            view: cli.view,
        }),
        Some(Command::Fly(args)) => fly::run(&args),
        Some(Command::Compile(args)) => compile::run(&args),
        Some(Command::Shot(args)) => shot::run(&args),
        Some(Command::Bench(args)) => bench::run(&args),
        Some(Command::Inspect(args)) => inspect::run(&args),
        Some(Command::Verify(args)) => verify::run(&args),
        Some(Command::Export(args)) => export::run(&args),
    }
}

/// Opens a world, or the built-in one.
pub fn open_world(path: Option<&Path>) -> Result<World> {
    match path {
        Some(path) => files::open_world(path),
        None => builtin::open(),
    }
}

/// The settings that the flags ask for; an error where a patch is to be hidden that is not there.
fn settings(args: &ViewArgs, world: &World) -> Result<Settings> {
    if let Some(hidden) = args.hide_patch {
        patch::check_exists(world, hidden)?;
    }
    let mut settings = Settings {
        view: args.view,
        fov_deg: args.fov,
        ..Settings::default()
    };
    settings.lod.exaggeration = args.exaggerate;
    settings.lod.pixel_error = args.pixel_error;
    settings.lod.by_hand_m = args.ranges.iter().map(|&range| Some(range)).collect();
    [settings.sun_azimuth_deg, settings.sun_height_deg] = args.sun.0;
    let [width, depth] = world.meta.size_m();
    // The air of a large world is clearer, so that all of it can be seen.
    settings.fog_m = args
        .fog_km
        .map_or((1.5 * width.max(depth)).max(60_000.0), |km| km * 1000.0);
    settings.water = !args.no_water;
    settings.morph = !args.no_morph;
    settings.skirts = !args.no_skirts;
    settings.hidden_patch = args.hide_patch;
    Ok(settings)
}

/// What the flags ask a scene to be opened with; `usual` where they do not say.
pub fn setup(args: &ViewArgs, usual: Setup) -> Setup {
    let plain = args.shading.map(|shading| shading == Shading::Plain);
    Setup {
        mesher: args.mesher,
        msaa: args.msaa.map_or(usual.msaa, u32::from),
        multi_draw: !args.plain_draws,
        plain: plain.unwrap_or(usual.plain),
    }
}

/// A first look at a world: at its landmark, from the side of the middle.
pub fn start_pose(meta: &Meta, exaggeration: f64) -> Pose {
    let [width, depth] = meta.size_m();
    let span = width.max(depth);
    let [low, high] = land(meta, exaggeration);
    let relief = high - low;
    let target = landmark(meta, exaggeration);
    let away = (6.0 * relief).clamp(0.15 * span, 0.5 * span);
    // Towards the middle, but never straight up a meridian: slopes read better in slanting light.
    let to_middle = dvec3(width * 0.5 - target.x, 0.0, depth * 0.5 - target.z);
    let side = (to_middle / (0.5 * span) + dvec3(-0.35, 0.0, 0.6)).normalize();
    let mut eye = target + side * away;
    eye.x = eye.x.clamp(0.03 * width, 0.97 * width);
    eye.z = eye.z.clamp(0.03 * depth, 0.97 * depth);
    eye.y = high + (0.15 * relief).max(0.06 * away);
    // Down on low land too, or there would be little but sky.
    eye.y = eye.y.max(target.y + 0.15 * away);
    Pose::looking_at(eye, target)
}

/// The lowest and the highest land as drawn; the sea's surface where there is none above it.
fn land(meta: &Meta, exaggeration: f64) -> [f64; 2] {
    let step = meta.height_step_m * exaggeration;
    let [low, high] = meta.height_range.map(|height| height as f64 * step);
    let sea = meta.sea_level_m.map(|sea| sea * exaggeration);
    let low = sea.map_or(low, |sea| low.max(sea));
    [low, high.max(low)]
}

/// What is worth looking at: the summit, below its top, or the middle of a world as good as flat.
fn landmark(meta: &Meta, exaggeration: f64) -> DVec3 {
    let [width, depth] = meta.size_m();
    let [low, high] = land(meta, exaggeration);
    let y = low + 0.4 * (high - low);
    if high - low < width.max(depth) / 500.0 {
        return dvec3(0.5 * width, y, 0.5 * depth);
    }
    let [x, z] = [0, 1].map(|axis| meta.summit[axis] as f64 * meta.spacing_m[axis]);
    dvec3(x, y, z)
}

/// The camera a flag asks for, its height counted from the ground where it says so; without a
/// flag a first look at the world.
pub fn first_pose(camera: Option<&CameraArg>, world: &World, exaggeration: f64) -> Result<Pose> {
    let Some(camera) = camera else {
        return Ok(start_pose(&world.meta, exaggeration));
    };
    let mut pose = camera.pose;
    if camera.above_ground {
        let error_m = world.meta.levels[0].max_error_m * exaggeration;
        if pose.eye.y < error_m {
            log::warn!(
                "+{} m may be under the drawn ground, which is up to {error_m:.1} m off the heights (compile with a smaller --error)",
                pose.eye.y
            );
        }
        pose.eye.y += GroundReader::open(world, exaggeration)?.at(pose.eye.x, pose.eye.z)?;
    }
    Ok(pose)
}

/// The height of the ground as drawn, or of the sea over it, from the finest heights in the file.
pub struct GroundReader<'a> {
    world: &'a World,
    heights: HeightReader<'a>,
    mask: Option<WaterMask>,
    exaggeration: f64,
}

impl<'a> GroundReader<'a> {
    pub fn open(world: &'a World, exaggeration: f64) -> Result<Self> {
        let bad_world = |error| files::bad_world(Path::new(&world.name), error);
        Ok(GroundReader {
            world,
            heights: HeightReader::new(world).map_err(bad_world)?,
            mask: world.read_water_mask().map_err(bad_world)?,
            exaggeration,
        })
    }

    /// Metres at a place in metres.
    pub fn at(&mut self, x_m: f64, z_m: f64) -> Result<f64> {
        let meta = &self.world.meta;
        let [x, z] = [x_m / meta.spacing_m[0], z_m / meta.spacing_m[1]];
        let height = self.heights.at(x, z);
        let height =
            height.map_err(|error| files::bad_world(Path::new(&self.world.name), error))?;
        let ground_m = height * meta.height_step_m;
        Ok(self.exaggeration * surface_m(meta, self.mask.as_ref(), [x, z], ground_m))
    }
}

/// Refuses what would overwrite something by accident: existing files without `--force`, and
/// devices, folders and the inputs of the same run whatever is passed.
fn check_may_write(path: &Path, force: bool, inputs: &[&Path]) -> Result<()> {
    let refuse = |why: &str| Err(Error::Usage(format!("{}: {why}", path.display())));
    let folder = files::folder_of(path);
    if !folder.is_dir() {
        return refuse(&format!(
            "there is no folder {}; make it, or choose another name",
            folder.display()
        ));
    }
    let ends_open = path.to_string_lossy().ends_with(std::path::is_separator);
    if path.file_name().is_none() || ends_open {
        return refuse("is the name of a folder; expected that of a file to write");
    }
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(path, "cannot be written", error)),
        Ok(_) => {}
    }
    let Ok(real) = path.canonicalize() else {
        return refuse("is a link to nowhere; expected the name of a file to write");
    };
    if !real.is_file() {
        return refuse("is a folder or a device; expected the name of a file to write");
    }
    if inputs.iter().any(|input| files::same_place(input, path)) {
        return refuse("is read by this very command; choose another name to write to");
    }
    if !force {
        return refuse("exists already; pass --force to overwrite it, or choose another name");
    }
    Ok(())
}

/// Prints to stdout.
fn print(text: &str) -> Result<()> {
    use std::io::Write;
    printed(writeln!(std::io::stdout().lock(), "{text}"))
}

/// Whoever closed stdout (`| head`) has read enough.
fn printed(written: std::io::Result<()>) -> Result<()> {
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::io(
            Path::new("standard output"),
            "cannot be written",
            error,
        )),
        _ => Ok(()),
    }
}

fn list_adapters() -> Result<()> {
    let adapters = gpu::list_adapters();
    if adapters.is_empty() {
        // Says what to install.
        gpu::Gpu::open(&Default::default())?;
    }
    print(&adapters.join("\n"))
}

fn open_shared(path: Option<&Path>) -> Result<Arc<World>> {
    Ok(Arc::new(open_world(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, compile};
    use crate::source::Source;
    use crate::terrain::height_map::HeightMap;
    use crate::world::SourceInfo;

    fn meta(sea_level_m: Option<f64>, height: impl Fn(u32, u32) -> i32) -> Meta {
        let heights = (0..65 * 65).map(|i| height(i % 65, i / 65)).collect();
        let source = Source {
            ground: Box::new(HeightMap {
                width: 65,
                height: 65,
                heights,
            }),
            step_m: 0.1,
            spacing_m: [100.0, 120.0],
            info: SourceInfo::made_up("made.asc", [0.0, 1.0]),
        };
        let options = CompileOptions {
            sea_level_m,
            ..CompileOptions::default()
        };
        compile(&source, &options, |_| Ok(())).expect("sound").1
    }

    #[test]
    fn the_first_look_meets_ground_however_low_it_is() {
        let flat = |_, _| 0;
        let dunes = |x: u32, z: u32| ((x * 7 + z * 3) % 9) as i32;
        let sunk = |_, _| -500;
        let alp = |x: u32, z: u32| 9000 - 100 * (x.abs_diff(12) + z.abs_diff(50)) as i32;
        for (name, meta) in [
            ("flat", meta(None, flat)),
            ("flat at the sea", meta(Some(0.0), flat)),
            ("dunes", meta(Some(0.2), dunes)),
            ("under water", meta(Some(3.0), sunk)),
            ("mountains", meta(Some(0.0), alp)),
        ] {
            let pose = start_pose(&meta, 1.0);
            let [low, high] = land(&meta, 1.0);
            let forward = pose.forward();
            assert!(pose.eye.y > high && forward.y < -0.12, "{name}: {pose}");
            let ground = low + 0.4 * (high - low);
            let met = pose.eye + forward * ((ground - pose.eye.y) / forward.y);
            let [width, depth] = meta.size_m();
            let inside = (0.0..=width).contains(&met.x) && (0.0..=depth).contains(&met.z);
            assert!(inside, "{name}: {pose} looks at {met}");
        }
    }

    #[test]
    fn a_landmark_is_the_summit_where_there_is_one() {
        let alp = meta(None, |x, z| {
            9000 - 100 * (x.abs_diff(12) + z.abs_diff(50)) as i32
        });
        let found = landmark(&alp, 1.0);
        assert_eq!((found.x, found.z), (1200.0, 6000.0));
        let plain = landmark(&meta(None, |x, z| i32::from(x + z == 0)), 1.0);
        assert_eq!((plain.x, plain.z), (3200.0, 3840.0));
    }
}
