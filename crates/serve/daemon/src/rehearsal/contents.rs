//! What the files of a rehearsal hold, in little memory.
//!
//! A rehearsed write repeats one word of 8 bytes (`versions`), so that a page takes one word, or
//! one for each of its sectors. What the log writes of its own (headers, descriptors, footers) is
//! kept byte by byte, without the zeroes at its end. A page that was never written takes nothing,
//! and reads as zeroes. Units: bytes.

use cachewright_live::io::ALIGNMENT;
use cachewright_live::io::sim::SECTOR;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// Bytes of a word.
pub const WORD: usize = 8;
/// Sectors of a page.
const SECTORS: usize = ALIGNMENT / SECTOR;
/// Memory of a page that repeats one word: its entry of the table, of which seven of eight places
/// are taken at most, and half as many after it has grown.
pub const PAGE_MEMORY: u64 = 48;

/// A page of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Page {
    /// One word, again and again.
    Word(u64),
    /// One word in each sector.
    Sectors(Box<[u64; SECTORS]>),
    /// Anything; what is missing at its end is zero.
    Bytes(Box<[u8]>),
}

impl Page {
    /// The shortest form of a page; nothing for zeroes.
    fn of(bytes: &[u8; ALIGNMENT]) -> Option<Page> {
        let mut words = [0; SECTORS];
        for (word, sector) in words.iter_mut().zip(bytes.chunks_exact(SECTOR)) {
            // A sector that is equal to itself one word further on repeats its first word.
            if sector[WORD..] != sector[..SECTOR - WORD] {
                let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                return Some(Page::Bytes(bytes[..length].into()));
            }
            *word = first_word(sector);
        }
        match words {
            [first, ..] if words.iter().any(|word| *word != first) => {
                Some(Page::Sectors(Box::new(words)))
            }
            [0, ..] => None,
            [first, ..] => Some(Page::Word(first)),
        }
    }

    /// Fills a page with it.
    fn fill(&self, into: &mut [u8; ALIGNMENT]) {
        match self {
            Page::Word(word) => fill_with(into, *word),
            Page::Sectors(words) => {
                let sectors = into.chunks_exact_mut(SECTOR);
                sectors.zip(words.iter()).for_each(|(sector, word)| fill_with(sector, *word));
            }
            Page::Bytes(bytes) => {
                into[..bytes.len()].copy_from_slice(bytes);
                into[bytes.len()..].fill(0);
            }
        }
    }

    /// Bytes of memory beside its entry of the table.
    fn beside(&self) -> u64 {
        match self {
            Page::Word(_) => 0,
            Page::Sectors(words) => size_of_val(&**words) as u64,
            Page::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// The first word of some bytes.
pub fn first_word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// Repeats a word from the first byte on, as far as the bytes go.
pub fn fill_with(bytes: &mut [u8], word: u64) {
    let word = word.to_le_bytes();
    for part in bytes.chunks_mut(WORD) {
        part.copy_from_slice(&word[..part.len()]);
    }
}

/// What is in a file.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pages: HashMap<u64, Page, FixedState>,
    /// Memory of pages beside their entries.
    beside: u64,
}

impl Contents {
    /// Bytes of memory that it takes.
    pub fn memory(&self) -> u64 {
        self.pages.len() as u64 * PAGE_MEMORY + self.beside
    }

    /// Fills a buffer with what lies from a byte on.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        let mut page = [0; ALIGNMENT];
        let mut rest = into;
        for (number, within) in parts(offset, rest.len()) {
            let (part, others) = rest.split_at_mut(within.len());
            match self.pages.get(&number) {
                Some(found) => {
                    found.fill(&mut page);
                    part.copy_from_slice(&page[within]);
                }
                None => part.fill(0),
            }
            rest = others;
        }
    }

    /// Writes bytes from a byte of the file on.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut page = [0; ALIGNMENT];
        let mut rest = bytes;
        for (number, within) in parts(offset, rest.len()) {
            let (part, others) = rest.split_at(within.len());
            if within.len() < ALIGNMENT {
                self.read(number * ALIGNMENT as u64, &mut page);
            }
            page[within].copy_from_slice(part);
            self.set(number, Page::of(&page));
            rest = others;
        }
    }

