//! SRTM `.hgt`: a square of big-endian 16-bit metres with no header at all.
//!
//! The size is told by the file's length and the place by its name alone, so both are checked:
//! without the latitude nobody knows how many metres a degree of longitude is.
//!
//! - 1201 or 3601 samples a side, edges shared with the neighbours: samples are points.
//! - The name gives the south-west corner; row 0 is the northern edge.

use std::path::Path;

use tiff::tags::SampleFormat;

use super::file_name;
use super::geo::{Georef, Unit};
use super::grid::Measure;
use super::input::Input;
use super::options::ByteOrder;
use super::plain::Plain;
use super::raster::{Head, Raster};
use super::voids::VoidRule;
use crate::error::{Error, Result};

pub(super) const SIDES: [u32; 2] = [1201, 3601];

pub(super) fn open(input: Input, path: &Path) -> Result<Raster> {
    let len = input.len();
    let side = side_of(len).ok_or_else(|| {
        Error::file(
            path,
            format!("{len} bytes are no SRTM square"),
            format!(
                "{} (1201 x 1201) or {} bytes (3601 x 3601)",
                bytes_of(1201),
                bytes_of(3601)
            ),
        )
    })?;
    let [longitude, latitude] = south_west(&file_name(path)).ok_or_else(|| {
        Error::file(
            path,
            "the name does not say where it lies",
            "the south-west corner, as in N43E007.hgt or S33W071.hgt",
        )
    })?;
    let step = 1.0 / f64::from(side - 1);
    let samples = (SampleFormat::Int, 16);
    let rule = VoidRule::signed(None);
    let plain = Plain::rows(path, input, side, samples, ByteOrder::Big, rule);
    let head = Head {
        width: side,
        height: side,
        integer: true,
        kind: plain.kind(),
        measure: Measure {
            unit_m: Some(1.0),
            ..Measure::default()
        },
        georef: Some(Georef::north_up(
            Some("EPSG:4326".to_owned()),
            Unit::Degree,
            [longitude, latitude + 1.0],
            [step, step],
        )),
        statistics: None,
        warnings: Vec::new(),
    };
    Ok(Raster {
        head,
        samples: Box::new(plain),

        in_memory: false,
    })
}

pub(super) fn bytes_of(side: u32) -> u64 {
    u64::from(side) * u64::from(side) * 2
}

fn side_of(len: u64) -> Option<u32> {
    SIDES.into_iter().find(|side| bytes_of(*side) == len)
}

/// `[longitude, latitude]`; what follows the corner in the name (`v2.3a`, `.SRTMGL1`) is free.
fn south_west(name: &str) -> Option<[f64; 2]> {
    let name = name.to_ascii_uppercase();
    let latitude = degrees(name.get(0..3)?, 'N', 'S', 90)?;
    let longitude = degrees(name.get(3..7)?, 'E', 'W', 180)?;
    let ends = !name[7..].starts_with(|c: char| c.is_ascii_digit());
    (ends && latitude < 90.0 && longitude < 180.0).then_some([longitude, latitude])
}

fn degrees(text: &str, positive: char, negative: char, limit: u32) -> Option<f64> {
    let (digits, sign) = match text.strip_prefix(positive) {
        Some(digits) => (digits, 1.0),
        None => (text.strip_prefix(negative)?, -1.0),
    };
    let all_digits = digits.bytes().all(|b| b.is_ascii_digit());
    let value: u32 = digits.parse().ok().filter(|v| all_digits && *v <= limit)?;
    Some(sign * f64::from(value))
}

#[cfg(test)]
mod tests {
    use super::super::grid::Grid;
    use super::*;

    fn read_bytes(bytes: &[u8], name: &str) -> Result<Grid> {
        open(Input::memory(bytes.to_vec()), Path::new(name))?.into_grid()
    }

    fn square() -> Vec<u8> {
        let mut bytes = 300i16.to_be_bytes().repeat(1201 * 1201);
        bytes[..2].copy_from_slice(&(-32768i16).to_be_bytes());
        bytes[2..4].copy_from_slice(&(-12i16).to_be_bytes());
        bytes
    }

    #[test]
    fn corners_come_from_the_name() {
        assert_eq!(south_west("N43E007.hgt"), Some([7.0, 43.0]));
        assert_eq!(south_west("s33w071.HGT"), Some([-71.0, -33.0]));
        assert_eq!(south_west("S16E166v2.3a.hgt"), Some([166.0, -16.0]));
        for bad in [
            "alps.hgt",
            "N4E007.hgt",
            "N99E007.hgt",
            "N43E0071.hgt",
            "N+3E007",
            "Né3E007",
            "",
        ] {
            assert_eq!(south_west(bad), None, "{bad}");
        }
    }

    #[test]
    fn samples_are_big_endian_points_from_the_north() {
        let grid = read_bytes(&square(), "N43E007.hgt").unwrap();
        assert!(grid.samples[0].is_nan() && grid.samples[1] == -12.0 && grid.samples[2] == 300.0);
        let georef = grid.georef.unwrap();
        assert_eq!(georef.transform[0], 7.0);
        assert_eq!(georef.transform[3], 44.0);
        assert!((georef.transform[5] + 1.0 / 1200.0).abs() < 1e-15);
        assert!(!georef.pixel_is_area);
    }

    #[test]
    fn wrong_lengths_name_the_right_ones() {
        let message = read_bytes(&[0; 100_001], "N43E007.hgt")
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("100001 bytes") && message.contains("2884802"),
            "{message}"
        );
        assert!(message.contains("25934402"), "{message}");
    }

    #[test]
    fn a_name_without_a_place_is_told_how_to_look() {
        let message = read_bytes(&square(), "alps.hgt").unwrap_err().to_string();
        assert!(message.contains("N43E007.hgt"), "{message}");
    }
}
