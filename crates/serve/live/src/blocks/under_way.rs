//! Requests under way and the parts of steps that wait for input or output.
//!
//! For: data from where it arrives to where it goes. Must never know: caches, the log. Units:
//! bytes.

use super::request::{BlockAnswer, BlockOp, BlockRequest};
use super::response_times::RequestTimes;
use super::stored_blocks::ContentOrigin;
use crate::io::{Buffer, IoError};
use crate::log::Place;
use cachewright_steps::{Ready, ResidentId};
use cachewright_types::TenantId;
use slab::Slab;
use std::convert::Infallible;
use std::ops::Range;

cachewright_types::index_ids! {
    /// A request under way.
    OpenId,
    /// A step that waits for parts.
    WorkId,
    /// A part of a step: one operation.
    PartId,
}

/// The request of a step, as its note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenNote(pub OpenId);

impl Default for OpenNote {
    fn default() -> OpenNote {
        OpenNote(OpenId::NONE)
    }
}

/// A request under way.
#[derive(Debug)]
pub struct OpenRequest {
    /// As it came; its data moves to `data`.
    pub request: BlockRequest,
    /// What is written, or what was read so far: nothing before the first block came.
    pub data: Buffer,
    /// The last group that holds what it wrote.
    pub group: u64,
    /// Plans that are not answered.
    pub plans: u32,
    /// Blocks for which room in the log is kept.
    pub reserved: u64,
    /// Why it fails, if it does.
    pub error: Option<IoError>,
    /// It has changed the backing device.
    pub wrote_through: bool,
    /// It takes content away that the log has: that must become durable, too.
    pub clears: bool,
    /// Its place in the order in which requests were decided.
    pub order: u64,
    /// All that it changes is written; what is left is to make that durable.
    pub is_written: bool,
    /// How long it takes.
    pub times: RequestTimes,
}

impl OpenRequest {
    /// A request of so many plans.
    pub fn new(mut request: BlockRequest, plans: u32, reserved: u64) -> OpenRequest {
        let data = std::mem::take(&mut request.data);
        let clears = request.op == BlockOp::Trim || request.op.zeroes();
        OpenRequest {
            request,
            data,
            group: 0,
            plans,
            reserved,
            error: None,
            wrote_through: false,
            clears,
            order: 0,
            is_written: false,
            times: RequestTimes::default(),
        }
    }

    /// The bytes of the volume that it is about.
    pub fn range(&self) -> Range<u64> {
        self.request.offset..self.request.offset + self.request.length
    }

    /// Its answer.
    pub fn answer(self) -> BlockAnswer {
        let OpenRequest { request, data, error, .. } = self;
        let read = request.op == BlockOp::Read && error.is_none();
        let data = if read { data } else { Buffer::default() };
        BlockAnswer { tag: request.tag, result: error.map_or(Ok(()), Err), data }
    }

    /// It as it came, to be begun again. A change that is written needs a flush of its range and no
    /// more: a later change of the same blocks may have been answered, and must not be overwritten.
    pub fn again(self) -> BlockRequest {
        let OpenRequest { mut request, data, is_written, .. } = self;
        match request.op {
            _ if is_written => request.op = BlockOp::Flush,
            BlockOp::Write => request.data = data,
            _ => {}
        }
        request
    }

    /// Takes in what a run of bytes from `offset` on holds.
    pub fn take(&mut self, offset: u64, bytes: &[u8]) {
        let range = self.range();
        let from = range.start.max(offset);
        let to = range.end.min(offset + bytes.len() as u64);
        if from < to && self.request.op == BlockOp::Read {
            if self.data.is_empty() {
                self.data = Buffer::zeroed(self.request.length as usize);
            }
            let source = &bytes[(from - offset) as usize..(to - offset) as usize];
            let target = (from - range.start) as usize;
            self.data[target..target + source.len()].copy_from_slice(source);
        }
    }

