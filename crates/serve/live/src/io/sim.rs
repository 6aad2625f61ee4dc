//! Input and output in memory: any order of completions, faults, kills and losses of power.
//!
//! One operation is done per call of [`Io::wait`], chosen by a seed among all that can be done; the
//! same seed gives the same order. What is read of a file is what was written last; what a loss of
//! power leaves is the durable content and, of each sector of a write since the last sync, what was
//! chosen. Sectors hold their old or their new content (source: the fault model of storage that
//! writes sectors of 512 bytes wholly or not). A kill of the process loses nothing that was done. A
//! sync that fails makes a part durable; the rest no later sync does (source: Linux reports an
//! error of a sync once and takes the pages for clean; Rebello et al., ATC 2020).

use super::{
    ALIGNMENT, Buffer, Done, FileExtent, FileId, Io, IoError, IoOp, ListenerId, Output, SocketId,
    Token, check_range,
};
use cachewright_types::{Rng, Seed};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// What goes wrong with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this error; a write leaves nothing, a sync makes nothing durable.
    Error(IoError),
    /// It fails with this error, and so much of it was done.
    Partly(IoError, Share),
    /// The process stops before it: nothing of it is done, and nothing waits for it any more.
    Stopped,
    /// A write or sync is reported as done, and did nothing durable.
    Lie,
    /// A write goes to another place: so many bytes further.
    Misdirected(u64),
    /// Bits of what is read flip, from this byte of it on.
    Flipped(usize),
}

/// What is done of an operation that fails: of the sectors of a write, zeroes or a discard, or of
/// the writes that a sync covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it.
    All,
    /// Some, as a seed says.
    Some(Seed),
}

impl Share {
    /// Chooses for writes of these lengths, one after the other.
    fn fates(self) -> impl FnMut(usize) -> Fate {
        let mut rng = match self {
            Share::All => None,
            Share::Some(seed) => Some(seed.rng()),
        };
        move |length| rng.as_mut().map_or(Fate::Whole, |rng| Fate::random(length, rng))
    }
}

/// Chooses faults: called with the number of each operation, from 0, and the operation.
type Faults = Box<dyn FnMut(u64, &IoOp) -> Option<Fault>>;

/// What discarded bytes read as: anything but what they were.
const DISCARDED: u8 = 0xdb;

/// An operation under way.
struct PendingOperation {
    number: u64,
    token: Token,
    op: IoOp,
    fault: Option<Fault>,
    /// For a sync: writes of smaller numbers that were done when it began.
    covered: Vec<u64>,
    /// For a look at extents: what was found when it began, the earliest that it may look.
    extents: Vec<FileExtent>,
}

/// Files, connections and a clock in memory.
pub struct Sim {
    files: Vec<SimFile>,
    sockets: SimulatedSockets,
    pending: Vec<PendingOperation>,
    /// Writes that are done, by file, and not yet durable.
    done_writes: Vec<(FileId, u64)>,
    numbers: u64,
    faults: Option<Faults>,
    rng: Rng,
    now_ns: u64,
    listeners: usize,
}

impl Sim {
    /// No files; the order of completions follows `seed`.
    pub fn new(seed: Seed) -> Sim {
        Sim {
            files: Vec::new(),
            sockets: SimulatedSockets::default(),
            pending: Vec::new(),
            done_writes: Vec::new(),
            numbers: 0,
            faults: None,
            rng: seed.derive("sim").rng(),
            now_ns: 0,
            listeners: 0,
        }
    }

    /// Adds a file.
    pub fn add_file(&mut self, file: SimFile) -> FileId {
        self.files.push(file);
        FileId::new(self.files.len() - 1)
    }

    /// Adds a place to connect to.
    pub fn add_listener(&mut self) -> ListenerId {
        self.listeners += 1;
        ListenerId::new(self.listeners - 1)
    }

