//! Traces as what a drive is asked: writes, trims and reads of dense logical pages.
//!
//! For: one decode for all schemes. Must never know: separations, flash. A page that a write
//! touches is written whole; a trim drops the pages that lie wholly inside it; reads keep the pages
//! that are ever written. Pages are numbered by address (see `live.rs` for numbers that recycle).
//! Units: pages. Size: 12 bytes per request, 36 at the end of reading; what is long lies in scratch
//! files, so that memory does not grow with it.

use super::extents::WrittenExtents;
use super::steps::{ScriptStep, ScriptSteps, StepWriter};
use crate::ExperimentError;
use crate::progress::{OnProgress, Progress};
use crate::record::input;
use crate::spec::flash::PAGES_LIMIT;
use crate::spec::{Spec, TenantSpec};
use cachewright_memory::{Column, ColumnWriter};
use cachewright_result::facts::DriveTenantFacts;
use cachewright_system::RecordError;
use cachewright_trace::formats;
use cachewright_trace::merge::{MergedRequests, WorkloadBatch};
use cachewright_types::seed::mix;
use cachewright_types::{Op, whole_block_numbers};
use std::ops::Range;

/// Requests decoded at a time.
const BATCH: usize = 8192;
/// Requests numbered before their memory is given back.
const PIECE: usize = 1 << 18;

/// The requests of the load, if any, and of the run.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// All requests.
    pub steps: ScriptSteps,
    /// Requests of the load; the run's follow.
    pub load_steps: usize,
    /// Pages written by the load.
    pub load_pages: u64,
    /// Pages written by the run.
    pub run_pages: u64,
    /// Numbers of logical pages: distinct pages written by both, or the most live at once.
    pub working_pages: u32,
    /// Facts of each tenant's trace and load.
    pub tenants: Vec<DriveTenantFacts>,
    /// What a user should know of the input.
    pub warnings: Vec<String>,
}

impl Script {
    /// A number that differs for different requests, but for accidents of one in 2^64.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = mix(self.load_steps as u64);
        self.steps.each(0..self.steps.len(), |step| {
            let pages = u64::from(step.first) << 32 | u64::from(step.pages);
            hash = mix(mix(hash ^ pages) ^ (step.op as u64) << 1 ^ u64::from(step.continues));
        });
        hash
    }
}

/// A request before pages are numbered.
struct Raw {
    op: Op,
    space: u32,
    first: u64,
    end: u64,
}

impl Raw {
    fn packed(&self) -> [u64; 3] {
        [u64::from(self.space) << 8 | self.op as u64, self.first, self.end]
    }

    fn unpacked([kind, first, end]: [u64; 3]) -> Raw {
        let op = match kind & 0xff {
            op if op == Op::Write as u64 => Op::Write,
            op if op == Op::Trim as u64 => Op::Trim,
            _ => Op::Read,
        };
        Raw { op, space: (kind >> 8) as u32, first, end }
    }
}

/// ScriptReader, across the load and the run.
struct ScriptReader<'a> {
    shift: u32,
    limit: u64,
    /// (tenant, volume) by space; the load and the run share it.
    spaces: Vec<(String, String)>,
    written: WrittenExtents,
    raws: ColumnWriter<[u64; 3]>,
    pages: u64,
    progress: OnProgress<'a>,
}

