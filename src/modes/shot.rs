//! `highfell shot`: one picture, drawn by the same frame function as the window's.

use super::cli::ShotArgs;
use super::{check_may_write, first_pose, open_shared, settings, setup};
use crate::error::{Error, Result};
use crate::files;
use crate::render::{Gpu, Picture};
use crate::scene::Scene;
use crate::scene::hole_check::HoleCheck;
use crate::settings::{Setup, Stats};
use crate::terrain::camera::Pose;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

pub fn run(args: &ShotArgs) -> Result<()> {
    check_outputs(args)?;
    let world = open_shared(args.world.as_deref())?;
    let settings = settings(&args.view_args, &world)?;
    let gpu = Gpu::open(&args.view_args.adapter)?;
    let pose = first_pose(args.camera.as_ref(), &world, settings.lod.exaggeration)?;
    let mut scene = Scene::for_pictures(&gpu, world, &setup(&args.view_args, Setup::default()))?;
    let timeout = Duration::try_from_secs_f64(args.settle_timeout).unwrap_or(Duration::MAX);
    let size = args.size.0;
    scene.settle(&gpu, &pose, &settings, size, timeout)?;
    let (picture, stats) = scene.picture(&gpu, &pose, &settings, size, 0.0)?;
    if let Some(path) = &args.stats {
        let holes = HoleCheck::new(scene.world(), settings.lod.exaggeration)?;
        let hole_pixels = holes.count(&gpu, &mut scene, &pose, &settings, size, 0.0)?;
        let text = stats_text(&stats, hole_pixels, &pose, size);
        files::write_beside(path, args.force, |out| writeln!(out, "{text}"))?;
    }
    write_png(&args.output, args.force, &picture)?;
    tell!("wrote {} (--camera {pose})", args.output.display());
    Ok(())
}

fn check_outputs(args: &ShotArgs) -> Result<()> {
    let inputs: Vec<&Path> = args.world.as_deref().into_iter().collect();
    check_may_write(&args.output, args.force, &inputs)?;
    if args
        .output
        .extension()
        .is_none_or(|ending| !ending.eq_ignore_ascii_case("png"))
    {
        return Err(Error::Usage(format!(
            "{}: pictures are PNG files; expected a name that ends in .png",
            args.output.display()
        )));
    }
    let Some(stats) = &args.stats else {
        return Ok(());
    };
    if files::same_place(stats, &args.output) {
        return Err(Error::Usage(format!(
            "{}: is both picture and statistics; expected two names",
            stats.display()
        )));
    }
    check_may_write(stats, args.force, &inputs)
}

/// Writes a PNG beside its place and renames it; with `force` it takes the place of another.
pub fn write_png(path: &Path, force: bool, picture: &Picture) -> Result<()> {
    let [width, height] = picture.size;
    let pixels: Vec<u8> = picture
        .pixels
        .iter()
        .flat_map(|[r, g, b, _]| [*r, *g, *b])
        .collect();
    let image =
        image::RgbImage::from_raw(width, height, pixels).expect("as many pixels as the size says");
    let mut bytes = std::io::Cursor::new(Vec::new());
    image
        .write_to(&mut bytes, image::ImageFormat::Png)
        .map_err(|error| Error::Usage(format!("{}: {error}", path.display())))?;
    files::write_beside(path, force, |out| out.write_all(bytes.get_ref()))
}

fn stats_text(stats: &Stats, hole_pixels: u64, pose: &Pose, size: [u32; 2]) -> String {
    let mut value = serde_json::to_value(stats).expect("plain data");
    value["hole_pixels"] = hole_pixels.into();
    value["camera"] = pose.to_string().into();
    value["size"] = serde_json::json!(size);
    serde_json::to_string_pretty(&value).expect("plain data")
}
