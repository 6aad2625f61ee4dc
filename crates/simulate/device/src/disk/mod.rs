//! A disk with moving heads.
//!
//! For: what a command costs: the wait in the queue, the arm's way, the rotation and the transfer.
//! Must never know: caches, tenants. Units: bytes, sectors, nanoseconds. Sources: Ruemmler and
//! Wilkes, IEEE Computer 27(3), 1994; the settings name theirs.
//!
//! A command that needs the medium goes through seek (and choice of head), rotation, transfer; the
//! link runs beside the transfer, being faster. A read held by the track buffer takes the link
//! alone and overtakes what waits for the arm. Writes are answered when they are on the medium, so
//! a flush has nothing to do. The angle of the platters follows from the time alone.

mod arm;
mod buffer;
mod geometry;
mod link;
mod queue;
mod seek;
mod settings;

pub use queue::Schedule;
pub use settings::{CHEETAH_9LP, DiskSettings};

use crate::energy::Energy;
use crate::report::Report;
use crate::seam::{Command, Completion, Device, Spent, SpentPart};
use arm::Arm;
use buffer::TrackBuffer;
use cachewright_types::{Bytes, Nanos, Op, SettingError};
use geometry::DiskGeometry;
use link::DiskLink;
use queue::{DiskQueue, WaitingCommand};
use seek::SeekCurve;

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
}

impl Disk {
    /// An idle disk, the arm at the outermost cylinder. Errors: figures of seeks that no curve
    /// meets, an inner rate above the outer one.
    pub fn new(settings: &DiskSettings) -> Result<Disk, SettingError> {
        let geometry = DiskGeometry::new(&settings.shape()?);
        let weight = |share: f64| geometry.track_at(share) as f64;
        let curve = SeekCurve::fit(settings.seeks(), geometry.cylinders(), weight)
            .map_err(|bounds| settings.refuse_average(bounds))?;
        let sector_bytes = u64::from(settings.sector_bytes);
        let segment = settings.buffer.0 / u64::from(settings.segments.max(1)) / sector_bytes;
        let ahead = settings.read_ahead.0 / sector_bytes;
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
        Report { energy, ..Report::default() }
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
