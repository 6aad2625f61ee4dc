//! Room that changes hands when the cache is divided anew.
//!
//! For: carrying a division out inside the drive. Must never know: who divides, or why. Units:
//! pages. Source: iCache (Li, Sun, Qin, TCAD'25), section IV-F: a tenant above its target (supply)
//! gives up pages from the end of its list, clean ones dropped, dirty ones written to flash; one
//! below it (demand) grows when room is free. A page on its way to flash is in memory until flash
//! has it, so that is when its room is free. Invariant (audited): what pools may hold and what
//! they have given up but flash has not yet is no more than the cache.
//!
//! Pages given up do not count against the limit of back-pressure: no write of the host waits for
//! them, and they keep to a pace of their own.

use super::destage::{Job, Out};
use super::{DataCache, Handover};
use crate::Control;
use crate::series::State;
use crate::signals::Signals;
use crate::ssd::pages::Page;
use cachewright_cache::{Engine, Quotas};
use cachewright_partition::share;
use cachewright_policy::Policy;
use cachewright_types::TenantId;

/// Where a division stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Division {
    /// Pages that each pool is to have.
    targets: Vec<u32>,
    /// Dirty pages that each pool has given up and flash does not have yet.
    leaving: Vec<u32>,
    /// Pages that pools may hold and have given up, at most: the cache, or what they had when it
    /// became smaller.
    most: u64,
}

impl Division {
    /// As the engine was built.
    pub(super) fn of<P: Policy>(engine: &Engine<P>) -> Division {
        let targets: Vec<u32> =
            (0..engine.pools()).map(|pool| engine.policy(pool).capacity()).collect();
        let most = sum(targets.iter().copied());
        Division { targets, leaving: vec![0; engine.pools()], most }
    }
}

fn sum(pages: impl Iterator<Item = u32>) -> u64 {
    pages.map(u64::from).sum()
}

impl<P: Policy> DataCache<P> {
    /// Changes the division of the cache; false if it is of another kind.
    pub(super) fn divide(&mut self, now: u64, quotas: &Quotas) -> bool {
        if self.elastic.is_some() || !self.engine.fits(quotas) {
            return false;
        }
        self.division.targets = quotas.blocks().to_vec();
        self.division.most = self.taken().max(self.whole());
        match self.axes.handover {
            Handover::Paced => self.hand_over(now),
            Handover::AtOnce => {
                let mut left = Vec::new();
                self.engine.set_quotas(quotas, &mut |pool, id, dirty| left.push((pool, id, dirty)));
                for (pool, id, dirty) in left {
                    self.evict(now, pool, id, dirty);
                    self.stats.given_up_pages += u64::from(dirty);
                }
            }
        }
        true
    }

    /// Lets a control loop divide the cache at the end of an interval.
    pub(super) fn controlled(&mut self, now: u64, control: &mut Control, signals: &Signals) {
        if let Some(quotas) = control.next(&self.engine, signals) {
            let kept = self.divide(now, &quotas);
            debug_assert!(kept, "a partitioner keeps to one kind of quotas");
        }
    }

    /// Goes on with a division: pools above their targets give up what they may at once, the room
    /// that is free goes to those below.
    fn hand_over(&mut self, now: u64) {
        for pool in 0..self.division.targets.len() {
            self.give_up(now, pool);
        }
        let room = self.whole().saturating_sub(self.taken()) as u32;
        let targets = self.division.targets.iter().zip(self.sizes());
        let wants: Vec<u32> = targets.map(|(target, size)| target.saturating_sub(size)).collect();
        let wanted = sum(wants.iter().copied());
        let given = if wanted <= u64::from(room) {
            wants
        } else {
            let weights: Vec<f64> = wants.iter().copied().map(f64::from).collect();
            share::proportional(room, &weights)
        };
        for (pool, more) in given.into_iter().enumerate() {
            let size = self.engine.policy(pool).capacity();
            self.engine.resize(pool, size + more, &mut |_, _, _| {});
        }
    }

    /// What each pool may hold now.
    fn sizes(&self) -> impl Iterator<Item = u32> {
        (0..self.engine.pools()).map(|pool| self.engine.policy(pool).capacity())
    }

    /// Room that pools have, or have given up but flash has not yet.
    fn taken(&self) -> u64 {
        sum(self.sizes()) + sum(self.division.leaving.iter().copied())
    }

    /// A pool above its target gives up room: what it does not use, then page by page.
    fn give_up(&mut self, now: u64, pool: usize) {
        let target = self.division.targets[pool];
        loop {
            let policy = self.engine.policy(pool);
            let (size, held) = (policy.capacity(), policy.len());
            if size <= target {
                return;
            }
            let next = if held < size { held.max(target) } else { size - 1 };
            if held == size && self.division.leaving[pool] >= self.axes.shrink_depth {
                return;
            }
            let mut left = Vec::new();
            self.engine.resize(pool, next, &mut |_, id, dirty| left.push((id, dirty)));
            for (id, dirty) in left {
                let page = self.pools[pool].leave(id);
                if dirty {
                    self.division.leaving[pool] += 1;
                    self.take_out(now, pool, id, Page { life: 0, ..page }, true);
                }
            }
        }
    }

    /// Flash has a page that a pool gave up: its room is free.
    pub(super) fn given_up(&mut self, now: u64, pool: usize) {
        self.division.leaving[pool] -= 1;
        self.hand_over(now);
    }

    /// Pages of the whole cache.
    pub(super) fn whole(&self) -> u64 {
        match &self.elastic {
            Some(elastic) => u64::from(elastic.total()),
            None => sum(self.division.targets.iter().copied()),
        }
    }

    /// Pages that a tenant is to have, or its pool; without a quota those it has.
    pub(super) fn target(&self, tenant: TenantId) -> u32 {
        match &self.elastic {
            Some(_) => self.engine.quota(tenant),
            None => self.division.targets[self.engine.pool_of(tenant)],
        }
    }

    /// How far a tenant is from its target. It holds what it has given up until flash has it.
    pub(super) fn state(&self, tenant: TenantId) -> State {
        if self.elastic.is_some() || !self.engine.has_quota(tenant) {
            return State::None;
        }
        let leaving = self.division.leaving[self.engine.pool_of(tenant)];
        State::of(self.engine.occupancy(tenant) + leaving, self.target(tenant))
    }

    /// Room is counted, and a pool above its target is on its way there.
    pub(super) fn check_division(&self) -> Result<(), String> {
        if self.elastic.is_some() {
            return Ok(());
        }
        let mut open = false;
        for (pool, target) in self.division.targets.iter().enumerate() {
            let size = self.engine.policy(pool).capacity();
            let of_pool = |out: &Out| out.given_up && usize::from(out.pool) == pool;
            let given = |job: &&Job| matches!(job, Job::Out(out) if of_pool(out));
            let found = self.jobs.iter().filter(given).count();
            let counted = self.division.leaving[pool];
            if found != counted as usize {
                return Err(format!("pool {pool}: {found} pages leave, {counted} are counted"));
            }
            open |= counted > 0;
            if size > *target {
                open = true;
                if counted == 0 {
                    return Err(format!("pool {pool}: {size} pages stay, its target is {target}"));
                }
            }
        }
        let most = if open { self.division.most } else { self.whole() };
        match self.taken() {
            taken if taken > most => Err(format!("{taken} pages are taken out of {most}")),
            _ => Ok(()),
        }
    }
}
