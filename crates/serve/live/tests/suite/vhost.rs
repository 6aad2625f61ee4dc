//! Guests with virtio disks: what they ask for, what outlives a server, and what a guest that
//! breaks the rules costs others.

use crate::block_world::BLOCK;
use crate::vhost_guest::{
    DATA, DiskServer, MEMORY, RawGuest, SIZE, USER, ask_for_inflight, export, places,
};
use cachewright_live::front::{Caps, RequestKind};
use cachewright_live::io::Io;
use cachewright_live::vhost::disk::feature;
use cachewright_types::{Rng, Seed, TenantId};
use rustix::event::{EventfdFlags, eventfd};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

const NEXT: u16 = 1;
const WRITABLE: u16 = 2;
const INDIRECT: u16 = 4;

#[test]
fn what_a_guest_writes_it_reads_and_is_signalled_for() {
    let mut server = DiskServer::new(1);
    let mut guest = RawGuest::with_queues(&mut server, 0, 2);
    assert_eq!(guest.write_block(&mut server, 3, 7), 0);
    assert!(guest.was_called(0));
    assert_eq!(guest.read_block(&mut server, 3), [7; BLOCK as usize]);
    assert_eq!(guest.read_block(&mut server, 4), [0; BLOCK as usize]);
    // A flush by the other queue, whose status is all that there is.
    let place = guest.request(1, 0, 4, 0, 0, false);
    server.settle();
    assert_eq!((guest.take_used(1), guest.read(place, 1)), (vec![(0, 1)], vec![0]));
    let meter = server.service.clients.meter(TenantId(0));
    let counts = [RequestKind::Read, RequestKind::Write, RequestKind::Flush]
        .map(|kind| meter.kind(kind).latencies.count());
    assert_eq!(counts, [2, 1, 1]);
    assert_eq!((server.front().connections(), server.front().held_bytes()), (1, 0));
}

#[test]
fn a_guest_learns_the_name_of_its_disk_and_clears_ranges() {
    let mut server = DiskServer::new(2);
    let mut guest = RawGuest::with_queues(&mut server, 1, 1);
    let place = guest.request(0, 0, 8, 0, 20, true);
    server.settle();
    assert_eq!(guest.take_used(0), [(0, 21)]);
    assert_eq!((guest.read(place, 8), guest.read(place + 20, 1)), (b"volume-1".to_vec(), vec![0]));
    assert_eq!(guest.write_block(&mut server, 0, 9), 0);
    for (kind, flags, expected) in [(13, 1_u32, 0), (13, 0, 0), (11, 0, 0), (11, 1, 2), (99, 0, 2)]
    {
        let place = guest.request(0, 0, kind, 0, 16, false);
        let fields = [&0_u64.to_le_bytes()[..], &8_u32.to_le_bytes(), &flags.to_le_bytes()];
        guest.write(place, &fields.concat());
        server.settle();
        assert_eq!(guest.take_used(0), [(0, 1)]);
        assert_eq!(guest.read(place + 16, 1), [expected], "request {kind}, flags {flags}");
        if kind == 13 {
            assert_eq!(guest.read_block(&mut server, 0), [0; BLOCK as usize]);
        }
    }
}

#[test]
fn requests_beyond_the_disk_fail_and_the_queue_goes_on() {
    let mut server = DiskServer::new(3);
    let mut guest = RawGuest::with_queues(&mut server, 0, 1);
    let sectors = 10 * BLOCK / 512;
    for (kind, sector, bytes) in
        [(0, sectors, 512), (0, sectors - 1, 1024), (0, u64::MAX, 512), (0, 0, 100), (0, 0, 0)]
    {
        let place = guest.request(0, 0, kind, sector, bytes, true);
        server.settle();
        assert_eq!(guest.take_used(0), [(0, 1)]);
        assert_eq!(guest.read(place + u64::from(bytes), 1), [1], "{bytes} at {sector}");
    }
    assert_eq!(guest.write_block(&mut server, 9, 5), 0);
    assert!(server.vhost.take_faults().is_empty());
}

