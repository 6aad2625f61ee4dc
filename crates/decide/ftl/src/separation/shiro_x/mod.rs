//! Shiro-x: lifetimes learned inside the drive as a life table.
//!
//! A page's past picks a cell. Overwrites and time at risk are counted per cell and age. Pages
//! written by the host and moved pages are placed by the median of their residual lifetime. Units:
//! pages; the clock of host page writes.
//!
//! From Shiro (Sun et al., section III) come learning at the borders of windows, the virtual clock
//! and moved pages apart from the host's. Everything else is Cachewright's, and answers what Shiro
//! was seen to lose by. A page not overwritten within its window is time at risk, not a false
//! label. There is no hidden state to drift. A moved page is placed by its age. Lifetimes have 64
//! bins, not two classes. The bounds of streams follow from how many pages are placed where. How
//! many streams there are, and whether host and moved pages share them, is tried on drives in small
//! (`trials`; without, three streams for each). State is 6 bytes per page, in memory like that of
//! the rule-based schemes (Shiro's 36 lie in flash). The drives in small add the pages and
//! superblocks they hold (3.6 at 256 pages per superblock, 0.1 at 8192). `compact` holds 3 bytes
//! per page, by moments in ticks, and has drives in small only where all stays below 4. The life
//! table of 272 KiB comes on top. Invariant: nothing looks ahead; a decision depends on earlier
//! requests only.
//!
//! Which placements share a stream. Units are pages placed; residual lifetimes are bins of half
//! octaves of host page writes. Design of Cachewright. Theory: pages that are placed F at a time
//! and live R on average fill F R pages of space. With little spare space, a stream whose share of
//! it is s costs about F (F R) / 2 s moves. The best shares are as sqrt(F F R). All moves together
//! are as the square of the sum of these roots. So the cut with the least sum of roots is sought,
//! exactly, over all cuts of the range.
//!
//! Drives in small that try ways of dividing placements into streams. No rule of thumb is right for
//! all workloads, so that each way is tried on a drive of its own. Units: pages; the clock of host
//! page writes. Source: miniature simulation (Waldspurger et al., ATC'17), used here on drives;
//! design of Cachewright. A drive in small has as many superblocks as the true one, each of 16
//! pages. It holds one page of every `share` neighbouring ones, chosen by hash. Over-provisioning,
//! free space and the price of an open superblock are therefore those of the true drive, and so is
//! the reclaim policy. What is known of a page is lent by the true drive. Memory: for each way 8
//! bytes per page held, and about 90 per superblock.
//!
//! What ways moved, window by window, and whether another one is better beyond the noise. Units are
//! pages moved in small. Design of Cachewright. Ways are compared in pairs, window by window, so
//! that what all of them share is no noise. A window counts 0.95 times as much as the next. With
//! weights w and differences d, the sum of w d has a standard error of sqrt(V sum w^2). V is the
//! weighted variance of d.

mod history;
mod life;

use super::learning::Statistics;
use super::{HostRequest, Invalidated, MovedPage, Registered, Separation, Stream, Write};
use crate::reclaim::{self, Named};
use crate::{Block, Entry, Ftl, Geometry, NEVER, NoSink};
use cachewright_types::seed::mix;
use cachewright_types::{Seed, declare};
use history::{FirstWrite, Histories, SPANS, span, span_start};
use life::LifeTable;

declare! {
    /// The numbers of shiro-x.
    pub struct ShiroXSettings {
        /// whether a page takes at most 4 bytes, by moments in ticks
        compact: bool = false, "true or false";
        /// whether ways of dividing pages into streams are tried on drives in small
        trials: bool = true, "true or false";
        /// by how much another way must be better in the trials
        certainty: f64 = 0.0, "standard errors", 0.0 ..= 100.0;
        /// host writes between two lessons, as a share of the drive
        window_share: f64 = 0.1, "ratio", 0.001 ..= 4.0;
        /// how much a window counts for, of the window after it
        keep: f64 = 0.9, "ratio", 0.0 ..= 1.0;
        /// pages of a neighbourhood, whose recent requests tell first writes apart
        neighbourhood_pages: u32 = 256, "pages", 1 ..= 65536;
    }
}

/// Bytes per page that empty drives in small may take in the compact form. In use they take up to
/// 0.9, beside 3 for histories.
const COMPACT_TRIALS: f64 = 0.75;

/// What is known of pages.
#[derive(Clone, Debug, Default)]
pub struct Past {
    histories: Histories,
    life: LifeTable,
}

impl Past {
    /// The bin of the residual lifetime of a page that holds data.
    #[inline(always)]
    fn residual(&self, page: u32, clock: u64) -> Option<usize> {
        let (cell, age) = self.histories.look(page, clock)?;
        Some(self.life.median_residual(cell, span(age)))
    }
}

/// The scheme.
pub struct ShiroX {
    settings: ShiroXSettings,
    geometry: Geometry,
    past: Past,
    division: StreamDivision,
    trials: Trials,
    window_start: u64,
    window_pages: u64,
    request_pages: u32,
    /// Recent write requests per neighbourhood.
    heat: Vec<u16>,
    windows: u64,
}

