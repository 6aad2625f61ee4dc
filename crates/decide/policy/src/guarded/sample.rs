//! Miniature caches of sampled blocks, one under each rule.
//!
//! For: `guarded`. Source: Waldspurger et al., ATC'17, section 3: a cache of a share of the
//! capacity that sees the same share of the blocks hits as often. Unit: blocks.
//!
//! A block is drawn when it is first tracked, by a hash of a number that it gets then, and stays
//! drawn as long as the cache or a miniature tracks it: ids may stand for other blocks later. So a
//! block that was forgotten by all is drawn again when it returns; it would miss in every
//! miniature anyway, unless its re-use lies beyond the ghosts of the cache and within what a
//! miniature holds. Then more blocks are sampled than there should be, and rules that keep blocks
//! for long look worse than they are. Memory is fixed: where more than [`MOST_BLOCKS`] blocks per
//! block of a miniature would be known, the miniatures forget one that the first, `lru`, does not
//! hold.

use super::switching_cache::{RULES, Rule, SwitchingCache};
use crate::Verdict;
use crate::renumber::Renumbering;
use cachewright_snapshot::{
    Snapshot, SnapshotError, SnapshotReader, SnapshotValue, SnapshotWriter,
};
use cachewright_types::seed::mix;
use cachewright_types::{BlockId, Seed};
use hashbrown::HashTable;
use std::num::NonZeroU32;

/// Sampled blocks that are known at most, in capacities of a miniature.
const MOST_BLOCKS: u32 = 3;
/// Blocks that are looked at for one that no miniature holds, where as many are known as may be.
const LOOKS: usize = 16;

/// A block that some miniature tracks.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct Sampled {
    /// Its id in the cache.
    block: BlockId,
    /// Where below the threshold it was drawn; to the next odd number.
    draw: NonZeroU32,
}

/// The miniatures; see the top of the file. Blocks have numbers of their own in them.
#[derive(Clone, Debug)]
pub struct Sample {
    miniatures: [SwitchingCache; RULES.len()],
    /// The most blocks of a miniature.
    most: u32,
    /// The numbers in use, found by their blocks.
    numbers: HashTable<u32>,
    sampled: Vec<Option<Sampled>>,
    free: Vec<u32>,
    /// The next number to look at where there are too many.
    hand: usize,
    /// Draws below it are in the sample.
    threshold: u64,
    /// Hashes taken so far.
    drawn: u64,
    seed: Seed,
}

/// The numbers are found by their blocks again.
impl Snapshot for Sample {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        let Sample {
            miniatures,
            most: _,
            numbers: _,
            sampled,
            free,
            hand,
            threshold,
            drawn,
            seed: _,
        } = self;
        miniatures.save(out);
        sampled.save(out);
        free.save(out);
        (*hand, *threshold, *drawn).save(out);
    }

    fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        self.miniatures.restore(from)?;
        self.sampled.restore(from)?;
        self.free.restore(from)?;
        (self.hand, self.threshold, self.drawn) = SnapshotValue::load(from)?;
        self.numbers.clear();
        for number in 0..self.sampled.len() as u32 {
            if let Some(sampled) = self.sampled[number as usize] {
                self.enter(sampled.block, number);
            }
        }
        Ok(())
    }
}

impl Sample {
    /// Miniatures of at most `most` blocks of a cache of `capacity`.
    pub fn new(capacity: u32, most: u32, seed: Seed) -> Sample {
        let miniature = |rule| {
            // Neither rule asks ghosts.
            let has_ghosts = !matches!(rule, Rule::Lru | Rule::Bimodal);
            let mut cache = SwitchingCache::new(capacity.min(most), rule, has_ghosts, seed);
            cache.note_forgotten();
            cache
        };
        let mut sample = Sample {
            miniatures: RULES.map(miniature),
            most,
            numbers: HashTable::new(),
            sampled: Vec::new(),
            free: Vec::new(),
            hand: 0,
            threshold: 0,
            drawn: 0,
            seed: seed.derive("sample"),
        };
        sample.scale(capacity);
        sample
    }

