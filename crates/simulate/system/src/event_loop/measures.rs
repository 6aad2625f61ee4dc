//! What systems with devices measure of every request.
//!
//! For: signals of intervals and times, taken at arrivals and answers. Must never know: caches,
//! devices. Units: nanoseconds.

use super::Replay;
use super::times::Times;
use crate::machines::machine::TimedAnswer;
use crate::recording::TRIM;
use cachewright_control::{AnswerTimes, RequestMeter, SignalMeter, Signals};
use cachewright_types::{Request, TenantId};
use std::ops::Range;

/// The measurements of one replay.
pub(crate) struct Measures {
    /// Signals for the partitioner, if it needs any.
    meter: Option<RequestMeter>,
    /// log2 of the block size in bytes.
    block_shift: u32,
    /// Blocks are read ahead that no request may ever touch. The recording does not have them, so
    /// that all blocks are known by where they lie on the backing device.
    reads_ahead: bool,
    /// What the replay found.
    pub times: Times,
}

impl Measures {
    /// Nothing measured yet, with blocks of `1 << block_shift` bytes; `extents` are the bytes of
    /// each tenant on its backing device.
    pub fn new(
        signals: Option<SignalMeter>,
        block_shift: u32,
        reads_ahead: bool,
        extents: &[Range<u64>],
        times: Times,
    ) -> Measures {
        let first_blocks: Vec<u64> =
            extents.iter().map(|extent| extent.start >> block_shift).collect();
        let meter = signals
            .map(|signals| RequestMeter::new(signals, block_shift).with_first_blocks(first_blocks));
        Measures { meter, block_shift, reads_ahead, times }
    }

    /// The request numbered `index` arrives.
    pub fn arrived(&mut self, replay: &Replay<'_>, index: usize, request: &Request, now_ns: u64) {
        match &mut self.meter {
            Some(meter) if self.reads_ahead => meter.request(request, now_ns),
            Some(meter) => {
                let recording = replay.recording;
                let accesses = replay.requests.accesses(index, recording, self.block_shift);
                let block = |position: usize| {
                    (recording.block_at(position, false), recording.flags[position] & TRIM != 0)
                };
                meter.recorded_request(request, accesses.map(block), now_ns);
            }
            None => {}
        }
        self.times.arrived(request, now_ns);
    }

    /// A machine that reads ahead reads these blocks of a tenant, by their numbers.
    pub fn read_ahead(&mut self, tenant: TenantId, blocks: Range<u64>) {
        if let Some(meter) = &mut self.meter {
            meter.read_ahead(tenant, blocks);
        }
    }

    /// A request is answered that spent `behind_ns` behind memory.
    pub fn answered(&mut self, request: &Request, answer: &TimedAnswer, behind_ns: u64) {
        if let Some(meter) = &mut self.meter {
            let (finish_ns, response_ns) = (answer.finish_ns, answer.finish_ns - answer.arrival_ns);
            let times = AnswerTimes { finish_ns, response_ns, behind_ns };
            meter.answered(answer.tenant, request.op, times);
        }
        self.times.answered(request, answer);
    }

    /// What was measured in the interval that ends now.
    pub fn end_interval(&mut self) -> Signals {
        self.meter.as_mut().map(RequestMeter::end_interval).unwrap_or_default()
    }
}
