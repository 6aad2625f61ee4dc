//! Steps that may begin, carried out: what goes to the log, to memory and to backing devices.
//!
//! For: the first half of each step. Must never know: how an operation ends (`parts`), which steps
//! wait for the log (`waiting`). Units: bytes, blocks.

use super::content::{LogBlock, Staged};
use super::request::BlockOp;
use super::server::BlockServer;
use super::stored_blocks::ContentOrigin;
use super::under_way::{LogRead, OpenId, PartKind, WorkId};
use super::volumes::Waiter;
use crate::io::{ALIGNMENT, Buffer, Io, IoOp};
use crate::log::format::Version;
use cachewright_steps::{Action, DeviceId, Outcome, Ready, ResidentId};
use cachewright_types::{Op, TenantId, block_numbers, whole_block_numbers};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

/// A step of a server.
pub type ReadyStep = Ready<Infallible>;

/// What is written back of a block.
#[derive(Clone, Copy)]
enum BlockToWrite<'a> {
    Nothing,
    Hole,
    Data(&'a Buffer),
}

impl<'a> BlockToWrite<'a> {
    fn data(&self) -> Option<&'a Buffer> {
        match self {
            BlockToWrite::Data(data) => Some(data),
            BlockToWrite::Nothing | BlockToWrite::Hole => None,
        }
    }

    /// Whether one operation takes two blocks that lie side by side.
    fn joins(&self, next: &BlockToWrite<'_>) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(next)
    }
}

impl BlockServer {
    /// Carries out a step, or begins to.
    pub(super) fn carry_out(&mut self, io: &mut impl Io, ready: ReadyStep) {
        let open = self.decisions.steps.note_mut(ready.id).and_then(|note| note.0.present());
        match ready.action {
            Action::WaitForSlot | Action::Decide => self.end_step(ready, false),
            Action::Pass if open.is_none() => self.end_step(ready, false),
            Action::Cache { op: Op::Read, .. } if open.is_none() => {
                self.begin_write_back(io, ready);
            }
            Action::Pass | Action::Cache { op: Op::Read, .. } => self.begin_read(io, ready, open),
            Action::Cache { .. } => self.begin_write(io, ready, open),
            Action::Fill { .. } => self.fill(io, ready),
            Action::Device { device: DeviceId::CACHE, .. } => {
                self.sync_log(io, ready.tenant, Waiter::Step(ready.id));
            }
            Action::Device { .. } if self.volumes.backing(ready.tenant).has_failed() => {
                self.end_step(ready, true);
            }
            Action::Device { op: Op::Flush, .. } => {
                let waiter = Waiter::Step(ready.id);
                if self.volumes.backing_mut(ready.tenant).wait(waiter).is_some() {
                    self.end_step(ready, false);
                }
            }
            // It has waited for a write-back that left a block of it out.
            Action::Device { op: Op::Read, offset, length, .. }
                if self.is_stranded(ready.tenant, offset..offset + length) =>
            {
                self.counts.damaged_dirty += 1;
                self.end_step(ready, true);
            }
            Action::Device { op: Op::Read, offset, length, .. } => {
                self.begin_behind(io, open);
                let work = self.begin_work(ready, open);
                let kind = |offset| PartKind::FromBacking { offset };
                self.read_backing(io, work, ready.tenant, offset..offset + length, kind);
                self.end_part(io, work, false);
            }
            Action::Device { .. } => self.hold(ready, open),
            Action::Placement(never) => match never {},
        }
    }

    /// A step ends.
    pub(super) fn end_step(&mut self, ready: ReadyStep, failed: bool) {
        let outcome = if failed { Outcome::Failed } else { Outcome::Done };
        self.decisions.steps.finish(ready.id, outcome);
    }

    /// A step has parts from now on.
    pub(super) fn begin_work(&mut self, ready: ReadyStep, open: Option<OpenId>) -> WorkId {
        self.under_way.begin_work(ready, open.unwrap_or(OpenId::NONE))
    }

    /// Reads whole pages around some bytes of a backing device, up to the end of its volume.
    pub(super) fn read_backing(
        &mut self,
        io: &mut impl Io,
        work: WorkId,
        tenant: TenantId,
        bytes: Range<u64>,
        kind: impl Fn(u64) -> PartKind,
    ) {
        let align = ALIGNMENT as u64;
        let (start, end) = (bytes.start / align * align, bytes.end.next_multiple_of(align));
        let end = end.min(self.volumes.bytes(tenant));
        let part = self.under_way.begin_part(work, kind(start));
        let buffer = Buffer::zeroed((end - start) as usize);
        let file = self.volumes.backing(tenant).file();
        io.submit(self.part_token(part), IoOp::Read { file, offset: start, buffer });
    }

