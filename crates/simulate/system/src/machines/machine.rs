//! A machine: a cache device, backing devices, and the steps under way on them.
//!
//! It carries out the steps of plans in simulated time. A step begins as soon as everything it
//! waits for is done; devices queue for themselves. Invariants: every request is answered once;
//! time never goes back.

use super::latency::{RequestTrail, Role, TimedAnswer, Wait};
use super::mover::{MachineAction, Migrated, PlacementAction, SlotPlacement, perform};
use super::requests::Layout;
use super::slots::{RegionBlocks, Slots};
use cachewright_cache::Plan;
use cachewright_device::{AnyDevice, Command, Completion, DeviceUse, Exposed, Use};
use cachewright_partition::layout::ChannelMap;
use cachewright_steps::{
    Decision, DeviceId, DirtyBlock, Fill, Outcome, Ready, ResidentId, Rules, StepId, Steps,
};
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId, choices, declare};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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
        let rules = Rules { fill: settings.fill, decision, block_shift };
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

/// The devices of a machine.
struct MachineDevices {
    devices: Vec<AnyDevice>,
    /// When each is due; `u64::MAX` for an idle one.
    due_ns: Vec<u64>,
    uses: Vec<Use>,
    /// By the channels of the cache device.
    groups: GroupUses,
    /// Kept for its memory.
    done: Vec<Completion>,
}

impl MachineDevices {
    fn new(devices: Vec<AnyDevice>) -> MachineDevices {
        let count = devices.len();
        let groups = devices.first().map_or(Vec::new(), |cache| cache.exposed());
        let (due_ns, uses) = (vec![u64::MAX; count], vec![Use::default(); count]);
        MachineDevices { devices, due_ns, uses, groups: GroupUses::new(groups), done: Vec::new() }
    }

    /// All devices, the cache device first.
    fn ids(&self) -> impl Iterator<Item = DeviceId> + use<> {
        (0..self.devices.len()).map(DeviceId::new)
    }

    /// Bytes of the cache device, if there is one.
    fn cache_capacity(&self) -> Option<Bytes> {
        self.devices.first().map(|cache| cache.capacity())
    }

    /// When the next device is due.
    fn next_due_ns(&self) -> Option<u64> {
        self.due_ns.iter().copied().min().filter(|due| *due < u64::MAX)
    }

    fn submit(&mut self, id: DeviceId, now_ns: u64, command: Command) {
        let Command { op, offset, length, .. } = command;
        let device = &mut self.devices[id.index()];
        device.submit(Nanos(now_ns), command);
        self.due_ns[id.index()] = due_ns(device);
        self.uses[id.index()].submitted(Nanos(now_ns), op, length);
        if id == DeviceId::CACHE {
            self.groups.submitted(op, offset.0, length.0);
        }
    }

    /// Whether a device is due at `now_ns`.
    #[inline]
    fn is_due(&self, id: DeviceId, now_ns: u64) -> bool {
        self.due_ns[id.index()] <= now_ns
    }

    /// Lets a device that is due work up to `now_ns`; returns what is done, to be handed back with
    /// [`MachineDevices::keep`].
    fn advance(&mut self, id: DeviceId, now_ns: u64) -> Vec<Completion> {
        debug_assert!(self.is_due(id, now_ns), "only a device that is due has work to do");
        let mut done = std::mem::take(&mut self.done);
        done.clear();
        let index = id.index();
        let device = &mut self.devices[index];
        device.advance(Nanos(now_ns), &mut done);
        self.due_ns[index] = due_ns(device);
        let used = &mut self.uses[index];
        done.iter().for_each(|_| used.completed(Nanos(now_ns)));
        done
    }

    /// Keeps the memory of completions that have been dealt with.
    fn keep(&mut self, done: Vec<Completion>) {
        self.done = done;
    }

    /// How each device was used until now.
    fn uses(&self, now_ns: u64) -> Vec<DeviceUse> {
        let pairs = self.devices.iter().zip(&self.uses);
        pairs.map(|(device, used)| DeviceUse::new(used, device.report(Nanos(now_ns)))).collect()
    }

