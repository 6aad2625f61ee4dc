//! Lists whose lengths follow requests agree with lists kept by hand: who gives room, how much of
//! it together, and what is left to the requester.

#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_cache::{Engine, Quotas, WriteMode};
use cachewright_device::ssd::host::Port;
use cachewright_device::{Command, Device};
use cachewright_partition::{VictimChoice, VictimSelector, WriteRequest};
use cachewright_policy::{Registered, lru::Lru};
use cachewright_system::series::QuotaState;
use cachewright_system::ssd::{CachedParts, CachedSsd, DataCacheParams, DataCached, cached};
use cachewright_testkit::drives;
use cachewright_types::{Bytes, Nanos, Op, Seed, TenantId, Value};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

const PAGE: u64 = 8192;
const TENANTS: u16 = 3;

/// What was asked: tenant, pages, busy channels, pages held, whether the cache was full.
type Heard = Arc<Mutex<Vec<(usize, u32, u32, Vec<u32>, bool)>>>;

/// Says what it is told to, in turn, and notes the questions.
struct Script {
    answers: Vec<VictimChoice>,
    heard: Heard,
}

impl VictimSelector for Script {
    fn initial(&self) -> VictimChoice {
        VictimChoice::default()
    }

    fn on_write(&mut self, asked: &WriteRequest<'_>) -> VictimChoice {
        let mut heard = self.heard.lock().unwrap();
        let answer = self.answers[heard.len() % self.answers.len()];
        assert_eq!(asked.channels, 4);
        heard.push((
            asked.tenant,
            asked.blocks,
            asked.busy_channels,
            asked.held.to_vec(),
            asked.full,
        ));
        answer
    }
}

fn drive(total: u32, answers: Vec<VictimChoice>, heard: &Heard) -> CachedSsd<Lru> {
    let pairs = [("write_back".to_owned(), Value::Text("on-eviction".to_owned()))];
    let make = |_: usize, capacity| Lru::new(capacity, &Default::default(), Seed(1));
    let quotas = Quotas::PerTenant(vec![0; usize::from(TENANTS)]);
    let mut drive = cached(CachedParts {
        params: &drives::small(&[]),
        ports: &[Port { queue_depth: 8, weight: 1 }; TENANTS as usize],
        engine: Engine::new(usize::from(TENANTS), &quotas, WriteMode::WriteBack, make),
        axes: DataCacheParams::checked(&pairs).unwrap(),
        seed: Seed(1),
    })
    .unwrap();
    drive.follow(total, Box::new(Script { answers, heard: heard.clone() }));
    drive
}

/// Lets a tenant read or write so many pages, and waits until all is done.
fn ask(drive: &mut CachedSsd<Lru>, now: &mut u64, op: Op, tenant: u16, first: u64, pages: u64) {
    let offset = Bytes((u64::from(tenant) << 24) + first * PAGE);
    let (tenant, length) = (TenantId(tenant), Bytes(pages * PAGE));
    drive.submit(Nanos(*now), Command { tag: 0, op, offset, length, tenant });
    let mut done = Vec::new();
    while let Some(due) = drive.next_due() {
        drive.advance(due, &mut done);
        *now = due.0;
    }
    assert_eq!((done.len(), drive.audit()), (1, Ok(())));
    *now += 1;
}

fn held(drive: &CachedSsd<Lru>) -> Vec<u32> {
    (0..TENANTS).map(|tenant| drive.occupancy(TenantId(tenant))).collect()
}

/// Eight pages: 6 of tenant 0, 2 of tenant 1. Tenant 1 writes 4: the round takes 3 of tenant 0
/// together, the fourth page takes the place of tenant 1's own oldest.
#[test]
fn the_victim_gives_a_round_and_the_requester_the_rest() {
    let round = |victim, blocks| VictimChoice { victim, blocks };
    let answers = vec![
        round(None, 4),
        round(None, 4),
        round(Some(0), 3),
        round(Some(0), 2),
        round(None, 1),
        round(Some(2), 5),
    ];
    let heard = Heard::default();
    let mut drive = drive(8, answers, &heard);
    let mut now = 1;
    ask(&mut drive, &mut now, Op::Write, 0, 0, 6);
    ask(&mut drive, &mut now, Op::Write, 1, 0, 2);
    assert_eq!((held(&drive), drive.pages()), (vec![6, 2, 0], 8));
    ask(&mut drive, &mut now, Op::Write, 1, 10, 4);
    assert_eq!(held(&drive), [3, 5, 0], "0 gave three, 1 one of its own");
    assert_eq!(drive.counts(TenantId(0)).evictions, 3);
    assert_eq!(drive.counts(TenantId(1)).evictions, 1);
    // One page of tenant 2: two leave together, one of them stays free.
    ask(&mut drive, &mut now, Op::Write, 2, 0, 1);
    assert_eq!(held(&drive), [1, 5, 1]);
    // A hit asks, but takes nothing; then there is room for one without a victim.
    ask(&mut drive, &mut now, Op::Write, 2, 0, 1);
    ask(&mut drive, &mut now, Op::Write, 0, 20, 1);
    assert_eq!(held(&drive), [2, 5, 1]);
    assert_eq!(drive.quota(TenantId(1)), 5, "what it holds");
    assert_eq!(drive.state(TenantId(1)), QuotaState::None);
    assert_eq!(drive.cache_stats().destaged_pages, 6, "all that left were dirty");
    let heard = heard.lock().unwrap();
    assert_eq!(heard[2], (1, 4, 0, vec![6, 2, 0], true));
    assert_eq!(heard[4], (2, 1, 0, vec![1, 5, 1], false), "no channel is busy any more");
}

