//! One tenant's trace on the workload's clock.
//!
//! For: opening, selecting a volume, shifting and scaling times, ordering. Must never know: the
//! other tenants. Units: nanoseconds, bytes. The trace's first record (of any volume) is its time
//! zero unless the workload sets another. Volumes of one trace given to several tenants therefore
//! stay in step.

use super::cut::RequestCutter;
use super::{SharedSpace, WorkloadBatch};
use crate::formats::registry::open;
use crate::{Batch, Call, OpenOptions, Record, Skipped, TraceError, TraceReader};
use cachewright_types::seed::mix;
use cachewright_types::{Nanos, Op, nearest};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;

/// Requests read from a trace at a time.
const CHUNK: usize = 1 << 13;
/// Bytes of a volume that are in a sample together: neighbours stay neighbours.
const SAMPLED_CHUNK_BYTES: u64 = 1 << 20;
const UNSEEN: u32 = u32::MAX;

/// Where a tenant's requests come from.
pub enum TenantSource {
    /// A file and how to read it.
    Path(PathBuf, OpenOptions),
    /// Something already open.
    Reader(Box<dyn TraceReader>),
}

/// Factors on a trace's times that are accepted.
pub const TIME_SCALES: RangeInclusive<f64> = 1e-9..=1e9;
/// No request is later on the workload's clock: some 292 years.
const LATEST_NS: u64 = 1 << 63;

/// Where a tenant's requests end before its trace does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
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
    /// Take only this volume of the trace; nothing means all of them.
    pub volume: Option<String>,
    /// Factor on the trace's times: 2.0 makes it last twice as long, 0.5 half as long.
    pub time_scale: f64,
    /// When the trace begins on the workload's clock.
    pub start: Nanos,
    /// Where it ends; nothing takes the whole trace.
    pub stop: Option<Stop>,
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

/// A tenant's trace being read.
pub(super) struct Input {
    reader: Box<dyn TraceReader>,
    volume: Option<String>,
    operation: Option<Op>,
    sample: f64,
    cut: Option<RequestCutter>,
    sort: bool,
    time_scale: f64,
    start_ns: u64,
    /// The first time that is too late.
    stop_ns: u64,
    /// Requests that may still be given.
    left: u64,
    /// Time in the trace that is the tenant's start: that of its first record, unless set.
    origin_ns: Option<u64>,
    /// What is buffered is as the trace has it: neither chosen nor on the workload's clock.
    raw: bool,
    latest_ns: u64,
    out_of_order: u64,
    requests_hint: Option<u64>,
    /// Read and not yet taken, from `next` on; times are the workload's.
    buffer: Batch,
    next: usize,
    matched: bool,
    /// Space of each volume, [`UNSEEN`] for those not met.
    spaces: Vec<u32>,
}

impl Input {
    /// Opens the trace and reads its first requests, all of them when they are to be sorted.
    pub(super) fn open(tenant: TenantInput) -> Result<Input, TraceError> {
        if !TIME_SCALES.contains(&tenant.time_scale) {
            return Err(TraceError::Option {
                key: "time_scale".to_owned(),
                found: format!("{:e}", tenant.time_scale),
                expected: "a number from 1e-9 to 1e9 (2.0 lasts twice as long)".to_owned(),
            });
        }
        let reader = match tenant.source {
            TenantSource::Path(path, options) => open(&path, &options)?,
            TenantSource::Reader(reader) => reader,
        };
        let (stop_ns, left) = match tenant.stop {
            None => (u64::MAX, u64::MAX),
            Some(Stop::At(time)) => (time.0, u64::MAX),
            Some(Stop::After(requests)) => (u64::MAX, requests),
            Some(Stop::First(time, requests)) => (time.0, requests),
        };
        let all = tenant.volume.is_none() && tenant.operation.is_none() && tenant.sample >= 1.0;
        let known = all && stop_ns == u64::MAX && tenant.request_bytes.is_none();
        let hint = if known { reader.requests_hint().map(|hint| hint.min(left)) } else { None };
        let mut input = Input {
            reader,
            volume: tenant.volume,
            operation: tenant.operation,
            sample: tenant.sample,
            cut: tenant.request_bytes.map(RequestCutter::new),
            sort: tenant.sort,
            time_scale: tenant.time_scale,
            start_ns: tenant.start.0,
            stop_ns,
            left,
            origin_ns: None,
            raw: true,
            latest_ns: 0,
            out_of_order: 0,
            requests_hint: hint,
            buffer: Batch::default(),
            next: 0,
            matched: false,
            spaces: Vec::new(),
        };
        if tenant.sort {
            input.read_sorted()?;
        } else {
            input.reader.read(&mut input.buffer, CHUNK)?;
            input.origin_ns = input.buffer.time_ns.first().copied();
        }
        Ok(input)
    }

