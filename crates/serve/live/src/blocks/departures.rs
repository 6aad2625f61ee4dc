//! Blocks that leave the cache: what the log is told, and when their content may go.
//!
//! For: the order between the log and backing devices. Content that only the log has stays there
//! until the backing device has it durably. Must never know: how steps are carried out. Units:
//! blocks, decisions.

use super::backing::Settled;
use super::carry::ReadyStep;
use super::departure::{Departure, Reason};
use super::held_steps::HeldStep;
use super::placement::Stay;
use super::request::BlockOp;
use super::server::BlockServer;
use super::volumes::Waiter;
use crate::io::{Io, IoError, IoOp};
use crate::log::format::Version;
use cachewright_cache::WriteMode;
use cachewright_steps::{Action, Damage, FailedBlock, Failure, ResidentId};
use cachewright_types::measure::LossReason;
use cachewright_types::{Op, Request, TenantId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::convert::Infallible;
use std::ops::Range;

/// What the end of a stay waits for, where its content must not go at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Farewell {
    /// For a sync of the backing device, which has its content.
    WrittenBack,
    /// For a sync after the zeroes of this decision.
    Zeroed(u64),
    /// The zeroes have failed: its content stays.
    Stays,
}

/// Stays that end later than they left.
#[derive(Clone, Debug, Default)]
pub struct Farewells {
    /// What each waits for, and the version of its leaving.
    by_stay: HashMap<u64, (Farewell, Version), FixedState>,
    /// Content over which zeroes or writes round the cache are under way, by decision: what the log
    /// is to be told after the next sync.
    pub(super) zeroing: HashMap<u64, Vec<Settled>, FixedState>,
}

impl Farewells {
    /// The zeroes of a decision have failed: what leaves by them stays, also where it is still read
    /// or written back.
    pub(super) fn zero_failed(&mut self, decision: u64) {
        for (farewell, _) in self.by_stay.values_mut() {
            if *farewell == Farewell::Zeroed(decision) {
                *farewell = Farewell::Stays;
            }
        }
    }
}

impl BlockServer {
    /// Blocks have left by a decision; `op` is that of the request which took them away.
    pub(super) fn depart(
        &mut self,
        io: &mut impl Io,
        departures: Vec<Departure>,
        op: Option<BlockOp>,
    ) {
        let mut gone: Vec<(TenantId, u64, Version)> = Vec::new();
        for Departure { resident, stay, reason, version } in departures {
            let stored = self.content.stored_blocks.get(resident);
            let backing = self.volumes.backing(stay.tenant);
            // A record that takes this stay away would take older content away, too.
            let block = (self.volumes.id(stay.tenant), stay.number);
            let older_needed = backing.is_leaving(&(stay.number..stay.number + 1), u64::MAX)
                || self.content.stranded.contains_key(&block);
            // A block that was cleaned ahead may leave before what is written back is in the log.
            let dirty = stored.is_some_and(|stored| stored.dirty);
            let needed = older_needed || dirty || self.decisions.is_written(resident, &stay);
            let farewell = match (reason, op) {
                (Reason::WrittenBack, _) => Some(Farewell::WrittenBack),
                (Reason::Dropped, _) => needed.then_some(Farewell::WrittenBack),
                (Reason::Discarded { dirty: lost }, Some(BlockOp::Zero | BlockOp::Provision)) => {
                    (lost || needed).then_some(Farewell::Zeroed(stay.left))
                }
                // The range as a whole is gone.
                (Reason::Discarded { .. }, Some(BlockOp::Trim)) => continue,
                (Reason::Discarded { .. }, _) => older_needed.then_some(Farewell::WrittenBack),
            };
            match farewell {
                Some(farewell) => {
                    self.volumes.backing_mut(stay.tenant).begin_leaving(stay.number, stay.left);
                    self.waiting.farewells.by_stay.insert(stay.serial, (farewell, version));
                }
                // The log has content of an earlier stay only, which nothing else has: a record
                // would take it away.
                None if stored.is_none() && self.has_stranded(stay.tenant, stay.number) => {}
                None => gone.push((stay.tenant, stay.number, version)),
            }
        }
        gone.sort_unstable_by_key(|(tenant, number, version)| (*tenant, *version, *number));
        for run in gone.chunk_by(|a, b| (a.0, a.1 + 1, a.2) == (b.0, b.1, b.2)) {
            let (tenant, first, version) = run[0];
            let blocks = first..first + run.len() as u64;
            let volume = self.volumes.id(tenant);
            self.content.note_gone(io, tenant, volume, blocks, version);
        }
    }

