//! Answers of a server of blocks that were not taken yet.
//!
//! Answers come in the order in which requests end. A request that was divided into pieces has one
//! answer, when all of its pieces have ended.

use super::request::{BlockAnswer, BlockOp, BlockRequest};
use crate::io::{Buffer, IoError};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use slab::Slab;

/// Tags from this one on are those of pieces; requests have smaller ones.
const FIRST_PIECE: u64 = 1 << 63;

/// Answers; see the top of the file.
#[derive(Debug, Default)]
pub struct BlockAnswers {
    ready: Vec<BlockAnswer>,
    /// Requests that were divided.
    divided: Slab<DividedRequest>,
    /// The pieces that have not ended, by their tags.
    pieces: HashMap<u64, RequestPiece, FixedState>,
    /// Pieces that were made so far.
    made: u64,
}

/// A request that was divided into pieces.
#[derive(Debug)]
struct DividedRequest {
    tag: u64,
    /// What was read of it; nothing for other requests.
    data: Buffer,
    /// Pieces that have not ended.
    left: usize,
    /// Why a piece has failed, if one has.
    error: Option<IoError>,
    /// A piece was dropped: there is no answer.
    is_dropped: bool,
}

/// A piece of a request.
#[derive(Clone, Copy, Debug)]
struct RequestPiece {
    /// The request that it is a piece of.
    request: usize,
    /// The first byte of the request's data that is its own.
    start: usize,
}

impl BlockAnswers {
    /// A request ends, or a piece of one.
    pub fn push(&mut self, answer: BlockAnswer) {
        let Some(piece) = self.pieces.remove(&answer.tag) else {
            return self.ready.push(answer);
        };
        let Some(request) = self.divided.get_mut(piece.request) else { return };
        let end = piece.start + answer.data.len();
        if let Some(own) = request.data.get_mut(piece.start..end) {
            own.copy_from_slice(&answer.data);
        }
        request.error = request.error.or(answer.result.err());
        self.end_piece(piece);
    }

    /// A piece has ended: its request has, if it was the last.
    fn end_piece(&mut self, piece: RequestPiece) {
        let Some(request) = self.divided.get_mut(piece.request) else { return };
        request.left -= 1;
        if request.left > 0 {
            return;
        }
        let DividedRequest { tag, data, error, is_dropped, .. } =
            self.divided.remove(piece.request);
        let data = if error.is_none() { data } else { Buffer::default() };
        if !is_dropped {
            self.ready.push(BlockAnswer { tag, result: error.map_or(Ok(()), Err), data });
        }
    }

    /// Divides a request into pieces of so many bytes, a multiple of those of a block, which begin
    /// and end between blocks; the answer comes when all of them have ended.
    pub fn split(&mut self, mut request: BlockRequest, piece_bytes: u64) -> Vec<BlockRequest> {
        let all = std::mem::take(&mut request.data);
        let data = match request.op {
            BlockOp::Read => Buffer::zeroed(request.length as usize),
            _ => Buffer::default(),
        };
        let whole =
            DividedRequest { tag: request.tag, data, left: 0, error: None, is_dropped: false };
        let number = self.divided.insert(whole);
        let (mut pieces, mut start) = (Vec::new(), request.offset);
        let end = request.offset + request.length;
        while start < end {
            let until = (start / piece_bytes + 1).saturating_mul(piece_bytes).min(end);
            let own = (start - request.offset) as usize..(until - request.offset) as usize;
            let tag = FIRST_PIECE | self.made;
            self.made = (self.made + 1) % FIRST_PIECE;
            self.pieces.insert(tag, RequestPiece { request: number, start: own.start });
            let data = all.get(own).map(Buffer::copy_of).unwrap_or_default();
            let (offset, length) = (start, until - start);
            pieces.push(BlockRequest { tag, offset, length, data, ..request.clone() });
            start = until;
        }
        self.divided[number].left = pieces.len();
        pieces
    }

