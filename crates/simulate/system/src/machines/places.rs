//! Where each resident lies on the cache device, and where its policy wants it.
//!
//! A resident that is to move holds two slots until it has left the old one.

use super::slots::{RegionBlocks, SlotGrant, Slots};
use cachewright_partition::layout::ChannelMap;
use cachewright_policy::Region;
use cachewright_steps::{ResidentId, SlotId};
use cachewright_types::TenantId;

cachewright_types::index_ids! {
    /// A change of places under way.
    ChangeId,
}

/// The place of one resident; never on two lines of a processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct ResidentPlace {
    /// The slot it lies in; none while it waits for one.
    slot: SlotId,
    /// The slot it holds, which is another one while it moves.
    grant: Option<SlotGrant>,
    /// The slot it comes from, while it moves to a free one.
    old: Option<SlotGrant>,
    tenant: TenantId,
    preferred: Region,
    /// The change of places it takes part in, if any.
    change: ChangeId,
    /// The cache has evicted it.
    leaving: bool,
}

/// The places of all residents.
#[derive(Clone, Debug)]
pub struct ResidentPlaces {
    slots: Slots,
    all: Vec<ResidentPlace>,
    /// Slots have been given back, or quotas have changed, since the last look.
    freed: bool,
    /// Residents that are served; kept for its memory.
    served: Vec<(ResidentId, SlotGrant)>,
}

impl ResidentPlace {
    /// The slot it lies in, unless it waits for one.
    #[inline]
    pub fn slot(&self) -> Option<SlotId> {
        self.slot.present()
    }

    /// The slot it lies in or moves to.
    pub fn destination(&self) -> Option<SlotId> {
        self.grant.map_or(self.slot.present(), |grant| Some(grant.slot))
    }

    /// The tenant whose block it is.
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// Where its policy wants it.
    pub fn preferred(&self) -> Region {
        self.preferred
    }

    /// The change of places it takes part in.
    #[inline]
    pub fn change(&self) -> Option<ChangeId> {
        self.change.present()
    }
}

impl ResidentPlaces {
    /// No resident on some slots.
    pub fn new(slots: Slots) -> ResidentPlaces {
        ResidentPlaces { slots, all: Vec::new(), freed: false, served: Vec::new() }
    }

    /// The place of a resident.
    #[inline]
    pub fn get(&self, id: ResidentId) -> &ResidentPlace {
        &self.all[id.index()]
    }

    /// A resident begins, with a slot if its tenant may take one and no other resident of it waits
    /// for one, else in the queue for a slot. Numbers without a gap.
    pub fn admit(&mut self, id: ResidentId, tenant: TenantId, preferred: Region) {
        let grant = self.slots.take(tenant.index(), preferred);
        let slot = grant.map_or(SlotId::NONE, |grant| grant.slot);
        let (old, change, leaving) = (None, ChangeId::NONE, false);
        let place = ResidentPlace { slot, grant, old, tenant, preferred, change, leaving };
        match self.all.get_mut(id.index()) {
            Some(known) => *known = place,
            None => self.all.push(place),
        }
        if grant.is_none() {
            self.slots.wait(tenant.index(), preferred, id);
        }
    }

    /// The cache has evicted a resident.
    pub fn leave(&mut self, id: ResidentId) {
        let place = &mut self.all[id.index()];
        place.leaving = true;
        if let Some(grant) = place.grant {
            self.slots.leave(grant);
        }
    }

    /// A resident has left its slot; the residents that get slots for it are added to `granted`.
    pub fn end(&mut self, id: ResidentId, granted: &mut Vec<ResidentId>) {
        let place = &mut self.all[id.index()];
        debug_assert!(place.old.is_none(), "a resident that moves has not left");
        (place.slot, place.leaving) = (SlotId::NONE, false);
        self.freed = true;
        if let Some(grant) = place.grant.take() {
            self.give_back(grant, granted);
        }
    }