/// The same by lists.
struct Model {
    lists: Vec<Vec<u64>>,
    free: usize,
    round: VictimChoice,
    evictions: Vec<u64>,
}

impl Model {
    fn most(&self) -> usize {
        let length = |tenant: &usize| self.lists[*tenant].len();
        (0..self.lists.len()).rev().max_by_key(length).unwrap()
    }

    fn take(&mut self, victim: usize, pages: usize) {
        let given = pages.min(self.lists[victim].len());
        self.lists[victim].drain(..given);
        self.evictions[victim] += given as u64;
        self.free += given;
    }

    fn write(&mut self, tenant: usize, page: u64) {
        if let Some(at) = self.lists[tenant].iter().position(|held| *held == page) {
            self.lists[tenant].remove(at);
            return self.lists[tenant].push(page);
        }
        if self.free == 0 && self.round.blocks > 0 {
            let victim = self.round.victim.unwrap_or_else(|| self.most());
            self.take(victim, self.round.blocks as usize);
            self.round.blocks = 0;
        }
        if self.free == 0 && self.lists[tenant].is_empty() {
            let victim = self.most();
            self.take(victim, 1);
        }
        if self.free == 0 {
            if self.lists[tenant].is_empty() {
                return;
            }
            self.lists[tenant].remove(0);
            self.evictions[tenant] += 1;
            self.free += 1;
        }
        self.free -= 1;
        self.lists[tenant].push(page);
    }
}

fn round() -> impl Strategy<Value = VictimChoice> {
    let victim = proptest::option::of(0..usize::from(TENANTS));
    (victim, 0..6_u32).prop_map(|(victim, blocks)| VictimChoice { victim, blocks })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn elastic_lists_are_as_by_hand(
        total in 0..14_u32,
        answers in proptest::collection::vec(round(), 1..6),
        asks in proptest::collection::vec(
            (0..4_u8, 0..TENANTS, 0..10_u64, 1..5_u64), 1..60),
    ) {
        let heard = Heard::default();
        let mut drive = drive(total, answers.clone(), &heard);
        let lists = vec![Vec::new(); usize::from(TENANTS)];
        let (free, evictions) = (total as usize, vec![0; usize::from(TENANTS)]);
        let mut model = Model { lists, free, round: VictimChoice::default(), evictions };
        let (mut now, mut writes) = (1, 0);
        for (kind, tenant, first, pages) in asks {
            let op = [Op::Write, Op::Write, Op::Read, Op::Trim][usize::from(kind)];
            if op == Op::Write {
                model.round = answers[writes % answers.len()];
                writes += 1;
            }
            for page in first..first + pages {
                let list = &mut model.lists[usize::from(tenant)];
                let at = list.iter().position(|held| *held == page);
                match (op, at) {
                    (Op::Write, _) => model.write(usize::from(tenant), page),
                    (Op::Read, Some(at)) => {
                        list.remove(at);
                        list.push(page);
                    }
                    (Op::Trim, Some(at)) => {
                        list.remove(at);
                        model.free += 1;
                    }
                    _ => {}
                }
            }
            ask(&mut drive, &mut now, op, tenant, first, pages);
            let expected: Vec<u32> = model.lists.iter().map(|list| list.len() as u32).collect();
            prop_assert_eq!(held(&drive), expected);
            let evictions: Vec<u64> =
                (0..TENANTS).map(|tenant| drive.counts(TenantId(tenant)).evictions).collect();
            prop_assert_eq!(&evictions, &model.evictions);
        }
        prop_assert_eq!(heard.lock().unwrap().len(), writes, "once per write request");
    }
}
