//! ESRI ASCII grids: a header of keys and numbers, then the heights as text.
//!
//! Writers agree on little: keys in any case, corners or centres, rows wrapped at any width. So
//! the file is read as one stream of words, and only their number counts.
//!
//! - `ncols * nrows` is checked against the limit and the file's length (two bytes a value at
//!   least) before anything is allocated.
//! - Exactly as many values as the header says, or an error.
//! - Words are at most [`LONGEST_WORD`] bytes: a binary file cannot fill the memory with one.

use std::io::BufRead;
use std::path::Path;

use super::geo::{Georef, Unit};
use super::grid::{Grid, check_whole};
use super::lint::Warning;
use super::voids::VoidRule;
use crate::error::{Error, Result};

const KEYS: [&str; 10] = [
    "ncols",
    "nrows",
    "xllcorner",
    "xllcenter",
    "yllcorner",
    "yllcenter",
    "cellsize",
    "dx",
    "dy",
    "nodata_value",
];
const NODATA: &str = "nodata_value";
const LONGEST_WORD: usize = 64;

/// Whether a file that begins so is an ASCII grid.
pub(super) fn looks_like(head: &[u8]) -> bool {
    let head = head
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(head)
        .trim_ascii_start();
    let key = head.split(u8::is_ascii_whitespace).next().unwrap_or(head);
    KEYS.iter().any(|k| key.eq_ignore_ascii_case(k.as_bytes()))
}

pub(super) fn read(reader: impl BufRead, len: u64, path: &Path) -> Result<Grid> {
    let mut words = Words {
        reader,
        path,
        commas: false,
    };
    let (header, first) = Header::read(&mut words)?;
    let (width, height) = header.size(path, len)?;
    let georef = header.georef(path, height)?;
    let rule = VoidRule::signed(header.get(NODATA));
    let count = width as usize * height as usize;
    let mut samples = Vec::with_capacity(count);
    let mut word = first;
    while let Some(text) = word {
        if samples.len() == count {
            return Err(Error::file(
                path,
                "too many values",
                format!("{count} ({width} x {height})"),
            ));
        }
        samples.push(match header.is_void(&text) {
            true => f64::NAN,
            false => rule.apply(words.number(&text)?),
        });
        word = words.next()?;
    }
    if samples.len() < count {
        let what = format!("too few values: {}", samples.len());
        return Err(Error::file(
            path,
            what,
            format!("{count} ({width} x {height})"),
        ));
    }
    let integer = samples.iter().all(|v| v.is_nan() || v.fract() == 0.0);
    let mut grid = Grid::plain(width, height, samples, integer);
    grid.georef = Some(georef);
    if words.commas {
        let text = "decimal commas are read as points";
        let pass = "a file with points if they are no decimal commas";
        grid.warnings.push(Warning::new("commas", text, pass));
    }
    Ok(grid)
}

struct Words<'a, R> {
    reader: R,
    path: &'a Path,
    /// A number had a comma for its point.
    commas: bool,
}

impl<R: BufRead> Words<'_, R> {
    /// The next word, `None` at the end of the file.
    fn next(&mut self) -> Result<Option<String>> {
        let mut word = Vec::new();
        while let Some(byte) = self.byte()? {
            if !byte.is_ascii_whitespace() {
                word.push(byte);
            } else if !word.is_empty() {
                break;
            }
            if word.len() > LONGEST_WORD {
                let what = format!("`{}...` is too long a word", printable(&word[..16]));
                return Err(Error::file(self.path, what, "numbers separated by spaces"));
            }
        }
        Ok((!word.is_empty()).then(|| printable(&word)))
    }

    fn number(&mut self, word: &str) -> Result<f64> {
        if let Ok(number) = word.parse() {
            return Ok(number);
        }
        let comma = word.matches(',').count() == 1 && !word.contains('.');
        let number = comma.then(|| word.replace(',', ".").parse().ok()).flatten();
        self.commas |= number.is_some();
        number.ok_or_else(|| {
            let what = format!("`{word}` is not a number");
            Error::file(self.path, what, "a number such as 12.5")
        })
    }

    fn byte(&mut self) -> Result<Option<u8>> {
        let buffer = self
            .reader
            .fill_buf()
            .map_err(|e| Error::io(self.path, "cannot read", e))?;
        let byte = buffer.first().copied();
        self.reader.consume(usize::from(byte.is_some()));
        Ok(byte)
    }
}

