//! Blocks that leave the cache: what the log is told, what is written back, and when content goes.
//!
//! The order between the log and backing devices, by which nothing durable is lost or comes back:
//!
//! - content is written back when the log has it durably: a backing device never has what a
//!   recovery of the log does not know;
//! - content that only the log has stays there until a sync of the backing device that began after
//!   the write-back is done; then the log is told that the block has left;
//! - dirty content that cannot be written back is stranded: it stays in the log until newer content
//!   is there, or until the backing device has newer content durably. A loss of power finds it
//!   again, so that nothing older is ever read.
//!
//! Units: blocks, decisions, numbers of groups of the log.

use super::backing::{Settled, SyncedBacking};
use super::content::Stranded;
use super::copies::{BlockCopy, CopyId};
use super::request::{
    BlockContent, BlockOp, BlockRead, BlockRequest, OpenId, PlanInHand, Purpose, ReadFor,
};
use super::server::{Engine, Procedure, State};
use super::turns::Turn;
use crate::io::Buffer;
use crate::io::executor::{Begun, Event, Signal};
use crate::log::format::{Version, VolumeId};
use cachewright_cache::{Move, WriteMode};
use cachewright_types::measure::LossReason;
use cachewright_types::{Op, Request, TenantId, block_numbers};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Write-backs under way at one time: more wait, the oldest first. A write-back waits for the log,
/// for its device and for older ones, so that the oldest always goes on.
const MAX_WRITE_BACKS: usize = 128;

/// What content waits for before it goes, where it must not go at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoesWhen {
    /// The backing device has it, and is synced.
    WrittenBack,
    /// The zeroes of this decision are there, and the device is synced.
    Zeroed(u64),
    /// Never: the zeroes have failed.
    Never,
}

/// Content that goes later than its block has left.
#[derive(Default)]
pub(super) struct Leavings {
    /// What the content of each copy waits for, and the version of its leaving.
    by_copy: HashMap<CopyId, (GoesWhen, Version), FixedState>,
    /// Content over which zeroes or writes round the cache are under way, by decision: what the log
    /// is to be told after the next sync.
    pub overwriting: HashMap<u64, Vec<Settled>, FixedState>,
    /// Tenants, once for each procedure that waits until their blocks have left: their devices are
    /// to be synced.
    pub awaited: Vec<TenantId>,
    /// Tenants, once for each sync of the log that waits until what was zeroed is gone.
    pub zeroes_awaited: Vec<TenantId>,
    write_backs: WriteBacks,
}

/// Write-backs under way, and those that wait.
#[derive(Default)]
struct WriteBacks {
    under_way: usize,
    waiting: usize,
    by_tenant: BTreeMap<TenantId, OwnWriteBacks>,
}

/// Those of a tenant.
#[derive(Default)]
struct OwnWriteBacks {
    under_way: usize,
    waiting: VecDeque<Event>,
}

impl WriteBacks {
    /// One more, which begins at once if so few are under way, and else when others have ended.
    fn add(&mut self, tenant: TenantId, begins: Event) {
        let own = self.by_tenant.entry(tenant).or_default();
        if self.under_way < MAX_WRITE_BACKS {
            self.under_way += 1;
            own.under_way += 1;
            begins.set(true);
        } else {
            self.waiting += 1;
            own.waiting.push_back(begins);
        }
    }

    /// One of a tenant that was under way has ended; another begins, of the tenant with the fewest
    /// under way: many for a slow device do not hold up those for others.
    fn end(&mut self, tenant: TenantId) {
        if let Some(own) = self.by_tenant.get_mut(&tenant) {
            own.under_way -= 1;
            if own.under_way == 0 && own.waiting.is_empty() {
                self.by_tenant.remove(&tenant);
            }
        }
        let waits = self.by_tenant.values_mut().filter(|own| !own.waiting.is_empty());
        let Some(next) = waits.min_by_key(|own| own.under_way) else {
            self.under_way -= 1;
            return;
        };
        if let Some(begins) = next.waiting.pop_front() {
            self.waiting -= 1;
            next.under_way += 1;
            begins.set(true);
        }
    }
}

/// A block that is written back.
struct WrittenBlock {
    copy: CopyId,
    /// What is on its way to it.
    after: Vec<Event>,
    is_lost: bool,
}

/// Neighbours that are written back together, by a decision.
pub(super) struct WriteBack {
    tenant: TenantId,
    first: u64,
    blocks: Vec<WrittenBlock>,
    turn: Turn,
    done: Event,
    /// It ends the wait for its place among those under way.
    begins: Event,
}

