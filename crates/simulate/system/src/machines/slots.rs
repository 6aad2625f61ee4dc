//! The slots of the cache device: which tenant may take which, and which residents wait for one.
//!
//! A slot holds one block. A tenant's blocks lie in the slots of its pools of channels, in the
//! region that its policy prefers if it has one. Without a layout all slots are one pool. Rules for
//! a block that wants a slot, in this order:
//!
//! 1. a free slot of the preferred region: the tenant's private pools, or those it shares; any pool
//!    if it prefers none, or if the tenant has none of that kind;
//! 2. it waits while an eviction is pending in a slot of that region;
//! 3. a free slot of another pool of its tenant, else it waits while an eviction is pending there;
//! 4. any free slot, those without a pool first. That happens after a layout change only: blocks of
//!    other tenants may stay in its region for ever, so it does not wait for those.
//!
//! Blocks of one tenant get slots in the order in which they ask. A tenant takes at most its quota
//! and the spare blocks, and of a pool at most its share.
//!
//! A pool gives the slot freed last first. Before any is freed, and after a new layout has put
//! channels together, it goes round its channels, a page of each at a time, lowest first. A slot
//! freed on a channel without a pool stays with the channel. Invariant: a slot is free in one place
//! or in none.

use cachewright_device::Exposed;
use cachewright_partition::layout::{ChannelMap, PoolShare};
use cachewright_policy::Region;
use cachewright_steps::{ResidentId, SlotId};
use cachewright_types::whole_block_numbers;
use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::ops::Range;

/// No limit.
const UNLIMITED: u32 = u32::MAX;

cachewright_types::index_ids! {
    /// A pool of channels that give out slots together.
    PoolId,
    /// A channel, or a group that a drive shows as one.
    ChannelId,
}

/// A slot and the class that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotGrant {
    pub slot: SlotId,
    class: ClassId,
}

/// Tenants with the same rights: each for itself under a layout, else all together. The number is
/// one more than the index, so that a grant or none takes 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClassId(NonZeroU16);

/// Blocks of a tenant that stay, by region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionBlocks {
    /// In channels that it has to itself.
    pub private_blocks: u32,
    /// In channels that it shares.
    pub shared_blocks: u32,
    /// In channels that the layout does not give it.
    pub elsewhere_blocks: u32,
}

/// What is done about a block that wants a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotChoice {
    Pool(PoolId),
    Anywhere,
    Wait,
}

/// The slots of a cache device, who may take which, and who waits.
#[derive(Clone, Debug)]
pub struct Slots {
    free: FreeSlots,
    classes: Vec<SlotClass>,
    /// Of each pool: whether it is one tenant's alone, and its slots with a pending eviction.
    exclusive: Vec<bool>,
    pending: Vec<u32>,
    /// Slots that each tenant may take beside its quota; nothing where all have the same rights.
    spare: Option<u32>,
    waiting: usize,
    arrivals: u64,
}

impl ClassId {
    fn new(index: usize) -> ClassId {
        ClassId(NonZeroU16::MIN.saturating_add(index as u16))
    }

    fn index(self) -> usize {
        usize::from(self.0.get()) - 1
    }
}

impl Slots {
    /// The first `count` blocks of a device, for all tenants.
    pub fn plain(count: u32) -> Slots {
        Slots::shared(FreeSlots::new(Some(0..count), 1, &[vec![0]]))
    }

    /// The first `count` blocks going round all `channels`, for all tenants.
    pub fn striped(channels: &[Exposed], block_shift: u32, count: u32) -> Slots {
        let ranges = channels.iter().map(|range| blocks_of(range, block_shift)).collect::<Vec<_>>();
        let (unit, all) = (unit_of(channels, block_shift), (0..ranges.len() as u32).collect());
        Slots::shared(FreeSlots::new(cut(&ranges, unit, count), unit, &[all]))
    }

    /// One pool for all tenants.
    fn shared(free: FreeSlots) -> Slots {
        let mut class = SlotClass::new(free.channels());
        class.set_shares(&[PoolShare { pool: 0, blocks: UNLIMITED }], |channel| {
            free.pool_of(channel)
        });
        let (classes, exclusive, pending) = (vec![class], vec![false], vec![0]);
        Slots { free, classes, exclusive, pending, spare: None, waiting: 0, arrivals: 0 }
    }

