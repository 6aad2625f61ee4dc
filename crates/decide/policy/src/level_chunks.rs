//! Ordered lists in chunks, for levels that are evened out often.
//!
//! For: the queues of `levels`. Must never know: caches, regions, periods. Each list is a chain of
//! chunks of up to [`CHUNK`] entries, and an entry knows its chunk and its slot there. A chunk
//! knows its list, so that a run of entries goes from list to list chunk by chunk, and the entries
//! themselves are visited at the ends of the run only. Two neighbouring chunks of a list hold more
//! than half a chunk together. Cost: O(1) amortised per entry put or taken; one visit per chunk
//! spliced. Memory: 4 bytes and a tag per id, 5 to 20 bytes per entry. Unit: entries.

use crate::levels::{LEVELS, LevelLook, LevelStore};
use crate::segments::Segments;
use cachewright_types::BlockId;

/// Entries of a chunk.
const CHUNK: u32 = u32::BITS;
/// Chunks that hold no more than this together become one.
const SPARSE: u32 = CHUNK / 2;
/// The place of an entry of no list: in a sentinel, where no entry is.
const OUT: u32 = 0;
/// The most chunks, so that a place has 32 bits.
const MAX_CHUNKS: u32 = 1 << (u32::BITS - CHUNK.ilog2());

/// An end of a list, as the index of a link: from there inwards links of this index lead, outwards
/// those of the other.
type End = usize;
const OLDEST: End = 0;
const NEWEST: End = 1;

/// Where each entry of some lists lies: a number that the lists write and read.
pub trait Places {
    /// The place of an id; 0 for one in no list.
    fn place(&self, entry: u32) -> u32;
    /// Notes the place of an id.
    fn set_place(&mut self, entry: u32, place: u32);
    /// Two bits that the chunk keeps as well, to be told of whole chunks. They stay as they are
    /// while the entry is in a list.
    fn marks(&self, _: u32) -> [bool; 2] {
        [false; 2]
    }
}

/// What one array knows of an id: its place, and a tag of the policy's choosing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Placed<T> {
    place: u32,
    /// The tag.
    pub tag: T,
}

impl<T> Places for &mut [Placed<T>] {
    #[inline(always)]
    fn place(&self, entry: u32) -> u32 {
        self[entry as usize].place
    }
    #[inline(always)]
    fn set_place(&mut self, entry: u32, place: u32) {
        self[entry as usize].place = place;
    }
}

/// A chunk but for its entries. Chunks `0..LISTS` are the sentinels of circular lists.
#[derive(Clone, Copy, Debug)]
struct ChunkHead {
    /// The neighbours: the newer, the older. Of a sentinel: the oldest, the newest.
    links: [u32; 2],
    /// One bit per slot that has an entry; the newer the entry, the higher the bit.
    live: u32,
    list: u32,
    /// One bit per slot for each mark.
    marks: [u32; 2],
}

impl ChunkHead {
    /// The slot of the entry at an end.
    #[inline(always)]
    fn last_slot(&self, end: End) -> u32 {
        if end == NEWEST { self.live.ilog2() } else { self.live.trailing_zeros() }
    }

    /// The free slot beyond the entry at an end.
    #[inline(always)]
    fn free_slot(&self, end: End) -> Option<u32> {
        if end == NEWEST {
            CHUNK.checked_sub(self.live.leading_zeros()).filter(|slot| *slot < CHUNK)
        } else {
            self.live.trailing_zeros().checked_sub(1)
        }
    }
}

/// `LISTS` lists of entries whose places stand elsewhere.
#[derive(Clone, Debug)]
pub struct ChunkLists<const LISTS: usize> {
    heads: Segments<ChunkHead>,
    /// The entries of each chunk by slot.
    entries: Segments<[u32; CHUNK as usize]>,
    /// The first chunk out of use; they are linked through `links[0]`.
    free: u32,
    lens: [u32; LISTS],
}

impl<const L: usize> Default for ChunkLists<L> {
    fn default() -> Self {
        let (heads, entries) = (Segments::default(), Segments::default());
        let mut chunks = ChunkLists { heads, entries, free: OUT, lens: [0; L] };
        (0..L as u32).for_each(|list| chunks.add_chunk(list));
        chunks
    }
}

/// Lists with the places of their entries: what changes them.
pub struct Chunked<'a, P, const L: usize> {
    /// The places.
    pub places: P,
    /// The lists.
    pub lists: &'a mut ChunkLists<L>,
}

/// Lists over one array of ids, each with a tag.
#[derive(Clone, Debug, Default)]
pub struct LevelChunks<T, const L: usize> {
    nodes: Vec<Placed<T>>,
    /// The lists, to look at.
    pub lists: ChunkLists<L>,
}

