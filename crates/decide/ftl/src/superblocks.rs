//! One superblock: the facts that schemes and reclaim policies see.
//!
//! Units are pages; moments are values of the clock of host page writes.
//!
//! The superblocks: what each holds, which are sealed, and in which order to look at them. Units
//! are pages; moments are values of the clock of host page writes. Invariants (audited): a sealed
//! superblock is in the list of its stream, in the order of sealing. Where lists by invalid pages
//! are kept, it is in one of them. Others are in none. Memory: about 60 bytes per superblock.
//!
//! Many doubly linked lists over one set of dense ids; each id is in at most one list. Memory: 8
//! bytes per id and per list.
//!
//! What cleaning each superblock is worth, kept up to date for one quick look at all of them. An
//! overwrite changes one entry, and a victim costs a pass over two plain arrays. Units: pages;
//! moments on the clock of host page writes, exact in f64 up to 2^53. Invariant (audited by
//! `blocks`): a superblock that may not be cleaned is worth nothing. Memory: 16 bytes per
//! superblock.

use crate::geometry::STREAM_LIMIT;
use crate::layer::Stream;

/// One superblock, as schemes see it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Block {
    /// Index; given again after an erase.
    pub id: u32,
    /// The stream its pages were placed on.
    pub stream: Stream,
    /// Whether it is full and closed.
    pub sealed: bool,
    /// Data pages when full.
    pub pages: u32,
    /// Pages overwritten, moved or trimmed since.
    pub invalid: u32,
    /// The clock when it was opened.
    pub opened_at: u64,
    /// The clock at its last page, once sealed.
    pub sealed_at: u64,
    /// How many superblocks had been opened before it (distinguishes lives of one index).
    pub number: u64,
    /// Times erased.
    pub erases: u32,
}

impl Block {
    /// Share of invalid pages, of a sealed superblock.
    #[inline(always)]
    pub fn invalid_share(&self) -> f64 {
        f64::from(self.invalid) / f64::from(self.pages)
    }

    /// Share of valid pages, of a sealed superblock.
    #[inline(always)]
    pub fn valid_share(&self) -> f64 {
        f64::from(self.pages - self.invalid) / f64::from(self.pages)
    }
}

/// What a superblock is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuperblockState {
    Free,
    Open,
    Sealed,
}

/// What changes rarely; 32 bytes.
#[derive(Clone, Copy, Debug)]
struct Info {
    opened_at: u64,
    sealed_at: u64,
    number: u64,
    erases: u32,
    stream: Stream,
    state: SuperblockState,
}

/// What a reclaim policy asks to be kept up to date with every overwrite.
#[derive(Clone, Debug, Default)]
pub enum CleaningOrder {
    /// Nothing.
    #[default]
    None,
    /// [`Superblocks::by_invalid`].
    ByInvalid,
    /// [`Superblocks::max_score`].
    ByWorth {
        /// The worth at age 1 per number of invalid pages, 0 of those that may not be cleaned.
        table: Vec<f64>,
        /// The moment from which the age counts.
        since: Since,
    },
}

/// All superblocks of a drive.
#[derive(Clone, Debug)]
pub struct Superblocks {
    data_pages: u32,
    invalid: Vec<u32>,
    info: Vec<Info>,
    /// Sealed superblocks per stream, in the order of sealing.
    by_seal: Lists,
    /// Sealed superblocks per stream.
    sealed: Vec<u32>,
    /// Sealed superblocks per number of invalid pages, if a reclaim policy asked for it.
    by_invalid: Option<Lists>,
    /// No list above this one holds anything.
    max_invalid: usize,
    /// What cleaning each is worth, if a reclaim policy asked for it.
    scores: Option<CleaningScores>,
    opened: u64,
}