    /// Gives a slot back; the residents that get slots for it are added to `granted`.
    fn give_back(&mut self, grant: SlotGrant, granted: &mut Vec<ResidentId>) {
        let ResidentPlaces { slots, all, served, .. } = self;
        slots.give_back(grant, served);
        granted.extend(served.drain(..).map(|(id, grant)| assign(slots, all, id, grant)));
    }

    /// Gives residents the slots they waited for; returns the residents.
    fn assign(&mut self, served: Vec<(ResidentId, SlotGrant)>) -> Vec<ResidentId> {
        let ResidentPlaces { slots, all, .. } = self;
        served.into_iter().map(|(id, grant)| assign(slots, all, id, grant)).collect()
    }

    /// Quotas have changed; returns the residents that get slots for it.
    pub fn set_quotas(&mut self, quotas: &[u32]) -> Vec<ResidentId> {
        self.freed = true;
        let served = self.slots.set_quotas(quotas);
        self.assign(served)
    }

    /// The channels are laid out anew; returns the residents that get slots for it.
    pub fn apply_layout(&mut self, map: &ChannelMap) -> Vec<ResidentId> {
        let served = self.slots.apply_layout(map);
        self.assign(served)
    }

    /// Whether slots have been given back, or quotas have changed, since the last call.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
    }

    /// The blocks of a tenant by region; nothing where channels are not laid out.
    pub fn region_blocks(&self, tenant: usize) -> Option<RegionBlocks> {
        self.slots.region_blocks(tenant)
    }

    /// The policy wants a resident in a region; returns whether that is another one.
    pub fn set_preferred(&mut self, id: ResidentId, preferred: Region) -> bool {
        std::mem::replace(&mut self.all[id.index()].preferred, preferred) != preferred
    }

    /// Whether a resident rests in a slot that is not in the region it wants.
    pub fn is_misplaced(&self, id: ResidentId) -> bool {
        let place = self.get(id);
        let rests = !place.leaving && place.change == ChangeId::NONE;
        let outside = |grant: SlotGrant| !self.slots.suits_in(grant, grant.slot, place.preferred);
        place.grant.is_some_and(|grant| rests && outside(grant))
    }

    /// Whether two resting blocks should change places: each then lies in the region it wants and
    /// one did not, or neither wants any.
    pub fn may_swap(&self, first: ResidentId, second: ResidentId) -> bool {
        let (a, b) = (self.get(first), self.get(second));
        let Some((a_grant, b_grant)) = a.grant.zip(b.grant).filter(|_| first != second) else {
            return false;
        };
        if a.change != ChangeId::NONE || b.change != ChangeId::NONE {
            return false;
        }
        if (a.preferred, b.preferred) == (Region::Any, Region::Any) {
            return true;
        }
        let suits = |grant: SlotGrant, slot, preferred| self.slots.suits_in(grant, slot, preferred);
        suits(a_grant, b_grant.slot, a.preferred)
            && suits(b_grant, a_grant.slot, b.preferred)
            && (self.is_misplaced(first) || self.is_misplaced(second))
    }

    /// Takes a free slot in the region that a block wants, if there is one and no resident of its
    /// tenant waits for it; the block moves there.
    pub fn begin_move(&mut self, id: ResidentId) -> bool {
        let place = self.get(id);
        let resting = place.grant.filter(|_| place.change == ChangeId::NONE);
        let Some(old) = resting else { return false };
        let Some(new) = self.slots.take_preferred(old, place.preferred) else { return false };
        self.slots.leave(old);
        let place = &mut self.all[id.index()];
        (place.grant, place.old) = (Some(new), Some(old));
        true
    }

    /// A resident takes part in a change of places.
    pub fn begin_change(&mut self, id: ResidentId, change: ChangeId) {
        let place = &mut self.all[id.index()];
        debug_assert_eq!(place.change, ChangeId::NONE, "one change at a time");
        place.change = change;
    }

    /// The slots of a change change hands: those of two blocks, or of one that moves to a free one.
    pub fn finish_move(&mut self, blocks: &[ResidentId]) {
        match blocks {
            [first, second] => self.exchange(*first, *second),
            alone => alone.iter().for_each(|id| {
                let destination = self.get(*id).destination();
                self.all[id.index()].slot = destination.unwrap_or(SlotId::NONE);
            }),
        }
    }

    fn exchange(&mut self, first: ResidentId, second: ResidentId) {
        let held = [first, second].map(|id| {
            let place = self.get(id);
            place.grant.map(|grant| (grant, place.leaving))
        });
        let [Some(a), Some(b)] = held else { return };
        for (id, grant) in [first, second].into_iter().zip(self.slots.exchange([a, b])) {
            let place = &mut self.all[id.index()];
            (place.slot, place.grant) = (grant.slot, Some(grant));
        }
    }

    /// The change of places of a resident is done, and the slot it came from free; the residents
    /// that get slots for it are added to `granted`.
    pub fn end_change(&mut self, id: ResidentId, granted: &mut Vec<ResidentId>) {
        let place = &mut self.all[id.index()];
        place.change = ChangeId::NONE;
        let Some(old) = place.old.take() else { return };
        self.freed = true;
        self.give_back(old, granted);
    }

    /// Checks that every slot has one holder. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.slots.audit()?;
        let mut seen = vec![false; self.slots.end().index()];
        let held = self.all.iter().flat_map(|place| [place.grant, place.old]);
        for slot in held.flatten().map(|grant| grant.slot).chain(self.slots.free()) {
            if std::mem::replace(&mut seen[slot.index()], true) {
                return Err(format!("slot {} is there twice", slot.0));
            }
        }
        let known = seen.iter().filter(|seen| **seen).count();
        if known != self.slots.count() as usize {
            return Err(format!("{known} slots are known of {}", self.slots.count()));
        }
        Ok(())
    }
}

