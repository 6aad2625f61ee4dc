//! NBD: both sides take any bytes, and take them alike however they are cut.
#![no_main]

use cachewright_nbd::client::{Client, ClientSettings};
use cachewright_nbd::{BlockSizes, Export, Session, SessionEvent, Settings, Tls};
use libfuzzer_sys::fuzz_target;

/// What a server said, wrote and asked for; payloads as one.
#[derive(Debug, Default, PartialEq)]
struct Said {
    out: Vec<u8>,
    payload: Vec<u8>,
    events: Vec<String>,
}

fn export() -> Export {
    Export {
        name: "one".to_owned(),
        description: "an export".to_owned(),
        size: 1 << 40,
        blocks: BlockSizes { min: 1, preferred: 4096, max_payload: 32 << 20 },
        read_only: false,
        multi_conn: true,
        fast_zero: true,
        contexts: vec!["base:allocation".to_owned()],
    }
}

fn serve(bytes: &[u8], piece: usize, settings: Settings) -> Said {
    let mut said = Said::default();
    let mut session = Session::new(settings, &mut said.out);
    let exports = [export()];
    for mut input in bytes.chunks(piece) {
        while let Some(event) = session.next(&mut input, exports.as_slice(), &mut said.out) {
            match event {
                SessionEvent::Payload { bytes, .. } => said.payload.extend_from_slice(bytes),
                SessionEvent::StartTls => return said,
                other => said.events.push(format!("{other:?}")),
            }
        }
    }
    said
}

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    let tls = [Tls::Off, Tls::Available, Tls::Required][usize::from(first % 3)];
    let settings = Settings { tls, extended_headers: first & 64 != 0, ..Settings::default() };
    assert_eq!(serve(bytes, 1, settings), serve(bytes, bytes.len().max(1), settings));
    let mut client = Client::new(ClientSettings {
        structured: first & 8 != 0,
        extended_headers: first & 16 != 0,
        contexts: vec!["base:allocation".to_owned()],
        ..ClientSettings::default()
    });
    let (mut input, mut out) = (bytes, Vec::new());
    while client.next(&mut input, &mut out).is_some() {}
});
