//! PNG height maps: 8 or 16 bits a sample, grey, or coloured in one of the known encodings.
//!
//! Grey samples are taken as metres; games that spread a range over 0..65535 pass
//! `--height-scale`. No gamma is ever applied: heights are numbers, not light.
//!
//! - Colours are heights only when told which encoding they are in, or when R = G = B but for
//!   rounding; a palette and samples of fewer bits never are.
//! - A sample of alpha 0 is void.
//! - The claimed size is checked against the file's length before the picture is allocated.

use std::io::{BufRead, Seek};
use std::path::Path;

use image::codecs::png::PngDecoder;
use image::{ColorType, ExtendedColorType, ImageDecoder, ImageError, Limits};

use super::grid::{Grid, Measure, check_whole};
use super::lint::Warning;
use super::options::{Encoding, ImportOptions};
use super::{lint, one_line};
use crate::error::{Error, Result};

/// Deflate cannot shrink more than 1032 to 1.
const MOST_SHRUNK: u64 = 1032;
/// Colours that differ by more than this are no grey.
const ROUNDED_GREY: f64 = 1.0;
/// What lies on the Earth, in metres, with some room.
const EARTHLY_M: std::ops::RangeInclusive<f64> = -12_000.0..=9_500.0;

pub(super) fn read<R: BufRead + Seek>(
    mut reader: R,
    len: u64,
    path: &Path,
    options: &ImportOptions,
) -> Result<Grid> {
    let damaged = |e: ImageError| {
        Error::file(
            path,
            format!("damaged PNG: {}", one_line(e)),
            "an intact PNG",
        )
    };
    check_stored(&mut reader, path)?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(len.saturating_mul(MOST_SHRUNK).saturating_add(1 << 20));
    let decoder = PngDecoder::with_limits(reader, limits).map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    check_whole(path, u64::from(width), u64::from(height), "a TIFF")?;
    let color = decoder.color_type();
    check_color(path, decoder.original_color_type(), color)?;
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
    let picture = Picture::new(bytes, color);
    let (samples, measure) = picture.heights(path, options)?;
    let mut grid = Grid::plain(width, height, samples, true);
    grid.measure = measure;
    if picture.bytes_a_value == 1 && measure == Measure::default() {
        grid.warnings.push(lint::eight_bits());
    }
    if picture.colours == 3 && options.band.is_none() && options.encoding.is_none() {
        let text = "a coloured picture whose colours are all grey: red is the height";
        grid.warnings
            .push(Warning::new("grey", text, "--band N or --encoding CODE"));
    }
    Ok(grid)
}

/// The decoder would make 8 bits of fewer, and colours of a palette, without a word.
fn check_stored<R: BufRead + Seek>(reader: &mut R, path: &Path) -> Result<()> {
    // The signature, the length and name of the first chunk, width and height.
    let mut head = [0; 26];
    let read = reader.read_exact(&mut head).and_then(|()| reader.rewind());
    let damaged = |_| Error::file(path, "damaged PNG: too short", "an intact PNG");
    read.map_err(damaged)?;
    let what = match (head[25], head[24]) {
        (3, _) => "a PNG with a palette is no height map".to_owned(),
        (_, bits @ 1..8) => format!("a PNG with samples of {bits} bits is no height map"),
        _ => return Ok(()),
    };
    Err(Error::file(
        path,
        what,
        "8- or 16-bit grey or RGB (no palette)",
    ))
}

/// Transparency beside grey may be stored apart, so only the kind of samples must agree.
fn check_color(path: &Path, stored: ExtendedColorType, decoded: ColorType) -> Result<()> {
    let sound = match stored {
        ExtendedColorType::L8 | ExtendedColorType::La8 => !decoded.has_color(),
        ExtendedColorType::L16 | ExtendedColorType::La16 => !decoded.has_color(),
        ExtendedColorType::Rgb8 | ExtendedColorType::Rgba8 => decoded.has_color(),
        ExtendedColorType::Rgb16 | ExtendedColorType::Rgba16 => decoded.has_color(),
        _ => false,
    };
    if sound {
        return Ok(());
    }
    Err(Error::file(
        path,
        format!("a PNG of samples {stored:?} is no height map"),
        "8- or 16-bit grey or RGB (no palette)",
    ))
}

/// A decoded picture's values, interleaved.
struct Picture {
    /// In the machine's byte order.
    bytes: Vec<u8>,
    bytes_a_value: usize,
    /// Alpha left out: 1 or 3.
    colours: usize,
    alpha: bool,
}

impl Picture {
    fn new(bytes: Vec<u8>, color: ColorType) -> Self {
        let channels = usize::from(color.channel_count());
        Picture {
            bytes,
            bytes_a_value: usize::from(color.bytes_per_pixel()) / channels,
            colours: channels - usize::from(color.has_alpha()),
            alpha: color.has_alpha(),
        }
    }

