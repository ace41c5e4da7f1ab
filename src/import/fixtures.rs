//! Small files that the importers' tests write for themselves.
//!
//! The encoders at hand write neither tiles nor geographic tags, so a TIFF is put together from
//! its parts here: header, directory, values, chunks.

use std::io::{Cursor, Write};

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};

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
    use tiff::encoder::{Compression, DeflateLevel, TiffEncoder, colortype};
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

/// How a made-up TIFF's chunks are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Packing {
    None,
    /// All of it literal: the decoder cannot know.
    PackBits,
    Zstd,
    /// Something that nobody here can make.
    Other(u16),
}

impl Packing {
    fn code(self) -> u16 {
        match self {
            Packing::None => 1,
            Packing::PackBits => 32773,
            Packing::Zstd => 50000,
            Packing::Other(code) => code,
        }
    }

    fn pack(self, bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Packing::None | Packing::Other(_) => bytes,
            Packing::PackBits => {
                let parts = bytes.chunks(128);
                parts
                    .flat_map(|part| [&[part.len() as u8 - 1], part].concat())
                    .collect()
            }
            Packing::Zstd => zstd::bulk::compress(&bytes, 1).unwrap(),
        }
    }
}

/// A little-endian TIFF of one band, not compressed, whatever else it should be.
#[derive(Clone, Debug)]
pub(super) struct Tiff {
    width: u32,
    height: u32,
    claimed: (u32, u32),
    bits: u16,
    format: u16,
    photometric: u16,
    samples: Vec<u8>,
    chunk: (u32, u32),
    tiled: bool,
    bands: u16,
    planar: bool,
    big: bool,
    packing: Packing,
    left_out: Option<usize>,
    extra: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    tag: u16,
    kind: u16,
    count: u64,
    bytes: Vec<u8>,
}

impl Entry {
    fn shorts(tag: u16, values: &[u16]) -> Entry {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Entry {
            tag,
            kind: 3,
            count: values.len() as u64,
            bytes,
        }
    }

    fn longs(tag: u16, values: &[u32]) -> Entry {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Entry {
            tag,
            kind: 4,
            count: values.len() as u64,
            bytes,
        }
    }
}

impl Tiff {
    pub fn int16(width: u32, height: u32, samples: &[i16]) -> Tiff {
        let bytes = samples.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tiff::new(width, height, 16, 2, bytes)
    }

    pub fn uint16(width: u32, height: u32, samples: &[u16]) -> Tiff {
        let bytes = samples.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tiff::new(width, height, 16, 1, bytes)
    }

    pub fn float32(width: u32, height: u32, samples: &[f32]) -> Tiff {
        let bytes = samples.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tiff::new(width, height, 32, 3, bytes)
    }

    fn new(width: u32, height: u32, bits: u16, format: u16, samples: Vec<u8>) -> Tiff {
        Tiff {
            width,
            height,
            claimed: (width, height),
            bits,
            format,
            photometric: 1,
            samples,
            chunk: (width, height),
            tiled: false,
            bands: 1,
            planar: false,
            big: false,
            packing: Packing::None,
            left_out: None,
            extra: Vec::new(),
        }
    }

    pub fn strips(mut self, rows: u32) -> Tiff {
        self.chunk = (self.width, rows);
        self
    }

    pub fn tiles(mut self, width: u32, height: u32) -> Tiff {
        self.chunk = (width, height);
        self.tiled = true;
        self
    }

    pub fn big(mut self) -> Tiff {
        self.big = true;
        self
    }

    pub fn packed(mut self, packing: Packing) -> Tiff {
        self.packing = packing;
        self
    }

    /// Samples of so many bands, interleaved.
    pub fn bands(mut self, bands: u16) -> Tiff {
        self.bands = bands;
        self
    }

    /// Samples of so many bands, one behind the other.
    pub fn planes(mut self, bands: u16) -> Tiff {
        self.planar = true;
        self.bands(bands)
    }

    pub fn photometric(mut self, photometric: u16) -> Tiff {
        self.photometric = photometric;
        self
    }

    /// A header that promises another size than the samples have.
    pub fn claiming(mut self, width: u32, height: u32) -> Tiff {
        self.claimed = (width, height);
        self.chunk = (width, height);
        self
    }

    /// As sparse files do: no bytes for this chunk.
    pub fn without_chunk(mut self, chunk: usize) -> Tiff {
        self.left_out = Some(chunk);
        self
    }

    pub fn doubles(mut self, tag: u16, values: &[f64]) -> Tiff {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.extra.push(Entry {
            tag,
            kind: 12,
            count: values.len() as u64,
            bytes,
        });
        self
    }

    pub fn text(mut self, tag: u16, text: &str) -> Tiff {
        let bytes = [text.as_bytes(), b"\0"].concat();
        self.extra.push(Entry {
            tag,
            kind: 2,
            count: bytes.len() as u64,
            bytes,
        });
        self
    }

