//! A recording of what was decided, which a simulation replays.
//!
//! For: one trace of all volumes in the order of decisions. Must never know: how a decision is made
//! or carried out. Units: nanoseconds of the decision clock from the recording's origin on, bytes.
//! The first request is a flush at time 0, the origin of all volumes. What the cache lost stands as
//! a trim of its block, and zeroes as they were decided: writes of the edges and a trim. Divisions
//! that changed a quota go along.

mod clock;
mod file;

pub use clock::DecisionClock;
pub use file::{RecordFile, RecordingFiles};

use cachewright_trace::{Batch, DivisionRow, Record};
use cachewright_types::{Nanos, Op, Request, TenantId};

/// Requests that are handed on together.
pub const BATCH_REQUESTS: usize = 4096;
/// Divisions that are handed on with fewer requests.
const BATCH_DIVISIONS: usize = 256;
/// What is kept is kept again when a recording is longer by this part of it: a file has as many
/// directories as minutes in its first hour, and 64 more each time that it is 2.7 times as long.
const KEPT_PARTS: u64 = 64;

/// Why a recording has ended before its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordStop {
    /// What takes it was behind: its queue was full.
    Behind,
    /// What takes it has ended, by an error of its own.
    Failed,
}

/// A piece of a recording.
#[derive(Debug, Default)]
pub struct RecordPart {
    /// Requests, whose volumes are numbers of tenants.
    pub requests: Batch,
    /// Divisions that changed a quota.
    pub divisions: Vec<DivisionRow>,
    /// Whether what was handed on by now is to outlive a kill.
    pub is_kept: bool,
}

/// What takes a recording. It must not wait.
pub trait RecordSink: Send {
    /// Takes the next piece. Errors: the recording ends before it.
    fn take(&mut self, part: RecordPart) -> Result<(), RecordStop>;
}

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedRequests {
    /// Requests handed on: a prefix of what was decided.
    pub requests: u64,
    /// Requests decided behind an early end, which are not recorded.
    pub dropped: u64,
    /// Why it ended early; nothing while it goes on, and for a whole recording.
    pub stopped: Option<RecordStop>,
}

/// Gathers decided requests.
pub struct RequestRecorder {
    sink: Box<dyn RecordSink>,
    part: RecordPart,
    recorded: RecordedRequests,
    origin: Nanos,
    /// When what was recorded was kept last, on the recording's clock, and requests by then.
    kept: (u64, u64),
}

impl RequestRecorder {
    /// Records into `sink` from `origin` on, a time of the decision clock, beginning with a flush
    /// of `tenant` at time 0.
    pub fn new(sink: Box<dyn RecordSink>, origin: Nanos, tenant: TenantId) -> RequestRecorder {
        let (part, recorded) = (RecordPart::default(), RecordedRequests::default());
        let mut recorder = RequestRecorder { sink, part, recorded, origin, kept: (0, 0) };
        recorder.push(Record {
            time_ns: 0,
            offset_bytes: 0,
            length_bytes: 0,
            op: Op::Flush,
            volume: tenant.0.into(),
        });
        recorder
    }

    /// A request was decided, at its time.
    pub fn note(&mut self, request: &Request) {
        self.push(Record {
            time_ns: request.time.0.saturating_sub(self.origin.0),
            offset_bytes: request.offset.0,
            length_bytes: request.length.0,
            op: request.op,
            volume: request.tenant.0.into(),
        });
    }

    /// The cache was divided: a division that changed a quota.
    pub fn divided(&mut self, mut division: DivisionRow) {
        if self.recorded.stopped.is_some() {
            return;
        }
        division.time_ns = division.time_ns.saturating_sub(self.origin.0);
        self.part.divisions.push(division);
        if self.part.divisions.len() == BATCH_DIVISIONS {
            self.hand_on();
        }
    }

    /// Has what was decided by `now` kept, so that it outlives a kill: at most so often, and less
    /// often the longer the recording is.
    pub fn keep(&mut self, now: Nanos, every_ns: u64) {
        let now_ns = now.0.saturating_sub(self.origin.0);
        let (last_ns, before) = self.kept;
        let requests = self.recorded.requests + self.part.requests.len() as u64;
        let is_due = now_ns.saturating_sub(last_ns) >= every_ns.max(now_ns / KEPT_PARTS);
        if is_due && requests > before && self.recorded.stopped.is_none() {
            self.kept = (now_ns, requests);
            self.part.is_kept = true;
            self.hand_on();
        }
    }

    /// How far it is.
    pub fn recorded(&self) -> RecordedRequests {
        self.recorded
    }

    /// Hands on what is left.
    pub fn finish(mut self) -> RecordedRequests {
        self.hand_on();
        self.recorded
    }

