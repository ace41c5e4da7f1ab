//! The built binary in the hands of a user who gets things wrong, and right.
//!
//! Whatever is wrong ends in exit code 2 and one line that names it (1 where a check failed),
//! never in a panic, half a file or an overwritten one.

use std::path::Path;

use highfell::world::container::{ENTRY_BYTES, HEADER_BYTES};
use serde_json::Value;

use crate::common::{self, Home, Outcome, data_file, names_in, outcome};

/// The verbs that open a world, with flags that make them quick and keep them from a window.
const OPENERS: [&[&str]; 5] = [
    &["inspect"],
    &[
        "shot",
        "--size",
        "16x16",
        "--adapter",
        "software",
        "--settle-timeout",
        "2",
    ],
    &["fly", "--adapter", "software"],
    &["verify"],
    &["export", "--heights", "out.tif"],
];

#[test]
fn compile_refuses_what_is_no_elevation_file() {
    let home = Home::new();
    home.write("text.tif", "These are words.\n");
    home.write("words.txt", "These are words.\n");
    home.write("empty.tif", "");
    home.write("N44E007.hgt", vec![1; 1000]);
    home.write("cut.tif", &tiny_tiff()[..60]);
    home.write("cut.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    home.write(
        "cut.asc",
        "ncols 4\nnrows 4\nxllcorner 0\nyllcorner 0\ncellsize 10\n1 2 3\n",
    );
    if let Some(path) = data_file("S33W071.tif") {
        let bytes = std::fs::read(path).expect("a readable file");
        home.write("S33W071.tif", &bytes[..bytes.len() / 3]);
    }
    std::fs::create_dir(home.work().join("folder.tif")).expect("a folder");
    let before = home.names();
    for name in before.iter().map(String::as_str).chain(["missing.tif"]) {
        let run = home.run(&["compile", name, "-o", "out.hfw"]);
        assert_refused(&run, 2, name);
        let says = run.stderr.contains("expected") || run.stderr.contains("cannot open");
        assert!(says, "{run:?}");
        assert_eq!(home.names(), before, "nothing is left behind");
    }
}

#[test]
fn a_tiny_tiff_that_is_whole_compiles() {
    let home = Home::new();
    home.write("tiny.tif", tiny_tiff());
    home.succeed(&["compile", "tiny.tif", "--spacing", "10"]);
    assert_eq!(home.names(), ["tiny.hfw", "tiny.tif"]);
}

#[test]
fn a_dry_run_says_what_looks_wrong_and_writes_nothing() {
    let home = Home::new();
    home.write("tiny.tif", tiny_tiff());
    let before = home.names();
    let text = home.run(&["compile", "tiny.tif", "--dry-run"]);
    assert_eq!((text.code, text.stderr.as_str()), (Some(0), ""), "{text:?}");
    assert!(text.stdout.starts_with("source    tiny.tif\n"), "{text:?}");
    assert!(text.stdout.contains("; pass --spacing M\n"), "{text:?}");
    let json = home.run(&["compile", "tiny.tif", "--dry-run", "--json"]);
    let value: Value = serde_json::from_str(&json.stdout).expect("one object");
    let about = |warning: &Value| warning["about"].as_str().map(str::to_owned);
    let warnings = value["warnings"].as_array().expect("a list");
    assert!(warnings.iter().filter_map(about).any(|a| a == "spacing"));
    assert!(value["voids"].is_null() && value["height_step_m"].is_number());
    assert_eq!(home.names(), before);
}

#[test]
fn a_raw_file_compiles_with_what_its_header_does_not_say() {
    let home = Home::new();
    let heights = (0..40 * 60u16).flat_map(|i| (i % 40 * 3 + i / 40).to_be_bytes());
    home.write("hill.r16", heights.collect::<Vec<u8>>());
    #[rustfmt::skip]
    let flags = [
        "compile", "hill.r16", "--raw-size", "40x60", "--byte-order", "be", "--spacing", "10",
        "--height-scale", "ft", "--height-offset", "-12.192", "--crop", "0,0,33,41",
    ];
    home.succeed(&flags);
    let value = inspect(&home, "hill.hfw");
    assert_eq!(value["size_cells"], serde_json::json!([32, 40]));
    let source = &value["source"];
    let near = |key: &str, metres: f64| (source[key].as_f64().unwrap() - metres).abs() < 1e-9;
    assert!(
        near("min_m", -12.192) && near("max_m", (136.0 - 40.0) * 0.3048),
        "{source}"
    );
}

