//! Samples in the narrowest type that holds them as the file had them.
//!
//! - A void is a value of its own: the lowest integer, or NaN. No height is one.
//! - Kinds are ordered: a wider one holds whatever a narrower one can.

use bytemuck::Pod;

/// Which type samples are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    I16,
    I32,
    F32,
    F64,
}

impl Kind {
    pub fn bytes(self) -> usize {
        match self {
            Kind::I16 => 2,
            Kind::I32 | Kind::F32 => 4,
            Kind::F64 => 8,
        }
    }

    /// The narrowest kind for samples of both.
    pub fn join(self, other: Kind) -> Kind {
        match (self.min(other), self.max(other)) {
            // Floats of 32 bits do not hold all of these.
            (Kind::I32, Kind::F32) => Kind::F64,
            (_, wider) => wider,
        }
    }
}

/// One sample.
pub(super) trait Number: Pod + PartialOrd + Send + Sync {
    const VOID: Self;

    /// NaN when it is a void.
    fn to_f64(self) -> f64;

    /// A void when it is NaN; the nearest there is when it is out of reach.
    fn from_f64(value: f64) -> Self;

    /// Of a number that this type holds.
    fn from_i32(value: i32) -> Self;

    fn is_void(self) -> bool {
        self.to_f64().is_nan()
    }

    /// Voids, the lowest and the highest number of a row; infinities where there is none.
    fn survey(row: &[Self]) -> (usize, f64, f64) {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut voids = 0;
        for number in row {
            let value = number.to_f64();
            voids += usize::from(value.is_nan());
            // NaN loses every `min` and `max`.
            (low, high) = (low.min(value), high.max(value));
        }
        (voids, low, high)
    }

    /// How much neighbours differ: the sum, the largest and the number of differences.
    fn steps(row: &[Self]) -> (f64, f64, usize) {
        let values = row
            .windows(2)
            .map(|pair| pair[1].to_f64() - pair[0].to_f64());
        values
            .filter(|step| !step.is_nan())
            .fold((0.0, 0.0, 0), |(sum, most, count), step| {
                let step = step.abs();
                (sum + step, f64::max(most, step), count + 1)
            })
    }
}

/// Of integers the lowest is the void.
macro_rules! integer {
    ($type:ty) => {
        const VOID: $type = <$type>::MIN;

        fn to_f64(self) -> f64 {
            if self == Self::VOID {
                f64::NAN
            } else {
                f64::from(self)
            }
        }

        fn from_f64(value: f64) -> $type {
            if value.is_nan() {
                Self::VOID
            } else {
                (value as $type).max(Self::VOID + 1)
            }
        }

        fn from_i32(value: i32) -> $type {
            value as $type
        }
    };
}

impl Number for i16 {
    integer!(i16);

    /// The sum is that of whole numbers, so its order does not matter: loops that vectorise.
    fn survey(row: &[i16]) -> (usize, f64, f64) {
        let (mut voids, mut low, mut high) = (0, i16::MAX, i16::MIN);
        for part in row.chunks(1 << 14) {
            let mut count = 0u16;
            for number in part {
                let void = *number == Self::VOID;
                count += u16::from(void);
                low = low.min(if void { i16::MAX } else { *number });
                high = high.max(*number);
            }
            voids += usize::from(count);
        }
        if voids == row.len() {
            return (voids, f64::INFINITY, f64::NEG_INFINITY);
        }
        (voids, f64::from(low), f64::from(high))
    }

    fn steps(row: &[i16]) -> (f64, f64, usize) {
        let (mut sum, mut most, mut count) = (0u64, 0, 0);
        // So many differences of 16 bits do not overflow 32.
        let mut rest = row;
        while rest.len() > 1 {
            let part = &rest[..rest.len().min(1 << 15)];
            let (mut part_sum, mut part_count) = (0u32, 0u32);
            for (a, b) in part.iter().zip(&part[1..]) {
                let both = *a != Self::VOID && *b != Self::VOID;
                let step = if both { u32::from(a.abs_diff(*b)) } else { 0 };
                part_sum += step;
                part_count += u32::from(both);
                most = most.max(step);
            }
            sum += u64::from(part_sum);
            count += part_count as usize;
            rest = &rest[part.len() - 1..];
        }
        (sum as f64, f64::from(most), count)
    }
}

impl Number for i32 {
    integer!(i32);
}

impl Number for f32 {
    const VOID: f32 = f32::NAN;

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn from_f64(value: f64) -> f32 {
        value as f32
    }

    fn from_i32(value: i32) -> f32 {
        value as f32
    }
}

impl Number for f64 {
    const VOID: f64 = f64::NAN;

    fn to_f64(self) -> f64 {
        self
    }

    fn from_f64(value: f64) -> f64 {
        value
    }

    fn from_i32(value: i32) -> f64 {
        f64::from(value)
    }
}

