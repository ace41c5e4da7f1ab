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

    /// Row by row.
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

    /// Visits the heights that lie in the neighbours, from the inside out; predicted as going on
    /// straight.
    fn visit_apron(&mut self, visit: Visit) {
        for ring in 1..=APRON {
            for [x, z] in self.own.grown(ring).within(self.stored).positions() {
                let [own_x, own_z] = self.own.nearest([x, z]);
                if (x - own_x).abs().max((z - own_z).abs()) < ring {
                    continue;
                }
                let (dx, dz) = ((x - own_x).signum(), (z - own_z).signum());
                let [near, far] = [1, 2].map(|n| self.grid.at(x - n * dx, z - n * dz));
                let predicted = near.wrapping_add(near.wrapping_sub(far));
                self.put([x, z], visit(x, z, predicted));
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
