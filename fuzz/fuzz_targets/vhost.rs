//! Guests with virtio disks: any message, and any content of a ring, its descriptors and requests.
#![no_main]

use cachewright_live::io::shared::new_memory;
use cachewright_live::vhost::disk::DiskRequest;
use cachewright_live::vhost::memory::SharedMemory;
use cachewright_live::vhost::message::{Header, MemoryRegion, VhostRequest};
use cachewright_live::vhost::ring::{RingPlaces, SplitRing, bytes_of};
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;

const MEMORY: u64 = 64 << 10;
const SIZE: u16 = 16;
const PLACES: RingPlaces = RingPlaces { descriptors: 0, available: 0x100, used: 0x140 };

thread_local! {
    static SHARED: RefCell<SharedMemory> = RefCell::new(shared());
}

fn shared() -> SharedMemory {
    let mut memory = SharedMemory::default();
    let region = MemoryRegion { guest: 0, bytes: MEMORY, user: 0, offset: 0 };
    let added = new_memory("fuzz", MEMORY).and_then(|file| memory.add(region, file));
    assert_eq!(added, Ok(()), "the system has so much memory");
    memory
}

/// Takes what the ring offers, and answers it. Nothing that a guest writes takes more rounds than
/// the ring has descriptors.
fn serve(memory: &SharedMemory, has_event_index: bool) {
    let Ok(mut ring) = SplitRing::new(memory, SIZE, PLACES, 0, has_event_index) else { return };
    let mut taken = 0;
    while ring.waiting(memory).is_ok_and(|waiting| waiting > 0) {
        taken += 1;
        assert!(taken <= SIZE, "the ring does not change meanwhile");
        let Ok(head) = ring.take(memory) else { return };
        let Ok(chain) = ring.chain(memory, head) else { return };
        assert!(chain.readable.len() + chain.writable.len() <= 2048);
        let Ok(request) = DiskRequest::parse(memory, chain) else { return };
        assert!(memory.has(request.status, 1), "the place of a status is the guest's");
        let segments = request.from_guest.iter().chain(&request.to_guest);
        for segment in segments {
            assert!(memory.has(segment.guest, u64::from(segment.bytes)));
        }
        let _bytes = bytes_of(&request.to_guest);
    }
    // Answers go to a place of their own, beside what is read.
    let _wants = ring.add_used(memory, 0, 1).and_then(|()| ring.wants_signal(memory));
    let _waiting = ring.ask_for_signal(memory);
}

fuzz_target!(|input: &[u8]| {
    if let Some((header, payload)) = input.split_first_chunk()
        && let Some(header) = Header::parse(header)
    {
        let _request = VhostRequest::parse(header.request, payload);
    }
    let Some((first, bytes)) = input.split_first() else { return };
    let _request = VhostRequest::parse(u32::from(*first), bytes);
    SHARED.with_borrow(|memory| {
        let mut all = vec![0; MEMORY as usize];
        let count = bytes.len().min(all.len());
        all[..count].copy_from_slice(&bytes[..count]);
        assert_eq!(memory.write(0, &all), Ok(()));
        serve(memory, first & 1 != 0);
    });
});
