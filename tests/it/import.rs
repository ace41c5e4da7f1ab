//! Real elevation files: what the importer reads must be what independent readers found in them.
//!
//! The files lie outside the project (`HIGHFELL_DATA` names their folder); without them the
//! tests say that they were skipped.

use crate::common::data_folder;
use highfell::import::{
    Crop, Encoding, ImportOptions, MAX_UNITS, Progress, VoidFill, load, load_tiles, look,
};
use highfell::source::{Ground, Source};
use serde_json::Value;

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

#[test]
fn real_files_match_the_table() {
    let Some(folder) = data_folder() else { return };
    for row in FILES {
        let path = folder.join(row.0);
        let source = load(&path, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        check(&row, &source);
    }
}

/// What a file needs to be read as its author meant it: by its name, for the index says only what
/// comes out.
fn told(name: &str) -> ImportOptions {
    let mut options = ImportOptions::default();
    match name {
        "derived_nice_513x513_le.r16" => {
            options.height_scale = Some(2120.0 / 65_535.0);
            options.height_offset_m = Some(-20.0);
        }
        "derived_deadsea_601x401_le.r32" => options.raw_size = Some([601, 401]),
        "rgb_16bit.png" => options.band = Some(3),
        name if name.contains("3band") => options.band = Some(1),
        name if name.contains("terrarium") => options.encoding = Some(Encoding::Terrarium),
        _ => {}
    }
    options
}

/// Every elevation file of the folder's index answers as the index says.
#[test]
fn every_file_of_the_index_answers_as_it_says() {
    let Some(folder) = data_folder() else { return };
    let text = std::fs::read_to_string(folder.join("index.json")).expect("index.json");
    let index: Vec<Value> = serde_json::from_str(&text).expect("a list");
    let inputs = index.iter().filter(|entry| {
        entry["kind"] == "elevation"
            && !["not_input", "sidecar"]
                .iter()
                .any(|s| entry["expect"] == *s)
    });
    let (mut opened, mut refused) = (0, 0);
    for entry in inputs {
        let name = entry["file"].as_str().expect("a name");
        match (
            load(&folder.join(name), &told(name)),
            entry["expect"].as_str(),
        ) {
            (Ok(source), Some("open" | "open_or_reject")) => {
                check_entry(name, entry, &source);
                opened += 1;
            }
            (Err(error), Some("reject" | "open_or_reject")) => {
                assert_one_line(name, &error.to_string());
                assert_eq!(error.exit_code(), 2, "{name}");
                refused += 1;
            }
            (found, expected) => panic!("{name}: expected {expected:?}, found {found:?}"),
        }
    }
    assert!(
        opened > 50 && refused > 5,
        "{opened} opened, {refused} refused"
    );
}

fn check_entry(name: &str, entry: &Value, source: &Source) {
    let number = |key: &str| {
        entry[key]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: no {key}"))
    };
    let in_feet = entry["sample_meaning"] == "US survey foot";
    let metres = if in_feet { 1200.0 / 3937.0 } else { 1.0 };
    let (mut low, mut voids) = (number("min") * metres, number("nodata_count"));
    if name == "dem_unfinished.tif" {
        // The index counts SRTM's voids, which the file does not declare, as heights.
        assert!((low, voids) == (-32768.0, 0.0) && source.info.min_m > -1000.0);
        (low, voids) = (source.info.min_m, 282.0);
    }
    let size = (number("width"), number("height"));
    let found = (
        source.ground.whole().unwrap().width.into(),
        source.ground.whole().unwrap().height.into(),
    );
    assert_eq!(size, found, "{name}");
    let info = &source.info;
    // The index holds 32-bit floats; grids in text are read more exactly.
    let high = number("max") * metres;
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-4;
    let range = format!("{name}: {} to {} m", info.min_m, info.max_m);
    assert!(near(info.min_m, low) && near(info.max_m, high), "{range}");
    assert_eq!(info.voids as f64, voids, "{name}");
    let (lowest, highest) = source.ground.range();
    let half = source.step_m * 0.501;
    let off = |units: i32, height: f64| (f64::from(units) * source.step_m - height).abs();
    assert!(
        off(lowest, low) <= half && off(highest, high) <= half,
        "{range}"
    );
}

fn assert_one_line(name: &str, message: &str) {
    assert!(message.contains(name), "{message}");
    assert!(
        message.contains("expected") && !message.contains('\n'),
        "{message}"
    );
}

#[test]
fn what_could_be_misread_is_refused_until_it_is_said() {
    let Some(folder) = data_folder() else { return };
    let hints = [
        ("terrarium_13-4096-2724.png", "--encoding terrarium"),
        (
            "derived_jacksboro_3band_planarseparate_int16.tif",
            "--band 1 to 3",
        ),
        ("rgb_16bit.png", "--band 1 to 3"),
        ("derived_deadsea_601x401_le.r32", "--raw-size"),
        ("derived_squared129_rotated30_f32.tif", "rotated"),
        ("rasterio_corrupt.tif", "bands"),
    ];
    for (name, hint) in hints {
        let path = folder.join(name);
        let message = match load(&path, &ImportOptions::default()) {
            Ok(_) => panic!("{name} was read"),
            Err(error) => error.to_string(),
        };
        assert_one_line(name, &message);
        assert!(message.contains(hint), "{message}");
    }
}

#[test]
fn neighbouring_tiles_meet_without_a_seam() {
    let Some(folder) = data_folder() else { return };
    let [west, east] = ["N49W124.tif", "N49W123.tif"].map(|name| folder.join(name));
    let options = ImportOptions::default();
    let (whole, lint) = load_tiles(&[east.clone(), west.clone()], &options).unwrap();
    assert_eq!(whole.ground.size(), [2401, 1201]);
    assert_eq!(whole.info.files, ["N49W124.tif", "N49W123.tif"]);
    // The shared column has the same heights and the same voids in both.
    assert!(lint.warnings.iter().all(|w| w.about == "voids"), "{lint:?}");
    let (turned, _) = load_tiles(&[west.clone(), east.clone()], &options).unwrap();
    assert_eq!(
        turned.ground.whole().unwrap(),
        whole.ground.whole().unwrap()
    );
    let [west, east] = [west, east].map(|path| load(&path, &options).unwrap());
    assert!(whole.info.voids < west.info.voids + east.info.voids);
    let [column, last] = [1200, 1200];
    let known = (0..1201).filter(|z| {
        let heights = [
            west.ground.whole().unwrap().at(last, *z),
            east.ground.whole().unwrap().at(0, *z),
        ];
        heights[0] == heights[1] && heights[0] == whole.ground.whole().unwrap().at(column, *z)
    });
    // Voids on the seam are filled from more rim than each tile has alone.
    assert!(known.count() > 1100);
    let message = load_tiles(
        &[folder.join("N43E007.hgt"), folder.join("aletsch.tif")],
        &options,
    )
    .unwrap_err()
    .to_string();
    assert_one_line("aletsch.tif", &message);
    assert!(message.contains("coordinate system"), "{message}");
}

/// What is kept on disk is what would be kept in memory, to the last height and warning.
#[test]
fn heights_do_not_depend_on_where_they_lie() {
    let Some(folder) = data_folder() else { return };
    let crop = Some(Crop {
        x: 3,
        z: 5,
        width: 31,
        height: 29,
    });
    let cases = [
        ("N43E007.hgt", ImportOptions::default()),
        ("N49W123.tif", ImportOptions::default()),
        ("reduced_Gironde.tif", ImportOptions::default()),
        ("derived_rmnp_southup_int16.tif", ImportOptions::default()),
        (
            "derived_topobathy_bigtiff_tiled_deflate_point_f32.tif",
            ImportOptions::default(),
        ),
        ("derived_jacksboro_float64.tif", ImportOptions::default()),
        ("zSW3.asc", ImportOptions::default()),
        ("aizuwakamatsu_none.png", ImportOptions::default()),
        ("heightmap_16bit.exr", ImportOptions::default()),
        ("derived_nice_513x513_le.r16", ImportOptions::default()),
        ("derived_alps_300x300_le_nan.r32", ImportOptions::default()),
        (
            "tin-terrain_valid_raster.tif",
            ImportOptions {
                crop,
                ..Default::default()
            },
        ),
        (
            "hugo_site.asc",
            ImportOptions {
                voids: VoidFill::Nearest,
                height_step_m: Some(0.25),
                ..Default::default()
            },
        ),
        (
            "tin-terrain_valid_raster.tif",
            ImportOptions {
                resample_m: Some(3.0),
                ..Default::default()
            },
        ),
    ];
    for (name, options) in cases {
        let read = |in_memory| {
            let options = ImportOptions {
                in_memory: Some(in_memory),
                ..options.clone()
            };
            load_tiles(&[folder.join(name)], &options).unwrap_or_else(|e| panic!("{e}"))
        };
        let ((disk, told), (memory, told_too)) = (read(0), read(u64::MAX));
        let heights = disk.ground.whole().unwrap();
        assert_eq!(heights, memory.ground.whole().unwrap(), "{name}");
        assert_eq!(
            (disk.info, disk.step_m),
            (memory.info, memory.step_m),
            "{name}"
        );
        assert_eq!(told.warnings, told_too.warnings, "{name}");
        // What is said of the heights is what a look at all of them finds.
        for ground in [disk.ground, memory.ground] {
            assert_eq!(ground.range(), Ground::range(&heights), "{name}");
            assert_eq!(ground.summit(), Ground::summit(&heights), "{name}");
        }
    }
}

#[test]
fn a_look_says_what_reading_says_and_reading_tells_how_far_it_is() {
    let Some(folder) = data_folder() else { return };
    let path = folder.join("N49W123.tif");
    let options = ImportOptions::default();
    let mut seen = Vec::new();
    let mut report = |done, total| {
        seen.push((done, total));
        Ok(())
    };
    let paths = [path];
    let looked = look(&paths, &options, &mut Progress::new(&mut report)).unwrap();
    let (_, told) = load_tiles(&paths, &options).unwrap();
    assert_eq!(looked.warnings, told.warnings);
    assert_eq!((looked.min_m, looked.max_m), (told.min_m, told.max_m));
    assert_eq!(seen.last(), Some(&(1201 * 1201, 1201 * 1201)));
    assert!(seen.windows(2).all(|pair| pair[0].0 <= pair[1].0));
}

#[test]
fn a_folder_that_cannot_hold_the_heights_is_named() {
    let Some(folder) = data_folder() else { return };
    let options = ImportOptions {
        scratch: Some("/nowhere".into()),
        in_memory: Some(0),
        ..Default::default()
    };
    let message = load(&folder.join("N44W072.hgt"), &options)
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("/nowhere: cannot make a temporary file"),
        "{message}"
    );
    assert!(!message.contains('\n'), "{message}");
}

