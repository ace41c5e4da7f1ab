//! The container of a world file: header, table of chunks, chunks.
//!
//! ```text
//! header  40 bytes   magic "HIGHFELL", version u32, chunks u32, table offset u64,
//!                    file size u64, CRC-32 of the table u32, CRC-32 of the header so far u32
//! table   40 a chunk kind [u8; 4], level u8, coding u8, 0 u16, x u32, z u32, offset u64,
//!                    stored bytes u32, raw bytes u32, CRC-32 of the stored bytes u32, 0 u32
//! chunks             one behind another, in the table's order
//! ```
//!
//! Little endian. Each chunk is compressed alone and has its own checksum; chunks of unknown
//! kinds are skipped. Chunks are written coarse before fine.

use super::{FormatError, Spool};
use std::sync::Mutex;

pub const MAGIC: &[u8; 8] = b"HIGHFELL";
pub const VERSION: u32 = 1;
pub const HEADER_BYTES: usize = 40;
pub const ENTRY_BYTES: usize = 40;
/// Most chunks a file may have; bounds the memory of the table.
pub const MAX_CHUNKS: u32 = 1 << 22;
const ZSTD_LEVEL: i32 = 9;

/// What a chunk holds. The last four are reserved for imagery, weights of ground materials,
/// horizon angles and normals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChunkKind {
    Meta,
    Topology,
    Heights,
    Coverage,
    Live,
    Water,
    Imagery,
    Materials,
    Horizons,
    Normals,
}

const KINDS: [(ChunkKind, [u8; 4]); 10] = [
    (ChunkKind::Meta, *b"META"),
    (ChunkKind::Heights, *b"HGTS"),
    (ChunkKind::Topology, *b"TOPO"),
    (ChunkKind::Live, *b"LIVE"),
    (ChunkKind::Coverage, *b"COVR"),
    (ChunkKind::Water, *b"WATR"),
    (ChunkKind::Imagery, *b"IMGE"),
    (ChunkKind::Materials, *b"MATL"),
    (ChunkKind::Horizons, *b"HRZN"),
    (ChunkKind::Normals, *b"NRML"),
];

impl ChunkKind {
    fn tag(self) -> [u8; 4] {
        KINDS
            .iter()
            .find(|(kind, _)| *kind == self)
            .expect("every kind has a tag")
            .1
    }

    fn from_tag(tag: [u8; 4]) -> Option<Self> {
        KINDS.iter().find(|(_, t)| *t == tag).map(|(kind, _)| *kind)
    }
}

/// Which chunk: its kind and the section it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkId {
    pub kind: ChunkKind,
    pub level: u8,
    pub x: u32,
    pub z: u32,
}

/// How a chunk's bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// As they are (they may be compressed in themselves).
    Raw,
    /// One zstd frame.
    Zstd,
}

/// Where a chunk lies in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub id: ChunkId,
    pub coding: Coding,
    pub offset: u64,
    pub stored_bytes: u32,
    pub raw_bytes: u32,
    pub crc: u32,
}

/// A chunk ready to be written.
pub struct PackedChunk {
    entry: Entry,
    stored: Vec<u8>,
}

/// Compresses one chunk; chunks do not depend on each other, so many can be packed at a time.
pub fn pack(id: ChunkId, coding: Coding, raw: Vec<u8>) -> Result<PackedChunk, FormatError> {
    let size = |bytes: usize| {
        u32::try_from(bytes)
            .map_err(|_| FormatError(format!("a chunk of {bytes} bytes; at most 4 GiB fit")))
    };
    let raw_bytes = size(raw.len())?;
    let stored = match coding {
        Coding::Raw => raw,
        Coding::Zstd => zstd::bulk::compress(&raw, ZSTD_LEVEL)
            .map_err(|error| FormatError(format!("zstd: {error}")))?,
    };
    let entry = Entry {
        id,
        coding,
        offset: 0,
        stored_bytes: size(stored.len())?,
        raw_bytes,
        crc: crc32fast::hash(&stored),
    };
    Ok(PackedChunk { entry, stored })
}

/// Collects chunks in any order, from any thread, and lays out the file: the facts and the
/// water mask first, then coarse before fine, row by row, so that a coarse view is a prefix of the file.
pub struct WorldWriter {
    spool: Box<dyn Spool>,
    /// Chunks with where their bytes lie in the spool.
    chunks: Mutex<Vec<Entry>>,
    most_chunks: u32,
}

impl WorldWriter {
    /// `spool` keeps the chunks until the file is written.
    pub fn new(spool: Box<dyn Spool>) -> Self {
        WorldWriter {
            spool,
            chunks: Mutex::default(),
            most_chunks: MAX_CHUNKS,
        }
    }

    /// Adds a chunk.
    pub fn add(&self, chunk: PackedChunk) -> Result<(), FormatError> {
        let offset = self.spool.append(&chunk.stored)?;
        let entry = Entry {
            offset,
            ..chunk.entry
        };
        let mut chunks = self.chunks.lock().expect("no holder of the lock panics");
        if chunks.len() >= self.most_chunks as usize {
            return Err(FormatError(format!(
                "more chunks than the {} that readers take",
                self.most_chunks
            )));
        }
        chunks.push(entry);
        Ok(())
    }

