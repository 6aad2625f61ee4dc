//! Every layout of the registry, and the allocation of Algorithm 1, on random tenants: what is
//! promised exists, no tenant is over-committed or skipped, and the same input has one answer.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_partition::layout::on_demand::{ChannelDemand, allocate};
use cachewright_partition::layout::{
    ChannelMap, ChannelSizes, Entry, LayoutTenant, PoolShare, Wish, boxed, entries,
};
use proptest::prelude::*;

fn wish() -> impl Strategy<Value = Option<Wish>> {
    prop_oneof![
        4 => Just(None),
        2 => (1_u32..4).prop_map(|count| Some(Wish::Count(count))),
        1 => prop::collection::vec(0_u32..16, 1..3).prop_map(|set| Some(Wish::Channels(set))),
    ]
}

/// What a machine asks before it uses a layout: whether quotas are cut to the channels, and whether
/// the layout is computed again as tenants start and leave. A layout that ignores absence gives
/// absent tenants their channels and refuses none.
#[test]
fn a_layout_says_whether_it_cuts_quotas_and_follows_tenants() {
    let views = [true, false].map(|absent| LayoutTenant {
        weight: 1.0,
        quota_blocks: 10,
        need_blocks: 10,
        absent,
        ..LayoutTenant::default()
    });
    let channels = ChannelSizes { blocks: vec![100; 4], total_blocks: 20 };
    let expected = [
        ("striped", false, false, [20, 20]),
        ("dedicated", false, false, [200, 200]),
        ("flashblox", true, false, [100, 100]),
        ("on-demand", true, true, [0, 10]),
    ];
    let found = entries().into_iter().map(|entry| {
        let mut layout = boxed(entry.name, &[]).unwrap();
        let map = layout.lay_out(&views, &channels).unwrap();
        assert_eq!(layout.refused(), [], "{}: 400 blocks for 20", entry.name);
        let limits = [0, 1].map(|tenant| map.limit_blocks(tenant));
        (entry.name, layout.may_cut(), layout.follows_tenants(), limits)
    });
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn all_layouts_but_striped_need_the_channels_of_a_drive() {
    let words = |entry: &Entry| entry.needs.iter().map(|need| need.word()).collect::<Vec<_>>();
    let found = entries().into_iter().map(|entry| (entry.name, words(entry)));
    let channels = |name| (name, vec!["channels"]);
    let others = ["dedicated", "flashblox", "on-demand"].map(channels);
    assert_eq!(found.collect::<Vec<_>>(), [&[("striped", vec![])][..], &others].concat());
}

proptest! {
    #[test]
    fn maps_are_sound_and_deterministic(
        tenants in prop::collection::vec((0.1_f64..10.0, 0_u32..500, wish()), 1..8),
        blocks in prop::collection::vec(50_u32..150, 1..20),
    ) {
        let quotas: u32 = tenants.iter().map(|(_, quota, _)| quota).sum();
        let total_blocks = quotas.min(blocks.iter().sum());
        let channels = ChannelSizes { blocks, total_blocks };
        let views: Vec<LayoutTenant> = tenants
            .iter()
            .map(|(weight, quota, wish)| LayoutTenant {
                weight: *weight,
                quota_blocks: *quota,
                need_blocks: *quota,
                wish: wish.as_ref(),
                ..LayoutTenant::default()
            })
            .collect();
        for entry in entries() {
            let mut layout = boxed(entry.name, &[]).unwrap();
            let found = layout.lay_out(&views, &channels);
            prop_assert_eq!(&found, &boxed(entry.name, &[]).unwrap().lay_out(&views, &channels));
            let Ok(map) = found else { continue };
            prop_assert_eq!(map.audit(&views, &channels), Ok(()), "{}", entry.name);
            for (tenant, (_, _, wish)) in tenants.iter().enumerate() {
                let shares = &map.tenants[tenant];
                let roomy = shares.iter().any(|share| share.blocks > 0) || total_blocks == 0;
                prop_assert!(roomy || layout.follows_tenants());
                match (wish, entry.name) {
                    (Some(Wish::Count(count)), "dedicated") => {
                        prop_assert_eq!(map.pools[shares[0].pool].len() as u32, *count);
                    }
                    (Some(Wish::Channels(set)), "dedicated") => {
                        prop_assert_eq!(&map.pools[shares[0].pool], set);
                    }
                    _ => {}
                }
                if !["striped", "on-demand"].contains(&entry.name) {
                    prop_assert!(map.is_exclusive(shares[0].pool));
                }
            }
        }
    }

    #[test]
    fn no_channel_is_over_committed_and_no_tenant_gets_less_than_it_needs(
        needs in prop::collection::vec((0_u32..1000, 0.0_f64..=1.0), 0..20),
        free in 0_u32..40, channel_blocks in 1_u32..300, watermark in 0.0_f64..=1.0,
    ) {
        let demand = |(blocks, miss_ratio): &(u32, f64)| {
            ChannelDemand { blocks: *blocks, miss_ratio: *miss_ratio }
        };
        let demands: Vec<ChannelDemand> = needs.iter().map(demand).collect();
        let found = allocate(&demands, free, channel_blocks, watermark);
        let size = u64::from(channel_blocks);
        let granted = || found.grants.iter().flatten();
        let buckets: u32 = granted().map(|grant| grant.bucket_channels).sum();
        prop_assert_eq!(buckets + found.shared_channels + found.free_channels, free);
        let shared: u64 = granted().map(|grant| u64::from(grant.shared_blocks)).sum();
        prop_assert!(shared <= u64::from(found.shared_channels) * size);
        prop_assert!(u64::from(found.shared_channels) * size < shared + size, "no idle channel");
        for (demand, grant) in demands.iter().zip(&found.grants) {
            match grant {
                Ok(grant) => {
                    let held = u64::from(grant.bucket_channels) * size;
                    let all = held + u64::from(grant.shared_blocks);
                    prop_assert!(all >= u64::from(demand.blocks), "{demand:?} has {grant:?}");
                    prop_assert!(all < u64::from(demand.blocks) + size);
                    let rest = u64::from(grant.shared_blocks);
                    prop_assert!(rest == 0 || all == u64::from(demand.blocks));
                }
                Err(missing) => {
                    prop_assert!(*missing > 0);
                    let remaining = u64::from(found.free_channels + found.shared_channels) * size;
                    let spare = remaining - shared;
                    prop_assert!(u64::from(demand.blocks) > spare, "it would still fit");
                }
            }
        }
    }

    /// Tenants start and leave in any order. At every step buckets, pool and free channels are all
    /// channels. A present tenant keeps its channels: it has its need, or did not fit. The pool
    /// holds what it promises.
    #[test]
    fn on_demand_follows_tenants_that_start_and_leave(
        needs in prop::collection::vec(1_u32..400, 1..8),
        turns in prop::collection::vec((0_usize..8, any::<bool>()), 1..40),
        channels in 1_usize..12, watermark in 0.0_f64..=1.0,
    ) {
        let size = 100_u32;
        let pairs = [("watermark".to_owned(), cachewright_types::Value::Float(watermark))];
        let mut layout = boxed("on-demand", &pairs).unwrap();
        let channels = ChannelSizes { blocks: vec![size; channels], total_blocks: u32::MAX };
        let mut here = vec![false; needs.len()];
        let mut before: Option<ChannelMap> = None;
        for (tenant, comes) in turns {
            let tenant = tenant % needs.len();
            let stayed = here.clone();
            here[tenant] = comes;
            let view = |index: usize| LayoutTenant {
                need_blocks: needs[index],
                absent: !here[index],
                ..LayoutTenant::default()
            };
            let views: Vec<LayoutTenant> = (0..needs.len()).map(view).collect();
            let map = layout.lay_out(&views, &channels).unwrap();
            prop_assert_eq!(map.audit(&views, &channels), Ok(()));
            let used: usize = map.pools.iter().map(Vec::len).sum();
            let pool = &map.pools[needs.len()];
            let room = |shares: &[PoolShare]| shares.iter().map(|share| share.blocks).sum::<u32>();
            let promised: u32 = map.tenants.iter().flatten()
                .filter(|share| share.pool == needs.len()).map(|share| share.blocks).sum();
            prop_assert!(promised <= pool.len() as u32 * size);
            prop_assert!(promised > 0 || pool.is_empty(), "an empty pool gives all back");
            let free = (channels.blocks.len() - used) as u32 * size
                + (pool.len() as u32 * size - promised);
            for index in 0..needs.len() {
                let shares = &map.tenants[index];
                let refused = layout.refused().iter().any(|(found, _)| *found == index);
                prop_assert!(here[index] || (room(shares) == 0 && !refused));
                if refused {
                    prop_assert!(room(shares) == 0 && needs[index] > free, "it would fit");
                } else if here[index] {
                    prop_assert!(room(shares) >= needs[index]);
                    prop_assert!(room(shares) < needs[index] + size);
                }
                let had = |map: &ChannelMap| (map.tenants[index].clone(), map.pools[index].clone());
                let stays = stayed[index] && here[index];
                let had = before.as_ref().map(had).filter(|had| stays && room(&had.0) > 0);
                if let Some(had) = had {
                    let has = (shares.clone(), map.pools[index].clone());
                    prop_assert_eq!(had, has, "a present tenant keeps its channels");
                }
            }
            before = Some(map);
        }
    }
}
