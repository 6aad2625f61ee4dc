//! One drive under one separation and one reclaim policy, from the first write to the last: by
//! itself, with a cache as its host, or as the log of a store.
//!
//! Units: pages, and blocks of the cache; a drive write is as many host pages as the drive has
//! logical pages. The load is replayed first and counts nothing.

use super::script::{ScriptStep, Stretch};
use super::training::{self, TrainingChoice};
use super::{FEW_DRIVE_WRITES, failure, label};
use crate::ExperimentError;
use crate::case::{Case, ResolvedCase};
use crate::spec::{FlashSpec, Scheme};
use cachewright_device::store::StoreLayer;
use cachewright_ftl::layer::Layer;
use cachewright_ftl::separation::shiro::TrainError;
use cachewright_ftl::separation::{Registered, Separation, SeparationVisitor};
use cachewright_ftl::{
    Address, Classification, Confusion, Ftl, FtlCounts, FtlError, Geometry, HostRequest, NEVER,
    Sink, Space, Statistics, Superblocks, reclaim,
};
use cachewright_result::devices::CacheDrive;
use cachewright_result::devices::Classifier;
use cachewright_result::devices::DriveWork;
use cachewright_result::devices::EraseSpread;
use cachewright_result::devices::Learning;
use cachewright_result::devices::Stream;
use cachewright_result::devices::ThresholdSpread;
use cachewright_result::devices::Training;
use cachewright_system::CacheObserver;
use cachewright_types::{BlockId, Op, Seed, Value as Setting};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The setting of separations that must know how large a page is; the drive's unless given.
const PAGE_BYTES: &str = "page_bytes";
/// Host pages between two reports of progress.
const TELL_EVERY: u64 = 1 << 16;

/// What all drives are asked.
pub struct DriveTask<'a> {
    /// The requests of the load.
    pub load: Stretch<'a>,
    /// The requests of the run.
    pub run: Stretch<'a>,
    /// Page writes of the run after which the measurement ends.
    pub limit_pages: u64,
    /// Page writes between two points of the series.
    pub every_pages: u64,
    /// Gets page writes done since it was told last; false stops the run.
    pub tell: Tell<'a>,
}

/// Why a drive stopped early.
#[derive(Debug)]
pub enum DriveStop {
    /// The drive refused.
    Flash(Box<FtlError>),
    /// The given model does not fit.
    Untaught(Box<TrainError>),
    /// The caller asked to stop.
    Cancelled,
}

impl From<FtlError> for DriveStop {
    fn from(error: FtlError) -> DriveStop {
        DriveStop::Flash(Box::new(error))
    }
}

impl From<TrainError> for DriveStop {
    fn from(error: TrainError) -> DriveStop {
        DriveStop::Untaught(Box::new(error))
    }
}

/// One replay on the drive of a case: by itself, under a cache, or as the log of a store.
#[derive(Clone, Debug)]
pub struct DriveJob {
    /// Which pages share a superblock.
    pub separation: Scheme,
    /// Which superblock is cleaned next.
    pub reclaim: Scheme,
    /// The over-provisioning asked for, as a ratio.
    pub over_provisioning: f64,
    /// The drive.
    pub geometry: Geometry,
    /// Bytes of its pages, for separations that keep metadata in them.
    pub page_bytes: u64,
    /// Root of the schemes' randomness.
    pub seed: Seed,
    /// Where the models of a separation that learns come from.
    pub training: TrainingChoice,
    /// The number of the case.
    pub index: usize,
}

impl DriveJob {
    /// The drive of a case, which is `flash` with so many pages.
    pub fn new(
        case: &Case,
        flash: &FlashSpec,
        logical_pages: u32,
        training: TrainingChoice,
    ) -> DriveJob {
        DriveJob {
            separation: flash.separation.clone(),
            reclaim: flash.reclaim.clone(),
            over_provisioning: flash.over_provisioning.0,
            geometry: Geometry::with_over_provisioning(
                logical_pages,
                flash.block_pages(),
                flash.over_provisioning.0,
                flash.reserve,
            ),
            page_bytes: flash.page.0,
            seed: case.spec.seed,
            training,
            index: case.index,
        }
    }

