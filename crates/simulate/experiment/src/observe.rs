//! What a volume's requests are like, counted in memory that does not grow with the trace.
//!
//! Requests, bytes, sizes, runs and arrivals are counted exactly. Whatever is known of single
//! blocks - re-use, popularity, updates, blocks in use - comes from blocks chosen by their hash
//! (Waldspurger et al., FAST'15): all blocks while they fit, then a half of them, a quarter and so
//! on. A block of a sample at rate r stands for 1/r blocks, and a distance of d among them for d/r.
//! Periods, windows and maps keep their number and double in length as time goes on.

use crate::ExperimentError;
use crate::info::{BlockSize, TraceChoice, VolumeFacts, octave, octave_end};
use crate::json::document;
use cachewright_curve::StackDistance;
use cachewright_result::document::Written;
use cachewright_result::workload::{
    BlockReuse, Distribution, OffsetMap, PeakSecond, Popularity, ReachedSize, Runs, Scans, Updates,
    WindowBlocks, WorkloadAnswer, WorkloadPeriod, WorkloadPoint,
};
use cachewright_trace::merge::VolumeChoice;
use cachewright_trace::{Batch, Record, Skipped, TraceReader, formats};
use cachewright_types::seed::mix;
use cachewright_types::{BlockId, BlockKey, Bytes, Op, TenantId, VolumeKeys, parse_bytes};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

/// Bytes of a run that is called a scan, at least.
const SCAN_BYTES: u64 = 256 << 10;
/// Runs of a volume that can be continued at the same time, of reads and of writes.
const OPEN_RUNS: usize = 16;
/// Volumes whose runs are followed; in further ones each request is a run.
const RUN_VOLUMES: usize = 4096;
/// Volumes whose offsets are mapped: those met first.
const MAPPED_VOLUMES: usize = 64;
/// Maps that are shown, of the busiest volumes.
const MAPS: usize = 4;
/// Columns and rows of a map.
const COLUMNS: usize = 128;
const ROWS: usize = 64;
/// Periods of a trace, at most.
const PERIODS: usize = 128;
/// Length of a period, and of a map's column, before any doubling.
const FIRST_PERIOD_NS: u64 = 1_000_000;
/// Levels of windows: one for each bit of a period's number, and one for blocks never used before.
const LEVELS: usize = 65;
/// Octaves of 64 bits, and those of a distance in blocks.
const OCTAVES: usize = 65;
const DISTANCE_OCTAVES: usize = 41;
/// Bytes of a sector, and of what a request is aligned to.
const SECTOR: u64 = 512;
const SECTOR_GROUP: u64 = 4096;
const SECOND_NS: u64 = 1_000_000_000;
/// Bytes per block that is followed, about: its key, two times, a count, its place in the stack.
const BYTES_PER_BLOCK: usize = 72;
/// Points of a popularity curve and of a miss-ratio curve, at most.
const POINTS: usize = 200;
/// Shares of the hits of the largest cache for which sizes are told.
const REACHED: [f64; 3] = [0.5, 0.9, 0.99];
/// Reads within scans are helped by a size in which this share of them hit.
const HELPED: f64 = 0.1;
/// Blocks of a request, at most; a longer one is damage.
const MOST_BLOCKS: u64 = 1 << 24;
/// Never written.
const NEVER_NS: u64 = u64::MAX;

/// How to observe a trace.
#[derive(Clone, Debug)]
pub struct ObserveOptions {
    /// How to open it, and which of its volumes.
    pub choice: TraceChoice,
    /// Block size, with unit.
    pub block: String,
    /// Most memory for what is known of single blocks, with unit.
    pub memory: String,
}

/// A trace being observed: read a batch, look at what there is, go on.
pub struct Observer {
    path: PathBuf,
    format: &'static str,
    reader: Box<dyn TraceReader>,
    chosen: Option<VolumeChoice>,
    batch: Batch,
    /// Bytes of a request, at most.
    most_bytes: u64,
}

impl Observer {
    /// Opens a trace, and the counts for it. Errors: a trace that cannot be read, a block that is
    /// no power of two, memory for fewer blocks than can be judged by.
    pub fn open(
        path: &Path,
        options: &ObserveOptions,
    ) -> Result<(Observer, Observation), ExperimentError> {
        let refuse = |message: String| ExperimentError::spec(path, message);
        let block = parse_bytes(&options.block).map_err(|e| refuse(format!("`block`: {e}")))?;
        if !block.0.is_power_of_two() {
            return Err(refuse(format!("`block`: found `{block}`, expected a power of two")));
        }
        let memory = parse_bytes(&options.memory).map_err(|e| refuse(format!("`memory`: {e}")))?;
        let fixed = std::mem::size_of::<Observation>() as u64 + FIXED_BYTES;
        let blocks = memory.0.saturating_sub(fixed) / BYTES_PER_BLOCK as u64;
        // Tables double while they grow, so that half of the memory must be free for the copy.
        let blocks = (blocks / 2).min(u64::from(u32::MAX / 4)) as usize;
        if blocks < MIN_BLOCKS {
            let least = Bytes(fixed + (2 * MIN_BLOCKS * BYTES_PER_BLOCK) as u64);
            return Err(refuse(format!("`memory`: found `{memory}`, expected at least {least}")));
        }
        let open = &options.choice.open;
        let format = formats::format_of(path, open)?.name;
        let mut observation = Observation::new(block, formats::counts_objects(path, open)?, blocks);
        if BY_PROCESSOR.contains(&format) {
            observation.most_waiting = WAITING;
        }
        let observer = Observer {
            path: path.to_owned(),
            format,
            reader: formats::open(path, open)?,
            chosen: options.choice.volume.as_deref().map(VolumeChoice::new),
            batch: Batch::default(),
            most_bytes: block.0.saturating_mul(MOST_BLOCKS),
        };
        Ok((observer, observation))
    }

    /// Requests of the trace, where its file says so.
    pub fn requests_hint(&self) -> Option<u64> {
        self.reader.requests_hint()
    }

    /// Reads the next requests, `count` at most, and returns how many there were: 0 at the end.
    /// [`Observation::add_all`] takes them. Errors: a record that cannot be read; at the end a
    /// volume that was asked for and is not there.
    pub fn read(&mut self, count: usize) -> Result<usize, ExperimentError> {
        self.batch.clear();
        let found = self.reader.read(&mut self.batch, count)?;
        let accesses = self.batch.iter().filter(|one| matches!(one.op, Op::Read | Op::Write));
        if let Some(long) = accesses.map(|one| one.length_bytes).find(|one| *one > self.most_bytes)
        {
            let (found, most) = (Bytes(long), Bytes(self.most_bytes));
            let text = format!("found a request of {found}, expected at most {most}");
            return Err(ExperimentError::spec(&self.path, text));
        }
        match &mut self.chosen {
            Some(chosen) if found == 0 => chosen.refuse_unknown(self.reader.volumes())?,
            Some(chosen) => {
                let among = chosen.among(self.reader.volumes());
                let kept = self.batch.iter().filter(|one| among[one.volume as usize]);
                let mut batch = Batch::default();
                kept.for_each(|record| batch.push(record));
                self.batch = batch;
            }
            None => {}
        }
        Ok(found)
    }

