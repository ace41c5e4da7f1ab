//! `highfell verify` finds nothing wrong with sound worlds, and what is wrong with others.
//!
//! The broken worlds have right checksums everywhere: one thing in them was changed and written
//! again as the compiler would have.

use std::sync::Arc;

use highfell::compile::CompileOptions;
use highfell::import::{ImportOptions, load};
use highfell::world::container::{self, ENTRY_BYTES, HEADER_BYTES, pack};
use highfell::world::reader::{META_CHUNK, chunk_of};
use highfell::world::{
    Bits, ChunkId, ChunkKind, HeightGrid, Meta, PatchKey, PatchRecord, StoredHeights,
};
use highfell::world::{MemorySpool, SectionKey, World, WorldWriter, heights, topology};
use serde_json::Value;

use crate::common::{Home, Outcome, data_file, rough_source, world_bytes};

fn sound_world() -> Vec<u8> {
    let options = CompileOptions {
        patch_cells: 8,
        sea_level_m: Some(20.0),
        ..Default::default()
    };
    world_bytes(&rough_source(603, 550), &options)
}

#[test]
fn a_sound_world_passes_and_every_check_compared_something() {
    let home = Home::new();
    home.write("world.hfw", sound_world());
    let run = home.run(&["verify", "world.hfw"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{run:?}");
    assert!(
        run.stdout.lines().all(|line| line.starts_with("ok ")),
        "{run:?}"
    );
    let about = json(&home, &["verify", "world.hfw", "--json"]);
    assert_eq!(about["sound"], true);
    let checks = about["checks"].as_array().expect("an array");
    let names: Vec<&str> = checks
        .iter()
        .map(|check| check["check"].as_str().expect("a name"))
        .collect();
    assert_eq!(
        names,
        [
            "checksums",
            "sections",
            "heights",
            "coverage",
            "bounds",
            "certificates",
            "nesting",
            "borders",
            "facts"
        ]
    );
    for check in checks {
        assert!(check["compared"].as_u64() > Some(10), "{check}");
    }
}

#[test]
fn real_worlds_pass_with_their_source_and_not_with_another() {
    let home = Home::new();
    for name in ["N43E007.hgt", "reduced_Gironde.tif", "west_bijou_gully.asc"] {
        let Some(path) = data_file(name) else { return };
        let path = path.to_str().expect("a plain name");
        home.succeed(&[
            "compile",
            path,
            "-o",
            "world.hfw",
            "--force",
            "--error",
            "10",
        ]);
        let about = json(&home, &["verify", "world.hfw", "--source", path, "--json"]);
        let source = about["checks"]
            .as_array()
            .and_then(|checks| checks.last())
            .expect("a check");
        assert_eq!(source["check"], "source");
        assert!(source["compared"].as_u64() > Some(3000), "{source}");
    }
    let Some(other) = data_file("zSW3.asc") else {
        return;
    };
    let other = other.to_str().expect("a plain name");
    let run = home.run(&["verify", "world.hfw", "--source", other]);
    assert_names(&run, &["source"], "zSW3.asc");
}

#[test]
fn a_wrong_source_or_mask_is_told_as_such_in_a_few_lines() {
    let home = Home::new();
    for (name, add) in [("right.asc", 0), ("wrong.asc", 3)] {
        let mut text = String::from("ncols 40\nnrows 40\ncellsize 10\n");
        (0..1600).for_each(|i| text += &format!("{} ", i * i % 97 + add));
        home.write(name, text);
    }
    image::GrayImage::from_pixel(8, 8, image::Luma([255]))
        .save(home.work().join("white.png"))
        .expect("a PNG");
    for heights in ["all", "nodes"] {
        let compile = [
            "compile",
            "right.asc",
            "-o",
            "w.hfw",
            "--force",
            "--heights",
        ];
        home.succeed(&[&compile[..], &[heights]].concat());
        let wrong = home.run(&["verify", "w.hfw", "--source", "wrong.asc"]);
        assert_differs(&wrong, "wrong.asc");
        assert!(wrong.stdout.contains("\n        and "), "{wrong:?}");
        let told = wrong.stdout.lines().filter(|line| line.starts_with("  "));
        let failed = wrong.stdout.matches("FAILED").count();
        assert!(told.count() <= 6 * failed, "{wrong:?}");
    }
    let masked = home.run(&["verify", "w.hfw", "--water-mask", "white.png"]);
    assert_differs(&masked, "white.png");
}

/// One line that blames neither the world nor the files.
fn assert_differs(run: &Outcome, name: &str) {
    assert_eq!((run.code, run.stderr.lines().count()), (Some(1), 1));
    let says = format!("world and source differ; expected {name} to be what");
    assert!(run.stderr.contains(&says), "{run:?}");
}

#[test]
fn a_scaled_source_is_read_as_it_was() {
    let Some(path) = data_file("aizuwakamatsu_none.png") else {
        return;
    };
    let path = path.to_str().expect("a plain name");
    let home = Home::new();
    home.succeed(&[
        "compile",
        path,
        "-o",
        "w.hfw",
        "--spacing",
        "30",
        "--height-scale",
        "0.1",
    ]);
    home.succeed(&["verify", "w.hfw", "--source", path]);
}

#[test]
fn damaged_chunks_are_listed_each() {
    let home = Home::new();
    let mut bytes = sound_world();
    let ids: Vec<ChunkId> = entries(&bytes).iter().map(|entry| entry.id).collect();
    for at in [3, 5] {
        let offset = entries(&bytes)[at].offset as usize;
        bytes[offset + 2] ^= 1;
    }
    home.write("bad.hfw", bytes);
    let run = home.run(&["verify", "bad.hfw"]);
    assert_names(&run, &["checksums", "sections"], "checksum differs");
    for id in [ids[3], ids[5]] {
        let name = format!("chunk {}/{}/{}", id.level, id.x, id.z);
        assert!(run.stdout.contains(&name), "{name}: {run:?}");
    }
    home.write("none.hfw", "no world at all");
    assert_eq!(home.run(&["verify", "none.hfw"]).code, Some(2));
}

#[test]
fn wrong_certificates_are_found_and_named() {
    let key = PatchKey::new(0, 3, 2);
    let promise = |change: fn(&mut PatchRecord)| {
        let run = verify(change_patch(&sound_world(), key, change));
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stdout.contains("patch 0/3/2"), "{run:?}");
        run
    };
    let smaller = promise(|record| record.error_m *= 0.75);
    assert_names(&smaller, &["certificates"], "found");
    let larger = promise(|record| record.error_m = record.error_m.next_up().next_up());
    assert_names(&larger, &["certificates"], "found");
    let exhausted = promise(|record| record.exhausted = !record.exhausted);
    assert!(
        exhausted.stdout.contains("exhausted stored"),
        "{exhausted:?}"
    );
    let bounds = promise(|record| record.max -= 1);
    assert!(bounds.stderr.contains("bounds"), "{bounds:?}");
}

#[test]
fn broken_borders_and_trees_that_do_not_nest_are_found_and_named() {
    let leaf = || {
        let mut bits = Bits::default();
        bits.push(false);
        bits
    };
    let flat = |record: &mut PatchRecord| record.trees = [leaf(), leaf()];
    let run = verify(change_patch(&sound_world(), PatchKey::new(0, 3, 2), flat));
    assert_names(
        &run,
        &["certificates", "nesting", "borders", "facts"],
        "patches 0/3/2 and 0/4/2",
    );
    assert!(run.stdout.contains("where its parent 1/1/1 is"), "{run:?}");
    // The only patch of the coarsest level: no parent, no neighbour.
    let run = verify(change_patch(&sound_world(), PatchKey::new(7, 0, 0), flat));
    assert_names(
        &run,
        &["certificates", "facts"],
        "patch 7/0/0: not split at",
    );
}

#[test]
fn wrong_facts_are_found_and_named() {
    let bytes = rewrite(&sound_world(), |id, raw| {
        if id != META_CHUNK {
            return raw;
        }
        let mut meta = Meta::from_bytes(&raw).expect("facts");
        meta.levels[2].vertices += 1;
        meta.to_bytes()
    });
    let run = verify(bytes);
    assert_names(&run, &["facts"], "level 2:");
}

/// Numbers and words of the facts that nothing else in a world tells: what a user chose, and what
/// stands for the map alone.
const FREE: [&str; 8] = [
    "/source/files/",
    "/source/crs",
    "/source/transform/0",
    "/source/transform/3",
    "/source/geo_keys",
    "/source/pixel_is_area",
    "/sea_level_m",
    "/live_factor",
];

/// Every number of a value, by its path.
fn numbers(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path),
        Value::Array(all) => {
            let all = all.iter().enumerate();
            all.for_each(|(i, value)| numbers(value, format!("{path}/{i}"), found));
        }
        Value::Object(all) => {
            let all = all.iter();
            all.for_each(|(key, value)| numbers(value, format!("{path}/{key}"), found));
        }
        _ => {}
    }
}

