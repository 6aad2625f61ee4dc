//! A workload as requests in memory, each placed on its backing device, for timed replays: these
//! need addresses and lengths where a [`Recording`] has block ids.
//!
//! A tenant's volumes lie one behind the other, tenants that share a device too. `as-is` keeps all
//! distances within a volume; `compact` leaves out every chunk of the volume that no request ever
//! touches, and so fits what is used of a large volume on a smaller device; `dense` leaves out
//! every such block, for devices on which distances mean nothing. Memory: 35 bytes per request, 16
//! more where processes are named.

use crate::recording::{CHUNK_BYTES, CUT_OFF, LAST, RecordError, Recording, TRIM};
use cachewright_trace::Call;
use cachewright_trace::merge::WorkloadBatch;
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId, choices};
use std::ops::Range;

/// The place of a request that is not in the recording.
const NOWHERE: u32 = u32::MAX;
/// Requests at most for which memory is reserved at once.
const MAX_RESERVED: u64 = 1 << 22;

choices! {
    /// How volumes are put on devices.
    pub enum Layout {
        /// As they are where they fit, else compact.
        Auto = "auto",
        /// As they are.
        AsIs = "as-is",
        /// Without the chunks that are never touched.
        Compact = "compact",
        /// Without the blocks that are never touched.
        Dense = "dense",
    }
}

/// Requests by columns, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    time_ns: Vec<u64>,
    /// First byte on the tenant's backing device once placed.
    offset: Vec<u64>,
    length: Vec<u64>,
    op: Vec<Op>,
    tenant: Vec<u16>,
    /// The volume until placed; then the first access in the recording.
    place: Vec<u32>,
    /// The process of each and its pause; empty where no trace names processes.
    calls: Vec<Call>,
    spaces: u32,
}

/// The volumes of one workload on their devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedVolumes {
    /// The layout taken.
    pub layout: Layout,
    /// Bytes of the backing device that each tenant's volumes take.
    pub tenants: Vec<Range<u64>>,
}

/// A device too small for what is to be put on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// The device's number.
    pub device: usize,
    /// Bytes to be put on it.
    pub needed: Bytes,
    /// Bytes it has.
    pub capacity: Bytes,
    /// Whether that is without the chunks never touched.
    pub compact: bool,
}

/// One volume: where it begins on the device, and which of its chunks are there.
#[derive(Clone, Debug, Default)]
struct PlacedVolume {
    tenant: u16,
    /// Up to where reads and writes touch it, in whole chunks.
    extent: u64,
    /// Chunks touched by reads and writes, ascending; noted for a compact layout only.
    chunks: Vec<u64>,
    /// How many chunks are noted before those noted twice are dropped.
    tidy_at: usize,
    base: u64,
}

impl Requests {
    /// None yet; memory is reserved for so many (more may come).
    pub(crate) fn reserved(count: u64) -> Requests {
        let count = count.min(MAX_RESERVED) as usize;
        Requests {
            time_ns: Vec::with_capacity(count),
            offset: Vec::with_capacity(count),
            length: Vec::with_capacity(count),
            op: Vec::with_capacity(count),
            tenant: Vec::with_capacity(count),
            place: Vec::with_capacity(count),
            ..Requests::default()
        }
    }

    /// Adds a batch; trims are left out unless `trims`. Errors: more than `limit` requests.
    pub(crate) fn add(
        &mut self,
        batch: &WorkloadBatch,
        trims: bool,
        limit: u64,
    ) -> Result<(), RecordError> {
        let named = !batch.calls.is_empty() || !self.calls.is_empty();
        if named {
            self.calls.resize(self.len(), Call::default());
        }
        let mut first = 0;
        for kept in batch.op.split(|op| !trims && *op == Op::Trim) {
            self.add_rows(batch, first..first + kept.len(), named);
            first += kept.len() + 1;
        }
        if self.len() as u64 > limit { Err(RecordError::TooLong { limit }) } else { Ok(()) }
    }

    /// Adds some requests of a batch, `named` with their processes.
    fn add_rows(&mut self, batch: &WorkloadBatch, rows: Range<usize>, named: bool) {
        let ops = &batch.op[rows.clone()];
        let length = |(op, length): (&Op, &u64)| {
            (*length).max(u64::from(matches!(op, Op::Read | Op::Write)))
        };
        self.time_ns.extend_from_slice(&batch.time_ns[rows.clone()]);
        self.offset.extend_from_slice(&batch.offset_bytes[rows.clone()]);
        self.length.extend(ops.iter().zip(&batch.length_bytes[rows.clone()]).map(length));
        self.op.extend_from_slice(ops);
        self.tenant.extend_from_slice(&batch.tenant[rows.clone()]);
        self.place.extend_from_slice(&batch.space[rows.clone()]);
        if named {
            let call = |index: usize| batch.calls.get(index).copied().unwrap_or_default();
            self.calls.extend(rows.map(call));
        }
    }

