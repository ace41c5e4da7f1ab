//! Samples of a TIFF that do not count: a mask in the file, one beside it, or a band of alpha.
//!
//! The `tiff` crate reads no masks by that name, so it is shown a view of the file in which the
//! mask is the first picture and a grey one. From there a mask is samples like others, of which 0
//! is a void.
//!
//! - A mask is that of the picture when it has its size; those of overviews are passed over.
//! - What hides samples is read for the rows of samples that were just read, no more.
//! - A mask that cannot be read is a warning: there may be heights under it.

use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use tiff::decoder::Decoder;
use tiff::tags::{ByteOrder as Endian, IfdPointer, Tag};

use super::chunks::{Chunks, TiffDecoder};
use super::directory::Directory;
use super::geotiff::damaged;
use super::input::Input;
use super::lint::Warning;
use super::numbers::{Number, Numbers, each_kind};
use super::raster::{Bands, Take};
use super::samples::Layout;
use super::voids::VoidRule;
use crate::error::{Error, Result};
use crate::source::Area;

/// In the kind of a picture: a smaller copy, and a mask.
const OVERVIEW: u32 = 1;
const MASK: u32 = 4;
/// Directories may point at each other in a circle.
const MOST_PICTURES: usize = 64;
const BLACK_IS_ZERO: u32 = 1;

/// The picture whose samples may be hidden.
pub(super) struct Picture<'a> {
    pub input: &'a Input,
    pub layout: &'a Layout,
    pub south_up: bool,
    pub path: &'a Path,
}

/// Heights, and what hides some of them.
pub(super) struct Masked {
    heights: Chunks,
    masks: Vec<Chunks>,
}

impl Masked {
    /// `decoder` stands at the picture.
    pub fn open(
        decoder: &mut TiffDecoder,
        picture: &Picture,
        rule: VoidRule,
        warnings: &mut Vec<Warning>,
    ) -> Result<Masked> {
        let mut masks = Vec::new();
        if let Some(band) = picture.layout.alpha {
            let mut alpha = picture.layout.clone();
            alpha.band = band;
            masks.push(picture.chunks(decoder, alpha, not_zero())?);
        }
        let mut found = vec![picture.mask_inside(decoder)];
        found.push(picture.mask_beside());
        for mask in found {
            match mask {
                Ok(mask) => masks.extend(mask),
                Err(error) => warnings.push(not_read(&error)),
            }
        }
        Ok(Masked {
            heights: picture.chunks(decoder, picture.layout.clone(), rule)?,
            masks,
        })
    }
}

/// Where GDAL puts the mask of a file, whether it is there or not.
pub fn mask_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".msk");
    PathBuf::from(name)
}

/// 0 is a void.
fn not_zero() -> VoidRule {
    VoidRule::unsigned(Some(0.0))
}

fn not_read(error: &Error) -> Warning {
    let text = format!("a mask is not read, and what it hides is taken for heights ({error})");
    Warning::new("mask", text, "--nodata NUMBER, or a file without a mask")
}

impl Picture<'_> {
    fn chunks(&self, decoder: &mut TiffDecoder, layout: Layout, rule: VoidRule) -> Result<Chunks> {
        let input = self.input.clone();
        Chunks::open(decoder, input, layout, rule, self.south_up, self.path)
    }

    /// The mask that is a picture of its own in the file.
    fn mask_inside(&self, decoder: &mut TiffDecoder) -> Result<Option<Chunks>> {
        let Some(directory) = find_mask(decoder) else {
            return Ok(None);
        };
        let order = decoder.byte_order();
        let view = view(self.input, order, directory).map_err(|e| damaged(self.path, e.into()))?;
        self.mask(view, self.path).map(Some)
    }

    /// GDAL's file beside the picture's, whose first picture is the mask.
    fn mask_beside(&self) -> Result<Option<Chunks>> {
        let path = mask_of(self.path);
        // Opening a pipe would wait for its other end.
        if !fs::metadata(&path).is_ok_and(|facts| facts.is_file()) {
            return Ok(None);
        }
        let input = Input::open(&path).map_err(|e| Error::io(&path, "cannot open", e))?;
        self.mask(input, &path).map(Some)
    }

    /// The first picture of a file as this one's mask.
    fn mask(&self, input: Input, path: &Path) -> Result<Chunks> {
        let decoder = Decoder::new(BufReader::new(input.clone()));
        let mut decoder = decoder.map_err(|e| damaged(path, e))?;
        let layout = Layout::of_mask(&mut decoder, path, self.layout)?;
        Chunks::open(&mut decoder, input, layout, not_zero(), self.south_up, path)
    }
}

