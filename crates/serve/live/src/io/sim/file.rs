//! A file in memory that knows which of its writes are durable, and what of it cannot be read.
//!
//! For: losses of power, kills of the process, devices that fail. Must never know: operations under
//! way, time. Units: bytes. What is read is what was written last; what a loss of power leaves is
//! the durable content and, of each sector of a write since the last sync, what was chosen. Sectors
//! hold their old or their new content (source: the fault model of storage that writes sectors of
//! 512 bytes wholly or not). A kill of the process loses nothing that was done. A sync that fails
//! makes a part durable; the rest no later sync does (source: Linux reports an error of a sync once
//! and takes the pages for clean; Rebello et al., ATC 2020).

use crate::io::{ALIGNMENT, FileExtent};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes that a device writes wholly or not at all.
pub const SECTOR: usize = 512;

/// What becomes of a write that was not made durable before power is lost, of one that was under
/// way when the process was killed, or of one that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing of it is there.
    Lost,
    /// All of it is there.
    Whole,
    /// Its sectors are there that are true here, by their place in the write.
    Torn(Vec<bool>),
}

impl Fate {
    /// The parts of a write of so many bytes that are there.
    fn kept(&self, bytes: usize) -> Vec<Range<usize>> {
        match self {
            Fate::Lost => Vec::new(),
            Fate::Whole => std::iter::once(0..bytes).collect(),
            Fate::Torn(kept) => {
                let sectors = kept.iter().take(bytes.div_ceil(SECTOR)).enumerate();
                let there = sectors.filter(|(_, kept)| **kept).map(|(place, _)| place * SECTOR);
                there.map(|start| start..(start + SECTOR).min(bytes)).collect()
            }
        }
    }
}

/// How long sectors cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// So many reads fail. A loss of power ends it.
    Times(u32),
    /// Until they are written to.
    UntilWritten,
    /// For ever: what is written to them cannot be read either.
    ForEver,
}

/// A write, or a part of one, since the last sync.
#[derive(Clone, Debug)]
struct Volatile {
    number: u64,
    offset: u64,
    bytes: Vec<u8>,
    /// It is done, and is read.
    done: bool,
}

type Pages = HashMap<u64, Box<[u8]>, FixedState>;

/// What is in a file, and which sectors of it cannot be read.
#[derive(Clone, Debug, Default)]
struct Content {
    pages: Pages,
    /// By the number of the sector.
    unreadable: BTreeMap<u64, Unreadable>,
}

impl Content {
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        copy_in(&mut self.pages, offset, bytes);
        if !self.unreadable.is_empty() {
            let sectors = sectors_of(offset, bytes.len());
            self.unreadable
                .retain(|sector, lasts| *lasts == Unreadable::ForEver || !sectors.contains(sector));
        }
    }

    fn write_parts(&mut self, write: &Volatile, fate: &Fate) {
        for part in fate.kept(write.bytes.len()) {
            self.write(write.offset + part.start as u64, &write.bytes[part]);
        }
    }
}

fn sectors_of(offset: u64, bytes: usize) -> Range<u64> {
    offset / SECTOR as u64..(offset + bytes as u64).div_ceil(SECTOR as u64)
}

/// A file.
#[derive(Clone, Debug, Default)]
pub struct SimFile {
    bytes: u64,
    durable: Content,
    /// In the order in which they were begun.
    volatile: Vec<Volatile>,
    visible: Content,
    /// Something is read that no sync makes durable any more: a sync of it has failed.
    given_up: bool,
}

impl SimFile {
    /// A file of zeroes.
    pub fn new(bytes: u64) -> SimFile {
        SimFile { bytes, ..SimFile::default() }
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads what was written last, also where a device could not.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        copy_out(&self.visible.pages, offset, into);
    }

