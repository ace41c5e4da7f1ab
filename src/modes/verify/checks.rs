//! The checks of `highfell verify`, one function each.

use super::findings::Findings;
use crate::modes::sections::{self, FullGround, FullHeights};
use crate::terrain::height_map::HeightMap;
use crate::terrain::measure::{Measurer, Metric};
use crate::terrain::soundness::{Survey, first_unnested, survey};
use crate::world::{ChunkKind, FormatError, WaterMask};
use crate::world::{Layout, LevelMeta, PatchKey, PatchRecord, Section, StoredHeights, World};
use rayon::prelude::*;

/// Everything of a world but its coarse heights.
pub struct Contents {
    pub map: HeightMap,
    /// Whether the map is not the source's samples but what was rebuilt of them.
    pub is_rebuilt: bool,
    /// Which samples are kept voids, where the world has any.
    pub absent: Option<Vec<bool>>,
    pub water: Option<WaterMask>,
    /// By level, row by row.
    records: Vec<Vec<PatchRecord>>,
}

impl Contents {
    /// Decodes every section; none when one cannot be.
    pub fn read(world: &World) -> (Findings, Option<Contents>) {
        let mut findings = Findings::new("sections", "sections decoded");
        let layout = &world.meta.layout;
        let heights = FullHeights::new(world);
        let (read, errors) = sections::visit(
            world,
            0,
            |_| true,
            |section| {
                heights.fill(&section);
                let live = world.read_live(&section).err();
                (section.key.level, section.area, section.patches, live)
            },
        );
        findings.compared(read.len() as u64);
        let water = world.read_water_mask();
        let live = read.iter().filter_map(|(.., live)| live.as_ref());
        let wrong = errors.iter().chain(live).chain(water.as_ref().err());
        wrong.for_each(|error: &FormatError| findings.fault(error.to_string()));
        let Some(water) = water.ok().filter(|_| findings.is_sound()) else {
            return (findings, None);
        };
        let mut records: Vec<Vec<Option<PatchRecord>>> = (0..layout.levels)
            .map(|level| vec![None; layout.patch_count(level) as usize])
            .collect();
        for (level, [x0, z0, x1, z1], patches, _) in read {
            let places = (z0..z1).flat_map(|z| (x0..x1).map(move |x| PatchKey::new(level, x, z)));
            for (key, patch) in places.zip(patches) {
                records[level as usize][index(layout, key)] = Some(patch);
            }
        }
        let whole = |level: Vec<Option<PatchRecord>>| level.into_iter().flatten().collect();
        let FullGround { map, absent } = match heights.finish() {
            Ok(ground) => ground,
            Err(error) => {
                findings.fault(error.to_string());
                return (findings, None);
            }
        };
        let contents = Contents {
            map,
            is_rebuilt: world.meta.heights == StoredHeights::Nodes,
            absent,
            water,
            records: records.into_iter().map(whole).collect(),
        };
        (findings, Some(contents))
    }

    fn record(&self, layout: &Layout, key: PatchKey) -> &PatchRecord {
        &self.records[key.level as usize][index(layout, key)]
    }

    /// How many samples are kept voids.
    pub fn absent_count(&self) -> u64 {
        let absent = self.absent.iter().flatten();
        absent.filter(|absent| **absent).count() as u64
    }

    /// Whether any sample of a closed square is present, as far as the source goes.
    pub fn any_present(&self, corner: [u32; 2], size: u32) -> bool {
        let Some(absent) = &self.absent else {
            return true;
        };
        let end = |at: u32, samples: u32| (at + size).min(samples - 1) as usize;
        let columns = corner[0] as usize..=end(corner[0], self.map.width);
        let rows = corner[1] as usize..=end(corner[1], self.map.height);
        let width = self.map.width as usize;
        rows.into_iter().any(|z| {
            let row = &absent[z * width..][columns.clone()];
            row.iter().any(|absent| !absent)
        })
    }

