//! Golden pictures of the built-in world, from a software adapter.
//!
//! A missing golden fails. After a change that is meant to show, look at the new pictures, then
//! run with `HIGHFELL_UPDATE_GOLDENS=1`. A picture that differs is left as `NAME.new.png` beside
//! its golden, with `NAME.diff.png`.

use std::path::PathBuf;
use std::time::Duration;

use glam::dvec3;
use highfell::modes::start_pose;
use highfell::render::Picture;
use highfell::scene::Scene;
use highfell::scene::hole_check::HoleCheck;
use highfell::settings::{Settings, Setup, Stats, View};
use highfell::terrain::camera::Pose;
use highfell::world::{Meta, PatchKey};
use image::RgbaImage;

use crate::common::{built_in_world, gpu};

const SIZE: [u32; 2] = [480, 270];
/// Squared distance of two colours, of at most 35,215, above which a pixel differs: about two
/// steps of grey.
const THRESHOLD: f32 = 4.0;
/// Pixels of 129,600 that may differ: edges that another version of the adapter rounds elsewhere.
const MAY_DIFFER: u32 = 20;
const VIEWS: [(View, &str); 3] = [
    (View::Shaded, "shaded"),
    (View::Wireframe, "wireframe"),
    (View::Level, "levels"),
];

