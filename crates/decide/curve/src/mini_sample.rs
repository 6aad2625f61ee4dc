//! One sample of a miniature simulation: its blocks, and the small caches that see them.
//!
//! For: [`crate::MiniSim`]. Must never know: sizes of the caches represented, rates. Accesses are
//! gathered before the caches see them.
//!
//! Blocks of a recording keep their ids where the sample is everything. Blocks known by their keys
//! alone give their ids back once no cache tracks them: after each batch a hand looks at as many as
//! [`LOOKS`] ids for each new one. So ids stay near the blocks that the caches remember, and memory
//! does not grow with the volume.

use crate::block_index::BlockIndex;
use crate::block_name::BlockName;
use cachewright_policy::{Access, Future, NEVER, PolicyVisitor, Registered, Verdict};
use cachewright_types::{BlockId, BlockKey, Seed, VolumeKeys};
use std::ops::Range;

/// Accesses gathered before the caches of a sample see them.
const BATCH: usize = 1024;
/// Ids looked at for each new one.
const LOOKS: usize = 16;

/// Caches of one policy fed the same accesses.
pub(crate) trait Bank: Send {
    fn reserve_ids(&mut self, count: usize);
    fn run(&mut self, accesses: &[Access]);
    fn remove(&mut self, block: BlockId);
    /// Whether any cache remembers the block.
    fn tracks(&self, block: BlockId) -> bool;
    /// Misses of reads and writes per cache since the last call.
    fn take_misses(&mut self) -> Vec<[u64; 2]>;
}

struct Caches<P> {
    caches: Vec<P>,
    misses: Vec<[u64; 2]>,
}

impl<P: Registered> Bank for Caches<P> {
    fn reserve_ids(&mut self, count: usize) {
        self.caches.iter_mut().for_each(|cache| cache.reserve_ids(count));
    }

    fn run(&mut self, accesses: &[Access]) {
        for (cache, misses) in self.caches.iter_mut().zip(&mut self.misses) {
            for access in accesses {
                let missed = cache.access(*access) != Verdict::Hit;
                misses[usize::from(access.write)] += u64::from(missed);
                // The policy has recorded background evictions itself.
                while cache.background_op().is_some() {}
            }
        }
    }

    fn remove(&mut self, block: BlockId) {
        for cache in &mut self.caches {
            cache.remove(block);
        }
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.caches.iter().any(|cache| cache.tracks(block))
    }

    fn take_misses(&mut self) -> Vec<[u64; 2]> {
        let none = vec![[0; 2]; self.misses.len()];
        std::mem::replace(&mut self.misses, none)
    }
}

/// Makes empty caches once the policy's name has become its type.
pub(crate) struct BankMaker<'a> {
    pub capacities: &'a [u32],
    pub seed: Seed,
}

impl PolicyVisitor for BankMaker<'_> {
    type Output = Box<dyn Bank>;

    fn visit<P: Registered>(self, settings: P::Settings) -> Box<dyn Bank> {
        let make = |&capacity: &u32| P::new(capacity, &settings, self.seed);
        let caches: Vec<P> = self.capacities.iter().map(make).collect();
        let misses = vec![[0; 2]; caches.len()];
        Box::new(Caches { caches, misses })
    }
}

/// The blocks of one sample, and its caches.
pub(crate) struct BlockSample {
    index: BlockIndex,
    /// Whether it holds every block, so that ids of a recording serve.
    whole: bool,
    /// Ids given so far are below it.
    ids: usize,
    /// By id, the key of a block known by its key alone.
    keys: Vec<Option<BlockKey>>,
    /// Ids given back.
    free: Vec<u32>,
    /// The next id to be looked at, and how many are due.
    hand: (usize, usize),
    pending: Vec<Access>,
    bank: Box<dyn Bank>,
}

impl BlockSample {
    /// A sample without blocks; `whole` if it is to hold every block.
    pub fn new(bank: Box<dyn Bank>, whole: bool) -> BlockSample {
        let index = BlockIndex::default();
        let (ids, keys, free, hand) = (0, Vec::new(), Vec::new(), (0, 0));
        BlockSample {
            index,
            whole,
            ids,
            keys,
            free,
            hand,
            pending: Vec::with_capacity(BATCH),
            bank,
        }
    }

    /// Counts an access; the caches see it later, with `keep` when the curve is read.
    #[inline]
    pub fn access(&mut self, block: &BlockName<'_>, write: bool, keep: bool) {
        let local = match (block, self.whole) {
            (BlockName::Recorded { id, .. }, true) => id.0,
            (BlockName::Recorded { .. }, false) => self.index.enter(block.key()),
            (BlockName::Keyed(key), _) => self.enter_keyed(*key),
        };
        self.ids = self.ids.max(local as usize + 1);
        self.access_local(BlockId(local), write, keep);
    }

