//! A cache as the host of a drive: its own writes, by the place of each block on flash.
//!
//! For: write amplification beside hit ratios, under any policy, partitioner and write mode. Must
//! never know: which these are. Units: blocks of the cache, pages of the drive; a place is as many
//! pages as a block has. A fill, a block brought in by a write and an update write the block whole;
//! a hit reads it; write-backs read and cost no write. A block that leaves frees its place, which
//! the next block takes: with `trim_evicted` the place is trimmed at once, without it is simply
//! overwritten, as by caches that issue no discards. Invariant: cached blocks have different places
//! below the cache's size.

use super::drive::{DriveJob, DriveStop, Driven};
use super::plan::label;
use super::steps::ScriptStep;
use super::training::TrainingChoice;
use super::{FEW_DRIVE_WRITES, failure};
use crate::ExperimentError;
use crate::case::ResolvedCase;
use crate::spec::FlashSpec;
use cachewright_result::drive::{CacheDrive, DriveWork};
use cachewright_system::CacheObserver;
use cachewright_types::{BlockId, Op};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Requests gathered before the drive is asked.
const BATCH: usize = 4096;
/// Points of the course per drive write.
const PARTS: u64 = 20;
/// A block without a place.
const NONE: u32 = u32::MAX;

/// Holds the answer when the replay has ended.
type DriveAnswer = Arc<Mutex<Option<Result<DriveWork, DriveStop>>>>;

/// The drive under a cache, if its stack has one, and what the cache's lane tells.
pub type UnderCache = (Option<DriveUnderCache>, Option<Box<dyn CacheObserver>>);

/// The drive under one cache, to be asked when the replay has ended.
pub struct DriveUnderCache {
    job: DriveJob,
    answer: DriveAnswer,
    settings: FlashSpec,
    origin: PathBuf,
}

impl DriveUnderCache {
    /// The drive of a case that has one, and what the cache's lane tells. Errors: a drive that
    /// cannot be.
    pub fn new(case: &ResolvedCase<'_>) -> Result<UnderCache, ExperimentError> {
        let (spec, cache_blocks) = (&case.spec, case.capacity_blocks);
        let Some(flash) = &spec.flash else { return Ok((None, None)) };
        let block_pages = (spec.cache.block.0 / flash.page.0) as u32;
        let logical_pages = flash
            .logical_pages(cache_blocks.into(), block_pages, "the cache")
            .map_err(|message| case.refuse(message))?;
        let job = DriveJob::new(case, flash, logical_pages, TrainingChoice::default());
        let mut drive = job.open().map_err(|stop| failure(&spec.origin, &job, stop, "flash"))?;
        drive.begin_course(u64::from(logical_pages) / PARTS);
        let answer = DriveAnswer::default();
        let host = DriveHost {
            places: FlashPlaces::new(cache_blocks, block_pages, flash.trim_evicted),
            drive: Ok(drive),
            answer: answer.clone(),
        };
        let found =
            DriveUnderCache { job, answer, settings: flash.clone(), origin: spec.origin.clone() };
        Ok((Some(found), Some(Box::new(host))))
    }

    /// What the drive did. Errors: it refused a write.
    pub fn report(self) -> Result<CacheDrive, ExperimentError> {
        let answer = self.answer.lock().ok().and_then(|mut answer| answer.take());
        let answer = answer.unwrap_or(Err(DriveStop::Cancelled));
        let work = answer.map_err(|stop| failure(&self.origin, &self.job, stop, "flash"))?;
        let (flash, logical_pages) = (&self.settings, self.job.geometry.logical_pages);
        let drive_writes = work.user_pages as f64 / f64::from(logical_pages);
        Ok(CacheDrive {
            separation: label(&flash.separation),
            reclaim: label(&flash.reclaim),
            op: flash.over_provisioning.0,
            page_bytes: flash.page.0,
            superblock_bytes: flash.superblock.0,
            reserve_superblocks: flash.reserve,
            logical_pages,
            trim_evicted: flash.trim_evicted,
            work,
            drive_writes,
            steady: drive_writes >= FEW_DRIVE_WRITES,
        })
    }
}

/// What a lane tells, turned into requests of a drive.
struct DriveHost {
    places: FlashPlaces,
    /// The drive, until it refuses.
    drive: Result<Box<dyn Driven>, DriveStop>,
    answer: DriveAnswer,
}

impl DriveHost {
    fn ask(&mut self) {
        if let Ok(drive) = &mut self.drive
            && let Err(stop) = drive.steps(&self.places.steps, &[], u64::MAX, &|_| true)
        {
            self.drive = Err(stop);
        }
        self.places.steps.clear();
    }

    #[inline]
    fn ask_if_many(&mut self) {
        if self.places.steps.len() >= BATCH {
            self.ask();
        }
    }
}

impl CacheObserver for DriveHost {
    fn read(&mut self, pool: usize, block: BlockId) {
        self.places.read(pool, block);
        self.ask_if_many();
    }

