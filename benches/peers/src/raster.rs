//! A seeded fractal raster of any size as raw bytes, the same on every machine: int16, little
//! endian, row by row, for programs that read files.

use highfell::terrain::noise::fractal;
use std::io::Write;

/// Rows that the cores make at once.
const ROWS: u32 = 256;

/// Rough ground of about a kilometre of relief at 30 m.
pub fn height(x: u32, z: u32) -> i32 {
    let place = glam::DVec2::new(x as f64, z as f64) / 400.0;
    (600.0 * fractal(place, 9, 0.5, 1)).round() as i32
}

/// Writes a raster of `width` by `height` samples, all raised by `base`.
pub fn write(path: &str, size: [u32; 2], base: i32) -> std::io::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get()) as u32;
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    for first in (0..size[1]).step_by(ROWS as usize) {
        let end = (first + ROWS).min(size[1]);
        let share = (end - first).div_ceil(cores);
        let parts: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let starts = (first..end).step_by(share as usize);
            let threads: Vec<_> = starts
                .map(|z| scope.spawn(move || rows(size[0], z..(z + share).min(end), base)))
                .collect();
            let done = threads.into_iter().map(|thread| thread.join());
            done.map(|part| part.expect("no row panics")).collect()
        });
        parts.iter().try_for_each(|part| out.write_all(part))?;
    }
    out.flush()
}

fn rows(width: u32, rows: std::ops::Range<u32>, base: i32) -> Vec<u8> {
    rows.flat_map(|z| (0..width).flat_map(move |x| ((height(x, z) + base) as i16).to_le_bytes()))
        .collect()
}
