//! An opened input: what it says of itself, and its samples band by band.
//!
//! A reader reads no sample before it is asked for some, so that many inputs can be looked at
//! before one after the other is read.
//!
//! - Rows go from the north-west, in whatever order the file had them.
//! - A void is [`Number::VOID`](super::numbers::Number::VOID) from the moment a sample is read.

use std::path::Path;

use super::geo::Georef;
use super::grid::{Grid, Measure};
use super::lint::Warning;
use super::numbers::{Kind, Numbers};
use super::options::Crop;
use super::store::{BAND_SAMPLES, bands};
use crate::error::{Error, Result};
use crate::source::Area;

/// What is known before any sample is read.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub width: u32,
    pub height: u32,
    /// All samples are whole numbers, which the world keeps as they are.
    pub integer: bool,
    /// Holds every sample.
    pub kind: Kind,
    pub georef: Option<Georef>,
    pub measure: Measure,
    /// Lowest and highest sample, as somebody once found them.
    pub statistics: Option<[f64; 2]>,
    /// What the reader noticed.
    pub warnings: Vec<Warning>,
}

impl Head {
    pub fn whole(&self) -> Area {
        Area {
            x: 0,
            z: 0,
            width: self.width,
            height: self.height,
        }
    }

    /// The part that a crop keeps; from now on this is the head of that part.
    pub fn crop(&mut self, crop: Crop, path: &Path) -> Result<Area> {
        let ends = |start: u32, size: u32, whole: u32| {
            size >= 2 && start.checked_add(size).is_some_and(|end| end <= whole)
        };
        if !ends(crop.x, crop.width, self.width) || !ends(crop.z, crop.height, self.height) {
            let what = format!(
                "--crop {},{},{},{} does not lie within its {} x {} samples",
                crop.x, crop.z, crop.width, crop.height, self.width, self.height
            );
            let expected = "X,Z,WIDTH,HEIGHT of at least 2 x 2 samples inside";
            return Err(Error::file(path, what, expected));
        }
        (self.width, self.height) = (crop.width, crop.height);
        if let Some(georef) = &mut self.georef {
            georef.transform[0] += f64::from(crop.x) * georef.transform[1];
            georef.transform[3] += f64::from(crop.z) * georef.transform[5];
        }
        Ok(Area {
            x: crop.x,
            z: crop.z,
            ..self.whole()
        })
    }
}

/// An input that is ready to be read.
pub(super) struct Raster {
    pub head: Head,
    pub samples: Box<dyn Bands>,
    /// All samples were decoded already.
    pub in_memory: bool,
}

/// Takes some whole rows of what was asked for.
pub(super) type Take<'a> = dyn FnMut(Numbers) -> Result<()> + 'a;

/// Samples of a raster.
pub(super) trait Bands {
    /// Hands out an area in bands of whole rows of it, from the north, of one kind.
    fn read(&mut self, area: Area, take: &mut Take) -> Result<()>;
}

impl std::fmt::Debug for Raster {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.head.fmt(f)
    }
}

/// A raster that is in memory already.
struct Whole {
    width: u32,
    kind: Kind,
    samples: Vec<f64>,
}

impl From<Grid> for Raster {
    fn from(grid: Grid) -> Raster {
        let kind = narrowest(&grid);
        Raster {
            head: Head {
                width: grid.width,
                height: grid.height,
                integer: grid.integer,
                kind,
                georef: grid.georef,
                measure: grid.measure,
                statistics: None,
                warnings: grid.warnings,
            },
            samples: Box::new(Whole {
                width: grid.width,
                kind,
                samples: grid.samples,
            }),
            in_memory: true,
        }
    }
}

/// The narrowest kind that holds the samples and has a number left for voids.
fn narrowest(grid: &Grid) -> Kind {
    let all_below = |most: i32| {
        let most = f64::from(most);
        grid.samples.iter().all(|v| v.is_nan() || v.abs() <= most)
    };
    match grid.integer {
        true if all_below(i16::MAX.into()) => Kind::I16,
        true if all_below(i32::MAX) => Kind::I32,
        _ => Kind::F64,
    }
}

impl Bands for Whole {
    fn read(&mut self, area: Area, take: &mut Take) -> Result<()> {
        for band in bands(area, BAND_SAMPLES) {
            let rows = self.samples.chunks(self.width as usize);
            let rows = rows.skip(band.z as usize).take(band.height as usize);
            let columns = band.x as usize..(band.x + band.width) as usize;
            let values: Vec<f64> = rows
                .flat_map(|row| &row[columns.clone()])
                .copied()
                .collect();
            take(Numbers::from_f64(self.kind, &values))?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Raster {
    /// All samples, as the tests look at them.
    pub fn into_grid(mut self) -> Result<Grid> {
        let mut samples = Vec::new();
        self.samples.read(self.head.whole(), &mut |numbers| {
            samples.extend(numbers.to_f64());
            Ok(())
        })?;
        let head = self.head;
        let mut grid = Grid::plain(head.width, head.height, samples, head.integer);
        grid.georef = head.georef;
        grid.measure = head.measure;
        grid.warnings = head.warnings;
        Ok(grid)
    }

    /// The samples of an area.
    pub fn part(&mut self, area: Area) -> Result<Vec<f64>> {
        let mut samples = Vec::new();
        self.samples.read(area, &mut |numbers| {
            assert_eq!(numbers.kind(), self.head.kind);
            samples.extend(numbers.to_f64());
            Ok(())
        })?;
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::super::geo::Unit;
    use super::*;

    fn raster(samples: Vec<f64>, integer: bool) -> Raster {
        let mut grid = Grid::plain(4, samples.len() as u32 / 4, samples, integer);
        let place = Georef::north_up(None, Unit::Metres(1.0), [100.0, 50.0], [10.0, 5.0]);
        grid.georef = Some(place);
        grid.into()
    }

    fn ramp() -> Raster {
        raster((0..12).map(f64::from).collect(), true)
    }

    fn crop(x: u32, z: u32, width: u32, height: u32) -> Crop {
        Crop {
            x,
            z,
            width,
            height,
        }
    }

    #[test]
    fn a_crop_keeps_its_place() {
        let mut raster = ramp();
        let area = raster
            .head
            .crop(crop(1, 1, 2, 2), Path::new("x.tif"))
            .unwrap();
        assert_eq!(raster.part(area).unwrap(), [5.0, 6.0, 9.0, 10.0]);
        let transform = raster.head.georef.unwrap().transform;
        assert_eq!((transform[0], transform[3]), (110.0, 45.0));
    }

    #[test]
    fn a_crop_outside_is_refused() {
        for bad in [
            (3, 0, 2, 2),
            (0, 2, 2, 2),
            (0, 0, 1, 3),
            (u32::MAX, 0, 2, 2),
        ] {
            let crop = crop(bad.0, bad.1, bad.2, bad.3);
            let result = ramp().head.crop(crop, Path::new("x.tif"));
            let message = result.unwrap_err().to_string();
            assert!(message.contains("4 x 3 samples"), "{message}");
        }
    }

    #[test]
    fn samples_are_kept_in_what_holds_them() {
        let kind = |high: f64, integer| raster(vec![0.0, f64::NAN, -5.0, high], integer).head.kind;
        assert_eq!(kind(32_767.0, true), Kind::I16);
        assert_eq!(kind(-32_768.0, true), Kind::I32);
        assert_eq!(kind(65_535.0, true), Kind::I32);
        assert_eq!(kind(4e9, true), Kind::F64);
        assert_eq!(kind(0.5, false), Kind::F64);
    }
}
