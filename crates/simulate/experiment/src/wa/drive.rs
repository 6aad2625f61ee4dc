//! One drive under one separation and one reclaim policy, from the first write to the last.
//!
//! For: replaying a script and telling what it cost. Must never know: files, other cases. Units:
//! pages; a drive write is as many host pages as the drive has logical pages. The load is replayed
//! first and counts nothing.

use super::script::Step;
use super::tally::Tally;
use crate::spec::Named;
use cachewright_ftl::separation::{Registered, Separation, SeparationVisitor};
use cachewright_ftl::{Counts, Ftl, FtlError, Geometry, HostRequest, reclaim};
use cachewright_types::{Op, Seed};
use serde_json::{Value, json};

/// Host pages between two reports of progress.
const TELL_EVERY: u64 = 1 << 16;

/// What all drives are asked.
pub struct Work<'a> {
    /// The requests of the load.
    pub load: &'a [Step],
    /// The requests of the run.
    pub run: &'a [Step],
    /// Lifetimes of the load's page writes.
    pub load_lifetimes: &'a [u32],
    /// Lifetimes of the run's page writes.
    pub run_lifetimes: &'a [u32],
    /// Page writes of the run after which the measurement ends.
    pub limit_pages: u64,
    /// Page writes between two points of the series.
    pub every_pages: u64,
    /// Gets page writes done since it was told last; false stops the run.
    pub tell: &'a (dyn Fn(u64) -> bool + Sync),
}

/// Why a drive stopped early.
#[derive(Debug)]
pub enum Stop {
    /// The drive refused.
    Flash(Box<FtlError>),
    /// The caller asked to stop.
    Cancelled,
}

impl From<FtlError> for Stop {
    fn from(error: FtlError) -> Stop {
        Stop::Flash(Box::new(error))
    }
}

/// One combination of settings.
#[derive(Clone, Debug)]
pub struct Case {
    /// Which pages share a superblock.
    pub separation: Named,
    /// Which superblock is cleaned next.
    pub reclaim: Named,
    /// The over-provisioning asked for, as a ratio.
    pub over_provisioning: f64,
    /// The drive.
    pub geometry: Geometry,
    /// Root of the schemes' randomness.
    pub seed: Seed,
}

impl Case {
    /// Replays the work on a new drive and returns what it cost.
    pub fn run(&self, work: &Work<'_>) -> Result<Value, Stop> {
        let Named { name, pairs } = &self.separation;
        let visitor = Visitor { case: self, work };
        cachewright_ftl::separation::visit(name, pairs, visitor)?
    }
}

struct Visitor<'a> {
    case: &'a Case,
    work: &'a Work<'a>,
}

impl SeparationVisitor for Visitor<'_> {
    type Output = Result<Value, Stop>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let Visitor { case, work } = self;
        let separation = S::new(&case.geometry, &settings, case.seed.derive("separation"));
        let streams = separation.streams();
        let Named { name, pairs } = &case.reclaim;
        let seed = case.seed.derive("reclaim");
        let reclaim = reclaim::by_name(name, pairs, &case.geometry, seed)?;
        let ftl = Ftl::new(case.geometry, separation, reclaim)?;
        let tally = Tally::new(case.geometry.logical_pages, streams);
        let mut drive = Drive { ftl, tally, samples: Vec::new(), next_sample: u64::MAX, told: 0 };
        drive.steps(work, work.load, work.load_lifetimes, u64::MAX)?;
        let start = drive.ftl.counts();
        let worn: Vec<u32> = drive.ftl.blocks().iter().map(|block| block.erases).collect();
        drive.tally.restart();
        drive.samples.push(start);
        drive.next_sample = start.user_pages + work.every_pages;
        let end = start.user_pages + work.limit_pages;
        while drive.ftl.clock() < end {
            drive.steps(work, work.run, work.run_lifetimes, end)?;
        }
        drive.finish(work.every_pages);
        Ok(drive.json(work, &worn))
    }
}

struct Drive<S> {
    ftl: Ftl<S>,
    tally: Tally,
    /// Counts at the start and at each point of the series.
    samples: Vec<Counts>,
    next_sample: u64,
    told: u64,
}

