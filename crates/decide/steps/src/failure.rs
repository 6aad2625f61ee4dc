//! Steps that failed, as their owner must know them.
//!
//! For: an owner that lets the cache forget blocks whose content is lost, and takes victims back
//! whose write-back failed. Must never know: why a step failed. Units: blocks.

use crate::ids::{DeviceId, ResidentId};
use crate::resident_table::ResidentTable;
use crate::step::{Action, Step};
use cachewright_types::{Op, TenantId};

/// A block that a failed step touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedBlock {
    /// Its resident.
    pub resident: ResidentId,
    /// Its number on the tenant's volume; nothing if only steps of the placement touch it.
    pub number: Option<u64>,
}

/// What a failed step means for its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The backing device or a request has less than it should; cached blocks are whole.
    None,
    /// The cache holds blocks without their content; it must forget them.
    Lost,
    /// Dirty blocks that stay were not written back; they are still dirty.
    StillDirty,
    /// Dirty blocks that were evicted were not written back; their slots are held until
    /// [`Steps::release`](crate::Steps::release).
    Held,
}

/// A step that failed.
#[derive(Clone, Debug)]
pub struct Failure<X> {
    /// What it was to do.
    pub action: Action<X>,
    /// The tenant of its command.
    pub tenant: TenantId,
    /// The number of the decision it belongs to.
    pub decision: u64,
    /// The blocks that it touched.
    pub blocks: Vec<FailedBlock>,
    /// What it means for them.
    pub damage: Damage,
    serial: u64,
}

/// Steps that failed and were not yet reported.
#[derive(Clone, Debug)]
pub struct FailureLog<X> {
    failures: Vec<Failure<X>>,
}

impl<X> Default for FailureLog<X> {
    fn default() -> Self {
        FailureLog { failures: Vec::new() }
    }
}

impl<X: Copy> FailureLog<X> {
    /// Notes a failed step; returns whether its blocks keep their slots.
    pub fn note(&mut self, residents: &mut ResidentTable, step: &Step<X>, serial: u64) -> bool {
        let damage = damage_of(residents, step);
        let block = |resident: &ResidentId| FailedBlock {
            resident: *resident,
            number: residents.number(*resident),
        };
        let blocks: Vec<FailedBlock> = step.pins.iter().map(block).collect();
        if damage == Damage::Lost {
            blocks.iter().for_each(|block| residents.set_lost(block.resident, true));
        }
        let (action, tenant, decision) = (step.action, step.tenant, step.decision);
        self.failures.push(Failure { action, tenant, decision, blocks, damage, serial });
        damage == Damage::Held
    }

    /// The failures since the last call.
    pub fn take(&mut self) -> Vec<Failure<X>> {
        std::mem::take(&mut self.failures)
    }

    /// The serial number of a failed step that holds slots.
    pub fn release(&self, failure: &Failure<X>) -> Option<u64> {
        (failure.damage == Damage::Held).then_some(failure.serial)
    }
}

fn damage_of<X>(residents: &ResidentTable, step: &Step<X>) -> Damage {
    let evicted = step.pins.iter().any(|resident| residents.is_evicted(*resident));
    match step.action {
        Action::Fill { .. }
        | Action::Cache { op: Op::Write, .. }
        | Action::Device { device: DeviceId::CACHE, op: Op::Write, .. } => Damage::Lost,
        // A fetch whose fill comes behind it.
        Action::Device { op: Op::Read, .. } if !step.pins.is_empty() => Damage::Lost,
        Action::Device { op: Op::Write, .. } if step.cleaning => Damage::StillDirty,
        Action::Device { op: Op::Write, .. } if evicted => Damage::Held,
        _ => Damage::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::Pins;
    use cachewright_cache::Cached;
    use cachewright_policy::Region;
    use cachewright_types::BlockId;

    /// Block 3 was evicted and its write-back fails; then the fill of block 4.
    #[test]
    fn only_a_step_that_holds_slots_is_released_by_its_serial_number() {
        let cached = |id| {
            let (id, number, tenant) = (BlockId(id), u64::from(id) + 100, TenantId(2));
            Cached { pool: 0, id, tenant, number, region: Region::Any }
        };
        let mut residents = ResidentTable::default();
        let ids = [3, 4].map(|id| residents.admit(&cached(id)));
        residents.note_plan(ids[0], 103, 1);
        residents.evict(&cached(3));
        let device = DeviceId::new(1);
        let write = Action::Device { device, op: Op::Write, offset: 103 << 12, length: 4096 };
        let fill = Action::Fill { resident: ids[1], length: 4096 };
        let step = |action: Action<()>, resident: ResidentId| {
            Step::new(action, TenantId(2)).pinning(Pins::from(&[resident][..])).of_decision(8)
        };
        let mut log = FailureLog::default();
        assert!(log.note(&mut residents, &step(write, ids[0]), 5));
        assert!(!log.note(&mut residents, &step(fill, ids[1]), 6));
        let failures = log.take();
        let found = failures.iter().map(|found| (found.damage, found.decision, log.release(found)));
        let expected = [(Damage::Held, 8, Some(5)), (Damage::Lost, 8, None)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(failures[0].blocks, [FailedBlock { resident: ids[0], number: Some(103) }]);
        assert!(residents.is_lost(ids[1]) && !residents.is_lost(ids[0]) && log.take().is_empty());
    }
}
