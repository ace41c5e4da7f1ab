//! Fills voids with a membrane: the smooth surface spanned between the rims of each hole.
//!
//! The Laplace equation is solved over the voids, with the known samples as boundary and free
//! edges where a void touches the grid's border (Briggs, Henson and McCormick, *A Multigrid
//! Tutorial*, chapter 3). A pyramid of means gives the first guess; V-cycles over the same
//! pyramid then remove what is left of slow errors, so that the cost is a fixed number of passes
//! over the voids whatever their size.
//!
//! - Known samples are never touched; filled ones lie within the known samples' range.
//! - What is outside (see [`fill`]) counts for nothing. On coarser levels too it is no more than
//!   diagonal to an unknown cell: whatever lies between them is known there as well.
//! - Everything is sequential: the same grid gives the same bits anywhere.

/// Good enough when a cycle moves nothing by more than this part of the heights' range.
const TOLERANCE: f64 = 2e-5;
const MAX_CYCLES: usize = 12;
const SWEEPS: usize = 2;
/// Levels up to this size are visited twice a cycle: a coarse rim lies up to a cell off, which
/// only well solved coarse levels make up for, and small ones cost little.
const SMALL: usize = 1 << 20;
const SWEEPS_AT_THE_TOP: usize = 16;

/// Replaces every NaN; at least one sample must be known. `samples` go row by row. Infinity stands
/// for what is neither known nor to be filled, and stays: it must not touch a void but at a corner.
pub(super) fn fill(width: u32, height: u32, samples: &mut Vec<f64>) {
    let known = samples.iter().copied().filter(|v| v.is_finite());
    let (low, high) = known.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
        (low.min(v), high.max(v))
    });
    if low > high {
        return;
    }
    let values = std::mem::take(samples);
    let mut levels = pyramid(Level::new(width as usize, height as usize, values));
    guess(&mut levels);
    start_corrections(&mut levels);
    let enough = TOLERANCE * (high - low);
    for _ in 0..MAX_CYCLES {
        if cycle(&mut levels) <= enough {
            break;
        }
    }
    let mut finest = levels.swap_remove(0);
    finest.clamp(low, high);
    *samples = finest.values;
}

/// A grid of cells, some of which are unknown; a coarser level's cell covers two by two.
struct Level {
    width: usize,
    height: usize,
    values: Vec<f64>,
    /// Right-hand side of the equation; empty stands for zero.
    source: Vec<f64>,
    /// The unknown cells.
    runs: Vec<Run>,
}

/// Unknown cells side by side: `x0..x1` of row `z`.
#[derive(Clone, Copy)]
struct Run {
    z: u32,
    x0: u32,
    x1: u32,
}

impl Level {
    fn new(width: usize, height: usize, values: Vec<f64>) -> Level {
        let runs = values
            .chunks_exact(width)
            .enumerate()
            .flat_map(|(z, row)| runs_of(z as u32, row))
            .collect();
        Level {
            width,
            height,
            values,
            source: Vec::new(),
            runs,
        }
    }

    /// Means of the known cells; of others a cell is unknown when one that it covers is.
    fn coarser(&self) -> Level {
        let (width, height) = (self.width.div_ceil(2), self.height.div_ceil(2));
        let mut values = Vec::with_capacity(width * height);
        for z in 0..height {
            for x in 0..width {
                let (mut sum, mut count, mut unknown) = (0.0, 0.0, false);
                for (x, z) in self.children(x, z) {
                    let value = self.values[self.index(x, z)];
                    if value.is_finite() {
                        (sum, count) = (sum + value, count + 1.0);
                    }
                    unknown |= value.is_nan();
                }
                let none = if unknown { f64::NAN } else { f64::INFINITY };
                values.push(if count > 0.0 { sum / count } else { none });
            }
        }
        Level::new(width, height, values)
    }

    /// The cells that a cell of the next coarser level covers.
    fn children(&self, x: usize, z: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (right, bottom) = ((2 * x + 2).min(self.width), (2 * z + 2).min(self.height));
        (2 * z..bottom).flat_map(move |z| (2 * x..right).map(move |x| (x, z)))
    }

    fn index(&self, x: usize, z: usize) -> usize {
        z * self.width + x
    }

    /// Sum and number of the up to four neighbours of a cell.
    fn neighbours(&self, x: usize, z: usize) -> (f64, f64) {
        let (v, w) = (&self.values, self.width);
        let i = self.index(x, z);
        if x > 0 && z > 0 && x + 1 < w && z + 1 < self.height {
            return (v[i - 1] + v[i + 1] + v[i - w] + v[i + w], 4.0);
        }
        let sides = [
            (x > 0).then(|| v[i - 1]),
            (x + 1 < w).then(|| v[i + 1]),
            (z > 0).then(|| v[i - w]),
            (z + 1 < self.height).then(|| v[i + w]),
        ];
        let there = sides.iter().flatten();
        (there.clone().sum(), there.count() as f64)
    }

