//! What is learnt of samples while they pass by, row by row from the north.
//!
//! - Memory does not grow with the samples: only with the runs of voids, and by a number for
//!   every [`STRIPE`] rows.
//! - Voids count for nothing but themselves.

use std::collections::BTreeSet;

use super::holes::Holes;
use super::lint::Voids;
use super::numbers::{Number, Numbers, each_kind};
use crate::error::Result;

/// Rows that are looked at together when a question needs a second look.
pub(super) const STRIPE: u32 = 64;
/// Fewer different heights than this make terraces.
pub(super) const LEVELS_OF_A_BYTE: usize = 256;

/// Facts of all samples.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub size: [u32; 2],
    pub low: f64,
    pub high: f64,
    /// The first of the highest samples.
    pub summit: [u32; 2],
    pub voids: Option<Voids>,
    pub holes: Holes,
    pub slopes: Slopes,
    /// All different heights, where there are fewer than a byte has, and they are whole.
    pub levels: Option<BTreeSet<i64>>,
}

/// How much neighbours in a row differ, in units of the file.
#[derive(Debug, Default)]
pub(super) struct Slopes {
    sum: f64,
    count: u64,
    /// The largest difference in each [`STRIPE`] rows.
    pub most: Vec<f64>,
}

impl Slopes {
    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    pub fn largest(&self) -> f64 {
        self.most.iter().copied().fold(0.0, f64::max)
    }
}

/// Gathers [`Findings`].
pub(super) struct Gather {
    findings: Findings,
    levels: Option<Levels>,
}

impl Gather {
    pub fn new(width: u32, integer: bool) -> Gather {
        Gather {
            findings: Findings {
                size: [width, 0],
                low: f64::INFINITY,
                high: f64::NEG_INFINITY,
                ..Findings::default()
            },
            levels: integer.then(Levels::default),
        }
    }

    /// The next rows to the south.
    pub fn rows(&mut self, numbers: &Numbers) -> Result<()> {
        let width = self.findings.size[0] as usize;
        each_kind!(numbers, numbers => numbers.chunks(width).try_for_each(|row| self.row(row)))
    }

    fn row<T: Number>(&mut self, row: &[T]) -> Result<()> {
        let found = &mut self.findings;
        let z = found.size[1];
        found.size[1] += 1;
        let (voids, low, high) = T::survey(row);
        found.low = found.low.min(low);
        if high > found.high {
            let x = row.iter().position(|number| number.to_f64() == high);
            (found.high, found.summit) = (high, [x.unwrap_or(0) as u32, z]);
        }
        if voids > 0 {
            found
                .holes
                .row(z, row.iter().map(|number| number.is_void()))?;
            found.note_voids(z, row, voids as u64);
        } else {
            found.holes.row_without();
        }
        found.note_steps(z, T::steps(row));
        let levels = self.levels.as_mut();
        if levels.is_some_and(|levels| levels.note(row)) {
            self.levels = None;
        }
        Ok(())
    }

    pub fn finish(self) -> Findings {
        Findings {
            levels: self.levels.map(|levels| levels.seen),
            ..self.findings
        }
    }
}

impl Findings {
    fn note_voids<T: Number>(&mut self, z: u32, row: &[T], count: u64) {
        let place = |at: Option<usize>| at.unwrap_or(0) as u32;
        let first = place(row.iter().position(|number| number.is_void()));
        let last = place(row.iter().rposition(|number| number.is_void()));
        let all = self.voids.get_or_insert(Voids {
            count: 0,
            columns: [first, last],
            rows: [z, z],
        });
        all.count += count;
        all.columns = [all.columns[0].min(first), all.columns[1].max(last)];
        all.rows[1] = z;
    }

    fn note_steps(&mut self, z: u32, (sum, most, count): (f64, f64, usize)) {
        let slopes = &mut self.slopes;
        slopes.sum += sum;
        slopes.count += count as u64;
        match slopes.most.get_mut((z / STRIPE) as usize) {
            Some(stripe) => *stripe = stripe.max(most),
            None => slopes.most.push(most),
        }
    }

    pub fn samples(&self) -> u64 {
        u64::from(self.size[0]) * u64::from(self.size[1])
    }
}

/// Different whole heights, up to as many as a byte has.
struct Levels {
    seen: BTreeSet<i64>,
    /// Heights that were seen lately, by their last bits: most need no look into the set.
    lately: [i64; 512],
}

impl Default for Levels {
    fn default() -> Levels {
        Levels {
            seen: BTreeSet::new(),
            lately: [i64::MIN; 512],
        }
    }
}

impl Levels {
    /// Whether there are too many.
    fn note<T: Number>(&mut self, row: &[T]) -> bool {
        for value in row.iter().map(|number| number.to_f64()) {
            let level = value as i64;
            let lately = &mut self.lately[(level & 511) as usize];
            if *lately != level && !value.is_nan() {
                *lately = level;
                self.seen.insert(level);
                if self.seen.len() > LEVELS_OF_A_BYTE {
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Random;
    use super::super::numbers::Kind;
    use super::*;

    fn gathered(width: u32, values: &[f64], kind: Kind, rows_at_once: usize) -> Findings {
        let mut gather = Gather::new(width, true);
        for part in values.chunks(width as usize * rows_at_once) {
            gather.rows(&Numbers::from_f64(kind, part)).unwrap();
        }
        gather.finish()
    }

    #[test]
    fn findings_do_not_depend_on_kind_or_bands() {
        let mut random = Random(2);
        let values: Vec<f64> = (0..37 * 150)
            .map(|_| match random.below(9) {
                0 => f64::NAN,
                _ => random.below(600) as f64 - 300.0,
            })
            .collect();
        let naive = values.iter().filter(|v| !v.is_nan());
        let high = naive.clone().copied().fold(f64::NEG_INFINITY, f64::max);
        let low = naive.copied().fold(f64::INFINITY, f64::min);
        let first = values.iter().position(|v| *v == high).unwrap() as u32;
        let voids = values.iter().filter(|v| v.is_nan()).count() as u64;
        let steps = values
            .chunks(37)
            .flat_map(|row| row.windows(2).map(|p| (p[1] - p[0]).abs()));
        let most = steps.filter(|s| !s.is_nan()).fold(0.0, f64::max);
        for kind in [Kind::I16, Kind::I32, Kind::F32, Kind::F64] {
            for rows in [1, 7, 150] {
                let found = gathered(37, &values, kind, rows);
                assert_eq!((found.low, found.high, found.size), (low, high, [37, 150]));
                assert_eq!(found.summit, [first % 37, first / 37]);
                assert_eq!(found.voids.unwrap().count, voids);
                assert_eq!(found.slopes.most.len(), 3);
                assert_eq!(found.slopes.most.iter().copied().fold(0.0, f64::max), most);
                assert_eq!(found.levels, None);
            }
        }
    }

    #[test]
    fn few_levels_are_all_told() {
        let values: Vec<f64> = (0..5000).map(|i| f64::from(i % 7 * 512)).collect();
        let found = gathered(50, &values, Kind::I16, 3);
        let expected: BTreeSet<i64> = (0..7).map(|i| i * 512).collect();
        assert_eq!(found.levels, Some(expected));
    }
}
