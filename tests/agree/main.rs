//! What was simulated is what runs: the replay over dense ids and the live cache over a sparse
//! index make the same decisions, request by request, for every policy and write mode.
#![allow(clippy::unwrap_used)] // a failed test may panic

mod continued;
mod divided;
mod product;
mod recording;
mod rehearsed;
mod served;
mod signals;

use cachewright_cache::{
    Cache, Engine, Move, Plan, Quotas, SequentialCutoff, SequentialStreams, WriteMode,
};
use cachewright_policy::Entry;
use cachewright_policy::lru::Lru;
use cachewright_policy::{
    Access, FutureSlice, Need, Policy, PolicyHooks, PolicyVisitor, Registered, RequestInfo, Verdict,
};
use cachewright_policy::{entries, visit};
use cachewright_system::{BlockKind, EngineLane, Lane, Recorder, Recording};
use cachewright_trace::merge::{MergedRequests, TenantInput, WorkloadBatch};
use cachewright_trace::{OpenOptions, formats};
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Seed, TenantId};

/// Two tenants with reads, writes, trims and flushes of one to three blocks.
fn trace(seed: u64, blocks: u64) -> Vec<u8> {
    let mut rng = Seed(seed).rng();
    let mut text = String::new();
    for i in 0..8000_u64 {
        let u = rng.unit();
        let block = (u * u * u * blocks as f64) as u64;
        let length = 512 * (1 + rng.below(24));
        let offset = block * 4096 + 512 * rng.below(8);
        let line = match rng.below(100) {
            0..55 => format!("1,R,{offset},{length},{i}\n"),
            55..95 => format!("1,W,{offset},{length},{i}\n"),
            95..99 => format!("1,T,{offset},{},{i}\n", length * 4),
            _ => format!("1,F,0,0,{i}\n"),
        };
        text += &line;
    }
    text.into_bytes()
}

fn workload() -> MergedRequests {
    let tenant = |name: &str, seed, blocks| {
        let bytes = trace(seed, blocks);
        let reader = formats::open_bytes(name, &bytes, &OpenOptions::default()).unwrap();
        TenantInput::reader(name, reader)
    };
    MergedRequests::open(vec![tenant("a", 1, 3000), tenant("b", 2, 300)]).unwrap()
}

/// LRU that admits by what it observes of the request: a policy that depends on every word of it.
struct Picky(Lru, u64);

impl Registered for Picky {
    type Settings = NoSettings;
    const ENTRY: Entry =
        Entry { name: "picky", doc: "for this test", source: "ours", needs: &[Need::Requests] };

    fn new(capacity_blocks: u32, settings: &NoSettings, seed: Seed) -> Self {
        Picky(Lru::new(capacity_blocks, settings, seed), 0)
    }
}

impl PolicyHooks for Picky {
    fn on_request(&mut self, request: &RequestInfo) {
        let words = [request.time_ns, request.offset, request.length, u64::from(request.write)];
        let fold = |hash: u64, word: u64| (hash.rotate_left(7) ^ word).wrapping_mul(0x9e37_79b9);
        self.1 = words.into_iter().fold(1, fold) >> 7;
    }
}

cachewright_snapshot::refused!(Picky: "a policy of this test");

impl Policy for Picky {
    fn access(&mut self, access: Access) -> Verdict {
        // A request of which it has not heard would be the one before.
        let admits = !self.1.is_multiple_of(3) || self.0.contains(access.block);
        if admits { self.0.access(access) } else { Verdict::Bypass }
    }

    fn contains(&self, block: BlockId) -> bool {
        self.0.contains(block)
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.0.tracks(block)
    }

    fn len(&self) -> u32 {
        self.0.len()
    }

    fn capacity(&self) -> u32 {
        self.0.capacity()
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.0.resize(capacity_blocks, evicted);
    }

    fn remove(&mut self, block: BlockId) -> bool {
        self.0.remove(block)
    }

    fn reserve_ids(&mut self, count: usize) {
        self.0.reserve_ids(count);
    }

    fn touch(&self, block: BlockId) {
        self.0.touch(block);
    }

    fn audit(&self) -> Result<(), String> {
        self.0.audit()
    }
}

struct Both<'a> {
    recording: &'a Recording,
    requests: &'a WorkloadBatch,
    mode: WriteMode,
    quotas: Quotas,
    cutoff: Option<SequentialCutoff>,
}

