//! What a section stores of its patches: bounds, error, and the two bit-streams of each.
//!
//! A chunk holds its patches row by row: lowest and highest height (i32, steps), stored error
//! (f32, metres), flags (u8, bit 0: exhausted, bit 1: absent), the lengths of the two bit-streams (u32, bits),
//! then the bytes of the first and of the second. Lengths are checked against the bytes that
//! are there before anything is taken.

use super::{Bits, FormatError};

/// One patch as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchRecord {
    /// Lowest and highest of *all* samples in the patch, in height steps.
    pub min: i32,
    pub max: i32,
    /// The largest vertical distance in metres between the mesh and the samples.
    pub error_m: f32,
    /// True when the lattice was too wide for the threshold.
    pub exhausted: bool,
    /// True when all its samples are kept voids: nothing of it is to be seen.
    pub absent: bool,
    /// The bintrees of the two halves.
    pub trees: [Bits; 2],
}

impl PatchRecord {
    pub fn triangles(&self) -> u32 {
        self.trees[0].leaves() + self.trees[1].leaves()
    }
}

const FIXED_BYTES: usize = 21;

/// Most bytes that a chunk of `patches` patches with trees of `max_depth` may have.
pub fn largest_chunk(patches: usize, max_depth: u32) -> usize {
    patches.saturating_mul(FIXED_BYTES + 2 * ((2usize << max_depth) / 8 + 1))
}

pub fn encode(patches: &[PatchRecord]) -> Vec<u8> {
    let mut out = Vec::new();
    for patch in patches {
        out.extend(patch.min.to_le_bytes());
        out.extend(patch.max.to_le_bytes());
        out.extend(patch.error_m.to_le_bytes());
        out.push(u8::from(patch.exhausted) | u8::from(patch.absent) << 1);
        patch
            .trees
            .iter()
            .for_each(|tree| out.extend(tree.len().to_le_bytes()));
        patch.trees.iter().for_each(|tree| out.extend(tree.bytes()));
    }
    out
}

pub fn decode(
    mut bytes: &[u8],
    count: usize,
    max_depth: u32,
) -> Result<Vec<PatchRecord>, FormatError> {
    let bytes = &mut bytes;
    let mut patches = Vec::with_capacity(count.min(bytes.len() / FIXED_BYTES));
    for _ in 0..count {
        patches.push(decode_patch(bytes, max_depth)?);
    }
    if !bytes.is_empty() {
        return Err(FormatError(format!(
            "{} bytes behind the last patch",
            bytes.len()
        )));
    }
    Ok(patches)
}

fn decode_patch(bytes: &mut &[u8], max_depth: u32) -> Result<PatchRecord, FormatError> {
    let min = i32::from_le_bytes(take(bytes)?);
    let max = i32::from_le_bytes(take(bytes)?);
    let error_m = f32::from_le_bytes(take(bytes)?);
    let [flags] = take(bytes)?;
    let lengths = [
        u32::from_le_bytes(take(bytes)?),
        u32::from_le_bytes(take(bytes)?),
    ];
    if min > max || !error_m.is_finite() || error_m < 0.0 || flags > 3 {
        return Err(FormatError::new(
            "a patch whose bounds, error or flags cannot be",
        ));
    }
    let mut tree = |len: u32| {
        let stored = take_slice(bytes, len.div_ceil(8) as usize)?;
        Bits::from_stored(stored, len, max_depth)
    };
    let trees = [tree(lengths[0])?, tree(lengths[1])?];
    Ok(PatchRecord {
        min,
        max,
        error_m,
        exhausted: flags & 1 == 1,
        absent: flags & 2 == 2,
        trees,
    })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], FormatError> {
    Ok(take_slice(bytes, N)?
        .try_into()
        .expect("N bytes were taken"))
}

fn take_slice<'a>(bytes: &mut &'a [u8], len: usize) -> Result<&'a [u8], FormatError> {
    let (head, tail) = bytes
        .split_at_checked(len)
        .ok_or_else(|| FormatError::new("patches that end too early"))?;
    *bytes = tail;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tree(shape: &[bool]) -> Bits {
        let mut bits = Bits::default();
        shape.iter().for_each(|&bit| bits.push(bit));
        bits
    }

    fn patches() -> Vec<PatchRecord> {
        vec![
            PatchRecord {
                min: -5,
                max: 900,
                error_m: 1.5,
                exhausted: true,
                absent: false,
                trees: [tree(&[true, false, true, false, false]), tree(&[false])],
            },
            PatchRecord {
                min: 0,
                max: 0,
                error_m: 0.0,
                exhausted: false,
                absent: true,
                trees: [tree(&[false]), tree(&[true, false, false])],
            },
        ]
    }

    #[test]
    fn patches_come_back() {
        assert_eq!(decode(&encode(&patches()), 2, 4).unwrap(), patches());
        assert_eq!(patches()[0].triangles(), 4);
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = encode(&patches());
        for len in 0..bytes.len() {
            assert!(
                decode(&bytes[..len], 2, 4).is_err(),
                "{len} bytes of {}",
                bytes.len()
            );
        }
        assert!(decode(&bytes, 1, 4).is_err(), "bytes left over");
    }

    proptest! {
        #[test]
        fn any_bytes_are_patches_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), count in 0usize..1_000_000) {
            if let Ok(patches) = decode(&bytes, count, 10) {
                prop_assert_eq!(patches.len(), count);
            }
        }

        #[test]
        fn damaged_patches_are_patches_or_an_error(at in 0usize..1000, with in any::<u8>()) {
            let mut bytes = encode(&patches());
            let at = at % bytes.len();
            bytes[at] = with;
            let _ = decode(&bytes, 2, 4);
        }
    }
}
