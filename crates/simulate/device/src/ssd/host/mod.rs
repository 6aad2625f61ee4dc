//! The host interface: commands in, requests for the drive's inside out, completions back.
//!
//! Source: NVMe as MQSim models it (Tavakkol et al., FAST'18, 4.2): doorbell, fetch of the entry,
//! fetch of a write's data, data of a read. The completion entry and the doorbell of the completion
//! queue follow. SATA has the frames of native command queuing. Differences: the host counts
//! commands under way per tenant instead of free entries of two rings. The entry of the completion
//! queue is always free in time.
//!
//! Invariants (audited): a tenant has at most its queue depth under way, the drive works on at most
//! `command_slots`, every command is in one place; a slot is free or holds one command; the parts
//! of a command's time add up. Slots are used again, so nothing is allocated per command.
//!
//! Between its doorbell and its arrival in the drive a command takes three messages, five with
//! data. Each is known in advance as long as nothing else uses link or queues; such a command is
//! one event ([`Express`]). Any other event at the interface first makes the messages under way
//! real ([`Express::give_way`]), so that no time and no order differs.
//!
//! Units: bytes, nanoseconds.

mod protocol;
mod queues;

use super::link::{NEVER_NS, Wire};
use super::params::{Interface, SsdParams};
use crate::{Command, Completion, Spent, SpentPart};
use cachewright_types::{Nanos, Op};
pub use protocol::Protocol;
use protocol::{DOWN, HostArrival, Message, UP};
pub use queues::Arbiter;
use queues::{Next, Queues};

/// The host interface of one drive.
#[derive(Clone, Debug)]
pub struct Host {
    protocol: Protocol,
    wires: [Wire<Message>; 2],
    /// The controller, which works on one command at a time.
    controller: Wire<Message>,
    command_ns: u64,
    express: Express,
    /// Up to when everything has happened.
    seen_ns: u64,
    queues: Queues,
    pending: PendingCommands,
}

impl Host {
    /// An idle interface for one port per tenant; a tenant beyond them gets one of the drive's
    /// queue depth and weight 1.
    pub fn new(params: &SsdParams, ports: &[Port]) -> Host {
        Host {
            protocol: Protocol::new(params),
            wires: [Wire::default(), Wire::default()],
            controller: Wire::default(),
            command_ns: params.command_time.0,
            express: Express::default(),
            seen_ns: 0,
            queues: Queues::new(params, ports),
            pending: PendingCommands::default(),
        }
    }

    /// Accepts a command.
    #[inline]
    pub fn submit(&mut self, now: Nanos, command: Command) {
        // What was due before has happened even if no call observed it; what is due now only if one
        // did.
        self.follow(self.seen_ns.max(now.0.saturating_sub(1)));
        let slot = self.pending.insert(now.0, command);
        if self.queues.enter(command.tenant.index(), slot) {
            self.announce(now.0, slot);
        }
    }

    /// The command in a slot.
    #[inline]
    pub fn command(&self, slot: Slot) -> &Command {
        self.pending.command(slot)
    }

