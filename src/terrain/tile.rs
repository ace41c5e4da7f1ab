//! The ranks of one tile's vertices: the part of the hierarchy inside a square.
//!
//! Tiles are worked on alone and agree by exchange: corners belong to the hierarchy above them,
//! borders to both neighbours, and what one raises the other must raise too. Ranks only grow
//! towards the one smallest solution, so the order of work does not matter.
//!
//! Positions are samples from the tile's north-west corner.

use super::fine::settle_fine;
use super::hierarchy::{Diamond, Raised, Rank, Ranked, raise, settle};
use super::rules::Rules;
use super::sweep::{Sweep, settle_swept};
use super::tile_ground::TileGround;
use super::triangle::Triangle;
use crate::world::live::STEPS;
use crate::world::{Layout, PatchKey};
use glam::{IVec2, ivec2};

/// The corners of a square of side 1: north-west, north-east, south-west, south-east.
pub const CORNERS: [IVec2; 4] = [ivec2(0, 0), ivec2(1, 0), ivec2(0, 1), ivec2(1, 1)];

/// How a world is cut into tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    pub layout: Layout,
    /// The level whose patches the tiles are: the stream patches', or the finest where nothing is
    /// streamed.
    pub level: u8,
    /// Samples along a tile's side.
    pub side: i32,
    pub ladder: Ladder,
}

/// What ranks stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ladder {
    /// One more than the coarsest level that has a vertex.
    Levels,
    /// One more than the last of a level's growing thresholds at which its mesh has a vertex.
    Steps { level: u8 },
}

impl Tiling {
    pub fn new(layout: Layout) -> Self {
        let level = layout.stream_levels.saturating_sub(1);
        Tiling {
            layout,
            level,
            side: layout.patch_size(level) as i32,
            ladder: Ladder::Levels,
        }
    }

    /// Tiles that hold any ground, [x, z].
    pub fn present(&self) -> IVec2 {
        let [x, z] = self.layout.patches(self.level);
        ivec2(x as i32, z as i32)
    }

    /// Tiles under the coarsest patches, absent ones too.
    pub fn extent(&self) -> IVec2 {
        let coarsest = self.layout.coarsest();
        let [x, z] = self.layout.patches(coarsest);
        ivec2(x as i32, z as i32) << (coarsest - self.level) as i32
    }

    /// The last sample of the source, seen from a tile's north-west corner.
    pub fn last_sample(&self, tile: IVec2) -> IVec2 {
        let [x, z] = self.layout.size_cells;
        ivec2(x as i32, z as i32) - tile * self.side
    }

    /// The highest rank there is.
    pub fn top_rank(&self) -> Rank {
        match self.ladder {
            Ladder::Levels => self.layout.levels,
            Ladder::Steps { .. } => STEPS,
        }
    }

    /// The rank that lattices allow a vertex of the world whose place divides by two so often.
    pub fn highest_rank(&self, halvings: u32) -> Rank {
        let coarsest = halvings + self.layout.lattice_bias as u32;
        match self.ladder {
            Ladder::Levels => coarsest.min(self.layout.coarsest() as u32) as Rank + 1,
            Ladder::Steps { level } if coarsest >= level as u32 => STEPS,
            Ladder::Steps { .. } => 0,
        }
    }

    /// The rank that the corners of all present patches of a level have at least.
    pub fn corner_rank(&self, patches: u8) -> Rank {
        match self.ladder {
            Ladder::Levels => patches + 1,
            Ladder::Steps { level } if patches >= level => STEPS,
            Ladder::Steps { .. } => 0,
        }
    }

    /// A tile's patches of a level no coarser than its own, row by row.
    pub fn patches_of(&self, tile: IVec2, level: u8) -> Vec<PatchKey> {
        let side = 1 << (self.level - level);
        let corner = tile * side;
        let row = |z| (0..side).map(move |x| corner + ivec2(x, z));
        (0..side)
            .flat_map(row)
            .map(|patch| PatchKey::new(level, patch.x as u32, patch.y as u32))
            .filter(|&key| self.layout.contains(key))
            .collect()
    }
}

/// A tile while it is worked on.
pub struct Tile<'a> {
    pub tiling: Tiling,
    /// Which one, in tiles from the north-west.
    pub place: IVec2,
    pub rules: &'a Rules,
    /// None where the tile is absent: its triangles have no errors.
    pub ground: Option<&'a TileGround>,
    /// Row by row, borders included.
    pub ranks: Vec<Rank>,
    pub errors: Errors,
    /// Whether the finest vertices are left to sweeps.
    pub(super) swept: bool,
}

