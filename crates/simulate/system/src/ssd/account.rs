//! Whose command asked what of the cache, beyond the totals that the engine keeps.
//!
//! For: counts by the arrival of requests, which the cache sees only later: a drive queues commands
//! at its host interface, and writes that find no room wait. Must never know: times, what counts
//! are for. Units: pages. Costs nothing until it is asked for.

use super::DataCache;
use cachewright_cache::Engine;
use cachewright_device::ssd::host::Slot;
use cachewright_measure::Counts;
use cachewright_policy::Policy;
use cachewright_types::TenantId;

/// What is left out of the counters, and who hit.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    /// By tenant: the last command that is left out, if any.
    last: Vec<Option<u64>>,
    /// By tenant: what those commands were counted for. Empty: nothing is left out.
    before: Vec<Counts>,
    /// Pages that commands, by their tags, have found in the cache, if somebody asks for them.
    hits: Option<Vec<(u64, u64)>>,
}

impl Account {
    /// Leaves out all that has been counted, and what the commands up to `last` still ask.
    pub fn count_after<P: Policy>(&mut self, last: &[Option<u64>], engine: &Engine<P>) {
        self.last = last.to_vec();
        self.before = all(engine, last.len());
    }

    /// A tenant's counters without what is left out.
    pub fn counted<P: Policy>(&self, tenant: TenantId, engine: &Engine<P>) -> Counts {
        let counts = engine.counts(tenant);
        self.before.get(tenant.index()).map_or(*counts, |before| counts.since(before))
    }

    /// From now on keeps who hit.
    pub fn tell_hits(&mut self) {
        self.hits.get_or_insert_default();
    }

    /// Hands out who hit since the last call.
    pub fn take_hits(&mut self, hits: &mut Vec<(u64, u64)>) {
        hits.append(self.hits.as_mut().unwrap_or(&mut Vec::new()));
    }

    /// Whether a command of which the cache has something to do now is left out.
    fn leaves_out(&self, tenant: TenantId, tag: u64) -> bool {
        let last = self.last.get(tenant.index()).copied().flatten();
        last.is_some_and(|last| tag <= last)
    }
}

impl<P: Policy> DataCache<P> {
    /// Does a part of a command and keeps account of it.
    pub(super) fn accounted(&mut self, slot: Slot, part: impl FnOnce(&mut Self)) {
        let user = *self.users.get(slot);
        if self.account.hits.is_none() {
            return self.left_out(user.tenant, user.tag, part);
        }
        let before = self.engine.counts(user.tenant).hits();
        self.left_out(user.tenant, user.tag, part);
        let hits = self.engine.counts(user.tenant).hits() - before;
        if let Some(told) = self.account.hits.as_mut().filter(|_| hits > 0) {
            told.push((user.tag, hits));
        }
    }

    /// Does a part of a command, and leaves out what it is counted for if that is due.
    fn left_out(&mut self, tenant: TenantId, tag: u64, part: impl FnOnce(&mut Self)) {
        if !self.account.leaves_out(tenant, tag) {
            return part(self);
        }
        let tenants = self.account.before.len();
        let begun = all(&self.engine, tenants);
        part(self);
        let ended = all(&self.engine, tenants);
        for (before, (begun, ended)) in self.account.before.iter_mut().zip(begun.iter().zip(&ended))
        {
            before.add(&ended.since(begun));
        }
    }
}

/// Every tenant's counters.
fn all<P: Policy>(engine: &Engine<P>, tenants: usize) -> Vec<Counts> {
    let tenants = (0..tenants).map(|tenant| TenantId(tenant as u16));
    tenants.map(|tenant| *engine.counts(tenant)).collect()
}
