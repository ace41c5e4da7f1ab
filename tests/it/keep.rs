//! `--voids keep`: what is no ground stays none, from the file that was read to the picture.

use std::sync::Arc;
use std::time::Duration;

use glam::{DVec3, dvec3};
use highfell::files::open_world;
use highfell::import::{ImportOptions, VoidFill, load};
use highfell::scene::Scene;
use highfell::scene::hole_check::HoleCheck;
use highfell::settings::{Settings, Setup, View};
use highfell::source::Source;
use highfell::terrain::camera::Pose;
use highfell::world::{ChunkId, ChunkKind, World};
use serde_json::Value;

use crate::common::{Home, data_file, gpu};
use crate::verify::rewrite;

const SIZE: [u32; 2] = [120, 120];
const SAMPLES: u32 = 301;
const SPACING_M: f64 = 10.0;
/// A void of many patches, in samples from north-west to south-east.
const HOLE: [u32; 2] = [90, 190];

/// Hills with a square hole, and single voids in the east that no cell is large enough for.
fn grid() -> String {
    let mut text = format!(
        "ncols {SAMPLES}\nnrows {SAMPLES}\nxllcorner 0\nyllcorner 0\ncellsize {SPACING_M}\nnodata_value -9999\n"
    );
    for z in 0..SAMPLES {
        for x in 0..SAMPLES {
            let inside = |n: u32| (HOLE[0]..=HOLE[1]).contains(&n);
            let single = x > 250 && (x + 3 * z) % 10 == 0;
            if inside(x) && inside(z) || single {
                text += "-9999 ";
            } else {
                let [a, b] = [x, z].map(f64::from);
                let metres = 40.0 * (a / 23.0).sin() * (b / 31.0).cos() + (a * b * 0.7).sin() * 4.0;
                text += &format!("{} ", 200 + metres as i32);
            }
        }
        text += "\n";
    }
    text
}

fn home_with_a_kept_world(more: &[&str]) -> Home {
    let home = Home::new();
    home.write("hills.asc", grid());
    let keep = [
        "compile",
        "hills.asc",
        "--voids",
        "keep",
        "--patch-cells",
        "8",
    ];
    let run = home.succeed(&[&keep, more].concat());
    assert!(run.stderr.contains("kept "), "{run:?}");
    home
}

fn world(home: &Home) -> Arc<World> {
    Arc::new(open_world(&home.work().join("hills.hfw")).expect("a sound world"))
}

