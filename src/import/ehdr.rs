//! ESRI's raw rasters with a header beside them: `.bil` and `.flt`, with `.hdr`.
//!
//! Both are lines of a key and a value. That of a `.flt` is an ASCII grid's, over 32-bit floats;
//! that of a `.bil` says the type of samples, how bands are interleaved and what lies between
//! rows, and places the centre of the north-west sample.
//!
//! - The header's claims are checked against the file's length before anything is read.
//! - What would be guessed is refused: a key twice, layouts and sizes that nobody writes.

use std::fs;
use std::path::{Path, PathBuf};

use tiff::tags::SampleFormat;

use super::geo::{Georef, Unit};
use super::grid::{Measure, check_size};
use super::input::Input;
use super::one_line;
use super::options::{ByteOrder, ImportOptions};
use super::plain::Plain;
use super::raster::{Head, Raster};
use super::voids::VoidRule;
use crate::error::{Error, Result};

const LONGEST_HEADER: u64 = 1 << 16;

pub(super) fn open(input: Input, path: &Path, options: &ImportOptions) -> Result<Raster> {
    let header = Header::beside(path)?;
    let is_float = header.get("ncols").is_some()
        && header.get("nbits").is_none()
        && has_extension(path, "flt");
    let (width, height) = (header.count("ncols")?, header.count("nrows")?);
    check_size(path, width, height)?;
    let form = match is_float {
        true => Form::of_floats(&header)?,
        false => Form::of_bands(&header, options)?,
    };
    let plain = form.plain(input, path, [width as u32, height as u32], &header)?;
    let georef = header.georef([width as u32, height as u32], is_float)?;
    let head = Head {
        width: width as u32,
        height: height as u32,
        integer: plain.format != SampleFormat::IEEEFP,
        kind: plain.kind(),
        georef,
        measure: Measure::default(),
        statistics: None,
        warnings: Vec::new(),
    };
    Ok(Raster {
        head,
        samples: Box::new(plain),

        in_memory: false,
    })
}

