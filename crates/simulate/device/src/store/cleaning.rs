//! Cleaning: what the translation layer decided becomes reads, appends and resets.
//!
//! For: moves of live pages, segments reset once nothing of them is needed, metadata of
//! separations. Must never know: how victims are chosen. Units: pages, segments. The layer counts a
//! page as moved at once; here it is read at its old place, which lasts until the page has arrived.

use super::log_store::LogStore;
use super::move_queue::Gathering;
use super::under_way::{PageOwner, PagePlace, SubCommand};
use cachewright_ftl::Address;
use cachewright_ftl::layer::LayerStep;
use cachewright_types::{Op, TenantId};
use std::cmp::Reverse;

/// The name of a page of a separation's own.
const META: u32 = u32::MAX;

impl LogStore {
    /// Makes work of what the layer has ordered.
    pub(super) fn carry_out(&mut self) {
        if !self.translation.has_ordered() {
            return;
        }
        let ordered = self.translation.take_ordered();
        for step in &ordered {
            match *step {
                LayerStep::Move { page, from, to } => self.relocate(page, from, to),
                LayerStep::Erase { block } => {
                    let ending = self.lives.condemn(block);
                    self.end_if_over(ending);
                }
                LayerStep::Meta { to } => {
                    let write = self.aim(META, to, PageOwner::Meta, None);
                    self.ready_if_complete(write);
                }
                LayerStep::MetaRead { owner } => self.translation.need_metadata(owner.block),
            }
        }
        self.translation.keep(ordered);
    }

    /// A live page goes from its segment to another.
    fn relocate(&mut self, page: u32, from: Address, to: Address) {
        let victim = self.lives.life_of(from.block);
        let place = self.writes.source_of(victim, from.offset);
        self.lives.begin_move(victim);
        let PagePlace::At { life, offset } = place else {
            let write = self.aim(page, to, PageOwner::Move(victim), None);
            return self.ready_if_complete(write);
        };
        let write = self.aim(page, to, PageOwner::Move(victim), Some((life, offset)));
        if let Some(found) = self.writes.get_mut(write) {
            found.waits = 1;
        }
        if self.moves.note(life, offset, write, self.sizes.max_pages()) {
            self.lives.pin(life);
        }
    }

    /// Reads the oldest pages that are to move. False when there are none.
    pub(super) fn gather(&mut self) -> bool {
        let Some(Gathering { life, first, writes }) = self.moves.begin_next() else {
            return false;
        };
        for (write, offset) in writes.iter().zip(first..) {
            let page = self.writes.get(*write).map_or(META, |write| write.page);
            self.check_read(life, offset, page);
        }
        self.stats.reads.moves += 1;
        let range = (self.address(life, first), writes.len() as u64 * self.sizes.page_bytes());
        self.send_down(SubCommand::Gather { life, writes }, Op::Read, range, TenantId(0));
        true
    }

    /// Pages to be moved are in memory.
    pub(super) fn gathered(&mut self, life: u32, writes: &[u32]) {
        for write in writes {
            if let Some(found) = self.writes.get_mut(*write) {
                (found.from, found.waits) = (None, 0);
            }
            self.ready_if_complete(*write);
        }
        self.unpin(life);
    }

    /// Reads the metadata that the layer wanted for a write, where it lies on the device.
    pub(super) fn read_metadata(&mut self, write: u32) {
        let last = self.sizes.segment_pages() - 1;
        for segment in self.translation.take_sealed_metadata() {
            let life = self.lives.life_of(segment);
            if self.writes.source_of(life, last) != PagePlace::Memory {
                self.stats.reads.meta += 1;
                self.lives.pin(life);
                self.read_for(write, life, last);
            }
        }
    }

    /// Resets the segment of a life of which nothing is needed any more.
    pub(super) fn end_if_over(&mut self, life: u32) {
        if self.lives.begin_reset(life) {
            let range = (self.address(life, 0), self.sizes.segment_bytes());
            self.send_down(SubCommand::Reset { life }, Op::Trim, range, TenantId(0));
        }
    }

    /// The device has forgotten a segment, which may take some time more.
    pub(super) fn trimmed(&mut self, life: u32) {
        let after_ns = self.settings.reset_time.0;
        if after_ns == 0 {
            self.reset(life);
        } else {
            self.resets.push(Reverse((self.now_ns + after_ns, life)));
        }
    }

    /// A segment is reset: pages given to it can be written.
    pub(super) fn reset(&mut self, life: u32) {
        self.stored.reset(self.cell(life, 0), self.sizes.segment_pages());
        if let Some(opened) = self.lives.end(life, self.now_ns) {
            self.end_if_over(opened);
        }
        self.stats.resets += 1;
    }
}