    fn push(&mut self, record: Record) {
        if self.recorded.stopped.is_some() {
            self.recorded.dropped += 1;
            return;
        }
        self.part.requests.push(record);
        if self.part.requests.len() == BATCH_REQUESTS {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        let part = std::mem::take(&mut self.part);
        let requests = part.requests.len() as u64;
        if requests == 0 && part.divisions.is_empty() && !part.is_kept {
            return;
        }
        match self.sink.take(part) {
            Ok(()) => self.recorded.requests += requests,
            Err(stop) => {
                self.recorded.dropped += requests;
                self.recorded.stopped = Some(stop);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Bytes;
    use std::sync::{Arc, Mutex, PoisonError};

    const ORIGIN: u64 = 7_000;

    /// Takes so many batches.
    struct Taker(usize, Arc<Mutex<Vec<RecordPart>>>);

    impl RecordSink for Taker {
        fn take(&mut self, part: RecordPart) -> Result<(), RecordStop> {
            let mut taken = self.1.lock().unwrap_or_else(PoisonError::into_inner);
            if taken.len() == self.0 {
                return Err(RecordStop::Behind);
            }
            taken.push(part);
            Ok(())
        }
    }

    fn recorded(batches: usize, requests: u64) -> (RecordedRequests, Vec<RecordPart>) {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let taker = Box::new(Taker(batches, Arc::clone(&taken)));
        let mut recorder = RequestRecorder::new(taker, Nanos(ORIGIN), TenantId(0));
        for time in 1..=requests {
            if time % 10 == 0 {
                recorder.divided(DivisionRow { time_ns: ORIGIN + time, quotas: vec![1, 2] });
            }
            recorder.note(&Request {
                time: Nanos(ORIGIN + time),
                offset: Bytes(4096 * time),
                length: Bytes(512),
                op: Op::Write,
                tenant: TenantId(time as u16 % 3),
            });
        }
        let recorded = recorder.finish();
        let batches = std::mem::take(&mut *taken.lock().unwrap_or_else(PoisonError::into_inner));
        (recorded, batches)
    }

    #[test]
    fn a_recording_begins_at_time_0_and_has_all_in_order() {
        let (found, batches) = recorded(9, 10_000);
        assert_eq!(found, RecordedRequests { requests: 10_001, dropped: 0, stopped: None });
        let divisions: Vec<u64> =
            batches.iter().flat_map(|part| &part.divisions).map(|row| row.time_ns).collect();
        assert_eq!(divisions, (1..=1000).map(|number| 10 * number).collect::<Vec<u64>>());
        let records: Vec<Record> = batches.iter().flat_map(|part| part.requests.iter()).collect();
        assert_eq!((records[0].op, records[0].time_ns), (Op::Flush, 0));
        assert!(records.windows(2).all(|pair| pair[0].time_ns < pair[1].time_ns));
        assert_eq!((records[10_000].offset_bytes, records[10_000].volume), (40_960_000, 1));
    }

    #[test]
    fn what_is_new_is_kept_less_often_the_longer_a_recording_is() {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let sink = Taker(usize::MAX, Arc::clone(&taken));
        let mut recorder = RequestRecorder::new(Box::new(sink), Nanos(ORIGIN), TenantId(0));
        let mut kept = Vec::new();
        for time in 1..=10_000 {
            // Nothing is decided for a while in the middle.
            if !(2_000..4_000).contains(&time) {
                recorder.note(&Request {
                    time: Nanos(ORIGIN + time),
                    offset: Bytes(0),
                    length: Bytes(512),
                    op: Op::Read,
                    tenant: TenantId(0),
                });
            }
            recorder.keep(Nanos(ORIGIN + time), 10);
            let parts = std::mem::take(&mut *taken.lock().unwrap_or_else(PoisonError::into_inner));
            kept.extend(parts.iter().filter(|part| part.is_kept).map(|_| time));
        }
        assert_eq!(kept[..3], [10, 20, 30]);
        assert!(kept.windows(2).all(|pair| pair[1] - pair[0] >= 10_u64.max(pair[1] / KEPT_PARTS)));
        assert_eq!(kept.iter().filter(|time| (2_100..4_000).contains(*time)).count(), 0);
        assert!(kept.len() < 300, "{}", kept.len());
        let recorded = recorder.finish();
        assert_eq!((recorded.requests, recorded.stopped), (8_001, None), "and nothing is lost");
    }

    #[test]
    fn a_recording_whose_sink_is_behind_is_a_prefix_and_says_so() {
        let (found, batches) = recorded(2, 50_000);
        let divisions = batches.iter().flat_map(|part| &part.divisions);
        assert!(divisions.map(|row| row.time_ns).max() <= Some(found.requests), "none beyond");
        let stopped = Some(RecordStop::Behind);
        let requests = batches.iter().map(|part| part.requests.len() as u64).sum();
        let dropped = 50_001 - requests;
        assert_eq!(found, RecordedRequests { requests, dropped, stopped });
        assert_eq!(batches.len(), 2);
    }
}
