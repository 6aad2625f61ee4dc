//! A simulated node, and clients that speak the protocol with it, in the clear or over TLS.
//!
//! For: tests of exports. Must never know: what is expected. Units: bytes, blocks, nanoseconds.

use crate::block_world::{BLOCK, Setting, TENANTS, formatted, served};
use cachewright_cache::WriteMode;
use cachewright_live::exports::{CONTEXTS, ConnectionLimits, NbdFrontEnd, NbdSettings};
use cachewright_live::front::{self, BlockService, FrontEnd, ServedExport};
use cachewright_live::io::sim::Sim;
use cachewright_live::io::{FileId, Io, ListenerId, SocketId};
use cachewright_nbd::client::{Client, ClientEvent, ClientSettings, ReplyFault};
use cachewright_nbd::{Errno, Limits, NbdCommand, NbdRequest, Range, StatusExtent};
use cachewright_types::{Seed, TenantId};
use rustls::ClientConnection;
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// Blocks of each volume.
pub const BLOCKS: u64 = 10;
/// The time in which a client must open an export, or take its last answers.
pub const PATIENCE_NS: u64 = 60_000_000_000;
/// The time in which a request must come whole, and an answer be taken.
pub const STALL_NS: u64 = 200_000_000_000;
/// Memory of all clients together: half of it is shared by those that want more than their own.
pub const CLIENT_MEMORY: u64 = 4 << 20;

/// A node that serves `volume-0`, `volume-1` and so on.
pub struct Served {
    pub sim: Sim,
    pub service: BlockService,
    pub nbd: NbdFrontEnd,
    pub listener: ListenerId,
    /// The device of the cache.
    pub device: FileId,
}

/// A client and what it was sent.
pub struct Guest {
    pub client: Client,
    pub socket: SocketId,
    pub data: BTreeMap<u64, Vec<u8>>,
    pub status: BTreeMap<u32, Vec<StatusExtent>>,
    pub done: BTreeMap<u64, Result<(), Errno>>,
    pub opened: bool,
    /// Why it gave up, in words.
    pub fault: Option<String>,
    /// TLS, and whether it was agreed.
    tls: Option<ClientConnection>,
    is_secure: bool,
}

/// A node whose exports all clients see.
pub fn node() -> Served {
    node_for(&[&[], &[]])
}

/// A node whose exports all clients see, with other settings.
pub fn node_with(change: impl FnOnce(&mut NbdSettings)) -> Served {
    node_of(&[&[], &[]], change)
}

/// A node whose exports are seen by clients with these names; all where there are none.
pub fn node_for(clients: &[&[&str]]) -> Served {
    node_of(clients, |_| {})
}

/// The export of a tenant, for clients with these names.
pub fn export(tenant: usize, clients: &[&str]) -> ServedExport {
    ServedExport {
        read_only: false,
        name: format!("volume-{tenant}"),
        bytes: BLOCKS * BLOCK,
        clients: clients.iter().map(|name| (*name).to_owned()).collect(),
        max_connections: None,
        fast_zero: true,
    }
}

fn node_of(clients: &[&[&str]], change: impl FnOnce(&mut NbdSettings)) -> Served {
    let setting = Setting::of("lru", WriteMode::WriteBack);
    assert_eq!((setting.blocks, usize::from(TENANTS)), (BLOCKS, clients.len()));
    let (mut sim, files) = formatted(&setting, Seed(3));
    let (blocks, _) = served(&mut sim, &setting, &files).unwrap().unwrap();
    let exports = clients.iter().enumerate().map(|(tenant, clients)| export(tenant, clients));
    let exports = exports.collect();
    let connection = ConnectionLimits {
        requests: 4,
        bytes: 1 << 20,
        negotiation_ns: PATIENCE_NS,
        stall_ns: STALL_NS,
        ending_ns: PATIENCE_NS,
    };
    let limits = Limits::default();
    let mut settings = NbdSettings {
        limits,
        connection,
        extended_headers: true,
        max_connections: 3,
        client_memory: CLIENT_MEMORY,
    };
    change(&mut settings);
    let mut nbd = NbdFrontEnd::new(exports, blocks.block_bytes(), settings);
    let service = BlockService::new(blocks, clients.len());
    let listener = sim.add_listener();
    nbd.listen(listener);
    Served { sim, service, nbd, listener, device: files.0[0] }
}

