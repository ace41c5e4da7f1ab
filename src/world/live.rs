//! The chunk of live thresholds: for each node of each tree, how far the threshold can rise until
//! the node is no longer split.
//!
//! Patch by patch, row by row, the first half's tree before the second's: four bits a node in the
//! order of the bit-stream, the first in the lower half of a byte; each tree begins a byte. A step
//! `s` stands for `threshold * factor^s` (the factor is in the facts); the last one for no end.
//! A node's step is never above its parent's, so that all nodes of a step or above are a tree.

use super::{Bits, FormatError, PatchRecord};

/// Steps there are.
pub const STEPS: u8 = 16;

/// The steps of both trees of each patch, in the order of their bit-streams.
pub fn encode(patches: &[[Vec<u8>; 2]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for steps in patches.iter().flatten() {
        let packed = steps
            .chunks(2)
            .map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4);
        bytes.extend(packed);
    }
    bytes
}

/// The steps for these patches, checked to be trees.
pub fn decode(bytes: &[u8], patches: &[PatchRecord]) -> Result<Vec<[Vec<u8>; 2]>, FormatError> {
    if bytes.len() != stored_bytes(patches) {
        return Err(FormatError(format!(
            "{} bytes of steps where {} are expected",
            bytes.len(),
            stored_bytes(patches)
        )));
    }
    let mut rest = bytes;
    let mut take = |tree: &Bits| {
        let nodes = nodes(tree);
        let (head, tail) = rest.split_at(nodes.div_ceil(2));
        rest = tail;
        let mut steps: Vec<u8> = head
            .iter()
            .flat_map(|byte| [byte & 15, byte >> 4])
            .collect();
        steps.truncate(nodes);
        check(tree, &steps).map(|()| steps)
    };
    patches
        .iter()
        .map(|patch| Ok([take(&patch.trees[0])?, take(&patch.trees[1])?]))
        .collect()
}

/// Bytes of the chunk for these patches, before compression.
pub fn stored_bytes(patches: &[PatchRecord]) -> usize {
    let trees = patches.iter().flat_map(|patch| &patch.trees);
    trees.map(|tree| nodes(tree).div_ceil(2)).sum()
}

fn nodes(tree: &Bits) -> usize {
    tree.leaves() as usize - 1
}

/// No node has a higher step than its parent.
fn check(tree: &Bits, steps: &[u8]) -> Result<(), FormatError> {
    let mut bits = tree.reader();
    let mut steps = steps.iter();
    // Steps of the nodes above, once for each child that is still to come.
    let mut above = vec![STEPS - 1];
    while let Some(parent) = above.pop() {
        if bits.next() {
            let step = *steps.next().unwrap_or(&STEPS);
            if step > parent {
                return Err(FormatError::new("steps that are no tree"));
            }
            above.extend([step; 2]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn patch(shape: &str) -> PatchRecord {
        let mut tree = Bits::default();
        shape.chars().for_each(|bit| tree.push(bit == '1'));
        PatchRecord {
            min: 0,
            max: 0,
            error_m: 0.0,
            exhausted: false,
            absent: false,
            trees: [tree.clone(), tree],
        }
    }

    #[test]
    fn steps_come_back_and_others_are_refused() {
        let patches = [patch("1101000"), patch("0")];
        let steps = [[vec![15, 9, 9], vec![7, 7, 0]], [vec![], vec![]]];
        let bytes = encode(&steps);
        assert_eq!(bytes.len(), 4);
        assert_eq!(decode(&bytes, &patches).unwrap(), steps);
        assert!(decode(&bytes[..3], &patches).is_err());
        let risen = [[vec![8, 9, 9], vec![7, 7, 0]], [vec![], vec![]]];
        assert!(decode(&encode(&risen), &patches).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_steps_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..6)) {
            let patches = [patch("1101000"), patch("100")];
            if let Ok(steps) = decode(&bytes, &patches) {
                prop_assert_eq!(steps.iter().flatten().map(Vec::len).sum::<usize>(), 8);
            }
        }
    }
}
