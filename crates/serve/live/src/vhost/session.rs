//! One guest that is connected: what its front end and the server have agreed on, its memory, and
//! its queues.
//!
//! The front end of vhost-user is the process that runs the guest's machine. It sends few and short
//! messages; the guest's requests come by rings in its memory. A guest can write anything there at
//! any time. What breaks the rules costs it the queue, or this connection, and no other guest
//! anything.

use super::disk::{DiskRequest, feature};
use super::inflight::InflightMemory;
use super::memory::SharedMemory;
use super::message::{
    HEADER_BYTES, Header, MAX_CONFIG_BYTES, MAX_DESCRIPTORS, MAX_REGIONS, MemoryRegion,
    RingAddresses, RingSignal, VhostRequest, config_change, protocol, reply,
};
use super::ring::{MAX_RING_SIZE, RingFault, RingPlaces, SplitRing, part_bytes};
use crate::front::NotifiedLosses;
use crate::io::IoError;
use crate::io::shared::{raise, signal};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, recvmsg, sendmsg, shutdown,
};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Queues of a disk at most.
pub const MAX_QUEUES: usize = 16;

/// Parts of messages that are received before others have their turn.
const MESSAGES_PER_TURN: usize = 128;

/// The disk as a guest finds it.
#[derive(Clone, Debug)]
pub struct DiskFacts {
    /// What it can do, and what the protocol can.
    pub features: u64,
    /// Its configuration.
    pub config: Vec<u8>,
}

/// A request that was taken from a queue.
#[derive(Clone, Debug)]
pub struct TakenRequest {
    /// Its first descriptor, by which it is answered.
    pub head: u16,
    /// What is wanted.
    pub request: DiskRequest,
}

/// A queue.
#[derive(Debug, Default)]
pub struct GuestQueue {
    size: u16,
    addresses: Option<RingAddresses>,
    base: u16,
    /// The signal that there are requests.
    pub kick: Option<Arc<OwnedFd>>,
    call: Option<OwnedFd>,
    error: Option<OwnedFd>,
    is_enabled: bool,
    ring: Option<SplitRing>,
    /// Rings that it had so far: an answer for an earlier one goes nowhere.
    rings: u64,
    /// Requests that an earlier server had begun and not answered.
    again: VecDeque<u16>,
    /// A request that waits for memory, or because of caps.
    pub postponed: Option<TakenRequest>,
    /// Requests that are not answered.
    under_way: usize,
    /// There may be requests to be taken.
    pub is_due: bool,
    /// There are more than were taken at once: others have their turn first.
    pub has_more: bool,
    /// The guest may have missed a signal.
    owes_signal: bool,
}

/// What becomes of a message.
enum Handled {
    /// It has an answer of its own.
    Reply(Vec<u8>),
    /// It has an answer, and a descriptor beside it.
    ReplyWith(Vec<u8>, OwnedFd),
    /// It has one if the front end asks for it.
    Done,
    /// Its answer comes when all requests of a queue are answered.
    Waits,
}

/// A guest that is connected; see the top of the file.
#[derive(Debug)]
pub struct GuestSession {
    /// By which it is told from others of the same disk.
    pub serial: u64,
    /// The socket of its front end.
    pub socket: Arc<OwnedFd>,
    /// What it was told of lost writes.
    pub losses: NotifiedLosses,
    /// Messages may have come.
    pub is_readable: bool,
    /// The front end's own features, as it chose them.
    features: u64,
    protocol: u64,
    memory: SharedMemory,
    queues: Vec<GuestQueue>,
    inflight: Option<InflightMemory>,
    /// Where messages of the server go.
    backend: Option<OwnedFd>,
    /// Bytes of a message that have come, and descriptors beside them.
    input: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    /// A queue whose ring stops: the front end waits for that.
    stopping: Option<usize>,
    /// What broke the rules since the last look.
    faults: Vec<RingFault>,
    has_ended: bool,
}