/// Errors that were measured to the end, so that leaves need not be measured again. Those of the
/// smallest triangles are found again as fast, so only middles with even places have some, and of
/// these only every other one, as the fields of one colour of a chessboard.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors {
    /// Middles a row.
    width: usize,
    /// In height steps, of the triangle to either side of a middle; NaN where it is not known.
    pub values: Vec<[f32; 2]>,
}

impl Errors {
    fn new(side: i32) -> Self {
        let width = side as usize / 4 + 1;
        let rows = side as usize / 2 + 1;
        Errors {
            width,
            values: vec![[f32::NAN; 2]; width * rows],
        }
    }

    fn note(&mut self, triangle: Triangle, error: f32) {
        let sum = triangle.a + triangle.b;
        if (sum.x | sum.y) & 1 == 0 {
            let middle = sum / 2;
            let first = (triangle.c.y, triangle.c.x) < (middle.y, middle.x);
            self.note_at(middle, first, error);
        }
    }

    /// Of the triangle with the middle's first apex, to its north or west, or of the other one.
    pub(super) fn note_at(&mut self, middle: IVec2, first: bool, error: f32) {
        if let Some(index) = self.place(middle) {
            self.values[index][first as usize] = error;
        }
    }

    pub fn at(&self, middle: IVec2, first: bool) -> Option<f64> {
        let error = self.values[self.place(middle)?][first as usize];
        (!error.is_nan()).then_some(error as f64)
    }

    fn place(&self, middle: IVec2) -> Option<usize> {
        let is_kept = (middle.x | middle.y) & 1 == 0 && (middle.x ^ middle.y) & 2 == 0;
        is_kept.then(|| (middle.y / 2) as usize * self.width + (middle.x / 4) as usize)
    }
}

/// The ranks along a border between its corners, from west to east or from north to south.
pub type Border = Vec<Rank>;

impl<'a> Tile<'a> {
    /// A tile of which nothing is known but that its patches' corners are vertices.
    pub fn new(
        tiling: Tiling,
        place: IVec2,
        rules: &'a Rules,
        ground: Option<&'a TileGround>,
    ) -> Self {
        let samples = (tiling.side as usize + 1).pow(2);
        Tile {
            tiling,
            place,
            rules,
            ground,
            ranks: vec![0; samples],
            errors: Errors::new(tiling.side),
            swept: false,
        }
    }

    /// Raises the corners of all present patches and works until nothing changes.
    pub fn start(&mut self, corners: [Rank; 4], borders: [&[Rank]; 4]) {
        let mut raised = Raised::default();
        for level in 0..self.tiling.level {
            let rank = self.tiling.corner_rank(level);
            let size = self.tiling.layout.patch_size(level) as i32;
            let last = self.tiling.last_sample(self.place);
            // The last present patch ends where the source does, or behind it.
            let end = ((last + size - 1) / size * size).min(IVec2::splat(self.tiling.side));
            for z in (0..=end.y).step_by(size as usize) {
                for x in (0..=end.x).step_by(size as usize) {
                    if !self.is_corner(ivec2(x, z)) {
                        raise(self, ivec2(x, z), rank, &mut raised);
                    }
                }
            }
        }
        let heights = self.ground.and_then(|ground| ground.plain_heights());
        let sweep = heights.and_then(|heights| Sweep::new(self, heights));
        match sweep {
            Some(sweep) => {
                self.swept = true;
                self.meet(corners, borders, &mut raised);
                self.sweep(sweep);
                self.swept = false;
            }
            None => self.meet(corners, borders, &mut raised),
        }
    }

    /// Sweeps over the finest vertices, in turns with the coarser ones, until nothing changes.
    fn sweep(&mut self, mut sweep: Sweep) {
        let mut raised = Raised::default();
        loop {
            sweep.take(&self.ranks);
            sweep.down();
            let again = sweep.up();
            for anchor in sweep.anchors() {
                raise(self, anchor, sweep.rank(anchor), &mut raised);
            }
            sweep.give(&mut self.ranks);
            if !again && raised.is_empty() {
                return;
            }
            settle(self, &mut raised);
        }
    }

    /// Raises what the hierarchy above and the neighbours have raised.
    pub fn go_on(&mut self, corners: [Rank; 4], borders: [&[Rank]; 4]) {
        self.meet(corners, borders, &mut Raised::default());
    }

