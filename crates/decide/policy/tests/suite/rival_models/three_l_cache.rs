//! 3L-Cache from lists of blocks and of all uses of each block since it is known. The trees are
//! those of the policy: their own tests compare them with an exhaustive search.

use crate::ghost_models::{GhostModel, ModelVerdict};
use cachewright_model::learn::{BoostedTrees, BoostingSettings};
use cachewright_types::{Rng, Seed};
use std::collections::HashMap;

/// What the policy is set to.
#[derive(Clone, Copy)]
pub struct Rates {
    pub drawn_per_victim: usize,
    pub batch: usize,
    pub trees: usize,
    pub widen_after: u64,
}

pub struct Rounds {
    capacity: usize,
    rates: Rates,
    now: u64,
    /// By last use, oldest first.
    resident: Vec<u32>,
    /// First left first.
    ghosts: Vec<u32>,
    /// First come first.
    new: Vec<u32>,
    /// All known blocks, where the last one fills the gap of one that is forgotten.
    known: Vec<u32>,
    uses: HashMap<u32, Vec<u64>>,
    samples: HashMap<u32, u64>,
    model: Option<BoostedTrees>,
    trained: u64,
    rows: Vec<f32>,
    targets: Vec<f32>,
    longest: u64,
    longest_before: u64,
    caches: usize,
    /// Accesses, known ones and hits since the window was full.
    counts: Option<[u64; 3]>,
    /// Candidates in the order of prediction, and the accesses from the training to their use.
    candidates: Vec<(u32, f64)>,
    round: usize,
    pointer: Option<u32>,
    length: usize,
    position: usize,
    reached: u64,
    first_share: usize,
    fewer_than: usize,
    reserve: usize,
    /// Victims and draws of the first part of the scan, and of what is scanned now.
    first: [u64; 2],
    rest: [u64; 2],
    victims: Vec<usize>,
    has_evicted: bool,
    rng: Rng,
}

fn drop_from(list: &mut Vec<u32>, block: u32) -> bool {
    let index = list.iter().position(|other| *other == block);
    index.map(|index| list.remove(index)).is_some()
}

impl Rounds {
    pub fn new(capacity: usize, rates: Rates) -> Rounds {
        Rounds {
            capacity,
            rates,
            now: 0,
            resident: Vec::new(),
            ghosts: Vec::new(),
            new: Vec::new(),
            known: Vec::new(),
            uses: HashMap::new(),
            samples: HashMap::new(),
            model: None,
            trained: 0,
            rows: Vec::new(),
            targets: Vec::new(),
            longest: 0,
            longest_before: 0,
            caches: 2,
            counts: None,
            candidates: Vec::new(),
            round: 0,
            pointer: None,
            length: 0,
            position: 0,
            reached: 0,
            first_share: 1,
            fewer_than: 1,
            reserve: 2,
            first: [0; 2],
            rest: [0; 2],
            victims: Vec::new(),
            has_evicted: false,
            rng: Seed(1).derive("3l-cache").rng(),
        }
    }

    fn last(&self, block: u32) -> u64 {
        *self.uses[&block].last().unwrap()
    }

    fn inputs(&self, block: u32, now: u64) -> Vec<f32> {
        let uses = &self.uses[&block];
        let mut inputs = vec![(now - self.last(block)) as f32];
        let distances: Vec<u64> = uses.windows(2).rev().map(|pair| pair[1] - pair[0]).collect();
        inputs.extend((0..3).map(|back| distances.get(back).map_or(f32::INFINITY, |d| *d as f32)));
        inputs.push(uses.len() as f32);
        inputs
    }

    fn end_sample(&mut self, block: u32, later: impl Fn(u64) -> u64) {
        let Some(sampled) = self.samples.remove(&block) else { return };
        if self.model.is_some() && self.rng.below(4) != 0 {
            return;
        }
        if self.targets.len() < self.rates.batch {
            let inputs = self.inputs(block, sampled);
            self.rows.extend(inputs);
            self.targets.push((later(sampled) as f32).ln_1p());
        }
        if self.targets.len() == self.rates.batch && self.round == 0 {
            self.train();
        }
    }

    fn train(&mut self) {
        let settings = BoostingSettings { trees: self.rates.trees, ..Default::default() };
        let seed = Seed(self.rng.next_u64());
        self.model = Some(BoostedTrees::fit(5, &self.rows, &self.targets, &settings, seed));
        self.rows.clear();
        self.targets.clear();
        self.trained = self.now;
        self.candidates.clear();
        self.longest_before = self.longest;
        if let Some([accesses, known, hits]) = self.counts
            && accesses > self.rates.widen_after
        {
            let (more, ghost_hits) = (self.caches as u64 - 1, known - hits);
            self.counts = Some([0; 3]);
            if ghost_hits as f64 / (hits * more) as f64 > 0.01
                && more < (accesses - hits) / ghost_hits
            {
                self.caches = 6.min(self.caches + 1);
                self.counts = None;
            }
        }
    }

    fn forget_ghosts(&mut self) {
        while self.ghosts.len() > self.capacity * (self.caches - 1) {
            self.counts.get_or_insert([0; 3]);
            let block = self.ghosts[0];
            let age = self.now - self.last(block);
            let later = self.longest_before + age;
            if self.samples.contains_key(&block) {
                self.longest = self.longest.max(age);
            }
            self.end_sample(block, |_| later);
            drop_from(&mut self.ghosts, block);
            let place = self.known.iter().position(|other| *other == block).unwrap();
            self.known.swap_remove(place);
            self.uses.remove(&block);
        }
    }