impl Superblocks {
    /// No superblocks; each will hold `data_pages`.
    pub(crate) fn new(data_pages: u32, order: CleaningOrder) -> Superblocks {
        let (by_invalid, scores) = match order {
            CleaningOrder::None => (false, None),
            CleaningOrder::ByInvalid => (true, None),
            CleaningOrder::ByWorth { table, since } => {
                (false, Some(CleaningScores::new(table, since)))
            }
        };
        Superblocks {
            data_pages,
            invalid: Vec::new(),
            info: Vec::new(),
            by_seal: Lists::new(STREAM_LIMIT as usize),
            sealed: vec![0; STREAM_LIMIT as usize],
            by_invalid: by_invalid.then(|| Lists::new(data_pages as usize + 1)),
            max_invalid: 0,
            scores,
            opened: 0,
        }
    }

    /// Adds a free superblock and returns its index.
    pub(crate) fn grow(&mut self) -> u32 {
        let stream = Stream(0);
        let state = SuperblockState::Free;
        let number = 0;
        self.info.push(Info { opened_at: 0, sealed_at: 0, number, erases: 0, stream, state });
        self.invalid.push(0);
        self.by_seal.grow();
        if let Some(lists) = &mut self.by_invalid {
            lists.grow();
        }
        if let Some(scores) = &mut self.scores {
            scores.grow(self.info.len());
        }
        self.info.len() as u32 - 1
    }

    pub(crate) fn open(&mut self, block: u32, stream: Stream, clock: u64) {
        let info = &mut self.info[block as usize];
        debug_assert_eq!(info.state, SuperblockState::Free);
        info.opened_at = clock;
        info.stream = stream;
        info.state = SuperblockState::Open;
        info.number = self.opened;
        self.opened += 1;
    }

    /// Counts pages of an open superblock that never held data as invalid.
    pub(crate) fn waste(&mut self, block: u32, pages: u32) {
        debug_assert_eq!(self.info[block as usize].state, SuperblockState::Open);
        self.invalid[block as usize] += pages;
    }

    pub(crate) fn seal(&mut self, block: u32, clock: u64) {
        let info = &mut self.info[block as usize];
        debug_assert_eq!(info.state, SuperblockState::Open);
        info.sealed_at = clock;
        info.state = SuperblockState::Sealed;
        self.by_seal.push_back(info.stream.index(), block);
        self.sealed[info.stream.index()] += 1;
        let sealed = self.get(block);
        if let Some(scores) = &mut self.scores {
            scores.seal(&sealed);
        }
        if let Some(lists) = &mut self.by_invalid {
            lists.push_back(sealed.invalid as usize, block);
            self.max_invalid = self.max_invalid.max(sealed.invalid as usize);
        }
    }

    /// Counts one more invalid page; returns whether the superblock is sealed.
    #[inline(always)]
    pub(crate) fn invalidate(&mut self, block: u32) -> bool {
        let invalid = &mut self.invalid[block as usize];
        *invalid += 1;
        let sealed = self.info[block as usize].state == SuperblockState::Sealed;
        if sealed && let Some(scores) = &mut self.scores {
            scores.invalidate(block, *invalid);
        }
        if sealed && let Some(lists) = &mut self.by_invalid {
            let list = *invalid as usize;
            lists.unlink(list - 1, block);
            lists.push_back(list, block);
            self.max_invalid = self.max_invalid.max(list);
        }
        sealed
    }

    /// Takes a victim out of all lists; it stays sealed in name until it is erased.
    pub(crate) fn withdraw(&mut self, block: u32) {
        let stream = self.info[block as usize].stream.index();
        self.by_seal.unlink(stream, block);
        self.sealed[stream] -= 1;
        if let Some(lists) = &mut self.by_invalid {
            lists.unlink(self.invalid[block as usize] as usize, block);
        }
        if let Some(scores) = &mut self.scores {
            scores.withdraw(block);
        }
    }

    pub(crate) fn erase(&mut self, block: u32) {
        let info = &mut self.info[block as usize];
        debug_assert_eq!(info.state, SuperblockState::Sealed);
        info.state = SuperblockState::Free;
        info.erases += 1;
        self.invalid[block as usize] = 0;
    }

