//! The flags of every verb.

use super::bench::args::BenchArgs;
use super::values::{Pair, RawSize, Size};
use super::values::{exaggeration, finite, msaa, not_negative, patch_cells, positive, raw_size};
use super::values::{spacing, whole, within};
use crate::import::{self, ByteOrder, Crop, Encoding, ImportOptions, VoidFill};
use crate::render::AdapterChoice;
use crate::settings::{Shading, View};
use crate::terrain::camera::CameraArg;
use crate::terrain::measure::Metric;
use crate::terrain::mesh::Mesher;
use crate::world::{PatchKey, StoredHeights};
use clap::{ArgGroup, Args, Parser, Subcommand};
use std::path::PathBuf;
use std::str::FromStr;

const EXAMPLES: &str = "\
Examples:
  highfell                                    fly over the built-in archipelago
  highfell compile N43E007.hgt -o nice.hfw --sea-level 0
  highfell fly nice.hfw
  highfell shot nice.hfw --camera 20000,+300,30000,0,-10 -o nice.png
  highfell inspect nice.hfw
  highfell verify nice.hfw --source N43E007.hgt
  highfell export nice.hfw --level 3 --all -o nice.glb
  highfell bench nice.hfw --orbit";

/// Turns elevation data into a world of adaptive triangle meshes and flies over it.
#[derive(Debug, Parser)]
#[command(version, about, before_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub view: ViewArgs,
    /// Where there is no display, overwrite the pictures of an earlier flight
    #[arg(long)]
    pub force: bool,
    /// Print the GPU adapters, one a line, and end
    #[arg(long, global = true)]
    pub list_adapters: bool,
    /// Say more on stderr
    #[arg(long, short, global = true)]
    pub verbose: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Fly over a world in a window
    Fly(FlyArgs),
    /// Compile elevation data into a world
    Compile(CompileArgs),
    /// Draw one picture of a world without a window
    Shot(ShotArgs),
    /// Fly without a window and measure every frame
    Bench(BenchArgs),
    /// Show what is in a world
    Inspect(InspectArgs),
    /// Check that a world is what it says it is
    Verify(VerifyArgs),
    /// Write meshes or heights of a world for other programs
    Export(ExportArgs),
}

const SUN: &str = "300,38";

/// How a world is drawn.
#[derive(Debug, Args, Clone)]
pub struct ViewArgs {
    /// GPU adapter: best, software, or part of a name (highfell --list-adapters)
    #[arg(long, value_name = "NAME", default_value = "best")]
    pub adapter: AdapterChoice,
    /// What the ground shows
    #[arg(long, value_enum, default_value_t = View::Shaded)]
    pub view: View,
    /// Vertical field of view in degrees, 5 to 150
    #[arg(long, value_name = "DEGREES", default_value_t = 60.0, allow_hyphen_values = true, value_parser = within::<5, 150>)]
    pub fov: f64,
    /// Draw heights this many times as high, at most 100
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, allow_hyphen_values = true, value_parser = exaggeration)]
    pub exaggerate: f64,
    /// Largest error on screen, in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 2.0, allow_hyphen_values = true, value_parser = positive)]
    pub pixel_error: f64,
    /// Distances in metres at which levels 0, 1, ... end, instead of the pixel error
    #[arg(long, value_name = "M,M,...", value_delimiter = ',', allow_hyphen_values = true, value_parser = positive)]
    pub ranges: Vec<f64>,
    /// The sun: degrees clockwise from north, degrees above the horizon
    #[arg(long, value_name = "AZIMUTH,HEIGHT", default_value = SUN, allow_hyphen_values = true)]
    pub sun: Pair,
    /// Kilometres over which the air thickens; by default 60, or one and a half worlds
    #[arg(long, value_name = "KM", allow_hyphen_values = true, value_parser = positive)]
    pub fog_km: Option<f64>,
    /// Which triangles: the compiled trees (static), or whole lattices for comparison (grid)
    #[arg(long, value_name = "static|grid", default_value = "static")]
    pub mesher: Mesher,
    /// How much is made of ground and sea; plain by default in a window that the processor draws
    #[arg(long, value_enum, value_name = "HOW")]
    pub shading: Option<Shading>,
    /// Samples a pixel, 1 or 4; by default 4 in a window that a GPU draws, else 1
    #[arg(long, value_name = "SAMPLES", allow_hyphen_values = true, value_parser = msaa)]
    pub msaa: Option<u8>,
    /// Draw patches one by one, though the adapter draws many in one call
    #[arg(long)]
    pub plain_draws: bool,
    /// Leave out the sea
    #[arg(long)]
    pub no_water: bool,
    /// Do not morph from level to level: see them pop
    #[arg(long)]
    pub no_morph: bool,
    /// Leave out the skirts that cover gaps between patches
    #[arg(long)]
    pub no_skirts: bool,
    /// Leave out one patch, to prove that a picture test notices
    #[arg(long, value_name = "LEVEL/X/Z", allow_hyphen_values = true)]
    pub hide_patch: Option<PatchKey>,
}

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  highfell fly nice.hfw
  highfell fly nice.hfw --camera 20000,+300,30000,0,-10 --view wireframe
  highfell fly nice.hfw --record flight.json")]
