//! RC-X: admits and evicts by what room for a block is worth, learned while it runs.
//!
//! For: an SSD over a disk, where each block taken in is a write. Ours; the goal is that of RC-RNN
//! (Ebrahimi et al.): the hits of an oracle with fewer writes, without training on a trace before.
//! Units: blocks, accesses, bytes.
//!
//! Every access begins a wait of its block and, if the block is remembered, ends one; waits of
//! blocks in the cache and of ghosts count alike, so that nothing must be admitted to be learned
//! of. From time to time the waits so far become life tables ([`life`]) by class: what a block's
//! room is worth, by its class and how long it has waited. A use is worth the share of its request
//! that the block is: a disk takes little longer for many blocks in a row than for one, and one
//! that is not in the cache spoils the others' hits. Where nothing ever came back, nothing is worth
//! its write and nothing is admitted.
//!
//! A missed block is admitted if it is worth more than a threshold (`Admission`): the worth of
//! the last block to leave, the least of `sample` drawn from the cache and of the last draw's
//! runner-up. Each rejected miss lets the threshold decay a little. A threshold that has decayed is
//! drawn anew before a block is admitted. A request's first missed block decides for all: half a
//! request waits for the disk as long as all of it. Blocks used one after the other leave together,
//! so that what is dirty is written back by one command (`EvictionRun`), and ahead of need where
//! a share of the cache is enough for that. Ages wrap after 2^32 accesses. Memory: 20 bytes per
//! block id, 12 per block in the cache, 370 KiB of tables. No access visits all blocks
//! (`WaitsUnderWay`).

pub mod life;

