//! One drive under one separation and one reclaim policy, from the first write to the last.
//!
//! For: replaying requests, of a script or as a cache makes them, and telling what they cost. Must
//! never know: files, other cases. Units: pages; a drive write is as many host pages as the drive
//! has logical pages. The load is replayed first and counts nothing.

use super::measures::Course;
use super::plan::label;
use super::steps::{ScriptStep, Stretch};
use super::tally::DriveTally;
use super::training::{self, TrainingChoice};
use crate::case::Case;
use crate::spec::{FlashSpec, Scheme};
use cachewright_ftl::layer::Layer;
use cachewright_ftl::separation::shiro::TrainError;
use cachewright_ftl::separation::{Registered, Separation, SeparationVisitor};
use cachewright_ftl::{Ftl, FtlError, Geometry, HostRequest, Space, reclaim};
use cachewright_result::drive::DriveWork;
use cachewright_types::{Op, Seed, Value as Setting};

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

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
}
