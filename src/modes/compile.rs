//! `highfell compile`: elevation data in, a world file out.

use super::cli::CompileArgs;
use super::inspect::printable;
use super::{check_may_write, on_interrupt, print};
use crate::compile::{CompileOptions, Progress, Spools, compile_into, largest_height};
use crate::error::{Error, Result};
use crate::files::{self, FileSpool};
use crate::import::{self, ImportOptions, Lint, VoidFill, Warning};
use crate::source::Source;
use crate::terrain::detail::DetailMask;
use crate::terrain::water::water_mask;
use crate::world::{LevelMeta, Meta, StoredHeights, WaterMask};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Lattices of so many cells a side never have more vertices than 16-bit indices can name.
const LARGEST_FLOWN_LATTICE: u32 = 254;

pub fn run(args: &CompileArgs) -> Result<()> {
    watch_for_ctrl_c();
    let cores = args.jobs.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build();
    let cannot = |error| Error::Usage(format!("--jobs: {error}"));
    pool.map_err(cannot)?.install(|| compile(args))
}

fn compile(args: &CompileArgs) -> Result<()> {
    if args.heights == StoredHeights::Nodes && args.import.voids == VoidFill::Keep {
        let text = "--heights nodes has no samples that could be kept as voids; use --heights all, or --voids fill";
        return Err(Error::Usage(text.into()));
    }
    let tiles = import::tiles(&args.inputs)?;
    if args.dry_run {
        return look(args, &tiles);
    }
    let default = || default_output(&args.inputs[0]);
    let output = args.output.clone().unwrap_or_else(default);
    let masks = args.detail_mask.iter().chain(&args.water_mask);
    let beside: Vec<PathBuf> = tiles.iter().map(|tile| import::mask_of(tile)).collect();
    let read = tiles.iter().chain(masks).chain(&beside);
    let read: Vec<&Path> = read.map(PathBuf::as_path).collect();
    check_may_write(&output, args.force, &read)?;
    let (source, options) = load(args, &tiles, &output)?;
    write(args, &tiles, &output, &source, &options)
}

/// What there is to say of the input, alone.
fn look(args: &CompileArgs, tiles: &[PathBuf]) -> Result<()> {
    let water = picture(&args.water_mask)?;
    let options = import_options(args);
    let mut lint = reading(args, |progress| import::look(tiles, &options, progress))?;
    let mask = water.map(|picture| water_mask(&picture, lint.size));
    lint.warnings.extend(no_water(mask.as_ref()));
    print(&if args.json {
        serde_json::to_string_pretty(&lint).expect("plain data")
    } else {
        as_text(&lint)
    })
}

/// Reads all that a world is made of.
fn load(args: &CompileArgs, tiles: &[PathBuf], output: &Path) -> Result<(Source, CompileOptions)> {
    let detail_mask = picture(&args.detail_mask)?;
    let water = picture(&args.water_mask)?;
    let mut options = import_options(args);
    // Where there must be room for the world anyway.
    options.scratch = Some(files::folder_of(output).to_owned());
    let (source, mut lint) = reading(args, |progress| {
        import::load_watched(tiles, &options, progress)
    })?;
    let mask = water.map(|picture| water_mask(&picture, source.ground.size()));
    let dry = no_water(mask.as_ref());
    let sea_level_m = args.sea_level.or(mask.as_ref().map(|_| 0.0));
    let sea_level_m = sea_level_m.filter(|_| dry.is_none());
    lint.warnings.extend(dry);
    // Quiet or not: heights may be wrong, and nothing else tells.
    for warning in &lint.warnings {
        log::warn!("{}: {}", names(tiles), as_line(warning));
    }
    let options = CompileOptions {
        error: args.error,
        metric: args.metric,
        patch_cells: args.patch_cells,
        sea_level_m,
        water_mask: mask.filter(|mask| !mask.is_black()).map(Arc::new),
        levels: args.levels,
        lattice_bias: args.lattice_bias,
        detail_mask,
        live: args.live,
        heights: args.heights,
    };
    Ok((source, options))
}

/// With as much room for heights as the world will have.
fn import_options(args: &CompileArgs) -> ImportOptions {
    ImportOptions {
        most_units: Some(largest_height(args.patch_cells, args.lattice_bias)),
        ..args.import.options()
    }
}

