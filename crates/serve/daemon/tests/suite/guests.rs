//! A driver of virtio disks, of another project, at a server on real sockets, over both engines.

#![allow(unsafe_code)]

use crate::setup::{BLOCK, Guest, MIB, STACK, Setup, engines, formatted, pattern};
use cachewright_daemon::{LivePlan, Server};
use cachewright_types::Seed;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use virtio_driver::{
    VhostUser, VirtioBlkFeatureFlags, VirtioBlkQueue, VirtioBlkTransport, VirtioFeatureFlags,
};

/// Bytes that a driver has for data.
const MEMORY: usize = 1 << 20;
const QUEUES: usize = 2;

const GUESTS: &str = "[\"unix:live.sock\", \"vhost:{volume}.vhost\"]";

/// A driver with a disk.
struct Driver {
    transport: Box<VirtioBlkTransport>,
    queues: Vec<VirtioBlkQueue<'static, u32>>,
    /// Memory that the server sees, and where this process has it.
    memory: File,
    mapped: *mut u8,
}

impl Driver {
    fn connect(socket: &Path) -> Driver {
        let features = VirtioFeatureFlags::VERSION_1
            | VirtioFeatureFlags::RING_EVENT_IDX
            | VirtioFeatureFlags::RING_INDIRECT_DESC;
        let disk = VirtioBlkFeatureFlags::all().bits();
        let transport = VhostUser::new(socket.to_str().unwrap(), features.bits() | disk).unwrap();
        let mut transport: Box<VirtioBlkTransport> = Box::new(transport);
        let mut queues = VirtioBlkQueue::setup_queues(&mut *transport, QUEUES, 64).unwrap();
        queues.iter_mut().for_each(|queue| queue.set_used_notif_enabled(true));
        let memory = File::from(memfd_create("driver", MemfdFlags::CLOEXEC).unwrap());
        memory.set_len(MEMORY as u64).unwrap();
        let (access, sharing) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the mapping is new, of a file that keeps its length, and stays for ever.
        let mapped =
            unsafe { mmap(std::ptr::null_mut(), MEMORY, access, sharing, &memory, 0) }.unwrap();
        transport.map_mem_region(mapped as usize, MEMORY, memory.as_raw_fd(), 0).unwrap();
        Driver { transport, queues, memory, mapped: mapped.cast() }
    }

    fn capacity(&self) -> u64 {
        u64::from(self.transport.get_config().unwrap().capacity) * 512
    }

    /// Waits for the answers to all requests of a queue; returns what they say, by their numbers.
    fn finish(&mut self, queue: usize, count: usize) -> Vec<(u32, i32)> {
        self.transport.get_submission_notifier(queue).notify().unwrap();
        let signal = self.transport.get_completion_fd(queue);
        let mut found = Vec::new();
        while found.len() < count {
            signal.read().unwrap();
            found.extend(self.queues[queue].completions().map(|done| (done.context, done.ret)));
        }
        found.sort_unstable();
        found
    }

    fn write(&mut self, queue: usize, offset: u64, data: &[u8]) -> i32 {
        self.memory.write_all_at(data, 0).unwrap();
        // SAFETY: the memory is mapped for ever, and larger than the data.
        unsafe { self.queues[queue].write_raw(offset, self.mapped, data.len(), 0) }.unwrap();
        self.finish(queue, 1)[0].1
    }

    fn read(&mut self, queue: usize, offset: u64, bytes: usize) -> Vec<u8> {
        // SAFETY: as above.
        unsafe { self.queues[queue].read_raw(offset, self.mapped, bytes, 0) }.unwrap();
        assert_eq!(self.finish(queue, 1), [(0, 0)]);
        let mut data = vec![0; bytes];
        self.memory.read_exact_at(&mut data, 0).unwrap();
        data
    }
}

fn with_guests(engine: &str) -> Setup {
    formatted(&[("serve.engine", engine), ("serve.listen", GUESTS)])
}

