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
        let shift = self.len % 8;
        match self.bytes.last_mut() {
            Some(last) if shift > 0 => *last |= (bit as u8) << shift,
            _ => self.bytes.push(bit as u8),
        }
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

/// Writes a bit-stream, whole words at a time.
#[derive(Clone, Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// The last bits, fewer than 64 of them.
    word: u64,
    in_word: u32,
}

impl BitWriter {
    #[inline]
    pub fn push(&mut self, bit: bool) {
        self.word |= (bit as u64) << self.in_word;
        self.in_word += 1;
        if self.in_word == u64::BITS {
            self.bytes.extend(self.word.to_le_bytes());
            (self.word, self.in_word) = (0, 0);
        }
    }

    /// Starts again; its memory stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.word, self.in_word) = (0, 0);
    }

    /// What was written so far.
    pub fn bits(&self) -> Bits {
        let last = &self.word.to_le_bytes()[..self.in_word.div_ceil(8) as usize];
        Bits {
            bytes: [&self.bytes[..], last].concat(),
            len: self.bytes.len() as u32 * 8 + self.in_word,
        }
    }
}

/// Reads a bit-stream from its start.
#[derive(Clone)]
pub struct BitReader<'a> {
    bits: &'a Bits,
    at: u32,
}

impl<'a> BitReader<'a> {
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

    pub fn bits_left(&self) -> u32 {
        self.bits.len.saturating_sub(self.at)
    }

    /// Passes over the tree that starts here.
    pub fn skip_tree(&mut self) {
        let mut open = 1;
        while open > 0 {
            match self.whole_byte() {
                Some(byte) if open > DIPS[byte as usize] => {
                    open += 2 * byte.count_ones() as i32 - 8;
                    self.at += 8;
                }
                _ => open += if self.next() { 1 } else { -1 },
            }
        }
    }

    /// The runs of leaves from here on.
    pub fn runs(&self) -> BitRuns<'a> {
        let first = self.bits.bytes.len().min((self.at / 8) as usize);
        let mut runs = BitRuns {
            word: 1,
            rest: &self.bits.bytes[first..],
        };
        runs.fill();
        runs.word >>= self.at % 8;
        runs
    }

    /// The next eight bits, where they are a byte.
    fn whole_byte(&self) -> Option<u8> {
        let byte = self.bits.bytes.get((self.at / 8) as usize);
        byte.copied().filter(|_| self.at.is_multiple_of(8))
    }
}

/// How far the count of open triangles falls below its start somewhere in a byte.
const DIPS: [i32; 256] = {
    let mut dips = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut open, mut bit) = (0, 0);
        while bit < 8 {
            open += if byte >> bit & 1 == 1 { 1 } else { -1 };
            dips[byte] = if -open > dips[byte] {
                -open
            } else {
                dips[byte]
            };
            bit += 1;
        }
        byte += 1;
    }
    dips
};

/// Reads a bit-stream a run of leaves at a time.
pub struct BitRuns<'a> {
    /// The next bits, and a 1 above the last of them.
    word: u64,
    rest: &'a [u8],
}

impl BitRuns<'_> {
    /// Passes over the leaves in front of the next node, and over the node; says how many leaves
    /// there were. 32 or more mean that the stream is at its end, or no checked one: a tree's
    /// longest run is its depth and one.
    pub fn leaves_before_node(&mut self) -> usize {
        if self.word >> 32 == 0 {
            self.fill();
        }
        let leaves = self.word.trailing_zeros();
        self.word = self.word >> leaves >> 1;
        leaves as usize
    }

    /// Takes 32 bits more; 0 past the end.
    fn fill(&mut self) {
        let next = match self.rest.split_first_chunk() {
            Some((&next, rest)) => {
                self.rest = rest;
                next
            }
            None => {
                let mut last = [0; 4];
                last[..self.rest.len()].copy_from_slice(self.rest);
                self.rest = &[];
                last
            }
        };
        let end = self.word.max(1).ilog2();
        let next = u32::from_le_bytes(next) as u64 | 1 << 32;
        self.word = self.word & !(1 << end) | next << end;
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

    /// One tree and then some: a random walk that is cut off by leaves.
    fn trees() -> impl Strategy<Value = Vec<bool>> {
        prop::collection::vec(any::<bool>(), 1..200).prop_map(|mut bits| {
            bits.insert(0, true);
            bits.extend([false; 202]);
            bits
        })
    }

    proptest! {
        #[test]
        fn skipping_agrees_with_recursion(bits in trees(), lead in 0usize..9) {
            let end = naive_end(&bits, 0, 0, u32::MAX).expect("leaves enough");
            let shifted: Vec<bool> = std::iter::repeat_n(true, lead).chain(bits).collect();
            let packed = pack(&shifted);
            let mut reader = packed.reader();
            reader.at = lead as u32;
            reader.skip_tree();
            prop_assert_eq!(reader.at as usize, lead + end);
        }

        #[test]
        fn runs_are_the_zeros_between_the_ones(ones in prop::collection::vec(0usize..24, 1..40), lead in 0usize..40) {
            let run = |&zeros: &usize| std::iter::repeat_n(false, zeros).chain([true]);
            let bits: Vec<bool> = std::iter::repeat_n(false, lead).chain(ones.iter().flat_map(run)).collect();
            let packed = pack(&bits);
            let mut reader = packed.reader();
            reader.at = lead as u32;
            let mut runs = reader.runs();
            for &zeros in &ones {
                prop_assert_eq!(runs.leaves_before_node(), zeros);
            }
            for _ in 0..5 {
                prop_assert!(runs.leaves_before_node() >= 32);
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
