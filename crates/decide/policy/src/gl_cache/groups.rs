//! The blocks of GL-Cache in groups, those chosen to leave, and those that left while observed.
//!
//! For: `gl-cache`. A row is the number of an observation; blocks that leave keep the row of their
//! group. Memory: 32 bytes per id, 4 per resident block.

use super::append_inputs;
use crate::links::Links;
use crate::renumber::Renumbering;
use crate::stored::BlockStore;
use cachewright_memory::{lengthen, prefetch};
use cachewright_model::learn::BoostedTrees;
use cachewright_snapshot::SnapshotValue;
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

#[derive(Clone, Copy, Debug, SnapshotValue)]
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
#[derive(Clone, Debug, Default, SnapshotValue)]
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

/// No row.
pub const NO_ROW: u32 = u32::MAX;

/// Blocks written or merged together.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct Group {
    /// In no order.
    pub blocks: Vec<BlockId>,
    /// When it was opened or merged.
    pub created: u32,
    /// Hits since then, and blocks hit.
    pub hits: u32,
    /// See `hits`.
    pub active: u32,
    /// Blocks written per access while it was open.
    pub miss_ratio: f32,
    /// Merges that made it.
    pub merges: u32,
    /// The row that observes it, or [`NO_ROW`].
    pub row: u32,
    /// Differs between all groups that ever were.
    pub stamp: u32,
}

/// The groups; see the top of the file.
///
/// The newest group is open, all others are closed. A stamp tells a group from others that had its
/// number before. Numbers and memory of groups that went are used again.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct GroupList {
    groups: Vec<Group>,
    unused: Vec<u32>,
    /// Numbers of groups; the newest is the head.
    order: Links<(), 1>,
    next_stamp: u32,
}

impl GroupList {
    /// A group.
    #[inline(always)]
    pub fn get(&self, number: u32) -> &Group {
        &self.groups[number as usize]
    }

    /// A group, to change.
    #[inline(always)]
    pub fn get_mut(&mut self, number: u32) -> &mut Group {
        &mut self.groups[number as usize]
    }

    /// The group that new blocks enter.
    #[inline(always)]
    pub fn open(&self) -> Option<u32> {
        self.order.head(0).map(|group| group.0)
    }

    /// The group written first.
    pub fn oldest(&self) -> Option<u32> {
        self.order.tail(0).map(|group| group.0)
    }

    /// The group written after another.
    pub fn newer(&self, group: u32) -> Option<u32> {
        self.order.newer(BlockId(group)).map(|group| group.0)
    }

    /// The next newer group, if it is closed: the two can be merged.
    pub fn newer_closed(&self, group: u32) -> Option<u32> {
        self.newer(group).filter(|newer| Some(*newer) != self.open())
    }

    /// All groups but the open one, oldest first.
    pub fn closed(&self) -> impl Iterator<Item = u32> + '_ {
        let first = self.oldest().filter(|oldest| Some(*oldest) != self.open());
        std::iter::successors(first, |group| self.newer_closed(*group))
    }

    /// Whether a group is there still that had this stamp.
    pub fn is_there(&self, group: u32, stamp: u32) -> bool {
        self.groups
            .get(group as usize)
            .is_some_and(|found| found.stamp == stamp && self.order.linked(BlockId(group)))
    }

    /// Opens a group; the one before is closed.
    pub fn open_group(&mut self, now: u32) {
        if let Some(open) = self.open() {
            let group = self.get_mut(open);
            let accesses = now.wrapping_sub(group.created).max(1);
            group.miss_ratio = group.blocks.len() as f32 / accesses as f32;
        }
        let number = self.unused.pop().unwrap_or_else(|| {
            self.groups.push(Group::default());
            self.order.reserve_ids(self.groups.len());
            self.groups.len() as u32 - 1
        });
        let mut blocks = std::mem::take(&mut self.get_mut(number).blocks);
        blocks.clear();
        let stamp = self.stamp();
        *self.get_mut(number) =
            Group { blocks, created: now, row: NO_ROW, stamp, ..Group::default() };
        self.order.push_head(0, BlockId(number));
    }

    /// Merges a group with the next newer one, which goes. Returns what comes of them, without
    /// blocks.
    pub fn merge(&mut self, first: u32, second: u32, now: u32) -> &mut Group {
        let other = self.get(second);
        let (miss_ratio, merges) = (other.miss_ratio, other.merges);
        self.remove(second);
        let stamp = self.stamp();
        let group = self.get_mut(first);
        group.blocks.clear();
        (group.created, group.hits, group.active) = (now, 0, 0);
        group.miss_ratio = (group.miss_ratio + miss_ratio) / 2.0;
        group.merges = group.merges.max(merges) + 1;
        (group.row, group.stamp) = (NO_ROW, stamp);
        group
    }

    /// A group goes.
    pub fn remove(&mut self, group: u32) {
        self.order.unlink(0, BlockId(group));
        self.get_mut(group).blocks.clear();
        self.unused.push(group);
    }

    /// All groups, those that went among them, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.iter_mut()
    }

    /// The numbers of all groups. Errors: their order is broken.
    pub fn audited(&self) -> Result<impl Iterator<Item = u32> + '_, String> {
        self.order.audit()?;
        Ok(self.order.iter(0).map(|number| number.0))
    }

    fn stamp(&mut self) -> u32 {
        self.next_stamp = self.next_stamp.wrapping_add(1);
        self.next_stamp
    }
}

