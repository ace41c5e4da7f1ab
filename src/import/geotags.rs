//! GeoTIFF's tags: where the raster lies, in what units, and which number is void.
//!
//! Read through the decoder's tag access and judged here (OGC GeoTIFF 1.1, clauses 7 and 8).
//! A raster whose heights or distances are not metres, or which is not north-up, is refused:
//! silently wrong is worse than not at all.
//!
//! - Without a pixel scale or a transformation there is no georeference, whatever the keys say.
//! - Tiepoints of areas are moved by half a pixel, so that the transform is the sample's.

use std::io::{Read, Seek};
use std::path::Path;

use tiff::decoder::Decoder;
use tiff::decoder::ifd::Value;
use tiff::tags::Tag;
use tiff::{TiffError, TiffResult};

use super::geo::{Georef, Unit};
use super::geotiff::damaged;
use super::one_line;
use crate::error::{Error, Result};

const GDAL_METADATA: Tag = Tag::Unknown(42112);
const LONGEST_TEXT: u64 = 1 << 24;

const MODEL_TYPE: u16 = 1024;
const RASTER_TYPE: u16 = 1025;
const GEOGRAPHIC_CRS: u16 = 2048;
const ANGULAR_UNITS: u16 = 2054;
const PROJECTED_CRS: u16 = 3072;
const LINEAR_UNITS: u16 = 3076;
const VERTICAL_CRS: u16 = 4096;
const VERTICAL_UNITS: u16 = 4099;

const METRE: u16 = 9001;
const DEGREE: u16 = 9102;
const PIXEL_IS_POINT: u16 = 2;
/// NGVD29, NAVD88 (US survey feet) and NAVD88 (feet): they need no unit key to be in feet.
const VERTICAL_CRS_IN_FEET: [u16; 3] = [5702, 6360, 8228];

pub(super) fn georef<R: Read + Seek>(
    decoder: &mut Decoder<R>,
    path: &Path,
) -> Result<Option<Georef>> {
    let keys = GeoKeys::read(decoder).map_err(|e| damaged(path, e))?;
    keys.check_units(path)?;
    check_metadata(decoder, path)?;
    let Some(corner) = Corner::read(decoder, path)? else {
        return Ok(None);
    };
    let is_point = keys.get(RASTER_TYPE) == Some(PIXEL_IS_POINT);
    let half = if is_point { 0.0 } else { 0.5 };
    let north_west = [
        corner.x + half * corner.step[0],
        corner.y - half * corner.step[1],
    ];
    let (crs, unit) = keys.crs(path)?;
    let mut georef = Georef::north_up(crs, unit, north_west, corner.step);
    georef.pixel_is_area = !is_point;
    Ok(Some(georef))
}

/// The declared void number (GDAL_NODATA).
pub(super) fn nodata<R: Read + Seek>(decoder: &mut Decoder<R>, path: &Path) -> Result<Option<f64>> {
    let Some(text) = text(decoder, Tag::GdalNodata).map_err(|e| damaged(path, e))? else {
        return Ok(None);
    };
    let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    let value = text.parse().ok();
    if value.is_none() {
        log::warn!(
            "{}: cannot read the nodata value `{}`",
            path.display(),
            one_line(text)
        );
    }
    Ok(value)
}

/// Keys with a number for a value (GeoKeyDirectory).
struct GeoKeys(Vec<(u16, u16)>);

impl GeoKeys {
    fn read<R: Read + Seek>(decoder: &mut Decoder<R>) -> TiffResult<GeoKeys> {
        let directory = match decoder.find_tag(Tag::GeoKeyDirectoryTag)? {
            Some(value) => value.into_u16_vec()?,
            None => Vec::new(),
        };
        let entries = directory.as_chunks::<4>().0.iter().skip(1);
        // Location 0: the value itself. Others point at texts and doubles.
        let numbers = entries.filter(|e| e[1] == 0).map(|e| (e[0], e[3]));
        Ok(GeoKeys(numbers.collect()))
    }

