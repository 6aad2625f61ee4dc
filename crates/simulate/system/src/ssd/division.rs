//! Space that changes hands between pools: when the cache is divided anew, or with requests.
//!
//! A division is carried out inside the drive. Source: iCache (Li, Sun, Qin, TCAD'25), section
//! IV-F: a tenant above its target (supply) gives up pages from the end of its list, clean ones
//! dropped, dirty ones written to flash; one below it (demand) grows when space is free. A page on
//! its way to flash is in memory until flash has it, so that is when its space is free. Invariant
//! (audited): what pools may hold and what they have given up but flash has not yet is no more than
//! the cache. Pages given up do not count against the limit of back-pressure: no write of the host
//! waits for them, and they keep to a pace of their own.
//!
//! Elastic space follows requests: each tenant has a list, and none a quota. Evictions are those
//! that a [`VictimSelector`] chooses. A pool's size is what it holds: space that is not used is
//! free for all. A page that comes in takes free space; with none, the choice holds, once; after
//! that its tenant's policy evicts for it. A tenant that holds nothing takes a page of the tenant
//! that holds most. Invariants (audited): free space and the pools' sizes are the whole cache; no
//! pool has space that it does not use.

use super::contents::{CacheContents, PoolId};
use super::destager::Destager;
use super::params::{DataCacheParams, Handover};
use super::traffic::Traffic;
use crate::series::QuotaState;
use cachewright_cache::{Engine, Quotas};
use cachewright_device::ssd::host::Slot;
use cachewright_partition::share::{self, largest_holder};
use cachewright_partition::{VictimChoice, VictimSelector, WriteRequest};
use cachewright_policy::Policy;
use cachewright_types::{Nanos, TenantId};

/// Where a division stands.
pub struct DriveDivision {
    /// Pages that each pool is to have.
    targets: Vec<u32>,
    /// Dirty pages that each pool has given up and flash does not have yet.
    leaving: Vec<u32>,
    /// Pages that pools may hold and have given up, at most: the cache, or what they had when it
    /// became smaller.
    max: u64,
    handover: Handover,
    /// Pages that a pool gives up to flash at a time (paced).
    depth: u32,
    /// Where space follows requests.
    elastic: Option<Box<Elastic>>,
    given_up_pages: u64,
}

fn sum(pages: impl Iterator<Item = u32>) -> u64 {
    pages.map(u64::from).sum()
}

impl DriveDivision {
    /// As the engine was built.
    pub fn new<P: Policy>(engine: &Engine<P>, params: &DataCacheParams) -> DriveDivision {
        let pools = 0..engine.pools();
        let targets: Vec<u32> = pools.map(|pool| engine.policy(pool).capacity()).collect();
        DriveDivision {
            max: sum(targets.iter().copied()),
            targets,
            leaving: vec![0; engine.pools()],
            handover: params.handover,
            depth: params.shrink_depth,
            elastic: None,
            given_up_pages: 0,
        }
    }

    /// Lets space follow requests.
    pub fn follow(&mut self, total: u32, selector: Box<dyn VictimSelector>) {
        self.elastic = Some(Box::new(Elastic::new(total, selector)));
    }

    /// Changes the division of the cache; false if it is of another kind.
    pub fn divide<P: Policy>(
        &mut self,
        now: u64,
        quotas: &Quotas,
        contents: &mut CacheContents<P>,
        traffic: &mut Traffic,
        destager: &mut Destager,
    ) -> bool {
        if self.elastic.is_some() || !contents.engine().fits(quotas) {
            return false;
        }
        self.targets = quotas.blocks().to_vec();
        self.max = self.taken(contents).max(self.total());
        match self.handover {
            Handover::Paced => self.hand_over(now, contents, traffic, destager),
            Handover::AtOnce => {
                let mut evicted = Vec::new();
                let engine = contents.engine_mut();
                engine.set_quotas(quotas, &mut |pool, id, dirty| evicted.push((pool, id, dirty)));
                for (pool, id, dirty) in evicted {
                    let pool = PoolId(pool as u16);
                    destager.evict(now, pool, id, dirty, None, contents, traffic);
                    self.given_up_pages += u64::from(dirty);
                }
            }
        }
        true
    }

