//! What a person should know of a source before it is compiled.
//!
//! Nothing here is an error: the heights are used as they are. Each [`Warning`] says what looks
//! wrong and what to pass to have it otherwise.
//!
//! - Everything is judged before voids are filled, on the samples as the file had them.
//! - Most questions are answered by what was gathered while the samples passed by; memory does not
//!   grow with their number.

use serde::Serialize;

use super::gather::{Findings, LEVELS_OF_A_BYTE, STRIPE};
use super::numbers::{Number, each_kind};
use super::options::VoidFill;
use super::raster::Head;
use super::store::{BAND_SAMPLES, Store, bands};
use super::undeclared;
use crate::error::Result;
use crate::source::Area;

/// Warnings of numbers that nothing declares to be no heights.
pub(super) use undeclared::ABOUT as UNDECLARED;

/// Below so many samples a side there is hardly anything to see.
const FEW_SAMPLES: u32 = 33;
/// Ground is never steeper than this on average.
const STEEP: f64 = 1.0;
/// Degrees make cells this oblong at 60 degrees of latitude.
const OBLONG: f64 = 2.0;
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

/// What the warnings are about.
pub(super) struct Subject<'a> {
    pub head: &'a Head,
    pub found: &'a Findings,
    /// Metres a unit of the file, and at its 0.
    pub metres: f64,
    pub offset_m: f64,
    pub spacing_m: [f64; 2],
    /// What is done about samples without a height.
    pub voids: VoidFill,
}

impl Subject<'_> {
    /// All warnings that the samples give rise to. `store` has them for those questions that need
    /// a second look.
    pub fn examine(&self, store: &Store) -> Result<Vec<Warning>> {
        let metres = |sample| sample * self.metres + self.offset_m;
        let mut warnings = undeclared::warnings(self.head, self.found, store, metres)?;
        let known_terraces = self.head.warnings.iter().any(|w| w.about == "terraces");
        let questions = [
            few_samples(self.head),
            void_warning(self.found, self.voids),
            flat(self.found),
            statistics(self.head, self.found),
            relative(self.head, self.found).filter(|_| warnings.is_empty()),
            oblong(self.spacing_m),
            // Numbers that are no heights are what makes it steep.
            self.steep().filter(|_| warnings.is_empty()),
            terraces(self.found).filter(|_| !known_terraces),
            self.spikes(store, !warnings.is_empty())?,
        ];
        warnings.extend(questions.into_iter().flatten());
        Ok(warnings)
    }

    fn steep(&self) -> Option<Warning> {
        let [x, z] = self.spacing_m;
        let mean = self.found.slopes.mean() * self.metres.abs() / x.min(z);
        (mean > STEEP).then(|| {
            let text = format!(
                "the ground is steeper than {:.0} degrees on average, as if degrees or feet were taken for metres",
                mean.atan().to_degrees().floor()
            );
            Warning::new("steep", text, "--spacing M or --height-scale M")
        })
    }

    /// Only stripes with a step as high as a spike are looked at again.
    /// Those that are told already stand at the edge of numbers that are no heights.
    fn spikes(&self, store: &Store, told: bool) -> Result<Option<Warning>> {
        if told {
            return Ok(None);
        }
        let [x, z] = self.spacing_m;
        let slopes = &self.found.slopes;
        let least = (SPIKE * slopes.mean()).max(x.min(z) / self.metres.abs());
        let mut spikes = Spikes {
            least,
            first: None,
            count: 0,
        };
        let stripes = (0..).step_by(STRIPE as usize).zip(&slopes.most);
        for (z, _) in stripes.filter(|(_, most)| **most > least) {
            for band in bands(stripe(store, z), BAND_SAMPLES) {
                spikes.look(store, band)?;
            }
        }
        Ok(spikes.warning())
    }
}

fn stripe(store: &Store, z: u32) -> Area {
    let whole = store.whole();
    let height = STRIPE.min(whole.height - z);
    Area { z, height, ..whole }
}

