//! The groups of GL-Cache in the order in which they were written.
//!
//! For: `gl-cache`. Must never know: where a block is, models, which group is chosen. The newest
//! group is open, all others are closed. A stamp tells a group from others that had its number
//! before. Memory: a group with its blocks; numbers and memory of groups that went are used again.

use crate::links::Links;
use cachewright_types::BlockId;

/// No row.
pub const NO_ROW: u32 = u32::MAX;

/// Blocks written or merged together.
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug, Default)]
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