    /// Writes whole pages to a backing device, up to the end of its volume.
    pub(super) fn write_backing(
        &mut self,
        io: &mut impl Io,
        work: WorkId,
        tenant: TenantId,
        offset: u64,
        mut buffer: Buffer,
    ) {
        buffer.truncate(self.volumes.bytes(tenant).saturating_sub(offset) as usize);
        let blocks = block_numbers(offset, buffer.len() as u64, self.block_shift);
        let backing = self.volumes.backing_mut(tenant);
        backing.begin_write(blocks);
        let file = backing.file();
        let length = buffer.len() as u64;
        let part = self.under_way.begin_part(work, PartKind::ToBacking { offset, length });
        let buffer = Arc::new(buffer);
        io.submit(self.part_token(part), IoOp::Write { file, offset, buffer });
    }

    /// The residents of a step with their blocks.
    pub(super) fn residents_of(&self, ready: &ReadyStep) -> Vec<(ResidentId, LogBlock)> {
        let placement = &self.decisions.steps.state().placement;
        let touched = self.decisions.steps.touched(ready.id);
        let block = |id: &ResidentId| self.volumes.block(ready.tenant, placement.stay(*id).number);
        let named = |id: &ResidentId| (*id, block(id));
        touched.iter().map(named).collect()
    }

    /// Reads blocks from the cache: for a request, or to write them back.
    pub(super) fn begin_read(&mut self, io: &mut impl Io, ready: ReadyStep, open: Option<OpenId>) {
        let work = self.begin_work(ready, open);
        for (resident, block) in self.residents_of(&ready) {
            if open.is_some() {
                self.content.stored_blocks.note_read(resident);
            }
            let failed = self.read_resident(io, work, resident, block);
            if failed {
                self.fail_block(work);
            }
        }
        self.end_part(io, work, false);
    }

    /// Reads one block of a step; returns whether it is not there.
    fn read_resident(
        &mut self,
        io: &mut impl Io,
        work: WorkId,
        resident: ResidentId,
        block: LogBlock,
    ) -> bool {
        let Some(stored) = self.content.stored_blocks.get(resident) else {
            // It was fetched, and is on its way to the log.
            let admitted = self.decisions.steps.state().placement.stay(resident).admitted;
            let fetched = self.content.staged.get(&(resident, admitted));
            let Some(data) = fetched.map(|staged| staged.data.clone()) else { return true };
            self.deliver(work, resident, block, data, ContentOrigin::default());
            return false;
        };
        if let Some(data) = self.content.in_memory(block, &stored) {
            self.deliver(work, resident, block, data, stored.origin());
            return false;
        }
        let (place, checksum) = (stored.place, stored.checksum);
        let read =
            LogRead { resident, number: block.number, place, checksum, origin: stored.origin() };
        self.read_log(io, work, PartKind::FromLog(read), place);
        false
    }

    /// Reads a block of the log from its device.
    pub(super) fn read_log(
        &mut self,
        io: &mut impl Io,
        work: WorkId,
        kind: PartKind,
        place: crate::log::Place,
    ) {
        let part = self.under_way.begin_part(work, kind);
        self.content.log.read(io, place, part);
    }

    /// Content of a block goes to the request of a step, or is kept to be written back.
    pub(super) fn deliver(
        &mut self,
        work: WorkId,
        resident: ResidentId,
        block: LogBlock,
        data: Buffer,
        origin: ContentOrigin,
    ) {
        let Some(work) = self.under_way.works.get(work.index()).copied() else { return };
        match self.under_way.request(work.open) {
            Some(request) => {
                let rest = request.take_buffer(block.number << self.block_shift, data);
                self.content.log.give_back(rest);
            }
            None => {
                let ContentOrigin { group, version } = origin;
                let staged = Staged { data, group, version };
                self.content.staged.insert((resident, work.ready.decision), staged);
            }
        }
    }

