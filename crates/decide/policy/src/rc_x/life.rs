//! Life tables: how long blocks of a class wait for their next use, and what their room is worth.
//!
//! For: `rc-x`. A *wait* begins with an access to a block and ends with its next one, or when the
//! block is forgotten. Ours; after Kaplan and Meier (JASA'58) for hazards from waits cut short, and
//! Gittins (JRSS B'79) for the index. Units: ages in accesses; hazards from 0 to 1; savings in
//! requests per use; worths in requests saved per block and access.
//!
//! Few waits of a class say little, so that a class believes its parent as if it were `trust` waits
//! of its own: a class its kind (without how often the block was used), a kind its family (interval
//! and operation), a family all blocks, and all blocks nothing: where no block was ever used again,
//! every hazard is 0. All sums are taken in a fixed order in `f32`.

use super::{BlockState, OUT, RcX};
use crate::RequestInfo;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// Number of classes.
///
/// A class is the last interval between two uses of the block (no use before, below 64 accesses,
/// then by doublings), whether it was read or written last, the shape of the request that did so
/// (at most 8 KiB, at most 64 KiB, longer, or one that goes on where another has ended), and how
/// often it was used (once, twice, up to 5 times, more).
pub const CLASSES: usize = 512;
/// Classes without how often the block was used.
pub const KINDS: usize = 128;
/// Kinds without the shape of the request.
pub const FAMILIES: usize = 32;

/// Ends of requests remembered.
const ENDS: usize = 32;
/// Bytes of a block, at least.
const MIN_BLOCK_BYTES: u64 = 512;
/// Bytes of a short request, at most.
const SHORT: u64 = 8 << 10;
/// Bytes of a request that is not long, at most.
const MIDDLE: u64 = 64 << 10;

/// The shape of requests as they come; short until the first one.
///
/// Requests are given in bytes, so that what a block holds is the most bytes per access that any
/// request had so far: of one that begins and ends with a block it is just that.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Shapes {
    ends: [u64; ENDS],
    oldest: usize,
    shape: u16,
    /// Bytes of the present request, and accesses to blocks of it so far.
    length: u64,
    accesses: u64,
    /// Bytes of a block, as far as is known.
    block: u64,
    /// The present request by one of its blocks.
    share: f32,
}

impl Default for Shapes {
    fn default() -> Self {
        Shapes {
            ends: [u64::MAX; ENDS],
            oldest: 0,
            shape: 0,
            length: 0,
            accesses: 0,
            block: MIN_BLOCK_BYTES,
            share: 1.0,
        }
    }
}

impl Shapes {
    /// Takes the next request.
    pub fn next(&mut self, request: &RequestInfo) {
        let held = self.length.checked_div(self.accesses);
        self.block = self.block.max(held.unwrap_or(0));
        (self.length, self.accesses) = (request.length, 0);
        self.share = (self.block as f32 / request.length as f32).min(1.0);
        let goes_on = self.ends.contains(&request.offset);
        self.ends[self.oldest] = request.offset.saturating_add(request.length);
        self.oldest = (self.oldest + 1) % ENDS;
        self.shape = if goes_on {
            3
        } else {
            u16::from(request.length > SHORT) + u16::from(request.length > MIDDLE)
        };
    }

    /// A block of the present request is used.
    #[inline(always)]
    pub fn uses(&mut self) {
        self.accesses += 1;
    }

    /// The share of the present request that one of its blocks is.
    #[inline(always)]
    pub fn share(&self) -> f32 {
        self.share
    }

    /// The class of a block used now: `interval` after its use before, if one is known, and
    /// `uses` times in all.
    #[inline(always)]
    pub fn class(&self, interval: Option<u32>, write: bool, uses: u8) -> u16 {
        let interval =
            interval.map_or(0, |age| (27_u32.saturating_sub(age.leading_zeros())).clamp(1, 15));
        let often = match uses {
            ..=1 => 0,
            2 => 1,
            3..=5 => 2,
            _ => 3,
        };
        interval as u16 | u16::from(write) << 4 | self.shape << 5 | often << 7
    }
}

/// Number of ages: one below 8 accesses, then two per doubling.
pub const AGES: usize = 40;
/// One value for each age.
pub type Ages<T> = [T; AGES];

/// Waits that count as much as the parent of a class.
const TRUST: f32 = 64.0;
/// Waits that count as much as having seen none end well, for all blocks together.
const DOUBT: f32 = 1.0;
/// What a wait counts after one more learning.
const FADE: f32 = 0.95;

