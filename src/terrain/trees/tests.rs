//! What a walk over settled tiles finds, against a naive twin of whole sets of triangles.

use super::*;
use crate::terrain::detail::DetailMask;
use crate::terrain::height_map::HeightMap;
use crate::terrain::leaves::visit_leaves;
use crate::terrain::measure::{Measurer, Metric};
use crate::terrain::rules::Rules;
use crate::terrain::serial::Grounds;
use crate::world::{Layout, WaterMask};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The records of all patches of a world.
pub fn all_trees(map: &HeightMap, layout: Layout, rules: &Rules) -> HashMap<PatchKey, PatchRecord> {
    trees_of(map, None, None, layout, rules)
}

fn trees_of(
    map: &HeightMap,
    absent: Option<&[bool]>,
    mask: Option<&DetailMask>,
    layout: Layout,
    rules: &Rules,
) -> HashMap<PatchKey, PatchRecord> {
    let grounds = Grounds::new(map, absent, mask, layout, rules);
    let (tiles, upper) = grounds.settle(rules);
    collect(&Tiling::new(layout), &tiles, &upper, rules)
}

fn collect(
    tiling: &Tiling,
    tiles: &[Tile],
    upper: &Upper,
    rules: &Rules,
) -> HashMap<PatchKey, PatchRecord> {
    let mut pieces = HashMap::new();
    let mut records = HashMap::new();
    for tile in tiles {
        let trees = tile_trees(tile);
        pieces.insert(tile.place, trees.pieces);
        let bounded = |(key, halves)| (key, record(halves, [-100, 100], 1.0));
        records.extend(trees.patches.into_iter().map(bounded));
    }
    for level in tiling.level + 1..tiling.layout.levels {
        let halves = upper_trees(upper, tiling, level, rules.threshold(level), &pieces);
        let keys = tiling.layout.keys(level);
        records.extend(keys.zip(halves.into_iter().map(|h| record(h, [-100, 100], 1.0))));
    }
    records
}

/// The naive twin: whole sets of triangles of one level over the whole world, split until
/// nothing changes.
fn naive(
    map: &HeightMap,
    absent: Option<&[bool]>,
    mask: Option<&DetailMask>,
    dry: Option<&[bool]>,
    layout: &Layout,
    rules: &Rules,
    level: u8,
) -> BTreeSet<[i32; 6]> {
    let sea = rules.sea.map(f64::from);
    let measurer = Measurer::new(map, rules.metric, sea);
    let measurer = measurer.leave_out(absent).keep_dry(dry);
    let needs = |t: &Triangle| {
        let found = measurer.measure(*t);
        let share = mask.map_or(1.0, |mask| least_share(map, absent, mask, t));
        found.complexity > rules.threshold(level) * share || found.must_split || share == 0.0
    };
    let stride = layout.stride(level) as i32;
    let size = layout.patch_size(level) as i32;
    let divisible = |t: &Triangle| ((t.a + t.b) % (2 * stride)) == IVec2::ZERO;
    let wide = |t: &Triangle| (t.a - t.b).abs().max_element() > size;
    let present = |t: &Triangle| {
        let square = t.square(size);
        layout.contains(PatchKey::new(level, square.x as u32, square.y as u32))
    };
    let coarsest = layout.coarsest();
    let mut mesh: Vec<Triangle> = layout
        .keys(coarsest)
        .flat_map(|key| crate::terrain::leaves::roots(layout, key))
        .collect();
    loop {
        let corners: BTreeSet<[i32; 2]> = mesh
            .iter()
            .flat_map(|t| [t.a, t.b, t.c])
            .map(|p| p.to_array())
            .chain(layout.keys(level).flat_map(|key| {
                let corner = ivec2(key.x as i32, key.z as i32) * size;
                [
                    [corner.x, corner.y],
                    [corner.x + size, corner.y],
                    [corner.x, corner.y + size],
                    [corner.x + size, corner.y + size],
                ]
            }))
            .collect();
        let cut = |p: IVec2, q: IVec2| {
            (p + q) % 2 == IVec2::ZERO && corners.contains(&((p + q) / 2).to_array())
        };
        let hanging = |t: &Triangle| cut(t.a, t.b) || cut(t.b, t.c) || cut(t.c, t.a);
        let split = |t: &Triangle| hanging(t) || wide(t) && present(t) || divisible(t) && needs(t);
        if !mesh.iter().any(split) {
            break;
        }
        mesh = mesh
            .iter()
            .flat_map(|t| {
                if split(t) {
                    t.halves().to_vec()
                } else {
                    vec![*t]
                }
            })
            .collect();
    }
    mesh.iter()
        .filter(|t| present(t))
        .map(|t| corners_of(*t))
        .collect()
}