#[test]
fn what_is_no_world_is_refused_by_every_verb_that_opens_one() {
    let home = Home::new();
    let good = small_world();
    home.write("text.hfw", "These are words.\n");
    home.write("empty.hfw", "");
    for part in [20, 100, good.len() / 2, good.len() - 1] {
        home.write(&format!("cut-{part}.hfw"), &good[..part]);
    }
    home.write("padded.hfw", [&good[..], &[0]].concat());
    std::fs::create_dir(home.work().join("folder.hfw")).expect("a folder");
    let before = home.names();
    for verb in OPENERS {
        for name in before.iter().map(String::as_str).chain(["missing.hfw"]) {
            let run = home.run(&[verb, &[name]].concat());
            assert_refused(&run, 2, name);
            let says = run.stderr.contains("expected") || run.stderr.contains("cannot be opened");
            assert!(says, "{run:?}");
            assert_eq!(home.names(), before, "{verb:?} {name}");
        }
    }
}

#[test]
fn a_flipped_byte_is_an_error_or_does_not_matter() {
    let home = Home::new();
    let good = small_world();
    let facts_end = end_of_first_chunk(&good);
    let (mut refused, mut drawn) = (0, 0);
    let positions = (0..facts_end)
        .step_by(67)
        .chain((facts_end..good.len()).step_by(good.len() / 12));
    for at in positions {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        home.write("bad.hfw", bad);
        let inspect = home.run(&["inspect", "bad.hfw"]);
        if at < facts_end {
            assert_refused(&inspect, 2, "bad.hfw");
            continue;
        }
        assert_eq!(inspect.code, Some(0), "byte {at}: {inspect:?}");
        #[rustfmt::skip]
        let shot = home.run(&[
            "shot", "bad.hfw", "--camera", "1500,+300,1500,135,-40", "--size", "64x64",
            "--adapter", "software", "--settle-timeout", "1", "-o", "bad.png", "--force",
        ]);
        if shot.code == Some(0) {
            drawn += 1;
            continue;
        }
        let errors: Vec<&str> = shot
            .stderr
            .lines()
            .filter(|line| !line.contains("warn"))
            .collect();
        assert_eq!(
            (shot.code, errors.len()),
            (Some(2), 1),
            "byte {at}: {shot:?}"
        );
        assert!(
            errors[0].contains("bad.hfw") && errors[0].contains("chunk"),
            "{shot:?}"
        );
        refused += 1;
    }
    assert!(refused > 6, "{refused} were refused, {drawn} drawn");
}

#[test]
fn flags_that_cannot_be_followed_are_refused() {
    let home = Home::new();
    home.write("tiny.tif", tiny_tiff());
    home.write("world.hfw", small_world());
    let before = home.names();
    let compile: [&[&str]; 24] = [
        &["--error", "0"],
        &["--error", "nan"],
        &["--error", "-1"],
        &["--patch-cells", "33"],
        &["--patch-cells", "0"],
        &["--patch-cells", "1024"],
        &["--spacing", "-1"],
        &["--spacing", "0"],
        &["--height-step", "0"],
        &["--sea-level", "inf"],
        &["--height-scale", "leagues"],
        &["--height-offset", "nan"],
        &["--encoding", "jpeg"],
        &["--band", "0"],
        &["--raw-size", "4"],
        &["--byte-order", "middle"],
        &["--crop", "1,2,3"],
        &["--voids", "leave"],
        &["--resample", "0"],
        &["--jobs", "x"],
        &["--jobs", "0"],
        &["--levels", "21"],
        &["--spacing", "wide"],
        &["--forse"],
    ];
    for flags in compile {
        let run = home.run(&[&["compile", "tiny.tif", "-o", "out.hfw"], flags].concat());
        assert_refused(&run, 2, flags[0]);
    }
    let shot: [&[&str]; 12] = [
        &["--camera", "1,2,3"],
        &["--camera", "1,2,3,4,200"],
        &["--camera", "nan,2,3,4,5"],
        &["--size", "0x0"],
        &["--size", "99999x2"],
        &["--size", "640"],
        &["--fov", "0"],
        &["--pixel-error", "0"],
        &["--exaggerate", "-2"],
        &["--ranges", "100,0"],
        &["--hide-patch", "0/1"],
        &["--settle-timeout", "-1"],
    ];
    for flags in shot {
        let run = home.run(&[&["shot", "world.hfw", "-o", "out.png"], flags].concat());
        assert_refused(&run, 2, flags[0]);
    }
    for (patch, expected) in [
        ("99/0/0", "a level from 0 to"),
        ("0/0/99", "0/0/0 to 0/18/12"),
    ] {
        for verb in [&["shot", "-o", "out.png"][..], &["fly"]] {
            let run = home.run(&[verb, &["world.hfw", "--hide-patch", patch]].concat());
            assert_refused(
                &run,
                2,
                &format!("there is no patch {patch}; expected {expected}"),
            );
        }
    }
    let nonsense = home.run(&["soar", "world.hfw"]);
    assert_refused(&nonsense, 2, "soar");
    assert_eq!(home.names(), before);
}

