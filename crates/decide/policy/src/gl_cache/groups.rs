//! The blocks of GL-Cache in groups, those chosen to leave, and those that left while observed.
//!
//! For: `gl-cache`. Must never know: models, which group is chosen. A row is the number of an
//! observation; blocks that leave keep the row of their group. Memory: 32 bytes per id, 4 per
//! resident block.

use super::group_list::{Group, GroupList, NO_ROW};
use crate::links::Links;
use crate::renumber::Renumbering;
use crate::stored::BlockStore;
use cachewright_memory::{lengthen, prefetch};
use cachewright_types::BlockId;

/// In place of the number of a group.
const OUT: u32 = u32::MAX;
const LEAVING: u32 = u32::MAX - 1;
const GHOST: u32 = u32::MAX - 2;

/// The lists of blocks outside groups.
const LEAVING_LIST: usize = 0;
const GHOST_LIST: usize = 1;

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupPlace {
    /// Nowhere.
    Out,
    /// In the group of this number.
    Group(u32),
    /// In the cache, chosen to leave.
    Leaving,
    /// Outside the cache, observed.
    Ghost,
}

#[derive(Clone, Copy, Debug)]
struct GroupedBlock {
    group: u32,
    /// Its place among the blocks of the group.
    place: u32,
    /// The time of its last use.
    used: u32,
    hits: u16,
    /// Whether it was hit since its group was made.
    is_active: bool,
}

const NOWHERE: GroupedBlock =
    GroupedBlock { group: OUT, place: 0, used: 0, hits: 0, is_active: false };

/// The groups; see the top of the file.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    blocks: Vec<GroupedBlock>,
    list: GroupList,
    /// Blocks that leave and ghosts, each with its row.
    outside: Links<u32, 2>,
    resident: u32,
    /// Room for a merge.
    scored: Vec<(f32, BlockId)>,
}

impl Groups {
    /// Where a block is.
    #[inline(always)]
    pub fn place_of(&self, block: BlockId) -> GroupPlace {
        match self.blocks[block.index()].group {
            OUT => GroupPlace::Out,
            LEAVING => GroupPlace::Leaving,
            GHOST => GroupPlace::Ghost,
            group => GroupPlace::Group(group),
        }
    }

