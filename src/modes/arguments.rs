//! The command line as it is read: help goes to stdout, and what is wrong becomes one line.

use clap::Parser;
use std::io::Write;

use super::cli::Cli;
use super::printed;
use crate::error::{Error, Result};

/// `None` where help or the version was asked for, and printed.
pub fn read() -> Result<Option<Cli>> {
    match Cli::try_parse() {
        Ok(cli) => Ok(Some(cli)),
        Err(text) if !text.use_stderr() => {
            printed(text.print().and_then(|()| std::io::stdout().flush()))?;
            Ok(None)
        }
        Err(error) => Err(Error::Usage(one_line(&error.render().to_string()))),
    }
}

/// Keeps what is wrong and what might be right, and leaves out how the verb is used in general.
fn one_line(message: &str) -> String {
    let told = message.strip_prefix("error: ").unwrap_or(message);
    let parts = told.split("\n\n").map(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        words.join(" ")
    });
    let general = ["Usage:", "For more information"];
    let mut parts: Vec<String> = parts
        .filter(|part| !part.is_empty() && !general.iter().any(|start| part.starts_with(start)))
        .collect();
    parts.push("see --help".into());
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_one_line() {
        let cases: [(&[&str], &str); 4] = [
            (
                &["compile", "a.tif", "--jobs", "x"],
                "invalid value 'x' for '--jobs <N>': 'x' is not a whole number from 1 to 1024; see --help",
            ),
            (
                &["compile", "a.tif", "--forse"],
                "unexpected argument '--forse' found; tip: a similar argument exists: '--force'; see --help",
            ),
            (
                &["compile"],
                "the following required arguments were not provided: <INPUT>...; see --help",
            ),
            (
                &["shot", "--view", "a\nb"],
                "invalid value 'a b' for '--view <VIEW>' [possible values: shaded, wireframe, level, hole]; see --help",
            ),
        ];
        for (arguments, expected) in cases {
            let error = Cli::try_parse_from([&["highfell"], arguments].concat()).unwrap_err();
            assert_eq!(one_line(&error.render().to_string()), expected);
        }
    }
}
