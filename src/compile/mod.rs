//! The terrain compiler: heights in, a world out.
//!
//! It works by tiles, each read, worked on and left again, so that memory does not grow with the
//! area but for the coarse levels. Three steps go over all tiles on all cores: a survey of what is
//! wider than a tile, the meshes of all levels at once, and the writing. What is between the steps
//! lies in spools. Every result is put in its place by its key, so the bytes do not depend on the
//! number of cores.

mod cover;
mod facts;
mod job;
mod live;
mod meshes;
mod nodes;
mod sections;
mod survey;
mod write;

use crate::error::{Error, Result};
use crate::source::Source;
use crate::terrain::detail::DetailMask;
use crate::terrain::live::factor;
use crate::terrain::measure::Metric;
use crate::terrain::rules::Rules;
use crate::terrain::tile::Tiling;
use crate::terrain::upper::Upper;
use crate::world::container::pack;
use crate::world::layout::height_units;
use crate::world::reader::{META_CHUNK, WATER_CHUNK};
use crate::world::{
    Coding, Layout, LevelMeta, MemorySpool, Meta, Spool, StoredHeights, WaterMask, WorldWriter,
};
use job::{Job, usage};
use meshes::Meshes;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

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
    /// Where the sea is, of as many samples as the source has; everywhere without it.
    pub water_mask: Option<Arc<WaterMask>>,
    /// Most levels; none for as many as it takes for one patch to cover the source.
    pub levels: Option<u8>,
    /// Halvings by which a level's lattice is finer than its patches ask for: 0, 1 or 2.
    pub lattice_bias: u8,
    /// Where more detail is asked for.
    pub detail_mask: Option<DetailMask>,
    /// Whether to store at which threshold each vertex leaves its level's mesh.
    pub live: bool,
    /// Which heights to store.
    pub heights: StoredHeights,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            error: None,
            metric: Metric::Max,
            patch_cells: 32,
            sea_level_m: None,
            water_mask: None,
            levels: None,
            lattice_bias: 1,
            detail_mask: None,
            live: false,
            heights: StoredHeights::All,
        }
    }
}

/// How far a compile is, in samples; each is gone over several times.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// Where a compile puts aside what it need not have in memory.
pub struct Spools {
    /// The chunks of the world.
    pub chunks: Box<dyn Spool>,
    /// What is between the steps: two bytes a sample, again for each tile that is taken up again
    /// and for each level's live thresholds.
    pub scratch: Box<dyn Spool>,
}

impl Default for Spools {
    /// In memory.
    fn default() -> Self {
        Spools {
            chunks: Box::<MemorySpool>::default(),
            scratch: Box::<MemorySpool>::default(),
        }
    }
}

/// Cubic metres of error that no ground on Earth has.
const LARGEST_THRESHOLD: f64 = 1e24;
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

/// Compiles a source in memory. `report` is told how far it is; its error ends the compile.
pub fn compile(
    source: &Source,
    options: &CompileOptions,
    report: impl Fn(Progress) -> Result<()> + Sync,
) -> Result<(WorldWriter, Meta)> {
    compile_into(Spools::default(), source, options, &report)
}

/// Compiles a source of any size.
pub fn compile_into(
    spools: Spools,
    source: &Source,
    options: &CompileOptions,
    report: &(dyn Fn(Progress) -> Result<()> + Sync),
) -> Result<(WorldWriter, Meta)> {
    let size_cells = source.ground.size().map(|samples| samples - 1);
    let layout = Layout::with_levels(
        size_cells,
        options.patch_cells,
        STREAM_CELLS,
        options.levels.unwrap_or(u8::MAX),
        options.lattice_bias,
    )
    .map_err(usage)?;
    check_heights(source, &layout)?;
    check_water(source, options)?;
    let thresholds = thresholds(source, options, &layout)?;
    let unit = options.metric.unit(source.step_m, source.spacing_m);
    let sea_level = options.sea_level_m.map(|sea| sea / source.step_m);
    let in_units = thresholds
        .iter()
        .map(|threshold| threshold / unit)
        .collect();
    let job = Job {
        source,
        tiling: Tiling::new(layout),
        rules: Rules::new(options.metric, in_units, sea_level)
            .with_water(options.water_mask.clone()),
        mask: options.detail_mask.as_ref(),
        report,
        done: &AtomicU64::new(0),
        heights: options.heights,
        passes: passes(options, &layout),
    };
    let (tallies, coarse) = survey::survey(&job)?;
    let writer = WorldWriter::new(spools.chunks);
    if options.live {
        live::write_live(&job, &tallies, &*spools.scratch, &writer)?;
    }
    let upper = Upper::new(job.tiling, &job.rules, tallies);
    let meshes = Meshes::settle(&job, upper, &*spools.scratch)?;
    let facts = write::write(&job, &meshes, &coarse, &writer)?;
    let levels = facts.iter().zip(&thresholds);
    let levels = levels.map(|(facts, &threshold)| facts.level_meta(threshold, source.step_m));
    let meta = meta(source, options, layout, levels.collect());
    let water = options.water_mask.iter();
    let water = water.map(|mask| (WATER_CHUNK, mask.encode()));
    for (id, bytes) in water.chain([(META_CHUNK, meta.to_bytes())]) {
        let chunk = pack(id, Coding::Zstd, bytes).map_err(usage)?;
        writer.add(chunk).map_err(usage)?;
    }
    Ok((writer, meta))
}