    /// Goes on with a division: pools above their targets give up what they may at once, the space
    /// that is free goes to those below.
    fn hand_over<P: Policy>(
        &mut self,
        now: u64,
        contents: &mut CacheContents<P>,
        traffic: &mut Traffic,
        destager: &mut Destager,
    ) {
        for pool in contents.pools() {
            self.shrink(now, pool, contents, traffic, destager);
        }
        let free = self.total().saturating_sub(self.taken(contents)) as u32;
        let targets = self.targets.iter().zip(sizes(contents));
        let wants: Vec<u32> = targets.map(|(target, size)| target.saturating_sub(size)).collect();
        let wanted = sum(wants.iter().copied());
        let given = if wanted <= u64::from(free) {
            wants
        } else {
            let weights: Vec<f64> = wants.iter().copied().map(f64::from).collect();
            share::proportional(free, &weights)
        };
        for (pool, more) in contents.pools().zip(given) {
            let (size, _) = contents.size(pool);
            contents.resize(pool, size + more);
        }
    }

    /// Space that pools have, or have given up but flash has not yet.
    fn taken<P: Policy>(&self, contents: &CacheContents<P>) -> u64 {
        sum(sizes(contents)) + sum(self.leaving.iter().copied())
    }

    /// A pool above its target gives up space: what it does not use, then page by page.
    fn shrink<P: Policy>(
        &mut self,
        now: u64,
        pool: PoolId,
        contents: &mut CacheContents<P>,
        traffic: &mut Traffic,
        destager: &mut Destager,
    ) {
        let target = self.targets[pool.index()];
        loop {
            let (size, held) = contents.size(pool);
            if size <= target {
                return;
            }
            let next = if held < size { held.max(target) } else { size - 1 };
            if held == size && self.leaving[pool.index()] >= self.depth {
                return;
            }
            for (id, dirty) in contents.resize(pool, next) {
                let page = contents.leave(pool, id);
                if dirty {
                    self.leaving[pool.index()] += 1;
                    self.given_up_pages += 1;
                    destager.give_up(now, pool, id, page, contents, traffic);
                }
                contents.release(pool, id);
            }
        }
    }

    /// Flash has a page that a pool gave up: its space is free.
    pub fn page_left<P: Policy>(
        &mut self,
        now: u64,
        pool: PoolId,
        contents: &mut CacheContents<P>,
        traffic: &mut Traffic,
        destager: &mut Destager,
    ) {
        let leaving = &mut self.leaving[pool.index()];
        assert!(*leaving > 0, "a page that was given up arrives in flash once");
        *leaving -= 1;
        self.hand_over(now, contents, traffic, destager);
    }

    /// A write request reaches the cache.
    #[inline]
    pub fn choose_victim<P: Policy>(
        &mut self,
        now: Nanos,
        slot: Slot,
        contents: &CacheContents<P>,
        traffic: &Traffic,
    ) {
        if let Some(elastic) = &mut self.elastic {
            elastic.choose_victim(now, slot, contents, traffic);
        }
    }

    /// Whether space follows requests.
    #[inline]
    pub fn is_elastic(&self) -> bool {
        self.elastic.is_some()
    }

    /// A page of a tenant is about to come in; a waiter waits for what leaves for it.
    #[inline]
    pub fn make_space<P: Policy>(
        &mut self,
        now: u64,
        tenant: TenantId,
        waiter: Option<Slot>,
        contents: &mut CacheContents<P>,
        traffic: &mut Traffic,
        destager: &mut Destager,
    ) {
        if let Some(elastic) = &mut self.elastic {
            elastic.make_space(now, tenant, waiter, contents, traffic, destager);
        }
    }