#[test]
fn a_kept_world_is_sound_and_says_how_many_voids_it_has() {
    let home = home_with_a_kept_world(&["--error", "3"]);
    let run = home.run(&["verify", "hills.hfw", "--source", "hills.asc"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{run:?}");
    let run = home.run(&["inspect", "hills.hfw", "--json"]);
    let value: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let voids = grid().matches("-9999 ").count() as u64;
    let source = &value["source"];
    assert_eq!(source["kept"], voids);
    assert_eq!(
        (&source["voids"], &source["filled"]),
        (&voids.into(), &0.into())
    );
    assert!(value["bytes"]["coverage"].as_u64() > Some(100));
    // Filled voids are another ground.
    let filled = [
        "compile",
        "hills.asc",
        "--patch-cells",
        "8",
        "-o",
        "filled.hfw",
    ];
    home.succeed(&filled);
    let patch = |world: &str, key: &str| {
        let run = home.run(&["inspect", world, "--patch", key, "--json"]);
        serde_json::from_str::<Value>(&run.stdout).expect("JSON")["absent"].clone()
    };
    assert_eq!(patch("hills.hfw", "0/16/16"), true);
    assert_eq!(patch("hills.hfw", "0/1/1"), false);
    assert_eq!(patch("filled.hfw", "0/16/16"), false);
}

#[test]
fn ground_where_there_should_be_none_is_found_and_named() {
    let home = home_with_a_kept_world(&[]);
    let good = std::fs::read(home.work().join("hills.hfw")).expect("the world");
    let broken = ChunkId {
        kind: ChunkKind::Coverage,
        level: 2,
        x: 0,
        z: 0,
    };
    // The cell at the hole's middle, sample 140,140; 128 cells a row.
    let place = 70 * 128 + 70;
    let bad = rewrite(&good, |id, mut raw| {
        if id == broken {
            assert_eq!(raw.len(), 128 * 128 / 8);
            raw[place / 8] ^= 1 << (place % 8);
        }
        raw
    });
    home.write("bad.hfw", bad);
    let run = home.run(&["verify", "bad.hfw"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("checks failed: coverage;"), "{run:?}");
    assert!(
        run.stdout
            .contains("section 2/0/0: the cell at sample 140,140"),
        "{run:?}"
    );
}

#[test]
fn heights_come_back_with_the_same_voids() {
    let keep = |step_m| ImportOptions {
        voids: VoidFill::Keep,
        height_step_m: step_m,
        ..Default::default()
    };
    for (flags, kind, step_m) in [
        (&[][..], "int16", None),
        (&["--height-step", "0.25"], "float32", Some(0.25)),
    ] {
        let home = home_with_a_kept_world(flags);
        let run = home.succeed(&["export", "hills.hfw", "--heights", "back.tif"]);
        assert!(run.stderr.contains(kind), "{run:?}");
        let [there, back] = ["hills.asc", "back.tif"]
            .map(|name| load(&home.work().join(name), &keep(step_m)).expect("a sound file"));
        let voids = |source: &Source| source.ground.absent(source.ground.area()).expect("voids");
        assert!(voids(&there).is_some());
        assert_eq!(voids(&back), voids(&there));
        assert_eq!(back.ground.whole().unwrap(), there.ground.whole().unwrap());
    }
}

#[test]
fn meshes_are_left_out_over_a_void() {
    let home = home_with_a_kept_world(&[]);
    let triangles = |world: &str, patch: &str| {
        home.succeed(&[
            "export", world, "--level", "0", "--patch", patch, "-o", "a.obj", "--force",
        ]);
        let text = std::fs::read_to_string(home.work().join("a.obj")).expect("a mesh");
        text.lines().filter(|line| line.starts_with("f ")).count()
    };
    assert!(triangles("hills.hfw", "0,0") > 0);
    assert_eq!(triangles("hills.hfw", "16,16"), 0);
}

/// From above the middle: through the hole one sees the sky, or the sea where there is one, at
/// whatever level is drawn round it.
#[test]
fn one_sees_through_kept_voids_at_every_level() {
    for sea in [&[][..], &["--sea-level", "10"]] {
        let world = world(&home_with_a_kept_world(sea));
        let mut scene =
            Scene::for_pictures(gpu(), world.clone(), &Setup::default()).expect("a sound world");
        let mut levels_seen: Vec<usize> = Vec::new();
        for height in [800.0, 1_500.0, 3_000.0, 8_000.0, 20_000.0] {
            let seen = look_down(&mut scene, height);
            levels_seen.extend(&seen.levels);
            seen.assert_open(!sea.is_empty());
        }
        levels_seen.sort_unstable();
        levels_seen.dedup();
        assert!(levels_seen.len() >= 5, "{levels_seen:?}");
    }
}

/// A look straight down into the middle of the hole.
struct Seen {
    height: f64,
    hole_view: Vec<[u8; 4]>,
    shaded: Vec<[u8; 4]>,
    /// Metres a pixel where the ground is in the mean.
    pixel_m: f64,
    levels: Vec<usize>,
}

impl Seen {
    /// Nothing but sky or sea in the hole, less what the widest drawn cells reach into it; nothing
    /// but ground round it.
    fn assert_open(&self, has_sea: bool) {
        let widest = 1 << self.levels.last().expect("a level").saturating_sub(1);
        let half_m = SPACING_M * f64::from(HOLE[1] - HOLE[0]) / 2.0;
        let (open_m, closed_m) = (half_m - SPACING_M * f64::from(widest), half_m * 1.3);
        let (mut open, mut closed) = (0, 0);
        for (at, (hole, shaded)) in (0..).zip(self.hole_view.iter().zip(&self.shaded)) {
            let (x, y) = (at % SIZE[0], at / SIZE[0]);
            let from_middle = [x, y].map(|n| (f64::from(n) + 0.5 - f64::from(SIZE[0]) / 2.0).abs());
            let reach_m = from_middle[0].max(from_middle[1]) * self.pixel_m;
            let is_bare = hole[0] == 0 && hole[1] == 0;
            if reach_m < 0.8 * open_m {
                assert!(is_bare, "{} m: ground at {x}, {y}", self.height);
                let [r, g, b, _] = *shaded;
                let is_deep = b < 140 && b > r && b > g;
                assert_eq!(
                    is_deep, has_sea,
                    "{} m: {shaded:?} at {x}, {y}",
                    self.height
                );
                open += 1;
            } else if reach_m > closed_m {
                assert!(!is_bare, "{} m: no ground at {x}, {y}", self.height);
                closed += 1;
            }
        }
        assert!(
            open > 30 && closed > 1000,
            "{} m: {open}, {closed}",
            self.height
        );
    }
}

fn look_down(scene: &mut Scene, height: f64) -> Seen {
    let middle = SPACING_M * f64::from(HOLE[0] + HOLE[1]) / 2.0;
    let eye = dvec3(middle, height, middle);
    let pose = Pose::looking_at(eye, eye - DVec3::Y);
    let seen_m = 1_000.0;
    let mut settings = Settings {
        fov_deg: 2.0 * (seen_m / height).atan().to_degrees(),
        ..Settings::default()
    };
    settings.lod.pixel_error = height / 50.0;
    let settled = scene.settle(gpu(), &pose, &settings, SIZE, Duration::from_secs(60));
    settled.expect("streaming ends");
    let mut picture = |view| {
        let settings = Settings {
            view,
            ..settings.clone()
        };
        let picture = scene.picture(gpu(), &pose, &settings, SIZE, 0.0);
        picture.expect("a picture")
    };
    let (shaded, stats) = picture(View::Shaded);
    let (hole_view, _) = picture(View::Hole);
    let drawn = stats.patches_drawn.iter().enumerate();
    Seen {
        height,
        hole_view: hole_view.pixels,
        shaded: shaded.pixels,
        pixel_m: 2.0 * seen_m / f64::from(SIZE[0]) * (height - 200.0) / height,
        levels: drawn
            .filter(|(_, count)| **count > 0)
            .map(|(level, _)| level)
            .collect(),
    }
}

#[test]
fn kept_voids_are_no_holes() {
    let home = match data_file("S16E166.hgt") {
        Some(path) => {
            let home = Home::new();
            let path = path.to_str().expect("a plain name");
            home.succeed(&["compile", path, "--voids", "keep", "-o", "hills.hfw"]);
            home
        }
        None => home_with_a_kept_world(&[]),
    };
    let world = world(&home);
    let check = HoleCheck::new(&world, 1.0).expect("a sound world");
    let mut scene =
        Scene::for_pictures(gpu(), world.clone(), &Setup::default()).expect("a sound world");
    let settings = Settings::default();
    let [width, depth] = world.meta.size_m();
    let mut bare = 0;
    for i in 0..24 {
        let (x, z) = (f64::from(i % 6) / 6.0 + 0.08, f64::from(i / 6) / 4.0 + 0.12);
        let eye = dvec3(
            x * width,
            [400.0, 2_500.0, 8_000.0][i as usize % 3],
            z * depth,
        );
        let pose = Pose {
            eye,
            yaw_deg: f64::from(i) * 37.0,
            pitch_deg: -25.0 - f64::from(i),
        };
        let settled = scene.settle(gpu(), &pose, &settings, SIZE, Duration::from_secs(60));
        settled.expect("streaming ends");
        let holes = check.count(gpu(), &mut scene, &pose, &settings, SIZE, 0.0);
        assert_eq!(holes.expect("a picture"), 0, "--camera {pose}");
        let view = Settings {
            view: View::Hole,
            ..settings.clone()
        };
        let (picture, _) = scene
            .picture(gpu(), &pose, &view, SIZE, 0.0)
            .expect("a picture");
        bare += picture.pixels.iter().filter(|pixel| pixel[1] == 0).count();
    }
    assert!(bare > 100, "{bare} pixels show no ground");
}
