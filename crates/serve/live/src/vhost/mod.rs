//! The vhost-user front end: volumes as virtio disks of guests.
//!
//! Each volume has a socket, to which the process that runs a guest connects; one at a time. The
//! guest's requests and their data lie in memory that it shares ([`memory`]): a write is copied
//! from there when it begins, a read into it when it ends. A guest that breaks the rules loses a
//! queue ([`ring`]), a process that breaks the protocol its connection ([`session`]). The next
//! server carries on what this one leaves ([`inflight`]).
//!
//! A ring is looked at when its guest signals, and once more behind a timer if there is more than
//! was taken: a guest that never pauses leaves others their turns.

pub mod disk;
pub mod inflight;
pub mod memory;
pub mod message;
pub mod ring;
pub mod session;

use crate::blocks::{BlockAnswer, BlockOp, BlockRequest};
use crate::front::{
    BlockService, ClientMemory, EarliestTimer, FrontEnd, NotifiedLosses, RequestKind, ServedExport,
};
use crate::io::open::Listener;
use crate::io::shared::{lower, raise};
use crate::io::token::{Submitter, purpose};
use crate::io::{Buffer, Done, Io, IoError, IoOp, Token};
use cachewright_types::TenantId;
use disk::{DiskCommand, DiskStatus, ID_BYTES, SECTOR, configuration, feature};
use ring::{RingFault, Segment, bytes_of, gather, scatter};
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags, accept_with, shutdown};
use session::{DiskFacts, GuestSession, MAX_QUEUES, TakenRequest};
use slab::Slab;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Bytes in which a request itself is kept.
const KEPT_BYTES: u64 = 1 << 10;
/// The pause after an accept that failed, in nanoseconds: the process may have no descriptor left.
const ACCEPT_PAUSE_NS: u64 = 100_000_000;

/// What an operation of the front end is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VhostPurpose {
    /// A descriptor is waited for.
    Watch,
    /// Queues go on that had more than was taken, and listeners that could not accept.
    Wake,
    /// Queues go on that waited because of caps.
    Turn,
}

impl VhostPurpose {
    fn token(self, number: usize) -> Token {
        Submitter::VhostUser.token(self as u8, number)
    }

    fn of(token: Token) -> Option<(VhostPurpose, usize)> {
        let (code, number) = purpose(token);
        let all = [VhostPurpose::Watch, VhostPurpose::Wake, VhostPurpose::Turn];
        Some((*all.get(usize::from(code))?, number))
    }
}

/// A descriptor that is waited for.
#[derive(Debug)]
enum Watch {
    /// The place to connect to of a tenant.
    Listener { tenant: usize },
    /// The socket of a session.
    Socket { tenant: usize, serial: u64 },
    /// The signal of a queue.
    Kick { tenant: usize, serial: u64, queue: usize, signal: Arc<OwnedFd> },
}

/// A volume as a disk.
#[derive(Debug)]
struct ServedDisk {
    export: ServedExport,
    listener: Option<DiskListener>,
    session: Option<GuestSession>,
    /// Its session's socket is waited for.
    awaits_socket: bool,
    /// Signals that are waited for, by queue.
    awaits_kick: [bool; MAX_QUEUES],
    /// It is there no more.
    is_closed: bool,
    /// Bytes of requests under way, of earlier sessions as well.
    held_bytes: u64,
}

/// Where the front end of a guest connects.
#[derive(Debug)]
struct DiskListener {
    socket: Arc<OwnedFd>,
    /// It is waited for.
    is_awaited: bool,
    /// A front end may have come.
    is_ready: bool,
    /// Its file goes when it does.
    _listener: Listener,
}

/// A request that the block service works on.
#[derive(Debug)]
struct GuestRequest {
    tenant: usize,
    serial: u64,
    queue: usize,
    /// The ring that it came from, by its number among those of the queue.
    rings: u64,
    head: u16,
    status: u64,
    to_guest: Vec<Segment>,
    /// Bytes of memory that it takes.
    bytes: u64,
}

