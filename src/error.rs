//! The one error of the program: a line that says which file, what is wrong and what was
//! expected, and the exit code that goes with it.
//!
//! Errors are handled once: a library function passes them on, `main` prints them.

use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is not what it should be.
    #[error("{}: {what}; expected {expected}", path.display())]
    File {
        path: PathBuf,
        what: String,
        expected: String,
    },
    /// The system refused to read or write a file.
    #[error("{}: {doing}: {source}", path.display())]
    Io {
        path: PathBuf,
        doing: &'static str,
        source: std::io::Error,
    },
    /// The arguments cannot be followed; the text says what to do instead.
    #[error("{0}")]
    Usage(String),
    /// No adapter, no surface, a lost device; the text says what to install or try.
    #[error("{0}")]
    Gpu(String),
    /// The user ended it.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// A check or a comparison failed (exit code 1).
    #[error("{0}")]
    Check(String),
}

impl Error {
    pub fn file(path: &Path, what: impl Into<String>, expected: impl Into<String>) -> Self {
        Error::File {
            path: path.to_owned(),
            what: what.into(),
            expected: expected.into(),
        }
    }

    pub fn io(path: &Path, doing: &'static str, source: std::io::Error) -> Self {
        Error::Io {
            path: path.to_owned(),
            doing,
            source,
        }
    }

    /// 1: a check failed; 2: an error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Check(_) => 1,
            _ => 2,
        }
    }
}
