//! A model of oc-smq: one queue of levels for all that is held, rooms and dirt as sets beside it.
//!
//! For: `agree_oc_smq.rs`. Written from the policy's header; everything is found by searching.
//! Queues run from oldest (front) to newest (back).

use super::smq::Levels;
use super::{GhostModel, ModelVerdict, take};
use cachewright_policy::oc_smq::OcSmqSettings;
use std::collections::BTreeSet;

/// What the model wants done beside requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Demote(u32),
    Clean(u32),
    Swap(u32, u32),
}

pub struct TwoRegions {
    settings: OcSmqSettings,
    /// As wanted and as they are: own, common.
    wanted: [usize; 2],
    pub rooms: [usize; 2],
    held: Levels,
    missed: Levels,
    pub common: BTreeSet<u32>,
    dirty: BTreeSet<u32>,
    climbed_held: BTreeSet<u32>,
    climbed_missed: BTreeSet<u32>,
    accesses: u32,
    hits: [usize; 2],
    promotions: usize,
    pub promote: usize,
    pub hot: usize,
    uncleaned: usize,
    migrating: bool,
}

impl TwoRegions {
    pub fn new(capacity: usize, settings: &OcSmqSettings) -> Self {
        let mut model = TwoRegions {
            settings: settings.clone(),
            wanted: [capacity, 0],
            rooms: [capacity, 0],
            held: Levels::new(),
            missed: Levels::new(),
            common: BTreeSet::new(),
            dirty: BTreeSet::new(),
            climbed_held: BTreeSet::new(),
            climbed_missed: BTreeSet::new(),
            accesses: 0,
            hits: [0; 2],
            promotions: 0,
            promote: 0,
            hot: 0,
            uncleaned: 0,
            migrating: false,
        };
        model.fit();
        model
    }

    pub fn capacity(&self) -> usize {
        self.rooms[0] + self.rooms[1]
    }

    fn part(&self, share: f64) -> usize {
        (share * self.capacity() as f64) as usize
    }

    /// All that is held, coldest first: by level, and the oldest of a level first.
    fn coldest_first(&self) -> Vec<(usize, u32)> {
        let levels = self.held.0.iter().enumerate();
        levels.flat_map(|(level, blocks)| blocks.iter().map(move |block| (level, *block))).collect()
    }

    /// The room of a block that is held, and the level of one held or remembered.
    pub fn place_of(&self, block: u32) -> (Option<usize>, Option<usize>) {
        match self.held.level(block) {
            Some(level) => (Some(self.room(block)), Some(level)),
            None => (None, self.missed.level(block)),
        }
    }

    fn room(&self, block: u32) -> usize {
        usize::from(self.common.contains(&block))
    }

    fn held_in(&self, room: usize) -> usize {
        self.coldest_first().iter().filter(|(_, block)| self.room(*block) == room).count()
    }

    fn is_full(&self, room: usize) -> bool {
        self.held_in(room) >= self.rooms[room]
    }

    /// The first of the coldest in a room that fits.
    fn find(&self, room: usize, fits: impl Fn(usize, bool) -> bool) -> Option<(usize, u32)> {
        let mut all = self.coldest_first().into_iter();
        all.find(|(level, block)| {
            self.room(*block) == room && fits(*level, self.dirty.contains(block))
        })
    }

    /// The first of the coldest in a room below a level; of the same level clean ones go first.
    fn coldest(&self, room: usize, below: usize) -> Option<(usize, u32)> {
        let clean = self.find(room, |level, dirty| level < below && !dirty);
        let dirty = self.find(room, |level, dirty| level < below && dirty);
        lower(clean, dirty)
    }

    fn fit(&mut self) {
        let most = self.memory();
        while self.missed.len() > most {
            self.forget_oldest();
        }
        self.set_hot();
    }

    fn memory(&self) -> usize {
        self.part(self.settings.history).max(64)
    }

    fn set_hot(&mut self) {
        let from = |level: usize| self.held.0[level..].iter().map(|one| one.len()).sum::<usize>();
        self.hot = (0..=64).find(|level| from(*level) <= self.rooms[0]).unwrap();
    }

    fn forget_oldest(&mut self) {
        let (_, block) = self.missed.pop_oldest(0, 64).unwrap();
        self.climbed_missed.remove(&block);
    }

    fn remember(&mut self, block: u32, level: usize) {
        while self.missed.len() >= self.memory() {
            self.forget_oldest();
        }
        self.missed.0[level].push_back(block);
    }

