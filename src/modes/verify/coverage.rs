//! The check of kept voids: every level's cells, and the patches' marks, against the samples of
//! level 0.

use super::checks::Contents;
use super::findings::Findings;
use crate::modes::sections;
use crate::world::{PatchKey, Section, World, coverage};

/// Ground is absent where, and only where, all samples are.
pub fn check(world: &World, contents: &Contents) -> Findings {
    let mut findings = Findings::new("coverage", "patches and cells");
    let look = |section: Section| (section.key, examine(world, contents, &section));
    let (sections, _) = sections::visit(world, 0, |_| true, look);
    for (key, (compared, faults)) in sections {
        findings.compared(compared);
        for fault in faults {
            findings.fault(format!(
                "section {}/{}/{}: {fault}",
                key.level, key.x, key.z
            ));
        }
    }
    let kept = contents.absent_count();
    findings.expect(kept == world.meta.kept_voids, || {
        format!("{} kept voids stored, {kept} found", world.meta.kept_voids)
    });
    findings.note(format!("{kept} kept voids"));
    findings
}

/// How much was compared in a section, and what is wrong there: the first of each kind.
fn examine(world: &World, contents: &Contents, section: &Section) -> (u64, Vec<String>) {
    let layout = &world.meta.layout;
    let [x0, z0, x1, z1] = section.area;
    let keys = (z0..z1).flat_map(|z| (x0..x1).map(move |x| PatchKey::new(section.key.level, x, z)));
    let size = layout.patch_size(section.key.level);
    let wrong_mark = keys.clone().find(|key| {
        let corner = [key.x * size, key.z * size];
        section.patch(*key).absent == contents.any_present(corner, size)
    });
    let mut faults: Vec<String> = wrong_mark
        .map(|key| {
            format!(
                "patch {key}: marked as {}",
                marked(section.patch(key).absent)
            )
        })
        .into_iter()
        .collect();
    let mut compared = keys.count() as u64;
    if contents.absent_count() > 0 {
        let (cells, wrong) = wrong_cell(world, contents, section);
        compared += cells;
        faults.extend(wrong.map(|[x, z]| {
            format!("the cell at sample {x},{z} is present or absent and should be the other")
        }));
    }
    (compared, faults)
}

fn marked(absent: bool) -> &'static str {
    if absent {
        "absent, and samples are present"
    } else {
        "present, and no sample is"
    }
}

/// The cells inside the source, and the corner of the first that is present and should not be, or
/// the other way about.
fn wrong_cell(world: &World, contents: &Contents, section: &Section) -> (u64, Option<[u32; 2]>) {
    let layout = &world.meta.layout;
    let stride = layout.stride(section.key.level);
    let n = layout.lattice_cells(section.key.level);
    let first = [section.area[0] * n, section.area[1] * n];
    let [width, height] = coverage::size(layout, section.key);
    let samples = u32::from(section.key.level == 0);
    let inside = |axis: usize, cells: u32| {
        let last = (layout.size_cells[axis] - 1) / stride;
        (cells - samples).min(last + 1 - first[axis])
    };
    let (columns, rows) = (inside(0, width), inside(1, height));
    let stored = |x, z| {
        section
            .cells
            .as_ref()
            .is_none_or(|all| all.is_present(x, z))
    };
    let corner = |x: u32, z: u32| [(first[0] + x) * stride, (first[1] + z) * stride];
    let wrong = (0..rows)
        .flat_map(|z| (0..columns).map(move |x| (x, z)))
        .find(|&(x, z)| stored(x, z) != contents.any_present(corner(x, z), stride));
    (
        u64::from(columns) * u64::from(rows),
        wrong.map(|(x, z)| corner(x, z)),
    )
}
