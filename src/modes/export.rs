//! `highfell export`: meshes and heights of a world, for other programs.

use super::check_may_write;
use super::cli::ExportArgs;
use super::sections::{self, FullGround, FullHeights};
use crate::error::{Error, Result};
use crate::export::MeshFormat;
use crate::export::geotiff::{self, SampleType};
use crate::files::{self, bad_world, open_world, write_beside};
use crate::terrain::mesh::PatchData;
use crate::terrain::surface::{Surface, SurfaceBuilder};
use crate::world::{FormatError, Layout, PatchKey, Section, SectionKey, World};
use std::collections::HashMap;
use std::path::Path;

pub fn run(args: &ExportArgs) -> Result<()> {
    super::leave_nothing_unfinished();
    check_heights_name(args.heights.as_deref())?;
    let format = args.output.as_deref().map(mesh_format).transpose()?;
    let world = open_world(&args.world)?;
    for path in [&args.output, &args.heights].into_iter().flatten() {
        check_may_write(path, args.force, &[&args.world])?;
    }
    if let (Some(level), Some(output), Some(format)) = (args.level, &args.output, format) {
        export_mesh(&world, level, args, output, format)?;
    }
    if let Some(output) = &args.heights {
        export_heights(&world, output, args)?;
    }
    Ok(())
}

fn mesh_format(output: &Path) -> Result<MeshFormat> {
    MeshFormat::of(output).ok_or_else(|| {
        let what = format!(
            "{}: not a kind of mesh; expected .obj, .ply or .glb",
            output.display()
        );
        Error::Usage(what)
    })
}

/// So it is never the name of the mesh either.
fn check_heights_name(path: Option<&Path>) -> Result<()> {
    let is_tiff = |path: &Path| {
        let ending = path.extension().unwrap_or_default();
        ["tif", "tiff"]
            .iter()
            .any(|known| ending.eq_ignore_ascii_case(known))
    };
    match path.filter(|path| !is_tiff(path)) {
        None => Ok(()),
        Some(path) => Err(Error::Usage(format!(
            "{}: heights are written as a GeoTIFF; expected a name that ends in .tif or .tiff",
            path.display()
        ))),
    }
}

fn export_mesh(
    world: &World,
    level: u8,
    args: &ExportArgs,
    output: &Path,
    format: MeshFormat,
) -> Result<()> {
    let area = area(world, level, args)?;
    let surface = surface(world, level, area, args)?;
    let [x0, z0, x1, z1] = area;
    let name = args.world.file_stem().unwrap_or_default().to_string_lossy();
    let title = format!(
        "{name}, level {level}, patches {x0},{z0} to {},{}",
        x1 - 1,
        z1 - 1
    );
    write_beside(output, args.force, |out| {
        format.write(&surface, &title, out)
    })?;
    if !args.quiet {
        tell!(
            "wrote {}: {title}: {} triangles, {} vertices, error {:.2} m",
            output.display(),
            surface.triangles.len(),
            surface.positions.len(),
            world.meta.levels[level as usize].max_error_m,
        );
    }
    Ok(())
}

/// The first patch and one past the last, [x0, z0, x1, z1], of what is asked for.
fn area(world: &World, level: u8, args: &ExportArgs) -> Result<[u32; 4]> {
    let layout = &world.meta.layout;
    let refuse = |text: String| Err(Error::Usage(format!("{}: {text}", args.world.display())));
    if level >= layout.levels {
        return refuse(format!(
            "there is no level {level}; expected 0 to {}",
            layout.coarsest()
        ));
    }
    let [nx, nz] = layout.patches(level);
    let [x0, z0, x1, z1] = match (args.patch, args.region) {
        (Some(patch), _) => [patch.0[0], patch.0[1], patch.0[0], patch.0[1]],
        (_, Some(region)) => region.0,
        _ => [0, 0, nx - 1, nz - 1],
    };
    if x0 > x1 || z0 > z1 || x0 >= nx || z0 >= nz {
        return refuse(format!(
            "no patch from {x0},{z0} to {x1},{z1} at level {level}; expected them from 0,0 to {},{}",
            nx - 1,
            nz - 1
        ));
    }
    Ok([
        x0,
        z0,
        nx.min(x1.saturating_add(1)),
        nz.min(z1.saturating_add(1)),
    ])
}

fn surface(world: &World, level: u8, area: [u32; 4], args: &ExportArgs) -> Result<Surface> {
    let layout = world.meta.layout;
    let [x0, z0, x1, z1] = area;
    let keys = (z0..z1).flat_map(|z| (x0..x1).map(move |x| PatchKey::new(level, x, z)));
    let sections = read_level(world, level, |key| covers(&layout, key, area, level))
        .map_err(|error| bad_world(&args.world, error))?;
    let mut builder = SurfaceBuilder::new(&world.meta, args.whole_patches);
    for key in keys {
        let section = sections.get(&layout.section_of(key));
        let section = section.expect("the section of every patch of the area was read");
        let patch = PatchData {
            record: section.patch(key),
            heights: &section.heights,
        };
        let cells = section.patch_cells(key, layout.lattice_cells(level));
        builder.add(key, patch, cells.as_ref());
    }
    Ok(builder.finish())
}

/// Whether a stream patch holds patches of an area of a level.
fn covers(layout: &Layout, stream_patch: PatchKey, [x0, z0, x1, z1]: [u32; 4], level: u8) -> bool {
    let shift = stream_patch.level.saturating_sub(level);
    let inside =
        |at: u32, first: u32, end: u32| (first >> shift..=(end - 1) >> shift).contains(&at);
    !layout.is_global(level) && inside(stream_patch.x, x0, x1) && inside(stream_patch.z, z0, z1)
}

fn read_level(
    world: &World,
    level: u8,
    wanted: impl Fn(PatchKey) -> bool,
) -> std::result::Result<HashMap<SectionKey, Section>, FormatError> {
    let keep = |section: Section| (section.key.level == level).then_some(section);
    let (sections, errors) = sections::visit(world, level, wanted, keep);
    match errors.into_iter().next() {
        Some(error) => Err(error),
        None => {
            let sections = sections.into_iter().flatten();
            Ok(sections.map(|section| (section.key, section)).collect())
        }
    }
}

fn export_heights(world: &World, output: &Path, args: &ExportArgs) -> Result<()> {
    let bad = |error| files::bad_world(&args.world, error);
    let heights = FullHeights::new(world);
    let (_, errors) = sections::visit(world, 0, |_| true, |section| heights.fill(&section));
    if let Some(error) = errors.into_iter().next() {
        return Err(bad(error));
    }
    let FullGround { map, absent } = heights.finish().map_err(bad)?;
    let meta = &world.meta;
    write_beside(output, args.force, |out| {
        geotiff::write(&map, absent.as_deref(), meta, out)
    })?;
    if !args.quiet {
        let kind = SampleType::of(meta.height_range, meta.height_step_m);
        tell!(
            "wrote {}: {} x {} heights in metres, {}, {}",
            output.display(),
            map.width,
            map.height,
            kind.name(),
            meta.source.crs.as_deref().unwrap_or("no coordinate system"),
        );
        if meta.height_step_m != 1.0 {
            tell!(
                "compile it with --height-step {} to get the same heights",
                meta.height_step_m
            );
        }
    }
    Ok(())
}
