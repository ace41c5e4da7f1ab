//! The colours that link the three drawings of a figure.

/// Hues of the first and the last part of each half, in degrees: teal to violet, yellow to red.
const HUES: [[f64; 2]; 2] = [[165.0, 285.0], [62.0, -28.0]];

/// The colour of the `nth` of a half's `count` parts, as `#rrggbb`; a leaf's bit or a node's,
/// which is darker. Neighbours in the tree differ in lightness too.
pub fn of_part(half: usize, nth: usize, count: usize, is_node: bool) -> String {
    let [first, last] = HUES[half];
    let along = nth as f64 / (count.max(2) - 1) as f64;
    let mut lightness = if nth.is_multiple_of(2) { 0.80 } else { 0.70 };
    if is_node {
        lightness -= 0.17;
    }
    hex(first + (last - first) * along, 0.58, lightness)
}

/// Hue, saturation and lightness (CSS Color 3, clause 4.2.4) as `#rrggbb`.
fn hex(hue: f64, saturation: f64, lightness: f64) -> String {
    let reach = saturation * lightness.min(1.0 - lightness);
    let channel = |n: f64| {
        let k = (n + hue.rem_euclid(360.0) / 30.0) % 12.0;
        let value = lightness - reach * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    };
    format!(
        "#{:02x}{:02x}{:02x}",
        channel(0.0),
        channel(8.0),
        channel(4.0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hues_are_where_they_are_expected() {
        assert_eq!(hex(0.0, 1.0, 0.5), "#ff0000");
        assert_eq!(hex(120.0, 1.0, 0.5), "#00ff00");
        assert_eq!(hex(-120.0, 1.0, 0.5), "#0000ff");
        assert_eq!(hex(77.0, 0.0, 1.0), "#ffffff");
    }

    #[test]
    fn parts_differ() {
        let mut colours: Vec<String> = (0..2)
            .flat_map(|half| (0..20).map(move |nth| of_part(half, nth, 20, false)))
            .collect();
        colours.sort();
        colours.dedup();
        assert_eq!(colours.len(), 40);
    }
}
