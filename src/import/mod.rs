//! Elevation files from outside, turned into integer heights with spacing and provenance.
//!
//! One reader a format gives a `Grid` of numbers as they lie in the file; `mosaic` joins several;
//! what is the same for all of them (voids, metres, height steps) happens once, in `finish`.
//! Formats are told by content first, so that a wrong extension does no harm.
//!
//! - Any bytes give a value or a one-line error: no panic, and no allocation beyond 8 bytes for
//!   each of at most 2^28 samples, nor for more samples than an uncompressed file could hold.
//! - What cannot be read faithfully (rotated rasters, imagery) is refused, never guessed.
//! - A [`Source`] has no voids left, and every height lies within ±[`MAX_UNITS`].

mod asc;
mod exr;
mod finish;
#[cfg(test)]
mod fixtures;
mod gdal;
mod geo;
mod geotags;
mod geotiff;
mod grid;
mod hgt;
mod lint;
mod mask;
mod membrane;
mod mosaic;
mod nearest;
mod options;
mod png;
mod quantise;
mod raw;
mod resample;
mod samples;
mod units;
mod voids;
mod zipped;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::source::Source;
use grid::Grid;
pub use lint::{Lint, Voids, Warning};
pub use mask::load_mask;
pub use options::{ByteOrder, Crop, Encoding, ImportOptions, VoidFill, height_scale};

/// The largest height, in units of the height step, on either side of zero.
pub const MAX_UNITS: i32 = (1 << 22) - 1;

/// Reads one elevation file, or the tiles of a folder, and says nothing of what looks odd.
pub fn load(path: &Path, options: &ImportOptions) -> Result<Source> {
    load_tiles(&tiles(&[path])?, options).map(|(source, _)| source)
}

/// Reads files that make one ground together, and judges them. Errors are one line: the file,
/// what is wrong, what was expected.
pub fn load_tiles(paths: &[PathBuf], options: &ImportOptions) -> Result<(Source, Lint)> {
    options.check()?;
    let mut grids = Vec::new();
    for path in paths {
        grids.push((path.clone(), read(path, options)?));
    }
    match <[_; 1]>::try_from(grids) {
        Ok([(path, grid)]) => {
            let files = vec![file_name(&path)];
            finish::finish(&path, files, grid, options)
        }
        Err(grids) => {
            let first = paths.first().cloned().unwrap_or_default();
            let (files, grid) = mosaic::join(grids)?;
            finish::finish(&first, files, grid, options)
        }
    }
}

/// The files that inputs stand for: a folder for the elevation files in it, by name.
pub fn tiles(inputs: &[impl AsRef<Path>]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for input in inputs {
        let input = input.as_ref();
        if input.is_dir() {
            found.extend(tiles_in(input)?);
        } else {
            found.push(input.to_owned());
        }
    }
    Ok(found)
}

fn tiles_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot_read = |e| Error::io(folder, "cannot read the folder", e);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot_read)? {
        let path = entry.map_err(cannot_read)?.path();
        if path.is_file() && by_extension(&path).is_some() {
            found.push(path);
        }
    }
    if found.is_empty() {
        let what = "is a folder without elevation files";
        return Err(Error::file(folder, what, FORMATS));
    }
    found.sort();
    Ok(found)
}

const FORMATS: &str = "GeoTIFF (.tif), SRTM (.hgt, .hgt.zip), PNG, OpenEXR (.exr), raw (.r16, .r32) or ESRI ASCII grid (.asc)";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Tiff,
    Png,
    Asc,
    Hgt,
    Exr,
    Zip,
    Raw(raw::Kind),
}

impl Format {
    /// A flag that a format has no use for was meant for something.
    fn check_flags(self, path: &Path, options: &ImportOptions) -> Result<()> {
        let raw = matches!(self, Format::Raw(_));
        let coded = !matches!(options.encoding, None | Some(Encoding::Grey));
        let layered = matches!(self, Format::Tiff | Format::Png | Format::Exr);
        let wrong = [
            (
                "--raw-size",
                options.raw_size.is_some() && !raw,
                ".r16 or .r32",
            ),
            (
                "--byte-order",
                options.byte_order.is_some() && !raw,
                ".r16 or .r32",
            ),
            ("--encoding", coded && self != Format::Png, "a PNG"),
            (
                "--band",
                options.band.is_some_and(|b| b != 1) && !layered,
                "bands in the file",
            ),
        ];
        match wrong.iter().find(|(_, wrong, _)| *wrong) {
            Some((flag, _, expected)) => {
                let what = format!("{flag} is not for files of this kind");
                Err(Error::file(path, what, *expected))
            }
            None => Ok(()),
        }
    }
}

