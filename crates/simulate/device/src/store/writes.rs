//! Writes and trims of a store: pages on their way to the device, and the commands that append
//! them.
//!
//! A page is ready when what it needs is in memory. Ready pages side by side in an open segment are
//! one command, those of requests first. A place is a life and a page within its segment. Units:
//! pages.

use super::log_store::{LogStore, OpenPageWrite, PageOwner, PagePlace, SubCommand};
use super::segments::ReadyRun;
use crate::{Command, Spent, SpentPart};
use cachewright_ftl::{Address, HostRequest};
use cachewright_types::{Op, TenantId};
use hashbrown::HashMap;
use slab::Slab;

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
        let depth = self.settings.append_depth;
        let run = self.lives.begin_append(life, of_requests, depth, self.sizes.max_pages());
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

/// Pages on their way, by number and by place.
#[derive(Clone, Debug, Default)]
pub struct PageWrites {
    writes: Slab<OpenPageWrite>,
    /// The page on its way to each place.
    places: HashMap<(u32, u32), u32, foldhash::fast::FixedState>,
}

impl PageWrites {
    /// A page is on its way; returns its number.
    pub fn begin(&mut self, write: OpenPageWrite) -> u32 {
        let place = (write.life, write.offset);
        let number = self.writes.insert(write) as u32;
        self.places.insert(place, number);
        number
    }

    /// A page on its way.
    pub fn get(&self, number: u32) -> Option<&OpenPageWrite> {
        self.writes.get(number as usize)
    }

    /// A page on its way, to be changed.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut OpenPageWrite> {
        self.writes.get_mut(number as usize)
    }

    /// Where the page of a place can be read: there, or on its way to it.
    pub fn source_of(&self, life: u32, offset: u32) -> PagePlace {
        let coming =
            self.places.get(&(life, offset)).and_then(|write| self.writes.get(*write as usize));
        match coming {
            None => PagePlace::At { life, offset },
            Some(write) => match write.from {
                Some((life, offset)) => PagePlace::At { life, offset },
                None => PagePlace::Memory,
            },
        }
    }

    /// A page has arrived at a place; returns what was known of it.
    pub fn end(&mut self, life: u32, offset: u32) -> Option<OpenPageWrite> {
        let number = self.places.remove(&(life, offset))?;
        self.writes.try_remove(number as usize)
    }

    /// Pages on their way.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// All pages on their way.
    pub fn iter(&self) -> impl Iterator<Item = &OpenPageWrite> {
        self.writes.iter().map(|(_, write)| write)
    }

    /// Checks that every page goes to a place of its own. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        let (pages, places) = (self.writes.len(), self.places.len());
        if pages == places {
            Ok(())
        } else {
            Err(format!("{pages} pages are on their way to {places} places"))
        }
    }
}
/// A place without a page.
const NOTHING: u32 = u32::MAX;

/// What lies where; nothing is known until it is followed.
#[derive(Clone, Debug, Default)]
pub struct StoredPages {
    by_place: Option<Vec<u32>>,
    /// Reads of a place where the page was not.
    lost: u64,
}

impl StoredPages {
    /// Follows so many places from now on, which hold `pages`: place and page.
    pub fn follow(&mut self, places: usize, pages: impl Iterator<Item = (u64, u32)>) {
        let mut by_place = vec![NOTHING; places];
        for (place, page) in pages {
            by_place[place as usize] = page;
        }
        self.by_place = Some(by_place);
    }

    /// A page has arrived at a place.
    pub fn write(&mut self, place: u64, page: u32) {
        if let Some(by_place) = &mut self.by_place {
            by_place[place as usize] = page;
        }
    }

    /// A page is read at a place.
    pub fn read(&mut self, place: u64, page: u32) {
        self.lost += u64::from(!self.holds(place, page));
    }

    /// Places from `first` on are reset.
    pub fn reset(&mut self, first: u64, places: u32) {
        if let Some(by_place) = &mut self.by_place {
            by_place[first as usize..][..places as usize].fill(NOTHING);
        }
    }

    /// Whether a place holds a page, as far as is known.
    pub fn holds(&self, place: u64, page: u32) -> bool {
        self.by_place.as_ref().is_none_or(|pages| pages[place as usize] == page)
    }

    /// Checks that every page was read where it was. Errors: how many were not, in words.
    pub fn audit(&self) -> Result<(), String> {
        if self.lost == 0 {
            Ok(())
        } else {
            Err(format!("{} pages were read where they were not", self.lost))
        }
    }
}
