//! No pop: the same camera on either side of a change of levels.
//!
//! Levels are chosen from two places 1 cm apart between which a patch takes the place of its
//! children, found by halving ways through the air. `HIGHFELL_LONG=1` takes ten times as many.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use glam::{DVec3, dvec3};
use highfell::modes::GroundReader;
use highfell::render::Picture;
use highfell::scene::Scene;
use highfell::scene::hole_check::all_heights;
use highfell::settings::{Settings, Setup, Stats};
use highfell::terrain::camera::{HeldCamera, Pose, Viewpoint};
use highfell::terrain::decision::Decision;
use highfell::terrain::height_map::HeightMap;
use highfell::terrain::lod::{self, Memory, Selected, Selection};
use highfell::terrain::patch_tree::{PatchFacts, PatchTree};
use highfell::world::{Meta, PatchKey, World};

use crate::common::{SplitMix, built_in_world, gpu};

const SIZE: [u32; 2] = [320, 180];
const APART_M: f64 = 0.01;
/// Above the drawn ground, whatever its level.
const CLEAR_M: f64 = 100.0;
/// A step of 8-bit colours that nobody sees.
const UNSEEN: u8 = 2;
/// Pixels of 10,000 that may differ by more, at edges.
const MAY_DIFFER: usize = 1;

/// All patches of a world, as if every one were loaded.
fn all_loaded(world: &World) -> PatchTree {
    let layout = &world.meta.layout;
    let mut tree = PatchTree::new(*layout);
    let mut above: HashMap<_, _> = HashMap::new();
    for level in (0..layout.levels).rev() {
        for key in layout.sections(level) {
            let coarser = layout.coarser_section(key);
            let coarser = coarser.and_then(|key| above.get(&key));
            let section = world.read_section(key, coarser).expect("a sound world");
            let [x0, z0, x1, z1] = layout.section_patches(key);
            for (x, z) in (z0..z1).flat_map(|z| (x0..x1).map(move |x| (x, z))) {
                let key = PatchKey::new(level, x, z);
                let record = section.patch(key);
                let facts = PatchFacts {
                    heights: [record.min, record.max],
                    ..PatchFacts::default()
                };
                tree.insert(key, facts);
            }
            above.insert(key, section.heights.clone());
        }
    }
    tree
}

/// A change of levels between two places.
struct Switch {
    camera: Pose,
    sides: [DVec3; 2],
    level: u8,
    /// Looks straight down on the coarse one of the patches that change; it fills the picture.
    above: Pose,
}

struct Finder {
    world: Arc<World>,
    patches: PatchTree,
    random: SplitMix,
}

impl Finder {
    fn cut(&self, eye: DVec3) -> Vec<Selected> {
        let meta = &self.world.meta;
        let settings = Settings::default();
        let pose = Pose {
            eye,
            yaw_deg: 0.0,
            pitch_deg: 0.0,
        };
        let view = Viewpoint::new(&pose, settings.fov_deg, SIZE);
        let ranges = lod::ranges(meta, &settings.lod, view.pixels_per_radian);
        let memory = Memory {
            loaded: &self.patches,
            heights: |_| None,
            most: usize::MAX,
        };
        let mut selection = Selection::default();
        let decision = Decision::Ranges(ranges);
        lod::select(meta, &decision, 1.0, &view, &memory, &mut selection);
        selection.cut
    }

    /// A way through the air, halved until its ends are close together and choose differently.
    fn next(&mut self) -> Switch {
        loop {
            let [width, depth] = self.world.meta.size_m();
            let mut reader = GroundReader::open(&self.world, 1.0).expect("a sound world");
            let mut ground = |x, z| reader.at(x, z).expect("a sound world");
            let mut place = || {
                let [x, y, z] = [(); 3].map(|()| self.random.within(0.0, 1.0));
                let (x, z) = (x * width, z * depth);
                dvec3(x, ground(x, z) + CLEAR_M + y * y * 3000.0, z)
            };
            let (mut a, b) = (place(), place());
            let mut b = a + (b - a).clamp_length_max(800.0);
            let keys = |cut: &[Selected]| cut.iter().map(|s| s.key).collect::<HashSet<_>>();
            let mut cut_a = self.cut(a);
            let mut cut_b = self.cut(b);
            if keys(&cut_a) == keys(&cut_b) {
                continue;
            }
            while a.distance(b) > APART_M {
                let middle = a.midpoint(b);
                let cut = self.cut(middle);
                if keys(&cut) == keys(&cut_a) {
                    (a, cut_a) = (middle, cut);
                } else {
                    (b, cut_b) = (middle, cut);
                }
            }
            // From under the ground all is seen that is there to be hidden.
            if a.y < ground(a.x, a.z) + CLEAR_M {
                continue;
            }
            // The coarse one of the patches that change.
            let (before, after) = (keys(&cut_a), keys(&cut_b));
            let changed = cut_a.iter().chain(&cut_b);
            let changed = changed.filter(|s| before.contains(&s.key) != after.contains(&s.key));
            let coarse = changed.max_by_key(|selected| selected.key.level);
            let coarse = coarse.expect("they choose differently");
            let target = coarse.bounds.min.midpoint(coarse.bounds.max);
            let size_m = coarse.bounds.max.x - coarse.bounds.min.x;
            let eye = target.with_y(coarse.bounds.max.y + 0.7 * size_m);
            let above = Pose::looking_at(eye, eye - DVec3::Y);
            return Switch {
                above,
                camera: Pose::looking_at(a, target),
                sides: [a, b],
                level: coarse.key.level,
            };
        }
    }
}

