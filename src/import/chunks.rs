//! The strips or tiles of a TIFF, read a few rows of them at a time.
//!
//! Uncompressed ones are read as the bytes they are, row by row; for others the `tiff` crate
//! decodes whole chunks, with a decoder for each thread. The north may be at either end of the
//! file.
//!
//! - Memory holds one row of chunks and a decoded one for each thread, or some rows of a file that
//!   is not compressed: it grows with the raster's width only.
//! - A chunk that a sparse file leaves out is void.

use std::io::{self, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use tiff::decoder::{ChunkType, Decoder, DecodingResult as Values, Limits};
use tiff::tags::{ByteOrder as Endian, IfdPointer, Tag};
use tiff::{TiffError, TiffResult};

use super::directory::Directory;
use super::geotiff::damaged;
use super::input::Input;
use super::lerc;
use super::numbers::{Numbers, each_kind};
use super::options::ByteOrder;
use super::raster::{Bands, Take};
use super::samples::Layout;
use super::store::BAND_SAMPLES;
use super::values::{self, Rows};
use super::voids::VoidRule;
use crate::error::{Error, Result};
use crate::source::Area;

/// A chunk that is decoded as a whole must fit the memory.
const MOST_CHUNK_BYTES: u64 = 1 << 31;

pub(super) type TiffDecoder = Decoder<BufReader<Input>>;

/// Where the chunks of a raster are.
pub(super) struct Chunks {
    path: PathBuf,
    input: Input,
    /// What decoders are shown.
    view: Input,
    layout: Layout,
    rule: VoidRule,
    south_up: bool,
    order: ByteOrder,
    /// Width and height of a chunk.
    chunk: [u32; 2],
    tiled: bool,
    /// Chunks from west to east.
    across: u32,
    /// Bytes in the file, of the chunks of our band.
    places: Vec<u64>,
    sizes: Vec<u64>,
    /// The first chunk of our band.
    first: u32,
    decoders: Vec<TiffDecoder>,
}

/// What a chunk and an area have in common.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// Counted within our band.
    index: usize,
    /// The chunk's first column and row.
    corner: [u32; 2],
    area: Area,
}

impl Chunks {
    pub fn open(
        decoder: &mut TiffDecoder,
        input: Input,
        layout: Layout,
        rule: VoidRule,
        south_up: bool,
        path: &Path,
    ) -> Result<Chunks> {
        let (width, height) = decoder.chunk_dimensions();
        let tiled = decoder.get_chunk_type() == ChunkType::Tile;
        // A strip may be said to have more rows than the picture.
        let chunk = if tiled {
            [width, height]
        } else {
            [layout.width, height.min(layout.height)]
        };
        if chunk.contains(&0) {
            return Err(Error::file(
                path,
                "damaged TIFF: strips or tiles of no size",
                "an intact TIFF",
            ));
        }
        let [across, down] = [
            layout.width.div_ceil(chunk[0]),
            layout.height.div_ceil(chunk[1]),
        ];
        let count = across.saturating_mul(down);
        // Planes lie one behind the other.
        let plane = if layout.planar { layout.band.into() } else { 0 };
        let first = count.saturating_mul(plane);
        let [places, sizes] = if tiled {
            [Tag::TileOffsets, Tag::TileByteCounts]
        } else {
            [Tag::StripOffsets, Tag::StripByteCounts]
        };
        let mut list = |tag| of_plane(decoder, tag, first, count).map_err(|e| damaged(path, e));
        let mut chunks = Chunks {
            places: list(places)?,
            sizes: list(sizes)?,
            path: path.to_owned(),
            view: input.clone(),
            input,
            layout,
            rule,
            south_up,
            order: match decoder.byte_order() {
                Endian::LittleEndian => ByteOrder::Little,
                Endian::BigEndian => ByteOrder::Big,
            },
            chunk,
            tiled,
            across,
            first,
            decoders: Vec::new(),
        };
        chunks.check_claim()?;
        if tiled && !chunks.layout.is_plain() {
            let pointer = decoder.ifd_pointer();
            let view = chunks.whole_tiles(decoder.byte_order(), down, pointer);
            chunks.view = view.map_err(|e| damaged(path, e.into()))?;
        }
        Ok(chunks)
    }

