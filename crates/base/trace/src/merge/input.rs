//! One tenant's trace on the workload's clock: which records it takes, cut, and when they come.
//!
//! The trace's first record (of any volume) is its time zero unless the workload sets another.
//! Volumes of one trace given to several tenants therefore stay in step.

use super::{SharedSpace, WorkloadBatch};
use crate::formats::registry::open;
use crate::{Batch, Call, OpenOptions, Record, Skipped, TraceError, TraceReader};
use cachewright_types::seed::mix;
use cachewright_types::{Nanos, Op, nearest};
use hashbrown::HashMap;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;

/// Requests read from a trace at a time.
const CHUNK: usize = 1 << 13;
const UNSEEN: u32 = u32::MAX;

/// A tenant's trace being read.
pub(super) struct Input {
    reader: Box<dyn TraceReader>,
    selection: Selection,
    clock: TenantClock,
    end: TraceEnd,
    cut: Option<RequestCutter>,
    sort: bool,
    /// What is buffered is as the trace has it: neither chosen nor on the workload's clock.
    raw: bool,
    requests_hint: Option<u64>,
    /// Requests that were taken.
    taken: u64,
    /// Read and not yet taken, from `next` on; times are the workload's.
    buffer: Batch,
    next: usize,
    /// Space of each volume, [`UNSEEN`] for those not met.
    spaces: Vec<u32>,
    /// The spaces of the tenant's volumes that what came before its trace has met.
    known: HashMap<String, u32, foldhash::fast::FixedState>,
}

/// Where a tenant's requests end.
#[derive(Clone, Copy, Debug)]
struct TraceEnd {
    /// The first time that is too late.
    stop_ns: u64,
    /// Requests that may still be given.
    left: u64,
}

impl TraceEnd {
    fn new(stop: Option<EarlyEnd>) -> TraceEnd {
        let (stop_ns, left) = match stop {
            None => (u64::MAX, u64::MAX),
            Some(EarlyEnd::At(time)) => (time.0, u64::MAX),
            Some(EarlyEnd::After(requests)) => (u64::MAX, requests),
            Some(EarlyEnd::First(time, requests)) => (time.0, requests),
        };
        TraceEnd { stop_ns, left }
    }

    /// Whether no request is given any more.
    fn is_reached(&self) -> bool {
        self.left == 0
    }

    /// Drops what lies beyond the tenant's end, and with it the rest of the trace.
    fn apply(&mut self, batch: &mut Batch) {
        let buffered = batch.len();
        let early = batch.time_ns.partition_point(|time_ns| *time_ns < self.stop_ns);
        let kept = early.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left = if kept < buffered { 0 } else { self.left - kept as u64 };
        truncate(batch, kept);
    }
}

impl Input {
    /// Opens the trace and reads its first requests, all of them when they are to be sorted.
    pub(super) fn open(tenant: TenantInput) -> Result<Input, TraceError> {
        let clock = TenantClock::new(tenant.time_scale, tenant.start)?;
        let reader = match tenant.source {
            TenantSource::Path(path, options) => open(&path, &options)?,
            TenantSource::Reader(reader) => reader,
        };
        let end = TraceEnd::new(tenant.stop);
        let selection = Selection::new(tenant.volume, tenant.operation, tenant.sample);
        let all = selection.takes_all() && tenant.request_bytes.is_none();
        let known = all && end.stop_ns == u64::MAX;
        let hint = if known { reader.requests_hint() } else { None };
        let mut input = Input {
            reader,
            selection,
            clock,
            end,
            cut: tenant.request_bytes.map(RequestCutter::new),
            sort: tenant.sort,
            raw: true,
            requests_hint: hint.map(|hint| hint.min(end.left)),
            taken: 0,
            buffer: Batch::default(),
            next: 0,
            spaces: Vec::new(),
            known: HashMap::default(),
        };
        if tenant.sort {
            input.read_sorted()?;
        } else {
            input.reader.read(&mut input.buffer, CHUNK)?;
            if let Some(first_ns) = input.buffer.time_ns.first() {
                input.clock.set_origin(*first_ns);
            }
        }
        Ok(input)
    }

    /// Time in the trace at which it begins; nothing for an empty one.
    pub(super) fn origin_ns(&self) -> Option<u64> {
        self.clock.origin_ns()
    }

