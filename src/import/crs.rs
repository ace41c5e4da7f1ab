//! What coordinate systems say of units and of scale.
//!
//! A file that names its system by a code of the EPSG registry need not say its units: they belong
//! to the code. Horizontal ones are taken from a table of all codes (`crs-definitions`), vertical
//! ones, of which that table has none, from the few of the registry that are not in metres.
//!
//! - What is in no table is not guessed.
//! - Scale is measured: a place of the map and its neighbours are taken back to the ellipsoid
//!   (`proj4rs`), which serves every projection alike.

use proj4rs::Proj;
use proj4rs::transform::transform;

use super::geo::{Unit, metres_per_degree};
use super::units;

const GRAD: u16 = 9105;
/// Geographic systems in grads, all from Paris.
const IN_GRADS: [u16; 8] = [4807, 4810, 4811, 4816, 4819, 4821, 4901, 4902];
const FOOT: u16 = 9002;
const US_FOOT: u16 = 9003;
const BRITISH_FOOT_1936: u16 = 9095;
/// Vertical systems that are not in metres, and their units (EPSG registry, version 12).
const VERTICAL_UNITS: [(u16, u16); 16] = [
    (5614, FOOT),
    (5702, US_FOOT),
    (5754, BRITISH_FOOT_1936),
    (6130, FOOT),
    (6131, FOOT),
    (6132, FOOT),
    (6358, US_FOOT),
    (6359, US_FOOT),
    (6360, US_FOOT),
    (8050, FOOT),
    (8051, FOOT),
    (8052, US_FOOT),
    (8053, US_FOOT),
    (8228, FOOT),
    (8897, FOOT),
    (10919, US_FOOT),
];
/// The others: codes of vertical systems in metres, first and last of each run. Those from 5001 to
/// 5106 are of GeoTIFF 1.0; 4979 is the ellipsoidal height of WGS 84.
#[rustfmt::skip]
const VERTICAL_METRES: [[u16; 2]; 97] = [
    [3855, 3855], [3886, 3886], [3900, 3900], [4440, 4440], [4458, 4458], [4979, 4979],
    [5001, 5106], [5193, 5193], [5195, 5195], [5214, 5214], [5237, 5237], [5317, 5317],
    [5336, 5336], [5597, 5597], [5600, 5621], [5701, 5706], [5709, 5799], [5829, 5829],
    [5831, 5831], [5843, 5843], [5861, 5874], [5941, 5941], [6178, 6187], [6357, 6357],
    [6638, 6644], [6647, 6647], [6693, 6695], [6916, 6916], [7446, 7447], [7651, 7652],
    [7699, 7700], [7707, 7707], [7832, 7832], [7837, 7837], [7839, 7839], [7841, 7841],
    [7888, 7890], [7962, 7962], [7968, 7968], [7976, 7976], [7979, 7979], [8089, 8089],
    [8266, 8267], [8357, 8358], [8378, 8378], [8434, 8434], [8675, 8675], [8690, 8691],
    [8841, 8841], [8881, 8881], [8904, 8904], [8911, 8911], [9130, 9130], [9245, 9245],
    [9255, 9255], [9274, 9274], [9279, 9279], [9287, 9288], [9303, 9303], [9335, 9335],
    [9351, 9351], [9389, 9390], [9392, 9402], [9451, 9451], [9458, 9458], [9471, 9471],
    [9650, 9651], [9663, 9663], [9666, 9666], [9669, 9669], [9672, 9672], [9675, 9675],
    [9681, 9681], [9721, 9722], [9923, 9923], [9927, 9927], [10150, 10151], [10190, 10190],
    [10349, 10349], [10352, 10354], [10364, 10364], [10370, 10379], [10482, 10485],
    [10547, 10552], [10565, 10565], [10588, 10588], [10642, 10642], [10649, 10650],
    [10678, 10678], [10740, 10740], [10763, 10763], [10900, 10900], [10918, 10918],
    [10999, 10999], [11157, 11157], [20000, 20000], [20034, 20036],
];
/// Half the way over which scale is measured, in metres of the map.
const REACH_M: f64 = 500.0;

/// A way from the ellipsoid to the map, as PROJ writes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Projection(String);

impl Projection {
    /// Of a projected system of the registry.
    pub fn of_code(code: u16) -> Option<Projection> {
        let definition = crs_definitions::from_code(code)?;
        Projection::new(definition.proj4.to_owned())
    }

    /// `None` for what cannot be followed.
    pub fn new(text: String) -> Option<Projection> {
        // Only shifts between datums need the grids of this one; scale needs its ellipsoid.
        let text = text.replace("+datum=NAD27", "+ellps=clrk66");
        let projection = Proj::from_proj_string(&text).ok()?;
        (!projection.is_latlong() && !projection.is_geocent()).then_some(Projection(text))
    }

    /// Metres a unit of the map.
    pub fn unit_m(&self) -> Option<f64> {
        let projection = Proj::from_proj_string(&self.0).ok()?;
        Some(projection.to_meter()).filter(|metres| metres.is_finite() && *metres > 0.0)
    }

