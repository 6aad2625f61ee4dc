//! Requests to volumes and their answers.
//!
//! For: what comes from any protocol. Must never know: protocols, caches. Units: bytes.

use crate::io::{Buffer, IoError};
use cachewright_types::TenantId;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOp {
    /// The bytes of the range.
    Read,
    /// The range holds the request's data.
    Write,
    /// What was answered before is durable.
    Flush,
    /// The range is not needed any more: whole blocks of it, among them the last one of a volume as
    /// far as it goes, may hold anything they ever held.
    Trim,
    /// The range reads as zeroes; its backing device may have no space for it.
    Zero,
    /// The range reads as zeroes, and its backing device has space for it.
    Provision,
}

impl BlockOp {
    /// Whether the range reads as zeroes afterwards.
    pub fn zeroes(self) -> bool {
        matches!(self, BlockOp::Zero | BlockOp::Provision)
    }
}

/// A request to a volume.
#[derive(Clone, Debug)]
pub struct BlockRequest {
    /// The caller's name for it, which the answer carries: less than 2^63.
    pub tag: u64,
    /// Whose volume it is.
    pub tenant: TenantId,
    /// What is wanted.
    pub op: BlockOp,
    /// The first byte.
    pub offset: u64,
    /// Bytes; ignored for a flush.
    pub length: u64,
    /// Its effect is durable before it is answered.
    pub durable: bool,
    /// Its data, for a write: as many bytes as its length.
    pub data: Buffer,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct BlockAnswer {
    /// The name of the request.
    pub tag: u64,
    /// Errors: input or output failed, a range that the volume does not have, no room in the log.
    pub result: Result<(), IoError>,
    /// The bytes of a read; else nothing.
    pub data: Buffer,
}

/// What a server counts besides what the cache decides. Units: blocks, requests, volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServeCounts {
    /// Clean blocks whose content in the log was damaged: read from the backing device instead.
    pub damaged_clean: u64,
    /// Reads of dirty blocks whose content in the log was damaged: they failed.
    pub damaged_dirty: u64,
    /// Dirty blocks that could not be written back and stay in the log.
    pub stranded: u64,
    /// Volumes whose backing device has failed.
    pub failed_volumes: u64,
    /// Requests that were refused because the log had no room.
    pub without_space: u64,
    /// Segments that were cleaned.
    pub cleaned: u64,
    /// Blocks that requests have written to the log or filled.
    pub written: u64,
    /// Blocks that cleaning has copied.
    pub moved: u64,
    /// Clean blocks that cleaning has dropped instead.
    pub dropped: u64,
}

impl ServeCounts {
    /// Blocks that went to the log for each that requests wrote or filled; 1 if there was none.
    pub fn write_amplification(&self) -> f64 {
        match self.written {
            0 => 1.0,
            written => (written + self.moved) as f64 / written as f64,
        }
    }
}
