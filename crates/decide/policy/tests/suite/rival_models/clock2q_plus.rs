//! Clock2Q+ as three lists, oldest first; a block of the small one has the number of its entry.

use crate::ghost_models::{GhostModel, ModelVerdict};

pub struct WindowedClock {
    capacity: usize,
    small_blocks: usize,
    window: f64,
    ghost_blocks: usize,
    /// Block, number of its entry, and whether it was hit outside the window.
    small: Vec<(u32, usize, bool)>,
    main: Vec<(u32, bool)>,
    ghosts: Vec<u32>,
    entries: usize,
    has_evicted: bool,
}

impl WindowedClock {
    pub fn new(capacity: usize, small: usize, window: f64, ghosts: usize) -> WindowedClock {
        let small_blocks = small.max(1);
        WindowedClock {
            capacity,
            small_blocks,
            window: window * small_blocks as f64,
            ghost_blocks: ghosts,
            small: Vec::new(),
            main: Vec::new(),
            ghosts: Vec::new(),
            entries: 0,
            has_evicted: false,
        }
    }

    fn evict(&mut self) -> u32 {
        self.has_evicted = true;
        if self.main.len() <= self.capacity - self.small_blocks {
            while !self.small.is_empty() {
                let (block, _, hit) = self.small.remove(0);
                if hit {
                    self.main.push((block, false));
                    continue;
                }
                self.ghosts.push(block);
                if self.ghosts.len() > self.ghost_blocks {
                    self.ghosts.remove(0);
                }
                return block;
            }
        }
        loop {
            let (block, hit) = self.main.remove(0);
            if !hit {
                return block;
            }
            self.main.push((block, false));
        }
    }
}

impl GhostModel for WindowedClock {
    fn access(&mut self, block: u32, _: bool) -> ModelVerdict {
        if let Some((_, entry, hit)) = self.small.iter_mut().find(|(other, _, _)| *other == block) {
            *hit |= (self.entries - *entry) as f64 >= self.window;
            return ModelVerdict::Hit;
        }
        if let Some((_, hit)) = self.main.iter_mut().find(|(other, _)| *other == block) {
            *hit = true;
            return ModelVerdict::Hit;
        }
        let known = self.ghosts.contains(&block);
        self.ghosts.retain(|other| *other != block);
        let full = self.small.len() + self.main.len() == self.capacity;
        let evicted = full.then(|| self.evict());
        if known || !self.has_evicted && self.small.len() >= self.small_blocks {
            self.main.push((block, false));
        } else {
            self.entries += 1;
            self.small.push((block, self.entries, false));
        }
        ModelVerdict::In(evicted)
    }
}