    /// Time in the trace at which it begins; nothing for an empty one.
    pub(super) fn origin_ns(&self) -> Option<u64> {
        self.origin_ns
    }

    /// Makes another time of the trace the tenant's start; before the first [`head`](Self::head).
    pub(super) fn set_origin(&mut self, origin_ns: u64) {
        self.origin_ns = Some(origin_ns);
    }

    /// Time of the next request; nothing at the end.
    pub(super) fn head(&mut self) -> Result<Option<u64>, TraceError> {
        while self.raw || self.next >= self.buffer.len() {
            if !self.raw {
                self.buffer.clear();
                self.next = 0;
                if self.left > 0 && self.more_pieces() {
                    continue;
                }
                if self.left > 0 {
                    self.reader.read(&mut self.buffer, CHUNK)?;
                }
            }
            self.raw = false;
            if self.left == 0 {
                self.buffer.clear();
                return Ok(None);
            }
            if self.buffer.is_empty() {
                self.refuse_unknown_volume()?;
                return Ok(None);
            }
            if !self.sort {
                self.select(0);
                self.sample(0);
                self.turn(0);
            }
            self.order_times()?;
            if let Some(cut) = &mut self.cut {
                cut.take(&mut self.buffer);
                cut.give(&mut self.buffer);
            }
            self.stop();
        }
        Ok(self.buffer.time_ns.get(self.next).copied())
    }

    /// Buffers the next pieces of requests that are cut; returns whether there were any.
    fn more_pieces(&mut self) -> bool {
        let Some(cut) = self.cut.as_mut().filter(|cut| !cut.is_empty()) else { return false };
        cut.give(&mut self.buffer);
        self.stop();
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
            Some(until) => times.partition_point(|time_ns| (*time_ns, tenant) < until),
        };
        let range = self.next..self.next + due.min(max);
        self.next = range.end;
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
                *space = spaces.len() as u32;
                let volume = self.reader.volumes()[volume as usize].clone();
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

    pub(super) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    pub(super) fn requests_hint(&self) -> Option<u64> {
        self.requests_hint
    }

    /// Keeps, of the buffer from `start` on, the records of the chosen volume.
    fn select(&mut self, start: usize) {
        let Some(name) = &self.volume else {
            self.matched = true;
            return;
        };
        let Some(chosen) = self.reader.volumes().iter().position(|volume| volume == name) else {
            truncate(&mut self.buffer, start);
            return;
        };
        let kept = keep(&mut self.buffer, start, |record| record.volume as usize == chosen);
        self.matched |= kept > start;
    }

    /// Keeps the requests of the buffer, from `start` on, that begin in chunks of the sample. A
    /// hash of a chunk's number decides, the same in every run. A flush has no place and stays.
    fn sample(&mut self, start: usize) {
        if self.sample >= 1.0 {
            return;
        }
        let max_hash = (self.sample * u64::MAX as f64) as u64;
        let chosen = |record: &Record| {
            record.op == Op::Flush || mix(record.offset_bytes / SAMPLED_CHUNK_BYTES) < max_hash
        };
        keep(&mut self.buffer, start, chosen);
    }

    /// Turns, of the buffer from `start` on, reads and writes into the tenant's operation, if it
    /// has one, and drops the rest.
    fn turn(&mut self, start: usize) {
        let Some(operation) = self.operation else { return };
        keep(&mut self.buffer, start, |record| matches!(record.op, Op::Read | Op::Write));
        self.buffer.op[start..].fill(operation);
    }

