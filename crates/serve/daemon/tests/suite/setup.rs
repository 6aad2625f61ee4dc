//! A folder with a stack, its devices, a server in a thread, and clients.

use cachewright_daemon::offline::{self, Overwrite};
use cachewright_daemon::{
    Accepted, LiveError, LivePlan, OperatorLine, Server, ServerCommand, Stopped,
};
use cachewright_live::io::system::{EngineChoice, SystemIo};
use cachewright_nbd::client::{Client, ClientEvent, ClientSettings};
use cachewright_nbd::protocol::Format;
use cachewright_nbd::{Errno, NbdCommand, NbdRequest, Range, StatusExtent};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// Longer than a server takes from one look at its surroundings to the next.
const LATE: Duration = Duration::from_millis(80);

pub const MIB: u64 = 1 << 20;
pub const BLOCK: u64 = 4096;

/// A cache of 4 MiB on two devices of 16 MiB, and volumes of 8 MiB for two tenants.
pub struct Setup {
    pub folder: TempDir,
    pub settings: Vec<(String, String)>,
    /// The text of the stack.
    pub stack: String,
}

pub const STACK: &str = r#"
[cache]
capacity = "4MiB"
policy = "s3-fifo"
partition = "static"

[serve]
devices = ["one.img", "two.img"]
listen = ["unix:live.sock"]
segment = "256KiB"

[[tenant]]
name = "a"
backing = "a.img"

[[tenant]]
name = "b"
backing = "b.img"
export = "second"
"#;