    /// Counts an access to a block whose id is known, as [`BlockSample::access`] would.
    #[inline]
    pub fn access_local(&mut self, block: BlockId, write: bool, keep: bool) {
        self.pending.push(Access { block, write, future: Future::None });
        if self.pending.len() >= BATCH && !keep {
            self.flush();
        }
    }

    /// The id of a block that was accessed; an id of a recorded block stays its own.
    pub fn local(&self, block: &BlockName<'_>) -> Option<BlockId> {
        let local = match (block, self.whole) {
            (BlockName::Recorded { id, .. }, true) => (id.index() < self.ids).then_some(id.0),
            _ => self.index.get(block.key()),
        };
        local.map(BlockId)
    }

    fn enter_keyed(&mut self, key: BlockKey) -> u32 {
        if let Some(local) = self.index.get(key) {
            return local;
        }
        let local = self.free.pop().unwrap_or(self.keys.len() as u32);
        if local as usize == self.keys.len() {
            self.keys.push(None);
        }
        self.keys[local as usize] = Some(key);
        self.index.insert(key, local);
        self.hand.1 += LOOKS;
        local
    }

    /// Shows the gathered accesses to the caches.
    pub fn flush(&mut self) {
        self.bank.reserve_ids(self.ids);
        self.bank.run(&self.pending);
        self.pending.clear();
        self.recycle();
    }

    /// Takes ids back of blocks that no cache tracks.
    fn recycle(&mut self) {
        let looks = std::mem::take(&mut self.hand.1).min(self.keys.len());
        for _ in 0..looks {
            let id = self.hand.0 % self.keys.len();
            self.hand.0 = id + 1;
            let known = self.keys[id].filter(|_| !self.bank.tracks(BlockId(id as u32)));
            if let Some(key) = known {
                self.keys[id] = None;
                self.index.remove(key);
                self.free.push(id as u32);
            }
        }
    }

    /// Takes a trimmed block out of the caches; costs nothing where the sample does not hold it.
    pub fn remove(&mut self, block: &BlockName<'_>) {
        if let Some(local) = self.local(block) {
            self.flush();
            self.bank.remove(local);
        }
    }

    /// Takes the trimmed blocks of a range of a volume, known by their keys, out of the caches.
    pub fn remove_range(&mut self, volume: VolumeKeys, numbers: Range<u64>) {
        let locals = self.index.within(volume, numbers);
        if !locals.is_empty() {
            self.flush();
        }
        for local in locals {
            self.bank.remove(BlockId(local));
        }
    }

    /// Fills in the next use of every pending access, as positions among them.
    pub fn look_ahead(&mut self) {
        let mut next = vec![NEVER; self.ids];
        for (position, access) in self.pending.iter_mut().enumerate().rev() {
            let next_use = &mut next[access.block.index()];
            access.future = Future::NextUse(std::mem::replace(next_use, position as u32));
        }
    }

    /// Misses of reads and writes per cache since the last call.
    pub fn take_misses(&mut self) -> Vec<[u64; 2]> {
        self.bank.take_misses()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_policy::registry;
    use cachewright_types::TenantId;

    /// A sample of one cache of 100 blocks.
    fn sample(policy: &str) -> BlockSample {
        let maker = BankMaker { capacities: &[100], seed: Seed(1) };
        BlockSample::new(registry::visit(policy, &[], maker).expect("registered"), false)
    }

    #[test]
    fn ids_stay_near_the_blocks_remembered_and_change_no_miss() {
        let volume = VolumeKeys::new(TenantId(0), 0);
        let simple = |entry: &&cachewright_policy::Entry| entry.needs.is_empty();
        for entry in registry::entries().into_iter().filter(simple) {
            let (mut keyed, mut recorded) = (sample(entry.name), sample(entry.name));
            let mut rng = Seed(2).rng();
            let mut known = BlockIndex::default();
            let mut keys = Vec::new();
            for round in 0..60_000_u64 {
                // Half of the accesses to few blocks, half to ever new ones.
                let number = if rng.below(2) == 0 { rng.below(300) } else { 1_000 + round };
                let (key, write) = (volume.key(number), rng.below(4) == 0);
                let index = known.enter(key);
                if index as usize == keys.len() {
                    keys.push(key);
                }
                keyed.access(&BlockName::Keyed(key), write, false);
                let id = BlockId(index);
                recorded.access(&BlockName::Recorded { id, keys: &keys, index }, write, false);
                if rng.below(1_000) == 0 {
                    keyed.remove_range(volume, number..number + 1);
                    recorded.remove(&BlockName::Recorded { id, keys: &keys, index });
                }
            }
            keyed.flush();
            recorded.flush();
            assert_eq!(keyed.take_misses(), recorded.take_misses(), "{}", entry.name);
            assert!(recorded.ids > 20_000 && keyed.ids < 4_000, "{}: {}", entry.name, keyed.ids);
        }
    }
}
