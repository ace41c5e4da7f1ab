//! The smallest crack-free mesh of each level, coarse to fine, over whole patch maps.
//!
//! A vertex is *active* when the diamond it is the middle of is split. A diamond can only be
//! split when both its triangles exist, so a vertex drags in the two vertices at which those
//! triangles were made; sets of active vertices closed under that rule are exactly the crack-free
//! meshes, and they are closed under intersection: whatever the order of work, the fixed point
//! is the one smallest set. Only triangles that exist are measured, and each of them once:
//! errors do not depend on the level, and thresholds grow with it, so every level starts from
//! the mesh above it. (Lindstrom et al. 1996 describe the dependency of vertices; the fixed point
//! runs on a work list since recursion overflows a stack on large maps.)
//!
//! Invariants after `refine(level)`: the active set is closed, contains the corners of all
//! present patches of the level, uses the level's lattice only, and contains the coarser level's.

use super::measure::{Measure, Task};
use super::triangle::Triangle;
use crate::world::Layout;
use glam::{IVec2, ivec2};
use std::collections::HashSet;

/// A leaf of the level that was refined last.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    pub triangle: Triangle,
    pub measure: Measure,
    /// The threshold is exceeded, but the lattice refuses the split.
    pub exhausted: bool,
}

/// The meshes of all levels, one after the other.
pub struct Refiner<M> {
    layout: Layout,
    /// Vertices a row and a column of the coarsest patches' ground.
    extent: IVec2,
    active: ActiveSet,
    leaves: Vec<Leaf>,
    /// Ground under the leaves found in this level so far, in cells.
    settled: f64,
    /// Triangles made by splits and not looked at yet.
    fresh: Vec<Triangle>,
    measure: M,
}

/// Measures a batch of triangles; the compiler's does it on all cores.
pub trait MeasureAll: Fn(&[Task]) -> Vec<Measure> {}

impl<F: Fn(&[Task]) -> Vec<Measure>> MeasureAll for F {}

impl<M: MeasureAll> Refiner<M> {
    pub fn new(layout: Layout, measure: M) -> Self {
        let coarsest = layout.coarsest();
        let extent = layout
            .patches(coarsest)
            .map(|n| n * layout.patch_size(coarsest) + 1);
        let extent = ivec2(extent[0] as i32, extent[1] as i32);
        let mut refiner = Refiner {
            layout,
            extent,
            active: ActiveSet::new(&layout),
            leaves: Vec::new(),
            settled: 0.0,
            fresh: Vec::new(),
            measure,
        };
        refiner.plant();
        refiner
    }

    /// Brings the mesh to a level's threshold, in the metric's units. Levels go from coarse to fine
    /// with thresholds that do not grow. `report` is told what share of the ground is settled.
    pub fn refine(&mut self, level: u8, threshold: f64, mut report: impl FnMut(f64)) {
        self.activate_patch_corners(level);
        let stride = self.layout.stride(level) as i32;
        self.settled = 0.0;
        let carried = std::mem::take(&mut self.leaves);
        for leaf in carried {
            self.settle(leaf.triangle, leaf.measure, threshold, stride);
        }
        while !self.fresh.is_empty() {
            let mut fresh = std::mem::take(&mut self.fresh);
            fresh.retain(|&t| !self.is_split(t));
            let tasks: Vec<Task> = fresh
                .into_iter()
                .map(|triangle| task(triangle, threshold, stride))
                .collect();
            let measures = (self.measure)(&tasks);
            for (task, measure) in tasks.into_iter().zip(measures) {
                self.settle(task.triangle, measure, threshold, stride);
            }
            report(self.settled_share());
        }
        let mut leaves = std::mem::take(&mut self.leaves);
        leaves.retain(|leaf| !self.is_split(leaf.triangle));
        self.leaves = leaves;
    }

    /// The leaves of the level, those over absent ground included.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Whether the mesh splits a triangle; the smallest ones have no sample in their middle.
    pub fn is_split(&self, triangle: Triangle) -> bool {
        let sum = triangle.a + triangle.b;
        (sum.x | sum.y) & 1 == 0 && self.is_active(sum / 2)
    }

