//! What systems with devices measure of every request.
//!
//! For: signals of intervals and times, taken at arrivals and answers. Must never know: caches,
//! devices. Units: nanoseconds.

use super::Replay;
use super::meter::Meter;
use super::times::Times;
use crate::signals::{SignalMeter, Signals};
use crate::timed::machine::Answer;
use cachewright_types::Request;

/// The measurements of one replay.
pub(crate) struct Measures {
    /// What the partitioner is told, if it is told anything.
    pub meter: Option<Meter>,
    /// What the replay found.
    pub times: Times,
}

impl Measures {
    /// Nothing measured yet, with blocks of `1 << shift` bytes.
    pub fn new(
        signals: Option<SignalMeter>,
        (shift, reads_ahead): (u32, bool),
        times: Times,
    ) -> Measures {
        Measures { meter: signals.map(|one| Meter::new(one, shift, reads_ahead)), times }
    }

    /// The request numbered `at` arrives.
    pub fn arrived(&mut self, replay: &Replay<'_>, at: usize, request: &Request, now_ns: u64) {
        if let Some(meter) = &mut self.meter {
            meter.request((replay.recording, replay.requests), at, now_ns);
        }
        self.times.arrived(request, now_ns);
    }

    /// A request is answered that spent `behind_ns` behind memory.
    pub fn answered(&mut self, request: &Request, answer: &Answer, behind_ns: u64) {
        if let Some(meter) = &mut self.meter {
            meter.answered(request.op, answer, behind_ns);
        }
        self.times.answered(request, answer);
    }

    /// What was measured in the interval that ends now.
    pub fn end_interval(&mut self) -> Signals {
        self.meter.as_mut().map(Meter::end_interval).unwrap_or_default()
    }
}
