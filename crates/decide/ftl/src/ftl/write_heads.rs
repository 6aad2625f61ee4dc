//! The superblocks that streams write to, and those that are free for them.
//!
//! For: the next address of each stream, and the superblock that a stream opens next: the one free
//! for longest, which levels wear. Must never know: which pages are written, victims, clocks.
//! Units: addresses, superblocks.

use super::extra_meta::ExtraMetaPage;
use crate::separation::Stream;
use std::collections::VecDeque;

/// The open superblock of a stream: addresses left to write.
#[derive(Clone, Copy, Debug, Default)]
struct OpenSuperblock {
    next: u32,
    end: u32,
}

/// Where streams write, and free superblocks.
#[derive(Clone, Debug)]
pub(super) struct WriteHeads {
    heads: Vec<OpenSuperblock>,
    /// The one free for longest first.
    free: VecDeque<u32>,
    extra_meta: ExtraMetaPage,
}

impl WriteHeads {
    /// No superblock is open or free. `extra_meta` of all hold one page of metadata more.
    pub(super) fn new(streams: u32, extra_meta: f64) -> WriteHeads {
        WriteHeads {
            heads: vec![OpenSuperblock::default(); streams as usize],
            free: VecDeque::new(),
            extra_meta: ExtraMetaPage::new(extra_meta),
        }
    }

    /// Bytes of both lists.
    pub(super) fn held_bytes(&self) -> usize {
        size_of_val(self.heads.as_slice()) + self.free.capacity() * size_of::<u32>()
    }

    /// How many streams there are.
    pub(super) fn streams(&self) -> u32 {
        self.heads.len() as u32
    }

    /// The stream meant: the last one for a number beyond it.
    #[inline(always)]
    pub(super) fn stream(&self, wanted: Stream) -> Stream {
        Stream(wanted.0.min((self.heads.len() - 1) as u8))
    }

    /// Free superblocks.
    #[inline(always)]
    pub(super) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// A superblock is free from now on.
    pub(super) fn release(&mut self, block: u32) {
        self.free.push_back(block);
    }

    /// Takes the superblock that has been free for longest.
    pub(super) fn take_free(&mut self) -> Option<u32> {
        self.free.pop_front()
    }

    /// Whether the stream meant needs a superblock before its next page, and none is free.
    #[inline(always)]
    pub(super) fn is_stuck(&self, wanted: Stream) -> bool {
        let head = self.heads[wanted.index().min(self.heads.len() - 1)];
        head.next == head.end && self.free.is_empty()
    }

    /// The next address of the stream meant, and whether it is the last of its superblock; nothing
    /// if it needs a superblock first.
    #[inline(always)]
    pub(super) fn take(&mut self, wanted: Stream) -> Option<(u32, bool)> {
        let last = self.heads.len() - 1;
        let head = &mut self.heads[wanted.index().min(last)];
        if head.next == head.end {
            return None;
        }
        let address = head.next;
        head.next = address + 1;
        Some((address, address + 1 == head.end))
    }

    /// A stream writes to so many addresses of a new superblock, less one where the superblock
    /// holds a page of metadata more.
    pub(super) fn open(&mut self, stream: Stream, first: u32, pages: u32) {
        let end = first + pages - u32::from(self.extra_meta.take_due());
        self.heads[stream.index()] = OpenSuperblock { next: first, end };
    }

    /// A stream writes to the rest of a superblock that was filled in part.
    pub(super) fn go_on(&mut self, stream: Stream, next: u32, end: u32) {
        self.heads[stream.index()] = OpenSuperblock { next, end };
    }

    /// A stream has filled its superblock; the last address.
    pub(super) fn close(&mut self, stream: Stream) -> u32 {
        std::mem::take(&mut self.heads[stream.index()]).end - 1
    }

    /// The highest stream that needs no superblock.
    pub(super) fn last_with_space(&self) -> Option<Stream> {
        let stream = self.heads.iter().rposition(|head| head.next != head.end)?;
        Some(Stream(stream as u8))
    }

    /// The next address of a stream, if it writes to the superblock that ends at `end`.
    pub(super) fn next_before(&self, stream: Stream, end: u32) -> Option<u32> {
        let head = self.heads[stream.index()];
        let extra = !self.extra_meta.never() && head.end + 1 == end;
        (head.end == end || extra).then_some(head.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_fills_one_superblock_after_the_other() {
        let mut heads = WriteHeads::new(2, 0.5);
        let stream = heads.stream(Stream(9));
        assert_eq!((stream, heads.streams(), heads.last_with_space()), (Stream(1), 2, None));
        [4, 7].into_iter().for_each(|block| heads.release(block));
        assert_eq!((heads.take_free(), heads.free()), (Some(4), 1));
        assert_eq!((heads.take(stream), heads.is_stuck(stream)), (None, false));
        heads.open(stream, 40, 2);
        assert_eq!(heads.last_with_space(), Some(stream));
        assert_eq!(
            (heads.take(stream), heads.take(Stream(9))),
            (Some((40, false)), Some((41, true)))
        );
        assert_eq!((heads.close(stream), heads.last_with_space()), (41, None));
        heads.open(stream, 70, 2);
        assert_eq!(heads.next_before(stream, 72), Some(70), "its last page is of metadata");
        assert_eq!(heads.next_before(stream, 73), None);
        assert_eq!((heads.take(stream), heads.close(stream)), (Some((70, true)), 70));
        heads.go_on(Stream(0), 81, 82);
        assert_eq!((heads.take(Stream(0)), heads.take(Stream(0))), (Some((81, true)), None));
    }
}
