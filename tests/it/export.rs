//! Meshes and heights written for other programs, read back by plain readers of their own.

use std::collections::HashMap;

use highfell::compile::CompileOptions;
use highfell::import::{ImportOptions, load};
use highfell::world::World;
use serde_json::Value;

use crate::common::{Home, data_file, rough_source, world_bytes};

/// What a mesh file holds, whatever its format.
struct Mesh {
    positions: Vec<[f64; 3]>,
    normals: Vec<[f64; 3]>,
    triangles: Vec<[usize; 3]>,
}

fn home_with_a_world(options: &CompileOptions) -> (Home, World) {
    let home = Home::new();
    let bytes = world_bytes(&rough_source(203, 150), options);
    home.write("world.hfw", &bytes);
    let world = World::open(Box::new(bytes), "world.hfw").expect("a sound world");
    (home, world)
}

fn small_patches() -> CompileOptions {
    CompileOptions {
        patch_cells: 8,
        ..Default::default()
    }
}

#[test]
fn the_three_formats_hold_one_mesh_and_it_is_sound() {
    let (home, world) = home_with_a_world(&small_patches());
    for level in 0..world.meta.layout.levels {
        let level = level.to_string();
        let export = |name: &str, more: &[&str]| {
            let arguments = ["export", "world.hfw", "--level", &level, "--all", "--force"];
            let run = home.succeed(&[&arguments, more, &["-o", name]].concat());
            assert!(run.stderr.starts_with("wrote "), "{run:?}");
            std::fs::read(home.work().join(name)).expect("the mesh")
        };
        let obj = read_obj(&export("mesh.obj", &[]));
        let ply = read_ply(&export("mesh.ply", &[]));
        let glb = read_glb(&export("mesh.glb", &[]));
        check_mesh(&obj, [202.0 * 7.0, 149.0 * 11.0]);
        for other in [&ply, &glb] {
            assert_eq!(other.triangles, obj.triangles);
            assert!(near(&other.positions, &obj.positions, 1e-4));
            assert!(near(&other.normals, &obj.normals, 1e-5));
        }
        let whole = read_ply(&export("whole.ply", &["--whole-patches"]));
        let facts = &world.meta.levels[level.parse::<usize>().expect("a number")];
        assert_eq!(whole.triangles.len() as u64, facts.triangles);
        assert_eq!(whole.positions.len() as u64, facts.vertices);
    }
}

#[test]
fn regions_join_to_the_whole() {
    let (home, world) = home_with_a_world(&small_patches());
    let [nx, nz] = world.meta.layout.patches(1);
    let export = |part: &[&str]| {
        let arguments = [
            "export",
            "world.hfw",
            "--level",
            "1",
            "-o",
            "part.obj",
            "--force",
        ];
        home.succeed(&[&arguments, part].concat());
        read_obj(&std::fs::read(home.work().join("part.obj")).expect("the mesh"))
    };
    let whole = export(&["--all"]);
    let west = export(&["--region", "0,0,3,999"]);
    let east = export(&["--region", "4,0,999,999"]);
    let count = |mesh: &Mesh| mesh.triangles.len();
    assert_eq!(count(&west) + count(&east), count(&whole));
    let patches = (0..nz).flat_map(|z| (0..nx).map(move |x| format!("{x},{z}")));
    let singly: usize = patches
        .take(5)
        .map(|patch| count(&export(&["--patch", &patch])))
        .sum();
    assert_eq!(singly, count(&export(&["--region", "0,0,4,0"])));
}

#[test]
fn exported_heights_come_back_exactly() {
    let home = Home::new();
    let rough = rough_source(203, 150);
    home.write("rough.hfw", world_bytes(&rough, &small_patches()));
    let run = home.succeed(&["export", "rough.hfw", "--heights", "rough.tif"]);
    assert!(
        run.stderr.contains("float32") && run.stderr.contains("--height-step 0.25"),
        "{run:?}"
    );
    let options = ImportOptions {
        height_step_m: Some(0.25),
        ..Default::default()
    };
    let back = load(&home.work().join("rough.tif"), &options).expect("a sound GeoTIFF");
    assert_eq!(back.ground.whole().unwrap(), rough.ground.whole().unwrap());
    assert_eq!(back.spacing_m, rough.spacing_m);
}

