//! A drive: a host interface and what stands behind it, as one device.
//!
//! What stands behind it is an [`Inside`]: flash alone ([`Direct`], the drive [`Ssd`]), or a data
//! cache before flash. At equal times, messages on the link arrive before anything inside happens.
//!
//! Without a data cache a command is cut into pages. It is done when its last page is, and its time
//! is accounted for along that page's way. A trim forgets pages that it covers whole; a flush has
//! nothing to wait for, because a write is done only when it is programmed.
//!
//! Where the drive has memory for writes ([`WriteBuffer`]), a write is done when it is in memory,
//! and a flush waits for the data that was there before it. Writes are taken in one after the
//! other, in the order of their arrival; one larger than the memory is taken in alone. Nothing is
//! merged: each write goes to flash as it came, at once. Invariants (audited): what is held is the
//! sum of the writes, and within the bound but for a single write.
//!
//! Units: bytes, pages, nanoseconds.

use super::flash::{Backend, DoneTransaction, FlashError, FlashStats, PageOp, Transaction};
use super::host::{Host, Port, Slot};
use super::link::{NEVER_NS, Wire};
use super::pages::AddressLayout;
use super::params::{FillMethod, SsdParams};
use crate::{Command, Completion, Device, DeviceWork, Energy, Exposed, Report, Spent, SpentPart};
use cachewright_types::{Bytes, Nanos, Op, Seed, SettingError};
use slab::Slab;
use std::collections::VecDeque;

/// A command that the inside has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedCommand {
    /// The command.
    pub slot: Slot,
    /// Where the time since its arrival went; it adds up to that time.
    pub spent: Spent,
}

/// What a drive does with the commands that its host interface took in. Commands are known by
/// their slots, small numbers that are given out again.
pub trait Inside {
    /// Bytes that can be addressed.
    fn capacity(&self) -> Bytes;

    /// Takes up a command whose data is in the drive. What takes no time is appended to `finished`.
    fn arrive(
        &mut self,
        now: Nanos,
        slot: Slot,
        command: &Command,
        finished: &mut Vec<FinishedCommand>,
    );

    /// When something next happens.
    fn next_due(&self) -> Option<Nanos>;

    /// Lets what is due next happen, and perhaps more, in order of time: up to `until`, and no
    /// later than a command is done. Appends what is done; returns the time of the last that
    /// happened. Something is due by `until`, and nothing before in the whole drive.
    fn advance(&mut self, until: Nanos, finished: &mut Vec<FinishedCommand>) -> Nanos;

    /// Commands taken up and not yet done.
    fn outstanding(&self) -> usize;

    /// The ranges of addresses that lie on channels of their own, in the order of addresses.
    fn exposed(&self) -> Vec<Exposed>;

    /// What the flash has done up to `now`; nothing for an inside without flash.
    fn flash(&self, now: Nanos) -> Option<FlashStats>;

    /// Adds the energy of the operations begun so far.
    fn spend(&self, energy: &mut Energy);

    /// Checks everything that must hold between calls; slow. Errors: the first rule found broken.
    fn audit(&self) -> Result<(), String>;
}

/// A drive: a host interface before an inside.
#[derive(Clone, Debug)]
pub struct Drive<I> {
    host: Host,
    inside: I,
    /// When something next arrives at the interface.
    host_due_ns: u64,
    /// When something next happens inside.
    inside_due_ns: u64,
    arrived: Vec<Slot>,
    finished: Vec<FinishedCommand>,
    accepted: u64,
    completed: u64,
    power: Power,
    /// Time with commands inside up to `active_since`, from when on some are or none is.
    active_ns: u64,
    active_since: u64,
}

/// What a drive draws, in watts; 0 where it is not given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Power {
    /// All the time.
    pub idle: f64,
    /// Beyond that while commands are inside.
    pub active: f64,
}