pub fn set(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// A new folder; devices are there, and not formatted.
pub fn unformatted(settings: &[(&str, &str)]) -> Setup {
    let folder = TempDir::new().unwrap();
    let sizes = [("one.img", 16), ("two.img", 16), ("a.img", 8), ("b.img", 8)];
    for (name, mib) in sizes {
        let file = File::create_new(folder.path().join(name)).unwrap();
        file.set_len(mib * MIB).unwrap();
    }
    let settings = settings.iter().map(|(key, value)| set(key, value)).collect();
    Setup { folder, settings, stack: STACK.to_owned() }
}

/// The same, formatted.
pub fn formatted(settings: &[(&str, &str)]) -> Setup {
    let setup = unformatted(settings);
    offline::format(&setup.plan().unwrap(), Overwrite::default()).unwrap();
    setup
}

impl Setup {
    /// The same with another stack.
    pub fn with_stack(self, stack: &str) -> Setup {
        Setup { stack: stack.to_owned(), ..self }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn plan(&self) -> Result<LivePlan, LiveError> {
        LivePlan::read(&self.stack, &self.path("stack.toml"), &self.settings)
    }

    /// The same with one more setting.
    pub fn plan_with(&self, key: &str, value: &str) -> Result<LivePlan, LiveError> {
        let settings: Vec<_> = self.settings.iter().cloned().chain([set(key, value)]).collect();
        LivePlan::read(&self.stack, &self.path("stack.toml"), &settings)
    }

    pub fn start(&self) -> Running {
        self.start_with(None, Accepted::default())
    }

    /// The same for an operator who accepts something.
    pub fn start_accepting(&self, accepted: Accepted) -> Running {
        self.start_with(None, accepted)
    }

    /// The same with a recording in that file.
    pub fn start_recording(&self, record: &str) -> Running {
        self.start_with(Some(self.path(record)), Accepted::default())
    }

    fn start_with(&self, record: Option<PathBuf>, accepted: Accepted) -> Running {
        let (origin, settings) = (self.path("stack.toml"), self.settings.clone());
        let stack = self.stack.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = channel();
        let (reload, stacks) = channel::<String>();
        let stopping = Arc::clone(&stop);
        let roll = Arc::new(AtomicBool::new(false));
        let rolling = Arc::clone(&roll);
        let thread = std::thread::spawn(move || {
            let plan = LivePlan::read(&stack, &origin, &settings)?.accepting(accepted);
            let server = Server::start(&plan, record.as_deref())?;
            let lines = server.lines().iter().map(|line| line.text.clone());
            sender.send(lines.collect()).unwrap();
            let said = &mut |line: &OperatorLine| sender.send(vec![line.text.clone()]).unwrap();
            let mut wish = || match stopping.load(Ordering::Relaxed) {
                true => ServerCommand::Stop,
                false if rolling.swap(false, Ordering::Relaxed) => ServerCommand::Roll,
                false => stacks.try_recv().map_or(ServerCommand::GoOn, |text| {
                    // The server's timer is over by then, as on a busy machine.
                    std::thread::sleep(LATE);
                    ServerCommand::Reload(Box::new(LivePlan::read(&text, &origin, &settings)))
                }),
            };
            server.run(&mut wish, said)
        });
        let lines = match receiver.recv() {
            Ok(lines) => lines,
            Err(_) => panic!("{:?}", thread.join().unwrap()),
        };
        let socket = self.path("live.sock");
        Running { stop, roll, thread, lines, said: receiver, reload, socket }
    }

    /// Writes bytes of a file, past whatever has it open.
    pub fn damage(&self, name: &str, offset: u64, bytes: &[u8]) {
        use std::os::unix::fs::FileExt;
        let file = File::options().write(true).open(self.path(name)).unwrap();
        file.write_all_at(bytes, offset).unwrap();
        file.sync_all().unwrap();
    }

    /// Gives a file this size.
    pub fn resize(&self, name: &str, bytes: u64) {
        File::options().write(true).open(self.path(name)).unwrap().set_len(bytes).unwrap();
    }

    /// Bytes for which a file has space.
    pub fn space_of(&self, name: &str) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let file = File::open(self.path(name)).unwrap();
        file.sync_all().unwrap();
        file.metadata().unwrap().blocks() * 512
    }

    pub fn content(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }
}

/// A server in a thread of its own.
pub struct Running {
    pub stop: Arc<AtomicBool>,
    roll: Arc<AtomicBool>,
    thread: JoinHandle<Result<Stopped, LiveError>>,
    pub lines: Vec<String>,
    /// What is said later.
    pub said: Receiver<Vec<String>>,
    /// Takes the text of another stack.
    reload: Sender<String>,
    socket: PathBuf,
}

impl Running {
    pub fn stop(self) -> Stopped {
        self.outcome().unwrap()
    }

    pub fn outcome(self) -> Result<Stopped, LiveError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }

    /// Waits until the server ends by itself.
    pub fn ended(self) -> Result<Stopped, LiveError> {
        self.thread.join().unwrap()
    }

    /// Goes on by another stack; returns the first line that is said then.
    pub fn reload(&self, text: &str) -> String {
        self.begin_reload(text);
        self.next_line()
    }

    /// Goes on by another stack, when it comes to that.
    pub fn begin_reload(&self, text: &str) {
        self.reload.send(text.to_owned()).unwrap();
    }

    /// Finishes the recording under way and begins another one.
    pub fn roll(&self) {
        self.roll.store(true, Ordering::Relaxed);
    }

    /// The next line that is said.
    pub fn next_line(&self) -> String {
        self.said.recv().unwrap().remove(0)
    }

    pub fn connect(&self, export: &str) -> Guest {
        Guest::connect(&self.socket, export)
    }

    pub fn connect_extended(&self, export: &str) -> Guest {
        Guest::connect_extended(&self.socket, export)
    }

    pub fn connect_for_status(&self, export: &str) -> Guest {
        Guest::connect_for_status(&self.socket, export)
    }
}

/// A client that waits for each answer.
pub struct Guest {
    client: Client,
    stream: UnixStream,
    cookie: u64,
    /// Bytes that the server has sent and that were not looked at.
    taken: Vec<u8>,
    pub size: u64,
    pub format: Format,
    /// Status that has come.
    extents: Vec<StatusExtent>,
}

impl Guest {
    pub fn connect(socket: &Path, export: &str) -> Guest {
        let export = export.to_owned();
        Guest::open(socket, ClientSettings { export, structured: true, ..Default::default() })
    }

