//! Which requests of a guest are under way, in memory that outlives the server.
//!
//! The front end keeps the memory and gives it to the next server, which carries the requests out
//! that this one has begun and not answered. For each queue there is a header of 16 bytes
//! (features, version, descriptors, the last that was used, the index of what is used) and 16 bytes
//! per descriptor: whether it is under way, and its number among all that were. An answer goes
//! through three places: the descriptor is noted as the last one, the index of the ring moves, the
//! descriptor is under way no more. A kill between the second and the third is seen by the index.
//! Source: "Inflight I/O tracking" of the vhost-user protocol.

use super::message::InflightLayout;
use super::ring::MAX_RING_SIZE;
use super::session::MAX_QUEUES;
use crate::io::IoError;
use crate::io::shared::{map_file, new_memory};
use std::os::fd::OwnedFd;
use vm_memory::mmap::MmapRegion;
use vm_memory::volatile_memory::VolatileMemory;
use vm_memory::{Bytes, VolatileSlice};

const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 16;
/// The part of each queue begins at a multiple of it.
const ALIGNMENT: usize = 64;
const VERSION: u16 = 1;

const VERSION_AT: usize = 8;
const COUNT_AT: usize = 10;
const LAST_AT: usize = 12;
const USED_AT: usize = 14;
/// In the entry of a descriptor.
const NUMBER_AT: usize = 8;

fn queue_bytes(queue_size: u16) -> usize {
    (HEADER_BYTES + ENTRY_BYTES * usize::from(queue_size)).next_multiple_of(ALIGNMENT)
}

/// The memory; see the top of the file.
#[derive(Debug)]
pub struct InflightMemory {
    mapping: MmapRegion,
    layout: InflightLayout,
    /// The number of the next request, by queue.
    numbers: Vec<u64>,
}

impl InflightMemory {
    /// New memory for so many queues, and the descriptor by which others have it. Errors: the
    /// system's, or queues that there cannot be.
    pub fn new(queues: u16, queue_size: u16) -> Result<(InflightMemory, OwnedFd), IoError> {
        let bytes = u64::from(queues) * queue_bytes(queue_size) as u64;
        let layout = InflightLayout { bytes, offset: 0, queues, queue_size };
        check(layout)?;
        let file = new_memory("cachewright-inflight", bytes)?;
        let own = file.try_clone().map_err(|_| IoError::IO)?;
        Ok((InflightMemory::open(own, layout)?, file))
    }

    /// Memory that another server may have written. Errors: it is not all there.
    pub fn open(file: OwnedFd, layout: InflightLayout) -> Result<InflightMemory, IoError> {
        check(layout)?;
        let mapping = map_file(file, layout.offset, layout.bytes)?;
        Ok(InflightMemory { mapping, layout, numbers: vec![0; usize::from(layout.queues)] })
    }

    /// How it is laid out.
    pub fn layout(&self) -> InflightLayout {
        self.layout
    }

    fn slice(&self, queue: usize) -> Result<VolatileSlice<'_>, IoError> {
        if queue >= usize::from(self.layout.queues) {
            return Err(IoError::INVALID);
        }
        let bytes = queue_bytes(self.layout.queue_size);
        self.mapping.get_slice(queue * bytes, bytes).map_err(|_| IoError::INVALID)
    }

    /// A ring of so many descriptors begins, whose next request is used at this index. Returns what
    /// is under way, in its order; nothing if the memory is new.
    pub fn begin_ring(
        &mut self,
        queue: usize,
        size: u16,
        next_used: u16,
    ) -> Result<Option<Vec<u16>>, IoError> {
        if size > self.layout.queue_size {
            return Err(IoError::INVALID);
        }
        let slice = self.slice(queue)?;
        let is_new = read::<u16>(&slice, VERSION_AT)? != VERSION;
        if is_new {
            write(&slice, COUNT_AT, size)?;
            write(&slice, USED_AT, next_used)?;
            write(&slice, VERSION_AT, VERSION)?;
            self.numbers[queue] = 0;
            return Ok(None);
        }
        if read::<u16>(&slice, USED_AT)? != next_used {
            let last = read::<u16>(&slice, LAST_AT)?;
            if last >= size {
                return Err(IoError::INVALID);
            }
            write::<u8>(&slice, entry(last), 0)?;
            write(&slice, USED_AT, next_used)?;
        }
        let mut under_way = Vec::new();
        for head in 0..size {
            if read::<u8>(&slice, entry(head))? == 1 {
                under_way.push((read::<u64>(&slice, entry(head) + NUMBER_AT)?, head));
            }
        }
        under_way.sort_unstable();
        let next = under_way.last().map_or(0, |(number, _)| number.wrapping_add(1));
        self.numbers[queue] = next;
        Ok(Some(under_way.into_iter().map(|(_, head)| head).collect()))
    }

    /// A request is under way.
    pub fn begin(&mut self, queue: usize, head: u16) -> Result<(), IoError> {
        let number = *self.numbers.get(queue).ok_or(IoError::INVALID)?;
        let slice = self.slice(queue)?;
        write(&slice, entry(head) + NUMBER_AT, number)?;
        write::<u8>(&slice, entry(head), 1)?;
        self.numbers[queue] = number.wrapping_add(1);
        Ok(())
    }

    /// A request is about to be used.
    pub fn note_last(&self, queue: usize, head: u16) -> Result<(), IoError> {
        write(&self.slice(queue)?, LAST_AT, head)
    }

    /// It was used, and the next one will be at this index.
    pub fn end(&self, queue: usize, head: u16, next_used: u16) -> Result<(), IoError> {
        let slice = self.slice(queue)?;
        write::<u8>(&slice, entry(head), 0)?;
        write(&slice, USED_AT, next_used)
    }
}