impl<I: Inside> Drive<I> {
    /// Puts a drive together; both parts must be idle.
    pub fn assemble(host: Host, inside: I, power: Power) -> Drive<I> {
        Drive {
            host,
            inside,
            host_due_ns: NEVER_NS,
            inside_due_ns: NEVER_NS,
            arrived: Vec::new(),
            finished: Vec::new(),
            accepted: 0,
            completed: 0,
            power,
            active_ns: 0,
            active_since: 0,
        }
    }

    /// Time with commands inside, up to `now`.
    pub fn active(&self, now: Nanos) -> Nanos {
        let running = if self.accepted > self.completed { now.0 - self.active_since } else { 0 };
        Nanos(self.active_ns + running)
    }

    /// The host interface, to look at.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The inside, to look at.
    pub fn inside(&self) -> &I {
        &self.inside
    }

    /// Changes what may change inside while it runs (the division of a cache).
    pub fn change<R>(&mut self, change: impl FnOnce(&mut I) -> R) -> R {
        let result = change(&mut self.inside);
        self.look_inside();
        result
    }

    /// Asks again when something next happens inside.
    #[inline]
    fn look_inside(&mut self) {
        self.inside_due_ns = self.inside.next_due().map_or(NEVER_NS, |due| due.0);
    }

    /// The earliest time due, or never.
    #[inline]
    fn due_ns(&self) -> u64 {
        self.host_due_ns.min(self.inside_due_ns)
    }

    /// Lets everything due happen, in order of time, up to the first time at which a command
    /// completes, or to `until` if none does; returns the time of the last that happened. Something
    /// must be due by then. Spares the caller a turn for each time at which nothing completes.
    pub fn advance_to_answer(&mut self, until: Nanos, done: &mut Vec<Completion>) -> Nanos {
        let (before, mut limit, mut last) = (done.len(), until, until);
        while let Some(now) = self.step(limit, done) {
            last = now;
            if done.len() > before {
                limit = now;
            }
        }
        self.host.seen(last.0);
        last
    }

    /// Lets what is due next happen, if it is by `until`; returns when. At one time messages come
    /// before what happens inside, which goes on alone while no message arrives and no command is
    /// done.
    #[inline]
    fn step(&mut self, until: Nanos, done: &mut Vec<Completion>) -> Option<Nanos> {
        let (host_ns, mut now) = (self.host_due_ns, Nanos(self.due_ns()));
        if now > until || now.0 == NEVER_NS {
            return None;
        }
        if now.0 == host_ns {
            self.arrive(now, done);
            if self.inside_due_ns <= now.0 {
                self.inside.advance(now, &mut self.finished);
                self.look_inside();
            }
        } else {
            now = self.inside.advance(until.min(Nanos(host_ns - 1)), &mut self.finished);
            self.look_inside();
            if self.finished.is_empty() {
                return Some(now);
            }
        }
        for FinishedCommand { slot, spent } in self.finished.drain(..) {
            self.host.finish(now, slot, &spent);
        }
        self.host_due_ns = self.host.due_ns();
        Some(now)
    }

    /// Messages that arrive at `now`.
    #[inline]
    fn arrive(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        let before = done.len();
        self.host.arrivals(now.0, &mut self.arrived, done);
        self.completed += (done.len() - before) as u64;
        if self.completed == self.accepted && done.len() > before {
            self.active_ns += now.0 - self.active_since;
        }
        if !self.arrived.is_empty() {
            for slot in self.arrived.drain(..) {
                self.inside.arrive(now, slot, self.host.command(slot), &mut self.finished);
            }
            self.look_inside();
        }
    }
}

impl<I: Inside> Device for Drive<I> {
    fn capacity(&self) -> Bytes {
        self.inside.capacity()
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        if self.accepted == self.completed {
            self.active_since = now.0;
        }
        self.accepted += 1;
        self.host.submit(now, command);
        self.host_due_ns = self.host.due_ns();
    }

