//! A machine: a cache device, backing devices, and the steps under way on them.
//!
//! For: carrying out plans in simulated time. Must never know: policies, workloads, stack files.
//! Units: nanoseconds, bytes, blocks. A step begins as soon as everything it waits for is done;
//! devices queue for themselves. Invariants: every request is answered once; time never goes back;
//! a slot holds one block.

mod backings;
mod commands;
mod delays;
mod devices;
pub mod free_slots;
pub mod ids;
mod move_queue;
pub mod mover;
mod open_requests;
mod places;
mod plan_to_steps;
mod resident_table;
mod slot_class;
pub mod slots;
mod step;
mod step_graph;
mod write_backs;

pub use open_requests::Answer;

use super::channels::GroupUse;
use super::latency_breakdown::{Role, Wait};
use super::settings::MachineSettings;
use backings::Backings;
use cachewright_cache::{Move, Plan};
use cachewright_device::{AnyDevice, Command, DeviceUse};
use cachewright_layout::ChannelMap;
use cachewright_types::{Bytes, Op, Request, TenantId};
use commands::{CommandParts, Purpose};
use delays::Delays;
use devices::Devices;
use ids::{DeviceId, StepId};
use mover::{Migrated, Mover};
use open_requests::OpenRequests;
use plan_to_steps::{PlanParts, PlanToSteps};
use resident_table::{ResidentRef, ResidentTable};
use slots::{RegionBlocks, Slots};
use std::collections::VecDeque;
use step::{Action, Steps};
use write_backs::{DirtyResident, WriteBacks};

/// A machine.
pub struct Machine {
    settings: MachineSettings,
    block_shift: u32,
    now_ns: u64,
    devices: Devices,
    backings: Backings,
    residents: ResidentTable,
    steps: Steps,
    requests: OpenRequests,
    delays: Delays,
    mover: Mover,
    write_backs: WriteBacks,
    plan_to_steps: PlanToSteps,
}

/// What a machine is made of.
pub struct Parts {
    /// How it carries out plans.
    pub settings: MachineSettings,
    /// log2 of the block size in bytes.
    pub block_shift: u32,
    /// Where blocks lie on the cache device.
    pub slots: Slots,
    /// The cache device, then the backing devices.
    pub devices: Vec<AnyDevice>,
    /// The number of each tenant's backing device.
    pub backing_of: Vec<usize>,
}

/// A block that a plan has made dirty, as it was then.
#[derive(Clone, Copy, Debug)]
pub struct DirtyBlock {
    resident: ResidentRef,
    /// The tenant whose block it is.
    pub tenant: TenantId,
    /// Its number on the tenant's volume.
    pub number: u64,
}

impl Machine {
    /// An idle machine. Errors: the bytes of cache device needed, when it has fewer.
    pub fn new(parts: Parts) -> Result<Machine, Bytes> {
        let Parts { settings, block_shift, slots, devices, backing_of } = parts;
        assert!(block_shift < u64::BITS, "a block has at most 2^63 bytes");
        let known = backing_of.iter().all(|device| *device < devices.len());
        assert!(known, "every tenant's backing device is one of the machine");
        let needed = Bytes(u64::from(slots.end().0) << block_shift);
        let devices = Devices::new(devices);
        if devices.cache_capacity().is_none_or(|capacity| capacity < needed) {
            return Err(needed);
        }
        Ok(Machine {
            backings: Backings::new(&backing_of, block_shift),
            residents: ResidentTable::new(slots),
            steps: Steps::default(),
            requests: OpenRequests::default(),
            delays: Delays::default(),
            mover: Mover::new(settings.swap_depth, block_shift),
            write_backs: WriteBacks::new(block_shift),
            plan_to_steps: PlanToSteps::new(&settings, block_shift),
            now_ns: 0,
            settings,
            block_shift,
            devices,
        })
    }

    /// How it carries out plans.
    pub fn settings(&self) -> &MachineSettings {
        &self.settings
    }

    /// log2 of the block size in bytes.
    pub fn block_shift(&self) -> u32 {
        self.block_shift
    }

    /// Time now.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// When something next happens; nothing when all is done.
    pub fn next_due_ns(&self) -> Option<u64> {
        let (device, delay) = (self.devices.next_due_ns(), self.delays.next_end_ns());
        device.into_iter().chain(delay).min()
    }

