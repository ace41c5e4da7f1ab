//! Small files from the field, each of a kind that once came out wrong without a word.
//!
//! The right answers are those of the formula that all were made by, and of GDAL. Files that the
//! tests of `import` write for themselves cover each kind too.

use std::path::PathBuf;

use highfell::import::{ImportOptions, Lint, load_tiles};
use highfell::source::Source;

use crate::common::{Home, data_folder};

const SIZE: [u32; 2] = [90, 70];
const US_FOOT_M: f64 = 1200.0 / 3937.0;

/// Metres at a sample of all of them.
fn height(x: u32, z: u32) -> f64 {
    800.0 + 80.0 * (f64::from(x) / 17.0).sin() + 60.0 * (f64::from(z) / 13.0).cos()
}

fn file(name: &str) -> Option<PathBuf> {
    data_folder().map(|folder| folder.join(name))
}

fn read(path: PathBuf) -> (Source, Lint) {
    load_tiles(&[path], &ImportOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Compares all heights; `unit_m` is that of the file.
fn assert_heights(source: &Source, unit_m: f64, whole: bool) {
    assert_eq!(source.ground.size(), SIZE);
    let found = source.ground.whole().unwrap();
    for (x, z) in (0..SIZE[1]).flat_map(|z| (0..SIZE[0]).map(move |x| (x, z))) {
        let metres = f64::from(found.at(x.into(), z.into())) * source.step_m;
        let exact = height(x, z);
        let expected = unit_m * if whole { exact.trunc() } else { exact };
        let room = if whole { 1e-9 } else { source.step_m };
        assert!(
            (metres - expected).abs() <= room,
            "{x}, {z}: {metres} for {expected}"
        );
    }
}

fn near(found: [f64; 2], expected: f64, share: f64) -> bool {
    found.iter().all(|f| (f / expected - 1.0).abs() < share)
}

#[test]
fn tiles_at_the_edge_are_read_whole() {
    let Some(path) = file("field_lzw_edge_tile.tif") else {
        return;
    };
    let map = read(path).0.ground.whole().unwrap();
    assert_eq!([map.width, map.height], SIZE);
    assert_eq!(map.heights[..5], [260, 270, 278, 283, 296]);
    // Sums of what GDAL reads, one of them by place.
    let heights = || map.heights.iter().map(|height| i64::from(*height));
    let by_place = heights()
        .zip((0..1009).cycle())
        .map(|(height, i)| height * i);
    assert_eq!(
        (heights().sum::<i64>(), by_place.sum::<i64>()),
        (1_335_324, 648_649_548)
    );
}

#[test]
fn feet_belong_to_the_code() {
    for (name, unit_m) in [
        ("field_compound_feet.tif", US_FOOT_M),
        ("field_feet_geotiff11.tif", 1.0),
    ] {
        let Some(path) = file(name) else { return };
        let (source, _) = read(path);
        assert!(
            near(source.spacing_m, 30.0 * US_FOOT_M, 1e-6),
            "{:?}",
            source.spacing_m
        );
        assert_heights(&source, unit_m, true);
    }
}

#[test]
fn a_system_of_ones_own_is_named_and_comes_back() {
    let Some(path) = file("field_user_defined_lcc.tif") else {
        return;
    };
    let (source, _) = read(path.clone());
    let crs = source.info.crs.as_deref().unwrap();
    assert!(crs.contains("Lambert conformal conic"), "{crs}");
    let home = Home::new();
    home.write("own.tif", std::fs::read(path).unwrap());
    home.succeed(&["compile", "own.tif", "-o", "own.hfw"]);
    home.succeed(&["export", "own.hfw", "--heights", "back.tif"]);
    let (back, _) = read(home.work().join("back.tif"));
    assert_eq!(back.info.crs, source.info.crs);
    assert_eq!(back.info.geo_keys, source.info.geo_keys);
    assert_eq!(back.spacing_m, source.spacing_m);
    assert_heights(&back, 1.0, true);
}

#[test]
fn web_mercator_is_brought_to_scale_and_that_is_said() {
    let Some(path) = file("field_web_mercator.tif") else {
        return;
    };
    let (source, lint) = read(path);
    assert!(
        near(source.spacing_m, 22.2, 0.005),
        "{:?}",
        source.spacing_m
    );
    let told = lint.warnings.iter().find(|w| w.about == "scale").unwrap();
    assert!(
        told.text.contains("30.00") && told.text.contains("22.2"),
        "{told:?}"
    );
    assert_heights(&source, 1.0, true);
}

#[test]
fn undeclared_voids_are_told_with_count_place_and_flag() {
    for (name, count, number) in [
        (
            "field_undeclared_block.tif",
            "20 samples of -9999",
            "--nodata -9999",
        ),
        (
            "field_spike_pair.tif",
            "2 samples of 32767",
            "--nodata 32767",
        ),
        ("field_zero_frame.tif", "samples of 0", "--nodata 0"),
    ] {
        let Some(path) = file(name) else { return };
        let (_, lint) = read(path);
        let told: Vec<_> = lint
            .warnings
            .iter()
            .filter(|w| w.about == "undeclared")
            .collect();
        assert_eq!(told.len(), 1, "{name}: {:?}", lint.warnings);
        assert!(told[0].text.contains(count), "{told:?}");
        assert!(
            told[0].text.contains("columns") && told[0].pass.contains(number),
            "{told:?}"
        );
        let misled = ["steep", "spikes", "relative"];
        assert!(
            !lint.warnings.iter().any(|w| misled.contains(&w.about)),
            "{name}"
        );
    }
}

#[test]
fn formats_that_people_bring_are_opened() {
    for (name, step) in [
        ("field_lerc.tif", false),
        ("field_grid.flt", false),
        ("field_ehdr.bil", false),
    ] {
        let Some(path) = file(name) else { return };
        let (source, _) = read(path);
        assert_eq!(source.spacing_m, [30.0; 2], "{name}");
        assert_heights(&source, 1.0, step);
    }
    let Some(folder) = data_folder() else { return };
    let (bil, _) = read(folder.join("field_ehdr.bil"));
    assert_eq!(bil.info.crs.as_deref(), Some("WGS_1984_UTM_Zone_32N"));
    let (voids, _) = read(folder.join("field_nodata_null.asc"));
    assert_eq!((voids.ground.size(), voids.info.voids), ([15, 12], 15));
    let (commas, lint) = read(folder.join("field_comma.asc"));
    assert_eq!((commas.ground.size(), commas.info.voids), ([15, 12], 0));
    assert!(lint.warnings.iter().any(|w| w.about == "commas"));
}

#[test]
fn a_scale_without_use_is_refused_and_nothing_is_written() {
    let Some(path) = file("field_scale_1e-12.tif") else {
        return;
    };
    let home = Home::new();
    home.write("x.tif", std::fs::read(path).unwrap());
    let before = home.names();
    let run = home.run(&["compile", "x.tif", "-o", "x.hfw"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("--height-scale"), "{run:?}");
    assert_eq!(home.names(), before);
}
