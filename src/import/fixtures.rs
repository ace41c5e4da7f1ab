//! Small files that the importers' tests write for themselves.
//!
//! The encoders at hand write neither tiles nor geographic tags of TIFFs; `tiff` does.

mod packing;
mod tiff;

use std::io::{Cursor, Write};

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};

pub(super) use self::packing::Packing;
pub(super) use self::tiff::Tiff;

/// One intact file of each kind that needs no flag, with its name.
pub(super) fn one_of_each() -> Vec<(&'static str, Vec<u8>)> {
    let heights: Vec<i16> = (0..20 * 18).map(|i| i % 90).collect();
    let floats: Vec<f32> = heights.iter().map(|v| f32::from(*v) / 3.0).collect();
    let words: Vec<u16> = heights.iter().map(|v| *v as u16).collect();
    let text = heights
        .iter()
        .map(|v| format!("{v}.5 "))
        .collect::<String>();
    let tiff = Tiff::int16(20, 18, &heights)
        .doubles(33550, &[0.01, 0.01, 0.0])
        .doubles(33922, &[0.0, 0.0, 0.0, 7.0, 44.0, 0.0])
        .keys(&[(1024, 2), (1025, 1), (2048, 4326)])
        .text(42113, "-32768");
    vec![
        ("strips.tif", tiff.clone().strips(5).bytes()),
        ("tiles.tif", tiff.clone().tiles(16, 16).bytes()),
        (
            "zstd.tif",
            tiff.clone().tiles(16, 16).packed(Packing::Zstd).bytes(),
        ),
        (
            "lerc.tif",
            tiff.clone()
                .tiles(16, 16)
                .packed(Packing::Lerc { deflated: false })
                .bytes(),
        ),
        ("big.tif", Tiff::float32(20, 18, &floats).big().bytes()),
        ("deflate.tif", compressed(&floats)),
        (
            "grey.png",
            png(20, 18, ExtendedColorType::L16, &ne_bytes(&words)),
        ),
        ("half.exr", exr(20, &[("Y", &floats)])),
        ("raw.r32", {
            let square = floats[..18 * 18].iter();
            square.flat_map(|v| v.to_le_bytes()).collect()
        }),
        ("cell.dt1", dted(20, 18, |x, y| (x * y) as i16)),
        (
            "grey.png",
            png(10, 18, ExtendedColorType::La16, &ne_bytes(&words)),
        ),
        (
            "grid.asc",
            format!("ncols 20\nnrows 18\nxllcorner 0\nyllcorner 0\ncellsize 5\n{text}")
                .into_bytes(),
        ),
    ]
}

fn compressed(floats: &[f32]) -> Vec<u8> {
    use ::tiff::encoder::{Compression, DeflateLevel, TiffEncoder, colortype};
    let mut bytes = Cursor::new(Vec::new());
    TiffEncoder::new(&mut bytes)
        .unwrap()
        .with_compression(Compression::Deflate(DeflateLevel::Fast))
        .write_image::<colortype::Gray32Float>(20, 18, floats)
        .unwrap();
    bytes.into_inner()
}

pub(super) fn png(width: u32, height: u32, color: ExtendedColorType, samples: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(samples, width, height, color)
        .unwrap();
    bytes
}

/// A scanline file of compressed floats, whose channels must come in the order of their names.
pub(super) fn exr(width: usize, channels: &[(&str, &[f32])]) -> Vec<u8> {
    use exr::prelude::*;
    let list = channels
        .iter()
        .map(|(name, samples)| AnyChannel::new(*name, FlatSamples::F32(samples.to_vec())));
    let height = channels[0].1.len() / width;
    let image = Image::from_encoded_channels(
        (width, height),
        Encoding::SMALL_LOSSLESS,
        AnyChannels::sort(list.collect()),
    );
    let mut bytes = Cursor::new(Vec::new());
    image.write().to_buffered(&mut bytes).unwrap();
    bytes.into_inner()
}

pub(super) fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = zip::write::SimpleFileOptions::default();
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub(super) fn ne_bytes(samples: &[u16]) -> Vec<u8> {
    samples.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

/// PNG's checksum, bit by bit.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 * (crc & 1))
        })
    })
}

/// A small generator of repeatable numbers (Knuth's multiplicative congruence).
pub(super) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// A DTED file whose south-west corner is at 72 W, 44 N, with 3 seconds of arc between samples.
pub(super) fn dted(columns: u16, rows: u16, height: impl Fn(u16, u16) -> i16) -> Vec<u8> {
    let mut bytes =
        format!("UHL10720000W0440000N003000300016U              {columns:04}{rows:04}0");
    bytes += &" ".repeat(3428 - bytes.len());
    let mut bytes = bytes.into_bytes();
    for x in 0..columns {
        let block = [&[0xaa, 0, 0, x as u8][..], &x.to_be_bytes(), &[0, 0]].concat();
        let heights = (0..rows).flat_map(|y| {
            let height = height(x, y);
            // Sign and magnitude.
            let sign = if height < 0 { 0x8000 } else { 0 };
            (height.unsigned_abs() | sign).to_be_bytes()
        });
        bytes.extend(block.into_iter().chain(heights).chain([0; 4]));
    }
    bytes
}
