//! `rc-x` decides as a plain model of it, its tables as sums over all waits, and its counts on a
//! real trace are pinned.
#![allow(clippy::unwrap_used)] // a failed test may panic

use crate::common;

use cachewright_policy::rc_x::life::{AGES, LifeTables, index_of};
use cachewright_policy::rc_x::life::{CLASSES, FAMILIES, KINDS, Shapes};
use cachewright_policy::registry::boxed;
use cachewright_policy::{Access, BackgroundOp, RequestInfo, Verdict};
use cachewright_types::{BlockId, Rng, Seed};
use std::collections::{HashMap, VecDeque};

const PRICE: f64 = 0.1;
const SAMPLE: usize = 16;

/// RC-X with plain containers: everything is looked up by block.
struct Model {
    known: HashMap<u32, (u32, u16, u8)>,
    held: Vec<u32>,
    ghosts: VecDeque<u32>,
    capacity: usize,
    now: u32,
    learn_at: u32,
    period: u32,
    tables: LifeTables,
    shapes: Shapes,
    rng: Rng,
    admission_threshold: f32,
    decayed: bool,
    spare: Option<u32>,
    /// The rest of the run that leaves: place, block, last access.
    onwards: VecDeque<(usize, u32, u32)>,
    backwards: VecDeque<(usize, u32, u32)>,
    decided: Option<bool>,
}

/// How many of some waits are of each class and age.
fn counts(waits: impl Iterator<Item = (u16, u32)>) -> Vec<u32> {
    let mut counts = vec![0; CLASSES * AGES];
    waits.for_each(|(class, age)| counts[usize::from(class) * AGES + index_of(age)] += 1);
    counts
}

impl Model {
    fn new(capacity: usize, seed: Seed) -> Model {
        Model {
            known: HashMap::new(),
            held: Vec::new(),
            ghosts: VecDeque::new(),
            capacity,
            now: 0,
            learn_at: 64,
            period: 64,
            tables: LifeTables::new(PRICE as f32),
            shapes: Shapes::default(),
            rng: seed.derive("draws").rng(),
            admission_threshold: 0.0,
            decayed: false,
            spare: None,
            onwards: VecDeque::new(),
            backwards: VecDeque::new(),
            decided: None,
        }
    }

    fn place(&self, block: u32) -> Option<usize> {
        self.held.iter().position(|held| *held == block)
    }

    fn insert_ghost(&mut self, block: u32) {
        self.ghosts.push_front(block);
        self.erase();
    }

    fn erase(&mut self) {
        while self.ghosts.len() + self.held.len() > 3 * self.capacity {
            let Some(gone) = self.ghosts.pop_back() else { return };
            let (last, class, _) = self.known.remove(&gone).unwrap();
            self.tables.forgotten(class, self.now - last);
        }
    }

    /// All draws in a list, which is then put in order.
    fn draw(&mut self) -> (u32, f32) {
        let spare = self.spare.take().filter(|block| self.held.contains(block));
        let mut drawn: Vec<u32> = spare.into_iter().collect();
        for _ in 0..SAMPLE {
            drawn.push(self.held[self.rng.below(self.held.len() as u64) as usize]);
        }
        let mut order: Vec<(f32, u32, u32)> = drawn
            .iter()
            .map(|block| {
                let (last, class, _) = self.known[block];
                (self.tables.stays(class, self.now - last), last, *block)
            })
            .collect();
        order.sort_by(|a, b| a.partial_cmp(b).unwrap());
        order.dedup();
        self.spare = order.get(1).map(|second| second.2);
        self.admission_threshold = order[0].0;
        self.decayed = false;
        (order[0].2, order[0].0)
    }

    /// The loser of a draw and its run, first to last.
    fn draw_run(&mut self) -> VecDeque<(usize, u32, u32)> {
        let (loser, worth) = self.draw();
        let at = self.place(loser).unwrap();
        let last = |place: usize| self.known[&self.held[place]].0;
        let leaves = |place: usize| {
            let (last, class, _) = self.known[&self.held[place]];
            self.tables.stays(class, self.now - last) <= worth * 4.0
        };
        let (mut first, mut end) = (at, at + 1);
        while first > 0
            && end - first < 256
            && last(first - 1) + 1 == last(first)
            && leaves(first - 1)
        {
            first -= 1;
        }
        while end < self.held.len()
            && end - first < 256
            && last(end - 1) + 1 == last(end)
            && leaves(end)
        {
            end += 1;
        }
        (first..end).map(|place| (place, self.held[place], last(place))).collect()
    }

