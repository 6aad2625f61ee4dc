//! Timed replay on a drive that is the whole machine: its data cache decides, its flash holds all.
//!
//! For: multi-tenant drives with a control loop over their data cache. Must never know: policies,
//! stack files. Units: nanoseconds, bytes, pages. At one time the drive comes before intervals,
//! intervals before windows, windows before requests, as with other machines. A quota changes when
//! the first request after the interval's end is sent. After the last request the replay goes on
//! until the drive is idle.

use super::borders::{Border, Borders};
use super::channels::GroupUses;
use super::drive::{PROGRESS_EVERY, Replay};
use super::latency_breakdown::{LatencyBreakdown, Role};
use super::machine::Answer;
use super::meter::Meter;
use super::source::{Loop, Source, request_of};
use super::times::{DriveWork, Times};
use crate::control::Control;
use crate::lane::LaneResult;
use crate::recording::RecordError;
use crate::series::{Held, Row, rows_of};
use crate::signals::Wanted;
use crate::ssd::CachedDrive;
use cachewright_device::{Command, Completion, DeviceUse, Use};
use cachewright_measure::Counts;
use cachewright_types::{Nanos, TenantId};

/// The state of one replay.
struct Whole<'a> {
    replay: &'a Replay<'a>,
    drive: Box<dyn CachedDrive>,
    /// log2 of the bytes of its pages.
    page_shift: u32,
    control: Option<Control>,
    meter: Option<Meter>,
    times: Times,
    used: Use,
    groups: GroupUses,
    /// The last request sent of each tenant.
    last: Vec<Option<u64>>,
    /// Counters at the start of the window.
    before: Vec<Counts>,
    rows: Vec<Row>,
    done: Vec<Completion>,
    /// Who hit, on the way to the sums by step.
    hits: Vec<(u64, u64)>,
    sent: u64,
    total: u64,
    borders: Borders,
    now_ns: u64,
}

