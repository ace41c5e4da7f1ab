//! What a TIFF says of its samples: size, bands, bits, compression; and what of it can be read.
//!
//! - Whatever is not a band of numbers (imagery, palettes, odd bits) is refused.
//! - The claimed size is checked against the file's length before anything is allocated.

use std::io::{Read, Seek};
use std::path::Path;

use tiff::TiffError;
use tiff::decoder::Decoder;
use tiff::tags::{SampleFormat, Tag};

use super::geotiff::damaged;
use super::grid::check_size;
use super::options::ImportOptions;
use super::voids::VoidRule;
use crate::error::{Error, Result};

const UNCOMPRESSED: u16 = 1;
const ZSTD: u16 = 50000;
/// LZW, Deflate (two numbers for it), PackBits and Zstandard.
const COMPRESSIONS: [u16; 6] = [UNCOMPRESSED, 5, 8, 32946, 32773, ZSTD];
/// What else is met with elevation.
const NAMED_COMPRESSIONS: [(u16, &str); 5] = [
    (7, "JPEG"),
    (34887, "LERC"),
    (34925, "LZMA"),
    (50001, "WebP"),
    (50002, "JPEG XL"),
];
const NO_PREDICTOR: u16 = 1;
const BLACK_IS_ZERO: u16 = 1;
const RGB: u16 = 2;
const PLANAR: u16 = 2;
/// More than any of the compressions can shrink (LZW: 12 bits for at most 3.8 kB).
const MOST_SHRUNK: u64 = 4096;
/// A block of four bytes stands for up to 128 kB of the same.
const MOST_SHRUNK_BY_ZSTD: u64 = 1 << 15;

/// What the file says of its samples.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub width: u32,
    pub height: u32,
    pub bits: u16,
    pub format: SampleFormat,
    compression: u16,
    predictor: u16,
    pub bands: u16,
    /// Which of them holds the heights, from 0.
    pub band: u16,
    pub planar: bool,
}

impl Layout {
    pub fn read<R: Read + Seek>(
        decoder: &mut Decoder<R>,
        path: &Path,
        options: &ImportOptions,
    ) -> Result<Layout> {
        let (width, height) = decoder.dimensions().map_err(|e| damaged(path, e))?;
        check_size(path, u64::from(width), u64::from(height))?;
        let mut number = |tag, default| {
            let values = decoder.find_tag_unsigned_vec::<u16>(tag).ok().flatten();
            values.and_then(|v| v.first().copied()).unwrap_or(default)
        };
        let bands = number(Tag::SamplesPerPixel, 1);
        let photometric = number(Tag::PhotometricInterpretation, BLACK_IS_ZERO);
        let layout = Layout {
            width,
            height,
            bits: number(Tag::BitsPerSample, 1),
            format: SampleFormat::from_u16_exhaustive(number(Tag::SampleFormat, 1)),
            compression: number(Tag::Compression, UNCOMPRESSED),
            predictor: number(Tag::Predictor, NO_PREDICTOR),
            bands,
            band: options.band.unwrap_or(1).wrapping_sub(1),
            planar: number(Tag::PlanarConfiguration, 1) == PLANAR,
        };
        layout.check_bands(photometric, options.band.is_some(), path)?;
        layout.check_samples(path)?;
        Ok(layout)
    }

    fn check_bands(&self, photometric: u16, chosen: bool, path: &Path) -> Result<()> {
        let which = format!("one band of elevation, or --band 1 to {}", self.bands);
        if self.bands != 1 && !chosen {
            return Err(Error::file(path, format!("{} bands", self.bands), which));
        }
        if self.band >= self.bands {
            let band = u32::from(self.band.wrapping_add(1));
            return Err(Error::file(path, format!("there is no band {band}"), which));
        }
        if photometric == BLACK_IS_ZERO || photometric == RGB && self.bands >= 3 {
            return Ok(());
        }
        let what = format!("imagery (photometric interpretation {photometric})");
        Err(Error::file(path, what, "one band of elevation"))
    }

    fn check_samples(&self, path: &Path) -> Result<()> {
        let whole = matches!(self.bits, 8 | 16 | 32 | 64);
        let known = match self.format {
            SampleFormat::Uint | SampleFormat::Int => whole,
            SampleFormat::IEEEFP => whole && self.bits != 8,
            _ => false,
        };
        if !known {
            let what = format!("samples of {} bits ({:?})", self.bits, self.format);
            let expected = "integers of 8 to 64 bits or floats of 16 to 64";
            return Err(Error::file(path, what, expected));
        }
        if !COMPRESSIONS.contains(&self.compression) {
            let number = self.compression;
            let name = NAMED_COMPRESSIONS
                .iter()
                .find(|(named, _)| *named == number);
            let what = match name {
                Some((_, name)) => format!("{name} compression is not supported"),
                None => format!("compression {number} is not supported"),
            };
            return Err(Error::file(
                path,
                what,
                "uncompressed, LZW, Deflate, Zstandard or PackBits (gdal_translate -co COMPRESS=DEFLATE)",
            ));
        }
        Ok(())
    }

    /// Whether samples lie in the file as they are.
    pub fn is_plain(&self) -> bool {
        self.compression == UNCOMPRESSED && self.predictor == NO_PREDICTOR
    }

    /// Whether a file of `len` bytes can hold the chunks that it lists, of `chunk_bytes` in all.
    pub fn check_claim(&self, chunk_bytes: u64, len: u64, path: &Path) -> Result<()> {
        let bytes = u64::from(self.width) * u64::from(self.height) * u64::from(self.bits / 8);
        let bytes = bytes.saturating_mul(self.bands.into()).min(chunk_bytes);
        let most = match self.compression {
            UNCOMPRESSED => 1,
            ZSTD => MOST_SHRUNK_BY_ZSTD,
            _ => MOST_SHRUNK,
        };
        if bytes <= len.saturating_mul(most) {
            return Ok(());
        }
        let what = format!(
            "truncated: {len} bytes cannot hold {} x {} samples of {} bits",
            self.width, self.height, self.bits
        );
        Err(Error::file(path, what, "a complete TIFF"))
    }

    /// Values from pixel to pixel and the place of ours among them, as the decoder hands them out
    /// (it keeps what is beyond the colours of a picture to itself).
    pub fn interleaving(
        &self,
        values: usize,
        pixels: usize,
    ) -> std::result::Result<(usize, usize), TiffError> {
        let stride = values / pixels.max(1);
        let band = if self.planar {
            0
        } else {
            usize::from(self.band)
        };
        if band < stride && stride * pixels == values {
            return Ok((stride, band));
        }
        let what = format!(
            "{values} values for {pixels} pixels of {} bands",
            self.bands
        );
        Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what).into())
    }

    pub fn void_rule(&self, declared: Option<f64>) -> VoidRule {
        match (self.format, self.bits) {
            (SampleFormat::Uint, _) => VoidRule::unsigned(declared),
            (SampleFormat::IEEEFP, 16 | 32) => VoidRule::single(declared),
            _ => VoidRule::signed(declared),
        }
    }
}
