//! The deciding side of a machine: a cache and its control loop, whatever the policy.
//!
//! For: one trait so that the machine is compiled once. Must never know: time, devices. Cost: one
//! indirect call per request, small beside the decision itself.

use super::tenancy::Tenancy;
use crate::control::Control;
use crate::lane::LaneResult;
use crate::series::{Row, window_rows};
use crate::signals::Signals;
use cachewright_cache::{Cache, Left, Plan};
use cachewright_measure::Counts;
use cachewright_policy::{FutureSlice, Policy};
use cachewright_types::{Request, TenantId};

/// What a machine asks of a cache.
pub trait Decider: Send {
    /// Decides about a request; see [`Cache::on_knowing`].
    fn on(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan);
    /// Brings a block in ahead of its use; see [`Cache::bring_in`].
    fn bring_in(&mut self, tenant: TenantId, number: u64, plan: &mut Plan) -> bool;
    /// Marks a block clean; see [`Cache::clean`].
    fn clean(&mut self, tenant: TenantId, number: u64) -> bool;
    /// What the tenant's policy wants done beside requests, to be asked for after each of them; see
    /// [`Cache::background_ops_at`].
    fn chores(&mut self, tenant: TenantId, now_ns: u64, plan: &mut Plan);
    /// An interval has ended, in which `signals` were measured; what leaves the cache replaces what
    /// `plan` held.
    fn end_interval(&mut self, signals: &Signals, plan: &mut Plan);
    /// Who comes and goes, where the layout follows that.
    fn tenancy(&mut self) -> Option<&mut Tenancy> {
        None
    }
    /// Tenants have come or gone: the cache is divided among those who are there now; what leaves
    /// it replaces what `plan` held.
    fn resettle(&mut self, _now_ns: u64, plan: &mut Plan) {
        plan.moves.clear();
    }
    /// A window of the time series has ended.
    fn end_window(&mut self, window: u32, time_ns: u64);
    /// The quota of each tenant; the whole cache where all share it.
    fn quotas(&self) -> Vec<u32>;
    /// Counters of each tenant.
    fn counts(&self) -> Vec<Counts>;
    /// Block accesses of a tenant that hit.
    fn hits(&self, tenant: TenantId) -> u64;
    /// Blocks of the request just decided that hit count as misses; `all_hit` says that all did.
    fn recount(&mut self, tenant: TenantId, blocks: u64, all_hit: bool);
    /// Blocks that are dirty.
    fn dirty_blocks(&self) -> u64;
    /// Blocks held.
    fn held_blocks(&self) -> u64;
    /// The workload has ended.
    fn finish(&mut self) -> LaneResult;
    /// Checks the cache. Errors: the rule broken, in words.
    fn audit(&self) -> Result<(), String>;
}

/// A cache under one policy.
pub struct CacheDecider<P> {
    cache: Cache<P>,
    control: Option<Control>,
    tenancy: Option<Tenancy>,
    window_start: Vec<Counts>,
    rows: Vec<Row>,
}

impl<P: Policy> CacheDecider<P> {
    /// A decider for `tenants` around an empty cache; without `control` quotas stay as they are.
    pub fn new(cache: Cache<P>, tenants: usize, control: Option<Control>) -> CacheDecider<P> {
        let window_start = vec![Counts::default(); tenants];
        CacheDecider { cache, control, tenancy: None, window_start, rows: Vec::new() }
    }

    /// The same for tenants that come and go; policies are told the rooms of those there at first.
    pub fn with_tenancy(mut self, tenancy: Option<Tenancy>) -> CacheDecider<P> {
        if let Some(tenancy) = &tenancy {
            let divide = |engine: &mut _, left: Left<'_>| tenancy.divide_rooms(engine, left);
            self.cache.control(&mut Plan::default(), divide);
        }
        CacheDecider { tenancy, ..self }
    }
}

impl<P: Policy> Decider for CacheDecider<P> {
    fn on(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan) {
        self.cache.on_knowing(request, futures, plan);
    }

    fn bring_in(&mut self, tenant: TenantId, number: u64, plan: &mut Plan) -> bool {
        self.cache.bring_in(tenant, number, plan)
    }

    fn clean(&mut self, tenant: TenantId, number: u64) -> bool {
        self.cache.clean(tenant, number)
    }

    fn chores(&mut self, tenant: TenantId, now_ns: u64, plan: &mut Plan) {
        let pool = self.cache.engine().pool_of(tenant);
        self.cache.background_ops_at(pool, now_ns, plan);
    }

    fn end_interval(&mut self, signals: &Signals, plan: &mut Plan) {
        plan.moves.clear();
        if let Some(control) = &mut self.control {
            self.cache.control(plan, |engine, left| control.divide(engine, signals, left));
        }
    }

    fn tenancy(&mut self) -> Option<&mut Tenancy> {
        self.tenancy.as_mut()
    }

    fn resettle(&mut self, now_ns: u64, plan: &mut Plan) {
        plan.moves.clear();
        if let (Some(control), Some(tenancy)) = (&mut self.control, &mut self.tenancy) {
            let resettle = |engine: &mut _, left: Left<'_>| {
                tenancy.resettle(now_ns, control, engine, left);
            };
            self.cache.control(plan, resettle);
        }
    }

    fn end_window(&mut self, window: u32, time_ns: u64) {
        let rows = window_rows(self.cache.engine(), &mut self.window_start, window, time_ns);
        self.rows.extend(rows);
    }

    fn quotas(&self) -> Vec<u32> {
        let tenants = (0..self.window_start.len()).map(|tenant| TenantId(tenant as u16));
        tenants.map(|tenant| self.cache.engine().quota(tenant)).collect()
    }

    fn counts(&self) -> Vec<Counts> {
        let tenants = (0..self.window_start.len()).map(|tenant| TenantId(tenant as u16));
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

    fn finish(&mut self) -> LaneResult {
        let rows = std::mem::take(&mut self.rows);
        LaneResult::of(self.cache.engine(), self.window_start.len(), rows, self.control.as_ref())
    }

    fn audit(&self) -> Result<(), String> {
        self.cache.engine().audit()
    }
}
