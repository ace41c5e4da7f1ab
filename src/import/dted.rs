//! DTED (MIL-PRF-89020B), `.dt0` to `.dt2`: columns of signed metres, from the south-west.
//!
//! Fixed text in front, then one record a column: the `dted2` crate subtracts what is no digit, so
//! they are taken apart here. Samples are points; the void is -32767.
//!
//! - The header's claims are checked against the file's length before the records are read.

use std::path::Path;

use super::geo::{Georef, Unit};
use super::grid::{Grid, check_whole};
use super::input::Input;
use super::voids::VoidRule;
use crate::error::{Error, Result};

/// What a file begins with.
pub(super) const MAGIC: &[u8] = b"UHL1";
const HEADER_BYTES: u64 = 80;
/// All headers; what stands before a column's heights, and with its checksum behind them.
const HEADERS_BYTES: u64 = 3428;
const BEFORE_BYTES: usize = 8;
const AROUND_BYTES: u64 = 12;
/// What each column begins with.
const COLUMN: u8 = 0xaa;
const VOID: f64 = -32767.0;

pub(super) fn read(input: &Input, path: &Path) -> Result<Grid> {
    let damaged = |what: &str| Error::file(path, format!("damaged DTED: {what}"), "an intact file");
    let cannot_read = |e| Error::io(path, "cannot read", e);
    let header = input.bytes_at(0, HEADER_BYTES.min(input.len()));
    let header = Header::of(&header.map_err(cannot_read)?);
    let header = header.ok_or_else(|| damaged("no sound header"))?;
    let [columns, rows] = header.count;
    check_whole(path, columns, rows, "a GeoTIFF")?;
    let column_bytes = AROUND_BYTES + 2 * rows;
    if HEADERS_BYTES + columns * column_bytes > input.len() {
        let what = format!(
            "{} bytes cannot hold {columns} x {rows} heights",
            input.len()
        );
        return Err(damaged(&what));
    }
    let bytes = input.bytes_at(HEADERS_BYTES, columns * column_bytes);
    let bytes = bytes.map_err(cannot_read)?;
    let rule = VoidRule::signed(Some(VOID));
    let mut samples = vec![f64::NAN; (columns * rows) as usize];
    for (x, column) in bytes.chunks(column_bytes as usize).enumerate() {
        if column[0] != COLUMN {
            return Err(damaged(&format!("column {x} is none")));
        }
        let heights = column[BEFORE_BYTES..].as_chunks::<2>().0.iter();
        for (from_south, word) in heights.take(rows as usize).enumerate() {
            let row = rows as usize - 1 - from_south;
            samples[row * columns as usize + x] = rule.apply(signed(*word));
        }
    }
    let [west, south] = header.origin;
    let [dx, dy] = header.step;
    let north = south + dy * (rows - 1) as f64;
    let mut grid = Grid::plain(columns as u32, rows as u32, samples, true);
    let crs = Some("EPSG:4326".to_owned());
    grid.georef = Some(Georef::north_up(crs, Unit::Degree, [west, north], [dx, dy]));
    grid.measure.unit_m = Some(1.0);
    Ok(grid)
}

/// Sign and magnitude, the highest byte first.
fn signed(word: [u8; 2]) -> f64 {
    let word = u16::from_be_bytes(word);
    let magnitude = f64::from(word & 0x7fff);
    if word & 0x8000 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// What the first header says.
struct Header {
    /// West and south, in degrees.
    origin: [f64; 2],
    /// Degrees between samples, to the east and to the north.
    step: [f64; 2],
    /// Columns and rows.
    count: [u64; 2],
}

impl Header {
    /// `None` for what is no such header.
    fn of(bytes: &[u8]) -> Option<Header> {
        let number = |from: usize, digits: usize| {
            let text = bytes.get(from..from + digits)?;
            let digits = text.iter().all(u8::is_ascii_digit).then_some(text)?;
            str::from_utf8(digits).ok()?.parse::<u32>().ok()
        };
        // Degrees, minutes, seconds and a letter.
        let angle = |from: usize, [positive, negative]: [u8; 2]| {
            let [minutes, seconds] = [number(from + 3, 2)?, number(from + 5, 2)?];
            let parts = f64::from(minutes) / 60.0 + f64::from(seconds) / 3600.0;
            let degrees = f64::from(number(from, 3)?) + parts;
            match *bytes.get(from + 7)? {
                letter if letter == positive => Some(degrees),
                letter if letter == negative => Some(-degrees),
                _ => None,
            }
        };
        // Tenths of a second of arc.
        let step = |from| Some(f64::from(number(from, 4).filter(|n| *n > 0)?) / 36_000.0);
        Some(Header {
            origin: [angle(4, *b"EW")?, angle(12, *b"NS")?],
            step: [step(20)?, step(24)?],
            count: [number(47, 4)?.into(), number(51, 4)?.into()],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    fn read_bytes(bytes: Vec<u8>) -> Result<Grid> {
        read(&Input::memory(bytes), Path::new("x.dt1"))
    }

    #[test]
    fn columns_from_the_south_west_become_rows_from_the_north_west() {
        // Heights are 100 * column + row from the south; one below zero, one void.
        let grid = read_bytes(fixtures::dted(3, 4, |x, y| match (x, y) {
            (0, 0) => -7,
            (2, 3) => -32767,
            _ => 100 * x as i16 + y as i16,
        }))
        .unwrap();
        assert_eq!((grid.width, grid.height), (3, 4));
        assert_eq!(grid.samples[..2], [3.0, 103.0]);
        assert!(grid.samples[2].is_nan());
        assert_eq!(grid.samples[9..], [-7.0, 100.0, 200.0]);
        let transform = grid.georef.unwrap().transform;
        let expected = [
            -72.0,
            3.0 / 3600.0,
            0.0,
            44.0 + 9.0 / 3600.0,
            0.0,
            -3.0 / 3600.0,
        ];
        assert!(
            transform
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-9),
            "{transform:?}"
        );
    }

    #[test]
    fn what_is_cut_is_refused_and_nothing_panics() {
        let bytes = fixtures::dted(5, 6, |x, y| (x + y) as i16);
        for cut in (0..bytes.len()).step_by(7) {
            assert!(read_bytes(bytes[..cut].to_vec()).is_err(), "{cut}");
        }
        let mut random = fixtures::Random(5);
        for _ in 0..500 {
            let mut bytes = bytes.clone();
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
            let message = read_bytes(bytes).err().map(|e| e.to_string());
            assert!(!message.unwrap_or_default().contains('\n'));
        }
    }
}
