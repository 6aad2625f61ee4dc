//! The free slots of a cache device, by channel, and the pools that give them out.
//!
//! For: which slot comes next. Must never know: tenants, shares, what slots hold, time. Units:
//! blocks (a slot holds one), numbered by their place on the device. A pool gives the slot freed
//! last first. Before any is freed, and after a new layout has put channels together, it goes round
//! its channels, a page of each at a time, lowest first. A slot freed on a channel without a pool
//! stays with the channel. Invariant: a slot is free in one place or in none.

use super::ids::{ChannelId, PoolId, SlotId};
use cachewright_device::Exposed;
use cachewright_types::whole_block_numbers;
use std::ops::Range;

/// One channel, or a group that a drive shows as one.
#[derive(Clone, Debug)]
struct Channel {
    /// All its slots.
    slots: Range<u32>,
    /// Free slots in runs; the last run is given out first.
    runs: Vec<Range<u32>>,
    /// The pool that has it.
    pool: Option<PoolId>,
}

/// Channels that give out slots together.
#[derive(Clone, Debug, Default)]
struct SlotPool {
    channels: Vec<ChannelId>,
    /// Slots given back, the last on top.
    freed: Vec<SlotId>,
    /// Free slots in its channels' runs.
    in_runs: u32,
    /// The channel of the round, and how many slots more it gives before the next one does.
    turn: usize,
    remaining: u32,
}

/// All free slots.
#[derive(Clone, Debug)]
pub struct FreeSlots {
    channels: Vec<Channel>,
    pools: Vec<SlotPool>,
    /// Slots given out by one channel before the next one's turn.
    unit: u32,
}

impl Channel {
    fn next(&mut self) -> Option<SlotId> {
        let run = self.runs.last_mut()?;
        let slot = run.start;
        run.start += 1;
        if run.start == run.end {
            self.runs.pop();
        }
        Some(SlotId(slot))
    }

    fn give_back(&mut self, slot: SlotId) {
        self.runs.push(slot.0..slot.0 + 1);
    }

    fn in_runs(&self) -> u32 {
        self.runs.iter().map(|run| run.len() as u32).sum()
    }

    /// Puts the runs in order, the lowest last, and joins those that touch.
    fn tidy(&mut self) {
        self.runs.sort_unstable_by_key(|run| std::cmp::Reverse(run.start));
        self.runs.dedup_by(|low, high| {
            let touch = low.end == high.start;
            if touch {
                high.start = low.start;
            }
            touch
        });
    }
}

impl FreeSlots {
    /// All slots of some channels, in the order of their addresses, free; `pools` hold the numbers
    /// of channels.
    pub fn new(
        channels: impl IntoIterator<Item = Range<u32>>,
        unit: u32,
        pools: &[Vec<u32>],
    ) -> FreeSlots {
        let fresh = |slots: Range<u32>| {
            let runs = Some(slots.clone()).filter(|run| run.start < run.end);
            Channel { runs: runs.into_iter().collect(), slots, pool: None }
        };
        let channels = channels.into_iter().map(fresh).collect();
        let mut free = FreeSlots { channels, pools: Vec::new(), unit };
        free.apply_layout(pools);
        free
    }

    /// Slots there are.
    pub fn count(&self) -> u32 {
        self.channels.iter().map(|channel| channel.slots.len() as u32).sum()
    }

    /// The slot after the last.
    pub fn end(&self) -> SlotId {
        SlotId(self.channels.last().map_or(0, |channel| channel.slots.end))
    }

    /// Channels there are.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// The channel of a slot.
    pub fn channel_of(&self, slot: SlotId) -> ChannelId {
        ChannelId::new(self.channels.partition_point(|channel| channel.slots.end <= slot.0))
    }

    /// The pool that has a channel.
    pub fn pool_of(&self, channel: ChannelId) -> Option<PoolId> {
        self.channels.get(channel.index())?.pool
    }

    /// Whether a pool has a free slot.
    pub fn has(&self, pool: PoolId) -> bool {
        let pool = self.pools.get(pool.index());
        pool.is_some_and(|pool| !pool.freed.is_empty() || pool.in_runs > 0)
    }

    /// The next slot of a pool.
    pub fn take(&mut self, pool: PoolId) -> Option<SlotId> {
        let pool = self.pools.get_mut(pool.index())?;
        if let Some(slot) = pool.freed.pop() {
            return Some(slot);
        }
        if pool.in_runs == 0 {
            return None;
        }
        for _ in 0..=pool.channels.len() {
            if pool.remaining > 0
                && let Some(slot) = self.channels[pool.channels[pool.turn].index()].next()
            {
                pool.remaining -= 1;
                pool.in_runs -= 1;
                return Some(slot);
            }
            pool.turn = (pool.turn + 1) % pool.channels.len();
            pool.remaining = self.unit;
        }
        None
    }

    /// A slot of any channel, those without a pool first.
    pub fn take_any(&mut self) -> Option<SlotId> {
        let mut unpooled = self.channels.iter_mut().filter(|channel| channel.pool.is_none());
        let slot = unpooled.find_map(Channel::next);
        slot.or_else(|| (0..self.pools.len()).find_map(|pool| self.take(PoolId::new(pool))))
    }

    /// A slot is free again.
    pub fn give_back(&mut self, slot: SlotId) {
        let channel = self.channel_of(slot);
        let pool = self.pool_of(channel);
        match pool.and_then(|pool| self.pools.get_mut(pool.index())) {
            Some(pool) => pool.freed.push(slot),
            None => self.channels[channel.index()].give_back(slot),
        }
    }