impl WriteBack {
    fn numbers(&self) -> Range<u64> {
        self.first..self.first + self.blocks.len() as u64
    }
}

/// What is written back of a block.
enum BackingBlock<'a> {
    Nothing,
    Hole,
    Data(&'a Buffer),
}

impl Leavings {
    /// Write-backs that have not ended.
    pub fn write_backs(&self) -> usize {
        self.write_backs.under_way + self.write_backs.waiting
    }

    /// Write-backs of a tenant's blocks that have not ended.
    pub fn write_backs_of(&self, tenant: TenantId) -> usize {
        let own = self.write_backs.by_tenant.get(&tenant);
        own.map_or(0, |own| own.under_way + own.waiting.len())
    }
}

impl State {
    /// A block leaves the cache by the decision that was made last. One that leaves behind its turn
    /// in the plan, or that came in by it, takes along what the plan did.
    pub(super) fn evict(&mut self, step: &Move, purpose: &Purpose, hand: &mut PlanInHand) {
        let (Move::WriteBack(cached) | Move::Drop(cached) | Move::Discard { cached, .. }) = step
        else {
            return;
        };
        let decision = self.decisions.made();
        let Some(copy) = self.content.copies.evict(cached, decision) else { return };
        let known = *self.content.copies.get(copy);
        let in_log = self.decisions.in_log(decision);
        let is_late = known.admitted == decision
            || hand.touched.as_ref().is_some_and(|range| range.contains(&known.number));
        let version = if is_late { Version::last(in_log) } else { Version::left_first(in_log) };
        let goes_when = self.goes_when(step, purpose.wanted, copy, &known);
        let is_trimmed =
            matches!(step, Move::Discard { .. }) && purpose.wanted == Some(BlockOp::Trim);
        match goes_when {
            Some(goes_when) => {
                self.volumes.backing_mut(known.tenant).begin_leaving(known.number, known.left);
                self.leavings.by_copy.insert(copy, (goes_when, version));
            }
            // The range as a whole is gone.
            None if is_trimmed => {}
            // The log has content of an earlier copy only, which nothing else has: a record would
            // take it away.
            None if known.stored.is_none() && self.has_stranded(known.tenant, known.number) => {}
            None => hand.gone.push((known.tenant, known.number, version)),
        }
        match step {
            Move::WriteBack(_) => hand.evicted.push(copy),
            _ => self.end_unused(copy),
        }
    }

    /// What the content of a block that leaves waits for; nothing if it may go at once.
    fn goes_when(
        &self,
        step: &Move,
        wanted: Option<BlockOp>,
        copy: CopyId,
        known: &BlockCopy,
    ) -> Option<GoesWhen> {
        let backing = self.volumes.backing(known.tenant);
        // A record that takes this copy away would take older content away, too.
        let block = (self.volumes.id(known.tenant), known.number);
        let older_needed = backing.is_leaving(&(known.number..known.number + 1), u64::MAX)
            || self.content.stranded.contains_key(&block);
        // A block that was cleaned ahead may leave before what is written back is in the log.
        let is_dirty = known.stored.is_some_and(|stored| stored.dirty);
        let is_written = self.decisions.decider.cache.engine().mode() == WriteMode::WriteBack
            && self.content.copies.writing(copy).is_some();
        let is_needed = older_needed || is_dirty || is_written;
        match (step, wanted) {
            (Move::WriteBack(_), _) => Some(GoesWhen::WrittenBack),
            (Move::Discard { dirty, .. }, Some(BlockOp::Zero | BlockOp::Provision)) => {
                (*dirty || is_needed).then_some(GoesWhen::Zeroed(known.left))
            }
            (Move::Discard { .. }, Some(BlockOp::Trim)) => None,
            (Move::Discard { .. }, _) => older_needed.then_some(GoesWhen::WrittenBack),
            _ => is_needed.then_some(GoesWhen::WrittenBack),
        }
    }

    /// The log is told of blocks that have left, in as few records as that takes.
    pub(super) fn tell_gone(&mut self, mut gone: Vec<(TenantId, u64, Version)>) {
        gone.sort_unstable_by_key(|(tenant, number, version)| (*tenant, *version, *number));
        for run in gone.chunk_by(|a, b| (a.0, a.1 + 1, a.2) == (b.0, b.1, b.2)) {
            let (tenant, first, version) = run[0];
            let volume = self.volumes.id(tenant);
            self.content.note_gone(tenant, volume, first..first + run.len() as u64, version);
        }
    }

