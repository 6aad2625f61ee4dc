//! What a drive did, as it stands in a result.
//!
//! For: counts, both measures of write amplification, wear, the course over drive writes, how well
//! lifetimes were predicted. Must never know: how a drive is driven. Units: pages; a drive write is
//! as many host pages as the drive has logical pages; shares are ratios.

use cachewright_ftl::separation::Separation;
use cachewright_ftl::{Classification, Confusion, Ftl, FtlCounts, Statistics};
use cachewright_result::drive::{
    Classifier, DriveWork, EraseSpread, Learning, Stream, ThresholdSpread, Training,
};

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
