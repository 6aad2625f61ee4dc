//! The control loop: what was measured goes to the partitioner, its quotas go to the cache.
//!
//! For: closing measure -> partition -> cache at each interval. Must never know: which partitioner.
//! No look-ahead: a division sees the interval that has ended and nothing later.

use crate::moves::{Moved, Moves};
use crate::signals::Signals;
use cachewright_cache::{Engine, Quotas};
use cachewright_measure::Counts;
use cachewright_partition::{
    CacheDivision, Partitioner, Requirement, TenantConstants, TenantView, VictimSelector,
};
use cachewright_policy::Policy;
use cachewright_types::{BlockId, TenantId};

/// A partitioner with what it needs to remember between intervals.
pub struct Control {
    partitioner: Box<dyn Partitioner>,
    tenants: Vec<TenantConstants>,
    total_blocks: u32,
    /// The most blocks of each tenant, if a layout bounds them.
    limits: Option<Vec<u32>>,
    before: Vec<Counts>,
    moves: Moves,
    /// Mean response times to come, by tenant and interval.
    foreseen: Vec<Vec<Vec<f64>>>,
    /// The interval that begins with the next division.
    interval: usize,
    /// What each tenant makes use of by the last division.
    required: Vec<Requirement>,
    /// Who is not there; nothing where all are.
    absent: Vec<bool>,
}

impl Control {
    /// A control loop over `tenants` and `total_blocks` of cache.
    pub fn new(
        partitioner: Box<dyn Partitioner>,
        tenants: Vec<TenantConstants>,
        total_blocks: u32,
    ) -> Control {
        let before = vec![Counts::default(); tenants.len()];
        let moves = Moves::of(total_blocks);
        Control {
            partitioner,
            tenants,
            total_blocks,
            limits: None,
            before,
            moves,
            foreseen: Vec::new(),
            interval: 0,
            required: Vec::new(),
            absent: Vec::new(),
        }
    }

    /// Tells divisions what is to come, by tenant and interval: the mean response in ns alone with
    /// 0, 1, ... granules of the cache. Intervals beyond the table are unknown.
    pub fn foresee(&mut self, table: Vec<Vec<Vec<f64>>>) {
        self.foreseen = table;
    }

    /// Bounds every tenant's quota from now on: what is cut goes to those with room.
    pub fn bound(&mut self, limits: Vec<u32>) {
        self.limits = Some(limits);
    }

    /// Quotas within the bounds.
    pub fn within(&self, quotas: Quotas) -> Quotas {
        match (quotas, &self.limits) {
            (Quotas::PerTenant(each), Some(limits)) => {
                Quotas::PerTenant(cachewright_partition::share::within(&each, limits))
            }
            (Quotas::Pools { of, blocks }, Some(limits)) => {
                // Whoever shares a pool may fill it.
                let least = |pool: usize| {
                    let users = of.iter().zip(limits).filter(|(of, _)| usize::from(**of) == pool);
                    users.map(|(_, limit)| *limit).min().unwrap_or(u32::MAX)
                };
                let limits: Vec<u32> = (0..blocks.len()).map(least).collect();
                let blocks = cachewright_partition::share::within(&blocks, &limits);
                Quotas::Pools { of, blocks }
            }
            (quotas, _) => quotas,
        }
    }

    /// The quotas before anything is measured.
    pub fn first(&mut self) -> Quotas {
        let now = vec![Standing::default(); self.tenants.len()];
        let Some(quotas) = self.ask(&now, &Signals::default()) else {
            return Quotas::PerTenant(vec![0; self.tenants.len()]);
        };
        self.moves.next(&quotas);
        quotas
    }

