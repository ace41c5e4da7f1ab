//! GeoTIFF's keys: which coordinate system a raster is in, and what that counts in.
//!
//! OGC GeoTIFF 1.1, clause 7. A key's value is a number in the directory itself, or lies among the
//! file's doubles or in its text. A system is a code of the EPSG registry, or the writer's own, of
//! which the keys are kept so that an export can say the same.
//!
//! - A unit that the file names goes before that of the code.
//! - Keys that cannot be read are none.

use std::io::{Read, Seek};
use std::path::Path;

use tiff::TiffResult;
use tiff::decoder::Decoder;
use tiff::tags::Tag;

use super::crs::{self, Projection, Vertical};
use super::geo::{Georef, Unit};
use super::geotags::text;
use super::{one_line, units};
use crate::error::{Error, Result};
use crate::world::source::GeoKeys;

const MODEL_TYPE: u16 = 1024;
const RASTER_TYPE: u16 = 1025;
const CITATION: u16 = 1026;
const GEOGRAPHIC_CRS: u16 = 2048;
const ANGULAR_UNITS: u16 = 2054;
const SEMI_MAJOR_AXIS: u16 = 2057;
const INVERSE_FLATTENING: u16 = 2059;
const PROJECTED_CRS: u16 = 3072;
const PROJECTED_CITATION: u16 = 3073;
const METHOD: u16 = 3075;
const LINEAR_UNITS: u16 = 3076;
const LINEAR_UNIT_SIZE: u16 = 3077;
const FIRST_VERTICAL: u16 = 4096;
const VERTICAL_CRS: u16 = 4096;
const VERTICAL_UNITS: u16 = 4099;

const DEGREE: u16 = 9102;
const PIXEL_IS_POINT: u16 = 2;
const USER_DEFINED: u16 = 32767;

/// Methods of projection: their numbers, PROJ's names where it has one, and what people call them.
const METHODS: [(u16, &str, &str); 17] = [
    (1, "tmerc", "transverse Mercator"),
    (3, "", "oblique Mercator"),
    (7, "merc", "Mercator"),
    (8, "lcc", "Lambert conformal conic"),
    (9, "lcc", "Lambert conformal conic"),
    (10, "laea", "Lambert azimuthal equal-area"),
    (11, "aea", "Albers equal-area"),
    (12, "aeqd", "azimuthal equidistant"),
    (13, "eqdc", "equidistant conic"),
    (14, "stere", "stereographic"),
    (15, "", "polar stereographic"),
    (16, "sterea", "oblique stereographic"),
    (17, "eqc", "equirectangular"),
    (18, "cass", "Cassini-Soldner"),
    (20, "mill", "Miller cylindrical"),
    (22, "poly", "polyconic"),
    (24, "sinu", "sinusoidal"),
];
/// Parameters of projections: PROJ's names, and the keys that may have them. The last two are
/// lengths in units of the map.
const PARAMETERS: [(&str, &[u16]); 7] = [
    ("lat_1", &[3078]),
    ("lat_2", &[3079]),
    ("lat_0", &[3081, 3085, 3089]),
    ("lon_0", &[3080, 3084, 3088, 3095]),
    ("k_0", &[3092, 3093]),
    ("x_0", &[3082, 3086, 3090]),
    ("y_0", &[3083, 3087, 3091]),
];

/// Where the values of keys are that are not in the directory.
const IN_DOUBLES: u16 = 34736;
const IN_TEXT: u16 = 34737;

pub(super) struct Keys(GeoKeys);

impl Keys {
    pub fn read<R: Read + Seek>(decoder: &mut Decoder<R>) -> TiffResult<Keys> {
        let directory = match decoder.find_tag(Tag::GeoKeyDirectoryTag)? {
            Some(value) => value.into_u16_vec()?,
            None => Vec::new(),
        };
        let doubles = decoder.find_tag(Tag::GeoDoubleParamsTag)?;
        let doubles = doubles.map(|value| value.into_f64_vec()).transpose()?;
        let text = text(decoder, Tag::GeoAsciiParamsTag).ok().flatten();
        Ok(Keys(GeoKeys {
            // The first four say the version and how many keys there are.
            directory: directory
                .as_chunks::<4>()
                .0
                .iter()
                .skip(1)
                .copied()
                .collect(),
            doubles: doubles.unwrap_or_default(),
            text: text.unwrap_or_default(),
        }))
    }

