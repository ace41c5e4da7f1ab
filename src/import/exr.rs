//! OpenEXR height maps: one channel of half, float or whole numbers.
//!
//! The `exr` crate decodes block by block, so that only the channel that is asked for is kept.
//!
//! - Heights are in the channel Y, or R, or the only one; R, G and B must agree when all are
//!   there, since colours that differ are a picture. `--band` chooses a channel by its place.
//! - The first layer's full resolution is read; deep data and subsampled channels are refused.
//! - The claimed size is checked against the file's length before anything is allocated.

use std::io::{BufRead, Seek};
use std::path::Path;

use exr::block::reader::ChunksReader;
use exr::block::{self, UncompressedBlock};
use exr::math::Vec2;
use exr::meta::attribute::SampleType;
use exr::meta::header::Header;
use exr::prelude::f16;

use super::grid::{Grid, check_whole};
use super::one_line;
use super::options::ImportOptions;
use super::voids::VoidRule;
use crate::error::{Error, Result};

/// More than any of the compressions can shrink.
const MOST_SHRUNK: u64 = 4096;
/// Half floats have 11 bits, so that channels of one grey may differ in the last of them.
const SAME_GREY: f64 = 1.0 / 1024.0;

pub(super) fn read<R: BufRead + Seek>(
    reader: R,
    len: u64,
    path: &Path,
    options: &ImportOptions,
) -> Result<Grid> {
    let damaged = |e: exr::error::Error| {
        let what = format!("damaged or unusual EXR: {}", one_line(e));
        Error::file(path, what, "an intact OpenEXR file")
    };
    let reader = block::read(reader, true).map_err(damaged)?;
    let header = reader.headers()[0].clone();
    check_header(&header, len, path)?;
    let channels = Channels::choose(&header, path, options)?;
    let full = Vec2(0, 0);
    let wanted = |block: &block::BlockIndex| block.layer == 0 && block.level == full;
    let chunks = reader
        .filter_chunks(true, |_, _, block| wanted(&block))
        .map_err(damaged)?;
    let Vec2(width, height) = header.layer_size;
    let mut target = Target {
        samples: vec![f64::NAN; width * height],
        width,
        seen: 0,
        coloured: false,
    };
    for block in chunks.sequential_decompressor(true) {
        target.take(&block.map_err(damaged)?, &header, &channels);
    }
    if target.seen < width * height {
        return Err(Error::file(path, "truncated EXR", "an intact OpenEXR file"));
    }
    if target.coloured {
        let what = "a coloured picture (R, G and B differ)";
        return Err(Error::file(
            path,
            what,
            "one channel of heights, or --band N",
        ));
    }
    let integer = header.channels.list[channels.heights].sample_type == SampleType::U32;
    Ok(Grid::plain(
        width as u32,
        height as u32,
        target.samples,
        integer,
    ))
}

fn check_header(header: &Header, len: u64, path: &Path) -> Result<()> {
    let Vec2(width, height) = header.layer_size;
    check_whole(path, width as u64, height as u64, "a TIFF")?;
    if header.deep {
        return Err(Error::file(path, "deep data", "one channel of heights"));
    }
    let bytes = header.channels.bytes_per_pixel as u64 * width as u64 * height as u64;
    if bytes > len.saturating_mul(MOST_SHRUNK) {
        let what = format!("{len} bytes cannot hold {width} x {height} samples");
        return Err(Error::file(path, what, "an intact OpenEXR file"));
    }
    Ok(())
}

/// Which channels matter, by their places in the file.
struct Channels {
    heights: usize,
    /// These must be the same.
    twins: Vec<usize>,
}

impl Channels {
    fn choose(header: &Header, path: &Path, options: &ImportOptions) -> Result<Channels> {
        let list = &header.channels.list;
        let names: Vec<String> = list.iter().map(|c| c.name.to_string()).collect();
        let place = |name: &str| names.iter().position(|n| n.eq_ignore_ascii_case(name));
        let known = || place("Y").or_else(|| place("R"));
        let (heights, chosen) = match options.band {
            Some(band) => (usize::from(band).checked_sub(1), true),
            None if list.len() == 1 => (Some(0), false),
            None => (known(), false),
        };
        let Some(heights) = heights.filter(|at| *at < list.len()) else {
            let what = format!("no channel of heights among {}", one_line(names.join(", ")));
            let expected = format!("Y or R, or --band 1 to {}", list.len());
            return Err(Error::file(path, what, expected));
        };
        if list.iter().any(|c| c.sampling != Vec2(1, 1)) {
            return Err(Error::file(path, "subsampled channels", "whole channels"));
        }
        let is_red = !chosen && place("R") == Some(heights);
        let colours = [place("G"), place("B")].into_iter().flatten();
        let twins = colours.filter(|_| is_red).collect();
        Ok(Channels { heights, twins })
    }
}

