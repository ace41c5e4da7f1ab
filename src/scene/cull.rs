//! From the selected cut to the list of draws: what is in view, how it morphs, how deep its
//! skirts hang.

use super::FADE_S;
use super::pops::Jump;
use crate::render::{Cut, DrawPatch, split_eye};
use crate::settings::Settings;
use crate::terrain::camera::{Bounds, Views};
use crate::terrain::lod::{Range, Selected, Selection};
use crate::terrain::mesh::Mesher;
use crate::terrain::patch_tree::{PatchFacts, PatchTree, Side};
use crate::world::{Layout, Meta, PatchKey};
use glam::{DVec3, IVec2, ivec2};

/// What of a selection is drawn, and what is to be said of it.
#[derive(Default)]
pub struct Drawn {
    /// Those that are not cut first, each group near to far.
    pub draws: Vec<DrawPatch>,
    pub patches_by_level: Vec<u64>,
    /// In the order of the cut.
    pub jumps: Vec<(PatchKey, Jump)>,
    pub neighbour_level_steps: Vec<u64>,
    pub errors: DrawnErrors,
    /// The draws in the order of the cut, and what they are sorted by.
    unsorted: Vec<DrawPatch>,
    order: Vec<u64>,
}

impl Drawn {
    /// Forgets all but the memory it had.
    fn clear(&mut self, levels: usize) {
        self.patches_by_level.clear();
        self.patches_by_level.resize(levels, 0);
        self.neighbour_level_steps.clear();
        self.neighbour_level_steps.resize(levels, 0);
        self.jumps.clear();
        self.errors = DrawnErrors::default();
        self.unsorted.clear();
        self.order.clear();
    }

    fn add(&mut self, draw: DrawPatch, nearest_m: f64) {
        // A distance is not negative: as bits its f32 is ordered as a number of 31 bits.
        let near = u64::from((nearest_m as f32).to_bits());
        let number = self.unsorted.len() as u64;
        self.order
            .push((draw.cut as u64) << 62 | near << 31 | number);
        self.unsorted.push(draw);
    }

    fn sort(&mut self) {
        self.order.sort_unstable();
        let number = |order: &u64| (order & 0x7fff_ffff) as usize;
        self.draws.clear();
        let sorted = self.order.iter().map(|order| self.unsorted[number(order)]);
        self.draws.extend(sorted);
    }
}

/// Leaves out what is not in view; what is drawn goes into `drawn`.
pub fn cull(culled: Culled, selection: &Selection, drawn: &mut Drawn) {
    let meta = culled.meta;
    drawn.clear(meta.layout.levels as usize);
    let exaggeration = culled.settings.lod.exaggeration;
    let culler = Culler {
        skirts: Skirts::new(&culled),
        eye_cell: split_eye(meta, exaggeration, culled.views.draw.eye).0,
        of: culled,
    };
    for selected in &selection.cut {
        culler.visit(selected, drawn);
    }
    drawn.sort();
}

/// What is looked at, and from where.
pub struct Culled<'a> {
    pub meta: &'a Meta,
    pub patches: &'a PatchTree,
    pub views: &'a Views,
    pub settings: &'a Settings,
    pub ranges: &'a [Range],
    pub mesher: Mesher,
    pub seconds: f64,
}

/// What does not change from patch to patch.
struct Culler<'a> {
    of: Culled<'a>,
    skirts: Skirts<'a>,
    eye_cell: IVec2,
}

