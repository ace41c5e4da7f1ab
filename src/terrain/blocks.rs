//! The lowest and highest samples of a window's blocks: where a plane passes so near to them that
//! no sample can be further off than another one already is, none has to be looked at.

use super::height_map::HeightMap;
use super::triangle::{Plane, Triangle};
use glam::{IVec2, ivec2};
use std::ops::Range;

/// Samples along a block's side.
const SIDE: usize = 64;

pub(super) struct Blocks<'a> {
    window: &'a HeightMap,
    /// The window's north-west sample.
    origin: IVec2,
    /// Lowest and highest sample of each block, row by row.
    ranges: Vec<[i32; 2]>,
}

impl<'a> Blocks<'a> {
    pub fn new(window: &'a HeightMap, origin: IVec2) -> Self {
        let columns = (window.width as usize).div_ceil(SIDE);
        let mut ranges = Vec::with_capacity(columns * (window.height as usize).div_ceil(SIDE));
        for rows in window.heights.chunks(SIDE * window.width as usize) {
            let first = ranges.len();
            ranges.resize(first + columns, [i32::MAX, i32::MIN]);
            for row in rows.chunks(window.width as usize) {
                for (range, block) in ranges[first..].iter_mut().zip(row.chunks(SIDE)) {
                    let low = block.iter().fold(range[0], |low, &height| low.min(height));
                    let high = block
                        .iter()
                        .fold(range[1], |high, &height| high.max(height));
                    *range = [low, high];
                }
            }
        }
        Blocks {
            window,
            origin,
            ranges,
        }
    }

    /// The larger of `known` and the largest distance of the window's samples in a triangle from
    /// its plane; `measure` gives it for the heights of part of a row from a sample on.
    pub fn largest(
        &self,
        triangle: Triangle,
        plane: &Plane,
        known: i64,
        measure: impl Fn(&[i32], IVec2) -> i64,
    ) -> i64 {
        let mut largest = known;
        let rows = triangle.rows();
        let columns = (self.window.width as usize).div_ceil(SIDE);
        for (block, &range) in self.ranges.iter().enumerate() {
            let corner = [block % columns, block / columns].map(|place| place * SIDE);
            let [xs, zs] = self.samples(corner);
            let zs = zs.start.max(rows.z.0)..zs.end.min(rows.z.1 + 1);
            if zs.is_empty() || self.furthest(corner, plane, range) <= largest {
                continue;
            }
            for z in zs {
                let (x0, x1) = rows.interval(z);
                let (x0, end) = (x0.max(xs.start), (x1 + 1).min(xs.end));
                if x0 < end {
                    let start = ivec2(x0, z);
                    let p = start - self.origin;
                    let row = &self.window.heights[p.y as usize * self.window.width as usize..];
                    let row = &row[p.x as usize..][..(end - x0) as usize];
                    largest = largest.max(measure(row, start));
                }
            }
        }
        largest
    }

    /// The columns and rows of a block.
    fn samples(&self, corner: [usize; 2]) -> [Range<i32>; 2] {
        let size = [self.window.width as usize, self.window.height as usize];
        let range = |axis: usize| {
            let end = (corner[axis] + SIDE).min(size[axis]);
            self.origin[axis] + corner[axis] as i32..self.origin[axis] + end as i32
        };
        [range(0), range(1)]
    }

    /// What no sample of a block is further from a plane than.
    fn furthest(&self, corner: [usize; 2], plane: &Plane, [low, high]: [i32; 2]) -> i64 {
        let [xs, zs] = self.samples(corner);
        let ends = [xs.start, xs.end - 1].map(|x| [zs.start, zs.end - 1].map(|z| ivec2(x, z)));
        let planes = ends.map(|ends| ends.map(|end| plane.at(end)));
        let heights = planes.into_iter().flatten();
        let furthest = heights.map(|on_plane| {
            let below = on_plane - low as i64 * plane.denominator;
            let above = high as i64 * plane.denominator - on_plane;
            below.max(above)
        });
        furthest.max().unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_cannot_be_further_off_are_left_out_and_no_others() {
        let (width, height) = (200u32, 150u32);
        // Rough ground with one mountain.
        let at = |x: i32, z: i32| {
            let mountain = 400 - 8 * (x - 100).abs().max((z - 120).abs());
            mountain.max(0) + ((x * 7919) ^ (z * 104_729)) % 13
        };
        let map = HeightMap {
            width: 257,
            height: 257,
            heights: (0..257 * 257).map(|i| at(i % 257, i / 257)).collect(),
        };
        let origin = ivec2(40, 90);
        let window = HeightMap {
            width,
            height,
            heights: (0..(width * height) as i32)
                .map(|i| at(origin.x + i % width as i32, origin.y + i / width as i32))
                .collect(),
        };
        let blocks = Blocks::new(&window, origin);
        let mut looked_at = Vec::new();
        for root in Triangle::roots(IVec2::ZERO, 256, true) {
            for triangle in root.halves().into_iter().chain([root]) {
                let [a, b, c] = [triangle.a, triangle.b, triangle.c].map(|p| at(p.x, p.y));
                let plane = Plane::through(triangle, a, b, c);
                let samples = std::cell::Cell::new(0);
                let distance = |row: &[i32], start: IVec2| {
                    samples.set(samples.get() + row.len());
                    let far = row.iter().zip(0..).map(|(&height, i)| {
                        (plane.at(start + ivec2(i, 0)) - height as i64 * plane.denominator).abs()
                    });
                    far.max().unwrap_or(0)
                };
                let found = blocks.largest(triangle, &plane, 0, distance);
                let naive = |p: IVec2| {
                    let height = map.at(p.x as i64, p.y as i64) as i64;
                    (plane.at(p) - height * plane.denominator).abs()
                };
                let (mut expected, mut all) = (0, 0);
                for z in origin.y.max(triangle.rows().z.0)..=triangle.rows().z.1.min(239) {
                    let (x0, x1) = triangle.rows().interval(z);
                    for x in x0.max(origin.x)..=x1.min(239) {
                        expected = expected.max(naive(ivec2(x, z)));
                        all += 1;
                    }
                }
                assert_eq!(found, expected, "{triangle:?}");
                looked_at.push((samples.take(), all));
                let known = expected + 1000 * plane.denominator;
                assert_eq!(blocks.largest(triangle, &plane, known, distance), known);
                assert_eq!(samples.take(), 0);
            }
        }
        assert!(
            looked_at.iter().any(|(some, all)| some < all),
            "{looked_at:?}"
        );
    }
}
