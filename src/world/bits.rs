//! Bit-streams: the form in which a bintree is stored and walked.
//!
//! Depth-first order, 1 = node, 0 = leaf, first bit in the lowest bit of the first byte. A
//! checked stream ends exactly where its tree does.

use super::FormatError;

/// A growing or finished bit-stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    bytes: Vec<u8>,
    len: u32,
}

impl Bits {
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        let last = self.bytes.len() - 1;
        self.bytes[last] |= (bit as u8) << (self.len % 8);
        self.len += 1;
    }

    /// Adds all bits of another stream.
    pub fn append(&mut self, other: &Bits) {
        let shift = self.len % 8;
        if shift == 0 {
            self.bytes.extend(&other.bytes);
        } else {
            for &byte in &other.bytes {
                let last = self.bytes.len() - 1;
                self.bytes[last] |= byte << shift;
                self.bytes.push(byte >> (8 - shift));
            }
        }
        self.len += other.len;
        self.bytes.truncate(self.len.div_ceil(8) as usize);
    }

    /// Empties the stream; its memory stays for the next one.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Leaves of the tree: a binary tree of n leaves has n - 1 nodes.
    pub fn leaves(&self) -> u32 {
        self.len.div_ceil(2)
    }

    pub fn reader(&self) -> BitReader<'_> {
        BitReader { bits: self, at: 0 }
    }

    /// Takes `len` bits from stored bytes and checks that they are exactly one tree, no deeper
    /// than `max_depth`.
    pub fn from_stored(bytes: &[u8], len: u32, max_depth: u32) -> Result<Self, FormatError> {
        if bytes.len() != len.div_ceil(8) as usize {
            return Err(FormatError::new("a bit-stream of the wrong length"));
        }
        let bits = Bits {
            bytes: bytes.to_vec(),
            len,
        };
        let end = tree_end(&mut bits.reader(), max_depth);
        let pad_is_zero = len.is_multiple_of(8) || bytes[bytes.len() - 1] >> (len % 8) == 0;
        if end != Some(len) || !pad_is_zero {
            return Err(FormatError::new("a bit-stream that is not one bintree"));
        }
        Ok(bits)
    }
}

/// Where the tree that starts here ends, or `None` when it runs out of bits or too deep.
fn tree_end(reader: &mut BitReader, max_depth: u32) -> Option<u32> {
    // Bit d of `right` is set while the second child at depth d + 1 is being read.
    let (mut depth, mut right) = (0u32, 0u64);
    loop {
        if reader.at == reader.bits.len {
            return None;
        }
        if reader.next() {
            if depth == max_depth || depth >= 63 {
                return None;
            }
            right &= !(1 << depth);
            depth += 1;
            continue;
        }
        while depth > 0 && right >> (depth - 1) & 1 == 1 {
            depth -= 1;
        }
        if depth == 0 {
            return Some(reader.at);
        }
        right |= 1 << (depth - 1);
    }
}

/// Reads a bit-stream from its start.
#[derive(Clone)]
pub struct BitReader<'a> {
    bits: &'a Bits,
    at: u32,
}

impl BitReader<'_> {
    /// The next bit; 0 (a leaf) past the end, which a checked stream never reaches.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> bool {
        let byte = self
            .bits
            .bytes
            .get((self.at / 8) as usize)
            .copied()
            .unwrap_or(0);
        let bit = byte >> (self.at % 8) & 1 == 1;
        self.at += 1;
        bit
    }

    /// Passes over the tree that starts here.
    pub fn skip_tree(&mut self) {
        let mut open = 1;
        while open > 0 {
            open = if self.next() { open + 1 } else { open - 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The naive twin of the check: recursion.
    fn naive_end(bits: &[bool], at: usize, depth: u32, max_depth: u32) -> Option<usize> {
        match bits.get(at)? {
            false => Some(at + 1),
            true if depth == max_depth => None,
            true => {
                let middle = naive_end(bits, at + 1, depth + 1, max_depth)?;
                naive_end(bits, middle, depth + 1, max_depth)
            }
        }
    }

    fn pack(bits: &[bool]) -> Bits {
        let mut packed = Bits::default();
        bits.iter().for_each(|&bit| packed.push(bit));
        packed
    }

    proptest! {
        #[test]
        fn the_check_agrees_with_recursion(bits in prop::collection::vec(any::<bool>(), 1..40), max_depth in 0u32..8) {
            let packed = pack(&bits);
            let valid = naive_end(&bits, 0, 0, max_depth) == Some(bits.len());
            let stored = Bits::from_stored(packed.bytes(), packed.len(), max_depth);
            prop_assert_eq!(stored.is_ok(), valid);
        }

        #[test]
        fn any_bytes_are_a_tree_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64), len in 0u32..600) {
            if let Ok(bits) = Bits::from_stored(&bytes, len, 20) {
                prop_assert_eq!(bits.len(), len);
                prop_assert!(bits.len() % 2 == 1);
            }
        }
    }

    #[test]
    fn skipping_lands_behind_the_tree() {
        let bits = pack(&[true, true, false, false, false, true, false]);
        let mut reader = bits.reader();
        reader.skip_tree();
        assert!(reader.next());
        assert!(!reader.next());
    }
}
