//! Samples on their way from a file to the compiler: in memory when few, else in a file.
//!
//! The file has no name, so that it vanishes with the process however that ends. It holds the
//! samples row by row: a read of a few hundred rows costs as many reads of the system, which
//! its cache of the file makes up for.
//!
//! - A read is one of positions: any number of threads may read at once.
//! - What was not written is undefined.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::holes::Voids;
use super::numbers::{Kind, Number, Numbers, each_kind};
use crate::error::{Error, Result};
use crate::position::{read_exact_at, write_all_at};
use crate::source::{Area, Ground};
use crate::terrain::height_map::HeightMap;

/// Samples that are handled at a time where the file does not say how many.
pub(super) const BAND_SAMPLES: usize = 1 << 20;

/// Where samples that are too many for the memory go.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    /// The folder of temporary files.
    pub folder: PathBuf,
    /// Up to so many samples stay in memory.
    pub in_memory: u64,
}

/// A rectangle of samples.
#[derive(Debug)]
pub(super) struct Store {
    place: Place,
    pub size: [u32; 2],
    pub kind: Kind,
}

#[derive(Debug)]
enum Place {
    Memory(Numbers),
    File { file: File, folder: PathBuf },
}

impl Store {
    pub fn new(size: [u32; 2], kind: Kind, shelf: &Shelf) -> Result<Store> {
        let [width, height] = size.map(u64::from);
        let place = if width * height <= shelf.in_memory {
            Place::Memory(Numbers::voids(kind, (width * height) as usize))
        } else {
            let folder = shelf.folder.clone();
            let file = tempfile::tempfile_in(&folder)
                .map_err(|e| Error::io(&folder, "cannot make a temporary file", e))?;
            Place::File { file, folder }
        };
        Ok(Store { place, size, kind })
    }

    /// With a void in every place.
    pub fn empty(size: [u32; 2], kind: Kind, shelf: &Shelf) -> Result<Store> {
        let mut store = Store::new(size, kind, shelf)?;
        if let Place::File { .. } = store.place {
            for area in store.bands() {
                let count = area.width as usize * area.height as usize;
                store.write(area, Numbers::voids(kind, count))?;
            }
        }
        Ok(store)
    }

    pub fn whole(&self) -> Area {
        let [width, height] = self.size;
        let (x, z) = (0, 0);
        Area {
            x,
            z,
            width,
            height,
        }
    }

    /// Bands of whole rows, from the north.
    pub fn bands(&self) -> impl Iterator<Item = Area> + use<> {
        bands(self.whole(), BAND_SAMPLES)
    }

    /// `numbers` row by row.
    pub fn write(&mut self, area: Area, numbers: Numbers) -> Result<()> {
        let numbers = numbers.into_kind(self.kind);
        let (segments, size) = (segments(area, self.size[0]), self.kind.bytes());
        let bytes = numbers.bytes();
        match &mut self.place {
            Place::Memory(all) => {
                let all = all.bytes_mut();
                for (there, here, count) in segments {
                    let from = &bytes[here * size..][..count * size];
                    all[there as usize * size..][..count * size].copy_from_slice(from);
                }
            }
            Place::File { file, folder } => {
                for (there, here, count) in segments {
                    let from = &bytes[here * size..][..count * size];
                    write_all_at(file, from, there * size as u64)
                        .map_err(|e| cannot_write(folder, self.size, self.kind, e))?;
                }
            }
        }
        Ok(())
    }

    /// Row by row.
    pub fn read(&self, area: Area) -> Result<Numbers> {
        let count = area.width as usize * area.height as usize;
        let (segments, size) = (segments(area, self.size[0]), self.kind.bytes());
        let mut numbers = Numbers::voids(self.kind, count);
        let bytes = numbers.bytes_mut();
        match &self.place {
            Place::Memory(all) => {
                let all = all.bytes();
                for (there, here, count) in segments {
                    let from = &all[there as usize * size..][..count * size];
                    bytes[here * size..][..count * size].copy_from_slice(from);
                }
            }
            Place::File { file, folder } => {
                for (there, here, count) in segments {
                    let to = &mut bytes[here * size..][..count * size];
                    read_exact_at(file, to, there * size as u64)
                        .map_err(|e| Error::io(folder, "cannot read the heights back", e))?;
                }
            }
        }
        Ok(numbers)
    }
}

/// Bands of whole rows of an area, from the north, of about so many samples.
pub(super) fn bands(area: Area, samples: usize) -> impl Iterator<Item = Area> + use<> {
    let rows = (samples / area.width as usize).max(1);
    (0..area.height).step_by(rows).map(move |z| Area {
        z: area.z + z,
        height: (rows as u64).min(u64::from(area.height - z)) as u32,
        ..area
    })
}

/// What of an area lies in one piece: where in the whole, where in the area, and how many.
fn segments(area: Area, width: u32) -> impl Iterator<Item = (u64, usize, usize)> + use<> {
    let there = move |z: u32| u64::from(area.z + z) * u64::from(width) + u64::from(area.x);
    let count = area.width as usize;
    let (rows, count) = if area.width == width {
        (1, count * area.height as usize)
    } else {
        (area.height, count)
    };
    (0..rows).map(move |z| (there(z), z as usize * count, count))
}