fn picture(path: &Option<PathBuf>) -> Result<Option<DetailMask>> {
    path.as_deref().map(import::load_mask).transpose()
}

/// Reads with a bar.
fn reading<T>(
    args: &CompileArgs,
    read: impl FnOnce(&mut import::Progress) -> Result<T>,
) -> Result<T> {
    let bar = ProgressBar::new("Reading", args.quiet || args.json);
    let mut tell = |done, total| {
        bar.set(Progress { done, total });
        go_on()
    };
    let found = read(&mut import::Progress::new(&mut tell))?;
    bar.finish();
    Ok(found)
}

/// Compiles, and says what came out.
fn write(
    args: &CompileArgs,
    tiles: &[PathBuf],
    output: &Path,
    source: &Source,
    options: &CompileOptions,
) -> Result<()> {
    let spools = Spools {
        chunks: Box::new(FileSpool::beside(output)?),
        scratch: Box::new(FileSpool::beside(output)?),
    };
    let bar = ProgressBar::new("Compiling", args.quiet || args.json);
    let lines = JsonLines::default();
    let follow = |progress| {
        bar.set(progress);
        if args.json {
            lines.tell(progress)?;
        }
        go_on()
    };
    let compiled = compile_into(spools, source, options, &follow);
    let (writer, meta) = compiled.map_err(|error| about(tiles, error))?;
    bar.finish();
    files::write_world(output, args.force, writer)?;
    if args.json {
        return print(&serde_json::json!({ "written": output, "levels": meta.levels }).to_string());
    }
    if !args.quiet {
        report(&meta, output);
    }
    Ok(())
}

/// What to say of a mask that has no water in it.
fn no_water(mask: Option<&WaterMask>) -> Option<Warning> {
    let text = "the water mask is black all over, so there is no sea";
    let pass = "a --water-mask that is white (from half grey up) where water is, or only --sea-level M for a sea everywhere";
    mask.filter(|mask| mask.is_black())
        .map(|_| Warning::new("water", text, pass))
}

/// Set by the first Ctrl-C: the next step forward ends in an error, so that temporary files go.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

fn go_on() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    Ok(())
}

/// A second Ctrl-C does not wait.
fn watch_for_ctrl_c() {
    on_interrupt(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            files::remove_unfinished();
            std::process::exit(2);
        }
    });
}

/// Progress on stdout, a line for each percent.
#[derive(Default)]
struct JsonLines {
    percent: AtomicU64,
}

impl JsonLines {
    fn tell(&self, progress: Progress) -> Result<()> {
        let percent = progress.done * 100 / progress.total.max(1);
        if self.percent.fetch_max(percent, Ordering::Relaxed) >= percent {
            return Ok(());
        }
        let line = serde_json::json!({
            "percent": percent,
            "samples_done": progress.done,
            "samples_total": progress.total,
        });
        print(&line.to_string())
    }
}

/// What was found in the input, a fact or a warning a line.
fn as_text(lint: &Lint) -> String {
    let [columns, rows] = lint.size;
    let [x, z] = lint.spacing_m;
    let kilometres = |samples: u32, spacing: f64| f64::from(samples - 1) * spacing / 1000.0;
    let mut lines = vec![
        format!("source    {}", printable(&lint.files.join(", "))),
        format!(
            "          {}",
            printable(lint.crs.as_deref().unwrap_or("no coordinate system"))
        ),
        format!(
            "size      {columns} x {rows} samples, {:.2} x {:.2} km",
            kilometres(columns, x),
            kilometres(rows, z)
        ),
        format!("spacing   {x:.3} x {z:.3} m"),
        format!(
            "heights   {} to {} m in steps of {} m",
            lint.min_m, lint.max_m, lint.height_step_m
        ),
    ];
    lines.push(match &lint.voids {
        None => "voids     none".into(),
        Some(voids) => format!(
            "voids     {} samples of the source, columns {} to {}, rows {} to {}",
            voids.count, voids.columns[0], voids.columns[1], voids.rows[0], voids.rows[1]
        ),
    });
    let warnings = lint.warnings.iter();
    lines.extend(warnings.map(|warning| format!("warning   {}", as_line(warning))));
    lines.join("\n")
}

/// The compiler knows of no files.
fn about(tiles: &[PathBuf], error: Error) -> Error {
    match error {
        Error::Usage(text) => Error::Usage(format!("{}: {text}", names(tiles))),
        other => other,
    }
}

