//! The built-in world: compiled on first use into the user's cache, found there afterwards.
//!
//! The cache is a world file like any other, written beside and renamed; its name holds what it
//! was made from. A damaged one is made again.

use crate::compile::{CompileOptions, compile};
use crate::error::{Error, Result};
use crate::files;
use crate::modes::compile::ProgressBar;
use crate::source::Source;
use crate::terrain::archipelago::{Archipelago, DEFAULT_SEED};
use crate::terrain::height_map::HeightMap;
use crate::terrain::talus;
use crate::world::{SourceInfo, World, container};
use rayon::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};

const SAMPLES: u32 = 2049;
const SPACING_M: f64 = 8.0;
const STEP_M: f64 = 1.0 / 64.0;
/// Rise over run.
const STEEPEST: f64 = 1.25;
/// Changes with what the generator or the compiler make of a seed.
const EDITION: u32 = 2;

/// Opens the built-in world, compiling it if need be.
pub fn open() -> Result<World> {
    let path = cache_path()?;
    if path.exists() {
        match open_sound(&path) {
            Ok(world) => return Ok(world),
            Err(error) => log::warn!("{error}; it is made again"),
        }
    }
    let bar = ProgressBar::new("Making the built-in world (once)", false);
    let (writer, _) = compile(&source(SAMPLES), &options(), |progress| {
        bar.set(progress);
        Ok(())
    })?;
    bar.finish();
    let mut bytes = Vec::new();
    let failed = |error| Error::io(&path, "cannot be made", error);
    writer.write(&mut bytes).map_err(failed)?;
    if let Err(error) = store(&path, &bytes) {
        log::warn!(
            "{error}; it will be made again next time (set XDG_CACHE_HOME to a folder that can be written)"
        );
    }
    World::open(Box::new(bytes), path.display().to_string())
        .map_err(|error| files::bad_world(&path, error))
}

fn store(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::io(folder, "cannot be created", error))?;
    }
    files::write_beside(path, true, |out| out.write_all(bytes))
}

/// The archipelago as a source of `samples` samples a side.
pub fn source(samples: u32) -> Source {
    let spacing_m = SPACING_M * (SAMPLES - 1) as f64 / (samples - 1) as f64;
    let ground = Archipelago::new(DEFAULT_SEED, samples, STEP_M, spacing_m);
    let rows = (0..samples).into_par_iter();
    let mut map = HeightMap {
        width: samples,
        height: samples,
        heights: rows.flat_map_iter(|row| ground.row(row)).collect(),
    };
    talus::settle(&mut map, STEP_M, spacing_m, STEEPEST);
    let (low, high) = map.range();
    Source {
        step_m: STEP_M,
        spacing_m: [spacing_m; 2],
        info: SourceInfo::made_up(
            format!("built-in archipelago, seed {DEFAULT_SEED}"),
            [low as f64 * STEP_M, high as f64 * STEP_M],
        ),
        ground: Box::new(map),
    }
}

/// How the built-in world is compiled.
pub fn options() -> CompileOptions {
    CompileOptions {
        sea_level_m: Some(0.0),
        ..CompileOptions::default()
    }
}

fn open_sound(path: &Path) -> Result<World> {
    let world = files::open_world(path)?;
    world
        .check_all_chunks()
        .map_err(|error| files::bad_world(path, error))?;
    Ok(world)
}

fn cache_path() -> Result<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "highfell").ok_or_else(|| {
        Error::Usage("no home folder for the cache; set HOME or XDG_CACHE_HOME".into())
    })?;
    let name = format!(
        "archipelago-{DEFAULT_SEED}-{SAMPLES}-v{}.{EDITION}.hfw",
        container::VERSION
    );
    Ok(folders.cache_dir().join(name))
}
