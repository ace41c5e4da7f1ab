//! GeoTIFF's tags: where the raster lies, in what units, and which number is void.
//!
//! Read through the decoder's tag access and judged here (OGC GeoTIFF 1.1, clause 8); what its keys
//! say of the coordinate system is in `geokeys`, what GDAL adds in a text of its own in `gdal`. A
//! raster that is rotated or mirrored is refused: silently wrong is worse than not at all.
//!
//! - Without a pixel scale or a transformation there is no georeference, whatever the keys say.
//! - Tiepoints of areas are moved by half a pixel, so that the transform is the sample's.
//! - The transform is north-up; `south_up` tells that the rows are to be turned around for it.

use std::io::{Read, Seek};
use std::path::Path;

use tiff::decoder::Decoder;
use tiff::decoder::ifd::Value;
use tiff::tags::Tag;
use tiff::{TiffError, TiffResult};

use super::gdal;
use super::geo::Georef;
use super::geokeys::Keys;
use super::geotiff::damaged;
use super::grid::Measure;
use super::one_line;
use super::options::ImportOptions;
use crate::error::{Error, Result};

const GDAL_METADATA: Tag = Tag::Unknown(42112);
const LONGEST_TEXT: u64 = 1 << 24;

/// What the tags say of a raster.
pub(super) struct Tags {
    pub georef: Option<Georef>,
    /// The first row is the southernmost.
    pub south_up: bool,
    pub measure: Measure,
    pub nodata: Option<f64>,
}

impl Tags {
    /// `band` counts from 0; `rows` is the raster's height.
    pub fn read<R: Read + Seek>(
        decoder: &mut Decoder<R>,
        path: &Path,
        band: u16,
        rows: u32,
        options: &ImportOptions,
    ) -> Result<Tags> {
        let keys = Keys::read(decoder).map_err(|e| damaged(path, e))?;
        // An odd encoding of free text is no reason to refuse the heights.
        let xml = text(decoder, GDAL_METADATA).ok().flatten();
        let facts = gdal::facts(xml.as_deref().unwrap_or_default(), band);
        let mut measure = facts.measure(path)?;
        // What the user says goes before any unit, known or not.
        if options.height_scale.is_none() {
            let unit_m = gdal::one_unit(path, facts.unit_m(path)?, keys.height_unit_m(path)?)?;
            measure.unit_m = unit_m;
        }
        let corner = Corner::read(decoder, path)?;
        Ok(Tags {
            south_up: corner.as_ref().is_some_and(|c| c.step[1] < 0.0),
            georef: (corner.map(|c| keys.georef(path, [c.x, c.y], c.step, rows))).transpose()?,
            measure,
            nodata: nodata(decoder, path)?,
        })
    }
}

/// The declared void number (GDAL_NODATA).
fn nodata<R: Read + Seek>(decoder: &mut Decoder<R>, path: &Path) -> Result<Option<f64>> {
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

/// The map position of pixel (0, 0), which is a sample or the corner of an area.
struct Corner {
    x: f64,
    y: f64,
    /// To the east and to the south a pixel; to the south below 0 where rows go north.
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
            } else if dx < 0.0 {
                "the raster is mirrored"
            } else {
                return Ok(());
            };
        Err(Error::file(path, what, "a raster with north up"))
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

pub(super) fn text<R: Read + Seek>(
    decoder: &mut Decoder<R>,
    tag: Tag,
) -> TiffResult<Option<String>> {
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
    use super::super::geo::Unit;
    use super::*;

    fn tags_of(file: &Tiff, options: &ImportOptions) -> Result<Tags> {
        let mut decoder = Decoder::new(Cursor::new(file.bytes())).unwrap();
        Tags::read(&mut decoder, Path::new("x.tif"), 0, 2, options)
    }

    fn georef_of(file: &Tiff) -> Result<Option<Georef>> {
        tags_of(file, &ImportOptions::default()).map(|tags| tags.georef)
    }

    fn unit_of(file: Tiff) -> Option<f64> {
        let tags = tags_of(&file, &ImportOptions::default()).unwrap();
        tags.measure.unit_m
    }

    fn refusal(file: Tiff) -> String {
        let refused = tags_of(&file, &ImportOptions::default());
        refused.err().unwrap().to_string()
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
        assert!(area.pixel_is_area && area.unit == Unit::Metres(1.0));
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
    fn feet_are_known_wherever_they_are_declared() {
        let us_foot = Some(1200.0 / 3937.0);
        assert_eq!(unit_of(placed().keys(&[(1024, 1), (4099, 9003)])), us_foot);
        assert_eq!(unit_of(placed().keys(&[(1024, 1), (4096, 6360)])), us_foot);
        assert_eq!(
            unit_of(placed().keys(&[(1024, 1), (4099, 9001)])),
            Some(1.0)
        );
        assert_eq!(unit_of(placed()), None);
        let map = georef_of(&placed().keys(&[(1024, 1), (3076, 9002)]));
        assert_eq!(map.unwrap().unwrap().unit, Unit::Metres(0.3048));
        let item =
            |text: &str| format!("<Item name=\"U\" sample=\"0\" role=\"unittype\">{text}</Item>");
        assert_eq!(unit_of(placed().text(42112, &item("ft"))), Some(0.3048));
        let both = placed().keys(&[(1024, 1), (4099, 9001)]);
        assert!(refusal(both.text(42112, &item("ft"))).contains("--height-scale"));
    }

    #[test]
    fn unknown_units_are_refused_unless_the_user_knows() {
        let odd = || placed().keys(&[(1024, 1), (4099, 32767), (3076, 9999)]);
        assert!(refusal(odd()).contains("writer's own"));
        let options = ImportOptions {
            height_scale: Some(2.0),
            ..Default::default()
        };
        let georef = tags_of(&odd(), &options).unwrap().georef.unwrap();
        assert_eq!(georef.unit, Unit::Unknown(9999));
    }

    #[test]
    fn south_up_rasters_say_so_and_are_placed_by_their_north() {
        let matrix = [10.0, 0.0, 0.0, 500.0, 0.0, 20.0, 0.0, 900.0];
        let file = Tiff::int16(3, 2, &[0; 6]).doubles(34264, &[&matrix[..], &[0.0; 8]].concat());
        let tags = tags_of(&file, &ImportOptions::default()).unwrap();
        assert!(tags.south_up);
        let transform = tags.georef.unwrap().transform;
        assert_eq!(transform, [505.0, 10.0, 0.0, 930.0, 0.0, -20.0]);
    }

    #[test]
    fn rotated_and_mirrored_rasters_are_refused() {
        let matrix = |a: f64, b: f64, e: f64, f: f64| {
            Tiff::int16(3, 2, &[0; 6]).doubles(
                34264,
                &[&[a, b, 0.0, 0.0, e, f, 0.0, 0.0][..], &[0.0; 8]].concat(),
            )
        };
        assert!(refusal(matrix(26.0, 15.0, 15.0, -26.0)).contains("rotated"));
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