    fn drop_held(&mut self, block: u32) -> usize {
        let level = self.held.level(block).unwrap();
        take(&mut self.held.0[level], block);
        for set in [&mut self.common, &mut self.dirty, &mut self.climbed_held] {
            set.remove(&block);
        }
        level
    }

    fn leave(&mut self, block: u32) {
        let level = self.drop_held(block);
        self.remember(block, level);
    }

    /// It becomes the newest of its level.
    fn renew(&mut self, block: u32) {
        let level = self.held.level(block).unwrap();
        take(&mut self.held.0[level], block);
        self.held.0[level].push_back(block);
    }

    fn end_tick(&mut self) {
        if self.promotions > (self.settings.budget * f64::from(self.settings.tick)) as usize {
            self.promote = (self.promote + 1).min(63);
        } else if self.hits[1] < self.hits[0] {
            self.promote = self.promote.saturating_sub(1);
        }
        (self.hits, self.promotions) = ([self.hits[1], 0], 0);
        self.climbed_missed.clear();
        self.missed.even_out(0, 0);
        if self.accesses.is_multiple_of(10 * self.settings.tick) {
            self.climbed_held.clear();
            self.held.even_out(0, 0);
            self.set_hot();
            self.migrating = self.rooms[0] > 0 && self.rooms[1] > 0 && self.too_hot();
        }
        let wanted = self.part(self.settings.clean);
        if wanted > 0 {
            let clean = |&(level, block): &(usize, u32)| level < 32 && !self.dirty.contains(&block);
            let low = self.coldest_first().iter().filter(|one| clean(one)).count();
            self.uncleaned = wanted.saturating_sub(low);
        }
    }

    fn too_hot(&self) -> bool {
        let hot = |&(level, block): &(usize, u32)| level >= self.hot && self.room(block) == 1;
        let count = self.coldest_first().iter().filter(|one| hot(one)).count();
        count as f64 > self.settings.hot_share * self.held_in(1) as f64
    }

    /// The room of a newcomer and the block that leaves for it.
    fn place(&self, hot: bool) -> (usize, Option<u32>) {
        let one_room = (0..2).find(|room| self.rooms[1 - room] == 0);
        if let Some(room) = one_room {
            let victim = if self.is_full(room) { self.any_victim(room) } else { None };
            return (room, victim.map(|(_, block)| block));
        }
        let free = self.capacity() - self.coldest_first().len();
        let order = if hot { [0, 1] } else { [1, 0] };
        if !self.is_full(order[0]) {
            return (order[0], None);
        }
        if !self.is_full(order[1]) && (!hot || free > self.part(self.settings.free)) {
            return (order[1], None);
        }
        let [own, common] = [0, 1].map(|room| self.cold_victim(room));
        let cold = if !hot {
            lower(common, own)
        } else if own.is_some() {
            own
        } else if !self.is_full(1) {
            return (1, None);
        } else {
            common
        };
        let any = || order.iter().find_map(|room| self.any_victim(*room));
        let (_, victim) = cold.or_else(any).unwrap();
        (self.room(victim), Some(victim))
    }

    fn cold_victim(&self, room: usize) -> Option<(usize, u32)> {
        let clean = self.find(room, |level, dirty| !dirty && level < self.hot.min(32));
        clean.or_else(|| self.find(room, |level, dirty| dirty && level < self.hot))
    }

    fn any_victim(&self, room: usize) -> Option<(usize, u32)> {
        let clean = self.find(room, |level, dirty| !dirty && level < 32);
        let dirty = || self.find(room, |_, dirty| dirty);
        clean.or_else(dirty).or_else(|| self.find(room, |_, _| true))
    }

    /// All that one request's end brings.
    pub fn work(&mut self) -> Vec<Work> {
        let mut done = Vec::new();
        let (mut moved, mut swapped) = (0, 0);
        loop {
            let free = self.capacity() - self.coldest_first().len();
            let short = free < self.part(self.settings.free);
            let mut work = None;
            if moved < self.settings.demotions {
                work = if short { self.demote() } else { self.clean() };
                moved += u32::from(work.is_some());
            }
            if work.is_none() && self.migrating && swapped < self.settings.swaps {
                work = self.swap();
                swapped += 1;
            }
            match work {
                Some(work) => done.push(work),
                None => return done,
            }
        }
    }

    fn demote(&mut self) -> Option<Work> {
        let (_, block) = lower(self.coldest(1, 32), self.coldest(0, 32))?;
        self.leave(block);
        Some(Work::Demote(block))
    }

