//! From the selected cut to the list of draws: what is in view, how it morphs, how deep its
//! skirts hang.

use super::pops::Jump;
use super::{FADE_S, Loaded, Place, Scene};
use crate::render::{Cut, DrawPatch, split_eye};
use crate::settings::Settings;
use crate::terrain::camera::{Bounds, Viewpoint};
use crate::terrain::lod::{Range, Selected, Selection};
use crate::world::{Layout, PatchKey};
use glam::{DVec3, ivec2};
use rustc_hash::FxHashMap;

/// What of a selection is drawn, and what is to be said of it.
pub struct Drawn {
    /// Those that are not cut first, each group near to far.
    pub draws: Vec<DrawPatch>,
    pub patches_by_level: Vec<u64>,
    pub jumps: FxHashMap<PatchKey, Jump>,
    pub neighbour_level_steps: Vec<u64>,
    pub errors: DrawnErrors,
}

/// Leaves out what is not in view.
pub fn cull(
    scene: &Scene,
    viewpoint: &Viewpoint,
    settings: &Settings,
    ranges: &[Range],
    selection: &Selection,
    seconds: f64,
) -> Drawn {
    let meta = &scene.world.meta;
    let levels = meta.layout.levels as usize;
    let exaggeration = settings.lod.exaggeration;
    let (eye_cell, ..) = split_eye(meta, exaggeration, viewpoint.eye);
    let skirts = Skirts::new(scene, settings);
    let mut draws: Vec<(f64, DrawPatch)> = Vec::new();
    let mut drawn = Drawn {
        draws: Vec::new(),
        patches_by_level: vec![0; levels],
        jumps: FxHashMap::default(),
        neighbour_level_steps: vec![0; levels],
        errors: DrawnErrors::default(),
    };
    for selected in &selection.cut {
        let (key, loaded) = (selected.key, scene.loaded[&selected.key]);
        drawn
            .errors
            .look_under_eye(selected, &loaded, viewpoint.eye, exaggeration);
        let error_m = loaded.largest_error_m() * exaggeration;
        let may_be_seen = |skirt_m| viewpoint.sees(&grown(selected.bounds, error_m, skirt_m));
        // Most are out of view however deep their skirts hang.
        if !may_be_seen(error_m + skirts.deepest_m) || loaded.absent {
            continue;
        }
        let beside = neighbour_levels(&meta.layout, &scene.drawn, key);
        let skirt_m = skirts.depth_m(key, error_m, beside);
        if !may_be_seen(skirt_m) || settings.hidden_patch == Some(key) {
            continue;
        }
        let range = ranges.get(key.level as usize).filter(|_| settings.morph);
        let (morph_from_m, morph_to_m) =
            range.map_or((0.0, 0.0), |range| (range.morph_from_m, range.morph_to_m));
        let fade = match settings.morph {
            true => 1.0 - (seconds - loaded.replaced_parent_s) / FADE_S,
            false => 0.0,
        };
        let size = meta.layout.patch_size(key.level) as i32;
        let corner = ivec2(key.x as i32, key.z as i32) * size;
        let draw = DrawPatch {
            key,
            origin: (corner - eye_cell).to_array(),
            morph_from_m: morph_from_m as f32,
            morph_to_m: morph_to_m as f32,
            least_morph: fade.clamp(0.0, 1.0) as f32,
            skirt_m: skirt_m as f32,
            cut: if loaded.has_voids {
                Cut::Voids
            } else if touches_border(&meta.layout, key) {
                Cut::Border
            } else {
                Cut::Nowhere
            },
        };
        let nearest_m = selected.bounds.distance(viewpoint.eye);
        let pixels = viewpoint.pixels_per_radian;
        let lod_m = selected.bounds.distance(viewpoint.lod_eye);
        let jump = Jump::of(&loaded, &draw, [lod_m, nearest_m], exaggeration, pixels);
        drawn.jumps.insert(key, jump);
        drawn.patches_by_level[key.level as usize] += 1;
        for level in beside.into_iter().flatten() {
            drawn.neighbour_level_steps[(level - key.level) as usize] += 1;
        }
        (drawn.errors).add(selected, &loaded, &draw, nearest_m, viewpoint, exaggeration);
        draws.push((nearest_m, draw));
    }
    draws.sort_by(|(a_m, a), (b_m, b)| {
        let order = a.cut.cmp(&b.cut).then(a_m.total_cmp(b_m));
        order.then(a.key.cmp(&b.key))
    });
    drawn.draws = draws.into_iter().map(|(_, draw)| draw).collect();
    drawn
}

/// T-junctions leave gaps of a rounding error even where no mesh is wrong: skirts hang at least by
/// this share of a step of the lattice.
const LEAST_SKIRT: f64 = 0.1;

/// How deep skirts must hang.
struct Skirts<'a> {
    layout: &'a Layout,
    /// `E_k` as drawn, by level.
    level_errors_m: Vec<f64>,
    /// No skirt hangs deeper by more than its patch's own error.
    deepest_m: f64,
    spacing_m: f64,
    wanted: bool,
}

