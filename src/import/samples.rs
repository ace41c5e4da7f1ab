//! What a TIFF says of its samples: size, bands, bits, compression; and what of it can be read.
//!
//! - Whatever is not a band of numbers (imagery, palettes, odd bits) is refused.
//! - A band of alpha beside the heights is no band of heights: it says which of them count.
//! - The claimed size is checked against the file's length before anything is allocated.

use std::io::{Read, Seek};
use std::path::Path;

use tiff::TiffError;
use tiff::decoder::Decoder;
use tiff::tags::{SampleFormat, Tag};

use super::geotiff::damaged;
use super::grid::check_size;
use super::lerc::Outer;
use super::options::ImportOptions;
use super::voids::VoidRule;
use crate::error::{Error, Result};

const HIGHEST_BIT_FIRST: u16 = 1;
const UNCOMPRESSED: u16 = 1;
const ZSTD: u16 = 50000;
const LERC: u16 = 34887;
/// LZW, Deflate (two numbers for it), PackBits, LERC and Zstandard.
const COMPRESSIONS: [u16; 7] = [UNCOMPRESSED, 5, 8, 32946, 32773, LERC, ZSTD];
/// GDAL's: the version of LERC, and what its chunks are compressed with besides.
const LERC_PARAMETERS: Tag = Tag::Unknown(50674);
/// What else is met with elevation.
const NAMED_COMPRESSIONS: [(u16, &str); 4] = [
    (7, "JPEG"),
    (34925, "LZMA"),
    (50001, "WebP"),
    (50002, "JPEG XL"),
];
const NO_PREDICTOR: u16 = 1;
const BLACK_IS_ZERO: u16 = 1;
const RGB: u16 = 2;
const PLANAR: u16 = 2;
/// Kinds of extra bands: alpha that the colours were multiplied with, and that they were not.
const ALPHA: [u16; 2] = [1, 2];
/// More than any of the compressions can shrink (LZW: 12 bits for at most 3.8 kB).
const MOST_SHRUNK: u64 = 4096;
/// A block of four bytes stands for up to 128 kB of the same.
const MOST_SHRUNK_BY_ZSTD: u64 = 1 << 15;
/// A chunk of the same is its header, and may be compressed once more.
const MOST_SHRUNK_BY_LERC: u64 = 1 << 20;

/// What the file says of its samples.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub width: u32,
    pub height: u32,
    pub bits: u16,
    pub format: SampleFormat,
    compression: u16,
    predictor: u16,
    /// What LERC's chunks are compressed with, if they are LERC's.
    pub lerc: Option<Outer>,
    pub bands: u16,
    /// Which of them holds the heights, from 0.
    pub band: u16,
    pub planar: bool,
    /// Which of them is 0 where there is no height.
    pub alpha: Option<u16>,
}

impl Layout {
    pub fn read<R: Read + Seek>(
        decoder: &mut Decoder<R>,
        path: &Path,
        options: &ImportOptions,
    ) -> Result<Layout> {
        let (photometric, layout) = Layout::of(decoder, options.band, path)?;
        layout.check_bands(photometric, options.band.is_some(), path)?;
        layout.check_samples(path)?;
        Ok(layout)
    }

    /// What is said of a mask: a picture that is 0 where another one's samples do not count. Its
    /// bands, if it has several, are one for each of the other's.
    pub fn of_mask<R: Read + Seek>(
        decoder: &mut Decoder<R>,
        path: &Path,
        of: &Layout,
    ) -> Result<Layout> {
        let (_, mut layout) = Layout::of(decoder, None, path)?;
        if [layout.width, layout.height] != [of.width, of.height] {
            let what = format!("a mask of {} x {} samples", layout.width, layout.height);
            let expected = format!("one of {} x {}", of.width, of.height);
            return Err(Error::file(path, what, expected));
        }
        let order = decoder.find_tag_unsigned(Tag::FillOrder).ok().flatten();
        let whole = layout.bits == 8 || order.unwrap_or(HIGHEST_BIT_FIRST) == HIGHEST_BIT_FIRST;
        if layout.format != SampleFormat::Uint || ![1, 8].contains(&layout.bits) || !whole {
            let what = format!("a mask of {} bits ({:?})", layout.bits, layout.format);
            return Err(Error::file(path, what, "one of 1 or 8 bits"));
        }
        layout.check_compression(path)?;
        if layout.bands == of.bands {
            layout.band = of.band;
        }
        Ok(layout)
    }

