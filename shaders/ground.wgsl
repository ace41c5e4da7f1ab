// The ground: one vertex function for every pipeline, so that all of them agree on every bit.
//
// The eye is subtracted as integers, then converted, then own and parent height are mixed: two
// patches that share a vertex compute the same position, and at morph 1 a patch is its parent.

@group(1) @binding(0) var normals: texture_2d<f32>;
@group(1) @binding(1) var normal_sampler: sampler;
@group(1) @binding(2) var<storage, read> pulled_vertices: array<u32>;
@group(1) @binding(3) var<storage, read> pulled_indices: array<u32>;
@group(1) @binding(4) var coverage: texture_2d<u32>;

// Patches at the border of the source are cut along it.
override CUT: bool = false;
// Patches with kept voids are cut where their level's cells have no ground.
override VOIDS: bool = false;

// One drawn patch; the layout of `PatchInstance` in src/render/ground.rs.
struct Patch {
    // Corner in samples from the eye's cell.
    @location(2) origin: vec2i,
    @location(3) stride: i32,
    @location(4) level: u32,
    // Distance at which the morph begins, one over its length, least morph, depth of the skirts.
    @location(5) morph: vec4f,
    // Corner in the normal atlas.
    @location(6) texel: vec2u,
    // Where the patch lies in the pulled buffers.
    @location(7) first_index: u32,
    @location(8) first_vertex: u32,
}

struct Vertex {
    @location(0) lattice: vec2u,
    @location(1) heights: vec2i,
}

struct Ground {
    @invariant @builtin(position) position: vec4f,
    @location(0) to: vec3f,
    // Samples from the north-west one.
    @location(1) sample: vec2f,
    @location(2) texel: vec2f,
    @location(3) morph: f32,
    @location(4) corner: vec3f,
    @location(5) @interpolate(flat) level: u32,
    @location(6) @interpolate(flat) skirt: u32,
    @location(7) @interpolate(flat) slot: vec2u,
}

fn ground_vertex(v: Vertex, p: Patch, corner: vec3f) -> Ground {
    let side = v.lattice.x >> 12u;
    let lattice = vec2i(vec2u(v.lattice.x & 0xfffu, v.lattice.y));
    let cell = p.origin + lattice * p.stride;
    let flat_place = vec2f(cell) * globals.spacing_m - globals.eye_rest_m.xz;
    let own = f32(v.heights.x - globals.eye_units) * globals.unit_m - globals.eye_rest_m.y;
    let parent = f32(v.heights.y - globals.eye_units) * globals.unit_m - globals.eye_rest_m.y;
    let distance = length(vec3f(flat_place.x, own, flat_place.y) - globals.lod_eye.xyz);
    let by_distance = clamp((distance - p.morph.x) * p.morph.y, 0.0, 1.0);
    let morph = max(by_distance, p.morph.z);
    var to = vec3f(flat_place.x, own * (1.0 - morph) + parent * morph, flat_place.y);
    if side != 0u {
        // North, east, south, west; a wall exactly upright would cover nothing from above.
        var outwards = array<vec2f, 4>(vec2f(0.0, -1.0), vec2f(1.0, 0.0), vec2f(0.0, 1.0), vec2f(-1.0, 0.0));
        let shift = outwards[(side - 1u) & 3u] * (p.morph.w / 16.0);
        to += vec3f(shift.x, -p.morph.w, shift.y);
    }
    var out: Ground;
    out.position = globals.clip_from_eye * vec4f(to, 1.0);
    out.to = to;
    out.sample = vec2f(cell + globals.eye_cell);
    out.texel = vec2f(p.texel) + vec2f(lattice) + 0.5;
    out.morph = morph;
    out.corner = corner;
    out.level = p.level;
    out.skirt = u32(side != 0u);
    out.slot = p.texel;
    return out;
}

@vertex
fn vs_indexed(v: Vertex, p: Patch) -> Ground {
    return ground_vertex(v, p, vec3f(1.0));
}

// The same vertices without an index buffer, so that each knows its corner of its triangle.
@vertex
fn vs_pulled(@builtin(vertex_index) number: u32, p: Patch) -> Ground {
    let at = p.first_index + number;
    let index = (pulled_indices[at / 2u] >> (16u * (at % 2u))) & 0xffffu;
    let word = 3u * (p.first_vertex + index);
    let lattice = pulled_vertices[word];
    let heights = vec2u(pulled_vertices[word + 1u], pulled_vertices[word + 2u]);
    let v = Vertex(vec2u(lattice & 0xffffu, lattice >> 16u), bitcast<vec2i>(heights));
    let k = number % 3u;
    return ground_vertex(v, p, vec3f(vec3u(u32(k == 0u), u32(k == 1u), u32(k == 2u))));
}

fn cut(g: Ground) {
    if CUT {
        let outside = any(g.sample < vec2f(0.0)) || any(g.sample > globals.last_sample);
        // Skirts along the border itself would stand outside of it.
        let border = any(g.sample < vec2f(0.01)) || any(g.sample > globals.last_sample - 0.01);
        if outside || (g.skirt == 1u && border) {
            discard;
        }
    }
    if VOIDS {
        // Texels lie on samples: a cell is where its north-west one lies.
        let cell = max(vec2i(floor(g.texel - 0.5)), vec2i(g.slot));
        if textureLoad(coverage, cell, 0).x == 0u {
            discard;
        }
    }
}

