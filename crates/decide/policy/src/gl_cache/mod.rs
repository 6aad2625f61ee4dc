//! GL-Cache: blocks written together are judged together, by a model of what groups were worth.
//!
//! For: learning at a cost per group and not per block. Source: Yang, Mao, Yue, Rashmi, "GL-Cache:
//! group-level learning for efficient and high-performance caching", FAST'23: groups of blocks in
//! the order of writing; a utility per group, learned by boosted trees from its age, hits, blocks
//! hit and miss ratio at writing; the group of least predicted utility is merged with the next one,
//! whose blocks of most uses per age fill one group, and the others leave; groups are ranked again
//! after a fiftieth of them has left. Before the first model groups are merged in the order of
//! writing.
//!
//! Blocks have equal size; request rates say nothing where time is counted in accesses. Ours: a
//! group has at most a twentieth of the cache; training follows accesses and not days; a group is
//! observed from the start of an interval, or from when it is closed if that is in the first half;
//! blocks that left while they were observed are remembered up to `history` times the capacity; a
//! cache evicts a block at a time, so that chosen blocks wait, and one that is hit meanwhile enters
//! the open group; utilities count all blocks of a group. Unit: accesses. Memory: 32 bytes per id,
//! 5 per cached block.

mod groups;

use crate::registry::{Entry, Registered};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_model::learn::{BoostedTrees, BoostingSettings};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Rng, Seed, declare};
use groups::{Group, GroupPlace, Groups, MergeOrder, NO_ROW};

declare! {
    /// How GL-Cache groups and learns.
    pub struct GlCacheSettings {
        /// blocks of a group; at most a twentieth of the cache
        group: u32 = 100, "blocks", 1 ..= 65_536;
        /// accesses between two trainings, as a multiple of the capacity
        interval: f64 = 8.0, "accesses per block", 1.0 ..= 1000.0;
        /// observed blocks outside the cache that are remembered, as a multiple of the capacity
        history: f64 = 1.0, "ratio", 0.0 ..= 100.0;
        /// trees of a model
        trees: u32 = 32, "trees", 1 ..= 256;
    }
}

/// The fewest accesses of an interval.
const MIN_INTERVAL: u64 = 64;

/// Group-level learned cache.
#[derive(Clone, Debug, Snapshot)]
pub struct GlCache {
    groups: Groups,
    capacity: u32,
    group_blocks: u32,
    ghost_blocks: u32,
    /// Accesses so far, modulo 2^32, and those of this interval.
    now: u32,
    elapsed: u64,
    interval: u64,
    observations: Observations,
    merges: MergeOrder,
    rng: Rng,
    #[snapshot(settings)]
    settings: GlCacheSettings,
}

impl GlCache {
    /// One access begins.
    #[inline(always)]
    fn tick(&mut self) {
        self.now = self.now.wrapping_add(1);
        self.elapsed += 1;
        if self.elapsed >= self.interval {
            self.train();
        }
    }

    #[cold]
    fn train(&mut self) {
        self.elapsed = 0;
        let seed = Seed(self.rng.next_u64());
        let model = self.observations.learn(self.settings.trees as usize, seed);
        if let Some(model) = model {
            self.merges.set_model(model);
        }
        self.groups.clear_rows();
        let closed: Vec<u32> = self.groups.list().closed().collect();
        closed.into_iter().for_each(|group| self.observe(group));
    }

    fn observe(&mut self, group: u32) {
        let row = self.observations.observe(self.groups.group(group), self.now);
        self.groups.set_row(group, row);
    }

    /// A block that a row observes is used: the first time counts.
    #[inline(always)]
    fn count_use(&mut self, row: u32, block: BlockId) {
        if row != NO_ROW && self.observations.waits(row, self.groups.used(block)) {
            self.observations.count_use(row, self.now, self.capacity);
        }
    }

    /// Puts a block into the open group, or into a new one if that is full.
    #[inline(always)]
    fn enter(&mut self, block: BlockId) {
        let open = self.groups.list().open();
        let full = |open: u32| self.groups.group(open).blocks.len() >= self.group_blocks as usize;
        if open.is_none_or(full) {
            // Not when the capacity changes: a change in pieces would merge otherwise than one.
            self.group_blocks = self.settings.group.min(self.capacity / 20).max(1);
            self.groups.open_group(self.now);
            if let Some(closed) = open
                && self.elapsed * 2 < self.interval
            {
                self.observe(closed);
            }
        }
        self.groups.enter(block, self.now);
    }

