//! Time that the calling thread spent on a processor.
//!
//! For: speeds that hold on a machine with other work. Must never know: what is measured. Units:
//! seconds. Where the system does not say (Linux does), time by the wall.

use std::time::Instant;

/// A moment in a thread's processor time.
pub struct Clock {
    wall: Instant,
    processor: Option<u64>,
}

impl Clock {
    /// Now.
    pub fn start() -> Clock {
        Clock { wall: Instant::now(), processor: nanoseconds() }
    }

    /// Seconds of processor time since.
    pub fn seconds(&self) -> f64 {
        match (self.processor, nanoseconds()) {
            (Some(before), Some(now)) => (now - before) as f64 / 1e9,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

/// What the scheduler has given this thread so far.
fn nanoseconds() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
