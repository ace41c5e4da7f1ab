//! The terrain compiler: heights in, a world out.
//!
//! Levels go from coarse to fine. Each is refined over its whole patch map, then its patches'
//! bit-streams, bounds and errors are collected and its sections are packed. Triangles are
//! measured and sections packed on all cores; every result is put in its place by its key, so the
//! bytes do not depend on how many cores there are.

mod sections;
mod statistics;

use crate::error::{Error, Result};
use crate::source::Source;
use crate::terrain::height_map::HeightMap;
use crate::terrain::measure::{Measurer, Metric, Task};
use crate::terrain::refine::Refiner;
use crate::world::container::pack;
use crate::world::reader::META_CHUNK;
use crate::world::{Coding, Layout, LevelMeta, Meta, PackedChunk, WorldWriter};
use rayon::prelude::*;

/// Samples along a stream patch's side.
pub const STREAM_CELLS: u32 = 512;

#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// Threshold of the finest level, in metres for `Max` and cubic metres for `Sum`; none for
    /// the default.
    pub error: Option<f64>,
    pub metric: Metric,
    /// Cells of a finest patch's side.
    pub patch_cells: u32,
    /// Where the sea stands, if there is one.
    pub sea_level_m: Option<f64>,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            error: None,
            metric: Metric::Max,
            patch_cells: 32,
            sea_level_m: None,
        }
    }
}

/// How far a compile is, in samples: each level counts what its lattice has, twice.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// Triangles a core takes at once: most are small.
const TASKS_AT_ONCE: usize = 256;
/// The default sum: what eight cells are off by the default error.
const DEFAULT_SUM_CELLS: f64 = 8.0;

/// For `Max`, in metres: an eighth of the spacing, but no more than a hundredth of the relief
/// (grids of many kilometres a cell would else be plains) and no less than the height step.
pub fn default_error(metric: Metric, source: &Source) -> f64 {
    let cell_m2 = source.spacing_m[0] * source.spacing_m[1];
    let (low, high) = source.ground.range();
    let relief_m = (high as f64 - low as f64) * source.step_m;
    let error_m = (cell_m2.sqrt() / 8.0)
        .min(relief_m / 100.0)
        .max(source.step_m);
    match metric {
        Metric::Max => error_m,
        Metric::Sum => error_m * cell_m2 * DEFAULT_SUM_CELLS,
    }
}

/// Compiles a source; `report` is called as the ground of each level settles, and when the level
/// is packed.
pub fn compile(
    source: &Source,
    options: &CompileOptions,
    mut report: impl FnMut(Progress),
) -> Result<(WorldWriter, Meta)> {
    let map = &source.ground.whole()?;
    let size = [map.width - 1, map.height - 1];
    let layout = Layout::new(size, options.patch_cells, STREAM_CELLS).map_err(usage)?;
    check_heights(source, &layout)?;
    let metric = options.metric;
    let unit = metric.unit(source.step_m, source.spacing_m);
    let error = options.error.unwrap_or(default_error(metric, source));
    let sea_level = options.sea_level_m.map(|sea| sea / source.step_m);
    let measurer = Measurer::new(map, metric, sea_level);
    let measure_all = |tasks: &[Task]| {
        let tasks = tasks.par_iter().with_min_len(TASKS_AT_ONCE);
        tasks.map(|task| measurer.measure(task)).collect()
    };
    let mut refiner = Refiner::new(layout, measure_all);
    let bounds = statistics::height_bounds(&layout, map);
    let mut work = Work::new(&layout, map);
    let (mut levels, mut chunks): (Vec<LevelMeta>, Vec<PackedChunk>) = Default::default();
    for level in (0..layout.levels).rev() {
        let threshold = error * metric.growth().powi(level as i32);
        refiner.refine(level, threshold / unit, |share| {
            report(work.during(level, share))
        });
        let records = statistics::patch_records(
            &refiner,
            &layout,
            level,
            &bounds[level as usize],
            source.step_m,
        );
        let facts = statistics::level_meta(&refiner, level, &records, threshold, source.step_m);
        levels.push(facts);
        chunks.extend(sections::pack_level(&layout, map, level, &records).map_err(usage)?);
        report(work.after(level));
    }
    levels.reverse();
    let meta = meta(source, options, layout, levels);
    let mut writer = WorldWriter::new();
    writer.add(pack(META_CHUNK, Coding::Zstd, meta.to_bytes()).map_err(usage)?);
    chunks.into_iter().for_each(|chunk| writer.add(chunk));
    Ok((writer, meta))
}

