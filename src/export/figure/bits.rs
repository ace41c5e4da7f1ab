//! The two bit-streams: rows of cells, each in the colour of the part that it describes.

use super::{Area, INK, SOFT, by_half, number, text};
use crate::export::colour;
use crate::export::outline::{Half, Outline};

const LARGEST_CELL: f64 = 22.0;
/// Below this, cells are too small for digits.
const SMALLEST_DIGITS: f64 = 8.0;
/// Cells at least so large have room between their rows for the numbers of leaves.
const SMALLEST_NUMBERED: f64 = 15.0;
/// What nodes above all parts have.
const SHARED: &str = "#d9d7d0";
const ABOVE: f64 = 16.0;

pub fn draw(outline: &Outline, area: Area) -> String {
    by_half(outline, area, draw_half)
}

fn draw_half(half: &Half, index: usize, before: usize, area: Area) -> String {
    let room = Area {
        y: area.y + ABOVE,
        height: area.height - ABOVE,
        ..area
    };
    let numbered = cell_size(half.bits.len(), room, 1.5);
    let is_numbered = numbered >= SMALLEST_NUMBERED && half.leaves.len() == half.parts.len();
    let (cell, row_height) = if is_numbered {
        (numbered, 1.5 * numbered)
    } else {
        let cell = cell_size(half.bits.len(), room, 1.0);
        (cell, cell)
    };
    let columns = (room.width / cell) as usize;
    let gap = if cell > 4.0 { 1.0 } else { 0.3 };
    let corner = |at: usize| {
        let (column, row) = (at % columns, at / columns);
        (
            room.x + column as f64 * cell,
            room.y + row as f64 * row_height,
        )
    };
    let square = |at: usize| {
        let ((x, y), side) = (corner(at), cell - gap);
        format!("M{x:.1} {y:.1}h{side:.1}v{side:.1}h-{side:.1}z")
    };
    let bits = half.bits.len();
    let name = format!("{bits} bits for {} triangles", half.leaves.len());
    let mut drawn = text(
        area.x,
        area.y + 6.0,
        &name,
        &format!(r#"font-size="13" font-style="italic" fill="{SOFT}""#),
    );
    drawn += &cells(half, index, square);
    if is_numbered {
        drawn += &numbers(half, before, cell, corner);
    }
    if cell >= SMALLEST_DIGITS {
        drawn += &digits(half, cell, corner);
    }
    drawn
}

/// The largest cells of which all fit, in rows so many cells apart.
fn cell_size(bits: usize, room: Area, row: f64) -> f64 {
    let fits = |cell: f64| {
        (room.width / cell).floor() * (room.height / (row * cell)).floor() >= bits as f64
    };
    let mut cell = LARGEST_CELL;
    while !fits(cell) && cell > 0.2 {
        cell *= 0.98;
    }
    cell
}

/// One path for all cells of a colour.
fn cells(half: &Half, index: usize, square: impl Fn(usize) -> String) -> String {
    let mut paths: Vec<String> = vec![String::new(); 2 * half.parts.len() + 1];
    for (at, &(is_node, part)) in half.bits.iter().enumerate() {
        let path = part.map_or(0, |part| 1 + 2 * part + usize::from(is_node));
        paths[path] += &square(at);
    }
    let colour = |path: usize| match path.checked_sub(1) {
        None => SHARED.to_owned(),
        Some(path) => colour::of_part(index, path / 2, half.parts.len(), path % 2 == 1),
    };
    let drawn = paths
        .iter()
        .enumerate()
        .filter(|(_, path)| !path.is_empty());
    drawn
        .map(|(at, path)| format!(r#"<path d="{path}" fill="{}"/>"#, colour(at)))
        .collect()
}

fn digits(half: &Half, cell: f64, corner: impl Fn(usize) -> (f64, f64)) -> String {
    let size = 0.68 * cell;
    let drawn = half.bits.iter().enumerate().map(|(at, &(is_node, _))| {
        let (x, y) = corner(at);
        let digit = if is_node { "1" } else { "0" };
        format!(
            r#"<text x="{:.1}" y="{:.1}">{digit}</text>"#,
            x + (cell - 1.0) / 2.0,
            y + (cell - 1.0) / 2.0 + 0.36 * size
        )
    });
    format!(
        r#"<g font-family="'DejaVu Sans Mono', monospace" font-size="{size:.1}" text-anchor="middle" fill="{INK}">{}</g>"#,
        drawn.collect::<String>()
    )
}

/// Each leaf's number under its bit.
fn numbers(half: &Half, before: usize, cell: f64, corner: impl Fn(usize) -> (f64, f64)) -> String {
    let leaves = half
        .bits
        .iter()
        .enumerate()
        .filter(|(_, (is_node, _))| !is_node);
    let drawn = leaves.filter_map(|(at, (_, part))| {
        let (x, y) = corner(at);
        part.map(|part| {
            number(
                x + (cell - 1.0) / 2.0,
                y + 1.18 * cell,
                before + part + 1,
                0.42 * cell,
                SOFT,
            )
        })
    });
    drawn.collect()
}