    /// The extents of a range from its start on: pages of zeroes are holes.
    pub fn extents(&self, offset: u64, length: u64, max_extents: usize) -> Vec<FileExtent> {
        let (mut found, mut position, end) = (Vec::<FileExtent>::new(), offset, offset + length);
        while position < end {
            let page = self.visible.pages.get(&(position / ALIGNMENT as u64));
            let is_hole = page.is_none_or(|page| page.iter().all(|byte| *byte == 0));
            let next = (position + 1).next_multiple_of(ALIGNMENT as u64).min(end);
            let is_full = found.len() == max_extents;
            match found.last_mut() {
                Some(last) if last.is_hole == is_hole => last.bytes += next - position,
                _ if is_full => break,
                _ => found.push(FileExtent { bytes: next - position, is_hole }),
            }
            position = next;
        }
        found
    }

    /// From now on the sectors of a range cannot be read.
    pub fn make_unreadable(&mut self, offset: u64, bytes: usize, lasts: Unreadable) {
        for sector in sectors_of(offset, bytes) {
            self.visible.unreadable.insert(sector, lasts);
            if !matches!(lasts, Unreadable::Times(_)) {
                self.durable.unreadable.insert(sector, lasts);
            }
        }
    }

    /// All sectors can be read again.
    pub fn heal(&mut self) {
        self.visible.unreadable.clear();
        self.durable.unreadable.clear();
    }

    /// Whether a sync has failed: what it has not made durable ends with the process.
    pub fn has_given_up(&self) -> bool {
        self.given_up
    }

    /// Whether a read of a range fails: one that fails for a time has failed once more then.
    pub fn fails_read(&mut self, offset: u64, bytes: usize) -> bool {
        let met: Vec<u64> = self
            .visible
            .unreadable
            .range(sectors_of(offset, bytes))
            .map(|(sector, _)| *sector)
            .collect();
        for sector in &met {
            if let Some(Unreadable::Times(left)) = self.visible.unreadable.get_mut(sector) {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.visible.unreadable.remove(sector);
                }
            }
        }
        !met.is_empty()
    }

    /// A write begins, of which so much will be done: from now on a loss of power may leave it, or
    /// parts of it.
    pub fn begin_write(&mut self, number: u64, (offset, bytes): (u64, &[u8]), done: &Fate) {
        for part in done.kept(bytes.len()) {
            let offset = offset + part.start as u64;
            let bytes = bytes[part].to_vec();
            self.volatile.push(Volatile { number, offset, bytes, done: false });
        }
    }

    /// A write is done: it is read from now on.
    pub fn end_write(&mut self, number: u64) {
        for write in self.volatile.iter_mut().filter(|write| write.number == number) {
            self.visible.write(write.offset, &write.bytes);
            write.done = true;
        }
    }

    /// The writes of these numbers are durable.
    pub fn sync(&mut self, is_covered: impl Fn(u64) -> bool) {
        let durable = &mut self.durable;
        self.volatile.retain(|write| {
            let covered = is_covered(write.number);
            if covered {
                durable.write(write.offset, &write.bytes);
            }
            !covered
        });
    }

    /// A sync of the writes of these numbers fails, with a fate for each of them: what is not
    /// durable now is never durable, and is read until the process ends.
    pub fn fail_sync(
        &mut self,
        is_covered: impl Fn(u64) -> bool,
        mut fate: impl FnMut(usize) -> Fate,
    ) {
        let durable = &mut self.durable;
        let before = self.volatile.len();
        self.volatile.retain(|write| {
            let covered = is_covered(write.number);
            if covered {
                durable.write_parts(write, &fate(write.bytes.len()));
            }
            !covered
        });
        self.given_up |= self.volatile.len() < before;
    }

    /// Lengths of the writes that power can lose, in the order in which they were begun.
    pub fn volatile(&self) -> impl Iterator<Item = usize> + '_ {
        self.volatile.iter().map(|write| write.bytes.len())
    }

    /// Lengths of those of them that are under way.
    pub fn under_way(&self) -> impl Iterator<Item = usize> + '_ {
        self.volatile.iter().filter(|write| !write.done).map(|write| write.bytes.len())
    }

    /// The numbers of the writes that power can lose.
    pub fn volatile_numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.volatile.iter().map(|write| write.number)
    }

    /// Power is lost: what is left of it, with one fate for each write of [`SimFile::volatile`].
    pub fn after_crash(&self, fates: &mut impl Iterator<Item = Fate>) -> SimFile {
        let mut durable = self.durable.clone();
        for (write, fate) in self.volatile.iter().zip(fates) {
            durable.write_parts(write, &fate);
        }
        let (bytes, visible) = (self.bytes, durable.clone());
        SimFile { bytes, visible, durable, volatile: Vec::new(), given_up: false }
    }

    /// The process is killed: what is left of it, with one fate for each write of
    /// [`SimFile::under_way`]. What was done is read, and power can lose it.
    pub fn after_kill(&self, fates: &mut impl Iterator<Item = Fate>) -> SimFile {
        let mut left = SimFile { volatile: Vec::new(), given_up: false, ..self.clone() };
        if self.given_up {
            // What no sync makes durable was in memory only.
            left.visible = self.durable.clone();
        }
        for write in &self.volatile {
            let fate = if write.done { Some(Fate::Whole) } else { fates.next() };
            left.begin_write(
                write.number,
                (write.offset, &write.bytes),
                &fate.unwrap_or(Fate::Lost),
            );
            if !write.done || self.given_up {
                left.end_write(write.number);
            }
        }
        left.volatile.iter_mut().for_each(|write| write.done = true);
        left
    }
}

