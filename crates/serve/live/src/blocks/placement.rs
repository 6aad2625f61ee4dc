//! Residents of a log: each has a place as soon as its content is appended.
//!
//! For: the steps of plans, which ask where residents lie. Must never know: the log. Units:
//! decisions. A resident never waits for a slot, since space in the log is seen to before a request
//! is decided; its slot is its number.

use cachewright_cache::Cached;
use cachewright_policy::Region;
use cachewright_steps::{Placement, ResidentId, ResidentTable, SlotId, StepRef};
use cachewright_types::TenantId;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::Range;

/// One block's stay in the cache. Decisions are counted from the start of the server.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    /// Told apart from all other stays.
    pub serial: u64,
    /// The tenant whose block it is.
    pub tenant: TenantId,
    /// Its number on the tenant's volume.
    pub number: u64,
    /// The decision that brought it in; 0 for one that recovery found.
    pub admitted: u64,
    /// The decision that evicted it; 0 while it stays.
    pub left: u64,
}

/// A resident that left, or that has ended.
pub type Gone = (ResidentId, Stay);

/// The stays of all residents.
#[derive(Clone, Debug, Default)]
pub struct LogPlacement {
    /// The decision at hand.
    decision: u64,
    serials: u64,
    stays: Vec<Stay>,
    /// Residents that left and have not ended, by block.
    departing: BTreeSet<(TenantId, u64, ResidentId)>,
    left: Vec<Gone>,
    ended: Vec<Gone>,
}

impl LogPlacement {
    /// A decision begins.
    pub fn begin(&mut self, decision: u64) {
        self.decision = decision;
    }

    /// A resident's stay.
    pub fn stay(&self, id: ResidentId) -> &Stay {
        &self.stays[id.index()]
    }

    /// Residents of a tenant's blocks that left and are still touched by steps.
    pub fn departing(
        &self,
        tenant: TenantId,
        blocks: Range<u64>,
    ) -> impl Iterator<Item = ResidentId> + '_ {
        let first = (tenant, blocks.start, ResidentId(0));
        let found = self.departing.range(first..).copied();
        let found =
            found.take_while(move |(other, number, _)| *other == tenant && *number < blocks.end);
        found.map(|(.., resident)| resident)
    }

    /// Residents that left since the last call, in order.
    pub fn take_left(&mut self) -> Vec<Gone> {
        std::mem::take(&mut self.left)
    }

    /// Residents that have ended since the last call, in order.
    pub fn take_ended(&mut self) -> Vec<Gone> {
        std::mem::take(&mut self.ended)
    }
}

impl Placement for LogPlacement {
    type Action = Infallible;

    fn admit(&mut self, _residents: &ResidentTable, id: ResidentId, cached: &Cached) {
        self.serials += 1;
        let (serial, tenant, number) = (self.serials, cached.tenant, cached.number);
        let stay = Stay { serial, tenant, number, admitted: self.decision, left: 0 };
        match self.stays.get_mut(id.index()) {
            Some(old) => *old = stay,
            None => self.stays.push(stay),
        }
    }

    fn slot(&self, id: ResidentId) -> Option<SlotId> {
        Some(SlotId(id.0))
    }

    fn is_moving(&self, _id: ResidentId) -> bool {
        false
    }

    fn leave(&mut self, id: ResidentId) {
        let stay = &mut self.stays[id.index()];
        stay.left = self.decision;
        self.left.push((id, *stay));
        self.departing.insert((stay.tenant, stay.number, id));
    }

    fn end(&mut self, id: ResidentId, _granted: &mut Vec<ResidentId>) {
        let stay = self.stays[id.index()];
        self.ended.push((id, stay));
        self.departing.remove(&(stay.tenant, stay.number, id));
    }

    fn on_granted(&mut self, _residents: &ResidentTable, _id: ResidentId) {}

    fn prefer(&mut self, _residents: &ResidentTable, _id: ResidentId, _preferred: Region) {}

    fn swap(&mut self, _residents: &ResidentTable, _pair: [(Option<ResidentId>, Region); 2]) {}

    fn end_step(&mut self, _id: ResidentId, _serial: u64) -> Option<StepRef> {
        None
    }
}
