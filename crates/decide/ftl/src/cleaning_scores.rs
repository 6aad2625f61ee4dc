//! What cleaning each superblock is worth, kept up to date for one quick look at all of them.
//!
//! For: policies whose score is a number per invalid pages times the age. An overwrite changes one
//! entry, and a victim costs a pass over two plain arrays. Must never know: formulas, streams.
//! Units: pages; moments on the clock of host page writes, exact in f64 up to 2^53. Invariant
//! (audited by `blocks`): a superblock that may not be cleaned is worth nothing. Memory: 16 bytes
//! per superblock.

use crate::block::Block;

/// Superblocks that are looked at together.
const CHUNK: usize = 64;
/// Independent maxima within a chunk: several vector registers of any processor.
const LANES: usize = 8;
/// The age of a superblock that the current write filled: close to zero, as in SepBIT's simulator,
/// where its score is 0. It comes after all others, yet before none at all.
pub const NO_AGE: f64 = 1e-9;

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
pub struct CleaningScores {
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
