//! Fills voids with the nearest height: the other way beside the membrane.
//!
//! An exact Euclidean feature transform in two passes: down each column the nearest known row,
//! then along each row the lower envelope of parabolas (Felzenszwalb and Huttenlocher, *Distance
//! Transforms of Sampled Functions*, 2012). Linear in the samples, whatever the holes.
//!
//! - Known samples are never touched; of several as near, the same one is taken every time.
//! - Distances count samples, not metres.

/// Replaces every NaN; at least one sample must be known. `samples` go row by row; infinity is no
/// height either, and stays.
pub(super) fn fill(width: u32, samples: &mut [f64]) {
    let width = width as usize;
    let nearest_row = nearest_rows(width, samples);
    let known = samples.to_vec();
    let rows = samples.chunks_mut(width).zip(nearest_row.chunks(width));
    for (z, (row, nearest)) in rows.enumerate() {
        if !row.iter().any(|sample| sample.is_nan()) {
            continue;
        }
        let envelope = Envelope::of(z, nearest);
        let mut part = 0;
        for (x, sample) in row.iter_mut().enumerate() {
            part = envelope.part_at(x, part);
            if sample.is_nan() {
                let column = envelope.columns[part];
                *sample = known[nearest[column] as usize * width + column];
            }
        }
    }
}

/// Stands for a column without any height.
const NONE: u32 = u32::MAX;

/// For each sample the row of the nearest known one in its column.
fn nearest_rows(width: usize, samples: &[f64]) -> Vec<u32> {
    let mut nearest = vec![NONE; samples.len()];
    let mut last = vec![NONE; width];
    let mut look = |z: usize, row: &[f64], nearest: &mut [u32]| {
        for ((sample, last), nearest) in row.iter().zip(&mut last).zip(nearest) {
            if sample.is_finite() {
                *last = z as u32;
            }
            if squared(z, *last) < squared(z, *nearest) {
                *nearest = *last;
            }
        }
    };
    let rows = samples.chunks(width).enumerate();
    for ((z, row), nearest) in rows.clone().zip(nearest.chunks_mut(width)) {
        look(z, row, nearest);
    }
    // The last row seen is now the southernmost, which is never nearer than what was found.
    for ((z, row), nearest) in rows.zip(nearest.chunks_mut(width)).rev() {
        look(z, row, nearest);
    }
    nearest
}

/// The squared distance from a row to another.
fn squared(z: usize, other: u32) -> i64 {
    match other {
        NONE => i64::MAX,
        other => (z as i64 - i64::from(other)).pow(2),
    }
}

/// Which column is nearest along a row: the lowest of the parabolas `(x - column)^2 + d^2`.
struct Envelope {
    columns: Vec<usize>,
    /// Where each begins to be the lowest.
    starts: Vec<f64>,
}

impl Envelope {
    fn of(z: usize, nearest: &[u32]) -> Envelope {
        let mut envelope = Envelope {
            columns: Vec::new(),
            starts: Vec::new(),
        };
        let height = |x: usize| (x * x) as f64 + squared(z, nearest[x]) as f64;
        for x in (0..nearest.len()).filter(|x| nearest[*x] != NONE) {
            let mut start = f64::NEG_INFINITY;
            while let (Some(column), Some(began)) =
                (envelope.columns.last(), envelope.starts.last())
            {
                start = (height(x) - height(*column)) / (2 * (x - column)) as f64;
                if start > *began {
                    break;
                }
                envelope.columns.pop();
                envelope.starts.pop();
                start = f64::NEG_INFINITY;
            }
            envelope.columns.push(x);
            envelope.starts.push(start);
        }
        envelope
    }

    /// The part that is lowest at `x`, looked for from `part` on.
    fn part_at(&self, x: usize, part: usize) -> usize {
        let later = self.starts[part..].iter().skip(1);
        part + later.take_while(|start| **start < x as f64).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Random;
    use super::*;

    #[test]
    fn every_void_gets_a_height_that_is_as_near_as_any() {
        let mut random = Random(7);
        for (width, height) in [(1, 9), (9, 1), (13, 8), (20, 31)] {
            for sparse in [2, 10, 60] {
                let count = width * height;
                let mut samples = vec![f64::NAN; count];
                samples[random.below(count)] = 0.0;
                // Each height is its own place, so that its distance can be told.
                for (at, sample) in samples.iter_mut().enumerate() {
                    if !sample.is_nan() || random.below(sparse) == 0 {
                        *sample = at as f64;
                    }
                }
                let known = samples.clone();
                fill(width as u32, &mut samples);
                let distance = |a: usize, b: usize| {
                    let d = |a: usize, b: usize| a.abs_diff(b).pow(2);
                    d(a % width, b % width) + d(a / width, b / width)
                };
                for (at, sample) in samples.iter().enumerate() {
                    let near = known.iter().filter(|s| !s.is_nan());
                    let best = near.map(|s| distance(at, *s as usize)).min();
                    assert_eq!(Some(distance(at, *sample as usize)), best);
                }
            }
        }
    }
}
