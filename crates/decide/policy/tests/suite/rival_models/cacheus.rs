//! CACHEUS as the authors' code reads: two stacks, two histories, a search for the lowest count.

use crate::ghost_models::{GhostModel, ModelVerdict};
use cachewright_types::{Rng, Seed};

#[derive(Clone, Copy, PartialEq)]
struct Page {
    id: u32,
    freq: u32,
    time: u64,
    is_new: bool,
    demoted: bool,
}

/// Stacks and histories run from least to most recent.
pub struct Experts {
    size: usize,
    s: Vec<Page>,
    q: Vec<Page>,
    lru_history: Vec<Page>,
    lfu_history: Vec<Page>,
    s_limit: usize,
    q_limit: usize,
    weight: f64,
    time: u64,
    rng: Rng,
    rate: f64,
    rate_now: f64,
    rate_before: f64,
    hits: u32,
    ratio_before: f64,
    zeros: u32,
    negatives: u32,
}

fn take(stack: &mut Vec<Page>, id: u32) -> Option<Page> {
    let index = stack.iter().position(|page| page.id == id)?;
    Some(stack.remove(index))
}

fn round3(x: f64) -> f64 {
    (1000.0 * x).round() / 1000.0
}

impl Experts {
    pub fn new(size: usize) -> Experts {
        let q_limit = ((0.01 * size as f64 + 0.5) as usize).max(1);
        let rate = (2.0 * 2_f64.ln() / size as f64).sqrt();
        Experts {
            size,
            s: Vec::new(),
            q: Vec::new(),
            lru_history: Vec::new(),
            lfu_history: Vec::new(),
            s_limit: size - q_limit,
            q_limit,
            weight: 0.5,
            time: 0,
            rng: Seed(1).derive("cacheus").rng(),
            rate,
            rate_now: rate,
            rate_before: 0.0,
            hits: 0,
            ratio_before: 0.0,
            zeros: 0,
            negatives: 0,
        }
    }

    fn update_rate(&mut self) {
        let first = (2.0 * 2_f64.ln() / self.size as f64).sqrt().clamp(0.001, 1.0);
        let ratio = round3(f64::from(self.hits) / self.size as f64);
        let gain = round3(ratio - self.ratio_before);
        let change = round3(self.rate_now) - round3(self.rate_before);
        let sign = change * gain;
        if sign != 0.0 {
            let by = (self.rate * change).abs();
            self.rate = if sign > 0.0 { self.rate + by } else { self.rate - by }.clamp(0.001, 1.0);
            (self.zeros, self.negatives) = (0, 0);
        } else if gain < 0.0 || (gain == 0.0 && ratio == 0.0) {
            self.zeros += 1;
            self.negatives += u32::from(gain < 0.0);
            if self.zeros >= 10 {
                (self.rate, self.zeros) = (first, 0);
            } else if gain < 0.0 && self.negatives >= 10 {
                (self.rate, self.negatives) = (first, 0);
            } else if gain < 0.0 {
                self.rate = match self.rate {
                    rate if rate >= 1.0 => 0.9,
                    rate if rate <= 0.001 => 0.005,
                    rate if self.rng.below(2) == 0 => (1.25 * rate).min(1.0),
                    rate => (0.75 * rate).max(0.001),
                };
            }
        } else if gain <= 0.0 && self.zeros >= 10 {
            (self.rate, self.zeros) = (first, 0);
        }
        (self.rate_before, self.rate_now) = (self.rate_now, self.rate);
        (self.ratio_before, self.hits) = (ratio, 0);
    }

    fn adjust_weights(&mut self, lru_regrets: bool) {
        let by = (-self.rate).exp();
        let (lru, lfu) = (self.weight, 1.0 - self.weight);
        let (lru, lfu) = if lru_regrets { (lru * by, lfu) } else { (lru, lfu * by) };
        self.weight = (lru / (lru + lfu)).clamp(0.01, 0.99);
    }

    fn adjust_size(&mut self, hit_in_q: bool) {
        let demoted = self.q.iter().filter(|page| page.demoted).count();
        let new = self.lru_history.iter().filter(|page| page.is_new).count();
        let step =
            |part: usize, whole: usize| ((part as f64 / whole.max(1) as f64 + 0.5) as usize).max(1);
        if hit_in_q {
            self.s_limit = (self.s_limit + step(new, demoted)).min(self.size - 1);
            self.q_limit = self.size - self.s_limit;
        } else {
            self.q_limit = (self.q_limit + step(demoted, new)).min(self.size - 1);
            self.s_limit = self.size - self.q_limit;
        }
    }

    fn evict(&mut self) -> Option<u32> {
        if self.s.len() + self.q.len() < self.size {
            return None;
        }
        let choose_lru = self.rng.unit() < self.weight;
        let lru = self.q.first().or(self.s.first()).unwrap().id;
        let rank = |page: &&Page| (page.freq, u64::MAX - page.time);
        let lfu = self.s.iter().chain(&self.q).min_by_key(rank).unwrap().id;
        let id = if choose_lru { lru } else { lfu };
        let mut page = take(&mut self.s, id).or_else(|| take(&mut self.q, id)).unwrap();
        page.demoted = false;
        if lru != lfu {
            let history = if choose_lru { &mut self.lru_history } else { &mut self.lfu_history };
            history.push(page);
            if history.len() > self.size / 2 {
                history.remove(0);
            }
        }
        Some(id)
    }

    fn demote(&mut self) {
        if !self.s.is_empty() {
            let page = self.s.remove(0);
            self.q.push(Page { demoted: true, ..page });
        }
    }

    fn limit_stack(&mut self) {
        while !self.s.is_empty() && self.s.len() >= self.s_limit {
            self.demote();
        }
    }

    fn hit(&mut self, id: u32) -> bool {
        let in_s = take(&mut self.s, id);
        let Some(page) = in_s.or_else(|| self.q.iter().find(|page| page.id == id).copied()) else {
            return false;
        };
        if in_s.is_none() {
            if page.demoted {
                self.adjust_size(true);
            }
            take(&mut self.q, id);
            if self.s.len() >= self.s_limit {
                self.demote();
            }
        }
        self.s.push(Page { freq: page.freq + 1, time: self.time, demoted: false, ..page });
        true
    }
}

impl GhostModel for Experts {
    fn access(&mut self, id: u32, _: bool) -> ModelVerdict {
        self.time += 1;
        if self.time.is_multiple_of(self.size as u64) {
            self.update_rate();
        }
        if self.hit(id) {
            self.hits += 1;
            return ModelVerdict::Hit;
        }
        let mut page = Page { id, freq: 1, time: self.time, is_new: false, demoted: false };
        let from_lru = take(&mut self.lru_history, id);
        if let Some(old) = from_lru.or_else(|| take(&mut self.lfu_history, id)) {
            if from_lru.is_some() && old.is_new {
                self.adjust_size(false);
            }
            self.adjust_weights(from_lru.is_some());
            let evicted = self.evict();
            self.s.push(Page { freq: old.freq, ..page });
            self.limit_stack();
            return ModelVerdict::In(evicted);
        }
        if self.s.len() < self.s_limit && self.q.is_empty() {
            self.s.push(page);
            return ModelVerdict::In(None);
        }
        if self.s.len() + self.q.len() < self.size && self.q.len() < self.q_limit {
            self.q.push(page);
            return ModelVerdict::In(None);
        }
        let evicted = self.evict();
        page.is_new = true;
        self.q.push(page);
        self.limit_stack();
        ModelVerdict::In(evicted)
    }
}