    /// From now on `faults` says what goes wrong.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = Some(faults);
    }

    /// A file.
    pub fn file(&self, file: FileId) -> &SimFile {
        &self.files[file.index()]
    }

    /// The clients' ends of the connections.
    pub fn sockets(&mut self) -> &mut SimulatedSockets {
        &mut self.sockets
    }

    /// From now on the sectors of a range of a file cannot be read.
    pub fn make_unreadable(&mut self, file: FileId, offset: u64, bytes: usize, lasts: Unreadable) {
        self.files[file.index()].make_unreadable(offset, bytes, lasts);
    }

    /// After so many more operations have begun, none is done: a stop within a procedure that waits
    /// for its operations.
    pub fn stop_after(&mut self, operations: u64) {
        let last = self.numbers + operations;
        self.set_faults(Box::new(move |number, _| (number >= last).then_some(Fault::Stopped)));
    }

    /// Whether an operation can be done now.
    pub fn is_busy(&self) -> bool {
        self.pending.iter().any(|pending| self.can_end(pending))
    }

    /// Writes that power can lose, of all files.
    pub fn volatile_writes(&self) -> usize {
        self.files.iter().map(|file| file.volatile().count()).sum()
    }

    /// Power is lost: what is left, with one fate per write that was not durable, file by file.
    pub fn crash(&self, seed: Seed, fates: impl IntoIterator<Item = Fate>) -> Sim {
        let mut fates = fates.into_iter();
        let files = self.files.iter().map(|file| file.after_crash(&mut fates)).collect();
        Sim { files, listeners: self.listeners, ..Sim::new(seed) }
    }

    /// Power is lost; `rng` chooses what is left: for each write lost, whole or torn.
    pub fn crash_at_random(&self, seed: Seed, rng: &mut Rng) -> Sim {
        let lengths: Vec<usize> = self.files.iter().flat_map(SimFile::volatile).collect();
        let fates: Vec<Fate> = lengths.iter().map(|length| Fate::random(*length, rng)).collect();
        self.crash(seed, fates)
    }

    /// Writes under way, of all files.
    pub fn writes_under_way(&self) -> usize {
        self.files.iter().map(|file| file.under_way().count()).sum()
    }

    /// Whether a sync has failed: what it has not made durable ends with the process.
    pub fn has_given_up(&self) -> bool {
        self.files.iter().any(SimFile::has_given_up)
    }

    /// All sectors can be read again.
    pub fn heal(&mut self) {
        self.files.iter_mut().for_each(SimFile::heal);
    }

    /// The process is killed: what is left of it, with one fate per write under way, file by file.
    /// What was done is there, and a later loss of power can take it.
    pub fn kill(&self, seed: Seed, fates: impl IntoIterator<Item = Fate>) -> Sim {
        let mut fates = fates.into_iter();
        let files: Vec<SimFile> =
            self.files.iter().map(|file| file.after_kill(&mut fates)).collect();
        let volatile = |(index, file): (usize, &SimFile)| {
            file.volatile_numbers().map(move |number| (FileId::new(index), number)).collect()
        };
        let done_writes = files.iter().enumerate().flat_map::<Vec<_>, _>(volatile).collect();
        let (listeners, numbers) = (self.listeners, self.numbers);
        Sim { files, listeners, numbers, done_writes, ..Sim::new(seed) }
    }

    /// The process is killed; `rng` chooses what is left of writes under way.
    pub fn kill_at_random(&self, seed: Seed, rng: &mut Rng) -> Sim {
        let lengths: Vec<usize> = self.files.iter().flat_map(SimFile::under_way).collect();
        let fates: Vec<Fate> = lengths.iter().map(|length| Fate::random(*length, rng)).collect();
        self.kill(seed, fates)
    }

    fn can_end(&self, pending: &PendingOperation) -> bool {
        if matches!(pending.fault, Some(Fault::Error(_) | Fault::Stopped)) {
            return true;
        }
        match &pending.op {
            IoOp::Accept { listener } => self.sockets.is_awaited(*listener),
            IoOp::Receive { socket, .. } => {
                self.sockets.is_readable(*socket) || self.is_closing(*socket)
            }
            IoOp::Send { socket, .. } => {
                !self.sockets.is_stalled(*socket) || self.is_closing(*socket)
            }
            // A close ends last.
            IoOp::Close { socket } => !self.is_in_use(*socket),
            IoOp::Timer { at_ns } => *at_ns <= self.now_ns,
            IoOp::Await { source } => super::threads::is_readable(source),
            _ => true,
        }
    }

    /// The place of the next operation to end. If none can end, time goes to the next timer.
    fn choose(&mut self) -> Option<usize> {
        loop {
            let ready = (0..self.pending.len()).filter(|place| self.can_end(&self.pending[*place]));
            let ready: Vec<usize> = ready.collect();
            if !ready.is_empty() {
                return Some(ready[self.rng.below(ready.len() as u64) as usize]);
            }
            let timers = self.pending.iter().filter_map(|pending| match pending.op {
                IoOp::Timer { at_ns } => Some(at_ns),
                _ => None,
            });
            self.now_ns = timers.min()?;
        }
    }

    fn end(&mut self, pending: PendingOperation) -> Done {
        let PendingOperation { number, token, op, fault, covered, extents } = pending;
        let failed = match fault {
            Some(Fault::Error(error) | Fault::Partly(error, _)) => Some(error),
            Some(Fault::Stopped) => Some(IoError::NO_DEVICE),
            _ => None,
        };
        if let Some(error) = failed {
            self.end_failed(number, &op, fault, &covered);
            return Done { token, output: op.give_back(), error: Some(error) };
        }
        let (output, error) = match op {
            IoOp::Read { file, offset, buffer }
                if self.files[file.index()].fails_read(offset, buffer.len()) =>
            {
                (Output::Buffer(buffer, 0), Some(IoError::IO))
            }
            IoOp::Read { file, offset, mut buffer } => {
                self.files[file.index()].read(offset, &mut buffer);
                if let Some(Fault::Flipped(from)) = fault {
                    buffer.iter_mut().skip(from).take(8).for_each(|byte| *byte = !*byte);
                }
                let count = buffer.len();
                (Output::Buffer(buffer, count), None)
            }
            IoOp::Write { file, .. }
            | IoOp::Zero { file, .. }
            | IoOp::Provision { file, .. }
            | IoOp::Discard { file, .. } => {
                self.files[file.index()].end_write(number);
                self.done_writes.push((file, number));
                (Output::Nothing, None)
            }
            IoOp::Sync { file } => {
                if fault != Some(Fault::Lie) {
                    self.files[file.index()].sync(|write| covered.contains(&write));
                }
                self.forget_done(file, &covered);
                (Output::Nothing, None)
            }
            IoOp::Extents { .. } => (Output::Extents(extents), None),
            op => self.end_other(op),
        };
        Done { token, output, error }
    }

    /// An operation fails: what was done of it is there.
    fn end_failed(&mut self, number: u64, op: &IoOp, fault: Option<Fault>, covered: &[u64]) {
        let share = match fault {
            Some(Fault::Partly(_, share)) => Some(share),
            Some(Fault::Stopped) => return,
            _ => None,
        };
        match op {
            IoOp::Write { file, .. } | IoOp::Zero { file, .. } | IoOp::Discard { file, .. }
                if share.is_some() =>
            {
                self.files[file.index()].end_write(number);
                self.done_writes.push((*file, number));
            }
            IoOp::Sync { file } => {
                let Some(found) = self.files.get_mut(file.index()) else { return };
                let mut fates = share.map(Share::fates);
                let fate = |length| fates.as_mut().map_or(Fate::Lost, |fate| fate(length));
                found.fail_sync(|write| covered.contains(&write), fate);
                self.forget_done(*file, covered);
            }
            _ => {}
        }
    }

    /// A sync of these writes to a file has ended.
    fn forget_done(&mut self, file: FileId, covered: &[u64]) {
        self.done_writes.retain(|(written, write)| *written != file || !covered.contains(write));
    }

    /// Ends what is about no file's content.
    fn end_other(&mut self, op: IoOp) -> (Output, Option<IoError>) {
        let closing = matches!(&op, IoOp::Send { socket, .. } if self.is_closing(*socket));
        match op {
            IoOp::Accept { listener } => match self.sockets.accept(listener) {
                Some(socket) => (Output::Socket(socket), None),
                None => (Output::Nothing, Some(IoError::INVALID)),
            },
            IoOp::Receive { socket, mut buffer } => {
                let count = self.sockets.receive(socket, &mut buffer);
                (Output::Buffer(buffer, count), None)
            }
            IoOp::Send { socket, buffers } => {
                let sends = |buffer: &Buffer| self.sockets.send(socket, buffer);
                let sent = !closing && buffers.iter().all(sends);
                (Output::Buffers(buffers), (!sent).then_some(IoError::NOT_CONNECTED))
            }
            IoOp::Close { socket } => {
                self.sockets.close(socket);
                (Output::Nothing, None)
            }
            op => (op.give_back(), None),
        }
    }

    /// Errors: a file that is not there, a range of it that is not aligned or ends beyond it; a
    /// connection that is closed, or whose direction is taken.
    fn check(&self, op: &IoOp) -> Result<(), IoError> {
        if let Some((file, offset, length)) = op.file_range() {
            let file = self.files.get(file.index()).ok_or(IoError::INVALID)?;
            return check_range(offset, length, file.bytes());
        }
        match op {
            IoOp::Accept { listener } => {
                if listener.index() < self.listeners {
                    Ok(())
                } else {
                    Err(IoError::INVALID)
                }
            }
            IoOp::Receive { socket, .. } => self.claim(
                *socket,
                |op| matches!(op, IoOp::Receive { socket: other, .. } if other == socket),
            ),
            IoOp::Send { socket, .. } => self.claim(
                *socket,
                |op| matches!(op, IoOp::Send { socket: other, .. } if other == socket),
            ),
            IoOp::Close { socket } => self.claim(*socket, |_| false),
            _ => Ok(()),
        }
    }

    /// Errors: the connection is closed, or an operation that `is_taken` knows is under way on it.
    fn claim(&self, socket: SocketId, is_taken: impl Fn(&IoOp) -> bool) -> Result<(), IoError> {
        if !self.sockets.is_open(socket) || self.is_closing(socket) {
            return Err(IoError::NOT_CONNECTED);
        }
        let taken = self.pending.iter().any(|other| other.fault.is_none() && is_taken(&other.op));
        if taken { Err(IoError::BUSY) } else { Ok(()) }
    }

    /// Whether a close of the connection is under way.
    fn is_closing(&self, socket: SocketId) -> bool {
        let closes = |op: &IoOp| matches!(op, IoOp::Close { socket: other } if *other == socket);
        self.pending.iter().any(|other| other.fault.is_none() && closes(&other.op))
    }

    /// Whether a receive or a send is under way on the connection.
    fn is_in_use(&self, socket: SocketId) -> bool {
        self.pending.iter().any(|other| match &other.op {
            IoOp::Receive { socket: used, .. } | IoOp::Send { socket: used, .. } => *used == socket,
            _ => false,
        })
    }

    /// Notes what will be done of a write that begins.
    fn begin(&mut self, number: u64, op: &IoOp, fault: Option<Fault>) {
        let (mut further, mut share) = (0, Share::All);
        match fault {
            Some(Fault::Error(_) | Fault::Stopped | Fault::Lie) => return,
            Some(Fault::Partly(_, some)) => share = some,
            Some(Fault::Misdirected(bytes)) => further = bytes,
            Some(Fault::Flipped(_)) | None => {}
        }
        let Some((_, _, length)) = op.file_range() else { return };
        let done = share.fates()(length as usize);
        match op {
            IoOp::Write { file, offset, buffer } => {
                let file = &mut self.files[file.index()];
                let place = (offset + further) % file.bytes().max(1);
                file.begin_write(number, place, buffer, &done);
            }
            IoOp::Zero { file, offset, length } | IoOp::Provision { file, offset, length } => {
                let zeroes = vec![0; *length as usize];
                self.files[file.index()].begin_write(number, *offset, &zeroes, &done);
            }
            IoOp::Discard { file, offset, length } => {
                let anything = vec![DISCARDED; *length as usize];
                self.files[file.index()].begin_write(number, *offset, &anything, &done);
            }
            _ => {}
        }
    }
}

