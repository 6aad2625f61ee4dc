//! Traces as what a drive is asked: writes, trims and reads of dense logical pages, decoded once
//! for all schemes.
//!
//! A page that a write touches is written whole; a trim drops the pages that lie wholly inside it;
//! reads keep the pages that are ever written. Pages are numbered by address, not by first sight,
//! so that neighbours stay neighbours; [`recycled`] gives them numbers anew. Units: pages. Size: 12
//! bytes per request, 36 at the end of reading; what is long lies in scratch files, so that memory
//! does not grow with it.

use crate::ExperimentError;
use crate::progress::{OnProgress, Progress};
use crate::record::input;
use crate::spec::flash::PAGES_LIMIT;
use crate::spec::{Spec, TenantSpec};
use cachewright_ftl::NEVER;
use cachewright_memory::{BackwardWriter, Column, ColumnWriter, HELD_BYTES};
use cachewright_result::trace::DriveTenantFacts;
use cachewright_system::RecordError;
use cachewright_trace::formats;
use cachewright_trace::merge::{MergedRequests, WorkloadBatch};
use cachewright_types::seed::mix;
use cachewright_types::{Op, whole_block_numbers};
use std::io;
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
    part: &str,
    counts: [u64; 4],
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
        each.map(|(index, (tenant, counts))| facts(&workload, tenant, index as u16, part, *counts))
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

/// Steps of a piece, at least, but for the last one.
const STEPS_PIECE: usize = 1 << 16;
/// The bit of a packed step that says whether it continues the one before.
const CONTINUES: u32 = 1 << 8;

/// One request in logical pages, or a part of one whose pages do not follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// What is asked; never a flush.
    pub op: Op,
    /// Whether the step belongs to the request of the step before it.
    pub continues: bool,
    /// First page.
    pub first: u32,
    /// Number of pages, at least 1.
    pub pages: u32,
}

impl ScriptStep {
    /// The pages, as indices.
    pub fn range(&self) -> Range<usize> {
        self.first as usize..self.first as usize + self.pages as usize
    }

    /// Pages that it writes.
    pub fn written(&self) -> u64 {
        if self.op == Op::Write { u64::from(self.pages) } else { 0 }
    }

    fn packed(self) -> [u32; 3] {
        let continues = if self.continues { CONTINUES } else { 0 };
        [self.first, self.pages, self.op as u32 | continues]
    }

    fn unpacked([first, pages, kind]: [u32; 3]) -> ScriptStep {
        let op = match kind & !CONTINUES {
            kind if kind == Op::Write as u32 => Op::Write,
            kind if kind == Op::Trim as u32 => Op::Trim,
            _ => Op::Read,
        };
        ScriptStep { op, continues: kind & CONTINUES != 0, first, pages }
    }
}

/// All steps, in order.
/// Steps beyond what memory should hold lie in a scratch file: a pass gives back what it has read.
/// Size: 12 bytes per step, and 4 per page written where lifetimes are known.
#[derive(Clone, Debug, Default)]
pub struct ScriptSteps(Column<[u32; 3]>);

impl ScriptSteps {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A step, if there are so many.
    pub fn get(&self, index: usize) -> Option<ScriptStep> {
        self.0.get(index).copied().map(ScriptStep::unpacked)
    }

    /// Gives back the memory of steps that will not be read soon.
    pub fn release(&self, range: Range<usize>) {
        self.0.release(range);
    }

    /// Passes the steps of a range in order.
    pub fn each(&self, range: Range<usize>, mut visit: impl FnMut(ScriptStep)) {
        for start in range.clone().step_by(STEPS_PIECE) {
            let piece = start..(start + STEPS_PIECE).min(range.end);
            self.0[piece.clone()].iter().for_each(|step| visit(ScriptStep::unpacked(*step)));
            self.release(piece);
        }
    }

    /// Passes the steps of a range from its end.
    pub fn each_back(&self, range: Range<usize>, mut visit: impl FnMut(ScriptStep)) {
        let mut end = range.end;
        while end > range.start {
            let piece = end.saturating_sub(STEPS_PIECE).max(range.start)..end;
            self.0[piece.clone()].iter().rev().for_each(|step| visit(ScriptStep::unpacked(*step)));
            self.release(piece.clone());
            end = piece.start;
        }
    }

