//! MiDAS: groups by update interval, sized by a model of themselves.
//!
//! For: the scheme. A hot filter stands in front of queues of superblocks. A model sizes the queues
//! once per window from the update intervals. Must never know: the mapping, flash. Units: pages and
//! superblocks. Source: MiDAS (Oh et al., FAST'24) and its public simulator; the rules of the
//! simulator are followed where the paper is silent. Deviations, each for the same result every
//! time or to lose no space. The search runs at once and not in a thread. Configurations change at
//! the next victim. A window whose model holds for no configuration is followed by another (the
//! simulator stops to model). Open superblocks of merged groups are filled up, not copied or sealed
//! half-empty.

pub mod chain;
pub mod distribution;
pub mod groups;
pub mod hot_filter;
pub mod intervals;
pub mod search;
pub mod trial;

use super::{Invalidated, MovedPage, Registered, Separation, Stream, VictimSource, Write};
use crate::blocks::{Block, Superblocks};
use crate::{Entry, Geometry, Space};
use cachewright_types::{Seed, declare};
use chain::Chain;
use distribution::Distribution;
use groups::{STREAMS, StreamGroups};
use hot_filter::{HotFilter, HotMeasure};
use intervals::Intervals;
use search::{Configuration, search};
use trial::GroupTrial;

/// Victims in a row, without enough room gained, after which groups merge.
const ENDLESS: u32 = 25;
/// Pages of the drive in superblocks never overwritten in part, below which they count as live.
const UNTOUCHED_SHARE: f64 = 0.2;

declare! {
    /// Settings of MiDAS.
    pub struct MidasSettings {
        /// one in so many pages is followed for its update intervals
        sample_every: u32 = 100, "pages", 1 ..= 100_000;
        /// length of a window of the model, as a multiple of the drive's physical size
        window: f64 = 4.0, "drive sizes", 0.1 ..= 64.0;
        /// host writes before the first window, as a multiple of the drive's logical size
        skip: f64 = 2.0, "drive sizes", 0.0 ..= 64.0;
        /// share of the first window over which a configuration is compared with its prediction
        trial: f64 = 0.3, "ratio", 0.01 ..= 1.0;
    }
}

/// The scheme.
#[derive(Clone, Debug)]
pub struct Midas {
    hot: HotFilter,
    intervals: Intervals,
    groups: StreamGroups,
    trial: GroupTrial,
    /// Host writes that a configuration is measured over.
    trial_pages: f64,
    drive: DriveSize,
    measured: Amplification,
    reclaim: ReclaimRun,
    /// Pages that hold data.
    mapped_pages: u64,
    /// The configuration last found, whether or not it was taken on.
    found: Option<Configuration>,
}

/// The size of the drive.
#[derive(Clone, Copy, Debug)]
struct DriveSize {
    logical_pages: u32,
    block_pages: u32,
    /// Superblocks, those kept free not counted.
    usable_blocks: u32,
    reserve_blocks: u32,
    physical_pages: u64,
}

/// Write amplification over the last physical size of host writes, and what the next is made from.
#[derive(Clone, Copy, Debug)]
struct Amplification {
    last: f64,
    host_writes: u64,
    copies: u64,
}

impl Amplification {
    /// Counts a host write; after `span` of them the amplification is known anew.
    #[inline(always)]
    fn written(&mut self, span: u64) {
        self.host_writes += 1;
        if self.host_writes == span {
            self.last = 1.0 + self.copies as f64 / self.host_writes as f64;
            (self.host_writes, self.copies) = (0, 0);
        }
    }
}

/// Victims taken for one host write: its clock, how many, and where the last one's pages go.
#[derive(Clone, Copy, Debug, Default)]
struct ReclaimRun {
    clock: u64,
    victims: u32,
    target: u8,
}

impl Registered for Midas {
    type Settings = MidasSettings;
    const ENTRY: Entry = Entry {
        name: "midas",
        doc: "a hot group and queues by update interval, sized by a Markov-chain model",
        source: "MiDAS, FAST'24 (and its simulator, dgist-datalab/MiDAS)",
        needs: &[],
    };

    fn new(geometry: &Geometry, settings: &MidasSettings, _: Seed) -> Self {
        let Geometry { logical_pages, block_pages, space } = *geometry;
        let (blocks, reserve) = match space {
            Space::Fixed { blocks, reserve_blocks, .. } => (blocks, reserve_blocks),
            Space::GarbageShare { share } => {
                let pages = f64::from(logical_pages) / (1.0 - share);
                ((pages / f64::from(block_pages)) as u32, 0)
            }
        };
        let physical_pages = u64::from(blocks) * u64::from(block_pages);
        let unit = (block_pages / 4).max(1);
        let window = settings.window * physical_pages as f64 / f64::from(unit);
        let skip = (settings.skip * f64::from(logical_pages)) as u64;
        Midas {
            hot: HotFilter::new(logical_pages),
            intervals: Intervals::new(
                logical_pages,
                unit,
                settings.sample_every,
                skip,
                window as u32,
            ),
            groups: StreamGroups::default(),
            trial: GroupTrial::default(),
            trial_pages: settings.trial * settings.window * physical_pages as f64,
            drive: DriveSize {
                logical_pages,
                block_pages,
                usable_blocks: blocks.saturating_sub(reserve),
                reserve_blocks: reserve,
                physical_pages: physical_pages.max(1),
            },
            measured: Amplification { last: 1.0, host_writes: 0, copies: 0 },
            reclaim: ReclaimRun::default(),
            mapped_pages: 0,
            found: None,
        }
    }
}

impl Midas {
    /// The configuration that the model found last, whether or not it was taken on.
    pub fn last_configuration(&self) -> Option<&Configuration> {
        self.found.as_ref()
    }

