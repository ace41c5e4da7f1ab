//! The exact errors of small triangles of one shape, wherever they lie in a tile.
//!
//! Where a shape's samples and corners are, seen from its right angle, never changes. So it is
//! written down once, and measuring is a few rows of eight samples without a branch. The reference
//! is [`super::scan`], which the rows come from.

use super::distances::{LANES, highest};
use super::scan::Scan;
use super::triangle::Triangle;
use glam::IVec2;
use multiversion::multiversion;

/// Rows of the largest shape, whose hypotenuse goes eight samples down.
const MOST_ROWS: usize = 9;

/// A shape whose rows have at most [`LANES`] samples besides corners.
pub(super) struct Stencil {
    /// From the right angle to the other corners, in a tile's rows.
    ends: [isize; 2],
    /// The signs of the ways to them.
    ways: [[f32; 2]; 2],
    /// From the right angle to the first row's first lane, in a tile's rows and in samples.
    first: isize,
    first_way: [f32; 2],
    /// Distances are counted in this part of a height step.
    unit: f32,
    row_step: usize,
    /// By row: ones for samples of the triangle.
    rows: [[f32; LANES]; MOST_ROWS],
    row_count: usize,
}

impl Stencil {
    /// The shape of a triangle in tiles with so many vertices a row.
    pub fn new(shape: Triangle, width: usize) -> Self {
        let Triangle { a, b, c } = shape;
        let scan = Scan::new(shape, [0; 3]);
        let (low, high) = (a.min(b).min(c), a.max(b).max(c));
        let mut rows = [[0.0; LANES]; MOST_ROWS];
        for run in scan.rows.into_iter().flatten() {
            for row in 0..run.count {
                let start = run.start + IVec2::new(run.start_step * row, row) - low;
                let samples = (run.samples + run.samples_step * row) as usize;
                // A ninth sample can only be a corner, which is never off.
                let lanes = start.x as usize..(start.x as usize + samples).min(LANES);
                rows[start.y as usize][lanes].fill(1.0);
            }
        }
        let step = |way: IVec2| way.y as isize * width as isize + way.x as isize;
        let signs = |way: IVec2| way.signum().as_vec2().to_array();
        Stencil {
            ends: [step(a - c), step(b - c)],
            ways: [signs(a - c), signs(b - c)],
            first: step(low - c),
            first_way: (low - c).as_vec2().to_array(),
            unit: (1u32 << scan.shift) as f32,
            row_step: width,
            rows,
            row_count: (high.y - low.y + 1) as usize,
        }
    }

    /// The largest distance in height steps of the triangle whose right angle lies at a place of
    /// the tile's rows. Heights are whole numbers and at least [`LANES`] more than the tile has;
    /// their distances in the shape's units are exact.
    #[inline]
    pub fn error(&self, heights: &[f32], right_angle: usize) -> f32 {
        let at = |offset: isize| heights[(right_angle as isize + offset) as usize];
        let height = heights[right_angle];
        let rises = self.ends.map(|end| at(end) - height);
        let slope = |axis: usize| rises[0] * self.ways[0][axis] + rises[1] * self.ways[1][axis];
        let slopes = [slope(0), slope(1)];
        let plane =
            height * self.unit + slopes[0] * self.first_way[0] + slopes[1] * self.first_way[1];
        let first = (right_angle as isize + self.first) as usize;
        largest(self, &heights[first..], plane, slopes) / self.unit
    }
}

/// In units of the shape; `plane` is that under the first lane of the first row.
#[multiversion(targets("x86_64+avx2"))]
fn largest(shape: &Stencil, heights: &[f32], plane: f32, slopes: [f32; 2]) -> f32 {
    let mut planes = [0.0; LANES];
    for (lane, at) in planes.iter_mut().enumerate() {
        *at = plane + slopes[0] * lane as f32;
    }
    let mut lanes = [0.0f32; LANES];
    for (row, counted) in shape.rows[..shape.row_count].iter().enumerate() {
        let heights = &heights[row * shape.row_step..][..LANES];
        for lane in 0..LANES {
            let distance = (planes[lane] - heights[lane] * shape.unit).abs() * counted[lane];
            lanes[lane] = if distance > lanes[lane] {
                distance
            } else {
                lanes[lane]
            };
            planes[lane] += slopes[1];
        }
    }
    highest(&lanes)
}

#[cfg(test)]
mod tests {
    use super::super::height_map::HeightMap;
    use super::super::measure::measure;
    use super::*;
    use glam::ivec2;

    #[test]
    fn a_stencil_finds_what_the_reference_finds() {
        let width = 17;
        let height = |i: i32| (i * i * 7919 + i * 31) % 97;
        let map = HeightMap {
            width,
            height: width,
            heights: (0..(width * width) as i32).map(height).collect(),
        };
        let mut heights: Vec<f32> = map.heights.iter().map(|&height| height as f32).collect();
        heights.extend([1e6; LANES]);
        let mut shapes = std::collections::HashSet::new();
        let mut open: Vec<Triangle> = Triangle::roots(IVec2::ZERO, 16, true).into();
        while let Some(triangle) = open.pop() {
            let reach = (triangle.a - triangle.b).abs().max_element();
            if reach <= 8 {
                let stencil = Stencil::new(triangle, width as usize);
                let at = triangle.c.y * width as i32 + triangle.c.x;
                let error = stencil.error(&heights, at as usize);
                assert_eq!(error as f64, measure(&map, triangle).error, "{triangle:?}");
                shapes.insert((triangle.a - triangle.c, triangle.b - triangle.c));
            }
            if triangle.split_middle().is_some() && reach > 2 {
                open.extend(triangle.halves());
            }
        }
        assert!(
            shapes.contains(&(ivec2(4, 4), ivec2(-4, 4)))
                || shapes.contains(&(ivec2(-4, 4), ivec2(4, 4)))
        );
        assert!(shapes.len() >= 16, "{}", shapes.len());
    }
}