/// The index of an age.
#[inline(always)]
pub fn index_of(age: u32) -> usize {
    let age = age.max(4);
    let octave = 31 - age.leading_zeros();
    let half = (age >> (octave - 1)) & 1;
    ((2 * octave + half) as usize).saturating_sub(5).min(AGES - 1)
}

/// Accesses between the ages of an index.
fn width(index: usize) -> f32 {
    if index == 0 { 8.0 } else { (4_u32 << ((index - 1) / 2)) as f32 }
}

/// Waits of one class, fading.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct WaitCounts {
    /// Ended by a use, by age.
    used: Ages<f32>,
    /// Ended otherwise, or not yet.
    cut: Ages<f32>,
    /// What the uses that ended them saved.
    saved: f32,
}

const NONE: WaitCounts = WaitCounts { used: [0.0; AGES], cut: [0.0; AGES], saved: 0.0 };

/// What the waits of a class forecast.
#[derive(Clone, Copy, Debug)]
struct UseForecast {
    /// The chance of a use at each age of those that reach it.
    hazards: Ages<f32>,
    /// What a use saves.
    saving: f32,
}

/// What was learned of one class.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct Worth {
    /// By the age that the block has reached.
    stays: Ages<f32>,
    /// At its access, after the price of writing it.
    enters: f32,
}

const WORTHLESS: Worth = Worth { stays: [0.0; AGES], enters: 0.0 };

/// The waits of all classes and what they forecast.
#[derive(Clone, Debug, SnapshotValue)]
pub struct LifeTables {
    /// Requests that a write into the cache costs.
    price: f32,
    waits: Vec<WaitCounts>,
    /// Of classes, then of kinds.
    worths: Vec<Worth>,
    /// Where each class finds its worth: its own, or that of its kind if it has no waits.
    found_at: Vec<u16>,
}

impl LifeTables {
    /// Tables that have seen nothing.
    pub fn new(price: f32) -> LifeTables {
        LifeTables {
            price,
            waits: vec![NONE; CLASSES],
            worths: vec![WORTHLESS; CLASSES + KINDS],
            found_at: (0..CLASSES as u16).collect(),
        }
    }

    /// A wait has ended with a use that saved so much, or would have.
    #[inline(always)]
    pub fn used(&mut self, class: u16, age: u32, saving: f32) {
        let waits = &mut self.waits[usize::from(class)];
        waits.used[index_of(age)] += 1.0;
        waits.saved += saving;
    }

    /// A block was forgotten while it waited.
    #[inline(always)]
    pub fn forgotten(&mut self, class: u16, age: u32) {
        self.waits[usize::from(class)].cut[index_of(age)] += 1.0;
    }

    /// What room is worth for a block of the class which has waited so long.
    #[inline(always)]
    pub fn stays(&self, class: u16, age: u32) -> f32 {
        self.worths[usize::from(self.found_at[usize::from(class)])].stays[index_of(age)]
    }

    /// The same for a block that would be written now; 0 if it is not worth its write.
    #[inline(always)]
    pub fn enters(&self, class: u16) -> f32 {
        self.worths[usize::from(self.found_at[usize::from(class)])].enters
    }

    /// Learns from all waits so far; `waiting` holds how many are under way, by class and then by
    /// index of age.
    pub fn learn(&mut self, waiting: &[u32]) {
        let mut waits = self.waits.clone();
        for (waits, counts) in waits.iter_mut().zip(waiting.chunks_exact(AGES)) {
            for (cut, count) in waits.cut.iter_mut().zip(counts) {
                *cut = plus_ones(*cut, *count);
            }
        }
        let mut kinds = vec![NONE; KINDS];
        let mut families = vec![NONE; FAMILIES];
        let mut all = NONE;
        for (class, of) in waits.iter().enumerate() {
            kinds[class % KINDS].add(of);
            families[class % FAMILIES].add(of);
            all.add(of);
        }
        let all = all.forecast(&UseForecast { hazards: [0.0; AGES], saving: 0.0 }, DOUBT);
        let families: Vec<_> = families.iter().map(|of| of.forecast(&all, TRUST)).collect();
        let kinds = kinds.iter().enumerate();
        let kinds: Vec<_> =
            kinds.map(|(kind, of)| of.forecast(&families[kind % FAMILIES], TRUST)).collect();
        for (class, of) in waits.iter().enumerate() {
            let own = of.used.iter().chain(&of.cut).any(|count| *count > 0.0);
            let kind = class % KINDS;
            self.found_at[class] = if own { class } else { CLASSES + kind } as u16;
            if own {
                self.worths[class] = worth(&of.forecast(&kinds[kind], TRUST), self.price);
            }
        }
        for (kind, forecast) in kinds.iter().enumerate() {
            self.worths[CLASSES + kind] = worth(forecast, self.price);
        }
        for of in &mut self.waits {
            of.saved *= FADE;
            of.used.iter_mut().chain(&mut of.cut).for_each(|count| *count *= FADE);
        }
    }
}