    /// What was sent to each group of channels that the cache device shows.
    fn groups(&self) -> &[GroupUse] {
        self.groups.all()
    }

    /// Checks every device, and that its commands are counted. Errors: the rule broken, in words.
    fn audit(&self) -> Result<(), String> {
        for (number, (device, used)) in self.devices.iter().zip(&self.uses).enumerate() {
            device.audit().map_err(|error| format!("device {number}: {error}"))?;
            let (inside, known) = (device.outstanding() as u64, used.population.inside());
            if inside != known {
                return Err(format!("device {number}: {inside} inside, {known} counted"));
            }
        }
        Ok(())
    }
}

fn due_ns(device: &AnyDevice) -> u64 {
    device.next_due().map_or(u64::MAX, |due| due.0)
}

/// Commands and bytes of one group of channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupUse {
    /// What the drive shows.
    pub range: Exposed,
    /// Commands by kind, indexed by [`Op`].
    pub commands: [u64; 4],
    /// Bytes by kind, indexed by [`Op`].
    pub bytes: [u64; 4],
}

/// All groups of a drive, in the order of addresses.
#[derive(Clone, Debug, Default)]
pub struct GroupUses(Vec<GroupUse>);

impl GroupUses {
    /// Nothing sent yet.
    pub fn new(exposed: Vec<Exposed>) -> GroupUses {
        let fresh = |range| GroupUse { range, commands: [0; 4], bytes: [0; 4] };
        GroupUses(exposed.into_iter().map(fresh).collect())
    }

    /// A command is sent.
    pub fn submitted(&mut self, op: Op, offset: u64, length: u64) {
        let index = self.0.partition_point(|group| group.range.bytes.end <= offset);
        if let Some(group) = self.0.get_mut(index) {
            group.commands[op as usize] += 1;
            group.bytes[op as usize] += length;
        }
    }

    /// What was sent.
    pub fn all(&self) -> &[GroupUse] {
        &self.0
    }
}

#[derive(Clone, Debug, Default)]
struct Delays {
    /// When each ends, its order among all, the step.
    heap: BinaryHeap<Reverse<(u64, u64, StepId)>>,
    begun: u64,
}

impl Delays {
    /// A step waits until `end_ns`.
    fn begin(&mut self, step: StepId, end_ns: u64) {
        self.heap.push(Reverse((end_ns, self.begun, step)));
        self.begun += 1;
    }

    /// When the next one ends.
    fn next_end_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(delay)| delay.0)
    }

    /// The next step that ends at or before `now_ns`.
    fn take_ended(&mut self, now_ns: u64) -> Option<StepId> {
        if self.next_end_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, step))| step)
    }
}

choices! {
    /// When dirty blocks are written back.
    pub enum WriteBack {
        /// When they leave the cache.
        OnEviction = "on-eviction",
        /// As soon as they are dirty, while they stay.
        Eager = "eager",
        /// Oldest first, from `dirty_high` down to `dirty_low`, while they stay.
        Watermark = "watermark",
    }
}

choices! {
    /// What an access is to a block whose read from the backing device is still under way.
    pub enum InFlight {
        /// A hit: the block is not read again.
        Hit = "hit",
        /// A miss: the request waits for the backing device.
        Miss = "miss",
    }
}

choices! {
    /// What is read before it is asked for.
    pub enum ReadAhead {
        /// Nothing.
        None = "none",
        /// A window behind sequential reads that doubles with each of them.
        Linux = "linux",
    }
}

