//! GL-Cache as a list of groups, oldest first, and a table of what is known of each block. The
//! trees are those of the policy: their own tests compare them with an exhaustive search.

use crate::ghost_models::{GhostModel, ModelVerdict};
use cachewright_model::learn::{BoostedTrees, BoostingSettings};
use cachewright_types::{Rng, Seed};
use std::collections::HashMap;

#[derive(Clone, Default)]
struct Group {
    name: usize,
    blocks: Vec<u32>,
    created: u64,
    hits: u32,
    hit_blocks: Vec<u32>,
    miss_ratio: f32,
    merges: u32,
    row: Option<usize>,
}

struct Row {
    inputs: Vec<f32>,
    time: u64,
    utility: f32,
}

pub struct GroupLevel {
    capacity: usize,
    size: usize,
    interval: u64,
    trees: usize,
    now: u64,
    /// The last one is open.
    groups: Vec<Group>,
    names: usize,
    /// Blocks to leave, the first first, and ghosts, the oldest first; each with its row.
    leaving: Vec<(u32, Option<usize>)>,
    ghosts: Vec<(u32, usize)>,
    /// The last use and the hits of resident blocks and ghosts.
    uses: HashMap<u32, (u64, u32)>,
    rows: Vec<Row>,
    model: Option<BoostedTrees>,
    ranked: Vec<usize>,
    to_rank: usize,
    next: Option<usize>,
    rng: Rng,
}

impl GroupLevel {
    pub fn new(capacity: usize, size: usize, interval: u64, trees: usize) -> GroupLevel {
        GroupLevel {
            capacity,
            size: size.min(capacity / 20).max(1),
            interval: (interval * capacity as u64).max(64),
            trees,
            now: 0,
            groups: Vec::new(),
            names: 0,
            leaving: Vec::new(),
            ghosts: Vec::new(),
            uses: HashMap::new(),
            rows: Vec::new(),
            model: None,
            ranked: Vec::new(),
            to_rank: 0,
            next: None,
            rng: Seed(1).derive("gl-cache").rng(),
        }
    }

    fn inputs(&self, group: &Group) -> Vec<f32> {
        let numbers = [group.hits as f32, group.hit_blocks.len() as f32, group.miss_ratio];
        let more = [group.merges as f32, group.blocks.len() as f32];
        [&[(self.now - group.created) as f32][..], &numbers, &more].concat()
    }

    fn observe(&mut self, index: usize) {
        let inputs = self.inputs(&self.groups[index]);
        self.groups[index].row = Some(self.rows.len());
        self.rows.push(Row { inputs, time: self.now, utility: 0.0 });
    }

    fn tick(&mut self) {
        self.now += 1;
        if !self.now.is_multiple_of(self.interval) {
            return;
        }
        let seed = Seed(self.rng.next_u64());
        if self.rows.len() >= 32 {
            let inputs: Vec<f32> = self.rows.iter().flat_map(|row| row.inputs.clone()).collect();
            let targets: Vec<f32> = self.rows.iter().map(|row| row.utility).collect();
            let settings = BoostingSettings { trees: self.trees, ..Default::default() };
            self.model = Some(BoostedTrees::fit(6, &inputs, &targets, &settings, seed));
            self.to_rank = 0;
        }
        self.rows.clear();
        for (block, _) in self.ghosts.drain(..) {
            self.uses.remove(&block);
        }
        self.leaving.iter_mut().for_each(|leaving| leaving.1 = None);
        for index in 0..self.groups.len().saturating_sub(1) {
            self.observe(index);
        }
    }

    fn waits(&self, row: usize, block: u32) -> bool {
        self.uses[&block].0 <= self.rows[row].time
    }

    fn count_use(&mut self, row: Option<usize>, block: u32) {
        if let Some(row) = row
            && self.waits(row, block)
        {
            let accesses = (self.now - self.rows[row].time).max(1);
            self.rows[row].utility += self.capacity as f32 / accesses as f32;
        }
    }

    fn enter(&mut self, block: u32, hits: u32) {
        if self.groups.last().is_none_or(|open| open.blocks.len() >= self.size) {
            if let Some(open) = self.groups.last_mut() {
                let accesses = (self.now - open.created).max(1);
                open.miss_ratio = open.blocks.len() as f32 / accesses as f32;
                if self.now % self.interval * 2 < self.interval {
                    self.observe(self.groups.len() - 1);
                }
            }
            self.names += 1;
            let group = Group { name: self.names, created: self.now, ..Default::default() };
            self.groups.push(group);
        }
        self.groups.last_mut().unwrap().blocks.push(block);
        self.uses.insert(block, (self.now, hits));
    }