    fn get(&self, key: u16) -> Option<u16> {
        self.0.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
    }

    fn check_units(&self, path: &Path) -> Result<()> {
        let wrong = |key, right| self.get(key).filter(|unit| ![right, 0].contains(unit));
        if let Some(unit) = wrong(VERTICAL_UNITS, METRE) {
            let what = format!("heights are in {}", unit_name(unit));
            return Err(Error::file(path, what, "heights in metres"));
        }
        if let Some(crs) = self
            .get(VERTICAL_CRS)
            .filter(|crs| VERTICAL_CRS_IN_FEET.contains(crs))
        {
            let what = format!("heights are in feet (vertical system EPSG:{crs})");
            return Err(Error::file(path, what, "heights in metres"));
        }
        if let Some(unit) = wrong(LINEAR_UNITS, METRE).filter(|_| self.is_projected()) {
            let what = format!("map coordinates are in {}", unit_name(unit));
            return Err(Error::file(path, what, "map coordinates in metres"));
        }
        if let Some(unit) = wrong(ANGULAR_UNITS, DEGREE).filter(|_| !self.is_projected()) {
            let what = format!("angles are in the unit EPSG:{unit}");
            return Err(Error::file(path, what, "degrees"));
        }
        Ok(())
    }

    fn is_projected(&self) -> bool {
        match self.get(MODEL_TYPE) {
            Some(model @ 1..=3) => model == 1,
            _ => self.get(PROJECTED_CRS).is_some(),
        }
    }

    fn crs(&self, path: &Path) -> Result<(Option<String>, Unit)> {
        if self.get(MODEL_TYPE) == Some(3) {
            return Err(Error::file(
                path,
                "the coordinates are geocentric",
                "projected or geographic ones",
            ));
        }
        // 0 is 'undefined', 32767 'user-defined'.
        let epsg = |key| self.get(key).filter(|code| ![0, 32767].contains(code));
        let name = |code: u16| format!("EPSG:{code}");
        let geographic = self.get(MODEL_TYPE) == Some(2) || self.get(GEOGRAPHIC_CRS).is_some();
        Ok(if self.is_projected() {
            (epsg(PROJECTED_CRS).map(name), Unit::Metre)
        } else if geographic {
            (epsg(GEOGRAPHIC_CRS).map(name), Unit::Degree)
        } else {
            (None, Unit::Unsaid)
        })
    }
}

fn unit_name(unit: u16) -> String {
    match unit {
        9002 => "feet".to_owned(),
        9003 => "US survey feet".to_owned(),
        32767 => "a unit of the writer's own".to_owned(),
        other => format!("the unit EPSG:{other}"),
    }
}

/// The map position of pixel (0, 0), which is a sample or the corner of an area.
struct Corner {
    x: f64,
    y: f64,
    step: [f64; 2],
}

impl Corner {
    fn read<R: Read + Seek>(decoder: &mut Decoder<R>, path: &Path) -> Result<Option<Corner>> {
        let mut doubles = |tag| match decoder.find_tag(tag) {
            Ok(Some(value)) => value.into_f64_vec().map_err(|e| damaged(path, e)),
            Ok(None) => Ok(Vec::new()),
            Err(error) => Err(damaged(path, error)),
        };
        let scale = doubles(Tag::ModelPixelScaleTag)?;
        let tiepoint = doubles(Tag::ModelTiepointTag)?;
        let matrix = doubles(Tag::ModelTransformationTag)?;
        let corner = if let [a, b, _, x, e, f, _, y, ..] = matrix[..] {
            check_unrotated(path, a, b, e, f)?;
            Corner {
                x,
                y,
                step: [a, -f],
            }
        } else if let ([dx, dy, ..], [i, j, _, x, y, ..]) = (&scale[..], &tiepoint[..]) {
            Corner {
                x: x - i * dx,
                y: y + j * dy,
                step: [*dx, *dy],
            }
        } else if tiepoint.len() > 6 {
            return Err(Error::file(
                path,
                "located by control points only",
                "a north-up raster with a pixel scale",
            ));
        } else {
            return Ok(None);
        };
        corner.check(path)?;
        Ok(Some(corner))
    }

