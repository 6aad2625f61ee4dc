//! SepBIT: blocks that replace a short-lived block are expected to be short-lived, and blocks that
//! have lived long to live on. Two ablations, UW and GW, stand beside it.
//!
//! For: the best rule of FAST'22. Must never know: superblocks beyond the stream and age of a
//! victim. Source: Wang et al., SepBIT, FAST'22, section 3, Algorithm 1, and its simulator. Units:
//! pages. UW separates only pages of the host, GW only moved pages.
//!
//! The queue of recent pages that bounds the paper's index is kept as its length alone. Pages enter
//! it once per host write. It therefore holds a page if and only if the page's last write is no
//! older than the queue is long. Memory: 4 bytes per page and one more to keep the score. Last
//! writes are kept modulo 2^32 pages (16 TiB of 4 KiB); beyond, an age is mistaken for a shorter
//! one.

use super::learning::{Classification, Scores};
use super::{Invalidated, MovedPage, Registered, Separation, Stream, Write};
use crate::{Block, Entry, Geometry};
use cachewright_types::Seed;

cachewright_types::declare! {
    /// The settings of SepBIT and its ablations; defaults are the paper's.
    pub struct SepbitSettings {
        /// superblocks of class 1 whose lifespans are averaged to the threshold l
        averaged: u32 = 16, "superblocks", 1 ..= 65536;
        /// ratio of neighbouring age thresholds of moved pages
        ratio: f64 = 4.0, "ratio", 1.0 ..= 1024.0;
        /// all classes together; fixed at 3 for `uw`
        classes: u32 = 6, "classes", 4 ..= 64;
        /// share of each superblock lost to metadata that nothing reads: a control
        meta_share: f64 = 0.0, "ratio", 0.0 ..= 0.25;
    }
}

/// Parts of a drive write in which predictions are judged together.
const PARTS_PER_DRIVE_WRITE: u32 = 20;
/// [`Sepbit`] whole.
pub const WHOLE: u8 = 0;
/// Only pages of the host are separated.
pub const USER_ONLY: u8 = 1;
/// Only moved pages are separated.
pub const MOVED_ONLY: u8 = 2;

/// SepBIT, or the part of it that `PART` names.
#[derive(Clone, Debug)]
pub struct Sepbit<const PART: u8> {
    settings: SepbitSettings,
    /// Pages of a superblock lost to metadata.
    lost: f64,
    /// The clock at each page's last write by the host.
    last: Vec<u32>,
    /// The threshold l: mean lifespan of recently collected superblocks of class 1.
    threshold: f64,
    lifespans: u64,
    collected: u32,
    /// Pages in the queue of recent writes.
    queue: u64,
    /// Whether the victim at hand is of class 1.
    from_first: bool,
    /// Ages from which a moved page is in the next class.
    bounds: Vec<f64>,
    /// What was said of each page's last write; read by nothing that decides.
    said: Vec<Said>,
    scores: Scores,
}

/// A prediction that waits to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Nothing,
    Short,
    Long,
}

const fn entry(name: &'static str, doc: &'static str) -> Entry {
    Entry { name, doc, source: "Wang et al., SepBIT, FAST'22, section 3 and Exp#5", needs: &[] }
}

impl<const PART: u8> Registered for Sepbit<PART> {
    type Settings = SepbitSettings;
    const ENTRY: Entry = match PART {
        USER_ONLY => entry("uw", "sepbit for pages of the host only; moved pages share a stream"),
        MOVED_ONLY => entry("gw", "sepbit for moved pages only; pages of the host share a stream"),
        _ => entry("sepbit", "by the lifetime of the page overwritten and the age of pages moved"),
    };

    fn new(geometry: &Geometry, settings: &SepbitSettings, _: Seed) -> Self {
        let pages = geometry.logical_pages;
        let mut sepbit = Sepbit {
            settings: settings.clone(),
            lost: settings.meta_share * f64::from(geometry.block_pages),
            last: vec![0; pages as usize],
            threshold: f64::INFINITY,
            lifespans: 0,
            collected: 0,
            queue: 0,
            from_first: false,
            bounds: Vec::new(),
            said: vec![Said::Nothing; if PART == MOVED_ONLY { 0 } else { pages as usize }],
            scores: Scores::new(pages / PARTS_PER_DRIVE_WRITE),
        };
        sepbit.set_bounds();
        sepbit
    }
}

impl<const PART: u8> Sepbit<PART> {
    /// The first class of moved pages by age.
    const AGED: u32 = if PART == WHOLE { 3 } else { 1 };

    fn set_bounds(&mut self) {
        let steps = self.settings.classes - Self::AGED - 1;
        let bound = |step: u32| self.threshold * self.settings.ratio.powi(step as i32);
        self.bounds = (1..=steps).map(bound).collect();
    }

    #[inline(always)]
    fn age(&self, page: u32, clock: u64) -> u32 {
        (clock as u32).wrapping_sub(self.last[page as usize])
    }

    /// Scores the prediction of a page's last write, `age` ago, as its copy ends now.
    #[inline(always)]
    fn score_prediction(&mut self, page: u32, clock: u64, age: u32) {
        let Some(said) = self.said.get_mut(page as usize) else { return };
        let said = std::mem::replace(said, Said::Nothing);
        if said != Said::Nothing {
            self.scores.ended(clock - u64::from(age), said == Said::Short, age);
        }
    }

