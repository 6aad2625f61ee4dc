//! Connections and memory among clients: none takes what others need.

use crate::block_world::BLOCK;
use crate::guests::{BLOCKS, Served, export, node, node_with};
use cachewright_live::front::Caps;
use cachewright_nbd::{Errno, NbdCommand, NbdRequest, Range};
use cachewright_types::TenantId;

const VOLUME: u64 = BLOCKS * BLOCK;

fn read(offset: u64, length: u64) -> NbdCommand {
    NbdCommand::Read { range: Range { offset, length }, whole: true }
}

#[test]
fn no_export_takes_the_connections_that_others_need() {
    let mut served = node_with(|settings| settings.max_connections = 8);
    let mut opened = 0;
    while opened < 8 {
        let guest = served.guest("volume-0", None);
        if !guest.opened {
            assert!(guest.fault.unwrap().contains("all the connections it may have"));
            served.sim.sockets().client_closes(guest.socket);
            break;
        }
        opened += 1;
    }
    assert_eq!(opened, 6, "half of eight is kept for two exports");
    let mut other = served.connect("volume-1");
    served.request(&mut other, 1, read(0, 8), &[]);
    assert_eq!(other.done[&1], Ok(()));
}

#[test]
fn a_bound_on_the_connections_of_an_export_holds() {
    let mut served = node_with(|settings| settings.max_connections = 8);
    let mut bounded = export(0, &[]);
    bounded.max_connections = Some(2);
    assert_eq!(served.change_export(TenantId(0), bounded), 0, "none is ended");
    let [first, _second] = [(); 2].map(|()| served.connect("volume-0"));
    let refused = served.guest("volume-0", None);
    assert!(!refused.opened);
    served.sim.sockets().client_closes(refused.socket);
    served.sim.sockets().client_closes(first.socket);
    served.settle();
    served.connect("volume-0");
}

/// One connection at a time: clients of two listeners are served in the order in which they came.
#[test]
fn clients_of_all_listeners_get_their_turns() {
    let mut served = node_with(|settings| settings.max_connections = 1);
    let other = served.sim.add_listener();
    served.nbd.listen(other);
    let listeners = [served.listener, other, served.listener, other, other];
    served.settle();
    let mut sockets = Vec::new();
    for listener in listeners {
        sockets.push(served.sim.sockets().connect(listener));
        served.settle();
    }
    for (place, socket) in sockets.iter().enumerate() {
        served.settle();
        assert_eq!(served.connections(), 1);
        let greeted = !served.sim.sockets().client_receives(*socket).is_empty();
        assert!(greeted, "client {place} has its turn");
        for later in &sockets[place + 1..] {
            assert!(served.sim.sockets().client_receives(*later).is_empty());
        }
        served.sim.sockets().client_closes(*socket);
    }
    served.settle();
    assert!(served.guest_at(other, "volume-1").opened);
}

/// A server that stops lets clients go that were accepted and had no place yet.
#[test]
fn clients_without_a_place_are_let_go_when_the_server_stops() {
    let mut served = node_with(|settings| settings.max_connections = 1);
    let mut guest = served.connect("volume-0");
    let late = served.sim.sockets().connect(served.listener);
    served.settle();
    served.stop();
    served.exchange(&mut guest);
    assert!(served.is_stopped());
    assert!(!served.is_open(guest.socket) && !served.is_open(late));
}

/// Memory of which each of three clients has 20 KiB, and all together 180 KiB.
fn short_of_memory() -> Served {
    node_with(|settings| {
        settings.client_memory = 240 << 10;
        settings.connection.bytes = 200 << 10;
    })
}

#[test]
fn requests_of_all_clients_stay_within_one_bound_and_none_is_starved() {
    let mut served = short_of_memory();
    let mut greedy = ["volume-0", "volume-1"].map(|name| served.connect(name));
    let mut small = served.connect("volume-1");
    for guest in &mut greedy {
        served.sim.sockets().client_stalls(guest.socket, true);
        served.send_reads(guest, 0..300);
    }
    while served.step() {
        let held = served.held_bytes();
        assert!(held <= 240 << 10, "{held} bytes are held");
    }
    let held = served.held_bytes();
    assert!(held > 100 << 10, "{held} bytes are held");
    for cookie in 0..50 {
        served.request(&mut small, cookie, read(cookie % BLOCKS * BLOCK, BLOCK), &[]);
        assert_eq!(small.done[&cookie], Ok(()));
    }
    for guest in &mut greedy {
        served.sim.sockets().client_stalls(guest.socket, false);
    }
    for guest in &mut greedy {
        served.exchange(guest);
        assert_eq!(guest.done.len(), 300, "they lose nothing");
    }
    assert_eq!(served.held_bytes(), 0);
}