    fn heights(&self, path: &Path, options: &ImportOptions) -> Result<(Vec<f64>, Measure)> {
        let encoding = options.encoding.unwrap_or(Encoding::Grey);
        if encoding != Encoding::Grey {
            if self.colours != 3 || self.bytes_a_value != 1 {
                let what = "--encoding terrarium and mapbox need R, G and B of 8 bits";
                return Err(Error::file(
                    path,
                    what,
                    "an RGB picture, or --encoding grey",
                ));
            }
            return Ok((self.packed(encoding), measure(encoding)));
        }
        let band = match options.band {
            Some(band) if (1..=self.colours).contains(&usize::from(band)) => usize::from(band) - 1,
            Some(band) => {
                let what = format!("there is no band {band}");
                let expected = format!("--band 1 to {}", self.colours);
                return Err(Error::file(path, what, expected));
            }
            None if self.colours == 1 || self.colourfulness() <= ROUNDED_GREY => 0,
            None => return Err(self.coloured(path)),
        };
        let samples = self.pixels().map(|p| self.or_void(p, self.value(p, band)));
        Ok((samples.collect(), Measure::default()))
    }

    fn pixels(&self) -> impl Iterator<Item = &[u8]> {
        let values = self.colours + usize::from(self.alpha);
        self.bytes.chunks_exact(values * self.bytes_a_value)
    }

    fn value(&self, pixel: &[u8], at: usize) -> f64 {
        match self.bytes_a_value {
            1 => f64::from(pixel[at]),
            _ => f64::from(u16::from_ne_bytes([pixel[2 * at], pixel[2 * at + 1]])),
        }
    }

    fn or_void(&self, pixel: &[u8], height: f64) -> f64 {
        if self.is_void(pixel) {
            f64::NAN
        } else {
            height
        }
    }

    fn is_void(&self, pixel: &[u8]) -> bool {
        self.alpha && self.value(pixel, self.colours) == 0.0
    }

    /// How far a pixel's colours differ at most; painting programs round greys by one.
    fn colourfulness(&self) -> f64 {
        let differ = |p: &[u8]| {
            let [red, green, blue] = [0, 1, 2].map(|at| self.value(p, at));
            red.max(green).max(blue) - red.min(green).min(blue)
        };
        let pixels = self.pixels().filter(|p| !self.is_void(p));
        pixels.map(differ).fold(0.0, f64::max)
    }

    /// Three bytes as one whole number, of which `measure` makes metres.
    fn packed(&self, encoding: Encoding) -> Vec<f64> {
        let number = |p: &[u8]| f64::from(u32::from_be_bytes([0, p[0], p[1], p[2]]));
        // Black is Terrarium's -32768 m, which only a tile's missing corner has.
        let black_is_void = encoding == Encoding::Terrarium;
        let height = |p: &[u8]| match number(p) {
            0.0 if black_is_void => f64::NAN,
            number => self.or_void(p, number),
        };
        self.pixels().map(height).collect()
    }

    /// The refusal of colours, with what they would be in the encodings that fit.
    fn coloured(&self, path: &Path) -> Error {
        let fits = |encoding| {
            let Measure { scale, offset, .. } = measure(encoding);
            let samples = self.packed(encoding);
            let mut heights = samples.iter().filter(|s| !s.is_nan());
            heights.all(|s| EARTHLY_M.contains(&(s * scale + offset)))
        };
        let eight = self.bytes_a_value == 1;
        let expected = if eight && fits(Encoding::Mapbox) {
            "grey; it looks like Mapbox Terrain-RGB: --encoding mapbox"
        } else if eight && fits(Encoding::Terrarium) {
            "grey; it looks like Terrarium: --encoding terrarium"
        } else if eight {
            "grey, or --encoding terrarium or mapbox, or one colour with --band 1 to 3"
        } else {
            "grey, or one colour with --band 1 to 3"
        };
        Error::file(path, "a coloured picture", expected)
    }
}

