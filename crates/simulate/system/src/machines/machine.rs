//! A machine: a cache device, backing devices, and the steps under way on them.
//!
//! For: carrying out the steps of plans in simulated time. Must never know: policies, workloads,
//! stack files. Units: nanoseconds, bytes, blocks. A step begins as soon as everything it waits for
//! is done; devices queue for themselves. Invariants: every request is answered once; time never
//! goes back.

mod delays;
mod devices;
pub mod free_slots;
pub mod ids;
mod move_queue;
pub mod mover;
mod placement_steps;
mod places;
mod request_trail;
mod slot_class;
mod slot_placement;
pub mod slots;

pub use cachewright_steps::DirtyBlock;
pub use request_trail::TimedAnswer;

use super::channels::GroupUse;
use super::latency_breakdown::{Role, Wait};
use super::settings::MachineSettings;
use cachewright_cache::Plan;
use cachewright_device::{AnyDevice, Command, DeviceUse};
use cachewright_partition::layout::ChannelMap;
use cachewright_steps::{Outcome, Ready, Rules, Steps};
use cachewright_types::{Bytes, Op, Request, TenantId};
use delays::Delays;
use devices::MachineDevices;
use ids::{DeviceId, ResidentId, StepId};
use mover::Migrated;
use placement_steps::{MachineAction, PlacementAction};
use request_trail::RequestTrail;
use slot_placement::{SlotPlacement, perform};
use slots::{RegionBlocks, Slots};
use std::collections::VecDeque;

/// A machine.
pub struct Machine {
    settings: MachineSettings,
    block_shift: u32,
    now_ns: u64,
    devices: MachineDevices,
    steps: Steps<SlotPlacement, RequestTrail>,
    delays: Delays,
    answers: Vec<TimedAnswer>,
}

