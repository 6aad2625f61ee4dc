//! A machine: a cache device, backing devices, and the steps under way on them.
//!
//! For: carrying out plans in simulated time. Must never know: policies, workloads, stack files.
//! Units: nanoseconds, bytes, blocks. Steps begin as soon as all they wait for is done; devices
//! queue for themselves. Invariants: every request is answered once; time never goes back; a slot
//! holds one block.

use super::channels::{GroupUse, GroupUses};
use super::emit::{Item, numbers};
use super::graph::{Graph, StepRef};
use super::migrate::Migrations;
use super::path::{Path, Role, Wait};
use super::residences::Residences;
use super::settings::MachineSettings;
use super::slots::{InRooms, Slots};
use super::write_back::Outgoing;
use cachewright_device::{AnyDevice, Command, Completion, DeviceUse, Use};
use cachewright_layout::ChannelMap;
use cachewright_types::{Bytes, Nanos, Op, TenantId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The number of the cache device.
pub const CACHE: usize = 0;

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Nothing: it ends when what it waits for has ended.
    Pass,
    /// Waits until a residence has a slot.
    Room,
    /// Lets time pass.
    Delay(u64),
    /// A command to the cache device, from a byte of the first residence's slot on.
    Cache { op: Op, residence: u32, skip: u64, length: u64 },
    /// Blocks change slots: the change of that number.
    Exchange(u32),
    /// They are in their new places.
    EndChange(u32),
    /// A command to a device.
    Device { device: usize, op: Op, offset: u64, length: u64 },
}

/// A step: what it does and what must be known when it ends.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// What it does.
    pub action: Action,
    /// Whose command it is.
    pub tenant: TenantId,
    /// The request is not answered before it ends.
    pub required: bool,
    /// It writes back a block that stays.
    pub cleaning: bool,
    /// The residences it touches.
    pub pins: Vec<u32>,
    /// Steps there were before it.
    pub born: u64,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    tag: u64,
    arrival_ns: u64,
    tenant: TenantId,
    /// Required steps not done, and one more until all are known.
    left: u32,
    path: Path,
}

/// A request answered.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// As submitted.
    pub tag: u64,
    /// Whose it was.
    pub tenant: TenantId,
    /// When it was submitted.
    pub arrival_ns: u64,
    /// When it was answered.
    pub finish_ns: u64,
    /// Where the time between went.
    pub path: Path,
}

/// A machine.
pub struct Machine {
    pub(super) settings: MachineSettings,
    pub(super) block_shift: u32,
    devices: Vec<AnyDevice>,
    due_ns: Vec<u64>,
    uses: Vec<Use>,
    /// By the channels of the cache device.
    groups: GroupUses,
    /// The number of each tenant's backing device.
    pub(super) backing_of: Vec<usize>,
    pub(super) graph: Graph<Work>,
    pub(super) residences: Residences,
    /// The last write under way to each block of a backing device.
    pub(super) writing: HashMap<u64, StepRef, FixedState>,
    open: Vec<Open>,
    free_open: Vec<u32>,
    /// Delays that end: when, in which order they began, the step.
    delays: BinaryHeap<Reverse<(u64, u64, u32)>>,
    delay_count: u64,
    ready: VecDeque<u32>,
    made_ready: Vec<u32>,
    completions: Vec<Completion>,
    pub(super) cleaning: u32,
    /// Steps there ever were.
    pub(super) steps: u64,
    pub(super) migrations: Migrations,
    /// Dirty blocks that leave with the plan at hand.
    pub(super) outgoing: Vec<Outgoing>,
    /// Plans carried out.
    pub(super) plans: u64,
    /// Blocks that the last request hit while they were still being read.
    pub(super) in_flight: u64,
    /// Kept for their memory.
    pub(super) buffers: (Vec<Item>, Vec<Item>),
    now_ns: u64,
    answers: Vec<Answer>,
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

impl Machine {
    /// An idle machine. Errors: the bytes of cache device needed, when it has fewer.
    pub fn new(parts: Parts) -> Result<Machine, Bytes> {
        let needed = Bytes(u64::from(parts.slots.end()) << parts.block_shift);
        if parts.devices.first().is_none_or(|cache| cache.capacity() < needed) {
            return Err(needed);
        }
        let count = parts.devices.len();
        let groups = parts.devices.first().map_or(Vec::new(), |cache| cache.exposed());
        Ok(Machine {
            settings: parts.settings,
            block_shift: parts.block_shift,
            devices: parts.devices,
            due_ns: vec![u64::MAX; count],
            uses: vec![Use::default(); count],
            groups: GroupUses::new(groups),
            backing_of: parts.backing_of,
            graph: Graph::default(),
            residences: Residences::new(parts.slots),
            writing: HashMap::default(),
            open: Vec::new(),
            free_open: Vec::new(),
            delays: BinaryHeap::new(),
            delay_count: 0,
            ready: VecDeque::new(),
            made_ready: Vec::new(),
            completions: Vec::new(),
            cleaning: 0,
            steps: 0,
            migrations: Migrations::default(),
            outgoing: Vec::new(),
            plans: 0,
            in_flight: 0,
            buffers: Default::default(),
            now_ns: 0,
            answers: Vec::new(),
        })
    }

