//! What is counted for each tenant, and the blocks that it holds.
//!
//! For: counters that stay in step with what happens. Must never know: why anything happens.
//! Units: block accesses, requests, blocks.

use cachewright_policy::Verdict;
use cachewright_types::TenantId;
use cachewright_types::measure::{Counts, LossReason, Losses};

/// Counters and occupancy of all tenants.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    counts: Vec<Counts>,
    losses: Vec<Losses>,
    /// Resident blocks of each tenant.
    occupancy: Vec<u32>,
}

impl Ledger {
    /// Nothing counted yet.
    pub(crate) fn new(tenants: usize) -> Ledger {
        Ledger {
            counts: vec![Counts::default(); tenants],
            losses: vec![Losses::default(); tenants],
            occupancy: vec![0; tenants],
        }
    }

    /// One more tenant.
    pub(crate) fn add(&mut self) {
        self.counts.push(Counts::default());
        self.losses.push(Losses::default());
        self.occupancy.push(0);
    }

    /// Counters of a tenant.
    #[inline(always)]
    pub(crate) fn counts(&self, tenant: TenantId) -> &Counts {
        &self.counts[tenant.index()]
    }

    /// Blocks of a tenant that were dropped, by reason.
    pub(crate) fn losses(&self, tenant: TenantId) -> &Losses {
        &self.losses[tenant.index()]
    }

    #[inline(always)]
    fn counts_mut(&mut self, tenant: TenantId) -> &mut Counts {
        &mut self.counts[tenant.index()]
    }

    /// A read of a block was decided.
    #[inline(always)]
    pub(crate) fn read(&mut self, tenant: TenantId, verdict: Verdict) {
        let counts = self.counts_mut(tenant);
        counts.reads += 1;
        match verdict {
            Verdict::Hit => counts.read_hits += 1,
            Verdict::Admit { .. } => counts.read_admissions += 1,
            Verdict::Bypass => {}
        }
    }

    /// A write of a block was decided.
    #[inline(always)]
    pub(crate) fn write(&mut self, tenant: TenantId, verdict: Verdict) {
        let counts = self.counts_mut(tenant);
        counts.writes += 1;
        match verdict {
            Verdict::Hit => counts.write_hits += 1,
            Verdict::Admit { .. } => counts.write_admissions += 1,
            Verdict::Bypass => {}
        }
    }

    /// A whole request was decided.
    #[inline(always)]
    pub(crate) fn request(&mut self, tenant: TenantId, all_hit: bool) {
        let counts = self.counts_mut(tenant);
        counts.requests += 1;
        counts.request_hits += u64::from(all_hit);
    }

    /// Read hits of a tenant's last request were misses, of at most so many bytes; `all_hit`: all
    /// its blocks hit.
    pub(crate) fn recount(&mut self, tenant: TenantId, blocks: u64, bytes: u64, all_hit: bool) {
        let counts = self.counts_mut(tenant);
        debug_assert!(blocks <= counts.read_hits, "only hits are recounted");
        counts.read_hits = counts.read_hits.saturating_sub(blocks);
        counts.read_hit_bytes = counts.read_hit_bytes.saturating_sub(bytes);
        counts.request_hits = counts.request_hits.saturating_sub(u64::from(all_hit));
    }

    /// A block of a tenant that stays was written back if it was dirty.
    #[inline(always)]
    pub(crate) fn write_back(&mut self, tenant: TenantId, dirty: bool) {
        self.counts_mut(tenant).writebacks += u64::from(dirty);
    }

    /// A miss was kept from the policy.
    #[inline(always)]
    pub(crate) fn bypass(&mut self, tenant: TenantId, write: bool) {
        let counts = self.counts_mut(tenant);
        counts.reads += u64::from(!write);
        counts.writes += u64::from(write);
    }

    /// Reads or writes of blocks had so many bytes, and those of them that hit.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, tenant: TenantId, write: bool, bytes: u64, hit_bytes: u64) {
        let counts = self.counts_mut(tenant);
        if write {
            counts.write_bytes += bytes;
            counts.write_hit_bytes += hit_bytes;
        } else {
            counts.read_bytes += bytes;
            counts.read_hit_bytes += hit_bytes;
        }
    }

    /// A request, or a part of one, went past the cache: `ends` with its last part.
    pub(crate) fn cut_off(&mut self, tenant: TenantId, bytes: u64, ends: bool) {
        let counts = self.counts_mut(tenant);
        counts.cut_off_requests += u64::from(ends);
        counts.cut_off_bytes += bytes;
    }

    /// Blocks that a tenant holds.
    pub(crate) fn occupancy(&self, tenant: TenantId) -> u32 {
        self.occupancy[tenant.index()]
    }

    /// Blocks that all tenants hold.
    pub(crate) fn held(&self) -> u64 {
        self.occupancy.iter().map(|blocks| u64::from(*blocks)).sum()
    }

    /// A block of a tenant came in.
    #[inline(always)]
    pub(crate) fn enter(&mut self, tenant: TenantId) {
        self.occupancy[tenant.index()] += 1;
    }

    /// A block of a tenant was evicted, to be written back if it was dirty.
    #[inline(always)]
    pub(crate) fn evict(&mut self, tenant: u16, dirty: bool) {
        let tenant = usize::from(tenant);
        debug_assert!(self.occupancy[tenant] > 0, "its tenant held the evicted block");
        self.counts[tenant].evictions += 1;
        self.counts[tenant].writebacks += u64::from(dirty);
        self.occupancy[tenant] -= 1;
    }

    /// A block of a tenant was dropped without write-back.
    pub(crate) fn discard(&mut self, tenant: TenantId, reason: LossReason, dirty: bool) {
        debug_assert!(self.occupancy[tenant.index()] > 0, "the tenant held the block");
        self.counts[tenant.index()].invalidations += 1;
        self.losses[tenant.index()].count(reason, dirty);
        self.occupancy[tenant.index()] -= 1;
    }
}