    /// The end of a piece of whole requests that starts at `start`, at most at `end`.
    fn piece_end(&self, start: usize, end: usize) -> usize {
        let mut found = (start + STEPS_PIECE).min(end);
        while found < end && self.get(found).is_some_and(|step| step.continues) {
            found += 1;
        }
        found
    }
}

/// Steps and the lifetimes of the pages that they write, to be replayed.
#[derive(Clone, Debug)]
pub struct Stretch<'a> {
    /// All steps of a script.
    pub steps: &'a ScriptSteps,
    /// Those to replay.
    pub range: Range<usize>,
    /// Of every page that the script writes.
    pub lifetimes: &'a Column<u32>,
    /// Pages written before the range.
    pub written: usize,
}

impl Stretch<'_> {
    /// Passes whole requests with the lifetimes of the pages they write, a piece at a time, for as
    /// long as `visit` returns true. Errors: those of `visit`.
    pub fn pieces<E>(
        &self,
        mut visit: impl FnMut(&[ScriptStep], &[u32]) -> Result<bool, E>,
    ) -> Result<(), E> {
        let (mut start, mut page) = (self.range.start, self.written);
        let mut steps = Vec::new();
        while start < self.range.end {
            let end = self.steps.piece_end(start, self.range.end);
            steps.clear();
            self.steps.each(start..end, |step| steps.push(step));
            let written = steps.iter().map(ScriptStep::written).sum::<u64>() as usize;
            let goes_on = visit(&steps, &self.lifetimes[page..page + written])?;
            self.lifetimes.release(page..page + written);
            if !goes_on {
                break;
            }
            (start, page) = (end, page + written);
        }
        Ok(())
    }
}

/// Writes steps in order.
#[derive(Debug)]
pub struct StepWriter(ColumnWriter<[u32; 3]>);

impl StepWriter {
    /// No step yet; at most so many bytes are held in memory.
    pub fn holding(held_bytes: usize) -> StepWriter {
        StepWriter(ColumnWriter::holding(held_bytes))
    }

    /// Steps added.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a step. Errors: no place for a scratch file.
    pub fn push(&mut self, step: ScriptStep) -> io::Result<()> {
        self.0.tail.push(step.packed());
        self.0.settle()
    }

    /// The steps, to be read. Errors: as `push`.
    pub fn finish(self) -> io::Result<ScriptSteps> {
        Ok(ScriptSteps(self.0.finish()?))
    }
}

impl Default for StepWriter {
    fn default() -> StepWriter {
        StepWriter::holding(HELD_BYTES)
    }
}

/// Runs gathered before they are merged for the first time.
const FIRST_MERGE: usize = 1 << 16;

/// Neighbouring pages of one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ExtentRun {
    space: u32,
    first: u64,
    end: u64,
    /// Pages of all runs before this one.
    rank: u64,
}

/// A set of pages; numbers are valid after [`WrittenExtents::number`].
/// Memory: 32 bytes per run of neighbouring pages, twice that while runs are gathered.
#[derive(Clone, Debug, Default)]
pub struct WrittenExtents {
    runs: Vec<ExtentRun>,
    merged: usize,
}

