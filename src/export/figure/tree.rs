//! The two trees: branches from the top down, parts at their ends.

use super::{Area, INK, SOFT, by_half, number, text};
use crate::export::colour;
use crate::export::outline::{Half, Outline};

const BRANCH: &str = "#9aa0a8";
const LARGEST_DISC: f64 = 12.0;
/// Room over a tree for its name and under it for the numbers of its wedges.
const ABOVE: f64 = 16.0;
const BELOW: f64 = 30.0;

pub fn draw(outline: &Outline, area: Area) -> String {
    by_half(outline, area, draw_half)
}

fn draw_half(half: &Half, index: usize, before: usize, area: Area) -> String {
    let places = places(half, area);
    let radius = (0.46 * area.width / half.parts.len() as f64).min(LARGEST_DISC);
    let mut branches = String::new();
    let mut ends = Vec::new();
    for (node, &(x, y)) in half.nodes.iter().zip(&places) {
        if let Some(parent) = node.parent {
            let (px, py) = places[parent];
            branches += &format!("M{px:.1} {py:.1}L{x:.1} {y:.1}");
        }
        ends.push(match node.part {
            Some(part) => {
                let fill = colour::of_part(index, part, half.parts.len(), false);
                let label = before + part + 1;
                end(x, y, radius, half.parts[part].leaves, label, &fill)
            }
            None => format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.2" fill="{INK}"/>"#),
        });
    }
    let name = ["first half", "second half"][index];
    text(
        area.x,
        area.y + 6.0,
        name,
        &format!(r#"font-size="13" font-style="italic" fill="{SOFT}""#),
    ) + &format!(r#"<path d="{branches}" fill="none" stroke="{BRANCH}" stroke-width="1.2"/>"#)
        + &ends.join("\n")
}

/// Parts stand side by side, nodes in the middle over their two halves.
fn places(half: &Half, area: Area) -> Vec<(f64, f64)> {
    let deepest = half.nodes.iter().map(|node| node.depth).max().unwrap_or(0);
    let step_y = ((area.height - ABOVE - BELOW) / deepest.max(1) as f64).min(54.0);
    let step_x = area.width / half.parts.len() as f64;
    let mut places: Vec<(f64, f64)> = half
        .nodes
        .iter()
        .map(|node| {
            let x = node
                .part
                .map_or(0.0, |part| area.x + (part as f64 + 0.5) * step_x);
            (x, area.y + ABOVE + node.depth as f64 * step_y)
        })
        .collect();
    // Children come after their parents, each adding half of its place.
    for index in (1..half.nodes.len()).rev() {
        if let Some(parent) = half.nodes[index].parent {
            places[parent].0 += places[index].0 / 2.0;
        }
    }
    places
}

/// A disc for a leaf, a wedge for a subtree.
fn end(x: f64, y: f64, radius: f64, leaves: usize, label: usize, fill: &str) -> String {
    let style = format!(r#"fill="{fill}" stroke="{INK}" stroke-width="1""#);
    let size = (1.05 * radius).min(11.0);
    if leaves == 1 {
        return format!(
            r#"<circle class="leaf" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" {style}/>"#
        ) + &number(x, y, label, size, INK);
    }
    let low = y + 2.4 * radius;
    let path = format!(
        "M{x:.1} {:.1}L{:.1} {low:.1}L{:.1} {low:.1}Z",
        y - 0.6 * radius,
        x - radius,
        x + radius
    );
    format!(r#"<path class="wedge" d="{path}" {style} stroke-linejoin="round"/>"#)
        + &number(x, low - 0.62 * radius, label, 0.86 * size, INK)
        + &number(x, low + 8.0, leaves, 0.8 * size, SOFT)
}