    fn meet(&mut self, corners: [Rank; 4], borders: [&[Rank]; 4], raised: &mut Raised) {
        for (vertex, rank) in self.corners().into_iter().zip(corners) {
            raise(self, vertex, rank, raised);
        }
        for (side, border) in borders.into_iter().enumerate() {
            for (at, &rank) in border.iter().enumerate() {
                raise(self, self.on_border(side, at), rank, raised);
            }
        }
        settle(self, raised);
    }

    /// North-west, north-east, south-west, south-east.
    pub fn corners(&self) -> [IVec2; 4] {
        CORNERS.map(|corner| corner * self.tiling.side)
    }

    pub fn corner_ranks(&self) -> [Rank; 4] {
        self.corners().map(|corner| self.rank(corner))
    }

    /// The ranks of the north, south, west and east border, without corners.
    pub fn borders(&self) -> [Border; 4] {
        std::array::from_fn(|side| self.border(side))
    }

    /// One of the four borders, in the same order.
    pub fn border(&self, side: usize) -> Border {
        let inner = 0..self.tiling.side as usize - 1;
        inner
            .map(|at| self.rank(self.on_border(side, at)))
            .collect()
    }

    /// The two halves of the tile, in the order of their bit-streams.
    pub fn roots(&self) -> [Triangle; 2] {
        Triangle::roots(IVec2::ZERO, self.tiling.side, self.is_even())
    }

    fn on_border(&self, side: usize, at: usize) -> IVec2 {
        let (along, far) = (at as i32 + 1, self.tiling.side);
        match side {
            0 => ivec2(along, 0),
            1 => ivec2(along, far),
            2 => ivec2(0, along),
            _ => ivec2(far, along),
        }
    }

    /// Whether the tile is split along its NW-SE diagonal.
    fn is_even(&self) -> bool {
        (self.place.x + self.place.y) % 2 == 0
    }

    fn is_corner(&self, p: IVec2) -> bool {
        let on_end = |n: i32| n == 0 || n == self.tiling.side;
        on_end(p.x) && on_end(p.y)
    }

    /// What a way adds to [`Tile::index`].
    pub(super) fn step(&self, way: IVec2) -> isize {
        (way.y * (self.tiling.side + 1) + way.x) as isize
    }

    pub(super) fn index(&self, p: IVec2) -> usize {
        (p.y * (self.tiling.side + 1) + p.x) as usize
    }
}

impl Ranked for Tile<'_> {
    fn rank(&self, vertex: IVec2) -> Rank {
        self.ranks[self.index(vertex)]
    }

    fn set_rank(&mut self, vertex: IVec2, rank: Rank) {
        let index = self.index(vertex);
        self.ranks[index] = rank;
    }

    fn highest_rank(&self, vertex: IVec2) -> Rank {
        self.tiling
            .highest_rank((vertex.x | vertex.y).trailing_zeros())
    }

    #[inline]
    fn is_inside(&self, vertex: IVec2) -> bool {
        let side = self.tiling.side as u32;
        vertex.x as u32 <= side && vertex.y as u32 <= side
    }

    fn diamond(&self, middle: IVec2) -> Option<Diamond> {
        if self.is_corner(middle) {
            return None;
        }
        let side = self.tiling.side;
        let even = |corner: IVec2, size: i32| {
            if size == side {
                self.is_even()
            } else {
                // Whole squares: the place, halved so often, is odd or even.
                ((corner.x ^ corner.y) >> size.trailing_zeros()) & 1 == 0
            }
        };
        Some(Diamond::of(middle, even))
    }

    fn roots_at(&self, vertex: IVec2) -> [Option<Triangle>; 2] {
        let root = |t: Triangle| (t.c == vertex).then_some(t);
        if self.is_corner(vertex) {
            self.roots().map(root)
        } else {
            [None; 2]
        }
    }

    #[inline]
    fn settle_fast(&mut self, diamond: Diamond, before: Rank, raised: &mut Raised) -> bool {
        if self.swept {
            return settle_swept(self, diamond, raised);
        }
        settle_fine(self, diamond, before, raised)
    }

    fn need(&mut self, triangle: Triangle, least: Rank, most: Rank) -> Rank {
        let Some(ground) = self.ground else {
            return least;
        };
        let (need, error) = ground.need(self.rules, triangle, least, most);
        if let Some(error) = error {
            self.errors.note(triangle, error);
        }
        need
    }
}
