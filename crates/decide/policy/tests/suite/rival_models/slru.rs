//! SLRU as one list of blocks per segment, newest first.

use crate::ghost_models::{GhostModel, ModelVerdict};

pub struct SegmentLists {
    capacity: usize,
    /// The most blocks of each segment; the lowest takes what is left.
    limit: usize,
    /// Whether a cache that is not full fills the lowest segment below its limit.
    fills: bool,
    segments: Vec<Vec<u32>>,
}

impl SegmentLists {
    pub fn new(capacity: usize, segments: usize, limit: usize, fills: bool) -> SegmentLists {
        SegmentLists { capacity, limit, fills, segments: vec![Vec::new(); segments] }
    }

    fn entrance(&self) -> usize {
        let lowest = self.capacity - self.limit * (self.segments.len() - 1);
        if self.fills {
            for (number, segment) in self.segments.iter().enumerate() {
                if segment.len() < if number == 0 { lowest } else { self.limit } {
                    return number;
                }
            }
        }
        0
    }
}

impl GhostModel for SegmentLists {
    fn access(&mut self, block: u32, _: bool) -> ModelVerdict {
        let top = self.segments.len() - 1;
        for number in 0..=top {
            if !self.segments[number].contains(&block) {
                continue;
            }
            self.segments[number].retain(|other| *other != block);
            self.segments[(number + 1).min(top)].insert(0, block);
            for above in (1..=top).rev() {
                if self.segments[above].len() > self.limit {
                    let sinks = self.segments[above].pop().unwrap();
                    self.segments[above - 1].insert(0, sinks);
                }
            }
            return ModelVerdict::Hit;
        }
        let mut evicted = None;
        if self.segments.iter().map(Vec::len).sum::<usize>() == self.capacity {
            evicted = self.segments.iter_mut().find_map(Vec::pop);
        }
        let entrance = self.entrance();
        self.segments[entrance].insert(0, block);
        ModelVerdict::In(evicted)
    }
}
