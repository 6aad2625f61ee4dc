//! The chunks and their order.
//!
//! For: looking at lists, and linking chunks. Must never know: where an entry's place is written.
//! Unit: entries.

use super::changes::Chunked;
use super::{
    CHECKED, CHUNK, ChunkTally, End, KINDS, MAX_CHUNKS, NEWEST, OLDEST, OUT, Places, SPARSE,
};
use crate::levels::{LEVELS, LevelLook, LevelStore};
use crate::renumber::Renumbering;
use crate::segments::SegmentedList;
use cachewright_types::BlockId;

/// A chunk but for its entries, which would crowd it out of the processor's cache: it is visited
/// more often. Chunks `0..LISTS` are the sentinels of circular lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk<K> {
    /// The neighbours: the newer, the older. Of a sentinel: the oldest, the newest.
    pub(super) links: [u32; 2],
    /// One bit per slot that has an entry; the newer the entry, the higher the bit.
    pub(super) live: u32,
    pub(super) list: u16,
    /// Entries: not every processor counts bits in one step.
    pub(super) len: u8,
    pub(super) tally: K,
}

impl<K: ChunkTally> Chunk<K> {
    /// The slot of the entry at an end.
    #[inline(always)]
    pub(super) fn last_slot(&self, end: End) -> u32 {
        if end == NEWEST { self.live.ilog2() } else { self.live.trailing_zeros() }
    }

    /// Fills a free slot.
    #[inline(always)]
    pub(super) fn set(&mut self, slot: u32, kind: usize) {
        self.live |= 1 << slot;
        self.len += 1;
        self.tally.set(slot, kind);
    }

    /// Empties a slot; returns the kind of its entry.
    #[inline(always)]
    pub(super) fn clear(&mut self, slot: u32) -> usize {
        self.live &= !(1 << slot);
        self.len -= 1;
        self.tally.clear(slot)
    }

    /// The free slot beyond the entry at an end.
    #[inline(always)]
    pub(super) fn free_slot(&self, end: End) -> Option<u32> {
        if end == NEWEST {
            CHUNK.checked_sub(self.live.leading_zeros()).filter(|slot| *slot < CHUNK)
        } else {
            self.live.trailing_zeros().checked_sub(1)
        }
    }
}

/// `LISTS` lists of entries whose places stand elsewhere.
#[derive(Clone, Debug)]
pub struct ChunkLists<K, const LISTS: usize> {
    /// Reserved with the ids, so that it does not grow between.
    pub(super) chunks: Vec<Chunk<K>>,
    /// The entries of each chunk by slot.
    pub(super) entries: SegmentedList<[u32; CHUNK as usize]>,
    /// The first chunk out of use; they are linked through `links[0]`.
    pub(super) free: u32,
    pub(super) lens: [u32; LISTS],
    /// Of each list, from each end, for each kind: no chunk before this one has an entry of the
    /// kind. A sentinel stands for the whole list.
    pub(super) starts: [[[u32; KINDS]; 2]; LISTS],
}

impl<K: ChunkTally, const L: usize> Default for ChunkLists<K, L> {
    fn default() -> Self {
        let (chunks, entries) = (Vec::new(), SegmentedList::default());
        let starts = [[[OUT; KINDS]; 2]; L];
        let mut lists = ChunkLists { chunks, entries, free: OUT, lens: [0; L], starts };
        (0..L as u32).for_each(|list| lists.add_chunk(list));
        lists
    }
}

impl<K: ChunkTally, const L: usize> ChunkLists<K, L> {
    /// Takes memory for the heads of all chunks that so many entries can need: two neighbours
    /// hold more than ten entries together.
    pub fn reserve(&mut self, entries: usize) {
        let per_pair = (SPARSE - 2 * (CHECKED - 1) + 1) as usize;
        let count = 2 * entries.div_ceil(per_pair) + 2 * L;
        self.chunks.reserve(count.saturating_sub(self.chunks.len()));
    }

