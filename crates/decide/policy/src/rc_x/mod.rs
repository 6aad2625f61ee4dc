//! RC-X: admits and evicts by what room for a block is worth, learned while it runs.
//!
//! For: an SSD over a disk, where each block taken in is a write. Must never know: engines,
//! tenants, the future. Ours; the goal is that of RC-RNN (Ebrahimi et al.): the hits of an oracle
//! with fewer writes, without training on a trace before. Units: blocks, accesses, bytes.
//!
//! Every access begins a wait of its block and, if the block is remembered, ends one; waits of
//! blocks in the cache and of ghosts count alike, so that nothing must be admitted to be learned
//! of. From time to time the waits so far become life tables ([`life`]) by class ([`class`]): what
//! a block's room is worth, by its class and how long it has waited. A use is worth the share of
//! its request that the block is: a disk takes little longer for many blocks in a row than for one,
//! and one that is not in the cache spoils the others' hits. Where nothing ever came back, nothing
//! is worth its write and nothing is admitted.
//!
//! A missed block is admitted if it is worth more than a threshold ([`admission`]): the worth of
//! the last block to leave, the least of `sample` drawn from the cache and of the last draw's
//! runner-up. Each rejected miss lets the threshold decay a little. A threshold that has decayed is
//! drawn anew before a block is admitted. A request's first missed block decides for all: half a
//! request waits for the disk as long as all of it. Blocks used one after the other leave together,
//! so that what is dirty is written back by one command ([`leave`]), and ahead of need where a
//! share of the cache is enough for that. Ages wrap after 2^32 accesses. Memory: 20 bytes per block
//! id, 12 per block in the cache, 370 KiB of tables. No access visits all blocks ([`census`]).

mod admission;
mod census;
pub mod class;
mod draws;
mod held;
mod learning_period;
mod leave;
pub mod life;
mod record;
mod trail;

use crate::entry::{Entry, Need, Registered};
use crate::links::Links;
use crate::renumber::Renumbering;
use crate::{Access, BackgroundOp, Policy, PolicyHooks, RequestInfo, Verdict};
use admission::{Admission, Weighed};
use cachewright_types::{BlockId, Seed};
use census::Census;
use class::Shapes;
use draws::Draws;
use held::{DrawnBlock, HeldBlocks};
use learning_period::LearningPeriod;
use life::LifeTables;
use record::{BlockRecord, OUT};
use trail::Trails;

cachewright_types::declare! {
    /// What RC-X weighs and remembers.
    pub struct RcXSettings {
        /// requests of one block that a block written into the cache must save beyond none
        write_price: f64 = 0.1, "requests", 0.0 ..= 1.0;
        /// blocks remembered beyond the capacity, as a multiple of it
        ghosts: f64 = 2.0, "ratio", 0.0 ..= 3.0;
        /// blocks drawn to find one that leaves
        sample: u32 = 16, "blocks", 1 ..= 256;
        /// whether a hit counts as the share of its request that it is, or as one
        by_request: bool = true, "true or false";
    }
}

/// A cache that learns what room is worth.
#[derive(Clone, Debug)]
pub struct RcX {
    /// Ghosts in the order in which they became such.
    links: Links<BlockRecord, 1>,
    held: HeldBlocks,
    capacity: u32,
    settings: RcXSettings,
    now: u32,
    period: LearningPeriod,
    census: Census,
    tables: LifeTables,
    shapes: Shapes,
    draws: Draws,
    admission: Admission,
    trails: Trails,
}

impl Registered for RcX {
    type Settings = RcXSettings;
    const ENTRY: Entry = Entry {
        name: "rc-x",
        doc: "admits and evicts by what space for a block is worth, from life tables learned \
              online",
        source: "ours, for the goal of RC-RNN",
        needs: &[Need::Requests],
    };

    fn new(capacity_blocks: u32, settings: &RcXSettings, seed: Seed) -> Self {
        let period = LearningPeriod::default();
        RcX {
            links: Links::new(),
            held: HeldBlocks::default(),
            capacity: capacity_blocks,
            settings: settings.clone(),
            now: 0,
            period,
            census: Census::new(period.left()),
            tables: LifeTables::new(settings.write_price as f32),
            shapes: Shapes::default(),
            draws: Draws::new(seed),
            admission: Admission::default(),
            trails: Trails::default(),
        }
    }
}

impl RcX {
    /// Ghosts that may be; while the cache is not full, more.
    fn max_ghosts(&self) -> u32 {
        let known = (f64::from(self.capacity) * (1.0 + self.settings.ghosts)) as u32;
        known.saturating_sub(self.held.len())
    }

    /// Learns from all waits, those under way too.
    fn learn(&mut self) {
        self.finish_census();
        self.tables.learn(self.census.counts());
        self.period.begin_next(self.capacity);
        self.begin_census(self.period.left());
    }

    /// Remembers a block that is not in the cache; the oldest such is forgotten for it.
    #[inline(always)]
    fn insert_ghost(&mut self, block: BlockId) {
        self.links.tag_mut(block).place = OUT;
        self.links.push_head(0, block);
        self.trim_ghosts();
    }

    fn trim_ghosts(&mut self) {
        while self.links.len(0) > self.max_ghosts() {
            let Some(block) = self.links.tail(0) else { return };
            self.unlink_ghost(block);
            let known = self.erase(block);
            self.tables.forgotten(known.class, self.now.wrapping_sub(known.last));
        }
    }

