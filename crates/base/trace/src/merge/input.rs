//! One tenant's trace on the workload's clock.
//!
//! For: opening, buffering, cutting and ordering requests. Must never know: the other tenants.
//! Units: nanoseconds, bytes. The trace's first record (of any volume) is its time zero unless
//! the workload sets another. Volumes of one trace given to several tenants therefore
//! stay in step.

use super::cut::RequestCutter;
use super::selection::{Selection, truncate};
use super::tenant_clock::TenantClock;
use super::tenant_input::{EarlyEnd, TenantInput, TenantSource};
use super::{SharedSpace, WorkloadBatch};
use crate::formats::registry::open;
use crate::{Batch, Call, Skipped, TraceError, TraceReader};
use hashbrown::HashMap;
use std::ops::Range;

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
}