/// Distances of neighbouring pixels leap where they differ by more than this factor.
const LEAP: f64 = 1.05;

/// What a ray meets first, by small steps over the full-resolution ground.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Met {
    Ground(f64),
    Sea,
    Sky,
}

struct Rays<'a> {
    map: HeightMap,
    meta: &'a Meta,
    sea: bool,
}

impl<'a> Rays<'a> {
    fn of(world: &'a World, sea: bool) -> Self {
        Rays {
            map: all_heights(world).expect("a sound world"),
            meta: &world.meta,
            sea,
        }
    }

    fn ground_m(&self, x_m: f64, z_m: f64) -> Option<f64> {
        let [x, z] = [x_m / self.meta.spacing_m[0], z_m / self.meta.spacing_m[1]];
        let [width, depth] = self.meta.layout.size_cells.map(f64::from);
        let inside = (0.0..=width).contains(&x) && (0.0..=depth).contains(&z);
        inside.then(|| self.map.at(x as i64, z as i64) as f64 * self.meta.height_step_m)
    }

    fn meets(&self, eye: DVec3, ray: DVec3) -> Met {
        let ray = ray.normalize();
        let mut far_m = 1.0;
        while far_m < 60_000.0 {
            let place = eye + ray * far_m;
            if self.ground_m(place.x, place.z).is_some_and(|y| place.y < y) {
                return Met::Ground(far_m);
            }
            if self.sea && place.y < 0.0 {
                return Met::Sea;
            }
            far_m *= 1.002;
        }
        Met::Sky
    }

    /// Whether distances leap within a pixel of one: between two pixels of which one is that or
    /// beside it.
    fn is_edge(&self, pose: &Pose, x: usize, y: usize) -> bool {
        let view = Viewpoint::new(pose, Settings::default().fov_deg, SIZE);
        let around = (0..25).map(|i| {
            let [u, v] = [(x + i % 5) as f64 - 1.5, (y + i / 5) as f64 - 1.5];
            let ray = view.ray(u / f64::from(SIZE[0]), v / f64::from(SIZE[1]));
            self.meets(pose.eye, ray)
        });
        let met: Vec<Met> = around.collect();
        let leaps = |i: usize, j: usize| match (met[i], met[j]) {
            (Met::Ground(a), Met::Ground(b)) => (a / b).max(b / a) > LEAP,
            (a, b) => a != b,
        };
        (0..25).any(|i| (i % 5 < 4 && leaps(i, i + 1)) || (i < 20 && leaps(i, i + 5)))
    }
}

/// What was met.
#[derive(Default)]
struct Cases {
    by_level: [usize; 8],
    /// Pixels that differ visibly, by switch.
    differ: Vec<usize>,
    /// Those of them that lie at no edge.
    inside: Vec<String>,
    largest_pop_px: f64,
}

/// The built-in world, its switches and its scene.
struct Stage {
    finder: Finder,
    scene: Scene,
}

impl Stage {
    fn new() -> Self {
        let world = built_in_world();
        let scene = Scene::for_pictures(gpu(), world.clone(), &Setup::default());
        Stage {
            finder: Finder {
                patches: all_loaded(&world),
                world,
                random: SplitMix(7),
            },
            scene: scene.expect("a sound world"),
        }
    }
}

fn chosen_from(side: DVec3, morph: bool) -> Settings {
    Settings {
        lod_camera: Some(HeldCamera {
            pose: Pose {
                eye: side,
                yaw_deg: 0.0,
                pitch_deg: 0.0,
            },
            culls: false,
        }),
        morph,
        ..Settings::default()
    }
}

