//! Pictures that say something of the ground, such as where detail is wanted.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use image::{ImageFormat, ImageReader, Limits};

use super::{guarded, one_line};
use crate::error::{Error, Result};
use crate::terrain::detail::DetailMask;

/// Most pixels a side.
const MAX_SIDE: u32 = 1 << 15;
const MAX_BYTES: u64 = 1 << 30;

/// Reads a PNG as greys; colours by their brightness, transparency left out.
pub fn load_mask(path: &Path) -> Result<DetailMask> {
    let file = File::open(path).map_err(|e| Error::io(path, "cannot open", e))?;
    guarded(path, || {
        let mut reader = ImageReader::with_format(BufReader::new(file), ImageFormat::Png);
        let mut limits = Limits::default();
        limits.max_image_width = Some(MAX_SIDE);
        limits.max_image_height = Some(MAX_SIDE);
        limits.max_alloc = Some(MAX_BYTES);
        reader.limits(limits);
        let decoded = reader.decode();
        let picture = decoded.map_err(|e| {
            Error::file(
                path,
                format!("damaged PNG: {}", one_line(e)),
                "a PNG picture",
            )
        })?;
        let picture = picture.into_luma8();
        Ok(DetailMask {
            size: [picture.width(), picture.height()],
            greys: picture.into_raw(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_becomes_greys_and_other_bytes_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mask.png");
        let picture = image::GrayImage::from_raw(3, 1, vec![0, 100, 255]).unwrap();
        picture.save(&path).unwrap();
        let mask = load_mask(&path).unwrap();
        assert_eq!((mask.size, mask.greys), ([3, 1], vec![0, 100, 255]));
        std::fs::write(&path, b"no picture").unwrap();
        let message = load_mask(&path).unwrap_err().to_string();
        assert!(
            message.contains("mask.png") && !message.contains('\n'),
            "{message}"
        );
        assert!(load_mask(&folder.path().join("none.png")).is_err());
    }
}