    /// Notes what is said of a write. The rule speaks of pages that were written before, once it
    /// has a threshold.
    #[inline(always)]
    fn say(&mut self, write: &Write, short: bool) {
        if write.rewrite && self.threshold.is_finite() {
            self.said[write.page as usize] = if short { Said::Short } else { Said::Long };
            // A lifetime below the threshold is short.
            let max_lifetime = (self.threshold.ceil() as u32).saturating_sub(1);
            self.scores.predicted(write.clock, max_lifetime, short);
        }
    }
}

impl<const PART: u8> Separation for Sepbit<PART> {
    fn streams(&self) -> u32 {
        if PART == USER_ONLY { 3 } else { self.settings.classes }
    }

    fn user_streams(&self) -> u32 {
        if PART == MOVED_ONLY { 1 } else { 2 }
    }

    fn moved_streams(&self) -> u32 {
        if PART == USER_ONLY { 1 } else { self.streams() }
    }

    fn meta_pages(&self) -> u32 {
        self.lost as u32
    }

    fn meta_part(&self) -> f64 {
        self.lost.fract()
    }

    #[inline(always)]
    fn place_user(&mut self, write: &Write) -> Stream {
        let age = self.age(write.page, write.clock);
        let lifespan = f64::from(age);
        self.last[write.page as usize] = write.clock as u32;
        if PART == MOVED_ONLY {
            return Stream(0);
        }
        let short = lifespan < self.threshold.min(self.queue as f64);
        self.score_prediction(write.page, write.clock, age);
        self.say(write, short);
        self.queue += 1;
        if self.queue as f64 > self.threshold.min(write.live_pages as f64) {
            self.queue -= 1;
            self.queue -= u64::from(self.queue as f64 > self.threshold);
        }
        Stream(u8::from(!short))
    }

    #[inline(always)]
    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        if PART == USER_ONLY || PART == WHOLE && self.from_first {
            return Stream(2);
        }
        let age = f64::from(self.age(moved.page, moved.clock));
        let passed = self.bounds.iter().filter(|bound| age >= **bound).count();
        Stream((Self::AGED as usize + passed) as u8)
    }

    fn on_invalidate(&mut self, gone: &Invalidated<'_>) {
        if gone.trimmed {
            self.score_prediction(gone.page, gone.clock, self.age(gone.page, gone.clock));
        }
    }

    fn on_collect(&mut self, victim: &Block, clock: u64) {
        self.from_first = victim.stream == Stream(0);
        if !self.from_first {
            return;
        }
        self.lifespans += clock - victim.opened_at;
        self.collected += 1;
        if self.collected == self.settings.averaged {
            self.threshold = self.lifespans as f64 / f64::from(self.collected);
            (self.lifespans, self.collected) = (0, 0);
            self.set_bounds();
        }
    }

    fn classification(&self) -> Option<Classification> {
        (PART != MOVED_ONLY).then(|| self.scores.classification())
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        4.0
    }

    #[inline(always)]
    fn touch(&self, page: u32) -> u32 {
        let said = self.said.get(page as usize).map_or(0, |said| *said as u32);
        said.wrapping_add(self.last.get(page as usize).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{geometry, moved, write};
    use super::super::learning::Confusion;
    use super::*;

    /// Threshold 10 after one superblock of class 1 that lived 10 pages. A page written at 20 and
    /// again at 25 replaces a lifespan of 5 (class 1, here 0); then at 45 one of 20 (class 2).
    #[test]
    fn the_lifespan_of_the_old_copy_decides() {
        let settings = SepbitSettings { averaged: 1, ..SepbitSettings::default() };
        let mut sepbit = Sepbit::<WHOLE>::new(&geometry(), &settings, Seed(0));
        (1..20).for_each(|clock| {
            sepbit.place_user(&write(clock as u32, clock));
        });
        let first = Block { opened_at: 9, ..Block::default() };
        sepbit.on_collect(&first, 19);
        assert_eq!(sepbit.threshold, 10.0);
        assert_eq!(sepbit.place_user(&write(0, 20)), Stream(1), "never written");
        (21..25).for_each(|clock| {
            sepbit.place_user(&write(3, clock));
        });
        assert_eq!(sepbit.place_user(&write(0, 25)), Stream(0));
        (26..45).for_each(|clock| {
            sepbit.place_user(&write(3, clock));
        });
        assert_eq!(sepbit.place_user(&write(0, 45)), Stream(1));
        assert_eq!(sepbit.place_moved(&moved(0, &first, 50)), Stream(2), "moved from class 1");
        let second = Block { stream: Stream(1), ..first };
        sepbit.on_collect(&second, 50);
        let class = |clock| sepbit.clone().place_moved(&moved(0, &second, clock)).0;
        assert_eq!([84, 85, 204, 205].map(class), [3, 4, 4, 5], "ages 39, 40, 159, 160");
        // Page 0 at 20 was said to be long and lived for 5, at 25 short and lived for 20, at 45
        // long and goes on; page 3 at 21 was said to be long and lived for 1, later short.
        let found = sepbit.classification().unwrap().total();
        let expected = Confusion { short_right: 21, short_wrong: 2, long_right: 1, long_wrong: 2 };
        assert_eq!(found, expected);
        // Page 3, said to be short at 44, is trimmed after 6, page 0 after 5; a trim says nothing.
        for page in [3, 0, 3] {
            let (clock, trimmed) = (50, true);
            let gone = Invalidated { page, offset: 0, block: &second, clock, trimmed };
            sepbit.on_invalidate(&gone);
        }
        let found = sepbit.classification().unwrap().total();
        let expected = Confusion { short_right: 22, short_wrong: 1, long_right: 0, long_wrong: 3 };
        assert_eq!(found, expected);
    }
}
