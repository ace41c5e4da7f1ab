//! What a bench says: shares of frames, largest values, hitches.

use crate::modes::cli::ViewArgs;
use crate::settings::{CpuTimes, Stats};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A frame that takes so many times as long as half of them do...
const HITCH_TIMES: f64 = 3.0;
/// ...and so many milliseconds more, is a hitch.
const HITCH_MS: f64 = 2.0;
/// Hitches that are listed; all are counted.
const LISTED: usize = 100;

type Stage = (&'static str, fn(&CpuTimes) -> f64);

const STAGES: [Stage; 4] = [
    ("select", |ms| ms.select),
    ("stream", |ms| ms.stream),
    ("cull", |ms| ms.cull),
    ("encode", |ms| ms.encode),
];

/// What one frame was.
pub struct Frame {
    /// From its start until the GPU was done.
    pub frame_ms: f64,
    pub gpu_ms: BTreeMap<String, f64>,
    /// None where they are not counted.
    pub hole_pixels: Option<u64>,
    pub stats: Stats,
}

/// All frames of a flight.
pub struct Report {
    mesher: Value,
    pixel_error: f64,
    size: [u32; 2],
    frames: Vec<Frame>,
    /// Bytes that a frame writes in which nothing moves.
    pub rest_bytes: u64,
}

impl Report {
    pub fn new(args: &ViewArgs, size: [u32; 2]) -> Self {
        Report {
            mesher: json!(args.mesher),
            pixel_error: args.pixel_error,
            size,
            frames: Vec::new(),
            rest_bytes: 0,
        }
    }

    pub fn add(&mut self, frame: Frame) {
        self.frames.push(frame);
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.value()).expect("plain data")
    }

    /// The same in a few lines.
    pub fn to_text(&self) -> String {
        let value = self.value();
        let ms = |what: &Value| {
            format!(
                "{:.2} ms, {:.2} at worst",
                what["p50"].as_f64().unwrap_or(0.0),
                what["max"].as_f64().unwrap_or(0.0)
            )
        };
        let counts = |what: &Value| format!("{}, {} at most", what["p50"], what["max"]);
        let holes = match value["hole_pixels"].as_u64() {
            Some(count) => count.to_string(),
            None => "not counted".into(),
        };
        let rows = [
            ("adapter", self.last().adapter.clone()),
            ("frames", value["frames"].to_string()),
            ("frame", ms(&value["frame_ms"])),
            ("CPU", ms(&value["cpu_ms"]["total"])),
            ("GPU", ms(&value["gpu_ms"]["total"])),
            ("triangles", counts(&value["triangles"])),
            ("draw calls", counts(&value["draws"])),
            ("patches drawn", counts(&value["patches_drawn"])),
            (
                "uploaded bytes",
                format!(
                    "{}; {} at rest",
                    counts(&value["upload_bytes"]),
                    self.rest_bytes
                ),
            ),
            ("hole pixels", holes),
            (
                "largest pop",
                format!("{:.3} px", self.largest(|s| s.largest_pop_px)),
            ),
            (
                "largest error",
                format!("{:.2} px", self.largest(|s| s.largest_error_px)),
            ),
            ("hitches", self.hitches().len().to_string()),
        ];
        let lines = rows.map(|(name, text)| format!("{name:15} {text}"));
        lines.join("\n")
    }

    fn value(&self) -> Value {
        let frames = &self.frames;
        let cpu = STAGES
            .iter()
            .copied()
            .chain([("total", total as fn(&CpuTimes) -> f64)]);
        let cpu: BTreeMap<&str, Value> = cpu
            .map(|(name, ms)| (name, times(frames.iter().map(|f| ms(&f.stats.cpu_ms)))))
            .collect();
        let mut gpu: BTreeMap<String, Value> = BTreeMap::new();
        for pass in frames.iter().flat_map(|frame| frame.gpu_ms.keys()) {
            let ms = |frame: &Frame| frame.gpu_ms.get(pass).copied().unwrap_or(0.0);
            gpu.entry(pass.clone())
                .or_insert_with(|| times(frames.iter().map(ms)));
        }
        let all_passes = |frame: &Frame| frame.gpu_ms.values().sum();
        gpu.insert("total".into(), times(frames.iter().map(all_passes)));
        let patches = |frame: &Frame| frame.stats.patches_drawn.iter().sum();
        let upload = counts(
            frames
                .iter()
                .map(|f| f.stats.upload_bytes + f.stats.frame_bytes),
        );
        let hitches = self.hitches();
        let holes: Option<u64> = frames.iter().map(|frame| frame.hole_pixels).sum();
        json!({
            "adapter": self.last().adapter,
            "mesher": self.mesher,
            "pixel_error": self.pixel_error,
            "size": self.size,
            "frames": frames.len(),
            "frame_ms": times(frames.iter().map(|frame| frame.frame_ms)),
            "cpu_ms": cpu,
            "gpu_ms": gpu,
            "triangles": counts(frames.iter().map(|f| f.stats.triangles)),
            "draws": counts(frames.iter().map(|f| f.stats.draws)),
            "patches_selected": counts(frames.iter().map(|f| f.stats.patches_selected)),
            "patches_drawn": counts(frames.iter().map(patches)),
            "patches_drawn_by_level": self.sums(|stats| &stats.patches_drawn),
            "upload_bytes": {
                "rest": self.rest_bytes,
                "p50": upload["p50"],
                "max": upload["max"],
            },
            "hole_pixels": holes,
            "largest_pop_px": self.largest(|stats| stats.largest_pop_px),
            "largest_error_px": self.largest(|stats| stats.largest_error_px),
            "neighbour_level_steps": self.sums(|stats| &stats.neighbour_level_steps),
            "hitch_count": hitches.len(),
            "hitches": hitches.into_iter().take(LISTED).collect::<Vec<_>>(),
        })
    }

    fn last(&self) -> &Stats {
        &self.frames.last().expect("at least one frame").stats
    }

    fn largest(&self, value: impl Fn(&Stats) -> f64) -> f64 {
        self.frames
            .iter()
            .map(|frame| value(&frame.stats))
            .fold(0.0, f64::max)
    }

    /// Sums by level over all frames.
    fn sums(&self, counts: impl Fn(&Stats) -> &Vec<u64>) -> Vec<u64> {
        let mut sums = vec![0; counts(self.last()).len()];
        for frame in &self.frames {
            let both = sums.iter_mut().zip(counts(&frame.stats));
            both.for_each(|(sum, count)| *sum += count);
        }
        sums
    }

    /// Frames whose thread took far longer than half of them; the cause is the stage that took
    /// most beyond its own half.
    fn hitches(&self) -> Vec<Value> {
        let half = |ms: fn(&CpuTimes) -> f64| {
            let sorted = sorted(self.frames.iter().map(|frame| ms(&frame.stats.cpu_ms)));
            rank(&sorted, 0.5)
        };
        let (half_total, half_stages) = (half(total), STAGES.map(|(_, ms)| half(ms)));
        let is_hitch = |frame: &&Frame| {
            let ms = frame.stats.cpu_ms.total;
            ms > HITCH_TIMES * half_total && ms > half_total + HITCH_MS
        };
        let told = |(number, frame): (usize, &Frame)| {
            is_hitch(&frame).then(|| {
                let times = &frame.stats.cpu_ms;
                let beyond = STAGES.iter().zip(half_stages);
                let cause = beyond.max_by(|((_, a), half_a), ((_, b), half_b)| {
                    (a(times) - half_a).total_cmp(&(b(times) - half_b))
                });
                let cause = cause.map(|((name, _), _)| *name);
                json!({ "frame": number, "ms": times.total, "cause": cause })
            })
        };
        self.frames.iter().enumerate().filter_map(told).collect()
    }
}

