//! Files beside a file that say what it does not: where it lies and which number is void.
//!
//! A `.prj` has the coordinate system, a world file (`.tfw`, `.pgw`, ...) the place, GDAL's
//! `.aux.xml` either, a void number, a unit and statistics. What the file itself says goes first.
//!
//! - A side file that is not understood is a warning: the heights are sound without it.
//! - Side files are small; what is not is no side file.

use std::fs;
use std::path::{Path, PathBuf};

use roxmltree::{Document, Node};

use super::file_name;
use super::gdal::Facts;
use super::geo::{Georef, Unit};
use super::grid::Measure;
use super::lint::Warning;
use super::raster::{Bands, Head, Raster, Take};
use super::wkt::System;
use crate::error::{Error, Result};
use crate::source::Area;

const LONGEST: u64 = 1 << 22;

/// Adds what lies beside a file to what it says itself. `band` counts from 0.
pub(super) fn complete(path: &Path, band: u16, mut raster: Raster) -> Result<Raster> {
    let mut declared = None;
    let aux = beside(path, &[".aux.xml"], Way::Behind);
    if let Some((aux, text)) = aux.as_ref().and_then(|aux| Some((aux, read(aux)?))) {
        match Document::parse(&text) {
            Ok(document) => declared = Aux { path, band }.complete(&document, &mut raster.head)?,
            Err(_) => raster.head.warnings.push(not_understood(aux)),
        }
    }
    if raster.head.georef.is_none()
        && let Some(file) = world_file(path)
    {
        match read(&file).as_deref().and_then(numbers) {
            Some([dx, ry, rx, dy, x, y]) => {
                raster.head.georef = Some(placed(path, [x, y], [dx, dy], [rx, ry])?);
            }
            None => raster.head.warnings.push(not_understood(&file)),
        }
    }
    let prj = beside(path, &["prj", "PRJ"], Way::Instead);
    if let (Some(file), true) = (prj, wants_system(&raster.head)) {
        match read(&file).as_deref().and_then(System::of) {
            Some(system) => adopt(system, &mut raster.head),
            None => raster.head.warnings.push(not_understood(&file)),
        }
    }
    if let Some(nodata) = declared {
        raster.samples = Box::new(Declared {
            samples: raster.samples,
            nodata,
        });
    }
    Ok(raster)
}

fn not_understood(path: &Path) -> Warning {
    let text = format!("{} is not understood and not used", file_name(path));
    Warning::new("side file", text, "--spacing M, --nodata V")
}

/// Placed, but in a system that is not said.
fn wants_system(head: &Head) -> bool {
    let georef = head.georef.as_ref();
    georef.is_some_and(|georef| georef.unit == Unit::Unsaid && georef.crs.is_none())
}

fn adopt(system: System, head: &mut Head) {
    if let Some(georef) = &mut head.georef {
        georef.crs = Some(system.name);
        georef.unit = system.unit;
        georef.projection = system.projection;
    }
    head.measure.unit_m = head.measure.unit_m.or(system.height_unit_m);
}

/// `place` is the first sample; rows that go north are not turned around here.
fn placed(path: &Path, place: [f64; 2], [dx, dy]: [f64; 2], [rx, ry]: [f64; 2]) -> Result<Georef> {
    let finite = [place[0], place[1], dx, dy, rx, ry]
        .iter()
        .all(|v| v.is_finite());
    if !finite || dx <= 0.0 || dy >= 0.0 || rx.abs().max(ry.abs()) > 1e-9 * dx.min(-dy) {
        let what = "the file beside it places it rotated, mirrored or south-up";
        return Err(Error::file(
            path,
            what,
            "a raster with north up, or no such file",
        ));
    }
    let mut georef = Georef::north_up(None, Unit::Unsaid, place, [dx, -dy]);
    georef.pixel_is_area = true;
    Ok(georef)
}

/// How the name of a side file is made.
enum Way {
    /// Behind the whole name.
    Behind,
    /// In the place of the extension.
    Instead,
}

fn beside(path: &Path, endings: &[&str], way: Way) -> Option<PathBuf> {
    let candidates = endings.iter().map(|ending| match way {
        Way::Behind => {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        }
        Way::Instead => path.with_extension(ending),
    });
    let mut files = candidates.filter(|file| fs::metadata(file).is_ok_and(|facts| facts.is_file()));
    files.next()
}

