//! A split ring of virtio: requests that a guest makes available, and those that are used.
//!
//! All that the guest wrote is copied once, checked, and used in the copy. What breaks the rules is
//! a fault of the ring, which is served no more: there is no answer that the guest could trust.
//! Source: "Split Virtqueues" of Virtual I/O Device (VIRTIO) Version 1.2.

use super::memory::SharedMemory;
use crate::io::IoError;
use std::fmt;
use std::sync::atomic::{Ordering, fence};

/// Descriptors of a ring at most.
pub const MAX_RING_SIZE: u16 = 1024;

const DESCRIPTOR_BYTES: u64 = 16;
const HAS_NEXT: u16 = 1;
const IS_WRITABLE: u16 = 2;
const IS_INDIRECT: u16 = 4;
/// The driver wants no signals.
const NO_INTERRUPT: u16 = 1;

/// Why a ring is served no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingFault {
    /// It is not where the guest has shared memory, or not aligned.
    Misplaced,
    /// More requests are available than it has descriptors.
    Jump,
    /// A number of a descriptor that there is not.
    Number,
    /// Descriptors that follow each other in a circle, or are too many.
    Loop,
    /// A table of descriptors that is none, or is within another.
    Table,
    /// A descriptor of memory that the guest has not shared.
    Memory,
    /// What the device writes comes before what it reads, or there is no place for the answer.
    Order,
}

impl fmt::Display for RingFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            RingFault::Misplaced => "a ring outside of its memory",
            RingFault::Jump => "more requests than descriptors",
            RingFault::Number => "the number of a descriptor that there is not",
            RingFault::Loop => "descriptors that follow each other in a circle",
            RingFault::Table => "a table of descriptors that is none",
            RingFault::Memory => "an address outside of its memory",
            RingFault::Order => "a request without a header, or without a place for its status",
        })
    }
}

impl From<IoError> for RingFault {
    fn from(_: IoError) -> RingFault {
        RingFault::Memory
    }
}

/// A part of a guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first byte.
    pub guest: u64,
    /// Bytes.
    pub bytes: u32,
}

/// A request as the guest describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// What the device reads, in order.
    pub readable: Vec<Segment>,
    /// What it writes, in order.
    pub writable: Vec<Segment>,
}

/// A descriptor as it was copied.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    segment: Segment,
    flags: u16,
    next: u16,
}

impl Descriptor {
    fn parse(bytes: &[u8; DESCRIPTOR_BYTES as usize]) -> Descriptor {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *bytes;
        Descriptor {
            segment: Segment {
                guest: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
                bytes: u32::from_le_bytes([i, j, k, l]),
            },
            flags: u16::from_le_bytes([m, n]),
            next: u16::from_le_bytes([o, p]),
        }
    }
}

/// Where a ring lies in the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlaces {
    /// The table of descriptors.
    pub descriptors: u64,
    /// What the driver has made available: flags, index, entries, and when it wants a signal.
    pub available: u64,
    /// What the device has used: flags, index, entries, and when it wants a signal.
    pub used: u64,
}

/// Bytes of the parts of a ring with so many descriptors: the table, what is available, what is
/// used.
pub fn part_bytes(size: u16) -> [u64; 3] {
    let size = u64::from(size);
    [DESCRIPTOR_BYTES * size, 6 + 2 * size, 6 + 8 * size]
}

/// A ring; see the top of the file.
#[derive(Debug)]
pub struct SplitRing {
    size: u16,
    places: RingPlaces,
    /// The index of the next request that is taken.
    next_available: u16,
    /// The index of the next one that is used.
    next_used: u16,
    /// Both sides say when they want a signal.
    has_event_index: bool,
    /// Where `next_used` was when the driver was last considered for a signal.
    considered: u16,
}