    /// Makes another time of the trace the tenant's start; before the first [`head`](Self::head).
    pub(super) fn set_origin(&mut self, origin_ns: u64) {
        self.clock.set_origin(origin_ns);
    }

    /// Takes the spaces of `tenant` for those of its volumes of the same names; before the first
    /// [`head`](Self::head).
    pub(super) fn know_spaces(&mut self, tenant: u16, spaces: &[SharedSpace]) {
        let own = spaces.iter().enumerate().filter(|(_, space)| space.tenant == tenant);
        self.known = own.map(|(index, space)| (space.volume.clone(), index as u32)).collect();
    }

    /// Moves the tenant's start, and where it stops, to so much later; before the first
    /// [`head`](Self::head). Errors: a start that is too late.
    pub(super) fn begin(&mut self, begin_ns: u64) -> Result<(), TraceError> {
        self.end.stop_ns = self.end.stop_ns.saturating_add(begin_ns);
        self.clock.begin(begin_ns)
    }

    /// Time of the next request; nothing at the end.
    pub(super) fn head(&mut self) -> Result<Option<u64>, TraceError> {
        while self.raw || self.next >= self.buffer.len() {
            if !self.raw {
                self.buffer.clear();
                self.next = 0;
                if !self.end.is_reached() && self.more_pieces() {
                    continue;
                }
                if !self.end.is_reached() {
                    self.reader.read(&mut self.buffer, CHUNK)?;
                }
            }
            self.raw = false;
            if self.end.is_reached() {
                self.buffer.clear();
                return Ok(None);
            }
            if self.buffer.is_empty() {
                self.selection.refuse_unknown_volume(self.reader.volumes())?;
                return Ok(None);
            }
            if !self.sort {
                self.selection.choose(&mut self.buffer, 0, self.reader.volumes());
            }
            self.clock.order_times(&mut self.buffer)?;
            if let Some(cut) = &mut self.cut {
                cut.take(&mut self.buffer);
                cut.give(&mut self.buffer);
            }
            self.end.apply(&mut self.buffer);
        }
        Ok(self.buffer.time_ns.get(self.next).copied())
    }

    /// Buffers the next pieces of requests that are cut; returns whether there were any.
    fn more_pieces(&mut self) -> bool {
        let Some(cut) = self.cut.as_mut().filter(|cut| !cut.is_empty()) else { return false };
        cut.give(&mut self.buffer);
        self.end.apply(&mut self.buffer);
        true
    }

    /// Moves buffered requests to `batch`: those before the `until` of another tenant (ties go to
    /// the smaller tenant), at most `max`. Returns how many.
    pub(super) fn take(
        &mut self,
        tenant: u16,
        until: Option<(u64, u16)>,
        max: usize,
        batch: &mut WorkloadBatch,
        spaces: &mut Vec<SharedSpace>,
    ) -> Result<usize, TraceError> {
        let times = &self.buffer.time_ns[self.next..];
        let due = match until {
            None => times.len(),
            Some(until) => count_leading(times, |time_ns| (time_ns, tenant) < until),
        };
        let range = self.next..self.next + due.min(max);
        self.next = range.end;
        self.taken += range.len() as u64;
        self.number_spaces(tenant, range.clone(), batch, spaces);
        batch.tenant.resize(batch.tenant.len() + range.len(), tenant);
        let calls = self.buffer.calls.get(range.clone()).unwrap_or_default();
        if !(calls.is_empty() && batch.calls.is_empty()) {
            batch.calls.resize(batch.tenant.len() - range.len(), Call::default());
            batch.calls.extend_from_slice(calls);
            batch.calls.resize(batch.tenant.len(), Call::default());
        }
        if batch.op.is_empty() && range.len() == self.buffer.len() {
            std::mem::swap(&mut batch.time_ns, &mut self.buffer.time_ns);
            std::mem::swap(&mut batch.offset_bytes, &mut self.buffer.offset_bytes);
            std::mem::swap(&mut batch.length_bytes, &mut self.buffer.length_bytes);
            std::mem::swap(&mut batch.op, &mut self.buffer.op);
            self.buffer.clear();
            self.next = 0;
            return Ok(range.len());
        }
        batch.time_ns.extend_from_slice(&self.buffer.time_ns[range.clone()]);
        batch.offset_bytes.extend_from_slice(&self.buffer.offset_bytes[range.clone()]);
        batch.length_bytes.extend_from_slice(&self.buffer.length_bytes[range.clone()]);
        batch.op.extend_from_slice(&self.buffer.op[range.clone()]);
        Ok(range.len())
    }