fn read(path: &Path, options: &ImportOptions) -> Result<Grid> {
    let cannot_open = |e| Error::io(path, "cannot open", e);
    let metadata = fs::metadata(path).map_err(cannot_open)?;
    if !metadata.is_file() {
        return Err(Error::file(path, "is not a regular file", FORMATS));
    }
    if metadata.len() == 0 {
        return Err(Error::file(path, "is empty", FORMATS));
    }
    let reader = BufReader::new(File::open(path).map_err(cannot_open)?);
    read_from(reader, metadata.len(), path, options)
}

/// `len` is the number of bytes behind `reader`: the measure of what a header may claim.
fn read_from<R: BufRead + Seek>(
    mut reader: R,
    len: u64,
    path: &Path,
    options: &ImportOptions,
) -> Result<Grid> {
    let head = reader
        .fill_buf()
        .map_err(|e| Error::io(path, "cannot read", e))?;
    let Some(format) = detect(head, path) else {
        return Err(Error::file(path, "not an elevation file", FORMATS));
    };
    format.check_flags(path, options)?;
    guarded(path, || decode(format, reader, len, path, options))
}

fn decode<R: BufRead + Seek>(
    format: Format,
    reader: R,
    len: u64,
    path: &Path,
    options: &ImportOptions,
) -> Result<Grid> {
    match format {
        Format::Tiff => geotiff::read(reader, len, path, options),
        Format::Png => png::read(reader, len, path, options),
        Format::Asc => asc::read(reader, len, path),
        Format::Hgt => hgt::read(reader, len, path),
        Format::Exr => exr::read(reader, len, path, options),
        Format::Zip => zipped::read(reader, path),
        Format::Raw(kind) => raw::read(kind, reader, len, path, options),
    }
}

fn detect(head: &[u8], path: &Path) -> Option<Format> {
    let magic: [(&[u8], Format); 7] = [
        (b"II\x2a\0", Format::Tiff),
        (b"MM\0\x2a", Format::Tiff),
        (b"II\x2b\0", Format::Tiff),
        (b"MM\0\x2b", Format::Tiff),
        (b"\x89PNG\r\n\x1a\n", Format::Png),
        (b"\x76\x2f\x31\x01", Format::Exr),
        (b"PK\x03\x04", Format::Zip),
    ];
    // Without a header any bytes may come first.
    let by_name = by_extension(path);
    if let Some(Format::Raw(_)) = by_name {
        return by_name;
    }
    if let Some((_, format)) = magic.iter().find(|(bytes, _)| head.starts_with(bytes)) {
        return Some(*format);
    }
    if asc::looks_like(head) {
        return Some(Format::Asc);
    }
    by_name
}

fn by_extension(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "tif" | "tiff" | "geotiff" => Some(Format::Tiff),
        "png" => Some(Format::Png),
        "asc" => Some(Format::Asc),
        "hgt" => Some(Format::Hgt),
        "exr" => Some(Format::Exr),
        "zip" => Some(Format::Zip),
        "r16" => Some(Format::Raw(raw::Kind::Uint16)),
        "r32" => Some(Format::Raw(raw::Kind::Float32)),
        _ => None,
    }
}

/// A bug in a decoder of others, met on damaged bytes, must not end the program.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(Error::file(
            path,
            "damaged: the decoder gave up",
            "an intact file",
        ))
    })
}

