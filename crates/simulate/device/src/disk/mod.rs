//! A disk with moving heads: its settings, its queue, its link, and what a command costs.
//!
//! A command that needs the medium goes through seek (and choice of head), rotation, transfer; the
//! link runs beside the transfer, being faster. A read that the track buffer holds takes the link
//! alone and overtakes what waits for the arm; so do flushes and trims. Writes are answered when
//! they are on the medium, so a flush has nothing to do. The angle of the platters follows from the
//! time alone.
//!
//! Units: bytes, sectors, nanoseconds. Sources: Ruemmler and Wilkes, IEEE Computer 27(3), 1994; of
//! the orders of the queue Jacobson and Wilkes, HPL-CSP-91-7 (shortest access time first), and
//! Worthington, Ganger and Patt, SIGMETRICS'94; the settings name theirs.

mod buffer;
mod geometry;
mod head_time;

use crate::device::{Command, Completion, Device, Spent, SpentPart};
use crate::report::{DeviceWork, Energy, Report};
use buffer::TrackBuffer;
use cachewright_types::{Bytes, Nanos, Op, SettingError, choices, declare};
use geometry::{Arm, DiskGeometry, DiskPlace, DiskShape, SeekCurve, SeekFigures};
pub use head_time::HeadTime;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A command under the heads.
#[derive(Clone, Copy, Debug)]
struct Active {
    tag: u64,
    submitted_ns: u64,
    finish_ns: u64,
    spent: Spent,
}

/// A disk.
#[derive(Clone, Debug)]
pub struct Disk {
    geometry: DiskGeometry,
    sector_bytes: u64,
    queue: DiskQueue,
    buffer: TrackBuffer,
    active: Option<Active>,
    link: DiskLink,
    arm: Arm,
    /// Idle watts, and those beyond them while the arm moves and while data passes.
    watts: [f64; 3],
    /// Time the arm has moved, and data of commands has passed.
    seek_ns: u64,
    transfer_ns: u64,
    head_time: HeadTime,
}

impl Disk {
    /// An idle disk, the arm at the outermost cylinder. Errors: figures of seeks that no curve
    /// meets, an inner rate above the outer one.
    pub fn new(settings: &DiskSettings) -> Result<Disk, SettingError> {
        let geometry = DiskGeometry::new(&settings.shape()?);
        let weight = |share: f64| geometry.track_at(share) as f64;
        let curve = SeekCurve::fit(settings.seeks(), geometry.cylinders(), weight)
            .map_err(|(low, high)| settings.refuse_average(low, high))?;
        let sector_bytes = u64::from(settings.sector_bytes);
        let segment = settings.buffer.0 / u64::from(settings.segments.max(1)) / sector_bytes;
        let ahead = settings.read_ahead.0 / sector_bytes;
        let position_ns = settings.average_seek.0 + geometry.revolution_ns() / 2;
        let outer_rate = settings.outer_mb_per_s * 1e6;
        Ok(Disk {
            sector_bytes,
            queue: DiskQueue::new(
                settings.schedule,
                settings.queue_depth as usize,
                settings.age_limit.0,
            ),
            buffer: TrackBuffer::new(settings.segments as usize, segment, ahead),
            active: None,
            link: DiskLink::new(settings.link_mb_per_s * 1e6),
            arm: Arm::new(curve, settings.head_switch.0),
            watts: [settings.idle_power, settings.seek_power, settings.transfer_power],
            seek_ns: 0,
            transfer_ns: 0,
            head_time: HeadTime::new(position_ns, outer_rate, settings.head_interval.0),
            geometry,
        })
    }

    /// The time of one revolution, rounded to a nanosecond.
    pub fn revolution_ns(&self) -> u64 {
        self.geometry.revolution_ns()
    }

    /// The time for `length` bytes from `offset` on to pass under the heads.
    pub fn transfer_ns(&self, offset: Bytes, length: Bytes) -> u64 {
        let (first, end) = self.sectors_of(offset.0, length.0);
        self.geometry.pass_ns(first, end - first)
    }