#[test]
fn nothing_is_overwritten_unless_that_is_asked_for() {
    let home = Home::new();
    home.write("tiny.tif", tiny_tiff());
    home.write("world.hfw", small_world());
    for name in ["out.hfw", "out.png", "out.json"] {
        home.write(name, "precious");
    }
    let before = home.names();
    let compile = ["compile", "tiny.tif", "--spacing", "10", "-o", "out.hfw"];
    let shot = [OPENERS[1], &["world.hfw", "-o", "out.png"]].concat();
    #[rustfmt::skip]
    let stats = [OPENERS[1], &["world.hfw", "-o", "new.png", "--stats", "out.json"]].concat();
    let runs: [(&[&str], &str); 3] = [
        (&compile, "out.hfw"),
        (&shot, "out.png"),
        (&stats, "out.json"),
    ];
    for (arguments, name) in runs {
        let refused = home.run(arguments);
        assert_refused(&refused, 2, name);
        assert!(refused.stderr.contains("--force"), "{refused:?}");
        let kept = std::fs::read(home.work().join(name)).expect("the file");
        assert_eq!(kept, b"precious");
        assert_eq!(home.names(), before);
    }
    for (arguments, name) in runs {
        home.succeed(&[arguments, &["--force"]].concat());
        let written = std::fs::read(home.work().join(name)).expect("the file");
        assert_ne!(written, b"precious");
    }
}

#[test]
fn help_begins_with_examples() {
    let home = Home::new();
    for verb in ["", "fly", "compile", "shot", "inspect"] {
        let arguments = [verb, "--help"];
        let run = home.succeed(&arguments[usize::from(verb.is_empty())..]);
        let start = ["Examples:\n  highfell ", verb].concat();
        assert!(run.stdout.starts_with(&start), "{run:?}");
    }
}

/// What comes behind a word in a text, up to the next space.
fn behind<'a>(text: &'a str, word: &str) -> &'a str {
    let (_, rest) = text.split_once(word).expect(word);
    rest.split_whitespace().next().expect("a value")
}

#[test]
fn examples_look_at_ground_and_the_readme_draws_its_picture() {
    let Some(path) = data_file("N43E007.hgt") else {
        return;
    };
    let home = Home::new();
    let path = path.to_str().expect("a plain name");
    home.succeed(&["compile", path, "-o", "nice.hfw", "--sea-level", "0"]);
    let help = |verb| home.succeed(&[verb, "--help"]).stdout;
    let shown = help("inspect");
    let exported = format!(
        "0/{}",
        behind(&help("export"), "--patch ").replace(',', "/")
    );
    for patch in [behind(&shown, "--patch "), &exported] {
        let run = home.succeed(&["inspect", "nice.hfw", "--patch", patch, "--json"]);
        let facts: Value = serde_json::from_str(&run.stdout).expect("JSON");
        assert!(facts["min_m"].as_f64() > Some(0.0), "{facts}");
    }
    let program = home.succeed(&["--help"]).stdout;
    for text in [program, help("fly"), help("shot")] {
        let camera = behind(&text, "nice.hfw --camera ");
        let shot = [OPENERS[1], &["nice.hfw", "--camera", camera, "--force"]].concat();
        let run = home.succeed(&shot);
        let drawn_y = behind(&run.stderr, "--camera ").split(',').nth(1);
        let drawn_y: f64 = drawn_y.expect("numbers").parse().expect("a number");
        assert!(drawn_y > 300.0 + 50.0, "{camera}: {run:?}");
    }
    let readme = include_str!("../../README.md");
    let patch = behind(readme, "inspect nice.hfw --patch ");
    home.succeed(&[
        "inspect",
        "nice.hfw",
        "--patch",
        patch,
        "--svg",
        "patch.svg",
    ]);
    let drawn = std::fs::read_to_string(home.work().join("patch.svg")).expect("a drawing");
    assert!(drawn == include_str!("../../docs/pictures/patch.svg"));
}