use crate::links::Links;
use crate::registry::{Entry, Need, Registered};
use crate::renumber::Renumbering;
use crate::{Access, BackgroundOp, Policy, PolicyHooks, RequestInfo, Verdict};
use cachewright_memory::prefetch;
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Rng, Seed};
use life::{LearningPeriod, LifeTables, Shapes, WaitsUnderWay};

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
#[derive(Clone, Debug, Snapshot)]
pub struct RcX {
    /// Ghosts in the order in which they became such.
    links: Links<BlockState, 1>,
    held: ResidentBlocks,
    capacity: u32,
    #[snapshot(settings)]
    settings: RcXSettings,
    now: u32,
    period: LearningPeriod,
    under_way: WaitsUnderWay,
    tables: LifeTables,
    shapes: Shapes,
    draws: Draws,
    admission: Admission,
    runs: EvictionRuns,
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
            held: ResidentBlocks::default(),
            capacity: capacity_blocks,
            settings: settings.clone(),
            now: 0,
            period,
            under_way: WaitsUnderWay::new(period.left()),
            tables: LifeTables::new(settings.write_price as f32),
            shapes: Shapes::default(),
            draws: Draws::new(seed),
            admission: Admission::default(),
            runs: EvictionRuns::default(),
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
        self.tables.learn(self.under_way.counts());
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
    fn erase(&mut self, block: BlockId) -> BlockState {
        self.draws.forget(block);
        let known = std::mem::take(self.links.tag_mut(block));
        self.under_way.remove(&known);
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
    fn note(&mut self, access: Access) -> BlockState {
        let now = self.now;
        self.shapes.uses();
        let known = self.links.tag_mut(access.block);
        let before = *known;
        self.under_way.remove(&before);
        let interval = before.is_known().then(|| now.wrapping_sub(before.last));
        known.uses = before.uses.saturating_add(1);
        known.last = now;
        known.class = self.shapes.class(interval, access.write, known.uses);
        self.under_way.insert(known);
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
        if !self.runs.has_backwards() && !self.lacks_reserve() {
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
        self.under_way.note_late();
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
/// The place of a block that is not in the cache.
const OUT: u32 = u32::MAX;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct BlockState {
    /// The last access; of blocks in the cache and ghosts.
    pub last: u32,
    /// Its place in the cache, or [`OUT`].
    pub place: u32,
    pub class: u16,
    /// Uses so far, up to 255; 0 for a block of which nothing is known.
    pub uses: u8,
    /// Whether its wait is counted: in turns, true in one period and false in the next.
    pub counted: bool,
}

impl BlockState {
    /// Whether the block is in the cache or a ghost.
    #[inline(always)]
    pub fn is_known(&self) -> bool {
        self.uses > 0
    }

    /// Whether the block is in the cache.
    #[inline(always)]
    pub fn is_held(&self) -> bool {
        self.uses > 0 && self.place != OUT
    }

    /// Whether the block is known and not in the cache.
    #[inline(always)]
    pub fn is_ghost(&self) -> bool {
        self.uses > 0 && self.place == OUT
    }
}
/// Factor by which the threshold decays after a rejected miss.
const PRICE_DECAY: f32 = 0.98;

/// The admission threshold, and the decision on the request at hand.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct Admission {
    /// The worth of the last block to leave, times its decay since.
    threshold: f32,
    /// Whether the threshold has decayed since the last draw.
    decayed: bool,
    /// Whether requests are observed, and the decision on the present one's missed blocks.
    observes_requests: bool,
    decided: Option<bool>,
}

/// A worth beside the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weighed {
    /// It does not exceed the threshold, which decays.
    Below,
    /// It exceeds a threshold that has decayed: another draw decides.
    AboveDecayed,
    /// It exceeds the threshold of the last draw.
    Above,
}

impl Admission {
    /// A request begins: its first missed block decides for all.
    #[inline(always)]
    pub fn on_request(&mut self) {
        (self.observes_requests, self.decided) = (true, None);
    }

    /// The decision on the request at hand, if there is one.
    #[inline(always)]
    pub fn decided(&self) -> Option<bool> {
        self.decided.filter(|_| self.observes_requests)
    }

    /// Decides for the request at hand.
    #[inline(always)]
    pub fn decide(&mut self, admitted: bool) {
        self.decided = Some(admitted);
    }

    /// Weighs a block that is to come into a full cache.
    pub fn weigh(&mut self, worth: f32) -> Weighed {
        if worth <= self.threshold {
            self.threshold *= PRICE_DECAY;
            self.decayed = true;
            Weighed::Below
        } else if self.decayed {
            Weighed::AboveDecayed
        } else {
            Weighed::Above
        }
    }

    /// A draw has found the worth of the block that leaves next.
    pub fn set(&mut self, worth: f32) {
        (self.threshold, self.decayed) = (worth, false);
    }
}

/// A block in the cache: a copy of what a draw reads.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct DrawnBlock {
    pub block: BlockId,
    /// Its last access, which is no other's.
    pub last: u32,
    pub class: u16,
}

/// Blocks at places from 0 on, without gaps.
#[derive(Clone, Debug, Default, SnapshotValue)]
struct ResidentBlocks {
    blocks: Vec<DrawnBlock>,
}

impl ResidentBlocks {
    /// Blocks in the cache, and the first place that is free.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// The block at a place.
    #[inline(always)]
    pub fn at_place(&self, place: u32) -> DrawnBlock {
        self.blocks[place as usize]
    }

    /// Loads the block at a place ahead.
    #[inline(always)]
    pub fn prefetch(&self, place: u32) {
        prefetch(&self.blocks, place as usize);
    }

    /// All blocks in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &DrawnBlock> {
        self.blocks.iter()
    }

    /// Puts a block at the first free place.
    #[inline(always)]
    pub fn push(&mut self, held: DrawnBlock) {
        self.blocks.push(held);
    }

    /// Puts a block at a place where one lies.
    #[inline(always)]
    pub fn put(&mut self, place: u32, held: DrawnBlock) {
        self.blocks[place as usize] = held;
    }

    /// Takes out the block at a place; the last one comes to lie there. Returns both; the second is
    /// none if the block taken out was the last.
    pub fn take_out(&mut self, place: u32) -> (BlockId, Option<BlockId>) {
        let gone = self.blocks.swap_remove(place as usize).block;
        (gone, self.blocks.get(place as usize).map(|moved| moved.block))
    }

    /// Whether the block of a run is where it was and was not used since.
    pub fn has(&self, run: &EvictionRun) -> bool {
        self.blocks.get(run.place as usize).is_some_and(|held| held.last == run.last)
    }

    /// Whether blocks lie at a place and at the one before it, and were used one after the other.
    pub fn is_in_row(&self, place: u32) -> bool {
        let pair = self.blocks.get(place as usize - 1..=place as usize);
        pair.is_some_and(|pair| pair[0].last.wrapping_add(1) == pair[1].last)
    }

