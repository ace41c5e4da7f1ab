//! The panels, each a function of settings and counters.

use super::OverlayView;
use crate::settings::{CpuTimes, Settings, View};
use crate::terrain::lod::RangeReason;
use egui::{DragValue, Grid, RichText, Slider, SliderClamping, Ui};
use std::collections::BTreeMap;

/// Everything, docked to the left.
pub fn main_panel(ui: &mut Ui, settings: &mut Settings, view: &OverlayView) {
    egui::Panel::left("panel")
        .default_size(330.0)
        .resizable(true)
        .show(ui, |ui| {
            egui::ScrollArea::vertical().show(ui, |ui| {
                ui.heading("Highfell");
                ui.label(RichText::new("F1 shows the keys, H hides this panel").weak());
                warnings(ui, view);
                section(ui, "Frame", |ui| frame_numbers(ui, view));
                section(ui, "View", |ui| view_settings(ui, settings));
                section(ui, "Level of detail", |ui| lod_settings(ui, settings, view));
                section(ui, "Camera", |ui| camera_settings(ui, settings, view));
                section(ui, "Streaming", |ui| stream_numbers(ui, view));
            });
        });
}

/// All keys, in a window of its own.
pub fn help_window(context: &egui::Context, open: &mut bool, view: &OverlayView) {
    egui::Window::new("Keys")
        .open(open)
        .default_pos([420.0, 60.0])
        .resizable(false)
        .show(context, |ui| {
            Grid::new("keys")
                .num_columns(2)
                .striped(true)
                .show(ui, |ui| {
                    for (key, what) in view.keys {
                        ui.label(RichText::new(*key).strong());
                        ui.label(*what);
                        ui.end_row();
                    }
                });
        });
}

fn section(ui: &mut Ui, title: &str, add: impl FnOnce(&mut Ui)) {
    egui::CollapsingHeader::new(title)
        .default_open(true)
        .show(ui, add);
}

fn frame_numbers(ui: &mut Ui, view: &OverlayView) {
    let stats = view.stats;
    let fps = 1000.0 / view.frame_ms.max(0.01);
    rows(
        ui,
        "frame",
        &[
            (
                "frame time",
                format!("{:.1} ms ({fps:.0} a second)", view.frame_ms),
            ),
            (
                "triangles",
                format!(
                    "{} + {} of skirts",
                    grouped(stats.triangles),
                    grouped(stats.skirt_triangles)
                ),
            ),
            ("draw calls", grouped(stats.draws)),
            ("CPU", cpu_text(&stats.cpu_ms)),
            ("GPU", gpu_text(&stats.gpu_ms)),
            (
                "largest error drawn",
                format!(
                    "{:.2} m, {:.1} px",
                    stats.largest_drawn_error_m, stats.largest_error_px
                ),
            ),
            ("largest pop", format!("{:.2} px", stats.largest_pop_px)),
            (
                "uploaded this frame",
                format!(
                    "{:.0} KB + {:.1} KB of draws",
                    stats.upload_bytes as f64 / 1e3,
                    stats.frame_bytes as f64 / 1e3
                ),
            ),
            (
                "patches in GPU memory",
                format!(
                    "{:.1} MB of {:.1} MB",
                    stats.gpu_bytes as f64 / 1e6,
                    stats.gpu_allocated_bytes as f64 / 1e6
                ),
            ),
            ("adapter", stats.adapter.clone()),
        ],
    );
}

fn cpu_text(ms: &CpuTimes) -> String {
    format!(
        "{:.2} ms (select {:.2}, stream {:.2}, cull {:.2}, encode {:.2})",
        ms.total, ms.select, ms.stream, ms.cull, ms.encode
    )
}

fn gpu_text(ms: &BTreeMap<String, f64>) -> String {
    if ms.is_empty() {
        return "no clock".into();
    }
    let passes = ms.iter().map(|(pass, ms)| format!("{pass} {ms:.2} ms"));
    passes.collect::<Vec<_>>().join(", ")
}

/// What a user should know without scrolling.
fn warnings(ui: &mut Ui, view: &OverlayView) {
    let (finest, failed) = (view.stats.finest_level, view.stats.stream.failed);
    let mut warn = |text: String| ui.colored_label(ui.visuals().warn_fg_color, text);
    if finest > 0 {
        warn(format!(
            "GPU memory is full: nothing finer than level {finest} is drawn"
        ));
    }
    if failed > 0 {
        warn(format!(
            "{failed} parts of the world cannot be read and are drawn coarser; the terminal says why"
        ));
    }
}

fn view_settings(ui: &mut Ui, settings: &mut Settings) {
    ui.horizontal_wrapped(|ui| {
        for view in View::ALL {
            ui.selectable_value(&mut settings.view, view, view.name());
        }
    });
    if settings.view == View::Hole {
        ui.label("green: ground; red: a back face first; black: no ground");
    }
    ui.horizontal(|ui| {
        ui.checkbox(&mut settings.water, "water");
        ui.checkbox(&mut settings.morph, "morph")
            .on_hover_text("without it, changes of level pop");
        ui.checkbox(&mut settings.skirts, "skirts")
            .on_hover_text("walls that cover gaps between patches of different levels");
    });
    ui.add(
        slider(&mut settings.lod.exaggeration, 0.1..=10.0)
            .logarithmic(true)
            .suffix(" x")
            .text("heights"),
    );
    ui.add(
        slider(&mut settings.fov_deg, 20.0..=120.0)
            .suffix("°")
            .text("field of view"),
    );
    ui.add(
        slider(&mut settings.sun_azimuth_deg, 0.0..=360.0)
            .suffix("°")
            .text("sun, from north"),
    );
    ui.add(
        slider(&mut settings.sun_height_deg, 0.0..=90.0)
            .suffix("°")
            .text("sun, height"),
    );
    let mut fog_km = settings.fog_m / 1000.0;
    ui.add(
        slider(&mut fog_km, 1.0..=1000.0)
            .logarithmic(true)
            .suffix(" km")
            .text("clear air"),
    );
    settings.fog_m = fog_km * 1000.0;
}