fn printable(word: &[u8]) -> String {
    let text = String::from_utf8_lossy(word);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    text.chars().filter(|c| !c.is_control()).collect()
}

/// The keys' values, in the order of [`KEYS`].
#[derive(Default)]
struct Header {
    values: [Option<f64>; KEYS.len()],
    /// Stands where there is no height.
    void_word: Option<String>,
}

impl Header {
    /// Reads up to the first word that is a number in the place of a key: the first height.
    fn read(words: &mut Words<impl BufRead>) -> Result<(Header, Option<String>)> {
        let mut header = Header::default();
        loop {
            let key = match words.next()? {
                Some(word) if words.number(&word).is_err() && !header.is_void(&word) => word,
                first => return Ok((header, first)),
            };
            let Some(slot) = KEYS.iter().position(|k| key.eq_ignore_ascii_case(k)) else {
                let what = format!("`{key}` is no key of an ASCII grid's header");
                return Err(Error::file(words.path, what, KEYS.join(", ")));
            };
            let void_word = header.void_word.as_ref().filter(|_| KEYS[slot] == NODATA);
            if header.values[slot].is_some() || void_word.is_some() {
                let what = format!("`{key}` is said twice");
                return Err(Error::file(words.path, what, "each key once"));
            }
            let value = words.next()?.unwrap_or_default();
            match words.number(&value) {
                Ok(number) => header.values[slot] = Some(number),
                Err(_) if KEYS[slot] == NODATA && is_word(&value) => header.void_word = Some(value),
                Err(error) => return Err(error),
            }
        }
    }

    fn is_void(&self, word: &str) -> bool {
        let void = self.void_word.as_ref();
        void.is_some_and(|void| word.eq_ignore_ascii_case(void))
    }

    fn get(&self, key: &str) -> Option<f64> {
        let slot = KEYS.iter().position(|k| *k == key)?;
        self.values[slot]
    }

    fn size(&self, path: &Path, len: u64) -> Result<(u32, u32)> {
        let side = |key: &str| {
            let whole = |v: &f64| v.fract() == 0.0 && (0.0..=1e9).contains(v);
            let value = self.get(key).filter(whole);
            value.ok_or_else(|| {
                Error::file(
                    path,
                    format!("no usable {key}"),
                    "ncols and nrows in the header",
                )
            })
        };
        let (width, height) = (side("ncols")? as u64, side("nrows")? as u64);
        check_whole(path, width, height, "a TIFF")?;
        if width * height > len.div_ceil(2) {
            let what = format!("{len} bytes cannot hold {width} x {height} values");
            return Err(Error::file(path, what, "a complete grid"));
        }
        Ok((width as u32, height as u32))
    }

    fn georef(&self, path: &Path, height: u32) -> Result<Georef> {
        let size = self.get("cellsize");
        let dx = size.or(self.get("dx"));
        let dy = size.or(self.get("dy"));
        let (Some(dx), Some(dy)) = (dx.filter(positive), dy.filter(positive)) else {
            return Err(Error::file(
                path,
                "no usable cellsize",
                "a cellsize above 0 in the header",
            ));
        };
        let area = self.get("xllcenter").is_none() && self.get("xllcorner").is_some();
        let x = self.origin("xllcenter", "xllcorner", dx);
        let y = self.origin("yllcenter", "yllcorner", dy);
        let north = y + dy * f64::from(height - 1);
        if !(x.is_finite() && north.is_finite()) {
            return Err(Error::file(
                path,
                "the corner is not finite",
                "numbers for xllcorner and yllcorner",
            ));
        }
        let mut georef = Georef::north_up(None, Unit::Unsaid, [x, north], [dx, dy]);
        georef.pixel_is_area = area;
        Ok(georef)
    }

    /// The south-westernmost sample along one axis; a corner is half a cell outside of it.
    fn origin(&self, centre: &str, corner: &str, size: f64) -> f64 {
        self.get(centre)
            .or_else(|| self.get(corner).map(|c| c + size / 2.0))
            .unwrap_or(0.0)
    }
}

/// Such as `null`.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic())
}

