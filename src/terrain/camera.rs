//! Where the eye is and what it sees.
//!
//! A pose is what people type and copy; a viewpoint is what level of detail and culling need of
//! it. Positions are f64 metres of the world; what goes to the GPU is relative to the eye.

use glam::camera::rh::{proj::directx::perspective_infinite_reverse, view::look_to_mat4};
use glam::{DVec3, Mat4, Vec3, dvec3};
use std::str::FromStr;

/// Nearest distance drawn, in metres.
pub const NEAR_M: f32 = 0.1;

/// A place and a direction: yaw 0 looks north and 90 east, pitch 90 looks up; degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    pub eye: DVec3,
    pub yaw_deg: f64,
    pub pitch_deg: f64,
}

impl Pose {
    pub fn forward(&self) -> DVec3 {
        let (yaw, pitch) = (self.yaw_deg.to_radians(), self.pitch_deg.to_radians());
        dvec3(
            yaw.sin() * pitch.cos(),
            pitch.sin(),
            -yaw.cos() * pitch.cos(),
        )
    }

    /// Level with the ground, to the right of where the eye looks.
    pub fn right(&self) -> DVec3 {
        let yaw = self.yaw_deg.to_radians();
        dvec3(yaw.cos(), 0.0, yaw.sin())
    }

    /// Looks from `eye` at a point; straight down or up keeps north on top.
    pub fn looking_at(eye: DVec3, target: DVec3) -> Self {
        let to = target - eye;
        let level = to.x.hypot(to.z);
        let yaw_deg = if level > 0.0 {
            to.x.atan2(-to.z).to_degrees()
        } else {
            0.0
        };
        Pose {
            eye,
            yaw_deg,
            pitch_deg: to.y.atan2(level).to_degrees(),
        }
    }
}

impl std::fmt::Display for Pose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DVec3 { x, y, z } = self.eye;
        let [x, y, z, yaw, pitch] = [x, y, z, self.yaw_deg, self.pitch_deg].map(short);
        write!(f, "{x},{y},{z},{yaw},{pitch}")
    }
}

/// A millionth is enough to draw the same picture; zeros at the end are noise.
fn short(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A pose whose height may be counted from the ground: `X,Y,Z,YAW,PITCH` with Y as `+N`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CameraArg {
    pub pose: Pose,
    pub above_ground: bool,
}

impl FromStr for CameraArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is not a camera; expected X,Y,Z,YAW,PITCH in metres and degrees, Y as +N for N metres above ground and sea"
            )
        };
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let numbers: Vec<f64> = fields
            .iter()
            .map_while(|field| field.parse().ok())
            .collect();
        let [x, y, z, yaw_deg, pitch_deg] = numbers[..] else {
            return Err(wrong());
        };
        // Beyond this even f64 metres are coarse; the bound keeps integers in the shader safe.
        let sound = numbers.iter().all(|v| v.is_finite() && v.abs() <= 1e8) && fields.len() == 5;
        if !sound || pitch_deg.abs() > 90.0 {
            return Err(wrong());
        }
        let pose = Pose {
            eye: dvec3(x, y, z),
            yaw_deg,
            pitch_deg,
        };
        Ok(CameraArg {
            pose,
            above_ground: fields[1].starts_with('+'),
        })
    }
}

/// What level of detail and culling need of a camera.
#[derive(Clone, Copy, Debug)]
pub struct Viewpoint {
    pub eye: DVec3,
    /// Pixels that a radian covers in the middle of the picture.
    pub pixels_per_radian: f64,
    /// Inward normals of the planes through the eye: left, right, bottom, top, and straight ahead.
    planes: [DVec3; 5],
    /// Clip space from positions relative to the eye.
    pub clip_from_eye: Mat4,
    forward: DVec3,
    right: DVec3,
    /// Half the picture at distance 1, [x, y].
    half: [f64; 2],
}

/// A camera that is held in its place while another one looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldCamera {
    pub pose: Pose,
    /// Whether what it does not see is left out.
    pub culls: bool,
}

/// Two viewpoints of a frame: how it looks, and what is drawn of the world and how fine. They are
/// the same unless the second is held.
#[derive(Clone, Copy, Debug)]
pub struct Views {
    pub draw: Viewpoint,
    pub lod: Viewpoint,
    /// What the second does not see is left out, even where the first one would.
    pub lod_culls: bool,
}

impl Views {
    /// False only when no part of the box is to be drawn.
    pub fn sees(&self, bounds: &Bounds) -> bool {
        match self.lod_culls {
            true => self.lod.sees(bounds),
            false => self.draw.sees(bounds),
        }
    }

    /// Whether what is drawn is chosen from elsewhere.
    pub fn is_held(&self) -> bool {
        self.draw.eye != self.lod.eye
    }
}