/// Reads a stack's traces, after those of `load` if there are any, as requests of `page` bytes.
pub fn read(
    spec: &Spec,
    load: &[String],
    page_bytes: u64,
    progress: OnProgress<'_>,
) -> Result<Script, ExperimentError> {
    let refuse = |message| ExperimentError::spec(&spec.origin, message);
    let mut reading = ScriptReader {
        shift: page_bytes.trailing_zeros(),
        limit: spec.replay.max_accesses,
        spaces: Vec::new(),
        written: WrittenExtents::default(),
        raws: ColumnWriter::default(),
        pages: 0,
        progress,
    };
    let mut script = Script::default();
    let tenants = loads(spec, load).map_err(refuse)?;
    let mut load = spec.clone();
    load.tenants = tenants;
    if !load.tenants.is_empty() {
        script.tenants = reading.add(&load, "load", "reading the load")?;
    }
    let (load_requests, load_pages) = (reading.raws.len(), reading.pages);
    let load_spaces = reading.spaces.len();
    script.tenants.extend(reading.add(spec, "run", "reading traces")?);
    let run_pages = reading.pages - load_pages;
    if run_pages == 0 {
        return Err(refuse("found no write in the trace, expected some".to_owned()));
    }
    if !load.tenants.is_empty() && load_spaces < reading.spaces.len() {
        let (tenant, volume) = &reading.spaces[load_spaces];
        let text = format!("volume `{volume}` of `{tenant}` is not in the load: it starts empty");
        script.warnings.push(text);
    }
    script.load_pages = load_pages;
    script.run_pages = run_pages;
    reading.number(&mut script, load_requests, refuse)?;
    Ok(script)
}

/// The tenants with their load traces in place of their own: `PATH` for a stack of one tenant,
/// `TENANT=PATH` for one of several.
fn loads(spec: &Spec, load: &[String]) -> Result<Vec<TenantSpec>, String> {
    let mut tenants = Vec::new();
    for text in load {
        let named = text.split_once('=').and_then(|(name, path)| {
            let tenant = spec.tenants.iter().find(|tenant| tenant.name == name)?;
            Some((tenant, path))
        });
        let (tenant, path) = match (named, spec.tenants.as_slice()) {
            (Some(found), _) => found,
            (None, [only]) => (only, text.as_str()),
            (None, several) => {
                let names: Vec<&str> = several.iter().map(|tenant| tenant.name.as_str()).collect();
                let expected = names.join(", ");
                return Err(format!(
                    "`load`: found `{text}`, expected TENANT=PATH with a tenant of {expected}"
                ));
            }
        };
        let mut tenant = tenant.clone();
        (tenant.trace, tenant.path) = (path.to_owned(), path.into());
        tenant.open.parts.clear();
        tenants.push(tenant);
    }
    Ok(tenants)
}

/// What was read of a tenant's trace; `counts` are of its requests by kind.
fn facts(
    workload: &MergedRequests,
    tenant: &TenantSpec,
    index: u16,
    (part, counts): (&str, [u64; 4]),
) -> Result<DriveTenantFacts, ExperimentError> {
    let format = formats::format_of(&tenant.path, &tenant.open)?.name.to_owned();
    let skipped = workload.skipped(index).cloned().unwrap_or_default();
    let [reads, writes, trims, flushes] = counts;
    Ok(DriveTenantFacts {
        name: tenant.name.clone(),
        part: part.to_owned(),
        trace: tenant.trace.clone(),
        format,
        requests: counts.iter().sum(),
        reads,
        writes,
        trims,
        flushes,
        skipped_bad: skipped.bad,
        skipped_irrelevant: skipped.irrelevant,
        skipped_examples: skipped.examples.iter().map(ToString::to_string).collect(),
        out_of_order: workload.out_of_order(index).unwrap_or(0),
        has_times: workload.has_times(index).unwrap_or(true),
        volumes: workload.volumes(index),
        notes: workload.notes(index),
    })
}

