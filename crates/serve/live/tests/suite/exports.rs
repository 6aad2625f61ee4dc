//! Clients of the protocol on exports of a simulated node.

use crate::block_world::BLOCK;
use crate::guests::{BLOCKS, Guest, PATIENCE_NS, node, node_with};
use cachewright_live::io::sim::Fault;
use cachewright_live::io::{Io, IoError, IoOp};
use cachewright_nbd::{Errno, NbdCommand, NbdRequest, Range};
use cachewright_types::TenantId;
use std::cell::Cell;
use std::rc::Rc;

fn range(offset: u64, length: u64) -> Range {
    Range { offset, length }
}

#[test]
fn what_one_client_writes_another_reads_and_exports_are_apart() {
    let mut served = node();
    let [mut one, mut two] = ["volume-0", "volume-0"].map(|name| served.connect(name));
    let mut other = served.connect("volume-1");
    assert_eq!(served.connections(), 3);
    let data: Vec<u8> = (0..5000_u32).map(|byte| byte as u8).collect();
    served.request(&mut one, 1, NbdCommand::Write(range(3000, 5000)), &data);
    served.request(&mut one, 2, NbdCommand::Flush, &[]);
    let read = |whole| NbdCommand::Read { range: range(3000, 5000), whole };
    served.request(&mut two, 3, read(false), &[]);
    served.request(&mut other, 4, read(true), &[]);
    assert_eq!((one.done[&1], one.done[&2]), (Ok(()), Ok(())));
    assert_eq!((two.done[&3], &two.data[&3]), (Ok(()), &data));
    assert_eq!(other.data[&4], [0; 5000]);
    let zero = NbdCommand::Zero { range: range(3500, 9000), keep_space: false, fast: false };
    served.request(&mut two, 5, zero, &[]);
    served.request(&mut one, 6, read(false), &[]);
    assert_eq!((two.done[&5], &one.data[&6][..500]), (Ok(()), &data[..500]));
    assert!(one.data[&6][500..].iter().all(|byte| *byte == 0));
    served.request(&mut one, 7, NbdCommand::Trim(range(0, BLOCK)), &[]);
    served.request(&mut one, 8, NbdCommand::Cache(range(0, BLOCK)), &[]);
    assert_eq!((one.done[&7], one.done[&8], one.data.get(&8)), (Ok(()), Ok(()), None));
    served.request(&mut one, 9, NbdCommand::Write(range(BLOCKS * BLOCK - 1, 2)), &[0; 2]);
    assert_eq!(one.done[&9], Err(Errno::NoSpace));
}

/// A backing device fails under an answered write round the cache that no flush has made durable,
/// and is tried again: each client that was there learns of it once, later ones do not.
#[test]
fn each_client_learns_once_that_unflushed_writes_may_be_lost() {
    let mut served = node_with(|settings| settings.max_connections = 8);
    let [mut one, mut two] = ["volume-0", "volume-0"].map(|name| served.connect(name));
    let zero = NbdCommand::Zero { range: range(0, BLOCK), keep_space: false, fast: false };
    served.request(&mut one, 1, zero, &[]);
    assert_eq!(one.done[&1], Ok(()));
    served.sim.set_faults(Box::new(|_, op| {
        matches!(op, IoOp::Sync { .. }).then_some(Fault::Error(IoError::IO))
    }));
    served.request(&mut one, 2, NbdCommand::Flush, &[]);
    assert_eq!(one.done[&2], Err(Errno::Io));
    assert!(served.service.blocks.volume_has_failed(TenantId(0)));
    served.sim.set_faults(Box::new(|_, _| None));
    assert!(served.service.blocks.revive_volume(TenantId(0)));
    served.settle();
    assert!(!served.service.blocks.volume_has_failed(TenantId(0)));
    let mut late = served.connect("volume-0");
    for (cookie, two_learns) in [(3, Err(Errno::Io)), (4, Ok(()))] {
        for guest in [&mut one, &mut two, &mut late] {
            served.request(guest, cookie, NbdCommand::Flush, &[]);
        }
        assert_eq!(two.done[&cookie], two_learns, "it was there, and has not flushed since");
        assert_eq!([one.done[&cookie], late.done[&cookie]], [Ok(()); 2], "{cookie}");
    }
    served.request(&mut two, 5, NbdCommand::Read { range: range(0, BLOCK), whole: true }, &[]);
    assert_eq!(two.data[&5], [0; BLOCK as usize]);
}