/// How often every sample is gone over.
fn passes(options: &CompileOptions, layout: &Layout) -> u64 {
    let live = if options.live { layout.levels } else { 0 };
    let again = options.heights == StoredHeights::Nodes && layout.stream_levels > 0;
    3 + live as u64 + again as u64
}

/// What each level asks for, in metres or cubic metres.
fn thresholds(source: &Source, options: &CompileOptions, layout: &Layout) -> Result<Vec<f64>> {
    let error = options
        .error
        .unwrap_or(default_error(options.metric, source));
    let growth = options.metric.growth();
    let levels = 0..layout.levels as i32;
    let thresholds: Vec<f64> = levels.map(|level| error * growth.powi(level)).collect();
    if thresholds
        .iter()
        .all(|threshold| (0.0..=LARGEST_THRESHOLD).contains(threshold))
    {
        return Ok(thresholds);
    }
    let most = LARGEST_THRESHOLD / growth.powi(layout.coarsest().into());
    Err(Error::Usage(format!(
        "--error {error:?}: the coarsest level's, {growth} times as much a level, would be beyond any ground; expected at most {most:.0e}"
    )))
}

fn meta(source: &Source, options: &CompileOptions, layout: Layout, levels: Vec<LevelMeta>) -> Meta {
    let (low, high) = source.ground.range();
    Meta {
        layout,
        spacing_m: source.spacing_m,
        height_step_m: source.step_m,
        heights: options.heights,
        height_range: [low, high],
        summit: source.ground.summit(),
        sea_level_m: options.sea_level_m,
        metric: options.metric.name().into(),
        live_factor: options.live.then(|| factor(options.metric)),
        kept_voids: source.ground.absent_count(),
        levels,
        source: source.info.clone(),
    }
}

/// The largest height in steps, on either side of zero, that patches have room for.
pub fn largest_height(patch_cells: u32, lattice_bias: u8) -> i32 {
    // Distances in the hierarchy above the tiles stay exact within it.
    const MOST: i32 = (1 << 22) - 1;
    // Heights in morph units must fit an `i32` with room for a difference.
    (i32::MAX / 2 / height_units(patch_cells, lattice_bias)).min(MOST)
}

fn check_heights(source: &Source, layout: &Layout) -> Result<()> {
    let (low, high) = source.ground.range();
    let largest = largest_height(layout.patch_cells, layout.lattice_bias);
    if low >= -largest && high <= largest {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "heights of {low} to {high} steps are beyond {largest} with patches of {} cells; use smaller patches or a larger --height-step",
        layout.patch_cells
    )))
}