/// A payload that comes in counts from its header on, before any of it is there.
#[test]
fn a_write_counts_before_its_payload_comes() {
    let mut served = node();
    let mut guest = served.connect("volume-0");
    let command = NbdCommand::Write(Range { offset: 0, length: VOLUME });
    let mut out = Vec::new();
    guest.client.send(&NbdRequest { cookie: 1, offset: 0, command, fua: false }, &mut out);
    served.send(&mut guest, &out);
    served.settle();
    assert!(served.held_bytes() >= VOLUME);
    served.sim.sockets().client_closes(guest.socket);
    served.settle();
    assert_eq!(served.held_bytes(), 0);
}

/// Memory and caps together: one that waits for memory holds up none that waits for its cap, and
/// both get their turns.
#[test]
fn capped_clients_that_wait_for_memory_are_served() {
    let mut served = short_of_memory();
    served.service.clients.cap(TenantId(0), Caps { requests: Some(100_000), bytes: None });
    let mut guests = ["volume-0", "volume-0", "volume-1"].map(|name| served.connect(name));
    for guest in &mut guests {
        served.sim.sockets().client_stalls(guest.socket, true);
        served.send_reads(guest, 0..100);
    }
    served.settle();
    for guest in &mut guests {
        served.sim.sockets().client_stalls(guest.socket, false);
    }
    while guests.iter().any(|guest| guest.done.len() < 100) {
        served.tick();
        guests.iter_mut().for_each(|guest| served.take(guest));
    }
    assert_eq!(served.held_bytes(), 0);
}

#[test]
fn zeroes_that_are_to_be_fast_are_refused_where_they_would_be_written() {
    let mut served = node();
    let mut guest = served.connect("volume-0");
    let whole = NbdCommand::Write(Range { offset: 0, length: VOLUME });
    served.request(&mut guest, 1, whole, &[9; VOLUME as usize]);
    let zero = |offset, length, keep_space| {
        let range = Range { offset, length };
        NbdCommand::Zero { range, keep_space, fast: true }
    };
    let cases = [
        (2, zero(BLOCK, 100, false), Err(Errno::NotSupported)),
        (3, zero(BLOCK + 1, 2 * BLOCK - 2, false), Err(Errno::NotSupported)),
        (4, zero(BLOCK, BLOCK, true), Err(Errno::NotSupported)),
        (5, zero(5 * BLOCK - 1, BLOCK + 2, false), Ok(())),
    ];
    for (cookie, command, expected) in cases {
        served.request(&mut guest, cookie, command, &[]);
        assert_eq!(guest.done[&cookie], expected, "{command:?}");
    }
    served.request(&mut guest, 6, read(0, VOLUME), &[]);
    let zeroes = guest.data[&6].iter().filter(|byte| **byte == 0).count() as u64;
    assert_eq!(zeroes, BLOCK + 2, "what was refused was not done");
}

#[test]
fn fast_zeroes_are_not_offered_where_zeroes_are_written() {
    let mut served = node();
    let mut slow = export(0, &[]);
    slow.fast_zero = false;
    served.change_export(TenantId(0), slow);
    let flags = |served: &mut Served, export: &str| {
        let socket = served.sim.sockets().connect(served.listener);
        let name = export.as_bytes();
        let length = (name.len() as u32).to_be_bytes();
        let asked = [&[0, 0, 0, 3][..], b"IHAVEOPT\0\0\0\x01", &length, name].concat();
        served.sim.sockets().client_sends(socket, &asked);
        served.settle();
        let answer = served.sim.sockets().client_receives(socket);
        u16::from_be_bytes(answer[answer.len() - 2..].try_into().unwrap())
    };
    assert_eq!(flags(&mut served, "volume-0") >> 11 & 1, 0);
    assert_eq!(flags(&mut served, "volume-1") >> 11 & 1, 1);
}
