//! The chunk of the water mask: where ground at or below the sea level lies under water.
//!
//! One bit for each square of `2^s` samples, 1 where there may be water, `s` the least for which
//! there are at most [`MOST_SQUARES`] squares a side. Stored as coverage is: row by row from the
//! north-west, the first bit in the lowest one of the first byte, unused bits of the last byte 0.
//! It is the whole truth: compiler, checks and viewer all ask it and not the picture it came from.

use super::{Coverage, FormatError, Meta, coverage};

/// Most squares a side.
pub const MOST_SQUARES: u32 = 4096;

/// Where there may be water. Beyond the source there is some where all the mask's border is white,
/// as round an island.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaterMask {
    /// Of the source, columns and rows.
    samples: [u32; 2],
    /// A square is two to this samples wide.
    shift: u32,
    squares: Coverage,
}

/// How often squares of a single sample are doubled for a source of so many samples.
pub fn shift([columns, rows]: [u32; 2]) -> u32 {
    let most = columns.max(rows);
    (0..u32::BITS)
        .find(|&shift| count(most, shift) <= MOST_SQUARES)
        .expect("in the end one square is enough")
}

fn count(samples: u32, shift: u32) -> u32 {
    ((samples as u64 + (1 << shift) - 1) >> shift) as u32
}

impl WaterMask {
    /// Of a source of so many samples, in squares of `2^shift`; `is_water` says of each square,
    /// in squares from the north-west, whether it is white.
    pub fn from_fn(samples: [u32; 2], shift: u32, is_water: impl Fn(u32, u32) -> bool) -> Self {
        let size = samples.map(|samples| count(samples, shift));
        WaterMask {
            samples,
            shift,
            squares: Coverage::from_fn(size, is_water),
        }
    }

    /// Columns and rows of the source.
    pub fn samples(&self) -> [u32; 2] {
        self.samples
    }

    /// Samples along a square's side.
    pub fn square_samples(&self) -> u32 {
        1 << self.shift
    }

    /// Columns and rows of squares.
    pub fn size(&self) -> [u32; 2] {
        [self.squares.width, self.squares.height]
    }

    pub fn is_white(&self, square: [u32; 2]) -> bool {
        self.squares.is_present(square[0], square[1])
    }

    /// Whether there is no water anywhere.
    pub fn is_black(&self) -> bool {
        self.squares.count() == 0
    }

    /// White squares of all.
    pub fn share(&self) -> f64 {
        let [width, height] = self.size().map(f64::from);
        self.squares.count() as f64 / (width * height)
    }

    /// Of a rectangle of samples: which the mask keeps dry, row by row.
    pub fn dry(&self, origin: [i32; 2], [width, height]: [u32; 2]) -> Vec<bool> {
        let square = |sample: i32, axis: usize| {
            let last = self.samples[axis] as i64 - 1;
            ((sample as i64).clamp(0, last) >> self.shift) as u32
        };
        let columns: Vec<u32> = (origin[0]..origin[0] + width as i32)
            .map(|x| square(x, 0))
            .collect();
        let rows = (origin[1]..origin[1] + height as i32).map(|z| square(z, 1));
        rows.flat_map(|z| columns.iter().map(move |&x| !self.is_white([x, z])))
            .collect()
    }

    /// What a viewer draws: cells between the middles of four squares, each with water where one
    /// of the four is white, so that no shore that lies between two samples is cut off; corners are
    /// rounded by blending. At least one a side.
    pub fn cells(&self) -> Coverage {
        self.squares.cells()
    }

    /// Whether there is water beyond the source.
    pub fn goes_on(&self) -> bool {
        let [columns, rows] = self.size();
        let is_row_white = |z| (0..columns).all(|x| self.is_white([x, z]));
        let is_column_white = |x| (0..rows).all(|z| self.is_white([x, z]));
        [0, rows - 1].into_iter().all(is_row_white)
            && [0, columns - 1].into_iter().all(is_column_white)
    }

    /// Whether a viewer draws water at a position in samples.
    pub fn reaches(&self, x: f64, z: f64) -> bool {
        let is_beyond = |at: f64, samples: u32| !(0.0..=samples as f64 - 1.0).contains(&at);
        if is_beyond(x, self.samples[0]) || is_beyond(z, self.samples[1]) {
            return self.goes_on();
        }
        // Between the middles of cells the viewer blends; from a half on it is water.
        let place = |sample: f64, axis: usize| {
            let cells = (sample + 0.5) / self.square_samples() as f64 - 1.0;
            let last = self.size()[axis].saturating_sub(2) as f64;
            let cells = cells.clamp(0.0, last);
            let low = cells.floor().min((last - 1.0).max(0.0));
            (low, (low + 1.0).min(last), cells - low)
        };
        let (x, z) = (place(x, 0), place(z, 1));
        let wet = |x: f64, z: f64| self.squares.any_of_four([x as u32, z as u32]) as u8 as f64;
        let row = |z: f64| wet(x.0, z) * (1.0 - x.2) + wet(x.1, z) * x.2;
        row(z.0) * (1.0 - z.2) + row(z.1) * z.2 >= 0.5
    }

