//! The table of residents against one that keeps a whole entry for each.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::block;
use cachewright_steps::{
    ResidentId, ResidentRef, ResidentSteps, ResidentTable, StepGraph, StepRef,
};
use cachewright_types::{Rng, Seed};
use proptest::prelude::*;
use std::collections::BTreeMap;

const BLOCKS: u64 = 40;

/// What the slow table keeps of a stay.
#[derive(Clone, Debug)]
struct Stay {
    /// The block's id, while the cache holds it.
    block: Option<u32>,
    number: u64,
    plan: u64,
    pins: u32,
    lost: bool,
    writer: Option<StepRef>,
    first: ResidentRef,
}

struct Both {
    table: ResidentTable,
    stays: BTreeMap<ResidentId, Stay>,
    /// References to stays that have ended.
    over: Vec<ResidentRef>,
    graph: StepGraph<(), ()>,
    rng: Rng,
    plan: u64,
}

impl Both {
    fn new(seed: u64) -> Both {
        Both {
            table: ResidentTable::default(),
            stays: BTreeMap::new(),
            over: Vec::new(),
            graph: StepGraph::default(),
            rng: Seed(seed).rng(),
            plan: 0,
        }
    }

    fn any(&mut self, wanted: impl Fn(&Stay) -> bool) -> Option<ResidentId> {
        let found: Vec<ResidentId> =
            self.stays.iter().filter(|(_, stay)| wanted(stay)).map(|(id, _)| *id).collect();
        let place = self.rng.below(found.len().max(1) as u64) as usize;
        found.get(place).copied()
    }

    fn admit(&mut self) {
        let id = self.rng.below(BLOCKS) as u32;
        if self.stays.values().any(|stay| stay.block == Some(id)) {
            return;
        }
        let resident = self.table.admit(&block(id));
        let first = self.table.reference(resident);
        let (number, writer) = (u64::from(id), None);
        let stay = Stay { block: Some(id), number, plan: 0, pins: 0, lost: false, writer, first };
        assert!(self.stays.insert(resident, stay).is_none(), "its number is still in use");
    }

    /// A plan touches a resident: a step that writes to it begins.
    fn touch(&mut self) {
        let Some(id) = self.any(|stay| stay.block.is_some()) else { return };
        self.plan += 1;
        let stay = self.stays.get_mut(&id).unwrap();
        self.table.note_plan(id, stay.number, self.plan);
        self.table.pin(id);
        let step = self.graph.add((), None);
        self.table.steps_mut(id).writer = step;
        (stay.plan, stay.writer) = (self.plan, Some(step));
        stay.pins += 1;
    }

    fn lose(&mut self) {
        let lost = self.rng.below(2) == 0;
        let Some(id) = self.any(|stay| stay.pins > 0) else { return };
        self.table.set_lost(id, lost);
        self.stays.get_mut(&id).unwrap().lost = lost;
    }

    fn unpin(&mut self) {
        let Some(id) = self.any(|stay| stay.pins > 0) else { return };
        let stay = self.stays.get_mut(&id).unwrap();
        stay.pins -= 1;
        let ends = stay.pins == 0 && stay.block.is_none();
        assert_eq!(self.table.unpin(id), ends);
        if ends {
            self.end(id);
        }
    }

    fn evict(&mut self) {
        let Some(id) = self.any(|stay| stay.block.is_some()) else { return };
        let stay = self.stays.get_mut(&id).unwrap();
        let cached = block(stay.block.take().unwrap());
        let ends = stay.pins == 0;
        assert_eq!(self.table.evict(&cached), Some(id));
        assert_eq!(self.table.find(&cached), None);
        assert_eq!(self.table.settle(id), ends);
        if ends {
            self.end(id);
        }
    }

    fn end(&mut self, id: ResidentId) {
        self.over.extend(self.stays.remove(&id).map(|stay| stay.first));
    }

    fn check(&self) {
        for (id, stay) in &self.stays {
            let table = &self.table;
            assert_eq!((table.pins(*id), table.is_lost(*id)), (stay.pins, stay.lost));
            assert_eq!(table.is_evicted(*id), stay.block.is_none());
            assert_eq!(table.stays(stay.first), stay.block.is_some());
            let named = stay.block.and_then(|id| table.find(&block(id)));
            assert_eq!(named, stay.block.map(|_| *id));
            // Between steps, nothing but a loss is remembered.
            if stay.pins > 0 {
                assert_eq!(table.number(*id), Some(stay.number));
                assert!(table.is_in_plan(*id, stay.plan));
                assert_eq!(Some(table.steps(*id).writer), stay.writer);
            } else if !stay.lost {
                assert_eq!((table.number(*id), table.steps(*id)), (None, &ResidentSteps::DONE));
            }
        }
        assert!(self.over.iter().all(|resident| !self.table.stays(*resident)), "a stay is over");
        let held = self.stays.values().filter(|stay| stay.block.is_some()).count() as u64;
        assert_eq!(self.table.audit(held), Ok(()));
    }
}

proptest! {
    #[test]
    fn residents_are_those_of_a_table_that_forgets_nothing(
        seed in any::<u64>(),
        changes in prop::collection::vec(0_u8..20, 1..300),
    ) {
        let mut both = Both::new(seed);
        for change in changes {
            match change {
                0..5 => both.admit(),
                5..9 => both.touch(),
                9..11 => both.lose(),
                11..16 => both.unpin(),
                _ => both.evict(),
            }
            both.check();
        }
    }
}
