//! The command line: runs a verb, prints one line when it fails.

use std::io::Write;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match highfell::modes::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where nobody reads it, the exit code says it.
            let _ = writeln!(std::io::stderr(), "highfell: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
