//! Heights of which only those at the vertices of a level's mesh are stored: the first Just
//! Cause's variant (Avalanche Studios, 2006). The others are rebuilt by the planes of the leaves.
//!
//! One walk over the patches of a section meets every vertex once; what is stored is by how much
//! its height differs from a prediction. Below a leaf the walk goes on down to the lattice, where
//! a middle lies between its two ends on the leaf's plane: no rounding before a height is put
//! into the grid, so triangles agree along their common edge. Then come the neighbours' rebuilt
//! heights in the apron. Encoder and decoder take the same walk and so have the same grid.
//!
//! Decoding allocates what the layout and the trees ask for, whatever the bytes claim.

use super::layout::APRON;
use super::{BitReader, Bits, FormatError, HeightGrid, LatticeRect, Layout, SectionKey};

/// Bits behind the point of a height on a leaf's plane. Each halving takes one, and the finest
/// lattice of the widest patch is halved 22 times.
const FRACTION_BITS: u32 = 24;

/// A section and its trees: where its vertices are.
#[derive(Clone, Copy)]
pub struct SectionTrees<'a> {
    pub layout: &'a Layout,
    pub key: SectionKey,
    /// Of its patches, row by row.
    pub trees: &'a [&'a [Bits; 2]],
}

/// Encodes a section; the grid is what decoding gives. `coarser` is the next coarser level's grid,
/// as it was rebuilt. `height` gives the true heights of vertices and, in the apron, what the
/// neighbours' grids have, at lattice positions.
pub fn encode(
    section: SectionTrees,
    coarser: Option<&HeightGrid>,
    height: impl Fn(i32, i32) -> i32,
) -> Result<(HeightGrid, Vec<u8>), FormatError> {
    let mut rebuilt = Rebuilt::new(section, coarser)?;
    let mut parts = [Vec::new(), Vec::new()];
    let [vertices, apron] = &mut parts;
    let keep = |residuals: &mut Vec<i32>, x, z, predicted| {
        let height = height(x, z);
        residuals.push(height.wrapping_sub(predicted));
        height
    };
    rebuilt.visit_vertices(section, &mut |x, z, predicted| {
        keep(vertices, x, z, predicted)
    });
    rebuilt.visit_apron(&mut |x, z, predicted| keep(apron, x, z, predicted));
    let [vertices, apron] = parts.map(|residuals| compress(&residuals));
    let mut bytes = (vertices.len() as u32).to_le_bytes().to_vec();
    bytes.extend(vertices);
    bytes.extend(apron);
    Ok((rebuilt.finish(), bytes))
}

/// Decodes what [`encode`] made for this section and this coarser grid.
pub fn decode(
    bytes: &[u8],
    section: SectionTrees,
    coarser: Option<&HeightGrid>,
) -> Result<HeightGrid, FormatError> {
    let mut rebuilt = Rebuilt::new(section, coarser)?;
    let too_short = || FormatError::new("heights that end too early");
    let (len, rest) = bytes.split_first_chunk().ok_or_else(too_short)?;
    let len = u32::from_le_bytes(*len) as usize;
    let (vertices, apron) = rest.split_at_checked(len).ok_or_else(too_short)?;

    let nodes = section.trees.iter().flat_map(|trees| trees.iter());
    let nodes: usize = nodes.map(|tree| tree.leaves() as usize - 1).sum();
    let most = (nodes + 4 * section.trees.len()).min(rebuilt.grid.rect.len());
    let mut residuals = Residuals::decompress(vertices, most)?;
    rebuilt.visit_vertices(section, &mut |_, _, predicted| residuals.add_to(predicted));
    residuals.check_end()?;

    let most = rebuilt.grid.rect.len();
    let mut residuals = Residuals::decompress(apron, rebuilt.apron_heights().min(most))?;
    rebuilt.visit_apron(&mut |_, _, predicted| residuals.add_to(predicted));
    residuals.check_end()?;
    Ok(rebuilt.finish())
}

fn compress(residuals: &[i32]) -> Vec<u8> {
    pco::standalone::simple_compress(residuals, &pco::ChunkConfig::default())
        .expect("the default configuration is valid")
}

/// What is left of a part's residuals, and how many were asked for beyond their end.
struct Residuals {
    next: std::vec::IntoIter<i32>,
    missing: usize,
}

