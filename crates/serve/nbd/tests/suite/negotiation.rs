//! Negotiation: each byte of one by hand, and each refusal.
//!
//! For: `server`. Numbers are written out, so that a wrong constant is found.

use crate::memory::{Memory, export};
use cachewright_nbd::{Export, Exports, Session, SessionEvent, Settings, Tls, Violation};

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn reply(number: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = 0x0003_e889_0455_65a9_u64.to_be_bytes().to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// A connection after the client's flags.
fn begun(settings: Settings) -> Memory {
    let exports = vec![export("one", 1 << 20), export("two", 1 << 20)];
    let (mut memory, greeting) = Memory::new(settings, exports);
    assert_eq!(greeting, [&b"NBDMAGICIHAVEOPT"[..], &[0, 3]].concat());
    let mut out = Vec::new();
    memory.receive(&[0, 0, 0, 3], &mut out);
    assert_eq!(out, []);
    memory
}

/// What a connection answers to an option.
fn answer(memory: &mut Memory, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    memory.receive(bytes, &mut out);
    out
}

/// The type of the first answer to an option.
fn kind(memory: &mut Memory, bytes: &[u8]) -> u32 {
    let found = answer(memory, bytes);
    u32::from_be_bytes(found[12..16].try_into().unwrap())
}

#[test]
fn an_export_is_opened_byte_by_byte() {
    let mut memory = begun(Settings::default());
    let data = [string("two"), vec![0, 1, 0, 3]].concat();
    // Size 1 MiB; flags: 1 + flush 4 + FUA 8 + trim 32 + zeroes 64 + several connections 256 +
    // cache 1024 + fast zeroes 2048 = 0xd6d.
    let export = [&[0, 0][..], &(1_u64 << 20).to_be_bytes(), &[0x0d, 0x6d]].concat();
    let blocks = [&[0, 3, 0, 0, 0, 1, 0, 0, 16, 0][..], &(32_u32 << 20).to_be_bytes()].concat();
    let expected = [reply(7, 3, &export), reply(7, 3, &blocks), reply(7, 1, &[])].concat();
    assert_eq!(answer(&mut memory, &option(7, &data)), expected);
    // A read of 4 bytes at 8, cookie 9: a simple reply and the bytes.
    memory.disk[8..12].copy_from_slice(b"data");
    let mut request = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0];
    request.extend(9_u64.to_be_bytes());
    request.extend(8_u64.to_be_bytes());
    request.extend(4_u32.to_be_bytes());
    let expected = [&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0][..], &9_u64.to_be_bytes(), b"data"];
    assert_eq!(answer(&mut memory, &request), expected.concat());
}

#[test]
fn the_old_way_has_no_room_for_errors() {
    let mut memory = begun(Settings::default());
    let found = answer(&mut memory, &option(1, b"one"));
    assert_eq!(found, [&(1_u64 << 20).to_be_bytes()[..], &[0x0d, 0x6d]].concat());
    let mut memory = begun(Settings::default());
    assert_eq!(answer(&mut memory, &option(1, b"three")), []);
    assert_eq!(memory.ended, Some(Err(Violation::UnknownExport)));
    let (mut memory, _) = Memory::new(Settings::default(), vec![export("one", 4096)]);
    let found = answer(&mut memory, &[&[0, 0, 0, 1][..], &option(1, b"")].concat());
    assert_eq!(found.len(), 10 + 124, "zeroes follow unless the client wants none");
}

#[test]
fn exports_are_listed_and_unknown_options_refused() {
    let mut memory = begun(Settings::default());
    let servers = [reply(3, 2, &string("one")), reply(3, 2, &string("two")), reply(3, 1, &[])];
    assert_eq!(answer(&mut memory, &option(3, &[])), servers.concat());
    assert_eq!(kind(&mut memory, &option(3, &[0])), 0x8000_0003);
    assert_eq!(kind(&mut memory, &option(99, b"abc")), 0x8000_0001);
    assert_eq!(kind(&mut memory, &option(11, &[])), 0x8000_0001, "experimental, off");
    assert_eq!(kind(&mut memory, &option(5, &[])), 0x8000_0001, "no TLS here");
    let unknown = [string("three"), vec![0, 0]].concat();
    assert_eq!(kind(&mut memory, &option(7, &unknown)), 0x8000_0006);
    assert_eq!(kind(&mut memory, &option(6, &[0, 0, 0, 9, 1])), 0x8000_0003);
    assert_eq!(answer(&mut memory, &option(2, &[])), reply(2, 1, &[]));
    assert_eq!(memory.ended, Some(Ok(())));
}

