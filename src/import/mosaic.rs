//! Tiles that lie side by side on the map, as one raster.
//!
//! - All tiles agree on coordinate system, spacing, unit of height, and lie on one lattice;
//!   whatever does not is refused by name.
//! - The result does not depend on the order in which the tiles are named.
//! - Where tiles overlap, as at a shared edge, the northernmost and then westernmost height is
//!   kept, and how far others differ is told. What no tile covers is void.
//! - One tile is read at a time.

use std::path::{Path, PathBuf};

use super::file_name;
use super::geo::Georef;
use super::grid::check_size;
use super::lint::Warning;
use super::numbers::{Kind, Numbers};
use super::raster::{Head, Raster};
use super::store::Store;
use crate::error::{Error, Result};
use crate::source::Area;

/// Parts of a sample by which tiles may miss the lattice.
const ALIGNED: f64 = 0.02;
/// A mosaic may be bare but for one in so many samples ...
const MOST_BARE: u64 = 32;
/// ... and of any density up to so many.
const ANY_DENSITY: u64 = 1 << 28;

/// Where the tiles lie in the raster that they are together.
#[derive(Debug)]
pub(super) struct Mosaic {
    /// Of the whole.
    pub head: Head,
    /// In the order in which they are laid.
    pub tiles: Vec<Tile>,
}

/// A tile and the samples from the whole's corner to its own.
#[derive(Debug)]
pub(super) struct Tile {
    pub path: PathBuf,
    head: Head,
    x: i64,
    z: i64,
}

impl Mosaic {
    /// Finds out where tiles lie from what they say of themselves.
    pub fn of(tiles: Vec<(PathBuf, Head)>) -> Result<Mosaic> {
        let mut tiles = place(tiles)?;
        tiles.sort_by(|a, b| (a.z, a.x, &a.path).cmp(&(b.z, b.x, &b.path)));
        let least = |side: fn(&Tile) -> i64| tiles.iter().map(side).min().unwrap_or(0);
        let [x0, z0] = [least(|tile| tile.x), least(|tile| tile.z)];
        // The first tile laid is a northernmost one, but another may begin further west.
        let east_of_corner = (x0 - tiles[0].x) as f64;
        for tile in &mut tiles {
            (tile.x, tile.z) = (tile.x - x0, tile.z - z0);
        }
        let most = |side: fn(&Tile) -> i64| tiles.iter().map(side).max().unwrap_or(0);
        let width = most(|tile| tile.x + i64::from(tile.head.width)) as u64;
        let height = most(|tile| tile.z + i64::from(tile.head.height)) as u64;
        check_size(&tiles[0].path, width, height)?;
        check_density(&tiles, width * height)?;
        let mut head = tiles[0].head.clone();
        (head.width, head.height) = (width as u32, height as u32);
        head.integer = tiles.iter().all(|tile| tile.head.integer);
        head.kind = tiles
            .iter()
            .map(|tile| tile.head.kind)
            .fold(head.kind, Kind::join);
        if let Some(georef) = &mut head.georef {
            georef.transform[0] += east_of_corner * georef.transform[1];
        }
        head.warnings = tiles
            .iter()
            .flat_map(|tile| tile.head.warnings.clone())
            .collect();
        head.warnings.dedup();
        Ok(Mosaic { head, tiles })
    }

    pub fn names(&self) -> Vec<String> {
        self.tiles
            .iter()
            .map(|tile| file_name(&tile.path))
            .collect()
    }

    /// How many samples of tiles lie in a window, those of several tiles counted for each.
    pub fn samples(&self, window: Area) -> u64 {
        let shares = self.tiles.iter().filter_map(|tile| tile.within(window));
        shares
            .map(|a| u64::from(a.width) * u64::from(a.height))
            .sum()
    }

    /// Puts a part of each tile where it belongs, one tile after the other, and says what is odd.
    /// `store` holds the samples of `window`, voids as yet.
    pub fn lay(
        &self,
        window: Area,
        store: &mut Store,
        open: &mut dyn FnMut(&Path) -> Result<Raster>,
        note: &mut Note,
    ) -> Result<Vec<Warning>> {
        let shares: Vec<Option<Area>> = self.tiles.iter().map(|tile| tile.within(window)).collect();
        let mut overlap = Overlap::default();
        for (at, tile) in self.tiles.iter().enumerate() {
            let Some(share) = shares[at] else { continue };
            let before: Vec<Area> = shares[..at].iter().flatten().copied().collect();
            let mut raster = open(&tile.path)?;
            if raster.head.width != tile.head.width || raster.head.height != tile.head.height {
                let what = "the file changed while it was read";
                return Err(Error::file(&tile.path, what, "a file at rest"));
            }
            let in_tile = Area {
                x: (i64::from(share.x) - tile.x) as u32,
                z: (i64::from(share.z) - tile.z) as u32,
                ..share
            };
            let mut z = share.z - window.z;
            raster.samples.read(in_tile, &mut |mut numbers| {
                note(&mut numbers)?;
                let height = numbers.len() as u32 / share.width;
                let x = share.x - window.x;
                let place = Area {
                    x,
                    z,
                    width: share.width,
                    height,
                };
                z += height;
                let of_whole = Area {
                    x: share.x,
                    z: place.z + window.z,
                    ..place
                };
                if before
                    .iter()
                    .any(|other| intersection(*other, of_whole).is_some())
                {
                    let old = store.read(place)?;
                    numbers = overlap.merge(old, &numbers.into_kind(store.kind));
                }
                store.write(place, numbers)
            })?;
        }
        let shares: Vec<Area> = shares.into_iter().flatten().collect();
        let gap = gap_warning(bare(window, &shares));
        Ok(overlap.warning().into_iter().chain(gap).collect())
    }
}

