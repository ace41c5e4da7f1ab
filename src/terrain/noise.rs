//! Noise over a plane, equal to the last bit on every machine.
//!
//! A world that is compiled on two machines must be one world, so nothing here asks a maths
//! library: only `+ - * /`, `sqrt`, `floor` and comparisons of `f64`, which IEEE 754 rounds in
//! one way, and integer hashes of lattice places.
//!
//! Invariants: no state; every function is continuous; positions have no unit (callers divide
//! metres by a wavelength); [`gradient_noise`] stays within -1..1 and is 0 on average.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};
use std::ops::{Add, Mul, Sub};

use glam::DVec2;

/// Sines of multiples of 22.5 degrees.
const S1: f64 = 0.382_683_432_365_089_8;
const S2: f64 = FRAC_1_SQRT_2;
const S3: f64 = 0.923_879_532_511_286_7;

/// Sixteen directions, east first, turning south.
const DIRECTIONS: [DVec2; 16] = [
    DVec2::new(1.0, 0.0),
    DVec2::new(S3, S1),
    DVec2::new(S2, S2),
    DVec2::new(S1, S3),
    DVec2::new(0.0, 1.0),
    DVec2::new(-S1, S3),
    DVec2::new(-S2, S2),
    DVec2::new(-S3, S1),
    DVec2::new(-1.0, 0.0),
    DVec2::new(-S3, -S1),
    DVec2::new(-S2, -S2),
    DVec2::new(-S1, -S3),
    DVec2::new(0.0, -1.0),
    DVec2::new(S1, -S3),
    DVec2::new(S2, -S2),
    DVec2::new(S3, -S1),
];

/// A direction out of sixteen, by the low bits of a hash.
#[inline]
pub fn direction(hash: u64) -> DVec2 {
    DIRECTIONS[(hash & 15) as usize]
}

/// A number in 0..1 from the high bits of a hash.
pub fn unit(hash: u64) -> f64 {
    (hash >> 40) as f64 / (1u64 << 24) as f64
}