impl<T: Copy + Default, const L: usize> LevelChunks<T, L> {
    /// Makes room for ids `0..count`.
    pub fn reserve_ids(&mut self, count: usize) {
        self.nodes.resize(count.max(self.nodes.len()), Placed::default());
    }

    /// Whether the entry is in some list.
    #[inline(always)]
    pub fn linked(&self, entry: BlockId) -> bool {
        self.nodes[entry.index()].place != OUT
    }

    /// The level of an entry of some list.
    #[inline(always)]
    pub fn level(&self, entry: BlockId) -> u8 {
        self.lists.level_at(self.nodes[entry.index()].place)
    }

    /// What is known of an id.
    #[inline(always)]
    pub fn tag(&self, entry: BlockId) -> T {
        self.nodes[entry.index()].tag
    }

    /// The same, to change.
    #[inline(always)]
    pub fn tag_mut(&mut self, entry: BlockId) -> &mut T {
        &mut self.nodes[entry.index()].tag
    }

    /// A value that depends on the entry's node: loads it ahead of use.
    #[inline(always)]
    pub fn touch(&self, entry: BlockId) -> u32 {
        self.nodes[entry.index()].place
    }

    /// The lists, to change.
    #[inline(always)]
    pub fn store(&mut self) -> Chunked<'_, &mut [Placed<T>], L> {
        Chunked { places: &mut self.nodes, lists: &mut self.lists }
    }

    /// Checks that lists and nodes agree.
    pub fn audit(&self) -> Result<(), String> {
        self.lists.audit(|entry| (self.nodes[entry as usize].place, [false; 2]))?;
        let nodes = self.nodes.iter().filter(|node| node.place != OUT).count();
        let linked: u32 = self.lists.lens.iter().sum();
        if nodes == linked as usize { Ok(()) } else { Err(format!("{nodes} places, {linked}")) }
    }
}

impl<const L: usize> ChunkLists<L> {
    /// The entries of `list` from newest to oldest.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = BlockId> + '_ {
        self.chunks(list).flat_map(move |chunk| {
            let head = &self.heads[chunk as usize];
            let live = |slot: &u32| head.live >> slot & 1 == 1;
            let entry = move |slot| BlockId(self.entries[chunk as usize][slot as usize]);
            (0..CHUNK).rev().filter(live).map(entry)
        })
    }

    /// The level of what lies at a place, which must be in some list.
    #[inline(always)]
    pub fn level_at(&self, place: u32) -> u8 {
        (self.heads[(place / CHUNK) as usize].list as usize % LEVELS) as u8
    }

    /// The chunks of `list` from newest to oldest.
    fn chunks(&self, list: usize) -> impl Iterator<Item = u32> + '_ {
        let chunk = move |chunk: u32| (chunk as usize >= L).then_some(chunk);
        let newest = chunk(self.heads[list].links[NEWEST]);
        std::iter::successors(newest, move |next| chunk(self.heads[*next as usize].links[NEWEST]))
    }

    /// The entry at an end of a list.
    #[inline(always)]
    fn last(&self, list: usize, end: End) -> Option<BlockId> {
        let chunk = self.heads[list].links[end] as usize;
        if chunk < L {
            return None;
        }
        let slot = self.heads[chunk].last_slot(end);
        Some(BlockId(self.entries[chunk][slot as usize]))
    }

    fn add_chunk(&mut self, list: u32) {
        let chunk = self.heads.len() as u32;
        assert!(chunk < MAX_CHUNKS, "there are at most {MAX_CHUNKS} chunks of entries");
        self.heads.push(ChunkHead { links: [chunk; 2], live: 0, list, marks: [0; 2] });
        self.entries.push([0; CHUNK as usize]);
    }

    /// A chunk without entries, linked at an end of a list.
    fn new_chunk(&mut self, list: usize, end: End) -> u32 {
        if self.free == OUT {
            self.free = self.heads.len() as u32;
            self.add_chunk(0);
            let added = self.free as usize;
            self.heads[added].links[0] = OUT;
        }
        let chunk = self.free;
        let head = &mut self.heads[chunk as usize];
        self.free = head.links[0];
        (head.live, head.list) = (0, list as u32);
        let last = self.heads[list].links[end];
        self.join(list as u32, chunk, end);
        self.join(chunk, last, end);
        chunk
    }

    /// Links two chunks; seen from an end of the list `outer` comes first.
    #[inline(always)]
    fn join(&mut self, outer: u32, inner: u32, end: End) {
        self.heads[outer as usize].links[end] = inner;
        self.heads[inner as usize].links[1 - end] = outer;
    }

    fn drop_chunk(&mut self, chunk: u32) {
        let [newer, older] = self.heads[chunk as usize].links;
        self.join(newer, older, NEWEST);
        self.heads[chunk as usize].links[0] = self.free;
        self.free = chunk;
    }

    /// Checks that chunks, places and lengths agree, and that chunks are dense enough. `known` says
    /// the place and the marks of an entry. Errors: the rule broken, in words.
    pub fn audit(&self, known: impl Fn(u32) -> (u32, [bool; 2])) -> Result<(), String> {
        for list in 0..L {
            let (mut count, mut outer, mut before) = (0, list as u32, CHUNK);
            for chunk in self.chunks(list) {
                let head = &self.heads[chunk as usize];
                let here = head.live.count_ones();
                if head.links[OLDEST] != outer || head.list as usize != list || here == 0 {
                    return Err(format!("list {list}: chunk {chunk} is wrongly linked"));
                }
                if here + before <= SPARSE {
                    return Err(format!("list {list}: chunk {chunk} and the one before are sparse"));
                }
                (count, outer, before) = (count + here, chunk, here);
                for slot in (0..CHUNK).filter(|slot| head.live >> slot & 1 == 1) {
                    let here = (chunk * CHUNK + slot, head.marks.map(|bits| bits >> slot & 1 == 1));
                    if known(self.entries[chunk as usize][slot as usize]) != here {
                        return Err(format!("list {list}: slot {slot} of chunk {chunk} is wrong"));
                    }
                }
            }
            if count != self.lens[list] || self.heads[list].links[OLDEST] != outer {
                return Err(format!("list {list}: {count} entries, {} counted", self.lens[list]));
            }
        }
        Ok(())
    }
}

