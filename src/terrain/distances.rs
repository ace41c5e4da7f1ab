//! The largest distance of a triangle's samples from its plane, where `f32` holds them all exactly
//! and no sample is missing: nearly always, and most of the compiler's work.

use super::scan::{Rows, Scan};
use multiversion::multiversion;

/// Samples that are looked at together.
pub(super) const LANES: usize = 8;
/// Rows after which it is asked whether the limit is exceeded.
const ROWS_A_LOOK: i32 = 8;
/// From place `LANES - n` on, ones for `n` samples and zeros behind them.
const COUNTED: [f32; 2 * LANES] = [
    1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
];

/// Whole numbers, row by row, and at least [`LANES`] more behind the last one.
pub(super) struct Heights<'a> {
    pub heights: &'a [f32],
    pub width: usize,
}

/// In units of the scan; may stop above the limit.
pub(super) fn largest_distance(heights: &Heights, scan: &Scan, limit: f32) -> f32 {
    let [first, second] = &scan.rows;
    let mut largest = first
        .as_ref()
        .map_or(0.0, |rows| of_rows(heights, scan, rows, limit));
    if let Some(rows) = second.as_ref().filter(|_| largest <= limit) {
        largest = largest.max(of_rows(heights, scan, rows, limit));
    }
    largest
}

/// Eight samples at a time; those behind a row's end are there, but count nothing.
#[multiversion(targets("x86_64+avx2"))]
fn of_rows(heights: &Heights, scan: &Scan, rows: &Rows, limit: f32) -> f32 {
    let (slope, unit) = (scan.slope_x as f32, (1u32 << scan.shift) as f32);
    let row_step = scan.row_step(rows) as f32;
    let mut steps = [0.0; LANES];
    for (lane, step) in steps.iter_mut().enumerate() {
        *step = slope * lane as f32;
    }
    let mut plane = scan.at(rows.start) as f32;
    let mut first = rows.start.y as usize * heights.width + rows.start.x as usize;
    let index_step = (heights.width as i32 + rows.start_step) as usize;
    let mut samples = rows.samples;
    let mut lanes = [0.0f32; LANES];
    let mut until_look = ROWS_A_LOOK;
    for _ in 0..rows.count {
        let mut on_plane = plane;
        let mut left = samples as usize;
        let mut row = &heights.heights[first..];
        loop {
            let some = left.min(LANES);
            let counted = &COUNTED[LANES - some..][..LANES];
            let eight = &row[..LANES];
            for lane in 0..LANES {
                let distance = (on_plane + steps[lane] - eight[lane] * unit).abs() * counted[lane];
                lanes[lane] = if distance > lanes[lane] {
                    distance
                } else {
                    lanes[lane]
                };
            }
            left -= some;
            if left == 0 {
                break;
            }
            on_plane += slope * LANES as f32;
            row = &row[LANES..];
        }
        plane += row_step;
        first += index_step;
        samples += rows.samples_step;
        until_look -= 1;
        if until_look == 0 {
            if highest(&lanes) > limit {
                break;
            }
            until_look = ROWS_A_LOOK;
        }
    }
    highest(&lanes)
}

/// The highest of distances.
#[inline(always)]
pub(super) fn highest(lanes: &[f32; LANES]) -> f32 {
    let mut highest = 0.0;
    for &lane in lanes {
        highest = if lane > highest { lane } else { highest };
    }
    highest
}

/// Of rows of samples that are not empty.
pub(super) fn lowest_and_highest<'a>(rows: impl Iterator<Item = &'a [f32]>) -> [f32; 2] {
    let (mut low, mut high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    for row in rows {
        let mut take = |lane: usize, height: f32| {
            low[lane] = if height < low[lane] {
                height
            } else {
                low[lane]
            };
            high[lane] = if height > high[lane] {
                height
            } else {
                high[lane]
            };
        };
        let (eights, rest) = row.as_chunks::<LANES>();
        for eight in eights {
            (0..LANES).for_each(|lane| take(lane, eight[lane]));
        }
        rest.iter().for_each(|&height| take(0, height));
    }
    let [low, high] = [
        low.into_iter().reduce(f32::min),
        high.into_iter().reduce(f32::max),
    ];
    [low.unwrap_or_default(), high.unwrap_or_default()]
}
