//! GL draws what Vulkan draws, near and far: both of Mesa's software drivers, side by side.

use highfell::compile::compile;
use highfell::modes::builtin;
use image::RgbaImage;

use crate::common::{Home, outcome};

/// Of 255.
const UNSEEN: u8 = 2;
const MUST_AGREE: f64 = 0.999;
const VIEWS: [&str; 3] = ["shaded", "level", "wireframe"];

#[test]
fn gl_and_vulkan_agree_near_and_far() {
    let home = Home::new();
    let (writer, meta) = compile(&builtin::source(1025), &builtin::options(), |_| Ok(())).unwrap();
    let mut bytes = Vec::new();
    writer.write(&mut bytes).unwrap();
    home.write("w.hfw", bytes);
    let [width, depth] = meta.size_m();
    let [x, z] = [0, 1].map(|axis| f64::from(meta.summit[axis]) * meta.spacing_m[axis]);
    // On the ground, over it, at the shore from the sea, and from so far that all of it is small.
    let cameras = [
        format!("{x},+2,{},180,-2", z + 400.0),
        format!("{},+600,{},200,-15", x + 900.0, z + 2500.0),
        format!("{},+3,{},180,-1", width * 0.3, depth * 1.05),
        format!("{},6000,{},180,-14", width / 2.0, depth + 16_000.0),
    ];
    for camera in &cameras {
        for view in VIEWS {
            let picture = |backend: &str| {
                let name = format!("{backend}.png");
                #[rustfmt::skip]
                let mut command = home.command(&[
                    "shot", "w.hfw", "--camera", camera, "--view", view, "--size", "320x180", "-o", &name, "--force",
                ]);
                command.env("WGPU_BACKEND", backend);
                let run = outcome(command);
                assert_eq!(
                    run.code,
                    Some(0),
                    "{backend}, which the tests need (sudo apt-get install libegl1 libgl1-mesa-dri): {run:?}"
                );
                image::open(home.work().join(name))
                    .expect("a PNG")
                    .into_rgba8()
            };
            let [vulkan, gl] = ["vulkan", "gl"].map(picture);
            let share = agreeing(&vulkan, &gl);
            assert!(
                share >= MUST_AGREE,
                "{camera} {view}: {:.3} % of pixels agree",
                100.0 * share
            );
        }
    }
}

fn agreeing(a: &RgbaImage, b: &RgbaImage) -> f64 {
    assert_eq!(a.dimensions(), b.dimensions());
    let near = |(a, b): (&image::Rgba<u8>, &image::Rgba<u8>)| {
        a.0.iter().zip(b.0).all(|(a, b)| a.abs_diff(b) <= UNSEEN)
    };
    let count = a
        .pixels()
        .zip(b.pixels())
        .filter(|pair| near(*pair))
        .count();
    count as f64 / f64::from(a.width() * a.height())
}
