//! Partitioners: how much of the cache each tenant gets.
//!
//! For: pure functions of what was seen in the last interval. Must never know: the cache engine,
//! policies, requests, files, clocks, threads. Units: blocks. Invariant, checked by
//! [`Quotas::audit`]: quotas sum to the cache exactly and nobody is below its floor.

mod averages;
pub mod costpi;
pub mod entry;
pub mod equal;
pub mod hull;
pub mod icache;
pub mod icache_x;
mod idle;
pub mod justitia;
pub mod mlcache;
mod network;
pub mod opt;
pub mod registry;
pub mod share;
pub mod shared;
pub mod soft_qos;
pub mod soft_qos_x;
pub mod static_weights;
mod steepest;

pub use entry::{Entry, Need, Registered};
pub use registry::{boxed, entries, entry};

use cachewright_curve::{Curve, Curves};
use cachewright_signal::{Prices, Step};

/// What a partitioner may know of one tenant: its last interval and its standing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TenantView<'a> {
    /// The name in the stack file.
    pub name: &'a str,
    /// The weight in the stack file; 1 by default. Never negative.
    pub weight: f64,
    /// Block accesses in the last interval.
    pub accesses: u64,
    /// Those that hit.
    pub hits: u64,
    /// Share of the accesses that write, 0 to 1.
    pub write_share: f64,
    /// Quota now; 0 under a shared pool.
    pub quota_blocks: u32,
    /// Blocks held now.
    pub occupancy_blocks: u32,
    /// Misses by cache size in the last interval, for those who declare [`Need::Curve`]; nothing
    /// before the first interval has passed.
    pub curve: Option<&'a Curve>,
    /// The hit ratio promised to the tenant, for those who declare [`Need::Goal`].
    pub goal_hit_ratio: Option<f64>,
    /// Hit ratios measured ahead of the run, by quota in blocks; empty without a profile.
    pub profile: &'a [(u32, f64)],
    /// The curves of reads and writes apart, where `curve` is given.
    pub curves: Option<&'a Curves>,
    /// What it asked for in each step of the last interval, the earliest first, for those who
    /// declare [`Need::Features`]: [`Partitioner::steps`] of them, fewer at the start.
    pub steps: &'a [Step],
    /// What its hits and misses cost in the last interval, for those who declare
    /// [`Need::Prices`].
    pub prices: Option<&'a Prices>,
    /// How many of its writes in the last interval came back at which distance, for those who
    /// declare [`Need::Reuse`].
    pub reuse: &'a [u32],
    /// Mean response in ns alone in the interval to come, with 0, 1, ... granules of the cache, for
    /// those who declare [`Need::Future`].
    pub future: &'a [f64],
    /// Whether the stack file calls it sensitive to latency.
    pub sensitive: bool,
    /// Misses by cache size over the head of its trace, measured before the run, for those whose
    /// [`Partitioner::curves`] ask for it.
    pub ahead: Option<&'a Curve>,
    /// It has not come yet, or has left; where the layout gives channels to those who are there.
    pub absent: bool,
}

/// Which curves a partitioner divides by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CurveKind {
    /// Of the cache's own policy, by miniature simulation; else of LRU.
    pub own_policy: bool,
    /// Of the head of each trace, before the run; else of each interval.
    pub ahead: bool,
}

/// What a tenant makes use of, for layouts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Requirement {
    /// Blocks (S_r).
    pub blocks: u32,
    /// Its miss ratio with them, 0 to 1 (R_e).
    pub miss_ratio: f64,
}

/// Model files that a run was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Models {
    /// One per tenant, in order, for those who declare [`Need::Model`].
    pub each: Vec<Vec<u8>>,
    /// Those that take over from a tenant's first while the run goes on; of no tenant, or of each.
    pub later: Vec<Vec<Vec<u8>>>,
    /// One for all together, for those who declare [`Need::JointModel`].
    pub joint: Option<Vec<u8>>,
}

/// A division of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quotas {
    /// One pool: whoever comes takes from all.
    Shared,
    /// So many blocks each, in the order of the tenants.
    PerTenant(Vec<u32>),
    /// Pools that several tenants may share.
    Pools {
        /// The pool of each tenant, in the order of the tenants; every pool has a tenant.
        of: Vec<u16>,
        /// The blocks of each pool.
        blocks: Vec<u32>,
    },
    /// One cache with a list per tenant, whose lengths follow their misses; see [`Rounds`].
    Elastic,
}