impl<P: Places, const L: usize> Chunked<'_, P, L> {
    /// Writes an entry into a slot, with the marks given.
    #[inline(always)]
    fn write(&mut self, (chunk, slot): (u32, u32), entry: u32, marks: [bool; 2]) {
        let head = &mut self.lists.heads[chunk as usize];
        head.live |= 1 << slot;
        for (bits, mark) in head.marks.iter_mut().zip(marks) {
            *bits = *bits & !(1 << slot) | u32::from(mark) << slot;
        }
        self.lists.entries[chunk as usize][slot as usize] = entry;
        self.places.set_place(entry, chunk * CHUNK + slot);
    }

    /// A free slot at an end of a list.
    #[inline(always)]
    fn make_slot(&mut self, list: usize, end: End) -> (u32, u32) {
        let chunk = self.lists.heads[list].links[end];
        if chunk as usize >= L {
            if let Some(slot) = self.lists.heads[chunk as usize].free_slot(end) {
                return (chunk, slot);
            }
            let count = self.lists.heads[chunk as usize].live.count_ones();
            if count <= SPARSE {
                self.pack(chunk, 1 - end);
                return (chunk, if end == NEWEST { count } else { CHUNK - 1 - count });
            }
        }
        (self.lists.new_chunk(list, end), if end == NEWEST { 0 } else { CHUNK - 1 })
    }

    /// Moves the entries of a chunk to the slots at one of its ends.
    fn pack(&mut self, chunk: u32, end: End) {
        let lists = &mut *self.lists;
        let (old, entries) = (lists.heads[chunk as usize], lists.entries[chunk as usize]);
        let mut rest = old.live;
        lists.heads[chunk as usize].live = 0;
        for index in 0..old.live.count_ones() {
            let from = if end == OLDEST { rest.trailing_zeros() } else { rest.ilog2() };
            rest &= !(1 << from);
            let to = if end == OLDEST { index } else { CHUNK - 1 - index };
            let marks = old.marks.map(|bits| bits >> from & 1 == 1);
            self.write((chunk, to), entries[from as usize], marks);
        }
    }

    /// Moves the entries of `inner` into its neighbour `outer`, which lies nearer to `end`, if both
    /// are sparse.
    fn merge(&mut self, outer: u32, inner: u32, end: End) {
        if (outer as usize) < L || (inner as usize) < L {
            return;
        }
        let [into, from] = [outer, inner].map(|chunk| self.lists.heads[chunk as usize].live);
        let count = from.count_ones();
        if into.count_ones() + count > SPARSE {
            return;
        }
        let room = if end == OLDEST { into.leading_zeros() } else { into.trailing_zeros() };
        if room < count {
            self.pack(outer, end);
        }
        for _ in 0..count {
            if let Some(slot) = self.lists.heads[outer as usize].free_slot(1 - end) {
                self.carry(inner, end, (outer, slot));
            }
        }
        self.lists.drop_chunk(inner);
    }

    /// Moves the entry at an end of a chunk to a free slot of another.
    #[inline(always)]
    fn carry(&mut self, from: u32, end: End, free: (u32, u32)) {
        let head = &mut self.lists.heads[from as usize];
        let slot = head.last_slot(end);
        head.live &= !(1 << slot);
        let marks = head.marks.map(|bits| bits >> slot & 1 == 1);
        let entry = self.lists.entries[from as usize][slot as usize];
        self.write(free, entry, marks);
    }

    /// An entry has left a slot of a chunk.
    #[inline(always)]
    fn clear(&mut self, chunk: u32, slot: u32) {
        let head = &mut self.lists.heads[chunk as usize];
        head.live &= !(1 << slot);
        let list = head.list as usize;
        self.lists.lens[list] -= 1;
        self.close_up(chunk);
    }

    /// Merges a chunk with a neighbour if they have become sparse.
    #[inline(always)]
    fn close_up(&mut self, chunk: u32) {
        let head = &self.lists.heads[chunk as usize];
        if head.live.count_ones() <= SPARSE {
            let [newer, older] = head.links;
            self.close_up_sparse(chunk, newer, older);
        }
    }

    fn close_up_sparse(&mut self, chunk: u32, newer: u32, older: u32) {
        if self.lists.heads[chunk as usize].live == 0 {
            self.lists.drop_chunk(chunk);
            self.merge(newer, older, NEWEST);
        } else {
            self.merge(chunk, older, NEWEST);
            self.merge(newer, chunk, NEWEST);
        }
    }

    /// Moves the `count` oldest entries of `from` to the newest end of `to`, in their order; `note`
    /// takes the slots that move of each chunk, a bit each, and its marks. Costs one visit per chunk.
    pub fn splice_oldest(
        &mut self,
        (from, to): (usize, usize),
        count: u32,
        note: impl FnMut(u32, &[u32; 2]),
    ) {
        self.splice((from, to), OLDEST, count, note);
    }

    /// Moves the `count` newest entries of `from` to the oldest end of `to` in the same way.
    pub fn splice_newest(
        &mut self,
        (from, to): (usize, usize),
        count: u32,
        note: impl FnMut(u32, &[u32; 2]),
    ) {
        self.splice((from, to), NEWEST, count, note);
    }

    #[inline(always)]
    fn splice(
        &mut self,
        (from, to): (usize, usize),
        end: End,
        count: u32,
        mut note: impl FnMut(u32, &[u32; 2]),
    ) {
        let lists = &mut *self.lists;
        debug_assert!(from != to && count <= lists.lens[from], "only what is there can be moved");
        lists.lens[from] -= count;
        lists.lens[to] += count;
        let first = lists.heads[from].links[end];
        let (mut next, mut rest) = (first, count);
        while rest > 0 && lists.heads[next as usize].live.count_ones() <= rest {
            let head = &mut lists.heads[next as usize];
            rest -= head.live.count_ones();
            head.list = to as u32;
            note(head.live, &head.marks);
            next = head.links[end];
        }
        if next != first {
            let last = lists.heads[next as usize].links[1 - end];
            let before = lists.heads[to].links[1 - end];
            lists.join(from as u32, next, end);
            lists.join(before, first, end);
            lists.join(last, to as u32, end);
            self.merge(before, first, end);
        }
        for _ in 0..rest {
            let head = &self.lists.heads[next as usize];
            note(1 << head.last_slot(end), &head.marks);
            let free = self.make_slot(to, 1 - end);
            self.carry(next, end, free);
        }
        if rest > 0 {
            self.close_up(next);
        }
    }
}

