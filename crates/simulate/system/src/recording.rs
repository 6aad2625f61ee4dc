//! A workload as block accesses in memory: decoded once, replayed through any number of caches.
//!
//! For: splitting requests into blocks and interning them. Must never know: caches. Memory: 5 bytes
//! per block access and 8 per request; with several tenants 6 more per access, with requests of
//! several blocks 4 more per request. Source of the dense ids: DESIGN.md, "dense ids".

use cachewright_trace::TraceError;
use cachewright_trace::intern::{InternError, Interner};
use cachewright_trace::merge::{Workload, WorkloadBatch};
use cachewright_trace::next_use::{NEVER, next_uses};
use cachewright_types::Op;
use std::ops::Range;
use thiserror::Error;

/// The access is a write.
pub const WRITE: u8 = 1;
/// The access ends its request.
pub const LAST: u8 = 2;
/// The block is trimmed; no access.
pub const TRIM: u8 = 4;

/// Requests decoded at a time.
const BATCH: usize = 8192;

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

/// Why a workload could not be recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Too many distinct blocks.
    #[error("{tenant}: {source}; a larger `cache.block` makes fewer")]
    Intern {
        /// The tenant.
        tenant: String,
        /// The reason.
        source: InternError,
    },
    /// Too many block accesses for the given bound.
    #[error("found more than {limit} block accesses, expected at most so many in memory")]
    TooLong {
        /// The bound.
        limit: u64,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// What a tenant's requests add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantTotals {
    /// Requests by kind, indexed by [`Op`].
    pub requests: [u64; 4],
    /// Bytes asked for by kind, indexed by [`Op`].
    pub bytes: [u64; 4],
    /// Blocks read or written.
    pub block_accesses: u64,
    /// Distinct blocks read or written.
    pub distinct_blocks: u32,
    /// Time of the last request in nanoseconds since the start of the workload.
    pub last_ns: u64,
}

/// Block accesses by columns.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Dense over all tenants.
    pub ids: Vec<u32>,
    /// Dense per tenant; empty when there is one tenant (then `ids` serves).
    pub locals: Vec<u32>,
    /// [`WRITE`], [`LAST`], [`TRIM`].
    pub flags: Vec<u8>,
    /// Empty when there is one tenant.
    pub tenants: Vec<u16>,
    /// Arrival of each read, write or trim in nanoseconds.
    pub times_ns: Vec<u64>,
    /// First access of each request; empty when every request is one access.
    pub starts: Vec<u32>,
    /// Whether every access is a read of one block: the shortest replay loop applies.
    pub plain: bool,
    /// Totals per tenant.
    pub totals: Vec<TenantTotals>,
    /// Distinct blocks of all tenants.
    pub distinct: u32,
}

impl Recording {
    /// Block accesses and trims held.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Time of the last request in nanoseconds.
    pub fn span_ns(&self) -> u64 {
        self.totals.iter().map(|totals| totals.last_ns).max().unwrap_or(0)
    }

    /// Blocks read or written by all tenants.
    pub fn block_accesses(&self) -> u64 {
        self.totals.iter().map(|totals| totals.block_accesses).sum()
    }

    /// Position of the first access that arrives at `time_ns` or later.
    pub fn position_at(&self, time_ns: u64) -> usize {
        let request = self.times_ns.partition_point(|time| *time < time_ns);
        self.start_of(request)
    }

    /// Accesses of a request, by its index in `times_ns`.
    pub fn accesses_of(&self, request: usize) -> Range<usize> {
        self.start_of(request)..self.start_of(request + 1)
    }

    fn start_of(&self, request: usize) -> usize {
        if request >= self.times_ns.len() {
            self.len()
        } else if self.starts.is_empty() {
            request
        } else {
            self.starts[request] as usize
        }
    }

    /// The ids a cache uses: dense over all tenants when it is shared, per tenant otherwise.
    pub fn ids_for(&self, shared: bool) -> &[u32] {
        if shared || self.locals.is_empty() { &self.ids } else { &self.locals }
    }

    /// A number that differs for different accesses or times, but for accidents of one in 2^64.
    pub fn fingerprint(&self) -> u64 {
        let fold =
            |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        let accesses = self.ids.iter().zip(&self.flags);
        let hash = accesses
            .fold(1, |hash, (id, flags)| fold(hash, u64::from(*id) << 8 | u64::from(*flags)));
        self.times_ns.iter().fold(hash, |hash, time_ns| fold(hash, *time_ns))
    }

    /// For each access the position of the same block's next access; a trim in between, or no
    /// next access, is "never". Nothing when there are too many accesses to number.
    pub fn next_uses(&self) -> Option<Vec<u32>> {
        let mut next = next_uses(&self.ids, self.distinct)?;
        if self.flags.iter().any(|flags| flags & TRIM != 0) {
            for next in &mut next {
                if *next != NEVER && self.flags[*next as usize] & TRIM != 0 {
                    *next = NEVER;
                }
            }
        }
        Some(next)
    }
}

