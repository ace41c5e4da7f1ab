//! All tests that need the built program, files, a GPU or a window; one binary, so that the
//! library is linked once and the built-in world is compiled once.
//!
//! The pictures come from a software adapter, the same on every machine. `HIGHFELL_DATA` names a
//! folder of real elevation files; tests that need one say so when they are skipped.

mod backends;
mod bench;
mod cli;
mod common;
mod compile;
mod export;
mod faults;
mod field;
mod frame;
mod holes;
mod import;
mod keep;
mod layers;
mod nodes;
mod pictures;
mod pops;
mod shaders;
mod verify;
mod water;
mod window;
mod world;