impl<'a> Skirts<'a> {
    fn new(scene: &'a Scene, settings: &Settings) -> Self {
        let meta = &scene.world.meta;
        let factor = f64::from(scene.mesher.error_factor()) * settings.lod.exaggeration;
        let exaggerated = |error: f64| error * factor;
        let errors_m: Vec<f64> = meta.errors_m().into_iter().map(exaggerated).collect();
        let spacing_m = meta.spacing_m[0].min(meta.spacing_m[1]);
        let widest_m = meta.layout.stride(meta.layout.coarsest()) as f64 * spacing_m;
        Skirts {
            layout: &meta.layout,
            deepest_m: errors_m
                .iter()
                .copied()
                .fold(LEAST_SKIRT * widest_m, f64::max),
            level_errors_m: errors_m,
            spacing_m,
            wanted: settings.skirts,
        }
    }

    /// Both sides of a border lie within their errors of the heights; the other side's is at
    /// most that of its level, or of the next where it morphs.
    fn depth_m(&self, key: PatchKey, error_m: f64, beside: [Option<u8>; 4]) -> f64 {
        if !self.wanted {
            return 0.0;
        }
        let coarsest = beside.into_iter().flatten().fold(key.level, u8::max);
        let beside = (coarsest + 1).min(self.layout.coarsest());
        let least = LEAST_SKIRT * self.layout.stride(key.level) as f64 * self.spacing_m;
        (error_m + self.level_errors_m[beside as usize]).max(least)
    }
}

/// The largest errors of what is drawn.
#[derive(Default)]
pub struct DrawnErrors {
    pub metres: f64,
    /// In the middle of the picture; of patches that the eye is not inside of.
    pub pixels: f64,
    /// Of the patch under or over the eye, in metres; 0 beside the ground.
    pub at_eye_m: f64,
}

impl DrawnErrors {
    fn look_under_eye(
        &mut self,
        selected: &Selected,
        loaded: &Loaded,
        eye: DVec3,
        exaggeration: f64,
    ) {
        let bounds = &selected.bounds;
        if (bounds.min.x..=bounds.max.x).contains(&eye.x)
            && (bounds.min.z..=bounds.max.z).contains(&eye.z)
        {
            let error_m = loaded.largest_error_m() * exaggeration;
            self.at_eye_m = self.at_eye_m.max(error_m);
        }
    }

    fn add(
        &mut self,
        selected: &Selected,
        loaded: &Loaded,
        draw: &DrawPatch,
        nearest_m: f64,
        viewpoint: &Viewpoint,
        exaggeration: f64,
    ) {
        let own_m = loaded.error_m as f64 * exaggeration;
        let either_m = loaded.largest_error_m() * exaggeration;
        // The parent's error only counts where the morph has begun.
        let fades = draw.least_morph > 0.0;
        let from_m = if fades { 0.0 } else { draw.morph_from_m as f64 };
        let morphs = selected.bounds.farthest(viewpoint.lod_eye) > from_m;
        // Where levels are chosen from elsewhere, any place may morph.
        let held = viewpoint.lod_eye != viewpoint.eye;
        let morphs_from_m = if held { 0.0 } else { from_m };
        self.metres = self.metres.max(if morphs { either_m } else { own_m });
        // Closer than its error, a bound in pixels says nothing.
        if nearest_m > 2.0 * either_m {
            let own = own_m / nearest_m;
            let morphed = either_m / nearest_m.max(morphs_from_m);
            let radians = if morphs { own.max(morphed) } else { own };
            self.pixels = self.pixels.max(radians * viewpoint.pixels_per_radian);
        }
    }
}

/// A morphing patch may leave its box by its error; skirts hang below it.
fn grown(bounds: Bounds, error_m: f64, skirt_m: f64) -> Bounds {
    Bounds {
        min: bounds.min - DVec3::Y * (error_m + skirt_m),
        max: bounds.max + DVec3::Y * error_m,
    }
}

/// The level of what is drawn across each border of a patch, where it is no finer.
fn neighbour_levels(
    layout: &Layout,
    drawn: &FxHashMap<PatchKey, Place>,
    key: PatchKey,
) -> [Option<u8>; 4] {
    [(0, -1), (1, 0), (0, 1), (-1, 0)].map(|(dx, dz)| {
        let (x, z) = (key.x.checked_add_signed(dx)?, key.z.checked_add_signed(dz)?);
        let mut neighbour = PatchKey::new(key.level, x, z);
        loop {
            match drawn.get(&neighbour) {
                Some(Place::Cut) => return Some(neighbour.level),
                // Finer ones, or the world's border.
                Some(Place::Replaced) => return None,
                None if neighbour.level == layout.coarsest() => return None,
                None => neighbour = neighbour.parent(),
            }
        }
    })
}

/// True when the patch reaches or crosses the border of the source.
fn touches_border(layout: &Layout, key: PatchKey) -> bool {
    let size = layout.patch_size(key.level) as u64;
    let end = |n: u32| (n as u64 + 1) * size;
    let [width, height] = layout.size_cells.map(u64::from);
    key.x == 0 || key.z == 0 || end(key.x) >= width || end(key.z) >= height
}
