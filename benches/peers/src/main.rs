//! The analysis beside its peers: exact errors and the smallest mesh against the approximate
//! errors of two other crates, on the same maps, in one run, on one thread.
//!
//! `benches/run` runs it; a word behind it (`fractal`, `real`, `meshes`) leaves the rest out. A
//! real map needs HIGHFELL_DATA.

mod meshes;

use highfell::terrain::height_map::HeightMap;
use highfell::terrain::measure::Metric;
use highfell::terrain::noise::fractal;
use highfell::terrain::rules::Rules;
use highfell::terrain::serial::{Grounds, Mesher, TileMesh};
use highfell::world::Layout;
use std::hint::black_box;
use std::time::Instant;

const RUNS: usize = 7;
const ERROR_M: f64 = 5.0;

fn main() {
    println!("| map | ours (exact) | martini 0.2.0 | martini_rtin 0.2.1 | times faster |");
    println!("| --- | --- | --- | --- | --- |");
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let fractal = fractal_map(2049);
    if "fractal".contains(&wanted) {
        row("fractal 2049", &fractal);
    }
    match std::env::var("HIGHFELL_DATA") {
        Ok(folder) if "real".contains(&wanted) => row("N44W072 1025", &real_map(&folder, 1025)),
        Ok(_) => {}
        Err(_) => eprintln!("HIGHFELL_DATA is not set: no row for a real map"),
    }
    if "meshes".contains(&wanted) {
        println!();
        meshes::table(&fractal);
    }
}

/// Medians of the same work on one map, and the ratio to the faster peer.
fn row(name: &str, map: &HeightMap) {
    let (ours, our_triangles) = median(|| exact(map));
    let (martini, martini_triangles) = martini_times(map);
    let (rtin, rtin_triangles) = rtin_times(map);
    println!(
        "| {name} | {ours:.1} ms, {our_triangles} triangles | {martini:.1} ms, {martini_triangles} | {rtin:.1} ms, {rtin_triangles} | {:.2} |",
        martini.min(rtin) / ours
    );
}

/// Exact analysis of the whole map and the indexed meshes of its patches of 512 cells; the triangles.
fn exact(map: &HeightMap) -> usize {
    let layout = Layout {
        size_cells: [map.width - 1, map.height - 1],
        patch_cells: 512,
        levels: 1,
        stream_levels: 0,
        lattice_bias: 0,
    };
    let rules = Rules::new(Metric::Max, vec![ERROR_M], None);
    let grounds = Grounds::new(map, None, None, layout, &rules);
    let (tiles, _) = grounds.settle(&rules);
    let mut mesher = Mesher::default();
    let meshes = tiles.iter().map(|tile| mesher.build(tile, 0));
    let meshes: Vec<TileMesh> = meshes.collect();
    black_box(&meshes).iter().map(|mesh| mesh.indices.len()).sum()
}

/// Tile and mesh; setting up once is left out.
fn martini_times(map: &HeightMap) -> (f64, usize) {
    let mut martini = martini::Martini::new(map.width);
    median(|| {
        let height = |x: usize, y: usize| map.heights[y * map.width as usize + x] as _;
        let tile = martini.create_terrain(height);
        let mut place = |(x, y)| (x, y, 0 as _);
        let (_, indices, _) = tile.construct_mesh(&mut martini, ERROR_M as _, &mut place);
        indices.len() / 3
    })
}

fn rtin_times(map: &HeightMap) -> (f64, usize) {
    let martini = martini_rtin::Martini::with_capacity(map.width as usize);
    let terrain: Vec<Vec<f32>> = map
        .heights
        .chunks(map.width as usize)
        .map(|row| row.iter().map(|&h| h as f32).collect())
        .collect();
    let copies = std::cell::RefCell::new(vec![terrain; RUNS + 1]);
    median(|| {
        let terrain = copies.borrow_mut().pop().expect("a copy a run");
        let (_, indices) = martini.create_tile(terrain).get_mesh(ERROR_M as f32);
        indices.len() / 3
    })
}

/// The median of some runs in milliseconds, and what the work returned.
fn median(mut work: impl FnMut() -> usize) -> (f64, usize) {
    let result = work();
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[RUNS / 2], result)
}

/// Rough ground of about a kilometre of relief at 30 m, the same on every machine.
fn fractal_map(side: u32) -> HeightMap {
    let height = |i: u32| {
        let place = glam::DVec2::new((i % side) as f64, (i / side) as f64) / 400.0;
        (600.0 * fractal(place, 9, 0.5, 1)).round() as i32
    };
    HeightMap {
        width: side,
        height: side,
        heights: (0..side * side).map(height).collect(),
    }
}

/// The north-west corner of a real tile.
fn real_map(folder: &str, side: u32) -> HeightMap {
    let path = std::path::Path::new(folder).join("N44W072.hgt");
    let source = highfell::import::load(&path, &Default::default()).expect("the file is sound");
    let area = highfell::source::Area {
        x: 0,
        z: 0,
        width: side,
        height: side,
    };
    source.ground.read(area).expect("it lies in memory")
}
