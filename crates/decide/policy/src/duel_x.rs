//! Duel-X: the cache follows whichever of several policies has done best on the volume so far, and
//! `lru` when that costs misses.
//!
//! For: volumes of which nothing is known: no single policy is near the best on all of them. Ours,
//! after Subramanian, Smaragdakis and Loh ("Adaptive Caches", MICRO 2006): a directory per policy,
//! and contents that follow the best one. New are the price of flash writes, the margin, and strays
//! that are found without a search. Units: blocks, accesses, hits.
//!
//! Every candidate keeps a directory of the whole cache ([`Directory`]) and decides about every
//! access. The candidate with the most hits so far, less its flash writes at their price, leads
//! ([`Lead`]). A missed block is admitted if the leader's directory holds it after the access; the
//! block that leaves is one that the directory does not hold ([`Contents`]). So with one leader
//! from the start the cache decides exactly as that policy does, and after a change each block of
//! the new directory costs one miss at most. No access visits all blocks. Memory: that of the
//! candidates, 4 bytes per block id, and up to 16 per block in the cache.
//!
//! A budget of misses beside `lru`, which is a candidate as well, guards the choice
//! ([`MissBudget`]): while it is spent the directory of `lru` is in force. At any time the cache
//! has missed at most as often as `lru`, times 1 and the allowance, and 1/2 + 1 + 1/64 capacities:
//! the budget at first; one miss for each block of `lru` that the cache does not hold when it
//! begins to follow it; and blocks of `lru` that leave because an eviction found no stray among
//! [`MAX_CHECKED`]. From a later moment on it is 4 capacities in place of 1/2, because what was
//! gained may be spent. Blocks adopted or removed and changes of the capacity are not in it.

use crate::access_frequency::AccessFrequency;
use crate::cacheus::Cacheus;
use crate::lru::Lru;
use crate::miss_budget::MissBudget;
use crate::rc_x::{RcX, RcXSettings};
use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::sampled_blocks::SampledBlocks;
use crate::stored::BlockStore;
use crate::{Access, BackgroundOp, Policy, PolicyHooks, Verdict};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Seed};
use std::collections::VecDeque;

cachewright_types::declare! {
    /// What a leader must be worth.
    pub struct DuelXSettings {
        /// hits that a block written into the cache costs
        write_price: f64 = 0.02, "hits", 0.0 ..= 1.0;
        /// hits by which another policy must be ahead to lead, as a share of the capacity
        margin: f64 = 0.02, "ratio", 0.0 ..= 10.0;
        /// accesses between two halvings of all sums, as a multiple of the capacity
        halve_every: f64 = 100.0, "ratio", 1.0 ..= 1e9;
        /// misses that the cache may have more than `lru`, as a share of those
        allowance: f64 = 0.02, "ratio", 0.0 ..= 1.0;
    }
}

/// A cache that follows the best of several policies.
#[derive(Clone, Debug, Snapshot)]
pub struct DuelX {
    directories: [Directory; CANDIDATES],
    lead: Lead<CANDIDATES>,
    budget: MissBudget,
    /// Whether the cache must follow `lru`, whichever candidate leads.
    guarded: bool,
    contents: Contents,
    capacity: u32,
    #[snapshot(settings)]
    settings: DuelXSettings,
    accesses_to_halving: u64,
    /// Blocks that a resized directory let go; empty between calls.
    left: Vec<BlockId>,
}