    /// The block after one in the order of use; after the newest nothing.
    fn after(&self, block: u32) -> Option<u32> {
        let place = self.resident.iter().position(|other| *other == block)?;
        self.resident.get(place + 1).copied()
    }

    fn rate(&self) -> usize {
        if self.length > 2 { 1024.min(self.length / 100 + self.rates.drawn_per_victim) } else { 1 }
    }

    fn begin_round(&mut self) {
        let resident = self.resident.len();
        if self.length == 0 {
            self.length = resident;
        }
        let mut drawn = Vec::new();
        let most = 1.5 * self.rate() as f64;
        while 100 * self.new.len() > resident * self.reserve && (drawn.len() as f64) < most {
            drawn.push(self.new.remove(0));
        }
        if 10 * self.new.len() < resident * self.reserve {
            self.draw_from_scan(&mut drawn);
        }
        self.round = drawn.len() / self.rates.drawn_per_victim;
        for block in drawn {
            let prediction = self.model.as_ref().unwrap().predict(&self.inputs(block, self.now));
            self.candidates.retain(|(other, _)| *other != block);
            let used = f64::from(prediction).exp() + (self.now - self.trained) as f64;
            self.candidates.push((block, used));
        }
    }

    fn draw_from_scan(&mut self, drawn: &mut Vec<u32>) {
        let mut taken = 0;
        while taken < self.rate() && drawn.len() < self.length {
            let block = self.pointer.unwrap_or(self.resident[0]);
            let first_part = self.length * self.first_share / 100;
            if self.first[1] == 0 && self.position > first_part {
                (self.first, self.rest) = (self.rest, [0; 2]);
            }
            let is_rare = self.uses[&block].len() - 1 < self.fewer_than;
            if is_rare || self.position <= first_part + self.rates.drawn_per_victim {
                drawn.push(block);
                taken += 1;
            }
            self.position += 1;
            if self.position < self.length {
                self.pointer = self.after(block);
                continue;
            }
            self.candidates.clear();
            (self.pointer, self.position, self.length) = (None, 0, self.resident.len());
            taken = 0;
            self.adapt();
        }
        self.reached = self.last(*drawn.last().unwrap());
        self.rest[1] += self.rate() as u64;
    }

    fn adapt(&mut self) {
        let in_class =
            |class: u32| self.victims.iter().filter(|uses| uses.ilog2() == class).count() as f64;
        let most = 0.99 * self.victims.len() as f64;
        let mut before = 0.0;
        let mut class = 0;
        while before + in_class(class) < most {
            before += in_class(class);
            class += 1;
        }
        self.fewer_than = if class == 0 {
            1
        } else {
            let low = f64::from(1 << (class - 1));
            let share = (most - before) / in_class(class);
            (low + (low * share).ceil()) as usize
        };
        let ([first, first_drawn], [rest, rest_drawn]) = (self.first, self.rest);
        if first * rest_drawn > rest * first_drawn {
            self.first_share = 100.min(self.first_share + 1);
        } else {
            self.first_share = 1.max(self.first_share - 1);
        }
        if (first + rest) as usize > self.new.len() {
            self.reserve = 100.min(self.reserve + 1);
        } else {
            self.reserve = 1.max(self.reserve / 2);
        }
        (self.first, self.rest) = ([0; 2], [0; 2]);
        self.victims.clear();
    }

    /// Takes the first of the candidates that are used last.
    fn last_used(&mut self) -> Option<u32> {
        let latest = self.candidates.iter().map(|(_, used)| *used).reduce(f64::max)?;
        let place = self.candidates.iter().position(|(_, used)| *used == latest)?;
        Some(self.candidates.remove(place).0)
    }

    fn evict(&mut self) -> u32 {
        let victim = if self.model.is_none() {
            self.resident[0]
        } else {
            if self.round == 0 || self.candidates.is_empty() {
                self.begin_round();
            }
            let victim = self.last_used().unwrap();
            self.round = self.round.saturating_sub(1);
            self.victims.push(self.uses[&victim].len());
            if self.last(victim) <= self.reached {
                self.rest[0] += 1;
            }
            victim
        };
        self.has_evicted = true;
        if self.pointer == Some(victim) {
            self.pointer = self.after(victim);
        }
        drop_from(&mut self.resident, victim);
        drop_from(&mut self.new, victim);
        self.ghosts.push(victim);
        self.forget_ghosts();
        victim
    }
}

impl GhostModel for Rounds {
    fn access(&mut self, block: u32, _: bool) -> ModelVerdict {
        self.now += 1;
        let now = self.now;
        let is_hit = self.resident.contains(&block);
        let is_known = self.known.contains(&block);
        if let Some(counts) = &mut self.counts {
            counts[0] += 1;
            counts[1] += u64::from(is_known);
            counts[2] += u64::from(is_hit);
        }
        self.end_sample(block, |sampled| now - sampled);
        if is_known {
            self.uses.get_mut(&block).unwrap().push(now);
        }
        self.candidates.retain(|(other, _)| *other != block);
        if is_hit {
            if self.pointer == Some(block) {
                self.pointer = self.after(block);
            }
            drop_from(&mut self.resident, block);
            self.resident.push(block);
        }
        if self.has_evicted {
            let place = self.rng.below(self.known.len() as u64) as usize;
            self.samples.entry(self.known[place]).or_insert(now);
        }
        if is_hit {
            return ModelVerdict::Hit;
        }
        drop_from(&mut self.ghosts, block);
        let full = self.resident.len() == self.capacity;
        let evicted = full.then(|| self.evict());
        if !is_known {
            self.known.push(block);
            self.uses.insert(block, vec![now]);
        }
        self.resident.push(block);
        if self.model.is_some() {
            self.new.push(block);
        }
        ModelVerdict::In(evicted)
    }
}