impl Culler<'_> {
    fn visit(&self, selected: &Selected, drawn: &mut Drawn) {
        let (key, views) = (selected.key, self.of.views);
        let exaggeration = self.of.settings.lod.exaggeration;
        let loaded = self.of.patches.facts(selected.slot);
        (drawn.errors).look_under_eye(selected, loaded, views.draw.eye, exaggeration);
        let error_m = loaded.largest_error_m() * exaggeration;
        let may_be_seen = |skirt_m| views.sees(&grown(selected.bounds, error_m, skirt_m));
        // Most are out of view however deep their skirts hang.
        if !may_be_seen(error_m + self.skirts.deepest_m) || loaded.absent {
            return;
        }
        let beside = Side::ALL.map(|side| self.of.patches.level_across(selected.slot, key, side));
        let skirt_m = self.skirts.depth_m(key, error_m, beside);
        if !may_be_seen(skirt_m) || self.of.settings.hidden_patch == Some(key) {
            return;
        }
        let draw = self.draw(selected, skirt_m);
        let lod_m = selected.distance_m;
        let nearest_m = match views.is_held() {
            false => lod_m,
            true => selected.bounds.distance(views.draw.eye),
        };
        let pixels = views.draw.pixels_per_radian;
        let jump = Jump::of(loaded, &draw, [lod_m, nearest_m], exaggeration, pixels);
        drawn.jumps.push((key, jump));
        drawn.patches_by_level[key.level as usize] += 1;
        for level in beside.into_iter().flatten() {
            drawn.neighbour_level_steps[(level - key.level) as usize] += 1;
        }
        (drawn.errors).add(selected, loaded, &draw, nearest_m, views, exaggeration);
        drawn.add(draw, nearest_m);
    }

    fn draw(&self, selected: &Selected, skirt_m: f64) -> DrawPatch {
        let Selected { key, slot, .. } = *selected;
        let morphs = self.of.settings.morph;
        let range = self.of.ranges.get(key.level as usize).filter(|_| morphs);
        let (morph_from_m, morph_to_m) =
            range.map_or((0.0, 0.0), |range| (range.morph_from_m, range.morph_to_m));
        let fade = match morphs {
            true => 1.0 - (self.of.seconds - self.of.patches.replaced_parent_s(slot)) / FADE_S,
            false => 0.0,
        };
        let corner =
            ivec2(key.x as i32, key.z as i32) * self.of.meta.layout.patch_size(key.level) as i32;
        DrawPatch {
            key,
            origin: (corner - self.eye_cell).to_array(),
            morph_from_m: morph_from_m as f32,
            morph_to_m: morph_to_m as f32,
            least_morph: fade.clamp(0.0, 1.0) as f32,
            skirt_m: skirt_m as f32,
            cut: if self.of.patches.facts(slot).has_voids {
                Cut::Voids
            } else if touches_border(&self.of.meta.layout, key) {
                Cut::Border
            } else {
                Cut::Nowhere
            },
        }
    }
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
    fn new(culled: &Culled<'a>) -> Self {
        let Culled { meta, settings, .. } = *culled;
        let factor = f64::from(culled.mesher.error_factor()) * settings.lod.exaggeration;
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
        loaded: &PatchFacts,
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
        loaded: &PatchFacts,
        draw: &DrawPatch,
        nearest_m: f64,
        views: &Views,
        exaggeration: f64,
    ) {
        let own_m = loaded.error_m as f64 * exaggeration;
        let either_m = loaded.largest_error_m() * exaggeration;
        // The parent's error only counts where the morph has begun.
        let fades = draw.least_morph > 0.0;
        let from_m = if fades { 0.0 } else { draw.morph_from_m as f64 };
        let may_morph = fades || draw.morph_to_m > 0.0;
        let morphs = may_morph && selected.bounds.farthest(views.lod.eye) > from_m;
        // Where levels are chosen from elsewhere, any place may morph.
        let morphs_from_m = if views.is_held() { 0.0 } else { from_m };
        self.metres = self.metres.max(if morphs { either_m } else { own_m });
        // Closer than its error, a bound in pixels says nothing.
        if nearest_m > 2.0 * either_m {
            let own = own_m / nearest_m;
            let morphed = either_m / nearest_m.max(morphs_from_m);
            let radians = if morphs { own.max(morphed) } else { own };
            self.pixels = self.pixels.max(radians * views.draw.pixels_per_radian);
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

/// True when the patch reaches or crosses the border of the source.
fn touches_border(layout: &Layout, key: PatchKey) -> bool {
    let size = layout.patch_size(key.level) as u64;
    let end = |n: u32| (n as u64 + 1) * size;
    let [width, height] = layout.size_cells.map(u64::from);
    key.x == 0 || key.z == 0 || end(key.x) >= width || end(key.z) >= height
}
