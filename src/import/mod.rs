//! Elevation files from outside, turned into integer heights with spacing and provenance.
//!
//! One reader a format gives a `Raster`, which hands out its samples band by band; `ingest` puts
//! them, of one file or of several (`mosaic`), into a `Store`, in memory or on disk, and gathers
//! what there is to know; what is the same for all (metres, height steps, voids) happens once, in
//! `finish` and `heights`. Formats are told by content first, so that a wrong extension does no
//! harm.
//!
//! - Any bytes give a value or a one-line error, and no panic.
//! - Memory does not grow with the area of a TIFF, an SRTM square or a raw file: only with its
//!   width and the outlines of its holes. Other formats are decoded as a whole, at 8 bytes a
//!   sample, of which they may have 2^28.
//! - What cannot be read faithfully (rotated rasters, imagery) is refused, never guessed.
//! - A [`Source`] has a height in every void, kept ones too, and every height lies within ±[`MAX_UNITS`].

mod asc;
mod chunks;
mod crs;
mod directory;
mod dted;
mod ehdr;
mod exr;
mod fill;
mod finish;
#[cfg(test)]
mod fixtures;
mod gather;
mod gdal;
mod geo;
mod geokeys;
mod geotags;
mod geotiff;
mod grid;
mod heights;
mod hgt;
mod holes;
mod ingest;
mod input;
mod lerc;
mod lint;
mod mask;
mod masked;
mod membrane;
mod mosaic;
mod nearest;
mod numbers;
mod options;
mod plain;
mod png;
mod quantise;
mod raster;
mod raw;
mod resample;
mod samples;
mod sidecar;
mod store;
mod undeclared;
mod units;
mod values;
mod voids;
mod wkt;
mod zipped;

use std::fs;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::source::Source;
use finish::Judged;
pub use ingest::Progress;
use input::Input;
pub use lint::{Lint, Voids, Warning};
pub use mask::load_mask;
pub use masked::mask_of;
pub use options::{ByteOrder, Crop, Encoding, IN_MEMORY, ImportOptions, VoidFill, height_scale};
pub use quantise::rounded_up;
use raster::Raster;

/// The largest height, in units of the height step, on either side of zero.
pub const MAX_UNITS: i32 = (1 << 22) - 1;

/// Bytes that are enough to tell a format.
const LONGEST_HEAD: u64 = 1 << 10;

/// Reads one elevation file, or the tiles of a folder, and says nothing of what looks odd.
pub fn load(path: &Path, options: &ImportOptions) -> Result<Source> {
    load_tiles(&tiles(&[path])?, options).map(|(source, _)| source)
}

/// Reads files that make one ground together, and judges them. Errors are one line: the file,
/// what is wrong, what was expected.
pub fn load_tiles(paths: &[PathBuf], options: &ImportOptions) -> Result<(Source, Lint)> {
    let mut silent = |_, _| Ok(());
    load_watched(paths, options, &mut Progress::new(&mut silent))
}

/// As [`load_tiles`], for whom it takes long.
pub fn load_watched(
    paths: &[PathBuf],
    options: &ImportOptions,
    progress: &mut Progress,
) -> Result<(Source, Lint)> {
    guarded(first_of(paths), || {
        judged(paths, options, progress)?.into_source(options, progress)
    })
}

/// Judges files as [`load_tiles`] does, and leaves their holes as they are.
pub fn look(paths: &[PathBuf], options: &ImportOptions, progress: &mut Progress) -> Result<Lint> {
    guarded(first_of(paths), || {
        Ok(judged(paths, options, progress)?.lint)
    })
}

fn judged(paths: &[PathBuf], options: &ImportOptions, progress: &mut Progress) -> Result<Judged> {
    options.check()?;
    let ingested = ingest::ingest(paths, options, progress)?;
    finish::judge(first_of(paths), ingested, options)
}

fn first_of(paths: &[PathBuf]) -> &Path {
    paths.first().map_or(Path::new(""), PathBuf::as_path)
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

const FORMATS: &str = "GeoTIFF (.tif), SRTM (.hgt, .hgt.zip), DTED (.dt2), PNG, OpenEXR (.exr), raw (.r16, .r32) or ESRI grids (.asc, .flt, .bil); of most others `gdal_translate IN OUT.tif` makes a GeoTIFF";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Tiff,
    Png,
    Asc,
    Hgt,
    Exr,
    Zip,
    Dted,
    Ehdr,
    Raw(raw::Kind),
}