    /// Whether a block is where it was and was not used since.
    fn is_there(&self, place: usize, block: u32, last: u32) -> bool {
        self.held.get(place) == Some(&block) && self.known[&block].0 == last
    }

    fn background_op(&mut self) -> Option<u32> {
        let over = self.held.len() + self.capacity / 100 > self.capacity;
        if !self
            .backwards
            .back()
            .is_some_and(|&(place, block, last)| self.is_there(place, block, last))
        {
            self.backwards.clear();
            if !over || self.held.is_empty() {
                return None;
            }
            self.backwards = self.draw_run();
        }
        let (place, block, _) = self.backwards.pop_back()?;
        self.held.swap_remove(place);
        self.insert_ghost(block);
        Some(block)
    }

    /// What the first missed block of a request decides for all.
    fn admits(&mut self, enters: f32) -> bool {
        if let Some(decided) = self.decided {
            return decided;
        }
        let full = self.held.len() + self.capacity / 100 >= self.capacity;
        let comes = if enters <= 0.0 || !full {
            enters > 0.0
        } else if enters <= self.admission_threshold {
            self.admission_threshold *= 0.98;
            self.decayed = true;
            false
        } else if self.decayed {
            let (loser, worth) = self.draw();
            self.spare = Some(loser);
            enters > worth
        } else {
            true
        };
        self.decided = Some(comes);
        comes
    }

    fn access(&mut self, block: u32, write: bool) -> Verdict {
        self.shapes.uses();
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.now += 1;
        if self.now == self.learn_at {
            self.period = (self.period * 2).min(16_384);
            self.learn_at += self.period;
            let waiting = self.known.values().map(|(last, class, _)| (*class, self.now - last));
            self.tables.learn(&counts(waiting));
        }
        let before = self.known.get(&block).copied();
        let interval = before.map(|(last, ..)| self.now - last);
        let uses = before.map_or(0, |known| known.2).saturating_add(1);
        let class = self.shapes.class(interval, write, uses);
        if let Some((last, was, _)) = before {
            self.tables.used(was, self.now - last, self.shapes.share());
        }
        self.known.insert(block, (self.now, class, uses));
        if self.place(block).is_some() {
            return Verdict::Hit;
        }
        self.ghosts.retain(|ghost| *ghost != block);
        if !self.admits(self.tables.enters(class)) {
            self.insert_ghost(block);
            return Verdict::Bypass;
        }
        if self.held.len() < self.capacity {
            self.held.push(block);
            self.erase();
            return Verdict::Admit { evicted: None };
        }
        if !self
            .onwards
            .front()
            .is_some_and(|&(place, block, last)| self.is_there(place, block, last))
        {
            self.onwards = self.draw_run();
        }
        let (place, loser, _) = self.onwards.pop_front().unwrap();
        self.held[place] = block;
        self.insert_ghost(loser);
        Verdict::Admit { evicted: Some(BlockId(loser)) }
    }

    fn remove(&mut self, block: u32) -> bool {
        let place = self.place(block);
        place.map(|place| self.held.swap_remove(place));
        self.ghosts.retain(|ghost| *ghost != block);
        self.known.remove(&block);
        place.is_some()
    }

    fn resize(&mut self, capacity: usize) -> Vec<BlockId> {
        self.capacity = capacity;
        let mut gone = Vec::new();
        while self.held.len() > capacity {
            let (loser, _) = self.draw();
            let place = self.place(loser).unwrap();
            self.held.swap_remove(place);
            self.insert_ghost(loser);
            gone.push(BlockId(loser));
        }
        self.erase();
        gone
    }
}

