//! How a world is cut into levels, patches and sections.
//!
//! Pure numbers: the size of the source in cells, the cells of a level-0 patch and the number of
//! levels decide where every patch, lattice and section lies. Positions are in samples from the
//! north-west sample unless they are called *lattice* positions (samples divided by the stride).
//!
//! Invariants of a checked layout: sizes and patch sizes fit an `i32`; a patch side is a power
//! of two; a section's corner is a multiple of twice its level's stride.

use super::FormatError;
use serde::{Deserialize, Serialize};

/// Lattice samples stored round a section's own ground, so that neighbours' heights are there
/// for normals and for the cubic prediction.
pub const APRON: i32 = 2;
/// Most levels a world may have.
pub const MAX_LEVELS: u8 = 20;
/// Most cells along a side of a world, or of its coarsest patches.
const MAX_CELLS: u64 = 1 << 28;
/// Coarsest patches are always in memory.
const MAX_COARSEST_PATCHES: u64 = 1024;
/// Most heights in one section; bounds the memory that a file can ask for.
pub const MAX_SECTION_SAMPLES: u64 = 1 << 26;

/// A square of ground of one level; level 0 is the finest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PatchKey {
    pub level: u8,
    pub x: u32,
    pub z: u32,
}

impl PatchKey {
    pub fn new(level: u8, x: u32, z: u32) -> Self {
        PatchKey { level, x, z }
    }

    /// The patch of the next coarser level that covers this one.
    pub fn parent(self) -> Self {
        PatchKey::new(self.level + 1, self.x / 2, self.z / 2)
    }

    /// The four patches of the next finer level; meaningless at level 0.
    pub fn children(self) -> [Self; 4] {
        let (x, z) = (self.x * 2, self.z * 2);
        [(x, z), (x + 1, z), (x, z + 1), (x + 1, z + 1)]
            .map(|(x, z)| PatchKey::new(self.level - 1, x, z))
    }

    /// True when the patch is split along its NW-SE diagonal; diagonals alternate.
    pub fn splits_nw_se(self) -> bool {
        (self.x + self.z).is_multiple_of(2)
    }
}

impl std::fmt::Display for PatchKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.level, self.x, self.z)
    }
}

impl std::str::FromStr for PatchKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a patch; expected LEVEL/X/Z, such as 0/3/5");
        let parts: Vec<&str> = text.split('/').collect();
        let [level, x, z] = parts[..] else {
            return Err(wrong());
        };
        Ok(PatchKey::new(
            level.parse().map_err(|_| wrong())?,
            x.parse().map_err(|_| wrong())?,
            z.parse().map_err(|_| wrong())?,
        ))
    }
}

/// The unit of reading: one level of one stream patch, or one whole level of the global
/// repository (then x = z = 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SectionKey {
    pub level: u8,
    pub x: u32,
    pub z: u32,
}

/// A rectangle of lattice samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatticeRect {
    /// Samples between lattice samples.
    pub stride: u32,
    /// Lattice position of the first column and row.
    pub x0: i32,
    pub z0: i32,
    /// Columns and rows.
    pub width: u32,
    pub height: u32,
}

impl LatticeRect {
    pub fn len(&self) -> usize {
        self.width as usize * self.height as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Cells (samples less one) of the source, [x, z].
    pub size_cells: [u32; 2],
    /// Cells of a level-0 patch's side; a power of two.
    pub patch_cells: u32,
    /// Number of levels, and so of patch maps.
    pub levels: u8,
    /// Levels below this one are stored in stream patches, the others in the global repository.
    pub stream_levels: u8,
    /// Halvings by which a level's lattice is finer than its patches ask for: 0, 1 or 2.
    pub lattice_bias: u8,
}

/// [`Layout::height_units`] of layouts with such patches.
pub fn height_units(patch_cells: u32, lattice_bias: u8) -> i32 {
    (patch_cells << (lattice_bias + 1)) as i32
}

impl Layout {
    /// The layout for a source: as many patch maps as it takes for one patch to cover it all.
    pub fn new(
        size_cells: [u32; 2],
        patch_cells: u32,
        stream_cells: u32,
    ) -> Result<Self, FormatError> {
        Self::with_levels(size_cells, patch_cells, stream_cells, MAX_LEVELS, 1)
    }

