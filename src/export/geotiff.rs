//! Heights as GeoTIFF, so that importing them again gives the same heights.
//!
//! In metres, as the source had them: 16-bit integers where every height is one, else 32-bit
//! ones, else floats (24 bits of them are finer than half a step of any height that a world can
//! hold, so with the same step the same heights come back). Deflated in strips; BigTIFF where
//! 4 GiB might not do. The tags that place the raster are written by hand (OGC GeoTIFF 1.1,
//! clauses 7 and 8): a tiepoint and a scale, the kind of coordinates, their EPSG code. Kept voids
//! are written as a number that is declared to be no height, as GDAL does.

use crate::terrain::height_map::HeightMap;
use crate::world::Meta;
use crate::world::source::GeoKeys;
use std::io::{Error, Result, Seek, Write};
use tiff::encoder::colortype::{ColorType, Gray32Float, GrayI16, GrayI32};
use tiff::encoder::{Compression, DeflateLevel, Predictor, TiffEncoder, TiffKind, TiffValue};
use tiff::encoder::{TiffKindBig, TiffKindStandard};
use tiff::tags::Tag;
use tiff::{TiffError, TiffResult};

/// Deflate may make noise a little larger.
const LARGEST_STANDARD_BYTES: u64 = 7 << 29;
/// What the importer takes for SRTM's void is no height.
const VOID: i64 = -32768;
/// An ASCII tag of GDAL's: the number that is no height.
const NODATA: Tag = Tag::Unknown(42113);

const MODEL_TYPE: u16 = 1024;
const RASTER_TYPE: u16 = 1025;
const GEOGRAPHIC_CRS: u16 = 2048;
const ANGULAR_UNITS: u16 = 2054;
const PROJECTED_CRS: u16 = 3072;
const LINEAR_UNITS: u16 = 3076;
const PROJECTED: u16 = 1;
const GEOGRAPHIC: u16 = 2;
const METRE: u16 = 9001;
const DEGREE: u16 = 9102;
const USER_DEFINED: u16 = 32767;

/// How heights are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleType {
    Int16,
    Int32,
    Float32,
}

impl SampleType {
    /// The smallest that holds heights of `low` to `high` steps.
    pub fn of([low, high]: [i32; 2], step_m: f64) -> Self {
        if step_m.fract() != 0.0 {
            return SampleType::Float32;
        }
        let [low, high] = [low, high].map(|height| (height as f64 * step_m) as i64);
        if low > VOID && high <= i16::MAX as i64 {
            SampleType::Int16
        } else if low >= i32::MIN as i64 && high <= i32::MAX as i64 {
            SampleType::Int32
        } else {
            SampleType::Float32
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            SampleType::Int16 => "int16",
            SampleType::Int32 => "int32",
            SampleType::Float32 => "float32",
        }
    }

    fn bytes(self) -> u64 {
        match self {
            SampleType::Int16 => 2,
            SampleType::Int32 | SampleType::Float32 => 4,
        }
    }
}

/// Writes the full-resolution heights of a world; `absent` says which samples are kept voids.
pub fn write(
    map: &HeightMap,
    absent: Option<&[bool]>,
    meta: &Meta,
    out: &mut (impl Write + Seek),
) -> Result<()> {
    let bytes =
        map.heights.len() as u64 * SampleType::of(meta.height_range, meta.height_step_m).bytes();
    let written = if bytes < LARGEST_STANDARD_BYTES {
        TiffEncoder::<_, TiffKindStandard>::new_generic(out)
            .and_then(|encoder| write_as(encoder, map, absent, meta))
    } else {
        TiffEncoder::<_, TiffKindBig>::new_generic(out)
            .and_then(|encoder| write_as(encoder, map, absent, meta))
    };
    written.map_err(cause)
}

/// What the system refused stays its own kind of error: a full disk is told apart.
fn cause(error: TiffError) -> Error {
    match error {
        TiffError::IoError(error) => error,
        other => Error::other(other),
    }
}