impl Io for Sim {
    fn submit(&mut self, token: Token, op: IoOp) {
        let number = self.numbers;
        self.numbers += 1;
        let chosen = self.faults.as_mut().and_then(|faults| faults(number, &op));
        let fault = self.check(&op).err().map(Fault::Error).or(chosen);
        self.begin(number, &op, fault);
        let covered = match &op {
            IoOp::Sync { file } => {
                let of_file =
                    |(written, write): &(FileId, u64)| (written == file).then_some(*write);
                self.done_writes.iter().filter_map(of_file).collect()
            }
            _ => Vec::new(),
        };
        let extents = match &op {
            IoOp::Extents { file, offset, length, max_extents } if fault.is_none() => {
                self.files[file.index()].extents(*offset, *length, *max_extents)
            }
            _ => Vec::new(),
        };
        self.pending.push(PendingOperation { number, token, op, fault, covered, extents });
    }

    fn wait(&mut self, done: &mut Vec<Done>) {
        if let Some(place) = self.choose() {
            self.now_ns += 1_000 + self.rng.below(50_000);
            let pending = self.pending.swap_remove(place);
            done.push(self.end(pending));
        }
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn file_bytes(&self, file: FileId) -> u64 {
        self.files.get(file.index()).map_or(0, SimFile::bytes)
    }
}

/// Bytes that a device writes wholly or not at all.
pub const SECTOR: usize = 512;

/// What becomes of a write that was not made durable before power is lost, of one that was under
/// way when the process was killed, or of one that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing of it is there.
    Lost,
    /// All of it is there.
    Whole,
    /// Its sectors are there that are true here, by their place in the write.
    Torn(Vec<bool>),
}