    /// The same, with headers of 32 bytes if the server has them.
    pub fn connect_extended(socket: &Path, export: &str) -> Guest {
        let (export, structured, extended_headers) = (export.to_owned(), true, true);
        let settings =
            ClientSettings { export, structured, extended_headers, ..Default::default() };
        Guest::open(socket, settings)
    }

    /// The same, which asks what is allocated.
    pub fn connect_for_status(socket: &Path, export: &str) -> Guest {
        let (export, structured) = (export.to_owned(), true);
        let contexts = vec!["base:allocation".to_owned()];
        Guest::open(socket, ClientSettings { export, structured, contexts, ..Default::default() })
    }

    fn open(socket: &Path, settings: ClientSettings) -> Guest {
        let client = Client::new(settings);
        let stream = UnixStream::connect(socket).unwrap();
        let format = Format::default();
        let (cookie, taken, size, extents) = (0, Vec::new(), 0, Vec::new());
        let mut guest = Guest { client, stream, cookie, taken, size, format, extents };
        while guest.size == 0 {
            assert!(guest.exchange().is_empty());
        }
        guest
    }

    /// Whether the server has ended the connection.
    pub fn is_closed(&mut self) -> bool {
        self.stream.read(&mut [0]).map_or(true, |count| count == 0)
    }

    /// Takes what the server has sent; returns requests that are done, with their data.
    fn exchange(&mut self) -> Vec<(Result<(), Errno>, Vec<u8>)> {
        let mut bytes = vec![0; 256 << 10];
        let count = self.stream.read(&mut bytes).unwrap();
        assert!(count > 0, "the server has closed the connection");
        let (mut input, mut out, mut done) = (&bytes[..count], Vec::new(), Vec::new());
        let mut data = Vec::new();
        while let Some(event) = self.client.next(&mut input, &mut out) {
            match event {
                ClientEvent::Opened(opened) => {
                    (self.size, self.format) = (opened.size, opened.format);
                }
                ClientEvent::Data { bytes, .. } => data.extend_from_slice(bytes),
                ClientEvent::Extents { extents, .. } => self.extents = extents,
                ClientEvent::Done { result, .. } => done.push((result, std::mem::take(&mut data))),
                event => panic!("found {event:?}"),
            }
        }
        self.stream.write_all(&out).unwrap();
        if !data.is_empty() {
            // The rest of a read's data is still on its way.
            let mut rest = self.exchange();
            rest[0].1.splice(0..0, data);
            done.extend(rest);
        }
        done
    }

    /// Sends a request and takes no answer.
    fn send(&mut self, command: NbdCommand, offset: u64, payload: &[u8]) {
        self.cookie += 1;
        let request = NbdRequest { cookie: self.cookie, offset, command, fua: false };
        let mut out = Vec::new();
        self.client.send(&request, &mut out);
        out.extend_from_slice(payload);
        self.stream.write_all(&out).unwrap();
    }

    fn outcome(&mut self, command: NbdCommand, offset: u64) -> (Result<(), Errno>, Vec<u8>) {
        self.send(command, offset, &[]);
        loop {
            if let Some(outcome) = self.exchange().pop() {
                return outcome;
            }
        }
    }

    fn request(&mut self, command: NbdCommand, offset: u64, payload: &[u8]) -> Vec<u8> {
        self.send(command, offset, payload);
        loop {
            if let Some((result, data)) = self.exchange().pop() {
                assert_eq!(result, Ok(()), "{command:?}");
                return data;
            }
        }
    }

    /// Sends a read and takes no answer.
    pub fn begin_read(&mut self, offset: u64, length: u64) {
        let range = Range { offset, length };
        self.send(NbdCommand::Read { range, whole: false }, offset, &[]);
    }