    /// How many volumes there are.
    pub(crate) fn set_spaces(&mut self, spaces: usize) {
        self.spaces = spaces as u32;
    }

    /// Requests held.
    pub fn len(&self) -> usize {
        self.op.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.op.is_empty()
    }

    /// When a request arrives.
    pub fn time_ns(&self, index: usize) -> u64 {
        self.time_ns[index]
    }

    /// The process of a request, and its pause.
    pub fn call(&self, index: usize) -> Call {
        self.calls.get(index).copied().unwrap_or_default()
    }

    /// Whether a tenant's trace names processes.
    pub fn names_processes(&self, tenant: TenantId) -> bool {
        let mut calls = self.calls.iter().zip(&self.tenant);
        calls.any(|(call, owner)| *call != Call::default() && *owner == tenant.0)
    }

    /// Whose request it is.
    pub fn tenant(&self, index: usize) -> TenantId {
        TenantId(self.tenant[index])
    }

    /// A request as caches see it; its offset is that on the tenant's backing device.
    pub fn get(&self, index: usize) -> Request {
        Request {
            time: Nanos(self.time_ns[index]),
            offset: Bytes(self.offset[index]),
            length: Bytes(self.length[index]),
            op: self.op[index],
            tenant: self.tenant(index),
        }
    }

    /// Whether a request is in the recording, once placed.
    pub fn is_recorded(&self, index: usize) -> bool {
        self.place[index] != NOWHERE
    }

    /// Whether a request, once placed, goes past the cache.
    pub fn cut_off(&self, index: usize, recording: &Recording) -> bool {
        let flags = recording.flags.get(self.place[index] as usize).copied().unwrap_or_default();
        self.is_recorded(index) && flags & CUT_OFF != 0
    }

    /// Positions in the recording of a request's blocks of `1 << shift` bytes; for a trim, of those
    /// it trims.
    pub fn accesses(&self, index: usize, recording: &Recording, shift: u32) -> Range<usize> {
        let first = self.place[index] as usize;
        match self.op[index] {
            _ if self.place[index] == NOWHERE => 0..0,
            Op::Trim => {
                let last = recording.flags[first..].iter().position(|flags| flags & LAST != 0);
                first..first + last.map_or(0, |last| last + 1)
            }
            _ => first..first + blocks(self.offset[index], self.length[index], shift) as usize,
        }
    }

    /// Puts every request on its tenant's device and finds its accesses in the recording of the
    /// same workload with blocks of `1 << shift` bytes. `devices` holds the bytes of each device
    /// that may be used, `device_of` each tenant's device. Errors: a device that is too small.
    pub fn place(
        &mut self,
        recording: &Recording,
        shift: u32,
        layout: Layout,
        devices: &[Range<u64>],
        device_of: &[usize],
    ) -> Result<PlacedVolumes, TooSmall> {
        let dense = layout == Layout::Dense;
        let chunk_bytes = if dense { 1 << shift } else { CHUNK_BYTES.max(1 << shift) };
        let mut volumes = self.volumes(chunk_bytes);
        if matches!(layout, Layout::Compact | Layout::Dense) {
            self.note_chunks(&mut volumes, chunk_bytes);
        }
        let as_is = |volume: &PlacedVolume| volume.extent / chunk_bytes;
        let compact = |volume: &PlacedVolume| volume.chunks.len() as u64;
        let (layout, tenants) = match layout {
            Layout::Compact | Layout::Dense => {
                let chunks = lay_out(&mut volumes, compact, chunk_bytes, devices, device_of);
                (layout, chunks.map_err(|error| TooSmall { compact: true, ..error })?)
            }
            Layout::AsIs => {
                (layout, lay_out(&mut volumes, as_is, chunk_bytes, devices, device_of)?)
            }
            Layout::Auto => match lay_out(&mut volumes, as_is, chunk_bytes, devices, device_of) {
                Ok(tenants) => (Layout::AsIs, tenants),
                Err(_) => {
                    return self.place(recording, shift, Layout::Compact, devices, device_of);
                }
            },
        };
        for index in 0..self.len() {
            let volume = &volumes[self.place[index] as usize];
            let (start, end) =
                (self.offset[index], self.offset[index].saturating_add(self.length[index]));
            let within = |byte| match layout {
                Layout::Compact | Layout::Dense => volume.compacted(byte, chunk_bytes),
                Layout::AsIs | Layout::Auto => byte.min(volume.extent),
            };
            self.offset[index] = volume.base + within(start);
            self.length[index] = within(end) - within(start);
        }
        self.find_accesses(recording, shift);
        Ok(PlacedVolumes { layout, tenants })
    }