    /// Writes header, table and chunks.
    pub fn write(self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let mut chunks = self
            .chunks
            .into_inner()
            .expect("no holder of the lock panics");
        chunks.sort_by_key(|entry| file_order(entry.id));
        let mut offset = (HEADER_BYTES + ENTRY_BYTES * chunks.len()) as u64;
        let mut table = Vec::with_capacity(ENTRY_BYTES * chunks.len());
        for chunk in &chunks {
            put_entry(&mut table, &Entry { offset, ..*chunk });
            offset += chunk.stored_bytes as u64;
        }
        out.write_all(&header(
            chunks.len() as u32,
            offset,
            crc32fast::hash(&table),
        ))?;
        out.write_all(&table)?;
        let mut bytes = Vec::new();
        for chunk in &chunks {
            bytes.resize(chunk.stored_bytes as usize, 0);
            self.spool
                .read_at(chunk.offset, &mut bytes)
                .map_err(|error| std::io::Error::other(error.to_string()))?;
            out.write_all(&bytes)?;
        }
        Ok(())
    }
}

/// Where a chunk comes in the file.
fn file_order(id: ChunkId) -> impl Ord {
    let level = std::cmp::Reverse(id.level);
    let of_all = match id.kind {
        ChunkKind::Meta => 0,
        ChunkKind::Water => 1,
        _ => 2,
    };
    (of_all, level, id.z, id.x, id.kind)
}

