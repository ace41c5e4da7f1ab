//! A rectangle of integer heights, as the compiler sees the ground.

/// Heights in units of the world's height step, row by row from the north-west sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeightMap {
    /// Samples from west to east, at least 2.
    pub width: u32,
    /// Samples from north to south, at least 2.
    pub height: u32,
    /// `width * height` heights.
    pub heights: Vec<i32>,
}

impl HeightMap {
    /// The height at a sample; ground outside the rectangle continues its edge.
    pub fn at(&self, x: i64, z: i64) -> i32 {
        let x = x.clamp(0, self.width as i64 - 1) as usize;
        let z = z.clamp(0, self.height as i64 - 1) as usize;
        self.heights[z * self.width as usize + x]
    }

    /// The lowest and the highest sample.
    pub fn range(&self) -> (i32, i32) {
        let low = self.heights.iter().copied().min().unwrap_or(0);
        let high = self.heights.iter().copied().max().unwrap_or(0);
        (low, high)
    }
}
