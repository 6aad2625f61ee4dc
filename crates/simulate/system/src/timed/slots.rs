//! The slots of the cache device: which are free, who may take them, and who waits for one.
//!
//! For: carrying out a layout: a tenant's blocks lie in the slots of its pools of channels. Must
//! never know: layouts' reasons, devices, time. Units: blocks (a slot holds one), numbered by their
//! place on the device. Without a layout all slots are one pool. A pool's slots are given out going
//! round its channels, a page of each at a time, and later the one freed last first.

use cachewright_device::Exposed;
use cachewright_layout::Map;
use std::collections::VecDeque;
use std::ops::Range;

/// No limit.
const ANY: u32 = u32::MAX;

/// A share of a pool, as it is used.
#[derive(Clone, Debug)]
struct Held {
    pool: usize,
    most: u32,
    used: u32,
}

/// Tenants with the same rights.
#[derive(Clone, Debug)]
struct Class {
    shares: Vec<Held>,
    /// Slots taken, and how many may be.
    used: u32,
    allowed: u32,
    /// Residences that wait for a slot, with their order among all.
    waiting: VecDeque<(u64, u32)>,
}

/// A slot and by what right it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The slot.
    pub slot: u32,
    class: u16,
    share: u16,
}

/// All slots.
#[derive(Clone, Debug)]
pub struct Slots {
    /// Free slots of each pool; the last is given out first.
    free: Vec<Vec<u32>>,
    classes: Vec<Class>,
    /// Slots there are.
    count: u32,
    /// The slot after the last.
    end: u32,
    /// Slots that each tenant may take beside its quota; nothing where all have the same rights.
    spare: Option<u32>,
    waiting: usize,
    arrivals: u64,
}

impl Slots {
    /// The first `count` blocks of a device, for everybody.
    pub fn plain(count: u32) -> Slots {
        Slots::shared((0..count).collect())
    }

    /// The first `count` blocks going round all `channels`, for everybody.
    pub fn striped(channels: &[Exposed], block_shift: u32, count: u32) -> Slots {
        let ranges = channels.iter().map(|range| blocks_of(range, block_shift)).collect::<Vec<_>>();
        Slots::shared(going_round(&ranges, unit_of(channels, block_shift), count))
    }

    /// One pool for everybody.
    fn shared(slots: Vec<u32>) -> Slots {
        let share = Held { pool: 0, most: ANY, used: 0 };
        Slots::of(vec![slots], vec![class(vec![share])], None)
    }

    /// The pools of a layout over what a drive shows of its channels, of a cache of `total` blocks.
    /// Each tenant may take its quota and `spare` slots, once [`Slots::allow`] has told its quota.
    pub fn laid_out(
        map: &Map,
        channels: &[Exposed],
        block_shift: u32,
        (total, spare): (u32, u32),
    ) -> Slots {
        let pool = |(pool, set): (usize, &Vec<u32>)| {
            let chosen = set.iter().filter_map(|channel| channels.get(*channel as usize));
            let ranges: Vec<Range<u32>> =
                chosen.map(|range| blocks_of(range, block_shift)).collect();
            let shares = map.tenants.iter().flatten().filter(|share| share.pool == pool);
            let wanted = shares.fold(0_u32, |sum, share| {
                sum.saturating_add(share.blocks.min(total)).saturating_add(spare)
            });
            going_round(&ranges, unit_of(channels, block_shift), wanted)
        };
        let pools = map.pools.iter().enumerate().map(pool).collect();
        let classes = map.tenants.iter().map(|shares| {
            let most = |share: &cachewright_layout::Share| share.blocks.saturating_add(spare);
            let held =
                shares.iter().map(|share| Held { pool: share.pool, most: most(share), used: 0 });
            class(held.collect())
        });
        Slots::of(pools, classes.collect(), Some(spare))
    }

    fn of(mut free: Vec<Vec<u32>>, classes: Vec<Class>, spare: Option<u32>) -> Slots {
        let count = free.iter().map(|slots| slots.len() as u32).sum();
        let end = free.iter().flatten().max().map_or(0, |last| last + 1);
        free.iter_mut().for_each(|slots| slots.reverse());
        Slots { free, classes, count, end, spare, waiting: 0, arrivals: 0 }
    }

