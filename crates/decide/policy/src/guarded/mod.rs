//! Guarded: the cache follows the rule that did best of late, and `lru` when that costs misses.
//!
//! For: volumes of which nothing is known, where no rule may cost much beside `lru`. Ours, after
//! miniature simulation (Waldspurger et al., ATC'17) and a choice among experts. Units: blocks,
//! accesses, hits.
//!
//! Every rule runs on a miniature cache of sampled blocks ([`Sample`]). Their hits of late choose
//! the rule of the cache, and a budget of misses beside the miniature `lru` guards the choice
//! ([`Choice`]). The cache changes its rule without moving or losing a block ([`SwitchingCache`]).
//!
//! The price, on the sampled blocks: at any time the cache has missed at most as often as the
//! miniature `lru`, times 1 and the allowance, and (1/2 + 1 + 1/8) capacities. The first part
//! is the budget at first. When it is spent `lru` runs; an eighth of a capacity of accesses may
//! pass until it can, because a rule hands over 8 blocks per access; and each block that `lru`
//! would hold then costs one miss at most, which makes one capacity. `lru` is left only when half
//! of the first budget is there again, so that it is never overdrawn by more than the last two
//! parts. What was gained counts as well, up to 4 capacities, so that the bound of any later
//! window has 4 capacities in place of 1/2. Where all blocks are sampled, in caches no larger than
//! a miniature, this is a bound of the cache itself; otherwise it holds as far as the sample is
//! like the rest. Blocks adopted or removed and changes of the capacity are not in it.

mod choice;
mod sample;
mod switching_cache;

use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_snapshot::Snapshot;
use cachewright_types::{BlockId, Seed};
use choice::Choice;
use sample::Sample;
use switching_cache::{RULES, SwitchingCache};

cachewright_types::declare! {
    /// How rules are measured, and what another must be worth.
    pub struct GuardedSettings {
        /// hits that a block written into the cache costs
        write_price: f64 = 0.02, "hits", 0.0 ..= 1.0;
        /// hits by which another rule must be ahead to follow, as a share of the capacity
        margin: f64 = 0.1, "ratio", 0.0 ..= 10.0;
        /// accesses after which a hit counts for 1/e, as a multiple of the capacity
        horizon: f64 = 4.0, "ratio", 0.1 ..= 1e6;
        /// misses that the cache may have more than `lru`, as a share of those
        allowance: f64 = 0.02, "ratio", 0.0 ..= 1.0;
        /// the most blocks of a miniature cache
        miniature: u32 = 2048, "blocks", 16 ..= 65_536;
    }
}

/// A cache that follows the best of several rules.
#[derive(Clone, Debug, Snapshot)]
pub struct Guarded {
    cache: SwitchingCache,
    sample: Sample,
    choice: Choice,
    /// Blocks that left the sample; empty between calls.
    left: Vec<BlockId>,
}

impl Registered for Guarded {
    type Settings = GuardedSettings;
    const ENTRY: Entry = Entry {
        name: "guarded",
        doc: "follows the best of late of five rules on miniatures, and lru when that costs misses",
        source: "ours, after Waldspurger et al. (miniature simulation), ATC'17",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &GuardedSettings, seed: Seed) -> Self {
        let sample = Sample::new(capacity_blocks, settings.miniature, seed);
        Guarded {
            cache: SwitchingCache::new(capacity_blocks, RULES[0], true, seed),
            choice: Choice::new(settings, sample.capacity()),
            sample,
            left: Vec::new(),
        }
    }
}

impl Guarded {
    /// Draws a block that nothing tracks.
    #[inline(always)]
    fn meet(&mut self, block: BlockId) {
        if !self.tracks(block) {
            let sampled = self.sample.draw();
            self.cache.set_sampled(block, sampled);
        }
    }

    /// Shows a sampled access to the miniatures, and changes the rule if another did better.
    fn compare(&mut self, access: Access, verdict: Verdict) {
        let miniatures = self.sample.access(access.block);
        self.choice.note(verdict, miniatures, access.write);
        let running = self.cache.rule();
        let rule = self.choice.rule(running);
        if rule != running && !self.cache.is_handing_over() {
            self.cache.follow(rule, self.sample.target_share());
        }
    }
}

impl PolicyHooks for Guarded {}

impl Policy for Guarded {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        if self.cache.capacity() == 0 {
            return Verdict::Bypass;
        }
        self.meet(access.block);
        let verdict = self.cache.access(access.block);
        if self.cache.is_sampled(access.block) {
            self.compare(access, verdict);
        }
        verdict
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.cache.contains(block)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.cache.tracks(block) || (self.cache.is_sampled(block) && self.sample.tracks(block))
    }

    fn max_tracked(&self) -> u64 {
        2 * u64::from(self.cache.capacity()) + self.sample.max_tracked()
    }

    fn adopt(&mut self, block: BlockId, _dirty: bool) -> Verdict {
        if self.cache.capacity() == 0 {
            return Verdict::Bypass;
        }
        self.meet(block);
        if self.cache.is_sampled(block) {
            self.sample.adopt(block);
        }
        self.cache.adopt(block)
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.cache.len()
    }

    fn capacity(&self) -> u32 {
        self.cache.capacity()
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.cache.resize(capacity_blocks, evicted);
        self.sample.resize(capacity_blocks, &mut self.left);
        for block in self.left.drain(..) {
            self.cache.set_sampled(block, false);
        }
        self.choice.scale(self.sample.capacity());
    }

    fn remove(&mut self, block: BlockId) -> bool {
        if self.cache.is_sampled(block) {
            self.sample.remove(block);
        }
        self.cache.remove(block)
    }

    fn reserve_ids(&mut self, count: usize) {
        self.cache.reserve_ids(count);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.cache.renumber(ids);
        self.sample.renumber(ids);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.cache.touch(block);
    }

    fn leaves_after(&self, later: u32) -> Option<BlockId> {
        self.cache.leaves_after(later)
    }

    fn audit(&self) -> Result<(), String> {
        self.cache.audit()?;
        self.sample.audit()
    }
}

#[cfg(test)]
mod tests;