#[test]
fn a_disk_that_cannot_be_written_says_so_and_refuses() {
    let mut server = DiskServer::new(4);
    let mut read_only = export(0);
    read_only.read_only = true;
    server.front().change_export(TenantId(0), read_only);
    let mut guest = RawGuest::connect(&server, 0);
    let (features, _) = guest.ask(&mut server, 1, &[], &[]);
    let features = u64::from_ne_bytes(features[..8].try_into().unwrap());
    assert_ne!(features & feature::READ_ONLY, 0);
    guest.set_up(&mut server, 1, None);
    assert_eq!(guest.write_block(&mut server, 0, 5), 1);
    assert_eq!(guest.read_block(&mut server, 0), [0; BLOCK as usize]);
}

#[test]
fn descriptors_may_lie_in_a_table_of_their_own() {
    let mut server = DiskServer::new(5);
    let mut guest = RawGuest::with_queues(&mut server, 0, 1);
    let (table, own) = (DATA + 0x10000, DATA + 0x11000);
    guest.write(own, &[&1_u32.to_le_bytes()[..], &[0; 12]].concat());
    guest.write(own + 0x100, &[6; 4096]);
    // The header in two pieces, data in two pieces, the status.
    guest.descriptor(table, own, 10, NEXT, 1);
    guest.descriptor(table + 16, own + 10, 6, NEXT, 3);
    guest.descriptor(table + 48, own + 0x100, 100, NEXT, 2);
    guest.descriptor(table + 32, own + 0x100 + 100, 3996, NEXT, 4);
    guest.descriptor(table + 64, own + 0x2000, 1, WRITABLE, 0);
    guest.descriptor(places(0)[0], table, 80, INDIRECT, 0);
    guest.offer(0, 0);
    server.settle();
    assert_eq!((guest.take_used(0), guest.read(own + 0x2000, 1)), (vec![(0, 1)], vec![0]));
    assert_eq!(guest.read_block(&mut server, 0), [6; BLOCK as usize]);
}

/// A guest that is not answered when the server is killed is answered by the next one.
#[test]
fn requests_under_way_are_answered_by_the_next_server() {
    for steps in 0..40 {
        let mut server = DiskServer::new(6);
        let mut guest = RawGuest::connect(&server, 0);
        let (layout, file) = ask_for_inflight(&mut guest, &mut server, 1);
        guest.set_up(&mut server, 1, Some((layout, &file)));
        let mut writes = Vec::new();
        for (head, block) in [(0, 2), (3, 5), (6, 2)] {
            let place = guest.request(0, head, 1, block * BLOCK / 512, BLOCK as u32, false);
            guest.write(place, &[head as u8 + 1; BLOCK as usize]);
            writes.push(place);
        }
        for _ in 0..steps {
            server.step();
        }
        let before = guest.take_used(0);
        let mut server = server.killed();
        guest.stream = UnixStream::connect(server.socket(0)).unwrap();
        guest.set_up(&mut server, 1, Some((layout, &file)));
        server.settle();
        let mut answered: Vec<u32> = before.iter().map(|(head, _)| *head).collect();
        answered.extend(guest.take_used(0).iter().map(|(head, _)| *head));
        answered.sort_unstable();
        assert_eq!(answered, [0, 3, 6], "each once, {steps} steps in");
        for place in writes {
            assert_eq!(guest.read(place + BLOCK, 1), [0]);
        }
        assert_eq!(guest.read_block(&mut server, 2), [7; BLOCK as usize], "the later of two");
        assert_eq!(guest.read_block(&mut server, 5), [4; BLOCK as usize]);
    }
}

#[test]
fn a_ring_stops_when_its_requests_are_answered_and_goes_on_where_it_was() {
    let mut server = DiskServer::new(7);
    let mut guest = RawGuest::with_queues(&mut server, 0, 1);
    let place = guest.request(0, 0, 1, 0, BLOCK as u32, false);
    guest.write(place, &[3; BLOCK as usize]);
    guest.send(11, &[0_u32, 0].map(u32::to_ne_bytes).concat(), &[]);
    let mut reply = None;
    while reply.is_none() {
        let goes_on = server.step();
        reply = guest.reply(11);
        assert!(goes_on || reply.is_some(), "it ends");
        assert_eq!(reply.is_some(), guest.u16_at(places(0)[2] + 2) == 1, "not before the answer");
    }
    let state = [0_u32, 1].map(u32::to_ne_bytes).concat();
    assert_eq!(reply.map(|(payload, _)| payload), Some(state));
    assert_eq!(guest.take_used(0), [(0, 1)]);
    // Nothing is taken while it rests.
    guest.request(0, 3, 1, 0, BLOCK as u32, false);
    server.settle();
    assert!(guest.take_used(0).is_empty());
    guest.begin_ring(0);
    server.settle();
    assert_eq!(guest.take_used(0), [(3, 1)]);
}

