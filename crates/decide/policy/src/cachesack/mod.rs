//! `cachesack`: LRU whose misses are admitted by category, as costs of reads and writes weigh.
//!
//! For: a flash cache in which writes cost. Must never know: engines, tenants, the future. Source:
//! Yang, Wu, Cai et al., "CacheSack: Admission Optimization for Google Datacenter Flash Caches",
//! USENIX ATC 2022. Each category of traffic gets one of four policies of admission: at every
//! miss, at the second miss, when it is written, never. A model of the cache, which keeps a block
//! for a time after each use, says what each policy would have cost and which space it would have
//! taken, for a list of such times ([`tally`]). A knapsack chooses ([`knapsack`]); at most one
//! category goes two ways. Units: blocks, accesses, bytes.
//!
//! Beyond the paper: its categories are users and tables, which a block cache does not know. Here
//! a category is where the request lies (extents of the volume, hashed to `regions` groups), its
//! shape and whether it writes. The share of a category that goes another way is every so manieth
//! miss, so that nothing is drawn. Before the first plan every miss is admitted. What a block's
//! waits were is remembered for `ghosts` times the capacity. Ages wrap after 2^32 accesses.

mod knapsack;
mod retention;
mod tally;

use crate::entry::{Entry, Need, Registered};
use crate::links::Links;
use crate::rc_x::class::Shapes;
use crate::renumber::Renumbering;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, RequestInfo, Verdict};
use cachewright_types::seed::mix;
use cachewright_types::{BlockId, Bytes, Seed};
use knapsack::{AdmissionChoice, AdmissionPlan, plan};
use retention::{NEVER, Retention};
use tally::{BlockPresence, CategoryTally, Way};

cachewright_types::declare! {
    /// What CacheSack weighs and remembers.
    pub struct CacheSackSettings {
        /// reads of a block from the backing device that a block written into the cache costs
        write_price: f64 = 0.1, "reads", 0.0 ..= 100.0;
        /// blocks remembered beyond the capacity, as a multiple of it
        ghosts: f64 = 2.0, "ratio", 0.0 ..= 16.0;
        /// accesses between two plans, as a multiple of the capacity
        every: f64 = 2.0, "capacities", 0.01 ..= 1000.0;
        /// groups of extents; 1 tells none apart
        regions: u32 = 16, "groups", 1 ..= 256;
        /// bytes of an extent
        extent: Bytes = Bytes(1 << 30), "bytes", 4096 ..= 1099511627776;
    }
}

/// Shapes of requests, reads and writes apart.
const KINDS: usize = 8;
/// The fewest accesses between two plans.
const MIN_EVERY: u64 = 1_000;
/// The lists: blocks in the cache by their last use, and what is remembered beyond them.
const CACHED: usize = 0;
const GHOSTS: usize = 1;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
struct SackRecord {
    last: u32,
    category: u16,
    presence: BlockPresence,
    /// The times that `presence` is of: those after so many changes of them.
    times: u8,
    /// 0 for a block of which nothing is known, else its list and 1.
    place: u8,
}

/// Blocks in the cache and remembered ones.
#[derive(Clone, Debug, Default)]
pub struct SackLists {
    links: Links<SackRecord, 2>,
}

/// LRU with admission by category.
#[derive(Clone, Debug)]
pub struct CacheSack {
    lists: SackLists,
    capacity: u32,
    settings: CacheSackSettings,
    shapes: Shapes,
    region: usize,
    now: u32,
    tallies: Vec<CategoryTally>,
    plan: AdmissionMemory,
}

/// The plan that holds, and when the next one is made.
#[derive(Clone, Debug)]
struct AdmissionMemory {
    retention: Retention,
    /// How often other times were tried than before; wraps.
    changes: u8,
    held: Option<AdmissionPlan>,
    /// By category: what remains of the shares of misses that went the base way.
    rests: Vec<f64>,
    left: u64,
}

