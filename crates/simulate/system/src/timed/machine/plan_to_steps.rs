//! From plans to steps: moves in order.
//!
//! For: what each move of a plan changes, and which blocks become commands together. Must never
//! know: when anything happens. Units: blocks. The rules:
//!
//! - blocks of a plan are noted first and become commands at its end, so that neighbours are one
//!   command; an eviction or a cleaning of a block already noted makes commands before it;
//! - a block leaves its slot when what was begun for it is done and, if dirty, when it is written
//!   back; a new block waits for a slot.

use super::super::settings::MachineSettings;
use super::commands::{CommandParts, Commands, Item, Kind, Purpose, Rules};
use super::ids::{DeviceId, ResidentId};
use super::mover::Mover;
use super::write_backs::{DirtyResident, WriteBacks};
use cachewright_cache::{Cached, Move, Plan};
use cachewright_types::Op;

/// The parts of a machine that a plan changes.
pub struct PlanParts<'a> {
    /// What commands change.
    pub commands: CommandParts<'a>,
    /// Changes of places.
    pub mover: &'a mut Mover,
    /// Blocks to be written back.
    pub write_backs: &'a mut WriteBacks,
}

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
struct Translation<'a> {
    state: &'a mut PlanToSteps,
    parts: PlanParts<'a>,
    commands: Commands,
}

impl PlanToSteps {
    /// The translator of a machine with blocks of `1 << block_shift` bytes.
    pub fn new(settings: &MachineSettings, block_shift: u32) -> PlanToSteps {
        let (rules, items, around) = (Rules::new(settings, block_shift), Vec::new(), Vec::new());
        PlanToSteps { rules, plans: 0, in_flight_blocks: 0, items, around }
    }

    /// Blocks that the last request hit while they were still being read.
    pub fn in_flight_blocks(&self) -> u64 {
        self.in_flight_blocks
    }

    /// Makes steps of a plan.
    pub fn translate(&mut self, mut parts: PlanParts<'_>, purpose: Purpose, plan: &Plan) {
        self.plans += 1;
        if purpose.request.is_some() {
            self.in_flight_blocks = 0;
        }
        let commands = Commands::new(&mut parts.commands, self.rules, purpose);
        let mut translation = Translation { state: self, parts, commands };
        for step in &plan.moves {
            translation.take(step);
        }
        translation.emit();
    }
}

impl Translation<'_> {
    /// Takes one move into account.
    fn take(&mut self, step: &Move) {
        match step {
            Move::WriteBack(cached) => self.evict(cached, true),
            Move::Drop(cached) | Move::Discard { cached, .. } => self.evict(cached, false),
            Move::Fetch(cached) => {
                let resident = self.admit(cached);
                self.note(Kind::Miss, resident, cached.number);
            }
            // Every fetched block is put into the cache.
            Move::Fill(_) => {}
            Move::Serve(cached) => self.serve(cached),
            Move::WriteThrough(Cached { number, .. }) | Move::Bypass { number, .. } => {
                self.state.around.push(*number);
            }
            Move::Clean(cached) => self.clean(cached),
            Move::Swap(one, other) => {
                let residents = &mut *self.parts.commands.residents;
                let pair = [one, other].map(|cached| (residents.find(cached), cached.region));
                self.parts.mover.swap(residents, pair);
            }
            Move::Trim => self.pass_on(&[self.backing()]),
            Move::Flush => self.pass_on(&[DeviceId::CACHE, self.backing()]),
        }
    }

    /// The backing device of the plan's tenant.
    fn backing(&self) -> DeviceId {
        self.parts.commands.backings.of(self.commands.purpose().tenant)
    }

    /// Notes what is to be done with a block in the cache.
    fn note(&mut self, kind: Kind, resident: ResidentId, number: u64) {
        self.parts.commands.residents.note_plan(resident, self.state.plans);
        self.state.items.push(Item { kind, resident, number });
    }

    /// Makes commands of what this plan has noted so far, if that is about a block.
    fn emit_before(&mut self, resident: ResidentId) {
        if self.parts.commands.residents.is_in_plan(resident, self.state.plans) {
            self.emit();
        }
    }

    /// The cache evicts a block; what this plan has noted for it goes before.
    fn evict(&mut self, cached: &Cached, dirty: bool) {
        let Some(resident) = self.parts.commands.residents.find(cached) else { return };
        self.emit_before(resident);
        let CommandParts { steps, residents, backings, .. } = &mut self.parts.commands;
        residents.evict(cached);
        if dirty {
            let (tenant, number) = (cached.tenant, cached.number);
            let device = backings.of(tenant);
            let block = DirtyResident { device, number, resident, tenant };
            self.parts.write_backs.note_evicted(block);
        } else {
            let granted = residents.settle(resident);
            self.parts.mover.slots_granted(steps, residents, granted);
        }
    }

    /// The cache cleans a block that stays; what this plan writes to it goes before.
    fn clean(&mut self, cached: &Cached) {
        let Some(resident) = self.parts.commands.residents.find(cached) else { return };
        self.emit_before(resident);
        let CommandParts { steps, residents, backings, .. } = &mut self.parts.commands;
        let (tenant, number) = (cached.tenant, cached.number);
        let device = backings.of(tenant);
        let block = DirtyResident { device, number, resident, tenant };
        self.parts.write_backs.clean(steps, residents, backings, block);
    }

    fn serve(&mut self, cached: &Cached) {
        let residents = &mut *self.parts.commands.residents;
        let known = residents.find(cached);
        if let Some(known) = known
            && residents.places_mut().set_wanted(known, cached.region)
        {
            self.parts.mover.note_misplaced(residents, known);
        }
        if self.commands.purpose().op == Op::Write {
            let resident = known.unwrap_or_else(|| self.admit(cached));
            self.note(Kind::Write, resident, cached.number);
        } else if let Some(known) = known {
            let last = self.state.items.last();
            let fetched =
                last.is_some_and(|item| item.kind == Kind::Miss && item.resident == known);
            if !fetched {
                self.note(Kind::Hit, known, cached.number);
            }
        }
    }

    /// A resident for a block that the cache admits.
    fn admit(&mut self, cached: &Cached) -> ResidentId {
        let residents = &mut *self.parts.commands.residents;
        let resident = residents.admit(cached);
        self.parts.mover.note_misplaced(residents, resident);
        if residents.places().get(resident).slot().is_none() {
            self.commands.wait_for_slot(&mut self.parts.commands, resident);
        }
        resident
    }

    /// A trim or flush goes to devices as it is.
    fn pass_on(&mut self, devices: &[DeviceId]) {
        self.begin_write_backs();
        for device in devices {
            self.commands.pass_on(&mut self.parts.commands, *device);
        }
    }

    fn begin_write_backs(&mut self) {
        let CommandParts { steps, residents, backings, .. } = &mut self.parts.commands;
        self.parts.write_backs.begin_evicted(steps, residents, backings);
    }

    /// Makes commands of the blocks noted so far, after those evicted: one of these may come back.
    fn emit(&mut self) {
        self.begin_write_backs();
        let parts = &mut self.parts.commands;
        self.state.in_flight_blocks += self.commands.in_cache(parts, &self.state.items);
        self.commands.around(parts, &self.state.around);
        self.state.items.clear();
        self.state.around.clear();
    }
}

#[cfg(test)]
mod tests;