    /// Puts the buffer's times on the workload's clock, moving up those that run backwards. Errors:
    /// a scale that puts a request beyond [`LATEST_NS`].
    fn order_times(&mut self) -> Result<(), TraceError> {
        let origin_ns = self.origin_ns.unwrap_or(0);
        let times = &mut self.buffer.time_ns;
        // The common case, in loops without dependencies: in order, at the trace's own speed.
        let first = times.first().copied().unwrap_or(self.latest_ns);
        if self.time_scale == 1.0 && first >= self.latest_ns && times.is_sorted() {
            self.latest_ns = times.last().copied().unwrap_or(self.latest_ns);
            for time_ns in times {
                *time_ns = self.start_ns.saturating_add(time_ns.saturating_sub(origin_ns));
            }
            return Ok(());
        }
        for call in &mut self.buffer.calls {
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
                Err(TraceError::Option {
                    key: "time_scale".to_owned(),
                    found: format!("{:e}", self.time_scale),
                    expected: "a factor that puts every request within 292 years".to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Drops what is buffered beyond the tenant's end, and with it the rest of the trace.
    fn stop(&mut self) {
        let buffered = self.buffer.len();
        let early = self.buffer.time_ns.partition_point(|time_ns| *time_ns < self.stop_ns);
        let kept = early.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left = if kept < buffered { 0 } else { self.left - kept as u64 };
        truncate(&mut self.buffer, kept);
    }

    /// Reads the whole trace into the buffer, chooses from it and sorts it; equal times keep the
    /// file's order.
    fn read_sorted(&mut self) -> Result<(), TraceError> {
        loop {
            let start = self.buffer.len();
            if self.reader.read(&mut self.buffer, CHUNK)? == 0 {
                break;
            }
            let earliest = self.buffer.time_ns[start..].iter().min().copied();
            self.origin_ns = match (self.origin_ns, earliest) {
                (Some(so_far), Some(earliest)) => Some(so_far.min(earliest)),
                (so_far, earliest) => so_far.or(earliest),
            };
            self.select(start);
            self.sample(start);
            self.turn(start);
        }
        self.refuse_unknown_volume()?;
        let mut latest_ns = 0;
        let mut late = 0;
        for time_ns in &self.buffer.time_ns {
            late += u64::from(*time_ns < latest_ns);
            latest_ns = latest_ns.max(*time_ns);
        }
        if late > 0 {
            let mut order: Vec<usize> = (0..self.buffer.len()).collect();
            order.sort_by_key(|index| self.buffer.time_ns[*index]);
            let mut sorted = Batch::default();
            order.iter().for_each(|index| sorted.push(self.buffer.get(*index)));
            let calls = &self.buffer.calls;
            sorted.calls.extend(order.iter().filter_map(|index| calls.get(*index)));
            self.buffer = sorted;
        }
        self.out_of_order = late;
        Ok(())
    }

    fn refuse_unknown_volume(&self) -> Result<(), TraceError> {
        let Some(name) = self.volume.as_ref().filter(|_| !self.matched) else { return Ok(()) };
        let volumes = || self.reader.volumes().iter().map(String::as_str);
        let expected = match nearest(name, volumes()) {
            Some(near) => format!("a volume of the trace; nearest is `{near}`"),
            None => {
                let some: Vec<&str> = volumes().take(20).collect();
                format!("a volume of the trace (it has {}: {})", volumes().count(), some.join(", "))
            }
        };
        Err(TraceError::Option { key: "volume".to_owned(), found: name.clone(), expected })
    }
}

/// Keeps the records from `start` on that are `wanted`; returns how many there are then.
fn keep(batch: &mut Batch, start: usize, wanted: impl Fn(&Record) -> bool) -> usize {
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
    kept
}

fn truncate(batch: &mut Batch, len: usize) {
    batch.time_ns.truncate(len);
    batch.offset_bytes.truncate(len);
    batch.length_bytes.truncate(len);
    batch.op.truncate(len);
    batch.volume.truncate(len);
    batch.calls.truncate(len);
}
