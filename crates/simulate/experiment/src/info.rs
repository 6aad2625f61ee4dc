//! What a trace holds, in one pass.
//!
//! Re-use distances are LRU stack distances in blocks over all volumes; a trimmed block starts
//! anew. Units are in the names of the JSON keys.

use crate::ExperimentError;
use crate::answers::curve_points;
use crate::json::document;
use crate::progress::{OnProgress, Progress};
use cachewright_curve::{Curves, Histogram, StackDistance};
use cachewright_result::document::Written;
use cachewright_result::trace::Reuse;
use cachewright_result::trace::SizeDistribution;
use cachewright_result::trace::TraceInfo;
use cachewright_result::trace::VolumeInfo;
use cachewright_result::trace::VolumeTotals;
use cachewright_trace::intern::Interner;
use cachewright_trace::merge::VolumeChoice;
use cachewright_trace::{Batch, OpenOptions, Record, Skipped, formats};
use cachewright_types::{BlockId, Bytes, Op, parse_bytes};
use serde_json::Value;
use std::path::Path;

/// How to look at a trace.
#[derive(Clone, Debug)]
pub struct InfoOptions {
    /// How to open it.
    pub open: OpenOptions,
    /// Block size for the working set and re-use distances, with unit.
    pub block: String,
    /// Only this volume, or these with commas.
    pub volume: Option<String>,
}

impl Default for InfoOptions {
    fn default() -> Self {
        InfoOptions { open: OpenOptions::default(), block: "4KiB".to_owned(), volume: None }
    }
}

/// Reads a whole trace and returns its facts.
pub fn info(
    path: &Path,
    options: &InfoOptions,
    progress: OnProgress<'_>,
) -> Result<Value, ExperimentError> {
    let refuse = |message: String| ExperimentError::spec(path, message);
    let block = parse_bytes(&options.block).map_err(|e| refuse(format!("`block`: {e}")))?;
    if !block.0.is_power_of_two() {
        return Err(refuse(format!("`block`: found `{block}`, expected a power of two")));
    }
    let format = formats::format_of(path, &options.open)?.name;
    let objects = formats::counts_objects(path, &options.open)?;
    let choice = TraceChoice { open: options.open.clone(), volume: options.volume.clone() };
    let mut facts = Facts::new(block, objects);
    let found = scan(path, &choice, progress, |record, _| {
        facts.add(record).map_err(|error| refuse(error.to_string()))
    })?;
    document(&facts.answer(path, format, &found))
}

/// How requests fall into blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSize {
    /// Bytes of a block, a power of two.
    pub block: Bytes,
    /// Whether an object is a block, whatever its size.
    pub objects: bool,
}

impl BlockSize {
    /// The first block that a read or write touches, and how many it touches.
    pub fn touched(self, record: &Record) -> (u64, u64) {
        if self.objects {
            return (record.offset_bytes, 1);
        }
        let shift = self.block.0.trailing_zeros();
        let last = record.offset_bytes.saturating_add(record.length_bytes.max(1)) - 1;
        let first = record.offset_bytes >> shift;
        (first, (last >> shift) - first + 1)
    }

    /// The first block that a trim has whole, and how many it has.
    pub fn trimmed(self, record: &Record) -> (u64, u64) {
        if self.objects {
            return (record.offset_bytes, 1);
        }
        let first = record.offset_bytes.div_ceil(self.block.0);
        let end = record.offset_bytes.saturating_add(record.length_bytes)
            >> self.block.0.trailing_zeros();
        (first, end.saturating_sub(first))
    }
}

/// Facts being gathered.
struct Facts {
    size: BlockSize,
    interner: Interner,
    stack: StackDistance,
    ids: Vec<u32>,
    written: Vec<u64>,
    sizes: PowerBins,
    rate: TimeBins,
    /// Earliest and latest time.
    times_ns: Option<(u64, u64)>,
    out_of_order: u64,
    total: VolumeFacts,
    volumes: Vec<VolumeFacts>,
}

impl Facts {
    fn new(block: Bytes, objects: bool) -> Facts {
        Facts {
            size: BlockSize { block, objects },
            interner: Interner::new(),
            stack: StackDistance::new(),
            ids: Vec::new(),
            written: Vec::new(),
            sizes: PowerBins::default(),
            rate: TimeBins::new(),
            times_ns: None,
            out_of_order: 0,
            total: VolumeFacts::default(),
            volumes: Vec::new(),
        }
    }