    /// The slot after the last.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// Slots there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Slots that are free.
    pub fn free(&self) -> impl Iterator<Item = u32> {
        self.free.iter().flatten().copied()
    }

    fn class_of(&self, tenant: usize) -> usize {
        if self.spare.is_some() { tenant } else { 0 }
    }

    /// A slot for a block of a tenant, unless others wait for what it may take.
    pub fn take(&mut self, tenant: usize) -> Option<Taken> {
        let class = self.class_of(tenant);
        if self.classes.get(class)?.waiting.is_empty() { self.take_by(class) } else { None }
    }

    fn take_by(&mut self, number: usize) -> Option<Taken> {
        let class = &mut self.classes[number];
        if class.used >= class.allowed {
            return None;
        }
        for (share, held) in class.shares.iter_mut().enumerate() {
            if held.used < held.most
                && let Some(slot) = self.free[held.pool].pop()
            {
                held.used += 1;
                class.used += 1;
                return Some(Taken { slot, class: number as u16, share: share as u16 });
            }
        }
        None
    }

    /// A residence of a tenant waits for a slot.
    pub fn wait(&mut self, tenant: usize, residence: u32) {
        let class = self.class_of(tenant);
        self.classes[class].waiting.push_back((self.arrivals, residence));
        self.arrivals += 1;
        self.waiting += 1;
    }

    /// Gives a slot back; returns who gets one for it, if somebody waits.
    pub fn give_back(&mut self, taken: Taken) -> Option<(u32, Taken)> {
        let class = &mut self.classes[usize::from(taken.class)];
        let held = &mut class.shares[usize::from(taken.share)];
        held.used -= 1;
        class.used -= 1;
        self.free[held.pool].push(taken.slot);
        self.serve()
    }

    /// Gives a slot to whoever waits longest of those who may take one.
    fn serve(&mut self) -> Option<(u32, Taken)> {
        if self.waiting == 0 {
            return None;
        }
        let head = |class: usize| self.classes[class].waiting.front().map(|head| (head.0, class));
        let mut heads: Vec<(u64, usize)> = (0..self.classes.len()).filter_map(head).collect();
        heads.sort_unstable();
        for (_, class) in heads {
            if let Some(taken) = self.take_by(class) {
                let (_, residence) = self.classes[class].waiting.pop_front()?;
                self.waiting -= 1;
                return Some((residence, taken));
            }
        }
        None
    }

    /// Tells the tenants' quotas where a layout bounds what each may take; returns who gets a slot
    /// for it.
    pub fn allow(&mut self, quotas: &[u32]) -> Vec<(u32, Taken)> {
        let Some(spare) = self.spare else { return Vec::new() };
        for (class, quota) in self.classes.iter_mut().zip(quotas) {
            class.allowed = quota.saturating_add(spare);
        }
        std::iter::from_fn(|| self.serve()).collect()
    }
}

fn class(shares: Vec<Held>) -> Class {
    Class { shares, used: 0, allowed: ANY, waiting: VecDeque::new() }
}

/// The whole blocks of a range of addresses.
pub fn blocks_of(range: &Exposed, block_shift: u32) -> Range<u32> {
    let number = |block: u64| u32::try_from(block).unwrap_or(u32::MAX);
    let first = range.bytes.start.div_ceil(1 << block_shift);
    number(first)..number(range.bytes.end >> block_shift)
}

/// Blocks that lie together on one channel: those of a page.
fn unit_of(channels: &[Exposed], block_shift: u32) -> u32 {
    let page = channels.first().map_or(0, |range| range.page.0);
    u32::try_from(page >> block_shift).unwrap_or(1).max(1)
}

