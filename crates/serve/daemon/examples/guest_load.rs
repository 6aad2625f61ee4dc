//! The load of a virtual machine at one vhost-user-blk disk, without a virtual machine.
//!
//! `guest_load SOCKET read|write|fill DEPTH SECONDS`: blocks of 4 KiB at random, DEPTH at a time in
//! one queue, with notices both ways as a guest's kernel asks for them. `fill` reads all of the
//! disk twice, and takes no notice of SECONDS. Prints one line: requests, requests per second, and
//! the median and the 99th percentile of their microseconds.

#![allow(unsafe_code)]

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::error::Error;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};
use virtio_driver::{
    VhostUser, VirtioBlkFeatureFlags, VirtioBlkQueue, VirtioBlkTransport, VirtioFeatureFlags,
};

const BLOCK: u64 = 4096;
const USAGE: &str = "usage: guest_load SOCKET read|write|fill DEPTH SECONDS";

/// What a run does.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    Read,
    Write,
    Fill,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [socket, load, depth, seconds] = words.as_slice() else { return Err(USAGE.into()) };
    let load = match load.as_str() {
        "read" => Load::Read,
        "write" => Load::Write,
        "fill" => Load::Fill,
        _ => return Err(USAGE.into()),
    };
    let (depth, lasts) = (depth.parse::<u16>()?, Duration::from_secs_f64(seconds.parse()?));

    let features = VirtioFeatureFlags::VERSION_1
        | VirtioFeatureFlags::RING_EVENT_IDX
        | VirtioFeatureFlags::RING_INDIRECT_DESC;
    let disk = VirtioBlkFeatureFlags::FLUSH | VirtioBlkFeatureFlags::MQ;
    let transport = VhostUser::new(socket, features.bits() | disk.bits())?;
    let mut transport: Box<VirtioBlkTransport> = Box::new(transport);
    let mut queue =
        VirtioBlkQueue::<u16>::setup_queues(&mut *transport, 1, 128)?.pop().ok_or("no queue")?;
    queue.set_used_notif_enabled(true);
    let length = usize::from(depth.max(1)) * BLOCK as usize;
    let memory = File::from(memfd_create("guest", MemfdFlags::CLOEXEC)?);
    memory.set_len(length as u64)?;
    let (access, sharing) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: the mapping is new, of a file that keeps its length, and stays for ever.
    let data = unsafe { mmap(std::ptr::null_mut(), length, access, sharing, &memory, 0) }?;
    let data: *mut u8 = data.cast();
    transport.map_mem_region(data as usize, length, memory.as_raw_fd(), 0)?;
    let blocks = u64::from(transport.get_config()?.capacity) * 512 / BLOCK;

    let (started, signal) = (Instant::now(), transport.get_completion_fd(0));
    let mut begun = vec![started; usize::from(depth)];
    let mut taken: Vec<u32> = Vec::new();
    let mut free: Vec<u16> = (0..depth).collect();
    let (mut asked, mut random) = (0_u64, 0x9E37_79B9_7F4A_7C15_u64);
    loop {
        let more = match load {
            Load::Fill => asked < 2 * blocks,
            Load::Read | Load::Write => started.elapsed() < lasts,
        };
        while more && let Some(place) = free.pop() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let block = if load == Load::Fill { asked } else { random } % blocks;
            let offset = usize::from(place) * BLOCK as usize;
            begun[usize::from(place)] = Instant::now();
            // SAFETY: the memory is mapped until the process ends, and each place has one request.
            unsafe {
                let at = data.add(offset);
                if load == Load::Write {
                    queue.write_raw(block * BLOCK, at, BLOCK as usize, place)
                } else {
                    queue.read_raw(block * BLOCK, at, BLOCK as usize, place)
                }
            }?;
            asked += 1;
        }
        if free.len() == usize::from(depth) {
            break;
        }
        if queue.avail_notif_needed() {
            transport.get_submission_notifier(0).notify()?;
        }
        if !queue.completions().has_next() {
            // The server may have made the signal one that does not block.
            poll(&mut [PollFd::from_borrowed_fd(signal.as_fd(), PollFlags::IN)], None)?;
            signal.read()?;
        }
        for done in queue.completions() {
            if done.ret != 0 {
                return Err(format!("a request failed: {}", done.ret).into());
            }
            taken.push(begun[usize::from(done.context)].elapsed().as_nanos() as u32);
            free.push(done.context);
        }
    }
    let passed = started.elapsed().as_secs_f64();
    if taken.is_empty() {
        return Err("found no time for a request, expected more SECONDS and DEPTH".into());
    }
    taken.sort_unstable();
    let at = |share: f64| f64::from(taken[(taken.len() as f64 * share) as usize]) / 1e3;
    let rate = taken.len() as f64 / passed;
    println!("{} {rate:.0} {:.1} {:.1}", taken.len(), at(0.5), at(0.99));
    Ok(())
}