    /// The file as if the picture ended where its tiles do. Of tiles that it cuts off, the decoder
    /// would leave out the rest of every row, and stumbles over that in LZW.
    fn whole_tiles(
        &self,
        order: Endian,
        down: u32,
        pointer: Option<IfdPointer>,
    ) -> io::Result<Input> {
        let pointer = pointer.ok_or(ErrorKind::InvalidData)?;
        let directory = Directory::read(&self.input, order, pointer)?;
        let [width, height] = self.chunk;
        let side = |count: u32, size: u32| count.checked_mul(size).ok_or(ErrorKind::InvalidData);
        let view = directory.with(&self.input, Tag::ImageWidth, side(self.across, width)?)?;
        directory.with(&view, Tag::ImageLength, side(down, height)?)
    }

    /// What the header promises must fit the file, and a chunk the memory.
    fn check_claim(&self) -> Result<()> {
        let row_bytes = self.row_bytes();
        // Bits become bytes.
        let decoded_bytes = row_bytes.saturating_mul(if self.layout.bits == 1 { 8 } else { 1 });
        let chunk_bytes = decoded_bytes.saturating_mul(self.chunk[1].into());
        let present = (0..).zip(&self.sizes).filter(|(_, size)| **size > 0);
        let rows: u64 = present.map(|(index, _)| self.stored_rows(index)).sum();
        let claimed = row_bytes.saturating_mul(rows);
        self.layout
            .check_claim(claimed, self.input.len(), &self.path)?;
        if self.layout.is_plain() || chunk_bytes <= MOST_CHUNK_BYTES {
            return Ok(());
        }
        let gigabytes = chunk_bytes as f64 / 1e9;
        let what =
            format!("strips or tiles of {gigabytes:.1} GB each are too large for the memory");
        let expected = "smaller ones (gdal_translate -co TILED=YES -co COMPRESS=DEFLATE)";
        Err(Error::file(&self.path, what, expected))
    }

    /// Rows of a chunk: the last strip ends with the picture, tiles never do.
    fn stored_rows(&self, index: u32) -> u64 {
        let [_, height] = self.chunk;
        let left = self.layout.height - index / self.across * height;
        let rows = if self.tiled { height } else { height.min(left) };
        rows.into()
    }

    /// Bytes of a row of a chunk.
    fn row_bytes(&self) -> u64 {
        let interleaved = self.layout.interleaved() as u64;
        let values = u64::from(self.chunk[0]).saturating_mul(interleaved);
        values.saturating_mul(self.layout.bits.into()).div_ceil(8)
    }

    /// Rows of the file that are read at once.
    fn band_rows(&self) -> u32 {
        let rows = (BAND_SAMPLES / self.layout.width as usize).max(1) as u32;
        if self.layout.is_plain() {
            return rows;
        }
        // Enough chunks for all threads, and whole rows of them.
        let chunk_rows = rows.saturating_mul(4) / self.chunk[1];
        chunk_rows.max(1).saturating_mul(self.chunk[1])
    }

    fn read_band(&mut self, area: Area) -> TiffResult<Numbers> {
        let kind = values::kind_of(self.layout.format, self.layout.bits);
        let mut samples = Numbers::voids(kind, area.width as usize * area.height as usize);
        let shares: Vec<Share> = self.shares(area).collect();
        if self.layout.is_plain() {
            for share in shares {
                let (values, rows) = self.plain(&share, area)?;
                values::lay(&values, &rows, &self.rule, &mut samples);
            }
        } else {
            for decoded in self.decode(&shares, area) {
                let (values, rows) = decoded?;
                values::lay(&values, &rows, &self.rule, &mut samples);
            }
        }
        Ok(samples)
    }

