//! The free slots of a cache device, by channel, and the pools that give them out.
//!
//! For: which slot comes next. Must never know: tenants, shares, what slots hold, time. Units:
//! blocks (a slot holds one), numbered by their place on the device. A pool gives the slot freed
//! last first; before any is freed, and where a new map has put channels together, it goes round
//! its channels, a page of each at a time, lowest first. What is freed on a channel that no pool
//! has stays with the channel. Invariant: a slot is free in one place or in none.

use cachewright_device::Exposed;
use std::ops::Range;

/// No pool.
pub const NOBODY: usize = usize::MAX;

/// One channel, or a group that a drive shows as one.
#[derive(Clone, Debug)]
struct Channel {
    /// All its slots.
    slots: Range<u32>,
    /// Free slots in runs; the last run is given out first.
    runs: Vec<Range<u32>>,
    /// The pool that has it, or [`NOBODY`].
    pool: usize,
}

/// Channels that give out slots together.
#[derive(Clone, Debug, Default)]
struct Pool {
    channels: Vec<u32>,
    /// Slots given back, the last on top.
    freed: Vec<u32>,
    /// Free slots in its channels' runs.
    in_runs: u32,
    /// The channel of the round, and how many slots more it gives before the next one does.
    at: usize,
    left: u32,
}

/// All free slots.
#[derive(Clone, Debug)]
pub struct Free {
    channels: Vec<Channel>,
    pools: Vec<Pool>,
    /// Slots given out by one channel before the next one's turn.
    unit: u32,
}

impl Channel {
    fn next(&mut self) -> Option<u32> {
        let run = self.runs.last_mut()?;
        let slot = run.start;
        run.start += 1;
        if run.start == run.end {
            self.runs.pop();
        }
        Some(slot)
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

impl Free {
    /// All slots of some channels, in the order of their addresses, free; `pools` hold the numbers
    /// of channels.
    pub fn new(
        channels: impl IntoIterator<Item = Range<u32>>,
        unit: u32,
        pools: &[Vec<u32>],
    ) -> Free {
        let fresh = |slots: Range<u32>| {
            let runs = Some(slots.clone()).filter(|run| run.start < run.end);
            Channel { runs: runs.into_iter().collect(), slots, pool: NOBODY }
        };
        let channels = channels.into_iter().map(fresh).collect();
        let mut free = Free { channels, pools: Vec::new(), unit };
        free.relay(pools);
        free
    }

    /// Slots there are.
    pub fn count(&self) -> u32 {
        self.channels.iter().map(|channel| channel.slots.len() as u32).sum()
    }

    /// The slot after the last.
    pub fn end(&self) -> u32 {
        self.channels.last().map_or(0, |channel| channel.slots.end)
    }

    /// Channels there are.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// The channel of a slot.
    pub fn channel_of(&self, slot: u32) -> usize {
        self.channels.partition_point(|channel| channel.slots.end <= slot)
    }

    /// The pool that has a channel, or [`NOBODY`].
    pub fn pool_of(&self, channel: usize) -> usize {
        self.channels.get(channel).map_or(NOBODY, |channel| channel.pool)
    }

    /// Whether a pool has a free slot.
    pub fn has(&self, pool: usize) -> bool {
        self.pools.get(pool).is_some_and(|pool| !pool.freed.is_empty() || pool.in_runs > 0)
    }

    /// The next slot of a pool.
    pub fn take(&mut self, pool: usize) -> Option<u32> {
        let pool = self.pools.get_mut(pool)?;
        if let Some(slot) = pool.freed.pop() {
            return Some(slot);
        }
        if pool.in_runs == 0 {
            return None;
        }
        for _ in 0..=pool.channels.len() {
            if pool.left > 0
                && let Some(slot) = self.channels[pool.channels[pool.at] as usize].next()
            {
                pool.left -= 1;
                pool.in_runs -= 1;
                return Some(slot);
            }
            pool.at = (pool.at + 1) % pool.channels.len();
            pool.left = self.unit;
        }
        None
    }

    /// A slot of whichever channel has one: one that no pool has first.
    pub fn take_any(&mut self) -> Option<u32> {
        let nobodys = self.channels.iter_mut().filter(|channel| channel.pool == NOBODY);
        let slot = nobodys.into_iter().find_map(Channel::next);
        slot.or_else(|| (0..self.pools.len()).find_map(|pool| self.take(pool)))
    }

    /// A slot is free again.
    pub fn give_back(&mut self, slot: u32) {
        let at = self.channel_of(slot);
        let pool = self.pool_of(at);
        match self.pools.get_mut(pool) {
            Some(pool) => pool.freed.push(slot),
            None => self.channels[at].runs.push(slot..slot + 1),
        }
    }

    /// Puts the channels into other pools. A pool of the same channels as one before goes on as
    /// that did; the free slots of the others are given out going round.
    pub fn relay(&mut self, pools: &[Vec<u32>]) {
        let mut before = std::mem::take(&mut self.pools);
        self.channels.iter_mut().for_each(|channel| channel.pool = NOBODY);
        for (number, channels) in pools.iter().enumerate() {
            let known = |channel: &u32| (*channel as usize) < self.channels.len();
            let channels: Vec<u32> = channels.iter().copied().filter(known).collect();
            for channel in &channels {
                self.channels[*channel as usize].pool = number;
            }
            let same = before.iter().position(|pool| pool.channels == channels);
            let kept = same.map(|at| std::mem::take(&mut before[at]));
            let left = self.unit;
            self.pools.push(kept.unwrap_or(Pool { channels, left, ..Pool::default() }));
        }
        for slot in before.into_iter().flat_map(|pool| pool.freed) {
            let at = self.channel_of(slot);
            self.channels[at].runs.push(slot..slot + 1);
        }
        self.channels.iter_mut().for_each(Channel::tidy);
        for pool in &mut self.pools {
            let each = pool.channels.iter().map(|at| self.channels[*at as usize].in_runs());
            pool.in_runs = each.sum();
        }
    }

    /// All free slots.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        let freed = self.pools.iter().flat_map(|pool| pool.freed.iter().copied());
        let runs = self.channels.iter().flat_map(|channel| channel.runs.iter().cloned());
        freed.chain(runs.flatten())
    }
}

/// The whole blocks of a range of addresses.
pub fn blocks_of(range: &Exposed, block_shift: u32) -> Range<u32> {
    let number = |block: u64| u32::try_from(block).unwrap_or(u32::MAX);
    let first = range.bytes.start.div_ceil(1 << block_shift);
    number(first)..number(range.bytes.end >> block_shift).max(number(first))
}

/// Blocks that lie together on one channel: those of a page.
pub fn unit_of(channels: &[Exposed], block_shift: u32) -> u32 {
    let page = channels.first().map_or(0, |range| range.page.0);
    u32::try_from(page >> block_shift).unwrap_or(1).max(1)
}

/// What the first `most` blocks given out going round some ranges leave of each.
pub fn cut(ranges: &[Range<u32>], unit: u32, most: u32) -> Vec<Range<u32>> {
    let all: u64 = ranges.iter().map(|range| range.len() as u64).sum();
    let mut left = all.min(u64::from(most)) as u32;
    let mut cut: Vec<Range<u32>> = ranges.iter().map(|range| range.start..range.start).collect();
    while left > 0 {
        for (range, cut) in ranges.iter().zip(&mut cut) {
            let count = (range.end - cut.end).min(unit).min(left);
            cut.end += count;
            left -= count;
        }
    }
    cut
}