    /// The pools of a layout over what a drive shows of its channels. Each tenant may take its
    /// quota and `spare` slots, once [`Slots::set_quotas`] has set its quota.
    pub fn laid_out(map: &ChannelMap, channels: &[Exposed], block_shift: u32, spare: u32) -> Slots {
        let ranges = channels.iter().map(|range| blocks_of(range, block_shift));
        let free = FreeSlots::new(ranges, unit_of(channels, block_shift), &[]);
        let classes = map.tenants.iter().map(|_| SlotClass::new(channels.len())).collect();
        let (exclusive, pending, spare) = (Vec::new(), Vec::new(), Some(spare));
        let mut slots = Slots { free, classes, exclusive, pending, spare, waiting: 0, arrivals: 0 };
        slots.apply_layout(map);
        slots
    }

    /// Follows another map from now on; returns the residents that get a slot for it. Slots that
    /// are held stay so until they are given back; then they go to the pool of their channel by the
    /// new map. A tenant without shares has none. Slots that follow no map stay as they are.
    pub fn apply_layout(&mut self, map: &ChannelMap) -> Vec<(ResidentId, SlotGrant)> {
        if self.spare.is_none() {
            return Vec::new();
        }
        self.free.apply_layout(&map.pools);
        self.exclusive = (0..map.pools.len()).map(|pool| map.is_exclusive(pool)).collect();
        self.pending = vec![0; map.pools.len()];
        for (number, class) in self.classes.iter_mut().enumerate() {
            let shares = map.tenants.get(number).map_or(&[][..], Vec::as_slice);
            class.set_shares(shares, |channel| self.free.pool_of(channel));
        }
        self.pending = self.count_pending();
        self.serve()
    }

    /// Slots with a pending eviction, by pool.
    fn count_pending(&self) -> Vec<u32> {
        let mut pending = vec![0; self.pending.len()];
        for held in self.classes.iter().map(SlotClass::by_channel) {
            for (channel, held) in held.iter().enumerate() {
                let pool = self.free.pool_of(ChannelId::new(channel));
                if let Some(pending) = pool.and_then(|pool| pending.get_mut(pool.index())) {
                    *pending += held.leaving;
                }
            }
        }
        pending
    }

    /// The slot after the last.
    pub fn end(&self) -> SlotId {
        self.free.end()
    }

    /// Slots there are.
    pub fn count(&self) -> u32 {
        self.free.count()
    }

    /// Slots that are free.
    pub fn free(&self) -> impl Iterator<Item = SlotId> {
        self.free.all()
    }

    fn class_of(&self, tenant: usize) -> ClassId {
        ClassId::new(if self.spare.is_some() { tenant } else { 0 })
    }

    fn region(&self, pool: PoolId) -> Region {
        if self.exclusive[pool.index()] { Region::Private } else { Region::Shared }
    }

    /// Whether a block that wants a region belongs in a pool.
    fn suits(&self, class: &SlotClass, pool: PoolId, preferred: Region) -> bool {
        let is = |pool| self.region(pool) == preferred;
        preferred == Region::Any || is(pool) || !class.shares().iter().any(|share| is(share.pool))
    }

    /// Whether a block of the class of `grant` that wants a region belongs in `slot`; it belongs
    /// anywhere while the class has no share at all.
    pub fn suits_in(&self, grant: SlotGrant, slot: SlotId, preferred: Region) -> bool {
        let class = &self.classes[grant.class.index()];
        let pool = self.free.pool_of(self.free.channel_of(slot));
        let mut shares = class.shares().iter();
        class.shares().is_empty()
            || shares
                .find(|share| Some(share.pool) == pool)
                .is_some_and(|share| self.suits(class, share.pool, preferred))
    }

    /// A free slot in the region that a block of the class of `grant` wants, unless a resident of
    /// the class waits for a slot.
    pub fn take_preferred(&mut self, grant: SlotGrant, preferred: Region) -> Option<SlotGrant> {
        let class = &self.classes[grant.class.index()];
        if class.first_waiting().is_some() || !class.may_take() {
            return None;
        }
        let mut shares = class.shares().iter();
        let pool = shares.find(|share| {
            let suits = self.suits(class, share.pool, preferred);
            suits && share.may_take() && self.free.has(share.pool)
        });
        let slot = self.free.take(pool?.pool)?;
        Some(self.granted(grant.class, slot))
    }

    /// Two slots change hands; of each whether its block leaves.
    pub fn exchange(&mut self, held: [(SlotGrant, bool); 2]) -> [SlotGrant; 2] {
        let slots = held.map(|(grant, _)| grant.slot);
        for (grant, leaves) in held {
            if leaves {
                self.stay(grant);
            }
            self.note(grant, |held| held.used -= 1);
        }
        let new =
            [SlotGrant { slot: slots[1], ..held[0].0 }, SlotGrant { slot: slots[0], ..held[1].0 }];
        for (grant, (_, leaves)) in new.into_iter().zip(held) {
            self.note(grant, |held| held.used += 1);
            if leaves {
                self.leave(grant);
            }
        }
        new
    }