    /// A pool may use less space than it has.
    #[inline]
    pub fn give_unused<P: Policy>(&mut self, pool: PoolId, contents: &mut CacheContents<P>) {
        if let Some(elastic) = &mut self.elastic {
            elastic.give_unused(pool, contents);
        }
    }

    /// Pages of the whole cache.
    pub fn total(&self) -> u64 {
        match &self.elastic {
            Some(elastic) => u64::from(elastic.total()),
            None => sum(self.targets.iter().copied()),
        }
    }

    /// Pages that a tenant is to have, or its pool; without a quota those it has.
    pub fn target<P: Policy>(&self, tenant: TenantId, contents: &CacheContents<P>) -> u32 {
        match &self.elastic {
            Some(_) => contents.engine().quota(tenant),
            None => self.targets[contents.pool_of(tenant).index()],
        }
    }

    /// How far a tenant is from its target. It holds what it has given up until flash has it.
    pub fn state<P: Policy>(&self, tenant: TenantId, contents: &CacheContents<P>) -> QuotaState {
        let engine = contents.engine();
        if self.elastic.is_some() || !engine.has_quota(tenant) {
            return QuotaState::None;
        }
        let leaving = self.leaving[contents.pool_of(tenant).index()];
        QuotaState::compare(engine.occupancy(tenant) + leaving, self.target(tenant, contents))
    }

    /// Dirty pages that left because their pool had to give up space.
    pub fn given_up_pages(&self) -> u64 {
        self.given_up_pages
    }

    /// Space is counted, and a pool above its target is on its way there.
    pub fn audit<P: Policy>(
        &self,
        contents: &CacheContents<P>,
        traffic: &Traffic,
    ) -> Result<(), String> {
        if let Some(elastic) = &self.elastic {
            return elastic.audit(contents);
        }
        let mut open = false;
        for (pool, target) in contents.pools().zip(&self.targets) {
            let (size, _) = contents.size(pool);
            let jobs = traffic.jobs.destages(pool).filter(|job| job.given_up).count();
            let (counted, pool) = (self.leaving[pool.index()], pool.0);
            if jobs != counted as usize {
                return Err(format!("pool {pool}: {jobs} pages leave, {counted} are counted"));
            }
            open |= counted > 0 || size > *target;
            if size > *target && counted == 0 {
                return Err(format!("pool {pool}: {size} pages stay, its target is {target}"));
            }
        }
        let max = if open { self.max } else { self.total() };
        match self.taken(contents) {
            taken if taken > max => Err(format!("{taken} pages are taken out of {max}")),
            _ => Ok(()),
        }
    }
}

/// What each pool may hold now.
fn sizes<P: Policy>(contents: &CacheContents<P>) -> impl Iterator<Item = u32> {
    contents.pools().map(|pool| contents.size(pool).0)
}

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

    /// A page of a tenant is about to come in: its pool gets space, unless it gives of its own. A
    /// waiter waits for all dirty pages that leave for it.
    pub fn make_space<P: Policy>(
        &mut self,
        now: u64,
        tenant: TenantId,
        waiter: Option<Slot>,
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
                self.free += take_from(now, victim, pages, waiter, contents, traffic, destager);
            }
            self.choice.blocks = 0;
        }
        if self.free == 0 && contents.size(pool).0 == 0 {
            self.note_held(contents);
            if let Some(victim) = largest_holder(&self.held) {
                let victim = PoolId(victim as u16);
                self.free += take_from(now, victim, 1, waiter, contents, traffic, destager);
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
    waiter: Option<Slot>,
    contents: &mut CacheContents<P>,
    traffic: &mut Traffic,
    destager: &mut Destager,
) -> u32 {
    let (size, _) = contents.size(pool);
    let given = pages.min(size);
    for (id, dirty) in contents.resize(pool, size - given) {
        destager.evict(now, pool, id, dirty, waiter, contents, traffic);
    }
    given
}
