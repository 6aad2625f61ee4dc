//! Places by hand: queues for a slot, moves to a free slot, exchanges.
//!
//! For: which slot a resident lies in. Must never know: steps, devices.

use super::*;
use cachewright_device::Exposed;
use cachewright_partition::layout::PoolShare;
use cachewright_types::{Bytes, Seed};

const TENANT: TenantId = TenantId(0);

/// Two channels of two slots: 0 and 1 are the tenant's alone, it shares 2 and 3 with another one.
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
    assert!(places.set_preferred(a, Region::Shared) && places.set_preferred(b, Region::Private));
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

/// Residents begin, leave, end and move at random: every slot has one holder or is free, and every
/// resident that waits gets a slot in the end.
#[test]
fn every_slot_has_one_holder() {
    for seed in 0..16 {
        let mut rng = Seed(seed).rng();
        let mut places = two_regions(2);
        let (mut alive, mut next): (Vec<ResidentId>, u32) = (Vec::new(), 0);
        for _ in 0..300 {
            let preferred = [Region::Any, Region::Private, Region::Shared][rng.below(3) as usize];
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