    fn write(&mut self, pool: usize, block: BlockId) {
        self.places.write(pool, block);
        self.ask_if_many();
    }

    fn left(&mut self, pool: usize, block: BlockId) {
        self.places.leave(pool, block);
        self.ask_if_many();
    }

    fn finish(&mut self) {
        self.ask();
        let drive = std::mem::replace(&mut self.drive, Err(DriveStop::Cancelled));
        // How long a page will live is not known while a cache runs.
        let found = drive.map(|mut drive| drive.work(false));
        if let Ok(mut answer) = self.answer.lock() {
            *answer = Some(found);
        }
    }
}

/// Where each cached block lies, and what was asked of the drive since it was last told.
struct FlashPlaces {
    /// The place of each block by pool, [`NONE`] where it is not cached.
    by_pool: Vec<Vec<u32>>,
    /// Free places; the last freed is taken first.
    free: Vec<u32>,
    block_pages: u32,
    trim: bool,
    steps: Vec<ScriptStep>,
}

impl FlashPlaces {
    fn new(blocks: u32, block_pages: u32, trim: bool) -> FlashPlaces {
        let free = (0..blocks).rev().collect();
        FlashPlaces {
            by_pool: Vec::new(),
            free,
            block_pages,
            trim,
            steps: Vec::with_capacity(BATCH),
        }
    }

    fn place_of(&mut self, pool: usize, block: BlockId) -> &mut u32 {
        if self.by_pool.len() <= pool {
            self.by_pool.resize(pool + 1, Vec::new());
        }
        let places = &mut self.by_pool[pool];
        if places.len() <= block.index() {
            places.resize((block.index() + 1).next_power_of_two(), NONE);
        }
        &mut places[block.index()]
    }

    fn push(&mut self, op: Op, place: u32) {
        let (first, pages) = (place * self.block_pages, self.block_pages);
        self.steps.push(ScriptStep { op, continues: false, first, pages });
    }

    fn read(&mut self, pool: usize, block: BlockId) {
        let place = *self.place_of(pool, block);
        if place != NONE {
            self.push(Op::Read, place);
        }
    }

    fn write(&mut self, pool: usize, block: BlockId) {
        let held = *self.place_of(pool, block);
        let place = if held == NONE { self.free.pop() } else { Some(held) };
        // Pools never hold more blocks than the cache has, so that there is one.
        debug_assert!(place.is_some(), "more blocks than places");
        if let Some(place) = place {
            *self.place_of(pool, block) = place;
            self.push(Op::Write, place);
        }
    }

    fn leave(&mut self, pool: usize, block: BlockId) {
        let place = std::mem::replace(self.place_of(pool, block), NONE);
        if place != NONE {
            self.free.push(place);
            if self.trim {
                self.push(Op::Trim, place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn step(op: Op, first: u32) -> ScriptStep {
        ScriptStep { op, continues: false, first, pages: 2 }
    }

    /// Blocks of two pages: 7 and 9 take the first places, 8 the one that 7 leaves.
    #[test]
    fn a_block_takes_the_place_that_was_left_last() {
        for trim in [false, true] {
            let mut places = FlashPlaces::new(3, 2, trim);
            places.write(0, BlockId(7));
            places.write(1, BlockId(7));
            places.read(0, BlockId(7));
            places.leave(0, BlockId(7));
            places.write(0, BlockId(8));
            places.write(1, BlockId(7));
            let mut expected = vec![
                step(Op::Write, 0),
                step(Op::Write, 2),
                step(Op::Read, 0),
                step(Op::Trim, 0),
                step(Op::Write, 0),
                step(Op::Write, 2),
            ];
            expected.retain(|step| trim || step.op != Op::Trim);
            assert_eq!(places.steps, expected);
        }
    }

    proptest! {
        #[test]
        fn cached_blocks_have_places_of_their_own(
            events in prop::collection::vec((0_u8..3, 0_usize..2, 0_u32..30), 1..300),
        ) {
            const BLOCKS: u32 = 16;
            let mut places = FlashPlaces::new(BLOCKS, 1, true);
            let mut held: BTreeMap<(usize, u32), u32> = BTreeMap::new();
            for (kind, pool, id) in events {
                let block = BlockId(id);
                match kind {
                    0 if held.len() < BLOCKS as usize || held.contains_key(&(pool, id)) => {
                        places.write(pool, block);
                        let place = *places.place_of(pool, block);
                        let kept = held.insert((pool, id), place);
                        prop_assert!(kept.is_none_or(|kept| kept == place) && place < BLOCKS);
                    }
                    1 => {
                        places.leave(pool, block);
                        held.remove(&(pool, id));
                    }
                    _ => places.read(pool, block),
                }
                let different: std::collections::BTreeSet<u32> = held.values().copied().collect();
                prop_assert_eq!(different.len(), held.len());
                prop_assert_eq!(places.free.len() + held.len(), BLOCKS as usize);
            }
        }
    }
}
