//! Values as a file has them, of any type, turned into samples with their voids marked.
//!
//! - Small integers go their own way, without floats: most of the world's elevation is of them.
//! - [`kind_of`] says which kind of samples holds the values of a type; whoever lays values into
//!   samples of that kind loses nothing.

use exr::prelude::f16;
use tiff::decoder::DecodingResult as Values;
use tiff::tags::SampleFormat;

use super::numbers::{Kind, Number, Numbers, each_kind};
use super::options::ByteOrder;
use super::voids::VoidRule;

/// The kind for values of a type, which one of the void rules takes care of.
pub(super) fn kind_of(format: SampleFormat, bits: u16) -> Kind {
    match (format, bits) {
        (SampleFormat::IEEEFP, 16 | 32) => Kind::F32,
        (SampleFormat::Int, 8 | 16) | (SampleFormat::Uint, 1 | 8) => Kind::I16,
        (SampleFormat::Uint, 16) => Kind::I32,
        _ => Kind::F64,
    }
}

/// The values of bytes as they lie in a file; `None` for a type that nobody reads.
pub(super) fn from_bytes(
    bytes: &[u8],
    format: SampleFormat,
    bits: u16,
    order: ByteOrder,
) -> Option<Values> {
    macro_rules! all {
        ($type:ty) => {{
            let words = bytes.as_chunks::<{ size_of::<$type>() }>().0.iter();
            match order {
                ByteOrder::Little => words.map(|word| <$type>::from_le_bytes(*word)).collect(),
                ByteOrder::Big => words.map(|word| <$type>::from_be_bytes(*word)).collect(),
            }
        }};
    }
    Some(match (format, bits) {
        // Bits stay packed: whoever knows the rows unpacks them.
        (SampleFormat::Uint, 1 | 8) => Values::U8(bytes.to_vec()),
        (SampleFormat::Uint, 16) => Values::U16(all!(u16)),
        (SampleFormat::Uint, 32) => Values::U32(all!(u32)),
        (SampleFormat::Uint, 64) => Values::U64(all!(u64)),
        (SampleFormat::Int, 8) => Values::I8(all!(i8)),
        (SampleFormat::Int, 16) => Values::I16(all!(i16)),
        (SampleFormat::Int, 32) => Values::I32(all!(i32)),
        (SampleFormat::Int, 64) => Values::I64(all!(i64)),
        (SampleFormat::IEEEFP, 16) => {
            let halves: Vec<f16> = all!(f16);
            Values::F32(halves.into_iter().map(f16::to_f32).collect())
        }
        (SampleFormat::IEEEFP, 32) => Values::F32(all!(f32)),
        (SampleFormat::IEEEFP, 64) => Values::F64(all!(f64)),
        _ => return None,
    })
}

/// Of bits, in rows that begin with a byte each, one value a bit.
pub(super) fn unpack(values: Values, row_bits: usize) -> Values {
    let Values::U8(bytes) = values else {
        return values;
    };
    let rows = bytes.chunks(row_bits.div_ceil(8).max(1));
    let bits = |byte: &u8| {
        let byte = *byte;
        (0..8).map(move |bit| byte >> (7 - bit) & 1)
    };
    Values::U8(
        rows.flat_map(|row| row.iter().flat_map(bits).take(row_bits))
            .collect(),
    )
}

pub(super) fn count(values: &Values) -> usize {
    match values {
        Values::U8(v) => v.len(),
        Values::U16(v) => v.len(),
        Values::U32(v) => v.len(),
        Values::U64(v) => v.len(),
        Values::I8(v) => v.len(),
        Values::I16(v) => v.len(),
        Values::I32(v) => v.len(),
        Values::I64(v) => v.len(),
        Values::F16(v) => v.len(),
        Values::F32(v) => v.len(),
        Values::F64(v) => v.len(),
    }
}

/// Which of the values go where: some of each row, so many apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub count: usize,
    /// The first value that is ours.
    pub from: usize,
    /// Values from one of ours to the next.
    pub stride: usize,
    /// Values from row to row.
    pub pitch: usize,
    /// How many of a row are ours.
    pub width: usize,
    /// Where the first sample goes.
    pub to: usize,
    /// Samples from row to row.
    pub to_pitch: usize,
}

/// Puts values into samples.
pub(super) fn lay(values: &Values, rows: &Rows, rule: &VoidRule, samples: &mut Numbers) {
    each_kind!(samples, samples => lay_any(values, rows, rule, samples));
}

fn lay_any<T: Number>(values: &Values, rows: &Rows, rule: &VoidRule, samples: &mut [T]) {
    match values {
        Values::U8(v) => lay_small(v, rows, rule, samples),
        Values::U16(v) => lay_small(v, rows, rule, samples),
        Values::I8(v) => lay_small(v, rows, rule, samples),
        Values::I16(v) => lay_small(v, rows, rule, samples),
        Values::U32(v) => each(v, rows, samples, |v| rule.sample(f64::from(v))),
        Values::U64(v) => each(v, rows, samples, |v| rule.sample(v as f64)),
        Values::I32(v) => each(v, rows, samples, |v| rule.sample(f64::from(v))),
        Values::I64(v) => each(v, rows, samples, |v| rule.sample(v as f64)),
        Values::F16(v) => each(v, rows, samples, |v| rule.sample(f64::from(v))),
        Values::F32(v) => each(v, rows, samples, |v| rule.sample(f64::from(v))),
        Values::F64(v) => each(v, rows, samples, |v| rule.sample(v)),
    }
}