impl AdmissionMemory {
    /// Whether a missed block of a category is admitted; `index` is of its last wait.
    fn admits(&mut self, category: usize, index: u8, write: bool) -> bool {
        let Some(plan) = &self.held else { return true };
        let AdmissionChoice { base, next, share } = plan.choices[category];
        let rest = &mut self.rests[category];
        *rest += share;
        let turns = *rest >= 1.0;
        *rest -= f64::from(u8::from(turns));
        match if turns { next } else { base } {
            None => false,
            Some(Way::Miss) => true,
            Some(Way::SecondMiss) => usize::from(index) <= plan.time,
            Some(Way::Write) => write,
        }
    }
}

impl Registered for CacheSack {
    type Settings = CacheSackSettings;
    const ENTRY: Entry = Entry {
        name: "cachesack",
        doc: "lru that admits each category at misses, second misses, writes or never, by cost",
        source: "Yang et al., CacheSack (ATC 2022)",
        needs: &[Need::Requests],
    };

    fn new(capacity_blocks: u32, settings: &CacheSackSettings, _: Seed) -> Self {
        let categories = KINDS * settings.regions as usize;
        CacheSack {
            lists: SackLists::default(),
            capacity: capacity_blocks,
            settings: settings.clone(),
            shapes: Shapes::default(),
            region: 0,
            now: 0,
            tallies: vec![CategoryTally::default(); categories],
            plan: AdmissionMemory {
                retention: retention_grid(capacity_blocks),
                changes: 0,
                held: None,
                rests: vec![0.0; categories],
                left: every(capacity_blocks, settings.every),
            },
        }
    }
}

/// The times that are tried: the same for sizes of one power of two.
fn retention_grid(capacity_blocks: u32) -> Retention {
    Retention::new(capacity_blocks.checked_next_power_of_two().unwrap_or(u32::MAX))
}

/// Accesses until the next plan.
fn every(capacity_blocks: u32, factor: f64) -> u64 {
    ((f64::from(capacity_blocks) * factor) as u64).max(MIN_EVERY)
}

impl CacheSack {
    fn ghost_limit(&self) -> u32 {
        (f64::from(self.capacity) * self.settings.ghosts) as u32
    }

    fn category(&self, write: bool) -> usize {
        let shape = usize::from(self.shapes.class(None, write, 1) >> 5 & 3);
        (self.region * 4 + shape) * 2 + usize::from(write)
    }

    /// Makes the next plan from what was counted, and halves the counts.
    fn learn(&mut self) {
        let begun: f64 = self.tallies.iter().map(|tally| tally.begun).sum();
        let space = f64::from(self.capacity) * begun;
        let price = self.settings.write_price;
        self.plan.held = Some(plan(&self.tallies, &self.plan.retention, space, price));
        self.plan.left = every(self.capacity, self.settings.every);
        self.tallies.iter_mut().for_each(CategoryTally::halve);
    }

    /// Notes a use; returns the index of the wait that it ends.
    #[inline(always)]
    fn note(&mut self, access: Access) -> u8 {
        let category = self.category(access.write);
        let record = self.lists.links.tag_mut(access.block);
        let mut index = NEVER;
        if record.place > 0 {
            let wait = u64::from(self.now.wrapping_sub(record.last));
            index = self.plan.retention.index(wait);
            if record.times == self.plan.changes {
                let ended = &mut self.tallies[usize::from(record.category)];
                ended.end_wait(record.presence.from(), index, wait);
            } else {
                record.presence = BlockPresence::default();
            }
        }
        record.times = self.plan.changes;
        record.presence.note(index, access.write, &mut self.tallies[category]);
        (record.last, record.category) = (self.now, category as u16);
        index
    }

    /// A new time, and a new plan if it is due.
    #[inline(always)]
    fn step(&mut self) {
        self.now = self.now.wrapping_add(1);
        self.shapes.uses();
        self.plan.left -= 1;
        if self.plan.left == 0 {
            self.learn();
        }
    }

    fn admit(&mut self, block: BlockId) -> Verdict {
        let full = self.lists.resident() == self.capacity;
        let evicted = if full { self.evict() } else { None };
        self.lists.push(CACHED, block);
        self.trim_ghosts();
        Verdict::Admit { evicted }
    }
}

