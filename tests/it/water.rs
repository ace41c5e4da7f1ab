//! `--water-mask`: dry ground below the sea level stays dry, from the picture that says so to the
//! picture that is drawn.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use glam::{DVec3, dvec3};
use highfell::compile::CompileOptions;
use highfell::files::open_world;
use highfell::scene::Scene;
use highfell::settings::{Settings, Setup};
use highfell::source::Source;
use highfell::terrain::camera::Pose;
use highfell::terrain::height_map::HeightMap;
use highfell::terrain::leaves::visit_leaves;
use highfell::terrain::triangle::Triangle;
use highfell::world::{ChunkKind, PatchKey, Section, SectionKey, SourceInfo, WaterMask, World};
use image::{GrayImage, Luma};
use serde_json::Value;

use crate::common::{Home, Outcome, data_file, gpu, in_memory};
use crate::verify::rewrite;

const SAMPLES: u32 = 257;
const SPACING_M: f64 = 10.0;
const STEP_M: f64 = 0.25;
/// The mask ends on the dam, and so does the sea.
const DAM: u32 = 100;

/// A sea in the west, a dam, a basin below the sea behind it, and a slope in the east.
fn height_m(x: u32, z: u32) -> f64 {
    let profile = [
        (0.0, -40.0),
        (60.0, -25.0),
        (100.0, 18.0),
        (140.0, -15.0),
        (200.0, -12.0),
        (256.0, 60.0),
    ];
    let (x, z) = (
        f64::from(x) + 4.0 * (f64::from(z) / 29.0).sin(),
        f64::from(z),
    );
    let next = profile.iter().position(|point| point.0 >= x);
    let next = next.unwrap_or(profile.len() - 1).max(1);
    let ((x0, y0), (x1, y1)) = (profile[next - 1], profile[next]);
    y0 + (y1 - y0) * (x - x0) / (x1 - x0) + (z / 40.0).cos()
}

fn steps() -> Vec<i32> {
    let samples = (0..SAMPLES).flat_map(|z| (0..SAMPLES).map(move |x| (x, z)));
    let steps = samples.map(|(x, z)| (height_m(x, z) / STEP_M).round() as i32);
    steps.collect()
}

fn source() -> Source {
    let map = HeightMap {
        width: SAMPLES,
        height: SAMPLES,
        heights: steps(),
    };
    let (low, high) = map.range();
    Source {
        step_m: STEP_M,
        spacing_m: [SPACING_M; 2],
        info: SourceInfo::made_up("polder", [low as f64 * STEP_M, high as f64 * STEP_M]),
        ground: Box::new(map),
    }
}

fn is_masked(x: u32) -> bool {
    x < DAM
}

fn world(sea: bool, mask: bool) -> Arc<World> {
    let white = |x, _| is_masked(x);
    let mask = mask.then(|| Arc::new(WaterMask::from_fn([SAMPLES; 2], 0, white)));
    let options = CompileOptions {
        error: Some(5.0),
        patch_cells: 16,
        sea_level_m: sea.then_some(0.0),
        water_mask: mask,
        ..Default::default()
    };
    in_memory(&source(), &options)
}

/// The leaves of all levels, finest first.
fn leaves(world: &World) -> Vec<Vec<Triangle>> {
    let layout = &world.meta.layout;
    let mut leaves = vec![Vec::new(); layout.levels as usize];
    let mut take = |section: &Section| {
        let ([x0, z0, x1, z1], level) = (section.area, section.key.level);
        for key in (z0..z1).flat_map(|z| (x0..x1).map(move |x| PatchKey::new(level, x, z))) {
            let all = &mut leaves[level as usize];
            visit_leaves(layout, key, &section.patch(key).trees, |leaf| {
                all.push(leaf)
            });
        }
    };
    let repository = world.read_repository().expect("a sound world");
    repository.iter().for_each(&mut take);
    for patch in layout.keys(layout.stream_levels - 1) {
        let mut heights = repository.last().expect("a level").heights.clone();
        for level in (0..layout.stream_levels).rev() {
            let [x, z] = [patch.x, patch.z];
            let section = world.read_section(SectionKey { level, x, z }, Some(&heights));
            let section = section.expect("a sound world");
            take(&section);
            heights = section.heights;
        }
    }
    leaves
}

/// Whether a triangle has samples in the water and others; the ground as the mask has it, or all
/// below the sea level.
fn crosses(leaf: &Triangle, heights: &[i32], masked: bool) -> bool {
    let (mut wet, mut dry) = (false, false);
    for z in leaf.rows().z.0..=leaf.rows().z.1.min(SAMPLES as i32 - 1) {
        let (x0, x1) = leaf.rows().interval(z);
        for x in x0..=x1.min(SAMPLES as i32 - 1) {
            let low = heights[z as usize * SAMPLES as usize + x as usize] <= 0;
            let is_water = low && (!masked || is_masked(x as u32));
            wet |= is_water;
            dry |= !is_water;
        }
    }
    wet && dry
}

