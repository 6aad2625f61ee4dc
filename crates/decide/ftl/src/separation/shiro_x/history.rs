//! What shiro-x keeps of each page: 6 bytes, or 3 in the compact form.
//!
//! A history falls into a cell of the life table. Units: host page writes; lengths of time are kept
//! as an exponent and three bits, within 1/16 of the true number. Design of Cachewright. A page's
//! age is known modulo 2^32 host page writes (16 TiB of 4 KiB pages).
//!
//! Histories of pages in 3 bytes each: the moment of the last write in ticks. A tick is a power of
//! two host page writes, 1/1024 to 1/512 of the drive, and 14 bits count them. So ages are true
//! within half a tick, and told apart up to about 12 drive writes: what is older is kept at that.
//! Units: host page writes. Design of Cachewright.

/// Cells of the life table: what is told apart of a page's past.
pub const CELLS: usize = KINDS * SPANS;
/// Half octaves of time: bins of ages, means and residual lifetimes.
pub const SPANS: usize = 64;
/// Never rewritten; rewritten once, twice, more often.
const KINDS: usize = 4;
/// Rewrites that are told apart.
const MAX_REWRITES: u8 = KINDS as u8 - 1;
/// The mean moves by this share of the difference, at first more: a plain mean of two and three.
const SHARE: u32 = 4;
/// Marks a page that holds nothing.
const NO_REWRITES: u8 = u8::MAX;
/// Bits of heat in the place of a first write.
const HEATS: u8 = 16;

/// A length of time as exponent and three bits; 0 counts as 1.
#[inline(always)]
pub fn code(time: u32) -> u8 {
    let time = time.max(1);
    let exponent = time.ilog2();
    let mantissa = ((u64::from(time) << 3) >> exponent) as u8 & 7;
    (exponent as u8) << 3 | mantissa
}

/// The shortest time of a code.
#[inline(always)]
pub fn time(code: u8) -> u32 {
    ((u64::from(8 + (code & 7)) << (code >> 3)) >> 3) as u32
}

/// The bin of a length of time.
#[inline(always)]
pub fn span(time: u32) -> usize {
    usize::from(code(time) >> 2)
}

/// Where a bin begins; the last ends at 2^32.
#[inline(always)]
pub fn span_start(span: usize) -> f64 {
    let (exponent, half) = (span as u32 / 2, span as u64 % 2);
    // The bins of times below 2 have no second half.
    (((2 + half) << exponent) >> 1) as f64
}

/// How a page is written that held nothing before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstWrite {
    /// Pages of the request.
    pub request_pages: u32,
    /// Recent write requests to the neighbourhood.
    pub neighbours: u16,
}

/// History of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePast {
    /// Rewrites, up to [`MAX_REWRITES`].
    pub rewrites: u8,
    /// Mean lifetime as a code; of a page never rewritten, how it was written.
    pub mean: u8,
}

impl PagePast {
    /// The past after one more write: of a page that held nothing, or had a past and an age.
    #[inline(always)]
    fn after(before: Option<(PagePast, u32)>, first: FirstWrite) -> PagePast {
        let Some((past, age)) = before else {
            return PagePast { rewrites: 0, mean: arrival(first) };
        };
        let age = age.max(1);
        match past.rewrites {
            0 => PagePast { rewrites: 1, mean: code(age) },
            rewrites => {
                let weight = SHARE.min(u32::from(rewrites) + 1);
                PagePast {
                    rewrites: (rewrites + 1).min(MAX_REWRITES),
                    mean: mix(past.mean, age, weight),
                }
            }
        }
    }

    /// Its cell of the life table.
    #[inline(always)]
    pub fn cell(self) -> usize {
        let span = if self.rewrites == 0 { self.mean } else { self.mean >> 2 };
        usize::from(self.rewrites) * SPANS + usize::from(span)
    }
}

/// Histories with moments to the page write.
#[derive(Clone, Debug, Default)]
pub struct FullHistories {
    last: Vec<u32>,
    past: Vec<PagePast>,
}

/// Histories of all pages.
#[derive(Clone, Debug)]
pub enum Histories {
    /// Moments to the page write: 6 bytes per page.
    Full(FullHistories),
    /// Moments in ticks: 3 bytes per page.
    Compact(CompactHistories),
}

impl Default for Histories {
    fn default() -> Histories {
        Histories::Full(FullHistories::default())
    }
}

impl Histories {
    /// Pages that hold nothing.
    pub fn new(pages: u32, compact: bool) -> Histories {
        if compact {
            return Histories::Compact(CompactHistories::new(pages));
        }
        let past = PagePast { rewrites: NO_REWRITES, mean: 0 };
        let (last, past) = (vec![0; pages as usize], vec![past; pages as usize]);
        Histories::Full(FullHistories { last, past })
    }

    /// Bytes of the pages' entries.
    pub fn held_bytes(&self) -> usize {
        match self {
            Histories::Full(FullHistories { last, past }) => {
                size_of_val(last.as_slice()) + size_of_val(past.as_slice())
            }
            Histories::Compact(pages) => pages.held_bytes(),
        }
    }

    /// The past and the age of a page, if it holds data.
    #[inline(always)]
    fn past(&self, page: u32, clock: u64) -> Option<(PagePast, u32)> {
        match self {
            Histories::Full(FullHistories { last, past }) => {
                let (past, last) = (past.get(page as usize)?, last.get(page as usize)?);
                (past.rewrites != NO_REWRITES).then(|| (*past, (clock as u32).wrapping_sub(*last)))
            }
            Histories::Compact(pages) => pages.look(page, clock),
        }
    }

    /// The cell and the age of a page, if it holds data.
    #[inline(always)]
    pub fn look(&self, page: u32, clock: u64) -> Option<(usize, u32)> {
        self.past(page, clock).map(|(past, age)| (past.cell(), age))
    }

