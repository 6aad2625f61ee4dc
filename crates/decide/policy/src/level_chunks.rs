//! Ordered lists in chunks, for levels that are evened out often.
//!
//! For: the queues of `levels`. Must never know: caches, regions, periods. Each list is a chain of
//! chunks of up to [`CHUNK`] entries, and an entry knows its chunk and its slot there. A chunk
//! knows its list, so that a run of entries goes from list to list chunk by chunk, and the entries
//! themselves are visited at the ends of the run only. Two neighbouring chunks of a list hold more
//! than half a chunk together. Cost: O(1) amortised per entry put or taken; one visit per chunk
//! spliced. Memory: 4 bytes and a tag per id, 5 to 20 bytes per entry. Unit: entries.

use crate::levels::{LEVELS, LevelLook, LevelStore};
use crate::renumber::Renumbering;
use crate::segments::Segments;
use cachewright_types::BlockId;

/// Entries of a chunk.
const CHUNK: u32 = u32::BITS;
/// Chunks that hold no more than this together become one.
const SPARSE: u32 = CHUNK / 2;
/// Kinds of entries that a chunk counts.
pub const KINDS: usize = 4;
const KIND_BITS: u32 = KINDS.ilog2();
/// A chunk looks at its neighbours each time that it has lost so many entries.
const CHECKED: u32 = 4;
/// The place of an entry of no list: in a sentinel, where no entry is.
const OUT: u32 = 0;
/// The most chunks, so that a place has 32 bits.
const MAX_CHUNKS: u32 = 1 << (u32::BITS - CHUNK.ilog2());

/// An end of a list, as the index of a link: from there inwards links of this index lead, outwards
/// those of the other.
pub type End = usize;
/// The end at which entries are longest.
pub const OLDEST: End = 0;
/// The end at which entries come in.
pub const NEWEST: End = 1;

/// Where each entry of some lists lies: a number that the lists write and read.
pub trait Places {
    /// The place of an id; 0 for one in no list.
    fn place(&self, entry: u32) -> u32;
    /// Notes the place of an id.
    fn set_place(&mut self, entry: u32, place: u32);
    /// The kind of an entry, below [`KINDS`], which its chunk counts. It stays as it is while the
    /// entry is in a list.
    fn kind(&self, _: u32) -> usize {
        0
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

/// A chunk but for its entries, which would crowd it out of the processor's cache: it is visited
/// more often. Chunks `0..LISTS` are the sentinels of circular lists.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// The neighbours: the newer, the older. Of a sentinel: the oldest, the newest.
    links: [u32; 2],
    /// One bit per slot that has an entry; the newer the entry, the higher the bit.
    live: u32,
    list: u16,
    /// Entries, and entries of each kind: not every processor counts bits in one step.
    len: u8,
    kind_lens: [u8; KINDS],
    /// The kind of each slot's entry.
    kinds: u64,
}

impl Chunk {
    /// The slot of the entry at an end.
    #[inline(always)]
    fn last_slot(&self, end: End) -> u32 {
        if end == NEWEST { self.live.ilog2() } else { self.live.trailing_zeros() }
    }

    /// The kind of the entry in a slot.
    #[inline(always)]
    fn kind(&self, slot: u32) -> usize {
        (self.kinds >> (KIND_BITS * slot)) as usize % KINDS
    }

    /// Fills a free slot.
    #[inline(always)]
    fn set(&mut self, slot: u32, kind: usize) {
        self.live |= 1 << slot;
        self.len += 1;
        self.kind_lens[kind % KINDS] += 1;
        let shift = KIND_BITS * slot;
        self.kinds = self.kinds & !((KINDS as u64 - 1) << shift) | (kind as u64) << shift;
    }

    /// Empties a slot; returns the kind of its entry.
    #[inline(always)]
    fn clear(&mut self, slot: u32) -> usize {
        let kind = self.kind(slot);
        self.live &= !(1 << slot);
        self.len -= 1;
        self.kind_lens[kind] -= 1;
        kind
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
    chunks: Segments<Chunk>,
    /// The entries of each chunk by slot.
    entries: Segments<[u32; CHUNK as usize]>,
    /// The first chunk out of use; they are linked through `links[0]`.
    free: u32,
    lens: [u32; LISTS],
    /// Of each list, from each end, for each kind: no chunk before this one has an entry of the
    /// kind. A sentinel stands for the whole list.
    starts: [[[u32; KINDS]; 2]; LISTS],
}

impl<const L: usize> Default for ChunkLists<L> {
    fn default() -> Self {
        let (chunks, entries) = (Segments::default(), Segments::default());
        let starts = [[[OUT; KINDS]; 2]; L];
        let mut lists = ChunkLists { chunks, entries, free: OUT, lens: [0; L], starts };
        (0..L as u32).for_each(|list| lists.add_chunk(list));
        lists
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

    /// Gives the ids that are kept, all entries of lists among them, new numbers.
    pub fn renumber(&mut self, ids: &Renumbering) {
        ids.close_up(&mut self.nodes, 0);
        self.nodes.iter_mut().for_each(|node| node.place = OUT);
        let old = std::mem::take(&mut self.lists);
        old.put_all(ids, &mut self.store());
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
        self.lists.audit(|entry| (self.nodes[entry as usize].place, 0))?;
        let nodes = self.nodes.iter().filter(|node| node.place != OUT).count();
        let linked: u32 = self.lists.lens.iter().sum();
        if nodes == linked as usize { Ok(()) } else { Err(format!("{nodes} places, {linked}")) }
    }
}

impl<const L: usize> ChunkLists<L> {
    /// The entries of `list` from newest to oldest.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = BlockId> + '_ {
        self.chunks_of(list).flat_map(move |chunk| {
            let live = self.chunks[chunk as usize].live;
            let slots = (0..CHUNK).rev().filter(move |slot| live >> slot & 1 == 1);
            slots.map(move |slot| BlockId(self.entry(chunk, slot)))
        })
    }