fn few_samples(head: &Head) -> Option<Warning> {
    (head.width.min(head.height) < FEW_SAMPLES).then(|| {
        let text = format!("only {} x {} samples", head.width, head.height);
        Warning::new("size", text, "a larger source, or --resample M")
    })
}

fn void_warning(found: &Findings, fill: VoidFill) -> Option<Warning> {
    let voids = found.voids?;
    let part = 100.0 * voids.count as f64 / found.samples() as f64;
    let (done, others) = match fill {
        VoidFill::Smooth => ("filled smoothly", "nearest or keep"),
        VoidFill::Nearest => ("filled from the nearest", "fill or keep"),
        VoidFill::Keep => ("kept, there is no ground", "fill or nearest"),
    };
    let text = format!(
        "{} samples ({part:.1} %) without a height, in columns {} to {} and rows {} to {}: {done}",
        voids.count, voids.columns[0], voids.columns[1], voids.rows[0], voids.rows[1]
    );
    let pass = format!("--voids {others} for another way, or --crop X,Z,W,H to leave them out");
    Some(Warning::new("voids", text, pass))
}

fn flat(found: &Findings) -> Option<Warning> {
    (found.low == found.high).then(|| {
        let text = format!("every height is {}: there is nothing to see", found.low);
        Warning::new(
            "flat",
            text,
            "--nodata if this number is no height, or another source",
        )
    })
}

/// Numbers that whoever made the statistics did not take for heights.
fn statistics(head: &Head, found: &Findings) -> Option<Warning> {
    let [low, high] = head.statistics?;
    let room = 1e-6 * low.abs().max(high.abs()).max(1.0);
    let beyond = [
        (found.low < low - room).then_some(found.low),
        (found.high > high + room).then_some(found.high),
    ];
    let first = beyond.into_iter().flatten().next()?;
    let text = format!(
        "heights from {} to {}, but the statistics beside the file say {low} to {high}",
        found.low, found.high
    );
    let pass = format!("--nodata {first} if that is no height");
    Some(Warning::new("statistics", text, pass))
}

