//! Operations that are done: what they bring, and what follows.
//!
//! For: the second half of each step. Must never know: how steps begin (`carry`). Units: bytes,
//! blocks.

use super::backing::Settled;
use super::content::{LogContent, Staged};
use super::request::BlockOp;
use super::server::BlockServer;
use super::stored_blocks::ContentOrigin;
use super::under_way::{LogRead, OpenId, PartKind, StepPart, StepWork, WorkId};
use crate::io::{Buffer, Io, IoError, IoOp, Output};
use crate::log::format::Version;
use cachewright_steps::{Action, ResidentId};
use cachewright_types::measure::LossReason;
use cachewright_types::{Op, TenantId, block_numbers};
use std::sync::Arc;

/// Bytes of zeroes that are written at once to a device that cannot zero.
pub(super) const ZERO_BYTES: u64 = 1 << 20;

/// Memory for such a write.
pub(super) fn zeroes() -> Arc<Buffer> {
    Arc::new(Buffer::zeroed(ZERO_BYTES as usize))
}

impl BlockServer {
    /// A part of a step is done, or all its parts are known.
    pub(super) fn end_part(&mut self, io: &mut impl Io, work: WorkId, failed: bool) {
        if let Some(work) = self.under_way.end_part(work, failed) {
            self.end_work(io, work);
        }
    }

    /// All parts of a step are done.
    fn end_work(&mut self, io: &mut impl Io, work: StepWork) {
        let StepWork { ready, open, mut failed, .. } = work;
        let residents = self.residents_of(&ready);
        if matches!(ready.action, Action::Device { .. }) {
            self.end_behind(io, open);
        }
        match ready.action {
            _ if failed => {} // `step_failed` sees to it.
            // Nothing could be read that is to be written back.
            Action::Cache { op: Op::Read, .. } if open == OpenId::NONE => {
                let staged =
                    |id: ResidentId| self.content.staged.contains_key(&(id, ready.decision));
                failed = !residents.iter().any(|(resident, _)| staged(*resident));
            }
            Action::Device { op: Op::Write, offset, length, .. } => {
                for (resident, block) in &residents {
                    let staged = self.content.staged.remove(&(*resident, ready.decision));
                    match staged {
                        Some(Staged { version: content, .. }) => {
                            let settled = Settled::Clean { number: block.number, content };
                            self.volumes.backing_mut(ready.tenant).settle_later(settled);
                        }
                        None => self.not_written_back(ready.tenant, block.number, *resident),
                    }
                }
                if residents.is_empty() {
                    let bytes = offset..offset + length;
                    let (tenant, decision) = (ready.tenant, ready.decision);
                    self.overwrite_found(BlockOp::Write, tenant, decision, &bytes, open);
                    self.written_through(ready.tenant, ready.decision, offset, length);
                }
            }
            Action::Device { op: Op::Trim, offset, length, .. } => {
                let blocks = self.whole_blocks(&(offset..offset + length));
                let request = self.under_way.request(open);
                let op = request.map_or(BlockOp::Trim, |open| open.request.op);
                let bytes = offset..offset + length;
                self.overwrite_found(op, ready.tenant, ready.decision, &bytes, open);
                let by = op.zeroes().then_some(ready.decision).filter(|_| !blocks.is_empty());
                self.end_clear(ready.tenant, ready.decision, blocks, by);
            }
            _ => {}
        }
        self.end_step(ready, failed);
        self.take_ends(io);
    }

    /// Blocks were written through: those that are cached with this content become clean.
    fn written_through(&mut self, tenant: TenantId, decision: u64, offset: u64, length: u64) {
        let content = Version::written(self.decisions.in_log(decision));
        let blocks = block_numbers(offset, length, self.block_shift);
        self.end_overwrite((tenant, decision), &blocks);
        for number in blocks {
            let known = self.decisions.resident(tenant, number);
            let stored = known.and_then(|resident| self.content.stored_blocks.get(resident));
            let same = stored.is_some_and(|stored| stored.version == content);
            if same && !self.decisions.is_dirty(tenant, number) {
                let settled = Settled::Clean { number, content };
                self.volumes.backing_mut(tenant).settle_later(settled);
            }
        }
    }

