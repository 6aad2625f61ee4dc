//! Turns requests into block accesses.
//!
//! For: interning the blocks of requests, and one row per access of each column. Must never know:
//! caches. Units: bytes, blocks. Memory: that of distinct blocks, a batch of requests, and
//! [`HELD_BYTES`] per column; what is longer lies in scratch files.

use crate::extents::Gathered;
use crate::machines::Requests;
use crate::record_error::RecordError;
use crate::recorded_columns::RecordedColumns;
use crate::recording::{CUT_OFF, LAST, Recording, TRIM, TenantTotals, WRITE};
use crate::request_blocks::RequestBlocks;
use crate::volumes::VolumeNumbers;
use cachewright_cache::{SequentialCutoff, SequentialStreams};
use cachewright_memory::HELD_BYTES;
use cachewright_trace::intern::{InternError, Interner};
use cachewright_trace::merge::{MergedRequests, WorkloadBatch};
use cachewright_types::Op;
use std::io;
use std::ops::Range;

pub use crate::request_blocks::BlockKind;

/// Requests decoded at a time.
const BATCH: usize = 8192;
/// Requests whose first blocks are looked at together before the first is added.
const AHEAD: usize = 64;

/// Turns requests into a [`Recording`].
pub struct Recorder {
    /// The blocks of the requests being added.
    blocks: RequestBlocks,
    interner: Interner,
    volumes: VolumeNumbers,
    /// The per-tenant id of each id; unused with one tenant.
    local_of: Vec<u32>,
    limit: u64,
    wanted: WantedColumns,
    columns: RecordedColumns,
    extents: Option<Gathered>,
    /// The streams by which requests go past the cache, where some do.
    streams: Option<SequentialStreams>,
    recording: Recording,
}

/// What is recorded beside ids and flags.
#[derive(Clone, Copy)]
struct WantedColumns {
    trims: bool,
    times: bool,
    bytes: bool,
    /// The bytes of accesses once they differ.
    uneven_bytes: bool,
    calls: bool,
}

/// Why a batch could not be added.
enum AddError {
    /// A block of a tenant got no id.
    Intern(u16, InternError),
    /// Anything else.
    Record(RecordError),
}