/// The age of a page so many page writes ago, if it was written before that, else 0.
#[inline(always)]
fn age_before(age: u32, writes: u64) -> u32 {
    u64::from(age).saturating_sub(writes) as u32
}

impl ShiroX {
    /// Windows that ended.
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// Bytes of everything: histories, neighbourhoods, life table, drives in small.
    pub fn held_bytes(&self) -> usize {
        let Past { histories, life } = &self.past;
        let heat = size_of_val(self.heat.as_slice());
        let learned = histories.held_bytes() + life.held_bytes() + heat;
        size_of::<ShiroX>() + learned + self.trials.held_bytes()
    }

    /// The copy of a page, if it has one, came to its end.
    #[inline(always)]
    fn end_life(&mut self, page: u32, clock: u64) {
        let Past { histories, life } = &mut self.past;
        if let Some((cell, age)) = histories.look(page, clock) {
            let from = age_before(age, clock - self.window_start);
            life.survived(cell, from, age);
            life.died(cell, age);
        }
    }

    /// A window ends: pages that outlived it are counted, then hazards and streams follow.
    #[cold]
    #[inline(never)]
    fn end_window(&mut self, clock: u64) {
        let Past { histories, life } = &mut self.past;
        let gone = clock - self.window_start;
        histories.each(clock, |cell, age| life.survived(cell, age_before(age, gone), age));
        life.end_window();
        let way = self.trials.end_window(self.division.way(), self.settings.certainty);
        self.division.follow(way);
        self.division.cut();
        self.heat.iter_mut().for_each(|requests| *requests /= 2);
        self.window_start = clock;
        self.windows += 1;
    }

    fn neighbourhood(&self, page: u32) -> usize {
        (page / self.settings.neighbourhood_pages) as usize
    }
}

impl Registered for ShiroX {
    type Settings = ShiroXSettings;
    const ENTRY: Entry = Entry {
        name: "shiro-x",
        doc: "a life table learned from each page's past sorts written and moved pages",
        source: "design of Cachewright after Sun et al., Shiro",
        needs: &[],
    };

    fn new(geometry: &Geometry, settings: &ShiroXSettings, _: Seed) -> Self {
        let pages = geometry.logical_pages;
        let window_pages = f64::from(pages) * settings.window_share;
        ShiroX {
            settings: settings.clone(),
            geometry: *geometry,
            past: Past {
                histories: Histories::new(pages, settings.compact),
                life: LifeTable::new(pages, settings.keep),
            },
            division: StreamDivision::new(WAYS[0]),
            trials: Trials::default(),
            window_start: 0,
            window_pages: (window_pages as u64).max(1),
            request_pages: 1,
            heat: vec![0; pages.div_ceil(settings.neighbourhood_pages) as usize],
            windows: 0,
        }
    }
}

impl Separation for ShiroX {
    const WATCHES_INVALIDATION: bool = true;

    fn streams(&self) -> u32 {
        u32::from(STREAMS)
    }

    fn on_reclaim(&mut self, reclaim: &Named) {
        if self.settings.trials {
            let limit = if self.settings.compact { COMPACT_TRIALS } else { f64::INFINITY };
            self.trials = Trials::new(&self.geometry, limit, reclaim);
        }
    }

    #[inline]
    fn on_request(&mut self, request: &HostRequest, _clock: u64) {
        if request.write {
            self.request_pages = request.pages;
            let index = self.neighbourhood(request.first_page);
            if let Some(requests) = self.heat.get_mut(index) {
                *requests = requests.saturating_add(1);
            }
        }
    }

    #[inline]
    fn place_user(&mut self, write: &Write) -> Stream {
        let &Write { page, clock, .. } = write;
        self.end_life(page, clock);
        let neighbours = self.heat.get(self.neighbourhood(page)).copied().unwrap_or(0);
        let first = FirstWrite { request_pages: self.request_pages, neighbours };
        let new = self.past.histories.next(page, clock, first);
        let cell = new.cell();
        self.trials.write(page, cell, clock, &mut self.past);
        self.past.histories.set(page, clock, new);
        if clock - self.window_start >= self.window_pages {
            self.end_window(clock);
        }
        self.division.place(Side::Host, self.past.life.median_residual(cell, 0))
    }

    #[inline]
    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        let residual = self.past.residual(moved.page, moved.clock).unwrap_or(0);
        self.division.place(Side::Moved, residual)
    }

    fn on_invalidate(&mut self, gone: &Invalidated<'_>) {
        if gone.trimmed {
            self.end_life(gone.page, gone.clock);
            self.past.histories.forget(gone.page);
            self.trials.trim(gone.page);
        }
    }

    fn on_seal(&mut self, block: &Block) {
        self.division.sealed(block.stream);
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        let held = self.past.histories.held_bytes() + self.trials.held_bytes();
        held as f64 / f64::from(self.geometry.logical_pages.max(1))
    }

    fn learning(&self) -> Option<Statistics> {
        Some(Statistics { windows: self.windows, ..Statistics::default() })
    }

    #[inline(always)]
    fn touch(&self, page: u32) -> u32 {
        self.past.histories.touch(page)
    }

    fn audit(&self) -> Result<(), String> {
        self.past.life.audit()
    }
}

