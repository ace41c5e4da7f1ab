//! What makes a triangle need its split: each level's threshold, and the rules besides it.
//!
//! A rule is one small function over a triangle's samples. It must never ask for a split at a
//! coarse level and not at a finer one, or levels would not nest.

use super::hierarchy::Rank;
use super::measure::Metric;

/// Planes have whole slopes in units of a height step divided by at most two to this.
const SHIFTS: usize = 32;
/// The smallest triangles need no more.
const SMALL_SHIFTS: usize = 3;

/// The thresholds of all levels, and where the sea stands.
#[derive(Clone, Debug)]
pub struct Rules {
    pub metric: Metric,
    /// By level, finest first, in the metric's units; they do not fall.
    thresholds: Vec<f64>,
    /// The same in whole numbers: what a measure in units of a step divided by `2^shift` may be.
    limits: Vec<[i64; SHIFTS]>,
    /// Those of small shifts once more, for distances in `f32`; none of these reaches 2^24.
    small_limits: Vec<[f32; SMALL_SHIFTS]>,
    /// Samples up to this height lie under the sea. Triangles with samples on both sides go down
    /// to the lattice at every level, so that shorelines are smooth.
    pub sea: Option<i32>,
}

impl Rules {
    /// `sea_level` in height steps; ground at the very level of the sea lies under it.
    pub fn new(metric: Metric, thresholds: Vec<f64>, sea_level: Option<f64>) -> Self {
        let whole = |threshold: f64| {
            std::array::from_fn(|shift| (threshold * (1u64 << shift) as f64).floor() as i64)
        };
        let small = |threshold: f64| {
            let whole = whole(threshold);
            std::array::from_fn(|shift| whole[shift].min(1 << 24) as f32)
        };
        Rules {
            metric,
            small_limits: thresholds
                .iter()
                .map(|&threshold| small(threshold))
                .collect(),
            limits: thresholds
                .iter()
                .map(|&threshold| whole(threshold))
                .collect(),
            thresholds,
            sea: sea_level.map(|level| level.floor() as i32),
        }
    }

    /// The same rules with other thresholds.
    pub fn with_thresholds(&self, thresholds: Vec<f64>) -> Self {
        Rules {
            sea: self.sea,
            ..Rules::new(self.metric, thresholds, None)
        }
    }

    /// Whether nothing but the largest distance of a triangle's samples counts.
    pub fn only_largest(&self) -> bool {
        self.metric == Metric::Max && self.sea.is_none()
    }

    /// What a level asks for.
    pub fn threshold(&self, level: u8) -> f64 {
        self.thresholds[level as usize]
    }

    /// How many ranks up to `most` have a threshold below an error in height steps.
    #[inline]
    pub fn exceeded(&self, error: f64, most: Rank) -> Rank {
        let thresholds = &self.thresholds[..most as usize];
        thresholds
            .iter()
            .map(|&threshold| (error > threshold) as Rank)
            .sum()
    }

    /// [`Rules::limit`] for distances below 2^24 in units that are halved at most twice.
    #[inline]
    pub fn small_limit(&self, rank: Rank, shift: u32) -> f32 {
        self.small_limits[rank as usize - 1][shift as usize]
    }

    /// What a measure in units of a step divided by `2^shift` may be at the level of a rank.
    pub fn limit(&self, rank: Rank, shift: u32) -> i64 {
        self.limits[rank as usize - 1][shift as usize]
    }
}
