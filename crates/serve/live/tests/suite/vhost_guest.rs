//! A simulated server with disks at real sockets, and a guest that speaks vhost-user with it by
//! hand: every word of its rings, right or wrong.

use crate::block_world::{BLOCK, Setting, TENANTS, formatted, served};
use cachewright_cache::WriteMode;
use cachewright_live::front::{self, BlockService, FrontEnd, ServedExport};
use cachewright_live::io::open::unix_listener;
use cachewright_live::io::sim::Sim;
use cachewright_live::io::{FileId, Io};
use cachewright_live::vhost::VhostFrontEnd;
use cachewright_live::vhost::message::{InflightLayout, VhostRequest};
use cachewright_types::{Seed, TenantId};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tempfile::TempDir;

/// Blocks of each volume.
pub const BLOCKS: u64 = 10;
/// Bytes of a guest's memory, and where its front end has it.
pub const MEMORY: u64 = 1 << 20;
pub const USER: u64 = 0x7f00_0000_0000;
/// Descriptors of each ring of a guest.
pub const SIZE: u16 = 16;
/// Where a guest keeps data.
pub const DATA: u64 = 0x80000;

/// A server of two disks.
pub struct DiskServer {
    pub sim: Sim,
    pub service: BlockService,
    pub vhost: VhostFrontEnd,
    files: (Vec<FileId>, Vec<FileId>),
    folder: TempDir,
}

pub fn export(tenant: usize) -> ServedExport {
    ServedExport {
        name: format!("volume-{tenant}"),
        bytes: BLOCKS * BLOCK,
        read_only: false,
        clients: Vec::new(),
        max_connections: None,
        fast_zero: true,
    }
}

fn setting() -> Setting {
    Setting::of("lru", WriteMode::WriteBack)
}

impl DiskServer {
    pub fn new(seed: u64) -> DiskServer {
        let (sim, files) = formatted(&setting(), Seed(seed));
        DiskServer::begin(sim, files, TempDir::new().unwrap())
    }

    fn begin(mut sim: Sim, files: (Vec<FileId>, Vec<FileId>), folder: TempDir) -> DiskServer {
        let (blocks, _) = served(&mut sim, &setting(), &files).unwrap().unwrap();
        let tenants = usize::from(TENANTS);
        let exports = (0..tenants).map(export).collect();
        let mut vhost = VhostFrontEnd::new(exports, blocks.block_bytes(), 4 << 20);
        let service = BlockService::new(blocks, tenants);
        for tenant in 0..TENANTS {
            let listener = unix_listener(&folder.path().join(format!("{tenant}.sock"))).unwrap();
            vhost.listen(TenantId(tenant), listener).unwrap();
        }
        DiskServer { sim, service, vhost, files, folder }
    }

    /// The server is killed, and another one begins on what is left.
    pub fn killed(self) -> DiskServer {
        let DiskServer { sim, service, vhost, files, folder } = self;
        drop((service, vhost));
        let sim = sim.kill(Seed(5), std::iter::repeat(cachewright_live::io::sim::Fate::Lost));
        DiskServer::begin(sim, files, folder)
    }

    pub fn socket(&self, tenant: u16) -> PathBuf {
        self.folder.path().join(format!("{tenant}.sock"))
    }

    pub fn advance(&mut self) {
        front::advance(&mut self.sim, &mut self.service, &mut [&mut self.vhost]);
    }

    /// What is due, and one operation; false if there was none.
    pub fn step(&mut self) -> bool {
        self.advance();
        let is_busy = self.sim.is_busy();
        if is_busy {
            self.wait();
        }
        is_busy
    }

    /// What is due, and one operation or the end of a timer.
    pub fn wait(&mut self) {
        let mut done = Vec::new();
        self.sim.wait(&mut done);
        for done in done {
            front::on_done(&mut self.sim, &mut self.service, &mut [&mut self.vhost], done);
        }
    }

    /// All that is due.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    pub fn front(&mut self) -> &mut dyn FrontEnd<Sim> {
        &mut self.vhost
    }
}

/// A guest, with a front end of its own.
pub struct RawGuest {
    pub stream: UnixStream,
    pub memory: File,
    pub kicks: Vec<OwnedFd>,
    pub calls: Vec<OwnedFd>,
    /// Requests that it has made available, by queue.
    pub available: Vec<u16>,
    /// Requests that it has seen used, by queue.
    used: Vec<u16>,
}

fn signal() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

/// Where the parts of a queue's ring are: descriptors, available, used.
pub fn places(queue: usize) -> [u64; 3] {
    let base = queue as u64 * 0x10000;
    [base, base + 0x4000, base + 0x8000]
}

