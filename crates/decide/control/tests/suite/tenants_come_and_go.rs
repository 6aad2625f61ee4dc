//! Channels follow the tenants that are present: a case worked by hand, from grant to refusal.
//!
//! Three channels of 100 blocks. Tenant 0 uses 90 blocks and is there from the start, tenant 1 uses
//! 130 and comes at 5 ns, tenant 2 uses 150 and comes at 6 ns. A rest of less than half a channel
//! goes to the pool, so that tenant 0 has one channel, tenant 1 one and 30 blocks of the pool, and
//! tenant 2 finds 70 blocks free. No block is spare.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_cache::{Cache, Engine, Plan, WriteMode};
use cachewright_control::tenancy::{Change, ChannelTenancy, Event};
use cachewright_control::{CacheDecider, Control, Decider};
use cachewright_partition::layout::{ChannelSizes, LayoutTenant};
use cachewright_partition::{CacheDivision, Partitioner, Requirement, TenantConstants, TenantView};
use cachewright_policy::oc_smq::{OcSmq, OcSmqSettings};
use cachewright_policy::{FutureSlice, PolicyHooks, Region, Registered};
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Seed, TenantId};

const USES: [u32; 3] = [90, 130, 150];
const TOTAL: u32 = 300;
/// When each comes, and whether it leaves when it is done.
const STAYS: [(u64, bool); 3] = [(0, true), (5, true), (6, false)];

/// Gives each tenant that is present what it uses.
struct Uses;

cachewright_snapshot::refused!(Uses: "a partitioner of this test");

impl Partitioner for Uses {
    fn divide(&mut self, tenants: &[TenantView], _: u32) -> CacheDivision {
        let blocks = |(view, uses): (&TenantView, u32)| if view.absent { 0 } else { uses };
        CacheDivision::PerTenant(tenants.iter().zip(USES).map(blocks).collect())
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        0
    }

    fn requirements(&self, _: &[TenantView], quotas: &[u32]) -> Vec<Requirement> {
        quotas.iter().map(|blocks| Requirement { blocks: *blocks, miss_ratio: 0.1 }).collect()
    }
}

/// A decider over oc-smq whose channels follow the tenants; the first has its own.
fn decider() -> CacheDecider<OcSmq> {
    let mut control = Control::new(Box::new(Uses), vec![TenantConstants::default(); 3], TOTAL);
    control.set_absent(STAYS.map(|stay| stay.0 > 0).to_vec());
    let quotas = control.first();
    let channels = ChannelSizes { blocks: vec![100; 3], total_blocks: TOTAL };
    let mut layout = cachewright_partition::layout::boxed("on-demand", &[]).unwrap();
    let required = control.required().to_vec();
    let view = |(one, stay): (&Requirement, &(u64, bool))| LayoutTenant {
        need_blocks: one.blocks,
        miss_ratio: one.miss_ratio,
        absent: stay.0 > 0,
        ..LayoutTenant::default()
    };
    let views: Vec<LayoutTenant> = required.iter().zip(&STAYS).map(view).collect();
    let map = layout.lay_out(&views, &channels).unwrap();
    let limits = (0..3).map(|tenant| map.limit_blocks(tenant)).collect();
    let quotas = control.rebound(limits, quotas);
    let tenancy = ChannelTenancy::new(layout, map, channels, 0, &STAYS, &required);
    let make = |_, capacity| OcSmq::new(capacity, &OcSmqSettings::default(), Seed(0));
    let engine = Engine::new(3, &quotas, WriteMode::WriteBack, make);
    CacheDecider::new(Cache::new(engine, 12), 3, Some(control)).with_tenancy(Some(tenancy))
}

fn granted(channels: &[u32], bucket_blocks: u32, shared_blocks: u32) -> Change {
    Change::Granted { channels: channels.to_vec(), bucket_blocks, shared_blocks }
}

fn events(decider: &mut CacheDecider<OcSmq>) -> Vec<Event> {
    decider.tenancy().unwrap().take_events()
}

/// An event of a tenant that uses `blocks`.
fn event(time_ns: u64, tenant: usize, blocks: u32, change: Change, sums: (u64, u64)) -> Event {
    let required = Requirement { blocks, miss_ratio: 0.1 };
    let (requested_blocks, allocated_blocks) = sums;
    Event { time_ns, tenant, required, change, requested_blocks, allocated_blocks }
}

#[test]
fn channels_follow_the_tenants_present() {
    let mut decider = decider();
    let mut plan = Plan::default();
    let first = event(0, 0, 90, granted(&[0], 100, 0), (90, 100));
    assert_eq!(events(&mut decider), [first]);
    assert_eq!(decider.quotas(), [90, 0, 0]);
    assert_eq!(decider.tenancy().unwrap().absent(), [false, true, true]);

    // The second comes: a channel of its own and 30 blocks of a pool of one channel.
    assert!(decider.tenancy().unwrap().presence_mut().admit(5));
    decider.redivide(5, &mut plan);
    let second = event(5, 1, 130, granted(&[1], 100, 30), (220, 300));
    assert_eq!(events(&mut decider), [second]);
    assert_eq!(decider.quotas(), [90, 130, 0]);
    let map = decider.tenancy().unwrap().map().clone();
    assert_eq!(map.pools.iter().map(Vec::len).sum::<usize>(), 3);

    // The third finds 70 blocks of the pool: one channel is missing.
    assert!(decider.tenancy().unwrap().presence_mut().admit(6));
    decider.redivide(6, &mut plan);
    assert_eq!(events(&mut decider), [event(6, 2, 150, Change::Refused(1), (220, 300))]);
    assert_eq!(decider.quotas(), [100, 130, 0], "what it lacks fills the first one's channel");
    decider.redivide(7, &mut plan);
    assert_eq!(events(&mut decider), [], "nothing has changed since");

    // The first leaves with two dirty blocks: they are written back, and its channel is the
    // third's, with 50 blocks of the pool.
    for number in [3, 4] {
        decider.on_request(&write(0, number), FutureSlice::None, &mut plan);
    }
    assert!(decider.tenancy().unwrap().presence_mut().retire(|tenant| tenant == 0));
    decider.redivide(8, &mut plan);
    assert_eq!(plan.moves.len(), 2, "{:?}", plan.moves);
    assert_eq!((decider.dirty_blocks(), decider.quotas()), (0, vec![0, 130, 150]));
    let left = event(8, 0, 90, Change::Left, (280, 300));
    let third = event(8, 2, 150, granted(&[0], 100, 50), (280, 300));
    assert_eq!(events(&mut decider), [left, third]);
    assert_eq!(decider.audit(), Ok(()));
}

fn write(tenant: u16, number: u64) -> Request {
    Request {
        time: Nanos(0),
        offset: Bytes(number << 12),
        length: Bytes(4096),
        op: Op::Write,
        tenant: TenantId(tenant),
    }
}

#[test]
fn quotas_are_divided_as_the_channels_are() {
    let mut decider = decider();
    let mut plan = Plan::default();
    decider.tenancy().unwrap().presence_mut().admit(5);
    decider.redivide(5, &mut plan);
    // 100 blocks of its own channel and 30 of the pool: of 130 blocks, 100 are private.
    for number in 0..130 {
        decider.on_request(&write(1, number), FutureSlice::None, &mut plan);
    }
    let policy = decider.engine().policy(decider.engine().pool_of(TenantId(1)));
    let region = |id| policy.region(BlockId(id));
    let private = (0..130).filter(|id| region(*id) == Region::Private).count();
    let shared = (0..130).filter(|id| region(*id) == Region::Shared).count();
    assert_eq!((private, shared), (100, 30));
}
