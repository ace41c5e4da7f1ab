//! What must hold of a patch, found again from its bit-streams and the full-resolution heights.
//!
//! `verify` compares it with what a world says of itself. Values in, values out: reading, and
//! going over all patches, are the caller's.

use super::height_map::HeightMap;
use super::leaves::{roots, visit_leaves};
use super::measure::Measurer;
use super::triangle::Triangle;
use crate::world::{BitReader, Bits, Layout, PatchKey};
use glam::{IVec2, ivec2};

/// What a patch's mesh and the samples under it really are.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// The largest vertical distance between mesh and samples, in height steps.
    pub error: f64,
    /// Lowest and highest sample.
    pub range: Option<(i32, i32)>,
    /// Whether a leaf is above the threshold.
    pub exhausted: bool,
    /// A leaf that had to be split and that the lattice would let.
    pub too_coarse: Option<Triangle>,
    /// Vertices strictly inside.
    pub inside: u64,
    /// Vertices on the north, east, south and west side between the corners, in lattice cells
    /// from the west or the north.
    pub sides: [Vec<u16>; 4],
}

/// Goes over a patch; the threshold is in the metric's units.
pub fn survey(
    layout: &Layout,
    key: PatchKey,
    trees: &[Bits; 2],
    map: &HeightMap,
    measurer: &Measurer,
    threshold: f64,
) -> Survey {
    let stride = layout.stride(key.level) as i32;
    let (mut error, mut exhausted, mut too_coarse) = (0.0f64, false, None);
    visit_leaves(layout, key, trees, |leaf| {
        let found = measurer.measure(leaf);
        error = error.max(found.error);
        exhausted |= found.complexity > threshold;
        let must_split = found.complexity > threshold || found.must_split;
        if must_split && on_lattice(leaf, stride) {
            too_coarse.get_or_insert(leaf);
        }
    });
    let (inside, sides) = vertices(layout, key, trees);
    Survey {
        error,
        exhausted,
        range: range(layout, key, map),
        too_coarse,
        inside,
        sides,
    }
}

/// Whether the lattice has the middle of a triangle's hypotenuse.
fn on_lattice(triangle: Triangle, stride: i32) -> bool {
    let sum = triangle.a + triangle.b;
    (sum.x | sum.y) & (2 * stride - 1) == 0
}

/// Lowest and highest present sample of a patch.
fn range(layout: &Layout, key: PatchKey, map: &HeightMap) -> Option<(i32, i32)> {
    let size = layout.patch_size(key.level);
    let along = |n: u32, samples: u32| n * size..=((n + 1) * size).min(samples - 1);
    let samples = along(key.z, map.height)
        .flat_map(|z| along(key.x, map.width).map(move |x| map.at(x as i64, z as i64)));
    samples.fold(None, |range, height| {
        let (low, high) = range.unwrap_or((height, height));
        Some((low.min(height), high.max(height)))
    })
}

/// All vertices of a patch.
pub fn vertex_count(layout: &Layout, key: PatchKey, trees: &[Bits; 2]) -> u64 {
    let (inside, sides) = vertices(layout, key, trees);
    let on_sides: usize = sides.iter().map(Vec::len).sum();
    inside + on_sides as u64 + 4
}

/// Vertices strictly inside, and those on the sides.
fn vertices(layout: &Layout, key: PatchKey, trees: &[Bits; 2]) -> (u64, [Vec<u16>; 4]) {
    let n = layout.lattice_cells(key.level) as i32;
    let stride = layout.stride(key.level) as i32;
    let corner = ivec2(key.x as i32, key.z as i32) * n;
    let mut seen = vec![false; ((n + 1) * (n + 1)) as usize];
    let index = |p: IVec2| (p.y * (n + 1) + p.x) as usize;
    visit_leaves(layout, key, trees, |leaf| {
        for p in [leaf.a, leaf.b, leaf.c] {
            seen[index(p / stride - corner)] = true;
        }
    });
    let side = |place: fn(i32, i32) -> IVec2| {
        let along = (1..n).filter(|&i| seen[index(place(i, n))]);
        along.map(|i| i as u16).collect()
    };
    let sides = [
        side(|i, _| ivec2(i, 0)),
        side(|i, n| ivec2(n, i)),
        side(ivec2),
        side(|i, _| ivec2(0, i)),
    ];
    let rows = seen.chunks((n + 1) as usize).skip(1).take(n as usize - 1);
    let inside = rows.map(|row| row[1..n as usize].iter().filter(|seen| **seen).count() as u64);
    (inside.sum(), sides)
}