    fn source(&self, i: usize) -> f64 {
        self.source.get(i).copied().unwrap_or(0.0)
    }

    /// Gauss-Seidel: every unknown cell is set to what its neighbours ask of it.
    fn sweep(&mut self, times: usize) {
        for _ in 0..times {
            for r in 0..self.runs.len() {
                let run = self.runs[r];
                self.relax(run);
            }
        }
    }

    fn relax(&mut self, run: Run) {
        let (z, w) = (run.z as usize, self.width);
        let inside = z > 0 && z + 1 < self.height;
        for x in run.x0 as usize..run.x1 as usize {
            let i = z * w + x;
            let source = self.source(i);
            let v = &self.values;
            self.values[i] = if inside && x > 0 && x + 1 < w {
                // The cell just changed comes last, so that the others need not wait for it.
                0.25 * ((v[i - w] + v[i + w] + v[i + 1] - source) + v[i - 1])
            } else {
                let (sum, count) = self.neighbours(x, z);
                (sum - source) / count
            };
        }
    }

    fn residual(&self, x: usize, z: usize) -> f64 {
        let (sum, count) = self.neighbours(x, z);
        let i = self.index(x, z);
        self.source(i) - (sum - count * self.values[i])
    }

    /// Asks this level for the correction that `finer` still needs.
    fn take_residuals(&mut self, finer: &Level) {
        for r in 0..self.runs.len() {
            let Run { z, x0, x1 } = self.runs[r];
            for x in x0..x1 {
                let (x, z) = (x as usize, z as usize);
                let i = self.index(x, z);
                self.values[i] = 0.0;
                self.source[i] = finer
                    .children(x, z)
                    .map(|(x, z)| finer.residual(x, z))
                    .sum();
            }
        }
    }

    /// This level at the centre of cell (x, z) of the next finer one, bilinear.
    fn at_finer(&self, x: usize, z: usize) -> f64 {
        let near = |fine: usize, size: usize| {
            let coarse = fine / 2;
            let beside = if fine.is_multiple_of(2) {
                coarse.saturating_sub(1)
            } else {
                (coarse + 1).min(size - 1)
            };
            (coarse, beside)
        };
        let (x0, x1) = near(x, self.width);
        let (z0, z1) = near(z, self.height);
        let row = |z: usize| {
            let row = &self.values[z * self.width..];
            0.75 * row[x0] + 0.25 * row[x1]
        };
        0.75 * row(z0) + 0.25 * row(z1)
    }

    /// Changes unknown cells by the coarser level's values; the largest change.
    fn add(&mut self, coarser: &Level) -> f64 {
        let mut largest = 0.0f64;
        for run in &self.runs {
            for x in run.x0..run.x1 {
                let (x, z) = (x as usize, run.z as usize);
                let change = coarser.at_finer(x, z);
                self.values[z * self.width + x] += change;
                largest = largest.max(change.abs());
            }
        }
        largest
    }

    fn clear_unknown(&mut self) {
        for run in &self.runs {
            let row = run.z as usize * self.width;
            self.values[row + run.x0 as usize..row + run.x1 as usize].fill(0.0);
        }
    }

    fn clamp(&mut self, low: f64, high: f64) {
        for value in self.values.iter_mut().filter(|v| v.is_finite()) {
            *value = value.clamp(low, high);
        }
    }

    /// The level's centre in the place of what is outside, so that a sum with it has a value.
    fn level_outside(&mut self) {
        let known = self.values.iter().filter(|v| v.is_finite());
        let (sum, count) = known.fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
        let centre = sum / f64::max(count, 1.0);
        for value in self.values.iter_mut().filter(|v| v.is_infinite()) {
            *value = centre;
        }
    }
}

fn runs_of(z: u32, row: &[f64]) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut start = None;
    for (x, value) in row.iter().chain([&0.0]).enumerate() {
        match (start, value.is_nan()) {
            (None, true) => start = Some(x as u32),
            (Some(x0), false) => {
                let x1 = x as u32;
                runs.push(Run { z, x0, x1 });
                start = None;
            }
            _ => {}
        }
    }
    runs
}

/// From the finest level to the first one without unknown cells.
fn pyramid(finest: Level) -> Vec<Level> {
    let mut levels = vec![finest];
    while let Some(last) = levels.last().filter(|level| !level.runs.is_empty()) {
        let next = last.coarser();
        levels.push(next);
    }
    for level in levels.iter_mut().skip(1) {
        level.level_outside();
    }
    levels
}

