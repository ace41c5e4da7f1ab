//! The directory of a TIFF as bytes, so that a decoder can be shown other values than the file has.
//!
//! The `tiff` crate takes what a file says of itself by its own lights. Where that would leave out
//! samples, it is shown a view of the file in which a tag says something else.
//!
//! - A view changes single numbers in place, never the size of anything.

use std::io::{self, ErrorKind};

use tiff::tags::{ByteOrder as Endian, IfdPointer, Tag, Type};

use super::input::Input;

/// A directory's entries, and how to write numbers as its file does.
pub(super) struct Directory {
    order: Endian,
    at: u64,
    /// Where the file says which directory is the first.
    header: u64,
    /// Bytes of a place or a count: 4, or 8 in a BigTIFF.
    word: usize,
    /// Where the entries begin.
    entries_at: u64,
    entries: Vec<u8>,
}

impl Directory {
    pub fn read(input: &Input, order: Endian, IfdPointer(at): IfdPointer) -> io::Result<Directory> {
        // An entry is tag, type, count and value; in a BigTIFF the last two have 8 bytes.
        let (header, word, counted) = match number(order, &input.bytes_at(2, 2)?) {
            42 => (4, 4, 2),
            _ => (8, 8, 8),
        };
        let count = number(order, &input.bytes_at(at, counted)?).min(u64::from(u16::MAX));
        let entries_at = at + counted;
        let entries = input.bytes_at(entries_at, count * (4 + 2 * word as u64))?;
        Ok(Directory {
            order,
            at,
            header,
            word,
            entries_at,
            entries,
        })
    }

    /// The file with this directory for its first.
    pub fn first_of(&self, input: &Input) -> Input {
        input.with(self.header, &self.ordered(self.at, self.word))
    }

    /// The file with another number for a tag that has one.
    pub fn with(&self, input: &Input, tag: Tag, value: u32) -> io::Result<Input> {
        let size = 4 + 2 * self.word;
        let mut entries = self.entries.chunks(size);
        let wanted = u64::from(tag.to_u16());
        let index = entries.position(|entry| number(self.order, &entry[..2]) == wanted);
        let index = index.ok_or(ErrorKind::InvalidData)?;
        let at = self.entries_at + (index * size) as u64;
        let kind = self.ordered(Type::LONG.to_u16().into(), 2);
        let value = self.ordered(value.into(), 4);
        Ok(input
            .with(at + 2, &kind)
            .with(at + 4 + self.word as u64, &value))
    }

    fn ordered(&self, number: u64, bytes: usize) -> Vec<u8> {
        match self.order {
            Endian::LittleEndian => number.to_le_bytes()[..bytes].to_vec(),
            Endian::BigEndian => number.to_be_bytes()[8 - bytes..].to_vec(),
        }
    }
}

fn number(order: Endian, bytes: &[u8]) -> u64 {
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    match order {
        Endian::LittleEndian => bytes.iter().rev().fold(0, add),
        Endian::BigEndian => bytes.iter().fold(0, add),
    }
}
