//! From the numbers of a file to heights that can be compiled.
//!
//! The order matters: what is no height goes first, then the crop, so that all that is said of
//! the source is said of what is used; voids are filled before a new grid is made of them.

use std::path::{Path, PathBuf};

use super::grid::Measure;
use super::heights::{self, Samples, Units};
use super::holes::Grouped;
use super::ingest::{Ingested, Progress};
use super::lint::{self, Lint, Warning};
use super::numbers::{Kind, Numbers};
use super::options::{ImportOptions, VoidFill};
use super::raster::Head;
use super::store::Store;
use super::{MAX_UNITS, geo, quantise, resample};
use crate::error::{Error, Result};
use crate::source::Source;
use crate::world::source::SourceInfo;

/// How near to a whole number of steps an offset must be to shift integers.
const WHOLE: f64 = 1e-6;

/// A source that was read and judged, but has no heights yet.
#[derive(Debug)]
pub(super) struct Judged {
    ingested: Ingested,
    line: Line,
    step_m: f64,
    info: SourceInfo,
    pub lint: Lint,
    /// For messages; stands for all files.
    path: PathBuf,
    /// Before a new grid is made.
    spacing_m: [f64; 2],
}

pub(super) fn judge(path: &Path, ingested: Ingested, options: &ImportOptions) -> Result<Judged> {
    let (head, found) = (&ingested.head, &ingested.found);
    let line = Line::of(&head.measure, options);
    let ends = [found.low, found.high].map(|v| line.metres(v));
    let (min_m, max_m) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    let (spacing_m, spacing_warning) = spacing_m(path, head, options)?;
    let mut warnings = head.warnings.clone();
    warnings.extend(spacing_warning);
    let subject = lint::Subject {
        head,
        found,
        metres: line.scale,
        offset_m: line.offset,
        spacing_m,
        voids: options.voids,
    };
    warnings.extend(subject.examine(&ingested.store)?);
    let old_size = [head.width, head.height];
    let (size, new_spacing_m) = match options.resample_m {
        Some(metres) => (
            resample::size(old_size, spacing_m, metres, path)?,
            [metres; 2],
        ),
        None => (old_size, spacing_m),
    };
    let whole = head.integer && options.resample_m.is_none();
    let most_units = options.most_units.unwrap_or(MAX_UNITS);
    let given_m = (options.height_step_m).or_else(|| line.whole_step().filter(|_| whole));
    let step_m = given_m.unwrap_or_else(|| quantise::float_step(min_m, max_m, most_units));
    let in_range = quantise::check_range(path, [min_m, max_m], step_m, most_units);
    // What makes the range so wide is better told than a step that nobody wants.
    let undeclared = warnings.iter().find(|w| w.about == lint::UNDECLARED);
    match (in_range, undeclared) {
        (Err(_), Some(odd)) => return Err(Error::file(path, &odd.text, &odd.pass)),
        (in_range, _) => in_range?,
    }
    if given_m.is_none() {
        warnings.extend(quantise::coarse_step(min_m, max_m, step_m));
    }
    let voids = found.voids.map_or(0, |voids| voids.count);
    let georef = head.georef.as_ref();
    let scale = [0, 1].map(|axis| new_spacing_m[axis] / spacing_m[axis]);
    let transform = georef.map(|g| scaled(g.transform, scale));
    let unit = |t: [f64; 6]| [new_spacing_m[0] / t[1], new_spacing_m[1] / -t[5]];
    let info = SourceInfo {
        files: ingested.files.clone(),
        voids,
        filled: if options.voids == VoidFill::Keep {
            0
        } else {
            voids
        },
        min_m,
        max_m,
        crs: georef.and_then(|g| g.crs.clone()),
        transform,
        pixel_is_area: georef.is_some_and(|g| g.pixel_is_area),
        metres_a_map_unit: transform.map(unit),
        geo_keys: georef.and_then(|g| g.keys.clone()),
    };
    let lint = Lint {
        files: info.files.clone(),
        crs: info.crs.clone(),
        size,
        spacing_m: new_spacing_m,
        min_m,
        max_m,
        height_step_m: step_m,
        voids: found.voids,
        warnings,
    };
    Ok(Judged {
        ingested,
        line,
        step_m,
        info,
        lint,
        path: path.to_owned(),
        spacing_m,
    })
}

/// With steps to the east and to the south so many times as wide.
fn scaled(mut transform: [f64; 6], [x, z]: [f64; 2]) -> [f64; 6] {
    transform[1] *= x;
    transform[5] *= z;
    transform
}

fn spacing_m(
    path: &Path,
    head: &Head,
    options: &ImportOptions,
) -> Result<([f64; 2], Option<Warning>)> {
    match options.spacing_m {
        Some(spacing) => Ok((spacing, None)),
        None => geo::spacing_m(path, head.georef.as_ref(), head.width, head.height),
    }
}