impl Fate {
    /// What `rng` chooses for a write of so many bytes.
    pub fn random(bytes: usize, rng: &mut Rng) -> Fate {
        match rng.below(3) {
            0 => Fate::Lost,
            1 => Fate::Whole,
            _ => Fate::Torn((0..bytes.div_ceil(SECTOR)).map(|_| rng.below(2) == 1).collect()),
        }
    }

    /// The parts of a write of so many bytes that are there.
    pub fn kept(&self, bytes: usize) -> Vec<Range<usize>> {
        match self {
            Fate::Lost => Vec::new(),
            Fate::Whole => std::iter::once(0..bytes).collect(),
            Fate::Torn(kept) => {
                let sectors = kept.iter().take(bytes.div_ceil(SECTOR)).enumerate();
                let there = sectors.filter(|(_, kept)| **kept).map(|(place, _)| place * SECTOR);
                there.map(|start| start..(start + SECTOR).min(bytes)).collect()
            }
        }
    }
}

/// How long sectors cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// So many reads fail. A loss of power ends it.
    Times(u32),
    /// Until they are written to.
    UntilWritten,
    /// For ever: what is written to them cannot be read either.
    ForEver,
}

/// A write, or a part of one, since the last sync.
#[derive(Clone, Debug)]
struct Volatile {
    number: u64,
    offset: u64,
    bytes: Vec<u8>,
    /// It is done, and is read.
    done: bool,
}

