//! The host interface: commands in, requests for the drive's inside out, completions back.
//!
//! For: queues per tenant, the messages a command costs on the link, fetching by arbitration, and
//! where its time went. Must never know: pages, caches, flash. Units: bytes, nanoseconds. Source:
//! NVMe as MQSim models it (Tavakkol et al., FAST'18, 4.2): doorbell, fetch of the entry, fetch of
//! a write's data, data of a read. The completion entry and the doorbell of the completion queue
//! follow. SATA has the frames of native command queuing. Invariants (audited): a tenant has at
//! most its queue depth under way, the drive works on at most `command_slots`, every command is in
//! one place. A command that is alone on its way is one event ([`express`]). Differences: the host
//! counts commands under way per tenant instead of free entries of two rings. The entry of the
//! completion queue is always free in time. No allocation per command.

mod arbiter;
mod express;
mod message;
mod pending;
mod port;
mod protocol;
mod queues;

pub use arbiter::Arbiter;
pub use port::{Port, SATA_SLOTS, Slot};
pub use protocol::Protocol;

use super::link::{NEVER_NS, Wire};
use super::params::{Interface, SsdParams};
use crate::{Command, Completion, Spent};
use cachewright_types::{Nanos, Op};
use express::Express;
use message::{DOWN, HostArrival, Message, UP};
use pending::PendingCommands;
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
        while let Some(message) = self.wires[DOWN].receive(now_ns) {
            self.arrive(now_ns, message, arrived, done);
        }
        while let Some(message) = self.wires[UP].receive(now_ns) {
            self.arrive(now_ns, message, arrived, done);
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
        (arrival, slot): Message,
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
