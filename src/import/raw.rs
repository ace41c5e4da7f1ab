//! Raw height maps without a header: `.r16` (unsigned 16-bit) and `.r32` (float).
//!
//! Nothing in such a file says its size or its byte order. A square is told by the length; the
//! rest the user says, and a wrong byte order gives itself away, since it makes noise of ground.
//!
//! - The file's length is the number of samples times their size, exactly.
//! - NaN is void in floats, nothing in integers.

use std::io;
use std::path::Path;

use tiff::tags::SampleFormat;

use super::grid::{Measure, check_size};
use super::input::Input;
use super::lint::Warning;
use super::options::{ByteOrder, ImportOptions};
use super::plain::Plain;
use super::raster::{Head, Raster};
use super::voids::VoidRule;
use crate::error::{Error, Result};

/// Ground has hardly any two neighbours that lie a quarter of its range apart.
const MANY_JUMPS: f64 = 0.005;
/// How many fewer there must be in the other byte order to say so.
const CLEARLY_SMOOTHER: f64 = 8.0;
/// So many rows of a file tell its byte order as well as all of them.
const MOST_ROWS: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Uint16,
    Float32,
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Kind::Uint16 => 2,
            Kind::Float32 => 4,
        }
    }

    fn number(self, bytes: &[u8], order: ByteOrder) -> f64 {
        match (self, order, bytes) {
            (Kind::Uint16, ByteOrder::Little, [a, b]) => f64::from(u16::from_le_bytes([*a, *b])),
            (Kind::Uint16, ByteOrder::Big, [a, b]) => f64::from(u16::from_be_bytes([*a, *b])),
            (Kind::Float32, ByteOrder::Little, [a, b, c, d]) => {
                f64::from(f32::from_le_bytes([*a, *b, *c, *d]))
            }
            (Kind::Float32, ByteOrder::Big, [a, b, c, d]) => {
                f64::from(f32::from_be_bytes([*a, *b, *c, *d]))
            }
            _ => f64::NAN,
        }
    }

    fn format(self) -> SampleFormat {
        match self {
            Kind::Uint16 => SampleFormat::Uint,
            Kind::Float32 => SampleFormat::IEEEFP,
        }
    }

    fn rule(self) -> VoidRule {
        match self {
            Kind::Uint16 => VoidRule::unsigned(None),
            Kind::Float32 => VoidRule::single(None),
        }
    }
}

pub(super) fn open(
    kind: Kind,
    input: Input,
    path: &Path,
    options: &ImportOptions,
) -> Result<Raster> {
    let [width, height] = size(kind, input.len(), path, options)?;
    check_size(path, u64::from(width), u64::from(height))?;
    let order = options.byte_order.unwrap_or(ByteOrder::Little);
    let cannot_read = |e| Error::io(path, "cannot read", e);
    let warning = wrong_order(kind, &input, [width, height], order).map_err(cannot_read)?;
    let samples = (kind.format(), 8 * kind.bytes() as u16);
    let plain = Plain::rows(path, input, width, samples, order, kind.rule());
    let head = Head {
        width,
        height,
        integer: kind == Kind::Uint16,
        kind: plain.kind(),
        georef: None,
        measure: Measure::default(),
        statistics: None,
        warnings: warning.into_iter().collect(),
    };
    Ok(Raster {
        head,
        samples: Box::new(plain),

        in_memory: false,
    })
}

fn size(kind: Kind, len: u64, path: &Path, options: &ImportOptions) -> Result<[u32; 2]> {
    let bytes = kind.bytes() as u64;
    let fits = |w: u32, h: u32| {
        let samples = u64::from(w).checked_mul(u64::from(h));
        samples.and_then(|n| n.checked_mul(bytes)) == Some(len)
    };
    let square = (len / bytes).isqrt().min(u64::from(u32::MAX)) as u32;
    match options.raw_size {
        Some([width, height]) if fits(width, height) => Ok([width, height]),
        Some([width, height]) => Err(Error::file(
            path,
            format!("{len} bytes are not {width} x {height} samples of {bytes} bytes"),
            "the right --raw-size WxH",
        )),
        None if fits(square, square) => Ok([square, square]),
        None => Err(Error::file(
            path,
            format!("{len} bytes are no square of samples of {bytes} bytes"),
            "its size: --raw-size WxH",
        )),
    }
}

/// A warning when the heights jump as they are read and would not in the other order.
fn wrong_order(
    kind: Kind,
    input: &Input,
    [width, height]: [u32; 2],
    order: ByteOrder,
) -> io::Result<Option<Warning>> {
    let (other, flag) = match order {
        ByteOrder::Little => (ByteOrder::Big, "--byte-order be"),
        ByteOrder::Big => (ByteOrder::Little, "--byte-order le"),
    };
    let row_bytes = kind.bytes() as u64 * u64::from(width);
    let step = height.div_ceil(MOST_ROWS);
    let (mut as_read, mut as_other) = (Jumps::new(kind, order), Jumps::new(kind, other));
    for look in [Jumps::range, Jumps::count] {
        for z in (0..height).step_by(step as usize) {
            let row = input.bytes_at(u64::from(z) * row_bytes, row_bytes)?;
            look(&mut as_read, &row);
            look(&mut as_other, &row);
        }
    }
    let (as_read, as_other) = (as_read.part(), as_other.part());
    let wrong = as_read > MANY_JUMPS && as_other * CLEARLY_SMOOTHER < as_read;
    Ok(wrong.then(|| {
        let text = "the heights jump from sample to sample and would not in the other byte order";
        Warning::new("byte order", text, flag)
    }))
}