#[test]
fn the_same_raster_reads_the_same_in_every_encoding() {
    let Some(folder) = data_folder() else { return };
    let load = |name: &str| load(&folder.join(name), &ImportOptions::default()).unwrap();
    let tiff = load("derived_jacksboro_bigendian_lzw_pred2_int16.tif");
    let png = load("derived_jacksboro_gray16_adam7.png");
    assert_eq!(tiff.ground.whole().unwrap(), png.ground.whole().unwrap());
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
        (
            source.ground.whole().unwrap().width,
            source.ground.whole().unwrap().height
        ),
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
    let (low, high) = source.ground.range();
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

/// Degrees and Mercator's metres are checked by what the tests' Earth, a sphere, makes of them:
/// within half a percent.
fn check_spacing(name: &str, source: &Source, declared: [f64; 2]) {
    let crs = source.info.crs.as_deref();
    let geographic = matches!(crs, Some("EPSG:4326" | "EPSG:4269"));
    if !geographic && crs != MERCATOR {
        assert_eq!(source.spacing_m, declared, "{name}");
        return;
    }
    let transform = source.info.transform.unwrap();
    let centre =
        transform[3] + transform[5] * f64::from(source.ground.whole().unwrap().height - 1) / 2.0;
    let (degree_m, radius_m) = (111_195.0, 6_378_137.0);
    let expected = if geographic {
        let cos = centre.to_radians().cos();
        [declared[0] * degree_m * cos, declared[1] * degree_m]
    } else {
        declared.map(|metres| metres / (centre / radius_m).cosh())
    };
    for (found, expected) in source.spacing_m.iter().zip(expected) {
        let ratio = found / expected;
        assert!(
            (ratio - 1.0).abs() < 0.005,
            "{name}: {found} m for {expected} m"
        );
    }
}
