//! From the selected cut to the list of draws: what is in view, how it morphs, how deep its
//! skirts hang.

use super::{FADE_S, Scene};
use crate::render::{DrawPatch, split_eye};
use crate::settings::Settings;
use crate::terrain::camera::{Bounds, Viewpoint};
use crate::terrain::lod::{MORPH_END, Range, Selection};
use crate::world::{Layout, PatchKey};
use glam::DVec3;
use std::collections::HashSet;

/// The patches to draw: those inside the source first, each group near to far.
pub fn draw_list(
    scene: &Scene,
    viewpoint: &Viewpoint,
    settings: &Settings,
    ranges: &[Range],
    selection: &Selection,
    seconds: f64,
) -> Vec<DrawPatch> {
    let meta = &scene.world.meta;
    let exaggeration = settings.lod.exaggeration;
    let (eye_cell, ..) = split_eye(meta, exaggeration, viewpoint.eye);
    let level_errors = meta.errors_m();
    let cut: HashSet<PatchKey> = selection.cut.iter().map(|selected| selected.key).collect();
    let mut draws: Vec<(f64, DrawPatch)> = Vec::new();
    for selected in &selection.cut {
        let (key, loaded) = (selected.key, scene.loaded[&selected.key]);
        let own_error = loaded.error_m.max(loaded.parent_error_m) as f64 * exaggeration;
        let coarsest = coarsest_neighbour(&meta.layout, &cut, key);
        let beside = (coarsest + 1).min(meta.layout.coarsest());
        let gap = own_error + level_errors[beside as usize] * exaggeration;
        // T-junctions leave gaps of a rounding error even where no mesh is wrong.
        let least =
            0.1 * meta.layout.stride(key.level) as f64 * meta.spacing_m[0].min(meta.spacing_m[1]);
        let skirt_m = if settings.skirts { gap.max(least) } else { 0.0 };
        if settings.hidden_patch == Some(key)
            || !viewpoint.sees(&grown(selected.bounds, own_error, skirt_m))
        {
            continue;
        }
        let range = ranges.get(key.level as usize);
        let (from, to) = range.map_or((0.0, 0.0), |range| {
            (range.morph_from_m, range.end_m * MORPH_END)
        });
        let size = meta.layout.patch_size(key.level) as i32;
        let fade = 1.0 - (seconds - loaded.at_s) / FADE_S;
        let draw = DrawPatch {
            key,
            origin: [
                key.x as i32 * size - eye_cell.x,
                key.z as i32 * size - eye_cell.y,
            ],
            morph_from_m: from as f32,
            morph_to_m: to as f32,
            least_morph: fade.clamp(0.0, 1.0) as f32,
            skirt_m: skirt_m as f32,
            cut: touches_border(&meta.layout, key),
        };
        draws.push((selected.bounds.distance(viewpoint.eye), draw));
    }
    draws.sort_by(|(a_m, a), (b_m, b)| {
        a.cut
            .cmp(&b.cut)
            .then(a_m.total_cmp(b_m))
            .then(a.key.cmp(&b.key))
    });
    draws.into_iter().map(|(_, draw)| draw).collect()
}

/// The largest errors of what is drawn.
pub struct DrawnErrors {
    pub metres: f64,
    /// In the middle of the picture; of patches that the eye is not inside of.
    pub pixels: f64,
}

pub fn drawn_errors(
    scene: &Scene,
    viewpoint: &Viewpoint,
    settings: &Settings,
    selection: &Selection,
    draws: &[DrawPatch],
) -> DrawnErrors {
    let drawn: HashSet<PatchKey> = draws.iter().map(|draw| draw.key).collect();
    let mut errors = DrawnErrors {
        metres: 0.0,
        pixels: 0.0,
    };
    for selected in selection
        .cut
        .iter()
        .filter(|selected| drawn.contains(&selected.key))
    {
        let loaded = scene.loaded[&selected.key];
        let error_m = loaded.error_m.max(loaded.parent_error_m) as f64 * settings.lod.exaggeration;
        errors.metres = errors.metres.max(error_m);
        let distance_m = selected.bounds.distance(viewpoint.eye);
        // Closer than its error, a bound in pixels says nothing.
        if distance_m > 2.0 * error_m {
            errors.pixels = errors
                .pixels
                .max(error_m * viewpoint.pixels_per_radian / distance_m);
        }
    }
    errors
}

/// A morphing patch may leave its box by its error; skirts hang below it.
fn grown(bounds: Bounds, error_m: f64, skirt_m: f64) -> Bounds {
    Bounds {
        min: bounds.min - DVec3::Y * (error_m + skirt_m),
        max: bounds.max + DVec3::Y * error_m,
    }
}

/// The coarsest level that is drawn across the borders of a patch, or its own.
fn coarsest_neighbour(layout: &Layout, cut: &HashSet<PatchKey>, key: PatchKey) -> u8 {
    let beside = [(0, -1), (1, 0), (0, 1), (-1, 0)];
    let neighbours = beside.into_iter().filter_map(|(dx, dz)| {
        let (x, z) = (key.x.checked_add_signed(dx)?, key.z.checked_add_signed(dz)?);
        let mut neighbour = PatchKey::new(key.level, x, z);
        while !cut.contains(&neighbour) {
            // Finer neighbours, and the world's border, end at the top without a match.
            if neighbour.level == layout.coarsest() {
                return None;
            }
            neighbour = neighbour.parent();
        }
        Some(neighbour.level)
    });
    neighbours.max().unwrap_or(key.level).max(key.level)
}

/// True when the patch reaches or crosses the border of the source.
fn touches_border(layout: &Layout, key: PatchKey) -> bool {
    let size = layout.patch_size(key.level) as u64;
    let end = |n: u32| (n as u64 + 1) * size;
    let [width, height] = layout.size_cells.map(u64::from);
    key.x == 0 || key.z == 0 || end(key.x) >= width || end(key.z) >= height
}
