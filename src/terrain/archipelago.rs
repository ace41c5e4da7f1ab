//! The built-in world: an archipelago around one mountainous island.
//!
//! It is there so that the program shows something worth flying over before anyone has brought
//! data. Every height is a function of its place alone, in metres, so a coarser sampling of the
//! same extent is the same world, and rows can be made in any order.
//!
//! The ground is made in three strokes. The *lay* is large and smooth: how far inland a place is
//! (a union of warped ellipses and noise) and the great ridges (ridged multifractal, Musgrave, in
//! Ebert et al., 'Texturing and Modeling', chapter 16). The *shore* turns the distance inland into
//! beaches and cliffs. Last, the *carving* cuts gullies down the slopes of the mountains.
//!
//! Invariants: the sea is at 0; the border is sea, 60 m deep or more; the same arguments give the
//! same heights on every machine (see [`super::noise`] for what that forbids).

use std::f64::consts::TAU;

use super::noise::{
    direction, fractal, gradient_noise, gullies, hash, lerp, ridged, smooth_max, smoothstep,
    turned, unit, warp,
};
use glam::DVec2;

/// The seed of the world that opens when none is named: a chain of mountains, a long spit
/// of sand around a bay, islands on all sides.
pub const DEFAULT_SEED: u64 = 20;

/// This many metres off the shore of a lobe it counts no more.
const OPEN_SEA: f64 = 1300.0;

/// Lobes whose shores are this near to each other, in metres, flow together.
const JOIN: f64 = 600.0;

/// The ground of a world of `samples * samples` heights, one each `spacing_m` metres, in units of
/// `step_m` metres; row by row, so that rows can be made on all cores. Made for an extent of 16 km:
/// islands are laid out as fractions of the extent, hills and shores have their own size in metres.
pub struct Archipelago {
    islands: Islands,
    samples: u32,
    step_m: f64,
    spacing_m: f64,
}

impl Archipelago {
    /// `samples` is 2 or more.
    pub fn new(seed: u64, samples: u32, step_m: f64, spacing_m: f64) -> Self {
        let half = (samples - 1) as f64 * spacing_m * 0.5;
        Archipelago {
            islands: Islands::new(seed, half),
            samples,
            step_m,
            spacing_m,
        }
    }

    /// The heights of a row, from west to east.
    pub fn row(&self, row: u32) -> Vec<i32> {
        let height = |column: u32| {
            let p = DVec2::new(column as f64, row as f64) * self.spacing_m - self.islands.half;
            (self.islands.height(p) / self.step_m + 0.5).floor() as i32
        };
        (0..self.samples).map(height).collect()
    }
}

/// All that the ground depends on, besides the place.
struct Islands {
    seed: u64,
    /// Metres from the middle of the map to its edge.
    half: f64,
    lobes: Vec<Lobe>,
}

/// The large shapes at a place.
struct Lay {
    /// Metres inland, roughly; negative at sea.
    inland: f64,
    /// 0 flat to 1 mountains.
    relief: f64,
    /// The great ridges, about 0..1.
    crest: f64,
}

impl Islands {
    fn new(seed: u64, half: f64) -> Self {
        let mut lobes = main_island(seed, half);
        lobes.extend(small_islands(seed, half));
        Self { seed, half, lobes }
    }

    /// The seed of one of the noises that the world is made of.
    fn field(&self, number: i64) -> u64 {
        hash(number, -1, self.seed)
    }

    /// Metres above the sea.
    fn height(&self, p: DVec2) -> f64 {
        let lay = self.lay(p);
        let shore = 1.0 - smoothstep(50.0, 450.0, lay.inland.abs());
        if lay.inland < 0.0 && shore == 0.0 {
            return self.sea_floor(p, -lay.inland);
        }
        let beach = self.beach(p, &lay);
        let inland = lay.inland + shore * self.coves(p, beach);
        if inland <= 0.0 {
            return self.sea_floor(p, -inland) - shore * foot(-inland, beach);
        }
        self.coast(p, &lay, inland, beach) + self.highland(p, &lay, inland)
    }