    /// Appends the spaces of buffered requests, numbering volumes at first sight.
    fn number_spaces(
        &mut self,
        tenant: u16,
        range: Range<usize>,
        batch: &mut WorkloadBatch,
        spaces: &mut Vec<SharedSpace>,
    ) {
        self.spaces.resize(self.reader.volumes().len(), UNSEEN);
        let volumes = &self.buffer.volume[range];
        let mut number = |volume: u32| {
            let space = &mut self.spaces[volume as usize];
            if *space == UNSEEN {
                let volume = self.reader.volumes()[volume as usize].clone();
                if let Some(known) = self.known.get(&volume) {
                    *space = *known;
                    return *space;
                }
                *space = spaces.len() as u32;
                spaces.push(SharedSpace { tenant, volume });
            }
            *space
        };
        match volumes {
            [first, rest @ ..] if rest.iter().all(|volume| volume == first) => {
                let space = number(*first);
                batch.space.resize(batch.space.len() + volumes.len(), space);
            }
            _ => batch.space.extend(volumes.iter().map(|volume| number(*volume))),
        }
    }

    pub(super) fn has_times(&self) -> bool {
        self.reader.has_times()
    }

    pub(super) fn skipped(&self) -> &Skipped {
        self.reader.skipped()
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn counts_objects(&self) -> bool {
        self.reader.counts_objects()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.reader.notes()
    }

    pub(super) fn out_of_order(&self) -> u64 {
        self.clock.out_of_order()
    }

    pub(super) fn requests_hint(&self) -> Option<u64> {
        self.requests_hint
    }

    /// Reads the whole trace into the buffer, chooses from it and sorts it; equal times keep the
    /// file's order.
    fn read_sorted(&mut self) -> Result<(), TraceError> {
        loop {
            let start = self.buffer.len();
            if self.reader.read(&mut self.buffer, CHUNK)? == 0 {
                break;
            }
            self.clock.include(&self.buffer.time_ns[start..]);
            self.selection.choose(&mut self.buffer, start, self.reader.volumes());
        }
        self.selection.refuse_unknown_volume(self.reader.volumes())?;
        self.clock.count_late(&self.buffer.time_ns);
        if self.clock.out_of_order() > 0 {
            let mut order: Vec<usize> = (0..self.buffer.len()).collect();
            order.sort_by_key(|index| self.buffer.time_ns[*index]);
            let mut sorted = Batch::default();
            order.iter().for_each(|index| sorted.push(self.buffer.get(*index)));
            let calls = &self.buffer.calls;
            sorted.calls.extend(order.iter().filter_map(|index| calls.get(*index)));
            self.buffer = sorted;
        }
        Ok(())
    }
}

/// How many of the ascending times come first that are `early`. Steps from the front, twice as far
/// each time: where inputs take turns, few do.
fn count_leading(times: &[u64], early: impl Fn(u64) -> bool) -> usize {
    let mut end = 1;
    while end < times.len() && early(times[end - 1]) {
        end *= 2;
    }
    let end = end.min(times.len());
    times[..end].partition_point(|time_ns| early(*time_ns))
}

/// Where a tenant's requests come from.
pub enum TenantSource {
    /// A file and how to read it.
    Path(PathBuf, OpenOptions),
    /// Something already open.
    Reader(Box<dyn TraceReader>),
}

/// Where a tenant's requests end before its trace does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyEnd {
    /// Before the first request at or after this time on the workload's clock.
    At(Nanos),
    /// After so many requests.
    After(u64),
    /// At the first of both.
    First(Nanos, u64),
}