    /// A block was read from the log's device.
    pub(super) fn log_read_done(
        &mut self,
        io: &mut impl Io,
        part: u64,
        data: Buffer,
        result: Result<(), IoError>,
    ) {
        let Some(StepPart { work, kind }) = self.under_way.parts.try_remove(part as usize) else {
            return;
        };
        let (read, merged) = match kind {
            PartKind::FromLog(read) => (read, false),
            PartKind::Merge(read) => (read, true),
            _ => return self.end_part(io, work, true),
        };
        let Some(known) = self.under_way.works.get(work.index()).copied() else { return };
        let block = self.volumes.block(known.ready.tenant, read.number);
        if result.is_ok() && LogContent::is_whole(block, &data, read.checksum) {
            match merged {
                true => self.write_resident(io, work, read.resident, block, data),
                false => self.deliver(work, read.resident, block, data, read.origin),
            }
        } else {
            self.read_otherwise(io, work, known, read, merged);
        }
        self.end_part(io, work, false);
    }

    /// A block's content was not where it was read: it was moved or overwritten meanwhile, or it is
    /// damaged. A clean block is then read from the backing device; a dirty one is lost.
    fn read_otherwise(
        &mut self,
        io: &mut impl Io,
        work: WorkId,
        known: StepWork,
        read: LogRead,
        merged: bool,
    ) {
        let LogRead { resident, number, place, checksum, .. } = read;
        let Some(now) = self.content.stored_blocks.get(resident) else {
            return self.fail_block(work);
        };
        let written_back = known.open.present().is_none();
        if now.place != place && (now.checksum == checksum || !written_back) {
            let (place, checksum, origin) = (now.place, now.checksum, now.origin());
            let read = LogRead { place, checksum, origin, ..read };
            let kind = if merged { PartKind::Merge(read) } else { PartKind::FromLog(read) };
            let block = self.volumes.block(known.ready.tenant, number);
            if let Some(data) = self.content.in_memory(block, &now) {
                return match merged {
                    true => self.write_resident(io, work, resident, block, data),
                    false => self.deliver(work, resident, block, data, origin),
                };
            }
            return self.read_log(io, work, kind, now.place);
        }
        let tenant = known.ready.tenant;
        if now.place != place {
            return self.fail_block(work);
        }
        if now.dirty || written_back || self.volumes.backing(tenant).has_failed() {
            self.counts.damaged_dirty += 1;
            if now.dirty && now.group > self.content.log.durable() {
                self.losses.note(tenant);
            }
            return self.fail_block(work);
        }
        let cached = self.decisions.resident(tenant, number) == Some(resident);
        self.counts.damaged_clean += 1;
        if cached && !merged && !self.decisions.is_changing(resident) {
            self.lose(io, tenant, number, LossReason::Checksum);
        }
        let start = number << self.block_shift;
        let kind = |_| PartKind::Repair { resident, number, merged };
        self.read_backing(io, work, tenant, start..start + (1 << self.block_shift), kind);
    }

    /// An operation on a backing device is done.
    pub(super) fn backing_done(
        &mut self,
        io: &mut impl Io,
        part: u64,
        output: Output,
        error: Option<IoError>,
    ) {
        let Some(StepPart { work, kind }) = self.under_way.parts.try_remove(part as usize) else {
            return;
        };
        let Some(known) = self.under_way.works.get(work.index()).copied() else { return };
        let tenant = known.ready.tenant;
        if let Some(error) = error {
            let follows = match kind {
                PartKind::HoleToBacking { offset, length } if error == IoError::NOT_SUPPORTED => {
                    let blocks = block_numbers(offset, length, self.block_shift);
                    self.volumes.backing_mut(tenant).end_write(blocks);
                    let zeroes = Buffer::zeroed(length as usize);
                    self.write_backing(io, work, tenant, offset, zeroes);
                    true
                }
                PartKind::Clear if error == IoError::NOT_SUPPORTED => {
                    self.clear_otherwise(io, work, known)
                }
                _ => false,
            };
            let is_one_page = error.is_of_pages() && self.is_one_page(&known, kind);
            if !follows && !is_one_page {
                self.fail_volume(io, tenant);
            }
            return self.end_part(io, work, !follows);
        }
        let data = BlockServer::bytes_of(output);
        match kind {
            PartKind::FromBacking { offset } => self.fetched(&known, offset, data),
            PartKind::BeforeWrite { offset } => {
                let mut data = data;
                if let Some(request) = self.under_way.request(known.open) {
                    request.lay_over(offset, &mut data);
                }
                self.write_backing(io, work, tenant, offset, data);
            }
            PartKind::Repair { resident, number, merged } => {
                let block = self.volumes.block(tenant, number);
                let data = data.extended(1 << self.block_shift);
                match merged {
                    true => self.write_resident(io, work, resident, block, data),
                    false => {
                        self.deliver(work, resident, block, data, ContentOrigin::default());
                    }
                }
            }
            PartKind::ToBacking { offset, length } | PartKind::HoleToBacking { offset, length } => {
                let blocks = block_numbers(offset, length, self.block_shift);
                self.volumes.backing_mut(tenant).end_write(blocks);
            }
            PartKind::ZeroBytes { next } => self.write_zeroes(io, work, known, next),
            PartKind::Clear | PartKind::FromLog(_) | PartKind::Merge(_) => {}
        }
        self.end_part(io, work, false);
    }

