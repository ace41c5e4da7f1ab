//! Numbers as they lie in a file, and what must be known to make metres of them.
//!
//! - Rows go from the north-west, in whatever order the file had them.
//! - A void is NaN from the moment a sample is read.

use std::path::Path;

use super::geo::Georef;
use super::lint::Warning;
use super::options::Crop;
use crate::error::{Error, Result};

/// More would not fit the height map that they become.
pub(super) const MAX_SAMPLES: u64 = 1 << 28;

/// A raster of samples.
#[derive(Debug)]
pub(super) struct Grid {
    pub width: u32,
    pub height: u32,
    pub samples: Vec<f64>,
    /// All samples are whole numbers, which the world keeps as they are.
    pub integer: bool,
    pub georef: Option<Georef>,
    pub measure: Measure,
    /// What the reader noticed.
    pub warnings: Vec<Warning>,
}

/// A sample `s` stands for `s * scale + offset` units of `unit_m` metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measure {
    pub scale: f64,
    pub offset: f64,
    /// `None` where the file does not say: metres, unless the user knows better.
    pub unit_m: Option<f64>,
}

impl Default for Measure {
    fn default() -> Self {
        Measure {
            scale: 1.0,
            offset: 0.0,
            unit_m: None,
        }
    }
}

impl Grid {
    /// Samples that are heights as they are, at a place that is not known.
    pub fn plain(width: u32, height: u32, samples: Vec<f64>, integer: bool) -> Self {
        Grid {
            width,
            height,
            samples,
            integer,
            georef: None,
            measure: Measure::default(),
            warnings: Vec::new(),
        }
    }

    pub fn rows(&self) -> impl DoubleEndedIterator<Item = &[f64]> {
        self.samples.chunks(self.width as usize)
    }

    /// Makes the last row the first.
    pub fn flip(&mut self) {
        self.samples = self.rows().rev().flatten().copied().collect();
    }

    pub fn declare_void(&mut self, nodata: f64) {
        for sample in self.samples.iter_mut().filter(|sample| **sample == nodata) {
            *sample = f64::NAN;
        }
    }

    /// Keeps a rectangle of the samples, and what is known of their place.
    pub fn crop(&mut self, crop: Crop, path: &Path) -> Result<()> {
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
        let columns = crop.x as usize..(crop.x + crop.width) as usize;
        let rows = self.rows().skip(crop.z as usize).take(crop.height as usize);
        self.samples = rows
            .flat_map(|row| &row[columns.clone()])
            .copied()
            .collect();
        (self.width, self.height) = (crop.width, crop.height);
        if let Some(georef) = &mut self.georef {
            georef.transform[0] += f64::from(crop.x) * georef.transform[1];
            georef.transform[3] += f64::from(crop.z) * georef.transform[5];
        }
        Ok(())
    }
}

/// Refuses what is too small for a triangle or too large for the memory.
pub(super) fn check_size(path: &Path, width: u64, height: u64) -> Result<()> {
    let what = if width < 2 || height < 2 {
        "too small"
    } else if width.saturating_mul(height) > MAX_SAMPLES {
        "too large"
    } else {
        return Ok(());
    };
    Err(Error::file(
        path,
        format!("{width} x {height} samples are {what}"),
        format!("at least 2 x 2 and at most {MAX_SAMPLES} in all"),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::geo::Unit;
    use super::*;

    fn grid() -> Grid {
        let samples = (0..12).map(f64::from).collect();
        let mut grid = Grid::plain(4, 3, samples, true);
        let place = Georef::north_up(None, Unit::Metres(1.0), [100.0, 50.0], [10.0, 5.0]);
        grid.georef = Some(place);
        grid
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
        let mut grid = grid();
        grid.crop(crop(1, 1, 2, 2), Path::new("x.tif")).unwrap();
        assert_eq!(grid.samples, [5.0, 6.0, 9.0, 10.0]);
        let transform = grid.georef.unwrap().transform;
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
            let result = grid().crop(crop(bad.0, bad.1, bad.2, bad.3), Path::new("x.tif"));
            let message = result.unwrap_err().to_string();
            assert!(message.contains("4 x 3 samples"), "{message}");
        }
    }

    #[test]
    fn flipping_turns_rows_around_and_not_columns() {
        let mut grid = grid();
        grid.flip();
        assert_eq!(grid.samples[..5], [8.0, 9.0, 10.0, 11.0, 4.0]);
    }

    #[test]
    fn a_number_can_be_declared_void() {
        let mut grid = grid();
        grid.declare_void(3.0);
        assert!(grid.samples[3].is_nan() && grid.samples[4] == 4.0);
    }
}
