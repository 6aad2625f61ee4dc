//! The operations of a request past the cache, one behind the other.
//!
//! For: requests that touch parts of pages, and devices that cannot zero. Must never know: other
//! requests, lost content. Units: bytes, pages.

use super::super::request::{BlockOp, BlockRequest, OpenRequest, ZERO_BYTES, zeroes};
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
pub struct Pieces {
    pieces: VecDeque<Piece>,
    /// Bytes that stay as they are.
    spared: Vec<Range<u64>>,
}

impl Pieces {
    /// What is done for a request, of a volume of `volume_bytes` with blocks of `1 << shift` bytes.
    /// It keeps its data unless that is written as it is. Bytes in `spared` stay as they are.
    pub fn new(
        request: &mut BlockRequest,
        shift: u32,
        volume_bytes: u64,
        spared: &[Range<u64>],
    ) -> Pieces {
        let bytes = request.offset..request.offset + request.length;
        let last = match bytes.end == volume_bytes {
            true => bytes.end,
            false => bytes.end / PAGE_BYTES * PAGE_BYTES,
        };
        let whole = bytes.start.next_multiple_of(PAGE_BYTES)..last;
        let pages = pages_of(&bytes);
        let pages = pages.start..pages.end.min(volume_bytes);
        let pieces = match request.op {
            BlockOp::Flush => VecDeque::new(),
            BlockOp::Read => [Piece::Read(pages)].into(),
            BlockOp::Write if pages == bytes && spared.is_empty() => {
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
        };
        let mut pieces = Pieces { pieces, spared: spared.to_vec() };
        spared.iter().for_each(|bytes| pieces.leave_out(bytes, volume_bytes));
        pieces
    }

    /// Leaves some bytes as they are. Of pages that hold others as well the rest is written; a trim
    /// leaves all of such a page.
    fn leave_out(&mut self, bytes: &Range<u64>, volume_bytes: u64) {
        let inner = bytes.start.next_multiple_of(PAGE_BYTES)..match bytes.end >= volume_bytes {
            true => volume_bytes,
            false => bytes.end / PAGE_BYTES * PAGE_BYTES,
        };
        // Without a whole page nothing lies within.
        let inner = inner.start..inner.end.max(inner.start);
        let outer = pages_of(bytes);
        let mut left = VecDeque::new();
        for piece in std::mem::take(&mut self.pieces) {
            let is_trim = matches!(piece, Piece::Discard(_));
            let (range, same): (_, fn(Range<u64>) -> Piece) = match piece {
                Piece::Merge(range) => (range, Piece::Merge),
                Piece::Zero(range) => (range, Piece::Zero),
                Piece::Provision(range) => (range, Piece::Provision),
                Piece::Discard(range) => (range, Piece::Discard),
                Piece::WriteZeroes(range) => (range, Piece::WriteZeroes),
                Piece::Read(_) | Piece::Write(..) => {
                    left.push_back(piece);
                    continue;
                }
            };
            left.extend(around(&range, &outer).into_iter().map(same));
            let shared = range.start.max(outer.start)..range.end.min(outer.end);
            if is_trim || shared.start >= shared.end {
                continue;
            }
            match inner.is_empty() {
                true => left.push_back(Piece::Merge(shared)),
                false => left.extend(around(&shared, &inner).into_iter().map(Piece::Merge)),
            }
        }
        self.pieces = left;
    }

    /// Whether nothing is left to be done.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether the operation under way reads.
    pub fn is_reading(&self) -> bool {
        matches!(self.pieces.front(), Some(Piece::Read(_) | Piece::Merge(_)))
    }

    /// The next operation, on a device; `kept` is memory for devices that cannot zero.
    pub fn next_op(&self, file: FileId, kept: &mut Option<Arc<Buffer>>) -> Option<IoOp> {
        let length = |bytes: &Range<u64>| bytes.end - bytes.start;
        Some(match self.pieces.front()? {
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
        let Some(piece) = self.pieces.pop_front() else { return Ok(()) };
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
                let kept = (!self.spared.is_empty()).then(|| Buffer::copy_of(&data));
                open.lay_over(bytes.start, &mut data);
                if let Some(kept) = kept {
                    for spared in &self.spared {
                        let from = spared.start.max(bytes.start);
                        let to = spared.end.min(bytes.start + data.len() as u64);
                        if from < to {
                            let place = (from - bytes.start) as usize..(to - bytes.start) as usize;
                            data[place.clone()].copy_from_slice(&kept[place]);
                        }
                    }
                }
                self.pieces.push_front(Piece::Write(bytes, Arc::new(data)));
            }
            Piece::Zero(bytes) | Piece::Provision(bytes) if unsupported => {
                self.pieces.push_front(Piece::WriteZeroes(bytes));
            }
            Piece::WriteZeroes(bytes) if bytes.end - bytes.start > ZERO_BYTES => {
                self.pieces.push_front(Piece::WriteZeroes(bytes.start + ZERO_BYTES..bytes.end));
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

/// What lies of a range before and behind another.
pub fn around(range: &Range<u64>, other: &Range<u64>) -> Vec<Range<u64>> {
    let before = range.start..range.end.min(other.start);
    let behind = range.start.max(other.end)..range.end;
    [before, behind].into_iter().filter(|part| part.start < part.end).collect()
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
        let mut pieces = Pieces::new(&mut request, 14, VOLUME, &[]);
        let mut open = OpenRequest::new(request, 0);
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
        let mut pieces = Pieces::new(&mut request, 14, VOLUME, &[]);
        let mut open = OpenRequest::new(request, 0);
        let ended = pieces.end_op(&mut open, Buffer::default(), Some(IoError::IO));
        assert_eq!(ended, Err(IoError::IO));
    }

    /// What a request writes of a page of ones, where some bytes are to stay.
    fn written(op: BlockOp, bytes: Range<u64>, spared: &[Range<u64>]) -> Vec<(u64, Vec<u8>)> {
        let mut request = request(op, bytes.start, bytes.end - bytes.start);
        request.data = Buffer::copy_of(&vec![7; request.length as usize]);
        let mut pieces = Pieces::new(&mut request, 12, VOLUME, spared);
        let mut open = OpenRequest::new(request, 0);
        let (mut written, mut kept) = (Vec::new(), None);
        while let Some(next) = pieces.next_op(FileId(0), &mut kept) {
            let mut data = Buffer::default();
            match next {
                IoOp::Read { mut buffer, .. } => {
                    buffer.fill(1);
                    data = buffer;
                }
                IoOp::Write { offset, buffer, .. } => written.push((offset, buffer.to_vec())),
                IoOp::Zero { offset, length, .. } => {
                    written.push((offset, vec![0; length as usize]));
                }
                IoOp::Discard { offset, length, .. } => {
                    written.push((offset, vec![9; length as usize]));
                }
                _ => {}
            }
            assert_eq!(pieces.end_op(&mut open, data, None), Ok(()));
        }
        written.sort_unstable();
        written
    }

    fn only(bytes: Range<u64>) -> Vec<Range<u64>> {
        vec![bytes]
    }

    #[test]
    fn bytes_that_later_requests_have_written_are_left_out() {
        let page = |value: u8| vec![value; 4096];
        let all = written(BlockOp::Write, 0..8192, &[]);
        assert_eq!(all, [(0, vec![7; 8192])]);
        let second = written(BlockOp::Write, 0..8192, &only(0..4096));
        assert_eq!(second, [(4096, page(7))]);
        assert_eq!(
            written(BlockOp::Zero, 0..12288, &only(4096..8192)),
            [(0, page(0)), (8192, page(0))]
        );
        assert_eq!(written(BlockOp::Trim, 0..8192, &only(512..1024)), [(4096, page(9))]);
        assert_eq!(written(BlockOp::Zero, 0..4096, &[0..4096, 8192..12288]), []);
        let mut part = page(7);
        part[512..1024].fill(1);
        assert_eq!(written(BlockOp::Write, 0..4096, &only(512..1024)), [(0, part.clone())]);
        part[2048..4096].fill(1);
        let two = [512..1024, 2048..4096];
        assert_eq!(written(BlockOp::Write, 0..4096, &two), [(0, part)]);
    }
}