    /// Puts all entries, under their new ids, into lists that are empty.
    pub fn put_all<P: Places>(&self, ids: &Renumbering, into: &mut Chunked<'_, P, L>) {
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
    fn chunks_of(&self, list: usize) -> impl Iterator<Item = u32> + '_ {
        let chunk = move |chunk: u32| (chunk as usize >= L).then_some(chunk);
        let newest = chunk(self.chunks[list].links[NEWEST]);
        std::iter::successors(newest, move |next| chunk(self.chunks[*next as usize].links[NEWEST]))
    }

    /// The entry at an end of a list.
    #[inline(always)]
    fn last(&self, list: usize, end: End) -> Option<BlockId> {
        let chunk = self.chunks[list].links[end] as usize;
        (chunk >= L).then(|| BlockId(self.entry(chunk as u32, self.chunks[chunk].last_slot(end))))
    }

    /// The entry in a slot.
    #[inline(always)]
    fn entry(&self, chunk: u32, slot: u32) -> u32 {
        self.entries[chunk as usize][(slot % CHUNK) as usize]
    }

    /// The entry of a kind that is the first from an end of a list. Amortised O(1) but after chunks
    /// have come or gone at that end: then the list is searched once.
    pub fn last_of_kind(&mut self, list: usize, end: End, kind: usize) -> Option<BlockId> {
        let mut number = self.starts[list][end][kind];
        if (number as usize) < L {
            number = self.chunks[list].links[end];
        }
        while number as usize >= L && self.chunks[number as usize].kind_lens[kind] == 0 {
            number = self.chunks[number as usize].links[end];
        }
        self.starts[list][end][kind] = number;
        let chunk = &self.chunks[number as usize];
        let mut rest = chunk.live;
        while rest != 0 {
            let slot = if end == NEWEST { rest.ilog2() } else { rest.trailing_zeros() };
            if chunk.kind(slot) == kind {
                return Some(BlockId(self.entry(number, slot)));
            }
            rest &= !(1 << slot);
        }
        None
    }

    fn add_chunk(&mut self, list: u32) {
        let chunk = self.chunks.len() as u32;
        assert!(chunk < MAX_CHUNKS, "there are at most {MAX_CHUNKS} chunks of entries");
        self.chunks.push(Chunk {
            links: [chunk; 2],
            live: 0,
            list: list as u16,
            len: 0,
            kind_lens: [0; KINDS],
            kinds: 0,
        });
        self.entries.push([0; CHUNK as usize]);
    }