    /// Vertices of a level's mesh, which must have been refined last.
    pub fn vertices(&self, level: u8) -> u64 {
        let size = self.layout.patch_size(level) as i32;
        let covered = self.layout.patches(level).map(|n| n as i32 * size);
        self.active.count_within(covered.into())
    }

    fn is_active(&self, vertex: IVec2) -> bool {
        self.active.contains(vertex)
    }

    /// Share of the ground under leaves so far; those split since count twice.
    fn settled_share(&self) -> f64 {
        let ground = (self.extent.x - 1) as f64 * (self.extent.y - 1) as f64;
        (self.settled / ground).min(1.0)
    }

    /// The coarsest patches: their corners, and their two root triangles each.
    fn plant(&mut self) {
        let level = self.layout.coarsest();
        let size = self.layout.patch_size(level) as i32;
        for z in (0..self.extent.y).step_by(size as usize) {
            for x in (0..self.extent.x).step_by(size as usize) {
                self.active.insert(ivec2(x, z));
                if x + size < self.extent.x && z + size < self.extent.y {
                    let even = (x / size + z / size) % 2 == 0;
                    self.fresh.extend(Triangle::roots(ivec2(x, z), size, even));
                }
            }
        }
    }

    fn activate_patch_corners(&mut self, level: u8) {
        let size = self.layout.patch_size(level) as i32;
        let [nx, nz] = self.layout.patches(level).map(|n| n as i32);
        for z in 0..=nz {
            for x in 0..=nx {
                self.activate(ivec2(x, z) * size);
            }
        }
    }

    /// Splits a triangle that must be split, or keeps it as a leaf.
    fn settle(&mut self, triangle: Triangle, measure: Measure, threshold: f64, stride: i32) {
        if self.is_split(triangle) {
            return;
        }
        let too_wrong = measure.complexity > threshold;
        if (too_wrong || measure.must_split) && on_lattice(triangle, stride) {
            self.activate(triangle.middle());
        } else {
            let leg = triangle.a - triangle.c;
            self.settled += leg.length_squared() as f64 / 2.0;
            self.leaves.push(Leaf {
                triangle,
                measure,
                exhausted: too_wrong,
            });
        }
    }

    /// Activates a vertex and all it depends on.
    fn activate(&mut self, vertex: IVec2) {
        let mut stack = vec![vertex];
        while let Some(vertex) = stack.pop() {
            if self.is_active(vertex) {
                continue;
            }
            self.active.insert(vertex);
            for triangle in self.diamond(vertex) {
                self.fresh.extend(triangle.halves());
                stack.push(triangle.c);
            }
        }
    }

    /// The one or two triangles whose hypotenuse has this middle.
    fn diamond(&self, v: IVec2) -> impl Iterator<Item = Triangle> + use<M> {
        let half = 1 << (v.x | v.y).trailing_zeros();
        let (odd_x, odd_z) = (v.x & half != 0, v.y & half != 0);
        let (east, south) = (ivec2(half, 0), ivec2(0, half));
        let pair = if odd_x && odd_z {
            let corner = v - east - south;
            let even = (corner.x / (2 * half) + corner.y / (2 * half)) % 2 == 0;
            Triangle::roots(corner, 2 * half, even)
        } else if odd_x {
            let (w, e) = (v - east, v + east);
            [
                Triangle {
                    a: w,
                    b: e,
                    c: v - south,
                },
                Triangle {
                    a: e,
                    b: w,
                    c: v + south,
                },
            ]
        } else {
            let (n, s) = (v - south, v + south);
            [
                Triangle {
                    a: s,
                    b: n,
                    c: v - east,
                },
                Triangle {
                    a: n,
                    b: s,
                    c: v + east,
                },
            ]
        };
        let extent = self.extent;
        pair.into_iter()
            .filter(move |t| t.c.min_element() >= 0 && t.c.x < extent.x && t.c.y < extent.y)
    }
}

