//! Who leaves: the least of a draw, and what lies beside it.
//!
//! For: `rc-x`. Must never know: what comes in, addresses. Units: blocks, accesses.
//!
//! Blocks that came in one after the other lie at places in a row, and those that were also used
//! one after the other the last time are a *run*: mostly neighbours on the volume. A run leaves as
//! a whole, where no block of it is worth much more than the one that was drawn, and what comes in
//! takes its places in the same order. A block is known by its last access, which is no other's:
//! so that a run ends where one of its blocks was used or has gone meanwhile.

use super::RcX;
use super::trail::Trail;
use cachewright_types::BlockId;

/// Of so many blocks of the capacity one is kept free, so that blocks leave ahead of need.
const FREE_ONE_OF: u32 = 100;
/// Blocks that leave together, at most.
const LONGEST_RUN: u32 = 256;
/// Worths of the block drawn that another of its run may have.
const MUCH_MORE: f32 = 4.0;
/// Blocks drawn before the first of them is looked at, so that their loads overlap.
const TOGETHER: usize = 16;

impl RcX {
    /// Blocks kept free.
    fn reserve(&self) -> u32 {
        self.capacity / FREE_ONE_OF
    }

    /// Whether what comes in makes others leave.
    pub(super) fn is_full(&self) -> bool {
        self.held.len() + self.reserve() >= self.capacity
    }

    /// Whether less is free than shall be.
    #[inline(always)]
    pub(super) fn lacks_reserve(&self) -> bool {
        self.held.len() + self.reserve() > self.capacity
    }

    /// The place of the block that leaves a full cache for one that comes in.
    pub(super) fn next_to_leave(&mut self) -> u32 {
        let trail = self.trails.take_onwards().filter(|trail| self.held.has(trail));
        let trail = trail.unwrap_or_else(|| {
            let (first, end) = self.draw_run();
            Trail { place: first, last: self.held.at_place(first).last, left: end - first }
        });
        self.trails.go_onwards(trail);
        trail.place
    }

    /// Takes out a block that leaves ahead of need, of each run the last one first: so the blocks
    /// that come to lie in their places stay in order.
    pub(super) fn leave_ahead(&mut self) -> Option<BlockId> {
        let trail = match self.trails.take_backwards().filter(|trail| self.held.has(trail)) {
            Some(trail) => trail,
            None if self.lacks_reserve() && self.held.len() > 0 => {
                let (first, end) = self.draw_run();
                let last = self.held.at_place(end - 1).last;
                Trail { place: end - 1, last, left: end - first }
            }
            None => return None,
        };
        self.trails.go_backwards(trail);
        let block = self.take_out(trail.place);
        self.insert_ghost(block);
        Some(block)
    }

    /// Draws a block from the cache, which holds some, and its run: the first place, and the one
    /// after the last.
    fn draw_run(&mut self) -> (u32, u32) {
        let (place, worth) = self.draw();
        let leaves = |place: u32| self.worth_at(place).0 <= worth * MUCH_MORE;
        let (mut first, mut end) = (place, place + 1);
        while first > 0
            && end - first < LONGEST_RUN
            && self.held.is_in_row(first)
            && leaves(first - 1)
        {
            first -= 1;
        }
        while end - first < LONGEST_RUN && self.held.is_in_row(end) && leaves(end) {
            end += 1;
        }
        (first, end)
    }

    /// The worth of the room at a place, and how long its block has waited.
    #[inline(always)]
    fn worth_at(&self, place: u32) -> (f32, u32) {
        let held = self.held.at_place(place);
        let age = self.now.wrapping_sub(held.last);
        (self.tables.stays(held.class, age), age)
    }

    /// Draws blocks from the cache, which holds some; the place and worth of the one whose room is
    /// worth least, of equal ones the one that has waited longest.
    pub(super) fn draw(&mut self) -> (u32, f32) {
        let spare = self.draws.take_kept().map(|block| self.links.tag(block));
        let spare = spare.filter(|known| known.is_held());
        let first = match spare {
            Some(known) => known.place,
            None => self.draws.place(self.held.len()),
        };
        let (worth, age) = self.worth_at(first);
        let mut lowest = (first, worth, age);
        let mut second = None;
        let mut left = self.settings.sample.saturating_sub(u32::from(spare.is_none())) as usize;
        let mut places = [0; TOGETHER];
        while left > 0 {
            let drawn = &mut places[..left.min(TOGETHER)];
            left -= drawn.len();
            for place in drawn.iter_mut() {
                *place = self.draws.place(self.held.len());
                self.held.prefetch(*place);
            }
            for &mut place in drawn {
                let (worth, age) = self.worth_at(place);
                let below =
                    |than: (u32, f32, u32)| worth < than.1 || (worth == than.1 && age > than.2);
                if place == lowest.0 {
                    continue;
                }
                if below(lowest) {
                    second = Some(lowest);
                    lowest = (place, worth, age);
                } else if second.is_none_or(below) {
                    second = Some((place, worth, age));
                }
            }
        }
        self.draws.keep(second.map(|second| self.held.at_place(second.0).block));
        self.admission.set(lowest.1);
        (lowest.0, lowest.1)
    }

    /// Takes the block at a place out of the cache; the last one comes to lie there.
    pub(super) fn take_out(&mut self, place: u32) -> BlockId {
        let (gone, moved) = self.held.take_out(place);
        if let Some(moved) = moved {
            self.links.tag_mut(moved).place = place;
        }
        gone
    }
}