/// A first fill, from the coarsest level down.
fn guess(levels: &mut [Level]) {
    for k in (0..levels.len() - 1).rev() {
        let [level, coarser] = &mut levels[k..k + 2] else {
            return;
        };
        level.clear_unknown();
        level.add(coarser);
        level.sweep(SWEEPS);
    }
}

/// From here on coarser levels hold corrections, which are zero wherever a sample is known.
fn start_corrections(levels: &mut Vec<Level>) {
    levels.pop_if(|level| level.runs.is_empty());
    for level in levels.iter_mut().skip(1) {
        level.values.fill(0.0);
        level.source = vec![0.0; level.values.len()];
    }
}

/// One V-cycle, a W on small levels; the largest correction that reached the finest level.
fn cycle(levels: &mut [Level]) -> f64 {
    let Some((level, coarser)) = levels.split_first_mut() else {
        return 0.0;
    };
    if coarser.is_empty() {
        level.sweep(SWEEPS_AT_THE_TOP);
        return 0.0;
    }
    level.sweep(SWEEPS);
    coarser[0].take_residuals(level);
    cycle(coarser);
    if coarser[0].values.len() <= SMALL {
        cycle(coarser);
    }
    let change = level.add(&coarser[0]);
    level.sweep(SWEEPS);
    change
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Random;
    use super::*;

    /// A `size` square of `height(x, z)` where `hole(x, z)` is void.
    fn holed(
        size: u32,
        height: impl Fn(f64, f64) -> f64,
        hole: impl Fn(f64, f64) -> bool,
    ) -> Vec<f64> {
        let cells = (0..size).flat_map(|z| (0..size).map(move |x| (f64::from(x), f64::from(z))));
        cells
            .map(|(x, z)| if hole(x, z) { f64::NAN } else { height(x, z) })
            .collect()
    }

    fn worst(size: u32, samples: &[f64], height: impl Fn(f64, f64) -> f64) -> f64 {
        let whole = holed(size, height, |_, _| false);
        let errors = samples.iter().zip(&whole).map(|(a, b)| (a - b).abs());
        errors.fold(0.0, f64::max)
    }

    #[test]
    fn a_planes_hole_is_restored() {
        let plane = |x: f64, z: f64| 3.0 * x - 2.0 * z + 100.0;
        for radius in [1.0, 7.0, 40.0, 90.0] {
            let hole = |x: f64, z: f64| (x - 101.0).hypot(z - 97.0) < radius;
            let mut samples = holed(200, plane, hole);
            fill(200, 200, &mut samples);
            let error = worst(200, &samples, plane);
            assert!(error < 0.5, "radius {radius}: {error}");
        }
    }

    #[test]
    fn a_harmonic_saddle_is_restored_from_its_frame() {
        let saddle = |x: f64, z: f64| ((x - 64.0).powi(2) - (z - 64.0).powi(2)) / 20.0;
        let frame = |x: f64, z: f64| x > 0.0 && z > 0.0 && x < 128.0 && z < 128.0;
        let mut samples = holed(129, saddle, frame);
        fill(129, 129, &mut samples);
        assert!(worst(129, &samples, saddle) < 0.5);
    }

    #[test]
    fn a_hole_at_the_border_takes_its_rims_height() {
        let step = |x: f64, _: f64| if x < 50.0 { 10.0 } else { 20.0 };
        let mut samples = holed(100, step, |x, _| x > 30.0);
        fill(100, 100, &mut samples);
        assert!(samples.iter().all(|v| (v - 10.0).abs() < 1e-6));
    }

    #[test]
    fn scattered_samples_bound_what_is_between() {
        let mut random = Random(5);
        let mut samples: Vec<f64> = (0..90 * 77)
            .map(|_| match random.below(4) {
                0 => random.below(1000) as f64,
                _ => f64::NAN,
            })
            .collect();
        let before = samples.clone();
        fill(90, 77, &mut samples);
        assert!(samples.iter().all(|v| (0.0..1000.0).contains(v)));
        let kept = before.iter().zip(&samples).filter(|(b, _)| !b.is_nan());
        assert!(kept.into_iter().all(|(b, a)| a == b));
        let level = Level::new(90, 77, samples);
        let voids = before.iter().enumerate().filter(|(_, v)| v.is_nan());
        let residual = voids.fold(0.0f64, |r, (i, _)| {
            r.max(level.residual(i % 90, i / 90).abs())
        });
        assert!(residual < 0.1, "{residual}");
    }

    #[test]
    fn one_known_sample_is_enough_and_runs_repeat() {
        let mut samples = vec![f64::NAN; 6 * 5];
        samples[17] = 42.0;
        let mut again = samples.clone();
        fill(6, 5, &mut samples);
        fill(6, 5, &mut again);
        assert!(samples.iter().all(|v| *v == 42.0));
        assert_eq!(samples, again);
    }
}