    /// The entries of `list` from newest to oldest.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = BlockId> + '_ {
        self.chunks_of(list).flat_map(move |chunk| {
            let live = self.chunks[chunk as usize].live;
            let slots = (0..CHUNK).rev().filter(move |slot| live >> slot & 1 == 1);
            slots.map(move |slot| BlockId(self.entry(chunk, slot)))
        })
    }

    /// Puts all entries, under their new ids, into lists that are empty.
    pub fn put_all<P: Places>(&self, ids: &Renumbering, into: &mut Chunked<'_, P, K, L>) {
        for list in 0..L {
            let entries: Vec<BlockId> = self.iter(list).collect();
            for entry in entries.into_iter().rev().filter_map(|entry| ids.get(entry)) {
                into.put_newest(list, entry);
            }
        }
    }

    /// The level of what lies at a place, which must be in some list.
    #[inline(always)]
    pub fn level_at(&self, place: u32) -> u8 {
        (self.chunks[(place / CHUNK) as usize].list as usize % LEVELS) as u8
    }

    /// The chunks of `list` from newest to oldest.
    pub(super) fn chunks_of(&self, list: usize) -> impl Iterator<Item = u32> + '_ {
        let chunk = move |chunk: u32| (chunk as usize >= L).then_some(chunk);
        let newest = chunk(self.chunks[list].links[NEWEST]);
        std::iter::successors(newest, move |next| chunk(self.chunks[*next as usize].links[NEWEST]))
    }

    /// The entry at an end of a list.
    #[inline(always)]
    pub(super) fn last(&self, list: usize, end: End) -> Option<BlockId> {
        let chunk = self.chunks[list].links[end] as usize;
        (chunk >= L).then(|| BlockId(self.entry(chunk as u32, self.chunks[chunk].last_slot(end))))
    }

    /// The entry in a slot.
    #[inline(always)]
    pub(super) fn entry(&self, chunk: u32, slot: u32) -> u32 {
        self.entries[chunk as usize][(slot % CHUNK) as usize]
    }

    /// The entry of a kind that is the first from an end of a list. Amortised O(1) but after chunks
    /// have come or gone at that end: then the list is searched once.
    pub fn last_of_kind(&mut self, list: usize, end: End, kind: usize) -> Option<BlockId> {
        let mut number = self.starts[list][end][kind];
        if (number as usize) < L {
            number = self.chunks[list].links[end];
        }
        while number as usize >= L && self.chunks[number as usize].tally.lens()[kind] == 0 {
            number = self.chunks[number as usize].links[end];
        }
        self.starts[list][end][kind] = number;
        let chunk = &self.chunks[number as usize];
        let mut rest = chunk.live;
        while rest != 0 {
            let slot = if end == NEWEST { rest.ilog2() } else { rest.trailing_zeros() };
            if chunk.tally.kind(slot) == kind {
                return Some(BlockId(self.entry(number, slot)));
            }
            rest &= !(1 << slot);
        }
        None
    }

    /// An entry of a kind has come in at an end of a list.
    #[inline(always)]
    pub(super) fn note_start(&mut self, list: usize, end: End, kind: usize) {
        if K::COUNTED {
            self.starts[list][end][kind] = OUT;
        }
    }

    fn add_chunk(&mut self, list: u32) {
        let chunk = self.chunks.len() as u32;
        assert!(chunk < MAX_CHUNKS, "there are at most {MAX_CHUNKS} chunks of entries");
        self.chunks.push(Chunk {
            links: [chunk; 2],
            live: 0,
            list: list as u16,
            len: 0,
            tally: K::default(),
        });
        self.entries.push([0; CHUNK as usize]);
    }

    /// A chunk without entries, linked at an end of a list.
    pub(super) fn new_chunk(&mut self, list: usize, end: End) -> u32 {
        if self.free == OUT {
            self.free = self.chunks.len() as u32;
            self.add_chunk(0);
            let added = self.free as usize;
            self.chunks[added].links[0] = OUT;
        }
        let chunk = self.free;
        let head = &mut self.chunks[chunk as usize];
        self.free = head.links[0];
        head.list = list as u16;
        let last = self.chunks[list].links[end];
        self.join(list as u32, chunk, end);
        self.join(chunk, last, end);
        chunk
    }

    /// Links two chunks; seen from an end of the list `outer` comes first.
    #[inline(always)]
    pub(super) fn join(&mut self, outer: u32, inner: u32, end: End) {
        self.chunks[outer as usize].links[end] = inner;
        self.chunks[inner as usize].links[1 - end] = outer;
    }

    pub(super) fn drop_chunk(&mut self, chunk: u32) {
        let Chunk { links: [newer, older], list, .. } = self.chunks[chunk as usize];
        if K::COUNTED {
            let [from_oldest, from_newest] = &mut self.starts[usize::from(list)];
            for (starts, before) in [(from_oldest, older), (from_newest, newer)] {
                for start in starts.iter_mut().filter(|start| **start == chunk) {
                    *start = before;
                }
            }
        }
        self.join(newer, older, NEWEST);
        self.chunks[chunk as usize].links[0] = self.free;
        self.free = chunk;
    }

    /// Checks that chunks, places and lengths agree, and that chunks are dense enough. `known` says
    /// the place and the kind of an entry. Errors: the rule broken, in words.
    pub fn audit(&self, known: impl Fn(u32) -> (u32, usize)) -> Result<(), String> {
        for list in 0..L {
            let (mut count, mut outer, mut before) = (0, list as u32, CHUNK);
            for chunk in self.chunks_of(list) {
                let head = &self.chunks[chunk as usize];
                let here = head.live.count_ones();
                let len = u32::from(head.len);
                if head.links[OLDEST] != outer || usize::from(head.list) != list || here == 0 {
                    return Err(format!("list {list}: chunk {chunk} is wrongly linked"));
                }
                if here + before + 2 * (CHECKED - 1) <= SPARSE {
                    return Err(format!(
                        "list {list}: chunk {chunk} and the one before are sparse"
                    ));
                }
                (count, outer, before) = (count + here, chunk, here);
                let mut kind_lens = [0; KINDS];
                for slot in (0..CHUNK).filter(|slot| head.live >> slot & 1 == 1) {
                    kind_lens[head.tally.kind(slot)] += 1;
                    let here = (chunk * CHUNK + slot, head.tally.kind(slot));
                    if known(self.entry(chunk, slot)) != here {
                        return Err(format!("list {list}: slot {slot} of chunk {chunk} is wrong"));
                    }
                }
                if len != here || K::COUNTED && kind_lens != head.tally.lens() {
                    return Err(format!("list {list}: chunk {chunk} counts {len} of {here}"));
                }
            }
            if count != self.lens[list] || self.chunks[list].links[OLDEST] != outer {
                return Err(format!("list {list}: {count} entries, {} counted", self.lens[list]));
            }
        }
        Ok(())
    }
}

impl<K: ChunkTally, const L: usize> LevelLook for ChunkLists<K, L> {
    #[inline(always)]
    fn count(&self, list: usize) -> u32 {
        self.lens[list]
    }
    #[inline(always)]
    fn newest_of(&self, list: usize) -> Option<BlockId> {
        self.last(list, NEWEST)
    }
    #[inline(always)]
    fn oldest_of(&self, list: usize) -> Option<BlockId> {
        self.last(list, OLDEST)
    }
}