    /// A range is to be trimmed or zeroed by the decision that was made last. What is trimmed is
    /// gone at once.
    pub(super) fn begin_clear(&mut self, io: &mut impl Io, op: BlockOp, plan: &Request) {
        let decision = self.decisions.made();
        if op.zeroes() {
            self.waiting.farewells.zeroing.insert(decision, Vec::new());
            return;
        }
        let (start, end) = (plan.offset.0, plan.offset.0 + plan.length.0);
        let blocks = self.whole_blocks(&(start..end));
        let version = Version::left_first(self.decisions.in_log(decision));
        let volume = self.volumes.id(plan.tenant);
        self.content.note_gone(io, plan.tenant, volume, blocks, version);
    }

    /// A range was trimmed or zeroed: blocks that only the log had may go after the next sync.
    pub(super) fn end_clear(
        &mut self,
        tenant: TenantId,
        decision: u64,
        blocks: Range<u64>,
        zeroed_by: Option<u64>,
    ) {
        let mut cleared = self.waiting.farewells.zeroing.remove(&decision).unwrap_or_default();
        note_together(&mut cleared);
        for settled in cleared {
            self.settle_later(tenant, settled);
        }
        let failed = self.volumes.backing(tenant).has_failed();
        if !blocks.is_empty() && !failed {
            self.volumes.backing_mut(tenant).end_clear(blocks, zeroed_by);
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

    /// Takes failures of steps and ends of stays, until there are no more.
    pub(super) fn take_ends(&mut self, io: &mut impl Io) {
        loop {
            let failures = self.decisions.steps.take_failures();
            let ended = self.decisions.steps.state_mut().placement.take_ended();
            if failures.is_empty() && ended.is_empty() {
                return;
            }
            for failure in failures {
                self.step_failed(io, failure);
            }
            for (resident, stay) in ended {
                self.stay_ended(resident, &stay);
            }
        }
    }

    /// A step has failed: what it means for the cache and for content in the log.
    fn step_failed(&mut self, io: &mut impl Io, failure: Failure<Infallible>) {
        let tenant = failure.tenant;
        if let Action::Device { op, offset, length, .. } = failure.action {
            self.overwrite_failed(tenant, failure.decision, op, offset, length);
        }
        for block in &failure.blocks {
            let FailedBlock { resident, number: Some(number) } = *block else { continue };
            if let Action::Device { op: Op::Write, .. } = failure.action {
                self.content.staged.remove(&(resident, failure.decision));
            }
            let cached = self.decisions.resident(tenant, number) == Some(resident);
            match failure.damage {
                Damage::None => {}
                Damage::Lost => {
                    let stored = self.content.stored_blocks.get(resident);
                    // Where writes go to both, the device may have what the cache has failed to
                    // take: what the cache has must not be called clean later.
                    let keeps_dirty = self.decisions.cache.engine().mode() == WriteMode::WriteBack;
                    let only_here = keeps_dirty && stored.is_some_and(|stored| stored.dirty);
                    if only_here {
                        self.decisions.steps.keep(resident);
                    }
                    if cached && !only_here && !self.decisions.is_changing(resident) {
                        let reason = match failure.action {
                            Action::Device { op: Op::Read, .. } => LossReason::Fetch,
                            _ => LossReason::Fill,
                        };
                        self.lose(io, tenant, number, reason);
                    }
                }
                Damage::StillDirty => self.not_written_back(tenant, number, resident),
                Damage::Held => self.strand(tenant, number, resident),
            }
        }
        if failure.damage == Damage::Held {
            self.decisions.steps.release(failure);
        }
    }

    /// Dirty content of a block was not written back: it is dirty still, or stays in the log.
    pub(super) fn not_written_back(&mut self, tenant: TenantId, number: u64, resident: ResidentId) {
        match self.decisions.resident(tenant, number) == Some(resident) {
            true => self.decisions.still_dirty(tenant, number),
            false => self.strand(tenant, number, resident),
        }
    }

    /// A block has left and no step touches it: its content may go, at once or after a sync.
    fn stay_ended(&mut self, resident: ResidentId, stay: &Stay) {
        let Stay { tenant, number, left, .. } = *stay;
        self.content.staged.remove(&(resident, stay.admitted));
        let stored = self.content.take_stored(resident);
        let farewell = self.waiting.farewells.by_stay.remove(&stay.serial);
        match (farewell, stored) {
            (None, None) => {}
            (None, Some(stored)) => self.content.log.note_dead(stored.place),
            (Some(_), None) => self.volumes.backing_mut(tenant).end_leaving(number, left),
            (Some((farewell, version)), Some(stored)) => {
                let place = stored.place;
                self.content.keep(place);
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
                let zeroing = match farewell {
                    Farewell::Zeroed(decision) => self.waiting.farewells.zeroing.get_mut(&decision),
                    Farewell::WrittenBack => None,
                    Farewell::Stays => return self.strand_settled(tenant, settled),
                };
                match zeroing {
                    Some(waiting) => waiting.push(settled),
                    None => self.settle_later(tenant, settled),
                }
            }
        }
    }

    /// A step may be to zero some blocks, and no content that left before its decision is needed.
    /// Clean content that left by it had to stay while such content was: a record that takes it
    /// away would have taken that away, too. It goes now. A start that found it clean behind the
    /// zeroes would read it, and the zeroes again when it has left the cache.
    pub(super) fn drop_clean_before_zeroes(&mut self, io: &mut impl Io, held: &HeldStep) {
        let ReadyStep { tenant, decision, .. } = held.ready;
        if held.group.is_some() {
            return;
        }
        let blocks = self.changed_blocks(&held.ready);
        let Some(ended) = self.waiting.farewells.zeroing.get_mut(&decision) else { return };
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
        for resident in self.decisions.steps.state().placement.departing(tenant, blocks) {
            let stay = self.decisions.steps.state().placement.stay(resident);
            let stored = self.content.stored_blocks.get(resident);
            let known = self.waiting.farewells.by_stay.get(&stay.serial);
            let Some((Farewell::Zeroed(by), version)) = known else { continue };
            let is_clean = stored.is_some_and(|stored| goes(stay.number, stored.dirty));
            if *by == decision && is_clean && !self.decisions.is_changing(resident) {
                gone.push((stay.number, *version));
                self.waiting.farewells.by_stay.remove(&stay.serial);
            }
        }
        let volume = self.volumes.id(tenant);
        for (number, version) in gone {
            self.volumes.backing_mut(tenant).end_leaving(number, decision);
            self.content.note_gone(io, tenant, volume, number..number + 1, version);
        }
    }

    /// A sync of a backing device is done: the log is told what it has now.
    pub(super) fn backing_synced(
        &mut self,
        io: &mut impl Io,
        tenant: TenantId,
        error: Option<IoError>,
    ) {
        self.volumes.backing_mut(tenant).sync_is_over();
        if error.is_some() {
            return self.fail_volume(io, tenant);
        }
        let Some(synced) = self.volumes.backing_mut(tenant).end_sync() else { return };
        let volume = self.volumes.id(tenant);
        for settled in synced.settled {
            match settled {
                Settled::Gone { number, version, left, place, noted, .. } => {
                    let blocks = number..number + noted;
                    self.content.note_gone(io, tenant, volume, blocks, version);
                    self.content.release(place);
                    self.volumes.backing_mut(tenant).end_leaving(number, left);
                }
                Settled::Clean { number, content } => {
                    let Some(resident) = self.decisions.resident(tenant, number) else { continue };
                    let stored = self.content.stored_blocks.get(resident);
                    if stored.is_some_and(|found| found.dirty && found.version == content) {
                        let block = self.volumes.block(tenant, number);
                        self.content.note_clean(io, resident, block);
                    }
                }
            }
        }
        for waiter in synced.waiters {
            self.backing_is_durable(io, waiter);
        }
    }

    /// A backing device has failed: its volume is served no more, and what only the log has of it
    /// stays there.
    pub(super) fn fail_volume(&mut self, io: &mut impl Io, tenant: TenantId) {
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
            self.fail_waiter(waiter);
        }
        self.retry_held(io);
    }

    /// Begins a sync of a backing device.
    pub(super) fn sync_backing(&mut self, io: &mut impl Io, tenant: TenantId) {
        let token = self.sync_token(tenant);
        let backing = self.volumes.backing_mut(tenant);
        backing.begin_sync();
        io.submit(token, IoOp::Sync { file: backing.file() });
    }

    /// What has waited for a sync waits in vain.
    pub(super) fn fail_waiter(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Step(step) => {
                self.decisions.steps.finish(step, cachewright_steps::Outcome::Failed);
            }
            Waiter::Request(open) => self.answer(open, Some(IoError::IO)),
        }
    }
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
