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

fn lit(albedo: vec3f, normal: vec3f) -> vec3f {
    let sun = max(dot(normal, globals.sun.xyz), 0.0);
    let from_sky = 0.5 + 0.5 * normal.y;
    let light = vec3f(1.25, 1.12, 0.92) * sun + vec3f(0.20, 0.26, 0.36) * from_sky + vec3f(0.05, 0.045, 0.04);
    return albedo * light;
}

/// Noise whose bumps of `size_m` fade to the mean where they are smaller than a few pixels.
fn bumps(place_m: vec2f, size_m: f32, pixel_m: f32) -> f32 {
    let seen = 1.0 - smoothstep(0.15, 0.5, pixel_m / size_m);
    return mix(0.5, noise(place_m / size_m), seen);
}

/// How near a place, given in samples, is to water: 1 where it is water or beside it.
fn shore(sample: vec2f) -> f32 {
    if globals.water_square == 0.0 {
        return 1.0;
    }
    var near = water_at(sample);
    let reach = max(vec2f(120.0) / globals.spacing_m, vec2f(1.5 * globals.water_square));
    for (var i = 0; i < 8; i++) {
        let angle = f32(i) * 0.785398;
        near += water_at(sample + vec2f(cos(angle), sin(angle)) * reach);
    }
    return smoothstep(0.0, 3.0, near);
}

/// What grows or lies at a place: sand by the sea, grass, woods, rock where it is steep or high,
/// snow. `pixel_m` is about the size of a pixel there.
fn ground_color(place_m: vec2f, height_m: f32, normal: vec3f, pixel_m: f32) -> vec3f {
    // Each octave is turned against the others, so that no grid shows.
    let turn = mat2x2f(0.8, 0.6, -0.6, 0.8);
    let turned = turn * place_m;
    let twice = turn * turned;
    let broad = bumps(place_m, 2600.0, pixel_m) * 0.5 + bumps(twice, 1100.0, pixel_m) * 0.3
        + bumps(turned, 430.0, pixel_m) * 0.2;
    let coarse = bumps(twice, 160.0, pixel_m) * 0.55 + bumps(turned, 37.0, pixel_m) * 0.45;
    let fine = bumps(place_m, 9.0, pixel_m);
    let patchy = 0.5 * broad + 0.5 * coarse;
    let steep = 1.0 - normal.y;
    let land_low = select(globals.ground_low_m, max(globals.ground_low_m, globals.sea_m), globals.sea != 0u);
    let share = (height_m - land_low) / max(globals.ground_high_m - land_low, 1.0) + 0.16 * (patchy - 0.5);

    let grass = mix(vec3f(0.125, 0.165, 0.055), vec3f(0.215, 0.215, 0.095), coarse * 0.6 + broad * 0.4);
    let woods = mix(vec3f(0.045, 0.075, 0.032), vec3f(0.075, 0.105, 0.042), fine);
    let heath = mix(vec3f(0.185, 0.165, 0.10), vec3f(0.25, 0.215, 0.14), coarse);
    let rock = mix(vec3f(0.17, 0.155, 0.14), vec3f(0.285, 0.265, 0.24), fine * 0.4 + patchy * 0.6);
    let snow = vec3f(0.80, 0.83, 0.88);

    let wooded = smoothstep(0.44, 0.60, patchy + 0.15 * (fine - 0.5)) * (1.0 - smoothstep(0.30, 0.45, share));
    var color = mix(grass, woods, wooded);
    color = mix(color, heath, smoothstep(0.30, 0.48, share));
    color = mix(color, rock, smoothstep(0.50, 0.68, share));
    color = mix(color, rock, smoothstep(0.13, 0.26, steep + 0.08 * (patchy - 0.5)));
    let high = globals.ground_high_m - land_low > 600.0;
    let snowed = smoothstep(0.70, 0.80, share - 0.30 * steep);
    color = mix(color, snow, select(0.0, snowed, high));
    if globals.sea != 0u {
        let above = height_m - globals.sea_m;
        let sand = mix(vec3f(0.42, 0.36, 0.24), vec3f(0.50, 0.43, 0.30), fine);
        let sandy = (1.0 - smoothstep(2.0, 5.0, above + 3.0 * (coarse - 0.5))) * (1.0 - smoothstep(0.10, 0.22, steep));
        if sandy > 0.0 {
            color = mix(color, sand, sandy * shore(place_m / globals.spacing_m));
        }
    }
    return color;
}

/// Light is lost on its way down into the sea and up again, red first. Where a source has no sea
/// floor, only a flat sea, what lies below is taken as deep.
fn sunken(color: vec3f, sample: vec2f, height_m: f32) -> vec3f {
    if globals.sea == 0u || water_at(sample) < 0.5 {
        return color;
    }
    let below = max(globals.sea_m - height_m, 0.0);
    let depth = select(below, below * 200.0, globals.sea == 2u);
    return mix(DEEP_WATER, color * exp(-depth * vec3f(0.22, 0.07, 0.05)), exp(-depth * 0.06));
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
