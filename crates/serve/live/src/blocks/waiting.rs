//! What waits for the log or for backing devices: steps, requests, answers.
//!
//! For: the order between the log and backing devices, and between writes and answers. Must never
//! know: how content is placed. Units: blocks, numbers of groups. The rules:
//!
//! - content is written back when the log has it durably: a backing device never has what a
//!   recovery of the log does not know;
//! - so does a write that goes to both; one that goes round the cache waits until no recovery can
//!   find older content of its blocks;
//! - these conditions are about what was decided before, so that they come true whatever is decided
//!   later.

use super::backing::Settled;
use super::carry::ReadyStep;
use super::departures::Farewells;
use super::held_steps::{HeldStep, HeldSteps};
use super::request::{BlockOp, BlockRequest};
use super::server::BlockServer;
use super::under_way::OpenId;
use super::volumes::Waiter;
use super::write_backs::PostponedWriteBacks;
use crate::io::{Io, IoError};
use crate::log::LogError;
use cachewright_steps::{Action, Outcome, ResidentId, StepId};
use cachewright_types::{Op, TenantId, block_numbers};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// The caller of syncs of the log that no request waits for.
pub(super) const SYNC_ALONE: u64 = 1 << 33;
/// The bit of callers that are requests.
const SYNC_REQUEST: u64 = 1 << 32;
/// What waits for a sync of a backing device before one is begun unasked.
const BACKING_WAITING: usize = 512;
/// Fresh leavings before a sync of the log is begun unasked.
const FRESH_LEAVINGS: usize = 4096;

/// Why a step is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    /// What was decided before is on its way to the log.
    Changing,
    /// A group is not durable.
    Log(u64),
    /// The log has content of blocks that left before.
    Leaving,
}

/// All that waits.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Requests that wait for room in the log.
    pub queue: VecDeque<BlockRequest>,
    /// Blocks for which requests under way keep room in the log, by pool of devices.
    pub reserved: BTreeMap<usize, u64>,
    /// Pools for whose room requests wait, or soon will.
    pub short_pools: BTreeSet<usize>,
    /// A division waits for room, and requests wait for it.
    pub division_waits: bool,
    /// The server ends: nothing is cleaned any more.
    pub is_closing: bool,
    /// Write-backs that have not begun.
    pub(super) postponed: PostponedWriteBacks,
    /// Stays that end later than they left.
    pub(super) farewells: Farewells,
    /// Requests that are answered when their group is written.
    unwritten: BTreeSet<(u64, OpenId)>,
    /// Steps that change a backing device.
    pub(super) held: HeldSteps,
    /// Tenants whose held steps, or whose leaving, wait for a sync of the backing device.
    pub(super) leaving: BTreeSet<TenantId>,
    /// What waits until zeroes over content of the log are durable.
    zeroed: Vec<(TenantId, Waiter)>,
}

impl Waiting {
    /// So many blocks of room are kept in a pool from now on.
    pub fn reserve(&mut self, pool: usize, blocks: u64) {
        *self.reserved.entry(pool).or_default() += blocks;
    }

    /// So many blocks less.
    pub fn release_reserved(&mut self, pool: usize, blocks: u64) {
        if let Some(reserved) = self.reserved.get_mut(&pool) {
            *reserved -= blocks;
        }
    }
}

impl BlockServer {
    /// A step that changes a backing device may have to wait.
    pub(super) fn hold(&mut self, ready: ReadyStep, open: Option<OpenId>) {
        self.waiting.held.hold(HeldStep { ready, open, group: None });
    }