    /// The time of the last use of a block that is tracked.
    #[inline(always)]
    pub fn used(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].used
    }

    /// The groups in the order of writing.
    #[inline(always)]
    pub fn list(&self) -> &GroupList {
        &self.list
    }

    /// A group.
    #[inline(always)]
    pub fn group(&self, number: u32) -> &Group {
        self.list.get(number)
    }

    /// Observes a group by a row.
    pub fn set_row(&mut self, group: u32, row: u32) {
        self.list.get_mut(group).row = row;
    }

    /// Ends all observations, and forgets ghosts.
    pub fn clear_rows(&mut self) {
        self.list.iter_mut().for_each(|group| group.row = NO_ROW);
        while let Some(block) = self.outside.pop_tail(GHOST_LIST) {
            self.blocks[block.index()] = NOWHERE;
        }
        let leaving: Vec<BlockId> = self.outside.iter(LEAVING_LIST).collect();
        leaving.into_iter().for_each(|block| *self.outside.tag_mut(block) = NO_ROW);
    }

    /// The row that observes a block outside groups.
    #[inline(always)]
    pub fn row_outside(&self, block: BlockId) -> u32 {
        self.outside.tag(block)
    }

    /// Counts a hit of a block in a group.
    #[inline(always)]
    pub fn hit(&mut self, group: u32, block: BlockId, now: u32) {
        let (group, block) = (self.list.get_mut(group), &mut self.blocks[block.index()]);
        group.hits += 1;
        group.active += u32::from(!block.is_active);
        *block = GroupedBlock {
            hits: block.hits.saturating_add(1),
            is_active: true,
            used: now,
            ..*block
        };
    }

    /// Opens a group; the one before is closed.
    pub fn open_group(&mut self, now: u32) {
        self.list.open_group(now);
    }

    /// Puts a block that is out, or that waits to leave, into the open group, which there must be.
    #[inline(always)]
    pub fn enter(&mut self, block: BlockId, now: u32) {
        let Some(open) = self.list.open() else { return };
        let before = self.blocks[block.index()];
        let mut hits = 0;
        if before.group == LEAVING {
            self.outside.unlink(LEAVING_LIST, block);
            hits = before.hits.saturating_add(1);
        } else {
            self.resident += 1;
        }
        let blocks = &mut self.list.get_mut(open).blocks;
        let place = blocks.len() as u32;
        blocks.push(block);
        self.blocks[block.index()] =
            GroupedBlock { group: open, place, used: now, hits, is_active: false };
    }

    /// Merges a group with the next newer one: `kept` blocks stay, those with most uses per age;
    /// the others are to leave, the least first.
    pub fn merge(&mut self, first: u32, second: u32, kept: usize, now: u32) {
        let rows = [first, second].map(|group| self.group(group).row);
        let border = self.score_blocks(first, now, 0);
        self.score_blocks(second, now, border);
        let mut order: Vec<u32> = (0..self.scored.len() as u32).collect();
        let scored = std::mem::take(&mut self.scored);
        let score = |index: &u32| scored[*index as usize].0;
        order.sort_by(|first, second| score(second).total_cmp(&score(first)));
        let stays = kept.min(order.len());
        for index in order[stays..].iter().rev() {
            let (_, block) = scored[*index as usize];
            self.set_leaving(block, rows[usize::from(*index as usize >= border)]);
        }
        let group = self.list.merge(first, second, now);
        for (place, index) in order[..stays].iter().enumerate() {
            let (_, block) = scored[*index as usize];
            group.blocks.push(block);
            let state = &mut self.blocks[block.index()];
            (state.group, state.place) = (first, place as u32);
            (state.hits, state.is_active) = (state.hits.div_ceil(2), false);
        }
        self.scored = scored;
    }

    /// All blocks of a group are to leave, the least first, and the group goes.
    pub fn dissolve(&mut self, group: u32, now: u32) {
        let row = self.group(group).row;
        self.score_blocks(group, now, 0);
        let mut scored = std::mem::take(&mut self.scored);
        scored.sort_by(|first, second| second.0.total_cmp(&first.0));
        for (_, block) in scored.iter().rev() {
            self.set_leaving(*block, row);
        }
        self.scored = scored;
        self.list.remove(group);
    }

    /// Notes the blocks of a group with their uses per age, behind `first` others; returns how many
    /// there are then.
    fn score_blocks(&mut self, group: u32, now: u32, first: usize) -> usize {
        self.scored.truncate(first);
        for block in &self.list.get(group).blocks {
            let state = self.blocks[block.index()];
            let age = now.wrapping_sub(state.used);
            let score = (f32::from(state.hits) + 1.0) / (age as f32 + 1.0);
            self.scored.push((score, *block));
        }
        self.scored.len()
    }

    fn set_leaving(&mut self, block: BlockId, row: u32) {
        self.blocks[block.index()].group = LEAVING;
        self.outside.push_head(LEAVING_LIST, block);
        *self.outside.tag_mut(block) = row;
    }

    /// The next block to leave leaves; it becomes a ghost if `is_observed` of its last use and row.
    #[inline(always)]
    pub fn pop_leaving(&mut self, is_observed: impl Fn(u32, u32) -> bool) -> Option<BlockId> {
        let block = self.outside.pop_tail(LEAVING_LIST)?;
        self.resident -= 1;
        let row = self.outside.tag(block);
        let state = &mut self.blocks[block.index()];
        if row != NO_ROW && is_observed(state.used, row) {
            state.group = GHOST;
            self.outside.push_head(GHOST_LIST, block);
        } else {
            *state = NOWHERE;
        }
        Some(block)
    }

    /// The block that [`Groups::pop_leaving`] takes after so many others.
    #[inline(always)]
    pub fn leaving(&self, later: u32) -> Option<BlockId> {
        self.outside.near_tail(LEAVING_LIST, later)
    }

    /// A ghost is out.
    #[inline(always)]
    pub fn take_ghost(&mut self, block: BlockId) {
        self.outside.unlink(GHOST_LIST, block);
        self.blocks[block.index()] = NOWHERE;
    }

    /// Forgets the ghosts that left first, beyond a limit.
    #[inline(always)]
    pub fn trim_ghosts(&mut self, limit: u32) {
        while self.ghosts() > limit
            && let Some(block) = self.outside.tail(GHOST_LIST)
        {
            self.take_ghost(block);
        }
    }

    /// Ghosts.
    pub fn ghosts(&self) -> u32 {
        self.outside.len(GHOST_LIST)
    }

    fn remove_from_group(&mut self, number: u32, block: BlockId) {
        let GroupedBlock { place, is_active, .. } = self.blocks[block.index()];
        let group = self.list.get_mut(number);
        group.active -= u32::from(is_active);
        group.blocks.swap_remove(place as usize);
        if let Some(moved) = group.blocks.get(place as usize) {
            self.blocks[moved.index()].place = place;
        }
        if group.blocks.is_empty() && self.list.open() != Some(number) {
            self.list.remove(number);
        }
    }
}

impl BlockStore for Groups {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        !matches!(self.place_of(block), GroupPlace::Out | GroupPlace::Ghost)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.blocks[block.index()].group != OUT
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.resident
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = self.contains(block);
        match self.place_of(block) {
            GroupPlace::Out => {}
            GroupPlace::Group(group) => self.remove_from_group(group, block),
            GroupPlace::Leaving => self.outside.unlink(LEAVING_LIST, block),
            GroupPlace::Ghost => self.outside.unlink(GHOST_LIST, block),
        }
        self.resident -= u32::from(resident);
        self.blocks[block.index()] = NOWHERE;
        resident
    }

    fn reserve_ids(&mut self, count: usize, _: u32, _: u32) {
        lengthen(&mut self.blocks, count, NOWHERE);
        self.outside.reserve_ids(count);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        ids.close_up(&mut self.blocks, 0);
        self.outside.renumber(ids);
        for block in self.list.iter_mut().flat_map(|group| &mut group.blocks) {
            *block = ids.get(*block).unwrap_or(*block);
        }
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        prefetch(&self.blocks, block.index());
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.outside.audit()?;
        let mut grouped = 0;
        for number in self.list.audited()? {
            let group = self.group(number);
            grouped += group.blocks.len() as u32;
            let mut active = 0;
            for (place, block) in group.blocks.iter().enumerate() {
                let state = self.blocks[block.index()];
                active += u32::from(state.is_active);
                if (state.group, state.place as usize) != (number, place) {
                    return Err(format!("block {} of group {} is elsewhere", block.0, number));
                }
            }
            if active != group.active {
                return Err(format!("group {}: {active} active blocks", number));
            }
        }
        let held = grouped + self.outside.len(LEAVING_LIST);
        if held != self.resident || held > capacity {
            return Err(format!("{held} blocks, {} counted, of {capacity}", self.resident));
        }
        let tracked = self.blocks.iter().filter(|block| block.group != OUT).count() as u32;
        if tracked != held + self.ghosts() {
            return Err(format!("{tracked} blocks tracked, {held} and {} found", self.ghosts()));
        }
        Ok(())
    }
}