impl WrittenExtents {
    /// Adds the pages `first..end` of a space.
    pub fn add(&mut self, space: u32, first: u64, end: u64) {
        if first >= end {
            return;
        }
        if let Some(last) = self.runs.last_mut().filter(|last| last.space == space)
            && first >= last.first
            && first <= last.end
        {
            last.end = last.end.max(end);
            return;
        }
        self.runs.push(ExtentRun { space, first, end, rank: 0 });
        if self.runs.len() > 2 * self.merged + FIRST_MERGE {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.runs.sort_unstable();
        let mut merged: Vec<ExtentRun> = Vec::new();
        for run in self.runs.drain(..) {
            match merged.last_mut().filter(|last| last.space == run.space && run.first <= last.end)
            {
                Some(last) => last.end = last.end.max(run.end),
                None => merged.push(run),
            }
        }
        self.merged = merged.len();
        self.runs = merged;
    }

    /// Numbers the pages from 0 and returns how many there are; nothing when they are beyond
    /// counting.
    pub fn number(&mut self) -> Option<u64> {
        self.merge();
        let mut pages = 0_u64;
        for run in &mut self.runs {
            run.rank = pages;
            pages = pages.checked_add(run.end - run.first)?;
        }
        Some(pages)
    }

    /// The numbers of the pages of the set among `first..end` of a space.
    pub fn numbers(&self, space: u32, first: u64, end: u64) -> Range<u64> {
        let start = self.below(space, first);
        start..self.below(space, end).max(start)
    }

    /// Pages of the set before a page.
    fn below(&self, space: u32, page: u64) -> u64 {
        let after = self.runs.partition_point(|run| (run.space, run.first) < (space, page));
        match after.checked_sub(1).map(|index| &self.runs[index]) {
            None => 0,
            Some(run) if run.space == space => run.rank + page.min(run.end) - run.first,
            Some(run) => run.rank + run.end - run.first,
        }
    }
}

/// A page that is not live.
const NONE: u32 = u32::MAX;

/// The most pages live at once in load and run; in a `looped` run also in the rounds that follow,
/// which begin with what the one before them left.
pub fn peak(script: &Script, looped: bool) -> u32 {
    let mut live = vec![false; script.working_pages as usize];
    let (mut count, mut peak) = (0_u32, 0_u32);
    let mut visit = |step: ScriptStep| {
        let on = match step.op {
            Op::Write => true,
            Op::Trim => false,
            Op::Read | Op::Flush => return,
        };
        for page in &mut live[step.range()] {
            count = count + u32::from(on & !*page) - u32::from(!on & *page);
            *page = on;
        }
        peak = peak.max(count);
    };
    let end = script.steps.len();
    script.steps.each(0..end, &mut visit);
    if looped {
        // Which pages are live at the end is the same from the second round on.
        script.steps.each(script.load_steps..end, &mut visit);
    }
    peak
}

/// The script with numbers below `peak` that recycle. The run is repeated until it wrote
/// `run_pages`, because what a repetition finds live is not what the first round found. Errors: no
/// place for a scratch file.
///
/// For a drive as large as the most pages that are live at once, on which traces that trim (file
/// systems, log-structured stores) reach many drive writes. Invariants: live pages have different
/// numbers below the peak; a page keeps its number while it is live; where nothing is trimmed every
/// page has the number it had before. A page joins its lower neighbour if the number after that is
/// free, so that requests stay whole and areas stay together. Memory: 8 bytes per page ever
/// written, 12 per step.
pub fn recycled(script: Script, peak: u32, run_pages: u64) -> io::Result<Script> {
    let mut numbers = LiveNumbers {
        numbers: vec![NONE; script.working_pages as usize],
        free: FreeSet::full(peak),
        peak,
        steps: StepWriter::default(),
        written: 0,
        failure: None,
    };
    let run = script.load_steps..script.steps.len();
    script.steps.each(0..script.load_steps, |step| numbers.step(&step));
    let (load_steps, end) = (numbers.steps.len(), numbers.written + run_pages);
    while numbers.written < end && numbers.failure.is_none() {
        script.steps.each(run.clone(), |step| numbers.step(&step));
    }
    let run_pages = numbers.written - script.load_pages;
    let steps = numbers.failure.map_or_else(|| numbers.steps.finish(), Err)?;
    Ok(Script { steps, load_steps, run_pages, working_pages: peak, ..script })
}

/// LiveNumbers in use and the steps that use them.
struct LiveNumbers {
    /// The number of each page, [`NONE`] if it is not live.
    numbers: Vec<u32>,
    free: FreeSet,
    peak: u32,
    steps: StepWriter,
    written: u64,
    /// Why a step could not be kept.
    failure: Option<io::Error>,
}

impl LiveNumbers {
    /// Appends a step in new numbers: several where they do not follow one another, none for reads
    /// and trims of nothing live.
    fn step(&mut self, step: &ScriptStep) {
        let Range { start, end } = step.range();
        let mut run: Option<(u32, u32)> = None;
        let mut continues = step.continues;
        for page in start..end {
            let number = match step.op {
                Op::Write => self.place(page),
                Op::Trim => self.drop(page),
                Op::Read | Op::Flush => self.numbers[page],
            };
            if number == NONE {
                continue;
            }
            match &mut run {
                Some((first, pages)) if *first + *pages == number => *pages += 1,
                _ => {
                    continues |= self.flush(step.op, run, continues);
                    run = Some((number, 1));
                }
            }
        }
        self.flush(step.op, run, continues);
    }

