//! Turns requests into block accesses: their blocks are interned, and each access becomes a row of
//! the recording's columns.
//!
//! Memory: that of distinct blocks, a batch of requests, 16 bytes per request where extents are
//! wanted, and [`HELD_BYTES`] per column; what is longer lies in scratch files.

use crate::machines::Requests;
use crate::recording::{
    Arrivals, CHUNK_BYTES, CUT_OFF, Extents, LAST, RecordError, Recording, TRIM, TenantTotals,
    WRITE,
};
use cachewright_cache::{SequentialCutoff, SequentialStreams};
use cachewright_memory::{ColumnWriter, HELD_BYTES, Word};
use cachewright_trace::intern::{InternError, Interner};
use cachewright_trace::merge::{MergedRequests, WorkloadBatch};
use cachewright_types::{BlockKey, Op, TenantId, VolumeKeys, block_bytes, whole_block_numbers};
use std::io;
use std::ops::Range;

/// Requests decoded at a time.
const BATCH: usize = 8192;
/// Requests whose first blocks are looked at together before the first is added.
const AHEAD: usize = 64;
/// Elements counted into a column between two looks at its length.
const COLUMN_STEP: usize = 1 << 20;

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
    extents: Option<UnplacedExtents>,
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
        let extents = Some(UnplacedExtents::new(self.blocks.shift()));
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
        self.recording.extents = self.extents.map(UnplacedExtents::place).unwrap_or_default();
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

/// Block numbers of requests that are recorded together.
#[derive(Debug)]
struct RequestBlocks {
    kind: BlockKind,
    /// All blocks, request by request.
    numbers: Vec<u64>,
    /// How many blocks each request has.
    counts: Vec<u32>,
}

impl RequestBlocks {
    /// Of no request yet.
    fn new(kind: BlockKind) -> RequestBlocks {
        RequestBlocks { kind, numbers: Vec::new(), counts: Vec::new() }
    }

    /// log2 of the block size in bytes; 0 where a block is a request.
    fn shift(&self) -> u32 {
        if let BlockKind::Split { shift } = self.kind { shift } else { 0 }
    }

    /// Block numbers of the requests that were expanded last, request by request.
    fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// How many blocks each of these requests has.
    fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Takes the blocks that requests touch; returns whether each touches one, nothing when there
    /// are more than `max_blocks`.
    fn expand(
        &mut self,
        batch: &WorkloadBatch,
        range: Range<usize>,
        max_blocks: u64,
    ) -> Option<bool> {
        self.numbers.clear();
        self.counts.clear();
        let offsets = &batch.offset_bytes[range.clone()];
        let shift = match self.kind {
            BlockKind::Unit => {
                self.numbers.extend_from_slice(offsets);
                self.counts.resize(range.len(), 1);
                return (range.len() as u64 <= max_blocks).then_some(true);
            }
            BlockKind::Split { shift } => shift,
        };
        for (offset, length) in offsets.iter().zip(&batch.length_bytes[range.clone()]) {
            let (first, last) =
                (offset >> shift, offset.saturating_add((*length).max(1) - 1) >> shift);
            let count = last - first + 1;
            if self.numbers.len() as u64 + count > max_blocks {
                return None;
            }
            self.numbers.extend(first..=last);
            self.counts.push(count as u32);
        }
        Some(self.numbers.len() == range.len())
    }

    /// Adds the bytes of each access of reads and writes to `out`.
    fn measure(&self, batch: &WorkloadBatch, range: Range<usize>, out: &mut Vec<u32>) {
        let lengths = &batch.length_bytes[range.clone()];
        match self.kind {
            BlockKind::Unit => {
                let longest = u64::from(u32::MAX);
                out.extend(lengths.iter().map(|length| (*length).clamp(1, longest) as u32));
            }
            BlockKind::Split { shift } => {
                for (offset, length) in batch.offset_bytes[range].iter().zip(lengths) {
                    out.extend(block_bytes(*offset, *length, shift));
                }
            }
        }
    }

    /// The bytes of each access of reads and writes, if all have as many.
    fn even_bytes(&self, batch: &WorkloadBatch, range: Range<usize>) -> Option<u32> {
        let lengths = &batch.length_bytes[range.clone()];
        match self.kind {
            BlockKind::Unit => {
                let first = *lengths.first()?;
                let even = lengths.iter().all(|length| *length == first);
                u32::try_from(first.max(1)).ok().filter(|_| even)
            }
            BlockKind::Split { shift } => {
                let within = (1_u64 << shift) - 1;
                let offsets = &batch.offset_bytes[range];
                let bits = offsets.iter().zip(lengths).fold(0, |bits, (offset, length)| {
                    bits | offset | length | (u64::from(*length == 0))
                });
                1_u32.checked_shl(shift).filter(|_| bits & within == 0)
            }
        }
    }

