//! A picture that asks for more detail: white down to the lattice, grey in between, black nothing.
//!
//! It lies over the whole source, whatever its size; a sample takes the pixel that it falls into.
//! A triangle goes by its lightest sample. What it asks for does not depend on the level, so
//! levels still nest.

use glam::IVec2;

/// A grey picture over the ground.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailMask {
    /// Pixels from west to east and from north to south.
    pub size: [u32; 2],
    /// Row by row from the north-west; 255 is white.
    pub greys: Vec<u8>,
}

/// No threshold at all: every triangle goes down to the lattice.
pub const WHITE: u8 = 255;

impl DetailMask {
    /// The greys of a square of samples of a ground of `samples`; beyond it the edge goes on.
    pub fn square(&self, origin: IVec2, side: i32, samples: [u32; 2]) -> Vec<u8> {
        let pixel = |sample: i32, axis: usize| self.pixel(sample, axis, samples);
        let columns: Vec<usize> = (origin.x..origin.x + side).map(|x| pixel(x, 0)).collect();
        let rows = (origin.y..origin.y + side).map(|z| pixel(z, 1) * self.size[0] as usize);
        rows.flat_map(|row| columns.iter().map(move |column| self.greys[row + column]))
            .collect()
    }

    /// The column or row of pixels that a sample of a ground of `samples` falls into.
    pub(super) fn pixel(&self, sample: i32, axis: usize, samples: [u32; 2]) -> usize {
        let last = samples[axis] as i64 - 1;
        let sample = (sample as i64).clamp(0, last);
        (sample * self.size[axis] as i64 / (last + 1)) as usize
    }
}

/// The share of a threshold that a grey leaves.
pub fn share(grey: u8) -> f64 {
    (WHITE - grey) as f64 / WHITE as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_stretched_over_the_ground() {
        let mask = DetailMask {
            size: [2, 1],
            greys: vec![10, 200],
        };
        let greys = mask.square(IVec2::new(1, -1), 4, [4, 9]);
        assert_eq!(greys[..4], [10, 200, 200, 200]);
        assert_eq!(greys.len(), 16);
        assert_eq!((share(0), share(255)), (1.0, 0.0));
    }
}