    /// What every patch really is, by level and row by row.
    pub fn surveys(&self, world: &World) -> Vec<Vec<Survey>> {
        let meta = &world.meta;
        let metric: Metric = meta.metric.parse().unwrap_or_default();
        let sea_level = meta.sea_level_m.map(|sea| sea / meta.height_step_m);
        let whole = [self.map.width, self.map.height];
        let dry = self.water.as_ref().map(|mask| mask.dry([0; 2], whole));
        let measurer = Measurer::new(&self.map, metric, sea_level)
            .leave_out(self.absent.as_deref())
            .keep_dry(dry.as_deref());
        let unit = metric.unit(meta.height_step_m, meta.spacing_m);
        let level = |(facts, level): (&LevelMeta, u8)| {
            let threshold = facts.threshold / unit;
            let keys: Vec<PatchKey> = meta.layout.keys(level).collect();
            let look = |key: PatchKey| {
                let trees = &self.record(&meta.layout, key).trees;
                survey(&meta.layout, key, trees, &self.map, &measurer, threshold)
            };
            keys.into_par_iter().map(look).collect()
        };
        meta.levels.iter().zip(0u8..).map(level).collect()
    }
}

fn index(layout: &Layout, key: PatchKey) -> usize {
    key.z as usize * layout.patches(key.level)[0] as usize + key.x as usize
}

/// Every chunk's checksum.
pub fn checksums(world: &World) -> Findings {
    let mut findings = Findings::new("checksums", "chunks");
    findings.compared(world.chunks().len() as u64);
    let wrong: Vec<_> = world
        .chunks()
        .par_iter()
        .filter_map(|&id| world.check_chunk(id).err())
        .collect();
    wrong
        .into_iter()
        .for_each(|error| findings.fault(error.to_string()));
    findings
}

/// Every level's heights, aprons too, are those of the full resolution.
pub fn heights(world: &World, contents: &Contents) -> Findings {
    let mut findings = Findings::new("heights", "heights of all levels and aprons");
    let look = |section: Section| {
        let rect = section.heights.rect;
        let stride = rect.stride as i64;
        let rows = rect.z0..rect.z0 + rect.height as i32;
        let places = rows.flat_map(|z| (rect.x0..rect.x0 + rect.width as i32).map(move |x| (x, z)));
        let wrong = places
            .zip(&section.heights.heights)
            .find(|&((x, z), &height)| {
                height != contents.map.at(x as i64 * stride, z as i64 * stride)
            });
        (
            section.key,
            rect.len() as u64,
            wrong.map(|((x, z), _)| [x as i64 * stride, z as i64 * stride]),
        )
    };
    let (sections, _) = sections::visit(world, 0, |_| true, look);
    for (key, count, wrong) in sections {
        findings.compared(count);
        if let Some([x, z]) = wrong {
            findings.fault(format!(
                "section {}/{}/{}: at sample {x},{z} another height than at full resolution",
                key.level, key.x, key.z
            ));
        }
    }
    findings
}

/// Lowest and highest sample of every patch.
pub fn bounds(world: &World, contents: &Contents, surveys: &[Vec<Survey>]) -> Findings {
    let mut findings = Findings::new("bounds", "patches");
    let step_m = world.meta.height_step_m;
    for (key, record, survey) in patches(world, contents, surveys) {
        findings.compared(1);
        let stored = (record.min, record.max);
        findings.expect(survey.range == Some(stored), || {
            let metres = |(low, high): (i32, i32)| {
                format!("{} to {} m", low as f64 * step_m, high as f64 * step_m)
            };
            let found = survey.range.map_or("no sample".into(), metres);
            format!("patch {key}: {} stored, {found} found", metres(stored))
        });
    }
    findings
}