    fn clean(&mut self) -> Option<Work> {
        if self.uncleaned == 0 {
            return None;
        }
        let [own, common] = [0, 1].map(|room| self.find(room, |level, dirty| level < 32 && dirty));
        let Some((_, block)) = lower(common, own) else {
            self.uncleaned = 0;
            return None;
        };
        self.uncleaned -= 1;
        self.dirty.remove(&block);
        self.renew(block);
        Some(Work::Clean(block))
    }

    fn swap(&mut self) -> Option<Work> {
        let of_common = |&(level, block): &(usize, u32)| level >= self.hot && self.room(block) == 1;
        let hot: Vec<(usize, u32)> = self.coldest_first().into_iter().filter(of_common).collect();
        let top = hot.last().map_or(0, |(level, _)| *level);
        let newest = |dirty: bool| {
            let fits = |&&(level, block): &&(usize, u32)| {
                level == top && self.dirty.contains(&block) == dirty
            };
            hot.iter().rfind(fits).map(|(_, block)| *block)
        };
        let hottest = newest(false).or_else(|| newest(true));
        let coldest = self.coldest(0, self.hot);
        let (Some(hot), Some((_, cold)), true) = (hottest, coldest, self.too_hot()) else {
            self.migrating = false;
            return None;
        };
        self.common.remove(&hot);
        self.renew(hot);
        self.common.insert(cold);
        self.renew(cold);
        Some(Work::Swap(hot, cold))
    }

    pub fn divide(&mut self, own: usize, common: usize) -> Vec<u32> {
        self.wanted = [own, common];
        self.rooms = self.wanted;
        let mut left = Vec::new();
        for room in [0, 1] {
            while self.held_in(room) > self.rooms[room] {
                let (_, block) = self.coldest(room, 64).unwrap();
                self.leave(block);
                left.push(block);
            }
        }
        self.fit();
        left
    }

    pub fn resize(&mut self, capacity: usize) -> Vec<u32> {
        let all = self.wanted[0] + self.wanted[1];
        // The nearest whole number, the larger one of two.
        let own = match all {
            0 => capacity,
            _ => (2 * capacity * self.wanted[0] + all) / (2 * all),
        };
        let mut left = Vec::new();
        while self.coldest_first().len() > capacity {
            let of = |room: usize, most: usize| {
                if self.held_in(room) > most { self.coldest(room, 64) } else { None }
            };
            let (_, block) = lower(of(1, capacity - own), of(0, own)).unwrap();
            self.leave(block);
            left.push(block);
        }
        let own = own.max(self.held_in(0)).min(capacity - self.held_in(1));
        self.rooms = [own, capacity - own];
        self.fit();
        left
    }

    pub fn remove(&mut self, block: u32) {
        if self.held.level(block).is_some() {
            self.drop_held(block);
        } else if let Some(level) = self.missed.level(block) {
            take(&mut self.missed.0[level], block);
            self.climbed_missed.remove(&block);
        }
    }
}

impl GhostModel for TwoRegions {
    fn access(&mut self, block: u32, write: bool) -> ModelVerdict {
        if self.capacity() == 0 {
            return ModelVerdict::Out;
        }
        self.accesses += 1;
        if self.accesses.is_multiple_of(self.settings.tick) {
            self.end_tick();
        }
        if self.held.level(block).is_some() {
            self.hits[1] += 1;
            if self.climbed_held.insert(block) {
                self.held.use_entry(block, 1);
            }
            if write && self.dirty.insert(block) {
                self.renew(block);
            }
            return ModelVerdict::Hit;
        }
        let known = self.missed.level(block).is_some();
        if known {
            let jump = usize::from(self.climbed_missed.insert(block));
            self.missed.use_entry(block, jump);
        }
        let level = self.missed.level(block).unwrap_or(0);
        if level < self.promote {
            if !known {
                self.remember(block, 0);
            }
            return ModelVerdict::Out;
        }
        self.remove(block);
        let hot = level >= self.hot;
        let (room, victim) = self.place(hot);
        if let Some(victim) = victim {
            self.leave(victim);
        }
        self.held.0[if hot { 63 } else { self.hot - 1 }].push_back(block);
        if room == 1 {
            self.common.insert(block);
        }
        if write {
            self.dirty.insert(block);
        }
        self.promotions += 1;
        ModelVerdict::In(victim)
    }
}

/// Whichever stands lower, the first if neither does.
fn lower(one: Option<(usize, u32)>, other: Option<(usize, u32)>) -> Option<(usize, u32)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.0 < one.0 { other } else { one }),
        (one, other) => one.or(other),
    }
}