#[test]
fn shores_are_at_the_lattice_where_the_mask_says_and_only_there() {
    let heights = &steps();
    let [none, everywhere, masked] =
        [(false, false), (true, false), (true, true)].map(|(sea, mask)| world(sea, mask));
    let all_leaves = leaves(&masked);
    for (level, leaves) in (0u8..).zip(&all_leaves) {
        let stride = masked.meta.layout.stride(level) as i32;
        let is_smallest = |leaf: &Triangle| (leaf.a - leaf.c).abs().max_element() <= stride;
        let shores = |masked| {
            let crossing = leaves
                .iter()
                .filter(move |leaf| crosses(leaf, heights, masked));
            crossing.copied().collect::<Vec<Triangle>>()
        };
        let drawn = shores(true);
        assert!(
            drawn.len() > 3 && drawn.iter().all(is_smallest),
            "level {level}"
        );
        // The basin's own line at the sea level is nothing there.
        let in_basin = |leaf: &Triangle| leaf.a.min(leaf.b).min(leaf.c).x > DAM as i32;
        let basin: Vec<Triangle> = shores(false).into_iter().filter(in_basin).collect();
        assert!(!basin.is_empty() || level > 3, "level {level}");
        assert!(level > 2 || !basin.iter().any(is_smallest), "level {level}");
        let [without, with, all] =
            [&none, &masked, &everywhere].map(|world| world.meta.levels[level as usize].triangles);
        assert!(
            without < with && with < all,
            "level {level}: {without} {with} {all}"
        );
    }
}

#[test]
fn the_sea_is_drawn_where_the_mask_says() {
    let see = |mask: bool| {
        let mut scene = Scene::for_pictures(gpu(), world(true, mask), &Setup::default())
            .expect("a sound world");
        let middle = f64::from(SAMPLES / 2) * SPACING_M;
        let eye = dvec3(middle, 2_500.0, middle);
        let pose = Pose::looking_at(eye, eye - DVec3::Y);
        let settings = Settings::default();
        let size = [256, 256];
        let settled = scene.settle(gpu(), &pose, &settings, size, Duration::from_secs(60));
        settled.expect("streaming ends");
        let picture = scene.picture(gpu(), &pose, &settings, size, 0.0);
        let picture = picture.expect("a picture").0;
        // Where a sample at the sea's height is in the picture.
        let half_m = 2_500.0 * (settings.fov_deg.to_radians() / 2.0).tan();
        let pixel =
            move |sample: f64| ((sample * SPACING_M - middle) / half_m * 128.0 + 128.0) as usize;
        let colour = move |x: f64, z: f64| picture.pixels[pixel(z) * 256 + pixel(x)];
        (scene, colour)
    };
    let is_blue = |[r, _, b, _]: [u8; 4]| b > r;
    let (drowned, everywhere) = see(false);
    let (spared, masked) = see(true);
    for z in [60.0, 128.0, 200.0] {
        let [sea, basin, dam, slope] = [30.0, 165.0, 101.0, 245.0];
        assert!(is_blue(everywhere(sea, z)) && is_blue(everywhere(basin, z)));
        assert!(is_blue(masked(sea, z)) && !is_blue(masked(basin, z)));
        assert!(!is_blue(masked(dam, z)) && !is_blue(masked(slope, z)));
    }
    // A camera stands on the ground of the basin, and on the water of the sea.
    let height = |scene: &Scene, x: f64| scene.ground_height_m(x * SPACING_M, 1_280.0, 1.0);
    assert_eq!(
        (height(&drowned, 165.0), height(&drowned, 30.0)),
        (0.0, 0.0)
    );
    assert_eq!(height(&spared, 30.0), 0.0);
    assert!((height(&spared, 165.0) - height_m(165, 128)).abs() < 1.0);
}

/// The same ground as a file, and its mask, half as fine.
fn home() -> Home {
    let home = Home::new();
    let metres: Vec<u8> = steps()
        .iter()
        .flat_map(|&step| (step as f32 * STEP_M as f32).to_le_bytes())
        .collect();
    home.write("polder.r32", metres);
    let white = |x: u32, _| Luma([if x < DAM.div_ceil(2) { 128 } else { 127 }]);
    save(
        &home,
        "mask.png",
        GrayImage::from_fn(SAMPLES.div_ceil(2), 3, white),
    );
    save(&home, "black.png", GrayImage::new(9, 9));
    home
}