    fn next_due(&self) -> Option<Nanos> {
        Some(self.due_ns()).filter(|due| *due != NEVER_NS).map(Nanos)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.step(now, done).is_some() {}
        self.host.seen(now.0);
    }

    fn outstanding(&self) -> usize {
        self.host.outstanding()
    }

    fn exposed(&self) -> Vec<Exposed> {
        self.inside.exposed()
    }

    fn report(&self, now: Nanos) -> Report {
        let mut energy = Energy::default();
        energy.draw("idle", self.power.idle, now.0);
        energy.draw("active", self.power.active, self.active(now).0);
        self.inside.spend(&mut energy);
        let flash = self.inside.flash(now).map(Box::new);
        Report {
            energy,
            work: flash.map_or(DeviceWork::Nothing, DeviceWork::Flash),
            members: Vec::new(),
        }
    }

    fn audit(&self) -> Result<(), String> {
        self.host.audit()?;
        self.inside.audit()?;
        let (due, known) = (self.host.due_ns(), self.host_due_ns);
        if due != known {
            return Err(format!("something arrives at {due} ns, known is {known} ns"));
        }
        let due = self.inside.next_due().map_or(NEVER_NS, |due| due.0);
        if due != self.inside_due_ns {
            let known = self.inside_due_ns;
            return Err(format!("something happens inside at {due} ns, known is {known} ns"));
        }
        let open = self.accepted - self.completed;
        if open != self.host.outstanding() as u64 {
            return Err(format!("{open} commands are open, {} are known", self.host.outstanding()));
        }
        if self.inside.outstanding() > self.host.outstanding() {
            return Err("more commands inside than at the host interface".to_owned());
        }
        Ok(())
    }
}

/// A drive without a data cache.
pub type Ssd = Drive<Direct>;

/// The tag of a page whose write is already done: the bit and the write's number.
const BUFFERED: u64 = 1 << 32;

/// The flash, and the commands that wait for their pages.
pub struct Direct {
    flash: Backend,
    layout: AddressLayout,
    buffer: Option<WriteBuffer>,
    /// Pages that each slot's command still waits for.
    left: Vec<u32>,
    outstanding: usize,
    batch: Vec<Transaction>,
    done: Vec<DoneTransaction>,
}

impl Ssd {
    /// A drive as its parameters say, for one port per tenant; without ports, tenants get one of
    /// full queue depth as they appear. Errors: the drive cannot be.
    pub fn new(params: &SsdParams, ports: &[Port], seed: Seed) -> Result<Ssd, SettingError> {
        params.check()?;
        let tenants = ports.len().max(1) as u32;
        let flash = Backend::new(&params.flash(tenants), seed).map_err(refusal)?;
        Ok(Drive::assemble(Host::new(params, ports), Direct::new(params, flash), params.power()))
    }
}

/// How the addresses of a drive would be laid out, whatever it holds, without building it. Errors:
/// the drive cannot be.
pub fn layout_of(params: &SsdParams) -> Result<AddressLayout, SettingError> {
    let empty = SsdParams { fill: FillMethod::Empty, ..params.clone() };
    empty.check()?;
    let pages = Backend::host_pages(&empty.flash(1), Seed(1)).map_err(refusal)?;
    Ok(AddressLayout::new(params, pages))
}

/// A refusal of the back-end by key.
pub fn refusal(error: FlashError) -> SettingError {
    match error {
        FlashError::Range { key, found, expected } => {
            SettingError { key: key.to_owned(), found, expected }
        }
        other => SettingError {
            key: "device".to_owned(),
            found: "a drive that cannot be built".to_owned(),
            expected: other.to_string(),
        },
    }
}

/// The layout of the addresses of a drive with this flash.
pub fn layout(params: &SsdParams, flash: &Backend) -> AddressLayout {
    AddressLayout::new(params, (0..flash.groups()).map(|group| flash.logical_pages(group)))
}

