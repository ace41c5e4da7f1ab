//! The chunk of kept voids: where a section has ground, and where it has none.
//!
//! At level 0 a bit for each sample, so that no void is lost; at every other level one for each
//! cell of the lattice, 1 where any sample of the source in the closed cell is present. Row by row
//! from the north-west, without the apron, the first bit in the lowest one of the first byte;
//! unused bits of the last byte are 0. Beyond the source nothing is present.

use super::layout::APRON;
use super::{FormatError, Layout, SectionKey};

/// A rectangle of bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    pub width: u32,
    pub height: u32,
    bits: Vec<u8>,
}

/// Samples of a section of level 0, cells of one of any other level: columns and rows.
pub fn size(layout: &Layout, key: SectionKey) -> [u32; 2] {
    let rect = layout.section_rect(key);
    let less = 2 * APRON as u32 + u32::from(key.level > 0);
    [rect.width - less, rect.height - less]
}

/// Bytes of a chunk before compression.
pub fn stored_bytes([width, height]: [u32; 2]) -> usize {
    (width as usize * height as usize).div_ceil(8)
}

impl Coverage {
    pub fn from_fn([width, height]: [u32; 2], present: impl Fn(u32, u32) -> bool) -> Self {
        let mut coverage = Coverage {
            width,
            height,
            bits: vec![0; stored_bytes([width, height])],
        };
        for z in 0..height {
            for x in (0..width).filter(|&x| present(x, z)) {
                coverage.put(x, z);
            }
        }
        coverage
    }

    pub fn is_present(&self, x: u32, z: u32) -> bool {
        let at = self.place(x, z);
        self.bits[at / 8] >> (at % 8) & 1 == 1
    }

    /// Whether anything is present from one place to another, both included.
    pub fn any(&self, [x0, z0]: [u32; 2], [x1, z1]: [u32; 2]) -> bool {
        (z0..=z1).any(|z| (x0..=x1).any(|x| self.is_present(x, z)))
    }

    /// Whether anything is absent among the first columns and rows.
    pub fn lacks_any(&self, [width, height]: [u32; 2]) -> bool {
        let [width, height] = [width.min(self.width), height.min(self.height)];
        (0..height).any(|z| (0..width).any(|x| !self.is_present(x, z)))
    }

    /// Whether anything is present in the square of four places from one on, as far as there are.
    pub fn any_of_four(&self, first: [u32; 2]) -> bool {
        let last = [self.width - 1, self.height - 1];
        self.any(first, [0, 1].map(|axis| (first[axis] + 1).min(last[axis])))
    }

    /// The cells between samples, at least one a side: each is present where one of its corners is.
    pub fn cells(&self) -> Coverage {
        let size = [self.width, self.height].map(|samples| (samples - 1).max(1));
        Coverage::from_fn(size, |x, z| self.any_of_four([x, z]))
    }

    /// The same in a rectangle of another size.
    pub fn within(&self, size: [u32; 2]) -> Coverage {
        Coverage::from_fn(size, |x, z| {
            x < self.width && z < self.height && self.is_present(x, z)
        })
    }

    /// So many cells, twice as wide: each is present where one of the four under it is.
    pub fn halved(&self, size: [u32; 2]) -> Coverage {
        Coverage::from_fn(size, |x, z| self.any_of_four([2 * x, 2 * z]))
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.bits.len()
    }

    /// How many places are present.
    pub fn count(&self) -> u64 {
        self.bits.iter().map(|byte| byte.count_ones() as u64).sum()
    }

    pub fn encode(&self) -> Vec<u8> {
        self.bits.clone()
    }

    pub fn decode(bytes: &[u8], [width, height]: [u32; 2]) -> Result<Self, FormatError> {
        let expected = stored_bytes([width, height]);
        if bytes.len() != expected {
            let found = bytes.len();
            return Err(FormatError(format!(
                "{found} bytes of coverage where {expected} are expected"
            )));
        }
        let unused = (expected * 8 - width as usize * height as usize) as u32;
        if bytes
            .last()
            .is_some_and(|last| last.leading_zeros() < unused)
        {
            return Err(FormatError::new("coverage behind its last place"));
        }
        Ok(Coverage {
            width,
            height,
            bits: bytes.to_vec(),
        })
    }

    fn put(&mut self, x: u32, z: u32) {
        let at = self.place(x, z);
        self.bits[at / 8] |= 1 << (at % 8);
    }

    fn place(&self, x: u32, z: u32) -> usize {
        z as usize * self.width as usize + x as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cell_is_absent_when_all_its_samples_are() {
        // Of 5 by 3 samples all but the west column and one more are void.
        let present = |x: u32, z: u32| x == 0 || (x, z) == (4, 2);
        let samples = Coverage::from_fn([5, 3], present);
        let cells = samples.cells();
        let picture: Vec<bool> = (0..2)
            .flat_map(|z| (0..4).map(move |x| (x, z)))
            .map(|(x, z)| cells.is_present(x, z))
            .collect();
        let (o, x) = (false, true);
        assert_eq!(picture, [x, o, o, o, x, o, o, x]);
        let wide = cells.halved([2, 1]);
        assert!(wide.is_present(0, 0) && wide.is_present(1, 0));
        assert!(!samples.any([1, 0], [3, 2]) && samples.any([1, 0], [4, 2]));
        assert!(!samples.lacks_any([1, 3]) && samples.lacks_any([2, 1]));
    }

    #[test]
    fn what_lies_beyond_a_rectangle_is_absent_in_a_wider_one() {
        let cells = Coverage::from_fn([3, 1], |x, _| x < 2);
        let wide = cells.halved([2, 1]);
        assert!(wide.is_present(0, 0) && !wide.is_present(1, 0));
        assert_eq!(cells.within([5, 2]).within([3, 1]), cells);
        assert!(!cells.within([5, 2]).any([2, 0], [4, 1]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_coverage_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..9), width in 1u32..9, height in 1u32..9) {
            if let Ok(coverage) = Coverage::decode(&bytes, [width, height]) {
                prop_assert_eq!(coverage.encode(), bytes);
            }
        }

        #[test]
        fn coverage_comes_back(width in 1u32..40, height in 1u32..9, seed in any::<u64>()) {
            let present = |x: u32, z: u32| (seed ^ u64::from(x * 40 + z)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 1;
            let coverage = Coverage::from_fn([width, height], present);
            let back = Coverage::decode(&coverage.encode(), [width, height]).unwrap();
            prop_assert!((0..height).all(|z| (0..width).all(|x| back.is_present(x, z) == present(x, z))));
            prop_assert_eq!(back, coverage);
        }
    }
}
