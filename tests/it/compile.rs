//! `highfell compile` as a script or an impatient user runs it: cores, progress, masks, levels,
//! Ctrl-C, and what must not change the bytes.

use crate::common::{Home, Outcome, data_file, world_bytes};
use highfell::compile::CompileOptions;
use highfell::import::{ImportOptions, load_tiles};
use highfell::world::World;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// A square raw file of rough ground.
fn raw(home: &Home, name: &str, side: u32) {
    let mut bytes = Vec::new();
    for i in 0..side * side {
        let (x, z) = ((i % side) as f64, (i / side) as f64);
        let metres =
            300.0 * (x / 90.0).sin() * (z / 70.0).cos() + 60.0 * (x / 7.0 + z / 11.0).sin();
        bytes.extend(((metres + 500.0) as u16).to_le_bytes());
    }
    home.write(name, bytes);
}

fn compile(home: &Home, flags: &[&str]) -> Outcome {
    let arguments = [
        "compile",
        "ground.r16",
        "--spacing",
        "10",
        "--force",
        "--quiet",
    ];
    home.succeed(&[&arguments[..], flags].concat())
}

fn triangles(home: &Home, world: &str) -> Vec<u64> {
    let run = home.run(&["inspect", world, "--json"]);
    let facts: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let levels = facts["levels"].as_array().expect("levels").iter();
    levels
        .map(|level| level["triangles"].as_u64().expect("a number"))
        .collect()
}

#[test]
fn the_same_bytes_with_any_number_of_cores() {
    let home = Home::new();
    raw(&home, "ground.r16", 1100);
    for (cores, name) in [("1", "one.hfw"), ("2", "two.hfw"), ("7", "seven.hfw")] {
        compile(&home, &["--jobs", cores, "-o", name]);
    }
    let bytes = |name: &str| std::fs::read(home.work().join(name)).expect("a world");
    assert!(bytes("one.hfw") == bytes("two.hfw") && bytes("two.hfw") == bytes("seven.hfw"));
}

/// A part of a made-up map as an ESRI ASCII grid, [column, row, columns, rows] of 700 x 600.
fn grid(home: &Home, name: &str, [column, row, columns, rows]: [i32; 4]) -> PathBuf {
    let height = |x: i32, z: i32| (x * x / 90 + z * 7) % 211 + (x / 31) * (z / 17);
    let mut text = format!(
        "ncols {columns}\nnrows {rows}\nxllcorner {}\nyllcorner {}\ncellsize 10\n",
        column * 10,
        (600 - row - rows) * 10
    );
    for z in row..row + rows {
        let heights: Vec<String> = (column..column + columns)
            .map(|x| height(x, z).to_string())
            .collect();
        text += &(heights.join(" ") + "\n");
    }
    home.write(name, text)
}

#[test]
fn the_same_bytes_however_the_input_is_cut_into_tiles() {
    let home = Home::new();
    let cuts: [&[[i32; 4]]; 3] = [
        &[[0, 0, 700, 600]],
        &[[0, 0, 300, 600], [300, 0, 400, 600]],
        // Seams shared, and one tile inside another's row.
        &[
            [0, 0, 351, 200],
            [350, 0, 350, 200],
            [0, 199, 100, 401],
            [99, 199, 601, 401],
        ],
    ];
    let worlds = cuts.iter().enumerate().map(|(cut, tiles)| {
        let paths: Vec<PathBuf> = tiles
            .iter()
            .enumerate()
            .map(|(at, &tile)| grid(&home, &format!("{cut}-{at}.asc"), tile))
            .collect();
        let (mut source, _) = load_tiles(&paths, &ImportOptions::default()).expect("sound tiles");
        assert_eq!(source.info.files.len(), tiles.len());
        source.info.files = vec!["whole".into()];
        world_bytes(&source, &CompileOptions::default())
    });
    let worlds: Vec<Vec<u8>> = worlds.collect();
    assert!(worlds[0].len() > 10_000);
    assert!(worlds[0] == worlds[1] && worlds[1] == worlds[2]);
}

/// A lone peak in a plain drags in corners of tiles that have nothing to split themselves.
#[test]
fn tiles_follow_what_their_diagonal_neighbours_raise() {
    let home = Home::new();
    let side = 2049usize;
    for (at, peak) in [[912, 612], [612, 912], [1500, 1100], [1023, 511]]
        .into_iter()
        .enumerate()
    {
        let mut heights = vec![0u16; side * side];
        heights[peak[1] * side + peak[0]] = 1000;
        let bytes: Vec<u8> = heights
            .iter()
            .flat_map(|height| height.to_le_bytes())
            .collect();
        home.write("ground.r16", bytes);
        compile(&home, &["-o", "peak.hfw", "--live"]);
        let verified = home.run(&["verify", "peak.hfw", "--source", "ground.r16"]);
        assert_eq!(verified.code, Some(0), "peak {at}: {verified:?}");
    }
}

#[test]
fn scripts_read_progress_and_the_result_as_json() {
    let home = Home::new();
    raw(&home, "ground.r16", 1100);
    let run = compile(&home, &["--json", "-o", "out.hfw"]);
    let lines: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let (written, progress) = lines.split_last().expect("lines");
    assert_eq!(written["written"], "out.hfw");
    assert!(progress.len() > 4, "{run:?}");
    let mut percents: Vec<u64> = progress
        .iter()
        .filter_map(|line| line["percent"].as_u64())
        .collect();
    percents.sort();
    assert_eq!(
        (percents.len(), percents.last()),
        (progress.len(), Some(&100))
    );
}

