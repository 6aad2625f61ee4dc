//! Partitioners divide the cache among tenants.
//!
//! For: deterministic functions of the tenants' facts and of what was measured in the last
//! interval. Must never know: the cache engine, policies, requests, files, clocks, threads. Units:
//! blocks.

mod averages;
pub mod costpi;
mod division;
pub mod dp;
mod elastic;
pub mod entry;
pub mod equal;
mod goal_grants;
mod granular;
pub mod hull;
pub mod icache;
pub mod icache_x;
mod idle;
pub mod justitia;
pub mod layout;
pub mod memshare;
pub mod mlcache;
mod network;
pub mod opt;
pub mod recorded;
pub mod registry;
mod response_goals;
pub mod robinhood;
pub mod scheduled;
pub mod share;
pub mod shared;
pub mod soft_qos;
pub mod soft_qos_x;
pub mod static_weights;
mod steady;
mod steepest;
pub mod talus;
mod view;

pub use division::{CacheDivision, Requirement};
pub use elastic::{VictimChoice, VictimSelector, WriteRequest};
pub use entry::{Entry, Need, Provision, Registered};
pub use registry::{boxed, entries, entry};
pub use response_goals::ResponseGoal;
pub use view::{TenantConstants, TenantGoal, TenantView};

/// Which curves a partitioner divides by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CurveKind {
    /// Curves of the cache's own policy, by miniature simulation; otherwise of LRU.
    pub own_policy: bool,
    /// Curves of the head of each trace, before the run; otherwise of each interval.
    pub ahead: bool,
}

/// Model files that a run was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Models {
    /// One per tenant, in order, for partitioners that declare [`Need::Model`].
    pub each: Vec<Vec<u8>>,
    /// Models that replace a tenant's first one during the run; for no tenant, or for each.
    pub later: Vec<Vec<Vec<u8>>>,
    /// One for all tenants together, for partitioners that declare [`Need::JointModel`].
    pub joint: Option<Vec<u8>>,
}

/// Divides the cache at the start and after every interval.
pub trait Partitioner: Send {
    /// The division for the next interval. Deterministic: it depends on the settings, on earlier
    /// calls and on this one. Before the first interval counts are 0 and signals absent.
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision;

    /// The fewest blocks that a tenant keeps, among this many tenants on such a cache.
    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32;

    /// Takes trained models in place of those before, at any time; they count from the next
    /// division on. Divisions with the same files are those without the call. Errors: a file is no
    /// model or has another shape; the text names the tenant, what was found and what was expected.
    /// The models before stay in use.
    fn learn(&mut self, _models: &Models) -> Result<(), String> {
        Ok(())
    }

    /// Chooses evictions, for partitioners that divide as [`CacheDivision::Elastic`].
    fn victim_selector(&self) -> Option<Box<dyn VictimSelector>> {
        None
    }

    /// Steps of equal length in an interval, for partitioners that declare [`Need::Features`].
    fn steps(&self) -> u32 {
        0
    }

    /// The curves to measure, for partitioners that declare [`Need::Curve`].
    fn curves(&self) -> CurveKind {
        CurveKind::default()
    }

    /// Whether tenants start from profiles of heads of their traces, for partitioners that declare
    /// [`Need::Goal`].
    fn reads_profiles(&self) -> bool {
        false
    }

    /// Blocks that each tenant can use after the last division, which gave it `quotas`: its whole
    /// quota, unless the partitioner knows better.
    fn requirements(&self, tenants: &[TenantView], quotas: &[u32]) -> Vec<Requirement> {
        Requirement::whole_quotas(tenants, quotas)
    }

    /// Blocks with which each tenant would have kept its goal, by what was measured until the last
    /// division: nothing for a tenant without a goal, and where no size keeps it. Empty for
    /// partitioners that do not know.
    fn goal_blocks(&self, _tenants: &[TenantView]) -> Vec<Option<u32>> {
        Vec::new()
    }

    /// Granules of the cache in [`TenantView::future_ns`].
    fn granules(&self) -> u32 {
        0
    }
}