/// Guests with virtio disks; see the top of the file.
pub struct VhostFrontEnd {
    disks: Vec<ServedDisk>,
    watches: Slab<Watch>,
    requests: Slab<GuestRequest>,
    memory: ClientMemory,
    /// Disks that may have something to do.
    due: Vec<usize>,
    /// Disks that go on behind a timer, which is under way if `is_waking`.
    later: Vec<usize>,
    is_waking: bool,
    /// Disks that wait because of caps, and when they are looked at.
    capped: Vec<usize>,
    turn: EarliestTimer,
    block_bytes: u64,
    sessions: u64,
    is_stopping: bool,
    faults: Vec<(TenantId, RingFault)>,
}

impl VhostFrontEnd {
    /// Serves these volumes, in the order of tenants, of a service with blocks of so many bytes, in
    /// at most so much memory for requests.
    pub fn new(exports: Vec<ServedExport>, block_bytes: u64, client_memory: u64) -> VhostFrontEnd {
        let memory = ClientMemory::new(client_memory, exports.len());
        let mut front = VhostFrontEnd {
            disks: Vec::new(),
            watches: Slab::default(),
            requests: Slab::default(),
            memory,
            due: Vec::new(),
            later: Vec::new(),
            is_waking: false,
            capped: Vec::new(),
            turn: EarliestTimer::default(),
            block_bytes,
            sessions: 0,
            is_stopping: false,
            faults: Vec::new(),
        };
        exports.into_iter().for_each(|export| front.add(export));
        front
    }

    fn add(&mut self, export: ServedExport) {
        self.disks.push(ServedDisk {
            export,
            listener: None,
            session: None,
            awaits_socket: false,
            awaits_kick: [false; MAX_QUEUES],
            is_closed: false,
            held_bytes: 0,
        });
    }

    /// Guests find a tenant's volume here from now on. Errors: the process has no descriptor left.
    pub fn listen(&mut self, tenant: TenantId, listener: Listener) -> std::io::Result<()> {
        let socket = listener.as_fd().try_clone_to_owned()?;
        // A front end can go between the end of a wait and the accept.
        rustix::io::ioctl_fionbio(&socket, true)?;
        let socket = Arc::new(socket);
        let (is_awaited, is_ready) = (false, true);
        let listener = DiskListener { socket, is_awaited, is_ready, _listener: listener };
        self.disks[tenant.index()].listener = Some(listener);
        self.due.push(tenant.index());
        Ok(())
    }

    /// Queues that are served no more since the last call, because their guests broke the rules.
    pub fn take_faults(&mut self) -> Vec<(TenantId, RingFault)> {
        std::mem::take(&mut self.faults)
    }

    /// Lets a disk go on; true if a request has begun.
    fn go_on(&mut self, io: &mut impl Io, service: &mut BlockService, tenant: usize) -> bool {
        self.accept(service, tenant);
        if self.disks[tenant].session.as_ref().is_some_and(GuestSession::may_read) {
            let facts = self.facts(tenant);
            if let Some(session) = &mut self.disks[tenant].session {
                session.read(&facts);
                if session.may_read() {
                    self.later.push(tenant);
                }
            }
        }
        let mut begun = false;
        for queue in 0..MAX_QUEUES {
            begun |= self.take_requests(io, service, tenant, queue);
        }
        let is_ending = self.is_stopping || self.disks[tenant].is_closed;
        if let Some(session) = &mut self.disks[tenant].session {
            session.signal();
            let faults = session.take_faults().into_iter();
            self.faults.extend(faults.map(|fault| (TenantId(tenant as u16), fault)));
            if is_ending {
                session.drop_postponed();
            }
            if session.has_ended() || is_ending && session.under_way() == 0 {
                self.end_session(tenant);
            }
        }
        self.wait_for(io, tenant);
        begun
    }