    /// A request that was not decided is dropped: it has no answer. Returns its tag, or that of the
    /// request of which it is a piece; nothing if that is known already.
    pub fn drop_request(&mut self, tag: u64) -> Option<u64> {
        let Some(piece) = self.pieces.remove(&tag) else { return Some(tag) };
        let request = self.divided.get_mut(piece.request)?;
        let is_first = !std::mem::replace(&mut request.is_dropped, true);
        let tag = is_first.then_some(request.tag);
        self.end_piece(piece);
        tag
    }

    /// A request ends with an error, and nothing was done for it.
    pub fn refuse(&mut self, request: &BlockRequest, error: IoError) {
        let answer = BlockAnswer { tag: request.tag, result: Err(error), data: Default::default() };
        self.push(answer);
    }

    /// The answers since the last call.
    pub fn take(&mut self) -> Vec<BlockAnswer> {
        std::mem::take(&mut self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::BlockOp;
    use super::*;
    use cachewright_types::TenantId;

    fn request(op: BlockOp, offset: u64, length: u64) -> BlockRequest {
        let data = match op {
            BlockOp::Write => Buffer::copy_of(&(0..length).map(|at| at as u8).collect::<Vec<_>>()),
            _ => Buffer::default(),
        };
        BlockRequest { tag: 7, tenant: TenantId(1), op, offset, length, durable: true, data }
    }

    #[test]
    fn a_request_in_pieces_has_one_answer_with_all_of_its_data() {
        let mut answers = BlockAnswers::default();
        let pieces = answers.split(request(BlockOp::Read, 4100, 20_000), 8192);
        let ranges: Vec<_> = pieces.iter().map(|piece| (piece.offset, piece.length)).collect();
        assert_eq!(ranges, [(4100, 4092), (8192, 8192), (16384, 7716)]);
        for (number, piece) in pieces.iter().enumerate().rev() {
            assert!(answers.take().is_empty());
            let data = Buffer::copy_of(&vec![number as u8; piece.length as usize]);
            answers.push(BlockAnswer { tag: piece.tag, result: Ok(()), data });
        }
        let whole = answers.take();
        assert_eq!((whole.len(), whole[0].tag, whole[0].result), (1, 7, Ok(())));
        let expected = [vec![0; 4092], vec![1; 8192], vec![2; 7716]].concat();
        assert!(whole[0].data[..] == expected[..]);
    }

    #[test]
    fn pieces_of_a_write_have_their_data_and_one_error_is_that_of_all() {
        let mut answers = BlockAnswers::default();
        let pieces = answers.split(request(BlockOp::Write, 0, 10_000), 4096);
        let data: Vec<u8> = pieces.iter().flat_map(|piece| piece.data.to_vec()).collect();
        assert!(data == request(BlockOp::Write, 0, 10_000).data[..]);
        assert!(pieces.iter().all(|piece| piece.durable && piece.tenant == TenantId(1)));
        answers.refuse(&pieces[1], IoError::NO_SPACE);
        for piece in [&pieces[0], &pieces[2]] {
            let data = Buffer::default();
            answers.push(BlockAnswer { tag: piece.tag, result: Ok(()), data });
        }
        let whole = answers.take();
        assert_eq!((whole.len(), whole[0].result), (1, Err(IoError::NO_SPACE)));
    }

    #[test]
    fn a_request_of_which_a_piece_is_dropped_has_no_answer() {
        let mut answers = BlockAnswers::default();
        assert_eq!(answers.drop_request(3), Some(3));
        let pieces = answers.split(request(BlockOp::Write, 0, 10_000), 4096);
        assert_eq!(answers.drop_request(pieces[1].tag), Some(7));
        assert_eq!(answers.drop_request(pieces[2].tag), None, "it is known");
        let data = Buffer::default();
        answers.push(BlockAnswer { tag: pieces[0].tag, result: Ok(()), data });
        assert!(answers.take().is_empty() && answers.pieces.is_empty());
        assert!(answers.divided.is_empty());
    }
}
