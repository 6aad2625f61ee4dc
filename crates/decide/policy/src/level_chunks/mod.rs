//! Ordered lists in chunks, for levels that are evened out often.
//!
//! For: the queues of `levels`. Must never know: caches, regions, periods. Each list is a chain of
//! chunks of up to [`CHUNK`] entries, and an entry knows its chunk and its slot there. A chunk
//! knows its list, so that a run of entries goes from list to list chunk by chunk, and the entries
//! themselves are visited at the ends of the run only. Two neighbouring chunks of a list hold more
//! than ten entries together. Cost: O(1) amortised per entry put or taken; one visit per chunk
//! spliced. Memory: a place of 4 bytes, a tag and 3 bytes of chunk heads per id (6 where kinds are
//! counted), 4 to 24 bytes per entry. Unit: entries.

mod changes;
mod lists;
mod tally;

use crate::renumber::Renumbering;
use cachewright_memory::{lengthen, prefetch};
use cachewright_types::BlockId;
pub use changes::{Chunked, Climb};
pub use lists::ChunkLists;
pub use tally::{ChunkTally, KINDS, KindTally};

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
#[derive(Clone, Copy, Debug, Default)]
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
#[derive(Clone, Debug, Default)]
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