/// One tenant of a workload before it is opened.
pub struct TenantInput {
    /// The tenant's name.
    pub name: String,
    /// Its requests.
    pub source: TenantSource,
    /// What comes before the trace, with its own clock; all that comes before any tenant's trace
    /// comes before the first request of every trace.
    pub before: Option<Box<TenantInput>>,
    /// Take only this volume of the trace, or these with commas; nothing means all of them.
    pub volume: Option<String>,
    /// Factor on the trace's times: 2.0 makes it last twice as long, 0.5 half as long.
    pub time_scale: f64,
    /// When the trace begins on the workload's clock.
    pub start: Nanos,
    /// Where it ends; nothing takes the whole trace.
    pub stop: Option<EarlyEnd>,
    /// Sort by time in memory (66 B per request meanwhile) instead of moving late records up.
    pub sort: bool,
    /// What every read and write becomes; then nothing else is taken. Nothing leaves all as it is.
    pub operation: Option<Op>,
    /// Share of the volume's chunks whose requests are taken; 1.0 takes all.
    pub sample: f64,
    /// Longest read or write in bytes: longer ones are cut; nothing leaves all as they are.
    pub request_bytes: Option<u64>,
}

impl TenantInput {
    /// All volumes of the trace at `path`, at its own speed, from the start.
    pub fn path(name: &str, path: impl Into<PathBuf>, options: OpenOptions) -> TenantInput {
        TenantInput::new(name, TenantSource::Path(path.into(), options))
    }

    /// The same of a trace already open.
    pub fn reader(name: &str, reader: Box<dyn TraceReader>) -> TenantInput {
        TenantInput::new(name, TenantSource::Reader(reader))
    }

    fn new(name: &str, source: TenantSource) -> TenantInput {
        TenantInput {
            name: name.to_owned(),
            source,
            before: None,
            volume: None,
            time_scale: 1.0,
            start: Nanos(0),
            stop: None,
            sort: false,
            operation: None,
            sample: 1.0,
            request_bytes: None,
        }
    }
}

/// Factors on a trace's times that are accepted.
pub const TIME_SCALES: RangeInclusive<f64> = 1e-9..=1e9;
/// No request is later on the workload's clock: some 292 years.
const LATEST_NS: u64 = 1 << 63;

/// The clock of one tenant's trace. A time before that of a record that came before it is moved up.
#[derive(Clone, Copy, Debug)]
pub(super) struct TenantClock {
    time_scale: f64,
    start_ns: u64,
    /// Time in the trace that is the tenant's start: that of its first record, unless set.
    origin_ns: Option<u64>,
    latest_ns: u64,
    out_of_order: u64,
}

impl TenantClock {
    /// A trace whose times are multiplied by `time_scale`, from `start` on. Errors: a factor that
    /// is not accepted.
    pub fn new(time_scale: f64, start: Nanos) -> Result<TenantClock, TraceError> {
        if !TIME_SCALES.contains(&time_scale) {
            return Err(refused(time_scale, "a number from 1e-9 to 1e9 (2.0 lasts twice as long)"));
        }
        let (start_ns, origin_ns) = (start.0, None);
        Ok(TenantClock { time_scale, start_ns, origin_ns, latest_ns: 0, out_of_order: 0 })
    }

    /// Moves the tenant's start to so much later. Errors: a start beyond [`LATEST_NS`].
    pub fn begin(&mut self, begin_ns: u64) -> Result<(), TraceError> {
        self.start_ns = self.start_ns.saturating_add(begin_ns);
        if begin_ns > 0 && self.start_ns > LATEST_NS {
            return Err(TraceError::Option {
                key: "warmup".to_owned(),
                found: format!("a history after which a trace begins at {} ns", self.start_ns),
                expected: "a trace that begins within 292 years".to_owned(),
            });
        }
        Ok(())
    }

    /// Time in the trace that is the tenant's start.
    pub fn origin_ns(&self) -> Option<u64> {
        self.origin_ns
    }

    /// Makes another time of the trace the tenant's start.
    pub fn set_origin(&mut self, origin_ns: u64) {
        self.origin_ns = Some(origin_ns);
    }

    /// The earliest of the times is the tenant's start, unless an earlier one is.
    pub fn include(&mut self, times: &[u64]) {
        let earliest = times.iter().min().copied();
        self.origin_ns = match (self.origin_ns, earliest) {
            (Some(so_far), Some(earliest)) => Some(so_far.min(earliest)),
            (so_far, earliest) => so_far.or(earliest),
        };
    }

    /// Times that ran backwards.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Counts the times that run backwards, of a trace that will be sorted.
    pub fn count_late(&mut self, times: &[u64]) {
        let (mut latest_ns, mut late) = (0, 0);
        for time_ns in times {
            late += u64::from(*time_ns < latest_ns);
            latest_ns = latest_ns.max(*time_ns);
        }
        self.out_of_order = late;
    }

