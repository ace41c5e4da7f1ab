//! What a person should know of a source before it is compiled.
//!
//! Nothing here is an error: the heights are used as they are. Each [`Warning`] says what looks
//! wrong and what to pass to have it otherwise.
//!
//! - Everything is judged before voids are filled, on the samples as the file had them.
//! - One pass over the samples for each question, sequential, the same answers anywhere.

use std::collections::BTreeSet;

use serde::Serialize;

use super::grid::Grid;
use super::voids::Survey;

/// Below so many samples a side there is hardly anything to see.
const FEW_SAMPLES: u32 = 33;
/// Ground is never steeper than this on average.
const STEEP: f64 = 1.0;
/// Degrees make cells this oblong at 60 degrees of latitude.
const OBLONG: f64 = 2.0;
/// Fewer different heights than this make terraces.
const LEVELS_OF_A_BYTE: usize = 256;
/// A spike stands out by so many mean differences of neighbours ...
const SPIKE: f64 = 100.0;
/// ... and by so many times what its neighbours differ among themselves, and stands steeper than
/// 45 degrees on all sides.
const LONELY: f64 = 10.0;

/// Facts and warnings.
#[derive(Clone, Debug, Serialize)]
pub struct Lint {
    pub files: Vec<String>,
    pub crs: Option<String>,
    /// Samples, `[columns, rows]`.
    pub size: [u32; 2],
    /// Metres between samples, `[x (east), z (south)]`.
    pub spacing_m: [f64; 2],
    pub min_m: f64,
    pub max_m: f64,
    /// Metres a height unit of the world.
    pub height_step_m: f64,
    pub voids: Option<Voids>,
    pub warnings: Vec<Warning>,
}

/// Samples without a height.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Voids {
    pub count: u64,
    /// First and last column that have some.
    pub columns: [u32; 2],
    /// First and last row that have some.
    pub rows: [u32; 2],
}

/// Something that looks wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Warning {
    /// A word or two for scripts.
    pub about: &'static str,
    pub text: String,
    /// The flag that changes it.
    pub pass: String,
}

impl Warning {
    pub fn new(about: &'static str, text: impl Into<String>, pass: impl Into<String>) -> Self {
        Warning {
            about,
            text: text.into(),
            pass: pass.into(),
        }
    }
}

/// What a reader says of samples of 8 bits.
pub(super) fn eight_bits() -> Warning {
    let text = "samples of 8 bits: slopes will be terraces of one unit";
    let pass = "an --error above one step, or a 16-bit source";
    Warning::new("terraces", text, pass)
}

/// Where the voids are.
pub(super) fn voids(grid: &Grid) -> Option<Voids> {
    let mut found: Option<Voids> = None;
    for (z, row) in (0..).zip(grid.rows()) {
        for (x, _) in (0..).zip(row).filter(|(_, sample)| sample.is_nan()) {
            let all = found.get_or_insert(Voids {
                count: 0,
                columns: [x, x],
                rows: [z, z],
            });
            all.count += 1;
            all.columns = [all.columns[0].min(x), all.columns[1].max(x)];
            all.rows[1] = z;
        }
    }
    found
}

/// All warnings that the samples give rise to. `metres` is what a unit of the file is.
pub(super) fn examine(
    grid: &Grid,
    survey: &Survey,
    metres: f64,
    spacing_m: [f64; 2],
) -> Vec<Warning> {
    let slopes = Slopes::of(grid);
    let known_terraces = grid.warnings.iter().any(|w| w.about == "terraces");
    let questions = [
        few_samples(grid),
        void_warning(grid),
        flat(survey),
        relative(grid, survey),
        oblong(spacing_m),
        steep(&slopes, metres, spacing_m),
        terraces(grid).filter(|_| !known_terraces),
        spikes(grid, &slopes, spacing_m[0].min(spacing_m[1]) / metres.abs()),
    ];
    questions.into_iter().flatten().collect()
}

fn few_samples(grid: &Grid) -> Option<Warning> {
    (grid.width.min(grid.height) < FEW_SAMPLES).then(|| {
        let text = format!("only {} x {} samples", grid.width, grid.height);
        Warning::new("size", text, "a larger source, or --resample M")
    })
}