    /// The same water in no more than `most` squares a side: of four that become one, it is white
    /// where one of them is.
    pub fn within(&self, most: u32) -> WaterMask {
        let mut mask = self.clone();
        while mask.squares.width.max(mask.squares.height) > most.max(1) {
            let fine = mask.squares;
            let size = [fine.width, fine.height].map(|squares| squares.div_ceil(2));
            mask.squares = Coverage::from_fn(size, |x, z| {
                let four =
                    [[0, 0], [1, 0], [0, 1], [1, 1]].map(|[dx, dz]| [2 * x + dx, 2 * z + dz]);
                let inside = |[x, z]: &[u32; 2]| *x < fine.width && *z < fine.height;
                four.iter()
                    .any(|at| inside(at) && fine.is_present(at[0], at[1]))
            });
            mask.shift += 1;
        }
        mask
    }

    pub fn encode(&self) -> Vec<u8> {
        self.squares.encode()
    }

    /// The mask of a source of so many samples.
    pub fn decode(bytes: &[u8], samples: [u32; 2]) -> Result<Self, FormatError> {
        let shift = shift(samples);
        let size = samples.map(|samples| count(samples, shift));
        Ok(WaterMask {
            samples,
            shift,
            squares: Coverage::decode(bytes, size)?,
        })
    }
}

/// Bytes of the chunk of a source of so many samples, before compression.
pub fn stored_bytes(samples: [u32; 2]) -> usize {
    let shift = shift(samples);
    coverage::stored_bytes(samples.map(|samples| count(samples, shift)))
}

