//! Where a frame's time goes, by the clock of its own thread: what other threads do beside it
//! does not count.

use crate::settings::CpuTimes;
use cpu_time::ThreadTime;

/// Measures one stage after another.
pub struct Spans {
    start: ThreadTime,
    last: ThreadTime,
}

impl Spans {
    pub fn start() -> Self {
        let now = ThreadTime::now();
        Spans {
            start: now,
            last: now,
        }
    }

    /// Milliseconds since the last lap.
    pub fn lap(&mut self) -> f64 {
        let now = ThreadTime::now();
        let lap = now.duration_since(self.last);
        self.last = now;
        lap.as_secs_f64() * 1e3
    }

    /// The times with the total so far.
    pub fn total(&self, times: CpuTimes) -> CpuTimes {
        let total = self.start.elapsed().as_secs_f64() * 1e3;
        CpuTimes { total, ..times }
    }
}