    /// Puts a batch's times on the workload's clock, moving up those that run backwards. Errors:
    /// a scale that puts a request beyond [`LATEST_NS`].
    pub fn order_times(&mut self, batch: &mut Batch) -> Result<(), TraceError> {
        let origin_ns = self.origin_ns.unwrap_or(0);
        let times = &mut batch.time_ns;
        // The common case, in loops without dependencies: in order, at the trace's own speed.
        let first = times.first().copied().unwrap_or(self.latest_ns);
        if self.time_scale == 1.0 && first >= self.latest_ns && times.is_sorted() {
            self.latest_ns = times.last().copied().unwrap_or(self.latest_ns);
            for time_ns in times {
                *time_ns = self.start_ns.saturating_add(time_ns.saturating_sub(origin_ns));
            }
            return Ok(());
        }
        for call in &mut batch.calls {
            call.pause_ns = (call.pause_ns as f64 * self.time_scale).round() as u64;
        }
        for time_ns in &mut *times {
            self.out_of_order += u64::from(*time_ns < self.latest_ns);
            self.latest_ns = self.latest_ns.max(*time_ns);
            let since = self.latest_ns.saturating_sub(origin_ns);
            let scaled = if self.time_scale == 1.0 {
                since
            } else {
                (since as f64 * self.time_scale).round() as u64
            };
            *time_ns = self.start_ns.saturating_add(scaled);
        }
        match times.last() {
            Some(last_ns) if self.time_scale != 1.0 && *last_ns > LATEST_NS => {
                Err(refused(self.time_scale, "a factor that puts every request within 292 years"))
            }
            _ => Ok(()),
        }
    }
}

fn refused(time_scale: f64, expected: &str) -> TraceError {
    TraceError::Option {
        key: "time_scale".to_owned(),
        found: format!("{time_scale:e}"),
        expected: expected.to_owned(),
    }
}

/// Bytes of a volume that are in a sample together: neighbours stay neighbours.
const SAMPLED_CHUNK_BYTES: u64 = 1 << 20;

/// What a tenant takes of its trace.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// Only these volumes, if any are named.
    volume: Option<VolumeChoice>,
    /// What every read and write becomes; then nothing else is taken.
    operation: Option<Op>,
    /// Share of the volume's chunks.
    sample: f64,
}

/// The volumes that a text names: one, or several with commas. Names of volumes may have commas
/// themselves (`8,0` is a device of blktrace): what stands between any two commas is a name.
#[derive(Clone, Debug)]
pub struct VolumeChoice {
    text: String,
    parts: Vec<String>,
    /// Whether a volume of the trace has each part in its name.
    met: Vec<bool>,
    /// Whether each volume of the trace is chosen, by number.
    chosen: Vec<bool>,
}

impl VolumeChoice {
    /// What `text` names.
    pub fn new(text: &str) -> VolumeChoice {
        let parts: Vec<String> = text.split(',').map(|part| part.trim().to_owned()).collect();
        let met = vec![false; parts.len()];
        VolumeChoice { text: text.to_owned(), parts, met, chosen: Vec::new() }
    }

    /// Which volumes are chosen, by number, of those met so far.
    pub fn among(&mut self, volumes: &[String]) -> &[bool] {
        for name in &volumes[self.chosen.len()..] {
            let own: Vec<&str> = name.split(',').map(str::trim).collect();
            let mut chosen = *name == self.text;
            self.met.iter_mut().for_each(|met| *met |= chosen);
            for start in 0..=self.parts.len().saturating_sub(own.len()) {
                let end = (start + own.len()).min(self.parts.len());
                if self.parts[start..end].iter().map(String::as_str).eq(own.iter().copied()) {
                    chosen = true;
                    self.met[start..end].fill(true);
                }
            }
            self.chosen.push(chosen);
        }
        &self.chosen
    }

    /// The trace has ended. Errors: a volume that it has not, and the nearest that it has.
    pub fn refuse_unknown(&mut self, volumes: &[String]) -> Result<(), TraceError> {
        self.among(volumes);
        let Some(part) = self.met.iter().position(|met| !met) else { return Ok(()) };
        let is_any_met = self.met.contains(&true);
        let name = if is_any_met { &self.parts[part] } else { &self.text };
        let expected = match nearest(name, volumes.iter().map(String::as_str)) {
            Some(near) => format!("a volume of the trace; nearest is `{near}`"),
            None => {
                let some: Vec<&str> = volumes.iter().map(String::as_str).take(20).collect();
                format!("a volume of the trace (it has {}: {})", volumes.len(), some.join(", "))
            }
        };
        Err(TraceError::Option { key: "volume".to_owned(), found: name.clone(), expected })
    }
}