impl WaitCounts {
    fn add(&mut self, other: &WaitCounts) {
        for age in 0..AGES {
            self.used[age] += other.used[age];
            self.cut[age] += other.cut[age];
        }
        self.saved += other.saved;
    }

    /// What they teach where `prior` is believed as if it came from `trust` waits.
    fn forecast(&self, prior: &UseForecast, trust: f32) -> UseForecast {
        let uses = self.used.iter().sum::<f32>() + trust;
        let saving = (self.saved + trust * prior.saving) / uses;
        UseForecast { hazards: self.hazards(&prior.hazards, trust), saving }
    }

    /// The chance of a use at each age of those that reach it, where `prior` is believed as if it
    /// came from `trust` waits. Waits cut short at an age have seen half of it.
    fn hazards(&self, prior: &Ages<f32>, trust: f32) -> Ages<f32> {
        let mut hazards = [0.0; AGES];
        let mut reach = 0.0;
        for age in (0..AGES).rev() {
            reach += self.used[age] + self.cut[age];
            let exposed = (reach - 0.5 * self.cut[age]).max(0.0);
            let of = exposed + trust;
            hazards[age] = if of > 0.0 { (self.used[age] + trust * prior[age]) / of } else { 0.0 };
        }
        hazards
    }
}

/// A sum (at least 0) after so many additions of 1, each rounded. Between two powers of two up to
/// 2^23 none is, so that they are one addition.
fn plus_ones(mut sum: f32, mut count: u32) -> f32 {
    while count > 0 {
        let above = f32::from_bits((sum.to_bits() & 0x7F80_0000) + 0x0080_0000);
        let exact = if (1.0..8_388_608.0).contains(&sum) { (above - sum) as u32 } else { 0 };
        let step = exact.clamp(1, count);
        sum += step as f32;
        count -= step;
    }
    sum
}

/// For each age the best rate of savings over all times for which the block might be kept from
/// there on; at the first age also less the price of writing it. All ages at which it might begin
/// go side by side.
fn worth(forecast: &UseForecast, price: f32) -> Worth {
    let UseForecast { hazards, saving } = forecast;
    let mut found = WORTHLESS;
    let (mut waits, mut space) = ([1.0_f32; AGES], [0.0_f32; AGES]);
    for (age, hazard) in hazards.iter().enumerate() {
        let width = width(age);
        let kept = waits[..=age].iter_mut().zip(&mut space[..=age]);
        for ((waits, space), stays) in kept.zip(&mut found.stays[..=age]) {
            let uses = *waits * hazard;
            *space += width * (*waits - 0.5 * uses);
            *waits -= uses;
            *stays = stays.max(saving * (1.0 - *waits) / *space);
        }
        found.enters = found.enters.max((saving * (1.0 - waits[0]) - price) / space[0]);
    }
    found
}
/// Accesses before tables are learned for the first time; from there on it takes twice as many
/// each time,
const FIRST: u32 = 64;
/// up to the capacity, but at least to so many.
const MIN_PERIOD: u32 = 16_384;

/// Accesses until tables are learned.
///
/// Twice as many accesses lie between two lessons each time, up to a bound.
#[derive(Clone, Copy, Debug, SnapshotValue)]
pub(super) struct LearningPeriod {
    left: u32,
    /// How many there were the last time.
    length: u32,
}

impl Default for LearningPeriod {
    fn default() -> Self {
        LearningPeriod { left: FIRST, length: FIRST }
    }
}