impl Format {
    /// A flag that a format has no use for was meant for something.
    fn check_flags(self, path: &Path, options: &ImportOptions) -> Result<()> {
        let raw = matches!(self, Format::Raw(_));
        let coded = !matches!(options.encoding, None | Some(Encoding::Grey));
        let layered = matches!(
            self,
            Format::Tiff | Format::Png | Format::Exr | Format::Ehdr
        );
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

/// Finds out what a file says of itself; its samples are read later.
fn open(path: &Path, options: &ImportOptions) -> Result<Raster> {
    let cannot_open = |e| Error::io(path, "cannot open", e);
    // Opening a pipe would wait for its other end.
    let metadata = fs::metadata(path).map_err(cannot_open)?;
    if !metadata.is_file() {
        return Err(Error::file(path, "is not a regular file", FORMATS));
    }
    if metadata.len() == 0 {
        return Err(Error::file(path, "is empty", FORMATS));
    }
    let input = Input::open(path).map_err(cannot_open)?;
    guarded(path, || {
        let band = options.band.map_or(0, |band| band.saturating_sub(1));
        sidecar::complete(path, band, open_input(input, path, options)?)
    })
}

fn open_input(input: Input, path: &Path, options: &ImportOptions) -> Result<Raster> {
    let head = input.bytes_at(0, input.len().min(LONGEST_HEAD));
    let head = head.map_err(|e| Error::io(path, "cannot read", e))?;
    if by_header(path) {
        let what = "is the header of another file";
        let expected = "the .flt or .bil beside it";
        return Err(Error::file(path, what, expected));
    }
    let Some(format) = detect(&head, path) else {
        return Err(Error::file(path, "not an elevation file", FORMATS));
    };
    format.check_flags(path, options)?;
    let len = input.len();
    let reader = || BufReader::new(input.clone());
    match format {
        Format::Tiff => geotiff::open(input, path, options),
        Format::Png => Ok(png::read(reader(), len, path, options)?.into()),
        Format::Asc => Ok(asc::read(reader(), len, path)?.into()),
        Format::Hgt => hgt::open(input, path),
        Format::Exr => Ok(exr::read(reader(), len, path, options)?.into()),
        Format::Zip => zipped::open(input, path),
        Format::Dted => Ok(dted::read(&input, path)?.into()),
        Format::Ehdr => ehdr::open(input, path, options),
        Format::Raw(kind) => raw::open(kind, input, path, options),
    }
}

fn detect(head: &[u8], path: &Path) -> Option<Format> {
    let magic: [(&[u8], Format); 8] = [
        (b"II\x2a\0", Format::Tiff),
        (b"MM\0\x2a", Format::Tiff),
        (b"II\x2b\0", Format::Tiff),
        (b"MM\0\x2b", Format::Tiff),
        (b"\x89PNG\r\n\x1a\n", Format::Png),
        (b"\x76\x2f\x31\x01", Format::Exr),
        (b"PK\x03\x04", Format::Zip),
        (dted::MAGIC, Format::Dted),
    ];
    // Without a header any bytes may come first.
    let by_name = by_extension(path);
    if let Some(Format::Raw(_) | Format::Ehdr) = by_name {
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

/// The header of an ESRI raster looks like an ASCII grid's.
fn by_header(path: &Path) -> bool {
    let extension = path.extension().and_then(|found| found.to_str());
    extension.is_some_and(|found| found.eq_ignore_ascii_case("hdr"))
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
        "dt0" | "dt1" | "dt2" => Some(Format::Dted),
        "flt" | "bil" => Some(Format::Ehdr),
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
    let line: String = words.join(" ").chars().take(200).collect();
    // More is said behind it.
    line.trim_end_matches('.').to_owned()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
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
                let mut report = |_, _| Ok(());
                let mut progress = Progress::new(&mut report);
                let input = Input::memory(bytes.to_vec());
                open_input(input, path, &options)
                    .and_then(|raster| ingest::one(path, raster, &options, &mut progress))
                    .and_then(|ingested| finish::judge(path, ingested, &options))
                    .and_then(|judged| judged.into_source(&options, &mut progress))
                    .map(|(source, _)| source)
            };
            let whole = try_bytes(&bytes);
            assert!(whole.is_ok(), "{name}: {whole:?}");
            let try_bytes = |bytes: &[u8]| {
                let message = try_bytes(bytes).err().map(|e| e.to_string());
                let message = message.unwrap_or_default();
                assert!(!message.contains('\n'), "{message}");
            };
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