    fn add(&mut self, record: &Record) -> Result<(), cachewright_trace::intern::InternError> {
        let time_ns = record.time_ns;
        let (earliest_ns, latest_ns) = self.times_ns.unwrap_or((time_ns, time_ns));
        self.out_of_order += u64::from(time_ns < latest_ns);
        self.times_ns = Some((earliest_ns.min(time_ns), latest_ns.max(time_ns)));
        self.rate.add(time_ns, record.length_bytes);
        let volume = record.volume as usize;
        if self.volumes.len() <= volume {
            self.volumes.resize_with(volume + 1, VolumeFacts::default);
        }
        self.total.add(record);
        self.volumes[volume].add(record);
        match record.op {
            Op::Flush => Ok(()),
            Op::Trim => {
                self.trim(record);
                Ok(())
            }
            Op::Read | Op::Write => {
                self.sizes.add(record.length_bytes);
                self.touch(record, volume)
            }
        }
    }

    fn touch(
        &mut self,
        record: &Record,
        volume: usize,
    ) -> Result<(), cachewright_trace::intern::InternError> {
        let (first, count) = self.size.touched(record);
        let bytes = if self.size.objects { record.length_bytes } else { self.size.block.0 };
        let before = self.interner.distinct();
        self.ids.clear();
        self.interner.intern_range(record.volume, first, count, &mut self.ids)?;
        let fresh = u64::from(self.interner.distinct() - before);
        self.total.add_distinct(fresh, bytes);
        self.volumes[volume].add_distinct(fresh, bytes);
        self.written.resize(self.interner.distinct().div_ceil(64) as usize, 0);
        let write = record.op == Op::Write;
        for id in &self.ids {
            self.stack.access(BlockId(*id), write);
            if write {
                let (word, bit) = (&mut self.written[*id as usize / 64], 1_u64 << (id % 64));
                let fresh = u64::from(*word & bit == 0);
                self.total.written_bytes += fresh * bytes;
                self.volumes[volume].written_bytes += fresh * bytes;
                *word |= bit;
            }
        }
        Ok(())
    }

    fn trim(&mut self, record: &Record) {
        let (first, count) = self.size.trimmed(record);
        self.ids.clear();
        self.interner.get_range(record.volume, first, count, &mut self.ids);
        for id in &self.ids {
            self.stack.remove(BlockId(*id));
        }
    }

    /// Time from the earliest record to the latest; nothing in a trace without times.
    fn span_ns(&self, has_times: bool) -> Option<u64> {
        let (earliest_ns, latest_ns) = self.times_ns.unwrap_or_default();
        has_times.then_some(latest_ns - earliest_ns)
    }

    /// Without times in the trace, span and rates are null.
    fn answer(&mut self, path: &Path, format: &str, found: &Scanned) -> TraceInfo {
        let (skipped, span_ns) = (&found.skipped, self.span_ns(found.has_times));
        TraceInfo {
            written: Written::here(),
            totals: self.total.totals(span_ns),
            path: path.display().to_string(),
            format: format.to_owned(),
            has_times: found.has_times,
            span_ns,
            block_bytes: self.size.block.0,
            counts_objects: self.size.objects,
            out_of_order: self.out_of_order,
            skipped_bad: skipped.bad,
            skipped_irrelevant: skipped.irrelevant,
            skipped_examples: skipped.examples.iter().map(ToString::to_string).collect(),
            notes: found.notes.clone(),
            request_bytes: self.sizes.distribution(),
            reuse: reuse(self.stack.histogram()),
            rate: if found.has_times { self.rate.rows() } else { Vec::new() },
            volumes: self.volumes(&found.volumes, span_ns),
        }
    }

    /// Every volume with a request, the busiest first.
    fn volumes(&self, names: &[String], span_ns: Option<u64>) -> Vec<VolumeInfo> {
        let mut busiest: Vec<usize> =
            (0..self.volumes.len()).filter(|v| self.volumes[*v].requests() > 0).collect();
        busiest
            .sort_by_key(|volume| (std::cmp::Reverse(self.volumes[*volume].requests()), *volume));
        let row = |volume: usize| VolumeInfo {
            totals: self.volumes[volume].totals(span_ns),
            name: names.get(volume).cloned().unwrap_or_default(),
        };
        busiest.into_iter().map(row).collect()
    }
}

