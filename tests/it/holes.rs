//! No hole anywhere: random cameras over two worlds, settled and with streaming under way.
//!
//! A check that never met what it is for proves nothing, so the cases are counted: neighbours of
//! different levels, patches that are missing, pixels that show no ground, and holes where a
//! patch is left out. `HIGHFELL_LONG=1` takes ten times as many cameras.

use std::sync::Arc;
use std::time::Duration;

use glam::{DVec3, dvec3};
use highfell::compile::CompileOptions;
use highfell::import::{ImportOptions, load};
use highfell::scene::Scene;
use highfell::scene::hole_check::{HoleCheck, all_heights};
use highfell::settings::{Settings, Setup, Stats, View};
use highfell::terrain::camera::Pose;
use highfell::terrain::height_map::HeightMap;
use highfell::world::{PatchKey, World};

use crate::common::{SplitMix, built_in_world, data_file, gpu, in_memory, rough_source};

const SIZE: [u32; 2] = [160, 90];
/// Cameras that share a scene while it streams: the later ones find much of the ground there.
const FLIGHT: usize = 10;
/// Frames in a row at one place while streaming, seconds between them.
const FRAMES: usize = 3;
const FRAME_S: f64 = 0.1;

#[test]
fn the_built_in_world_has_no_holes() {
    let ground = Ground::of(built_in_world());
    let cases = fly_over(&ground, cameras(), 1, &Settings::default());
    cases.assert_occurred();
    cases.assert_no_holes();
}

#[test]
fn rough_ground_has_no_holes() {
    let source = match data_file("N43E007.hgt") {
        Some(path) => load(&path, &ImportOptions::default()).expect("a sound file"),
        None => rough_source(700, 500),
    };
    // The finer the mesh, the nearer to it an eye is surely above it.
    let options = CompileOptions {
        error: Some(2.0),
        ..Default::default()
    };
    let ground = Ground::of(in_memory(&source, &options));
    let cases = fly_over(&ground, cameras(), 2, &Settings::default());
    cases.assert_occurred();
    cases.assert_no_holes();
}

#[test]
fn without_skirts_there_are_holes() {
    let ground = Ground::of(in_memory(&rough_source(700, 500), &Default::default()));
    let without = Settings {
        skirts: false,
        ..Settings::default()
    };
    let cases = fly_over(&ground, 40, 3, &without);
    assert!(!cases.holes.is_empty(), "the check finds no crack");
    fly_over(&ground, 40, 3, &Settings::default()).assert_no_holes();
}

#[test]
fn without_a_patch_there_are_holes() {
    let ground = Ground::of(in_memory(&rough_source(257, 193), &Default::default()));
    let mut flight = Flight::new(&ground);
    let eye = dvec3(900.0, 2000.0, 1000.0);
    let pose = Pose::looking_at(eye, eye - DVec3::Y);
    let whole = Settings::default();
    assert_eq!(flight.settled(&pose, &whole).holes, 0);
    let meta = &ground.world.meta;
    let [x, z] = [eye.x / meta.spacing_m[0], eye.z / meta.spacing_m[1]].map(|v| v as u32);
    let keys = (0..meta.layout.levels).map(|level| {
        let size = meta.layout.patch_size(level);
        PatchKey::new(level, x / size, z / size)
    });
    let holes = keys.map(|key| {
        let without = Settings {
            hidden_patch: Some(key),
            ..whole.clone()
        };
        flight.settled(&pose, &without).holes
    });
    assert!(holes.max() > Some(100), "the check finds nothing");
}

fn cameras() -> usize {
    let long = std::env::var_os("HIGHFELL_LONG").is_some_and(|value| value == "1");
    if long { 1000 } else { 100 }
}

/// Flies half of the cameras settled and half while patches still come.
fn fly_over(ground: &Ground, cameras: usize, seed: u64, settings: &Settings) -> Cases {
    let mut random = SplitMix(seed);
    let mut cases = Cases::default();
    let mut settled = Flight::new(ground);
    for _ in 0..cameras / 2 {
        let pose = ground.random_pose(&mut random);
        cases.add(&pose, "settled", settled.settled(&pose, settings));
    }
    for _ in 0..cameras / 2 / FLIGHT {
        let mut fresh = Flight::new(ground);
        for _ in 0..FLIGHT {
            let pose = ground.random_pose(&mut random);
            for _ in 0..FRAMES {
                cases.add(&pose, "streaming", fresh.next_frame(&pose, settings));
            }
        }
    }
    cases
}

/// What was met.
#[derive(Default)]
struct Cases {
    frames: usize,
    mixed_levels: usize,
    streaming: usize,
    /// Frames with ancestors beside the children of others.
    mixed_streaming: usize,
    /// Frames from above the ground as it was drawn, where a hole is a hole.
    decided: usize,
    with_sky: usize,
    holes: Vec<String>,
}

impl Cases {
    fn add(&mut self, pose: &Pose, when: &str, seen: Seen) {
        let levels = seen.stats.patches_drawn.iter().filter(|&&count| count > 0);
        self.frames += 1;
        let (mixed, streams) = (levels.count() >= 2, seen.stats.patches_missing > 0);
        self.mixed_levels += usize::from(mixed);
        self.streaming += usize::from(streams);
        self.mixed_streaming += usize::from(mixed && streams);
        self.decided += usize::from(seen.decided);
        self.with_sky += usize::from(seen.without_ground > 0);
        if seen.holes > 0 {
            let drawn = &seen.stats.patches_drawn;
            self.holes.push(format!(
                "{} hole pixels {when}, --camera {pose}, patches {drawn:?}",
                seen.holes
            ));
        }
    }