    /// Puts the channels into other pools. A pool of the same channels as one before goes on as
    /// that did; the free slots of the others are given out going round.
    pub fn apply_layout(&mut self, pools: &[Vec<u32>]) {
        let mut before = std::mem::take(&mut self.pools);
        self.channels.iter_mut().for_each(|channel| channel.pool = None);
        for (number, channels) in pools.iter().enumerate() {
            let channels = channels.iter().map(|channel| ChannelId(*channel));
            let known = channels.filter(|channel| channel.index() < self.channels.len());
            let channels: Vec<ChannelId> = known.collect();
            for channel in &channels {
                self.channels[channel.index()].pool = Some(PoolId::new(number));
            }
            let same = before.iter().position(|pool| pool.channels == channels);
            let kept = same.map(|index| std::mem::take(&mut before[index]));
            let remaining = self.unit;
            self.pools.push(kept.unwrap_or(SlotPool {
                channels,
                remaining,
                ..SlotPool::default()
            }));
        }
        for slot in before.into_iter().flat_map(|pool| pool.freed) {
            let channel = self.channel_of(slot);
            self.channels[channel.index()].give_back(slot);
        }
        self.channels.iter_mut().for_each(Channel::tidy);
        for pool in &mut self.pools {
            let each = pool.channels.iter().map(|index| self.channels[index.index()].in_runs());
            pool.in_runs = each.sum();
        }
    }

    /// All free slots.
    pub fn all(&self) -> impl Iterator<Item = SlotId> {
        let freed = self.pools.iter().flat_map(|pool| pool.freed.iter().copied());
        let runs = self.channels.iter().flat_map(|channel| channel.runs.iter().cloned());
        freed.chain(runs.flatten().map(SlotId))
    }

    /// Checks that no slot is free twice and that pools count their runs. Errors: the rule broken,
    /// in words.
    pub fn audit(&self) -> Result<(), String> {
        let mut free: Vec<SlotId> = self.all().collect();
        free.sort_unstable();
        if let Some(pair) = free.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("slot {} is free twice", pair[0].0));
        }
        for (number, pool) in self.pools.iter().enumerate() {
            let each = pool.channels.iter().map(|index| self.channels[index.index()].in_runs());
            let found: u32 = each.sum();
            if found != pool.in_runs {
                return Err(format!("pool {number}: {found} slots in runs of {}", pool.in_runs));
            }
        }
        Ok(())
    }
}

/// The whole blocks of a range of addresses.
pub fn blocks_of(range: &Exposed, block_shift: u32) -> Range<u32> {
    let number = |block: u64| u32::try_from(block).unwrap_or(u32::MAX);
    let Range { start, end } = range.bytes;
    let whole = whole_block_numbers(start, end - start, block_shift);
    number(whole.start)..number(whole.end)
}

/// Blocks that lie together on one channel: those of a page.
pub fn unit_of(channels: &[Exposed], block_shift: u32) -> u32 {
    let page = channels.first().map_or(0, |range| range.page.0);
    u32::try_from(page >> block_shift).unwrap_or(1).max(1)
}

/// The blocks of each range among the first `count` that are given out going round the ranges.
pub fn cut(ranges: &[Range<u32>], unit: u32, count: u32) -> Vec<Range<u32>> {
    let all: u64 = ranges.iter().map(|range| range.len() as u64).sum();
    let mut remaining = all.min(u64::from(count)) as u32;
    let mut cut: Vec<Range<u32>> = ranges.iter().map(|range| range.start..range.start).collect();
    while remaining > 0 {
        for (range, cut) in ranges.iter().zip(&mut cut) {
            let count = (range.end - cut.end).min(unit).min(remaining);
            cut.end += count;
            remaining -= count;
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    #[test]
    fn the_first_blocks_are_cut_out_of_the_ranges_in_turn() {
        let ranges = [0..4, 4..5, 8..16];
        assert_eq!(cut(&ranges, 1, 5), [0..2, 4..5, 8..10]);
        assert_eq!(cut(&ranges, 2, 7), [0..4, 4..5, 8..10]);
        assert_eq!(cut(&ranges, 2, 99), ranges);
    }

    /// Slots are taken, given back and put into other pools at random: none is lost or doubled.
    #[test]
    fn every_slot_is_held_or_free_whatever_the_layout() {
        for seed in 0..8 {
            let mut rng = Seed(seed).rng();
            let mut free = FreeSlots::new([0..5, 5..6, 6..13, 13..20], 2, &[vec![0, 1], vec![2]]);
            let mut held: Vec<SlotId> = Vec::new();
            for _ in 0..400 {
                match rng.below(8) {
                    0..=2 => held.extend(free.take(PoolId(rng.below(3) as u32))),
                    3 => held.extend(free.take_any()),
                    4..=6 if !held.is_empty() => {
                        let slot = held.swap_remove(rng.below(held.len() as u64) as usize);
                        free.give_back(slot);
                    }
                    _ => {
                        let mut pools = vec![Vec::new(); 3];
                        for channel in 0..4 {
                            if let Some(pool) = pools.get_mut(rng.below(4) as usize) {
                                pool.push(channel);
                            }
                        }
                        free.apply_layout(&pools);
                    }
                }
                assert_eq!(free.audit(), Ok(()));
                let mut all: Vec<SlotId> = free.all().chain(held.iter().copied()).collect();
                all.sort_unstable();
                assert_eq!(all, (0..20).map(SlotId).collect::<Vec<_>>());
            }
        }
    }
}
