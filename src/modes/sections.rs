//! Goes over a world's sections: the repository first, then all stream patches on all cores.

use crate::terrain::height_map::HeightMap;
use crate::world::{FormatError, HeightGrid, PatchKey, Section, SectionKey, World};
use rayon::prelude::*;
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

/// The full-resolution heights of a whole world, to be filled section by section.
pub struct FullHeights {
    ground: Mutex<FullGround>,
    /// Samples along a finest patch's side, and how many of those there are.
    cells: u32,
    patches: [u32; 2],
}

const UNPOISONED: &str = "nothing panics while it holds the lock";

impl FullHeights {
    /// Refuses what memory cannot hold.
    pub fn new(world: &World) -> Result<Self, FormatError> {
        let [width, height] = world.meta.layout.size_cells.map(|cells| cells + 1);
        let count = width as usize * height as usize;
        let mut heights = Vec::new();
        if heights.try_reserve_exact(count).is_err() {
            return Err(FormatError(format!(
                "{width} x {height} heights do not fit this machine's memory"
            )));
        }
        heights.resize(count, 0);
        let map = HeightMap {
            width,
            height,
            heights,
        };
        let absent = (world.meta.kept_voids > 0).then(|| vec![false; count]);
        Ok(FullHeights {
            ground: Mutex::new(FullGround { map, absent }),
            cells: world.meta.layout.patch_cells,
            patches: world.meta.layout.patches(0),
        })
    }

    /// Takes over the heights of a section of level 0, which has all samples.
    pub fn fill(&self, section: &Section) {
        if section.key.level != 0 {
            return;
        }
        let (grid, [x0, z0, x1, z1]) = (&section.heights, section.area);
        let mut ground = self.ground.lock().expect(UNPOISONED);
        let FullGround { map, absent } = &mut *ground;
        // Its own samples; those along the east and south belong to the neighbours there.
        let own = |first: u32, last: u32, patches: u32, samples: u32| {
            let end = if last == patches {
                samples
            } else {
                last * self.cells
            };
            first * self.cells..end
        };
        let columns = own(x0, x1, self.patches[0], map.width);
        let (width, count) = (map.width as usize, columns.len());
        for z in own(z0, z1, self.patches[1], map.height) {
            let from = (z as i32 - grid.rect.z0) as usize * grid.rect.width as usize
                + (columns.start as i32 - grid.rect.x0) as usize;
            let to = z as usize * width + columns.start as usize;
            map.heights[to..to + count].copy_from_slice(&grid.heights[from..from + count]);
            if let (Some(absent), Some(samples)) = (absent.as_mut(), &section.samples) {
                let z = z - z0 * self.cells;
                let is_absent = |x| !samples.is_present(x - x0 * self.cells, z);
                for (absent, x) in absent[to..to + count].iter_mut().zip(columns.clone()) {
                    *absent = is_absent(x);
                }
            }
        }
    }

    pub fn finish(self) -> FullGround {
        self.ground.into_inner().expect(UNPOISONED)
    }
}