#[test]
fn a_driver_and_a_client_see_the_same_volume() {
    for engine in engines() {
        let setup = with_guests(engine);
        let running = setup.start();
        let line = &running.lines[0];
        assert!(line.contains("live.sock, vhost:") && line.ends_with("a.vhost"), "{line}");
        let mut driver = Driver::connect(&setup.path("a.vhost"));
        assert_eq!(driver.capacity(), 8 * MIB);
        let data = pattern(5, 300 << 10);
        assert_eq!(driver.write(0, 8 * BLOCK, &data), 0);
        driver.queues[1].flush(7).unwrap();
        assert_eq!(driver.finish(1, 1), [(7, 0)]);
        assert!(driver.read(1, 8 * BLOCK, data.len()) == data);
        let mut client = running.connect("a");
        assert!(client.read(8 * BLOCK, data.len() as u64) == data);
        client.write(0, &pattern(6, BLOCK));
        assert!(driver.read(0, 0, BLOCK as usize) == pattern(6, BLOCK));
        driver.queues[0].write_zeroes(8 * BLOCK, BLOCK, true, 1).unwrap();
        driver.queues[0].write_zeroes(9 * BLOCK, BLOCK, false, 2).unwrap();
        driver.queues[0].discard(10 * BLOCK, BLOCK, 3).unwrap();
        assert_eq!(driver.finish(0, 3), [(1, 0), (2, 0), (3, 0)]);
        assert_eq!(driver.read(0, 8 * BLOCK, 2 * BLOCK as usize), vec![0; 2 * BLOCK as usize]);
        assert!(driver.write(0, 8 * MIB - BLOCK, &pattern(1, 2 * BLOCK)) < 0, "beyond the end");
        // Many at once, of both queues.
        for number in 0..20 {
            let queue = number as usize % QUEUES;
            let (offset, place) = (u64::from(number) * BLOCK, number as usize * 4096);
            // SAFETY: as above; each has a place of its own.
            unsafe {
                driver.queues[queue].read_raw(offset, driver.mapped.add(place), 4096, number)
            }
            .unwrap();
        }
        let ended = [driver.finish(0, 10), driver.finish(1, 10)].concat();
        assert!(ended.iter().all(|(_, outcome)| *outcome == 0), "{ended:?}");
        let stopped = running.stop();
        assert!(stopped.dirty_bytes > 0);
        assert!(!setup.path("a.vhost").exists(), "the socket is gone");
        let running = setup.start();
        let mut driver = Driver::connect(&setup.path("a.vhost"));
        let kept = driver.read(0, 20 * BLOCK, 100 << 10);
        assert!(kept == data[12 * BLOCK as usize..][..100 << 10], "{engine}");
        running.stop();
    }
}

#[test]
fn sockets_of_guests_come_and_go_with_their_volumes() {
    let stack = STACK.replace("[\"unix:live.sock\"]", "[\"vhost:{volume}.vhost\"]");
    let setup = formatted(&[]).with_stack(&stack);
    let running = setup.start();
    assert!(setup.path("a.vhost").exists() && setup.path("b.vhost").exists());
    setup.resize("a.img", 12 * MIB);
    let mut driver = Driver::connect(&setup.path("b.vhost"));
    assert_eq!(driver.write(0, 0, &pattern(1, BLOCK)), 0);
    let mut grown = Driver::connect(&setup.path("a.vhost"));
    assert_eq!(grown.capacity(), 8 * MIB);
    let without = stack.split("[[tenant]]\nname = \"b\"").next().unwrap().to_owned();
    running.reload(&without);
    assert_eq!(grown.capacity(), 12 * MIB);
    assert_eq!(grown.write(0, 11 * MIB, &pattern(2, BLOCK)), 0);
    while setup.path("b.vhost").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    running.stop();
}