#[test]
fn live_thresholds_are_stored_and_verified() {
    let home = Home::new();
    raw(&home, "ground.r16", 300);
    compile(&home, &["-o", "plain.hfw"]);
    compile(&home, &["-o", "live.hfw", "--live"]);
    let bytes = |name: &str| std::fs::read(home.work().join(name)).expect("a world");
    assert_eq!(triangles(&home, "plain.hfw"), triangles(&home, "live.hfw"));
    assert!(bytes("live.hfw").len() > bytes("plain.hfw").len());
    home.succeed(&["verify", "live.hfw", "--source", "ground.r16"]);
    let world = World::open(Box::new(bytes("live.hfw")), "live").expect("a world");
    let repository = world.read_repository().expect("sections");
    for section in &repository {
        let steps = world
            .read_live(section)
            .expect("sound steps")
            .expect("some");
        assert_eq!(steps.len(), section.patches.len());
    }
}

#[test]
fn a_detail_mask_asks_for_full_resolution_where_it_is_white() {
    let home = Home::new();
    raw(&home, "ground.r16", 257);
    let mut mask = image::GrayImage::new(64, 64);
    compile(&home, &["-o", "plain.hfw", "--error", "20"]);
    mask.save(home.work().join("black.png")).expect("a PNG");
    mask.enumerate_pixels_mut()
        .for_each(|(x, z, grey)| grey.0[0] = if x < 32 && z < 32 { 255 } else { 0 });
    mask.save(home.work().join("mask.png")).expect("a PNG");
    compile(
        &home,
        &[
            "-o",
            "black.hfw",
            "--error",
            "20",
            "--detail-mask",
            "black.png",
        ],
    );
    compile(
        &home,
        &[
            "-o",
            "masked.hfw",
            "--error",
            "20",
            "--detail-mask",
            "mask.png",
        ],
    );
    let [plain, black, masked] =
        ["plain.hfw", "black.hfw", "masked.hfw"].map(|w| triangles(&home, w));
    assert_eq!(plain, black);
    assert!(
        plain
            .iter()
            .zip(&masked)
            .all(|(plain, masked)| masked > plain)
    );
    // A quarter of the map has all its cells.
    assert!(
        masked[0] >= 2 * 128 * 128 && masked[0] < 3 * 128 * 128,
        "{masked:?}"
    );
    home.succeed(&["verify", "masked.hfw", "--source", "ground.r16"]);
    let refused = home.run(&[
        "compile",
        "ground.r16",
        "--detail-mask",
        "ground.r16",
        "-o",
        "no.hfw",
    ]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("expected a PNG picture"),
        "{refused:?}"
    );
}

#[test]
fn fewer_levels_and_other_lattices_make_sound_worlds() {
    let home = Home::new();
    raw(&home, "ground.r16", 400);
    for flags in [
        ["--levels", "1", "--lattice-bias", "0"],
        ["--levels", "3", "--lattice-bias", "2"],
        ["--levels", "9", "--lattice-bias", "0"],
        ["--metric", "sum", "--patch-cells", "16"],
    ] {
        compile(&home, &[&flags[..], &["-o", "out.hfw"]].concat());
        let verified = home.run(&["verify", "out.hfw", "--source", "ground.r16"]);
        assert_eq!(verified.code, Some(0), "{flags:?}: {verified:?}");
    }
    compile(&home, &["--levels", "3", "-o", "three.hfw"]);
    assert_eq!(triangles(&home, "three.hfw").len(), 3);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_compile_and_leaves_nothing() {
    let home = Home::new();
    raw(&home, "ground.r16", 3000);
    let before = home.names();
    let arguments = [
        "compile",
        "ground.r16",
        "--spacing",
        "10",
        "--error",
        "0.1",
        "--json",
        "-o",
        "out.hfw",
    ];
    let mut command = home.command(&arguments);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // The first line of progress: the compile has begun, its temporary files are there.
    let mut first = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("piped"));
    std::io::BufRead::read_line(&mut stdout, &mut first).expect("a line");
    assert!(first.contains("percent"), "{first}");
    let signal = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(signal.expect("kill").success());
    let drain = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    let output = child.wait_with_output().expect("it ends");
    drain.join().expect("no panic").expect("read to the end");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("interrupted; nothing was written"),
        "{stderr}"
    );
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(home.names(), before);
}

#[test]
fn the_reference_patch_has_the_smallest_meshes() {
    let Some(path) = data_file("N44W072.hgt") else {
        return;
    };
    let home = Home::new();
    let path = path.to_str().expect("UTF-8");
    let cut = [
        "--crop",
        "0,0,513,513",
        "--patch-cells",
        "512",
        "--levels",
        "1",
    ];
    for (error, expected) in [
        ("2", 289_882),
        ("5", 131_030),
        ("10", 54_877),
        ("20", 21_612),
    ] {
        let arguments = [
            "compile", path, "-o", "w.hfw", "--force", "--quiet", "--error", error,
        ];
        home.succeed(&[&arguments[..], &cut].concat());
        assert_eq!(triangles(&home, "w.hfw"), [expected], "at {error} m");
        let run = home.run(&["inspect", "w.hfw", "--json"]);
        let facts: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let reached = facts["levels"][0]["max_error_m"].as_f64().expect("metres");
        assert!(reached <= error.parse().expect("a number"), "{reached}");
        home.succeed(&["verify", "w.hfw"]);
    }
}