/// Every stored error is the largest distance between mesh and samples; patches are marked as
/// exhausted where, and only where, their lattice was too wide; no other leaf is too large.
pub fn certificates(world: &World, contents: &Contents, surveys: &[Vec<Survey>]) -> Findings {
    let mut findings = Findings::new("certificates", "patches");
    let meta = &world.meta;
    for (key, record, survey) in patches(world, contents, surveys) {
        findings.compared(1);
        let (stored, found) = (record.error_m, survey.error * meta.height_step_m);
        // Rounded to the next f32 that does not promise too much.
        let holds = found <= stored as f64 && stored <= (found as f32).next_up();
        findings.expect(holds, || {
            format!("patch {key}: error {stored} m stored, {found} m found")
        });
        let exhausted = survey.exhausted;
        findings.expect(record.exhausted == exhausted, || {
            let name = |exhausted| {
                if exhausted {
                    "exhausted"
                } else {
                    "not exhausted"
                }
            };
            format!(
                "patch {key}: {} stored, {} found",
                name(record.exhausted),
                name(exhausted)
            )
        });
        if let Some(leaf) = survey.too_coarse {
            let middle = leaf.middle();
            findings.fault(format!(
                "patch {key}: not split at sample {middle}, where its level asks for it"
            ));
        }
    }
    findings
}

/// Each patch's tree contains what its parent's has over the same ground.
pub fn nesting(world: &World, contents: &Contents) -> Findings {
    let mut findings = Findings::new("nesting", "patches in their parents");
    let layout = &world.meta.layout;
    let keys: Vec<PatchKey> = (0..layout.coarsest())
        .flat_map(|level| layout.keys(level))
        .collect();
    findings.compared(keys.len() as u64);
    let trees = |key| (key, &contents.record(layout, key).trees);
    let unnested =
        |key: PatchKey| first_unnested(layout, trees(key.parent()), trees(key)).map(|t| (key, t));
    let wrong: Vec<_> = keys.into_par_iter().filter_map(unnested).collect();
    for (key, triangle) in wrong {
        findings.fault(format!(
            "patch {key}: not split at sample {}, where its parent {} is",
            triangle.middle(),
            key.parent()
        ));
    }
    findings
}

/// Neighbours have the same vertices on the border between them.
pub fn borders(world: &World, surveys: &[Vec<Survey>]) -> Findings {
    let mut findings = Findings::new("borders", "borders");
    let layout = &world.meta.layout;
    let mut vertices = 0;
    for key in (0..layout.levels).flat_map(|level| layout.keys(level)) {
        let east = PatchKey {
            x: key.x + 1,
            ..key
        };
        let south = PatchKey {
            z: key.z + 1,
            ..key
        };
        for (neighbour, [here, there]) in [(east, [1, 3]), (south, [2, 0])] {
            if !layout.contains(neighbour) {
                continue;
            }
            let side = |key: PatchKey, side: usize| {
                &surveys[key.level as usize][index(layout, key)].sides[side]
            };
            let (ours, theirs) = (side(key, here), side(neighbour, there));
            findings.compared(1);
            vertices += ours.len() + 2;
            findings.expect(ours == theirs, || {
                format!("patches {key} and {neighbour}: {} and {} vertices between the corners of their border", ours.len(), theirs.len())
            });
        }
    }
    findings.note(format!("{vertices} vertices on them"));
    findings
}