#[test]
fn a_disk_that_grows_is_announced_and_served() {
    let mut server = DiskServer::new(8);
    let mut guest = RawGuest::with_queues(&mut server, 0, 1);
    let (own, theirs) = UnixStream::pair().unwrap();
    guest.send(21, &[], &[theirs.as_fd()]);
    let config = |guest: &mut RawGuest, server: &mut DiskServer| {
        let asked = [[0_u32, 60, 0].map(u32::to_ne_bytes).concat(), vec![0; 60]].concat();
        let (payload, _) = guest.ask(server, 24, &asked, &[]);
        assert_eq!(payload.len(), 72);
        u64::from_le_bytes(payload[12..20].try_into().unwrap())
    };
    assert_eq!(config(&mut guest, &mut server), 80);
    let mut grown = export(0);
    grown.bytes = 20 * BLOCK;
    server.front().change_export(TenantId(0), grown);
    let mut message = [0; 12];
    (&own).read_exact(&mut message).unwrap();
    assert_eq!(message[..4], 2_u32.to_ne_bytes());
    assert_eq!(config(&mut guest, &mut server), 160);
}

#[test]
fn a_disk_has_one_guest_at_a_time_and_the_next_one_waits() {
    let mut server = DiskServer::new(9);
    let first = RawGuest::with_queues(&mut server, 0, 1);
    let mut second = RawGuest::connect(&server, 0);
    second.send(1, &[], &[]);
    server.settle();
    assert_eq!((second.reply(1).is_some(), server.front().connections()), (false, 1));
    drop(first);
    server.settle();
    assert!(second.reply(1).is_some());
    assert_eq!(server.front().connections_to(TenantId(0)), 1);
    assert_eq!(server.front().connections_to(TenantId(1)), 0);
}

#[test]
fn caps_hold_for_guests() {
    let mut server = DiskServer::new(10);
    server.service.clients.cap(TenantId(0), Caps { requests: Some(100), bytes: None });
    let mut guest = RawGuest::with_queues(&mut server, 0, 1);
    let began_ns = server.sim.now_ns();
    for _ in 0..200 {
        guest.request(0, 0, 0, 0, 512, true);
        while guest.take_used(0).is_empty() {
            server.advance();
            server.wait();
        }
    }
    let took_ns = server.sim.now_ns() - began_ns;
    assert!((1_800_000_000..2_100_000_000).contains(&took_ns), "{took_ns} ns");
    assert!(server.service.clients.caps_exhausted(TenantId(0)) >= 180);
}

#[test]
fn a_server_that_stops_answers_what_it_has_begun_and_lets_guests_go() {
    let mut server = DiskServer::new(11);
    let mut guest = RawGuest::with_queues(&mut server, 0, 1);
    let place = guest.request(0, 0, 1, 0, BLOCK as u32, false);
    guest.write(place, &[3; BLOCK as usize]);
    server.step();
    server.step();
    let DiskServer { sim, service, vhost, .. } = &mut server;
    cachewright_live::front::stop(sim, service, &mut [vhost]);
    server.settle();
    assert!(server.front().is_stopped() && guest.is_let_go());
    assert_eq!(server.front().held_bytes(), 0);
}

