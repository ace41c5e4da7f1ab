//! Flights on disk: what `fly --record` writes and `--play` reads.

use crate::error::{Error, Result};
use crate::files;
use crate::terrain::flight::Flight;
use std::io::Write;
use std::path::Path;

const EXPECTED: &str = "a flight as fly --record writes it";

pub fn read_flight(path: &Path) -> Result<Flight> {
    let cannot = |error| Error::io(path, "cannot be read", error);
    if !std::fs::metadata(path).map_err(cannot)?.is_file() {
        return Err(Error::file(path, "is not a regular file", EXPECTED));
    }
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    Flight::from_json(&text).map_err(|what| Error::file(path, what, EXPECTED))
}

pub fn write_flight(path: &Path, force: bool, flight: &Flight) -> Result<()> {
    let text = flight.to_json();
    files::write_beside(path, force, |out| writeln!(out, "{text}"))
}