    /// Begins to write back what a plan has evicted so far. Neighbours go together: blocks that
    /// were written together mostly leave together.
    pub(super) fn begin_evicted(&mut self, hand: &mut PlanInHand) {
        let mut evicted = std::mem::take(&mut hand.evicted);
        let copies = &self.content.copies;
        let block = |copy: &CopyId| (copies.get(*copy).tenant, copies.get(*copy).number);
        evicted.sort_by_key(block);
        let neighbours = |a: &CopyId, b: &CopyId| {
            let ((tenant, number), next) = (block(a), block(b));
            (tenant, number + 1) == next
        };
        let runs: Vec<Vec<CopyId>> = evicted.chunk_by(neighbours).map(<[CopyId]>::to_vec).collect();
        runs.into_iter().for_each(|run| self.begin_write_back(run, true));
    }

    /// Neighbours are written back from now on: blocks that were evicted, or that stay.
    pub(super) fn begin_write_back(&mut self, run: Vec<CopyId>, evicted: bool) {
        let BlockCopy { tenant, number: first, .. } = *self.content.copies.get(run[0]);
        let copies = &mut self.content.copies;
        let block = |copy: CopyId| {
            copies.hold(copy);
            copies.need_filled(copy);
            let after = copies.filling(copy).into_iter().chain(copies.writing(copy)).collect();
            WrittenBlock { copy, after, is_lost: copies.is_lost(copy) }
        };
        let blocks: Vec<WrittenBlock> = run.into_iter().map(block).collect();
        let (done, begins) = (self.tasks.event(), self.tasks.event());
        let numbers = first..first + blocks.len() as u64;
        let turn = self.turns.write_back(tenant, &numbers, evicted, &done);
        self.leavings.write_backs.add(tenant, begins.clone());
        let work = WriteBack { tenant, first, blocks, turn, done, begins };
        self.begun.push_back(Procedure::WriteBack(work));
    }

    /// A write-back has ended: what it has written is clean, or gone, after the next sync. What it
    /// has left out is still dirty, or stays in the log.
    fn end_write_back(&mut self, work: WriteBack, written: Vec<Option<Version>>) {
        let numbers = work.numbers();
        let is_well = !written.is_empty();
        let written = written.into_iter().chain(std::iter::repeat(None));
        for ((block, number), content) in work.blocks.iter().zip(numbers.clone()).zip(written) {
            match content {
                Some(content) => {
                    let settled = Settled::Clean { number, content };
                    self.volumes.backing_mut(work.tenant).settle_later(settled);
                }
                None => self.not_written_back(work.tenant, number, block.copy),
            }
        }
        self.turns.end_write(work.tenant, &numbers, &work.done, is_well);
        work.blocks.iter().for_each(|block| self.let_go(block.copy));
        self.leavings.write_backs.end(work.tenant);
        self.note_change();
    }

    /// Dirty content of a block was not written back: it is dirty still, or stays in the log.
    fn not_written_back(&mut self, tenant: TenantId, number: u64, copy: CopyId) {
        match self.cached(tenant, number) == Some(copy) {
            true => self.decisions.still_dirty(tenant, number),
            false => self.strand(tenant, number, copy),
        }
    }

    /// Runs of blocks that one operation writes back: where each begins, its bytes, and the data,
    /// or nothing for a hole.
    fn runs_to_write(
        &self,
        work: &WriteBack,
        contents: &[Option<BlockContent>],
    ) -> Vec<(u64, u64, Option<Buffer>)> {
        let size = 1_usize << self.block_shift;
        let blocks = work.blocks.iter().zip(contents);
        let blocks: Vec<BackingBlock<'_>> = blocks
            .map(|(block, content)| match content {
                None => BackingBlock::Nothing,
                Some(found) if self.content.is_hole(block.copy, &found.data, found.origin) => {
                    BackingBlock::Hole
                }
                Some(found) => BackingBlock::Data(&found.data),
            })
            .collect();
        let (mut runs, mut start) = (Vec::new(), work.first << self.block_shift);
        let kind = std::mem::discriminant::<BackingBlock<'_>>;
        for run in blocks.chunk_by(|a, b| kind(a) == kind(b)) {
            let bytes = (run.len() * size) as u64;
            match run[0] {
                BackingBlock::Nothing => {}
                BackingBlock::Hole => runs.push((start, bytes, None)),
                BackingBlock::Data(_) => {
                    let mut buffer = Buffer::zeroed(bytes as usize);
                    for (target, block) in buffer.chunks_mut(size).zip(run) {
                        if let BackingBlock::Data(data) = block {
                            target.copy_from_slice(data);
                        }
                    }
                    runs.push((start, bytes, Some(buffer)));
                }
            }
            start += bytes;
        }
        runs
    }