/// Samples that are done with, of all there are to do.
struct Work {
    by_level: Vec<u64>,
    done: u64,
}

impl Work {
    fn new(layout: &Layout, map: &HeightMap) -> Self {
        let samples = |level| map.heights.len() as u64 / (layout.stride(level) as u64).pow(2);
        Work {
            by_level: (0..layout.levels).map(samples).collect(),
            done: 0,
        }
    }

    fn during(&self, level: u8, share: f64) -> Progress {
        let refined = (self.by_level[level as usize] as f64 * share) as u64;
        Progress {
            done: self.done + refined,
            total: self.total(),
        }
    }

    fn after(&mut self, level: u8) -> Progress {
        self.done += 2 * self.by_level[level as usize];
        Progress {
            done: self.done,
            total: self.total(),
        }
    }

    fn total(&self) -> u64 {
        2 * self.by_level.iter().sum::<u64>()
    }
}

fn meta(source: &Source, options: &CompileOptions, layout: Layout, levels: Vec<LevelMeta>) -> Meta {
    let (low, high) = source.ground.range();
    Meta {
        layout,
        spacing_m: source.spacing_m,
        height_step_m: source.step_m,
        height_range: [low, high],
        summit: source.ground.summit(),
        sea_level_m: options.sea_level_m,
        metric: options.metric.name().into(),
        levels,
        source: source.info.clone(),
    }
}

fn usage(error: crate::world::FormatError) -> Error {
    Error::Usage(format!("this source cannot be compiled: {error}"))
}