impl RawGuest {
    /// A guest that is connected, and has asked nothing.
    pub fn connect(server: &DiskServer, tenant: u16) -> RawGuest {
        let stream = UnixStream::connect(server.socket(tenant)).unwrap();
        let memory = File::from(memfd_create("guest", MemfdFlags::CLOEXEC).unwrap());
        memory.set_len(MEMORY).unwrap();
        let (kicks, calls) = (Vec::new(), Vec::new());
        RawGuest { stream, memory, kicks, calls, available: Vec::new(), used: Vec::new() }
    }

    /// A guest with so many queues, which are served.
    pub fn with_queues(server: &mut DiskServer, tenant: u16, queues: usize) -> RawGuest {
        let mut guest = RawGuest::connect(server, tenant);
        guest.set_up(server, queues, None);
        guest
    }

    /// Agrees on everything and begins its rings, with memory of what is under way if it has some.
    pub fn set_up(
        &mut self,
        server: &mut DiskServer,
        queues: usize,
        inflight: Option<(InflightLayout, &OwnedFd)>,
    ) {
        let (features, _) = self.ask(server, 1, &[], &[]);
        let features = u64::from_ne_bytes(features[..8].try_into().unwrap());
        self.send(2, &features.to_ne_bytes(), &[]);
        let (agreed, _) = self.ask(server, 15, &[], &[]);
        // Without answers to each message.
        let agreed = u64::from_ne_bytes(agreed[..8].try_into().unwrap()) & !(1 << 3);
        self.send(16, &agreed.to_ne_bytes(), &[]);
        self.send(3, &[], &[]);
        let memory = self.memory.try_clone().unwrap();
        let region = [0, MEMORY, USER, 0].map(u64::to_ne_bytes).concat();
        let table = [&1_u32.to_ne_bytes()[..], &[0; 4], &region].concat();
        self.send(5, &table, &[memory.as_fd()]);
        if let Some((layout, file)) = inflight {
            self.send(32, &layout.to_bytes(), &[file.as_fd()]);
        }
        (0..queues).for_each(|queue| self.begin_ring(queue));
        server.settle();
    }

    pub fn begin_ring(&mut self, queue: usize) {
        let number = queue as u32;
        let pair = |value: u32| [number, value].map(u32::to_ne_bytes).concat();
        while self.kicks.len() <= queue {
            self.kicks.push(signal());
            self.calls.push(signal());
            self.available.push(0);
            self.used.push(0);
        }
        self.send(8, &pair(u32::from(SIZE)), &[]);
        let base = self.used[queue];
        self.send(10, &pair(u32::from(base)), &[]);
        let [descriptors, available, used] = places(queue).map(|place| USER + place);
        let addresses = [descriptors, used, available, 0].map(u64::to_ne_bytes).concat();
        self.send(9, &[pair(0), addresses].concat(), &[]);
        let kick = self.kicks[queue].try_clone().unwrap();
        let call = self.calls[queue].try_clone().unwrap();
        self.send(13, &u64::from(number).to_ne_bytes(), &[call.as_fd()]);
        self.send(12, &u64::from(number).to_ne_bytes(), &[kick.as_fd()]);
        self.send(18, &pair(1), &[]);
    }

    /// Sends a message.
    pub fn send(&mut self, request: u32, payload: &[u8], files: &[BorrowedFd<'_>]) {
        let header = [request, 1, payload.len() as u32].map(u32::to_ne_bytes).concat();
        self.send_raw(&[&header, payload].concat(), files);
    }

    /// Sends bytes and descriptors as they are; whether the server is there to take them.
    pub fn send_raw(&mut self, bytes: &[u8], files: &[BorrowedFd<'_>]) -> bool {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(files)));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.stream, &[IoSlice::new(bytes)], &mut control, flags).is_ok()
    }

    /// Sends a request and returns the payload of its reply, and the descriptor beside it.
    pub fn ask(
        &mut self,
        server: &mut DiskServer,
        request: u32,
        payload: &[u8],
        files: &[BorrowedFd<'_>],
    ) -> (Vec<u8>, Option<OwnedFd>) {
        self.send(request, payload, files);
        server.settle();
        self.reply(request).expect("a reply")
    }

    /// The reply to a request, if it has come.
    pub fn reply(&mut self, request: u32) -> Option<(Vec<u8>, Option<OwnedFd>)> {
        let mut header = [0; 12];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(&mut header)];
        let flags = RecvFlags::DONTWAIT;
        let count = recvmsg(&self.stream, &mut slices, &mut control, flags).ok()?.bytes;
        let file = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        if count == 0 {
            return None;
        }
        let field = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap());
        assert_eq!((count, field(0), field(4)), (12, request, 5));
        let mut payload = vec![0; field(8) as usize];
        self.stream.read_exact(&mut payload).unwrap();
        Some((payload, file))
    }

    /// Whether the server has let it go.
    pub fn is_let_go(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let mut byte = [0];
        let ended = match self.stream.read(&mut byte) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        };
        self.stream.set_nonblocking(false).unwrap();
        ended
    }