    /// When something next happens; nothing when all is done.
    pub fn next_due_ns(&self) -> Option<u64> {
        let devices = self.due_ns.iter().copied().min().filter(|due| *due < u64::MAX);
        let delay = self.delays.peek().map(|Reverse(delay)| delay.0);
        devices.into_iter().chain(delay).min()
    }

    /// Lets everything due at `now_ns` happen, which is the next due time; answers are taken with
    /// [`Machine::take_answers`].
    pub fn advance(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        let mut completions = std::mem::take(&mut self.completions);
        for device in 0..self.devices.len() {
            if self.due_ns[device] > now_ns {
                continue;
            }
            completions.clear();
            self.devices[device].advance(Nanos(now_ns), &mut completions);
            self.ask_due(device);
            let role = if device == CACHE { Role::Cache } else { Role::Backing };
            for done in &completions {
                self.uses[device].completed(Nanos(now_ns));
                self.graph.path_mut(done.tag as u32).1.spend(role, &done.spent);
                self.end(done.tag as u32);
            }
        }
        self.completions = completions;
        while self.delays.peek().is_some_and(|Reverse(delay)| delay.0 <= now_ns)
            && let Some(Reverse((_, _, step))) = self.delays.pop()
        {
            self.end(step);
        }
        self.run();
    }