#[test]
fn extended_headers_carry_all_requests() {
    let mut served = node();
    let mut guest = served.connect_extended("volume-1");
    served.request(&mut guest, 1, NbdCommand::Write(range(BLOCK, 100)), &[5; 100]);
    let zero = NbdCommand::Zero { range: range(2 * BLOCK, BLOCK), keep_space: false, fast: false };
    served.request(&mut guest, 2, zero, &[]);
    served.request(&mut guest, 3, NbdCommand::Read { range: range(BLOCK, 200), whole: false }, &[]);
    assert_eq!(guest.data[&3], [[5; 100], [0; 100]].concat());
    let all = NbdCommand::BlockStatus { range: range(0, 5 * BLOCK), single_extent: false };
    served.request(&mut guest, 4, all, &[]);
    let dirty: Vec<u64> = guest.status[&2].iter().map(|run| run.status).collect();
    assert_eq!(dirty, [0, 1, 0]);
    served.request(&mut guest, 5, NbdCommand::Trim(range(0, BLOCKS * BLOCK)), &[]);
    served.request(&mut guest, 6, NbdCommand::Flush, &[]);
    served.request(&mut guest, 7, NbdCommand::Write(range(BLOCKS * BLOCK, 5)), &[1; 5]);
    let ended: Vec<_> = guest.done.values().copied().collect();
    assert_eq!(ended, [vec![Ok(()); 6], vec![Err(Errno::NoSpace)]].concat());
}