    fn sectors_of(&self, offset: u64, length: u64) -> (u64, u64) {
        let last = self.geometry.sectors() - 1;
        let first = (offset / self.sector_bytes).min(last);
        let end = offset.saturating_add(length).div_ceil(self.sector_bytes);
        (first, end.clamp(first + 1, last + 1))
    }

    /// The time until a waiting command's first sector is under its head.
    fn access_ns(&self, waiting: &WaitingCommand, now_ns: u64) -> u64 {
        let (first, end) = (waiting.first, waiting.end);
        if waiting.command.op == Op::Read
            && let Some(arrives) = self.buffer.arrives_ns(&self.geometry, first, end, now_ns)
        {
            return arrives.saturating_sub(now_ns + self.geometry.pass_ns(first, end - first));
        }
        let place = &waiting.place;
        let way_ns = self.arm.way_ns(place);
        way_ns + self.geometry.wait_ns(place.angle, now_ns + way_ns)
    }

    /// Serves what waits, the arm being free at `now_ns`.
    fn dispatch(&mut self, now_ns: u64) {
        while self.active.is_none() {
            let mut queue =
                std::mem::replace(&mut self.queue, DiskQueue::new(Schedule::Fifo, 1, 0));
            let access = |waiting: &WaitingCommand| self.access_ns(waiting, now_ns);
            let next = queue.take(now_ns, self.arm.cylinder(), access);
            self.queue = queue;
            let Some(next) = next else { return };
            let read = next.command.op == Op::Read;
            if read && self.buffer.hit(&self.geometry, next.first, next.end, now_ns) {
                let bytes = next.command.length.0;
                self.link.send(&next.command, next.submitted_ns, now_ns, bytes);
            } else {
                self.active = Some(self.begin(&next, now_ns));
            }
        }
    }

    /// Sends the arm, or lets the stream go on.
    fn begin(&mut self, next: &WaitingCommand, now_ns: u64) -> Active {
        let (first, end) = (next.first, next.end);
        let read = next.command.op == Op::Read;
        let mut spent = Spent::default();
        spent.add(SpentPart::Queue, now_ns - next.submitted_ns);
        let streaming = self.buffer.arrives_ns(&self.geometry, first, end, now_ns);
        let finish_ns = if let Some(finish_ns) = streaming.filter(|_| read) {
            self.buffer.serve(end, &self.geometry);
            let finish_ns = finish_ns.max(now_ns);
            spent.add(SpentPart::Transfer, finish_ns - now_ns);
            finish_ns
        } else {
            self.stop_stream(now_ns);
            let place = &next.place;
            let way_ns = self.arm.way_ns(place);
            let wait_ns = self.geometry.wait_ns(place.angle, now_ns + way_ns);
            let pass_ns = self.geometry.pass_ns(first, end - first);
            spent.add(SpentPart::Seek, way_ns);
            spent.add(SpentPart::Rotation, wait_ns);
            spent.add(SpentPart::Transfer, pass_ns);
            let from_ns = now_ns + way_ns + wait_ns;
            if read {
                self.buffer.start(first, end, from_ns, &self.geometry);
            } else {
                self.buffer.invalidate(first, end);
            }
            from_ns + pass_ns
        };
        self.move_to(end - 1);
        self.seek_ns += spent.part_ns(SpentPart::Seek);
        self.transfer_ns += spent.part_ns(SpentPart::Transfer);
        Active { tag: next.command.tag, submitted_ns: next.submitted_ns, finish_ns, spent }
    }

    /// Ends reading ahead; the arm is where that has brought it.
    fn stop_stream(&mut self, now_ns: u64) {
        if let Some(sector) = self.buffer.stop(&self.geometry, now_ns) {
            self.move_to(sector);
        }
    }

    fn move_to(&mut self, sector: u64) {
        self.arm.move_to(&self.geometry.place(sector));
    }
}

