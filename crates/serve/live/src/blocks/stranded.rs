//! Dirty content that is not cached: it could not be written back, and stays in the log.
//!
//! For: requests that meet such content, and the order in which it goes. Must never know: how steps
//! are carried out. Units: blocks, decisions. It goes when newer content is in the log, or when the
//! backing device has newer content durably. Until then a loss of power finds it again, so that
//! nothing older is ever read.

use super::backing::Settled;
use super::content::Stranded;
use super::request::{BlockOp, BlockRequest};
use super::server::BlockServer;
use super::under_way::OpenId;
use crate::io::IoError;
use crate::log::format::{Version, VolumeId};
use cachewright_steps::ResidentId;
use cachewright_types::{Op, Request, TenantId, block_numbers};
use std::ops::Range;

impl BlockServer {
    /// Dirty content of a block that has left could not be written back: it stays in the log,
    /// unless there is newer content.
    pub(super) fn strand(&mut self, tenant: TenantId, number: u64, resident: ResidentId) {
        let Some(stored) = self.content.take_stored(resident) else { return };
        let left = self.decisions.steps.state().placement.stay(resident).left;
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

    /// Whether the log has content of a block that came behind what left by a decision.
    fn has_newer_content(&self, tenant: TenantId, number: u64, left: u64) -> bool {
        let placement = &self.decisions.steps.state().placement;
        let cached = self.decisions.resident(tenant, number).into_iter();
        let departing = placement.departing(tenant, number..number + 1);
        let mut newer = cached.chain(departing.filter(|id| placement.stay(*id).admitted >= left));
        newer.any(|newer| self.content.stored_blocks.get(newer).is_some())
    }

    /// Whether content of a block that is not cached stays in the log.
    pub(super) fn has_stranded(&self, tenant: TenantId, number: u64) -> bool {
        self.content.stranded.contains_key(&(self.volumes.id(tenant), number))
    }

    /// Content that was to go stays, unless there is newer content: that of a block which was
    /// fetched again meanwhile. Else the cleaner would wait for ever for it to come.
    pub(super) fn strand_settled(&mut self, tenant: TenantId, settled: Settled) {
        if let Settled::Gone { number, version, place, left, checksum, group, .. } = settled {
            self.volumes.backing_mut(tenant).end_leaving(number, left);
            if self.has_newer_content(tenant, number, left) {
                return self.content.release(place);
            }
            let block = (self.volumes.id(tenant), number);
            let found = Stranded { place, version, dirty: true, left, checksum, group };
            self.content.strand_kept(block, found);
            self.counts.stranded += 1;
        }
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
            !overwritten && self.decisions.resident(request.tenant, *number).is_none()
        })
    }

    /// Whether content of a block of a range of bytes is stranded.
    pub(super) fn is_stranded(&self, tenant: TenantId, bytes: Range<u64>) -> bool {
        let blocks = block_numbers(bytes.start, bytes.end - bytes.start, self.block_shift);
        !self.content.stranded.is_empty() && !self.stranded_of(tenant, blocks).is_empty()
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
        let touched = block_numbers(bytes.start, bytes.end - bytes.start, self.block_shift);
        for number in self.stranded_of(tenant, touched) {
            let found = self.content.stranded.get(&(volume, number));
            let is_older = found.is_some_and(|found| found.left <= decision);
            if !is_older || self.decisions.resident(tenant, number).is_some() {
                continue;
            }
            if whole.contains(&number) {
                self.begin_overwrite(op, tenant, decision, number, open);
            } else if op != BlockOp::Trim {
                let request = self.under_way.request(open);
                request.into_iter().for_each(|request| request.error = Some(IoError::IO));
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
        self.content.keep(place);
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
        self.waiting.farewells.zeroing.entry(decision).or_default().push(settled);
        self.under_way.request(open).into_iter().for_each(|request| request.clears = true);
    }

    /// Blocks were written round the cache: stranded content of them may go after the next sync.
    pub(super) fn end_overwrite(&mut self, owner: (TenantId, u64), blocks: &Range<u64>) {
        let overwritten = self.take_overwritten(owner.1, blocks);
        if overwritten.is_empty() {
            return;
        }
        for settled in overwritten {
            self.settle_later(owner.0, settled);
        }
        self.volumes.backing_mut(owner.0).end_overwrite(blocks.clone(), owner.1);
    }

    /// Zeroes, or a write round the cache, have failed: content that was to go stays.
    pub(super) fn overwrite_failed(
        &mut self,
        tenant: TenantId,
        decision: u64,
        op: Op,
        offset: u64,
        length: u64,
    ) {
        let blocks = match op {
            Op::Trim => 0..u64::MAX,
            Op::Write => block_numbers(offset, length, self.block_shift),
            _ => return,
        };
        if op == Op::Trim {
            self.waiting.farewells.zero_failed(decision);
        }
        for settled in self.take_overwritten(decision, &blocks) {
            self.strand_settled(tenant, settled);
        }
    }

    /// What a decision overwrites outside the log, of some blocks.
    fn take_overwritten(&mut self, decision: u64, blocks: &Range<u64>) -> Vec<Settled> {
        let Some(waiting) = self.waiting.farewells.zeroing.get_mut(&decision) else {
            return Vec::new();
        };
        let within = |settled: &mut Settled| match settled {
            Settled::Gone { number, .. } | Settled::Clean { number, .. } => blocks.contains(number),
        };
        let taken = waiting.extract_if(.., within).collect();
        if waiting.is_empty() {
            self.waiting.farewells.zeroing.remove(&decision);
        }
        taken
    }

    /// Whether a decision brings a block's content into the log.
    fn is_stored_by(&self, tenant: TenantId, number: u64, decision: u64) -> bool {
        let placement = &self.decisions.steps.state().placement;
        let mut departing = placement.departing(tenant, number..number + 1);
        self.decisions.resident(tenant, number).is_some()
            || departing.any(|resident| placement.stay(resident).admitted == decision)
    }

    /// The blocks of a range whose content is stranded.
    fn stranded_of(&self, tenant: TenantId, blocks: Range<u64>) -> Vec<u64> {
        let volume: VolumeId = self.volumes.id(tenant);
        let range = (volume, blocks.start)..(volume, blocks.end.max(blocks.start));
        self.content.stranded.range(range).map(|((_, number), _)| *number).collect()
    }
}
