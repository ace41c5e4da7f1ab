//! A patch's indexed triangles, from its bit-streams alone.
//!
//! A bintree is walked node by node: a node halves its hypotenuse at a vertex, and the run of
//! leaves that follows it in the stream closes the last of the triangles that are open. Which bit
//! comes next can hardly be foretold, so no branch is taken on it: the two halves, and the open
//! triangle below them, are written as if they were leaves, and the length of the run says how
//! many of them count (longer runs are rare). A triangle is the numbers of its corners; a place on
//! the lattice is one number too, so a middle is half a sum.
//!
//! Invariants: a vertex comes behind the two ends whose middle it is; bits that are not one tree
//! are an error or a wrong mesh, but never lead out of the buffers; nothing is left of the patch
//! before.

use crate::world::{BitReader, BitRuns, Bits, FormatError};

/// The corners of a patch are its first vertices: north-west, north-east, south-west, south-east.
pub(super) const CORNERS: usize = 4;
/// Vertices are numbered in 16 bits, of which one value stands for none.
pub(super) const MOST_VERTICES: usize = UNSEEN as usize;
pub(super) const UNSEEN: u16 = u16::MAX;
/// One for each value of 16 bits, so that no number lies outside.
const NUMBERS: usize = 1 << 16;
/// Triangles that can be open at a time: the finest lattice is halved 22 times.
const MOST_OPEN: usize = 32;
/// Indices that are written before it is known how many of them count.
const STEP: usize = 10;

/// The two ends of a hypotenuse: the numbers of their vertices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends(u32);

impl Ends {
    fn new(a: u16, b: u16) -> Self {
        Ends(a as u32 | (b as u32) << 16)
    }

    pub fn a(self) -> u16 {
        self.0 as u16
    }