/// Requests of blocks in a row, most of them skewed, some in a circle; now and then background
/// operations are left undone, blocks trimmed and the cache resized.
#[test]
fn decides_as_the_plain_model() {
    for seed in 0..6 {
        let mut rng = Seed(seed).derive("steps").rng();
        let mut model = Model::new(240, Seed(seed));
        let mut fast = boxed("rc-x", &[], 240, Seed(seed)).unwrap();
        fast.reserve_ids(1_200);
        let (mut admitted, mut pushed_out, mut ahead) = (0, 0, 0);
        for step in 0..20_000 {
            match rng.below(2_000) {
                0 => {
                    let capacity = rng.below(480) as u32;
                    let mut gone = Vec::new();
                    fast.resize(capacity, &mut gone);
                    assert_eq!(gone, model.resize(capacity as usize), "step {step}");
                }
                1..10 => {
                    let block = rng.below(1_200) as u32;
                    assert_eq!(fast.remove(BlockId(block)), model.remove(block), "step {step}");
                }
                _ => {
                    let blocks = 1 << rng.below(5);
                    let skewed = (rng.unit().powi(2) * 1_000.0) as u32;
                    let circle = 1_040 + step * 16 % 128;
                    let block = if rng.below(4) == 0 { circle } else { skewed };
                    let (offset, length) = (4096 * u64::from(block), 4096 * u64::from(blocks));
                    let write = rng.below(3) == 0;
                    let request = RequestInfo { time_ns: 0, offset, length, write };
                    fast.on_request(&request);
                    model.shapes.next(&request);
                    model.decided = None;
                    for block in block..block + blocks {
                        let access = Access { write, ..Access::read(BlockId(block)) };
                        let verdict = fast.access(access);
                        assert_eq!(verdict, model.access(block, write), "step {step}");
                        admitted += u32::from(matches!(verdict, Verdict::Admit { .. }));
                        let out = matches!(verdict, Verdict::Admit { evicted: Some(_) });
                        pushed_out += u32::from(out);
                    }
                }
            }
            while rng.below(20) > 0 {
                let op = fast.background_op();
                assert_eq!(
                    op,
                    model.background_op().map(|id| BackgroundOp::Demote(BlockId(id))),
                    "{step}"
                );
                ahead += u32::from(op.is_some());
                if op.is_none() {
                    break;
                }
            }
            if step % 16 > 0 {
                continue;
            }
            assert!((0..1_200).all(|id| fast.contains(BlockId(id)) == model.held.contains(&id)));
            let known = |id| model.known.contains_key(&id);
            assert!((0..1_200).all(|id| fast.tracks(BlockId(id)) == known(id)), "step {step}");
        }
        assert_eq!(fast.audit(), Ok(()));
        assert!(admitted > 500 && pushed_out > 100, "{admitted}, {pushed_out}");
        assert!(ahead > 500, "{ahead}");
    }
}

/// One wait: its class, the index of the age where it ended, what its use saved if it had one, what
/// it counts.
type Wait = (usize, usize, Option<f64>, f64);

/// What a use saved on average, over the waits that `of` selects.
fn saving(waits: &[Wait], prior: f64, trust: f64, of: impl Fn(usize) -> bool) -> f64 {
    let waits = waits.iter().filter(|wait| of(wait.0));
    let used: Vec<(f64, f64)> = waits.filter_map(|wait| Some((wait.2?, wait.3))).collect();
    let sum: f64 = used.iter().map(|(saving, counts)| saving * counts).sum();
    (sum + trust * prior) / (used.iter().map(|(_, counts)| counts).sum::<f64>() + trust)
}

/// Hazards of the waits that `of` selects, by looking at each of them at each age.
fn hazards(waits: &[Wait], prior: &[f64], trust: f64, of: impl Fn(usize) -> bool) -> Vec<f64> {
    let at = |age: usize| {
        let (mut uses, mut seen) = (trust * prior[age], trust);
        for (_, end, used, counts) in waits.iter().filter(|wait| of(wait.0)) {
            if *end == age {
                uses += if used.is_some() { *counts } else { 0.0 };
                seen += if used.is_some() { *counts } else { 0.5 * counts };
            } else if *end > age {
                seen += counts;
            }
        }
        uses / seen
    };
    (0..AGES).map(at).collect()
}

/// The first age of an index.
fn first(index: usize) -> u32 {
    (0..).find(|age| index_of(*age) == index).unwrap()
}

/// The best rate of uses from an age on, every time to stop written out; none is better beyond
/// the last age at which there are uses.
fn rate(hazards: &[f64], saving: f64, from: usize, price: f64) -> f64 {
    let last = hazards.iter().rposition(|hazard| *hazard > 0.0).unwrap();
    let width = |age: usize| f64::from(first(age + 1) - first(age));
    let reach = |to: usize| (from..to).map(|age| 1.0 - hazards[age]).product::<f64>();
    let room = |age: usize| width(age) * reach(age) * (1.0 - 0.5 * hazards[age]);
    let stops = (from + 1..=last + 1)
        .map(|stop| (saving * (1.0 - reach(stop)) - price) / (from..stop).map(room).sum::<f64>());
    stops.fold(0.0, f64::max)
}

