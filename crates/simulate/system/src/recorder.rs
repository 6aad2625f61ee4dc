//! Turns requests into block accesses in memory.
//!
//! For: splitting requests into blocks and interning them. Must never know: caches. Units: bytes,
//! blocks.

use crate::extents::Gathered;
use crate::machines::Requests;
use crate::record_error::RecordError;
use crate::recording::{LAST, Recording, TRIM, TenantTotals, WRITE};
use crate::volumes::Volumes;
use cachewright_trace::intern::{InternError, Interner};
use cachewright_trace::merge::{Workload, WorkloadBatch};
use cachewright_types::{Op, block_bytes, whole_block_numbers};
use std::ops::Range;

/// Requests decoded at a time.
const BATCH: usize = 8192;
/// Most requests for which room is made before they are read.
const RESERVED: u64 = 1 << 27;

/// What a request's address range becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Every block of `1 << shift` bytes that the request touches.
    Split {
        /// log2 of the block size in bytes.
        shift: u32,
    },
    /// One block per request, named by the request's first byte whatever its length.
    Unit,
}

/// Turns requests into a [`Recording`].
pub struct Recorder {
    kind: BlockKind,
    interner: Interner,
    volumes: Volumes,
    /// The per-tenant id of each id; unused with one tenant.
    local_of: Vec<u32>,
    limit: u64,
    /// Block numbers of the requests being added, and how many each has.
    blocks: Vec<u64>,
    counts: Vec<u32>,
    columns: RecordedColumns,
    extents: Option<Gathered>,
    recording: Recording,
}

/// What is recorded beside ids and flags.
#[derive(Clone, Copy)]
struct RecordedColumns {
    trims: bool,
    times: bool,
    bytes: bool,
    calls: bool,
}

impl Recorder {
    /// An empty recording of at most `limit` block accesses (at most 2^32 - 2); trims are left out
    /// unless `trims`.
    pub fn new(tenants: usize, kind: BlockKind, trims: bool, limit: u64) -> Recorder {
        let recording = Recording {
            plain: true,
            totals: vec![TenantTotals::default(); tenants],
            ..Recording::default()
        };
        Recorder {
            kind,
            interner: Interner::with_addresses(),
            volumes: Volumes::new(tenants),
            local_of: Vec::new(),
            limit: limit.min(u64::from(u32::MAX - 1)),
            blocks: Vec::new(),
            counts: Vec::new(),
            columns: RecordedColumns { trims, times: true, bytes: false, calls: false },
            extents: None,
            recording,
        }
    }

    /// The same without times: for replays that cut nothing by time. Saves 8 bytes per request.
    pub fn without_times(self) -> Recorder {
        Recorder { columns: RecordedColumns { times: false, ..self.columns }, ..self }
    }

    /// The same without keys: for replays in which nothing samples blocks. Saves 8 bytes per
    /// distinct block, and 12 while recording.
    pub fn without_keys(self) -> Recorder {
        Recorder { interner: Interner::new(), ..self }
    }

    /// The same with the bytes of each access: for signals that count them. Costs 4 bytes per
    /// access.
    pub fn with_bytes(self) -> Recorder {
        Recorder { columns: RecordedColumns { bytes: true, ..self.columns }, ..self }
    }

    /// The same with times and extents of requests: for policies that hear of them. Costs 16 bytes
    /// per request.
    pub fn with_requests(self) -> Recorder {
        let shift = if let BlockKind::Split { shift } = self.kind { shift } else { 0 };
        let columns = RecordedColumns { times: true, ..self.columns };
        Recorder { columns, extents: Some(Gathered::new(shift)), ..self }
    }

    /// The same with times, and the process and pause of each request. Costs 16 bytes per request.
    pub fn with_calls(self) -> Recorder {
        Recorder { columns: RecordedColumns { times: true, calls: true, ..self.columns }, ..self }
    }

    /// Records a whole workload; `progress` is told the requests read so far and stops the
    /// recording by returning false.
    pub fn record(
        mut self,
        workload: &mut Workload,
        progress: impl FnMut(u64) -> bool,
    ) -> Result<Recording, RecordError> {
        self.read(workload, |_| Ok(()), progress)?;
        Ok(self.finish())
    }

    /// The same, with the requests themselves, which are not placed yet, from the same pass.
    pub fn record_requests(
        mut self,
        workload: &mut Workload,
        progress: impl FnMut(u64) -> bool,
    ) -> Result<(Recording, Requests), RecordError> {
        let (trims, limit) = (self.columns.trims, self.limit);
        let mut requests = Requests::default();
        self.read(workload, |batch| requests.add(batch, trims, limit), progress)?;
        requests.set_spaces(workload.spaces().len());
        Ok((self.finish(), requests))
    }

