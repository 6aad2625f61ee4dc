//! CacheSack as one list per retention time and way, and a knapsack of single steps.

use crate::ghost_models::{GhostModel, ModelVerdict};
use std::collections::BTreeMap;

const TIMES: usize = 13;
/// On a miss, on the second miss, on a write.
const WAYS: usize = 3;

/// A time; the ways of each category, of its base and its next step; shares of the next.
type Plan = (usize, [[Option<usize>; 2]; 2], [f64; 2]);

/// Counts of one category under one time and way.
#[derive(Clone, Copy, Default)]
struct Count {
    hits: f64,
    space: f64,
    written: f64,
}

struct Known {
    last: u64,
    category: usize,
    /// Whether a cache of each time and way holds it until its time is over.
    inside: [[bool; WAYS]; TIMES],
}

/// Reads and writes are the two categories, as requests are not known.
pub struct Sack {
    capacity: usize,
    ghosts: usize,
    every: u64,
    price: f64,
    times: Vec<u64>,
    cached: Vec<u32>,
    forgotten_next: Vec<u32>,
    known: BTreeMap<u32, Known>,
    counts: [[[Count; WAYS]; TIMES]; 2],
    ended: [f64; 2],
    begun: f64,
    plan: Option<Plan>,
    rests: [f64; 2],
    now: u64,
    left: u64,
}

impl Sack {
    pub fn new(capacity: usize, ghosts: f64, every: f64, price: f64) -> Sack {
        let mut size = 1;
        while size < capacity {
            size *= 2;
        }
        let time = |index: usize| {
            let factor = 0.25 * 2f64.powf(0.5 * index as f64);
            (size as f64 * factor - 1e-9).ceil().max(1.0) as u64
        };
        let every = ((capacity as f64 * every) as u64).max(1_000);
        Sack {
            capacity,
            ghosts: (capacity as f64 * ghosts) as usize,
            every,
            price,
            times: (0..TIMES).map(time).collect(),
            cached: Vec::new(),
            forgotten_next: Vec::new(),
            known: BTreeMap::new(),
            counts: [[[Count::default(); WAYS]; TIMES]; 2],
            ended: [0.0; 2],
            begun: 0.0,
            plan: None,
            rests: [0.0; 2],
            now: 0,
            left: every,
        }
    }

    /// A block's wait of `length` ends, with a use if `used`.
    fn end(&mut self, block: u32, used: bool) {
        let known = &self.known[&block];
        let length = self.now - known.last;
        self.ended[known.category] += 1.0;
        let rows = self.counts[known.category].iter_mut().zip(&known.inside).zip(&self.times);
        for ((counts, inside), time) in rows {
            let hit = used && length <= *time;
            for count in counts.iter_mut().zip(inside).filter(|(_, inside)| **inside) {
                count.0.hits += f64::from(u8::from(hit));
                count.0.space += if hit { length as f64 } else { *time as f64 };
            }
        }
    }

    /// A use begins the block's next wait.
    fn begin(&mut self, block: u32, write: bool) {
        let category = usize::from(write);
        self.begun += 1.0;
        let mut inside = [[false; WAYS]; TIMES];
        for (index, time) in self.times.iter().enumerate() {
            let before = self.known.get(&block);
            let soon = before.is_some_and(|known| self.now - known.last <= *time);
            let held = |way: usize| soon && before.is_some_and(|known| known.inside[index][way]);
            let enters = [!held(0), soon && !held(1), write && !held(2)];
            for way in 0..WAYS {
                self.counts[category][index][way].written += f64::from(u8::from(enters[way]));
                inside[index][way] = enters[way] || held(way);
            }
        }
        self.known.insert(block, Known { last: self.now, category, inside });
    }

    fn learn(&mut self) {
        let space = self.capacity as f64 * self.begun;
        let mut best: Option<(f64, _)> = None;
        for time in 0..TIMES {
            let point = |category: usize, way: Option<usize>| match way {
                None => (0.0, self.ended[category]),
                Some(way) => {
                    let count = self.counts[category][time][way];
                    let cost = self.ended[category] - count.hits + self.price * count.written;
                    (count.space, cost)
                }
            };
            let mut current: [Option<usize>; 2] = [None; 2];
            let (mut left, mut saving) = (space, 0.0);
            let mut choices = [[None; 2]; 2];
            let mut shares = [0.0; 2];
            loop {
                // The steepest of all single steps; as steep: the first category, the longest.
                let mut step: Option<(f64, usize, usize, f64, f64)> = None;
                for (category, way) in current.into_iter().enumerate() {
                    let here = point(category, way);
                    for way in 0..WAYS {
                        let there = point(category, Some(way));
                        let (more, less) = (there.0 - here.0, here.1 - there.1);
                        if less <= 0.0 || more < 0.0 {
                            continue;
                        }
                        let slope = if more > 0.0 { less / more } else { f64::INFINITY };
                        let better = step.is_none_or(|(highest, other, _, _, saved)| {
                            slope > highest || slope == highest && other == category && less > saved
                        });
                        if better {
                            step = Some((slope, category, way, more, less));
                        }
                    }
                }
                let Some((_, category, way, more, less)) = step else { break };
                if more > left {
                    shares[category] = left / more;
                    saving += left / more * less;
                    choices[category][1] = Some(way);
                    break;
                }
                left -= more;
                saving += less;
                current[category] = Some(way);
                choices[category][0] = Some(way);
            }
            if best.as_ref().is_none_or(|(highest, _)| saving > *highest) {
                best = Some((saving, (time, choices, shares)));
            }
        }
        self.plan = best.map(|(_, plan)| plan);
        self.left = self.every;
        self.begun /= 2.0;
        self.ended.iter_mut().for_each(|count| *count /= 2.0);
        for count in self.counts.iter_mut().flatten().flatten() {
            *count = Count {
                hits: count.hits / 2.0,
                space: count.space / 2.0,
                written: count.written / 2.0,
            };
        }
    }

    fn admits(&mut self, wait: Option<u64>, write: bool) -> bool {
        let category = usize::from(write);
        let Some((time, choices, shares)) = self.plan else { return true };
        self.rests[category] += shares[category];
        let turn = usize::from(self.rests[category] >= 1.0);
        self.rests[category] -= turn as f64;
        match choices[category][turn] {
            None => false,
            Some(0) => true,
            Some(1) => wait.is_some_and(|wait| wait <= self.times[time]),
            Some(_) => write,
        }
    }

    fn trim(&mut self) {
        while self.forgotten_next.len() > self.ghosts {
            let block = self.forgotten_next.remove(0);
            self.end(block, false);
            self.known.remove(&block);
        }
    }
}

impl GhostModel for Sack {
    fn access(&mut self, block: u32, write: bool) -> ModelVerdict {
        self.now += 1;
        self.left -= 1;
        if self.left == 0 {
            self.learn();
        }
        let wait = self.known.get(&block).map(|known| self.now - known.last);
        if wait.is_some() {
            self.end(block, true);
        }
        self.begin(block, write);
        if let Some(place) = self.cached.iter().position(|cached| *cached == block) {
            self.cached.remove(place);
            self.cached.push(block);
            return ModelVerdict::Hit;
        }
        self.forgotten_next.retain(|ghost| *ghost != block);
        if !self.admits(wait, write) {
            self.forgotten_next.push(block);
            self.trim();
            return ModelVerdict::Out;
        }
        let leaves = (self.cached.len() == self.capacity).then(|| self.cached.remove(0));
        self.forgotten_next.extend(leaves);
        self.cached.push(block);
        self.trim();
        ModelVerdict::In(leaves)
    }
}
