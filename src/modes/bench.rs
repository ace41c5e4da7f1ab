//! `highfell bench`: a flight without a window, frame by frame, and what each frame took.
//!
//! The frames are those of the window: the same function, the same streaming. Only between them
//! it waits for the GPU, so that times belong to frames, and counts hole pixels in a second
//! picture of what was drawn.

pub mod args;
mod report;

use super::recorded::read_flight;
use super::{GroundReader, check_may_write, first_pose, open_shared, print, settings, setup};
use crate::error::Result;
use crate::files;
use crate::render::Gpu;
use crate::render::target::PictureTarget;
use crate::scene::hole_check::HoleCheck;
use crate::scene::{Scene, Target};
use crate::settings::{Settings, Setup, Stats};
use crate::terrain::camera::Pose;
use crate::terrain::flight::Flight;
use crate::world::World;
use args::BenchArgs;
use glam::dvec3;
use indicatif::ProgressBar;
use report::{Frame, Report};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Seconds from frame to frame.
const STEP_S: f64 = 1.0 / 60.0;
/// How far above the ground a straight flight stays.
const CLEARANCE_M: f64 = 100.0;
const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(args: &BenchArgs) -> Result<()> {
    let inputs: Vec<&Path> = args.world.iter().chain(&args.play).map(|p| &**p).collect();
    if let Some(path) = &args.json {
        check_may_write(path, args.force, &inputs)?;
    }
    let recorded = args.play.as_deref().map(read_flight).transpose()?;
    let world = open_shared(args.world.as_deref())?;
    let gpu = Gpu::open(&args.view_args.adapter)?;
    let settings = settings(&args.view_args, &world)?;
    let (flight, step_s) = flight(args, recorded, &world, settings.lod.exaggeration)?;
    let holes = (!args.no_holes).then(|| HoleCheck::new(&world, settings.lod.exaggeration));
    if let Some(Err(error)) = &holes {
        log::warn!("hole pixels are not counted: {error}");
    }
    let scene = Scene::for_pictures(&gpu, world, &setup(&args.view_args, Setup::default()))?;
    let mut bench = Bench {
        target: PictureTarget::new(&gpu, args.size.0)?,
        size: args.size.0,
        holes: holes.and_then(Result::ok),
        gpu,
        scene,
        settings,
    };
    let report = bench.fly(&flight, step_s, args)?;
    if let Some(path) = &args.json {
        let text = report.to_json();
        files::write_beside(path, args.force, |out| writeln!(out, "{text}"))?;
    }
    print(&report.to_text())
}

/// The flight that is asked for, and the seconds from one of its frames to the next.
fn flight(
    args: &BenchArgs,
    recorded: Option<Flight>,
    world: &World,
    exaggeration: f64,
) -> Result<(Flight, f64)> {
    let frames = args.frames;
    let start = first_pose(args.camera.as_ref(), world, exaggeration)?;
    let seconds = f64::from(frames - 1) * STEP_S;
    if let Some(flight) = recorded {
        let step_s = flight.seconds() / f64::from((frames - 1).max(1));
        return Ok((flight, step_s));
    }
    let flight = match args.straight {
        Some(speed) => {
            let mut reader = GroundReader::open(world, exaggeration)?;
            let ground = |x, z| reader.at(x, z);
            Flight::straight(&start, speed, seconds, CLEARANCE_M, ground)?
        }
        None => {
            let meta = &world.meta;
            let summit_m = meta.height_range[1] as f64 * meta.height_step_m * exaggeration;
            let [x, z] = [0, 1].map(|axis| meta.summit[axis] as f64 * meta.spacing_m[axis]);
            Flight::orbit(&start, dvec3(x, summit_m, z), seconds, frames as usize)
        }
    };
    Ok((flight, STEP_S))
}

/// What is flown with.
struct Bench {
    gpu: Gpu,
    scene: Scene,
    settings: Settings,
    target: PictureTarget,
    size: [u32; 2],
    /// None where holes are not counted.
    holes: Option<HoleCheck>,
}

impl Bench {
    fn fly(&mut self, flight: &Flight, step_s: f64, args: &BenchArgs) -> Result<Report> {
        let frames = args.frames;
        let bar = progress(frames, args.quiet);
        // What comes before the first frame belongs to no frame.
        self.settle(&flight.at(0.0))?;
        self.frame(&flight.at(0.0), 0.0)?;
        let mut report = Report::new(&args.view_args, self.size);
        for number in 0..frames {
            let seconds = f64::from(number) * step_s;
            let pose = flight.at(seconds);
            let start = Instant::now();
            let (stats, gpu_ms) = self.frame(&pose, seconds)?;
            let frame_ms = start.elapsed().as_secs_f64() * 1e3;
            let holes = self.holes.as_ref();
            let hole_pixels = holes.map(|holes| {
                let (gpu, scene) = (&self.gpu, &mut self.scene);
                holes.count_again(gpu, scene, &pose, &self.settings, self.size, &stats)
            });
            report.add(Frame {
                frame_ms,
                gpu_ms,
                hole_pixels: hole_pixels.transpose()?,
                stats,
            });
            bar.inc(1);
        }
        bar.finish_and_clear();
        let last = f64::from(frames - 1) * step_s;
        report.rest_bytes = self.at_rest(&flight.at(last), last)?;
        Ok(report)
    }

    /// One frame, and the GPU's times for it.
    fn frame(&mut self, pose: &Pose, seconds: f64) -> Result<(Stats, BTreeMap<String, f64>)> {
        let target = Target::Picture {
            target: &self.target,
            size: self.size,
        };
        let stats = (self.scene).frame(&self.gpu, pose, &self.settings, seconds, target);
        self.gpu.wait()?;
        Ok((stats, self.scene.gpu_ms(&self.gpu)))
    }

    fn settle(&mut self, pose: &Pose) -> Result<()> {
        (self.scene).settle(&self.gpu, pose, &self.settings, self.size, PATIENCE)
    }

    /// Bytes that a frame writes in which nothing moves.
    fn at_rest(&mut self, pose: &Pose, seconds: f64) -> Result<u64> {
        self.settle(pose)?;
        // Patches that took a place just now fade; the frame after is as the one before.
        for later in [1.0, 2.0] {
            self.frame(pose, seconds + later)?;
        }
        let (stats, _) = self.frame(pose, seconds + 2.0)?;
        Ok(stats.upload_bytes + stats.frame_bytes)
    }
}

fn progress(frames: u32, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let style = "{bar:30} frame {pos} of {len}, {per_sec}, {eta} left";
    ProgressBar::new(frames.into())
        .with_style(indicatif::ProgressStyle::with_template(style).expect("the template is sound"))
}
