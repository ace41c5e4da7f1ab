//! glTF 2.0 in its binary form: a header, one chunk of JSON, one of bytes.
//!
//! One mesh of one primitive: indices first, then positions, then normals, each a buffer view.
//! Written from the specification (Khronos, glTF 2.0, clause 4.4).

use crate::terrain::surface::Surface;
use glam::DVec3;
use serde_json::{Value, json};
use std::io::{Error, ErrorKind, Result, Write};

const VERSION: u32 = 2;
const FLOAT: u32 = 5126;
const UNSIGNED_INT: u32 = 5125;
const VERTICES: u32 = 34962;
const INDICES: u32 = 34963;

pub fn write(surface: &Surface, title: &str, out: &mut impl Write) -> Result<()> {
    let mut text = description(surface, title).to_string();
    // Chunks are whole multiples of four bytes; JSON is filled up with spaces.
    text += &" ".repeat(text.len().wrapping_neg() % 4);
    let [indices, vectors] = sizes(surface);
    let data = indices + 2 * vectors;
    let total = 12 + 8 + text.len() as u64 + 8 + data;
    let Ok(total) = u32::try_from(total) else {
        let too_large = "more than the 4 GiB that fit a .glb; export fewer patches or a .ply";
        return Err(Error::new(ErrorKind::InvalidInput, too_large));
    };
    out.write_all(b"glTF")?;
    out.write_all(&VERSION.to_le_bytes())?;
    out.write_all(&total.to_le_bytes())?;
    chunk_header(out, text.len() as u32, b"JSON")?;
    out.write_all(text.as_bytes())?;
    chunk_header(out, data as u32, b"BIN\0")?;
    for index in surface.triangles.iter().flatten() {
        out.write_all(&index.to_le_bytes())?;
    }
    for vector in surface.positions.iter().chain(&surface.normals) {
        for number in vector.as_vec3().to_array() {
            out.write_all(&number.to_le_bytes())?;
        }
    }
    Ok(())
}

fn chunk_header(out: &mut impl Write, bytes: u32, kind: &[u8; 4]) -> Result<()> {
    out.write_all(&bytes.to_le_bytes())?;
    out.write_all(kind)
}

/// Bytes of the indices, and of the positions or the normals.
fn sizes(surface: &Surface) -> [u64; 2] {
    [surface.triangles.len(), surface.positions.len()].map(|count| count as u64 * 12)
}

fn description(surface: &Surface, title: &str) -> Value {
    let [indices, vectors] = sizes(surface);
    let view = |offset: u64, bytes: u64, target: u32| json!({ "buffer": 0, "byteOffset": offset, "byteLength": bytes, "target": target });
    let bounds = |pick: fn(DVec3, DVec3) -> DVec3| {
        let all = surface.positions.iter().copied().reduce(pick);
        all.unwrap_or_default().as_vec3().to_array()
    };
    let count = surface.positions.len();
    json!({
        "asset": { "version": "2.0", "generator": concat!("highfell ", env!("CARGO_PKG_VERSION")) },
        "scene": 0,
        "scenes": [{ "nodes": [0] }],
        "nodes": [{ "mesh": 0, "name": title }],
        "meshes": [{ "name": title, "primitives": [
            { "attributes": { "POSITION": 1, "NORMAL": 2 }, "indices": 0, "material": 0 },
        ] }],
        "materials": [{
            "name": "ground",
            "pbrMetallicRoughness": {
                "baseColorFactor": [0.45, 0.47, 0.38, 1.0],
                "metallicFactor": 0.0,
                "roughnessFactor": 1.0,
            },
        }],
        "accessors": [
            { "bufferView": 0, "componentType": UNSIGNED_INT, "count": 3 * surface.triangles.len(), "type": "SCALAR" },
            { "bufferView": 1, "componentType": FLOAT, "count": count, "type": "VEC3", "min": bounds(DVec3::min), "max": bounds(DVec3::max) },
            { "bufferView": 2, "componentType": FLOAT, "count": count, "type": "VEC3" },
        ],
        "bufferViews": [
            view(0, indices, INDICES),
            view(indices, vectors, VERTICES),
            view(indices + vectors, vectors, VERTICES),
        ],
        "buffers": [{ "byteLength": indices + 2 * vectors }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_chunks_and_lengths_agree() {
        let mut bytes = Vec::new();
        write(&super::super::sample(), "a patch", &mut bytes).unwrap();
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(
            (&bytes[..4], u32_at(4), u32_at(8)),
            (&b"glTF"[..], 2, bytes.len())
        );
        let json_bytes = u32_at(12);
        assert_eq!((json_bytes % 4, &bytes[16..20]), (0, &b"JSON"[..]));
        let about: Value = serde_json::from_slice(&bytes[20..20 + json_bytes]).unwrap();
        let data = 20 + json_bytes;
        assert_eq!(&bytes[data + 4..data + 8], b"BIN\0");
        assert_eq!(u32_at(data), bytes.len() - data - 8);
        assert_eq!(about["buffers"][0]["byteLength"], u32_at(data));
        assert_eq!(about["accessors"][1]["max"], json!([10.0, 1.5, 20.0]));
        let positions = data + 8 + about["bufferViews"][1]["byteOffset"].as_u64().unwrap() as usize;
        assert_eq!(bytes[positions + 4..positions + 8], 1f32.to_le_bytes());
    }
}
