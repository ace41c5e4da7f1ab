//! World files on disk: opened for reads by position, written beside and renamed.

use crate::error::{Error, Result};
use crate::position;
use crate::world::{FormatError, ReadAt, Spool, World, WorldWriter, container};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Opens a world; what is wrong with it comes back in one line that names the file.
pub fn open_world(path: &Path) -> Result<World> {
    let cannot = |error| Error::io(path, "cannot be opened", error);
    // Opening a pipe would wait for its other end.
    let facts = std::fs::metadata(path).map_err(cannot)?;
    if !facts.is_file() {
        return Err(Error::file(
            path,
            "a folder or a device",
            "a world file (.hfw)",
        ));
    }
    let file = File::open(path).map_err(cannot)?;
    let source = FileSource {
        file,
        len: facts.len(),
    };
    World::open(Box::new(source), path.display().to_string()).map_err(|error| {
        if error == container::not_a_world() {
            let next = format!(
                "a world file (is it elevation data? then: highfell compile {})",
                path.display()
            );
            return Error::file(path, error.to_string(), next);
        }
        bad_world(path, error)
    })
}

/// The error of a world file whose bytes are wrong.
pub fn bad_world(path: &Path, what: impl ToString) -> Error {
    Error::file(
        path,
        what.to_string(),
        "an undamaged world file made by `highfell compile`",
    )
}

/// Writes a world beside `path` and renames it into place, so that there is never half a file.
pub fn write_world(path: &Path, writer: WorldWriter) -> Result<()> {
    write_beside(path, |out| writer.write(out))
}

/// Writes any file beside `path` and renames it into place.
pub fn write_beside(
    path: &Path,
    write: impl FnOnce(&mut std::io::BufWriter<&mut File>) -> std::io::Result<()>,
) -> Result<()> {
    // Names of temporary files in an error would only puzzle.
    let failed = |error: std::io::Error| Error::io(path, "cannot be written", error.kind().into());
    // What a link points to is replaced, not the link.
    let real = path.canonicalize();
    let path = real.as_deref().unwrap_or(path);
    let mut beside = tempfile::Builder::new()
        .prefix(".highfell-")
        .tempfile_in(folder_of(path))
        .map_err(failed)?;
    let _unfinished = Unfinished::new(beside.path());
    let mut out = std::io::BufWriter::new(beside.as_file_mut());
    write(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    make_readable(beside.as_file()).map_err(failed)?;
    beside.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// The folder that a file lies in, or will.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Files that are being written; what ends the program removes them.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Names a file as unfinished as long as it lives.
struct Unfinished(PathBuf);

impl Unfinished {
    fn new(path: &Path) -> Self {
        UNFINISHED.lock().expect(UNPOISONED).push(path.to_owned());
        Unfinished(path.to_owned())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut all = UNFINISHED.lock().expect(UNPOISONED);
        all.retain(|path| *path != self.0);
    }
}

/// For a program that is about to be ended: no half file stays behind.
pub fn remove_unfinished() {
    for path in UNFINISHED.lock().expect(UNPOISONED).drain(..) {
        // What cannot be removed cannot be helped any more.
        let _ = std::fs::remove_file(path);
    }
}

/// Temporary files are private; a file that a user asked for is not.
#[cfg(unix)]
fn make_readable(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_readable(_: &File) -> std::io::Result<()> {
    Ok(())
}

struct FileSource {
    file: File,
    len: u64,
}

impl ReadAt for FileSource {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::result::Result<(), FormatError> {
        position::read_exact_at(&self.file, buffer, offset)
            .map_err(|error| FormatError(error.to_string()))
    }

    fn len(&self) -> u64 {
        self.len
    }
}

/// A file that no name leads to and that is gone when it is closed, whatever ends the program.
pub struct FileSpool {
    file: File,
    len: Mutex<u64>,
}

impl FileSpool {
    /// In the folder that `path` lies in, or will.
    pub fn beside(path: &Path) -> Result<Self> {
        let cannot = |error| Error::io(path, "no temporary file can be made beside it", error);
        Ok(FileSpool {
            file: tempfile::tempfile_in(folder_of(path)).map_err(cannot)?,
            len: Mutex::default(),
        })
    }
}

impl Spool for FileSpool {
    fn append(&self, bytes: &[u8]) -> std::result::Result<u64, FormatError> {
        let start = {
            let mut len = self.len.lock().expect(UNPOISONED);
            let start = *len;
            *len += bytes.len() as u64;
            start
        };
        position::write_all_at(&self.file, bytes, start).map_err(|error| {
            FormatError(format!(
                "a temporary file cannot be written ({error}); is the disk full?"
            ))
        })?;
        Ok(start)
    }
}

impl ReadAt for FileSpool {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::result::Result<(), FormatError> {
        position::read_exact_at(&self.file, buffer, offset)
            .map_err(|error| FormatError(format!("a temporary file cannot be read ({error})")))
    }

    fn len(&self) -> u64 {
        *self.len.lock().expect(UNPOISONED)
    }
}

const UNPOISONED: &str = "no holder of the lock panics";