    /// When something next arrives; [`NEVER_NS`] when nothing is under way.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        let [down, up] = &self.wires;
        let messages_ns = down.due_ns().min(up.due_ns()).min(self.controller.due_ns());
        messages_ns.min(self.express.due_ns())
    }

    /// Notes that everything up to a moment has happened.
    #[inline]
    pub fn seen(&mut self, now_ns: u64) {
        self.seen_ns = self.seen_ns.max(now_ns);
    }

    /// Lets everything that arrives at `now_ns` arrive; nothing may have been due before. Commands
    /// whose data the drive now has are appended to `arrived`; those done to `done`.
    pub fn arrivals(&mut self, now_ns: u64, arrived: &mut Vec<Slot>, done: &mut Vec<Completion>) {
        if self.express.due_ns() <= now_ns {
            self.express_arrives(now_ns, arrived);
        } else {
            self.follow(now_ns.saturating_sub(1));
        }
        while let Some((arrival, slot)) = self.wires[DOWN].receive(now_ns) {
            self.arrive(now_ns, arrival, slot, arrived, done);
        }
        while let Some((arrival, slot)) = self.wires[UP].receive(now_ns) {
            self.arrive(now_ns, arrival, slot, arrived, done);
        }
        while let Some((_, slot)) = self.controller.receive(now_ns) {
            self.pending.queued_until(slot, now_ns);
            arrived.push(slot);
        }
    }

    /// The inside of the drive has done the command: data and completion go to the host. `spent`
    /// is the time since the command arrived there.
    pub fn finish(&mut self, now: Nanos, slot: Slot, spent: &Spent) {
        self.follow(now.0);
        self.pending.inside_until(slot, now.0, spent);
        let Command { op, length, tenant, .. } = *self.command(slot);
        let up = self.up();
        if op == Op::Read && length.0 > 0 {
            let time_ns = self.protocol.data_to_host(length);
            self.wires[up].occupy(now.0, time_ns);
        }
        self.queues.leave(tenant.index());
        self.fetch(now.0);
        self.wires[up].send(now.0, self.protocol.completion_ns, (HostArrival::Completion, slot));
    }

    /// Commands accepted and not yet completed.
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }

    /// Time in which the wires to the drive and to the host carried something (SATA: both the
    /// same), of messages up to the last event.
    pub fn link_busy(&self) -> [Nanos; 2] {
        [DOWN, self.up()].map(|wire| Nanos(self.wires[wire].busy_ns()))
    }

    /// The wire that carries messages towards the host.
    fn up(&self) -> usize {
        match self.protocol.interface {
            Interface::Nvme => UP,
            Interface::Sata => DOWN,
        }
    }

    /// The host tells the drive of a command (NVMe), or offers it to be sent (SATA).
    fn announce(&mut self, now_ns: u64, slot: Slot) {
        self.pending.queued_until(slot, now_ns);
        match self.protocol.interface {
            Interface::Nvme => {
                if !self.begin_express(now_ns, slot) {
                    let message = (HostArrival::Doorbell, slot);
                    self.wires[DOWN].send(now_ns, self.protocol.doorbell_ns, message);
                }
            }
            Interface::Sata => {
                self.post(slot);
                self.fetch(now_ns);
            }
        }
    }

    /// Announces a command that can be on its own. False, and nothing is done, if something else is
    /// on its way to the drive or waits there.
    #[inline]
    fn begin_express(&mut self, now_ns: u64, slot: Slot) -> bool {
        let Command { op, length, tenant, .. } = *self.command(slot);
        let alone = self.express.due_ns() == NEVER_NS && self.wires[DOWN].is_empty();
        // On a link that takes no time it would arrive at once, where others still happen.
        let protocol = &self.protocol;
        let takes_ns = protocol.doorbell_ns + protocol.request_ns + protocol.entry_ns;
        if !alone || takes_ns == 0 || !self.queues.passes(tenant.index()) {
            return false;
        }
        let data_ns = self.protocol.fetched_ns(op, length);
        self.express.begin(now_ns, slot, data_ns, &self.protocol, &mut self.wires);
        true
    }

    /// The command on its own is in the drive, and nothing has crossed its way.
    fn express_arrives(&mut self, now_ns: u64, arrived: &mut Vec<Slot>) {
        let slot = self.express.slot();
        let Command { op, length, tenant, .. } = *self.command(slot);
        self.queues.pass(tenant.index(), slot);
        let data_ns = self.protocol.fetched_ns(op, length);
        let arrived_ns = self.express.arrive(data_ns, &self.protocol, &mut self.wires);
        debug_assert_eq!(arrived_ns, now_ns, "nothing crossed its way");
        self.pending.linked_until(slot, now_ns);
        self.work(now_ns, slot, arrived);
    }

    /// Something else is about to happen. The messages of the command on its own that arrive by
    /// `until_ns` have arrived, and the next is on its way.
    #[inline]
    fn follow(&mut self, until_ns: u64) {
        if self.express.due_ns() != NEVER_NS {
            self.follow_messages(until_ns);
        }
    }

    fn follow_messages(&mut self, until_ns: u64) {
        // Its arrival in the drive and what others sent are for the next advance of the drive.
        let first_ns = self.due_ns();
        self.express.give_way(&mut self.wires);
        loop {
            let due_ns = self.due_ns();
            if due_ns > until_ns || due_ns >= first_ns {
                return;
            }
            self.arrivals(due_ns, &mut Vec::new(), &mut Vec::new());
        }
    }

    fn post(&mut self, slot: Slot) {
        let tenant = self.command(slot).tenant.index();
        self.queues.post(tenant, slot);
    }

    /// The drive takes up commands while it has slots for them.
    #[inline]
    fn fetch(&mut self, now_ns: u64) {
        if self.queues.posted() {
            self.fetch_posted(now_ns);
        }
    }

    fn fetch_posted(&mut self, now_ns: u64) {
        while let Some(slot) = self.queues.take() {
            self.pending.queued_until(slot, now_ns);
            match self.protocol.interface {
                Interface::Nvme => {
                    let message = (HostArrival::EntryRequest, slot);
                    self.wires[UP].send(now_ns, self.protocol.request_ns, message);
                }
                Interface::Sata => {
                    let message = (HostArrival::Entry, slot);
                    self.wires[DOWN].send(now_ns, self.protocol.entry_ns, message);
                }
            }
        }
    }

    fn arrive(
        &mut self,
        now_ns: u64,
        arrival: HostArrival,
        slot: Slot,
        arrived: &mut Vec<Slot>,
        done: &mut Vec<Completion>,
    ) {
        match arrival {
            HostArrival::Doorbell => {
                self.pending.linked_until(slot, now_ns);
                self.post(slot);
                self.fetch(now_ns);
            }
            HostArrival::EntryRequest => {
                self.wires[DOWN].send(now_ns, self.protocol.entry_ns, (HostArrival::Entry, slot));
            }
            HostArrival::Entry => self.entry(now_ns, slot, arrived),
            HostArrival::DataRequest => {
                let Command { op, length, .. } = *self.command(slot);
                let time_ns = self.protocol.data_to_drive(op, length);
                self.wires[DOWN].send(now_ns, time_ns, (HostArrival::Data, slot));
            }
            HostArrival::Data => {
                self.pending.linked_until(slot, now_ns);
                self.work(now_ns, slot, arrived);
            }
            HostArrival::Completion => self.complete(now_ns, slot, done),
            HostArrival::Worked => {}
        }
    }

    /// A command is in the drive; the data of a write must follow it.
    fn entry(&mut self, now_ns: u64, slot: Slot, arrived: &mut Vec<Slot>) {
        let Command { op, length, .. } = *self.command(slot);
        if self.protocol.interface == Interface::Sata {
            self.wires[DOWN].occupy(now_ns, self.protocol.release_ns);
        }
        if !self.protocol.fetches_data(op, length) {
            self.pending.linked_until(slot, now_ns);
            return self.work(now_ns, slot, arrived);
        }
        match self.protocol.interface {
            Interface::Nvme => {
                let message = (HostArrival::DataRequest, slot);
                self.wires[UP].send(now_ns, self.protocol.request_ns, message);
            }
            Interface::Sata => {
                self.wires[DOWN].occupy(now_ns, self.protocol.request_ns);
                let time_ns = self.protocol.data_to_drive(op, length);
                self.wires[DOWN].send(now_ns, time_ns, (HostArrival::Data, slot));
            }
        }
    }

    /// The controller works on the command, then hands it on.
    fn work(&mut self, now_ns: u64, slot: Slot, arrived: &mut Vec<Slot>) {
        if self.command_ns == 0 {
            arrived.push(slot);
        } else {
            self.controller.send(now_ns, self.command_ns, (HostArrival::Worked, slot));
        }
    }

    fn complete(&mut self, now_ns: u64, slot: Slot, done: &mut Vec<Completion>) {
        let tenant = self.command(slot).tenant.index();
        done.push(self.pending.complete(slot, now_ns));
        if self.protocol.interface == Interface::Nvme {
            self.wires[DOWN].occupy(now_ns, self.protocol.doorbell_ns);
        }
        if let Next::Enters(next) = self.queues.completed(tenant) {
            self.announce(now_ns, next);
        }
    }

    /// Checks every invariant. Errors: the first found broken.
    pub fn audit(&self) -> Result<(), String> {
        for wire in self.wires.iter().chain([&self.controller]) {
            wire.audit()?;
        }
        self.pending.audit(self.queues.slots())?;
        self.queues.audit(self.pending.len())
    }
}
/// Commands that native command queuing can tell apart.
pub const SATA_SLOTS: u32 = 32;
/// A command inside the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// One tenant's access to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Commands it may have under way.
    pub queue_depth: u32,
    /// Bursts it is served in one round of weighted arbitration; at least 1.
    pub weight: u32,
}

