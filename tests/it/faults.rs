//! Worlds that cannot be read for a while, that lie, or that would come out so that nobody could
//! read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use highfell::compile::CompileOptions;
use highfell::files::write_world;
use highfell::scene::Scene;
use highfell::settings::{Settings, Setup};
use highfell::terrain::camera::Pose;
use highfell::world::container::{Coding, pack};
use highfell::world::reader::META_CHUNK;
use highfell::world::{FormatError, HeightReader, MemorySpool, ReadAt, World, WorldWriter};

use crate::common::{Home, gpu, rough_source, world_bytes};

const SIZE: [u32; 2] = [64, 48];
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes that can be read only now and then.
struct Disk {
    bytes: Vec<u8>,
    reads: Arc<AtomicU64>,
    /// So many reads behind the first ones fail.
    failing: Arc<AtomicU64>,
}

impl ReadAt for Disk {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FormatError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let take = |left: u64| left.checked_sub(1);
        let failing = (self.failing).fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        match failing {
            Ok(_) => Err(FormatError("the disk is away".into())),
            Err(_) => self.bytes.read_at(offset, buffer),
        }
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

struct Flaky {
    world: Arc<World>,
    reads: Arc<AtomicU64>,
    failing: Arc<AtomicU64>,
}

fn flaky() -> Flaky {
    let (reads, failing) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let disk = Disk {
        bytes: world_bytes(&rough_source(1100, 1100), &CompileOptions::default()),
        reads: reads.clone(),
        failing: failing.clone(),
    };
    let world = World::open(Box::new(disk), "flaky.hfw").expect("a sound world");
    Flaky {
        world: Arc::new(world),
        reads,
        failing,
    }
}

fn pose() -> Pose {
    Pose {
        eye: glam::dvec3(900.0, 700.0, 900.0),
        yaw_deg: 135.0,
        pitch_deg: -20.0,
    }
}

#[test]
fn a_picture_settles_after_a_failure_that_a_frame_met() {
    let Flaky { world, failing, .. } = flaky();
    let (gpu, settings) = (gpu(), Settings::default());
    let mut scene = Scene::for_pictures(gpu, world, &Setup::default()).unwrap();
    failing.store(8, Ordering::SeqCst);
    // Frames are at whatever time they like; what they order fails at first.
    while failing.load(Ordering::SeqCst) > 0 {
        scene
            .picture(gpu, &pose(), &settings, SIZE, 5000.0)
            .unwrap();
    }
    scene
        .settle(gpu, &pose(), &settings, SIZE, PATIENCE)
        .unwrap();
    let (_, stats) = scene
        .picture(gpu, &pose(), &settings, SIZE, 5000.0)
        .unwrap();
    assert_eq!((stats.patches_missing, stats.stream.failed), (0, 0));
}

#[test]
fn a_failure_that_lasts_is_told_and_not_waited_for() {
    let Flaky { world, failing, .. } = flaky();
    let (gpu, settings) = (gpu(), Settings::default());
    let mut scene = Scene::for_pictures(gpu, world, &Setup::default()).unwrap();
    failing.store(u64::MAX, Ordering::SeqCst);
    let error = scene
        .settle(gpu, &pose(), &settings, SIZE, PATIENCE)
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("flaky.hfw") && text.contains("the disk is away"),
        "{text}"
    );
}

#[test]
fn heights_along_a_way_read_each_chunk_once() {
    let Flaky { world, reads, .. } = flaky();
    let mut heights = HeightReader::new(&world).unwrap();
    let before = reads.load(Ordering::SeqCst);
    let places: Vec<f64> = (0..200).map(|i| 10.0 + f64::from(i)).collect();
    for x in &places {
        heights.at(*x, 40.0).unwrap();
    }
    // All in one stream patch: its levels' meshes are not read, its heights once.
    let read = reads.load(Ordering::SeqCst) - before;
    assert!(read <= u64::from(world.meta.layout.levels), "{read} reads");
}

#[test]
fn errors_beyond_any_ground_are_refused_before_any_work() {
    let home = Home::new();
    home.write("g.asc", "ncols 3\nnrows 3\ncellsize 10\n1 2 3 4 5 6 7 8 9");
    let before = home.names();
    for error in ["1e308", "1e200"] {
        let run = home.run(&["compile", "g.asc", "-o", "g.hfw", "--error", error]);
        assert_eq!(run.code, Some(2), "{run:?}");
        let last = run.stderr.lines().last().expect("a line");
        assert!(
            last.contains("--error") && last.contains("expected"),
            "{run:?}"
        );
        assert_eq!(home.names(), before);
    }
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.hfw");
    let writer = WorldWriter::new(Box::new(MemorySpool::default()));
    let chunk = pack(META_CHUNK, Coding::Zstd, b"{}".to_vec()).unwrap();
    writer.add(chunk).unwrap();
    let error = write_world(&path, false, writer).unwrap_err().to_string();
    assert!(error.contains("is not written"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn samples_that_a_world_claims_are_not_asked_memory_for() {
    let options = CompileOptions {
        patch_cells: 8,
        ..Default::default()
    };
    let good = world_bytes(&rough_source(203, 150), &options);
    let world = World::open(Box::new(good.clone()), "x").unwrap();
    let mut meta = world.meta.clone();
    meta.layout.size_cells = [1 << 27, 1 << 27];
    let layout = meta.layout;
    let lie = highfell::world::Layout::with_levels(
        layout.size_cells,
        layout.patch_cells,
        512,
        u8::MAX,
        layout.lattice_bias,
    );
    // As a writer would lay out so many samples, or as they lie here.
    for layout in lie.into_iter().chain([layout]) {
        meta.layout = layout;
        let level = meta.levels[0].clone();
        meta.levels.resize(layout.levels.into(), level);
        let writer = WorldWriter::new(Box::new(MemorySpool::default()));
        let chunk = pack(META_CHUNK, Coding::Zstd, meta.to_bytes()).unwrap();
        writer.add(chunk).unwrap();
        let mut bytes = Vec::new();
        writer.write(&mut bytes).unwrap();
        let error = World::open(Box::new(bytes), "x")
            .err()
            .expect("a lie")
            .to_string();
        assert!(
            error.contains("chunks of meshes") || error.contains("level"),
            "{error}"
        );
    }
}