    /// The disk of a tenant as a guest finds it.
    fn facts(&self, tenant: usize) -> DiskFacts {
        let ServedExport { bytes, read_only, .. } = self.disks[tenant].export;
        let read_only = if read_only { feature::READ_ONLY } else { 0 };
        let config = configuration(bytes, self.block_bytes, MAX_QUEUES as u16);
        DiskFacts { features: feature::ALL | read_only, config }
    }

    /// Takes a front end that has connected, if the disk has none.
    fn accept(&mut self, service: &mut BlockService, tenant: usize) {
        let disk = &mut self.disks[tenant];
        let may_come = !self.is_stopping
            && !disk.is_closed
            && disk.session.is_none()
            && disk.export.clients.is_empty();
        let Some(listener) = disk.listener.as_mut().filter(|listener| listener.is_ready) else {
            return;
        };
        if !may_come {
            return;
        }
        match accept_with(&listener.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => {
                let number = TenantId(tenant as u16);
                let known = service.blocks.losses(number);
                let losses = service.clients.losses.at_opening(number, known);
                self.sessions += 1;
                disk.session = Some(GuestSession::new(self.sessions, socket, losses));
                (disk.awaits_socket, disk.awaits_kick) = (false, [false; MAX_QUEUES]);
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => listener.is_ready = false,
            // It is tried again after a pause.
            Err(_) => self.later.push(tenant),
        }
    }

    /// Takes what waits in a queue, as far as caps and memory allow.
    fn take_requests(
        &mut self,
        io: &mut impl Io,
        service: &mut BlockService,
        tenant: usize,
        queue: usize,
    ) -> bool {
        let is_ending = self.is_stopping || self.disks[tenant].is_closed;
        let Some(session) = &mut self.disks[tenant].session else { return false };
        if is_ending || !std::mem::take(&mut session.queues()[queue].is_due) {
            return false;
        }
        let mut begun = false;
        // So many that a guest which adds others meanwhile leaves others their turn.
        for _ in 0..ring::MAX_RING_SIZE {
            let Some(session) = &mut self.disks[tenant].session else { return begun };
            let Some(taken) = session.take(queue) else { break };
            let bytes = memory_bytes(&taken, self.block_bytes);
            let allowance = &service.clients.allowances()[tenant];
            let due_ns = if allowance.is_capped() { allowance.due_ns() } else { 0 };
            let is_early = due_ns > 0 && due_ns > io.now_ns();
            if is_early || !self.memory.admits(tenant, bytes) {
                session.queues()[queue].postponed = Some(taken);
                if is_early {
                    self.postpone(io, tenant, due_ns);
                }
                return begun;
            }
            begun |= self.begin(io, service, tenant, queue, taken, bytes);
        }
        if let Some(session) = &mut self.disks[tenant].session
            && session.has_more(queue)
        {
            session.queues()[queue].has_more = true;
            self.later.push(tenant);
        }
        begun
    }

    /// A disk has done all that its caps allow until then.
    fn postpone(&mut self, io: &mut impl Io, tenant: usize, at_ns: u64) {
        if !self.capped.contains(&tenant) {
            self.capped.push(tenant);
        }
        if self.turn.begin(at_ns) {
            io.submit(VhostPurpose::Turn.token(0), IoOp::Timer { at_ns });
        }
    }

    /// A request begins, or is answered at once; true if it begins.
    fn begin(
        &mut self,
        io: &mut impl Io,
        service: &mut BlockService,
        tenant: usize,
        queue: usize,
        taken: TakenRequest,
        bytes: u64,
    ) -> bool {
        let disk = &mut self.disks[tenant];
        let Some(session) = &mut disk.session else { return false };
        let TakenRequest { head, request } = taken;
        let ServedExport { bytes: volume_bytes, read_only, name, .. } = &disk.export;
        let end = volume_bytes / SECTOR * SECTOR;
        let mut data = Buffer::default();
        let wanted = match request.command {
            Err(status) => Err(status),
            Ok(DiskCommand::Flush) => Ok((BlockOp::Flush, 0, 0)),
            Ok(DiskCommand::Id) => {
                let mut id = [0; ID_BYTES];
                id.iter_mut().zip(name.bytes()).for_each(|(byte, own)| *byte = own);
                let written = scatter(session.memory(), &request.to_guest, &id);
                Err(written.map_or(DiskStatus::Failed, |()| DiskStatus::Ok))
            }
            Ok(DiskCommand::Range { op, offset, bytes }) => {
                let is_inside = offset.checked_add(bytes).is_some_and(|last| last <= end);
                let is_allowed = op == BlockOp::Read || !read_only;
                let mut gathered = Ok(());
                if is_inside && is_allowed && op == BlockOp::Write {
                    data = Buffer::zeroed(bytes as usize);
                    gathered = gather(session.memory(), &request.from_guest, &mut data);
                }
                match is_inside && is_allowed && gathered.is_ok() {
                    true => Ok((op, offset, bytes)),
                    false => Err(DiskStatus::Failed),
                }
            }
        };
        let rings = session.rings(queue);
        let (op, offset, length) = match wanted {
            Ok(wanted) => wanted,
            Err(status) => {
                let is_id = matches!(request.command, Ok(DiskCommand::Id));
                let written = if is_id { ID_BYTES as u32 } else { 0 };
                answer(session, queue, rings, head, request.status, status, written);
                return false;
            }
        };
        let changes = !matches!(op, BlockOp::Read | BlockOp::Flush);
        let durable = changes && !session.may_flush();
        let serial = session.serial;
        disk.held_bytes += bytes;
        self.memory.note(tenant, disk.held_bytes);
        let (status, to_guest) = (request.status, request.to_guest);
        let own = GuestRequest { tenant, serial, queue, rings, head, status, to_guest, bytes };
        let number = self.requests.insert(own);
        let tenant = TenantId(tenant as u16);
        let request = BlockRequest { tag: 0, tenant, op, offset, length, durable, data };
        service.request(io, Submitter::VhostUser, number, RequestKind::of(op), request);
        true
    }

    /// A request is over: its memory is free.
    fn end_request(&mut self, number: usize) -> Option<GuestRequest> {
        let request = self.requests.try_remove(number)?;
        let disk = &mut self.disks[request.tenant];
        disk.held_bytes = disk.held_bytes.saturating_sub(request.bytes);
        self.memory.note(request.tenant, disk.held_bytes);
        self.due.push(request.tenant);
        Some(request)
    }

    /// The session that a request came from, if it is there still.
    fn session_of(&mut self, request: &GuestRequest) -> Option<&mut GuestSession> {
        let session = self.disks[request.tenant].session.as_mut();
        session.filter(|session| session.serial == request.serial)
    }

    /// A front end is let go. What it had under way is carried out without an answer.
    fn end_session(&mut self, tenant: usize) {
        let Some(mut session) = self.disks[tenant].session.take() else { return };
        session.close().iter().for_each(|kick| raise(kick));
        self.memory.leave(tenant);
        self.due.push(tenant);
    }

    /// Waits for what may come next.
    fn wait_for(&mut self, io: &mut impl Io, tenant: usize) {
        let VhostFrontEnd { disks, watches, is_stopping, .. } = self;
        let disk = &mut disks[tenant];
        let mut watch = |watch: Watch, source: Arc<OwnedFd>| {
            let number = watches.insert(watch);
            io.submit(VhostPurpose::Watch.token(number), IoOp::Await { source });
        };
        let is_free = disk.session.is_none() && !disk.is_closed && !*is_stopping;
        if let Some(listener) = &mut disk.listener
            && is_free
            && !listener.is_ready
            && !listener.is_awaited
        {
            listener.is_awaited = true;
            watch(Watch::Listener { tenant }, listener.socket.clone());
        }
        let Some(session) = &mut disk.session else { return };
        let serial = session.serial;
        if !session.is_readable && !std::mem::replace(&mut disk.awaits_socket, true) {
            watch(Watch::Socket { tenant, serial }, session.socket.clone());
        }
        for (queue, found) in session.queues().iter().enumerate() {
            if let Some(signal) = &found.kick
                && !std::mem::replace(&mut disk.awaits_kick[queue], true)
            {
                let source = signal.clone();
                watch(Watch::Kick { tenant, serial, queue, signal: signal.clone() }, source);
            }
        }
    }

    /// What was waited for has come.
    fn woken(&mut self, watch: Watch, error: Option<IoError>) {
        match watch {
            Watch::Listener { tenant } => {
                if let Some(listener) = &mut self.disks[tenant].listener {
                    listener.is_awaited = false;
                    listener.is_ready = true;
                }
                self.due.push(tenant);
            }
            Watch::Socket { tenant, serial } => {
                let disk = &mut self.disks[tenant];
                let session = disk.session.as_mut().filter(|session| session.serial == serial);
                let Some(session) = session else { return };
                disk.awaits_socket = false;
                session.is_readable = true;
                if error.is_some() {
                    session.end();
                }
                self.due.push(tenant);
            }
            Watch::Kick { tenant, serial, queue, signal } => {
                let disk = &mut self.disks[tenant];
                let session = disk.session.as_mut().filter(|session| session.serial == serial);
                let Some(session) = session else { return };
                disk.awaits_kick[queue] = false;
                let found = &mut session.queues()[queue];
                if found.kick.as_ref().is_some_and(|kick| Arc::ptr_eq(kick, &signal)) {
                    lower(&signal);
                    found.is_due = true;
                }
                if error.is_some() {
                    session.end();
                }
                self.due.push(tenant);
            }
        }
    }

    /// Queues of disks that wait go on.
    fn go_on_later(&mut self, disks: Vec<usize>) {
        for tenant in disks {
            if let Some(session) = &mut self.disks[tenant].session {
                let waits = session.queues().iter_mut().filter(|queue| queue.postponed.is_some());
                waits.for_each(|queue| queue.is_due = true);
            }
            self.due.push(tenant);
        }
    }
}

/// Bytes of memory that a request takes, at most: it is carried out in whole blocks.
fn memory_bytes(taken: &TakenRequest, block_bytes: u64) -> u64 {
    let Ok(DiskCommand::Range { op, offset, bytes }) = taken.request.command else {
        return KEPT_BYTES;
    };
    let blocks = match op {
        BlockOp::Read | BlockOp::Write => {
            let end = offset.saturating_add(bytes).div_ceil(block_bytes);
            end - offset / block_bytes
        }
        // Only blocks at the edges are read and written.
        BlockOp::Zero | BlockOp::Provision => 2,
        BlockOp::Trim | BlockOp::Flush => 0,
    };
    blocks.saturating_mul(block_bytes).saturating_add(KEPT_BYTES)
}

/// Tells a guest how its request ended: the status, and bytes of data before it.
fn answer(
    session: &mut GuestSession,
    queue: usize,
    rings: u64,
    head: u16,
    place: u64,
    status: DiskStatus,
    written: u32,
) {
    // Memory that is shared no more takes no status: the ring finds that out by itself.
    let _written = session.memory().write(place, &[status as u8]);
    session.used(queue, rings, head, written + 1);
}

impl<I: Io> FrontEnd<I> for VhostFrontEnd {
    fn submitter(&self) -> Submitter {
        Submitter::VhostUser
    }

