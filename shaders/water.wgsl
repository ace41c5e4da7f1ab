// The sea: a plane to the horizon, found by each pixel's ray, blended over the ground below it;
// only where the water mask says.

struct Pixel {
    @builtin(position) position: vec4f,
    @location(0) ray: vec3f,
}

struct Water {
    @location(0) color: vec4f,
    @builtin(frag_depth) depth: f32,
}

@vertex
fn vs_water(@builtin(vertex_index) number: u32) -> Pixel {
    let corner = vec2f(vec2u((number << 1u) & 2u, number & 2u)) * 2.0 - 1.0;
    var out: Pixel;
    out.position = vec4f(corner, 0.5, 1.0);
    out.ray = globals.ray_forward.xyz + globals.ray_right.xyz * corner.x + globals.ray_up.xyz * corner.y;
    return out;
}

/// The slope of the waves at a place, from noise that wanders with time.
fn waves(place: vec2f, distance: f32) -> vec2f {
    if PLAIN {
        return vec2f(0.0);
    }
    let drift = globals.sun.w * vec2f(0.9, 0.6);
    let e = 0.7;
    let a = (place + drift) / 11.0;
    let b = (place - drift * 1.7) / 4.3;
    let h = noise(a) + 0.45 * noise(b);
    let hx = noise(a + vec2f(e / 11.0, 0.0)) + 0.45 * noise(b + vec2f(e / 4.3, 0.0));
    let hz = noise(a + vec2f(0.0, e / 11.0)) + 0.45 * noise(b + vec2f(0.0, e / 4.3));
    // Waves smaller than a pixel average out.
    return vec2f(hx - h, hz - h) * (0.5 / (1.0 + distance / 600.0));
}

@fragment
fn fs_water(pixel: Pixel) -> Water {
    let below = globals.sea_m - globals.eye_height_m;
    if below * pixel.ray.y <= 0.0 {
        discard;
    }
    // At the horizon the plane is further than any number says.
    let t = min(below / pixel.ray.y, 1e7);
    let to = pixel.ray * t;
    if water_under(to.xz) < 0.5 {
        discard;
    }
    let clip = globals.clip_from_eye * vec4f(to, 1.0);
    let direction = normalize(to);
    let distance = length(to);
    let place = to.xz + vec2f(globals.eye_cell) * globals.spacing_m + globals.eye_rest_m.xz;
    let slope = waves(place, distance);
    let normal = normalize(vec3f(-slope.x, 1.0, -slope.y));
    let facing = clamp(abs(dot(direction, normal)), 0.0, 1.0);
    let fresnel = 0.02 + 0.98 * pow(1.0 - facing, 5.0);
    let mirrored = reflect(direction, normal);
    let glint = pow(max(dot(mirrored, globals.sun.xyz), 0.0), 220.0) * 2.5;
    let reflected = sky(normalize(vec3f(mirrored.x, abs(mirrored.y), mirrored.z))) + vec3f(1.0, 0.9, 0.7) * glint;
    // Far away the water itself fades into the air, whatever lies below it.
    let clear = exp(-pow(distance / globals.fog_m, 1.4));
    let alpha = 1.0 - (1.0 - clamp(fresnel + glint + 0.12, 0.0, 1.0)) * clear;
    let color = fogged(mix(DEEP_WATER, reflected, clamp(fresnel + glint, 0.0, 1.0)), to);
    return Water(vec4f(encode(color).rgb, alpha), clip.z / clip.w);
}