    /// Whether an operation on a backing device has failed for a page that cannot be read: the rest
    /// of the volume is served on. Where a block is cached, a write over part of such a page takes
    /// the volume: the cache would have what the device will never have.
    fn is_one_page(&self, known: &StepWork, kind: PartKind) -> bool {
        let Action::Device { offset, length, .. } = known.ready.action else {
            return kind.reads_backing();
        };
        let mut blocks = block_numbers(offset, length, self.block_shift);
        let is_cached = |number| self.decisions.resident(known.ready.tenant, number).is_some();
        match kind {
            PartKind::BeforeWrite { .. } => !blocks.any(is_cached),
            _ => kind.reads_backing(),
        }
    }

    /// Bytes of a backing device go to the request, and are kept to be put into the log: the last
    /// block of a volume with zeroes behind the end.
    fn fetched(&mut self, known: &StepWork, offset: u64, data: Buffer) {
        if let Some(request) = self.under_way.request(known.open) {
            request.take(offset, &data);
        }
        let size = 1_usize << self.block_shift;
        let residents = self.residents_of(&known.ready);
        if residents.is_empty() {
            return;
        }
        let length = data.len().next_multiple_of(size);
        let data = data.extended(length);
        for ((resident, _), data) in residents.iter().zip(data.chunks(size)) {
            let (group, version) = (0, Version::default());
            let staged = Staged { data: Buffer::copy_of(data), group, version };
            self.content.staged.insert((*resident, known.ready.decision), staged);
        }
    }

    /// A backing device cannot trim, which is no error, or cannot zero: zeroes are written. Returns
    /// whether the step goes on.
    fn clear_otherwise(&mut self, io: &mut impl Io, work: WorkId, known: StepWork) -> bool {
        let Action::Device { offset, length, .. } = known.ready.action else { return false };
        let request = self.under_way.request(known.open);
        let zero = request.is_some_and(|open| open.request.op.zeroes());
        if zero {
            let blocks = self.whole_blocks(&(offset..offset + length));
            self.write_zeroes(io, work, known, blocks.start << self.block_shift);
        }
        true
    }

    /// Writes the next zeroes of a range.
    fn write_zeroes(&mut self, io: &mut impl Io, work: WorkId, known: StepWork, next: u64) {
        let Action::Device { offset, length, .. } = known.ready.action else { return };
        let end = self.whole_blocks(&(offset..offset + length)).end << self.block_shift;
        let end = end.min(self.volumes.bytes(known.ready.tenant));
        let count = end.saturating_sub(next).min(ZERO_BYTES);
        if count == 0 {
            return;
        }
        let part = self.under_way.begin_part(work, PartKind::ZeroBytes { next: next + count });
        let file = self.volumes.backing(known.ready.tenant).file();
        let buffer = match count {
            ZERO_BYTES => self.zeroes.get_or_insert_with(zeroes).clone(),
            _ => Arc::new(Buffer::zeroed(count as usize)),
        };
        io.submit(self.part_token(part), IoOp::Write { file, offset: next, buffer });
    }
}
