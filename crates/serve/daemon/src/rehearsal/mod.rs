//! A rehearsal: the server of a stack under a recording, in virtual time on models of devices.
//!
//! What runs is the server's own code: decisions, log, cleaning, write-back, divisions, caps, syncs
//! and recovery. Only what lies below [`cachewright_live::io::Io`] is another one ([`virtual_io`])
//! and what sends requests ([`clients`]). Nothing reads a clock of the machine, so that a rehearsal
//! of the same files with the same seed gives the same bytes.
//!
//! A kill ends the server between two of its turns. The start after it reads the log as a start
//! does, and is timed on the same clock; what a process and a service manager take before is not.

mod clients;
mod command;
mod contents;
mod recording;
mod table;
mod versions;
mod virtual_io;

pub use command::RehearsalCommand;

use crate::devices::{KnownVolume, check_served, check_space, matched_sizes, set_error};
use crate::error::LiveError;
use crate::machine::{self, Processor};
use crate::memory;
use crate::plan::LivePlan;
use crate::planned_server::{PlannedServer, capped_service};
use cachewright_device::{AnyDevice, DeviceWork, Report, model};
use cachewright_live::blocks::{Restored, ServeCounts, ServedVolume};
use cachewright_live::front::{self, BlockService};
use cachewright_live::io::delayed::Delayed;
use cachewright_live::io::token::Submitter;
use cachewright_live::io::{FileId, Io, IoOp, Token};
use cachewright_live::log::format::{SetId, Volume, VolumeId};
use cachewright_live::log::{FormatSettings, OpenSet, cut_sizes, format, open, read_log};
use cachewright_result::live::AnsweredRequests;
use cachewright_result::rehearsal::{
    RehearsedCase, RehearsedDevice, RehearsedKill, RehearsedLog, RehearsedTenant, VerifiedContent,
};
use cachewright_types::measure::Counts;
use cachewright_types::{Bytes, Nanos, Op, Rng, Seed, TenantId, Value};
use clients::{KindMeter, RecordedClients};
use recording::Recording;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use virtual_io::{ModelId, VirtualIo};

/// The timer by which a server looks at what is due without an operation: its own, twenty times a
/// second.
const TICK: Token = Submitter::Driver.token(0, 0);
const TICK_NS: u64 = 50_000_000;
/// The timer of a kill.
const KILL: Token = Submitter::Driver.token(1, 0);
/// Ticks without an operation or an answer after which a server answers nothing any more.
const STUCK_TICKS: u64 = 60_000_000_000 / TICK_NS;
/// Share of the memory of the machine that contents of files may take, in percent.
const CONTENT_PERCENT: u64 = 75;
/// Room for the superblocks of a device.
const SUPERBLOCKS: Bytes = Bytes(2 << 20);
/// What a device of the cache has beside what the log needs at least, in percent of that, where its
/// path leads to no file.
const SPARE_PERCENT: u64 = 10;
const NS_PER_US: f64 = 1e3;
const NS_PER_S: f64 = 1e9;

/// Devices in virtual time, of which volumes may answer late (`serve.backing_delay`).
type RehearsedIo = Delayed<VirtualIo>;

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// At their recorded times, divided by a speed.
    Recorded {
        /// How much faster than recorded.
        speed: f64,
    },
    /// When answers come.
    Closed {
        /// Requests of each tenant that are under way at once.
        clients: usize,
    },
}

/// A model of a device, with parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceChoice {
    /// The option that names it, for messages.
    option: &'static str,
    text: String,
    model: String,
    pairs: Vec<(String, Value)>,
}

