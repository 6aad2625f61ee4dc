//! Input and output in memory: any order of completions, faults, kills and losses of power.
//!
//! For: tests that stop at every operation and look at all that may be left. Must never know: what
//! the bytes mean. Units: bytes, nanoseconds. One operation is done per call of
//! [`Io::wait`], chosen by a seed among all that can be done; the same seed gives the same order.

mod file;
mod sockets;

pub use file::{Fate, SECTOR, SimFile, Unreadable};
pub use sockets::SimulatedSockets;

use crate::io::{
    Buffer, Done, FileExtent, FileId, Io, IoError, IoOp, ListenerId, Output, SocketId, Token,
    check_range,
};
use cachewright_types::{Rng, Seed};

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
        move |length| rng.as_mut().map_or(Fate::Whole, |rng| random_fate(length, rng))
    }
}

/// Chooses faults: called with the number of each operation, from 0, and the operation.
pub type Faults = Box<dyn FnMut(u64, &IoOp) -> Option<Fault>>;

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
    pub fn make_unreadable(
        &mut self,
        file: FileId,
        (offset, bytes): (u64, usize),
        lasts: Unreadable,
    ) {
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
        let fates: Vec<Fate> = lengths.iter().map(|length| random_fate(*length, rng)).collect();
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
        let fates: Vec<Fate> = lengths.iter().map(|length| random_fate(*length, rng)).collect();
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
            self.end_failed(number, (&op, fault), &covered);
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
    fn end_failed(&mut self, number: u64, (op, fault): (&IoOp, Option<Fault>), covered: &[u64]) {
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
                file.begin_write(number, (place, buffer), &done);
            }
            IoOp::Zero { file, offset, length } | IoOp::Provision { file, offset, length } => {
                let zeroes = vec![0; *length as usize];
                self.files[file.index()].begin_write(number, (*offset, &zeroes), &done);
            }
            IoOp::Discard { file, offset, length } => {
                let anything = vec![DISCARDED; *length as usize];
                self.files[file.index()].begin_write(number, (*offset, &anything), &done);
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

fn random_fate(length: usize, rng: &mut Rng) -> Fate {
    match rng.below(3) {
        0 => Fate::Lost,
        1 => Fate::Whole,
        _ => Fate::Torn((0..length.div_ceil(SECTOR)).map(|_| rng.below(2) == 1).collect()),
    }
}