    /// Blocks by falling uses per age.
    fn by_score(&self, blocks: &[u32]) -> Vec<u32> {
        let score = |block: &u32| {
            let (used, hits) = self.uses[block];
            (hits as f32 + 1.0) / ((self.now - used) as f32 + 1.0)
        };
        let mut sorted = blocks.to_vec();
        sorted.sort_by(|first, second| score(second).partial_cmp(&score(first)).unwrap());
        sorted
    }

    fn merge(&mut self, index: usize) {
        let second = self.groups.remove(index + 1);
        let first = self.groups[index].clone();
        let sorted = self.by_score(&[first.blocks.clone(), second.blocks.clone()].concat());
        let stays = self.size.min(sorted.len());
        for block in sorted[stays..].iter().rev() {
            let row = if first.blocks.contains(block) { first.row } else { second.row };
            self.leaving.push((*block, row));
        }
        for block in &sorted[..stays] {
            let hits = &mut self.uses.get_mut(block).unwrap().1;
            *hits = hits.div_ceil(2);
        }
        self.names += 1;
        self.groups[index] = Group {
            name: self.names,
            blocks: sorted[..stays].to_vec(),
            created: self.now,
            miss_ratio: (first.miss_ratio + second.miss_ratio) / 2.0,
            merges: first.merges.max(second.merges) + 1,
            ..Default::default()
        };
    }

    /// Where a group stands that has a closed one after it.
    fn mergeable(&self, name: usize) -> Option<usize> {
        let index = self.groups.iter().position(|group| group.name == name)?;
        (index + 2 < self.groups.len()).then_some(index)
    }

    fn ranked_group(&mut self) -> Option<usize> {
        let model = self.model.as_ref()?;
        if self.to_rank == 0 {
            let closed = &self.groups[..self.groups.len().saturating_sub(1)];
            let worth = |group: &Group| model.predict(&self.inputs(group));
            let mut order: Vec<(f32, usize)> =
                closed.iter().map(|group| (worth(group), group.name)).collect();
            order.sort_by(|first, second| first.0.partial_cmp(&second.0).unwrap());
            self.ranked = order.into_iter().map(|(_, name)| name).collect();
            self.to_rank = self.ranked.len().div_ceil(50);
        }
        self.to_rank = self.to_rank.saturating_sub(1);
        while !self.ranked.is_empty() {
            let name = self.ranked.remove(0);
            if let Some(index) = self.mergeable(name) {
                return Some(index);
            }
        }
        self.to_rank = 0;
        None
    }

    fn group_in_order(&mut self) -> Option<usize> {
        let next = self.next.and_then(|name| self.mergeable(name));
        let index = next.or_else(|| (self.groups.len() > 2).then_some(0))?;
        self.next = self.groups.get(index + 2).map(|group| group.name);
        Some(index)
    }

    fn evict(&mut self) -> u32 {
        while self.leaving.is_empty() {
            if let Some(index) = self.ranked_group().or_else(|| self.group_in_order()) {
                self.merge(index);
            } else {
                let oldest = self.groups.remove(0);
                let sorted = self.by_score(&oldest.blocks);
                self.leaving.extend(sorted.iter().rev().map(|block| (*block, oldest.row)));
            }
        }
        let (block, row) = self.leaving.remove(0);
        if let Some(row) = row.filter(|row| self.waits(*row, block)) {
            self.ghosts.push((block, row));
        } else {
            self.uses.remove(&block);
        }
        if self.ghosts.len() > self.capacity {
            let (forgotten, _) = self.ghosts.remove(0);
            self.uses.remove(&forgotten);
        }
        block
    }
}

impl GhostModel for GroupLevel {
    fn access(&mut self, block: u32, _: bool) -> ModelVerdict {
        self.tick();
        if let Some(index) = self.groups.iter().position(|group| group.blocks.contains(&block)) {
            self.count_use(self.groups[index].row, block);
            self.groups[index].hits += 1;
            if !self.groups[index].hit_blocks.contains(&block) {
                self.groups[index].hit_blocks.push(block);
            }
            let hits = self.uses[&block].1 + 1;
            self.uses.insert(block, (self.now, hits));
            return ModelVerdict::Hit;
        }
        if let Some(index) = self.leaving.iter().position(|(leaving, _)| *leaving == block) {
            let (_, row) = self.leaving.remove(index);
            self.count_use(row, block);
            let hits = self.uses[&block].1 + 1;
            self.enter(block, hits);
            return ModelVerdict::Hit;
        }
        if let Some(index) = self.ghosts.iter().position(|(ghost, _)| *ghost == block) {
            let (_, row) = self.ghosts.remove(index);
            self.count_use(Some(row), block);
            self.uses.remove(&block);
        }
        let held = self.groups.iter().map(|group| group.blocks.len()).sum::<usize>();
        let full = held + self.leaving.len() == self.capacity;
        let evicted = full.then(|| self.evict());
        self.enter(block, 0);
        ModelVerdict::In(evicted)
    }
}
