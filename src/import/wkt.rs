//! Coordinate systems as text: what a `.prj` and GDAL's side files say.
//!
//! Well-known text of either version (OGC 01-009, 18-010), or the few lines of key and value that
//! ArcInfo once wrote. Only what the importer needs is looked for: a name, the units of the map
//! and of heights, and the projection, which `proj4wkt` finds.

use super::crs::Projection;
use super::geo::Unit;
use super::{one_line, units};

/// Radians a degree, as texts round it.
const DEGREE: f64 = 0.017_453_29;
const ROUNDED: f64 = 1e-4;
const GRAD: u16 = 9105;
const PROJECTED: [&str; 3] = ["PROJCS", "PROJCRS", "PROJECTEDCRS"];
const GEOGRAPHIC: [&str; 5] = [
    "GEOGCS",
    "GEOGCRS",
    "GEODCRS",
    "GEODETICCRS",
    "GEOGRAPHICCRS",
];
const VERTICAL: [&str; 4] = ["VERT_CS", "VERTCRS", "VERTCS", "VERTICALCRS"];
const UNITS: [&str; 3] = ["UNIT", "LENGTHUNIT", "ANGLEUNIT"];

/// What a text says of the system that a raster is in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct System {
    /// Such as `EPSG:4326`, or the writer's name for it.
    pub name: String,
    pub unit: Unit,
    pub projection: Option<Projection>,
    /// Metres a unit of height, where that is said.
    pub height_unit_m: Option<f64>,
}

impl System {
    /// `None` for what cannot be understood.
    pub fn of(text: &str) -> Option<System> {
        let text = text.trim_start_matches('\u{feff}').trim();
        if let Some(node) = find(text, &PROJECTED) {
            // The last one of its own: those of the globe below it are angles.
            let factor = node.own(&UNITS).last().and_then(Node::factor);
            let projection = proj4wkt::wkt_to_projstring(node.whole).ok();
            let unit = factor.filter(|m| *m > 0.0).map(Unit::Metres)?;
            let projection = projection.and_then(Projection::new);
            return Some(System::named(node, unit, projection, text));
        }
        if let Some(node) = find(text, &GEOGRAPHIC) {
            let factor = node.own(&UNITS).last().and_then(Node::factor);
            let unit = match factor.unwrap_or(DEGREE) {
                factor if (factor / DEGREE - 1.0).abs() < ROUNDED => Unit::Degree,
                _ => Unit::Unknown(GRAD),
            };
            return Some(System::named(node, unit, None, text));
        }
        of_arcinfo(text)
    }

    fn named(node: Node, unit: Unit, projection: Option<Projection>, text: &str) -> System {
        let vertical = find(text, &VERTICAL);
        let unit_of_heights = vertical.and_then(|node| node.own(&UNITS).last()?.factor());
        System {
            name: node.code().unwrap_or_else(|| one_line(node.name())),
            unit,
            projection,
            height_unit_m: unit_of_heights.filter(|metres| *metres > 0.0),
        }
    }
}

/// `Projection UTM`, `Zone 32`, `Units METERS`, a line each.
fn of_arcinfo(text: &str) -> Option<System> {
    let value = |key: &str| {
        let lines = text
            .lines()
            .map(|line| line.trim().split_once(char::is_whitespace));
        let mut values = lines.flatten().filter(|(k, _)| k.eq_ignore_ascii_case(key));
        values.next().map(|(_, value)| value.trim())
    };
    let projection = value("projection")?;
    let unit = value("units")?.to_ascii_lowercase();
    let unit = match unit.as_str() {
        "dd" | "degrees" => Unit::Degree,
        // The survey foot of American map series.
        "feet" => Unit::Metres(units::by_name("us-ft")?),
        unit => Unit::Metres(units::by_name(unit)?),
    };
    let zone = value("zone").map(|zone| format!(" zone {zone}"));
    Some(System {
        name: one_line(projection.to_owned() + &zone.unwrap_or_default()),
        unit,
        projection: None,
        height_unit_m: None,
    })
}

/// `KEYWORD["name", ...]`, somewhere in a text.
#[derive(Clone, Copy, Debug)]
struct Node<'a> {
    whole: &'a str,
    /// Between the brackets.
    inside: &'a str,
}

/// The first node with one of these keywords, whole words only.
fn find<'a>(text: &'a str, keywords: &[&str]) -> Option<Node<'a>> {
    nodes(text)
        .find(|(keyword, _)| keywords.iter().any(|k| keyword.eq_ignore_ascii_case(k)))
        .map(|(_, node)| node)
}

/// All nodes of a text at any depth, with their keywords, in their order.
fn nodes(text: &str) -> impl Iterator<Item = (&str, Node<'_>)> {
    let opening = brackets(text).filter(|(_, is_open)| *is_open);
    opening.filter_map(move |(open, _)| {
        let before = text[..open].trim_end();
        let word = before.char_indices().rev();
        let word = word.take_while(|(_, c)| c.is_ascii_alphanumeric() || *c == '_');
        let start = word.last().map_or(before.len(), |(at, _)| at);
        let mut depth = 0usize;
        for (at, is_open) in brackets(&text[open..]) {
            depth = if is_open {
                depth + 1
            } else {
                depth.saturating_sub(1)
            };
            if depth == 0 {
                let end = open + at;
                let node = Node {
                    whole: &text[start..=end],
                    inside: &text[open + 1..end],
                };
                return Some((&text[start..before.len()], node));
            }
        }
        None
    })
}

