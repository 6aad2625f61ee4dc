//! A sibling with the world around it: files, and clients that do not wait.

use cachewright_live::io::open::{FileAccess, open_file, tcp_listener, unix_listener};
use cachewright_live::io::sim::{Sim, SimFile};
use cachewright_live::io::system::{EngineChoice, SystemIo};
use cachewright_live::io::{Done, FileId, Io, IoOp, ListenerId, SocketId, Token};
use cachewright_types::Seed;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tempfile::TempDir;

/// Bytes that a client takes at once.
const CLIENT_BYTES: usize = 64 << 10;

/// A sibling, and what it works on.
pub trait Rig {
    /// The sibling.
    fn io(&mut self) -> &mut dyn Io;
    /// A new file of zeroes.
    fn file(&mut self, bytes: u64) -> FileId;
    /// The content of a file as others see it.
    fn content(&mut self, file: FileId) -> Vec<u8>;
    /// A new place to connect to.
    fn listener(&mut self) -> ListenerId;
    /// A new client.
    fn connect(&mut self, listener: ListenerId) -> usize;
    /// Sends, without waiting; returns the bytes that were taken.
    fn client_sends(&mut self, client: usize, bytes: &[u8]) -> usize;
    /// What the client was sent, a part at a time; nothing if there is nothing yet.
    fn client_receives(&mut self, client: usize) -> Vec<u8>;
    /// Ends the connection from the client's side.
    fn client_closes(&mut self, client: usize);
    /// Whether the client's connection was ended, and all that was sent before is received.
    fn client_is_at_end(&mut self, client: usize) -> bool;
    /// Whether connections hold a bounded number of bytes.
    fn is_bounded(&self) -> bool;
}

/// Submits all operations, waits for them, and returns them in the order of submission.
pub fn run(rig: &mut (impl Rig + ?Sized), ops: Vec<IoOp>) -> Vec<Done> {
    let count = ops.len();
    for (number, op) in ops.into_iter().enumerate() {
        rig.io().submit(Token(number as u64), op);
    }
    let mut done = Vec::new();
    while done.len() < count {
        let before = done.len();
        rig.io().wait(&mut done);
        assert!(done.len() > before, "operations are under way, and none was done");
    }
    done.sort_by_key(|done| done.token);
    let tokens: Vec<u64> = done.iter().map(|done| done.token.0).collect();
    assert_eq!(tokens, (0..count as u64).collect::<Vec<_>>(), "each is done once");
    done
}

/// Runs one operation.
pub fn run_one(rig: &mut (impl Rig + ?Sized), op: IoOp) -> Done {
    run(rig, vec![op]).remove(0)
}

/// Token of the timers of [`step`].
const STEP: Token = Token(u64::MAX);

/// Lets operations go on for a moment, and returns those that are done.
pub fn step(rig: &mut (impl Rig + ?Sized)) -> Vec<Done> {
    let at_ns = rig.io().now_ns() + 1_000_000;
    rig.io().submit(STEP, IoOp::Timer { at_ns });
    let mut done = Vec::new();
    while !done.iter().any(|done: &Done| done.token == STEP) {
        rig.io().wait(&mut done);
    }
    done.retain(|done| done.token != STEP);
    done
}

/// Steps until something is done.
pub fn step_until_done(rig: &mut (impl Rig + ?Sized)) -> Vec<Done> {
    loop {
        let done = step(rig);
        if !done.is_empty() {
            return done;
        }
    }
}

/// The simulation.
pub struct SimRig {
    sim: Sim,
    clients: Vec<SocketId>,
}

impl SimRig {
    pub fn new() -> SimRig {
        SimRig { sim: Sim::new(Seed(7)), clients: Vec::new() }
    }
}

impl Rig for SimRig {
    fn io(&mut self) -> &mut dyn Io {
        &mut self.sim
    }

    fn file(&mut self, bytes: u64) -> FileId {
        self.sim.add_file(SimFile::new(bytes))
    }

    fn content(&mut self, file: FileId) -> Vec<u8> {
        let file = self.sim.file(file);
        let mut content = vec![0; file.bytes() as usize];
        file.read(0, &mut content);
        content
    }

    fn listener(&mut self) -> ListenerId {
        self.sim.add_listener()
    }

    fn connect(&mut self, listener: ListenerId) -> usize {
        self.clients.push(self.sim.sockets().connect(listener));
        self.clients.len() - 1
    }

    fn client_sends(&mut self, client: usize, bytes: &[u8]) -> usize {
        self.sim.sockets().client_sends(self.clients[client], bytes);
        bytes.len()
    }