    /// With the photometric interpretation.
    fn of<R: Read + Seek>(
        decoder: &mut Decoder<R>,
        band: Option<u16>,
        path: &Path,
    ) -> Result<(u16, Layout)> {
        let (width, height) = decoder.dimensions().map_err(|e| damaged(path, e))?;
        check_size(path, u64::from(width), u64::from(height))?;
        let mut numbers = |tag| {
            let values = decoder.find_tag_unsigned_vec::<u16>(tag).ok().flatten();
            values.unwrap_or_default()
        };
        let extra = numbers(Tag::ExtraSamples);
        let lerc = numbers(LERC_PARAMETERS)
            .into_iter()
            .map(u32::from)
            .collect::<Vec<_>>();
        let mut number = |tag, default| numbers(tag).first().copied().unwrap_or(default);
        let bands = number(Tag::SamplesPerPixel, 1);
        let photometric = number(Tag::PhotometricInterpretation, BLACK_IS_ZERO);
        let band = band.unwrap_or(1).wrapping_sub(1);
        let layout = Layout {
            width,
            height,
            bits: number(Tag::BitsPerSample, 1),
            format: SampleFormat::from_u16_exhaustive(number(Tag::SampleFormat, 1)),
            compression: number(Tag::Compression, UNCOMPRESSED),
            predictor: number(Tag::Predictor, NO_PREDICTOR),
            lerc: None,
            bands,
            band,
            planar: number(Tag::PlanarConfiguration, 1) == PLANAR,
            alpha: alpha(bands, photometric, &extra).filter(|alpha| *alpha != band),
        };
        let mut layout = layout;
        if layout.compression == LERC {
            layout.lerc = Outer::of(&lerc);
        }
        Ok((photometric, layout))
    }

    fn check_bands(&self, photometric: u16, chosen: bool, path: &Path) -> Result<()> {
        let which = format!("one band of elevation, or --band 1 to {}", self.bands);
        let heights = self.bands - u16::from(self.alpha.is_some());
        if heights != 1 && !chosen {
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
        self.check_compression(path)
    }

    fn check_compression(&self, path: &Path) -> Result<()> {
        let number = self.compression;
        if COMPRESSIONS.contains(&number) && (number == LERC) == self.lerc.is_some() {
            return Ok(());
        }
        let mut names = NAMED_COMPRESSIONS.iter();
        let what = match names.find(|(named, _)| *named == number) {
            Some((_, name)) => format!("{name} compression is not supported"),
            None => format!("compression {number} is not supported"),
        };
        Err(Error::file(
            path,
            what,
            "uncompressed, LZW, Deflate, Zstandard, PackBits or LERC (gdal_translate -co COMPRESS=DEFLATE IN.tif OUT.tif makes one)",
        ))
    }

    /// Values of a pixel that lie side by side.
    pub fn interleaved(&self) -> usize {
        if self.planar { 1 } else { self.bands.into() }
    }

    /// Whether samples lie in the file as they are.
    pub fn is_plain(&self) -> bool {
        self.compression == UNCOMPRESSED && self.predictor == NO_PREDICTOR
    }

    /// Whether a file of `len` bytes can hold the chunks that it lists, of `chunk_bytes` in all.
    pub fn check_claim(&self, chunk_bytes: u64, len: u64, path: &Path) -> Result<()> {
        let bytes = u64::from(self.width) * u64::from(self.height) * u64::from(self.bits);
        let bytes = (bytes / 8)
            .saturating_mul(self.bands.into())
            .min(chunk_bytes);
        let most = match self.compression {
            UNCOMPRESSED => 1,
            ZSTD => MOST_SHRUNK_BY_ZSTD,
            LERC => MOST_SHRUNK_BY_LERC,
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

/// The band of alpha: an extra one, of which the last bands are. Those beyond the first are not
/// handed out with colours.
fn alpha(bands: u16, photometric: u16, extra: &[u16]) -> Option<u16> {
    let first = bands.checked_sub(extra.len() as u16)?;
    let at = extra.iter().position(|kind| ALPHA.contains(kind))? as u16;
    (first > 0 && (photometric != RGB || at == 0)).then_some(first + at)
}