    fn serve(&mut self, io: &mut I, service: &mut BlockService) -> bool {
        let mut begun = false;
        while let Some(tenant) = self.memory.next_turn() {
            self.go_on_later(vec![tenant]);
        }
        let mut due = std::mem::take(&mut self.due);
        due.sort_unstable();
        due.dedup();
        for tenant in due {
            begun |= self.go_on(io, service, tenant);
        }
        if !self.later.is_empty() && !std::mem::replace(&mut self.is_waking, true) {
            let waits_to_accept = |tenant: &usize| self.disks[*tenant].session.is_none();
            let pause_ns = if self.later.iter().all(waits_to_accept) { ACCEPT_PAUSE_NS } else { 0 };
            let at_ns = io.now_ns() + pause_ns;
            io.submit(VhostPurpose::Wake.token(0), IoOp::Timer { at_ns });
        }
        begun
    }

    fn on_done(&mut self, io: &mut I, _service: &mut BlockService, done: Done) {
        let Some((purpose, number)) = VhostPurpose::of(done.token) else { return };
        match purpose {
            VhostPurpose::Watch => {
                if let Some(watch) = self.watches.try_remove(number) {
                    self.woken(watch, done.error);
                }
            }
            VhostPurpose::Wake => {
                self.is_waking = false;
                let later = std::mem::take(&mut self.later);
                for tenant in &later {
                    let queues =
                        self.disks[*tenant].session.iter_mut().flat_map(GuestSession::queues);
                    queues.for_each(|queue| queue.is_due |= std::mem::take(&mut queue.has_more));
                }
                self.due.extend(later);
            }
            VhostPurpose::Turn => {
                self.turn.end(io.now_ns());
                let capped = std::mem::take(&mut self.capped);
                self.go_on_later(capped);
            }
        }
    }

