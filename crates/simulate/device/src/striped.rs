//! Several devices as one: addresses go round them in stripes (RAID 0).
//!
//! Units: bytes, nanoseconds. Stripe `s` is stripe `s / count` of member `s % count`. What a
//! command touches of one member is therefore contiguous there, and one command to it. A command is
//! done when its last part is, and its time is accounted for along that part. Invariants (audited):
//! each command completes once; members hold the parts that are open.

use crate::device::{AnyDevice, Command, Completion, Device};
use crate::report::{DeviceUse, Report, Use};
use cachewright_types::{Bytes, Nanos, Op, SettingError, declare};
use slab::Slab;

declare! {
    /// How many devices stand where there could be one.
    pub struct ArraySettings {
        "array" {
            /// devices of this kind, used as one
            count: u32 = 1, "devices", 1 ..= 64; "RAID 0";
            /// bytes that lie together on one of several devices
            stripe: Bytes = Bytes(65_536), "bytes", 512 ..= 1_073_741_824;
                "typical chunk of Linux md";
        }
    }
}

/// Stripes are whole sectors of this size.
const SECTOR_BYTES: u64 = 512;
/// No time at all.
const NEVER_NS: u64 = u64::MAX;

/// One of the devices.
struct StripeMember {
    device: AnyDevice,
    due_ns: u64,
    /// Up to when it let things happen.
    advanced: Nanos,
    used: Use,
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct StripedCommand {
    tag: u64,
    /// Parts not yet done.
    left: u32,
}

/// Several devices as one.
pub struct Striped {
    parts: Vec<StripeMember>,
    stripe_bytes: u64,
    capacity: Bytes,
    open: Slab<StripedCommand>,
    buffer: Vec<Completion>,
    /// Up to when the caller let things happen.
    advanced: Nanos,
}

impl Striped {
    /// Idle devices as one, in stripes of so many bytes; of each device as much is used as of the
    /// smallest. Errors: no devices; stripes that are not whole sectors, or larger than a device.
    pub fn new(devices: Vec<AnyDevice>, stripe: Bytes) -> Result<Striped, SettingError> {
        let refuse = |key: &str, found: String, expected: String| {
            Err(SettingError { key: key.to_owned(), found, expected })
        };
        let Some(each) = devices.iter().map(|device| device.capacity()).min() else {
            return refuse("count", "0".to_owned(), "1 or more".to_owned());
        };
        if stripe.0 == 0 || !stripe.0.is_multiple_of(SECTOR_BYTES) {
            let expected = format!("whole sectors of {SECTOR_BYTES}B");
            return refuse("stripe", stripe.to_string(), expected);
        }
        if stripe > each {
            let expected = format!("at most {each}, the capacity of one device");
            return refuse("stripe", stripe.to_string(), expected);
        }
        let capacity = Bytes(each.0 / stripe.0 * stripe.0 * devices.len() as u64);
        let part = |device| StripeMember {
            device,
            due_ns: NEVER_NS,
            advanced: Nanos(0),
            used: Use::default(),
        };
        let parts = devices.into_iter().map(part).collect();
        let (open, buffer, advanced) = (Slab::default(), Vec::new(), Nanos(0));
        Ok(Striped { parts, stripe_bytes: stripe.0, capacity, open, buffer, advanced })
    }

    /// Passes a part of a command on.
    fn pass(&mut self, now: Nanos, member: usize, command: Command) {
        let part = &mut self.parts[member];
        // A member with nothing due was left alone, but what a drive does unseen from outside at
        // this very time comes before a command only if the drive was advanced to it.
        if part.advanced < self.advanced {
            part.advanced = self.advanced;
            part.device.advance(self.advanced, &mut self.buffer);
            debug_assert!(self.buffer.is_empty(), "nothing was due");
        }
        part.used.submitted(now, command.op, command.length);
        part.device.submit(now, command);
        part.due_ns = due_ns(part.device.as_ref());
    }

