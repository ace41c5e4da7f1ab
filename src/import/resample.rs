//! A square grid in metres out of one whose cells are not.
//!
//! Each axis by itself with the cubic convolution of Keys (1981, a = -1/2), which goes through
//! the samples; where the new grid is coarser the kernel is widened to its cells, so that detail
//! is averaged and not skipped.
//!
//! - All of it is in memory: sources and results above 2^28 samples are refused.
//! - Heights stay within the source's range: a cubic's overshoot is cut off.
//! - The north-west sample stays where it is; the east and south edges lose less than a cell.

use std::path::Path;

use super::grid::{Grid, check_whole};
use crate::error::{Error, Result};

/// How far Keys' kernel reaches, in samples.
const REACH: f64 = 2.0;

/// The size of the new grid, which must fit the memory as a whole.
pub(super) fn size(
    old: [u32; 2],
    spacing_m: [f64; 2],
    metres: f64,
    path: &Path,
) -> Result<[u32; 2]> {
    let count = |axis: usize| {
        // Not a sample less for the last bit of a quotient.
        (f64::from(old[axis] - 1) * spacing_m[axis] / metres + 1e-6).floor() + 1.0
    };
    let [width, height] = [count(0), count(1)];
    if !(2.0..=1e9).contains(&width) || !(2.0..=1e9).contains(&height) {
        let what = format!("--resample {metres} leaves {width} x {height} samples");
        return Err(Error::file(path, what, "another distance in metres"));
    }
    let less = "a source without --resample";
    check_whole(path, old[0].into(), old[1].into(), less)?;
    check_whole(path, width as u64, height as u64, "a larger --resample")?;
    Ok([width as u32, height as u32])
}

/// Makes both spacings `metres`. There must be no voids.
pub(super) fn to_square(
    grid: &mut Grid,
    spacing_m: [f64; 2],
    metres: f64,
    path: &Path,
) -> Result<()> {
    let [width, height] = size([grid.width, grid.height], spacing_m, metres, path)?;
    let low = grid.samples.iter().copied().fold(f64::INFINITY, f64::min);
    let high = grid
        .samples
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let [across, down] = [
        Taps::all(width, grid.width, metres / spacing_m[0]),
        Taps::all(height, grid.height, metres / spacing_m[1]),
    ];
    let rows: Vec<f64> = grid
        .rows()
        .flat_map(|row| across.iter().map(|taps| taps.mix(|x| row[x])))
        .collect();
    let width = width as usize;
    grid.samples = down
        .iter()
        .flat_map(|taps| (0..width).map(|x| taps.mix(|z| rows[z * width + x])))
        .map(|height| height.clamp(low, high))
        .collect();
    (grid.width, grid.height) = (width as u32, height);
    grid.integer = false;
    Ok(())
}

/// What a new sample is made of: neighbours along one axis and their weights.
struct Taps {
    first: usize,
    weights: Vec<f64>,
}

impl Taps {
    /// For `count` samples that lie `step` old ones apart.
    fn all(count: u32, old: u32, step: f64) -> Vec<Taps> {
        let positions = (0..count).map(|i| f64::from(i) * step);
        positions
            .map(|at| Taps::at(at, old, step.max(1.0)))
            .collect()
    }

    fn at(position: f64, old: u32, widen: f64) -> Taps {
        let last = f64::from(old - 1);
        let first = (position - REACH * widen).ceil().clamp(0.0, last);
        let end = (position + REACH * widen).floor().clamp(first, last);
        let offsets = (0..=(end - first) as u32).map(|i| (first + f64::from(i) - position) / widen);
        let weights: Vec<f64> = offsets.map(keys).collect();
        // Beyond the edge nothing is known: what is inside counts for it.
        let sum: f64 = weights.iter().sum();
        Taps {
            first: first as usize,
            weights: weights.iter().map(|weight| weight / sum).collect(),
        }
    }

    fn mix(&self, old: impl Fn(usize) -> f64) -> f64 {
        let places = self.first..;
        places
            .zip(&self.weights)
            .map(|(at, weight)| weight * old(at))
            .sum()
    }
}

fn keys(x: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 {
        (1.5 * x - 2.5) * x * x + 1.0
    } else if x < 2.0 {
        ((2.5 - 0.5 * x) * x - 4.0) * x + 2.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(width: u32, height: u32) -> Grid {
        let heights = (0..height).flat_map(|z| (0..width).map(move |x| f64::from(2 * x + 5 * z)));
        Grid::plain(width, height, heights.collect(), true)
    }

    fn resampled(mut grid: Grid, spacing_m: [f64; 2], metres: f64) -> Grid {
        to_square(&mut grid, spacing_m, metres, Path::new("x.tif")).unwrap();
        grid
    }

    #[test]
    fn the_same_spacing_changes_nothing() {
        let grid = resampled(plane(9, 7), [10.0, 10.0], 10.0);
        assert_eq!((grid.width, grid.height), (9, 7));
        let most = grid.samples.iter().zip(plane(9, 7).samples);
        assert!(most.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < 1e-12);
    }

    #[test]
    fn planes_stay_planes_inside() {
        let grid = resampled(plane(21, 11), [10.0, 20.0], 5.0);
        assert_eq!((grid.width, grid.height), (41, 41));
        for z in 8..33 {
            for x in 4..37 {
                let expected = 2.0 * x as f64 / 2.0 + 5.0 * z as f64 / 4.0;
                let found = grid.samples[z * 41 + x];
                assert!((found - expected).abs() < 1e-9, "{x} {z}: {found}");
            }
        }
    }

    #[test]
    fn coarser_grids_average() {
        let mut grid = plane(65, 65);
        for (i, sample) in grid.samples.iter_mut().enumerate() {
            *sample = f64::from(i as u32 % 65 % 2) * 100.0;
        }
        let coarse = resampled(grid, [1.0, 1.0], 8.0);
        let inner = &coarse.samples[9 * 4 + 2..9 * 4 + 7];
        assert!(inner.iter().all(|h| (h - 50.0).abs() < 5.0), "{inner:?}");
    }

    #[test]
    fn overshoot_is_cut_off_and_useless_distances_are_refused() {
        let mut cliff = plane(16, 16);
        for (i, sample) in cliff.samples.iter_mut().enumerate() {
            *sample = if i % 16 < 8 { 0.0 } else { 100.0 };
        }
        let fine = resampled(cliff, [4.0, 4.0], 1.0);
        assert!(fine.samples.iter().all(|h| (0.0..=100.0).contains(h)));
        for metres in [1e6, 1e-6] {
            let result = to_square(&mut plane(9, 7), [10.0, 10.0], metres, Path::new("x.tif"));
            assert!(result.is_err());
        }
    }
}