fn write_as<W: Write + Seek, K: TiffKind>(
    encoder: TiffEncoder<W, K>,
    map: &HeightMap,
    absent: Option<&[bool]>,
    meta: &Meta,
) -> TiffResult<()> {
    let step_m = meta.height_step_m;
    let encoder = encoder.with_compression(Compression::Deflate(DeflateLevel::Balanced));
    let whole = move |height: i32| height as i64 * step_m as i64;
    match SampleType::of(meta.height_range, step_m) {
        SampleType::Int16 => {
            let encoder = encoder.with_predictor(Predictor::Horizontal);
            let samples = Samples::new(map, absent, VOID as i16, |height| whole(height) as i16);
            write_samples::<GrayI16, _, _>(encoder, samples, meta)
        }
        SampleType::Int32 => {
            let encoder = encoder.with_predictor(Predictor::Horizontal);
            let samples = Samples::new(map, absent, i32::MIN, |height| whole(height) as i32);
            write_samples::<GrayI32, _, _>(encoder, samples, meta)
        }
        SampleType::Float32 => {
            let metres = |height| (height as f64 * step_m) as f32;
            let samples = Samples::new(map, absent, f32::NAN, metres);
            write_samples::<Gray32Float, _, _>(encoder, samples, meta)
        }
    }
}

/// What is written, and the number of it that is no height, if there is one.
struct Samples<T> {
    size: [u32; 2],
    samples: Vec<T>,
    void: Option<T>,
}

impl<T: Copy> Samples<T> {
    fn new(map: &HeightMap, absent: Option<&[bool]>, void: T, sample: impl Fn(i32) -> T) -> Self {
        let mut samples: Vec<T> = map.heights.iter().map(|&height| sample(height)).collect();
        let voids = samples.iter_mut().zip(absent.into_iter().flatten());
        voids
            .filter(|(_, absent)| **absent)
            .for_each(|(sample, _)| *sample = void);
        Samples {
            size: [map.width, map.height],
            samples,
            void: absent.map(|_| void),
        }
    }
}

fn write_samples<C: ColorType, W: Write + Seek, K: TiffKind>(
    mut encoder: TiffEncoder<W, K>,
    samples: Samples<C::Inner>,
    meta: &Meta,
) -> TiffResult<()>
where
    [C::Inner]: TiffValue,
    C::Inner: std::fmt::Display,
{
    let mut image = encoder.new_image::<C>(samples.size[0], samples.size[1])?;
    let place = Place::of(meta);
    let tags = image.encoder();
    tags.write_tag(Tag::ModelPixelScaleTag, &place.scale[..])?;
    tags.write_tag(Tag::ModelTiepointTag, &place.tiepoint[..])?;
    tags.write_tag(Tag::GeoKeyDirectoryTag, &place.directory()[..])?;
    if !place.keys.doubles.is_empty() {
        tags.write_tag(Tag::GeoDoubleParamsTag, &place.keys.doubles[..])?;
    }
    if !place.keys.text.is_empty() {
        tags.write_tag(Tag::GeoAsciiParamsTag, place.keys.text.as_str())?;
    }
    if let Some(void) = &samples.void {
        tags.write_tag(NODATA, void.to_string().to_lowercase().as_str())?;
    }
    // At once: strips written one by one would not be compressed.
    image.write_data(&samples.samples)
}

/// Where the raster lies on the map.
#[derive(Debug, PartialEq)]
struct Place {
    scale: [f64; 3],
    tiepoint: [f64; 6],
    /// In ascending order, and what they point at.
    keys: GeoKeys,
}

impl Place {
    fn of(meta: &Meta) -> Self {
        let source = &meta.source;
        let [dx, dz] = meta.spacing_m;
        // Without a georeference, metres from the north-west sample.
        let Some([x, step_x, _, y, _, step_y]) = source.transform else {
            return Place::new([0.0, 0.0], [dx, dz], false, keys_of(false, None));
        };
        if let Some(keys) = &source.geo_keys {
            let place = Place::new([x, y], [step_x, -step_y], source.pixel_is_area, Vec::new());
            return place.with_keys(keys);
        }
        let code = source.crs.as_deref().and_then(epsg);
        let keys = match source.crs {
            Some(_) => keys_of(is_in_degrees(meta), code),
            // The file did not say, and what it meant was judged by its numbers.
            None => Vec::new(),
        };
        Place::new([x, y], [step_x, -step_y], source.pixel_is_area, keys)
    }

