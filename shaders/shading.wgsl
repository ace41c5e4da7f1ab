// How ground is coloured and lit, for all that is drawn of it.

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

/// The same by height and slope alone.
fn plain_color(height_m: f32, normal: vec3f) -> vec3f {
    let land_low = select(globals.ground_low_m, max(globals.ground_low_m, globals.sea_m), globals.sea != 0u);
    let relief = globals.ground_high_m - land_low;
    let share = (height_m - land_low) / max(relief, 1.0);
    let steep = 1.0 - normal.y;
    var color = mix(vec3f(0.15, 0.18, 0.07), vec3f(0.22, 0.19, 0.12), smoothstep(0.25, 0.5, share));
    color = mix(color, vec3f(0.23, 0.21, 0.19), max(smoothstep(0.13, 0.26, steep), smoothstep(0.5, 0.68, share)));
    let snowed = smoothstep(0.70, 0.80, share - 0.30 * steep);
    color = mix(color, vec3f(0.80, 0.83, 0.88), select(0.0, snowed, relief > 600.0));
    let above = height_m - globals.sea_m;
    let sandy = globals.sea != 0u && above < 3.0 && steep < 0.16;
    return select(color, vec3f(0.46, 0.39, 0.27), sandy);
}

/// What grows or lies at a place: sand by the sea, grass, woods, rock where it is steep or high,
/// snow. `pixel_m` is about the size of a pixel there.
fn ground_color(place_m: vec2f, height_m: f32, normal: vec3f, pixel_m: f32) -> vec3f {
    if PLAIN {
        return plain_color(height_m, normal);
    }
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
    if PLAIN {
        let clear = 1.0 / (1.0 + below * vec3f(0.3, 0.12, 0.1));
        return mix(DEEP_WATER, color, clear * clear * select(1.0, 0.0, globals.sea == 2u));
    }
    let depth = select(below, below * 200.0, globals.sea == 2u);
    return mix(DEEP_WATER, color * exp(-depth * vec3f(0.22, 0.07, 0.05)), exp(-depth * 0.06));
}