/// The smallest share of a threshold that a mask leaves in a triangle.
fn least_share(map: &HeightMap, absent: Option<&[bool]>, mask: &DetailMask, t: &Triangle) -> f64 {
    let mut least = 1.0f64;
    let nearest = t.a.min(t.b).min(t.c);
    if nearest.x >= map.width as i32 - 1 || nearest.y >= map.height as i32 - 1 {
        return least;
    }
    for z in t.rows().z.0..=t.rows().z.1.min(map.height as i32 - 1) {
        let (x0, x1) = t.rows().interval(z);
        for x in x0..=x1.min(map.width as i32 - 1) {
            let index = (z * map.width as i32 + x) as usize;
            if absent.is_some_and(|absent| absent[index]) {
                continue;
            }
            let pixel = |sample: i32, samples: u32, pixels: u32| sample as u32 * pixels / samples;
            let [px, pz] = [
                pixel(x, map.width, mask.size[0]),
                pixel(z, map.height, mask.size[1]),
            ];
            let grey = mask.greys[(pz * mask.size[0] + px) as usize];
            least = least.min((255 - grey) as f64 / 255.0);
        }
    }
    least
}

fn corners_of(t: Triangle) -> [i32; 6] {
    [t.a.x, t.a.y, t.b.x, t.b.y, t.c.x, t.c.y]
}

fn mesh_of(
    layout: &Layout,
    level: u8,
    records: &HashMap<PatchKey, PatchRecord>,
) -> BTreeSet<[i32; 6]> {
    let mut mesh = BTreeSet::new();
    for key in layout.keys(level) {
        visit_leaves(layout, key, &records[&key].trees, |t| {
            assert!(mesh.insert(corners_of(t)), "{key}: a triangle twice");
        });
    }
    mesh
}

/// Rough ground, so that neighbouring tiles drag each other in.
fn rough(width: u32, height: u32, seed: i64) -> HeightMap {
    let at = |x: i64, z: i64| {
        let mixed = (x * 7919 + z * 104_729 + seed * 31).wrapping_mul(2_654_435_761) >> 7;
        (mixed % 37 + (x - z) * (x + 2 * z) % 91) as i32
    };
    HeightMap {
        width,
        height,
        heights: (0..(width * height) as i64)
            .map(|i| at(i % width as i64, i / width as i64))
            .collect(),
    }
}

/// No void, single ones, or one that may hold whole tiles.
fn absent(map: &HeightMap, seed: i64, holed: u32) -> Option<Vec<bool>> {
    let samples = (0..map.height).flat_map(|z| (0..map.width).map(move |x| (x, z)));
    let (x0, z0) = (seed as u32 % map.width, seed as u32 / 3 % map.height);
    let single = |x: u32, z: u32| (x * 7 + z * 13 + x * z) % 5 < 2;
    let large = |x: u32, z: u32| x.abs_diff(x0) < 17 && z.abs_diff(z0) < 14;
    let is_absent = |(x, z): (u32, u32)| {
        if holed == 1 {
            single(x, z)
        } else {
            large(x, z)
        }
    };
    (holed > 0).then(|| samples.map(is_absent).collect())
}