/// What a machine is made of.
pub struct MachineParts {
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

impl Machine {
    /// An idle machine. Errors: the bytes of cache device needed, when it has fewer.
    pub fn new(parts: MachineParts) -> Result<Machine, Bytes> {
        let MachineParts { settings, block_shift, slots, devices, backing_of } = parts;
        assert!(block_shift < u64::BITS, "a block has at most 2^63 bytes");
        let known = backing_of.iter().all(|device| *device < devices.len());
        assert!(known, "every tenant's backing device is one of the machine");
        let needed = Bytes(u64::from(slots.end().0) << block_shift);
        let devices = MachineDevices::new(devices);
        if devices.cache_capacity().is_none_or(|capacity| capacity < needed) {
            return Err(needed);
        }
        let decision = (settings.decision_time.0 > 0).then_some(settings.decision);
        let (fill, fills_late) = (settings.fill, true);
        let rules = Rules { fill, decision, fills_late, block_shift };
        let placement = SlotPlacement::new(slots, settings.swap_depth, block_shift);
        Ok(Machine {
            steps: Steps::new(placement, &backing_of, rules),
            delays: Delays::default(),
            answers: Vec::new(),
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
    /// [`Machine::drain_answers`].
    pub fn advance(&mut self, now_ns: u64) {
        debug_assert!(self.now_ns <= now_ns, "time never goes back");
        self.now_ns = now_ns;
        for device in self.devices.ids() {
            if !self.devices.is_due(device, now_ns) {
                continue;
            }
            let done = self.devices.advance(device, now_ns);
            let role = if device == DeviceId::CACHE { Role::Cache } else { Role::Backing };
            for completion in &done {
                let step = StepId(completion.tag as u32);
                if let Some(trail) = self.steps.note_mut(step) {
                    trail.spend(role, &completion.spent, now_ns);
                }
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

    /// Moves time to `now_ns`, before which nothing is due: requests that follow arrive then.
    pub fn wait_until(&mut self, now_ns: u64) {
        debug_assert!(self.next_due_ns().is_none_or(|due_ns| due_ns >= now_ns), "nothing is due");
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Begins what a plan decides about a request that arrives now.
    pub fn request(&mut self, tag: u64, request: &Request, plan: &Plan, now_ns: u64) {
        self.now_ns = now_ns;
        self.steps.request(tag, request, plan, RequestTrail::new(now_ns));
        self.run();
    }

    /// Begins a plan that no request waits for: a tenant's read-ahead, changed quotas.
    pub fn background(&mut self, tenant: TenantId, plan: &Plan) {
        self.steps.background(tenant, plan);
        self.run();
    }

    /// The answers since the last call, in the order in which they were given.
    pub fn drain_answers(&mut self) -> impl Iterator<Item = TimedAnswer> + use<'_> {
        self.answers.drain(..)
    }

    /// Blocks that the last request hit while they were still being read.
    pub fn in_flight_blocks(&self) -> u64 {
        self.steps.in_flight_blocks()
    }

    /// Notes the blocks of the cache that a plan writes.
    pub fn note_served(&self, plan: &Plan, dirty: &mut VecDeque<DirtyBlock>) {
        self.steps.note_served(plan, dirty);
    }

    /// Whether a block is still in the cache since it was noted.
    pub fn stays(&self, block: &DirtyBlock) -> bool {
        self.steps.stays(block)
    }

    /// Begins to write back a block that stays.
    pub fn clean(&mut self, block: &DirtyBlock) {
        self.steps.clean(block);
        self.run();
    }

    /// Write-backs under way of blocks that stay.
    pub fn cleaning(&self) -> u32 {
        self.steps.cleaning()
    }

    /// The tenants' quotas have changed.
    pub fn set_quotas(&mut self, quotas: &[u32]) {
        let granted = self.steps.state_mut().placement.places_mut().set_quotas(quotas);
        self.steps.state_mut().on_granted(&granted);
        self.run();
    }

    /// The channels of the cache device are laid out anew: blocks lie where `map` assigns them, and
    /// those that lie elsewhere move as slots are free. Without a layout nothing changes. Quotas
    /// are set as ever, by [`Machine::set_quotas`].
    pub fn apply_layout(&mut self, map: &ChannelMap) {
        let granted = self.steps.state_mut().placement.places_mut().apply_layout(map);
        let state = self.steps.state_mut();
        state.on_granted(&granted);
        state.placement.note_all_misplaced(&state.residents);
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
        let state = self.steps.state();
        let places = state.placement.places();
        (0..state.backings.tenants()).map(|tenant| places.region_blocks(tenant)).collect()
    }

    /// What changed places, by tenant.
    pub fn migrated(&self) -> &[Migrated] {
        self.steps.state().placement.mover().migrated()
    }

    /// Checks what must hold between calls; `held` is the number of blocks the cache holds, `idle`
    /// reports that everything should be done. Errors: the rule broken, in words.
    pub fn audit(&self, held: u64, idle: bool) -> Result<(), String> {
        self.devices.audit()?;
        let placement = &self.steps.state().placement;
        placement.audit()?;
        let changes = placement.mover().open();
        if idle && changes > 0 {
            return Err(format!("{changes} changes of places are left"));
        }
        self.steps.audit(held, idle)
    }

    /// Begins all steps that may, and takes the answers that are given by now.
    fn run(&mut self) {
        loop {
            while let Some(ready) = self.steps.next_step() {
                self.begin(&ready);
            }
            let state = self.steps.state_mut();
            if !state.placement.begin_changes(&mut state.graph, &mut state.residents) {
                break;
            }
        }
        let now_ns = self.now_ns;
        let answers = self.steps.drain_answers();
        self.answers.extend(answers.map(|answer| TimedAnswer::new(&answer, now_ns)));
    }

    fn begin(&mut self, ready: &Ready<PlacementAction>) {
        let (id, tenant) = (ready.id, ready.tenant);
        let waits_for_slot = matches!(ready.action, MachineAction::WaitForSlot);
        self.account(id, if waits_for_slot { Wait::Slot } else { Wait::Block });
        match ready.action {
            // A wait for a slot is released when its resident has one.
            MachineAction::Pass | MachineAction::WaitForSlot => self.end(id),
            MachineAction::Decide => {
                self.delays.begin(id, self.now_ns + self.settings.decision_time.0)
            }
            MachineAction::Placement(action) => {
                perform(self.steps.state_mut(), action);
                self.end(id);
            }
            MachineAction::Cache { op, resident, skip, length } => {
                let offset = self.byte_of(resident) + skip;
                self.submit(DeviceId::CACHE, id, op, offset, length, tenant);
            }
            MachineAction::Fill { resident, length } => {
                let offset = self.byte_of(resident);
                self.submit(DeviceId::CACHE, id, Op::Write, offset, length, tenant);
            }
            MachineAction::Device { device, op, offset, length } => {
                self.submit(device, id, op, offset, length, tenant);
            }
        }
    }

    /// The first byte of a resident's slot.
    fn byte_of(&self, resident: ResidentId) -> u64 {
        let slot = self.steps.state().placement.places().get(resident).slot();
        debug_assert!(slot.is_some(), "a command to the cache device has a slot");
        slot.map_or(0, |slot| u64::from(slot.0)) << self.block_shift
    }

    fn submit(
        &mut self,
        device: DeviceId,
        step: StepId,
        op: Op,
        offset: u64,
        length: u64,
        tenant: TenantId,
    ) {
        let (tag, offset, length) = (u64::from(step.0), Bytes(offset), Bytes(length));
        self.devices.submit(device, self.now_ns, Command { tag, op, offset, length, tenant });
    }

    /// Puts the time that a step's request has waited without a reason of its own under `wait`.
    fn account(&mut self, step: StepId, wait: Wait) {
        let now_ns = self.now_ns;
        if let Some(trail) = self.steps.note_mut(step) {
            trail.account(wait, now_ns);
        }
    }

    /// A step is done: what waits for it may begin.
    fn end(&mut self, id: StepId) {
        self.steps.finish(id, Outcome::Done);
    }
}
