//! Where a world's heights came from: kept in the world, shown by `inspect`.

use serde::{Deserialize, Serialize};

/// What the importer found in the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// File names without folders, or a line such as `built-in archipelago, seed 1`.
    pub files: Vec<String>,
    /// Coordinate system, such as `EPSG:4326`, where the source names one.
    pub crs: Option<String>,
    /// Samples without a height.
    pub voids: u64,
    /// Voids that were filled from their rim.
    pub filled: u64,
    /// Lowest height in metres, voids left out.
    pub min_m: f64,
    /// Highest height in metres, voids left out.
    pub max_m: f64,
    /// Map coordinates of column c and row r: `(t[0] + c t[1] + r t[2], t[3] + c t[4] + r t[5])`,
    /// of the sample itself, whether the file counted points or areas.
    pub transform: Option<[f64; 6]>,
    /// True when the file said that a pixel is an area (its sample was half a pixel inside).
    pub pixel_is_area: bool,
    /// Metres on the ground a unit of the map, [to the east, to the south], at the centre.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metres_a_map_unit: Option<[f64; 2]>,
    /// What the source says of a coordinate system that no registry has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geo_keys: Option<GeoKeys>,
}

/// The keys of a GeoTIFF (OGC GeoTIFF 1.1, clause 7), but for those that a raster's own form and
/// heights decide.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeoKeys {
    /// Four numbers a key: key, place of the value, count, value or index.
    pub directory: Vec<[u16; 4]>,
    pub doubles: Vec<f64>,
    pub text: String,
}

impl GeoKeys {
    /// No system needs more.
    pub fn is_small(&self) -> bool {
        self.directory.len() <= 256 && self.doubles.len() <= 256 && self.text.len() <= 4096
    }
}

impl SourceInfo {
    /// Ground that lies nowhere, such as what a program makes up, with its lowest and highest
    /// height in metres.
    pub fn made_up(name: impl Into<String>, range_m: [f64; 2]) -> Self {
        SourceInfo {
            files: vec![name.into()],
            crs: None,
            voids: 0,
            filled: 0,
            min_m: range_m[0],
            max_m: range_m[1],
            transform: None,
            pixel_is_area: false,
            metres_a_map_unit: None,
            geo_keys: None,
        }
    }
}
