//! Goes over a world's sections: the repository first, then all stream patches on all cores.

use crate::terrain::height_map::HeightMap;
use crate::world::{FormatError, HeightGrid, Layout, PatchKey, Section, SectionKey, World};
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// What `visit` makes of every section from the coarsest level down to `finest`, inside the
/// stream patches that are `wanted`; and what was wrong with those that cannot be read.
pub fn visit<T: Send>(
    world: &World,
    finest: u8,
    wanted: impl Fn(PatchKey) -> bool,
    visit: impl Fn(Section) -> T + Sync,
) -> (Vec<T>, Vec<FormatError>) {
    let repository = match world.read_repository() {
        Ok(repository) => repository,
        Err(error) => return (Vec::new(), vec![error]),
    };
    let coarser = repository.last().map(|section| section.heights.clone());
    let mut found: Vec<T> = repository
        .into_iter()
        .filter(|section| section.key.level >= finest)
        .map(&visit)
        .collect();
    let levels = world.meta.layout.stream_levels;
    let (Some(coarser), Some(level)) = (coarser, levels.checked_sub(1)) else {
        return (found, Vec::new());
    };
    let stream_patches: Vec<PatchKey> = world
        .meta
        .layout
        .keys(level)
        .filter(|&key| wanted(key))
        .collect();
    let read: Vec<(Vec<T>, Option<FormatError>)> = stream_patches
        .into_par_iter()
        .map(|key| visit_stream_patch(world, key, finest, coarser.clone(), &visit))
        .collect();
    let mut errors = Vec::new();
    for (sections, error) in read {
        found.extend(sections);
        errors.extend(error);
    }
    (found, errors)
}

fn visit_stream_patch<T>(
    world: &World,
    patch: PatchKey,
    finest: u8,
    mut heights: Arc<HeightGrid>,
    visit: &impl Fn(Section) -> T,
) -> (Vec<T>, Option<FormatError>) {
    let mut found = Vec::new();
    for level in (finest..world.meta.layout.stream_levels).rev() {
        let key = SectionKey {
            level,
            x: patch.x,
            z: patch.z,
        };
        match world.read_section(key, Some(&heights)) {
            Ok(section) => {
                heights = section.heights.clone();
                found.push(visit(section));
            }
            Err(error) => return (found, Some(error)),
        }
    }
    (found, None)
}

/// All samples of a world.
pub struct FullGround {
    pub map: HeightMap,
    /// Which samples are kept voids, where the world has any.
    pub absent: Option<Vec<bool>>,
}

/// The full-resolution heights of a whole world, collected section by section.
///
/// A world may claim samples that it does not have: memory for all of them is asked for when every
/// section has been read.
pub struct FullHeights {
    parts: Mutex<HashMap<SectionKey, Part>>,
    layout: Layout,
    has_voids: bool,
}

/// The samples of a section of level 0 that are its own: those along its east and south belong to
/// the neighbours there.
struct Part {
    heights: Vec<i32>,
    absent: Option<Vec<bool>>,
}

const UNPOISONED: &str = "nothing panics while it holds the lock";

impl FullHeights {
    pub fn new(world: &World) -> Self {
        FullHeights {
            parts: Mutex::default(),
            layout: world.meta.layout,
            has_voids: world.meta.kept_voids > 0,
        }
    }

    /// Takes over the heights of a section of level 0, which has all samples.
    pub fn fill(&self, section: &Section) {
        if section.key.level != 0 {
            return;
        }
        let grid = &section.heights;
        let [columns, rows] = self.own(section.key);
        let start = (columns.start as i32 - grid.rect.x0) as usize;
        let pitch = grid.rect.width as usize;
        let mut heights = Vec::with_capacity(columns.len() * rows.len());
        for z in rows.clone() {
            let from = (z as i32 - grid.rect.z0) as usize * pitch + start;
            heights.extend(&grid.heights[from..from + columns.len()]);
        }
        let absent = self.has_voids.then(|| {
            let samples = section.samples.as_ref();
            let [x0, z0] = [columns.start, rows.start];
            let places = rows.flat_map(|z| columns.clone().map(move |x| (x - x0, z - z0)));
            let is_absent = |(x, z)| samples.is_some_and(|samples| !samples.is_present(x, z));
            places.map(is_absent).collect()
        });
        let mut parts = self.parts.lock().expect(UNPOISONED);
        parts.insert(section.key, Part { heights, absent });
    }

    /// Columns and rows of the samples that are a section's own.
    fn own(&self, key: SectionKey) -> [Range<u32>; 2] {
        let [x0, z0, x1, z1] = self.layout.section_patches(key);
        let cells = self.layout.patch_cells;
        let range = |axis: usize, first: u32, last: u32| {
            let is_last = last == self.layout.patches(0)[axis];
            let samples = self.layout.size_cells[axis] + 1;
            first * cells..if is_last { samples } else { last * cells }
        };
        [range(0, x0, x1), range(1, z0, z1)]
    }

    /// Refuses what memory cannot hold, and a world of which sections are missing.
    pub fn finish(self) -> Result<FullGround, FormatError> {
        let mut parts = std::mem::take(&mut *self.parts.lock().expect(UNPOISONED));
        let sections = self.layout.sections(0);
        if sections.iter().any(|key| !parts.contains_key(key)) {
            return Err(FormatError::new("heights of which parts are missing"));
        }
        let [width, height] = self.layout.size_cells.map(|cells| cells + 1);
        let count = width as usize * height as usize;
        let (mut heights, mut absent) = (Vec::new(), self.has_voids.then(Vec::new));
        let reserved = heights.try_reserve_exact(count);
        let reserved = reserved.and_then(|()| {
            let absent: Option<&mut Vec<bool>> = absent.as_mut();
            absent.map_or(Ok(()), |absent| absent.try_reserve_exact(count))
        });
        reserved.map_err(|_| {
            FormatError(format!(
                "{width} x {height} heights do not fit this machine's memory"
            ))
        })?;
        // A row of sections at a time, which are let go then.
        for row in sections.chunk_by(|a, b| a.z == b.z) {
            let row: Vec<(usize, Part)> = (row.iter())
                .filter_map(|key| Some((self.own(*key)[0].len(), parts.remove(key)?)))
                .collect();
            let rows = row
                .first()
                .map_or(0, |(width, part)| part.heights.len() / width);
            for z in 0..rows {
                for (width, part) in &row {
                    let own = z * width..(z + 1) * width;
                    heights.extend_from_slice(&part.heights[own.clone()]);
                    if let (Some(absent), Some(part)) = (absent.as_mut(), &part.absent) {
                        absent.extend_from_slice(&part[own]);
                    }
                }
            }
        }
        let map = HeightMap {
            width,
            height,
            heights,
        };
        Ok(FullGround { map, absent })
    }
}
