//! A patch's trees down to a depth at which they can be drawn.
//!
//! A *part* is what stands at the end of a branch in the drawing: a leaf, or a whole subtree
//! where the tree goes on below the limit. Parts are numbered through both halves in the order
//! of the bit-streams; all three drawings show the same parts in the same colours.

use crate::terrain::leaves::{roots, walk};
use crate::terrain::triangle::Triangle;
use crate::world::{Bits, Layout, PatchKey};

/// Most parts of a half that still have room for their numbers.
const MOST_PARTS: usize = 40;

/// One half of the patch, as far as it is drawn.
#[derive(Debug)]
pub struct Half {
    /// In depth-first order.
    pub nodes: Vec<Node>,
    pub parts: Vec<Part>,
    /// All leaves, in order, each with the part that it belongs to.
    pub leaves: Vec<(Triangle, usize)>,
    /// All bits, in order; those above the parts belong to none.
    pub bits: Vec<(bool, Option<usize>)>,
}

#[derive(Debug)]
pub struct Node {
    pub depth: u32,
    pub parent: Option<usize>,
    /// The part that stands here, unless the tree is drawn further.
    pub part: Option<usize>,
}

#[derive(Debug)]
pub struct Part {
    pub triangle: Triangle,
    pub leaves: usize,
}

/// Both halves, and the depth down to which they are drawn, if that is not all.
#[derive(Debug)]
pub struct Outline {
    pub halves: [Half; 2],
    pub limit: Option<u32>,
}

impl Outline {
    pub fn new(layout: &Layout, key: PatchKey, trees: &[Bits; 2]) -> Self {
        let roots = roots(layout, key);
        let deepest = layout.tree_depth(key.level);
        let parts = |limit| {
            (0..2)
                .map(|half| parts_at(roots[half], &trees[half], limit))
                .max()
        };
        let limit = (1..deepest)
            .take_while(|&limit| parts(limit + 1) <= Some(MOST_PARTS))
            .last();
        let limit = limit.map_or(1, |limit| limit + 1);
        let halves = [0, 1].map(|half| Half::new(roots[half], &trees[half], limit));
        let is_whole = halves
            .iter()
            .all(|half| half.leaves.len() == half.parts.len());
        Outline {
            halves,
            limit: (!is_whole).then_some(limit),
        }
    }
}

/// Branches that end at a depth limit or above.
fn parts_at(root: Triangle, tree: &Bits, limit: u32) -> usize {
    let mut count = 0;
    walk(root, tree, |_, depth, split| {
        count += usize::from(depth == limit || depth < limit && !split);
    });
    count
}

impl Half {
    fn new(root: Triangle, tree: &Bits, limit: u32) -> Self {
        let mut half = Half {
            nodes: Vec::new(),
            parts: Vec::new(),
            leaves: Vec::new(),
            bits: Vec::new(),
        };
        // The node on each depth of the branch that is being walked.
        let mut branch: Vec<usize> = Vec::new();
        walk(root, tree, |triangle, depth, split| {
            if depth <= limit {
                branch.truncate(depth as usize);
                let is_part = depth == limit || !split;
                half.nodes.push(Node {
                    depth,
                    parent: branch.last().copied(),
                    part: is_part.then_some(half.parts.len()),
                });
                branch.push(half.nodes.len() - 1);
                if is_part {
                    half.parts.push(Part {
                        triangle,
                        leaves: 0,
                    });
                }
            }
            let above = split && depth < limit;
            let part = (!above).then(|| half.parts.len() - 1);
            half.bits.push((split, part));
            if let (Some(part), false) = (part, split) {
                half.parts[part].leaves += 1;
                half.leaves.push((triangle, part));
            }
        });
        half
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(shape: &str) -> Bits {
        let mut bits = Bits::default();
        shape.chars().for_each(|bit| bits.push(bit == '1'));
        bits
    }

    #[test]
    fn a_small_tree_is_drawn_whole() {
        let layout = Layout::new([32, 32], 8, 8).unwrap();
        let outline = Outline::new(
            &layout,
            PatchKey::new(0, 0, 0),
            &[tree("1100100"), tree("0")],
        );
        assert_eq!(outline.limit, None);
        let [first, second] = &outline.halves;
        assert_eq!((first.parts.len(), first.nodes.len()), (4, 7));
        assert_eq!((second.parts.len(), second.nodes.len()), (1, 1));
        let parents: Vec<_> = first.nodes.iter().map(|node| node.parent).collect();
        assert_eq!(
            parents,
            [None, Some(0), Some(1), Some(1), Some(0), Some(4), Some(4)]
        );
        let owners: Vec<_> = first.bits.iter().map(|&(_, part)| part).collect();
        assert_eq!(
            owners,
            [None, None, Some(0), Some(1), None, Some(2), Some(3)]
        );
    }

    #[test]
    fn a_large_tree_is_drawn_down_to_a_depth() {
        fn full(depth: u32, bits: &mut Bits) {
            bits.push(depth > 0);
            (0..2 * u32::from(depth > 0)).for_each(|_| full(depth - 1, bits));
        }
        let layout = Layout::new([32, 32], 32, 32).unwrap();
        let mut bits = Bits::default();
        full(8, &mut bits);
        let outline = Outline::new(&layout, PatchKey::new(0, 0, 0), &[bits.clone(), bits]);
        assert_eq!(outline.limit, Some(5));
        let half = &outline.halves[0];
        assert_eq!((half.parts.len(), half.leaves.len()), (32, 256));
        assert!(half.parts.iter().all(|part| part.leaves == 8));
        assert_eq!(half.bits.len(), 511);
        assert_eq!(half.nodes.len(), 63);
    }
}