/// Of so many groups one leaves between two rankings.
const RANKED_PART: usize = 50;

/// The order of merges; see the top of the file.
///
/// With a model it is the group of least predicted utility that has a closed next newer one, and
/// that one; groups are ranked again after a fiftieth of them has left. Without a model, and where
/// no ranked group can be merged, pairs follow in the order of writing.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct MergeOrder {
    model: Option<BoostedTrees>,
    /// Groups with their stamps by falling utility, and those to be taken before the next ranking.
    ranked: Vec<(u32, u32)>,
    to_rank: usize,
    /// The group to be merged next without a model, and its stamp.
    next_in_order: Option<(u32, u32)>,
    inputs: Vec<f32>,
    places: Vec<u16>,
    predictions: Vec<f32>,
}

impl MergeOrder {
    /// Groups are ranked by this model from now on.
    pub fn set_model(&mut self, model: BoostedTrees) {
        (self.model, self.to_rank) = (Some(model), 0);
    }

    /// The group to be merged next, and the next newer one; none if no two closed groups are left.
    pub fn next_pair(&mut self, groups: &GroupList, now: u32) -> Option<(u32, u32)> {
        self.ranked_pair(groups, now).or_else(|| self.pair_in_order(groups))
    }

    /// The closed group of least utility that can be merged, with the next newer one.
    fn ranked_pair(&mut self, groups: &GroupList, now: u32) -> Option<(u32, u32)> {
        self.model.as_ref()?;
        if self.to_rank == 0 {
            self.rank(groups, now);
        }
        self.to_rank = self.to_rank.saturating_sub(1);
        while let Some((group, stamp)) = self.ranked.pop() {
            if groups.is_there(group, stamp)
                && let Some(partner) = groups.newer_closed(group)
            {
                return Some((group, partner));
            }
        }
        self.to_rank = 0;
        None
    }

    /// The next pair in the order of writing, from the oldest on again at the end.
    fn pair_in_order(&mut self, groups: &GroupList) -> Option<(u32, u32)> {
        let next = self.next_in_order.filter(|(group, stamp)| groups.is_there(*group, *stamp));
        let pair = |group: u32| groups.newer_closed(group).map(|partner| (group, partner));
        let again = || groups.oldest().and_then(pair);
        let found = next.and_then(|(group, _)| pair(group)).or_else(again)?;
        let after = groups.newer(found.1);
        self.next_in_order = after.map(|group| (group, groups.get(group).stamp));
        Some(found)
    }

