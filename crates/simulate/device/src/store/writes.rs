//! Writes: pages on their way to the device, and the commands that append them.
//!
//! For: writes and trims of requests, and the order of appends. Must never know: how segments are
//! chosen. Units: pages. A page is ready when what it needs is in memory. Ready pages side by side
//! in an open segment are one command, those of requests first.

use super::lives::ReadyRun;
use super::log_store::LogStore;
use super::under_way::{OpenPageWrite, PageOwner, PagePlace, SubCommand};
use crate::{Command, Spent, SpentPart};
use cachewright_ftl::{Address, HostRequest};
use cachewright_types::{Op, TenantId};

impl LogStore {
    /// Begins a write of a request.
    pub(super) fn write(&mut self, number: u32, command: &Command) {
        let pages = self.sizes.pages(command.offset, command.length);
        if pages.is_empty() {
            return;
        }
        let (first_page, count) = (pages.start, pages.len() as u32);
        let request = HostRequest { first_page, pages: count, write: true };
        self.translation.begin(command.tenant.0, &request);
        for page in pages {
            self.write_page(number, command, page);
        }
        self.translation.end();
        self.carry_out();
    }

    fn write_page(&mut self, number: u32, command: &Command, page: u32) {
        let first_byte = self.sizes.first_byte(page);
        let end = command.offset.0 + command.length.0;
        let whole = command.offset.0 <= first_byte && end >= first_byte + self.sizes.page_bytes();
        let before = if whole { PagePlace::Nowhere } else { self.place_of(page) };
        if let PagePlace::At { life, offset } = before {
            // The old copy must stay until it is read, whatever is cleaned for this write.
            self.lives.pin(life);
            self.check_read(life, offset, page);
        }
        let Some(to) = self.translation.write(page) else {
            if let PagePlace::At { life, .. } = before {
                self.unpin(life);
            }
            self.carry_out();
            return;
        };
        self.carry_out();
        self.requests.add_part(number);
        let write = self.aim(page, to, PageOwner::Request(number), None);
        if let Some(found) = self.writes.get_mut(write) {
            found.tenant = command.tenant;
        }
        if let PagePlace::At { life, offset } = before {
            self.stats.reads.update += 1;
            self.read_for(write, life, offset);
        }
        self.read_metadata(write);
        self.ready_if_complete(write);
    }

    /// Forgets pages that a trim covers whole.
    pub(super) fn trim(&mut self, command: &Command) {
        for page in self.sizes.whole_pages(command.offset, command.length) {
            self.translation.trim(page);
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
        let write = self.writes.begin(OpenPageWrite {
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
        let held = self.lives.await_page(life, owner.is_request());
        self.stats.held_pages += u64::from(held);
        write
    }

    /// A page whose reads are done can be written.
    pub(super) fn ready_if_complete(&mut self, write: u32) {
        let Some(OpenPageWrite { owner, life, offset, waits: 0, .. }) =
            self.writes.get(write).copied()
        else {
            return;
        };
        self.lives.make_ready(life, offset, write, owner.is_request());
    }

    /// Appends to an open life what is ready from its first such page on: of requests, or else of
    /// cleaning. False when there is nothing or the segment has enough under way.
    pub(super) fn append(&mut self, life: u32, of_requests: bool) -> bool {
        let bounds = (self.settings.append_depth, self.sizes.max_pages());
        let run = self.lives.begin_append(life, of_requests, bounds);
        let Some(ReadyRun { first, pages, write }) = run else { return false };
        if !of_requests {
            self.moves.begin();
        }
        self.stats.appends += 1;
        self.stats.appended_pages += u64::from(pages);
        let tenant = self.writes.get(write).map_or(TenantId(0), |write| write.tenant);
        let range = (self.address(life, first), u64::from(pages) * self.sizes.page_bytes());
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
        let opened_ns = self.lives.opened_ns(life);
        for offset in pages {
            let Some(write) = self.writes.end(life, offset) else { continue };
            self.stored.write(self.cell(life, offset), write.page);
            self.lives.arrive(life, write.owner.is_request());
            match write.owner {
                PageOwner::Request(command) => {
                    let mut path = write.spent;
                    let since_ns = write.arrived_ns + path.total_ns();
                    let waited_ns = began_ns - since_ns;
                    let segment_ns = opened_ns.saturating_sub(since_ns).min(waited_ns);
                    path.add(SpentPart::Segment, segment_ns);
                    path.add(SpentPart::Queue, waited_ns - segment_ns);
                    path.then(spent);
                    self.part_done(command, path);
                }
                PageOwner::Move(victim) => {
                    self.lives.end_move(victim);
                    self.end_if_over(victim);
                }
                PageOwner::Meta => {}
            }
        }
        self.lives.end_append(life);
        self.end_if_over(life);
    }
}