/// Streams that the widest way needs.
pub const STREAMS: u8 = 8;
/// How much the placements of a window count for, of those of the window after it.
const FLOW_WEIGHT: f64 = 0.8;

/// Where pages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Written by the host.
    Host,
    /// Moved by reclaim.
    Moved,
}

/// A way of dividing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPlan {
    /// So many streams for pages of the host, so many others for moved ones.
    Apart(u8, u8),
    /// So many streams for both.
    Shared(u8),
}

impl StreamPlan {
    /// Streams in use.
    pub fn streams(self) -> u8 {
        match self {
            StreamPlan::Apart(host, moved) => host + moved,
            StreamPlan::Shared(all) => all,
        }
    }
}

/// Streams by side and residual lifetime, cut anew at each window's end.
#[derive(Clone, Debug)]
struct StreamDivision {
    way: StreamPlan,
    streams: [[u8; SPANS]; 2],
    /// Pages placed of late.
    flows: [LifeFlow; 2],
    /// Streams with a superblock that is open.
    open: [bool; STREAMS as usize],
    /// Streams that are open from an earlier way and not in use.
    left: Vec<Stream>,
}

impl StreamDivision {
    /// Nothing placed yet: one stream for each side.
    pub fn new(way: StreamPlan) -> StreamDivision {
        let moved = match way {
            StreamPlan::Apart(host, _) => host,
            StreamPlan::Shared(all) => all - 1,
        };
        StreamDivision {
            way,
            streams: [[0; SPANS], [moved; SPANS]],
            flows: [[0.0; SPANS]; 2],
            open: [false; STREAMS as usize],
            left: Vec::new(),
        }
    }

    /// The stream of a page that is placed now. Superblocks left open by an earlier way are filled
    /// up with the moved pages that live longest, lest they take space for nothing.
    #[inline(always)]
    pub fn place(&mut self, side: Side, residual: usize) -> Stream {
        self.flows[side as usize][residual] += 1.0;
        let stream = self.streams[side as usize][residual];
        if side == Side::Moved
            && stream + 1 == self.way.streams()
            && let Some(left) = self.left.last()
        {
            return *left;
        }
        self.open[usize::from(stream)] = true;
        Stream(stream)
    }

    /// A superblock of a stream is full.
    pub fn sealed(&mut self, stream: Stream) {
        if let Some(open) = self.open.get_mut(stream.index()) {
            *open = false;
        }
        self.left.retain(|left| *left != stream);
    }

    /// Cuts streams by what was placed of late.
    pub fn cut(&mut self) {
        let [host, moved] = &self.flows;
        self.streams = match self.way {
            StreamPlan::Apart(own, others) => [
                cut(host, usize::from(own)),
                cut(moved, usize::from(others)).map(|stream| stream + own),
            ],
            StreamPlan::Shared(all) => {
                let both = std::array::from_fn(|bin| host[bin] + moved[bin]);
                [cut(&both, usize::from(all)); 2]
            }
        };
        self.flows.as_flattened_mut().iter_mut().for_each(|pages| *pages *= FLOW_WEIGHT);
    }

    /// Divides in this way from the next cut on, which is to follow at once.
    pub fn follow(&mut self, way: StreamPlan) {
        if way != self.way {
            self.way = way;
            let unused = (way.streams()..STREAMS).filter(|stream| self.open[usize::from(*stream)]);
            self.left = unused.map(Stream).collect();
        }
    }

    /// The way followed.
    pub fn way(&self) -> StreamPlan {
        self.way
    }
}

/// Pages placed per bin of residual lifetimes.
type LifeFlow = [f64; SPANS];

/// The stream of each bin, from 0; at most `count` streams in the order of lifetimes.
pub fn cut(flow: &LifeFlow, count: usize) -> [u8; SPANS] {
    let mut pages = [0.0; SPANS + 1];
    let mut space = [0.0; SPANS + 1];
    for (bin, placed) in flow.iter().enumerate() {
        pages[bin + 1] = pages[bin] + placed;
        let residual = 0.5 * (span_start(bin) + span_start(bin + 1));
        space[bin + 1] = space[bin] + placed * residual;
    }
    let root = |from: usize, to: usize| {
        ((pages[to] - pages[from]) * (space[to] - space[from])).max(0.0).sqrt()
    };
    // Per number of streams and end, the least sum and where the last stream begins.
    let mut min_cost = vec![[(f64::INFINITY, 0); SPANS + 1]; count + 1];
    min_cost[0][0].0 = 0.0;
    for used in 1..=count {
        for to in 0..=SPANS {
            for from in 0..=to {
                let sum = min_cost[used - 1][from].0 + root(from, to);
                if sum < min_cost[used][to].0 {
                    min_cost[used][to] = (sum, from);
                }
            }
        }
    }
    let mut streams = [0; SPANS];
    let mut to = SPANS;
    for used in (1..=count).rev() {
        let from = min_cost[used][to].1;
        streams[from..to].fill(used as u8 - 1);
        to = from;
    }
    streams
}