    pub(crate) fn state(&self, block: u32) -> SuperblockState {
        self.info[block as usize].state
    }

    /// Bytes of all that is kept of superblocks.
    pub(crate) fn held_bytes(&self) -> usize {
        let own = size_of_val(self.invalid.as_slice()) + size_of_val(self.info.as_slice());
        let lists = self.by_seal.held_bytes() + size_of_val(self.sealed.as_slice());
        let by_invalid = self.by_invalid.as_ref().map_or(0, Lists::held_bytes);
        let scores = self.scores.as_ref().map_or(0, CleaningScores::held_bytes);
        own + lists + by_invalid + scores
    }

    /// Superblocks that there are.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.info.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.info.is_empty()
    }

    /// Data pages of a full superblock.
    #[inline(always)]
    pub fn data_pages(&self) -> u32 {
        self.data_pages
    }

    /// Everything about one superblock. It must exist.
    #[inline(always)]
    pub fn get(&self, block: u32) -> Block {
        let info = &self.info[block as usize];
        Block {
            id: block,
            stream: info.stream,
            sealed: info.state == SuperblockState::Sealed,
            pages: self.data_pages,
            invalid: self.invalid[block as usize],
            opened_at: info.opened_at,
            sealed_at: info.sealed_at,
            number: info.number,
            erases: info.erases,
        }
    }

    /// Invalid pages of a superblock that exists.
    #[inline(always)]
    pub fn invalid(&self, block: u32) -> u32 {
        self.invalid[block as usize]
    }

    /// Whether a superblock exists and is sealed.
    #[inline(always)]
    pub fn is_sealed(&self, block: u32) -> bool {
        self.info.get(block as usize).is_some_and(|info| info.state == SuperblockState::Sealed)
    }

    /// All superblocks, by index.
    pub fn iter(&self) -> impl Iterator<Item = Block> {
        (0..self.len()).map(|id| self.get(id))
    }

    /// All sealed superblocks, by index.
    #[inline(always)]
    pub fn sealed(&self) -> impl Iterator<Item = Block> {
        let ids = (0..self.len()).zip(&self.info);
        ids.filter(|(_, info)| info.state == SuperblockState::Sealed).map(|(id, _)| self.get(id))
    }

    /// Sealed superblocks of a stream.
    pub fn sealed_in(&self, stream: Stream) -> u32 {
        self.sealed[stream.index()]
    }

    /// The sealed superblocks of a stream, the first sealed first.
    pub fn in_seal_order(&self, stream: Stream) -> impl Iterator<Item = u32> {
        self.by_seal.iter(stream.index())
    }

    /// The superblock of a stream that was sealed first.
    #[inline(always)]
    pub fn oldest(&self, stream: Stream) -> Option<u32> {
        self.by_seal.first(stream.index())
    }

    /// Sealed superblocks from the most invalid pages down to `min`; nothing where the reclaim
    /// policy did not ask for this order.
    pub fn by_invalid(&self, min: u32) -> impl Iterator<Item = u32> {
        let lists = self.by_invalid.iter();
        lists.flat_map(move |lists| {
            (min as usize..=self.max_invalid).rev().flat_map(|list| lists.iter(list))
        })
    }

    /// The sealed superblock with the highest score above 0, by the scores that the reclaim policy
    /// requested. Among equals it is the one that `leads` the others.
    pub fn max_score(&self, clock: u64, leads: impl Fn(u32, u32) -> bool) -> Option<u32> {
        self.scores.as_ref()?.best(clock, leads)
    }

    /// Lowers the mark of the highest list in use after victims have left it.
    pub(crate) fn settle(&mut self) {
        if let Some(lists) = &self.by_invalid {
            while self.max_invalid > 0 && lists.first(self.max_invalid).is_none() {
                self.max_invalid -= 1;
            }
        }
    }

    /// Gives a sealed superblock to another stream, as if it had just been sealed there (groups
    /// that merge). Returns false, and changes nothing, if it is not sealed.
    pub fn move_to_stream(&mut self, block: u32, stream: Stream) -> bool {
        if !self.is_sealed(block) || u32::from(stream.0) >= STREAM_LIMIT {
            return false;
        }
        let info = &mut self.info[block as usize];
        self.by_seal.unlink(info.stream.index(), block);
        self.sealed[info.stream.index()] -= 1;
        info.stream = stream;
        self.by_seal.push_back(stream.index(), block);
        self.sealed[stream.index()] += 1;
        true
    }

    /// Checks the lists against the states, slowly.
    pub(crate) fn audit(&self) -> Result<(), String> {
        for stream in 0..STREAM_LIMIT as usize {
            let mut count = 0;
            for id in self.by_seal.iter(stream) {
                let block = self.get(id);
                count += 1;
                if !block.sealed || block.stream.index() != stream {
                    return Err(format!("superblock {id} is in the list of stream {stream}"));
                }
            }
            if count != self.sealed[stream] {
                let counted = self.sealed[stream];
                return Err(format!("stream {stream}: {count} in its list, {counted} counted"));
            }
        }
        let sealed = self.sealed().count() as u32;
        if sealed != self.sealed.iter().sum::<u32>() {
            return Err(format!("{sealed} superblocks are sealed, not all are in lists"));
        }
        if let Some(scores) = &self.scores {
            scores.audit(self.iter())?;
        }
        let Some(lists) = &self.by_invalid else { return Ok(()) };
        for invalid in 0..=self.data_pages {
            for id in lists.iter(invalid as usize) {
                if self.invalid(id) != invalid || invalid as usize > self.max_invalid {
                    return Err(format!("superblock {id} is in the list of {invalid} invalid"));
                }
            }
        }
        let listed = self.by_invalid(0).count() as u32;
        if listed == sealed { Ok(()) } else { Err(format!("{listed} of {sealed} are listed")) }
    }
}
/// No id.
const NIL: u32 = u32::MAX;

