//! Wavefront OBJ: text, for whatever reads nothing else.

use crate::terrain::surface::Surface;
use std::io::{Result, Write};

pub fn write(surface: &Surface, title: &str, out: &mut impl Write) -> Result<()> {
    writeln!(out, "# {title}")?;
    writeln!(out, "# metres; x east, y up, z south")?;
    for p in &surface.positions {
        writeln!(out, "v {:.6} {:.6} {:.6}", p.x, p.y, p.z)?;
    }
    for n in &surface.normals {
        writeln!(out, "vn {:.5} {:.5} {:.5}", n.x, n.y, n.z)?;
    }
    for triangle in &surface.triangles {
        let [a, b, c] = triangle.map(|index| index + 1);
        writeln!(out, "f {a}//{a} {b}//{b} {c}//{c}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one() {
        let mut bytes = Vec::new();
        write(&super::super::sample(), "a patch", &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[4], "v 10.000000 1.500000 0.000000");
        assert_eq!(lines[5], "vn 0.00000 1.00000 0.00000");
        assert_eq!(lines[8], "f 1//1 2//2 3//3");
        assert_eq!(lines.len(), 9);
    }
}
