//! A cache whose tenants' space follows requests: a list each, and no tenant has a quota.
//!
//! For: evictions that a [`VictimSelector`] chooses. Must never know: its rules. Units: pages.
//! A pool's size is what it holds: space that is not used is free for all. A page that comes in
//! takes free space; with none, the choice holds, once; after that its tenant's policy
//! evicts for it. A tenant that holds nothing takes a page of the tenant that holds most.
//! Invariants (audited): free space and the pools' sizes are the whole cache; no pool has space
//! that it does not use.

use super::contents::CacheContents;
use super::destager::Destager;
use super::ids::PoolId;
use super::traffic::Traffic;
use cachewright_device::ssd::host::Slot;
use cachewright_partition::share::largest_holder;
use cachewright_partition::{VictimChoice, VictimSelector, WriteRequest};
use cachewright_policy::Policy;
use cachewright_types::{Nanos, TenantId};

/// Space that follows requests.
pub struct Elastic {
    selector: Box<dyn VictimSelector>,
    total: u32,
    /// Space that no pool has.
    free: u32,
    /// What is given at the next miss without free space.
    choice: VictimChoice,
    /// Pages held by each tenant, for the question.
    held: Vec<u32>,
}

impl Elastic {
    /// All space is free.
    pub fn new(total: u32, selector: Box<dyn VictimSelector>) -> Elastic {
        let choice = selector.initial();
        Elastic { selector, total, free: total, choice, held: Vec::new() }
    }

    /// Pages of the whole cache.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// A write request reaches the cache.
    pub fn choose_victim<P: Policy>(
        &mut self,
        now: Nanos,
        slot: Slot,
        contents: &CacheContents<P>,
        traffic: &Traffic,
    ) {
        let command = traffic.commands.get(slot);
        let page_bytes = traffic.layout().page_bytes().0;
        let pages = (command.offset % page_bytes + command.length).div_ceil(page_bytes);
        let blocks = if command.length == 0 { 0 } else { pages as u32 };
        let flash = traffic.flash();
        let (busy_channels, channels) = (flash.busy_channels(now), flash.channels());
        self.note_held(contents);
        let (held, full) = (self.held.as_slice(), self.free == 0);
        let tenant = command.tenant.index();
        let request = WriteRequest { tenant, blocks, busy_channels, channels, held, full };
        self.choice = self.selector.on_write(&request);
    }

    fn note_held<P: Policy>(&mut self, contents: &CacheContents<P>) {
        self.held.clear();
        let tenants = contents.pools().map(|pool| TenantId(pool.0));
        self.held.extend(tenants.map(|tenant| contents.engine().occupancy(tenant)));
    }

    /// A page of a tenant is about to come in: its pool gets space, unless it gives of its own.
    pub fn make_space<P: Policy>(
        &mut self,
        now: u64,
        tenant: TenantId,
        contents: &mut CacheContents<P>,
        traffic: &mut Traffic,
        destager: &mut Destager,
    ) {
        let pool = contents.pool_of(tenant);
        if self.free == 0 && self.choice.blocks > 0 {
            self.note_held(contents);
            if let Some(victim) = self.choice.victim.or_else(|| largest_holder(&self.held)) {
                let pages = self.choice.blocks;
                let victim = PoolId(victim as u16);
                self.free += take_from(now, victim, pages, contents, traffic, destager);
            }
            self.choice.blocks = 0;
        }
        if self.free == 0 && contents.size(pool).0 == 0 {
            self.note_held(contents);
            if let Some(victim) = largest_holder(&self.held) {
                let victim = PoolId(victim as u16);
                self.free += take_from(now, victim, 1, contents, traffic, destager);
            }
        }
        if self.free > 0 {
            self.free -= 1;
            let (size, _) = contents.size(pool);
            contents.resize(pool, size + 1);
        }
    }

    /// Space that a pool no longer uses is free for all.
    pub fn give_unused<P: Policy>(&mut self, pool: PoolId, contents: &mut CacheContents<P>) {
        let (size, held) = contents.size(pool);
        if held < size {
            self.free += size - held;
            contents.resize(pool, held);
        }
    }

    /// Sizes and free space are the whole cache.
    pub fn audit<P: Policy>(&self, contents: &CacheContents<P>) -> Result<(), String> {
        let mut sum = u64::from(self.free);
        for pool in contents.pools() {
            let (size, held) = contents.size(pool);
            if size != held {
                let pool = pool.0;
                return Err(format!("pool {pool}: space for {size} pages, {held} are held"));
            }
            sum += u64::from(size);
        }
        if sum == u64::from(self.total) {
            Ok(())
        } else {
            Err(format!("{sum} pages are held or free of {}", self.total))
        }
    }
}

/// Takes space from a pool, at most what it has; its pages leave together.
fn take_from<P: Policy>(
    now: u64,
    pool: PoolId,
    pages: u32,
    contents: &mut CacheContents<P>,
    traffic: &mut Traffic,
    destager: &mut Destager,
) -> u32 {
    let (size, _) = contents.size(pool);
    let given = pages.min(size);
    for (id, dirty) in contents.resize(pool, size - given) {
        destager.evict(now, pool, id, dirty, contents, traffic);
    }
    given
}
