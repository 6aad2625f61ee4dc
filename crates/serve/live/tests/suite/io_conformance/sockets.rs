//! Connections: bytes in order, and all the ways to end.

use super::conformance;
use super::rigs::{Rig, run, run_one, step, step_until_done};
use cachewright_live::io::{
    Buffer, Done, FileId, IoError, IoOp, ListenerId, Output, SocketId, Token,
};
use std::sync::Arc;

/// A connection: the server's end, and the client.
pub fn connected(rig: &mut (impl Rig + ?Sized)) -> (SocketId, usize) {
    let listener = rig.listener();
    let client = rig.connect(listener);
    (accept(run_one(rig, IoOp::Accept { listener })), client)
}

/// The connection that an accept gave.
pub fn accept(done: Done) -> SocketId {
    match done {
        Done { output: Output::Socket(socket), error: None, .. } => socket,
        done => panic!("a client waits, found {done:?}"),
    }
}

/// Bytes that differ from their neighbours.
pub fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|number| (number * 7 + number / 251) as u8).collect()
}

pub fn receive(socket: SocketId, bytes: usize) -> IoOp {
    IoOp::Receive { socket, buffer: Buffer::zeroed(bytes) }
}

/// What a receive that did not fail has brought.
fn received(done: Done) -> Vec<u8> {
    match done {
        Done { output: Output::Buffer(buffer, count), error: None, .. } => buffer[..count].to_vec(),
        done => panic!("found {done:?}"),
    }
}

fn what_a_client_sends_is_received_in_parts_and_then_the_end(rig: &mut (impl Rig + ?Sized)) {
    let (socket, client) = connected(rig);
    rig.io().submit(Token(1), receive(socket, 10));
    assert!(step(rig).is_empty(), "nothing was sent");
    assert_eq!(rig.client_sends(client, b"abc"), 3);
    let mut found = received(step_until_done(rig).remove(0));
    assert!(!found.is_empty());
    while found.len() < 3 {
        found.extend(received(run_one(rig, receive(socket, 10))));
    }
    assert_eq!(found, b"abc");
    let sent = pattern(100_000);
    let (mut taken, mut found) = (0, Vec::new());
    while found.len() < sent.len() {
        taken += rig.client_sends(client, &sent[taken..]);
        found.extend(received(run_one(rig, receive(socket, 4099))));
    }
    assert!(found == sent, "in order, and nothing else");
    assert_eq!(rig.client_sends(client, b"last"), 4);
    rig.client_closes(client);
    let mut found = Vec::new();
    while found.len() < 4 {
        found.extend(received(run_one(rig, receive(socket, 2))));
    }
    assert_eq!(found, b"last");
    assert_eq!(received(run_one(rig, receive(socket, 2))), b"", "the end");
    assert_eq!(run_one(rig, IoOp::Close { socket }).error, None);
}

fn a_large_send_of_several_buffers_waits_for_a_slow_reader(rig: &mut (impl Rig + ?Sized)) {
    let (socket, client) = connected(rig);
    let whole = pattern(6 << 20);
    let (head, rest) = whole.split_at(28);
    let (middle, tail) = rest.split_at((4 << 20) + 13);
    let parts: [&[u8]; 5] = [head, b"", middle, tail, b""];
    let buffers = parts.map(Buffer::copy_of).into();
    rig.io().submit(Token(1), IoOp::Send { socket, buffers });
    let mut done = step(rig);
    assert!(!rig.is_bounded() || done.is_empty(), "the client has taken nothing");
    let mut taken = Vec::new();
    while taken.len() < whole.len() {
        taken.extend(rig.client_receives(client));
        done.extend(step(rig));
    }
    while done.is_empty() {
        done.extend(step(rig));
    }
    assert!(taken == whole, "in order, and nothing else");
    let Done { output: Output::Buffers(buffers), error: None, .. } = done.remove(0) else {
        panic!("a send gives its buffers back");
    };
    assert!(buffers.iter().map(|buffer| &buffer[..]).eq(parts));
}

fn sends_of_nothing_and_of_many_buffers_are_done(rig: &mut (impl Rig + ?Sized)) {
    let (socket, client) = connected(rig);
    for buffers in [vec![], vec![Buffer::default()], vec![Buffer::default(); 3]] {
        let count = buffers.len();
        let done = run_one(rig, IoOp::Send { socket, buffers });
        assert_eq!(done.error, None);
        assert!(matches!(done.output, Output::Buffers(buffers) if buffers.len() == count));
    }
    // More than one call of the system takes.
    let whole = pattern(2_500);
    let buffers = whole.iter().map(|byte| Buffer::copy_of(&[*byte])).collect();
    assert_eq!(run_one(rig, IoOp::Send { socket, buffers }).error, None);
    let mut taken = Vec::new();
    while taken.len() < whole.len() {
        taken.extend(rig.client_receives(client));
    }
    assert_eq!(taken, whole);
}

fn both_directions_go_on_at_once(rig: &mut (impl Rig + ?Sized)) {
    let (socket, client) = connected(rig);
    for round in 0..200_u8 {
        let buffers = vec![Buffer::copy_of(&[round]), Buffer::copy_of(b"pong")];
        rig.client_sends(client, &[round]);
        let done = run(rig, vec![receive(socket, 64), IoOp::Send { socket, buffers }]);
        let [came, sent] = done.try_into().unwrap();
        assert_eq!((received(came), sent.error), (vec![round], None));
        let mut taken = Vec::new();
        while taken.len() < 5 {
            taken.extend(rig.client_receives(client));
        }
        assert_eq!(taken, [&[round], &b"pong"[..]].concat());
    }
}