/// Places of brackets outside of quotes; true for those that open.
fn brackets(text: &str) -> impl Iterator<Item = (usize, bool)> {
    let mut quoted = false;
    text.bytes().enumerate().filter_map(move |(at, byte)| {
        quoted ^= byte == b'"';
        match byte {
            b'[' | b'(' if !quoted => Some((at, true)),
            b']' | b')' if !quoted => Some((at, false)),
            _ => None,
        }
    })
}

impl<'a> Node<'a> {
    fn name(&self) -> &'a str {
        self.inside.split('"').nth(1).unwrap_or_default()
    }

    /// The nodes with these keywords that lie in no other node of this one.
    fn own(&self, keywords: &[&str]) -> Vec<Node<'a>> {
        let mut end = 0;
        let inside = self.inside;
        let all = nodes(inside).filter(move |(_, node)| {
            let start = node.whole.as_ptr() as usize - inside.as_ptr() as usize;
            let outer = start >= end;
            if outer {
                end = start + node.whole.len();
            }
            outer
        });
        all.filter(|(keyword, _)| keywords.iter().any(|k| keyword.eq_ignore_ascii_case(k)))
            .map(|(_, node)| node)
            .collect()
    }

    /// The number behind a unit's name.
    fn factor(&self) -> Option<f64> {
        let number = self
            .inside
            .rsplit_once('"')
            .filter(|_| !self.inside.contains('['));
        let number = number
            .map(|(_, rest)| rest)
            .or_else(|| self.inside.splitn(3, '"').nth(2))?;
        let number = number
            .trim_start_matches([',', ' '])
            .split([',', ' '])
            .next()?;
        number.trim().parse().ok().filter(|f: &f64| f.is_finite())
    }

    /// The system's code, where it has one.
    fn code(&self) -> Option<String> {
        let id = self.own(&["AUTHORITY", "ID"]);
        let parts: Vec<&str> = (id.last()?.inside.split(','))
            .map(|part| part.trim().trim_matches('"'))
            .collect();
        let [authority, code, ..] = parts[..] else {
            return None;
        };
        let sound = !code.is_empty() && code.chars().all(|c| c.is_ascii_alphanumeric());
        sound.then(|| format!("{}:{code}", one_line(authority)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FEET: &str = r#"COMPD_CS["both",PROJCS["NAD83 / New York Long Island (ftUS)",
        GEOGCS["NAD83",DATUM["North_American_Datum_1983",SPHEROID["GRS 1980",6378137,298.257222101]],
        PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],
        PROJECTION["Lambert_Conformal_Conic_2SP"],PARAMETER["latitude_of_origin",40.1666666666667],
        PARAMETER["central_meridian",-74],PARAMETER["standard_parallel_1",41.0333333333333],
        PARAMETER["standard_parallel_2",40.6666666666667],PARAMETER["false_easting",984250],
        PARAMETER["false_northing",0],UNIT["US survey foot",0.304800609601219,AUTHORITY["EPSG","9003"]],
        AUTHORITY["EPSG","2263"]],VERT_CS["height",VERT_DATUM["x",2005],UNIT["foot",0.3048]]]"#;
    const ESRI: &str = r#"GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]"#;

    #[test]
    fn projected_systems_have_a_unit_of_their_own() {
        let system = System::of(FEET).unwrap();
        assert_eq!(system.name, "EPSG:2263");
        assert_eq!(system.unit, Unit::Metres(0.304800609601219));
        assert_eq!(system.height_unit_m, Some(0.3048));
        let [x, z] = system
            .projection
            .unwrap()
            .scale_m([984_250.0, 0.0])
            .unwrap();
        assert!((x - 0.3048).abs() < 1e-3 && (z - 0.3048).abs() < 1e-3);
    }

    #[test]
    fn geographic_systems_are_in_degrees_or_in_what_nobody_follows() {
        let system = System::of(ESRI).unwrap();
        assert_eq!(
            (system.name.as_str(), system.unit),
            ("GCS_WGS_1984", Unit::Degree)
        );
        let grads = ESRI.replace("0.0174532925199433", "0.015707963267949");
        assert_eq!(System::of(&grads).unwrap().unit, Unit::Unknown(GRAD));
        let second = r#"GEOGCRS["WGS 84",DATUM["x",ELLIPSOID["WGS 84",6378137,298.257223563,LENGTHUNIT["metre",1]]],CS[ellipsoidal,2],AXIS["latitude",north],ANGLEUNIT["degree",0.0174532925199433],ID["EPSG",4326]]"#;
        let system = System::of(second).unwrap();
        assert_eq!(
            (system.name.as_str(), system.unit),
            ("EPSG:4326", Unit::Degree)
        );
    }

    #[test]
    fn arcinfo_wrote_lines() {
        let system = System::of("Projection    UTM\nZone   32\nUnits  METERS\n").unwrap();
        assert_eq!(
            (system.name.as_str(), system.unit),
            ("UTM zone 32", Unit::Metres(1.0))
        );
        let degrees = System::of("Projection GEOGRAPHIC\nUnits DD\nParameters\n").unwrap();
        assert_eq!(degrees.unit, Unit::Degree);
        assert_eq!(System::of("Dear diary,"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[A-Z\\[\\](),\"0-9. é]{0,60}", cut in 0usize..900) {
            System::of(&text);
            let cut = FEET.char_indices().nth(cut).map_or(FEET.len(), |(at, _)| at);
            System::of(&FEET[..cut]);
        }
    }
}
