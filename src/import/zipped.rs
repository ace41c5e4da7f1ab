//! `.hgt.zip`: SRTM tiles as they are handed out, one in an archive.
//!
//! - The archive is searched for its one `.hgt`; the rest is left alone.
//! - No more is unpacked than the largest SRTM square has bytes.

use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use super::input::Input;
use super::raster::Raster;
use super::{hgt, one_line};
use crate::error::{Error, Result};

const EXPECTED: &str = "a zip with one SRTM .hgt in it";

pub(super) fn open(input: Input, path: &Path) -> Result<Raster> {
    let damaged = |e: ZipError| {
        let what = format!("damaged or unusual zip: {}", one_line(e));
        Error::file(path, what, EXPECTED)
    };
    let mut archive = ZipArchive::new(BufReader::new(input)).map_err(damaged)?;
    let (place, name) = the_tile(&mut archive, path)?;
    let most = hgt::bytes_of(hgt::SIDES[1]);
    let file = archive.by_index(place).map_err(damaged)?;
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| damaged(e.into()))?;
    hgt::open(Input::memory(bytes), &path.join(name))
}

/// Place and name of the one `.hgt`.
fn the_tile<R: Read + Seek>(archive: &mut ZipArchive<R>, path: &Path) -> Result<(usize, PathBuf)> {
    let mut found = Vec::new();
    for place in 0..archive.len() {
        let Ok(file) = archive.by_index_raw(place) else {
            continue;
        };
        let name = PathBuf::from(String::from_utf8_lossy(file.name_raw()).as_ref());
        let tile = name
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("hgt"));
        let hidden = name.components().any(|part| part.as_os_str() == "__MACOSX");
        if let (true, false, Some(name)) = (tile, hidden, name.file_name()) {
            found.push((place, PathBuf::from(name)));
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Error::file(path, "there is no .hgt in the zip", EXPECTED)),
        n => Err(Error::file(path, format!("{n} .hgt in one zip"), EXPECTED)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::super::grid::Grid;
    use super::*;

    fn read_zip(files: &[(&str, &[u8])]) -> Result<Grid> {
        let bytes = fixtures::zip(files);
        open(Input::memory(bytes), Path::new("x.hgt.zip"))?.into_grid()
    }

    #[test]
    fn the_tile_is_found_among_others() {
        let tile = 300i16.to_be_bytes().repeat(1201 * 1201);
        let grid = read_zip(&[
            ("readme.txt", b"hello"),
            ("srtm/N43E007.hgt", &tile),
            ("__MACOSX/N43E007.hgt", b"x"),
        ])
        .unwrap();
        assert_eq!((grid.width, grid.samples[5]), (1201, 300.0));
        assert_eq!(grid.georef.unwrap().transform[0], 7.0);
    }

    #[test]
    fn other_archives_are_refused() {
        let message = |files: &[(&str, &[u8])]| read_zip(files).unwrap_err().to_string();
        assert!(message(&[("a.txt", b"x")]).contains("no .hgt"));
        assert!(message(&[("N43E007.hgt", b"x"), ("N44E007.hgt", b"x")]).contains("2 .hgt"));
        assert!(message(&[("N43E007.hgt", b"short")]).contains("5 bytes"));
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let bomb = vec![0; 40_000_000];
        let message = read_zip(&[("N43E007.hgt", &bomb)]).unwrap_err().to_string();
        assert!(message.contains("25934403 bytes"), "{message}");
    }

    #[test]
    fn damaged_archives_never_panic() {
        let whole = fixtures::zip(&[("N43E007.hgt", &300i16.to_be_bytes().repeat(5000))]);
        let path = Path::new("x.hgt.zip");
        for cut in 0..whole.len() {
            assert!(open(Input::memory(whole[..cut].to_vec()), path).is_err());
        }
        let mut random = fixtures::Random(11);
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = random.below(256) as u8;
            }
            let message = open(Input::memory(bytes), path).unwrap_err().to_string();
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
