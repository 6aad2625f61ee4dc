//! A drive without a data cache: commands go from the host interface straight to flash.
//!
//! For: cutting commands into pages, waiting for all of them, and [`Ssd`], the whole drive. Must
//! never know: caches, and what flash does with a page. Units: bytes, pages, nanoseconds. A command
//! is done when its last page is, and its time is accounted for along that page's way. A trim
//! forgets pages that it covers whole; a flush has nothing to wait for, because a write is done
//! only when it is programmed. Where the drive has memory for writes ([`WriteBuffer`]), a write is
//! done when it is there, and a flush waits.

use super::buffer::{Taken, WriteBuffer};
use super::drive::{Drive, FinishedCommand, Inside};
use super::flash::{Backend, DoneTransaction, FlashError, FlashStats, PageOp, Transaction};
use super::host::{Host, Port, Slot};
use super::link::NEVER_NS;
use super::pages::AddressLayout;
use super::params::{FillMethod, SsdParams};
use crate::{Command, Energy, Exposed, Spent};
use cachewright_types::{Bytes, Nanos, Op, Seed, SettingError};

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