impl Device for Disk {
    fn capacity(&self) -> Bytes {
        Bytes(self.geometry.sectors() * self.sector_bytes)
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        let (first, end) = self.sectors_of(command.offset.0, command.length.0);
        let data = matches!(command.op, Op::Read | Op::Write) && command.length.0 > 0;
        if data {
            self.head_time.request(now.0, command.length.0);
        }
        let mut held = || self.buffer.hit(&self.geometry, first, end, now.0);
        if !data {
            self.link.send(&command, now.0, now.0, 0);
        } else if command.op == Op::Read && held() {
            self.link.send(&command, now.0, now.0, command.length.0);
        } else {
            let place = self.geometry.place(first);
            self.queue.push(WaitingCommand { command, submitted_ns: now.0, first, end, place });
            self.dispatch(now.0);
        }
    }

    fn next_due(&self) -> Option<Nanos> {
        let link = self.link.next_due_ns();
        let active = self.active.map(|active| active.finish_ns);
        link.into_iter().chain(active).min().map(Nanos)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(due) = self.next_due().filter(|due| *due <= now) {
            if self.link.next_due_ns() == Some(due.0) {
                done.extend(self.link.complete());
            } else if let Some(active) = self.active.take() {
                let (submitted, finished) = (Nanos(active.submitted_ns), due);
                let Active { tag, spent, .. } = active;
                done.push(Completion { tag, submitted, finished, spent });
                self.dispatch(due.0);
            }
        }
    }

    fn outstanding(&self) -> usize {
        self.queue.len() + self.link.len() + usize::from(self.active.is_some())
    }

    /// Data read ahead is not counted as passing.
    fn report(&self, now: Nanos) -> Report {
        let [idle, seek, transfer] = self.watts;
        let mut energy = Energy::default();
        energy.draw("idle", idle, now.0);
        energy.draw("seek", seek, self.seek_ns);
        energy.draw("transfer", transfer, self.transfer_ns);
        Report { energy, work: DeviceWork::Disk(self.head_time), ..Report::default() }
    }

    fn audit(&self) -> Result<(), String> {
        if self.active.is_none() && self.queue.len() > 0 {
            return Err(format!("{} commands wait for an idle arm", self.queue.len()));
        }
        if self.arm.cylinder() >= self.geometry.cylinders() {
            return Err(format!("the arm is at cylinder {}", self.arm.cylinder()));
        }
        self.buffer.audit()
    }
}