impl Viewpoint {
    /// `fov_deg` is the vertical field of view, `size` the picture in pixels.
    pub fn new(pose: &Pose, fov_deg: f64, size: [u32; 2]) -> Self {
        let half_y = (fov_deg.to_radians() / 2.0).tan();
        let aspect = size[0] as f64 / size[1] as f64;
        let half_x = half_y * aspect;
        let (forward, right) = (pose.forward(), pose.right());
        let up = right.cross(forward);
        let planes = [
            right + forward * half_x,
            -right + forward * half_x,
            up + forward * half_y,
            -up + forward * half_y,
            forward,
        ];
        let projection =
            perspective_infinite_reverse(fov_deg.to_radians() as f32, aspect as f32, NEAR_M);
        let view = look_to_mat4(Vec3::ZERO, forward.as_vec3(), up.as_vec3());
        Viewpoint {
            eye: pose.eye,
            pixels_per_radian: size[1] as f64 / (2.0 * half_y),
            planes: planes.map(DVec3::normalize),
            clip_from_eye: projection * view,
            forward,
            right,
            half: [half_x, half_y],
        }
    }

    /// False only when no part of the box can be seen.
    pub fn sees(&self, bounds: &Bounds) -> bool {
        let (low, high) = (bounds.min - self.eye, bounds.max - self.eye);
        self.planes.iter().all(|normal| {
            let furthest = DVec3::select(normal.cmpge(DVec3::ZERO), high, low);
            normal.dot(furthest) >= 0.0
        })
    }

    /// The direction through a point of the picture, 0 to 1 from its top left corner; its part
    /// straight ahead is 1.
    pub fn ray(&self, u: f64, v: f64) -> DVec3 {
        let up = self.right.cross(self.forward);
        self.forward
            + self.right * ((2.0 * u - 1.0) * self.half[0])
            + up * ((1.0 - 2.0 * v) * self.half[1])
    }
}

/// A box in world metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    pub min: DVec3,
    pub max: DVec3,
}

impl Bounds {
    pub fn distance(&self, from: DVec3) -> f64 {
        (from - from.clamp(self.min, self.max)).length()
    }

    /// The distance to the corner that is furthest away.
    pub fn farthest(&self, from: DVec3) -> f64 {
        (from - self.min)
            .abs()
            .max((from - self.max).abs())
            .length()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaw_turns_from_north_to_east() {
        let pose = |yaw_deg, pitch_deg| Pose {
            eye: DVec3::ZERO,
            yaw_deg,
            pitch_deg,
        };
        assert!(pose(0.0, 0.0).forward().abs_diff_eq(-DVec3::Z, 1e-12));
        assert!(pose(90.0, 0.0).forward().abs_diff_eq(DVec3::X, 1e-12));
        assert!(pose(0.0, 90.0).forward().abs_diff_eq(DVec3::Y, 1e-12));
        let looking = Pose::looking_at(dvec3(5.0, 10.0, 5.0), dvec3(15.0, 0.0, 5.0));
        assert!((looking.yaw_deg - 90.0).abs() < 1e-9 && (looking.pitch_deg + 45.0).abs() < 1e-9);
    }

    #[test]
    fn a_camera_is_read_as_it_is_written() {
        let arg: CameraArg = "1.5,+20,-3,270,-12.25".parse().unwrap();
        assert!(arg.above_ground);
        assert_eq!(arg.pose.to_string(), "1.5,20,-3,270,-12.25");
        for bad in [
            "",
            "1,2,3,4",
            "1,2,3,4,5,6",
            "1,2,3,x,5",
            "1,2,3,4,91",
            "nan,2,3,4,5",
            "inf,0,0,0,0",
        ] {
            assert!(bad.parse::<CameraArg>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_frustum_agrees_with_the_projection() {
        let pose = Pose {
            eye: dvec3(100.0, 50.0, -20.0),
            yaw_deg: 37.0,
            pitch_deg: -20.0,
        };
        let view = Viewpoint::new(&pose, 60.0, [1280, 720]);
        let (mut seen, mut unseen) = (0, 0);
        for i in 0..2000 {
            let f = |k: i32| ((i * k) % 199) as f64 - 99.0;
            let p = pose.eye + dvec3(f(7), f(31), f(57));
            let clip = view.clip_from_eye * (p - pose.eye).as_vec3().extend(1.0);
            let inside =
                clip.w > 0.5 && clip.x.abs() < clip.w * 0.999 && clip.y.abs() < clip.w * 0.999;
            let outside = clip.w < -0.5
                || clip.x.abs() > clip.w.abs() * 1.001
                || clip.y.abs() > clip.w.abs() * 1.001;
            let sees = view.sees(&Bounds { min: p, max: p });
            assert!(!inside || sees);
            assert!(!outside || !sees);
            seen += inside as i32;
            unseen += outside as i32;
        }
        assert!(seen > 50 && unseen > 50);
    }

    #[test]
    fn a_ray_meets_the_pixel_it_was_made_for() {
        let pose = Pose {
            eye: DVec3::ZERO,
            yaw_deg: 120.0,
            pitch_deg: 15.0,
        };
        let view = Viewpoint::new(&pose, 50.0, [640, 360]);
        for (u, v) in [(0.0, 0.0), (0.25, 0.75), (1.0, 0.5)] {
            let clip = view.clip_from_eye * view.ray(u, v).as_vec3().extend(1.0);
            let (x, y) = (clip.x / clip.w, clip.y / clip.w);
            assert!(
                (x as f64 - (2.0 * u - 1.0)).abs() < 1e-5
                    && (y as f64 - (1.0 - 2.0 * v)).abs() < 1e-5
            );
        }
    }
}
