//! The life of one block, from recordings: why it came in, and why it left.
//!
//! A cache of the same stack decides about all that was recorded, in the order in which the server
//! did; what becomes of one block is written down. It begins with the state beside the first
//! recording, or empty where there is none, and what the server's cache held then is unknown.
//! Where a later recording does not continue the one before, as behind a restart, it goes on from
//! the state of that one. Quotas are those that the server recorded, and else those that the same
//! partitioner gives. Each miss has the cause that the cache's own statistics give it
//! ([`cachewright_cache::blame`]), which know nothing from before a state.

use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_cache::blame::MissCause;
use cachewright_cache::{Cache, Engine, Move, Plan, SequentialStreams, WriteMode};
use cachewright_control::{DecisionHash, RequestDecider};
use cachewright_policy::Policy;
use cachewright_result::document::Written;
use cachewright_result::live::{BlockEvent, ExplainAnswer};
use cachewright_stack::ServerTenants;
use cachewright_stack::deciding::first_difference;
use cachewright_trace::{
    Batch, DivisionRow, Divisions, DivisionsHead, OpenOptions, RecordedState, RecordingName,
    StateBegin, TraceError, divisions_path, open, state_path,
};
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId, block_numbers};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Requests read at a time.
const BATCH: usize = 8192;
/// Events that are kept, from the first.
const MOST_EVENTS: usize = 10_000;
const NS_PER_MS: u64 = 1_000_000;
/// Why the block is where it is as a recording begins.
const IN_STATE: &str = "so says the state beside the recording";

/// Explains the block of a volume that holds a byte. `recordings` follow each other. Errors: no
/// recording, one that cannot be read or is of other volumes or blocks; a volume that the stack
/// does not have.
pub fn explain(
    plan: &LivePlan,
    recordings: &[PathBuf],
    volume: &str,
    offset_bytes: u64,
) -> Result<ExplainAnswer, LiveError> {
    if recordings.is_empty() {
        return Err(plan.refuse("found no recording, expected one or more"));
    }
    let tenant = plan.tenant_named(volume).map_err(LiveError::Refused)?;
    let mut block = ExplainedBlock::new(plan, tenant, offset_bytes)?;
    let mut begin_ns = 0;
    for (place, path) in recordings.iter().enumerate() {
        // A recording begins at a time 0 of its own; its name says when that was.
        let named = [&recordings[0], path].map(|path| began_ms(path));
        if let [Some(first), Some(own)] = named {
            begin_ns = block.last_ns.max(own.saturating_sub(first).saturating_mul(NS_PER_MS));
        }
        let mut recording = Recorded::open(path)?;
        block.recording = place;
        begin_ns = block.go_on_from_state(plan, path, begin_ns)?;
        let has_divisions = block.is_divided() && recording.divides(plan, &block.names);
        block.begin(begin_ns, has_divisions);
        while let Some(request) = recording.next(plan)? {
            let time = Nanos(begin_ns.saturating_add(request.time.0));
            while let Some(row) = recording.division_before(request.time) {
                block.divide(begin_ns.saturating_add(row.time_ns), row.quotas);
            }
            block.divide_due(time);
            let tenant = block.numbers[request.tenant.index()];
            block.request(&Request { time, tenant, ..request });
        }
        block.requests_left_out += recording.left_out;
        begin_ns = block.last_ns + 1;
    }
    Ok(block.answer(plan, recordings, volume))
}

/// When a recording of this name began, in milliseconds since 1970.
fn began_ms(path: &Path) -> Option<u64> {
    path.file_name()?.to_str().and_then(RecordingName::parse).map(RecordingName::unix_ms)
}

/// A recording that is read.
struct Recorded {
    reader: Box<dyn cachewright_trace::TraceReader>,
    batch: Batch,
    read: usize,
    /// The tenant of each volume; none of those that the stack does not have any more.
    tenants: Vec<Option<TenantId>>,
    /// Requests of such volumes.
    left_out: u64,
    /// Of which cache the divisions beside are, if there are such.
    head: Option<DivisionsHead>,
    divisions: VecDeque<DivisionRow>,
}

