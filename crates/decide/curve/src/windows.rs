//! Curves per tenant and window of time.
//!
//! Each tenant has an LRU stack of its own over its own blocks. Stacks outlive windows: a window's
//! curve counts its own accesses against everything used before. Samples know blocks by their keys;
//! only exact stacks need ids, and give them to blocks that come without.

use crate::sample::{BlockIndex, BlockName, Members, Outside};
use crate::shards::{FixedRate, FixedSize, ShardsRateSettings, ShardsSizeSettings};
use crate::{CurveError, Curves, MiniSettings, MiniSim, StackDistance};
use cachewright_snapshot::Snapshot;
use cachewright_types::{BlockId, Seed, TenantId, Value, VolumeKeys};
use std::ops::Range;

/// How the curves of a [`CurveSet`] are measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// Every access: 13 bytes per distinct block; 20 more for blocks known by their keys alone.
    Exact,
    /// SHARDS at a fixed rate.
    ShardsRate(ShardsRateSettings),
    /// SHARDS with a fixed number of blocks.
    ShardsSize(ShardsSizeSettings),
}

/// A policy and the sizes at which [`CurveSet::of_policy`] measures its curves.
#[derive(Clone, Debug)]
pub struct PolicyCurves<'a> {
    /// A registered policy.
    pub policy: &'a str,
    /// Its settings.
    pub pairs: &'a [(String, Value)],
    /// Cache sizes in blocks, ascending from above 0.
    pub sizes_blocks: &'a [u32],
    /// How it is sampled.
    pub settings: MiniSettings,
}

/// The measurement of one tenant.
#[derive(Snapshot)]
struct CurveMeter {
    kind: MeterKind,
    /// Recorded blocks that no sample holds.
    outside: Outside,
    /// Recorded blocks that samples hold for good.
    members: Members,
}

#[derive(Snapshot)]
enum MeterKind {
    /// The stack, and ids of blocks that come without.
    Exact(StackDistance, BlockIndex),
    Rate(FixedRate),
    Size(FixedSize),
    Mini(Box<MiniSim>),
}

/// One measurement per tenant.
#[derive(Snapshot)]
pub struct CurveSet {
    #[snapshot(each)]
    meters: Vec<CurveMeter>,
}

impl CurveSet {
    /// Empty stacks for `tenants` tenants; sampling is salted from `seed`, differently per tenant.
    pub fn new(tenants: usize, method: &Method, seed: Seed) -> CurveSet {
        let meter = |tenant: usize| {
            let seed = seed.derive(&format!("curve/{tenant}"));
            CurveMeter::new(match method {
                Method::Exact => MeterKind::Exact(StackDistance::new(), BlockIndex::default()),
                Method::ShardsRate(settings) => MeterKind::Rate(FixedRate::new(settings, seed)),
                Method::ShardsSize(settings) => MeterKind::Size(FixedSize::new(settings, seed)),
            })
        };
        CurveSet { meters: (0..tenants).map(meter).collect() }
    }

    /// Miniature simulations of one policy for tenants of so many distinct blocks each. Errors: as
    /// [`MiniSim::new`].
    pub fn of_policy(
        simulation: &PolicyCurves,
        distinct_blocks: &[u64],
        seed: Seed,
    ) -> Result<CurveSet, CurveError> {
        let meter = |(tenant, &distinct): (usize, &u64)| {
            let seed = seed.derive(&format!("curve/{tenant}"));
            let PolicyCurves { policy, pairs, sizes_blocks, settings } = simulation;
            let mini = MiniSim::new(policy, pairs, sizes_blocks, distinct, settings, seed)?;
            Ok(CurveMeter::new(MeterKind::Mini(Box::new(mini))))
        };
        let meters: Result<Vec<CurveMeter>, CurveError> =
            distinct_blocks.iter().enumerate().map(meter).collect();
        Ok(CurveSet { meters: meters? })
    }

    /// Counts one access; a tenant that was not announced is ignored.
    #[inline(always)]
    pub fn access(&mut self, tenant: TenantId, block: BlockName<'_>, write: bool) {
        if let Some(meter) = self.meters.get_mut(tenant.index()) {
            meter.access(block, write);
        }
    }

    /// Takes in a block that was read ahead of its use: used last, but no access is counted.
    /// Miniature simulations leave it out.
    pub fn bring_in(&mut self, tenant: TenantId, block: BlockName<'_>) {
        let Some(meter) = self.meters.get_mut(tenant.index()) else { return };
        match &mut meter.kind {
            MeterKind::Exact(stack, ids) => stack.bring_in(exact_id(ids, &block)),
            MeterKind::Rate(shards) => shards.bring_in(block.key()),
            MeterKind::Size(shards) => shards.bring_in(block.key()),
            MeterKind::Mini(_) => {}
        }
    }