impl PolicyHooks for CacheSack {
    #[inline(always)]
    fn on_request(&mut self, request: &RequestInfo) {
        self.shapes.next(request);
        let extent = request.offset / self.settings.extent.0;
        self.region = (mix(extent) % u64::from(self.settings.regions)) as usize;
    }
}

impl StoredPolicy for CacheSack {
    stored_in!(lists: SackLists);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.step();
        let index = self.note(access);
        let category = usize::from(self.lists.links.tag(block).category);
        if self.lists.contains(block) {
            self.lists.links.move_to_head(CACHED, block);
            return Verdict::Hit;
        }
        self.lists.take(block);
        if self.plan.admits(category, index, access.write) {
            return self.admit(block);
        }
        self.lists.push(GHOSTS, block);
        self.trim_ghosts();
        Verdict::Bypass
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        let block = self.lists.links.pop_tail(CACHED)?;
        self.lists.push(GHOSTS, block);
        Some(block)
    }

    fn adopt_block(&mut self, block: BlockId, dirty: bool) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.step();
        self.note(Access { write: dirty, ..Access::read(block) });
        self.lists.take(block);
        self.admit(block)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.ghost_limit())
    }

    fn on_capacity(&mut self) {
        self.plan.left = self.plan.left.min(every(self.capacity, self.settings.every));
        let retention = retention_grid(self.capacity);
        if retention != self.plan.retention {
            // Of other times nothing is known yet; the plan holds until the next one.
            self.plan.retention = retention;
            self.plan.changes = self.plan.changes.wrapping_add(1);
            self.tallies.fill(CategoryTally::default());
        }
    }

    fn trim_ghosts(&mut self) {
        let limit = self.ghost_limit();
        while self.lists.links.len(GHOSTS) > limit {
            let Some(block) = self.lists.links.pop_tail(GHOSTS) else { return };
            let record = std::mem::take(self.lists.links.tag_mut(block));
            let wait = u64::from(self.now.wrapping_sub(record.last));
            if record.times == self.plan.changes {
                let tally = &mut self.tallies[usize::from(record.category)];
                tally.end_wait(record.presence.from(), NEVER, wait);
            }
        }
    }

    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.lists.links.near_tail(CACHED, later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        let (ghosts, limit) = (self.lists.links.len(GHOSTS), self.ghost_limit());
        if ghosts > limit {
            return Err(format!("{ghosts} ghosts, expected at most {limit}"));
        }
        Ok(())
    }
}

impl SackLists {
    /// Puts a block that is in no list at the newest end of one.
    #[inline(always)]
    fn push(&mut self, list: usize, block: BlockId) {
        self.links.push_head(list, block);
        self.links.tag_mut(block).place = list as u8 + 1;
    }

    /// Takes a block out of its list, if it is in one; what is known of it stays.
    #[inline(always)]
    fn take(&mut self, block: BlockId) {
        let place = self.links.tag(block).place;
        if place > 0 {
            self.links.unlink(usize::from(place) - 1, block);
        }
    }
}

impl BlockStore for SackLists {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        usize::from(self.links.tag(block).place) == CACHED + 1
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.links.tag(block).place > 0
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.links.len(CACHED)
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = self.contains(block);
        self.take(block);
        *self.links.tag_mut(block) = SackRecord::default();
        resident
    }

    fn reserve_ids(&mut self, count: usize, _: u32, _: u32) {
        self.links.reserve_ids(count);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.links.renumber(ids);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.links.audit()?;
        for list in [CACHED, GHOSTS] {
            let wrong = |block: &BlockId| usize::from(self.links.tag(*block).place) != list + 1;
            if let Some(block) = self.links.iter(list).find(wrong) {
                return Err(format!("block {} of list {list} is noted otherwise", block.0));
            }
        }
        if self.resident() > capacity {
            return Err(format!("{} blocks in a cache of {capacity}", self.resident()));
        }
        Ok(())
    }
}
