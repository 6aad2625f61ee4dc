//! MiDAS: the hot filter, which decides between the hot group and group 1.
//!
//! For: a counter of two bits per page that rises when a page dies young and falls when it lives to
//! be moved. Must never know: superblocks beyond their group and age, the model. Units: pages; ages
//! on the clock of host page writes. Source: MiDAS (FAST'24), section 4.2, and its simulator. A
//! page is hot while its counter is full.

use std::collections::VecDeque;

/// Counter value of a hot page.
const FULL: u8 = 3;
/// Spans that the measures are averaged over.
const HISTORY: usize = 10;

/// What the hot group was measured to do in one span or, as a mean, in several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotMeasure {
    /// Share of host writes that went to the hot group.
    pub traffic: f64,
    /// Mean share of valid pages in its victims.
    pub valid: f64,
    /// Superblocks that it held.
    pub blocks: f64,
}

/// What the span that runs has counted.
#[derive(Clone, Copy, Debug, Default)]
struct HotSpan {
    victims: u64,
    age_sum: f64,
    valid_sum: f64,
    hot_writes: u64,
    writes: u64,
}

/// The filter.
#[derive(Clone, Debug)]
pub struct HotFilter {
    /// Four counters per byte.
    counters: Vec<u8>,
    running: bool,
    /// Events ignored at the start.
    cold: u64,
    /// Age below which a page of group 1 died young; also the length of a span.
    young: u64,
    /// Overwrites left in this span; below zero while no hot victim was seen.
    left: i64,
    span: HotSpan,
    /// Superblocks that the hot group holds.
    blocks: u32,
    recording: bool,
    history: VecDeque<HotMeasure>,
}

impl HotFilter {
    /// A filter for so many pages; nothing is hot and nothing is learned until [`Self::start`].
    pub fn new(pages: u32) -> HotFilter {
        HotFilter {
            counters: vec![0; pages.div_ceil(4) as usize],
            running: false,
            cold: u64::from(pages),
            young: u64::from(pages),
            left: i64::from(pages),
            span: HotSpan::default(),
            blocks: 0,
            recording: true,
            history: VecDeque::with_capacity(HISTORY),
        }
    }

    /// Begins to learn.
    pub fn start(&mut self) {
        self.running = true;
    }

    /// Whether measures of spans are kept for the model.
    pub fn record(&mut self, recording: bool) {
        self.recording = recording;
    }

    /// Tells how many superblocks the hot group holds.
    pub fn holds(&mut self, blocks: u32) {
        self.blocks = blocks;
    }

    /// The counter of a page.
    #[inline(always)]
    pub fn counter(&self, page: u32) -> u8 {
        let byte = self.counters.get(page as usize / 4).copied().unwrap_or(0);
        byte >> (page % 4 * 2) & FULL
    }

    #[inline(always)]
    fn set(&mut self, page: u32, value: u8) {
        if let Some(byte) = self.counters.get_mut(page as usize / 4) {
            let shift = page % 4 * 2;
            *byte = *byte & !(FULL << shift) | value << shift;
        }
    }

    /// Whether a page that is written now belongs to the hot group.
    #[inline(always)]
    pub fn admit(&mut self, page: u32) -> bool {
        if !self.running {
            return false;
        }
        let hot = self.counter(page) == FULL;
        self.span.writes += 1;
        self.span.hot_writes += u64::from(hot);
        hot
    }

    /// Age below which a page of group 1 died young.
    pub fn young(&self) -> u64 {
        self.young
    }

    /// Counts an event; false while events are still ignored.
    #[inline(always)]
    fn event(&mut self) -> bool {
        if !self.running {
            return false;
        }
        if self.cold > 0 {
            self.cold -= 1;
            return false;
        }
        if self.left <= 0 && self.span.victims > 0 {
            self.renew();
        }
        true
    }

    /// A page was overwritten; its old copy lay in `group`, in a superblock sealed `age` ago (0 if
    /// still open).
    #[inline(always)]
    pub fn overwritten(&mut self, page: u32, group: u8, age: u64) {
        if !self.event() {
            return;
        }
        self.left -= 1;
        if group > 1 {
            return;
        }
        let counter = self.counter(page);
        if group == 0 || age <= self.young {
            if counter < FULL {
                self.set(page, counter + 1);
            }
        } else if counter > 0 {
            self.set(page, counter - 1);
        }
    }