declare! {
    /// A disk; the defaults are a 2 TB disk of 7,200 revolutions per minute.
    pub struct DiskSettings {
        "disk" {
            /// bytes that can be addressed
            capacity: Bytes = Bytes(2_000_398_934_016), "bytes",
                1_000_000 ..= 1e15;
                "Seagate 100516232 (Constellation ES SATA, ST32000644NS): 3,907,029,168 sectors";
            /// bytes per sector
            sector_bytes: u32 = 512, "bytes", 512 ..= 4096; "Seagate 100516232";
            /// revolutions per minute
            rpm: u32 = 7200, "1/min", 1000 ..= 30_000; "Seagate 100516232";
            /// surfaces with a head
            heads: u32 = 8, "heads", 1 ..= 64; "typical of 2 TB on four platters";
            /// zones of equally many cylinders, each with its own sectors per track
            zones: u32 = 16, "zones", 1 ..= 1024; "typical";
            /// rate under a head in the outermost zone
            outer_mb_per_s: f64 = 140.0, "MB/s", 0.1 ..= 10_000.0;
                "Seagate 100516232: sustained rate";
            /// rate under a head in the innermost zone
            inner_mb_per_s: f64 = 70.0, "MB/s", 0.1 ..= 10_000.0;
                "half the outer one, as the radii of 3.5-inch disks have it";
            /// seek to the next cylinder
            single_track: Nanos = Nanos(800_000), "time", 0 ..= 1_000_000_000;
                "typical of 7,200 RPM";
            /// seek between two random addresses
            average_seek: Nanos = Nanos(8_500_000), "time", 0 ..= 1_000_000_000;
                "typical of 7,200 RPM, reads";
            /// seek from the first cylinder to the last
            full_stroke: Nanos = Nanos(18_000_000), "time", 0 ..= 1_000_000_000;
                "typical of 7,200 RPM";
            /// change to another head of the same cylinder
            head_switch: Nanos = Nanos(700_000), "time", 0 ..= 1_000_000_000; "typical";
        }
        "buffer" {
            /// the track buffer
            buffer: Bytes = Bytes(67_108_864), "bytes", 0 ..= 1e12;
                "Seagate 100516232: 64 MB";
            /// parts of the buffer, each for one sequential stream; 0 for no buffer
            segments: u32 = 16, "segments", 0 ..= 1024; "typical";
            /// bytes read on after a read, at most a segment
            read_ahead: Bytes = Bytes(1_048_576), "bytes", 0 ..= 1_000_000_000; "typical";
            /// rate of the link, for reads held by the buffer
            link_mb_per_s: f64 = 300.0, "MB/s", 0.1 ..= 100_000.0;
                "Seagate 100516232: SATA 3 Gb/s";
        }
        "queue" {
            /// which waiting command is served next
            schedule: Schedule = Schedule::Satf, "name"; "HPL-CSP-91-7";
            /// waiting commands, from the oldest on, that are chosen from
            queue_depth: u32 = 32, "commands", 1 ..= 65_536; "native command queueing of SATA";
            /// a command that has waited so long goes first; 0s for never
            age_limit: Nanos = Nanos(0), "time", 0 ..= 1e12; "off by default";
        }
        "load" {
            /// intervals over which disk-head time is summed
            head_interval: Nanos = Nanos(600_000_000_000), "time",
                1_000_000 ..= 3_153_600_000_000_000_000; "experiments of wonglkd/BCacheSim: 600 s";
        }
        "energy" {
            /// power while the platters turn; 0 is not given
            idle_power: f64 = 7.0, "W", 0.0 ..= 1_000.0;
                "Seagate Constellation ES.2 SAS product manual, rev. G, table 3 (2 TB, 3 Gb/s): \
                 0.46 A of 5 V and 0.39 A of 12 V";
            /// power while the arm moves, beyond the idle one; 0 is not given
            seek_power: f64 = 5.7, "W", 0.0 ..= 1_000.0;
                "same table: random reads draw 10.8 W, and the arm moves for 8.5 of their 12.7 ms";
            /// power while data passes under a head, beyond the idle one; 0 is not given
            transfer_power: f64 = 1.7, "W", 0.0 ..= 1_000.0;
                "same table: sequential reads draw 8.7 W (writes 9.5 W)";
        }
    }
}

/// What the preset of the 9.1 GB disk sets over the defaults: key and value as in a stack file. No
/// source gives its power.
pub const CHEETAH_9LP: [(&str, &str); 17] = [
    ("capacity", "9105018880B"),
    ("rpm", "10045"),
    ("heads", "12"),
    ("zones", "11"),
    ("outer_mb_per_s", "21.3"),
    ("inner_mb_per_s", "14.5"),
    ("single_track", "0.8ms"),
    ("average_seek", "5ms"),
    ("full_stroke", "10.6ms"),
    ("head_switch", "0.6ms"),
    ("buffer", "1MiB"),
    ("read_ahead", "64KiB"),
    ("link_mb_per_s", "80.0"),
    ("queue_depth", "64"),
    ("idle_power", "0.0"),
    ("seek_power", "0.0"),
    ("transfer_power", "0.0"),
];

impl DiskSettings {
    /// What the geometry is made from. Errors: an inner rate above the outer one.
    fn shape(&self) -> Result<DiskShape, SettingError> {
        if self.inner_mb_per_s > self.outer_mb_per_s {
            return Err(SettingError {
                key: "inner_mb_per_s".to_owned(),
                found: self.inner_mb_per_s.to_string(),
                expected: format!("at most `outer_mb_per_s`, {}", self.outer_mb_per_s),
            });
        }
        Ok(DiskShape {
            capacity_bytes: self.capacity.0,
            sector_bytes: u64::from(self.sector_bytes),
            rpm: u64::from(self.rpm),
            heads: u64::from(self.heads),
            zones: u64::from(self.zones),
            outer_rate: self.outer_mb_per_s * 1e6,
            inner_rate: self.inner_mb_per_s * 1e6,
            head_switch_ns: self.head_switch.0,
            next_cylinder_ns: self.single_track.0,
        })
    }