    /// Ids have changed; a block without a new one keeps its id.
    pub fn renumber(&mut self, ids: &Renumbering) {
        for held in &mut self.blocks {
            held.block = ids.get(held.block).unwrap_or(held.block);
        }
        self.blocks.shrink_to_fit();
    }
}

/// Draws of blocks from the cache.
#[derive(Clone, Debug, SnapshotValue)]
struct Draws {
    rng: Rng,
    /// The runner-up of the last draw, or its loser if that has stayed.
    spare: Option<BlockId>,
}

impl Draws {
    /// No draw yet.
    pub fn new(seed: Seed) -> Draws {
        Draws { rng: seed.derive("draws").rng(), spare: None }
    }

    /// A place below `places`.
    #[inline(always)]
    pub fn place(&mut self, places: u32) -> u32 {
        self.rng.below(u64::from(places)) as u32
    }

    /// Keeps a block for the next draw, or none.
    #[inline(always)]
    pub fn keep(&mut self, block: Option<BlockId>) {
        self.spare = block;
    }

    /// The block that was kept, for one draw.
    #[inline(always)]
    pub fn take_kept(&mut self) -> Option<BlockId> {
        self.spare.take()
    }

    /// A block is not known any more.
    #[inline(always)]
    pub fn forget(&mut self, block: BlockId) {
        self.spare = self.spare.filter(|spare| *spare != block);
    }

    /// Ids have changed.
    pub fn renumber(&mut self, ids: &Renumbering) {
        self.spare = self.spare.and_then(|block| ids.get(block));
    }
}

/// Of so many blocks of the capacity one is kept free, so that blocks leave ahead of need.
const FREE_ONE_OF: u32 = 100;
/// Blocks that leave together, at most.
const LONGEST_RUN: u32 = 256;
/// Worths of the block drawn that another of its run may have.
const MUCH_MORE: f32 = 4.0;
/// Blocks drawn before the first of them is looked at, so that their loads overlap.
const TOGETHER: usize = 16;

impl RcX {
    /// Blocks kept free.
    fn reserve(&self) -> u32 {
        self.capacity / FREE_ONE_OF
    }

    /// Whether what comes in makes others leave.
    fn is_full(&self) -> bool {
        self.held.len() + self.reserve() >= self.capacity
    }

    /// Whether less is free than shall be.
    #[inline(always)]
    fn lacks_reserve(&self) -> bool {
        self.held.len() + self.reserve() > self.capacity
    }

    /// The place of the block that leaves a full cache for one that comes in.
    fn next_to_leave(&mut self) -> u32 {
        let run = self.runs.take_onwards().filter(|run| self.held.has(run));
        let run = run.unwrap_or_else(|| {
            let (first, end) = self.draw_run();
            EvictionRun { place: first, last: self.held.at_place(first).last, left: end - first }
        });
        self.runs.go_onwards(run);
        run.place
    }

    /// Takes out a block that leaves ahead of need, of each run the last one first: so the blocks
    /// that come to lie in their places stay in order.
    fn leave_ahead(&mut self) -> Option<BlockId> {
        let run = match self.runs.take_backwards().filter(|run| self.held.has(run)) {
            Some(run) => run,
            None if self.lacks_reserve() && self.held.len() > 0 => {
                let (first, end) = self.draw_run();
                let last = self.held.at_place(end - 1).last;
                EvictionRun { place: end - 1, last, left: end - first }
            }
            None => return None,
        };
        self.runs.go_backwards(run);
        let block = self.take_out(run.place);
        self.insert_ghost(block);
        Some(block)
    }

    /// Draws a block from the cache, which holds some, and its run: the first place, and the one
    /// after the last.
    fn draw_run(&mut self) -> (u32, u32) {
        let (place, worth) = self.draw();
        let leaves = |place: u32| self.worth_at(place).0 <= worth * MUCH_MORE;
        let (mut first, mut end) = (place, place + 1);
        while first > 0
            && end - first < LONGEST_RUN
            && self.held.is_in_row(first)
            && leaves(first - 1)
        {
            first -= 1;
        }
        while end - first < LONGEST_RUN && self.held.is_in_row(end) && leaves(end) {
            end += 1;
        }
        (first, end)
    }