    /// A page survived until its superblock in `group` was collected.
    #[inline(always)]
    pub fn moved(&mut self, page: u32, group: u8) {
        if group > 1 || !self.event() {
            return;
        }
        let counter = self.counter(page);
        self.set(page, counter.saturating_sub(if group == 0 { 2 } else { 1 }));
    }

    /// A superblock of the hot group was collected `age` after it was sealed.
    pub fn collected(&mut self, age: u64, valid: f64) {
        if self.running {
            self.span.victims += 1;
            self.span.age_sum += age as f64;
            self.span.valid_sum += valid;
        }
    }

    /// Ends a span: its measures are kept and "young" follows the ages seen.
    #[cold]
    #[inline(never)]
    fn renew(&mut self) {
        let victims = self.span.victims as f64;
        if self.recording && self.span.hot_writes > 0 {
            if self.history.len() == HISTORY {
                self.history.pop_front();
            }
            self.history.push_back(HotMeasure {
                traffic: self.span.hot_writes as f64 / self.span.writes as f64,
                valid: self.span.valid_sum / victims,
                blocks: f64::from(self.blocks),
            });
        }
        let (age, before) = (self.span.age_sum / victims, self.young as f64);
        let young = if age >= 2.0 * before { 1.5 * before } else { (age + before) / 2.0 };
        self.young = young as u64;
        self.left = self.young as i64 - 1;
        self.span = HotSpan::default();
    }

    /// The mean of the spans kept, which are then forgotten; nothing if there is none. The open
    /// superblock is added to those held.
    pub fn take_measure(&mut self) -> Option<HotMeasure> {
        let spans = self.history.len() as f64;
        if self.history.is_empty() {
            return None;
        }
        let mean =
            |measure: fn(&HotMeasure) -> f64| self.history.iter().map(measure).sum::<f64>() / spans;
        let measure = HotMeasure {
            traffic: mean(|span| span.traffic),
            valid: mean(|span| span.valid),
            blocks: (mean(|span| span.blocks) + 1.0).round(),
        };
        self.history.clear();
        Some(measure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter of four pages past its start.
    fn warm() -> HotFilter {
        let mut filter = HotFilter::new(4);
        filter.overwritten(0, 1, 0);
        assert_eq!(filter.cold, 4, "nothing is counted before the start");
        filter.start();
        (0..4).for_each(|_| filter.overwritten(0, 1, 0));
        assert_eq!(filter.counter(0), 0, "the first events are ignored");
        filter
    }

    #[test]
    fn three_young_deaths_make_a_page_hot_and_one_move_ends_it() {
        let mut filter = warm();
        for counter in 0..3 {
            assert_eq!(filter.counter(2), counter);
            assert!(!filter.admit(2));
            filter.overwritten(2, 1, 4);
        }
        assert!(filter.admit(2));
        filter.overwritten(2, 0, 1000);
        assert_eq!(filter.counter(2), 3, "in the hot group age does not count");
        filter.overwritten(2, 2, 0);
        assert_eq!(filter.counter(2), 3, "other groups say nothing");
        filter.moved(2, 0);
        assert_eq!(filter.counter(2), 1);
        filter.overwritten(2, 1, 5);
        assert_eq!(filter.counter(2), 0, "dead at 5, young was up to 4");
        filter.moved(2, 1);
        assert_eq!((filter.counter(2), filter.counter(1), filter.counter(3)), (0, 0, 0));
    }

    #[test]
    fn young_follows_the_age_of_hot_victims_by_halves_and_never_doubles() {
        let mut filter = warm();
        filter.collected(6, 0.25);
        filter.holds(3);
        for _ in 0..4 {
            filter.admit(1);
            filter.overwritten(1, 1, 0);
        }
        assert_eq!(filter.young(), 4);
        filter.admit(1);
        filter.overwritten(1, 2, 0);
        assert_eq!(filter.young(), 5, "(6 + 4) / 2");
        let measure = HotMeasure { traffic: 0.4, valid: 0.25, blocks: 4.0 };
        assert_eq!(filter.take_measure(), Some(measure));
        assert_eq!(filter.take_measure(), None);
        filter.collected(1000, 0.0);
        (0..4).for_each(|_| filter.overwritten(3, 2, 0));
        assert_eq!(filter.young(), 7, "1.5 x 5");
    }
}
