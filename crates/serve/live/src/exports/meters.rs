//! What clients of an export asked for, and how long it took.
//!
//! For: operators. Must never know: caches, bytes on the wire. Units: bytes, nanoseconds from the
//! arrival of a request to its answer, requests.

use cachewright_nbd::NbdCommand;
use cachewright_types::measure::Latencies;

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

/// Reads and writes beside a time that they are to keep. Counts only rise while that is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitMeter {
    limit_ns: u64,
    answers: u64,
    late: u64,
}

impl LimitMeter {
    fn new(limit_ns: u64) -> LimitMeter {
        LimitMeter { limit_ns, answers: 0, late: 0 }
    }

    /// Reads and writes that were answered.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Those of them that took longer, or failed.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// What was counted since `before`; all of it, if another time was to be kept then.
    pub fn since(&self, before: Option<LimitMeter>) -> LimitMeter {
        match before.filter(|before| before.limit_ns == self.limit_ns) {
            Some(LimitMeter { answers, late, .. }) => LimitMeter {
                answers: self.answers.saturating_sub(answers),
                late: self.late.saturating_sub(late),
                ..*self
            },
            None => *self,
        }
    }
}

/// Requests of an export by kind.
#[derive(Clone, Debug, Default)]
pub struct ExportMeter {
    kinds: [AnswerMeter; RequestKind::ALL.len()],
    limit: Option<LimitMeter>,
}

impl ExportMeter {
    /// Counts a request that is answered.
    pub fn note(&mut self, command: NbdCommand, response_ns: u64, has_failed: bool) {
        let Some((kind, bytes)) = RequestKind::with_bytes(command) else { return };
        let meter = &mut self.kinds[kind as usize];
        meter.bytes += bytes;
        meter.errors += u64::from(has_failed);
        meter.latencies.record(response_ns);
        if let Some(limit) = &mut self.limit
            && matches!(kind, RequestKind::Read | RequestKind::Write)
        {
            limit.answers += 1;
            limit.late += u64::from(has_failed || response_ns > limit.limit_ns);
        }
    }

    /// Reads and writes are to keep this time from now on, or none.
    pub fn set_limit(&mut self, limit_ns: Option<u64>) {
        if limit_ns != self.limit.map(|limit| limit.limit_ns) {
            self.limit = limit_ns.map(LimitMeter::new);
        }
    }

    /// Reads and writes beside the time that they are to keep, if there is one.
    pub fn limit(&self) -> Option<LimitMeter> {
        self.limit
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
        assert_eq!(meter.limit(), None);
        for (place, kind) in RequestKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }

    #[test]
    fn what_is_late_is_counted_from_the_time_on_that_is_to_be_kept() {
        let range = Range { offset: 0, length: 512 };
        let write = |meter: &mut ExportMeter, ns| meter.note(NbdCommand::Write(range), ns, false);
        let counts = |limit: LimitMeter| (limit.answers(), limit.late());
        let mut meter = ExportMeter::default();
        write(&mut meter, 9_000);
        meter.set_limit(Some(5_000));
        write(&mut meter, 5_000);
        write(&mut meter, 5_001);
        meter.note(NbdCommand::Write(range), 1, true);
        meter.note(NbdCommand::Flush, 90_000, false);
        let before = meter.limit();
        assert_eq!(before.map(counts), Some((3, 2)), "a failure is late, a flush does not count");
        meter.set_limit(Some(5_000));
        write(&mut meter, 1);
        assert_eq!(meter.limit().map(|now| counts(now.since(before))), Some((1, 0)));
        meter.set_limit(Some(9_000));
        write(&mut meter, 9_001);
        assert_eq!(meter.limit().map(|now| counts(now.since(before))), Some((1, 1)));
        meter.set_limit(None);
        assert_eq!(meter.limit(), None);
    }
}