    fn seeks(&self) -> SeekFigures {
        SeekFigures {
            single_track_ns: self.single_track.0,
            average_ns: self.average_seek.0,
            full_stroke_ns: self.full_stroke.0,
        }
    }

    /// The refusal of an average seek that no curve has.
    fn refuse_average(&self, low: u64, high: u64) -> SettingError {
        let (single, full) = (self.single_track, self.full_stroke);
        SettingError {
            key: "average_seek".to_owned(),
            found: format!("`{}`", self.average_seek),
            expected: format!(
                "{} to {} between a `single_track` of {single} and a `full_stroke` of {full}",
                Nanos(low.min(high)),
                Nanos(high.max(low))
            ),
        }
    }
}

choices! {
    /// The order in which waiting commands are served.
    pub enum Schedule {
        /// First come, first served.
        Fifo = "fifo",
        /// The shortest way for the arm.
        Sstf = "sstf",
        /// Onwards in one direction, then in the other.
        Scan = "scan",
        /// The least time until the first sector is under its head.
        Satf = "satf",
    }
}

/// A command that waits.
#[derive(Clone, Copy, Debug)]
struct WaitingCommand {
    /// The command.
    pub command: Command,
    /// When it was submitted.
    pub submitted_ns: u64,
    /// First sector.
    pub first: u64,
    /// The sector after its last.
    pub end: u64,
    /// Where its first sector lies.
    pub place: DiskPlace,
}

/// The waiting commands of one disk, in order of arrival.
#[derive(Clone, Debug)]
struct DiskQueue {
    waiting: VecDeque<WaitingCommand>,
    schedule: Schedule,
    /// How many, from the oldest on, are chosen from.
    depth: usize,
    /// A command that has waited so long goes first; 0 for never.
    age_limit_ns: u64,
    inwards: bool,
}

impl DiskQueue {
    /// An empty queue.
    pub fn new(schedule: Schedule, depth: usize, age_limit_ns: u64) -> DiskQueue {
        DiskQueue { waiting: VecDeque::new(), schedule, depth, age_limit_ns, inwards: true }
    }

    /// Commands waiting.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds the youngest.
    pub fn push(&mut self, waiting: WaitingCommand) {
        self.waiting.push_back(waiting);
    }

    /// Takes the next to serve, the arm being at `cylinder`; `access_ns` tells how long a command's
    /// first sector takes to come under its head. Ties go to the oldest.
    pub fn take(
        &mut self,
        now_ns: u64,
        cylinder: u64,
        access_ns: impl Fn(&WaitingCommand) -> u64,
    ) -> Option<WaitingCommand> {
        let oldest = self.waiting.front()?;
        let waited_ns = now_ns.saturating_sub(oldest.submitted_ns);
        let overdue = self.age_limit_ns > 0 && waited_ns >= self.age_limit_ns;
        let choice = self.waiting.iter().take(self.depth).enumerate();
        let chosen = match self.schedule {
            _ if overdue || self.waiting.len() == 1 => 0,
            Schedule::Fifo => 0,
            Schedule::Sstf => nearest(choice, |waiting| waiting.place.cylinder.abs_diff(cylinder)),
            Schedule::Satf => nearest(choice, access_ns),
            Schedule::Scan => self.scan(cylinder),
        };
        self.waiting.remove(chosen)
    }

    /// The nearest in the arm's direction, which turns when there is none.
    fn scan(&mut self, cylinder: u64) -> usize {
        let onwards = |inwards: bool| {
            let ahead = move |waiting: &WaitingCommand| match inwards {
                true => waiting.place.cylinder >= cylinder,
                false => waiting.place.cylinder <= cylinder,
            };
            let choice = self.waiting.iter().take(self.depth).enumerate();
            choice
                .filter(|(_, waiting)| ahead(waiting))
                .min_by_key(|(index, waiting)| (waiting.place.cylinder.abs_diff(cylinder), *index))
                .map(|(index, _)| index)
        };
        if let Some(found) = onwards(self.inwards) {
            return found;
        }
        self.inwards = !self.inwards;
        onwards(self.inwards).unwrap_or(0)
    }
}

