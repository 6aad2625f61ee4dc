//! Models of the policies that order blocks by a number: LFU by count, Belady by next use.

use super::{Model, ModelOutcome};
use std::collections::HashMap;

/// LFU: per block its count and the time it got there.
#[derive(Default)]
pub struct Counts {
    pub capacity: usize,
    /// Average count above which all are halved.
    pub limit: Option<u64>,
    pub blocks: HashMap<u32, (u64, u64)>,
    pub time: u64,
}

impl Counts {
    /// Halves all counts, rounding up; among counts that become equal the lower one stays ahead
    /// in the order of leaving, so times are dealt out anew in that order.
    fn halve(&mut self) {
        let mut order: Vec<(u64, u64, u32)> =
            self.blocks.iter().map(|(block, (count, since))| (*count, *since, *block)).collect();
        order.sort_unstable();
        for (count, _, block) in order {
            self.time += 1;
            self.blocks.insert(block, (count.div_ceil(2), self.time));
        }
    }
}

impl Model for Counts {
    fn access(&mut self, block: u32) -> ModelOutcome {
        self.time += 1;
        let known = self.blocks.get(&block).copied();
        let mut evicted = None;
        if known.is_none() && self.blocks.len() == self.capacity {
            let victim = *self.blocks.iter().min_by_key(|(_, rank)| **rank).unwrap().0;
            self.blocks.remove(&victim);
            evicted = Some(victim);
        }
        let count = known.map_or(1, |(count, _)| count + 1);
        self.blocks.insert(block, (count, self.time));
        let sum: u64 = self.blocks.values().map(|(count, _)| count).sum();
        if self.limit.is_some_and(|limit| sum > limit * self.blocks.len() as u64) {
            self.halve();
        }
        if known.is_some() { ModelOutcome::Hit } else { ModelOutcome::Miss { evicted } }
    }
}

/// The most hits any cache of `capacity` can have, by looking through the rest of the trace for
/// every decision. With `bypass` the new block itself may be the one that is used last.
pub fn best_hits(trace: &[u32], capacity: usize, bypass: bool) -> u64 {
    let mut cache: Vec<u32> = Vec::new();
    let mut hits = 0;
    for (now, block) in trace.iter().enumerate() {
        if cache.contains(block) {
            hits += 1;
            continue;
        }
        let next = |b: &u32| trace[now + 1..].iter().position(|c| c == b).unwrap_or(usize::MAX);
        if cache.len() < capacity {
            cache.push(*block);
        } else if let Some(at) = (0..cache.len()).max_by_key(|at| next(&cache[*at]))
            && !(bypass && next(block) >= next(&cache[at]))
        {
            cache[at] = *block;
        }
    }
    hits
}