/// Where the directory of the picture's mask is.
fn find_mask(decoder: &mut TiffDecoder) -> Option<IfdPointer> {
    let mut next = decoder.image_ifd().directory().next();
    for _ in 0..MOST_PICTURES {
        let pointer = next?;
        let directory = decoder.read_directory(pointer).ok()?;
        let mut tags = decoder.read_directory_tags(&directory);
        let kind = tags.find_tag_unsigned::<u32>(Tag::NewSubfileType);
        if kind.ok().flatten().unwrap_or(0) & (MASK | OVERVIEW) == MASK {
            return Some(pointer);
        }
        next = directory.next();
    }
    None
}

/// The file with this directory for its first, and grey what it describes.
fn view(input: &Input, order: Endian, pointer: IfdPointer) -> io::Result<Input> {
    let directory = Directory::read(input, order, pointer)?;
    let first = directory.first_of(input);
    directory.with(&first, Tag::PhotometricInterpretation, BLACK_IS_ZERO)
}

impl Bands for Masked {
    fn read(&mut self, area: Area, take: &mut Take) -> Result<()> {
        let Masked { heights, masks } = self;
        let mut z = area.z;
        heights.read(area, &mut |mut numbers| {
            let height = numbers.len() as u32 / area.width;
            let rows = Area { z, height, ..area };
            z += height;
            for mask in masks.iter_mut() {
                hide(mask, rows, &mut numbers)?;
            }
            take(numbers)
        })
    }
}

/// Makes voids of the numbers of an area that a mask hides.
fn hide(mask: &mut Chunks, area: Area, numbers: &mut Numbers) -> Result<()> {
    let mut done = 0;
    mask.read(area, &mut |kept| {
        let part = done..done + kept.len();
        done = part.end;
        each_kind!(&kept, kept => each_kind!(&mut *numbers, numbers => {
            hide_some(kept, &mut numbers[part])
        }));
        Ok(())
    })
}