/// Looks at samples, and may change them, before they are used.
pub(super) type Note<'a> = dyn FnMut(&mut Numbers) -> Result<()> + 'a;

impl Tile {
    /// What of it lies in a part of the whole.
    fn within(&self, window: Area) -> Option<Area> {
        // A whole that is not too large ends where these numbers do not overflow.
        let tile = Area {
            x: self.x as u32,
            z: self.z as u32,
            width: self.head.width,
            height: self.head.height,
        };
        intersection(tile, window)
    }
}

/// Tiles of two continents are no ground together.
fn check_density(tiles: &[Tile], whole: u64) -> Result<()> {
    let samples = |tile: &Tile| u64::from(tile.head.width) * u64::from(tile.head.height);
    let theirs: u64 = tiles.iter().map(samples).sum();
    if whole <= ANY_DENSITY || whole / theirs < MOST_BARE {
        return Ok(());
    }
    let what = format!("the tiles are far apart: they have {theirs} samples of {whole} in all");
    Err(Error::file(&tiles[0].path, what, "tiles side by side"))
}

fn intersection(a: Area, b: Area) -> Option<Area> {
    let (x, z) = (a.x.max(b.x), a.z.max(b.z));
    let right = (a.x + a.width).min(b.x + b.width);
    let bottom = (a.z + a.height).min(b.z + b.height);
    (x < right && z < bottom).then(|| Area {
        x,
        z,
        width: right - x,
        height: bottom - z,
    })
}

/// How many samples of a window none of the areas within it has.
fn bare(window: Area, areas: &[Area]) -> u64 {
    let mut rows: Vec<u32> = areas.iter().flat_map(|a| [a.z, a.z + a.height]).collect();
    rows.sort_unstable();
    rows.dedup();
    // Between two of these rows all rows are alike.
    let covered = rows.windows(2).map(|rows| {
        let there = areas
            .iter()
            .filter(|a| a.z <= rows[0] && a.z + a.height >= rows[1]);
        let mut spans: Vec<(u32, u32)> = there.map(|a| (a.x, a.x + a.width)).collect();
        spans.sort_unstable();
        let (mut columns, mut end) = (0, 0);
        for (from, to) in spans {
            columns += u64::from(to.max(end) - from.max(end));
            end = end.max(to);
        }
        columns * u64::from(rows[1] - rows[0])
    });
    u64::from(window.width) * u64::from(window.height) - covered.sum::<u64>()
}

/// Puts every tile onto the lattice of the one whose name comes first.
fn place(mut tiles: Vec<(PathBuf, Head)>) -> Result<Vec<Tile>> {
    tiles.sort_by(|a, b| a.0.cmp(&b.0));
    let Some((first_path, first)) = tiles.first() else {
        return Err(Error::Usage("no input: expected elevation files".into()));
    };
    let first_path = first_path.clone();
    let lattice = georef_of(first, &first_path)?.clone();
    let measure = first.measure;
    let place = |(path, head): (PathBuf, Head)| {
        let georef = georef_of(&head, &path)?;
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
        if head.measure != measure {
            return differs(
                "its unit of height",
                "tiles of one unit, scale and offset".into(),
            );
        }
        let [_, dx, _, _, _, dy] = lattice.transform;
        let steps = [georef.transform[1] / dx, georef.transform[5] / dy];
        let sides = [head.width, head.height].map(f64::from);
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
        Ok(Tile { path, head, x, z })
    };
    tiles.into_iter().map(place).collect()
}

fn georef_of<'a>(head: &'a Head, path: &Path) -> Result<&'a Georef> {
    head.georef.as_ref().ok_or_else(|| {
        let expected = "tiles with a georeference, or one file alone";
        Error::file(path, "it does not say where it lies", expected)
    })
}

/// Heights of one place that differ from tile to tile.
#[derive(Default)]
struct Overlap {
    count: u64,
    most: f64,
}