impl DeviceChoice {
    /// The device of a text such as `nvme-tlc` or `fixed-latency:read=100us,write=60us`, the value
    /// of an option, or of a file of measured times. Errors: no such model or file, or a parameter
    /// is refused.
    pub fn read(option: &'static str, text: &str) -> Result<DeviceChoice, LiveError> {
        if machine::is_file(text) {
            let (model, pairs) = machine::device_of(Path::new(text))?;
            let choice = DeviceChoice { option, text: text.to_owned(), model, pairs };
            choice.build()?;
            return Ok(choice);
        }
        let (model, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut pairs = Vec::new();
        for pair in rest.split(',').filter(|pair| !pair.is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(LiveError::Refused(format!(
                    "{option}: found `{pair}` in `{text}`, expected `KEY=VALUE`"
                )));
            };
            pairs.push((key.trim().to_owned(), Value::read(value.trim())));
        }
        let (text, model) = (text.to_owned(), model.to_owned());
        let choice = DeviceChoice { option, text, model, pairs };
        choice.build()?;
        Ok(choice)
    }

    /// The device, idle.
    fn build(&self) -> Result<AnyDevice, LiveError> {
        let built = model(&self.model).and_then(|model| model.build(&self.pairs));
        built.map_err(|error| LiveError::Refused(format!("{}: {error}", self.option)))
    }
}

/// How a stack is rehearsed.
#[derive(Clone, Debug, PartialEq)]
pub struct RehearsalSettings {
    /// A file of recorded requests, or a folder of a server's recordings.
    pub recording: PathBuf,
    /// Each device of the cache.
    pub drive: DeviceChoice,
    /// The device of each volume.
    pub backing: DeviceChoice,
    /// All volumes lie one behind the other on one device.
    pub shares_backing: bool,
    /// Bytes of each device of the cache; nothing: those of its file, and at least what the log
    /// needs.
    pub cache_device: Option<Bytes>,
    /// When requests are sent.
    pub pace: Pace,
    /// Only requests whose recorded time, divided by the speed, is before this one are sent.
    pub until: Option<Nanos>,
    /// When the server is killed, in virtual time from the beginning of the recording.
    pub kills: Vec<Nanos>,
    /// What the processor takes.
    pub processor: Processor,
    /// What chooses the fates of writes under way at a kill.
    pub seed: Seed,
    /// Reads are compared with what was written, and all that was written is read at the end.
    pub verify: bool,
}

/// Rehearses a stack. Errors: the recording does not fit the stack, a device is too small, the
/// machine has too little memory, or the rehearsed server does not keep up.
pub fn rehearse(
    plan: &LivePlan,
    settings: &RehearsalSettings,
    what_if: Vec<String>,
) -> Result<RehearsedCase, LiveError> {
    memory::check(plan)?;
    let recording = Recording::open(plan, &settings.recording)?;
    let mut rehearsal = Rehearsal::prepare(plan, settings, &recording)?;
    rehearsal.format()?;
    let (mut service, _) = rehearsal.start()?;
    rehearsal.begin();
    let mut kills = Vec::new();
    while rehearsal.serve(&mut service)? == Ended::Killed {
        let (started, kill) = rehearsal.kill(service)?;
        service = started;
        kills.push(kill);
    }
    let elapsed_ns = rehearsal.io.now_ns() - rehearsal.begin_ns;
    rehearsal.tally(&service);
    let mut case = rehearsal.answer(elapsed_ns, what_if, kills);
    if settings.verify {
        // Kills beyond the last answer do not come.
        rehearsal.kills.clear();
        rehearsal.clients.look_at_all(rehearsal.io.now_ns());
        rehearsal.serve(&mut service)?;
        let versions = rehearsal.clients.versions();
        let ((sectors, violations), examples) = (versions.found(), versions.described().to_vec());
        case.verified = Some(VerifiedContent { sectors, violations, examples });
    }
    Ok(case)
}

/// Why a server serves no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// All requests were answered.
    Answered,
    /// It is killed.
    Killed,
}

/// What servers counted up to their kills.
#[derive(Clone, Copy, Debug, Default)]
struct TenantTally {
    counts: Counts,
    quota_blocks: u32,
}

