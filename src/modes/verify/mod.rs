//! `highfell verify`: whether a world is what it says it is.
//!
//! Everything is found again from the bit-streams and the full-resolution heights and compared
//! with what is stored. Each check says how much it compared: one that compared nothing proves
//! nothing. What cannot be read cannot be checked, so damaged chunks end the list early.

mod checks;
mod coverage;
mod findings;
mod nodes;
mod source;
mod water;

use super::cli::VerifyArgs;
use super::{open_world, print};
use crate::error::{Error, Result};
use crate::world::{StoredHeights, World};
use checks::Contents;
use findings::Findings;
use serde_json::{Value, json};

/// Why checks are skipped that compare with samples.
const NEEDS_SOURCE: &str = "the world stores heights at nodes only; --source with the file it was compiled from checks this";

/// The checks that compare with files beside the world.
const COMPARISONS: [&str; 2] = ["source", "water"];

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
    verdict(&world, &findings, args)
}

fn all_checks(world: &World, args: &VerifyArgs) -> Result<Vec<Findings>> {
    let mut findings = vec![checks::checksums(world)];
    let (decoded, contents) = Contents::read(world);
    findings.push(decoded);
    let Some(mut contents) = contents else {
        return Ok(findings);
    };
    let at_nodes = world.meta.heights == StoredHeights::Nodes;
    let has_source = !args.source.is_empty();
    let taken = (at_nodes && has_source).then(|| nodes::take_source(&mut contents, world, args));
    let taken = taken.transpose()?;
    let surveys = contents.surveys(world);
    if contents.is_rebuilt {
        let names = ["heights", "bounds", "certificates"];
        findings.extend(names.map(|name| Findings::skipped(name, "patches", NEEDS_SOURCE)));
        findings.push(coverage::check(world, &contents));
    } else {
        findings.push(match at_nodes {
            true => nodes::heights(world, &contents),
            false => checks::heights(world, &contents),
        });
        findings.push(coverage::check(world, &contents));
        findings.push(checks::bounds(world, &contents, &surveys));
        findings.push(checks::certificates(world, &contents, &surveys));
    }
    findings.push(checks::nesting(world, &contents));
    findings.push(checks::borders(world, &surveys));
    findings.push(checks::facts(world, &contents, &surveys));
    findings.extend(water::check(world, &contents, args)?);
    findings.extend(match (taken, has_source) {
        (Some(taken), _) if contents.is_rebuilt => Some(taken),
        (Some(taken), _) => Some(nodes::source(world, &contents, taken)),
        (None, true) => Some(source::source(world, &contents, args)?),
        (None, false) => None,
    });
    Ok(findings)
}

fn as_json(world: &World, findings: &[Findings]) -> Value {
    json!({
        "world": world.name,
        "sound": findings.iter().all(Findings::is_sound),
        "checks": findings.iter().map(Findings::as_json).collect::<Vec<_>>(),
    })
}

fn verdict(world: &World, findings: &[Findings], args: &VerifyArgs) -> Result<()> {
    let failed: Vec<&str> = findings
        .iter()
        .filter(|f| !f.is_sound())
        .map(|f| f.check)
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    // At nodes the source's samples are what all else is compared with.
    let at_nodes = world.meta.heights == StoredHeights::Nodes;
    let is_theirs = |check: &&str| COMPARISONS.contains(check);
    let differs = failed.iter().all(is_theirs) || at_nodes && failed.contains(&"source");
    let expected = if differs {
        let inputs = args.source.iter().chain(&args.water_mask);
        let inputs: Vec<String> = inputs.map(|path| path.display().to_string()).collect();
        let inputs = inputs.join(", ");
        format!(
            "world and source differ; expected {inputs} to be what it was compiled from, read with the options given to compile"
        )
    } else {
        "expected a world as `highfell compile` makes it".into()
    };
    Err(Error::Check(format!(
        "{}: {} of {} checks failed: {}; {expected}",
        world.name,
        failed.len(),
        findings.len(),
        failed.join(", ")
    )))
}