fn lay_small<V: Copy + Into<i32>, T: Number>(
    values: &[V],
    rows: &Rows,
    rule: &VoidRule,
    samples: &mut [T],
) {
    let [a, b] = rule.small_voids();
    each(values, rows, samples, |value| {
        let value: i32 = value.into();
        let void = value == a || value == b;
        if void { T::VOID } else { T::from_i32(value) }
    });
}

fn each<V: Copy, T>(values: &[V], rows: &Rows, samples: &mut [T], sample: impl Fn(V) -> T) {
    for row in 0..rows.count {
        let from = &values[rows.from + row * rows.pitch..];
        let to = &mut samples[rows.to + row * rows.to_pitch..][..rows.width];
        if rows.stride == 1 {
            // A loop over two slices of one length vectorises.
            for (to, from) in to.iter_mut().zip(&from[..rows.width]) {
                *to = sample(*from);
            }
        } else {
            for (to, from) in to.iter_mut().zip(from.iter().step_by(rows.stride)) {
                *to = sample(*from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [(SampleFormat, u16); 11] = [
        (SampleFormat::Uint, 8),
        (SampleFormat::Uint, 16),
        (SampleFormat::Uint, 32),
        (SampleFormat::Uint, 64),
        (SampleFormat::Int, 8),
        (SampleFormat::Int, 16),
        (SampleFormat::Int, 32),
        (SampleFormat::Int, 64),
        (SampleFormat::IEEEFP, 16),
        (SampleFormat::IEEEFP, 32),
        (SampleFormat::IEEEFP, 64),
    ];

    fn bytes(format: SampleFormat, bits: u16, value: f64) -> Vec<u8> {
        match (format, bits) {
            (SampleFormat::IEEEFP, 16) => f16::from_f64(value).to_le_bytes().to_vec(),
            (SampleFormat::IEEEFP, 32) => (value as f32).to_le_bytes().to_vec(),
            (SampleFormat::IEEEFP, _) => value.to_le_bytes().to_vec(),
            _ => (value as i64).to_le_bytes()[..bits as usize / 8].to_vec(),
        }
    }

    #[test]
    fn values_of_every_type_come_out_in_either_order() {
        for (format, bits) in TYPES {
            let numbers = [0.0, 1.0, 100.0, 127.0, 7.0, 3.0];
            let little: Vec<Vec<u8>> = numbers.iter().map(|v| bytes(format, bits, *v)).collect();
            let big: Vec<Vec<u8>> = little
                .iter()
                .map(|b| b.iter().rev().copied().collect())
                .collect();
            let rule = match format {
                SampleFormat::Uint => VoidRule::unsigned(Some(7.0)),
                _ => VoidRule::signed(Some(7.0)),
            };
            let rows = Rows {
                count: 2,
                from: 1,
                stride: 1,
                pitch: 3,
                width: 2,
                to: 0,
                to_pitch: 2,
            };
            for (bytes, order) in [(little, ByteOrder::Little), (big, ByteOrder::Big)] {
                let values = from_bytes(&bytes.concat(), format, bits, order).unwrap();
                assert_eq!(count(&values), 6);
                let mut samples = Numbers::voids(kind_of(format, bits), 4);
                lay(&values, &rows, &rule, &mut samples);
                let found = samples.to_f64();
                assert_eq!((found[0], found[1], found[3]), (1.0, 100.0, 3.0));
                assert!(found[2].is_nan());
            }
        }
    }

    #[test]
    fn rows_of_bits_begin_with_a_byte() {
        let packed = vec![0b1010_0000, 0xff, 0b0100_0001, 0];
        let bits = unpack(Values::U8(packed), 9);
        let expected = [1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0];
        assert!(matches!(bits, Values::U8(bits) if bits == expected));
    }

    #[test]
    fn the_ends_of_small_types_are_held_and_the_srtm_void_is_none() {
        let all = |values: Values, rule: VoidRule, kind| {
            let width = count(&values);
            let rows = Rows {
                count: 1,
                from: 0,
                stride: 1,
                pitch: width,
                width,
                to: 0,
                to_pitch: width,
            };
            let mut samples = Numbers::voids(kind, width);
            lay(&values, &rows, &rule, &mut samples);
            samples.to_f64()
        };
        let signed = all(
            Values::I16(vec![-32_768, -32_767, 32_767]),
            VoidRule::signed(None),
            Kind::I16,
        );
        assert!(signed[0].is_nan() && signed[1..] == [-32_767.0, 32_767.0]);
        let unsigned = all(
            Values::U16(vec![0, 65_535]),
            VoidRule::unsigned(None),
            Kind::I32,
        );
        assert_eq!(unsigned, [0.0, 65_535.0]);
        let declared = all(
            Values::U16(vec![0, 65_535]),
            VoidRule::unsigned(Some(65_535.0)),
            Kind::I32,
        );
        assert!(declared[1].is_nan());
        let odd = all(
            Values::I16(vec![3, 4]),
            VoidRule::signed(Some(3.5)),
            Kind::I16,
        );
        assert_eq!(odd, [3.0, 4.0]);
    }
}