    /// What tells the answer of this case from those of others, without its training. The text
    /// names no type or field, so that renaming one keeps the answers of earlier runs.
    pub fn identity(&self) -> String {
        // All fields are named, so that a new one is not left out unseen.
        let DriveJob {
            separation,
            reclaim,
            over_provisioning,
            geometry,
            page_bytes,
            seed,
            training: _,
            index: _,
        } = self;
        let Geometry { logical_pages, block_pages, space } = geometry;
        let space = match space {
            Space::Fixed { blocks, reserve_blocks, idle_blocks } => {
                format!("{blocks} blocks, {reserve_blocks} and {idle_blocks} free")
            }
            Space::GarbageShare { share } => format!("garbage share {share}"),
        };
        format!(
            "{}; {}; {over_provisioning} over-provisioning; {logical_pages} pages, {block_pages} \
             per block; {space}; {page_bytes} bytes per page; seed {}",
            label(separation),
            label(reclaim),
            seed.0
        )
    }

    /// Replays the work on a new drive and returns what it cost.
    pub fn run(&self, work: &DriveTask<'_>) -> Result<DriveWork, DriveStop> {
        if !(work.tell)(0) {
            return Err(DriveStop::Cancelled);
        }
        let mut drive = self.open()?;
        work.load.pieces(|steps, lifetimes| {
            drive.steps(steps, lifetimes, u64::MAX, work.tell).map(|()| true)
        })?;
        drive.begin_course(work.every_pages);
        let end = drive.clock() + work.limit_pages;
        while drive.clock() < end {
            work.run.pieces(|steps, lifetimes| {
                drive.steps(steps, lifetimes, end, work.tell)?;
                Ok::<bool, DriveStop>(drive.clock() < end)
            })?;
        }
        Ok(drive.work(true))
    }

    /// A new drive.
    pub fn open(&self) -> Result<Box<dyn Driven>, DriveStop> {
        let Scheme { name, pairs } = with_page_bytes(&self.separation, self.page_bytes);
        cachewright_ftl::separation::visit(&name, &pairs, Opening { job: self })?
    }

    /// The same drive's translation layer, for a caller that carries out its decisions.
    pub fn layer(&self) -> Result<Box<dyn Layer>, DriveStop> {
        let Scheme { name, pairs } = with_page_bytes(&self.separation, self.page_bytes);
        cachewright_ftl::separation::visit(&name, &pairs, Bare { job: self })?
    }

    /// The translation layer under a separation of these settings.
    fn ftl<S: Registered>(&self, settings: &S::Settings) -> Result<Ftl<S>, DriveStop> {
        let seed = self.seed.derive("separation");
        let mut separation = S::new(&self.geometry, settings, seed);
        if let Some(learner) = separation.learner() {
            self.training.teach(learner, self.index, seed.derive("trainer"))?;
        }
        let Scheme { name, pairs } = &self.reclaim;
        let seed = self.seed.derive("reclaim");
        let reclaim = reclaim::by_name(name, pairs, &self.geometry, seed)?;
        Ok(Ftl::new(self.geometry, separation, reclaim)?)
    }
}

/// A separation with the drive's page size, if it has a setting for that and was given none.
pub fn with_page_bytes(separation: &Scheme, page_bytes: u64) -> Scheme {
    let Scheme { name, mut pairs } = separation.clone();
    let settings = cachewright_ftl::separation::keys(&name).unwrap_or_default();
    let named = |key: &str| pairs.iter().any(|(given, _)| given == key);
    if settings.iter().any(|spec| spec.name == PAGE_BYTES) && !named(PAGE_BYTES) {
        pairs.push((PAGE_BYTES.to_owned(), Setting::Int(page_bytes as i64)));
    }
    Scheme { name, pairs }
}

/// Gets page writes done since it was told last; false stops the run.
pub type Tell<'a> = &'a (dyn Fn(u64) -> bool + Sync);