/// Rings that break the rules in every way that there is.
#[test]
fn a_ring_that_breaks_the_rules_is_served_no_more_and_others_are() {
    type Break = fn(&mut RawGuest);
    let breaks: [(&str, Break); 12] = [
        ("jump", |guest| {
            guest.write(places(0)[1] + 2, &(SIZE + 1).to_le_bytes());
            guest.kick(0);
        }),
        ("head", |guest| guest.offer(0, SIZE)),
        ("circle", |guest| {
            guest.descriptor(places(0)[0], DATA, 16, NEXT, 0);
            guest.offer(0, 0);
        }),
        ("next", |guest| {
            guest.descriptor(places(0)[0], DATA, 16, NEXT, SIZE);
            guest.offer(0, 0);
        }),
        ("outside", |guest| {
            guest.descriptor(places(0)[0], MEMORY - 8, 16, NEXT, 1);
            guest.offer(0, 0);
        }),
        ("wraps", |guest| {
            guest.descriptor(places(0)[0], u64::MAX - 8, 16, NEXT, 1);
            guest.offer(0, 0);
        }),
        ("no status", |guest| {
            guest.descriptor(places(0)[0], DATA, 16, 0, 0);
            guest.offer(0, 0);
        }),
        ("no header", |guest| {
            guest.descriptor(places(0)[0], DATA, 15, NEXT, 1);
            guest.descriptor(places(0)[0] + 16, DATA, 1, WRITABLE, 0);
            guest.offer(0, 0);
        }),
        ("order", |guest| {
            guest.descriptor(places(0)[0], DATA, 16, NEXT | WRITABLE, 1);
            guest.descriptor(places(0)[0] + 16, DATA, 16, 0, 0);
            guest.offer(0, 0);
        }),
        ("table within a table", |guest| {
            guest.descriptor(places(0)[0], DATA, 16, INDIRECT, 0);
            guest.descriptor(DATA, DATA, 16, INDIRECT, 0);
            guest.offer(0, 0);
        }),
        ("torn table", |guest| {
            guest.descriptor(places(0)[0], DATA, 17, INDIRECT, 0);
            guest.offer(0, 0);
        }),
        ("huge table", |guest| {
            guest.descriptor(places(0)[0], DATA, !15, INDIRECT, 0);
            guest.offer(0, 0);
        }),
    ];
    let mut server = DiskServer::new(12);
    let mut other = RawGuest::with_queues(&mut server, 1, 1);
    for (number, (name, break_rules)) in breaks.into_iter().enumerate() {
        let mut guest = RawGuest::with_queues(&mut server, 0, 1);
        break_rules(&mut guest);
        server.settle();
        assert_eq!(server.vhost.take_faults().len(), 1, "{name}");
        assert_eq!(guest.take_used(0).len(), 0, "{name}");
        assert_eq!(other.write_block(&mut server, 1, number as u8), 0);
        // The same process may begin the ring anew.
        guest.send(11, &[0_u32, 0].map(u32::to_ne_bytes).concat(), &[]);
        server.settle();
        assert!(guest.reply(11).is_some(), "{name}");
    }
    assert_eq!(server.front().held_bytes(), 0);
}

#[test]
fn messages_that_break_the_protocol_end_the_connection_and_no_other() {
    let mut server = DiskServer::new(13);
    let mut other = RawGuest::with_queues(&mut server, 1, 1);
    let header = |fields: [u32; 3]| fields.map(u32::to_ne_bytes).concat();
    let zero = std::fs::File::open("/dev/zero").unwrap();
    for (sent, with_file) in [
        (header([1, 0, 0]), false),
        (header([1, 1, 1 << 20]), false),
        (header([77, 1, 0]), false),
        ([header([2, 1, 8]), u64::MAX.to_ne_bytes().to_vec()].concat(), false),
        // A signal that is none, rings without an address, and of a queue that there is not.
        ([header([12, 1, 8]), 0_u64.to_ne_bytes().to_vec()].concat(), true),
        ([header([12, 1, 8]), 200_u64.to_ne_bytes().to_vec()].concat(), true),
        ([header([8, 1, 8]), [0_u32, 3].map(u32::to_ne_bytes).concat()].concat(), false),
        ([header([8, 1, 8]), [99_u32, 16].map(u32::to_ne_bytes).concat()].concat(), false),
        // Memory that is no file.
        (
            [header([37, 1, 40]), [0, 0, 4096, USER, 0].map(u64::to_ne_bytes).concat()].concat(),
            true,
        ),
        ([header([5, 1, 8]), [9_u32, 0].map(u32::to_ne_bytes).concat()].concat(), false),
        ([header([32, 1, 24]), vec![0xff; 24]].concat(), true),
    ] {
        let mut guest = RawGuest::connect(&server, 0);
        let files = if with_file { vec![zero.as_fd()] } else { Vec::new() };
        guest.send_raw(&sent, &files);
        server.settle();
        assert!(guest.is_let_go(), "{sent:?}");
        assert_eq!(server.front().connections(), 1);
        assert_eq!(other.write_block(&mut server, 1, 4), 0);
    }
    // Half a message holds no other guest up, and ends with its sender.
    let mut guest = RawGuest::connect(&server, 0);
    guest.send_raw(&[1, 0, 0, 0, 1], &[]);
    server.settle();
    assert!(!guest.is_let_go());
    drop(guest);
    server.settle();
    assert_eq!(server.front().connections(), 1);
}

