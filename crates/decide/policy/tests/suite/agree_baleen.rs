//! Baleen answers each access as lists of blocks, uses and episodes do that are searched from end
//! to end, and writes no more than it may.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_model::learn::{BoostedTrees, BoostingSettings};
use cachewright_policy::registry::boxed;
use cachewright_policy::{Access, RequestInfo, Verdict};
use cachewright_types::seed::mix;
use cachewright_types::{BlockId, Rng, Seed, Value};
use std::collections::HashMap;

const BLOCK: u64 = 4096;
const EXTENT: u64 = 64 << 10;

struct Episode {
    block: Option<u32>,
    begun: usize,
    saved: f64,
    rows: Vec<Vec<f32>>,
}

/// The trees are those of the policy: their own tests compare them with an exhaustive search.
struct Episodes {
    capacity: usize,
    ghosts: usize,
    write_rate: f64,
    limit: usize,
    /// By last use, oldest first; ghosts by the time at which they were missed or left.
    cached: Vec<u32>,
    remembered: Vec<u32>,
    /// Times of uses since the block is known.
    uses: HashMap<u32, Vec<usize>>,
    /// Group and time of each request before this one.
    requests: Vec<(u64, usize)>,
    request: Vec<f32>,
    share: f64,
    now: usize,
    recorded: Vec<Episode>,
    ages: (f64, f64),
    model: Option<BoostedTrees>,
    credit: f64,
    demand: Vec<f64>,
    demand_accesses: f64,
    threshold: Option<usize>,
    settlements: usize,
    trained: usize,
    begun: usize,
    misses: usize,
    recorded_share: f64,
    rng: Rng,
}

impl Episodes {
    fn new(capacity: usize, write_rate: f64, limit: usize) -> Episodes {
        Episodes {
            capacity,
            ghosts: 2 * capacity,
            write_rate,
            limit,
            cached: Vec::new(),
            remembered: Vec::new(),
            uses: HashMap::new(),
            requests: Vec::new(),
            request: Vec::new(),
            share: 1.0,
            now: 0,
            recorded: Vec::new(),
            ages: (0.0, 0.0),
            model: None,
            credit: 0.0,
            demand: vec![0.0; 256],
            demand_accesses: 0.0,
            threshold: None,
            settlements: 0,
            trained: 0,
            begun: 0,
            misses: 0,
            recorded_share: 1.0,
            rng: Seed(1).derive("baleen").rng(),
        }
    }

    fn on_request(&mut self, offset: u64, length: u64) {
        let group = mix(offset / EXTENT) % 4096;
        let same = self.requests.iter().filter(|(other, _)| *other == group);
        let times: Vec<usize> = same.map(|(_, time)| *time).collect();
        self.request = vec![offset as f32, length as f32];
        self.request.extend(self.by_slice(&times));
        // Of the first request it is not known how large blocks are.
        let block = if self.requests.is_empty() { 512 } else { BLOCK };
        self.share = f64::from((block as f32 / length as f32).min(1.0));
        self.requests.push((group, self.now));
    }

    fn by_slice(&self, times: &[usize]) -> Vec<f32> {
        let slice = |time: usize| time / self.capacity;
        let within = |back: usize| {
            let is_in = |time: &&usize| slice(**time) + back == slice(self.now);
            times.iter().filter(is_in).count() as f32
        };
        (0..6).map(within).collect()
    }

    fn longest_stay(&self) -> usize {
        let (sum, count) = self.ages;
        if count == 0.0 { usize::MAX } else { (sum / count) as usize }
    }

    fn last(&self, block: u32) -> usize {
        *self.uses[&block].last().unwrap()
    }

    fn episode(&mut self, block: u32) -> Option<&mut Episode> {
        self.recorded.iter_mut().find(|episode| episode.block == Some(block))
    }

    fn end(&mut self, block: u32) {
        if let Some(episode) = self.episode(block) {
            episode.block = None;
        }
    }

    fn class(prediction: f32) -> usize {
        (prediction.clamp(0.0, 1.0) * 255.0) as usize
    }