/// What META says of the world and of each level.
pub fn facts(world: &World, contents: &Contents, surveys: &[Vec<Survey>]) -> Findings {
    let mut findings = Findings::new("facts", "facts");
    let meta = &world.meta;
    for contradiction in meta.contradictions() {
        findings.fault(contradiction);
    }
    presence(world, &mut findings);
    if contents.is_rebuilt {
        findings.note("without those of the highest and lowest samples");
    } else {
        extremes(world, &contents.map, &mut findings);
    }
    let coarsest = contents.records.last().into_iter().flatten();
    let range = coarsest.fold([i32::MAX, i32::MIN], |[low, high], record| {
        [low.min(record.min), high.max(record.max)]
    });
    findings.compared(1);
    findings.expect(meta.height_range == range, || {
        format!(
            "heights of {:?} steps stored, patches of {range:?}",
            meta.height_range
        )
    });
    let summit = meta.summit.map(|sample| sample / meta.layout.patch_cells);
    let last = meta.layout.patches(0).map(|patches| patches - 1);
    let key = PatchKey::new(0, summit[0].min(last[0]), summit[1].min(last[1]));
    let summit = contents.record(&meta.layout, key).max;
    findings.compared(1);
    findings.expect(summit == meta.height_range[1], || {
        format!(
            "the summit's patch {key} is {summit} steps high, the world {}",
            meta.height_range[1]
        )
    });
    for (level, facts) in (0u8..).zip(&meta.levels) {
        let records = &contents.records[level as usize];
        let sum = |count: fn(&PatchRecord) -> u64| records.iter().map(count).sum::<u64>() as f64;
        let largest =
            |size: &dyn Fn(&PatchRecord) -> f64| records.iter().map(size).fold(0.0, f64::max);
        let tallest =
            largest(&|record| (record.max as f64 - record.min as f64) * meta.height_step_m);
        let compared = [
            ("patches", facts.patches as f64, records.len() as f64),
            (
                "exhausted patches",
                facts.exhausted_patches as f64,
                sum(|record| record.exhausted as u64),
            ),
            (
                "triangles",
                facts.triangles as f64,
                sum(|record| record.triangles() as u64),
            ),
            (
                "vertices",
                facts.vertices as f64,
                vertices(&meta.layout, level, &surveys[level as usize]) as f64,
            ),
            (
                "bits",
                facts.topology_bits as f64,
                sum(|record| record.trees.iter().map(|tree| tree.len() as u64).sum()),
            ),
            (
                "m largest error",
                facts.max_error_m,
                largest(&|record| record.error_m as f64),
            ),
            ("m in the tallest patch", facts.tallest_patch_m, tallest),
        ];
        for (what, stored, found) in compared {
            findings.compared(1);
            // Numbers went through text.
            let same = (stored - found).abs() <= 1e-12 * found.abs();
            findings.expect(same, || {
                format!("level {level}: {stored} {what} stored, {found} found")
            });
        }
    }
    findings
}

/// What META says of chunks that are there or not, and of the samples of the coarsest patches.
fn presence(world: &World, findings: &mut Findings) {
    let meta = &world.meta;
    findings.compared(2);
    let has_live = world.chunks().iter().any(|id| id.kind == ChunkKind::Live);
    findings.expect(has_live == meta.live_factor.is_some(), || {
        let is = |so| if so { "there" } else { "missing" };
        format!(
            "a factor of live thresholds that is {}, but their chunks are {}",
            is(!has_live),
            is(has_live)
        )
    });
    let has_water = world.chunks().iter().any(|id| id.kind == ChunkKind::Water);
    findings.expect(!has_water || meta.sea_level_m.is_some(), || {
        "a water mask without a sea level".into()
    });
}

/// What META says of the highest and the lowest sample.
fn extremes(world: &World, map: &HeightMap, findings: &mut Findings) {
    let meta = &world.meta;
    let (low, high) = map.range();
    findings.compared(2);
    findings.expect(meta.height_range == [low, high], || {
        format!(
            "heights of {:?} steps stored, {low} to {high} found",
            meta.height_range
        )
    });
    let summit = map.at(meta.summit[0] as i64, meta.summit[1] as i64);
    findings.expect(summit == high, || {
        format!("the summit is {summit} steps high, the highest sample {high}")
    });
}

/// Vertices of a level whose neighbours agree on their borders.
fn vertices(layout: &Layout, level: u8, surveys: &[Survey]) -> u64 {
    let [nx, nz] = layout.patches(level).map(u64::from);
    let corners = (nx + 1) * (nz + 1);
    let of_patch = |(key, survey): (PatchKey, &Survey)| {
        let [north, east, south, west] = [0, 1, 2, 3].map(|side| survey.sides[side].len() as u64);
        let first = |at: u32, count: u64| if at == 0 { count } else { 0 };
        survey.inside + east + south + first(key.z, north) + first(key.x, west)
    };
    corners + layout.keys(level).zip(surveys).map(of_patch).sum::<u64>()
}

fn patches<'a>(
    world: &'a World,
    contents: &'a Contents,
    surveys: &'a [Vec<Survey>],
) -> impl Iterator<Item = (PatchKey, &'a PatchRecord, &'a Survey)> {
    let layout = &world.meta.layout;
    let keys = (0..layout.levels).flat_map(|level| layout.keys(level));
    let records = contents.records.iter().flatten();
    keys.zip(records.zip(surveys.iter().flatten()))
        .map(|(key, (record, survey))| (key, record, survey))
}
