//! What clients of an export asked for, how long it took, and what they may do per second together.
//!
//! Times are from the arrival of a request to its answer. Connections of an export with caps take
//! turns: one request each.

use super::connection::EarliestTimer;
use crate::pace::Pace;
use cachewright_nbd::NbdCommand;
use cachewright_types::TenantId;
use cachewright_types::measure::Latencies;
use std::collections::VecDeque;

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

/// Bounds on the clients of an export; nothing: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Requests per second.
    pub requests: Option<u64>,
    /// Bytes of reads and writes per second.
    pub bytes: Option<u64>,
}

/// An export's clients.
#[derive(Clone, Debug, Default)]
struct Clients {
    requests: Option<Pace>,
    bytes: Option<Pace>,
    /// Connections that wait for their turn.
    waiting: VecDeque<usize>,
    /// How often one had to wait.
    waits: u64,
}

impl Clients {
    fn is_capped(&self) -> bool {
        self.requests.is_some() || self.bytes.is_some()
    }

    fn due_ns(&self) -> u64 {
        let due = |pace: &Option<Pace>| pace.as_ref().map_or(0, Pace::due_ns);
        due(&self.requests).max(due(&self.bytes))
    }
}

/// The clients of all exports, by tenant.
#[derive(Clone, Debug, Default)]
pub struct CappedClients {
    tenants: Vec<Clients>,
    /// When connections that wait are looked at again.
    timer: EarliestTimer,
}

impl CappedClients {
    /// Exports of so many tenants, without caps.
    pub fn new(tenants: usize) -> CappedClients {
        CappedClients {
            tenants: vec![Clients::default(); tenants],
            timer: EarliestTimer::default(),
        }
    }

    /// Sets the caps of a tenant's export; rates that stay keep what has passed.
    pub fn set(&mut self, tenant: TenantId, caps: Caps) {
        let index = tenant.index();
        self.tenants.resize_with(self.tenants.len().max(index + 1), Clients::default);
        let change = |pace: &mut Option<Pace>, rate: Option<u64>| match (pace.as_mut(), rate) {
            (Some(pace), Some(rate)) => pace.set_rate(rate),
            (_, rate) => *pace = rate.map(Pace::new),
        };
        change(&mut self.tenants[index].requests, caps.requests);
        change(&mut self.tenants[index].bytes, caps.bytes);
    }

    /// Whether a connection must wait for its turn, which comes by [`CappedClients::next_turn`].
    pub fn waits(&mut self, tenant: TenantId, connection: usize) -> bool {
        let Some(clients) = self.tenants.get_mut(tenant.index()) else { return false };
        let waits = clients.is_capped() || !clients.waiting.is_empty();
        if waits && !clients.waiting.contains(&connection) {
            clients.waiting.push_back(connection);
        }
        waits
    }

    /// A connection whose turn it is, if an export's caps let it do something.
    pub fn next_turn(&mut self, now_ns: u64) -> Option<usize> {
        let due = |clients: &&mut Clients| clients.due_ns() <= now_ns;
        self.tenants.iter_mut().filter(due).find_map(|clients| clients.waiting.pop_front())
    }

    /// When the next turn may come, if a connection waits.
    pub fn next_due_ns(&self) -> Option<u64> {
        let waiting = self.tenants.iter().filter(|clients| !clients.waiting.is_empty());
        waiting.map(Clients::due_ns).min()
    }

    /// Whether a timer for this time is to begin: none is under way that ends as early. It counts
    /// as begun.
    pub fn begin_timer(&mut self, at_ns: u64) -> bool {
        self.timer.begin(at_ns)
    }

    /// A timer is over.
    pub fn end_timer(&mut self, now_ns: u64) {
        self.timer.end(now_ns);
    }

    /// A connection waits no more: it ends, and its number may be another one's from then on.
    pub fn leave(&mut self, connection: usize) {
        for clients in &mut self.tenants {
            clients.waiting.retain(|waiting| *waiting != connection);
        }
    }

    /// A request with so many bytes of reads or writes begins.
    pub fn charge(&mut self, tenant: TenantId, bytes: u64, now_ns: u64) {
        let Some(clients) = self.tenants.get_mut(tenant.index()) else { return };
        clients.requests.iter_mut().for_each(|pace| pace.charge(1, now_ns));
        clients.bytes.iter_mut().for_each(|pace| pace.charge(bytes, now_ns));
        // Others that wait, or the same client's next request, have to.
        clients.waits += u64::from(clients.is_capped() && clients.due_ns() > now_ns);
    }

    /// How often what a client may do was exhausted.
    pub fn exhausted(&self, tenant: TenantId) -> u64 {
        self.tenants.get(tenant.index()).map_or(0, |clients| clients.waits)
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

    #[test]
    fn connections_of_a_capped_export_take_turns() {
        let mut capped = CappedClients::new(2);
        assert!(!capped.waits(TenantId(0), 5), "no caps");
        capped.set(TenantId(1), Caps { requests: Some(10), bytes: None });
        for connection in [7, 3, 7] {
            assert!(capped.waits(TenantId(1), connection));
        }
        let now_ns = 1_000_000_000;
        assert_eq!((capped.next_due_ns(), capped.next_turn(now_ns)), (Some(0), Some(7)));
        capped.charge(TenantId(1), 4096, now_ns);
        assert!(capped.waits(TenantId(1), 7));
        assert_eq!(capped.next_turn(now_ns), Some(3), "one request is a burst of 100 ms");
        capped.charge(TenantId(1), 4096, now_ns);
        assert_eq!((capped.next_turn(now_ns), capped.next_due_ns()), (None, Some(1_100_000_000)));
        assert_eq!((capped.exhausted(TenantId(0)), capped.exhausted(TenantId(1))), (0, 1));
        assert_eq!(
            [1_100_000_000, 1_200_000_000].map(|at_ns| capped.begin_timer(at_ns)),
            [true, false]
        );
        capped.end_timer(1_100_000_000);
        assert!(capped.begin_timer(1_200_000_000));
        assert_eq!(capped.next_turn(1_100_000_000), Some(7));
        capped.set(TenantId(1), Caps::default());
        assert!(!capped.waits(TenantId(1), 7));
    }

    #[test]
    fn a_connection_that_ends_leaves_no_turn_to_another_of_its_number() {
        let mut capped = CappedClients::new(2);
        capped.set(TenantId(1), Caps { requests: Some(10), bytes: None });
        for connection in [4, 7, 3] {
            assert!(capped.waits(TenantId(1), connection));
        }
        capped.leave(7);
        let now_ns = 1_000_000_000;
        let turns = [(); 3].map(|()| capped.next_turn(now_ns));
        assert_eq!(turns, [Some(4), Some(3), None]);
    }
}