impl Recorded {
    /// Opens a recording, with the divisions beside it. Errors: it cannot be read.
    fn open(path: &Path) -> Result<Recorded, LiveError> {
        let words = |error: cachewright_trace::TraceError| LiveError::Refused(error.to_string());
        let reader = open(path, &OpenOptions::default()).map_err(words)?;
        let beside = divisions_path(path);
        let (mut head, mut divisions) = (None, VecDeque::new());
        if beside.exists() {
            let found = Divisions::read(&beside).map_err(words)?;
            (head, divisions) = (Some(found.head), found.rows.into());
        }
        let (batch, tenants) = (Batch::default(), Vec::new());
        Ok(Recorded { reader, batch, read: 0, tenants, left_out: 0, head, divisions })
    }

    /// Takes the divisions beside for those of a cache that has tenants of these `names`, or goes
    /// without: all is decided by the stack as it is, also what was recorded before it changed.
    /// Returns whether there are divisions of such a cache.
    fn divides(&mut self, plan: &LivePlan, names: &[String]) -> bool {
        let is_own = self.head.as_ref().is_some_and(|head| {
            head.tenants == names
                && (head.block_bytes, head.capacity_blocks)
                    == (plan.block_bytes(), plan.capacity_blocks)
        });
        if !is_own {
            self.divisions.clear();
        }
        is_own
    }

    /// The next request; nothing at the end. Errors: it cannot be read on.
    fn next(&mut self, plan: &LivePlan) -> Result<Option<Request>, LiveError> {
        loop {
            if self.read == self.batch.len() {
                self.batch.clear();
                self.read = 0;
                let found = self.reader.read(&mut self.batch, BATCH);
                if found.map_err(|error| LiveError::Refused(error.to_string()))? == 0 {
                    return Ok(None);
                }
                for name in &self.reader.volumes()[self.tenants.len()..] {
                    let tenant = plan.tenant_named(name).ok();
                    self.tenants.push(tenant.map(|tenant| TenantId(tenant as u16)));
                }
            }
            let at = self.read;
            self.read += 1;
            let Some(tenant) = self.tenants[self.batch.volume[at] as usize] else {
                self.left_out += 1;
                continue;
            };
            return Ok(Some(Request {
                time: Nanos(self.batch.time_ns[at]),
                offset: Bytes(self.batch.offset_bytes[at]),
                length: Bytes(self.batch.length_bytes[at]),
                op: self.batch.op[at],
                tenant,
            }));
        }
    }

    /// The next division that holds before a request of this time.
    fn division_before(&mut self, time: Nanos) -> Option<DivisionRow> {
        let is_before = self.divisions.front().is_some_and(|row| row.time_ns <= time.0);
        if is_before { self.divisions.pop_front() } else { None }
    }
}

/// A block, in a cache that decides about all that was recorded.
struct ExplainedBlock {
    /// Divides the cache where divisions were not recorded.
    decider: RequestDecider<Box<dyn Policy>>,
    plan: Plan,
    tenant: TenantId,
    number: u64,
    block_shift: u32,
    /// The number that the cache has for each tenant of the stack, and the names by number: those
    /// of the server from the state on.
    numbers: Vec<TenantId>,
    names: Vec<String>,
    /// The time of the last request since the beginning of the first recording.
    last_ns: u64,
    /// By how much the clock of the server that the recordings are of was ahead of such times.
    ahead_ns: i128,
    /// Recordings that began with their states.
    states: u64,
    requests: u64,
    /// Those of volumes that the stack does not have any more.
    requests_left_out: u64,
    accesses: u64,
    hits: u64,
    recording: usize,
    events: Vec<BlockEvent>,
    left_out: u64,
}