    /// The last group, and whether it is a pool now.
    pub fn last_group(&self) -> (u8, bool) {
        (self.groups.last(), self.groups.pooled())
    }

    /// Ends a window: models it, and takes on what it finds if that promises more than is measured.
    fn model(&mut self, blocks: &mut Superblocks) {
        let measure = self.hot.take_measure();
        let poor =
            |measure: &HotMeasure| measure.valid > if measure.blocks > 1.0 { 0.18 } else { 0.3 };
        if measure.as_ref().is_some_and(poor) || blocks.sealed_in(Stream(self.groups.top())) == 0 {
            self.intervals.restart_longer();
            return;
        }
        let step = f64::from(self.intervals.unit()) / f64::from(self.drive.block_pages);
        let chain = Chain {
            distribution: Distribution::new(&self.intervals.counts(), step),
            live_pages: self.mapped_pages as f64 - self.untouched_pages(blocks),
            block_pages: f64::from(self.drive.block_pages),
        };
        let found = search(&chain, measure, self.drive.usable_blocks);
        let mut longer = false;
        if let Some(found) = &found {
            if self.measured.last < found.write_amplification {
                self.trial.refuse();
            } else {
                longer = self.trial.begin(found);
                self.groups.configure(&found.sizes, blocks);
            }
            self.found = Some(found.clone());
        }
        if longer { self.intervals.restart_longer() } else { self.intervals.restart() }
    }

    /// Pages in superblocks of the last group that are never overwritten, less one in twenty of
    /// those freshly written; none if they are few.
    fn untouched_pages(&self, blocks: &Superblocks) -> f64 {
        let (last, top) = (self.groups.last(), self.groups.top());
        let in_pool = |block: &Block| (last..=top).contains(&block.stream.0);
        let untouched = blocks.sealed().filter(|block| in_pool(block) && block.invalid == 0);
        let held: u32 = (last..=top).map(|stream| blocks.sealed_in(Stream(stream))).sum();
        let pages = f64::from(self.drive.block_pages);
        let untouched = untouched.count() as f64 * pages - 0.05 * f64::from(held) * pages;
        let few = UNTOUCHED_SHARE * self.drive.physical_pages as f64;
        if untouched < few { 0.0 } else { untouched }
    }

    /// Merges groups where reclaim does not end or a group does not do what was predicted.
    fn revise_groups(&mut self, blocks: &mut Superblocks, free: u32, clock: u64) {
        // Work of idle time, beyond the reserve, may well take many victims.
        if clock != self.reclaim.clock || free >= self.drive.reserve_blocks {
            (self.reclaim.clock, self.reclaim.victims) = (clock, 0);
            self.trial.reclaimed(self.groups.last());
        } else if self.reclaim.victims == ENDLESS {
            self.reclaim.victims = 0;
            if let Some(last) = self.trial.stuck(self.reclaim.target, self.groups.last()) {
                self.groups.merge(last, blocks);
            }
        }
        let (last, pooled) = (self.groups.last(), self.groups.pooled());
        if let Some(wrong) = self.trial.verdict(self.trial_pages, last, pooled) {
            self.groups.merge(wrong, blocks);
        }
    }
}

impl Separation for Midas {
    const WATCHES_INVALIDATION: bool = true;

    fn streams(&self) -> u32 {
        u32::from(STREAMS)
    }

    fn user_streams(&self) -> u32 {
        2
    }

    #[inline(always)]
    fn place_user(&mut self, write: &Write) -> Stream {
        if write.clock == u64::from(self.drive.logical_pages) + 1 {
            self.hot.start();
        }
        let hot = self.hot.admit(write.page);
        self.mapped_pages += u64::from(!write.rewrite);
        self.intervals.written(write.page);
        self.trial.written();
        self.measured.written(self.drive.physical_pages);
        self.groups.user(hot)
    }

    #[inline(always)]
    fn place_moved(&mut self, page: &MovedPage<'_>) -> Stream {
        let group = page.victim.stream.0;
        self.measured.copies += 1;
        self.hot.moved(page.page, group);
        self.groups.above(group)
    }

    #[inline(always)]
    fn on_invalidate(&mut self, gone: &Invalidated<'_>) {
        if gone.trimmed {
            self.intervals.trimmed(gone.page);
            self.mapped_pages = self.mapped_pages.saturating_sub(1);
            return;
        }
        let age = if gone.block.sealed { gone.clock - gone.block.sealed_at } else { 0 };
        self.hot.overwritten(gone.page, gone.block.stream.0, age);
    }

    fn choose_victim(&mut self, blocks: &mut Superblocks, free: u32, clock: u64) -> VictimSource {
        self.revise_groups(blocks, free, clock);
        if self.intervals.finished() {
            self.hot.record(false);
            self.model(blocks);
            self.hot.record(true);
        }
        self.reclaim.victims += 1;
        let (choice, group) = self.groups.choose(blocks);
        self.hot.holds(blocks.sealed_in(Stream(0)));
        self.trial.chosen(group);
        choice
    }

    fn on_erase(&mut self, victim: &Block, clock: u64) {
        let group = victim.stream.0;
        self.reclaim.target = (group + 1).min(self.groups.top());
        if group == 0 {
            self.hot.collected(clock - victim.sealed_at, victim.valid_share());
        }
        self.trial.emptied(group, victim.valid_share());
    }

    fn on_seal(&mut self, block: &Block) {
        self.groups.sealed(block);
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        0.25 + self.intervals.bytes_per_page()
    }

    fn audit(&self) -> Result<(), String> {
        let (last, top) = (self.groups.last(), self.groups.top());
        if last == 0 || top >= STREAMS {
            return Err(format!("midas: last group {last}, highest stream {top} of {STREAMS}"));
        }
        Ok(())
    }
}