/// Errors: queues that there cannot be, or too little memory for them.
fn check(layout: InflightLayout) -> Result<(), IoError> {
    let InflightLayout { bytes, queues, queue_size, .. } = layout;
    let is_sized = (1..=MAX_QUEUES).contains(&usize::from(queues))
        && (1..=MAX_RING_SIZE).contains(&queue_size)
        && bytes >= u64::from(queues) * queue_bytes(queue_size) as u64;
    if is_sized { Ok(()) } else { Err(IoError::INVALID) }
}

fn entry(head: u16) -> usize {
    HEADER_BYTES + ENTRY_BYTES * usize::from(head)
}

// A kill may come between any two writes: each is done before the next.
fn write<T: vm_memory::AtomicAccess>(
    slice: &VolatileSlice<'_>,
    at: usize,
    value: T,
) -> Result<(), IoError> {
    let stored = slice.store(value, at, std::sync::atomic::Ordering::SeqCst);
    stored.map_err(|_| IoError::INVALID)
}

fn read<T: vm_memory::AtomicAccess>(slice: &VolatileSlice<'_>, at: usize) -> Result<T, IoError> {
    slice.load(at, std::sync::atomic::Ordering::SeqCst).map_err(|_| IoError::INVALID)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    fn again(file: &OwnedFd, layout: InflightLayout) -> InflightMemory {
        InflightMemory::open(file.try_clone().unwrap(), layout).unwrap()
    }

    #[test]
    fn the_next_server_finds_what_was_under_way_in_its_order() {
        let (mut memory, file) = InflightMemory::new(2, 8).unwrap();
        let layout = memory.layout();
        assert_eq!(memory.begin_ring(1, 8, 40).unwrap(), None);
        [5, 0, 7, 2].iter().for_each(|head| memory.begin(1, *head).unwrap());
        memory.note_last(1, 0).unwrap();
        memory.end(1, 0, 41).unwrap();
        let mut next = again(&file, layout);
        assert_eq!(next.begin_ring(1, 8, 41).unwrap(), Some(vec![5, 7, 2]));
        next.begin(1, 0).unwrap();
        assert_eq!(again(&file, layout).begin_ring(1, 8, 41).unwrap(), Some(vec![5, 7, 2, 0]));
        assert_eq!(next.begin_ring(0, 8, 0).unwrap(), None, "each queue for itself");
    }

    #[test]
    fn a_kill_behind_the_index_of_the_ring_repeats_no_request() {
        let (mut memory, file) = InflightMemory::new(1, 8).unwrap();
        let layout = memory.layout();
        memory.begin_ring(0, 8, 65535).unwrap();
        [3, 4].iter().for_each(|head| memory.begin(0, *head).unwrap());
        memory.note_last(0, 3).unwrap();
        let before = again(&file, layout).begin_ring(0, 8, 65535).unwrap();
        assert_eq!(before, Some(vec![3, 4]), "it was not used");
        let after = again(&file, layout).begin_ring(0, 8, 0).unwrap();
        assert_eq!(after, Some(vec![4]), "it was used, and not noted");
    }

    #[test]
    fn memory_that_cannot_be_is_refused() {
        assert!(InflightMemory::new(0, 8).is_err() && InflightMemory::new(1, 0).is_err());
        assert!(InflightMemory::new(u16::MAX, 8).is_err());
        assert!(InflightMemory::new(1, MAX_RING_SIZE + 1).is_err());
        let (memory, file) = InflightMemory::new(2, 8).unwrap();
        for layout in [
            InflightLayout { queues: 3, ..memory.layout() },
            InflightLayout { bytes: u64::MAX, ..memory.layout() },
            InflightLayout { offset: 4096, ..memory.layout() },
        ] {
            assert!(InflightMemory::open(file.try_clone().unwrap(), layout).is_err());
        }
        let mut memory = memory;
        assert!(memory.begin_ring(0, 16, 0).is_err() && memory.begin_ring(2, 8, 0).is_err());
        assert!(memory.begin(2, 0).is_err());
    }
}
