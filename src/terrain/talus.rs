//! Scree: no slope of a height map steeper than loose rock would lie.
//!
//! The result is the highest surface under the heights whose neighbours differ by no more than
//! the slope allows: the lower envelope of cones, by two sweeps over the map (Borgefors,
//! "Distance transformations in digital images", 1986). Integers, so the same on every machine.
//!
//! Generated ground gains from it: needles and sheer walls one sample wide look wrong and no
//! coarser lattice can follow them.

use super::height_map::HeightMap;

/// Lowers what stands steeper than `slope` (rise over run).
pub fn settle(map: &mut HeightMap, step_m: f64, spacing_m: f64, slope: f64) {
    let along = (slope * spacing_m / step_m).floor().max(1.0) as i32;
    let across = (slope * spacing_m * std::f64::consts::SQRT_2 / step_m)
        .floor()
        .max(1.0) as i32;
    let (width, height) = (map.width as usize, map.height as usize);
    for z in 0..height {
        for x in 0..width {
            lower(map, (x, z), along, across, -1);
        }
    }
    for z in (0..height).rev() {
        for x in (0..width).rev() {
            lower(map, (x, z), along, across, 1);
        }
    }
}

/// Lowers a sample to what the neighbours that were swept before it allow.
fn lower(map: &mut HeightMap, (x, z): (usize, usize), along: i32, across: i32, back: isize) {
    let swept = [
        (back, 0, along),
        (0, back, along),
        (back, back, across),
        (-back, back, across),
    ];
    let mut height = map.heights[z * map.width as usize + x];
    for (dx, dz, rise) in swept {
        let place = x.checked_add_signed(dx).zip(z.checked_add_signed(dz));
        if let Some((nx, nz)) =
            place.filter(|&(nx, nz)| nx < map.width as usize && nz < map.height as usize)
        {
            height = height.min(map.heights[nz * map.width as usize + nx] + rise);
        }
    }
    map.heights[z * map.width as usize + x] = height;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_steeper_and_nothing_is_raised() {
        let heights = (0..40 * 30).map(|i| (i * 7919 % 1000) * (i % 7)).collect();
        let before = HeightMap {
            width: 40,
            height: 30,
            heights,
        };
        let mut after = before.clone();
        settle(&mut after, 0.5, 10.0, 1.0);
        let mut touched = 0;
        for z in 0..30i64 {
            for x in 0..40i64 {
                let height = after.at(x, z);
                assert!(height <= before.at(x, z));
                assert!(
                    (height - after.at(x + 1, z)).abs() <= 20
                        && (height - after.at(x, z + 1)).abs() <= 20
                );
                touched += (height < before.at(x, z)) as u32;
            }
        }
        assert!(touched > 100);
    }

    #[test]
    fn gentle_ground_stays_as_it_is() {
        let before = HeightMap {
            width: 20,
            height: 20,
            heights: (0..400).map(|i| (i % 20) * 9).collect(),
        };
        let mut after = before.clone();
        settle(&mut after, 1.0, 10.0, 1.0);
        assert_eq!(after, before);
    }
}