impl GuestSession {
    /// A front end has connected.
    pub fn new(serial: u64, socket: OwnedFd, losses: NotifiedLosses) -> GuestSession {
        GuestSession {
            serial,
            socket: Arc::new(socket),
            losses,
            is_readable: true,
            features: 0,
            protocol: 0,
            memory: SharedMemory::default(),
            queues: (0..MAX_QUEUES).map(|_| GuestQueue::default()).collect(),
            inflight: None,
            backend: None,
            input: Vec::new(),
            descriptors: Vec::new(),
            stopping: None,
            faults: Vec::new(),
            has_ended: false,
        }
    }

    /// Its memory.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Its queues.
    pub fn queues(&mut self) -> &mut [GuestQueue] {
        &mut self.queues
    }

    /// Whether what is written may be lost before a flush.
    pub fn may_flush(&self) -> bool {
        self.features & feature::FLUSH != 0
    }

    /// Whether it is to be let go.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// It is to be let go.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Requests that are not answered, of all queues.
    pub fn under_way(&self) -> usize {
        self.queues.iter().map(|queue| queue.under_way).sum()
    }

    /// What broke the rules since the last call.
    pub fn take_faults(&mut self) -> Vec<RingFault> {
        std::mem::take(&mut self.faults)
    }

    /// The front end learns that it is let go. Returns the signals that may still be waited for.
    pub fn close(&mut self) -> Vec<Arc<OwnedFd>> {
        // It fails where the front end is gone already.
        let _shut = shutdown(&self.socket, Shutdown::Both);
        self.queues.iter_mut().filter_map(|queue| queue.kick.take()).collect()
    }

    /// Whether there is something to do for the front end.
    pub fn may_read(&self) -> bool {
        match self.stopping {
            Some(queue) => self.queues[queue].under_way == 0,
            None => self.is_readable && !self.has_ended,
        }
    }

    /// Takes messages that have come, so many that others have their turn; then
    /// [`GuestSession::may_read`] says that there may be more. One that breaks the protocol ends
    /// the session.
    pub fn read(&mut self, disk: &DiskFacts) {
        if let Some(queue) = self.stopping {
            if self.queues[queue].under_way > 0 {
                return;
            }
            self.stopping = None;
            let stopped = self.ring_stopped(queue);
            self.send(&stopped, None);
        }
        for _ in 0..MESSAGES_PER_TURN {
            if !self.is_readable || self.has_ended || self.stopping.is_some() {
                return;
            }
            match self.receive() {
                Ok(Some((header, payload))) => self.message(disk, header, &payload),
                Ok(None) => {}
                Err(Errno::AGAIN) => self.is_readable = false,
                Err(Errno::INTR) => {}
                Err(_) => self.end(),
            }
        }
    }

    /// Receives a part of a message; returns it if it is whole. Errors: the system's; there is no
    /// more.
    fn receive(&mut self) -> Result<Option<(Header, Vec<u8>)>, Errno> {
        let header = match self.input.first_chunk::<HEADER_BYTES>() {
            Some(bytes) => Some(Header::parse(bytes).ok_or(Errno::PROTO)?),
            None => None,
        };
        let whole = HEADER_BYTES + header.map_or(0, |header| header.payload_bytes);
        if let Some(header) = header
            && self.input.len() == whole
        {
            let mut payload = std::mem::take(&mut self.input);
            payload.drain(..HEADER_BYTES);
            return Ok(Some((header, payload)));
        }
        let mut bytes = vec![0; whole - self.input.len()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let count = recvmsg(&self.socket, &mut slices, &mut control, flags)?.bytes;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(found) = message {
                self.descriptors.extend(found);
            }
        }
        if count == 0 || self.descriptors.len() > MAX_DESCRIPTORS {
            return Err(Errno::PIPE);
        }
        self.input.extend(&bytes[..count]);
        Ok(None)
    }