fn hide_some<K: Number, N: Number>(kept: &[K], numbers: &mut [N]) {
    for (number, kept) in numbers.iter_mut().zip(kept) {
        if kept.is_void() {
            *number = N::VOID;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixtures::{Packing, Tiff};
    use super::super::geotiff;
    use super::super::options::ImportOptions;
    use super::super::raster::Raster;
    use super::*;

    const SOUTH_UP: [f64; 16] = {
        let mut matrix = [0.0; 16];
        (matrix[0], matrix[5]) = (10.0, 10.0);
        matrix
    };
    /// Unspecified; alpha of both kinds.
    const EXTRA: [u16; 3] = [0, 1, 2];

    fn open(bytes: Vec<u8>) -> Result<Raster> {
        let options = ImportOptions::default();
        geotiff::open(Input::memory(bytes), Path::new("x.tif"), &options)
    }

    fn kept(size: [u32; 2]) -> Vec<bool> {
        let all = 0..size[0] * size[1];
        all.map(|i| i * 7 % 11 > 2 && i % 53 > 9).collect()
    }

    fn heights(size: [u32; 2]) -> Vec<i16> {
        (0..(size[0] * size[1]) as i16).collect()
    }

    /// The heights that count, as numbers, from the north.
    fn naive(size: [u32; 2], kept: &[bool], south_up: bool) -> Vec<f64> {
        let pairs = heights(size).into_iter().zip(kept);
        let shown = |(height, kept): (i16, &bool)| match kept {
            true => f64::from(height),
            false => f64::NAN,
        };
        let samples: Vec<f64> = pairs.map(shown).collect();
        let rows = samples.chunks(size[0] as usize);
        match south_up {
            true => rows.rev().flatten().copied().collect(),
            false => samples,
        }
    }

    fn same(found: &[f64], expected: &[f64]) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
        found.len() == expected.len() && found.iter().zip(expected).all(same)
    }

    fn samples(file: &Tiff) -> Vec<f64> {
        open(file.bytes()).unwrap().into_grid().unwrap().samples
    }

    /// Chunks of a picture.
    #[derive(Clone, Debug)]
    struct Arrangement {
        tiled: bool,
        chunk: [u32; 2],
        packing: Packing,
    }

    impl Arrangement {
        fn any() -> impl Strategy<Value = Arrangement> {
            let packing = prop_oneof![
                Just(Packing::None),
                Just(Packing::PackBits),
                Just(Packing::Zstd)
            ];
            let numbers = (any::<bool>(), [1u32..3, 1u32..40], packing);
            numbers.prop_map(|(tiled, chunk, packing)| Arrangement {
                tiled,
                chunk,
                packing,
            })
        }

        fn of(&self, picture: Tiff) -> Tiff {
            let [width, height] = self.chunk;
            let picture = picture.packed(self.packing);
            match self.tiled {
                true => picture.tiles(16 * width, 16 * (1 + height / 16)),
                false => picture.strips(height),
            }
        }
    }

    fn masked(
        size: [u32; 2],
        bits: u16,
        [picture, mask]: &[Arrangement; 2],
        [south_up, big]: [bool; 2],
    ) -> Tiff {
        let [width, height] = size;
        let file = picture.of(Tiff::int16(width, height, &heights(size)));
        let file = match south_up {
            true => file.doubles(34264, &SOUTH_UP),
            false => file,
        };
        let file = file.and(mask.of(Tiff::mask(width, height, bits, &kept(size))));
        if big { file.big() } else { file }
    }

    proptest! {
        #[test]
        fn a_mask_of_any_arrangement_hides_what_it_says(
            size in [2u32..70, 40u32..70],
            arrangements in [Arrangement::any(), Arrangement::any()],
            one_bit in any::<bool>(),
            flags in any::<[bool; 2]>(),
            start in [0u32..70, 0u32..70],
        ) {
            let bits = if one_bit { 1 } else { 8 };
            let mut raster = open(masked(size, bits, &arrangements, flags).bytes()).unwrap();
            prop_assert!(raster.head.warnings.is_empty());
            let [x, z] = [0, 1].map(|axis| start[axis] % size[axis]);
            let area = Area { x, z, width: size[0] - x, height: size[1] - z };
            let all = naive(size, &kept(size), flags[0]);
            let rows = all.chunks(size[0] as usize).skip(z as usize);
            let expected: Vec<f64> = rows.flat_map(|row| &row[x as usize..]).copied().collect();
            prop_assert!(same(&raster.part(area).unwrap(), &expected));
        }

        #[test]
        fn damaged_masks_are_read_or_refused(
            arrangements in [Arrangement::any(), Arrangement::any()],
            big in any::<bool>(),
            hits in prop::collection::vec((0usize..400, any::<u8>()), 1..4),
        ) {
            let file = masked([20, 18], 1, &arrangements, [false, big]);
            let mut bytes = file.bytes();
            let alone = arrangements[0].of(Tiff::int16(20, 18, &heights([20, 18])));
            let behind = (if big { alone.big() } else { alone }).bytes().len();
            for (at, value) in hits {
                let at = behind + at % (bytes.len() - behind);
                bytes[at] = value;
            }
            let Ok(mut raster) = open(bytes) else { return Ok(()) };
            let read = raster.samples.read(raster.head.whole(), &mut |_| Ok(()));
            let message = read.err().map(|e| e.to_string()).unwrap_or_default();
            prop_assert!(!message.contains('\n'), "{}", message);
        }
    }

    #[test]
    fn masks_of_overviews_and_other_pictures_are_passed_over() {
        let size = [40, 30];
        let file = Tiff::int16(40, 30, &heights(size));
        let smaller = Tiff::int16(20, 15, &heights([20, 15])).longs(254, &[1]);
        let its_mask = Tiff::mask(20, 15, 1, &[false; 300]);
        let overview = its_mask.clone().longs(254, &[5]);
        let mask = Tiff::mask(40, 30, 1, &kept(size));
        let all = file.clone().and(smaller.clone()).and(overview.clone());
        let expected = naive(size, &kept(size), false);
        assert!(same(&samples(&all.clone().and(mask)), &expected));
        assert!(same(&samples(&all), &naive(size, &[true; 1200], false)));
    }

    #[test]
    fn what_a_sparse_mask_leaves_out_is_hidden() {
        let mask = Tiff::mask(8, 4, 1, &[true; 32]).strips(2).without_chunk(1);
        let file = Tiff::int16(8, 4, &heights([8, 4])).and(mask);
        let expected: Vec<bool> = (0..32).map(|i| i < 16).collect();
        assert!(same(&samples(&file), &naive([8, 4], &expected, false)));
    }

    #[test]
    fn a_mask_that_cannot_be_read_is_told() {
        let file = |mask: Tiff| Tiff::int16(4, 4, &heights([4, 4])).and(mask);
        let of_bits = |bits| Tiff::mask(4, 4, bits, &[false; 16]);
        let odd = [
            (Tiff::mask(4, 3, 8, &[false; 12]), "4 x 3 samples"),
            (of_bits(1).shorts(266, &[2]), "1 bits"),
            (of_bits(8).packed(Packing::Other(7)), "JPEG"),
            (Tiff::int16(4, 4, &[0; 16]).longs(254, &[4]), "16 bits"),
        ];
        for (mask, what) in odd {
            let grid = open(file(mask).bytes()).unwrap().into_grid().unwrap();
            assert_eq!(grid.samples[5], 5.0);
            let [warning] = &grid.warnings[..] else {
                panic!("{what}: {:?}", grid.warnings)
            };
            assert!(warning.text.contains(what), "{}", warning.text);
        }
    }

    #[test]
    fn alpha_hides_heights_of_any_kind() {
        let size = [20, 18];
        let expected = naive(size, &kept(size), false);
        let pairs = || heights(size).into_iter().zip(kept(size));
        let whole = |(height, kept): (i16, bool)| [height, i16::from(kept) * 255];
        let mixed: Vec<i16> = pairs().flat_map(whole).collect();
        let [first, second] = [0, 1].map(|band| mixed.iter().skip(band).step_by(2).copied());
        let planes: Vec<i16> = first.chain(second).collect();
        let floats: Vec<f32> = mixed.iter().map(|v| f32::from(*v)).collect();
        for kind in EXTRA {
            let files = [
                Tiff::int16(20, 18, &mixed).bands(2),
                Tiff::int16(20, 18, &mixed).bands(2).tiles(16, 16),
                Tiff::int16(20, 18, &planes).planes(2).strips(5),
                Tiff::float32(20, 18, &floats)
                    .bands(2)
                    .packed(Packing::Zstd),
            ];
            for file in files.map(|file| file.shorts(338, &[kind])) {
                if kind == 0 {
                    assert!(open(file.bytes()).is_err());
                } else {
                    assert!(same(&samples(&file), &expected));
                }
            }
        }
    }

    #[test]
    fn alpha_can_be_asked_for_as_heights() {
        let file = Tiff::int16(2, 2, &[1, 0, 2, 7, 3, 8, 4, 9])
            .bands(2)
            .shorts(338, &[2]);
        let band = |band| {
            let options = ImportOptions {
                band: Some(band),
                ..Default::default()
            };
            let input = Input::memory(file.bytes());
            let raster = geotiff::open(input, Path::new("x.tif"), &options).unwrap();
            raster.into_grid().unwrap().samples
        };
        assert!(same(&band(1), &[f64::NAN, 2.0, 3.0, 4.0]));
        assert_eq!(band(2), [0.0, 7.0, 8.0, 9.0]);
    }

    #[test]
    fn a_mask_beside_the_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tif");
        let size = [20, 18];
        fs::write(&path, Tiff::int16(20, 18, &heights(size)).bytes()).unwrap();
        let read = || {
            let input = Input::open(&path).unwrap();
            let raster = geotiff::open(input, &path, &ImportOptions::default()).unwrap();
            raster.into_grid().unwrap()
        };
        assert!(same(&read().samples, &naive(size, &[true; 360], false)));
        let beside = folder.path().join("x.tif.msk");
        fs::write(
            &beside,
            Tiff::mask(20, 18, 8, &kept(size)).photometric(1).bytes(),
        )
        .unwrap();
        assert!(same(&read().samples, &naive(size, &kept(size), false)));
        fs::write(&beside, b"Dear diary").unwrap();
        let warnings = read().warnings;
        assert!(
            warnings[0].text.contains("x.tif.msk"),
            "{}",
            warnings[0].text
        );
    }
}