impl Judged {
    /// The heights, and what there is to say of them.
    pub fn into_source(
        self,
        options: &ImportOptions,
        progress: &mut Progress,
    ) -> Result<(Source, Lint)> {
        let Judged {
            mut lint,
            step_m,
            mut info,
            ..
        } = self;
        let Ingested {
            store, found, head, ..
        } = self.ingested;
        let units = Units {
            scale: self.line.scale / step_m,
            offset: self.line.offset / step_m,
        };
        let mut holes = found.holes.collect();
        lint.warnings
            .extend(heights::block_warning(&holes, store.size));
        let mut samples = Samples {
            store,
            integer: head.integer,
            low: found.low,
            high: found.high,
            summit: found.summit,
        };
        if let Some(metres) = options.resample_m {
            let mut grid = heights::whole(&samples.store, &holes, options.voids)?;
            resample::to_square(&mut grid, self.spacing_m, metres, &self.path)?;
            holes = Grouped::default();
            samples.integer = false;
            // What is averaged does not reach as far as the source.
            let all = || grid.samples.iter().copied();
            samples.low = all().fold(f64::INFINITY, f64::min);
            samples.high = all().fold(f64::NEG_INFINITY, f64::max);
            let ends = [samples.low, samples.high].map(|sample| self.line.metres(sample));
            (info.min_m, info.max_m) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            samples.store = Store::new(lint.size, Kind::F64, &options.shelf())?;
            let area = samples.store.whole();
            samples.store.write(area, Numbers::F64(grid.samples))?;
        }
        let ground = heights::finish(samples, holes, units, options, progress)?;
        let source = Source {
            ground: Box::new(ground),
            step_m,
            spacing_m: lint.spacing_m,
            info,
        };
        Ok((source, lint))
    }
}

/// Metres are a sample times `scale` plus `offset`.
#[derive(Clone, Copy, Debug)]
struct Line {
    scale: f64,
    offset: f64,
}

impl Line {
    /// The file's scale and offset make its units; the unit, or the user, makes metres.
    fn of(measure: &Measure, options: &ImportOptions) -> Line {
        let unit = options.height_scale.or(measure.unit_m).unwrap_or(1.0);
        Line {
            scale: unit * measure.scale,
            offset: unit * measure.offset + options.height_offset_m.unwrap_or(0.0),
        }
    }

    fn metres(&self, sample: f64) -> f64 {
        sample * self.scale + self.offset
    }