fn positive(value: &f64) -> bool {
    *value > 0.0 && value.is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Grid> {
        read(text.as_bytes(), text.len() as u64, Path::new("x.asc"))
    }

    fn message(text: &str) -> String {
        read_text(text).unwrap_err().to_string()
    }

    const HEADER: &str = "ncols 3\nnrows 2\nxllcorner 100\nyllcorner 200\ncellsize 10\n";

    #[test]
    fn numbers_without_decimals_are_integers() {
        let grid = read_text(&format!(
            "{HEADER}NODATA_value -9999\n0. 1. 2.\n3. -9999 5.\n"
        ))
        .unwrap();
        assert_eq!((grid.width, grid.height, grid.integer), (3, 2, true));
        assert!(grid.samples[4].is_nan());
        assert_eq!(grid.samples[3], 3.0);
        assert!(
            !read_text(&format!("{HEADER}0 1 2 3 4 5.5"))
                .unwrap()
                .integer
        );
    }

    #[test]
    fn corners_are_half_a_cell_outside_and_centres_are_not() {
        let corner = read_text(&format!("{HEADER}0 1 2 3 4 5"))
            .unwrap()
            .georef
            .unwrap();
        assert_eq!(corner.transform, [105.0, 10.0, 0.0, 215.0, 0.0, -10.0]);
        assert!(corner.pixel_is_area);
        let centred = HEADER.replace("corner", "center");
        let centre = read_text(&format!("{centred}0 1 2 3 4 5"))
            .unwrap()
            .georef
            .unwrap();
        assert_eq!(centre.transform, [100.0, 10.0, 0.0, 210.0, 0.0, -10.0]);
        assert!(!centre.pixel_is_area);
    }

    #[test]
    fn case_line_ends_and_wrapping_do_not_matter() {
        let text = format!(
            "\u{feff}{}NODATA_VALUE 3\n0 1\n2 3 4\n\n5",
            HEADER.to_uppercase()
        );
        let grid = read_text(&text.replace('\n', "\r\n")).unwrap();
        assert_eq!(grid.samples[5], 5.0);
        assert!(grid.samples[3].is_nan());
        assert!(looks_like(text.as_bytes()));
    }

    #[test]
    fn words_for_voids_and_decimal_commas_are_understood() {
        let grid = read_text(&format!("{HEADER}NODATA_value null\n0 1 NULL\nnull 4 5")).unwrap();
        assert!(grid.samples[2].is_nan() && grid.samples[3].is_nan());
        assert_eq!(grid.samples[5], 5.0);
        // The first height may be a void.
        let first = read_text(&format!("{HEADER}NODATA_value null\nnull 1 2 3 4 5")).unwrap();
        assert!(first.samples[0].is_nan());
        let commas = HEADER.replace("size 10", "size 2,5");
        let grid = read_text(&format!("{commas}0,5 1 2 3 4 5,25")).unwrap();
        assert_eq!((grid.samples[0], grid.samples[5]), (0.5, 5.25));
        assert_eq!(grid.georef.unwrap().transform[1], 2.5);
        assert_eq!(grid.warnings[0].about, "commas");
        assert!(message(&format!("{HEADER}NODATA_value null\n0 1 2 nil 4 5")).contains("`nil`"));
    }

    #[test]
    fn the_number_of_values_must_be_right() {
        assert!(message(&format!("{HEADER}0 1 2 3 4")).contains("too few values: 5"));
        assert!(message(&format!("{HEADER}0 1 2 3 4 5 6")).contains("too many values"));
        assert!(message(HEADER).contains("too few values: 0"));
    }

    #[test]
    fn claims_are_checked_before_they_are_allocated() {
        let claim = |n: &str| message(&HEADER.replace("ncols 3", &format!("ncols {n}")));
        assert!(claim("100000000").contains("cannot hold"));
        assert!(claim("900000000").contains("too large"));
        assert!(claim("1e300").contains("no usable ncols"));
        assert!(claim("nan").contains("no usable ncols"));
        assert!(claim("1").contains("too small"));
    }

    #[test]
    fn damage_is_named() {
        assert!(message(&format!("{HEADER}0 1 2 x 4 5")).contains("`x` is not a number"));
        assert!(message(&format!("{HEADER}0 1 2 1,5,6 4 5")).contains("`1,5,6`"));
        assert!(message(&format!("{HEADER}0 1 2 1.000,5 4 5")).contains("`1.000,5`"));
        assert!(message(&format!("{HEADER}nrows 2\n0 1 2 3 4 5")).contains("twice"));
        assert!(message("colour blue").contains("`colour` is no key"));
        assert!(message(&HEADER.replace("size 10", "size 0")).contains("cellsize"));
        assert!(message(&"9".repeat(1000)).contains("too long"));
    }
}