/// Replays to the end on an idle drive, given with log2 of the bytes of its pages; without
/// `control` its cache stays divided as it is; `wanted` is what the partitioner is told,
/// `progress` is told the requests sent and stops the replay by returning false. Errors: stopped.
pub fn run_drive(
    replay: &Replay<'_>,
    (drive, page_shift): (Box<dyn CachedDrive>, u32),
    control: Option<Control>,
    wanted: Wanted,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Times, RecordError> {
    let tenants = replay.recording.totals.len();
    let source = Source::new(replay, tenants);
    let mut whole = Whole {
        replay,
        groups: GroupUses::new(drive.exposed()),
        drive,
        page_shift,
        control,
        meter: wanted
            .meter(tenants, replay.interval_ns)
            .map(|signals| Meter::new(signals, page_shift, false)),
        times: Times::of_drive(replay),
        used: Use::default(),
        last: vec![None; tenants],
        before: vec![Counts::default(); tenants],
        rows: Vec::new(),
        done: Vec::new(),
        hits: Vec::new(),
        sent: 0,
        total: source.total(),
        borders: Borders::new(replay),
        now_ns: 0,
    };
    if replay.clock.is_some() {
        whole.drive.tell_hits();
    }
    whole.run(source, progress)
}

impl Whole<'_> {
    fn run(
        mut self,
        mut source: Source,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Times, RecordError> {
        loop {
            let due = self.drive.next_due().map(|due| due.0);
            match (due, source.next_ns()) {
                (None, None) => return Ok(self.finish()),
                (Some(due), next) if next.is_none_or(|next| due <= next) => {
                    self.advance(due, &mut source);
                }
                (_, Some(now_ns)) => {
                    self.now_ns = now_ns;
                    self.end_until(now_ns, progress)?;
                    let next = source.take();
                    self.total = source.total();
                    if let Some(tag) = next {
                        self.send(tag);
                        if self.sent.is_multiple_of(PROGRESS_EVERY) && !progress(self.sent) {
                            return Err(RecordError::Cancelled);
                        }
                    }
                    if self.replay.pace == Loop::Open {
                        source.schedule_open(self.replay.requests);
                    }
                }
                (Some(_), None) => {}
            }
        }
    }

    /// Lets the drive work up to `due_ns` and takes its answers.
    fn advance(&mut self, due_ns: u64, source: &mut Source) {
        self.now_ns = due_ns;
        let mut done = std::mem::take(&mut self.done);
        self.drive.advance(Nanos(due_ns), &mut done);
        if let Some(sums) = &mut self.times.sums {
            self.drive.take_hits(&mut self.hits);
            for (tag, hits) in self.hits.drain(..) {
                sums.hit(self.replay.requests.time_ns(request_of(tag)), hits);
            }
        }
        for completion in done.drain(..) {
            self.answer(&completion, source);
        }
        self.done = done;
    }

    fn send(&mut self, tag: u64) {
        let (replay, now_ns, at) = (self.replay, self.now_ns, request_of(tag));
        let request = replay.requests.get(at);
        if let Some(meter) = &mut self.meter {
            meter.request((replay.recording, replay.requests), at, now_ns);
        }
        self.times.arrived(&request, now_ns);
        if let Some(sums) = &mut self.times.sums {
            let (recording, shift) = (replay.recording, self.page_shift);
            let accesses = replay.requests.accesses(at, recording, shift).len() as u64;
            sums.asked(&request, now_ns, accesses);
        }
        self.used.submitted(Nanos(now_ns), request.op, request.length);
        self.groups.submitted(request.op, request.offset.0, request.length.0);
        let (op, offset, length, tenant) =
            (request.op, request.offset, request.length, request.tenant);
        self.drive.submit(Nanos(now_ns), Command { tag, op, offset, length, tenant });
        self.last[tenant.index()] = Some(tag);
        self.sent += 1;
    }

    fn answer(&mut self, completion: &Completion, source: &mut Source) {
        let request = self.replay.requests.get(request_of(completion.tag));
        let mut latency = LatencyBreakdown::default();
        latency.spend(Role::Cache, &completion.spent);
        let answer = Answer {
            tag: completion.tag,
            tenant: request.tenant,
            arrival_ns: completion.submitted.0,
            finish_ns: completion.finished.0,
            latency,
        };
        self.used.completed(Nanos(answer.finish_ns));
        if let Some(meter) = &mut self.meter {
            meter.answered(request.op, &answer, latency.in_flash_ns());
        }
        self.times.answered(&request, &answer);
        source.answered(&self.replay.pace, self.replay.requests, &answer);
    }

    /// Ends what ends until `now_ns`: the warm-up, intervals and windows. Errors: too many
    /// intervals, stopped.
    fn end_until(
        &mut self,
        now_ns: u64,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), RecordError> {
        let sent = (self.sent, self.total);
        while let Some(border) = self.borders.next(self.replay, sent, now_ns) {
            self.end(border);
            if border == Border::Interval {
                self.borders.check(|| progress(self.sent))?;
            }
        }
        Ok(())
    }

    fn end(&mut self, border: Border) {
        match border {
            Border::Warmup => self.drive.count_after(&self.last),
            Border::Interval => {
                let signals = self.meter.as_mut().map(Meter::end_interval);
                if let Some(control) = &mut self.control {
                    let signals = signals.unwrap_or_default();
                    self.drive.control(Nanos(self.now_ns), control, &signals);
                }
            }
            Border::Window { number, time_ns } => self.end_window(number, time_ns),
        }
    }

    fn end_window(&mut self, number: u32, time_ns: u64) {
        let held = self.held();
        let pages = self.drive.pages();
        self.rows.extend(rows_of(&held, pages, &mut self.before, number, time_ns));
    }

    /// What each tenant has and holds now.
    fn held(&self) -> Vec<Held> {
        let tenants = (0..self.before.len()).map(|tenant| TenantId(tenant as u16));
        let held = |tenant| Held {
            counts: self.drive.counts(tenant),
            occupancy: self.drive.occupancy(tenant),
            quota: self.drive.quota(tenant),
            state: self.drive.state(tenant),
        };
        tenants.map(held).collect()
    }

    fn finish(mut self) -> Times {
        let now_ns = self.now_ns;
        while let Some(border) = self.borders.last(self.replay, now_ns) {
            self.end(border);
        }
        let held = self.held();
        let tenants = (0..held.len()).map(|tenant| TenantId(tenant as u16));
        self.times.end_ns = self.now_ns;
        let now = Nanos(self.now_ns);
        self.times.devices = vec![DeviceUse::new(&self.used, self.drive.report(now))];
        self.times.groups = self.groups.all().to_vec();
        self.times.cache = LaneResult {
            counts: tenants.map(|tenant| self.drive.counted(tenant)).collect(),
            occupancy_blocks: held.iter().map(|held| held.occupancy).collect(),
            quota_blocks: held.iter().map(|held| held.quota).collect(),
            pools: self.drive.mixed_pools(),
            dirty_blocks: self.drive.dirty_pages(),
            rows: self.rows,
            moved: self.control.as_ref().and_then(Control::moved),
            required: Vec::new(),
            curves: Vec::new(),
        };
        self.times.drive = Some(DriveWork {
            cache: self.drive.cache_stats(),
            link_busy_ns: self.drive.link_busy().map(|time| time.0),
        });
        debug_assert_eq!(self.drive.outstanding(), 0);
        debug_assert_eq!(self.times.audit(), Ok(()));
        self.times
    }
}