    pub fn write(&self, place: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, place).unwrap();
    }

    pub fn read(&self, place: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.memory.read_exact_at(&mut bytes, place).unwrap();
        bytes
    }

    pub fn u16_at(&self, place: u64) -> u16 {
        u16::from_le_bytes(self.read(place, 2).try_into().unwrap())
    }

    /// Writes a descriptor of a ring, or of a table elsewhere.
    pub fn descriptor(&self, place: u64, guest: u64, bytes: u32, flags: u16, next: u16) {
        let fields = [&guest.to_le_bytes()[..], &bytes.to_le_bytes(), &flags.to_le_bytes()];
        self.write(place, &[fields.concat(), next.to_le_bytes().to_vec()].concat());
    }

    /// Makes the chain at a descriptor available, and signals that.
    pub fn offer(&mut self, queue: usize, head: u16) {
        let [_, available, _] = places(queue);
        let index = self.available[queue];
        self.write(available + 4 + 2 * u64::from(index % SIZE), &head.to_le_bytes());
        self.available[queue] = index.wrapping_add(1);
        self.write(available + 2, &self.available[queue].to_le_bytes());
        self.kick(queue);
    }

    pub fn kick(&self, queue: usize) {
        rustix::io::write(&self.kicks[queue], &1_u64.to_ne_bytes()).unwrap();
    }

    /// Whether the guest was signalled since the last call.
    pub fn was_called(&self, queue: usize) -> bool {
        rustix::io::read(&self.calls[queue], &mut [0_u8; 8]).is_ok()
    }

    /// Offers a request in three descriptors from `head` on, with data at a place of its own, which
    /// is returned: the header is before it, the status behind.
    pub fn request(
        &mut self,
        queue: usize,
        head: u16,
        kind: u32,
        sector: u64,
        data: u32,
        writes: bool,
    ) -> u64 {
        let [descriptors, ..] = places(queue);
        let own = DATA + queue as u64 * 0x20000 + u64::from(head) * 0x2000;
        let header = [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat();
        self.write(own, &header);
        let place = own + 64;
        let status = place + u64::from(data);
        self.write(status, &[0xff]);
        let table = |number: u16| descriptors + 16 * u64::from(number);
        self.descriptor(table(head), own, 16, 1, head + 1);
        let flags = if writes { 1 | 2 } else { 1 };
        self.descriptor(table(head + 1), place, data, flags, head + 2);
        self.descriptor(table(head + 2), status, 1, 2, 0);
        self.offer(queue, head);
        place
    }

    /// The requests that were used since the last call: head and bytes that were written.
    pub fn take_used(&mut self, queue: usize) -> Vec<(u32, u32)> {
        let [_, _, used] = places(queue);
        let mut found = Vec::new();
        while self.used[queue] != self.u16_at(used + 2) {
            let entry = self.read(used + 4 + 8 * u64::from(self.used[queue] % SIZE), 8);
            let field = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
            found.push((field(0), field(4)));
            self.used[queue] = self.used[queue].wrapping_add(1);
        }
        // It wants a signal for the next one.
        let [_, available, _] = places(queue);
        self.write(available + 4 + 2 * u64::from(SIZE), &self.used[queue].to_le_bytes());
        found
    }

    /// A write of one block, and its status.
    pub fn write_block(&mut self, server: &mut DiskServer, number: u64, fill: u8) -> u8 {
        let place = self.request(0, 0, 1, number * BLOCK / 512, BLOCK as u32, false);
        self.write(place, &[fill; BLOCK as usize]);
        server.settle();
        assert_eq!(self.take_used(0), [(0, 1)]);
        self.read(place + BLOCK, 1)[0]
    }

    /// The content of a block.
    pub fn read_block(&mut self, server: &mut DiskServer, number: u64) -> Vec<u8> {
        let place = self.request(0, 0, 0, number * BLOCK / 512, BLOCK as u32, true);
        server.settle();
        assert_eq!(self.take_used(0), [(0, BLOCK as u32 + 1)]);
        assert_eq!(self.read(place + BLOCK, 1), [0]);
        self.read(place, BLOCK as usize)
    }
}

/// A request for memory of what is under way.
pub fn ask_for_inflight(
    guest: &mut RawGuest,
    server: &mut DiskServer,
    queues: u16,
) -> (InflightLayout, OwnedFd) {
    let wanted = InflightLayout { bytes: 0, offset: 0, queues, queue_size: SIZE };
    let (payload, file) = guest.ask(server, 31, &wanted.to_bytes(), &[]);
    let Some(VhostRequest::SetInflight(layout)) = VhostRequest::parse(32, &payload) else {
        panic!("found {payload:?}");
    };
    (layout, file.expect("memory"))
}
