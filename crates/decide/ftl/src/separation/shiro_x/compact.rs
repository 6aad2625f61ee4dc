//! Histories of pages in 3 bytes each: the moment of the last write in ticks.
//!
//! For: `shiro-x` where memory is short. Must never know: streams, hazards. A tick is a power of
//! two host page writes, 1/1024 to 1/512 of the drive, and 14 bits count them. So ages are true
//! within half a tick, and told apart up to about 12 drive writes: what is older is kept at that.
//! Units: host page writes. Design of Cachewright.

use super::history::PagePast;

/// Ticks of a drive write at most; at least half as many.
const TICKS: u32 = 1024;
/// Bits of a moment.
const BITS: u32 = 14;
const MASK: u32 = (1 << BITS) - 1;
/// Ticks by which a moment may lie back after a look at all pages.
const OLDEST: u32 = MASK - 4 * TICKS - 2;
/// What stands for a page that holds nothing: no first write has this mean.
const ABSENT: u32 = 0xff << BITS;

/// Histories of all pages.
#[derive(Clone, Debug, Default)]
pub struct CompactHistories {
    packed: Vec<[u8; 3]>,
    /// Bits of a moment that are not kept.
    shift: u32,
}

#[inline(always)]
fn unpacked([low, middle, high]: [u8; 3]) -> u32 {
    u32::from_le_bytes([low, middle, high, 0])
}

#[inline(always)]
fn packed(word: u32) -> [u8; 3] {
    let [low, middle, high, _] = word.to_le_bytes();
    [low, middle, high]
}

impl CompactHistories {
    /// Pages that hold nothing.
    pub fn new(pages: u32) -> CompactHistories {
        let tick = pages.div_ceil(TICKS).max(1).next_power_of_two();
        CompactHistories { packed: vec![packed(ABSENT); pages as usize], shift: tick.ilog2() }
    }

    /// Bytes of the pages' entries.
    pub fn held_bytes(&self) -> usize {
        size_of_val(self.packed.as_slice())
    }

    /// The past and the age of a page, if it holds data.
    #[inline(always)]
    pub fn look(&self, page: u32, clock: u64) -> Option<(PagePast, u32)> {
        let word = unpacked(*self.packed.get(page as usize)?);
        self.read(word, clock)
    }

    #[inline(always)]
    fn read(&self, word: u32, clock: u64) -> Option<(PagePast, u32)> {
        (word & !MASK != ABSENT).then(|| (past(word), self.age(word, clock)))
    }

    /// The middle of the ages that a moment stands for.
    #[inline(always)]
    fn age(&self, word: u32, clock: u64) -> u32 {
        let tick = 1_u32 << self.shift;
        let gone = self.now(clock).wrapping_sub(word) & MASK;
        let phase = clock as u32 & (tick - 1);
        if gone == 0 { phase / 2 } else { gone * tick + phase - tick / 2 }
    }

    #[inline(always)]
    fn now(&self, clock: u64) -> u32 {
        (clock >> self.shift) as u32 & MASK
    }

    /// A page was written and has this past now.
    #[inline(always)]
    pub fn set(&mut self, page: u32, clock: u64, past: PagePast) {
        let now = self.now(clock);
        if let Some(place) = self.packed.get_mut(page as usize) {
            let word = u32::from(past.rewrites) << (BITS + 8) | u32::from(past.mean) << BITS | now;
            *place = packed(word);
        }
    }

    /// A page holds nothing any more.
    pub fn forget(&mut self, page: u32) {
        if let Some(place) = self.packed.get_mut(page as usize) {
            *place = packed(ABSENT);
        }
    }

    /// Past and age of every page that holds data. Moments that would soon be taken for later ones
    /// are moved up; to be called once in four drive writes at least.
    pub fn each(&mut self, clock: u64, mut visit: impl FnMut(PagePast, u32)) {
        let now = self.now(clock);
        for index in 0..self.packed.len() {
            let mut word = unpacked(self.packed[index]);
            if now.wrapping_sub(word) & MASK > OLDEST && word & !MASK != ABSENT {
                word = word & !MASK | now.wrapping_sub(OLDEST) & MASK;
                self.packed[index] = packed(word);
            }
            if let Some((past, age)) = self.read(word, clock) {
                visit(past, age);
            }
        }
    }

    /// Loads a page's entry ahead of its use.
    #[inline(always)]
    pub fn touch(&self, page: u32) -> u32 {
        self.packed.get(page as usize).map_or(0, |bytes| u32::from(bytes[0]))
    }
}

