//! The frame: how draws are handed over and which triangles are drawn change no more than they
//! should.

use std::time::Duration;

use glam::dvec3;
use highfell::compile::CompileOptions;
use highfell::render::Picture;
use highfell::scene::Scene;
use highfell::scene::hole_check::HoleCheck;
use highfell::settings::{Settings, Setup, Stats, View};
use highfell::terrain::camera::{HeldCamera, Pose};
use highfell::terrain::mesh::Mesher;

use crate::common::{built_in_world, gpu, in_memory, rough_source};

const SIZE: [u32; 2] = [320, 180];
const TIMEOUT: Duration = Duration::from_secs(60);

/// From the sea over the coast to the mountains; along a slope; straight down.
fn cameras() -> [Pose; 3] {
    let pose = |x, y, z, yaw_deg, pitch_deg| Pose {
        eye: dvec3(x, y, z),
        yaw_deg,
        pitch_deg,
    };
    [
        pose(10_600.0, 220.0, 13_050.0, 318.0, -6.0),
        pose(8_600.0, 2_570.0, 10_600.0, 320.0, -62.0),
        pose(8_000.0, 3_000.0, 8_000.0, 0.0, -90.0),
    ]
}

fn settled(setup: &Setup, pose: &Pose, settings: &Settings) -> (Picture, Stats) {
    let mut scene = Scene::for_pictures(gpu(), built_in_world(), setup).expect("a sound world");
    let settled = scene.settle(gpu(), pose, settings, SIZE, TIMEOUT);
    settled.expect("streaming ends");
    let picture = scene.picture(gpu(), pose, settings, SIZE, 0.0);
    picture.expect("the picture comes back")
}

/// By how much two pictures differ in any colour of any pixel.
fn largest_step(a: &Picture, b: &Picture) -> u8 {
    let colors = |picture: &Picture| picture.pixels.concat();
    let pairs = colors(a).into_iter().zip(colors(b));
    pairs.map(|(a, b)| a.abs_diff(b)).max().expect("pixels")
}

fn view(view: View) -> Settings {
    Settings {
        view,
        ..Settings::default()
    }
}

#[test]
fn one_call_draws_what_one_a_patch_does() {
    let one_a_patch = Setup {
        multi_draw: false,
        ..Setup::default()
    };
    for view in [View::Shaded, View::Wireframe].map(view) {
        for pose in cameras() {
            let (many, few_calls) = settled(&Setup::default(), &pose, &view);
            let (each, calls) = settled(&one_a_patch, &pose, &view);
            // Where a patch's normals lie in their atlas depends on what came first, and rounding
            // on where they lie.
            assert!(largest_step(&many, &each) <= 2, "{pose} {:?}", view.view);
            let patches: u64 = calls.patches_drawn.iter().sum();
            assert!(patches > 10, "{pose}: only {patches} patches");
            assert_eq!(calls.draws, patches);
            assert!(few_calls.draws <= 2, "{} calls", few_calls.draws);
            assert_eq!(few_calls.triangles, calls.triangles);
        }
    }
}

#[test]
fn the_grid_draws_every_lattice_whole_and_leaves_no_hole() {
    let setup = Setup {
        mesher: Mesher::Grid,
        ..Setup::default()
    };
    let world = built_in_world();
    let layout = world.meta.layout;
    let settings = Settings::default();
    let check = HoleCheck::new(&world, 1.0).expect("a sound world");
    let mut scene = Scene::for_pictures(gpu(), world, &setup).expect("a sound world");
    for pose in cameras() {
        // Before and after all that is wanted has come.
        let (_, stats) = scene.picture(gpu(), &pose, &settings, SIZE, 0.0).unwrap();
        assert!(stats.patches_missing > 0, "nothing streams");
        let settled = scene.settle(gpu(), &pose, &settings, SIZE, TIMEOUT);
        settled.expect("streaming ends");
        let (_, stats) = scene.picture(gpu(), &pose, &settings, SIZE, 0.0).unwrap();
        let triangles = (0..layout.levels).zip(&stats.patches_drawn);
        let triangles = triangles.map(|(level, patches)| {
            let cells = u64::from(layout.lattice_cells(level));
            patches * 2 * cells * cells
        });
        assert_eq!(stats.triangles, triangles.sum::<u64>());
        let (_, trees) = self::settled(&Setup::default(), &pose, &settings);
        assert!(trees.triangles * 2 < stats.triangles, "{pose}");
        let holes = check.count(gpu(), &mut scene, &pose, &settings, SIZE, 0.0);
        assert_eq!(holes.unwrap(), 0, "{pose}");
    }
}