fn total(ms: &CpuTimes) -> f64 {
    ms.total
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value that a share of the sorted ones does not exceed.
fn rank(sorted: &[f64], share: f64) -> f64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted[place.clamp(1, sorted.len()) - 1]
}

fn times(values: impl Iterator<Item = f64>) -> Value {
    let sorted = sorted(values);
    json!({
        "p50": rank(&sorted, 0.5),
        "p95": rank(&sorted, 0.95),
        "p99": rank(&sorted, 0.99),
        "p999": rank(&sorted, 0.999),
        "max": rank(&sorted, 1.0),
    })
}

fn counts(values: impl Iterator<Item = u64>) -> Value {
    let mut sorted: Vec<u64> = values.collect();
    sorted.sort_unstable();
    json!({ "p50": sorted[(sorted.len() - 1) / 2], "max": sorted[sorted.len() - 1] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: usize, encode: f64, stream: f64) -> Frame {
        let stats = Stats {
            triangles: 1000 + number as u64,
            patches_drawn: vec![2, 1],
            neighbour_level_steps: vec![3, 1],
            upload_bytes: 10,
            frame_bytes: number as u64,
            largest_pop_px: 0.01 * number as f64,
            cpu_ms: CpuTimes {
                select: 0.1,
                stream,
                cull: 0.1,
                encode,
                total: encode + stream + 0.3,
            },
            ..Stats::default()
        };
        Frame {
            frame_ms: number as f64,
            gpu_ms: BTreeMap::from([("world".into(), 2.0), ("overlay".into(), 0.5)]),
            hole_pixels: Some(u64::from(number == 3)),
            stats,
        }
    }

    fn report(frames: impl IntoIterator<Item = Frame>) -> Report {
        Report {
            mesher: json!("static"),
            pixel_error: 2.0,
            size: [8, 6],
            frames: frames.into_iter().collect(),
            rest_bytes: 7,
        }
    }

    #[test]
    fn shares_are_those_of_sorted_values() {
        let report = report((1..=1000).rev().map(|i| frame(i, 1.0, 0.5)));
        let value = report.value();
        let ms = &value["frame_ms"];
        let read = ["p50", "p95", "p99", "p999", "max"].map(|name| ms[name].as_f64().unwrap());
        assert_eq!(read, [500.0, 950.0, 990.0, 999.0, 1000.0]);
        assert_eq!(value["triangles"], json!({ "p50": 1500, "max": 2000 }));
        assert_eq!(value["gpu_ms"]["total"]["p50"], 2.5);
        assert_eq!(value["gpu_ms"]["world"]["max"], 2.0);
        let upload = json!({ "rest": 7, "p50": 510, "max": 1010 });
        assert_eq!(value["upload_bytes"], upload);
        assert_eq!(value["patches_drawn_by_level"], json!([2000, 1000]));
        assert_eq!(value["neighbour_level_steps"], json!([3000, 1000]));
        assert_eq!(value["hole_pixels"], 1);
        assert_eq!(value["largest_pop_px"], 10.0);
        assert_eq!(value["hitches"], json!([]));
        assert!(report.to_text().contains("10.000 px"));
    }

    #[test]
    fn a_hitch_is_told_with_its_cause() {
        let mut frames: Vec<Frame> = (0..50).map(|i| frame(i, 1.0, 0.5)).collect();
        frames[20] = frame(20, 1.2, 9.0);
        frames[30] = frame(30, 8.0, 0.6);
        let hitches = report(frames).hitches();
        let told: Vec<_> = hitches.iter().map(|h| (&h["frame"], &h["cause"])).collect();
        assert_eq!(
            told,
            [
                (&json!(20), &json!("stream")),
                (&json!(30), &json!("encode"))
            ]
        );
    }

    #[test]
    fn pixels_that_are_not_counted_are_null() {
        let mut uncounted = frame(1, 1.0, 1.0);
        uncounted.hole_pixels = None;
        let report = report([frame(0, 1.0, 1.0), uncounted]);
        assert_eq!(report.value()["hole_pixels"], Value::Null);
        assert!(report.to_text().contains("not counted"));
    }
}
