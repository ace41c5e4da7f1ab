//! Where samples lie on the Earth, and how many metres lie between them.
//!
//! The compiler wants metres between samples and nothing else; degrees are turned into metres
//! once, at the raster's centre latitude. The transform is kept so that a world can say where on
//! the map a sample is.
//!
//! - A [`Georef`] is north-up: columns go east, rows go south, spacings are above zero.
//! - Its transform is that of the sample, whether the file counted points or areas.

use std::path::Path;

use super::crs::Projection;
use super::lint::Warning;
use super::units;
use crate::error::{Error, Result};
use crate::world::source::GeoKeys;

/// Projections that are meant for measuring are truer than this.
const SAME_SCALE: f64 = 0.01;

/// What the map's coordinates are counted in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    Degree,
    /// So many metres.
    Metres(f64),
    /// The file does not say.
    Unsaid,
    /// The file names one that is not known here, by this code of the EPSG registry.
    Unknown(u16),
    /// The file leaves it to a coordinate system that is not known here.
    OfUnknownSystem(u16),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Georef {
    /// Such as `EPSG:4326`.
    pub crs: Option<String>,
    pub unit: Unit,
    /// As in `SourceInfo::transform`.
    pub transform: [f64; 6],
    pub pixel_is_area: bool,
    /// How the map is made of the globe, where that is known and its units are no degrees.
    pub projection: Option<Projection>,
    /// What a file says of a system that no registry has.
    pub keys: Option<GeoKeys>,
}

impl Georef {
    /// `north_west` is the north-west sample, `step` the map units between samples.
    pub fn north_up(crs: Option<String>, unit: Unit, north_west: [f64; 2], step: [f64; 2]) -> Self {
        Georef {
            crs,
            unit,
            transform: [north_west[0], step[0], 0.0, north_west[1], 0.0, -step[1]],
            pixel_is_area: false,
            projection: None,
            keys: None,
        }
    }

    /// Map units to the east and to the south from sample to sample.
    fn step(&self) -> [f64; 2] {
        [self.transform[1], -self.transform[5]]
    }

    fn centre(&self, width: u32, height: u32) -> [f64; 2] {
        let [x, dx, _, y, _, dy] = self.transform;
        let half = |count: u32| f64::from(count - 1) / 2.0;
        [x + dx * half(width), y + dy * half(height)]
    }
}

/// Metres between samples, and what had to be guessed; 30 m where there is no georeference.
pub(super) fn spacing_m(
    path: &Path,
    georef: Option<&Georef>,
    width: u32,
    height: u32,
) -> Result<([f64; 2], Option<Warning>)> {
    let Some(georef) = georef else {
        let text = "no georeference: taking 30 m between samples";
        return Ok((
            [30.0; 2],
            Some(Warning::new("spacing", text, "--spacing M")),
        ));
    };
    let [x, _, _, y, ..] = georef.transform;
    let [dx, dz] = georef.step();
    let south = y - dz * f64::from(height - 1);
    let east = x + dx * f64::from(width - 1);
    let on_globe = within_globe(x, east, y, south);
    let (spacing, warning) = match georef.unit {
        Unit::Metres(m) if on_globe && dx < 0.1 && dz < 0.1 => {
            let text = "the coordinates could be degrees, but the file says metres";
            let warning = Warning::new("degrees", text, "--spacing M");
            ([dx * m, dz * m], Some(warning))
        }
        Unit::Metres(m) => on_ground(georef, m, georef.centre(width, height)),
        Unit::Degree => (degrees_to_metres(path, dx, dz, y, south)?, None),
        // Nobody measures ground in centimetres there.
        Unit::Unsaid if on_globe && dx < 0.1 && dz < 0.1 => {
            let text = "no coordinate system: taking the coordinates for degrees";
            let warning = Warning::new("degrees", text, "--spacing M");
            (degrees_to_metres(path, dx, dz, y, south)?, Some(warning))
        }
        Unit::Unsaid => ([dx, dz], None),
        Unit::Unknown(code) => {
            let what = format!("map coordinates are in {}", units::name_of(code));
            return Err(Error::file(
                path,
                what,
                "metres, feet or degrees, or --spacing",
            ));
        }
        Unit::OfUnknownSystem(code) => {
            let what = format!(
                "its unit is left to the coordinate system EPSG:{code}, which is not known"
            );
            let expected = "a system of the EPSG registry, a unit in the file, or --spacing";
            return Err(Error::file(path, what, expected));
        }
    };
    if spacing.iter().all(|s| (1e-9..=1e9).contains(s)) {
        return Ok((spacing, warning));
    }
    Err(Error::file(
        path,
        format!("the spacing of {} x {} m is no use", spacing[0], spacing[1]),
        "samples between a nanometre and a million kilometres apart, or --spacing",
    ))
}