/// `.tfw`, `.tifw` or `.wld` beside a `.tif`.
fn world_file(path: &Path) -> Option<PathBuf> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let (first, last) = (extension.chars().next()?, extension.chars().last()?);
    let lower = [
        format!("{first}{last}w"),
        format!("{extension}w"),
        "wld".to_owned(),
    ];
    let upper = lower.clone().map(|ending| ending.to_ascii_uppercase());
    let all: Vec<&str> = lower.iter().chain(&upper).map(String::as_str).collect();
    beside(path, &all, Way::Instead)
}

/// The text of a side file, unless it is none.
fn read(path: &Path) -> Option<String> {
    let small = fs::metadata(path).is_ok_and(|facts| facts.len() <= LONGEST);
    let bytes = small.then(|| fs::read(path).ok())??;
    Some(
        String::from_utf8_lossy(&bytes)
            .trim_start_matches('\u{feff}')
            .to_owned(),
    )
}

/// Six numbers; commas do for points where they can be nothing else.
fn numbers(text: &str) -> Option<[f64; 6]> {
    let words = text.split_whitespace().map(|word| word.replace(',', "."));
    let numbers: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
    numbers.try_into().ok()
}

/// GDAL's `.aux.xml` beside a file.
struct Aux<'a> {
    path: &'a Path,
    band: u16,
}

impl Aux<'_> {
    /// Gives the number that it declares to be no height.
    fn complete(&self, document: &Document, head: &mut Head) -> Result<Option<f64>> {
        let root = document.root_element();
        let place = child_text(root, "GeoTransform").map(|text| text.replace(',', " "));
        if let (None, Some(place)) = (&head.georef, place)
            && let Some([x, dx, rx, y, ry, dy]) = numbers(&place)
        {
            // Of the corner of the first pixel.
            let sample = [x + dx / 2.0, y + dy / 2.0];
            head.georef = Some(placed(self.path, sample, [dx, dy], [rx, ry])?);
        }
        let system = child_text(root, "SRS").filter(|_| wants_system(head));
        if let Some(system) = system.and_then(System::of) {
            adopt(system, head);
        }
        let number = (self.band + 1).to_string();
        let is_ours = |node: &Node| {
            node.has_tag_name("PAMRasterBand") && node.attribute("band").unwrap_or("1") == number
        };
        let Some(band) = root.children().find(is_ours) else {
            return Ok(None);
        };
        let facts = Facts {
            unit: child_text(band, "UnitType"),
            scale: child_text(band, "Scale"),
            offset: child_text(band, "Offset"),
        };
        let unit_m = facts.unit_m(self.path)?;
        if head.measure.scale == 1.0 && head.measure.offset == 0.0 {
            head.measure = Measure {
                unit_m: head.measure.unit_m,
                ..facts.measure(self.path)?
            };
        }
        head.measure.unit_m = head.measure.unit_m.or(unit_m);
        head.statistics = statistics(band);
        let nodata = child_text(band, "NoDataValue");
        Ok(nodata.and_then(|text| text.parse().ok()))
    }
}

/// Lowest and highest sample, unless they were estimated.
fn statistics(band: Node) -> Option<[f64; 2]> {
    let items = || band.descendants().filter(|node| node.has_tag_name("MDI"));
    let item = |key: &str| {
        let mut found = items().filter(|node| node.attribute("key") == Some(key));
        found.next()?.text().map(str::trim)
    };
    if item("STATISTICS_APPROXIMATE") == Some("YES") {
        return None;
    }
    let number = |key| item(key)?.parse().ok();
    Some([number("STATISTICS_MINIMUM")?, number("STATISTICS_MAXIMUM")?])
}

fn child_text<'a>(node: Node<'a, '_>, tag: &str) -> Option<&'a str> {
    let child = node.children().find(|child| child.has_tag_name(tag))?;
    child.text().map(str::trim).filter(|text| !text.is_empty())
}

/// Samples of which a side file says which number is void.
struct Declared {
    samples: Box<dyn Bands>,
    nodata: f64,
}