fn header(chunks: u32, file_bytes: u64, table_crc: u32) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(chunks.to_le_bytes());
    bytes.extend((HEADER_BYTES as u64).to_le_bytes());
    bytes.extend(file_bytes.to_le_bytes());
    bytes.extend(table_crc.to_le_bytes());
    let crc = crc32fast::hash(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

fn put_entry(table: &mut Vec<u8>, entry: &Entry) {
    table.extend(entry.id.kind.tag());
    table.push(entry.id.level);
    table.push(match entry.coding {
        Coding::Raw => 0,
        Coding::Zstd => 1,
    });
    table.extend([0; 2]);
    table.extend(entry.id.x.to_le_bytes());
    table.extend(entry.id.z.to_le_bytes());
    table.extend(entry.offset.to_le_bytes());
    table.extend(entry.stored_bytes.to_le_bytes());
    table.extend(entry.raw_bytes.to_le_bytes());
    table.extend(entry.crc.to_le_bytes());
    table.extend([0; 4]);
}

/// What the header says of the table.
pub struct TableInfo {
    pub chunks: u32,
    pub crc: u32,
}

/// The error of a file that is something else altogether.
pub fn not_a_world() -> FormatError {
    FormatError::new("not a Highfell world")
}

/// Reads the header of a file of `file_bytes` bytes.
pub fn parse_header(bytes: &[u8], file_bytes: u64) -> Result<TableInfo, FormatError> {
    let wrong = |text: String| Err(FormatError(text));
    if bytes.len() < HEADER_BYTES || &bytes[..8] != MAGIC {
        return Err(not_a_world());
    }
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    if u32_at(36) != crc32fast::hash(&bytes[..36]) {
        return wrong("a damaged header".into());
    }
    if u32_at(8) != VERSION {
        return wrong(format!("a world of format version {}", u32_at(8)));
    }
    let chunks = u32_at(12);
    let smallest = HEADER_BYTES as u64 + chunks as u64 * ENTRY_BYTES as u64;
    if chunks > MAX_CHUNKS || u64_at(16) != HEADER_BYTES as u64 || u64_at(24) < smallest {
        return wrong("a header whose sizes cannot be".into());
    }
    if u64_at(24) != file_bytes {
        return wrong(format!(
            "a world cut short or padded: {file_bytes} bytes where {} were written",
            u64_at(24)
        ));
    }
    Ok(TableInfo {
        chunks,
        crc: u32_at(32),
    })
}

/// Reads the table; entries of unknown kinds are left out.
pub fn parse_table(
    bytes: &[u8],
    info: &TableInfo,
    file_bytes: u64,
) -> Result<Vec<Entry>, FormatError> {
    if crc32fast::hash(bytes) != info.crc {
        return Err(FormatError::new("a damaged table of chunks"));
    }
    bytes
        .chunks_exact(ENTRY_BYTES)
        .filter_map(|entry| parse_entry(entry, file_bytes).transpose())
        .collect()
}

fn parse_entry(bytes: &[u8], file_bytes: u64) -> Result<Option<Entry>, FormatError> {
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let Some(kind) = ChunkKind::from_tag(bytes[..4].try_into().expect("4 bytes")) else {
        return Ok(None);
    };
    let coding = match bytes[5] {
        0 => Coding::Raw,
        1 => Coding::Zstd,
        other => return Err(FormatError(format!("a chunk of unknown coding {other}"))),
    };
    let entry = Entry {
        id: ChunkId {
            kind,
            level: bytes[4],
            x: u32_at(8),
            z: u32_at(12),
        },
        coding,
        offset: u64::from_le_bytes(bytes[16..24].try_into().expect("8 bytes")),
        stored_bytes: u32_at(24),
        raw_bytes: u32_at(28),
        crc: u32_at(32),
    };
    let end = entry.offset.checked_add(entry.stored_bytes as u64);
    if end.is_none_or(|end| end > file_bytes) {
        return Err(FormatError::new("a chunk that lies outside the file"));
    }
    Ok(Some(entry))
}

/// Checks a chunk's stored bytes and undoes its coding; at most `limit` bytes come out.
pub fn unpack(entry: &Entry, stored: Vec<u8>, limit: usize) -> Result<Vec<u8>, FormatError> {
    if crc32fast::hash(&stored) != entry.crc {
        return Err(FormatError::new("a damaged chunk (its checksum differs)"));
    }
    let raw_bytes = entry.raw_bytes as usize;
    if raw_bytes > limit {
        return Err(FormatError(format!(
            "a chunk of {raw_bytes} bytes where at most {limit} can be"
        )));
    }
    let raw = match entry.coding {
        Coding::Raw => stored,
        Coding::Zstd => zstd::bulk::decompress(&stored, raw_bytes).map_err(|error| {
            FormatError(format!("a chunk that cannot be decompressed ({error})"))
        })?,
    };
    if raw.len() != raw_bytes {
        return Err(FormatError(format!(
            "a chunk of {} bytes where {raw_bytes} are expected",
            raw.len()
        )));
    }
    Ok(raw)
}

#[cfg(test)]
mod tests {
    use super::super::{MemorySpool, World};
    use super::*;
    use proptest::prelude::*;

    fn id(kind: ChunkKind, level: u8) -> ChunkId {
        ChunkId {
            kind,
            level,
            x: 7,
            z: 9,
        }
    }

    fn file() -> Vec<u8> {
        let writer = WorldWriter::new(Box::new(MemorySpool::default()));
        writer
            .add(pack(id(ChunkKind::Meta, 0), Coding::Zstd, vec![5; 1000]).unwrap())
            .unwrap();
        writer
            .add(pack(id(ChunkKind::Normals, 3), Coding::Raw, vec![1, 2, 3]).unwrap())
            .unwrap();
        let mut bytes = Vec::new();
        writer.write(&mut bytes).unwrap();
        bytes
    }

    fn table(bytes: &[u8]) -> Result<Vec<Entry>, FormatError> {
        let info = parse_header(bytes, bytes.len() as u64)?;
        let end = HEADER_BYTES + info.chunks as usize * ENTRY_BYTES;
        parse_table(&bytes[HEADER_BYTES..end], &info, bytes.len() as u64)
    }

    #[test]
    fn chunks_come_back() {
        let bytes = file();
        let entries = table(&bytes).unwrap();
        let raw = |entry: &Entry| {
            let start = entry.offset as usize;
            unpack(
                entry,
                bytes[start..start + entry.stored_bytes as usize].to_vec(),
                1000,
            )
        };
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[1].id, id(ChunkKind::Normals, 3));
        assert_eq!(raw(&entries[0]).unwrap(), vec![5; 1000]);
        assert_eq!(raw(&entries[1]).unwrap(), vec![1, 2, 3]);
        assert!(unpack(&entries[0], vec![0; 4], 1000).is_err(), "checksum");
        assert!(
            entries[0].stored_bytes < 100,
            "the first one was compressed"
        );
    }

    #[test]
    fn no_more_chunks_are_written_than_are_read() {
        let mut writer = WorldWriter::new(Box::new(MemorySpool::default()));
        assert_eq!(writer.most_chunks, MAX_CHUNKS);
        writer.most_chunks = 2;
        let chunk = |level| pack(id(ChunkKind::Normals, level), Coding::Raw, vec![1]).unwrap();
        assert!(writer.add(chunk(0)).is_ok() && writer.add(chunk(1)).is_ok());
        let message = writer.add(chunk(2)).unwrap_err().to_string();
        assert!(message.contains("the 2 that readers take"), "{message}");
    }

    #[test]
    fn chunks_of_unknown_kinds_are_skipped() {
        let mut bytes = file();
        bytes[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(b"NEW!");
        let end = HEADER_BYTES + 2 * ENTRY_BYTES;
        let crc = crc32fast::hash(&bytes[HEADER_BYTES..end]);
        bytes[32..36].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..36]);
        bytes[36..40].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(table(&bytes).unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_world_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(World::open(Box::new(bytes), "test").is_err());
        }

        #[test]
        fn damaged_files_are_errors(at in 0usize..10_000, bit in 0u8..8, cut in 0usize..300) {
            let mut bytes = file();
            let at = at % (HEADER_BYTES + 2 * ENTRY_BYTES);
            bytes[at] ^= 1 << bit;
            prop_assert!(table(&bytes).is_err(), "flipped bit {bit} of byte {at}");
            let mut short = file();
            short.truncate(short.len() - 1 - cut.min(short.len() - 1));
            prop_assert!(World::open(Box::new(short), "test").is_err());
        }
    }
}
