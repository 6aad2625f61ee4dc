//! Merlin as four lists of blocks with their hits, oldest first, and a table of counts.

use crate::ghost_models::{GhostModel, ModelVerdict};
use std::collections::HashMap;

/// A block and its hits.
type Hits = (u32, u32);

pub struct FilterStagingCore {
    capacity: usize,
    filter_blocks: usize,
    core_blocks: usize,
    ghost_blocks: usize,
    history_blocks: usize,
    halve_every: usize,
    filter: Vec<Hits>,
    staging: Vec<Hits>,
    core: Vec<Hits>,
    ghosts: Vec<Hits>,
    /// Blocks that are neither resident nor ghosts.
    history: Vec<u32>,
    counts: HashMap<u32, u32>,
    guard: u32,
    evictions: usize,
    epochs: usize,
}

fn find(list: &mut [Hits], block: u32) -> Option<&mut Hits> {
    list.iter_mut().find(|(other, _)| *other == block)
}

fn hit(list: &mut [Hits], block: u32) -> Option<u32> {
    let (_, hits) = find(list, block)?;
    *hits = (*hits + 1).min(7);
    Some(*hits)
}

impl FilterStagingCore {
    pub fn new(capacity: usize, ghosts: usize, history: usize, halve_every: usize) -> Self {
        let filter_blocks = (capacity / 10).max(1);
        let staging_blocks = (capacity / 20).max(1);
        FilterStagingCore {
            capacity,
            filter_blocks,
            core_blocks: capacity.saturating_sub(filter_blocks + staging_blocks),
            ghost_blocks: ghosts,
            history_blocks: history,
            halve_every,
            filter: Vec::new(),
            staging: Vec::new(),
            core: Vec::new(),
            ghosts: Vec::new(),
            history: Vec::new(),
            counts: HashMap::new(),
            guard: 2,
            evictions: 0,
            epochs: 0,
        }
    }

    fn resident(&self) -> usize {
        self.filter.len() + self.staging.len() + self.core.len()
    }

    fn hit_so_often(&self, hits: u32) -> usize {
        let lists = [&self.filter, &self.staging, &self.core, &self.ghosts];
        lists.into_iter().flatten().filter(|(_, its)| *its >= hits).count()
    }

    fn counted(&self, block: u32) -> u32 {
        self.counts.get(&block).copied().unwrap_or(0)
    }

    fn count(&mut self, block: u32) {
        *self.counts.entry(block).or_default() += 1;
    }

    /// After a block stopped being resident or a ghost.
    fn settle(&mut self, block: u32) {
        let mut lists = [&self.filter, &self.staging, &self.core, &self.ghosts].into_iter();
        if lists.all(|list| list.iter().all(|(other, _)| *other != block)) {
            self.history.push(block);
        }
        while self.history.len() > self.history_blocks {
            let forgotten = self.history.remove(0);
            self.counts.remove(&forgotten);
        }
    }

    fn remember(&mut self, block: u32, hits: u32) {
        self.ghosts.push((block, hits));
        while self.ghosts.len() > self.ghost_blocks {
            let (ghost, _) = self.ghosts.remove(0);
            self.settle(ghost);
        }
    }

    fn begin_eviction(&mut self) {
        self.evictions += 1;
        if self.evictions == self.resident() {
            self.evictions = 0;
            self.epochs += 1;
            if self.epochs == self.halve_every {
                self.epochs = 0;
                self.counts.values_mut().for_each(|count| *count /= 2);
            }
        }
        let core = self.core.len();
        if self.hit_so_often(self.guard) > core {
            while self.hit_so_often(self.guard) > core {
                self.guard += 1;
            }
        } else {
            while self.guard > 1 && self.hit_so_often(self.guard - 1) < core {
                self.guard -= 1;
            }
        }
    }

    fn filter_wins(&self) -> bool {
        match (self.filter.first(), self.staging.first()) {
            (Some((newcomer, _)), Some((staged, 0))) => {
                self.counted(*newcomer) > self.counted(*staged)
            }
            _ => false,
        }
    }

    fn stage(&mut self) {
        let (block, hits) = self.filter.remove(0);
        self.count(block);
        self.staging.push((block, 0));
        self.remember(block, hits);
    }

    fn drop_staging(&mut self) -> u32 {
        let (block, _) = self.staging.remove(0);
        self.settle(block);
        block
    }

    fn evict(&mut self) -> u32 {
        while self.filter.len() >= self.filter_blocks {
            self.begin_eviction();
            while let Some((block, hits)) = self.filter.first().copied() {
                if hits >= self.guard {
                    self.filter.remove(0);
                    self.core.push((block, 0));
                    self.count(block);
                } else if self.filter_wins() {
                    self.stage();
                    return self.drop_staging();
                } else {
                    self.filter.remove(0);
                    self.count(block);
                    self.remember(block, hits);
                    return block;
                }
            }
        }
        self.begin_eviction();
        loop {
            while self.core.len() > self.core_blocks {
                let demoted = self.core.remove(0);
                self.staging.push(demoted);
            }
            while let Some((block, hits @ 1..)) = self.staging.first().copied() {
                self.staging.remove(0);
                self.ghosts.retain(|(other, _)| *other != block);
                self.count(block);
                self.core.push((block, hits - 1));
            }
            if !self.staging.is_empty() {
                break;
            }
        }
        if self.filter_wins() {
            self.stage();
        }
        self.drop_staging()
    }
}

impl GhostModel for FilterStagingCore {
    fn access(&mut self, block: u32, _: bool) -> ModelVerdict {
        for list in [&mut self.filter, &mut self.staging, &mut self.core] {
            if hit(list, block).is_some() {
                return ModelVerdict::Hit;
            }
        }
        let returned = hit(&mut self.ghosts, block);
        let is_hot = returned.is_some_and(|hits| hits >= self.guard);
        let evicted = (self.resident() == self.capacity).then(|| self.evict());
        self.history.retain(|other| *other != block);
        match returned {
            Some(hits) if is_hot => {
                self.ghosts.retain(|(other, _)| *other != block);
                self.core.push((block, hits));
            }
            Some(_) => {
                self.count(block);
                self.staging.push((block, 0));
            }
            None if self.filter.is_empty() && self.staging.is_empty() => self.core.push((block, 0)),
            None => self.filter.push((block, 0)),
        }
        ModelVerdict::In(evicted)
    }
}
