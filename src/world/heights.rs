//! A level's heights: a rectangle of lattice samples, and how it is stored.
//!
//! A section stores what its lattice adds to the next coarser one: the differences from a cubic
//! interpolation, first along the rows that both lattices have, then along the columns. The
//! coarsest level has nothing to start from and stores differences from its neighbours. Both are
//! compressed with `pco`. Integers only, so decoding gives the encoder's heights bit for bit.
//!
//! Decoding allocates what the layout asks for, whatever the bytes claim.

use super::{FormatError, LatticeRect};

/// Lattice samples of a section, in height steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeightGrid {
    pub rect: LatticeRect,
    pub heights: Vec<i32>,
}

impl HeightGrid {
    /// Fills a rectangle from a function of lattice positions.
    #[cfg(test)]
    pub fn from_fn(rect: LatticeRect, height: impl Fn(i32, i32) -> i32) -> Self {
        let mut heights = Vec::with_capacity(rect.len());
        for z in rect.z0..rect.z0 + rect.height as i32 {
            heights.extend((rect.x0..rect.x0 + rect.width as i32).map(|x| height(x, z)));
        }
        HeightGrid { rect, heights }
    }

    /// The height at a lattice position inside the rectangle.
    pub fn at(&self, x: i32, z: i32) -> i32 {
        self.heights[self.index(x, z)]
    }

    /// The height at a position in samples, bilinear between the lattice's; beyond the rectangle
    /// its edge goes on.
    pub fn between_samples(&self, x: f64, z: f64) -> f64 {
        let place = |samples: f64, first: i32, count: u32| {
            let last = (first + count as i32 - 1) as f64;
            let place = (samples / self.rect.stride as f64).clamp(first as f64, last);
            let low = place.floor().min(last - 1.0).max(first as f64);
            (low as i32, place - low)
        };
        let (column, u) = place(x, self.rect.x0, self.rect.width);
        let (row, v) = place(z, self.rect.z0, self.rect.height);
        let at = |dx, dz| self.at(column + dx, row + dz) as f64;
        let north = at(0, 0) * (1.0 - u) + at(1, 0) * u;
        let south = at(0, 1) * (1.0 - u) + at(1, 1) * u;
        north * (1.0 - v) + south * v
    }

    fn index(&self, x: i32, z: i32) -> usize {
        let (column, row) = ((x - self.rect.x0) as usize, (z - self.rect.z0) as usize);
        debug_assert!(column < self.rect.width as usize && row < self.rect.height as usize);
        row * self.rect.width as usize + column
    }
}

/// Encodes a grid; `refines` when a coarser grid covers the same ground with twice the stride.
pub fn encode(mut grid: HeightGrid, refines: bool) -> Vec<u8> {
    let mut residuals = Vec::with_capacity(grid.rect.len());
    if refines {
        visit_new_samples(&mut grid, |heights, predicted| {
            let both = heights.iter().zip(predicted);
            residuals.extend(both.map(|(height, predicted)| height.wrapping_sub(*predicted)));
        });
    } else {
        visit_all_samples(&mut grid, |height, predicted| {
            residuals.push(height.wrapping_sub(predicted));
            height
        });
    }
    // The compressor takes as much again.
    drop(grid);
    let mut config = pco::ChunkConfig::default().with_mode_spec(pco::ModeSpec::Classic);
    if !follow_each_other(&residuals) {
        config = config.with_delta_spec(pco::DeltaSpec::NoOp);
    }
    pco::standalone::simple_compress(&residuals, &config).expect("the configuration is valid")
}

/// Whether numbers are at least somewhat like those before them, so that it is worth trying what
/// the differences between them cost.
fn follow_each_other(numbers: &[i32]) -> bool {
    let size = |number: i32| u64::from(number.unsigned_abs());
    let sizes: u64 = numbers.iter().map(|&number| size(number)).sum();
    let steps = numbers
        .windows(2)
        .map(|pair| size(pair[1].wrapping_sub(pair[0])));
    steps.sum::<u64>() <= sizes + sizes / 4
}

/// Decodes what [`encode`] made for this rectangle and this coarser grid.
pub fn decode(
    bytes: &[u8],
    rect: LatticeRect,
    coarser: Option<&HeightGrid>,
) -> Result<HeightGrid, FormatError> {
    let count = match coarser {
        Some(_) => new_samples(rect),
        None => rect.len(),
    };
    let residuals = decompress(bytes, count)?;
    let mut grid = HeightGrid {
        rect,
        heights: vec![0; rect.len()],
    };
    let mut next = &residuals[..];
    match coarser {
        Some(coarser) => {
            check_covers(coarser, rect)?;
            copy_shared_samples(&mut grid, coarser);
            visit_new_samples(&mut grid, |heights, predicted| {
                let (here, rest) = next.split_at(heights.len());
                next = rest;
                for ((height, predicted), residual) in heights.iter_mut().zip(predicted).zip(here) {
                    *height = predicted.wrapping_add(*residual);
                }
            });
        }
        None => {
            let mut next = next.iter();
            let residual =
                |_, predicted: i32| predicted.wrapping_add(next.next().copied().unwrap_or(0));
            visit_all_samples(&mut grid, residual);
        }
    }
    Ok(grid)
}