impl Direct {
    fn new(params: &SsdParams, flash: Backend) -> Direct {
        let layout = layout(params, &flash);
        let (left, batch, done) = (Vec::new(), Vec::new(), Vec::new());
        let buffer = WriteBuffer::from_params(params);
        Direct { flash, layout, buffer, left, outstanding: 0, batch, done }
    }

    /// Cuts a command into pages under a tag.
    fn cut(&mut self, op: PageOp, tag: u64, command: &Command) {
        self.batch.clear();
        let (tenant, whole) = (command.tenant, self.layout.whole_page());
        for part in self.layout.parts(command.offset, command.length) {
            if op != PageOp::Trim || part.sectors == whole {
                let (group, page, sectors) = (part.group, part.page, part.sectors);
                self.batch.push(Transaction { tag, tenant, group, op, page, sectors });
            }
        }
    }

    /// Writes whose data is in memory are done, and go to flash.
    fn take_in(&mut self, now: Nanos, finished: &mut Vec<FinishedCommand>) {
        while let Some(taken) = self.buffer.as_mut().and_then(|buffer| buffer.take(now)) {
            let Taken { number, command, finished: done } = taken;
            self.cut(PageOp::Write, BUFFERED | u64::from(number), &command);
            if let Some(buffer) = &mut self.buffer {
                buffer.sent(number, self.batch.len() as u32);
            }
            finished.push(done);
            self.flash.submit(now, &self.batch);
        }
    }

    /// When a write is next in memory.
    #[inline]
    fn intake_ns(&self) -> u64 {
        self.buffer.as_ref().map_or(NEVER_NS, WriteBuffer::due_ns)
    }

    /// When something next happens in flash.
    #[inline]
    fn flash_ns(&self) -> u64 {
        self.flash.next_due().map_or(NEVER_NS, |due| due.0)
    }

    /// The flash, to look at.
    pub fn flash(&self) -> &Backend {
        &self.flash
    }

    /// How addresses are laid out.
    pub fn layout(&self) -> &AddressLayout {
        &self.layout
    }

    /// What the flash has done up to `now`.
    pub fn stats(&self, now: Nanos) -> FlashStats {
        self.flash.stats(now)
    }
}

impl Inside for Direct {
    fn capacity(&self) -> Bytes {
        self.layout.capacity()
    }

    fn arrive(
        &mut self,
        now: Nanos,
        slot: Slot,
        command: &Command,
        finished: &mut Vec<FinishedCommand>,
    ) {
        let op = match command.op {
            Op::Read => PageOp::Read,
            Op::Write => PageOp::Write,
            Op::Trim => PageOp::Trim,
            Op::Flush => {
                let waits = self.buffer.as_mut().is_some_and(|buffer| buffer.flush(now, slot));
                if !waits {
                    finished.push(FinishedCommand { slot, spent: Spent::default() });
                }
                return;
            }
        };
        self.cut(op, u64::from(slot.0), command);
        if self.batch.is_empty() {
            return finished.push(FinishedCommand { slot, spent: Spent::default() });
        }
        if let Some(buffer) = self.buffer.as_mut().filter(|_| op == PageOp::Write) {
            return buffer.write(now, slot, *command);
        }
        let index = slot.0 as usize;
        if index >= self.left.len() {
            self.left.resize(index + 1, 0);
        }
        self.left[index] = self.batch.len() as u32;
        self.outstanding += 1;
        self.flash.submit(now, &self.batch);
    }

    fn next_due(&self) -> Option<Nanos> {
        let due_ns = self.flash_ns().min(self.intake_ns());
        Some(due_ns).filter(|due_ns| *due_ns != NEVER_NS).map(Nanos)
    }

