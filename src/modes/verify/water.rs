//! The check of the water mask, against the picture that it was made from.

use super::checks::Contents;
use super::findings::Findings;
use crate::error::Result;
use crate::import;
use crate::modes::cli::VerifyArgs;
use crate::terrain::water::water_mask;
use crate::world::{WaterMask, World};
use std::path::Path;

/// Why it is skipped.
const NEEDS_PICTURE: &str = "--water-mask with the picture given to compile checks this";

/// Every square is white where, and only where, the picture says. None where there is neither a
/// mask nor a picture.
pub fn check(world: &World, contents: &Contents, args: &VerifyArgs) -> Result<Option<Findings>> {
    let of = "squares of the water mask";
    let Some(path) = &args.water_mask else {
        let skipped = |_| Findings::skipped("water", of, NEEDS_PICTURE);
        return Ok(contents.water.as_ref().map(skipped));
    };
    let samples = [contents.map.width, contents.map.height];
    let asked = water_mask(&import::load_mask(path)?, samples);
    let mut findings = Findings::new("water", of);
    match &contents.water {
        Some(stored) => compare(stored, &asked, path, &mut findings),
        // A black mask is no sea at all.
        None => {
            findings.compared(1);
            let no_sea = asked.is_black() && world.meta.sea_level_m.is_none();
            findings.expect(no_sea, || {
                format!("the world has no water mask; expected {}", path.display())
            });
        }
    }
    Ok(Some(findings))
}

fn compare(stored: &WaterMask, asked: &WaterMask, path: &Path, findings: &mut Findings) {
    let [columns, rows] = stored.size();
    findings.compared(u64::from(columns) * u64::from(rows));
    findings.note(format!("{:.2} % of them white", 100.0 * stored.share()));
    let squares = (0..rows).flat_map(|z| (0..columns).map(move |x| [x, z]));
    for square in squares.filter(|&square| stored.is_white(square) != asked.is_white(square)) {
        let [x, z] = square.map(|square| square * stored.square_samples());
        let colour = |is_white| if is_white { "white" } else { "black" };
        findings.fault(format!(
            "the square at sample {x},{z}: {} stored, {} in {}",
            colour(stored.is_white(square)),
            colour(asked.is_white(square)),
            path.display()
        ));
    }
}
