//! The elevation file that a world was compiled from, beside the world.

use super::checks::Contents;
use super::findings::Findings;
use crate::error::Result;
use crate::import::{self, ImportOptions};
use crate::source::Source;
use crate::terrain::height_map::HeightMap;
use crate::world::World;
use std::path::Path;

/// The heights are the source's, in the world's own steps.
pub fn source(world: &World, contents: &Contents, path: &Path) -> Result<Findings> {
    let mut findings = Findings::new("source", "heights");
    let (meta, map) = (&world.meta, &contents.map);
    let source = load_like(world, path)?;
    let found = source.ground.whole()?;
    if !same_size(&mut findings, map, &found, path) {
        return Ok(findings);
    }
    findings.compared(map.heights.len() as u64);
    findings.note(format!("each in steps of {} m", meta.height_step_m));
    let pairs = map.heights.iter().zip(&found.heights).enumerate();
    for (at, (&stored, &found)) in pairs.filter(|(_, (stored, found))| stored != found) {
        let (x, z) = (at % map.width as usize, at / map.width as usize);
        let [stored, found] = [stored, found].map(|height| height as f64 * meta.height_step_m);
        findings.fault(format!(
            "sample {x},{z}: {stored} m stored, {found} m in {}",
            path.display()
        ));
    }
    Ok(findings)
}

/// Whether a file has as many samples as the world; a fault if not.
pub fn same_size(findings: &mut Findings, map: &HeightMap, found: &HeightMap, path: &Path) -> bool {
    let same = (found.width, found.height) == (map.width, map.height);
    findings.expect(same, || {
        format!(
            "{} x {} samples stored, {} x {} in {}",
            map.width,
            map.height,
            found.width,
            found.height,
            path.display()
        )
    });
    same
}

/// Imports a file as it was when the world was compiled, as far as the world's facts tell.
pub fn load_like(world: &World, path: &Path) -> Result<Source> {
    let meta = &world.meta;
    let mut options = ImportOptions {
        spacing_m: Some(meta.spacing_m),
        ..Default::default()
    };
    let plain = import::load(path, &options)?;
    // A height scale shows in the extremes.
    let largest = |low: f64, high: f64| if high.abs() > low.abs() { high } else { low };
    let stored = largest(meta.source.min_m, meta.source.max_m);
    let scale = stored / largest(plain.info.min_m, plain.info.max_m);
    let is_scaled = scale.is_finite() && scale > 0.0 && (scale - 1.0).abs() > 1e-9;
    if !is_scaled && plain.step_m == meta.height_step_m {
        return Ok(plain);
    }
    options.height_step_m = Some(meta.height_step_m);
    options.height_scale = is_scaled.then_some(scale);
    import::load(path, &options)
}
