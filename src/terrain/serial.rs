//! The meshes of a map that lies in memory, on one thread, one tile after another.
//!
//! What the compiler does on all cores with ground of any size, for small maps: the reference it
//! is tested against, and what benches measure.

use super::detail::DetailMask;
use super::height_map::HeightMap;
use super::hierarchy::Rank;
use super::rules::Rules;
use super::tile::{Border, Tile, Tiling};
use super::tile_ground::TileGround;
use super::upper::{Own, Tallies, Upper, tally};
use crate::world::Layout;
use glam::{IVec2, ivec2};
use std::collections::HashMap;

/// A map cut into tiles.
pub struct Grounds {
    tiling: Tiling,
    tiles: HashMap<IVec2, TileGround>,
    tallies: Tallies,
}

impl Grounds {
    /// `absent` says of each sample of the map whether it is a kept void.
    pub fn new(
        map: &HeightMap,
        absent: Option<&[bool]>,
        mask: Option<&DetailMask>,
        layout: Layout,
        rules: &Rules,
    ) -> Self {
        let samples = [map.width, map.height];
        let tiling = Tiling::new(layout);
        let present = tiling.present();
        let greys = |place: IVec2, side: i32| {
            mask.map(|mask| mask.square(place * tiling.side, side, samples))
        };
        let mut tiles = HashMap::new();
        let mut tallies = Tallies::new();
        let mut heights = HeightMap {
            width: 0,
            height: 0,
            heights: Vec::new(),
        };
        for place in places(present) {
            let origin = place * tiling.side;
            let last = tiling.last_sample(place);
            window(map, origin, IVec2::splat(tiling.side + 1), &mut heights);
            let vertices = IVec2::splat(tiling.side + 1);
            let greys_there = greys(place, vertices.x).unwrap_or_default();
            let dry = rules.dry(origin, vertices.as_uvec2().to_array());
            let ground = TileGround::new(&heights, 0, greys_there, dry, last, rules);
            let absent_there = |size| absent.map(|all| part(map, all, origin, size));
            let ground = match absent_there(vertices) {
                Some(absent) => ground.leave_out(absent),
                None => ground,
            };
            tiles.insert(place, ground);
            if tiling.level == layout.coarsest() {
                continue;
            }
            let ends = (place + 1).cmpeq(present);
            let own = IVec2::select(ends, last + 1, IVec2::splat(tiling.side));
            let greys = mask.map(|mask| mask.square(origin, own.max_element(), samples));
            let corner = |p: IVec2| map.at((p.x * tiling.side) as i64, (p.y * tiling.side) as i64);
            window(map, origin, own, &mut heights);
            let absent = absent_there(own);
            let own = Own {
                window: &heights,
                absent: absent.as_deref(),
                greys: greys.as_deref(),
            };
            let known = |name| tallies.get(&name).copied().unwrap_or_default();
            let found = tally(&tiling, place, &own, rules, corner, known);
            for (name, found) in found {
                let sum = tallies.entry(name).or_default();
                *sum = sum.and(found);
            }
        }
        Grounds {
            tiling,
            tiles,
            tallies,
        }
    }

    /// Raises ranks until nothing changes; all tiles under the coarsest patches, row by row.
    pub fn settle<'a>(&'a self, rules: &'a Rules) -> (Vec<Tile<'a>>, Upper<'a>) {
        let tiling = self.tiling;
        let mut upper = Upper::new(tiling, rules, self.tallies.clone());
        let extent = tiling.extent();
        let mut tiles: Vec<Tile> = places(extent)
            .map(|place| Tile::new(tiling, place, rules, self.tiles.get(&place)))
            .collect();
        let mut open: Vec<bool> = tiles.iter().map(|tile| tile.ground.is_some()).collect();
        let mut started = vec![false; tiles.len()];
        while open.iter().any(|&open| open) {
            for at in 0..tiles.len() {
                if std::mem::take(&mut open[at]) {
                    let first = !std::mem::replace(&mut started[at], true);
                    work_on(at, first, &mut tiles, &mut upper, extent, &mut open);
                }
            }
        }
        (tiles, upper)
    }
}

/// Works on a tile, and opens those that must follow.
fn work_on(
    at: usize,
    first: bool,
    tiles: &mut [Tile],
    upper: &mut Upper,
    extent: IVec2,
    open: &mut [bool],
) {
    let place = tiles[at].place;
    let index = |place: IVec2| {
        let inside = place.min_element() >= 0 && place.cmplt(extent).all();
        inside.then(|| (place.y * extent.x + place.x) as usize)
    };
    let beside = [ivec2(0, -1), ivec2(0, 1), ivec2(-1, 0), ivec2(1, 0)];
    let beside = beside.map(|offset| index(place + offset));
    // Their south, north, east and west borders are the tile's own.
    let theirs = |side: usize, there: Option<usize>| -> Border {
        there.map_or(Border::new(), |there| {
            tiles[there].border([1, 0, 3, 2][side])
        })
    };
    let before: [Border; 4] = std::array::from_fn(|side| theirs(side, beside[side]));
    let corners = upper.corners(place);
    let borders = [0, 1, 2, 3].map(|side| &before[side][..]);
    if first && tiles[at].ground.is_some() {
        tiles[at].start(corners, borders);
    } else {
        tiles[at].go_on(corners, borders);
    }
    for (side, there) in beside.into_iter().enumerate() {
        if let Some(there) = there {
            open[there] |= tiles[at].border(side) != before[side];
        }
    }
    upper.raise_corners(place, tiles[at].corner_ranks());
    for touched in upper.take_touched() {
        if let Some(there) = index(touched) {
            open[there] |= tiles[there].corner_ranks() != upper.corners(touched);
        }
    }
}

