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

    /// What writers and readers refuse: facts with which nothing could be decoded or drawn.
    pub fn check(&self) -> Result<(), FormatError> {
        self.layout.check()?;
        let wrong = |what: &str| Err(FormatError(format!("facts that cannot be: {what}")));
        let positive = |value: f64| (1e-9..=1e9).contains(&value);
        let [low, high] = self.height_range;
        // Heights in morph units must fit an i32 with room for a difference.
        let largest = i32::MAX / 2 / self.layout.height_units();
        if !self.spacing_m.iter().all(|&spacing| positive(spacing)) {
            return wrong("the spacing");
        }
        if !positive(self.height_step_m) {
            return wrong("the height step");
        }
        if low > high || low < -largest || high > largest {
            return wrong("the heights' range");
        }
        if !self.sea_level_m.is_none_or(f64::is_finite) {
            return wrong("the sea level");
        }
        let live = |factor| (1.0..=1e3).contains(&factor);
        if !self.live_factor.is_none_or(live) {
            return wrong("the factor of live thresholds");
        }
        if !["max", "sum"].contains(&self.metric.as_str()) {
            return wrong("the metric");
        }
        if (0..2).any(|axis| self.summit[axis] > self.layout.size_cells[axis]) {
            return wrong("the summit");
        }
        if self.levels.len() != self.layout.levels as usize {
            return wrong("the number of levels");
        }
        match self.levels.iter().position(|level| !self.is_sound(level)) {
            Some(level) => wrong(&format!("errors or thresholds of level {level}")),
            None => Ok(()),
        }
    }

    fn is_sound(&self, level: &LevelMeta) -> bool {
        let [low, high] = self.height_range;
        // No error and no patch is larger than the whole range; a step covers rounding.
        let range_m = (high as f64 - low as f64 + 1.0) * self.height_step_m;
        level.threshold.is_finite()
            && level.threshold >= 0.0
            && (0.0..=range_m).contains(&level.max_error_m)
            && (0.0..=range_m).contains(&level.tallest_patch_m)
    }

    /// Facts that the others contradict, a line each.
    pub fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.source_contradictions(&mut found);
        self.place_contradictions(&mut found);
        let growth: f64 = if self.metric == "sum" { 8.0 } else { 2.0 };
        let first = self.levels.first().map_or(0.0, |level| level.threshold);
        for (number, level) in (0u8..).zip(&self.levels) {
            let expected = first * growth.powi(number.into());
            if !near(level.threshold, expected, 1e-9) {
                let stored = level.threshold;
                found.push(format!(
                    "level {number}: a threshold of {stored} stored, {expected} expected"
                ));
            }
            let bound = level.threshold * (1.0 + 1e-6) + 1e-6 * self.height_step_m;
            if self.metric == "max" && level.exhausted_patches == 0 && level.max_error_m > bound {
                found.push(format!(
                    "level {number}: an error of {} m at a threshold of {} m, though no patch is exhausted",
                    level.max_error_m, level.threshold
                ));
            }
            let patches = self.layout.patch_count(number);
            if level.patches != patches {
                found.push(format!(
                    "level {number}: {} patches stored, {patches} expected",
                    level.patches
                ));
            }
        }
        found
    }

    /// What is said of the source's samples.
    fn source_contradictions(&self, found: &mut Vec<String>) {
        let source = &self.source;
        let ends = [source.min_m, source.max_m];
        for (steps, metres) in self.height_range.into_iter().zip(ends) {
            let stored = steps as f64 * self.height_step_m;
            let room = self.height_step_m * 0.500_001 + 1e-9 * metres.abs();
            let off = (stored - metres).abs();
            if off.is_nan() || off > room {
                found.push(format!(
                    "a height of {steps} steps is {stored} m, but the source's is {metres} m"
                ));
            }
        }
        let samples = self.layout.size_cells.map(|cells| u64::from(cells) + 1);
        if source.filled.checked_add(self.kept_voids) != Some(source.voids) {
            found.push(format!(
                "{} voids, of which {} are filled and {} kept",
                source.voids, source.filled, self.kept_voids
            ));
        }
        if self.kept_voids > samples[0] * samples[1] {
            found.push(format!(
                "{} kept voids are more than all samples",
                self.kept_voids
            ));
        }
    }

    /// What is said of the map.
    fn place_contradictions(&self, found: &mut Vec<String>) {
        let source = &self.source;
        let Some(transform) = source.transform else {
            if source.crs.is_some() || source.metres_a_map_unit.is_some() || source.pixel_is_area {
                found.push("a coordinate system without a place".into());
            }
            return;
        };
        let [_, dx, rx, _, ry, dy] = transform;
        if !transform.iter().all(|v| v.is_finite())
            || dx <= 0.0
            || dy >= 0.0
            || [rx, ry] != [0.0; 2]
        {
            found.push(format!("a transform of {transform:?} is not north-up"));
            return;
        }
        let units = source
            .metres_a_map_unit
            .unwrap_or([self.spacing_m[0] / dx, self.spacing_m[1] / -dy]);
        for (axis, step) in [dx, -dy].into_iter().enumerate() {
            let expected = step * units[axis];
            if !near(self.spacing_m[axis], expected, 1e-9) {
                found.push(format!(
                    "samples {} m apart, but {step} units of the map of {} m",
                    self.spacing_m[axis], units[axis]
                ));
            }
        }
    }
}

fn near(a: f64, b: f64, share: f64) -> bool {
    (a - b).abs() <= share * b.abs()
}
