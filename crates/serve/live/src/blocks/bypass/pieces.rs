//! The operations of a request past the cache, one behind the other.
//!
//! For: requests that touch parts of pages, and devices that cannot zero. Must never know: other
//! requests, lost content. Units: bytes, pages.

use super::super::parts::{ZERO_BYTES, zeroes};
use super::super::request::{BlockOp, BlockRequest};
use super::super::under_way::OpenRequest;
use super::super::volumes::covered;
use crate::io::{ALIGNMENT, Buffer, FileId, IoError, IoOp};
use cachewright_types::whole_block_numbers;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

const PAGE_BYTES: u64 = ALIGNMENT as u64;

/// One operation of a request, about whole pages, or to the end of the volume.
#[derive(Clone, Debug)]
enum Piece {
    Read(Range<u64>),
    /// Pages are read; the request's bytes are laid over them, and they are written.
    Merge(Range<u64>),
    /// Pages that were merged, or are the request's own.
    Write(Range<u64>, Arc<Buffer>),
    Zero(Range<u64>),
    Provision(Range<u64>),
    /// Zeroes are written to a device that cannot zero, from here on.
    WriteZeroes(Range<u64>),
    Discard(Range<u64>),
}

impl Piece {
    /// Whether a device may do without it.
    fn may_be_unsupported(&self) -> bool {
        matches!(self, Piece::Zero(_) | Piece::Provision(_) | Piece::Discard(_))
    }
}

/// What is left to be done for a request, the operation under way first.
#[derive(Clone, Debug)]
pub struct Pieces(VecDeque<Piece>);

impl Pieces {
    /// What is done for a request, of a volume of `volume_bytes` with blocks of `1 << shift` bytes.
    /// It keeps its data unless that is written as it is.
    pub fn new(request: &mut BlockRequest, shift: u32, volume_bytes: u64) -> Pieces {
        let bytes = request.offset..request.offset + request.length;
        let last = match bytes.end == volume_bytes {
            true => bytes.end,
            false => bytes.end / PAGE_BYTES * PAGE_BYTES,
        };
        let whole = bytes.start.next_multiple_of(PAGE_BYTES)..last;
        let pages = pages_of(&bytes);
        let pages = pages.start..pages.end.min(volume_bytes);
        Pieces(match request.op {
            BlockOp::Flush => VecDeque::new(),
            BlockOp::Read => [Piece::Read(pages)].into(),
            BlockOp::Write if pages == bytes => {
                [Piece::Write(pages, Arc::new(std::mem::take(&mut request.data)))].into()
            }
            BlockOp::Write => [Piece::Merge(pages)].into(),
            BlockOp::Trim => {
                let bytes = covered(bytes, volume_bytes, 1 << shift);
                let blocks = whole_block_numbers(bytes.start, bytes.end - bytes.start, shift);
                let bytes = blocks.start << shift..(blocks.end << shift).min(volume_bytes);
                (!blocks.is_empty()).then_some(Piece::Discard(bytes)).into_iter().collect()
            }
            BlockOp::Zero | BlockOp::Provision if whole.is_empty() => [Piece::Merge(pages)].into(),
            BlockOp::Zero | BlockOp::Provision => {
                let zeroes = match request.op {
                    BlockOp::Provision => Piece::Provision(whole.clone()),
                    _ => Piece::Zero(whole.clone()),
                };
                let edges = [pages.start..whole.start, whole.end..pages.end];
                let edges = edges.into_iter().filter(|edge| !edge.is_empty()).map(Piece::Merge);
                edges.chain([zeroes]).collect()
            }
        })
    }

    /// Whether nothing is left to be done.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the operation under way reads.
    pub fn is_reading(&self) -> bool {
        matches!(self.0.front(), Some(Piece::Read(_) | Piece::Merge(_)))
    }

    /// The next operation, on a device; `kept` is memory for devices that cannot zero.
    pub fn next_op(&self, file: FileId, kept: &mut Option<Arc<Buffer>>) -> Option<IoOp> {
        let length = |bytes: &Range<u64>| bytes.end - bytes.start;
        Some(match self.0.front()? {
            Piece::Read(bytes) | Piece::Merge(bytes) => {
                let buffer = Buffer::zeroed(length(bytes) as usize);
                IoOp::Read { file, offset: bytes.start, buffer }
            }
            Piece::Write(bytes, buffer) => {
                IoOp::Write { file, offset: bytes.start, buffer: buffer.clone() }
            }
            Piece::Zero(bytes) => IoOp::Zero { file, offset: bytes.start, length: length(bytes) },
            Piece::Provision(bytes) => {
                IoOp::Provision { file, offset: bytes.start, length: length(bytes) }
            }
            Piece::WriteZeroes(bytes) => {
                let buffer = match length(bytes) {
                    ZERO_BYTES.. => kept.get_or_insert_with(zeroes).clone(),
                    length => Arc::new(Buffer::zeroed(length as usize)),
                };
                IoOp::Write { file, offset: bytes.start, buffer }
            }
            Piece::Discard(bytes) => {
                IoOp::Discard { file, offset: bytes.start, length: length(bytes) }
            }
        })
    }