/// The ways that are tried; the first is where it starts.
pub const WAYS: [StreamPlan; COMPARED] = [
    StreamPlan::Apart(3, 3),
    StreamPlan::Apart(2, 2),
    StreamPlan::Apart(4, 4),
    StreamPlan::Shared(6),
];
/// Pages of a superblock in small.
const SMALL_PAGES: u32 = 16;
/// Neighbouring pages for each page held, at least: fewer save too little.
const MIN_SHARE: u32 = 8;
/// The reclaim policy of drives in small where the true one has a policy outside the registry.
const OTHER_RECLAIM: &str = "death-rate";

/// What places pages on a drive in small by the pasts of the true drive's pages.
struct Follower {
    division: StreamDivision,
    /// Lent while the drive in small works.
    past: Past,
    /// Neighbouring pages of which one is held.
    share: u32,
    /// The true clock.
    clock: u64,
    /// The cell of the page written now.
    cell: usize,
}

impl Separation for Follower {
    fn streams(&self) -> u32 {
        u32::from(self.division.way().streams())
    }

    fn place_user(&mut self, _: &Write) -> Stream {
        let residual = self.past.life.median_residual(self.cell, 0);
        self.division.place(Side::Host, residual)
    }

    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        let residual = self.past.residual(held(moved.page, self.share), self.clock);
        self.division.place(Side::Moved, residual.unwrap_or(0))
    }

    fn on_seal(&mut self, block: &Block) {
        self.division.sealed(block.stream);
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        0.0
    }
}

/// The page that is held of the neighbouring ones with this number.
#[inline(always)]
fn held(number: u32, share: u32) -> u32 {
    number * share + (mix(u64::from(number)) % u64::from(share)) as u32
}

/// One way on its drive.
struct WayTrial {
    drive: Ftl<Follower>,
    /// Pages moved until the window before.
    moved: u64,
    /// Whether the drive refused a write.
    failed: bool,
}

/// All ways on their drives.
#[derive(Default)]
struct Trials {
    /// Neighbouring pages of which one is held.
    share: u32,
    trials: Vec<WayTrial>,
    record: WindowSums,
}

impl Trials {
    /// Empty drives in small; none where superblocks are too small to be made smaller, or where
    /// the drives take more than `limit` bytes per page of the true drive.
    pub fn new(geometry: &Geometry, limit: f64, reclaim: &Named) -> Trials {
        let share = geometry.block_pages / SMALL_PAGES;
        let mut trials = Trials { share, trials: Vec::new(), record: WindowSums::default() };
        if share >= MIN_SHARE {
            let new = |way: &StreamPlan| trial(geometry, share, *way, reclaim);
            trials.trials = WAYS.iter().filter_map(new).collect();
            let bytes = trials.held_bytes() as f64 / f64::from(geometry.logical_pages.max(1));
            if trials.trials.len() < WAYS.len() || bytes > limit {
                trials.trials.clear();
            }
        }
        trials
    }

    /// The number in small of a page, if it is held.
    #[inline(always)]
    fn number(&self, page: u32) -> Option<u32> {
        if self.trials.is_empty() {
            return None;
        }
        let number = page / self.share;
        (page == held(number, self.share)).then_some(number)
    }

    /// The host wrote a page, which then was in a cell.
    #[inline(always)]
    pub fn write(&mut self, page: u32, cell: usize, clock: u64, past: &mut Past) {
        if let Some(number) = self.number(page) {
            self.trials.iter_mut().for_each(|trial| trial.write(number, cell, clock, past));
        }
    }

    /// The host trimmed a page.
    pub fn trim(&mut self, page: u32) {
        if let Some(number) = self.number(page) {
            for trial in &mut self.trials {
                trial.failed |= trial.drive.trim(number, 1).is_err();
            }
        }
    }

    /// A window ends; the way to follow from now on. Another one is to be better by so many
    /// standard errors.
    pub fn end_window(&mut self, present: StreamPlan, certainty: f64) -> StreamPlan {
        if self.trials.len() < WAYS.len() {
            return present;
        }
        let mut moved = [f64::INFINITY; WAYS.len()];
        for (moved, trial) in moved.iter_mut().zip(&mut self.trials) {
            *moved = trial.end_window().unwrap_or(f64::INFINITY);
        }
        self.record.add(&moved);
        let index = WAYS.iter().position(|way| *way == present).unwrap_or(0);
        WAYS[self.record.choose(index, certainty)]
    }

    /// Bytes that the drives hold, those of their superblocks as well.
    pub fn held_bytes(&self) -> usize {
        self.trials.iter().map(|trial| trial.drive.held_bytes()).sum()
    }
}

impl WayTrial {
    fn write(&mut self, number: u32, cell: usize, clock: u64, past: &mut Past) {
        let follower = self.drive.separation_mut();
        (follower.cell, follower.clock) = (cell, clock);
        std::mem::swap(&mut follower.past, past);
        self.drive.begin(&HostRequest { first_page: number, pages: 1, write: true });
        self.failed |= self.drive.write(number, NEVER, &mut NoSink).is_err();
        self.drive.end(&mut NoSink);
        std::mem::swap(&mut self.drive.separation_mut().past, past);
    }