    fn entry(&self, key: u16, place: u16) -> Option<[u16; 2]> {
        let mut entries = self.0.directory.iter();
        let entry = entries.find(|entry| entry[0] == key && entry[1] == place)?;
        Some([entry[2], entry[3]])
    }

    fn get(&self, key: u16) -> Option<u16> {
        self.entry(key, 0).map(|[_, value]| value)
    }

    fn double(&self, key: u16) -> Option<f64> {
        let [_, index] = self.entry(key, IN_DOUBLES)?;
        self.0.doubles.get(usize::from(index)).copied()
    }

    fn words(&self, key: u16) -> Option<String> {
        let [count, index] = self.entry(key, IN_TEXT)?.map(usize::from);
        let characters = self.0.text.chars().skip(index).take(count);
        let words = characters.take_while(|c| *c != '|').collect::<String>();
        Some(one_line(words)).filter(|words| !words.is_empty())
    }

    /// Metres a unit of height, where the keys say so.
    pub fn height_unit_m(&self, path: &Path) -> Result<Option<f64>> {
        let expected = "metres or feet, or --height-scale";
        if let Some(unit) = self.get(VERTICAL_UNITS).filter(|unit| *unit != 0) {
            let what = || format!("heights are in {}", units::name_of(unit));
            let metres = units::by_code(unit).map(Some);
            return metres.ok_or_else(|| Error::file(path, what(), expected));
        }
        let code = self.get(VERTICAL_CRS);
        let Some(code) = code.filter(|code| ![0, USER_DEFINED].contains(code)) else {
            return Ok(None);
        };
        match Vertical::of_code(code) {
            Vertical::Metres => Ok(None),
            Vertical::Unit(metres) => Ok(Some(metres)),
            Vertical::Unknown => {
                let what = format!(
                    "heights are in the vertical system EPSG:{code}, whose unit is not known"
                );
                Err(Error::file(path, what, expected))
            }
        }
    }

    /// What map coordinates are counted in.
    fn map_unit(&self) -> Unit {
        let said = |key| self.get(key).filter(|unit| *unit != 0);
        if self.is_projected() {
            match (said(LINEAR_UNITS), self.code(), self.own()) {
                (Some(USER_DEFINED), ..) => {
                    let size = self.double(LINEAR_UNIT_SIZE).filter(|size| *size > 0.0);
                    size.map_or(Unit::Unknown(USER_DEFINED), Unit::Metres)
                }
                (Some(unit), ..) => units::by_code(unit).map_or(Unit::Unknown(unit), Unit::Metres),
                (None, Some(code), _) => crs::map_unit(code),
                (None, None, true) => Unit::Unknown(USER_DEFINED),
                (None, None, false) => Unit::Metres(1.0),
            }
        } else if self.is_geographic() {
            match (said(ANGULAR_UNITS), self.code()) {
                (Some(DEGREE), _) | (None, None) => Unit::Degree,
                (Some(unit), _) => Unit::Unknown(unit),
                (None, Some(code)) => crs::angle_unit(code),
            }
        } else {
            Unit::Unsaid
        }
    }

    fn is_geographic(&self) -> bool {
        self.get(MODEL_TYPE) == Some(2) || self.get(GEOGRAPHIC_CRS).is_some()
    }

    fn is_projected(&self) -> bool {
        match self.get(MODEL_TYPE) {
            Some(model @ 1..=3) => model == 1,
            _ => self.get(PROJECTED_CRS).is_some(),
        }
    }

    fn crs_key(&self) -> u16 {
        match self.is_projected() {
            true => PROJECTED_CRS,
            false => GEOGRAPHIC_CRS,
        }
    }