    /// The step in which whole samples stay whole, if the offset is so many steps.
    fn whole_step(&self) -> Option<f64> {
        let steps = self.offset / self.scale;
        ((steps - steps.round()).abs() < WHOLE).then_some(self.scale.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::Grid;
    use super::super::ingest;
    use super::super::options::Crop;
    use super::*;

    fn grid(samples: &[f64], integer: bool) -> Grid {
        Grid::plain(2, samples.len() as u32 / 2, samples.to_vec(), integer)
    }

    fn finish_with(samples: &[f64], integer: bool, options: ImportOptions) -> Result<Source> {
        finish_grid(grid(samples, integer), options)
    }

    fn finish_grid(grid: Grid, options: ImportOptions) -> Result<Source> {
        let path = Path::new("x.tif");
        let mut report = |_, _| Ok(());
        let mut progress = Progress::new(&mut report);
        let ingested = ingest::one(path, grid.into(), &options, &mut progress)?;
        let judged = judge(path, ingested, &options)?;
        judged
            .into_source(&options, &mut progress)
            .map(|found| found.0)
    }

    #[test]
    fn integers_stay_integers_whatever_the_scale() {
        let heights = [1.0, -2.0, 3000.0, 7.0];
        let plain = finish_with(&heights, true, ImportOptions::default()).unwrap();
        assert_eq!(plain.step_m, 1.0);
        assert_eq!(plain.ground.whole().unwrap().heights, [1, -2, 3000, 7]);
        let options = ImportOptions {
            height_scale: Some(0.1),
            ..Default::default()
        };
        let scaled = finish_with(&heights, true, options).unwrap();
        assert_eq!((scaled.step_m, scaled.info.max_m), (0.1, 300.0));
        assert_eq!(
            scaled.ground.whole().unwrap().heights,
            plain.ground.whole().unwrap().heights
        );
    }

    #[test]
    fn an_offset_of_whole_steps_keeps_integers_and_others_are_near() {
        let offset = |metres| ImportOptions {
            height_offset_m: Some(metres),
            ..Default::default()
        };
        let heights = [0.0, 1.0, 2.0, 3.0];
        let whole = finish_with(&heights, true, offset(-20.0)).unwrap();
        assert_eq!(whole.ground.whole().unwrap().heights, [-20, -19, -18, -17]);
        let between = finish_with(&heights, true, offset(0.3)).unwrap();
        assert_eq!((between.info.min_m, between.info.max_m), (0.3, 3.3));
        let lowest = f64::from(between.ground.whole().unwrap().heights[0]) * between.step_m;
        assert!((lowest - 0.3).abs() <= between.step_m / 2.0);
    }

    #[test]
    fn the_file_s_unit_counts_unless_the_user_knows_better() {
        let mut feet = grid(&[0.0, 1000.0, 2.0, 3.0], true);
        feet.measure.unit_m = Some(0.3048);
        let metres = finish_grid(feet, ImportOptions::default()).unwrap();
        assert!((metres.info.max_m - 304.8).abs() < 1e-9);
        let mut feet = grid(&[0.0, 1000.0, 2.0, 3.0], true);
        feet.measure.unit_m = Some(0.3048);
        let options = ImportOptions {
            height_scale: Some(1.0),
            ..Default::default()
        };
        assert_eq!(finish_grid(feet, options).unwrap().info.max_m, 1000.0);
    }

    #[test]
    fn depths_are_turned_over() {
        let mut depths = grid(&[0.0, 10.0, 20.0, 30.0], true);
        depths.measure.scale = -1.0;
        let source = finish_grid(depths, ImportOptions::default()).unwrap();
        assert_eq!((source.info.min_m, source.info.max_m), (-30.0, 0.0));
        assert_eq!(source.ground.whole().unwrap().heights, [0, -10, -20, -30]);
        assert_eq!(source.step_m, 1.0);
    }

    #[test]
    fn a_given_step_wins_and_halves_round_away_from_zero() {
        let options = ImportOptions {
            height_step_m: Some(2.0),
            ..Default::default()
        };
        let source = finish_with(&[1.0, -1.0, 5.0, 4.0], true, options).unwrap();
        assert_eq!(source.ground.whole().unwrap().heights, [1, -1, 3, 2]);
    }

    #[test]
    fn heights_out_of_reach_say_which_step_would_do() {
        let heights = [0.0, 1.0, 5e6, 2.0];
        let message = finish_with(&heights, true, ImportOptions::default())
            .unwrap_err()
            .to_string();
        assert!(
            message.ends_with("--height-step 1.2 or larger"),
            "{message}"
        );
        let options = ImportOptions {
            height_step_m: Some(1.2),
            ..Default::default()
        };
        assert!(finish_with(&heights, true, options).is_ok());
    }

    #[test]
    fn voids_are_counted_and_filled_either_way() {
        let samples = [1.0, 1.0, f64::NAN, 1.0];
        for voids in [VoidFill::Smooth, VoidFill::Nearest] {
            let options = ImportOptions {
                spacing_m: Some([3.0, 4.0]),
                voids,
                ..Default::default()
            };
            let source = finish_with(&samples, true, options).unwrap();
            assert_eq!(source.ground.whole().unwrap().heights, [1; 4]);
            assert_eq!((source.info.voids, source.info.filled), (1, 1));
            assert_eq!(source.spacing_m, [3.0, 4.0]);
        }
        assert!(finish_with(&[f64::NAN; 4], true, ImportOptions::default()).is_err());
    }

    #[test]
    fn kept_voids_have_heights_and_are_absent() {
        let keep = |samples: &[f64]| {
            let voids = VoidFill::Keep;
            finish_with(
                samples,
                true,
                ImportOptions {
                    voids,
                    ..Default::default()
                },
            )
        };
        let source = keep(&[f64::NAN, 1.0, 1.0, 7.0, 7.0, f64::NAN]).unwrap();
        assert_eq!(source.ground.whole().unwrap().heights[0], 1);
        assert_eq!((source.info.voids, source.info.filled), (2, 0));
        assert_eq!(source.ground.absent_count(), 2);
        let absent = source.ground.absent(source.ground.area()).unwrap();
        assert_eq!(absent, Some(vec![true, false, false, false, false, true]));
        assert_eq!(source.ground.summit(), [1, 1]);
        assert!(keep(&[f64::NAN; 4]).is_err());
        let options = ImportOptions {
            voids: VoidFill::Keep,
            resample_m: Some(10.0),
            ..Default::default()
        };
        assert!(finish_with(&[1.0; 4], true, options.clone()).is_ok());
        let message = options.check().unwrap_err().to_string();
        assert!(message.contains("--voids fill"), "{message}");
    }

    #[test]
    fn what_is_cropped_away_is_not_counted() {
        let options = ImportOptions {
            nodata: Some(9.0),
            crop: Some(Crop {
                x: 0,
                z: 1,
                width: 2,
                height: 2,
            }),
            ..Default::default()
        };
        let samples = [500.0, f64::NAN, 9.0, 4.0, 5.0, 6.0];
        let source = finish_with(&samples, true, options).unwrap();
        assert_eq!(source.ground.size(), [2, 2]);
        assert_eq!((source.info.voids, source.info.max_m), (1, 6.0));
    }

    #[test]
    fn a_square_grid_has_the_spacing_asked_for() {
        let options = ImportOptions {
            spacing_m: Some([20.0, 30.0]),
            resample_m: Some(10.0),
            ..Default::default()
        };
        let source = finish_with(&[0.0, 10.0, 20.0, 30.0, 40.0, 50.0], true, options).unwrap();
        assert_eq!(source.ground.size(), [3, 7]);
        assert_eq!(source.spacing_m, [10.0, 10.0]);
    }
}
