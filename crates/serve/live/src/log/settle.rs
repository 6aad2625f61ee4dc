//! The end of a recovery: what was begun when the log stopped is ended.
//!
//! For: segments that can be appended to again. Must never know: policies, volumes' names. Units:
//! blocks, numbers of groups. Segments without a footer get one with the records that count, before
//! anything is appended. It can be cut short at any point and done again: it ends the same.

use super::format::{Footer, PAGE, SegmentHeader, SegmentState, Version};
use super::heads::SegmentRecords;
use super::index::RecoveredBlock;
use super::open::{OpenSet, OpenSetError, rewrite_both};
use super::recovery::FoundLog;
use super::segments::{Segment, SegmentUse, Segments};
use super::set::{DevicePage, SegmentId};
use crate::io::{Buffer, FileId, Io, IoError, IoOp, Output, batch};
use std::collections::BTreeMap;

/// What was found, and can be gone on with.
#[derive(Clone, Debug)]
pub struct RecoveredLog {
    /// The segments.
    pub segments: Segments,
    /// The number of the last group that counts.
    pub last_group: u64,
    /// The number of the last decision that a record speaks of.
    pub last_decision: u64,
    /// The newest content of each block that is cached, oldest first.
    pub blocks: Vec<RecoveredBlock>,
    /// Groups that were found and do not count: they follow a gap.
    pub void_groups: u64,
}

/// Something to be written, and where.
type PieceToWrite = (FileId, u64, Buffer);

impl FoundLog {
    /// Marks the set if content that was durable may be gone: its volumes may hold older content.
    /// To be called before [`FoundLog::settle`], which leaves nothing that proves it. Errors: a
    /// device fails.
    pub fn mark_lost(&self, io: &mut impl Io, open: &mut OpenSet) -> Result<(), OpenSetError> {
        if !self.has_lost() || open.superblock.has_lost {
            return Ok(());
        }
        open.superblock.has_lost = true;
        rewrite_both(io, open)
    }

    /// Ends what was begun. Errors: a device fails.
    pub fn settle(mut self, io: &mut impl Io) -> Result<RecoveredLog, OpenSetError> {
        self.sync_all(io)?;
        self.write_ends(io)?;
        self.free_dead(io)?;
        self.raise_free(io)?;
        let generations = self.segments.iter().map(|found| found.generation);
        let mut segments = Segments::new(generations, self.last_group);
        for (index, found) in self.segments.iter().enumerate() {
            segments.restore(SegmentId::new(index), *found);
        }
        let FoundLog { last_group, last_decision, blocks, void_groups, .. } = self;
        Ok(RecoveredLog { segments, last_group, last_decision, blocks, void_groups })
    }

    /// Makes what was found durable: after a stop of the program alone it may not be, and what is
    /// written from now on says that it is. Errors: a device fails.
    fn sync_all(&self, io: &mut impl Io) -> Result<(), OpenSetError> {
        let syncs = self.set.files().iter().map(|file| IoOp::Sync { file: *file }).collect();
        let mut ended = batch::run(io, syncs).into_iter().enumerate();
        let failed = |(device, result): (usize, Result<Output, IoError>)| match result {
            Ok(_) => Ok(()),
            Err(error) => Err(OpenSetError::Io { device, error }),
        };
        ended.try_for_each(failed)
    }

    /// The header page of a segment of which nothing counts.
    fn free_header(&self, id: SegmentId) -> PieceToWrite {
        self.header(id, SegmentState::Free)
    }

    fn header(&self, id: SegmentId, state: SegmentState) -> PieceToWrite {
        let Segment { generation, stream, .. } = self.segments[id.index()];
        let home = self.set.home(id, generation);
        let header = SegmentHeader { home, state, stream, emptied: self.last_group };
        let DevicePage { file, offset } = self.set.page(id, 0);
        (file, offset, Buffer::padded(&header.encode()))
    }

