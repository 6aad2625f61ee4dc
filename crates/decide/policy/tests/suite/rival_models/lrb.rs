//! LRB from lists of all uses of each block since it is known. The trees are those of the policy:
//! their own tests compare them with an exhaustive search.

use crate::ghost_models::{GhostModel, ModelVerdict};
use cachewright_model::learn::{BoostedTrees, BoostingSettings};
use cachewright_types::{Rng, Seed};
use std::collections::HashMap;

pub struct Relaxed {
    capacity: usize,
    candidates: usize,
    window: u64,
    limit: usize,
    batch: usize,
    trees: usize,
    now: u64,
    /// Ghosts used before this time are forgotten.
    horizon: u64,
    resident: Vec<u32>,
    ghosts: Vec<u32>,
    /// The times at which a known block was used, and those at which it was sampled.
    uses: HashMap<u32, Vec<u64>>,
    samples: HashMap<u32, Vec<u64>>,
    model: Option<BoostedTrees>,
    rows: Vec<f32>,
    targets: Vec<f32>,
    has_evicted: bool,
    rng: Rng,
}

fn take(blocks: &mut Vec<u32>, block: u32) -> bool {
    let index = blocks.iter().position(|other| *other == block);
    index.map(|index| blocks.swap_remove(index)).is_some()
}

impl Relaxed {
    pub fn new(capacity: usize, candidates: usize, batch: usize, trees: usize) -> Relaxed {
        Relaxed {
            capacity,
            candidates,
            window: 8 * capacity as u64,
            limit: 3 * capacity,
            batch,
            trees,
            now: 0,
            horizon: 0,
            resident: Vec::new(),
            ghosts: Vec::new(),
            uses: HashMap::new(),
            samples: HashMap::new(),
            model: None,
            rows: Vec::new(),
            targets: Vec::new(),
            has_evicted: false,
            rng: Seed(1).derive("lrb").rng(),
        }
    }

    fn last(&self, block: u32) -> u64 {
        *self.uses[&block].last().unwrap()
    }

    fn inputs(&self, block: u32, now: u64) -> Vec<f32> {
        let uses = &self.uses[&block];
        let halved = |accesses: u64, counter: u32| -> f32 {
            0.5_f32.powi((accesses >> (10 + counter)).min(200) as i32)
        };
        let mut inputs = vec![(now - self.last(block)) as f32];
        let distances: Vec<u64> = uses.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let newest: Vec<u64> = distances.iter().rev().take(31).copied().collect();
        inputs.extend((0..31).map(|back| newest.get(back).map_or(f32::INFINITY, |d| *d as f32)));
        let within = (1..=newest.len()).filter(|n| newest[..*n].iter().sum::<u64>() < self.window);
        inputs.push(within.count() as f32);
        for counter in 0..10 {
            let add = |sum: f32, distance: &u64| sum * halved(*distance, counter) + 1.0;
            let sum = distances.iter().fold(1.0, add);
            inputs.push(sum * halved(now - self.last(block), counter));
        }
        inputs
    }

    fn label(&mut self, block: u32, then: impl Fn(u64) -> u64) {
        for time in self.samples.remove(&block).unwrap_or_default().into_iter().rev() {
            let inputs = self.inputs(block, time);
            self.rows.extend(inputs);
            self.targets.push((then(time) as f32).ln_1p());
            if self.targets.len() == self.batch {
                let settings = BoostingSettings { trees: self.trees, ..Default::default() };
                let seed = Seed(self.rng.next_u64());
                let (rows, targets) = (&self.rows, &self.targets);
                self.model = Some(BoostedTrees::fit(43, rows, targets, &settings, seed));
                self.rows.clear();
                self.targets.clear();
            }
        }
    }

    fn forget(&mut self, block: u32, label: u64) {
        self.label(block, |_| label);
        take(&mut self.ghosts, block);
        self.uses.remove(&block);
    }

    fn forget_old(&mut self) {
        loop {
            let oldest = self.ghosts.iter().copied().min_by_key(|block| self.last(*block));
            let Some(block) = oldest else { break };
            let used = self.last(block);
            if self.now - used < self.window && self.ghosts.len() <= self.limit {
                break;
            }
            self.forget(block, 2 * self.window);
            self.horizon = self.horizon.max(used + 1);
        }
        self.horizon = self.horizon.max((self.now + 1).saturating_sub(self.window));
    }

    fn choose(&mut self) -> u32 {
        let oldest = *self.resident.iter().min_by_key(|block| self.last(**block)).unwrap();
        if self.model.is_none() || self.now - self.last(oldest) >= self.window {
            return oldest;
        }
        let mut best = (f32::NEG_INFINITY, oldest);
        for _ in 0..self.candidates {
            let block = self.resident[self.rng.below(self.resident.len() as u64) as usize];
            let prediction = self.model.as_ref().unwrap().predict(&self.inputs(block, self.now));
            if prediction > best.0 {
                best = (prediction, block);
            }
        }
        best.1
    }

    fn evict(&mut self) -> u32 {
        let victim = self.choose();
        self.has_evicted = true;
        take(&mut self.resident, victim);
        if self.last(victim) < self.horizon {
            self.forget(victim, self.now - self.last(victim) + self.window);
        } else {
            self.ghosts.push(victim);
            self.forget_old();
        }
        victim
    }
}

impl GhostModel for Relaxed {
    fn access(&mut self, block: u32, _: bool) -> ModelVerdict {
        self.now += 1;
        self.forget_old();
        let now = self.now;
        self.label(block, |time| now - time);
        self.uses.entry(block).or_default().push(now);
        if self.has_evicted {
            let known = self.resident.len() + self.ghosts.len();
            let index = self.rng.below(known as u64) as usize;
            let sampled = self.resident.iter().chain(&self.ghosts).nth(index);
            self.samples.entry(*sampled.unwrap()).or_default().push(now);
        }
        if self.resident.contains(&block) {
            return ModelVerdict::Hit;
        }
        take(&mut self.ghosts, block);
        let full = self.resident.len() == self.capacity;
        let evicted = full.then(|| self.evict());
        self.resident.push(block);
        ModelVerdict::In(evicted)
    }
}
