//! The step beside the others: heights at the meshes' vertices only.
//!
//! Each section is predicted from the coarser one as readers will rebuild it, so the meshes must
//! all be known before: the levels of the global repository follow one another, then tile by tile
//! the streamed ones. In its aprons a tile needs what its neighbours will be rebuilt to: the
//! planes of their meshes' leaves.

use super::job::{Job, usage};
use super::meshes::Meshes;
use super::survey::CoarseHeights;
use crate::error::Result;
use crate::terrain::height_map::HeightMap;
use crate::terrain::hierarchy::Ranked;
use crate::terrain::tile::Tile;
use crate::terrain::trees::{Piece, tile_trees};
use crate::terrain::triangle::{Plane, Triangle};
use crate::world::container::pack;
use crate::world::nodes::{self, SectionTrees};
use crate::world::reader::chunk_of;
use crate::world::{Bits, ChunkKind, Coding, HeightGrid, PatchRecord, SectionKey, WorldWriter};
use glam::{IVec2, ivec2};
use rayon::prelude::*;
use std::collections::HashMap;

/// Packs the heights of all sections; `global` are the patches of the global repository's levels,
/// finest first.
pub fn write_nodes(
    job: &Job,
    meshes: &Meshes,
    coarse: &CoarseHeights,
    global: &[Vec<PatchRecord>],
    writer: &WorldWriter,
) -> Result<()> {
    let layout = &job.tiling.layout;
    let mut above: Option<HeightGrid> = None;
    for (level, patches) in (layout.stream_levels..layout.levels).zip(global).rev() {
        let key = SectionKey { level, x: 0, z: 0 };
        let trees: Vec<&[Bits; 2]> = patches.iter().map(|patch| &patch.trees).collect();
        let stride = layout.stride(level) as i32;
        let height = |x, z| coarse.at(ivec2(x, z) * stride);
        above = Some(write_section(
            job,
            key,
            &trees,
            above.as_ref(),
            height,
            writer,
        )?);
    }
    let Some(above) = above.filter(|_| layout.stream_levels > 0) else {
        return Ok(());
    };
    job.present_tiles().into_par_iter().try_for_each(|place| {
        write_tile(job, meshes, place, &above, writer)?;
        job.finished(place)
    })
}

/// Packs the heights of a tile's sections, coarse before fine.
fn write_tile(
    job: &Job,
    meshes: &Meshes,
    place: IVec2,
    above: &HeightGrid,
    writer: &WorldWriter,
) -> Result<()> {
    let layout = &job.tiling.layout;
    let around = Around::read(job, meshes, place)?;
    let mut patches = tile_trees(&around.tiles[&place].mesh).patches;
    let mut finer: Option<HeightGrid> = None;
    for level in (0..layout.stream_levels).rev() {
        let keys = job.tiling.patches_of(place, level);
        let halves = keys
            .iter()
            .map(|key| patches.remove(key).unwrap_or_default());
        let bits = |halves: [Piece; 2]| halves.map(|half| half.bits);
        let trees: Vec<[Bits; 2]> = halves.map(bits).collect();
        let trees: Vec<&[Bits; 2]> = trees.iter().collect();
        let key = SectionKey {
            level,
            x: place.x as u32,
            z: place.y as u32,
        };
        let stride = layout.stride(level) as i32;
        let height = |x, z| around.height(level, ivec2(x, z) * stride);
        let coarser = finer.as_ref().unwrap_or(above);
        finer = Some(write_section(
            job,
            key,
            &trees,
            Some(coarser),
            height,
            writer,
        )?);
    }
    Ok(())
}

/// Packs one section; its heights as they will be rebuilt.
fn write_section(
    job: &Job,
    key: SectionKey,
    trees: &[&[Bits; 2]],
    coarser: Option<&HeightGrid>,
    height: impl Fn(i32, i32) -> i32,
    writer: &WorldWriter,
) -> Result<HeightGrid> {
    let layout = &job.tiling.layout;
    let section = SectionTrees { layout, key, trees };
    let (grid, bytes) = nodes::encode(section, coarser, height).map_err(usage)?;
    let chunk = pack(chunk_of(ChunkKind::Heights, key), Coding::Raw, bytes).map_err(usage)?;
    writer.add(chunk).map_err(usage)?;
    Ok(grid)
}

/// A tile and the present ones round it.
struct Around<'a> {
    job: &'a Job<'a>,
    place: IVec2,
    tiles: HashMap<IVec2, Ground<'a>>,
}

/// A tile's mesh, and the heights of its vertices.
struct Ground<'a> {
    mesh: Tile<'a>,
    heights: HeightMap,
}

impl<'a> Around<'a> {
    fn read(job: &'a Job, meshes: &'a Meshes, place: IVec2) -> Result<Self> {
        let offsets = (-1..=1).flat_map(|z| (-1..=1).map(move |x| ivec2(x, z)));
        let places = offsets.map(|offset| place + offset);
        let present = places.filter(|&tile| tile.min_element() >= 0 && job.is_present(tile));
        let tiles = present.map(|tile| {
            let mesh = meshes.tile(tile, None)?;
            let heights = job.window(tile, 0)?;
            Ok((tile, Ground { mesh, heights }))
        });
        Ok(Around {
            job,
            place,
            tiles: tiles.collect::<Result<_>>()?,
        })
    }

