//! What a request past the cache does on its backing device: operations on whole pages, one behind
//! the other. Units: bytes, pages.

use super::super::request::{BlockOp, BlockRequest};
use super::super::volumes::covered;
use crate::io::ALIGNMENT;
use cachewright_types::whole_block_numbers;
use std::ops::Range;

const PAGE_BYTES: u64 = ALIGNMENT as u64;

/// One operation of a request, about whole pages, or to the end of the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Read(Range<u64>),
    /// Pages are read; the request's bytes are laid over them, and they are written.
    Merge(Range<u64>),
    /// Pages that are the request's own are written.
    Write(Range<u64>),
    Zero(Range<u64>),
    Provision(Range<u64>),
    Discard(Range<u64>),
}

/// What is done for a request, of a volume of `volume_bytes` with blocks of `1 << shift` bytes.
/// Bytes in `spared` stay as they are.
pub fn pieces_of(
    request: &BlockRequest,
    shift: u32,
    volume_bytes: u64,
    spared: &[Range<u64>],
) -> Vec<Piece> {
    let bytes = request.offset..request.offset + request.length;
    let last = match bytes.end == volume_bytes {
        true => bytes.end,
        false => bytes.end / PAGE_BYTES * PAGE_BYTES,
    };
    let whole = bytes.start.next_multiple_of(PAGE_BYTES)..last;
    let pages = pages_of(&bytes);
    let pages = pages.start..pages.end.min(volume_bytes);
    let mut pieces = match request.op {
        BlockOp::Flush => Vec::new(),
        BlockOp::Read => vec![Piece::Read(pages)],
        BlockOp::Write if pages == bytes && spared.is_empty() => vec![Piece::Write(pages)],
        BlockOp::Write => vec![Piece::Merge(pages)],
        BlockOp::Trim => {
            let bytes = covered(bytes, volume_bytes, 1 << shift);
            let blocks = whole_block_numbers(bytes.start, bytes.end - bytes.start, shift);
            let bytes = blocks.start << shift..(blocks.end << shift).min(volume_bytes);
            (!blocks.is_empty()).then_some(Piece::Discard(bytes)).into_iter().collect()
        }
        BlockOp::Zero | BlockOp::Provision if whole.is_empty() => vec![Piece::Merge(pages)],
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
    for bytes in spared {
        pieces =
            pieces.into_iter().flat_map(|piece| leave_out(piece, bytes, volume_bytes)).collect();
    }
    pieces
}

/// A piece that leaves some bytes as they are. Of pages that hold others as well the rest is
/// written; a trim leaves all of such a page.
fn leave_out(piece: Piece, bytes: &Range<u64>, volume_bytes: u64) -> Vec<Piece> {
    let inner = bytes.start.next_multiple_of(PAGE_BYTES)..match bytes.end >= volume_bytes {
        true => volume_bytes,
        false => bytes.end / PAGE_BYTES * PAGE_BYTES,
    };
    // Without a whole page nothing lies within.
    let inner = inner.start..inner.end.max(inner.start);
    let outer = pages_of(bytes);
    let is_trim = matches!(piece, Piece::Discard(_));
    let (range, same): (_, fn(Range<u64>) -> Piece) = match piece {
        Piece::Read(_) => return vec![piece],
        Piece::Merge(range) => (range, Piece::Merge),
        Piece::Write(range) => (range, Piece::Merge),
        Piece::Zero(range) => (range, Piece::Zero),
        Piece::Provision(range) => (range, Piece::Provision),
        Piece::Discard(range) => (range, Piece::Discard),
    };
    let mut left: Vec<Piece> = around(&range, &outer).into_iter().map(same).collect();
    let shared = range.start.max(outer.start)..range.end.min(outer.end);
    if is_trim || shared.start >= shared.end {
        return left;
    }
    match inner.is_empty() {
        true => left.push(Piece::Merge(shared)),
        false => left.extend(around(&shared, &inner).into_iter().map(Piece::Merge)),
    }
    left
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
    use crate::io::Buffer;
    use cachewright_types::TenantId;

    fn pieces(op: BlockOp, bytes: Range<u64>, shift: u32, spared: &[Range<u64>]) -> Vec<Piece> {
        let (tag, tenant, durable, data) = (0, TenantId(0), false, Buffer::default());
        let (offset, length) = (bytes.start, bytes.end - bytes.start);
        let request = BlockRequest { tag, tenant, op, offset, length, durable, data };
        pieces_of(&request, shift, VOLUME, spared)
    }

    /// Bytes of a volume.
    const VOLUME: u64 = (8 << 20) + 512;
    const PAGE: u64 = PAGE_BYTES;

    #[test]
    fn edges_are_merged_and_the_rest_is_zeroed() {
        let of = |op, bytes| pieces(op, bytes, 14, &[]);
        assert_eq!(of(BlockOp::Flush, 0..0), []);
        assert_eq!(of(BlockOp::Read, 5..6), [Piece::Read(0..PAGE)]);
        assert_eq!(of(BlockOp::Write, 0..PAGE), [Piece::Write(0..PAGE)]);
        assert_eq!(of(BlockOp::Write, 1..PAGE), [Piece::Merge(0..PAGE)]);
        assert_eq!(of(BlockOp::Trim, 0..1 << 14), [Piece::Discard(0..1 << 14)]);
        assert_eq!(of(BlockOp::Trim, 1..1 << 14), [], "no whole block");
        let end = PAGE + (1 << 20);
        let zeroed = [Piece::Merge(0..PAGE), Piece::Zero(PAGE..end)];
        assert_eq!(of(BlockOp::Zero, PAGE - 1..end), zeroed);
        let last = VOLUME - 512;
        assert_eq!(of(BlockOp::Read, last + 1..last + 2), [Piece::Read(last..VOLUME)]);
        assert_eq!(of(BlockOp::Zero, last..VOLUME), [Piece::Zero(last..VOLUME)]);
        let tail = [Piece::Merge(last..VOLUME)];
        assert_eq!(of(BlockOp::Provision, last + 1..VOLUME), tail, "no part is written alone");
        let both = [Piece::Merge(last - PAGE..VOLUME)];
        assert_eq!(of(BlockOp::Zero, last - 1..last + 1), both);
    }

    #[test]
    fn bytes_that_later_requests_have_written_are_left_out() {
        let of = |op, bytes, spared: &[Range<u64>]| pieces(op, bytes, 12, spared);
        let first = |bytes: Range<u64>| vec![bytes];
        assert_eq!(
            of(BlockOp::Write, 0..2 * PAGE, &first(0..PAGE)),
            [Piece::Merge(PAGE..2 * PAGE)]
        );
        assert_eq!(
            of(BlockOp::Zero, 0..3 * PAGE, &first(PAGE..2 * PAGE)),
            [Piece::Zero(0..PAGE), Piece::Zero(2 * PAGE..3 * PAGE)]
        );
        let trimmed = of(BlockOp::Trim, 0..2 * PAGE, &first(512..1024));
        assert_eq!(trimmed, [Piece::Discard(PAGE..2 * PAGE)]);
        assert_eq!(of(BlockOp::Zero, 0..PAGE, &[0..PAGE, 2 * PAGE..3 * PAGE]), []);
        let part = [Piece::Merge(0..PAGE)];
        assert_eq!(of(BlockOp::Write, 0..PAGE, &first(512..1024)), part);
        assert_eq!(of(BlockOp::Zero, 0..PAGE, &first(512..1024)), part, "pages are merged");
    }
}
