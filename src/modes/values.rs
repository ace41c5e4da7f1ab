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

/// A number that fits, or what is said of one that does not.
fn fitting(text: &str, fits: impl Fn(f64) -> bool, otherwise: &str) -> Result<f64, String> {
    let value = finite(text)?;
    if fits(value) {
        Ok(value)
    } else {
        Err(format!("'{text}' is {otherwise}"))
    }
}

pub fn positive(text: &str) -> Result<f64, String> {
    fitting(text, |value| value > 0.0, "not above 0")
}

pub fn not_negative(text: &str) -> Result<f64, String> {
    fitting(text, |value| value >= 0.0, "below 0")
}

pub fn exaggeration(text: &str) -> Result<f64, String> {
    let fits = |value| value > 0.0 && value <= 100.0;
    fitting(text, fits, "not above 0 and at most 100")
}

pub fn within<const LOW: u32, const HIGH: u32>(text: &str) -> Result<f64, String> {
    let fits = |value| (LOW as f64..=HIGH as f64).contains(&value);
    fitting(text, fits, &format!("not between {LOW} and {HIGH}"))
}

pub fn spacing(text: &str) -> Result<Pair, String> {
    let (x, z) = text.split_once(',').unwrap_or((text, text));
    let metres = |text| finite(text).ok().filter(|&m| m > 0.0 && m <= 1e6);
    let pair = metres(x).zip(metres(z)).map(|(x, z)| Pair([x, z]));
    pair.ok_or_else(|| {
        format!(
            "'{text}' is not a spacing; expected metres above 0 and up to 1e6, such as 30, or X,Z"
        )
    })
}

pub fn whole<T: TryFrom<u32>, const LOW: u32, const HIGH: u32>(text: &str) -> Result<T, String> {
    let number = text.trim().parse().ok();
    let number = number.filter(|number| (LOW..=HIGH).contains(number));
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("'{text}' is not a whole number from {LOW} to {HIGH}"))
}

pub fn patch_cells(text: &str) -> Result<u32, String> {
    whole::<u32, 4, 512>(text)
        .ok()
        .filter(|cells| cells.is_power_of_two())
        .ok_or_else(|| format!("'{text}' is not a power of two from 4 to 512"))
}

/// Samples a pixel.
pub fn msaa(text: &str) -> Result<u8, String> {
    whole::<u8, 1, 4>(text)
        .ok()
        .filter(|&samples| samples == 1 || samples == 4)
        .ok_or_else(|| format!("'{text}' is neither 1 nor 4"))
}
