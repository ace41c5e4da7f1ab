//! The way of a camera through time: recorded, round a place, or straight on.
//!
//! A flight has one pose at least, at times that grow; between two it goes evenly, turning the
//! short way round. Before the first and after the last it rests.

use super::camera::Pose;
use glam::DVec3;
use serde::{Deserialize, Serialize};

/// Where the camera was at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    pub seconds: f64,
    pub pose: Pose,
}

/// The way of a camera.
#[derive(Clone, Debug, PartialEq)]
pub struct Flight {
    points: Vec<Waypoint>,
}

/// A flight as it is written down: `camera` as `--camera` takes it.
#[derive(Serialize, Deserialize)]
struct Written {
    highfell_flight: u32,
    points: Vec<WrittenPoint>,
}

#[derive(Serialize, Deserialize)]
struct WrittenPoint {
    seconds: f64,
    camera: String,
}

/// What is written down today.
const VERSION: u32 = 1;
/// A flight of hours at every frame.
const MOST_POINTS: usize = 10_000_000;

impl Flight {
    /// None where there is no point, or where times do not grow.
    pub fn new(points: Vec<Waypoint>) -> Option<Self> {
        let grow = points
            .windows(2)
            .all(|pair| pair[0].seconds < pair[1].seconds);
        let finite = points.iter().all(|point| point.seconds.is_finite());
        (!points.is_empty() && grow && finite).then_some(Flight { points })
    }

    /// Once round a place that the camera looks at, clockwise seen from above.
    pub fn orbit(start: &Pose, around: DVec3, seconds: f64, steps: usize) -> Self {
        let from = start.eye - around;
        let steps = steps.max(1);
        let points = (0..=steps).map(|step| {
            let share = step as f64 / steps as f64;
            let (sin, cos) = (share * std::f64::consts::TAU).sin_cos();
            let to = DVec3::new(
                from.x * cos - from.z * sin,
                from.y,
                from.x * sin + from.z * cos,
            );
            Waypoint {
                seconds: seconds * share,
                pose: Pose::looking_at(around + to, around),
            }
        });
        Flight {
            points: points.collect(),
        }
    }

    /// Level and straight on from a pose, at least `clearance_m` above the ground, in gentle rises
    /// and falls that begin up to two seconds ahead. `ground_m` gives the height of the ground.
    pub fn straight<E>(
        start: &Pose,
        metres_per_second: f64,
        seconds: f64,
        clearance_m: f64,
        mut ground_m: impl FnMut(f64, f64) -> Result<f64, E>,
    ) -> Result<Self, E> {
        /// Samples a second.
        const RATE: usize = 20;
        let forward = Pose {
            pitch_deg: 0.0,
            ..*start
        }
        .forward();
        let count = (seconds * RATE as f64).ceil() as usize + 1;
        let at = |i: usize| i as f64 / RATE as f64;
        let place = |i: usize| start.eye + forward * (metres_per_second * at(i));
        let ground: Result<Vec<f64>, E> = (0..count)
            .map(|i| ground_m(place(i).x, place(i).z))
            .collect();
        // Each mean is over highest places that all see this one, so it is no lower.
        let highest = over_windows(&ground?, RATE, |window| {
            window.iter().copied().fold(f64::MIN, f64::max)
        });
        let smooth = over_windows(&highest, RATE, |window| {
            window.iter().sum::<f64>() / window.len() as f64
        });
        let points = smooth.into_iter().enumerate().map(|(i, ground_m)| {
            let eye = place(i).with_y(ground_m + clearance_m);
            Waypoint {
                seconds: at(i),
                pose: Pose { eye, ..*start },
            }
        });
        Ok(Flight {
            points: points.collect(),
        })
    }

    pub fn seconds(&self) -> f64 {
        self.points[self.points.len() - 1].seconds - self.points[0].seconds
    }

    /// The pose so long after the first.
    pub fn at(&self, seconds: f64) -> Pose {
        let seconds = self.points[0].seconds + seconds;
        let next = self
            .points
            .partition_point(|point| point.seconds <= seconds);
        let Some(before) = next.checked_sub(1) else {
            return self.points[0].pose;
        };
        let a = &self.points[before];
        let Some(b) = self.points.get(next) else {
            return a.pose;
        };
        let share = (seconds - a.seconds) / (b.seconds - a.seconds);
        let turn = (b.pose.yaw_deg - a.pose.yaw_deg + 180.0).rem_euclid(360.0) - 180.0;
        Pose {
            eye: a.pose.eye.lerp(b.pose.eye, share),
            yaw_deg: a.pose.yaw_deg + turn * share,
            pitch_deg: a.pose.pitch_deg + (b.pose.pitch_deg - a.pose.pitch_deg) * share,
        }
    }

    /// As text that [`Flight::from_json`] reads.
    pub fn to_json(&self) -> String {
        let points = self.points.iter().map(|point| WrittenPoint {
            seconds: point.seconds,
            camera: point.pose.to_string(),
        });
        let written = Written {
            highfell_flight: VERSION,
            points: points.collect(),
        };
        serde_json::to_string_pretty(&written).expect("plain data")
    }

