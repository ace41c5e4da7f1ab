//! Tiles that lie side by side on the map, as one raster.
//!
//! - All tiles agree on coordinate system, spacing, unit of height, and lie on one lattice;
//!   whatever does not is refused by name.
//! - The result does not depend on the order in which the tiles are named.
//! - Where tiles overlap, as at a shared edge, the northernmost and then westernmost height is
//!   kept, and how far others differ is told. What no tile covers is void.

use std::path::{Path, PathBuf};

use super::file_name;
use super::geo::Georef;
use super::grid::{Grid, check_size};
use super::lint::Warning;
use crate::error::{Error, Result};

/// Parts of a sample by which tiles may miss the lattice.
const ALIGNED: f64 = 0.02;

/// One raster of all tiles, and their names in the order they were laid.
pub(super) fn join(tiles: Vec<(PathBuf, Grid)>) -> Result<(Vec<String>, Grid)> {
    let mut placed = place(tiles)?;
    placed.sort_by(|a, b| (a.z, a.x, &a.path).cmp(&(b.z, b.x, &b.path)));
    let [x0, z0] = [
        placed.iter().map(|t| t.x).min(),
        placed.iter().map(|t| t.z).min(),
    ];
    let (x0, z0) = (x0.unwrap_or(0), z0.unwrap_or(0));
    let ends = |t: &Tile| {
        (
            t.x - x0 + i64::from(t.grid.width),
            t.z - z0 + i64::from(t.grid.height),
        )
    };
    let width = placed.iter().map(|t| ends(t).0).max().unwrap_or(0) as u64;
    let height = placed.iter().map(|t| ends(t).1).max().unwrap_or(0) as u64;
    check_size(&placed[0].path, width, height)?;
    let names = placed.iter().map(|tile| file_name(&tile.path)).collect();
    let mut whole = empty(&placed[0].grid, width as u32, height as u32);
    whole.integer = placed.iter().all(|tile| tile.grid.integer);
    let mut overlap = Overlap::default();
    let mut covered = vec![false; whole.samples.len()];
    for tile in &placed {
        let at = ((tile.z - z0) * width as i64 + tile.x - x0) as usize;
        lay(tile, at, &mut whole, &mut covered, &mut overlap);
    }
    if let Some(georef) = &mut whole.georef {
        // The first tile laid is a northernmost one, but another may begin further west.
        georef.transform[0] += (x0 - placed[0].x) as f64 * georef.transform[1];
    }
    whole.warnings = placed
        .iter()
        .flat_map(|tile| tile.grid.warnings.clone())
        .collect();
    whole.warnings.dedup();
    whole.warnings.extend(overlap.warning());
    whole.warnings.extend(gap_warning(&covered));
    Ok((names, whole))
}

/// A tile and the samples from the first tile's corner to its own.
struct Tile {
    path: PathBuf,
    grid: Grid,
    x: i64,
    z: i64,
}

/// Puts every tile onto the lattice of the one whose name comes first.
fn place(mut tiles: Vec<(PathBuf, Grid)>) -> Result<Vec<Tile>> {
    tiles.sort_by(|a, b| a.0.cmp(&b.0));
    let Some((first_path, first)) = tiles.first() else {
        return Err(Error::Usage("no input: expected elevation files".into()));
    };
    let first_path = first_path.clone();
    let lattice = georef_of(first, &first_path)?.clone();
    let measure = first.measure;
    let place = |(path, grid): (PathBuf, Grid)| {
        let georef = georef_of(&grid, &path)?;
        let differs = |what: &str, expected: String| {
            let what = format!("{what} differs from that of {}", file_name(&first_path));
            Err(Error::file(&path, what, expected))
        };
        if georef.crs != lattice.crs || georef.unit != lattice.unit {
            let name = lattice
                .crs
                .clone()
                .unwrap_or_else(|| "no system at all".into());
            return differs("its coordinate system", name);
        }
        if grid.measure != measure {
            return differs(
                "its unit of height",
                "tiles of one unit, scale and offset".into(),
            );
        }
        let [_, dx, _, _, _, dy] = lattice.transform;
        let steps = [georef.transform[1] / dx, georef.transform[5] / dy];
        let sides = [grid.width, grid.height].map(f64::from);
        // Over the whole tile, so that its far edge is on the lattice too.
        if (0..2).any(|i| (steps[i] - 1.0).abs() * sides[i] > ALIGNED || steps[i].is_nan()) {
            return differs("its spacing", format!("{dx} x {} map units", -dy));
        }
        let at = [
            (georef.transform[0] - lattice.transform[0]) / dx,
            (georef.transform[3] - lattice.transform[3]) / dy,
        ];
        if at
            .iter()
            .any(|v| !v.is_finite() || v.abs() > 1e9 || (v - v.round()).abs() > ALIGNED)
        {
            let part = format!("it lies {:.2} and {:.2} samples away", at[0], at[1]);
            return differs("its lattice", format!("whole samples ({part})"));
        }
        let [x, z] = at.map(|v| v.round() as i64);
        Ok(Tile { path, grid, x, z })
    };
    tiles.into_iter().map(place).collect()
}

fn georef_of<'a>(grid: &'a Grid, path: &Path) -> Result<&'a Georef> {
    grid.georef.as_ref().ok_or_else(|| {
        let expected = "tiles with a georeference, or one file alone";
        Error::file(path, "it does not say where it lies", expected)
    })
}

fn empty(like: &Grid, width: u32, height: u32) -> Grid {
    let samples = vec![f64::NAN; width as usize * height as usize];
    let mut grid = Grid::plain(width, height, samples, like.integer);
    grid.georef = like.georef.clone();
    grid.measure = like.measure;
    grid
}

