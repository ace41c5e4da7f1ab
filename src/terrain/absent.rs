//! Samples that are absent although they have heights: voids that are kept.

use std::ops::Range;

/// The runs of present samples in a row of which these are absent.
pub fn present_runs(absent: &[bool]) -> impl Iterator<Item = Range<usize>> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next + absent[next..].iter().position(|&absent| !absent)?;
        let length = absent[start..].iter().position(|&absent| absent);
        next = length.map_or(absent.len(), |length| start + length);
        Some(start..next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_what_is_between_the_absent_ones() {
        let runs = |row: &str| -> Vec<Range<usize>> {
            let absent: Vec<bool> = row.chars().map(|c| c == '#').collect();
            present_runs(&absent).collect()
        };
        assert_eq!(runs("#..##.#"), [1..3, 5..6]);
        assert_eq!(runs("..#."), [0..2, 3..4]);
        assert_eq!(runs("..").len() + runs("##").len() + runs("").len(), 1);
    }
}
