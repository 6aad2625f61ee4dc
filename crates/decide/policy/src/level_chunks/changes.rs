//! Entries that come, go, and change lists.
//!
//! For: the costs that the top of the folder promises. Must never know: levels' targets. Unit:
//! entries.

use super::lists::{Chunk, ChunkLists};
use super::{CHECKED, CHUNK, ChunkTally, End, KINDS, NEWEST, OLDEST, OUT, Places, SPARSE};
use crate::levels::{LEVELS, LevelLook, LevelStore};
use cachewright_types::BlockId;

/// How an entry has climbed.
pub struct Climb {
    /// The list it was in.
    pub from: usize,
    /// The list it is in.
    pub to: usize,
    /// Its kind.
    pub kind: usize,
    /// The kind of the entry that took its place in `from`, if the other list had one.
    pub other: Option<usize>,
}

/// Lists with the places of their entries: what changes them.
pub struct Chunked<'a, P, K, const L: usize> {
    /// The places.
    pub places: P,
    /// The lists.
    pub lists: &'a mut ChunkLists<K, L>,
}

impl<P: Places, K: ChunkTally, const L: usize> Chunked<'_, P, K, L> {
    /// Writes an entry into a free slot.
    #[inline(always)]
    fn write(&mut self, (chunk, slot): (u32, u32), entry: u32, kind: usize) {
        self.lists.chunks[chunk as usize].set(slot, kind);
        self.note(entry, (chunk, slot));
    }

    /// Puts an entry at an end of a list, whose length stays as it is.
    #[inline(always)]
    fn put(&mut self, list: usize, end: End, entry: u32, kind: usize) {
        let number = self.lists.chunks[list].links[end];
        let chunk = &mut self.lists.chunks[number as usize];
        if let Some(slot) = chunk.free_slot(end)
            && chunk.live != 0
        {
            chunk.set(slot, kind);
            self.note(entry, (number, slot));
        } else {
            let free = self.make_space(list, end, number);
            self.write(free, entry, kind);
        }
        self.lists.note_start(list, end, kind);
    }

    /// Notes an entry and the slot that is now its own.
    #[inline(always)]
    fn note(&mut self, entry: u32, (chunk, slot): (u32, u32)) {
        self.lists.entries[chunk as usize][(slot % CHUNK) as usize] = entry;
        self.places.set_place(entry, chunk * CHUNK + slot);
    }

    /// A free slot at an end of a list, whose chunk there has none, or is the sentinel.
    #[inline(never)]
    fn make_space(&mut self, list: usize, end: End, chunk: u32) -> (u32, u32) {
        let count = u32::from(self.lists.chunks[chunk as usize].len);
        if count > SPARSE || count == 0 {
            let chunk = self.lists.new_chunk(list, end);
            return (chunk, if end == NEWEST { 0 } else { CHUNK - 1 });
        }
        self.pack(chunk, 1 - end);
        (chunk, if end == NEWEST { count } else { CHUNK - 1 - count })
    }

    /// Moves the entries of a chunk to the slots at one of its ends.
    fn pack(&mut self, chunk: u32, end: End) {
        let (old, entries) =
            (self.lists.chunks[chunk as usize], self.lists.entries[chunk as usize]);
        let emptied = Chunk { live: 0, len: 0, tally: K::default(), ..old };
        self.lists.chunks[chunk as usize] = emptied;
        let mut rest = old.live;
        for index in 0..u32::from(old.len) {
            let from = if end == OLDEST { rest.trailing_zeros() } else { rest.ilog2() };
            rest &= !(1 << from);
            let to = if end == OLDEST { index } else { CHUNK - 1 - index };
            self.write((chunk, to), entries[(from % CHUNK) as usize], old.tally.kind(from));
        }
    }

    /// Moves the entries of `inner` into its neighbour `outer`, which lies nearer to `end`, if both
    /// are sparse.
    fn merge(&mut self, outer: u32, inner: u32, end: End) {
        let [into, from] = [outer, inner].map(|chunk| &self.lists.chunks[chunk as usize]);
        let count = u32::from(from.len);
        // A sentinel has no entry.
        if u32::from(into.len) + count > SPARSE || into.len == 0 || count == 0 {
            return;
        }
        let into = into.live;
        let free_bits = if end == OLDEST { into.leading_zeros() } else { into.trailing_zeros() };
        if free_bits < count {
            self.pack(outer, end);
        }
        for _ in 0..count {
            if let Some(slot) = self.lists.chunks[outer as usize].free_slot(1 - end) {
                let source = &mut self.lists.chunks[inner as usize];
                let from = source.last_slot(end);
                let kind = source.clear(from);
                let entry = self.lists.entry(inner, from);
                self.write((outer, slot), entry, kind);
            }
        }
        self.lists.drop_chunk(inner);
    }

    /// An entry has left a slot of a chunk; returns its kind.
    #[inline(always)]
    fn clear(&mut self, number: u32, slot: u32) -> usize {
        let chunk = &mut self.lists.chunks[number as usize];
        let kind = chunk.clear(slot);
        let len = u32::from(chunk.len);
        if len <= SPARSE && len.is_multiple_of(CHECKED) {
            self.close_up(number);
        }
        kind
    }

    /// A chunk has lost so many entries: at every fourth of the last ones it looks at its
    /// neighbours.
    fn thinned(&mut self, chunk: u32, lost: u32) {
        let len = u32::from(self.lists.chunks[chunk as usize].len);
        if len <= SPARSE && len.div_ceil(CHECKED) != (len + lost).div_ceil(CHECKED) {
            self.close_up(chunk);
        }
    }

    /// Merges a chunk with a neighbour if they have become sparse.
    #[inline(never)]
    fn close_up(&mut self, chunk: u32) {
        let Chunk { links: [newer, older], len, .. } = self.lists.chunks[chunk as usize];
        if len == 0 {
            self.lists.drop_chunk(chunk);
            self.merge(newer, older, NEWEST);
        } else {
            self.merge(chunk, older, NEWEST);
            self.merge(newer, chunk, NEWEST);
        }
    }

    /// Moves the `count` oldest entries of `from` to the newest end of `to`, in order; returns how
    /// many of each kind they are. Costs one visit per chunk.
    pub fn splice_oldest(&mut self, from: usize, to: usize, count: u32) -> [u32; KINDS] {
        self.splice((from, to), OLDEST, count)
    }

    /// Moves the `count` newest entries of `from` to the oldest end of `to` in the same way.
    pub fn splice_newest(&mut self, from: usize, to: usize, count: u32) -> [u32; KINDS] {
        self.splice((from, to), NEWEST, count)
    }

    /// Moves the entry at `end` of `from`, which has one, to the other end of `to`; returns its
    /// kind. The lengths stay as they are.
    #[inline(always)]
    fn shift(&mut self, from: usize, to: usize, end: End) -> usize {
        let number = self.lists.chunks[from].links[end];
        let slot = self.lists.chunks[number as usize].last_slot(end);
        let entry = self.lists.entry(number, slot);
        let kind = self.clear(number, slot);
        self.put(to, 1 - end, entry, kind);
        kind
    }

    /// Makes an entry the newest of the list so many levels up, whose oldest, if there is one,
    /// becomes the newest of the list that the entry was in.
    #[inline(always)]
    pub fn climb(&mut self, entry: BlockId, jump: u8) -> Climb {
        let place = self.places.place(entry.0);
        debug_assert!(place != OUT, "only an entry of a list can climb");
        let from = usize::from(self.lists.chunks[(place / CHUNK) as usize].list);
        let to = from + usize::from(jump).min(LEVELS - 1 - from % LEVELS);
        let kind = self.clear(place / CHUNK, place % CHUNK);
        let mut other = None;
        if from != to {
            if self.lists.lens[to] > 0 {
                other = Some(self.shift(to, from, OLDEST));
            } else {
                self.lists.lens[from] -= 1;
                self.lists.lens[to] += 1;
            }
        }
        self.put(to, NEWEST, entry.0, kind);
        Climb { from, to, kind, other }
    }

    #[inline(always)]
    fn splice(&mut self, (from, to): (usize, usize), end: End, count: u32) -> [u32; KINDS] {
        let mut moved = [0; KINDS];
        if count == 1 {
            moved[self.shift(from, to, end) % KINDS] = 1;
            self.lists.lens[from] -= 1;
            self.lists.lens[to] += 1;
            return moved;
        }
        let lists = &mut *self.lists;
        debug_assert!(from != to && count <= lists.lens[from], "only what is there can be moved");
        lists.lens[from] -= count;
        lists.lens[to] += count;
        if K::COUNTED {
            (lists.starts[from], lists.starts[to]) = Default::default();
        }
        let first = lists.chunks[from].links[end];
        let (mut next, mut rest) = (first, count);
        while rest > 0 {
            let chunk = &mut lists.chunks[next as usize];
            if u32::from(chunk.len) > rest {
                break;
            }
            rest -= u32::from(chunk.len);
            chunk.list = to as u16;
            for (sum, len) in moved.iter_mut().zip(chunk.tally.lens()) {
                *sum += u32::from(len);
            }
            next = chunk.links[end];
        }
        if next != first {
            let last = lists.chunks[next as usize].links[1 - end];
            let before = lists.chunks[to].links[1 - end];
            lists.join(from as u32, next, end);
            lists.join(before, first, end);
            lists.join(last, to as u32, end);
            self.merge(before, first, end);
        }
        for _ in 0..rest {
            let source = &mut self.lists.chunks[next as usize];
            let slot = source.last_slot(end);
            let kind = source.clear(slot);
            let entry = self.lists.entry(next, slot);
            self.put(to, 1 - end, entry, kind);
            moved[kind % KINDS] += 1;
        }
        self.thinned(next, rest);
        moved
    }
}

