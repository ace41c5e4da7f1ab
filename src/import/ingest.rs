//! Files read into one store, and what was learnt of their samples on the way.
//!
//! One file goes straight into the store; of several, which may overlap, what there is to learn
//! is learnt when all are in place.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crossbeam_channel::Receiver;

use super::gather::{Findings, Gather};
use super::mosaic::Mosaic;
use super::numbers::{Kind, Numbers};
use super::options::ImportOptions;
use super::raster::{Head, Raster};
use super::store::Store;
use super::{file_name, open};
use crate::error::{Error, Result};
use crate::source::Area;

/// Samples of all files, as the files had them.
#[derive(Debug)]
pub(super) struct Ingested {
    /// Of what the crop kept.
    pub head: Head,
    pub files: Vec<String>,
    pub store: Store,
    pub found: Findings,
}

/// Reads the samples that the options ask for.
pub(super) fn ingest(
    paths: &[PathBuf],
    options: &ImportOptions,
    progress: &mut Progress,
) -> Result<Ingested> {
    match paths {
        [path] => one(path, open(path, options)?, options, progress),
        paths => several(paths, options, progress),
    }
}

pub(super) fn one(
    path: &Path,
    mut raster: Raster,
    options: &ImportOptions,
    progress: &mut Progress,
) -> Result<Ingested> {
    let window = window(&mut raster.head, path, options)?;
    progress.expect(&raster.head, samples(window));
    let size = [window.width, window.height];
    let mut store = Store::new(size, raster.head.kind, &options.shelf())?;
    let mut gather = Gather::new(window.width, raster.head.integer);
    std::thread::scope(|scope| {
        let (send, bands) = crossbeam_channel::bounded(1);
        let keeper = scope.spawn(|| keep(bands, &mut gather, &mut store));
        let read = raster.samples.read(window, &mut |mut numbers| {
            declare_void(&mut numbers, options);
            progress.add(numbers.len())?;
            // Nobody takes it when keeping failed, which is then what is told.
            let stopped = |_| Error::Interrupted;
            send.send(numbers).map_err(stopped)
        });
        drop(send);
        let kept = keeper.join();
        kept.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        read
    })?;
    Ok(Ingested {
        head: raster.head,
        files: vec![file_name(path)],
        store,
        found: some_heights(gather.finish(), path)?,
    })
}

/// Learns from bands of rows and stores them, while the next one is decoded.
fn keep(bands: Receiver<Numbers>, gather: &mut Gather, store: &mut Store) -> Result<()> {
    let whole = store.whole();
    let mut z = 0;
    for numbers in bands {
        gather.rows(&numbers)?;
        let height = numbers.len() as u32 / whole.width;
        store.write(Area { z, height, ..whole }, numbers)?;
        z += height;
    }
    Ok(())
}

fn several(
    paths: &[PathBuf],
    options: &ImportOptions,
    progress: &mut Progress,
) -> Result<Ingested> {
    let mut kept = Kept::default();
    let heads = paths.iter().map(|path| {
        let raster = open(path, options)?;
        let head = raster.head.clone();
        kept.keep(path, raster, options.shelf().in_memory);
        Ok((path.clone(), head))
    });
    let mosaic = Mosaic::of(heads.collect::<Result<_>>()?)?;
    let mut head = mosaic.head.clone();
    let window = window(&mut head, &mosaic.tiles[0].path, options)?;
    progress.expect(&head, mosaic.samples(window));
    let size = [window.width, window.height];
    let mut store = Store::empty(size, head.kind, &options.shelf())?;
    let warnings = mosaic.lay(
        window,
        &mut store,
        &mut |path| kept.take(path).map_or_else(|| open(path, options), Ok),
        &mut |numbers| {
            declare_void(numbers, options);
            progress.add(numbers.len())
        },
    )?;
    head.warnings.extend(warnings);
    let mut gather = Gather::new(window.width, head.integer);
    for band in store.bands() {
        gather.rows(&store.read(band)?)?;
    }
    Ok(Ingested {
        head,
        files: mosaic.names(),
        store,
        found: some_heights(gather.finish(), &mosaic.tiles[0].path)?,
    })
}

/// Tiles of formats that are decoded as a whole, so that they are decoded once; as many as there
/// is memory for, and of other formats none: each is an open file.
#[derive(Default)]
struct Kept {
    rasters: HashMap<PathBuf, Raster>,
    samples: u64,
}

impl Kept {
    fn keep(&mut self, path: &Path, raster: Raster, most: u64) {
        let count = samples(raster.head.whole());
        if raster.in_memory && self.samples + count <= most {
            self.samples += count;
            self.rasters.insert(path.to_owned(), raster);
        }
    }

    fn take(&mut self, path: &Path) -> Option<Raster> {
        self.rasters.remove(path)
    }
}

fn some_heights(found: Findings, path: &Path) -> Result<Findings> {
    if found.low > found.high {
        return Err(Error::file(path, "every sample is a void", "heights"));
    }
    Ok(found)
}

fn window(head: &mut Head, path: &Path, options: &ImportOptions) -> Result<Area> {
    match options.crop {
        Some(crop) => head.crop(crop, path),
        None => Ok(head.whole()),
    }
}

fn samples(area: Area) -> u64 {
    u64::from(area.width) * u64::from(area.height)
}

fn declare_void(numbers: &mut Numbers, options: &ImportOptions) {
    if let Some(nodata) = options.nodata {
        numbers.declare_void(nodata);
    }
}

/// Tells how many samples are done, of how many.
pub struct Progress<'a> {
    report: &'a mut dyn FnMut(u64, u64) -> Result<()>,
    done: u64,
    total: u64,
}

impl<'a> Progress<'a> {
    /// `report` is told what is done and what there is in all, several times a second; its error
    /// ends the reading.
    pub fn new(report: &'a mut dyn FnMut(u64, u64) -> Result<()>) -> Progress<'a> {
        Progress {
            report,
            done: 0,
            total: 0,
        }
    }

    /// Numbers that are no heights yet pass by twice.
    fn expect(&mut self, head: &Head, samples: u64) {
        let twice = !head.integer || head.kind > Kind::I32;
        self.total = samples * if twice { 2 } else { 1 };
    }

    pub(super) fn add(&mut self, samples: usize) -> Result<()> {
        self.done = (self.done + samples as u64).min(self.total);
        (self.report)(self.done, self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::Grid;
    use super::*;

    #[test]
    fn what_was_decoded_is_kept_as_far_as_there_is_memory_and_handed_out_once() {
        let raster = |side: u32| {
            let samples = vec![1.0; (side * side) as usize];
            Raster::from(Grid::plain(side, side, samples, true))
        };
        let [a, b, c] = ["a", "b", "c"].map(Path::new);
        let mut kept = Kept::default();
        kept.keep(a, raster(4), 40);
        kept.keep(b, raster(5), 40);
        kept.keep(
            c,
            Raster {
                in_memory: false,
                ..raster(2)
            },
            40,
        );
        assert!(kept.take(b).is_none(), "41 samples");
        assert!(kept.take(c).is_none(), "an open file");
        assert_eq!(kept.take(a).map(|raster| raster.head.width), Some(4));
        assert!(kept.take(a).is_none());
    }
}
