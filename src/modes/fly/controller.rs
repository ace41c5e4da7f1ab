//! The fly camera: pure steps from keys and mouse to a pose.

use crate::terrain::camera::Pose;
use crate::world::Meta;
use glam::{DVec3, dvec3};

const DEGREES_A_PIXEL: f64 = 0.12;
const FASTER_A_NOTCH: f64 = 1.15;
const SPEED_RANGE_M_S: (f64, f64) = (0.5, 1e6);
/// Seconds in which the camera reaches most of a new speed.
const INERTIA_S: f64 = 0.08;

/// What is held down.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Right, up, forward; -1 to 1 each.
    pub motion: DVec3,
    pub fast: bool,
    pub slow: bool,
}

pub struct FlyCamera {
    pub pose: Pose,
    pub speed_m_s: f64,
    home: Pose,
    home_speed_m_s: f64,
    velocity: DVec3,
}

impl FlyCamera {
    pub fn new(pose: Pose, meta: &Meta) -> Self {
        let [width, depth] = meta.size_m();
        let speed_m_s = (width.max(depth) * 0.02).clamp(SPEED_RANGE_M_S.0, SPEED_RANGE_M_S.1);
        FlyCamera {
            pose,
            speed_m_s,
            home: pose,
            home_speed_m_s: speed_m_s,
            velocity: DVec3::ZERO,
        }
    }

    /// Moves for `seconds`; `floor_m` is the lowest height allowed at a place.
    pub fn advance(&mut self, held: &Held, seconds: f64, floor_m: impl Fn(f64, f64) -> f64) {
        let factor = if held.fast { 5.0 } else { 1.0 } * if held.slow { 0.2 } else { 1.0 };
        let wish = self.pose.right() * held.motion.x
            + DVec3::Y * held.motion.y
            + self.pose.forward() * held.motion.z;
        let wanted = wish.clamp_length_max(1.0) * self.speed_m_s * factor;
        let kept = (-seconds / INERTIA_S).exp();
        self.velocity = wanted + (self.velocity - wanted) * kept;
        if self.velocity.length() < self.speed_m_s * 1e-3 {
            self.velocity = DVec3::ZERO;
        }
        // Beyond this even f64 metres are coarse.
        let bound = dvec3(1e8, 1e8, 1e8);
        self.pose.eye = (self.pose.eye + self.velocity * seconds).clamp(-bound, bound);
        self.pose.eye.y = self
            .pose
            .eye
            .y
            .max(floor_m(self.pose.eye.x, self.pose.eye.z));
    }

    /// Turns by a motion of the mouse in pixels.
    pub fn turn(&mut self, dx: f64, dy: f64) {
        self.pose.yaw_deg = (self.pose.yaw_deg + dx * DEGREES_A_PIXEL).rem_euclid(360.0);
        self.pose.pitch_deg = (self.pose.pitch_deg - dy * DEGREES_A_PIXEL).clamp(-90.0, 90.0);
    }

    /// One notch of the wheel is fifteen per cent.
    pub fn change_speed(&mut self, notches: f64) {
        let speed = self.speed_m_s * FASTER_A_NOTCH.powf(notches);
        self.speed_m_s = speed.clamp(SPEED_RANGE_M_S.0, SPEED_RANGE_M_S.1);
    }

    pub fn go_home(&mut self) {
        self.pose = self.home;
        self.velocity = DVec3::ZERO;
    }

    pub fn reset_speed(&mut self) {
        self.speed_m_s = self.home_speed_m_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn camera() -> FlyCamera {
        let pose = Pose {
            eye: dvec3(0.0, 50.0, 0.0),
            yaw_deg: 90.0,
            pitch_deg: 0.0,
        };
        FlyCamera {
            pose,
            speed_m_s: 100.0,
            home: pose,
            home_speed_m_s: 100.0,
            velocity: DVec3::ZERO,
        }
    }

    fn ahead() -> Held {
        Held {
            motion: DVec3::Z,
            ..Held::default()
        }
    }

    #[test]
    fn forward_is_where_it_looks_and_home_is_where_it_began() {
        let mut camera = camera();
        for _ in 0..200 {
            camera.advance(&ahead(), 0.01, |_, _| f64::NEG_INFINITY);
        }
        let eye = camera.pose.eye;
        assert!(
            eye.x > 180.0 && eye.x < 200.0 && eye.z.abs() < 1e-6,
            "{eye}"
        );
        camera.go_home();
        assert_eq!(camera.pose.eye, dvec3(0.0, 50.0, 0.0));
    }

    #[test]
    fn shift_is_five_times_as_fast() {
        let distance = |fast| {
            let mut camera = camera();
            for _ in 0..500 {
                camera.advance(&Held { fast, ..ahead() }, 0.01, |_, _| f64::NEG_INFINITY);
            }
            camera.pose.eye.x
        };
        assert!((distance(true) / distance(false) - 5.0).abs() < 1e-6);
    }

    #[test]
    fn it_stays_above_the_floor_and_stops_when_nothing_is_held() {
        let mut camera = camera();
        camera.pose.pitch_deg = -45.0;
        for _ in 0..300 {
            camera.advance(&ahead(), 0.01, |x, _| x * 0.1);
            assert!(camera.pose.eye.y >= camera.pose.eye.x * 0.1);
        }
        for _ in 0..200 {
            camera.advance(&Held::default(), 0.01, |_, _| 0.0);
        }
        assert_eq!(camera.velocity, DVec3::ZERO);
    }

    #[test]
    fn looking_is_bounded_up_and_down_and_free_round() {
        let mut camera = camera();
        camera.turn(10_000.0, -10_000.0);
        assert!(camera.pose.pitch_deg == 90.0 && (0.0..360.0).contains(&camera.pose.yaw_deg));
        camera.change_speed(1e9);
        assert!(camera.speed_m_s <= 1e6);
        camera.reset_speed();
        assert_eq!(camera.speed_m_s, 100.0);
    }
}
