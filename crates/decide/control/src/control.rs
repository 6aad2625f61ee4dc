//! The control loop: what was measured goes to the partitioner, its quotas go to the cache.
//!
//! For: closing measure -> partition -> cache at each interval. Must never know: which partitioner,
//! which engines hold the blocks. Units: blocks. No look-ahead: a division sees the interval that
//! has ended and nothing later.

use crate::quota_churn::{ChurnTotals, QuotaChurn};
use crate::shadow_partitions::ShadowPartitions;
use crate::standing::Standing;
use cachewright_cache::Quotas;
use cachewright_curve::Curves;
use cachewright_curve::signal::Signals;
use cachewright_partition::talus::QuotaSplit;
use cachewright_partition::{
    CacheDivision, Models, Partitioner, Requirement, TenantConstants, TenantView, VictimSelector,
    share,
};
use cachewright_types::measure::Counts;

/// A partitioner with what it needs to remember between intervals.
pub struct Control {
    partitioner: Box<dyn Partitioner>,
    tenants: Vec<TenantConstants>,
    total_blocks: u32,
    /// The largest quota of each tenant, if a layout bounds them.
    limits: Option<Vec<u32>>,
    before: Vec<Counts>,
    churn: QuotaChurn,
    /// Mean response times to come, by tenant and interval.
    futures_ns: Vec<Vec<Vec<f64>>>,
    /// The interval that begins with the next division.
    interval: usize,
    /// What each tenant makes use of by the last division.
    required: Vec<Requirement>,
    /// Blocks that keep each goal, by the last division; empty where that is not known.
    goal_blocks: Vec<Option<u32>>,
    /// Which tenants are absent; empty where all are present.
    absent: Vec<bool>,
    /// How quotas are split in shadow partitions, if they are.
    shadows: Option<ShadowPartitions>,
}

impl Control {
    /// A control loop over `tenants` and `total_blocks` of cache.
    pub fn new(
        partitioner: Box<dyn Partitioner>,
        tenants: Vec<TenantConstants>,
        total_blocks: u32,
    ) -> Control {
        let before = vec![Counts::default(); tenants.len()];
        Control {
            partitioner,
            tenants,
            total_blocks,
            limits: None,
            before,
            churn: QuotaChurn::new(total_blocks),
            futures_ns: Vec::new(),
            interval: 0,
            required: Vec::new(),
            goal_blocks: Vec::new(),
            absent: Vec::new(),
            shadows: None,
        }
    }

    /// The same with each tenant's quota split in two shadow partitions; the partitioner reads the
    /// hulls of curves.
    pub fn with_shadows(self) -> Control {
        Control { shadows: Some(ShadowPartitions::default()), ..self }
    }

    /// Hands divisions what is to come, by tenant and interval: the mean response in ns alone with
    /// 0, 1, ... granules of the cache. Intervals beyond the table are unknown.
    pub fn set_futures(&mut self, table: Vec<Vec<Vec<f64>>>) {
        self.futures_ns = table;
    }

    /// Bounds every tenant's quota from now on: what is cut goes to tenants below their bounds.
    pub fn bound(&mut self, limits: Vec<u32>) {
        self.limits = Some(limits);
    }

    /// Quotas within the bounds.
    pub fn within(&self, quotas: Quotas) -> Quotas {
        match (quotas, &self.limits) {
            (Quotas::PerTenant(each), Some(limits)) => {
                Quotas::PerTenant(share::within(&each, limits))
            }
            (Quotas::Pools { of: pool_of, blocks }, Some(limits)) => {
                // Each tenant of a pool may fill it.
                let min_limit = |pool: usize| {
                    let users = pool_of.iter().zip(limits);
                    let users = users.filter(|(own, _)| usize::from(**own) == pool);
                    users.map(|(_, limit)| *limit).min().unwrap_or(u32::MAX)
                };
                let limits: Vec<u32> = (0..blocks.len()).map(min_limit).collect();
                let blocks = share::within(&blocks, &limits);
                Quotas::Pools { of: pool_of, blocks }
            }
            (quotas, _) => quotas,
        }
    }

    /// The quotas before anything is measured.
    pub fn first(&mut self) -> Quotas {
        let now = vec![Standing::default(); self.tenants.len()];
        let Some(quotas) = self.query(&now, &Signals::default()) else {
            return Quotas::PerTenant(vec![0; self.tenants.len()]);
        };
        self.churn.next(&quotas);
        quotas
    }

