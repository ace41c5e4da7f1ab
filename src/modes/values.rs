//! The values of flags: how they are read, and what is said when they are wrong.

use std::str::FromStr;

/// A picture's size, `WxH`, 16 to 8192 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub [u32; 2]);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is not a size; expected WIDTHxHEIGHT in pixels, 16 to 8192 each");
        let (width, height) = text.split_once(['x', 'X']).ok_or_else(wrong)?;
        let side = |text: &str| {
            text.parse()
                .ok()
                .filter(|side| (16..=8192).contains(side))
                .ok_or_else(wrong)
        };
        Ok(Size([side(width)?, side(height)?]))
    }
}

/// Columns and rows of a file without a header.
pub type RawSize = [u32; 2];

pub fn raw_size(text: &str) -> Result<RawSize, String> {
    let sides = text.split_once(['x', 'X']);
    let size = sides.and_then(|(w, h)| Some([w.parse().ok()?, h.parse().ok()?]));
    size.ok_or_else(|| format!("'{text}' is not a size; expected WIDTHxHEIGHT in samples"))
}

/// Two numbers, `A,B`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair(pub [f64; 2]);

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a pair; expected two numbers such as 300,38");
        let (a, b) = text.split_once(',').ok_or_else(wrong)?;
        Ok(Pair([
            finite(a).map_err(|_| wrong())?,
            finite(b).map_err(|_| wrong())?,
        ]))
    }
}

pub fn finite(text: &str) -> Result<f64, String> {
    let value: f64 = text
        .trim()
        .parse()
        .map_err(|_| format!("'{text}' is not a number"))?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(format!("'{text}' is not a finite number"))
    }
}

pub fn positive(text: &str) -> Result<f64, String> {
    finite(text).and_then(|value| {
        if value > 0.0 {
            Ok(value)
        } else {
            Err(format!("'{text}' is not above 0"))
        }
    })
}

pub fn not_negative(text: &str) -> Result<f64, String> {
    finite(text).and_then(|value| {
        if value >= 0.0 {
            Ok(value)
        } else {
            Err(format!("'{text}' is below 0"))
        }
    })
}

pub fn exaggeration(text: &str) -> Result<f64, String> {
    let value = positive(text)?;
    if value <= 100.0 {
        Ok(value)
    } else {
        Err("at most 100 times as high".into())
    }
}

pub fn within<const LOW: u32, const HIGH: u32>(text: &str) -> Result<f64, String> {
    let value = finite(text)?;
    let fits = (LOW as f64..=HIGH as f64).contains(&value);
    if fits {
        Ok(value)
    } else {
        Err(format!("'{text}' is not between {LOW} and {HIGH}"))
    }
}

pub fn spacing(text: &str) -> Result<Pair, String> {
    let both = if text.contains(',') {
        text.to_owned()
    } else {
        format!("{text},{text}")
    };
    let pair: Pair = both.parse()?;
    if pair.0.iter().all(|&m| m > 0.0 && m <= 1e6) {
        Ok(pair)
    } else {
        Err(format!("'{text}' is not a spacing in metres"))
    }
}
