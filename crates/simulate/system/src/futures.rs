//! The futures of all accesses of a recording, for policies that need them: one backward pass for
//! all cases, and the service times by which a benefit is weighed.
//!
//! A trim is the end of a block: what comes behind it counts for no access before it. Memory: 4
//! bytes per access, and 8 per distinct block meanwhile. Source of the benefit: Ebrahimi et al.,
//! RC-RNN, equation 3.
//!
//! Service times are those of requests served one at a time (RC-RNN, section 4.1: "replayed on real
//! hardware", per device). Every device is idle when a request begins: in the order of the trace,
//! no sooner than it arrives, and when the one before it on the same device is done. So it shows
//! whether a disk's arm was near, and no queue. Trims and flushes take no time here. Where a device
//! is smaller than the addresses asked for, these are taken modulo its capacity.

use crate::machines::requests::Requests;
use crate::recording::{AHEAD, LAST, RecordError, Recording, TRIM, WRITE};
use cachewright_device::{AnyDevice, Command};
use cachewright_policy::{FutureColumn, NEVER, Need, entry};
use cachewright_types::{Bytes, Nanos, Op, TenantId};

/// Requests between two calls of the progress function.
const PROGRESS_EVERY: usize = 1 << 14;
/// Addresses beyond a device begin anew at a multiple of this.
const ALIGNMENT: u64 = 1 << 20;

/// What of the future goes with each access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FutureKind {
    /// Nothing.
    #[default]
    Nothing,
    /// The position of the block's next access.
    NextUse,
    /// What the block is worth from here on.
    Benefit,
}

/// The accesses to one block from a position on.
#[derive(Clone, Copy, Debug, Default)]
struct AccessesAhead {
    accesses: u32,
    reads: u32,
}

impl FutureKind {
    /// What the policy of that name declares; nothing if there is no such policy.
    pub fn of_policy(policy: &str) -> FutureKind {
        let needs = entry(policy).map(|entry| entry.needs).unwrap_or_default();
        if needs.contains(&Need::Benefit) {
            FutureKind::Benefit
        } else if needs.contains(&Need::Future) {
            FutureKind::NextUse
        } else {
            FutureKind::Nothing
        }
    }

    /// What goes with each access of `recording`; `ratios` are as in [`benefits`]. Nothing when
    /// there are too many accesses to number.
    pub fn column(self, recording: &Recording, ratios: &[f32]) -> Option<FutureColumn> {
        match self {
            FutureKind::Nothing => Some(FutureColumn::None),
            FutureKind::NextUse => recording.next_uses().map(FutureColumn::NextUse),
            FutureKind::Benefit => Some(FutureColumn::Benefit(benefits(recording, ratios))),
        }
    }

    /// The same as if the recording ended before its access number `end`, which begins a request:
    /// nothing from there on has any part in it.
    pub fn column_until(
        self,
        recording: &Recording,
        ratios: &[f32],
        end: usize,
    ) -> Option<FutureColumn> {
        match self {
            FutureKind::Nothing => Some(FutureColumn::None),
            FutureKind::NextUse => {
                let mut next = recording.next_uses()?;
                next.truncate(end);
                for next in next.iter_mut().filter(|next| **next as usize >= end) {
                    *next = NEVER;
                }
                Some(FutureColumn::NextUse(next))
            }
            FutureKind::Benefit => {
                Some(FutureColumn::Benefit(benefits_until(recording, ratios, end)))
            }
        }
    }
}

/// For each access the benefit of holding its block from there on. `ratios` say how
/// often longer the backing device takes than the cache device for each request of the recording,
/// trims among them; where it has no more they are taken to be equally fast.
pub fn benefits(recording: &Recording, ratios: &[f32]) -> Vec<f32> {
    benefits_until(recording, ratios, recording.len())
}

/// The same of the accesses before number `end`, as if there were no others.
fn benefits_until(recording: &Recording, ratios: &[f32], end: usize) -> Vec<f32> {
    let mut end = end.min(recording.len());
    let mut ahead = vec![AccessesAhead::default(); recording.distinct as usize];
    let mut benefits = vec![0.0; end];
    let mut request = recording.flags[..end].iter().filter(|flags| **flags & LAST != 0).count();
    while end > 0 {
        let before = recording.flags[..end - 1].iter().rposition(|flags| flags & LAST != 0);
        let start = before.map_or(0, |last| last + 1);
        request = request.saturating_sub(1);
        let ratio = ratios.get(request).copied().unwrap_or(1.0);
        for position in (start..end).rev() {
            let (flags, ahead) =
                (recording.flags[position], &mut ahead[recording.ids[position] as usize]);
            if flags & TRIM != 0 {
                *ahead = AccessesAhead::default();
                continue;
            }
            if flags & AHEAD != 0 {
                continue;
            }
            ahead.accesses += 1;
            ahead.reads += u32::from(flags & WRITE == 0);
            benefits[position] = ahead.benefit(f64::from(ratio), end - start);
        }
        end = start;
    }
    benefits
}

impl AccessesAhead {
    /// Equation 3, the first of the accesses being that of a request of `blocks`.
    fn benefit(self, ratio: f64, blocks: usize) -> f32 {
        let (accesses, reads) = (f64::from(self.accesses), f64::from(self.reads));
        (ratio * (accesses - 1.0) / blocks as f64 * (1.0 + reads / accesses)) as f32
    }
}

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
pub fn service_ratios(requests: &Requests, slow: &[u64], fast: &[u64]) -> Vec<f32> {
    let ratio = |index: usize| match (slow[index], fast[index]) {
        (0, _) | (_, 0) => 1.0,
        (slow, fast) => (slow as f64 / fast as f64) as f32,
    };
    (0..requests.len()).filter(|index| requests.is_recorded(*index)).map(ratio).collect()
}
