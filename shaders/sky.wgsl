// The sky behind everything, and the deep sea below the horizon where there is one.

struct Pixel {
    @builtin(position) position: vec4f,
    @location(0) ray: vec3f,
}

@vertex
fn vs_sky(@builtin(vertex_index) number: u32) -> Pixel {
    let corner = vec2f(vec2u((number << 1u) & 2u, number & 2u)) * 2.0 - 1.0;
    var out: Pixel;
    // Depth 0 is infinitely far.
    out.position = vec4f(corner, 0.0, 1.0);
    out.ray = globals.ray_forward.xyz + globals.ray_right.xyz * corner.x + globals.ray_up.xyz * corner.y;
    return out;
}

@fragment
fn fs_sky(pixel: Pixel) -> @location(0) vec4f {
    let direction = normalize(pixel.ray);
    let towards_sun = dot(direction, globals.sun.xyz);
    var disc = smoothstep(0.99985, 0.99993, towards_sun) * 6.0;
    if !PLAIN {
        disc += pow(max(towards_sun, 0.0), 900.0) * 0.8;
    }
    var color = sky(direction) + vec3f(1.0, 0.92, 0.78) * disc;
    if direction.y < 0.0 {
        // Under the horizon: haze that darkens downwards, or the sea, as far away as its plane is.
        let nothing = sky(vec3f(direction.x, 0.0, direction.z)) * mix(1.0, 0.45, smoothstep(0.0, 0.5, -direction.y));
        let away = max(globals.eye_height_m - globals.sea_m, 0.0) / max(-direction.y, 1e-6);
        let to = direction * min(away, 1e7);
        let is_sea = globals.sea != 0u && water_under(to.xz) >= 0.5;
        color = select(nothing, fogged(DEEP_WATER, to), is_sea);
    }
    return encode(color);
}