    /// Takes the first bytes that the server sends.
    pub fn take_first(&mut self) {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).unwrap();
        self.taken.extend(byte);
    }

    /// Reads that are answered until the server ends the connection: offset and content.
    pub fn rest(mut self) -> Vec<(u64, Vec<u8>)> {
        let mut bytes = std::mem::take(&mut self.taken);
        // The server may have ended before it took all that was sent, which is an error here.
        let _ended = self.stream.read_to_end(&mut bytes);
        let (mut input, mut out) = (&bytes[..], Vec::new());
        let (mut done, mut data) = (Vec::new(), Vec::new());
        while let Some(event) = self.client.next(&mut input, &mut out) {
            match event {
                ClientEvent::Data { offset, bytes, .. } => {
                    if data.is_empty() {
                        done.push((offset, Vec::new()));
                    }
                    data.extend_from_slice(bytes);
                }
                ClientEvent::Done { result, .. } => {
                    assert_eq!(result, Ok(()));
                    done.last_mut().unwrap().1 = std::mem::take(&mut data);
                }
                event => panic!("found {event:?}"),
            }
        }
        assert!(data.is_empty() && input.is_empty(), "the last answer is whole");
        done
    }

    /// The error of a read that fails.
    pub fn failing_read(&mut self, offset: u64, length: u64) -> Errno {
        let range = Range { offset, length };
        self.outcome(NbdCommand::Read { range, whole: false }, offset).0.unwrap_err()
    }

    /// The error of a write that fails.
    pub fn failing_write(&mut self, offset: u64, data: &[u8]) -> Errno {
        let range = Range { offset, length: data.len() as u64 };
        self.send(NbdCommand::Write(range), offset, data);
        loop {
            if let Some((result, _)) = self.exchange().pop() {
                return result.unwrap_err();
            }
        }
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let range = Range { offset, length: data.len() as u64 };
        self.request(NbdCommand::Write(range), offset, data);
    }

    pub fn read(&mut self, offset: u64, length: u64) -> Vec<u8> {
        let range = Range { offset, length };
        self.request(NbdCommand::Read { range, whole: false }, offset, &[])
    }

    pub fn zero(&mut self, offset: u64, length: u64) {
        let range = Range { offset, length };
        self.request(NbdCommand::Zero { range, keep_space: false, fast: false }, offset, &[]);
    }

    /// Zeroes that have space.
    pub fn provision(&mut self, offset: u64, length: u64) {
        let range = Range { offset, length };
        self.request(NbdCommand::Zero { range, keep_space: true, fast: false }, offset, &[]);
    }

    /// The runs of a range, with whether each is a hole, as of [`Guest::connect_for_status`].
    pub fn holes(&mut self, offset: u64, length: u64) -> Vec<(u64, bool)> {
        let (mut at, end) = (offset, offset + length);
        let mut runs: Vec<(u64, bool)> = Vec::new();
        while at < end {
            let range = Range { offset: at, length: end - at };
            self.request(NbdCommand::BlockStatus { range, single_extent: false }, at, &[]);
            assert!(!self.extents.is_empty());
            for StatusExtent { length, status } in std::mem::take(&mut self.extents) {
                assert!(length > 0 && (status == 0 || status == 3), "{length}, {status}");
                at += length;
                match runs.last_mut() {
                    Some(run) if run.1 == (status == 3) => run.0 += length,
                    _ => runs.push((length, status == 3)),
                }
            }
        }
        assert_eq!(at, end);
        runs
    }

    pub fn trim(&mut self, offset: u64, length: u64) {
        self.request(NbdCommand::Trim(Range { offset, length }), offset, &[]);
    }

    pub fn flush(&mut self) {
        self.request(NbdCommand::Flush, 0, &[]);
    }
}

/// Content that says where it belongs.
pub fn pattern(seed: u8, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|index| seed ^ (index / 7) as u8 ^ (index / BLOCK) as u8).collect()
}

/// The engines of this machine: containers may refuse io_uring.
pub fn engines() -> Vec<&'static str> {
    match SystemIo::new(EngineChoice::Uring) {
        Ok(_) => vec!["threads", "uring"],
        Err(refusal) => {
            eprintln!("skipped for uring: {refusal}");
            vec!["threads"]
        }
    }
}