    fn message(&mut self, disk: &DiskFacts, header: Header, payload: &[u8]) {
        let descriptors = std::mem::take(&mut self.descriptors);
        let request = VhostRequest::parse(header.request, payload);
        let handled = match request {
            Some(request) => self.handle(disk, request, header.request, descriptors),
            None => Err(IoError::NOT_SUPPORTED),
        };
        let acknowledges = header.needs_reply() && self.protocol & protocol::REPLY_ACK != 0;
        match handled {
            Ok(Handled::Reply(bytes)) => self.send(&bytes, None),
            Ok(Handled::ReplyWith(bytes, file)) => self.send(&bytes, Some(file.as_fd())),
            Ok(Handled::Waits) => {}
            Ok(Handled::Done) if !acknowledges => {}
            Err(_) if !acknowledges => self.end(),
            outcome => {
                let failed = u64::from(outcome.is_err());
                self.send(&reply(header.request, &failed.to_ne_bytes()), None);
            }
        }
    }

    /// Sends a message. A front end that does not take it is let go.
    fn send(&mut self, bytes: &[u8], file: Option<BorrowedFd<'_>>) {
        if !sends_whole(&self.socket, bytes, file) {
            self.end();
        }
    }

    /// The configuration has changed: the guest is to read it again.
    pub fn tell_of_config(&mut self) {
        if let Some(backend) = &self.backend
            && !sends_whole(backend, &config_change(), None)
        {
            self.backend = None;
        }
    }