#[test]
fn status_says_what_is_cached_and_dirty() {
    let mut served = node();
    let mut guest = served.connect("volume-1");
    served.request(&mut guest, 1, NbdCommand::Write(range(BLOCK, 100)), &[5; 100]);
    served.request(
        &mut guest,
        2,
        NbdCommand::Read { range: range(3 * BLOCK, 8), whole: true },
        &[],
    );
    let all = NbdCommand::BlockStatus { range: range(0, 5 * BLOCK), single_extent: false };
    served.request(&mut guest, 3, all, &[]);
    let runs = |context: u32| -> Vec<(u64, u64)> {
        guest.status[&context].iter().map(|run| (run.length / BLOCK, run.status)).collect()
    };
    assert_eq!(guest.done[&3], Ok(()));
    // Holes of the backing device that read as zeroes, and what only the cache has.
    assert_eq!(runs(0), [(1, 3), (1, 0), (3, 3)]);
    assert_eq!(runs(1), [(1, 0), (1, 1), (1, 0), (1, 1), (1, 0)]);
    assert_eq!(runs(2), [(1, 0), (1, 1), (3, 0)]);
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_write_changes_nothing() {
    let mut served = node();
    let mut guest = served.connect("volume-0");
    let mut out = Vec::new();
    let command = NbdCommand::Write(range(0, 8192));
    let request = NbdRequest { cookie: 1, offset: 0, command, fua: false };
    guest.client.send(&request, &mut out);
    out.extend_from_slice(&[9; 5000]);
    served.send(&mut guest, &out);
    served.exchange(&mut guest);
    served.sim.sockets().client_closes(guest.socket);
    served.settle();
    assert_eq!(served.connections(), 0);
    let mut next = served.connect("volume-0");
    served.request(&mut next, 2, NbdCommand::Read { range: range(0, 8192), whole: true }, &[]);
    assert_eq!(next.data[&2], [0; 8192]);
    served.sim.sockets().client_sends(next.socket, &[0xee; 64]);
    served.settle();
    assert!(!served.sim.sockets().is_open(next.socket), "no request begins with these bytes");
    assert!(served.service.blocks.is_idle());
}

/// More clients than connections, more requests than limits: all are served in turn.
#[test]
fn limits_hold_clients_back_and_lose_nothing() {
    let mut served = node();
    let names = ["volume-0", "volume-0", "volume-1"];
    let mut guests: Vec<Guest> = names.iter().map(|name| served.connect(name)).collect();
    let late = served.sim.sockets().connect(served.listener);
    served.settle();
    assert!(served.sim.sockets().client_receives(late).is_empty(), "it waits to be accepted");
    let mut out = Vec::new();
    for cookie in 0..50 {
        let command = NbdCommand::Write(range(cookie % BLOCKS * BLOCK, BLOCK));
        let offset = cookie % BLOCKS * BLOCK;
        let request = NbdRequest { cookie, offset, command, fua: cookie % 3 == 0 };
        guests[0].client.send(&request, &mut out);
        out.extend_from_slice(&[cookie as u8; BLOCK as usize]);
    }
    served.send(&mut guests[0], &out);
    served.exchange(&mut guests[0]);
    assert_eq!(guests[0].done.len(), 50);
    assert!(guests[0].done.values().all(|result| result.is_ok()));
    let mut guest = guests.remove(1);
    let all = NbdCommand::Read { range: range(0, BLOCKS * BLOCK), whole: true };
    served.request(&mut guest, 99, all, &[]);
    let found: Vec<u8> = guest.data[&99].chunks(BLOCK as usize).map(|block| block[0]).collect();
    assert_eq!(found, (40..50).collect::<Vec<u8>>());
    served.sim.sockets().client_closes(guest.socket);
    served.settle();
    assert!(!served.sim.sockets().client_receives(late).is_empty(), "it is greeted now");
}

/// What a client costs is bounded by its limits, also if it takes no answers.
#[test]
fn a_client_that_takes_no_answers_is_not_listened_to() {
    let mut served = node();
    let mut guest = served.connect("volume-0");
    served.sim.sockets().client_stalls(guest.socket, true);
    served.send_reads(&mut guest, 0..1000);
    served.settle();
    let held = served.held_bytes();
    let (limit, volume) = (1_u64 << 20, BLOCKS * BLOCK);
    assert!((limit - 2 * volume..=limit).contains(&held), "{held} bytes are held");
    let mut other = served.connect("volume-1");
    served.request(&mut other, 1, NbdCommand::Read { range: range(0, 8), whole: true }, &[]);
    assert_eq!(other.done[&1], Ok(()));
    served.sim.sockets().client_stalls(guest.socket, false);
    served.exchange(&mut guest);
    assert_eq!((guest.done.len(), served.held_bytes()), (1000, 0));
}

#[test]
fn requests_that_visit_many_blocks_leave_others_their_turn() {
    let mut served = node();
    let [mut greedy, mut other] = ["volume-0", "volume-1"].map(|name| served.connect(name));
    let command = NbdCommand::BlockStatus { range: range(0, BLOCKS * BLOCK), single_extent: false };
    let mut out = Vec::new();
    for cookie in 0..500 {
        greedy.client.send(&NbdRequest { cookie, offset: 0, command, fua: false }, &mut out);
    }
    served.send(&mut greedy, &out);
    served.send_reads(&mut other, 0..1);
    while served.sim.sockets().client_receives(other.socket).is_empty() {
        assert!(served.step(), "the read is answered");
    }
    served.take(&mut greedy);
    assert!(greedy.done.len() < 40, "{} were answered before", greedy.done.len());
    served.exchange(&mut greedy);
    assert_eq!(greedy.done.len(), 500);
}

#[test]
fn an_accept_that_fails_is_tried_again_after_a_pause() {
    let mut served = node();
    let accepts = Rc::new(Cell::new(0));
    let seen = Rc::clone(&accepts);
    served.sim.set_faults(Box::new(move |_, op| {
        let IoOp::Accept { .. } = op else { return None };
        seen.set(seen.get() + 1);
        (seen.get() <= 3).then_some(Fault::Error(IoError(24)))
    }));
    let socket = served.sim.sockets().connect(served.listener);
    let began = served.sim.now_ns();
    while served.sim.sockets().client_receives(socket).is_empty() {
        served.tick();
    }
    assert_eq!(accepts.get(), 5, "the fourth has a client, the fifth waits");
    assert!(served.sim.now_ns() - began >= 300_000_000);
}

#[test]
fn a_node_that_stops_answers_what_is_under_way_and_takes_no_client() {
    let mut served = node();
    let mut guest = served.connect("volume-0");
    served.request(&mut guest, 1, NbdCommand::Write(range(0, 8)), &[3; 8]);
    served.send_reads(&mut guest, 2..4);
    while served.held_bytes() == 0 {
        assert!(served.step(), "the reads begin");
    }
    served.stop();
    let late = served.sim.sockets().connect(served.listener);
    served.exchange(&mut guest);
    assert_eq!((guest.done.len(), guest.data[&2][0], guest.data[&3][7]), (3, 3, 3));
    assert!(!served.sim.sockets().is_open(guest.socket) && served.is_stopped());
    assert!(
        !served.sim.sockets().is_open(late) || served.sim.sockets().is_awaited(served.listener)
    );
}

/// A client that says nothing, and one that leaves and takes no answers, keep no connection.
#[test]
fn clients_that_do_not_go_on_are_closed_in_time() {
    let mut served = node();
    let mut busy = served.connect("volume-0");
    let mut leaving = served.connect("volume-0");
    served.sim.sockets().client_stalls(leaving.socket, true);
    served.send_reads(&mut leaving, 0..4);
    let mut out = Vec::new();
    leaving.client.disconnect(&mut out);
    served.send(&mut leaving, &out);
    let silent = served.sim.sockets().connect(served.listener);
    served.settle();
    assert_eq!(served.connections(), 3);
    while served.connections() > 1 {
        served.tick();
    }
    assert!(served.sim.now_ns() >= PATIENCE_NS);
    assert!(!served.sim.sockets().is_open(silent) && !served.sim.sockets().is_open(leaving.socket));
    served.send_reads(&mut busy, 0..4);
    served.exchange(&mut busy);
    assert_eq!(busy.done.len(), 4);
}