    /// A procedure uses a copy no more: its content may go, at once or later.
    pub(super) fn let_go(&mut self, copy: CopyId) {
        if let Some(ended) = self.content.copies.let_go(copy) {
            self.copy_ended(copy, &ended);
        }
    }

    fn end_unused(&mut self, copy: CopyId) {
        if let Some(ended) = self.content.copies.end_unused(copy) {
            self.copy_ended(copy, &ended);
        }
    }

    /// A block has left and its copy is not in use.
    fn copy_ended(&mut self, copy: CopyId, ended: &BlockCopy) {
        let BlockCopy { tenant, number, left, .. } = *ended;
        self.content.fetched.remove(&copy);
        let stored = self.content.take_stored(copy);
        let goes = self.leavings.by_copy.remove(&copy);
        match (goes, stored) {
            (None, None) => {}
            (None, Some(stored)) => self.content.log.note_dead(stored.place),
            (Some(_), None) => self.end_leaving(tenant, number, left),
            (Some((goes_when, version)), Some(stored)) => {
                let place = stored.place;
                self.content.keep(tenant, place);
                let settled = Settled::Gone {
                    number,
                    version,
                    left,
                    place,
                    noted: 1,
                    checksum: Some(stored.checksum),
                    group: stored.group,
                    dirty: stored.dirty,
                };
                let overwriting = match goes_when {
                    GoesWhen::Zeroed(decision) => self.leavings.overwriting.get_mut(&decision),
                    GoesWhen::WrittenBack => None,
                    GoesWhen::Never => return self.strand_settled(tenant, settled),
                };
                match overwriting {
                    Some(waiting) => waiting.push(settled),
                    None => self.settle_later(tenant, settled),
                }
            }
        }
    }

    /// To be told to the log after the next sync; content of a volume that has failed stays.
    pub(super) fn settle_later(&mut self, tenant: TenantId, settled: Settled) {
        if self.volumes.backing(tenant).has_failed() {
            self.strand_settled(tenant, settled);
        } else {
            self.volumes.backing_mut(tenant).settle_later(settled);
        }
    }

    /// The log has been told that a block has left, or its content stays for good.
    fn end_leaving(&mut self, tenant: TenantId, number: u64, left: u64) {
        self.volumes.backing_mut(tenant).end_leaving(number, left);
        self.note_change();
    }

    /// A sync of a backing device is done: the log is told what the device has now, as far as it
    /// has room. Returns what is given when there may be room for the rest.
    fn tell_synced(&mut self, tenant: TenantId, settled: &mut VecDeque<Settled>) -> Option<Signal> {
        let mut has_told_one = false;
        while !settled.is_empty() {
            let mut next = 0;
            if self.notes_wait(tenant) {
                // The cleaner may wait for what leaves the segment that it cleans, or for a request
                // that waits for a block of the list: one record goes each time.
                if !self.content.cleaner.obstacles.is_waiting() || has_told_one {
                    return Some(self.advanced.clone());
                }
                let held = settled.iter().position(|settled| self.holds_cleaning_up(settled));
                next = held.map_or(0, |held| first_of_record(settled, held));
                has_told_one = true;
            }
            settled.remove(next).into_iter().for_each(|settled| self.tell(tenant, settled));
        }
        None
    }

    /// Whether content that has left lies in the segment that is being cleaned.
    fn holds_cleaning_up(&self, settled: &Settled) -> bool {
        match settled {
            Settled::Gone { place, .. } => {
                self.content.cleaner.is_in_victim(&self.content.log, *place)
            }
            Settled::Clean { .. } => false,
        }
    }

    fn tell(&mut self, tenant: TenantId, settled: Settled) {
        let volume = self.volumes.id(tenant);
        match settled {
            Settled::Gone { number, version, left, place, noted, .. } => {
                self.content.note_gone(tenant, volume, number..number + noted, version);
                self.content.release(place);
                self.end_leaving(tenant, number, left);
            }
            Settled::Clean { number, content } => {
                let Some(copy) = self.cached(tenant, number) else { return };
                let stored = self.content.copies.stored(copy);
                if stored.is_some_and(|found| found.dirty && found.version == content) {
                    let block = self.volumes.block(tenant, number);
                    self.content.note_clean(copy, block);
                }
            }
        }
    }

