//! What the sectors of rehearsed volumes may read as.
//!
//! Every write has a number of its own, its version, and its bytes repeat that number. A sector
//! then says which write it holds. A read must find the last write that was answered before the
//! read began, or a later one; a kill changes nothing about that. A sector that was trimmed, or of
//! which a part was written, may read as anything until all of it is written. Units: bytes.

use super::contents::{WORD, fill_with, first_word};
use cachewright_live::io::Buffer;
use cachewright_live::io::sim::SECTOR;
use cachewright_types::TenantId;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// Found content that is described in full; more is only counted.
const DESCRIBED: usize = 8;

/// What is known of a sector.
#[derive(Clone, Copy, Debug, Default)]
struct Sector {
    /// The last version that was answered.
    answered: u64,
    /// The last version that was sent.
    sent: u64,
    /// The last trim, or write to a part, by its place among versions.
    blurred: u64,
}

/// The versions of all sectors; see the top of the file.
#[derive(Debug, Default)]
pub struct Versions {
    sectors: HashMap<(TenantId, u64), Sector, FixedState>,
    /// Versions that were given out.
    made: u64,
    /// Whether sectors are known, which takes memory for each that is written.
    is_checking: bool,
    checked: u64,
    violations: u64,
    described: Vec<String>,
}

/// What a read must find at least, by sector; empty where nothing is checked.
#[derive(Clone, Debug, Default)]
pub struct Expected(Vec<u64>);

impl Versions {
    /// Numbers for writes; with `is_checking` reads are checked.
    pub fn new(is_checking: bool) -> Versions {
        Versions { is_checking, ..Versions::default() }
    }

    /// Sectors that were checked, and those of them that held something else than they should.
    pub fn found(&self) -> (u64, u64) {
        (self.checked, self.violations)
    }

    /// The first that were wrong, in words.
    pub fn described(&self) -> &[String] {
        &self.described
    }

    /// The version of a write or trim that is sent.
    pub fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// The data of a write from `offset` on.
    pub fn data(version: u64, offset: u64, length: usize) -> Buffer {
        let mut data = Buffer::zeroed(length);
        // A word lies at the same bytes of a sector wherever a write begins.
        let turned = version.rotate_right((offset % WORD as u64) as u32 * u8::BITS);
        fill_with(&mut data, turned);
        data
    }

    /// A write is sent.
    pub fn write_sent(&mut self, tenant: TenantId, offset: u64, length: u64, version: u64) {
        for (number, is_whole) in self.touched(offset, length) {
            let sector = self.sectors.entry((tenant, number)).or_default();
            match is_whole {
                true => sector.sent = sector.sent.max(version),
                false => sector.blurred = sector.blurred.max(version),
            }
        }
    }

    /// A write was answered.
    pub fn write_answered(&mut self, tenant: TenantId, offset: u64, length: u64, version: u64) {
        for (number, is_whole) in self.touched(offset, length) {
            if is_whole && let Some(sector) = self.sectors.get_mut(&(tenant, number)) {
                sector.answered = sector.answered.max(version);
            }
        }
    }

    /// A trim is sent.
    pub fn trim_sent(&mut self, tenant: TenantId, offset: u64, length: u64, version: u64) {
        if !self.is_checking {
            return;
        }
        let numbers = numbers(offset, length);
        // A volume may be trimmed whole, of which few sectors were written.
        for ((owner, number), sector) in &mut self.sectors {
            if *owner == tenant && numbers.contains(number) {
                sector.blurred = sector.blurred.max(version);
            }
        }
    }

    /// What a read that is sent now must find at least.
    pub fn expected(&self, tenant: TenantId, offset: u64, length: u64) -> Expected {
        let answered = |number| {
            let sector = self.sectors.get(&(tenant, number));
            sector.map_or(0, |sector| sector.answered)
        };
        match self.is_checking {
            true => Expected(numbers(offset, length).map(answered).collect()),
            false => Expected::default(),
        }
    }

    /// Compares what a read has brought.
    pub fn check(&mut self, tenant: TenantId, offset: u64, data: &[u8], expected: &Expected) {
        let range = offset..offset + data.len() as u64;
        for (number, least) in numbers(offset, data.len() as u64).zip(&expected.0) {
            let own = number * SECTOR as u64..(number + 1) * SECTOR as u64;
            let sector = self.sectors.get(&(tenant, number)).copied().unwrap_or_default();
            if own.start < range.start || own.end > range.end || sector.blurred > *least {
                continue;
            }
            self.checked += 1;
            let bytes = &data[(own.start - offset) as usize..(own.end - offset) as usize];
            let word = first_word(bytes);
            let repeats = bytes[WORD..] == bytes[..SECTOR - WORD];
            if !repeats || word < *least || word > sector.sent {
                self.violations += 1;
                if self.described.len() < DESCRIBED {
                    let found = if repeats { format!("write {word}") } else { "a mix".to_owned() };
                    self.described.push(format!(
                        "tenant {}: byte {}: found {found}, expected write {least} to {}",
                        tenant.index() + 1,
                        own.start,
                        sector.sent
                    ));
                }
            }
        }
    }

