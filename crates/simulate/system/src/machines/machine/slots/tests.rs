//! Slots by hand: rounds, quotas, regions, layouts that change.
//!
//! For: which tenant gets which slot. Must never know: machines.

use super::*;
use cachewright_partition::layout::PoolShare;
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

/// After the layout change tenant 1 has channel 0, which is full of tenant 0's blocks that stay.
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