/// Metres between samples by the map, or by the ground where the map is much larger or smaller.
fn on_ground(georef: &Georef, unit_m: f64, centre: [f64; 2]) -> ([f64; 2], Option<Warning>) {
    let by_map = georef.step().map(|step| step * unit_m);
    let projection = georef.projection.as_ref();
    let Some(scale) = projection.and_then(|projection| projection.scale_m(centre)) else {
        return (by_map, None);
    };
    if scale.iter().all(|s| (s / unit_m - 1.0).abs() <= SAME_SCALE) {
        return (by_map, None);
    }
    let [dx, dz] = georef.step();
    let [x, z] = [dx * scale[0], dz * scale[1]];
    let text = format!(
        "the map is not to scale: its samples are {:.2} x {:.2} m apart on the map, but {x:.2} x {z:.2} m on the ground at its centre, which is what is taken",
        by_map[0], by_map[1]
    );
    let pass = format!("--spacing {} for that of the map", by_map[0]);
    ([x, z], Some(Warning::new("scale", text, pass)))
}

/// Metres per degree of longitude and of latitude: the series of the WGS84 ellipsoid.
pub(super) fn metres_per_degree(latitude: f64) -> [f64; 2] {
    let phi = latitude.to_radians();
    let cos = |k: f64| (k * phi).cos();
    [
        111_412.84 * cos(1.0) - 93.5 * cos(3.0) + 0.118 * cos(5.0),
        111_132.954 - 559.822 * cos(2.0) + 1.175 * cos(4.0),
    ]
}

fn degrees_to_metres(path: &Path, dx: f64, dz: f64, north: f64, south: f64) -> Result<[f64; 2]> {
    let centre = (north + south) / 2.0;
    if !(-90.0..=90.0).contains(&centre) {
        return Err(Error::file(
            path,
            format!("the centre latitude is {centre} degrees"),
            "a latitude from -90 to 90, or --spacing",
        ));
    }
    let [x, z] = metres_per_degree(centre);
    Ok([dx * x, dz * z])
}

fn within_globe(west: f64, east: f64, north: f64, south: f64) -> bool {
    west >= -180.0 && east <= 180.0 && south >= -90.0 && north <= 90.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spacing(unit: Unit, north_west: [f64; 2], step: f64, samples: u32) -> Result<[f64; 2]> {
        let georef = Georef::north_up(None, unit, north_west, [step, step]);
        spacing_m(Path::new("x.tif"), Some(&georef), samples, samples).map(|found| found.0)
    }

    #[test]
    fn degrees_have_the_published_lengths() {
        let near =
            |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).abs() < 1.0 && (a[1] - b[1]).abs() < 1.0;
        assert!(near(metres_per_degree(0.0), [111_319.5, 110_574.3]));
        assert!(near(metres_per_degree(45.0), [78_846.8, 111_131.8]));
        assert!(near(metres_per_degree(-60.0), metres_per_degree(60.0)));
    }

    #[test]
    fn degrees_use_the_centre_latitude() {
        let [x, z] = spacing(Unit::Degree, [7.0, 44.0], 1.0 / 1200.0, 1201).unwrap();
        let [mx, mz] = metres_per_degree(43.5);
        assert!((x - mx / 1200.0).abs() < 1e-9 && (z - mz / 1200.0).abs() < 1e-9);
        assert!(spacing(Unit::Degree, [0.0, 200.0], 0.01, 3).is_err());
    }

    #[test]
    fn metres_stay_and_unsaid_units_are_guessed_by_bounds() {
        let metres = |unit, at, step| spacing(unit, at, step, 10).unwrap() == [step, step];
        assert!(metres(Unit::Metres(1.0), [7.0, 44.0], 0.05));
        let feet = spacing(Unit::Metres(0.3048), [0.0, 0.0], 10.0, 10).unwrap();
        assert!((feet[0] - 3.048).abs() < 1e-12);
        assert!(spacing(Unit::Unknown(9999), [0.0, 0.0], 10.0, 10).is_err());
        assert!(metres(Unit::Unsaid, [0.0, 10.0], 10.0));
        assert!(metres(Unit::Unsaid, [500_000.0, 10.0], 0.05));
        assert!(!metres(Unit::Unsaid, [7.0, 44.0], 0.05));
    }

    #[test]
    fn no_georeference_means_30_m() {
        let (spacing, warning) = spacing_m(Path::new("x.png"), None, 3, 3).unwrap();
        assert_eq!(spacing, [30.0, 30.0]);
        assert_eq!(warning.unwrap().pass, "--spacing M");
    }

    #[test]
    fn useless_spacings_are_refused() {
        assert!(spacing(Unit::Metres(1.0), [0.0, 0.0], 1e-300, 3).is_err());
        assert!(spacing(Unit::Metres(1.0), [0.0, 0.0], f64::INFINITY, 3).is_err());
    }
}
