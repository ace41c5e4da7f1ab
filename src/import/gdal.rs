//! What GDAL writes beside a TIFF's tags: unit, scale and offset of each band, in a text of XML.
//!
//! - Values that cannot be followed (no number, a scale of 0, two units) are refused.

use std::path::Path;

use super::grid::Measure;
use super::{one_line, units};
use crate::error::{Error, Result};

/// The items of one band, as they are written.
pub(super) struct Facts<'a> {
    pub unit: Option<&'a str>,
    pub scale: Option<&'a str>,
    pub offset: Option<&'a str>,
}

/// `band` counts from 0.
pub(super) fn facts(xml: &str, band: u16) -> Facts<'_> {
    Facts {
        unit: item(xml, "unittype", band),
        scale: item(xml, "scale", band),
        offset: item(xml, "offset", band),
    }
}

impl Facts<'_> {
    pub fn measure(&self, path: &Path) -> Result<Measure> {
        let number = |text: Option<&str>, role: &str, usual: f64| {
            let Some(text) = text else { return Ok(usual) };
            let value = text.parse().ok().filter(|v: &f64| v.is_finite());
            let sound = value.filter(|v| role == "offset" || *v != 0.0);
            sound.ok_or_else(|| {
                let what = format!("the file asks for a height {role} of {}", one_line(text));
                Error::file(path, what, "a number other than 0")
            })
        };
        Ok(Measure {
            scale: number(self.scale, "scale", 1.0)?,
            offset: number(self.offset, "offset", 0.0)?,
            unit_m: None,
        })
    }

    pub fn unit_m(&self, path: &Path) -> Result<Option<f64>> {
        let Some(name) = self.unit else {
            return Ok(None);
        };
        let metres = units::by_name(name).map(Some);
        metres.ok_or_else(|| {
            let what = format!("heights are in `{}`", one_line(name));
            Error::file(path, what, "metres or feet, or --height-scale")
        })
    }
}

/// One unit of two that a file may name, when they do not contradict each other.
pub(super) fn one_unit(path: &Path, a: Option<f64>, b: Option<f64>) -> Result<Option<f64>> {
    match (a, b) {
        // Writers mix up the two feet, which differ by two millionths.
        (Some(a), Some(b)) if (a - b).abs() > 1e-5 * a => {
            let what = format!("heights are said to be in units of {a} and of {b} m");
            Err(Error::file(path, what, "one unit, or --height-scale"))
        }
        _ => Ok(b.or(a)),
    }
}

/// The text of a band's item with that role; an item without a band is for all of them.
fn item<'a>(xml: &'a str, role: &str, band: u16) -> Option<&'a str> {
    let role = format!("role=\"{role}\"");
    let of_band = format!("sample=\"{band}\"");
    let items = xml.split("<Item").skip(1);
    let mut texts = items.filter_map(|item| {
        let (tag, rest) = item.split_once('>')?;
        let ours = tag.contains(&role) && (tag.contains(&of_band) || !tag.contains("sample="));
        let text = rest.split('<').next().unwrap_or_default().trim();
        (ours && !text.is_empty()).then_some(text)
    });
    texts.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = "<GDALMetadata>\
        <Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.1</Item>\
        <Item name=\"OFFSET\" sample=\"0\" role=\"offset\">-20</Item>\
        <Item name=\"UNITTYPE\" sample=\"1\" role=\"unittype\">ft</Item>\
        <Item name=\"SCALE\" sample=\"1\" role=\"scale\">x</Item></GDALMetadata>";

    #[test]
    fn each_band_has_its_own() {
        let path = Path::new("x.tif");
        let first = facts(XML, 0);
        let measure = first.measure(path).unwrap();
        assert_eq!((measure.scale, measure.offset), (0.1, -20.0));
        assert_eq!(first.unit_m(path).unwrap(), None);
        assert_eq!(facts(XML, 1).unit_m(path).unwrap(), Some(0.3048));
        assert_eq!(facts("", 0).measure(path).unwrap(), Measure::default());
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        let path = Path::new("x.tif");
        let message = facts(XML, 1).measure(path).unwrap_err().to_string();
        assert!(message.contains("scale of x"), "{message}");
        let zero = "<Item name=\"SCALE\" role=\"scale\">0</Item>";
        assert!(facts(zero, 3).measure(path).is_err());
        let cubits = "<Item role=\"unittype\">cubits</Item>";
        let message = facts(cubits, 0).unit_m(path).unwrap_err().to_string();
        assert!(message.contains("`cubits`"), "{message}");
        assert!(one_unit(path, Some(1.0), Some(0.3048)).is_err());
        assert!(one_unit(path, Some(0.3048), Some(1200.0 / 3937.0)).is_ok());
    }
}