impl Registered for DuelX {
    type Settings = DuelXSettings;
    const ENTRY: Entry = Entry {
        name: "duel-x",
        doc: "follows the best so far of cacheus, access-frequency, rc-x and lru; lru if it costs",
        source: "ours, after Subramanian et al. (Adaptive Caches), MICRO'06",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &DuelXSettings, seed: Seed) -> Self {
        let mut duel = DuelX {
            directories: Directory::all(capacity_blocks, seed),
            lead: Lead::new(settings.write_price),
            budget: MissBudget::new(capacity_blocks, settings.allowance),
            guarded: false,
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

    /// The place of the directory that the cache follows.
    #[inline(always)]
    fn followed(&self) -> usize {
        if self.guarded { LRU } else { self.lead.leader() }
    }

    /// Follows the candidate that leads, or `lru` while the budget demands it; returns whether the
    /// directory has changed.
    #[inline(always)]
    fn follow(&mut self) -> bool {
        let before = self.followed();
        self.lead.follow();
        self.guarded = self.budget.demands_lru(before == LRU);
        self.followed() != before
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

    /// Lets every directory decide, and returns the verdict of `lru`; the cache notes what leaves
    /// the directory that it follows.
    #[inline(always)]
    fn decide_all(&mut self, access: Access) -> Verdict {
        let followed = self.followed();
        let mut verdict = Verdict::Bypass;
        for (place, directory) in self.directories.iter_mut().enumerate() {
            verdict = directory.access(access);
            self.lead.add(place, verdict, access.write);
            if let Verdict::Admit { evicted: Some(left) } = verdict
                && place == followed
            {
                self.contents.has_left(left);
            }
            while let Some(left) = directory.leaves_ahead() {
                if place == followed {
                    self.contents.has_left(left);
                }
            }
        }
        verdict
    }

    /// Evicts a block that the directory in force does not hold.
    fn evict(&mut self) -> Option<BlockId> {
        let directory = &self.directories[self.followed()];
        self.contents.evict(|block| directory.contains(block))
    }

    /// Takes in a block that the cache does not hold and the directory in force does.
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
        let by_lru = self.decide_all(access);
        if self.follow() {
            self.contents.check_anew();
        }
        let directory = &self.directories[self.followed()];
        self.contents.check_some(|block| directory.contains(block));
        let verdict = if self.contents.contains(access.block) {
            Verdict::Hit
        } else if directory.contains(access.block) {
            self.insert(access.block)
        } else {
            Verdict::Bypass
        };
        self.budget.note(by_lru, verdict);
        verdict
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
        let followed = self.followed();
        for (place, directory) in self.directories.iter_mut().enumerate() {
            // A directory may hold the block already: another one decided that it stays out.
            if directory.contains(block) {
                continue;
            }
            if let Verdict::Admit { evicted: Some(left) } = directory.adopt(block, dirty)
                && place == followed
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
        self.budget.scale(capacity_blocks);
        let followed = self.followed();
        for (place, directory) in self.directories.iter_mut().enumerate() {
            directory.resize(capacity_blocks, &mut self.left);
            for left in self.left.drain(..) {
                if place == followed {
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
        let directory = &self.directories[self.followed()];
        self.contents.audit(self.capacity, |block| directory.contains(block))
    }
}

/// A hit, in the unit of the sums.
const HIT: f64 = 1_000.0;
/// The least margin, in hits: in a small cache a few hits say nothing.
const MIN_MARGIN: f64 = 16.0;

/// The sums and the leader of `N` candidates.
///
/// A hit is worth 1, a block written to flash costs its price; sums are in thousandths of a hit.
/// They are halved at regular intervals, so that what was long ago counts less. The leader changes
/// when another candidate is ahead by a margin, because a change costs the hits of all blocks that
/// the new leader's directory holds and the cache does not.
#[derive(Clone, Debug, SnapshotValue)]
struct Lead<const N: usize> {
    sums: [i64; N],
    leader: usize,
    price: i64,
    margin: i64,
}

impl<const N: usize> Lead<N> {
    /// The first candidate leads. `write_price` is in hits.
    pub fn new(write_price: f64) -> Lead<N> {
        Lead { sums: [0; N], leader: 0, price: (write_price * HIT) as i64, margin: 0 }
    }

    /// Sets by how many hits another candidate must be ahead.
    pub fn set_margin(&mut self, hits: f64) {
        self.margin = (hits.max(MIN_MARGIN) * HIT) as i64;
    }

    /// The candidate that leads.
    #[inline(always)]
    pub fn leader(&self) -> usize {
        self.leader
    }

    /// Adds what a candidate decided about an access.
    #[inline(always)]
    pub fn add(&mut self, candidate: usize, verdict: Verdict, write: bool) {
        let worth = match verdict {
            Verdict::Hit if write => HIT as i64 - self.price,
            Verdict::Hit => HIT as i64,
            Verdict::Admit { .. } => -self.price,
            Verdict::Bypass => 0,
        };
        self.sums[candidate] += worth;
    }

    /// Lets the best candidate lead if it is ahead by more than the margin.
    #[inline(always)]
    pub fn follow(&mut self) {
        let (mut best, bar) = (self.leader, self.sums[self.leader] + self.margin);
        for (candidate, sum) in self.sums.iter().enumerate() {
            if *sum > bar && *sum > self.sums[best] {
                best = candidate;
            }
        }
        self.leader = best;
    }

    /// Halves all sums.
    pub fn halve(&mut self) {
        self.sums.iter_mut().for_each(|sum| *sum /= 2);
    }
}

/// Candidates, and the place of `lru` among them.
const CANDIDATES: usize = 4;
const LRU: usize = CANDIDATES - 1;

/// What one candidate would hold. Boxed, because their sizes differ by eight times.
///
/// Its blocks have no data. Each candidate wins where the others lose: `cacheus` where recency and
/// frequency change places, `access-frequency` where few blocks are used often, `rc-x` where the
/// waits before tell what comes back, and `lru` where what is hot changes faster than they learn.
/// `rc-x` counts hits alike here, without a price of writes: `duel-x` has its own. It is not told
/// of requests, so that `duel-x` needs accesses alone and runs wherever `lru` does.
#[derive(Clone, Debug, Snapshot)]
enum Directory {
    /// Of `cacheus`.
    Adaptive(Box<Cacheus>),
    /// Of `access-frequency`.
    Frequency(Box<AccessFrequency>),
    /// Of `rc-x`.
    Waits(Box<RcX>),
    /// Of `lru`.
    Recency(Box<Lru>),
}

/// Runs an expression for the policy of a directory, whichever it is.
macro_rules! with_policy {
    ($directory:expr, $policy:ident => $do:expr) => {
        match $directory {
            Directory::Adaptive($policy) => $do,
            Directory::Frequency($policy) => $do,
            Directory::Waits($policy) => $do,
            Directory::Recency($policy) => $do,
        }
    };
}

impl Directory {
    /// Empty directories of `capacity_blocks`; the first candidate leads at first.
    pub fn all(capacity_blocks: u32, seed: Seed) -> [Directory; CANDIDATES] {
        let waits = RcXSettings { by_request: false, write_price: 0.0, ..RcXSettings::default() };
        [
            Directory::Adaptive(Box::new(made(capacity_blocks, seed))),
            Directory::Frequency(Box::new(made(capacity_blocks, seed))),
            Directory::Waits(Box::new(RcX::new(capacity_blocks, &waits, seed))),
            Directory::Recency(Box::new(made(capacity_blocks, seed))),
        ]
    }

    /// Decides about one access, as if its blocks were in the cache.
    #[inline(always)]
    pub fn access(&mut self, access: Access) -> Verdict {
        with_policy!(self, policy => policy.access(access))
    }

    /// The next block that leaves the directory ahead of need.
    #[inline(always)]
    pub fn leaves_ahead(&mut self) -> Option<BlockId> {
        match with_policy!(self, policy => policy.background_op()) {
            Some(BackgroundOp::Demote(block)) => Some(block),
            _ => None,
        }
    }

    /// Takes in a block that the cache holds, past admission.
    pub fn adopt(&mut self, block: BlockId, dirty: bool) -> Verdict {
        with_policy!(self, policy => policy.adopt(block, dirty))
    }

    /// Whether the block is in the directory.
    #[inline(always)]
    pub fn contains(&self, block: BlockId) -> bool {
        with_policy!(self, policy => policy.contains(block))
    }

    /// Whether the candidate remembers anything about the block.
    pub fn tracks(&self, block: BlockId) -> bool {
        with_policy!(self, policy => policy.tracks(block))
    }

    /// The most blocks that the candidate remembers at one time.
    pub fn max_tracked(&self) -> u64 {
        with_policy!(self, policy => policy.max_tracked())
    }

    /// Changes the capacity; blocks that leave the directory are appended to `left`.
    pub fn resize(&mut self, capacity_blocks: u32, left: &mut Vec<BlockId>) {
        with_policy!(self, policy => policy.resize(capacity_blocks, left));
    }

    /// Forgets a block wherever it is remembered.
    pub fn remove(&mut self, block: BlockId) {
        with_policy!(self, policy => policy.remove(block));
    }

    /// Makes room for ids `0..count`.
    pub fn reserve_ids(&mut self, count: usize) {
        with_policy!(self, policy => policy.reserve_ids(count));
    }

    /// Gives the blocks that are kept new ids; every candidate can.
    pub fn renumber(&mut self, ids: &Renumbering) {
        with_policy!(self, policy => policy.renumber(ids));
    }

    /// Loads the block's state ahead of use.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        with_policy!(self, policy => policy.touch(block));
    }

    /// Checks every invariant of the candidate.
    pub fn audit(&self) -> Result<(), String> {
        with_policy!(self, policy => policy.audit())
    }
}

/// An empty policy with the settings of its source.
fn made<P: Registered>(capacity_blocks: u32, seed: Seed) -> P {
    P::new(capacity_blocks, &P::Settings::default(), seed)
}

/// Blocks checked at each access after a change of directory.
const CHECKED_PER_ACCESS: u32 = 4;
/// The most blocks that one eviction checks.
const MAX_CHECKED: u32 = 64;
/// The number of a block that was not queued since it came in.
const NEVER_QUEUED: u32 = 0;

/// The blocks in the cache; see the top of the file.
///
/// A block that is held and not in the directory in force is a stray: the first to leave. Blocks
/// that leave the directory become strays one by one. After a change of directory any block may be
/// one, so that all are checked, a few at each access. Invariant: each stray is in the queue or is
/// not checked yet. O(1) per access; evictions check at most [`MAX_CHECKED`] blocks.
#[derive(Clone, Debug, Default, SnapshotValue)]
struct Contents {
    /// The blocks, each with the number of its last place in the queue, or [`NEVER_QUEUED`].
    blocks: SampledBlocks<u32>,
    /// Blocks that were strays when they were queued, in that order, with their numbers. Some may
    /// be none any more, or stand in the queue again, or have left and given their id away.
    strays: VecDeque<(BlockId, u32)>,
    /// The number of the last place; 0 is passed over.
    queued: u32,
    /// Blocks at places below it are not checked yet.
    unchecked: u32,
}

impl Contents {
    /// Blocks held.
    #[inline(always)]
    pub fn resident(&self) -> u32 {
        self.blocks.resident()
    }

    /// Whether the block is held.
    #[inline(always)]
    pub fn contains(&self, block: BlockId) -> bool {
        self.blocks.contains(block)
    }

    /// Adds a block that is not held. It is in the directory in force.
    #[inline(always)]
    pub fn insert(&mut self, block: BlockId) {
        self.blocks.push(block, NEVER_QUEUED);
    }

    /// Takes a block out; returns whether it was held.
    pub fn remove(&mut self, block: BlockId) -> bool {
        let held = self.blocks.remove(block);
        self.unchecked = self.unchecked.min(self.resident());
        held
    }

    /// Notes that a block has left the directory in force. Where the queue is long because most of
    /// it has come back since, it is made anew.
    #[inline(always)]
    pub fn has_left(&mut self, block: BlockId) {
        if !self.contains(block) {
            return;
        }
        self.queue(block);
        if self.strays.len() > 2 * self.resident() as usize + MAX_CHECKED as usize {
            self.check_anew();
        }
    }

    /// Begins to check all blocks: another directory is in force.
    pub fn check_anew(&mut self) {
        self.strays.clear();
        self.unchecked = self.resident();
    }

    /// Checks some blocks. `directed` says which blocks the directory in force holds.
    #[inline(always)]
    pub fn check_some(&mut self, directed: impl Fn(BlockId) -> bool) {
        if self.unchecked > 0 {
            self.check(CHECKED_PER_ACCESS, directed);
        }
    }

    /// Evicts the stray that was queued first. Where no stray is found soon, a block that is not
    /// checked yet leaves in its place.
    pub fn evict(&mut self, directed: impl Fn(BlockId) -> bool) -> Option<BlockId> {
        let stray = self.next_stray(&directed).or_else(|| {
            self.check(MAX_CHECKED, &directed);
            self.next_stray(&directed)
        });
        let last = self.resident().checked_sub(1)?;
        let evicted = stray.unwrap_or_else(|| self.block_at(self.unchecked.min(last)));
        self.remove(evicted);
        Some(evicted)
    }

    /// The stray after `later` others, as far as is known.
    pub fn stray_after(&self, later: u32) -> Option<BlockId> {
        self.strays.get(later as usize).map(|(block, _)| *block)
    }

    /// Queues a block that is held.
    #[inline(always)]
    fn queue(&mut self, block: BlockId) {
        self.queued = self.queued.wrapping_add(1).max(1);
        if let Some(number) = self.blocks.get_mut(block) {
            *number = self.queued;
            self.strays.push_back((block, self.queued));
        }
    }

    fn block_at(&self, place: u32) -> BlockId {
        self.blocks.by_place(place as usize).0
    }

    /// Takes the next block from the queue that is a stray still.
    fn next_stray(&mut self, directed: &impl Fn(BlockId) -> bool) -> Option<BlockId> {
        while let Some((block, number)) = self.strays.pop_front() {
            if self.blocks.get(block) == Some(number) && !directed(block) {
                return Some(block);
            }
        }
        None
    }

    /// Checks blocks from the last unchecked one on: what fills a gap comes from the end, and so is
    /// checked already.
    fn check(&mut self, limit: u32, directed: impl Fn(BlockId) -> bool) {
        for _ in 0..limit.min(self.unchecked) {
            self.unchecked -= 1;
            let block = self.block_at(self.unchecked);
            if !directed(block) {
                self.queue(block);
            }
        }
    }

    /// Makes room for ids `0..count` and `capacity` blocks.
    pub fn reserve_ids(&mut self, count: usize, capacity: u32) {
        self.blocks.reserve_ids(count, capacity, 0);
    }

    /// Gives the blocks that are kept new ids.
    pub fn renumber(&mut self, ids: &Renumbering) {
        self.blocks.renumber(ids);
        self.strays = self
            .strays
            .iter()
            .filter_map(|(block, number)| Some((ids.get(*block)?, *number)))
            .collect();
    }

    /// Loads the block's state ahead of use.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        self.blocks.touch(block);
    }

    /// Checks that at most `capacity` blocks are held, and that each stray can be found.
    pub fn audit(&self, capacity: u32, directed: impl Fn(BlockId) -> bool) -> Result<(), String> {
        self.blocks.audit(capacity)?;
        if self.unchecked > self.resident() {
            return Err(format!("{} unchecked of {} blocks", self.unchecked, self.resident()));
        }
        for place in self.unchecked..self.resident() {
            let (block, number) = self.blocks.by_place(place as usize);
            if !directed(block) && !self.strays.contains(&(block, number)) {
                return Err(format!("block {} is a stray and in no queue", block.0));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