    /// Writes blocks to the cache: whole, or over what they hold.
    fn begin_write(&mut self, io: &mut impl Io, ready: ReadyStep, open: Option<OpenId>) {
        let work = self.begin_work(ready, open);
        let size = 1_u64 << self.block_shift;
        let volume_bytes = self.volumes.bytes(ready.tenant);
        let version = Version::written(self.decisions.in_log(ready.decision));
        for (resident, block) in self.residents_of(&ready) {
            let start = block.number << self.block_shift;
            let end = (start + size).min(volume_bytes);
            let request = open.and_then(|open| self.under_way.open.get_mut(open.index()));
            if let Some(request) = request
                && let Some(data) = request.written(start..end)
            {
                let padded =
                    (end - start < size).then(|| Buffer::copy_of(data).extended(size as usize));
                let data = padded.as_deref().unwrap_or(data);
                match self.content.store(io, resident, block, version, data, true) {
                    Ok(group) => request.group = request.group.max(group),
                    Err(_) => self.fail_work(work),
                }
                continue;
            }
            let Some(stored) = self.content.stored_blocks.get(resident) else {
                self.fail_work(work);
                continue;
            };
            if let Some(data) = self.content.in_memory(block, &stored) {
                self.write_resident(io, work, resident, block, data);
            } else {
                let (place, checksum) = (stored.place, stored.checksum);
                let read = LogRead {
                    resident,
                    number: block.number,
                    place,
                    checksum,
                    origin: stored.origin(),
                };
                self.read_log(io, work, PartKind::Merge(read), place);
            }
        }
        self.end_part(io, work, false);
    }

    /// Lays the request's bytes over a block's content, which goes to the log.
    pub(super) fn write_resident(
        &mut self,
        io: &mut impl Io,
        work: WorkId,
        resident: ResidentId,
        block: LogBlock,
        mut data: Buffer,
    ) {
        let Some(known) = self.under_way.works.get(work.index()).copied() else { return };
        let Some(request) = self.under_way.request(known.open) else {
            self.fail_work(work);
            return;
        };
        request.lay_over(block.number << self.block_shift, &mut data);
        let makes_holes = request.request.op == BlockOp::Zero;
        let version = Version::written(self.decisions.in_log(known.ready.decision));
        if makes_holes {
            self.content.note_zeroed(resident, version);
        }
        let stored = self.content.store(io, resident, block, version, &data, true);
        match (stored, self.under_way.request(known.open)) {
            (Ok(group), Some(request)) => request.group = request.group.max(group),
            _ => self.fail_work(work),
        }
    }

    /// Puts fetched blocks into the log. They are dirty there until the backing device has them
    /// durably.
    fn fill(&mut self, io: &mut impl Io, ready: ReadyStep) {
        let version = Version::filled(self.decisions.in_log(ready.decision));
        let mut failed = false;
        for (resident, block) in self.residents_of(&ready) {
            let fetched = self.content.staged.remove(&(resident, ready.decision));
            let Some(Staged { data, .. }) = fetched else {
                failed = true;
                continue;
            };
            let backing = self.volumes.backing_mut(ready.tenant);
            let dirty = backing.is_unsynced(block.number);
            if dirty {
                let number = block.number;
                backing.settle_later(super::backing::Settled::Clean { number, content: version });
            }
            failed |= self.content.store(io, resident, block, version, &data, dirty).is_err();
        }
        self.end_step(ready, failed);
    }

    /// Writes to a backing device: nothing holds the step any more.
    pub(super) fn begin_device(
        &mut self,
        io: &mut impl Io,
        ready: ReadyStep,
        open: Option<OpenId>,
    ) {
        let Action::Device { op, offset, length, .. } = ready.action else { return };
        self.begin_behind(io, open);
        let work = self.begin_work(ready, open);
        let tenant = ready.tenant;
        let residents = self.residents_of(&ready);
        if op == Op::Trim {
            self.clear_backing(io, work, tenant, offset..offset + length);
        } else if !residents.is_empty() {
            self.write_back(io, work, tenant, offset, &residents);
        } else if let Some(request) = open.and_then(|open| self.under_way.request(open)) {
            request.wrote_through = true;
            let aligned = (offset | length).is_multiple_of(ALIGNMENT as u64);
            if aligned && request.request.op == BlockOp::Zero {
                self.write_hole(io, work, tenant, offset..offset + length);
            } else if aligned {
                let mut buffer = Buffer::zeroed(length as usize);
                request.lay_over(offset, &mut buffer);
                self.write_backing(io, work, tenant, offset, buffer);
            } else {
                let kind = |offset| PartKind::BeforeWrite { offset };
                self.read_backing(io, work, tenant, offset..offset + length, kind);
            }
        }
        self.end_part(io, work, false);
    }