    fn lay(&self, p: DVec2) -> Lay {
        let push = warp(p / 4200.0, 2, self.field(1));
        let (mut inland, relief) = self.union_of_lobes(p + push * 1100.0);
        let near = smoothstep(-0.75 * OPEN_SEA, 0.0, inland);
        inland += 540.0 * fractal(p / 2300.0, 3, 0.58, self.field(2));
        let mut crest = 0.0;
        if near > 0.0 {
            let push = push * 700.0 + warp(p / 1300.0, 1, self.field(3)) * 260.0;
            crest = ridged((turned(p) + push) / 3300.0, 3, self.field(4));
            // Ridges run out into capes, valleys drown into bays.
            inland += near * 850.0 * relief * (crest - 0.45);
        }
        let border = 0.86 * self.half - p.x.abs().max(p.y.abs());
        let inland = -smooth_max(-inland, -border, 500.0);
        Lay {
            inland,
            relief,
            crest,
        }
    }

    /// Metres inland of the nearest lobe, and the relief of those around.
    fn union_of_lobes(&self, p: DVec2) -> (f64, f64) {
        // The first weight keeps the quotient from jumping where no lobe is near.
        let (mut inland, mut relief, mut total) = (-OPEN_SEA, 0.0, 0.04);
        for lobe in &self.lobes {
            let Some(d) = lobe.inland(p) else { continue };
            inland = smooth_max(inland, d, JOIN);
            let near = (1.0 + d / OPEN_SEA).max(0.0);
            let weight = near * near * near * near;
            relief += weight * lobe.relief;
            total += weight;
        }
        (inland, relief / total)
    }

    /// What the coast is here: 0 a cliff, 1 a beach.
    fn beach(&self, p: DVec2, lay: &Lay) -> f64 {
        let kind = fractal(p / 2300.0, 2, 0.5, self.field(5)) + 0.35 * (1.0 - lay.relief);
        smoothstep(-0.06, 0.18, kind)
    }

    /// Metres by which the shore swings out; beaches swing less than cliffs.
    fn coves(&self, p: DVec2, beach: f64) -> f64 {
        let swing = lerp(190.0, 75.0, beach).min(0.025 * self.half);
        swing * fractal(p / 480.0, 3, 0.5, self.field(6))
    }

    /// The lowland: a step up from the sea on the cliffs' side, a slow rise on the beaches'.
    fn coast(&self, p: DVec2, lay: &Lay, inland: f64, beach: f64) -> f64 {
        let edge = 50.0 + 38.0 * gradient_noise(p / 900.0, self.field(7));
        let cliff = edge * (0.25 + 0.75 * lay.relief) * smoothstep(-5.0, 45.0, inland);
        lerp(cliff, sand(inland), beach)
    }

    /// What stands on the lowland: mountains with plateaus, gullies and rough ground, or dunes.
    fn highland(&self, p: DVec2, lay: &Lay, inland: f64) -> f64 {
        let mountain = self.with_plateaus(p, self.mountain(p, lay, inland));
        let worn = smoothstep(0.0, 110.0, mountain);
        let rough = 1.0 + fractal(p / 220.0, 3, 0.5, self.field(8));
        let ground = mountain + rough * lerp(2.5, 6.0, worn) * smoothstep(60.0, 260.0, inland);
        if worn == 0.0 {
            return ground;
        }
        let cut = worn * self.carving(p, self.mountain_slope(p, lay));
        ground + smooth_max(cut, -0.5 * mountain, 0.5 * mountain)
    }

    fn mountain(&self, p: DVec2, lay: &Lay, inland: f64) -> f64 {
        let d = (inland - 40.0).max(0.0);
        if d == 0.0 {
            return 0.0;
        }
        let rise = (d * d / (d + 220.0) / 1700.0).min(1.15);
        let hills = 115.0 + 115.0 * fractal(p / 1100.0, 2, 0.5, self.field(9));
        let peaks = 600.0 * lay.crest * lay.crest * (0.5 + 0.5 * rise);
        lay.relief * rise * (peaks + 400.0 * lay.crest + hills)
    }

    /// The slope of the mountains without their small shapes, over some tens of metres.
    fn mountain_slope(&self, p: DVec2, lay: &Lay) -> DVec2 {
        const APART: f64 = 40.0;
        let here = self.mountain(p, lay, lay.inland);
        let rise = |p: DVec2| {
            let lay = self.lay(p);
            self.mountain(p, &lay, lay.inland) - here
        };
        DVec2::new(rise(p + DVec2::X * APART), rise(p + DVec2::Y * APART)) / APART
    }

    /// Steps in the lower mountains of some parts of the world.
    fn with_plateaus(&self, p: DVec2, ground: f64) -> f64 {
        const STEP: f64 = 170.0;
        let amount = smoothstep(0.05, 0.3, gradient_noise(p / 3400.0, self.field(10)))
            * smoothstep(60.0, 150.0, ground)
            * (1.0 - smoothstep(300.0, 520.0, ground));
        let level = (ground / STEP).floor();
        let within = ground / STEP - level;
        let stepped = level + 0.35 * within + 0.65 * smoothstep(0.35, 1.0, within);
        lerp(ground, STEP * stepped, amount)
    }