    /// Pages moved in the window that ends, if the drive did not fail.
    fn end_window(&mut self) -> Option<f64> {
        let moved = self.drive.counts().moved_pages;
        let new = moved - std::mem::replace(&mut self.moved, moved);
        self.drive.separation_mut().division.cut();
        (!self.failed).then_some(new as f64)
    }
}

/// A drive in small, if there can be one.
fn trial(geometry: &Geometry, share: u32, way: StreamPlan, reclaim: &Named) -> Option<WayTrial> {
    let logical_pages = geometry.logical_pages.div_ceil(share);
    let small = Geometry { logical_pages, block_pages: SMALL_PAGES, space: geometry.space };
    let division = StreamDivision::new(way);
    let follower = Follower { division, past: Past::default(), share, clock: 0, cell: 0 };
    let own = reclaim::by_name(reclaim.name, &reclaim.pairs, &small, Seed(0));
    let reclaim = own.or_else(|_| reclaim::by_name(OTHER_RECLAIM, &[], &small, Seed(0))).ok()?;
    let drive = Ftl::with_name(small, follower, "a way of dividing", reclaim).ok()?;
    Some(WayTrial { drive, moved: 0, failed: false })
}
/// Ways that are compared.
const COMPARED: usize = 4;
/// How much a window counts for, of the window after it.
const WINDOW_WEIGHT: f64 = 0.95;
/// Windows before the first choice.
const WARM_WINDOWS: u64 = 25;
/// Another way is chosen if it moves less than this share of what the present one moves.
const BETTER: f64 = 0.97;

/// Pages that each way moved in a window; infinitely many of a way that cannot be followed.
type MovedByWay = [f64; COMPARED];

/// Weighted sums over windows.
#[derive(Clone, Debug, Default)]
struct WindowSums {
    windows: u64,
    weight: f64,
    /// Of the squares of weights.
    weight_squares: f64,
    moved: MovedByWay,
    /// Of the squares of differences.
    difference_squares: [MovedByWay; COMPARED],
}

impl WindowSums {
    /// Counts a window.
    pub fn add(&mut self, moved: &MovedByWay) {
        self.windows += 1;
        self.weight = WINDOW_WEIGHT * self.weight + 1.0;
        self.weight_squares = WINDOW_WEIGHT * WINDOW_WEIGHT * self.weight_squares + 1.0;
        for (first, own) in moved.iter().enumerate() {
            self.moved[first] = WINDOW_WEIGHT * self.moved[first] + own;
            for (second, its) in moved.iter().enumerate() {
                let squares = &mut self.difference_squares[first][second];
                *squares = WINDOW_WEIGHT * *squares + (own - its) * (own - its);
            }
        }
    }

    /// The way to follow after `present`: the one that moved least, if it moved less by enough and
    /// by `certainty` standard errors.
    pub fn choose(&self, present: usize, certainty: f64) -> usize {
        let score = |way: &usize| self.moved[*way];
        let best = (0..COMPARED).min_by(|a, b| score(a).total_cmp(&score(b))).unwrap_or(present);
        if self.windows <= WARM_WINDOWS || score(&best) >= BETTER * score(&present) {
            return present;
        }
        // A way that cannot be followed has no noise: it is left at once.
        let gain = score(&present) - score(&best);
        if gain < certainty * self.noise(present, best) { present } else { best }
    }