/// A drive, whatever its separation.
pub trait Driven: Send {
    /// Replays requests until so many pages have been written in all; the last request may be cut.
    /// `lifetimes` are those of the pages written, in order, or empty.
    fn steps(
        &mut self,
        steps: &[ScriptStep],
        lifetimes: &[u32],
        end: u64,
        tell: Tell<'_>,
    ) -> Result<(), DriveStop>;

    /// What comes is counted, with a point about every so many pages.
    fn begin_course(&mut self, every_pages: u64);

    /// Pages written so far.
    fn clock(&self) -> u64;

    /// What was done since the course began; `lifetimes` says whether those of pages are known.
    fn work(&mut self, lifetimes: bool) -> DriveWork;
}

struct Opening<'a> {
    job: &'a DriveJob,
}

impl SeparationVisitor for Opening<'_> {
    type Output = Result<Box<dyn Driven>, DriveStop>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let job = self.job;
        let ftl = job.ftl::<S>(&settings)?;
        let tally = DriveTally::new(job.geometry.logical_pages, ftl.separation().streams());
        Ok(Box::new(Drive { ftl, tally, course: Course::default(), reported: 0 }))
    }
}

struct Bare<'a> {
    job: &'a DriveJob,
}

impl SeparationVisitor for Bare<'_> {
    type Output = Result<Box<dyn Layer>, DriveStop>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        Ok(Box::new(self.job.ftl::<S>(&settings)?))
    }
}

struct Drive<S> {
    ftl: Ftl<S>,
    tally: DriveTally,
    course: Course,
    reported: u64,
}

impl<S: Separation> Driven for Drive<S> {
    fn steps(
        &mut self,
        steps: &[ScriptStep],
        lifetimes: &[u32],
        end: u64,
        tell: Tell<'_>,
    ) -> Result<(), DriveStop> {
        let mut lifetimes = lifetimes.iter();
        for (index, step) in steps.iter().enumerate() {
            let rest = &steps[index + 1..];
            if !step.continues {
                self.begin(step, rest);
            }
            match step.op {
                Op::Trim => self.ftl.trim(step.first, step.pages)?,
                Op::Read | Op::Flush => {}
                Op::Write => {
                    let left = end.saturating_sub(self.ftl.clock()).min(u64::from(step.pages));
                    for page in step.first..step.first + left as u32 {
                        let lifetime = lifetimes.next().copied();
                        self.write(page, lifetime.unwrap_or(cachewright_ftl::NEVER))?;
                    }
                    let done = self.ftl.clock() >= end;
                    if done || !rest.first().is_some_and(|next| next.continues) {
                        self.ftl.end(&mut self.tally);
                        self.tally.settle(self.ftl.blocks(), self.ftl.clock());
                    }
                    if done {
                        break;
                    }
                }
            }
            self.report(tell)?;
        }
        Ok(())
    }

    fn begin_course(&mut self, every_pages: u64) {
        self.tally.restart();
        self.course = Course::begin(&self.ftl, every_pages.max(1));
    }

    fn clock(&self) -> u64 {
        self.ftl.clock()
    }

    fn work(&mut self, lifetimes: bool) -> DriveWork {
        let training = training::outcome(self.ftl.separation_mut());
        self.course.work(&self.ftl, self.tally.streams(lifetimes), training)
    }
}

impl<S: Separation> Drive<S> {
    /// Announces a request that begins with `step` and goes on in those steps of `rest` that
    /// continue it.
    fn begin(&mut self, step: &ScriptStep, rest: &[ScriptStep]) {
        let parts = rest.iter().take_while(|next| next.continues);
        let pages = parts.fold(step.pages, |sum, part| sum.saturating_add(part.pages));
        if step.op != Op::Trim {
            let write = step.op == Op::Write;
            self.ftl.begin(&HostRequest { first_page: step.first, pages, write });
        }
    }