/// Distances by powers of two, and the LRU curve they make.
fn reuse(histogram: &Histogram) -> Reuse {
    let mut bins = PowerBins::default();
    for (distance, both) in histogram.iter() {
        bins.add_many(u64::from(distance), both[0] + both[1]);
    }
    Reuse {
        accesses: histogram.accesses().iter().sum(),
        compulsory: histogram.cold().iter().sum(),
        histogram: bins.pairs(),
        lru_miss_ratio: curve_points(&Curves::exact(histogram).all),
    }
}

/// Most bins of a time histogram.
const TIME_BINS: usize = 64;
/// Width of a time bin before any merging, in nanoseconds.
const FIRST_WIDTH_NS: u64 = 1_000;

/// Counts by power of two, with exact mean and maximum.
#[derive(Clone, Debug)]
pub struct PowerBins {
    counts: [u64; 65],
    total: u64,
    sum: u128,
    max: u64,
    /// Exact counts of the values met, while they are few; block traces have few request sizes.
    exact: std::collections::BTreeMap<u64, u64>,
}

/// Distinct values kept exactly for quantiles; beyond, quantiles are bin ends.
const EXACT_VALUES: usize = 4096;

impl Default for PowerBins {
    fn default() -> Self {
        PowerBins { counts: [0; 65], total: 0, sum: 0, max: 0, exact: Default::default() }
    }
}

impl PowerBins {
    /// Counts one value.
    pub fn add(&mut self, value: u64) {
        self.add_many(value, 1);
    }

    /// Counts a value `times` times.
    pub fn add_many(&mut self, value: u64, times: u64) {
        self.counts[octave(value)] += times;
        self.total += times;
        self.sum += u128::from(value) * u128::from(times);
        self.max = self.max.max(value);
        if self.exact.len() < EXACT_VALUES || self.exact.contains_key(&value) {
            *self.exact.entry(value).or_default() += times;
        }
    }

    /// `[upper end, count]` of each bin between the first and last that are not empty.
    pub fn pairs(&self) -> Vec<[u64; 2]> {
        let filled = |bin: &usize| self.counts[*bin] > 0;
        let (Some(first), Some(last)) = ((0..65).find(filled), (0..65).rfind(filled)) else {
            return Vec::new();
        };
        (first..=last).map(|bin| [octave_end(bin), self.counts[bin]]).collect()
    }

    /// The smallest value with at least `share` of the values at or below it; exact while few
    /// distinct values were met, else the end of its bin.
    fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let kept: u64 = self.exact.values().sum();
        let exact = self.exact.iter().map(|(value, count)| (*value, *count));
        let bins = self.counts.iter().enumerate().map(|(bin, count)| (octave_end(bin), *count));
        let mut seen = 0;
        let mut reach = |(_, count): &(u64, u64)| {
            seen += count;
            seen >= rank
        };
        let found =
            if kept == self.total { { exact }.find(&mut reach) } else { { bins }.find(&mut reach) };
        found.map_or(0, |(value, _)| value.min(self.max))
    }

    /// Mean, quantiles, maximum and histogram.
    pub fn distribution(&self) -> SizeDistribution {
        SizeDistribution {
            mean: if self.total == 0 { 0.0 } else { self.sum as f64 / self.total as f64 },
            p50: self.quantile(0.50),
            p90: self.quantile(0.90),
            p99: self.quantile(0.99),
            max: self.max,
            histogram: self.pairs(),
        }
    }
}

/// Octave 0 holds 0 and 1; octave b holds `2^(b-1)+1 ..= 2^b`.
pub(crate) fn octave(value: u64) -> usize {
    if value <= 1 { 0 } else { 64 - (value - 1).leading_zeros() as usize }
}

/// The largest value of an octave.
pub(crate) fn octave_end(octave: usize) -> u64 {
    if octave >= 64 { u64::MAX } else { 1 << octave }
}

/// Requests and bytes over time; bins double in width when they run out. Times may come in any
/// order.
#[derive(Clone, Debug)]
pub struct TimeBins {
    /// Where the first bin begins: at the first time met, or as many whole bins before as needed.
    origin_ns: Option<i128>,
    width_ns: u64,
    bins: Vec<[u64; 2]>,
}

