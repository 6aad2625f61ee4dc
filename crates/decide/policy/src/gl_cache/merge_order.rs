//! Which two groups of GL-Cache are merged next.
//!
//! For: `gl-cache`. Must never know: blocks, how groups are merged, when a model is trained. With a
//! model it is the group of least predicted utility that has a closed next newer one, and that one;
//! groups are ranked again after a fiftieth of them has left. Without a model, and where no ranked
//! group can be merged, pairs follow in the order of writing. Unit: accesses.

use super::group_list::GroupList;
use super::observations::append_inputs;
use cachewright_model::learn::BoostedTrees;

/// Of so many groups one leaves between two rankings.
const RANKED_PART: usize = 50;

/// The order of merges; see the top of the file.
#[derive(Clone, Debug, Default)]
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
    use super::super::observations::INPUTS;
    use super::*;
    use cachewright_model::learn::BoostingSettings;
    use cachewright_types::{BlockId, Seed};

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
