//! Duel-X: the cache follows whichever of several policies has done best on the volume so far.
//!
//! For: volumes of which nothing is known: no single policy is near the best on all of them. Must
//! never know: engines, tenants, the future. Ours, after Subramanian, Smaragdakis and Loh
//! ("Adaptive Caches", MICRO 2006): a directory per policy, and contents that follow the best one.
//! New are the price of flash writes, the margin, and strays that are found without a search.
//! Units: blocks, accesses, hits.
//!
//! Every candidate keeps a directory of the whole cache ([`directory`]) and decides about every
//! access. The candidate with the most hits so far, less its flash writes at their price, leads
//! ([`lead`]). A missed block is admitted if the leader's directory holds it after the access; the
//! block that leaves is one that the directory does not hold ([`contents`]). So with one leader
//! from the start the cache decides exactly as that policy does, and after a change each block of
//! the new directory costs one miss at most. No access visits all blocks. Memory: that of the
//! candidates, 4 bytes per block id, and up to 16 per block in the cache.

pub mod contents;
pub mod directory;
pub mod lead;

use crate::entry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_types::{BlockId, Seed};
use contents::Contents;
use directory::{CANDIDATES, Directory};
use lead::Lead;

cachewright_types::declare! {
    /// What a leader must be worth.
    pub struct DuelXSettings {
        /// hits that a block written into the cache costs
        write_price: f64 = 0.02, "hits", 0.0 ..= 1.0;
        /// hits by which another policy must be ahead to lead, as a share of the capacity
        margin: f64 = 0.02, "ratio", 0.0 ..= 10.0;
        /// accesses between two halvings of all sums, as a multiple of the capacity
        halve_every: f64 = 100.0, "ratio", 1.0 ..= 1e9;
    }
}

/// A cache that follows the best of several policies.
#[derive(Clone, Debug)]
pub struct DuelX {
    directories: [Directory; CANDIDATES],
    lead: Lead<CANDIDATES>,
    contents: Contents,
    capacity: u32,
    settings: DuelXSettings,
    accesses_to_halving: u64,
    /// Blocks that a resized directory let go; empty between calls.
    left: Vec<BlockId>,
}

impl Registered for DuelX {
    type Settings = DuelXSettings;
    const ENTRY: Entry = Entry {
        name: "duel-x",
        doc: "follows the best so far of cacheus, access-frequency and rc-x",
        source: "ours, after Subramanian et al. (Adaptive Caches), MICRO'06",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &DuelXSettings, seed: Seed) -> Self {
        let mut duel = DuelX {
            directories: Directory::all(capacity_blocks, seed),
            lead: Lead::new(settings.write_price),
            contents: Contents::default(),
            capacity: capacity_blocks,
            settings: settings.clone(),
            accesses_to_halving: u64::MAX,
            left: Vec::new(),
        };
        duel.on_capacity();
        duel
    }
}

impl DuelX {
    /// Takes the margin and the interval of halvings from the capacity.
    fn on_capacity(&mut self) {
        let capacity = f64::from(self.capacity);
        self.lead.set_margin(self.settings.margin * capacity);
        let interval = (self.settings.halve_every * capacity) as u64;
        self.accesses_to_halving = self.accesses_to_halving.min(interval.max(1));
    }

    fn leader(&self) -> &Directory {
        &self.directories[self.lead.leader()]
    }

    #[inline(always)]
    fn age(&mut self) {
        self.accesses_to_halving -= 1;
        if self.accesses_to_halving == 0 {
            self.lead.halve();
            self.accesses_to_halving = u64::MAX;
            self.on_capacity();
        }
    }

    /// Lets every candidate decide; the cache notes what leaves the leader's directory.
    #[inline(always)]
    fn decide_all(&mut self, access: Access) {
        let leader = self.lead.leader();
        for (candidate, directory) in self.directories.iter_mut().enumerate() {
            let verdict = directory.access(access);
            self.lead.add(candidate, verdict, access.write);
            if let Verdict::Admit { evicted: Some(left) } = verdict
                && candidate == leader
            {
                self.contents.has_left(left);
            }
            while let Some(left) = directory.leaves_ahead() {
                if candidate == leader {
                    self.contents.has_left(left);
                }
            }
        }
    }

    /// Evicts a block that the leader's directory does not hold.
    fn evict(&mut self) -> Option<BlockId> {
        let leader = &self.directories[self.lead.leader()];
        self.contents.evict(|block| leader.contains(block))
    }

    /// Takes in a block that the cache does not hold and the leader's directory does.
    #[inline(always)]
    fn insert(&mut self, block: BlockId) -> Verdict {
        let full = self.contents.resident() >= self.capacity;
        let evicted = if full { self.evict() } else { None };
        self.contents.insert(block);
        Verdict::Admit { evicted }
    }
}

impl PolicyHooks for DuelX {}

impl Policy for DuelX {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.age();
        self.decide_all(access);
        if self.lead.follow() {
            self.contents.check_anew();
        }
        let leader = &self.directories[self.lead.leader()];
        self.contents.check_some(|block| leader.contains(block));
        if self.contents.contains(access.block) {
            return Verdict::Hit;
        }
        if leader.contains(access.block) { self.insert(access.block) } else { Verdict::Bypass }
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.contents.contains(block)
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.contains(block) || self.directories.iter().any(|directory| directory.tracks(block))
    }

    fn max_tracked(&self) -> u64 {
        let tracked: u64 = self.directories.iter().map(Directory::max_tracked).sum();
        u64::from(self.capacity) + tracked
    }

    fn adopt(&mut self, block: BlockId, dirty: bool) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let leader = self.lead.leader();
        for (candidate, directory) in self.directories.iter_mut().enumerate() {
            // A directory may hold the block already: another one decided that it stays out.
            if directory.contains(block) {
                continue;
            }
            if let Verdict::Admit { evicted: Some(left) } = directory.adopt(block, dirty)
                && candidate == leader
            {
                self.contents.has_left(left);
            }
        }
        self.insert(block)
    }

    fn len(&self) -> u32 {
        self.contents.resident()
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.capacity = capacity_blocks;
        self.on_capacity();
        let leader = self.lead.leader();
        for (candidate, directory) in self.directories.iter_mut().enumerate() {
            directory.resize(capacity_blocks, &mut self.left);
            for left in self.left.drain(..) {
                if candidate == leader {
                    self.contents.has_left(left);
                }
            }
        }
        while self.contents.resident() > capacity_blocks {
            evicted.extend(self.evict());
        }
    }

    fn remove(&mut self, block: BlockId) -> bool {
        self.directories.iter_mut().for_each(|directory| directory.remove(block));
        self.contents.remove(block)
    }

    fn reserve_ids(&mut self, count: usize) {
        self.directories.iter_mut().for_each(|directory| directory.reserve_ids(count));
        self.contents.reserve_ids(count, self.capacity);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.directories.iter_mut().for_each(|directory| directory.renumber(ids));
        self.contents.renumber(ids);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.directories.iter().for_each(|directory| directory.touch(block));
        self.contents.touch(block);
    }

    fn leaves_after(&self, later: u32) -> Option<BlockId> {
        self.contents.stray_after(later)
    }

    fn audit(&self) -> Result<(), String> {
        self.directories.iter().try_for_each(Directory::audit)?;
        let leader = self.leader();
        self.contents.audit(self.capacity, |block| leader.contains(block))
    }
}

#[cfg(test)]
mod tests;