/// A mask must have been made for the source.
fn check_water(source: &Source, options: &CompileOptions) -> Result<()> {
    let size = source.ground.size();
    match &options.water_mask {
        Some(mask) if mask.samples() != size => Err(Error::Usage(format!(
            "a water mask for {:?} samples; expected one for the source's {size:?}",
            mask.samples()
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Area, Ground};
    use crate::terrain::height_map::HeightMap;
    use crate::terrain::leaves::visit_leaves;
    use crate::terrain::measure::{Measurer, measure};
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

    pub fn bytes(source: &Source, options: &CompileOptions) -> Vec<u8> {
        let mut bytes = Vec::new();
        compile(source, options, |_| Ok(()))
            .unwrap()
            .0
            .write(&mut bytes)
            .unwrap();
        bytes
    }

    /// Every section of a world, coarse before fine, each with the coarser heights under it.
    pub fn walk(world: &World, mut visit: impl FnMut(&crate::world::Section)) {
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
        // A whole tile of 256 samples among those that the source ends in.
        let source = source(300, 280);
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
    fn live_steps_give_the_meshes_of_raised_thresholds() {
        let shore = Some(0.0);
        for (metric, sea_level_m) in [
            (Metric::Max, None),
            (Metric::Max, shore),
            (Metric::Sum, shore),
        ] {
            let source = source(300, 280);
            let base = CompileOptions {
                metric,
                patch_cells: 8,
                sea_level_m,
                error: Some(default_error(metric, &source)),
                ..Default::default()
            };
            let live = CompileOptions {
                live: true,
                ..base.clone()
            };
            let live = World::open(Box::new(bytes(&source, &live)), "test").unwrap();
            let mut fewer = 0;
            for step in [0, 1, 5, 14] {
                let error = base.error.map(|error| error * factor(metric).powi(step));
                let raised = CompileOptions {
                    error,
                    ..base.clone()
                };
                let raised = World::open(Box::new(bytes(&source, &raised)), "test").unwrap();
                let mut expected = Vec::new();
                walk(&raised, |section| expected.push(section.patches.clone()));
                let mut at = 0;
                walk(&live, |section| {
                    let steps = live.read_live(section).unwrap().expect("it was asked for");
                    for ((patch, steps), expected) in
                        section.patches.iter().zip(&steps).zip(&expected[at])
                    {
                        for ((tree, steps), expected) in
                            patch.trees.iter().zip(steps).zip(&expected.trees)
                        {
                            let kept = kept(tree, steps, step as u8);
                            assert_eq!(kept, *expected, "{:?}", section.key);
                            fewer += (kept.len() < tree.len()) as usize;
                        }
                    }
                    at += 1;
                });
            }
            assert!(fewer > 100, "only {fewer} trees became smaller");
        }
    }

    /// A tree without the nodes below a step.
    fn kept(tree: &crate::world::Bits, steps: &[u8], least: u8) -> crate::world::Bits {
        let (mut bits, mut steps) = (tree.reader(), steps.iter());
        let mut kept = crate::world::Bits::default();
        // Whether the node above each open triangle was kept.
        let mut above = vec![true];
        while let Some(parent) = above.pop() {
            let step = bits.next().then(|| *steps.next().unwrap());
            let split = step.is_some_and(|step| step >= least);
            if parent {
                kept.push(split);
            }
            if step.is_some() {
                above.extend([parent && split; 2]);
            }
        }
        kept
    }

    #[test]
    fn the_same_bytes_on_any_number_of_threads() {
        let source = source(300, 280);
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
        let (_, meta) = compile(&source, &CompileOptions::default(), |_| Ok(())).unwrap();
        assert_eq!(meta.layout.levels, 11);
        assert_eq!(meta.layout.patches(0), [1, 625]);
        // A mesh without holes or T-junctions: V - E + F = 1 leaves this bound.
        assert!(
            meta.levels
                .iter()
                .all(|level| level.vertices <= level.triangles / 2 + 2 * 20_000)
        );
    }

    /// Ground of which a part is absent.
    #[derive(Debug)]
    struct Holed {
        map: HeightMap,
        absent: Vec<bool>,
    }

    impl Ground for Holed {
        fn size(&self) -> [u32; 2] {
            Ground::size(&self.map)
        }

        fn range(&self) -> (i32, i32) {
            self.map.range()
        }

        fn summit(&self) -> [u32; 2] {
            self.map.summit()
        }

        fn read(&self, area: Area) -> Result<HeightMap> {
            self.map.read(area)
        }

        fn absent_count(&self) -> u64 {
            self.absent.iter().filter(|absent| **absent).count() as u64
        }

        fn absent(&self, area: Area) -> Result<Option<Vec<bool>>> {
            let width = self.map.width;
            let rows = area.z..area.z + area.height;
            let places = rows.flat_map(|z| (area.x..area.x + area.width).map(move |x| (x, z)));
            let absent: Vec<bool> = places
                .map(|(x, z)| self.absent[(z * width + x) as usize])
                .collect();
            Ok(absent.contains(&true).then_some(absent))
        }
    }

    fn holed(width: u32, height: u32, is_absent: impl Fn(u32, u32) -> bool) -> (Source, Vec<bool>) {
        let source = source(width, height);
        let places = (0..width * height).map(|i| (i % width, i / width));
        let absent: Vec<bool> = places.map(|(x, z)| is_absent(x, z)).collect();
        let ground = Box::new(Holed {
            map: source.ground.whole().unwrap(),
            absent: absent.clone(),
        });
        (Source { ground, ..source }, absent)
    }

    #[test]
    fn kept_voids_are_absent_at_every_level_and_count_as_no_error() {
        let single = |x: u32, z: u32| (x * 31 + z * 17).is_multiple_of(11) && x > 560;
        let (source, absent) = holed(643, 310, |x, z| {
            (90..330).contains(&x) && z > 70 || single(x, z)
        });
        let map = source.ground.whole().unwrap();
        for (patch_cells, levels, lattice_bias) in [(8, None, 1), (128, None, 0), (64, Some(1), 1)]
        {
            let options = CompileOptions {
                patch_cells,
                levels,
                lattice_bias,
                sea_level_m: Some(0.0),
                ..Default::default()
            };
            let world = World::open(Box::new(bytes(&source, &options)), "test").unwrap();
            let layout = world.meta.layout;
            assert_eq!(layout.stream_levels > 0, levels.is_none());
            assert_eq!(world.meta.kept_voids, source.ground.absent_count());
            let measurer = Measurer::new(&map, Metric::Max, None).leave_out(Some(&absent));
            let any_present = |corner: [u32; 2], size: u32| {
                let end = [0, 1].map(|axis| (corner[axis] + size).min([642, 309][axis]));
                (corner[1]..=end[1])
                    .any(|z| (corner[0]..=end[0]).any(|x| !absent[(z * 643 + x) as usize]))
            };
            let (mut cells, mut absent_patches) = (0, 0);
            walk(&world, |section| {
                let level = section.key.level;
                let [x0, z0, x1, z1] = section.area;
                let size = layout.patch_size(level);
                let (stride, n) = (layout.stride(level), layout.lattice_cells(level));
                for key in (z0..z1).flat_map(|z| (x0..x1).map(move |x| PatchKey::new(level, x, z)))
                {
                    let corner = [key.x * size, key.z * size];
                    let record = section.patch(key);
                    assert_eq!(record.absent, !any_present(corner, size), "{key}");
                    absent_patches += u32::from(record.absent);
                    let mut error = 0.0f64;
                    visit_leaves(&layout, key, &record.trees, |triangle| {
                        let found = measurer.measure(triangle);
                        error = error.max(found.error * 0.5);
                    });
                    assert!(
                        (record.error_m as f64 - error).abs() <= error * 1e-6,
                        "{key}"
                    );
                    let stored = section.patch_cells(key, n);
                    for (x, z) in (0..n).flat_map(|z| (0..n).map(move |x| (x, z))) {
                        let at = [corner[0] + x * stride, corner[1] + z * stride];
                        if at[0] < 642 && at[1] < 309 {
                            let present = stored.as_ref().is_none_or(|own| own.is_present(x, z));
                            assert_eq!(present, any_present(at, stride), "{key}: {x}, {z}");
                            cells += u32::from(!present);
                        }
                    }
                }
            });
            assert!(cells > 10_000, "{cells}");
            assert!(absent_patches > 0 || patch_cells > 64, "{patch_cells}");
        }
    }

    #[test]
    fn ground_without_kept_voids_compiles_as_ever() {
        let (whole, _) = holed(200, 100, |_, _| false);
        let options = CompileOptions::default();
        let world = bytes(&source(200, 100), &options);
        assert!(bytes(&whole, &options) == world);
        assert!(!world.windows(4).any(|tag| tag == b"COVR"));
    }

    #[test]
    fn progress_ends_where_it_should() {
        let seen = std::sync::Mutex::new(Vec::new());
        compile(&source(200, 100), &CompileOptions::default(), |progress| {
            seen.lock().unwrap().push((progress.done, progress.total));
            Ok(())
        })
        .unwrap();
        let mut seen = seen.into_inner().unwrap();
        seen.sort();
        seen.dedup();
        assert!(seen.len() > 5 && seen.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(seen.iter().all(|&(_, total)| total == 3 * 199 * 99));
        assert_eq!(seen.last().unwrap().0, 3 * 199 * 99);
    }

    #[test]
    fn an_error_of_the_report_ends_the_compile() {
        let stop = |_| Err(Error::Usage("enough".into()));
        let ended = compile(&source(200, 100), &CompileOptions::default(), stop);
        assert_eq!(ended.err().unwrap().to_string(), "enough");
    }
}
