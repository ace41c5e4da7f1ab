//! The command line as it is read: help goes to stdout, and what is wrong becomes one line.

use clap::{Command, CommandFactory, FromArgMatches};
use std::io::Write;

use super::cli::Cli;
use super::printed;
use crate::error::{Error, Result};

/// `None` where help or the version was asked for, and printed.
pub fn read() -> Result<Option<Cli>> {
    let matches = command().try_get_matches();
    match matches.and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => Ok(Some(cli)),
        Err(text) if !text.use_stderr() => {
            printed(text.print().and_then(|()| std::io::stdout().flush()))?;
            Ok(None)
        }
        Err(error) => Err(Error::Usage(one_line(&error.render().to_string()))),
    }
}

/// How a source is read is nothing to `verify` where it reads none; `compile`, with the same flags,
/// always does.
fn command() -> Command {
    Cli::command().mut_subcommand("verify", |verify| {
        verify.mut_group("ImportArgs", |reading| reading.requires("source"))
    })
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
            let error = refused(arguments);
            assert_eq!(one_line(&error), expected);
        }
    }

    fn refused(arguments: &[&str]) -> String {
        let all = [&["highfell"], arguments].concat();
        let matches = command().try_get_matches_from(all);
        let parsed = matches.and_then(|found| Cli::from_arg_matches(&found));
        parsed.unwrap_err().render().to_string()
    }

    /// Whose values are no numbers; those of all other options may begin with a minus.
    const WORDS: [&str; 15] = [
        "NAME",
        "VIEW",
        "PNG",
        "JSON",
        "SVG",
        "TIF",
        "HOW",
        "CODE",
        "ORDER",
        "INPUT",
        "OUTPUT",
        "max|sum",
        "static|grid",
        "all|nodes",
        "WORLD",
    ];

    #[test]
    fn what_is_wrong_with_a_number_below_0_is_its_range() {
        let mut all = command();
        all.build();
        let verbs = all.get_subcommands().chain([&all]);
        let mut numbers = 0;
        for option in verbs.flat_map(Command::get_opts) {
            let names = option.get_value_names().unwrap_or_default();
            let is_number = names.iter().all(|name| !WORDS.contains(&name.as_str()));
            if is_number && option.get_action().takes_values() {
                assert!(option.is_allow_hyphen_values_set(), "{option}");
                numbers += 1;
            }
        }
        assert!(numbers > 40, "only {numbers} options with numbers");
        let cases: [(&[&str], &str); 5] = [
            (
                &["compile", "a.tif", "--patch-cells", "-4"],
                "power of two from 4 to 512",
            ),
            (&["compile", "a.tif", "--levels", "-1"], "from 1 to 20"),
            (&["compile", "a.tif", "-j", "-1"], "from 1 to 1024"),
            (&["shot", "--fog-km", "-1"], "not above 0"),
            (&["shot", "--size", "-1x9"], "16 to 8192 each"),
        ];
        for (arguments, expected) in cases {
            let error = one_line(&refused(arguments));
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn how_a_source_is_read_needs_a_source() {
        let flags = [
            ["--spacing", "10"],
            ["--voids", "keep"],
            ["--byte-order", "le"],
        ];
        for [flag, value] in flags {
            let verify = ["verify", "w.hfw", flag, value];
            let error = one_line(&refused(&verify));
            assert!(error.contains("not provided: --source <INPUT>"), "{error}");
            let command = || command().no_binary_name(true);
            let sourced = [&verify[..], &["--source", "a.tif"]].concat();
            assert!(command().try_get_matches_from(sourced).is_ok());
            let compile = ["compile", "a.tif", flag, value];
            assert!(command().try_get_matches_from(compile).is_ok());
        }
    }
}