    /// The true height at a sample of the tile; outside, the one that a level is rebuilt to there.
    fn height(&self, level: u8, sample: IVec2) -> i32 {
        let tiling = &self.job.tiling;
        let own = sample - self.place * tiling.side;
        if own.min_element() >= 0 && own.max_element() <= tiling.side {
            return self.tiles[&self.place].at(own);
        }
        // On a border it does not matter which, but that it is present.
        let tile = (sample / tiling.side).min(tiling.present() - 1);
        self.tiles[&tile].rebuilt(level, sample - tile * tiling.side)
    }
}

impl Ground<'_> {
    /// The height at a sample, seen from the tile's north-west corner.
    fn at(&self, p: IVec2) -> i32 {
        self.heights.at(p.x as i64, p.y as i64)
    }

    /// The height of a level's mesh there, to the nearest step.
    fn rebuilt(&self, level: u8, p: IVec2) -> i32 {
        let mut leaf = self.mesh.roots().into_iter().find(|root| holds(*root, p));
        while let Some(triangle) = leaf {
            let middle = triangle.split_middle();
            if middle.is_none_or(|middle| self.mesh.rank(middle) <= level) {
                break;
            }
            leaf = triangle.halves().into_iter().find(|half| holds(*half, p));
        }
        let leaf = leaf.expect("a half of the tile and of each triangle holds each of its samples");
        let [a, b, c] = [leaf.a, leaf.b, leaf.c].map(|corner| self.at(corner));
        let plane = Plane::through(leaf, a, b, c);
        (2 * plane.at(p) + plane.denominator).div_euclid(2 * plane.denominator) as i32
    }
}

