//! Which command is counted for which accesses, beyond the totals that the engine keeps.
//!
//! For: counts by the arrival of requests, which the cache sees only later: a drive queues commands
//! at its host interface, and writes may wait. Must never know: times, what counts are for. Units:
//! pages. Costs nothing until it is asked for.

use super::commands::HostCommand;
use cachewright_cache::Engine;
use cachewright_policy::Policy;
use cachewright_types::TenantId;
use cachewright_types::measure::Counts;

/// What is left out of the counters, and which commands hit.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// By tenant: the last command that is left out, if any.
    last: Vec<Option<u64>>,
    /// By tenant: what those commands were counted for. Empty: nothing is left out.
    before: Vec<Counts>,
    /// Pages that commands, by their tags, have found in the cache, if that is wanted.
    hits: Option<Vec<(u64, u64)>>,
}

/// The counters before a part of a command is done.
#[derive(Clone, Debug, Default)]
pub struct Mark {
    hits: u64,
    /// Every tenant's counters, where the command is left out.
    counts: Option<Vec<Counts>>,
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

    /// From now on keeps which commands hit.
    pub fn keep_hits(&mut self) {
        self.hits.get_or_insert_default();
    }

    /// Hands out which commands hit since the last call.
    pub fn take_hits(&mut self, hits: &mut Vec<(u64, u64)>) {
        hits.append(self.hits.as_mut().unwrap_or(&mut Vec::new()));
    }

    /// Whether a command of which the cache has something to do now is left out.
    fn leaves_out(&self, tenant: TenantId, tag: u64) -> bool {
        let last = self.last.get(tenant.index()).copied().flatten();
        last.is_some_and(|last| tag <= last)
    }

    /// A part of a command is about to be done.
    #[inline]
    pub fn begin<P: Policy>(&self, command: &HostCommand, engine: &Engine<P>) -> Mark {
        let mut mark = Mark::default();
        if self.hits.is_some() {
            mark.hits = engine.counts(command.tenant).hits();
        }
        if self.leaves_out(command.tenant, command.tag) {
            mark.counts = Some(all(engine, self.before.len()));
        }
        mark
    }

    /// The part is done: notes its hits, and leaves out what it is counted for if that is due.
    #[inline]
    pub fn end<P: Policy>(&mut self, mark: Mark, command: &HostCommand, engine: &Engine<P>) {
        if let Some(begun) = mark.counts {
            let ended = all(engine, self.before.len());
            for (before, (begun, ended)) in self.before.iter_mut().zip(begun.iter().zip(&ended)) {
                before.add(&ended.since(begun));
            }
        }
        if let Some(kept) = &mut self.hits {
            let hits = engine.counts(command.tenant).hits() - mark.hits;
            if hits > 0 {
                kept.push((command.tag, hits));
            }
        }
    }
}

/// Every tenant's counters.
fn all<P: Policy>(engine: &Engine<P>, tenants: usize) -> Vec<Counts> {
    let tenants = (0..tenants).map(|tenant| TenantId(tenant as u16));
    tenants.map(|tenant| *engine.counts(tenant)).collect()
}