    /// Moves time to `now_ns`, before which nothing is due: what is asked for next is asked then.
    pub fn wait_until(&mut self, now_ns: u64) {
        debug_assert!(self.next_due_ns().is_none_or(|due_ns| due_ns >= now_ns), "nothing is due");
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// The answers since the last call, in the order in which they were given.
    pub fn take_answers(&mut self, answers: &mut Vec<Answer>) {
        answers.clear();
        answers.append(&mut self.answers);
    }

    /// How each device was used.
    pub fn uses(&self) -> Vec<DeviceUse> {
        let now = Nanos(self.now_ns);
        let pairs = self.devices.iter().zip(&self.uses);
        pairs.map(|(device, used)| DeviceUse::new(used, device.report(now))).collect()
    }

    /// What was sent to each group of channels that the cache device shows.
    pub fn groups(&self) -> &[GroupUse] {
        self.groups.all()
    }

    /// The blocks of each tenant by where they lie; nothing where channels are not laid out.
    pub fn rooms(&self) -> Option<Vec<InRooms>> {
        (0..self.backing_of.len()).map(|tenant| self.residences.by_room(tenant)).collect()
    }

    /// Time now.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Checks what must hold between calls; `held` is the number of blocks the cache holds, `idle`
    /// says that everything should be done. Errors: the rule broken, in words.
    pub fn audit(&self, held: u64, idle: bool) -> Result<(), String> {
        for (number, device) in self.devices.iter().enumerate() {
            device.audit().map_err(|error| format!("device {number}: {error}"))?;
            let (inside, known) =
                (device.outstanding() as u64, self.uses[number].population.inside());
            if inside != known {
                return Err(format!("device {number}: {inside} inside, {known} counted"));
            }
        }
        self.residences.audit(held)?;
        let (open, changes) = (self.open.len() - self.free_open.len(), self.migrations.open());
        if idle && changes > 0 {
            return Err(format!("{changes} changes of places are left"));
        }
        if idle && (open > 0 || self.graph.open() > 0 || !self.writing.is_empty()) {
            let (steps, writes) = (self.graph.open(), self.writing.len());
            return Err(format!("{open} requests, {steps} steps, {writes} writes are left"));
        }
        Ok(())
    }

    /// A request arrives.
    pub(super) fn open(&mut self, tag: u64, tenant: TenantId, now_ns: u64) -> u32 {
        self.now_ns = now_ns;
        let open = Open { tag, arrival_ns: now_ns, tenant, left: 1, path: Path::default() };
        match self.free_open.pop() {
            Some(number) => {
                self.open[number as usize] = open;
                number
            }
            None => {
                self.open.push(open);
                self.open.len() as u32 - 1
            }
        }
    }

    /// All steps of a request are known.
    pub(super) fn opened(&mut self, request: u32) {
        self.settle_request(request);
        self.run();
    }

    fn settle_request(&mut self, request: u32) {
        let open = &mut self.open[request as usize];
        open.left -= 1;
        if open.left > 0 {
            return;
        }
        let Open { tag, arrival_ns, tenant, path, .. } = *open;
        debug_assert_eq!(path.total_ns(), self.now_ns - arrival_ns, "every nanosecond has a part");
        self.answers.push(Answer { tag, tenant, arrival_ns, finish_ns: self.now_ns, path });
        self.free_open.push(request);
    }

    /// A new step, which touches the residences in `work.pins`.
    pub(super) fn step(&mut self, mut work: Work, request: Option<u32>) -> StepRef {
        work.born = self.steps;
        self.steps += 1;
        if let Some(request) = request.filter(|_| work.required) {
            self.open[request as usize].left += 1;
        }
        for residence in &work.pins {
            self.residences.pin(*residence);
        }
        self.graph.add(work, request)
    }

    /// Lets a step begin when it may.
    pub(super) fn release(&mut self, step: StepRef) {
        if self.graph.release(step) {
            self.ready.push_back(step.index());
        }
    }

    /// Begins all steps that may.
    pub(super) fn run(&mut self) {
        loop {
            while let Some(step) = self.ready.pop_front() {
                self.begin(step);
            }
            if !self.migrate() {
                return;
            }
        }
    }

    fn begin(&mut self, step: u32) {
        let Some(work) = self.graph.action(step) else { return };
        let (action, tenant) = (work.action, work.tenant);
        self.account(step, if matches!(action, Action::Room) { Wait::Room } else { Wait::Block });
        match action {
            // Room is begun when its residence has a slot, which `give_slots` sees to.
            Action::Pass | Action::Room => self.end(step),
            Action::Exchange(change) => {
                self.exchange(change);
                self.end(step);
            }
            Action::EndChange(change) => {
                self.end_change(change);
                self.end(step);
            }
            Action::Delay(time_ns) => {
                self.delays.push(Reverse((self.now_ns + time_ns, self.delay_count, step)));
                self.delay_count += 1;
            }
            Action::Cache { op, residence, skip, length } => {
                let slot = u64::from(self.residences.get(residence).slot);
                let offset = (slot << self.block_shift) + skip;
                self.submit(CACHE, step, op, offset, length, tenant);
            }
            Action::Device { device, op, offset, length } => {
                self.submit(device, step, op, offset, length, tenant);
            }
        }
    }

    /// Puts the time that a step's request has waited without a reason of its own under `wait`.
    fn account(&mut self, step: u32, wait: Wait) {
        let now_ns = self.now_ns;
        let (request, path) = self.graph.path_mut(step);
        if let Some(request) = request {
            let gone_ns = now_ns - self.open[request as usize].arrival_ns;
            path.wait(wait, gone_ns - path.total_ns());
        }
    }

    fn submit(
        &mut self,
        device: usize,
        step: u32,
        op: Op,
        offset: u64,
        length: u64,
        tenant: TenantId,
    ) {
        let tag = u64::from(step);
        let command = Command { tag, op, offset: Bytes(offset), length: Bytes(length), tenant };
        self.devices[device].submit(Nanos(self.now_ns), command);
        self.ask_due(device);
        self.uses[device].submitted(Nanos(self.now_ns), op, Bytes(length));
        if device == CACHE {
            self.groups.submitted(op, offset, length);
        }
    }

    fn ask_due(&mut self, device: usize) {
        self.due_ns[device] = self.devices[device].next_due().map_or(u64::MAX, |due| due.0);
    }

    /// A step is done: what waits for it may begin.
    fn end(&mut self, step: u32) {
        if let Some(Action::Delay(_)) = self.graph.action(step).map(|work| &work.action) {
            self.account(step, Wait::Decision);
        }
        let mut ready = std::mem::take(&mut self.made_ready);
        if let Some(finished) = self.graph.finish(step, &mut ready) {
            let work = finished.action;
            self.ready.extend(ready.drain(..));
            for residence in &work.pins {
                self.untouch(*residence, work.born);
                let next = self.residences.unpin(*residence);
                self.give_slots(next);
            }
            if let Action::Device { device, op: Op::Write, offset, length } = work.action {
                self.written(device, offset, length);
            }
            self.cleaning -= u32::from(work.cleaning);
            if let Some(request) = finished.request.filter(|_| work.required) {
                self.open[request as usize].path = finished.path;
                self.settle_request(request);
            }
        }
        self.made_ready = ready;
    }

    /// Residences that waited have slots now.
    pub(super) fn give_slots(&mut self, residences: Vec<u32>) {
        for residence in residences {
            let room = self.residences.get(residence).room;
            if !self.graph.is_done(room) {
                self.release(room);
            }
            self.note_astray(residence);
        }
    }

    /// The tenants' quotas have changed.
    pub fn allow(&mut self, quotas: &[u32]) {
        let next = self.residences.allow(quotas);
        self.give_slots(next);
        self.run();
    }

    /// The channels of the cache device are laid out anew: what the cache takes in from now on lies
    /// where `map` says, and blocks that lie elsewhere move there as slots are free. Without a
    /// layout nothing changes. The tenants' quotas are told as ever, by [`Machine::allow`].
    pub fn relay(&mut self, map: &ChannelMap) {
        let next = self.residences.relay(map);
        self.give_slots(next);
        self.note_all_astray();
        self.run();
    }

    /// The name of a block of a backing device among the writes under way.
    pub(super) fn write_key(device: usize, number: u64) -> u64 {
        number << 12 | device as u64
    }

    /// Forgets writes that are done.
    fn written(&mut self, device: usize, offset: u64, length: u64) {
        for number in numbers(offset, length, self.block_shift) {
            let key = Machine::write_key(device, number);
            if self.writing.get(&key).is_some_and(|step| self.graph.is_done(*step)) {
                self.writing.remove(&key);
            }
        }
    }
}