/// Samples that a lattice adds to the coarser one in a rectangle with even ends.
pub fn new_samples(rect: LatticeRect) -> usize {
    let (columns, rows) = (rect.width as usize / 2 + 1, rect.height as usize / 2 + 1);
    rect.len() - columns * rows
}

fn decompress(bytes: &[u8], count: usize) -> Result<Vec<i32>, FormatError> {
    let mut residuals = vec![0i32; count];
    let progress =
        pco::standalone::simple_decompress_into(bytes, &mut residuals).map_err(|error| {
            FormatError(format!("heights that cannot be decompressed ({error})").replace('\n', " "))
        })?;
    if progress.n_processed != count || !progress.finished {
        return Err(FormatError(format!(
            "{} heights where {count} are expected",
            progress.n_processed
        )));
    }
    Ok(residuals)
}

fn check_covers(coarser: &HeightGrid, rect: LatticeRect) -> Result<(), FormatError> {
    let c = coarser.rect;
    let covers = |c0: i32, cells: u32, f0: i32, fine: u32| {
        f0 % 2 == 0 && fine % 2 == 1 && c0 <= f0 / 2 && f0 / 2 + fine as i32 / 2 < c0 + cells as i32
    };
    if c.stride != rect.stride * 2
        || !covers(c.x0, c.width, rect.x0, rect.width)
        || !covers(c.z0, c.height, rect.z0, rect.height)
    {
        return Err(FormatError::new(
            "a coarser level that does not cover this one",
        ));
    }
    Ok(())
}

fn copy_shared_samples(grid: &mut HeightGrid, coarser: &HeightGrid) {
    let rect = grid.rect;
    for z in (rect.z0..rect.z0 + rect.height as i32).step_by(2) {
        for x in (rect.x0..rect.x0 + rect.width as i32).step_by(2) {
            let index = grid.index(x, z);
            grid.heights[index] = coarser.at(x / 2, z / 2);
        }
    }
}

/// Visits the samples the coarser lattice lacks, in coding order, those of one row at a time with
/// their predictions; what the visitor leaves in their place is stored.
fn visit_new_samples(grid: &mut HeightGrid, mut visit: impl FnMut(&mut [i32], &[i32])) {
    let (width, height) = (grid.rect.width as usize, grid.rect.height as usize);
    let mut predicted = vec![0; width];
    let mut odd = vec![0; width / 2];
    for row in (0..height).step_by(2) {
        let heights = &mut grid.heights[row * width..][..width];
        for (i, odd) in odd.iter_mut().enumerate() {
            *odd = heights[2 * i + 1];
            predicted[i] = predict(2 * i + 1, width, |column| heights[column]);
        }
        visit(&mut odd, &predicted[..width / 2]);
        for (i, odd) in odd.iter().enumerate() {
            heights[2 * i + 1] = *odd;
        }
    }
    for row in (1..height).step_by(2) {
        let (above, rest) = grid.heights.split_at_mut(row * width);
        let (heights, below) = rest.split_at_mut(width);
        let beside = |other: usize| {
            if other < row {
                &above[other * width..][..width]
            } else {
                &below[(other - row - 1) * width..][..width]
            }
        };
        predict_row(row, height, beside, &mut predicted);
        visit(heights, &predicted);
    }
}

/// The samples of an odd row, from those of the even rows round it.
fn predict_row<'a>(
    row: usize,
    height: usize,
    beside: impl Fn(usize) -> &'a [i32],
    predicted: &mut [i32],
) {
    let inner = beside(row - 1).iter().zip(beside(row + 1));
    if is_inner(row, height) {
        let outer = beside(row - 3).iter().zip(beside(row + 3));
        for ((predicted, inner), outer) in predicted.iter_mut().zip(inner).zip(outer) {
            *predicted = cubic([*outer.0, *inner.0, *inner.1, *outer.1]);
        }
    } else {
        for (predicted, (a, b)) in predicted.iter_mut().zip(inner) {
            *predicted = linear(*a, *b);
        }
    }
}

