//! Our client against our server: every format, any split of the bytes, against an array.
//!
//! For: both sides at once. The array is the obvious model: what was written is read back.

use crate::memory::{Memory, export};
use cachewright_nbd::client::{Client, ClientEvent, ClientSettings, Opened};
use cachewright_nbd::protocol::Format;
use cachewright_nbd::{Errno, NbdCommand, NbdRequest, Range, Settings, StatusExtent};
use proptest::prelude::*;

const SIZE: usize = 256 << 10;

/// A client and a server with what is on its way between them.
struct Pair {
    client: Client,
    server: Memory,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    /// Bytes that travel at once.
    piece: usize,
    opened: Option<Opened>,
    read: Vec<u8>,
    covered: Vec<bool>,
    extents: Vec<(u32, Vec<StatusExtent>)>,
    done: Vec<(u64, Result<(), Errno>)>,
}

impl Pair {
    fn new(settings: ClientSettings, piece: usize) -> Pair {
        let serving = Settings { extended_headers: true, ..Settings::default() };
        let (server, to_client) = Memory::new(serving, vec![export("one", SIZE as u64)]);
        let client = Client::new(settings);
        let mut pair = Pair {
            client,
            server,
            to_server: Vec::new(),
            to_client,
            piece,
            opened: None,
            read: vec![0xcc; SIZE],
            covered: vec![false; SIZE],
            extents: Vec::new(),
            done: Vec::new(),
        };
        pair.settle();
        pair
    }

    /// Carries bytes to and fro until nothing is on its way.
    fn settle(&mut self) {
        while !self.to_server.is_empty() || !self.to_client.is_empty() {
            let sent = std::mem::take(&mut self.to_server);
            for piece in sent.chunks(self.piece) {
                self.server.receive(piece, &mut self.to_client);
            }
            let sent = std::mem::take(&mut self.to_client);
            for piece in sent.chunks(self.piece) {
                self.receive(piece);
            }
        }
    }

    fn receive(&mut self, mut input: &[u8]) {
        while let Some(event) = self.client.next(&mut input, &mut self.to_server) {
            match event {
                ClientEvent::Opened(opened) => self.opened = Some(opened),
                ClientEvent::Data { offset, bytes, .. } => {
                    let at = offset as usize;
                    self.read[at..at + bytes.len()].copy_from_slice(bytes);
                    self.covered[at..at + bytes.len()].fill(true);
                }
                ClientEvent::Hole { offset, length, .. } => {
                    let range = offset as usize..(offset + length) as usize;
                    self.read[range.clone()].fill(0);
                    self.covered[range].fill(true);
                }
                ClientEvent::Extents { context, extents, .. } => {
                    self.extents.push((context, extents));
                }
                ClientEvent::Done { cookie, result } => self.done.push((cookie, result)),
                ClientEvent::StartTls => panic!("no TLS was asked for"),
                ClientEvent::Fault(fault) => panic!("{fault}"),
            }
        }
        assert!(input.is_empty(), "all bytes are taken");
    }

    fn ask(&mut self, cookie: u64, command: NbdCommand, payload: &[u8]) -> Result<(), Errno> {
        let request = NbdRequest { cookie, offset: 0, command, fua: false };
        self.client.send(&request, &mut self.to_server);
        self.to_server.extend_from_slice(payload);
        self.settle();
        let (found, result) = self.done.pop().unwrap();
        assert_eq!((found, self.done.len()), (cookie, 0));
        result
    }
}

fn settings(format: Format) -> ClientSettings {
    ClientSettings {
        export: "one".to_owned(),
        structured: format == Format::Structured,
        extended_headers: format == Format::Extended,
        contexts: vec!["base:allocation".to_owned(), "x-cachewright:dirty".to_owned()],
        ..ClientSettings::default()
    }
}

const FORMATS: [Format; 3] = [Format::Simple, Format::Structured, Format::Extended];

#[test]
fn what_was_agreed_is_known_to_both() {
    for format in FORMATS {
        let mut pair = Pair::new(settings(format), 7);
        let opened = pair.opened.clone().unwrap();
        assert_eq!((opened.size, opened.format), (SIZE as u64, format));
        assert_eq!(opened.blocks.unwrap().preferred, 4096);
        let contexts = if format == Format::Simple { 0 } else { 2 };
        assert_eq!(opened.contexts.len(), contexts);
        let range = Range { offset: 0, length: 8192 };
        let status = pair.ask(1, NbdCommand::BlockStatus { range, single_extent: false }, &[]);
        assert_eq!(status.is_ok(), contexts == 2);
        let zeroes = vec![StatusExtent { length: 8192, status: 3 }];
        let expected = [(0, zeroes.clone()), (1, zeroes)];
        assert_eq!(pair.extents, expected[..contexts]);
        pair.client.disconnect(&mut pair.to_server);
        pair.settle();
        assert_eq!(pair.server.ended, Some(Ok(())));
    }
}

#[test]
fn an_unknown_export_is_a_fault_with_the_servers_words() {
    let serving = Settings::default();
    let (mut server, greeting) = Memory::new(serving, vec![export("one", 4096)]);
    let wanted = ClientSettings { export: "none".to_owned(), ..ClientSettings::default() };
    let (mut client, mut asked, mut answer) = (Client::new(wanted), Vec::new(), Vec::new());
    assert_eq!(client.next(&mut greeting.as_slice(), &mut asked), None);
    server.receive(&asked, &mut answer);
    let event = client.next(&mut answer.as_slice(), &mut asked);
    let Some(ClientEvent::Fault(fault)) = event else { panic!("{event:?}") };
    let expected = "the server refused with error 6: there is no such export";
    assert_eq!(fault.to_string(), expected);
}

fn operation() -> impl Strategy<Value = (u8, usize, usize, u8)> {
    (0_u8..6, 0..SIZE, 1_usize..20_000, any::<u8>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_was_written_is_read(
        format in 0_usize..3,
        piece in prop::sample::select(vec![1, 5, 16, 27, 28, 33, 4096, 1 << 20]),
        operations in prop::collection::vec(operation(), 1..24),
    ) {
        let mut pair = Pair::new(settings(FORMATS[format]), piece);
        let mut model = vec![0_u8; SIZE];
        for (cookie, (kind, at, length, byte)) in operations.into_iter().enumerate() {
            let length = length.min(SIZE - at);
            let range = Range { offset: at as u64, length: length as u64 };
            let cookie = cookie as u64;
            let content = vec![byte; length];
            let command = match kind {
                0 => NbdCommand::Write(range),
                1 => NbdCommand::Zero { range, keep_space: byte & 1 == 0, fast: byte & 2 == 0 },
                2 => NbdCommand::Trim(range),
                3 => NbdCommand::Flush,
                4 => NbdCommand::Read { range, whole: format != 0 },
                _ => NbdCommand::Read { range, whole: false },
            };
            let payload: &[u8] = if kind == 0 { &content } else { &[] };
            pair.covered.fill(false);
            prop_assert_eq!(pair.ask(cookie, command, payload), Ok(()));
            match kind {
                0 => model[at..at + length].fill(byte),
                1 | 2 => model[at..at + length].fill(0),
                3 => {}
                _ => {
                    prop_assert_eq!(&pair.read[at..at + length], &model[at..at + length]);
                    let covered = pair.covered.iter().filter(|covered| **covered).count();
                    prop_assert_eq!(covered, length);
                }
            }
        }
        prop_assert!(pair.server.disk == model);
    }
}