pub struct FlyArgs {
    /// World file; the built-in world without one
    pub world: Option<PathBuf>,
    /// Start here: X,Y,Z,YAW,PITCH in metres and degrees; Y as +N is N metres above ground and sea
    #[arg(long, value_name = "X,Y,Z,YAW,PITCH", allow_hyphen_values = true)]
    pub camera: Option<CameraArg>,
    /// Write the flight down when the window is closed, for --play
    #[arg(long, value_name = "JSON")]
    pub record: Option<PathBuf>,
    /// Fly what --record wrote, until a key moves the camera
    #[arg(long, value_name = "JSON", conflicts_with = "camera")]
    pub play: Option<PathBuf>,
    /// Overwrite the recording; where there is no display, the pictures of an earlier flight
    #[arg(long)]
    pub force: bool,
    /// Lose the graphics device after so many frames, to test that the window lives on
    #[arg(long, value_name = "FRAMES", hide = true, allow_hyphen_values = true)]
    pub lose_device_after: Option<u64>,
    #[command(flatten)]
    pub view: ViewArgs,
}

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  highfell compile alps.tif -o alps.hfw
  highfell compile N43E007.hgt -o nice.hfw --sea-level 0 --error 4
  highfell compile heights.png -o island.hfw --spacing 8 --height-scale 0.1
  highfell compile tiles/ -o county.hfw
  highfell compile n31_e035.tif -o dead-sea.hfw --sea-level -414 --water-mask lake.png
  highfell compile alps.tif --dry-run")]
pub struct CompileArgs {
    /// GeoTIFF, SRTM (.hgt, .hgt.zip), DTED, PNG, OpenEXR, raw (.r16, .r32) or ESRI grid (.asc, .flt,
    /// .bil), with .prj, .tfw or .aux.xml beside it; several side by side, or a folder, are one world
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// World file to write; the first input's name with .hfw by default
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// Largest error of the finest level in metres (cubic metres for --metric sum); by default an
    /// eighth of the spacing or a hundredth of the relief, whichever is less, but no less than the
    /// height step
    #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = positive)]
    pub error: Option<f64>,
    /// What is compared with the error: the largest vertical distance (max, metres) or the
    /// distances summed over a triangle's cells (sum, cubic metres)
    #[arg(long, value_name = "max|sum", default_value = "max")]
    pub metric: Metric,
    /// Where the sea stands, in metres; without it no sea, or one at 0 where there is a --water-mask
    #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = finite)]
    pub sea_level: Option<f64>,
    /// A PNG over the whole source that is white (from half grey up) where water may be: ground
    /// below the sea level stays dry where it is black. How fine it is matters only where such dry
    /// ground lies beside water
    #[arg(long, value_name = "PNG")]
    pub water_mask: Option<PathBuf>,
    /// Cells along a finest patch's side: 4, 8, ... 512
    #[arg(long, value_name = "CELLS", default_value_t = 32, allow_hyphen_values = true, value_parser = patch_cells)]
    pub patch_cells: u32,
    /// Most levels (patch maps); by default as many as it takes for one patch to cover the world
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole::<u8, 1, 20>)]
    pub levels: Option<u8>,
    /// Halvings by which the meshes above level 0 may be finer than their patches ask for: 0, 1 or 2
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = whole::<u8, 0, 2>)]
    pub lattice_bias: u8,
    /// A PNG over the whole source that asks for more detail: white down to the lattice at every
    /// level, grey takes a share of the error away
    #[arg(long, value_name = "PNG")]
    pub detail_mask: Option<PathBuf>,
    /// Store for every vertex at which threshold it leaves its level's mesh, so that a viewer can
    /// follow a changed threshold at once; takes a pass over the ground for each level
    #[arg(long)]
    pub live: bool,
    /// Heights to store: those of every sample (all), or only those of the meshes' vertices
    /// (nodes). Worlds of nodes are many times smaller, but between vertices the ground is flat:
    /// heights, light and what is exported are off by up to each patch's error
    #[arg(long, value_name = "all|nodes", default_value = "all")]
    pub heights: StoredHeights,
    /// Cores to use; all by default
    #[arg(long, short, value_name = "N", allow_hyphen_values = true, value_parser = whole::<u16, 1, 1024>)]
    pub jobs: Option<u16>,
    /// Say what is in the input and what looks wrong with it, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// JSON for scripts: with --dry-run one object; else a line for each percent of the progress,
    /// and one for the world that was written
    #[arg(long)]
    pub json: bool,
    /// Overwrite the output
    #[arg(long)]
    pub force: bool,
    /// No progress, no report; what looks wrong in the input is still told
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub import: ImportArgs,
}