    /// Tells progress and takes a sample when they are due.
    #[inline(always)]
    fn report(&mut self, tell: Tell<'_>) -> Result<(), DriveStop> {
        let news = self.ftl.clock() - self.reported;
        if news >= TELL_EVERY {
            self.reported += news;
            if !tell(news) {
                return Err(DriveStop::Cancelled);
            }
        }
        self.course.sample(&self.ftl);
        Ok(())
    }

    #[inline(always)]
    fn write(&mut self, page: u32, lifetime: u32) -> Result<(), DriveStop> {
        self.ftl.write(page, lifetime, &mut self.tally)?;
        self.tally.wrote(self.ftl.blocks(), page, self.ftl.clock(), lifetime);
        Ok(())
    }
}

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
/// A fill, a block brought in by a write and an update write the block whole; a hit reads it;
/// write-backs read and cost no write. A block that leaves frees its place, which the next block
/// takes: with `trim_evicted` the place is trimmed at once, without it is simply overwritten, as by
/// caches that issue no discards. Invariant: cached blocks have different places below the cache's
/// size.
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

/// The translation layer of a store of a case, of so many pages. Errors: a drive that cannot be.
pub fn log(
    case: &Case,
    flash: &FlashSpec,
    logical_pages: u32,
) -> Result<StoreLayer, ExperimentError> {
    let job = DriveJob::new(case, flash, logical_pages, TrainingChoice::default());
    let layer = job.layer().map_err(|stop| failure(&case.spec.origin, &job, stop, "flash"))?;
    Ok(StoreLayer { layer, geometry: job.geometry, page: flash.page })
}

/// Points kept of a course.
const POINTS: usize = 400;

/// Moments of a drive's life that are counted from.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// Counts at the start and at each point of the series.
    samples: Vec<FtlCounts>,
    /// Erases of each superblock at the start.
    worn: Vec<u32>,
    /// What the separation had learned at the start.
    learned: Option<Statistics>,
    every_pages: u64,
    next: u64,
}

impl Course {
    /// Begins to count; a point is taken about every so many pages.
    pub fn begin<S: Separation>(ftl: &Ftl<S>, every_pages: u64) -> Course {
        let start = ftl.counts();
        Course {
            samples: vec![start],
            worn: ftl.blocks().iter().map(|block| block.erases).collect(),
            learned: ftl.separation().learning(),
            every_pages,
            next: start.user_pages + every_pages,
        }
    }

    /// Takes a point if one is due. A long course doubles its step, so that it stays short.
    #[inline(always)]
    pub fn sample<S: Separation>(&mut self, ftl: &Ftl<S>) {
        if ftl.clock() >= self.next && !self.samples.is_empty() {
            self.take(ftl.counts());
        }
    }

    #[cold]
    #[inline(never)]
    fn take(&mut self, now: FtlCounts) {
        self.samples.push(now);
        if self.samples.len() > 2 * POINTS {
            let kept = self.samples.iter().step_by(2).copied().collect();
            self.samples = kept;
            self.every_pages *= 2;
        }
        while self.next <= now.user_pages {
            self.next += self.every_pages;
        }
    }

    fn start(&self) -> FtlCounts {
        self.samples.first().copied().unwrap_or_default()
    }

    /// The points with the end: a last part of less than half the usual length joins the one
    /// before it.
    fn closed(&self, end: FtlCounts) -> Vec<FtlCounts> {
        let mut samples = self.samples.clone();
        let parts = samples.len().saturating_sub(1);
        match samples.last_mut() {
            Some(last) if parts > 0 && end.user_pages - last.user_pages < self.every_pages / 2 => {
                *last = end;
            }
            _ => samples.push(end),
        }
        samples
    }

