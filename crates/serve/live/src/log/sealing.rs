//! Segments that are full: their footers follow when all of them is durable.
//!
//! For: recovery of a segment by one read, and an end in order. Must never know: which blocks are
//! wanted. Units: numbers of groups.

use super::format::Footer;
use super::heads::SegmentRecords;
use super::segments::SegmentUse;
use super::set::SegmentId;
use super::tokens::LogPurpose;
use super::writer::Log;
use crate::io::{Buffer, Io, IoOp};
use std::sync::Arc;

impl Log {
    /// Hands all open groups to their devices and ends all segments that are being filled, full or
    /// not. The log may go on.
    pub fn close(&mut self, io: &mut impl Io) {
        self.commit(io);
        (0..self.heads.count()).for_each(|head| self.close_segment(head));
    }

    /// Ends a segment that is being filled, so that it can be cleaned.
    pub fn end_segment(&mut self, io: &mut impl Io, segment: SegmentId) {
        for place in 0..self.heads.count() {
            if self.heads.get(place).is_some_and(|head| head.segment() == segment) {
                self.close_group(io, place);
                self.close_segment(place);
            }
        }
    }

    /// Whether footers of full segments are not written yet.
    pub fn is_closing(&self) -> bool {
        self.segments.iter().any(|(_, segment)| segment.usage == SegmentUse::Full)
    }

    /// Whether groups can go to a segment that was begun.
    pub fn has_begun(&self) -> bool {
        self.heads.has_begun()
    }

    /// The segment of a head is full.
    pub(super) fn close_segment(&mut self, head: usize) {
        if let Some((segment, ended)) = self.heads.end(head) {
            self.segments.note_full(segment, self.clock);
            self.full.push((segment, ended));
        }
    }

    /// Writes the footers of full segments of which all is durable.
    pub(super) fn seal_durable(&mut self, io: &mut impl Io) {
        let (segments, durable) = (&self.segments, self.flight.durable());
        let is_due = |(segment, _): &mut (SegmentId, SegmentRecords)| {
            segments.get(*segment).last_group <= durable
        };
        let due: Vec<_> = self.full.extract_if(.., is_due).collect();
        due.into_iter().for_each(|(segment, ended)| self.write_footer(io, segment, ended));
    }

    fn write_footer(&self, io: &mut impl Io, segment: SegmentId, ended: SegmentRecords) {
        let home = self.set.home(segment, self.segments.get(segment).generation);
        let SegmentRecords { groups, records } = ended;
        let footer = Footer { home, groups, records };
        let page = self.set.page(segment, self.set.footer_page());
        let buffer = Arc::new(Buffer::padded(&footer.encode()));
        let op = IoOp::Write { file: page.file, offset: page.offset, buffer };
        io.submit(self.tokens.token(LogPurpose::Footer(segment)), op);
    }
}
