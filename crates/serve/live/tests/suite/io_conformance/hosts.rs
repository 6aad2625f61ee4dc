//! What only files and sockets of the system can show.

use super::host_conformance;
use super::rigs::{HostRig, Rig, run, run_one, step, step_until_done};
use super::sockets::{accept, connected, pattern, receive};
use cachewright_live::io::{Buffer, IoError, IoOp, Output, Token};
use std::fs::OpenOptions;
use std::sync::Arc;

fn a_connection_has_one_receive_and_one_send_under_way(rig: &mut HostRig) {
    let (socket, client) = connected(rig);
    rig.io().submit(Token(0), receive(socket, 8));
    let send = |bytes| IoOp::Send { socket, buffers: vec![Buffer::zeroed(bytes)] };
    rig.io().submit(Token(1), send(6 << 20));
    assert!(step(rig).is_empty());
    for (op, length) in [(receive(socket, 9), 9), (send(9), 9)] {
        let done = run_one(rig, op);
        assert_eq!(done.error, Some(IoError::BUSY));
        let buffer = match done.output {
            Output::Buffer(buffer, 0) => buffer,
            Output::Buffers(mut buffers) => buffers.remove(0),
            output => panic!("found {output:?}"),
        };
        assert_eq!(buffer.len(), length);
    }
    rig.client_closes(client);
    let mut done = step_until_done(rig);
    while done.len() < 2 {
        done.extend(step_until_done(rig));
    }
    let send = done.iter().find(|done| done.token == Token(1)).unwrap();
    assert_eq!(send.error, Some(IoError::NOT_CONNECTED));
}

fn nothing_goes_on_after_a_close_and_numbers_are_used_again(rig: &mut HostRig) {
    let listener = rig.listener();
    let mut numbers = Vec::new();
    for _ in 0..50 {
        let client = rig.connect(listener);
        let socket = accept(run_one(rig, IoOp::Accept { listener }));
        numbers.push(socket);
        assert_eq!(run_one(rig, IoOp::Close { socket }).error, None);
        let after = vec![
            receive(socket, 8),
            IoOp::Send { socket, buffers: vec![Buffer::zeroed(8)] },
            IoOp::Close { socket },
        ];
        for done in run(rig, after) {
            assert_eq!(done.error, Some(IoError::NOT_CONNECTED));
        }
        assert!(rig.client_is_at_end(client));
        rig.client_closes(client);
    }
    assert!(numbers.iter().all(|number| *number == numbers[0]), "tables stay small");
}

fn connections_over_tcp_carry_the_same(rig: &mut HostRig) {
    let listener = rig.tcp_listener();
    let client = rig.connect(listener);
    let socket = accept(run_one(rig, IoOp::Accept { listener }));
    let whole = pattern(3 << 20);
    let buffers = vec![Buffer::copy_of(&whole[..16]), Buffer::copy_of(&whole[16..])];
    rig.io().submit(Token(1), IoOp::Send { socket, buffers });
    let (mut taken, mut done) = (Vec::new(), Vec::new());
    while taken.len() < whole.len() || done.is_empty() {
        taken.extend(rig.client_receives(client));
        if done.is_empty() {
            done.extend(step(rig));
        }
    }
    assert!(taken == whole && done[0].error.is_none());
    rig.io().submit(Token(2), receive(socket, 8));
    assert!(step(rig).is_empty());
    rig.client_closes(client);
    let done = step_until_done(rig).remove(0);
    assert!(matches!(done.output, Output::Buffer(_, 0)));
    assert_eq!(run_one(rig, IoOp::Close { socket }).error, None);
}

fn a_file_that_shrinks_gives_what_is_left_and_an_error(rig: &mut HostRig) {
    let file = rig.file(4 * 4096);
    let mut buffer = Buffer::zeroed(4 * 4096);
    buffer.fill(1);
    run_one(rig, IoOp::Write { file, offset: 0, buffer: Arc::new(buffer) });
    OpenOptions::new().write(true).open(rig.path(file)).unwrap().set_len(4096 + 512).unwrap();
    let done = run_one(rig, IoOp::Read { file, offset: 0, buffer: Buffer::zeroed(2 * 4096) });
    assert_eq!(done.error, Some(IoError::BEYOND_END));
    let Output::Buffer(buffer, count) = done.output else {
        panic!("found {:?}", done.output);
    };
    assert_eq!((count, buffer.len()), (4096 + 512, 2 * 4096));
    assert!(buffer[..count].iter().all(|byte| *byte == 1));
}

fn a_sibling_can_end_with_everything_under_way(rig: &mut HostRig) {
    let file = rig.file(1024 * 4096);
    let (socket, client) = connected(rig);
    let listener = rig.listener();
    let mut ops = vec![
        IoOp::Accept { listener },
        receive(socket, 100),
        IoOp::Send { socket, buffers: vec![Buffer::zeroed(6 << 20)] },
        IoOp::Timer { at_ns: u64::MAX },
        IoOp::Sync { file },
    ];
    ops.extend((0..1024).map(|block| {
        let mut buffer = Buffer::zeroed(4096);
        buffer.fill(3);
        IoOp::Write { file, offset: block * 4096, buffer: Arc::new(buffer) }
    }));
    for (number, op) in ops.into_iter().enumerate() {
        rig.io().submit(Token(number as u64), op);
    }
    let mut done = Vec::new();
    rig.io().wait(&mut done);
    assert!(!done.is_empty());
    rig.drop_io();
    let blocks = rig.content(file);
    assert!(blocks.chunks(4096).all(|block| block.iter().all(|byte| *byte == 3)), "writes end");
    while !rig.client_receives(client).is_empty() {}
    assert!(rig.client_is_at_end(client));
}

host_conformance!(
    a_connection_has_one_receive_and_one_send_under_way,
    nothing_goes_on_after_a_close_and_numbers_are_used_again,
    connections_over_tcp_carry_the_same,
    a_file_that_shrinks_gives_what_is_left_and_an_error,
    a_sibling_can_end_with_everything_under_way,
);
