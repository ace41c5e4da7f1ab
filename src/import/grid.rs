//! Numbers as they lie in a file, and what must be known to make metres of them.
//!
//! - Rows go from the north-west, in whatever order the file had them.
//! - A void is NaN from the moment a sample is read.

use std::path::Path;

use super::geo::Georef;
use super::lint::Warning;
use crate::error::{Error, Result};

/// What a world can lay out a side.
const MAX_SIDE: u64 = 1 << 28;
const MAX_SAMPLES: u64 = 1 << 36;
/// More would not fit the memory of those who must have a raster in it as a whole.
const MAX_WHOLE: u64 = 1 << 28;

/// A whole raster in memory.
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
}

/// Refuses what is too small for a triangle or too large for a world.
pub(super) fn check_size(path: &Path, width: u64, height: u64) -> Result<()> {
    let what = if width < 2 || height < 2 {
        "too small"
    } else if width.max(height) > MAX_SIDE || width.saturating_mul(height) > MAX_SAMPLES {
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

/// Refuses as well what is too large to be in memory as a whole.
pub(super) fn check_whole(path: &Path, width: u64, height: u64, instead: &str) -> Result<()> {
    check_size(path, width, height)?;
    if width * height <= MAX_WHOLE {
        return Ok(());
    }
    let what = format!("{width} x {height} samples are too large for the memory");
    let expected = format!("at most {MAX_WHOLE} in all, or {instead}");
    Err(Error::file(path, what, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bounded_and_more_so_in_memory() {
        let path = Path::new("x");
        let message = |result: Result<()>| result.unwrap_err().to_string();
        assert!(check_size(path, 1 << 18, 1 << 18).is_ok());
        assert!(message(check_size(path, 1 << 18, (1 << 18) + 1)).contains("too large"));
        assert!(message(check_size(path, (1 << 28) + 1, 2)).contains("too large"));
        assert!(message(check_size(path, u64::MAX, u64::MAX)).contains("too large"));
        assert!(message(check_size(path, 1, 9)).contains("too small"));
        assert!(check_whole(path, 1 << 14, 1 << 14, "a TIFF").is_ok());
        let large = message(check_whole(path, 1 << 14, (1 << 14) + 1, "a TIFF"));
        assert!(large.ends_with("268435456 in all, or a TIFF"), "{large}");
    }
}