#[test]
fn real_files_come_back_with_their_georeference_and_the_same_meshes() {
    #[rustfmt::skip]
    let files = [
        ("N44W072.hgt", "int16"), ("S33W071.tif", "int16"), ("lidar_dem.tif", "float32"),
        ("dem_squared.tif", "float32"), ("4_x_3.asc", "int16"),
    ];
    let home = Home::new();
    for (name, kind) in files {
        let Some(path) = data_file(name) else { return };
        let source = load(&path, &ImportOptions::default()).expect("a sound file");
        let options = CompileOptions {
            error: Some(20.0),
            ..Default::default()
        };
        let first = world_bytes(&source, &options);
        home.write("first.hfw", &first);
        let run = home.succeed(&["export", "first.hfw", "--heights", "back.tif", "--force"]);
        let step = ImportOptions {
            height_step_m: Some(source.step_m),
            ..Default::default()
        };
        let back = load(&home.work().join("back.tif"), &step).expect("a sound GeoTIFF");
        assert_eq!(
            back.ground.whole().unwrap(),
            source.ground.whole().unwrap(),
            "{name}"
        );
        assert!(run.stderr.contains(kind), "{name}: {run:?}");
        assert_eq!(back.info.crs, source.info.crs, "{name}");
        assert_eq!(back.info.pixel_is_area, source.info.pixel_is_area, "{name}");
        let same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs();
        assert!(
            (0..2).all(|i| same(back.spacing_m[i], source.spacing_m[i])),
            "{name}"
        );
        let places = |transform: Option<[f64; 6]>| transform.expect("a place");
        let pairs = places(back.info.transform)
            .into_iter()
            .zip(places(source.info.transform));
        pairs.for_each(|(a, b)| assert!(same(a, b), "{name}: {a} for {b}"));
        assert_eq!(
            trees(&world_bytes(&back, &options)),
            trees(&first),
            "{name}"
        );
    }
}

#[test]
fn what_cannot_be_exported_is_refused_in_a_line() {
    let (home, _) = home_with_a_world(&small_patches());
    home.write("there.obj", "precious");
    let before = home.names();
    #[rustfmt::skip]
    let cases: [(&[&str], &str); 9] = [
        (&["--level", "19", "--all", "-o", "a.obj"], "no level 19; expected 0 to"),
        (&["--level", "0", "--patch", "26,0", "-o", "a.obj"], "no patch from 26,0"),
        (&["--level", "0", "--region", "3,3,2,4", "-o", "a.obj"], "no patch from 3,3"),
        (&["--level", "0", "--region", "1,2,3", "-o", "a.obj"], "'1,2,3' is not 4 whole numbers"),
        (&["--level", "0", "--all", "-o", "a.stl"], "expected .obj, .ply or .glb"),
        (&["--level", "0", "--all", "-o", "there.obj"], "--force"),
        (&["--level", "0", "--all"], "--output"),
        (&["--level", "0", "-o", "a.obj"], "--patch"),
        (&["--heights", "world.hfw", "--force"], "ends in .tif"),
    ];
    for (arguments, names) in cases {
        let run = home.run(&[&["export", "world.hfw"], arguments].concat());
        assert_eq!(run.code, Some(2), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(names), "{arguments:?}: {run:?}");
        assert_eq!(home.names(), before);
    }
}

