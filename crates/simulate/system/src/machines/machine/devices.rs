//! The devices of a machine, and how each is used.
//!
//! For: when the next device is due, and what was asked of each. Must never know: steps, blocks,
//! slots. Units: nanoseconds, bytes. The cache device comes first ([`DeviceId::CACHE`]), then the
//! backing devices. Each queues for itself.

use super::super::channels::{GroupUse, GroupUses};
use super::ids::DeviceId;
use cachewright_device::{AnyDevice, Command, Completion, DeviceUse, Use};
use cachewright_types::{Bytes, Nanos};

/// The devices of a machine.
pub struct MachineDevices {
    devices: Vec<AnyDevice>,
    /// When each is due; `u64::MAX` for an idle one.
    due_ns: Vec<u64>,
    uses: Vec<Use>,
    /// By the channels of the cache device.
    groups: GroupUses,
    /// Kept for its memory.
    done: Vec<Completion>,
}

impl MachineDevices {
    /// Idle devices.
    pub fn new(devices: Vec<AnyDevice>) -> MachineDevices {
        let count = devices.len();
        let groups = devices.first().map_or(Vec::new(), |cache| cache.exposed());
        let (due_ns, uses) = (vec![u64::MAX; count], vec![Use::default(); count]);
        MachineDevices { devices, due_ns, uses, groups: GroupUses::new(groups), done: Vec::new() }
    }

    /// All devices, the cache device first.
    pub fn ids(&self) -> impl Iterator<Item = DeviceId> + use<> {
        (0..self.devices.len()).map(DeviceId::new)
    }

    /// Bytes of the cache device, if there is one.
    pub fn cache_capacity(&self) -> Option<Bytes> {
        self.devices.first().map(|cache| cache.capacity())
    }

    /// When the next device is due.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.due_ns.iter().copied().min().filter(|due| *due < u64::MAX)
    }

    /// Sends a command.
    pub fn submit(&mut self, id: DeviceId, now_ns: u64, command: Command) {
        let Command { op, offset, length, .. } = command;
        let device = &mut self.devices[id.index()];
        device.submit(Nanos(now_ns), command);
        self.due_ns[id.index()] = due_ns(device);
        self.uses[id.index()].submitted(Nanos(now_ns), op, length);
        if id == DeviceId::CACHE {
            self.groups.submitted(op, offset.0, length.0);
        }
    }

    /// Whether a device is due at `now_ns`.
    #[inline]
    pub fn is_due(&self, id: DeviceId, now_ns: u64) -> bool {
        self.due_ns[id.index()] <= now_ns
    }

    /// Lets a device that is due work up to `now_ns`; returns what is done, to be handed back with
    /// [`MachineDevices::keep`].
    pub fn advance(&mut self, id: DeviceId, now_ns: u64) -> Vec<Completion> {
        debug_assert!(self.is_due(id, now_ns), "only a device that is due has work to do");
        let mut done = std::mem::take(&mut self.done);
        done.clear();
        let index = id.index();
        let device = &mut self.devices[index];
        device.advance(Nanos(now_ns), &mut done);
        self.due_ns[index] = due_ns(device);
        let used = &mut self.uses[index];
        done.iter().for_each(|_| used.completed(Nanos(now_ns)));
        done
    }

    /// Keeps the memory of completions that have been dealt with.
    pub fn keep(&mut self, done: Vec<Completion>) {
        self.done = done;
    }

    /// How each device was used until now.
    pub fn uses(&self, now_ns: u64) -> Vec<DeviceUse> {
        let pairs = self.devices.iter().zip(&self.uses);
        pairs.map(|(device, used)| DeviceUse::new(used, device.report(Nanos(now_ns)))).collect()
    }

    /// What was sent to each group of channels that the cache device shows.
    pub fn groups(&self) -> &[GroupUse] {
        self.groups.all()
    }

    /// Checks every device, and that its commands are counted. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        for (number, (device, used)) in self.devices.iter().zip(&self.uses).enumerate() {
            device.audit().map_err(|error| format!("device {number}: {error}"))?;
            let (inside, known) = (device.outstanding() as u64, used.population.inside());
            if inside != known {
                return Err(format!("device {number}: {inside} inside, {known} counted"));
            }
        }
        Ok(())
    }
}

fn due_ns(device: &AnyDevice) -> u64 {
    device.next_due().map_or(u64::MAX, |due| due.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_device::served::{FixedLatency, FixedSettings};
    use cachewright_types::{Op, TenantId};

    fn read(tag: u64) -> Command {
        let (offset, length) = (Bytes(0), Bytes(4096));
        Command { tag, op: Op::Read, offset, length, tenant: TenantId(0) }
    }

    #[test]
    fn devices_are_due_each_at_its_time_and_count_what_they_did() {
        let device = |read_ns| {
            let settings = FixedSettings { read: Nanos(read_ns), ..FixedSettings::default() };
            Box::new(FixedLatency::new(&settings).unwrap()) as AnyDevice
        };
        let mut devices = MachineDevices::new(vec![device(30), device(10)]);
        let [cache, backing] = [DeviceId::CACHE, DeviceId(1)];
        assert_eq!(devices.ids().collect::<Vec<_>>(), [cache, backing]);
        assert_eq!(devices.next_due_ns(), None);
        devices.submit(cache, 5, read(1));
        devices.submit(backing, 5, read(2));
        assert_eq!(devices.next_due_ns(), Some(15));
        assert!(!devices.is_due(cache, 15) && devices.is_due(backing, 15));
        let done = devices.advance(backing, 15);
        assert_eq!((done.len(), done[0].tag, devices.next_due_ns()), (1, 2, Some(35)));
        assert_eq!(devices.audit(), Ok(()));
        devices.keep(done);
        let done = devices.advance(cache, 35);
        assert_eq!((done[0].tag, devices.next_due_ns()), (1, None));
        assert_eq!(devices.audit(), Ok(()));
    }
}
