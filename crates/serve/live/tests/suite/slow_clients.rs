//! Clients that begin something and do not go on: their connections end in time, and no other's.

use crate::block_world::BLOCK;
use crate::guests::{BLOCKS, Guest, STALL_NS, Served, node, node_with};
use cachewright_live::io::Io;
use cachewright_nbd::{NbdCommand, NbdRequest, Range};

const VOLUME: u64 = BLOCKS * BLOCK;

/// A write as a client says it.
fn write_bytes(guest: &mut Guest, cookie: u64, blocks: u64) -> Vec<u8> {
    let command = NbdCommand::Write(Range { offset: 0, length: blocks * BLOCK });
    let mut out = Vec::new();
    guest.client.send(&NbdRequest { cookie, offset: 0, command, fua: false }, &mut out);
    out.resize(out.len() + (blocks * BLOCK) as usize, 5);
    out
}

fn read_of_all() -> NbdCommand {
    NbdCommand::Read { range: Range { offset: 0, length: VOLUME }, whole: true }
}

/// Time passes until the connection has ended; returns how long that took.
fn ended(served: &mut Served, guest: &Guest) -> u64 {
    let began_ns = served.sim.now_ns();
    while served.is_open(guest.socket) {
        served.tick();
    }
    served.sim.now_ns() - began_ns
}

#[test]
fn a_request_that_does_not_come_whole_ends_its_connection_in_time() {
    let mut served = node();
    let mut idle = served.connect("volume-1");
    let write = write_bytes(&mut served.connect("volume-1"), 1, 2);
    // A part of the header, the header alone, a part of the payload, and all but one byte.
    for count in [1, 27, 28, 29, 5000, write.len() - 1] {
        let mut guest = served.guest("volume-0", None);
        served.send(&mut guest, &write[..count]);
        served.settle();
        assert!(served.is_open(guest.socket));
        let waited_ns = ended(&mut served, &guest);
        assert!((STALL_NS / 2..2 * STALL_NS).contains(&waited_ns), "{count}: {waited_ns}");
        assert_eq!(served.held_bytes(), 0);
    }
    served.request(&mut idle, 1, read_of_all(), &[]);
    assert_eq!(idle.data[&1], [0; VOLUME as usize], "it is there, and nothing was written");
}

/// A request has one time for all of its bytes, so that a byte now and then does not prolong it.
#[test]
fn bytes_that_come_one_by_one_do_not_prolong_the_time_of_a_request() {
    let mut served = node_with(|settings| settings.connection.stall_ns = 30_000_000);
    let mut busy = served.connect("volume-1");
    let mut guest = served.connect("volume-0");
    let write = write_bytes(&mut guest, 1, 2);
    let (mut sent, began_ns) = (0, served.sim.now_ns());
    while served.is_open(guest.socket) {
        served.send(&mut guest, &write[sent..=sent]);
        served.request(&mut busy, sent as u64, read_of_all(), &[]);
        sent += 1;
        if served.sim.now_ns() - began_ns > 100_000_000 {
            break;
        }
    }
    assert!(!served.is_open(guest.socket), "{sent} bytes");
    assert!(sent > 5, "{sent} bytes came before its time was over");
}

/// A client that is always in the middle of a request, and goes on, stays.
#[test]
fn a_client_whose_requests_come_whole_in_time_stays() {
    let mut served = node_with(|settings| settings.connection.stall_ns = 3_000_000);
    let mut guest = served.connect("volume-0");
    let mut stream = Vec::new();
    for cookie in 0..400 {
        stream.extend(write_bytes(&mut guest, cookie, 1));
    }
    let began_ns = served.sim.now_ns();
    for piece in stream.chunks(BLOCK as usize + 28 - 1) {
        served.send(&mut guest, piece);
        served.exchange(&mut guest);
    }
    served.exchange(&mut guest);
    assert_eq!(guest.done.len(), 400);
    assert!(served.sim.now_ns() - began_ns > 6_000_000, "longer than one request may take");
}

#[test]
fn a_client_that_takes_no_answer_is_closed_in_time_and_one_that_waits_for_its_memory_served() {
    let mut served = node_with(|settings| {
        settings.client_memory = 240 << 10;
        settings.connection.bytes = 200 << 10;
    });
    let mut slow = ["volume-0", "volume-1"].map(|name| served.connect(name));
    for guest in &mut slow {
        served.sim.sockets().client_stalls(guest.socket, true);
        served.send_reads(guest, 0..300);
    }
    served.settle();
    let mut other = served.connect("volume-1");
    served.send_reads(&mut other, 1..5);
    let began_ns = served.sim.now_ns();
    while other.done.len() < 4 {
        served.tick();
        served.take(&mut other);
    }
    assert!(served.sim.now_ns() - began_ns < 2 * STALL_NS);
    for guest in &slow {
        ended(&mut served, guest);
    }
    assert_eq!((served.connections(), served.held_bytes()), (1, 0));
    served.request(&mut other, 9, read_of_all(), &[]);
    assert_eq!(other.done[&9], Ok(()));
}

/// An export that is open and asked for nothing costs nothing: its client may say nothing for ever.
#[test]
fn a_client_without_a_request_stays() {
    let mut served = node();
    let mut idle = served.connect("volume-0");
    let mut half = served.connect("volume-1");
    let write = write_bytes(&mut half, 1, 1);
    for _ in 0..3 {
        let mut half = served.guest("volume-1", None);
        served.send(&mut half, &write[..40]);
        ended(&mut served, &half);
    }
    served.request(&mut idle, 1, read_of_all(), &[]);
    assert_eq!(idle.done[&1], Ok(()));
}
