//! Real elevation files: what the importer reads must be what independent readers found in them.
//!
//! The files lie outside the project (`HIGHFELL_DATA` names their folder); without them the
//! tests say that they were skipped.

use crate::common::data_folder;
use highfell::import::{ImportOptions, MAX_UNITS, load};
use highfell::source::Source;

/// Name, width, height, lowest and highest metre, voids, coordinate system, spacing as declared.
type Row = (
    &'static str,
    u32,
    u32,
    f64,
    f64,
    u64,
    Option<&'static str>,
    [f64; 2],
);

const WGS84: Option<&str> = Some("EPSG:4326");
const NAD83: Option<&str> = Some("EPSG:4269");
const MERCATOR: Option<&str> = Some("EPSG:3857");
const ARC: [f64; 2] = [1.0 / 1200.0; 2];

#[rustfmt::skip]
const FILES: [Row; 16] = [
    ("N43E007.hgt", 1201, 1201, -11.0, 2064.0, 1595, WGS84, ARC),
    ("N44W072.hgt", 1201, 1201, 115.0, 1908.0, 0, WGS84, ARC),
    ("S33W071.tif", 1201, 1201, 250.0, 6929.0, 0, WGS84, ARC),
    ("N49W123.tif", 1201, 1201, -37.0, 2674.0, 34926, WGS84, ARC),
    ("Copernicus_DSM_10_N45_00_E005_00_DEM.tif", 500, 500, 136.0, 2854.0, 0, WGS84, [0.0020005555555555553; 2]),
    ("reduced_Gironde.tif", 1000, 1000, -100.953125, 104.30217742919922, 0, WGS84, [0.00113854167031, 0.0011895833371400003]),
    ("dem_landscape.tif", 200, 125, -4.732468605041504, 921.4481201171875, 0, NAD83, [0.005016666666670702, 0.008026666666673066]),
    ("dem_squared.tif", 129, 129, 65.35829162597656, 318.4411315917969, 0, NAD83, [0.0002777777777780012, 0.0002777777777779992]),
    ("lidar_dem.tif", 400, 400, 379.6593322753906, 410.7586669921875, 0, Some("EPSG:26915"), [1.0, 1.0]),
    ("rio-rgbify_elev.tif", 512, 512, 0.4360104203224182, 114.92089080810547, 0, MERCATOR, [6.721808968646656, 6.059025744365499]),
    ("tin-terrain_valid_raster.tif", 100, 80, 26.579227447509766, 44.07256317138672, 970, MERCATOR, [3.9169424130300814; 2]),
    ("aizuwakamatsu_none.png", 512, 512, 44.0, 2044.0, 0, None, [30.0, 30.0]),
    ("west_bijou_gully.asc", 43, 89, 1680.7794189453125, 1725.4326171875, 2739, None, [3.0, 3.0]),
    ("zSW3.asc", 300, 452, -2.609347105026245, 8.461376190185547, 35152, None, [2.0, 2.0]),
    ("hugo_site.asc", 76, 55, 1660.0, 1711.0, 2028, None, [10.0, 10.0]),
    ("4_x_3.asc", 3, 4, 0.0, 11.0, 0, None, [10.0, 10.0]),
];

const REFUSED: [&str; 8] = [
    "derived_truncated_Copernicus.tif",
    "derived_truncated_N44W072.hgt",
    "derived_short_pre_runout_DEM.asc",
    "rasterio_corrupt.tif",
    "derived_jacksboro_feet_deflate_pred3_tiled_f32.tif",
    "derived_squared129_rotated30_f32.tif",
    "derived_rmnp_southup_int16.tif",
    "derived_jacksboro_rgb16_257x129.png",
];

#[test]
fn real_files_match_the_table() {
    let Some(folder) = data_folder() else { return };
    for row in FILES {
        let path = folder.join(row.0);
        let source = load(&path, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        check(&row, &source);
    }
}

#[test]
fn damaged_and_misleading_files_are_refused_in_a_line() {
    let Some(folder) = data_folder() else { return };
    for name in REFUSED {
        let path = folder.join(name);
        assert!(path.exists(), "{} is missing", path.display());
        let message = match load(&path, &ImportOptions::default()) {
            Ok(_) => panic!("{name} was read"),
            Err(error) => error.to_string(),
        };
        assert!(message.contains(name), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn the_same_raster_reads_the_same_in_every_encoding() {
    let Some(folder) = data_folder() else { return };
    let load = |name: &str| load(&folder.join(name), &ImportOptions::default()).unwrap();
    let tiff = load("derived_jacksboro_bigendian_lzw_pred2_int16.tif");
    let png = load("derived_jacksboro_gray16_adam7.png");
    assert_eq!(tiff.map, png.map);
    assert_eq!((tiff.info.min_m, tiff.info.max_m), (236.0, 1076.0));
}

#[test]
fn undeclared_voids_make_no_pit() {
    let Some(folder) = data_folder() else { return };
    let path = folder.join("dem_unfinished.tif");
    let source = load(&path, &ImportOptions::default()).unwrap();
    assert_eq!(source.info.voids, 282);
    assert!(source.info.min_m > -1000.0 && source.info.max_m == 1909.0);
}

fn check(row: &Row, source: &Source) {
    let (name, width, height, min_m, max_m, voids, crs, declared) = *row;
    let info = &source.info;
    assert_eq!(
        (source.map.width, source.map.height),
        (width, height),
        "{name}"
    );
    assert_eq!((info.voids, info.filled), (voids, voids), "{name}");
    assert_eq!(info.files, [name]);
    assert_eq!(info.crs.as_deref(), crs, "{name}");
    // The table holds 32-bit floats; grids in text are read more exactly.
    let near = |a: f64, b: f64, tolerance: f64| (a - b).abs() <= tolerance;
    assert!(
        near(info.min_m, min_m, 1e-4) && near(info.max_m, max_m, 1e-4),
        "{name}: {} to {} m",
        info.min_m,
        info.max_m
    );
    let (low, high) = source.map.range();
    let metres = |units: i32| f64::from(units) * source.step_m;
    let half = source.step_m * 0.501;
    assert!(near(metres(low), info.min_m, half), "{name}: lowest {low}");
    assert!(
        near(metres(high), info.max_m, half),
        "{name}: highest {high}"
    );
    assert!(low.abs().max(high.abs()) <= MAX_UNITS, "{name}");
    check_spacing(name, source, declared);
}

/// Degrees are checked by what the tests' Earth, a sphere, makes of them: within half a percent.
fn check_spacing(name: &str, source: &Source, declared: [f64; 2]) {
    let geographic = matches!(source.info.crs.as_deref(), Some("EPSG:4326" | "EPSG:4269"));
    if !geographic {
        assert_eq!(source.spacing_m, declared, "{name}");
        return;
    }
    let transform = source.info.transform.unwrap();
    let latitude = transform[3] + transform[5] * f64::from(source.map.height - 1) / 2.0;
    let degree_m = 111_195.0;
    let expected = [
        declared[0] * degree_m * latitude.to_radians().cos(),
        declared[1] * degree_m,
    ];
    for (found, expected) in source.spacing_m.iter().zip(expected) {
        let ratio = found / expected;
        assert!(
            (ratio - 1.0).abs() < 0.005,
            "{name}: {found} m for {expected} m"
        );
    }
}
