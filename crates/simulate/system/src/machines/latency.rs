//! Where a request's time went: the parts of a response, along the chain of steps that ended last.
//!
//! A step on a device adds the device's own parts under the device's role; time that no device
//! explains has parts of its own.

use cachewright_device::{Spent, SpentPart};
use cachewright_steps::RequestAnswer;
use cachewright_types::TenantId;

/// Parts of a device.
const DEVICE_PARTS: usize = SpentPart::ALL.len();
/// All parts of a latency.
pub const PARTS: usize = 2 * DEVICE_PARTS + 3;

/// Which side of the cache a device is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Holds cached blocks.
    Cache,
    /// Holds everything.
    Backing,
}

/// Time that no device explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For the cache's decision.
    Decision,
    /// For a block that is on its way on another request's behalf.
    Block,
    /// For a slot of the cache device whose old block is still being written back.
    Slot,
}

/// Nanoseconds by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyBreakdown([u64; PARTS]);

impl Default for LatencyBreakdown {
    fn default() -> Self {
        LatencyBreakdown([0; PARTS])
    }
}

impl LatencyBreakdown {
    /// Adds what a device spent.
    pub fn spend(&mut self, role: Role, spent: &Spent) {
        let first = role as usize * DEVICE_PARTS;
        for (sum, part) in self.0[first..].iter_mut().zip(&spent.parts_ns) {
            *sum += part;
        }
    }

    /// Adds a wait.
    fn wait(&mut self, wait: Wait, time_ns: u64) {
        self.0[2 * DEVICE_PARTS + wait as usize] += time_ns;
    }

    /// The time it waited for a backing device: for its own data, or for a block or a slot of the
    /// cache device that is held up there.
    pub fn behind_cache_ns(&self) -> u64 {
        let waits = 2 * DEVICE_PARTS;
        let held = [Wait::Block, Wait::Slot].map(|wait| self.0[waits + wait as usize]);
        self.0[DEVICE_PARTS..waits].iter().chain(&held).sum()
    }

    /// The time it waited for flash, on a drive that is the whole machine. A wait in a queue is
    /// none, whatever the queue stands for.
    pub fn in_flash_ns(&self) -> u64 {
        let flash = [
            SpentPart::Map,
            SpentPart::Channel,
            SpentPart::DieWait,
            SpentPart::CleanWait,
            SpentPart::Flash,
        ];
        flash.iter().map(|part| self.0[*part as usize]).sum()
    }

    /// The sum of all parts.
    fn total_ns(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Sums of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySums {
    sums: [u128; PARTS],
    /// There is one device, so that its parts need no role.
    one_device: bool,
}

impl Default for LatencySums {
    fn default() -> Self {
        LatencySums { sums: [0; PARTS], one_device: false }
    }
}

impl LatencySums {
    /// Sums of latencies on one device, spent under [`Role::Cache`].
    pub fn of_one_device() -> LatencySums {
        LatencySums { one_device: true, ..LatencySums::default() }
    }

    /// Adds a request's latency.
    pub fn add(&mut self, latency: &LatencyBreakdown) {
        for (sum, part) in self.sums.iter_mut().zip(&latency.0) {
            *sum += u128::from(*part);
        }
    }

    /// Adds other sums.
    pub fn merge(&mut self, other: &LatencySums) {
        for (sum, part) in self.sums.iter_mut().zip(&other.sums) {
            *sum += part;
        }
        self.one_device |= other.one_device;
    }

    /// See [`LatencyBreakdown::behind_cache_ns`].
    pub fn behind_cache_ns(&self) -> u128 {
        let waits = 2 * DEVICE_PARTS;
        let held = [Wait::Block, Wait::Slot].map(|wait| self.sums[waits + wait as usize]);
        self.sums[DEVICE_PARTS..waits].iter().chain(&held).sum()
    }

    /// The sum of all parts.
    pub fn total_ns(&self) -> u128 {
        self.sums.iter().sum()
    }

    /// The parts that are not zero, by name, in the order of tables: what the cache device spent,
    /// then the backing device, then the waits. Of one device, its parts alone.
    pub fn parts(&self) -> Vec<(String, u128)> {
        let device = |role: &'static str| {
            SpentPart::ALL.iter().map(move |part| format!("{role}{}", part.word()))
        };
        let waits = ["decision", "wait for block", "wait for room"].map(str::to_owned);
        let names = device(if self.one_device { "" } else { "cache " })
            .chain(device("backing "))
            .chain(waits);
        names.zip(self.sums).filter(|(_, time)| *time > 0).collect()
    }
}

/// When a request arrived, and where its time has gone until now.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestTrail {
    arrival_ns: u64,
    /// Until when the time has parts.
    until_ns: u64,
    latency: LatencyBreakdown,
}