impl Bands for Declared {
    fn read(&mut self, area: Area, take: &mut Take) -> Result<()> {
        let nodata = self.nodata;
        self.samples.read(area, &mut |mut numbers| {
            numbers.declare_void(nodata);
            take(numbers)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{self, Tiff};
    use super::super::{ImportOptions, load, load_tiles};
    use super::*;
    use image::ExtendedColorType;

    const PRJ: &str = r#"GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["Degree",0.0174532925199433]]"#;

    /// A folder with files.
    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        folder
    }

    fn grey() -> Vec<u8> {
        let samples: Vec<u16> = (0..40 * 40).map(|i| 300 + i % 37).collect();
        fixtures::png(
            40,
            40,
            ExtendedColorType::L16,
            &fixtures::ne_bytes(&samples),
        )
    }

    #[test]
    fn a_geographic_grid_is_in_degrees_when_its_prj_says_so() {
        let text = "ncols 2\nnrows 2\nxllcorner 7\nyllcorner 44\ncellsize 0.25\n1 2 3 4";
        let files = folder(&[("g.asc", text.as_bytes()), ("g.prj", PRJ.as_bytes())]);
        let source = load(&files.path().join("g.asc"), &ImportOptions::default()).unwrap();
        let [x, z] = source.spacing_m;
        assert!(
            (x - 20_000.0).abs() < 300.0 && (z - 27_780.0).abs() < 50.0,
            "{x} {z}"
        );
        assert_eq!(source.info.crs.as_deref(), Some("GCS_WGS_1984"));
    }

    #[test]
    fn a_world_file_places_pictures_and_plain_tiffs() {
        let world = b"25\n0\n0\n-20\n500000\n5000000\n";
        let tiff = Tiff::int16(40, 40, &vec![7; 1600]).bytes();
        let files = folder(&[
            ("p.png", &grey()),
            ("p.pgw", world),
            ("t.tif", &tiff),
            ("t.tfw", world),
        ]);
        for name in ["p.png", "t.tif"] {
            let source = load(&files.path().join(name), &ImportOptions::default()).unwrap();
            assert_eq!(source.spacing_m, [25.0, 20.0]);
            let transform = [500_000.0, 25.0, 0.0, 5_000_000.0, 0.0, -20.0];
            assert_eq!(source.info.transform, Some(transform));
        }
        fs::write(files.path().join("p.pgw"), "25\n3\n3\n-20\n0\n0\n").unwrap();
        let refused = load(&files.path().join("p.png"), &ImportOptions::default());
        assert!(refused.unwrap_err().to_string().contains("rotated"));
    }

    #[test]
    fn gdal_s_side_file_has_voids_place_and_statistics() {
        let aux = format!(
            "<PAMDataset><SRS>{}</SRS><GeoTransform>7, 0.1, 0, 45, 0, -0.1</GeoTransform>\
             <PAMRasterBand band=\"1\"><NoDataValue>305</NoDataValue><Metadata>\
             <MDI key=\"STATISTICS_MINIMUM\">301</MDI><MDI key=\"STATISTICS_MAXIMUM\">330</MDI>\
             </Metadata></PAMRasterBand></PAMDataset>",
            PRJ.replace('"', "&quot;")
        );
        let files = folder(&[("p.png", &grey()), ("p.png.aux.xml", aux.as_bytes())]);
        let path = files.path().join("p.png");
        let (source, lint) = load_tiles(&[path], &ImportOptions::default()).unwrap();
        assert_eq!(source.info.voids, 1600u64.div_ceil(37));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let transform = source.info.transform.unwrap();
        assert!(near(transform[0], 7.05) && near(transform[3], 44.95));
        assert!(source.spacing_m[1] > 11_000.0);
        let warning = lint
            .warnings
            .iter()
            .find(|w| w.about == "statistics")
            .unwrap();
        assert!(
            warning.text.contains("301") && warning.text.contains("336"),
            "{warning:?}"
        );
    }

    #[test]
    fn what_is_no_side_file_is_told_and_left_alone() {
        let files = folder(&[
            ("p.png", &grey()),
            ("p.pgw", b"hello"),
            ("p.png.aux.xml", b"<"),
        ]);
        let path = files.path().join("p.png");
        let (source, lint) = load_tiles(&[path], &ImportOptions::default()).unwrap();
        assert_eq!(source.spacing_m, [30.0; 2]);
        let told = lint.warnings.iter().filter(|w| w.about == "side file");
        assert_eq!(told.count(), 2);
    }
}