    fn settle(&mut self) {
        let allowed = self.write_rate * self.demand_accesses;
        let from = |class: usize| self.demand[class..].iter().rev().sum::<f64>();
        self.threshold = (0..256).rev().find(|class| from(*class) >= allowed);
        self.demand_accesses /= 2.0;
        self.demand.iter_mut().for_each(|misses| *misses /= 2.0);
    }

    fn train(&mut self) {
        let (now, stay, since) = (self.now, self.longest_stay(), self.now - self.trained);
        for index in 0..self.recorded.len() {
            if let Episode { block: Some(block), begun, .. } = self.recorded[index]
                && (now - self.last(block) > stay || now - begun >= since)
            {
                self.end(block);
            }
        }
        let has_ended = |episode: &&Episode| episode.block.is_none();
        let rows = self.recorded.iter().filter(has_ended).map(|episode| episode.rows.len());
        if rows.sum::<usize>() < 100 {
            return;
        }
        let (ended, running) =
            std::mem::take(&mut self.recorded).into_iter().partition(|e: &Episode| has_ended(&e));
        let ended: Vec<Episode> = ended;
        self.recorded = running;
        let mut order: Vec<f64> = ended.iter().map(|episode| episode.saved).collect();
        order.sort_by(|one, other| other.partial_cmp(one).unwrap());
        let admitted = self.write_rate * since as f64 / self.begun as f64 * ended.len() as f64;
        let place = (admitted.ceil() as usize).min(ended.len());
        let (mut rows, mut labels) = (Vec::new(), Vec::new());
        for episode in &ended {
            let is_admitted = place > 0 && episode.saved >= order[place - 1];
            for row in &episode.rows {
                rows.extend(row);
                labels.push(f32::from(u8::from(is_admitted && episode.saved > 0.0)));
            }
        }
        let settings = BoostingSettings {
            trees: 4,
            leaves: 63,
            leaf_rows: 50,
            row_share: 0.9,
            input_share: 0.9,
            ..Default::default()
        };
        let seed = Seed(self.rng.next_u64());
        let model = BoostedTrees::fit(15, &rows, &labels, &settings, seed);
        self.demand = vec![0.0; 256];
        for episode in &ended {
            let class = Self::class(model.predict(&episode.rows[0]));
            self.demand[class] += self.misses as f64 / ended.len() as f64;
        }
        self.demand_accesses = since as f64;
        self.model = Some(model);
        self.settle();
        self.ages = (self.ages.0 / 2.0, self.ages.1 / 2.0);
        self.recorded_share = self.limit as f64 / (2.0 * self.begun as f64);
        (self.trained, self.begun, self.misses, self.settlements) = (now, 0, 0, 0);
    }

    fn step(&mut self) {
        self.now += 1;
        self.credit = (self.credit + self.write_rate).min((self.write_rate * 1000.0).max(1.0));
        self.demand_accesses += 1.0;
        if self.now.is_multiple_of(125) {
            self.settle();
            self.settlements += 1;
            if self.settlements >= 8 {
                self.train();
            }
        }
    }

    fn note(&mut self, block: u32, write: bool) -> Vec<f32> {
        let uses = self.uses.get(&block).cloned().unwrap_or_default();
        if uses.last().is_some_and(|last| self.now - last <= self.longest_stay()) {
            let saves = self.share * (11.5 + f64::from(self.request[1]) / (143.0 * 1048.576));
            if let Some(episode) = self.episode(block) {
                episode.saved += saves;
            }
        } else {
            self.end(block);
            self.begun += 1;
            if self.rng.unit() < self.recorded_share && self.recorded.len() < self.limit {
                let episode =
                    Episode { block: Some(block), begun: self.now, saved: 0.0, rows: Vec::new() };
                self.recorded.push(episode);
            }
        }
        let mut row = vec![f32::from(u8::from(write)), self.request[0], self.request[1]];
        row.extend(self.by_slice(&uses));
        row.extend(&self.request[2..]);
        if let Some(episode) = self.episode(block)
            && episode.rows.len() < 6
        {
            episode.rows.push(row.clone());
        }
        self.uses.entry(block).or_default().push(self.now);
        row
    }

