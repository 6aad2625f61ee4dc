//! A host interface and what stands behind it, as one device.
//!
//! For: the order in which both advance, and the seam [`Inside`] where a data cache can stand
//! between interface and flash. Must never know: which inside it is. Unit: nanoseconds. At equal
//! times, messages on the link arrive before anything inside happens.

use super::flash::FlashStats;
use super::host::{Host, Slot};
use super::link::NEVER_NS;
use crate::{Command, Completion, Device, DeviceWork, Energy, Exposed, Report, Spent};
use cachewright_types::{Bytes, Nanos};

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

#[cfg(test)]
mod tests;