fn cannot_write(folder: &Path, size: [u32; 2], kind: Kind, error: io::Error) -> Error {
    if !matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    ) {
        return Error::io(folder, "cannot write the heights", error);
    }
    let bytes = u64::from(size[0]) * u64::from(size[1]) * kind.bytes() as u64;
    Error::file(
        folder,
        "there is no room for the heights",
        format!("{:.1} GB free while the source is read", bytes as f64 / 1e9),
    )
}

/// Finished heights: integers, voids filled.
#[derive(Debug)]
pub(super) struct StoredGround {
    pub store: Store,
    pub range: (i32, i32),
    pub summit: [u32; 2],
    /// What is filled but absent.
    pub kept: Voids,
}

impl Ground for StoredGround {
    fn size(&self) -> [u32; 2] {
        self.store.size
    }

    fn range(&self) -> (i32, i32) {
        self.range
    }

    fn summit(&self) -> [u32; 2] {
        self.summit
    }

    fn absent_count(&self) -> u64 {
        self.kept.count()
    }

    fn absent(&self, area: Area) -> Result<Option<Vec<bool>>> {
        Ok(self.kept.of(area))
    }

    fn read(&self, area: Area) -> Result<HeightMap> {
        fn heights<T: Number>(numbers: &[T]) -> Vec<i32> {
            numbers
                .iter()
                .map(|number| number.to_f64() as i32)
                .collect()
        }
        let heights = match self.store.read(area)? {
            Numbers::I16(numbers) => numbers.iter().map(|&number| number.into()).collect(),
            Numbers::I32(numbers) => numbers,
            other => each_kind!(&other, numbers => heights(numbers)),
        };
        Ok(HeightMap {
            width: area.width,
            height: area.height,
            heights,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Random;
    use super::*;

    fn shelf(in_memory: u64) -> Shelf {
        Shelf {
            folder: std::env::temp_dir(),
            in_memory,
        }
    }

    /// A store on disk and one in memory, written alike with what is in `numbers`.
    fn twins(size: [u32; 2], numbers: &Numbers) -> [Store; 2] {
        [0, u64::MAX].map(|in_memory| {
            let mut store = Store::new(size, numbers.kind(), &shelf(in_memory)).unwrap();
            let all = numbers.to_f64();
            for area in bands(store.whole(), 40) {
                let start = (area.z * area.width) as usize;
                let part = &all[start..][..(area.width * area.height) as usize];
                store
                    .write(area, Numbers::from_f64(store.kind, part))
                    .unwrap();
            }
            store
        })
    }

    #[test]
    fn any_area_reads_as_it_was_written_wherever_it_lies() {
        let mut random = Random(4);
        for kind in [Kind::I16, Kind::I32, Kind::F32, Kind::F64] {
            let size = [17, 23];
            let all: Vec<f64> = (0..17 * 23).map(f64::from).collect();
            let [disk, memory] = twins(size, &Numbers::from_f64(kind, &all));
            for _ in 0..200 {
                let mut side = |whole: u32| {
                    let start = random.below(whole as usize) as u32;
                    (start, 1 + random.below((whole - start) as usize) as u32)
                };
                let ((x, width), (z, height)) = (side(17), side(23));
                let area = Area {
                    x,
                    z,
                    width,
                    height,
                };
                let naive: Vec<f64> = (z..z + height)
                    .flat_map(|z| (x..x + width).map(move |x| f64::from(z * 17 + x)))
                    .collect();
                assert_eq!(disk.read(area).unwrap().to_f64(), naive);
                assert_eq!(memory.read(area).unwrap().to_f64(), naive);
            }
        }
    }

    #[test]
    fn a_part_can_be_written_over() {
        let all = Numbers::I16(vec![1; 30]);
        for mut store in twins([5, 6], &all) {
            let area = Area {
                x: 1,
                z: 2,
                width: 3,
                height: 2,
            };
            store.write(area, Numbers::I16(vec![9; 6])).unwrap();
            let read = store.read(store.whole()).unwrap().to_f64();
            assert_eq!(read.iter().filter(|v| **v == 9.0).count(), 6);
            assert_eq!(
                (read[11], read[13], read[16], read[18]),
                (9.0, 9.0, 9.0, 9.0)
            );
        }
    }

    #[test]
    fn ground_is_read_from_many_threads() {
        let all: Vec<f64> = (0..100 * 90).map(f64::from).collect();
        let [store, _] = twins([100, 90], &Numbers::from_f64(Kind::I16, &all));
        let ground = StoredGround {
            store,
            range: (0, 8999),
            summit: [99, 89],
            kept: Voids::default(),
        };
        std::thread::scope(|scope| {
            for x in 0..8 {
                let ground = &ground;
                scope.spawn(move || {
                    for z in 0..80 {
                        let area = Area {
                            x,
                            z,
                            width: 10,
                            height: 10,
                        };
                        let map = ground.read(area).unwrap();
                        assert_eq!(map.heights[99], ((z + 9) * 100 + x + 9) as i32);
                    }
                });
            }
        });
    }

    #[test]
    fn what_went_wrong_is_told_in_a_line() {
        let nowhere = Shelf {
            folder: "/nowhere/at/all".into(),
            in_memory: 0,
        };
        let message = Store::new([9, 9], Kind::I16, &nowhere)
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("/nowhere/at/all: cannot make"),
            "{message}"
        );
        let full = io::Error::from(ErrorKind::StorageFull);
        let message = cannot_write(Path::new("/x"), [40_000, 40_000], Kind::I32, full).to_string();
        assert!(
            message.contains("no room") && message.contains("6.4 GB"),
            "{message}"
        );
    }
}