    /// Asks the partitioner for the quotas of the interval that begins.
    fn ask(&mut self, now: &[Standing], signals: &Signals) -> Option<Quotas> {
        let views: Vec<TenantView> = self
            .tenants
            .iter()
            .enumerate()
            .map(|(tenant, facts)| {
                let (standing, before) = (&now[tenant], &self.before[tenant]);
                let future = self.foreseen.get(tenant).and_then(|rows| rows.get(self.interval));
                TenantView {
                    facts,
                    accesses: standing.counts.accesses() - before.accesses(),
                    hits: standing.counts.hits() - before.hits(),
                    quota_blocks: standing.quota,
                    occupancy_blocks: standing.held,
                    absent: self.absent.get(tenant).copied().unwrap_or(false),
                    signals: signals.of_tenant(tenant),
                    future_ns: future.map(Vec::as_slice),
                }
            })
            .collect();
        let divided = self.partitioner.divide(&views, self.total_blocks);
        self.interval += 1;
        let quotas = engine_quotas(divided, self.total_blocks)?;
        let pools = quotas.pools_of(views.len());
        let each: Vec<u32> = pools.iter().map(|pool| quotas.blocks()[usize::from(*pool)]).collect();
        self.required = self.partitioner.requirements(&views, &each);
        Some(quotas)
    }

    /// Tells divisions from now on who is not there.
    pub fn set_absent(&mut self, absent: Vec<bool>) {
        self.absent = absent;
    }

    /// Divides anew within an interval, because tenants have come or gone, as yet without bounds.
    pub fn renew<P: Policy>(&mut self, engine: &Engine<P>) -> Option<Quotas> {
        let now = self.standings(engine);
        let divided = self.ask(&now, &Signals::default());
        self.interval -= 1;
        divided
    }

    /// Other bounds from now on, and quotas within them that hold until the next division.
    pub fn rebound(&mut self, limits: Vec<u32>, quotas: Quotas) -> Quotas {
        self.bound(limits);
        let quotas = self.within(quotas);
        self.moves.next(&quotas);
        quotas
    }

    /// What each tenant makes use of by the last division; nothing where room follows requests.
    pub fn required(&self) -> &[Requirement] {
        &self.required
    }

    /// Chooses evictions where tenants' lists are elastic; no tenant has a quota then.
    pub fn victim_selector(&self) -> Option<Box<dyn VictimSelector>> {
        self.partitioner.victim_selector()
    }

    /// Blocks of the whole cache.
    pub fn total_blocks(&self) -> u32 {
        self.total_blocks
    }

    /// What divisions moved so far; nothing under a shared pool.
    pub fn moved(&self) -> Option<Moved> {
        self.moves.moved()
    }

    /// Divides anew at the end of an interval in which `signals` were measured; blocks that leave
    /// are told to `left` as in [`Engine::set_quotas`].
    pub fn divide<P: Policy>(
        &mut self,
        engine: &mut Engine<P>,
        signals: &Signals,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        if let Some(quotas) = self.next(engine, signals) {
            let kept = engine.set_quotas(&quotas, left);
            debug_assert!(kept, "a partitioner keeps to one kind of quotas");
        }
    }

    fn standings<P: Policy>(&self, engine: &Engine<P>) -> Vec<Standing> {
        let standing = |tenant: usize| {
            let id = TenantId(tenant as u16);
            let (quota, held) = (engine.quota(id), engine.occupancy(id));
            Standing { counts: *engine.counts(id), quota, held }
        };
        (0..self.tenants.len()).map(standing).collect()
    }

    /// The division after an interval in which `signals` were measured, for whoever carries it out;
    /// nothing where room follows requests.
    pub fn next<P: Policy>(&mut self, engine: &Engine<P>, signals: &Signals) -> Option<Quotas> {
        let now = self.standings(engine);
        let divided = self.ask(&now, signals);
        self.before = now.iter().map(|standing| standing.counts).collect();
        let quotas = self.within(divided?);
        self.moves.next(&quotas);
        Some(quotas)
    }
}

/// Where a tenant stands at a division.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    counts: Counts,
    quota: u32,
    held: u32,
}

/// The engine's quotas for a division; nothing for elastic lists, which have no quotas.
fn engine_quotas(division: CacheDivision, total_blocks: u32) -> Option<Quotas> {
    match division {
        CacheDivision::Shared => Some(Quotas::Shared(total_blocks)),
        CacheDivision::PerTenant(each) => Some(Quotas::PerTenant(each)),
        CacheDivision::Pools { pool_of, blocks } => Some(Quotas::Pools { of: pool_of, blocks }),
        CacheDivision::Elastic => None,
    }
}