    fn client_receives(&mut self, client: usize) -> Vec<u8> {
        self.sim.sockets().client_receives(self.clients[client])
    }

    fn client_closes(&mut self, client: usize) {
        self.sim.sockets().client_closes(self.clients[client]);
    }

    fn client_is_at_end(&mut self, client: usize) -> bool {
        !self.sim.sockets().is_open(self.clients[client])
    }

    fn is_bounded(&self) -> bool {
        false
    }
}

/// A sibling on files and sockets of the system.
pub struct HostRig {
    pub io: SystemIo,
    pub folder: TempDir,
    paths: Vec<PathBuf>,
    addresses: Vec<String>,
    clients: Vec<Option<Stream>>,
}

/// A client's end.
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn both(&mut self) -> &mut dyn ReadWrite {
        match self {
            Stream::Unix(stream) => stream,
            Stream::Tcp(stream) => stream,
        }
    }
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

/// Runs a test with io_uring, or says that it is refused.
pub fn with_uring(test: impl FnOnce(&mut HostRig)) {
    match SystemIo::new(EngineChoice::Uring) {
        Ok(io) => test(&mut HostRig::new(io)),
        Err(error) => println!("skipped: {error}"),
    }
}

/// Runs a test with threads.
pub fn with_threads(test: impl FnOnce(&mut HostRig)) {
    test(&mut HostRig::new(SystemIo::new(EngineChoice::Threads).unwrap()));
}

impl HostRig {
    fn new(io: SystemIo) -> HostRig {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        HostRig { io, folder, paths: Vec::new(), addresses: Vec::new(), clients: Vec::new() }
    }

    /// The path of a file.
    pub fn path(&self, file: FileId) -> PathBuf {
        self.paths[file.index()].clone()
    }

    /// Opens what lies at a path.
    pub fn open(&mut self, path: PathBuf) -> FileId {
        let file = self.io.add_file(open_file(&path, FileAccess::Write).unwrap());
        self.paths.push(path);
        file
    }

    /// A new place to connect to over TCP.
    pub fn tcp_listener(&mut self) -> ListenerId {
        let listener = tcp_listener("0").unwrap();
        self.addresses.push(listener.address().to_owned());
        self.io.add_listener(listener)
    }

    /// Ends the sibling, with all that is under way.
    pub fn drop_io(&mut self) {
        self.io = SystemIo::new(EngineChoice::Threads).unwrap();
    }
}

impl Rig for HostRig {
    fn io(&mut self) -> &mut dyn Io {
        &mut self.io
    }

    fn file(&mut self, bytes: u64) -> FileId {
        let path = self.folder.path().join(format!("file-{}", self.paths.len()));
        File::create(&path).unwrap().set_len(bytes).unwrap();
        self.open(path)
    }

    fn content(&mut self, file: FileId) -> Vec<u8> {
        std::fs::read(&self.paths[file.index()]).unwrap()
    }

    fn listener(&mut self) -> ListenerId {
        let path = self.folder.path().join(format!("socket-{}", self.addresses.len()));
        let listener = unix_listener(&path).unwrap();
        self.addresses.push(listener.address().to_owned());
        self.io.add_listener(listener)
    }

    fn connect(&mut self, listener: ListenerId) -> usize {
        let address = &self.addresses[listener.index()];
        let stream = if address.starts_with('/') {
            let stream = UnixStream::connect(address).unwrap();
            stream.set_nonblocking(true).unwrap();
            Stream::Unix(stream)
        } else {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_nonblocking(true).unwrap();
            Stream::Tcp(stream)
        };
        self.clients.push(Some(stream));
        self.clients.len() - 1
    }

    fn client_sends(&mut self, client: usize, bytes: &[u8]) -> usize {
        match self.clients[client].as_mut().unwrap().both().write(bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("the client cannot send: {error}"),
        }
    }

    fn client_receives(&mut self, client: usize) -> Vec<u8> {
        let mut bytes = vec![0; CLIENT_BYTES];
        match self.clients[client].as_mut().unwrap().both().read(&mut bytes) {
            Ok(count) => bytes.truncate(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => bytes.clear(),
            Err(error) => panic!("the client cannot receive: {error}"),
        }
        bytes
    }

    fn client_closes(&mut self, client: usize) {
        self.clients[client] = None;
    }

    fn client_is_at_end(&mut self, client: usize) -> bool {
        let read = self.clients[client].as_mut().unwrap().both().read(&mut [0]);
        match read {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    fn is_bounded(&self) -> bool {
        true
    }
}
