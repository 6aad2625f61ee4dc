//! Models of the policies that remember what they let go: arc, 2q, larc, access-frequency.
//!
//! For: `agree_ghosts.rs`. Queues run from oldest (front) to newest (back).

use super::{GhostModel, ModelVerdict, take};
use std::collections::{BTreeMap, VecDeque};

/// ARC as the pseudo-code of FAST'03, Fig. 4 reads.
#[derive(Default)]
pub struct ArcLists {
    pub c: usize,
    pub p: f64,
    pub t1: VecDeque<u32>,
    pub t2: VecDeque<u32>,
    pub b1: VecDeque<u32>,
    pub b2: VecDeque<u32>,
}

impl ArcLists {
    fn replace(&mut self, in_b2: bool) -> Option<u32> {
        let t1 = self.t1.len() as f64;
        if t1 >= 1.0 && ((in_b2 && t1 == self.p) || t1 > self.p) {
            let victim = self.t1.pop_front();
            self.b1.extend(victim);
            victim
        } else {
            let victim = self.t2.pop_front();
            self.b2.extend(victim);
            victim
        }
    }
}

impl GhostModel for ArcLists {
    fn access(&mut self, x: u32, _: bool) -> ModelVerdict {
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.push_back(x);
            return ModelVerdict::Hit;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        let evicted;
        if self.b1.contains(&x) {
            let delta = if b1 >= b2 { 1.0 } else { b2 / b1 };
            self.p = (self.p + delta).min(self.c as f64);
            evicted = self.replace(false);
            take(&mut self.b1, x);
            self.t2.push_back(x);
        } else if self.b2.contains(&x) {
            let delta = if b2 >= b1 { 1.0 } else { b1 / b2 };
            self.p = (self.p - delta).max(0.0);
            evicted = self.replace(true);
            take(&mut self.b2, x);
            self.t2.push_back(x);
        } else {
            let l1 = self.t1.len() + self.b1.len();
            let total = l1 + self.t2.len() + self.b2.len();
            if l1 == self.c {
                if self.t1.len() < self.c {
                    self.b1.pop_front();
                    evicted = self.replace(false);
                } else {
                    evicted = self.t1.pop_front();
                }
            } else if total >= self.c {
                if total == 2 * self.c {
                    self.b2.pop_front();
                }
                evicted = self.replace(false);
            } else {
                evicted = None;
            }
            self.t1.push_back(x);
        }
        ModelVerdict::In(evicted)
    }
}

/// 2Q, the full version of VLDB'94.
#[derive(Default)]
pub struct TwoQueues {
    pub c: usize,
    pub a1_in: VecDeque<u32>,
    pub a1_out: VecDeque<u32>,
    pub am: VecDeque<u32>,
}

impl TwoQueues {
    fn reclaim(&mut self) -> Option<u32> {
        if self.a1_in.len() + self.am.len() < self.c {
            return None;
        }
        if self.a1_in.len() <= self.c / 4 && !self.am.is_empty() {
            return self.am.pop_front();
        }
        let victim = self.a1_in.pop_front();
        self.a1_out.extend(victim);
        if self.a1_out.len() > self.c / 2 {
            self.a1_out.pop_front();
        }
        victim
    }
}

impl GhostModel for TwoQueues {
    fn access(&mut self, x: u32, _: bool) -> ModelVerdict {
        if take(&mut self.am, x) {
            self.am.push_back(x);
            return ModelVerdict::Hit;
        }
        if self.a1_in.contains(&x) {
            return ModelVerdict::Hit;
        }
        let returned = take(&mut self.a1_out, x);
        let evicted = self.reclaim();
        if returned { &mut self.am } else { &mut self.a1_in }.push_back(x);
        ModelVerdict::In(evicted)
    }
}

/// LARC, Algorithm 1 of MSST'13.
pub struct LazyQueues {
    pub c: f64,
    pub cr: f64,
    pub q: VecDeque<u32>,
    pub qr: VecDeque<u32>,
}

impl LazyQueues {
    pub fn new(c: usize) -> Self {
        LazyQueues { c: c as f64, cr: c as f64 * 0.1, q: VecDeque::new(), qr: VecDeque::new() }
    }
}

impl GhostModel for LazyQueues {
    fn access(&mut self, x: u32, _: bool) -> ModelVerdict {
        if take(&mut self.q, x) {
            self.q.push_back(x);
            self.cr = f64::max(0.1 * self.c, self.cr - self.c / (self.c - self.cr));
            return ModelVerdict::Hit;
        }
        self.cr = f64::min(0.9 * self.c, self.cr + self.c / self.cr);
        if take(&mut self.qr, x) {
            self.q.push_back(x);
            let over = self.q.len() as f64 > self.c;
            return ModelVerdict::In(if over { self.q.pop_front() } else { None });
        }
        self.qr.push_back(x);
        while self.qr.len() > 1 && self.qr.len() as f64 > self.cr {
            self.qr.pop_front();
        }
        ModelVerdict::Out
    }
}

/// Access counts in a table; the victim is found by looking at all.
pub struct CountTable {
    pub c: usize,
    pub history: usize,
    pub period: usize,
    pub clock: usize,
    /// Resident: block -> (count, when it came to that count).
    pub held: BTreeMap<u32, (u32, usize)>,
    /// Not resident: (block, count), oldest first.
    pub past: VecDeque<(u32, u32)>,
}

impl CountTable {
    pub fn new(c: usize, history: usize, period: usize) -> Self {
        let (held, past) = (BTreeMap::new(), VecDeque::new());
        CountTable { c, history, period, clock: 0, held, past }
    }

    fn remember(&mut self, block: u32, count: u32) {
        if count > 0 {
            self.past.push_back((block, count));
        }
        while self.past.len() > self.history {
            self.past.pop_front();
        }
    }

    fn halve(&mut self) {
        // Old order first by count, then by time; written back as new times below the present.
        let mut order: Vec<(u32, usize, u32)> =
            self.held.iter().map(|(block, (count, time))| (*count, *time, *block)).collect();
        order.sort_unstable();
        for (rank, (count, _, block)) in order.into_iter().enumerate() {
            self.held.insert(block, (count / 2, self.clock * 1000 + rank));
        }
        for entry in &mut self.past {
            entry.1 /= 2;
        }
        self.past.retain(|(_, count)| *count > 0);
    }
}

impl GhostModel for CountTable {
    fn access(&mut self, x: u32, _: bool) -> ModelVerdict {
        self.clock += 1;
        if self.clock.is_multiple_of(self.period) {
            self.halve();
        }
        let now = self.clock * 1000 + 999;
        if let Some(entry) = self.held.get_mut(&x) {
            *entry = ((entry.0 + 1).min(255), now);
            return ModelVerdict::Hit;
        }
        let mut count = 1;
        if let Some(at) = self.past.iter().position(|(block, _)| *block == x) {
            count = (self.past[at].1 + 1).min(255);
            self.past.remove(at);
        }
        let mut evicted = None;
        if self.held.len() == self.c {
            let least = self.held.iter().min_by_key(|(_, key)| **key);
            let (victim, (lowest, _)) = least.map(|(b, key)| (*b, *key)).unwrap();
            if count <= lowest {
                self.remember(x, count);
                return ModelVerdict::Out;
            }
            self.held.remove(&victim);
            self.remember(victim, lowest);
            evicted = Some(victim);
        }
        self.held.insert(x, (count, now));
        ModelVerdict::In(evicted)
    }
}
