//! Miniature simulation: curves of any registered policy at many sizes in one pass, from small
//! caches that see a sample.
//!
//! A cache of size x rate blocks that sees only the blocks of a sample represents the cache of the
//! full size (Waldspurger, Saemundsson, Ahmad, Park, USENIX ATC'17). Misses are scaled by 1/rate
//! over all accesses. Accesses missing from the sample therefore count as hits, as in SHARDS-adj.
//!
//! The rate is doubled while the small cache or the sampled working set is below its minimum, or
//! refused, size by size. A rate above 1/2 becomes 1, which is the exact simulation. Several
//! samples give an interval. A setting that counts accesses of the stream (its unit is `accesses`)
//! is scaled by the rate as well. Policies that need the future keep their sampled accesses, 12
//! bytes each. Sizes in blocks.

use crate::sample::{BlockIndex, BlockName, Circle, mean_and_half_width, threshold};
use crate::{Curve, CurveError, Curves, Provenance};
use cachewright_policy::{
    Access, Future, NEVER, Need, PolicyVisitor, Registered, Verdict, registry,
};
use cachewright_snapshot::Snapshot;
use cachewright_types::registry::Needed;
use cachewright_types::{BlockId, BlockKey, Seed, Value, VolumeKeys, declare};
use std::ops::Range;

declare! {
    /// Settings of miniature simulation.
    pub struct MiniSettings {
        /// share of the blocks in each sample, where sizes allow
        rate: f64 = 0.01, "ratio", 0.000001 ..= 1.0;
        /// fewest blocks of a small cache
        min_cache_blocks: u32 = 128, "blocks", 1 ..= 16777216;
        /// fewest distinct blocks expected in a sample (0: any)
        min_sampled_blocks: u32 = 8192, "blocks", 0 ..= 16777216;
        /// samples averaged; their spread makes the interval
        salts: u32 = 4, "samples", 1 ..= 16;
        /// raise the rate to reach the minima; otherwise refuse
        escalate: bool = true, "";
    }
}

/// The rate at which a cache of `size_blocks` is simulated, for a stream of `distinct_blocks`.
/// Errors: without escalation, the minimum that the settings' rate falls short of.
pub fn rate_for(
    size_blocks: u32,
    distinct_blocks: u64,
    settings: &MiniSettings,
) -> Result<f64, CurveError> {
    let rate = settings.rate;
    let of_cache = f64::from(settings.min_cache_blocks) / f64::from(size_blocks);
    let of_blocks = f64::from(settings.min_sampled_blocks) / distinct_blocks.max(1) as f64;
    let (of_cache, of_blocks) = (of_cache.min(1.0), of_blocks.min(1.0));
    if !settings.escalate && rate < of_cache {
        return Err(CurveError::TooSmall {
            size_blocks,
            rate,
            scaled_blocks: rate * f64::from(size_blocks),
            minimum_blocks: settings.min_cache_blocks,
            needed_rate: of_cache,
        });
    }
    if !settings.escalate && rate < of_blocks {
        return Err(CurveError::FewBlocks {
            distinct_blocks,
            rate,
            sampled_blocks: rate * distinct_blocks as f64,
            minimum_blocks: settings.min_sampled_blocks,
            needed_rate: of_blocks,
        });
    }
    let needed = rate.max(of_cache).max(of_blocks);
    let doublings = (needed / rate).log2().ceil().max(0.0);
    let raised = rate * doublings.exp2();
    Ok(if raised > 0.5 && doublings > 0.0 { 1.0 } else { raised.min(1.0) })
}

/// A miniature simulation of one policy at several sizes.
#[derive(Snapshot)]
pub struct MiniSim {
    #[snapshot(settings)]
    circle: Circle,
    /// Sizes by rate, in the order of their first size.
    #[snapshot(each)]
    groups: Vec<RateGroup>,
    /// Whether any group sees less than every block.
    #[snapshot(settings)]
    samples_blocks: bool,
    #[snapshot(settings)]
    policy: &'static str,
    #[snapshot(settings)]
    needs_future: bool,
    #[snapshot(settings)]
    sizes: usize,
    /// Per numbered member and group its sample, and its id there; nothing where it is in none.
    members: Vec<Option<(u32, BlockId)>>,
    accesses: [u64; 2],
}