    /// Adds the ids of known blocks that lie wholly inside a trim to `out`.
    fn find_trimmed(
        &self,
        batch: &WorkloadBatch,
        index: usize,
        known: &Interner,
        out: &mut Vec<u32>,
    ) {
        let (offset, length) = (batch.offset_bytes[index], batch.length_bytes[index]);
        match self.kind {
            BlockKind::Unit => out.extend(known.get(batch.space[index], offset)),
            BlockKind::Split { shift } => {
                let whole = whole_block_numbers(offset, length, shift);
                let count = whole.end - whole.start;
                known.get_range(batch.space[index], whole.start, count, out);
            }
        }
    }
}

/// One writer per column of [`Recording`].
#[derive(Debug)]
struct RecordedColumns {
    ids: ColumnWriter<u32>,
    locals: ColumnWriter<u32>,
    flags: ColumnWriter<u8>,
    tenants: ColumnWriter<u16>,
    times_ns: ColumnWriter<u64>,
    bytes: ColumnWriter<u32>,
    starts: ColumnWriter<u32>,
}

impl RecordedColumns {
    /// Empty columns, each of which holds at most so many bytes in memory.
    fn holding(held_bytes: usize) -> RecordedColumns {
        fn column<T: Word>(held_bytes: usize) -> ColumnWriter<T> {
            ColumnWriter::holding(held_bytes)
        }
        RecordedColumns {
            ids: column(held_bytes),
            locals: column(held_bytes),
            flags: column(held_bytes),
            tenants: column(held_bytes),
            times_ns: column(held_bytes),
            bytes: column(held_bytes),
            starts: column(held_bytes),
        }
    }

    /// Moves what is long to scratch files. Errors: no place for them.
    fn settle(&mut self) -> io::Result<()> {
        self.ids.settle()?;
        self.locals.settle()?;
        self.flags.settle()?;
        self.tenants.settle()?;
        self.times_ns.settle()?;
        self.bytes.settle()?;
        self.starts.settle()
    }

    /// Begins to keep where requests start: every access before `position` is one of its own.
    fn begin_starts(&mut self, position: usize) -> io::Result<()> {
        if self.starts.is_empty() {
            for from in (0..position).step_by(COLUMN_STEP) {
                self.starts.tail.extend(from as u32..(from + COLUMN_STEP).min(position) as u32);
                self.starts.settle()?;
            }
        }
        Ok(())
    }

    /// Begins to keep the bytes of accesses: each before `position` has as many.
    fn begin_bytes(&mut self, position: usize, bytes: u32) -> io::Result<()> {
        for from in (0..position).step_by(COLUMN_STEP) {
            let more = COLUMN_STEP.min(position - from);
            let length = self.bytes.tail.len() + more;
            self.bytes.tail.resize(length, bytes);
            self.bytes.settle()?;
        }
        Ok(())
    }

    /// Adds the flags of a request of so many accesses.
    fn add_flags(&mut self, accesses: usize, flag: u8) {
        let flags = &mut self.flags.tail;
        flags.resize(flags.len() + accesses - 1, flag);
        flags.push(flag | LAST);
    }

    /// The ids added since the last call of `settle`, from position `before` on, as a range.
    fn tail_from(&self, before: usize) -> Range<usize> {
        let written = self.ids.len() - self.ids.tail.len();
        before - written..self.ids.tail.len()
    }

    /// Puts the columns into a recording. Errors: as [`RecordedColumns::settle`].
    fn finish(self, recording: &mut Recording) -> io::Result<()> {
        recording.ids = self.ids.finish()?;
        recording.locals = self.locals.finish()?;
        recording.flags = self.flags.finish()?;
        recording.tenants = self.tenants.finish()?;
        recording.arrivals = Arrivals::new(self.times_ns.finish()?, self.starts.finish()?);
        recording.bytes = self.bytes.finish()?;
        Ok(())
    }
}

/// Extents as they are recorded: on their volumes, whose places are not known yet.
#[derive(Debug)]
struct UnplacedExtents {
    chunk_bytes: u64,
    extents: Extents,
    /// (its first request, its volume) of every run of requests to one volume.
    runs: Vec<(usize, u32)>,
    /// The tenant of each volume and the end of what is read and written there.
    volumes: Vec<(u16, u64)>,
}

impl UnplacedExtents {
    /// Of no request yet; blocks have `1 << shift` bytes.
    fn new(shift: u32) -> UnplacedExtents {
        let chunk_bytes = CHUNK_BYTES.max(1 << shift);
        UnplacedExtents {
            chunk_bytes,
            extents: Extents::default(),
            runs: Vec::new(),
            volumes: Vec::new(),
        }
    }

