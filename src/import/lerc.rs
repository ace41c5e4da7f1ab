//! LERC in TIFFs: chunks of Esri's limited-error compression, as GDAL writes them.
//!
//! The `tiff` crate hands out none; `lerc-rs` decodes what lies in a chunk, which may be compressed
//! once more. Bands that alternate are the values of a pixel ("depth").
//!
//! - In big-endian files GDAL turns the bytes of every number around before it is LERC's turn, so
//!   they are turned back.
//! - A chunk claims no more samples than it has room for in the picture.
//! - What a chunk's mask leaves out is void.

use std::io::{self, Error, ErrorKind, Read};

use ::lerc::{Image, SampleData};
use tiff::decoder::DecodingResult as Values;

use super::options::ByteOrder;

/// What chunks are compressed with before they are LERC's: second number of its tag.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Outer {
    #[default]
    Nothing,
    Deflate,
    Zstd,
}

impl Outer {
    /// Of the numbers of GDAL's LercParameters (50674), which a file may leave out.
    pub fn of(parameters: &[u32]) -> Option<Outer> {
        match parameters.get(1).copied().unwrap_or(0) {
            0 => Some(Outer::Nothing),
            1 => Some(Outer::Deflate),
            2 => Some(Outer::Zstd),
            _ => None,
        }
    }

    fn unpack(self, bytes: Vec<u8>, most: u64) -> io::Result<Vec<u8>> {
        let mut unpacked = Vec::new();
        match self {
            Outer::Nothing => return Ok(bytes),
            Outer::Deflate => flate2::read::ZlibDecoder::new(&bytes[..])
                .take(most)
                .read_to_end(&mut unpacked)?,
            Outer::Zstd => zstd::Decoder::new(&bytes[..])?
                .take(most)
                .read_to_end(&mut unpacked)?,
        };
        Ok(unpacked)
    }
}

/// A chunk's values, row by row, `width` pixels of `bands` values wide; fewer rows than `height`
/// where it ends with the picture.
pub(super) fn decode(
    bytes: Vec<u8>,
    outer: Outer,
    [width, height]: [u32; 2],
    bands: usize,
    order: ByteOrder,
) -> io::Result<(Values, u32)> {
    let room = u64::from(width) * u64::from(height) * bands as u64;
    // No type is wider, and LERC keeps a little beside it.
    let bytes = outer.unpack(bytes, room * 9 + (1 << 16))?;
    let damaged = |e: ::lerc::LercError| Error::new(ErrorKind::InvalidData, e.to_string());
    let info = ::lerc::decode_info(&bytes).map_err(damaged)?;
    let fits = info.width == width && info.height <= height && info.bands == 1;
    if !fits || info.depth as usize != bands {
        let what = format!("a chunk of {} x {} pixels", info.width, info.height);
        return Err(Error::new(ErrorKind::InvalidData, what));
    }
    let mut image = ::lerc::decode(&bytes).map_err(damaged)?;
    if order == ByteOrder::Big {
        turn_bytes(&mut image.data);
    }
    Ok((values(image, bands), info.height))
}

fn turn_bytes(data: &mut SampleData) {
    match data {
        SampleData::I8(_) | SampleData::U8(_) => {}
        SampleData::I16(v) => v.iter_mut().for_each(|v| *v = v.swap_bytes()),
        SampleData::U16(v) => v.iter_mut().for_each(|v| *v = v.swap_bytes()),
        SampleData::I32(v) => v.iter_mut().for_each(|v| *v = v.swap_bytes()),
        SampleData::U32(v) => v.iter_mut().for_each(|v| *v = v.swap_bytes()),
        SampleData::F32(v) => {
            (v.iter_mut()).for_each(|v| *v = f32::from_bits(v.to_bits().swap_bytes()))
        }
        SampleData::F64(v) => {
            (v.iter_mut()).for_each(|v| *v = f64::from_bits(v.to_bits().swap_bytes()))
        }
    }
}

fn values(image: Image, bands: usize) -> Values {
    if !image.all_valid() {
        return Values::F64(masked(&image, bands));
    }
    match image.data {
        SampleData::I8(v) => Values::I8(v),
        SampleData::U8(v) => Values::U8(v),
        SampleData::I16(v) => Values::I16(v),
        SampleData::U16(v) => Values::U16(v),
        SampleData::I32(v) => Values::I32(v),
        SampleData::U32(v) => Values::U32(v),
        SampleData::F32(v) => Values::F32(v),
        SampleData::F64(v) => Values::F64(v),
    }
}

/// Numbers, but none where the mask has no pixel.
fn masked(image: &Image, bands: usize) -> Vec<f64> {
    let mut numbers: Vec<f64> = match &image.data {
        SampleData::I8(v) => v.iter().map(|v| f64::from(*v)).collect(),
        SampleData::U8(v) => v.iter().map(|v| f64::from(*v)).collect(),
        SampleData::I16(v) => v.iter().map(|v| f64::from(*v)).collect(),
        SampleData::U16(v) => v.iter().map(|v| f64::from(*v)).collect(),
        SampleData::I32(v) => v.iter().map(|v| f64::from(*v)).collect(),
        SampleData::U32(v) => v.iter().map(|v| f64::from(*v)).collect(),
        SampleData::F32(v) => v.iter().map(|v| f64::from(*v)).collect(),
        SampleData::F64(v) => v.clone(),
    };
    if let Some(mask) = image.mask() {
        let pixels = numbers.chunks_mut(bands.max(1)).enumerate();
        for (_, pixel) in pixels.filter(|(at, _)| !mask.is_valid(*at)) {
            pixel.fill(f64::NAN);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_big_endian_files_are_turned_around() {
        let turned: Vec<i16> = [1i16, -2, 300, 4].map(i16::swap_bytes).to_vec();
        let exact = ::lerc::Precision::Lossless;
        let bytes = ::lerc::encode_slice(2, 2, &turned, exact).unwrap();
        let decoded = decode(bytes.clone(), Outer::Nothing, [2, 2], 1, ByteOrder::Big);
        assert!(matches!(decoded.unwrap(), (Values::I16(v), 2) if v == [1, -2, 300, 4]));
        // More than there is room for in the picture.
        assert!(decode(bytes, Outer::Nothing, [2, 1], 1, ByteOrder::Big).is_err());
    }

    #[test]
    fn what_the_mask_leaves_out_is_no_number() {
        let mut mask = ::lerc::bitmask::BitMask::all_valid(4);
        mask.set_invalid(2);
        let exact = ::lerc::Precision::Lossless;
        let bytes = ::lerc::encode_slice_masked(2, 2, &[5i16, 6, 7, 8], &mask, exact).unwrap();
        let (values, _) = decode(bytes, Outer::Nothing, [2, 2], 1, ByteOrder::Little).unwrap();
        let Values::F64(found) = values else {
            panic!("masked values are numbers")
        };
        assert_eq!((found[0], found[1], found[3]), (5.0, 6.0, 8.0));
        assert!(found[2].is_nan());
    }
}
