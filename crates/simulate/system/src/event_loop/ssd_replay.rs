//! A drive that is the whole machine as a system of the event loop: its data cache decides, its
//! flash holds all.
//!
//! A quota changes when the first request after the interval's end is sent.

use super::times::{DriveTotals, Measures, Times};
use super::{Answered, Boundary, Replay, System, request_of};
use crate::lane::LaneResult;
use crate::machines::latency::{LatencyBreakdown, Role, TimedAnswer};
use crate::machines::machine::GroupUses;
use crate::recording::RecordError;
use crate::series::{Held, Row, rows_of};
use crate::ssd::AnyCachedDrive;
use cachewright_control::{Control, SignalNeeds};
use cachewright_device::{Command, Completion, DeviceUse, Use};
use cachewright_types::measure::Counts;
use cachewright_types::{Nanos, Request, TenantId};

/// Lists that are filled and emptied again, kept for their memory.
#[derive(Default)]
struct ReusedLists {
    done: Vec<Completion>,
    /// Requests that come next.
    upcoming: Vec<Request>,
    /// Commands that hit, on the way to the sums by step.
    hits: Vec<(u64, u64)>,
}

/// The state of one replay on a drive.
struct SsdReplay<'a> {
    replay: &'a Replay<'a>,
    drive: Box<dyn AnyCachedDrive>,
    /// log2 of the bytes of its pages.
    page_shift: u32,
    control: Option<Control>,
    measures: Measures,
    used: Use,
    groups: GroupUses,
    /// The last request sent of each tenant.
    last: Vec<Option<u64>>,
    /// Counters at the start of the window.
    before: Vec<Counts>,
    rows: Vec<Row>,
    lists: ReusedLists,
}

/// Replays to the end on an idle drive, given with log2 of the bytes of its pages; without
/// `control` its cache stays divided as it is; `needs` are the signals of the partitioner,
/// `progress` is told the requests sent and stops the replay by returning false. Errors: stopped,
/// too many intervals.
pub fn run_ssd(
    replay: &Replay<'_>,
    drive: Box<dyn AnyCachedDrive>,
    page_shift: u32,
    control: Option<Control>,
    needs: SignalNeeds,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Times, RecordError> {
    let tenants = replay.recording.totals.len();
    let signals = needs.meter(tenants, replay.interval_ns);
    let mut system = SsdReplay {
        replay,
        groups: GroupUses::new(drive.exposed()),
        drive,
        page_shift,
        control,
        measures: Measures::new(
            signals,
            page_shift,
            false,
            replay.extents,
            Times::of_drive(replay),
        ),
        used: Use::default(),
        last: vec![None; tenants],
        before: vec![Counts::default(); tenants],
        rows: Vec::new(),
        lists: ReusedLists::default(),
    };
    if replay.clock.is_some() {
        system.drive.tell_hits();
    }
    super::run(replay, system, progress)
}

impl System for SsdReplay<'_> {
    type Found = Times;

    fn next_due(&self) -> Option<u64> {
        self.drive.next_due().map(|due| due.0)
    }

    fn advance(&mut self, _: u64, until_ns: u64) -> u64 {
        let Nanos(now_ns) = self.drive.advance_to_answer(Nanos(until_ns), &mut self.lists.done);
        if let Some(sums) = &mut self.measures.times.sums {
            self.drive.take_hits(&mut self.lists.hits);
            for (tag, hits) in self.lists.hits.drain(..) {
                sums.hit(self.replay.requests.time_ns(request_of(tag)), hits);
            }
        }
        now_ns
    }

    fn submit(&mut self, tag: u64, now_ns: u64) {
        let (replay, index) = (self.replay, request_of(tag));
        let request = replay.requests.get(index);
        self.measures.arrived(replay, index, &request, now_ns);
        if let Some(sums) = &mut self.measures.times.sums {
            let accesses = replay.requests.accesses(index, replay.recording, self.page_shift);
            sums.on_request(&request, now_ns, accesses.len() as u64);
        }
        self.used.submitted(Nanos(now_ns), request.op, request.length);
        self.groups.submitted(request.op, request.offset.0, request.length.0);
        let (op, offset, length, tenant) =
            (request.op, request.offset, request.length, request.tenant);
        self.drive.submit(Nanos(now_ns), Command { tag, op, offset, length, tenant });
        self.last[tenant.index()] = Some(tag);
    }

    fn prefetch(&mut self, upcoming: &[u32]) {
        let requests = self.replay.requests;
        self.lists.upcoming.clear();
        self.lists.upcoming.extend(upcoming.iter().map(|index| requests.get(*index as usize)));
        self.drive.prefetch(&self.lists.upcoming);
    }

    fn on_boundary(&mut self, boundary: Boundary, now_ns: u64) {
        match boundary {
            Boundary::Warmup => self.drive.count_after(&self.last),
            Boundary::Interval => {
                let signals = self.measures.end_interval();
                if let Some(control) = &mut self.control {
                    self.drive.control(Nanos(now_ns), control, &signals);
                }
            }
            Boundary::Window { number, time_ns } => self.end_window(number, time_ns),
            // Its channels are not laid out by tenants of the moment.
            Boundary::Tenants => {}
        }
    }

    fn end_event(&mut self, answers: &mut Vec<Answered>) {
        for completion in self.lists.done.drain(..) {
            let index = request_of(completion.tag);
            let request = self.replay.requests.get(index);
            let mut latency = LatencyBreakdown::default();
            latency.spend(Role::Cache, &completion.spent);
            let (tag, tenant) = (completion.tag, request.tenant);
            let (arrival_ns, finish_ns) = (completion.submitted.0, completion.finished.0);
            let answer = TimedAnswer { tag, tenant, arrival_ns, finish_ns, latency };
            self.used.completed(Nanos(finish_ns));
            self.measures.answered(&request, &answer, latency.in_flash_ns());
            answers.push(Answered { request: index as u32, tenant, finish_ns });
        }
    }

    fn finish(self, now_ns: u64) -> Times {
        let held = self.held();
        let tenants = (0..held.len()).map(|tenant| TenantId(tenant as u16));
        let now = Nanos(now_ns);
        let mut times = self.measures.times;
        times.end_ns = now_ns;
        times.devices = vec![DeviceUse::new(&self.used, self.drive.report(now))];
        times.channels.groups = self.groups.all().to_vec();
        times.cache = LaneResult {
            counts: tenants.map(|tenant| self.drive.counted(tenant)).collect(),
            occupancy_blocks: held.iter().map(|held| held.occupancy).collect(),
            quota_blocks: held.iter().map(|held| held.quota).collect(),
            pools: self.drive.mixed_pools(),
            dirty_blocks: self.drive.dirty_pages(),
            rows: self.rows,
            churn: self.control.as_ref().and_then(Control::churn),
            required: Vec::new(),
            goal_blocks: self.control.as_ref().map_or_else(Vec::new, |c| c.goal_blocks().to_vec()),
            causes: Vec::new(),
            curves: Vec::new(),
            continued: None,
        };
        times.drive = Some(DriveTotals {
            cache: self.drive.cache_stats(),
            link_busy_ns: self.drive.link_busy().map(|time| time.0),
        });
        debug_assert_eq!(self.drive.outstanding(), 0);
        debug_assert_eq!(times.audit(), Ok(()));
        times
    }
}

impl SsdReplay<'_> {
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
}