#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_printed_is_an_error() {
    let home = Home::new();
    home.write("tiny.tif", tiny_tiff());
    let runs: [&[&str]; 3] = [
        &["--help"],
        &["shot", "--help"],
        &["compile", "tiny.tif", "--dry-run"],
    ];
    for arguments in runs {
        let full = std::fs::File::create("/dev/full").expect("a device that is full");
        let mut command = home.command(arguments);
        let child = command.stdout(full).stderr(std::process::Stdio::piped());
        let output = child.spawn().and_then(|child| child.wait_with_output());
        let output = output.expect("the binary starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(
            stderr.starts_with("highfell: standard output: "),
            "{stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn outputs_have_names_of_their_own_kind() {
    let home = Home::new();
    home.write("world.hfw", small_world());
    home.write("world.tif", small_world());
    home.write("tiny.tif", tiny_tiff());
    home.write("tiny.tif.msk", tiny_tiff());
    let before = home.names();
    #[rustfmt::skip]
    let runs: [(&[&str], &str); 9] = [
        (&["export", "world.hfw", "--heights", "h.obj"], "h.obj: heights are written as a GeoTIFF"),
        (&["export", "world.hfw", "--level", "0", "--all", "-o", "m.obj", "--heights", "m.obj"], "ends in .tif"),
        (&["export", "world.hfw", "--level", "0", "--all", "-o", "m.tif", "--heights", "m.tif"], "expected .obj"),
        (&["export", "world.hfw", "--heights", "none/h.tif"], "there is no folder none"),
        (&["shot", "world.hfw", "-o", "p.png", "--stats", "./p.png"], "both picture and statistics"),
        (&["compile", "world.hfw", "-o", "new/"], "new/: is the name of a folder"),
        (&["export", "world.tif", "--heights", "world.tif", "--force"], "read by this very command"),
        (&["compile", "world.hfw"], "read by this very command"),
        (&["compile", "tiny.tif", "-o", "tiny.tif.msk", "--force"], "tiny.tif.msk: is read by this very command"),
    ];
    for (arguments, what) in runs {
        assert_refused(&home.run(arguments), 2, what);
        assert_eq!(home.names(), before);
    }
}

#[test]
fn a_mask_that_is_not_read_is_told_however_quiet() {
    let home = Home::new();
    home.write("tiny.tif", tiny_tiff());
    home.write("tiny.tif.msk", "no mask");
    let compile = ["compile", "tiny.tif", "--spacing", "10", "--quiet"];
    let run = home.succeed(&compile);
    assert!(run.stderr.contains("a mask is not read"), "{run:?}");
    assert!(!run.stderr.contains("wrote"), "{run:?}");
}

/// Large patches and fine lattices leave less room for heights.
#[test]
fn heights_get_a_step_that_the_patches_have_room_for() {
    let home = Home::new();
    let heights = (0..40 * 40).flat_map(|i| (i as f32 * 5.3125).to_le_bytes());
    home.write("high.r32", heights.collect::<Vec<u8>>());
    home.write("tiny.tif", tiny_tiff());
    let large = ["--patch-cells", "512", "--lattice-bias", "2"];
    let compile = |name: &'static str, flags: &[&'static str]| {
        let start = ["compile", name, "--spacing", "10", "--force", "-o", "w.hfw"];
        home.run(&[&start[..], flags].concat())
    };
    for flags in [&large[..2], &large[2..], &large] {
        let run = compile("high.r32", flags);
        assert_eq!(run.code, Some(0), "{run:?}");
        let step = inspect(&home, "w.hfw")["height_step_m"].as_f64();
        let is_coarse = step > Some(1.0 / 64.0);
        assert_eq!(
            run.stderr.contains("rounded to steps of"),
            is_coarse,
            "{run:?}"
        );
        home.succeed(&["verify", "w.hfw", "--source", "high.r32"]);
        let look = compile("high.r32", &[flags, &["--dry-run"]].concat());
        let said = format!("in steps of {} m", step.expect("a number"));
        assert!(look.stdout.contains(&said), "{look:?}");
    }
    assert_eq!(inspect(&home, "w.hfw")["height_step_m"], 0.0625);
    for mode in ["--quiet", "--dry-run"] {
        let run = compile(
            "tiny.tif",
            &[&large[..], &["--height-step", "1e-4", mode]].concat(),
        );
        assert_refused(&run, 2, "tiny.tif: heights from 0 to 168 m");
        let expected = "expected --height-step 0.000641 or larger, or a smaller --patch-cells or --lattice-bias";
        assert!(run.stderr.contains(expected), "{run:?}");
        let named = compile(
            "tiny.tif",
            &[&large[..], &["--height-step", "0.000641", mode]].concat(),
        );
        assert_eq!(named.code, Some(0), "{named:?}");
    }
}

