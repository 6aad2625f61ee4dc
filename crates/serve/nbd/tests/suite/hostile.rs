//! Peers that mean harm: bounded memory, no panic, the connection ends.
//!
//! For: `server` and `client`. Time is not tested here: deadlines belong to the caller.

use crate::memory::{Memory, export};
use cachewright_nbd::client::{Client, ClientEvent, ClientSettings};
use cachewright_nbd::{Limits, Session, SessionEvent, Settings, Tls, Violation};
use proptest::prelude::*;

fn header(option: u32, length: u32) -> Vec<u8> {
    [&b"IHAVEOPT"[..], &option.to_be_bytes(), &length.to_be_bytes()].concat()
}

fn begun(settings: Settings) -> Memory {
    let (mut memory, _) = Memory::new(settings, vec![export("one", 1 << 16)]);
    memory.receive(&[0, 0, 0, 3], &mut Vec::new());
    memory
}

#[test]
fn a_long_option_is_skipped_and_a_huge_one_ends_the_connection() {
    let mut memory = begun(Settings::default());
    let mut out = Vec::new();
    memory.receive(&header(7, 100_000), &mut out);
    (0..100).for_each(|_| memory.receive(&[7; 1000], &mut out));
    assert_eq!(&out[12..16], &[0x80, 0, 0, 9], "too big");
    out.clear();
    memory.receive(&header(3, 0), &mut out);
    assert_eq!(&out[12..16], &[0, 0, 0, 2], "the next option is answered");
    memory.receive(&header(7, u32::MAX), &mut out);
    let (what, found, limit) = ("an option's data", u64::from(u32::MAX), 1 << 20);
    assert_eq!(memory.ended, Some(Err(Violation::TooLong { what, found, limit })));
}

#[test]
fn a_negotiation_without_end_ends() {
    let limits = Limits { options: 10, ..Limits::default() };
    let mut memory = begun(Settings { limits, ..Settings::default() });
    let mut out = Vec::new();
    (0..10).for_each(|_| memory.receive(&header(99, 0), &mut out));
    assert_eq!(memory.ended, None);
    memory.receive(&header(99, 0), &mut out);
    assert_eq!(memory.ended, Some(Err(Violation::TooManyOptions { limit: 10 })));
}

#[test]
fn wrong_magics_and_flags_end_the_connection() {
    let (mut memory, _) = Memory::new(Settings::default(), vec![export("one", 4096)]);
    memory.receive(&[0, 0, 0, 7], &mut Vec::new());
    assert_eq!(memory.ended, Some(Err(Violation::ClientFlags { found: 7 })));
    let mut memory = begun(Settings::default());
    memory.receive(b"GET / HTTP/1.1\r\n", &mut Vec::new());
    assert!(matches!(memory.ended, Some(Err(Violation::Magic { .. }))));
}

#[test]
fn bytes_in_the_clear_behind_the_request_for_tls_end_the_connection() {
    let settings = Settings { tls: Tls::Available, ..Settings::default() };
    let mut session = Session::new(settings, &mut Vec::new());
    let bytes = [&[0, 0, 0, 3][..], &header(5, 0), &header(3, 0)].concat();
    let exports = [export("one", 4096)];
    let (mut input, mut out) = (bytes.as_slice(), Vec::new());
    let first = session.next(&mut input, exports.as_slice(), &mut out);
    assert_eq!(first, Some(SessionEvent::StartTls));
    let second = session.next(&mut input, exports.as_slice(), &mut out);
    assert_eq!(second, Some(SessionEvent::Violation(Violation::ClearAfterTls)));
}

fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..4096)
}

/// Flags, command, offset and length.
fn some_request() -> impl Strategy<Value = (u16, u16, u64, u32)> {
    (any::<u16>(), 0_u16..9, any::<u64>(), 0_u32..100_000)
}

proptest! {
    /// Random bytes after a valid beginning: no panic, and a server's answers stay in proportion.
    #[test]
    fn any_bytes_are_survived(bytes in some_bytes(), open in any::<bool>()) {
        let mut memory = begun(Settings { extended_headers: true, ..Settings::default() });
        let mut out = Vec::new();
        if open {
            memory.receive(&[header(1, 3), b"one".to_vec()].concat(), &mut out);
        }
        memory.receive(&bytes, &mut out);
        prop_assert!(out.len() < (1 << 20) + 64 * bytes.len());
    }

    /// The same with well-formed headers of random numbers.
    #[test]
    fn any_requests_are_survived(requests in prop::collection::vec(some_request(), 0..20)) {
        let mut memory = begun(Settings::default());
        let mut out = Vec::new();
        memory.receive(&[header(1, 3), b"one".to_vec()].concat(), &mut out);
        for (flags, kind, offset, length) in requests {
            let mut bytes = vec![0x25, 0x60, 0x95, 0x13];
            bytes.extend(flags.to_be_bytes());
            bytes.extend(kind.to_be_bytes());
            bytes.extend([1; 8]);
            bytes.extend((offset % (1 << 17)).to_be_bytes());
            bytes.extend(length.to_be_bytes());
            bytes.resize(bytes.len() + if kind == 1 { length as usize } else { 0 }, 5);
            memory.receive(&bytes, &mut out);
        }
        prop_assert!(!matches!(memory.ended, Some(Err(_))));
    }

    /// A hostile server: no panic, and nothing goes on after a fault.
    #[test]
    fn any_server_is_survived(bytes in some_bytes(), begun in any::<bool>()) {
        let settings = ClientSettings { structured: true, ..ClientSettings::default() };
        let mut client = Client::new(settings);
        let mut out = Vec::new();
        let greeting = [&b"NBDMAGICIHAVEOPT"[..], &[0, 3]].concat();
        let all = [if begun { greeting } else { Vec::new() }, bytes].concat();
        let mut input = all.as_slice();
        let mut faulted = false;
        while let Some(event) = client.next(&mut input, &mut out) {
            prop_assert!(!faulted);
            faulted = matches!(event, ClientEvent::Fault(_));
        }
    }
}