#[test]
fn tables_are_sums_over_all_waits() {
    let mut rng = Seed(8).rng();
    let mut tables = LifeTables::new(PRICE as f32);
    let classes = [0, 3, 35, 131, 160, 163, 259, 400, 401, 509, 511];
    let mut ended: Vec<Wait> = Vec::new();
    for _ in 0..3 {
        let mut under_way: Vec<(u16, u32)> = Vec::new();
        for _ in 0..4_000 {
            // Class 511 has no waits of its own, and others few.
            let class = classes[(rng.unit().powi(2) * 10.0) as usize];
            let age = 1 << rng.below(13 - u64::from(class % 4));
            let age = age + rng.below(u64::from(age)) as u32;
            let saves = 1.0 / f64::from(1 << rng.below(5));
            let wait = |used| (usize::from(class), index_of(age), used, 1.0);
            match rng.below(3) {
                0 => {
                    tables.used(class, age, saves as f32);
                    ended.push(wait(Some(saves)));
                }
                1 => {
                    tables.forgotten(class, age);
                    ended.push(wait(None));
                }
                _ => under_way.push((class, age)),
            }
        }
        tables.learn(&counts(under_way.iter().copied()));
        let waiting = |(class, age): &(u16, u32)| (usize::from(*class), index_of(*age), None, 1.0);
        let waits: Vec<Wait> = ended.iter().copied().chain(under_way.iter().map(waiting)).collect();
        let all = hazards(&waits, &[0.0; AGES], 1.0, |_| true);
        let saved = saving(&waits, 0.0, 1.0, |_| true);
        for class in classes.map(usize::from) {
            let of_family = |of: usize| of % FAMILIES == class % FAMILIES;
            let of_kind = |of: usize| of % KINDS == class % KINDS;
            let family = hazards(&waits, &all, 64.0, of_family);
            let kind = hazards(&waits, &family, 64.0, of_kind);
            let own = hazards(&waits, &kind, 64.0, |of| of == class);
            let saved = saving(&waits, saved, 64.0, of_family);
            let saved = saving(&waits, saved, 64.0, of_kind);
            let saved = saving(&waits, saved, 64.0, |of| of == class);
            let near = |ours: f32, theirs: f64| {
                let error = (f64::from(ours) - theirs).abs();
                assert!(error < 1e-3 * theirs + 1e-7, "class {class}: {ours}, expected {theirs}");
            };
            near(tables.enters(class as u16), rate(&own, saved, 0, PRICE));
            (0..20).for_each(|age| {
                near(tables.stays(class as u16, first(age)), rate(&own, saved, age, 0.0));
            });
        }
        ended.iter_mut().for_each(|wait| wait.3 *= 0.95);
    }
}

/// Block accesses, hits and admissions on the CloudPhysics sample at 5, 20 and 50 % of its blocks.
#[test]
fn counts_on_the_cloudphysics_sample_are_pinned() {
    const PINNED: [(u32, u64, u64); 3] =
        [(5, 143_165, 194_872), (20, 307_750, 221_089), (50, 460_512, 280_343)];
    let Some(records) = common::cloudphysics() else { return };
    let blocks = common::Trace::from_raw(common::split_4k(&records));
    let count = |(percent, ..): (u32, u64, u64)| {
        let capacity = blocks.distinct as u32 * percent / 100;
        let mut cache = boxed("rc-x", &[], capacity, Seed(1)).unwrap();
        cache.reserve_ids(blocks.distinct);
        let (mut at, mut hits, mut admitted) = (0, 0, 0);
        for record in &records {
            let (offset, length) = (record.sector * 512, u64::from(record.bytes));
            cache.on_request(&RequestInfo { time_ns: 0, offset, length, write: false });
            for _ in common::split_4k(std::slice::from_ref(record)) {
                match cache.access(Access::read(blocks.blocks[at])) {
                    Verdict::Hit => hits += 1,
                    Verdict::Admit { .. } => admitted += 1,
                    Verdict::Bypass => {}
                }
                at += 1;
            }
            while cache.background_op().is_some() {}
        }
        assert_eq!(at, blocks.blocks.len());
        (percent, hits, admitted)
    };
    assert_eq!(PINNED.map(count), PINNED);
}