    /// Appends one run of numbers; whether there was one.
    fn flush(&mut self, op: Op, run: Option<(u32, u32)>, continues: bool) -> bool {
        let Some((first, pages)) = run else { return false };
        if self.failure.is_none() {
            self.failure = self.steps.push(ScriptStep { op, continues, first, pages }).err();
        }
        true
    }

    /// The number of a page that is written.
    fn place(&mut self, page: usize) -> u32 {
        self.written += 1;
        if self.numbers[page] != NONE {
            return self.numbers[page];
        }
        let below = page.checked_sub(1).map_or(NONE, |below| self.numbers[below]);
        let wanted = if below == NONE { page as u32 } else { below + 1 } % self.peak;
        // One is free: the peak counts this page.
        let number = self.free.next(wanted).or_else(|| self.free.next(0)).unwrap_or(wanted);
        self.free.set(number, false);
        self.numbers[page] = number;
        number
    }

    /// The number that a trimmed page had.
    fn drop(&mut self, page: usize) -> u32 {
        let number = std::mem::replace(&mut self.numbers[page], NONE);
        if number != NONE {
            self.free.set(number, true);
        }
        number
    }
}

/// A set of numbers that finds the next one at or after another: bits, and bits over their words.
struct FreeSet {
    /// The numbers first; then each level has a bit per word of the one before.
    levels: Vec<Vec<u64>>,
}

impl FreeSet {
    /// All numbers below `count`.
    fn full(count: u32) -> FreeSet {
        let mut levels = Vec::new();
        let mut bits = count as usize;
        loop {
            let mut level = vec![u64::MAX; bits / 64];
            if !bits.is_multiple_of(64) {
                level.push((1 << (bits % 64)) - 1);
            }
            bits = level.len();
            levels.push(level);
            if bits <= 1 {
                return FreeSet { levels };
            }
        }
    }

    fn set(&mut self, number: u32, free: bool) {
        let mut index = number as usize;
        let mut any = free;
        for level in &mut self.levels {
            let (word, bit) = (&mut level[index / 64], 1 << (index % 64));
            *word = if any { *word | bit } else { *word & !bit };
            any = *word != 0;
            index /= 64;
        }
    }

    /// The least number in the set that is not below `from`.
    fn next(&self, from: u32) -> Option<u32> {
        let mut index = from as usize;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(index / 64)? & (u64::MAX << (index % 64));
            if word != 0 {
                let mut found = index / 64 * 64 + word.trailing_zeros() as usize;
                for level in self.levels[..height].iter().rev() {
                    found = found * 64 + level[found].trailing_zeros() as usize;
                }
                return Some(found as u32);
            }
            index = index / 64 + 1;
        }
        None
    }
}

/// The lifetime of each page written by load and run, in order; at most `held_bytes` of them are
/// held in memory. When the run is `looped`, what it does first follows what it does last. A
/// lifetime ends with the next write of the page or its trim, and is [`NEVER`] if neither comes.
/// One backward pass; 8 bytes per logical page meanwhile. Errors: no place for a scratch file.
pub fn lifetimes(script: &Script, looped: bool, held_bytes: usize) -> io::Result<Column<u32>> {
    let (load, run) = (0..script.load_steps, script.load_steps..script.steps.len());
    let written = script.load_pages + script.run_pages;
    let mut pass = Backward {
        ends: vec![u64::MAX; script.working_pages as usize],
        clock: if looped { written + script.run_pages } else { written },
    };
    if looped {
        pass.over(&script.steps, run.clone(), &mut |_| {});
    }
    let mut found = BackwardWriter::holding(held_bytes, written as usize, NEVER)?;
    pass.over(&script.steps, run, &mut |lifetime| found.push(lifetime));
    pass.over(&script.steps, load, &mut |lifetime| found.push(lifetime));
    found.finish()
}

struct Backward {
    /// The clock at which each page's present copy ends.
    ends: Vec<u64>,
    /// Pages written up to here.
    clock: u64,
}

