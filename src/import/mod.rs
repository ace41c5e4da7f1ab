//! Elevation files from outside, turned into integer heights with spacing and provenance.
//!
//! One reader a format gives a [`Grid`] of numbers as they lie in the file; what is the same for
//! all of them (voids, metres, height steps) happens here, once. Formats are told by content
//! first, so that a wrong extension does no harm.
//!
//! - Any bytes give a value or a one-line error: no panic, and no allocation beyond 8 bytes for
//!   each of at most 2^28 samples, nor for more samples than an uncompressed file could hold.
//! - What cannot be read faithfully (feet, rotated rasters, imagery) is refused, never guessed.
//! - A [`Source`] has no voids left, and every height lies within ±[`MAX_UNITS`].

mod asc;
#[cfg(test)]
mod fixtures;
mod geo;
mod geotags;
mod geotiff;
mod hgt;
mod membrane;
mod png;
mod quantise;
mod voids;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::error::{Error, Result};
use crate::source::Source;
use crate::terrain::height_map::HeightMap;
use crate::world::source::SourceInfo;
use geo::Georef;

/// What the user knows better than the file; `None` leaves it to the file.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Metres between samples, `[x (east), z (south)]`.
    pub spacing_m: Option<[f64; 2]>,
    /// Metres a unit of the file.
    pub height_scale: Option<f64>,
    /// Metres a height unit of the result.
    pub height_step_m: Option<f64>,
}

/// The largest height, in units of the height step, on either side of zero.
pub const MAX_UNITS: i32 = (1 << 22) - 1;

/// Reads an elevation file. Errors are one line: the file, what is wrong, what was expected.
pub fn load(path: &Path, options: &ImportOptions) -> Result<Source> {
    options.check()?;
    let grid = read(path)?;
    finish(path, grid, options)
}

const MAX_SAMPLES: u64 = 1 << 28;
const FORMATS: &str = "GeoTIFF (.tif), SRTM (.hgt), 16-bit PNG or ESRI ASCII grid (.asc)";

/// Numbers as they lie in the file, row by row from the north-west; NaN where there is none.
#[derive(Debug)]
struct Grid {
    width: u32,
    height: u32,
    samples: Vec<f64>,
    /// All samples are whole numbers, which the world keeps as they are.
    integer: bool,
    georef: Option<Georef>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Tiff,
    Png,
    Asc,
    Hgt,
}

impl ImportOptions {
    fn check(&self) -> Result<()> {
        let [x, z] = self.spacing_m.unwrap_or([1.0, 1.0]);
        let scale = self.height_scale.unwrap_or(1.0);
        let step = self.height_step_m.unwrap_or(1.0);
        let named = [
            ("--spacing", x),
            ("--spacing", z),
            ("--height-scale", scale),
            ("--height-step", step),
        ];
        match named.iter().find(|(_, v)| !(1e-9..=1e9).contains(v)) {
            Some((name, v)) => Err(Error::Usage(format!(
                "{name} {v}: expected a number above 0 and at most 1e9"
            ))),
            None => Ok(()),
        }
    }
}

fn read(path: &Path) -> Result<Grid> {
    let cannot_open = |e| Error::io(path, "cannot open", e);
    let metadata = fs::metadata(path).map_err(cannot_open)?;
    if metadata.is_dir() {
        return Err(Error::file(path, "is a folder", FORMATS));
    }
    if !metadata.is_file() {
        return Err(Error::file(path, "is not a regular file", FORMATS));
    }
    if metadata.len() == 0 {
        return Err(Error::file(path, "is empty", FORMATS));
    }
    let reader = BufReader::new(File::open(path).map_err(cannot_open)?);
    read_from(reader, metadata.len(), path)
}

/// `len` is the number of bytes behind `reader`: the measure of what a header may claim.
fn read_from<R: BufRead + Seek>(mut reader: R, len: u64, path: &Path) -> Result<Grid> {
    let head = reader
        .fill_buf()
        .map_err(|e| Error::io(path, "cannot read", e))?;
    match detect(head, path) {
        Some(format) => guarded(path, || decode(format, reader, len, path)),
        None => Err(Error::file(path, "not an elevation file", FORMATS)),
    }
}