/// A resident that waited lies in a slot from now on.
fn assign(
    slots: &mut Slots,
    all: &mut [ResidentPlace],
    id: ResidentId,
    grant: SlotGrant,
) -> ResidentId {
    let place = &mut all[id.index()];
    (place.slot, place.grant) = (grant.slot, Some(grant));
    if place.leaving {
        slots.leave(grant);
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_device::Exposed;
    use cachewright_partition::layout::PoolShare;
    use cachewright_types::{Bytes, Seed};

    const TENANT: TenantId = TenantId(0);

    /// Two channels of two slots: 0 and 1 are the tenant's alone, it shares 2 and 3 with another.
    fn two_regions(private_blocks: u32) -> ResidentPlaces {
        let channel = |at: u64| Exposed {
            channels: vec![at as u32],
            bytes: at * 8192..(at + 1) * 8192,
            page: Bytes(4096),
        };
        let share = |pool, blocks| PoolShare { pool, blocks };
        let map = ChannelMap {
            pools: vec![vec![0], vec![1]],
            tenants: vec![vec![share(0, private_blocks), share(1, 2)], vec![share(1, 2)]],
            lent: Vec::new(),
        };
        let mut slots = Slots::laid_out(&map, &[channel(0), channel(1)], 12, 0);
        slots.set_quotas(&[4, 2]);
        ResidentPlaces::new(slots)
    }

    fn admit(places: &mut ResidentPlaces, id: u32, preferred: Region) -> Option<u32> {
        places.admit(ResidentId(id), TENANT, preferred);
        places.get(ResidentId(id)).slot().map(|slot| slot.0)
    }

    #[test]
    fn a_misplaced_block_holds_both_slots_until_it_has_moved() {
        let mut places = two_regions(2);
        let slots = [0, 1, 2].map(|id| admit(&mut places, id, Region::Private));
        assert_eq!(slots, [Some(0), Some(1), Some(2)], "the third finds its region full");
        let [first, third] = [ResidentId(0), ResidentId(2)];
        assert!(places.is_misplaced(third) && !places.is_misplaced(first));
        assert!(!places.begin_move(third), "no free slot");
        let mut granted = Vec::new();
        places.leave(first);
        places.end(first, &mut granted);
        assert!(granted.is_empty() && places.take_freed());
        assert!(places.begin_move(third));
        places.begin_change(third, ChangeId(0));
        assert!(!places.is_misplaced(third), "it is on its way");
        let place = *places.get(third);
        assert_eq!((place.slot(), place.destination()), (Some(SlotId(2)), Some(SlotId(0))));
        assert_eq!(places.audit(), Ok(()));
        places.finish_move(&[third]);
        assert_eq!(places.get(third).slot(), Some(SlotId(0)));
        places.end_change(third, &mut granted);
        assert!(granted.is_empty());
        assert_eq!(places.audit(), Ok(()));
        let blocks = places.region_blocks(0).unwrap();
        assert_eq!((blocks.private_blocks, blocks.shared_blocks), (2, 0));
    }

    #[test]
    fn an_exchange_is_due_where_both_then_lie_in_the_region_they_want() {
        let mut places = two_regions(2);
        let [a, b] = [ResidentId(0), ResidentId(1)];
        assert_eq!(admit(&mut places, 0, Region::Private), Some(0));
        assert_eq!(admit(&mut places, 1, Region::Shared), Some(2));
        assert!(!places.may_swap(a, b) && !places.may_swap(a, a));
        assert!(
            places.set_preferred(a, Region::Shared) && places.set_preferred(b, Region::Private)
        );
        assert!(!places.set_preferred(b, Region::Private), "the same region as before");
        assert!(places.may_swap(a, b));
        places.leave(a);
        places.finish_move(&[a, b]);
        let slots = [a, b].map(|id| places.get(id).slot());
        assert_eq!(slots, [Some(SlotId(2)), Some(SlotId(0))]);
        assert_eq!(places.region_blocks(0).unwrap().shared_blocks, 0, "the block there leaves");
        assert_eq!(places.audit(), Ok(()));
        assert!(places.set_preferred(a, Region::Any) && places.set_preferred(b, Region::Any));
        assert!(places.may_swap(a, b), "neither wants a region");
    }

    /// Residents begin, leave, end and move at random: every slot has one holder or is free, and
    /// every resident that waits gets a slot in the end.
    #[test]
    fn every_slot_has_one_holder() {
        for seed in 0..16 {
            let mut rng = Seed(seed).rng();
            let mut places = two_regions(2);
            let (mut alive, mut next): (Vec<ResidentId>, u32) = (Vec::new(), 0);
            for _ in 0..300 {
                let preferred =
                    [Region::Any, Region::Private, Region::Shared][rng.below(3) as usize];
                if alive.len() < 6 && rng.below(2) == 0 {
                    places.admit(ResidentId(next), TENANT, preferred);
                    alive.push(ResidentId(next));
                    next += 1;
                } else if !alive.is_empty() {
                    let at = rng.below(alive.len() as u64) as usize;
                    let id = alive[at];
                    match rng.below(3) {
                        0 if places.get(id).slot().is_some() => {
                            places.leave(id);
                            places.end(id, &mut Vec::new());
                            alive.swap_remove(at);
                        }
                        1 => {
                            places.set_preferred(id, preferred);
                            if places.is_misplaced(id) && places.begin_move(id) {
                                places.begin_change(id, ChangeId(0));
                                places.finish_move(&[id]);
                                places.end_change(id, &mut Vec::new());
                            }
                        }
                        _ => {}
                    }
                }
                assert_eq!(places.audit(), Ok(()), "seed {seed}");
                let placed = alive.iter().filter(|id| places.get(**id).slot().is_some()).count();
                assert_eq!(placed, alive.len().min(4), "seed {seed}");
            }
        }
    }
}