impl ExplainedBlock {
    /// Errors: those of an empty cache.
    fn new(plan: &LivePlan, tenant: usize, offset_bytes: u64) -> Result<ExplainedBlock, LiveError> {
        let shift = plan.block_bytes().trailing_zeros();
        let ahead = plan.ahead()?;
        let quotas = plan.quotas(&ahead, &[])?;
        let mut engine: Engine<Box<dyn Policy>> = plan.engine(plan.volumes.len(), &quotas);
        engine.explain_misses(plan.capacity_blocks, false, false);
        Ok(ExplainedBlock {
            decider: RequestDecider::new(
                Cache::new(engine, shift),
                // One that needs times of answers cannot divide here.
                plan.division(&ahead, &[])?.filter(|division| !division.is_priced()),
                plan.cutoff().map(SequentialStreams::new),
            ),
            plan: Plan::default(),
            tenant: TenantId(tenant as u16),
            number: offset_bytes >> shift,
            block_shift: shift,
            numbers: (0..plan.volumes.len()).map(|tenant| TenantId(tenant as u16)).collect(),
            names: plan.volumes.iter().map(|volume| volume.name.clone()).collect(),
            last_ns: 0,
            ahead_ns: 0,
            states: 0,
            requests: 0,
            requests_left_out: 0,
            accesses: 0,
            hits: 0,
            recording: 0,
            events: Vec::new(),
            left_out: 0,
        })
    }

    fn begin(&mut self, begin_ns: u64, is_divided: bool) {
        if is_divided {
            self.decider.division = None;
        }
        self.last_ns = self.last_ns.max(begin_ns);
    }

    /// Goes on from the state beside a recording that begins at `begin_ns`, if there is one, it is
    /// of this stack, and the recordings before do not lead there. Returns when the recording
    /// begins, which a state says more exactly. Errors: a state that cannot be read.
    fn go_on_from_state(
        &mut self,
        plan: &LivePlan,
        recording: &Path,
        begin_ns: u64,
    ) -> Result<u64, LiveError> {
        let (words, path) =
            (|error: TraceError| LiveError::Refused(error.to_string()), state_path(recording));
        if !path.is_file() {
            return Ok(begin_ns);
        }
        let begin = StateBegin::of_file(&path).map_err(words)?;
        if let Some(StateBegin { origin_ns, decided }) = begin.filter(|_| self.states > 0)
            && decided == self.decider.decided().0
            && self.on_server_clock(self.last_ns) == origin_ns
        {
            return Ok(self.last_ns);
        }
        let state = RecordedState::read(&path).map_err(words)?;
        // All is decided by the stack as it is, also what another one had decided.
        let names: Vec<&str> = plan.volumes.iter().map(|volume| &*volume.name).collect();
        let Ok(tenants) = ServerTenants::of_settings(&state.settings, &names) else {
            return Ok(begin_ns);
        };
        let server = plan.numbered(&tenants);
        let own = server.deciding().map_err(LiveError::Refused)?;
        if first_difference(&own, &state.settings).is_some() {
            return Ok(begin_ns);
        }
        let refused = |error: String| {
            LiveError::Refused(format!("{}: {error}, expected a state", path.display()))
        };
        let mut decider = server.decider()?;
        let decided = DecisionHash(state.decided.unwrap_or_default());
        decider.go_on_from(&state.state, decided).map_err(refused)?;
        // One that needs times of answers cannot divide here.
        decider.division.take_if(|division| division.is_priced());
        decider.cache.explain_misses(plan.capacity_blocks);
        let was_cached = self.is_cached();
        self.decider = decider;
        let own = self.numbers.iter().position(|number| *number == self.tenant);
        self.numbers = tenants.numbers();
        self.tenant = self.numbers[own.unwrap_or_default()];
        self.names = server.volumes.into_iter().map(|volume| volume.name).collect();
        self.states += 1;
        self.ahead_ns = i128::from(state.origin_ns) - i128::from(begin_ns);
        self.last_ns = begin_ns;
        match (was_cached, self.is_cached()) {
            (false, true) => self.note(begin_ns, "held", IN_STATE.to_owned()),
            (true, false) => self.note(begin_ns, "gone", IN_STATE.to_owned()),
            _ => {}
        }
        Ok(begin_ns)
    }

