//! Shaders are valid, and agree with Rust on every struct and number that both know.
//!
//! Offsets, sizes and formats are read out of the parsed shaders, so two layouts that drift apart
//! fail here and not as wrong pictures.

use std::mem::offset_of;

use highfell::render::Globals;
use highfell::render::ground::PatchInstance;
use highfell::terrain::mesh::{self, PatchData, PatchMesh, PatchVertex, SIDE_SHIFT};
use highfell::world::{PatchKey, SectionKey};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{Binding, Module, ScalarKind, TypeInner};

use crate::common;

const COMMON: &str = include_str!("../../shaders/common.wgsl");
const SHADING: &str = include_str!("../../shaders/shading.wgsl");
const GROUND: &str = include_str!("../../shaders/ground.wgsl");
const PIPELINES: &str = include_str!("../../src/render/ground/pipelines.rs");

#[test]
fn every_shader_is_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/shaders");
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of shaders") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("text");
        let shared = path.ends_with("common.wgsl") || path.ends_with("shading.wgsl");
        let whole = match shared {
            true => [COMMON, SHADING].concat(),
            false => [COMMON, SHADING, &text].concat(),
        };
        let module = parse(&whole);
        Validator::new(ValidationFlags::all(), Capabilities::empty())
            .validate(&module)
            .unwrap_or_else(|error| panic!("{}: {}", path.display(), error.emit_to_string(&whole)));
        checked += 1;
    }
    assert!(checked >= 4, "only {checked} shaders were found");
}

#[test]
fn a_shader_that_is_wrong_is_found() {
    let undefined = [COMMON, "fn f() -> f32 { return globals.nothing; }"].concat();
    assert!(naga::front::wgsl::parse_str(&undefined).is_err());
}

/// Name, offset and size of each field.
macro_rules! fields {
    ($type:ty: $($field:ident),*) => {{
        let value: $type = bytemuck::Zeroable::zeroed();
        vec![$((stringify!($field), offset_of!($type, $field), size_of_val(&value.$field))),*]
    }};
}

#[test]
fn globals_lie_where_the_shaders_look() {
    let rust = fields!(Globals:
        clip_from_eye, ray_forward, ray_right, ray_up, sun, spacing_m, unit_m, exaggeration,
        eye_cell, eye_units, sea, eye_rest_m, sea_m, last_sample, eye_height_m, fog_m,
        ground_low_m, ground_high_m, water_square, pixel_rad, lod_eye);
    let module = parse(COMMON);
    let (members, span) = struct_members(&module, "Globals");
    let shader: Vec<_> = members
        .iter()
        .map(|member| (member.name.as_str(), member.offset, member.size))
        .collect();
    assert_eq!(rust, shader);
    assert_eq!(size_of::<Globals>(), span);
    assert_no_gaps(&rust, size_of::<Globals>());
}

#[test]
fn instances_are_read_as_they_are_written() {
    let rust = fields!(PatchInstance:
        origin, stride, level, morph, texel, first_index, first_vertex);
    assert_no_gaps(&rust, 48);
    assert_eq!(size_of::<PatchInstance>(), 48);
    let module = parse(&[COMMON, SHADING, GROUND].concat());
    let (members, _) = struct_members(&module, "Patch");
    assert_attributes(&rust, &members, &attributes("per_patch"));
}

#[test]
fn vertices_are_read_as_they_are_written() {
    let rust = fields!(PatchVertex: x, z, own, parent);
    assert_no_gaps(&rust, 12);
    assert_eq!(size_of::<PatchVertex>(), 12);
    let module = parse(&[COMMON, SHADING, GROUND].concat());
    let (members, _) = struct_members(&module, "Vertex");
    // Both positions and both heights go as pairs.
    let pairs = [("lattice", 0, 4), ("heights", 4, 8)];
    assert_attributes(&pairs, &members, &attributes("per_vertex"));
}

#[test]
fn sides_are_packed_as_they_are_unpacked() {
    let side = format!("let side = v.lattice.x >> {SIDE_SHIFT}u;");
    assert!(GROUND.contains(&side), "{side}");
    let mask = format!("v.lattice.x & {:#x}u", (1 << SIDE_SHIFT) - 1);
    assert!(GROUND.contains(&mask), "{mask}");
    assert!(GROUND.contains("outwards[(side - 1u) & 3u]"));
}

#[test]
fn skirts_lean_outwards_on_every_side() {
    let outwards = outwards();
    assert_eq!(outwards.len(), 4);
    let (mesh, cells) = some_mesh();
    let mut seen = [0; 4];
    for vertex in &mesh.vertices {
        let side = (vertex.x >> SIDE_SHIFT) as usize;
        if side == 0 {
            continue;
        }
        let place = [(vertex.x & ((1 << SIDE_SHIFT) - 1)) as i32, vertex.z as i32];
        let inside = |place: [i32; 2]| place.iter().all(|&v| (0..=cells).contains(&v));
        let moved = [0, 1].map(|axis| place[axis] + outwards[side - 1][axis]);
        assert!(inside(place) && !inside(moved), "side {side} at {place:?}");
        seen[side - 1] += 1;
    }
    assert!(seen.iter().all(|&count| count >= 2), "{seen:?}");
}

