//! Ordered lists in chunks, for levels that are evened out often.
//!
//! For: the queues of `levels`. Each list is a chain of chunks of up to [`CHUNK`] entries, and an
//! entry knows its chunk and its slot there. A chunk knows its list, so that a run of entries goes
//! from list to list chunk by chunk, and the entries themselves are visited at the ends of the run
//! only. Two neighbouring chunks of a list hold more than ten entries together. Cost: O(1)
//! amortised per entry put or taken; one visit per chunk spliced. Memory: a place of 4 bytes, a tag
//! and 3 bytes of chunk heads per id (6 where kinds are counted), 4 to 24 bytes per entry. With
//! plain lists, which visit each entry that changes its level, `smq` decided 0.57 (Zipf) to 0.96
//! (hits) times as many accesses per second, `oc-smq` 0.13 to 0.8 times
//! (`benches/earlier-policies.md`).

use crate::levels::{LEVELS, LevelLook, LevelStore};
use crate::renumber::Renumbering;
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;
use std::ops::{Index, IndexMut};

/// Entries of a chunk.
const CHUNK: u32 = u32::BITS;
/// Chunks that hold no more than this together become one.
const SPARSE: u32 = CHUNK / 2;
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

/// A tag of the policy's choosing.
pub trait PlaceTag: Copy + Default {
    /// See [`Places::kind`].
    #[inline(always)]
    fn kind(self) -> usize {
        0
    }
}

impl PlaceTag for () {}

/// What one array knows of an id: its place, and its tag.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
pub struct Placed<T> {
    /// The place, which only lists change; [`OUT`] for one in no list.
    pub(crate) place: u32,
    /// The tag.
    pub tag: T,
}

impl<T: PlaceTag> Places for &mut [Placed<T>] {
    #[inline(always)]
    fn place(&self, entry: u32) -> u32 {
        self[entry as usize].place
    }
    #[inline(always)]
    fn set_place(&mut self, entry: u32, place: u32) {
        self[entry as usize].place = place;
    }
    #[inline(always)]
    fn kind(&self, entry: u32) -> usize {
        self[entry as usize].tag.kind()
    }
}

/// Lists over one array of ids, each with a tag.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct LevelChunks<T, const L: usize> {
    nodes: Vec<Placed<T>>,
    /// The lists, to look at.
    pub lists: ChunkLists<(), L>,
}

impl<T: PlaceTag, const L: usize> LevelChunks<T, L> {
    /// Makes room for ids `0..count`.
    pub fn reserve_ids(&mut self, count: usize) {
        lengthen(&mut self.nodes, count, Placed::default());
        self.lists.reserve(count);
    }

    /// Gives the ids that are kept, all entries of lists among them, new numbers.
    pub fn renumber(&mut self, ids: &Renumbering) {
        ids.close_up(&mut self.nodes, 0);
        self.nodes.iter_mut().for_each(|node| node.place = OUT);
        let old = std::mem::take(&mut self.lists);
        self.lists.reserve(self.nodes.len());
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
    pub fn touch(&self, entry: BlockId) {
        prefetch(&self.nodes, entry.index());
    }

    /// The lists, to change.
    #[inline(always)]
    pub fn store(&mut self) -> Chunked<'_, &mut [Placed<T>], (), L> {
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

/// Kinds of entries that a chunk counts.
pub const KINDS: usize = 4;
const KIND_BITS: u32 = KINDS.ilog2();

/// The kinds of a chunk's entries, as far as they are counted.
pub trait ChunkTally: Copy + Default {
    /// Whether kinds are counted at all.
    const COUNTED: bool;
    /// The kind of the entry in a slot; 0 where none are counted.
    fn kind(&self, slot: u32) -> usize;
    /// Notes an entry in a slot that was free.
    fn set(&mut self, slot: u32, kind: usize);
    /// Notes that an entry has left its slot; returns its kind.
    fn clear(&mut self, slot: u32) -> usize;
    /// Entries of each kind; zeroes where none are counted.
    fn lens(&self) -> [u8; KINDS];
}

/// All entries are of one kind.
impl ChunkTally for () {
    const COUNTED: bool = false;
    #[inline(always)]
    fn kind(&self, _: u32) -> usize {
        0
    }
    #[inline(always)]
    fn set(&mut self, _: u32, _: usize) {}
    #[inline(always)]
    fn clear(&mut self, _: u32) -> usize {
        0
    }
    #[inline(always)]
    fn lens(&self) -> [u8; KINDS] {
        [0; KINDS]
    }
}

/// Entries of [`KINDS`] kinds.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
pub struct KindTally {
    /// The kind of each slot's entry.
    kinds: u64,
    lens: [u8; KINDS],
}

const _: () = assert!(CHUNK * KIND_BITS <= u64::BITS, "a chunk's kinds stand in one word");

impl ChunkTally for KindTally {
    const COUNTED: bool = true;
    #[inline(always)]
    fn kind(&self, slot: u32) -> usize {
        (self.kinds >> (KIND_BITS * slot)) as usize % KINDS
    }
    #[inline(always)]
    fn set(&mut self, slot: u32, kind: usize) {
        self.lens[kind % KINDS] += 1;
        let shift = KIND_BITS * slot;
        self.kinds = self.kinds & !((KINDS as u64 - 1) << shift) | (kind as u64) << shift;
    }
    #[inline(always)]
    fn clear(&mut self, slot: u32) -> usize {
        let kind = self.kind(slot);
        self.lens[kind] -= 1;
        kind
    }
    #[inline(always)]
    fn lens(&self) -> [u8; KINDS] {
        self.lens
    }
}

/// A chunk but for its entries, which would crowd it out of the processor's cache: it is visited
/// more often. Chunks `0..LISTS` are the sentinels of circular lists.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct Chunk<K> {
    /// The neighbours: the newer, the older. Of a sentinel: the oldest, the newest.
    links: [u32; 2],
    /// One bit per slot that has an entry; the newer the entry, the higher the bit.
    live: u32,
    list: u16,
    /// Entries: not every processor counts bits in one step.
    len: u8,
    tally: K,
}

impl<K: ChunkTally> Chunk<K> {
    /// The slot of the entry at an end.
    #[inline(always)]
    fn last_slot(&self, end: End) -> u32 {
        if end == NEWEST { self.live.ilog2() } else { self.live.trailing_zeros() }
    }