    /// The standard error of the difference of two sums.
    fn noise(&self, first: usize, second: usize) -> f64 {
        let mean = (self.moved[first] - self.moved[second]) / self.weight;
        let variance = self.difference_squares[first][second] / self.weight - mean * mean;
        (variance.max(0.0) * self.weight_squares).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::separation::none::None as Unseparated;
    use crate::{Address, Space};
    use proptest::prelude::*;

    const PAGES: u32 = 16384;

    fn geometry() -> Geometry {
        let space = Space::Fixed { blocks: 150, reserve_blocks: 2, idle_blocks: 2 };
        Geometry { logical_pages: PAGES, block_pages: 128, space }
    }

    fn drive<S: Registered>(reclaim: &str) -> Ftl<S>
    where
        S::Settings: Default,
    {
        let scheme = S::new(&geometry(), &S::Settings::default(), Seed(1));
        let reclaim = reclaim::by_name(reclaim, &[], &geometry(), Seed(1)).unwrap();
        Ftl::new(geometry(), scheme, reclaim).unwrap()
    }

    /// A fill, then a journal over 16 pages (overwritten every 32 writes) between random pages.
    fn page_of(write: u32) -> u32 {
        match write.checked_sub(PAGES) {
            None => write,
            Some(n) if n % 2 == 0 => n / 2 % 16,
            Some(n) => 64 + (mix(u64::from(n)) % 16320) as u32,
        }
    }

    /// Streams and addresses of so many writes; every 97th is followed by a trim.
    fn run(
        ftl: &mut Ftl<ShiroX>,
        writes: u32,
        page: impl Fn(u32) -> u32,
    ) -> Vec<(Stream, Address)> {
        let mut placed = Vec::new();
        for write in 0..writes {
            let page = page(write);
            ftl.write_request(page, 1, &mut NoSink).unwrap();
            let at = ftl.locate(page).unwrap().unwrap();
            placed.push((ftl.blocks().get(at.block).stream, at));
            if write % 97 == 0 {
                ftl.trim(page, 1).unwrap();
            }
        }
        placed
    }

    #[test]
    fn nothing_looks_ahead() {
        for reclaim in ["cost-benefit", "death-rate"] {
            let cut = 5 * PAGES + 77;
            let other = |write: u32| if write < cut { page_of(write) } else { write * 7 % PAGES };
            let (mut one, mut two) = (drive::<ShiroX>(reclaim), drive::<ShiroX>(reclaim));
            let (a, b) = (run(&mut one, 7 * PAGES, page_of), run(&mut two, 7 * PAGES, other));
            assert_eq!(a[..cut as usize], b[..cut as usize]);
            assert_ne!(a, b, "the futures differ");
            assert_ne!(one.counts(), two.counts());
            assert!(one.separation().windows() > 60);
            assert_eq!(one.audit(), Ok(()));
        }
    }

    #[test]
    fn the_same_writes_are_placed_the_same() {
        let place = || run(&mut drive("death-rate"), 4 * PAGES, page_of);
        assert_eq!(place(), place());
    }

    #[test]
    fn a_journal_is_parted_from_random_pages() {
        let mut ftl = drive::<ShiroX>("cost-benefit");
        let placed = run(&mut ftl, 9 * PAGES, page_of);
        let late = placed.iter().enumerate().skip(6 * PAGES as usize);
        let journal = |n: usize| n.is_multiple_of(2);
        let right = late.clone().filter(|(n, (stream, _))| journal(*n) == (stream.0 == 0)).count();
        assert!(right as f64 > 0.98 * late.count() as f64, "{right}");
        let mut plain = drive::<Unseparated>("cost-benefit");
        for write in 0..9 * PAGES {
            plain.write_request(page_of(write), 1, &mut NoSink).unwrap();
        }
        let (found, without) = (ftl.counts().moved_pages, plain.counts().moved_pages);
        assert!(2 * found < without, "moved {found}, without separation {without}");
        // Beside 6 bytes: 4 drives of 2048 pages and 150 superblocks of 16 pages and about 90
        // bytes, with 32 KiB of death rates each for `death-rate`; `cost-benefit` has none.
        let trials = 4.0 * (2048.0 + 150.0 * 16.0) * 4.0 / f64::from(PAGES);
        let bytes = ftl.separation().metadata_bytes_per_page() - 6.0 - trials;
        let others = bytes * f64::from(PAGES) / 4.0 / 150.0;
        assert!((60.0..120.0).contains(&others), "{others} bytes per superblock in small");
    }

    /// Before a window has ended, the host's pages are on the first stream, moved ones on the
    /// fourth.
    #[test]
    fn untaught_it_parts_moved_pages_only() {
        let mut scheme = ShiroX::new(&geometry(), &ShiroXSettings::default(), Seed(1));
        let write = super::super::fixtures::write(9, 1);
        assert_eq!(scheme.place_user(&write), Stream(0));
        let victim = crate::Block::default();
        let moved = |page| super::super::fixtures::moved(page, &victim, 5);
        assert_eq!(scheme.place_moved(&moved(9)), Stream(3));
        assert_eq!(scheme.place_moved(&moved(8)), Stream(3), "it was never written");
    }

    /// Everything that the compact form holds, counted: at most 4 bytes per page, on drives with
    /// trials (superblocks of 2048 pages and more) and without.
    #[test]
    fn the_compact_form_takes_at_most_four_bytes_per_page() {
        let settings = ShiroXSettings { compact: true, ..ShiroXSettings::default() };
        for (block_pages, trials) in [(128, false), (1024, false), (2048, true)] {
            let pages = 1 << 20;
            let geometry = Geometry::with_over_provisioning(pages, block_pages, 0.28, 4);
            let reclaim = reclaim::by_name("death-rate", &[], &geometry, Seed(1)).unwrap();
            let mut scheme = ShiroX::new(&geometry, &settings, Seed(1));
            scheme.on_reclaim(&reclaim);
            // Enough writes that every list in the small drives is in use.
            for clock in 1..1_500_000_u64 {
                let page = (mix(clock) % u64::from(pages)) as u32;
                scheme.place_user(&super::super::fixtures::write(page, clock));
            }
            let held = scheme.held_bytes() as f64 / f64::from(pages);
            assert!((3.0..=4.0).contains(&held), "{block_pages}: {held}");
            assert_eq!(scheme.trials.held_bytes() > 0, trials);
            assert!(scheme.metadata_bytes_per_page() <= held);
            assert_eq!(scheme.windows(), 14);
        }
    }

    /// The compact form parts a journal from random pages as the full one does, and moves few more.
    #[test]
    fn the_compact_form_moves_about_as_much() {
        let moved = |compact: bool| {
            let settings = ShiroXSettings { compact, trials: false, ..ShiroXSettings::default() };
            let scheme = ShiroX::new(&geometry(), &settings, Seed(1));
            let reclaim = reclaim::by_name("death-rate", &[], &geometry(), Seed(1)).unwrap();
            let mut ftl = Ftl::new(geometry(), scheme, reclaim).unwrap();
            run(&mut ftl, 9 * PAGES, page_of);
            assert_eq!(ftl.audit(), Ok(()));
            ftl.counts().moved_pages as f64
        };
        let ratio = moved(true) / moved(false);
        assert!((0.95..1.05).contains(&ratio), "{ratio}");
    }

    fn sum_of_roots(flow: &LifeFlow, streams: &[u8; SPANS]) -> f64 {
        let root = |stream: u8| {
            let own = (0..SPANS).filter(|bin| streams[*bin] == stream);
            let (pages, space) = own.fold((0.0, 0.0), |(pages, space), bin| {
                let middle = 0.5 * (span_start(bin) + span_start(bin + 1));
                (pages + flow[bin], space + flow[bin] * middle)
            });
            f64::sqrt(pages * space)
        };
        (0..=streams[SPANS - 1]).map(root).sum()
    }

    /// Half of the pages live 1000, a quarter 100,000 or 150,000 each: two streams part them.
    #[test]
    fn short_and_long_lives_are_parted() {
        let mut flow = [0.0; SPANS];
        let (short, long, longer) = (20, 33, 34);
        (flow[short], flow[long], flow[longer]) = (50.0, 25.0, 25.0);
        let streams = cut(&flow, 2);
        assert_eq!([short, long, longer].map(|bin| streams[bin]), [0, 1, 1]);
        assert_eq!(cut(&flow, 1), [0; SPANS]);
        assert_eq!(cut(&[0.0; SPANS], 3)[SPANS - 1], 2, "nothing placed: any cut will do");
    }

    /// From three streams each to two each: stream 5 is open and takes the coldest moved pages
    /// until it is full; stream 4 was filled before.
    #[test]
    fn what_a_way_leaves_open_is_filled_up() {
        let mut division = StreamDivision::new(StreamPlan::Apart(3, 3));
        (division.flows[1][10], division.flows[1][20], division.flows[1][30]) = (1.0, 1.0, 1.0);
        division.cut();
        assert_eq!([10, 20, 30].map(|bin| division.place(Side::Moved, bin).0), [3, 4, 5]);
        division.sealed(Stream(4));
        division.follow(StreamPlan::Apart(2, 2));
        division.cut();
        assert_eq!([10, 30].map(|bin| division.place(Side::Moved, bin).0), [2, 5]);
        assert!(division.place(Side::Host, 30).0 < 2);
        division.sealed(Stream(5));
        assert_eq!(division.place(Side::Moved, 30), Stream(3));
        assert_eq!(division.way().streams(), 4);
    }

    #[test]
    fn no_cut_is_better() {
        let mut rng = Seed(5).rng();
        for _ in 0..20 {
            let mut flow = [0.0; SPANS];
            (0..SPANS).for_each(|bin| flow[bin] = rng.unit() * f64::from(rng.below(2) as u32));
            let found = sum_of_roots(&flow, &cut(&flow, 3));
            for first in 1..SPANS {
                for second in first + 1..SPANS {
                    let streams =
                        std::array::from_fn(|bin| u8::from(bin >= first) + u8::from(bin >= second));
                    assert!(found <= sum_of_roots(&flow, &streams) * (1.0 + 1e-9));
                }
            }
        }
    }

    fn record(windows: &[MovedByWay]) -> WindowSums {
        let mut record = WindowSums::default();
        windows.iter().for_each(|window| record.add(window));
        record
    }

    /// Way 1 moves 10 fewer in every window: no noise. Way 2 moves 100 fewer and 70 more in turn:
    /// it is as good over time and has a standard error of about 85 times the root of the weights'
    /// squares.
    #[test]
    fn what_varies_is_believed_later() {
        let mut windows = vec![[100.0, 90.0, 100.0, 200.0]; WARM_WINDOWS as usize];
        assert_eq!(record(&windows).choose(0, 2.0), 0, "not warm");
        windows.push([100.0, 90.0, 100.0, 200.0]);
        assert_eq!(record(&windows).choose(0, 2.0), 1);
        assert_eq!(record(&windows).choose(1, 2.0), 1);
        let varied =
            |turn: u64| [100.0, 98.0, if turn.is_multiple_of(2) { 0.0 } else { 170.0 }, 200.0];
        let found = record(&(0..200).map(varied).collect::<Vec<MovedByWay>>());
        assert_eq!((found.choose(0, 0.0), found.choose(0, 2.0)), (2, 0));
        assert!(
            (found.noise(0, 2) - 85.0 * (1.0 / (1.0 - WINDOW_WEIGHT * WINDOW_WEIGHT)).sqrt()).abs()
                < 1.0
        );
    }

    #[test]
    fn little_less_is_not_better() {
        assert_eq!(record(&[[100.0, 98.0, 150.0, 99.0]; 50]).choose(0, 0.0), 0);
    }

    #[test]
    fn a_way_that_cannot_be_followed_is_left() {
        let mut windows = vec![[50.0, 90.0, 49.0, 70.0]; 50];
        windows.push([f64::INFINITY, 90.0, 49.0, 70.0]);
        assert_eq!(record(&windows).choose(0, 2.0), 2);
        windows.push([f64::INFINITY; COMPARED]);
        assert_eq!(record(&windows).choose(2, 2.0), 2);
    }

    proptest! {
        /// The sums are those over a list of all windows.
        #[test]
        fn sums_are_those_of_a_list(
            windows in prop::collection::vec(prop::array::uniform4(0_u32..1000), 1..90),
        ) {
            let windows: Vec<MovedByWay> =
                windows.iter().map(|window| window.map(f64::from)).collect();
            let found = record(&windows);
            let weights: Vec<f64> =
                (0..windows.len()).rev().map(|back| WINDOW_WEIGHT.powi(back as i32)).collect();
            let sum = |value: &dyn Fn(&MovedByWay) -> f64| -> f64 {
                weights.iter().zip(&windows).map(|(weight, window)| weight * value(window)).sum()
            };
            let whole: f64 = weights.iter().sum();
            let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
            for (first, second) in [(0, 1), (2, 3), (3, 1)] {
                let mean = sum(&|window| window[first] - window[second]) / whole;
                let variance =
                    sum(&|window| (window[first] - window[second] - mean).powi(2)) / whole;
                let error = (found.noise(first, second).powi(2) - variance * squares).abs();
                prop_assert!(error < 1e-6 * (1.0 + variance * squares), "{error}");
            }
        }
    }

    mod trials {
        use super::super::*;
        use crate::Space;

        fn geometry(block_pages: u32) -> Geometry {
            let space = Space::Fixed { blocks: 80, reserve_blocks: 2, idle_blocks: 2 };
            Geometry { logical_pages: 64 * block_pages, block_pages, space }
        }

        fn own(geometry: &Geometry) -> Named {
            reclaim::by_name("cost-benefit", &[], geometry, Seed(0)).unwrap()
        }

        #[test]
        fn one_page_of_each_share_is_held() {
            let reclaim = own(&geometry(256));
            let trials = Trials::new(&geometry(256), f64::INFINITY, &reclaim);
            assert_eq!((trials.share, trials.trials.len()), (16, WAYS.len()));
            let held: Vec<u32> = (0..64 * 256).filter_map(|page| trials.number(page)).collect();
            assert_eq!(held, (0..1024).collect::<Vec<u32>>());
            assert!(
                trials.trials.iter().all(|trial| trial.drive.held_bytes() > 4 * 1024 + 4 * 80 * 16)
            );
            for (pages, limit) in [(64, f64::INFINITY), (1024, 0.75)] {
                let none = Trials::new(&geometry(pages), limit, &reclaim);
                assert_eq!((none.trials.len(), none.number(0), none.held_bytes()), (0, None, 0));
            }
            assert_eq!(Trials::new(&geometry(2048), 0.75, &reclaim).trials.len(), WAYS.len());
        }

        /// What drives in small move under the reclaim policy of the drive, and what ways are
        /// followed.
        #[test]
        fn the_way_that_moves_least_is_followed() {
            let geometry = geometry(256);
            let moved = |reclaim: &Named| {
                let mut trials = Trials::new(&geometry, f64::INFINITY, reclaim);
                let mut past = Past::default();
                let mut way = WAYS[0];
                let mut window_moves = Vec::new();
                for window in 0..40 {
                    for write in 0..2048 {
                        let page = (mix(window * 2048 + write) % (64 * 256)) as u32;
                        trials.write(page, 70, window * 2048 + write, &mut past);
                    }
                    let before: Vec<u64> = trials.trials.iter().map(|trial| trial.moved).collect();
                    way = trials.end_window(way, 0.0);
                    let new =
                        trials.trials.iter().zip(before).map(|(trial, old)| trial.moved - old);
                    window_moves.push(new.collect::<Vec<u64>>());
                }
                assert!(trials.trials.iter().all(|trial| trial.drive.audit() == Ok(())));
                assert!(trials.trials.iter().all(|trial| trial.moved > 0 && !trial.failed));
                let present = WAYS.iter().position(|known| *known == way).unwrap();
                trials.trials[present].failed = true;
                assert_ne!(trials.end_window(way, 2.0), way, "a drive that fails is not followed");
                window_moves
            };
            let by_age = moved(&own(&geometry));
            assert_ne!(by_age, moved(&reclaim::by_name("fifo", &[], &geometry, Seed(0)).unwrap()));
            let (name, policy) = ("outside", own(&geometry).policy);
            let outside = moved(&Named { name, pairs: Vec::new(), policy });
            let rate = reclaim::by_name(OTHER_RECLAIM, &[], &geometry, Seed(0)).unwrap();
            assert_eq!(outside, moved(&rate));
        }
    }
}