#[test]
fn inspect_has_exactly_the_documented_keys() {
    let home = Home::new();
    let bytes = small_world();
    home.write("world.hfw", &bytes);
    let value = inspect(&home, "world.hfw");
    let keys = |value: &Value| {
        let object = value.as_object().expect("an object");
        let mut keys: Vec<String> = object.keys().cloned().collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(
        keys(&value),
        "bytes height_step_m heights levels patch_cells sea_level_m size_cells source spacing_m water_mask"
    );
    assert_eq!(
        keys(&value["bytes"]),
        "coverage heights other topology total trees"
    );
    assert_eq!(
        keys(&value["source"]),
        "crs files filled kept max_m min_m voids"
    );
    let levels = value["levels"].as_array().expect("an array");
    assert!(levels.len() > 3);
    for (number, level) in levels.iter().enumerate() {
        assert_eq!(
            keys(level),
            "exhausted_patches lattice_stride level max_error_m metric patch_size_m patches \
             threshold topology_bits triangles vertices where"
        );
        assert_eq!(level["level"], number);
    }
    let parts = ["heights", "topology", "coverage", "trees", "other"];
    let sum: u64 = parts
        .iter()
        .map(|part| value["bytes"][part].as_u64().expect("bytes"))
        .sum();
    assert_eq!(sum, bytes.len() as u64);
    assert_eq!(value["bytes"]["total"], sum);
}

#[test]
fn without_an_adapter_the_program_says_what_to_install() {
    let home = Home::new();
    home.write("world.hfw", small_world());
    let mut command = home.command(&["shot", "world.hfw"]);
    command
        .env("VK_ICD_FILENAMES", "/nonexistent")
        .env("VK_DRIVER_FILES", "/nonexistent")
        .env("WGPU_BACKEND", "vulkan");
    let run = outcome(command);
    assert_refused(&run, 2, "mesa-vulkan-drivers");
    assert_eq!(home.names(), ["world.hfw"]);
}

#[test]
fn real_files_compile_to_worlds_that_know_them() {
    #[rustfmt::skip]
    let files = [
        ("N43E007.hgt", -11.0, 2064.0, 1595, 0.0),
        ("S33W071.tif", 250.0, 6929.0, 0, 0.0),
        ("reduced_Gironde.tif", -100.953, 104.302, 0, 5e-4),
        ("dem_landscape.tif", -4.73247, 921.448, 0, 5e-4),
        ("aizuwakamatsu_none.png", 44.0, 2044.0, 0, 0.0),
        ("west_bijou_gully.asc", 1680.78, 1725.43, 2739, 5e-3),
    ];
    let home = Home::new();
    for (name, min_m, max_m, voids, tolerance) in files {
        let Some(path) = data_file(name) else { return };
        let path = path.to_str().expect("a plain name");
        let spacing: &[&str] = if name.ends_with(".png") {
            &["--spacing", "30"]
        } else {
            &[]
        };
        home.succeed(&[&["compile", path, "-o", "out.hfw", "--force"], spacing].concat());
        let value = inspect(&home, "out.hfw");
        let source = &value["source"];
        let near = |key: &str, metres: f64| {
            let found = source[key].as_f64().expect("a number");
            assert!((found - metres).abs() <= tolerance, "{name}: {key} {found}");
        };
        near("min_m", min_m);
        near("max_m", max_m);
        assert_eq!(
            (&source["voids"], &source["filled"]),
            (&voids.into(), &voids.into())
        );
        assert_eq!(source["files"], serde_json::json!([name]));
        if name == "dem_landscape.tif" {
            assert_eq!(value["size_cells"], serde_json::json!([199, 124]));
        }
    }
}

/// One home for both, so that the world is compiled only twice.
#[test]
fn the_built_in_world_is_kept_mended_and_flown_over() {
    let home = Home::new();
    a_damaged_cache_is_made_again(&home);
    without_a_display_pictures_are_left(&home);
}

fn a_damaged_cache_is_made_again(home: &Home) {
    let first = home.succeed(&["inspect", "--json"]);
    let file = only_file_below(&home.cache());
    let bytes = std::fs::read(&file).expect("the cached world");
    assert_eq!(home.run(&["inspect", "--json"]).stdout, first.stdout);
    let mut damaged = bytes.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&file, damaged).expect("a writable cache");
    let again = home.succeed(&["inspect", "--json"]);
    assert_eq!(again.stdout, first.stdout);
    assert!(again.stderr.contains("made again"), "{again:?}");
    assert!(std::fs::read(&file).expect("the cached world") == bytes);
    assert_eq!(file, only_file_below(&home.cache()));
}