    /// Whether each tenant has a quota of its own.
    fn is_divided(&self) -> bool {
        let engine = self.decider.cache.engine();
        engine.has_quota(TenantId(0)) && engine.mixed_pools().is_empty()
    }

    /// A time since the beginning of the first recording, on the server's clock.
    fn on_server_clock(&self, time_ns: u64) -> u64 {
        u64::try_from(i128::from(time_ns) + self.ahead_ns).unwrap_or(u64::MAX)
    }

    fn is_cached(&self) -> bool {
        self.decider.cache.contains(self.tenant, self.number)
    }

    fn is_dirty(&self) -> bool {
        self.decider.cache.is_dirty(self.tenant, self.number)
    }

    /// The server divided the cache anew.
    fn divide(&mut self, time_ns: u64, quotas: Vec<u32>) {
        self.divided(time_ns, |decider, plan| {
            decider.divide_to(quotas, plan);
        });
    }

    /// Divides the cache as often as the partitioner does before a request of this time, where the
    /// server's divisions are not known. One that needs times of answers cannot.
    fn divide_due(&mut self, time: Nanos) {
        let due = Nanos(self.on_server_clock(time.0));
        while self.decider.division_is_due(due) {
            self.divided(time.0, |decider, plan| {
                decider.divide(None, plan);
            });
        }
    }

    /// Lets a division change the quotas.
    fn divided(
        &mut self,
        time_ns: u64,
        change: impl FnOnce(&mut RequestDecider<Box<dyn Policy>>, &mut Plan),
    ) {
        let before = self.decider.cache.engine().quota(self.tenant);
        let (was_cached, was_dirty) = (self.is_cached(), self.is_dirty());
        change(&mut self.decider, &mut self.plan);
        if was_cached && !self.is_cached() {
            let bytes = |blocks: u32| Bytes(u64::from(blocks) << self.block_shift);
            let (old, new) = (bytes(before), bytes(self.decider.cache.engine().quota(self.tenant)));
            let own = &self.names[self.tenant.index()];
            let why = format!("a division gave {own} {new} instead of {old}");
            self.left(time_ns, was_dirty, why);
        }
    }

    /// A request was decided.
    fn request(&mut self, request: &Request) {
        self.last_ns = self.last_ns.max(request.time.0);
        self.requests += 1;
        let time_ns = request.time.0;
        let touches = request.tenant == self.tenant
            && block_numbers(request.offset.0, request.length.0, self.block_shift)
                .contains(&self.number);
        let (was_cached, was_dirty) = (self.is_cached(), self.is_dirty());
        let cause = (touches && !was_cached).then(|| self.cause()).flatten();
        let cut_off = |block: &ExplainedBlock| {
            block.decider.cache.engine().counts(request.tenant).cut_off_requests
        };
        let before = cut_off(self);
        let time = Nanos(self.on_server_clock(time_ns));
        self.decider.request(&Request { time, ..*request }, &mut self.plan);
        let is_cut_off = cut_off(self) > before;
        let is_access = matches!(request.op, Op::Read | Op::Write);
        if touches && is_access {
            self.accessed(request, was_cached, cause, is_cut_off);
        } else if touches && was_cached && !self.is_cached() {
            self.note(time_ns, "trimmed", String::new());
        }
        if was_cached && !self.is_cached() && !touches {
            let why = self.displaced_by(request);
            self.left(time_ns, was_dirty, why);
        }
        if is_access {
            self.background(time_ns, request.tenant);
        }
    }

