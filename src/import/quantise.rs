//! Which height step a source gets.
//!
//! The world keeps integers. Integer sources keep theirs; floats get a power of two, so that
//! whole metres stay exact.
//!
//! - Heights lie within so many steps as there is room for, or the error says which step would do.

use std::path::Path;

use super::MAX_UNITS;
use super::lint::Warning;
use crate::error::{Error, Result};

const COARSEST_FLOAT_STEP_M: f64 = 1.0 / 64.0;
/// About two nanometres: a world's facts admit nothing finer.
const FINEST_STEP_LOG2: f64 = -29.0;
/// What leaves more room for heights.
const MORE_ROOM: &str = "a smaller --patch-cells or --lattice-bias";

/// 65,536 steps over the range, no coarser than 1/64 m, but coarse enough to hold the heights.
///
/// Where there is less room than [`MAX_UNITS`], steps may be so much coarser: what is higher than
/// the usual 65 km is a mistake under any options, and is left to [`check_range`].
pub(super) fn float_step(min_m: f64, max_m: f64, most_units: i32) -> f64 {
    let range = max_m - min_m;
    if range <= 0.0 && fits(min_m, max_m, COARSEST_FLOAT_STEP_M, most_units) {
        return COARSEST_FLOAT_STEP_M;
    }
    let exponent = (range / 65_536.0).log2().floor().max(FINEST_STEP_LOG2);
    let mut step = exponent.exp2().min(COARSEST_FLOAT_STEP_M);
    let less_room = f64::from(MAX_UNITS) / f64::from(most_units);
    let coarsest = COARSEST_FLOAT_STEP_M * less_room.log2().round().exp2();
    while step < coarsest && !fits(min_m, max_m, step, most_units) {
        step *= 2.0;
    }
    step
}

/// What to say of a step that is coarser than it would be with the usual room.
pub(super) fn coarse_step(min_m: f64, max_m: f64, step_m: f64) -> Option<Warning> {
    let usual = float_step(min_m, max_m, MAX_UNITS);
    (step_m > usual).then(|| {
        let text = format!(
            "heights are rounded to steps of {step_m} m instead of {usual} m, for which these patches have no room"
        );
        Warning::new("height step", text, MORE_ROOM)
    })
}

fn fits(min_m: f64, max_m: f64, step_m: f64, most_units: i32) -> bool {
    (min_m.abs().max(max_m.abs()) / step_m).round() <= f64::from(most_units)
}

pub(super) fn check_range(
    path: &Path,
    [min_m, max_m]: [f64; 2],
    step_m: f64,
    most_units: i32,
) -> Result<()> {
    if !(1e-9..=1e9).contains(&step_m) {
        let what = format!("a unit of its heights is {step_m} m");
        let expected = "a nanometre to a million kilometres, or --height-scale M, --height-step M";
        return Err(Error::file(path, what, expected));
    }
    if fits(min_m, max_m, step_m, most_units) {
        return Ok(());
    }
    let largest = min_m.abs().max(max_m.abs());
    let enough = rounded_up(largest / f64::from(most_units));
    let or_else = match most_units {
        MAX_UNITS => String::new(),
        _ => format!(", or {MORE_ROOM}"),
    };
    Err(Error::file(
        path,
        format!(
            "heights from {min_m} to {max_m} m are more than {most_units} steps of {step_m} m from 0"
        ),
        format!("--height-step {enough} or larger{or_else}"),
    ))
}

/// A number above 0 that is no smaller and has three digits that count.
pub fn rounded_up(number: f64) -> f64 {
    let scale = 10f64.powf(2.0 - number.log10().floor());
    let rounded = (number * scale).ceil() / scale;
    // The division may round down.
    if rounded < number {
        rounded.next_up()
    } else {
        rounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_steps_follow_range_and_reach() {
        let float_step = |min_m, max_m| float_step(min_m, max_m, MAX_UNITS);
        let fits = |step| fits(4000.0, 4000.5, step, MAX_UNITS);
        assert_eq!(float_step(5.0, 5.0), 1.0 / 64.0);
        assert_eq!(float_step(0.0, 4000.0), 1.0 / 64.0);
        assert_eq!(float_step(0.0, 512.0), 1.0 / 128.0);
        assert_eq!(float_step(0.0, 1.0), 1.0 / 65_536.0);
        assert!(float_step(0.0, 1e-12) > 1e-9);
        // Half a metre high up: 65,536 steps would need 29 bits a height.
        let step = float_step(4000.0, 4000.5);
        assert!(fits(step) && !fits(step / 2.0));
    }

    #[test]
    fn with_less_room_a_float_step_is_coarser_and_that_is_said() {
        for most in [MAX_UNITS, MAX_UNITS / 2, (1 << 19) - 1, (1 << 18) - 1] {
            for [low, high] in [[-1.0, 9000.0], [4000.0, 4000.5], [-60_000.0, 3.0], [9e3; 2]] {
                let step = float_step(low, high, most);
                assert!(fits(low, high, step, most), "{low} to {high} in {most}");
                let usual = float_step(low, high, MAX_UNITS);
                assert!(step == usual || !fits(low, high, step / 2.0, most));
                let warning = coarse_step(low, high, step);
                assert_eq!(warning.is_some(), step > usual, "{warning:?}");
            }
            // An undeclared void, say.
            let step = float_step(-3e38, 5.0, most);
            let refused = check_range(Path::new("x.tif"), [-3e38, 5.0], step, most);
            assert!(refused.is_err());
        }
        assert_eq!(float_step(-1.0, 9000.0, (1 << 18) - 1), 1.0 / 16.0);
    }

    #[test]
    fn the_step_that_is_named_is_enough_and_hardly_more() {
        for (largest, most) in [(9000.0, (1 << 18) - 1), (5e6, MAX_UNITS), (3.33e7, 262_143)] {
            let refused = check_range(Path::new("x.tif"), [0.0, largest], 1e-4, most);
            let message = refused.unwrap_err().to_string();
            let step = message.split("--height-step ").nth(1).unwrap();
            let step: f64 = step.split(' ').next().unwrap().parse().unwrap();
            assert!(fits(0.0, largest, step, most), "{message}");
            assert!(!fits(0.0, largest, step / 1.0101, most), "{message}");
            assert_eq!(message.contains("--patch-cells"), most < MAX_UNITS);
        }
    }

    #[test]
    fn what_is_rounded_up_is_enough() {
        for error in [7.2512, 0.00123456, 10.0, 999.95, 34.375, 1e-9, 123456.7] {
            let rounded = rounded_up(error);
            assert!(
                rounded >= error && rounded <= error * 1.0101,
                "{rounded} of {error}"
            );
        }
        assert_eq!((rounded_up(7.2512), rounded_up(34.38)), (7.26, 34.4));
    }
}