    /// Erases all that is known of a block, whose id may be another block's from now on. Returns
    /// what was known.
    fn erase(&mut self, block: BlockId) -> BlockRecord {
        self.draws.forget(block);
        let known = std::mem::take(self.links.tag_mut(block));
        self.census.remove(&known);
        known
    }

    /// Whether a missed block of this worth is admitted.
    fn admits(&mut self, enters: f32) -> bool {
        if let Some(decided) = self.admission.decided() {
            return decided;
        }
        let mut admitted = enters > 0.0;
        if admitted && self.is_full() {
            admitted = match self.admission.weigh(enters) {
                Weighed::Below => false,
                Weighed::Above => true,
                Weighed::AboveDecayed => {
                    let (place, worth) = self.draw();
                    self.draws.keep(Some(self.held.at_place(place).block));
                    enters > worth
                }
            };
        }
        self.admission.decide(admitted);
        admitted
    }

    /// Takes in a block whose use is noted and that is no ghost.
    #[inline(always)]
    fn insert(&mut self, block: BlockId) -> Verdict {
        let held = DrawnBlock { block, last: self.now, class: self.links.tag(block).class };
        if self.held.len() < self.capacity {
            self.links.tag_mut(block).place = self.held.len();
            self.held.push(held);
            self.trim_ghosts();
            return Verdict::Admit { evicted: None };
        }
        let place = self.next_to_leave();
        let loser = self.held.at_place(place).block;
        self.held.put(place, held);
        self.links.tag_mut(block).place = place;
        self.insert_ghost(loser);
        Verdict::Admit { evicted: Some(loser) }
    }

    /// Notes a use of the block; returns what was known of it before.
    #[inline(always)]
    fn note(&mut self, access: Access) -> BlockRecord {
        let now = self.now;
        self.shapes.uses();
        let known = self.links.tag_mut(access.block);
        let before = *known;
        self.census.remove(&before);
        let interval = before.is_known().then(|| now.wrapping_sub(before.last));
        known.uses = before.uses.saturating_add(1);
        known.last = now;
        known.class = self.shapes.class(interval, access.write, known.uses);
        self.census.insert(known);
        if let Some(interval) = interval {
            let saving = if self.settings.by_request { self.shapes.share() } else { 1.0 };
            self.tables.used(before.class, interval, saving);
        }
        before
    }
}

impl PolicyHooks for RcX {
    #[inline(always)]
    fn on_request(&mut self, request: &RequestInfo) {
        self.shapes.next(request);
        self.admission.on_request();
    }

    fn has_regions_or_background_ops() -> bool {
        true
    }

    /// Blocks that leave ahead of need, one after the other.
    #[inline(always)]
    fn background_op(&mut self) -> Option<BackgroundOp> {
        if !self.trails.has_backwards() && !self.lacks_reserve() {
            return None;
        }
        let block = self.leave_ahead()?;
        Some(BackgroundOp::Demote(block))
    }
}

impl Policy for RcX {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.now = self.now.wrapping_add(1);
        if self.period.ends() {
            self.learn();
        }
        self.visit_some();
        let before = self.note(access);
        let class = self.links.tag(block).class;
        if before.is_known() {
            if before.place != OUT {
                self.held.put(before.place, DrawnBlock { block, last: self.now, class });
                return Verdict::Hit;
            }
            self.unlink_ghost(block);
        }
        let enters = self.tables.enters(class);
        if !self.admits(enters) {
            self.insert_ghost(block);
            return Verdict::Bypass;
        }
        self.insert(block)
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.links.tag(block).is_held()
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.links.tag(block).is_known()
    }

    fn max_tracked(&self) -> u64 {
        let known = f64::from(self.capacity) * (1.0 + self.settings.ghosts);
        u64::from(self.capacity).max(known as u64) + 1
    }

    fn adopt(&mut self, block: BlockId, dirty: bool) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.now = self.now.wrapping_add(1);
        self.census.note_late();
        if self.note(Access { write: dirty, ..Access::read(block) }).is_known() {
            self.unlink_ghost(block);
        }
        self.insert(block)
    }

    fn len(&self) -> u32 {
        self.held.len()
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.capacity = capacity_blocks;
        while self.held.len() > capacity_blocks {
            let (place, _) = self.draw();
            let block = self.take_out(place);
            self.insert_ghost(block);
            evicted.push(block);
        }
        self.trim_ghosts();
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let held = self.contains(block);
        if held {
            self.take_out(self.links.tag(block).place);
        } else if self.tracks(block) {
            self.unlink_ghost(block);
        }
        self.erase(block);
        held
    }

    fn reserve_ids(&mut self, count: usize) {
        self.links.reserve_ids(count);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.links.renumber(ids);
        self.held.renumber(ids);
        self.draws.renumber(ids);
        self.rename_visited(|block| ids.get(block));
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    fn audit(&self) -> Result<(), String> {
        self.links.audit()?;
        self.audit_census()?;
        let (held, ghosts) = (self.held.len(), self.links.len(0));
        if held > self.capacity {
            return Err(format!("{held} blocks in a cache of {}", self.capacity));
        }
        if ghosts > self.max_ghosts() {
            return Err(format!("{ghosts} ghosts, expected at most {}", self.max_ghosts()));
        }
        for (place, held) in self.held.iter().enumerate() {
            let known = self.links.tag(held.block);
            let same = (known.place, known.last, known.class);
            if !known.is_known() || same != (place as u32, held.last, held.class) {
                return Err(format!("place {place} and block {} disagree", held.block.0));
            }
        }
        match self.links.iter(0).find(|block| !self.links.tag(*block).is_ghost()) {
            Some(block) => Err(format!("ghost {} is in the cache or unknown", block.0)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