    /// Chooses blocks to leave until there are any, or none is left.
    fn choose(&mut self) {
        while self.groups.leaving(0).is_none() {
            // The open group and one more cannot be merged.
            let pair = self.merges.next_pair(self.groups.list(), self.now);
            if let Some((first, second)) = pair {
                self.groups.merge(first, second, self.group_blocks as usize, self.now);
            } else if let Some(oldest) = self.groups.list().oldest() {
                self.groups.dissolve(oldest, self.now);
            } else {
                return;
            }
        }
    }
}

impl Registered for GlCache {
    type Settings = GlCacheSettings;
    const ENTRY: Entry = Entry {
        name: "gl-cache",
        doc: "groups of blocks written together are merged by a learned utility, others evicted",
        source: "Yang et al. (GL-Cache), FAST'23",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &GlCacheSettings, seed: Seed) -> Self {
        let mut policy = GlCache {
            groups: Groups::default(),
            capacity: capacity_blocks,
            group_blocks: 1,
            ghost_blocks: 0,
            now: 0,
            elapsed: 0,
            interval: 0,
            observations: Observations::default(),
            merges: MergeOrder::default(),
            rng: seed.derive("gl-cache").rng(),
            settings: settings.clone(),
        };
        policy.on_capacity();
        policy
    }
}

impl PolicyHooks for GlCache {}

impl StoredPolicy for GlCache {
    stored_in!(groups: Groups);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.tick();
        match self.groups.place_of(block) {
            GroupPlace::Group(group) => {
                self.count_use(self.groups.group(group).row, block);
                self.groups.hit(group, block, self.now);
                return Verdict::Hit;
            }
            GroupPlace::Leaving => {
                self.count_use(self.groups.row_outside(block), block);
                self.enter(block);
                return Verdict::Hit;
            }
            GroupPlace::Ghost => {
                self.count_use(self.groups.row_outside(block), block);
                self.groups.take_ghost(block);
            }
            GroupPlace::Out => {}
        }
        let evicted = if self.groups.resident() == self.capacity { self.evict() } else { None };
        self.enter(block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        self.choose();
        let observations = &self.observations;
        let block = self.groups.pop_leaving(|used, row| observations.waits(row, used))?;
        self.groups.trim_ghosts(self.ghost_blocks);
        Some(block)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.ghost_blocks)
    }

    fn on_capacity(&mut self) {
        self.ghost_blocks = (self.settings.history * f64::from(self.capacity)) as u32;
        let interval = self.settings.interval * f64::from(self.capacity);
        self.interval = (interval as u64).max(MIN_INTERVAL);
    }

    fn trim_ghosts(&mut self) {
        self.groups.trim_ghosts(self.ghost_blocks);
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.groups.leaving(later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        if self.groups.ghosts() > self.ghost_blocks {
            return Err(format!("{} ghosts of {}", self.groups.ghosts(), self.ghost_blocks));
        }
        Ok(())
    }
}

/// Inputs of the model: age, hits, active blocks, miss ratio, merges, blocks.
const INPUTS: usize = 6;
/// The fewest rows that are learned.
const FEWEST_ROWS: usize = 32;

/// The rows of one interval.
///
/// A row holds the inputs of a group at one time; its utility grows by one over the accesses since
/// then each time that a block of the group is used for the first time (Yang et al., FAST'23,
/// section 3.2). Utilities are per cached block, so that they do not shrink with the capacity.
#[derive(Clone, Debug, Default, SnapshotValue)]
struct Observations {
    inputs: Vec<f32>,
    /// Per row when it was made.
    times: Vec<u32>,
    utilities: Vec<f32>,
}

impl Observations {
    /// Observes a group from now on; returns the row.
    pub fn observe(&mut self, group: &Group, now: u32) -> u32 {
        append_inputs(group, now, &mut self.inputs);
        self.times.push(now);
        self.utilities.push(0.0);
        self.times.len() as u32 - 1
    }

    /// Whether a block used last at `used` was not used since a row was made.
    #[inline(always)]
    pub fn waits(&self, row: u32, used: u32) -> bool {
        (used.wrapping_sub(self.times[row as usize]) as i32) <= 0
    }