    /// Reads a workload to its end; `also` takes every batch as well.
    fn read(
        &mut self,
        workload: &mut Workload,
        mut also: impl FnMut(&WorkloadBatch) -> Result<(), RecordError>,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<(), RecordError> {
        if let Some(hint) = workload.requests_hint() {
            let count = hint.min(self.limit).min(RESERVED) as usize;
            self.recording.ids.reserve(count);
            self.recording.flags.reserve(count);
            if self.columns.times {
                self.recording.times_ns.reserve(count);
            }
        }
        let mut batch = WorkloadBatch::default();
        let mut requests = 0;
        loop {
            batch.clear();
            let count = workload.read(&mut batch, BATCH)?;
            if count == 0 {
                return Ok(());
            }
            self.add(&batch).map_err(|(tenant, error)| match error {
                Some(source) => RecordError::Intern {
                    tenant: workload.tenants()[usize::from(tenant)].clone(),
                    source,
                },
                None => RecordError::TooLong { limit: self.limit },
            })?;
            also(&batch)?;
            requests += count as u64;
            if !progress(requests) {
                return Err(RecordError::Cancelled);
            }
        }
    }

    /// Adds a batch. Errors: the tenant and why its block got no id (nothing: too many accesses).
    fn add(&mut self, batch: &WorkloadBatch) -> Result<(), (u16, Option<InternError>)> {
        let mut index = 0;
        while index < batch.len() {
            let (op, tenant) = (batch.op[index], batch.tenant[index]);
            if matches!(op, Op::Read | Op::Write) {
                let end = run_end(batch, index);
                self.data(batch, index..end)?;
                index = end;
                continue;
            }
            let totals = &mut self.recording.totals[usize::from(tenant)];
            totals.requests[op as usize] += 1;
            totals.bytes[op as usize] += batch.length_bytes[index];
            totals.last_ns = batch.time_ns[index];
            if op == Op::Trim && self.columns.trims {
                self.trim(batch, index).map_err(|()| (tenant, None))?;
            }
            index += 1;
        }
        Ok(())
    }

    /// Adds reads and writes of one space, all their blocks interned together.
    fn data(
        &mut self,
        batch: &WorkloadBatch,
        range: Range<usize>,
    ) -> Result<(), (u16, Option<InternError>)> {
        let (tenant, space) = (batch.tenant[range.start], batch.space[range.start]);
        self.volumes.open(tenant, space);
        let before = self.recording.ids.len();
        let max_blocks = self.limit.saturating_sub(before as u64);
        let single = self.expand(batch, range.clone(), max_blocks).ok_or((tenant, None))?;
        let blocks = self.blocks.len();
        if self.columns.bytes {
            self.measure(batch, range.clone());
        }
        if let Some(extents) = &mut self.extents {
            extents.add(batch, range.clone(), true);
        }
        if self.columns.calls {
            self.recording.add_calls(batch, range.clone());
        }
        let out = &mut self.recording;
        self.interner
            .intern_batch(space, &self.blocks, &mut out.ids)
            .map_err(|error| (tenant, Some(error)))?;
        if self.columns.times {
            out.times_ns.extend_from_slice(&batch.time_ns[range.clone()]);
        }
        if !single && out.starts.is_empty() {
            out.starts.extend(0..before as u32);
        }
        let writes = batch.op[range.clone()].iter().filter(|op| **op == Op::Write).count();
        out.plain &= single && writes == 0;
        if single && out.starts.is_empty() {
            let flag = |op: &Op| if *op == Op::Write { WRITE | LAST } else { LAST };
            out.flags.extend(batch.op[range.clone()].iter().map(flag));
        } else {
            let mut start = before as u32;
            for (index, count) in range.clone().zip(&self.counts) {
                out.starts.push(start);
                start += count;
                let flag = if batch.op[index] == Op::Write { WRITE } else { 0 };
                out.flags.resize(start as usize - 1, flag);
                out.flags.push(flag | LAST);
            }
        }
        let totals = &mut out.totals[usize::from(tenant)];
        totals.block_accesses += blocks as u64;
        totals.last_ns = batch.time_ns[range.end - 1];
        totals.requests[Op::Write as usize] += writes as u64;
        totals.requests[Op::Read as usize] += (range.len() - writes) as u64;
        let lengths = &batch.length_bytes[range.clone()];
        let all: u64 = lengths.iter().sum();
        let of_write = |(op, length): (&Op, &u64)| if *op == Op::Write { *length } else { 0 };
        let written: u64 =
            if writes == 0 { 0 } else { batch.op[range].iter().zip(lengths).map(of_write).sum() };
        totals.bytes[Op::Write as usize] += written;
        totals.bytes[Op::Read as usize] += all - written;
        self.attribute(tenant, before);
        Ok(())
    }

    /// Puts the blocks that requests touch into `blocks` and, unless each touches one, how many
    /// into `counts`; returns whether each touches one, nothing when there are more than
    /// `max_blocks`.
    fn expand(
        &mut self,
        batch: &WorkloadBatch,
        range: Range<usize>,
        max_blocks: u64,
    ) -> Option<bool> {
        self.blocks.clear();
        self.counts.clear();
        let offsets = &batch.offset_bytes[range.clone()];
        let shift = match self.kind {
            BlockKind::Unit => {
                self.blocks.extend_from_slice(offsets);
                self.counts.resize(range.len(), 1);
                return (range.len() as u64 <= max_blocks).then_some(true);
            }
            BlockKind::Split { shift } => shift,
        };
        for (offset, length) in offsets.iter().zip(&batch.length_bytes[range.clone()]) {
            let (first, last) =
                (offset >> shift, offset.saturating_add((*length).max(1) - 1) >> shift);
            let count = last - first + 1;
            if self.blocks.len() as u64 + count > max_blocks {
                return None;
            }
            self.blocks.extend(first..=last);
            self.counts.push(count as u32);
        }
        Some(self.blocks.len() == range.len())
    }

    /// Adds the bytes of each access of reads and writes.
    fn measure(&mut self, batch: &WorkloadBatch, range: Range<usize>) {
        let out = &mut self.recording.bytes;
        for row in range {
            let (offset, length) = (batch.offset_bytes[row], batch.length_bytes[row]);
            match self.kind {
                BlockKind::Unit => out.push(u32::try_from(length.max(1)).unwrap_or(u32::MAX)),
                BlockKind::Split { shift } => out.extend(block_bytes(offset, length, shift)),
            }
        }
    }

    /// Adds a trim of the known blocks that lie wholly inside it. Errors: too many accesses.
    fn trim(&mut self, batch: &WorkloadBatch, index: usize) -> Result<(), ()> {
        let (offset, length) = (batch.offset_bytes[index], batch.length_bytes[index]);
        let out = &mut self.recording;
        let before = out.ids.len();
        match self.kind {
            BlockKind::Unit => out.ids.extend(self.interner.get(batch.space[index], offset)),
            BlockKind::Split { shift } => {
                let whole = whole_block_numbers(offset, length, shift);
                let count = whole.end - whole.start;
                self.interner.get_range(batch.space[index], whole.start, count, &mut out.ids);
            }
        }
        let blocks = out.ids.len() - before;
        if out.ids.len() as u64 > self.limit {
            return Err(());
        }
        if blocks == 0 {
            return Ok(());
        }
        if blocks > 1 && out.starts.is_empty() {
            out.starts.extend(0..before as u32);
        }
        if blocks > 1 || !out.starts.is_empty() {
            out.starts.push(before as u32);
        }
        if self.columns.times {
            out.times_ns.push(batch.time_ns[index]);
        }
        if let Some(extents) = &mut self.extents {
            extents.add(batch, index..index + 1, false);
        }
        if self.columns.calls {
            out.add_calls(batch, index..index + 1);
        }
        out.flags.resize(before + blocks - 1, TRIM);
        out.flags.push(TRIM | LAST);
        out.plain = false;
        if self.columns.bytes {
            out.bytes.resize(out.ids.len(), 0);
        }
        self.attribute(batch.tenant[index], before);
        Ok(())
    }

    /// Gives the accesses from `before` on to a tenant, with per-tenant ids.
    fn attribute(&mut self, tenant: u16, before: usize) {
        let out = &mut self.recording;
        if out.totals.len() == 1 {
            return;
        }
        out.tenants.resize(out.ids.len(), tenant);
        let totals = &mut out.totals[usize::from(tenant)];
        for id in &out.ids[before..] {
            if *id as usize == self.local_of.len() {
                self.local_of.push(totals.distinct_blocks);
                totals.distinct_blocks += 1;
            }
            out.locals.push(self.local_of[*id as usize]);
        }
    }

    fn finish(mut self) -> Recording {
        self.recording.distinct = self.interner.distinct();
        if let [only] = self.recording.totals.as_mut_slice() {
            only.distinct_blocks = self.recording.distinct;
        }
        if let Some((spaces, blocks)) = self.interner.into_addresses() {
            self.recording.keys =
                spaces.into_iter().zip(blocks).map(|block| self.volumes.key(block)).collect();
        }
        self.recording.extents = self.extents.map(Gathered::settle).unwrap_or_default();
        self.recording
    }
}

/// The end of the run of reads and writes of one space that starts at `start`.
fn run_end(batch: &WorkloadBatch, start: usize) -> usize {
    let space = batch.space[start];
    let same = |index: &usize| {
        batch.space[*index] == space && matches!(batch.op[*index], Op::Read | Op::Write)
    };
    (start..batch.len()).take_while(same).last().map_or(start, |last| last + 1)
}