fn lod_settings(ui: &mut Ui, settings: &mut Settings, view: &OverlayView) {
    ui.add(
        slider(&mut settings.lod.pixel_error, 0.25..=32.0)
            .logarithmic(true)
            .suffix(" px")
            .text("pixel error"),
    )
    .on_hover_text("how wrong the ground may look, in pixels at the middle of the picture");
    ui.add(slider(&mut settings.lod.morph_share, 0.05..=0.6).text("morph"))
        .on_hover_text("share of each ring over which a level morphs into the next");
    Grid::new("levels")
        .num_columns(5)
        .striped(true)
        .show(ui, |ui| {
            for title in ["level", "drawn", "loaded", "ends at", "because of"] {
                ui.label(title);
            }
            ui.end_row();
            for level in 0..view.meta.layout.levels as usize {
                level_row(ui, settings, view, level);
                ui.end_row();
            }
        });
    if ui.button("all distances by error").clicked() {
        settings.lod.by_hand_m.clear();
    }
}

fn level_row(ui: &mut Ui, settings: &mut Settings, view: &OverlayView, level: usize) {
    let size = view.meta.layout.patch_size(level as u8) as f64 * view.meta.spacing_m[0];
    let count = |counts: &[u64]| counts.get(level).copied().unwrap_or(0).to_string();
    ui.label(level.to_string())
        .on_hover_text(format!("patches {size:.0} m wide"));
    ui.label(count(&view.stats.patches_drawn));
    ui.label(count(&view.stats.patches_resident));
    let Some(range) = view.stats.ranges.get(level) else {
        ui.label("no end");
        return;
    };
    let mut end_m = range.end_m;
    let drag = ui.add(
        DragValue::new(&mut end_m)
            .speed(range.end_m * 0.01)
            .range(1.0..=1e9)
            .clamp_existing_to_range(false)
            .max_decimals(0)
            .suffix(" m"),
    );
    if drag.on_hover_text("drag to set by hand").changed() {
        let by_hand = &mut settings.lod.by_hand_m;
        by_hand.resize(by_hand.len().max(level + 1), None);
        by_hand[level] = Some(end_m);
    }
    let (reason, why) = match range.reason {
        RangeReason::Error => (
            "error",
            "from here on the next level is right to within the pixel error",
        ),
        RangeReason::Morph => (
            "morph",
            "kept this long so that neighbours differ by one level at most; more pixel error changes nothing",
        ),
        RangeReason::Hand => ("by hand", "set by dragging the distance"),
    };
    ui.label(reason).on_hover_text(why);
}

fn camera_settings(ui: &mut Ui, settings: &mut Settings, view: &OverlayView) {
    let pose = view.pose;
    rows(
        ui,
        "camera",
        &[
            (
                "position",
                format!("{:.1}, {:.1}, {:.1} m", pose.eye.x, pose.eye.y, pose.eye.z),
            ),
            (
                "direction",
                format!("{:.1}° from north, {:.1}° up", pose.yaw_deg, pose.pitch_deg),
            ),
            ("speed", format!("{:.1} m/s", view.speed_m_s)),
        ],
    );
    let mut clamped = settings.clearance_m.is_some();
    if ui.checkbox(&mut clamped, "stay above the ground").changed() {
        settings.clearance_m = if clamped {
            Settings::default().clearance_m
        } else {
            None
        };
    }
    if ui.button("copy for --camera").clicked() {
        ui.ctx().copy_text(pose.to_string());
    }
}

fn stream_numbers(ui: &mut Ui, view: &OverlayView) {
    let (stats, stream) = (view.stats, view.stats.stream);
    rows(
        ui,
        "stream",
        &[
            ("patches wanted", grouped(stats.patches_missing)),
            ("jobs under way", stream.jobs_in_flight.to_string()),
            (
                "sections in memory",
                format!(
                    "{} ({:.1} MB)",
                    stream.sections_in_memory,
                    stream.section_bytes as f64 / 1e6
                ),
            ),
            ("failed", stream.failed.to_string()),
        ],
    );
}

/// A slider that leaves values from the command line alone.
fn slider(value: &mut f64, range: std::ops::RangeInclusive<f64>) -> Slider<'_> {
    Slider::new(value, range).clamping(SliderClamping::Edits)
}

fn rows(ui: &mut Ui, id: &str, rows: &[(&str, String)]) {
    Grid::new(id).num_columns(2).show(ui, |ui| {
        for (name, value) in rows {
            ui.label(*name);
            ui.add(egui::Label::new(value).wrap());
            ui.end_row();
        }
    });
}

/// Digits in groups of three.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1 234 567");
    }
}