impl From<io::Error> for AddError {
    fn from(error: io::Error) -> AddError {
        AddError::Record(error.into())
    }
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
            blocks: RequestBlocks::new(kind),
            interner: Interner::with_addresses(),
            volumes: VolumeNumbers::new(tenants),
            local_of: Vec::new(),
            limit: limit.min(u64::from(u32::MAX - 1)),
            wanted: WantedColumns {
                trims,
                times: true,
                bytes: false,
                uneven_bytes: false,
                calls: false,
            },
            columns: RecordedColumns::holding(HELD_BYTES),
            extents: None,
            streams: None,
            recording,
        }
    }

    /// The same without times: for replays that cut nothing by time. Saves 8 bytes per request.
    pub fn without_times(self) -> Recorder {
        Recorder { wanted: WantedColumns { times: false, ..self.wanted }, ..self }
    }

    /// The same without keys: for replays in which nothing samples blocks. Saves 8 bytes per
    /// distinct block, and 12 while recording.
    pub fn without_keys(self) -> Recorder {
        Recorder { interner: Interner::new(), ..self }
    }

    /// The same with the bytes of each access: for signals that count them. Costs 4 bytes per
    /// access.
    pub fn with_bytes(self) -> Recorder {
        Recorder { wanted: WantedColumns { bytes: true, ..self.wanted }, ..self }
    }

    /// The same with the bytes of accesses, for hits by bytes. Costs 4 bytes per access where they
    /// differ, and nothing where all ask for as many, as for whole blocks.
    pub fn with_uneven_bytes(self) -> Recorder {
        Recorder { wanted: WantedColumns { uneven_bytes: true, ..self.wanted }, ..self }
    }

    /// The same with times and extents of requests: for policies that hear of them. Costs 16 bytes
    /// per request.
    pub fn with_requests(self) -> Recorder {
        let wanted = WantedColumns { times: true, ..self.wanted };
        let extents = Some(Gathered::new(self.blocks.shift()));
        Recorder { wanted, extents, ..self }
    }

    /// The same with times, and the process and pause of each request. Costs 16 bytes per request.
    pub fn with_calls(self) -> Recorder {
        Recorder { wanted: WantedColumns { times: true, calls: true, ..self.wanted }, ..self }
    }

    /// The same with a note at requests that go past the cache, and the bytes of each access, by
    /// which they are counted; without a cut-off none does. Costs 4 bytes per access.
    pub fn cutting_off(self, cutoff: Option<SequentialCutoff>) -> Recorder {
        let bytes = self.wanted.bytes || cutoff.is_some();
        let wanted = WantedColumns { bytes, ..self.wanted };
        Recorder { wanted, streams: cutoff.map(SequentialStreams::new), ..self }
    }

    /// The same with at most so many bytes of each column in memory. Before anything is recorded.
    pub fn holding(self, held_bytes: usize) -> Recorder {
        Recorder { columns: RecordedColumns::holding(held_bytes), ..self }
    }

    /// Records a whole workload; `progress` is told the requests read so far and stops the
    /// recording by returning false.
    pub fn record(
        mut self,
        workload: &mut MergedRequests,
        progress: impl FnMut(u64) -> bool,
    ) -> Result<Recording, RecordError> {
        self.read(workload, |_| Ok(()), progress)?;
        self.finish()
    }

    /// The same, with the requests themselves, which are not placed yet, from the same pass.
    pub fn record_requests(
        mut self,
        workload: &mut MergedRequests,
        progress: impl FnMut(u64) -> bool,
    ) -> Result<(Recording, Requests), RecordError> {
        let (trims, limit) = (self.wanted.trims, self.limit);
        let mut requests = Requests::reserved(workload.requests_hint().unwrap_or(0));
        self.read(workload, |batch| requests.add(batch, trims, limit), progress)?;
        requests.set_spaces(workload.spaces().len());
        Ok((self.finish()?, requests))
    }

    /// Reads a workload to its end; `also` takes every batch as well.
    fn read(
        &mut self,
        workload: &mut MergedRequests,
        mut also: impl FnMut(&WorkloadBatch) -> Result<(), RecordError>,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<(), RecordError> {
        let mut batch = WorkloadBatch::default();
        let mut requests = 0;
        loop {
            batch.clear();
            let count = workload.read(&mut batch, BATCH)?;
            if count == 0 {
                self.recording.begin_ns = workload.begin_ns();
                return Ok(());
            }
            self.add(&batch).map_err(|error| match error {
                AddError::Intern(tenant, source) => RecordError::Intern {
                    tenant: workload.tenants()[usize::from(tenant)].clone(),
                    source,
                },
                AddError::Record(error) => error,
            })?;
            also(&batch)?;
            requests += count as u64;
            if !progress(requests) {
                return Err(RecordError::Cancelled);
            }
        }
    }

    fn add(&mut self, batch: &WorkloadBatch) -> Result<(), AddError> {
        let (mut index, mut seen) = (0, 0);
        while index < batch.len() {
            if index >= seen {
                seen = batch.len().min(index + AHEAD);
                self.prefetch(batch, index..seen);
            }
            let (op, tenant) = (batch.op[index], batch.tenant[index]);
            if matches!(op, Op::Read | Op::Write) {
                let end = run_end(batch, index);
                self.data(batch, index..end)?;
                self.columns.settle()?;
                index = end;
                continue;
            }
            let totals = &mut self.recording.totals[usize::from(tenant)];
            totals.requests[op as usize] += 1;
            totals.bytes[op as usize] += batch.length_bytes[index];
            totals.last_ns = batch.time_ns[index];
            if op == Op::Trim && self.wanted.trims {
                self.trim(batch, index)?;
            }
            index += 1;
        }
        Ok(())
    }

    /// Starts to load what the first blocks of requests will need: where tenants take turns, few of
    /// them are interned together.
    fn prefetch(&self, batch: &WorkloadBatch, rows: Range<usize>) {
        if self.recording.totals.len() > 1 {
            let shift = self.blocks.shift();
            rows.for_each(|row| {
                self.interner.prefetch(batch.space[row], batch.offset_bytes[row] >> shift);
            });
        }
    }

    fn too_long(&self) -> AddError {
        AddError::Record(RecordError::TooLong { limit: self.limit })
    }

    /// Adds reads and writes of one space, all their blocks interned together.
    fn data(&mut self, batch: &WorkloadBatch, range: Range<usize>) -> Result<(), AddError> {
        let (tenant, space) = (batch.tenant[range.start], batch.space[range.start]);
        self.volumes.open(tenant, space);
        let before = self.columns.ids.len();
        let max_blocks = self.limit.saturating_sub(before as u64);
        let found = self.blocks.expand(batch, range.clone(), max_blocks);
        let single = found.ok_or_else(|| self.too_long())?;
        if self.wanted.uneven_bytes && !self.wanted.bytes {
            self.follow_bytes(batch, range.clone(), before)?;
        }
        if self.wanted.bytes {
            self.blocks.measure(batch, range.clone(), &mut self.columns.bytes.tail);
        }
        if let Some(extents) = &mut self.extents {
            extents.add(batch, range.clone(), true);
        }
        if self.wanted.calls {
            self.recording.add_calls(batch, range.clone());
        }
        let out = &mut self.columns;
        self.interner
            .intern_batch(space, self.blocks.numbers(), &mut out.ids.tail)
            .map_err(|error| AddError::Intern(tenant, error))?;
        if self.wanted.times {
            out.times_ns.tail.extend_from_slice(&batch.time_ns[range.clone()]);
        }
        let ops = &batch.op[range.clone()];
        let writes = ops.iter().filter(|op| **op == Op::Write).count();
        self.recording.plain &= single && writes == 0;
        if single && out.starts.is_empty() {
            let flag = |op: &Op| if *op == Op::Write { WRITE | LAST } else { LAST };
            out.flags.tail.extend(ops.iter().map(flag));
        } else {
            out.begin_starts(before)?;
            let mut start = before as u32;
            for (op, count) in ops.iter().zip(self.blocks.counts()) {
                out.starts.tail.push(start);
                start += count;
                out.add_flags(*count as usize, if *op == Op::Write { WRITE } else { 0 });
            }
        }
        self.cut_off(batch, range.clone());
        self.total(batch, range, writes);
        self.attribute(tenant, before);
        Ok(())
    }

    /// Begins to keep the bytes of accesses where they differ from those of the `before` others.
    fn follow_bytes(
        &mut self,
        batch: &WorkloadBatch,
        range: Range<usize>,
        before: usize,
    ) -> Result<(), AddError> {
        let (found, known) = (self.blocks.even_bytes(batch, range), self.recording.even_bytes);
        match found {
            Some(bytes) if before == 0 || bytes == known => self.recording.even_bytes = bytes,
            _ => {
                self.columns.begin_bytes(before, known)?;
                self.recording.even_bytes = 0;
                self.wanted.bytes = true;
            }
        }
        Ok(())
    }

    /// Notes which of the requests that were added last go past the cache.
    fn cut_off(&mut self, batch: &WorkloadBatch, range: Range<usize>) {
        let Some(streams) = &mut self.streams else { return };
        let flags = &mut self.columns.flags.tail;
        let mut position = flags.len() - self.blocks.numbers().len();
        for (row, count) in range.zip(self.blocks.counts()) {
            let end = position + *count as usize;
            let write = batch.op[row] == Op::Write;
            let (offset, length) = (batch.offset_bytes[row], batch.length_bytes[row]);
            if streams.cuts_off(batch.space[row] as usize, write, offset, length) {
                flags[position..end].iter_mut().for_each(|flags| *flags |= CUT_OFF);
                self.recording.plain = false;
            }
            position = end;
        }
    }

    /// Adds reads and writes, whose blocks were expanded, to the totals of their tenant.
    fn total(&mut self, batch: &WorkloadBatch, range: Range<usize>, writes: usize) {
        let totals = &mut self.recording.totals[usize::from(batch.tenant[range.start])];
        totals.block_accesses += self.blocks.numbers().len() as u64;
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
    }

    /// Adds a trim of the known blocks that lie wholly inside it.
    fn trim(&mut self, batch: &WorkloadBatch, index: usize) -> Result<(), AddError> {
        let before = self.columns.ids.len();
        let ids = &mut self.columns.ids.tail;
        self.blocks.find_trimmed(batch, index, &self.interner, ids);
        let blocks = self.columns.ids.len() - before;
        if self.columns.ids.len() as u64 > self.limit {
            return Err(self.too_long());
        }
        if blocks == 0 {
            return Ok(());
        }
        let out = &mut self.columns;
        if blocks > 1 || !out.starts.is_empty() {
            out.begin_starts(before)?;
            out.starts.tail.push(before as u32);
        }
        if self.wanted.times {
            out.times_ns.tail.push(batch.time_ns[index]);
        }
        if let Some(extents) = &mut self.extents {
            extents.add(batch, index..index + 1, false);
        }
        if self.wanted.calls {
            self.recording.add_calls(batch, index..index + 1);
        }
        out.add_flags(blocks, TRIM);
        self.recording.plain = false;
        if self.wanted.bytes {
            out.bytes.tail.resize(out.bytes.tail.len() + blocks, 0);
        }
        self.attribute(batch.tenant[index], before);
        Ok(self.columns.settle()?)
    }

    /// Gives the accesses from `before` on to a tenant, with per-tenant ids.
    fn attribute(&mut self, tenant: u16, before: usize) {
        if self.recording.totals.len() == 1 {
            return;
        }
        let out = &mut self.columns;
        let new = out.tail_from(before);
        out.tenants.tail.resize(out.tenants.tail.len() + new.len(), tenant);
        let totals = &mut self.recording.totals[usize::from(tenant)];
        for id in &out.ids.tail[new] {
            if *id as usize == self.local_of.len() {
                self.local_of.push(totals.distinct_blocks);
                totals.distinct_blocks += 1;
            }
            out.locals.tail.push(self.local_of[*id as usize]);
        }
    }

    fn finish(mut self) -> Result<Recording, RecordError> {
        self.recording.distinct = self.interner.distinct();
        if let [only] = self.recording.totals.as_mut_slice() {
            only.distinct_blocks = self.recording.distinct;
        }
        if let Some((spaces, blocks)) = self.interner.into_addresses() {
            let addresses = spaces.into_iter().zip(blocks);
            self.recording.keys =
                addresses.map(|(space, block)| self.volumes.key(space, block)).collect();
        }
        self.recording.extents = self.extents.map(Gathered::settle).unwrap_or_default();
        self.columns.finish(&mut self.recording)?;
        Ok(self.recording)
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