    /// The same with at most so many levels, then of several coarsest patches, and with another
    /// lattice bias.
    pub fn with_levels(
        size_cells: [u32; 2],
        patch_cells: u32,
        stream_cells: u32,
        most_levels: u8,
        lattice_bias: u8,
    ) -> Result<Self, FormatError> {
        let widest = size_cells[0].max(size_cells[1]) as u64;
        let levels = (0..MAX_LEVELS)
            .find(|&k| (patch_cells as u64) << k >= widest)
            .map_or(MAX_LEVELS, |k| k + 1)
            .min(most_levels.max(1));
        let wanted = (stream_cells / patch_cells.max(1)).max(1).ilog2() as u8 + 1;
        let layout = Layout {
            size_cells,
            patch_cells,
            levels,
            stream_levels: wanted.min(levels - 1),
            lattice_bias,
        };
        layout.check()?;
        Ok(layout)
    }

    /// Whether the numbers can be a layout at all; everything else here relies on it.
    pub fn check(&self) -> Result<(), FormatError> {
        let wrong = |text: String| Err(FormatError(text));
        if !self.patch_cells.is_power_of_two() || !(4..=512).contains(&self.patch_cells) {
            return wrong(format!(
                "patches of {} cells; a power of two from 4 to 512 is expected",
                self.patch_cells
            ));
        }
        if !(1..=MAX_LEVELS).contains(&self.levels) || self.stream_levels >= self.levels {
            return wrong(format!(
                "{} levels of which {} stream; 1 to {MAX_LEVELS} levels are expected, the coarsest not streamed",
                self.levels, self.stream_levels
            ));
        }
        if self.lattice_bias > 2 {
            return wrong(format!(
                "lattice bias {}; 0 to 2 is expected",
                self.lattice_bias
            ));
        }
        let coarsest_size = (self.patch_cells as u64) << (self.levels - 1);
        let largest = self.size_cells[0].max(self.size_cells[1]) as u64;
        if self.size_cells.contains(&0) || largest > MAX_CELLS || coarsest_size > MAX_CELLS {
            return wrong(format!(
                "{} x {} cells in {} levels; 1 to {MAX_CELLS} a side are expected",
                self.size_cells[0], self.size_cells[1], self.levels
            ));
        }
        if self.patch_count(self.coarsest()) > MAX_COARSEST_PATCHES {
            return wrong(format!(
                "{} coarsest patches; at most {MAX_COARSEST_PATCHES} are expected (more levels)",
                self.patch_count(self.coarsest())
            ));
        }
        let largest = (0..self.levels)
            .map(|level| self.section_samples(level))
            .max()
            .unwrap_or(0);
        if largest > MAX_SECTION_SAMPLES {
            return wrong(format!(
                "a section of {largest} heights; at most {MAX_SECTION_SAMPLES} are expected (more levels, or smaller stream patches)"
            ));
        }
        Ok(())
    }

    /// Heights of the largest section of a level, apron left out.
    fn section_samples(&self, level: u8) -> u64 {
        let n = self.lattice_cells(level) as u64;
        let [x, z] = if self.is_global(level) {
            self.patches(level).map(u64::from)
        } else {
            [1 << (self.stream_levels - 1 - level); 2]
        };
        (x * n).saturating_mul(z * n)
    }

    pub fn coarsest(&self) -> u8 {
        self.levels - 1
    }

    /// Samples between a level's lattice samples.
    pub fn stride(&self, level: u8) -> u32 {
        1 << level.saturating_sub(self.lattice_bias)
    }

    /// Side of a level's patches in samples.
    pub fn patch_size(&self, level: u8) -> u32 {
        self.patch_cells << level
    }

    /// Lattice cells along a patch's side.
    pub fn lattice_cells(&self, level: u8) -> u32 {
        self.patch_size(level) / self.stride(level)
    }

    /// Halvings from a patch's root triangles to its smallest ones.
    pub fn tree_depth(&self, level: u8) -> u32 {
        2 * self.lattice_cells(level).ilog2()
    }

    /// Morph targets are exact in units of the height step divided by this.
    pub fn height_units(&self) -> i32 {
        height_units(self.patch_cells, self.lattice_bias)
    }

    /// Patches of a level that hold any ground, [x, z].
    pub fn patches(&self, level: u8) -> [u32; 2] {
        self.size_cells
            .map(|cells| cells.div_ceil(self.patch_size(level)))
    }