impl Selection {
    /// See [`TenantInput`].
    pub fn new(volume: Option<String>, operation: Option<Op>, sample: f64) -> Selection {
        let volume = volume.map(|text| VolumeChoice::new(&text));
        Selection { volume, operation, sample }
    }

    /// Whether every record is taken.
    pub fn takes_all(&self) -> bool {
        self.volume.is_none() && self.operation.is_none() && self.sample >= 1.0
    }

    /// Keeps, of a batch from `start` on, what the tenant takes; `volumes` are those met so far.
    pub fn choose(&mut self, batch: &mut Batch, start: usize, volumes: &[String]) {
        self.choose_volume(batch, start, volumes);
        self.choose_sample(batch, start);
        self.turn(batch, start);
    }

    /// Keeps the records of the chosen volumes.
    fn choose_volume(&mut self, batch: &mut Batch, start: usize, volumes: &[String]) {
        let Some(choice) = &mut self.volume else { return };
        let chosen = choice.among(volumes);
        keep(batch, start, |record| chosen[record.volume as usize]);
    }

    /// Keeps the requests that begin in chunks of the sample. A hash of a chunk's number decides,
    /// the same in every run. A flush has no place and stays.
    fn choose_sample(&self, batch: &mut Batch, start: usize) {
        if self.sample >= 1.0 {
            return;
        }
        let max_hash = (self.sample * u64::MAX as f64) as u64;
        let chosen = |record: &Record| {
            record.op == Op::Flush || mix(record.offset_bytes / SAMPLED_CHUNK_BYTES) < max_hash
        };
        keep(batch, start, chosen);
    }

    /// Turns reads and writes into the tenant's operation, if it has one, and drops the rest.
    fn turn(&self, batch: &mut Batch, start: usize) {
        let Some(operation) = self.operation else { return };
        keep(batch, start, |record| matches!(record.op, Op::Read | Op::Write));
        batch.op[start..].fill(operation);
    }

    /// The trace has ended. Errors: a volume that it has not, and the nearest that it has.
    pub fn refuse_unknown_volume(&mut self, volumes: &[String]) -> Result<(), TraceError> {
        self.volume.as_mut().map_or(Ok(()), |choice| choice.refuse_unknown(volumes))
    }
}

/// Keeps the records from `start` on that are `wanted`.
fn keep(batch: &mut Batch, start: usize, wanted: impl Fn(&Record) -> bool) {
    let mut kept = start;
    for index in start..batch.len() {
        let record = batch.get(index);
        if wanted(&record) {
            batch.time_ns[kept] = record.time_ns;
            batch.offset_bytes[kept] = record.offset_bytes;
            batch.length_bytes[kept] = record.length_bytes;
            batch.op[kept] = record.op;
            batch.volume[kept] = record.volume;
            if let Some(call) = batch.calls.get(index).copied() {
                batch.calls[kept] = call;
            }
            kept += 1;
        }
    }
    truncate(batch, kept);
}

/// Drops the records of a batch beyond the first `len`.
pub(super) fn truncate(batch: &mut Batch, len: usize) {
    batch.time_ns.truncate(len);
    batch.offset_bytes.truncate(len);
    batch.length_bytes.truncate(len);
    batch.op.truncate(len);
    batch.volume.truncate(len);
    batch.calls.truncate(len);
}

/// Pieces made at a time.
const PIECES: usize = 1 << 13;

/// Cuts long reads and writes into shorter ones, for tenants that send blocks of one size whatever
/// their trace has. Pieces end at addresses that are multiples of the size, as blocks of a cache
/// do, and keep the time of their request; trims and flushes stay whole. Only so many pieces are
/// made at a time, so that a long request costs no memory.
pub(super) struct RequestCutter {
    size_bytes: u64,
    whole: Batch,
    /// The request at hand, and how much of it has been given.
    index: usize,
    given_bytes: u64,
}

