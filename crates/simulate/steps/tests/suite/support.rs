//! A performer of steps whose every command can be seen.
//!
//! For: tests of steps. Must never know: time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_cache::{Cached, Move, Plan};
use cachewright_policy::Region;
use cachewright_steps::{Action, DeviceId, Fill, Outcome, Placement, Ready, Rules, Steps};
use cachewright_testkit::slots::{Never, SlotList};
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, TenantId};
use std::ops::Range;

pub const SHIFT: u32 = 12;
pub const TENANT: TenantId = TenantId(0);

/// A command that may begin: where (slot of the cache device, or block behind it), what, how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Cache(Op, u32, u64),
    Backing(Op, u64, u64),
    Pass,
    Decide,
}

/// Steps without devices and time.
pub struct World {
    pub steps: Steps<SlotList, ()>,
    tag: u64,
}

pub fn block(id: u32) -> Cached {
    Cached { pool: 0, id: BlockId(id), tenant: TENANT, number: u64::from(id), region: Region::Any }
}

pub fn fetches(ids: Range<u32>) -> Vec<Move> {
    let each = |id| [Move::Fetch(block(id)), Move::Fill(block(id)), Move::Serve(block(id))];
    ids.flat_map(each).collect()
}

pub fn rules() -> Rules {
    Rules { fill: Fill::AfterAnswer, decision: None, block_shift: SHIFT }
}

impl World {
    pub fn new(rules: Rules, slots: u32) -> World {
        World { steps: Steps::new(SlotList::new(slots), &[1], rules), tag: 0 }
    }

    /// A request of bytes, and the moves that answer it; returns its tag.
    pub fn request(&mut self, op: Op, bytes: Range<u64>, moves: Vec<Move>) -> u64 {
        let (offset, length) = (Bytes(bytes.start), Bytes(bytes.end - bytes.start));
        let request = Request { time: Nanos(0), offset, length, op, tenant: TENANT };
        self.tag += 1;
        self.steps.request(self.tag, &request, &Plan { moves, all_hit: false }, ());
        self.tag
    }

    /// What a step does, and where.
    pub fn place(&self, ready: &Ready<Never>) -> Done {
        let slot = |id| self.steps.state().placement.slot(id).unwrap().0;
        match ready.action {
            Action::Cache { op, resident, skip, length } => {
                assert!(skip < 1 << SHIFT);
                Done::Cache(op, slot(resident), length)
            }
            Action::Fill { resident, length } => Done::Cache(Op::Write, slot(resident), length),
            Action::Device { device, op, offset, length } => {
                assert!(device != DeviceId::CACHE || op == Op::Flush);
                Done::Backing(op, offset >> SHIFT, length)
            }
            Action::Decide => Done::Decide,
            Action::Pass | Action::WaitForSlot => Done::Pass,
            Action::Placement(never) => match never {},
        }
    }

    /// Ends the steps that may begin now; returns what they do.
    pub fn carry_out(&mut self) -> Vec<Done> {
        self.carry_out_with(|_| Outcome::Done)
    }

    /// As [`World::carry_out`]; each step ends as `outcome` decides.
    pub fn carry_out_with(&mut self, outcome: impl Fn(Done) -> Outcome) -> Vec<Done> {
        let ready: Vec<_> = std::iter::from_fn(|| self.steps.next_step()).collect();
        let mut done = Vec::new();
        for step in ready {
            let place = self.place(&step);
            self.steps.finish(step.id, outcome(place));
            done.push(place);
        }
        assert_eq!(self.steps.state().graph.audit(), Ok(()));
        done
    }

    /// The answers since the last call, as tags and whether each failed.
    pub fn answers(&mut self) -> Vec<(u64, bool)> {
        self.steps.drain_answers().map(|answer| (answer.tag, answer.failed)).collect()
    }
}