fn measure(encoding: Encoding) -> Measure {
    let (scale, offset) = match encoding {
        Encoding::Grey => return Measure::default(),
        Encoding::Terrarium => (1.0 / 256.0, -32_768.0),
        Encoding::Mapbox => (0.1, -10_000.0),
    };
    Measure {
        scale,
        offset,
        unit_m: Some(1.0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::fixtures;
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<Grid> {
        read_as(bytes, &ImportOptions::default())
    }

    fn read_as(bytes: &[u8], options: &ImportOptions) -> Result<Grid> {
        let len = bytes.len() as u64;
        read(Cursor::new(bytes), len, Path::new("x.png"), options)
    }

    fn encoded(encoding: Encoding, bytes: &[u8]) -> Result<Grid> {
        let options = ImportOptions {
            encoding: Some(encoding),
            ..Default::default()
        };
        read_as(bytes, &options)
    }

    fn metres(grid: &Grid) -> Vec<f64> {
        let Measure { scale, offset, .. } = grid.measure;
        grid.samples.iter().map(|s| s * scale + offset).collect()
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
    fn grey_may_have_three_colours_and_alpha() {
        let rgb = [7, 7, 8, 9, 9, 9, 0, 0, 0, 255, 254, 255];
        let grid = read_bytes(&fixtures::png(2, 2, ExtendedColorType::Rgb8, &rgb)).unwrap();
        assert_eq!(grid.samples, [7.0, 9.0, 0.0, 255.0]);
        let words = fixtures::ne_bytes(&[500, 65535, 600, 0, 700, 1, 800, 65535]);
        let grid = read_bytes(&fixtures::png(2, 2, ExtendedColorType::La16, &words)).unwrap();
        assert_eq!((grid.samples[0], grid.samples[3]), (500.0, 800.0));
        assert!(grid.samples[1].is_nan() && grid.samples[2] == 700.0);
    }

    #[test]
    fn terrarium_and_mapbox_are_exact() {
        let terrarium = [128, 10, 64, 127, 255, 0, 128, 0, 0, 0, 0, 0];
        let bytes = fixtures::png(2, 2, ExtendedColorType::Rgb8, &terrarium);
        let grid = encoded(Encoding::Terrarium, &bytes).unwrap();
        assert_eq!(metres(&grid)[..3], [10.25, -1.0, 0.0]);
        assert!(grid.samples[3].is_nan() && grid.integer);
        let mapbox = [
            1, 134, 160, 255, 1, 134, 165, 255, 1, 134, 110, 0, 0, 0, 0, 255,
        ];
        let bytes = fixtures::png(2, 2, ExtendedColorType::Rgba8, &mapbox);
        let found = metres(&encoded(Encoding::Mapbox, &bytes).unwrap());
        assert!(found[0].abs() < 1e-9 && (found[1] - 0.5).abs() < 1e-9);
        assert!(found[2].is_nan() && found[3] == -10_000.0);
    }

    #[test]
    fn colours_are_refused_with_a_hint() {
        let message = |bytes: &[u8]| read_bytes(bytes).unwrap_err().to_string();
        let rgb = |values: [u8; 12]| fixtures::png(2, 2, ExtendedColorType::Rgb8, &values);
        let terrarium = rgb([128, 10, 64, 127, 255, 0, 128, 0, 0, 129, 0, 0]);
        assert!(message(&terrarium).ends_with("--encoding terrarium"));
        let mapbox = rgb([1, 134, 160, 1, 134, 165, 1, 134, 110, 1, 200, 0]);
        assert!(message(&mapbox).ends_with("--encoding mapbox"));
        let photo = rgb([255, 0, 9, 12, 80, 200, 40, 70, 20, 90, 91, 92]);
        assert!(message(&photo).contains("--band 1 to 3"));
        let grey = fixtures::png(2, 2, ExtendedColorType::L8, &[1; 4]);
        let refused = encoded(Encoding::Mapbox, &grey).unwrap_err().to_string();
        assert!(refused.contains("R, G and B of 8 bits"), "{refused}");
    }

    #[test]
    fn one_colour_can_be_chosen() {
        let values = fixtures::ne_bytes(&[0, 0, 500, 0, 0, 501, 1, 0, 502, 0, 2, 503]);
        let bytes = fixtures::png(2, 2, ExtendedColorType::Rgb16, &values);
        let band = |band| {
            let options = ImportOptions {
                band: Some(band),
                ..Default::default()
            };
            read_as(&bytes, &options)
        };
        assert_eq!(band(3).unwrap().samples, [500.0, 501.0, 502.0, 503.0]);
        for none in [0, 4] {
            let message = band(none).unwrap_err().to_string();
            assert!(message.contains("--band 1 to 3"), "{message}");
        }
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

    /// A PNG of one row of data of any depth and kind of colour: all zeros.
    fn stored_as(bits: u8, colour: u8) -> Vec<u8> {
        let chunk = |name: &[u8], data: &[u8]| {
            let body = [name, data].concat();
            let crc = fixtures::crc32(&body);
            [
                &(data.len() as u32).to_be_bytes()[..],
                &body,
                &crc.to_be_bytes(),
            ]
            .concat()
        };
        let header = [&[0, 0, 0, 4, 0, 0, 0, 4][..], &[bits, colour, 0, 0, 0]].concat();
        let mut rows = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
        std::io::Write::write_all(&mut rows, &[0; 4 * 9]).unwrap();
        let palette = chunk(b"PLTE", &[0; 6]);
        [
            b"\x89PNG\r\n\x1a\n".to_vec(),
            chunk(b"IHDR", &header),
            if colour == 3 { palette } else { Vec::new() },
            chunk(b"IDAT", &rows.finish().unwrap()),
            chunk(b"IEND", &[]),
        ]
        .concat()
    }

    #[test]
    fn palettes_and_few_bits_are_refused_by_name() {
        for (bits, colour, what) in [
            (8, 3, "palette"),
            (4, 3, "palette"),
            (1, 0, "1 bits"),
            (2, 0, "2 bits"),
            (4, 0, "4 bits"),
        ] {
            let message = read_bytes(&stored_as(bits, colour))
                .unwrap_err()
                .to_string();
            assert!(message.contains(what), "{bits} {colour}: {message}");
        }
        // The same bytes with whole samples are no error of that kind.
        let whole = read_bytes(&stored_as(8, 0)).map(|grid| grid.samples);
        assert_eq!(whole.unwrap(), [0.0; 16]);
    }
}