    /// Begins the held steps that nothing holds any more.
    pub(super) fn retry_held(&mut self, io: &mut impl Io) {
        for mut held in self.waiting.held.take() {
            let tenant = held.ready.tenant;
            if self.volumes.backing(tenant).has_failed() || self.content.failed.is_some() {
                self.end_step(held.ready, true);
                continue;
            }
            let obstacle = match self.waits_for_leaving(&held) {
                true => Some(Obstacle::Leaving),
                false => {
                    self.drop_clean_before_zeroes(io, &held);
                    self.obstacle_in_log(&mut held)
                }
            };
            match obstacle {
                None => {
                    self.begin_device(io, held.ready, held.open);
                    continue;
                }
                Some(Obstacle::Changing) => {}
                Some(Obstacle::Log(group)) => self.waiting.held.want(group),
                Some(Obstacle::Leaving) => {
                    self.waiting.leaving.insert(tenant);
                }
            }
            self.waiting.held.hold(held);
        }
        for (tenant, waiter) in std::mem::take(&mut self.waiting.zeroed) {
            self.sync_log(io, tenant, waiter);
        }
    }

    /// The blocks of a backing device that a step changes; of a trim or zeroing the whole ones.
    pub(super) fn changed_blocks(&self, ready: &ReadyStep) -> Range<u64> {
        let Action::Device { op, offset, length, .. } = ready.action else { return 0..0 };
        match op {
            Op::Trim => self.whole_blocks(&(offset..offset + length)),
            _ => block_numbers(offset, length, self.block_shift),
        }
    }

    /// Whether the log has content of blocks that left before, which a step would overwrite round
    /// the cache.
    fn waits_for_leaving(&self, held: &HeldStep) -> bool {
        let ReadyStep { action, tenant, decision, .. } = held.ready;
        let Action::Device { op, .. } = action else { return false };
        let around = self.decisions.steps.touched(held.ready.id).is_empty();
        // Their leaving is in the log afterwards, and must become durable, too. What leaves by the
        // zeroing itself does so when it is done.
        let by = match op {
            Op::Write if around => Some(decision),
            Op::Trim if self.waiting.farewells.zeroing.contains_key(&decision) => {
                decision.checked_sub(1)
            }
            _ => None,
        };
        let blocks = self.changed_blocks(&held.ready);
        by.is_some_and(|by| self.volumes.backing(tenant).is_leaving(&blocks, by))
    }

    /// The group that must be durable before a step, if it is not.
    fn obstacle_in_log(&self, held: &mut HeldStep) -> Option<Obstacle> {
        let ReadyStep { action, tenant, decision, .. } = held.ready;
        let Action::Device { op, .. } = action else { return None };
        let around = self.decisions.steps.touched(held.ready.id).is_empty();
        let blocks = self.changed_blocks(&held.ready);
        let group = match (held.group, op) {
            (Some(group), _) => group,
            (None, Op::Trim) => match self.group_of_zeroed(tenant, decision, &blocks) {
                Some(group) => group.max(self.content.fresh_gone.last_group(tenant, &blocks)),
                None => return Some(Obstacle::Changing),
            },
            (None, _) if around => match self.group_of_round(tenant, decision, &blocks) {
                Some(group) => group,
                None => return Some(Obstacle::Changing),
            },
            (None, _) => self.group_of_staged(&held.ready),
        };
        held.group = Some(group);
        (group > self.content.log.durable()).then_some(Obstacle::Log(group))
    }

    /// The group that must be durable before blocks are written round the cache by a decision;
    /// nothing while what was decided before is on its way to the log.
    fn group_of_round(&self, tenant: TenantId, by: u64, blocks: &Range<u64>) -> Option<u64> {
        let mut group = self.content.fresh_gone.last_group(tenant, blocks);
        for number in blocks.clone() {
            let Some(resident) = self.decisions.resident(tenant, number) else { continue };
            if self.decisions.steps.state().placement.stay(resident).admitted > by {
                continue;
            }
            if self.decisions.is_changing(resident) {
                return None;
            }
            let stored = self.content.stored_blocks.get(resident);
            group = group.max(stored.map_or(0, |stored| stored.group));
        }
        Some(group)
    }

