//! What the user knows better than the file.
//!
//! Every field is `None` (or the plain default) where the file's word counts. The flags of the
//! command line are named in the messages, since that is where these come from.

use std::path::PathBuf;
use std::str::FromStr;

use super::store::Shelf;
use super::units;
use crate::error::{Error, Result};

/// How a source is to be read where its files do not say, or say it wrongly.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Metres between samples, `[x (east), z (south)]`.
    pub spacing_m: Option<[f64; 2]>,
    /// Metres a unit of the file's heights, whatever unit the file names.
    pub height_scale: Option<f64>,
    /// Metres added to every height.
    pub height_offset_m: Option<f64>,
    /// Metres a height unit of the result.
    pub height_step_m: Option<f64>,
    /// Heights of up to so many units on either side of zero can be used, no more than
    /// [`MAX_UNITS`](super::MAX_UNITS), which it is unless said.
    pub most_units: Option<i32>,
    /// This number in the files is no height.
    pub nodata: Option<f64>,
    /// How pictures hold their heights.
    pub encoding: Option<Encoding>,
    /// Which band holds the heights, counted from 1.
    pub band: Option<u16>,
    /// Width and height of a file without a header.
    pub raw_size: Option<[u32; 2]>,
    /// Byte order of a file without a header; little-endian unless said.
    pub byte_order: Option<ByteOrder>,
    /// Keep only these samples.
    pub crop: Option<Crop>,
    pub voids: VoidFill,
    /// Metres between the samples of the square grid to make.
    pub resample_m: Option<f64>,
    /// Where heights lie that are too many for the memory; the system's folder for temporary
    /// files unless said.
    pub scratch: Option<PathBuf>,
    /// Up to so many samples stay in memory; [`IN_MEMORY`] unless said.
    pub in_memory: Option<u64>,
}

/// Sources of more samples lie on disk while they are compiled.
pub const IN_MEMORY: u64 = 1 << 24;

/// How a picture's colours are heights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The grey value is the height.
    Grey,
    /// `R * 256 + G + B / 256 - 32768` metres (Mapzen, Tilezen).
    Terrarium,
    /// `(R * 65536 + G * 256 + B) / 10 - 10000` metres (Mapbox Terrain-RGB).
    Mapbox,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

/// Where samples without a height get one from, and whether there is ground then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VoidFill {
    /// A smooth surface from rim to rim.
    #[default]
    Smooth,
    /// The nearest sample with a height.
    Nearest,
    /// A smooth surface for the meshes to lie on, but no ground.
    Keep,
}

/// A rectangle of samples, counted from the north-west.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crop {
    pub x: u32,
    pub z: u32,
    pub width: u32,
    pub height: u32,
}

impl ImportOptions {
    pub(super) fn shelf(&self) -> Shelf {
        Shelf {
            folder: self.scratch.clone().unwrap_or_else(std::env::temp_dir),
            in_memory: self.in_memory.unwrap_or(IN_MEMORY),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let [x, z] = self.spacing_m.unwrap_or([1.0, 1.0]);
        let named = [
            ("--spacing", x),
            ("--spacing", z),
            ("--height-scale", self.height_scale.unwrap_or(1.0)),
            ("--height-step", self.height_step_m.unwrap_or(1.0)),
            ("--resample", self.resample_m.unwrap_or(1.0)),
        ];
        if let Some((name, v)) = named.iter().find(|(_, v)| !(1e-9..=1e9).contains(v)) {
            return Err(Error::Usage(format!(
                "{name} {v:?}: expected a number from 1e-9 to 1e9"
            )));
        }
        if self.voids == VoidFill::Keep && self.resample_m.is_some() {
            return Err(Error::Usage(
                "--resample makes new samples and keeps no voids: expected --voids fill or nearest"
                    .into(),
            ));
        }
        let offset = self.height_offset_m.unwrap_or(0.0);
        if !(-1e9..=1e9).contains(&offset) {
            return Err(Error::Usage(format!(
                "--height-offset {offset:?}: expected a number from -1e9 to 1e9"
            )));
        }
        Ok(())
    }
}

impl FromStr for Encoding {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "grey" | "gray" => Ok(Encoding::Grey),
            "terrarium" => Ok(Encoding::Terrarium),
            "mapbox" => Ok(Encoding::Mapbox),
            _ => Err("expected grey, terrarium or mapbox".into()),
        }
    }
}

impl FromStr for ByteOrder {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "le" => Ok(ByteOrder::Little),
            "be" => Ok(ByteOrder::Big),
            _ => Err("expected le or be".into()),
        }
    }
}

impl FromStr for VoidFill {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "fill" => Ok(VoidFill::Smooth),
            "nearest" => Ok(VoidFill::Nearest),
            "keep" => Ok(VoidFill::Keep),
            _ => Err("expected fill, nearest or keep".into()),
        }
    }
}

impl FromStr for Crop {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let numbers: Vec<u32> = text
            .split(',')
            .map_while(|part| part.trim().parse().ok())
            .collect();
        match numbers[..] {
            [x, z, width, height] if text.split(',').count() == 4 => Ok(Crop {
                x,
                z,
                width,
                height,
            }),
            _ => Err("expected X,Z,WIDTH,HEIGHT in samples, such as 0,0,513,513".into()),
        }
    }
}

/// Metres a unit, from a number or from the name of a unit such as `ft`.
pub fn height_scale(text: &str) -> std::result::Result<f64, String> {
    let metres = text.trim().parse().ok().or_else(|| units::by_name(text));
    metres
        .filter(|m: &f64| m.is_finite() && *m > 0.0)
        .ok_or_else(|| "expected metres a unit, or a unit: m, ft, us-ft, dm, cm, mm, km".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        let bad = |options: ImportOptions| options.check().is_err();
        assert!(bad(ImportOptions {
            spacing_m: Some([1.0, f64::NAN]),
            ..Default::default()
        }));
        assert!(bad(ImportOptions {
            height_scale: Some(0.0),
            ..Default::default()
        }));
        assert!(bad(ImportOptions {
            resample_m: Some(-1.0),
            ..Default::default()
        }));
        assert!(bad(ImportOptions {
            height_offset_m: Some(f64::INFINITY),
            ..Default::default()
        }));
        assert!(!bad(ImportOptions::default()));
    }

    #[test]
    fn words_are_read_and_others_say_what_was_expected() {
        assert_eq!("terrarium".parse(), Ok(Encoding::Terrarium));
        assert_eq!("be".parse(), Ok(ByteOrder::Big));
        assert_eq!("nearest".parse(), Ok(VoidFill::Nearest));
        assert!("png".parse::<Encoding>().unwrap_err().contains("mapbox"));
        let crop: Crop = "1,2, 30,40".parse().unwrap();
        assert_eq!((crop.x, crop.z, crop.width, crop.height), (1, 2, 30, 40));
        for bad in ["1,2,3", "1,2,3,4,5", "1,2,3,x", "-1,2,3,4", ""] {
            assert!(bad.parse::<Crop>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_scale_is_a_number_or_a_unit() {
        assert_eq!(height_scale("0.5"), Ok(0.5));
        assert_eq!(height_scale("ft"), Ok(0.3048));
        assert_eq!(height_scale("us-ft"), Ok(1200.0 / 3937.0));
        for bad in ["0", "-1", "nan", "inf", "leagues"] {
            assert!(height_scale(bad).is_err(), "{bad}");
        }
    }
}