/// The first file, and how many others there are.
fn names(tiles: &[PathBuf]) -> String {
    let first = tiles.first().map(|path| path.display().to_string());
    let first = first.unwrap_or_default();
    match tiles.len() {
        0 | 1 => first,
        2 => format!("{first} and another file"),
        count => format!("{first} and {} other files", count - 1),
    }
}

fn as_line(warning: &Warning) -> String {
    format!("{}; pass {}", warning.text, warning.pass)
}

/// A bar on stderr with samples a second and the time left; nothing where there is no terminal.
pub struct ProgressBar(indicatif::ProgressBar);

impl ProgressBar {
    pub fn new(what: &'static str, quiet: bool) -> Self {
        let bar = indicatif::ProgressBar::new(0);
        if quiet {
            bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        }
        let template =
            "{msg} [{bar:32}] {percent:>3} %  {human_pos} samples, {per_sec}, {eta} left";
        let style =
            indicatif::ProgressStyle::with_template(template).expect("the template is sound");
        bar.set_style(style.progress_chars("=> "));
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        ProgressBar(bar)
    }

    pub fn set(&self, progress: Progress) {
        self.0.set_length(progress.total);
        self.0.set_position(progress.done);
    }

    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Of a folder that is called by no name, such as `.`, the name is not known.
fn default_output(input: &Path) -> PathBuf {
    input.file_name().map_or_else(
        || PathBuf::from("world.hfw"),
        |name| PathBuf::from(name).with_extension("hfw"),
    )
}

fn report(meta: &Meta, output: &Path) {
    let size = std::fs::metadata(output).map_or(0, |facts| facts.len());
    let finest = &meta.levels[0];
    let [columns, rows] = meta.layout.size_cells.map(|cells| cells + 1);
    tell!(
        "wrote {} ({:.1} MB): {columns} x {rows} samples, {} levels, {} triangles in the finest (error {:.2} m, asked {:.2} {})",
        output.display(),
        size as f64 / 1e6,
        meta.layout.levels,
        finest.triangles,
        finest.max_error_m,
        finest.threshold,
        meta.threshold_unit()
    );
    if meta.source.filled > 0 {
        tell!("filled {} voids", meta.source.filled);
    }
    if meta.kept_voids > 0 {
        tell!("kept {} voids", meta.kept_voids);
    }
    report_exhausted(meta);
    let cells = (0..meta.layout.levels).map(|level| meta.layout.lattice_cells(level));
    if cells.max() > Some(LARGEST_FLOWN_LATTICE) {
        tell!(
            "patches of {} cells with a lattice bias of {} may have more vertices than can be drawn; half of either never do",
            meta.layout.patch_cells,
            meta.layout.lattice_bias
        );
    }
    let program = std::env::args().next().unwrap_or("highfell".into());
    tell!("fly over it with: {program} fly {}", output.display());
}

/// Coarse lattices cannot follow rough ground; such levels are only drawn further away.
fn report_exhausted(meta: &Meta) {
    let exhausted = |level: &&LevelMeta| level.exhausted_patches > 0;
    let patches: u64 = meta
        .levels
        .iter()
        .map(|level| level.exhausted_patches)
        .sum();
    let first = meta.levels.iter().position(|level| exhausted(&level));
    let last = meta.levels.iter().rposition(|level| exhausted(&level));
    if let (Some(first), Some(last)) = (first, last) {
        let suggestion = match meta.metric.as_str() {
            "max" => format!(
                " (none would with --error {})",
                import::rounded_up(suggested_error(meta))
            ),
            _ => String::new(),
        };
        let patches = if patches == 1 {
            "1 patch".into()
        } else {
            format!("{patches} patches")
        };
        let levels = if first == last {
            format!("level {first}")
        } else {
            format!("levels {first} to {last}")
        };
        tell!(
            "rougher than the lattice can follow: {patches} of {levels}, drawn only from further away than the others would{suggestion}"
        );
    }
}

/// The error at which no level would ask for more than its lattice gave.
fn suggested_error(meta: &Meta) -> f64 {
    let by_level = meta
        .levels
        .iter()
        .enumerate()
        .map(|(level, facts)| facts.max_error_m / 2f64.powi(level as i32));
    by_level.fold(meta.levels[0].threshold, f64::max)
}