    /// A backing device has failed: its volume is served no more, and what only the log has of it
    /// stays there.
    pub(super) fn fail_volume(&mut self, tenant: TenantId) {
        if self.volumes.backing(tenant).has_failed() {
            return;
        }
        self.counts.failed_volumes += 1;
        // While it fails, flushes do. Should it be served again, each client learns of it.
        if self.bypass.is_begun() || self.volumes.backing(tenant).has_unflushed() {
            self.losses.note(tenant);
        }
        let waiting = self.volumes.backing_mut(tenant).fail();
        for settled in waiting.settled {
            self.settle_later(tenant, settled);
        }
        for waiter in waiting.waiters {
            self.tasks.end_op(waiter, Err(crate::io::IoError::IO));
        }
        self.bypass.fail(tenant);
        self.note_change();
    }

    /// Zeroes are about to be written over some blocks, and no content that left before their
    /// decision is needed. Clean content that left by it had to stay while such content was: a
    /// record that takes it away would have taken that away, too. It goes now. A start that found
    /// it clean behind the zeroes would read it, and the zeroes again when it has left the cache.
    pub(super) fn drop_clean_before_zeroes(
        &mut self,
        tenant: TenantId,
        decision: u64,
        blocks: &Range<u64>,
    ) {
        let Some(ended) = self.leavings.overwriting.get_mut(&decision) else { return };
        let backing = self.volumes.backing(tenant);
        let goes = |number: u64, dirty: bool| !dirty && backing.keeps_one_copy(number, decision);
        let is_clean = |settled: &mut Settled| match settled {
            Settled::Gone { number, dirty, .. } => goes(*number, *dirty),
            Settled::Clean { .. } => false,
        };
        let mut gone: Vec<(u64, Version)> = Vec::new();
        for settled in ended.extract_if(.., is_clean) {
            let Settled::Gone { number, version, place, .. } = settled else { continue };
            self.content.release(place);
            gone.push((number, version));
        }
        let leaving: Vec<CopyId> = self.content.copies.leaving(tenant, blocks.clone()).collect();
        for copy in leaving {
            let known = self.content.copies.get(copy);
            let Some((GoesWhen::Zeroed(by), version)) = self.leavings.by_copy.get(&copy) else {
                continue;
            };
            let is_clean = known.stored.is_some_and(|stored| goes(known.number, stored.dirty));
            if *by == decision && is_clean && !self.content.copies.is_changing(copy) {
                gone.push((known.number, *version));
                self.leavings.by_copy.remove(&copy);
            }
        }
        let volume = self.volumes.id(tenant);
        for (number, version) in gone {
            self.end_leaving(tenant, number, decision);
            self.content.note_gone(tenant, volume, number..number + 1, version);
        }
    }

    /// A range was trimmed or zeroed: blocks that only the log had may go after the next sync.
    pub(super) fn end_clear(
        &mut self,
        tenant: TenantId,
        decision: u64,
        blocks: Range<u64>,
        zeroed_by: Option<u64>,
    ) {
        let mut cleared = self.leavings.overwriting.remove(&decision).unwrap_or_default();
        note_together(&mut cleared);
        for settled in cleared {
            self.settle_later(tenant, settled);
        }
        if !blocks.is_empty() && !self.volumes.backing(tenant).has_failed() {
            self.volumes.backing_mut(tenant).end_clear(blocks, zeroed_by);
        }
    }

    /// Zeroes have failed: what was to leave by them stays, also where it is still read or written
    /// back.
    pub(super) fn zeroes_failed(&mut self, tenant: TenantId, decision: u64) {
        for (goes_when, _) in self.leavings.by_copy.values_mut() {
            if *goes_when == GoesWhen::Zeroed(decision) {
                *goes_when = GoesWhen::Never;
            }
        }
        self.overwrite_failed(tenant, decision, &(0..u64::MAX));
    }

    /// Zeroes, or a write round the cache, have failed: content that was to go stays.
    pub(super) fn overwrite_failed(
        &mut self,
        tenant: TenantId,
        decision: u64,
        blocks: &Range<u64>,
    ) {
        for settled in self.take_overwritten(decision, blocks) {
            self.strand_settled(tenant, settled);
        }
    }

    /// Blocks were written round the cache: stranded content of them may go after the next sync.
    pub(super) fn end_overwrite(&mut self, tenant: TenantId, decision: u64, blocks: &Range<u64>) {
        let overwritten = self.take_overwritten(decision, blocks);
        if overwritten.is_empty() {
            return;
        }
        for settled in overwritten {
            self.settle_later(tenant, settled);
        }
        self.volumes.backing_mut(tenant).end_overwrite(blocks.clone(), decision);
    }

