//! World files on disk: opened for reads by position, written beside and renamed.

use crate::error::{Error, Result};
use crate::position;
use crate::world::{FormatError, ReadAt, Spool, World, WorldWriter, container};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tempfile::NamedTempFile;

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

/// Writes a world beside `path`, opens it again as a reader would, and renames it into place, so
/// that there is never half a file, nor one that nobody can open. With `force` it takes the place
/// of what is there.
pub fn write_world(path: &Path, force: bool, writer: WorldWriter) -> Result<()> {
    let open = |file: &File| {
        let source = FileSource {
            file: file.try_clone().map_err(|error| error.to_string())?,
            len: file.metadata().map_err(|error| error.to_string())?.len(),
        };
        let world = World::open(Box::new(source), path.display().to_string());
        let world = world.map_err(|error| error.to_string())?;
        let contradictions = world.meta.contradictions();
        contradictions.into_iter().next().map_or(Ok(()), Err)
    };
    let check = |file: &File| {
        open(file).map_err(|what| {
            let text = "is not written, since it could not be read";
            Error::Usage(format!(
                "{}: {text}: {what}; expected other options, or a report of this bug",
                path.display()
            ))
        })
    };
    write_checked(path, force, |out| writer.write(out), check)
}

/// Writes any file beside and renames it, as [`write_world`] does.
pub fn write_beside(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut std::io::BufWriter<&mut File>) -> std::io::Result<()>,
) -> Result<()> {
    write_checked(path, force, write, |_| Ok(()))
}

/// `check` sees the file before it gets its name.
fn write_checked(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut std::io::BufWriter<&mut File>) -> std::io::Result<()>,
    check: impl FnOnce(&File) -> Result<()>,
) -> Result<()> {
    let failed = |error: std::io::Error| cannot_write(path, error);
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
    check(beside.as_file())?;
    make_readable(beside.as_file()).map_err(failed)?;
    put(beside, path, force).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Error::Usage(format!(
            "{}: has appeared since this began; pass --force to overwrite it, or another name to write to",
            path.display()
        )),
        _ => failed(error),
    })
}

/// What went wrong, and where the disk is full what to do.
fn cannot_write(path: &Path, error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::Usage(format!(
            "{}: cannot be written: the disk is full; make room there, or write to another disk",
            path.display()
        )),
        // Names of temporary files in an error would only puzzle.
        kind => Error::io(path, "cannot be written", kind.into()),
    }
}

/// Gives a finished file its name.
fn put(beside: NamedTempFile, path: &Path, force: bool) -> std::io::Result<()> {
    let placed = if force {
        beside.persist(path)
    } else {
        beside.persist_noclobber(path).or_else(|error| {
            // Not every file system can do that in one step.
            let can = error.error.kind() != ErrorKind::AlreadyExists;
            match can && std::fs::symlink_metadata(path).is_err() {
                true => error.file.persist(path),
                false => Err(error),
            }
        })
    };
    placed.map(drop).map_err(|error| error.error)
}

/// The folder that a file lies in, or will.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether two names are those of one file, which need not be there.
pub fn same_place(a: &Path, b: &Path) -> bool {
    match (place(a), place(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn place(path: &Path) -> std::io::Result<PathBuf> {
    path.canonicalize().or_else(|_| {
        let folder = folder_of(path).canonicalize()?;
        Ok(folder.join(path.file_name().unwrap_or_default()))
    })
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
                "a temporary file cannot be written ({error}); is the disk full? make room beside the world, or write it to another disk"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_appears_meanwhile_is_replaced_by_force_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.hfw");
        let write = |force| {
            write_beside(&path, force, |out| {
                std::fs::write(&path, "precious")?;
                out.write_all(b"new")
            })
        };
        let message = write(false).unwrap_err().to_string();
        assert!(message.contains("x.hfw: has appeared"), "{message}");
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        write(true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_disk_leaves_nothing_and_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.glb");
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let message = write_beside(&path, false, |out| {
                out.write_all(b"half")?;
                Err(kind.into())
            })
            .unwrap_err()
            .to_string();
            assert!(message.contains("x.glb: cannot be written: "), "{message}");
            assert!(message.contains("make room there"), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_place_has_many_names() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        std::fs::create_dir(name("inside")).unwrap();
        std::fs::write(name("there"), "").unwrap();
        for file in ["there", "missing"] {
            assert!(same_place(&name(file), &name("inside/..").join(file)));
            assert!(!same_place(&name(file), &name("inside").join(file)));
        }
        assert!(!same_place(&name("no/where"), &name("no/where")));
    }
}