/// How many neighbours in a row differ by more than a quarter of the range.
struct Jumps {
    kind: Kind,
    order: ByteOrder,
    low: f64,
    high: f64,
    /// Numbers that are no height of any ground.
    odd: u64,
    jumps: u64,
    samples: u64,
}

impl Jumps {
    fn new(kind: Kind, order: ByteOrder) -> Jumps {
        Jumps {
            kind,
            order,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            odd: 0,
            jumps: 0,
            samples: 0,
        }
    }

    fn heights(&self, row: &[u8]) -> Vec<f64> {
        let numbers = row.chunks_exact(self.kind.bytes());
        numbers.map(|b| self.kind.number(b, self.order)).collect()
    }

    fn range(&mut self, row: &[u8]) {
        let earthly = |v: f64| v.is_nan() || v == 0.0 || (1e-6..1e6).contains(&v.abs());
        for height in self.heights(row) {
            self.odd += u64::from(!earthly(height));
            self.samples += 1;
            (self.low, self.high) = (self.low.min(height), self.high.max(height));
        }
    }

    /// After the range of all rows is known.
    fn count(&mut self, row: &[u8]) {
        let most = (self.high - self.low) / 4.0;
        let far = |pair: &&[f64]| (pair[1] - pair[0]).abs() > most;
        self.jumps += self.heights(row).windows(2).filter(far).count() as u64;
    }

    /// The part of all samples; 1 where the numbers are not those of any ground.
    fn part(&self) -> f64 {
        if self.odd * 10 > self.samples {
            return 1.0;
        }
        self.jumps as f64 / self.samples.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::Grid;
    use super::*;

    fn read_as(kind: Kind, bytes: &[u8], options: &ImportOptions) -> Result<Grid> {
        let input = Input::memory(bytes.to_vec());
        open(kind, input, Path::new("x.r16"), options)?.into_grid()
    }

    fn sized(width: u32, height: u32) -> ImportOptions {
        ImportOptions {
            raw_size: Some([width, height]),
            ..Default::default()
        }
    }

    fn hill() -> Vec<u16> {
        (0..32 * 32u16)
            .map(|i| 3000 + (i % 32) * 21 + (i / 32) * 5)
            .collect()
    }

    #[test]
    fn squares_are_told_by_their_length() {
        let bytes: Vec<u8> = hill().iter().flat_map(|v| v.to_le_bytes()).collect();
        let grid = read_as(Kind::Uint16, &bytes, &ImportOptions::default()).unwrap();
        assert_eq!((grid.width, grid.height, grid.integer), (32, 32, true));
        assert_eq!(grid.samples[33], 3026.0);
        assert!(grid.warnings.is_empty());
    }

    #[test]
    fn other_sizes_are_asked_for_and_checked() {
        let bytes = [0; 24];
        let message = |options: ImportOptions| {
            read_as(Kind::Uint16, &bytes, &options)
                .unwrap_err()
                .to_string()
        };
        assert!(message(ImportOptions::default()).contains("--raw-size"));
        assert!(message(sized(5, 3)).contains("not 5 x 3"));
        assert!(message(sized(u32::MAX, u32::MAX)).contains("are not"));
        assert!(message(sized(12, 1)).contains("too small"));
        let grid = read_as(Kind::Uint16, &bytes, &sized(4, 3)).unwrap();
        assert_eq!((grid.width, grid.height), (4, 3));
    }

    #[test]
    fn floats_have_voids() {
        let values = [1.5f32, f32::NAN, -2.0, 1e38];
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
        let options = ImportOptions {
            byte_order: Some(ByteOrder::Big),
            ..Default::default()
        };
        let grid = read_as(Kind::Float32, &bytes, &options).unwrap();
        assert!(!grid.integer && grid.samples[1].is_nan());
        assert_eq!((grid.samples[0], grid.samples[2]), (1.5, -2.0));
    }

    #[test]
    fn the_wrong_byte_order_is_noticed() {
        let swapped: Vec<u8> = hill().iter().flat_map(|v| v.to_be_bytes()).collect();
        let grid = read_as(Kind::Uint16, &swapped, &ImportOptions::default()).unwrap();
        assert_eq!(grid.warnings[0].pass, "--byte-order be");
        let floats: Vec<u8> = hill()
            .iter()
            .flat_map(|v| f32::from(*v).to_be_bytes())
            .collect();
        let grid = read_as(Kind::Float32, &floats, &ImportOptions::default()).unwrap();
        assert_eq!(grid.warnings[0].pass, "--byte-order be");
    }
}
