//! Long reads and writes cut into shorter ones.
//!
//! For: tenants that send blocks of one size whatever their trace has. Must never know: tenants,
//! times. Unit: bytes. Pieces end at addresses that are multiples of the size, as blocks of a cache
//! do. They keep the time of their request. Trims and flushes stay whole. Only so many pieces are
//! made at a time, so that a long request costs no memory.

use crate::{Batch, Call, Record};
use cachewright_types::Op;

/// Pieces made at a time.
const PIECES: usize = 1 << 13;

/// Requests of which pieces are still to come.
pub(super) struct RequestCutter {
    size_bytes: u64,
    whole: Batch,
    /// The request at hand, and how much of it has been given.
    index: usize,
    given_bytes: u64,
}

impl RequestCutter {
    /// Pieces of at most `size_bytes`, which is at least 1.
    pub(super) fn new(size_bytes: u64) -> RequestCutter {
        RequestCutter {
            size_bytes: size_bytes.max(1),
            whole: Batch::default(),
            index: 0,
            given_bytes: 0,
        }
    }

    /// Takes all requests of `batch`, which is empty then; what was there has been given.
    pub(super) fn take(&mut self, batch: &mut Batch) {
        self.whole.clear();
        std::mem::swap(&mut self.whole, batch);
        (self.index, self.given_bytes) = (0, 0);
    }

    /// Whether all pieces have been given.
    pub(super) fn is_empty(&self) -> bool {
        self.index >= self.whole.len()
    }

    /// Puts the next pieces into `batch`, which is empty.
    pub(super) fn give(&mut self, batch: &mut Batch) {
        while batch.len() < PIECES && !self.is_empty() {
            let record = self.whole.get(self.index);
            let piece = self.piece(record);
            batch.push(piece);
            let call = self.whole.calls.get(self.index).copied();
            // The pause is before the first piece.
            batch.calls.extend(call.map(|call| match self.given_bytes {
                0 => call,
                _ => Call { pause_ns: 0, ..call },
            }));
            self.given_bytes += piece.length_bytes;
            if self.given_bytes >= record.length_bytes {
                (self.index, self.given_bytes) = (self.index + 1, 0);
            }
        }
    }

    fn piece(&self, record: Record) -> Record {
        if !matches!(record.op, Op::Read | Op::Write) {
            return record;
        }
        let offset_bytes = record.offset_bytes.saturating_add(self.given_bytes);
        let to_border = self.size_bytes - offset_bytes % self.size_bytes;
        let length_bytes = to_border.min(record.length_bytes - self.given_bytes);
        Record { offset_bytes, length_bytes, ..record }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces end at multiples of the size, keep the time of their request, and together are the
    /// request; other operations and empty requests stay whole.
    #[test]
    fn long_requests_are_cut_at_multiples_of_a_size() {
        let record = |(time_ns, offset_bytes, length_bytes, op)| Record {
            time_ns,
            offset_bytes,
            length_bytes,
            op,
            volume: 3,
        };
        let long = 10 * (PIECES as u64 + 9);
        let whole = [
            (5, 7, 20, Op::Read),
            (6, 0, 25, Op::Trim),
            (7, 30, 0, Op::Write),
            (8, 10, 10, Op::Write),
            (9, 100, long, Op::Read),
        ];
        let mut batch = Batch::default();
        whole.map(record).into_iter().for_each(|one| batch.push(one));
        batch.calls = (1..=5).map(|pause_ns| Call { process: 9, pause_ns }).collect();
        let mut cut = RequestCutter::new(10);
        cut.take(&mut batch);
        let (mut pieces, mut calls) = (Vec::<Record>::new(), Vec::new());
        while !cut.is_empty() {
            batch.clear();
            cut.give(&mut batch);
            assert!(batch.len() <= PIECES);
            pieces.extend(batch.iter());
            calls.append(&mut batch.calls);
        }
        let pauses: Vec<u64> = calls.iter().map(|call| call.pause_ns).collect();
        assert_eq!((pauses.len(), &pauses[..6]), (pieces.len(), &[1, 0, 0, 2, 3, 4][..]));
        let first = [
            (5, 7, 3, Op::Read),
            (5, 10, 10, Op::Read),
            (5, 20, 7, Op::Read),
            (6, 0, 25, Op::Trim),
            (7, 30, 0, Op::Write),
            (8, 10, 10, Op::Write),
        ];
        assert_eq!(pieces[..6], first.map(record));
        assert_eq!(pieces.len(), 6 + PIECES + 9);
        let rest = |index: usize| record((9, 100 + 10 * index as u64, 10, Op::Read));
        assert!(pieces[6..].iter().enumerate().all(|(index, piece)| *piece == rest(index)));
    }
}
