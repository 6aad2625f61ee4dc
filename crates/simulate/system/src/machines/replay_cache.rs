//! A decider with the rows of its time series, for replays.
//!
//! For: what a replay reports of a cache, beside its decisions. Must never know: time, devices.

use crate::lane::LaneResult;
use crate::series::{Row, window_rows};
use cachewright_cache::Plan;
use cachewright_control::{CacheDecider, ChannelTenancy, Decider, Signals};
use cachewright_policy::{FutureSlice, Policy};
use cachewright_types::measure::Counts;
use cachewright_types::{Request, TenantId};

/// A decider whose replay is reported.
pub trait ReplayDecider: Decider {
    /// A window of the time series has ended.
    fn end_window(&mut self, window: u32, time_ns: u64);
    /// The workload has ended.
    fn finish(&mut self) -> LaneResult;
}

/// A cache under one policy, with its rows.
pub struct ReplayCache<P> {
    decider: CacheDecider<P>,
    window_start: Vec<Counts>,
    rows: Vec<Row>,
}

impl<P: Policy> ReplayCache<P> {
    /// Nothing reported yet.
    pub fn new(decider: CacheDecider<P>) -> ReplayCache<P> {
        let window_start = vec![Counts::default(); decider.tenants()];
        ReplayCache { decider, window_start, rows: Vec::new() }
    }
}

impl<P: Policy> ReplayDecider for ReplayCache<P> {
    fn end_window(&mut self, window: u32, time_ns: u64) {
        let rows = window_rows(self.decider.engine(), &mut self.window_start, window, time_ns);
        self.rows.extend(rows);
    }

    fn finish(&mut self) -> LaneResult {
        let rows = std::mem::take(&mut self.rows);
        let (engine, control) = (self.decider.engine(), self.decider.control());
        LaneResult::new(engine, self.decider.tenants(), rows, control)
    }
}

impl<P: Policy> Decider for ReplayCache<P> {
    fn on_request(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan) {
        self.decider.on_request(request, futures, plan);
    }

    fn on_cut_off(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan) {
        self.decider.on_cut_off(request, futures, plan);
    }

    fn touch(&self, request: &Request) {
        self.decider.touch(request);
    }

    fn bring_in(&mut self, tenant: TenantId, number: u64, plan: &mut Plan) -> bool {
        self.decider.bring_in(tenant, number, plan)
    }

    fn clean(&mut self, tenant: TenantId, number: u64) -> bool {
        self.decider.clean(tenant, number)
    }

    fn background_ops(&mut self, tenant: TenantId, now_ns: u64, plan: &mut Plan) {
        self.decider.background_ops(tenant, now_ns, plan);
    }

    fn end_interval(&mut self, signals: &Signals, plan: &mut Plan) {
        self.decider.end_interval(signals, plan);
    }

    fn tenancy(&mut self) -> Option<&mut ChannelTenancy> {
        self.decider.tenancy()
    }

    fn redivide(&mut self, now_ns: u64, plan: &mut Plan) {
        self.decider.redivide(now_ns, plan);
    }

    fn quotas(&self) -> Vec<u32> {
        self.decider.quotas()
    }

    fn counts(&self) -> Vec<Counts> {
        self.decider.counts()
    }

    fn hits(&self, tenant: TenantId) -> u64 {
        self.decider.hits(tenant)
    }

    fn recount(&mut self, tenant: TenantId, blocks: u64, all_hit: bool) {
        self.decider.recount(tenant, blocks, all_hit);
    }

    fn dirty_blocks(&self) -> u64 {
        self.decider.dirty_blocks()
    }

    fn held_blocks(&self) -> u64 {
        self.decider.held_blocks()
    }

    fn audit(&self) -> Result<(), String> {
        self.decider.audit()
    }
}
