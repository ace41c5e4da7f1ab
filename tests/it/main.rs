//! All tests that need the built program, files, a GPU or a window; one binary.

mod import;
mod window;