impl Residuals {
    fn decompress(bytes: &[u8], most: usize) -> Result<Self, FormatError> {
        let mut residuals = vec![0i32; most];
        let progress = pco::standalone::simple_decompress_into(bytes, &mut residuals);
        let progress = progress.map_err(|error| {
            FormatError(format!("heights that cannot be decompressed ({error})").replace('\n', " "))
        })?;
        if !progress.finished {
            return Err(FormatError(format!("more than {most} heights")));
        }
        residuals.truncate(progress.n_processed);
        Ok(Residuals {
            next: residuals.into_iter(),
            missing: 0,
        })
    }

    fn add_to(&mut self, predicted: i32) -> i32 {
        let residual = self.next.next();
        self.missing += usize::from(residual.is_none());
        predicted.wrapping_add(residual.unwrap_or(0))
    }

    fn check_end(&self) -> Result<(), FormatError> {
        if self.missing == 0 && self.next.len() == 0 {
            return Ok(());
        }
        Err(FormatError(format!(
            "{} heights too few and {} too many",
            self.missing,
            self.next.len()
        )))
    }
}

/// First and last lattice position of a rectangle, [x, z].
#[derive(Clone, Copy)]
struct Area {
    first: [i32; 2],
    last: [i32; 2],
}

impl Area {
    /// The ground of patches from one to one past the last, [x0, z0, x1, z1].
    fn of_patches([x0, z0, x1, z1]: [u32; 4], cells: u32) -> Self {
        Area {
            first: [x0 * cells, z0 * cells].map(|n| n as i32),
            last: [x1 * cells, z1 * cells].map(|n| n as i32),
        }
    }

    fn grown(self, by: i32) -> Self {
        Area {
            first: self.first.map(|n| n - by),
            last: self.last.map(|n| n + by),
        }
    }

    /// What lies in both.
    fn within(self, other: Area) -> Self {
        Area {
            first: [0, 1].map(|axis| self.first[axis].max(other.first[axis])),
            last: [0, 1].map(|axis| self.last[axis].min(other.last[axis])),
        }
    }

    fn nearest(self, p: [i32; 2]) -> [i32; 2] {
        [0, 1].map(|axis| p[axis].clamp(self.first[axis], self.last[axis]))
    }

    /// The north and the south row, then what these leave of the west and the east column.
    fn sides(self) -> [Area; 4] {
        let ([x0, z0], [x1, z1]) = (self.first, self.last);
        let side = |first, last| Area { first, last };
        [
            side([x0, z0], [x1, z0]),
            side([x0, z1], [x1, z1]),
            side([x0, z0 + 1], [x0, z1 - 1]),
            side([x1, z0 + 1], [x1, z1 - 1]),
        ]
    }

    /// Row by row; none where the last lies before the first.
    fn positions(self) -> impl Iterator<Item = [i32; 2]> {
        let columns = self.first[0]..=self.last[0];
        (self.first[1]..=self.last[1]).flat_map(move |z| columns.clone().map(move |x| [x, z]))
    }

    fn len(self) -> usize {
        let side = |axis: usize| (self.last[axis] - self.first[axis] + 1) as usize;
        side(0) * side(1)
    }
}

/// The coarser grid, seen from this lattice.
struct Coarser<'a> {
    grid: &'a HeightGrid,
    /// This lattice's cells in one of the coarser one's: 1 or 2.
    ratio: i32,
}

impl<'a> Coarser<'a> {
    fn new(grid: &'a HeightGrid, rect: LatticeRect, own: Area) -> Result<Self, FormatError> {
        let ratio = (grid.rect.stride / rect.stride) as i32;
        let first = [grid.rect.x0, grid.rect.z0];
        let last = [
            grid.rect.x0 + grid.rect.width as i32 - 1,
            grid.rect.z0 + grid.rect.height as i32 - 1,
        ];
        let covers = (0..2).all(|axis| {
            first[axis] * ratio <= own.first[axis] && own.last[axis] <= last[axis] * ratio
        });
        if grid.rect.stride != rect.stride * ratio as u32 || ![1, 2].contains(&ratio) || !covers {
            return Err(FormatError::new(
                "a coarser level that does not cover this one",
            ));
        }
        Ok(Coarser { grid, ratio })
    }

    fn at(&self, [x, z]: [i32; 2]) -> Option<i32> {
        let on_lattice = x % self.ratio == 0 && z % self.ratio == 0;
        on_lattice.then(|| self.grid.at(x / self.ratio, z / self.ratio))
    }
}

/// The corner of a triangle on a leaf's plane: its lattice position, and its height with
/// [`FRACTION_BITS`] behind the point.
#[derive(Clone, Copy)]
struct Corner {
    at: [i32; 2],
    height: i64,
}

