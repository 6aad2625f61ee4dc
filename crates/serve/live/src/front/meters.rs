//! What clients of a volume asked for, how long it took, and what they may do per second together,
//! whichever front ends they come by.
//!
//! Times are from the arrival of a request to its answer. Clients of a volume with caps take turns:
//! one request each.

use super::EarliestTimer;
use crate::blocks::BlockOp;
use crate::pace::Pace;
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

    /// The kind of an operation whose data the client wants.
    pub fn of(op: BlockOp) -> RequestKind {
        match op {
            BlockOp::Read => RequestKind::Read,
            BlockOp::Write => RequestKind::Write,
            BlockOp::Flush => RequestKind::Flush,
            BlockOp::Trim => RequestKind::Trim,
            BlockOp::Zero | BlockOp::Provision => RequestKind::Zero,
        }
    }

    /// Whether its bytes are moved, and count beside the caps of a volume.
    pub fn moves_data(self) -> bool {
        matches!(self, RequestKind::Read | RequestKind::Write | RequestKind::Prefetch)
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

/// Requests of a volume's clients by kind.
#[derive(Clone, Debug, Default)]
pub struct ExportMeter {
    kinds: [AnswerMeter; RequestKind::ALL.len()],
    limit: Option<LimitMeter>,
}

impl ExportMeter {
    /// Counts a request of so many bytes that is answered.
    pub fn note(&mut self, kind: RequestKind, bytes: u64, response_ns: u64, has_failed: bool) {
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

/// Bounds on the clients of a volume; nothing: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Requests per second.
    pub requests: Option<u64>,
    /// Bytes of reads and writes per second.
    pub bytes: Option<u64>,
}

/// What the clients of one volume may still do.
#[derive(Clone, Debug, Default)]
pub struct Allowance {
    requests: Option<Pace>,
    bytes: Option<Pace>,
    /// How often it was exhausted.
    exhausted: u64,
}

impl Allowance {
    /// Sets the caps; rates that stay keep what has passed.
    pub fn set(&mut self, caps: Caps) {
        let change = |pace: &mut Option<Pace>, rate: Option<u64>| match (pace.as_mut(), rate) {
            (Some(pace), Some(rate)) => pace.set_rate(rate),
            (_, rate) => *pace = rate.map(Pace::new),
        };
        change(&mut self.requests, caps.requests);
        change(&mut self.bytes, caps.bytes);
    }

    /// Whether there are caps.
    pub fn is_capped(&self) -> bool {
        self.requests.is_some() || self.bytes.is_some()
    }

    /// When the next request may begin.
    pub fn due_ns(&self) -> u64 {
        let due = |pace: &Option<Pace>| pace.as_ref().map_or(0, Pace::due_ns);
        due(&self.requests).max(due(&self.bytes))
    }

    /// A request with so many bytes of reads or writes begins.
    pub fn charge(&mut self, bytes: u64, now_ns: u64) {
        self.requests.iter_mut().for_each(|pace| pace.charge(1, now_ns));
        self.bytes.iter_mut().for_each(|pace| pace.charge(bytes, now_ns));
        // Others that wait, or the same client's next request, have to.
        self.exhausted += u64::from(self.is_capped() && self.due_ns() > now_ns);
    }

    /// How often it was exhausted.
    pub fn exhausted(&self) -> u64 {
        self.exhausted
    }
}

/// Clients of one front end that wait for their turn because of caps, by tenant.
#[derive(Clone, Debug, Default)]
pub struct CapQueues {
    waiting: Vec<VecDeque<usize>>,
    /// When those that wait are looked at again.
    timer: EarliestTimer,
}

impl CapQueues {
    /// Whether a client must wait for its turn, which comes by [`CapQueues::next_turn`].
    pub fn waits(&mut self, tenant: TenantId, client: usize, allowance: &Allowance) -> bool {
        let waiting = self.waiting.get(tenant.index());
        let waits = allowance.is_capped() || waiting.is_some_and(|waiting| !waiting.is_empty());
        if waits {
            let tenants = self.waiting.len().max(tenant.index() + 1);
            self.waiting.resize_with(tenants, VecDeque::new);
            let waiting = &mut self.waiting[tenant.index()];
            if !waiting.contains(&client) {
                waiting.push_back(client);
            }
        }
        waits
    }

    /// A client whose turn it is, if the allowance of its volume lets it do something.
    pub fn next_turn(&mut self, allowances: &[Allowance], now_ns: u64) -> Option<usize> {
        let due = self.waiting.iter_mut().zip(allowances);
        let mut due = due.filter(|(_, allowance)| allowance.due_ns() <= now_ns);
        due.find_map(|(waiting, _)| waiting.pop_front())
    }

    /// When the next turn may come, if a client waits.
    pub fn next_due_ns(&self, allowances: &[Allowance]) -> Option<u64> {
        let waiting = self.waiting.iter().zip(allowances);
        let waiting = waiting.filter(|(waiting, _)| !waiting.is_empty());
        waiting.map(|(_, allowance)| allowance.due_ns()).min()
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

    /// A client waits no more: it ends, and its number may be another one's from then on.
    pub fn leave(&mut self, client: usize) {
        for waiting in &mut self.waiting {
            waiting.retain(|other| *other != client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_counted_under_its_kind() {
        let mut meter = ExportMeter::default();
        meter.note(RequestKind::Write, 512, 5_000, false);
        meter.note(RequestKind::Write, 512, 7_000, true);
        meter.note(RequestKind::Flush, 0, 9_000, false);
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
        let write = |meter: &mut ExportMeter, ns| meter.note(RequestKind::Write, 512, ns, false);
        let counts = |limit: LimitMeter| (limit.answers(), limit.late());
        let mut meter = ExportMeter::default();
        write(&mut meter, 9_000);
        meter.set_limit(Some(5_000));
        write(&mut meter, 5_000);
        write(&mut meter, 5_001);
        meter.note(RequestKind::Write, 512, 1, true);
        meter.note(RequestKind::Flush, 0, 90_000, false);
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

    /// Two volumes, of which the second has a cap of ten requests per second.
    fn capped() -> (CapQueues, Vec<Allowance>) {
        let mut allowances = vec![Allowance::default(); 2];
        allowances[1].set(Caps { requests: Some(10), bytes: None });
        (CapQueues::default(), allowances)
    }

    #[test]
    fn clients_of_a_capped_volume_take_turns() {
        let (mut queues, mut allowances) = capped();
        assert!(!queues.waits(TenantId(0), 5, &allowances[0]), "no caps");
        for client in [7, 3, 7] {
            assert!(queues.waits(TenantId(1), client, &allowances[1]));
        }
        let now_ns = 1_000_000_000;
        let due_ns = queues.next_due_ns(&allowances);
        assert_eq!((due_ns, queues.next_turn(&allowances, now_ns)), (Some(0), Some(7)));
        allowances[1].charge(4096, now_ns);
        assert!(queues.waits(TenantId(1), 7, &allowances[1]));
        let next = queues.next_turn(&allowances, now_ns);
        assert_eq!(next, Some(3), "one request is a burst of 100 ms");
        allowances[1].charge(4096, now_ns);
        assert_eq!(queues.next_turn(&allowances, now_ns), None);
        assert_eq!(queues.next_due_ns(&allowances), Some(1_100_000_000));
        assert_eq!((allowances[0].exhausted(), allowances[1].exhausted()), (0, 1));
        assert_eq!(
            [1_100_000_000, 1_200_000_000].map(|at_ns| queues.begin_timer(at_ns)),
            [true, false]
        );
        queues.end_timer(1_100_000_000);
        assert!(queues.begin_timer(1_200_000_000));
        assert_eq!(queues.next_turn(&allowances, 1_100_000_000), Some(7));
        allowances[1].set(Caps::default());
        assert!(!queues.waits(TenantId(1), 7, &allowances[1]));
    }

    #[test]
    fn front_ends_share_what_the_clients_of_a_volume_may_do() {
        let (mut one, mut allowances) = capped();
        let mut other = CapQueues::default();
        assert!(one.waits(TenantId(1), 0, &allowances[1]));
        assert!(other.waits(TenantId(1), 0, &allowances[1]));
        let now_ns = 1_000_000_000;
        assert_eq!(one.next_turn(&allowances, now_ns), Some(0));
        (0..2).for_each(|_| allowances[1].charge(0, now_ns));
        assert_eq!(other.next_turn(&allowances, now_ns), None);
        assert_eq!(other.next_due_ns(&allowances), Some(1_100_000_000));
    }

    #[test]
    fn a_client_that_ends_leaves_no_turn_to_another_of_its_number() {
        let (mut queues, allowances) = capped();
        for client in [4, 7, 3] {
            assert!(queues.waits(TenantId(1), client, &allowances[1]));
        }
        queues.leave(7);
        let turns = [(); 3].map(|()| queues.next_turn(&allowances, 1_000_000_000));
        assert_eq!(turns, [Some(4), Some(3), None]);
    }
}