#[test]
fn contexts_need_chunks_and_belong_to_one_export() {
    let mut memory = begun(Settings::default());
    let query = |export: &str, queries: &[&str]| {
        let mut data = string(export);
        data.extend((queries.len() as u32).to_be_bytes());
        queries.iter().for_each(|query| data.extend(string(query)));
        data
    };
    let context = |id: u8, name: &str| [&[0, 0, 0, id][..], name.as_bytes()].concat();
    assert_eq!(kind(&mut memory, &option(9, &query("one", &[]))), 0x8000_0003);
    assert_eq!(answer(&mut memory, &option(8, &[])), reply(8, 1, &[]));
    let both = [
        reply(9, 4, &context(0, "base:allocation")),
        reply(9, 4, &context(1, "x-cachewright:dirty")),
        reply(9, 1, &[]),
    ];
    assert_eq!(answer(&mut memory, &option(9, &query("one", &[]))), both.concat());
    let base = [reply(9, 4, &context(0, "base:allocation")), reply(9, 1, &[])];
    assert_eq!(answer(&mut memory, &option(9, &query("one", &["base:"]))), base.concat());
    assert_eq!(answer(&mut memory, &option(10, &query("one", &["base:"]))), reply(10, 1, &[]));
    let dirty = [reply(10, 4, &context(1, "x-cachewright:dirty")), reply(10, 1, &[])];
    let chosen = option(10, &query("one", &["x-cachewright:dirty", "x:y"]));
    assert_eq!(answer(&mut memory, &chosen), dirty.concat());
    assert_eq!(kind(&mut memory, &option(10, &query("three", &[]))), 0x8000_0006);
    assert_eq!(kind(&mut memory, &option(10, &string("one"))), 0x8000_0003);
    answer(&mut memory, &chosen);
    answer(&mut memory, &option(7, &[string("two"), vec![0, 0]].concat()));
    assert_eq!(memory.session.contexts().count(), 0, "chosen for another export");
    let mut memory = begun(Settings::default());
    answer(&mut memory, &option(8, &[]));
    answer(&mut memory, &chosen);
    answer(&mut memory, &option(7, &[string("one"), vec![0, 0]].concat()));
    assert_eq!(memory.session.contexts().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_server_that_needs_tls_shows_nothing_in_the_clear() {
    let settings = Settings { tls: Tls::Required, ..Settings::default() };
    let mut memory = begun(settings);
    for number in [3, 6, 7, 8, 9, 10, 99] {
        assert_eq!(kind(&mut memory, &option(number, &[])), 0x8000_0005, "option {number}");
    }
    assert_eq!(kind(&mut memory, &option(5, &[1])), 0x8000_0003);
    assert_eq!(answer(&mut memory, &option(5, &[])), reply(5, 1, &[]));
    assert_eq!(kind(&mut memory, &option(5, &[])), 0x8000_0003, "TLS is up");
    assert_eq!(kind(&mut memory, &option(3, &[])), 2);
    let mut memory = begun(settings);
    answer(&mut memory, &option(1, b"one"));
    assert_eq!(memory.ended, Some(Err(Violation::UnknownExport)));
}

/// Size and flags are 10 bytes; 124 zeroes follow unless the client's flags say otherwise, before
/// TLS and behind it.
#[test]
fn flags_of_the_client_hold_behind_tls_and_options_do_not() {
    for (tls, flags, expected) in [
        (Tls::Available, 3, 10),
        (Tls::Required, 3, 10),
        (Tls::Available, 1, 134),
        (Tls::Required, 1, 134),
        (Tls::Required, 2, 10),
    ] {
        let settings = Settings { tls, ..Settings::default() };
        let (mut memory, _) = Memory::new(settings, vec![export("one", 1 << 20)]);
        answer(&mut memory, &[0, 0, 0, flags]);
        if tls == Tls::Available {
            assert_eq!(answer(&mut memory, &option(8, &[])), reply(8, 1, &[]));
        }
        assert_eq!(answer(&mut memory, &option(5, &[])), reply(5, 1, &[]));
        let found = answer(&mut memory, &option(1, b"one"));
        assert_eq!(found.len(), expected, "{tls:?}, flags {flags}");
        assert!(!memory.session.replies().in_chunks(), "structured replies were an option");
    }
}

/// Exports none of which takes one more connection.
struct Crowded([Export; 1]);

impl Exports for Crowded {
    fn each(&self, secure: bool, visit: &mut dyn FnMut(&Export)) {
        self.0.each(secure, visit);
    }

    fn find(&self, name: &str, secure: bool) -> Option<&Export> {
        self.0.find(name, secure)
    }

    fn has_place(&self, _export: &Export) -> bool {
        false
    }
}

#[test]
fn an_export_without_a_place_is_described_and_not_opened() {
    let exports = Crowded([export("one", 1 << 20)]);
    let mut out = Vec::new();
    let mut session = Session::new(Settings::default(), &mut out);
    let about = [string("one"), vec![0, 0]].concat();
    let bytes =
        [&[0, 0, 0, 3][..], &option(6, &about), &option(7, &about), &option(1, b"one")].concat();
    let mut input = bytes.as_slice();
    out.clear();
    assert_eq!(session.next(&mut input, &exports, &mut out), Some(SessionEvent::Answered));
    assert_eq!(out[12..16], [0, 0, 0, 3], "facts about it");
    out.clear();
    assert_eq!(session.next(&mut input, &exports, &mut out), Some(SessionEvent::Answered));
    assert_eq!(out[12..16], [0x80, 0, 0, 2], "refused by the server's policy");
    let ended = session.next(&mut input, &exports, &mut out);
    assert_eq!(ended, Some(SessionEvent::Violation(Violation::NoPlace)));
}

#[test]
fn a_message_of_which_a_part_has_come_is_known_as_such() {
    let mut memory = begun(Settings::default());
    assert!(!memory.session.is_within_message());
    answer(&mut memory, &option(1, b"one")[..17]);
    assert!(memory.session.is_within_message(), "an option without all of its data");
    answer(&mut memory, &option(1, b"one")[17..]);
    assert!(!memory.session.is_within_message());
    let header = |kind: u8, length: u8| {
        let head = [0x25, 0x60, 0x95, 0x13, 0, 0, 0, kind];
        [&head[..], &[0; 16], &[0, 0, 0, length]].concat()
    };
    let unknown_and_write = [header(50, 0), header(1, 2), vec![7]].concat();
    for (place, byte) in unknown_and_write.iter().enumerate() {
        answer(&mut memory, &[*byte]);
        let is_whole = place == 27;
        assert_eq!(memory.session.is_within_message(), !is_whole, "byte {place}");
    }
    assert_eq!(memory.session.whole_requests(), 1, "one that was refused");
    answer(&mut memory, &[7]);
    assert_eq!((memory.session.is_within_message(), memory.session.whole_requests()), (false, 2));
}