/// Called with a lattice position and the prediction there; returns the height.
type Visit<'a> = &'a mut dyn FnMut(i32, i32, i32) -> i32;

/// A grid while it is rebuilt.
struct Rebuilt<'a> {
    grid: HeightGrid,
    coarser: Option<Coarser<'a>>,
    /// Whether a vertex was met at each place of the grid.
    met: Vec<bool>,
    /// The ground of the section's own patches.
    own: Area,
    /// The same with as much of the apron as other patches of the level have.
    stored: Area,
}

impl<'a> Rebuilt<'a> {
    fn new(section: SectionTrees, coarser: Option<&'a HeightGrid>) -> Result<Self, FormatError> {
        let SectionTrees { layout, key, trees } = section;
        let rect = layout.section_rect(key);
        let cells = layout.lattice_cells(key.level);
        let [x0, z0, x1, z1] = layout.section_patches(key);
        if trees.len() != (x1 - x0) as usize * (z1 - z0) as usize {
            return Err(FormatError::new("a section with trees of another one"));
        }
        let own = Area::of_patches([x0, z0, x1, z1], cells);
        let [nx, nz] = layout.patches(key.level);
        let level = Area::of_patches([0, 0, nx, nz], cells);
        let coarser = coarser.map(|grid| Coarser::new(grid, rect, own));
        Ok(Rebuilt {
            grid: HeightGrid {
                rect,
                heights: vec![0; rect.len()],
            },
            coarser: coarser.transpose()?,
            met: vec![false; rect.len()],
            own,
            stored: own.grown(APRON).within(level),
        })
    }

    /// Visits all vertices in coding order, and fills the section's own ground.
    fn visit_vertices(&mut self, section: SectionTrees, visit: Visit) {
        let SectionTrees { layout, key, trees } = section;
        let [x0, z0, x1, z1] = layout.section_patches(key);
        let places = (z0..z1).flat_map(|z| (x0..x1).map(move |x| [x, z]));
        let mut last = 0;
        for ([x, z], trees) in places.zip(trees) {
            let cells = layout.lattice_cells(key.level) as i32;
            let corner = |dx, dz| [(x as i32 + dx) * cells, (z as i32 + dz) * cells];
            let corners = [corner(0, 0), corner(1, 0), corner(0, 1), corner(1, 1)];
            let [nw, ne, sw, se] = corners.map(|at| {
                last = self.vertex(at, last, visit);
                Corner {
                    at,
                    height: (last as i64) << FRACTION_BITS,
                }
            });
            let halves = if (x + z).is_multiple_of(2) {
                [[nw, se, ne], [se, nw, sw]]
            } else {
                [[sw, ne, nw], [ne, sw, se]]
            };
            let depth = layout.tree_depth(key.level);
            for (half, tree) in halves.into_iter().zip(trees.iter()) {
                self.descend(half, depth, Some(&mut tree.reader()), visit);
            }
        }
    }

    /// Goes down to the lattice; as long as the mesh is halved too, with its tree.
    fn descend(
        &mut self,
        [a, b, c]: [Corner; 3],
        halvings: u32,
        tree: Option<&mut BitReader>,
        visit: Visit,
    ) {
        let mut tree = tree.and_then(|tree| tree.next().then_some(tree));
        if halvings == 0 {
            return;
        }
        let at = [0, 1].map(|axis| (a.at[axis] + b.at[axis]) / 2);
        let mut height = (a.height + b.height) / 2;
        if tree.is_some() {
            let between = (height >> FRACTION_BITS) as i32;
            height = (self.vertex(at, between, visit) as i64) << FRACTION_BITS;
        } else {
            let half_step = 1 << (FRACTION_BITS - 1);
            self.put(at, ((height + half_step) >> FRACTION_BITS) as i32);
        }
        let middle = Corner { at, height };
        self.descend([c, a, middle], halvings - 1, tree.as_deref_mut(), visit);
        self.descend([b, c, middle], halvings - 1, tree, visit);
    }

    /// The height of a vertex, visited when it is met for the first time.
    fn vertex(&mut self, at: [i32; 2], otherwise: i32, visit: Visit) -> i32 {
        let place = self.place(at);
        if !std::mem::replace(&mut self.met[place], true) {
            let coarser = self.coarser.as_ref().and_then(|coarser| coarser.at(at));
            self.grid.heights[place] = visit(at[0], at[1], coarser.unwrap_or(otherwise));
        }
        self.grid.heights[place]
    }

