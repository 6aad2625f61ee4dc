//! Losses of content that was answered and that no flush had made durable.
//!
//! For: whom answers go to, who must learn that what they count on is gone. Must never know:
//! connections, why content is lost. Units: losses, by tenant.

use cachewright_types::TenantId;

/// What is known of a tenant's losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownLosses {
    /// Losses so far; one may be of many blocks.
    pub count: u64,
    /// Whether such content is lost still: blocks are known that were not overwritten.
    pub is_open: bool,
}

/// How often content was lost, by tenant.
#[derive(Clone, Debug, Default)]
pub struct LossCounts {
    counts: Vec<u64>,
}

impl LossCounts {
    /// Content of a tenant is lost.
    pub fn note(&mut self, tenant: TenantId) {
        let tenants = self.counts.len().max(tenant.index() + 1);
        self.counts.resize(tenants, 0);
        self.counts[tenant.index()] += 1;
    }

    /// Losses of a tenant.
    pub fn count(&self, tenant: TenantId) -> u64 {
        self.counts.get(tenant.index()).copied().unwrap_or_default()
    }
}
