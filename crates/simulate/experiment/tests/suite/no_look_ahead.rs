//! No partitioner is told what has not happened: what it is told, and how it divides, is the same
//! for a trace, for its beginning alone, and for the beginning with another end.
//!
//! For: every registered partitioner but those that ask for the future, in every kind of replay.
//! One that needs a model is given a random one below; a new kind fails here until it is, too.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use cachewright_curve::signal::{BINS, FEATURES, SignalSet};
use cachewright_curve::{CurveSet, Method};
use cachewright_device::ssd::host::Port;
use cachewright_model::NetworkKind;
use cachewright_partition::{
    CacheDivision, Entry, Models, Need, Partitioner, TenantView, boxed, entries, registry,
};
use cachewright_policy::FutureSlice;
use cachewright_system::event_loop::{Loop, NEVER_NS, Replay, run_ssd};
use cachewright_system::machines::Layout;
use cachewright_system::replay::ReplayInputs;
use cachewright_system::ssd::{DataCacheParams, DriveDescription, build};
use cachewright_system::{Control, Cuts, SignalNeeds, interval_signals, replay};
use cachewright_testkit::drives::{small, value};
use cachewright_testkit::machines::{
    Loaded, SHIFT, Stack, constant, control_by, engine_lane_by, lane_by, load, random, replay_by,
};
use cachewright_testkit::models::small_random_model;
use cachewright_types::{Seed, Value};
use std::sync::{Arc, Mutex};

const TENANTS: usize = 2;
const CAPACITY: u32 = 40;
const INTERVAL_NS: u64 = 40_000_000;
/// When the traces begin to differ.
const CUT_US: u64 = 450_000;

/// What a partitioner was told and answered, division by division.
type Log = Arc<Mutex<Vec<String>>>;

/// A partitioner that keeps what it is told.
struct Heard {
    inner: Box<dyn Partitioner>,
    log: Log,
}

cachewright_snapshot::refused!(Heard: "a partitioner of this test");

impl Partitioner for Heard {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        let quotas = self.inner.divide(tenants, total_blocks);
        self.log.lock().unwrap().push(format!("{tenants:#?} {quotas:?}"));
        quotas
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        self.inner.floor_blocks(tenants, total_blocks)
    }
}

/// Settings with which an interval of the test is enough to decide.
fn pairs(entry: &Entry) -> Vec<(String, Value)> {
    let small = [("steps_per_interval", 6), ("window_steps", 12), ("lend_after", 1)];
    let known = registry::keys(entry.name).unwrap();
    let given = small.iter().filter(|(key, _)| known.iter().any(|spec| spec.name == *key));
    given.map(|(key, number)| ((*key).to_owned(), Value::Int(*number))).collect()
}

/// Random models of the shapes that partitioners ask for.
fn models_for(entry: &Entry) -> Models {
    let mut given = Models::default();
    if entry.needs.contains(&Need::Model) {
        let notes = [("granules", "10"), ("window_steps", "12")];
        let names = FEATURES.map(str::to_owned);
        let file = |seed| {
            small_random_model(NetworkKind::Lstm, &names, 2, &notes, seed).to_bytes().unwrap()
        };
        given.each = (0..TENANTS as u64).map(file).collect();
    }
    if entry.needs.contains(&Need::JointModel) {
        let bins = |tenant| (0..BINS).map(move |bin| format!("reuse.{tenant}.{bin}"));
        let names: Vec<String> = (0..TENANTS).flat_map(bins).collect();
        let file =
            small_random_model(NetworkKind::Mlp, &names, TENANTS, &[], 1).to_bytes().unwrap();
        given.joint = Some(file);
    }
    given
}

fn control(entry: &Entry, stack: &Stack) -> (Control, u32, Log) {
    let mut inner = boxed(entry.name, &pairs(entry), TENANTS, Seed(1)).unwrap();
    if let Err(error) = inner.learn(&models_for(entry)) {
        panic!("`{}` needs another model here: {error}", entry.name);
    }
    let log = Log::default();
    let steps = inner.steps().max(1);
    let heard = Box::new(Heard { inner, log: Arc::clone(&log) });
    (control_by(stack, TENANTS, heard, Some(0.5)), steps, log)
}

