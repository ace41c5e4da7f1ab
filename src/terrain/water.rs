//! From a picture to the mask that says where water is.
//!
//! The picture lies over the whole source, whatever its size; a sample takes the pixel that it
//! falls into. A square of samples is water when any of its samples is.

use super::detail::DetailMask;
use crate::world::{WaterMask, water};

/// From half grey up a pixel is water.
const LEAST_WATER: u8 = 128;

/// The water mask of a ground of so many samples.
pub fn water_mask(picture: &DetailMask, samples: [u32; 2]) -> WaterMask {
    in_squares(picture, samples, water::shift(samples))
}

fn in_squares(picture: &DetailMask, samples: [u32; 2], shift: u32) -> WaterMask {
    let [columns, rows] = [0, 1].map(|axis| pixels(picture, axis, samples, shift));
    let width = picture.size[0] as usize;
    WaterMask::from_fn(samples, shift, |x, z| {
        let columns = &columns[x as usize];
        let is_water = |row: &usize| {
            let row = &picture.greys[row * width..][..width];
            columns.iter().any(|&column| row[column] >= LEAST_WATER)
        };
        rows[z as usize].iter().any(is_water)
    })
}

/// The columns of pixels that samples of each column of squares fall into, or the rows.
fn pixels(picture: &DetailMask, axis: usize, samples: [u32; 2], shift: u32) -> Vec<Vec<usize>> {
    let last = samples[axis] - 1;
    let of_square = |square: u32| {
        let first = square << shift;
        let end = first.saturating_add((1 << shift) - 1).min(last);
        let mut pixels: Vec<usize> = (first..=end)
            .map(|sample| picture.pixel(sample as i32, axis, samples))
            .collect();
        pixels.dedup();
        pixels
    };
    (0..=last >> shift).map(of_square).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn water_begins_at_half_grey() {
        let picture = DetailMask {
            size: [3, 1],
            greys: vec![127, 128, 255],
        };
        let mask = water_mask(&picture, [6, 2]);
        let (o, x) = (false, true);
        assert_eq!(mask.dry([0, 1], [6, 1]), [x, x, o, o, o, o]);
    }

    proptest! {
        /// The naive twin: every sample, asked alone.
        #[test]
        fn a_square_is_water_when_any_of_its_samples_is(
            width in 1u32..30, height in 1u32..30, size in (1u32..40, 1u32..7), shift in 0u32..4, seed in any::<u64>(),
        ) {
            let grey = |i: u32| ((seed ^ u64::from(i)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
            let picture = DetailMask {
                size: size.into(),
                greys: (0..size.0 * size.1).map(|i| grey(i) / 4 * 3).collect(),
            };
            let mask = in_squares(&picture, [width, height], shift);
            let mut white = std::collections::HashSet::new();
            for (x, z) in (0..width).flat_map(|x| (0..height).map(move |z| (x, z))) {
                let pixel = z * size.1 / height * size.0 + x * size.0 / width;
                if picture.greys[pixel as usize] >= 128 {
                    white.insert([x >> shift, z >> shift]);
                }
            }
            let [columns, rows] = mask.size();
            prop_assert!((0..columns).all(|x| (0..rows).all(|z| mask.is_white([x, z]) == white.contains(&[x, z]))));
            prop_assert_eq!(mask.is_black(), white.is_empty());
        }
    }
}
