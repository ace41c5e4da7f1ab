//! GeoTIFF, TIFF and BigTIFF with one band of elevation, in strips or tiles.
//!
//! The `tiff` crate decodes, one strip or tile at a time; what is asked of the file before that
//! is here, and what its geographic tags mean is in `geotags`.
//!
//! - One band; 8 to 64 bits of integer or float; uncompressed, LZW, Deflate or PackBits.
//! - The claimed size is checked against the file's length before anything is allocated.
//! - A strip or tile that a sparse file leaves out is void.

use std::io::{Read, Seek};
use std::path::Path;

use tiff::TiffError;
use tiff::decoder::{ChunkType, Decoder, DecodingResult, Limits};
use tiff::tags::{SampleFormat, Tag};

use super::voids::VoidRule;
use super::{Grid, check_size, geotags, one_line};
use crate::error::{Error, Result};

const UNCOMPRESSED: u16 = 1;
/// LZW, Deflate (two numbers for it) and PackBits.
const COMPRESSIONS: [u16; 5] = [UNCOMPRESSED, 5, 8, 32946, 32773];
const BLACK_IS_ZERO: u16 = 1;
/// More than any of the compressions can shrink (LZW: 12 bits for at most 3.8 kB).
const MOST_SHRUNK: u64 = 4096;

pub(super) fn read<R: Read + Seek>(reader: R, len: u64, path: &Path) -> Result<Grid> {
    let mut decoder = Decoder::new(reader).map_err(|e| damaged(path, e))?;
    let layout = Layout::read(&mut decoder, path)?;
    let bytes = layout.check_claim(len, path)?;
    let georef = geotags::georef(&mut decoder, path)?;
    let rule = layout.void_rule(geotags::nodata(&mut decoder, path)?);
    let mut limits = Limits::default();
    limits.decoding_buffer_size = limits.decoding_buffer_size.max(bytes);
    limits.intermediate_buffer_size = usize::try_from(len).unwrap_or(usize::MAX);
    let mut decoder = decoder.with_limits(limits);
    let mut samples = vec![f64::NAN; layout.width as usize * layout.height as usize];
    read_chunks(&mut decoder, &layout, rule, &mut samples).map_err(|e| damaged(path, e))?;
    Ok(Grid {
        width: layout.width,
        height: layout.height,
        samples,
        integer: layout.format != SampleFormat::IEEEFP,
        georef,
    })
}

pub(super) fn damaged(path: &Path, error: TiffError) -> Error {
    let what = format!("damaged or unusual TIFF: {}", one_line(error));
    Error::file(path, what, "an intact TIFF with one band of elevation")
}

/// What the file says of its samples.
#[derive(Debug)]
struct Layout {
    width: u32,
    height: u32,
    bits: u16,
    format: SampleFormat,
    compression: u16,
}

impl Layout {
    fn read<R: Read + Seek>(decoder: &mut Decoder<R>, path: &Path) -> Result<Layout> {
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
        };
        let refuse = |what: String| Err(Error::file(path, what, "one band of elevation"));
        if bands != 1 {
            return refuse(format!("{bands} bands"));
        }
        if photometric != BLACK_IS_ZERO {
            return refuse(format!(
                "imagery (photometric interpretation {photometric})"
            ));
        }
        layout.check_samples(path)?;
        Ok(layout)
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
            let what = format!("compression {} is not supported", self.compression);
            return Err(Error::file(
                path,
                what,
                "uncompressed, LZW, Deflate or PackBits",
            ));
        }
        Ok(())
    }

    /// The bytes of the whole raster, if a file of `len` bytes can hold them.
    fn check_claim(&self, len: u64, path: &Path) -> Result<usize> {
        let bytes = u64::from(self.width) * u64::from(self.height) * u64::from(self.bits / 8);
        let most = if self.compression == UNCOMPRESSED {
            1
        } else {
            MOST_SHRUNK
        };
        match usize::try_from(bytes) {
            Ok(size) if bytes <= len.saturating_mul(most) => Ok(size),
            _ => {
                let what = format!(
                    "truncated: {len} bytes cannot hold {} x {} samples of {} bits",
                    self.width, self.height, self.bits
                );
                Err(Error::file(path, what, "a complete TIFF"))
            }
        }
    }

    fn void_rule(&self, declared: Option<f64>) -> VoidRule {
        match (self.format, self.bits) {
            (SampleFormat::Uint, _) => VoidRule::unsigned(declared),
            (SampleFormat::IEEEFP, 16 | 32) => VoidRule::single(declared),
            _ => VoidRule::signed(declared),
        }
    }
}