/// The split diamonds' middles: a bit for each sample of the present finest patches; the few that
/// closure drags in beyond them one by one, so that a narrow source costs what it is.
struct ActiveSet {
    extent: IVec2,
    bits: Vec<u64>,
    beyond: HashSet<IVec2>,
}

impl ActiveSet {
    fn new(layout: &Layout) -> Self {
        let extent = layout
            .patches(0)
            .map(|n| (n * layout.patch_size(0)) as i32 + 1);
        let words = (extent[0] as usize * extent[1] as usize).div_ceil(64);
        ActiveSet {
            extent: extent.into(),
            bits: vec![0; words],
            beyond: HashSet::new(),
        }
    }

    fn contains(&self, vertex: IVec2) -> bool {
        match self.index(vertex) {
            Some(index) => self.bits[index / 64] >> (index % 64) & 1 == 1,
            None => self.beyond.contains(&vertex),
        }
    }

    fn insert(&mut self, vertex: IVec2) {
        match self.index(vertex) {
            Some(index) => self.bits[index / 64] |= 1 << (index % 64),
            None => drop(self.beyond.insert(vertex)),
        }
    }

    /// Members in a rectangle from the north-west sample that holds all present patches.
    fn count_within(&self, corner: IVec2) -> u64 {
        let inside: u64 = self.bits.iter().map(|word| word.count_ones() as u64).sum();
        inside
            + self
                .beyond
                .iter()
                .filter(|vertex| vertex.cmple(corner).all())
                .count() as u64
    }

    fn index(&self, vertex: IVec2) -> Option<usize> {
        let inside = vertex.cmplt(self.extent).all();
        inside.then(|| vertex.y as usize * self.extent.x as usize + vertex.x as usize)
    }
}

/// Leaves are measured to the end, for their certificate; what will be split only until that is
/// certain.
fn task(triangle: Triangle, threshold: f64, stride: i32) -> Task {
    let limit = if on_lattice(triangle, stride) {
        threshold
    } else {
        f64::INFINITY
    };
    Task { triangle, limit }
}

/// Whether the lattice has the middle of a triangle's hypotenuse.
pub fn on_lattice(triangle: Triangle, stride: i32) -> bool {
    let sum = triangle.a + triangle.b;
    (sum.x | sum.y) & (2 * stride - 1) == 0
}

#[cfg(test)]
mod tests {
    use super::super::height_map::HeightMap;
    use super::super::measure::{Measurer, Metric};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The naive twin: whole sets of triangles, split until nothing changes.
    fn naive(map: &HeightMap, metric: Metric, size: i32, threshold: f64) -> BTreeSet<[i32; 6]> {
        let complexity = |t: &Triangle| {
            let limit = f64::INFINITY;
            Measurer::new(map, metric, None)
                .measure(&Task {
                    triangle: *t,
                    limit,
                })
                .complexity
        };
        let name = |t: &Triangle| [t.a.x, t.a.y, t.b.x, t.b.y, t.c.x, t.c.y];
        let mut mesh: Vec<Triangle> = Triangle::roots(IVec2::ZERO, size, true).into();
        loop {
            let corners: BTreeSet<_> = mesh
                .iter()
                .flat_map(|t| [t.a, t.b, t.c])
                .map(|p| p.to_array())
                .collect();
            let cut = |p: IVec2, q: IVec2| {
                (p + q) % 2 == IVec2::ZERO && corners.contains(&((p + q) / 2).to_array())
            };
            let hanging = |t: &Triangle| cut(t.a, t.b) || cut(t.b, t.c) || cut(t.c, t.a);
            let divisible = |t: &Triangle| (t.a + t.b) % 2 == IVec2::ZERO;
            let split = |t: &Triangle| hanging(t) || divisible(t) && complexity(t) > threshold;
            if !mesh.iter().any(split) {
                return mesh.iter().map(name).collect();
            }
            mesh = mesh
                .iter()
                .flat_map(|t| {
                    if split(t) {
                        t.halves().to_vec()
                    } else {
                        vec![*t]
                    }
                })
                .collect();
        }
    }

