//! What each stream of a separation was given, and how long that lived.
//!
//! For: counts and lifetimes per stream, from the moves that the translation layer tells. Must
//! never know: how streams are chosen. Units: pages; a lifetime is what is left of it when the page
//! is placed. Bins are powers of two: bin 0 holds 0 and 1, bin b holds 2^(b-1)+1 to 2^b.

use cachewright_ftl::{Address, NEVER, Sink, Superblocks};
use cachewright_result::drive::Stream;

/// Bins of lifetimes; the last is "not overwritten".
const BINS: usize = 34;

/// One stream.
#[derive(Clone, Debug)]
struct StreamBins {
    /// Pages from the host and moved pages by bin.
    bins: [[u64; 2]; BINS],
}

/// The receiver of one drive's moves.
#[derive(Clone, Debug)]
pub struct DriveTally {
    /// The clock at which each page's present copy ends.
    ends: Vec<u64>,
    /// Superblock of the page just written by the host.
    placed: u32,
    /// Pages moved since the last look, with their superblocks.
    moved: Vec<(u32, u32)>,
    classes: Vec<StreamBins>,
}

impl Sink for DriveTally {
    #[inline(always)]
    fn program(&mut self, _: u32, to: Address) {
        self.placed = to.block;
    }

    #[inline(always)]
    fn relocate(&mut self, page: u32, _: Address, to: Address) {
        self.moved.push((page, to.block));
    }
}

impl DriveTally {
    /// Nothing was placed yet.
    pub fn new(logical_pages: u32, streams: u32) -> DriveTally {
        DriveTally {
            ends: vec![u64::MAX; logical_pages as usize],
            placed: 0,
            moved: Vec::new(),
            classes: vec![StreamBins { bins: [[0; 2]; BINS] }; streams as usize],
        }
    }

    /// Forgets what was counted, not what is stored.
    pub fn restart(&mut self) {
        let streams = self.classes.len();
        self.classes = vec![StreamBins { bins: [[0; 2]; BINS] }; streams];
    }

    /// Counts the page that the host has just written at `clock`, and what was moved for it.
    #[inline(always)]
    pub fn wrote(&mut self, blocks: &Superblocks, page: u32, clock: u64, lifetime: u32) {
        // Pages were moved before this write was counted.
        self.settle(blocks, clock - 1);
        self.ends[page as usize] =
            if lifetime == NEVER { u64::MAX } else { clock + u64::from(lifetime) };
        let stream = blocks.get(self.placed).stream;
        self.classes[stream.index()].bins[bin(u64::from(lifetime), lifetime == NEVER)][0] += 1;
    }

    /// Counts what was moved since the last look.
    #[inline(always)]
    pub fn settle(&mut self, blocks: &Superblocks, clock: u64) {
        for (page, block) in self.moved.drain(..) {
            let end = self.ends[page as usize];
            let bin = bin(end.saturating_sub(clock), end == u64::MAX);
            self.classes[blocks.get(block).stream.index()].bins[bin][1] += 1;
        }
    }

    /// Pages per stream, and how long they lived where that is known.
    pub fn streams(&self, known: bool) -> Vec<Stream> {
        let row = |(stream, class): (usize, &StreamBins)| {
            let sum = |kind: usize| class.bins.iter().map(|bin| bin[kind]).sum::<u64>();
            let bins = class.bins.iter().enumerate().filter(|(_, bin)| bin[0] + bin[1] > 0);
            let row = |(index, bin): (usize, &[u64; 2])| {
                let end = (index < BINS - 1).then(|| 1_u64 << index);
                (end, bin[0], bin[1])
            };
            Stream {
                stream,
                user_pages: sum(0),
                moved_pages: sum(1),
                lifetimes: known.then(|| bins.map(row).collect()),
            }
        };
        self.classes.iter().enumerate().map(row).collect()
    }
}

#[inline(always)]
fn bin(lifetime: u64, never: bool) -> usize {
    match lifetime {
        _ if never => BINS - 1,
        0 | 1 => 0,
        lifetime => (64 - (lifetime - 1).leading_zeros() as usize).min(BINS - 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_powers_of_two() {
        let found = [0, 1, 2, 3, 4, 5, 1 << 32].map(|lifetime| bin(lifetime, false));
        assert_eq!(found, [0, 0, 1, 2, 2, 3, 32]);
        assert_eq!(bin(7, true), BINS - 1);
    }
}