    /// The blocks of a tenant by region; nothing where there is no map.
    pub fn region_blocks(&self, tenant: usize) -> Option<RegionBlocks> {
        self.spare?;
        let class = self.classes.get(tenant)?;
        let elsewhere_blocks = class.by_channel().iter().map(SlotsHeld::staying).sum();
        let mut sums = RegionBlocks { elsewhere_blocks, ..RegionBlocks::default() };
        for share in class.shares() {
            let blocks = share.held.staying();
            sums.elsewhere_blocks -= blocks;
            match self.region(share.pool) {
                Region::Shared => sums.shared_blocks += blocks,
                Region::Private | Region::Any => sums.private_blocks += blocks,
            }
        }
        Some(sums)
    }

    /// A slot for a block of a tenant, unless it is to wait for one.
    pub fn take(&mut self, tenant: usize, preferred: Region) -> Option<SlotGrant> {
        let class = self.class_of(tenant);
        match self.classes.get(class.index())?.first_waiting() {
            None => self.take_by(class, preferred),
            Some(_) => None,
        }
    }

    fn take_by(&mut self, class: ClassId, preferred: Region) -> Option<SlotGrant> {
        let slot = match self.choose(&self.classes[class.index()], preferred) {
            SlotChoice::Pool(pool) => self.free.take(pool),
            SlotChoice::Anywhere => self.free.take_any(),
            SlotChoice::Wait => None,
        }?;
        Some(self.granted(class, slot))
    }

    /// Counts a slot that is taken.
    fn granted(&mut self, class: ClassId, slot: SlotId) -> SlotGrant {
        let channel = self.free.channel_of(slot);
        self.classes[class.index()].take(channel, self.free.pool_of(channel));
        SlotGrant { slot, class }
    }

    fn choose(&self, class: &SlotClass, preferred: Region) -> SlotChoice {
        if !class.may_take() {
            return SlotChoice::Wait;
        }
        for suits in [true, false] {
            let mut pending = 0;
            for share in class.shares() {
                if self.suits(class, share.pool, preferred) != suits {
                    continue;
                }
                let may = share.may_take();
                if may && self.free.has(share.pool) {
                    return SlotChoice::Pool(share.pool);
                }
                let known = self.pending[share.pool.index()];
                pending += if may { known } else { share.held.leaving };
            }
            if pending > 0 {
                return SlotChoice::Wait;
            }
        }
        SlotChoice::Anywhere
    }

    /// A resident of a tenant waits for a slot.
    pub fn wait(&mut self, tenant: usize, preferred: Region, resident: ResidentId) {
        let class = self.class_of(tenant);
        let arrival = self.arrivals;
        self.classes[class.index()].wait(WaitingResident { arrival, resident, preferred });
        self.arrivals += 1;
        self.waiting += 1;
    }

    /// The block in a slot leaves: the slot will be given back.
    pub fn leave(&mut self, grant: SlotGrant) {
        if let Some(pending) = self.note(grant, |held| held.leaving += 1) {
            *pending += 1;
        }
    }

    /// The opposite of [`Slots::leave`].
    fn stay(&mut self, grant: SlotGrant) {
        if let Some(pending) = self.note(grant, |held| held.leaving -= 1) {
            *pending -= 1;
        }
    }

    /// Takes back a slot whose block has left; the residents that get one for it are added to
    /// `served`.
    pub fn give_back(&mut self, grant: SlotGrant, served: &mut Vec<(ResidentId, SlotGrant)>) {
        self.stay(grant);
        let channel = self.free.channel_of(grant.slot);
        self.classes[grant.class.index()].give_back(channel, self.free.pool_of(channel));
        self.free.give_back(grant.slot);
        self.serve_into(served);
    }

    /// Changes what is counted of a slot's holder; returns the evictions pending in its pool.
    fn note(&mut self, grant: SlotGrant, change: impl Fn(&mut SlotsHeld)) -> Option<&mut u32> {
        let channel = self.free.channel_of(grant.slot);
        let pool = self.free.pool_of(channel);
        self.classes[grant.class.index()].count(channel, pool, change);
        self.pending.get_mut(pool?.index())
    }