type Pages = HashMap<u64, Box<[u8]>, FixedState>;

/// What is in a file, and which sectors of it cannot be read.
#[derive(Clone, Debug, Default)]
struct Content {
    pages: Pages,
    /// By the number of the sector.
    unreadable: BTreeMap<u64, Unreadable>,
}

impl Content {
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        copy_in(&mut self.pages, offset, bytes);
        if !self.unreadable.is_empty() {
            let sectors = sectors_of(offset, bytes.len());
            self.unreadable
                .retain(|sector, lasts| *lasts == Unreadable::ForEver || !sectors.contains(sector));
        }
    }

    fn write_parts(&mut self, write: &Volatile, fate: &Fate) {
        for part in fate.kept(write.bytes.len()) {
            self.write(write.offset + part.start as u64, &write.bytes[part]);
        }
    }
}

fn sectors_of(offset: u64, bytes: usize) -> Range<u64> {
    offset / SECTOR as u64..(offset + bytes as u64).div_ceil(SECTOR as u64)
}

/// A file.
#[derive(Clone, Debug, Default)]
pub struct SimFile {
    bytes: u64,
    durable: Content,
    /// In the order in which they were begun.
    volatile: Vec<Volatile>,
    visible: Content,
    /// Something is read that no sync makes durable any more: a sync of it has failed.
    given_up: bool,
}

impl SimFile {
    /// A file of zeroes.
    pub fn new(bytes: u64) -> SimFile {
        SimFile { bytes, ..SimFile::default() }
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads what was written last, also where a device could not.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        copy_out(&self.visible.pages, offset, into);
    }

    /// The extents of a range from its start on: pages of zeroes are holes.
    pub fn extents(&self, offset: u64, length: u64, max_extents: usize) -> Vec<FileExtent> {
        let (mut found, mut position, end) = (Vec::<FileExtent>::new(), offset, offset + length);
        while position < end {
            let page = self.visible.pages.get(&(position / ALIGNMENT as u64));
            let is_hole = page.is_none_or(|page| page.iter().all(|byte| *byte == 0));
            let next = (position + 1).next_multiple_of(ALIGNMENT as u64).min(end);
            let is_full = found.len() == max_extents;
            match found.last_mut() {
                Some(last) if last.is_hole == is_hole => last.bytes += next - position,
                _ if is_full => break,
                _ => found.push(FileExtent { bytes: next - position, is_hole }),
            }
            position = next;
        }
        found
    }

    /// From now on the sectors of a range cannot be read.
    pub fn make_unreadable(&mut self, offset: u64, bytes: usize, lasts: Unreadable) {
        for sector in sectors_of(offset, bytes) {
            self.visible.unreadable.insert(sector, lasts);
            if !matches!(lasts, Unreadable::Times(_)) {
                self.durable.unreadable.insert(sector, lasts);
            }
        }
    }

    /// All sectors can be read again.
    pub fn heal(&mut self) {
        self.visible.unreadable.clear();
        self.durable.unreadable.clear();
    }

    /// Whether a sync has failed: what it has not made durable ends with the process.
    pub fn has_given_up(&self) -> bool {
        self.given_up
    }

