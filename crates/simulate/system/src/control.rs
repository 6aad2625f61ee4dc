//! The control loop: what was measured goes to the partitioner, its quotas go to the cache.
//!
//! For: closing measure -> partition -> cache at each interval. Must never know: which partitioner.
//! No look-ahead: a division sees the interval that has ended and nothing later.

use crate::moves::{Moved, Moves};
use cachewright_cache::{Engine, Quotas};
use cachewright_curve::Curves;
use cachewright_measure::{Counts, ratio};
use cachewright_partition::{Partitioner, TenantView};
use cachewright_policy::Policy;
use cachewright_types::{BlockId, TenantId};

/// What a partitioner is told of a tenant that does not change while running.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// The name in the stack file.
    pub name: String,
    /// The weight in the stack file.
    pub weight: f64,
    /// The hit ratio promised to it.
    pub goal_hit_ratio: Option<f64>,
    /// Hit ratios measured ahead of the run, by quota in blocks.
    pub profile: Vec<(u32, f64)>,
    /// Whether it is sensitive to latency.
    pub sensitive: bool,
}

/// A partitioner with what it needs to remember between intervals.
pub struct Control {
    partitioner: Box<dyn Partitioner>,
    tenants: Vec<Tenant>,
    total_blocks: u32,
    /// The most blocks of each tenant, if a layout bounds them.
    limits: Option<Vec<u32>>,
    before: Vec<Counts>,
    moves: Moves,
}

impl Control {
    /// A control loop over `tenants` and `total_blocks` of cache.
    pub fn new(
        partitioner: Box<dyn Partitioner>,
        tenants: Vec<Tenant>,
        total_blocks: u32,
    ) -> Control {
        let before = vec![Counts::default(); tenants.len()];
        let moves = Moves::of(total_blocks);
        Control { partitioner, tenants, total_blocks, limits: None, before, moves }
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
        let nothing = Counts::default();
        let views: Vec<TenantView> = self
            .tenants
            .iter()
            .map(|tenant| view(tenant, &nothing, &nothing, 0, 0, None))
            .collect();
        let divided = self.partitioner.divide(&views, self.total_blocks);
        let quotas = engine_quotas(divided, self.total_blocks);
        self.moves.next(&quotas);
        quotas
    }

    /// What divisions moved so far; nothing under a shared pool.
    pub fn moved(&self) -> Option<Moved> {
        self.moves.moved()
    }

    /// Divides anew at the end of an interval whose curves are `curves` (empty: none measured);
    /// blocks that leave are told to `left` as in [`Engine::set_quotas`].
    pub fn divide<P: Policy>(
        &mut self,
        engine: &mut Engine<P>,
        curves: &[Curves],
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        let ids = || (0..self.tenants.len()).map(|tenant| TenantId(tenant as u16));
        let now: Vec<Counts> = ids().map(|id| *engine.counts(id)).collect();
        let views: Vec<TenantView> = ids()
            .map(|id| {
                let at = id.index();
                let (quota, held) = (engine.quota(id), engine.occupancy(id));
                let (now, before) = (&now[at], &self.before[at]);
                view(&self.tenants[at], now, before, quota, held, curves.get(at))
            })
            .collect();
        let divided = self.partitioner.divide(&views, self.total_blocks);
        let quotas = self.within(engine_quotas(divided, self.total_blocks));
        self.moves.next(&quotas);
        let kept = engine.set_quotas(&quotas, left);
        debug_assert!(kept, "a partitioner keeps to one kind of quotas");
        self.before = now;
    }
}

fn view<'a>(
    tenant: &'a Tenant,
    now: &Counts,
    before: &Counts,
    quota_blocks: u32,
    occupancy_blocks: u32,
    curves: Option<&'a Curves>,
) -> TenantView<'a> {
    let accesses = now.accesses() - before.accesses();
    TenantView {
        name: &tenant.name,
        weight: tenant.weight,
        accesses,
        hits: now.hits() - before.hits(),
        write_share: ratio(now.writes - before.writes, accesses),
        quota_blocks,
        occupancy_blocks,
        curve: curves.map(|curves| &curves.all),
        goal_hit_ratio: tenant.goal_hit_ratio,
        profile: &tenant.profile,
        sensitive: tenant.sensitive,
        ..TenantView::default()
    }
}

/// A partitioner speaks of shares of a cache it does not own; the engine needs their sizes.
fn engine_quotas(quotas: cachewright_partition::Quotas, total_blocks: u32) -> Quotas {
    match quotas {
        cachewright_partition::Quotas::Shared => Quotas::Shared(total_blocks),
        cachewright_partition::Quotas::PerTenant(each) => Quotas::PerTenant(each),
        cachewright_partition::Quotas::Pools { of, blocks } => Quotas::Pools { of, blocks },
    }
}