    /// The worth of the room at a place, and how long its block has waited.
    #[inline(always)]
    fn worth_at(&self, place: u32) -> (f32, u32) {
        let held = self.held.at_place(place);
        let age = self.now.wrapping_sub(held.last);
        (self.tables.stays(held.class, age), age)
    }

    /// Draws blocks from the cache, which holds some; the place and worth of the one whose room is
    /// worth least, of equal ones the one that has waited longest.
    fn draw(&mut self) -> (u32, f32) {
        let spare = self.draws.take_kept().map(|block| self.links.tag(block));
        let spare = spare.filter(|known| known.is_held());
        let first = match spare {
            Some(known) => known.place,
            None => self.draws.place(self.held.len()),
        };
        let (worth, age) = self.worth_at(first);
        let mut lowest = (first, worth, age);
        let mut second = None;
        let mut left = self.settings.sample.saturating_sub(u32::from(spare.is_none())) as usize;
        let mut places = [0; TOGETHER];
        while left > 0 {
            let drawn = &mut places[..left.min(TOGETHER)];
            left -= drawn.len();
            for place in drawn.iter_mut() {
                *place = self.draws.place(self.held.len());
                self.held.prefetch(*place);
            }
            for &mut place in drawn {
                let (worth, age) = self.worth_at(place);
                let below =
                    |than: (u32, f32, u32)| worth < than.1 || (worth == than.1 && age > than.2);
                if place == lowest.0 {
                    continue;
                }
                if below(lowest) {
                    second = Some(lowest);
                    lowest = (place, worth, age);
                } else if second.is_none_or(below) {
                    second = Some((place, worth, age));
                }
            }
        }
        self.draws.keep(second.map(|second| self.held.at_place(second.0).block));
        self.admission.set(lowest.1);
        (lowest.0, lowest.1)
    }

    /// Takes the block at a place out of the cache; the last one comes to lie there.
    fn take_out(&mut self, place: u32) -> BlockId {
        let (gone, moved) = self.held.take_out(place);
        if let Some(moved) = moved {
            self.links.tag_mut(moved).place = place;
        }
        gone
    }
}
/// The next block of a run that leaves.
///
/// Blocks that came in one after the other lie at places in a row, and those that were also used
/// one after the other the last time are a run: mostly neighbours on the volume. A run leaves as a
/// whole, where no block of it is worth much more than the one that was drawn, and what comes in
/// takes its places in the same order. A block is known by its last access, which is no other's: so
/// that a run ends where one of its blocks was used or has gone meanwhile.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct EvictionRun {
    pub place: u32,
    /// Its last access.
    pub last: u32,
    /// Blocks of the run from it on.
    pub left: u32,
}

impl EvictionRun {
    /// The block `by` places further, if there is one left.
    fn next(self, by: i32) -> Option<EvictionRun> {
        let place = self.place.checked_add_signed(by)?;
        let last = self.last.wrapping_add_signed(by);
        (self.left > 1).then_some(EvictionRun { place, last, left: self.left - 1 })
    }
}

/// The runs that leave.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct EvictionRuns {
    /// What leaves next for a block that comes in.
    onwards: Option<EvictionRun>,
    /// What leaves next ahead of need.
    backwards: Option<EvictionRun>,
}

impl EvictionRuns {
    /// What leaves next for a block that comes in.
    pub fn take_onwards(&mut self) -> Option<EvictionRun> {
        self.onwards.take()
    }

    /// The block of a run leaves for one that comes in: the one after it is next.
    pub fn go_onwards(&mut self, run: EvictionRun) {
        self.onwards = run.next(1);
    }

    /// What leaves next ahead of need.
    pub fn take_backwards(&mut self) -> Option<EvictionRun> {
        self.backwards.take()
    }

    /// The block of a run leaves ahead of need: the one before it is next.
    pub fn go_backwards(&mut self, run: EvictionRun) {
        self.backwards = run.next(-1);
    }

    /// Whether a run that leaves ahead of need has begun.
    #[inline(always)]
    pub fn has_backwards(&self) -> bool {
        self.backwards.is_some()
    }
}

#[cfg(test)]
mod tests;