    /// Asks the partitioner for the quotas of the interval that begins.
    fn query(&mut self, now: &[Standing], signals: &Signals) -> Option<Quotas> {
        debug_assert_eq!(now.len(), self.tenants.len(), "every tenant has a standing");
        let hulls: Vec<Curves> = match &self.shadows {
            Some(shadows) => shadows.hulls(&signals.curves),
            None => Vec::new(),
        };
        let view = |(tenant, facts): (usize, _)| {
            let standing: Standing = now.get(tenant).copied().unwrap_or_default();
            let before: &Counts = &self.before[tenant];
            let future = self.futures_ns.get(tenant).and_then(|rows| rows.get(self.interval));
            TenantView {
                facts,
                interval: self.interval as u64,
                accesses: standing.counts.accesses().saturating_sub(before.accesses()),
                hits: standing.counts.hits().saturating_sub(before.hits()),
                quota_blocks: standing.quota_blocks,
                occupancy_blocks: standing.held_blocks,
                absent: self.absent.get(tenant).copied().unwrap_or(false),
                signals: signals.of_tenant(tenant),
                future_ns: future.map(Vec::as_slice),
            }
        };
        let mut views: Vec<TenantView> = self.tenants.iter().enumerate().map(view).collect();
        if let Some(shadows) = &mut self.shadows {
            shadows.learn(&mut views, &hulls);
        }
        let divided = self.partitioner.divide(&views, self.total_blocks);
        self.interval += 1;
        let quotas = engine_quotas(divided, self.total_blocks)?;
        let pools = quotas.pools_of(views.len());
        let each: Vec<u32> = pools.iter().map(|pool| quotas.blocks()[usize::from(*pool)]).collect();
        self.required = self.partitioner.requirements(&views, &each);
        self.goal_blocks = self.partitioner.goal_blocks(&views);
        if let Some(shadows) = &mut self.shadows {
            shadows.split(&each);
        }
        Some(quotas)
    }

    /// Divisions from now on take these tenants to be absent.
    pub fn set_absent(&mut self, absent: Vec<bool>) {
        self.absent = absent;
    }

    /// Divides anew within an interval, because tenants have come or gone. The bounds are not yet
    /// applied.
    pub fn redivide(&mut self, now: &[Standing]) -> Option<Quotas> {
        let divided = self.query(now, &Signals::default());
        self.interval -= 1;
        divided
    }

    /// Other bounds from now on, and quotas within them that hold until the next division.
    pub fn rebound(&mut self, limits: Vec<u32>, quotas: Quotas) -> Quotas {
        self.bound(limits);
        let quotas = self.within(quotas);
        self.churn.next(&quotas);
        quotas
    }

    /// The division after an interval in which `signals` were measured; nothing where space follows
    /// requests.
    pub fn next(&mut self, now: &[Standing], signals: &Signals) -> Option<Quotas> {
        let divided = self.query(now, signals);
        self.before.clear();
        self.before.extend(now.iter().map(|standing| standing.counts));
        self.before.resize(self.tenants.len(), Counts::default());
        let quotas = self.within(divided?);
        self.churn.next(&quotas);
        Some(quotas)
    }

    /// Gives the partitioner other models, which count from the next division on. Errors: those of
    /// [`Partitioner::learn`]; the models before stay in use.
    pub fn load_models(&mut self, models: &Models) -> Result<(), String> {
        self.partitioner.learn(models)
    }

    /// Tenants.
    pub fn tenants(&self) -> usize {
        self.tenants.len()
    }

    /// What each tenant makes use of by the last division; nothing where space follows requests.
    pub fn required(&self) -> &[Requirement] {
        &self.required
    }

    /// Blocks that keep the goal of each tenant, by what was measured until the last division:
    /// nothing for a tenant without a goal, and where no size keeps it. Empty where the partitioner
    /// does not know.
    pub fn goal_blocks(&self) -> &[Option<u32>] {
        &self.goal_blocks
    }

    /// How the quota of each tenant is split by the last division; empty where it is whole.
    pub fn splits(&self) -> &[QuotaSplit] {
        self.shadows.as_ref().map_or(&[], ShadowPartitions::splits)
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
    pub fn churn(&self) -> Option<ChurnTotals> {
        self.churn.totals()
    }
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