/// A height of the ground at a position in samples, or the sea's where that stands over it.
pub fn surface_m(meta: &Meta, water: Option<&WaterMask>, [x, z]: [f64; 2], ground_m: f64) -> f64 {
    let is_water = water.is_none_or(|mask| mask.reaches(x, z));
    let sea_m = meta.sea_level_m.filter(|_| is_water);
    sea_m.map_or(ground_m, |sea_m| sea_m.max(ground_m))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn coarser_squares_are_water_where_a_finer_one_is() {
        let wet = |x: u32, z: u32| x * 7 % 5 == 3 && z * 3 % 7 < 2 || x == 40;
        let fine = WaterMask::from_fn([41, 30], 0, wet);
        let coarse = fine.within(11);
        assert_eq!((coarse.size(), coarse.square_samples()), ([11, 8], 4));
        for (x, z) in (0..8).flat_map(|z| (0..11).map(move |x| (x, z))) {
            let inside = |x: u32, z: u32| x < 41 && z < 30;
            let any = (0..16).any(|i| {
                let (x, z) = (4 * x + i % 4, 4 * z + i / 4);
                inside(x, z) && wet(x, z)
            });
            assert_eq!(coarse.is_white([x, z]), any, "{x}, {z}");
        }
        assert_eq!(fine.within(41), fine);
    }

    #[test]
    fn squares_are_as_small_as_the_limit_allows() {
        let squares = |samples: u32| count(samples, shift([samples, 5]));
        assert_eq!((shift([4096, 4096]), shift([4097, 2])), (0, 1));
        assert_eq!((shift([3, 8193]), shift([8192, 8192])), (2, 1));
        assert_eq!(
            (squares(4096), squares(4097), squares(8193)),
            (4096, 2049, 2049)
        );
        assert!(squares(u32::MAX) <= MOST_SQUARES);
    }

    #[test]
    fn samples_are_dry_where_their_square_is_black() {
        // Squares of two samples over five by three: the last ones are cut.
        let mask = WaterMask::from_fn([5, 3], 1, |x, z| (x, z) == (1, 0) || (x, z) == (2, 1));
        assert_eq!((mask.size(), mask.share()), ([3, 2], 1.0 / 3.0));
        let row = |z| mask.dry([-1, z], [8, 1]);
        let (o, x) = (false, true);
        assert_eq!(row(-4), [x, x, x, o, o, x, x, x]);
        assert_eq!(row(1), row(-4));
        assert_eq!(row(2), [x, x, x, x, x, o, o, o]);
        assert_eq!(
            mask.dry([0, 0], [5, 3]),
            [&row(0)[1..6], &row(1)[1..6], &row(2)[1..6]].concat()
        );
    }

    #[test]
    fn water_is_drawn_as_far_as_the_middles_of_the_squares_round_it() {
        let mask = WaterMask::from_fn([6, 6], 0, |x, z| (x, z) == (2, 3));
        assert!(mask.reaches(1.01, 3.0) && mask.reaches(2.0, 3.99));
        // Corners are rounded.
        assert!(mask.reaches(1.3, 2.3) && !mask.reaches(1.01, 2.01));
        assert!(!mask.reaches(0.99, 3.0) && !mask.reaches(3.01, 3.0) && !mask.reaches(2.0, 4.01));
        let cells = mask.cells();
        let wet = |x: u32, z: u32| cells.is_present(x, z);
        assert!((1..3).all(|x| (2..4).all(|z| wet(x, z))));
        assert_eq!((cells.width, cells.height), (5, 5));
        assert!(!wet(0, 3) && !wet(3, 3));
        let edge = WaterMask::from_fn([6, 1], 1, |x, _| x == 2);
        assert!(edge.reaches(2.51, 0.0) && edge.reaches(5.0, 0.0) && !edge.reaches(2.49, 0.0));
        assert!(!edge.reaches(90.0, 0.0) && !edge.reaches(5.0, -1.0));
    }

    #[test]
    fn water_goes_on_beyond_the_source_where_it_is_all_round_it() {
        let island = WaterMask::from_fn([9, 9], 0, |x, z| x.abs_diff(4) > 2 || z.abs_diff(4) > 2);
        assert!(island.goes_on() && island.reaches(-1e9, 3.0) && island.reaches(4.0, 8.1));
        assert!(!island.reaches(4.0, 4.0));
        for open in [(0, 3), (8, 0), (5, 0), (5, 8)] {
            let coast = WaterMask::from_fn([9, 9], 0, |x, z| (x, z) != open);
            assert!(!coast.goes_on() && !coast.reaches(-1e9, 3.0), "{open:?}");
        }
    }

    proptest! {
        #[test]
        fn a_mask_comes_back(width in 1u32..40, height in 1u32..9, seed in any::<u64>()) {
            let white = |x: u32, z: u32| (seed ^ u64::from(x * 40 + z)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 1;
            let mask = WaterMask::from_fn([width, height], 0, white);
            let bytes = mask.encode();
            prop_assert_eq!(bytes.len(), stored_bytes([width, height]));
            prop_assert_eq!(WaterMask::decode(&bytes, [width, height]).unwrap(), mask);
        }

        #[test]
        fn any_bytes_are_a_mask_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..9), width in 1u32..9, height in 1u32..9) {
            if let Ok(mask) = WaterMask::decode(&bytes, [width, height]) {
                prop_assert_eq!(mask.encode(), bytes);
            }
        }

        #[test]
        fn water_reaches_where_the_blended_cells_are_at_least_half_white(
            width in 2u32..20, height in 2u32..20, shift in 0u32..3, seed in any::<u64>(),
            x in -0.2f64..1.2, z in -0.2f64..1.2,
        ) {
            let white = |x: u32, z: u32| (seed ^ u64::from(x * 40 + z)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62 == 1;
            let mask = WaterMask::from_fn([width, height], shift, white);
            let (x, z) = (x * f64::from(width), z * f64::from(height));
            let is_beyond = |at: f64, samples: u32| at < 0.0 || at > f64::from(samples - 1);
            // As the shader does: all cells, each with its share.
            let cells = mask.cells();
            let share = |sample: f64, cell: i64, cells: u32| {
                let at = (sample + 0.5) / f64::from(1u32 << shift) - 1.0;
                let reach = |cell: i64| (1.0 - (at - cell as f64).abs()).max(0.0);
                match cell {
                    0 => (-2..=0).map(reach).sum::<f64>(),
                    last if last + 1 == i64::from(cells) => (last..last + 3).map(reach).sum(),
                    inner => reach(inner),
                }
            };
            let mut wet = 0.0;
            for (cx, cz) in (0..cells.width).flat_map(|x| (0..cells.height).map(move |z| (x, z))) {
                if cells.is_present(cx, cz) {
                    let along = if cells.width == 1 { 1.0 } else { share(x, cx.into(), cells.width) };
                    let down = if cells.height == 1 { 1.0 } else { share(z, cz.into(), cells.height) };
                    wet += along * down;
                }
            }
            prop_assume!((wet - 0.5).abs() > 1e-9);
            let expected =
                if is_beyond(x, width) || is_beyond(z, height) { mask.goes_on() } else { wet > 0.5 };
            prop_assert_eq!(mask.reaches(x, z), expected, "{}", wet);
        }
    }
}