    /// The requests read last, those of volumes that were not asked for left out.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Notes in `source` what was found of the trace itself, beside its requests.
    pub fn describe(&self, source: &mut ObservedSource) {
        source.path.clone_from(&self.path);
        source.format = self.format;
        source.has_times = self.reader.has_times();
        source.skipped.clone_from(self.reader.skipped());
        source.notes = self.reader.notes();
        let names = self.reader.volumes();
        let known = source.volumes.len().min(names.len());
        source.volumes.extend_from_slice(&names[known..]);
    }
}

/// A trace beside its requests, as far as it was read.
#[derive(Clone, Debug, Default)]
pub struct ObservedSource {
    path: PathBuf,
    format: &'static str,
    has_times: bool,
    volumes: Vec<String>,
    skipped: Skipped,
    notes: Vec<String>,
}

/// Fewest blocks by which a workload can be judged.
const MIN_BLOCKS: usize = 4096;
/// Bytes of maps, runs and periods, at most.
const FIXED_BYTES: u64 = (MAPPED_VOLUMES * COLUMNS * ROWS * 8 + RUN_VOLUMES * 2 * OPEN_RUNS * 24)
    as u64
    + (PERIODS * (LEVELS + 6) * 8 + WAITING * std::mem::size_of::<Waiting>()) as u64;

/// Formats whose files hold what each processor wrote in turn, so that times run back and forth.
const BY_PROCESSOR: [&str; 1] = ["blktrace"];
/// Requests of such a trace that wait for earlier ones.
const WAITING: usize = 1 << 15;