    /// The tenant and the extent of every volume.
    fn volumes(&self, chunk_bytes: u64) -> Vec<PlacedVolume> {
        let mut volumes = vec![PlacedVolume::default(); self.spaces as usize];
        for index in 0..self.len() {
            let volume = &mut volumes[self.place[index] as usize];
            volume.tenant = self.tenant[index];
            if matches!(self.op[index], Op::Read | Op::Write) {
                let end = self.offset[index].saturating_add(self.length[index]);
                volume.extent = volume.extent.max(end);
            }
        }
        for volume in &mut volumes {
            volume.extent = volume.extent.div_ceil(chunk_bytes).saturating_mul(chunk_bytes);
        }
        volumes
    }

    /// Notes the chunks of every volume that are touched.
    fn note_chunks(&self, volumes: &mut [PlacedVolume], chunk_bytes: u64) {
        for index in 0..self.len() {
            if !matches!(self.op[index], Op::Read | Op::Write) {
                continue;
            }
            let volume = &mut volumes[self.place[index] as usize];
            let end = self.offset[index].saturating_add(self.length[index]);
            let chunks = self.offset[index] / chunk_bytes..=(end - 1) / chunk_bytes;
            if volume.chunks.last() != Some(chunks.end()) || chunks.start() != chunks.end() {
                volume.chunks.extend(chunks);
            }
            if volume.chunks.len() >= volume.tidy_at {
                volume.tidy();
            }
        }
        volumes.iter_mut().for_each(PlacedVolume::tidy);
    }

    /// Replaces volumes by positions in the recording. A trim of no known block has left nothing
    /// there: of several at one time the first gets what there is, which is all the same.
    fn find_accesses(&mut self, recording: &Recording, shift: u32) {
        let (mut position, mut request) = (0, 0);
        for index in 0..self.len() {
            let trims = recording.flags.get(position).is_some_and(|flags| flags & TRIM != 0);
            let now = recording.times_ns().get(request) == Some(&self.time_ns[index]);
            self.place[index] = position as u32;
            let count = match self.op[index] {
                Op::Read | Op::Write => {
                    blocks(self.offset[index], self.length[index], shift) as usize
                }
                Op::Trim if trims && now => recording.accesses_of(request).len(),
                Op::Trim | Op::Flush => {
                    self.place[index] = NOWHERE;
                    continue;
                }
            };
            position += count;
            request += 1;
        }
    }
}

impl PlacedVolume {
    fn tidy(&mut self) {
        self.chunks.sort_unstable();
        self.chunks.dedup();
        self.tidy_at = 2 * self.chunks.len() + (1 << 16);
    }

    /// Where a byte comes to lie when chunks never touched are left out; one of those itself lies
    /// where the next touched one begins.
    fn compacted(&self, byte: u64, chunk_bytes: u64) -> u64 {
        let (chunk, within) = (byte / chunk_bytes, byte % chunk_bytes);
        let before = self.chunks.partition_point(|touched| *touched < chunk) as u64;
        let touched = self.chunks.get(before as usize) == Some(&chunk);
        before * chunk_bytes + if touched { within } else { 0 }
    }
}

/// Blocks of `1 << shift` bytes that `length` bytes from `offset` on touch.
fn blocks(offset: u64, length: u64, shift: u32) -> u64 {
    ((offset.saturating_add(length.max(1)) - 1) >> shift) - (offset >> shift) + 1
}

/// Gives every volume its base; returns each tenant's bytes.
fn lay_out(
    volumes: &mut [PlacedVolume],
    chunks: impl Fn(&PlacedVolume) -> u64,
    chunk_bytes: u64,
    devices: &[Range<u64>],
    device_of: &[usize],
) -> Result<Vec<Range<u64>>, TooSmall> {
    let mut used: Vec<u64> = devices.iter().map(|device| device.start).collect();
    let mut tenants = vec![0..0; device_of.len()];
    for (tenant, device) in device_of.iter().enumerate() {
        let start = used[*device];
        for volume in volumes.iter_mut().filter(|volume| usize::from(volume.tenant) == tenant) {
            volume.base = used[*device];
            let bytes = chunks(volume).saturating_mul(chunk_bytes);
            used[*device] = used[*device].saturating_add(bytes);
        }
        tenants[tenant] = start..used[*device];
    }
    let needed = used.iter().zip(devices).position(|(used, device)| *used > device.end);
    match needed {
        None => Ok(tenants),
        Some(device) => {
            let Range { start, end } = devices[device];
            let (needed, capacity) = (Bytes(used[device] - start), Bytes(end - start));
            Err(TooSmall { device, needed, capacity, compact: false })
        }
    }
}