    pub fn b(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

/// Vertices and triangles of one patch after another, in memory that is kept.
pub struct Topology {
    /// Lattice positions in a row.
    pitch: u32,
    /// Number of the vertex at each lattice position, row by row.
    numbers: Vec<u16>,
    count: usize,
    /// Of each vertex: its place among the lattice's positions, and whose middle it is.
    places: Box<[u32; NUMBERS]>,
    ends: Box<[Ends; NUMBERS]>,
    /// Only the first `written` mean anything.
    indices: Vec<u16>,
    written: usize,
}

impl Default for Topology {
    fn default() -> Self {
        Topology {
            pitch: 0,
            numbers: Vec::new(),
            count: 0,
            places: one_for_each_number(),
            ends: one_for_each_number(),
            indices: Vec::new(),
            written: 0,
        }
    }
}

/// Zeros, which never lie on the stack.
fn one_for_each_number<T: Clone + Default>() -> Box<[T; NUMBERS]> {
    let zeros = vec![T::default(); NUMBERS].into_boxed_slice();
    zeros
        .try_into()
        .unwrap_or_else(|_| unreachable!("one for each"))
}

impl Topology {
    /// Takes a patch of `cells` lattice cells a side.
    pub fn read(
        &mut self,
        cells: u32,
        splits_nw_se: bool,
        trees: &[Bits; 2],
    ) -> Result<(), FormatError> {
        self.begin(cells);
        self.add_trees(splits_nw_se, trees, 0)?;
        self.check_count()
    }

    /// Three a triangle, counter-clockwise from above.
    pub fn indices(&self) -> &[u16] {
        &self.indices[..self.written]
    }

    /// The lattice position, x and z, of each vertex.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = [u32; 2]> {
        positions(self.pitch, &self.places[..self.count])
    }

    /// Whose middle each vertex is; the corners' are of no meaning.
    pub(super) fn ends(&self) -> &[Ends] {
        &self.ends[..self.count]
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The vertex at a lattice position, if there is one.
    pub(super) fn vertex_at(&self, x: u32, z: u32) -> Option<u16> {
        let number = self.numbers[(z * self.pitch + x) as usize];
        (number != UNSEEN).then_some(number)
    }

    /// Starts a patch: its corners, and no triangle.
    pub(super) fn begin(&mut self, cells: u32) {
        self.pitch = cells + 1;
        let positions = (self.pitch * self.pitch) as usize;
        self.numbers.clear();
        self.numbers.resize(positions, UNSEEN);
        let south = cells * self.pitch;
        for (corner, place) in [0, cells, south, south + cells].into_iter().enumerate() {
            self.places[corner] = place;
            self.numbers[place as usize] = corner as u16;
        }
        self.count = CORNERS;
        self.written = 0;
    }

    /// Adds the vertices, but not the triangles, of a tree over one half. Returns its nodes.
    pub(super) fn add_vertices(
        &mut self,
        splits_nw_se: bool,
        half: usize,
        tree: BitReader,
    ) -> Result<usize, FormatError> {
        self.walk(roots(splits_nw_se)[half], tree, 0)?;
        let leaves = std::mem::take(&mut self.written) / 3;
        Ok(leaves - 1)
    }

    /// Adds the trees of both halves. Returns how many nodes halve their hypotenuse at one of the
    /// first `known` vertices.
    pub(super) fn add_trees(
        &mut self,
        splits_nw_se: bool,
        trees: &[Bits; 2],
        known: usize,
    ) -> Result<usize, FormatError> {
        let [first, second] = roots(splits_nw_se);
        Ok(self.walk(first, trees[0].reader(), known)?
            + self.walk(second, trees[1].reader(), known)?)
    }

    /// Numbers that ran out are found here, before anybody uses them.
    pub(super) fn check_count(&self) -> Result<(), FormatError> {
        check_count(self.count)
    }

    /// Adds one tree, which starts at `root`. Returns what [`Topology::add_trees`] does.
    fn walk(
        &mut self,
        root: Open,
        mut tree: BitReader,
        known: usize,
    ) -> Result<usize, FormatError> {
        let leaves = tree.bits_left() as usize / 2 + 1;
        let space = self.written + 3 * leaves + STEP;
        if self.indices.len() < space {
            self.indices.resize(space, 0);
        }
        let out = &mut self.indices[self.written..space];
        if !tree.next() {
            root.put(out);
            self.written += 3;
            return Ok(0);
        }
        let found = Nodes {
            numbers: &mut self.numbers,
            places: &mut self.places,
            ends: &mut self.ends,
            count: self.count,
        }
        .walk(root, tree.runs(), out, known)
        .ok_or_else(|| FormatError::new("a bit-stream that is not one bintree"))?;
        self.count = found.vertices;
        self.written = space - found.unwritten;
        Ok(found.over_known)
    }
}

/// Columns and rows of places on a lattice of `pitch` positions a row.
pub(super) fn positions(pitch: u32, places: &[u32]) -> impl ExactSizeIterator<Item = [u32; 2]> {
    // Division by a product. It is too large by less than place / 2^SHIFT, which is less than
    // 1 / pitch, as long as pitch³ is less than 2^SHIFT.
    const SHIFT: u32 = 36;
    let inverse = (1 << SHIFT) / pitch as u64 + 1;
    places.iter().map(move |&place| {
        let row = ((place as u64 * inverse) >> SHIFT) as u32;
        [place - row * pitch, row]
    })
}

/// Whether so many vertices can have numbers.
pub(super) fn check_count(count: usize) -> Result<(), FormatError> {
    if count <= MOST_VERTICES {
        return Ok(());
    }
    Err(FormatError(format!(
        "a patch of {count} vertices; at most {MOST_VERTICES} can be drawn (compile with smaller patches)"
    )))
}

/// A triangle that is not halved yet.
#[derive(Clone, Copy)]
struct Open {
    hypotenuse: Ends,
    apex: u16,
}

impl Open {
    fn halves(self, middle: u16) -> [Open; 2] {
        let (a, b) = (self.hypotenuse.a(), self.hypotenuse.b());
        [Ends::new(self.apex, a), Ends::new(b, self.apex)].map(|hypotenuse| Open {
            hypotenuse,
            apex: middle,
        })
    }

    /// Writes the three corners, and one index more: four are one store.
    fn put(self, out: &mut [u16]) {
        let Ends(ends) = self.hypotenuse;
        out[..4].copy_from_slice(&[ends as u16, (ends >> 16) as u16, self.apex, 0]);
    }
}

/// The halves of a patch, as `Triangle::roots` gives them.
fn roots(splits_nw_se: bool) -> [Open; 2] {
    let root = |a, b, apex| Open {
        hypotenuse: Ends::new(a, b),
        apex,
    };
    let [nw, ne, sw, se] = [0, 1, 2, 3];
    if splits_nw_se {
        [root(nw, se, ne), root(se, nw, sw)]
    } else {
        [root(sw, ne, nw), root(ne, sw, se)]
    }
}

/// What a walk fills.
struct Nodes<'a> {
    numbers: &'a mut [u16],
    places: &'a mut [u32; NUMBERS],
    ends: &'a mut [Ends; NUMBERS],
    count: usize,
}

/// What a walk found.
struct Found {
    vertices: usize,
    over_known: usize,
    /// What is left of the space for indices.
    unwritten: usize,
}

impl Nodes<'_> {
    /// Walks a tree whose first node has been read; none when it does not fit.
    fn walk(
        mut self,
        root: Open,
        mut runs: BitRuns,
        mut out: &mut [u16],
        known: usize,
    ) -> Option<Found> {
        // The next to be read is above the others; the lowest is none.
        let mut open = OpenTriangles::default();
        let (mut next, mut below, mut over_known) = (root, 0, 0);
        loop {
            let middle = self.halve(next.hypotenuse);
            over_known += usize::from((middle as usize) < known);
            let [first, second] = next.halves(middle);
            let step = out.first_chunk_mut::<STEP>()?;
            first.put(&mut step[0..]);
            second.put(&mut step[3..]);
            open.get(below).put(&mut step[6..]);

            let count = below + 2;
            if count >= MOST_OPEN {
                return None;
            }
            open.set(below + 1, second);
            open.set(below + 2, first);
            let leaves = runs.leaves_before_node().min(count);
            for i in 3..leaves {
                open.get(count - i).put(out.get_mut(3 * i..3 * i + 4)?);
            }
            out.split_off_mut(..3 * leaves)?;
            if leaves == count {
                return Some(Found {
                    vertices: self.count,
                    over_known,
                    unwritten: out.len(),
                });
            }
            below = count - leaves - 1;
            next = open.get(below + 1);
        }
    }

