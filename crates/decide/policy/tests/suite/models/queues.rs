//! Models of the policies made of queues. `front` is the newest block, `back` the oldest.

use super::{Model, ModelOutcome};
use std::collections::{HashMap, HashSet, VecDeque};

/// One queue; a hit moves the block to the front if `moves`.
pub struct OneQueue {
    pub capacity: usize,
    pub moves: bool,
    pub queue: VecDeque<u32>,
}

impl Model for OneQueue {
    fn access(&mut self, block: u32) -> ModelOutcome {
        if let Some(at) = self.queue.iter().position(|b| *b == block) {
            if self.moves {
                self.queue.remove(at);
                self.queue.push_front(block);
            }
            return ModelOutcome::Hit;
        }
        let full = self.queue.len() == self.capacity;
        let evicted = if full { self.queue.pop_back() } else { None };
        self.queue.push_front(block);
        ModelOutcome::Miss { evicted }
    }
}

/// Clock as a fixed circle of frames and a hand.
pub struct ClockFrames {
    pub frames: Vec<Option<u32>>,
    pub hand: usize,
    pub bits: HashSet<u32>,
}

impl Model for ClockFrames {
    fn access(&mut self, block: u32) -> ModelOutcome {
        if self.frames.contains(&Some(block)) {
            self.bits.insert(block);
            return ModelOutcome::Hit;
        }
        while let Some(shown) = self.frames[self.hand] {
            if !self.bits.remove(&shown) {
                break;
            }
            self.hand = (self.hand + 1) % self.frames.len();
        }
        let evicted = self.frames[self.hand].replace(block);
        self.hand = (self.hand + 1) % self.frames.len();
        ModelOutcome::Miss { evicted }
    }
}

/// SIEVE as one list and the block under the hand.
pub struct SieveList {
    pub capacity: usize,
    pub list: Vec<u32>,
    pub hand: Option<u32>,
    pub visited: HashSet<u32>,
}

impl SieveList {
    /// `list[0]` is the newest; the hand goes towards it and starts at the other end.
    fn evict(&mut self) -> u32 {
        let under = |hand: u32, list: &[u32]| list.iter().position(|b| *b == hand);
        let oldest = self.list.len() - 1;
        let mut at = self.hand.and_then(|hand| under(hand, &self.list)).unwrap_or(oldest);
        while self.visited.remove(&self.list[at]) {
            at = if at == 0 { oldest } else { at - 1 };
        }
        self.hand = if at == 0 { None } else { Some(self.list[at - 1]) };
        self.list.remove(at)
    }
}

impl Model for SieveList {
    fn access(&mut self, block: u32) -> ModelOutcome {
        if self.list.contains(&block) {
            self.visited.insert(block);
            return ModelOutcome::Hit;
        }
        let full = self.list.len() == self.capacity;
        let evicted = if full { Some(self.evict()) } else { None };
        self.list.insert(0, block);
        ModelOutcome::Miss { evicted }
    }
}

/// S3-FIFO after its authors' code of October 2024, or after Algorithm 1 of the paper.
#[derive(Default)]
pub struct S3 {
    pub paper: bool,
    pub capacity: usize,
    pub small: VecDeque<u32>,
    pub main: VecDeque<u32>,
    pub ghost: VecDeque<u32>,
    pub freq: HashMap<u32, u32>,
    pub evicted_before: bool,
}

impl S3 {
    /// A tenth of the cache, times ten to stay exact.
    fn small_has_its_share(&self) -> bool {
        if self.paper {
            return 10 * self.small.len() >= self.capacity;
        }
        self.small.len() >= (self.capacity / 10).max(1)
    }

    fn main_share(&self) -> usize {
        let small = if self.paper { self.capacity.div_ceil(10) } else { self.capacity / 10 };
        self.capacity - small.max(1)
    }

    fn evict(&mut self) -> u32 {
        self.evicted_before = true;
        let from_small = if self.paper {
            self.small_has_its_share()
        } else {
            self.main.len() <= self.main_share() && !self.small.is_empty()
        };
        while from_small && !self.small.is_empty() {
            let tail = self.small.pop_back().unwrap();
            if self.freq[&tail] <= 1 {
                self.ghost.push_front(tail);
                self.ghost.truncate(9 * self.capacity / 10);
                return tail;
            }
            self.freq.insert(tail, 0);
            self.main.push_front(tail);
            if self.paper && self.main.len() > self.main_share() {
                break;
            }
        }
        loop {
            let tail = self.main.pop_back().unwrap();
            if self.freq[&tail] == 0 {
                return tail;
            }
            *self.freq.get_mut(&tail).unwrap() -= 1;
            self.main.push_front(tail);
        }
    }
}

impl Model for S3 {
    fn access(&mut self, block: u32) -> ModelOutcome {
        if self.small.contains(&block) || self.main.contains(&block) {
            let freq = self.freq.get_mut(&block).unwrap();
            *freq = (*freq + 1).min(3);
            return ModelOutcome::Hit;
        }
        let remembered = self.ghost.contains(&block);
        self.ghost.retain(|b| *b != block);
        let full = self.small.len() + self.main.len() == self.capacity;
        let evicted = if full { Some(self.evict()) } else { None };
        self.freq.insert(block, 0);
        let overflow = !self.paper && !self.evicted_before && self.small_has_its_share();
        if remembered || overflow {
            self.main.push_front(block);
        } else {
            self.small.push_front(block);
        }
        ModelOutcome::Miss { evicted }
    }
}