    /// Lets the earliest member go on to `due`, when it has something due.
    fn step(&mut self, member: usize, due: Nanos, done: &mut Vec<Completion>) {
        let part = &mut self.parts[member];
        let mut ended = std::mem::take(&mut self.buffer);
        part.advanced = due;
        part.device.advance(due, &mut ended);
        part.due_ns = due_ns(part.device.as_ref());
        for completion in &ended {
            part.used.completed(completion.finished);
            let number = completion.tag as usize;
            let Some(open) = self.open.get_mut(number) else { continue };
            open.left -= 1;
            if open.left == 0 {
                done.push(Completion { tag: open.tag, ..*completion });
                self.open.try_remove(number);
            }
        }
        ended.clear();
        self.buffer = ended;
    }
}

fn due_ns(device: &dyn Device) -> u64 {
    device.next_due().map_or(NEVER_NS, |due| due.0)
}

impl Device for Striped {
    fn capacity(&self) -> Bytes {
        self.capacity
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        let (count, stripe) = (self.parts.len() as u64, self.stripe_bytes);
        if command.op == Op::Flush {
            let open = StripedCommand { tag: command.tag, left: count as u32 };
            let tag = self.open.insert(open) as u64;
            for member in 0..self.parts.len() {
                self.pass(now, member, Command { tag, ..command });
            }
            return;
        }
        let start = command.offset.0;
        let end = start + command.length.0;
        let (first, last) = (start / stripe, end.max(start + 1).div_ceil(stripe) - 1);
        let touched = (last - first + 1).min(count);
        let open = StripedCommand { tag: command.tag, left: touched as u32 };
        let tag = self.open.insert(open) as u64;
        for stripe_number in first..first + touched {
            let last_here = stripe_number + (last - stripe_number) / count * count;
            let skipped = if stripe_number == first { start % stripe } else { 0 };
            let from = stripe_number / count * stripe + skipped;
            let to = last_here / count * stripe;
            let to = to + if last_here == last { end - last * stripe } else { stripe };
            let (offset, length) = (Bytes(from), Bytes(to - from));
            let member = (stripe_number % count) as usize;
            self.pass(now, member, Command { tag, offset, length, ..command });
        }
    }

    fn next_due(&self) -> Option<Nanos> {
        let due = self.parts.iter().map(|part| part.due_ns).min();
        due.filter(|due| *due != NEVER_NS).map(Nanos)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.advanced = now;
        loop {
            let earliest = self.parts.iter().enumerate().min_by_key(|(_, part)| part.due_ns);
            match earliest.map(|(member, part)| (member, part.due_ns)) {
                Some((member, due)) if due <= now.0 && due != NEVER_NS => {
                    self.step(member, Nanos(due), done);
                }
                _ => return,
            }
        }
    }

    fn outstanding(&self) -> usize {
        self.open.len()
    }

    fn report(&self, now: Nanos) -> Report {
        let member_use = |part: &StripeMember| DeviceUse::new(&part.used, part.device.report(now));
        Report { members: self.parts.iter().map(member_use).collect(), ..Report::default() }
    }

    fn audit(&self) -> Result<(), String> {
        let mut inside = 0;
        for (number, part) in self.parts.iter().enumerate() {
            part.device.audit().map_err(|error| format!("member {number}: {error}"))?;
            let (held, known) = (part.device.outstanding() as u64, part.used.population.inside());
            if held != known {
                return Err(format!("member {number}: {held} inside, {known} counted"));
            }
            inside += held;
        }
        let left: u64 = self.open.iter().map(|(_, open)| u64::from(open.left)).sum();
        if left != inside {
            return Err(format!("commands wait for {left} parts, members hold {inside}"));
        }
        match self.open.iter().find(|(_, open)| open.left == 0) {
            Some((_, open)) => Err(format!("command {} waits for nothing", open.tag)),
            None => Ok(()),
        }
    }
}