fn normal_at(g: Ground) -> vec3f {
    let stored = textureSampleLevel(normals, normal_sampler, g.texel / vec2f(textureDimensions(normals)), 0.0);
    let flat_part = mix(stored.xy, stored.zw, g.morph);
    let up = sqrt(max(1.0 - dot(flat_part, flat_part), 0.0001));
    return normalize(vec3f(flat_part.x * globals.exaggeration, up, flat_part.y * globals.exaggeration));
}

fn shaded(g: Ground) -> vec3f {
    let normal = normal_at(g);
    let height = g.to.y + globals.eye_height_m;
    let distance = length(g.to);
    // Ground that is seen at a low angle fills more metres a pixel.
    let pixel_m = distance * globals.pixel_rad / max(abs(g.to.y) / max(distance, 1e-3), 0.15);
    let albedo = ground_color(g.sample * globals.spacing_m, height, normal, pixel_m);
    return sunken(lit(albedo, normal), g.sample, height);
}

fn level_color(level: u32) -> vec3f {
    var colors = array<vec3f, 8>(
        vec3f(0.78, 0.12, 0.10), vec3f(0.85, 0.42, 0.06), vec3f(0.80, 0.72, 0.10), vec3f(0.22, 0.58, 0.14),
        vec3f(0.08, 0.52, 0.55), vec3f(0.12, 0.26, 0.72), vec3f(0.42, 0.16, 0.62), vec3f(0.70, 0.22, 0.48),
    );
    return colors[level % 8u];
}

struct Deep {
    @location(0) color: vec4f,
    @builtin(frag_depth) depth: f32,
}

// GL's own depth runs from -1 to 1 before it is stored and loses what reversing it gains: there,
// fragments write the depth that the other backends have.
override EXACT_DEPTH: bool = false;

fn depth_of(position: vec4f) -> f32 {
    // The near plane's distance over the fragment's.
    return select(position.z, globals.clip_from_eye[3].z * position.w, EXACT_DEPTH);
}

fn shaded_color(g: Ground) -> vec4f {
    cut(g);
    return encode(fogged(shaded(g), g.to));
}

@fragment
fn fs_shaded(g: Ground) -> @location(0) vec4f {
    return shaded_color(g);
}

@fragment
fn fs_shaded_deep(g: Ground) -> Deep {
    return Deep(shaded_color(g), depth_of(g.position));
}

fn colored_level(g: Ground) -> vec4f {
    cut(g);
    return encode(lit(level_color(g.level), normal_at(g)));
}

@fragment
fn fs_level(g: Ground) -> @location(0) vec4f {
    return colored_level(g);
}

@fragment
fn fs_level_deep(g: Ground) -> Deep {
    return Deep(colored_level(g), depth_of(g.position));
}

fn wireframe_color(g: Ground) -> vec4f {
    // Derivatives first: they need all four pixels of a quad.
    let width = fwidth(g.corner);
    cut(g);
    let from_edge = g.corner / max(width, vec3f(1e-6));
    let nearest = min(min(from_edge.x, from_edge.y), from_edge.z);
    let line = (1.0 - smoothstep(0.0, 1.0, nearest)) * f32(1u - g.skirt);
    // Where triangles are smaller than a few pixels, lines would cover everything.
    let crowd = clamp(max(max(width.x, width.y), width.z) * 3.0 - 0.6, 0.0, 0.75);
    let fill = lit(vec3f(0.05, 0.06, 0.075), normal_at(g));
    return encode(fogged(mix(fill, level_color(g.level) * 1.6 + 0.08, line * (1.0 - crowd)), g.to * 0.6));
}

@fragment
fn fs_wireframe(g: Ground) -> @location(0) vec4f {
    return wireframe_color(g);
}

@fragment
fn fs_wireframe_deep(g: Ground) -> Deep {
    return Deep(wireframe_color(g), depth_of(g.position));
}

// Green where the ground shows its face, red where a back face comes first: by more than half a
// hundredth of the distance. Corners are snapped to fractions of a pixel before they are filled,
// which turns some triangles smaller than a pixel over; their neighbours then cover the pixel at
// nearly the same depth: as nearly as depth differs from one pixel to the next, which is much on
// a crest. Under the ground, faces are further apart than that.
@fragment
fn fs_hole(g: Ground, @builtin(front_facing) front: bool) -> Deep {
    // Derivatives first: they need all four pixels of a quad.
    let exact = depth_of(g.position);
    let a_pixel_further = fwidth(exact);
    cut(g);
    // Back faces of skirts are never drawn, so they neither cover nor betray anything.
    if g.skirt == 1u && !front {
        discard;
    }
    let behind = max(exact * 0.995 - a_pixel_further, 0.0);
    let depth = select(behind, exact, front);
    return Deep(vec4f(f32(!front), f32(front), 0.0, 1.0), depth);
}