    /// Writes pages of segments and makes them durable, device by device. Errors: a device fails.
    fn write(
        &self,
        io: &mut impl Io,
        pieces: impl IntoIterator<Item = (SegmentId, PieceToWrite)>,
    ) -> Result<(), OpenSetError> {
        let mut by_device: BTreeMap<usize, Vec<PieceToWrite>> = BTreeMap::new();
        for (id, piece) in pieces {
            by_device.entry(self.set.device(id)).or_default().push(piece);
        }
        for (device, pieces) in by_device {
            batch::write(io, pieces).map_err(|error| OpenSetError::Io { device, error })?;
        }
        Ok(())
    }

    /// Frees segments of which nothing counts. None of them needs another, so that any part of them
    /// may be freed when power is lost. Each that is void lets others be.
    fn free_dead(&mut self, io: &mut impl Io) -> Result<(), OpenSetError> {
        loop {
            let dead = self.dead();
            if dead.is_empty() {
                return Ok(());
            }
            self.write(io, dead.iter().map(|id| (*id, self.free_header(*id))))?;
            for id in dead {
                let segment = &mut self.segments[id.index()];
                segment.usage = SegmentUse::Free;
                segment.oldest = Version(u64::MAX);
                segment.notes = (0, Version::default());
            }
        }
    }

    /// Segments of which nothing counts: no content is live, and no other segment holds content
    /// that a record of it takes away.
    fn dead(&self) -> Vec<SegmentId> {
        let all = || self.segments.iter().enumerate();
        let mut oldest: Vec<(Version, usize)> =
            all().map(|(index, segment)| (segment.oldest, index)).collect();
        oldest.sort_unstable();
        let besides = |index: usize| oldest.iter().find(|(_, other)| *other != index);
        let is_dead = |(index, segment): &(usize, &Segment)| {
            let (notes, newest_note) = segment.notes;
            let is_sealed = segment.usage == SegmentUse::Sealed && segment.live == 0;
            let needed = || besides(*index).is_some_and(|(oldest, _)| *oldest <= newest_note);
            is_sealed && !(notes > 0 && needed())
        };
        all().filter(is_dead).map(|(index, _)| SegmentId::new(index)).collect()
    }

    /// Free segments get a generation that was never used: one may have been begun without its
    /// header being there, and its groups would count when the generation is used again.
    fn raise_free(&mut self, io: &mut impl Io) -> Result<(), OpenSetError> {
        let mut headers = Vec::new();
        for index in 0..self.segments.len() {
            if self.segments[index].usage == SegmentUse::Free {
                self.segments[index].generation += 1;
                let id = SegmentId::new(index);
                headers.push((id, self.free_header(id)));
            }
        }
        self.write(io, headers)
    }

    /// Segments without a footer get one; those without a group that counts become free. Headers
    /// go last: until then groups must be found again as void, or as doubtful. Void groups
    /// are cut off first: their numbers are given again, and they must not be found
    /// when the footer is damaged later.
    fn write_ends(&mut self, io: &mut impl Io) -> Result<(), OpenSetError> {
        let (mut cuts, mut footers, mut headers) = (Vec::new(), Vec::new(), Vec::new());
        let doubtful = std::mem::take(&mut self.doubtful);
        for index in 0..self.segments.len() {
            let Segment { generation, usage, .. } = self.segments[index];
            if usage != SegmentUse::Begun {
                continue;
            }
            let id = SegmentId::new(index);
            let home = self.set.home(id, generation);
            for page in self.void.remove(&id).unwrap_or_default() {
                let DevicePage { file, offset } = self.set.page(id, page);
                cuts.push((id, (file, offset, Buffer::zeroed(PAGE))));
            }
            self.segments[index].usage = if let Some(ended) = self.loose.remove(&id) {
                let SegmentRecords { groups, records } = ended;
                let footer = Footer { home, groups, records };
                let DevicePage { file, offset } = self.set.page(id, self.set.footer_page());
                footers.push((id, (file, offset, Buffer::padded(&footer.encode()))));
                if doubtful.contains(&id) {
                    headers.push((id, self.header(id, SegmentState::Doubtful)));
                }
                SegmentUse::Sealed
            } else {
                headers.push((id, self.free_header(id)));
                SegmentUse::Free
            };
        }
        self.write(io, cuts)?;
        self.write(io, footers)?;
        self.write(io, headers)
    }
}
