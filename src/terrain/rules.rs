//! What makes a triangle need its split: each level's threshold, and the rules besides it.
//!
//! A rule is one small function over a triangle's samples. It must never ask for a split at a
//! coarse level and not at a finer one, or levels would not nest.
//!
//! It is asked in three places: for triangles in a tile (`TileGround::need`), for wider ones, whose
//! samples are tallied tile by tile (`upper::Tally` and its `need`), and by the reference that
//! checks and tests go by (`Measurer`). Where a rule holds, the short ways that know the largest
//! distance only must not be taken: [`Rules::only_largest`] and `TileGround`'s `plain` say where.
//! The naive twin in `trees/tests.rs` needs it too.

use super::hierarchy::Rank;
use super::measure::Metric;
use crate::world::WaterMask;
use glam::IVec2;
use std::sync::Arc;

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
    /// Where the sea is; everywhere without it.
    water: Option<Arc<WaterMask>>,
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
            water: None,
        }
    }

    /// The same rules where only what a mask says lies under the sea.
    pub fn with_water(self, water: Option<Arc<WaterMask>>) -> Self {
        Rules { water, ..self }
    }

    /// The same rules with other thresholds.
    pub fn with_thresholds(&self, thresholds: Vec<f64>) -> Self {
        Rules {
            sea: self.sea,
            water: self.water.clone(),
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

    /// Which samples of a rectangle the water mask keeps dry, row by row; empty where none does,
    /// or there is no sea.
    pub fn dry(&self, origin: IVec2, size: [u32; 2]) -> Vec<bool> {
        let mask = self.water.as_ref().filter(|_| self.sea.is_some());
        let dry = mask.map(|mask| mask.dry(origin.to_array(), size));
        dry.filter(|dry| dry.contains(&true)).unwrap_or_default()
    }

    /// Whether any triangle among rows of samples between the lowest and the highest can cross the
    /// shoreline; `dry` as above.
    pub fn is_coastal<'a>(
        &self,
        rows: impl Iterator<Item = &'a [i32]>,
        (low, high): (i32, i32),
        dry: &[bool],
    ) -> bool {
        let Some(sea) = self.sea else {
            return false;
        };
        if dry.is_empty() {
            return low <= sea && high > sea;
        }
        let mut shore = Shore::default();
        let mut dry = dry;
        for row in rows {
            let (dry_here, rest) = dry.split_at(row.len());
            shore.add(row, sea, Some(dry_here));
            dry = rest;
        }
        shore.is_crossed()
    }
}

/// On which sides of the shoreline samples lie.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shore {
    in_water: bool,
    on_land: bool,
}

impl Shore {
    /// A run of samples, and which of them a water mask keeps dry.
    #[inline]
    pub fn add<H: Copy + PartialOrd>(&mut self, heights: &[H], sea: H, dry: Option<&[bool]>) {
        let Some(dry) = dry else {
            self.in_water |= heights.iter().any(|&height| height <= sea);
            self.on_land |= heights.iter().any(|&height| height > sea);
            return;
        };
        let is_water = |(&height, &dry): (&H, &bool)| height <= sea && !dry;
        self.in_water |= heights.iter().zip(dry).any(is_water);
        self.on_land |= !heights.iter().zip(dry).all(is_water);
    }

    /// Both together.
    pub fn and(self, other: Shore) -> Shore {
        Shore {
            in_water: self.in_water | other.in_water,
            on_land: self.on_land | other.on_land,
        }
    }

    /// Whether samples lie on both sides.
    pub fn is_crossed(self) -> bool {
        self.in_water && self.on_land
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_ground_that_the_mask_keeps_dry_is_land() {
        let crossed = |heights: &[i32], dry: Option<&[bool]>| {
            let mut shore = Shore::default();
            shore.add(heights, 5, dry);
            shore.is_crossed()
        };
        let (wet, dry) = (false, true);
        assert!(crossed(&[5, 6], None) && !crossed(&[5, 5], None) && !crossed(&[6], None));
        assert!(crossed(&[5, 6], Some(&[wet, wet])) && crossed(&[5, 4], Some(&[dry, wet])));
        assert!(!crossed(&[5, 6], Some(&[dry, wet])) && !crossed(&[], Some(&[])));
    }

    #[test]
    fn a_mask_that_is_white_round_a_tile_is_none_there() {
        let rules = |sea| {
            let mask = WaterMask::from_fn([20, 10], 0, |x, _| x > 4);
            Rules::new(Metric::Max, vec![1.0], sea).with_water(Some(Arc::new(mask)))
        };
        let square = |rules: &Rules, origin| rules.dry(origin, [3; 2]);
        assert!(square(&rules(Some(0.0)), IVec2::new(5, 5)).is_empty());
        let dry = square(&rules(Some(0.0)), IVec2::new(3, 5));
        assert_eq!(dry[..3], [true, true, false]);
        assert!(square(&rules(None), IVec2::new(3, 5)).is_empty());
        let kept = rules(Some(0.0)).with_thresholds(vec![2.0]);
        assert_eq!(square(&kept, IVec2::new(3, 5)), dry);
    }
}