impl TimeBins {
    /// No requests yet.
    fn new() -> TimeBins {
        TimeBins { origin_ns: None, width_ns: FIRST_WIDTH_NS, bins: Vec::new() }
    }

    /// Counts one request.
    pub fn add(&mut self, time_ns: u64, bytes: u64) {
        let since_ns = i128::from(time_ns) - *self.origin_ns.get_or_insert(i128::from(time_ns));
        if since_ns < 0 {
            self.begin_earlier(since_ns.unsigned_abs());
        }
        let since_ns = i128::from(time_ns) - self.origin_ns.unwrap_or_default();
        while since_ns / i128::from(self.width_ns) >= TIME_BINS as i128 {
            self.widen();
        }
        let index = (since_ns / i128::from(self.width_ns)) as usize;
        if self.bins.len() <= index {
            self.bins.resize(index + 1, [0, 0]);
        }
        self.bins[index][0] += 1;
        self.bins[index][1] = self.bins[index][1].saturating_add(bytes);
    }

    /// Adds bins before the first, so that they begin at least so much earlier.
    fn begin_earlier(&mut self, earlier_ns: u128) {
        let mut missing = earlier_ns.div_ceil(u128::from(self.width_ns));
        while missing + self.bins.len() as u128 > TIME_BINS as u128 {
            self.widen();
            missing = earlier_ns.div_ceil(u128::from(self.width_ns));
        }
        let added = std::iter::repeat_n([0, 0], missing as usize);
        self.bins.splice(0..0, added);
        let moved_ns = i128::from(self.width_ns) * missing as i128;
        self.origin_ns = self.origin_ns.map(|origin_ns| origin_ns - moved_ns);
    }

    /// Makes one bin of every two.
    fn widen(&mut self) {
        let add = |pair: &[[u64; 2]]| {
            let sum =
                |sum: [u64; 2], bin: &[u64; 2]| [sum[0] + bin[0], sum[1].saturating_add(bin[1])];
            pair.iter().fold([0, 0], sum)
        };
        self.bins = self.bins.chunks(2).map(add).collect();
        self.width_ns = self.width_ns.saturating_mul(2);
    }

    /// `[start in nanoseconds, requests, bytes]` per bin; the first bin starts at 0.
    pub fn rows(&self) -> Vec<(u64, u64, u64)> {
        let starts = (0..).map(|bin| bin * self.width_ns);
        let row = |(start, bin): (u64, &[u64; 2])| (start, bin[0], bin[1]);
        starts.zip(&self.bins).map(row).collect()
    }
}

/// Requests and bytes by kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct VolumeFacts {
    requests: [u64; 4],
    bytes: [u64; 4],
    distinct_blocks: u64,
    distinct_bytes: u64,
    /// Bytes of the distinct blocks that are written.
    pub written_bytes: u64,
}

impl VolumeFacts {
    /// Counts one request.
    pub fn add(&mut self, record: &Record) {
        let kind = record.op as usize;
        self.requests[kind] += 1;
        self.bytes[kind] = self.bytes[kind].saturating_add(record.length_bytes);
    }

    /// Counts blocks that were not met before, each of so many bytes.
    pub fn add_distinct(&mut self, blocks: u64, bytes: u64) {
        self.distinct_blocks += blocks;
        self.distinct_bytes = self.distinct_bytes.saturating_add(blocks.saturating_mul(bytes));
    }

    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.requests.iter().sum()
    }

    /// The totals by their names; rates are over `span_ns`, that of the whole trace, so that those
    /// of its volumes add up. Without times there is no rate.
    pub fn totals(&self, span_ns: Option<u64>) -> VolumeTotals {
        let rate_per_s = span_ns.map(|span_ns| match span_ns {
            0 => 0.0,
            _ => self.requests() as f64 / (span_ns as f64 / 1e9),
        });
        let count = |op: Op| self.requests[op as usize];
        let data = count(Op::Read) + count(Op::Write);
        VolumeTotals {
            requests: self.requests(),
            reads: count(Op::Read),
            writes: count(Op::Write),
            trims: count(Op::Trim),
            flushes: count(Op::Flush),
            read_share: cachewright_types::measure::ratio(count(Op::Read), data),
            read_bytes: self.bytes[Op::Read as usize],
            write_bytes: self.bytes[Op::Write as usize],
            trim_bytes: self.bytes[Op::Trim as usize],
            distinct_blocks: self.distinct_blocks,
            working_set_bytes: self.distinct_bytes,
            written_working_set_bytes: self.written_bytes,
            rate_per_s,
        }
    }
}

