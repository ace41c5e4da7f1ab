//! The world file: bytes to values and back.
//!
//! Everything here is about `.hfw` files and nothing else: no meshes, no GPU, no threads. Bytes
//! come from outside, so every decoder checks before it allocates and returns an error where the
//! bytes are wrong. The lowest layer: it knows none of the others.

pub mod bits;
pub mod container;
pub mod coverage;
pub mod heights;
pub mod layout;
pub mod live;
pub mod meta;
pub mod nodes;
pub mod reader;
pub mod source;
mod spool;
pub mod topology;
pub mod water;

pub use bits::{BitReader, BitRuns, BitWriter, Bits};
pub use container::{ChunkId, ChunkKind, Coding, PackedChunk, WorldWriter};
pub use coverage::Coverage;
pub use heights::HeightGrid;
pub use layout::{LatticeRect, Layout, PatchKey, SectionKey};
pub use meta::{LevelMeta, Meta, StoredHeights};
pub use reader::{HeightReader, ReadAt, Section, World};
pub use source::SourceInfo;
pub use spool::{MemorySpool, Spool};
pub use topology::PatchRecord;
pub use water::WaterMask;

/// What is wrong with the bytes of a world file, in one line and without the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FormatError(pub String);

impl FormatError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        FormatError(text.into())
    }
}
