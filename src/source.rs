//! Heights that are ready to be compiled, wherever they came from.

use crate::terrain::height_map::HeightMap;
use crate::world::SourceInfo;

/// A source of heights: metres, integers, no voids.
#[derive(Debug)]
pub struct Source {
    pub map: HeightMap,
    /// Metres a height unit.
    pub step_m: f64,
    /// Metres between samples, [x (east), z (south)].
    pub spacing_m: [f64; 2],
    pub info: SourceInfo,
}