    /// What a decision overwrites outside the log, of some blocks.
    fn take_overwritten(&mut self, decision: u64, blocks: &Range<u64>) -> Vec<Settled> {
        let Some(waiting) = self.leavings.overwriting.get_mut(&decision) else {
            return Vec::new();
        };
        let within = |settled: &mut Settled| match settled {
            Settled::Gone { number, .. } | Settled::Clean { number, .. } => blocks.contains(number),
        };
        let taken = waiting.extract_if(.., within).collect();
        if waiting.is_empty() {
            self.leavings.overwriting.remove(&decision);
        }
        taken
    }

    /// Dirty content of a block that has left could not be written back: it stays in the log,
    /// unless there is newer content.
    fn strand(&mut self, tenant: TenantId, number: u64, copy: CopyId) {
        let left = self.content.copies.get(copy).left;
        let Some(stored) = self.content.take_stored(copy) else { return };
        if self.has_newer_content(tenant, number, left) {
            self.content.log.note_dead(stored.place);
            return;
        }
        let found = Stranded {
            place: stored.place,
            version: stored.recorded,
            dirty: true,
            left,
            checksum: Some(stored.checksum),
            group: stored.group,
        };
        self.content.strand((self.volumes.id(tenant), number), found);
        self.counts.stranded += 1;
    }

    /// Content that was to go stays, unless there is newer content: that of a block which was
    /// fetched again meanwhile. Else the cleaner would wait for ever for it to come.
    fn strand_settled(&mut self, tenant: TenantId, settled: Settled) {
        if let Settled::Gone { number, version, place, left, checksum, group, .. } = settled {
            self.end_leaving(tenant, number, left);
            if self.has_newer_content(tenant, number, left) {
                return self.content.release(place);
            }
            let block = (self.volumes.id(tenant), number);
            let found = Stranded { place, version, dirty: true, left, checksum, group };
            self.content.strand_kept(block, found);
            self.counts.stranded += 1;
        }
    }

    /// Whether the log has content of a block that came behind what left by a decision.
    fn has_newer_content(&self, tenant: TenantId, number: u64, left: u64) -> bool {
        let copies = &self.content.copies;
        let cached = self.cached(tenant, number).into_iter();
        let leaving = copies.leaving(tenant, number..number + 1);
        let mut newer = cached.chain(leaving.filter(|id| copies.get(*id).admitted >= left));
        newer.any(|newer| copies.stored(newer).is_some())
    }

    /// Whether content of a block that is not cached stays in the log.
    pub(super) fn has_stranded(&self, tenant: TenantId, number: u64) -> bool {
        self.content.stranded.contains_key(&(self.volumes.id(tenant), number))
    }

    /// Whether a request needs stranded content: it reads some, or overwrites only a part of it.
    /// A block that is cached has newer content, or gets it.
    pub(super) fn needs_stranded(&self, request: &BlockRequest) -> bool {
        if self.content.stranded.is_empty() || request.op == BlockOp::Flush {
            return false;
        }
        let bytes = self.covered(request);
        let whole = self.whole_blocks(&bytes);
        let touched = block_numbers(bytes.start, request.length, self.block_shift);
        self.stranded_of(request.tenant, touched).iter().any(|number| {
            let overwritten = request.op != BlockOp::Read && whole.contains(number);
            !overwritten && self.cached(request.tenant, *number).is_none()
        })
    }

    /// Whether content of a block of a range of bytes is stranded.
    pub(super) fn is_stranded(&self, tenant: TenantId, bytes: Range<u64>) -> bool {
        !self.content.stranded.is_empty()
            && !self.stranded_of(tenant, self.blocks_of(&bytes)).is_empty()
    }

    /// The decision that was made last overwrites stranded content. In the cache, the new content
    /// takes its place; what is trimmed may go at once. Else it goes when the backing device has
    /// the new content durably, and the request is durable after that.
    pub(super) fn overwrite_stranded(&mut self, op: BlockOp, plan: &Request, open: OpenId) {
        if self.content.stranded.is_empty() || !matches!(plan.op, Op::Write | Op::Trim) {
            return;
        }
        let (tenant, decision) = (plan.tenant, self.decisions.made());
        let blocks = self.whole_blocks(&(plan.offset.0..plan.offset.0 + plan.length.0));
        for number in self.stranded_of(tenant, blocks) {
            if plan.op == Op::Trim || !self.is_stored_by(tenant, number, decision) {
                self.begin_overwrite(op, tenant, decision, number, open);
            }
        }
    }