    fn code(&self) -> Option<u16> {
        // 0 is 'undefined'.
        let code = self.get(self.crs_key());
        code.filter(|code| ![0, USER_DEFINED].contains(code))
    }

    /// The writer's own system.
    fn own(&self) -> bool {
        self.get(self.crs_key()) == Some(USER_DEFINED)
    }

    /// A code, or what the writer and others call a system of its own.
    fn crs(&self) -> Option<String> {
        if let Some(code) = self.code() {
            return Some(format!("EPSG:{code}"));
        }
        let words = self.words(PROJECTED_CITATION).or(self.words(CITATION));
        let method = self.method().map(|(_, name)| name);
        let own = match (words, method) {
            (Some(words), Some(method)) => format!("{words} ({method}, user-defined)"),
            (Some(words), None) => format!("{words} (user-defined)"),
            (None, Some(method)) => format!("{method} (user-defined)"),
            (None, None) => "user-defined".to_owned(),
        };
        self.own().then_some(own)
    }

    fn method(&self) -> Option<(&'static str, &'static str)> {
        let method = self.get(METHOD)?;
        let found = METHODS.iter().find(|(number, ..)| *number == method);
        found.map(|(_, proj, name)| (*proj, *name))
    }

    /// How the map is made of the globe, where its unit is known.
    fn projection(&self, unit: Unit) -> Option<Projection> {
        let Unit::Metres(unit_m) = unit else {
            return None;
        };
        if let Some(code) = self.code() {
            // In another unit than the code's, coordinates would mean other places.
            let projection = Projection::of_code(code)?;
            let same = |own: f64| (own - unit_m).abs() <= 1e-5 * unit_m;
            return projection.unit_m().is_some_and(same).then_some(projection);
        }
        let (method, _) = self.method().filter(|(proj, _)| !proj.is_empty())?;
        let mut text = format!("+proj={method} +to_meter={unit_m}");
        for (name, keys) in PARAMETERS {
            let value = keys.iter().find_map(|key| self.double(*key));
            let is_length = ["x_0", "y_0"].contains(&name);
            let value = value.map(|value| if is_length { value * unit_m } else { value });
            text.extend(value.map(|value| format!(" +{name}={value}")));
        }
        text += &match (
            self.double(SEMI_MAJOR_AXIS),
            self.double(INVERSE_FLATTENING),
        ) {
            (Some(a), Some(0.0)) => format!(" +a={a} +b={a}"),
            (Some(a), Some(rf)) => format!(" +a={a} +rf={rf}"),
            _ => " +ellps=WGS84".to_owned(),
        };
        Projection::new(text)
    }

    /// Where a raster lies: its first sample or the corner of its first area, the map units from
    /// row to row and column to column, and how many rows there are.
    pub fn georef(
        &self,
        path: &Path,
        [x, y]: [f64; 2],
        [dx, dy]: [f64; 2],
        rows: u32,
    ) -> Result<Georef> {
        if self.get(MODEL_TYPE) == Some(3) {
            let what = "the coordinates are geocentric";
            return Err(Error::file(path, what, "projected or geographic ones"));
        }
        let is_point = self.get(RASTER_TYPE) == Some(PIXEL_IS_POINT);
        let half = if is_point { 0.0 } else { 0.5 };
        let first = y - half * dy;
        let last = first - f64::from(rows - 1) * dy;
        let north_west = [x + half * dx, first.max(last)];
        let unit = self.map_unit();
        let mut georef = Georef::north_up(self.crs(), unit, north_west, [dx, dy.abs()]);
        georef.pixel_is_area = !is_point;
        georef.projection = self.projection(unit);
        georef.keys = self.kept();
        Ok(georef)
    }