/// Turns requests into a [`Recording`].
pub struct Recorder {
    kind: BlockKind,
    interner: Interner,
    /// The per-tenant id of each id; unused with one tenant.
    local_of: Vec<u32>,
    limit: u64,
    scratch: Vec<u32>,
    trims: bool,
    recording: Recording,
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
            interner: Interner::new(),
            local_of: Vec::new(),
            limit: limit.min(u64::from(u32::MAX - 1)),
            scratch: Vec::new(),
            trims,
            recording,
        }
    }

    /// Records a whole workload; `progress` is told the requests read so far and stops the
    /// recording by returning false.
    pub fn record(
        mut self,
        workload: &mut Workload,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<Recording, RecordError> {
        let mut batch = WorkloadBatch::default();
        let mut requests = 0;
        loop {
            batch.clear();
            let count = workload.read(&mut batch, BATCH)?;
            if count == 0 {
                return Ok(self.finish());
            }
            self.add(&batch).map_err(|(tenant, error)| match error {
                Some(source) => RecordError::Intern {
                    tenant: workload.tenants()[usize::from(tenant)].clone(),
                    source,
                },
                None => RecordError::TooLong { limit: self.limit },
            })?;
            requests += count as u64;
            if !progress(requests) {
                return Err(RecordError::Cancelled);
            }
        }
    }

    /// Adds a batch. Errors: the tenant and why its block got no id (nothing: too many accesses).
    fn add(&mut self, batch: &WorkloadBatch) -> Result<(), (u16, Option<InternError>)> {
        for index in 0..batch.len() {
            let (op, tenant) = (batch.op[index], batch.tenant[index]);
            let (offset, length) = (batch.offset_bytes[index], batch.length_bytes[index]);
            let totals = &mut self.recording.totals[usize::from(tenant)];
            totals.requests[op as usize] += 1;
            totals.bytes[op as usize] += length;
            totals.last_ns = batch.time_ns[index];
            let blocks = match op {
                Op::Flush => continue,
                Op::Trim if !self.trims => continue,
                Op::Trim => self.trimmed(batch.space[index], offset, length),
                Op::Read | Op::Write => self
                    .touched(batch.space[index], offset, length)
                    .map_err(|error| (tenant, Some(error)))?,
            };
            if self.recording.ids.len() as u64 + u64::from(blocks) > self.limit {
                return Err((tenant, None));
            }
            if blocks > 0 {
                self.append(op, tenant, batch.time_ns[index], blocks);
            }
        }
        Ok(())
    }

    /// Interns the blocks a request touches into `scratch`; returns their number.
    #[inline]
    fn touched(&mut self, space: u32, offset: u64, length: u64) -> Result<u32, InternError> {
        self.scratch.clear();
        match self.kind {
            BlockKind::Unit => self.scratch.push(self.interner.intern(space, offset)?),
            BlockKind::Split { shift } => {
                let end = offset.saturating_add(length.max(1)) - 1;
                let first = offset >> shift;
                let count = (end >> shift) - first + 1;
                if count == 1 {
                    self.scratch.push(self.interner.intern(space, first)?);
                } else if count > self.limit {
                    return Ok(u32::MAX);
                } else {
                    self.interner.intern_range(space, first, count, &mut self.scratch)?;
                }
            }
        }
        Ok(self.scratch.len() as u32)
    }

    /// Finds the known blocks that lie wholly inside a trim; returns their number.
    fn trimmed(&mut self, space: u32, offset: u64, length: u64) -> u32 {
        self.scratch.clear();
        match self.kind {
            BlockKind::Unit => self.scratch.extend(self.interner.get(space, offset)),
            BlockKind::Split { shift } => {
                let first = offset.div_ceil(1 << shift);
                let end = offset.saturating_add(length) >> shift;
                let count = end.saturating_sub(first);
                self.interner.get_range(space, first, count, &mut self.scratch);
            }
        }
        self.scratch.len() as u32
    }

    /// Appends the request whose blocks are in `scratch`.
    fn append(&mut self, op: Op, tenant: u16, time_ns: u64, blocks: u32) {
        let out = &mut self.recording;
        if blocks > 1 && out.starts.is_empty() {
            out.starts.extend(0..out.ids.len() as u32);
        }
        if blocks > 1 || !out.starts.is_empty() {
            out.starts.push(out.ids.len() as u32);
        }
        out.times_ns.push(time_ns);
        let flag = match op {
            Op::Write => WRITE,
            Op::Trim => TRIM,
            Op::Read | Op::Flush => 0,
        };
        out.plain &= flag == 0 && blocks == 1;
        out.ids.extend_from_slice(&self.scratch);
        out.flags.resize(out.ids.len(), flag);
        if let Some(last) = out.flags.last_mut() {
            *last |= LAST;
        }
        let totals = &mut out.totals[usize::from(tenant)];
        if op != Op::Trim {
            totals.block_accesses += u64::from(blocks);
        }
        if out.totals.len() > 1 {
            out.tenants.resize(out.ids.len(), tenant);
            self.localise(usize::from(tenant));
        }
    }

    /// Appends the per-tenant ids of the blocks in `scratch`.
    fn localise(&mut self, tenant: usize) {
        let out = &mut self.recording;
        for id in &self.scratch {
            if *id as usize == self.local_of.len() {
                self.local_of.push(out.totals[tenant].distinct_blocks);
                out.totals[tenant].distinct_blocks += 1;
            }
            out.locals.push(self.local_of[*id as usize]);
        }
    }

    fn finish(mut self) -> Recording {
        self.recording.distinct = self.interner.distinct();
        if let [only] = self.recording.totals.as_mut_slice() {
            only.distinct_blocks = self.recording.distinct;
        }
        self.recording
    }
}