    fn serial(map: &HeightMap, metric: Metric, sea: Option<f64>) -> impl MeasureAll {
        let measurer = Measurer::new(map, metric, sea);
        move |tasks: &[Task]| tasks.iter().map(|task| measurer.measure(task)).collect()
    }

    proptest! {
        #[test]
        fn the_mesh_is_the_smallest_one(heights in prop::collection::vec(-60i32..60, 17 * 17), threshold in 0u32..90, sum: bool) {
            let metric = if sum { Metric::Sum } else { Metric::Max };
            let threshold = if sum { threshold * 10 } else { threshold };
            let map = HeightMap { width: 17, height: 17, heights };
            let mut layout = Layout::new([16, 16], 16, 16).unwrap();
            layout.lattice_bias = 0;
            let mut refiner = Refiner::new(layout, serial(&map, metric, None));
            refiner.refine(0, threshold as f64, |_| ());
            let mesh: BTreeSet<_> = refiner.leaves().iter().map(|leaf| {
                let t = leaf.triangle;
                [t.a.x, t.a.y, t.b.x, t.b.y, t.c.x, t.c.y]
            }).collect();
            prop_assert_eq!(mesh, naive(&map, metric, 16, threshold as f64));
            prop_assert!(refiner.leaves().iter().all(|leaf| leaf.measure.complexity <= threshold as f64 || leaf.exhausted));
        }

        #[test]
        fn leaves_and_vertices_obey_euler(heights in prop::collection::vec(-60i32..60, 33 * 20)) {
            let map = HeightMap { width: 33, height: 20, heights };
            let layout = Layout::new([32, 19], 8, 16).unwrap();
            let mut refiner = Refiner::new(layout, serial(&map, Metric::Max, None));
            for level in (0..layout.levels).rev() {
                refiner.refine(level, 10.0 * (1 << level) as f64, |_| ());
                let size = layout.patch_size(level) as i32;
                let [nx, nz] = layout.patches(level).map(|n| n as i32);
                let covered = ivec2(nx, nz) * size;
                let inside = |leaf: &&Leaf| leaf.triangle.square(size).cmplt(ivec2(nx, nz)).all();
                let leaves: Vec<_> = refiner.leaves().iter().filter(inside).collect();
                let area: i32 = leaves.iter().map(|l| (l.triangle.b - l.triangle.a).perp_dot(l.triangle.c - l.triangle.a).abs()).sum();
                prop_assert_eq!(area, 2 * covered.x * covered.y);
                let on_border = |p: IVec2, q: IVec2| p.x == q.x && (p.x == 0 || p.x == covered.x) || p.y == q.y && (p.y == 0 || p.y == covered.y);
                let border_edges = leaves.iter().flat_map(|l| [(l.triangle.a, l.triangle.b), (l.triangle.b, l.triangle.c), (l.triangle.c, l.triangle.a)]).filter(|&(p, q)| on_border(p, q)).count();
                // V - E + F = 1 with E = (3 F + border) / 2: no T-junction, no stray vertex.
                let (v, f) = (refiner.vertices(level) as i64, leaves.len() as i64);
                prop_assert_eq!(2 * v - (3 * f + border_edges as i64) + 2 * f, 2);
            }
        }
    }

    #[test]
    fn a_shoreline_goes_down_to_the_lattice() {
        let map = HeightMap {
            width: 17,
            height: 17,
            heights: (0..17 * 17).map(|i| i % 17 - 5).collect(),
        };
        let layout = Layout::new([16, 16], 16, 16).unwrap();
        let mut refiner = Refiner::new(layout, serial(&map, Metric::Max, Some(0.0)));
        refiner.refine(0, 1000.0, |_| ());
        let crossing: Vec<_> = refiner
            .leaves()
            .iter()
            .filter(|leaf| leaf.measure.must_split)
            .collect();
        assert!(
            crossing.len() >= 16,
            "the plane crosses the sea level along a whole column"
        );
        assert!(crossing.iter().all(|leaf| !on_lattice(leaf.triangle, 1)));
    }
}