fn nearest<'a>(
    choice: impl Iterator<Item = (usize, &'a WaitingCommand)>,
    far: impl Fn(&WaitingCommand) -> u64,
) -> usize {
    choice.map(|(index, waiting)| (far(waiting), index)).min().map_or(0, |(_, index)| index)
}

/// A command on the link: when it ends, its number in order of submission, the rest.
type OnLink = Reverse<(u64, u64, u64, u64, u64)>;

/// The link, which carries one command after the other.
#[derive(Clone, Debug)]
struct DiskLink {
    bytes_per_s: f64,
    commands: BinaryHeap<OnLink>,
    count: u64,
    free_ns: u64,
}

impl DiskLink {
    /// An idle link.
    pub fn new(bytes_per_s: f64) -> DiskLink {
        DiskLink { bytes_per_s, commands: BinaryHeap::new(), count: 0, free_ns: 0 }
    }

    /// Ends a command after `bytes` have gone over the link, from `now_ns` on or once it is free.
    pub fn send(&mut self, command: &Command, submitted_ns: u64, now_ns: u64, bytes: u64) {
        let time_ns = (bytes as f64 * 1e9 / self.bytes_per_s).round() as u64;
        let finish_ns = now_ns.max(self.free_ns) + time_ns;
        self.free_ns = finish_ns;
        self.commands.push(Reverse((finish_ns, self.count, command.tag, submitted_ns, time_ns)));
        self.count += 1;
    }

    /// When the next command ends.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.commands.peek().map(|Reverse(command)| command.0)
    }

    /// Takes out the next command to end.
    pub fn complete(&mut self) -> Option<Completion> {
        let Reverse((finish_ns, _, tag, submitted_ns, link_ns)) = self.commands.pop()?;
        let mut spent = Spent::default();
        spent.add(SpentPart::Link, link_ns);
        spent.add(SpentPart::Queue, finish_ns - submitted_ns - link_ns);
        let (submitted, finished) = (Nanos(submitted_ns), Nanos(finish_ns));
        Some(Completion { tag, submitted, finished, spent })
    }

    /// Commands on the link.
    pub fn len(&self) -> usize {
        self.commands.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::TenantId;

    fn order(schedule: Schedule, depth: usize, age_limit_ns: u64) -> Vec<u64> {
        let mut queue = DiskQueue::new(schedule, depth, age_limit_ns);
        for (tag, cylinder) in [50, 10, 60, 90, 40].into_iter().enumerate() {
            let (offset, length) = (Bytes(0), Bytes(512));
            let tenant = TenantId(0);
            let command = Command { tag: tag as u64, op: Op::Read, offset, length, tenant };
            let place = DiskPlace { cylinder, head: 0, angle: 0 };
            queue.push(WaitingCommand { command, submitted_ns: 0, first: 0, end: 1, place });
        }
        let mut at = 52;
        let mut order = Vec::new();
        while let Some(next) = queue.take(100, at, |one| 100 - one.place.cylinder) {
            at = next.place.cylinder;
            order.push(at);
        }
        order
    }

    #[test]
    fn each_order_by_hand() {
        assert_eq!(order(Schedule::Fifo, 32, 0), [50, 10, 60, 90, 40]);
        assert_eq!(order(Schedule::Sstf, 32, 0), [50, 60, 40, 10, 90]);
        assert_eq!(order(Schedule::Sstf, 2, 0), [50, 60, 90, 40, 10]);
        assert_eq!(order(Schedule::Scan, 32, 0), [60, 90, 50, 40, 10]);
        assert_eq!(order(Schedule::Satf, 32, 0), [90, 60, 50, 40, 10]);
        assert_eq!(order(Schedule::Satf, 32, 100), [50, 10, 60, 90, 40], "all are overdue");
    }
}