/// How elevation files are read.
#[derive(Debug, Args, Clone)]
#[command(next_help_heading = "Reading the input")]
pub struct ImportArgs {
    /// Metres between samples, or X,Z; overrides what the file says
    #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = spacing)]
    pub spacing: Option<Pair>,
    /// Metres a unit of the file's heights, or a unit such as ft or us-ft; overrides the file's
    #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = import::height_scale)]
    pub height_scale: Option<f64>,
    /// Metres to add to every height
    #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = finite)]
    pub height_offset: Option<f64>,
    /// Metres a stored height step, for heights that are not integers
    #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = positive)]
    pub height_step: Option<f64>,
    /// This number in the file is no height
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = finite)]
    pub nodata: Option<f64>,
    /// Samples without a height: fill (smoothly from their rims), nearest, or keep: there is no
    /// ground then, and one sees through
    #[arg(long, value_name = "HOW", default_value = "fill")]
    pub voids: VoidFill,
    /// Use only these samples
    #[arg(long, value_name = "X,Z,W,H", allow_hyphen_values = true)]
    pub crop: Option<Crop>,
    /// Make a square grid with so many metres between samples (cubic), in memory: up to 2^28
    /// samples
    #[arg(long, value_name = "M", allow_hyphen_values = true, value_parser = positive)]
    pub resample: Option<f64>,
    /// What a PNG's colours are: grey, terrarium or mapbox
    #[arg(long, value_name = "CODE")]
    pub encoding: Option<Encoding>,
    /// The band or channel that holds the heights, from 1
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole::<u16, 1, 65535>)]
    pub band: Option<u16>,
    /// Samples of a raw file (.r16, .r32) that is not square
    #[arg(long, value_name = "WxH", allow_hyphen_values = true, value_parser = raw_size)]
    pub raw_size: Option<RawSize>,
    /// Byte order of a raw file, le or be; le by default
    #[arg(long, value_name = "ORDER")]
    pub byte_order: Option<ByteOrder>,
}

impl ImportArgs {
    pub fn options(&self) -> ImportOptions {
        ImportOptions {
            spacing_m: self.spacing.map(|pair| pair.0),
            height_scale: self.height_scale,
            height_offset_m: self.height_offset,
            height_step_m: self.height_step,
            nodata: self.nodata,
            encoding: self.encoding,
            band: self.band,
            raw_size: self.raw_size,
            byte_order: self.byte_order,
            crop: self.crop,
            voids: self.voids,
            resample_m: self.resample,
            ..ImportOptions::default()
        }
    }
}

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  highfell shot -o islands.png
  highfell shot nice.hfw --camera 20000,+300,30000,0,-10 --view wireframe -o nice.png --stats nice.json")]
pub struct ShotArgs {
    /// World file; the built-in world without one
    pub world: Option<PathBuf>,
    /// X,Y,Z,YAW,PITCH in metres and degrees: yaw 0 is north and 90 east, pitch 90 is up; Y as
    /// +N is N metres above ground and sea. By default a look at the summit from the side of the
    /// middle
    #[arg(long, value_name = "X,Y,Z,YAW,PITCH", allow_hyphen_values = true)]
    pub camera: Option<CameraArg>,
    /// Size in pixels
    #[arg(
        long,
        value_name = "WxH",
        allow_hyphen_values = true,
        default_value = "1280x720"
    )]
    pub size: Size,
    /// PNG to write
    #[arg(long, short, default_value = "shot.png")]
    pub output: PathBuf,
    /// Write the counters of the frame as JSON, hole pixels among them
    #[arg(long, value_name = "JSON")]
    pub stats: Option<PathBuf>,
    /// Give up (exit code 1) when streaming takes longer, in seconds
    #[arg(long, value_name = "S", default_value_t = 60.0, allow_hyphen_values = true, value_parser = not_negative)]
    pub settle_timeout: f64,
    /// Overwrite the outputs
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub view_args: ViewArgs,
}

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  highfell inspect nice.hfw
  highfell inspect nice.hfw --json
  highfell inspect nice.hfw --patch 0/6/3
  highfell inspect nice.hfw --patch 0/6/3 --svg patch.svg")]