    /// Writes staged blocks back: those that lie side by side at once.
    fn write_back(
        &mut self,
        io: &mut impl Io,
        work: WorkId,
        tenant: TenantId,
        offset: u64,
        residents: &[(ResidentId, LogBlock)],
    ) {
        let Some(decision) = self.under_way.works.get(work.index()).map(|work| work.ready.decision)
        else {
            return;
        };
        let size = 1_usize << self.block_shift;
        let staged = |resident| self.content.staged.get(&(resident, decision));
        let content = |(resident, _): &(ResidentId, LogBlock)| match staged(*resident) {
            // What could not be read is left out.
            None => BlockToWrite::Nothing,
            Some(staged) if self.content.is_hole(*resident, staged) => BlockToWrite::Hole,
            Some(staged) => BlockToWrite::Data(&staged.data),
        };
        let content: Vec<BlockToWrite<'_>> = residents.iter().map(content).collect();
        let (mut runs, mut start) = (Vec::new(), offset);
        for run in content.chunk_by(BlockToWrite::joins) {
            let bytes = run.len() * size;
            match run[0] {
                BlockToWrite::Nothing => {}
                BlockToWrite::Hole => runs.push((start, bytes, None)),
                BlockToWrite::Data(_) => {
                    let mut buffer = Buffer::zeroed(bytes);
                    let data = run.iter().filter_map(BlockToWrite::data);
                    let targets = buffer.chunks_mut(size).zip(data);
                    targets.for_each(|(target, data)| target.copy_from_slice(data));
                    runs.push((start, bytes, Some(buffer)));
                }
            }
            start += bytes as u64;
        }
        for (start, bytes, buffer) in runs {
            match buffer {
                Some(buffer) => self.write_backing(io, work, tenant, start, buffer),
                None => self.write_hole(io, work, tenant, start..start + bytes as u64),
            }
        }
    }

    /// Writes blocks of zeroes back as a hole.
    fn write_hole(&mut self, io: &mut impl Io, work: WorkId, tenant: TenantId, bytes: Range<u64>) {
        let offset = bytes.start;
        let length = bytes.end.min(self.volumes.bytes(tenant)).saturating_sub(offset);
        let blocks = block_numbers(offset, length, self.block_shift);
        let backing = self.volumes.backing_mut(tenant);
        backing.begin_write(blocks);
        let file = backing.file();
        let part = self.under_way.begin_part(work, PartKind::HoleToBacking { offset, length });
        io.submit(self.part_token(part), IoOp::Zero { file, offset, length });
    }

    /// Trims or zeroes the whole blocks of a range.
    fn clear_backing(
        &mut self,
        io: &mut impl Io,
        work: WorkId,
        tenant: TenantId,
        bytes: Range<u64>,
    ) {
        let blocks = self.whole_blocks(&bytes);
        let Some(known) = self.under_way.works.get(work.index()).copied() else { return };
        let Some(request) = self.under_way.request(known.open).filter(|_| !blocks.is_empty())
        else {
            return;
        };
        request.wrote_through = true;
        let op = request.request.op;
        let (offset, end) = (blocks.start << self.block_shift, blocks.end << self.block_shift);
        let length = end.min(self.volumes.bytes(tenant)) - offset;
        let backing = self.volumes.backing_mut(tenant);
        backing.begin_clear(blocks);
        let file = backing.file();
        let part = self.under_way.begin_part(work, PartKind::Clear);
        let op = match op {
            BlockOp::Zero => IoOp::Zero { file, offset, length },
            BlockOp::Provision => IoOp::Provision { file, offset, length },
            _ => IoOp::Discard { file, offset, length },
        };
        io.submit(self.part_token(part), op);
    }

    /// The blocks that lie wholly in a range of bytes.
    pub(super) fn whole_blocks(&self, bytes: &Range<u64>) -> Range<u64> {
        whole_block_numbers(bytes.start, bytes.end.saturating_sub(bytes.start), self.block_shift)
    }

    /// A block of a step cannot be read. What needs all of them fails; a write-back goes on with
    /// the others.
    pub(super) fn fail_block(&mut self, work: WorkId) {
        if let Some(known) = self.under_way.works.get_mut(work.index()) {
            known.failed |= known.open.present().is_some();
        }
    }

    /// A part of a step has failed.
    pub(super) fn fail_work(&mut self, work: WorkId) {
        if let Some(work) = self.under_way.works.get_mut(work.index()) {
            work.failed = true;
        }
    }
}
