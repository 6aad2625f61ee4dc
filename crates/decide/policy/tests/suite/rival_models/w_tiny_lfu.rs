//! W-TinyLFU in plain vectors. The sketch is an array of counters per line and row; which of them a
//! key has is said by the same hash as in the policy, since estimates depend on it.

use crate::ghost_models::{GhostModel, ModelVerdict};
use cachewright_types::seed::mix;
use std::collections::HashMap;

pub struct Window {
    capacity: usize,
    window_blocks: usize,
    protected_blocks: usize,
    history: usize,
    sample: usize,
    /// Newest first.
    window: Vec<u32>,
    probation: Vec<u32>,
    protected: Vec<u32>,
    ghosts: Vec<u32>,
    /// The number under which each known block is counted.
    numbers: HashMap<u32, u64>,
    next_number: u64,
    /// By line, row and counter.
    counters: Vec<[[u32; 32]; 4]>,
    doorkeeper: Option<Vec<bool>>,
    additions: usize,
}

impl Window {
    pub fn new(capacity: usize, window_blocks: usize, doorkeeper: bool) -> Window {
        let size = capacity.next_power_of_two();
        Window {
            capacity,
            window_blocks,
            protected_blocks: 8 * (capacity - window_blocks) / 10,
            history: 3 * capacity,
            sample: 10 * capacity,
            window: Vec::new(),
            probation: Vec::new(),
            protected: Vec::new(),
            ghosts: Vec::new(),
            numbers: HashMap::new(),
            next_number: 0,
            counters: vec![[[0; 32]; 4]; (size / 8).max(1)],
            doorkeeper: doorkeeper.then(|| vec![false; 64 * (size / 2).max(1)]),
            additions: 0,
        }
    }

    fn hash(&self, block: u32) -> u64 {
        mix(self.numbers[&block])
    }

    /// The line of a key, and its counter in each row.
    fn counters_of(&self, block: u32) -> (usize, [usize; 4]) {
        let hash = self.hash(block);
        let line = (hash >> 32) as usize % self.counters.len();
        (
            line,
            hash.to_le_bytes()[..4]
                .iter()
                .map(|byte| *byte as usize % 32)
                .collect::<Vec<_>>()
                .try_into()
                .unwrap(),
        )
    }

    fn doors_of(&self, block: u32) -> Vec<usize> {
        let Some(doors) = &self.doorkeeper else { return Vec::new() };
        let hash = mix(self.hash(block));
        let word = (hash >> 32) as usize % (doors.len() / 64);
        vec![64 * word + hash as usize % 64, 64 * word + (hash / 64) as usize % 64]
    }

    fn count(&mut self, block: u32) {
        let doors = self.doors_of(block);
        let is_new = match &mut self.doorkeeper {
            None => false,
            Some(open) => {
                let is_new = doors.iter().any(|door| !open[*door]);
                doors.iter().for_each(|door| open[*door] = true);
                is_new
            }
        };
        if !is_new {
            let (line, columns) = self.counters_of(block);
            let lowest = (0..4).map(|row| self.counters[line][row][columns[row]]).min().unwrap();
            for (row, column) in columns.into_iter().enumerate() {
                let counter = &mut self.counters[line][row][column];
                if *counter == lowest && lowest < 15 {
                    *counter += 1;
                }
            }
        }
        self.additions += 1;
        if self.additions == self.sample.max(2) {
            self.additions /= 2;
            self.counters.iter_mut().flatten().flatten().for_each(|counter| *counter /= 2);
            self.doorkeeper.iter_mut().flatten().for_each(|door| *door = false);
        }
    }

    fn estimate(&self, block: u32) -> u32 {
        let (line, columns) = self.counters_of(block);
        let lowest = (0..4).map(|row| self.counters[line][row][columns[row]]).min().unwrap();
        let doors = self.doors_of(block);
        let seen =
            self.doorkeeper.as_ref().is_some_and(|open| doors.iter().all(|door| open[*door]));
        lowest + u32::from(seen)
    }

    /// The block that leaves a full cache, whose window has its share.
    fn contest(&mut self) -> u32 {
        let candidate = self.window.pop().unwrap();
        let from = if self.probation.is_empty() { &self.protected } else { &self.probation };
        let Some(&victim) = from.last() else { return candidate };
        if self.estimate(candidate) <= self.estimate(victim) {
            return candidate;
        }
        self.probation.retain(|block| *block != victim);
        self.protected.retain(|block| *block != victim);
        self.probation.insert(0, candidate);
        victim
    }
}

impl GhostModel for Window {
    fn access(&mut self, block: u32, _: bool) -> ModelVerdict {
        if !self.numbers.contains_key(&block) {
            self.numbers.insert(block, self.next_number);
            self.next_number += 1;
        }
        self.count(block);
        if self.window.contains(&block) {
            self.window.retain(|other| *other != block);
            self.window.insert(0, block);
            return ModelVerdict::Hit;
        }
        if self.probation.contains(&block) || self.protected.contains(&block) {
            self.probation.retain(|other| *other != block);
            self.protected.retain(|other| *other != block);
            self.protected.insert(0, block);
            if self.protected.len() > self.protected_blocks {
                self.probation.insert(0, self.protected.pop().unwrap());
            }
            return ModelVerdict::Hit;
        }
        self.ghosts.retain(|other| *other != block);
        let held = self.window.len() + self.probation.len() + self.protected.len();
        let evicted = (held == self.capacity).then(|| self.contest());
        if let Some(victim) = evicted {
            self.ghosts.insert(0, victim);
            for forgotten in self.ghosts.drain(self.history.min(self.ghosts.len())..) {
                self.numbers.remove(&forgotten);
            }
        }
        if self.window.len() == self.window_blocks {
            self.probation.insert(0, self.window.pop().unwrap());
        }
        self.window.insert(0, block);
        ModelVerdict::In(evicted)
    }
}