    /// The block was read or written.
    fn accessed(
        &mut self,
        request: &Request,
        was_cached: bool,
        cause: Option<MissCause>,
        is_cut_off: bool,
    ) {
        let time_ns = request.time.0;
        let writes = request.op == Op::Write;
        let op = if writes { "write" } else { "read" };
        self.accesses += 1;
        let missed =
            cause.map_or(String::new(), |cause| format!("missed: {}", self.cause_in_words(cause)));
        match (was_cached, self.is_cached()) {
            (true, true) => {
                self.hits += 1;
                self.note(time_ns, &format!("{op} hit"), String::new());
            }
            (true, false)
                if writes && self.decider.cache.engine().mode() == WriteMode::ReadOnly =>
            {
                self.note(time_ns, "dropped", "a write went past the cache".to_owned());
            }
            (true, false) => {
                self.hits += 1;
                self.note(time_ns, &format!("{op} hit"), String::new());
                let why = "later blocks of the same request took its space".to_owned();
                self.note(time_ns, "evicted", why);
            }
            (false, true) => self.note(time_ns, &format!("admitted by a {op}"), missed),
            (false, false) => {
                let why = match () {
                    () if is_cut_off => "it belongs to a long sequential stream",
                    () if writes
                        && self.decider.cache.engine().mode() == WriteMode::WriteAround =>
                    {
                        "writes go past the cache"
                    }
                    () if writes && self.decider.cache.engine().mode() == WriteMode::ReadOnly => {
                        "writes go past the cache"
                    }
                    () => "the policy did not admit it",
                };
                let both = format!("{missed}; {why}");
                self.note(time_ns, &format!("{op} past the cache"), both);
            }
        }
    }

    /// What the policy does behind a request of a tenant.
    fn background(&mut self, time_ns: u64, tenant: TenantId) {
        let (was_cached, was_dirty) = (self.is_cached(), self.is_dirty());
        self.decider.background_ops(tenant, &mut self.plan);
        if was_cached && !self.is_cached() {
            self.left(time_ns, was_dirty, "the policy gave it up".to_owned());
        } else if was_dirty && !self.is_dirty() {
            let own = |step: &Move| {
                matches!(step, Move::Clean(found)
                    if found.tenant == self.tenant && found.number == self.number)
            };
            if self.plan.moves.iter().any(own) {
                self.note(time_ns, "written back", "the policy keeps it, clean".to_owned());
            }
        }
    }

    /// Why the block would miss now.
    fn cause(&self) -> Option<MissCause> {
        let pool = self.decider.cache.engine().pool_of(self.tenant);
        match self.decider.cache.id_of(self.tenant, self.number) {
            Some(id) => self.decider.cache.engine().cause_of_miss(pool, id),
            None => Some(MissCause::FirstUse),
        }
    }

    fn cause_in_words(&self, cause: MissCause) -> String {
        let own = &self.names[self.tenant.index()];
        match cause {
            MissCause::FirstUse => "not used before in the recordings".to_owned(),
            MissCause::Trimmed => "trimmed since its last use".to_owned(),
            MissCause::Lost => "its copy was lost".to_owned(),
            MissCause::Restart => "a restart did not keep it".to_owned(),
            MissCause::Bypassed => "its last use was kept out of the cache".to_owned(),
            MissCause::Policy => {
                format!("an lru of the blocks that {own} holds would have it; the policy has not")
            }
            MissCause::Quota => format!("the quota of {own} is too small"),
            MissCause::Division => format!("a division had taken space from {own}"),
            MissCause::PushedOutBy(by) => {
                format!("{} had the space", self.names[by.index()])
            }
            MissCause::Capacity | MissCause::Beyond => {
                "not even an lru of the whole cache would have it".to_owned()
            }
        }
    }

    /// Why the block left when a request was decided that is not about it.
    fn displaced_by(&self, request: &Request) -> String {
        let by = &self.names[request.tenant.index()];
        let op = if request.op == Op::Write { "written" } else { "read" };
        let (own, engine) = (&self.names[self.tenant.index()], self.decider.cache.engine());
        let number = request.offset.0 >> self.block_shift << self.block_shift;
        let place = format!("for what {by} has {op} at {number}");
        if !engine.has_quota(self.tenant) {
            return place;
        }
        let quota = Bytes(u64::from(engine.quota(self.tenant)) << self.block_shift);
        match request.tenant == self.tenant {
            true => format!("{place}; {own} has all of its {quota}"),
            // Blocks beyond a quota leave as others need the room.
            false => format!("{place}; {own} had more than its {quota}"),
        }
    }