/// The first triangle that is split in the parent's mesh and not in the child's, if there is one.
pub fn first_unnested(
    layout: &Layout,
    parent: (PatchKey, &[Bits; 2]),
    child: (PatchKey, &[Bits; 2]),
) -> Option<Triangle> {
    let mut below = Vec::new();
    for (root, tree) in roots(layout, parent.0).into_iter().zip(parent.1) {
        descend(root, 2, &mut tree.reader(), &mut below);
    }
    let children = roots(layout, child.0);
    below.into_iter().find_map(|(triangle, mut tree)| {
        let half = children.iter().position(|&root| root == triangle)?;
        unnested(triangle, &mut tree, &mut child.1[half].reader())
    })
}

/// Collects where the trees below the parent's second halvings start.
fn descend<'a>(
    triangle: Triangle,
    halvings: u32,
    tree: &mut BitReader<'a>,
    below: &mut Vec<(Triangle, BitReader<'a>)>,
) {
    if halvings == 0 {
        below.push((triangle, tree.clone()));
        tree.skip_tree();
    } else if tree.next() {
        for half in triangle.halves() {
            descend(half, halvings - 1, tree, below);
        }
    }
}

fn unnested(triangle: Triangle, coarse: &mut BitReader, fine: &mut BitReader) -> Option<Triangle> {
    match (coarse.next(), fine.next()) {
        (true, false) => Some(triangle),
        (true, true) => triangle
            .halves()
            .into_iter()
            .find_map(|half| unnested(half, coarse, fine)),
        (false, split) => {
            (0..2 * u32::from(split)).for_each(|_| fine.skip_tree());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::leaves::tree;
    use super::super::measure::Metric;
    use super::*;

    fn layout() -> Layout {
        Layout::new([31, 31], 8, 8).unwrap()
    }

    #[test]
    fn a_peak_under_one_triangle_is_its_error() {
        let mut heights = vec![0; 32 * 32];
        heights[2 * 32 + 5] = 40;
        let map = HeightMap {
            width: 32,
            height: 32,
            heights,
        };
        let measurer = Measurer::new(&map, Metric::Max, None);
        let look = |trees: &[Bits; 2], threshold| {
            survey(
                &layout(),
                PatchKey::new(0, 0, 0),
                trees,
                &map,
                &measurer,
                threshold,
            )
        };
        let flat = look(&[tree("0"), tree("0")], 50.0);
        assert_eq!((flat.error, flat.range), (40.0, Some((0, 40))));
        assert_eq!((flat.inside, flat.too_coarse), (0, None));
        let leaf = look(&[tree("0"), tree("0")], 30.0).too_coarse;
        assert_eq!(leaf, Some(roots(&layout(), PatchKey::new(0, 0, 0))[0]));
        let split = look(&[tree("11000"), tree("100")], 30.0);
        assert_eq!(split.inside, 1, "the patch's middle");
        assert_eq!(split.sides, [vec![4], vec![], vec![], vec![]]);
    }

    #[test]
    fn a_child_that_lacks_a_split_of_its_parent_is_found() {
        let (parent, child) = (PatchKey::new(1, 0, 0), PatchKey::new(0, 0, 0));
        let two = |shape: &str| [tree(shape), tree(shape)];
        let look = |coarse: &[Bits; 2], fine: &[Bits; 2]| {
            first_unnested(&layout(), (parent, coarse), (child, fine))
        };
        // The parent halves the roots of all its children once more.
        let deep = two("111001001100100");
        assert_eq!(look(&two("0"), &two("0")), None);
        assert_eq!(look(&two("1100100"), &two("0")), None);
        assert_eq!(look(&deep, &two("100")), None);
        assert_eq!(look(&deep, &two("1100100")), None);
        let [first, second] = roots(&layout(), child);
        assert_eq!(look(&deep, &[tree("100"), tree("0")]), Some(second));
        assert_eq!(look(&deep, &[tree("0"), tree("100")]), Some(first));
    }
}