    fn check(&self, path: &Path) -> Result<()> {
        let [dx, dy] = self.step;
        let what =
            if ![self.x, self.y, dx, dy].iter().all(|v| v.is_finite()) || dx == 0.0 || dy == 0.0 {
                "its position is no number"
            } else if dy < 0.0 {
                "the raster is south-up"
            } else if dx < 0.0 {
                "the raster is mirrored"
            } else {
                return Ok(());
            };
        Err(Error::file(path, what, "a north-up raster"))
    }
}

fn check_unrotated(path: &Path, a: f64, b: f64, e: f64, f: f64) -> Result<()> {
    let skew = b.abs().max(e.abs());
    if skew > 1e-9 * a.abs().min(f.abs()) {
        return Err(Error::file(
            path,
            "the raster is rotated or skewed",
            "a north-up raster",
        ));
    }
    Ok(())
}

/// GDAL writes the band's unit, scale and offset into a text of its own.
fn check_metadata<R: Read + Seek>(decoder: &mut Decoder<R>, path: &Path) -> Result<()> {
    // An odd encoding of free text is no reason to refuse the heights.
    let Ok(Some(xml)) = text(decoder, GDAL_METADATA) else {
        return Ok(());
    };
    let unit = item(&xml, "unittype").unwrap_or_default();
    if !["", "m", "metre", "metres", "meter", "meters"]
        .contains(&unit.to_ascii_lowercase().as_str())
    {
        let what = format!("heights are in `{}`", one_line(unit));
        return Err(Error::file(path, what, "heights in metres"));
    }
    for (role, neutral) in [("scale", 1.0), ("offset", 0.0)] {
        let value = item(&xml, role).unwrap_or_default();
        if !value.is_empty() && value.parse() != Ok(neutral) {
            let what = format!("the file asks for a height {role} of {}", one_line(value));
            return Err(Error::file(path, what, "plain metres"));
        }
    }
    Ok(())
}

/// The text of the metadata item with that role.
fn item<'a>(xml: &'a str, role: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("role=\"{role}\""))?;
    let (_, rest) = rest.split_once('>')?;
    rest.split('<').next().map(str::trim)
}