fn read_chunks<R: Read + Seek>(
    decoder: &mut Decoder<R>,
    layout: &Layout,
    rule: VoidRule,
    samples: &mut [f64],
) -> std::result::Result<(), TiffError> {
    let (chunk_width, chunk_height) = decoder.chunk_dimensions();
    let byte_counts = match decoder.get_chunk_type() {
        ChunkType::Strip => Tag::StripByteCounts,
        ChunkType::Tile => Tag::TileByteCounts,
    };
    let byte_counts = decoder.get_tag_u64_vec(byte_counts)?;
    let across = layout.width.div_ceil(chunk_width);
    let down = layout.height.div_ceil(chunk_height);
    let chunks = across.saturating_mul(down);
    if byte_counts.len() < chunks as usize {
        let short = format!(
            "{} strips or tiles listed where {chunks} are needed",
            byte_counts.len()
        );
        return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, short).into());
    }
    for (index, bytes) in (0..chunks).zip(byte_counts) {
        if bytes == 0 {
            continue;
        }
        let (width, _) = decoder.chunk_data_dimensions(index);
        let values = numbers(decoder.read_chunk(index)?);
        let (x, z) = (index % across * chunk_width, index / across * chunk_height);
        for (row, values) in values.chunks(width as usize).enumerate() {
            let start = (z as usize + row) * layout.width as usize + x as usize;
            let target = samples.iter_mut().skip(start);
            for (sample, value) in target.zip(values) {
                *sample = rule.apply(*value);
            }
        }
    }
    Ok(())
}