#[test]
fn sockets_that_guests_cannot_have_are_refused() {
    let refused = |setup: &Setup, listen: &str| {
        let plan = setup.plan_with("serve.listen", listen).unwrap();
        Server::start(&plan, None).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let setup = formatted(&[]);
    let sentence = refused(&setup, "[\"vhost:disk.sock\"]");
    assert!(sentence.contains("for 2 volumes, expected `{volume}` in the path"), "{sentence}");
    let sentence = refused(&setup, "[\"vhost:{volume}.1\", \"vhost:{volume}.2\"]");
    assert!(sentence.contains("found more than one `vhost:`"), "{sentence}");
    let named = STACK.replace("name = \"b\"", "name = \"b\"\nclients = [\"carol\"]");
    let plan = LivePlan::read(
        &named.replace("unix:live.sock", "vhost:{volume}"),
        &setup.path("stack.toml"),
        &[],
    );
    // Certificates need TLS in any case; with it, guests still have none.
    let sentence = match plan {
        Err(error) => error.to_string(),
        Ok(plan) => Server::start(&plan, None).err().unwrap().to_string(),
    };
    assert!(sentence.contains("clients"), "{sentence}");
    assert!(!setup.path("a").exists());
}

/// A client of either protocol.
trait Client {
    fn reads(&mut self, offset: u64, bytes: u64) -> Vec<u8>;
    fn writes(&mut self, offset: u64, data: &[u8]);
    fn zeroes(&mut self, offset: u64, bytes: u64);
    fn trims(&mut self, offset: u64, bytes: u64);
    fn flushes(&mut self);
}

impl Client for Guest {
    fn reads(&mut self, offset: u64, bytes: u64) -> Vec<u8> {
        self.read(offset, bytes)
    }

    fn writes(&mut self, offset: u64, data: &[u8]) {
        self.write(offset, data);
    }

    fn zeroes(&mut self, offset: u64, bytes: u64) {
        self.zero(offset, bytes);
    }

    fn trims(&mut self, offset: u64, bytes: u64) {
        self.trim(offset, bytes);
    }

    fn flushes(&mut self) {
        self.flush();
    }
}

impl Client for Driver {
    fn reads(&mut self, offset: u64, bytes: u64) -> Vec<u8> {
        self.read(0, offset, bytes as usize)
    }

    fn writes(&mut self, offset: u64, data: &[u8]) {
        assert_eq!(self.write(1, offset, data), 0);
    }

    fn zeroes(&mut self, offset: u64, bytes: u64) {
        self.queues[0].write_zeroes(offset, bytes, true, 1).unwrap();
        assert_eq!(self.finish(0, 1), [(1, 0)]);
    }

    fn trims(&mut self, offset: u64, bytes: u64) {
        self.queues[1].discard(offset, bytes, 2).unwrap();
        assert_eq!(self.finish(1, 1), [(2, 0)]);
    }

    fn flushes(&mut self) {
        self.queues[0].flush(3).unwrap();
        assert_eq!(self.finish(0, 1), [(3, 0)]);
    }
}

/// Random requests, one after the other; returns what was read.
fn ask(client: &mut dyn Client, seed: u64) -> Vec<u8> {
    let (mut rng, mut found) = (Seed(seed).rng(), Vec::new());
    for number in 0..400 {
        let first = rng.below(2000);
        let bytes = (1 + rng.below(8)) * BLOCK;
        let offset = first * BLOCK;
        match rng.below(10) {
            0..4 => found.extend(client.reads(offset, bytes)),
            4..7 => client.writes(offset, &pattern(number as u8, bytes)),
            7 => client.zeroes(offset, bytes),
            8 => client.trims(offset, bytes),
            _ => client.flushes(),
        }
        // Hits: what was asked for just before.
        if rng.below(3) == 0 {
            found.extend(client.reads(offset, BLOCK));
        }
    }
    found
}

#[test]
fn requests_over_nbd_and_from_a_guest_are_decided_alike() {
    let served = |over_nbd: bool| {
        let setup = with_guests("threads");
        let running = setup.start();
        let mut client: Box<dyn Client> = match over_nbd {
            true => Box::new(running.connect("a")),
            false => Box::new(Driver::connect(&setup.path("a.vhost"))),
        };
        let found = ask(&mut *client, 11);
        drop(client);
        let lines = running.stop().lines;
        let counts: Vec<String> =
            lines.into_iter().filter(|line| line.contains("were in the cache")).collect();
        assert!(!counts.is_empty());
        (counts, found)
    };
    let (nbd, guest) = (served(true), served(false));
    assert_eq!(nbd.0, guest.0, "hits, admissions and evictions");
    assert!(nbd.1 == guest.1, "and what is read");
}
