//! `highfell bench`, and flights that are written down and flown again.

use serde_json::Value;

use crate::common::{Home, Outcome, rough_source, world_bytes};

const FLIGHT: &str = r#"{ "highfell_flight": 1, "points": [
    { "seconds": 0, "camera": "200,900,200,120,-30" },
    { "seconds": 2, "camera": "900,700,1500,150,-30" },
    { "seconds": 3, "camera": "1200,650,1700,200,-20" } ] }"#;

fn home() -> Home {
    let home = Home::new();
    let world = world_bytes(&rough_source(257, 193), &Default::default());
    home.write("rough.hfw", world);
    home.write("flight.json", FLIGHT);
    home
}

fn bench(home: &Home, flags: &[&str]) -> Value {
    let all = [
        "bench",
        "rough.hfw",
        "--adapter",
        "software",
        "--size",
        "160x90",
    ];
    let out = ["--json", "out.json", "--force"];
    let run = home.succeed(&[&all[..], flags, &out[..]].concat());
    assert!(run.stdout.contains("triangles"), "{run:?}");
    let text = std::fs::read_to_string(home.work().join("out.json")).expect("the JSON");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_bench_says_what_every_frame_took() {
    let home = home();
    let value = bench(&home, &["--play", "flight.json", "--frames", "30"]);
    for stage in ["select", "stream", "cull", "encode", "total"] {
        let ms = |share: &str| value["cpu_ms"][stage][share].as_f64().expect("a time");
        let shares = ["p50", "p95", "p99", "p999", "max"].map(ms);
        assert!(shares[0] > 0.0 && shares.is_sorted(), "{stage}: {shares:?}");
    }
    for pass in ["world", "total"] {
        assert!(value["gpu_ms"][pass]["p50"].as_f64().expect("a time") > 0.0);
    }
    for count in ["triangles", "draws", "patches_drawn"] {
        let [half, most] = ["p50", "max"].map(|share| value[count][share].as_u64());
        assert!(half > Some(0) && half <= most, "{count}");
    }
    assert_eq!(value["frames"], 30);
    assert_eq!(value["hole_pixels"], 0);
    let upload = &value["upload_bytes"];
    assert_eq!(upload["rest"], 0, "a frame at rest writes nothing");
    assert!(upload["max"].as_u64() > Some(0), "{upload}");
    let sum = |what: &str| -> u64 {
        let numbers = value[what].as_array().expect("numbers");
        numbers.iter().map(|n| n.as_u64().expect("a count")).sum()
    };
    assert!(sum("patches_drawn_by_level") >= 30);
    assert!(sum("neighbour_level_steps") > 0);
    assert!(value["largest_error_px"].as_f64() > Some(0.0));
    assert!(value["largest_pop_px"].is_f64() && value["hitches"].is_array());
}

#[test]
fn the_grid_takes_more_triangles_and_no_more_patches() {
    let home = home();
    // The first frame has all that it wants; later ones have what came in time.
    let frames = ["--orbit", "--frames", "1", "--no-holes"];
    let trees = bench(&home, &frames);
    let grid = bench(&home, &[&frames[..], &["--mesher", "grid"]].concat());
    let number = |value: &Value, what: &str| value[what]["max"].as_u64().expect("a count");
    assert!(number(&grid, "triangles") > number(&trees, "triangles"));
    assert_eq!(
        number(&grid, "patches_drawn"),
        number(&trees, "patches_drawn")
    );
    let meshers = [&trees, &grid].map(|value| value["mesher"].as_str());
    assert_eq!(meshers, [Some("static"), Some("grid")]);
    assert_eq!(trees["hole_pixels"], Value::Null, "not counted");
}

#[test]
fn a_straight_flight_is_flown_in_as_many_frames_as_asked() {
    let value = bench(&home(), &["--straight", "50", "--frames", "5"]);
    assert_eq!(
        (&value["frames"], &value["hole_pixels"]),
        (&5.into(), &0.into())
    );
}

#[test]
fn what_cannot_be_flown_is_one_line() {
    let home = home();
    home.write("broken.json", "{");
    home.write("out.json", "mine");
    let cases: [(&[&str], &str); 7] = [
        (&["bench", "rough.hfw"], "--orbit"),
        (&["bench", "rough.hfw", "--play", "no.json"], "no.json"),
        (
            &["bench", "rough.hfw", "--play", "broken.json"],
            "broken.json",
        ),
        (&["bench", "rough.hfw", "--play", "."], "regular file"),
        (
            &["bench", "rough.hfw", "--orbit", "--json", "out.json"],
            "--force",
        ),
        (
            &[
                "bench",
                "rough.hfw",
                "--orbit",
                "--json",
                "rough.hfw",
                "--force",
            ],
            "is read by",
        ),
        (&["fly", "rough.hfw", "--record", "new.json"], "display"),
    ];
    for (arguments, expected) in cases {
        let run: Outcome = home.run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(expected), "{arguments:?}: {run:?}");
    }
    assert_eq!(
        std::fs::read(home.work().join("out.json")).unwrap(),
        b"mine"
    );
}

#[test]
fn without_a_display_a_recorded_flight_leaves_its_pictures() {
    let home = home();
    home.succeed(&[
        "fly",
        "rough.hfw",
        "--play",
        "flight.json",
        "--adapter",
        "software",
    ]);
    let picture = |name: &str| {
        let path = home.work().join("highfell-pictures").join(name);
        image::open(path).expect("a picture").to_rgb8()
    };
    // The last one is what a shot from the last camera shows.
    let camera = ["--camera", "1200,650,1700,200,-20", "-o", "shot.png"];
    let shot = ["shot", "rough.hfw", "--adapter", "software"];
    home.succeed(&[&shot[..], &camera[..]].concat());
    let shot = image::open(home.work().join("shot.png")).unwrap().to_rgb8();
    // Rounding depends on where normals lie in their atlas.
    let like_shot = |name: &str| {
        let picture = picture(name);
        let mut pairs = picture.iter().zip(shot.iter());
        pairs.all(|(a, b)| a.abs_diff(*b) <= 2)
    };
    assert!(like_shot("flight-4.png"), "another picture");
    assert!(!like_shot("flight-1.png"), "the same picture");
}
