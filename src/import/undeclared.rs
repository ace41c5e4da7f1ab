//! Numbers that stand for no height although nothing says so.
//!
//! Writers leave -9999 and its like undeclared, in blocks and frames as well as alone. What gives
//! them away is that they are the lowest or the highest number and far from all others, or that no
//! ground on Earth is there. It stays a warning: only the user knows.
//!
//! - Samples are looked at again only where what was gathered looks odd.

use super::gather::Findings;
use super::lint::Warning;
use super::numbers::{Number, each_kind};
use super::raster::Head;
use super::store::Store;
use crate::error::Result;

pub(super) const ABOUT: &str = "undeclared";

/// What writers like to put where there is no height. Absurd floats are voids anyway.
const WELL_KNOWN: [f64; 9] = [
    -9999.0, -99999.0, -32767.0, -32768.0, 32767.0, 32768.0, 65535.0, 1e20, -1e20,
];
/// How far from all others a number is that stands for no height, in times the range of those.
const FAR: f64 = 2.0;
const FAR_IF_KNOWN: f64 = 0.2;
const FAR_IF_ZERO: f64 = 0.5;
/// The sea may lie under a cliff, but not all round the land.
const CLIFF_M: f64 = 50.0;
/// The largest step between neighbours is at least this part of the range then.
const LARGE_STEP: f64 = 0.15;
/// Lowest and highest different numbers that are told apart.
const KEPT: usize = 4;
/// Ground is between these, with some room.
const EARTHLY_M: std::ops::RangeInclusive<f64> = -12_000.0..=9_000.0;

/// What to say of numbers that are hardly heights. `metres` makes metres of a sample.
pub(super) fn warnings(
    head: &Head,
    found: &Findings,
    store: &Store,
    metres: impl Fn(f64) -> f64,
) -> Result<Vec<Warning>> {
    let on_earth = head.georef.is_some();
    let ends = [found.low, found.high];
    let beyond = |sample: f64| on_earth && !EARTHLY_M.contains(&metres(sample));
    let large_step = found.slopes.largest() >= LARGE_STEP * (found.high - found.low);
    let known = ends.iter().any(|end| WELL_KNOWN.contains(end));
    let odd = known || large_step || ends.iter().any(|end| beyond(*end));
    if !odd || found.low == found.high {
        return Ok(Vec::new());
    }
    let mut looked = Looked::default();
    for band in store.bands() {
        let numbers = store.read(band)?;
        let width = store.size[0] as usize;
        each_kind!(&numbers, numbers => {
            for (z, row) in (band.z..).zip(numbers.chunks(width)) {
                looked.row(z, row, &beyond);
            }
        });
    }
    let a_metre = (metres(1.0) - metres(0.0)).abs();
    let mut told: Vec<Warning> = looked.far(CLIFF_M / a_metre);
    if told.is_empty() {
        told.extend(looked.unearthly(&metres));
    }
    Ok(told)
}

/// Samples of one number.
#[derive(Clone, Copy, Debug)]
struct Tally {
    number: f64,
    count: u64,
    columns: [u32; 2],
    rows: [u32; 2],
}

impl Tally {
    fn note(&mut self, x: u32, z: u32) {
        self.count += 1;
        self.columns = [self.columns[0].min(x), self.columns[1].max(x)];
        self.rows[1] = z;
    }
}

/// What a second look finds.
#[derive(Debug, Default)]
struct Looked {
    /// From the lowest up, and from the highest down.
    ends: [Vec<Tally>; 2],
    /// Samples that are on no ground on Earth.
    beyond: u64,
}

impl Looked {
    fn row<T: Number>(&mut self, z: u32, row: &[T], beyond: &impl Fn(f64) -> bool) {
        for (x, number) in (0..).zip(row).filter(|(_, number)| !number.is_void()) {
            let number = number.to_f64();
            self.beyond += u64::from(beyond(number));
            for (end, sign) in self.ends.iter_mut().zip([1.0, -1.0]) {
                note(end, sign, number, [x, z]);
            }
        }
    }

    /// The different numbers at one end, and the range of those that are at neither.
    fn far(&self, cliff: f64) -> Vec<Warning> {
        let [lows, highs] = &self.ends;
        let (Some(low), Some(high)) = (lows.last(), highs.last()) else {
            return Vec::new();
        };
        let others = (high.number - low.number).max(0.0);
        let few = lows.len() < KEPT
            || lows
                .iter()
                .any(|l| highs.iter().any(|h| h.number == l.number));
        let mut told = Vec::new();
        for end in &self.ends {
            let gap = |i: usize| (end[i + 1].number - end[i].number).abs();
            let is_void = |i: usize| match end[i].number {
                0.0 => gap(i) >= cliff && gap(i) > FAR_IF_ZERO * others,
                number if WELL_KNOWN.contains(&number) => gap(i) > FAR_IF_KNOWN * others,
                // Others that stand alone are spikes.
                _ => !few && end[i].count > 1 && others > 0.0 && gap(i) > FAR * others,
            };
            // A void may hide another one; heights are never as far apart.
            let candidates = end.len().saturating_sub(1).min(2);
            let Some(last) = (0..candidates).rfind(|i| is_void(*i)) else {
                continue;
            };
            told.extend(
                end[..=last]
                    .iter()
                    .map(|tally| tally.warning(low.number, high.number)),
            );
        }
        told
    }

    fn unearthly(&self, metres: &impl Fn(f64) -> f64) -> Option<Warning> {
        let ends = self.ends.iter().filter_map(|end| end.first());
        let worst =
            ends.max_by(|a, b| metres(a.number).abs().total_cmp(&metres(b.number).abs()))?;
        (self.beyond > 0).then(|| {
            let text = format!(
                "{} samples are beyond any ground on Earth (-12,000 to 9,000 m), the farthest {} in columns {} to {} and rows {} to {}",
                self.beyond, worst.number, worst.columns[0], worst.columns[1], worst.rows[0], worst.rows[1]
            );
            let pass = format!("--nodata {} if that is no height, or --height-scale M", worst.number);
            Warning::new(ABOUT, text, pass)
        })
    }
}

/// Keeps an end's numbers sorted and few.
fn note(end: &mut Vec<Tally>, sign: f64, number: f64, [x, z]: [u32; 2]) {
    if end.len() == KEPT && sign * number > sign * end[KEPT - 1].number {
        return;
    }
    let place = end
        .iter()
        .position(|tally| sign * number <= sign * tally.number);
    match place {
        Some(at) if end[at].number == number => end[at].note(x, z),
        place => {
            let tally = Tally {
                number,
                count: 1,
                columns: [x, x],
                rows: [z, z],
            };
            end.insert(place.unwrap_or(end.len()), tally);
            end.truncate(KEPT);
        }
    }
}

impl Tally {
    fn warning(&self, low: f64, high: f64) -> Warning {
        let Tally {
            number,
            count,
            columns,
            rows,
        } = self;
        let text = format!(
            "{count} samples of {number}, in columns {} to {} and rows {} to {}, far from all other heights ({low} to {high})",
            columns[0], columns[1], rows[0], rows[1]
        );
        let or_crop = match number {
            0.0 => ", or --crop X,Z,W,H to leave a frame out",
            _ => "",
        };
        let pass = format!("--nodata {number} if that is no height{or_crop}");
        Warning::new(ABOUT, text, pass)
    }
}
