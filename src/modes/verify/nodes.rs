//! The checks of worlds that store heights at nodes only: what they rebuild, beside the source.
//!
//! Certificates stand for the true samples, which such a world does not have: without the file it
//! was compiled from, everything that is about samples is skipped.

use super::checks::Contents;
use super::findings::Findings;
use super::source::{load_like, same_size};
use crate::error::Result;
use crate::modes::cli::VerifyArgs;
use crate::modes::sections;
use crate::terrain::leaves::visit_leaves;
use crate::world::{PatchKey, Section, World};

/// Puts the source's samples in the place of the rebuilt ones; a fault where their numbers differ.
pub fn take_source(contents: &mut Contents, world: &World, args: &VerifyArgs) -> Result<Findings> {
    let path = &args.source[0];
    let mut findings = Findings::new("source", "corners of triangles");
    let found = load_like(world, args)?.ground.whole()?;
    if same_size(&mut findings, &contents.map, &found, path) {
        contents.map = found;
        contents.is_rebuilt = false;
    }
    Ok(findings)
}

/// Every level's rebuilt heights are within their patch's stored error of the source's.
pub fn heights(world: &World, contents: &Contents) -> Findings {
    let mut findings = Findings::new("heights", "heights of all levels");
    let (layout, map) = (&world.meta.layout, &contents.map);
    let look = |section: &Section, key: PatchKey| {
        // Planes were rounded to whole steps.
        let error = section.patch(key).error_m as f64 / world.meta.height_step_m;
        let most = (error + 0.5).floor() as i64;
        let (size, stride) = (layout.patch_size(key.level), layout.stride(key.level));
        let along = |n: u32, samples: u32| {
            (n * size..=((n + 1) * size).min(samples - 1)).step_by(stride as usize)
        };
        let mut about = Compared::default();
        for z in along(key.z, map.height) {
            for x in along(key.x, map.width) {
                let rebuilt = section.heights.at((x / stride) as i32, (z / stride) as i32);
                let off = rebuilt as i64 - map.at(x as i64, z as i64) as i64;
                about.expect(off.abs() <= most, || {
                    format!("patch {key}: at sample {x},{z} {off} steps from the source, {most} promised")
                });
            }
        }
        about
    };
    compare_patches(world, &mut findings, look);
    findings
}

/// Every vertex of every mesh has the source's height.
pub fn source(world: &World, contents: &Contents, mut findings: Findings) -> Findings {
    let layout = &world.meta.layout;
    let look = |section: &Section, key: PatchKey| {
        let stride = layout.stride(key.level) as i32;
        let mut about = Compared::default();
        visit_leaves(layout, key, &section.patch(key).trees, |leaf| {
            for p in [leaf.a, leaf.b, leaf.c] {
                let stored = section.heights.at(p.x / stride, p.y / stride);
                let found = contents.map.at(p.x as i64, p.y as i64);
                about.expect(stored == found, || {
                    format!(
                        "patch {key}: at vertex {p} {stored} steps stored, {found} in the source"
                    )
                });
            }
        });
        about
    };
    compare_patches(world, &mut findings, look);
    findings
}

/// What was compared of a patch, and the first fault.
#[derive(Default)]
struct Compared {
    count: u64,
    fault: Option<String>,
}

impl Compared {
    fn expect(&mut self, so: bool, otherwise: impl FnOnce() -> String) {
        self.count += 1;
        if !so {
            self.fault.get_or_insert_with(otherwise);
        }
    }
}

fn compare_patches(
    world: &World,
    findings: &mut Findings,
    look: impl Fn(&Section, PatchKey) -> Compared + Sync,
) {
    let look_at_all = |section: Section| {
        let ([x0, z0, x1, z1], level) = (section.area, section.key.level);
        let keys = (z0..z1).flat_map(|z| (x0..x1).map(move |x| PatchKey::new(level, x, z)));
        keys.map(|key| look(&section, key)).collect::<Vec<_>>()
    };
    let (sections, _) = sections::visit(world, 0, |_| true, look_at_all);
    for patch in sections.into_iter().flatten() {
        findings.compared(patch.count);
        patch
            .fault
            .into_iter()
            .for_each(|fault| findings.fault(fault));
    }
}