/// Well mixed bits for a lattice place (odd multipliers, then xorshift, multiply, xorshift).
#[inline]
pub fn hash(x: i64, z: i64, seed: u64) -> u64 {
    let place = (x as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (z as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
    let h = place ^ seed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let h = (h ^ h >> 32).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ h >> 32
}

/// 0 below `low`, 1 above `high`, a cubic between.
pub fn smoothstep(low: f64, high: f64, x: f64) -> f64 {
    let t = ((x - low) / (high - low)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// The whole number below; quicker than a call to the maths library where the CPU lacks one.
#[inline]
fn floor(x: f64) -> i64 {
    let whole = x as i64;
    whole - (x < whole as f64) as i64
}

/// From `a` at 0 to `b` at 1.
pub fn lerp(a: f64, b: f64, t: f64) -> f64 {
    a + (b - a) * t
}

/// The larger of two, rounded off where they differ by less than `k`.
#[inline]
pub fn smooth_max(a: f64, b: f64, k: f64) -> f64 {
    let t = (k - (a - b).abs()).max(0.0);
    a.max(b) + t * t * (0.25 / k)
}

/// The lattice square around a point.
struct Cell {
    x: i64,
    z: i64,
    /// The point in the square, 0..1.
    within: DVec2,
}

impl Cell {
    #[inline]
    fn around(p: DVec2) -> Self {
        let (x, z) = (floor(p.x), floor(p.y));
        Self {
            x,
            z,
            within: p - DVec2::new(x as f64, z as f64),
        }
    }

    /// The hash of a lattice point and the way from it to the point.
    #[inline]
    fn corner(&self, dx: i64, dz: i64, seed: u64) -> (u64, DVec2) {
        let way = self.within - DVec2::new(dx as f64, dz as f64);
        (hash(self.x + dx, self.z + dz, seed), way)
    }

    /// Between the values at the north-west, north-east, south-west and south-east corners, by
    /// Perlin's quintic.
    #[inline]
    fn blend<T>(&self, corners: [T; 4]) -> T
    where
        T: Copy + Add<Output = T> + Sub<Output = T> + Mul<f64, Output = T>,
    {
        let fade = |t: f64| t * t * t * (t * (t * 6.0 - 15.0) + 10.0);
        let (x, z) = (fade(self.within.x), fade(self.within.y));
        let north = corners[0] + (corners[1] - corners[0]) * x;
        let south = corners[2] + (corners[3] - corners[2]) * x;
        north + (south - north) * z
    }
}

/// Gradient noise after Perlin, 'Improving Noise' (2002), with sixteen gradients.
#[inline]
pub fn gradient_noise(p: DVec2, seed: u64) -> f64 {
    let cell = Cell::around(p);
    let corner = |dx, dz| {
        let (hash, way) = cell.corner(dx, dz, seed);
        direction(hash).dot(way)
    };
    SQRT_2 * cell.blend([corner(0, 0), corner(1, 0), corner(0, 1), corner(1, 1)])
}

/// Turned by the angle of a 3-4-5 triangle, which no number of turns brings back to an axis.
pub fn turned(p: DVec2) -> DVec2 {
    DVec2::new(0.8 * p.x - 0.6 * p.y, 0.6 * p.x + 0.8 * p.y)
}

/// The same point on the lattice of the next octave: twice as fine, turned and shifted, so that
/// the lattices of the octaves never line up.
fn next_octave(p: DVec2) -> DVec2 {
    turned(p) * 2.0 + DVec2::new(17.3, -9.7)
}

/// Octaves of gradient noise, each `gain` times as high as the one before; the first has 1.
pub fn fractal(mut p: DVec2, octaves: u32, gain: f64, seed: u64) -> f64 {
    let (mut sum, mut amplitude) = (0.0, 1.0);
    for octave in 0..octaves {
        sum += amplitude * gradient_noise(p, seed.wrapping_add(octave as u64));
        amplitude *= gain;
        p = next_octave(p);
    }
    sum
}

/// Two independent fractals of gain 0.5, to push a point about; both from one set of hashes.
pub fn warp(mut p: DVec2, octaves: u32, seed: u64) -> DVec2 {
    let (mut sum, mut amplitude) = (DVec2::ZERO, 1.0);
    for octave in 0..octaves {
        let cell = Cell::around(p);
        let seed = seed.wrapping_add(octave as u64);
        let corner = |dx, dz| {
            let (hash, way) = cell.corner(dx, dz, seed);
            DVec2::new(direction(hash).dot(way), direction(hash >> 4).dot(way))
        };
        let corners = [corner(0, 0), corner(1, 0), corner(0, 1), corner(1, 1)];
        sum += amplitude * cell.blend(corners);
        amplitude *= 0.5;
        p = next_octave(p);
    }
    sum * SQRT_2
}

/// Ridged multifractal: Musgrave, in Ebert et al., 'Texturing and Modeling', chapter 16.
/// Crests where the noise crosses zero; each octave is weighted by the one before, so that valleys
/// stay smooth. The crests are rounded off a little, the small ones more, so that the slope does
/// not jump there. About 0..1.
pub fn ridged(mut p: DVec2, octaves: u32, seed: u64) -> f64 {
    let mut round = 0.1;
    let (mut sum, mut amplitude, mut weight, mut total) = (0.0, 1.0, 1.0, 0.0);
    for octave in 0..octaves {
        let noise = gradient_noise(p, seed.wrapping_add(octave as u64));
        let crest = 1.0 - ((noise * noise + round * round).sqrt() - round);
        let signal = crest * crest * weight;
        sum += amplitude * signal;
        total += amplitude;
        round *= 1.6;
        weight = (signal * 1.6).clamp(0.0, 1.0);
        amplitude *= 0.5;
        p = next_octave(p);
    }
    sum / total
}

/// Likenesses of cosine and sine with period 1, made of cubics.
#[inline]
fn wave(x: f64) -> (f64, f64) {
    let turn = x - floor(x + 0.5) as f64;
    let cubic = |u: f64| u * (1.5 - 0.5 * u * u);
    let cosine = cubic(1.0 - 4.0 * turn.abs());
    let sine = cubic(1.0 - 4.0 * (turn.abs() - 0.25).abs()).copysign(turn);
    (cosine, sine)
}

/// Stripes that run along `fall` (a unit vector), one wave per unit: the height of the wave and
/// its slope across. Waves around jittered lattice points, blended by a kernel of compact support;
/// after Johansen, 'Fast and Gorgeous Erosion Filter' (2025), and John's noise it builds on.
pub fn gullies(p: DVec2, fall: DVec2, seed: u64) -> (f64, DVec2) {
    const REACH: f64 = 1.25;
    let across = DVec2::new(-fall.y, fall.x);
    let cell = Cell::around(p);
    let (mut height, mut slope, mut total) = (0.0, 0.0, 0.0);
    for dz in -1..=1 {
        for dx in -1..=1 {
            let (hash, way) = cell.corner(dx, dz, seed);
            let jitter = DVec2::new(unit(hash), unit(hash << 24)) * 0.5 + 0.25;
            let v = way - jitter;
            let near = (1.0 - v.length_squared() / (REACH * REACH)).max(0.0);
            let weight = near * near * near;
            let (cosine, sine) = wave(v.dot(across));
            height += weight * cosine;
            slope -= weight * sine;
            total += weight;
        }
    }
    (height / total, across * (slope / total))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places that never fall on the lattice's own period.
    fn places() -> impl Iterator<Item = DVec2> {
        (0..20_000).map(|i| DVec2::new((i % 141) as f64 * 0.37, (i / 141) as f64 * 0.41) - 25.0)
    }

    #[test]
    fn gradient_noise_is_bounded_and_balanced() {
        let values: Vec<f64> = places().map(|p| gradient_noise(p, 7)).collect();
        assert!(values.iter().all(|v| v.abs() <= 1.0));
        assert!(values.iter().any(|v| *v > 0.6) && values.iter().any(|v| *v < -0.6));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.02, "{mean}");
    }

    #[test]
    fn ridges_stay_within_bounds() {
        assert!(
            places()
                .map(|p| ridged(p, 4, 7))
                .all(|v| (0.0..=1.2).contains(&v))
        );
    }

    #[test]
    fn nothing_jumps_at_the_lattice() {
        let step = DVec2::new(1e-7, 1e-7);
        for i in -40..40 {
            let p = DVec2::new(i as f64, i as f64 * 0.5) - step * 0.5;
            let jump = |f: &dyn Fn(DVec2) -> f64| (f(p + step) - f(p)).abs();
            assert!(jump(&|p| fractal(p, 4, 0.5, 3)) < 1e-5);
            assert!(jump(&|p| ridged(p, 4, 3)) < 1e-5);
            assert!(jump(&|p| warp(p, 2, 3).y) < 1e-5);
            assert!(jump(&|p| gullies(p, DVec2::X, 3).0) < 1e-5);
        }
    }

    #[test]
    fn gullies_run_down_the_slope() {
        let fall = DVec2::new(0.6, 0.8);
        let across = DVec2::new(-0.8, 0.6);
        let change = |way: DVec2| {
            let at = |p| gullies(p, fall, 5).0;
            places()
                .map(|p| (at(p + way * 0.05) - at(p)).abs())
                .sum::<f64>()
        };
        assert!(change(across) > 2.0 * change(fall));
    }

    #[test]
    fn floor_is_the_number_below() {
        for (x, below) in [
            (1.5, 1),
            (1.0, 1),
            (0.0, 0),
            (-0.5, -1),
            (-1.0, -1),
            (-1.5, -2),
        ] {
            assert_eq!(floor(x), below);
        }
    }

    #[test]
    fn smooth_max_rounds_only_near_the_tie() {
        assert_eq!(smooth_max(5.0, 1.0, 2.0), 5.0);
        assert_eq!(smooth_max(3.0, 3.0, 2.0), 3.5);
    }
}