/// A request that waits for earlier ones; the earliest comes first, and of one time the first read.
struct Waiting {
    record: Record,
    place: u64,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Ordering {
        (other.record.time_ns, other.place).cmp(&(self.record.time_ns, self.place))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

/// Counts of a workload so far.
pub struct Observation {
    /// Requests that wait for earlier ones, and how many may.
    waiting: BinaryHeap<Waiting>,
    most_waiting: usize,
    arrived: u64,
    size: BlockSize,
    first_ns: Option<u64>,
    /// Since the first request.
    latest_ns: u64,
    total: VolumeFacts,
    volumes: Vec<VolumeFacts>,
    blocks: FollowedBlocks,
    periods: Periods,
    second: SecondCounts,
    maps: Vec<Map>,
    sizes: [LogBins; 2],
    misaligned: u64,
    arrivals: LogBins,
    runs: Vec<[OpenRuns; 2]>,
    ended: [EndedRuns; 2],
}

impl Observation {
    /// Nothing seen yet; at most `max_blocks` blocks are followed.
    pub fn new(block: Bytes, objects: bool, max_blocks: usize) -> Observation {
        Observation {
            waiting: BinaryHeap::new(),
            most_waiting: 0,
            arrived: 0,
            size: BlockSize { block, objects },
            first_ns: None,
            latest_ns: 0,
            total: VolumeFacts::default(),
            volumes: Vec::new(),
            blocks: FollowedBlocks::new(max_blocks),
            periods: Periods::default(),
            second: SecondCounts::default(),
            maps: Vec::new(),
            sizes: Default::default(),
            misaligned: 0,
            arrivals: LogBins::default(),
            runs: Vec::new(),
            ended: Default::default(),
        }
    }

    /// Counts requests in the order of the trace; of one that processors wrote in turn in the order
    /// of time, as far as the window of those that wait reaches.
    pub fn add_all(&mut self, batch: &Batch) {
        for record in batch.iter() {
            if self.most_waiting == 0 {
                self.add(&record);
                continue;
            }
            self.waiting.push(Waiting { record, place: self.arrived });
            self.arrived += 1;
            if self.waiting.len() > self.most_waiting {
                self.count_earliest();
            }
        }
    }

    /// Counts the requests that wait, because no more will come.
    pub fn settle(&mut self) {
        while self.count_earliest() {}
    }

    fn count_earliest(&mut self) -> bool {
        let earliest = self.waiting.pop();
        if let Some(waiting) = &earliest {
            self.add(&waiting.record);
        }
        earliest.is_some()
    }

    /// Counts one request. One that comes with a time before the first is counted at its start.
    pub fn add(&mut self, record: &Record) {
        let first_ns = *self.first_ns.get_or_insert(record.time_ns);
        let time_ns = record.time_ns.saturating_sub(first_ns);
        if self.total.requests() > 0 {
            self.arrivals.add(time_ns.saturating_sub(self.latest_ns), 1.0);
        }
        self.latest_ns = self.latest_ns.max(time_ns);
        let volume = record.volume as usize;
        if self.volumes.len() <= volume {
            self.volumes.resize_with(volume + 1, VolumeFacts::default);
        }
        self.total.add(record);
        self.volumes[volume].add(record);
        match record.op {
            Op::Flush => {}
            Op::Trim => self.trim(record),
            Op::Read | Op::Write => self.add_access(record, time_ns),
        }
    }

    fn add_access(&mut self, record: &Record, time_ns: u64) {
        let write = record.op == Op::Write;
        let (kind, volume) = (usize::from(write), record.volume as usize);
        let length_bytes = record.length_bytes;
        self.sizes[kind].add(length_bytes, 1.0);
        // What is not of whole sectors is no request to a disk, such as an object by its number.
        let place = record.offset_bytes | length_bytes;
        let odd = place.is_multiple_of(SECTOR) && !place.is_multiple_of(SECTOR_GROUP);
        self.misaligned += u64::from(odd && !self.size.objects);
        self.second.add(time_ns, length_bytes);
        self.periods.add_request(time_ns, write, length_bytes);
        if volume < MAPPED_VOLUMES {
            if self.maps.len() <= volume {
                self.maps.resize_with(volume + 1, Map::default);
            }
            self.maps[volume].add(time_ns, record.offset_bytes, write, self.size.block.0);
        }
        let run_bytes = self.continue_run(record, volume, kind);
        let scan = !write && run_bytes >= SCAN_BYTES + length_bytes;
        let (first, count) = self.size.touched(record);
        let keys = VolumeKeys::new(TenantId(0), record.volume);
        for number in first..first.saturating_add(count) {
            self.blocks.access(keys.key(number), time_ns, write, scan, &mut self.periods);
        }
    }

    fn trim(&mut self, record: &Record) {
        let (first, count) = self.size.trimmed(record);
        self.blocks.trim(VolumeKeys::new(TenantId(0), record.volume), first, count);
    }

    /// Bytes of the run that a request is part of, itself included. Objects have no neighbours.
    fn continue_run(&mut self, record: &Record, volume: usize, kind: usize) -> u64 {
        let ended = &mut self.ended[kind];
        if volume >= RUN_VOLUMES || self.size.objects {
            ended.add(record.length_bytes);
            return record.length_bytes;
        }
        if self.runs.len() <= volume {
            self.runs.resize_with(volume + 1, Default::default);
        }
        self.runs[volume][kind].add(record.offset_bytes, record.length_bytes, ended)
    }

    /// What is known so far of the requests of a trace.
    pub fn document(&self, source: &ObservedSource) -> Result<Value, ExperimentError> {
        document(&self.answer(source))
    }

    fn answer(&self, source: &ObservedSource) -> WorkloadAnswer {
        let (names, timed) = (&source.volumes, source.has_times);
        let span_ns = timed.then_some(self.latest_ns);
        let name = |volume: usize| names.get(volume).cloned().unwrap_or_default();
        let mut busiest: Vec<usize> =
            (0..self.volumes.len()).filter(|v| self.volumes[*v].requests() > 0).collect();
        busiest.sort_by_key(|v| (std::cmp::Reverse(self.volumes[*v].requests()), *v));
        let mut totals = self.total.totals(span_ns);
        let followed = &self.blocks;
        totals.distinct_blocks = followed.distinct.round() as u64;
        // Objects have several sizes; those of the requests stand for them.
        let objects = self.sizes.iter().map(|bins| bins.sum).sum::<f64>()
            / self.sizes.iter().map(|bins| bins.count).sum::<f64>().max(1.0);
        let each = if self.size.objects { objects } else { self.size.block.0 as f64 };
        let of_blocks = |count: f64| (count * each).round() as u64;
        totals.working_set_bytes = of_blocks(followed.distinct);
        totals.written_working_set_bytes = of_blocks(followed.written);
        let maps = busiest.iter().filter(|volume| **volume < self.maps.len()).take(MAPS);
        let ended = |kind: usize| {
            let mut ended = self.ended[kind].clone();
            let open = self.runs.iter().flat_map(|both| &both[kind].runs);
            open.filter(|run| run.bytes > 0).for_each(|run| ended.add(run.bytes));
            ended.answer()
        };
        let curve = followed.curve();
        WorkloadAnswer {
            written: Written::here(),
            totals,
            path: source.path.display().to_string(),
            format: source.format.to_owned(),
            volumes: busiest.iter().map(|volume| name(*volume)).collect(),
            has_times: timed,
            span_ns,
            block_bytes: self.size.block.0,
            counts_objects: self.size.objects,
            sample_rate: followed.rate(),
            sampled_blocks: followed.ids.len() as u64,
            memory_bytes: FIXED_BYTES + followed.memory_bytes(),
            skipped_bad: source.skipped.bad,
            skipped_irrelevant: source.skipped.irrelevant,
            notes: source.notes.clone(),
            period_ns: self.periods.width_ns,
            periods: if timed { self.periods.rows() } else { Vec::new() },
            peak: if timed { self.second.peak() } else { PeakSecond::default() },
            windows: if timed { self.periods.windows() } else { Vec::new() },
            offsets: maps.map(|volume| self.maps[*volume].answer(name(*volume))).collect(),
            read_bytes_each: self.sizes[0].distribution(),
            write_bytes_each: self.sizes[1].distribution(),
            misaligned: self.misaligned,
            arrivals_ns: if timed { self.arrivals.distribution() } else { Distribution::default() },
            read_runs: ended(0),
            write_runs: ended(1),
            reuse: followed.reuse(timed),
            updates: followed.updates(timed),
            popularity: followed.popularity(),
            knee_blocks: knee(&curve),
            sizes: reached(&curve),
            scans: followed.scans(),
            curve,
        }
    }
}

/// The blocks that are followed, and what was counted of them.
struct FollowedBlocks {
    max_blocks: usize,
    /// Blocks whose hash has so many low zero bits are followed.
    zero_bits: u32,
    ids: HashMap<BlockKey, u32, FixedState>,
    /// Ids that are free.
    free: Vec<u32>,
    blocks: Vec<FollowedBlock>,
    stack: StackDistance,
    /// Blocks met, and blocks written.
    distinct: f64,
    written: f64,
    /// Accesses of all blocks, followed or not: reads, writes.
    accesses: [f64; 2],
    /// Accesses at their weight: reads, writes.
    weighed: [f64; 2],
    first_uses: f64,
    /// Distances of reads, and of writes.
    distances: [LogBins; 2],
    /// Distances of reads within scans, all of these, and those of them that are first uses.
    scan_distances: LogBins,
    scan_reads: f64,
    scan_first_uses: f64,
    reuse_times: LogBins,
    /// Per octave of time: accesses by octave of distance.
    reuse_cells: Vec<[f64; DISTANCE_OCTAVES]>,
    overwrites: f64,
    update_intervals: LogBins,
}

/// A followed block.
#[derive(Clone, Copy)]
struct FollowedBlock {
    used_ns: u64,
    written_ns: u64,
    accesses: u32,
}

impl FollowedBlocks {
    fn new(max_blocks: usize) -> FollowedBlocks {
        FollowedBlocks {
            max_blocks,
            zero_bits: 0,
            ids: HashMap::default(),
            free: Vec::new(),
            blocks: Vec::new(),
            stack: StackDistance::new(),
            distinct: 0.0,
            written: 0.0,
            accesses: [0.0; 2],
            weighed: [0.0; 2],
            first_uses: 0.0,
            distances: Default::default(),
            scan_distances: LogBins::default(),
            scan_reads: 0.0,
            scan_first_uses: 0.0,
            reuse_times: LogBins::default(),
            reuse_cells: vec![[0.0; DISTANCE_OCTAVES]; OCTAVES],
            overwrites: 0.0,
            update_intervals: LogBins::default(),
        }
    }

    fn rate(&self) -> f64 {
        (-f64::from(self.zero_bits)).exp2()
    }

    fn follows(&self, key: BlockKey) -> bool {
        self.zero_bits == 0 || mix(key.0).trailing_zeros() >= self.zero_bits
    }

    fn access(
        &mut self,
        key: BlockKey,
        time_ns: u64,
        write: bool,
        scan: bool,
        periods: &mut Periods,
    ) {
        let kind = usize::from(write);
        self.accesses[kind] += 1.0;
        if !self.follows(key) {
            return;
        }
        let weight = f64::from(self.zero_bits).exp2();
        self.weighed[kind] += weight;
        let (id, new) = self.enter(key);
        let block = self.blocks[id as usize];
        let before = (!new).then_some(block.used_ns);
        periods.add_use(time_ns, before, weight);
        self.distinct += if new { weight } else { 0.0 };
        let distance = self.stack.access(BlockId(id), write);
        let scaled = distance.map(|distance| u64::from(distance) << self.zero_bits);
        if scan {
            self.scan_reads += weight;
            match scaled {
                Some(distance) => self.scan_distances.add(distance, weight),
                None => self.scan_first_uses += weight,
            }
        }
        match scaled {
            Some(distance) => {
                let since_ns = time_ns.saturating_sub(block.used_ns);
                self.distances[kind].add(distance, weight);
                self.reuse_times.add(since_ns, weight);
                let cell = &mut self.reuse_cells[octave(since_ns)];
                cell[octave(distance).min(DISTANCE_OCTAVES - 1)] += weight;
            }
            None => self.first_uses += weight,
        }
        if write {
            if block.written_ns == NEVER_NS {
                self.written += weight;
            } else {
                self.overwrites += weight;
                self.update_intervals.add(time_ns.saturating_sub(block.written_ns), weight);
            }
        }
        let block = &mut self.blocks[id as usize];
        block.used_ns = block.used_ns.max(time_ns);
        block.written_ns = if write { time_ns } else { block.written_ns };
        block.accesses = block.accesses.saturating_add(1);
        if self.ids.len() > self.max_blocks {
            self.halve();
        }
    }

    /// The id of a block, and whether it was met for the first time.
    fn enter(&mut self, key: BlockKey) -> (u32, bool) {
        if let Some(id) = self.ids.get(&key) {
            return (*id, false);
        }
        let fresh = FollowedBlock { used_ns: 0, written_ns: NEVER_NS, accesses: 0 };
        let id = match self.free.pop() {
            Some(id) => {
                self.blocks[id as usize] = fresh;
                id
            }
            None => {
                self.blocks.push(fresh);
                (self.blocks.len() - 1) as u32
            }
        };
        self.ids.insert(key, id);
        (id, true)
    }

    /// Follows half as many blocks from now on.
    fn halve(&mut self) {
        self.zero_bits += 1;
        let zero_bits = self.zero_bits;
        let (stack, free) = (&mut self.stack, &mut self.free);
        self.ids.retain(|key, id| {
            let kept = mix(key.0).trailing_zeros() >= zero_bits;
            if !kept {
                stack.forget(BlockId(*id));
                free.push(*id);
            }
            kept
        });
        // The table's order must not decide which id a block gets.
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Blocks that are trimmed hold nothing; the next access to one is a first use.
    fn trim(&mut self, volume: VolumeKeys, first: u64, count: u64) {
        let range = first..first.saturating_add(count);
        let trimmed: Vec<u32> = if count <= self.ids.len() as u64 {
            range.filter_map(|number| self.ids.get(&volume.key(number)).copied()).collect()
        } else {
            let held = self.ids.iter().filter(|(key, _)| range.contains(&volume.number(**key)));
            let mut held: Vec<u32> = held.map(|(_, id)| *id).collect();
            held.sort_unstable();
            held
        };
        for id in trimmed {
            self.stack.remove(BlockId(id));
        }
    }

    fn memory_bytes(&self) -> u64 {
        let held = self.blocks.capacity() * std::mem::size_of::<FollowedBlock>();
        let table = self.ids.capacity() * (std::mem::size_of::<(BlockKey, u32)>() + 1);
        (held + table + self.free.capacity() * 4 + self.stack.memory_bytes()) as u64
    }

    fn reuse(&self, timed: bool) -> BlockReuse {
        let mut cells = Vec::new();
        for (time, row) in self.reuse_cells.iter().enumerate().filter(|_| timed) {
            let filled = row.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
            cells.extend(
                filled.map(|(distance, weight)| (octave_end(time), octave_end(distance), *weight)),
            );
        }
        BlockReuse {
            accesses: self.accesses.iter().sum(),
            first_uses: self.first_uses,
            times_ns: if timed { self.reuse_times.distribution() } else { Distribution::default() },
            cells,
        }
    }

    fn updates(&self, timed: bool) -> Updates {
        let intervals =
            if timed { self.update_intervals.distribution() } else { Distribution::default() };
        Updates { writes: self.accesses[1], overwrites: self.overwrites, intervals_ns: intervals }
    }

    fn popularity(&self) -> Popularity {
        let mut counts: Vec<u32> =
            self.ids.values().map(|id| self.blocks[*id as usize].accesses).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (total, blocks) = (counts.iter().map(|c| f64::from(*c)).sum::<f64>(), counts.len());
        if blocks == 0 {
            return Popularity::default();
        }
        let at = spread_ranks(blocks);
        let mut sum = 0.0;
        let mut reached = vec![0.0; at.len()];
        let mut next = 0;
        for (index, count) in counts.iter().enumerate() {
            sum += f64::from(*count);
            while next < at.len() && at[next] == index + 1 {
                reached[next] = sum / total;
                next += 1;
            }
        }
        let scale = f64::from(self.zero_bits).exp2();
        let rank = |index: usize| (index as f64 * scale).round() as u64;
        let ranks: Vec<(u64, u64)> =
            at.iter().map(|index| (rank(*index), u64::from(counts[index - 1]))).collect();
        let shares =
            at.iter().zip(&reached).map(|(i, r)| (*i as f64 / blocks as f64, *r)).collect();
        let once = counts.iter().rev().take_while(|count| **count <= 1).count();
        let least = counts.last().copied().unwrap_or(0);
        let above: Vec<(f64, f64)> = ranks
            .iter()
            .filter(|(_, count)| *count > u64::from(least))
            .map(|(rank, count)| ((*rank as f64).ln(), (*count as f64).ln()))
            .collect();
        let (exponent, fit) =
            line(&above).map_or((None, None), |(slope, fit)| (Some(-slope), Some(fit)));
        Popularity { ranks, exponent, fit, shares, once_share: once as f64 / blocks as f64 }
    }

    /// Misses by size. What the sample met too little or too often, beside its share of all
    /// accesses, counts as hits at the least distance (SHARDS-adj, section 3.4).
    fn curve(&self) -> Vec<WorkloadPoint> {
        let all: f64 = self.accesses.iter().sum();
        if all == 0.0 || self.distances.iter().all(|bins| bins.count == 0.0) {
            return Vec::new();
        }
        let spare = [0, 1].map(|kind| self.accesses[kind] - self.weighed[kind]);
        let mut hits = spare;
        let mut points = vec![(0_u64, 1.0, 1.0)];
        for (bin, end) in (0..BINS).map(|bin| (bin, bin_end(bin))) {
            let here = [0, 1].map(|kind| self.distances[kind].bins[bin]);
            if here == [0.0, 0.0] {
                continue;
            }
            hits = [hits[0] + here[0], hits[1] + here[1]];
            let miss = (1.0 - (hits[0] + hits[1]) / all).clamp(0.0, 1.0);
            let read = match self.accesses[0] {
                0.0 => 1.0,
                reads => (1.0 - hits[0] / reads).clamp(0.0, 1.0),
            };
            points.push((end, miss, read));
        }
        let point = |(blocks, miss_ratio, read_miss_ratio): (u64, f64, f64)| WorkloadPoint {
            blocks,
            miss_ratio,
            read_miss_ratio,
        };
        points.into_iter().map(point).collect()
    }

    fn scans(&self) -> Scans {
        let mut hits = 0.0;
        let helped = (0..BINS).find(|bin| {
            hits += self.scan_distances.bins[*bin];
            hits > 0.0 && hits >= HELPED * self.scan_reads
        });
        let best = match self.scan_reads {
            0.0 => 0.0,
            reads => self.scan_distances.count / reads,
        };
        Scans {
            reads: self.scan_reads,
            first_uses: self.scan_first_uses,
            helped_from_blocks: helped.map(bin_end),
            best_hit_ratio: best,
        }
    }
}

/// Ranks from 1 to `last`, close together at first, a few per octave later.
fn spread_ranks(last: usize) -> Vec<usize> {
    let step = (last as f64).ln() / (POINTS - 1) as f64;
    let mut ranks: Vec<usize> =
        (0..POINTS).map(|at| (at as f64 * step).exp().round() as usize).collect();
    ranks.push(last);
    ranks.retain(|rank| (1..=last).contains(rank));
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// Slope of the least-squares line through points, and the share of the variance that it explains.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let xx: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let xy: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    let yy: f64 = points.iter().map(|p| (p.1 - mean_y).powi(2)).sum();
    if xx == 0.0 || yy == 0.0 {
        return None;
    }
    Some((xy / xx, xy * xy / (xx * yy)))
}

/// Where the curve of hits lies highest above the line from its start to its end (Satopaa et al.,
/// "Finding a Kneedle in a Haystack", ICDCSW'11).
fn knee(curve: &[WorkloadPoint]) -> Option<u64> {
    let (first, last) = (curve.first()?, curve.last()?);
    let (span, drop) = (last.blocks as f64, first.miss_ratio - last.miss_ratio);
    if span == 0.0 || drop <= 0.0 {
        return None;
    }
    let height = |point: &WorkloadPoint| {
        (first.miss_ratio - point.miss_ratio) / drop - point.blocks as f64 / span
    };
    curve.iter().max_by(|a, b| height(a).total_cmp(&height(b))).map(|point| point.blocks)
}

/// The least sizes that have shares of the hits of the largest.
fn reached(curve: &[WorkloadPoint]) -> Vec<ReachedSize> {
    let Some(best) = curve.last().map(|point| 1.0 - point.miss_ratio) else { return Vec::new() };
    let size = |share: f64| {
        let found = curve.iter().find(|point| 1.0 - point.miss_ratio >= share * best)?;
        Some(ReachedSize { share, blocks: found.blocks, hit_ratio: 1.0 - found.miss_ratio })
    };
    REACHED.into_iter().filter(|_| best > 0.0).filter_map(size).collect()
}

/// Requests and blocks in use by periods. There are [`PERIODS`] at most; when they run out, every
/// two become one.
///
/// How many distinct blocks two periods have together does not follow from how many each has.
/// Therefore a use is counted by the smallest pair, pair of pairs and so on (the aligned window of
/// `2^level` periods) that holds the block's use before as well: in all smaller windows it is the
/// block's first use.
#[derive(Clone)]
struct Periods {
    width_ns: u64,
    periods: Vec<Period>,
}

#[derive(Clone)]
struct Period {
    requests: [u64; 2],
    bytes: [u64; 2],
    /// Uses by level; the last level is that of blocks that were never used before.
    uses: [f64; LEVELS],
}

impl Default for Period {
    fn default() -> Period {
        Period { requests: [0; 2], bytes: [0; 2], uses: [0.0; LEVELS] }
    }
}

impl Default for Periods {
    fn default() -> Periods {
        Periods { width_ns: FIRST_PERIOD_NS, periods: Vec::new() }
    }
}

impl Periods {
    /// The period of a time, made if need be.
    fn at(&mut self, time_ns: u64) -> usize {
        while time_ns / self.width_ns >= PERIODS as u64 {
            self.double();
        }
        let index = (time_ns / self.width_ns) as usize;
        if self.periods.len() <= index {
            self.periods.resize_with(index + 1, Period::default);
        }
        index
    }

    fn add_request(&mut self, time_ns: u64, write: bool, bytes: u64) {
        let index = self.at(time_ns);
        let (period, kind) = (&mut self.periods[index], usize::from(write));
        period.requests[kind] += 1;
        period.bytes[kind] = period.bytes[kind].saturating_add(bytes);
    }

    /// Counts the use of a block that was used before at a time, or never.
    fn add_use(&mut self, time_ns: u64, before_ns: Option<u64>, weight: f64) {
        let index = self.at(time_ns);
        let level = before_ns.map_or(LEVELS - 1, |before_ns| {
            let apart = (before_ns / self.width_ns) ^ index as u64;
            (u64::BITS - apart.leading_zeros()) as usize
        });
        self.periods[index].uses[level] += weight;
    }

    /// Makes one period of every two.
    fn double(&mut self) {
        let join = |pair: &[Period]| {
            let mut joined = Period::default();
            for one in pair {
                for kind in 0..2 {
                    joined.requests[kind] += one.requests[kind];
                    joined.bytes[kind] = joined.bytes[kind].saturating_add(one.bytes[kind]);
                }
                for (level, uses) in one.uses.iter().enumerate() {
                    // First uses stay what they are; any other window is half as many periods.
                    let level = if level == LEVELS - 1 { level } else { level.saturating_sub(1) };
                    joined.uses[level] += uses;
                }
            }
            joined
        };
        self.periods = self.periods.chunks(2).map(join).collect();
        self.width_ns = self.width_ns.saturating_mul(2);
    }

    fn rows(&self) -> Vec<WorkloadPeriod> {
        let row = |(index, period): (usize, &Period)| WorkloadPeriod {
            start_ns: index as u64 * self.width_ns,
            reads: period.requests[0],
            writes: period.requests[1],
            read_bytes: period.bytes[0],
            write_bytes: period.bytes[1],
            used_blocks: period.uses[1..].iter().sum(),
            new_blocks: period.uses[LEVELS - 1],
        };
        self.periods.iter().enumerate().map(row).collect()
    }

    /// Distinct blocks in windows of one period, two, four and so on, up to the whole.
    fn windows(&self) -> Vec<WindowBlocks> {
        let mut found = Vec::new();
        for level in 0.. {
            let length = 1_usize << level;
            let windows = self.periods.chunks(length).filter(|window| {
                // The last window may be cut by the end of the trace.
                window.len() == length || length >= self.periods.len()
            });
            let blocks: Vec<f64> = windows
                .map(|window| {
                    window.iter().map(|one| one.uses[level + 1..].iter().sum::<f64>()).sum()
                })
                .collect();
            if !blocks.is_empty() {
                found.push(WindowBlocks {
                    window_ns: self.width_ns.saturating_mul(length as u64),
                    mean_blocks: blocks.iter().sum::<f64>() / blocks.len() as f64,
                    most_blocks: blocks.iter().fold(0.0, |most: f64, one| most.max(*one)),
                });
            }
            if length >= self.periods.len() {
                return found;
            }
        }
        found
    }
}

/// The requests and bytes of the second at hand, and the most in any before.
#[derive(Clone, Default)]
struct SecondCounts {
    second: u64,
    requests: u64,
    bytes: u64,
    most: PeakSecond,
}

impl SecondCounts {
    fn add(&mut self, time_ns: u64, bytes: u64) {
        let second = time_ns / SECOND_NS;
        if second > self.second {
            self.most = self.peak();
            (self.second, self.requests, self.bytes) = (second, 0, 0);
        }
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn peak(&self) -> PeakSecond {
        PeakSecond {
            requests: self.most.requests.max(self.requests),
            bytes: self.most.bytes.max(self.bytes),
        }
    }
}

/// Requests by offset and time; columns and rows double in size when they run out.
#[derive(Clone, Default)]
struct Map {
    column_ns: u64,
    row_bytes: u64,
    /// The first row, counted from offset 0.
    first_row: u64,
    /// Reads and writes by column, then row.
    cells: Vec<[[u32; 2]; ROWS]>,
}

impl Map {
    fn add(&mut self, time_ns: u64, offset_bytes: u64, write: bool, block_bytes: u64) {
        if self.row_bytes == 0 {
            self.row_bytes = block_bytes;
            self.column_ns = FIRST_PERIOD_NS;
            self.first_row = offset_bytes / block_bytes;
        }
        while time_ns / self.column_ns >= COLUMNS as u64 {
            self.double_columns();
        }
        while offset_bytes / self.row_bytes < self.first_row {
            self.double_rows(true);
        }
        while offset_bytes / self.row_bytes - self.first_row >= ROWS as u64 {
            self.double_rows(false);
        }
        let column = (time_ns / self.column_ns) as usize;
        if self.cells.len() <= column {
            self.cells.resize(column + 1, [[0; 2]; ROWS]);
        }
        let row = (offset_bytes / self.row_bytes - self.first_row) as usize;
        let cell = &mut self.cells[column][row][usize::from(write)];
        *cell = cell.saturating_add(1);
    }

    fn double_columns(&mut self) {
        let join = |pair: &[[[u32; 2]; ROWS]]| {
            let mut joined = [[0_u32; 2]; ROWS];
            for (row, cell) in pair.iter().flat_map(|column| column.iter().enumerate()) {
                joined[row] = both(joined[row], *cell);
            }
            joined
        };
        self.cells = self.cells.chunks(2).map(join).collect();
        self.column_ns = self.column_ns.saturating_mul(2);
    }

    /// Makes one row of every two, with room above those of today, or below them.
    fn double_rows(&mut self, downwards: bool) {
        let first = self.first_row / 2;
        let first = if downwards { first.saturating_sub(ROWS as u64 / 2 - 1) } else { first };
        for column in &mut self.cells {
            let mut joined = [[0_u32; 2]; ROWS];
            for (row, cell) in (self.first_row..).zip(column.iter()) {
                let row = (row / 2 - first) as usize;
                joined[row] = both(joined[row], *cell);
            }
            *column = joined;
        }
        self.first_row = first;
        self.row_bytes *= 2;
    }

    fn answer(&self, volume: String) -> OffsetMap {
        let mut cells = Vec::new();
        for (column, rows) in self.cells.iter().enumerate() {
            let filled = rows.iter().enumerate().filter(|(_, cell)| **cell != [0, 0]);
            cells.extend(filled.map(|(row, cell)| {
                [column as u64, row as u64, u64::from(cell[0]), u64::from(cell[1])]
            }));
        }
        OffsetMap {
            volume,
            first_bytes: self.first_row * self.row_bytes,
            row_bytes: self.row_bytes,
            column_ns: self.column_ns,
            cells,
        }
    }
}

fn both(a: [u32; 2], b: [u32; 2]) -> [u32; 2] {
    [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])]
}

/// Runs of one kind on a volume that the next request may continue.
#[derive(Clone, Default)]
struct OpenRuns {
    runs: Vec<OpenRun>,
    now: u64,
}

#[derive(Clone, Copy)]
struct OpenRun {
    end_bytes: u64,
    bytes: u64,
    used: u64,
}

impl OpenRuns {
    /// Continues a run or begins one, which ends the one continued longest ago; returns its bytes.
    fn add(&mut self, offset_bytes: u64, length_bytes: u64, ended: &mut EndedRuns) -> u64 {
        self.now += 1;
        let end_bytes = offset_bytes.saturating_add(length_bytes);
        if let Some(run) = self.runs.iter_mut().find(|run| run.end_bytes == offset_bytes) {
            run.end_bytes = end_bytes;
            run.bytes = run.bytes.saturating_add(length_bytes);
            run.used = self.now;
            return run.bytes;
        }
        let run = OpenRun { end_bytes, bytes: length_bytes, used: self.now };
        if self.runs.len() < OPEN_RUNS {
            self.runs.push(run);
        } else if let Some(oldest) = self.runs.iter_mut().min_by_key(|run| run.used) {
            ended.add(oldest.bytes);
            *oldest = run;
        }
        length_bytes
    }
}

/// Runs that ended: runs and bytes by octave of their length.
#[derive(Clone)]
struct EndedRuns {
    octaves: [[u64; 2]; OCTAVES],
    scan_bytes: u64,
    bytes: u64,
    count: u64,
}

impl Default for EndedRuns {
    fn default() -> EndedRuns {
        EndedRuns { octaves: [[0; 2]; OCTAVES], scan_bytes: 0, bytes: 0, count: 0 }
    }
}

impl EndedRuns {
    fn add(&mut self, bytes: u64) {
        let cell = &mut self.octaves[octave(bytes)];
        *cell = [cell[0] + 1, cell[1].saturating_add(bytes)];
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.scan_bytes =
            self.scan_bytes.saturating_add(if bytes >= SCAN_BYTES { bytes } else { 0 });
    }

    fn answer(&self) -> Runs {
        let filled = self.octaves.iter().enumerate().filter(|(_, cell)| cell[0] > 0);
        Runs {
            count: self.count,
            scan_share: cachewright_types::measure::ratio(self.scan_bytes, self.bytes),
            scan_bytes: SCAN_BYTES,
            histogram: filled.map(|(at, cell)| (octave_end(at), cell[0], cell[1])).collect(),
        }
    }
}

/// Bins per octave, as a power of two, and those that are joined in an answer.
const BIN_BITS: u32 = 5;
const JOINED: usize = 4;
/// Bins of 64 bits.
const BINS: usize = (64 - BIN_BITS as usize + 1) << BIN_BITS;

/// Weights by value, in bins whose width is a thirty-second of their octave; values up to 32 have
/// bins of their own. A bin ends at, and includes, its largest value, so that round values are
/// ends of bins.
#[derive(Clone)]
struct LogBins {
    bins: Box<[f64; BINS]>,
    count: f64,
    sum: f64,
    max: u64,
}

impl Default for LogBins {
    fn default() -> LogBins {
        LogBins { bins: Box::new([0.0; BINS]), count: 0.0, sum: 0.0, max: 0 }
    }
}

impl LogBins {
    fn add(&mut self, value: u64, weight: f64) {
        self.bins[bin_of(value)] += weight;
        self.count += weight;
        self.sum += value as f64 * weight;
        self.max = self.max.max(value);
    }

    fn quantile(&self, share: f64) -> u64 {
        let rank = self.count * share;
        let mut seen = 0.0;
        let found = (0..BINS).find(|bin| {
            seen += self.bins[*bin];
            seen > 0.0 && seen >= rank
        });
        found.map_or(0, |bin| bin_end(bin).min(self.max))
    }

    fn distribution(&self) -> Distribution {
        let mut histogram: Vec<(u64, f64)> = Vec::new();
        let exact = 1 << BIN_BITS;
        let ends = (0..exact).map(|bin| bin..bin + 1);
        let joined = (exact..BINS).step_by(JOINED).map(|bin| bin..bin + JOINED);
        for bins in ends.chain(joined) {
            let weight: f64 = self.bins[bins.clone()].iter().sum();
            if weight > 0.0 {
                histogram.push((bin_end(bins.end - 1), weight));
            }
        }
        Distribution {
            count: self.count,
            mean: if self.count > 0.0 { self.sum / self.count } else { 0.0 },
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            max: self.max,
            histogram,
        }
    }
}

fn bin_of(value: u64) -> usize {
    let value = value.saturating_sub(1);
    if value >> BIN_BITS == 0 {
        return value as usize;
    }
    let shift = u64::BITS - 1 - value.leading_zeros() - BIN_BITS;
    ((shift as usize) << BIN_BITS) + (value >> shift) as usize
}

/// The largest value of a bin.
fn bin_end(bin: usize) -> u64 {
    let exact = 1 << BIN_BITS;
    if bin < exact {
        return bin as u64 + 1;
    }
    let shift = (bin >> BIN_BITS) - 1;
    let mantissa = (bin & (exact - 1)) + exact + 1;
    ((mantissa as u128) << shift).min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn record(time_ns: u64, op: Op, offset_bytes: u64, length_bytes: u64) -> Record {
        Record { time_ns, op, offset_bytes, length_bytes, volume: 0 }
    }

    /// Requests to some hot blocks, and scans over many.
    fn mixed(count: u64, hot: u64, cold: u64) -> Vec<Record> {
        let at = |step: u64| {
            let random = mix(step);
            let op = if random.is_multiple_of(3) { Op::Write } else { Op::Read };
            let block = if random % 5 < 3 { mix(random) % hot } else { hot + (step * 7) % cold };
            record(step * 500_000, op, block * 4096, 4096)
        };
        (0..count).map(at).collect()
    }

    fn answered(seen: &Observation, has_times: bool) -> WorkloadAnswer {
        let volumes = vec!["a".to_owned()];
        seen.answer(&ObservedSource { has_times, volumes, ..ObservedSource::default() })
    }

    fn observed(records: &[Record], max_blocks: usize) -> Observation {
        let mut seen = Observation::new(Bytes(4096), false, max_blocks);
        records.iter().for_each(|one| seen.add(one));
        seen
    }

    #[test]
    fn bins_hold_their_values_and_end_at_round_ones() {
        for value in (0..2000).chain([4096, 1 << 20, (1 << 20) + 1, u64::MAX / 3, u64::MAX]) {
            let bin = bin_of(value);
            assert!(bin < BINS && value.max(1) <= bin_end(bin), "{value}");
            assert!(bin == 0 || value > bin_end(bin - 1), "{value}");
            assert!(bin_end(bin) as f64 <= value.max(1) as f64 * 1.032, "{value}");
        }
        assert_eq!(bin_end(bin_of(4096)), 4096);
        assert_eq!(bin_end(bin_of(40)), 40);
    }

    #[test]
    fn quantiles_of_few_values_are_exact() {
        let mut bins = LogBins::default();
        bins.add(4096, 90.0);
        bins.add(65536, 10.0);
        let found = bins.distribution();
        assert_eq!((found.p50, found.p90, found.p99, found.max), (4096, 4096, 65536, 65536));
        assert_eq!(found.histogram, [(4096, 90.0), (65536, 10.0)]);
        assert_eq!(found.mean, 10240.0);
    }

    /// The obvious model: an LRU list, and maps of what each block saw.
    #[test]
    fn all_blocks_followed_agree_with_a_slow_model() {
        let records = mixed(6000, 50, 400);
        let seen = observed(&records, 100_000);
        let answer = answered(&seen, true);
        let (mut list, mut distances) = (Vec::new(), BTreeMap::new());
        let (mut counts, mut written) = (BTreeMap::new(), BTreeSet::new());
        let (mut first, mut over) = (0.0, 0.0);
        for one in &records {
            let block = one.offset_bytes / 4096;
            match list.iter().position(|held| *held == block) {
                Some(place) => {
                    *distances.entry(place as u64 + 1).or_insert(0.0) += 1.0;
                    list.remove(place);
                }
                None => first += 1.0,
            }
            list.insert(0, block);
            *counts.entry(block).or_insert(0_u64) += 1;
            if one.op == Op::Write && !written.insert(block) {
                over += 1.0;
            }
        }
        assert_eq!(answer.totals.distinct_blocks, counts.len() as u64);
        assert_eq!((answer.sample_rate, answer.reuse.first_uses), (1.0, first));
        assert_eq!(answer.updates.overwrites, over);
        assert_eq!(answer.totals.written_working_set_bytes, written.len() as u64 * 4096);
        for point in &answer.curve {
            let hits: f64 = distances.range(..=point.blocks).map(|(_, count)| count).sum();
            let miss = 1.0 - hits / records.len() as f64;
            assert!((point.miss_ratio - miss).abs() < 1e-12, "{point:?} {miss}");
        }
        let mut popular: Vec<u64> = counts.values().copied().collect();
        popular.sort_unstable_by(|a, b| b.cmp(a));
        for (rank, count) in &answer.popularity.ranks {
            assert_eq!(popular[*rank as usize - 1], *count);
        }
        assert_eq!(answer.popularity.shares.last().copied(), Some((1.0, 1.0)));
    }

    /// Whatever the periods have doubled to, each has as many blocks as are used within it.
    #[test]
    fn blocks_of_periods_and_windows_are_counted_one_by_one() {
        let records = mixed(5000, 300, 700);
        let seen = observed(&records, 100_000);
        let answer = answered(&seen, true);
        assert!(answer.period_ns > FIRST_PERIOD_NS && answer.periods.len() <= PERIODS);
        let used = |from_ns: u64, length_ns: u64| {
            let within = |one: &&Record| (from_ns..from_ns + length_ns).contains(&one.time_ns);
            let blocks: BTreeSet<u64> =
                records.iter().filter(within).map(|one| one.offset_bytes).collect();
            blocks.len() as f64
        };
        for period in &answer.periods {
            assert_eq!(period.used_blocks, used(period.start_ns, answer.period_ns));
        }
        let requests: u64 = answer.periods.iter().map(|one| one.reads + one.writes).sum();
        assert_eq!(requests, 5000);
        assert!(answer.windows.len() > 3);
        for window in &answer.windows {
            let whole = answer.periods.len() as u64 * answer.period_ns;
            let starts = (0..).map(|at| at * window.window_ns);
            let starts = starts.take_while(|from| from + window.window_ns <= whole || *from == 0);
            let blocks: Vec<f64> = starts.map(|from| used(from, window.window_ns)).collect();
            assert_eq!(window.mean_blocks, blocks.iter().sum::<f64>() / blocks.len() as f64);
        }
        let new: f64 = answer.periods.iter().map(|one| one.new_blocks).sum();
        assert_eq!(new, answer.totals.distinct_blocks as f64);
    }

    #[test]
    fn a_sample_is_bounded_and_near_the_whole() {
        let records = mixed(400_000, 4000, 90_000);
        let whole = observed(&records, usize::MAX);
        let part = observed(&records, 10_000);
        assert!(part.blocks.ids.len() <= 10_000 && part.blocks.rate() < 1.0);
        assert!(part.blocks.blocks.len() <= 10_001, "ids are used again");
        let (whole, part) = (answered(&whole, false), answered(&part, false));
        let near = |a: f64, b: f64| assert!((a - b).abs() <= 0.05 * a.max(b), "{a} {b}");
        near(whole.totals.distinct_blocks as f64, part.totals.distinct_blocks as f64);
        near(whole.updates.overwrites, part.updates.overwrites);
        for share in 0..REACHED.len() {
            near(whole.sizes[share].hit_ratio, part.sizes[share].hit_ratio);
        }
        let miss = |answer: &WorkloadAnswer, blocks: u64| {
            answer.curve.iter().rfind(|point| point.blocks <= blocks).unwrap().miss_ratio
        };
        for blocks in [2000, 8000, 50_000] {
            assert!((miss(&whole, blocks) - miss(&part, blocks)).abs() < 0.03, "{blocks}");
        }
    }

    #[test]
    fn scans_are_runs_of_some_length_and_the_rest_is_not() {
        let mut records: Vec<Record> =
            (0..64).map(|at| record(at, Op::Read, at * 65536, 65536)).collect();
        records
            .extend((0..64).map(|at| record(99, Op::Read, (1 << 40) + mix(at) % 999 * 8192, 4096)));
        let seen = observed(&records, 100_000);
        let answer = answered(&seen, false);
        let scanned = 64.0 * 65536.0;
        assert!((answer.read_runs.scan_share - scanned / (scanned + 64.0 * 4096.0)).abs() < 1e-9);
        assert_eq!(answer.read_runs.histogram.last().map(|row| (row.0, row.1)), Some((1 << 22, 1)));
        // The first 256 KiB of the run are not known to be a scan.
        assert_eq!(answer.scans.reads, (64.0 - 4.0) * 16.0);
        assert_eq!(answer.scans.helped_from_blocks, None);
    }

    #[test]
    fn a_map_keeps_every_request_wherever_offsets_and_times_go() {
        let mut map = Map::default();
        let places = [(0, 5 << 30), (3, 1 << 20), (1 << 40, 7 << 40), (9, 0), (1 << 50, 123 << 33)];
        for (time_ns, offset_bytes) in places {
            map.add(time_ns, offset_bytes, true, 4096);
        }
        map.add(u64::MAX, u64::MAX, false, 4096);
        let answer = map.answer(String::new());
        assert_eq!(answer.cells.iter().map(|cell| cell[2] + cell[3]).sum::<u64>(), 6);
        let mut map = Map::default();
        for at in (0..1000_u64).rev() {
            map.add(at, at << 20, false, 4096);
        }
        let answer = map.answer(String::new());
        for cell in &answer.cells {
            let first = answer.first_bytes + cell[1] * answer.row_bytes;
            let inside =
                (0..1000_u64).filter(|at| (first..first + answer.row_bytes).contains(&(at << 20)));
            assert_eq!(cell[2], inside.count() as u64);
        }
    }

    #[test]
    fn sectors_may_be_misaligned_and_numbers_of_objects_are_not() {
        let places = [(0, 4096), (512, 4096), (8192, 512), (4096, 8192), (77, 4096), (8, 100)];
        let records = places.map(|(offset, length)| record(0, Op::Write, offset, length));
        assert_eq!(observed(&records, 1000).misaligned, 2);
    }

    #[test]
    fn a_trimmed_block_is_new_again() {
        let records = [
            record(0, Op::Write, 0, 8192),
            record(1, Op::Trim, 0, 8192),
            record(2, Op::Read, 0, 8192),
        ];
        let answer = answered(&observed(&records, 1000), true);
        assert_eq!((answer.reuse.first_uses, answer.totals.distinct_blocks), (4.0, 2));
        assert!(answer.curve.is_empty() && answer.knee_blocks.is_none());
    }

    #[test]
    fn what_processors_wrote_in_turn_is_counted_in_order_of_time() {
        let mut records = mixed(3000, 50, 400);
        let sorted = answered(&observed(&records, 100_000), true);
        // Two processors, each with its requests in order, in turns of a hundred.
        let (mut one, mut other): (Vec<Record>, Vec<Record>) = (Vec::new(), Vec::new());
        for record in records.drain(..) {
            if mix(record.time_ns).is_multiple_of(2) {
                one.push(record)
            } else {
                other.push(record)
            }
        }
        let mut batch = Batch::default();
        for (a, b) in one.chunks(100).zip(other.chunks(100)) {
            a.iter().chain(b).for_each(|record| batch.push(*record));
        }
        for rest in [
            one.chunks(100).skip(other.len().div_ceil(100)),
            other.chunks(100).skip(one.len().div_ceil(100)),
        ] {
            rest.flatten().for_each(|record| batch.push(*record));
        }
        let mut seen = Observation::new(Bytes(4096), false, 100_000);
        seen.most_waiting = WAITING;
        seen.add_all(&batch);
        seen.settle();
        assert_eq!(answered(&seen, true), sorted);
    }

    #[test]
    fn a_power_law_is_found() {
        let mut records = Vec::new();
        for block in 1..=500_u64 {
            let count = (20_000.0 / (block as f64).powf(0.8)).round() as u64;
            records.extend((0..count).map(|_| record(0, Op::Read, block * 4096, 4096)));
        }
        let answer = answered(&observed(&records, 100_000), false);
        let (exponent, fit) = (answer.popularity.exponent.unwrap(), answer.popularity.fit.unwrap());
        assert!((exponent - 0.8).abs() < 0.01 && fit > 0.999, "{exponent} {fit}");
    }
}