impl Backward {
    fn over(&mut self, steps: &ScriptSteps, range: Range<usize>, store: &mut impl FnMut(u32)) {
        steps.each_back(range, |step| match step.op {
            Op::Write => {
                for end in self.ends[step.range()].iter_mut().rev() {
                    let lifetime = *end - self.clock;
                    store(u32::try_from(lifetime).unwrap_or(NEVER));
                    *end = self.clock;
                    self.clock -= 1;
                }
            }
            Op::Trim => self.ends[step.range()].fill(self.clock),
            Op::Read | Op::Flush => {}
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};
    use steps::{listed, steps as written};

    #[test]
    fn pages_are_numbered_by_space_and_address() {
        let mut extents = WrittenExtents::default();
        extents.add(1, 5, 7);
        extents.add(0, 10, 12);
        extents.add(0, 2, 4);
        extents.add(0, 11, 13);
        assert_eq!(extents.number(), Some(7));
        assert_eq!(extents.numbers(0, 2, 4), 0..2);
        assert_eq!(extents.numbers(0, 0, 100), 0..5);
        assert_eq!(extents.numbers(0, 4, 10), 2..2);
        assert_eq!(extents.numbers(1, 6, 100), 6..7);
        assert_eq!(extents.numbers(7, 0, 9), 7..7);
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(
            adds in prop::collection::vec((0_u32..3, 0_u64..60, 1_u64..9), 0..60),
            ask in (0_u32..4, 0_u64..70, 0_u64..20),
        ) {
            let mut extents = WrittenExtents::default();
            let mut set = BTreeSet::new();
            for (space, first, pages) in adds {
                extents.add(space, first, first + pages);
                set.extend((first..first + pages).map(|page| (space, page)));
            }
            prop_assert_eq!(extents.number(), Some(set.len() as u64));
            let (space, first, pages) = ask;
            let before = set.range(..(space, first)).count() as u64;
            let within = set.range((space, first)..(space, first + pages)).count() as u64;
            prop_assert_eq!(extents.numbers(space, first, first + pages), before..before + within);
        }
    }

    fn step(op: Op, first: u32, pages: u32) -> ScriptStep {
        ScriptStep { op, continues: false, first, pages }
    }

    /// Steps in words: the operation, small where it goes on, first page and number of pages.
    fn spelled(words: &str) -> Vec<ScriptStep> {
        let read = |word: &str| {
            let op = match word.as_bytes()[0].to_ascii_uppercase() {
                b'R' => Op::Read,
                b'W' => Op::Write,
                _ => Op::Trim,
            };
            let (first, pages) = word[1..].split_once('+').unwrap();
            let continues = word.as_bytes()[0].is_ascii_lowercase();
            ScriptStep {
                op,
                continues,
                first: first.parse().unwrap(),
                pages: pages.parse().unwrap(),
            }
        };
        words.split_whitespace().map(read).collect()
    }

    fn script(steps: Vec<ScriptStep>, load_steps: usize, working_pages: u32) -> Script {
        let writes = |steps: &[ScriptStep]| {
            let writes = steps.iter().filter(|step| step.op == Op::Write);
            writes.map(|step| u64::from(step.pages)).sum()
        };
        let (load_pages, run_pages) = (writes(&steps[..load_steps]), writes(&steps[load_steps..]));
        let steps = written(&steps, 40);
        Script { steps, load_steps, load_pages, run_pages, working_pages, ..Script::default() }
    }

    /// Pages 0 to 3, 1 and 2 trimmed, 4 to 6 written: 4 follows 3, then 1 and 2 are given again.
    #[test]
    fn trimmed_numbers_are_given_again() {
        let plain = script(spelled("W0+4 T1+2 R0+4 W4+3 T1+2 T3+3"), 1, 7);
        assert_eq!(peak(&plain, false), 5);
        let found = recycled(plain, 5, 3).unwrap();
        assert_eq!(listed(&found.steps), spelled("W0+4 T1+2 R0+1 r3+1 W4+1 w1+2 T3+2 t1+1"));
        assert_eq!((found.load_steps, found.load_pages, found.run_pages), (1, 4, 3));
        assert_eq!(found.working_pages, 5);
    }

    /// The first round leaves 2 live beside 0, so the second needs three numbers.
    #[test]
    fn a_repetition_begins_with_what_the_round_before_left() {
        let plain = script(spelled("W0+1 W1+1 T1+1 W2+1"), 1, 3);
        assert_eq!([peak(&plain, false), peak(&plain, true)], [2, 3]);
        let found = recycled(plain, 3, 3).unwrap();
        assert_eq!((found.run_pages, found.steps.len()), (4, 7));
    }

    fn steps(trims: bool) -> impl Strategy<Value = Vec<ScriptStep>> {
        let op = prop_oneof![Just(Op::Write), Just(Op::Write), Just(Op::Trim)];
        let one = (op, 0_u32..200, 1_u32..20).prop_map(move |(op, first, pages)| {
            step(if trims { op } else { Op::Write }, first, pages)
        });
        prop::collection::vec(one, 1..80)
    }

    proptest! {
        /// Exactly the old numbers where nothing is trimmed.
        #[test]
        fn without_trims_nothing_changes(steps in steps(false)) {
            let mut written = BTreeSet::new();
            for step in &steps {
                written.extend(step.range());
            }
            // Dense first, as the script's pages are.
            let rank: BTreeMap<usize, u32> =
                written.iter().zip(0..).map(|(page, rank)| (*page, rank)).collect();
            let dense: Vec<ScriptStep> = steps
                .iter()
                .map(|one| step(Op::Write, rank[&one.range().start], one.pages))
                .collect();
            let plain = script(dense.clone(), 0, written.len() as u32);
            let peak = peak(&plain, true);
            prop_assert_eq!(peak as usize, written.len());
            let run_pages = plain.run_pages;
            let found = recycled(plain, peak, run_pages).unwrap();
            prop_assert_eq!(listed(&found.steps), dense);
        }

        /// Live pages have numbers of their own below the peak, kept until their trim, and the
        /// peak is reached; no page of the host is lost.
        #[test]
        fn live_pages_never_share_a_number(steps in steps(true), looped: bool) {
            let plain = script(steps.clone(), 0, 220);
            prop_assume!(plain.run_pages > 0);
            let peak = peak(&plain, looped);
            let rounds = if looped { 3 } else { 1 };
            let found = recycled(plain.clone(), peak, rounds * plain.run_pages).unwrap();
            let pieces = listed(&found.steps);
            prop_assert_eq!(found.run_pages, rounds * plain.run_pages);
            let mut live: BTreeMap<usize, u32> = BTreeMap::new();
            let (mut most, mut at) = (0, 0);
            for one in steps.iter().cycle().take(rounds as usize * steps.len()) {
                let mut numbers = Vec::new();
                let due = one.range().filter(|page| one.op == Op::Write || live.contains_key(page));
                let due: Vec<usize> = due.collect();
                while numbers.len() < due.len() {
                    let piece = &pieces[at];
                    prop_assert_eq!((piece.op, piece.continues), (one.op, !numbers.is_empty()));
                    numbers.extend(piece.first..piece.first + piece.pages);
                    at += 1;
                }
                prop_assert_eq!(numbers.len(), due.len());
                for (page, number) in due.into_iter().zip(numbers) {
                    prop_assert!(number < peak);
                    match (one.op, live.get(&page)) {
                        (_, Some(kept)) => prop_assert_eq!(*kept, number),
                        _ => prop_assert!(!live.values().any(|taken| *taken == number)),
                    }
                    if one.op == Op::Write {
                        live.insert(page, number);
                    } else {
                        live.remove(&page);
                    }
                }
                most = most.max(live.len());
            }
            prop_assert_eq!(at, found.steps.len());
            prop_assert_eq!(most, peak as usize);
        }
    }

    mod steps {
        use super::*;

        /// Steps that lie in memory, or all but a few in a file.
        pub fn steps(steps: &[ScriptStep], held_bytes: usize) -> ScriptSteps {
            let mut writer = StepWriter::holding(held_bytes);
            steps.iter().for_each(|step| writer.push(*step).unwrap());
            writer.finish().unwrap()
        }

        /// All steps in memory.
        pub fn listed(steps: &ScriptSteps) -> Vec<ScriptStep> {
            let mut found = Vec::new();
            steps.each(0..steps.len(), |step| found.push(step));
            found
        }

        #[test]
        fn steps_from_a_file_are_those_written() {
            let op = |index: u32| [Op::Read, Op::Write, Op::Trim][index as usize % 3];
            let step = |index: u32| ScriptStep {
                op: op(index),
                continues: index % 5 == 4,
                first: index ^ 0x7fff_0000,
                pages: u32::MAX - index,
            };
            let all: Vec<ScriptStep> = (0..2 * STEPS_PIECE as u32 + 9).map(step).collect();
            for held_bytes in [100, 1 << 30] {
                let found = steps(&all, held_bytes);
                assert_eq!(
                    (found.len(), found.get(7), found.get(all.len())),
                    (all.len(), Some(all[7]), None)
                );
                assert_eq!(listed(&found), all);
                let mut back = Vec::new();
                found.each_back(3..all.len(), |step| back.push(step));
                back.reverse();
                assert_eq!(back, all[3..]);
            }
        }

        /// A request of two steps lies across the end of the first piece: it is not cut.
        #[test]
        fn pieces_are_of_whole_requests_with_their_lifetimes() {
            let step = |index: usize| ScriptStep {
                op: if index.is_multiple_of(4) { Op::Read } else { Op::Write },
                continues: (STEPS_PIECE - 1..STEPS_PIECE + 2).contains(&index),
                first: index as u32,
                pages: 1 + index as u32 % 2,
            };
            let all: Vec<ScriptStep> = (0..STEPS_PIECE + 10).map(step).collect();
            let written: u64 = all.iter().map(ScriptStep::written).sum();
            let lifetimes: Column<u32> = (0..written as u32).collect::<Vec<_>>().into();
            for held_bytes in [100, 1 << 30] {
                let found = steps(&all, held_bytes);
                let skipped: u64 = all[..5].iter().map(ScriptStep::written).sum();
                let stretch = Stretch {
                    steps: &found,
                    range: 5..all.len() - 1,
                    lifetimes: &lifetimes,
                    written: skipped as usize,
                };
                let (mut seen, mut lives, mut ends) = (Vec::new(), Vec::new(), Vec::new());
                let pieces = stretch.pieces(|steps, lifetimes| {
                    seen.extend_from_slice(steps);
                    lives.extend_from_slice(lifetimes);
                    ends.push(seen.len());
                    Ok::<bool, ()>(true)
                });
                assert!(pieces.is_ok());
                assert_eq!(seen, all[5..all.len() - 1]);
                assert!(
                    lives.iter().copied().eq(skipped as u32..skipped as u32 + lives.len() as u32)
                );
                assert_eq!(ends, [STEPS_PIECE, STEPS_PIECE + 4]);
            }
        }
    }

    mod lifetimes {
        use super::steps::steps;
        use super::*;

        fn step(op: Op, first: u32, pages: u32) -> ScriptStep {
            ScriptStep { op, continues: false, first, pages }
        }

        /// Load: 0 1 2. Run: 1, trim of 0..2, 2 0.
        fn script() -> Script {
            let all = [
                step(Op::Write, 0, 3),
                step(Op::Write, 1, 1),
                step(Op::Read, 2, 1),
                step(Op::Trim, 0, 2),
                step(Op::Write, 2, 1),
                step(Op::Write, 0, 1),
            ];
            Script {
                steps: steps(&all, 1),
                load_steps: 1,
                load_pages: 3,
                run_pages: 3,
                working_pages: 3,
                ..Script::default()
            }
        }

        #[test]
        fn a_lifetime_ends_with_the_next_write_or_trim() {
            for held_bytes in [4, 12, 1 << 20] {
                let found = lifetimes(&script(), false, held_bytes).unwrap();
                assert_eq!(found, [3, 2, 2, 0, NEVER, NEVER]);
            }
        }

        /// The next round writes 1 (clock 7), trims 0 and 1, writes 2 (8), 0 (9).
        #[test]
        fn in_a_loop_the_first_follows_the_last() {
            assert_eq!(lifetimes(&script(), true, 8).unwrap(), [3, 2, 2, 0, 3, 1]);
        }
    }
}