struct Member {
    name: String,
    offset: usize,
    size: usize,
    location: Option<u32>,
    /// As the renderer's vertex formats are called, without the width of a part: `Sint x2`.
    format: String,
}

fn parse(text: &str) -> Module {
    naga::front::wgsl::parse_str(text)
        .unwrap_or_else(|error| panic!("{}", error.emit_to_string(text)))
}

fn struct_members(module: &Module, name: &str) -> (Vec<Member>, usize) {
    let found = module
        .types
        .iter()
        .find(|(_, ty)| ty.name.as_deref() == Some(name));
    let Some(TypeInner::Struct { members, span }) = found.map(|(_, ty)| &ty.inner) else {
        panic!("there is no struct {name}");
    };
    let members = members.iter().map(|member| {
        let inner = &module.types[member.ty].inner;
        Member {
            name: member.name.clone().expect("members have names"),
            offset: member.offset as usize,
            size: inner.size(module.to_ctx()) as usize,
            location: match member.binding {
                Some(Binding::Location { location, .. }) => Some(location),
                _ => None,
            },
            format: format_of(inner),
        }
    });
    (members.collect(), *span as usize)
}

fn format_of(inner: &TypeInner) -> String {
    let (kind, parts) = match *inner {
        TypeInner::Scalar(scalar) => (scalar.kind, 1),
        TypeInner::Vector { size, scalar } => (scalar.kind, size as u32),
        _ => return "no vertex format".into(),
    };
    let kind = match kind {
        ScalarKind::Sint => "Sint",
        ScalarKind::Uint => "Uint",
        ScalarKind::Float => "Float",
        _ => "no vertex format",
    };
    format!("{kind} x{parts}")
}

/// Location, format and bytes of an array of vertex attributes, as it is written.
fn attributes(array: &str) -> Vec<(u32, String, usize)> {
    let start = format!("let {array} = wgpu::vertex_attr_array![");
    let behind = PIPELINES.split(&start).nth(1).expect("the array");
    let inside = behind.split(']').next().expect("its end");
    inside.split(',').map(attribute).collect()
}

/// `2 => Sint32x2`: location 2, two signed parts of 32 bits.
fn attribute(text: &str) -> (u32, String, usize) {
    let (location, format) = text.split_once("=>").expect("an arrow");
    let format = format.trim();
    let digits = format.find(|c: char| c.is_ascii_digit()).expect("a width");
    let (kind, numbers) = format.split_at(digits);
    let (bits, parts) = numbers.split_once('x').unwrap_or((numbers, "1"));
    let number = |text: &str| text.trim().parse::<usize>().expect("a number");
    (
        number(location) as u32,
        format!("{kind} x{parts}"),
        number(bits) / 8 * number(parts),
    )
}

/// Rust's fields, the shader's members and the attributes between them are the same in order.
fn assert_attributes(
    rust: &[(&str, usize, usize)],
    members: &[Member],
    attributes: &[(u32, String, usize)],
) {
    assert_eq!((rust.len(), rust.len()), (members.len(), attributes.len()));
    let mut offset = 0;
    for ((field, member), (location, format, bytes)) in rust.iter().zip(members).zip(attributes) {
        assert_eq!(*field, (member.name.as_str(), offset, *bytes));
        assert_eq!((member.location, &member.format), (Some(*location), format));
        offset += bytes;
    }
}

fn assert_no_gaps(fields: &[(&str, usize, usize)], size: usize) {
    let mut end = 0;
    for (name, offset, bytes) in fields {
        assert_eq!(*offset, end, "{name}");
        end += bytes;
    }
    assert_eq!(end, size);
}

/// The shader's table of directions, one a side.
fn outwards() -> Vec<[i32; 2]> {
    let behind = GROUND.split("var outwards = array<vec2f, 4>(").nth(1);
    let line = behind.expect("the table").lines().next().expect("its line");
    let numbers = |text: &str| {
        let inside = text.split(')').next().expect("its end");
        let (x, z) = inside.split_once(',').expect("two numbers");
        [x, z].map(|v| v.trim().parse::<f64>().expect("a number") as i32)
    };
    line.split("vec2f(").skip(1).map(numbers).collect()
}

/// A mesh of a small world and the cells along its side.
fn some_mesh() -> (PatchMesh, i32) {
    let world = common::in_memory(&common::rough_source(65, 65), &Default::default());
    let layout = world.meta.layout;
    let level = layout.coarsest();
    let section = world
        .read_section(SectionKey { level, x: 0, z: 0 }, None)
        .expect("a sound world");
    let key = PatchKey::new(level, 0, 0);
    let data = PatchData {
        record: section.patch(key),
        heights: &section.heights,
    };
    let mesh = mesh::build(&layout, key, data, None).expect("a sound patch");
    (mesh, layout.lattice_cells(level) as i32)
}