pub struct InspectArgs {
    /// World file; the built-in world without one
    pub world: Option<PathBuf>,
    /// Show this patch: its bit-streams, the depths of its trees, its error
    #[arg(long, value_name = "LEVEL/X/Z", allow_hyphen_values = true)]
    pub patch: Option<PatchKey>,
    /// Draw the patch as mesh, tree and bit-stream side by side
    #[arg(long, value_name = "SVG", requires = "patch")]
    pub svg: Option<PathBuf>,
    /// Overwrite the drawing
    #[arg(long)]
    pub force: bool,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  highfell verify nice.hfw
  highfell verify nice.hfw --source N43E007.hgt
  highfell verify dead-sea.hfw --source n31_e035.tif --water-mask lake.png
  highfell verify nice.hfw --json

Exit code 1 when a check fails, 2 when the file cannot be opened as a world.")]
pub struct VerifyArgs {
    /// World file; the built-in world without one
    pub world: Option<PathBuf>,
    /// The elevation files (or their folder) that it was compiled from: compare all heights with
    /// them, read as the options below say, the ones given to `compile`. A world of heights at
    /// nodes (compile --heights nodes) is not checked against samples without it
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    pub source: Vec<PathBuf>,
    /// The picture given to `compile --water-mask`: compare the world's water mask with it
    #[arg(long, value_name = "PNG")]
    pub water_mask: Option<PathBuf>,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub import: ImportArgs,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["level", "heights"]).required(true).multiple(true))]
#[command(group = ArgGroup::new("part").args(["patch", "region", "all"]))]
#[command(before_help = "\
Examples:
  highfell export nice.hfw --level 3 --all -o nice.glb
  highfell export nice.hfw --level 0 --patch 6,3 -o patch.obj
  highfell export nice.hfw --level 1 --region 4,4,7,9 -o slope.ply
  highfell export nice.hfw --heights nice.tif

Meshes are in metres: x east, y up, z south, from the source's north-west sample. Where voids were
kept, a triangle is left out when all cells of its level's lattice that it covers are without
ground; heights there are written as a number that the file declares to be none.")]
pub struct ExportArgs {
    /// World file
    pub world: PathBuf,
    /// Write the mesh of this level; 0 is the finest
    #[arg(long, requires = "output", requires = "part", allow_hyphen_values = true, value_parser = whole::<u8, 0, 19>)]
    pub level: Option<u8>,
    /// One patch of the level
    #[arg(
        long,
        value_name = "X,Z",
        allow_hyphen_values = true,
        requires = "level"
    )]
    pub patch: Option<Numbers<2>>,
    /// The patches from X0,Z0 to X1,Z1, both included; those without ground are left out
    #[arg(
        long,
        value_name = "X0,Z0,X1,Z1",
        allow_hyphen_values = true,
        requires = "level"
    )]
    pub region: Option<Numbers<4>>,
    /// All patches of the level
    #[arg(long, requires = "level")]
    pub all: bool,
    /// Mesh to write: .obj, .ply (binary) or .glb (glTF 2.0)
    #[arg(long, short, requires = "level")]
    pub output: Option<PathBuf>,
    /// Keep what patches on the edge have beyond the source, instead of cutting there
    #[arg(long, requires = "level")]
    pub whole_patches: bool,
    /// Write all heights as a GeoTIFF, in metres, with the source's georeference
    #[arg(long, value_name = "TIF")]
    pub heights: Option<PathBuf>,
    /// Overwrite the outputs
    #[arg(long)]
    pub force: bool,
    /// No report
    #[arg(long, short)]
    pub quiet: bool,
}

/// So many whole numbers with commas between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers<const N: usize>(pub [u32; N]);

impl<const N: usize> FromStr for Numbers<N> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u32>> = text
            .split(',')
            .map(|part| part.trim().parse().ok())
            .collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
        numbers
            .map(Numbers)
            .ok_or_else(|| format!("'{text}' is not {N} whole numbers with commas between them"))
    }
}