    /// Fills a free slot.
    #[inline(always)]
    fn set(&mut self, slot: u32, kind: usize) {
        self.live |= 1 << slot;
        self.len += 1;
        self.tally.set(slot, kind);
    }

    /// Empties a slot; returns the kind of its entry.
    #[inline(always)]
    fn clear(&mut self, slot: u32) -> usize {
        self.live &= !(1 << slot);
        self.len -= 1;
        self.tally.clear(slot)
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
#[derive(Clone, Debug, SnapshotValue)]
pub struct ChunkLists<K, const LISTS: usize> {
    /// Reserved with the ids, so that it does not grow between.
    chunks: Vec<Chunk<K>>,
    /// The entries of each chunk by slot.
    entries: SegmentedList<[u32; CHUNK as usize]>,
    /// The first chunk out of use; they are linked through `links[0]`.
    free: u32,
    lens: [u32; LISTS],
    /// Of each list, from each end, for each kind: no chunk before this one has an entry of the
    /// kind. A sentinel stands for the whole list.
    starts: [[[u32; KINDS]; 2]; LISTS],
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
    fn note_start(&mut self, list: usize, end: End, kind: usize) {
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

/// Elements of a piece: a power of two.
const PIECE: usize = 256;

/// A list whose elements never move.
///
/// A piece has [`PIECE`] elements and never moves, so that growing does not pause. One more load
/// per access than an array.
#[derive(Clone, Debug, SnapshotValue)]
pub struct SegmentedList<T> {
    pieces: Vec<Box<[T; PIECE]>>,
    len: usize,
}

impl<T> Default for SegmentedList<T> {
    fn default() -> Self {
        SegmentedList { pieces: Vec::new(), len: 0 }
    }
}

impl<T: Copy> SegmentedList<T> {
    /// Elements in use.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an element at the end.
    pub fn push(&mut self, element: T) {
        if self.len == self.pieces.len() * PIECE {
            self.pieces.push(Box::new([element; PIECE]));
        }
        self.len += 1;
        let last = self.len - 1;
        self[last] = element;
    }
}

impl<T> Index<usize> for SegmentedList<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        &self.pieces[index / PIECE][index % PIECE]
    }
}

impl<T> IndexMut<usize> for SegmentedList<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.pieces[index / PIECE][index % PIECE]
    }
}

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
    fn write(&mut self, chunk: u32, slot: u32, entry: u32, kind: usize) {
        self.lists.chunks[chunk as usize].set(slot, kind);
        self.note(entry, chunk, slot);
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
            self.note(entry, number, slot);
        } else {
            let (chunk, slot) = self.make_space(list, end, number);
            self.write(chunk, slot, entry, kind);
        }
        self.lists.note_start(list, end, kind);
    }

    /// Notes an entry and the slot that is now its own.
    #[inline(always)]
    fn note(&mut self, entry: u32, chunk: u32, slot: u32) {
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
            self.write(chunk, to, entries[(from % CHUNK) as usize], old.tally.kind(from));
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
                self.write(outer, slot, entry, kind);
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
        self.splice(from, to, OLDEST, count)
    }

    /// Moves the `count` newest entries of `from` to the oldest end of `to` in the same way.
    pub fn splice_newest(&mut self, from: usize, to: usize, count: u32) -> [u32; KINDS] {
        self.splice(from, to, NEWEST, count)
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
    fn splice(&mut self, from: usize, to: usize, end: End, count: u32) -> [u32; KINDS] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_stay_where_they_are_while_it_grows() {
        let mut list: SegmentedList<usize> = SegmentedList::default();
        assert!(list.is_empty());
        list.push(0);
        let first = &raw const list[0];
        (1..3 * PIECE + 5).for_each(|element| list.push(element));
        assert_eq!(list.len(), 3 * PIECE + 5);
        assert!((0..list.len()).all(|at| list[at] == at));
        list[PIECE] = 7;
        assert_eq!((list[PIECE], list[PIECE - 1]), (7, PIECE - 1));
        assert_eq!(&raw const list[0], first);
    }
}
