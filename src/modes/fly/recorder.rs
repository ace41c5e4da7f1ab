//! What the camera does by itself, and what is written down of it.

use crate::terrain::camera::Pose;
use crate::terrain::flight::{Flight, Waypoint};

/// Plays a flight until the user takes over, and records what is flown.
pub struct Recorder {
    playing: Option<Flight>,
    records: bool,
    flown: Vec<Waypoint>,
    /// When the first frame was.
    began_s: Option<f64>,
}

impl Recorder {
    pub fn new(playing: Option<Flight>, records: bool) -> Self {
        Recorder {
            playing,
            records,
            flown: Vec::new(),
            began_s: None,
        }
    }

    /// The pose of a flight that is played, until its end.
    pub fn played(&mut self, seconds: f64) -> Option<Pose> {
        let since_s = seconds - *self.began_s.get_or_insert(seconds);
        let pose = self.playing.as_ref()?.at(since_s);
        self.playing.take_if(|flight| since_s >= flight.seconds());
        Some(pose)
    }

    /// The user takes over.
    pub fn stop(&mut self) {
        self.playing = None;
    }

    pub fn note(&mut self, seconds: f64, pose: &Pose) {
        let is_later = self.flown.last().is_none_or(|last| seconds > last.seconds);
        if self.records && is_later {
            let pose = *pose;
            self.flown.push(Waypoint { seconds, pose });
        }
    }

    /// What was recorded, if anything.
    pub fn flight(self) -> Option<Flight> {
        Flight::new(self.flown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::dvec3;

    fn pose(x: f64) -> Pose {
        Pose {
            eye: dvec3(x, 0.0, 0.0),
            yaw_deg: 0.0,
            pitch_deg: 0.0,
        }
    }

    #[test]
    fn what_is_played_and_recorded_is_the_same_flight_later() {
        let points = [(0.0, 0.0), (2.0, 20.0)];
        let points = points.map(|(seconds, x)| Waypoint {
            seconds,
            pose: pose(x),
        });
        let flight = Flight::new(points.to_vec()).unwrap();
        let mut recorder = Recorder::new(Some(flight), true);
        for (seconds, x) in [(5.0, 0.0), (6.0, 10.0), (6.5, 15.0), (7.5, 20.0)] {
            let played = recorder.played(seconds).expect("it is played");
            assert_eq!(played, pose(x));
            recorder.note(seconds, &played);
            // The same frame twice is no flight.
            recorder.note(seconds, &played);
        }
        assert_eq!(recorder.played(7.6), None, "the end");
        let flown = recorder.flight().unwrap();
        assert_eq!((flown.seconds(), flown.at(1.25)), (2.5, pose(12.5)));
    }

    #[test]
    fn the_user_takes_over_and_nothing_is_recorded_unasked() {
        let points = vec![Waypoint {
            seconds: 0.0,
            pose: pose(1.0),
        }];
        let mut recorder = Recorder::new(Flight::new(points), false);
        recorder.note(0.0, &pose(1.0));
        recorder.stop();
        assert_eq!(recorder.played(0.0), None);
        assert_eq!(recorder.flight(), None);
    }
}
