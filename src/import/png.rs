//! Grey PNG height maps: 16 bits a sample, or 8.
//!
//! Samples are taken as metres; games that spread a range over 0..65535 pass `--height-scale`.
//! No gamma is ever applied: heights are numbers, not light.
//!
//! - Anything but 8- or 16-bit grey (colour, palette, alpha, fewer bits) is refused, since its
//!   numbers would not be heights.
//! - The claimed size is checked against the file's length before the picture is allocated.

use std::io::{BufRead, Seek};
use std::path::Path;

use image::codecs::png::PngDecoder;
use image::{ExtendedColorType, ImageDecoder, ImageError, Limits};

use super::{Grid, check_size, one_line};
use crate::error::{Error, Result};

/// Deflate cannot shrink more than 1032 to 1.
const MOST_SHRUNK: u64 = 1032;

pub(super) fn read<R: BufRead + Seek>(reader: R, len: u64, path: &Path) -> Result<Grid> {
    let damaged = |e: ImageError| {
        Error::file(
            path,
            format!("damaged PNG: {}", one_line(e)),
            "an intact PNG",
        )
    };
    let mut limits = Limits::default();
    limits.max_alloc = Some(len.saturating_mul(MOST_SHRUNK).saturating_add(1 << 20));
    let decoder = PngDecoder::with_limits(reader, limits).map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    check_size(path, u64::from(width), u64::from(height))?;
    let bytes_a_sample = bytes_a_sample(path, decoder.original_color_type(), decoder.color_type())?;
    let claimed = decoder.total_bytes();
    if claimed > len.saturating_mul(MOST_SHRUNK) {
        return Err(Error::file(
            path,
            format!("{len} bytes cannot hold {width} x {height} samples"),
            "an intact PNG",
        ));
    }
    let mut bytes = vec![0; claimed as usize];
    decoder.read_image(&mut bytes).map_err(damaged)?;
    Ok(Grid {
        width,
        height,
        samples: to_numbers(&bytes, bytes_a_sample),
        integer: true,
        georef: None,
    })
}

fn bytes_a_sample(
    path: &Path,
    stored: ExtendedColorType,
    decoded: image::ColorType,
) -> Result<usize> {
    match (stored, decoded) {
        (ExtendedColorType::L8, image::ColorType::L8) => Ok(1),
        (ExtendedColorType::L16, image::ColorType::L16) => Ok(2),
        _ => Err(Error::file(
            path,
            format!("a PNG of samples {stored:?} is no height map"),
            "16-bit grey (one band, no alpha, no palette)",
        )),
    }
}

/// The image crate gives 16-bit samples in the machine's byte order.
fn to_numbers(bytes: &[u8], bytes_a_sample: usize) -> Vec<f64> {
    if bytes_a_sample == 1 {
        return bytes.iter().map(|b| f64::from(*b)).collect();
    }
    let pairs = bytes.as_chunks::<2>().0;
    pairs
        .iter()
        .map(|pair| f64::from(u16::from_ne_bytes(*pair)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::fixtures;
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<Grid> {
        read(Cursor::new(bytes), bytes.len() as u64, Path::new("x.png"))
    }

    #[test]
    fn grey_samples_come_out_as_they_are() {
        let wide = fixtures::png(
            3,
            2,
            ExtendedColorType::L16,
            &fixtures::ne_bytes(&[0u16, 1, 300, 65535, 5, 6]),
        );
        let grid = read_bytes(&wide).unwrap();
        assert_eq!((grid.width, grid.height), (3, 2));
        assert_eq!(grid.samples, [0.0, 1.0, 300.0, 65535.0, 5.0, 6.0]);
        let narrow = fixtures::png(2, 2, ExtendedColorType::L8, &[0, 1, 128, 255]);
        assert_eq!(
            read_bytes(&narrow).unwrap().samples,
            [0.0, 1.0, 128.0, 255.0]
        );
    }

    #[test]
    fn pictures_are_refused_with_what_is_expected() {
        let rgb = fixtures::png(2, 2, ExtendedColorType::Rgb8, &[7; 12]);
        let message = read_bytes(&rgb).unwrap_err().to_string();
        assert!(
            message.contains("Rgb8") && message.contains("16-bit grey"),
            "{message}"
        );
    }

    #[test]
    fn a_huge_claim_is_refused_before_it_is_allocated() {
        let mut bytes = fixtures::png(2, 2, ExtendedColorType::L8, &[0, 1, 2, 3]);
        bytes[16..20].copy_from_slice(&16_000u32.to_be_bytes());
        bytes[20..24].copy_from_slice(&16_000u32.to_be_bytes());
        let crc = fixtures::crc32(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&crc.to_be_bytes());
        let message = read_bytes(&bytes).unwrap_err().to_string();
        assert!(
            message.contains("cannot hold") || message.contains("imit"),
            "{message}"
        );
    }

    #[test]
    fn a_single_sample_is_too_small() {
        let bytes = fixtures::png(1, 1, ExtendedColorType::L8, &[0]);
        let message = read_bytes(&bytes).unwrap_err().to_string();
        assert!(message.contains("2 x 2"), "{message}");
    }
}