/// Heights in morph units must fit an `i32` with room for a difference.
fn check_heights(source: &Source, layout: &Layout) -> Result<()> {
    let (low, high) = source.ground.range();
    let largest = i32::MAX / 2 / layout.height_units();
    if low >= -largest && high <= largest {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "heights of {low} to {high} steps are beyond {largest} with patches of {} cells; use smaller patches or a larger --height-step",
        layout.patch_cells
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terrain::measure::measure;
    use crate::terrain::triangle::Triangle;
    use crate::world::{HeightGrid, PatchKey, SectionKey, SourceInfo, World};
    use std::sync::Arc;

    pub fn source(width: u32, height: u32) -> Source {
        let rough = |x: u32, z: u32| ((x * x / 7 + z * 13) % 40 + (x / 9) * (z / 11)) as i32 - 60;
        Source {
            ground: Box::new(HeightMap {
                width,
                height,
                heights: (0..width * height)
                    .map(|i| rough(i % width, i / width))
                    .collect(),
            }),
            step_m: 0.5,
            spacing_m: [10.0, 12.0],
            info: SourceInfo::made_up("made.asc", [-30.0, 70.0]),
        }
    }

    fn bytes(source: &Source, options: &CompileOptions) -> Vec<u8> {
        let mut bytes = Vec::new();
        compile(source, options, |_| ())
            .unwrap()
            .0
            .write(&mut bytes)
            .unwrap();
        bytes
    }

    /// Every section of a world, coarse before fine, each with the coarser heights under it.
    fn walk(world: &World, mut visit: impl FnMut(&crate::world::Section)) {
        let layout = world.meta.layout;
        let repository = world.read_repository().unwrap();
        repository.iter().for_each(&mut visit);
        let coarsest_streamed = &repository.last().unwrap().heights;
        let stream_patches = layout.stream_levels.checked_sub(1).map(|k| layout.keys(k));
        for patch in stream_patches.into_iter().flatten() {
            let mut heights: Arc<HeightGrid> = coarsest_streamed.clone();
            for level in (0..layout.stream_levels).rev() {
                let key = SectionKey {
                    level,
                    x: patch.x,
                    z: patch.z,
                };
                let section = world.read_section(key, Some(&heights)).unwrap();
                heights = section.heights.clone();
                visit(&section);
            }
            assert_eq!(
                world.read_finest(patch, coarsest_streamed).unwrap(),
                heights
            );
        }
    }

    #[test]
    fn all_heights_and_certificates_come_back_from_the_file() {
        let source = source(777, 550);
        let options = CompileOptions {
            sea_level_m: Some(0.0),
            patch_cells: 16,
            ..Default::default()
        };
        let world = World::open(Box::new(bytes(&source, &options)), "test").unwrap();
        assert_eq!(world.meta.layout.levels, 7);
        assert_eq!(world.meta.layout.stream_levels, 6);
        world.check_all_chunks().unwrap();
        let mut samples = 0u64;
        let map = source.ground.whole().unwrap();
        walk(&world, |section| {
            let rect = section.heights.rect;
            for z in rect.z0..rect.z0 + rect.height as i32 {
                for x in rect.x0..rect.x0 + rect.width as i32 {
                    let stride = rect.stride as i64;
                    assert_eq!(
                        section.heights.at(x, z),
                        map.at(x as i64 * stride, z as i64 * stride)
                    );
                    samples += 1;
                }
            }
            let [x0, z0, x1, z1] = section.area;
            assert_eq!(section.patches.len(), ((x1 - x0) * (z1 - z0)) as usize);
            let threshold = world.meta.levels[section.key.level as usize].threshold as f32;
            for patch in &section.patches {
                assert!(patch.error_m <= threshold * 1.0001 || patch.exhausted);
                assert!(!patch.exhausted || patch.error_m > threshold * 0.9999);
            }
        });
        assert!(samples > 777 * 550);
    }

    #[test]
    fn the_stored_error_is_the_error_of_the_mesh() {
        let source = source(130, 100);
        let options = CompileOptions {
            patch_cells: 8,
            error: Some(3.0),
            ..Default::default()
        };
        let world = World::open(Box::new(bytes(&source, &options)), "test").unwrap();
        let layout = world.meta.layout;
        let mut patches = 0;
        let map = source.ground.whole().unwrap();
        walk(&world, |section| {
            let [x0, z0, x1, z1] = section.area;
            for key in
                (z0..z1).flat_map(|z| (x0..x1).map(move |x| PatchKey::new(section.key.level, x, z)))
            {
                let record = section.patch(key);
                let size = layout.patch_size(key.level) as i32;
                let corner = glam::ivec2(key.x as i32, key.z as i32) * size;
                let mut largest = 0.0f64;
                for (root, tree) in Triangle::roots(corner, size, key.splits_nw_se())
                    .into_iter()
                    .zip(&record.trees)
                {
                    leaves(root, &mut tree.reader(), &mut |leaf| {
                        largest = largest.max(measure(&map, leaf).error * source.step_m);
                    });
                }
                assert!(
                    (record.error_m as f64 - largest).abs() <= largest * 1e-6,
                    "{key}"
                );
                patches += 1;
            }
        });
        assert_eq!(
            patches as u64,
            (0..layout.levels)
                .map(|level| layout.patch_count(level))
                .sum::<u64>()
        );
    }

    fn leaves(
        triangle: Triangle,
        tree: &mut crate::world::BitReader,
        visit: &mut impl FnMut(Triangle),
    ) {
        if tree.next() {
            triangle
                .halves()
                .into_iter()
                .for_each(|half| leaves(half, tree, visit));
        } else {
            visit(triangle);
        }
    }

    #[test]
    fn the_same_bytes_on_any_number_of_threads() {
        let source = source(300, 200);
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| bytes(&source, &CompileOptions::default()))
        };
        let one = with(1);
        assert_eq!(one, with(2));
        assert_eq!(one, with(7));
    }

    #[test]
    fn every_truncation_and_many_flips_end_in_an_error_or_a_sound_section() {
        let good = bytes(
            &source(90, 70),
            &CompileOptions {
                patch_cells: 8,
                ..Default::default()
            },
        );
        for len in (0..good.len()).step_by(97) {
            assert!(World::open(Box::new(good[..len].to_vec()), "test").is_err());
        }
        let mut refused = 0;
        for at in (0..good.len()).step_by(31) {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            let verdict =
                World::open(Box::new(bad), "test").and_then(|world| world.check_all_chunks());
            refused += verdict.is_err() as usize;
        }
        assert_eq!(
            refused,
            good.len().div_ceil(31),
            "every byte is under a checksum"
        );
    }

    #[test]
    fn a_narrow_source_costs_what_it_is() {
        let source = source(3, 20_000);
        let (_, meta) = compile(&source, &CompileOptions::default(), |_| ()).unwrap();
        assert_eq!(meta.layout.levels, 11);
        assert_eq!(meta.layout.patches(0), [1, 625]);
        // A mesh without holes or T-junctions: V - E + F = 1 leaves this bound.
        assert!(
            meta.levels
                .iter()
                .all(|level| level.vertices <= level.triangles / 2 + 2 * 20_000)
        );
    }

    #[test]
    fn progress_ends_where_it_should() {
        let mut last = Progress { done: 0, total: 1 };
        let mut calls = 0;
        compile(&source(200, 100), &CompileOptions::default(), |progress| {
            assert!(progress.done >= last.done && progress.done <= progress.total);
            (last, calls) = (progress, calls + 1);
        })
        .unwrap();
        assert_eq!(last.done, last.total);
        assert!(calls > 10);
    }
}