    /// The vertex in the middle of a hypotenuse. One that was not there gets the next number,
    /// which is smaller than [`UNSEEN`] and larger than those that are there.
    fn halve(&mut self, hypotenuse: Ends) -> u16 {
        let [a, b] = [hypotenuse.a(), hypotenuse.b()].map(|end| self.places[end as usize]);
        let place = (a + b) / 2;
        let number = &mut self.numbers[place as usize];
        let before = *number as usize;
        let middle = before.min(self.count);
        *number = middle as u16;
        self.places[self.count % NUMBERS] = place;
        self.ends[self.count % NUMBERS] = hypotenuse;
        self.count += usize::from(before >= self.count);
        middle as u16
    }
}

/// Apart, since a hypotenuse is known long before its apex has been looked up.
#[derive(Default)]
struct OpenTriangles {
    hypotenuses: [Ends; MOST_OPEN],
    apexes: [u16; MOST_OPEN],
}

impl OpenTriangles {
    fn get(&self, i: usize) -> Open {
        Open {
            hypotenuse: self.hypotenuses[i],
            apex: self.apexes[i],
        }
    }

    fn set(&mut self, i: usize, triangle: Open) {
        self.hypotenuses[i] = triangle.hypotenuse;
        self.apexes[i] = triangle.apex;
    }
}
