//! The command line: runs a verb, prints one line when it fails.

use std::process::ExitCode;

fn main() -> ExitCode {
    match highfell::modes::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("highfell: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
