//! The slots of the cache device: which tenant may take which, and which residents wait for one.
//!
//! For: carrying out a layout: a tenant's blocks lie in the slots of its pools of channels, in the
//! region that its policy prefers if it has one. Must never know: layouts' reasons, devices, time.
//! Units: blocks (a slot holds one). Without a layout all slots are one pool. Rules for a block
//! that wants a slot, in this order:
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

use super::free_slots::{FreeSlots, blocks_of, cut, unit_of};
use super::ids::{ChannelId, PoolId, ResidentId, SlotId};
use super::slot_class::{SlotClass, SlotsHeld, UNLIMITED, WaitingResident};
use cachewright_device::Exposed;
use cachewright_partition::layout::{ChannelMap, PoolShare};
use cachewright_policy::Region;
use std::num::NonZeroU16;

/// A slot and the class that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotGrant {
    /// The slot.
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

/// All slots.
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

#[cfg(test)]
mod tests;