    /// Lets everything due at `now_ns` happen, which is the next due time; answers are taken with
    /// [`Machine::take_answers`].
    pub fn advance(&mut self, now_ns: u64) {
        debug_assert!(self.now_ns <= now_ns, "time never goes back");
        self.now_ns = now_ns;
        for device in self.devices.ids() {
            let done = self.devices.advance(device, now_ns);
            let role = if device == DeviceId::CACHE { Role::Cache } else { Role::Backing };
            for completion in &done {
                let step = StepId(completion.tag as u32);
                self.steps.latency_mut(step).1.spend(role, &completion.spent);
                self.end(step);
            }
            self.devices.keep(done);
        }
        while let Some(step) = self.delays.take_ended(now_ns) {
            self.account(step, Wait::Decision);
            self.end(step);
        }
        self.run();
    }

    /// Moves time to `now_ns`, before which nothing is due: what is asked for next is asked then.
    pub fn wait_until(&mut self, now_ns: u64) {
        debug_assert!(self.next_due_ns().is_none_or(|due_ns| due_ns >= now_ns), "nothing is due");
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Begins what a plan says about a request that arrives now.
    pub fn request(&mut self, tag: u64, request: &Request, plan: &Plan, now_ns: u64) {
        self.now_ns = now_ns;
        let id = self.requests.open(tag, request.tenant, now_ns);
        let (tenant, op, start) = (request.tenant, request.op, request.offset.0);
        let bytes = start..start + request.length.0;
        self.translate(Purpose { request: Some(id), tenant, op, bytes }, plan);
        self.requests.close(id, now_ns);
        self.run();
    }

    /// Begins what a plan says that no request waits for: a tenant's read-ahead, changed quotas.
    pub fn background(&mut self, tenant: TenantId, plan: &Plan) {
        let purpose = Purpose { request: None, tenant, op: Op::Read, bytes: 0..u64::MAX };
        self.translate(purpose, plan);
        self.run();
    }

    fn translate(&mut self, purpose: Purpose, plan: &Plan) {
        let commands = CommandParts {
            steps: &mut self.steps,
            residents: &mut self.residents,
            requests: &mut self.requests,
            backings: &mut self.backings,
        };
        let (mover, write_backs) = (&mut self.mover, &mut self.write_backs);
        let parts = PlanParts { commands, mover, write_backs };
        self.plan_to_steps.translate(parts, purpose, plan);
    }

    /// The answers since the last call, in the order in which they were given.
    pub fn take_answers(&mut self, answers: &mut Vec<Answer>) {
        self.requests.take_answers(answers);
    }

    /// Blocks that the last request hit while they were still being read.
    pub fn in_flight_blocks(&self) -> u64 {
        self.plan_to_steps.in_flight_blocks()
    }

    /// Notes the blocks of the cache that a plan writes.
    pub fn served(&self, plan: &Plan, dirty: &mut VecDeque<DirtyBlock>) {
        for step in &plan.moves {
            let Move::Serve(cached) = step else { continue };
            if let Some(resident) = self.residents.find(cached) {
                let resident = self.residents.reference(resident);
                let (tenant, number) = (cached.tenant, cached.number);
                dirty.push_back(DirtyBlock { resident, tenant, number });
            }
        }
    }

    /// Whether a block is still in the cache since it was noted.
    pub fn stays(&self, block: &DirtyBlock) -> bool {
        self.residents.stays(block.resident)
    }

    /// Begins to write back a block that stays.
    pub fn clean(&mut self, block: &DirtyBlock) {
        let (tenant, number) = (block.tenant, block.number);
        let (device, resident) = (self.backings.of(tenant), block.resident.id());
        let block = DirtyResident { device, number, resident, tenant };
        self.write_backs.clean(&mut self.steps, &mut self.residents, &mut self.backings, block);
        self.run();
    }

    /// Write-backs under way of blocks that stay.
    pub fn cleaning(&self) -> u32 {
        self.write_backs.cleaning()
    }

    /// The tenants' quotas have changed.
    pub fn set_quotas(&mut self, quotas: &[u32]) {
        let granted = self.residents.places_mut().set_quotas(quotas);
        self.mover.slots_granted(&mut self.steps, &self.residents, granted);
        self.run();
    }

    /// The channels of the cache device are laid out anew: what the cache takes in from now on lies
    /// where `map` says, and blocks that lie elsewhere move there as slots are free. Without a
    /// layout nothing changes. Quotas are set as ever, by [`Machine::set_quotas`].
    pub fn apply_layout(&mut self, map: &ChannelMap) {
        let granted = self.residents.places_mut().apply_layout(map);
        self.mover.slots_granted(&mut self.steps, &self.residents, granted);
        self.mover.note_all_misplaced(&self.residents);
        self.run();
    }

    /// How each device was used.
    pub fn uses(&self) -> Vec<DeviceUse> {
        self.devices.uses(self.now_ns)
    }

    /// What was sent to each group of channels that the cache device shows.
    pub fn groups(&self) -> &[GroupUse] {
        self.devices.groups()
    }

    /// The blocks of each tenant by region; nothing where channels are not laid out.
    pub fn region_blocks(&self) -> Option<Vec<RegionBlocks>> {
        let places = self.residents.places();
        (0..self.backings.tenants()).map(|tenant| places.region_blocks(tenant)).collect()
    }

    /// What changed places, by tenant.
    pub fn migrated(&self) -> &[Migrated] {
        self.mover.migrated()
    }

    /// Checks what must hold between calls; `held` is the number of blocks the cache holds, `idle`
    /// says that everything should be done. Errors: the rule broken, in words.
    pub fn audit(&self, held: u64, idle: bool) -> Result<(), String> {
        self.devices.audit()?;
        self.residents.audit(held)?;
        self.steps.audit()?;
        self.mover.audit()?;
        let changes = self.mover.open();
        if idle && changes > 0 {
            return Err(format!("{changes} changes of places are left"));
        }
        let (requests, steps) = (self.requests.count(), self.steps.open());
        let (writes, cleaning) = (self.backings.writes(), self.write_backs.cleaning());
        if idle && (requests > 0 || steps > 0 || writes > 0 || cleaning > 0) {
            return Err(format!("{requests} requests, {steps} steps, {writes} writes are left"));
        }
        Ok(())
    }

    /// Begins all steps that may.
    fn run(&mut self) {
        loop {
            while let Some(step) = self.steps.next_ready() {
                self.begin(step);
            }
            if !self.mover.begin_changes(&mut self.steps, &mut self.residents) {
                return;
            }
        }
    }

    fn begin(&mut self, id: StepId) {
        let Some(step) = self.steps.action(id) else { return };
        let (action, tenant) = (step.action, step.tenant);
        let waits_for_slot = matches!(action, Action::WaitForSlot);
        self.account(id, if waits_for_slot { Wait::Slot } else { Wait::Block });
        match action {
            // A wait for a slot is released when its resident has one.
            Action::Pass | Action::WaitForSlot => self.end(id),
            Action::Exchange(change) => {
                self.mover.exchange(&mut self.residents, change);
                self.end(id);
            }
            Action::EndChange(change) => {
                self.mover.end_change(&mut self.steps, &mut self.residents, change);
                self.end(id);
            }
            Action::Delay(time_ns) => self.delays.begin(id, self.now_ns + time_ns),
            Action::Cache { op, resident, skip, length } => {
                let slot = self.residents.places().get(resident).slot();
                debug_assert!(slot.is_some(), "a command to the cache device has a slot");
                let slot = slot.map_or(0, |slot| u64::from(slot.0));
                let offset = (slot << self.block_shift) + skip;
                self.submit(DeviceId::CACHE, id, (op, offset, length), tenant);
            }
            Action::Device { device, op, offset, length } => {
                self.submit(device, id, (op, offset, length), tenant);
            }
        }
    }

    fn submit(
        &mut self,
        device: DeviceId,
        step: StepId,
        (op, offset, length): (Op, u64, u64),
        tenant: TenantId,
    ) {
        let (tag, offset, length) = (u64::from(step.0), Bytes(offset), Bytes(length));
        self.devices.submit(device, self.now_ns, Command { tag, op, offset, length, tenant });
    }

    /// Puts the time that a step's request has waited without a reason of its own under `wait`.
    fn account(&mut self, step: StepId, wait: Wait) {
        let (request, latency) = self.steps.latency_mut(step);
        if let Some(request) = request {
            let gone_ns = self.now_ns - self.requests.arrival_ns(request);
            latency.wait(wait, gone_ns - latency.total_ns());
        }
    }

    /// A step is done: what waits for it may begin.
    fn end(&mut self, id: StepId) {
        let Some(finished) = self.steps.finish(id) else { return };
        let step = finished.action;
        for resident in step.pins {
            self.mover.end_step(&mut self.steps, &self.residents, resident, finished.serial);
            let granted = self.residents.unpin(resident);
            self.mover.slots_granted(&mut self.steps, &self.residents, granted);
        }
        if let Action::Device { device, op: Op::Write, offset, length } = step.action {
            self.backings.end_write(&self.steps, device, offset, length);
        }
        if step.cleaning {
            self.write_backs.end_clean();
        }
        if let Some(request) = finished.request.filter(|_| step.required) {
            self.requests.end_step(request, &finished.latency, self.now_ns);
        }
    }
}
