//! Segments whose header page is damaged or cannot be read.
//!
//! For: dirty content that is never lost in silence, and never read where it may be too old. Must
//! never know: policies, volumes' names. Units: pages, numbers of groups. The footer and the groups
//! name the segment and its generation, too. Whether the segment was emptied is lost with the
//! header: newer records may have been dropped since. So its content is doubtful. Dirty content
//! counts as damaged, clean content as gone; the other records are true for ever. The header that
//! is written in its place says so until the segment is emptied.

use super::format::{Footer, FooterRecord, GroupHeader, Home, LogRecordKind, PAGE};
use super::heads::SegmentRecords;
use super::open::OpenSetError;
use super::recovery::{FoundHeader, LooseGroup, SegmentBytes, SegmentReading, placed};
use super::segments::SegmentUse;
use super::set::SegmentId;
use crate::io::Io;

impl<I: Io> SegmentReading<'_, I> {
    /// Reads segments whose headers are damaged. Where no segment has a header, none was written:
    /// the set was formatted and never opened. Errors: a device fails.
    pub(super) fn doubtful(&mut self, headers: &[FoundHeader]) -> Result<(), OpenSetError> {
        let generations = headers.iter().filter_map(FoundHeader::whole);
        let newest = generations.map(|header| header.home.generation).max();
        let can_read = |header: &FoundHeader| !matches!(header, FoundHeader::Unreadable);
        if newest.is_none() && headers.iter().all(can_read) {
            return Ok(());
        }
        let damaged = headers.iter().enumerate().filter(|(_, header)| header.whole().is_none());
        for (index, _) in damaged {
            let id = SegmentId::new(index);
            // A generation that the segment has not had, if nothing in it can be read.
            self.segments[index].generation = newest.unwrap_or_default();
            let pages = self.read([(id, 0, self.set.segment_pages())])?;
            if let Some(bytes) = pages.first() {
                self.take_doubtful(id, bytes);
            }
        }
        Ok(())
    }

    fn take_doubtful(&mut self, id: SegmentId, bytes: &SegmentBytes) {
        let own = |home: &Home| *home == self.set.home(id, home.generation);
        let footer = bytes.data.get(self.set.footer_page() as usize * PAGE..);
        let footer = footer.and_then(|bytes| self.footer(bytes)).filter(|footer| own(&footer.home));
        let hidden_before = self.hiding.clone();
        let of_groups = self.groups_in(id, None, bytes);
        let of_groups = of_groups.iter().map(|(header, ..)| header.home.generation).max();
        let of_footer = footer.as_ref().map(|footer| footer.home.generation);
        let Some(generation) = of_groups.max(of_footer) else { return };
        self.damaged_headers += 1;
        if of_footer == Some(generation) {
            // The footer names all groups: none is hidden.
            self.hiding = hidden_before;
        }
        let segment = &mut self.segments[id.index()];
        (segment.usage, segment.generation) = (SegmentUse::Begun, generation);
        self.doubtful.insert(id);
        if let Some(mut footer) = footer.filter(|footer| footer.home.generation == generation) {
            footer.records.iter_mut().for_each(doubt);
            self.take(id, &footer);
            self.segments[id.index()].usage = SegmentUse::Begun;
            let Footer { groups, records, .. } = footer;
            self.ended.insert(id, SegmentRecords { groups, records });
            return;
        }
        for (header, mut records, whole) in self.groups_in(id, Some(generation), bytes) {
            self.durable = self.durable.max(header.durable);
            records.iter_mut().for_each(doubt);
            let page = header.page;
            let found = LooseGroup { segment: id, records, whole, page };
            self.loose.entry(header.number).or_insert(found);
        }
    }

    /// The groups of a generation that a segment holds, or of any, wherever they stand. Each begins
    /// where the one before it ends: if that page cannot be read, a group may be hidden there.
    pub(super) fn groups_in(
        &mut self,
        id: SegmentId,
        generation: Option<u64>,
        bytes: &SegmentBytes,
    ) -> Vec<(GroupHeader, Vec<FooterRecord>, bool)> {
        let (mut found, mut page, end) = (Vec::new(), 1, self.set.footer_page());
        let mut next = page;
        while page < end {
            let start = page as usize * PAGE;
            let descriptor = &bytes.data[start..start + PAGE];
            let group = GroupHeader::decode(descriptor).filter(|(header, records)| {
                header.home == self.set.home(id, header.home.generation)
                    && generation.is_none_or(|own| own == header.home.generation)
                    && header.page == page
                    && header.block_pages == self.set.block_pages()
                    && header.pages(records) <= end - page
            });
            if page == next && bytes.unreadable.contains(&page) {
                self.hiding.insert((id, page));
            }
            page += match group {
                Some((header, records)) => {
                    let (records_with_pages, whole) = placed(&header, &records, bytes);
                    found.push((header, records_with_pages, whole));
                    next = page + header.pages(&records);
                    header.pages(&records)
                }
                None => 1,
            };
        }
        found
    }
}

/// What a record of a doubtful segment says.
pub(super) fn doubt(placed: &mut FooterRecord) {
    match placed.record.kind {
        LogRecordKind::Dirty { checksum } => {
            placed.record.kind = LogRecordKind::Damaged { checksum }
        }
        LogRecordKind::Clean { .. } => {
            (placed.record.kind, placed.page) = (LogRecordKind::Gone { blocks: 1 }, 0)
        }
        LogRecordKind::Damaged { .. }
        | LogRecordKind::Gone { .. }
        | LogRecordKind::Cleaned { .. } => {}
    }
}