#[inline(always)]
fn past(word: u32) -> PagePast {
    PagePast { rewrites: (word >> (BITS + 8)) as u8, mean: (word >> BITS) as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAST: PagePast = PagePast { rewrites: 3, mean: 77 };
    /// A tick of 8 page writes.
    const PAGES: u32 = 8192;

    /// Page 7 is written at 19, in tick 2, which is 16 to 24. At 21, in the same tick, it is taken
    /// to be written half way from 16: 2 ago. At 24 half a tick ago, at 27 it is 7 (true: 8). Then
    /// 60,000 drive writes of others: it is kept at the oldest age, 12,285 ticks.
    #[test]
    fn ages_by_hand() {
        let mut pages = CompactHistories::new(PAGES);
        assert_eq!((pages.shift, pages.look(7, 19)), (3, None));
        pages.set(7, 19, PAST);
        let age = |clock| CompactHistories::look(&pages, 7, clock).map(|(_, age)| age);
        assert_eq!([21, 24, 27].map(age), [2, 4, 7].map(Some));
        assert_eq!(age(19 + 4000), Some(3999));
        for window in 1..30_000 {
            pages.each(19 + window * u64::from(2 * PAGES), |past, _| assert_eq!(past, PAST));
        }
        let clock = 19 + 29_999 * u64::from(2 * PAGES);
        let phase = clock as u32 % 8;
        assert_eq!(pages.look(7, clock), Some((PAST, OLDEST * 8 + phase - 4)));
        pages.forget(7);
        assert_eq!((pages.look(7, clock), pages.look(PAGES, clock)), (None, None));
    }

    /// 3 bytes per page; ages up to about 12 drive writes are told apart.
    #[test]
    fn a_page_takes_three_bytes() {
        for pages in [1, 1000, 1024, 1025, 2047, 65_536, 1_000_000] {
            let histories = CompactHistories::new(pages);
            assert_eq!(histories.held_bytes(), 3 * pages as usize);
            let oldest = u64::from(OLDEST) << histories.shift;
            assert!(oldest >= 11 * u64::from(pages), "{pages}");
            assert!(histories.shift == 0 || 1_u32 << histories.shift < 2 * pages.div_ceil(TICKS));
        }
    }

    /// The same with whole numbers of ticks, and the true moments.
    #[derive(Default)]
    struct Naive(Vec<Option<(PagePast, u64, u64)>>);

    impl Naive {
        fn look(&self, page: usize, clock: u64, tick: u64) -> Option<(PagePast, u32)> {
            let (past, written, _) = self.0[page]?;
            let (gone, phase) = (clock / tick - written, clock % tick);
            let age = if gone == 0 { phase / 2 } else { gone * tick + phase - tick / 2 };
            Some((past, age as u32))
        }

        fn keep(&mut self, clock: u64, tick: u64) {
            for (_, written, _) in self.0.iter_mut().flatten() {
                *written = (*written).max((clock / tick).saturating_sub(u64::from(OLDEST)));
            }
        }
    }

    proptest! {
        /// Moments modulo 2^14 tell what whole ones do, and ages are true within half a tick.
        #[test]
        fn moments_are_those_of_whole_ticks(
            pages in 1_u32..6000,
            acts in prop::collection::vec((0_u8..4, 0_u32..40, 0_u64..9000, 0_u8..3), 1..200),
        ) {
            let mut found = CompactHistories::new(pages);
            let tick = 1_u64 << found.shift;
            let mut naive = Naive(vec![None; pages as usize]);
            // Far from 0, so that no moment lies before it.
            let (mut clock, mut since) = (1_u64 << 40, 0);
            for (act, page, gone, rewrites) in acts {
                let (page, gone) = (page % pages, gone % u64::from(2 * pages));
                clock += gone;
                since += gone;
                if since > u64::from(2 * pages) || act == 0 {
                    (since, _) = (0, naive.keep(clock, tick));
                    found.each(clock, |_, _| {});
                }
                let past = PagePast { rewrites, mean: 63 };
                match act {
                    1 => {
                        found.forget(page);
                        naive.0[page as usize] = None;
                    }
                    2 | 3 => {
                        found.set(page, clock, past);
                        naive.0[page as usize] = Some((past, clock / tick, clock));
                    }
                    _ => {}
                }
                for page in 0..40.min(pages) {
                    let seen = found.look(page, clock);
                    prop_assert_eq!(seen, naive.look(page as usize, clock, tick));
                    if let (Some((_, age)), Some((_, _, written))) = (seen, naive.0[page as usize])
                        && clock - written < u64::from(OLDEST) * tick
                    {
                        prop_assert!((clock - written).abs_diff(age.into()) <= tick / 2 + 1);
                    }
                }
            }
        }
    }
}
