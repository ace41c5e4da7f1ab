//! The flags of `highfell bench`.

use crate::modes::cli::ViewArgs;
use crate::modes::values::{Size, positive, whole};
use crate::terrain::camera::CameraArg;
use clap::{ArgGroup, Args};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("flight").required(true).args(["play", "orbit", "straight"])), before_help = "\
Examples:
  highfell bench nice.hfw --orbit
  highfell bench nice.hfw --straight 100 --frames 1000 --json nice.json
  highfell bench nice.hfw --play flight.json --mesher grid --pixel-error 1")]
pub struct BenchArgs {
    /// World file; the built-in world without one
    pub world: Option<PathBuf>,
    /// Fly what `highfell fly --record` wrote, its frames spread over all of it
    #[arg(long, value_name = "JSON")]
    pub play: Option<PathBuf>,
    /// Fly once round the summit
    #[arg(long)]
    pub orbit: bool,
    /// Fly straight on, 100 m above the ground, so many metres a second at 60 frames a second
    #[arg(long, value_name = "M_PER_S", allow_hyphen_values = true, value_parser = positive)]
    pub straight: Option<f64>,
    /// Frames to draw
    #[arg(long, value_name = "N", default_value_t = 600, allow_hyphen_values = true, value_parser = whole::<u32, 1, 1_000_000>)]
    pub frames: u32,
    /// Size in pixels
    #[arg(
        long,
        value_name = "WxH",
        allow_hyphen_values = true,
        default_value = "1280x720"
    )]
    pub size: Size,
    /// Begin here, as with fly; by default at the first look at the world
    #[arg(
        long,
        value_name = "X,Y,Z,YAW,PITCH",
        allow_hyphen_values = true,
        conflicts_with = "play"
    )]
    pub camera: Option<CameraArg>,
    /// Write all that was measured as JSON
    #[arg(long, value_name = "JSON")]
    pub json: Option<PathBuf>,
    /// Do not count hole pixels, which takes a second picture a frame
    #[arg(long)]
    pub no_holes: bool,
    /// Overwrite the JSON
    #[arg(long)]
    pub force: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub view_args: ViewArgs,
}