/// Lists of ids; their owner remembers which list an id is in.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// Before and behind each id.
    links: Vec<[u32; 2]>,
    /// First and last of each list.
    ends: Vec<[u32; 2]>,
}

impl Lists {
    /// So many empty lists, no ids.
    pub fn new(lists: usize) -> Lists {
        Lists { links: Vec::new(), ends: vec![[NIL; 2]; lists] }
    }

    /// Adds one id.
    pub fn grow(&mut self) {
        self.links.push([NIL; 2]);
    }

    /// Bytes of ids and lists.
    pub fn held_bytes(&self) -> usize {
        size_of_val(self.links.as_slice()) + size_of_val(self.ends.as_slice())
    }

    /// The first of a list.
    #[inline(always)]
    pub fn first(&self, list: usize) -> Option<u32> {
        Some(self.ends[list][0]).filter(|id| *id != NIL)
    }

    /// The id behind `id`.
    #[inline(always)]
    pub fn behind(&self, id: u32) -> Option<u32> {
        Some(self.links[id as usize][1]).filter(|id| *id != NIL)
    }

    /// Puts an id that is in no list at the end of one.
    #[inline(always)]
    pub fn push_back(&mut self, list: usize, id: u32) {
        let last = self.ends[list][1];
        self.links[id as usize] = [last, NIL];
        self.ends[list][1] = id;
        match last {
            NIL => self.ends[list][0] = id,
            last => self.links[last as usize][1] = id,
        }
    }

    /// Takes an id out of the list it is in.
    #[inline(always)]
    pub fn unlink(&mut self, list: usize, id: u32) {
        let [before, behind] = self.links[id as usize];
        match before {
            NIL => self.ends[list][0] = behind,
            before => self.links[before as usize][1] = behind,
        }
        match behind {
            NIL => self.ends[list][1] = before,
            behind => self.links[behind as usize][0] = before,
        }
    }

    /// The ids of a list in order.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(list), |id| self.behind(*id))
    }
}