impl<const L: usize> LevelLook for ChunkLists<L> {
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

impl<P: Places, const L: usize> LevelStore for Chunked<'_, P, L> {
    #[inline(always)]
    fn put_newest(&mut self, list: usize, entry: BlockId) {
        debug_assert!(self.places.place(entry.0) == OUT, "an entry is in at most one list");
        let free = self.make_slot(list, NEWEST);
        let marks = self.places.marks(entry.0);
        self.write(free, entry.0, marks);
        self.lists.lens[list] += 1;
    }
    fn lower(&mut self, from: usize, to: usize, count: u32) {
        self.splice_oldest((from, to), count, |_, _| {});
    }
    fn raise(&mut self, from: usize, to: usize, count: u32) {
        self.splice_newest((from, to), count, |_, _| {});
    }
    #[inline(always)]
    fn take(&mut self, entry: BlockId) {
        let place = self.places.place(entry.0);
        debug_assert!(place != OUT, "only an entry of a list can be taken out");
        self.places.set_place(entry.0, OUT);
        self.clear(place / CHUNK, place % CHUNK);
    }
    #[inline(always)]
    fn pop_oldest_of(&mut self, list: usize) -> Option<BlockId> {
        let chunk = self.lists.heads[list].links[OLDEST];
        let head = &self.lists.heads[chunk as usize];
        if head.live == 0 {
            return None;
        }
        let slot = head.last_slot(OLDEST);
        let entry = self.lists.entries[chunk as usize][slot as usize];
        self.places.set_place(entry, OUT);
        self.clear(chunk, slot);
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