fn save(home: &Home, name: &str, picture: GrayImage) {
    picture.save(home.work().join(name)).expect("a PNG");
}

fn compile(home: &Home, flags: &[&str]) -> Outcome {
    let arguments = ["compile", "polder.r32", "--spacing", "10", "--error", "5"];
    home.succeed(&[&arguments[..], flags].concat())
}

fn json(home: &Home, arguments: &[&str]) -> Value {
    let run = home.run(arguments);
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

#[test]
fn a_masked_world_says_so_and_is_sound() {
    let home = home();
    for (cores, name) in [("1", "one.hfw"), ("3", "three.hfw")] {
        compile(
            &home,
            &["--water-mask", "mask.png", "--jobs", cores, "-o", name],
        );
    }
    let bytes = |name: &str| std::fs::read(home.work().join(name)).expect("a world");
    assert!(bytes("one.hfw") == bytes("three.hfw"));
    let facts = json(&home, &["inspect", "one.hfw", "--json"]);
    assert_eq!(facts["sea_level_m"], 0.0);
    let mask = &facts["water_mask"];
    assert_eq!(
        (&mask["size"], &mask["square_samples"]),
        (&serde_json::json!([257, 257]), &1.into())
    );
    let share = mask["share"].as_f64().expect("a number");
    assert!((share - 100.0 / 257.0).abs() < 1e-9, "{share}");
    let text = home.run(&["inspect", "one.hfw"]).stdout;
    assert!(
        text.contains("sea at 0 m in 38.91 % of a mask of 257 x 257 squares"),
        "{text}"
    );
    let with_all = [
        "verify",
        "one.hfw",
        "--source",
        "polder.r32",
        "--water-mask",
        "mask.png",
    ];
    let run = home.run(&with_all);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{run:?}");
    assert!(
        run.stdout.contains("ok      water         66049 squares"),
        "{run:?}"
    );
    let alone = home.run(&["verify", "one.hfw"]);
    assert_eq!(alone.code, Some(0), "{alone:?}");
    assert!(alone.stdout.contains("skipped water"), "{alone:?}");
    let other = home.run(&["verify", "one.hfw", "--water-mask", "black.png"]);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(
        other
            .stdout
            .contains("the square at sample 0,0: white stored, black in black.png"),
        "{other:?}"
    );
    // The mask is the first thing behind the facts.
    let world = open_world(&home.work().join("one.hfw")).expect("a sound world");
    assert_eq!(world.chunks()[1].kind, ChunkKind::Water);
}

#[test]
fn masks_go_with_all_that_a_world_can_store() {
    let home = home();
    for flags in [
        ["--heights", "nodes"],
        ["--live", "--quiet"],
        ["--metric", "sum"],
    ] {
        let mask = ["--water-mask", "mask.png", "--force", "-o", "all.hfw"];
        compile(&home, &[&mask[..], &flags].concat());
        let verify = [
            "verify",
            "all.hfw",
            "--source",
            "polder.r32",
            "--water-mask",
            "mask.png",
        ];
        home.succeed(&verify);
    }
}

#[test]
fn a_wide_source_has_a_mask_of_wider_squares() {
    let home = Home::new();
    let wave = |x: u32| 500 + (f64::from(x) / 40.0).sin() as i32 * 3 + (x % 90) as i32;
    let samples = (0..40u32).flat_map(|z| (0..5000u32).map(move |x| wave(x) + z as i32));
    let bytes: Vec<u8> = samples.flat_map(|h| (h as u16).to_le_bytes()).collect();
    home.write("wide.r16", bytes);
    // One white pixel of five samples, from 2500 on: three squares of two have some of them.
    let white = |x, _| Luma([if x == 500 { 255 } else { 0 }]);
    save(&home, "mask.png", GrayImage::from_fn(1000, 1, white));
    let input = ["wide.r16", "--raw-size", "5000x40", "--spacing", "10"];
    let flags = [
        "--sea-level",
        "530",
        "--water-mask",
        "mask.png",
        "-o",
        "wide.hfw",
    ];
    home.succeed(&[&["compile"], &input[..], &flags].concat());
    let mask = &json(&home, &["inspect", "wide.hfw", "--json"])["water_mask"];
    assert_eq!(
        (&mask["size"], &mask["square_samples"]),
        (&serde_json::json!([2500, 20]), &2.into())
    );
    assert_eq!(mask["share"], 3.0 / 2500.0);
    let verify = ["verify", "wide.hfw", "--water-mask", "mask.png"];
    home.succeed(&verify);
}

#[test]
fn a_mask_that_shores_do_not_follow_or_that_is_damaged_is_found() {
    let home = home();
    compile(&home, &["--water-mask", "mask.png", "-o", "good.hfw"]);
    let good = std::fs::read(home.work().join("good.hfw")).expect("a world");
    let changed = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let bytes = rewrite(&good, |id, mut raw| {
            if id.kind == ChunkKind::Water {
                change(&mut raw);
            }
            raw
        });
        home.write(name, bytes);
        home.run(&["verify", name])
    };
    // All of it is water.
    let flooded = changed("flooded.hfw", &|raw| {
        let last = raw.len() - 1;
        raw[..last].fill(255);
    });
    assert_eq!(flooded.code, Some(1), "{flooded:?}");
    assert!(flooded.stderr.contains("certificates"), "{flooded:?}");
    let short = changed("short.hfw", &|raw| raw.truncate(40));
    assert_eq!(short.code, Some(1), "{short:?}");
    assert!(
        short.stdout.contains("water chunk 0/0/0: 40 bytes"),
        "{short:?}"
    );
    for verb in ["inspect", "shot"] {
        let run = home.run(&[verb, "short.hfw"]);
        assert_eq!(
            (run.code, run.stderr.lines().count()),
            (Some(2), 1),
            "{run:?}"
        );
    }
}