/// Anything in rings, tables and messages: nothing panics, hangs or grows, and the other guest is
/// served.
#[test]
fn a_guest_that_writes_anything_harms_no_other() {
    let mut rng = Seed(14).derive("guests").rng();
    let mut server = DiskServer::new(14);
    let mut other = RawGuest::with_queues(&mut server, 1, 1);
    let mut guest = RawGuest::with_queues(&mut server, 0, 2);
    for round in 0..3_000 {
        for _ in 0..1 + rng.below(4) {
            scribble(&mut guest, &mut rng);
        }
        let queue = rng.below(2) as usize;
        match rng.below(12) {
            0 => guest.request(queue, rng.below(13) as u16, rng.below(16) as u32, 0, 4096, true),
            1 => {
                let bytes: Vec<u8> = (0..rng.below(60)).map(|_| rng.next_u64() as u8).collect();
                guest.send_raw(&bytes, &[]);
                0
            }
            2 => {
                let signal = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
                let payload: Vec<u8> = (0..40).map(|_| rng.below(3) as u8).collect();
                let kind = 1 + rng.below(38) as u32;
                guest.send(kind, &payload, &[signal.as_fd()]);
                0
            }
            _ => {
                guest.kick(queue);
                0
            }
        };
        let mut steps = 0;
        while server.step() {
            steps += 1;
            assert!(steps < 100_000, "round {round} has no end");
        }
        if guest.is_let_go() || rng.below(20) == 0 {
            drop(guest);
            server.settle();
            guest = RawGuest::with_queues(&mut server, 0, 2);
        }
        if round % 50 == 0 {
            assert_eq!(other.write_block(&mut server, 2, round as u8), 0);
            assert_eq!(other.read_block(&mut server, 2), [round as u8; BLOCK as usize]);
        }
        server.vhost.take_faults();
    }
    drop(guest);
    server.settle();
    assert_eq!((server.front().connections(), server.front().held_bytes()), (1, 0));
}

/// Writes something wrong, or right, to a place that the server looks at.
fn scribble(guest: &mut RawGuest, rng: &mut Rng) {
    let [descriptors, available, used] = places(rng.below(2) as usize);
    let number = |rng: &mut Rng| match rng.below(3) {
        0 => rng.below(u64::from(SIZE)) as u16,
        1 => rng.below(u64::from(SIZE) + 2) as u16,
        _ => rng.next_u64() as u16,
    };
    match rng.below(6) {
        0 => {
            let place = descriptors + 16 * rng.below(u64::from(SIZE));
            let guest_address = match rng.below(4) {
                0 => rng.next_u64(),
                1 => MEMORY - rng.below(64),
                _ => DATA + rng.below(0x10000),
            };
            let bytes = match rng.below(3) {
                0 => rng.next_u64() as u32,
                _ => rng.below(5000) as u32,
            };
            let (flags, next) = (rng.below(8) as u16, number(rng));
            guest.descriptor(place, guest_address, bytes, flags, next);
        }
        1 => {
            let found = number(rng);
            guest.write(available + 4 + 2 * rng.below(u64::from(SIZE)), &found.to_le_bytes());
        }
        2 => {
            let more = guest.u16_at(available + 2).wrapping_add(rng.below(4) as u16);
            guest.write(available + 2, &more.to_le_bytes());
        }
        3 => guest.write(available + rng.below(4), &[rng.next_u64() as u8]),
        4 => guest.write(used + rng.below(200), &[rng.next_u64() as u8]),
        _ => {
            let kind = rng.below(16) as u32;
            guest.write(DATA + rng.below(0x8000), &kind.to_le_bytes());
        }
    }
}