    /// A block that waited is used now.
    #[inline(always)]
    pub fn count_use(&mut self, row: u32, now: u32, capacity: u32) {
        let accesses = now.wrapping_sub(self.times[row as usize]).max(1);
        self.utilities[row as usize] += capacity as f32 / accesses as f32;
    }

    /// A model of the rows, if there are enough; they are gone then.
    pub fn learn(&mut self, trees: usize, seed: Seed) -> Option<BoostedTrees> {
        let enough = self.times.len() >= FEWEST_ROWS;
        let settings = BoostingSettings { trees, ..Default::default() };
        let model = enough
            .then(|| BoostedTrees::fit(INPUTS, &self.inputs, &self.utilities, &settings, seed));
        self.inputs.clear();
        self.times.clear();
        self.utilities.clear();
        model
    }
}

/// Appends the inputs of a group.
fn append_inputs(group: &Group, now: u32, inputs: &mut Vec<f32>) {
    inputs.extend([
        now.wrapping_sub(group.created) as f32,
        group.hits as f32,
        group.active as f32,
        group.miss_ratio,
        group.merges as f32,
        group.blocks.len() as f32,
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn run(cache: &mut GlCache, ids: &[u32]) -> Vec<Verdict> {
        ids.iter().map(|id| cache.access(Access::read(BlockId(*id)))).collect()
    }

    fn groups(cache: &GlCache) -> Vec<Vec<u32>> {
        let list = cache.groups.list();
        let blocks =
            |group: u32| cache.groups.group(group).blocks.iter().map(|block| block.0).collect();
        list.closed().chain(list.open()).map(blocks).collect()
    }

    /// Capacity 40, groups of 2: blocks 0 to 39 in order; 0, 1 and 4 are hit, at times 41 to 43.
    /// Block 40, at time 44: the oldest groups, 0 1 and 2 3, are merged; 1 (2 uses, 2 old) comes
    /// before 0 (2 uses, 3 old), 3 and 2 are to leave, 2 first. The open group is full, and 40
    /// opens another. Block 3 is hit: it enters the open group. Block 41: none is to leave, so 4 5
    /// and 6 7 are merged: 4 and 7 stay, 5 leaves.
    #[test]
    fn groups_are_merged_in_order_by_hand() {
        let settings = GlCacheSettings { group: 2, ..Default::default() };
        let mut cache = GlCache::new(40, &settings, Seed(0));
        cache.reserve_ids(64);
        run(&mut cache, &(0..40).collect::<Vec<u32>>());
        run(&mut cache, &[0, 1, 4]);
        let out = |id| Verdict::Admit { evicted: Some(BlockId(id)) };
        assert_eq!(run(&mut cache, &[40]), [out(2)]);
        assert_eq!(groups(&cache)[..2], [vec![1, 0], vec![4, 5]]);
        assert_eq!(run(&mut cache, &[3, 41]), [Verdict::Hit, out(5)]);
        assert_eq!(groups(&cache)[..3], [vec![1, 0], vec![4, 7], vec![8, 9]]);
        assert_eq!(groups(&cache)[18..], [vec![40, 3], vec![41]]);
        assert_eq!(cache.audit(), Ok(()));
    }

    /// Hits in the second half of rounds of 200 blocks, 100 that never return, the 200 again, and
    /// 700 that never return, in a cache of 600.
    fn hits_of_rounds(interval: f64) -> u32 {
        const ROUNDS: u32 = 100;
        let settings = GlCacheSettings { group: 10, interval, ..Default::default() };
        let mut cache = GlCache::new(600, &settings, Seed(3));
        cache.reserve_ids(1200 * ROUNDS as usize);
        let mut hits = 0;
        for access in 0..1200 * ROUNDS {
            let (round, step) = (access / 1200, access % 1200);
            let id = match step {
                0..200 => step,
                300..500 => step - 300,
                _ => 1200 * round + step,
            };
            let verdict = cache.access(Access::read(BlockId(id)));
            hits += u32::from(round >= ROUNDS / 2 && verdict == Verdict::Hit);
        }
        assert_eq!(cache.audit(), Ok(()));
        hits
    }

    /// Without a model, merges keep the blocks of most uses per age of each pair.
    #[test]
    fn a_model_keeps_groups_that_were_hit() {
        let (learned, in_order) = (hits_of_rounds(8.0), hits_of_rounds(1000.0));
        assert!(learned * 10 > in_order * 11, "{learned} hits, {in_order} without a model");
    }
}