#[test]
fn a_patch_is_shown_down_to_its_bits() {
    let (home, _) = home_with_a_world(&small_patches());
    let inspect =
        |more: &[&str]| home.run(&[&["inspect", "world.hfw", "--patch", "0/3/2"], more].concat());
    let run = inspect(&["--json", "--svg", "patch.svg"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let about: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let bits: Vec<&str> = about["bits"]
        .as_array()
        .expect("two")
        .iter()
        .map(|bits| bits.as_str().expect("bits"))
        .collect();
    let leaves: usize = bits.iter().map(|bits| bits.matches('0').count()).sum();
    assert_eq!(about["triangles"], leaves);
    let depths = about["leaves_by_depth"].as_array().expect("an array");
    let sum: u64 = depths
        .iter()
        .map(|count| count.as_u64().expect("a count"))
        .sum();
    assert_eq!(sum, leaves as u64);
    assert_eq!(about["size_m"], serde_json::json!([56.0, 88.0]));
    let text = inspect(&[]).stdout;
    assert!(text.contains(&format!("{leaves} triangles")), "{text}");
    assert!(
        bits.iter()
            .all(|bits| text.replace("\n  ", "").contains(bits)),
        "{text}"
    );
    let svg = std::fs::read_to_string(home.work().join("patch.svg")).expect("the figure");
    assert!(svg.starts_with("<svg") && svg.contains("Patch 0/3/2 of world"));
    let again = inspect(&["--svg", "patch.svg"]);
    assert!(
        again.code == Some(2) && again.stderr.contains("--force"),
        "{again:?}"
    );
    let beyond = home.run(&["inspect", "world.hfw", "--patch", "0/99/0"]);
    assert_eq!(beyond.code, Some(2));
    assert!(
        beyond.stderr.contains("expected 0/0/0 to 0/25/18"),
        "{beyond:?}"
    );
}

/// Every edge inside is shared by two triangles that run it in opposite directions; all look
/// up, and together they are the ground, once.
fn check_mesh(mesh: &Mesh, [width, depth]: [f64; 2]) {
    let mut edges: HashMap<[usize; 2], i32> = HashMap::new();
    let mut area = 0.0;
    for triangle in &mesh.triangles {
        let [a, b, c] = triangle.map(|i| mesh.positions[i]);
        let up = (b[2] - a[2]) * (c[0] - a[0]) - (b[0] - a[0]) * (c[2] - a[2]);
        assert!(up > 0.0, "counter-clockwise from above");
        area += up / 2.0;
        for i in 0..3 {
            let (from, to) = (triangle[i], triangle[(i + 1) % 3]);
            *edges.entry([from, to]).or_default() += 1;
        }
    }
    assert!((area - width * depth).abs() < 1e-6 * area, "{area}");
    let on_rim = |i: usize| {
        let [x, _, z] = mesh.positions[i];
        x == 0.0 || z == 0.0 || (x - width).abs() < 1e-6 || (z - depth).abs() < 1e-6
    };
    for (&[from, to], &count) in &edges {
        assert_eq!(count, 1);
        let inside = edges.contains_key(&[to, from]);
        assert!(
            inside || (on_rim(from) && on_rim(to)),
            "a crack from {from} to {to}"
        );
    }
    let unit =
        |n: &[f64; 3]| (n.iter().map(|v| v * v).sum::<f64>() - 1.0).abs() < 1e-4 && n[1] > 0.0;
    assert!(mesh.normals.iter().all(unit));
    assert_eq!(mesh.normals.len(), mesh.positions.len());
}

fn near(a: &[[f64; 3]], b: &[[f64; 3]], tolerance: f64) -> bool {
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    a.len() == b.len() && pairs.into_iter().all(|(a, b)| (a - b).abs() <= tolerance)
}

fn read_obj(bytes: &[u8]) -> Mesh {
    let (mut positions, mut normals, mut triangles) = (Vec::new(), Vec::new(), Vec::new());
    for line in std::str::from_utf8(bytes).expect("text").lines() {
        let mut words = line.split_whitespace();
        let kind = words.next();
        let mut numbers =
            || [(); 3].map(|()| words.next().expect("a number").parse().expect("a number"));
        match kind {
            Some("v") => positions.push(numbers()),
            Some("vn") => normals.push(numbers()),
            Some("f") => triangles.push([(); 3].map(|()| {
                let corner = words.next().expect("a corner");
                let (position, normal) = corner.split_once("//").expect("two indices");
                assert_eq!(position, normal);
                position.parse::<usize>().expect("an index") - 1
            })),
            other => assert_eq!(other, Some("#")),
        }
    }
    Mesh {
        positions,
        normals,
        triangles,
    }
}

fn read_ply(bytes: &[u8]) -> Mesh {
    let end = b"end_header\n";
    let at = bytes
        .windows(end.len())
        .position(|part| part == end)
        .expect("a header")
        + end.len();
    let header = std::str::from_utf8(&bytes[..at]).expect("text");
    assert!(header.starts_with("ply\nformat binary_little_endian 1.0\n"));
    let count = |name: &str| -> usize {
        let line = header.lines().find_map(|line| line.strip_prefix(name));
        line.expect("a count").trim().parse().expect("a count")
    };
    let (vertices, faces) = (count("element vertex"), count("element face"));
    let (vertex_bytes, face_bytes) = bytes[at..].split_at(vertices * 24);
    assert_eq!(face_bytes.len(), faces * 13);
    let numbers: Vec<[f64; 3]> = vectors(vertex_bytes);
    Mesh {
        positions: numbers.iter().step_by(2).copied().collect(),
        normals: numbers.iter().skip(1).step_by(2).copied().collect(),
        triangles: face_bytes
            .chunks(13)
            .map(|face| {
                assert_eq!(face[0], 3);
                indices(&face[1..])[0]
            })
            .collect(),
    }
}

fn read_glb(bytes: &[u8]) -> Mesh {
    let u32_at =
        |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")) as usize;
    assert_eq!(
        (&bytes[..4], u32_at(4), u32_at(8)),
        (&b"glTF"[..], 2, bytes.len())
    );
    let about: Value = serde_json::from_slice(&bytes[20..20 + u32_at(12)]).expect("JSON");
    let data = 20 + u32_at(12) + 8;
    let accessor = |name: &Value| {
        let accessor = &about["accessors"][name.as_u64().expect("an index") as usize];
        let view = &about["bufferViews"][accessor["bufferView"].as_u64().expect("a view") as usize];
        let [start, length] =
            ["byteOffset", "byteLength"].map(|key| view[key].as_u64().expect("bytes") as usize);
        &bytes[data + start..data + start + length]
    };
    let primitive = &about["meshes"][0]["primitives"][0];
    Mesh {
        positions: vectors(accessor(&primitive["attributes"]["POSITION"])),
        normals: vectors(accessor(&primitive["attributes"]["NORMAL"])),
        triangles: indices(accessor(&primitive["indices"])),
    }
}

fn vectors(bytes: &[u8]) -> Vec<[f64; 3]> {
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("4 bytes")) as f64;
    let vector = |bytes: &[u8]| [0, 4, 8].map(|at| number(&bytes[at..at + 4]));
    bytes.chunks_exact(12).map(vector).collect()
}

fn indices(bytes: &[u8]) -> Vec<[usize; 3]> {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes")) as usize;
    let triangle = |bytes: &[u8]| [0, 4, 8].map(|at| number(&bytes[at..at + 4]));
    bytes.chunks_exact(12).map(triangle).collect()
}

/// All patches of a world, coarse first: their bounds, errors and bit-streams.
fn trees(world: &[u8]) -> Vec<Vec<highfell::world::PatchRecord>> {
    let world = World::open(Box::new(world.to_vec()), "a world").expect("a sound world");
    let layout = world.meta.layout;
    let mut found = Vec::new();
    let repository = world.read_repository().expect("a repository");
    let coarsest_streamed = repository.last().expect("a level").heights.clone();
    found.extend(repository.into_iter().map(|section| section.patches));
    for key in layout.sections(0) {
        let mut heights = coarsest_streamed.clone();
        for level in (0..layout.stream_levels).rev() {
            let key = highfell::world::SectionKey { level, ..key };
            let section = world.read_section(key, Some(&heights)).expect("a section");
            heights = section.heights;
            found.push(section.patches);
        }
    }
    found
}