impl SplitRing {
    /// A ring that goes on at this request. Errors: it is not wholly in the guest's memory.
    pub fn new(
        memory: &SharedMemory,
        size: u16,
        places: RingPlaces,
        next_available: u16,
        has_event_index: bool,
    ) -> Result<SplitRing, RingFault> {
        let RingPlaces { descriptors, available, used } = places;
        let is_sized = size.is_power_of_two() && size <= MAX_RING_SIZE;
        let parts = [(descriptors, 16), (available, 2), (used, 4)];
        let is_there = parts.iter().zip(part_bytes(size)).all(|((place, alignment), bytes)| {
            place.is_multiple_of(*alignment) && memory.has(*place, bytes)
        });
        if !is_sized || !is_there {
            return Err(RingFault::Misplaced);
        }
        let next_used = memory.load(used + 2)?;
        let considered = next_used;
        Ok(SplitRing { size, places, next_available, next_used, has_event_index, considered })
    }

    /// Its descriptors.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// The index of the next request that is taken.
    pub fn next_available(&self) -> u16 {
        self.next_available
    }

    /// The index of the next request that is used.
    pub fn next_used(&self) -> u16 {
        self.next_used
    }

    /// It goes on at this request.
    pub fn set_next_available(&mut self, index: u16) {
        self.next_available = index;
    }

    /// Requests that wait. Errors: more than there can be.
    pub fn waiting(&self, memory: &SharedMemory) -> Result<u16, RingFault> {
        let waiting = memory.load(self.places.available + 2)?.wrapping_sub(self.next_available);
        if waiting <= self.size { Ok(waiting) } else { Err(RingFault::Jump) }
    }

    /// The first descriptor of the next request that waits. Errors: there is none of this number.
    pub fn take(&mut self, memory: &SharedMemory) -> Result<u16, RingFault> {
        let entry = u64::from(self.next_available % self.size);
        let head = memory.load(self.places.available + 4 + 2 * entry)?;
        if head >= self.size {
            return Err(RingFault::Number);
        }
        self.next_available = self.next_available.wrapping_add(1);
        Ok(head)
    }

    /// The request that begins at a descriptor. Errors: the guest has broken the rules.
    pub fn chain(&self, memory: &SharedMemory, head: u16) -> Result<Chain, RingFault> {
        let mut chain = Chain::default();
        let mut number = head;
        for _ in 0..self.size {
            if number >= self.size {
                return Err(RingFault::Number);
            }
            let mut bytes = [0; DESCRIPTOR_BYTES as usize];
            let place = self.places.descriptors + DESCRIPTOR_BYTES * u64::from(number);
            memory.read(place, &mut bytes)?;
            let descriptor = Descriptor::parse(&bytes);
            if descriptor.flags & IS_INDIRECT != 0 {
                // A table is the last of its chain, and nothing can follow.
                return match descriptor.flags & HAS_NEXT {
                    0 => indirect(memory, descriptor.segment, chain),
                    _ => Err(RingFault::Table),
                };
            }
            chain.add(memory, descriptor)?;
            if descriptor.flags & HAS_NEXT == 0 {
                return Ok(chain);
            }
            number = descriptor.next;
        }
        Err(RingFault::Loop)
    }

    /// A request is used; the device has written so many bytes. Errors: the ring is there no more.
    pub fn add_used(
        &mut self,
        memory: &SharedMemory,
        head: u16,
        written: u32,
    ) -> Result<(), RingFault> {
        let entry = u64::from(self.next_used % self.size);
        let [head, written] = [u32::from(head), written].map(u32::to_le_bytes);
        memory.write(self.places.used + 4 + 8 * entry, &[head, written].concat())?;
        self.next_used = self.next_used.wrapping_add(1);
        memory.store(self.places.used + 2, self.next_used)?;
        Ok(())
    }

    /// Whether the driver wants a signal for what was used since the last call.
    pub fn wants_signal(&mut self, memory: &SharedMemory) -> Result<bool, RingFault> {
        let before = std::mem::replace(&mut self.considered, self.next_used);
        if before == self.next_used {
            return Ok(false);
        }
        // What was used is there before it is looked up whether that is to be said.
        fence(Ordering::SeqCst);
        if !self.has_event_index {
            return Ok(memory.load(self.places.available)? & NO_INTERRUPT == 0);
        }
        let wanted = memory.load(self.places.available + 4 + 2 * u64::from(self.size))?;
        let behind = self.next_used.wrapping_sub(wanted).wrapping_sub(1);
        Ok(behind < self.next_used.wrapping_sub(before))
    }

