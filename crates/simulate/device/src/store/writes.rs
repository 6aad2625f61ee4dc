//! Writes: pages on their way to the device, and the commands that append them.
//!
//! For: writes and trims of requests, and the order of appends. Must never know: how segments are
//! chosen. Units: pages. A page is ready when what it needs is in memory. Ready pages side by side
//! in an open segment are one command, those of requests first.

use super::log_store::LogStore;
use super::under_way::{PageOwner, PagePlace, PageWrite, SubCommand};
use crate::{Command, Part, Spent};
use cachewright_ftl::{Address, HostRequest};
use cachewright_types::{Op, TenantId};

impl LogStore {
    /// Begins a write of a request.
    pub(super) fn write(&mut self, number: u32, command: &Command) {
        let pages = self.pages(command.offset, command.length);
        if pages.is_empty() {
            return;
        }
        let (first_page, count) = (pages.start, pages.len() as u32);
        let request = HostRequest { first_page, pages: count, write: true };
        self.layer.begin(command.tenant.0, &request);
        for page in pages {
            self.write_page(number, command, page);
        }
        self.layer.end(&mut self.steps);
        self.carry_out();
    }

    fn write_page(&mut self, number: u32, command: &Command, page: u32) {
        let first_byte = u64::from(page) * self.page_bytes;
        let end = command.offset.0 + command.length.0;
        let whole = command.offset.0 <= first_byte && end >= first_byte + self.page_bytes;
        let before = if whole { PagePlace::Nowhere } else { self.place_of(page) };
        if let PagePlace::At { life, offset } = before {
            // The old copy must stay until it is read, whatever is cleaned for this write.
            self.pin(life);
            self.check_read(life, offset, page);
        }
        if let Err(error) = self.layer.write(page, &mut self.steps) {
            self.fault.get_or_insert(error);
            if let PagePlace::At { life, .. } = before {
                self.unpin(life);
            }
            self.carry_out();
            return;
        }
        let to = self.steps.program;
        self.carry_out();
        self.more_parts(number);
        let write = self.aim(page, to, PageOwner::Request(number), None);
        if let Some(found) = self.writes.get_mut(write) {
            found.tenant = command.tenant;
        }
        if let PagePlace::At { life, offset } = before {
            self.stats.update_reads += 1;
            self.read_for(write, life, offset);
        }
        self.read_metadata(write);
        self.ready_if_complete(write);
    }

    /// Forgets pages that a trim covers whole.
    pub(super) fn trim(&mut self, command: &Command) {
        let end = command.offset.0.saturating_add(command.length.0) / self.page_bytes;
        let end = end.min(self.logical_pages.into());
        for page in command.offset.0.div_ceil(self.page_bytes)..end {
            if let Err(error) = self.layer.trim(page as u32) {
                self.fault.get_or_insert(error);
            }
        }
    }

    /// A page is on its way to a place.
    pub(super) fn aim(
        &mut self,
        page: u32,
        to: Address,
        owner: PageOwner,
        from: Option<(u32, u32)>,
    ) -> u32 {
        let (life, offset) = (self.lives.life_of(to.block), to.offset);
        let write = self.writes.insert(PageWrite {
            page,
            owner,
            tenant: TenantId(0),
            life,
            offset,
            from,
            waits: 0,
            arrived_ns: self.now_ns,
            spent: Spent::default(),
        });
        self.writing.insert((life, offset), write);
        if let Some(found) = self.lives.get_mut(life) {
            found.pending += 1;
            if matches!(owner, PageOwner::Request(_)) {
                found.host_pending += 1;
                let held = u32::from(!found.is_open());
                self.blocked += held;
                self.stats.held_pages += u64::from(held);
            }
        }
        write
    }

    /// A page whose reads are done can be written.
    pub(super) fn ready_if_complete(&mut self, write: u32) {
        let Some(PageWrite { owner, life, offset, waits: 0, .. }) = self.writes.get(write).copied()
        else {
            return;
        };
        if let Some(found) = self.lives.get_mut(life) {
            let ready = match owner {
                PageOwner::Request(_) => &mut found.host,
                PageOwner::Move(_) | PageOwner::Meta => &mut found.moves,
            };
            ready.insert(offset, write);
            self.active.insert(life);
        }
    }

    /// Appends to an open life what is ready from its first such page on: of requests, or else of
    /// cleaning. False when there is nothing or the segment has enough under way.
    pub(super) fn append(&mut self, life: u32, of_requests: bool) -> bool {
        let (depth, max_pages) = (self.settings.append_depth, self.max_pages);
        let Some(found) = self.lives.get_mut(life) else { return false };
        if !found.is_open() || found.under_way >= depth {
            return false;
        }
        let ready = if of_requests { &found.host } else { &found.moves };
        let Some((first, write)) =
            ready.first_key_value().map(|(address, write)| (*address, *write))
        else {
            return false;
        };
        let mut pages = 0;
        while pages < max_pages
            && found
                .host
                .remove(&(first + pages))
                .or(found.moves.remove(&(first + pages)))
                .is_some()
        {
            pages += 1;
        }
        found.under_way += 1;
        if found.host.is_empty() && found.moves.is_empty() {
            self.active.remove(&life);
        }
        self.moving += u32::from(!of_requests);
        self.stats.appends += 1;
        self.stats.appended_pages += u64::from(pages);
        let tenant = self.writes.get(write).map_or(TenantId(0), |write| write.tenant);
        let range = (self.address(life, first), u64::from(pages) * self.page_bytes);
        self.send_down(
            SubCommand::Append { life, first, pages, of_requests },
            Op::Write,
            range,
            tenant,
        );
        true
    }

    /// Pages have arrived on the device with a command that began at `began_ns`.
    pub(super) fn appended(
        &mut self,
        life: u32,
        pages: std::ops::Range<u32>,
        began_ns: u64,
        spent: &Spent,
    ) {
        let opened_ns = self.lives.get(life).map_or(0, |life| life.opened_ns);
        for offset in pages {
            let arrived = self.writing.remove(&(life, offset));
            let Some(write) = arrived.and_then(|write| self.writes.take(write)) else { continue };
            let cell = self.cell(life, offset);
            if let Some(stored) = &mut self.stored {
                stored[cell] = write.page;
            }
            if let Some(found) = self.lives.get_mut(life) {
                found.pending -= 1;
                found.host_pending -= u32::from(matches!(write.owner, PageOwner::Request(_)));
            }
            match write.owner {
                PageOwner::Request(command) => {
                    let mut path = write.spent;
                    let since_ns = write.arrived_ns + path.total_ns();
                    let waited_ns = began_ns - since_ns;
                    let segment_ns = opened_ns.saturating_sub(since_ns).min(waited_ns);
                    path.add(Part::Segment, segment_ns);
                    path.add(Part::Queue, waited_ns - segment_ns);
                    path.then(spent);
                    self.part_done(command, path);
                }
                PageOwner::Move(victim) => {
                    if let Some(victim) = self.lives.get_mut(victim) {
                        victim.moves_left -= 1;
                    }
                    self.end_if_over(victim);
                }
                PageOwner::Meta => {}
            }
        }
        if let Some(found) = self.lives.get_mut(life) {
            found.under_way -= 1;
        }
        self.end_if_over(life);
    }
}
