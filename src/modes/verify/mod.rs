//! `highfell verify`: whether a world is what it says it is.
//!
//! Everything is found again from the bit-streams and the full-resolution heights and compared
//! with what is stored. Each check says how much it compared: one that compared nothing proves
//! nothing. What cannot be read cannot be checked, so damaged chunks end the list early.

mod checks;
mod coverage;
mod findings;

use super::cli::VerifyArgs;
use super::{open_world, print};
use crate::error::{Error, Result};
use crate::world::World;
use checks::Contents;
use findings::Findings;
use serde_json::{Value, json};

pub fn run(args: &VerifyArgs) -> Result<()> {
    let world = open_world(args.world.as_deref())?;
    let findings = all_checks(&world, args)?;
    let text = if args.json {
        serde_json::to_string_pretty(&as_json(&world, &findings)).expect("plain data")
    } else {
        let lines: Vec<String> = findings.iter().flat_map(Findings::lines).collect();
        lines.join("\n")
    };
    print(&text)?;
    verdict(&world, &findings)
}

fn all_checks(world: &World, args: &VerifyArgs) -> Result<Vec<Findings>> {
    let mut findings = vec![checks::checksums(world)];
    let (decoded, contents) = Contents::read(world);
    findings.push(decoded);
    let Some(contents) = contents else {
        return Ok(findings);
    };
    findings.push(checks::heights(world, &contents));
    findings.push(coverage::check(world, &contents));
    let surveys = contents.surveys(world);
    findings.push(checks::bounds(world, &contents, &surveys));
    findings.push(checks::certificates(world, &contents, &surveys));
    findings.push(checks::nesting(world, &contents));
    findings.push(checks::borders(world, &surveys));
    findings.push(checks::facts(world, &contents, &surveys));
    if let Some(path) = &args.source {
        findings.push(checks::source(world, &contents, path)?);
    }
    Ok(findings)
}

fn as_json(world: &World, findings: &[Findings]) -> Value {
    json!({
        "world": world.name,
        "sound": findings.iter().all(Findings::is_sound),
        "checks": findings.iter().map(Findings::as_json).collect::<Vec<_>>(),
    })
}

fn verdict(world: &World, findings: &[Findings]) -> Result<()> {
    let failed: Vec<&str> = findings
        .iter()
        .filter(|f| !f.is_sound())
        .map(|f| f.check)
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Error::Check(format!(
        "{}: {} of {} checks failed: {}; expected a world as `highfell compile` makes it",
        world.name,
        failed.len(),
        findings.len(),
        failed.join(", ")
    )))
}