/// Samples of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Numbers {
    I16(Vec<i16>),
    I32(Vec<i32>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// The same for each kind: `$numbers` are a slice or a vector of a [`Number`].
macro_rules! each_kind {
    ($samples:expr, $numbers:ident => $result:expr) => {
        match $samples {
            $crate::import::numbers::Numbers::I16($numbers) => $result,
            $crate::import::numbers::Numbers::I32($numbers) => $result,
            $crate::import::numbers::Numbers::F32($numbers) => $result,
            $crate::import::numbers::Numbers::F64($numbers) => $result,
        }
    };
}
pub(super) use each_kind;

impl Numbers {
    pub fn voids(kind: Kind, count: usize) -> Numbers {
        match kind {
            Kind::I16 => Numbers::I16(vec![Number::VOID; count]),
            Kind::I32 => Numbers::I32(vec![Number::VOID; count]),
            Kind::F32 => Numbers::F32(vec![Number::VOID; count]),
            Kind::F64 => Numbers::F64(vec![Number::VOID; count]),
        }
    }

    pub fn from_f64(kind: Kind, values: &[f64]) -> Numbers {
        fn all<T: Number>(values: &[f64]) -> Vec<T> {
            values.iter().map(|value| T::from_f64(*value)).collect()
        }
        match kind {
            Kind::I16 => Numbers::I16(all(values)),
            Kind::I32 => Numbers::I32(all(values)),
            Kind::F32 => Numbers::F32(all(values)),
            Kind::F64 => Numbers::F64(all(values)),
        }
    }

    pub fn to_f64(&self) -> Vec<f64> {
        each_kind!(self, numbers => numbers.iter().map(|n| n.to_f64()).collect())
    }

    pub fn into_kind(self, kind: Kind) -> Numbers {
        if self.kind() == kind {
            return self;
        }
        Numbers::from_f64(kind, &self.to_f64())
    }

    pub fn kind(&self) -> Kind {
        match self {
            Numbers::I16(_) => Kind::I16,
            Numbers::I32(_) => Kind::I32,
            Numbers::F32(_) => Kind::F32,
            Numbers::F64(_) => Kind::F64,
        }
    }

    pub fn len(&self) -> usize {
        each_kind!(self, numbers => numbers.len())
    }

    pub fn bytes(&self) -> &[u8] {
        each_kind!(self, numbers => bytemuck::cast_slice(numbers))
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        each_kind!(self, numbers => bytemuck::cast_slice_mut(numbers))
    }

    /// This number is no height.
    pub fn declare_void(&mut self, nodata: f64) {
        fn in_all<T: Number>(numbers: &mut [T], nodata: f64) {
            for number in numbers.iter_mut().filter(|n| n.to_f64() == nodata) {
                *number = T::VOID;
            }
        }
        // Single floats are written with too few digits, or with too many.
        let nodata = match self {
            Numbers::F32(_) => f64::from(nodata as f32),
            _ => nodata,
        };
        each_kind!(self, numbers => in_all(numbers, nodata));
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Random;
    use super::*;

    #[test]
    fn kinds_that_hold_both() {
        assert_eq!(Kind::I16.join(Kind::I32), Kind::I32);
        assert_eq!(Kind::F32.join(Kind::I16), Kind::F32);
        assert_eq!(Kind::F32.join(Kind::I32), Kind::F64);
        assert_eq!(Kind::F64.join(Kind::I16), Kind::F64);
    }

    #[test]
    fn every_kind_has_a_void() {
        let values = [1.0, f64::NAN, -3.0, 32_767.0, -32_767.0];
        for kind in [Kind::I16, Kind::I32, Kind::F32, Kind::F64] {
            let numbers = Numbers::from_f64(kind, &values);
            let again = numbers.to_f64();
            assert_eq!((again[0], again[2]), (1.0, -3.0));
            assert!(again[1].is_nan());
            assert_eq!(again[3..], values[3..]);
            let voids = Numbers::voids(kind, 3);
            assert!(voids.to_f64().iter().all(|v| v.is_nan()));
            let mut declared = numbers.clone();
            declared.declare_void(-3.0);
            assert!(declared.to_f64()[2].is_nan() && declared.to_f64()[0] == 1.0);
        }
    }

    #[test]
    fn what_cannot_be_held_is_no_void() {
        assert_eq!(i16::from_f64(-1e9), -32_767);
        assert_eq!(i32::from_f64(-1e30), -i32::MAX);
    }

    #[test]
    fn rows_of_integers_answer_as_rows_of_floats() {
        let mut random = Random(3);
        for (count, voids) in [
            (0, 0),
            (1, 0),
            (1, 1),
            (50_000, 0),
            (70_000, 9),
            (40_000, 1),
        ] {
            let row: Vec<i16> = (0..count)
                .map(|_| match voids {
                    n if n > 0 && random.below(n) == 0 => i16::VOID,
                    _ => (random.below(65_535) as i32 - 32_767) as i16,
                })
                .collect();
            let floats: Vec<f64> = row.iter().map(|n| n.to_f64()).collect();
            assert_eq!(i16::survey(&row), f64::survey(&floats));
            assert_eq!(i16::steps(&row), f64::steps(&floats));
        }
    }
}