    /// The group that must be durable before blocks are zeroed by a decision: the log then has the
    /// dirty content that leaves by it, and no recovery finds older content that is clean. Nothing
    /// while it is on its way to the log; 0 for a trim, whose blocks are gone at once.
    fn group_of_zeroed(&self, tenant: TenantId, by: u64, blocks: &Range<u64>) -> Option<u64> {
        let Some(ended) = self.waiting.farewells.zeroing.get(&by) else { return Some(0) };
        let group_of = |settled: &Settled| match settled {
            Settled::Gone { group, .. } => *group,
            Settled::Clean { .. } => 0,
        };
        let mut group = ended.iter().map(group_of).max().unwrap_or_default();
        let placement = &self.decisions.steps.state().placement;
        for resident in placement.departing(tenant, blocks.clone()) {
            if placement.stay(resident).left > by {
                continue;
            }
            if self.decisions.is_changing(resident) {
                return None;
            }
            let stored = self.content.stored_blocks.get(resident);
            group = group.max(stored.map_or(0, |stored| stored.group));
        }
        Some(group)
    }

    /// The group that must be durable before blocks are written back.
    fn group_of_staged(&self, ready: &ReadyStep) -> u64 {
        let touched = self.decisions.steps.touched(ready.id).iter();
        let staged = |id: &ResidentId| self.content.staged.get(&(*id, ready.decision));
        touched.filter_map(staged).map(|staged| staged.group).max().unwrap_or_default()
    }

    /// Begins syncs that something waits for.
    pub(super) fn begin_syncs(&mut self, io: &mut impl Io) {
        let held = &mut self.waiting.held;
        let fresh = self.content.fresh_gone.len() > FRESH_LEAVINGS;
        let has_more = held.sync_begun() < self.content.log.last_group();
        if held.wants_sync() || (fresh && has_more) {
            self.content.log.sync(io, SYNC_ALONE);
            held.begin_sync(self.content.log.last_group());
        }
        let leaving = std::mem::take(&mut self.waiting.leaving);
        for tenant in self.volumes.tenants() {
            let backing = self.volumes.backing(tenant);
            if backing.has_failed() || backing.is_syncing() || !backing.needs_sync() {
                continue;
            }
            // The segment with the oldest content may be another pool's.
            let is_short = !self.waiting.short_pools.is_empty();
            let due = backing.is_awaited()
                || backing.waiting() >= BACKING_WAITING
                || leaving.contains(&tenant)
                || (backing.holds_zeroed() && self.waits_for_zeroes(tenant))
                || (is_short && backing.leaving() > 0);
            if due {
                self.sync_backing(io, tenant);
            }
        }
    }

    fn waits_for_zeroes(&self, tenant: TenantId) -> bool {
        self.waiting.zeroed.iter().any(|(other, _)| *other == tenant)
    }

    /// Makes what was appended to the log durable; before that, what was zeroed must be gone.
    pub(super) fn sync_log(&mut self, io: &mut impl Io, tenant: TenantId, waiter: Waiter) {
        let backing = self.volumes.backing(tenant);
        if backing.has_failed() || self.content.failed.is_some() {
            self.fail_waiter(waiter);
        } else if backing.holds_zeroed() {
            self.waiting.zeroed.push((tenant, waiter));
        } else {
            let caller = match waiter {
                Waiter::Step(step) => u64::from(step.0),
                Waiter::Request(open) => u64::from(open.0) | SYNC_REQUEST,
            };
            self.content.log.sync(io, caller);
        }
    }

    /// A sync of the log is over.
    pub(super) fn log_synced(&mut self, caller: u64, result: Result<(), LogError>) {
        if caller == SYNC_ALONE {
            return;
        }
        let waiter = match caller & SYNC_REQUEST {
            0 => Waiter::Step(StepId(caller as u32)),
            _ => Waiter::Request(OpenId(caller as u32)),
        };
        match (result, waiter) {
            (Err(_), waiter) => self.fail_waiter(waiter),
            (Ok(()), Waiter::Step(step)) => self.decisions.steps.finish(step, Outcome::Done),
            (Ok(()), Waiter::Request(open)) => self.answer(open, None),
        }
    }