    /// Ranks all closed groups by predicted utility, the oldest first of equals.
    #[cold]
    fn rank(&mut self, groups: &GroupList, now: u32) {
        let Some(model) = &self.model else { return };
        self.inputs.clear();
        self.ranked.clear();
        for number in groups.closed() {
            let group = groups.get(number);
            append_inputs(group, now, &mut self.inputs);
            self.ranked.push((number, group.stamp));
        }
        model.predict_all(&self.inputs, &mut self.places, &mut self.predictions);
        let mut order: Vec<usize> = (0..self.ranked.len()).collect();
        order.sort_by(|first, second| {
            self.predictions[*first].total_cmp(&self.predictions[*second])
        });
        self.ranked = order.into_iter().rev().map(|index| self.ranked[index]).collect();
        self.to_rank = self.ranked.len().div_ceil(RANKED_PART);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gl_cache::INPUTS;
    use cachewright_model::learn::BoostingSettings;
    use cachewright_types::Seed;

    fn closed(list: &GroupList) -> Vec<u32> {
        list.closed().collect()
    }

    #[test]
    fn groups_stand_in_the_order_of_writing() {
        let mut list = GroupList::default();
        assert_eq!((list.open(), list.oldest(), closed(&list)), (None, None, vec![]));
        for now in [10, 20, 40] {
            list.open_group(now);
            list.get_mut(now / 20).blocks.extend([BlockId(now), BlockId(now + 1)]);
        }
        assert_eq!((list.open(), list.oldest(), closed(&list)), (Some(2), Some(0), vec![0, 1]));
        assert_eq!([0, 1].map(|group| list.newer_closed(group)), [Some(1), None]);
        assert_eq!([0, 1].map(|group| list.get(group).miss_ratio), [0.2, 0.1]);
    }

    #[test]
    fn a_merge_makes_another_group_of_the_first() {
        let mut list = GroupList::default();
        (0..3).for_each(|now| list.open_group(now));
        let stamps = [0, 1].map(|group| list.get(group).stamp);
        list.merge(0, 1, 9).blocks.push(BlockId(7));
        assert_eq!((list.get(0).created, list.get(0).merges, list.get(0).row), (9, 1, NO_ROW));
        assert!(!list.is_there(0, stamps[0]) && !list.is_there(1, stamps[1]));
        assert!(list.is_there(0, list.get(0).stamp));
        assert_eq!(closed(&list), [0]);
        list.open_group(12);
        assert_eq!((list.open(), closed(&list)), (Some(1), vec![0, 2]));
        assert_ne!(list.get(1).stamp, stamps[1]);
        assert_eq!(list.audited().map(Iterator::count), Ok(3));
    }

    /// Groups 0 to 4, of which the last is open, with one block in group 2 and two in the others.
    fn groups() -> GroupList {
        let mut list = GroupList::default();
        for group in 0..5 {
            list.open_group(group);
            let blocks = if group == 2 { 1 } else { 2 };
            list.get_mut(group).blocks.resize(blocks, BlockId(0));
        }
        list
    }

    #[test]
    fn without_a_model_pairs_follow_in_the_order_of_writing() {
        let (groups, mut order) = (groups(), MergeOrder::default());
        let pairs = [(); 3].map(|()| order.next_pair(&groups, 9));
        assert_eq!(pairs, [Some((0, 1)), Some((2, 3)), Some((0, 1))]);
        assert_eq!(order.next_pair(&GroupList::default(), 9), None);
    }

    /// The utility is the count of blocks.
    #[test]
    fn with_a_model_the_group_of_least_utility_comes_first() {
        let (mut groups, mut order) = (groups(), MergeOrder::default());
        let row = |index: usize| [5.0, 0.0, 0.0, 1.0, 0.0, (index % 3) as f32];
        let rows: Vec<f32> = (0..300).flat_map(row).collect();
        let utilities: Vec<f32> = rows.chunks(INPUTS).map(|row| row[INPUTS - 1]).collect();
        let settings = BoostingSettings::default();
        order.set_model(BoostedTrees::fit(INPUTS, &rows, &utilities, &settings, Seed(1)));
        assert_eq!(order.next_pair(&groups, 9), Some((2, 3)));
        groups.merge(2, 3, 9).blocks.resize(2, BlockId(0));
        assert_eq!(order.next_pair(&groups, 9), Some((0, 1)), "the oldest of equals");
    }
}