fn has_extension(path: &Path, extension: &str) -> bool {
    let found = path.extension().and_then(|found| found.to_str());
    found.is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

/// How samples lie in the file.
struct Form {
    format: SampleFormat,
    bits: u16,
    /// Bytes before the first row of our band, and from row to row.
    start: u64,
    pitch: Option<u64>,
    /// Bands of which samples alternate.
    stride: u16,
}

impl Form {
    fn of_floats(header: &Header) -> Result<Form> {
        header.only("nbits", &["32"])?;
        Ok(Form {
            format: SampleFormat::IEEEFP,
            bits: 32,
            start: 0,
            pitch: None,
            stride: 1,
        })
    }

    fn of_bands(header: &Header, options: &ImportOptions) -> Result<Form> {
        let bits = header.count_or("nbits", 8)?;
        let kind = header
            .get("pixeltype")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let below_zero = header.number("nodata")?.is_some_and(|nodata| nodata < 0.0);
        let format = match (kind.as_str(), bits) {
            ("signedint", 8 | 16 | 32) => SampleFormat::Int,
            ("unsignedint", 8 | 16 | 32) => SampleFormat::Uint,
            ("float", 32 | 64) => SampleFormat::IEEEFP,
            // Without a word of it, a void below zero tells.
            ("", 16 | 32) if below_zero => SampleFormat::Int,
            ("", 8 | 16 | 32) => SampleFormat::Uint,
            _ => {
                let what = format!("samples of {bits} bits (`{}`)", one_line(&kind));
                let expected = "8 to 32 bits of SIGNEDINT or UNSIGNEDINT, or 32 or 64 of FLOAT";
                return Err(Error::file(&header.path, what, expected));
            }
        };
        let bands = header.count_or("nbands", 1)?;
        let band = u64::from(options.band.unwrap_or(1));
        if !(1..=bands).contains(&band) || bands > 1 && options.band.is_none() {
            let expected = format!("--band 1 to {bands}");
            return Err(Error::file(
                &header.path,
                format!("{bands} bands"),
                expected,
            ));
        }
        let sample_bytes = bits / 8;
        let [width, height] = [header.count("ncols")?, header.count("nrows")?];
        let band_row = header.count_or("bandrowbytes", width.saturating_mul(sample_bytes))?;
        let row = header.count_or("totalrowbytes", band_row.saturating_mul(bands))?;
        let skip = header.count_or("skipbytes", 0)?;
        header.only("bandgapbytes", &["0"])?;
        let before = band - 1;
        let layout = header.get("layout").unwrap_or("bil").to_ascii_lowercase();
        let (start, pitch, stride) = match layout.as_str() {
            "bil" => (before.saturating_mul(band_row), row, 1),
            "bip" => (
                before * sample_bytes,
                width.saturating_mul(bands * sample_bytes),
                bands,
            ),
            "bsq" => (
                before.saturating_mul(band_row).saturating_mul(height),
                band_row,
                1,
            ),
            other => {
                let what = format!("a layout of `{}`", one_line(other));
                return Err(Error::file(&header.path, what, "BIL, BIP or BSQ"));
            }
        };
        Ok(Form {
            format,
            bits: bits as u16,
            start: skip.saturating_add(start),
            pitch: Some(pitch),
            stride: stride.min(u64::from(u16::MAX)) as u16,
        })
    }

    fn plain(
        &self,
        input: Input,
        path: &Path,
        [width, height]: [u32; 2],
        header: &Header,
    ) -> Result<Plain> {
        let nodata = header.number("nodata")?.or(header.number("nodata_value")?);
        let least = u64::from(width) * u64::from(self.bits / 8) * u64::from(self.stride);
        let pitch = self.pitch.unwrap_or(least);
        let last = (u64::from(height) - 1).saturating_mul(pitch);
        // Of the last pixel only the bands up to ours need to be there.
        let end = self
            .start
            .saturating_add(last)
            .saturating_add(least - (u64::from(self.stride) - 1) * u64::from(self.bits / 8));
        if pitch < least || end > input.len() {
            let what = format!(
                "{} bytes cannot hold {width} x {height} samples",
                input.len()
            );
            return Err(Error::file(path, what, "the size that its .hdr says"));
        }
        Ok(Plain {
            path: path.to_owned(),
            input,
            width,
            start: self.start,
            pitch,
            stride: self.stride,
            format: self.format,
            bits: self.bits,
            order: header.order()?,
            rule: match (self.format, self.bits) {
                (SampleFormat::Uint, _) => VoidRule::unsigned(nodata),
                (SampleFormat::IEEEFP, 32) => VoidRule::single(nodata),
                _ => VoidRule::signed(nodata),
            },
        })
    }
}

/// Keys in lower case, and their values.
struct Header {
    path: PathBuf,
    entries: Vec<(String, String)>,
}

impl Header {
    fn beside(path: &Path) -> Result<Header> {
        let candidates = ["hdr", "HDR"].map(|ending| path.with_extension(ending));
        let found = candidates.into_iter().find(|file| file.is_file());
        let missing = || Error::file(path, "no header beside it", "a .hdr of the same name");
        let file = found.ok_or_else(missing)?;
        let cannot_read = |e| Error::io(&file, "cannot read", e);
        if fs::metadata(&file).map_err(cannot_read)?.len() > LONGEST_HEADER {
            return Err(Error::file(
                &file,
                "too long for a header",
                "lines of a key and a value",
            ));
        }
        let text = fs::read(&file).map_err(cannot_read)?;
        Header::of(&String::from_utf8_lossy(&text), &file)
    }

    fn of(text: &str, path: &Path) -> Result<Header> {
        let mut entries: Vec<(String, String)> = Vec::new();
        for line in text.trim_start_matches('\u{feff}').lines() {
            let mut words = line.split_whitespace();
            let (Some(key), Some(value)) = (words.next(), words.next()) else {
                continue;
            };
            let key = key.to_ascii_lowercase();
            if entries.iter().any(|(other, _)| *other == key) {
                let what = format!("`{}` is said twice", one_line(&key));
                return Err(Error::file(path, what, "each key once"));
            }
            entries.push((key, value.to_owned()));
        }
        Ok(Header {
            path: path.to_owned(),
            entries,
        })
    }

    fn get(&self, key: &str) -> Option<&str> {
        let entry = self.entries.iter().find(|(other, _)| other == key);
        entry.map(|(_, value)| value.as_str())
    }

    fn number(&self, key: &str) -> Result<Option<f64>> {
        let Some(text) = self.get(key) else {
            return Ok(None);
        };
        let number = text.replace(',', ".").parse().map(Some);
        number.map_err(|_| self.odd(key, text, "a number"))
    }

    fn odd(&self, key: &str, text: &str, expected: &str) -> Error {
        Error::file(
            &self.path,
            format!("{key} is `{}`", one_line(text)),
            expected,
        )
    }

    fn count(&self, key: &str) -> Result<u64> {
        let missing = || Error::file(&self.path, format!("no {key}"), "ncols and nrows");
        let text = self.get(key).ok_or_else(missing)?;
        text.parse()
            .map_err(|_| self.odd(key, text, "a whole number"))
    }

    fn count_or(&self, key: &str, usual: u64) -> Result<u64> {
        self.get(key).map_or(Ok(usual), |_| self.count(key))
    }

    fn only(&self, key: &str, values: &[&str]) -> Result<()> {
        match self.get(key) {
            Some(value) if !values.contains(&value) => {
                Err(self.odd(key, value, &values.join(" or ")))
            }
            _ => Ok(()),
        }
    }

    fn order(&self) -> Result<ByteOrder> {
        let text = self.get("byteorder").unwrap_or("i");
        match text.to_ascii_lowercase().as_str() {
            "i" | "lsbfirst" | "intel" | "vms_native" => Ok(ByteOrder::Little),
            "m" | "msbfirst" | "motorola" => Ok(ByteOrder::Big),
            _ => Err(self.odd("byteorder", text, "I (LSBFIRST) or M (MSBFIRST)")),
        }
    }

    /// Where the samples lie, if the header says so.
    fn georef(&self, [_, height]: [u32; 2], is_float: bool) -> Result<Option<Georef>> {
        let size = |keys: [&str; 2]| -> Result<Option<f64>> {
            let found = self.number(keys[0])?.or(self.number(keys[1])?);
            match found {
                Some(size) if !(size > 0.0 && size.is_finite()) => {
                    Err(self.odd(keys[0], &size.to_string(), "a size above 0"))
                }
                found => Ok(found),
            }
        };
        let (Some(dx), Some(dy)) = (size(["xdim", "cellsize"])?, size(["ydim", "cellsize"])?)
        else {
            return match is_float {
                true => Err(Error::file(&self.path, "no cellsize", "a cellsize above 0")),
                false => Ok(None),
            };
        };
        let corner = |centre, corner, step: f64| -> Result<Option<f64>> {
            let from_corner = self.number(corner)?.map(|at| at + step / 2.0);
            Ok(self.number(centre)?.or(from_corner))
        };
        let (x, north) = if is_float {
            let y = corner("yllcenter", "yllcorner", dy)?;
            let north = y.map(|y| y + dy * f64::from(height - 1));
            (corner("xllcenter", "xllcorner", dx)?, north)
        } else {
            (self.number("ulxmap")?, self.number("ulymap")?)
        };
        let (Some(x), Some(north)) = (x, north) else {
            return Ok(None);
        };
        if !(x.is_finite() && north.is_finite()) {
            return Err(Error::file(
                &self.path,
                "the corner is not finite",
                "numbers",
            ));
        }
        let mut georef = Georef::north_up(None, Unit::Unsaid, [x, north], [dx, dy]);
        georef.pixel_is_area = true;
        Ok(Some(georef))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{load, open as open_file};
    use super::*;

    /// The samples of a file with its header.
    fn read(name: &str, bytes: &[u8], header: &str, band: Option<u16>) -> Result<Vec<f64>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        fs::write(path.with_extension("hdr"), header).unwrap();
        let options = ImportOptions {
            band,
            ..Default::default()
        };
        Ok(open_file(&path, &options)?.into_grid()?.samples)
    }

    fn message(bytes: &[u8], header: &str) -> String {
        read("x.bil", bytes, header, None).unwrap_err().to_string()
    }

    #[test]
    fn floats_lie_as_an_ascii_grid_says() {
        let floats: Vec<u8> = [1.5f32, 2.0, -9999.0, 4.0]
            .iter()
            .flat_map(|v| v.to_be_bytes())
            .collect();
        let header = "ncols 2\nnrows 2\nxllcorner 100\nyllcorner 200\ncellsize 10\nNODATA_value -9999\nbyteorder MSBFIRST\n";
        let found = read("x.flt", &floats, header, None).unwrap();
        assert_eq!((found[0], found[1], found[3]), (1.5, 2.0, 4.0));
        assert!(found[2].is_nan());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.flt");
        fs::write(&path, &floats).unwrap();
        fs::write(path.with_extension("hdr"), header).unwrap();
        let source = load(&path, &ImportOptions::default()).unwrap();
        assert_eq!(
            source.info.transform,
            Some([105.0, 10.0, 0.0, 215.0, 0.0, -10.0])
        );
    }

    #[test]
    fn bands_of_any_layout_are_found() {
        // Rows of two bands of two samples: 1 2 | 11 12, 3 4 | 13 14.
        let little = |values: &[i16]| {
            values
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let header = |layout: &str| {
            format!(
                "NROWS 2\nNCOLS 2\nNBANDS 2\nNBITS 16\nPIXELTYPE SIGNEDINT\nLAYOUT {layout}\nSKIPBYTES 2\n"
            )
        };
        let files = [
            ("BIL", little(&[9, 1, 2, 11, 12, 3, 4, 13, 14])),
            ("BIP", little(&[9, 1, 11, 2, 12, 3, 13, 4, 14])),
            ("BSQ", little(&[9, 1, 2, 3, 4, 11, 12, 13, 14])),
        ];
        for (layout, bytes) in files {
            let band = |band| read("x.bil", &bytes, &header(layout), Some(band)).unwrap();
            assert_eq!(band(1), [1.0, 2.0, 3.0, 4.0], "{layout}");
            assert_eq!(band(2), [11.0, 12.0, 13.0, 14.0], "{layout}");
            assert!(message(&bytes, &header(layout)).contains("--band 1 to 2"));
        }
        let padded = "nrows 2\nncols 2\nnbits 8\ntotalrowbytes 3\nlayout bil";
        assert_eq!(
            read("x.bil", &[1, 2, 0, 3, 4], padded, None).unwrap(),
            [1.0, 2.0, 3.0, 4.0]
        );
    }

    #[test]
    fn what_is_not_said_clearly_is_refused() {
        assert!(message(&[0; 8], "ncols 2\nnrows 2\nnrows 2").contains("twice"));
        assert!(message(&[0; 8], "ncols 2").contains("no nrows"));
        assert!(message(&[0; 8], "ncols 2\nnrows 9").contains("cannot hold"));
        assert!(message(&[0; 8], "ncols 2\nnrows 2\nlayout tiles").contains("BIL"));
        assert!(message(&[0; 8], "ncols 2\nnrows 2\nnbits 12").contains("12 bits"));
        let huge = "ncols 2\nnrows 2\ntotalrowbytes 18446744073709551615";
        assert!(message(&[0; 8], huge).contains("cannot hold"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alone.bil");
        fs::write(&path, [0; 8]).unwrap();
        let refused = load(&path, &ImportOptions::default()).unwrap_err();
        assert!(refused.to_string().contains("no header beside it"));
    }
}