fn numbers(chunk: DecodingResult) -> Vec<f64> {
    match chunk {
        DecodingResult::U8(v) => v.into_iter().map(f64::from).collect(),
        DecodingResult::U16(v) => v.into_iter().map(f64::from).collect(),
        DecodingResult::U32(v) => v.into_iter().map(f64::from).collect(),
        DecodingResult::U64(v) => v.into_iter().map(|x| x as f64).collect(),
        DecodingResult::I8(v) => v.into_iter().map(f64::from).collect(),
        DecodingResult::I16(v) => v.into_iter().map(f64::from).collect(),
        DecodingResult::I32(v) => v.into_iter().map(f64::from).collect(),
        DecodingResult::I64(v) => v.into_iter().map(|x| x as f64).collect(),
        DecodingResult::F16(v) => v.into_iter().map(f64::from).collect(),
        DecodingResult::F32(v) => v.into_iter().map(f64::from).collect(),
        DecodingResult::F64(v) => v,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tiff::encoder::{Compression, DeflateLevel, TiffEncoder, colortype};
    use tiff::tags::Predictor;

    use super::super::fixtures::Tiff;
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<Grid> {
        read(Cursor::new(bytes), bytes.len() as u64, Path::new("x.tif"))
    }

    fn samples(file: &Tiff) -> Vec<f64> {
        read_bytes(&file.bytes()).unwrap().samples
    }

    fn ramp(count: usize) -> Vec<i16> {
        (0..count).map(|i| i as i16 * 7 - 50).collect()
    }

    fn as_numbers(heights: &[i16]) -> Vec<f64> {
        heights.iter().map(|v| f64::from(*v)).collect()
    }

    #[test]
    fn strips_tiles_and_bigtiff_hold_the_same_samples() {
        let heights = ramp(37 * 21);
        let expected = as_numbers(&heights);
        let file = Tiff::int16(37, 21, &heights);
        assert_eq!(samples(&file), expected);
        assert_eq!(samples(&file.clone().strips(4)), expected);
        assert_eq!(samples(&file.clone().tiles(16, 16)), expected);
        assert_eq!(samples(&file.clone().tiles(32, 16).big()), expected);
    }

    #[test]
    fn sample_types_keep_their_sign_and_fraction() {
        let signed = read_bytes(&Tiff::int16(2, 2, &[-424, 0, 1, 8848]).bytes()).unwrap();
        assert!(signed.integer);
        assert_eq!(signed.samples, [-424.0, 0.0, 1.0, 8848.0]);
        let unsigned = Tiff::uint16(2, 2, &[0, 1, 40_000, 65_535]);
        assert_eq!(samples(&unsigned), [0.0, 1.0, 40_000.0, 65_535.0]);
        let floats = read_bytes(&Tiff::float32(2, 2, &[0.5, -1.25, 3.0, 100.0]).bytes()).unwrap();
        assert!(!floats.integer);
        assert_eq!(floats.samples, [0.5, -1.25, 3.0, 100.0]);
    }

    #[test]
    fn voids_are_told_by_declaration_or_by_absurdity() {
        let void = |file: Tiff| {
            samples(&file)
                .iter()
                .map(|v| v.is_nan())
                .collect::<Vec<_>>()
        };
        let heights = [-32768, 0, 5, -9999];
        assert_eq!(
            void(Tiff::int16(2, 2, &heights)),
            [true, false, false, false]
        );
        let declared = Tiff::int16(2, 2, &heights).text(42113, "-9999");
        assert_eq!(void(declared), [true, false, false, true]);
        let zero = Tiff::uint16(2, 2, &[0, 1, 2, 3]).text(42113, "0");
        assert_eq!(void(zero), [true, false, false, false]);
        let floats = Tiff::float32(2, 2, &[f32::NAN, f32::MIN, 9999.0, 1.0]).text(42113, "9999");
        assert_eq!(void(floats), [true, true, true, false]);
    }

    #[test]
    fn compressed_files_decode_to_the_same() {
        let heights = ramp(40 * 30);
        let compressions = [
            Compression::Lzw,
            Compression::Deflate(DeflateLevel::Balanced),
            Compression::Packbits,
        ];
        for (compression, predictor) in compressions
            .into_iter()
            .flat_map(|c| [(c, Predictor::None), (c, Predictor::Horizontal)])
        {
            let mut bytes = Cursor::new(Vec::new());
            let mut encoder = TiffEncoder::new(&mut bytes)
                .unwrap()
                .with_compression(compression)
                .with_predictor(predictor);
            encoder
                .write_image::<colortype::GrayI16>(40, 30, &heights)
                .unwrap();
            let grid = read_bytes(&bytes.into_inner()).unwrap();
            assert_eq!(grid.samples, as_numbers(&heights));
        }
    }

    #[test]
    fn imagery_is_refused() {
        let mut bytes = Cursor::new(Vec::new());
        let mut encoder = TiffEncoder::new(&mut bytes).unwrap();
        encoder
            .write_image::<colortype::RGB8>(2, 2, &[0; 12])
            .unwrap();
        let message = read_bytes(&bytes.into_inner()).unwrap_err().to_string();
        assert!(
            message.contains("3 bands; expected one band of elevation"),
            "{message}"
        );
        let palette = Tiff::uint16(2, 2, &[0; 4]).photometric(3).bytes();
        assert!(
            read_bytes(&palette)
                .unwrap_err()
                .to_string()
                .contains("imagery")
        );
    }

    #[test]
    fn claims_beyond_the_file_are_refused() {
        let huge = Tiff::int16(2, 2, &[0; 4]).claiming(16_000, 16_000);
        let message = read_bytes(&huge.bytes()).unwrap_err().to_string();
        assert!(message.contains("cannot hold"), "{message}");
        let small = Tiff::int16(1, 1, &[0]);
        assert!(
            read_bytes(&small.bytes())
                .unwrap_err()
                .to_string()
                .contains("2 x 2")
        );
        let cut = Tiff::int16(64, 64, &[0; 64 * 64]).bytes();
        assert!(read_bytes(&cut[..cut.len() - 100]).is_err());
    }

    #[test]
    fn a_strip_left_out_is_void() {
        let sparse = Tiff::int16(4, 4, &ramp(16)).strips(2).without_chunk(1);
        let found = samples(&sparse);
        assert_eq!(found[..8], as_numbers(&ramp(8)));
        assert!(found[8..].iter().all(|v| v.is_nan()));
    }
}