    fn losses(&mut self, number: usize) -> Option<&mut NotifiedLosses> {
        let request = self.requests.get(number)?;
        let session = self.disks[request.tenant].session.as_mut();
        session.filter(|session| session.serial == request.serial).map(|found| &mut found.losses)
    }

    fn answered(&mut self, service: &mut BlockService, number: usize, found: BlockAnswer) {
        let Some(request) = self.end_request(number) else { return };
        let GuestRequest { queue, rings, head, status: place, .. } = request;
        if let Some(session) = self.session_of(&request)
            && session.rings(queue) == rings
        {
            let mut status = DiskStatus::Ok;
            let mut written = 0;
            if found.result.is_err()
                || scatter(session.memory(), &request.to_guest, &found.data).is_err()
            {
                status = DiskStatus::Failed;
            } else {
                written = bytes_of(&request.to_guest).min(found.data.len() as u64) as u32;
            }
            answer(session, queue, rings, head, place, status, written);
        }
        service.blocks.give_back(found.data);
    }

    fn dropped(&mut self, number: usize) {
        let Some(request) = self.end_request(number) else { return };
        let (queue, rings) = (request.queue, request.rings);
        if let Some(session) = self.session_of(&request) {
            session.dropped(queue, rings);
        }
    }

    fn stop(&mut self, _io: &mut I) {
        self.is_stopping = true;
        self.due.extend(0..self.disks.len());
    }

