//! The facts of a world: one small JSON chunk, read first.

use super::{FormatError, Layout, SourceInfo};
use serde::{Deserialize, Serialize};

/// Most bytes of the META chunk.
pub const MAX_META_BYTES: usize = 1 << 20;

/// Which heights a world stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoredHeights {
    /// Those of every sample.
    #[default]
    All,
    /// Those of the meshes' vertices; the others are rebuilt.
    Nodes,
}

impl StoredHeights {
    pub fn name(self) -> &'static str {
        match self {
            StoredHeights::All => "all",
            StoredHeights::Nodes => "nodes",
        }
    }

    fn is_all(&self) -> bool {
        *self == StoredHeights::All
    }
}

impl std::str::FromStr for StoredHeights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [StoredHeights::All, StoredHeights::Nodes]
            .into_iter()
            .find(|heights| heights.name() == text)
            .ok_or_else(|| format!("'{text}' are no heights; expected all or nodes"))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    pub layout: Layout,
    /// Metres between samples, [x, z].
    pub spacing_m: [f64; 2],
    /// Metres a height step.
    pub height_step_m: f64,
    /// Which of them are stored.
    #[serde(default, skip_serializing_if = "StoredHeights::is_all")]
    pub heights: StoredHeights,
    /// Lowest and highest sample, in height steps.
    pub height_range: [i32; 2],
    /// A sample of the highest height, [x, z].
    pub summit: [u32; 2],
    /// Metres; none where the world has no sea.
    pub sea_level_m: Option<f64>,
    /// How thresholds are meant: `max`, the largest vertical distance in metres, or `sum`, the
    /// distances summed over the cells in cubic metres. Errors are metres under both.
    pub metric: String,
    /// What thresholds are multiplied with from step to step of the live thresholds; none where
    /// the world has no such chunks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_factor: Option<f64>,
    /// Samples of the source that are absent, there being no ground; chunks say which.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_voids: u64,
    /// One entry a level, finest first.
    pub levels: Vec<LevelMeta>,
    pub source: SourceInfo,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelMeta {
    pub patches: u64,
    /// Patches whose lattice was too wide for the threshold.
    pub exhausted_patches: u64,
    pub triangles: u64,
    /// Vertices of the level's mesh, those on patch borders counted once.
    pub vertices: u64,
    /// The error asked, in metres or cubic metres as the metric says.
    pub threshold: f64,
    /// The largest error of any patch, in metres.
    pub max_error_m: f64,
    /// The largest difference in metres between highest and lowest sample of a patch.
    pub tallest_patch_m: f64,
    /// Bits of the level's bit-streams, uncompressed.
    pub topology_bits: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Meta {
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data without maps")
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let meta: Meta = serde_json::from_slice(bytes)
            .map_err(|error| FormatError(format!("facts that cannot be read ({error})")))?;
        meta.check()?;
        Ok(meta)
    }

    /// `E_k`: the largest stored error of a level, made non-decreasing, in metres.
    pub fn errors_m(&self) -> Vec<f64> {
        let mut largest = 0.0f64;
        self.levels
            .iter()
            .map(|level| {
                largest = largest.max(level.max_error_m);
                largest
            })
            .collect()
    }

    /// The unit of thresholds.
    pub fn threshold_unit(&self) -> &'static str {
        if self.metric == "sum" { "m³" } else { "m" }
    }

    /// Width and depth of the source in metres.
    pub fn size_m(&self) -> [f64; 2] {
        std::array::from_fn(|axis| self.layout.size_cells[axis] as f64 * self.spacing_m[axis])
    }

    fn check(&self) -> Result<(), FormatError> {
        self.layout.check()?;
        let positive = |value: f64| (1e-9..=1e9).contains(&value);
        let not_negative = |value: f64| value.is_finite() && value >= 0.0;
        let [low, high] = self.height_range;
        // Heights in morph units must fit an i32 with room for a difference.
        let largest = i32::MAX / 2 / self.layout.height_units();
        // No error and no patch is larger than the whole range; a step covers rounding.
        let range_m = (high as f64 - low as f64 + 1.0) * self.height_step_m;
        let sound = self.spacing_m.iter().all(|&spacing| positive(spacing))
            && positive(self.height_step_m)
            && low <= high
            && low >= -largest
            && high <= largest
            && self.sea_level_m.is_none_or(f64::is_finite)
            && self
                .live_factor
                .is_none_or(|factor| (1.0..=1e3).contains(&factor))
            && ["max", "sum"].contains(&self.metric.as_str())
            && (0..2).all(|axis| self.summit[axis] <= self.layout.size_cells[axis])
            && self.levels.len() == self.layout.levels as usize
            && self.levels.iter().all(|level| {
                not_negative(level.threshold)
                    && (0.0..=range_m).contains(&level.max_error_m)
                    && (0.0..=range_m).contains(&level.tallest_patch_m)
            });
        if sound {
            Ok(())
        } else {
            Err(FormatError::new("facts that contradict each other"))
        }
    }
}