/// The sizes that share a rate.
#[derive(Snapshot)]
struct RateGroup {
    #[snapshot(settings)]
    rate: f64,
    #[snapshot(settings)]
    threshold: u64,
    /// (size in blocks, its place in the caller's list).
    #[snapshot(settings)]
    sizes: Vec<(u32, usize)>,
    #[snapshot(each)]
    samples: Vec<BlockSample>,
}

impl MiniSim {
    /// Empty caches. `sizes_blocks` ascends from above 0; `distinct_blocks` is the number of
    /// distinct blocks of the stream. Errors: sizes that describe no curve, an unknown policy or
    /// setting, a policy that asks for more than accesses and their future, and what [`rate_for`]
    /// refuses.
    pub fn new(
        policy: &str,
        pairs: &[(String, Value)],
        sizes_blocks: &[u32],
        distinct_blocks: u64,
        settings: &MiniSettings,
        seed: Seed,
    ) -> Result<MiniSim, CurveError> {
        check_sizes(sizes_blocks)?;
        let entry = registry::entry(policy)?;
        if let Some(need) = entry.needs.iter().find_map(lacking) {
            return Err(CurveError::Lacking { policy: entry.name, need });
        }
        let mut groups: Vec<RateGroup> = Vec::new();
        for (place, &size) in sizes_blocks.iter().enumerate() {
            let rate = rate_for(size, distinct_blocks, settings)?;
            match groups.iter_mut().find(|group| group.rate == rate) {
                Some(group) => group.sizes.push((size, place)),
                None => groups.push(RateGroup {
                    rate,
                    threshold: threshold(rate),
                    sizes: vec![(size, place)],
                    samples: Vec::new(),
                }),
            }
        }
        for group in &mut groups {
            let scale =
                |&(size, _): &(u32, usize)| ((f64::from(size) * group.rate).round() as u32).max(1);
            let capacities: Vec<u32> = group.sizes.iter().map(scale).collect();
            let salts = if group.rate >= 1.0 { 1 } else { settings.salts };
            let pairs = scaled_settings(policy, pairs, group.rate);
            for salt in 0..salts {
                let seed = seed.derive(&format!("mini/{salt}"));
                let maker = BankMaker { capacities: &capacities, seed };
                let bank = registry::visit(policy, &pairs, maker)?;
                group.samples.push(BlockSample::new(bank, group.rate >= 1.0));
            }
        }
        Ok(MiniSim {
            circle: Circle::new(settings.salts, seed),
            samples_blocks: groups.iter().any(|group| group.rate < 1.0),
            groups,
            policy: entry.name,
            needs_future: entry.needs.contains(&Need::Future),
            sizes: sizes_blocks.len(),
            members: Vec::new(),
            accesses: [0; 2],
        })
    }

    /// Numbers a recorded block that a sample holds: the count of those numbered before. Returns
    /// whether it did; while samples of one group overlap, no block gets a number.
    pub(crate) fn keep(&mut self, block: &BlockName<'_>) -> bool {
        let disjoint = self.circle.disjoint_below();
        if self.groups.iter().any(|group| group.samples.len() > 1 && group.threshold > disjoint) {
            return false;
        }
        let place = if self.samples_blocks { self.circle.place(block.key()) } else { 0 };
        for group in &self.groups {
            let (only, seen) =
                if group.samples.len() > 1 { self.circle.only(place) } else { (0, place) };
            let local = (seen <= group.threshold).then(|| group.samples[only].local(block));
            self.members.push(local.flatten().map(|local| (only as u32, local)));
        }
        true
    }

    /// Counts an access to a block that [`MiniSim::keep`] numbered.
    #[inline]
    pub(crate) fn access_member(&mut self, number: u32, write: bool) {
        self.count(write);
        let first = number as usize * self.groups.len();
        for (group, member) in self.groups.iter_mut().zip(&self.members[first..]) {
            if let Some((sample, local)) = *member {
                group.samples[sample as usize].access_local(local, write, self.needs_future);
            }
        }
    }