    /// A write round the cache, or zeroes or a trim, of a decision is done. Content that left
    /// before, and was found to stay only after that decision, is overwritten by it as well. Part
    /// of such a block cannot be: the request fails.
    pub(super) fn overwrite_found(
        &mut self,
        op: BlockOp,
        tenant: TenantId,
        decision: u64,
        bytes: &Range<u64>,
        open: OpenId,
    ) {
        if self.content.stranded.is_empty() {
            return;
        }
        let volume = self.volumes.id(tenant);
        let whole = self.whole_blocks(bytes);
        for number in self.stranded_of(tenant, self.blocks_of(bytes)) {
            let found = self.content.stranded.get(&(volume, number));
            let is_older = found.is_some_and(|found| found.left <= decision);
            if !is_older || self.cached(tenant, number).is_some() {
                continue;
            }
            if whole.contains(&number) {
                self.begin_overwrite(op, tenant, decision, number, open);
            } else if op != BlockOp::Trim {
                self.fail_request(open);
            }
        }
    }

    /// A decision overwrites stranded content of a block, round the cache or by zeroes.
    fn begin_overwrite(
        &mut self,
        op: BlockOp,
        tenant: TenantId,
        decision: u64,
        number: u64,
        open: OpenId,
    ) {
        let key = (self.volumes.id(tenant), number);
        let Some(found) = self.content.stranded.remove(&key) else { return };
        let place = found.place;
        if op == BlockOp::Trim {
            return self.content.log.note_dead(place);
        }
        self.content.keep(tenant, place);
        self.volumes.backing_mut(tenant).begin_overwrite(number, decision);
        // The cleaner may have renewed the content since the decision.
        let version = Version::left_first(self.decisions.in_log(decision)).max(found.version);
        let settled = Settled::Gone {
            number,
            version,
            left: decision,
            place,
            noted: 1,
            checksum: found.checksum,
            group: found.group,
            dirty: found.dirty,
        };
        self.leavings.overwriting.entry(decision).or_default().push(settled);
        self.note_clears(open);
    }

    /// Whether a decision brings a block's content into the log.
    fn is_stored_by(&self, tenant: TenantId, number: u64, decision: u64) -> bool {
        let copies = &self.content.copies;
        let mut leaving = copies.leaving(tenant, number..number + 1);
        self.cached(tenant, number).is_some()
            || leaving.any(|copy| copies.get(copy).admitted == decision)
    }

    /// The blocks of a range whose content is stranded.
    fn stranded_of(&self, tenant: TenantId, blocks: Range<u64>) -> Vec<u64> {
        let volume: VolumeId = self.volumes.id(tenant);
        let range = (volume, blocks.start)..(volume, blocks.end.max(blocks.start));
        self.content.stranded.range(range).map(|((_, number), _)| *number).collect()
    }

    /// The cache forgets a block whose copy is lost, for a reason.
    pub(super) fn lose(&mut self, tenant: TenantId, number: u64, reason: LossReason) {
        self.divide_before();
        if let Some(plan) = self.decisions.forget(self.now_ns, tenant, number, reason) {
            self.carry_alone(tenant, plan);
        }
    }
}

impl Engine {
    /// Writes neighbours back: what could be read of them, once the log has it durably.
    pub(super) async fn write_back(self, work: WriteBack) {
        let written = self.write_blocks_back(&work).await;
        self.with(|state| state.end_write_back(work, written));
    }

    /// The version of each block that was written; nothing of one that could not be read, and no
    /// blocks if none was written.
    async fn write_blocks_back(&self, work: &WriteBack) -> Vec<Option<Version>> {
        work.begins.wait().await;
        let mut reads: Vec<Option<BlockRead>> = Vec::with_capacity(work.blocks.len());
        for WrittenBlock { copy, after, is_lost } in &work.blocks {
            let mut is_well = !is_lost;
            for before in after {
                is_well &= before.wait().await;
            }
            reads.push(is_well.then(|| self.with(|state| state.begin_read(*copy))));
        }
        let mut contents: Vec<Option<BlockContent>> = Vec::with_capacity(reads.len());
        for (block, read) in work.blocks.iter().zip(reads) {
            contents.push(match read {
                Some(read) => self.read_block(block.copy, read, ReadFor::WriteBack).await,
                None => None,
            });
        }
        let group = contents.iter().flatten().map(|content| content.origin.group).max();
        let Some(group) = group else { return Vec::new() };
        if !work.turn.come().await || !self.log_durable_for(work.tenant, group).await {
            return Vec::new();
        }
        // All runs are begun before one is waited for.
        let runs = self.with(|state| state.runs_to_write(work, &contents));
        let begin = |(start, bytes, buffer): (u64, u64, Option<Buffer>)| {
            let (engine, tenant) = (self.clone(), work.tenant);
            let procedure = async move {
                match buffer {
                    Some(buffer) => engine.write_backing(tenant, start, buffer).await,
                    None => engine.zero_backing(tenant, start..start + bytes).await,
                }
            };
            self.with(|state| state.tasks.begin(procedure))
        };
        let begun: Vec<Begun<bool>> = runs.into_iter().map(begin).collect();
        let mut is_well = true;
        for ended in begun {
            is_well &= ended.await;
        }
        match is_well {
            true => contents
                .into_iter()
                .map(|content| content.map(|content| content.origin.version))
                .collect(),
            false => Vec::new(),
        }
    }