    fn admits(&mut self, row: &[f32]) -> bool {
        let class = self.model.as_ref().map(|model| Self::class(model.predict(row)));
        if let Some(class) = class {
            self.demand[class] += 1.0;
        }
        let most = (self.write_rate * 1000.0).max(1.0);
        let admits = match class.zip(self.threshold) {
            Some((class, threshold)) if class < threshold => false,
            Some((class, threshold)) if class == threshold => self.credit >= (most / 2.0).max(1.0),
            _ => self.credit >= 1.0,
        };
        self.credit -= f64::from(u8::from(admits));
        admits
    }

    fn access(&mut self, block: u32, write: bool) -> Verdict {
        self.step();
        let row = self.note(block, write);
        if self.cached.contains(&block) {
            self.cached.retain(|other| *other != block);
            self.cached.push(block);
            return Verdict::Hit;
        }
        self.misses += 1;
        self.remembered.retain(|other| *other != block);
        let admits = self.admits(&row);
        let mut evicted = None;
        if admits {
            if self.cached.len() == self.capacity {
                let victim = self.cached.remove(0);
                let age = (self.now - self.last(victim)) as f64;
                self.ages = (self.ages.0 + age, self.ages.1 + 1.0);
                self.remembered.push(victim);
                evicted = Some(BlockId(victim));
            }
            self.cached.push(block);
        } else {
            self.remembered.push(block);
        }
        while self.remembered.len() > self.ghosts {
            let forgotten = self.remembered.remove(0);
            self.end(forgotten);
            self.uses.remove(&forgotten);
        }
        if admits { Verdict::Admit { evicted } } else { Verdict::Bypass }
    }
}

/// First block and blocks of a request: some of a hot part again and again, streams, anywhere.
fn request(rng: &mut Rng, stream: &mut u64) -> (u64, u64) {
    match rng.below(4) {
        0 | 1 => ((rng.unit() * rng.unit() * 60.0) as u64, 1 + rng.below(2)),
        2 => {
            *stream = (*stream + 4) % 300;
            (100 + *stream, 4)
        }
        _ => (rng.below(400), 1 + rng.below(3)),
    }
}

#[test]
fn it_is_episodes_by_search() {
    for (capacity, write_rate, limit) in
        [(1, 0.1, 8192), (5, 0.3, 200), (30, 0.1, 8192), (60, 0.02, 400), (100, 1.0, 8192)]
    {
        let pairs = [
            ("write_rate", Value::Float(write_rate)),
            ("episodes", Value::Int(limit as i64)),
            ("extent", Value::Text("64KiB".to_owned())),
            ("trees", Value::Int(4)),
        ];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value));
        let mut policy = boxed("baleen", &pairs, capacity as u32, Seed(1)).unwrap();
        policy.reserve_ids(410);
        let mut model = Episodes::new(capacity, write_rate, limit);
        let (mut rng, mut stream) = (Seed(capacity as u64).rng(), 0);
        let (mut admitted, mut accesses) = (0, 0);
        for number in 0..4_000 {
            let (first, blocks) = request(&mut rng, &mut stream);
            let write = rng.below(3) == 0;
            let (offset, length) = (first * BLOCK, blocks * BLOCK);
            policy.on_request(&RequestInfo { offset, length, write, time_ns: 0 });
            model.on_request(offset, length);
            for block in first..first + blocks {
                let access = Access { write, ..Access::read(BlockId(block as u32)) };
                let verdict = policy.access(access);
                let words = format!("{capacity} blocks, request {number}, block {block}");
                assert_eq!(verdict, model.access(block as u32, write), "{words}");
                admitted += u32::from(matches!(verdict, Verdict::Admit { .. }));
                accesses += 1;
            }
            if number % 101 == 0 {
                assert_eq!(policy.audit(), Ok(()), "{capacity} blocks, request {number}");
            }
        }
        let allowed = write_rate * f64::from(accesses);
        assert!(f64::from(admitted) <= allowed + 1.0, "{admitted} writes, {allowed} allowed");
        assert!(model.model.is_some() && admitted > 50, "{admitted} writes of {accesses}");
    }
}