impl LearningPeriod {
    /// An access; returns whether it ends the period.
    #[inline(always)]
    pub fn ends(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// The next period begins, in a cache of so many blocks.
    pub fn begin_next(&mut self, capacity_blocks: u32) {
        self.length = self.length.saturating_mul(2).min(capacity_blocks.max(MIN_PERIOD));
        self.left = self.length;
    }

    /// Accesses that are left of the period.
    pub fn left(&self) -> u32 {
        self.left
    }
}

/// Visits per access beyond the even share: blocks that become ghosts meanwhile.
const SPARE_VISITS: u32 = 4;

/// Which block is visited next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SnapshotValue)]
enum VisitStage {
    /// The one below this place in the cache.
    Cached(u32),
    /// This ghost.
    Ghosts(BlockId),
    /// Every wait is counted.
    Done,
}

/// Counts of waits by class and by their age at the end of the period.
///
/// When a period begins its end is known, and with it the age that a wait will have then. A block
/// that is used is counted at once. All others are visited a few per access, so that no access
/// visits all blocks: the blocks in the cache from the last place down, then the ghosts from the
/// oldest on. Blocks that move meanwhile move to where the visits come later, or were counted. 80
/// KiB of counts.
#[derive(Clone, Debug, SnapshotValue)]
pub(super) struct WaitsUnderWay {
    counts: Vec<u32>,
    /// When the period ends, if each access is one of it.
    end: u32,
    /// What [`BlockState::counted`] says of a wait that is counted; turns with each period.
    round: bool,
    stage: VisitStage,
    visits_per_access: u32,
    /// Whether uses were noted outside the period, which then ends at another time.
    is_late: bool,
}

impl WaitsUnderWay {
    /// No wait, in a period that ends at an access.
    pub fn new(end: u32) -> WaitsUnderWay {
        WaitsUnderWay {
            counts: vec![0; CLASSES * AGES],
            end,
            round: true,
            stage: VisitStage::Done,
            visits_per_access: 0,
            is_late: false,
        }
    }

    /// Waits by class and then by age at the end of the period.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// A use was noted that is no access of the period.
    pub fn note_late(&mut self) {
        self.is_late = true;
    }

    /// What is visited next, if anything is.
    #[cfg(test)]
    pub fn left_to_visit(&self) -> Option<String> {
        (self.stage != VisitStage::Done).then(|| format!("{:?}", self.stage))
    }

    /// The wait of a block ends, if there is one and it was counted.
    #[inline(always)]
    pub fn remove(&mut self, known: &BlockState) {
        if known.is_known() && known.counted == self.round {
            let cell = self.cell(known);
            self.counts[cell] -= 1;
        }
    }

    /// Counts the wait of a block, which is not counted.
    #[inline(always)]
    pub fn insert(&mut self, known: &mut BlockState) {
        known.counted = self.round;
        let cell = self.cell(known);
        self.counts[cell] += 1;
    }

    #[inline(always)]
    fn cell(&self, known: &BlockState) -> usize {
        usize::from(known.class) * AGES + index_of(self.end.wrapping_sub(known.last))
    }
}

impl RcX {
    /// Visits a few blocks.
    #[inline(always)]
    pub(super) fn visit_some(&mut self) {
        if self.under_way.stage != VisitStage::Done {
            self.visit(self.under_way.visits_per_access);
        }
    }

    /// Counts every wait that is not counted yet, now that the period has ended.
    pub(super) fn finish_census(&mut self) {
        self.visit(u32::MAX);
        if std::mem::take(&mut self.under_way.is_late) {
            self.count_again();
        }
    }

    /// Begins to count for a period of so many accesses from the present one on.
    pub(super) fn begin_census(&mut self, accesses: u32) {
        let blocks = self.held.len() + self.links.len(0);
        let under_way = &mut self.under_way;
        under_way.counts.fill(0);
        under_way.end = self.now.wrapping_add(accesses);
        under_way.round = !under_way.round;
        under_way.stage = VisitStage::Cached(self.held.len());
        under_way.visits_per_access = blocks / accesses.max(1) + SPARE_VISITS;
    }

    /// A ghost leaves its list.
    #[inline(always)]
    pub(super) fn unlink_ghost(&mut self, block: BlockId) {
        if self.under_way.stage == VisitStage::Ghosts(block) {
            self.under_way.stage =
                self.links.newer(block).map_or(VisitStage::Done, VisitStage::Ghosts);
        }
        self.links.unlink(0, block);
    }

    /// Ids have changed; `renamed` gives the new id of a block.
    pub(super) fn rename_visited(&mut self, renamed: impl Fn(BlockId) -> Option<BlockId>) {
        if let VisitStage::Ghosts(block) = self.under_way.stage {
            self.under_way.stage = renamed(block).map_or(VisitStage::Done, VisitStage::Ghosts);
        }
    }