    fn advance(&mut self, until: Nanos, finished: &mut Vec<FinishedCommand>) -> Nanos {
        let (flash_ns, intake_ns) = (self.flash_ns(), self.intake_ns());
        let mut now = until.min(Nanos(flash_ns.min(intake_ns)));
        if flash_ns <= now.0 {
            now = self.flash.advance_to_done(until.min(Nanos(intake_ns)), &mut self.done);
        }
        for DoneTransaction { tag, spent, .. } in self.done.drain(..) {
            if let Some(buffer) = self.buffer.as_mut().filter(|_| tag & BUFFERED != 0) {
                buffer.programmed(now, tag as u32, finished);
                continue;
            }
            let left = &mut self.left[tag as usize];
            *left -= 1;
            if *left == 0 {
                self.outstanding -= 1;
                finished.push(FinishedCommand { slot: Slot(tag as u32), spent });
            }
        }
        self.take_in(now, finished);
        now
    }

    fn outstanding(&self) -> usize {
        self.outstanding + self.buffer.as_ref().map_or(0, WriteBuffer::outstanding)
    }

    fn exposed(&self) -> Vec<Exposed> {
        self.layout.exposed()
    }

    fn spend(&self, energy: &mut Energy) {
        self.flash.spend(energy);
    }

    fn flash(&self, now: Nanos) -> Option<FlashStats> {
        Some(self.flash.stats(now))
    }

    fn audit(&self) -> Result<(), String> {
        self.flash.audit()?;
        let mut pages: u64 = self.left.iter().map(|left| u64::from(*left)).sum();
        if let Some(buffer) = &self.buffer {
            buffer.audit()?;
            pages += buffer.pages();
        }
        if pages != self.flash.outstanding() as u64 {
            let flash = self.flash.outstanding();
            return Err(format!("commands wait for {pages} pages, flash works on {flash}"));
        }
        let waiting = self.left.iter().filter(|left| **left > 0).count();
        if waiting == self.outstanding {
            Ok(())
        } else {
            Err(format!("{waiting} commands wait for pages, {} are counted", self.outstanding))
        }
    }
}

/// A write from its place in memory to its last page in flash.
#[derive(Clone, Copy, Debug)]
struct BufferedWrite {
    command: Command,
    slot: Slot,
    waited_ns: u64,
    began_ns: u64,
    /// Place in the order of being taken in.
    order: u64,
    /// Pages that are still to be programmed.
    pages: u32,
}

/// A flush, and how many of the writes held before it are still there.
#[derive(Clone, Copy, Debug)]
struct Flush {
    slot: Slot,
    began_ns: u64,
    order: u64,
    left: usize,
}

/// A write whose data is in memory.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// Its number here.
    pub number: u32,
    /// What it writes.
    pub command: Command,
    /// Its completion.
    pub finished: FinishedCommand,
}

/// The memory of one drive.
#[derive(Clone, Debug)]
struct WriteBuffer {
    capacity: u64,
    time_ns: u64,
    intake: Wire<u32>,
    held: Slab<BufferedWrite>,
    held_bytes: u64,
    held_count: usize,
    waiting: VecDeque<(Slot, Command, u64)>,
    flushes: Vec<Flush>,
    orders: u64,
}

impl WriteBuffer {
    /// The memory that a drive has for writes, if it has some.
    fn from_params(params: &SsdParams) -> Option<WriteBuffer> {
        (params.write_buffer.0 > 0).then(|| WriteBuffer {
            capacity: params.write_buffer.0,
            time_ns: params.write_buffer_time.0,
            intake: Wire::default(),
            held: Slab::default(),
            held_bytes: 0,
            held_count: 0,
            waiting: VecDeque::new(),
            flushes: Vec::new(),
            orders: 0,
        })
    }

    /// Takes up a write, at once or when there is space.
    pub fn write(&mut self, now: Nanos, slot: Slot, command: Command) {
        if self.waiting.is_empty() && self.fits(command.length.0) {
            self.begin(now.0, slot, command, now.0);
        } else {
            self.waiting.push_back((slot, command, now.0));
        }
    }

    fn fits(&self, bytes: u64) -> bool {
        self.held_count == 0 || self.held_bytes + bytes <= self.capacity
    }

