//! A file in memory that knows which of its writes are durable.
//!
//! For: losses of power. Must never know: operations under way, time. Units: bytes. What is read is
//! what was written last; what a loss of power leaves is the durable content and, of each sector of
//! a write since the last sync, what was chosen. Sectors hold their old or their new content
//! (source: the fault model of storage that writes sectors of 512 bytes wholly or not).

use crate::io::{ALIGNMENT, FileExtent};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Bytes that a device writes wholly or not at all.
pub const SECTOR: usize = 512;

/// What becomes of a write that was not made durable before power is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing of it is there.
    Lost,
    /// All of it is there.
    Whole,
    /// Its sectors are there that are true here, by their place in the write.
    Torn(Vec<bool>),
}

/// A write since the last sync.
#[derive(Clone, Debug)]
struct Volatile {
    number: u64,
    offset: u64,
    bytes: Vec<u8>,
}

type Pages = HashMap<u64, Box<[u8]>, FixedState>;

/// A file.
#[derive(Clone, Debug, Default)]
pub struct SimFile {
    bytes: u64,
    durable: Pages,
    /// In the order in which they were begun.
    volatile: Vec<Volatile>,
    visible: Pages,
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

    /// Reads what was written last.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        copy_out(&self.visible, offset, into);
    }

    /// The extents of a range from its start on: pages of zeroes are holes.
    pub fn extents(&self, offset: u64, length: u64, max_extents: usize) -> Vec<FileExtent> {
        let (mut found, mut position, end) = (Vec::<FileExtent>::new(), offset, offset + length);
        while position < end {
            let page = self.visible.get(&(position / ALIGNMENT as u64));
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

    /// A write begins: from now on a loss of power may leave it, or parts of it.
    pub fn begin_write(&mut self, number: u64, offset: u64, bytes: &[u8]) {
        self.volatile.push(Volatile { number, offset, bytes: bytes.to_vec() });
    }

    /// A write is done: it is read from now on.
    pub fn end_write(&mut self, number: u64) {
        let found = self.volatile.iter().find(|write| write.number == number);
        if let Some(write) = found {
            copy_in(&mut self.visible, write.offset, &write.bytes);
        }
    }

    /// The writes of these numbers are durable.
    pub fn sync(&mut self, is_covered: impl Fn(u64) -> bool) {
        let durable = &mut self.durable;
        self.volatile.retain(|write| {
            let covered = is_covered(write.number);
            if covered {
                copy_in(durable, write.offset, &write.bytes);
            }
            !covered
        });
    }

    /// Lengths of the writes that power can lose, in the order in which they were begun.
    pub fn volatile(&self) -> impl Iterator<Item = usize> + '_ {
        self.volatile.iter().map(|write| write.bytes.len())
    }

    /// Power is lost: what is left of it, with one fate for each write of [`SimFile::volatile`].
    pub fn after_crash(&self, fates: &mut impl Iterator<Item = Fate>) -> SimFile {
        let mut durable = self.durable.clone();
        for (write, fate) in self.volatile.iter().zip(fates) {
            match fate {
                Fate::Lost => {}
                Fate::Whole => copy_in(&mut durable, write.offset, &write.bytes),
                Fate::Torn(kept) => {
                    for (place, sector) in write.bytes.chunks(SECTOR).enumerate() {
                        if kept.get(place).copied().unwrap_or_default() {
                            let offset = write.offset + (place * SECTOR) as u64;
                            copy_in(&mut durable, offset, sector);
                        }
                    }
                }
            }
        }
        SimFile { bytes: self.bytes, visible: durable.clone(), durable, volatile: Vec::new() }
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
        file.begin_write(1, 0, &[1; 4096]);
        assert_eq!(byte(&file, 0), 0, "it is under way");
        file.end_write(1);
        assert_eq!(byte(&file, 0), 1);
        file.sync(|number| number == 1);
        file.begin_write(2, 0, &[2; 4096]);
        file.end_write(2);
        file.begin_write(3, 4096, &[3; 8192]);
        assert_eq!(file.volatile().collect::<Vec<_>>(), [4096, 8192]);
        let lost = file.after_crash(&mut std::iter::repeat(Fate::Lost));
        assert_eq!([byte(&lost, 0), byte(&lost, 4096)], [1, 0]);
        let torn = [Fate::Whole, Fate::Torn(vec![false, true])];
        let torn = file.after_crash(&mut torn.into_iter());
        assert_eq!([0, 4096, 4096 + 512, 8192].map(|offset| byte(&torn, offset)), [2, 0, 3, 0]);
        assert_eq!(torn.volatile().count(), 0);
    }
}