/// A sample at an odd place, from those at even places round it.
fn predict(place: usize, end: usize, at: impl Fn(usize) -> i32) -> i32 {
    if is_inner(place, end) {
        cubic([at(place - 3), at(place - 1), at(place + 1), at(place + 3)])
    } else {
        linear(at(place - 1), at(place + 1))
    }
}

/// Whether two even places lie to both sides.
fn is_inner(place: usize, end: usize) -> bool {
    place >= 3 && place + 3 < end
}

/// Four-point interpolation. Heights of a world are far from overflow; in damaged ones numbers
/// wrap, the same for all readers.
fn cubic([outer_a, a, b, outer_b]: [i32; 4]) -> i32 {
    let inner = a.wrapping_add(b).wrapping_mul(9);
    inner
        .wrapping_sub(outer_a.wrapping_add(outer_b))
        .wrapping_add(8)
        >> 4
}

/// The mean of two, rounded up.
fn linear(a: i32, b: i32) -> i32 {
    a.wrapping_add(b).wrapping_add(1) >> 1
}

/// Visits every sample, row by row, with a prediction from its west and north neighbours.
fn visit_all_samples(grid: &mut HeightGrid, mut visit: impl FnMut(i32, i32) -> i32) {
    let width = grid.rect.width as usize;
    for index in 0..grid.heights.len() {
        let (column, row) = (index % width, index / width);
        let heights = &grid.heights;
        let predicted = match (column, row) {
            (0, 0) => 0,
            (_, 0) => heights[index - 1],
            (0, _) => heights[index - width],
            _ => heights[index - 1]
                .wrapping_add(heights[index - width])
                .wrapping_sub(heights[index - width - 1]),
        };
        grid.heights[index] = visit(grid.heights[index], predicted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rect(stride: u32, x0: i32, z0: i32, width: u32, height: u32) -> LatticeRect {
        LatticeRect {
            stride,
            x0,
            z0,
            width,
            height,
        }
    }

    fn rough(x: i32, z: i32) -> i32 {
        (x.wrapping_mul(7919) ^ z.wrapping_mul(104_729)) % 1000 + x * 3 - z * 2
    }

    #[test]
    fn a_level_comes_back_from_the_coarser_one_and_the_differences() {
        let fine = HeightGrid::from_fn(rect(1, -2, -2, 69, 37), rough);
        let coarse = HeightGrid::from_fn(rect(2, -2, -2, 37, 21), |x, z| rough(x * 2, z * 2));
        let bytes = encode(fine.clone(), true);
        assert_eq!(decode(&bytes, fine.rect, Some(&coarse)).unwrap(), fine);
        let alone = encode(coarse.clone(), false);
        assert_eq!(decode(&alone, coarse.rect, None).unwrap(), coarse);
    }

    #[test]
    fn smooth_ground_costs_next_to_nothing() {
        let fine = HeightGrid::from_fn(rect(1, -2, -2, 133, 133), |x, z| 3 * x - 5 * z + 100);
        assert!(encode(fine.clone(), true).len() < 100);
    }

    #[test]
    fn a_coarser_grid_elsewhere_is_refused() {
        let coarse = HeightGrid::from_fn(rect(2, 8, -2, 37, 21), |_, _| 0);
        let fine = HeightGrid::from_fn(rect(1, -2, -2, 69, 37), |_, _| 0);
        let bytes = pco::standalone::simple_compress(
            &vec![0i32; new_samples(fine.rect)],
            &pco::ChunkConfig::default(),
        )
        .unwrap();
        assert!(decode(&bytes, fine.rect, Some(&coarse)).is_err());
    }

    proptest! {
        #[test]
        fn any_heights_come_back(seed in prop::collection::vec(any::<i32>(), 9 * 7)) {
            let grid = HeightGrid { rect: rect(4, -2, -2, 9, 7), heights: seed };
            let coarse = HeightGrid::from_fn(rect(8, -2, -2, 9, 9), |x, z| {
                if (-1..=3).contains(&x) && (-1..=2).contains(&z) { grid.at(x * 2, z * 2) } else { 0 }
            });
            prop_assert_eq!(decode(&encode(grid.clone(), true), grid.rect, Some(&coarse)).unwrap(), grid.clone());
            prop_assert_eq!(decode(&encode(grid.clone(), false), grid.rect, None).unwrap(), grid);
        }

        #[test]
        fn any_bytes_are_heights_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, rect(1, -2, -2, 21, 21), None);
        }

        #[test]
        fn damaged_heights_are_heights_or_an_error(at in 0usize..1000, bit in 0u8..8) {
            let grid = HeightGrid::from_fn(rect(1, -2, -2, 37, 37), rough);
            let mut bytes = encode(grid.clone(), false);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let _ = decode(&bytes, grid.rect, None);
        }
    }
}