impl Served {
    /// What is due, and one operation; false if there was none but timers.
    pub fn step(&mut self) -> bool {
        front::advance(&mut self.sim, &mut self.service, &mut [&mut self.nbd]);
        let is_busy = self.sim.is_busy();
        if is_busy {
            self.wait();
        }
        is_busy
    }

    /// What is due, and one operation or the end of a timer.
    pub fn tick(&mut self) {
        front::advance(&mut self.sim, &mut self.service, &mut [&mut self.nbd]);
        self.wait();
    }

    fn wait(&mut self) {
        let mut done = Vec::new();
        self.sim.wait(&mut done);
        for done in done {
            front::on_done(&mut self.sim, &mut self.service, &mut [&mut self.nbd], done);
        }
    }

    /// No client is accepted any more.
    pub fn stop(&mut self) {
        front::stop(&mut self.sim, &mut self.service, &mut [&mut self.nbd]);
    }

    pub fn is_stopped(&self) -> bool {
        self.front().is_stopped()
    }

    pub fn connections(&self) -> usize {
        self.front().connections()
    }

    pub fn held_bytes(&self) -> u64 {
        self.front().held_bytes()
    }

    pub fn change_export(&mut self, tenant: TenantId, export: ServedExport) -> usize {
        FrontEnd::<Sim>::change_export(&mut self.nbd, tenant, export)
    }

    fn front(&self) -> &dyn FrontEnd<Sim> {
        &self.nbd
    }

    /// Whether the server still holds a connection.
    pub fn is_open(&mut self, socket: SocketId) -> bool {
        self.sim.sockets().is_open(socket)
    }

    /// All that is due.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    /// A client of this export, which is open.
    pub fn connect(&mut self, export: &str) -> Guest {
        let guest = self.guest(export, None);
        assert!(guest.opened, "the export is open");
        guest
    }

    /// The same, with headers of 32 bytes.
    pub fn connect_extended(&mut self, export: &str) -> Guest {
        let guest = self.guest_of(export, None, true);
        assert!(guest.opened, "the export is open");
        guest
    }

    /// A client that asks for this export, over TLS if it has one.
    pub fn guest(&mut self, export: &str, tls: Option<ClientConnection>) -> Guest {
        self.guest_of(export, tls, false)
    }

    /// A client that asks for this export at another listener.
    pub fn guest_at(&mut self, listener: ListenerId, export: &str) -> Guest {
        let before = std::mem::replace(&mut self.listener, listener);
        let guest = self.guest(export, None);
        self.listener = before;
        guest
    }

    fn guest_of(
        &mut self,
        export: &str,
        tls: Option<ClientConnection>,
        extended_headers: bool,
    ) -> Guest {
        let settings = ClientSettings {
            extended_headers,
            export: export.to_owned(),
            tls: tls.is_some(),
            structured: true,
            contexts: CONTEXTS.map(str::to_owned).to_vec(),
        };
        let socket = self.sim.sockets().connect(self.listener);
        let mut guest = Guest {
            client: Client::new(settings),
            socket,
            data: BTreeMap::new(),
            status: BTreeMap::new(),
            done: BTreeMap::new(),
            opened: false,
            fault: None,
            tls,
            is_secure: false,
        };
        for _ in 0..20 {
            self.exchange(&mut guest);
        }
        guest
    }

    /// Lets the node go on, and the client take what it was sent.
    pub fn exchange(&mut self, guest: &mut Guest) {
        self.settle();
        self.take(guest);
    }

    /// The client sends these bytes, by TLS if it has one.
    pub fn send(&mut self, guest: &mut Guest, plain: &[u8]) {
        let wire = guest.encrypted(plain);
        self.sim.sockets().client_sends(guest.socket, &wire);
    }

