//! Clients that stop reading, at random, among others that go on: these are served all the same.

use crate::block_world::BLOCK;
use crate::guests::{BLOCKS, Guest, Served, node};
use cachewright_nbd::{NbdCommand, NbdRequest, Range};
use cachewright_types::{Rng, Seed};

/// As many as the node of the tests has connections.
const CLIENTS: usize = 3;

/// A client that may have stopped reading.
struct Client {
    guest: Guest,
    stalled: bool,
    cookies: u64,
    /// What it wrote last to each of its blocks.
    written: [u8; BLOCKS as usize],
}

impl Client {
    /// Its requests are about its own blocks.
    fn any_block(&self, number: usize, rng: &mut Rng) -> u64 {
        let own = BLOCKS / CLIENTS as u64;
        number as u64 * own + rng.below(own)
    }

    /// Sends a request, and takes no answer.
    fn send(
        &mut self,
        served: &mut Served,
        command: NbdCommand,
        offset: u64,
        payload: &[u8],
    ) -> u64 {
        self.cookies += 1;
        let request = NbdRequest { cookie: self.cookies, offset, command, fua: false };
        let mut out = Vec::new();
        self.guest.client.send(&request, &mut out);
        out.extend_from_slice(payload);
        served.send(&mut self.guest, &out);
        self.cookies
    }

    /// Lets the node go on; one that reads takes all of its answers.
    fn exchange(&mut self, served: &mut Served, context: &str) {
        served.settle();
        if self.stalled {
            return;
        }
        for _ in 0..4 {
            served.exchange(&mut self.guest);
        }
        let answered = self.guest.done.len() as u64;
        assert_eq!(answered, self.cookies, "{context}: all requests of a client that reads");
        assert!(self.guest.done.values().all(Result::is_ok), "{context}");
    }
}

fn any_world(seed: u64) -> u64 {
    let mut rng = Seed(seed).derive("stalled").rng();
    let mut served = node();
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|number| {
            let guest = served.connect(&format!("volume-{}", number % 2));
            Client { guest, stalled: false, cookies: 0, written: [0; BLOCKS as usize] }
        })
        .collect();
    let mut among_stalled = 0;
    for turn in 0..150 {
        let context = format!("seed {seed}, turn {turn}");
        let number = rng.below(CLIENTS as u64) as usize;
        let stalls = rng.below(5) == 0;
        let stalled = clients.iter().filter(|client| client.stalled).count() as u64;
        let client = &mut clients[number];
        if stalls {
            client.stalled = !client.stalled;
            served.sim.sockets().client_stalls(client.guest.socket, client.stalled);
        }
        let block = client.any_block(number, &mut rng);
        let range = Range { offset: block * BLOCK, length: BLOCK };
        let mut read = None;
        match rng.below(4) {
            0 => {
                client.send(&mut served, NbdCommand::Flush, 0, &[]);
            }
            1 => {
                client.written[block as usize] = rng.below(255) as u8;
                let data = vec![client.written[block as usize]; BLOCK as usize];
                client.send(&mut served, NbdCommand::Write(range), range.offset, &data);
            }
            _ => {
                let command = NbdCommand::Read { range, whole: rng.below(2) == 0 };
                read = Some(client.send(&mut served, command, range.offset, &[]));
            }
        }
        client.exchange(&mut served, &context);
        if let Some(cookie) = read.filter(|_| !client.stalled) {
            let expected = vec![client.written[block as usize]; BLOCK as usize];
            assert_eq!(client.guest.data[&cookie], expected, "{context}");
        }
        among_stalled += u64::from(!client.stalled) * stalled;
    }
    for client in &mut clients {
        client.stalled = false;
        served.sim.sockets().client_stalls(client.guest.socket, false);
        client.exchange(&mut served, "all read again");
    }
    served.settle();
    assert!(served.service.blocks.is_idle());
    among_stalled
}

#[test]
fn clients_that_stop_reading_hold_up_no_other() {
    let served: u64 = (0..40).map(any_world).sum();
    assert!(served > 1_000, "{served} requests of others were served beside them");
}