/// Copies a tile's heights to where there is none yet.
fn lay(tile: &Tile, at: usize, whole: &mut Grid, covered: &mut [bool], overlap: &mut Overlap) {
    let stride = whole.width as usize;
    for (row, start) in tile.grid.rows().zip((at..).step_by(stride)) {
        let there = &mut whole.samples[start..start + row.len()];
        for (old, new) in there.iter_mut().zip(row) {
            if old.is_nan() {
                *old = *new;
            } else if !new.is_nan() && old != new {
                overlap.differs((*old - new).abs());
            }
        }
        covered[start..start + row.len()].fill(true);
    }
}

/// Heights of one place that differ from tile to tile.
#[derive(Default)]
struct Overlap {
    count: u64,
    most: f64,
}

impl Overlap {
    fn differs(&mut self, by: f64) {
        self.count += 1;
        self.most = self.most.max(by);
    }

    fn warning(&self) -> Option<Warning> {
        (self.count > 0).then(|| {
            let text = format!(
                "{} samples differ where tiles overlap, by up to {}: the northern or western tile's are kept",
                self.count, self.most
            );
            Warning::new("overlap", text, "tiles of one edition, or --crop X,Z,W,H")
        })
    }
}

fn gap_warning(covered: &[bool]) -> Option<Warning> {
    let bare = covered.iter().filter(|covered| !**covered).count();
    (bare > 0).then(|| {
        let text = format!("{bare} samples lie in no tile: they are filled like voids");
        Warning::new("gap", text, "the missing tiles too, or --crop X,Z,W,H")
    })
}

#[cfg(test)]
mod tests {
    use super::super::geo::Unit;
    use super::*;

    fn height(x: i32, z: i32) -> f64 {
        f64::from(100 * z + x)
    }

    /// A 3 x 3 tile of the ground `height` with its corner at column `x`, row `z`.
    fn tile(name: &str, x: i32, z: i32) -> (PathBuf, Grid) {
        let samples = (0..9).map(|i| height(x + i % 3, z + i / 3)).collect();
        let mut grid = Grid::plain(3, 3, samples, true);
        let north_west = [500.0 + 10.0 * f64::from(x), 900.0 - 20.0 * f64::from(z)];
        let crs = Some("EPSG:32632".to_owned());
        let georef = Georef::north_up(crs, Unit::Metres(1.0), north_west, [10.0, 20.0]);
        grid.georef = Some(georef);
        (PathBuf::from(name), grid)
    }

    fn four() -> Vec<(PathBuf, Grid)> {
        vec![
            tile("d", 2, 2),
            tile("a", 0, 0),
            tile("c", 0, 2),
            tile("b", 2, 0),
        ]
    }

    #[test]
    fn tiles_that_share_their_edges_are_one_ground_in_any_order() {
        let (names, whole) = join(four()).unwrap();
        assert_eq!(names, ["a", "b", "c", "d"]);
        assert_eq!((whole.width, whole.height), (5, 5));
        let expected: Vec<f64> = (0..25).map(|i| height(i % 5, i / 5)).collect();
        assert_eq!(whole.samples, expected);
        assert!(whole.warnings.is_empty());
        let mut turned = four();
        turned.reverse();
        let (_, again) = join(turned).unwrap();
        assert_eq!(again.samples, whole.samples);
        assert_eq!(again.georef, whole.georef);
        assert_eq!(whole.georef.unwrap().transform[3], 900.0);
    }

    #[test]
    fn the_corner_is_the_whole_s() {
        let (_, whole) = join(vec![tile("a", 2, 2), tile("b", 0, 0)]).unwrap();
        let transform = whole.georef.unwrap().transform;
        assert_eq!((transform[0], transform[3]), (500.0, 900.0));
        assert_eq!(whole.samples.iter().filter(|s| s.is_nan()).count(), 8);
        assert_eq!(whole.warnings[0].about, "gap");
    }

    #[test]
    fn a_void_takes_the_other_tile_s_height_and_differences_are_told() {
        let mut tiles = vec![tile("a", 0, 0), tile("b", 2, 0)];
        tiles[0].1.samples[2] = f64::NAN;
        tiles[1].1.samples[3] += 4.0;
        let (_, whole) = join(tiles).unwrap();
        assert_eq!(whole.samples[2], height(2, 0));
        assert_eq!(whole.samples[5 + 2], height(2, 1));
        assert_eq!(whole.warnings[0].about, "overlap");
    }

    #[test]
    fn tiles_that_do_not_fit_are_refused_by_name() {
        let refused = |change: &dyn Fn(&mut Grid)| {
            let mut tiles = vec![tile("a", 0, 0), tile("b", 2, 0)];
            change(&mut tiles[1].1);
            join(tiles).unwrap_err().to_string()
        };
        let with = |place: usize, value: f64| {
            move |grid: &mut Grid| grid.georef.as_mut().unwrap().transform[place] = value
        };
        assert!(refused(&with(0, 525.0)).contains("lattice"));
        assert!(refused(&with(0, f64::NAN)).contains("lattice"));
        assert!(refused(&with(1, 10.5)).contains("spacing"));
        assert!(refused(&with(0, 1e15)).contains("lattice"));
        assert!(refused(&with(0, 1e9)).contains("too large"));
        let crs = |grid: &mut Grid| grid.georef.as_mut().unwrap().crs = None;
        let message = refused(&crs);
        assert!(message.starts_with("b: its coordinate system differs from that of a"));
        assert!(refused(&|grid| grid.georef = None).contains("where it lies"));
        assert!(refused(&|grid| grid.measure.scale = 0.1).contains("unit of height"));
    }
}
