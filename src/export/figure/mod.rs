//! One patch as a figure: the same triangle tree as mesh, as tree and as bit-stream.
//!
//! What belongs together has the same colour in all three and, where there is room, the same
//! number. A patch of a few dozen triangles is drawn whole; of a larger one the tree is drawn
//! down to the depth at which a half still has at most 40 branches, a wedge stands for all that
//! is below, and mesh and bits take the wedge's colour. The figure says so itself.

mod bits;
mod mesh;
mod tree;

use super::outline::{Half, Outline};
use crate::world::{Layout, PatchKey, PatchRecord};

const WIDTH: f64 = 1800.0;
const HEIGHT: f64 = 800.0;
const TOP: f64 = 178.0;
const SIDE: f64 = 520.0;
const INK: &str = "#23272e";
const SOFT: &str = "#6b7280";

/// A rectangle of the drawing.
#[derive(Clone, Copy)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Area {
    /// The first or the second half of a column.
    fn half(self, half: usize) -> Area {
        let gap = 36.0;
        let height = (self.height - gap) / 2.0;
        Area {
            y: self.y + half as f64 * (height + gap),
            height,
            ..self
        }
    }
}

/// What the figure shows.
pub struct Subject<'a> {
    pub layout: &'a Layout,
    pub key: PatchKey,
    pub record: &'a PatchRecord,
    /// Metres between samples, [x, z].
    pub spacing_m: [f64; 2],
    /// The world's name.
    pub world: &'a str,
    /// Facts in a line, under the title.
    pub facts: &'a str,
}

/// The figure as SVG.
pub fn draw(subject: &Subject) -> String {
    let outline = Outline::new(subject.layout, subject.key, &subject.record.trees);
    let column = |x: f64, width: f64| Area {
        x,
        y: TOP,
        width,
        height: SIDE,
    };
    let (left, middle, right) = (
        column(56.0, SIDE),
        column(636.0, 700.0),
        column(1396.0, 348.0),
    );
    let mut svg = vec![
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="'DejaVu Sans', Verdana, sans-serif">"#
        ),
        r##"<rect width="100%" height="100%" fill="#fcfbf8"/>"##.to_owned(),
        title(subject),
        heading(left, "Mesh", "seen from above, north up"),
        heading(middle, "Tree", "each branch halves a triangle"),
        heading(right, "Bit-stream", "the tree, depth first"),
    ];
    svg.push(mesh::draw(subject, &outline, left));
    svg.push(tree::draw(&outline, middle));
    svg.push(bits::draw(&outline, right));
    svg.push(legend(&outline));
    svg.push("</svg>\n".into());
    svg.join("\n")
}

fn title(subject: &Subject) -> String {
    let title = format!("Patch {} of {}", subject.key, subject.world);
    text(
        56.0,
        62.0,
        &title,
        &format!(r#"font-size="28" font-weight="bold" fill="{INK}""#),
    ) + &text(
        56.0,
        92.0,
        subject.facts,
        &format!(r#"font-size="15" fill="{SOFT}""#),
    )
}

fn heading(area: Area, name: &str, about: &str) -> String {
    let y = area.y - 30.0;
    let line = format!(
        r##"<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="#cfccc4" stroke-width="1"/>"##,
        area.x,
        y + 10.0,
        area.x + area.width,
        y + 10.0
    );
    let end = format!(r#"font-size="13" text-anchor="end" fill="{SOFT}""#);
    line + &text(
        area.x,
        y,
        name,
        &format!(r#"font-size="18" font-weight="bold" fill="{INK}""#),
    ) + &text(area.x + area.width, y, about, &end)
}

fn legend(outline: &Outline) -> String {
    let first = "The same colour is the same part of the ground in all three; numbers count the parts in the order of the bits.";
    let second = match outline.limit {
        None => "A disc is a leaf: a triangle that is drawn. In the bit-stream 1 is a node, followed by its two halves, and 0 a leaf.".to_owned(),
        Some(limit) => format!(
            "The trees are drawn down to depth {limit}; a wedge stands for all that is below, the number under it counts its leaves. 1 (dark) is a node, 0 (light) a leaf."
        ),
    };
    let style = format!(r#"font-size="14" fill="{SOFT}""#);
    let y = TOP + SIDE + 50.0;
    text(56.0, y, first, &style) + &text(56.0, y + 22.0, &second, &style)
}

/// A line of text, with what XML would misread written out.
fn text(x: f64, y: f64, line: &str, style: &str) -> String {
    let line = line
        .replace(char::is_control, "")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!(r#"<text x="{x:.1}" y="{y:.1}" {style}>{line}</text>"#)
}

/// A number centred at a place.
fn number(x: f64, y: f64, value: usize, size: f64, colour: &str) -> String {
    let style = format!(r#"font-size="{size:.1}" text-anchor="middle" fill="{colour}""#);
    // Digits are about 0.72 of their size high.
    text(x, y + 0.36 * size, &value.to_string(), &style)
}

/// Both halves beside each other, each drawn from its half of the area; the second number is how
/// many parts come before it.
fn by_half(
    outline: &Outline,
    area: Area,
    draw: impl Fn(&Half, usize, usize, Area) -> String,
) -> String {
    let halves = outline.halves.iter().enumerate();
    let drawn = halves
        .map(|(index, half)| draw(half, index, parts_before(outline, index), area.half(index)));
    drawn.collect::<Vec<_>>().join("\n")
}

/// How many parts come before a half's first.
fn parts_before(outline: &Outline, half: usize) -> usize {
    if half == 0 {
        0
    } else {
        outline.halves[0].parts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Bits;

    fn figure(depth: u32) -> String {
        fn full(depth: u32, bits: &mut Bits) {
            bits.push(depth > 0);
            (0..2 * u32::from(depth > 0)).for_each(|_| full(depth - 1, bits));
        }
        let mut bits = Bits::default();
        full(depth, &mut bits);
        draw(&Subject {
            layout: &Layout::new([64, 64], 32, 32).unwrap(),
            key: PatchKey::new(0, 1, 0),
            record: &PatchRecord {
                min: 0,
                max: 5,
                error_m: 1.0,
                exhausted: false,
                absent: false,
                trees: [bits.clone(), bits],
            },
            spacing_m: [10.0, 12.0],
            world: "a <b> & c",
            facts: "nothing to add",
        })
    }

    #[test]
    fn a_small_patch_shows_every_leaf_three_times() {
        let svg = figure(3);
        assert!(svg.contains("Patch 0/1/0 of a &lt;b&gt; &amp; c"));
        assert!(svg.contains("A disc is a leaf") && !svg.contains("wedge"));
        assert_eq!(svg.matches("<circle class=\"leaf\"").count(), 16);
        assert!(
            svg.matches(">16</text>").count() >= 2,
            "in the mesh and in the tree"
        );
    }

    #[test]
    fn a_large_patch_says_how_deep_it_is_drawn() {
        let svg = figure(9);
        assert!(svg.contains("drawn down to depth 5; a wedge"));
        assert_eq!(svg.matches("<path class=\"wedge\"").count(), 64);
    }
}
