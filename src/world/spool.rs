//! Bytes put aside until they are wanted: chunks before the file is laid out, what the compiler
//! need not have in memory.

use super::{FormatError, ReadAt};
use std::sync::Mutex;

/// Takes bytes from several threads and gives them back by where they lie.
pub trait Spool: ReadAt {
    /// Keeps some bytes; where they begin.
    fn append(&self, bytes: &[u8]) -> Result<u64, FormatError>;
}

/// A spool in memory.
#[derive(Default)]
pub struct MemorySpool(Mutex<Vec<u8>>);

impl MemorySpool {
    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

impl Spool for MemorySpool {
    fn append(&self, bytes: &[u8]) -> Result<u64, FormatError> {
        let mut all = self.bytes();
        let start = all.len() as u64;
        all.extend(bytes);
        Ok(start)
    }
}

impl ReadAt for MemorySpool {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FormatError> {
        self.bytes().read_at(offset, buffer)
    }

    fn len(&self) -> u64 {
        self.bytes().len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_where_they_were_put() {
        let spool = MemorySpool::default();
        assert_eq!(spool.append(b"first").unwrap(), 0);
        let second = spool.append(b"second").unwrap();
        let mut back = [0; 6];
        spool.read_at(second, &mut back).unwrap();
        assert_eq!(&back, b"second");
        assert!(spool.read_at(second + 1, &mut back).is_err());
    }
}