/// The raster that blocks are put into.
struct Target {
    samples: Vec<f64>,
    width: usize,
    seen: usize,
    coloured: bool,
}

impl Target {
    fn take(&mut self, block: &UncompressedBlock, header: &Header, channels: &Channels) {
        let list = &header.channels;
        let rule = VoidRule::single(None);
        let lines = || {
            block.lines(list).map(|line| {
                let Vec2(x, z) = line.location.position;
                let kind = list.list[line.location.channel].sample_type;
                (
                    line.location.channel,
                    z * self.width + x,
                    numbers(line.value, kind),
                )
            })
        };
        let heights: Vec<_> = lines().filter(|l| l.0 == channels.heights).collect();
        let twins: Vec<_> = lines().filter(|l| channels.twins.contains(&l.0)).collect();
        for (_, start, values) in heights {
            self.seen += values.len();
            for (sample, value) in self.samples.iter_mut().skip(start).zip(values) {
                *sample = rule.apply(value);
            }
        }
        for (_, start, values) in twins {
            let both = self.samples.iter().skip(start).zip(values);
            let mut pairs = both.map(|(a, b)| (a, rule.apply(b)));
            self.coloured |= pairs.any(|(a, b)| (a - b).abs() > SAME_GREY * a.abs().max(b.abs()));
        }
    }
}

fn numbers(bytes: &[u8], kind: SampleType) -> Vec<f64> {
    match kind {
        SampleType::F16 => {
            let pairs = bytes.as_chunks::<2>().0.iter();
            pairs.map(|b| f16::from_ne_bytes(*b).to_f64()).collect()
        }
        SampleType::F32 => {
            let words = bytes.as_chunks::<4>().0.iter();
            words.map(|b| f64::from(f32::from_ne_bytes(*b))).collect()
        }
        SampleType::U32 => {
            let words = bytes.as_chunks::<4>().0.iter();
            words.map(|b| f64::from(u32::from_ne_bytes(*b))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::fixtures;
    use super::*;

    fn read_as(bytes: &[u8], options: &ImportOptions) -> Result<Grid> {
        let len = bytes.len() as u64;
        read(Cursor::new(bytes), len, Path::new("x.exr"), options)
    }

    fn read_bytes(bytes: &[u8]) -> Result<Grid> {
        read_as(bytes, &ImportOptions::default())
    }

    const HEIGHTS: [f32; 6] = [0.0, 0.5, -1.25, 3.0, f32::NAN, 100.0];

    #[test]
    fn a_channel_comes_out_as_it_is() {
        for name in ["Y", "R", "height"] {
            let grid = read_bytes(&fixtures::exr(3, &[(name, &HEIGHTS)])).unwrap();
            assert_eq!((grid.width, grid.height, grid.integer), (3, 2, false));
            assert_eq!(grid.samples[..4], [0.0, 0.5, -1.25, 3.0]);
            assert!(grid.samples[4].is_nan());
        }
    }

    #[test]
    fn grey_may_be_stored_as_colours_and_colours_are_refused() {
        let grey = fixtures::exr(3, &[("B", &HEIGHTS), ("G", &HEIGHTS), ("R", &HEIGHTS)]);
        assert_eq!(read_bytes(&grey).unwrap().samples[3], 3.0);
        let other = [9.0; 6];
        let colours = fixtures::exr(3, &[("B", &other), ("G", &HEIGHTS), ("R", &HEIGHTS)]);
        let message = read_bytes(&colours).unwrap_err().to_string();
        assert!(message.contains("R, G and B differ"), "{message}");
        let blue = ImportOptions {
            band: Some(1),
            ..Default::default()
        };
        assert_eq!(read_as(&colours, &blue).unwrap().samples, [9.0; 6]);
    }

    #[test]
    fn channels_that_nobody_knows_are_listed() {
        let bytes = fixtures::exr(3, &[("depth", &HEIGHTS), ("mask", &HEIGHTS)]);
        let message = read_bytes(&bytes).unwrap_err().to_string();
        assert!(message.contains("depth, mask") && message.contains("--band 1 to 2"));
    }

    #[test]
    fn a_cut_file_is_refused() {
        let bytes = fixtures::exr(3, &[("Y", &HEIGHTS)]);
        assert!(read_bytes(&bytes[..bytes.len() - 5]).is_err());
    }
}