impl ScriptReader<'_> {
    /// Reads the traces of a stack; returns their facts.
    fn add(
        &mut self,
        spec: &Spec,
        part: &str,
        stage: &'static str,
    ) -> Result<Vec<DriveTenantFacts>, ExperimentError> {
        let inputs: Result<Vec<_>, _> =
            spec.tenants.iter().map(|tenant| input(tenant, false)).collect();
        let inputs = inputs?;
        let mut workload = MergedRequests::open_on(spec.replay.clock(), inputs)?;
        let total = workload.requests_hint();
        let mut counts = vec![[0_u64; 4]; spec.tenants.len()];
        let mut known = Vec::new();
        let mut batch = WorkloadBatch::default();
        let mut done = 0;
        loop {
            batch.clear();
            let count = workload.read(&mut batch, BATCH)?;
            if count == 0 {
                break;
            }
            for space in &workload.spaces()[known.len()..] {
                let tenant = &workload.tenants()[usize::from(space.tenant)];
                known.push(self.space(tenant, &space.volume));
            }
            for index in 0..batch.len() {
                counts[usize::from(batch.tenant[index])][batch.op[index] as usize] += 1;
                self.request(&batch, index, known[batch.space[index] as usize]);
            }
            self.raws.settle().map_err(RecordError::from)?;
            if self.pages.max(self.raws.len() as u64) > self.limit {
                return Err(RecordError::TooLong { limit: self.limit }.into());
            }
            done += count as u64;
            if !(self.progress)(Progress { stage, done, total }) {
                return Err(ExperimentError::Cancelled);
            }
        }
        let each = spec.tenants.iter().zip(&counts).enumerate();
        each.map(|(index, (tenant, counts))| {
            facts(&workload, tenant, index as u16, (part, *counts))
        })
        .collect()
    }

    fn space(&mut self, tenant: &str, volume: &str) -> u32 {
        let found = self.spaces.iter().position(|(t, v)| t == tenant && v == volume);
        let index = found.unwrap_or_else(|| {
            self.spaces.push((tenant.to_owned(), volume.to_owned()));
            self.spaces.len() - 1
        });
        index as u32
    }

    fn request(&mut self, batch: &WorkloadBatch, index: usize, space: u32) {
        let (op, offset) = (batch.op[index], batch.offset_bytes[index]);
        let length = batch.length_bytes[index];
        let (first, end) = match op {
            Op::Flush => return,
            Op::Trim => {
                let whole = whole_block_numbers(offset, length, self.shift);
                (whole.start, whole.end)
            }
            Op::Read | Op::Write => {
                let last = offset.saturating_add(length.max(1) - 1) >> self.shift;
                (offset >> self.shift, last + 1)
            }
        };
        if first >= end {
            return;
        }
        if op == Op::Write {
            self.pages = self.pages.saturating_add(end - first);
            self.written.add(space, first, end);
        }
        self.raws.tail.push(Raw { op, space, first, end }.packed());
    }

    /// Turns requests into steps over numbered pages. Errors: more pages than a drive can have
    /// (by `refuse`), no place for a scratch file.
    fn number(
        mut self,
        script: &mut Script,
        load_requests: usize,
        refuse: impl Fn(String) -> ExperimentError,
    ) -> Result<(), ExperimentError> {
        let pages = self.written.number().filter(|pages| *pages <= PAGES_LIMIT);
        let Some(pages) = pages else {
            let expected = "expected at most that many; a larger `page` makes fewer";
            return Err(refuse(format!(
                "found more than {PAGES_LIMIT} distinct pages, {expected}"
            )));
        };
        script.working_pages = pages as u32;
        let raws = self.raws.finish().map_err(RecordError::from)?;
        let (mut steps, written) = (StepWriter::default(), &self.written);
        let mut number = |raws: &Column<[u64; 3]>, range: Range<usize>| {
            for start in range.clone().step_by(PIECE) {
                let piece = start..(start + PIECE).min(range.end);
                for raw in &raws[piece.clone()] {
                    let Raw { op, space, first, end } = Raw::unpacked(*raw);
                    let numbers = written.numbers(space, first, end);
                    if !numbers.is_empty() {
                        let pages = (numbers.end - numbers.start) as u32;
                        let first = numbers.start as u32;
                        steps.push(ScriptStep { op, continues: false, first, pages })?;
                    }
                }
                raws.release(piece);
            }
            Ok::<usize, std::io::Error>(steps.len())
        };
        let load_steps = number(&raws, 0..load_requests).map_err(RecordError::from)?;
        number(&raws, load_requests..raws.len()).map_err(RecordError::from)?;
        script.load_steps = load_steps;
        script.steps = steps.finish().map_err(RecordError::from)?;
        Ok(())
    }
}