fn a_client_that_leaves_ends_a_receive_under_way(rig: &mut (impl Rig + ?Sized)) {
    let (socket, client) = connected(rig);
    rig.io().submit(Token(1), receive(socket, 100));
    assert!(step(rig).is_empty());
    rig.client_closes(client);
    assert_eq!(received(step_until_done(rig).remove(0)), b"");
    let buffers = vec![Buffer::copy_of(b"too late")];
    let done = run_one(rig, IoOp::Send { socket, buffers });
    assert_eq!(done.error, Some(IoError::NOT_CONNECTED));
    assert!(matches!(done.output, Output::Buffers(buffers) if buffers[0][..] == *b"too late"));
    assert_eq!(run_one(rig, IoOp::Close { socket }).error, None);
}

fn a_close_ends_a_receive_under_way(rig: &mut (impl Rig + ?Sized)) {
    let (socket, client) = connected(rig);
    let done = run(rig, vec![receive(socket, 100), IoOp::Close { socket }]);
    assert!(matches!(&done[0].output, Output::Buffer(buffer, 0) if buffer.len() == 100));
    assert_eq!(done[1].error, None);
    assert!(rig.client_is_at_end(client));
    let buffers = vec![Buffer::copy_of(b"too late")];
    let done = run_one(rig, IoOp::Send { socket, buffers });
    assert_eq!(done.error, Some(IoError::NOT_CONNECTED));
}

fn a_close_ends_a_send_under_way(rig: &mut (impl Rig + ?Sized)) {
    let (socket, client) = connected(rig);
    let buffers = vec![Buffer::copy_of(b"head"), Buffer::zeroed(6 << 20)];
    rig.io().submit(Token(0), IoOp::Send { socket, buffers });
    let mut done = step(rig);
    assert!(!rig.is_bounded() || done.is_empty(), "the client has taken nothing");
    rig.io().submit(Token(1), IoOp::Close { socket });
    while done.len() < 2 {
        done.extend(step(rig));
    }
    // A number is free again when nothing is under way on it.
    assert!(!rig.is_bounded() || done[0].token == Token(0));
    done.sort_by_key(|done| done.token);
    assert_eq!(done[1].error, None);
    assert!(!rig.is_bounded() || done[0].error == Some(IoError::NOT_CONNECTED));
    assert!(matches!(&done[0].output, Output::Buffers(buffers) if buffers.len() == 2));
    while !rig.client_receives(client).is_empty() {}
    assert!(rig.client_is_at_end(client));
}

fn many_clients_are_accepted_and_answered(rig: &mut (impl Rig + ?Sized)) {
    const CLIENTS: usize = 100;
    let listener = rig.listener();
    for number in 0..CLIENTS as u64 {
        rig.io().submit(Token(number), IoOp::Accept { listener });
    }
    let clients: Vec<usize> = (0..CLIENTS).map(|_| rig.connect(listener)).collect();
    let mut done = Vec::new();
    while done.len() < CLIENTS {
        rig.io().wait(&mut done);
    }
    let sockets: Vec<SocketId> = done.into_iter().map(accept).collect();
    for client in &clients {
        rig.client_sends(*client, &[*client as u8]);
    }
    let greetings = run(rig, sockets.iter().map(|socket| receive(*socket, 10)).collect());
    let greetings: Vec<Vec<u8>> = greetings.into_iter().map(received).collect();
    let mut sorted = greetings.concat();
    sorted.sort_unstable();
    assert_eq!(sorted, clients.iter().map(|client| *client as u8).collect::<Vec<_>>());
    let answers = sockets.iter().zip(&greetings).map(|(socket, greeting)| IoOp::Send {
        socket: *socket,
        buffers: vec![Buffer::copy_of(greeting)],
    });
    assert!(run(rig, answers.collect()).iter().all(|done| done.error.is_none()));
    for client in clients {
        assert_eq!(rig.client_receives(client), [client as u8]);
    }
    let closes = sockets.into_iter().map(|socket| IoOp::Close { socket }).collect();
    assert!(run(rig, closes).iter().all(|done| done.error.is_none()));
}

fn numbers_of_nothing_are_refused(rig: &mut impl Rig) {
    let (file, socket, listener) = (FileId::new(9), SocketId::new(9), ListenerId::new(9));
    assert_eq!(rig.io().file_bytes(file), 0);
    for (op, error) in [
        (IoOp::Read { file, offset: 0, buffer: Buffer::zeroed(4096) }, IoError::INVALID),
        (IoOp::Write { file, offset: 0, buffer: Arc::new(Buffer::zeroed(4096)) }, IoError::INVALID),
        (IoOp::Sync { file }, IoError::INVALID),
        (IoOp::Zero { file, offset: 0, length: 4096 }, IoError::INVALID),
        (IoOp::Accept { listener }, IoError::INVALID),
        (receive(socket, 8), IoError::NOT_CONNECTED),
        (IoOp::Close { socket }, IoError::NOT_CONNECTED),
    ] {
        assert_eq!(run_one(rig, op).error, Some(error));
    }
}

conformance!(
    what_a_client_sends_is_received_in_parts_and_then_the_end,
    a_large_send_of_several_buffers_waits_for_a_slow_reader,
    sends_of_nothing_and_of_many_buffers_are_done,
    both_directions_go_on_at_once,
    a_client_that_leaves_ends_a_receive_under_way,
    a_close_ends_a_receive_under_way,
    a_close_ends_a_send_under_way,
    many_clients_are_accepted_and_answered,
    numbers_of_nothing_are_refused,
);