fn void_warning(grid: &Grid) -> Option<Warning> {
    let voids = voids(grid)?;
    let part = 100.0 * voids.count as f64 / grid.samples.len() as f64;
    let text = format!(
        "{} samples ({part:.1} %) without a height, in columns {} to {} and rows {} to {}: filled",
        voids.count, voids.columns[0], voids.columns[1], voids.rows[0], voids.rows[1]
    );
    Some(Warning::new(
        "voids",
        text,
        "--voids fill or nearest, or --crop X,Z,W,H to leave them out",
    ))
}

fn flat(survey: &Survey) -> Option<Warning> {
    (survey.low == survey.high).then(|| {
        let text = format!("every height is {}: there is nothing to see", survey.low);
        Warning::new(
            "flat",
            text,
            "--nodata if this number is no height, or another source",
        )
    })
}

/// Files without a unit that use the whole range of their numbers hold no metres.
fn relative(grid: &Grid, survey: &Survey) -> Option<Warning> {
    let unit_said = grid.measure.unit_m.is_some() || grid.georef.is_some();
    let whole = !grid.integer && survey.low >= -0.1 && survey.high <= 1.1;
    let words = grid.integer && survey.low >= 0.0 && survey.high >= 20_000.0;
    (!unit_said && survey.low < survey.high && (whole || words)).then(|| {
        let text = format!(
            "heights from {} to {} look like parts of a range, not metres",
            survey.low, survey.high
        );
        Warning::new("relative", text, "--height-scale M and --height-offset M")
    })
}

fn oblong([x, z]: [f64; 2]) -> Option<Warning> {
    (x.max(z) > OBLONG * x.min(z)).then(|| {
        let text = format!("samples are {x:.2} m apart to the east and {z:.2} m to the south");
        Warning::new(
            "oblong",
            text,
            format!("--resample {:.2} for square cells", x.min(z)),
        )
    })
}

fn steep(slopes: &Slopes, metres: f64, spacing_m: [f64; 2]) -> Option<Warning> {
    let mean = slopes.mean * metres.abs() / spacing_m[0].min(spacing_m[1]);
    (mean > STEEP).then(|| {
        let text = format!(
            "the ground is steeper than {:.0} degrees on average, as if degrees or feet were taken for metres",
            mean.atan().to_degrees().floor()
        );
        Warning::new("steep", text, "--spacing M or --height-scale M")
    })
}

/// 8-bit heights that were stretched over more bits, and the like.
fn terraces(grid: &Grid) -> Option<Warning> {
    if !grid.integer || grid.samples.len() < 64 * LEVELS_OF_A_BYTE {
        return None;
    }
    let mut levels = BTreeSet::new();
    for sample in grid.samples.iter().filter(|s| !s.is_nan()) {
        levels.insert(*sample as i64);
        if levels.len() > LEVELS_OF_A_BYTE {
            return None;
        }
    }
    let (low, high) = (*levels.first()?, *levels.last()?);
    // A few whole metres are no terraces; levels with gaps between all of them are.
    let gaps = levels
        .iter()
        .zip(levels.iter().skip(1))
        .all(|(a, b)| b - a > 1);
    (levels.len() > 2 && gaps).then(|| {
        let text = format!(
            "only {} different heights from {low} to {high}",
            levels.len()
        );
        Warning::new(
            "terraces",
            text,
            "an --error above one step, or a finer source",
        )
    })
}

/// How much neighbours differ, in units of the file.
struct Slopes {
    mean: f64,
}

impl Slopes {
    fn of(grid: &Grid) -> Slopes {
        let (mut sum, mut count) = (0.0, 0u64);
        for row in grid.rows() {
            for pair in row.windows(2).filter(|p| !p[0].is_nan() && !p[1].is_nan()) {
                sum += (pair[1] - pair[0]).abs();
                count += 1;
            }
        }
        Slopes {
            mean: sum / count.max(1) as f64,
        }
    }
}