    /// An operation of a request is done, and has brought `data`. Errors: those of the device, but
    /// for one that cannot zero or trim.
    pub fn end_op(
        &mut self,
        open: &mut OpenRequest,
        data: Buffer,
        error: Option<IoError>,
    ) -> Result<(), IoError> {
        let Some(piece) = self.0.pop_front() else { return Ok(()) };
        let unsupported = error == Some(IoError::NOT_SUPPORTED);
        if let Some(error) = error
            && !(unsupported && piece.may_be_unsupported())
        {
            return Err(error);
        }
        match piece {
            Piece::Read(bytes) => {
                open.take_buffer(bytes.start, data);
            }
            Piece::Merge(bytes) => {
                let mut data = data;
                open.lay_over(bytes.start, &mut data);
                self.0.push_front(Piece::Write(bytes, Arc::new(data)));
            }
            Piece::Zero(bytes) | Piece::Provision(bytes) if unsupported => {
                self.0.push_front(Piece::WriteZeroes(bytes));
            }
            Piece::WriteZeroes(bytes) if bytes.end - bytes.start > ZERO_BYTES => {
                self.0.push_front(Piece::WriteZeroes(bytes.start + ZERO_BYTES..bytes.end));
            }
            Piece::Write(..)
            | Piece::Zero(_)
            | Piece::Provision(_)
            | Piece::WriteZeroes(_)
            | Piece::Discard(_) => {}
        }
        Ok(())
    }
}

/// The whole pages around a range of bytes.
pub fn pages_of(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / PAGE_BYTES * PAGE_BYTES..bytes.end.next_multiple_of(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::TenantId;

    fn request(op: BlockOp, offset: u64, length: u64) -> BlockRequest {
        let (tag, tenant, durable, data) = (0, TenantId(0), false, Buffer::default());
        BlockRequest { tag, tenant, op, offset, length, durable, data }
    }

    /// Bytes of a volume.
    const VOLUME: u64 = (8 << 20) + 512;

    /// Carries a request out on a device that cannot zero or trim; returns offsets and lengths of
    /// what is read (`false`) and written.
    fn carried_out(op: BlockOp, offset: u64, length: u64) -> Vec<(bool, u64, u64)> {
        let mut request = request(op, offset, length);
        let mut pieces = Pieces::new(&mut request, 14, VOLUME);
        let mut open = OpenRequest::new(request, 0, 0);
        let (mut found, mut kept) = (Vec::new(), None);
        while let Some(next) = pieces.next_op(FileId(0), &mut kept) {
            let (data, error) = match next {
                IoOp::Read { offset, buffer, .. } => {
                    found.push((false, offset, buffer.len() as u64));
                    (buffer, None)
                }
                IoOp::Write { offset, buffer, .. } => {
                    found.push((true, offset, buffer.len() as u64));
                    (Buffer::default(), None)
                }
                _ => (Buffer::default(), Some(IoError::NOT_SUPPORTED)),
            };
            assert_eq!(pieces.end_op(&mut open, data, error), Ok(()));
        }
        assert!(pieces.is_empty());
        found
    }

    #[test]
    fn edges_are_merged_and_the_rest_is_zeroed_or_written_with_zeroes() {
        let page = PAGE_BYTES;
        assert_eq!(carried_out(BlockOp::Flush, 0, 0), []);
        assert_eq!(carried_out(BlockOp::Read, 5, 1), [(false, 0, page)]);
        assert_eq!(carried_out(BlockOp::Trim, 0, 1 << 14), [], "not trimmed is no error");
        let zeroed = carried_out(BlockOp::Zero, page - 1, 2 * ZERO_BYTES + 1);
        let merged = |start| [(false, start, page), (true, start, page)];
        let whole = [(true, page, ZERO_BYTES), (true, page + ZERO_BYTES, ZERO_BYTES)];
        assert_eq!(zeroed, [merged(0), whole].concat());
        let last = VOLUME - 512;
        assert_eq!(carried_out(BlockOp::Read, last + 1, 1), [(false, last, 512)]);
        assert_eq!(carried_out(BlockOp::Zero, last, 512), [(true, last, 512)]);
        let tail = [(false, last, 512), (true, last, 512)];
        assert_eq!(
            carried_out(BlockOp::Provision, last + 1, 511),
            tail,
            "no part is written alone"
        );
        let both = [(false, last - page, page + 512), (true, last - page, page + 512)];
        assert_eq!(carried_out(BlockOp::Zero, last - 1, 2), both);
    }

    #[test]
    fn another_error_is_one_of_the_request() {
        let mut request = request(BlockOp::Zero, 0, PAGE_BYTES);
        let mut pieces = Pieces::new(&mut request, 14, VOLUME);
        let mut open = OpenRequest::new(request, 0, 0);
        let ended = pieces.end_op(&mut open, Buffer::default(), Some(IoError::IO));
        assert_eq!(ended, Err(IoError::IO));
    }
}
