//! How long the GPU takes for each pass, where the adapter tells.
//!
//! Times come a frame or more late, since nobody waits for them.

use super::gpu::Gpu;
use std::collections::BTreeMap;
use wgpu_profiler::{GpuProfiler, GpuProfilerQuery, GpuProfilerSettings};

pub struct GpuClock {
    profiler: GpuProfiler,
    /// Of the last frame whose times are known.
    pass_ms: BTreeMap<String, f64>,
}

impl GpuClock {
    pub(super) fn new(gpu: &Gpu) -> Self {
        let settings = GpuProfilerSettings {
            enable_debug_groups: false,
            ..Default::default()
        };
        GpuClock {
            profiler: GpuProfiler::new(&gpu.device, settings).expect("the default settings"),
            pass_ms: BTreeMap::new(),
        }
    }

    /// Milliseconds by pass, of the last frame whose times are known; empty before and where the
    /// adapter has no clock.
    pub fn pass_ms(&self) -> &BTreeMap<String, f64> {
        &self.pass_ms
    }

    /// To be given to the pass that is timed, and then back to [`GpuClock::end`].
    pub(super) fn begin(&self, pass: &str, encoder: &mut wgpu::CommandEncoder) -> GpuProfilerQuery {
        self.profiler.begin_pass_query(pass, encoder)
    }

    pub(super) fn end(&self, encoder: &mut wgpu::CommandEncoder, query: GpuProfilerQuery) {
        self.profiler.end_query(encoder, query);
    }

    /// Submits a frame and takes in what is known by now.
    pub(super) fn submit(&mut self, gpu: &Gpu, mut encoder: wgpu::CommandEncoder) {
        self.profiler.resolve_queries(&mut encoder);
        gpu.queue.submit([encoder.finish()]);
        if let Err(error) = self.profiler.end_frame() {
            log::debug!("GPU times: {error}");
        }
        self.take_finished(gpu);
    }

    /// Takes in the times of all frames that the GPU has finished.
    pub fn take_finished(&mut self, gpu: &Gpu) {
        let period = gpu.queue.get_timestamp_period();
        while let Some(passes) = self.profiler.process_finished_frame(period) {
            let timed = passes
                .into_iter()
                .filter_map(|pass| Some((pass.label, pass.time?)));
            self.pass_ms = timed
                .map(|(label, time)| (label, (time.end - time.start) * 1e3))
                .collect();
        }
    }
}