impl<S: Separation> Drive<S> {
    /// Replays requests until so many pages have been written in all; the last request may be cut.
    fn steps(
        &mut self,
        work: &Work<'_>,
        steps: &[Step],
        lifetimes: &[u32],
        end: u64,
    ) -> Result<(), Stop> {
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
            self.report(work)?;
        }
        Ok(())
    }

    /// Announces a request that begins with `step` and goes on in those steps of `rest` that
    /// continue it.
    fn begin(&mut self, step: &Step, rest: &[Step]) {
        let parts = rest.iter().take_while(|next| next.continues);
        let pages = parts.fold(step.pages, |sum, part| sum.saturating_add(part.pages));
        if step.op != Op::Trim {
            let write = step.op == Op::Write;
            self.ftl.begin(&HostRequest { first_page: step.first, pages, write });
        }
    }

    /// Tells progress and takes a sample when they are due.
    #[inline(always)]
    fn report(&mut self, work: &Work<'_>) -> Result<(), Stop> {
        let news = self.ftl.clock() - self.told;
        if news >= TELL_EVERY {
            self.told += news;
            if !(work.tell)(news) {
                return Err(Stop::Cancelled);
            }
        }
        if self.ftl.clock() >= self.next_sample {
            self.samples.push(self.ftl.counts());
            while self.next_sample <= self.ftl.clock() {
                self.next_sample += work.every_pages;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn write(&mut self, page: u32, lifetime: u32) -> Result<(), Stop> {
        self.ftl.write(page, lifetime, &mut self.tally)?;
        self.tally.wrote(self.ftl.blocks(), page, self.ftl.clock(), lifetime);
        Ok(())
    }

    /// Closes the series: a last part of less than half the usual length joins the one before it.
    fn finish(&mut self, every_pages: u64) {
        let now = self.ftl.counts();
        let parts = self.samples.len().saturating_sub(1);
        match self.samples.last_mut() {
            Some(last) if parts > 0 && now.user_pages - last.user_pages < every_pages / 2 => {
                *last = now;
            }
            _ => self.samples.push(now),
        }
    }

    fn json(&self, work: &Work<'_>, worn: &[u32]) -> Value {
        let start = self.samples.first().copied().unwrap_or_default();
        let total = self.ftl.counts() - start;
        let geometry = self.ftl.geometry();
        let drive = f64::from(geometry.logical_pages);
        let series: Vec<Value> = self
            .samples
            .windows(2)
            .map(|pair| {
                let (part, sum) = (pair[1] - pair[0], pair[1] - start);
                json!([sum.user_pages as f64 / drive, part.user_pages, part.flash_pages()])
            })
            .collect();
        let blocks = self.ftl.blocks();
        let erases = blocks
            .iter()
            .map(|block| block.erases - worn.get(block.id as usize).copied().unwrap_or_default());
        let amplification = total.write_amplification();
        json!({
            "superblocks": blocks.len(),
            "streams_used": self.ftl.separation().streams(),
            "user_pages": total.user_pages,
            "moved_pages": total.moved_pages,
            "meta_pages": total.meta_pages,
            "flash_pages": total.flash_pages(),
            "write_amplification": amplification,
            "extra_writes": amplification - 1.0,
            "last_write_amplification": self.last(work, &start).write_amplification(),
            "collections": total.collections,
            "victim_invalid_share": share(total.reclaimed_pages, total.moved_pages),
            "trimmed_pages": total.trimmed_pages,
            "misplaced_pages": total.misplaced_pages,
            "meta_reads": total.meta_reads,
            "mapped_pages": self.ftl.mapped_pages(),
            "metadata_bytes_per_page": self.ftl.separation().metadata_bytes_per_page(),
            "erases": spread(erases.map(f64::from).collect()),
            "streams": self.tally.json(),
            "series": series,
        })
    }

    /// What the last drive write did; all of the run when it was shorter.
    fn last(&self, work: &Work<'_>, start: &Counts) -> Counts {
        let drive = u64::from(self.ftl.geometry().logical_pages);
        let from = (start.user_pages + work.limit_pages).saturating_sub(drive);
        let before = self.samples.iter().rfind(|counts| counts.user_pages <= from);
        self.ftl.counts() - *before.unwrap_or(start)
    }
}

fn share(part: u64, rest: u64) -> f64 {
    if part + rest == 0 { 0.0 } else { part as f64 / (part + rest) as f64 }
}

/// Least, mean, most and standard deviation.
fn spread(values: Vec<f64>) -> Value {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = if least.is_finite() { least } else { 0.0 };
    json!({"min": least, "mean": mean, "max": most, "stddev": variance.sqrt()})
}
