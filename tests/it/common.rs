//! What several tests need: a software GPU, worlds in memory, real files, the built binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use highfell::compile::{CompileOptions, compile};
use highfell::modes::builtin;
use highfell::render::{AdapterChoice, Gpu};
use highfell::source::Source;
use highfell::terrain::height_map::HeightMap;
use highfell::terrain::noise;
use highfell::world::{SourceInfo, World};

/// The software adapter that every picture is drawn with.
pub fn gpu() -> &'static Gpu {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    GPU.get_or_init(|| {
        Gpu::open(&AdapterChoice::Software).unwrap_or_else(|error| {
            panic!("no software adapter ({error}); these tests need one: sudo apt-get install mesa-vulkan-drivers libvulkan1")
        })
    })
}

/// The built-in world at full size.
pub fn built_in_world() -> Arc<World> {
    static WORLD: OnceLock<Arc<World>> = OnceLock::new();
    let world = WORLD.get_or_init(|| {
        let source = builtin::source(2049);
        in_memory(&source, &builtin::options())
    });
    world.clone()
}

/// Compiles a source and opens the world without a file.
pub fn in_memory(source: &Source, options: &CompileOptions) -> Arc<World> {
    let world = World::open(Box::new(world_bytes(source, options)), "a world in memory");
    Arc::new(world.expect("a world that was just compiled"))
}

/// The bytes of the world that a source compiles to.
pub fn world_bytes(source: &Source, options: &CompileOptions) -> Vec<u8> {
    let (writer, _) = compile(source, options, |_| Ok(())).expect("a sound source");
    let mut bytes = Vec::new();
    writer.write(&mut bytes).expect("memory takes all bytes");
    bytes
}

/// Rough ground without a sea, its samples wider apart to the south than to the east.
pub fn rough_source(width: u32, height: u32) -> Source {
    let metres = |x: u32, z: u32| {
        let p = glam::dvec2(x as f64, z as f64);
        let octave = |size: f64, seed: u64| size * noise::gradient_noise(p / size, seed);
        octave(150.0, 1) * 2.0 + octave(31.0, 2) * 1.5 + octave(5.3, 3)
    };
    let step_m = 0.25;
    let heights = (0..width * height)
        .map(|i| (metres(i % width, i / width) / step_m).round() as i32)
        .collect();
    let map = HeightMap {
        width,
        height,
        heights,
    };
    let (low, high) = map.range();
    Source {
        step_m,
        spacing_m: [7.0, 11.0],
        info: SourceInfo::made_up("rough.asc", [low as f64 * step_m, high as f64 * step_m]),
        ground: Box::new(map),
    }
}

/// The folder of real elevation files, if the environment names one.
pub fn data_folder() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("HIGHFELL_DATA") else {
        eprintln!("SKIPPED: HIGHFELL_DATA is not set, so no real elevation file was read");
        return None;
    };
    let folder = PathBuf::from(folder);
    assert!(
        folder.is_dir(),
        "HIGHFELL_DATA names {}, which is no folder",
        folder.display()
    );
    Some(folder)
}

/// A real elevation file; a folder without it is an error, no folder at all is not.
pub fn data_file(name: &str) -> Option<PathBuf> {
    let path = data_folder()?.join(name);
    assert!(path.is_file(), "{} is missing", path.display());
    Some(path)
}

/// An empty home, cache and working folder for the built binary.
pub struct Home(tempfile::TempDir);

/// What a run of the binary left behind.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    pub fn new() -> Self {
        let home = Home(tempfile::tempdir().expect("a temporary folder"));
        std::fs::create_dir(home.work()).expect("a folder in it");
        home
    }

    /// The folder that commands run in.
    pub fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    pub fn cache(&self) -> PathBuf {
        self.0.path().join("cache")
    }

    /// Puts a file into the working folder.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        path
    }

    /// The names in the working folder, sorted.
    pub fn names(&self) -> Vec<String> {
        names_in(&self.work())
    }

    /// The binary, about to run in the working folder without a display.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_highfell"));
        command
            .args(arguments)
            .current_dir(self.work())
            .env("HOME", self.0.path())
            .env("XDG_CACHE_HOME", self.cache())
            .env("XDG_RUNTIME_DIR", self.0.path())
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Outcome {
        outcome(self.command(arguments))
    }

    /// Runs what must succeed.
    #[track_caller]
    pub fn succeed(&self, arguments: &[&str]) -> Outcome {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
        run
    }
}

pub fn outcome(mut command: Command) -> Outcome {
    let output = command.output().expect("the binary starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

/// The names in a folder, hidden ones too, sorted.
pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
pub struct SplitMix(pub u64);

impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }
}