/// The one command on its way, if there is one.
#[derive(Clone, Copy, Debug)]
struct Express {
    slot: Slot,
    /// When its doorbell arrives.
    doorbell_ns: u64,
    /// When it is in the drive with its data; never when there is no such command.
    due_ns: u64,
}

impl Default for Express {
    fn default() -> Express {
        Express { slot: Slot(0), doorbell_ns: 0, due_ns: NEVER_NS }
    }
}

impl Express {
    /// When the command is in the drive with its data; never when there is none.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// The command.
    #[inline]
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// A command begins its way; its data, if the drive fetches some, takes `data_ns`.
    #[inline]
    pub fn begin(
        &mut self,
        now_ns: u64,
        slot: Slot,
        data_ns: Option<u64>,
        protocol: &Protocol,
        wires: &mut [Wire<Message>; 2],
    ) {
        let doorbell_ns = wires[DOWN].occupy(now_ns, protocol.doorbell_ns);
        let request_ns = protocol.request_ns;
        let mut due_ns = wires[UP].after(doorbell_ns, request_ns) + protocol.entry_ns;
        if let Some(data_ns) = data_ns {
            due_ns += request_ns + data_ns;
        }
        *self = Express { slot, doorbell_ns, due_ns };
    }

    /// The command is in the drive and nothing has crossed its way; when it arrived.
    pub fn arrive(
        &mut self,
        data_ns: Option<u64>,
        protocol: &Protocol,
        wires: &mut [Wire<Message>; 2],
    ) -> u64 {
        let Express { doorbell_ns, .. } = std::mem::take(self);
        let request_ns = protocol.request_ns;
        let requested_ns = wires[UP].occupy(doorbell_ns, request_ns);
        let entry_ns = wires[DOWN].occupy(requested_ns, protocol.entry_ns);
        let Some(data_ns) = data_ns else { return entry_ns };
        let requested_ns = wires[UP].occupy(entry_ns, request_ns);
        wires[DOWN].occupy(requested_ns, data_ns)
    }