    fn is_stopped(&self) -> bool {
        self.is_stopping && self.disks.iter().all(|disk| disk.session.is_none())
    }

    fn add_export(&mut self, export: ServedExport) {
        self.add(export);
    }

    fn change_export(&mut self, tenant: TenantId, export: ServedExport) -> usize {
        let disk = &mut self.disks[tenant.index()];
        let is_barred = !export.clients.is_empty();
        let has_changed = disk.export.bytes != export.bytes;
        disk.export = export;
        self.due.push(tenant.index());
        let Some(session) = &mut disk.session else { return 0 };
        if has_changed {
            session.tell_of_config();
        }
        if is_barred {
            session.end();
        }
        usize::from(is_barred)
    }

    fn close_export(&mut self, tenant: TenantId) {
        let disk = &mut self.disks[tenant.index()];
        disk.is_closed = true;
        if let Some(listener) = disk.listener.take() {
            // That ends the wait for it.
            let _shut = shutdown(&listener.socket, Shutdown::Both);
        }
        self.due.push(tenant.index());
    }

    fn connections_to(&self, tenant: TenantId) -> usize {
        usize::from(self.disks.get(tenant.index()).is_some_and(|disk| disk.session.is_some()))
    }

    fn connections(&self) -> usize {
        self.disks.iter().filter(|disk| disk.session.is_some()).count()
    }

    fn held_bytes(&self) -> u64 {
        self.memory.used()
    }
}