    fn apron_heights(&self) -> usize {
        self.stored.len() - self.own.len()
    }

    /// Visits the heights that lie in the neighbours, from the inside out. Predicted as going on
    /// straight and, next to the section, as far off as the one before: of one leaf there, often.
    fn visit_apron(&mut self, visit: Visit) {
        for ring in 1..=APRON {
            for side in self.own.grown(ring).sides() {
                let mut off = 0i32;
                for [x, z] in side.within(self.stored).positions() {
                    let [own_x, own_z] = self.own.nearest([x, z]);
                    let (dx, dz) = ((x - own_x).signum(), (z - own_z).signum());
                    let [near, far] = [1, 2].map(|n| self.grid.at(x - n * dx, z - n * dz));
                    let straight = near.wrapping_add(near.wrapping_sub(far));
                    let height = visit(x, z, straight.wrapping_add(off));
                    if ring == 1 {
                        off = height.wrapping_sub(straight);
                    }
                    self.put([x, z], height);
                }
            }
        }
    }

    /// Lets the edge go on where the level has no patches.
    fn finish(mut self) -> HeightGrid {
        let rect = self.grid.rect;
        let whole = Area {
            first: [rect.x0, rect.z0],
            last: [
                rect.x0 + rect.width as i32 - 1,
                rect.z0 + rect.height as i32 - 1,
            ],
        };
        for p in whole.positions() {
            let nearest = self.stored.nearest(p);
            if nearest != p {
                self.put(p, self.grid.at(nearest[0], nearest[1]));
            }
        }
        self.grid
    }

    fn put(&mut self, at: [i32; 2], height: i32) {
        let place = self.place(at);
        self.grid.heights[place] = height;
    }

