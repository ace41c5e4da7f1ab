//! `highfell inspect`: what is in a world, as text for a person or JSON for a script.

use super::cli::InspectArgs;
use super::{open_world, patch, print};
use crate::error::Result;
use crate::files;
use crate::world::{ChunkKind, StoredHeights, WaterMask, World};
use serde_json::{Value, json};
use std::path::Path;

pub fn run(args: &InspectArgs) -> Result<()> {
    let world = open_world(args.world.as_deref())?;
    if let Some(key) = args.patch {
        return patch::run(&world, key, args);
    }
    let water = world
        .read_water_mask()
        .map_err(|error| files::bad_world(Path::new(&world.name), error))?;
    let text = if args.json {
        serde_json::to_string_pretty(&as_json(&world, water.as_ref())).expect("plain data")
    } else {
        as_text(&world, water.as_ref())
    };
    print(&text)
}

/// Everything, under the names that scripts rely on.
fn as_json(world: &World, water: Option<&WaterMask>) -> Value {
    let meta = &world.meta;
    let layout = &meta.layout;
    let levels = meta.levels.iter().zip(0u8..).map(|(facts, level)| {
        let size = layout.patch_size(level) as f64;
        json!({
            "level": level,
            "patch_size_m": meta.spacing_m.map(|spacing| size * spacing),
            "lattice_stride": layout.stride(level),
            "patches": facts.patches,
            "exhausted_patches": facts.exhausted_patches,
            "triangles": facts.triangles,
            "vertices": facts.vertices,
            "threshold": facts.threshold,
            "metric": meta.metric,
            "max_error_m": facts.max_error_m,
            "topology_bits": facts.topology_bits,
            "where": place(world, level),
        })
    });
    let bytes = Bytes::of(world);
    json!({
        "spacing_m": meta.spacing_m,
        "patch_cells": layout.patch_cells,
        "height_step_m": meta.height_step_m,
        "size_cells": layout.size_cells,
        "sea_level_m": meta.sea_level_m,
        "water_mask": water.map(|mask| json!({
            "size": mask.size(),
            "square_samples": mask.square_samples(),
            "share": mask.share(),
        })),
        "heights": meta.heights.name(),
        "bytes": {
            "total": bytes.total,
            "heights": bytes.heights,
            "topology": bytes.topology,
            "coverage": bytes.coverage,
            "trees": 0,
            "other": bytes.other(),
        },
        "levels": levels.collect::<Vec<_>>(),
        "source": {
            "files": meta.source.files,
            "crs": meta.source.crs,
            "voids": meta.source.voids,
            "filled": meta.source.filled,
            "kept": meta.kept_voids,
            "min_m": meta.source.min_m,
            "max_m": meta.source.max_m,
        },
    })
}

fn as_text(world: &World, water: Option<&WaterMask>) -> String {
    let meta = &world.meta;
    let layout = &meta.layout;
    let (source, bytes) = (&meta.source, Bytes::of(world));
    let [columns, rows] = layout.size_cells.map(|cells| cells + 1);
    let [width, depth] = meta.size_m().map(|m| m / 1000.0);
    let sea = meta.sea_level_m.map_or("none".into(), |sea| {
        format!("at {sea} m{}", where_water_is(water))
    });
    let per_sample = bytes.heights as f64 * 8.0 / (columns as f64 * rows as f64);
    let triangles: u64 = meta.levels.iter().map(|level| level.triangles).sum();
    let kept = match meta.kept_voids {
        0 => String::new(),
        count => format!(", {count} kept (where: {} bytes)", bytes.coverage),
    };
    let mut lines = vec![
        format!("source    {}", printable(&source.files.join(", "))),
        format!("          {} samples without a height, {} filled{}; {}", source.voids, source.filled, kept, printable(source.crs.as_deref().unwrap_or("no coordinate system"))),
        format!("ground    {columns} x {rows} samples, {width:.2} x {depth:.2} km, {:.2} to {:.2} m", source.min_m, source.max_m),
        format!("          spacing {:.3} x {:.3} m, height step {} m, sea {sea}", meta.spacing_m[0], meta.spacing_m[1], meta.height_step_m),
        format!("file      {} bytes: heights {}{} ({per_sample:.2} bits a sample), topology {} ({:.2} bits a triangle), other {}", bytes.total, at_nodes(world), bytes.heights, bytes.topology, bytes.topology as f64 * 8.0 / triangles.max(1) as f64, bytes.other()),
        String::new(),
        format!("asked     {} in {} by level; exhausted: patches whose lattice is too wide for that; stride: samples between a level's", meta.metric, meta.threshold_unit()),
        String::new(),
        "level  patch m      stride  patches  exhausted   triangles    vertices          asked  error m  bits/tri  where".into(),
    ];
    for (facts, level) in meta.levels.iter().zip(0u8..) {
        let size = layout.patch_size(level) as f64;
        lines.push(format!(
            "{level:>5}  {:<12} {:>6} {:>8} {:>10} {:>11} {:>11} {:>14.2} {:>8.2} {:>9.2}  {}",
            format!(
                "{:.0} x {:.0}",
                size * meta.spacing_m[0],
                size * meta.spacing_m[1]
            ),
            layout.stride(level),
            facts.patches,
            facts.exhausted_patches,
            facts.triangles,
            facts.vertices,
            facts.threshold,
            facts.max_error_m,
            facts.topology_bits as f64 / facts.triangles.max(1) as f64,
            place(world, level),
        ));
    }
    lines.join("\n")
}

fn where_water_is(water: Option<&WaterMask>) -> String {
    water.map_or(String::new(), |mask| {
        let ([columns, rows], samples) = (mask.size(), mask.square_samples());
        let share = 100.0 * mask.share();
        format!(" in {share:.2} % of a mask of {columns} x {rows} squares of {samples} x {samples} samples")
    })
}

fn at_nodes(world: &World) -> &'static str {
    match world.meta.heights {
        StoredHeights::All => "",
        StoredHeights::Nodes => "at nodes only ",
    }
}

/// A text from a file without what would steer a terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Stored bytes by kind.
struct Bytes {
    total: u64,
    heights: u64,
    topology: u64,
    coverage: u64,
}

impl Bytes {
    fn of(world: &World) -> Self {
        Bytes {
            total: world.file_bytes(),
            heights: world.bytes_of(ChunkKind::Heights),
            topology: world.bytes_of(ChunkKind::Topology),
            coverage: world.bytes_of(ChunkKind::Coverage),
        }
    }

    /// Header, table and facts.
    fn other(&self) -> u64 {
        self.total - self.heights - self.topology - self.coverage
    }
}

fn place(world: &World, level: u8) -> &'static str {
    if world.meta.layout.is_global(level) {
        "global repository"
    } else {
        "stream patch"
    }
}