#[test]
fn four_samples_change_edges_and_nothing_else() {
    let four = Setup {
        msaa: 4,
        ..Setup::default()
    };
    let [pose, ..] = cameras();
    let (single, _) = settled(&Setup::default(), &pose, &view(View::Level));
    let (smooth, _) = settled(&four, &pose, &view(View::Level));
    let differs = |(a, b): (&[u8; 4], &[u8; 4])| (0..3).any(|i| a[i].abs_diff(b[i]) > 8);
    let pairs = single.pixels.iter().zip(&smooth.pixels);
    let changed: Vec<usize> = (0..)
        .zip(pairs)
        .filter_map(|(i, pair)| differs(pair).then_some(i))
        .collect();
    assert!(changed.len() > 100, "{} pixels changed", changed.len());
    // Each lies beside a pixel of quite another colour.
    let width = SIZE[0] as usize;
    let beside = |i: usize| {
        [i.wrapping_sub(1), i + 1, i.wrapping_sub(width), i + width]
            .into_iter()
            .filter_map(|j| single.pixels.get(j))
            .any(|other| differs((other, &single.pixels[i])))
    };
    let inside = changed.iter().filter(|&&i| !beside(i)).count();
    assert!(
        inside * 10 < changed.len(),
        "{inside} of {} pixels are no edge's",
        changed.len()
    );
}

/// A scene of the built-in world that is flown over in steps, all that is wanted there at each.
struct Flight {
    scene: Scene,
}

impl Flight {
    fn new() -> Self {
        let scene = Scene::for_pictures(gpu(), built_in_world(), &Setup::default());
        Flight {
            scene: scene.expect("a sound world"),
        }
    }

    fn settled(&mut self, pose: &Pose, settings: &Settings) -> Stats {
        let settled = (self.scene).settle(gpu(), pose, settings, SIZE, TIMEOUT);
        settled.expect("streaming ends");
        self.next(pose, settings, 0.0)
    }

    fn next(&mut self, pose: &Pose, settings: &Settings, seconds: f64) -> Stats {
        let picture = (self.scene).picture(gpu(), pose, settings, SIZE, seconds);
        picture.expect("the picture comes back").1
    }
}

#[test]
fn a_slow_flight_changes_levels_without_a_pop() {
    let mut flight = Flight::new();
    let settings = Settings::default();
    let [start, ..] = cameras();
    let (mut changes, mut steps, mut largest_px) = (0, [0; 8], 0.0f64);
    let mut last = Vec::new();
    for frame in 0..120 {
        let mut pose = start;
        pose.eye += start.forward() * (f64::from(frame) * 8.0) + glam::DVec3::Y * 400.0;
        let stats = flight.settled(&pose, &settings);
        largest_px = largest_px.max(stats.largest_pop_px);
        changes += usize::from(frame > 0 && stats.patches_drawn != last);
        (0..)
            .zip(&stats.neighbour_level_steps)
            .for_each(|(i, n): (usize, _)| steps[i] += n);
        last = stats.patches_drawn;
    }
    assert!(changes > 20, "only {changes} changes of levels");
    assert!(steps[0] > 1000 && steps[1] > 100, "{steps:?}");
    assert_eq!(steps[2..], [0; 6], "levels between neighbours");
    assert!(largest_px < 0.05, "a pop of {largest_px} px");
}

#[test]
fn the_pop_meter_sees_a_range_that_jumps() {
    let mut flight = Flight::new();
    let [pose, ..] = cameras();
    let mut settings = Settings::default();
    settings.lod.pixel_error = 0.25;
    let before = flight.settled(&pose, &settings);
    assert_eq!(flight.settled(&pose, &settings).largest_pop_px, 0.0);
    settings.lod.pixel_error = 8.0;
    let stats = flight.settled(&pose, &settings);
    assert_ne!(stats.patches_drawn, before.patches_drawn);
    assert!(stats.largest_pop_px > 0.5, "{} px", stats.largest_pop_px);
}

