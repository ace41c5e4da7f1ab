// What every pass shares: the globals of a frame, the sky, fog, and the encoding of colours.
//
// Positions are metres relative to the eye. Colours are linear until `encode`, the last step of
// every fragment shader: targets are plain 8-bit, since the overlay blends in gamma space.

struct Globals {
    clip_from_eye: mat4x4f,
    // Through the middle of the picture at distance 1, and half the picture to each side.
    ray_forward: vec4f,
    ray_right: vec4f,
    ray_up: vec4f,
    // Towards the sun; w: seconds.
    sun: vec4f,
    // Metres between samples, metres a height unit (exaggerated), exaggeration.
    spacing_m: vec2f,
    unit_m: f32,
    exaggeration: f32,
    // The eye's place as whole samples and height units, and what is left over in metres.
    eye_cell: vec2i,
    eye_units: i32,
    // 0: none; 1: a sea with a floor; 2: a flat one without.
    sea: u32,
    eye_rest_m: vec3f,
    sea_m: f32,
    // The last sample of the source; height of the eye; metres over which fog thickens.
    last_sample: vec2f,
    eye_height_m: f32,
    fog_m: f32,
    // Lowest and highest ground as drawn; samples along a square of the water mask, 0 without
    // one; radians a pixel.
    ground_low_m: f32,
    ground_high_m: f32,
    water_square: f32,
    pixel_rad: f32,
    // Where levels of detail are chosen from, seen from the eye.
    lod_eye: vec4f,
}

@group(0) @binding(0) var<uniform> globals: Globals;
// A texel for each cell between the middles of the mask's squares, their edge once more, and round
// it a frame that says whether there is water beyond the source.
@group(0) @binding(1) var water_mask: texture_2d<f32>;
@group(0) @binding(2) var water_sampler: sampler;

// For adapters that draw in software: no noise, no waves.
override PLAIN: bool = false;

const DEEP_WATER = vec3f(0.012, 0.055, 0.085);

/// How much water there is about a place, given in samples: 0 to 1, water from a half on.
fn water_at(sample: vec2f) -> f32 {
    if globals.water_square == 0.0 {
        return 1.0;
    }
    let is_beyond = any(sample < vec2f(0.0)) || any(sample > globals.last_sample);
    if is_beyond {
        return textureLoad(water_mask, vec2i(0), 0).x;
    }
    let square = (sample + 0.5) / globals.water_square;
    let size = vec2f(textureDimensions(water_mask));
    return textureSampleLevel(water_mask, water_sampler, (square + 1.5) / size, 0.0).x;
}

/// The same below a place that is given from the eye.
fn water_under(to: vec2f) -> f32 {
    return water_at(vec2f(globals.eye_cell) + (to + globals.eye_rest_m.xz) / globals.spacing_m);
}

/// The sky in a direction of length 1.
fn sky(direction: vec3f) -> vec3f {
    let up = max(direction.y, 0.0);
    let zenith = vec3f(0.10, 0.24, 0.55);
    let horizon = vec3f(0.52, 0.65, 0.80);
    if PLAIN {
        return mix(horizon, zenith, sqrt(up));
    }
    let base = mix(horizon, zenith, pow(up, 0.55));
    let towards_sun = max(dot(direction, globals.sun.xyz), 0.0);
    let haze = vec3f(1.0, 0.80, 0.55) * (0.22 * pow(towards_sun, 6.0) * (1.0 - up));
    return base + haze;
}

/// A colour seen through the air.
fn fogged(color: vec3f, to: vec3f) -> vec3f {
    let distance = length(to);
    if PLAIN {
        let thick = distance / globals.fog_m;
        return mix(vec3f(0.52, 0.65, 0.80), color, 1.0 / (1.0 + thick * (0.6 + 1.4 * thick)));
    }
    let direction = to / max(distance, 1e-3);
    let air = sky(normalize(vec3f(direction.x, abs(direction.y) * 0.3, direction.z)));
    let clear = exp(-pow(distance / globals.fog_m, 1.4));
    return mix(air, color, clear);
}

/// Linear light to the 8-bit target, highlights rolled off.
fn encode(color: vec3f) -> vec4f {
    let rolled = color / (1.0 + 0.12 * color);
    if PLAIN {
        // Within a hundredth of what is below, without a power.
        let root = sqrt(max(rolled, vec3f(0.0)));
        let fourth = sqrt(root);
        return vec4f(0.66 * root + 0.68 * fourth - 0.32 * sqrt(fourth) - 0.02 * rolled, 1.0);
    }
    let low = rolled * 12.92;
    let high = 1.055 * pow(max(rolled, vec3f(1e-5)), vec3f(1.0 / 2.4)) - 0.055;
    return vec4f(select(high, low, rolled < vec3f(0.0031308)), 1.0);
}

/// A whole number from a lattice point, the same on every machine.
fn hash(p: vec2i) -> f32 {
    var h = bitcast<u32>(p.x) * 0x9E3779B1u ^ bitcast<u32>(p.y) * 0x85EBCA77u;
    h = (h ^ (h >> 15u)) * 0x2C1B3C6Du;
    h = (h ^ (h >> 12u)) * 0x297A2D39u;
    return f32((h ^ (h >> 15u)) >> 8u) / 16777216.0;
}

/// Smooth noise between 0 and 1, one bump a unit.
fn noise(p: vec2f) -> f32 {
    let cell = floor(p);
    let f = p - cell;
    let u = f * f * (3.0 - 2.0 * f);
    let i = vec2i(cell);
    let north = mix(hash(i), hash(i + vec2i(1, 0)), u.x);
    let south = mix(hash(i + vec2i(0, 1)), hash(i + vec2i(1, 1)), u.x);
    return mix(north, south, u.y);
}
