//! A model of smq: 64 queues per level queue, everything found by searching.
//!
//! For: `agree_ghosts.rs`. Source: Linux `drivers/md/dm-cache-policy-smq.c`, with the deviations
//! that the policy's header names. Queues run from oldest (front) to newest (back).

use super::{GhostModel, ModelVerdict, take};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone)]
pub struct Levels(pub Vec<VecDeque<u32>>);

impl Levels {
    pub fn new() -> Self {
        Levels(vec![VecDeque::new(); 64])
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(VecDeque::len).sum()
    }

    pub fn level(&self, entry: u32) -> Option<usize> {
        self.0.iter().position(|level| level.contains(&entry))
    }

    pub fn pop_oldest(&mut self, from: usize, below: usize) -> Option<(usize, u32)> {
        let level = (from..below).find(|level| !self.0[*level].is_empty())?;
        self.0[level].pop_front().map(|entry| (level, entry))
    }

    pub fn use_entry(&mut self, entry: u32, jump: usize) {
        let level = self.level(entry).unwrap();
        take(&mut self.0[level], entry);
        let reached = (level + jump).min(63);
        if reached > level
            && let Some(other) = self.0[reached].pop_front()
        {
            self.0[level].push_back(other);
        }
        self.0[reached].push_back(entry);
    }

    /// The wanted lengths: `top` entries over the highest `top_levels`, the rest over the others.
    fn targets(&self, top_levels: usize, top: usize) -> Vec<usize> {
        let mut targets = vec![0; 64];
        let rest = self.len().saturating_sub(top);
        for entry in 0..rest {
            targets[entry % (64 - top_levels)] += 1;
        }
        for entry in 0..if top_levels > 0 { top } else { 0 } {
            targets[64 - top_levels + entry % top_levels] += 1;
        }
        targets
    }

    pub fn even_out(&mut self, top_levels: usize, top: usize) {
        let targets = self.targets(top_levels, top);
        for (level, target) in targets.into_iter().enumerate().take(63) {
            while self.0[level].len() < target {
                let Some((_, entry)) = self.pop_oldest(level + 1, 64) else { break };
                self.0[level].push_back(entry);
            }
            while self.0[level].len() > target {
                let entry = self.0[level].pop_back().unwrap();
                self.0[level + 1].push_front(entry);
            }
        }
    }
}

pub struct Multiqueue {
    capacity: usize,
    tick: usize,
    region_blocks: u32,
    idle: bool,
    regions: usize,
    accesses: usize,
    clean: Levels,
    dirty: Levels,
    hotspot: Levels,
    climbed_blocks: BTreeSet<u32>,
    climbed_regions: BTreeSet<u32>,
    foreseen: BTreeMap<bool, usize>,
    promote_level: usize,
    jump: usize,
}

impl Multiqueue {
    pub fn new(capacity: usize, tick: usize, region_blocks: u32, idle: bool) -> Self {
        Multiqueue {
            capacity,
            tick,
            region_blocks,
            idle,
            regions: (3 * capacity / region_blocks as usize).max(64),
            accesses: 0,
            clean: Levels::new(),
            dirty: Levels::new(),
            hotspot: Levels::new(),
            climbed_blocks: BTreeSet::new(),
            climbed_regions: BTreeSet::new(),
            foreseen: BTreeMap::new(),
            promote_level: 64,
            jump: 1,
        }
    }

    fn end_period(&mut self) {
        let yes = self.foreseen.get(&true).copied().unwrap_or(0);
        let no = self.foreseen.get(&false).copied().unwrap_or(0);
        let poor = yes * 16 < yes + no || yes + no == 0;
        let fair = yes * 8 < yes + no;
        (self.promote_level, self.jump) = if poor {
            (48, 4)
        } else if fair {
            (32, 2)
        } else {
            (0, 1)
        };
        let top = (self.regions / 64).min(self.capacity / self.region_blocks as usize);
        self.hotspot.even_out(8, top);
        self.foreseen.clear();
        self.climbed_regions.clear();
        if self.accesses.is_multiple_of(10 * self.tick) {
            self.climbed_blocks.clear();
            self.dirty.even_out(0, 0);
            self.clean.even_out(0, 0);
        }
        while self.idle
            && let Some((level, block)) = self.dirty.pop_oldest(0, 64)
        {
            self.clean.0[level].push_back(block);
        }
    }

    fn region_level(&mut self, region: u32) -> usize {
        let level = self.hotspot.level(region);
        *self.foreseen.entry(level.is_some_and(|level| level >= 48)).or_default() += 1;
        if level.is_some() {
            let jump = if self.climbed_regions.insert(region) { self.jump } else { 0 };
            self.hotspot.use_entry(region, jump);
        } else {
            let mut level = 0;
            if self.hotspot.len() == self.regions {
                let (reused, forgotten) = self.hotspot.pop_oldest(0, 64).unwrap();
                self.climbed_regions.remove(&forgotten);
                level = reused;
            }
            self.hotspot.0[level].push_back(region);
        }
        self.hotspot.level(region).unwrap()
    }
}

impl GhostModel for Multiqueue {
    fn access(&mut self, block: u32, write: bool) -> ModelVerdict {
        self.accesses += 1;
        if self.accesses.is_multiple_of(self.tick) {
            self.end_period();
        }
        let in_clean = self.clean.level(block);
        if in_clean.is_some() || self.dirty.level(block).is_some() {
            let queue = if in_clean.is_some() { &mut self.clean } else { &mut self.dirty };
            if self.climbed_blocks.insert(block) {
                queue.use_entry(block, 1);
            }
            if write && in_clean.is_some() {
                let level = self.clean.level(block).unwrap();
                take(&mut self.clean.0[level], block);
                self.dirty.0[level].push_back(block);
            }
            return ModelVerdict::Hit;
        }
        if self.region_level(block / self.region_blocks) < self.promote_level {
            return ModelVerdict::Out;
        }
        let mut evicted = None;
        if self.clean.len() + self.dirty.len() == self.capacity {
            let victim = self.clean.pop_oldest(0, 32).or_else(|| self.dirty.pop_oldest(0, 64));
            let Some((_, victim)) = victim else { return ModelVerdict::Out };
            self.climbed_blocks.remove(&victim);
            evicted = Some(victim);
        }
        let queue = if write { &mut self.dirty } else { &mut self.clean };
        queue.0[63].push_back(block);
        ModelVerdict::In(evicted)
    }
}