/// Files without a unit that use the whole range of their numbers hold no metres.
fn relative(head: &Head, found: &Findings) -> Option<Warning> {
    let unit_said = head.measure.unit_m.is_some() || head.georef.is_some();
    let whole = !head.integer && found.low >= -0.1 && found.high <= 1.1;
    let words = head.integer && found.low >= 0.0 && found.high >= 20_000.0;
    (!unit_said && found.low < found.high && (whole || words)).then(|| {
        let text = format!(
            "heights from {} to {} look like parts of a range, not metres",
            found.low, found.high
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

/// 8-bit heights that were stretched over more bits, and the like.
fn terraces(found: &Findings) -> Option<Warning> {
    let levels = found.levels.as_ref()?;
    if found.samples() < 64 * LEVELS_OF_A_BYTE as u64 {
        return None;
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

/// Samples that stand alone.
struct Spikes {
    /// What they stand out by, in units of the file.
    least: f64,
    first: Option<(f64, [u32; 2])>,
    count: u64,
}

impl Spikes {
    /// Judges the rows of a band by those above and below.
    fn look(&mut self, store: &Store, band: Area) -> Result<()> {
        let [width, height] = store.size;
        let north = band.z.max(1);
        let south = (band.z + band.height).min(height - 1);
        if width < 3 || north >= south {
            return Ok(());
        }
        let about = Area {
            z: north - 1,
            height: south - north + 2,
            ..band
        };
        let samples = store.read(about)?;
        each_kind!(&samples, samples => self.look_at(samples, width as usize, north));
        Ok(())
    }

    /// `samples` begin a row north of row `z`.
    fn look_at<T: Number>(&mut self, samples: &[T], width: usize, z: u32) {
        let rows: Vec<&[T]> = samples.chunks(width).collect();
        for (z, rows) in (z..).zip(rows.windows(3)) {
            for x in 1..width - 1 {
                let [sample, west, east, north, south] = [
                    rows[1][x],
                    rows[1][x - 1],
                    rows[1][x + 1],
                    rows[0][x],
                    rows[2][x],
                ]
                .map(T::to_f64);
                if (sample - west).abs() > self.least
                    && self.is_spike(sample, [north, west, east, south])
                {
                    self.count += 1;
                    self.first.get_or_insert((sample, [x as u32, z]));
                }
            }
        }
    }

    fn is_spike(&self, sample: f64, around: [f64; 4]) -> bool {
        let low = around.iter().copied().fold(f64::INFINITY, f64::min);
        let high = around.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let beyond = (sample - high).max(low - sample);
        around.iter().all(|v| !v.is_nan()) && beyond > self.least && beyond > LONELY * (high - low)
    }

    fn warning(&self) -> Option<Warning> {
        let (sample, [x, z]) = self.first?;
        let text = format!(
            "spikes: {}, the first of {sample} at column {x}, row {z}",
            self.count
        );
        let pass = format!("--nodata {sample} if that is no height");
        Some(Warning::new("spikes", text, pass))
    }
}

#[cfg(test)]
mod tests {
    use super::super::gather::Gather;
    use super::super::grid::Grid;
    use super::super::raster::Raster;
    use super::super::store::Shelf;
    use super::*;

    /// A gentle slope of 64 x 64 samples with something changed.
    fn slope(change: impl FnOnce(&mut Vec<f64>)) -> Grid {
        let mut samples = (0..64 * 64)
            .map(|i| f64::from(i % 64 + 2 * (i / 64)))
            .collect();
        change(&mut samples);
        Grid::plain(64, 64, samples, true)
    }

    /// The warnings of a grid that lies on disk, and in memory alike.
    fn found(grid: &Grid, spacing_m: [f64; 2]) -> Vec<Warning> {
        let mut copy = Grid::plain(grid.width, grid.height, grid.samples.clone(), grid.integer);
        copy.warnings = grid.warnings.clone();
        let mut raster = Raster::from(copy);
        let mut gather = Gather::new(grid.width, grid.integer);
        let size = [grid.width, grid.height];
        let mut stores = [0, u64::MAX].map(|in_memory| {
            let folder = std::env::temp_dir();
            Store::new(size, raster.head.kind, &Shelf { folder, in_memory }).unwrap()
        });
        let whole = raster.head.whole();
        let mut take = |numbers| {
            gather.rows(&numbers)?;
            for store in &mut stores {
                store.write(whole, numbers.clone())?;
            }
            Ok(())
        };
        raster.samples.read(whole, &mut take).unwrap();
        let subject = Subject {
            head: &raster.head,
            found: &gather.finish(),
            metres: 1.0,
            offset_m: 0.0,
            spacing_m,
            voids: VoidFill::Smooth,
        };
        let [disk, memory] = stores.map(|store| subject.examine(&store).unwrap());
        assert_eq!(disk, memory);
        memory
    }

    fn about(grid: &Grid, spacing_m: [f64; 2]) -> Vec<&'static str> {
        let found = found(grid, spacing_m);
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
        let found = found(&grid, [10.0, 10.0]);
        assert_eq!((found.len(), found[0].about), (1, "voids"));
        let text = &found[0].text;
        assert!(text.starts_with("2 samples"), "{text}");
        assert!(text.contains("columns 2 to 5 and rows 3 to 9"), "{text}");
    }

    #[test]
    fn what_is_done_about_voids_is_not_what_to_pass() {
        let found = Findings {
            size: [2, 2],
            voids: Some(Voids {
                count: 1,
                columns: [0, 0],
                rows: [0, 0],
            }),
            ..Findings::default()
        };
        for (fill, name, done) in [
            (VoidFill::Smooth, "fill", ": filled smoothly"),
            (VoidFill::Nearest, "nearest", ": filled from the nearest"),
            (VoidFill::Keep, "keep", ": kept"),
        ] {
            let warning = void_warning(&found, fill).unwrap();
            assert!(warning.text.contains(done), "{warning:?}");
            let (options, _) = warning.pass.split_once(" for another way").unwrap();
            for other in ["fill", "nearest", "keep"] {
                let passes = options.split(' ').any(|word| word == other);
                assert_eq!(passes, other != name, "{warning:?}");
            }
        }
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
        let pit = slope(|s| s[64 * 20 + 30] = -4321.0);
        let found = found(&pit, [100.0, 100.0]);
        assert!(
            found[0]
                .text
                .contains("1, the first of -4321 at column 30, row 20")
        );
        assert!(found[0].pass.starts_with("--nodata -4321"), "{found:?}");
    }

    #[test]
    fn voids_that_nobody_declared_are_told_with_their_place() {
        let block = |number: f64, size: usize| {
            slope(move |s| {
                (0..size * size).for_each(|i| s[64 * (9 + i / size) + 7 + i % size] = number)
            })
        };
        for (number, size) in [
            (-9999.0, 3),
            (32767.0, 2),
            (-32767.0, 20),
            (1e20, 1),
            (4321.0, 2),
        ] {
            let found = found(&block(number, size), [10.0, 10.0]);
            assert_eq!(
                (found.len(), found[0].about),
                (1, "undeclared"),
                "{number}: {found:?}"
            );
            let last = [6 + size, 8 + size];
            let place = format!("columns 7 to {} and rows 9 to {}", last[0], last[1]);
            let start = format!("{} samples of {number}", size * size);
            let text = &found[0].text;
            assert!(text.starts_with(&start) && text.contains(&place), "{text}");
            assert!(
                found[0].pass.contains(&format!("--nodata {number} ")),
                "{found:?}"
            );
        }
        // Two at once, one hidden by the other.
        let both = slope(|s| {
            s[100] = -9999.0;
            s[200] = -32767.0;
            s[300] = 32767.0;
        });
        assert_eq!(about(&both, [10.0, 10.0]), ["undeclared"; 3]);
    }

    #[test]
    fn a_frame_of_zeros_round_high_ground_is_told_and_a_coast_is_not() {
        let raised = |base: f64, coast: bool| {
            slope(move |s| {
                for (i, v) in s.iter_mut().enumerate() {
                    let (x, z) = (i % 64, i / 64);
                    let edge = x.min(z).min(63 - x).min(63 - z);
                    *v = match (edge < 3, coast) {
                        (true, _) => 0.0,
                        (false, true) => (*v).min(3.0 * (edge as f64 - 2.0)),
                        (false, false) => *v + base,
                    };
                }
            })
        };
        let found = found(&raised(600.0, false), [10.0, 10.0]);
        assert_eq!(
            (found.len(), found[0].about),
            (1, "undeclared"),
            "{found:?}"
        );
        assert!(found[0].pass.contains("--nodata 0") && found[0].pass.contains("--crop"));
        assert!(about(&raised(0.0, true), [10.0, 10.0]).is_empty());
    }

    #[test]
    fn what_is_on_no_ground_on_earth_is_told_where_there_is_a_place() {
        let mut high = slope(|s| s.iter_mut().for_each(|v| *v *= 80.0));
        assert!(about(&high, [1000.0, 1000.0]).is_empty());
        let place = super::super::geo::Unit::Metres(1.0);
        high.georef = Some(super::super::geo::Georef::north_up(
            None, place, [0.0; 2], [1e3; 2],
        ));
        let mut raster = Raster::from(high);
        let head = raster.head.clone();
        let mut gather = Gather::new(64, true);
        let whole = head.whole();
        let folder = std::env::temp_dir();
        let in_memory = u64::MAX;
        let mut store = Store::new([64, 64], head.kind, &Shelf { folder, in_memory }).unwrap();
        let mut take = |numbers| {
            gather.rows(&numbers)?;
            store.write(whole, numbers)
        };
        raster.samples.read(whole, &mut take).unwrap();
        let told = undeclared::warnings(&head, &gather.finish(), &store, |v| v).unwrap();
        assert_eq!(told.len(), 1);
        assert!(
            told[0].text.contains("beyond any ground on Earth"),
            "{told:?}"
        );
        assert!(told[0].pass.contains("--height-scale"), "{told:?}");
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