    #[inline(never)]
    fn visit(&mut self, count: u32) {
        for _ in 0..count {
            let Some(block) = self.next_visit() else { return };
            let known = self.links.tag_mut(block);
            if known.counted != self.under_way.round {
                self.under_way.insert(known);
            }
        }
    }

    fn next_visit(&mut self) -> Option<BlockId> {
        if let VisitStage::Cached(place) = self.under_way.stage {
            if let Some(below) = place.min(self.held.len()).checked_sub(1) {
                self.under_way.stage = VisitStage::Cached(below);
                return Some(self.held.at_place(below).block);
            }
            self.under_way.stage = self.links.tail(0).map_or(VisitStage::Done, VisitStage::Ghosts);
        }
        let VisitStage::Ghosts(block) = self.under_way.stage else { return None };
        self.under_way.stage = self.links.newer(block).map_or(VisitStage::Done, VisitStage::Ghosts);
        Some(block)
    }

    /// Counts all waits by their age now.
    fn count_again(&mut self) {
        self.under_way.counts.fill(0);
        self.under_way.end = self.now;
        for held in self.held.iter() {
            self.under_way.insert(self.links.tag_mut(held.block));
        }
        let mut next = self.links.tail(0);
        while let Some(block) = next {
            self.under_way.insert(self.links.tag_mut(block));
            next = self.links.newer(block);
        }
    }