fn text<R: Read + Seek>(decoder: &mut Decoder<R>, tag: Tag) -> TiffResult<Option<String>> {
    // The decoder would print a line of its own on a damaged, gigantic length.
    match decoder.image_ifd().find_entry(tag) {
        Some(entry) if entry.count() > LONGEST_TEXT => return Err(TiffError::LimitsExceeded),
        None => return Ok(None),
        Some(_) => {}
    }
    let value = decoder.find_tag(tag)?;
    value.map(Value::into_string).transpose()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::fixtures::Tiff;
    use super::*;

    fn georef_of(file: &Tiff) -> Result<Option<Georef>> {
        let mut decoder = Decoder::new(Cursor::new(file.bytes())).unwrap();
        georef(&mut decoder, Path::new("x.tif"))
    }

    fn refusal(file: Tiff) -> String {
        georef_of(&file).unwrap_err().to_string()
    }

    fn placed() -> Tiff {
        Tiff::int16(3, 2, &[0; 6])
            .doubles(33550, &[10.0, 20.0, 0.0])
            .doubles(33922, &[0.0, 0.0, 0.0, 500.0, 900.0, 0.0])
    }

    #[test]
    fn areas_are_moved_by_half_a_pixel_and_points_are_not() {
        let area = georef_of(&placed().keys(&[(1024, 1), (1025, 1), (3072, 32632)]))
            .unwrap()
            .unwrap();
        assert_eq!(area.transform, [505.0, 10.0, 0.0, 890.0, 0.0, -20.0]);
        assert_eq!(area.crs.as_deref(), Some("EPSG:32632"));
        assert!(area.pixel_is_area && area.unit == Unit::Metre);
        let point = georef_of(&placed().keys(&[(1024, 2), (1025, 2), (2048, 4326)]))
            .unwrap()
            .unwrap();
        assert_eq!(point.transform, [500.0, 10.0, 0.0, 900.0, 0.0, -20.0]);
        assert!(!point.pixel_is_area && point.unit == Unit::Degree);
    }

    #[test]
    fn a_matrix_does_as_well() {
        let matrix = [10.0, 0.0, 0.0, 500.0, 0.0, -20.0, 0.0, 900.0];
        let file = Tiff::int16(3, 2, &[0; 6]).doubles(34264, &[&matrix[..], &[0.0; 8]].concat());
        let found = georef_of(&file).unwrap().unwrap();
        assert_eq!(found.transform, [505.0, 10.0, 0.0, 890.0, 0.0, -20.0]);
        assert_eq!(found.unit, Unit::Unsaid);
    }

    #[test]
    fn feet_are_refused_wherever_they_are_declared() {
        assert!(refusal(placed().keys(&[(1024, 1), (4099, 9003)])).contains("US survey feet"));
        assert!(refusal(placed().keys(&[(1024, 1), (4096, 6360)])).contains("EPSG:6360"));
        assert!(
            refusal(placed().keys(&[(1024, 1), (3076, 9002)]))
                .contains("map coordinates are in feet")
        );
        let unit = "<GDALMetadata><Item name=\"UNITTYPE\" sample=\"0\" role=\"unittype\">ft</Item></GDALMetadata>";
        assert!(refusal(placed().text(42112, unit)).contains("`ft`"));
        let scale = "<Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.1</Item>";
        assert!(refusal(placed().text(42112, scale)).contains("scale of 0.1"));
        let metre = "<Item name=\"UNITTYPE\" sample=\"0\" role=\"unittype\">m</Item>";
        assert!(georef_of(&placed().text(42112, metre)).is_ok());
    }

    #[test]
    fn rasters_that_are_not_north_up_are_refused() {
        let matrix = |a: f64, b: f64, e: f64, f: f64| {
            Tiff::int16(3, 2, &[0; 6]).doubles(
                34264,
                &[&[a, b, 0.0, 0.0, e, f, 0.0, 0.0][..], &[0.0; 8]].concat(),
            )
        };
        assert!(refusal(matrix(26.0, 15.0, 15.0, -26.0)).contains("rotated"));
        assert!(refusal(matrix(26.0, 0.0, 0.0, 26.0)).contains("south-up"));
        assert!(refusal(matrix(-26.0, 0.0, 0.0, -26.0)).contains("mirrored"));
        assert!(refusal(matrix(f64::NAN, 0.0, 0.0, -26.0)).contains("no number"));
    }

    #[test]
    fn a_plain_tiff_has_no_georeference_and_nodata_is_text() {
        assert_eq!(georef_of(&Tiff::int16(3, 2, &[0; 6])).unwrap(), None);
        let nodata_of = |text: &str| {
            let file = Tiff::int16(3, 2, &[0; 6]).text(42113, text);
            let mut decoder = Decoder::new(Cursor::new(file.bytes())).unwrap();
            nodata(&mut decoder, Path::new("x.tif")).unwrap()
        };
        assert_eq!(nodata_of("-32767"), Some(-32767.0));
        assert_eq!(nodata_of("-3.4028229999999999e+038 "), Some(-3.402823e38));
        assert_eq!(nodata_of("0"), Some(0.0));
        assert!(nodata_of("nan").unwrap().is_nan());
        assert_eq!(nodata_of("none"), None);
    }
}