    /// `corner` is the north-west sample.
    fn new(corner: [f64; 2], [dx, dy]: [f64; 2], is_area: bool, keys: Vec<(u16, u16)>) -> Self {
        let half = if is_area { 0.5 } else { 0.0 };
        let raster_type = (RASTER_TYPE, if is_area { 1 } else { 2 });
        let keys = [vec![raster_type], keys].concat();
        let mut directory: Vec<[u16; 4]> =
            keys.iter().map(|&(k, value)| [k, 0, 1, value]).collect();
        directory.sort_unstable();
        let [x, y] = [corner[0] - half * dx, corner[1] + half * dy];
        Place {
            scale: [dx, dy, 0.0],
            tiepoint: [0.0, 0.0, 0.0, x, y, 0.0],
            keys: GeoKeys {
                directory,
                ..GeoKeys::default()
            },
        }
    }

    /// With what a source said of a system of its own.
    fn with_keys(mut self, keys: &GeoKeys) -> Self {
        let own = std::mem::replace(&mut self.keys, keys.clone());
        self.keys.directory.extend(own.directory);
        self.keys.directory.sort_unstable();
        self
    }

    /// The key directory: its version, how many keys, then four numbers each.
    fn directory(&self) -> Vec<u16> {
        let keys = &self.keys.directory;
        let version = [1, 1, 0, keys.len() as u16];
        version
            .into_iter()
            .chain(keys.iter().flatten().copied())
            .collect()
    }
}

fn keys_of(degrees: bool, code: Option<u16>) -> Vec<(u16, u16)> {
    let (model, crs, unit, name) = if degrees {
        (GEOGRAPHIC, GEOGRAPHIC_CRS, ANGULAR_UNITS, DEGREE)
    } else {
        (PROJECTED, PROJECTED_CRS, LINEAR_UNITS, METRE)
    };
    let mut keys = vec![(MODEL_TYPE, model), (crs, code.unwrap_or(USER_DEFINED))];
    // A code of EPSG says its units itself.
    if code.is_none() {
        keys.push((unit, name));
    }
    keys
}

fn epsg(crs: &str) -> Option<u16> {
    crs.strip_prefix("EPSG:")?.parse().ok()
}

/// Map units are metres where they are the spacing; else degrees where all lies on the globe.
fn is_in_degrees(meta: &Meta) -> bool {
    let Some([x, dx, _, y, _, dy]) = meta.source.transform else {
        return false;
    };
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs();
    if near(dx, meta.spacing_m[0]) && near(-dy, meta.spacing_m[1]) {
        return false;
    }
    let [columns, rows] = meta.layout.size_cells.map(f64::from);
    let far = |values: [f64; 2]| values[0].abs().max(values[1].abs());
    far([x, x + dx * columns]) <= 360.0 && far([y, y + dy * rows]) <= 90.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_type_that_holds_the_heights_is_taken() {
        let of = SampleType::of;
        assert_eq!(of([-32767, 32767], 1.0), SampleType::Int16);
        assert_eq!(of([-32768, 0], 1.0), SampleType::Int32);
        assert_eq!(of([0, 20_000], 2.0), SampleType::Int32);
        assert_eq!(of([0, 20], 0.25), SampleType::Float32);
        assert_eq!(of([0, 1 << 22], 1000.0), SampleType::Float32);
    }

    #[test]
    fn a_full_disk_is_told_as_such() {
        let full = std::io::ErrorKind::StorageFull;
        assert_eq!(cause(TiffError::IoError(full.into())).kind(), full);
        let limits = cause(TiffError::LimitsExceeded).kind();
        assert_eq!(limits, std::io::ErrorKind::Other);
    }

    #[test]
    fn areas_start_half_a_pixel_before_their_sample() {
        let place = Place::new(
            [505.0, 890.0],
            [10.0, 20.0],
            true,
            keys_of(false, Some(32632)),
        );
        assert_eq!(place.tiepoint[3..5], [500.0, 900.0]);
        #[rustfmt::skip]
        assert_eq!(place.directory(), [1, 1, 0, 3,  1024, 0, 1, 1,  1025, 0, 1, 1,  3072, 0, 1, 32632]);
        let point = Place::new([7.0, 44.0], [0.1, 0.1], false, keys_of(true, None));
        assert_eq!(point.tiepoint[3..5], [7.0, 44.0]);
        #[rustfmt::skip]
        assert_eq!(point.directory(), [
            1, 1, 0, 4,  1024, 0, 1, 2,  1025, 0, 1, 2,  2048, 0, 1, 32767,  2054, 0, 1, 9102,
        ]);
        assert_eq!((epsg("EPSG:4326"), epsg("WGS 84")), (Some(4326), None));
    }
}