/// A place on the map for a world, its samples 7 x 11 m apart.
fn placed_source() -> highfell::source::Source {
    let mut source = rough_source(203, 150);
    source.info.crs = Some("EPSG:2263".into());
    let foot = 1200.0 / 3937.0;
    let [dx, dz] = [7.0 / foot, 11.0 / foot];
    source.info.transform = Some([984_250.0, dx, 0.0, 200_000.0, 0.0, -dz]);
    source.info.metres_a_map_unit = Some([foot, foot]);
    source
}

#[test]
fn every_fact_that_the_rest_tells_is_checked() {
    let changes: &[f64] = match std::env::var_os("HIGHFELL_LONG") {
        Some(_) => &[0.5, 1.01, 2.0, -1.0, 0.0],
        None => &[1.01],
    };
    let (mut tried, mut refused, mut failed) = (0, 0, 0);
    let mut passed = Vec::new();
    for heights in [StoredHeights::All, StoredHeights::Nodes] {
        let options = CompileOptions {
            patch_cells: 8,
            sea_level_m: Some(20.0),
            live: true,
            heights,
            ..Default::default()
        };
        let good = world_bytes(&placed_source(), &options);
        assert_eq!(verify(good.clone()).code, Some(0));
        let facts: Value = serde_json::from_slice(&open(&good).meta.to_bytes()).expect("facts");
        let mut paths = Vec::new();
        numbers(&facts, String::new(), &mut paths);
        paths.retain(|path| !FREE.iter().any(|free| path.starts_with(free)));
        // Without samples nothing tells where in its patch a world ends, or has its summit.
        let in_a_patch = |path: &String| {
            ["/layout/size_cells", "/summit"]
                .iter()
                .any(|p| path.starts_with(p))
        };
        paths.retain(|path| heights == StoredHeights::All || !in_a_patch(path));
        for path in paths {
            for change in changes {
                let mut wrong = facts.clone();
                let number = wrong.pointer_mut(&path).expect("a number");
                let before = number.as_f64().expect("a number");
                // Whole numbers stay whole, so that what is refused is not their form.
                *number = match number.as_i64() {
                    Some(whole) => {
                        let changed = (before * change).round() as i64;
                        serde_json::json!(if changed == whole { whole + 1 } else { changed })
                    }
                    None => serde_json::json!(before * change),
                };
                if number.as_f64() == Some(before) {
                    continue;
                }
                let raw = serde_json::to_vec(&wrong).expect("JSON");
                let bad = rewrite(
                    &good,
                    |id, old| if id == META_CHUNK { raw.clone() } else { old },
                );
                tried += 1;
                match verify(bad).code {
                    Some(1) => failed += 1,
                    Some(2) => refused += 1,
                    code => passed.push(format!("{path} times {change} ({heights:?}): {code:?}")),
                }
            }
        }
    }
    println!("{tried} wrong facts: {refused} refused, {failed} failed a check");
    assert!(
        tried > 130 * changes.len() && failed > tried / 2,
        "{tried} {failed}"
    );
}

