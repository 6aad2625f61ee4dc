//! Reads: where each page lies now, and commands of pages that lie side by side.
//!
//! For: reads and flushes of requests, and reads of what a write needs. Must never know: how
//! segments are cleaned. Units: pages, bytes. The device reads only the bytes asked for.

use super::log_store::LogStore;
use super::under_way::{PagePlace, SubCommand};
use crate::Command;
use cachewright_ftl::HostRequest;
use cachewright_types::Op;

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
