//! Samples that lie in a file as they are, row by row.

use std::path::{Path, PathBuf};

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

/// Where the samples are, and of what type. The file has all of them: whoever makes this looked.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    pub path: PathBuf,
    pub input: Input,
    pub width: u32,
    /// Bytes before the first sample, and from row to row.
    pub start: u64,
    pub pitch: u64,
    /// Samples from one of ours to the next in a row.
    pub stride: u16,
    pub format: SampleFormat,
    pub bits: u16,
    pub order: ByteOrder,
    pub rule: VoidRule,
}

impl Plain {
    /// A file of nothing but samples.
    pub fn rows(
        path: &Path,
        input: Input,
        width: u32,
        (format, bits): (SampleFormat, u16),
        order: ByteOrder,
        rule: VoidRule,
    ) -> Plain {
        Plain {
            path: path.to_owned(),
            input,
            width,
            start: 0,
            pitch: u64::from(width) * u64::from(bits / 8),
            stride: 1,
            format,
            bits,
            order,
            rule,
        }
    }

    pub fn kind(&self) -> Kind {
        values::kind_of(self.format, self.bits)
    }

    /// Samples of whole rows, of which `area` has some columns.
    fn band(&self, area: Area) -> std::io::Result<Numbers> {
        let sample_bytes = u64::from(self.bits / 8);
        let stride = u64::from(self.stride);
        // To the last sample of ours, and no further: the file may end there.
        let row_bytes = ((u64::from(self.width) - 1) * stride + 1) * sample_bytes;
        let [width, height] = [area.width as usize, area.height as usize];
        let mut bytes = Vec::with_capacity(height * row_bytes as usize);
        for z in area.z..area.z + area.height {
            let at = self.start + u64::from(z) * self.pitch;
            bytes.extend(self.input.bytes_at(at, row_bytes)?);
        }
        let mut samples = Numbers::voids(self.kind(), width * height);
        let rows = Rows {
            count: height,
            from: area.x as usize * self.stride as usize,
            stride: self.stride.into(),
            pitch: (row_bytes / sample_bytes) as usize,
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