#[test]
fn a_frame_at_rest_writes_nothing_and_is_timed() {
    let mut flight = Flight::new();
    let settings = Settings::default();
    let [pose, other, _] = cameras();
    let first = flight.settled(&pose, &settings);
    assert!(first.frame_bytes > 1000 && first.upload_bytes > 100_000);
    let rest = flight.next(&pose, &settings, 0.0);
    assert_eq!((rest.frame_bytes, rest.upload_bytes), (0, 0));
    // The time that passes is a uniform.
    let later = flight.next(&pose, &settings, 1.0);
    assert!(
        (1..=512).contains(&later.frame_bytes),
        "{}",
        later.frame_bytes
    );
    assert!(flight.next(&other, &settings, 1.0).frame_bytes > 0);
    let cpu = later.cpu_ms;
    let stages = [cpu.select, cpu.stream, cpu.cull, cpu.encode];
    assert!(stages.iter().all(|&ms| ms > 0.0), "{cpu:?}");
    assert!(stages.iter().sum::<f64>() <= cpu.total, "{cpu:?}");
    assert!(later.gpu_ms["world"] > 0.0, "{:?}", later.gpu_ms);
}

#[test]
fn a_held_camera_decides_what_is_drawn_and_the_other_how_it_looks() {
    let [_, pose, _] = cameras();
    let held = |pose: Pose, culls| Settings {
        lod_camera: Some(HeldCamera { pose, culls }),
        ..Settings::default()
    };
    let free = settled(&Setup::default(), &pose, &Settings::default());
    let same = settled(&Setup::default(), &pose, &held(pose, true));
    // Normals lie elsewhere in the atlas where patches came in another order.
    let is_as_free = |picture: &Picture| largest_step(picture, &free.0) <= 2;
    assert!(is_as_free(&same.0));
    let away = Pose {
        yaw_deg: pose.yaw_deg + 180.0,
        pitch_deg: 10.0,
        ..pose
    };
    let [culled, whole] = [true, false].map(|culls| {
        let (picture, stats) = settled(&Setup::default(), &pose, &held(away, culls));
        (picture, stats.patches_drawn.iter().sum::<u64>())
    });
    assert!(!is_as_free(&culled.0) && culled.1 < whole.1 / 2);
    // Chosen from the same place, in view of this one.
    assert!(is_as_free(&whole.0));
}

/// The counters of a scene over rough ground when it has settled.
fn over_rough_ground(cells: u32, mesher: Mesher, pixel_error: f64) -> Stats {
    let side = 2305;
    let options = CompileOptions {
        patch_cells: cells,
        ..Default::default()
    };
    let world = in_memory(&rough_source(side, side), &options);
    let setup = Setup {
        mesher,
        ..Setup::default()
    };
    let mut scene = Scene::for_pictures(gpu(), world, &setup).unwrap();
    let mut settings = Settings::default();
    settings.lod.pixel_error = pixel_error;
    let pose = Pose {
        eye: dvec3(f64::from(side) * 3.5, 400.0, f64::from(side) * 5.5),
        yaw_deg: 20.0,
        pitch_deg: -10.0,
    };
    scene
        .settle(gpu(), &pose, &settings, SIZE, 2 * TIMEOUT)
        .unwrap();
    let (_, stats) = scene.picture(gpu(), &pose, &settings, SIZE, 0.0).unwrap();
    stats
}

#[test]
fn memory_is_counted_in_bytes_and_not_in_the_largest_patches() {
    let stats = over_rough_ground(128, Mesher::Static, 0.05);
    let resident: u64 = stats.patches_resident.iter().sum();
    // Of the largest patches there were 168 at most, of whatever size they really are.
    assert!(resident > 250, "{resident} patches");
    assert_eq!((stats.finest_level, stats.patches_missing), (0, 0));
    assert!(stats.gpu_bytes <= stats.gpu_allocated_bytes);
    assert!(
        stats.gpu_allocated_bytes < 300 << 20,
        "{}",
        stats.gpu_allocated_bytes
    );
}

#[test]
fn what_finds_no_room_is_drawn_coarser_and_nothing_is_missing() {
    let stats = over_rough_ground(64, Mesher::Grid, 0.002);
    assert!(stats.finest_level > 0, "more was asked for than fits");
    assert_eq!((stats.patches_missing, stats.stream.failed), (0, 0));
    assert!(stats.gpu_allocated_bytes <= 400 << 20);
}