    /// What an export repeats of a system of the writer's own: it decides itself what a pixel is
    /// and what heights are in. None where something of it is no number.
    fn kept(&self) -> Option<GeoKeys> {
        let mut keys = self.0.clone();
        keys.directory
            .retain(|[key, ..]| *key != RASTER_TYPE && *key < FIRST_VERTICAL);
        let finite = keys.doubles.iter().all(|number| number.is_finite());
        (self.own() && finite && keys.is_small()).then_some(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(numbers: &[(u16, u16)], doubles: &[(u16, f64)], words: &str) -> Keys {
        let mut directory: Vec<[u16; 4]> = numbers.iter().map(|(k, v)| [*k, 0, 1, *v]).collect();
        for (index, (key, _)) in (0..).zip(doubles) {
            directory.push([*key, IN_DOUBLES, 1, index]);
        }
        directory.push([CITATION, IN_TEXT, words.len() as u16, 0]);
        Keys(GeoKeys {
            directory,
            doubles: doubles.iter().map(|(_, value)| *value).collect(),
            text: words.to_owned(),
        })
    }

    fn place(keys: &Keys) -> Georef {
        keys.georef(Path::new("x.tif"), [0.0, 0.0], [30.0, 30.0], 2)
            .unwrap()
    }

    #[test]
    fn units_come_from_the_file_and_else_from_the_code() {
        let unit = |numbers: &[(u16, u16)]| place(&keys(numbers, &[], "")).unit;
        assert!(matches!(unit(&[(1024, 1), (3072, 2263)]), Unit::Metres(m) if m < 0.305));
        assert_eq!(
            unit(&[(1024, 1), (3072, 2263), (3076, 9001)]),
            Unit::Metres(1.0)
        );
        assert_eq!(unit(&[(1024, 1), (3072, 1)]), Unit::OfUnknownSystem(1));
        assert_eq!(unit(&[(1024, 1), (3072, 32767)]), Unit::Unknown(32767));
        assert_eq!(unit(&[(1024, 2), (2048, 4807)]), Unit::Unknown(9105));
        assert_eq!(unit(&[(1024, 2), (2048, 4326)]), Unit::Degree);
        let own = keys(
            &[(1024, 1), (3072, 32767), (3076, 32767)],
            &[(3077, 2.5)],
            "",
        );
        assert_eq!(place(&own).unit, Unit::Metres(2.5));
    }

    #[test]
    fn a_vertical_system_says_its_unit_or_is_refused() {
        let unit = |code| keys(&[(4096, code)], &[], "").height_unit_m(Path::new("x.tif"));
        assert!((unit(6360).unwrap().unwrap() - 1200.0 / 3937.0).abs() < 1e-12);
        assert_eq!(unit(5703).unwrap(), None);
        assert_eq!(unit(32767).unwrap(), None);
        let message = unit(12).unwrap_err().to_string();
        assert!(
            message.contains("EPSG:12") && message.contains("--height-scale"),
            "{message}"
        );
    }

    #[test]
    fn a_system_of_ones_own_is_named_followed_and_kept() {
        let numbers = [
            (1024, 1),
            (1025, 1),
            (3072, 32767),
            (3075, 8),
            (3076, 9001),
            (4099, 9001),
        ];
        let doubles = [(3078, 43.0), (3079, 62.0), (3084, 10.0), (3085, 30.0)];
        let georef = place(&keys(&numbers, &doubles, "Europe|ED50|"));
        let name = "Europe (Lambert conformal conic, user-defined)";
        assert_eq!(georef.crs.as_deref(), Some(name));
        let [x, z] = georef
            .projection
            .unwrap()
            .scale_m([0.0, 2_500_000.0])
            .unwrap();
        // Between its parallels a map is smaller than the ground, by the same in all directions.
        assert!(
            (x - z).abs() < 1e-4 && (1.005..1.05).contains(&x),
            "{x} {z}"
        );
        let kept = georef.keys.unwrap();
        let has = |key| kept.directory.iter().any(|[other, ..]| *other == key);
        assert!(has(3084) && has(CITATION) && !has(1025) && !has(4099));
        assert_eq!(
            place(&keys(&[(1024, 1), (3072, 32632)], &[], "")).keys,
            None
        );
    }
}
