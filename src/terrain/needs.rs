//! What the triangles with the finest middles need, found for all of a tile at once.
//!
//! A handful of samples round a middle says it: those in the middles and quarters of its triangles'
//! edges. The finest triangles' hypotenuses are the legs of the next coarser ones, so what was
//! found for them is taken over. It is [`super::fine::Kind::distance`] compared with the limits of
//! all ranks.

use super::hierarchy::Rank;
use super::rules::Rules;
use super::sweep::Masks;
use multiversion::multiversion;

/// What the triangles with the finest middles need.
pub(super) struct Needs<'a> {
    pub width: usize,
    pub heights: &'a [f32],
    pub rules: &'a Rules,
    /// The highest ranks of vertices with an odd place, and of those with even ones only.
    pub caps: [Rank; 2],
    pub masks: &'a Masks,
}

impl Needs<'_> {
    /// By vertex: what the triangle with the apex to the north or west needs, and the other one; 0
    /// at all other vertices.
    pub fn find(&self) -> [Vec<Rank>; 2] {
        let middles = self.middles();
        let mut needs = [middles.clone(), middles.clone()];
        for z in (1..self.width).step_by(2) {
            self.centres(z, &middles, &mut needs);
        }
        for needs in &mut needs {
            needs
                .iter_mut()
                .for_each(|need| *need = (*need).min(self.caps[0]));
        }
        for z in (0..self.width).step_by(2) {
            self.wide_edges(z, &middles, &mut needs);
        }
        needs
    }

    /// By vertex with an odd place: how many limits the middle of its hypotenuse exceeds.
    fn middles(&self) -> Vec<Rank> {
        let mut middles = vec![0; self.width * self.width];
        let limits: Vec<f32> = (1..=self.caps[1])
            .map(|rank| self.rules.small_limit(rank, 1))
            .collect();
        for (z, row) in middles.chunks_exact_mut(self.width).enumerate() {
            let mut add = |ends: [(usize, isize); 2], mask: &[u8]| {
                let reach = ends[0].1.unsigned_abs();
                let count = self.width - 2 * reach;
                let seen = |(z, columns): (usize, isize)| {
                    let first = z * self.width + (reach as isize + columns) as usize;
                    &self.heights[first..first + count]
                };
                let rows = [seen(ends[0]), seen((z, 0)), seen(ends[1])];
                count_middles(rows, &limits, &mask[reach..], &mut row[reach..][..count]);
            };
            let edges = self.masks.edges(z, 1);
            if z.is_multiple_of(2) {
                add([(z, -1), (z, 1)], edges);
            } else {
                let [falling, rising] = self.masks.centres(z, 1);
                add([(z - 1, 0), (z + 1, 0)], edges);
                add([(z - 1, -1), (z + 1, 1)], falling);
                add([(z - 1, 1), (z + 1, -1)], rising);
            }
        }
        middles
    }

    /// Centres: the middles of all three edges count.
    fn centres(&self, z: usize, middles: &[Rank], needs: &mut [Vec<Rank>; 2]) {
        let width = self.width;
        let at = z * width;
        for x in (1..width).step_by(2) {
            let falling = (x ^ z) & 2 == 0;
            let (before, behind) = (middles[at + x - 1], middles[at + x + 1]);
            let (beside_first, beside_second) = if falling {
                (behind, before)
            } else {
                (before, behind)
            };
            let own = middles[at + x];
            needs[0][at + x] = own.max(middles[at + x - width]).max(beside_first);
            needs[1][at + x] = own.max(middles[at + x + width]).max(beside_second);
        }
    }

    /// Edges of step 2: besides, the quarters of the hypotenuse and the middle of the height on it.
    fn wide_edges(&self, z: usize, middles: &[Rank], needs: &mut [Vec<Rank>; 2]) {
        let width = self.width;
        // Towards an end of the hypotenuse and towards the second apex, each one sample.
        let is_level = z.is_multiple_of(4);
        let (along, across) = if is_level { (1, width) } else { (width, 1) };
        for x in (2 - z % 4..width).step_by(4) {
            let m = z * width + x;
            let h = self.heights;
            let (a, b) = (h[m - 2 * along], h[m + 2 * along]);
            let quarters = (3.0 * a + b - 4.0 * h[m - along])
                .abs()
                .max((a + 3.0 * b - 4.0 * h[m + along]).abs());
            let edge = quarters.max(2.0 * (a + b - 2.0 * h[m]).abs());
            let line = if is_level { z } else { x };
            if line >= 2 {
                let inner = (a + b + 2.0 * h[m - 2 * across] - 4.0 * h[m - across]).abs();
                let legs = middles[m - across - along].max(middles[m - across + along]);
                needs[0][m] = self.quarters(edge.max(inner)).max(legs);
            }
            if line + 2 < width {
                let inner = (a + b + 2.0 * h[m + 2 * across] - 4.0 * h[m + across]).abs();
                let legs = middles[m + across - along].max(middles[m + across + along]);
                needs[1][m] = self.quarters(edge.max(inner)).max(legs);
            }
        }
    }

    /// What a distance in quarters of a step needs.
    fn quarters(&self, distance: f32) -> Rank {
        self.rules.exceeded(distance as f64 / 4.0, self.caps[1])
    }
}

/// Adds how many limits, in halves of a step, samples are off the mean of the ones before and
/// behind them, where the mask says so.
#[multiversion(targets("x86_64+avx2"))]
fn count_middles(rows: [&[f32]; 3], limits: &[f32], mask: &[u8], counts: &mut [Rank]) {
    let [before, at, behind] = rows;
    for limit in limits {
        let samples = before.iter().zip(at).zip(behind);
        for ((((before, at), behind), mask), count) in samples.zip(mask).zip(&mut *counts) {
            let distance = (before + behind - 2.0 * at).abs();
            *count += (distance > *limit) as u8 & mask;
        }
    }
}
