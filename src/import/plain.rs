//! Samples that lie in a file as they are, row by row, after one another.

use std::path::PathBuf;

use tiff::tags::SampleFormat;

use super::input::Input;
use super::numbers::{Kind, Numbers};
use super::options::ByteOrder;
use super::raster::{Bands, Take};
use super::store::{BAND_SAMPLES, bands};
use super::values::{self, Rows};
use super::voids::VoidRule;
use crate::error::{Error, Result};
use crate::source::Area;

/// A file of nothing but samples.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    pub path: PathBuf,
    pub input: Input,
    pub width: u32,
    pub format: SampleFormat,
    pub bits: u16,
    pub order: ByteOrder,
    pub rule: VoidRule,
}

impl Plain {
    pub fn kind(&self) -> Kind {
        values::kind_of(self.format, self.bits)
    }

    /// Samples of whole rows, of which `area` has some columns.
    fn band(&self, area: Area) -> std::io::Result<Numbers> {
        let row_bytes = u64::from(self.width) * u64::from(self.bits / 8);
        let bytes = u64::from(area.height) * row_bytes;
        let bytes = self.input.bytes_at(u64::from(area.z) * row_bytes, bytes)?;
        let [width, height] = [area.width as usize, area.height as usize];
        let mut samples = Numbers::voids(self.kind(), width * height);
        let rows = Rows {
            count: height,
            from: area.x as usize,
            stride: 1,
            pitch: self.width as usize,
            width,
            to: 0,
            to_pitch: width,
        };
        if let Some(values) = values::from_bytes(&bytes, self.format, self.bits, self.order) {
            values::lay(&values, &rows, &self.rule, &mut samples);
        }
        Ok(samples)
    }
}

impl Bands for Plain {
    fn read(&mut self, area: Area, take: &mut Take) -> Result<()> {
        // Rows are read whole, so that they are the measure.
        let samples = BAND_SAMPLES * area.width as usize / self.width as usize;
        for band in bands(area, samples) {
            let read = self.band(band);
            take(read.map_err(|e| Error::io(&self.path, "cannot read", e))?)?;
        }
        Ok(())
    }
}
