//! Curves per tenant and window of time.
//!
//! For: the replay loop, which feeds every access and asks for curves at each partition interval.
//! Must never know: when a window ends. Each tenant has an LRU stack of its own over its own block
//! ids; ids of different tenants never meet. Stacks outlive windows: a window's curve counts its
//! own accesses against everything used before.

use crate::shards::{FixedRate, FixedSize, ShardsRateSettings, ShardsSizeSettings};
use crate::{CurveError, Curves, MiniSettings, MiniSim, StackDistance};
use cachewright_types::{BlockId, Seed, TenantId, Value};

/// How the curves of a [`CurveSet`] are measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// Every access: 13 bytes per distinct block.
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

enum CurveMeter {
    Exact(StackDistance),
    Rate(FixedRate),
    Size(FixedSize),
    Mini(Box<MiniSim>),
}

/// One measurement per tenant.
pub struct CurveSet {
    meters: Vec<CurveMeter>,
}

impl CurveSet {
    /// Empty stacks for `tenants` tenants; sampling is salted from `seed`, differently per tenant.
    pub fn new(tenants: usize, method: &Method, seed: Seed) -> CurveSet {
        let meter = |tenant: usize| {
            let seed = seed.derive(&format!("curve/{tenant}"));
            match method {
                Method::Exact => CurveMeter::Exact(StackDistance::new()),
                Method::ShardsRate(settings) => CurveMeter::Rate(FixedRate::new(settings, seed)),
                Method::ShardsSize(settings) => CurveMeter::Size(FixedSize::new(settings, seed)),
            }
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
            Ok(CurveMeter::Mini(Box::new(mini)))
        };
        let meters: Result<Vec<CurveMeter>, CurveError> =
            distinct_blocks.iter().enumerate().map(meter).collect();
        Ok(CurveSet { meters: meters? })
    }

    /// Counts one access; a tenant that was not announced is ignored.
    #[inline]
    pub fn access(&mut self, tenant: TenantId, block: BlockId, write: bool) {
        match self.meters.get_mut(tenant.index()) {
            Some(CurveMeter::Exact(stack)) => {
                stack.access(block, write);
            }
            Some(CurveMeter::Rate(shards)) => shards.access(block, write),
            Some(CurveMeter::Size(shards)) => shards.access(block, write),
            Some(CurveMeter::Mini(mini)) => mini.access(block, write),
            None => {}
        }
    }

    /// Takes in a block that was read ahead of its use: used last, but no access is counted.
    /// Miniature simulations leave it out.
    pub fn bring_in(&mut self, tenant: TenantId, block: BlockId) {
        match self.meters.get_mut(tenant.index()) {
            Some(CurveMeter::Exact(stack)) => stack.bring_in(block),
            Some(CurveMeter::Rate(shards)) => shards.bring_in(block),
            Some(CurveMeter::Size(shards)) => shards.bring_in(block),
            Some(CurveMeter::Mini(_)) | None => {}
        }
    }

    /// Loads what an exact stack needs for an access ahead of it; the value means nothing. Sampled
    /// meters are small and need no such help.
    #[inline(always)]
    pub fn touch(&self, tenant: TenantId, block: BlockId) -> u32 {
        match self.meters.get(tenant.index()) {
            Some(CurveMeter::Exact(stack)) => stack.touch(block),
            _ => 0,
        }
    }

    /// Forgets a trimmed block.
    pub fn remove(&mut self, tenant: TenantId, block: BlockId) {
        match self.meters.get_mut(tenant.index()) {
            Some(CurveMeter::Exact(stack)) => {
                stack.remove(block);
            }
            Some(CurveMeter::Rate(shards)) => shards.remove(block),
            Some(CurveMeter::Size(shards)) => shards.remove(block),
            Some(CurveMeter::Mini(mini)) => mini.remove(block),
            None => {}
        }
    }

    /// Each tenant's curves of the window that ends now; counts are reset, stacks stay.
    pub fn end_window(&mut self) -> Vec<Curves> {
        self.meters
            .iter_mut()
            .map(|meter| match meter {
                CurveMeter::Exact(stack) => Curves::exact(&stack.take_histogram()),
                CurveMeter::Rate(shards) => shards.take_curves(),
                CurveMeter::Size(shards) => shards.take_curves(),
                CurveMeter::Mini(mini) => mini.take_curves(),
            })
            .collect()
    }
}