/// A write request as it reaches a cache whose tenants' room follows requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// Whose it is.
    pub tenant: usize,
    /// Blocks it writes.
    pub blocks: u32,
    /// Channels of the drive that are taken now.
    pub busy: u32,
    /// Channels of the drive.
    pub channels: u32,
    /// Blocks that each tenant holds.
    pub held: &'a [u32],
    /// Whether the cache has no room left.
    pub full: bool,
}

/// Who gives room at the next miss of a full cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The tenant that gives; nothing: whoever holds most then.
    pub victim: Option<usize>,
    /// Blocks that leave together, at most those it holds. When they are used up, each block that
    /// comes in takes the place of one of its own tenant.
    pub blocks: u32,
}

/// Says from whom a full cache takes room, request by request. It holds until the next write
/// request, and once.
pub trait Rounds: Send {
    /// What holds before the first write request.
    fn first(&self) -> Round;
    /// What holds from this write request on. Deterministic, as a division is.
    fn asked(&mut self, asked: &Asked<'_>) -> Round;
}

impl Quotas {
    /// Checks that there is a quota per tenant, or a pool for each and a tenant in each pool, that
    /// they sum to `total_blocks`, and that none is below `floor_blocks`. The error says which rule
    /// is broken and how.
    pub fn audit(
        &self,
        tenants: usize,
        total_blocks: u32,
        floor_blocks: u32,
    ) -> Result<(), String> {
        let quotas = match self {
            Quotas::Shared | Quotas::Elastic => return Ok(()),
            Quotas::PerTenant(quotas) => quotas,
            Quotas::Pools { of, blocks } => {
                let pools = 0..blocks.len();
                if let Some(pool) = of.iter().find(|pool| !pools.contains(&usize::from(**pool))) {
                    return Err(format!("pool {pool} of {} pools", blocks.len()));
                }
                if let Some(pool) = pools.into_iter().find(|pool| !of.contains(&(*pool as u16))) {
                    return Err(format!("pool {pool} is nobody's"));
                }
                blocks
            }
        };
        let named = if let Quotas::Pools { of, .. } = self { of.len() } else { quotas.len() };
        if named != tenants {
            return Err(format!("{named} quotas for {tenants} tenants"));
        }
        let sum: u64 = quotas.iter().copied().map(u64::from).sum();
        if tenants > 0 && sum != u64::from(total_blocks) {
            return Err(format!("quotas sum to {sum} of {total_blocks} blocks"));
        }
        match quotas.iter().position(|&quota| quota < floor_blocks) {
            Some(at) => Err(format!(
                "{} {at} has {} blocks, below its floor of {floor_blocks}",
                if matches!(self, Quotas::Pools { .. }) { "pool" } else { "tenant" },
                quotas[at]
            )),
            None => Ok(()),
        }
    }
}

/// All of each tenant's quota, at the miss ratio of its last interval.
fn all_of(tenants: &[TenantView], quotas: &[u32]) -> Vec<Requirement> {
    let ratio = |view: &TenantView| {
        let misses = view.accesses - view.hits.min(view.accesses);
        misses as f64 / view.accesses.max(1) as f64
    };
    let one = |(view, blocks): (&TenantView, &u32)| Requirement {
        blocks: *blocks,
        miss_ratio: ratio(view),
    };
    tenants.iter().zip(quotas).map(one).collect()
}

/// Divides the cache at the start and after every interval.
pub trait Partitioner: Send {
    /// The quotas for the next interval. Deterministic: it depends on the settings, the calls
    /// before and this one. Before the first interval counts are 0 and curves absent.
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> Quotas;

    /// The fewest blocks this partitioner leaves a tenant of so many on such a cache.
    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32;

    /// Takes trained models before the first division. Errors: a file that is no model or has
    /// another shape, with what was found and expected, and of which tenant.
    fn learn(&mut self, _models: &Models) -> Result<(), String> {
        Ok(())
    }

    /// Who gives room at misses, for those that divide as [`Quotas::Elastic`].
    fn rounds(&self) -> Option<Box<dyn Rounds>> {
        None
    }

    /// Into how many steps of equal length an interval is cut for [`TenantView::steps`].
    fn steps(&self) -> u32 {
        0
    }

    /// Which curves it is to be told, for those who declare [`Need::Curve`].
    fn curves(&self) -> CurveKind {
        CurveKind::default()
    }

    /// What each tenant makes use of by the last division, which gave it `quotas`: all of its quota
    /// unless the partitioner knows better.
    fn requirements(&self, tenants: &[TenantView], quotas: &[u32]) -> Vec<Requirement> {
        all_of(tenants, quotas)
    }

    /// Into how many granules the cache is cut for [`TenantView::future`].
    fn granules(&self) -> u32 {
        0
    }
}