    /// Gives slots to the residents that wait longest and may take one.
    fn serve(&mut self) -> Vec<(ResidentId, SlotGrant)> {
        let mut served = Vec::new();
        self.serve_into(&mut served);
        served
    }

    fn serve_into(&mut self, served: &mut Vec<(ResidentId, SlotGrant)>) {
        while self.waiting > 0
            && let Some(next) = self.serve_next()
        {
            served.push(next);
        }
    }

    fn serve_next(&mut self) -> Option<(ResidentId, SlotGrant)> {
        let mut from = 0;
        while let Some((class, head)) = self.first_waiting(from) {
            if let Some(grant) = self.take_by(class, head.preferred) {
                self.classes[class.index()].end_wait();
                self.waiting -= 1;
                return Some((head.resident, grant));
            }
            from = head.arrival + 1;
        }
        None
    }

    /// The class whose first waiting resident is the oldest of those that arrived as number `from`
    /// or later.
    fn first_waiting(&self, from: u64) -> Option<(ClassId, WaitingResident)> {
        let classes = (0..).map(ClassId::new).zip(&self.classes);
        let heads = classes.filter_map(|(class, held)| Some((class, *held.first_waiting()?)));
        heads.filter(|(_, head)| head.arrival >= from).min_by_key(|(_, head)| head.arrival)
    }

    /// Sets the tenants' quotas where a layout bounds what each may take; returns the residents
    /// that get a slot for it.
    pub fn set_quotas(&mut self, quotas: &[u32]) -> Vec<(ResidentId, SlotGrant)> {
        let Some(spare) = self.spare else { return Vec::new() };
        for (class, quota) in self.classes.iter_mut().zip(quotas) {
            class.set_max_slots(quota.saturating_add(spare));
        }
        self.serve()
    }

    /// Checks that slots held add up, by class and by pool. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.free.audit()?;
        for (number, class) in self.classes.iter().enumerate() {
            class.audit().map_err(|error| format!("class {number}: {error}"))?;
        }
        let (counted, known) = (self.count_pending(), &self.pending);
        if counted != *known {
            return Err(format!("{counted:?} evictions are pending, {known:?} are known"));
        }
        Ok(())
    }
}

/// Slots held, and those of them whose blocks leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SlotsHeld {
    /// All of them.
    used: u32,
    /// Those that will be given back.
    leaving: u32,
}

/// A share of a pool, as it is used.
#[derive(Clone, Copy, Debug)]
struct SlotShare {
    pool: PoolId,
    /// Slots that may be held at most.
    max_slots: u32,
    held: SlotsHeld,
}

/// A resident that waits for a slot.
#[derive(Clone, Copy, Debug)]
struct WaitingResident {
    /// Its order among all that ever waited.
    arrival: u64,
    resident: ResidentId,
    /// Where its policy wants it.
    preferred: Region,
}

/// Tenants with the same rights.
#[derive(Clone, Debug)]
struct SlotClass {
    shares: Vec<SlotShare>,
    /// Slots taken, and how many may be.
    used: u32,
    max_slots: u32,
    by_channel: Vec<SlotsHeld>,
    /// Residents that wait for a slot, in order.
    waiting: VecDeque<WaitingResident>,
}

impl SlotsHeld {
    /// Slots whose blocks stay.
    fn staying(&self) -> u32 {
        self.used - self.leaving
    }

    fn add(&mut self, other: &SlotsHeld) {
        self.used += other.used;
        self.leaving += other.leaving;
    }
}

impl SlotShare {
    /// Whether one more slot of the pool may be held.
    fn may_take(&self) -> bool {
        self.held.used < self.max_slots
    }
}

impl SlotClass {
    /// A class that holds nothing, without a limit and without shares.
    fn new(channels: usize) -> SlotClass {
        let by_channel = vec![SlotsHeld::default(); channels];
        let (shares, waiting) = (Vec::new(), VecDeque::new());
        SlotClass { shares, used: 0, max_slots: UNLIMITED, by_channel, waiting }
    }

    /// Replaces the shares; slots held count to the new shares by the pools of their channels.
    fn set_shares(&mut self, shares: &[PoolShare], pool_of: impl Fn(ChannelId) -> Option<PoolId>) {
        self.shares.clear();
        for share in shares {
            let (pool, max_slots) = (PoolId::new(share.pool), share.blocks);
            match self.shares.iter_mut().find(|known| known.pool == pool) {
                Some(known) => known.max_slots = known.max_slots.saturating_add(max_slots),
                None => self.shares.push(SlotShare { pool, max_slots, held: SlotsHeld::default() }),
            }
        }
        for (channel, held) in self.by_channel.iter().enumerate() {
            let pool = pool_of(ChannelId::new(channel));
            if let Some(share) = self.shares.iter_mut().find(|share| Some(share.pool) == pool) {
                share.held.add(held);
            }
        }
    }