    fn place(&self, [x, z]: [i32; 2]) -> usize {
        let rect = self.grid.rect;
        (z - rect.z0) as usize * rect.width as usize + (x - rect.x0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Four stream patches of 8 x 8 finest patches, each with 8 x 8 cells.
    fn layout() -> Layout {
        Layout::new([127, 120], 8, 64).unwrap()
    }

    /// Trees that are split at random, all alike.
    fn trees(shape: &[bool], depth: u32) -> [Bits; 2] {
        fn write(bits: &mut Bits, shape: &mut impl Iterator<Item = bool>, depth: u32) {
            let split = depth > 0 && shape.next().unwrap_or(false);
            bits.push(split);
            (0..2 * u32::from(split)).for_each(|_| write(bits, shape, depth - 1));
        }
        [0, 1].map(|_| {
            let mut bits = Bits::default();
            write(&mut bits, &mut shape.iter().copied(), depth);
            bits
        })
    }

    fn rough(x: i32, z: i32) -> i32 {
        (x.wrapping_mul(7919) ^ z.wrapping_mul(104_729)) % 100 + 3 * x - 2 * z
    }

    /// Encodes a section, whose patches all have these trees, and the one above it.
    fn with_section<T>(
        key: SectionKey,
        trees: &[Bits; 2],
        act: impl FnOnce(SectionTrees, Option<&HeightGrid>) -> T,
    ) -> T {
        let layout = layout();
        let all = |key: SectionKey| {
            let [x0, z0, x1, z1] = layout.section_patches(key);
            vec![trees; ((x1 - x0) * (z1 - z0)) as usize]
        };
        let above = layout.coarser_section(key).map(|above| {
            let rect = layout.section_rect(above);
            let stride = rect.stride as i32;
            HeightGrid::from_fn(rect, |x, z| rough(x * stride, z * stride) + 1)
        });
        let section = SectionTrees {
            layout: &layout,
            key,
            trees: &all(key),
        };
        act(section, above.as_ref())
    }

    const MIDDLE: SectionKey = SectionKey {
        level: 1,
        x: 1,
        z: 0,
    };

    #[test]
    fn a_section_comes_back_as_it_was_rebuilt() {
        let trees = trees(&[true, true, false, true, true], 6);
        for level in 0..layout().levels {
            let key = if layout().is_global(level) {
                SectionKey { level, x: 0, z: 0 }
            } else {
                SectionKey { level, ..MIDDLE }
            };
            with_section(key, &trees, |section, above| {
                let (grid, bytes) = encode(section, above, rough).unwrap();
                assert_eq!(decode(&bytes, section, above).unwrap(), grid);
            });
        }
    }

    #[test]
    fn vertices_and_the_apron_are_as_given_and_the_rest_lies_between() {
        let trees = trees(&[], 0);
        with_section(MIDDLE, &trees, |section, above| {
            let (grid, _) = encode(section, above, |x, z| 10 * x + z % 16 * (x % 16)).unwrap();
            // Patch 4,0 has the cells from 64,0 to 80,16, and one plane in each half.
            assert_eq!([grid.at(64, 0), grid.at(80, 16)], [640, 800]);
            assert_eq!(
                [grid.at(65, 0), grid.at(72, 8), grid.at(67, 9)],
                [650, 720, 670]
            );
            // The neighbour's, as it was given; beyond the level's patches, the edge.
            assert_eq!(grid.at(63, 7), 630 + 7 * 15);
            assert_eq!(grid.at(70, -1), grid.at(70, 0));
            assert_eq!(grid.at(130, 5), grid.at(128, 5));
        });
    }

    #[test]
    fn planes_are_rounded_to_the_nearest_step_upwards_from_the_middle() {
        let trees = trees(&[], 0);
        with_section(MIDDLE, &trees, |section, above| {
            let (grid, _) = encode(section, above, |x, _| if x == 64 { -1 } else { 0 }).unwrap();
            let row = [64, 71, 72, 73, 80].map(|x| grid.at(x, 0));
            assert_eq!(row, [-1, -1, 0, 0, 0]);
        });
    }

    #[test]
    fn what_the_coarser_mesh_has_costs_nothing() {
        let trees = trees(&[true; 100], 6);
        with_section(MIDDLE, &trees, |section, above| {
            let above = above.unwrap();
            assert_eq!(above.rect.stride, 2);
            let (_, rough) = encode(section, Some(above), rough).unwrap();
            let flat = HeightGrid::from_fn(above.rect, |x, z| 14 * x + 6 * z);
            let (_, smooth) = encode(section, Some(&flat), |x, z| 7 * x + 3 * z).unwrap();
            assert!(
                4 * smooth.len() < rough.len(),
                "{} and {}",
                smooth.len(),
                rough.len()
            );
        });
    }

    #[test]
    fn another_sections_trees_or_grid_are_refused() {
        let trees = trees(&[true], 6);
        with_section(MIDDLE, &trees, |section, above| {
            let (grid, bytes) = encode(section, above, rough).unwrap();
            assert!(decode(&bytes, section, Some(&grid)).is_ok_and(|other| other != grid));
            let elsewhere = SectionKey {
                x: 0,
                ..section.key
            };
            let elsewhere = HeightGrid::from_fn(section.layout.section_rect(elsewhere), rough);
            assert!(decode(&bytes, section, Some(&elsewhere)).is_err());
            let fewer = SectionTrees {
                trees: &section.trees[1..],
                ..section
            };
            assert!(decode(&bytes, fewer, above).is_err());
            for len in 0..bytes.len() {
                assert!(
                    decode(&bytes[..len], section, above).is_err(),
                    "{len} bytes"
                );
            }
        });
    }

    proptest! {
        #[test]
        fn any_heights_and_trees_come_back(shape in prop::collection::vec(any::<bool>(), 0..60), seed in any::<u32>(), level in 0u8..5) {
            let x = u32::from(!layout().is_global(level));
            let height = |x: i32, z: i32| (x as u32).wrapping_mul(0x9e37_79b1).wrapping_add(z as u32 ^ seed).wrapping_mul(0x85eb_ca6b) as i32;
            with_section(SectionKey { level, x, z: 0 }, &trees(&shape, 6), |section, above| {
                let (grid, bytes) = encode(section, above, height).unwrap();
                prop_assert_eq!(decode(&bytes, section, above).unwrap(), grid);
                Ok(())
            })?;
        }

        #[test]
        fn any_bytes_are_heights_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            with_section(MIDDLE, &trees(&[true], 6), |section, above| {
                let _ = decode(&bytes, section, above);
            });
        }

        #[test]
        fn damaged_heights_are_heights_or_an_error(at in any::<prop::sample::Index>(), bit in 0u8..8) {
            with_section(MIDDLE, &trees(&[true, true, false, true], 6), |section, above| {
                let (grid, mut bytes) = encode(section, above, rough).unwrap();
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
                if let Ok(damaged) = decode(&bytes, section, above) {
                    prop_assert_eq!(damaged.heights.len(), grid.heights.len());
                }
                Ok(())
            })?;
        }
    }
}
