//! The deciding side of a cache: a live cache and its control loop, whatever the policy.

use crate::control::{Control, TenantUsage};
use crate::tenancy::ChannelTenancy;
use cachewright_cache::{Cache, Engine, Left, Plan};
use cachewright_curve::signal::Signals;
use cachewright_policy::{FutureSlice, Policy, ShadowSplit};
use cachewright_types::measure::Counts;
use cachewright_types::{Request, TenantId};

/// A cache that decides request by request. One trait, so that machines and daemons are compiled
/// once: an indirect call per request is small beside the decision.
pub trait Decider: Send {
    /// Decides about a request; see [`Cache::on_knowing`].
    fn on_request(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan);
    /// Decides about a request that goes past the cache; see [`Cache::on_cut_off`].
    fn on_cut_off(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan);
    /// Loads what the decision about a request to come will read; see
    /// [`Cache::prefetch`].
    fn prefetch(&self, _request: &Request) {}
    /// Brings a block in ahead of its use; see [`Cache::bring_in`].
    fn bring_in(&mut self, tenant: TenantId, number: u64, plan: &mut Plan) -> bool;
    /// Marks a block clean; see [`Cache::clean`].
    fn clean(&mut self, tenant: TenantId, number: u64) -> bool;
    /// Whether a block is cached and dirty.
    fn is_dirty(&self, tenant: TenantId, number: u64) -> bool;
    /// Background operations of the tenant's policy, to be called after each of its requests; see
    /// [`Cache::background_ops_at`].
    fn background_ops(&mut self, tenant: TenantId, now_ns: u64, plan: &mut Plan);
    /// An interval has ended, in which `signals` were measured; the moves of blocks that leave
    /// replace what `plan` held.
    fn end_interval(&mut self, signals: &Signals, plan: &mut Plan);
    /// The tenants that come and go, where the layout follows them.
    fn tenancy(&mut self) -> Option<&mut ChannelTenancy> {
        None
    }
    /// Tenants have come or gone: divides the cache among those that are present; the moves of
    /// blocks that leave replace what `plan` held.
    fn redivide(&mut self, _now_ns: u64, plan: &mut Plan) {
        plan.moves.clear();
    }
    /// The quota of each tenant; the whole cache where all share it.
    fn quotas(&self) -> Vec<u32>;
    /// Counters of each tenant.
    fn counts(&self) -> Vec<Counts>;
    /// Block accesses of a tenant that hit.
    fn hits(&self, tenant: TenantId) -> u64;
    /// Blocks of the last request that hit count as misses; `all_hit` reports that all did.
    fn recount(&mut self, tenant: TenantId, blocks: u64, all_hit: bool);
    /// Blocks that are dirty.
    fn dirty_blocks(&self) -> u64;
    /// Blocks held.
    fn held_blocks(&self) -> u64;
    /// Checks the cache. Errors: the rule broken, in words.
    fn audit(&self) -> Result<(), String>;
}

/// A cache under one policy, with its control loop.
pub struct CacheDecider<P> {
    cache: Cache<P>,
    control: Option<Control>,
    tenancy: Option<ChannelTenancy>,
    tenants: usize,
}

impl<P: Policy> CacheDecider<P> {
    /// A decider for `tenants` around an empty cache; without `control` quotas stay as they are.
    pub fn new(cache: Cache<P>, tenants: usize, control: Option<Control>) -> CacheDecider<P> {
        CacheDecider { cache, control, tenancy: None, tenants }
    }

    /// The same for tenants that come and go; policies are given the regions of those that are
    /// present at first.
    pub fn with_tenancy(mut self, tenancy: Option<ChannelTenancy>) -> CacheDecider<P> {
        if let Some(tenancy) = &tenancy {
            let divide = |engine: &mut _, left: Left<'_>| tenancy.divide_regions(engine, left);
            self.cache.control(&mut Plan::default(), divide);
        }
        CacheDecider { tenancy, ..self }
    }

    /// The engine, for counters.
    pub fn engine(&self) -> &Engine<P> {
        self.cache.engine()
    }

    /// Counts causes of misses from here on; see [`Engine::explain_misses`].
    pub fn begin_causes(&mut self) {
        self.cache.begin_causes();
    }

    /// The control loop.
    pub fn control(&self) -> Option<&Control> {
        self.control.as_ref()
    }

    /// The control loop, to be given other models.
    pub fn control_mut(&mut self) -> Option<&mut Control> {
        self.control.as_mut()
    }