    pub fn keys(mut self, keys: &[(u16, u16)]) -> Tiff {
        let mut values = vec![1, 1, 0, keys.len() as u16];
        values.extend(keys.iter().flat_map(|(key, value)| [*key, 0, 1, *value]));
        self.extra.push(Entry::shorts(34735, &values));
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let chunks = self.chunks();
        let count = chunks.len();
        // The chunks' places depend on the directory's size alone.
        let start = self.front(&vec![0; count], &vec![0; count]).len() as u32;
        let sizes: Vec<u32> = chunks.iter().map(|c| c.len() as u32).collect();
        let places: Vec<u32> = (0..count)
            .map(|i| start + sizes[..i].iter().sum::<u32>())
            .collect();
        let mut bytes = self.front(&places, &sizes);
        bytes.extend(chunks.concat());
        bytes
    }

    fn chunks(&self) -> Vec<Vec<u8>> {
        if self.claimed != (self.width, self.height) {
            return vec![self.samples.clone()];
        }
        let (across, down) = (
            self.width.div_ceil(self.chunk.0),
            self.height.div_ceil(self.chunk.1),
        );
        let planes = if self.planar { self.bands } else { 1 };
        (0..across * down * u32::from(planes))
            .map(|i| match self.left_out {
                Some(left_out) if left_out == i as usize => Vec::new(),
                _ => {
                    let (plane, i) = (i / (across * down), i % (across * down));
                    let (x, z) = (i % across * self.chunk.0, i / across * self.chunk.1);
                    self.packing.pack(self.chunk(plane, x, z))
                }
            })
            .collect()
    }

    /// Tiles are padded to their full size, strips end with the picture.
    fn chunk(&self, plane: u32, x0: u32, z0: u32) -> Vec<u8> {
        let interleaved = if self.planar { 1 } else { self.bands };
        let size = self.bits as usize / 8 * usize::from(interleaved);
        let bottom = if self.tiled {
            z0 + self.chunk.1
        } else {
            (z0 + self.chunk.1).min(self.height)
        };
        let mut bytes = Vec::new();
        for z in z0..bottom {
            for x in x0..x0 + self.chunk.0 {
                let at = (plane * self.width * self.height + z * self.width + x) as usize * size;
                let inside = x < self.width && z < self.height;
                bytes.extend((0..size).map(|b| if inside { self.samples[at + b] } else { 0xaa }));
            }
        }
        bytes
    }

    fn entries(&self, places: &[u32], sizes: &[u32]) -> Vec<Entry> {
        let mut entries = vec![
            Entry::longs(256, &[self.claimed.0]),
            Entry::longs(257, &[self.claimed.1]),
            Entry::shorts(258, &vec![self.bits; self.bands.into()]),
            Entry::shorts(259, &[self.packing.code()]),
            Entry::shorts(262, &[self.photometric]),
            Entry::shorts(277, &[self.bands]),
            Entry::shorts(284, &[1 + u16::from(self.planar)]),
            Entry::shorts(339, &vec![self.format; self.bands.into()]),
        ];
        entries.extend(if self.tiled {
            vec![
                Entry::longs(322, &[self.chunk.0]),
                Entry::longs(323, &[self.chunk.1]),
                Entry::longs(324, places),
                Entry::longs(325, sizes),
            ]
        } else {
            vec![
                Entry::longs(273, places),
                Entry::longs(278, &[self.chunk.1]),
                Entry::longs(279, sizes),
            ]
        });
        entries.extend(self.extra.clone());
        entries.sort_by_key(|entry| entry.tag);
        entries
    }

    /// Header, directory and the values that do not fit in it.
    fn front(&self, places: &[u32], sizes: &[u32]) -> Vec<u8> {
        let entries = self.entries(places, sizes);
        let word = if self.big { 8 } else { 4 };
        let (header, entry, count) = if self.big { (16, 20, 8) } else { (8, 12, 2) };
        let narrow = |value: u64, bytes: usize| value.to_le_bytes()[..bytes].to_vec();
        let mut bytes = match self.big {
            true => [&b"II\x2b\0\x08\0\0\0"[..], &narrow(16, 8)].concat(),
            false => [&b"II\x2a\0"[..], &narrow(8, 4)].concat(),
        };
        bytes.extend(narrow(entries.len() as u64, count));
        let mut values = Vec::new();
        let values_at = header + count + entry * entries.len() + word;
        for Entry {
            tag,
            kind,
            count,
            bytes: value,
        } in entries
        {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend(narrow(count, word));
            let mut field = value;
            if field.len() > word {
                let at = (values_at + values.len()) as u64;
                values.extend(std::mem::replace(&mut field, narrow(at, word)));
            }
            field.resize(word, 0);
            bytes.extend(field);
        }
        bytes.extend(narrow(0, word));
        [bytes, values].concat()
    }
}
