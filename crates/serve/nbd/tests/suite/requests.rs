//! Requests that are refused: each with its error, and the connection goes on.
//!
//! For: `request`, `server::header`. Source of the errors: proto.md, "Error values" and
//! "Request types".

use crate::memory::{Memory, export};
use cachewright_nbd::{Settings, Violation};

const SIZE: u64 = 64 << 10;

/// A request's header of 28 bytes.
fn header(flags: u16, kind: u16, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = vec![0x25, 0x60, 0x95, 0x13];
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(7_u64.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// A connection with an open export, with or without chunks.
fn open(read_only: bool, min: u32, chunks: bool) -> Memory {
    let mut one = export("one", SIZE);
    (one.read_only, one.blocks.min) = (read_only, min);
    let (mut memory, _) = Memory::new(Settings::default(), vec![one]);
    let option = |number: u32, data: &[u8]| {
        let length = (data.len() as u32).to_be_bytes();
        [&b"IHAVEOPT"[..], &number.to_be_bytes(), &length, data].concat()
    };
    let structured = if chunks { option(8, &[]) } else { Vec::new() };
    let go = option(7, &[0, 0, 0, 3, b'o', b'n', b'e', 0, 0]);
    memory.receive(&[vec![0, 0, 0, 3], structured, go].concat(), &mut Vec::new());
    memory
}

/// The error of a simple reply, which must be all that came.
fn error(memory: &mut Memory, request: &[u8]) -> u32 {
    let mut out = Vec::new();
    memory.receive(request, &mut out);
    assert_eq!(memory.ended, None);
    assert_eq!(
        (&out[..4], &out[8..16]),
        (&[0x67, 0x44, 0x66, 0x98][..], &[0, 0, 0, 0, 0, 0, 0, 7][..])
    );
    let code = u32::from_be_bytes(out[4..8].try_into().unwrap());
    assert!(code == 0 || out.len() == 16, "an error has no data");
    code
}

#[test]
fn errors_are_those_of_the_protocol() {
    let mut memory = open(false, 1, false);
    let payload = |length: usize| vec![0xee; length];
    let cases = [
        ("a read beyond the end", header(0, 0, SIZE - 1, 2), 0, 22),
        ("a read whose end overflows", header(0, 0, u64::MAX, 2), 0, 22),
        ("a write beyond the end", header(0, 1, SIZE - 1, 2), 2, 28),
        ("zeroes beyond the end", header(0, 6, SIZE, 1), 0, 28),
        ("a trim beyond the end", header(0, 4, SIZE, 1), 0, 22),
        ("a read without bytes", header(0, 0, 0, 0), 0, 22),
        ("a write without bytes", header(0, 1, 0, 0), 0, 22),
        ("an unknown command", header(0, 50, 0, 1), 0, 22),
        ("an unknown flag", header(1 << 9, 0, 0, 1), 0, 22),
        ("one chunk without chunks", header(1 << 2, 0, 0, 1), 0, 22),
        ("a flag of zeroes on a write", header(1 << 1, 1, 0, 1), 1, 22),
        ("block status without a context", header(0, 7, 0, 1), 0, 22),
        ("a flush with forced unit access", header(1, 3, 0, 0), 0, 0),
        ("a read with forced unit access", header(1, 0, 0, 1), 0, 0),
        ("fast zeroes", header(1 << 4, 6, 0, 512), 0, 0),
        ("the last byte", header(0, 1, SIZE - 1, 1), 1, 0),
    ];
    for (what, header, length, expected) in cases {
        let found = error(&mut memory, &[header, payload(length)].concat());
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!((memory.disk[0], memory.disk[SIZE as usize - 1]), (0, 0xee));
}

/// 95 is `ENOTSUP`; zeroes that may be slow are carried out all the same.
#[test]
fn fast_zeroes_are_refused_where_zeroes_are_no_faster_than_writes() {
    let mut slow = export("one", SIZE);
    slow.fast_zero = false;
    assert_eq!(slow.flags(false) & 1 << 11, 0, "they are not offered");
    let (mut memory, _) = Memory::new(Settings::default(), vec![slow]);
    memory.receive(&[0, 0, 0, 3], &mut Vec::new());
    let opened = [&b"IHAVEOPT"[..], &[0, 0, 0, 1, 0, 0, 0, 3], b"one"].concat();
    memory.receive(&opened, &mut Vec::new());
    memory.disk[0] = 9;
    assert_eq!(error(&mut memory, &header(1 << 4, 6, 0, 512)), 95);
    assert_eq!(memory.disk[0], 9, "nothing was changed");
    assert_eq!(error(&mut memory, &header(0, 6, 0, 512)), 0);
    assert_eq!(memory.disk[0], 0);
}

#[test]
fn read_only_exports_and_minimum_blocks_are_kept() {
    let mut memory = open(true, 1, false);
    for (kind, length) in [(1, 4), (4, 0), (6, 0)] {
        let request = [header(0, kind, 0, 4), vec![1; length]].concat();
        assert_eq!(error(&mut memory, &request), 1, "command {kind}");
    }
    assert_eq!(error(&mut memory, &header(0, 0, 0, 4)), 0);
    let mut memory = open(false, 512, false);
    assert_eq!(error(&mut memory, &header(0, 0, 256, 512)), 22);
    assert_eq!(error(&mut memory, &header(0, 0, 512, 100)), 22);
    assert_eq!(error(&mut memory, &header(0, 0, 512, 512)), 0);
}

#[test]
fn a_refused_write_is_skipped_whatever_its_pieces() {
    for size in [1, 3, 28, 29, 4096] {
        let mut memory = open(false, 1, false);
        let refused = [header(0, 1, SIZE, 4096), vec![9; 4096]].concat();
        let bytes = [refused, header(0, 0, 0, 1)].concat();
        let mut out = Vec::new();
        bytes.chunks(size).for_each(|piece| memory.receive(piece, &mut out));
        assert_eq!(out.len(), 16 + 17, "an error and a read of one byte, by {size}");
        assert_eq!(out[7], 28);
        assert!(memory.disk.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn errors_in_chunks_carry_a_sentence() {
    let mut memory = open(false, 1, true);
    let mut out = Vec::new();
    memory.receive(&header(0, 0, SIZE, 1), &mut out);
    let message = b"the range ends beyond the export";
    let length = 6 + message.len() as u32;
    let expected = [
        &[0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1][..],
        &7_u64.to_be_bytes(),
        &length.to_be_bytes(),
        &[0, 0, 0, 22, 0, message.len() as u8],
        message,
    ];
    assert_eq!(out, expected.concat());
}

#[test]
fn a_payload_that_is_never_plausible_ends_the_connection() {
    let mut memory = open(false, 1, false);
    memory.receive(&header(0, 1, 0, u32::MAX), &mut Vec::new());
    let (found, limit) = (u64::from(u32::MAX), 64 << 20);
    let expected = Violation::TooLong { what: "a payload", found, limit };
    assert_eq!(memory.ended, Some(Err(expected)));
}