    /// The chunks that an area touches, but for those that the file leaves out.
    fn shares(&self, area: Area) -> impl Iterator<Item = Share> {
        let [width, height] = self.chunk;
        let columns = area.x / width..=(area.x + area.width - 1) / width;
        let rows = area.z / height..=(area.z + area.height - 1) / height;
        let all = rows.flat_map(move |row| columns.clone().map(move |column| [column, row]));
        let shares = all.map(move |[column, row]| {
            let corner = [column * width, row * height];
            let (x, z) = (corner[0].max(area.x), corner[1].max(area.z));
            let right = corner[0].saturating_add(width).min(area.x + area.width);
            let bottom = corner[1].saturating_add(height).min(area.z + area.height);
            Share {
                index: (row * self.across + column) as usize,
                corner,
                area: Area {
                    x,
                    z,
                    width: right - x,
                    height: bottom - z,
                },
            }
        });
        shares.filter(|share| self.sizes[share.index] > 0)
    }

    /// Rows of a chunk that is not compressed.
    fn plain(&self, share: &Share, area: Area) -> TiffResult<(Values, Rows)> {
        let row_bytes = self.row_bytes();
        let start = row_bytes.saturating_mul((share.area.z - share.corner[1]).into());
        let count = row_bytes.saturating_mul(share.area.height.into());
        if start.saturating_add(count) > self.sizes[share.index] {
            let short = format!("strip or tile {} is too short", share.index);
            return Err(io::Error::new(ErrorKind::UnexpectedEof, short).into());
        }
        let place = self.places[share.index].saturating_add(start);
        let bytes = self.input.bytes_at(place, count)?;
        let Layout { format, bits, .. } = self.layout;
        let values = values::from_bytes(&bytes, format, bits, self.order);
        let values = values.ok_or_else(|| io::Error::from(ErrorKind::InvalidData))?;
        let size = [self.chunk[0], share.area.height];
        self.with_rows(values, share, share.area.z, size, area)
    }

    /// Decodes chunks on all threads.
    fn decode(&mut self, shares: &[Share], area: Area) -> Vec<TiffResult<(Values, Rows)>> {
        let mut decoders = std::mem::take(&mut self.decoders);
        let threads = rayon::current_num_threads().min(shares.len());
        while decoders.len() < threads {
            match self.decoder() {
                Ok(decoder) => decoders.push(decoder),
                Err(error) => return vec![Err(error)],
            }
        }
        let count = decoders.len();
        let decoded = decoders.par_iter_mut().enumerate();
        let decoded = decoded.flat_map_iter(|(at, decoder)| {
            let mine = shares.iter().skip(at).step_by(count);
            mine.map(|share| self.decode_one(decoder, share, area))
        });
        let decoded = decoded.collect();
        self.decoders = decoders;
        decoded
    }

    fn decoder(&self) -> TiffResult<TiffDecoder> {
        let mut limits = Limits::default();
        limits.decoding_buffer_size = MOST_CHUNK_BYTES as usize;
        limits.intermediate_buffer_size = usize::try_from(self.input.len()).unwrap_or(usize::MAX);
        let decoder = Decoder::new(BufReader::new(self.view.clone()))?;
        Ok(decoder.with_limits(limits))
    }

    fn decode_one(
        &self,
        decoder: &mut TiffDecoder,
        share: &Share,
        area: Area,
    ) -> TiffResult<(Values, Rows)> {
        if let Some(outer) = self.layout.lerc {
            let place = [self.places[share.index], self.sizes[share.index]];
            let bytes = self.input.bytes_at(place[0], place[1])?;
            let bands = self.layout.interleaved();
            let (values, height) = lerc::decode(bytes, outer, self.chunk, bands, self.order)?;
            let size = [self.chunk[0], height];
            return self.with_rows(values, share, share.corner[1], size, area);
        }
        let place = self.first + share.index as u32;
        let (width, height) = decoder.chunk_data_dimensions(place);
        let values = decoder.read_chunk(place)?;
        self.with_rows(values, share, share.corner[1], [width, height], area)
    }

