//! Which voids hang together, found row by row.
//!
//! Voids of a row are runs; a run that lies above another one belongs to the same hole (union
//! and find, Tarjan 1975). Voids that touch at a corner only are two holes: no height passes
//! from one to the other in what they are filled with.
//!
//! - Memory grows with the number of runs, which is that of the holes' rows, not of their
//!   samples.
//! - Holes come in the order of their first void; a hole's runs by row, then from west to east.

use crate::error::{Error, Result};
use crate::source::Area;

/// Some gigabytes of them.
const MOST_RUNS: usize = 1 << 28;

/// Voids side by side: `x0..x1` of row `z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub z: u32,
    pub x0: u32,
    pub x1: u32,
}

/// The runs of all rows so far.
#[derive(Debug, Default)]
pub(super) struct Holes {
    runs: Vec<Run>,
    /// Another run of the same hole that came earlier; its own place for the first one.
    earlier: Vec<u32>,
    /// Where the runs of the row before last, and of the last one, begin.
    rows: [usize; 2],
}

impl Holes {
    /// The next row to the south, whatever it has.
    pub fn row(&mut self, z: u32, is_void: impl Iterator<Item = bool>) -> Result<()> {
        self.rows = [self.rows[1], self.runs.len()];
        let mut start = None;
        for (x, void) in (0..).zip(is_void.chain([false])) {
            match (start, void) {
                (None, true) => start = Some(x),
                (Some(x0), false) => {
                    self.add(Run { z, x0, x1: x })?;
                    start = None;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The next row to the south, which has none.
    pub fn row_without(&mut self) {
        self.rows = [self.rows[1], self.runs.len()];
    }

    fn add(&mut self, run: Run) -> Result<()> {
        if self.runs.len() == MOST_RUNS {
            let text = format!(
                "voids in more than {MOST_RUNS} places: expected a source with fewer, or --crop"
            );
            return Err(Error::Usage(text));
        }
        let place = self.runs.len() as u32;
        self.runs.push(run);
        self.earlier.push(place);
        // What ends west of this run ends west of the next one too.
        let [mut above, last] = self.rows;
        while above < last && self.runs[above].x1 <= run.x0 {
            above += 1;
        }
        self.rows[0] = above;
        while above < last && self.runs[above].x0 < run.x1 {
            self.unite(above as u32, place);
            above += 1;
        }
        Ok(())
    }

    fn first(&mut self, mut run: u32) -> u32 {
        while self.earlier[run as usize] != run {
            let further = self.earlier[self.earlier[run as usize] as usize];
            self.earlier[run as usize] = further;
            run = further;
        }
        run
    }

    fn unite(&mut self, a: u32, b: u32) {
        let (a, b) = (self.first(a), self.first(b));
        self.earlier[a.max(b) as usize] = a.min(b);
    }

    /// All runs, hole by hole.
    pub fn collect(mut self) -> Grouped {
        let firsts: Vec<u32> = (0..self.runs.len() as u32)
            .map(|run| self.first(run))
            .collect();
        let mut order: Vec<u32> = (0..self.runs.len() as u32).collect();
        order.sort_unstable_by_key(|run| (firsts[*run as usize], *run));
        let ends = order.windows(2).enumerate();
        let ends = ends.filter(|(_, pair)| firsts[pair[0] as usize] != firsts[pair[1] as usize]);
        let mut ends: Vec<usize> = ends.map(|(at, _)| at + 1).collect();
        if !order.is_empty() {
            ends.push(order.len());
        }
        Grouped {
            runs: order.iter().map(|run| self.runs[*run as usize]).collect(),
            ends,
        }
    }
}

/// Runs that are ordered by their hole.
#[derive(Debug, Default)]
pub(super) struct Grouped {
    runs: Vec<Run>,
    /// Where each hole's runs end.
    ends: Vec<usize>,
}

impl Grouped {
    pub fn holes(&self) -> impl Iterator<Item = &[Run]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.runs[start..*end])
    }

    /// All of them without regard to what hangs together.
    pub fn into_voids(self) -> Voids {
        let mut runs = self.runs;
        runs.sort_unstable_by_key(|run| (run.z, run.x0));
        Voids(runs)
    }
}

/// The runs of voids that are kept, row by row.
#[derive(Debug, Default)]
pub(super) struct Voids(Vec<Run>);

impl Voids {
    pub fn count(&self) -> u64 {
        self.0.iter().map(|run| u64::from(run.x1 - run.x0)).sum()
    }

    /// Which samples of an area are void, row by row; none where no sample is.
    pub fn of(&self, area: Area) -> Option<Vec<bool>> {
        let [width, height] = [area.width, area.height].map(|side| side as usize);
        let mut found: Option<Vec<bool>> = None;
        let first = self.0.partition_point(|run| run.z < area.z);
        let rows = self.0[first..].iter();
        for run in rows.take_while(|run| run.z < area.z + area.height) {
            let from = run.x0.max(area.x);
            let to = run.x1.min(area.x + area.width);
            if from < to {
                let row = (run.z - area.z) as usize * width;
                let all = found.get_or_insert_with(|| vec![false; width * height]);
                let run = row + (from - area.x) as usize..row + (to - area.x) as usize;
                all[run].fill(true);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Random;
    use super::*;

    fn holes_of(rows: &[Vec<bool>]) -> Grouped {
        let mut holes = Holes::default();
        for (z, row) in (0..).zip(rows) {
            if row.contains(&true) {
                holes.row(z, row.iter().copied()).unwrap();
            } else {
                holes.row_without();
            }
        }
        holes.collect()
    }

    fn picture(text: &str) -> Vec<Vec<bool>> {
        text.split(' ')
            .map(|row| row.chars().map(|c| c == '#').collect())
            .collect()
    }

    #[test]
    fn what_meets_later_is_one_hole_and_corners_do_not_meet() {
        let count = |text: &str| holes_of(&picture(text)).holes().count();
        assert_eq!(count("#.#.# #.#.# #####"), 1);
        assert_eq!(count("#.#.# #.#.# #.###"), 2);
        assert_eq!(count("#. .#"), 2);
        assert_eq!(count("##.## ..... ##.##"), 4);
        assert_eq!(count("... ..."), 0);
        assert_eq!(count("##### #...# #.#.# #...# #####"), 2);
    }

    /// Labels by flooding from each void in turn.
    fn flooded(rows: &[Vec<bool>]) -> Vec<Vec<(usize, usize)>> {
        let (height, width) = (rows.len(), rows[0].len());
        let mut seen = vec![vec![false; width]; height];
        let mut found = Vec::new();
        for z in 0..height {
            for x in 0..width {
                let mut hole = Vec::new();
                let mut next = vec![(z, x)];
                while let Some((z, x)) = next.pop() {
                    if z < height && x < width && rows[z][x] && !seen[z][x] {
                        seen[z][x] = true;
                        hole.push((z, x));
                        next.extend([(z + 1, x), (z.wrapping_sub(1), x)]);
                        next.extend([(z, x + 1), (z, x.wrapping_sub(1))]);
                    }
                }
                if !hole.is_empty() {
                    hole.sort();
                    found.push(hole);
                }
            }
        }
        found
    }

    #[test]
    fn kept_voids_are_found_in_any_area() {
        let rows = picture(".##.# ..... #...# #####");
        let voids = holes_of(&rows).into_voids();
        assert_eq!(voids.count(), 10);
        for z in 0..4 {
            for x in 0..5 {
                for (width, height) in [(1, 1), (5 - x, 4 - z), (1, 4 - z)] {
                    let area = Area {
                        x,
                        z,
                        width,
                        height,
                    };
                    let places = (z..z + height).flat_map(|z| (x..x + width).map(move |x| (x, z)));
                    let naive: Vec<bool> =
                        places.map(|(x, z)| rows[z as usize][x as usize]).collect();
                    let naive = naive.contains(&true).then_some(naive);
                    assert_eq!(voids.of(area), naive, "{area:?}");
                }
            }
        }
    }

    #[test]
    fn holes_are_those_that_a_flood_fills() {
        let mut random = Random(9);
        for (width, height, part) in [
            (1, 40, 2),
            (40, 1, 2),
            (13, 17, 2),
            (30, 30, 3),
            (30, 30, 9),
        ] {
            for _ in 0..20 {
                let rows: Vec<Vec<bool>> = (0..height)
                    .map(|_| (0..width).map(|_| random.below(10) >= part).collect())
                    .collect();
                let grouped = holes_of(&rows);
                let cells = |hole: &[Run]| -> Vec<(usize, usize)> {
                    let runs = hole.iter();
                    runs.flat_map(|r| (r.x0..r.x1).map(|x| (r.z as usize, x as usize)))
                        .collect()
                };
                let found: Vec<_> = grouped.holes().map(cells).collect();
                assert_eq!(found, flooded(&rows));
            }
        }
    }
}