    /// Bounds the slots taken.
    fn set_max_slots(&mut self, max_slots: u32) {
        self.max_slots = max_slots;
    }

    /// The shares, in the order in which they are tried.
    fn shares(&self) -> &[SlotShare] {
        &self.shares
    }

    /// Slots held by channel.
    fn by_channel(&self) -> &[SlotsHeld] {
        &self.by_channel
    }

    /// Whether the limit leaves a slot.
    fn may_take(&self) -> bool {
        self.used < self.max_slots
    }

    /// A slot of a channel is taken.
    fn take(&mut self, channel: ChannelId, pool: Option<PoolId>) {
        self.used += 1;
        self.count(channel, pool, |held| held.used += 1);
    }

    /// A slot of a channel is given back.
    fn give_back(&mut self, channel: ChannelId, pool: Option<PoolId>) {
        self.used -= 1;
        self.count(channel, pool, |held| held.used -= 1);
    }

    /// Changes what is held of a channel, and of the share of its pool.
    fn count(&mut self, channel: ChannelId, pool: Option<PoolId>, change: impl Fn(&mut SlotsHeld)) {
        change(&mut self.by_channel[channel.index()]);
        if let Some(share) = self.shares.iter_mut().find(|share| Some(share.pool) == pool) {
            change(&mut share.held);
        }
    }

    /// A resident waits for a slot.
    fn wait(&mut self, waiting: WaitingResident) {
        self.waiting.push_back(waiting);
    }

    /// The resident that waits longest has got a slot.
    fn end_wait(&mut self) {
        self.waiting.pop_front();
    }

    /// The resident that waits longest.
    fn first_waiting(&self) -> Option<&WaitingResident> {
        self.waiting.front()
    }

    /// Checks that slots held add up. Errors: the rule broken, in words.
    fn audit(&self) -> Result<(), String> {
        let held: u32 = self.by_channel.iter().map(|held| held.used).sum();
        if held != self.used || self.by_channel.iter().any(|held| held.leaving > held.used) {
            return Err(format!("{held} slots held by channel, {} taken", self.used));
        }
        Ok(())
    }
}