#[test]
fn a_black_mask_is_no_sea_and_anything_but_a_png_is_refused() {
    let home = home();
    let black = compile(
        &home,
        &[
            "--water-mask",
            "black.png",
            "--sea-level",
            "3",
            "-o",
            "none.hfw",
        ],
    );
    assert!(
        black
            .stderr
            .contains("black all over, so there is no sea; pass a --water-mask"),
        "{black:?}"
    );
    let facts = json(&home, &["inspect", "none.hfw", "--json"]);
    assert_eq!(
        (&facts["sea_level_m"], &facts["water_mask"]),
        (&Value::Null, &Value::Null)
    );
    compile(&home, &["-o", "plain.hfw"]);
    let bytes = |name: &str| std::fs::read(home.work().join(name)).expect("a world");
    assert!(bytes("none.hfw") == bytes("plain.hfw"));
    for (mask, code) in [("black.png", 0), ("mask.png", 1)] {
        let run = home.run(&["verify", "none.hfw", "--water-mask", mask]);
        assert_eq!(run.code, Some(code), "{run:?}");
    }
    let dry_run = [
        "compile",
        "polder.r32",
        "--dry-run",
        "--json",
        "--water-mask",
        "black.png",
    ];
    let lint = json(&home, &dry_run);
    let warnings = lint["warnings"].as_array().expect("an array");
    assert!(
        warnings.iter().any(|warning| warning["about"] == "water"),
        "{lint}"
    );
    let refused = home.run(&[
        "compile",
        "polder.r32",
        "--water-mask",
        "polder.r32",
        "-o",
        "no.hfw",
    ]);
    assert_eq!(
        (refused.code, refused.stderr.lines().count()),
        (Some(2), 1),
        "{refused:?}"
    );
    assert!(
        refused.stderr.contains("polder.r32") && refused.stderr.contains("a PNG picture"),
        "{refused:?}"
    );
    let same = home.run(&[
        "compile",
        "polder.r32",
        "--water-mask",
        "mask.png",
        "-o",
        "mask.png",
        "--force",
    ]);
    assert_eq!(same.code, Some(2), "{same:?}");
}

#[test]
fn the_dead_sea_lies_alone_in_its_basin() {
    let Some(path) = data_file("derived_deadsea_601x401_le.r32") else {
        return;
    };
    let home = Home::new();
    let bytes = std::fs::read(&path).expect("a file of floats");
    let heights: Vec<f32> = bytes
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes(four.try_into().expect("four bytes")))
        .collect();
    // The lake's surface, not the holes and fields beside it that lie as low.
    let lake = |x: u32, z: u32| heights[(z * 601 + x) as usize] <= -414.0;
    save(
        &home,
        "lake.png",
        GrayImage::from_fn(601, 401, |x, z| Luma([255 * u8::from(lake(x, z))])),
    );
    let name = |path: &Path| path.to_str().expect("a plain name").to_owned();
    let path = name(&path);
    let input = [path.as_str(), "--raw-size", "601x401", "--spacing", "90"];
    for level in ["-414", "0"] {
        let flags = [
            "--sea-level",
            level,
            "--water-mask",
            "lake.png",
            "-o",
            "lake.hfw",
            "--force",
        ];
        home.succeed(&[&["compile"], &input[..], &flags].concat());
        let verify = [
            "verify",
            "lake.hfw",
            "--water-mask",
            "lake.png",
            "--raw-size",
            "601x401",
            "--source",
            &path,
        ];
        home.succeed(&verify);
    }
}