#[test]
fn pictures_are_as_they_were() {
    let mut studio = Studio::new();
    let mut failures = Vec::new();
    for (camera, pose) in cameras(&studio.meta()) {
        for (view, view_name) in VIEWS {
            let picture = studio.picture(&pose, &settings(view, None));
            failures.extend(check(&format!("{camera}-{view_name}"), &picture).err());
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn a_picture_without_one_patch_is_told_apart() {
    let mut studio = Studio::new();
    let check = HoleCheck::new(studio.scene.world(), 1.0).expect("a sound world");
    let mut holes = 0;
    for (camera, pose) in cameras(&studio.meta()) {
        let whole = settings(View::Shaded, None);
        let hidden = studio.patch_in_the_middle(&pose, &whole);
        let without = settings(View::Shaded, Some(hidden));
        let golden = studio.picture(&pose, &whole);
        let picture = studio.picture(&pose, &without);
        let differ = different_pixels(&golden, &picture, THRESHOLD).0;
        assert!(
            differ > MAY_DIFFER,
            "{camera} without {hidden}: {differ} pixels differ"
        );
        holes += studio.holes(&check, &pose, &without);
        assert_eq!(studio.holes(&check, &pose, &whole), 0, "{camera}");
    }
    assert!(holes > 0, "no view without a patch has a hole");
}

#[test]
fn a_golden_must_be_there_and_differences_must_be_few() {
    let picture = RgbaImage::from_pixel(SIZE[0], SIZE[1], image::Rgba([90, 90, 90, 255]));
    let missing = compare("no-such-golden", None, &picture).unwrap_err();
    assert!(missing.contains("HIGHFELL_UPDATE_GOLDENS=1"), "{missing}");
    let with = |pixels: u32, value: u8| {
        let mut other = picture.clone();
        let changed = other.pixels_mut().take(pixels as usize);
        changed.for_each(|pixel| pixel.0[0] = value);
        different_pixels(&picture, &other, THRESHOLD).0
    };
    assert_eq!(with(MAY_DIFFER, 200), MAY_DIFFER);
    assert_eq!(with(MAY_DIFFER + 1, 100), MAY_DIFFER + 1);
    assert_eq!(with(1000, 91), 0, "one step of red is rounding");
}

/// What is worth guarding: mountains over all levels, a shore at eye height, slopes from above.
fn cameras(meta: &Meta) -> [(&'static str, Pose); 3] {
    let pose = |eye, yaw_deg, pitch_deg| Pose {
        eye,
        yaw_deg,
        pitch_deg,
    };
    [
        ("summit", start_pose(meta, 1.0)),
        ("beach", pose(dvec3(10_600.0, 22.0, 13_050.0), 318.0, -6.0)),
        (
            "steep",
            pose(dvec3(8_600.0, 2_570.0, 10_600.0), 320.0, -62.0),
        ),
    ]
}

fn settings(view: View, hidden_patch: Option<PatchKey>) -> Settings {
    Settings {
        view,
        hidden_patch,
        ..Settings::default()
    }
}

/// A scene of the built-in world and what takes pictures of it.
struct Studio {
    scene: Scene,
}

impl Studio {
    fn new() -> Self {
        Studio {
            scene: Scene::for_pictures(gpu(), built_in_world(), &Setup::default())
                .expect("a sound world"),
        }
    }

    fn meta(&self) -> Meta {
        self.scene.world().meta.clone()
    }

    fn settle(&mut self, pose: &Pose, settings: &Settings) {
        let timeout = Duration::from_secs(60);
        let settled = self.scene.settle(gpu(), pose, settings, SIZE, timeout);
        settled.expect("streaming ends");
    }

    fn picture(&mut self, pose: &Pose, settings: &Settings) -> RgbaImage {
        self.settle(pose, settings);
        let (picture, _) = self.drawn(pose, settings);
        let bytes = picture.pixels.into_iter().flatten().collect();
        RgbaImage::from_raw(SIZE[0], SIZE[1], bytes).expect("as many bytes as pixels")
    }

    fn holes(&mut self, check: &HoleCheck, pose: &Pose, settings: &Settings) -> u64 {
        self.settle(pose, settings);
        let holes = check.count(gpu(), &mut self.scene, pose, settings, SIZE, 0.0);
        holes.expect("the picture comes back")
    }

    /// The patch drawn where the middle of the picture meets the ground.
    fn patch_in_the_middle(&mut self, pose: &Pose, settings: &Settings) -> PatchKey {
        self.settle(pose, settings);
        let place = (1..)
            .map(|step| pose.eye + pose.forward() * (f64::from(step) * 10.0))
            .find(|p| p.y <= self.scene.ground_height_m(p.x, p.z, 1.0))
            .expect("the ground");
        let meta = self.meta();
        let [x, z] = [0, 1].map(|axis| ([place.x, place.z][axis] / meta.spacing_m[axis]) as u32);
        let keys = (0..meta.layout.levels).map(|level| {
            let size = meta.layout.patch_size(level);
            PatchKey::new(level, x / size, z / size)
        });
        // One patch of those over the place is drawn: without it, there is one less.
        let whole = self.patches_drawn(pose, settings);
        let is_drawn = |key: &PatchKey| {
            let without = Settings {
                hidden_patch: Some(*key),
                ..settings.clone()
            };
            self.patches_drawn(pose, &without) < whole
        };
        keys.into_iter().find(is_drawn).expect("a drawn patch")
    }

    fn patches_drawn(&mut self, pose: &Pose, settings: &Settings) -> u64 {
        let (_, stats) = self.drawn(pose, settings);
        stats.patches_drawn.iter().sum()
    }

    fn drawn(&mut self, pose: &Pose, settings: &Settings) -> (Picture, Stats) {
        let picture = self.scene.picture(gpu(), pose, settings, SIZE, 0.0);
        picture.expect("the picture comes back")
    }
}

/// Compares a picture with its golden, or first writes the golden where that was asked for.
fn check(name: &str, picture: &RgbaImage) -> Result<(), String> {
    let golden = golden_path(name, "png");
    if std::env::var_os("HIGHFELL_UPDATE_GOLDENS").is_some_and(|value| value == "1") {
        save(picture, &golden);
    }
    let stored = golden.exists().then(|| {
        let image = image::open(&golden).unwrap_or_else(|error| panic!("{name}: {error}"));
        image.to_rgba8()
    });
    compare(name, stored, picture)
}

fn compare(name: &str, golden: Option<RgbaImage>, picture: &RgbaImage) -> Result<(), String> {
    let Some(golden) = golden else {
        return Err(format!(
            "{name}: there is no golden picture; HIGHFELL_UPDATE_GOLDENS=1 writes it"
        ));
    };
    let (differ, difference) = different_pixels(&golden, picture, THRESHOLD);
    let leftovers = [golden_path(name, "new.png"), golden_path(name, "diff.png")];
    if differ <= MAY_DIFFER {
        // What an earlier failure left behind is no longer true.
        leftovers
            .iter()
            .for_each(|path| drop(std::fs::remove_file(path)));
        return Ok(());
    }
    save(picture, &leftovers[0]);
    save(&difference, &leftovers[1]);
    let counts = [0.0, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0].map(|threshold| {
        let count = different_pixels(&golden, picture, threshold).0;
        format!("{count} above {threshold}")
    });
    let counts = counts.join(", ");
    Err(format!(
        "{name}: {differ} pixels differ, at most {MAY_DIFFER} may ({counts}); see {}",
        leftovers[1].display()
    ))
}

/// How many pixels differ by more than a threshold, and where.
fn different_pixels(left: &RgbaImage, right: &RgbaImage, threshold: f32) -> (u32, RgbaImage) {
    assert_eq!(left.dimensions(), right.dimensions());
    let (left, right) = (left.clone(), right.clone());
    let results = dify::diff::get_results(
        left.clone(),
        right,
        threshold,
        false,
        Some(0.2),
        &None,
        &None,
    );
    results.map_or((0, left), |(count, picture)| (count as u32, picture))
}

fn golden_path(name: &str, ending: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    PathBuf::from(folder).join(format!("{name}.{ending}"))
}

fn save(picture: &RgbaImage, path: &std::path::Path) {
    let rgb = image::DynamicImage::from(picture.clone()).to_rgb8();
    rgb.save(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