    /// Metres on the ground a unit of the map, to the east and to the south of a place.
    pub fn scale_m(&self, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        let projection = Proj::from_proj_string(&self.0).ok()?;
        let globe = Proj::from_proj_string(&self.on_globe()).ok()?;
        let degrees = |x: f64, y: f64| {
            let mut point = (x, y, 0.0);
            transform(&projection, &globe, &mut point).ok()?;
            Some([point.0.to_degrees(), point.1.to_degrees()])
        };
        let latitude = degrees(x, y)?[1];
        let [east_m, north_m] = metres_per_degree(latitude);
        let reach = REACH_M / projection.to_meter();
        let scale = |[a, b]: [[f64; 2]; 2]| {
            // The way over the other end of the world is the longer one.
            let east = (b[0] - a[0] + 540.0).rem_euclid(360.0) - 180.0;
            ((east * east_m).hypot((b[1] - a[1]) * north_m)) / (2.0 * reach)
        };
        let across = scale([degrees(x - reach, y)?, degrees(x + reach, y)?]);
        let along = scale([degrees(x, y - reach)?, degrees(x, y + reach)?]);
        let sound = [across, along].iter().all(|s| s.is_finite() && *s > 0.0);
        sound.then_some([across, along])
    }

    /// The same ellipsoid and datum without the projection: nothing is shifted on the way.
    fn on_globe(&self) -> String {
        const KEPT: [&str; 9] = [
            "+a=",
            "+b=",
            "+R=",
            "+rf=",
            "+f=",
            "+ellps=",
            "+datum=",
            "+towgs84=",
            "+nadgrids=",
        ];
        let kept = self.0.split_whitespace();
        let kept = kept.filter(|part| KEPT.iter().any(|key| part.starts_with(key)));
        let parts: Vec<&str> = std::iter::once("+proj=longlat").chain(kept).collect();
        parts.join(" ")
    }
}

/// What map coordinates of a projected system are counted in.
pub(super) fn map_unit(code: u16) -> Unit {
    let metres = Projection::of_code(code).and_then(|projection| projection.unit_m());
    metres.map_or(Unit::OfUnknownSystem(code), Unit::Metres)
}

/// What those of a geographic one are counted in.
pub(super) fn angle_unit(code: u16) -> Unit {
    match IN_GRADS.contains(&code) {
        true => Unit::Unknown(GRAD),
        false => Unit::Degree,
    }
}

/// What is known of a vertical system.
pub(super) enum Vertical {
    Metres,
    /// Metres a unit.
    Unit(f64),
    Unknown,
}

impl Vertical {
    pub fn of_code(code: u16) -> Vertical {
        let unit = VERTICAL_UNITS.iter().find(|(known, _)| *known == code);
        match unit.and_then(|(_, unit)| units::by_code(*unit)) {
            Some(metres) => Vertical::Unit(metres),
            None if VERTICAL_METRES
                .iter()
                .any(|[a, b]| (*a..=*b).contains(&code)) =>
            {
                Vertical::Metres
            }
            None => Vertical::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_belong_to_the_code() {
        let unit = |code| map_unit(code);
        assert_eq!(unit(32632), Unit::Metres(1.0));
        assert_eq!(unit(2265), Unit::Metres(0.3048));
        assert!(matches!(unit(2263), Unit::Metres(m) if (m - 1200.0 / 3937.0).abs() < 1e-9));
        assert_eq!(unit(1), Unit::OfUnknownSystem(1));
        assert_eq!(unit(4326), Unit::OfUnknownSystem(4326));
        assert_eq!(angle_unit(4326), Unit::Degree);
        assert_eq!(angle_unit(4807), Unit::Unknown(GRAD));
    }

    #[test]
    fn every_vertical_unit_is_known_by_its_code() {
        for (code, _) in VERTICAL_UNITS {
            assert!(
                matches!(Vertical::of_code(code), Vertical::Unit(m) if m < 0.31),
                "{code}"
            );
        }
        assert!(matches!(Vertical::of_code(5703), Vertical::Metres));
        assert!(matches!(Vertical::of_code(1), Vertical::Unknown));
    }

    #[test]
    fn web_mercator_stretches_by_the_latitude_and_utm_does_not() {
        let mercator = Projection::of_code(3857).unwrap();
        // On the sphere that the map is made with: R * ln(tan(45 + latitude / 2)).
        for latitude in [0.0f64, 42.0, -70.0] {
            let y = 6_378_137.0 * (45.0 + latitude / 2.0).to_radians().tan().ln();
            let [x, z] = mercator.scale_m([1e6, y]).unwrap();
            let per_degree = 6_378_137.0 * std::f64::consts::PI / 180.0;
            let [east_m, north_m] = metres_per_degree(latitude);
            assert!((x - east_m / per_degree).abs() < 1e-6, "{latitude}: {x}");
            let expected = north_m * latitude.to_radians().cos() / per_degree;
            assert!((z - expected).abs() < 1e-6, "{latitude}: {z}");
        }
        let utm = Projection::of_code(32632).unwrap();
        let [x, z] = utm.scale_m([500_000.0, 5_000_000.0]).unwrap();
        assert!((x - 1.0 / 0.9996).abs() < 1e-4 && (z - 1.0 / 0.9996).abs() < 1e-4);
        let feet = Projection::of_code(2263).unwrap();
        let [x, _] = feet.scale_m([984_250.0, 200_000.0]).unwrap();
        assert!((x - 0.3048).abs() < 1e-3, "{x}");
    }

    #[test]
    fn most_projected_systems_of_the_table_can_be_followed() {
        let projected = (2000..=32766).filter_map(crs_definitions::from_code);
        let projected = projected.filter(|def| !def.proj4.contains("longlat"));
        let projected: Vec<_> = projected
            .filter(|def| !def.proj4.contains("geocent"))
            .collect();
        let known = projected
            .iter()
            .filter(|def| Projection::of_code(def.code).is_some());
        let share = known.count() as f64 / projected.len() as f64;
        assert!(projected.len() > 4000 && share > 0.97, "{share}");
    }
}
