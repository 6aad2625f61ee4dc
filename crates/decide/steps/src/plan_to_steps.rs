//! From plans to steps: moves in order.
//!
//! For: what each move of a plan changes, and which blocks become commands together. Must never
//! know: when anything happens. Units: blocks. The rules:
//!
//! - blocks of a plan are noted first and become commands at its end, so that neighbours are one
//!   command; an eviction or a cleaning of a block already noted makes commands before it;
//! - a block leaves its slot when what was begun for it is done and, if dirty, when it is written
//!   back; a new block waits for a slot.

use crate::commands::Commands;
use crate::ids::{DeviceId, ResidentId};
use crate::items::{AccessKind, Item};
use crate::placement::Placement;
use crate::purpose::Purpose;
use crate::rules::Rules;
use crate::state::StepState;
use crate::write_backs::{DirtyResident, WriteBacks};
use cachewright_cache::{Cached, Move, Plan};
use cachewright_types::Op;

/// What one plan after another needs.
#[derive(Clone, Debug)]
pub struct PlanToSteps {
    rules: Rules,
    /// Plans carried out.
    plans: u64,
    /// Blocks that the last request hit while they were still being read.
    in_flight_blocks: u64,
    /// What is to be done in the cache; kept for its memory.
    items: Vec<Item>,
    /// Numbers of blocks read or written on the backing device alone; kept for its memory.
    around: Vec<u64>,
}

/// One plan that becomes steps.
struct PlanTranslation<'a, P: Placement, N> {
    own: &'a mut PlanToSteps,
    state: &'a mut StepState<P, N>,
    write_backs: &'a mut WriteBacks,
    commands: Commands,
}

impl PlanToSteps {
    /// The translator of plans under some rules.
    pub fn new(rules: Rules) -> PlanToSteps {
        let (items, around) = (Vec::new(), Vec::new());
        PlanToSteps { rules, plans: 0, in_flight_blocks: 0, items, around }
    }

    /// The rules of all plans.
    #[inline]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Blocks that the last request hit while they were still being read.
    pub fn in_flight_blocks(&self) -> u64 {
        self.in_flight_blocks
    }

    /// The number of the last plan.
    pub fn plans(&self) -> u64 {
        self.plans
    }

    /// Makes steps of a plan.
    pub fn translate<P: Placement, N: Copy + Default>(
        &mut self,
        state: &mut StepState<P, N>,
        write_backs: &mut WriteBacks,
        purpose: Purpose,
        plan: &Plan,
    ) {
        self.plans += 1;
        if purpose.request.is_some() {
            self.in_flight_blocks = 0;
        }
        let commands = Commands::new(state, self.rules, purpose, self.plans);
        let mut translation = PlanTranslation { own: self, state, write_backs, commands };
        for step in &plan.moves {
            translation.take(step);
        }
        translation.emit();
    }
}

impl<P: Placement, N: Copy + Default> PlanTranslation<'_, P, N> {
    /// Takes one move into account.
    fn take(&mut self, step: &Move) {
        match step {
            Move::WriteBack(cached) => self.evict(cached, true),
            Move::Drop(cached) | Move::Discard { cached, .. } => self.evict(cached, false),
            Move::Fetch(cached) => {
                let resident = self.admit(cached);
                self.note(AccessKind::Miss, resident, cached.number);
            }
            // Every fetched block is put into the cache.
            Move::Fill(_) => {}
            Move::Serve(cached) => self.serve(cached),
            Move::WriteThrough(Cached { number, .. }) | Move::Bypass { number, .. } => {
                self.own.around.push(*number);
            }
            Move::Clean(cached) => self.clean(cached),
            Move::Swap(pair) => {
                let residents = &self.state.residents;
                let pair = pair.each_ref().map(|cached| (residents.find(cached), cached.region));
                self.state.placement.swap(residents, pair);
            }
            Move::Trim => self.pass_on(&[self.backing()]),
            Move::Flush => self.pass_on(&[DeviceId::CACHE, self.backing()]),
        }
    }

    /// The backing device of the plan's tenant.
    fn backing(&self) -> DeviceId {
        self.state.backings.device_of(self.commands.purpose().tenant)
    }

    /// Notes what is to be done with a block in the cache.
    fn note(&mut self, kind: AccessKind, resident: ResidentId, number: u64) {
        self.state.residents.note_plan(resident, number, self.own.plans);
        self.own.items.push(Item { kind, resident, number });
    }

    /// Makes commands of what this plan has noted so far, if that is about a block.
    fn emit_before(&mut self, resident: ResidentId) {
        if self.state.residents.is_in_plan(resident, self.own.plans) {
            self.emit();
        }
    }

    /// The cache evicts a block; what this plan has noted for it goes before.
    fn evict(&mut self, cached: &Cached, dirty: bool) {
        let Some(resident) = self.state.residents.find(cached) else { return };
        self.emit_before(resident);
        self.state.evict(cached);
        if dirty {
            self.write_backs.note_evicted(self.dirty(cached, resident));
        } else {
            self.state.settle(resident);
        }
    }

    /// The cache cleans a block that stays; what this plan writes to it goes before.
    fn clean(&mut self, cached: &Cached) {
        let Some(resident) = self.state.residents.find(cached) else { return };
        self.emit_before(resident);
        let block = self.dirty(cached, resident);
        self.write_backs.clean(self.state, block, self.own.plans);
    }

    fn dirty(&self, cached: &Cached, resident: ResidentId) -> DirtyResident {
        let (tenant, number) = (cached.tenant, cached.number);
        DirtyResident { device: self.state.backings.device_of(tenant), number, resident, tenant }
    }

    fn serve(&mut self, cached: &Cached) {
        let known = self.state.residents.find(cached);
        if let Some(known) = known {
            self.state.placement.prefer(&self.state.residents, known, cached.region);
        }
        if self.commands.purpose().op == Op::Write {
            let resident = known.unwrap_or_else(|| self.admit(cached));
            self.note(AccessKind::Write, resident, cached.number);
        } else if let Some(known) = known {
            let last = self.own.items.last();
            let fetched =
                last.is_some_and(|item| item.kind == AccessKind::Miss && item.resident == known);
            if !fetched {
                self.note(AccessKind::Hit, known, cached.number);
            }
        }
    }

    /// A resident for a block that the cache admits.
    fn admit(&mut self, cached: &Cached) -> ResidentId {
        let resident = self.state.admit(cached);
        if self.state.placement.slot(resident).is_none() {
            self.commands.wait_for_slot(self.state, resident);
        }
        resident
    }

    /// A trim or flush goes to devices as it is.
    fn pass_on(&mut self, devices: &[DeviceId]) {
        self.write_backs.begin_evicted(self.state, self.own.plans);
        for device in devices {
            self.commands.pass_on(self.state, *device);
        }
    }

    /// Makes commands of the blocks noted so far, after those evicted: one of these may come back.
    fn emit(&mut self) {
        self.write_backs.begin_evicted(self.state, self.own.plans);
        self.own.in_flight_blocks += self.commands.in_cache(self.state, &self.own.items);
        self.commands.around(self.state, &self.own.around);
        self.own.items.clear();
        self.own.around.clear();
    }
}