    /// Blocks that each miniature may hold.
    pub fn capacity(&self) -> u32 {
        self.miniatures[0].capacity()
    }

    /// Draws a block that is not tracked anywhere; returns whether it is sampled.
    pub fn draw(&mut self) -> bool {
        self.next_hash() < self.threshold
    }

    /// A hash below 2^32.
    fn next_hash(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.seed.0 ^ self.drawn) >> 32
    }

    /// Shows an access to a sampled block to the miniatures.
    pub fn access(&mut self, block: BlockId) -> [Verdict; RULES.len()] {
        let number = BlockId(self.number(block));
        let verdicts = self.miniatures.each_mut().map(|miniature| miniature.access(number));
        self.release_forgotten();
        verdicts
    }

    /// Takes in a sampled block that the cache adopted.
    pub fn adopt(&mut self, block: BlockId) {
        let number = BlockId(self.number(block));
        for miniature in self.miniatures.iter_mut().filter(|each| !each.contains(number)) {
            miniature.adopt(number);
        }
        self.release_forgotten();
    }

    /// The number of a sampled block, which gets one if it has none.
    fn number(&mut self, block: BlockId) -> u32 {
        if let Some(number) = self.number_of(block) {
            return number;
        }
        if self.numbers.len() as u32 >= self.most_numbers() {
            self.make_room();
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.sampled.push(None);
            self.sampled.len() as u32 - 1
        });
        // What is sampled was drawn below the threshold; how far below is not kept with the block.
        let draw = (self.next_hash() * self.threshold) >> 32;
        let draw = NonZeroU32::MIN | draw as u32;
        self.sampled[number as usize] = Some(Sampled { block, draw });
        self.enter(block, number);
        number
    }

    /// The number of a block, if it has one.
    #[inline(always)]
    fn number_of(&self, block: BlockId) -> Option<u32> {
        let is_its = |number: &u32| is_of(&self.sampled, *number, block);
        self.numbers.find(hash(block), is_its).copied()
    }

    /// Lets the number be found by its block.
    fn enter(&mut self, block: BlockId, number: u32) {
        let sampled = &self.sampled;
        let hash_again = |number: &u32| hash_of(sampled, *number);
        self.numbers.insert_unique(hash(block), number, hash_again);
    }

    /// Takes a number back: of a ghost, if one is found soon, else of a block that the miniature
    /// `lru` does not hold. As many are in use as may be, and it holds a third of them at most.
    fn make_room(&mut self) {
        for look in 0..LOOKS + self.sampled.len() {
            let number = self.hand as u32;
            self.hand = (self.hand + 1) % self.sampled.len();
            let holds = |miniature: &SwitchingCache| miniature.contains(BlockId(number));
            let is_held = match look {
                0..LOOKS => self.miniatures.iter().any(holds),
                _ => holds(&self.miniatures[0]),
            };
            if !is_held && self.sampled[number as usize].is_some() {
                self.release(number);
                return self.release_forgotten();
            }
        }
    }

    /// Whether a miniature tracks the block.
    pub fn tracks(&self, block: BlockId) -> bool {
        self.number_of(block).is_some()
    }

    /// The most blocks that miniatures track.
    pub fn max_tracked(&self) -> u64 {
        u64::from(self.most_numbers())
    }

    fn most_numbers(&self) -> u32 {
        MOST_BLOCKS * self.capacity()
    }

    /// The target of the `arc` of miniature, as a share of its capacity.
    pub fn target_share(&self) -> f64 {
        let arc = RULES.iter().position(|rule| *rule == Rule::Arc);
        arc.map_or(0.0, |arc| self.miniatures[arc].target_share())
    }

    /// Forgets a block.
    pub fn remove(&mut self, block: BlockId) {
        if let Some(number) = self.number_of(block) {
            self.release(number);
            self.release_forgotten();
        }
    }

    /// Scales the miniatures to another capacity. Blocks whose draws are too high now leave, and
    /// are appended to `left`.
    pub fn resize(&mut self, capacity: u32, left: &mut Vec<BlockId>) {
        self.scale(capacity);
        let mut evicted = Vec::new();
        for miniature in &mut self.miniatures {
            miniature.resize(capacity.min(self.most), &mut evicted);
        }
        self.release_forgotten();
        for number in 0..self.sampled.len() {
            let too_many = self.numbers.len() as u32 > self.most_numbers();
            let beyond =
                |sampled: &Sampled| too_many || u64::from(sampled.draw.get()) >= self.threshold;
            if let Some(sampled) = self.sampled[number].filter(beyond) {
                self.release(number as u32);
                left.push(sampled.block);
            }
        }
        self.release_forgotten();
    }

    /// Takes the share that is sampled from the capacity, and makes room for all that may be.
    fn scale(&mut self, capacity: u32) {
        let most = self.most.min(capacity);
        self.threshold =
            (u64::from(most) << 32).checked_div(u64::from(capacity)).unwrap_or(1 << 32);
        let numbers = (MOST_BLOCKS * most) as usize;
        self.miniatures.iter_mut().for_each(|miniature| miniature.reserve_ids(numbers));
        let sampled = &self.sampled;
        let hash_again = |number: &u32| hash_of(sampled, *number);
        self.numbers.reserve(numbers.saturating_sub(self.numbers.len()), hash_again);
        self.sampled.reserve(numbers.saturating_sub(self.sampled.len()));
    }

    /// Gives a number back, if it is in use; the miniatures forget its block.
    fn release(&mut self, number: u32) {
        let Some(Sampled { block, .. }) = self.sampled[number as usize] else { return };
        if let Ok(entry) = self.numbers.find_entry(hash(block), |each| *each == number) {
            entry.remove();
        }
        for miniature in &mut self.miniatures {
            miniature.remove(BlockId(number));
        }
        self.sampled[number as usize] = None;
        self.free.push(number);
    }

    /// Takes numbers back of blocks that no miniature tracks any more.
    fn release_forgotten(&mut self) {
        for place in 0..self.miniatures.len() {
            while let Some(number) = self.miniatures[place].take_forgotten() {
                let is_known = self.miniatures.iter().any(|miniature| miniature.tracks(number));
                if !is_known {
                    self.release(number.0);
                }
            }
        }
    }

    /// Gives the blocks that are kept new ids.
    pub fn renumber(&mut self, ids: &Renumbering) {
        // What miniatures track is tracked, and so kept.
        self.numbers.clear();
        for number in 0..self.sampled.len() {
            let Some(sampled) = &mut self.sampled[number] else { continue };
            if let Some(block) = ids.get(sampled.block) {
                sampled.block = block;
                self.enter(block, number as u32);
            }
        }
    }

    /// Checks every miniature, and that numbers and blocks agree.
    pub fn audit(&self) -> Result<(), String> {
        self.miniatures.iter().try_for_each(SwitchingCache::audit)?;
        if self.numbers.len() as u32 > self.most_numbers() {
            return Err(format!(
                "{} sampled blocks of {}",
                self.numbers.len(),
                self.most_numbers()
            ));
        }
        let known = self.sampled.iter().filter(|sampled| sampled.is_some()).count();
        if known != self.numbers.len() || known + self.free.len() != self.sampled.len() {
            return Err(format!("{known} sampled blocks, {} with numbers", self.numbers.len()));
        }
        for (number, sampled) in self.sampled.iter().enumerate() {
            let found = sampled.map(|sampled| self.number_of(sampled.block));
            if found.is_some_and(|found| found != Some(number as u32)) {
                return Err(format!("number {number} is not found by its block"));
            }
        }
        Ok(())
    }
}

/// Whether the number is that of the block.
#[inline(always)]
fn is_of(sampled: &[Option<Sampled>], number: u32, block: BlockId) -> bool {
    sampled[number as usize].is_some_and(|each| each.block == block)
}

/// The hash of the block of a number.
fn hash_of(sampled: &[Option<Sampled>], number: u32) -> u64 {
    sampled[number as usize].map_or(0, |each| hash(each.block))
}

#[inline(always)]
fn hash(block: BlockId) -> u64 {
    mix(u64::from(block.0))
}
