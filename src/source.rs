//! Heights that are ready to be compiled, wherever they came from and wherever they lie.

use crate::error::Result;
use crate::terrain::height_map::HeightMap;
use crate::world::SourceInfo;

/// A source of heights: metres, integers, and a height everywhere; where voids are kept, samples
/// can be absent all the same.
#[derive(Debug)]
pub struct Source {
    pub ground: Box<dyn Ground>,
    /// Metres a height unit.
    pub step_m: f64,
    /// Metres between samples, [x (east), z (south)].
    pub spacing_m: [f64; 2],
    pub info: SourceInfo,
}

/// A rectangle of integer heights that need not be in memory all at once.
pub trait Ground: std::fmt::Debug + Send + Sync {
    /// Samples from west to east and from north to south, at least 2 each.
    fn size(&self) -> [u32; 2];

    /// The lowest and the highest height.
    fn range(&self) -> (i32, i32);

    /// The first of the highest samples, row by row.
    fn summit(&self) -> [u32; 2];

    /// The heights of a part; errors when they lie in a file that cannot be read.
    fn read(&self, area: Area) -> Result<HeightMap>;

    /// How many samples are absent: they have heights that continue those round them, but there
    /// is no ground.
    fn absent_count(&self) -> u64 {
        0
    }

    /// Which samples of a part are absent, row by row; none where all are present.
    fn absent(&self, _: Area) -> Result<Option<Vec<bool>>> {
        Ok(None)
    }

    /// All heights: as many bytes as four times the samples.
    fn whole(&self) -> Result<HeightMap> {
        self.read(self.area())
    }

    /// The whole rectangle.
    fn area(&self) -> Area {
        let [width, height] = self.size();
        Area {
            x: 0,
            z: 0,
            width,
            height,
        }
    }
}

/// A rectangle of samples that lies inside its ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    pub x: u32,
    pub z: u32,
    pub width: u32,
    pub height: u32,
}

impl Ground for HeightMap {
    fn size(&self) -> [u32; 2] {
        [self.width, self.height]
    }

    fn range(&self) -> (i32, i32) {
        HeightMap::range(self)
    }

    fn summit(&self) -> [u32; 2] {
        let (_, high) = HeightMap::range(self);
        let first = self.heights.iter().position(|&height| height == high);
        let index = first.unwrap_or(0) as u32;
        [index % self.width, index / self.width]
    }

    fn read(&self, area: Area) -> Result<HeightMap> {
        let mut heights = Vec::with_capacity(area.width as usize * area.height as usize);
        for z in area.z..area.z + area.height {
            let start = z as usize * self.width as usize + area.x as usize;
            heights.extend_from_slice(&self.heights[start..start + area.width as usize]);
        }
        Ok(HeightMap {
            width: area.width,
            height: area.height,
            heights,
        })
    }
}