    /// Lets the client take what it was sent.
    pub fn take(&mut self, guest: &mut Guest) {
        let wire = self.sim.sockets().client_receives(guest.socket);
        let mut out = Vec::new();
        let bytes = guest.decrypted(wire, &mut out);
        let mut input = &bytes[..];
        while guest.fault.is_none()
            && let Some(event) = guest.client.next(&mut input, &mut out)
        {
            match event {
                ClientEvent::Opened(opened) => {
                    assert_eq!(opened.size, BLOCKS * BLOCK);
                    guest.opened = true;
                }
                ClientEvent::Data { cookie, bytes, .. } => {
                    guest.data.entry(cookie).or_default().extend(bytes);
                }
                ClientEvent::Extents { context, extents, .. } => {
                    guest.status.insert(context, extents);
                }
                ClientEvent::Done { cookie, result } => {
                    guest.done.insert(cookie, result);
                }
                ClientEvent::StartTls => guest.is_secure = true,
                ClientEvent::Fault(fault @ ReplyFault::Refused { .. }) => {
                    guest.fault = Some(fault.to_string());
                }
                event => unreachable!("found {event:?}"),
            }
        }
        self.send(guest, &out);
    }

    /// The client sends these reads of the whole volume and takes nothing.
    pub fn send_reads(&mut self, guest: &mut Guest, cookies: std::ops::Range<u64>) {
        let command = NbdCommand::Read { range: range(0, BLOCKS * BLOCK), whole: true };
        let mut out = Vec::new();
        for cookie in cookies {
            guest.client.send(&NbdRequest { cookie, offset: 0, command, fua: false }, &mut out);
        }
        self.send(guest, &out);
    }

    /// The client sends a write that is to be durable when it is answered, and takes its answer.
    pub fn write_durably(&mut self, guest: &mut Guest, cookie: u64, offset: u64, payload: &[u8]) {
        let command = NbdCommand::Write(range(offset, payload.len() as u64));
        let mut out = Vec::new();
        guest.client.send(&NbdRequest { cookie, offset, command, fua: true }, &mut out);
        out.extend_from_slice(payload);
        self.send(guest, &out);
        self.exchange(guest);
        self.exchange(guest);
    }

    /// The client sends a request and takes its answer.
    pub fn request(&mut self, guest: &mut Guest, cookie: u64, command: NbdCommand, payload: &[u8]) {
        let offset = match command {
            NbdCommand::Flush => 0,
            NbdCommand::Read { range, .. } | NbdCommand::Zero { range, .. } => range.offset,
            NbdCommand::Write(range) | NbdCommand::Trim(range) | NbdCommand::Cache(range) => {
                range.offset
            }
            NbdCommand::BlockStatus { range, .. } => range.offset,
        };
        let mut out = Vec::new();
        let request = NbdRequest { cookie, offset, command, fua: false };
        guest.client.send(&request, &mut out);
        out.extend_from_slice(payload);
        self.send(guest, &out);
        self.exchange(guest);
        self.exchange(guest);
    }
}

impl Guest {
    /// What is to be sent for these bytes.
    pub fn encrypted(&mut self, plain: &[u8]) -> Vec<u8> {
        let Some(tls) = self.tls.as_mut().filter(|_| self.is_secure) else {
            return plain.to_vec();
        };
        let mut wire = Vec::new();
        tls.writer().write_all(plain).unwrap();
        while tls.wants_write() {
            tls.write_tls(&mut wire).unwrap();
        }
        wire
    }

    /// The bytes behind what came in; what the client says to them is appended to `out`. A failure
    /// of TLS is kept as its fault.
    fn decrypted(&mut self, wire: Vec<u8>, out: &mut Vec<u8>) -> Vec<u8> {
        let Some(tls) = self.tls.as_mut().filter(|_| self.is_secure) else { return wire };
        let (mut wire, mut plain) = (&wire[..], Vec::new());
        while !wire.is_empty() && self.fault.is_none() {
            tls.read_tls(&mut wire).unwrap();
            match tls.process_new_packets() {
                Ok(state) => {
                    let from = plain.len();
                    plain.resize(from + state.plaintext_bytes_to_read(), 0);
                    tls.reader().read_exact(&mut plain[from..]).unwrap();
                }
                Err(error) => self.fault = Some(error.to_string()),
            }
        }
        if !tls.is_handshaking() {
            self.client.secured(out);
        }
        plain
    }

    /// The client tells the node by TLS that it sends no more.
    pub fn end_tls(&mut self) -> Vec<u8> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.encrypted(&[])
    }
}

fn range(offset: u64, length: u64) -> Range {
    Range { offset, length }
}
