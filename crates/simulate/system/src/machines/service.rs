//! How long devices take for each request of a workload, one request at a time.
//!
//! For: weighing what a block is worth to a cache. Must never know: caches, policies. Every device
//! is idle when a request begins: in the order of the trace, no sooner than it arrives, and when
//! the one before it on the same device is done. So it shows whether a disk's arm was near, and no
//! queue. Trims and flushes take no time here. Where a device is smaller than the addresses asked
//! for, these are taken modulo its capacity. Units: nanoseconds. Source: RC-RNN, section 4.1
//! ("replayed on real hardware", per device).

use super::requests::Requests;
use crate::recording::RecordError;
use cachewright_device::{AnyDevice, Command};
use cachewright_types::{Bytes, Nanos, Op, TenantId};

/// Requests between two calls of the progress function.
const PROGRESS_EVERY: usize = 1 << 14;
/// Addresses beyond a device begin anew at a multiple of this.
const ALIGNMENT: u64 = 1 << 20;

/// One device and when it is done with what it was asked.
struct SoloDevice {
    device: AnyDevice,
    free_ns: u64,
}

impl SoloDevice {
    /// Serves one request from an idle device; returns how long it takes.
    fn serve(&mut self, arrival_ns: u64, op: Op, offset: u64, length: u64) -> u64 {
        let now = Nanos(arrival_ns.max(self.free_ns));
        let mut done = Vec::new();
        self.device.advance(now, &mut done);
        let capacity = self.device.capacity().0;
        let length = length.min(capacity);
        let usable = (capacity - length) / ALIGNMENT * ALIGNMENT;
        let beyond = offset > capacity - length;
        let offset = if beyond { offset.checked_rem(usable).unwrap_or(0) } else { offset };
        let (offset, length) = (Bytes(offset), Bytes(length));
        self.device.submit(now, Command { tag: 0, op, offset, length, tenant: TenantId(0) });
        while done.is_empty() {
            let Some(due) = self.device.next_due() else { break };
            self.device.advance(due, &mut done);
        }
        let finished = done.first().map_or(now, |completion| completion.finished);
        self.free_ns = finished.0;
        finished.0 - now.0
    }
}

/// The time of each request on its device, 0 for trims and flushes; `device_of` is each tenant's
/// device. `progress` is told the requests served and stops by returning false.
pub fn service_times(
    requests: &Requests,
    devices: Vec<AnyDevice>,
    device_of: &[usize],
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<u64>, RecordError> {
    let mut devices: Vec<SoloDevice> =
        devices.into_iter().map(|device| SoloDevice { device, free_ns: 0 }).collect();
    let mut times = Vec::with_capacity(requests.len());
    for index in 0..requests.len() {
        if index.is_multiple_of(PROGRESS_EVERY) && !progress(index as u64) {
            return Err(RecordError::Cancelled);
        }
        let request = requests.get(index);
        let data = matches!(request.op, Op::Read | Op::Write);
        let place = device_of.get(request.tenant.index()).copied().unwrap_or_default();
        let device = devices.get_mut(place).filter(|_| data);
        times.push(device.map_or(0, |device| {
            device.serve(request.time.0, request.op, request.offset.0, request.length.0)
        }));
    }
    Ok(times)
}

/// How often longer each recorded request takes by `slow` than by `fast`, in the recording's order:
/// 1 where one of them takes no time, as for trims.
pub fn ratios(requests: &Requests, slow: &[u64], fast: &[u64]) -> Vec<f32> {
    let ratio = |index: usize| match (slow[index], fast[index]) {
        (0, _) | (_, 0) => 1.0,
        (slow, fast) => (slow as f64 / fast as f64) as f32,
    };
    (0..requests.len()).filter(|index| requests.is_recorded(*index)).map(ratio).collect()
}