/// All signals, for any partitioner.
fn wanted(steps: u32, prices: bool) -> SignalNeeds {
    let curves = CurveSet::new(TENANTS, &Method::Exact, Seed(3));
    SignalNeeds {
        curves: Some(curves),
        steps,
        signals: SignalSet { reuse: true, prices, ..SignalSet::NONE },
    }
}

/// Tells what each kind of replay tells a partitioner.
type Telling = fn(&Entry, &[String]) -> Vec<String>;

fn loaded(texts: &[String]) -> (Stack, Loaded) {
    let stack = Stack { interval_ns: INTERVAL_NS, ..Stack::plain(CAPACITY) };
    let loaded = load(texts, &stack, Layout::AsIs);
    (stack, loaded)
}

fn entries_of(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

fn open(entry: &Entry, texts: &[String]) -> Vec<String> {
    let (stack, loaded) = loaded(texts);
    let (control, steps, log) = control(entry, &stack);
    let recording = &loaded.recording;
    let cuts = Cuts::new(recording, INTERVAL_NS, 0);
    let meter = wanted(steps, false).meter(TENANTS, INTERVAL_NS).unwrap();
    let signals = interval_signals(recording, &cuts, meter);
    let shared =
        ReplayInputs { recording, futures: FutureSlice::None, cuts: &cuts, signals: &signals };
    replay(&shared, &mut [lane_by(&stack, recording, control)], |_| true).unwrap();
    entries_of(&log)
}

fn closed(entry: &Entry, texts: &[String]) -> Vec<String> {
    let (stack, loaded) = loaded(texts);
    let (control, steps, log) = control(entry, &stack);
    let pace = Loop::Closed {
        queue_depth: vec![1; TENANTS],
        think_ns: vec![0; TENANTS],
        recorded: vec![false; TENANTS],
        start_ns: vec![0; TENANTS],
        stop_ns: vec![NEVER_NS; TENANTS],
        noise: vec![None; TENANTS],
        repeat: vec![false; TENANTS],
    };
    let lane = engine_lane_by(&stack, &loaded.recording, control);
    let wanted = wanted(steps, false);
    let found = constant(&stack, &loaded.recording, lane, pace, 0, 0, wanted);
    // Once a tenant has nothing left, the traces differ for the others as well.
    let ended = found.answers.iter().map(|one| one.finished_ns).min().unwrap();
    let mut told = entries_of(&log);
    told.truncate(1 + (ended / INTERVAL_NS) as usize);
    told
}

/// On devices that take some time; without prices it tells what a replay without devices does.
fn timed(entry: &Entry, texts: &[String], prices: bool) -> Vec<String> {
    let (stack, loaded) = loaded(texts);
    let (control, steps, log) = control(entry, &stack);
    replay_by(&stack, &loaded, Loop::Open, 3, control, wanted(steps, prices));
    entries_of(&log)
}

fn tiered(entry: &Entry, texts: &[String]) -> Vec<String> {
    timed(entry, texts, true)
}

fn drive(entry: &Entry, texts: &[String]) -> Vec<String> {
    let (stack, loaded) = loaded(texts);
    let (mut control, steps, log) = control(entry, &stack);
    let quotas = control.first();
    let params = small(&[
        ("page", "4KiB"),
        ("block", "64KiB"),
        ("blocks", "32"),
        ("over_provisioning", "0.4"),
    ]);
    let page_shift = params.page.0.trailing_zeros();
    assert_eq!(page_shift, SHIFT, "a page of the drive is a block of the recording");
    let pairs = vec![("read_fill".to_owned(), value("true"))];
    let drive = build(&DriveDescription {
        params: &params,
        ports: &[Port { queue_depth: 8, weight: 1 }; TENANTS],
        policy: ("lru", &[]),
        code: None,
        quotas: &quotas,
        mode: stack.write,
        axes: &DataCacheParams::checked(&pairs).unwrap(),
        seed: Seed(1),
    });
    let replay = Replay {
        recording: &loaded.recording,
        requests: &loaded.requests,
        extents: &loaded.placed.tenants,
        futures: FutureSlice::None,
        pace: Loop::Open,
        only: None,
        interval_ns: INTERVAL_NS,
        windows: 3,
        warmup_ns: 0,
        throughput_ns: 0,
        clock: None,
        capacity_blocks: CAPACITY,
    };
    run_ssd(&replay, drive.unwrap(), page_shift, Some(control), wanted(steps, true), &mut |_| true)
        .unwrap();
    entries_of(&log)
}

/// The time in a record of the text.
fn time_us(line: &str) -> u64 {
    line.rsplit(',').next().and_then(|time| time.parse().ok()).unwrap()
}

fn lines(text: &str, keep: impl Fn(u64) -> bool) -> String {
    text.lines().filter(|line| keep(time_us(line))).map(|line| format!("{line}\n")).collect()
}

/// A trace, its beginning, and the beginning with another end; both volumes are touched at first,
/// so that all lie at the same places.
fn three(seed: u64, gap_us: u64) -> [Vec<String>; 3] {
    let mut rng = Seed(seed).rng();
    let first = "1,R,0,4096,0\n2,R,0,4096,0\n";
    let mut traces = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..TENANTS {
        let one = random(&mut rng, 1_000_000 / gap_us, 90, gap_us);
        let other = random(&mut rng, 1_000_000 / gap_us, 50, gap_us);
        let begins = first.to_owned() + &lines(&one, |time| time < CUT_US);
        let ends = lines(&other, |time| time >= CUT_US);
        traces[0].push(begins.clone() + &lines(&one, |time| time >= CUT_US));
        traces[1].push(begins.clone());
        traces[2].push(begins + &ends);
    }
    traces
}

/// Replays all three, for every partitioner, and compares what is told until the beginning ends.
fn sees_only_the_past(replay: &str, telling: Telling) {
    for entry in entries().iter().filter(|entry| !entry.needs.contains(&Need::Future)) {
        for seed in 0..3 {
            let [whole, prefix, other] = three(seed, 2_000).map(|texts| telling(entry, &texts));
            let words = format!("{replay}: `{}`, seed {seed}", entry.name);
            let known = prefix.len();
            assert!(known > 8, "{words}: {known} divisions");
            assert!(whole.len() > known && other.len() > known, "{words}");
            for (at, told) in prefix.iter().enumerate() {
                assert_eq!(told, &whole[at], "{words}, division {at}: the end is told");
                assert_eq!(told, &other[at], "{words}, division {at}: the other end is told");
            }
            assert_ne!(whole[known + 1..], other[known + 1..], "{words}: ends are told in time");
        }
    }
}

#[test]
fn devices_tell_what_a_replay_without_them_tells() {
    let [texts, ..] = three(9, 500);
    for entry in entries().iter().filter(|entry| !entry.needs.contains(&Need::Future)) {
        let (without, with) = (open(entry, &texts), timed(entry, &texts, false));
        // A division at the end waits for a request that does not come.
        assert!(with.len() > 20 && without.len() <= with.len() + 1);
        assert_eq!(with, without[..with.len()], "{}", entry.name);
    }
}

#[test]
fn an_open_loop_tells_only_the_past() {
    sees_only_the_past("open", open);
}

#[test]
fn a_closed_loop_tells_only_the_past() {
    sees_only_the_past("closed", closed);
}

#[test]
fn a_machine_of_tiers_tells_only_the_past() {
    sees_only_the_past("tiered", tiered);
}

#[test]
fn a_drive_tells_only_the_past() {
    sees_only_the_past("drive", drive);
}