    /// What is wrong with the text, in a few words, where it is no flight.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let written: Written =
            serde_json::from_str(text).map_err(|error| format!("is no flight ({error})"))?;
        if written.highfell_flight != VERSION {
            let version = written.highfell_flight;
            return Err(format!(
                "is a flight of version {version}; expected {VERSION}"
            ));
        }
        if written.points.len() > MOST_POINTS {
            return Err(format!("has more than {MOST_POINTS} points"));
        }
        let point = |point: &WrittenPoint| {
            let camera: super::camera::CameraArg = point.camera.parse()?;
            if camera.above_ground {
                return Err("a flight's cameras have no +N".to_owned());
            }
            Ok(Waypoint {
                seconds: point.seconds,
                pose: camera.pose,
            })
        };
        let points: Result<Vec<Waypoint>, String> = written.points.iter().map(point).collect();
        Flight::new(points?).ok_or_else(|| "has no points, or times that do not grow".into())
    }
}

/// A value of the numbers up to `reach` before and after each.
fn over_windows(numbers: &[f64], reach: usize, value: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let window = |i: usize| {
        let end = (i + reach + 1).min(numbers.len());
        value(&numbers[i.saturating_sub(reach)..end])
    };
    (0..numbers.len()).map(window).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::dvec3;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn pose(x: f64, yaw_deg: f64) -> Pose {
        Pose {
            eye: dvec3(x, 10.0, -x),
            yaw_deg,
            pitch_deg: -5.0,
        }
    }

    fn flight(points: &[(f64, Pose)]) -> Option<Flight> {
        let point = |&(seconds, pose)| Waypoint { seconds, pose };
        Flight::new(points.iter().map(point).collect())
    }

    #[test]
    fn between_two_points_it_goes_evenly_and_turns_the_short_way() {
        let flight = flight(&[(5.0, pose(0.0, 350.0)), (7.0, pose(20.0, 10.0))]).unwrap();
        assert_eq!(flight.seconds(), 2.0);
        assert_eq!(flight.at(-1.0), pose(0.0, 350.0));
        assert_eq!(flight.at(1.0), pose(10.0, 360.0));
        assert_eq!(flight.at(0.5), pose(5.0, 355.0));
        assert_eq!(flight.at(9.0), pose(20.0, 10.0));
    }

    #[test]
    fn times_that_do_not_grow_are_no_flight() {
        assert!(flight(&[]).is_none());
        assert!(flight(&[(1.0, pose(0.0, 0.0)), (1.0, pose(1.0, 0.0))]).is_none());
        assert!(flight(&[(f64::NAN, pose(0.0, 0.0))]).is_none());
    }

    #[test]
    fn what_is_no_flight_is_told_in_a_line() {
        let wrong = [
            ("", "is no flight"),
            (r#"{"highfell_flight": 2, "points": []}"#, "version 2"),
            (r#"{"highfell_flight": 1, "points": []}"#, "no points"),
            (
                r#"{"highfell_flight": 1, "points": [{"seconds": 0, "camera": "1,2"}]}"#,
                "not a camera",
            ),
            (
                r#"{"highfell_flight": 1, "points": [{"seconds": 0, "camera": "1,+2,3,0,0"}]}"#,
                "+N",
            ),
        ];
        for (text, expected) in wrong {
            let error = Flight::from_json(text).unwrap_err();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn an_orbit_keeps_its_distance_and_looks_at_its_middle() {
        let middle = dvec3(100.0, 5.0, 50.0);
        let start = Pose::looking_at(dvec3(100.0, 40.0, 150.0), middle);
        let orbit = Flight::orbit(&start, middle, 10.0, 400);
        let distance = start.eye.distance(middle);
        for i in 0..=100 {
            let pose = orbit.at(0.1 * f64::from(i));
            assert!((pose.eye.distance(middle) - distance).abs() < 0.05);
            let straight = (middle - pose.eye).normalize().dot(pose.forward());
            assert!(straight > 0.99999, "{straight}");
        }
        // From the south to the west first.
        assert!(orbit.at(2.5).eye.distance(dvec3(0.0, 40.0, 50.0)) < 1e-6);
        assert!(orbit.at(10.0).eye.distance(start.eye) < 1e-6);
    }

    #[test]
    fn a_straight_flight_stays_clear_of_the_ground() {
        let start = Pose {
            yaw_deg: 90.0,
            ..pose(7.0, 0.0)
        };
        let ground = |x: f64| {
            if (300.0..320.0).contains(&x) {
                80.0
            } else {
                5.0
            }
        };
        let flight = Flight::straight(&start, 50.0, 20.0, 100.0, |x, _| {
            Ok::<_, Infallible>(ground(x))
        });
        let flight = flight.unwrap();
        let mut last_m = flight.at(0.0).eye.y;
        for i in 0..=400 {
            let eye = flight.at(0.05 * f64::from(i)).eye;
            assert!((eye.x - 7.0 - 2.5 * f64::from(i)).abs() < 1e-6 && (eye.z + 7.0).abs() < 1e-6);
            assert!(eye.y >= ground(eye.x) + 100.0 - 1e-9, "{eye}");
            assert!((eye.y - last_m).abs() < 4.0, "a jump to {}", eye.y);
            last_m = eye.y;
        }
        assert_eq!(flight.at(0.0).eye.y, 105.0);
    }

    proptest! {
        #[test]
        fn a_flight_that_is_written_down_comes_back(points in prop::collection::vec((0.001f64..10.0, -1e6f64..1e6, 0.0f64..360.0), 1..50)) {
            let mut seconds = 0.0;
            let points: Vec<(f64, Pose)> = points.into_iter().map(|(step, x, yaw)| {
                seconds += step;
                // What is written has six places.
                let round = |v: f64| (v * 1e6).round() / 1e6;
                (seconds, pose(round(x), round(yaw)))
            }).collect();
            let flight = flight(&points).unwrap();
            prop_assert_eq!(Flight::from_json(&flight.to_json()).unwrap(), flight);
        }
    }
}