    /// Counts one access; returns whether any sample holds the block.
    #[inline]
    pub fn access(&mut self, block: BlockName<'_>, write: bool) -> bool {
        self.count(write);
        // A sample of every block holds it wherever its place is.
        let place = if self.samples_blocks { self.circle.place(block.key()) } else { 0 };
        let mut sampled = false;
        for group in &mut self.groups {
            if group.threshold <= self.circle.disjoint_below() {
                let (only, seen) = self.circle.only(place);
                if seen <= group.threshold {
                    group.samples[only].access(&block, write, self.needs_future);
                    sampled = true;
                }
                continue;
            }
            for (number, sample) in group.samples.iter_mut().enumerate() {
                if self.circle.seen(place, number) <= group.threshold {
                    sample.access(&block, write, self.needs_future);
                    sampled = true;
                }
            }
        }
        sampled
    }

    /// Counts an access to a block that no sample holds.
    #[inline(always)]
    pub fn count(&mut self, write: bool) {
        self.accesses[usize::from(write)] += 1;
    }

    /// Removes a trimmed block from the small caches. A policy that needs the future sees its
    /// accesses when the curve is read, and no trims.
    pub fn remove(&mut self, block: BlockName<'_>) {
        if !self.needs_future {
            self.samples().for_each(|sample| sample.remove(&block));
        }
    }

    /// Removes the trimmed blocks of a range of a volume, known by their keys, in the same way.
    pub fn remove_range(&mut self, volume: VolumeKeys, numbers: Range<u64>) {
        if !self.needs_future {
            self.samples().for_each(|sample| sample.remove_range(volume, numbers.clone()));
        }
    }

    fn samples(&mut self) -> impl Iterator<Item = &mut BlockSample> {
        self.groups.iter_mut().flat_map(|group| &mut group.samples)
    }

    /// The curves so far, with a knot per size; counts are reset and the caches stay. For a policy
    /// that needs the future, the accesses counted so far are the whole future.
    pub fn take_curves(&mut self) -> Curves {
        let accesses = std::mem::take(&mut self.accesses);
        let mut estimates: Vec<(u32, Vec<[f64; 2]>)> = vec![(0, Vec::new()); self.sizes];
        for group in &mut self.groups {
            for sample in &mut group.samples {
                if self.needs_future {
                    sample.fill_in_next_uses();
                }
                sample.flush();
                for (&(size, place), both) in group.sizes.iter().zip(sample.take_misses()) {
                    estimates[place].0 = size;
                    estimates[place].1.push(both.map(|misses| misses as f64 / group.rate));
                }
            }
        }
        let lowest = self.groups.iter().map(|group| group.rate).fold(1.0, f64::min);
        let salts = self.groups.iter().map(|group| group.samples.len()).max().unwrap_or(1);
        let provenance =
            Provenance::Mini { policy: self.policy.to_owned(), rate: lowest, salts: salts as u32 };
        let weighted =
            |kinds: [f64; 2], accesses: u64| curve(&estimates, kinds, accesses, &provenance);
        Curves {
            all: weighted([1.0, 1.0], accesses[0] + accesses[1]),
            reads: weighted([1.0, 0.0], accesses[0]),
            writes: weighted([0.0, 1.0], accesses[1]),
        }
    }

    /// The rate each size is simulated at, in the order the sizes were given.
    pub fn rates(&self) -> Vec<f64> {
        let mut rates = vec![0.0; self.sizes];
        for group in &self.groups {
            group.sizes.iter().for_each(|&(_, place)| rates[place] = group.rate);
        }
        rates
    }
}

/// A need that a sample of block accesses cannot meet.
fn lacking(need: &Need) -> Option<&'static str> {
    (*need != Need::Future).then(|| need.phrase())
}