declare! {
    /// How a machine carries out plans.
    pub struct MachineSettings {
        "machine" {
            /// how volumes are put on backing devices
            layout: Layout = Layout::Auto, "name"; "made for replay on other devices";
            /// when a read miss is answered
            fill: Fill = Fill::AfterAnswer, "name";
                "Open CAS and dm-cache answer from the data read";
            /// blocks beside the capacity for what is written back; none free: new blocks wait
            spare_blocks: u32 = 64, "blocks", 0 ..= 16_777_216; "back-pressure limit";
            /// when dirty blocks are written back
            write_back: WriteBack = WriteBack::OnEviction, "name"; "the cache engine";
            /// share of the cache that may be dirty before the watermark acts
            dirty_high: f64 = 0.2, "ratio", 0.0 ..= 1.0; "Linux: vm.dirty_ratio";
            /// share of the cache that may be dirty when it has acted
            dirty_low: f64 = 0.1, "ratio", 0.0 ..= 1.0; "Linux: vm.dirty_background_ratio";
            /// blocks written back at once while they stay
            clean_depth: u32 = 8, "blocks", 1 ..= 65_536; "background pace";
            /// blocks or pairs of blocks that change places on the cache device at once
            swap_depth: u32 = 4, "changes", 1 ..= 65_536; "background pace";
            /// time the cache takes to decide about a request
            decision_time: Nanos = Nanos(0), "time", 0 ..= 1e12;
                "rc-rnn: 300 us per inference";
            /// what waits for the decision
            decision: Decision = Decision::BeforeRequest, "name"; "rc-rnn, both reported";
            /// what is read before it is asked for
            read_ahead: ReadAhead = ReadAhead::None, "name"; "soft-qos: Linux's";
            /// what a read of a block on its way from the backing device counts as
            in_flight: InFlight = InFlight::Hit, "name";
                "the cache engine; soft-qos: a miss";
            /// first window of read-ahead
            read_ahead_min: Bytes = Bytes(16_384), "bytes", 512 ..= 1_073_741_824;
                "Linux 2.6: four pages";
            /// largest window of read-ahead
            read_ahead_max: Bytes = Bytes(131_072), "bytes", 512 ..= 1_073_741_824;
                "Linux: VM_MAX_READAHEAD";
            /// sequential streams told apart per tenant
            read_ahead_streams: u32 = 4, "streams", 1 ..= 1024;
                "Linux keeps one per open file; a block trace names none";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_device::served::{FixedLatency, FixedSettings};

    fn read(tag: u64) -> Command {
        let (offset, length) = (Bytes(0), Bytes(4096));
        Command { tag, op: Op::Read, offset, length, tenant: TenantId(0) }
    }

    #[test]
    fn devices_are_due_each_at_its_time_and_count_what_they_did() {
        let device = |read_ns| {
            let settings = FixedSettings { read: Nanos(read_ns), ..FixedSettings::default() };
            Box::new(FixedLatency::new(&settings).unwrap()) as AnyDevice
        };
        let mut devices = MachineDevices::new(vec![device(30), device(10)]);
        let [cache, backing] = [DeviceId::CACHE, DeviceId(1)];
        assert_eq!(devices.ids().collect::<Vec<_>>(), [cache, backing]);
        assert_eq!(devices.next_due_ns(), None);
        devices.submit(cache, 5, read(1));
        devices.submit(backing, 5, read(2));
        assert_eq!(devices.next_due_ns(), Some(15));
        assert!(!devices.is_due(cache, 15) && devices.is_due(backing, 15));
        let done = devices.advance(backing, 15);
        assert_eq!((done.len(), done[0].tag, devices.next_due_ns()), (1, 2, Some(35)));
        assert_eq!(devices.audit(), Ok(()));
        devices.keep(done);
        let done = devices.advance(cache, 35);
        assert_eq!((done[0].tag, devices.next_due_ns()), (1, None));
        assert_eq!(devices.audit(), Ok(()));
    }

    #[test]
    fn steps_end_by_time_and_then_in_the_order_in_which_they_began() {
        let mut delays = Delays::default();
        for (step, end_ns) in [(5, 30), (4, 10), (3, 30), (2, 20)] {
            delays.begin(StepId(step), end_ns);
        }
        assert_eq!((delays.next_end_ns(), delays.take_ended(9)), (Some(10), None));
        let ended: Vec<u32> =
            std::iter::from_fn(|| delays.take_ended(30)).map(|step| step.0).collect();
        assert_eq!(ended, [4, 2, 5, 3]);
        assert_eq!(delays.next_end_ns(), None);
    }
}
