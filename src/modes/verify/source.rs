//! The elevation file that a world was compiled from, beside the world.

use super::checks::Contents;
use super::findings::Findings;
use crate::compile::largest_height;
use crate::error::Result;
use crate::import::{self, ImportOptions, VoidFill};
use crate::modes::cli::VerifyArgs;
use crate::source::Source;
use crate::terrain::height_map::HeightMap;
use crate::world::World;
use std::path::Path;

/// The heights are the source's, in the world's own steps.
pub fn source(world: &World, contents: &Contents, args: &VerifyArgs) -> Result<Findings> {
    let path = &args.source[0];
    let mut findings = Findings::new("source", "heights");
    let (meta, map) = (&world.meta, &contents.map);
    let source = load_like(world, args)?;
    let found = source.ground.whole()?;
    if !same_size(&mut findings, map, &found, path) {
        return Ok(findings);
    }
    findings.compared(map.heights.len() as u64);
    findings.note(format!("each in steps of {} m", meta.height_step_m));
    let absent = source.ground.absent(source.ground.area())?;
    let is_absent = |all: &Option<Vec<bool>>, at: usize| all.as_ref().is_some_and(|all| all[at]);
    let differs = |&at: &usize| is_absent(&absent, at) != is_absent(&contents.absent, at);
    for at in (0..map.heights.len()).filter(differs) {
        let (x, z) = (at % map.width as usize, at / map.width as usize);
        findings.fault(format!(
            "sample {x},{z}: kept as a void only in {}",
            if is_absent(&absent, at) {
                path.display().to_string()
            } else {
                world.name.clone()
            }
        ));
    }
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

/// Imports files as they were when the world was compiled: by the options given, else as far as
/// the world's facts tell.
pub fn load_like(world: &World, args: &VerifyArgs) -> Result<Source> {
    let meta = &world.meta;
    let tiles = import::tiles(&args.source)?;
    let load = |options: &ImportOptions| import::load_tiles(&tiles, options).map(|found| found.0);
    let layout = &meta.layout;
    let mut options = args.import.options();
    options.most_units = Some(largest_height(layout.patch_cells, layout.lattice_bias));
    options.spacing_m = options.spacing_m.or(Some(meta.spacing_m));
    if options.resample_m.is_some() {
        options.spacing_m = args.import.options().spacing_m;
    }
    if meta.kept_voids > 0 {
        options.voids = VoidFill::Keep;
    }
    let told = options.height_scale.is_some() || options.height_offset_m.is_some();
    if told {
        options.height_step_m = options.height_step_m.or(Some(meta.height_step_m));
        return load(&options);
    }
    let plain = load(&options)?;
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
    load(&options)
}