impl RequestCutter {
    /// Pieces of at most `size_bytes`, which is at least 1.
    pub(super) fn new(size_bytes: u64) -> RequestCutter {
        RequestCutter {
            size_bytes: size_bytes.max(1),
            whole: Batch::default(),
            index: 0,
            given_bytes: 0,
        }
    }

    /// Takes all requests of `batch`, which is empty then; what was there has been given.
    pub(super) fn take(&mut self, batch: &mut Batch) {
        self.whole.clear();
        std::mem::swap(&mut self.whole, batch);
        (self.index, self.given_bytes) = (0, 0);
    }

    /// Whether all pieces have been given.
    pub(super) fn is_empty(&self) -> bool {
        self.index >= self.whole.len()
    }

    /// Puts the next pieces into `batch`, which is empty.
    pub(super) fn give(&mut self, batch: &mut Batch) {
        while batch.len() < PIECES && !self.is_empty() {
            let record = self.whole.get(self.index);
            let piece = self.piece(record);
            batch.push(piece);
            let call = self.whole.calls.get(self.index).copied();
            // The pause is before the first piece.
            batch.calls.extend(call.map(|call| match self.given_bytes {
                0 => call,
                _ => Call { pause_ns: 0, ..call },
            }));
            self.given_bytes += piece.length_bytes;
            if self.given_bytes >= record.length_bytes {
                (self.index, self.given_bytes) = (self.index + 1, 0);
            }
        }
    }

    fn piece(&self, record: Record) -> Record {
        if !matches!(record.op, Op::Read | Op::Write) {
            return record;
        }
        let offset_bytes = record.offset_bytes.saturating_add(self.given_bytes);
        let to_border = self.size_bytes - offset_bytes % self.size_bytes;
        let length_bytes = to_border.min(record.length_bytes - self.given_bytes);
        Record { offset_bytes, length_bytes, ..record }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leading_times_are_counted_wherever_they_end() {
        let times: Vec<u64> = (0..70).collect();
        for (len, until) in (0..70).flat_map(|len| (0..72).map(move |until| (len, until))) {
            let expected = len.min(until as usize);
            assert_eq!(count_leading(&times[..len], |time_ns| time_ns < until), expected);
        }
    }

    /// Pieces end at multiples of the size, keep the time of their request, and together are the
    /// request; other operations and empty requests stay whole.
    #[test]
    fn long_requests_are_cut_at_multiples_of_a_size() {
        let record = |(time_ns, offset_bytes, length_bytes, op)| Record {
            time_ns,
            offset_bytes,
            length_bytes,
            op,
            volume: 3,
        };
        let long = 10 * (PIECES as u64 + 9);
        let whole = [
            (5, 7, 20, Op::Read),
            (6, 0, 25, Op::Trim),
            (7, 30, 0, Op::Write),
            (8, 10, 10, Op::Write),
            (9, 100, long, Op::Read),
        ];
        let mut batch = Batch::default();
        whole.map(record).into_iter().for_each(|one| batch.push(one));
        batch.calls = (1..=5).map(|pause_ns| Call { process: 9, pause_ns }).collect();
        let mut cut = RequestCutter::new(10);
        cut.take(&mut batch);
        let (mut pieces, mut calls) = (Vec::<Record>::new(), Vec::new());
        while !cut.is_empty() {
            batch.clear();
            cut.give(&mut batch);
            assert!(batch.len() <= PIECES);
            pieces.extend(batch.iter());
            calls.append(&mut batch.calls);
        }
        let pauses: Vec<u64> = calls.iter().map(|call| call.pause_ns).collect();
        assert_eq!((pauses.len(), &pauses[..6]), (pieces.len(), &[1, 0, 0, 2, 3, 4][..]));
        let first = [
            (5, 7, 3, Op::Read),
            (5, 10, 10, Op::Read),
            (5, 20, 7, Op::Read),
            (6, 0, 25, Op::Trim),
            (7, 30, 0, Op::Write),
            (8, 10, 10, Op::Write),
        ];
        assert_eq!(pieces[..6], first.map(record));
        assert_eq!(pieces.len(), 6 + PIECES + 9);
        let rest = |index: usize| record((9, 100 + 10 * index as u64, 10, Op::Read));
        assert!(pieces[6..].iter().enumerate().all(|(index, piece)| *piece == rest(index)));
    }
}
