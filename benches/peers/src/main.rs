//! The analysis beside its peers: exact errors and the smallest mesh against the approximate
//! errors of two other crates, on the same maps, in one run, on one thread.
//!
//! `benches/run` runs it; a word behind it (`fractal`, `real`, `meshes`) leaves the rest out. A
//! real map needs HIGHFELL_DATA. `raster OUT WIDTH HEIGHT [BASE]` writes a raw raster
//! of the same ground; `frame WORLD...` tells what frames over worlds cost (`benches/frame`).

mod frame;
mod meshes;
mod raster;

use highfell::terrain::height_map::HeightMap;
use highfell::terrain::measure::Metric;
use highfell::terrain::rules::Rules;
use highfell::terrain::serial::{Grounds, Mesher};
use highfell::world::Layout;
use std::hint::black_box;
use std::time::Instant;

const RUNS: usize = 7;
const ERROR_M: f64 = 5.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, path, width, height, rest @ ..] = &arguments[..]
        && verb == "raster"
    {
        let side = |text: &String| text.parse().expect("a number of samples");
        let base = rest.first().map(|text| text.parse().expect("height units"));
        let size = [side(width), side(height)];
        raster::write(path, size, base.unwrap_or(0)).expect("the raster can be written");
        return;
    }
    if let [verb, worlds @ ..] = &arguments[..]
        && verb == "frame"
    {
        frame::table(worlds).expect("worlds that can be flown over");
        return;
    }
    println!("| map | ours (exact) | martini 0.2.0 | martini_rtin 0.2.1 | times faster |");
    println!("| --- | --- | --- | --- | --- |");
    let wanted = arguments.first().cloned().unwrap_or_default();
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

/// The shortest times of the same work on one map, and the ratio to the faster peer. All take
/// turns, so that whatever else the machine does meets them alike.
fn row(name: &str, map: &HeightMap) {
    let mut martini = Martini::new(map);
    let mut rtin = Rtin::new(map);
    let [ours, first, second] = fastest([&mut || exact(map), &mut || martini.mesh(), &mut || {
        rtin.mesh()
    }]);
    println!(
        "| {name} | {:.1} ms, {} triangles | {:.1} ms, {} | {:.1} ms, {} | {:.2} |",
        ours.0,
        ours.1,
        first.0,
        first.1,
        second.0,
        second.1,
        first.0.min(second.0) / ours.0
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
    let triangles = |tile| black_box(mesher.build(tile, 0)).indices.len();
    tiles.iter().map(triangles).sum()
}

/// Tile and mesh; setting up once is left out.
struct Martini<'a> {
    martini: martini::Martini,
    map: &'a HeightMap,
}

impl<'a> Martini<'a> {
    fn new(map: &'a HeightMap) -> Self {
        let martini = martini::Martini::new(map.width);
        Martini { martini, map }
    }

    fn mesh(&mut self) -> usize {
        let map = self.map;
        let height = |x: usize, y: usize| map.heights[y * map.width as usize + x] as _;
        let tile = self.martini.create_terrain(height);
        let mut place = |(x, y)| (x, y, 0 as _);
        let (_, indices, _) = tile.construct_mesh(&mut self.martini, ERROR_M as _, &mut place);
        indices.len() / 3
    }
}

/// Tile and mesh; setting up once and the copies of the map that it takes are left out.
struct Rtin {
    martini: martini_rtin::Martini,
    copies: Vec<Vec<Vec<f32>>>,
}

impl Rtin {
    fn new(map: &HeightMap) -> Self {
        let rows = map.heights.chunks(map.width as usize);
        let terrain: Vec<Vec<f32>> = rows
            .map(|row| row.iter().map(|&height| height as f32).collect())
            .collect();
        Rtin {
            martini: martini_rtin::Martini::with_capacity(map.width as usize),
            copies: vec![terrain; RUNS + 1],
        }
    }

    fn mesh(&mut self) -> usize {
        let terrain = self.copies.pop().expect("a copy a run");
        let (_, indices) = self.martini.create_tile(terrain).get_mesh(ERROR_M as f32);
        indices.len() / 3
    }
}

/// The shortest of some runs of each kind of work in milliseconds, and what the work returned.
fn fastest<const N: usize>(mut kinds: [&mut dyn FnMut() -> usize; N]) -> [(f64, usize); N] {
    let mut found = [(f64::INFINITY, 0); N];
    for _ in 0..=RUNS {
        for (kind, found) in kinds.iter_mut().zip(&mut found) {
            let start = Instant::now();
            let result = black_box(kind());
            let milliseconds = start.elapsed().as_secs_f64() * 1000.0;
            *found = (found.0.min(milliseconds), result);
        }
    }
    found
}

fn fractal_map(side: u32) -> HeightMap {
    HeightMap {
        width: side,
        height: side,
        heights: (0..side * side)
            .map(|i| raster::height(i % side, i / side))
            .collect(),
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
