//! What shiro-x keeps of each page: 6 bytes, or 3 in the compact form.
//!
//! For: the moment of the last write, a moving mean of the page's lifetimes and their number,
//! packed. A history falls into a cell of the life table. Must never know: streams, hazards. Units:
//! host page writes; lengths of time are kept as an exponent and three bits, within 1/16 of the
//! true number. Design of Cachewright. A page's age is known modulo 2^32 host page writes (16 TiB
//! of 4 KiB pages).

use super::compact::CompactHistories;

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
const ABSENT: u8 = u8::MAX;
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
        let past = PagePast { rewrites: ABSENT, mean: 0 };
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
                (past.rewrites != ABSENT).then(|| (*past, (clock as u32).wrapping_sub(*last)))
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
                    past.rewrites = ABSENT;
                }
            }
            Histories::Compact(pages) => pages.forget(page),
        }
    }

    /// Cell and age of every page that holds data; to be called once in four drive writes at least.
    pub fn each(&mut self, clock: u64, mut visit: impl FnMut(usize, u32)) {
        match self {
            Histories::Full(FullHistories { last, past }) => {
                let all = last.iter().zip(past).filter(|(_, past)| past.rewrites != ABSENT);
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