/// One channel, or a group that a drive shows as one.
#[derive(Clone, Debug)]
struct Channel {
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

#[derive(Clone, Debug)]
struct FreeSlots {
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
    fn new(
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
    fn count(&self) -> u32 {
        self.channels.iter().map(|channel| channel.slots.len() as u32).sum()
    }

    /// The slot after the last.
    fn end(&self) -> SlotId {
        SlotId(self.channels.last().map_or(0, |channel| channel.slots.end))
    }

    fn channels(&self) -> usize {
        self.channels.len()
    }

    /// The channel of a slot.
    fn channel_of(&self, slot: SlotId) -> ChannelId {
        ChannelId::new(self.channels.partition_point(|channel| channel.slots.end <= slot.0))
    }

    /// The pool that has a channel.
    fn pool_of(&self, channel: ChannelId) -> Option<PoolId> {
        self.channels.get(channel.index())?.pool
    }

    /// Whether a pool has a free slot.
    fn has(&self, pool: PoolId) -> bool {
        let pool = self.pools.get(pool.index());
        pool.is_some_and(|pool| !pool.freed.is_empty() || pool.in_runs > 0)
    }

    /// The next slot of a pool.
    fn take(&mut self, pool: PoolId) -> Option<SlotId> {
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
    fn take_any(&mut self) -> Option<SlotId> {
        let mut unpooled = self.channels.iter_mut().filter(|channel| channel.pool.is_none());
        let slot = unpooled.find_map(Channel::next);
        slot.or_else(|| (0..self.pools.len()).find_map(|pool| self.take(PoolId::new(pool))))
    }

    /// A slot is free again.
    fn give_back(&mut self, slot: SlotId) {
        let channel = self.channel_of(slot);
        let pool = self.pool_of(channel);
        match pool.and_then(|pool| self.pools.get_mut(pool.index())) {
            Some(pool) => pool.freed.push(slot),
            None => self.channels[channel.index()].give_back(slot),
        }
    }

    /// Puts the channels into other pools. A pool of the same channels as one before goes on as
    /// that did; the free slots of the others are given out going round.
    fn apply_layout(&mut self, pools: &[Vec<u32>]) {
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

    fn all(&self) -> impl Iterator<Item = SlotId> {
        let freed = self.pools.iter().flat_map(|pool| pool.freed.iter().copied());
        let runs = self.channels.iter().flat_map(|channel| channel.runs.iter().cloned());
        freed.chain(runs.flatten().map(SlotId))
    }

    /// Checks that no slot is free twice and that pools count their runs. Errors: the rule broken,
    /// in words.
    fn audit(&self) -> Result<(), String> {
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
fn unit_of(channels: &[Exposed], block_shift: u32) -> u32 {
    let page = channels.first().map_or(0, |range| range.page.0);
    u32::try_from(page >> block_shift).unwrap_or(1).max(1)
}

/// The blocks of each range among the first `count` that are given out going round the ranges.
fn cut(ranges: &[Range<u32>], unit: u32, count: u32) -> Vec<Range<u32>> {
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
    use cachewright_types::{Bytes, Seed};

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

    /// A map of pools of channels; of each tenant its shares as (pool, blocks).
    fn map(pools: &[&[u32]], tenants: &[&[(usize, u32)]]) -> ChannelMap {
        let share = |(pool, blocks): &(usize, u32)| PoolShare { pool: *pool, blocks: *blocks };
        ChannelMap {
            pools: pools.iter().map(|pool| pool.to_vec()).collect(),
            tenants: tenants.iter().map(|shares| shares.iter().map(share).collect()).collect(),
            lent: Vec::new(),
        }
    }

    /// So many slots of a tenant, in the region it wants.
    fn take(slots: &mut Slots, tenant: usize, region: Region, count: usize) -> Vec<SlotGrant> {
        (0..count).map_while(|_| slots.take(tenant, region)).collect()
    }

    fn numbers(grants: &[SlotGrant]) -> Vec<u32> {
        grants.iter().map(|grant| grant.slot.0).collect()
    }

    /// Gives a slot back; which resident gets which slot for it.
    fn give_back(slots: &mut Slots, grant: SlotGrant) -> Vec<(u32, u32)> {
        slots.leave(grant);
        let mut served = Vec::new();
        slots.give_back(grant, &mut served);
        assert_eq!(slots.audit(), Ok(()));
        served.iter().map(|(resident, grant)| (resident.0, grant.slot.0)).collect()
    }

    /// The region of a slot for its holder: [`Region::Any`] where the layout does not give it the
    /// channel, or no longer.
    fn region_of(slots: &Slots, grant: SlotGrant) -> Region {
        let pool = slots.free.pool_of(slots.free.channel_of(grant.slot));
        let mut shares = slots.classes[grant.class.index()].shares().iter();
        let share = shares.find(|share| Some(share.pool) == pool);
        share.map_or(Region::Any, |share| slots.region(share.pool))
    }

    fn free(slots: &Slots) -> Vec<u32> {
        slots.free().map(|slot| slot.0).collect()
    }

    #[test]
    fn slots_go_round_the_channels_page_by_page() {
        let order = |shift: u32, pages: &[u64], count| {
            let mut slots = Slots::striped(&channels(pages), shift, count);
            numbers(&take(&mut slots, 0, Region::Any, 100))
        };
        assert_eq!(order(12, &[3, 1, 3], 9), [0, 3, 4, 1, 5, 2, 6]);
        assert_eq!(order(12, &[3, 1, 3], 4), [0, 3, 4, 1]);
        assert_eq!(order(11, &[2, 2], 9), [0, 1, 4, 5, 2, 3, 6, 7], "half a page each");
        assert_eq!(order(13, &[3, 4], 9), [0, 2], "whole blocks within a channel");
        let mut plain = Slots::plain(3);
        assert_eq!(numbers(&take(&mut plain, 7, Region::Private, 9)), [0, 1, 2]);
        assert_eq!((plain.count(), plain.end().0), (3, 3));
    }

    /// Tenant 0 has channel 0, tenant 1 channel 1, and both share channel 2: one block each.
    #[test]
    fn a_tenant_keeps_to_its_pools_and_its_quota() {
        let map = map(&[&[0], &[1], &[2]], &[&[(0, 2), (2, 1)], &[(1, 2), (2, 1)]]);
        let mut slots = Slots::laid_out(&map, &channels(&[2, 2, 2]), 12, 0);
        assert!(slots.set_quotas(&[3, 3]).is_empty());
        let zero = take(&mut slots, 0, Region::Any, 3);
        assert_eq!(numbers(&zero), [0, 1, 4]);
        assert_eq!(slots.take(0, Region::Any), None, "slot 5 is the other's share");
        slots.wait(0, Region::Any, ResidentId(70));
        assert_eq!(numbers(&take(&mut slots, 1, Region::Any, 3)), [2, 3, 5]);
        slots.wait(1, Region::Any, ResidentId(71));
        assert_eq!(give_back(&mut slots, zero[1]), [(70, 1)]);
        assert_eq!(give_back(&mut slots, zero[1]), [], "71 may not take slot 1");
        assert_eq!(free(&slots), [1]);
        assert_eq!(give_back(&mut slots, zero[2]), [], "nor more than its share of the pool");
    }

    #[test]
    fn quotas_bound_what_is_taken_and_may_change() {
        let channels = channels(&[4, 4]);
        let map = map(&[&[0], &[1]], &[&[(0, 4)], &[(1, 4)]]);
        let mut slots = Slots::laid_out(&map, &channels, 12, 1);
        slots.set_quotas(&[1, 3]);
        let taken = take(&mut slots, 0, Region::Any, 9);
        assert_eq!(taken.len(), 2, "its quota and the spare one");
        slots.wait(0, Region::Any, ResidentId(5));
        assert!(slots.take(0, Region::Any).is_none());
        let served = slots.set_quotas(&[2, 2]);
        assert_eq!(served.iter().map(|(resident, _)| resident.0).collect::<Vec<_>>(), [5]);
        slots.wait(0, Region::Any, ResidentId(6));
        slots.set_quotas(&[0, 4]);
        assert_eq!(give_back(&mut slots, taken[0]), [], "above the quota");
        assert_eq!(give_back(&mut slots, taken[1]), []);
        assert_eq!(give_back(&mut slots, served[0].1), [(6, served[0].1.slot.0)]);
        assert_eq!((slots.count(), slots.end().0), (8, 8));
    }

    /// Tenant 0 has channel 0 (slots 0 to 3) to itself and shares channel 1 (4 to 7) with tenant 1.
    fn two_regions() -> Slots {
        let map = map(&[&[0], &[1]], &[&[(0, 4), (1, 2)], &[(1, 2)]]);
        let mut slots = Slots::laid_out(&map, &channels(&[4, 4]), 12, 0);
        slots.set_quotas(&[6, 2]);
        slots
    }

    #[test]
    fn a_block_gets_a_slot_of_the_region_it_wants() {
        let mut slots = two_regions();
        let common = take(&mut slots, 0, Region::Shared, 1);
        let own = take(&mut slots, 0, Region::Private, 1);
        assert_eq!((numbers(&common), numbers(&own)), (vec![4], vec![0]));
        let regions = [common[0], own[0]].map(|taken| region_of(&slots, taken));
        assert_eq!(regions, [Region::Shared, Region::Private]);
        let other = take(&mut slots, 1, Region::Private, 1);
        assert_eq!(
            (other[0].slot.0, region_of(&slots, other[0])),
            (5, Region::Shared),
            "it has no other"
        );
        let more = take(&mut slots, 0, Region::Shared, 9);
        assert_eq!(numbers(&more), [6, 1, 2, 3], "two of the shared region, then its own");
    }

    #[test]
    fn a_block_waits_for_its_region_only_while_an_eviction_is_pending_there() {
        let mut slots = two_regions();
        let own = take(&mut slots, 0, Region::Private, 4);
        assert_eq!(numbers(&own), [0, 1, 2, 3]);
        slots.leave(own[2]);
        assert_eq!(slots.take(0, Region::Private), None, "slot 2 will be given back");
        slots.wait(0, Region::Private, ResidentId(9));
        let mut served = Vec::new();
        slots.give_back(own[2], &mut served);
        assert_eq!((served[0].0.0, served[0].1.slot.0), (9, 2));
        let common = take(&mut slots, 0, Region::Private, 1);
        assert_eq!(numbers(&common), [4], "nothing leaves: the other region");
    }

    /// Channel 0 goes from tenant 0 to tenant 1 while one of its blocks is there.
    #[test]
    fn a_slot_that_is_held_goes_to_the_new_map_when_it_is_given_back() {
        let (before, after) =
            (map(&[&[0], &[1]], &[&[(0, 2)], &[(1, 2)]]), map(&[&[0, 1]], &[&[], &[(0, 4)]]));
        let mut slots = Slots::laid_out(&before, &channels(&[2, 2, 2]), 12, 0);
        slots.set_quotas(&[2, 2]);
        let zero = take(&mut slots, 0, Region::Any, 2);
        let one = take(&mut slots, 1, Region::Any, 2);
        assert_eq!((numbers(&zero), numbers(&one)), (vec![0, 1], vec![2, 3]));
        slots.wait(1, Region::Any, ResidentId(7));
        assert_eq!(give_back(&mut slots, zero[1]), [], "not its channel yet");
        assert!(slots.apply_layout(&after).is_empty(), "not its quota yet");
        assert_eq!(
            (region_of(&slots, zero[0]), region_of(&slots, one[0])),
            (Region::Any, Region::Private)
        );
        let served = slots.set_quotas(&[0, 4]);
        assert_eq!((served[0].0.0, served[0].1.slot.0), (7, 1));
        assert_eq!(give_back(&mut slots, zero[0]), []);
        assert_eq!(numbers(&take(&mut slots, 1, Region::Any, 9)), [0]);
        assert_eq!(free(&slots), [4, 5], "of no pool");
        slots.apply_layout(&map(&[&[2]], &[&[], &[(0, 2)]]));
        assert_eq!(give_back(&mut slots, one[0]), []);
        assert_eq!(free(&slots), [2, 4, 5], "slot 2 has no pool now");
    }

    /// After the layout change tenant 1 has channel 0, which is full of tenant 0's blocks.
    #[test]
    fn a_block_whose_channels_are_full_of_others_lies_elsewhere_meanwhile() {
        let before = map(&[&[0], &[1]], &[&[(0, 2)], &[(1, 2)]]);
        let after = map(&[&[1], &[0]], &[&[(0, 2)], &[(1, 2)]]);
        let mut slots = Slots::laid_out(&before, &channels(&[2, 2, 1]), 12, 0);
        slots.set_quotas(&[2, 2]);
        let zero = take(&mut slots, 0, Region::Any, 2);
        slots.apply_layout(&after);
        let one = take(&mut slots, 1, Region::Any, 2);
        assert_eq!(numbers(&one), [4, 2], "the channel without a pool first");
        assert_eq!(region_of(&slots, one[0]), Region::Any);
        slots.leave(zero[0]);
        assert_eq!(give_back(&mut slots, one[1]), []);
        assert_eq!(slots.take(1, Region::Any), None, "slot 0 is on its way to it");
    }

    #[test]
    fn freed_slots_are_given_out_last_first_until_channels_are_put_together_anew() {
        let pools = |pools: &[&[u32]]| map(pools, &[&[(0, 9)]]);
        let mut slots = Slots::laid_out(&pools(&[&[0, 1]]), &channels(&[3, 3, 3]), 12, 0);
        let taken = take(&mut slots, 0, Region::Any, 4);
        assert_eq!(numbers(&taken), [0, 3, 1, 4]);
        for at in [1, 0, 3] {
            give_back(&mut slots, taken[at]);
        }
        slots.apply_layout(&pools(&[&[0, 1], &[2]]));
        let again = take(&mut slots, 0, Region::Any, 2);
        assert_eq!(numbers(&again), [4, 0], "the same channels: the last freed first");
        slots.apply_layout(&pools(&[&[1, 2]]));
        assert_eq!(numbers(&take(&mut slots, 0, Region::Any, 5)), [3, 6, 5, 7, 8], "4 is held");
    }

    #[test]
    fn slots_held_follow_their_channel_to_another_pool() {
        let share = |pool, blocks| PoolShare { pool, blocks };
        let mut class = SlotClass::new(2);
        class.set_shares(&[share(0, 2)], |channel| Some(PoolId(channel.0)));
        class.take(ChannelId(0), Some(PoolId(0)));
        class.take(ChannelId(1), Some(PoolId(1)));
        class.count(ChannelId(1), Some(PoolId(1)), |held| held.leaving += 1);
        assert_eq!(class.shares()[0].held, SlotsHeld { used: 1, leaving: 0 });
        // Both channels are one pool now, named twice: 1 and 2 slots of it.
        class.set_shares(&[share(0, 1), share(0, 2)], |_| Some(PoolId(0)));
        let shares = class.shares();
        assert_eq!((shares.len(), shares[0].max_slots), (1, 3));
        assert_eq!((shares[0].held.used, shares[0].held.staying()), (2, 1));
        class.set_max_slots(2);
        assert!(!class.may_take() && shares_left(&class));
        class.give_back(ChannelId(0), Some(PoolId(0)));
        assert!(class.may_take());
        assert_eq!(class.audit(), Ok(()));
    }

    fn shares_left(class: &SlotClass) -> bool {
        class.shares()[0].may_take()
    }

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
