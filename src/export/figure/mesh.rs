//! The mesh: every triangle that is drawn, in its part's colour.

use super::{Area, INK, Subject, number, parts_before};
use crate::export::colour;
use crate::export::outline::{Half, Outline};
use crate::terrain::triangle::Triangle;
use glam::{DVec2, IVec2, dvec2};

/// Smallest and largest digits.
const DIGITS: [f64; 2] = [6.0, 22.0];

pub fn draw(subject: &Subject, outline: &Outline, area: Area) -> String {
    let place = Placement::new(subject, area);
    let mut parts: Vec<String> = Vec::new();
    for (number, half) in outline.halves.iter().enumerate() {
        parts.push(triangles(half, number, &place));
    }
    for half in &outline.halves {
        parts.push(outlines(half, &place));
    }
    for (index, half) in outline.halves.iter().enumerate() {
        parts.push(numbers(half, parts_before(outline, index), &place));
    }
    parts.join("\n")
}

/// From samples to the drawing.
struct Placement {
    corner: IVec2,
    origin: DVec2,
    scale: DVec2,
}

impl Placement {
    fn new(subject: &Subject, area: Area) -> Self {
        let size = subject.layout.patch_size(subject.key.level);
        let [x, z] = subject.spacing_m;
        let longest = x.max(z) * size as f64;
        let scale = dvec2(x, z) * (area.width.min(area.height) / longest);
        let extent = scale * size as f64;
        Placement {
            corner: IVec2::new(subject.key.x as i32, subject.key.z as i32) * size as i32,
            origin: dvec2(area.x, area.y) + (dvec2(area.width, area.height) - extent) / 2.0,
            scale,
        }
    }

    fn at(&self, p: IVec2) -> DVec2 {
        self.origin + (p - self.corner).as_dvec2() * self.scale
    }

    /// A triangle as a closed path.
    fn path(&self, triangle: Triangle) -> String {
        let [a, b, c] = [triangle.a, triangle.b, triangle.c].map(|p| self.at(p));
        format!(
            "M{:.2} {:.2}L{:.2} {:.2}L{:.2} {:.2}Z",
            a.x, a.y, b.x, b.y, c.x, c.y
        )
    }
}

fn triangles(half: &Half, number: usize, place: &Placement) -> String {
    let width = if half.leaves.len() > 400 { 0.35 } else { 0.7 };
    let paths = half.parts.iter().enumerate().map(|(nth, _)| {
        let own = half.leaves.iter().filter(|(_, part)| *part == nth);
        let path: String = own.map(|(triangle, _)| place.path(*triangle)).collect();
        let colour = colour::of_part(number, nth, half.parts.len(), false);
        format!(r#"<path d="{path}" fill="{colour}" stroke="{INK}" stroke-width="{width}" stroke-linejoin="round"/>"#)
    });
    paths.collect::<Vec<_>>().join("\n")
}

fn outlines(half: &Half, place: &Placement) -> String {
    let path: String = half
        .parts
        .iter()
        .map(|part| place.path(part.triangle))
        .collect();
    format!(
        r#"<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.5" stroke-linejoin="round"/>"#
    )
}

fn numbers(half: &Half, before: usize, place: &Placement) -> String {
    let of_part = |(nth, part): (usize, &crate::export::outline::Part)| {
        let t = part.triangle;
        let [a, b, c] = [t.a, t.b, t.c].map(|p| place.at(p));
        let area = (b - a).perp_dot(c - a).abs() / 2.0;
        let halo = part.leaves > 1;
        let share = if halo { 0.27 } else { 0.42 };
        let size = (share * area.sqrt()).min(DIGITS[1]);
        let centre = (a + b + c) / 3.0;
        (size >= DIGITS[0]).then(|| labelled(centre, nth + 1 + before, size, halo))
    };
    half.parts.iter().enumerate().filter_map(of_part).collect()
}

/// A number; over many thin lines it gets a light ground.
fn labelled(centre: DVec2, value: usize, size: f64, halo: bool) -> String {
    let ground = if halo {
        format!(
            r##"<circle cx="{:.1}" cy="{:.1}" r="{:.1}" fill="#ffffff" fill-opacity="0.85"/>"##,
            centre.x,
            centre.y,
            0.85 * size
        )
    } else {
        String::new()
    };
    ground + &number(centre.x, centre.y, value, size, INK)
}