    fn handle(
        &mut self,
        disk: &DiskFacts,
        request: VhostRequest,
        number: u32,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Handled, IoError> {
        let mut descriptors = descriptors.into_iter();
        let mut one = || descriptors.next().ok_or(IoError::INVALID);
        let answer = |value: u64| Handled::Reply(reply(number, &value.to_ne_bytes()));
        match request {
            VhostRequest::GetFeatures => return Ok(answer(disk.features)),
            VhostRequest::SetFeatures(features) => self.set_features(disk, features)?,
            VhostRequest::SetOwner | VhostRequest::SetConfig => {}
            VhostRequest::ResetOwner | VhostRequest::ResetDevice => self.reset(),
            VhostRequest::SetMemoryTable(regions) => {
                let files: Vec<OwnedFd> = descriptors.collect();
                self.set_memory(regions, files)?;
            }
            VhostRequest::AddRegion(region) => {
                let file = one()?;
                if self.memory.regions() >= MAX_REGIONS {
                    return Err(IoError::NO_SPACE);
                }
                self.memory.add(region, file)?;
            }
            VhostRequest::RemoveRegion(region) => self.memory.remove(region)?,
            VhostRequest::GetMaxRegions => return Ok(answer(MAX_REGIONS as u64)),
            VhostRequest::SetRingSize { queue, size } => {
                let is_sized = size.is_power_of_two() && size <= u32::from(MAX_RING_SIZE);
                if !is_sized {
                    return Err(IoError::INVALID);
                }
                self.resting(queue)?.size = size as u16;
            }
            VhostRequest::SetRingAddresses { queue, addresses } => {
                let queue = self.queue(queue)?;
                // A front end repeats them for a ring that runs, where they stay as they are.
                if queue.ring.is_some() && queue.addresses != Some(addresses) {
                    return Err(IoError::BUSY);
                }
                queue.addresses = Some(addresses);
            }
            VhostRequest::SetRingBase { queue, base } => self.resting(queue)?.base = base as u16,
            VhostRequest::GetRingBase { queue } => return self.stop_ring(queue),
            VhostRequest::SetRingKick(RingSignal { queue, has_signal }) => {
                if !has_signal {
                    return Err(IoError::NOT_SUPPORTED);
                }
                let signal = signal(one()?)?;
                self.begin_ring(queue, signal)?;
            }
            VhostRequest::SetRingCall(RingSignal { queue, has_signal }) => {
                let signal = if has_signal { Some(signal(one()?)?) } else { None };
                let queue = self.queue(queue)?;
                queue.call = signal;
                queue.owes_signal = queue.ring.is_some();
            }
            VhostRequest::SetRingError(RingSignal { queue, has_signal }) => {
                let signal = if has_signal { Some(signal(one()?)?) } else { None };
                self.queue(queue)?.error = signal;
            }
            VhostRequest::GetProtocolFeatures => return Ok(answer(protocol::ALL)),
            VhostRequest::SetProtocolFeatures(features) => {
                if features & !protocol::ALL != 0 {
                    return Err(IoError::INVALID);
                }
                self.protocol = features;
            }
            VhostRequest::GetQueueCount => return Ok(answer(MAX_QUEUES as u64)),
            VhostRequest::EnableRing { queue, enable } => {
                let queue = self.queue(queue)?;
                queue.is_enabled = enable;
                queue.is_due = true;
            }
            VhostRequest::SetBackendSocket => self.backend = Some(one()?),
            VhostRequest::GetConfig { offset, bytes, flags } => {
                return Ok(Handled::Reply(reply(number, &config(disk, offset, bytes, flags))));
            }
            VhostRequest::GetInflight(wanted) => {
                let (memory, file) = InflightMemory::new(wanted.queues, wanted.queue_size)?;
                let layout = memory.layout().to_bytes();
                self.inflight = Some(memory);
                return Ok(Handled::ReplyWith(reply(number, &layout), file));
            }
            VhostRequest::SetInflight(layout) => {
                self.inflight = Some(InflightMemory::open(one()?, layout)?);
            }
        }
        Ok(Handled::Done)
    }

    fn set_features(&mut self, disk: &DiskFacts, features: u64) -> Result<(), IoError> {
        if features & !disk.features != 0 {
            return Err(IoError::INVALID);
        }
        self.features = features;
        if features & feature::PROTOCOL == 0 {
            self.queues.iter_mut().for_each(|queue| queue.is_enabled = true);
        }
        Ok(())
    }

    fn set_memory(
        &mut self,
        regions: Vec<MemoryRegion>,
        files: Vec<OwnedFd>,
    ) -> Result<(), IoError> {
        if files.len() != regions.len() {
            return Err(IoError::INVALID);
        }
        self.memory.set(regions.into_iter().zip(files).collect())
    }

    fn queue(&mut self, number: u32) -> Result<&mut GuestQueue, IoError> {
        self.queues.get_mut(number as usize).ok_or(IoError::INVALID)
    }

    /// A queue without a ring.
    fn resting(&mut self, number: u32) -> Result<&mut GuestQueue, IoError> {
        let queue = self.queue(number)?;
        if queue.ring.is_some() { Err(IoError::BUSY) } else { Ok(queue) }
    }

    /// A ring begins, or has another signal from now on. What an earlier server has begun and not
    /// answered comes first.
    fn begin_ring(&mut self, number: u32, kick: OwnedFd) -> Result<(), IoError> {
        let has_event_index = self.features & feature::EVENT_INDEX != 0;
        let GuestSession { queues, memory, inflight, .. } = self;
        let queue = queues.get_mut(number as usize).ok_or(IoError::INVALID)?;
        let before = queue.kick.replace(Arc::new(kick));
        before.iter().for_each(|kick| raise(kick));
        if queue.ring.is_none() {
            let addresses = queue.addresses.ok_or(IoError::INVALID)?;
            let place = |user, bytes| memory.guest_address(user, bytes).ok_or(IoError::INVALID);
            let [table, available, used] = part_bytes(queue.size);
            let places = RingPlaces {
                descriptors: place(addresses.descriptors, table)?,
                available: place(addresses.available, available)?,
                used: place(addresses.used, used)?,
            };
            let ring = SplitRing::new(memory, queue.size, places, queue.base, has_event_index);
            let mut ring = ring.map_err(|_| IoError::INVALID)?;
            if let Some(inflight) = inflight {
                let found = inflight.begin_ring(number as usize, queue.size, ring.next_used())?;
                if let Some(again) = found {
                    ring.set_next_available(ring.next_used().wrapping_add(again.len() as u16));
                    queue.again = again.into();
                }
            }
            queue.ring = Some(ring);
            queue.rings += 1;
        }
        // What was signalled before, or was to be, may be lost: both sides look.
        (queue.is_due, queue.owes_signal) = (true, true);
        Ok(())
    }

    /// A ring takes nothing more; the answer comes when all of it is answered.
    fn stop_ring(&mut self, number: u32) -> Result<Handled, IoError> {
        let queue = self.queue(number)?;
        queue.kick.take().iter().for_each(|kick| raise(kick));
        queue.is_due = false;
        if queue.under_way > 0 {
            // What waits for memory, or because of caps, is under way, too.
            queue.is_due = queue.postponed.is_some();
            self.stopping = Some(number as usize);
            return Ok(Handled::Waits);
        }
        Ok(Handled::Reply(self.ring_stopped(number as usize)))
    }

    /// A ring has stopped: where it goes on.
    fn ring_stopped(&mut self, number: usize) -> Vec<u8> {
        const GET_VRING_BASE: u32 = 11;
        let queue = &mut self.queues[number];
        if let Some(ring) = queue.ring.take() {
            queue.base = ring.next_available();
        }
        queue.again.clear();
        (queue.call, queue.error) = (None, None);
        let state = [number as u32, u32::from(queue.base)].map(u32::to_ne_bytes);
        reply(GET_VRING_BASE, &state.concat())
    }

    /// All rings stop at once. Requests under way get no answer.
    fn reset(&mut self) {
        for queue in &mut self.queues {
            queue.kick.take().iter().for_each(|kick| raise(kick));
            *queue = GuestQueue { rings: queue.rings + 1, ..GuestQueue::default() };
        }
        if let Some(memory) = self.inflight.take() {
            drop(memory);
        }
    }

    /// Takes a request of a queue, if one waits and the queue is served.
    pub fn take(&mut self, number: usize) -> Option<TakenRequest> {
        match self.try_take(number) {
            Ok(taken) => taken,
            Err(fault) => {
                self.break_ring(number, fault);
                None
            }
        }
    }

    fn try_take(&mut self, number: usize) -> Result<Option<TakenRequest>, RingFault> {
        let GuestSession { queues, memory, inflight, .. } = self;
        let Some(queue) = queues.get_mut(number) else { return Ok(None) };
        if let Some(postponed) = queue.postponed.take() {
            return Ok(Some(postponed));
        }
        let is_served = queue.is_enabled && queue.kick.is_some();
        let Some(ring) = queue.ring.as_mut().filter(|_| is_served) else { return Ok(None) };
        let head = match queue.again.pop_front() {
            Some(head) => head,
            None if ring.waiting(memory)? == 0 => return Ok(None),
            None => {
                // A guest that offers the same descriptors again has no end.
                if queue.under_way >= usize::from(ring.size()) {
                    return Err(RingFault::Jump);
                }
                let head = ring.take(memory)?;
                if let Some(inflight) = inflight {
                    inflight.begin(number, head)?;
                }
                head
            }
        };
        let request = DiskRequest::parse(memory, ring.chain(memory, head)?)?;
        queue.under_way += 1;
        Ok(Some(TakenRequest { head, request }))
    }

    /// Rings that a queue had so far.
    pub fn rings(&self, number: usize) -> u64 {
        self.queues.get(number).map_or(0, |queue| queue.rings)
    }

    /// Whether requests wait behind those that were taken; if not, the guest signals the next one.
    pub fn has_more(&mut self, number: usize) -> bool {
        let GuestSession { queues, memory, .. } = self;
        let queue = &queues[number];
        let is_served = queue.is_enabled && queue.kick.is_some();
        let Some(ring) = queue.ring.as_ref().filter(|_| is_served) else { return false };
        let waiting = ring.ask_for_signal(memory);
        match waiting {
            Ok(waiting) => waiting > 0 || !queue.again.is_empty(),
            Err(fault) => {
                self.break_ring(number, fault);
                false
            }
        }
    }

    /// A request of a ring is used; the device has written so many bytes.
    pub fn used(&mut self, number: usize, rings: u64, head: u16, written: u32) {
        let GuestSession { queues, memory, inflight, .. } = self;
        let Some(queue) = queues.get_mut(number).filter(|queue| queue.rings == rings) else {
            return;
        };
        queue.under_way = queue.under_way.saturating_sub(1);
        let Some(ring) = queue.ring.as_mut() else { return };
        let mut use_up = || -> Result<(), RingFault> {
            if let Some(inflight) = inflight {
                inflight.note_last(number, head)?;
            }
            ring.add_used(memory, head, written)?;
            if let Some(inflight) = inflight {
                inflight.end(number, head, ring.next_used())?;
            }
            Ok(())
        };
        if let Err(fault) = use_up() {
            self.break_ring(number, fault);
        }
    }

    /// A request of a ring is dropped: it stays under way for the next server.
    pub fn dropped(&mut self, number: usize, rings: u64) {
        let queue = self.queues.get_mut(number).filter(|queue| queue.rings == rings);
        queue.into_iter().for_each(|queue| queue.under_way = queue.under_way.saturating_sub(1));
    }

    /// Requests that wait for memory, or because of caps, are left to the next server.
    pub fn drop_postponed(&mut self) {
        for queue in &mut self.queues {
            if queue.postponed.take().is_some() {
                queue.under_way = queue.under_way.saturating_sub(1);
            }
        }
    }

    /// Gives the guest the signals that it wants.
    pub fn signal(&mut self) {
        for number in 0..self.queues.len() {
            let GuestSession { queues, memory, .. } = self;
            let queue = &mut queues[number];
            let Some(ring) = &mut queue.ring else { continue };
            match ring.wants_signal(memory) {
                Ok(wants) => {
                    if wants || std::mem::take(&mut queue.owes_signal) {
                        queue.call.iter().for_each(raise);
                    }
                }
                Err(fault) => self.break_ring(number, fault),
            }
        }
    }

    /// The guest has broken the rules: its ring is served no more.
    fn break_ring(&mut self, number: usize, fault: RingFault) {
        let queue = &mut self.queues[number];
        queue.error.iter().for_each(raise);
        queue.kick.take().iter().for_each(|kick| raise(kick));
        // It keeps where it was: the front end may ask, and begin another one.
        if let Some(ring) = queue.ring.take() {
            queue.base = ring.next_available();
        }
        (queue.again, queue.postponed) = (VecDeque::new(), None);
        (queue.under_way, queue.is_due, queue.rings) = (0, false, queue.rings + 1);
        self.faults.push(fault);
    }
}

/// Bytes of the configuration as the front end asks for them; none if it does not have them.
fn config(disk: &DiskFacts, offset: u32, bytes: u32, flags: u32) -> Vec<u8> {
    let (first, count) = (offset as usize, bytes as usize);
    let end = first.saturating_add(count);
    if end > MAX_CONFIG_BYTES {
        return Vec::new();
    }
    let mut all = disk.config.clone();
    all.resize(MAX_CONFIG_BYTES, 0);
    let mut payload = [offset, bytes, flags].map(u32::to_ne_bytes).concat();
    payload.extend(&all[first..end]);
    payload
}

/// Whether a socket takes all of a message at once: they are short, and it holds many of them.
fn sends_whole(socket: &OwnedFd, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&files)) {
        return false;
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)
        .is_ok_and(|count| count == bytes.len())
}