/// A foreign message on one line of bounded length.
fn one_line(message: impl ToString) -> String {
    let words: Vec<String> = (message.to_string().split_whitespace())
        .map(|word| word.chars().filter(|c| !c.is_control()).collect())
        .collect();
    words.join(" ").chars().take(200).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn what_is_no_elevation_file_is_told_in_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let empty_folder = folder.path().join("empty");
        fs::create_dir(&empty_folder).unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let cases = [
            (empty_folder, "is a folder without"),
            (folder.path().join("missing.tif"), "cannot open"),
            (write("zero.tif", b""), "is empty"),
            (
                write("notes.txt", b"Dear diary,\n"),
                "not an elevation file",
            ),
            (write("words.tif", b"Dear diary,\n"), "damaged"),
            (write("words.asc", b"Dear diary,\n"), "Dear"),
            (write("words.png", b"Dear diary,\n"), "damaged"),
            (write("words.exr", b"Dear diary,\n"), "damaged"),
            (write("words.zip", b"Dear diary,\n"), "damaged"),
            (write("words.r16", b"Dear diary,\n"), "--raw-size"),
            (write("N10E010.hgt", b"Dear diary,\n"), "12 bytes"),
        ];
        for (path, what) in cases {
            let message = load(&path, &ImportOptions::default())
                .unwrap_err()
                .to_string();
            assert!(message.contains(what), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn content_goes_before_the_extension() {
        assert_eq!(detect(b"II\x2a\0", Path::new("a.hgt")), Some(Format::Tiff));
        assert_eq!(detect(b"NCOLS 3", Path::new("a.txt")), Some(Format::Asc));
        assert_eq!(detect(b"\0\x01", Path::new("a.HGT")), Some(Format::Hgt));
        assert_eq!(detect(b"PK\x03\x04", Path::new("a")), Some(Format::Zip));
        assert_eq!(detect(b"PK", Path::new("a.doc")), None);
        let raw = Some(Format::Raw(raw::Kind::Uint16));
        assert_eq!(detect(b"II\x2a\0", Path::new("a.r16")), raw);
    }

    #[test]
    fn flags_of_other_formats_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.asc");
        fs::write(&path, "ncols 2\nnrows 2\ncellsize 5\n1 2 3 4").unwrap();
        let refused = |options: ImportOptions| load(&path, &options).unwrap_err().to_string();
        let raw_size = refused(ImportOptions {
            raw_size: Some([2, 2]),
            ..Default::default()
        });
        assert!(raw_size.contains("--raw-size"), "{raw_size}");
        let encoding = refused(ImportOptions {
            encoding: Some(Encoding::Mapbox),
            ..Default::default()
        });
        assert!(encoding.contains("--encoding"), "{encoding}");
        let band = refused(ImportOptions {
            band: Some(2),
            ..Default::default()
        });
        assert!(band.contains("--band"), "{band}");
    }

    #[test]
    fn a_folder_is_its_tiles() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, x: u32, values: &str| {
            let text =
                format!("ncols 2\nnrows 2\nxllcorner {x}\nyllcorner 0\ncellsize 5\n{values}");
            fs::write(folder.path().join(name), text).unwrap();
        };
        write("b.asc", 1005, "2 3 12 13");
        write("a.asc", 1000, "1 2 11 12");
        fs::write(folder.path().join("readme.txt"), "not a tile").unwrap();
        let source = load(folder.path(), &ImportOptions::default()).unwrap();
        assert_eq!(source.ground.size(), [3, 2]);
        assert_eq!(
            source.ground.whole().unwrap().heights,
            [1, 2, 3, 11, 12, 13]
        );
        assert_eq!(source.info.files, ["a.asc", "b.asc"]);
    }

    #[test]
    fn damaged_bytes_of_any_format_never_panic() {
        let options = ImportOptions::default();
        for (name, bytes) in fixtures::one_of_each() {
            let path = Path::new(name);
            let try_bytes = |bytes: &[u8]| {
                // Not through `guarded`: a decoder's panic shall be seen.
                let len = bytes.len() as u64;
                let format = detect(bytes, path).unwrap();
                let result = decode(format, Cursor::new(bytes), len, path, &options)
                    .and_then(|grid| finish::finish(path, Vec::new(), grid, &options));
                let message = result.err().map(|e| e.to_string()).unwrap_or_default();
                assert!(!message.contains('\n'), "{message}");
            };
            let whole = read_from(Cursor::new(&bytes), bytes.len() as u64, path, &options);
            assert!(whole.is_ok(), "{name}: {whole:?}");
            let stride = (bytes.len() / 200).max(1);
            for cut in (1..bytes.len()).step_by(stride) {
                try_bytes(&bytes[..cut]);
            }
            let mut random = fixtures::Random(name.len() as u64);
            for _ in 0..400 {
                let mut bytes = bytes.clone();
                for _ in 0..1 + random.below(4) {
                    let at = random.below(bytes.len().min(600));
                    bytes[at] = random.below(256) as u8;
                }
                try_bytes(&bytes);
            }
        }
    }
}