/// No water, a pond, a lake with an arm of it, or water everywhere, in squares of so many
/// samples; none where there is no mask. And which samples it leaves dry.
fn lake(map: &HeightMap, seed: i64, squares: Option<u32>) -> Option<(WaterMask, Vec<bool>)> {
    let shift = squares?;
    let (x0, z0) = (seed as u32 % map.width, seed as u32 / 7 % map.height);
    let [x0, z0] = [x0 >> shift, z0 >> shift];
    let is_water = |x: u32, z: u32| match seed % 4 {
        0 => false,
        1 => x.abs_diff(x0).max(z.abs_diff(z0)) < 2,
        2 => x.abs_diff(x0) < 7 >> shift || z == z0,
        _ => true,
    };
    let mask = WaterMask::from_fn([map.width, map.height], shift, is_water);
    let samples = (0..map.height).flat_map(|z| (0..map.width).map(move |x| (x, z)));
    let dry = samples
        .map(|(x, z)| !is_water(x >> shift, z >> shift))
        .collect();
    Some((mask, dry))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn every_level_is_the_smallest_mesh(
        width in 10u32..42, height in 10u32..42, seed in 0i64..1000, error in 0u32..60,
        sum: bool, sea in 0u32..3, bias in 0u8..3, levels in 1u8..6, masked: bool, holed in 0u32..3,
        squares in prop::option::of(0u32..3),
    ) {
        let map = rough(width, height, seed);
        let metric = if sum { Metric::Sum } else { Metric::Max };
        let layout = Layout::with_levels([width - 1, height - 1], 8, 16, levels, bias).unwrap();
        let thresholds = (0..layout.levels as i32)
            .map(|level| error as f64 * metric.growth().powi(level))
            .collect();
        // None, one among the heights, or one above all of them.
        let sea = [None, Some(20.0), Some(500.0)][sea as usize];
        let (water, dry) = lake(&map, seed, squares).unzip();
        let rules = Rules::new(metric, thresholds, sea).with_water(water.map(Arc::new));
        let mask = DetailMask { size: [3, 2], greys: vec![0, 120, 0, 255, 0, 200] };
        let mask = masked.then_some(&mask);
        let absent = absent(&map, seed, holed);
        let absent = absent.as_deref();
        let records = trees_of(&map, absent, mask, layout, &rules);
        for level in 0..layout.levels {
            prop_assert_eq!(mesh_of(&layout, level, &records), naive(&map, absent, mask, dry.as_deref(), &layout, &rules, level), "level {}", level);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Where nothing but the largest distance counts and tiles are whole, sweeps do most.
    #[test]
    fn sweeps_find_the_smallest_mesh_and_its_errors(
        width in 33u32..60, height in 33u32..60, seed in 0i64..1000, error in 0.1f64..60.0,
        bias in 0u8..3, levels in 1u8..6, powers in (2u32..4, 3u32..6),
    ) {
        let map = rough(width, height, seed);
        let (patch, tile) = (1 << powers.0, 1 << powers.1.max(powers.0));
        let layout = Layout::with_levels([width - 1, height - 1], patch, tile, levels, bias).unwrap();
        let thresholds = (0..layout.levels as i32).map(|level| error * 2f64.powi(level)).collect();
        let rules = Rules::new(Metric::Max, thresholds, None);
        let grounds = Grounds::new(&map, None, None, layout, &rules);
        let (tiles, upper) = grounds.settle(&rules);
        let whole = tiles[0].ground.and_then(|ground| ground.plain_heights());
        prop_assert!(whole.is_some() || Tiling::new(layout).side > 32);
        let records = collect(&Tiling::new(layout), &tiles, &upper, &rules);
        let measurer = Measurer::new(&map, Metric::Max, None);
        for level in 0..layout.levels {
            let mesh = mesh_of(&layout, level, &records);
            prop_assert_eq!(mesh, naive(&map, None, None, None, &layout, &rules, level), "level {}", level);
            for key in layout.keys(level) {
                let mut largest = 0.0f64;
                visit_leaves(&layout, key, &records[&key].trees, |leaf| {
                    largest = largest.max(measurer.measure(leaf).error);
                });
                prop_assert_eq!(records[&key].error_m as f64, largest, "{}", key);
                prop_assert_eq!(records[&key].exhausted, largest > rules.threshold(level), "{}", key);
            }
        }
    }
}

#[test]
fn one_large_tile_agrees_with_many_small_ones() {
    let map = rough(65, 65, 5);
    let rules = |layout: &Layout| {
        let thresholds = (0..layout.levels).map(|level| 30.0 * (1 << level) as f64);
        Rules::new(Metric::Max, thresholds.collect(), Some(10.0))
    };
    let trees = |stream_cells: u32| {
        let layout = Layout::new([64, 64], 8, stream_cells).unwrap();
        (
            Tiling::new(layout).side,
            all_trees(&map, layout, &rules(&layout)),
        )
    };
    let ((small, many), (large, one)) = (trees(8), trees(32));
    assert!(small < large);
    assert_eq!(many, one);
}
