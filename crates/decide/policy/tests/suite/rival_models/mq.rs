//! MQ as a list of blocks per queue, oldest first, each with its count and when it expires.

use crate::ghost_models::{GhostModel, ModelVerdict};

#[derive(Clone, Copy)]
struct Counted {
    block: u32,
    count: u32,
    expires: u64,
}

pub struct Queues {
    capacity: usize,
    history_blocks: usize,
    lifetime: u64,
    queues: Vec<Vec<Counted>>,
    history: Vec<Counted>,
    now: u64,
}

impl Queues {
    pub fn new(capacity: usize, queues: usize, lifetime: u64, history: usize) -> Queues {
        Queues {
            capacity,
            history_blocks: history,
            lifetime,
            queues: vec![Vec::new(); queues],
            history: Vec::new(),
            now: 0,
        }
    }

    fn take(list: &mut Vec<Counted>, block: u32) -> Option<u32> {
        let at = list.iter().position(|other| other.block == block)?;
        Some(list.remove(at).count)
    }
}

impl GhostModel for Queues {
    fn access(&mut self, block: u32, _: bool) -> ModelVerdict {
        let hit = self.queues.iter_mut().find_map(|queue| Self::take(queue, block));
        let known = hit.or_else(|| Self::take(&mut self.history, block));
        let count = known.unwrap_or(0) + 1;
        let mut evicted = None;
        if hit.is_none() && self.queues.iter().map(Vec::len).sum::<usize>() == self.capacity {
            let lowest = self.queues.iter_mut().find(|queue| !queue.is_empty()).unwrap();
            let victim = lowest.remove(0);
            evicted = Some(victim.block);
            self.history.push(victim);
            if self.history.len() > self.history_blocks {
                self.history.remove(0);
            }
        }
        let top = self.queues.len() - 1;
        let queue = (0..=top).rev().find(|queue| count >= 1 << queue).unwrap();
        let expires = self.now + self.lifetime;
        self.queues[queue].push(Counted { block, count, expires });
        self.now += 1;
        for queue in 1..=top {
            if self.queues[queue].first().is_some_and(|oldest| oldest.expires < self.now) {
                let sinks = self.queues[queue].remove(0);
                self.queues[queue - 1].push(Counted { expires: self.now + self.lifetime, ..sinks });
            }
        }
        if hit.is_some() { ModelVerdict::Hit } else { ModelVerdict::In(evicted) }
    }
}