/// A rehearsal under way.
struct Rehearsal<'a> {
    plan: &'a LivePlan,
    io: RehearsedIo,
    /// The cache's devices, as the stack lists them.
    cache: Vec<FileId>,
    volumes: Vec<ServedVolume>,
    /// All models, and what each holds.
    models: Vec<(ModelId, &'a DeviceChoice, Vec<&'a Path>)>,
    clients: RecordedClients,
    begin_ns: u64,
    worked_before_ns: u64,
    /// Kills that have not come, the last first.
    kills: Vec<Nanos>,
    rng: Rng,
    tallies: Vec<TenantTally>,
    serve_counts: ServeCounts,
    /// Bytes of memory that contents may take, where the machine says.
    content_limit: Option<u64>,
}

impl<'a> Rehearsal<'a> {
    /// The devices of a plan, empty, and clients that have not begun. Errors: a device is too
    /// small, or the recording cannot be read.
    fn prepare(
        plan: &'a LivePlan,
        settings: &'a RehearsalSettings,
        recording: &Recording,
    ) -> Result<Rehearsal<'a>, LiveError> {
        let mut io = VirtualIo::new(settings.processor.clone());
        let mut models: Vec<(ModelId, &DeviceChoice, Vec<&Path>)> = Vec::new();
        let mut cache = Vec::new();
        for path in &plan.serve.devices {
            let drive = io.add_model(settings.drive.build()?);
            let bytes = settings.cache_device.map(|bytes| bytes.0);
            let bytes = bytes.unwrap_or_else(|| needed_bytes(plan).max(bytes_at(path)));
            cache.push(add_file(&mut io, drive, bytes, &settings.drive, path)?);
            models.push((drive, &settings.drive, vec![path]));
        }
        let mut volumes = Vec::new();
        let mut shared = None;
        for (tenant, volume) in plan.volumes.iter().enumerate() {
            let path = volume.backing.as_path();
            let backing = match shared {
                Some(backing) => backing,
                None => {
                    let backing = io.add_model(settings.backing.build()?);
                    models.push((backing, &settings.backing, Vec::new()));
                    backing
                }
            };
            shared = settings.shares_backing.then_some(backing);
            models.iter_mut().rev().take(1).for_each(|(_, _, holds)| holds.push(path));
            let recorded = recording.end_bytes(tenant).max(plan.block_bytes());
            let bytes = match bytes_at(path) {
                0 => recorded.next_multiple_of(plan.block_bytes()),
                bytes => bytes,
            };
            let file = add_file(&mut io, backing, bytes, &settings.backing, path)?;
            volumes.push(ServedVolume { id: VolumeId(tenant as u32 + 1), bytes, backing: file });
        }
        let clients = RecordedClients::new(
            recording,
            settings.pace,
            settings.until,
            settings.processor.clone(),
            plan.serve.client_memory.0,
            volumes.iter().map(|volume| volume.bytes).collect(),
            settings.verify,
        )?;
        let delay_ns = plan.serve.backing_delay.0;
        let slow = volumes.iter().filter(|_| delay_ns > 0);
        let io = Delayed::new(io, slow.map(|volume| (volume.backing, delay_ns)).collect());
        let mut kills = settings.kills.clone();
        kills.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
        Ok(Rehearsal {
            plan,
            io,
            cache,
            clients,
            begin_ns: 0,
            worked_before_ns: 0,
            kills,
            rng: settings.seed.derive("kills").rng(),
            tallies: vec![TenantTally::default(); volumes.len()],
            volumes,
            models,
            serve_counts: ServeCounts::default(),
            content_limit: memory::available().map(|bytes| bytes / 100 * CONTENT_PERCENT),
        })
    }

    /// Makes the cache's devices an empty set. Errors: they are too small.
    fn format(&mut self) -> Result<(), LiveError> {
        let volume = |(volume, planned): (&ServedVolume, &crate::StackVolume)| Volume {
            id: volume.id,
            name: planned.name.clone(),
            bytes: volume.bytes,
        };
        let volumes = self.volumes.iter().zip(&self.plan.volumes).map(volume).collect();
        let settings = format_settings(self.plan, volumes);
        let made = format(&mut self.io, &self.cache, &settings);
        let made = made.map_err(|error| set_error(self.plan, &self.plan.serve.devices, &error))?;
        check_space(self.plan, &made.set)
    }

    /// Starts the server on what the devices hold. Errors: as of a start.
    fn start(&mut self) -> Result<(BlockService, Restored), LiveError> {
        let plan = self.plan;
        let failed = |error| set_error(plan, &plan.serve.devices, &error);
        let set: OpenSet = open(&mut self.io, &self.cache).map_err(failed)?;
        let planned = PlannedServer::new(plan, &set.set, &self.cache, &plan.ahead()?)?;
        let known = |(tenant, volume): (usize, &ServedVolume)| {
            (KnownVolume { tenant, file: volume.backing }, volume.bytes)
        };
        let sizes: Vec<(KnownVolume, u64)> = self.volumes.iter().enumerate().map(known).collect();
        let (served, table) = matched_sizes(plan, &sizes, &set.superblock.volumes)?;
        let found = read_log(&mut self.io, &set).map_err(failed)?;
        check_served(plan, &served, &table, &found.blocks, plan.block_bytes())?;
        let found = found.settle(&mut self.io).map_err(failed)?;
        let (blocks, restored) = planned.open(plan, &mut self.io, &set, served, found)?;
        self.io.submit(TICK, IoOp::Timer { at_ns: self.io.now_ns() + TICK_NS });
        Ok((capped_service(plan, blocks), restored))
    }

    /// The recording begins now.
    fn begin(&mut self) {
        self.begin_ns = self.io.now_ns();
        self.worked_before_ns = self.io.inner().worked_ns();
        self.io.inner().begin_measuring();
        self.clients.begin(self.begin_ns);
    }

    /// Serves until all requests are answered, or a kill comes. Errors: the recording cannot be
    /// read; the server does not keep up, or answers nothing any more; contents take too much
    /// memory.
    fn serve(&mut self, service: &mut BlockService) -> Result<Ended, LiveError> {
        if let Some(kill) = self.kills.last() {
            let at_ns = self.begin_ns.saturating_add(kill.0);
            self.io.submit(KILL, IoOp::Timer { at_ns });
        }
        let (mut done, mut quiet_ticks) = (Vec::new(), 0);
        loop {
            self.clients.turn(self.io.now_ns())?;
            let before = self.clients.under_way();
            front::advance(&mut self.io, service, &mut [&mut self.clients]);
            if self.clients.are_done()? {
                return Ok(Ended::Answered);
            }
            let is_quiet = self.io.inner().operations() == 0 && self.clients.under_way() == before;
            quiet_ticks = if is_quiet { quiet_ticks } else { 0 };
            self.io.wait(&mut done);
            for done in done.drain(..) {
                match done.token {
                    // One that came too late is not waited for any more.
                    KILL if self.kills.pop().is_some() => return Ok(Ended::Killed),
                    KILL => {}
                    TICK => {
                        self.io.submit(TICK, IoOp::Timer { at_ns: self.io.now_ns() + TICK_NS });
                        self.check_memory()?;
                        quiet_ticks += u64::from(before > 0);
                    }
                    _ => front::on_done(&mut self.io, service, &mut [&mut self.clients], done),
                }
            }
            if quiet_ticks > STUCK_TICKS {
                let passed = Nanos(self.io.now_ns() - self.begin_ns);
                return Err(LiveError::Failed(format!(
                    "after {passed} the rehearsed server answers none of {before} requests, \
                     expected an answer within a minute; please report it"
                )));
            }
        }
    }

    fn check_memory(&mut self) -> Result<(), LiveError> {
        let taken = self.io.inner().memory();
        match self.content_limit {
            Some(limit) if taken > limit => {
                let (capacity, limit) = (Bytes(self.plan.capacity_bytes()), Bytes(limit));
                Err(self.plan.refuse(format!(
                    "`cache.capacity`: found `{capacity}`, whose rehearsed content needs more than \
                     {limit} of memory, {CONTENT_PERCENT} % of what is available, expected a \
                     smaller cache or a shorter recording (`--until`)"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Kills the server, and starts it again on what is left.
    fn kill(&mut self, service: BlockService) -> Result<(BlockService, RehearsedKill), LiveError> {
        self.tally(&service);
        drop(service);
        self.io.inner().kill(&mut self.rng);
        let unanswered = self.clients.under_way() as u64;
        self.clients.server_killed();
        let killed_ns = self.io.now_ns();
        let (service, restored) = self.start()?;
        let kill = RehearsedKill {
            at_seconds: (killed_ns - self.begin_ns) as f64 / NS_PER_S,
            recovery_seconds: (self.io.now_ns() - killed_ns) as f64 / NS_PER_S,
            unanswered_requests: unanswered,
            clean_blocks: restored.clean,
            dirty_blocks: restored.dirty,
        };
        Ok((service, kill))
    }

    /// Adds what a server has counted, which ends.
    fn tally(&mut self, service: &BlockService) {
        let blocks = &service.blocks;
        let cache = blocks.cache();
        for (tenant, tally) in self.tallies.iter_mut().enumerate() {
            let tenant = TenantId(tenant as u16);
            tally.counts.add(cache.engine().counts(tenant));
            tally.quota_blocks = cache.engine().quota(tenant);
        }
        let (sum, counts) = (&mut self.serve_counts, blocks.counts());
        sum.written += counts.written;
        sum.moved += counts.moved;
        sum.cleaned += counts.cleaned;
        sum.dropped += counts.dropped;
        sum.without_space += counts.without_space;
    }

    /// What was found, after so much virtual time.
    fn answer(
        &mut self,
        elapsed_ns: u64,
        what_if: Vec<String>,
        kills: Vec<RehearsedKill>,
    ) -> RehearsedCase {
        let [policy, partition, write] = self.plan.schemes().map(str::to_owned);
        let block_bytes = self.plan.block_bytes();
        let worked_ns = self.io.inner().worked_ns() - self.worked_before_ns;
        let counts = self.serve_counts;
        RehearsedCase {
            what_if,
            policy,
            partition,
            write,
            capacity_bytes: self.plan.capacity_bytes(),
            seconds: elapsed_ns as f64 / NS_PER_S,
            processor_share: share(worked_ns.into(), elapsed_ns),
            skipped_requests: self.clients.skipped(),
            tenants: (0..self.tallies.len()).map(|tenant| self.tenant(tenant)).collect(),
            log: RehearsedLog {
                appended_bytes: counts.written * block_bytes,
                moved_bytes: counts.moved * block_bytes,
                write_amplification: counts.write_amplification(),
                cleaned_segments: counts.cleaned,
                dropped_blocks: counts.dropped,
                refused_requests: counts.without_space,
            },
            devices: self.devices(elapsed_ns),
            kills,
            verified: None,
        }
    }

    fn tenant(&self, tenant: usize) -> RehearsedTenant {
        let TenantTally { counts, quota_blocks } = self.tallies[tenant];
        let meters = self.clients.meters(tenant);
        let found = |(op, kind): (Op, &str)| responses(kind, &meters[op as usize]);
        let kinds =
            [(Op::Read, "read"), (Op::Write, "write"), (Op::Trim, "trim"), (Op::Flush, "flush")];
        RehearsedTenant {
            name: self.plan.volumes[tenant].name.clone(),
            volume_bytes: self.volumes[tenant].bytes,
            quota_blocks: quota_blocks.into(),
            read_accesses: counts.reads,
            read_hits: counts.read_hits,
            write_accesses: counts.writes,
            write_hits: counts.write_hits,
            hit_ratio: counts.hit_ratio(),
            requests: counts.requests,
            request_hits: counts.request_hits,
            admissions: counts.admissions(),
            evictions: counts.evictions,
            writebacks: counts.writebacks,
            invalidations: counts.invalidations,
            cut_off_requests: counts.cut_off_requests,
            responses: kinds.into_iter().filter_map(found).collect(),
        }
    }

    fn devices(&mut self, elapsed_ns: u64) -> Vec<RehearsedDevice> {
        let mut found = Vec::new();
        for (id, choice, holds) in &self.models {
            let (used, report) = self.io.inner().used(*id);
            let [commands, bytes] = [used.commands, used.bytes];
            let population = used.population;
            found.push(RehearsedDevice {
                holds: holds.iter().map(|path| path.display().to_string()).collect(),
                model: choice.text.clone(),
                reads: commands[Op::Read as usize],
                writes: commands[Op::Write as usize],
                trims: commands[Op::Trim as usize],
                flushes: commands[Op::Flush as usize],
                read_bytes: bytes[Op::Read as usize],
                write_bytes: bytes[Op::Write as usize],
                mean_queue_depth: share(population.inside_ns(), elapsed_ns),
                max_queue_depth: population.max(),
                busy_share: share(population.busy_ns().into(), elapsed_ns),
                write_amplification: flash_amplification(&report),
            });
        }
        found
    }
}

/// Pages that flash programmed by those written to it.
fn flash_amplification(report: &Report) -> Option<f64> {
    match &report.work {
        DeviceWork::Flash(flash) => Some(flash.write_amplification()),
        _ => None,
    }
}

/// A part of a time; 0 of none.
fn share(part_ns: u128, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { part_ns as f64 / elapsed_ns as f64 }
}

/// The response times of a kind; nothing where there were none.
fn responses(kind: &str, meter: &KindMeter) -> Option<AnsweredRequests> {
    let found = &meter.responses;
    let us = |share: f64| found.quantile_ns(share) as f64 / NS_PER_US;
    (found.count() > 0).then(|| AnsweredRequests {
        kind: kind.to_owned(),
        count: found.count(),
        bytes: meter.bytes,
        errors: meter.errors,
        mean_us: found.mean_ns() / NS_PER_US,
        p50_us: us(0.5),
        p99_us: us(0.99),
        p999_us: us(0.999),
    })
}

/// Bytes of the file or block device at a path; 0 where there is none.
fn bytes_at(path: &Path) -> u64 {
    File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0))).unwrap_or_default()
}

/// How a plan formats its devices.
fn format_settings(plan: &LivePlan, volumes: Vec<Volume>) -> FormatSettings {
    FormatSettings {
        set: SetId(1),
        block_bytes: plan.block_bytes() as u32,
        segment_bytes: plan.serve.segment.0 as u32,
        volumes,
    }
}

/// Bytes of each device of the cache with which all of them hold the capacity, and some to spare.
fn needed_bytes(plan: &LivePlan) -> u64 {
    let (segment, devices) = (plan.serve.segment.0, plan.serve.devices.len());
    let settings = format_settings(plan, Vec::new());
    let bytes = |segments: u64| SUPERBLOCKS.0 + segments * segment;
    let holds = |segments: u64| {
        let set = cut_sizes(&vec![bytes(segments); devices], &settings);
        set.is_ok_and(|set| check_space(plan, &set).is_ok())
    };
    // With so many segments any log is large enough, or none is.
    let (mut least, mut most) = (0, 4 * (plan.capacity_bytes() / segment) + 1024);
    while least < most {
        let middle = least + (most - least) / 2;
        (least, most) = if holds(middle) { (least, middle) } else { (middle + 1, most) };
    }
    bytes(least + least * SPARE_PERCENT / 100)
}

/// A file for what the stack has at a path. Errors: the device is too small.
fn add_file(
    io: &mut VirtualIo,
    device: ModelId,
    bytes: u64,
    choice: &DeviceChoice,
    path: &Path,
) -> Result<FileId, LiveError> {
    io.add_file(device, bytes).map_err(|left| {
        LiveError::Refused(format!(
            "{}: found {left} left on `{}`, expected at least {} for `{}`",
            choice.option,
            choice.text,
            Bytes(bytes),
            path.display()
        ))
    })
}
