//! A model of LIRS: every block's status in one table, S and Q as tables by time.
//!
//! For: `agree_ghosts.rs`. Source: SIGMETRICS'02, section 3, with S of at most 2c entries. `demote`
//! adds libCacheSim's rule at a hit outside S, `early` also its eviction at that hit (the hit is
//! still a hit, so [`GhostModel`] does not see the block leave).

use super::{GhostModel, ModelVerdict};
use std::collections::{BTreeMap, HashMap};

#[derive(Default, Clone, Copy)]
struct Status {
    lir: bool,
    resident: bool,
    /// When it came to the top of S, if it is in S.
    in_s: Option<u64>,
    /// When it came to the end of Q, if it is in Q.
    in_q: Option<u64>,
}

#[derive(Default)]
pub struct LirsTables {
    pub c: usize,
    pub demote: bool,
    pub early: bool,
    clock: u64,
    blocks: HashMap<u32, Status>,
    s: BTreeMap<u64, u32>,
    q: BTreeMap<u64, u32>,
    /// Non-resident blocks of S, by their time there.
    ghosts: BTreeMap<u64, u32>,
    lir: usize,
}

impl LirsTables {
    pub fn new(c: usize, demote: bool, early: bool) -> Self {
        LirsTables { c, demote, early, ..Default::default() }
    }

    fn lir_limit(&self) -> usize {
        self.c - (self.c / 100).max(1)
    }

    fn status(&self, block: u32) -> Status {
        self.blocks.get(&block).copied().unwrap_or_default()
    }

    /// Writes a block's new status, and the tables that follow from it.
    fn set(&mut self, block: u32, new: Status) {
        let old = self.status(block);
        old.in_s.map(|time| (self.s.remove(&time), self.ghosts.remove(&time)));
        old.in_q.map(|time| self.q.remove(&time));
        self.lir -= usize::from(old.lir);
        new.in_s.map(|time| self.s.insert(time, block));
        new.in_q.map(|time| self.q.insert(time, block));
        if let (Some(time), false) = (new.in_s, new.resident) {
            self.ghosts.insert(time, block);
        }
        self.lir += usize::from(new.lir);
        if new.in_s.is_none() && new.in_q.is_none() {
            self.blocks.remove(&block);
        } else {
            self.blocks.insert(block, new);
        }
    }

    fn tick(&mut self) -> Option<u64> {
        self.clock += 1;
        Some(self.clock)
    }

    fn prune(&mut self) {
        while let Some((_, &bottom)) = self.s.first_key_value() {
            let status = self.status(bottom);
            if status.lir {
                break;
            }
            self.set(bottom, Status { in_s: None, ..status });
        }
    }

    fn demote_bottom(&mut self) {
        let bottom = *self.s.first_key_value().unwrap().1;
        let in_q = self.tick();
        self.set(bottom, Status { lir: false, resident: true, in_s: None, in_q });
        self.prune();
    }

    fn evict_front_of_q(&mut self) -> Option<u32> {
        let victim = *self.q.first_key_value()?.1;
        let status = self.status(victim);
        self.set(victim, Status { resident: false, in_q: None, ..status });
        Some(victim)
    }

    fn limit(&mut self) {
        while self.s.len() > 2 * self.c {
            let oldest = *self.ghosts.first_key_value().unwrap().1;
            self.set(oldest, Status::default());
        }
    }

    fn become_lir(&mut self, block: u32) {
        let in_s = self.tick();
        self.set(block, Status { lir: true, resident: true, in_s, in_q: None });
        if self.lir > self.lir_limit() {
            self.demote_bottom();
        }
    }

    fn become_hir(&mut self, block: u32) {
        let (in_s, in_q) = (self.tick(), self.tick());
        self.set(block, Status { lir: false, resident: true, in_s, in_q });
    }

    fn hit(&mut self, block: u32, status: Status) {
        if status.lir {
            let in_s = self.tick();
            self.set(block, Status { in_s, ..status });
            self.prune();
        } else if status.in_s.is_some() {
            self.become_lir(block);
        } else {
            self.become_hir(block);
            if self.demote && self.lir == self.lir_limit() && self.lir > 0 {
                if self.early {
                    self.evict_front_of_q();
                }
                self.demote_bottom();
            }
            self.prune_without_lir();
        }
    }

    /// With no LIR block at all nothing ends S, so it is empty.
    fn prune_without_lir(&mut self) {
        if self.lir == 0 {
            self.prune();
        }
    }
}

impl GhostModel for LirsTables {
    fn access(&mut self, block: u32, _: bool) -> ModelVerdict {
        let status = self.status(block);
        if status.resident {
            self.hit(block, status);
            self.limit();
            return ModelVerdict::Hit;
        }
        let full = self.lir + self.q.len() == self.c;
        let evicted = if full { self.evict_front_of_q() } else { None };
        if status.in_s.is_some() || self.lir < self.lir_limit() {
            self.become_lir(block);
        } else {
            self.become_hir(block);
        }
        self.limit();
        self.prune_without_lir();
        ModelVerdict::In(evicted)
    }
}