    /// What was done since the beginning.
    pub fn work<S: Separation>(
        &self,
        ftl: &Ftl<S>,
        streams: Vec<Stream>,
        training: Option<Training>,
    ) -> DriveWork {
        let (start, end) = (self.start(), ftl.counts());
        let total = end - start;
        let drive = f64::from(ftl.geometry().logical_pages);
        let samples = self.closed(end);
        let point = |pair: &[FtlCounts]| {
            let (part, sum) = (pair[1] - pair[0], pair[1] - start);
            (sum.user_pages as f64 / drive, part.user_pages, part.flash_pages())
        };
        let blocks = ftl.blocks();
        let before = |id: u32| self.worn.get(id as usize).copied().unwrap_or_default();
        let erases = blocks.iter().map(|block| block.erases - before(block.id));
        let amplification = total.write_amplification();
        let separation = ftl.separation();
        let classification = separation.classification();
        let learned = separation.learning();
        DriveWork {
            superblocks: blocks.len(),
            streams_used: separation.streams(),
            user_pages: total.user_pages,
            moved_pages: total.moved_pages,
            meta_pages: total.meta_pages,
            flash_pages: total.flash_pages(),
            write_amplification: amplification,
            extra_writes: amplification - 1.0,
            last_write_amplification: last(&samples, drive as u64).write_amplification(),
            collections: total.collections,
            victim_invalid_share: share(total.reclaimed_pages, total.moved_pages),
            trimmed_pages: total.trimmed_pages,
            misplaced_pages: total.misplaced_pages,
            meta_reads: total.meta_reads,
            mapped_pages: ftl.mapped_pages(),
            metadata_bytes_per_page: separation.metadata_bytes_per_page(),
            memory_bytes_per_page: separation.memory_bytes_per_page(),
            erases: spread(erases.map(f64::from).collect()),
            streams,
            series: samples.windows(2).map(point).collect(),
            classifier: classification.map(|found| classifier(&found, start.user_pages, drive)),
            learning: learned.map(|now| learning(&now, &self.learned.unwrap_or_default())),
            training,
        }
    }
}

/// What the last drive write did; all of the run when it was shorter.
fn last(samples: &[FtlCounts], drive: u64) -> FtlCounts {
    let (Some(start), Some(end)) = (samples.first(), samples.last()) else {
        return FtlCounts::default();
    };
    let from = end.user_pages.saturating_sub(drive);
    let before = samples.iter().rfind(|counts| counts.user_pages <= from);
    *end - *before.unwrap_or(start)
}

/// Predictions of short lifetimes against what came, since a moment; parts in the order of time.
fn classifier(found: &Classification, since: u64, drive: f64) -> Classifier {
    let parts: Vec<_> = found.parts.iter().filter(|part| part.from >= since).collect();
    let step = parts.len().div_ceil(POINTS).max(1);
    let rows = parts.chunks(step).map(|group| {
        let mut sum = Confusion::default();
        group.iter().for_each(|part| sum += part.confusion);
        let from = group.first().map_or(since, |part| part.from) - since;
        let threshold = group.last().map_or(0, |part| part.threshold);
        let Confusion { short_right, short_wrong, long_right, long_wrong } = sum;
        let drive_writes = from as f64 / drive;
        (drive_writes, threshold, short_right, short_wrong, long_right, long_wrong)
    });
    let mut thresholds: Vec<u32> = parts.iter().map(|part| part.threshold).collect();
    thresholds.sort_unstable();
    let confusion = found.since(since);
    let known = |value: f64| (confusion.total() > 0).then_some(value);
    Classifier {
        judged: confusion.total(),
        short_right: confusion.short_right,
        short_wrong: confusion.short_wrong,
        long_right: confusion.long_right,
        long_wrong: confusion.long_wrong,
        accuracy: known(confusion.accuracy()),
        precision: known(confusion.precision()),
        recall: known(confusion.recall()),
        f1: known(confusion.f1()),
        majority: known(confusion.majority()),
        called_short: known(confusion.called_short()),
        were_short: known(confusion.were_short()),
        parts: rows.collect(),
        threshold: ThresholdSpread {
            min: thresholds.first().copied(),
            median: thresholds.get(thresholds.len() / 2).copied(),
            max: thresholds.last().copied(),
        },
    }
}