    fn begin(&mut self, now_ns: u64, slot: Slot, command: Command, arrived_ns: u64) {
        let (waited_ns, began_ns, order) = (now_ns - arrived_ns, now_ns, self.orders);
        self.orders += 1;
        self.held_bytes += command.length.0;
        self.held_count += 1;
        let held = BufferedWrite { command, slot, waited_ns, began_ns, order, pages: 0 };
        let number = self.held.insert(held) as u32;
        self.intake.send(now_ns, self.time_ns, number);
    }

    /// When the next write is in memory.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        self.intake.due_ns()
    }

    /// The next write that is in memory by `now`.
    #[inline]
    pub fn take(&mut self, now: Nanos) -> Option<Taken> {
        let number = self.intake.receive(now.0)?;
        let held = self.held.get(number as usize)?;
        let mut spent = Spent::default();
        spent.add(SpentPart::Queue, held.waited_ns);
        spent.add(SpentPart::Dram, now.0 - held.began_ns);
        let finished = FinishedCommand { slot: held.slot, spent };
        Some(Taken { number, command: held.command, finished })
    }

    /// A write that is in memory goes to flash as so many pages, at least one.
    pub fn sent(&mut self, number: u32, pages: u32) {
        if let Some(held) = self.held.get_mut(number as usize) {
            held.pages = pages;
        }
    }

    /// A page of a write is programmed. Flushes that waited for it alone go to `finished`.
    pub fn programmed(&mut self, now: Nanos, number: u32, finished: &mut Vec<FinishedCommand>) {
        let Some(held) = self.held.get_mut(number as usize) else { return };
        held.pages -= 1;
        if held.pages > 0 {
            return;
        }
        let (order, bytes) = (held.order, held.command.length.0);
        self.held.try_remove(number as usize);
        self.held_bytes -= bytes;
        self.held_count -= 1;
        for flush in self.flushes.iter_mut().filter(|flush| order < flush.order) {
            flush.left -= 1;
        }
        self.flushes.retain(|flush| {
            if flush.left == 0 {
                let mut spent = Spent::default();
                spent.add(SpentPart::Queue, now.0 - flush.began_ns);
                finished.push(FinishedCommand { slot: flush.slot, spent });
            }
            flush.left > 0
        });
        while let Some((slot, command, arrived_ns)) = self.waiting.front().copied() {
            if !self.fits(command.length.0) {
                return;
            }
            self.waiting.pop_front();
            self.begin(now.0, slot, command, arrived_ns);
        }
    }

    /// Takes up a flush; whether it must wait.
    pub fn flush(&mut self, now: Nanos, slot: Slot) -> bool {
        let (order, left) = (self.orders, self.held_count);
        if left > 0 {
            self.flushes.push(Flush { slot, began_ns: now.0, order, left });
        }
        left > 0
    }

    /// Commands taken up and not yet completed.
    pub fn outstanding(&self) -> usize {
        self.waiting.len() + self.intake.len() + self.flushes.len()
    }

    /// Pages on their way to flash.
    pub fn pages(&self) -> u64 {
        self.held.iter().map(|(_, held)| u64::from(held.pages)).sum()
    }

    /// Checks every invariant. Errors: the first found broken.
    pub fn audit(&self) -> Result<(), String> {
        self.intake.audit()?;
        let bytes: u64 = self.held.iter().map(|(_, held)| held.command.length.0).sum();
        let count = self.held.iter().count();
        if (bytes, count) != (self.held_bytes, self.held_count) {
            let known = self.held_bytes;
            return Err(format!("{count} writes of {bytes} bytes are held, known are {known}"));
        }
        if count > 1 && bytes > self.capacity {
            return Err(format!("{bytes} bytes are held, more than {}", self.capacity));
        }
        let first = self.waiting.front();
        match first {
            Some((_, command, _)) if self.fits(command.length.0) => {
                Err("a write waits beside space for it".to_owned())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