    /// The values of a chunk's rows, of which `first_row` is the first, and where in an area they
    /// go.
    fn with_rows(
        &self,
        values: Values,
        share: &Share,
        first_row: u32,
        [width, height]: [u32; 2],
        area: Area,
    ) -> TiffResult<(Values, Rows)> {
        let pixels = width as usize * height as usize;
        let values = match self.layout.bits {
            1 => values::unpack(values, width as usize * self.layout.interleaved()),
            _ => values,
        };
        let (stride, band) = self.layout.interleaving(values::count(&values), pixels)?;
        let column = share.area.x - share.corner[0];
        let row = share.area.z - first_row;
        if column + share.area.width > width || row + share.area.height > height {
            let what = format!("strip or tile {} has too few samples", share.index);
            return Err(io::Error::new(ErrorKind::InvalidData, what).into());
        }
        let pitch = width as usize * stride;
        let to_pitch = area.width as usize;
        let rows = Rows {
            count: share.area.height as usize,
            from: row as usize * pitch + column as usize * stride + band,
            stride,
            pitch,
            width: share.area.width as usize,
            to: (share.area.z - area.z) as usize * to_pitch + (share.area.x - area.x) as usize,
            to_pitch,
        };
        Ok((values, rows))
    }
}

/// Numbers of a tag that has one for each chunk of each plane.
fn of_plane(decoder: &mut TiffDecoder, tag: Tag, first: u32, count: u32) -> TiffResult<Vec<u64>> {
    let mut all = decoder.get_tag_u64_vec(tag)?;
    let (first, needed) = (first as usize, first.saturating_add(count) as usize);
    if all.len() < needed {
        let short = format!(
            "{} strips or tiles listed where {needed} are needed",
            all.len()
        );
        return Err(TiffError::from(io::Error::new(
            ErrorKind::UnexpectedEof,
            short,
        )));
    }
    all.truncate(needed);
    all.drain(..first);
    Ok(all)
}

impl Bands for Chunks {
    fn read(&mut self, area: Area, take: &mut Take) -> Result<()> {
        let rows = self.band_rows();
        let mut top = area;
        if self.south_up {
            top.z = self.layout.height - area.z - area.height;
        }
        let end = top.z + top.height;
        let mut bands = top.z / rows..(end - 1) / rows + 1;
        while let Some(band) = if self.south_up {
            bands.next_back()
        } else {
            bands.next()
        } {
            let start = (band * rows).max(top.z);
            let height = (band * rows).saturating_add(rows).min(end) - start;
            let part = Area {
                z: start,
                height,
                ..top
            };
            let mut samples = self.read_band(part).map_err(|e| damaged(&self.path, e))?;
            if self.south_up {
                each_kind!(&mut samples, samples => flip(samples, area.width as usize));
            }
            take(samples)?;
        }
        Ok(())
    }
}

