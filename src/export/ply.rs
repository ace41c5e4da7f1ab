//! PLY, binary little endian: floats for vertices and normals, 32-bit indices.

use crate::terrain::surface::Surface;
use std::io::{Result, Write};

pub fn write(surface: &Surface, title: &str, out: &mut impl Write) -> Result<()> {
    let mut header = format!(
        "ply\nformat binary_little_endian 1.0\ncomment {title}\n\
         comment metres; x east, y up, z south\nelement vertex {}\n",
        surface.positions.len()
    );
    for name in ["x", "y", "z", "nx", "ny", "nz"] {
        header += &format!("property float {name}\n");
    }
    header += &format!(
        "element face {}\nproperty list uchar int vertex_indices\nend_header\n",
        surface.triangles.len()
    );
    out.write_all(header.as_bytes())?;
    for (p, n) in surface.positions.iter().zip(&surface.normals) {
        for number in [p.x, p.y, p.z, n.x, n.y, n.z] {
            out.write_all(&(number as f32).to_le_bytes())?;
        }
    }
    for triangle in &surface.triangles {
        out.write_all(&[3])?;
        for index in triangle {
            out.write_all(&index.to_le_bytes())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_counts_what_follows() {
        let mut bytes = Vec::new();
        write(&super::super::sample(), "a patch", &mut bytes).unwrap();
        let end = b"end_header\n";
        let at = bytes.windows(end.len()).position(|w| w == end).unwrap() + end.len();
        let header = std::str::from_utf8(&bytes[..at]).unwrap();
        assert!(header.contains("element vertex 3\n") && header.contains("element face 1\n"));
        assert_eq!(bytes.len() - at, 3 * 24 + 13);
        assert_eq!(bytes[bytes.len() - 13], 3);
        assert_eq!(bytes[at + 4..at + 8], 1f32.to_le_bytes());
    }
}