/// A request answered.
#[derive(Clone, Copy, Debug)]
pub struct TimedAnswer {
    /// As submitted.
    pub tag: u64,
    /// The tenant that sent it.
    pub tenant: TenantId,
    /// When it was submitted.
    pub arrival_ns: u64,
    /// When it was answered.
    pub finish_ns: u64,
    /// Where the time between went.
    pub latency: LatencyBreakdown,
}

impl RequestTrail {
    /// A request arrives.
    pub fn new(arrival_ns: u64) -> RequestTrail {
        let (until_ns, latency) = (arrival_ns, LatencyBreakdown::default());
        RequestTrail { arrival_ns, until_ns, latency }
    }

    /// Puts the time that has no part yet under `wait`.
    pub fn account(&mut self, wait: Wait, now_ns: u64) {
        self.latency.wait(wait, now_ns - self.until_ns);
        self.until_ns = now_ns;
    }

    /// A device has spent all the time that has no part yet.
    pub fn spend(&mut self, role: Role, spent: &Spent, now_ns: u64) {
        self.latency.spend(role, spent);
        self.until_ns = now_ns;
    }
}

impl TimedAnswer {
    /// The answer to a request, given now.
    pub fn new(answer: &RequestAnswer<RequestTrail>, now_ns: u64) -> TimedAnswer {
        let RequestAnswer { tag, tenant, note, .. } = *answer;
        let RequestTrail { arrival_ns, latency, .. } = note;
        debug_assert!(!answer.failed, "no device of a simulation fails");
        debug_assert_eq!(latency.total_ns(), now_ns - arrival_ns, "every nanosecond has a part");
        TimedAnswer { tag, tenant, arrival_ns, finish_ns: now_ns, latency }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_is_what_waits_behind_the_cache() {
        let spent = |part| {
            let mut spent = Spent::default();
            spent.add(part, 3);
            spent
        };
        let of = |role, part| {
            let mut latency = LatencyBreakdown::default();
            latency.spend(role, &spent(part));
            (latency.behind_cache_ns(), latency.in_flash_ns())
        };
        assert_eq!(of(Role::Cache, SpentPart::Flash), (0, 3));
        assert_eq!(of(Role::Cache, SpentPart::Dram), (0, 0));
        assert_eq!(of(Role::Backing, SpentPart::Queue), (3, 0));
        let waits = [Wait::Decision, Wait::Block, Wait::Slot].map(|wait| {
            let mut latency = LatencyBreakdown::default();
            latency.wait(wait, 1);
            latency.behind_cache_ns()
        });
        assert_eq!(waits, [0, 1, 1]);
    }

    #[test]
    fn parts_keep_their_device_and_add_up() {
        let mut spent = Spent::default();
        spent.add(SpentPart::Seek, 5);
        spent.add(SpentPart::Queue, 1);
        let mut latency = LatencyBreakdown::default();
        latency.spend(Role::Backing, &spent);
        latency.spend(Role::Cache, &spent);
        latency.wait(Wait::Slot, 7);
        assert_eq!(latency.total_ns(), 19);
        let mut sums = LatencySums::default();
        sums.add(&latency);
        sums.add(&latency);
        let found = sums.parts();
        let named = [
            ("cache queue", 2),
            ("cache seek", 10),
            ("backing queue", 2),
            ("backing seek", 10),
            ("wait for room", 14),
        ];
        assert_eq!(found, named.map(|(name, time)| (name.to_owned(), time)));
        assert_eq!(sums.total_ns(), 38);
    }
}
