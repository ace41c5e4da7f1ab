//! What a frame costs its thread: selecting and culling of ground by patch, for worlds of fewer
//! and of more patch maps.
//!
//! The frames are flown without being drawn: a software adapter would run on the same cores and
//! fill their caches with pixels between two selections.

use glam::DVec3;
use highfell::files::open_world;
use highfell::modes::GroundReader;
use highfell::render::{AdapterChoice, Gpu};
use highfell::scene::Scene;
use highfell::settings::{Settings, Setup};
use highfell::terrain::camera::Pose;
use highfell::terrain::flight::Flight;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SIZE: [u32; 2] = [1280, 720];
const ROUNDS: usize = 5;
/// Frames a round, at 60 a second.
const FRAMES: u32 = 300;
const STEP_S: f64 = 1.0 / 60.0;
const SPEED_M_S: f64 = 100.0;
const CLEARANCE_M: f64 = 100.0;
const PATIENCE: Duration = Duration::from_secs(60);

/// One world on its flight.
struct Course {
    name: String,
    maps: u8,
    scene: Scene,
    flight: Flight,
    /// Nanoseconds a selected patch, frame by frame, of selecting and of culling.
    costs_ns: [Vec<f64>; 2],
    selected: Vec<f64>,
    drawn: Vec<f64>,
}

/// Prints one row for each world, and how many times as much the last costs as the first.
pub fn table(paths: &[String]) -> Result<(), Box<dyn Error>> {
    let gpu = Gpu::open(&AdapterChoice::Software)?;
    let mut courses = Vec::new();
    for path in paths {
        courses.push(Course::open(&gpu, path)?);
    }
    // They take turns, so that whatever else the machine does meets them alike.
    for _ in 0..ROUNDS {
        for course in &mut courses {
            course.fly(&gpu)?;
        }
    }
    println!(
        "| world | patch maps | patches selected | drawn | select, ns a selected patch | cull | both | both, 99 % of frames |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut both = Vec::new();
    for course in &mut courses {
        both.push(course.row());
    }
    if let [first, .., last] = both[..] {
        println!(
            "\nThe last costs {:.2} times as much a patch as the first.",
            last / first
        );
    }
    Ok(())
}

impl Course {
    fn open(gpu: &Gpu, path: &str) -> Result<Self, Box<dyn Error>> {
        let world = Arc::new(open_world(Path::new(path))?);
        let [width, depth] = world.meta.size_m();
        let start = Pose {
            eye: DVec3::new(width * 0.3, 0.0, depth * 0.5),
            yaw_deg: 60.0,
            pitch_deg: -5.0,
        };
        let seconds = f64::from(FRAMES) * STEP_S;
        let mut reader = GroundReader::open(&world, 1.0)?;
        let ground = |x, z| reader.at(x, z);
        let flight = Flight::straight(&start, SPEED_M_S, seconds, CLEARANCE_M, ground)?;
        Ok(Course {
            name: path.to_owned(),
            maps: world.meta.layout.levels,
            scene: Scene::for_pictures(gpu, world, &Setup::default())?,
            flight,
            costs_ns: [Vec::new(), Vec::new()],
            selected: Vec::new(),
            drawn: Vec::new(),
        })
    }

    fn fly(&mut self, gpu: &Gpu) -> Result<(), Box<dyn Error>> {
        let settings = Settings::default();
        for number in 0..FRAMES {
            let seconds = f64::from(number) * STEP_S;
            let pose = self.flight.at(seconds);
            self.scene.settle(gpu, &pose, &settings, SIZE, PATIENCE)?;
            let stats = self
                .scene
                .frame_without_drawing(gpu, &pose, &settings, SIZE, seconds);
            let patches = stats.patches_selected as f64;
            let [select, cull] = &mut self.costs_ns;
            select.push(stats.cpu_ms.select * 1e6 / patches);
            cull.push(stats.cpu_ms.cull * 1e6 / patches);
            self.selected.push(patches);
            self.drawn
                .push(stats.patches_drawn.iter().sum::<u64>() as f64);
        }
        Ok(())
    }

    /// Prints the row; the median cost of both.
    fn row(&mut self) -> f64 {
        let [select, cull] = &self.costs_ns;
        let mut both: Vec<f64> = select.iter().zip(cull).map(|(a, b)| a + b).collect();
        let [select, cull] = &mut self.costs_ns;
        println!(
            "| {} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            self.name,
            self.maps,
            share(&mut self.selected, 0.5),
            share(&mut self.drawn, 0.5),
            share(select, 0.5),
            share(cull, 0.5),
            share(&mut both, 0.5),
            share(&mut both, 0.99),
        );
        share(&mut both, 0.5)
    }
}

/// The value that a share of all does not exceed.
fn share(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}
