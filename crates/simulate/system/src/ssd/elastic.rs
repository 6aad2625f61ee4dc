//! A cache whose tenants' room follows requests: a list each, and nobody has a quota.
//!
//! For: evictions that a [`VictimSelector`] chooses. Must never know: its rules. Units: pages.
//! A pool's size is what it holds: room that is not used is free for all. A page that comes in
//! takes free room; with none, the round that holds is given, once; after that its tenant's policy
//! evicts for it. A tenant that holds nothing takes a page of whoever holds most. Invariants
//! (audited): free room and the pools' sizes are the whole cache; no pool has room that it does not
//! use.

use super::DataCache;
use cachewright_device::ssd::host::Slot;
use cachewright_partition::share::largest_holder;
use cachewright_partition::{VictimChoice, VictimSelector, WriteRequest};
use cachewright_policy::Policy;
use cachewright_types::{BlockId, Nanos, TenantId};

/// Room that follows requests.
pub(super) struct Elastic {
    selector: Box<dyn VictimSelector>,
    total: u32,
    /// Room that no pool has.
    free: u32,
    /// What is given at the next miss without free room.
    choice: VictimChoice,
    /// Pages held by each tenant, for the question.
    held: Vec<u32>,
}

impl Elastic {
    /// Pages of the whole cache.
    pub(super) fn total(&self) -> u32 {
        self.total
    }
}

impl<P: Policy> DataCache<P> {
    /// Lets room follow requests.
    pub(super) fn follow(&mut self, total: u32, selector: Box<dyn VictimSelector>) {
        let choice = selector.initial();
        self.elastic =
            Some(Box::new(Elastic { selector, total, free: total, choice, held: Vec::new() }));
    }

    /// A write request reaches the cache.
    pub(super) fn ask_round(&mut self, now: Nanos, slot: Slot) {
        let Some(mut elastic) = self.elastic.take() else { return };
        let user = *self.users.get(slot);
        let page_bytes = self.layout.page_bytes().0;
        let pages = (user.offset % page_bytes + user.length).div_ceil(page_bytes);
        let blocks = if user.length == 0 { 0 } else { pages as u32 };
        let (busy_channels, channels) = (self.flash.busy_channels(now), self.flash.channels());
        self.note_held(&mut elastic.held);
        let (held, full) = (elastic.held.as_slice(), elastic.free == 0);
        let tenant = user.tenant.index();
        let request = WriteRequest { tenant, blocks, busy_channels, channels, held, full };
        elastic.choice = elastic.selector.on_write(&request);
        self.elastic = Some(elastic);
    }

    fn note_held(&self, held: &mut Vec<u32>) {
        held.clear();
        let pools = 0..self.engine.pools();
        held.extend(pools.map(|tenant| self.engine.occupancy(TenantId(tenant as u16))));
    }

    /// Whether a write of a page would let it into the cache.
    pub(super) fn lets_in(&self, tenant: TenantId, id: BlockId) -> bool {
        use cachewright_cache::WriteMode::{WriteBack, WriteThrough};
        let kept = matches!(self.engine.mode(), WriteBack | WriteThrough);
        kept && !self.engine.policy(self.engine.pool_of(tenant)).contains(id)
    }

    /// A page of a tenant is about to come in: its pool gets room, unless it gives of its own.
    pub(super) fn make_room(&mut self, now: u64, tenant: TenantId) {
        let Some(mut elastic) = self.elastic.take() else { return };
        let pool = self.engine.pool_of(tenant);
        if elastic.free == 0 && elastic.choice.blocks > 0 {
            self.note_held(&mut elastic.held);
            if let Some(victim) = elastic.choice.victim.or_else(|| largest_holder(&elastic.held)) {
                elastic.free += self.take_from(now, victim, elastic.choice.blocks);
            }
            elastic.choice.blocks = 0;
        }
        if elastic.free == 0 && self.engine.policy(pool).capacity() == 0 {
            self.note_held(&mut elastic.held);
            if let Some(victim) = largest_holder(&elastic.held) {
                elastic.free += self.take_from(now, victim, 1);
            }
        }
        if elastic.free > 0 {
            elastic.free -= 1;
            let size = self.engine.policy(pool).capacity();
            self.engine.resize(pool, size + 1, &mut |_, _, _| {});
        }
        self.elastic = Some(elastic);
    }

    /// Takes room from a pool, at most what it has; its pages leave together.
    fn take_from(&mut self, now: u64, pool: usize, pages: u32) -> u32 {
        let size = self.engine.policy(pool).capacity();
        let given = pages.min(size);
        let mut left = Vec::new();
        self.engine.resize(pool, size - given, &mut |_, id, dirty| left.push((id, dirty)));
        for (id, dirty) in left {
            self.evict(now, pool, id, dirty);
        }
        given
    }

    /// Room that a pool no longer uses is free for all.
    pub(super) fn give_unused(&mut self, pool: usize) {
        let Some(elastic) = &mut self.elastic else { return };
        let policy = self.engine.policy(pool);
        let (size, held) = (policy.capacity(), policy.len());
        if held < size {
            elastic.free += size - held;
            self.engine.resize(pool, held, &mut |_, _, _| {});
        }
    }

    /// Sizes and free room are the whole cache.
    pub(super) fn check_elastic(&self) -> Result<(), String> {
        let Some(elastic) = &self.elastic else { return Ok(()) };
        let mut sum = u64::from(elastic.free);
        for pool in 0..self.engine.pools() {
            let policy = self.engine.policy(pool);
            let (size, held) = (policy.capacity(), policy.len());
            if size != held {
                return Err(format!("pool {pool}: room for {size} pages, {held} are held"));
            }
            sum += u64::from(size);
        }
        if sum == u64::from(elastic.total) {
            Ok(())
        } else {
            Err(format!("{sum} pages are held or free of {}", elastic.total))
        }
    }
}