    /// Whether a read of a range fails: one that fails for a time has failed once more then.
    fn fails_read(&mut self, offset: u64, bytes: usize) -> bool {
        let met: Vec<u64> = self
            .visible
            .unreadable
            .range(sectors_of(offset, bytes))
            .map(|(sector, _)| *sector)
            .collect();
        for sector in &met {
            if let Some(Unreadable::Times(left)) = self.visible.unreadable.get_mut(sector) {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.visible.unreadable.remove(sector);
                }
            }
        }
        !met.is_empty()
    }

    /// A write begins, of which so much will be done: from now on a loss of power may leave it, or
    /// parts of it.
    pub fn begin_write(&mut self, number: u64, offset: u64, bytes: &[u8], done: &Fate) {
        for part in done.kept(bytes.len()) {
            let offset = offset + part.start as u64;
            let bytes = bytes[part].to_vec();
            self.volatile.push(Volatile { number, offset, bytes, done: false });
        }
    }

    /// A write is done: it is read from now on.
    pub fn end_write(&mut self, number: u64) {
        for write in self.volatile.iter_mut().filter(|write| write.number == number) {
            self.visible.write(write.offset, &write.bytes);
            write.done = true;
        }
    }

    /// The writes of these numbers are durable.
    pub fn sync(&mut self, is_covered: impl Fn(u64) -> bool) {
        let durable = &mut self.durable;
        self.volatile.retain(|write| {
            let covered = is_covered(write.number);
            if covered {
                durable.write(write.offset, &write.bytes);
            }
            !covered
        });
    }

    /// A sync of the writes of these numbers fails, with a fate for each of them: what is not
    /// durable now is never durable, and is read until the process ends.
    fn fail_sync(&mut self, is_covered: impl Fn(u64) -> bool, mut fate: impl FnMut(usize) -> Fate) {
        let durable = &mut self.durable;
        let before = self.volatile.len();
        self.volatile.retain(|write| {
            let covered = is_covered(write.number);
            if covered {
                durable.write_parts(write, &fate(write.bytes.len()));
            }
            !covered
        });
        self.given_up |= self.volatile.len() < before;
    }

    /// Lengths of the writes that power can lose, in the order in which they were begun.
    pub fn volatile(&self) -> impl Iterator<Item = usize> + '_ {
        self.volatile.iter().map(|write| write.bytes.len())
    }

    /// Lengths of those of them that are under way.
    pub fn under_way(&self) -> impl Iterator<Item = usize> + '_ {
        self.volatile.iter().filter(|write| !write.done).map(|write| write.bytes.len())
    }

    /// The numbers of the writes that power can lose.
    fn volatile_numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.volatile.iter().map(|write| write.number)
    }

    /// Power is lost: what is left of it, with one fate for each write of [`SimFile::volatile`].
    fn after_crash(&self, fates: &mut impl Iterator<Item = Fate>) -> SimFile {
        let mut durable = self.durable.clone();
        for (write, fate) in self.volatile.iter().zip(fates) {
            durable.write_parts(write, &fate);
        }
        let (bytes, visible) = (self.bytes, durable.clone());
        SimFile { bytes, visible, durable, volatile: Vec::new(), given_up: false }
    }

    /// The process is killed: what is left of it, with one fate for each write of
    /// [`SimFile::under_way`]. What was done is read, and power can lose it.
    fn after_kill(&self, fates: &mut impl Iterator<Item = Fate>) -> SimFile {
        let mut left = SimFile { volatile: Vec::new(), given_up: false, ..self.clone() };
        if self.given_up {
            // What no sync makes durable was in memory only.
            left.visible = self.durable.clone();
        }
        for write in &self.volatile {
            let fate = if write.done { Some(Fate::Whole) } else { fates.next() };
            left.begin_write(write.number, write.offset, &write.bytes, &fate.unwrap_or(Fate::Lost));
            if !write.done || self.given_up {
                left.end_write(write.number);
            }
        }
        left.volatile.iter_mut().for_each(|write| write.done = true);
        left
    }
}

fn copy_out(pages: &Pages, offset: u64, into: &mut [u8]) {
    let mut position = offset;
    let mut rest = into;
    while !rest.is_empty() {
        let within = (position % ALIGNMENT as u64) as usize;
        let count = (ALIGNMENT - within).min(rest.len());
        let (part, others) = rest.split_at_mut(count);
        match pages.get(&(position / ALIGNMENT as u64)) {
            Some(page) => part.copy_from_slice(&page[within..within + count]),
            None => part.fill(0),
        }
        position += count as u64;
        rest = others;
    }
}

