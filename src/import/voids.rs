//! Which samples have no height.
//!
//! Files say so in a dozen ways: a declared number, NaN, SRTM's -32768 that nobody declared.
//! All become NaN here, at the moment a sample is read, so that nothing later needs to know.
//!
//! - Zero is a height unless the file declares it void.
//! - Exactly -32768 is SRTM's void wherever samples have a sign, declared or not; every other
//!   number is a height unless it is declared void, however deep it lies.

use super::numbers::Number;

const SRTM_VOID: f64 = -32768.0;
/// Beyond it a number is a writer's 'largest float', not a height.
const ABSURD: f64 = 1e30;

/// Turns one sample of a file into a height or NaN.
#[derive(Clone, Copy, Debug)]
pub(super) struct VoidRule {
    declared: Option<f64>,
    signed: bool,
    /// Samples are 32-bit floats: the declared number is compared as one.
    single: bool,
}

impl VoidRule {
    pub fn signed(declared: Option<f64>) -> Self {
        VoidRule {
            declared,
            signed: true,
            single: false,
        }
    }

    pub fn unsigned(declared: Option<f64>) -> Self {
        VoidRule {
            signed: false,
            ..VoidRule::signed(declared)
        }
    }

    pub fn single(declared: Option<f64>) -> Self {
        VoidRule {
            single: true,
            ..VoidRule::signed(declared)
        }
    }

    pub fn apply(&self, sample: f64) -> f64 {
        let undeclared = self.signed && sample == SRTM_VOID || sample.abs() >= ABSURD;
        let declared = self.declared.is_some_and(|d| self.same(sample, d));
        if undeclared || declared {
            f64::NAN
        } else {
            sample
        }
    }

    /// The sample that a value is.
    pub fn sample<T: Number>(&self, value: f64) -> T {
        T::from_f64(self.apply(value))
    }

    /// The voids among integers of up to 16 bits; the same number twice where there is but one,
    /// and one that no such integer is where there is none.
    pub fn small_voids(&self) -> [i32; 2] {
        let small = |v: &f64| v.fract() == 0.0 && (-32_768.0..=65_535.0).contains(v);
        let declared = self.declared.filter(small).map(|v| v as i32);
        let undeclared = self.signed.then_some(SRTM_VOID as i32);
        let either = declared.or(undeclared).unwrap_or(i32::MIN);
        [either, undeclared.unwrap_or(either)]
    }

    fn same(&self, sample: f64, declared: f64) -> bool {
        if self.single {
            sample as f32 == declared as f32
        } else {
            sample == declared
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_srtm_void_needs_no_declaration() {
        assert!(VoidRule::signed(None).apply(-32768.0).is_nan());
        assert_eq!(VoidRule::signed(None).apply(-32767.0), -32767.0);
        assert_eq!(VoidRule::signed(None).apply(-40000.0), -40000.0);
        assert!(VoidRule::signed(Some(-32767.0)).apply(-32767.0).is_nan());
        assert_eq!(VoidRule::unsigned(None).apply(65535.0), 65535.0);
        assert!(VoidRule::single(None).apply(f64::from(f32::MAX)).is_nan());
    }

    #[test]
    fn zero_is_a_void_only_when_declared() {
        assert_eq!(VoidRule::single(None).apply(0.0), 0.0);
        assert!(VoidRule::single(Some(0.0)).apply(0.0).is_nan());
        assert!(VoidRule::unsigned(Some(0.0)).apply(0.0).is_nan());
    }

    #[test]
    fn single_floats_are_compared_as_such() {
        let sample = f64::from(-9999.9f32);
        assert!(VoidRule::single(Some(-9999.9)).apply(sample).is_nan());
        assert!(!VoidRule::signed(Some(-9999.9)).apply(sample).is_nan());
        // Written with too few digits: any absurd number is a void anyway.
        let lowest = f64::from(f32::MIN);
        assert!(VoidRule::single(Some(-3.402823e38)).apply(lowest).is_nan());
    }

    #[test]
    fn a_nan_is_a_void_whatever_is_declared() {
        assert!(VoidRule::single(Some(f64::NAN)).apply(f64::NAN).is_nan());
        assert_eq!(VoidRule::single(Some(f64::NAN)).apply(1.0), 1.0);
    }

    #[test]
    fn voids_of_small_integers_are_those_of_the_rule() {
        let rules = [
            None,
            Some(0.0),
            Some(-32768.0),
            Some(65_535.0),
            Some(0.5),
            Some(1e9),
        ];
        for rule in rules
            .iter()
            .flat_map(|d| [VoidRule::signed(*d), VoidRule::unsigned(*d)])
        {
            let voids = rule.small_voids();
            for value in [-32_768, -1, 0, 1, 65_535] {
                // Unsigned numbers are not below zero.
                if rule.signed || value >= 0 {
                    let naive = rule.apply(f64::from(value)).is_nan();
                    assert_eq!(voids.contains(&value), naive, "{rule:?} {value}");
                }
            }
        }
    }
}