fn look_at_switches(count: usize, morph: bool) -> Cases {
    let mut stage = Stage::new();
    let world = stage.finder.world.clone();
    let rays = Rays::of(&world, true);
    let mut cases = Cases::default();
    for _ in 0..count {
        let switch = stage.finder.next();
        let [(before, _), (after, stats)] = switch
            .sides
            .map(|side| picture(&mut stage.scene, &switch.camera, &chosen_from(side, morph)));
        let differ = visibly_different(&before, &after);
        let width = SIZE[0] as usize;
        for &(i, step) in &differ {
            let [x, y] = [i % width, i / width];
            if rays.is_edge(&switch.camera, x, y) {
                continue;
            }
            let told = format!("{step} at {x}, {y} of --camera {}", switch.camera);
            cases.inside.push(told);
        }
        cases.by_level[switch.level as usize] += 1;
        cases.differ.push(differ.len());
        cases.largest_pop_px = cases.largest_pop_px.max(stats.largest_pop_px);
    }
    cases
}

fn picture(scene: &mut Scene, pose: &Pose, settings: &Settings) -> (Picture, Stats) {
    let timeout = Duration::from_secs(60);
    let settled = scene.settle(gpu(), pose, settings, SIZE, timeout);
    settled.expect("streaming ends");
    let picture = scene.picture(gpu(), pose, settings, SIZE, 0.0);
    picture.expect("the picture comes back")
}

/// The pixels that differ by more than nobody sees, with their steps.
fn visibly_different(a: &Picture, b: &Picture) -> Vec<(usize, u8)> {
    let pairs = a.pixels.iter().zip(&b.pixels);
    let steps = pairs.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max());
    let steps = steps.map(|step| step.expect("four colours")).enumerate();
    steps.filter(|&(_, step)| step > UNSEEN).collect()
}

#[test]
fn a_change_of_levels_shows_nothing() {
    let long = std::env::var_os("HIGHFELL_LONG").is_some_and(|value| value == "1");
    let count = if long { 1000 } else { 100 };
    let cases = look_at_switches(count, true);
    let most = cases.differ.iter().copied().max().expect("a switch");
    let sum: usize = cases.differ.iter().sum();
    println!(
        "{count} switches, by level {:?}: {sum} pixels, {most} in one picture, {} at no edge, pop of {} px",
        cases.by_level,
        cases.inside.len(),
        cases.largest_pop_px
    );
    let levels = cases.by_level.iter().filter(|&&count| count > 0);
    assert!(levels.count() >= 4, "{:?}", cases.by_level);
    let pixels = (SIZE[0] * SIZE[1]) as usize;
    assert!(most <= pixels * MAY_DIFFER / 10_000, "{:?}", cases.differ);
    assert_eq!(cases.inside, Vec::<String>::new(), "not at an edge");
    assert_eq!(cases.largest_pop_px, 0.0);
}

#[test]
fn without_the_morph_a_change_of_levels_shows() {
    let cases = look_at_switches(20, false);
    let pixels = (SIZE[0] * SIZE[1]) as usize;
    let shown = cases
        .differ
        .iter()
        .filter(|&&n| n > pixels * MAY_DIFFER / 10_000);
    assert!(shown.count() >= 5, "{:?}", cases.differ);
    assert!(!cases.inside.is_empty() && cases.largest_pop_px > 0.1);
}

#[test]
fn from_straight_above_light_does_not_pop() {
    let mut stage = Stage::new();
    let world = stage.finder.world.clone();
    let rays = Rays::of(&world, false);
    let (mut changed, mut seen) = (0, Vec::new());
    for _ in 0..60 {
        let switch = stage.finder.next();
        let above = switch.above;
        let [before, after] = switch.sides.map(|side| {
            let settings = Settings {
                water: false,
                ..chosen_from(side, true)
            };
            picture(&mut stage.scene, &above, &settings).0
        });
        changed += usize::from(before != after);
        let places = visibly_different(&before, &after).into_iter();
        let places = places.map(|(i, step)| (i % SIZE[0] as usize, i / SIZE[0] as usize, step));
        // From above, only the world's border is an edge.
        let inside = places.filter(|&(x, y, _)| !rays.is_edge(&above, x, y));
        seen.extend(inside.map(|(x, y, step)| format!("{step} at {x}, {y} of --camera {above}")));
    }
    assert!(changed > 10, "only {changed} pictures changed at all");
    assert_eq!(seen, Vec::<String>::new());
}
