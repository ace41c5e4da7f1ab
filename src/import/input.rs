//! The bytes of an input, read by position.
//!
//! Decoders want a cursor and several of them read one file at once: a clone has a cursor of its
//! own over the same bytes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use crate::position;

#[derive(Clone, Debug)]
pub(super) struct Input {
    bytes: Arc<Bytes>,
    len: u64,
    at: u64,
    /// Bytes that read as others than the file has, and where.
    changes: Arc<[(u64, u8)]>,
}

#[derive(Debug)]
enum Bytes {
    File(File),
    Memory(Vec<u8>),
}

impl Input {
    pub fn open(path: &Path) -> io::Result<Input> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Input::of(Bytes::File(file), len))
    }

    pub fn memory(bytes: Vec<u8>) -> Input {
        let len = bytes.len() as u64;
        Input::of(Bytes::Memory(bytes), len)
    }

    fn of(bytes: Bytes, len: u64) -> Input {
        Input {
            bytes: Arc::new(bytes),
            len,
            at: 0,
            changes: Arc::default(),
        }
    }

    /// The same bytes, but for some from `offset` on: a view for decoders that are choosy.
    pub fn with(&self, offset: u64, bytes: &[u8]) -> Input {
        let before = self.changes.iter().copied();
        let changes = before.chain((offset..).zip(bytes.iter().copied()));
        Input {
            changes: changes.collect(),
            ..self.clone()
        }
    }

    /// Makes bytes that were read from `offset` on what they shall be.
    fn change(&self, offset: u64, bytes: &mut [u8]) {
        for (place, byte) in self.changes.iter() {
            let at = place.checked_sub(offset).map(|at| at as usize);
            if let Some(found) = at.and_then(|at| bytes.get_mut(at)) {
                *found = *byte;
            }
        }
    }

    /// The number of bytes: the measure of what a header may claim.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// `count` bytes from `offset` on. What lies beyond the end is not allocated for.
    pub fn bytes_at(&self, offset: u64, count: u64) -> io::Result<Vec<u8>> {
        if offset.checked_add(count).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut buffer = vec![0; count as usize];
        match &*self.bytes {
            Bytes::File(file) => position::read_exact_at(file, &mut buffer, offset)?,
            Bytes::Memory(bytes) => {
                buffer.copy_from_slice(&bytes[offset as usize..][..count as usize])
            }
        }
        self.change(offset, &mut buffer);
        Ok(buffer)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &*self.bytes {
            Bytes::File(file) => position::read_at(file, buffer, self.at)?,
            Bytes::Memory(bytes) => {
                let start = self.at.min(self.len) as usize;
                (&bytes[start..]).read(buffer)?
            }
        };
        self.change(self.at, &mut buffer[..read]);
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Input {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        let target = match place {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        // Positions of files are signed numbers to the system.
        let sound = target.filter(|at| i64::try_from(*at).is_ok());
        self.at = sound.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_read_at_their_own_places() {
        let mut input = Input::memory((0..10).collect());
        input.seek(SeekFrom::Start(4)).unwrap();
        let mut other = input.clone();
        other.seek(SeekFrom::End(-2)).unwrap();
        let mut byte = [0];
        input.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [4]);
        other.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [8]);
        assert_eq!(input.bytes_at(2, 3).unwrap(), [2, 3, 4]);
    }

    #[test]
    fn a_view_differs_where_it_is_told_to() {
        let input = Input::memory(vec![7; 6]);
        let mut view = input.with(1, &[1, 2]).with(4, &[5]);
        assert_eq!(view.bytes_at(0, 6).unwrap(), [7, 1, 2, 7, 5, 7]);
        view.seek(SeekFrom::Start(2)).unwrap();
        let mut bytes = [0; 3];
        view.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [2, 7, 5]);
        assert_eq!(input.bytes_at(0, 6).unwrap(), [7; 6]);
    }

    #[test]
    fn nothing_is_beyond_the_end() {
        let mut input = Input::memory(vec![7; 4]);
        assert!(input.bytes_at(2, 3).is_err());
        assert!(input.bytes_at(u64::MAX, 2).is_err());
        assert!(input.seek(SeekFrom::Current(-1)).is_err());
        assert!(input.seek(SeekFrom::Start(u64::MAX)).is_err());
        input.seek(SeekFrom::Start(100)).unwrap();
        assert_eq!(input.read(&mut [0; 3]).unwrap(), 0);
    }
}