fn copy_in(pages: &mut Pages, offset: u64, from: &[u8]) {
    let mut position = offset;
    let mut rest = from;
    while !rest.is_empty() {
        let within = (position % ALIGNMENT as u64) as usize;
        let (part, others) = rest.split_at((ALIGNMENT - within).min(rest.len()));
        let zeroes = || vec![0; ALIGNMENT].into_boxed_slice();
        let page = pages.entry(position / ALIGNMENT as u64).or_insert_with(zeroes);
        page[within..within + part.len()].copy_from_slice(part);
        position += part.len() as u64;
        rest = others;
    }
}

/// One connection, with both ends.
#[derive(Clone, Debug, Default)]
struct Pipe {
    to_server: VecDeque<u8>,
    to_client: Vec<u8>,
    client_open: bool,
    server_open: bool,
    /// The client takes nothing.
    stalled: bool,
}

/// All connections.
#[derive(Clone, Debug, Default)]
pub struct SimulatedSockets {
    pipes: Vec<Pipe>,
    /// Clients that were not accepted yet.
    waiting: VecDeque<(ListenerId, SocketId)>,
}

impl SimulatedSockets {
    /// A client connects.
    pub fn connect(&mut self, listener: ListenerId) -> SocketId {
        let socket = SocketId::new(self.pipes.len());
        self.pipes.push(Pipe { client_open: true, server_open: true, ..Pipe::default() });
        self.waiting.push_back((listener, socket));
        socket
    }

    /// The next client that waits at a listener.
    pub fn accept(&mut self, listener: ListenerId) -> Option<SocketId> {
        let place = self.waiting.iter().position(|(waited, _)| *waited == listener)?;
        self.waiting.remove(place).map(|(_, socket)| socket)
    }

    /// Whether a client waits at a listener.
    pub fn is_awaited(&self, listener: ListenerId) -> bool {
        self.waiting.iter().any(|(waited, _)| *waited == listener)
    }

    /// The client sends bytes.
    pub fn client_sends(&mut self, socket: SocketId, bytes: &[u8]) {
        self.pipes[socket.index()].to_server.extend(bytes);
    }

    /// What the client was sent since the last call.
    pub fn client_receives(&mut self, socket: SocketId) -> Vec<u8> {
        std::mem::take(&mut self.pipes[socket.index()].to_client)
    }

    /// From now on the client takes what it is sent, or takes nothing.
    pub fn client_stalls(&mut self, socket: SocketId, stalled: bool) {
        self.pipes[socket.index()].stalled = stalled;
    }

    /// Whether a send of the server cannot end.
    fn is_stalled(&self, socket: SocketId) -> bool {
        self.pipes.get(socket.index()).is_some_and(|pipe| pipe.stalled)
    }

    /// The client ends the connection.
    pub fn client_closes(&mut self, socket: SocketId) {
        self.pipes[socket.index()].client_open = false;
    }

    /// Whether the server still holds the connection.
    pub fn is_open(&self, socket: SocketId) -> bool {
        self.pipes.get(socket.index()).is_some_and(|pipe| pipe.server_open)
    }

    /// Whether a receive of the server would end now: there are bytes, or there never will be.
    fn is_readable(&self, socket: SocketId) -> bool {
        let pipe = &self.pipes[socket.index()];
        !pipe.to_server.is_empty() || !pipe.client_open || !pipe.server_open
    }

    /// The server receives; 0 at the end of the connection.
    pub fn receive(&mut self, socket: SocketId, into: &mut [u8]) -> usize {
        let pipe = &mut self.pipes[socket.index()];
        let count = into.len().min(pipe.to_server.len());
        for (place, byte) in into.iter_mut().zip(pipe.to_server.drain(..count)) {
            *place = byte;
        }
        count
    }

    /// The server sends; false when the connection is gone.
    pub fn send(&mut self, socket: SocketId, bytes: &[u8]) -> bool {
        let pipe = &mut self.pipes[socket.index()];
        let open = pipe.client_open && pipe.server_open;
        if open {
            pipe.to_client.extend_from_slice(bytes);
        }
        open
    }

