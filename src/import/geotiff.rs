//! GeoTIFF, TIFF and BigTIFF with a band of elevation, in strips or tiles.
//!
//! The `tiff` crate reads the directory; what is asked of the file before its heights is in
//! `samples`, what its geographic tags mean is in `geotags`, its strips or tiles are read in
//! `chunks`, and what hides some of its samples in `masked`.
//!
//! - One band, or the one that `--band` names, interleaved or in planes; 8 to 64 bits of integer
//!   or float; uncompressed, LZW, Deflate, PackBits, Zstandard or LERC.
//! - The claimed size is checked against the file's length before anything is allocated.

use std::io::BufReader;
use std::path::Path;

use tiff::TiffError;
use tiff::decoder::Decoder;
use tiff::tags::SampleFormat;

use super::geotags::Tags;
use super::input::Input;
use super::masked::{Masked, Picture};
use super::options::ImportOptions;
use super::raster::{Head, Raster};
use super::samples::Layout;
use super::{lint, one_line, values};
use crate::error::{Error, Result};

pub(super) fn open(input: Input, path: &Path, options: &ImportOptions) -> Result<Raster> {
    let reader = BufReader::new(input.clone());
    let mut decoder = Decoder::new(reader).map_err(|e| damaged(path, e))?;
    let layout = Layout::read(&mut decoder, path, options)?;
    let tags = Tags::read(&mut decoder, path, layout.band, layout.height, options)?;
    let mut warnings = Vec::new();
    if layout.bits == 8 {
        warnings.push(lint::eight_bits());
    }
    let picture = Picture {
        input: &input,
        layout: &layout,
        south_up: tags.south_up,
        path,
    };
    let rule = layout.void_rule(tags.nodata);
    let samples = Masked::open(&mut decoder, &picture, rule, &mut warnings)?;
    let head = Head {
        width: layout.width,
        height: layout.height,
        integer: layout.format != SampleFormat::IEEEFP,
        kind: values::kind_of(layout.format, layout.bits),
        georef: tags.georef,
        measure: tags.measure,
        statistics: None,
        warnings,
    };
    Ok(Raster {
        head,
        samples: Box::new(samples),

        in_memory: false,
    })
}

pub(super) fn damaged(path: &Path, error: TiffError) -> Error {
    let what = format!("damaged or unusual TIFF: {}", one_line(error));
    Error::file(path, what, "an intact TIFF with one band of elevation")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tiff::encoder::{Compression, DeflateLevel, TiffEncoder, colortype};
    use tiff::tags::Predictor;

    use super::super::fixtures::{Packing, Tiff};
    use super::super::grid::Grid;
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<Grid> {
        read_as(bytes, &ImportOptions::default())
    }

    fn read_as(bytes: &[u8], options: &ImportOptions) -> Result<Grid> {
        let input = Input::memory(bytes.to_vec());
        open(input, Path::new("x.tif"), options)?.into_grid()
    }

    fn read_band(bytes: &[u8], band: u16) -> Result<Grid> {
        let options = ImportOptions {
            band: Some(band),
            ..Default::default()
        };
        read_as(bytes, &options)
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
    fn compressions_that_are_not_read_are_named() {
        for (code, name) in [(34925, "LZMA compression"), (1234, "compression 1234")] {
            let file = Tiff::int16(2, 2, &[0; 4]).packed(Packing::Other(code));
            let message = read_bytes(&file.bytes()).unwrap_err().to_string();
            assert!(
                message.contains(&format!("{name} is not supported")),
                "{message}"
            );
            assert!(message.contains("COMPRESS=DEFLATE"), "{message}");
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
            message.contains("3 bands; expected one band of elevation, or --band 1 to 3"),
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

    #[test]
    fn a_band_is_chosen_interleaved_or_in_planes() {
        let bands: Vec<Vec<i16>> = (0..3)
            .map(|band| ramp(20 * 18).iter().map(|v| v + 1000 * band).collect())
            .collect();
        let mixed: Vec<i16> = (0..20 * 18)
            .flat_map(|i| bands.iter().map(move |band| band[i]))
            .collect();
        let files = [
            Tiff::int16(20, 18, &mixed).bands(3),
            Tiff::int16(20, 18, &mixed).bands(3).tiles(16, 16),
            Tiff::int16(20, 18, &bands.concat()).planes(3).strips(5),
            Tiff::int16(20, 18, &bands.concat()).planes(3).tiles(16, 16),
        ];
        for file in files {
            let bytes = file.bytes();
            for (band, heights) in (1..).zip(&bands) {
                let grid = read_band(&bytes, band).unwrap();
                assert_eq!(grid.samples, as_numbers(heights));
            }
            for none in [0, 4] {
                let message = read_band(&bytes, none).unwrap_err().to_string();
                assert!(message.contains("--band 1 to 3"), "{message}");
            }
            assert!(read_bytes(&bytes).is_err());
        }
    }

    #[test]
    fn a_scale_and_an_offset_are_kept_for_later() {
        let xml = "<Item name=\"S\" sample=\"0\" role=\"scale\">0.1</Item>\
                   <Item name=\"O\" sample=\"0\" role=\"offset\">-5</Item>";
        let grid = read_bytes(&Tiff::int16(2, 2, &[0; 4]).text(42112, xml).bytes()).unwrap();
        assert_eq!((grid.measure.scale, grid.measure.offset), (0.1, -5.0));
    }

    #[test]
    fn rows_that_go_north_are_turned_around() {
        let matrix = [10.0, 0.0, 0.0, 0.0, 0.0, 10.0, 0.0, 0.0];
        let file = Tiff::int16(2, 2, &[1, 2, 3, 4]);
        let file = file.doubles(34264, &[&matrix[..], &[0.0; 8]].concat());
        assert_eq!(samples(&file), [3.0, 4.0, 1.0, 2.0]);
    }
}