    /// Makes durable what was written to a backing device, and tells the log.
    pub(super) async fn sync_backing(self, tenant: TenantId) {
        let synced = self.sync_device(tenant).await;
        let ended = self.with(|state| {
            state.volumes.backing_mut(tenant).sync_is_over();
            if synced.is_err() {
                state.fail_volume(tenant);
                return None;
            }
            state.volumes.backing_mut(tenant).end_sync()
        });
        let Some(SyncedBacking { settled, waiters }) = ended else { return };
        let mut settled = VecDeque::from(settled);
        let mut rest = self.with(|state| {
            let rest = state.tell_synced(tenant, &mut settled);
            // What waits for the device does not wait for room in the log.
            for waiter in waiters {
                state.tasks.end_op(waiter, Ok(crate::io::Output::Nothing));
            }
            rest
        });
        while let Some(room) = rest {
            room.wait().await;
            rest = self.with(|state| state.tell_synced(tenant, &mut settled));
        }
    }
}

/// The place in a list of what takes a block away there: the record of one before it may.
fn first_of_record(settled: &VecDeque<Settled>, place: usize) -> usize {
    let is_noted = |settled: &Settled| matches!(settled, Settled::Gone { noted: 1.., .. });
    (0..=place).rev().find(|place| is_noted(&settled[*place])).unwrap_or(place)
}

/// Blocks of one range were zeroed by one decision: one record takes all of them away, unless
/// content of one was renewed meanwhile.
fn note_together(cleared: &mut [Settled]) {
    let number = |settled: &Settled| match settled {
        Settled::Gone { number, .. } | Settled::Clean { number, .. } => *number,
    };
    let version = |settled: &Settled| match settled {
        Settled::Gone { version, .. } | Settled::Clean { content: version, .. } => *version,
    };
    if cleared.iter().any(|settled| version(settled) != version(&cleared[0])) {
        return;
    }
    cleared.sort_unstable_by_key(number);
    let last = cleared.last().map(number);
    let mut all = last.map(|last| last + 1 - number(&cleared[0]));
    for settled in cleared {
        if let Settled::Gone { noted, .. } = settled {
            *noted = all.take().unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::executor::Executor;

    /// As many as run at once are of one tenant, with three more; then the other tenant has two.
    #[test]
    fn the_next_write_back_is_of_the_tenant_with_the_fewest_under_way() {
        let (tasks, mut all) = (Executor::default(), WriteBacks::default());
        let [many, few] = [TenantId(0), TenantId(1)];
        let add = |all: &mut WriteBacks, tenant| {
            let begins = tasks.event();
            all.add(tenant, begins.clone());
            begins
        };
        let first: Vec<Event> = (0..MAX_WRITE_BACKS + 3).map(|_| add(&mut all, many)).collect();
        let second = [add(&mut all, few), add(&mut all, few)];
        let begun = |events: &[Event]| events.iter().filter(|event| event.is_set()).count();
        assert_eq!((begun(&first), begun(&second)), (MAX_WRITE_BACKS, 0));
        let mut found = Vec::new();
        for ended in [many, many, few, many] {
            all.end(ended);
            found.push((begun(&first) - MAX_WRITE_BACKS, begun(&second), all.under_way));
        }
        let full = MAX_WRITE_BACKS;
        assert_eq!(found, [(0, 1, full), (0, 2, full), (1, 2, full), (2, 2, full)]);
        assert!(first[MAX_WRITE_BACKS + 1].is_set() && !first[MAX_WRITE_BACKS + 2].is_set());
        for ended in [few, many].into_iter().chain(std::iter::repeat_n(many, full - 1)) {
            all.end(ended);
        }
        assert_eq!((all.under_way, all.waiting, all.by_tenant.len()), (0, 0, 0));
    }
}