#[test]
fn a_changed_height_is_found_and_named() {
    let good = sound_world();
    let (id, changed) = changed_height(&good, 0, [17, 33]);
    let bytes = rewrite(
        &good,
        |found, raw| if found == id { changed.clone() } else { raw },
    );
    let home = Home::new();
    home.write("bad.hfw", bytes);
    let run = home.run(&["verify", "bad.hfw"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("certificates"), "{run:?}");
    assert!(run.stdout.contains("patch 0/2/4"), "{run:?}");
    // A height in an apron differs from the neighbour's own.
    let (id, changed) = changed_height(&good, 0, [513, 33]);
    let bytes = rewrite(
        &good,
        |found, raw| if found == id { changed.clone() } else { raw },
    );
    assert_names(&verify(bytes), &["heights"], "at sample 513,33");
}

#[test]
fn a_changed_height_that_nothing_else_tells_is_told_by_the_source() {
    let Some(path) = data_file("N44W072.hgt") else {
        return;
    };
    let source = load(&path, &ImportOptions::default()).expect("a sound file");
    let mut changed = source.clone_with(|map| map.heights[100 * 1201 + 50] += 1);
    changed.info.files = source.info.files.clone();
    let home = Home::new();
    let options = CompileOptions {
        error: Some(20.0),
        ..Default::default()
    };
    home.write("bad.hfw", world_bytes(&changed, &options));
    home.succeed(&["verify", "bad.hfw"]);
    let run = home.run(&[
        "verify",
        "bad.hfw",
        "--source",
        path.to_str().expect("a plain name"),
    ]);
    assert_names(&run, &["source"], "sample 50,100:");
}

trait CloneWith {
    fn clone_with(
        &self,
        change: impl FnOnce(&mut highfell::terrain::height_map::HeightMap),
    ) -> Self;
}

impl CloneWith for highfell::source::Source {
    fn clone_with(
        &self,
        change: impl FnOnce(&mut highfell::terrain::height_map::HeightMap),
    ) -> Self {
        let mut map = self.ground.whole().expect("it lies in memory");
        change(&mut map);
        highfell::source::Source {
            ground: Box::new(map),
            step_m: self.step_m,
            spacing_m: self.spacing_m,
            info: self.info.clone(),
        }
    }
}

/// Exit code 1, exactly these checks in the one line of the error, and a text in the list.
fn assert_names(run: &Outcome, checks: &[&str], text: &str) {
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    let failed = format!("checks failed: {};", checks.join(", "));
    assert!(run.stderr.contains(&failed), "{failed}: {run:?}");
    assert!(run.stdout.contains(text), "{text}: {run:?}");
    let listed = run
        .stdout
        .lines()
        .filter(|line| line.starts_with("FAILED"))
        .count();
    assert_eq!(listed, checks.len(), "{run:?}");
}

fn verify(world: Vec<u8>) -> Outcome {
    let home = Home::new();
    home.write("bad.hfw", world);
    home.run(&["verify", "bad.hfw"])
}

fn json(home: &Home, arguments: &[&str]) -> Value {
    let run = home.succeed(arguments);
    serde_json::from_str(&run.stdout).expect("JSON")
}

fn entries(world: &[u8]) -> Vec<container::Entry> {
    let info = container::parse_header(world, world.len() as u64).expect("a header");
    let end = HEADER_BYTES + info.chunks as usize * ENTRY_BYTES;
    container::parse_table(&world[HEADER_BYTES..end], &info, world.len() as u64).expect("a table")
}

/// The world with changed chunks, under right checksums.
pub fn rewrite(world: &[u8], change: impl Fn(ChunkId, Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let writer = WorldWriter::new(Box::new(MemorySpool::default()));
    for entry in entries(world) {
        let start = entry.offset as usize;
        let stored = world[start..start + entry.stored_bytes as usize].to_vec();
        let raw = container::unpack(&entry, stored, usize::MAX).expect("a sound chunk");
        let chunk = pack(entry.id, entry.coding, change(entry.id, raw));
        writer
            .add(chunk.expect("a small chunk"))
            .expect("memory takes all bytes");
    }
    let mut bytes = Vec::new();
    writer.write(&mut bytes).expect("memory takes all bytes");
    bytes
}

/// The world with one patch's record changed.
fn change_patch(world: &[u8], key: PatchKey, change: impl Fn(&mut PatchRecord)) -> Vec<u8> {
    let layout = open(world).meta.layout;
    let section = layout.section_of(key);
    let id = chunk_of(ChunkKind::Topology, section);
    let [x0, z0, x1, z1] = layout.section_patches(section);
    rewrite(world, |found, raw| {
        if found != id {
            return raw;
        }
        let count = ((x1 - x0) * (z1 - z0)) as usize;
        let mut records =
            topology::decode(&raw, count, layout.tree_depth(key.level)).expect("records");
        change(&mut records[((key.z - z0) * (x1 - x0) + key.x - x0) as usize]);
        topology::encode(&records)
    })
}

/// The heights of the first stream patch with one sample as low as the world's lowest: the chunk
/// and its new bytes.
fn changed_height(world: &[u8], level: u8, [x, z]: [i32; 2]) -> (ChunkId, Vec<u8>) {
    let world = open(world);
    let layout = world.meta.layout;
    let repository = world.read_repository().expect("a repository");
    let mut grids: Vec<Arc<HeightGrid>> = vec![repository.last().expect("a level").heights.clone()];
    for level in (level..layout.stream_levels).rev() {
        let key = SectionKey { level, x: 0, z: 0 };
        let section = world.read_section(key, grids.last()).expect("a section");
        grids.push(section.heights);
    }
    // Levels 0 and 1 share their heights: the chunk is the last one that adds samples.
    let owner = (level..layout.stream_levels)
        .find(|&k| layout.stride(k) != layout.stride(k + 1))
        .expect("a level that adds samples");
    let at = (layout.stream_levels - owner) as usize;
    let mut grid = HeightGrid::clone(&grids[at]);
    let rect = grid.rect;
    let lowest = world.meta.height_range[0];
    grid.heights[((z - rect.z0) * rect.width as i32 + x - rect.x0) as usize] = lowest;
    let id = chunk_of(
        ChunkKind::Heights,
        SectionKey {
            level: owner,
            x: 0,
            z: 0,
        },
    );
    (id, heights::encode(grid, true))
}

fn open(world: &[u8]) -> World {
    World::open(Box::new(world.to_vec()), "a world in memory").expect("a sound world")
}