    fn assert_occurred(&self) {
        println!(
            "{} frames, {} from above, {} of several levels, {} streaming, {} both, {} with sky",
            self.frames,
            self.decided,
            self.mixed_levels,
            self.streaming,
            self.mixed_streaming,
            self.with_sky
        );
        assert!(self.mixed_levels * 3 > self.frames, "levels hardly met");
        assert!(
            self.streaming * 10 > self.frames,
            "hardly anything streamed"
        );
        assert!(self.mixed_streaming > 0, "no ancestor beside children");
        assert!(self.decided * 3 > self.frames, "mostly under coarse ground");
        assert!(self.with_sky * 4 > self.frames, "the sky was hardly seen");
        assert!(self.with_sky < self.frames, "the ground was never all");
    }

    fn assert_no_holes(&self) {
        assert!(self.holes.is_empty(), "\n{}", self.holes.join("\n"));
    }
}

/// What one camera saw.
struct Seen {
    stats: Stats,
    /// Pixels that show neither face of the ground.
    without_ground: usize,
    /// The eye was above the ground as it was drawn.
    decided: bool,
    holes: u64,
}

/// A world and what is known of its ground at full resolution.
struct Ground {
    world: Arc<World>,
    map: HeightMap,
    check: HoleCheck,
}

impl Ground {
    fn of(world: Arc<World>) -> Self {
        let map = all_heights(&world).expect("a sound world");
        Ground {
            check: HoleCheck::new(&world, 1.0).expect("a sound world"),
            map,
            world,
        }
    }

    /// Near the ground, high, grazing it, over the world's border or a corner, or exactly over
    /// the border of patches.
    fn random_pose(&self, random: &mut SplitMix) -> Pose {
        let meta = &self.world.meta;
        let [width, depth] = meta.size_m();
        let (mut x, mut z) = (random.within(0.0, width), random.within(0.0, depth));
        let mut yaw_deg = random.within(0.0, 360.0);
        let kind = random.next() % 6;
        let (height, pitch_deg) = match kind {
            0 => (random.within(2.0, 30.0), random.within(-30.0, 15.0)),
            1 => (random.within(300.0, 6000.0), random.within(-90.0, -20.0)),
            2 => (random.within(2.0, 100.0), random.within(-3.0, 1.0)),
            3 => (random.within(20.0, 500.0), random.within(-60.0, 0.0)),
            4 => (random.within(20.0, 500.0), random.within(-40.0, 0.0)),
            _ => (random.within(2.0, 60.0), random.within(-20.0, 5.0)),
        };
        match kind {
            // From outside over the border, and from within a corner.
            3 => x = random.within(-0.05, 0.02) * width,
            4 => {
                let corner =
                    |random: &mut SplitMix, end| [0.5, end - 0.5][(random.next() % 2) as usize];
                (x, z) = (corner(random, width), corner(random, depth));
            }
            5 => {
                let patch_m = meta.layout.patch_cells as f64 * meta.spacing_m[0];
                x = (x / patch_m).round() * patch_m;
                yaw_deg = [0.0, 180.0, yaw_deg][(random.next() % 3) as usize];
            }
            _ => {}
        }
        let eye = dvec3(x, self.highest_near(x, z) + height, z);
        Pose {
            eye,
            yaw_deg,
            pitch_deg,
        }
    }

    /// True when a mesh within `error_m` of the ground is surely below a place.
    fn is_below(&self, place: DVec3, error_m: f64) -> bool {
        place.y > self.highest_near(place.x, place.z) + error_m
    }

    /// The highest sample next to a place.
    fn highest_near(&self, x: f64, z: f64) -> f64 {
        let meta = &self.world.meta;
        let [column, row] =
            [x / meta.spacing_m[0], z / meta.spacing_m[1]].map(|v| v.floor() as i64);
        let corners = [(0, 0), (1, 0), (0, 1), (1, 1)];
        let heights = corners.map(|(dx, dz)| self.map.at(column + dx, row + dz));
        heights.into_iter().fold(i32::MIN, i32::max) as f64 * meta.height_step_m
    }
}

/// A scene of a world that is looked at from many places.
struct Flight<'a> {
    ground: &'a Ground,
    scene: Scene,
    seconds: f64,
}

impl<'a> Flight<'a> {
    fn new(ground: &'a Ground) -> Self {
        Flight {
            ground,
            scene: Scene::for_pictures(gpu(), ground.world.clone(), &Setup::default())
                .expect("a sound world"),
            seconds: 0.0,
        }
    }

    /// Looks when everything that is wanted is there.
    fn settled(&mut self, pose: &Pose, settings: &Settings) -> Seen {
        let timeout = Duration::from_secs(60);
        let settled = self.scene.settle(gpu(), pose, settings, SIZE, timeout);
        settled.expect("streaming ends");
        self.look(pose, settings)
    }

    /// Looks a little later, whatever is there.
    fn next_frame(&mut self, pose: &Pose, settings: &Settings) -> Seen {
        self.seconds += FRAME_S;
        self.look(pose, settings)
    }

    fn look(&mut self, pose: &Pose, settings: &Settings) -> Seen {
        let view = Settings {
            view: View::Hole,
            ..settings.clone()
        };
        let picture = self.scene.picture(gpu(), pose, &view, SIZE, self.seconds);
        let (picture, stats) = picture.expect("the picture comes back");
        let bare = |pixel: &&[u8; 4]| pixel[0] == 0 && pixel[1] == 0;
        let (scene, check) = (&mut self.scene, &self.ground.check);
        let holes = check.count(gpu(), scene, pose, settings, SIZE, self.seconds);
        Seen {
            decided: self.ground.is_below(pose.eye, stats.error_at_eye_m),
            stats,
            without_ground: picture.pixels.iter().filter(bare).count(),
            holes: holes.expect("the picture comes back"),
        }
    }
}
