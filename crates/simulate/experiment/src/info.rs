//! What a trace holds, in one pass.
//!
//! For: `trace info`. Must never know: how it is drawn. Re-use distances are LRU stack distances in
//! blocks over all volumes; a trimmed block starts anew. Units are in the names of the JSON keys.

mod bins;
mod volume;

use crate::ExperimentError;
use crate::json::document;
use crate::progress::OnProgress;
use crate::result::curve_points;
use crate::scan::{Scanned, TraceChoice, scan};
use bins::{PowerBins, TimeBins};
use cachewright_curve::{Curves, Histogram, StackDistance};
use cachewright_result::info::{Reuse, TraceInfo, VolumeInfo};
use cachewright_result::written::Written;
use cachewright_trace::intern::Interner;
use cachewright_trace::{OpenOptions, Record, formats};
use cachewright_types::{BlockId, Bytes, Op, parse_bytes};
use serde_json::Value;
use std::path::Path;
use volume::VolumeFacts;

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

/// Facts being gathered.
struct Facts {
    /// Whether an object is a block, whatever its size.
    objects: bool,
    shift: u32,
    block: Bytes,
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
            objects,
            shift: block.0.trailing_zeros(),
            block,
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
        let end = record.offset_bytes.saturating_add(record.length_bytes.max(1)) - 1;
        let (first, count, bytes) = match self.objects {
            true => (record.offset_bytes, 1, record.length_bytes),
            false => {
                let first = record.offset_bytes >> self.shift;
                (first, (end >> self.shift) - first + 1, self.block.0)
            }
        };
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
        let (first, count) = match self.objects {
            true => (record.offset_bytes, 1),
            false => {
                let first = record.offset_bytes.div_ceil(self.block.0);
                let end = record.offset_bytes.saturating_add(record.length_bytes) >> self.shift;
                (first, end.saturating_sub(first))
            }
        };
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
            block_bytes: self.block.0,
            counts_objects: self.objects,
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
