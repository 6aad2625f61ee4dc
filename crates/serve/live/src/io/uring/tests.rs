//! Tests of what the trait cannot reach: short calls, modes of the ring, a ring that breaks.

#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use super::*;
use crate::io::open::{FileAccess, open_file, unix_listener};
use crate::io::{Buffer, SocketId};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// The value under test in a folder of its own, unless the kernel refuses it.
fn set_up() -> Option<(Uring, tempfile::TempDir)> {
    match Uring::new() {
        Ok(uring) => Some((uring, tempfile::tempdir().unwrap())),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

fn run(io: &mut Uring, op: IoOp) -> Done {
    let mut done = Vec::new();
    io.submit(Token(0), op);
    io.wait(&mut done);
    done.remove(0)
}

fn connected(io: &mut Uring, folder: &tempfile::TempDir) -> (SocketId, UnixStream) {
    let path = folder.path().join("socket");
    let listener = io.add_listener(unix_listener(&path).unwrap());
    let client = UnixStream::connect(&path).unwrap();
    match run(io, IoOp::Accept { listener }).output {
        Output::Socket(socket) => (socket, client),
        output => panic!("found {output:?}"),
    }
}

#[test]
fn short_calls_are_continued() {
    let Some((mut io, folder)) = set_up() else {
        return;
    };
    io.max_bytes = 8192;
    let path = folder.path().join("file");
    std::fs::write(&path, vec![0; 5 * 4096]).unwrap();
    let file = io.add_file(open_file(&path, FileAccess::Write).unwrap());
    let mut buffer = Buffer::zeroed(5 * 4096);
    buffer.chunks_mut(4096).zip(1..).for_each(|(block, value)| block.fill(value));
    let written = buffer.clone();
    let buffer = Arc::new(buffer);
    assert_eq!(run(&mut io, IoOp::Write { file, offset: 0, buffer }).error, None);
    assert_eq!(std::fs::read(&path).unwrap(), written[..]);
    let done = run(&mut io, IoOp::Read { file, offset: 0, buffer: Buffer::zeroed(5 * 4096) });
    let Output::Buffer(buffer, count) = done.output else {
        panic!("found {:?}", done.output);
    };
    assert_eq!((count, done.error), (5 * 4096, None));
    assert_eq!(buffer[..], written[..]);
    let (socket, mut client) = connected(&mut io, &folder);
    let buffers = vec![Buffer::copy_of(b"ab"), written.clone(), Buffer::copy_of(b"yz")];
    assert_eq!(run(&mut io, IoOp::Send { socket, buffers }).error, None);
    assert_eq!(run(&mut io, IoOp::Close { socket }).error, None);
    let mut taken = Vec::new();
    client.read_to_end(&mut taken).unwrap();
    assert_eq!(taken, [b"ab", &written[..], b"yz"].concat());
}

#[test]
fn every_mode_of_the_ring_does_the_same() {
    for mode in ring::MODES {
        let mut io = match Ring::of_mode(mode) {
            Ok(ring) => Uring::with_ring(ring),
            Err(error) => {
                println!("skipped: {mode:?}: {error}");
                continue;
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 16 * 4096]).unwrap();
        let file = io.add_file(open_file(&path, FileAccess::Write).unwrap());
        // More than the queues hold, beside a receive that takes longer than all of them.
        let (socket, mut client) = connected(&mut io, &folder);
        let buffer = Buffer::zeroed(8);
        io.submit(Token(u64::MAX), IoOp::Receive { socket, buffer });
        for number in 0..5_000 {
            let (offset, buffer) = (number % 16 * 4096, Buffer::zeroed(4096));
            io.submit(Token(number), IoOp::Read { file, offset, buffer });
        }
        let mut done = Vec::new();
        while done.len() < 5_000 {
            io.wait(&mut done);
        }
        let is_read = |done: &Done| match &done.output {
            Output::Buffer(buffer, 4096) => buffer.iter().all(|byte| *byte == 7),
            _ => false,
        };
        assert!(done.drain(..).all(|done| is_read(&done)), "{mode:?}");
        let at_ns = io.now_ns() + 1_000_000;
        assert_eq!(run(&mut io, IoOp::Timer { at_ns }).error, None);
        assert!(io.now_ns() >= at_ns);
        assert_eq!(run(&mut io, IoOp::Sync { file }).error, None);
        client.write_all(b"x").unwrap();
        io.wait(&mut done);
        assert!(matches!(done[0].output, Output::Buffer(ref buffer, 1) if buffer[0] == b'x'));
    }
}

#[test]
fn a_ring_that_breaks_ends_everything_with_its_error() {
    let Some((mut io, folder)) = set_up() else {
        return;
    };
    let (socket, _client) = connected(&mut io, &folder);
    let receive = |number| (Token(number), IoOp::Receive { socket, buffer: Buffer::zeroed(8) });
    let (token, op) = receive(1);
    io.submit(token, op);
    io.submit(Token(2), IoOp::Send { socket, buffers: vec![Buffer::zeroed(8 << 20)] });
    io.round(&mut Vec::new(), false);
    io.give_up(IoError::IO);
    let (token, op) = receive(3);
    io.submit(token, op);
    let mut done = Vec::new();
    io.wait(&mut done);
    done.sort_by_key(|done| done.token);
    let ended: Vec<_> = done.iter().map(|done| (done.token.0, done.error)).collect();
    assert_eq!(ended, [1, 2, 3].map(|token| (token, Some(IoError::IO))));
    io.wait(&mut done);
    assert_eq!(done.len(), 3, "nothing is under way");
}
