//! What a world holds, in the formats of other programs: meshes as OBJ, PLY and glTF, heights as
//! GeoTIFF, a patch as a figure in SVG.
//!
//! Values in, bytes out, to any writer: files are the caller's. All meshes are in metres, x east,
//! y up, z south, which is what glTF asks for; triangles run counter-clockwise from above.

mod colour;
pub mod figure;
pub mod geotiff;
mod glb;
mod obj;
mod outline;
mod ply;

use crate::terrain::surface::Surface;
use std::io::{Result, Write};
use std::path::Path;

/// A format of meshes, told by a file's ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeshFormat {
    Obj,
    Ply,
    Glb,
}

impl MeshFormat {
    /// The format that a file's name asks for.
    pub fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "obj" => Some(MeshFormat::Obj),
            "ply" => Some(MeshFormat::Ply),
            "glb" => Some(MeshFormat::Glb),
            _ => None,
        }
    }

    /// Writes a mesh; `title` says what it is, in a line.
    pub fn write(self, surface: &Surface, title: &str, out: &mut impl Write) -> Result<()> {
        let title: String = title.chars().filter(|c| !c.is_control()).collect();
        match self {
            MeshFormat::Obj => obj::write(surface, &title, out),
            MeshFormat::Ply => ply::write(surface, &title, out),
            MeshFormat::Glb => glb::write(surface, &title, out),
        }
    }
}

#[cfg(test)]
fn sample() -> Surface {
    use glam::dvec3;
    Surface {
        positions: vec![
            dvec3(0.0, 1.0, 0.0),
            dvec3(0.0, 1.0, 20.0),
            dvec3(10.0, 1.5, 0.0),
        ],
        normals: vec![dvec3(0.0, 1.0, 0.0); 3],
        triangles: vec![[0, 1, 2]],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_decides() {
        assert_eq!(MeshFormat::of(Path::new("a.OBJ")), Some(MeshFormat::Obj));
        assert_eq!(
            MeshFormat::of(Path::new("a.b/c.glb")),
            Some(MeshFormat::Glb)
        );
        assert_eq!(MeshFormat::of(Path::new("a.stl")), None);
        assert_eq!(MeshFormat::of(Path::new("ply")), None);
    }

    #[test]
    fn a_title_stays_in_its_line() {
        let mut bytes = Vec::new();
        MeshFormat::Obj
            .write(&sample(), "two\nlines", &mut bytes)
            .unwrap();
        assert!(bytes.starts_with(b"# twolines\n"));
    }
}