    /// Tenants.
    pub fn tenants(&self) -> usize {
        self.tenants
    }
}

impl<P: Policy> Decider for CacheDecider<P> {
    fn on_request(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan) {
        self.cache.on_knowing(request, futures, plan);
    }

    fn on_cut_off(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan) {
        self.cache.on_cut_off(request, futures, plan);
    }

    fn prefetch(&self, request: &Request) {
        self.cache.prefetch(request);
    }

    fn bring_in(&mut self, tenant: TenantId, number: u64, plan: &mut Plan) -> bool {
        self.cache.bring_in(tenant, number, plan)
    }

    fn clean(&mut self, tenant: TenantId, number: u64) -> bool {
        self.cache.clean(tenant, number)
    }

    fn is_dirty(&self, tenant: TenantId, number: u64) -> bool {
        self.cache.is_dirty(tenant, number)
    }

    fn background_ops(&mut self, tenant: TenantId, now_ns: u64, plan: &mut Plan) {
        let pool = self.cache.engine().pool_of(tenant);
        self.cache.background_ops_at(pool, now_ns, plan);
    }

    fn end_interval(&mut self, signals: &Signals, plan: &mut Plan) {
        plan.moves.clear();
        if let Some(control) = &mut self.control {
            self.cache.control(plan, |engine, left| divide(control, engine, signals, left));
        }
    }

    fn tenancy(&mut self) -> Option<&mut ChannelTenancy> {
        self.tenancy.as_mut()
    }

    fn redivide(&mut self, now_ns: u64, plan: &mut Plan) {
        plan.moves.clear();
        if let (Some(control), Some(tenancy)) = (&mut self.control, &mut self.tenancy) {
            let redivide = |engine: &mut _, left: Left<'_>| {
                tenancy.redivide(now_ns, control, engine, left);
            };
            self.cache.control(plan, redivide);
        }
    }

    fn quotas(&self) -> Vec<u32> {
        let tenants = (0..self.tenants).map(|tenant| TenantId(tenant as u16));
        tenants.map(|tenant| self.cache.engine().quota(tenant)).collect()
    }

    fn counts(&self) -> Vec<Counts> {
        let tenants = (0..self.tenants).map(|tenant| TenantId(tenant as u16));
        tenants.map(|tenant| *self.cache.engine().counts(tenant)).collect()
    }

    fn hits(&self, tenant: TenantId) -> u64 {
        self.cache.engine().counts(tenant).hits()
    }

    fn recount(&mut self, tenant: TenantId, blocks: u64, all_hit: bool) {
        self.cache.recount(tenant, blocks, all_hit);
    }

    fn dirty_blocks(&self) -> u64 {
        self.cache.engine().dirty_blocks()
    }

    fn held_blocks(&self) -> u64 {
        let engine = self.cache.engine();
        (0..engine.pools()).map(|pool| u64::from(engine.policy(pool).len())).sum()
    }

    fn audit(&self) -> Result<(), String> {
        self.cache.audit()
    }
}

/// Where each of so many tenants stands in an engine.
pub fn standings<P: Policy>(engine: &Engine<P>, tenants: usize) -> Vec<TenantUsage> {
    let standing = |tenant: usize| {
        let id = TenantId(tenant as u16);
        // What it hit and missed is of this size, which a quota that shrinks as needed comes to
        // only later.
        let quota_blocks = engine.policy(engine.pool_of(id)).capacity();
        let held_blocks = engine.occupancy(id);
        TenantUsage { counts: *engine.counts(id), quota_blocks, held_blocks }
    };
    (0..tenants).map(standing).collect()
}

/// Divides an engine anew at the end of an interval in which `signals` were measured; blocks that
/// leave are reported to `left` as in [`Engine::set_quotas`].
pub fn divide<P: Policy>(
    control: &mut Control,
    engine: &mut Engine<P>,
    signals: &Signals,
    left: Left<'_>,
) {
    let now = standings(engine, control.tenants());
    if let Some(quotas) = control.next(&now, signals) {
        let kept = engine.set_quotas(&quotas, left);
        debug_assert!(kept, "a partitioner keeps to one kind of quotas");
        for (tenant, split) in control.splits().iter().enumerate() {
            let split = ShadowSplit { share: split.share, blocks: split.blocks };
            engine.split(engine.pool_of(TenantId(tenant as u16)), split, left);
        }
    }
}