fn learning(now: &Statistics, before: &Statistics) -> Learning {
    let (hits, misses) = (now.meta_hits - before.meta_hits, now.meta_misses - before.meta_misses);
    Learning {
        predictions: now.predictions - before.predictions,
        waited_predictions: now.waited_predictions - before.waited_predictions,
        windows: now.windows - before.windows,
        trainings: now.trainings - before.trainings,
        failures: now.failures - before.failures,
        meta_lookups: hits + misses,
        meta_misses: misses,
        meta_miss_share: share(misses, hits),
    }
}

fn share(part: u64, rest: u64) -> f64 {
    if part + rest == 0 { 0.0 } else { part as f64 / (part + rest) as f64 }
}

/// Least, mean, most and standard deviation.
fn spread(values: Vec<f64>) -> EraseSpread {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(0.0, f64::max);
    let min = if smallest.is_finite() { smallest } else { 0.0 };
    EraseSpread { min, mean, max: largest, stddev: variance.sqrt() }
}

/// Bins of lifetimes; the last is "not overwritten".
const BINS: usize = 34;

/// One stream.
#[derive(Clone, Debug)]
struct StreamBins {
    /// Pages from the host and moved pages by bin.
    bins: [[u64; 2]; BINS],
}

/// The receiver of one drive's moves.
/// A lifetime is what is left of it when the page is placed. Bins are powers of two: bin 0 holds 0
/// and 1, bin b holds 2^(b-1)+1 to 2^b.
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
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashSet};

    #[test]
    fn every_setting_of_a_drive_is_in_its_identity() {
        let scheme = |name: &str, pairs: &[(&str, Setting)]| Scheme {
            name: name.to_owned(),
            pairs: pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
        };
        let first = DriveJob {
            separation: scheme("sepbit", &[]),
            reclaim: scheme("greedy", &[]),
            over_provisioning: 0.07,
            geometry: Geometry::with_over_provisioning(1000, 10, 0.07, 3),
            page_bytes: 4096,
            seed: Seed(1),
            training: TrainingChoice::Native,
            index: 0,
        };
        let geometry = |change: fn(&mut Geometry)| {
            let mut case = first.clone();
            change(&mut case.geometry);
            case
        };
        let set =
            |space| DriveJob { geometry: Geometry { space, ..first.geometry }, ..first.clone() };
        let cases = [
            first.clone(),
            DriveJob { separation: scheme("dac", &[]), ..first.clone() },
            DriveJob {
                separation: scheme("dac", &[("regions", Setting::Int(3))]),
                ..first.clone()
            },
            DriveJob {
                separation: scheme("dac", &[("regions", Setting::Int(4))]),
                ..first.clone()
            },
            DriveJob { reclaim: scheme("death-rate", &[]), ..first.clone() },
            DriveJob { over_provisioning: 0.28, ..first.clone() },
            geometry(|geometry| geometry.logical_pages = 999),
            geometry(|geometry| geometry.block_pages = 20),
            set(Space::Fixed { blocks: 107, reserve_blocks: 3, idle_blocks: 4 }),
            set(Space::Fixed { blocks: 107, reserve_blocks: 4, idle_blocks: 4 }),
            set(Space::Fixed { blocks: 108, reserve_blocks: 4, idle_blocks: 4 }),
            set(Space::GarbageShare { share: 0.15 }),
            set(Space::GarbageShare { share: 0.2 }),
            DriveJob { page_bytes: 16384, ..first.clone() },
            DriveJob { seed: Seed(2), ..first.clone() },
        ];
        let texts: HashSet<String> = cases.iter().map(DriveJob::identity).collect();
        assert_eq!(texts.len(), cases.len());
        assert_eq!(DriveJob { index: 7, ..first.clone() }.identity(), first.identity());
    }

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

    #[test]
    fn bins_are_powers_of_two() {
        let found = [0, 1, 2, 3, 4, 5, 1 << 32].map(|lifetime| bin(lifetime, false));
        assert_eq!(found, [0, 0, 1, 2, 2, 3, 32]);
        assert_eq!(bin(7, true), BINS - 1);
    }
}
