//! Pictures that say something of the ground, such as where detail is wanted.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use image::{DynamicImage, ImageError, ImageFormat, ImageReader, Limits};

use super::{guarded, one_line};
use crate::error::{Error, Result};
use crate::terrain::detail::DetailMask;

/// Most pixels a side.
const MAX_SIDE: u32 = 1 << 15;
const MAX_BYTES: u64 = 1 << 30;

/// Reads a PNG as greys; colours by their brightness, transparency left out.
pub fn load_mask(path: &Path) -> Result<DetailMask> {
    let cannot_open = |e| Error::io(path, "cannot open", e);
    // Opening a pipe would wait for its other end.
    if !fs::metadata(path).map_err(cannot_open)?.is_file() {
        return Err(Error::file(path, "is not a regular file", "a PNG picture"));
    }
    let mut file = BufReader::new(File::open(path).map_err(cannot_open)?);
    let head = file
        .fill_buf()
        .map_err(|e| Error::io(path, "cannot read", e))?;
    check_is_png(path, head)?;
    let picture = guarded(path, || decode(path, file))?.into_luma8();
    Ok(DetailMask {
        size: [picture.width(), picture.height()],
        greys: picture.into_raw(),
    })
}

fn check_is_png(path: &Path, head: &[u8]) -> Result<()> {
    let what = match image::guess_format(head) {
        Ok(ImageFormat::Png) => return Ok(()),
        Ok(other) => {
            let name = format!("{other:?}").to_uppercase();
            format!("is no PNG; it looks like {name}")
        }
        Err(_) => "is no PNG, nor another picture".into(),
    };
    Err(Error::file(path, what, "a PNG picture"))
}

fn decode(path: &Path, file: BufReader<File>) -> Result<DynamicImage> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_BYTES);
    let mut reader = ImageReader::with_format(file, ImageFormat::Png);
    reader.limits(limits);
    reader.decode().map_err(|error| match error {
        ImageError::Limits(_) => Error::file(
            path,
            "is too large a picture",
            format!("up to {MAX_SIDE} pixels a side and 1 GiB in memory"),
        ),
        error => {
            let what = format!("damaged PNG: {}", one_line(error));
            Error::file(path, what, "a PNG picture")
        }
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
        assert!(load_mask(&folder.path().join("none.png")).is_err());
    }

    /// The error of a mask of these bytes.
    fn refused(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mask.png");
        fs::write(&path, bytes).unwrap();
        load_mask(&path).unwrap_err().to_string()
    }

    /// The PNG of a black picture of which only the size is there.
    fn header(side: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let picture = image::GrayImage::new(1, 1);
        let mut out = std::io::Cursor::new(&mut bytes);
        picture.write_to(&mut out, ImageFormat::Png).unwrap();
        bytes[16..20].copy_from_slice(&side.to_be_bytes());
        let sum = crc32fast::hash(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    #[test]
    fn what_is_no_png_is_told_what_it_looks_like() {
        for (bytes, what) in [
            (&b"no picture"[..], "is no PNG, nor another picture"),
            (b"", "is no PNG, nor another picture"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "looks like JPEG"),
            (b"II\x2a\0\x08\0\0\0", "looks like TIFF"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "damaged PNG"),
            (&header(40_000), "expected up to 32768 pixels a side"),
        ] {
            let message = refused(bytes);
            assert!(message.contains(what), "{message}");
            assert!(
                message.contains("mask.png") && !message.contains('\n'),
                "{message}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.png");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        for path in [&pipe, folder.path()] {
            let message = load_mask(path).unwrap_err().to_string();
            assert!(message.contains("is not a regular file"), "{message}");
        }
    }
}