    /// The block has left the cache.
    fn left(&mut self, time_ns: u64, was_dirty: bool, why: String) {
        self.note(time_ns, if was_dirty { "evicted and written back" } else { "evicted" }, why);
    }

    /// Notes an event; one like that before counts there.
    fn note(&mut self, time_ns: u64, event: &str, why: String) {
        if let Some(last) = self.events.last_mut()
            && last.event == event
            && last.why == why
            && last.recording == self.recording as u64
        {
            last.count += 1;
            last.last_ns = time_ns;
            return;
        }
        if self.events.len() == MOST_EVENTS {
            self.left_out += 1;
            return;
        }
        let (recording, event) = (self.recording as u64, event.to_owned());
        self.events.push(BlockEvent { time_ns, recording, event, count: 1, last_ns: time_ns, why });
    }

    fn answer(self, plan: &LivePlan, recordings: &[PathBuf], volume: &str) -> ExplainAnswer {
        let [policy, partition, _] = plan.schemes().map(str::to_owned);
        let (is_cached, is_dirty) = (self.is_cached(), self.is_dirty());
        ExplainAnswer {
            written: Written::here(),
            volume: volume.to_owned(),
            offset_bytes: self.number << self.block_shift,
            block_bytes: plan.block_bytes(),
            policy,
            partition,
            recordings: recordings.iter().map(|path| path.display().to_string()).collect(),
            states: self.states,
            requests: self.requests,
            requests_left_out: self.requests_left_out,
            span_ns: self.last_ns,
            accesses: self.accesses,
            hits: self.hits,
            is_cached,
            is_dirty,
            events: self.events,
            events_left_out: self.left_out,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use cachewright_trace::{DivisionsHead, Record, create_writer};
    use std::collections::BTreeMap;

    const BLOCK: u64 = 4096;

    fn plan(cache: &str) -> LivePlan {
        let text = format!(
            "[cache]\ncapacity = \"12KiB\"\npolicy = \"lru\"\n{cache}\n[serve]\ndevices = \
             [\"one.img\"]\n[[tenant]]\nname = \"a\"\nbacking = \"a.img\"\n[[tenant]]\nname = \
             \"b\"\nbacking = \"b.img\"\n"
        );
        LivePlan::read(&text, Path::new("stack.toml"), &[]).unwrap()
    }

    /// A recording of requests (time, tenant, op, block), each of one block.
    fn record(path: &Path, requests: &[(u64, u32, Op, u64)]) {
        let mut batch = Batch::default();
        for (time_ns, volume, op, block) in requests.iter().copied() {
            let (offset_bytes, length_bytes) = (block * BLOCK, BLOCK);
            batch.push(Record { time_ns, offset_bytes, length_bytes, op, volume });
        }
        let names = ["a", "b"].map(str::to_owned);
        let mut writer = create_writer("parquet", path, &BTreeMap::new()).unwrap();
        writer.write(&batch, &names).unwrap();
        writer.finish().unwrap();
    }

    fn events(answer: &ExplainAnswer) -> Vec<(u64, &str, u64, &str)> {
        let event = |one: &BlockEvent| (one.time_ns, one.count);
        let events = answer.events.iter();
        events
            .map(|one| (event(one).0, one.event.as_str(), event(one).1, one.why.as_str()))
            .collect()
    }

    /// Three blocks under lru for both tenants; block 1 of tenant a. Newest first:
    ///
    /// | time | request | cache |
    /// |---|---|---|
    /// | 1 to 3 | a reads, reads, writes 1 | a1, dirty |
    /// | 4 to 6 | b reads 1, 2, 3 | b3 b2 b1: a1 leaves for b3 |
    /// | 7 | a reads 1 | a1 b3 b2: an lru of three blocks for a alone would have it |
    /// | 8 | a trims 1 | b3 b2 |
    /// | 9 | a reads 1 | a1 b3 b2 |
    #[test]
    fn each_event_of_a_block_has_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] =
            ["first.parquet", "second.parquet"].map(|name| folder.path().join(name));
        let (read, write, trim) = (Op::Read, Op::Write, Op::Trim);
        record(&first, &[(1, 0, read, 1), (2, 0, read, 1), (3, 0, write, 1), (4, 1, read, 1)]);
        let rest =
            [(0, 1, read, 2), (1, 1, read, 3), (2, 0, read, 1), (3, 0, trim, 1), (4, 0, read, 1)];
        record(&second, &rest);
        let plan = plan("");
        let recordings = [first, second];
        let answer = explain(&plan, &recordings, "a", BLOCK + 17).unwrap();
        assert_eq!(
            events(&answer),
            [
                (1, "admitted by a read", 1, "missed: not used before in the recordings"),
                (2, "read hit", 1, ""),
                (3, "write hit", 1, ""),
                (6, "evicted and written back", 1, "for what b has read at 12288"),
                (7, "admitted by a read", 1, "missed: b had the space"),
                (8, "trimmed", 1, ""),
                (9, "admitted by a read", 1, "missed: trimmed since its last use"),
            ]
        );
        assert_eq!((answer.offset_bytes, answer.requests), (BLOCK, 9));
        assert_eq!((answer.accesses, answer.hits), (5, 2));
        assert!(answer.is_cached && !answer.is_dirty);
        let other = explain(&plan, &recordings, "b", 40 * BLOCK).unwrap();
        assert_eq!((other.accesses, other.events.len()), (0, 0));
    }

