//! `highfell inspect --patch`: one patch, down to its bits.

use super::cli::InspectArgs;
use super::sections;
use super::{check_may_write, print};
use crate::error::{Error, Result};
use crate::export::figure::{self, Subject};
use crate::files::{bad_world, write_beside};
use crate::terrain::leaves::{roots, walk};
use crate::terrain::soundness;
use crate::world::{Bits, PatchKey, PatchRecord, World};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

const BITS_A_LINE: usize = 64;
const LONGEST_BAR: u32 = 40;

pub fn run(world: &World, key: PatchKey, args: &InspectArgs) -> Result<()> {
    let name = Path::new(&world.name);
    let layout = &world.meta.layout;
    check_exists(world, key)?;
    if let Some(path) = &args.svg {
        let inputs: Vec<&Path> = args.world.as_deref().into_iter().collect();
        check_may_write(path, args.force, &inputs)?;
    }
    let record = read(world, key).map_err(|error| bad_world(name, error))?;
    let facts = Facts::of(world, key, record);
    let text = if args.json {
        serde_json::to_string_pretty(&facts.as_json()).expect("plain data")
    } else {
        facts.as_text()
    };
    print(&text)?;
    if let Some(path) = &args.svg {
        let world_name = name.file_stem().unwrap_or_default().to_string_lossy();
        let svg = figure::draw(&Subject {
            layout,
            key,
            record: &facts.record,
            spacing_m: world.meta.spacing_m,
            world: &world_name,
            facts: &facts.line(),
        });
        write_beside(path, args.force, |out| out.write_all(svg.as_bytes()))?;
    }
    Ok(())
}

/// Says which patches there are where this is none of them.
pub fn check_exists(world: &World, key: PatchKey) -> Result<()> {
    let layout = &world.meta.layout;
    if layout.contains(key) {
        return Ok(());
    }
    let expected = if key.level < layout.levels {
        let [nx, nz] = layout.patches(key.level);
        format!("{0}/0/0 to {0}/{1}/{2}", key.level, nx - 1, nz - 1)
    } else {
        format!("a level from 0 to {}", layout.coarsest())
    };
    Err(Error::Usage(format!(
        "{}: there is no patch {key}; expected {expected}",
        world.name
    )))
}

fn read(
    world: &World,
    key: PatchKey,
) -> std::result::Result<PatchRecord, crate::world::FormatError> {
    let place = world.meta.layout.section_of(key);
    let wanted = |patch: PatchKey| (patch.x, patch.z) == (place.x, place.z);
    let (found, errors) = sections::visit(world, key.level, wanted, |section| {
        (section.key == place).then(|| section.patch(key).clone())
    });
    match errors.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(found
            .into_iter()
            .flatten()
            .next()
            .expect("a world contains the patches of its layout")),
    }
}

/// What there is to say of a patch.
struct Facts {
    key: PatchKey,
    record: PatchRecord,
    corner_m: [f64; 2],
    size_m: [f64; 2],
    range_m: [f64; 2],
    threshold: f64,
    vertices: u64,
    /// Leaves by their halvings below the root.
    depths: Vec<u32>,
}

impl Facts {
    fn of(world: &World, key: PatchKey, record: PatchRecord) -> Self {
        let (meta, layout) = (&world.meta, &world.meta.layout);
        let size_m = meta
            .spacing_m
            .map(|spacing| layout.patch_size(key.level) as f64 * spacing);
        let mut depths = Vec::new();
        for (root, tree) in roots(layout, key).into_iter().zip(&record.trees) {
            walk(root, tree, |_, depth, split| {
                depths.resize(depths.len().max(depth as usize + 1), 0);
                depths[depth as usize] += u32::from(!split);
            });
        }
        Facts {
            key,
            corner_m: [key.x as f64 * size_m[0], key.z as f64 * size_m[1]],
            size_m,
            range_m: [record.min, record.max].map(|height| height as f64 * meta.height_step_m),
            threshold: meta.levels[key.level as usize].threshold,
            vertices: soundness::vertex_count(layout, key, &record.trees),
            depths,
            record,
        }
    }

    /// Everything but bits and depths, for the figure.
    fn line(&self) -> String {
        format!(
            "{:.0} x {:.0} m  ·  {} triangles, {} vertices  ·  {:.2} to {:.2} m  ·  error {:.2} m, {:.2} m asked{}",
            self.size_m[0],
            self.size_m[1],
            self.record.triangles(),
            self.vertices,
            self.range_m[0],
            self.range_m[1],
            self.record.error_m,
            self.threshold,
            if self.record.exhausted {
                " (lattice exhausted)"
            } else {
                ""
            }
        )
    }

    fn as_text(&self) -> String {
        let exhausted = if self.record.exhausted {
            "exhausted: the lattice is too wide for the threshold"
        } else {
            "not exhausted"
        };
        let mut lines = vec![
            format!(
                "patch     {}: {:.2} x {:.2} m, its north-west corner at {:.2}, {:.2} m",
                self.key, self.size_m[0], self.size_m[1], self.corner_m[0], self.corner_m[1]
            ),
            format!(
                "ground    {:.2} to {:.2} m{}",
                self.range_m[0],
                self.range_m[1],
                if self.record.absent {
                    "; absent: all its samples are kept voids"
                } else {
                    ""
                }
            ),
            format!(
                "error     {:.3} m, {:.3} m asked; {exhausted}",
                self.record.error_m, self.threshold
            ),
            format!(
                "mesh      {} triangles, {} vertices",
                self.record.triangles(),
                self.vertices
            ),
            String::new(),
            "leaves by depth".into(),
        ];
        let most = self.depths.iter().copied().max().unwrap_or(0).max(1);
        let occupied = self
            .depths
            .iter()
            .enumerate()
            .skip_while(|(_, count)| **count == 0);
        lines.extend(occupied.map(|(depth, &count)| {
            let bar = "#".repeat((count * LONGEST_BAR).div_ceil(most) as usize);
            format!("  {depth:>3} {count:>7}  {bar}")
                .trim_end()
                .to_owned()
        }));
        for (name, tree) in ["first", "second"].into_iter().zip(&self.record.trees) {
            lines.push(String::new());
            lines.push(format!(
                "{name} half, {} bits (1 = node, 0 = leaf)",
                tree.len()
            ));
            let digits: Vec<char> = digits(tree).chars().collect();
            lines.extend(
                digits
                    .chunks(BITS_A_LINE)
                    .map(|line| format!("  {}", line.iter().collect::<String>())),
            );
        }
        lines.join("\n")
    }

    fn as_json(&self) -> Value {
        json!({
            "patch": self.key.to_string(),
            "corner_m": self.corner_m,
            "size_m": self.size_m,
            "min_m": self.range_m[0],
            "max_m": self.range_m[1],
            "error_m": self.record.error_m,
            "threshold": self.threshold,
            "exhausted": self.record.exhausted,
            "absent": self.record.absent,
            "triangles": self.record.triangles(),
            "vertices": self.vertices,
            "leaves_by_depth": self.depths,
            "bits": self.record.trees.each_ref().map(digits),
        })
    }
}

fn digits(tree: &Bits) -> String {
    let mut reader = tree.reader();
    (0..tree.len())
        .map(|_| if reader.next() { '1' } else { '0' })
        .collect()
}