    /// A chunk without entries, linked at an end of a list.
    fn new_chunk(&mut self, list: usize, end: End) -> u32 {
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
    fn join(&mut self, outer: u32, inner: u32, end: End) {
        self.chunks[outer as usize].links[end] = inner;
        self.chunks[inner as usize].links[1 - end] = outer;
    }

    fn drop_chunk(&mut self, chunk: u32) {
        let Chunk { links: [newer, older], list, .. } = self.chunks[chunk as usize];
        let [from_oldest, from_newest] = &mut self.starts[usize::from(list)];
        for (starts, before) in [(from_oldest, older), (from_newest, newer)] {
            starts.iter_mut().filter(|start| **start == chunk).for_each(|start| *start = before);
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
                    kind_lens[head.kind(slot)] += 1;
                    let here = (chunk * CHUNK + slot, head.kind(slot));
                    if known(self.entry(chunk, slot)) != here {
                        return Err(format!("list {list}: slot {slot} of chunk {chunk} is wrong"));
                    }
                }
                if len != here || kind_lens != head.kind_lens {
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

impl<P: Places, const L: usize> Chunked<'_, P, L> {
    /// Writes an entry into a free slot.
    #[inline(always)]
    fn write(&mut self, (chunk, slot): (u32, u32), entry: u32, kind: usize) {
        self.lists.chunks[chunk as usize].set(slot, kind);
        self.lists.entries[chunk as usize][(slot % CHUNK) as usize] = entry;
        self.places.set_place(entry, chunk * CHUNK + slot);
    }

    /// A free slot at an end of a list.
    #[inline(always)]
    fn make_slot(&mut self, list: usize, end: End) -> (u32, u32) {
        let number = self.lists.chunks[list].links[end];
        let chunk = &self.lists.chunks[number as usize];
        match chunk.free_slot(end) {
            Some(slot) if chunk.live != 0 => (number, slot),
            _ => self.make_room(list, end, number),
        }
    }

    /// The same where the chunk at the end has no slot there, or is the sentinel.
    #[inline(never)]
    fn make_room(&mut self, list: usize, end: End, chunk: u32) -> (u32, u32) {
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
        let emptied = Chunk { live: 0, len: 0, kind_lens: [0; KINDS], ..old };
        self.lists.chunks[chunk as usize] = emptied;
        let mut rest = old.live;
        for index in 0..u32::from(old.len) {
            let from = if end == OLDEST { rest.trailing_zeros() } else { rest.ilog2() };
            rest &= !(1 << from);
            let to = if end == OLDEST { index } else { CHUNK - 1 - index };
            self.write((chunk, to), entries[(from % CHUNK) as usize], old.kind(from));
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
        let room = if end == OLDEST { into.leading_zeros() } else { into.trailing_zeros() };
        if room < count {
            self.pack(outer, end);
        }
        for _ in 0..count {
            if let Some(slot) = self.lists.chunks[outer as usize].free_slot(1 - end) {
                self.carry(inner, end, (outer, slot));
            }
        }
        self.lists.drop_chunk(inner);
    }

    /// Moves the entry at an end of a chunk to a free slot of another; returns its kind.
    #[inline(always)]
    fn carry(&mut self, from: u32, end: End, free: (u32, u32)) -> usize {
        let source = &mut self.lists.chunks[from as usize];
        let slot = source.last_slot(end);
        let kind = source.clear(slot);
        let entry = self.lists.entry(from, slot);
        self.write(free, entry, kind);
        kind
    }

    /// An entry has left a slot of a chunk.
    #[inline(always)]
    fn clear(&mut self, number: u32, slot: u32) {
        let chunk = &mut self.lists.chunks[number as usize];
        chunk.clear(slot);
        let list = usize::from(chunk.list);
        self.lists.lens[list] -= 1;
        self.thinned(number, 1);
    }

    /// A chunk has lost so many entries: at every fourth of the last ones it looks at its
    /// neighbours.
    #[inline(always)]
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

    /// Moves the `count` oldest entries of `from` to the newest end of `to`, in their order; returns
    /// how many of each kind they are. Costs one visit per chunk.
    pub fn splice_oldest(&mut self, from: usize, to: usize, count: u32) -> [u32; KINDS] {
        self.splice((from, to), OLDEST, count)
    }

    /// Moves the `count` newest entries of `from` to the oldest end of `to` in the same way.
    pub fn splice_newest(&mut self, from: usize, to: usize, count: u32) -> [u32; KINDS] {
        self.splice((from, to), NEWEST, count)
    }

    /// Moves the entry at `end` of `from` to the other end of `to`; returns its kind.
    #[inline(always)]
    fn shift(&mut self, from: usize, to: usize, end: End) -> usize {
        let chunk = self.lists.chunks[from].links[end];
        let free = self.make_slot(to, 1 - end);
        let kind = self.carry(chunk, end, free);
        self.lists.lens[to] += 1;
        self.lists.lens[from] -= 1;
        self.lists.starts[to][1 - end][kind] = OUT;
        self.thinned(chunk, 1);
        kind
    }

    #[inline(always)]
    fn splice(&mut self, (from, to): (usize, usize), end: End, count: u32) -> [u32; KINDS] {
        let mut moved = [0; KINDS];
        if count == 1 {
            moved[self.shift(from, to, end) % KINDS] = 1;
            return moved;
        }
        let lists = &mut *self.lists;
        debug_assert!(from != to && count <= lists.lens[from], "only what is there can be moved");
        lists.lens[from] -= count;
        lists.lens[to] += count;
        (lists.starts[from], lists.starts[to]) = Default::default();
        let first = lists.chunks[from].links[end];
        let (mut next, mut rest) = (first, count);
        while rest > 0 {
            let chunk = &mut lists.chunks[next as usize];
            if u32::from(chunk.len) > rest {
                break;
            }
            rest -= u32::from(chunk.len);
            chunk.list = to as u16;
            for (sum, len) in moved.iter_mut().zip(chunk.kind_lens) {
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
            let free = self.make_slot(to, 1 - end);
            moved[self.carry(next, end, free) % KINDS] += 1;
        }
        self.thinned(next, rest);
        moved
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
        let kind = self.places.kind(entry.0);
        self.write(free, entry.0, kind);
        self.lists.starts[list][NEWEST][kind] = OUT;
        self.lists.lens[list] += 1;
    }
    fn lower(&mut self, from: usize, to: usize, count: u32) {
        self.splice_oldest(from, to, count);
    }
    fn raise(&mut self, from: usize, to: usize, count: u32) {
        self.splice_newest(from, to, count);
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
        let number = self.lists.chunks[list].links[OLDEST];
        let chunk = &self.lists.chunks[number as usize];
        if chunk.live == 0 {
            return None;
        }
        let slot = chunk.last_slot(OLDEST);
        let entry = self.lists.entry(number, slot);
        self.places.set_place(entry, OUT);
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
