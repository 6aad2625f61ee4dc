//! What clients of an export asked for, and how long it took.
//!
//! For: operators. Must never know: caches, bytes on the wire. Units: bytes, nanoseconds from the
//! arrival of a request to its answer, requests.

use cachewright_measure::Latencies;
use cachewright_nbd::NbdCommand;

/// Requests as operators count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Flushes.
    Flush,
    /// Trims.
    Trim,
    /// Zeroes.
    Zero,
    /// Reads whose data the client does not want.
    Prefetch,
}

impl RequestKind {
    /// All kinds, in the order of their meters.
    pub const ALL: [RequestKind; 6] = [
        RequestKind::Read,
        RequestKind::Write,
        RequestKind::Flush,
        RequestKind::Trim,
        RequestKind::Zero,
        RequestKind::Prefetch,
    ];

    /// The kind of a command, and its bytes; nothing for a question.
    pub fn with_bytes(command: NbdCommand) -> Option<(RequestKind, u64)> {
        Some(match command {
            NbdCommand::Read { range, .. } => (RequestKind::Read, range.length),
            NbdCommand::Write(range) => (RequestKind::Write, range.length),
            NbdCommand::Flush => (RequestKind::Flush, 0),
            NbdCommand::Trim(range) => (RequestKind::Trim, range.length),
            NbdCommand::Zero { range, .. } => (RequestKind::Zero, range.length),
            NbdCommand::Cache(range) => (RequestKind::Prefetch, range.length),
            NbdCommand::BlockStatus { .. } => return None,
        })
    }

    /// The kind in a word.
    pub fn word(self) -> &'static str {
        match self {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::Flush => "flush",
            RequestKind::Trim => "trim",
            RequestKind::Zero => "zero",
            RequestKind::Prefetch => "prefetch",
        }
    }
}

/// Requests of one kind that were answered.
#[derive(Clone, Debug, Default)]
pub struct AnswerMeter {
    /// Bytes that they asked for.
    pub bytes: u64,
    /// Those that were answered with an error.
    pub errors: u64,
    /// From their arrival to their answer.
    pub latencies: Latencies,
}

/// Requests of an export by kind.
#[derive(Clone, Debug, Default)]
pub struct ExportMeter {
    kinds: [AnswerMeter; RequestKind::ALL.len()],
}

impl ExportMeter {
    /// Counts a request that is answered.
    pub fn note(&mut self, command: NbdCommand, response_ns: u64, has_failed: bool) {
        let Some((kind, bytes)) = RequestKind::with_bytes(command) else { return };
        let meter = &mut self.kinds[kind as usize];
        meter.bytes += bytes;
        meter.errors += u64::from(has_failed);
        meter.latencies.record(response_ns);
    }

    /// Requests of one kind.
    pub fn kind(&self, kind: RequestKind) -> &AnswerMeter {
        &self.kinds[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_nbd::Range;

    #[test]
    fn each_command_is_counted_under_its_kind() {
        let range = Range { offset: 4096, length: 512 };
        let mut meter = ExportMeter::default();
        meter.note(NbdCommand::Write(range), 5_000, false);
        meter.note(NbdCommand::Write(range), 7_000, true);
        meter.note(NbdCommand::Flush, 9_000, false);
        let write = meter.kind(RequestKind::Write);
        assert_eq!((write.bytes, write.errors, write.latencies.count()), (1024, 1, 2));
        assert_eq!(write.latencies.sum_ns(), 12_000);
        assert_eq!(meter.kind(RequestKind::Flush).latencies.count(), 1);
        assert_eq!(meter.kind(RequestKind::Trim).latencies.count(), 0);
        for (place, kind) in RequestKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }
}