/// `pairs` with every setting in `accesses` of the stream scaled by `rate`, because a sample sees
/// only this part of the stream. A value of the wrong kind stays and is refused later.
fn scaled_settings(policy: &str, pairs: &[(String, Value)], rate: f64) -> Vec<(String, Value)> {
    let mut scaled = pairs.to_vec();
    let specs = registry::keys(policy).unwrap_or_default();
    for spec in specs.iter().filter(|spec| spec.unit == "accesses" && rate < 1.0) {
        let index = scaled.iter().position(|(key, _)| key == spec.name);
        let value = match index.map(|index| &scaled[index].1) {
            None => spec.default_number(),
            Some(Value::Int(count)) => *count as f64,
            Some(Value::Float(count)) => *count,
            Some(_) => continue,
        };
        let Some((low, high)) = spec.range else { continue };
        if !(low..=high).contains(&value) {
            continue;
        }
        let value = Value::Int((value * rate).round().max(low) as i64);
        match index {
            Some(index) => scaled[index].1 = value,
            None => scaled.push((spec.name.to_owned(), value)),
        }
    }
    scaled
}

fn check_sizes(sizes_blocks: &[u32]) -> Result<(), CurveError> {
    let found = if sizes_blocks.is_empty() {
        "none".to_owned()
    } else if sizes_blocks[0] == 0 {
        "0 first".to_owned()
    } else if let Some(pair) = sizes_blocks.windows(2).find(|pair| pair[0] >= pair[1]) {
        format!("{} after {}", pair[1], pair[0])
    } else {
        return Ok(());
    };
    Err(CurveError::Sizes { found })
}

/// The mean curve of reads times `kinds[0]` and writes times `kinds[1]`, with its interval if any
/// size was sampled.
fn curve(
    estimates: &[(u32, Vec<[f64; 2]>)],
    kinds: [f64; 2],
    accesses: u64,
    provenance: &Provenance,
) -> Curve {
    let max_misses = accesses as f64;
    let (mut knots, mut low, mut high) = (Vec::new(), vec![max_misses], vec![max_misses]);
    for (size, values) in estimates {
        let weigh = |both: &[f64; 2]| both[0] * kinds[0] + both[1] * kinds[1];
        let values: Vec<f64> = values.iter().map(|both| weigh(both).min(max_misses)).collect();
        let (mean, half) = mean_and_half_width(&values);
        knots.push((*size, mean));
        low.push((mean - half).max(0.0));
        high.push((mean + half).min(max_misses));
    }
    let curve = Curve::from_knots(knots, accesses, provenance.clone());
    let sampled = estimates.iter().any(|(_, values)| values.len() > 1);
    if sampled { curve.with_band(low, high) } else { curve }
}

/// Accesses gathered before the caches of a sample see them.
const BATCH: usize = 1024;
/// Ids looked at for each new one.
const LOOKS: usize = 16;

/// Caches of one policy fed the same accesses.
pub(crate) trait Bank: Snapshot + Send {
    fn reserve_ids(&mut self, count: usize);
    fn run(&mut self, accesses: &[Access]);
    fn remove(&mut self, block: BlockId);
    /// Whether any cache remembers the block.
    fn tracks(&self, block: BlockId) -> bool;
    /// Misses of reads and writes per cache since the last call.
    fn take_misses(&mut self) -> Vec<[u64; 2]>;
}

#[derive(Snapshot)]
struct Caches<P> {
    #[snapshot(each)]
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

/// The blocks of one sample, and the small caches that see them; accesses are gathered before the
/// caches do.
///
/// Blocks of a recording keep their ids where the sample is everything. Blocks known by their keys
/// alone give their ids back once no cache tracks them: after each batch a hand looks at as many as
/// [`LOOKS`] ids for each new one. So ids stay near the blocks that the caches remember, and memory
/// does not grow with the volume.
#[derive(Snapshot)]
pub(crate) struct BlockSample {
    index: BlockIndex,
    /// Whether it holds every block, so that ids of a recording serve.
    #[snapshot(settings)]
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
        BlockSample {
            index: BlockIndex::default(),
            whole,
            ids: 0,
            keys: Vec::new(),
            free: Vec::new(),
            hand: (0, 0),
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
    pub fn fill_in_next_uses(&mut self) {
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
