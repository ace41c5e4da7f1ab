//! Worlds that store heights at nodes only, through every verb that reads heights.

use crate::common::{Home, Outcome, data_file, rough_source, world_bytes};
use highfell::compile::CompileOptions;
use highfell::world::container::{self, ENTRY_BYTES, HEADER_BYTES};
use highfell::world::{ChunkKind, StoredHeights};
use serde_json::Value;

fn nodes_world() -> Vec<u8> {
    let options = CompileOptions {
        patch_cells: 8,
        heights: StoredHeights::Nodes,
        ..Default::default()
    };
    world_bytes(&rough_source(603, 550), &options)
}

fn verify(home: &Home, flags: &[&str]) -> (Outcome, Vec<Value>) {
    let arguments = ["verify", "world.hfw", "--json"];
    let run = home.run(&[&arguments[..], flags].concat());
    let about: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let checks = about["checks"].as_array().expect("an array").clone();
    (run, checks)
}

fn names(checks: &[Value], wanted: impl Fn(&Value) -> bool) -> Vec<&str> {
    let checks = checks.iter().filter(|check| wanted(check));
    checks
        .map(|check| check["check"].as_str().expect("a name"))
        .collect()
}

#[test]
fn a_compiled_world_passes_with_its_source_and_says_what_it_skips_without() {
    let Some(path) = data_file("N43E007.hgt") else {
        return;
    };
    let path = path.to_str().expect("a plain name");
    let home = Home::new();
    let compile = ["compile", path, "--sea-level", "0", "--error", "20"];
    for (heights, world) in [("nodes", "world.hfw"), ("all", "all.hfw")] {
        home.succeed(&[&compile[..], &["--heights", heights, "-o", world]].concat());
    }
    let bytes = |name: &str| {
        std::fs::metadata(home.work().join(name))
            .expect("a world")
            .len()
    };
    assert!(2 * bytes("world.hfw") < bytes("all.hfw"));

    let (run, checks) = verify(&home, &["--source", path]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(checks.len(), 10);
    assert!(
        checks
            .iter()
            .all(|check| check["compared"].as_u64() > Some(10))
    );
    assert_eq!(names(&checks, |check| check["skipped"] == true), [""; 0]);

    let (run, checks) = verify(&home, &[]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let skipped = ["heights", "bounds", "certificates"];
    assert_eq!(names(&checks, |check| check["skipped"] == true), skipped);
    let text = home.run(&["verify", "world.hfw"]);
    assert_eq!(text.stdout.matches("skipped ").count(), 3, "{text:?}");
    assert!(text.stdout.contains("--source"), "{text:?}");

    let Some(other) = data_file("N44W072.hgt") else {
        return;
    };
    let (run, checks) = verify(&home, &["--source", other.to_str().expect("a plain name")]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let failed = names(&checks, |check| check["sound"] == false);
    assert!(
        failed.contains(&"heights") && failed.contains(&"source"),
        "{failed:?}"
    );
}

#[test]
fn any_flip_in_a_chunk_of_heights_is_found() {
    let home = Home::new();
    let good = nodes_world();
    let info = container::parse_header(&good[..HEADER_BYTES], good.len() as u64).expect("a header");
    let table = &good[HEADER_BYTES..][..info.chunks as usize * ENTRY_BYTES];
    let entries = container::parse_table(table, &info, good.len() as u64).expect("a table");
    let heights: Vec<_> = entries
        .iter()
        .filter(|entry| entry.id.kind == ChunkKind::Heights)
        .collect();
    assert!(heights.len() > 10);
    for entry in heights.iter().step_by(3) {
        let mut bad = good.clone();
        bad[entry.offset as usize + entry.stored_bytes as usize / 2] ^= 4;
        home.write("world.hfw", bad);
        let (run, checks) = verify(&home, &[]);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(names(&checks, |check| check["sound"] == false).contains(&"checksums"));
    }
}

#[test]
fn it_is_inspected_exported_and_drawn() {
    let home = Home::new();
    home.write("world.hfw", nodes_world());
    let inspected = home.run(&["inspect", "world.hfw", "--json"]);
    let about: Value = serde_json::from_str(&inspected.stdout).expect("JSON");
    assert_eq!(about["heights"], "nodes");
    let text = home.run(&["inspect", "world.hfw"]);
    assert!(text.stdout.contains("heights at nodes only"), "{text:?}");

    home.succeed(&["export", "world.hfw", "--heights", "rebuilt.tif"]);
    home.succeed(&["compile", "rebuilt.tif", "-o", "again.hfw"]);

    let shot = [
        "shot",
        "world.hfw",
        "--adapter",
        "software",
        "--size",
        "320x180",
    ];
    let outputs = ["-o", "picture.png", "--stats", "stats.json"];
    home.succeed(&[&shot[..], &outputs].concat());
    let stats = std::fs::read_to_string(home.work().join("stats.json")).expect("counters");
    let stats: Value = serde_json::from_str(&stats).expect("JSON");
    assert_eq!(stats["hole_pixels"], 0, "{stats}");
}