    /// Something else is about to happen: the command is an ordinary one whose doorbell is on its
    /// way.
    pub fn give_way(&mut self, wires: &mut [Wire<Message>; 2]) {
        let Express { slot, doorbell_ns, .. } = std::mem::take(self);
        wires[DOWN].put_back(doorbell_ns, (HostArrival::Doorbell, slot));
    }
}

/// A command from its submission to its completion.
#[derive(Clone, Copy, Debug)]
struct PendingCommand {
    command: Command,
    submitted_ns: u64,
    /// Up to when the time is accounted for.
    marked_ns: u64,
    /// Time in queues and on the link.
    queue_ns: u64,
    link_ns: u64,
    /// Time inside, known once the command is done there.
    inside: Spent,
}

/// All commands that are not completed.
#[derive(Clone, Debug, Default)]
struct PendingCommands {
    slots: Vec<PendingCommand>,
    /// Slots free for reuse.
    free: Vec<Slot>,
}

impl PendingCommands {
    /// Takes a slot for a command submitted now.
    #[inline]
    pub fn insert(&mut self, now_ns: u64, command: Command) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| self.grow(command));
        let pending = &mut self.slots[slot.0 as usize];
        pending.command = command;
        (pending.submitted_ns, pending.marked_ns) = (now_ns, now_ns);
        (pending.queue_ns, pending.link_ns) = (0, 0);
        slot
    }

    /// One more slot.
    #[cold]
    fn grow(&mut self, command: Command) -> Slot {
        let (submitted_ns, marked_ns, queue_ns, link_ns) = (0, 0, 0, 0);
        let inside = Spent::default();
        let pending =
            PendingCommand { command, submitted_ns, marked_ns, queue_ns, link_ns, inside };
        self.slots.push(pending);
        Slot(self.slots.len() as u32 - 1)
    }

    /// The command in a slot.
    #[inline]
    pub fn command(&self, slot: Slot) -> &Command {
        &self.slots[slot.0 as usize].command
    }

    /// It waited up to now.
    #[inline]
    pub fn queued_until(&mut self, slot: Slot, now_ns: u64) {
        let pending = &mut self.slots[slot.0 as usize];
        pending.queue_ns += now_ns - pending.marked_ns;
        pending.marked_ns = now_ns;
    }

    /// It was on the link up to now.
    #[inline]
    pub fn linked_until(&mut self, slot: Slot, now_ns: u64) {
        let pending = &mut self.slots[slot.0 as usize];
        pending.link_ns += now_ns - pending.marked_ns;
        pending.marked_ns = now_ns;
    }

    /// It was inside the drive up to now; `spent` is that time by part.
    #[inline]
    pub fn inside_until(&mut self, slot: Slot, now_ns: u64, spent: &Spent) {
        let pending = &mut self.slots[slot.0 as usize];
        let since_ns = pending.marked_ns;
        debug_assert_eq!(since_ns + spent.total_ns(), now_ns, "time inside the drive adds up");
        pending.inside = *spent;
        pending.marked_ns = now_ns;
    }

    /// Its completion has arrived over the link; the slot is free again.
    #[inline]
    pub fn complete(&mut self, slot: Slot, now_ns: u64) -> Completion {
        self.linked_until(slot, now_ns);
        let pending = &self.slots[slot.0 as usize];
        let mut spent = pending.inside;
        spent.add(SpentPart::Queue, pending.queue_ns);
        spent.add(SpentPart::Link, pending.link_ns);
        let (tag, submitted_ns) = (pending.command.tag, pending.submitted_ns);
        debug_assert_eq!(spent.total_ns(), now_ns - submitted_ns, "the parts add up");
        self.free.push(slot);
        Completion { tag, submitted: Nanos(submitted_ns), finished: Nanos(now_ns), spent }
    }

    /// Commands that are not completed.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Each slot is free or in use, and those in `queued` are used once. Errors: the first that is
    /// not.
    pub fn audit(&self, queued: impl Iterator<Item = Slot>) -> Result<(), String> {
        let mut seen = vec![false; self.slots.len()];
        for slot in self.free.iter().copied().chain(queued) {
            let seen = seen.get_mut(slot.0 as usize);
            match seen {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(format!("the command of slot {} is in two places", slot.0)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssd::link::NEVER_NS;
    use crate::ssd::params::SsdParams;
    use cachewright_types::declare::Declared;
    use cachewright_types::{Bytes, Seed, TenantId, Value};

    /// What completes when, if the drive takes some time for each command; with every message
    /// followed, or not.
    fn run(seed: u64, pairs: &[(&str, i64)], followed: bool) -> (Vec<Completion>, [Nanos; 2]) {
        let mut params = SsdParams::default();
        for (key, value) in pairs {
            params.set(key, &Value::Int(*value)).unwrap();
        }
        let mut host = Host::new(&params, &[Port { queue_depth: 5, weight: 1 }; 3]);
        let mut rng = Seed(seed).rng();
        let mut submissions: Vec<(u64, Command)> = (0..400)
            .map(|tag| {
                let op = [Op::Read, Op::Write, Op::Trim, Op::Flush][rng.below(4) as usize];
                let length = Bytes(if op == Op::Flush { 0 } else { 512 << rng.below(5) });
                let tenant = TenantId(rng.below(3) as u16);
                (rng.below(40_000), Command { tag, op, offset: Bytes(0), length, tenant })
            })
            .collect();
        submissions.sort_by_key(|(at, command)| (std::cmp::Reverse(*at), command.tag));
        let (mut inside, mut done, mut arrived) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let submission_ns = submissions.last().map_or(NEVER_NS, |(at, _)| *at);
            let inside_ns = inside.iter().map(|(due, _, _)| *due).min().unwrap_or(NEVER_NS);
            let now = submission_ns.min(inside_ns).min(host.due_ns());
            if now == NEVER_NS {
                assert_eq!(host.audit(), Ok(()));
                return (done, host.link_busy());
            }
            host.arrivals(now, &mut arrived, &mut done);
            for slot in arrived.drain(..) {
                let taken = 10 + host.command(slot).tag * 7919 % 300;
                inside.push((now + taken, slot, taken));
            }
            inside.sort_unstable();
            while inside.first().is_some_and(|(due, _, _)| *due <= now) {
                let (_, slot, taken) = inside.remove(0);
                let mut spent = Spent::default();
                spent.add(SpentPart::Flash, taken);
                host.finish(Nanos(now), slot, &spent);
            }
            host.seen(now);
            while submissions.last().is_some_and(|(at, _)| *at <= now) {
                let Some((_, command)) = submissions.pop() else { break };
                host.submit(Nanos(now), command);
            }
            if followed {
                host.follow(now);
            }
        }
    }

    #[test]
    fn one_event_for_a_command_changes_nothing() {
        for seed in 0..30 {
            for pairs in [&[][..], &[("fetch_size", 2)], &[("command_slots", 3)]] {
                let (done, busy) = run(seed, pairs, false);
                assert_eq!(done.len(), 400);
                assert_eq!((done, busy), run(seed, pairs, true), "{seed} {pairs:?}");
            }
        }
    }

    /// The second command comes while messages of the first are hidden, and nothing was observed
    /// between.
    #[test]
    fn a_command_that_crosses_the_way_finds_no_message_in_the_past() {
        for pause_ns in [1, 10, 30, 100, 1_200] {
            let run = |look: bool| {
                let mut host = Host::new(&SsdParams::default(), &[]);
                let (mut arrived, mut at) = (Vec::new(), Vec::new());
                let command = |tag| {
                    let (offset, length) = (Bytes(0), Bytes(4096));
                    Command { tag, op: Op::Write, offset, length, tenant: TenantId(0) }
                };
                host.submit(Nanos(1_000), command(0));
                if look {
                    host.follow(1_000 + pause_ns);
                }
                host.submit(Nanos(1_000 + pause_ns), command(1));
                let mut now = 1_000 + pause_ns;
                while host.due_ns() != NEVER_NS {
                    assert!(host.due_ns() >= now, "{} is before {now}", host.due_ns());
                    now = host.due_ns();
                    host.arrivals(now, &mut arrived, &mut Vec::new());
                    at.extend(arrived.drain(..).map(|slot| (now, slot)));
                }
                assert_eq!(at.len(), 2);
                at
            };
            assert_eq!(run(false), run(true), "{pause_ns}");
        }
    }

    /// Data takes a while even so, the messages before it none.
    #[test]
    fn on_a_link_that_takes_no_time_nothing_is_lost() {
        for rate in [16, 100_000] {
            let pairs = [("lanes", 32), ("lane_rate", rate)];
            let (done, busy) = run(3, &pairs, false);
            assert_eq!(done.len(), 400);
            assert_eq!((done, busy), run(3, &pairs, true));
        }
    }

    #[test]
    fn time_is_counted_by_place_and_slots_return() {
        let command = |tag| Command {
            tag,
            op: Op::Read,
            offset: Bytes(0),
            length: Bytes(512),
            tenant: TenantId(0),
        };
        let mut pending = PendingCommands::default();
        let (first, second) = (pending.insert(10, command(1)), pending.insert(10, command(2)));
        pending.queued_until(first, 15);
        pending.linked_until(first, 18);
        let mut inside = Spent::default();
        inside.add(SpentPart::Flash, 40);
        pending.inside_until(first, 58, &inside);
        let done = pending.complete(first, 60);
        assert_eq!((done.tag, done.submitted, done.finished), (1, Nanos(10), Nanos(60)));
        let parts = [SpentPart::Queue, SpentPart::Link, SpentPart::Flash];
        assert_eq!(parts.map(|part| done.spent.part_ns(part)), [5, 3 + 2, 40]);
        assert_eq!((pending.len(), pending.insert(70, command(3))), (1, first));
        assert_eq!(pending.audit([second].into_iter()), Ok(()));
        let twice = pending.audit([second, second].into_iter());
        assert_eq!(twice, Err("the command of slot 1 is in two places".to_owned()));
    }
}