    /// Gullies down a slope, each octave down the slopes that the one before has left.
    fn carving(&self, p: DVec2, mut slope: DVec2) -> f64 {
        let (mut sum, mut wavelength, mut depth) = (0.0, 1350.0, 0.13);
        for octave in 0..5 {
            let steep = (slope.length_squared() + 1e-6).sqrt();
            let strength = wavelength * depth * steep * steep / (steep * steep + 0.16);
            let (height, tilt) = gullies(p / wavelength, slope / steep, self.field(16 + octave));
            sum += strength * (height - 0.2);
            slope += tilt * (strength * TAU / wavelength);
            wavelength *= 0.5;
            depth *= 0.9;
        }
        sum
    }

    /// The floor, `out` metres off the shore: a shelf, then a plain that hardly undulates.
    fn sea_floor(&self, p: DVec2, out: f64) -> f64 {
        let deep = smoothstep(0.0, 0.15 * self.half, out);
        let plain = 14.0 * gradient_noise(p / 2200.0, self.field(11)) - 135.0;
        deep * plain - 0.006 * out.min(600.0)
    }
}

/// A beach's profile: 4.5 m over 200 m, half of it under water.
fn sand(inland: f64) -> f64 {
    4.5 * smoothstep(-100.0, 100.0, inland) - 2.25
}

/// How deep the water is at once, `out` metres off a shore: much under cliffs.
fn foot(out: f64, beach: f64) -> f64 {
    lerp(20.0 * smoothstep(-5.0, 60.0, out), sand(out), beach)
}

/// An ellipse of land; the islands are unions of them.
struct Lobe {
    centre: DVec2,
    /// The unit vector of the long axis.
    along: DVec2,
    /// Half of the short axis, metres.
    radius: f64,
    /// Long axis over short axis.
    stretch: f64,
    /// How high its ground may go, 0 (a sand bank) to 1 (mountains).
    relief: f64,
}

impl Lobe {
    /// Metres inland, roughly; negative at sea, none where the lobe no longer counts.
    fn inland(&self, p: DVec2) -> Option<f64> {
        let v = p - self.centre;
        let across = DVec2::new(-self.along.y, self.along.x);
        let round = DVec2::new(v.dot(self.along) / self.stretch, v.dot(across));
        let reach = self.radius + OPEN_SEA + JOIN;
        let counts = round.length_squared() < reach * reach;
        counts.then(|| self.radius - round.length())
    }
}

/// A bent chain of lobes through the middle of the map.
fn main_island(seed: u64, half: f64) -> Vec<Lobe> {
    let heading = direction(hash(0, 0, seed));
    let bend = DVec2::new(-heading.y, heading.x) * (0.10 + 0.14 * unit(hash(1, 0, seed)));
    let lobe = |i: i64| {
        let t = i as f64 / 2.0 - 1.0;
        let h = hash(2, i, seed);
        let jitter = direction(h) * 0.06;
        Lobe {
            centre: (heading * (0.40 * t) + bend * (1.4 * t * t - 0.7) + jitter) * half,
            along: direction(h >> 8),
            radius: (0.19 + 0.09 * unit(h) - 0.05 * t * t) * half,
            stretch: 1.0 + 0.5 * unit(h << 20),
            relief: 1.0,
        }
    };
    (0..5).map(lobe).collect()
}

/// Sand banks and hilly islands all round, some of which touch the main one.
fn small_islands(seed: u64, half: f64) -> Vec<Lobe> {
    let lobe = |i: i64| {
        let (h, g) = (hash(3, i, seed), hash(4, i, seed));
        let from_middle = direction(i as u64) * (0.50 + 0.28 * unit(h));
        Lobe {
            centre: (from_middle + direction(h) * 0.09) * half,
            along: direction(h >> 8),
            radius: (0.025 + 0.1 * unit(h << 24) * unit(g << 24)) * half,
            stretch: 1.0 + 1.2 * unit(g << 20),
            relief: if g & 1 == 0 {
                0.04
            } else {
                0.45 + 0.5 * unit(g)
            },
        }
    };
    (0..16).map(lobe).collect()
}

#[cfg(test)]
mod tests {
    use super::super::height_map::HeightMap;
    use super::*;