    /// As [`OpenRequest::take`], for a buffer that is not needed elsewhere: a request for all of it
    /// keeps it. Returns the memory that is left.
    pub fn take_buffer(&mut self, offset: u64, buffer: Buffer) -> Buffer {
        let all = self.range() == (offset..offset + buffer.len() as u64);
        if all && self.request.op == BlockOp::Read {
            return std::mem::replace(&mut self.data, buffer);
        }
        self.take(offset, &buffer);
        buffer
    }

    /// What it writes in a run of bytes, if that is all of the run.
    pub fn written(&self, bytes: Range<u64>) -> Option<&[u8]> {
        let range = self.range();
        let all = range.start <= bytes.start && bytes.end <= range.end;
        let start = range.start;
        (all && self.request.op == BlockOp::Write)
            .then(|| &self.data[(bytes.start - start) as usize..(bytes.end - start) as usize])
    }

    /// Puts what it writes over a run of bytes from `offset` on.
    pub fn lay_over(&self, offset: u64, bytes: &mut [u8]) {
        let range = self.range();
        let from = range.start.max(offset);
        let to = range.end.min(offset + bytes.len() as u64);
        if from < to {
            let target = &mut bytes[(from - offset) as usize..(to - offset) as usize];
            let source = (from - range.start) as usize..(to - range.start) as usize;
            match self.request.op {
                BlockOp::Zero | BlockOp::Provision => target.fill(0),
                _ => target.copy_from_slice(&self.data[source]),
            }
        }
    }
}

/// A change of some bytes of a tenant that is written.
#[derive(Debug)]
struct WrittenChange {
    order: u64,
    tenant: TenantId,
    bytes: Range<u64>,
}

/// A step that waits for parts.
#[derive(Clone, Copy, Debug)]
pub struct StepWork {
    /// The step.
    pub ready: Ready<Infallible>,
    /// The request that it belongs to, if it does.
    pub open: OpenId,
    /// Parts that are not done, and one more until all are known.
    pub left: u32,
    /// Whether a part has failed.
    pub failed: bool,
}

/// A block that is read from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRead {
    /// Whose content it is.
    pub resident: ResidentId,
    /// The block's number.
    pub number: u64,
    /// Where it is read.
    pub place: Place,
    /// The checksum that it should have.
    pub checksum: u32,
    /// Of what is read; the resident may have newer content when it has come.
    pub origin: ContentOrigin,
}

