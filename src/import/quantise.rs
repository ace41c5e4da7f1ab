//! Which height step a source gets.
//!
//! The world keeps integers. Integer sources keep theirs; floats get a power of two, so that
//! whole metres stay exact.
//!
//! - Heights lie within ±[`MAX_UNITS`] steps, or the error says which step would do.

use std::path::Path;

use super::MAX_UNITS;
use crate::error::{Error, Result};

const COARSEST_FLOAT_STEP_M: f64 = 1.0 / 64.0;
/// About two nanometres: a world's facts admit nothing finer.
const FINEST_STEP_LOG2: f64 = -29.0;

/// 65,536 steps over the range, no coarser than 1/64 m, but coarse enough to hold the heights.
pub(super) fn float_step(min_m: f64, max_m: f64) -> f64 {
    let range = max_m - min_m;
    if range <= 0.0 {
        return COARSEST_FLOAT_STEP_M;
    }
    let exponent = (range / 65_536.0).log2().floor().max(FINEST_STEP_LOG2);
    let mut step = exponent.exp2().min(COARSEST_FLOAT_STEP_M);
    while step < COARSEST_FLOAT_STEP_M && !fits(min_m, max_m, step) {
        step *= 2.0;
    }
    step
}

fn fits(min_m: f64, max_m: f64, step_m: f64) -> bool {
    (min_m.abs().max(max_m.abs()) / step_m).round() <= f64::from(MAX_UNITS)
}

pub(super) fn check_range(path: &Path, min_m: f64, max_m: f64, step_m: f64) -> Result<()> {
    if fits(min_m, max_m, step_m) {
        return Ok(());
    }
    let largest = min_m.abs().max(max_m.abs());
    let enough = (largest / f64::from(MAX_UNITS)).log2().ceil().exp2();
    Err(Error::file(
        path,
        format!(
            "heights from {min_m} to {max_m} m are more than {MAX_UNITS} steps of {step_m} m from 0"
        ),
        format!("--height-step {enough} or larger"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_steps_follow_range_and_reach() {
        assert_eq!(float_step(5.0, 5.0), 1.0 / 64.0);
        assert_eq!(float_step(0.0, 4000.0), 1.0 / 64.0);
        assert_eq!(float_step(0.0, 512.0), 1.0 / 128.0);
        assert_eq!(float_step(0.0, 1.0), 1.0 / 65_536.0);
        assert!(float_step(0.0, 1e-12) > 1e-9);
        // Half a metre high up: 65,536 steps would need 29 bits a height.
        let step = float_step(4000.0, 4000.5);
        assert!(fits(4000.0, 4000.5, step) && !fits(4000.0, 4000.5, step / 2.0));
    }
}