/// Makes the last row the first.
fn flip<T: Copy>(samples: &mut Vec<T>, width: usize) {
    *samples = samples.chunks(width).rev().flatten().copied().collect();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixtures::{Packing, Tiff};
    use super::super::geotiff;
    use super::super::options::ImportOptions;
    use super::super::raster::Raster;
    use super::*;

    fn open(file: &Tiff, band: u16) -> Raster {
        let options = ImportOptions {
            band: Some(band),
            ..Default::default()
        };
        let input = Input::memory(file.bytes());
        geotiff::open(input, Path::new("x.tif"), &options).unwrap()
    }

    /// Any arrangement of chunks and bands, with a void here and there.
    #[derive(Clone, Debug)]
    struct Case {
        size: [u32; 2],
        chunk: [u32; 2],
        tiled: bool,
        planar: bool,
        bands: u16,
        band: u16,
        south_up: bool,
        packing: Packing,
        area: [u32; 4],
        left_out: usize,
    }

    fn case() -> impl Strategy<Value = Case> {
        let size = [2u32..70, 2u32..70];
        let chunk = [1u32..5, 1u32..40];
        let packing = prop_oneof![
            Just(Packing::None),
            Just(Packing::PackBits),
            Just(Packing::Zstd)
        ];
        let flags = any::<[bool; 3]>();
        let rest = (1u16..4, 0u16..3, packing, any::<[u32; 4]>(), 0usize..99);
        (size, chunk, flags, rest).prop_map(|(size, chunk, flags, rest)| {
            let [tiled, planar, south_up] = flags;
            let (bands, band, packing, area, left_out) = rest;
            Case {
                size,
                chunk,
                tiled,
                planar,
                bands,
                band: band % bands,
                south_up,
                packing,
                area,
                left_out,
            }
        })
    }

    impl Case {
        fn file(&self) -> Tiff {
            let [width, height] = self.size;
            let bands = u32::from(self.bands);
            let all = 0..width * height * bands;
            let samples: Vec<i16> = all.map(|i| (i * 7 % 31_000) as i16 - 9000).collect();
            let file = Tiff::int16(width, height, &samples).text(42113, "-8993");
            let file = match self.planar {
                true => file.planes(self.bands),
                false => file.bands(self.bands),
            };
            let file = match self.tiled {
                true => file.tiles(16 * self.chunk[0], 16 * (1 + self.chunk[1] / 16)),
                false => file.strips(self.chunk[1].min(height)),
            };
            let up = [10.0, 0.0, 0.0, 0.0, 0.0, 10.0, 0.0, 0.0];
            let file = match self.south_up {
                true => file.doubles(34264, &[&up[..], &[0.0; 8]].concat()),
                false => file,
            };
            file.packed(self.packing).without_chunk(self.left_out)
        }

        /// The chunk of our band that a sample of the file is in.
        fn chunk_of(&self, x: u32, z: u32) -> usize {
            let [width, height] = self.size;
            let [chunk_width, chunk_height] = match self.tiled {
                true => [16 * self.chunk[0], 16 * (1 + self.chunk[1] / 16)],
                false => [width, self.chunk[1].min(height)],
            };
            let across = width.div_ceil(chunk_width);
            let plane = if self.planar { u32::from(self.band) } else { 0 };
            let first = plane * across * height.div_ceil(chunk_height);
            (first + z / chunk_height * across + x / chunk_width) as usize
        }

        fn sample(&self, x: u32, z: u32) -> f64 {
            let [width, height] = self.size;
            let z = if self.south_up { height - 1 - z } else { z };
            if self.chunk_of(x, z) == self.left_out {
                return f64::NAN;
            }
            let (at, band, bands) = (z * width + x, u32::from(self.band), u32::from(self.bands));
            let index = match self.planar {
                true => band * width * height + at,
                false => at * bands + band,
            };
            let value = f64::from(index * 7 % 31_000) - 9000.0;
            if value == -8993.0 { f64::NAN } else { value }
        }

        fn area(&self) -> Area {
            let side = |start: u32, count: u32, whole: u32| {
                let start = start % whole;
                (start, 1 + count % (whole - start))
            };
            let (x, width) = side(self.area[0], self.area[1], self.size[0]);
            let (z, height) = side(self.area[2], self.area[3], self.size[1]);
            Area {
                x,
                z,
                width,
                height,
            }
        }
    }

    proptest! {
        #[test]
        fn any_area_of_any_arrangement_is_what_was_written(case in case()) {
            let mut raster = open(&case.file(), case.band + 1);
            let area = case.area();
            let found = raster.part(area).unwrap();
            let places = (area.z..area.z + area.height)
                .flat_map(|z| (area.x..area.x + area.width).map(move |x| (x, z)));
            let naive: Vec<f64> = places.map(|(x, z)| case.sample(x, z)).collect();
            for (found, naive) in found.iter().zip(&naive) {
                prop_assert!(found == naive || found.is_nan() && naive.is_nan());
            }
            prop_assert_eq!(found.len(), naive.len());
        }

        #[test]
        fn damaged_files_are_read_or_refused(
            case in case(),
            hits in prop::collection::vec((0usize..400, any::<u8>()), 1..4),
        ) {
            let mut bytes = case.file().bytes();
            for (at, value) in hits {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            let options = ImportOptions { band: Some(1), ..Default::default() };
            let opened = geotiff::open(Input::memory(bytes), Path::new("x.tif"), &options);
            let Ok(mut raster) = opened else { return Ok(()) };
            if raster.head.width.saturating_mul(raster.head.height) < 1 << 20 {
                let area = raster.head.whole();
                let read = raster.samples.read(area, &mut |_| Ok(()));
                let message = read.err().map(|e| e.to_string()).unwrap_or_default();
                prop_assert!(!message.contains('\n'), "{}", message);
            }
        }
    }

    /// Of a type and compression, with a predictor, and a tile as large as it may be.
    fn compressed() -> impl Strategy<Value = (Tiff, u16)> {
        let types = prop::sample::select(vec![
            (8, 1),
            (16, 1),
            (16, 2),
            (32, 1),
            (32, 2),
            (32, 3),
            (64, 3),
        ]);
        let packings = [
            Packing::Lzw,
            Packing::Zstd,
            Packing::PackBits,
            Packing::Lerc { deflated: false },
            Packing::Lerc { deflated: true },
        ];
        let packing = prop::sample::select(packings.to_vec());
        let sizes = ([2u32..90, 2u32..90], [1u32..5, 1u32..5]);
        let rest = (
            1u16..4,
            any::<[bool; 2]>(),
            1u16..4,
            any::<u64>(),
            1usize..9,
        );
        (types, packing, sizes, rest).prop_map(|(kind, packing, (size, tile), rest)| {
            let (bands, [planar, tiled], predictor, seed, rough) = rest;
            let (bits, format) = kind;
            let [width, height] = size;
            let count = (width * height * u32::from(bands)) as usize;
            let mut random = super::super::fixtures::Random(seed);
            let mut height_of = |i: usize| 40 + i as u32 / 9 % 50 + random.below(rough) as u32;
            let bytes = (0..count).flat_map(|i| {
                let value = height_of(i);
                match (bits, format) {
                    (32, 3) => (value as f32 / 4.0).to_le_bytes().to_vec(),
                    (64, 3) => (f64::from(value) / 4.0).to_le_bytes().to_vec(),
                    _ => value.to_le_bytes()[..usize::from(bits / 8)].to_vec(),
                }
            });
            let file = Tiff::new(width, height, bits, format, bytes.collect());
            let file = if planar {
                file.planes(bands)
            } else {
                file.bands(bands)
            };
            let file = if tiled {
                file.tiles(16 * tile[0], 16 * tile[1])
            } else {
                file.strips((16 * tile[1]).min(height))
            };
            // The predictor of floats is for floats.
            let predictor = if format == 3 {
                predictor
            } else {
                predictor.min(2)
            };
            let predictor = match packing {
                Packing::Lerc { .. } => 1,
                _ => predictor,
            };
            (file.packed(packing).predicted(predictor), bands)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn compressed_chunks_hold_what_was_written((file, bands) in compressed()) {
            let plain = file.clone().packed(Packing::None).predicted(1);
            for band in 1..=bands {
                let found = open(&file, band).into_grid();
                prop_assert!(found.is_ok(), "{:?}", found.err());
                let expected = open(&plain, band).into_grid().unwrap();
                prop_assert_eq!(found.unwrap().samples, expected.samples);
            }
        }
    }

    #[test]
    fn a_chunk_too_large_for_the_memory_is_refused() {
        let file = Tiff::int16(2, 2, &[0; 4]).claiming(60_000, 60_000);
        let mut bytes = file.packed(Packing::PackBits).bytes();
        bytes.resize(4_000_000, 0);
        let options = ImportOptions::default();
        let opened = geotiff::open(Input::memory(bytes), Path::new("x.tif"), &options);
        let message = opened.unwrap_err().to_string();
        assert!(
            message.contains("7.2 GB") && message.contains("TILED=YES"),
            "{message}"
        );
    }
}