/// What is done with what a part brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// A block from the log: to the request, or kept for a write-back.
    FromLog(LogRead),
    /// A block from the log, over which the request's bytes are laid.
    Merge(LogRead),
    /// A block from the backing device, whose clean copy in the log is damaged; over it the
    /// request's bytes are laid if it is `merged`.
    Repair {
        /// Whose content it is.
        resident: ResidentId,
        /// The block's number.
        number: u64,
        /// It is written.
        merged: bool,
    },
    /// Bytes from a backing device.
    FromBacking {
        /// The first byte that is read.
        offset: u64,
    },
    /// Bytes from a backing device, over which the request's bytes are laid and that are written
    /// there.
    BeforeWrite {
        /// The first byte that is read.
        offset: u64,
    },
    /// Bytes are written to a backing device.
    ToBacking {
        /// The first byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// Blocks of zeroes are written back as a hole of a backing device.
    HoleToBacking {
        /// The first byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// A range is trimmed or zeroed.
    Clear,
    /// A range is overwritten with zeroes from a byte on.
    ZeroBytes {
        /// The first byte that is not written yet.
        next: u64,
    },
}

impl PartKind {
    /// Whether it reads the backing device.
    pub fn reads_backing(self) -> bool {
        match self {
            PartKind::Repair { .. }
            | PartKind::FromBacking { .. }
            | PartKind::BeforeWrite { .. } => true,
            PartKind::FromLog(_)
            | PartKind::Merge(_)
            | PartKind::ToBacking { .. }
            | PartKind::HoleToBacking { .. }
            | PartKind::Clear
            | PartKind::ZeroBytes { .. } => false,
        }
    }
}

/// One operation of a step.
#[derive(Clone, Copy, Debug)]
pub struct StepPart {
    /// Its step.
    pub work: WorkId,
    /// What is done with it.
    pub kind: PartKind,
}

/// All that is under way.
#[derive(Debug, Default)]
pub struct UnderWay {
    /// Requests.
    pub open: Slab<OpenRequest>,
    /// Steps that wait for parts.
    pub works: Slab<StepWork>,
    /// Parts.
    pub parts: Slab<StepPart>,
    /// Steps that wait for parts and belong to no request.
    alone: usize,
    /// Requests that were begun so far.
    begun: u64,
    /// Changes that are written, while requests that were decided before them may be under way.
    written: Vec<WrittenChange>,
}

/// Changes above which those that overtake nothing any more are forgotten.
const WRITTEN_CHANGES: usize = 256;

impl UnderWay {
    /// A request that is decided now is under way.
    pub fn begin(&mut self, request: OpenRequest) -> OpenId {
        self.begun += 1;
        OpenId::new(self.open.insert(OpenRequest { order: self.begun, ..request }))
    }

    /// What a request changes is written. One that was decided before it may still be under way: a
    /// write or trim of the device is overtaken by one of the cache. Once the log has failed, what
    /// is under way ends with errors, and all is kept until that is begun again.
    pub fn note_written(&mut self, id: OpenId, log_failed: bool) {
        if !log_failed && self.open.len() <= 1 {
            self.written.clear();
            return;
        }
        if !log_failed && self.written.len() >= WRITTEN_CHANGES.max(2 * self.open.len()) {
            let first = self.open.iter().map(|(_, open)| open.order).min().unwrap_or(0);
            self.written.retain(|change| change.order > first);
        }
        let Some(known) = self.open.get(id.index()) else { return };
        let (order, tenant, bytes) = (known.order, known.request.tenant, known.range());
        self.written.push(WrittenChange { order, tenant, bytes });
    }

    /// The bytes of the request that was the `order`th to be decided which later ones have written.
    pub fn overtaken(&self, order: u64, request: &BlockRequest) -> Vec<Range<u64>> {
        let range = request.offset..request.offset + request.length;
        let later = self.written.iter();
        let later = later.filter(|change| change.order > order && change.tenant == request.tenant);
        let common = later
            .map(|change| range.start.max(change.bytes.start)..range.end.min(change.bytes.end));
        common.filter(|bytes| bytes.start < bytes.end).collect()
    }

    /// A request.
    pub fn request(&mut self, id: OpenId) -> Option<&mut OpenRequest> {
        self.open.get_mut(id.index())
    }

    /// A step has parts from now on: one until all are known.
    pub fn begin_work(&mut self, ready: Ready<Infallible>, open: OpenId) -> WorkId {
        self.alone += usize::from(open == OpenId::NONE);
        WorkId::new(self.works.insert(StepWork { ready, open, left: 1, failed: false }))
    }

    /// Steps that wait for parts and belong to no request.
    pub fn without_request(&self) -> usize {
        self.alone
    }

    /// A part of a step begins; returns its number.
    pub fn begin_part(&mut self, work: WorkId, kind: PartKind) -> u64 {
        if let Some(work) = self.works.get_mut(work.index()) {
            work.left += 1;
        }
        self.parts.insert(StepPart { work, kind }) as u64
    }

    /// A part of a step is done, or all parts are known; returns the step when none is left.
    pub fn end_part(&mut self, work: WorkId, failed: bool) -> Option<StepWork> {
        let known = self.works.get_mut(work.index())?;
        known.failed |= failed;
        known.left -= 1;
        if known.left > 0 {
            return None;
        }
        let ended = self.works.try_remove(work.index())?;
        self.alone -= usize::from(ended.open == OpenId::NONE);
        Some(ended)
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.open.len() + self.works.len() + self.parts.len() == 0
    }
}
