//! Reads and flushes of a store: where each page lies now, and commands to the device beneath.
//!
//! Pages that lie side by side are one command; the device reads only the bytes asked for. Units:
//! pages, bytes, nanoseconds.

use super::log_store::{LogStore, PagePlace, SubCommand};
use crate::{AnyDevice, Command, Completion, DeviceUse, Use};
use cachewright_ftl::HostRequest;
use cachewright_types::{Bytes, Nanos, Op, TenantId};
use slab::Slab;

/// Pages side by side that one command reads.
#[derive(Clone, Copy, Debug)]
struct SegmentRun {
    life: u32,
    first: u32,
    pages: u32,
    /// Bytes of the first page before those asked for.
    skip: u64,
    bytes: u64,
}

impl LogStore {
    /// Where a page can be read now.
    pub(super) fn place_of(&self, page: u32) -> PagePlace {
        let Some(address) = self.translation.locate(page) else { return PagePlace::Nowhere };
        self.writes.source_of(self.lives.life_of(address.block), address.offset)
    }

    /// Begins a read of a request.
    pub(super) fn read(&mut self, number: u32, command: &Command) {
        let pages = self.sizes.pages(command.offset, command.length);
        if pages.is_empty() {
            return;
        }
        let (first_page, count) = (pages.start, pages.len() as u32);
        let request = HostRequest { first_page, pages: count, write: false };
        self.translation.begin(command.tenant.0, &request);
        let (start, end) = (command.offset.0, command.offset.0 + command.length.0);
        let mut run: Option<SegmentRun> = None;
        for page in pages {
            let (life, offset) = match self.place_of(page) {
                PagePlace::At { life, offset } => (life, offset),
                PagePlace::Memory => {
                    self.stats.reads.memory += 1;
                    continue;
                }
                PagePlace::Nowhere => {
                    self.stats.reads.unwritten += 1;
                    continue;
                }
            };
            self.check_read(life, offset, page);
            let first_byte = self.sizes.first_byte(page);
            let skip = start.saturating_sub(first_byte);
            let bytes = (end - first_byte).min(self.sizes.page_bytes()) - skip;
            let joins = |run: &SegmentRun| {
                let next = run.life == life && run.first + run.pages == offset;
                next && run.pages < self.sizes.max_pages()
            };
            match &mut run {
                Some(run) if joins(run) => {
                    run.pages += 1;
                    run.bytes += bytes;
                }
                _ => {
                    self.read_run(number, run, command);
                    run = Some(SegmentRun { life, first: offset, pages: 1, skip, bytes });
                }
            }
        }
        self.read_run(number, run, command);
    }

    fn read_run(&mut self, number: u32, run: Option<SegmentRun>, command: &Command) {
        let Some(SegmentRun { life, first, skip, bytes, .. }) = run else { return };
        self.stats.reads.requests += 1;
        self.requests.add_part(number);
        self.lives.pin(life);
        let offset = self.address(life, first) + skip;
        let (ask, tenant) = (SubCommand::Read { command: number, life }, command.tenant);
        self.send_down(ask, Op::Read, (offset, bytes), tenant);
    }

    /// Reads a page that is written in part, or metadata of a separation, for a write.
    pub(super) fn read_for(&mut self, write: u32, life: u32, offset: u32) {
        let Some(found) = self.writes.get_mut(write) else { return };
        found.waits += 1;
        let tenant = found.tenant;
        let ask = SubCommand::Before { write, life };
        let range = (self.address(life, offset), self.sizes.page_bytes());
        self.send_down(ask, Op::Read, range, tenant);
    }

    /// A flush goes through.
    pub(super) fn flush(&mut self, number: u32, command: &Command) {
        self.requests.add_part(number);
        self.send_down(SubCommand::Flush { command: number }, Op::Flush, (0, 0), command.tenant);
    }

    /// A read of a life ends.
    pub(super) fn unpin(&mut self, life: u32) {
        self.lives.unpin(life);
        self.end_if_over(life);
    }

    /// The first byte of a place on the device.
    pub(super) fn address(&self, life: u32, offset: u32) -> u64 {
        self.sizes.address(self.lives.segment_of(life), offset)
    }

    /// The place of a page among all of the device.
    pub(super) fn cell(&self, life: u32, offset: u32) -> u64 {
        self.sizes.cell(self.lives.segment_of(life), offset)
    }

    /// Where places are followed, notes a read of a page.
    pub(super) fn check_read(&mut self, life: u32, offset: u32, page: u32) {
        self.stored.read(self.cell(life, offset), page);
    }
}

/// The device beneath, and what is under way on it.
pub struct Beneath {
    device: AnyDevice,
    /// How the store used it.
    used: Use,
    /// What each command is for; its tag is the number.
    commands: Slab<SubCommand>,
    due_ns: u64,
    /// Kept for its memory.
    done: Vec<Completion>,
}

impl Beneath {
    /// An idle device.
    pub fn new(device: AnyDevice) -> Beneath {
        let (used, commands, done) = (Use::default(), Slab::default(), Vec::new());
        let mut beneath = Beneath { device, used, commands, due_ns: u64::MAX, done };
        beneath.look_inside();
        beneath
    }

    fn look_inside(&mut self) {
        self.due_ns = self.device.next_due().map_or(u64::MAX, |due| due.0);
    }

    /// Sends a command of bytes `(first, length)`.
    pub fn send(
        &mut self,
        now_ns: u64,
        command: SubCommand,
        op: Op,
        range: (u64, u64),
        tenant: TenantId,
    ) {
        let tag = self.commands.insert(command) as u64;
        let (offset, length) = (Bytes(range.0), Bytes(range.1));
        self.used.submitted(Nanos(now_ns), op, length);
        self.device.submit(Nanos(now_ns), Command { tag, op, offset, length, tenant });
        self.look_inside();
    }

    /// When the device is due; never if nothing is under way.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Lets the device work up to `now_ns`; returns the commands that are done, each to be ended
    /// with [`Beneath::end`], all to be handed back with [`Beneath::keep`].
    pub fn advance(&mut self, now_ns: u64) -> Vec<Completion> {
        let mut done = std::mem::take(&mut self.done);
        self.device.advance(Nanos(now_ns), &mut done);
        self.look_inside();
        done
    }

    /// Ends a command that is done; returns what it was for.
    pub fn end(&mut self, done: &Completion) -> Option<SubCommand> {
        self.used.completed(done.finished);
        self.commands.try_remove(done.tag as usize)
    }

    /// Keeps the memory of commands that have been ended.
    pub fn keep(&mut self, mut done: Vec<Completion>) {
        done.clear();
        self.done = done;
    }

    /// Commands under way.
    pub fn open(&self) -> usize {
        self.commands.len()
    }

    /// How the device was used until now.
    pub fn report(&self, now: Nanos) -> DeviceUse {
        DeviceUse::new(&self.used, self.device.report(now))
    }

    /// Checks the device, and that its commands are known. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.device.audit().map_err(|error| format!("beneath: {error}"))?;
        let (inside, known) = (self.device.outstanding(), self.commands.len());
        if inside == known {
            Ok(())
        } else {
            Err(format!("{inside} commands are beneath, {known} are known"))
        }
    }
}