    /// Checks, slowly, that the counts are those of the blocks that say so.
    pub(super) fn audit_census(&self) -> Result<(), String> {
        let mut counts = vec![0_u32; CLASSES * AGES];
        let held = self.held.iter().map(|held| held.block);
        for block in held.chain(self.links.iter(0)) {
            let known = self.links.tag(block);
            if known.counted == self.under_way.round {
                counts[self.under_way.cell(&known)] += 1;
            } else if self.under_way.stage == VisitStage::Done {
                let place = if known.place == OUT { "a ghost" } else { "in the cache" };
                return Err(format!("the wait of block {}, {place}, is not counted", block.0));
            }
        }
        match counts.iter().zip(&self.under_way.counts).position(|(found, count)| found != count) {
            Some(cell) => Err(format!(
                "{} waits of class {} and age {} are counted, expected {}",
                self.under_way.counts[cell],
                cell / AGES,
                cell % AGES,
                counts[cell]
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_by_hand() {
        let mut shapes = Shapes::default();
        assert_eq!(shapes.class(None, false, 1), 0);
        assert_eq!(shapes.class(Some(63), false, 2), 1 | 1 << 7);
        assert_eq!(shapes.class(Some(64), true, 5), 2 | 1 << 4 | 2 << 7);
        assert_eq!(shapes.class(Some(u32::MAX), true, 255), CLASSES as u16 - 1 - (3 << 5));
        let mut shape = |offset, length| {
            shapes.next(&RequestInfo { offset, length, ..RequestInfo::default() });
            shapes.class(None, false, 1) >> 5
        };
        assert_eq!([shape(0, 8 << 10), shape(1 << 30, 64 << 10)], [0, 1]);
        assert_eq!(
            [shape(1 << 40, 65 << 10), shape(8 << 10, 512)],
            [2, 3],
            "goes on with the first"
        );
        // Of 33 requests the first one's end is forgotten.
        (0..29).for_each(|at| assert_eq!(shape(at << 50 | 1, 1), 0));
        assert_eq!(shape((1 << 30) + (64 << 10), 1), 3);
        assert_eq!(shape(8 << 10, 1), 0);
    }

    /// 64 KiB in 17 blocks (begun in the middle of one), then in 16; from there on 4 KiB are one.
    #[test]
    fn shares_by_hand() {
        let mut shapes = Shapes::default();
        let mut share = |length, blocks| {
            shapes.next(&RequestInfo { length, ..RequestInfo::default() });
            (0..blocks).for_each(|_| shapes.uses());
            shapes.share()
        };
        assert_eq!(share(1 << 16, 17), 512.0 / 65_536.0);
        assert_eq!(share(1 << 16, 16), 3_855.0 / 65_536.0);
        assert_eq!([share(1 << 16, 16), share(1 << 14, 4), share(512, 1)], [1.0 / 16.0, 0.25, 1.0]);
        assert_eq!(share(0, 0), 1.0);
    }

    #[test]
    fn ages_by_hand() {
        assert_eq!([0, 3, 4, 7, 8, 11, 12, 15, 16].map(index_of), [0, 0, 0, 0, 1, 1, 2, 2, 3]);
        assert_eq!([u32::MAX, 1 << 22].map(index_of), [AGES - 1; 2]);
        let first = |index: usize| (0..index).map(width).sum::<f32>() as u32;
        for index in 1..AGES {
            let ages = [first(index) - 1, first(index)];
            assert_eq!(ages.map(index_of), [index - 1, index]);
        }
    }

    /// Two waits ended with a use before age 8, two were cut short at ages 8 to 11.
    #[test]
    fn hazards_and_worths_by_hand() {
        let mut waits = NONE;
        waits.used[0] = 2.0;
        waits.cut[1] = 2.0;
        // Of four waits that came there two ended at the first age; of two half seen, none.
        let hazards = waits.hazards(&[0.0; AGES], 0.0);
        assert_eq!(hazards[..3], [0.5, 0.0, 0.0]);
        // A parent of 4 waits that says 1/4 everywhere: (2 + 1) / (4 + 4), then 1 / (1 + 4).
        assert_eq!(waits.hazards(&[0.25; AGES], 4.0)[..3], [0.375, 0.2, 0.25]);
        // Half a use for 8 accesses, the last four of which (on average) half are saved: 0.5 / 6.
        let found = worth(&UseForecast { hazards, saving: 1.0 }, 0.1);
        assert_eq!(found.stays[..2], [0.5 / 6.0, 0.0]);
        assert!((found.enters - 0.4 / 6.0).abs() < 1e-7);
        assert_eq!(worth(&UseForecast { hazards, saving: 1.0 }, 0.5).enters, 0.0);
        // Of requests of two blocks half as much is saved, and the write costs as much.
        let found = worth(&UseForecast { hazards, saving: 0.5 }, 0.1);
        assert_eq!(found.stays[0], 0.25 / 6.0);
        assert!((found.enters - 0.15 / 6.0).abs() < 1e-7);
    }

    #[test]
    fn ones_add_up_as_in_single_steps() {
        for start in [0.0, 0.3, 0.95, 1.0, 1.7, 63.05, 1_023.999_9, 8_388_600.0, 8_388_607.5] {
            let mut sum = start;
            for count in 0..3_000 {
                assert_eq!(plus_ones(start, count), sum, "{start} and {count} ones");
                sum += 1.0;
            }
        }
        let in_steps = (0..500_000).fold(0.1_f32, |sum, _| sum + 1.0);
        assert_eq!(plus_ones(0.1, 500_000), in_steps);
    }

    /// A use that is sure to come at ages 12 to 15 makes room worth more the nearer it is.
    #[test]
    fn what_is_about_to_be_used_is_worth_more() {
        let mut hazards = [0.0; AGES];
        hazards[2] = 1.0;
        let found = worth(&UseForecast { hazards, saving: 1.0 }, 0.0);
        assert_eq!(found.stays[..4], [1.0 / 14.0, 1.0 / 6.0, 1.0 / 2.0, 0.0]);
        assert_eq!(found.enters, 1.0 / 14.0);
    }

    /// Three uses that saved a quarter each and a parent that says one half, believed as two uses.
    #[test]
    fn savings_by_hand() {
        let mut waits = NONE;
        (waits.used[3], waits.cut[9], waits.saved) = (3.0, 50.0, 0.75);
        let parent = UseForecast { hazards: [0.0; AGES], saving: 0.5 };
        assert_eq!(waits.forecast(&parent, 2.0).saving, 1.75 / 5.0);
    }

    #[test]
    fn a_class_without_waits_is_as_its_kind() {
        let mut tables = LifeTables::new(0.0);
        let (class, sibling, stranger) = (5, 5 + KINDS as u16, 6);
        (0..1000).for_each(|_| tables.used(class, 9, 1.0));
        tables.learn(&[]);
        assert!(tables.stays(sibling, 9) > 0.05, "of the same kind");
        assert!(tables.stays(stranger, 9) > 0.05, "all that is known says so");
        assert!(tables.stays(class, 9) >= tables.stays(sibling, 9));
        assert_eq!(tables.stays(class, 12), 0.0);
    }

    #[test]
    fn periods_double_up_to_the_bound() {
        let mut period = LearningPeriod::default();
        let mut lengths = Vec::new();
        for _ in 0..11 {
            lengths.push((1..).find(|_| period.ends()).unwrap_or(0));
            period.begin_next(100);
        }
        let doubling = (0..11).map(|power| (FIRST << power).min(MIN_PERIOD));
        assert_eq!(lengths, doubling.collect::<Vec<u32>>());
    }
}