fn copy_out(pages: &Pages, offset: u64, into: &mut [u8]) {
    let mut position = offset;
    let mut rest = into;
    while !rest.is_empty() {
        let within = (position % ALIGNMENT as u64) as usize;
        let count = (ALIGNMENT - within).min(rest.len());
        let (part, others) = rest.split_at_mut(count);
        match pages.get(&(position / ALIGNMENT as u64)) {
            Some(page) => part.copy_from_slice(&page[within..within + count]),
            None => part.fill(0),
        }
        position += count as u64;
        rest = others;
    }
}

fn copy_in(pages: &mut Pages, offset: u64, from: &[u8]) {
    let mut position = offset;
    let mut rest = from;
    while !rest.is_empty() {
        let within = (position % ALIGNMENT as u64) as usize;
        let (part, others) = rest.split_at((ALIGNMENT - within).min(rest.len()));
        let zeroes = || vec![0; ALIGNMENT].into_boxed_slice();
        let page = pages.entry(position / ALIGNMENT as u64).or_insert_with(zeroes);
        page[within..within + part.len()].copy_from_slice(part);
        position += part.len() as u64;
        rest = others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(file: &SimFile, offset: u64) -> u8 {
        let mut found = [0];
        file.read(offset, &mut found);
        found[0]
    }

    #[test]
    fn only_synced_writes_survive_unless_chosen() {
        let mut file = SimFile::new(16 << 10);
        file.begin_write(1, (0, &[1; 4096]), &Fate::Whole);
        assert_eq!(byte(&file, 0), 0, "it is under way");
        file.end_write(1);
        assert_eq!(byte(&file, 0), 1);
        file.sync(|number| number == 1);
        file.begin_write(2, (0, &[2; 4096]), &Fate::Whole);
        file.end_write(2);
        file.begin_write(3, (4096, &[3; 8192]), &Fate::Whole);
        assert_eq!(file.volatile().collect::<Vec<_>>(), [4096, 8192]);
        let lost = file.after_crash(&mut std::iter::repeat(Fate::Lost));
        assert_eq!([byte(&lost, 0), byte(&lost, 4096)], [1, 0]);
        let torn = [Fate::Whole, Fate::Torn(vec![false, true])];
        let torn = file.after_crash(&mut torn.into_iter());
        assert_eq!([0, 4096, 4096 + 512, 8192].map(|offset| byte(&torn, offset)), [2, 0, 3, 0]);
        assert_eq!(torn.volatile().count(), 0);
    }

    /// A file with a durable page of ones, one of twos that is done, and one of threes under way.
    fn three_writes() -> SimFile {
        let mut file = SimFile::new(16 << 10);
        for number in 1..=3_u8 {
            let offset = u64::from(number - 1) * 4096;
            file.begin_write(number.into(), (offset, &[number; 4096]), &Fate::Whole);
            if number < 3 {
                file.end_write(number.into());
            }
            if number == 1 {
                file.sync(|number| number == 1);
            }
        }
        file
    }

    #[test]
    fn a_kill_loses_nothing_that_was_done_and_a_later_loss_of_power_does() {
        let file = three_writes();
        assert_eq!(file.under_way().collect::<Vec<_>>(), [4096]);
        let all = |file: &SimFile| [0, 4096, 8192, 8192 + 512].map(|offset| byte(file, offset));
        let torn = Fate::Torn(vec![false, true]);
        let killed = file.after_kill(&mut [torn].into_iter());
        assert_eq!(all(&killed), [1, 2, 0, 3]);
        assert_eq!(killed.volatile().collect::<Vec<_>>(), [4096, 512]);
        let lost = killed.after_crash(&mut std::iter::repeat(Fate::Lost));
        assert_eq!(all(&lost), [1, 0, 0, 0]);
        let mut synced = killed.clone();
        synced.sync(|number| number <= 3);
        let lost = synced.after_crash(&mut std::iter::repeat(Fate::Lost));
        assert_eq!(all(&lost), [1, 2, 0, 3]);
    }

    #[test]
    fn what_a_failed_sync_left_out_no_later_one_makes_durable() {
        let mut file = three_writes();
        file.fail_sync(|number| number == 2, |_| Fate::Torn(vec![true]));
        assert_eq!([4096, 4096 + 512].map(|offset| byte(&file, offset)), [2, 2], "it is read");
        file.sync(|number| number == 2);
        let lost = file.after_crash(&mut std::iter::repeat(Fate::Lost));
        assert_eq!([0, 4096, 4096 + 512].map(|offset| byte(&lost, offset)), [1, 2, 0]);
        let killed = file.after_kill(&mut [Fate::Whole].into_iter());
        let found = [0, 4096, 4096 + 512, 8192].map(|offset| byte(&killed, offset));
        assert_eq!(found, [1, 2, 0, 3]);
    }

    #[test]
    fn sectors_cannot_be_read_for_a_time_until_they_are_written_or_for_ever() {
        let mut file = SimFile::new(16 << 10);
        file.make_unreadable(0, 512, Unreadable::Times(2));
        file.make_unreadable(4096, 1024, Unreadable::UntilWritten);
        file.make_unreadable(8192, 4096, Unreadable::ForEver);
        assert!(file.fails_read(0, 4096) && file.fails_read(0, 8192) && !file.fails_read(0, 4096));
        file.begin_write(1, (4096, &[1; 512]), &Fate::Whole);
        file.end_write(1);
        assert!(!file.fails_read(4096, 512) && file.fails_read(4096, 4096));
        file.begin_write(2, (4096, &[2; 8192]), &Fate::Whole);
        file.end_write(2);
        assert!(!file.fails_read(4096, 4096) && file.fails_read(8192, 4096));
        let mut lost = file.after_crash(&mut std::iter::repeat(Fate::Lost));
        assert!(lost.fails_read(4096, 512) && lost.fails_read(8192, 512), "as it was");
        let mut whole = file.after_crash(&mut std::iter::repeat(Fate::Whole));
        assert!(!whole.fails_read(4096, 4096) && whole.fails_read(8192, 512));
    }
}