/// Requests decoded at a time.
const BATCH: usize = 8192;

/// Which requests of a trace.
#[derive(Clone, Debug, Default)]
pub struct TraceChoice {
    /// How to open it.
    pub open: OpenOptions,
    /// Only this volume, or these with commas.
    pub volume: Option<String>,
}

/// What a pass found beside records.
pub struct Scanned {
    /// The names of all volumes.
    pub volumes: Vec<String>,
    /// Records that could not be read.
    pub skipped: Skipped,
    /// What was done to the trace beside reading it, in sentences.
    pub notes: Vec<String>,
    /// Whether records carry times.
    pub has_times: bool,
}

/// Hands every chosen record with its time to `hear`. Errors: a trace that cannot be read, no such
/// volume, what `hear` refuses, a cancelled pass.
pub fn scan(
    path: &Path,
    choice: &TraceChoice,
    progress: OnProgress<'_>,
    mut hear: impl FnMut(&Record, u64) -> Result<(), ExperimentError>,
) -> Result<Scanned, ExperimentError> {
    let mut reader = formats::open(path, &choice.open)?;
    let total = reader.requests_hint();
    let mut chosen = choice.volume.as_deref().map(VolumeChoice::new);
    let mut batch = Batch::default();
    let (mut done, mut first) = (0, None);
    loop {
        batch.clear();
        let count = reader.read(&mut batch, BATCH)?;
        if count == 0 {
            break;
        }
        let chosen = chosen.as_mut().map(|chosen| chosen.among(reader.volumes()));
        for record in batch.iter() {
            if chosen.is_none_or(|chosen| chosen[record.volume as usize]) {
                let first = *first.get_or_insert(record.time_ns);
                hear(&record, record.time_ns.saturating_sub(first))?;
            }
        }
        done += count as u64;
        if !progress(Progress { stage: "reading the trace", done, total }) {
            return Err(ExperimentError::Cancelled);
        }
    }
    if let Some(chosen) = &mut chosen {
        chosen.refuse_unknown(reader.volumes())?;
    }
    Ok(Scanned {
        volumes: reader.volumes().to_vec(),
        skipped: reader.skipped().clone(),
        notes: reader.notes(),
        has_times: reader.has_times(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_for_few_values() {
        let mut bins = PowerBins::default();
        bins.add_many(4096, 90);
        bins.add_many(65536, 10);
        let found = bins.distribution();
        assert_eq!((found.p50, found.p99), (4096, 65536));
        assert_eq!(bins.pairs(), [[4096, 90], [8192, 0], [16384, 0], [32768, 0], [65536, 10]]);
    }

    #[test]
    fn time_bins_stay_few_and_lose_nothing() {
        let mut bins = TimeBins::new();
        for step in 0..1000_u64 {
            bins.add(step * step * 1000, 1);
        }
        let rows = bins.rows();
        assert!(rows.len() <= TIME_BINS);
        assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), 1000);
    }

    #[test]
    fn times_in_any_order_fall_into_their_bins() {
        let mut bins = TimeBins::new();
        for time_ns in [500_500, 500_900, 498_000, 510_000, 499_999] {
            bins.add(time_ns, 1);
        }
        let rows: Vec<(u64, u64)> = bins
            .bins
            .iter()
            .zip(0..)
            .filter(|(b, _)| b[0] > 0)
            .map(|(b, index)| (index, b[0]))
            .collect();
        assert_eq!(bins.origin_ns, Some(497_500));
        assert_eq!(rows, [(0, 1), (2, 1), (3, 2), (12, 1)]);
        let mut bins = TimeBins::new();
        for time_ns in [u64::MAX, 0, u64::MAX / 2] {
            bins.add(time_ns, u64::MAX);
        }
        assert!(bins.bins.len() <= TIME_BINS);
        assert_eq!(bins.bins.iter().map(|bin| bin[0]).sum::<u64>(), 3);
    }
}
