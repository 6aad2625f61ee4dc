//! S4-FIFO without a choice, as three lists, oldest first.

use crate::ghost_models::{GhostModel, ModelVerdict};
use std::collections::HashMap;

/// Capacity in blocks, shares in blocks, thresholds in hits.
pub struct Thresholds {
    pub capacity: usize,
    pub small: usize,
    pub skip: usize,
    pub ghosts: usize,
    pub promote_hits: u32,
    pub ghost_hits: u32,
}

pub struct FourQueues {
    by: Thresholds,
    /// Block, number of its entry, hits.
    small: Vec<(u32, usize, u32)>,
    main: Vec<(u32, u32)>,
    ghosts: Vec<u32>,
    /// Returns of blocks of the small queue and of ghosts.
    returns: HashMap<u32, u32>,
    entries: usize,
    has_evicted: bool,
}

impl FourQueues {
    pub fn new(mut by: Thresholds) -> FourQueues {
        by.small = by.small.max(1);
        FourQueues {
            by,
            small: Vec::new(),
            main: Vec::new(),
            ghosts: Vec::new(),
            returns: HashMap::new(),
            entries: 0,
            has_evicted: false,
        }
    }

    fn evict(&mut self) -> u32 {
        self.has_evicted = true;
        if self.main.len() <= self.by.capacity - self.by.small {
            while !self.small.is_empty() {
                let (block, _, hits) = self.small.remove(0);
                if hits >= self.by.promote_hits {
                    self.main.push((block, 0));
                    continue;
                }
                self.ghosts.push(block);
                if self.ghosts.len() > self.by.ghosts {
                    let forgotten = self.ghosts.remove(0);
                    self.returns.remove(&forgotten);
                }
                return block;
            }
        }
        loop {
            let (block, hits) = self.main.remove(0);
            if hits == 0 {
                return block;
            }
            self.main.push((block, hits - 1));
        }
    }
}

impl GhostModel for FourQueues {
    fn access(&mut self, block: u32, _: bool) -> ModelVerdict {
        if let Some((_, entry, hits)) = self.small.iter_mut().find(|(other, ..)| *other == block) {
            if self.entries - *entry >= self.by.skip {
                *hits = (*hits + 1).min(3);
            }
            return ModelVerdict::Hit;
        }
        if let Some((_, hits)) = self.main.iter_mut().find(|(other, _)| *other == block) {
            *hits = (*hits + 1).min(3);
            return ModelVerdict::Hit;
        }
        let was_ghost = self.ghosts.contains(&block);
        self.ghosts.retain(|other| *other != block);
        let mut returns = 0;
        if was_ghost {
            returns = self.returns.remove(&block).unwrap_or(0) + 1;
        }
        let full = self.small.len() + self.main.len() == self.by.capacity;
        let evicted = full.then(|| self.evict());
        let overflow = !self.has_evicted && self.small.len() >= self.by.small;
        if returns > self.by.ghost_hits || overflow {
            self.main.push((block, 0));
        } else {
            self.returns.insert(block, returns);
            self.entries += 1;
            self.small.push((block, self.entries, 0));
        }
        ModelVerdict::In(evicted)
    }
}