impl PolicyVisitor for Both<'_> {
    type Output = ();

    fn visit<P: Registered>(self, settings: P::Settings) {
        let name = P::ENTRY.name;
        let make = |_, capacity| P::new(capacity, &settings, Seed(9));
        let engine = Engine::new(2, &self.quotas, self.mode, make);
        let mut lane = EngineLane::new(engine, self.recording);
        if P::ENTRY.needs.contains(&Need::Requests) {
            lane = lane.observing_requests();
        }
        // In pieces that begin and end within requests, as a replay of many lanes goes.
        for from in (0..self.recording.len()).step_by(777) {
            let to = (from + 777).min(self.recording.len());
            lane.replay(self.recording, from..to, FutureSlice::None);
        }
        let mut live = Cache::new(Engine::new(2, &self.quotas, self.mode, make), 12);
        let mut plan = Plan::default();
        let mut streams = self.cutoff.map(SequentialStreams::new);
        let mut written_back = 0;
        for at in 0..self.requests.len() {
            let request = Request {
                time: Nanos(self.requests.time_ns[at]),
                offset: Bytes(self.requests.offset_bytes[at]),
                length: Bytes(self.requests.length_bytes[at]),
                op: self.requests.op[at],
                tenant: TenantId(self.requests.tenant[at]),
            };
            match streams.as_mut().is_some_and(|streams| streams.cuts_off_next(&request)) {
                true => live.on_cut_off(&request, FutureSlice::None, &mut plan),
                false => live.on(&request, &mut plan),
            }
            let is_back = |step: &&Move| matches!(step, Move::WriteBack(_) | Move::Clean(_));
            written_back += plan.moves.iter().filter(is_back).count() as u64;
            if matches!(request.op, Op::Read | Op::Write) {
                live.background_ops(live.engine().pool_of(request.tenant), &mut plan);
                written_back += plan.moves.iter().filter(is_back).count() as u64;
            }
        }
        for tenant in [TenantId(0), TenantId(1)] {
            let (simulated, lived) = (lane.engine().counts(tenant), live.engine().counts(tenant));
            assert_eq!(simulated, lived, "{name}, {:?}, {:?}", self.mode, self.quotas);
            let cut_off = lived.cut_off_requests;
            assert!(cut_off < lived.requests / 2, "{cut_off} of {} requests", lived.requests);
            assert_eq!(cut_off > 1000, self.cutoff.is_some(), "{cut_off} requests");
        }
        assert_eq!(lane.engine().dirty_blocks(), live.engine().dirty_blocks());
        let counted: u64 =
            [0, 1].map(|tenant| live.engine().counts(TenantId(tenant)).writebacks).iter().sum();
        assert_eq!(written_back, counted, "{name}: every write-back is a move of some plan");
        live.engine().audit().unwrap();
        lane.engine().audit().unwrap();
        let distinct = self.recording.distinct as usize;
        assert!(live.ids() < distinct, "{name}: {} live ids of {distinct} blocks", live.ids());
    }
}

#[test]
fn dense_replay_and_live_cache_decide_alike() {
    agree_with(None);
}

/// With a cut-off of 10 KiB: requests of more, and those that continue others.
#[test]
fn dense_replay_and_live_cache_cut_the_same_requests_off() {
    agree_with(Some(SequentialCutoff { bytes: 10 << 10, streams: 16 }));
}

fn agree_with(cutoff: Option<SequentialCutoff>) {
    let recorder = Recorder::new(2, BlockKind::Split { shift: 12 }, true, u64::MAX);
    let recording = recorder
        .with_requests()
        .with_uneven_bytes()
        .cutting_off(cutoff)
        .record(&mut workload(), |_| true)
        .unwrap();
    assert!(recording.has_requests());
    let mut requests = WorkloadBatch::default();
    let mut stream = workload();
    while stream.read(&mut requests, 1 << 20).unwrap() > 0 {}
    let quotas = [Quotas::Shared(120), Quotas::PerTenant(vec![90, 30])];
    let foresees = [Need::Future, Need::Benefit];
    let blind = |entry: &&Entry| !entry.needs.iter().any(|need| foresees.contains(need));
    for entry in entries().into_iter().filter(blind) {
        for mode in WriteMode::ALL.iter().copied() {
            for quotas in quotas.clone() {
                let both =
                    Both { recording: &recording, requests: &requests, mode, quotas, cutoff };
                visit(entry.name, &[], both).unwrap();
            }
        }
    }
    for mode in WriteMode::ALL.iter().copied() {
        for quotas in quotas.clone() {
            let both = Both { recording: &recording, requests: &requests, mode, quotas, cutoff };
            both.visit::<Picky>(NoSettings {});
        }
    }
}