fn without_a_display_pictures_are_left(home: &Home) {
    let run = home.succeed(&["--adapter", "software"]);
    assert!(run.stderr.contains("display"), "{run:?}");
    assert_eq!(home.names(), ["highfell-pictures"]);
    let folder = home.work().join("highfell-pictures");
    let mut pictures = Vec::new();
    for name in names_in(&folder) {
        let picture = image::open(folder.join(&name))
            .expect("a picture")
            .to_rgb8();
        let first = *picture.get_pixel(0, 0);
        assert!(
            picture.pixels().any(|pixel| *pixel != first),
            "{name} is flat"
        );
        assert!(!pictures.contains(&picture), "{name} is there twice");
        pictures.push(picture);
    }
    assert!(pictures.len() >= 2, "only {} pictures", pictures.len());
    let refused = home.run(&["--adapter", "software"]);
    assert_refused(&refused, 2, "--force");
    assert!(refused.stderr.contains("flight-1.png"), "{refused:?}");
    home.succeed(&["--adapter", "software", "--force"]);
}

/// One line that names what is wrong, and nothing else.
fn assert_refused(run: &Outcome, code: i32, names: &str) {
    assert_eq!(run.code, Some(code), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    assert!(run.stderr.starts_with("highfell: "), "{run:?}");
    assert!(run.stderr.contains(names), "{run:?}");
    assert_eq!(run.stdout, "");
}

fn inspect(home: &Home, world: &str) -> Value {
    let run = home.succeed(&["inspect", "--json", world]);
    serde_json::from_str(&run.stdout).expect("JSON")
}

/// A world with levels in the global repository and levels that stream.
fn small_world() -> Vec<u8> {
    common::world_bytes(&common::rough_source(601, 401), &Default::default())
}

/// Where the facts end: the first chunk is the one that is read on opening.
fn end_of_first_chunk(world: &[u8]) -> usize {
    let entry = &world[HEADER_BYTES..HEADER_BYTES + ENTRY_BYTES];
    assert_eq!(&entry[..4], b"META");
    let offset = u64::from_le_bytes(entry[16..24].try_into().expect("8 bytes"));
    let stored = u32::from_le_bytes(entry[24..28].try_into().expect("4 bytes"));
    offset as usize + stored as usize
}

/// A TIFF of 5 by 5 heights of 16 bits.
fn tiny_tiff() -> Vec<u8> {
    const SIDE: u32 = 5;
    let heights: Vec<u8> = (0..SIDE * SIDE)
        .flat_map(|i| (i as u16 * 7).to_le_bytes())
        .collect();
    // Width, height, bits, no compression, grey, offset, samples, rows, bytes, signed.
    let long = 4u16;
    let tags: [(u16, u32); 10] = [
        (256, SIDE),
        (257, SIDE),
        (258, 16),
        (259, 1),
        (262, 1),
        (273, 8),
        (277, 1),
        (278, SIDE),
        (279, heights.len() as u32),
        (339, 2),
    ];
    let mut bytes = b"II\x2a\0".to_vec();
    bytes.extend((8 + heights.len() as u32).to_le_bytes());
    bytes.extend(heights);
    bytes.extend((tags.len() as u16).to_le_bytes());
    for (tag, value) in tags {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(long.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes
}

fn only_file_below(folder: &Path) -> std::path::PathBuf {
    let mut path = folder.to_owned();
    while path.is_dir() {
        let names = names_in(&path);
        assert_eq!(names.len(), 1, "{names:?} in {}", path.display());
        path.push(&names[0]);
    }
    path
}