/// Superblocks that are looked at together.
const CHUNK: usize = 64;
/// Independent maxima within a chunk: several vector registers of any processor.
const LANES: usize = 8;
/// The age of a superblock that the current write filled: close to zero, as in SepBIT's simulator,
/// where its score is 0. It comes after all others, yet before none at all.
const NO_AGE: f64 = 1e-9;

/// The moment from which an age counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// When the superblock was opened (SepBIT's prototype).
    Creation,
    /// When it was filled.
    Seal,
}

impl Since {
    /// That moment.
    #[inline(always)]
    pub fn since_of(self, block: &Block) -> u64 {
        match self {
            Since::Creation => block.opened_at,
            Since::Seal => block.sealed_at,
        }
    }
}

/// Worth and beginning of each superblock.
#[derive(Clone, Debug)]
struct CleaningScores {
    /// The worth at age 1 per number of invalid pages.
    table: Vec<f64>,
    since: Since,
    score: Vec<[f64; CHUNK]>,
    begun: Vec<[f64; CHUNK]>,
}

/// The worth of a superblock at the moment `now`.
#[inline(always)]
pub fn at_age(worth: f64, begun: f64, now: f64) -> f64 {
    let age = now - begun;
    worth * if age > NO_AGE { age } else { NO_AGE }
}

impl CleaningScores {
    /// No superblocks; `table` holds the worth at age 1 per number of invalid pages, 0 for those
    /// that may not be cleaned.
    pub fn new(table: Vec<f64>, since: Since) -> CleaningScores {
        CleaningScores { table, since, score: Vec::new(), begun: Vec::new() }
    }

    /// Makes room for so many superblocks; new ones are worth nothing.
    pub fn grow(&mut self, blocks: usize) {
        self.score.resize(blocks.div_ceil(CHUNK), [0.0; CHUNK]);
        self.begun.resize(blocks.div_ceil(CHUNK), [0.0; CHUNK]);
    }

    /// Bytes of the table and of all superblocks.
    pub fn held_bytes(&self) -> usize {
        let blocks = size_of_val(self.score.as_slice()) + size_of_val(self.begun.as_slice());
        blocks + size_of_val(self.table.as_slice())
    }

    /// A superblock may be cleaned from now on.
    pub fn seal(&mut self, block: &Block) {
        self.begun.as_flattened_mut()[block.id as usize] = self.since.since_of(block) as f64;
        self.invalidate(block.id, block.invalid);
    }

    /// So many pages of a superblock that may be cleaned are invalid now.
    #[inline(always)]
    pub fn invalidate(&mut self, block: u32, invalid: u32) {
        self.score.as_flattened_mut()[block as usize] = self.table[invalid as usize];
    }

    /// A superblock may not be cleaned any more.
    pub fn withdraw(&mut self, block: u32) {
        self.score.as_flattened_mut()[block as usize] = 0.0;
    }

    /// The superblock that is worth most now, above 0; among equals the one that leads the others.
    pub fn best(&self, clock: u64, leads: impl Fn(u32, u32) -> bool) -> Option<u32> {
        let now = clock as f64;
        let (mut best, mut victim) = (f64::MIN_POSITIVE, None);
        for (chunk, (worth, begun)) in self.score.iter().zip(&self.begun).enumerate() {
            let highest = highest(worth, begun, now);
            if highest < best {
                continue;
            }
            if highest > best {
                (best, victim) = (highest, None);
            }
            for (offset, (worth, begun)) in worth.iter().zip(begun).enumerate() {
                let id = (chunk * CHUNK + offset) as u32;
                if at_age(*worth, *begun, now) == best
                    && victim.is_none_or(|other| leads(id, other))
                {
                    victim = Some(id);
                }
            }
        }
        victim
    }