    /// The past that a page will have once it is written.
    #[inline(always)]
    pub fn next(&self, page: u32, clock: u64, first: FirstWrite) -> PagePast {
        PagePast::after(self.past(page, clock), first)
    }

    /// A page was written and has this past now.
    #[inline(always)]
    pub fn set(&mut self, page: u32, clock: u64, new: PagePast) {
        match self {
            Histories::Full(FullHistories { last, past }) => {
                let places = (last.get_mut(page as usize), past.get_mut(page as usize));
                if let (Some(last), Some(past)) = places {
                    (*last, *past) = (clock as u32, new);
                }
            }
            Histories::Compact(pages) => pages.set(page, clock, new),
        }
    }

    /// A page holds nothing any more.
    pub fn forget(&mut self, page: u32) {
        match self {
            Histories::Full(pages) => {
                if let Some(past) = pages.past.get_mut(page as usize) {
                    past.rewrites = NO_REWRITES;
                }
            }
            Histories::Compact(pages) => pages.forget(page),
        }
    }

    /// Cell and age of every page that holds data; to be called once in four drive writes at least.
    pub fn each(&mut self, clock: u64, mut visit: impl FnMut(usize, u32)) {
        match self {
            Histories::Full(FullHistories { last, past }) => {
                let all = last.iter().zip(past).filter(|(_, past)| past.rewrites != NO_REWRITES);
                all.for_each(|(last, past)| {
                    visit(past.cell(), (clock as u32).wrapping_sub(*last));
                });
            }
            Histories::Compact(pages) => pages.each(clock, |past, age| visit(past.cell(), age)),
        }
    }

    /// Loads a page's entries ahead of their use.
    #[inline(always)]
    pub fn touch(&self, page: u32) -> u32 {
        match self {
            Histories::Full(FullHistories { last, past }) => {
                let last = last.get(page as usize).copied().unwrap_or(0);
                last.wrapping_add(past.get(page as usize).map_or(0, |past| u32::from(past.mean)))
            }
            Histories::Compact(pages) => pages.touch(page),
        }
    }
}

/// The place of a first write among the spans.
fn arrival(first: FirstWrite) -> u8 {
    let length = match first.request_pages {
        0..=1 => 0,
        2..=7 => 1,
        8..=31 => 2,
        _ => 3,
    };
    let heat = (u32::from(first.neighbours) + 1).ilog2() as u8;
    length * HEATS + heat.min(HEATS - 1)
}

/// A mean moved towards an age by one part in `weight`.
fn mix(mean: u8, age: u32, weight: u32) -> u8 {
    let sum = u64::from(time(mean)) * u64::from(weight - 1) + u64::from(age);
    // Half a step up, for codes round down.
    let mixed = sum / u64::from(weight);
    code((mixed + (mixed >> 5)).min(u64::from(u32::MAX)) as u32)
}

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

    const FIRST: FirstWrite = FirstWrite { request_pages: 4, neighbours: 6 };

    #[test]
    fn codes_keep_four_bits_of_a_time() {
        assert_eq!(
            [0, 1, 2, 3, 8, 15, 16, 17, 18].map(|t| time(code(t))),
            [1, 1, 2, 3, 8, 15, 16, 16, 18]
        );
        assert_eq!([1, 2, 3, 4, 6, 8, 12, 16].map(span), [0, 2, 3, 4, 5, 6, 7, 8]);
        for number in [2, 5, 77, 4000, 123_456, u32::MAX] {
            let low = time(code(number));
            assert!(low <= number && number - low <= number / 8, "{number} {low}");
            assert!(span_start(span(number)) <= f64::from(number));
            assert!(f64::from(number) < span_start(span(number) + 1));
        }
        assert!((0..SPANS).all(|span| span_start(span) <= span_start(span + 1)));
    }

    fn write(pages: &mut Histories, page: u32, clock: u64) -> PagePast {
        let new = pages.next(page, clock, FIRST);
        pages.set(page, clock, new);
        new
    }

    /// Lifetimes 100, 200, 300, 1000: means 100, 150, 200, 400 by weights 1, 1/2, 1/3, 1/4. A tick
    /// of a drive of 2 pages is a page write, so that the compact form has the same.
    #[test]
    fn the_mean_follows_the_lifetimes() {
        for compact in [false, true] {
            let mut pages = Histories::new(2, compact);
            let mut means = Vec::new();
            let mut clock = 1_u64 << 33;
            assert_eq!(pages.look(1, clock), None);
            write(&mut pages, 1, clock);
            for lifetime in [100, 200, 300, 1000] {
                clock += lifetime;
                assert_eq!(pages.look(1, clock).map(|(_, age)| u64::from(age)), Some(lifetime));
                means.push(write(&mut pages, 1, clock));
            }
            assert_eq!(
                means.iter().map(|past| time(past.mean)).collect::<Vec<u32>>(),
                [96, 144, 192, 384]
            );
            assert_eq!(means.last().map(|past| past.rewrites), Some(MAX_REWRITES));
            let mut all = Vec::new();
            pages.each(clock + 5, |cell, age| all.push((cell, age)));
            assert_eq!(all, [(3 * SPANS + span(384), 5)]);
            pages.forget(1);
            assert_eq!(pages.look(1, clock), None);
        }
    }

    #[test]
    fn a_first_write_is_known_by_its_request() {
        for (compact, bytes) in [(false, 6), (true, 3)] {
            let mut pages = Histories::new(1, compact);
            let cell = write(&mut pages, 0, 9).cell();
            assert_eq!(cell, usize::from(HEATS) + 2, "2..=7 pages, 4..=7 requests");
            assert_eq!(pages.held_bytes(), bytes);
        }
    }

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
