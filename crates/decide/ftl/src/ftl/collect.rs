//! Reclaim: victims are chosen, emptied and erased.
//!
//! For: watermarks, the choice between separation and reclaim policy, the moves. Must never know:
//! how either decides. Units: superblocks, pages. A victim's valid pages always find room: one
//! superblock is free, and pages join another stream when their own would need one more.

use super::{Ftl, Trigger};
use crate::geometry::Space;
use crate::mapping::Table;
use crate::reclaim::Round;
use crate::separation::{MovedPage, Separation, Stream, VictimSource};
use crate::sink::{Address, Sink};
use crate::{Block, FtlError};

impl<S: Separation, M: Table> Ftl<S, M> {
    /// Cleans until so many superblocks are free.
    #[cold]
    #[inline(never)]
    pub(super) fn free_superblocks<K: Sink>(
        &mut self,
        reserve: u32,
        sink: &mut K,
    ) -> Result<(), FtlError> {
        let limit = self.blocks.len().saturating_mul(8).saturating_add(64);
        let mut rounds = 0;
        while self.heads.free() < reserve {
            if rounds == limit || !self.clean_one(sink) {
                let (free, reclaim) = (self.heads.free(), self.reclaim.name);
                return Err(FtlError::Full { free, reserve, reclaim, rounds });
            }
            rounds += 1;
        }
        Ok(())
    }

    /// Work of idle time: cleans at most `max_blocks` superblocks while fewer are free than the
    /// background watermark; returns how many it cleaned. Superblocks without an invalid page are
    /// left alone. Nothing is done in space that is limited by its share of garbage.
    pub fn clean_idle<K: Sink>(&mut self, max_blocks: u32, sink: &mut K) -> u32 {
        let Space::Fixed { idle_blocks, .. } = self.geometry.space else { return 0 };
        let mut cleaned = 0;
        while cleaned < max_blocks
            && self.heads.free() < idle_blocks
            && self.occupancy.garbage() > 0
            && self.clean_one(sink)
        {
            cleaned += 1;
        }
        cleaned
    }

    /// Empties and erases a superblock of the caller's choice, as wear levelling does. False, and
    /// nothing is done, if it is not sealed or no superblock is free to take its pages.
    pub fn clean<K: Sink>(&mut self, block: u32, sink: &mut K) -> bool {
        let able = self.blocks.is_sealed(block) && self.heads.free() > 0;
        if able {
            self.empty(block, sink);
        }
        able
    }

    /// Empties and erases one victim; false if there is none.
    #[cold]
    #[inline(never)]
    pub(super) fn clean_one<K: Sink>(&mut self, sink: &mut K) -> bool {
        match self.choose() {
            Some(victim) => {
                self.empty(victim, sink);
                true
            }
            None => false,
        }
    }

    fn choose(&mut self) -> Option<u32> {
        let free = self.heads.free();
        let streams = match self.separation.choose_victim(&mut self.blocks, free, self.clock) {
            VictimSource::Block(block) if self.blocks.is_sealed(block) => return Some(block),
            VictimSource::Among(streams) => streams,
            VictimSource::Any | VictimSource::Block(_) => u64::MAX,
        };
        self.blocks.settle();
        let round = Round {
            blocks: &self.blocks,
            clock: self.clock,
            streams,
            min_invalid: self.trigger.min_invalid(),
            short_lived: self.separation.short_lived(),
        };
        let found = self.reclaim.policy.choose(&round);
        if found.is_some() || streams == u64::MAX {
            return found;
        }
        self.reclaim.policy.choose(&Round { streams: u64::MAX, ..round })
    }

    /// Forgets the valid pages of a sealed superblock that are not to be kept.
    fn drop_pages<K: Sink>(&mut self, victim: u32, sink: &mut K) {
        let mut valid = std::mem::take(&mut self.moving);
        self.mapping.gather(victim, self.blocks.get(victim).pages, &mut valid);
        for (page, offset) in &valid {
            if !sink.keep(*page, Address { block: victim, offset: *offset }) {
                self.forget(*page, self.mapping.first(victim) + offset);
                self.counts.dropped_pages += 1;
            }
        }
        self.moving = valid;
    }

    /// Moves the valid pages of a sealed superblock, in the order of offsets, and erases it.
    fn empty<K: Sink>(&mut self, victim: u32, sink: &mut K) {
        if K::MAY_DROP {
            self.drop_pages(victim, sink);
        }
        let block = self.blocks.get(victim);
        self.separation.on_collect(&block, self.clock);
        self.blocks.withdraw(victim);
        let mut moving = std::mem::take(&mut self.moving);
        self.mapping.gather(victim, block.pages, &mut moving);
        for (page, offset) in &moving {
            self.relocate(&block, *page, *offset, sink);
        }
        self.counts.moved_pages += moving.len() as u64;
        self.counts.collections += 1;
        self.counts.reclaimed_pages += u64::from(block.invalid);
        self.occupancy.erase(block.invalid);
        self.moving = moving;
        self.blocks.erase(victim);
        self.heads.release(victim);
        sink.erase(victim);
        self.separation.on_erase(&block, self.clock);
    }

    #[inline(always)]
    fn relocate<K: Sink>(&mut self, victim: &Block, page: u32, offset: u32, sink: &mut K) {
        let moved = MovedPage { page, offset, victim, clock: self.clock };
        let mut stream = self.separation.place_moved(&moved);
        if self.heads.is_stuck(stream) {
            stream = self.stream_with_space(stream);
        }
        let address = self.append(stream, page, sink);
        sink.relocate(page, Address { block: victim.id, offset }, self.mapping.split(address));
    }

    /// A stream whose superblock has space, for a page that would need a superblock when none is
    /// free. The highest stream is taken: its pages are expected to stay longest. Space without end
    /// needs no such help.
    #[cold]
    #[inline(never)]
    fn stream_with_space(&mut self, wanted: Stream) -> Stream {
        if let Trigger::GarbageShare { .. } = self.trigger {
            return wanted;
        }
        let Some(stream) = self.heads.last_with_space() else { return wanted };
        self.counts.misplaced_pages += 1;
        stream
    }
}