/// The triangles of a level in a tile, and its vertices in the order of their first use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TileMesh {
    /// Places in the tile's rows of vertices.
    pub vertices: Vec<u32>,
    /// Three a triangle, counter-clockwise from above.
    pub indices: Vec<[u32; 3]>,
}

/// Builds meshes of tiles of one size; what it needs while it works is kept for the next one.
#[derive(Default)]
pub struct Mesher {
    /// One more than each vertex's index; 0 where there is none yet.
    numbers: Vec<u32>,
    mesh: TileMesh,
}

impl Mesher {
    /// The mesh of a level whose patches are no wider than the tile.
    pub fn build(&mut self, tile: &Tile, level: u8) -> &TileMesh {
        self.numbers.clear();
        self.numbers.resize(tile.ranks.len(), 0);
        self.mesh.vertices.clear();
        self.mesh.indices.clear();
        let mut walk = MeshWalk {
            ranks: &tile.ranks,
            level,
            numbers: &mut self.numbers,
            mesh: &mut self.mesh,
        };
        let halvings = 2 * tile.tiling.side.ilog2();
        for root in tile.roots() {
            let corners = [root.a, root.b, root.c].map(|p| {
                let place = tile.index(p) as u32;
                (place, walk.number(place))
            });
            walk.visit(corners, halvings);
        }
        &self.mesh
    }
}

struct MeshWalk<'a> {
    ranks: &'a [Rank],
    level: u8,
    numbers: &'a mut [u32],
    mesh: &'a mut TileMesh,
}

impl MeshWalk<'_> {
    /// Corners as places and indices. Places count row by row, so the middle of two is their mean.
    fn visit(&mut self, corners: [(u32, u32); 3], halvings: u32) {
        let [a, b, _] = corners;
        let middle = (a.0 + b.0) / 2;
        if halvings > 0 && self.ranks[middle as usize] > self.level {
            self.visit_halves(corners, middle, halvings);
        } else {
            self.mesh.indices.push(corners.map(|corner| corner.1));
        }
    }

    /// Leaves are taken here, without a call each: they are half of all triangles.
    fn visit_halves(&mut self, [a, b, c]: [(u32, u32); 3], middle: u32, halvings: u32) {
        let middle = (middle, self.number(middle));
        for half in [[c, a, middle], [b, c, middle]] {
            let below = (half[0].0 + half[1].0) / 2;
            if halvings > 1 && self.ranks[below as usize] > self.level {
                self.visit_halves(half, below, halvings - 1);
            } else {
                self.mesh.indices.push(half.map(|corner| corner.1));
            }
        }
    }

    /// The index of a vertex, given at its first use.
    fn number(&mut self, place: u32) -> u32 {
        let number = &mut self.numbers[place as usize];
        if *number == 0 {
            self.mesh.vertices.push(place);
            *number = self.mesh.vertices.len() as u32;
        }
        *number - 1
    }
}

/// Row by row.
fn places(count: IVec2) -> impl Iterator<Item = IVec2> {
    (0..count.y).flat_map(move |z| (0..count.x).map(move |x| ivec2(x, z)))
}

/// A part of a map, into memory that is there; beyond the map its edge goes on.
fn window(map: &HeightMap, origin: IVec2, size: IVec2, found: &mut HeightMap) {
    (found.width, found.height) = (size.x as u32, size.y as u32);
    found.heights.clear();
    add_part(map, &map.heights, origin, size, &mut found.heights);
}

/// A part of what there is of each sample of a map.
fn part<T: Copy>(map: &HeightMap, all: &[T], origin: IVec2, size: IVec2) -> Vec<T> {
    let mut found = Vec::with_capacity((size.x * size.y) as usize);
    add_part(map, all, origin, size, &mut found);
    found
}

fn add_part<T: Copy>(map: &HeightMap, all: &[T], origin: IVec2, size: IVec2, found: &mut Vec<T>) {
    for z in origin.y..origin.y + size.y {
        let present = (map.width as i32 - origin.x).clamp(0, size.x) as usize;
        let row = z.min(map.height as i32 - 1) as usize * map.width as usize;
        let first = row + origin.x as usize;
        found.extend_from_slice(&all[first..first + present]);
        let edge = all[row + map.width as usize - 1];
        found.resize(found.len() + size.x as usize - present, edge);
    }
}