    /// The driver is to give a signal for the next request. Returns how many wait already, for
    /// which it gave none.
    pub fn ask_for_signal(&self, memory: &SharedMemory) -> Result<u16, RingFault> {
        if self.has_event_index {
            let place = self.places.used + 4 + 8 * u64::from(self.size);
            memory.store(place, self.next_available)?;
        }
        // The wish is there before it is looked up what came before it.
        fence(Ordering::SeqCst);
        self.waiting(memory)
    }
}

/// A chain goes on in a table of its own.
fn indirect(memory: &SharedMemory, table: Segment, mut chain: Chain) -> Result<Chain, RingFault> {
    let bytes = u64::from(table.bytes);
    let count = bytes / DESCRIPTOR_BYTES;
    let is_table = bytes.is_multiple_of(DESCRIPTOR_BYTES) && bytes > 0;
    if !is_table || count > u64::from(MAX_RING_SIZE) {
        return Err(RingFault::Table);
    }
    let mut copy = vec![0; table.bytes as usize];
    memory.read(table.guest, &mut copy)?;
    let (descriptors, _) = copy.as_chunks::<{ DESCRIPTOR_BYTES as usize }>();
    let mut number = 0;
    for _ in 0..count {
        let descriptor = descriptors.get(number).ok_or(RingFault::Number)?;
        let descriptor = Descriptor::parse(descriptor);
        if descriptor.flags & IS_INDIRECT != 0 {
            return Err(RingFault::Table);
        }
        chain.add(memory, descriptor)?;
        if descriptor.flags & HAS_NEXT == 0 {
            return Ok(chain);
        }
        number = usize::from(descriptor.next);
    }
    Err(RingFault::Loop)
}

impl Chain {
    fn add(&mut self, memory: &SharedMemory, descriptor: Descriptor) -> Result<(), RingFault> {
        let Segment { guest, bytes } = descriptor.segment;
        if !memory.has(guest, u64::from(bytes)) {
            return Err(RingFault::Memory);
        }
        if descriptor.flags & IS_WRITABLE != 0 {
            self.writable.push(descriptor.segment);
        } else if self.writable.is_empty() {
            self.readable.push(descriptor.segment);
        } else {
            return Err(RingFault::Order);
        }
        Ok(())
    }
}

/// Bytes of segments.
pub fn bytes_of(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| u64::from(segment.bytes)).sum()
}

/// The segments behind the first `bytes` bytes of all.
pub fn behind(segments: &[Segment], bytes: u64) -> Vec<Segment> {
    let mut left = bytes;
    let mut rest = Vec::with_capacity(segments.len());
    for segment in segments {
        let passed = left.min(u64::from(segment.bytes)) as u32;
        left -= u64::from(passed);
        if passed < segment.bytes {
            let guest = segment.guest + u64::from(passed);
            rest.push(Segment { guest, bytes: segment.bytes - passed });
        }
    }
    rest
}

/// Copies what segments hold, as far as `into` takes it.
pub fn gather(
    memory: &SharedMemory,
    segments: &[Segment],
    mut into: &mut [u8],
) -> Result<(), IoError> {
    for segment in segments {
        let bytes = into.len().min(segment.bytes as usize);
        let (part, rest) = std::mem::take(&mut into).split_at_mut(bytes);
        memory.read(segment.guest, part)?;
        into = rest;
    }
    Ok(())
}

/// Copies bytes into segments, as far as they take them.
pub fn scatter(
    memory: &SharedMemory,
    segments: &[Segment],
    mut bytes: &[u8],
) -> Result<(), IoError> {
    for segment in segments {
        let (part, rest) = bytes.split_at(bytes.len().min(segment.bytes as usize));
        memory.write(segment.guest, part)?;
        bytes = rest;
    }
    Ok(())
}