    /// The server ends the connection.
    pub fn close(&mut self, socket: SocketId) {
        self.pipes[socket.index()].server_open = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(file: &SimFile, offset: u64) -> u8 {
        let mut found = [0];
        file.read(offset, &mut found);
        found[0]
    }

    #[test]
    fn only_synced_writes_survive_unless_chosen() {
        let mut file = SimFile::new(16 << 10);
        file.begin_write(1, 0, &[1; 4096], &Fate::Whole);
        assert_eq!(byte(&file, 0), 0, "it is under way");
        file.end_write(1);
        assert_eq!(byte(&file, 0), 1);
        file.sync(|number| number == 1);
        file.begin_write(2, 0, &[2; 4096], &Fate::Whole);
        file.end_write(2);
        file.begin_write(3, 4096, &[3; 8192], &Fate::Whole);
        assert_eq!(file.volatile().collect::<Vec<_>>(), [4096, 8192]);
        let lost = file.after_crash(&mut std::iter::repeat(Fate::Lost));
        assert_eq!([byte(&lost, 0), byte(&lost, 4096)], [1, 0]);
        let torn = [Fate::Whole, Fate::Torn(vec![false, true])];
        let torn = file.after_crash(&mut torn.into_iter());
        assert_eq!([0, 4096, 4096 + 512, 8192].map(|offset| byte(&torn, offset)), [2, 0, 3, 0]);
        assert_eq!(torn.volatile().count(), 0);
    }

    /// A file with a durable page of ones, one of twos that is done, and one of threes under way.
    fn three_writes() -> SimFile {
        let mut file = SimFile::new(16 << 10);
        for number in 1..=3_u8 {
            let offset = u64::from(number - 1) * 4096;
            file.begin_write(number.into(), offset, &[number; 4096], &Fate::Whole);
            if number < 3 {
                file.end_write(number.into());
            }
            if number == 1 {
                file.sync(|number| number == 1);
            }
        }
        file
    }

    #[test]
    fn a_kill_loses_nothing_that_was_done_and_a_later_loss_of_power_does() {
        let file = three_writes();
        assert_eq!(file.under_way().collect::<Vec<_>>(), [4096]);
        let all = |file: &SimFile| [0, 4096, 8192, 8192 + 512].map(|offset| byte(file, offset));
        let torn = Fate::Torn(vec![false, true]);
        let killed = file.after_kill(&mut [torn].into_iter());
        assert_eq!(all(&killed), [1, 2, 0, 3]);
        assert_eq!(killed.volatile().collect::<Vec<_>>(), [4096, 512]);
        let lost = killed.after_crash(&mut std::iter::repeat(Fate::Lost));
        assert_eq!(all(&lost), [1, 0, 0, 0]);
        let mut synced = killed.clone();
        synced.sync(|number| number <= 3);
        let lost = synced.after_crash(&mut std::iter::repeat(Fate::Lost));
        assert_eq!(all(&lost), [1, 2, 0, 3]);
    }

    #[test]
    fn what_a_failed_sync_left_out_no_later_one_makes_durable() {
        let mut file = three_writes();
        file.fail_sync(|number| number == 2, |_| Fate::Torn(vec![true]));
        assert_eq!([4096, 4096 + 512].map(|offset| byte(&file, offset)), [2, 2], "it is read");
        file.sync(|number| number == 2);
        let lost = file.after_crash(&mut std::iter::repeat(Fate::Lost));
        assert_eq!([0, 4096, 4096 + 512].map(|offset| byte(&lost, offset)), [1, 2, 0]);
        let killed = file.after_kill(&mut [Fate::Whole].into_iter());
        let found = [0, 4096, 4096 + 512, 8192].map(|offset| byte(&killed, offset));
        assert_eq!(found, [1, 2, 0, 3]);
    }

    #[test]
    fn sectors_cannot_be_read_for_a_time_until_they_are_written_or_for_ever() {
        let mut file = SimFile::new(16 << 10);
        file.make_unreadable(0, 512, Unreadable::Times(2));
        file.make_unreadable(4096, 1024, Unreadable::UntilWritten);
        file.make_unreadable(8192, 4096, Unreadable::ForEver);
        assert!(file.fails_read(0, 4096) && file.fails_read(0, 8192) && !file.fails_read(0, 4096));
        file.begin_write(1, 4096, &[1; 512], &Fate::Whole);
        file.end_write(1);
        assert!(!file.fails_read(4096, 512) && file.fails_read(4096, 4096));
        file.begin_write(2, 4096, &[2; 8192], &Fate::Whole);
        file.end_write(2);
        assert!(!file.fails_read(4096, 4096) && file.fails_read(8192, 4096));
        let mut lost = file.after_crash(&mut std::iter::repeat(Fate::Lost));
        assert!(lost.fails_read(4096, 512) && lost.fails_read(8192, 512), "as it was");
        let mut whole = file.after_crash(&mut std::iter::repeat(Fate::Whole));
        assert!(!whole.fails_read(4096, 4096) && whole.fails_read(8192, 512));
    }
}