impl<P: Places, K: ChunkTally, const L: usize> LevelStore for Chunked<'_, P, K, L> {
    #[inline(always)]
    fn put_newest(&mut self, list: usize, entry: BlockId) {
        debug_assert!(self.places.place(entry.0) == OUT, "an entry is in at most one list");
        let kind = self.places.kind(entry.0);
        self.put(list, NEWEST, entry.0, kind);
        self.lists.lens[list] += 1;
    }
    fn lower(&mut self, from: usize, to: usize, count: u32) {
        self.splice_oldest(from, to, count);
    }
    fn raise(&mut self, from: usize, to: usize, count: u32) {
        self.splice_newest(from, to, count);
    }
    #[inline(always)]
    fn climb(&mut self, entry: BlockId, jump: u8) -> (usize, usize) {
        let Climb { from, to, .. } = self.climb(entry, jump);
        (from % LEVELS, to % LEVELS)
    }
    #[inline(always)]
    fn take(&mut self, entry: BlockId) {
        let place = self.places.place(entry.0);
        debug_assert!(place != OUT, "only an entry of a list can be taken out");
        self.places.set_place(entry.0, OUT);
        let list = usize::from(self.lists.chunks[(place / CHUNK) as usize].list);
        self.lists.lens[list] -= 1;
        self.clear(place / CHUNK, place % CHUNK);
    }
    #[inline(always)]
    fn pop_oldest_of(&mut self, list: usize) -> Option<BlockId> {
        let number = self.lists.chunks[list].links[OLDEST];
        let chunk = &self.lists.chunks[number as usize];
        if chunk.live == 0 {
            return None;
        }
        let slot = chunk.last_slot(OLDEST);
        let entry = self.lists.entry(number, slot);
        self.places.set_place(entry, OUT);
        self.lists.lens[list] -= 1;
        self.clear(number, slot);
        Some(BlockId(entry))
    }
    #[inline(always)]
    fn level_of(&self, entry: BlockId) -> u8 {
        self.lists.level_at(self.places.place(entry.0))
    }
    #[inline(always)]
    fn look(&self) -> &impl LevelLook {
        &*self.lists
    }
}