/// Whether a sample lies in a triangle or on its edges.
fn holds(triangle: Triangle, p: IVec2) -> bool {
    let rows = triangle.rows();
    let (from, to) = rows.interval(p.y);
    (rows.z.0..=rows.z.1).contains(&p.y) && (from..=to).contains(&p.x)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bytes, source, walk};
    use super::super::{CompileOptions, compile};
    use super::*;
    use crate::terrain::leaves::visit_leaves;
    use crate::terrain::mesh::{PatchData, build};
    use crate::world::{Layout, PatchKey, Section, StoredHeights, World};

    /// Several tiles, of which the last hold little ground; with other lattices; all in one tile.
    fn worlds() -> Vec<(Layout, HeightMap, World)> {
        let options = |patch_cells, lattice_bias, levels| CompileOptions {
            heights: StoredHeights::Nodes,
            error: Some(4.0),
            patch_cells,
            lattice_bias,
            levels,
            ..Default::default()
        };
        let cases = [
            ([1100, 530], options(32, 1, None)),
            ([600, 560], options(8, 0, Some(8))),
            ([540, 300], options(16, 2, None)),
            ([70, 90], options(16, 1, Some(1))),
            ([9, 3], options(4, 1, None)),
        ];
        let compiled = cases.map(|([width, height], options)| {
            let source = source(width, height);
            let world = World::open(Box::new(bytes(&source, &options)), "test").unwrap();
            (world.meta.layout, source.ground.whole().unwrap(), world)
        });
        compiled.into()
    }

    fn keys(section: &Section) -> impl Iterator<Item = PatchKey> + use<> {
        let ([x0, z0, x1, z1], level) = (section.area, section.key.level);
        (z0..z1).flat_map(move |z| (x0..x1).map(move |x| PatchKey::new(level, x, z)))
    }

    /// The naive twin: every sample of every leaf, from the plane through true heights.
    fn by_planes(layout: &Layout, map: &HeightMap, section: &Section) -> HashMap<IVec2, i32> {
        let stride = layout.stride(section.key.level) as i32;
        let mut heights = HashMap::new();
        for key in keys(section) {
            visit_leaves(layout, key, &section.patch(key).trees, |leaf| {
                let corners = [leaf.a, leaf.b, leaf.c];
                let [a, b, c] = corners.map(|p| map.at(p.x as i64, p.y as i64));
                let plane = Plane::through(leaf, a, b, c);
                let rows = leaf.rows();
                for z in (rows.z.0..=rows.z.1).filter(|z| z % stride == 0) {
                    let (from, to) = rows.interval(z);
                    for x in (from..=to).filter(|x| x % stride == 0) {
                        let exact = plane.at(ivec2(x, z)) as f64 / plane.denominator as f64;
                        let height = (exact + 0.5).floor() as i32;
                        let before = heights.insert(ivec2(x, z) / stride, height);
                        assert!(before.is_none_or(|before| before == height));
                    }
                }
            });
        }
        heights
    }

    #[test]
    fn heights_are_those_of_the_leaves_and_aprons_those_of_the_neighbours() {
        let mut shared = 0;
        for (layout, map, world) in worlds() {
            let mut levels: Vec<HashMap<IVec2, i32>> = vec![HashMap::new(); 20];
            walk(&world, |section| {
                let whole = &mut levels[section.key.level as usize];
                for (p, height) in by_planes(&layout, &map, section) {
                    assert_eq!(section.heights.at(p.x, p.y), height, "{:?}", section.key);
                    assert_eq!(*whole.entry(p).or_insert(height), height);
                }
            });
            walk(&world, |section| {
                let (rect, level) = (section.heights.rect, section.key.level);
                let [nx, nz] = layout.patches(level).map(|n| n as i32);
                let cells = layout.lattice_cells(level) as i32;
                let end = ivec2(nx, nz) * cells;
                let [x0, z0, x1, z1] = section.area.map(|n| n as i32);
                let (first, last) = (ivec2(x0, z0) * cells, ivec2(x1, z1) * cells);
                for z in rect.z0..rect.z0 + rect.height as i32 {
                    for x in rect.x0..rect.x0 + rect.width as i32 {
                        // Beyond the level's last patches its edge goes on.
                        let nearest = ivec2(x, z).clamp(IVec2::ZERO, end);
                        let expected = levels[level as usize][&nearest];
                        assert_eq!(section.heights.at(x, z), expected, "{:?}", section.key);
                        shared += usize::from(nearest != nearest.clamp(first, last));
                    }
                }
            });
        }
        assert!(
            shared > 10_000,
            "only {shared} heights lie in other sections"
        );
    }

    #[test]
    fn every_patch_has_a_mesh_of_true_heights_that_meets_its_parents() {
        for (layout, map, world) in worlds() {
            let mut sections: HashMap<SectionKey, (HeightGrid, Vec<PatchRecord>, [u32; 4])> =
                HashMap::new();
            walk(&world, |section| {
                for key in keys(section) {
                    let parent = layout
                        .coarser_section(section.key)
                        .map(|above| &sections[&above]);
                    let of_parent = parent.map(|(heights, records, [x0, z0, x1, _])| {
                        let [x, z] = [key.x / 2 - x0, key.z / 2 - z0];
                        let record = &records[(z * (x1 - x0) + x) as usize];
                        PatchData { record, heights }
                    });
                    let patch = PatchData {
                        record: section.patch(key),
                        heights: &section.heights,
                    };
                    let mesh = build(&layout, key, patch, of_parent).unwrap();
                    let (size, stride) = (layout.patch_size(key.level), layout.stride(key.level));
                    for vertex in &mesh.vertices {
                        let [x, z] = [vertex.x & 0xfff, vertex.z].map(|n| n as u32 * stride);
                        let height = map.at((key.x * size + x) as i64, (key.z * size + z) as i64);
                        assert_eq!(vertex.own, height * layout.height_units(), "{key}");
                        let Some(parent) = of_parent else { continue };
                        // Where the parent's lattice has the place, its grid is its surface.
                        let [x, z] = [key.x * size + x, key.z * size + z];
                        let theirs = parent.heights.rect.stride;
                        if x % theirs == 0 && z % theirs == 0 {
                            let surface = vertex.parent as f64 / layout.height_units() as f64;
                            let found = parent.heights.at((x / theirs) as i32, (z / theirs) as i32);
                            assert_eq!((surface + 0.5).floor() as i32, found, "{key}");
                        }
                    }
                }
                let kept = (
                    HeightGrid::clone(&section.heights),
                    section.patches.clone(),
                    section.area,
                );
                sections.insert(section.key, kept);
            });
        }
    }

    #[test]
    fn rebuilt_heights_are_off_by_no_more_than_the_stored_error() {
        for (layout, map, world) in worlds() {
            walk(&world, |section| {
                let (size, stride) = (
                    layout.patch_size(section.key.level),
                    layout.stride(section.key.level),
                );
                for key in keys(section) {
                    let error = section.patch(key).error_m as f64 / world.meta.height_step_m;
                    for z in (key.z * size..=(key.z + 1) * size).step_by(stride as usize) {
                        for x in (key.x * size..=(key.x + 1) * size).step_by(stride as usize) {
                            if x >= map.width || z >= map.height {
                                continue;
                            }
                            let rebuilt =
                                section.heights.at((x / stride) as i32, (z / stride) as i32);
                            let off = (rebuilt - map.at(x as i64, z as i64)).abs();
                            assert!(
                                off as f64 <= error + 0.5,
                                "{key} at {x},{z}: {off} of {error}"
                            );
                        }
                    }
                }
            });
        }
    }

    #[test]
    fn worlds_of_nodes_are_much_smaller() {
        let source = source(600, 600);
        let size = |heights| {
            let options = CompileOptions {
                heights,
                error: Some(10.0),
                ..Default::default()
            };
            let (writer, _) = compile(&source, &options, |_| Ok(())).unwrap();
            let mut bytes = Vec::new();
            writer.write(&mut bytes).unwrap();
            bytes.len()
        };
        let [all, nodes] = [StoredHeights::All, StoredHeights::Nodes].map(size);
        assert!(2 * nodes < all, "{nodes} bytes of {all}");
    }
}
