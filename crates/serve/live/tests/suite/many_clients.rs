//! Ten thousand clients that say nothing, anything, or half of something: each keeps a connection
//! no longer than it may, all together cost what the limits say, and others are served.

use crate::block_world::BLOCK;
use crate::guests::{BLOCKS, node};
use cachewright_nbd::{NbdCommand, NbdRequest, Range};
use cachewright_types::{Rng, Seed};

const CLIENTS: usize = 10_000;
/// Connections that the node of the tests has at one time.
const MOST: usize = 3;
/// Bytes that one client may have under way, and those of one more request.
const MOST_BYTES: u64 = (1 << 20) + BLOCKS * BLOCK;

/// What a client sends before it falls silent or leaves.
fn words(rng: &mut Rng) -> Vec<u8> {
    let flags = [0, 0, 0, 3];
    let option = |number: u32, length: u32| {
        [b"IHAVEOPT".as_slice(), &number.to_be_bytes(), &length.to_be_bytes()].concat()
    };
    let mut sent = match rng.below(6) {
        0 => Vec::new(),
        1 => (0..rng.below(300)).map(|_| rng.next_u64() as u8).collect(),
        // An option with data of 4 GiB, of which some comes.
        2 => [&flags[..], &option(7, u32::MAX), &[0; 900]].concat(),
        3 => [&flags[..], &option(3, 0).repeat(40)].concat(),
        // An export is opened, and a write of 32 MiB begins.
        4 => {
            let write =
                [&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, 1], &[0; 16][..], &[2, 0, 0, 0]].concat();
            [&flags[..], &option(1, 8), b"volume-0", &write, &[7; 3000]].concat()
        }
        _ => [&flags[..], &option(1, 8), b"volume-9"].concat(),
    };
    if rng.below(3) == 0 {
        sent.truncate(rng.below(sent.len() as u64 + 1) as usize);
    }
    sent
}

#[test]
fn ten_thousand_clients_cost_what_a_few_may_and_all_are_let_go() {
    let mut served = node();
    let mut rng = Seed(8).derive("clients").rng();
    let (mut most, mut most_bytes) = (0, 0);
    let mut sockets = Vec::new();
    for client in 0..CLIENTS {
        let socket = served.sim.sockets().connect(served.listener);
        sockets.push(socket);
        let sent = words(&mut rng);
        served.sim.sockets().client_sends(socket, &sent);
        if rng.below(2) == 0 {
            served.sim.sockets().client_closes(socket);
        }
        if rng.below(9) == 0 {
            served.sim.sockets().client_stalls(socket, true);
        }
        for _ in 0..rng.below(4) {
            served.step();
        }
        // Clients that wait for a connection, and those that keep one, come to hundreds.
        while client % 500 == 499 && sockets.iter().any(|socket| served.is_open(*socket)) {
            // One that has opened an export and says no more may stay: it leaves.
            sockets.iter().for_each(|socket| served.sim.sockets().client_closes(*socket));
            served.tick();
            most = most.max(served.connections());
            most_bytes = most_bytes.max(served.held_bytes());
        }
    }
    assert_eq!((most, served.connections(), served.held_bytes()), (MOST, 0, 0));
    assert!(most_bytes <= MOST as u64 * MOST_BYTES, "{most_bytes} bytes were held");
    let mut guest = served.connect("volume-0");
    let read = NbdCommand::Read { range: Range { offset: 0, length: BLOCK }, whole: true };
    served.request(&mut guest, 1, read, &[]);
    assert_eq!(guest.data[&1], [0; BLOCK as usize], "no write that was cut short is applied");
    let request = NbdRequest { cookie: 2, offset: 0, command: NbdCommand::Flush, fua: false };
    let mut out = Vec::new();
    guest.client.send(&request, &mut out);
    served.send(&mut guest, &out);
    served.exchange(&mut guest);
    assert_eq!(guest.done[&2], Ok(()));
}