    /// Adds requests of one volume; `data` says whether they read or write.
    fn add(&mut self, batch: &WorkloadBatch, range: Range<usize>, data: bool) {
        let (tenant, volume) = (batch.tenant[range.start], batch.space[range.start]);
        if self.runs.last().is_none_or(|run| run.1 != volume) {
            self.runs.push((self.extents.offset.len(), volume));
        }
        if self.volumes.len() <= volume as usize {
            self.volumes.resize(volume as usize + 1, (0, 0));
        }
        let known = &mut self.volumes[volume as usize];
        known.0 = tenant;
        for index in range {
            let (offset, length) = (batch.offset_bytes[index], batch.length_bytes[index]);
            let length = length.max(u64::from(data));
            self.extents.offset.push(offset);
            self.extents.length.push(length);
            if data {
                known.1 = known.1.max(offset.saturating_add(length));
            }
        }
    }

    /// Puts every tenant's volumes one behind the other.
    fn place(mut self) -> Extents {
        let tenants = self.volumes.iter().map(|volume| usize::from(volume.0) + 1).max();
        let mut ends = vec![0_u64; tenants.unwrap_or(0)];
        let base = |&(tenant, bytes): &(u16, u64)| {
            let end = &mut ends[usize::from(tenant)];
            let base = *end;
            *end = end.saturating_add(bytes.div_ceil(self.chunk_bytes) * self.chunk_bytes);
            base
        };
        let bases: Vec<u64> = self.volumes.iter().map(base).collect();
        let ends = self.runs.iter().skip(1).map(|run| run.0).chain([self.extents.offset.len()]);
        for ((from, volume), to) in self.runs.iter().zip(ends) {
            let base = bases[*volume as usize];
            for offset in &mut self.extents.offset[*from..to] {
                *offset = offset.saturating_add(base);
            }
        }
        self.extents
    }
}

/// The volumes of each tenant, numbered in the order of their first blocks.
struct VolumeNumbers {
    /// The keys of each space, once one of its blocks is recorded.
    keys: Vec<Option<VolumeKeys>>,
    /// Spaces recorded of each tenant.
    counts: Vec<u32>,
}

impl VolumeNumbers {
    /// No volumes of so many tenants.
    fn new(tenants: usize) -> VolumeNumbers {
        VolumeNumbers { keys: Vec::new(), counts: vec![0; tenants] }
    }

    /// Numbers a space as the next volume of its tenant, unless it has a number.
    fn open(&mut self, tenant: u16, space: u32) {
        let index = space as usize;
        if index >= self.keys.len() {
            self.keys.resize(index + 1, None);
        }
        if self.keys[index].is_none() {
            let count = &mut self.counts[usize::from(tenant)];
            self.keys[index] = Some(VolumeKeys::new(TenantId(tenant), *count));
            *count += 1;
        }
    }

    /// The key of a block of a space.
    fn key(&self, space: u32, block: u64) -> BlockKey {
        match self.keys.get(space as usize).copied().flatten() {
            Some(volume) => volume.key(block),
            None => BlockKey(block),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of one space, each (offset, length) in bytes.
    fn batch(requests: &[(u64, u64)]) -> WorkloadBatch {
        let mut batch = WorkloadBatch::default();
        for (offset, length) in requests {
            batch.offset_bytes.push(*offset);
            batch.length_bytes.push(*length);
            batch.op.push(Op::Read);
            batch.space.push(0);
            batch.tenant.push(0);
            batch.time_ns.push(0);
        }
        batch
    }

    #[test]
    fn a_request_has_each_block_that_it_touches_and_one_without_bytes_has_one() {
        let batch = batch(&[(0, 4096), (4095, 2), (8192, 0), (0, 512)]);
        let mut blocks = RequestBlocks::new(BlockKind::Split { shift: 12 });
        assert_eq!(blocks.expand(&batch, 0..3, 4), Some(false));
        assert_eq!((blocks.numbers(), blocks.counts()), (&[0, 0, 1, 2][..], &[1, 2, 1][..]));
        assert_eq!(blocks.expand(&batch, 0..3, 3), None, "4 blocks");
        assert_eq!(blocks.expand(&batch, 2..4, 2), Some(true));
        assert_eq!((blocks.numbers(), blocks.counts()), (&[2, 0][..], &[1, 1][..]));
        let mut bytes = vec![7];
        blocks.measure(&batch, 0..2, &mut bytes);
        assert_eq!(bytes, [7, 4096, 1, 1]);
    }

    #[test]
    fn a_unit_is_a_request_of_any_length() {
        let batch = batch(&[(4095, 9000), (4095, 0), (8, 1 << 40)]);
        let mut blocks = RequestBlocks::new(BlockKind::Unit);
        assert_eq!(blocks.shift(), 0);
        assert_eq!(blocks.expand(&batch, 0..3, 3), Some(true));
        assert_eq!((blocks.numbers(), blocks.counts()), (&[4095, 4095, 8][..], &[1; 3][..]));
        assert_eq!(blocks.expand(&batch, 0..3, 2), None);
        let mut bytes = Vec::new();
        blocks.measure(&batch, 0..3, &mut bytes);
        assert_eq!(bytes, [9000, 1, u32::MAX]);
    }
}