    /// Lets a range read as zeroes.
    pub fn clear(&mut self, offset: u64, length: u64) {
        let end = offset + length;
        let whole = offset.div_ceil(ALIGNMENT as u64)..end / ALIGNMENT as u64;
        // A volume may be trimmed whole, of which few pages are there.
        if whole.end.saturating_sub(whole.start) > self.pages.len() as u64 {
            let inside = |number: &u64| whole.contains(number);
            let gone: Vec<u64> = self.pages.keys().copied().filter(inside).collect();
            gone.into_iter().for_each(|number| self.set(number, None));
        } else {
            whole.clone().for_each(|number| self.set(number, None));
        }
        let edges = match whole.start < whole.end {
            true => [offset..whole.start * ALIGNMENT as u64, whole.end * ALIGNMENT as u64..end],
            false => [offset..end, end..end],
        };
        for edge in edges {
            let zeroes = [0; 2 * ALIGNMENT];
            let bytes = (edge.end - edge.start) as usize;
            self.write(edge.start, &zeroes[..bytes]);
        }
    }

    fn set(&mut self, number: u64, page: Option<Page>) {
        let beside = page.as_ref().map_or(0, Page::beside);
        let before = match page {
            Some(page) => self.pages.insert(number, page),
            None => self.pages.remove(&number),
        };
        self.beside = self.beside + beside - before.as_ref().map_or(0, Page::beside);
    }
}

/// The parts of some bytes from an offset on by page: its number, and the bytes of it.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let end = offset + length as u64;
    let page = ALIGNMENT as u64;
    (offset / page..end.div_ceil(page)).filter_map(move |number| {
        let first = offset.max(number * page) - number * page;
        let last = end.min((number + 1) * page) - number * page;
        (first < last).then_some((number, first as usize..last as usize))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    const BYTES: usize = 8 * ALIGNMENT;

    fn all(contents: &Contents) -> Vec<u8> {
        let mut found = vec![7; BYTES];
        contents.read(0, &mut found);
        found
    }

    #[test]
    fn a_page_takes_the_shortest_form_that_has_all_of_it() {
        let mut contents = Contents::default();
        let mut page = [0; ALIGNMENT];
        contents.write(0, &page);
        assert_eq!(contents.memory(), 0, "zeroes take nothing");
        fill_with(&mut page, 0x0102_0304_0506_0708);
        contents.write(0, &page);
        assert_eq!(contents.memory(), PAGE_MEMORY);
        fill_with(&mut page[SECTOR..2 * SECTOR], 9);
        contents.write(0, &page);
        assert_eq!(contents.memory(), PAGE_MEMORY + 64);
        page[SECTOR + 100..].fill(0);
        page[SECTOR + 99] = 1;
        contents.write(0, &page);
        assert_eq!(contents.memory(), PAGE_MEMORY + SECTOR as u64 + 100);
        assert_eq!(all(&contents)[..ALIGNMENT], page);
    }

    /// Beside a plain vector, of which the same parts are written and cleared.
    #[test]
    fn contents_are_those_of_a_vector() {
        for seed in 0..20 {
            let mut rng = Seed(seed).rng();
            let (mut contents, mut model) = (Contents::default(), vec![0_u8; BYTES]);
            for _ in 0..200 {
                let offset = match rng.below(3) {
                    0 => rng.below(BYTES as u64) as usize,
                    _ => rng.below(8) as usize * ALIGNMENT,
                };
                let most = (BYTES - offset) as u64;
                let length = match rng.below(3) {
                    0 => rng.below(most + 1) as usize,
                    _ => (SECTOR << rng.below(6)).min(most as usize),
                };
                let range = offset..offset + length;
                match rng.below(4) {
                    0 => {
                        contents.clear(offset as u64, length as u64);
                        model[range].fill(0);
                    }
                    kind => {
                        let mut bytes = vec![0; length];
                        match kind {
                            1 => bytes.iter_mut().for_each(|byte| *byte = rng.below(3) as u8),
                            _ => fill_with(&mut bytes, rng.below(4)),
                        }
                        contents.write(offset as u64, &bytes);
                        model[range].copy_from_slice(&bytes);
                    }
                }
                assert_eq!(all(&contents), model, "seed {seed}");
            }
            let beside: u64 = contents.pages.values().map(Page::beside).sum();
            assert_eq!(contents.beside, beside);
            contents.clear(0, BYTES as u64);
            assert_eq!(contents.memory(), 0);
        }
    }
}