impl Overlap {
    /// The heights of `old`, and those of `new` where it has none.
    fn merge(&mut self, old: Numbers, new: &Numbers) -> Numbers {
        let (kind, mut merged, new) = (old.kind(), old.to_f64(), new.to_f64());
        for (old, new) in merged.iter_mut().zip(new) {
            if old.is_nan() {
                *old = new;
            } else if !new.is_nan() && *old != new {
                self.count += 1;
                self.most = self.most.max((*old - new).abs());
            }
        }
        Numbers::from_f64(kind, &merged)
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

fn gap_warning(bare: u64) -> Option<Warning> {
    (bare > 0).then(|| {
        let text = format!("{bare} samples lie in no tile: they are filled like voids");
        Warning::new("gap", text, "the missing tiles too, or --crop X,Z,W,H")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::fixtures::Random;
    use super::super::geo::Unit;
    use super::super::grid::Grid;
    use super::super::store::Shelf;
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

    /// The whole as one grid, laid on disk and in memory alike.
    fn join(tiles: Vec<(PathBuf, Grid)>) -> Result<(Vec<String>, Grid)> {
        join_within(tiles, None)
    }

    fn join_within(
        tiles: Vec<(PathBuf, Grid)>,
        window: Option<Area>,
    ) -> Result<(Vec<String>, Grid)> {
        let mut rasters = HashMap::new();
        let mut heads = Vec::new();
        for (path, grid) in tiles {
            let raster = Raster::from(grid);
            heads.push((path.clone(), raster.head.clone()));
            rasters.insert(path, raster);
        }
        let mosaic = Mosaic::of(heads)?;
        let window = window.unwrap_or(mosaic.head.whole());
        let mut wholes = Vec::new();
        for in_memory in [0, u64::MAX] {
            let folder = std::env::temp_dir();
            let shelf = Shelf { folder, in_memory };
            let size = [window.width, window.height];
            let mut store = Store::empty(size, mosaic.head.kind, &shelf).unwrap();
            let mut open = |path: &Path| {
                let raster = &mut rasters.get_mut(path).unwrap();
                let whole = raster.part(raster.head.whole())?;
                let mut grid = Grid::plain(raster.head.width, raster.head.height, whole, true);
                grid.georef = raster.head.georef.clone();
                Ok(Raster::from(grid))
            };
            let warnings = mosaic.lay(window, &mut store, &mut open, &mut |_| Ok(()))?;
            let samples = store.read(store.whole())?.to_f64();
            let mut grid = Grid::plain(window.width, window.height, samples, mosaic.head.integer);
            grid.georef = mosaic.head.georef.clone();
            grid.warnings = warnings;
            wholes.push(grid);
        }
        let [disk, memory] = wholes.try_into().unwrap();
        let bits = |grid: &Grid| grid.samples.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&disk), bits(&memory));
        Ok((mosaic.names(), memory))
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
    fn a_window_is_what_a_crop_of_the_whole_would_be() {
        let (_, whole) = join(four()).unwrap();
        for (x, z, width, height) in [(1, 1, 3, 3), (3, 0, 2, 5), (0, 0, 2, 2), (1, 2, 4, 2)] {
            let window = Area {
                x,
                z,
                width,
                height,
            };
            let (_, part) = join_within(four(), Some(window)).unwrap();
            let rows = whole.rows().skip(z as usize).take(height as usize);
            let naive: Vec<f64> = rows
                .flat_map(|row| &row[x as usize..(x + width) as usize])
                .copied()
                .collect();
            assert_eq!(part.samples, naive);
            assert!(part.warnings.is_empty());
        }
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
        assert!(whole.warnings[0].text.starts_with("1 samples differ"));
    }

    #[test]
    fn what_no_area_covers_is_counted() {
        let mut random = Random(6);
        let window = Area {
            x: 3,
            z: 2,
            width: 20,
            height: 15,
        };
        for count in 0..9 {
            let areas: Vec<Area> = (0..count)
                .filter_map(|_| {
                    let mut side = || (random.below(20) as u32, 1 + random.below(9) as u32);
                    let ((x, width), (z, height)) = (side(), side());
                    intersection(
                        window,
                        Area {
                            x,
                            z,
                            width,
                            height,
                        },
                    )
                })
                .collect();
            let inside = |x: u32, z: u32| {
                let place = Area {
                    x,
                    z,
                    width: 1,
                    height: 1,
                };
                areas
                    .iter()
                    .any(|area| intersection(*area, place).is_some())
            };
            let places = (2..17).flat_map(|z| (3..23).map(move |x| (x, z)));
            let naive = places.filter(|(x, z)| !inside(*x, *z)).count();
            assert_eq!(bare(window, &areas), naive as u64);
        }
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
        assert!(refused(&with(0, 1e9)).contains("far apart"));
        assert!(refused(&with(0, 3e9)).contains("too large"));
        let crs = |grid: &mut Grid| grid.georef.as_mut().unwrap().crs = None;
        let message = refused(&crs);
        assert!(message.starts_with("b: its coordinate system differs from that of a"));
        assert!(refused(&|grid| grid.georef = None).contains("where it lies"));
        assert!(refused(&|grid| grid.measure.scale = 0.1).contains("unit of height"));
    }
}