    /// A sync of a backing device has served a waiter.
    pub(super) fn backing_is_durable(&mut self, io: &mut impl Io, waiter: Waiter) {
        match waiter {
            Waiter::Step(step) => self.decisions.steps.finish(step, Outcome::Done),
            Waiter::Request(open) => self.make_log_durable(io, open),
        }
    }

    /// All steps of one of a request's plans are done.
    pub(super) fn plan_answered(&mut self, io: &mut impl Io, open: OpenId, failed: bool) {
        let Some(request) = self.under_way.request(open) else { return };
        request.plans -= 1;
        if failed {
            request.error = Some(IoError::IO);
        }
        if request.plans > 0 {
            return;
        }
        let (group, error) = (request.group, request.error);
        let (tenant, reserved) = (request.request.tenant, request.reserved);
        self.waiting.release_reserved(self.content.streams.pool(tenant), reserved);
        if error.is_some() {
            self.answer(open, error);
        } else if group > self.content.log.written() {
            self.waiting.unwritten.insert((group, open));
        } else {
            self.written(io, open);
        }
    }

    /// The log is written up to a group.
    pub(super) fn log_written(&mut self, io: &mut impl Io, group: u64) {
        while let Some((first, open)) = self.waiting.unwritten.first().copied() {
            if first > group {
                return;
            }
            self.waiting.unwritten.pop_first();
            self.written(io, open);
        }
    }

    /// What a request has written is written: it is answered, or made durable before.
    fn written(&mut self, io: &mut impl Io, open: OpenId) {
        let Some(known) = self.under_way.request(open) else { return };
        let request = &*known;
        let (durable, tenant) = (request.request.durable, request.request.tenant);
        let wrote_through = request.wrote_through;
        let changes = !matches!(request.request.op, BlockOp::Read | BlockOp::Flush);
        // What is trimmed may hold anything it ever held, and only whole blocks of it are.
        if changes && request.request.op != BlockOp::Trim {
            self.under_way.note_written(open, self.content.failed.is_some());
        }
        self.note_unflushed(open);
        if !durable || !changes {
            return self.answer(open, None);
        }
        if let Some(known) = self.under_way.request(open) {
            known.is_written = true;
        }
        if wrote_through {
            if self.volumes.backing(tenant).has_failed() {
                return self.answer(open, Some(IoError::IO));
            }
            let waiter = Waiter::Request(open);
            if self.volumes.backing_mut(tenant).wait(waiter).is_none() {
                return;
            }
        }
        self.make_log_durable(io, open);
    }

    fn make_log_durable(&mut self, io: &mut impl Io, open: OpenId) {
        let durable = self.content.log.durable();
        let Some(request) = self.under_way.request(open) else { return };
        let tenant = request.request.tenant;
        if request.clears || request.group > durable {
            self.sync_log(io, tenant, Waiter::Request(open));
        } else {
            self.answer(open, None);
        }
    }

    /// A request ends, or is begun again past a log that has failed.
    pub(super) fn answer(&mut self, open: OpenId, error: Option<IoError>) {
        let Some(mut request) = self.under_way.open.try_remove(open.index()) else { return };
        request.error = request.error.or(error);
        if request.error.is_some() && self.begins_again(request.request.tenant) {
            return self.bypass.begin_again(request.order, request.again());
        }
        self.note_answer(&request);
        self.answers.push(request.answer());
    }

    /// The log has failed: nothing that waits for it will come.
    pub(super) fn fail_all(&mut self) {
        for (_, open) in std::mem::take(&mut self.waiting.unwritten) {
            self.answer(open, Some(IoError::IO));
        }
        for (_, waiter) in std::mem::take(&mut self.waiting.zeroed) {
            self.fail_waiter(waiter);
        }
    }
}