    /// Checks the entries against the superblocks, slowly.
    pub fn audit(&self, mut blocks: impl Iterator<Item = Block>) -> Result<(), String> {
        let wrong = blocks.find(|block| {
            let index = block.id as usize;
            let (worth, begun) =
                (self.score.as_flattened()[index], self.begun.as_flattened()[index]);
            let expected = if block.sealed { self.table[block.invalid as usize] } else { 0.0 };
            worth != expected || block.sealed && begun != self.since.since_of(block) as f64
        });
        wrong.map_or(Ok(()), |block| Err(format!("superblock {} has another's worth", block.id)))
    }
}

/// The highest worth in a chunk.
#[inline(always)]
fn highest(worth: &[f64; CHUNK], begun: &[f64; CHUNK], now: f64) -> f64 {
    let mut lanes = [0.0; LANES];
    for (worth, begun) in worth.as_chunks::<LANES>().0.iter().zip(begun.as_chunks::<LANES>().0) {
        for (lane, (worth, begun)) in lanes.iter_mut().zip(worth.iter().zip(begun)) {
            let score = at_age(*worth, *begun, now);
            *lane = if score > *lane { score } else { *lane };
        }
    }
    lanes.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_leave_from_anywhere() {
        let mut lists = Lists::new(2);
        (0..4).for_each(|_| lists.grow());
        (0..4).for_each(|id| lists.push_back(0, id));
        lists.unlink(0, 1);
        lists.unlink(0, 3);
        lists.push_back(1, 3);
        lists.unlink(0, 0);
        lists.push_back(0, 1);
        assert_eq!(lists.iter(0).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(lists.iter(1).collect::<Vec<_>>(), [3]);
    }

    /// Against a look at one superblock after the other, with many equals and with superblocks that
    /// are worth more than any number.
    #[test]
    fn the_best_is_that_of_a_plain_search() {
        let mut rng = cachewright_types::Seed(5).rng();
        let table = vec![0.0, 0.0, 0.5, 1.0, 2.0, f64::INFINITY];
        let mut found = [0; 2];
        for round in 0..400_u64 {
            let blocks = 1 + rng.below(300) as u32;
            let mut scores = CleaningScores::new(table.clone(), Since::Seal);
            scores.grow(blocks as usize);
            let mut all = Vec::new();
            for id in 0..blocks {
                let invalid = rng.below(if round % 4 == 0 { 6 } else { 1 + round % 4 }) as u32;
                let sealed_at = rng.below(1 + round / 8);
                let block = Block { id, sealed: true, invalid, sealed_at, ..Block::default() };
                scores.seal(&block);
                all.push(block);
            }
            for id in (0..blocks).step_by(7) {
                scores.withdraw(id);
                all[id as usize].sealed = false;
            }
            assert_eq!(scores.audit(all.iter().copied()), Ok(()));
            let leads = |one: u32, other: u32| one % 16 * 1000 + one < other % 16 * 1000 + other;
            let score = |block: &Block| {
                let age = (50 - block.sealed_at) as f64;
                table[block.invalid as usize] * age.max(NO_AGE)
            };
            let sealed = all.iter().filter(|block| block.sealed && score(block) > 0.0);
            let plain = sealed
                .map(|block| (score(block), block.id))
                .reduce(|a, b| if b.0 > a.0 || b.0 == a.0 && leads(b.1, a.1) { b } else { a });
            let best = scores.best(50, leads);
            assert_eq!(best, plain.map(|(_, id)| id));
            found[usize::from(best.is_some())] += 1;
        }
        assert!(found.iter().all(|count| *count > 50), "{found:?}");
    }

    #[test]
    fn an_entry_of_another_is_found_out() {
        let mut scores = CleaningScores::new(vec![0.0, 1.0], Since::Creation);
        scores.grow(1);
        let block = Block { sealed: true, invalid: 1, opened_at: 4, ..Block::default() };
        scores.seal(&block);
        assert_eq!(scores.audit([block].into_iter()), Ok(()));
        for wrong in [Block { invalid: 0, ..block }, Block { opened_at: 5, ..block }] {
            assert!(scores.audit([wrong].into_iter()).is_err());
        }
    }
}