    /// The patches of a level, row by row.
    pub fn keys(&self, level: u8) -> impl Iterator<Item = PatchKey> + use<> {
        let [nx, nz] = self.patches(level);
        (0..nz).flat_map(move |z| (0..nx).map(move |x| PatchKey::new(level, x, z)))
    }

    pub fn patch_count(&self, level: u8) -> u64 {
        let [x, z] = self.patches(level);
        x as u64 * z as u64
    }

    pub fn contains(&self, key: PatchKey) -> bool {
        key.level < self.levels && {
            let [x, z] = self.patches(key.level);
            key.x < x && key.z < z
        }
    }

    /// The children that hold any ground.
    pub fn present_children(&self, key: PatchKey) -> impl Iterator<Item = PatchKey> + use<'_> {
        key.children()
            .into_iter()
            .filter(|&child| self.contains(child))
    }

    /// True when the level is in the global repository.
    pub fn is_global(&self, level: u8) -> bool {
        level >= self.stream_levels
    }

    /// The section that holds a patch.
    pub fn section_of(&self, key: PatchKey) -> SectionKey {
        if self.is_global(key.level) {
            return SectionKey {
                level: key.level,
                x: 0,
                z: 0,
            };
        }
        let shift = self.stream_levels - 1 - key.level;
        SectionKey {
            level: key.level,
            x: key.x >> shift,
            z: key.z >> shift,
        }
    }

    /// The section of the next coarser level over the same ground.
    pub fn coarser_section(&self, key: SectionKey) -> Option<SectionKey> {
        let level = key.level + 1;
        if level >= self.levels {
            None
        } else if self.is_global(level) {
            Some(SectionKey { level, x: 0, z: 0 })
        } else {
            Some(SectionKey { level, ..key })
        }
    }

    /// All sections of a level, row by row.
    /// The patch of a level under a place in samples, or the nearest one.
    pub fn patch_at(&self, level: u8, [x, z]: [f64; 2]) -> PatchKey {
        let size = self.patch_size(level) as f64;
        let [columns, rows] = self.patches(level);
        let at = |samples: f64, count: u32| ((samples / size).max(0.0) as u32).min(count - 1);
        PatchKey::new(level, at(x, columns), at(z, rows))
    }

    /// How many sections all levels have.
    pub fn section_count(&self) -> u64 {
        let repository = u64::from(self.levels - self.stream_levels);
        let streamed = self.stream_levels.checked_sub(1);
        let streamed = streamed.map_or(0, |level| self.patch_count(level));
        repository + streamed * u64::from(self.stream_levels)
    }

    pub fn sections(&self, level: u8) -> Vec<SectionKey> {
        let [nx, nz] = if self.is_global(level) {
            [1, 1]
        } else {
            self.patches(self.stream_levels - 1)
        };
        (0..nz)
            .flat_map(|z| (0..nx).map(move |x| SectionKey { level, x, z }))
            .collect()
    }

    /// First patch and one past the last, [x0, z0, x1, z1], of the patches of a section.
    pub fn section_patches(&self, key: SectionKey) -> [u32; 4] {
        let [nx, nz] = self.patches(key.level);
        if self.is_global(key.level) {
            return [0, 0, nx, nz];
        }
        let shift = self.stream_levels - 1 - key.level;
        let (x0, z0) = (key.x << shift, key.z << shift);
        [
            x0,
            z0,
            (x0 + (1 << shift)).min(nx),
            (z0 + (1 << shift)).min(nz),
        ]
    }

    /// The lattice samples stored for a section, apron included.
    pub fn section_rect(&self, key: SectionKey) -> LatticeRect {
        let n = self.lattice_cells(key.level);
        // Whole stream patches, so that the rectangle is twice the coarser one at every level.
        let [x0, z0, x1, z1] = if self.is_global(key.level) {
            let [x, z] = self.patches(key.level);
            [0, 0, x, z]
        } else {
            let side = 1 << (self.stream_levels - 1 - key.level);
            [
                key.x * side,
                key.z * side,
                (key.x + 1) * side,
                (key.z + 1) * side,
            ]
        };
        LatticeRect {
            stride: self.stride(key.level),
            x0: (x0 * n) as i32 - APRON,
            z0: (z0 * n) as i32 - APRON,
            width: (x1 - x0) * n + 2 * APRON as u32 + 1,
            height: (z1 - z0) * n + 2 * APRON as u32 + 1,
        }
    }
}
