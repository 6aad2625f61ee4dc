//! The blocks that requests touch.
//!
//! For: the recorder. Must never know: ids, columns, tenants. Units: bytes, block numbers.

use cachewright_trace::intern::Interner;
use cachewright_trace::merge::WorkloadBatch;
use cachewright_types::{block_bytes, whole_block_numbers};
use std::ops::Range;

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
pub(crate) struct RequestBlocks {
    kind: BlockKind,
    /// All blocks, request by request.
    numbers: Vec<u64>,
    /// How many blocks each request has.
    counts: Vec<u32>,
}

impl RequestBlocks {
    /// Of no request yet.
    pub fn new(kind: BlockKind) -> RequestBlocks {
        RequestBlocks { kind, numbers: Vec::new(), counts: Vec::new() }
    }

    /// log2 of the block size in bytes; 0 where a block is a request.
    pub fn shift(&self) -> u32 {
        if let BlockKind::Split { shift } = self.kind { shift } else { 0 }
    }

    /// Block numbers of the requests that were expanded last, request by request.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// How many blocks each of these requests has.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Takes the blocks that requests touch; returns whether each touches one, nothing when there
    /// are more than `max_blocks`.
    pub fn expand(
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
    pub fn measure(&self, batch: &WorkloadBatch, range: Range<usize>, out: &mut Vec<u32>) {
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
    pub fn even_bytes(&self, batch: &WorkloadBatch, range: Range<usize>) -> Option<u32> {
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
    pub fn find_trimmed(
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

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Op;

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
