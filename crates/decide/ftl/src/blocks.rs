//! The superblocks: what each holds, which are sealed, and in which order to look at them.
//!
//! For: the facts that victim selection reads. Must never know: the mapping, how a score is made.
//! Units: pages; moments are values of the clock of host page writes. Invariants (audited): a
//! sealed superblock is in the list of its stream, in the order of sealing. Where lists by invalid
//! pages are kept, it is in one of them. Others are in none. Memory: about 60 bytes per superblock.

use crate::Stream;
pub use crate::block::Block;
use crate::cleaning_scores::{CleaningScores, Since};
use crate::geometry::STREAM_LIMIT;
use crate::lists::Lists;

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