    /// Each tenant has a quota of its own; at time 3 the server gave a one block instead of two.
    #[test]
    fn a_recorded_division_is_named_where_it_takes_a_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("served.parquet");
        record(&path, &[(1, 0, Op::Read, 1), (2, 0, Op::Read, 2), (4, 0, Op::Read, 1)]);
        let head = |tenants: [&str; 2]| DivisionsHead {
            partition: "hull".to_owned(),
            interval_ns: 3,
            origin_ns: 0,
            block_bytes: BLOCK,
            capacity_blocks: 3,
            tenants: tenants.map(str::to_owned).into(),
        };
        let row = |time_ns, quotas: [u32; 2]| DivisionRow { time_ns, quotas: quotas.into() };
        let rows = vec![row(0, [2, 1]), row(3, [1, 2])];
        let divisions = Divisions { head: head(["a", "b"]), rows: rows.clone() };
        divisions.write(&divisions_path(&path)).unwrap();
        let plan = plan("partition = \"equal\"");
        let answer = explain(&plan, std::slice::from_ref(&path), "a", BLOCK).unwrap();
        assert_eq!(
            events(&answer)[1..],
            [
                (3, "evicted", 1, "a division gave a 4KiB instead of 8KiB"),
                (4, "admitted by a read", 1, "missed: a division had taken space from a"),
            ]
        );
        let other = Divisions { head: head(["a", "c"]), rows };
        other.write(&divisions_path(&path)).unwrap();
        // They are of another cache: a has two blocks of this one at all times.
        let answer = explain(&plan, &[path], "a", BLOCK).unwrap();
        assert_eq!(events(&answer)[1..], [(4, "read hit", 1, "")]);
    }

    #[test]
    fn what_cannot_be_explained_is_refused() {
        let plan = plan("");
        let missing = PathBuf::from("none.parquet");
        let error = |recordings: &[PathBuf], volume: &str| {
            explain(&plan, recordings, volume, 0).unwrap_err().to_string()
        };
        assert!(error(&[], "a").contains("found no recording, expected one or more"));
        let text = error(std::slice::from_ref(&missing), "c");
        assert!(
            text.contains(
                "found the volume `c`, expected the name of a `[[tenant]]` of stack.toml"
            ),
            "{text}"
        );
        assert!(error(&[missing], "a").contains("none.parquet"));
    }
}