    const STEP: f64 = 1.0 / 64.0;

    fn archipelago(seed: u64, samples: u32, step_m: f64, spacing_m: f64) -> HeightMap {
        let ground = Archipelago::new(seed, samples, step_m, spacing_m);
        let heights = (0..samples).flat_map(|row| ground.row(row)).collect();
        HeightMap {
            width: samples,
            height: samples,
            heights,
        }
    }

    /// The default world at a quarter of its samples a side.
    fn reduced() -> HeightMap {
        archipelago(DEFAULT_SEED, 513, STEP, 32.0)
    }

    fn metres(map: &HeightMap, x: i64, z: i64) -> f64 {
        map.at(x, z) as f64 * STEP
    }

    /// Height and steepest slope to a neighbour, in metres, at every sample.
    fn ground(map: &HeightMap, spacing_m: f64) -> Vec<(f64, f64)> {
        let side = map.width as i64;
        let at = |x, z| metres(map, x, z);
        let sample = |i: i64| {
            let (x, z) = (i % side, i / side);
            let around = [at(x + 1, z), at(x - 1, z), at(x, z + 1), at(x, z - 1)];
            let steepest = around.map(|h| (h - at(x, z)).abs());
            (
                at(x, z),
                steepest.into_iter().fold(0.0, f64::max) / spacing_m,
            )
        };
        (0..side * side).map(sample).collect()
    }

    /// Pinned, because worlds compiled on two machines must be equal, and because published
    /// pictures and numbers are of this world: a change here is a change of the world.
    #[test]
    fn heights_are_the_same_everywhere() {
        let map = archipelago(DEFAULT_SEED, 129, STEP, 128.0);
        let fold = |sum: u64, h: &i32| (sum ^ *h as u32 as u64).wrapping_mul(0x0100_0000_01b3);
        let sum = map.heights.iter().fold(0xcbf2_9ce4_8422_2325, fold);
        assert_eq!(sum, 0xf393_861e_0f73_c622);
    }

    #[test]
    fn a_seed_is_a_world_at_any_sampling() {
        let fine = archipelago(3, 129, STEP, 128.0);
        let coarse = archipelago(3, 65, STEP, 256.0);
        let every_other = (0..65 * 65).map(|i| fine.at(i % 65 * 2, i / 65 * 2));
        assert_eq!(coarse.heights, every_other.collect::<Vec<i32>>());
        assert_ne!(coarse, archipelago(4, 65, STEP, 256.0));
    }

    #[test]
    fn the_border_is_sea_at_any_extent() {
        for (seed, spacing_m) in [(DEFAULT_SEED, 128.0), (1, 128.0), (2, 8.0), (3, 1024.0)] {
            let map = archipelago(seed, 129, STEP, spacing_m);
            for i in 0..129 {
                for (x, z) in [(i, 0), (i, 128), (0, i), (128, i)] {
                    assert!(metres(&map, x, z) <= -60.0, "seed {seed} at {x}, {z}");
                }
            }
        }
    }

    #[test]
    fn mountains_land_and_sea_are_in_proportion() {
        let map = reduced();
        let (low, high) = map.range();
        assert!((1100.0..1400.0).contains(&(high as f64 * STEP)));
        assert!((-170.0..-130.0).contains(&(low as f64 * STEP)));
        let land = map.heights.iter().filter(|h| **h > 0).count() as f64;
        let share = land / map.heights.len() as f64;
        assert!((0.20..0.45).contains(&share), "{share}");
    }

    #[test]
    fn coasts_are_beaches_and_cliffs() {
        let ground = ground(&reduced(), 32.0);
        let beach = ground
            .iter()
            .filter(|(h, s)| (-1.0..4.0).contains(h) && *s < 0.1);
        let cliff = ground
            .iter()
            .filter(|(h, s)| (-20.0..20.0).contains(h) && *s > 0.8);
        assert!(beach.count() > 2000);
        assert!(cliff.count() > 300);
    }

    /// A floor that undulates much costs triangles that nobody sees.
    #[test]
    fn the_deep_sea_is_smooth() {
        let ground = ground(&reduced(), 32.0);
        let deep: Vec<f64> = ground
            .iter()
            .filter(|(h, _)| *h < -120.0)
            .map(|g| g.1)
            .collect();
        let mean = deep.iter().sum::<f64>() / deep.len() as f64;
        assert!(deep.len() > 80_000, "{}", deep.len());
        assert!(mean < 0.03, "{mean}");
    }
}