/// `steep` is a spacing in units of the file's heights.
fn spikes(grid: &Grid, slopes: &Slopes, steep: f64) -> Option<Warning> {
    let width = grid.width as usize;
    let is_spike = |at: usize| {
        let around = [at - width, at - 1, at + 1, at + width].map(|i| grid.samples[i]);
        let low = around.iter().copied().fold(f64::INFINITY, f64::min);
        let high = around.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sample = grid.samples[at];
        let beyond = (sample - high).max(low - sample);
        around.iter().all(|v| !v.is_nan())
            && beyond > SPIKE * slopes.mean
            && beyond > LONELY * (high - low)
            && beyond > steep
    };
    let inner = (1..grid.height as usize - 1)
        .flat_map(|z| (1..width - 1).map(move |x| z * width + x))
        .filter(|at| !grid.samples[*at].is_nan() && is_spike(*at));
    let found: Vec<usize> = inner.collect();
    let first = *found.first()?;
    let text = format!(
        "spikes: {}, the first of {} at column {}, row {}",
        found.len(),
        grid.samples[first],
        first % width,
        first / width
    );
    let pass = format!("--nodata {} if that is no height", grid.samples[first]);
    Some(Warning::new("spikes", text, pass))
}

#[cfg(test)]
mod tests {
    use super::super::voids::survey;
    use super::*;

    /// A gentle slope of 64 x 64 samples with something changed.
    fn slope(change: impl FnOnce(&mut Vec<f64>)) -> Grid {
        let mut samples = (0..64 * 64)
            .map(|i| f64::from(i % 64 + 2 * (i / 64)))
            .collect();
        change(&mut samples);
        Grid::plain(64, 64, samples, true)
    }

    fn about(grid: &Grid, spacing_m: [f64; 2]) -> Vec<&'static str> {
        let survey = survey(&grid.samples).unwrap();
        let found = examine(grid, &survey, 1.0, spacing_m);
        found.iter().map(|warning| warning.about).collect()
    }

    #[test]
    fn sound_ground_has_no_warnings() {
        assert!(about(&slope(|_| ()), [10.0, 10.0]).is_empty());
    }

    #[test]
    fn voids_are_located() {
        let grid = slope(|s| {
            s[64 * 3 + 5] = f64::NAN;
            s[64 * 9 + 2] = f64::NAN;
        });
        let found = voids(&grid).unwrap();
        assert_eq!(
            (found.count, found.columns, found.rows),
            (2, [2, 5], [3, 9])
        );
        assert_eq!(about(&grid, [10.0, 10.0]), ["voids"]);
    }

    #[test]
    fn spikes_and_pits_are_found_and_hills_are_not() {
        let grid = slope(|s| s[64 * 20 + 30] = 5000.0);
        assert_eq!(about(&grid, [100.0, 100.0]), ["spikes"]);
        let islet = slope(|s| {
            s.fill(0.0);
            s[64 * 20 + 30] = 6.0;
        });
        assert!(about(&islet, [90.0, 90.0]).is_empty());
        let pit = slope(|s| s[64 * 20 + 30] = -9999.0);
        let survey = survey(&pit.samples).unwrap();
        let found = examine(&pit, &survey, 1.0, [100.0, 100.0]);
        assert!(found[0].pass.starts_with("--nodata -9999"), "{found:?}");
    }

    #[test]
    fn degrees_as_metres_make_cliffs() {
        assert_eq!(about(&slope(|_| ()), [0.0008, 0.0008]), ["steep"]);
        assert_eq!(about(&slope(|_| ()), [10.0, 25.0]), ["oblong"]);
    }

    #[test]
    fn flat_and_relative_heights_are_told() {
        assert_eq!(about(&slope(|s| s.fill(7.0)), [10.0, 10.0]), ["flat"]);
        let words = slope(|s| s.iter_mut().for_each(|v| *v *= 300.0));
        assert_eq!(about(&words, [1000.0, 1000.0]), ["relative"]);
        let mut parts = slope(|s| s.iter_mut().for_each(|v| *v /= 200.0));
        parts.integer = false;
        assert_eq!(about(&parts, [10.0, 10.0]), ["relative"]);
    }

    #[test]
    fn stretched_bytes_are_terraces_and_whole_metres_are_not() {
        let heights = |step: f64| {
            let samples = (0..200 * 200).map(|i| f64::from(i / 1600) * step).collect();
            Grid::plain(200, 200, samples, true)
        };
        assert_eq!(about(&heights(257.0), [1e4, 1e4]), ["terraces"]);
        assert!(about(&heights(1.0), [10.0, 10.0]).is_empty());
    }

    #[test]
    fn small_grids_are_judged_without_harm() {
        let grid = Grid::plain(2, 2, vec![1.0, 2.0, 3.0, f64::NAN], true);
        assert_eq!(about(&grid, [10.0, 10.0]), ["size", "voids"]);
    }
}