fn decode<R: BufRead + Seek>(format: Format, reader: R, len: u64, path: &Path) -> Result<Grid> {
    match format {
        Format::Tiff => geotiff::read(reader, len, path),
        Format::Png => png::read(reader, len, path),
        Format::Asc => asc::read(reader, len, path),
        Format::Hgt => hgt::read(reader, len, path),
    }
}

fn detect(head: &[u8], path: &Path) -> Option<Format> {
    let magic: [(&[u8], Format); 5] = [
        (b"II\x2a\0", Format::Tiff),
        (b"MM\0\x2a", Format::Tiff),
        (b"II\x2b\0", Format::Tiff),
        (b"MM\0\x2b", Format::Tiff),
        (b"\x89PNG\r\n\x1a\n", Format::Png),
    ];
    if let Some((_, format)) = magic.iter().find(|(bytes, _)| head.starts_with(bytes)) {
        return Some(*format);
    }
    if asc::looks_like(head) {
        return Some(Format::Asc);
    }
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "tif" | "tiff" | "geotiff" => Some(Format::Tiff),
        "png" => Some(Format::Png),
        "asc" => Some(Format::Asc),
        "hgt" => Some(Format::Hgt),
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

/// Checked before anything of that size is allocated.
fn check_size(path: &Path, width: u64, height: u64) -> Result<()> {
    let what = if width < 2 || height < 2 {
        "too small"
    } else if width.saturating_mul(height) > MAX_SAMPLES {
        "too large"
    } else {
        return Ok(());
    };
    Err(Error::file(
        path,
        format!("{width} x {height} samples are {what}"),
        format!("at least 2 x 2 and at most {MAX_SAMPLES} samples"),
    ))
}

/// A foreign message on one line of bounded length.
fn one_line(message: impl ToString) -> String {
    let words: Vec<String> = (message.to_string().split_whitespace())
        .map(|word| word.chars().filter(|c| !c.is_control()).collect())
        .collect();
    words.join(" ").chars().take(200).collect()
}

fn finish(path: &Path, mut grid: Grid, options: &ImportOptions) -> Result<Source> {
    let survey = voids::survey(&grid.samples)
        .ok_or_else(|| Error::file(path, "every sample is a void", "heights"))?;
    let scale = options.height_scale.unwrap_or(1.0);
    let (min_m, max_m) = (survey.low * scale, survey.high * scale);
    let step_m = match options.height_step_m {
        Some(step) => step,
        None if grid.integer => scale,
        None => quantise::float_step(min_m, max_m),
    };
    quantise::check_range(path, min_m, max_m, step_m)?;
    let spacing_m = match options.spacing_m {
        Some(spacing) => spacing,
        None => geo::spacing_m(path, grid.georef.as_ref(), grid.width, grid.height)?,
    };
    if survey.voids > 0 {
        membrane::fill(grid.width, grid.height, &mut grid.samples);
    }
    let map = HeightMap {
        width: grid.width,
        height: grid.height,
        heights: quantise::to_units(&grid.samples, scale / step_m),
    };
    let info = SourceInfo {
        files: vec![file_name(path)],
        voids: survey.voids,
        filled: survey.voids,
        min_m,
        max_m,
        crs: grid.georef.as_ref().and_then(|g| g.crs.clone()),
        transform: grid.georef.as_ref().map(|g| g.transform),
        pixel_is_area: grid.georef.as_ref().is_some_and(|g| g.pixel_is_area),
    };
    Ok(Source {
        map,
        step_m,
        spacing_m,
        info,
    })
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

    fn grid(samples: &[f64], integer: bool) -> Grid {
        Grid {
            width: 2,
            height: samples.len() as u32 / 2,
            samples: samples.to_vec(),
            integer,
            georef: None,
        }
    }

    fn finish_with(samples: &[f64], integer: bool, options: ImportOptions) -> Result<Source> {
        finish(Path::new("x.tif"), grid(samples, integer), &options)
    }

    #[test]
    fn integers_stay_integers_whatever_the_scale() {
        let heights = [1.0, -2.0, 3000.0, 7.0];
        let plain = finish_with(&heights, true, ImportOptions::default()).unwrap();
        assert_eq!(plain.step_m, 1.0);
        assert_eq!(plain.map.heights, [1, -2, 3000, 7]);
        let options = ImportOptions {
            height_scale: Some(0.1),
            ..Default::default()
        };
        let scaled = finish_with(&heights, true, options).unwrap();
        assert_eq!((scaled.step_m, scaled.info.max_m), (0.1, 300.0));
        assert_eq!(scaled.map.heights, plain.map.heights);
    }

    #[test]
    fn a_given_step_wins_and_halves_round_away_from_zero() {
        let options = ImportOptions {
            height_step_m: Some(2.0),
            ..Default::default()
        };
        let source = finish_with(&[1.0, -1.0, 5.0, 4.0], true, options).unwrap();
        assert_eq!(source.map.heights, [1, -1, 3, 2]);
    }

    #[test]
    fn heights_out_of_reach_say_which_step_would_do() {
        let heights = [0.0, 1.0, 5e6, 2.0];
        let message = finish_with(&heights, true, ImportOptions::default())
            .unwrap_err()
            .to_string();
        assert!(message.ends_with("--height-step 2 or larger"), "{message}");
        let options = ImportOptions {
            height_step_m: Some(2.0),
            ..Default::default()
        };
        assert!(finish_with(&heights, true, options).is_ok());
    }

    #[test]
    fn voids_are_counted_and_filled() {
        let source = finish_with(
            &[1.0, 1.0, f64::NAN, 1.0],
            true,
            ImportOptions {
                spacing_m: Some([3.0, 4.0]),
                ..Default::default()
            },
        )
        .unwrap();
        assert_eq!(source.map.heights, [1; 4]);
        assert_eq!((source.info.voids, source.info.filled), (1, 1));
        assert_eq!(source.spacing_m, [3.0, 4.0]);
        assert!(finish_with(&[f64::NAN; 4], true, ImportOptions::default()).is_err());
    }

    #[test]
    fn nonsense_options_are_refused() {
        let bad = |spacing_m, height_scale| {
            ImportOptions {
                spacing_m,
                height_scale,
                ..Default::default()
            }
            .check()
            .is_err()
        };
        assert!(bad(Some([1.0, f64::NAN]), None) && bad(None, Some(0.0)) && bad(None, Some(-1.0)));
    }

    #[test]
    fn what_is_no_elevation_file_is_told_in_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let cases = [
            (folder.path().to_owned(), "is a folder"),
            (folder.path().join("missing.tif"), "cannot open"),
            (write("zero.tif", b""), "is empty"),
            (
                write("notes.txt", b"Dear diary,\n"),
                "not an elevation file",
            ),
            (write("words.tif", b"Dear diary,\n"), "damaged"),
            (write("words.asc", b"Dear diary,\n"), "Dear"),
            (write("words.png", b"Dear diary,\n"), "damaged"),
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
        assert_eq!(detect(b"PK", Path::new("a.zip")), None);
    }

    #[test]
    fn damaged_bytes_of_any_format_never_panic() {
        for (name, bytes) in fixtures::one_of_each() {
            let path = Path::new(name);
            let try_bytes = |bytes: &[u8]| {
                // Not through `guarded`: a decoder's panic shall be seen.
                let len = bytes.len() as u64;
                let format = detect(bytes, path).unwrap();
                let result = decode(format, Cursor::new(bytes), len, path)
                    .and_then(|grid| finish(path, grid, &ImportOptions::default()));
                let message = result.err().map(|e| e.to_string()).unwrap_or_default();
                assert!(!message.contains('\n'), "{message}");
            };
            let whole = read_from(Cursor::new(&bytes), bytes.len() as u64, path);
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