    /// Loads what an exact stack needs for an access to a recorded block ahead of it; the value
    /// means nothing. Sampled meters are small and need no such help.
    #[inline(always)]
    pub fn prefetch(&self, tenant: TenantId, block: BlockId) -> u32 {
        match self.meters.get(tenant.index()).map(|meter| &meter.kind) {
            Some(MeterKind::Exact(stack, _)) => stack.prefetch(block),
            _ => 0,
        }
    }

    /// Forgets a trimmed block.
    pub fn remove(&mut self, tenant: TenantId, block: BlockName<'_>) {
        let Some(meter) = self.meters.get_mut(tenant.index()) else { return };
        match &mut meter.kind {
            MeterKind::Exact(stack, ids) => {
                let id = block.id().or_else(|| ids.get(block.key()).map(BlockId));
                id.map(|id| stack.remove(id));
            }
            MeterKind::Rate(shards) => shards.remove(block.key()),
            MeterKind::Size(shards) => shards.remove(block.key()),
            MeterKind::Mini(mini) => mini.remove(block),
        }
    }

    /// Forgets the trimmed blocks of a range of a tenant's volume, which are known by their keys.
    /// Costs the smaller of the range and the blocks that the meter holds.
    pub fn remove_range(&mut self, tenant: TenantId, volume: VolumeKeys, numbers: Range<u64>) {
        let Some(meter) = self.meters.get_mut(tenant.index()) else { return };
        match &mut meter.kind {
            MeterKind::Exact(stack, ids) => {
                for id in ids.within(volume, numbers) {
                    stack.remove(BlockId(id));
                }
            }
            MeterKind::Rate(shards) => shards.remove_range(volume, numbers),
            MeterKind::Size(shards) => shards.remove_range(volume, numbers),
            MeterKind::Mini(mini) => mini.remove_range(volume, numbers),
        }
    }

    /// Each tenant's curves of the window that ends now; counts are reset, stacks stay.
    pub fn end_window(&mut self) -> Vec<Curves> {
        let take = |meter: &mut CurveMeter| match &mut meter.kind {
            MeterKind::Exact(stack, _) => Curves::exact(&stack.take_histogram()),
            MeterKind::Rate(shards) => shards.take_curves(),
            MeterKind::Size(shards) => shards.take_curves(),
            MeterKind::Mini(mini) => mini.take_curves(),
        };
        self.meters.iter_mut().map(take).collect()
    }
}

impl CurveMeter {
    fn new(kind: MeterKind) -> CurveMeter {
        CurveMeter { kind, outside: Outside::default(), members: Members::default() }
    }

    #[inline(always)]
    fn access(&mut self, block: BlockName<'_>, write: bool) {
        match &mut self.kind {
            MeterKind::Exact(stack, ids) => {
                stack.access(exact_id(ids, &block), write);
            }
            MeterKind::Rate(shards) if self.outside.holds(&block) => shards.count(write),
            MeterKind::Size(shards) if self.outside.holds(&block) => shards.count(write),
            MeterKind::Mini(mini) if self.outside.holds(&block) => mini.count(write),
            _ => self.offer(block, write),
        }
    }

    /// Shows an access to the samples, one of which may hold the block.
    #[inline(never)]
    fn offer(&mut self, block: BlockName<'_>, write: bool) {
        let member = self.members.number(&block);
        let sampled = match (&mut self.kind, member) {
            (MeterKind::Rate(shards), Some(number)) => return shards.access_member(number, write),
            (MeterKind::Mini(mini), Some(number)) => return mini.access_member(number, write),
            (MeterKind::Exact(..), _) => true,
            (MeterKind::Rate(shards), None) => shards.access(block.key(), write),
            (MeterKind::Size(shards), _) => shards.access(block.key(), write),
            (MeterKind::Mini(mini), None) => mini.access(block, write),
        };
        if sampled { self.keep(&block) } else { self.outside.insert(&block) }
    }

    /// Gives a block of a sample a number, if the sample holds it for good.
    fn keep(&mut self, block: &BlockName<'_>) {
        let kept = self.members.takes(block)
            && match &mut self.kind {
                MeterKind::Rate(shards) => shards.keep(block.key()),
                MeterKind::Mini(mini) => mini.keep(block),
                MeterKind::Exact(..) | MeterKind::Size(_) => false,
            };
        if kept {
            self.members.insert(block);
        }
    }
}

/// The id of a block in an exact stack: that of the recording, or one of its own.
#[inline]
fn exact_id(ids: &mut BlockIndex, block: &BlockName<'_>) -> BlockId {
    block.id().unwrap_or_else(|| BlockId(ids.enter(block.key())))
}