/// At most `most` blocks of some ranges, so many of one, then of the next, and round again.
fn going_round(ranges: &[Range<u32>], unit: u32, most: u32) -> Vec<u32> {
    let all: u64 = ranges.iter().map(|range| range.len() as u64).sum();
    let most = all.min(u64::from(most)) as usize;
    let mut next: Vec<Range<u32>> = ranges.to_vec();
    let mut slots = Vec::with_capacity(most);
    while slots.len() < most {
        for range in &mut next {
            let count = (range.len() as u32).min(unit).min((most - slots.len()) as u32);
            slots.extend(range.start..range.start + count);
            range.start += count;
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_layout::Share;
    use cachewright_types::Bytes;

    /// Channels of 4 KiB pages, each with so many.
    fn channels(pages: &[u64]) -> Vec<Exposed> {
        let mut start = 0;
        let exposed = pages.iter().enumerate().map(|(channel, pages)| {
            let bytes = start..start + pages * 4096;
            start = bytes.end;
            Exposed { channels: vec![channel as u32], bytes, page: Bytes(4096) }
        });
        exposed.collect()
    }

    #[test]
    fn slots_go_round_the_channels_page_by_page() {
        let order = |shift: u32, pages: &[u64], count| {
            let mut slots = Slots::striped(&channels(pages), shift, count);
            std::iter::from_fn(|| slots.take(0).map(|taken| taken.slot)).collect::<Vec<u32>>()
        };
        assert_eq!(order(12, &[3, 1, 3], 9), [0, 3, 4, 1, 5, 2, 6]);
        assert_eq!(order(12, &[3, 1, 3], 4), [0, 3, 4, 1]);
        assert_eq!(order(11, &[2, 2], 9), [0, 1, 4, 5, 2, 3, 6, 7], "half a page each");
        assert_eq!(order(13, &[3, 4], 9), [0, 2], "whole blocks within a channel");
        assert_eq!(Slots::plain(3).take(7).map(|taken| taken.slot), Some(0));
    }

    /// Tenant 0 has channel 0, tenant 1 channel 1, and both share channel 2: one block each.
    #[test]
    fn a_tenant_keeps_to_its_pools_and_its_quota() {
        let share = |pool, blocks| Share { pool, blocks };
        let map = Map {
            pools: vec![vec![0], vec![1], vec![2]],
            tenants: vec![vec![share(0, 2), share(2, 1)], vec![share(1, 2), share(2, 1)]],
        };
        let mut slots = Slots::laid_out(&map, &channels(&[2, 2, 2]), 12, (6, 0));
        assert!(slots.allow(&[3, 3]).is_empty());
        let zero: Vec<Taken> = (0..3).filter_map(|_| slots.take(0)).collect();
        assert_eq!(zero.iter().map(|taken| taken.slot).collect::<Vec<_>>(), [0, 1, 4]);
        assert_eq!(slots.take(0), None, "slot 5 is the other's share");
        slots.wait(0, 70);
        let one: Vec<u32> = (0..3).filter_map(|_| slots.take(1)).map(|taken| taken.slot).collect();
        assert_eq!(one, [2, 3, 5]);
        slots.wait(1, 71);
        let (residence, taken) = slots.give_back(zero[1]).unwrap();
        assert_eq!((residence, taken.slot), (70, 1));
        assert_eq!(slots.give_back(taken), None, "71 may not take slot 1");
        assert_eq!(slots.free().collect::<Vec<u32>>(), [1]);
        let (residence, taken) = slots.give_back(zero[2]).unwrap_or((0, zero[2]));
        assert_eq!((residence, taken.slot), (0, 4), "nor more than its share of the pool");
    }

    #[test]
    fn quotas_bound_what_is_taken_and_may_change() {
        let map = Map::exclusive(
            vec![vec![0], vec![1]],
            &cachewright_layout::Channels { blocks: vec![4, 4], total_blocks: 4 },
        );
        let mut slots = Slots::laid_out(&map, &channels(&[4, 4]), 12, (4, 1));
        slots.allow(&[1, 3]);
        let taken: Vec<Taken> = (0..3).filter_map(|_| slots.take(0)).collect();
        assert_eq!(taken.len(), 2, "its quota and the spare one");
        slots.wait(0, 5);
        assert!(slots.take(0).is_none());
        let served = slots.allow(&[2, 2]);
        assert_eq!(served.iter().map(|(residence, _)| *residence).collect::<Vec<_>>(), [5]);
        slots.wait(0, 6);
        slots.allow(&[0, 4]);
        assert_eq!(slots.give_back(taken[0]), None, "above the quota");
        assert_eq!(slots.give_back(taken[1]), None);
        let (residence, _) = slots.give_back(served[0].1).unwrap();
        assert_eq!(residence, 6);
        assert_eq!((slots.count(), slots.end()), (8, 8));
    }
}