    /// Ranges of bytes of all sectors that were written, by tenant, each of at most `most` bytes.
    pub fn written(&self, most: u64) -> Vec<(TenantId, Range<u64>)> {
        let mut all: Vec<(TenantId, u64)> = self.sectors.keys().copied().collect();
        all.sort_unstable();
        let mut ranges: Vec<(TenantId, Range<u64>)> = Vec::new();
        for (tenant, number) in all {
            let own = number * SECTOR as u64..(number + 1) * SECTOR as u64;
            match ranges.last_mut() {
                Some((owner, range))
                    if *owner == tenant
                        && range.end == own.start
                        && own.end - range.start <= most =>
                {
                    range.end = own.end;
                }
                _ => ranges.push((tenant, own)),
            }
        }
        ranges
    }

    /// The sectors of a range, and whether all of each is in it; none where nothing is checked.
    fn touched(&self, offset: u64, length: u64) -> impl Iterator<Item = (u64, bool)> + use<> {
        let sector = SECTOR as u64;
        let whole = offset.div_ceil(sector)..(offset + length) / sector;
        let all = if self.is_checking { numbers(offset, length) } else { 0..0 };
        all.map(move |number| (number, whole.contains(&number)))
    }
}

/// The sectors that a range touches.
fn numbers(offset: u64, length: u64) -> Range<u64> {
    offset / SECTOR as u64..(offset + length).div_ceil(SECTOR as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: TenantId = TenantId(0);

    /// Whether the content of a version is accepted at sectors 0 and 1 of tenant 0.
    fn accepts(versions: &mut Versions, version: u64, expected: &Expected) -> bool {
        let before = versions.found().1;
        let data = Versions::data(version, 0, 1024);
        versions.check(ONE, 0, &data, expected);
        versions.found().1 == before
    }

    #[test]
    fn a_read_finds_what_was_answered_before_it_or_what_was_sent_later() {
        let mut versions = Versions::new(true);
        let first = versions.next();
        versions.write_sent(ONE, 0, 1024, first);
        let early = versions.expected(ONE, 0, 1024);
        assert!(accepts(&mut versions, 0, &early) && accepts(&mut versions, first, &early));
        versions.write_answered(ONE, 0, 1024, first);
        let later = versions.expected(ONE, 0, 1024);
        assert!(accepts(&mut versions, 0, &early) && !accepts(&mut versions, 0, &later));
        assert!(!accepts(&mut versions, first + 1, &later), "it was not sent");
        let second = versions.next();
        versions.write_sent(ONE, 512, 512, second);
        assert!(!accepts(&mut versions, second, &later), "only one of the sectors may hold it");
        let (_, violations) = versions.found();
        assert_eq!((violations, versions.described().len()), (5, 5));
        assert!(versions.described()[0].contains("found write 0, expected write 1 to 1"));
    }

    #[test]
    fn what_is_trimmed_or_written_in_part_reads_as_anything_until_it_is_written() {
        let mut versions = Versions::new(true);
        let first = versions.next();
        versions.write_sent(ONE, 0, 1024, first);
        versions.write_answered(ONE, 0, 1024, first);
        let (trim, part) = (versions.next(), versions.next());
        versions.trim_sent(ONE, 0, 512, trim);
        versions.write_sent(ONE, 600, 100, part);
        let expected = versions.expected(ONE, 0, 1024);
        assert!(accepts(&mut versions, 99, &expected));
        let last = versions.next();
        versions.write_sent(ONE, 0, 1024, last);
        versions.write_answered(ONE, 0, 1024, last);
        let expected = versions.expected(ONE, 0, 1024);
        assert!(
            !accepts(&mut versions, first, &expected) && accepts(&mut versions, last, &expected)
        );
    }

    #[test]
    fn words_lie_at_the_same_bytes_wherever_a_write_begins() {
        let version = 0x0102_0304_0506_0708;
        let whole = Versions::data(version, 0, 1024);
        for offset in [1, 7, 8, 13, 512] {
            let part = Versions::data(version, offset, 256);
            assert_eq!(part[..], whole[offset as usize..offset as usize + 256], "{offset}");
        }
    }

    #[test]
    fn what_was_written_is_read_back_in_ranges() {
        let mut versions = Versions::new(true);
        for (tenant, offset, length) in [(0, 0, 2048), (0, 4096, 512), (1, 512, 512)] {
            let version = versions.next();
            versions.write_sent(TenantId(tenant), offset, length, version);
        }
        let found = versions.written(1024);
        let expected = [(0, 0..1024), (0, 1024..2048), (0, 4096..4608), (1, 512..1024)];
        assert_eq!(found, expected.map(|(tenant, range)| (TenantId(tenant), range)));
    }
}
