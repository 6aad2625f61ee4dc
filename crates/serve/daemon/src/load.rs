//! The traces of a stack's tenants, sent to a server of the same stack.
//!
//! Each tenant has a thread and a connection of its own. What is written has no meaning: exports
//! that hold something are not to be loaded.

use crate::error::LiveError;
use crate::plan::LiveStack;
use cachewright_live::exports::request_kind;
use cachewright_live::front::{ExportMeter, RequestKind};
use cachewright_nbd::client::{Client, ClientEvent, ClientSettings};
use cachewright_nbd::{NbdCommand, NbdRequest, Range};
use cachewright_result::document::Written;
use cachewright_result::live::{AnsweredRequests, LoadAnswer, LoadedTenant};
use cachewright_stack::{ListenAddress, TenantSpec, without_trace};
use cachewright_trace::{MergedRequests, WorkloadBatch};
use cachewright_types::Op;
use cachewright_types::measure::Latencies;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Requests read from a trace at a time.
const BATCH: usize = 4096;
/// Longer requests are sent in pieces.
const PIECE: u64 = 4 << 20;
const NS_PER_US: f64 = 1e3;

/// How a load is sent.
#[derive(Clone, Copy, Debug)]
pub struct LoadSettings {
    /// Requests of a tenant that are under way at most.
    pub depth: usize,
    /// Requests of a tenant, from the first of its trace.
    pub max_requests: u64,
    /// How much faster than recorded; `None`: as fast as answers come.
    pub speed: Option<f64>,
}

/// Sends the load and waits for all answers. Errors: the stack, a trace, an export, a connection.
pub fn load(
    text: &str,
    origin: &Path,
    overrides: &[(String, String)],
    settings: LoadSettings,
) -> Result<LoadAnswer, LiveError> {
    let refuse = |message: String| LiveError::stack(origin, message);
    let stack = LiveStack::parse(text, origin, overrides).map_err(refuse)?;
    let addresses = stack.serve.iter().flat_map(|serve| &serve.listen);
    let mut addresses = addresses
        .filter(|address| matches!(address, ListenAddress::Unix(_) | ListenAddress::Tcp(_)));
    let expected = "expected an address such as `unix:live.sock`";
    let address =
        addresses.next().ok_or_else(|| refuse(format!("found no `serve.listen`, {expected}")))?;
    for (index, tenant) in stack.tenants.iter().enumerate() {
        if tenant.trace.is_empty() {
            return Err(refuse(without_trace(index)));
        }
    }
    let sent = |tenant| {
        thread::spawn({
            let (address, tenant): (ListenAddress, TenantSpec) = (address.clone(), tenant);
            move || Sender::send(&address, &tenant, settings)
        })
    };
    let threads: Vec<_> = stack.tenants.iter().cloned().map(sent).collect();
    let mut tenants = Vec::new();
    for thread in threads {
        let defect = |_| LiveError::Failed("a defect ended a client; please report it".to_owned());
        tenants.push(thread.join().map_err(defect)??);
    }
    Ok(LoadAnswer { written: Written::here(), tenants })
}

/// A tenant's client.
struct Sender<'a> {
    tenant: &'a TenantSpec,
    connection: LoadConnection,
    settings: LoadSettings,
    started: Instant,
    meter: ExportMeter,
    /// How late requests were sent.
    late: Latencies,
    sent: u64,
    skipped: u64,
}

impl Sender<'_> {
    fn send(
        address: &ListenAddress,
        tenant: &TenantSpec,
        settings: LoadSettings,
    ) -> Result<LoadedTenant, LiveError> {
        let failed = |error| LiveError::Failed(format!("export `{}`: {error}", tenant.export));
        let connection = LoadConnection::open(address, &tenant.export).map_err(failed)?;
        // Else the system ends each wait up to 50 us late; where it refuses, it does.
        let _refused = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut sender = Sender {
            tenant,
            connection,
            settings,
            started: Instant::now(),
            meter: ExportMeter::default(),
            late: Latencies::default(),
            sent: 0,
            skipped: 0,
        };
        sender.all().map_err(failed)?;
        sender.finish().map_err(failed)
    }

    /// Sends the whole trace.
    fn all(&mut self) -> Result<(), String> {
        let words = |error: cachewright_trace::TraceError| error.to_string();
        let mut workload =
            MergedRequests::open(vec![self.tenant.input(&self.tenant.path)]).map_err(words)?;
        let mut batch = WorkloadBatch::default();
        while self.sent < self.settings.max_requests {
            batch.clear();
            if workload.read(&mut batch, BATCH).map_err(words)? == 0 {
                break;
            }
            for index in 0..batch.len() {
                if self.sent == self.settings.max_requests {
                    break;
                }
                self.wait_for(batch.time_ns[index])?;
                let (offset, length) = (batch.offset_bytes[index], batch.length_bytes[index]);
                self.request(batch.op[index], offset, length)?;
                self.sent += 1;
            }
        }
        Ok(())
    }

    /// Sends a request of the trace, in pieces if it is long. What lies beyond the export is left
    /// out and counted.
    fn request(&mut self, op: Op, offset: u64, length: u64) -> Result<(), String> {
        if op == Op::Flush {
            return self.piece(NbdCommand::Flush, 0);
        }
        let end = offset.saturating_add(length);
        if length == 0 || end > self.connection.size() {
            self.skipped += 1;
            return Ok(());
        }
        let mut begin = offset;
        while begin < end {
            let range = Range { offset: begin, length: PIECE.min(end - begin) };
            let command = match op {
                Op::Read => NbdCommand::Read { range, whole: false },
                Op::Write => NbdCommand::Write(range),
                Op::Trim => NbdCommand::Trim(range),
                Op::Flush => NbdCommand::Flush,
            };
            self.piece(command, begin)?;
            begin += range.length;
        }
        Ok(())
    }

    fn piece(&mut self, command: NbdCommand, offset: u64) -> Result<(), String> {
        while self.connection.under_way() >= self.settings.depth {
            self.connection.take(None, &mut self.meter)?;
        }
        self.connection.send(command, offset)
    }

    /// Takes answers until it is time for a request of the trace.
    fn wait_for(&mut self, time_ns: u64) -> Result<(), String> {
        let Some(speed) = self.settings.speed else { return Ok(()) };
        let due = Duration::from_nanos((time_ns as f64 / speed) as u64);
        loop {
            let passed = self.started.elapsed();
            let left = due.saturating_sub(passed);
            match (left.is_zero(), self.connection.under_way()) {
                (true, _) => {
                    self.late.record(passed.saturating_sub(due).as_nanos() as u64);
                    return Ok(());
                }
                (false, 0) => thread::sleep(left),
                (false, _) => self.connection.take(Some(left), &mut self.meter)?,
            }
        }
    }

    fn finish(mut self) -> Result<LoadedTenant, String> {
        while self.connection.under_way() > 0 {
            self.connection.take(None, &mut self.meter)?;
        }
        let seconds = self.started.elapsed().as_secs_f64();
        self.connection.leave();
        let requests = RequestKind::ALL.into_iter().filter_map(|kind| {
            let meter = self.meter.kind(kind);
            let found = &meter.latencies;
            let us = |share: f64| found.quantile_ns(share) as f64 / NS_PER_US;
            (found.count() > 0).then(|| AnsweredRequests {
                kind: kind.word().to_owned(),
                count: found.count(),
                bytes: meter.bytes,
                errors: meter.errors,
                mean_us: found.mean_ns() / NS_PER_US,
                p50_us: us(0.5),
                p99_us: us(0.99),
                p999_us: us(0.999),
            })
        });
        Ok(LoadedTenant {
            name: self.tenant.name.clone(),
            export: self.tenant.export.clone(),
            seconds,
            sent: self.sent,
            skipped: self.skipped,
            late_p99_us: (self.late.count() > 0)
                .then(|| self.late.quantile_ns(0.99) as f64 / NS_PER_US),
            requests: requests.collect(),
        })
    }
}

/// Bytes taken from the socket at a time.
const CHUNK: usize = 256 << 10;

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn connect(address: &ListenAddress) -> std::io::Result<Stream> {
        Ok(match address {
            ListenAddress::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
            ListenAddress::Tcp(text) => {
                let is_port = text.bytes().all(|byte| byte.is_ascii_digit());
                let place = if is_port { format!("127.0.0.1:{text}") } else { text.clone() };
                let stream = TcpStream::connect(place)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            ListenAddress::Passed | ListenAddress::Vhost(_) => {
                return Err(ErrorKind::Unsupported.into());
            }
        })
    }

    /// Waits until something can be read, or for so long; false if nothing can. The time-out of a
    /// socket counts in ticks of the system: requests of some milliseconds would be sent at once.
    fn wait(&self, patience: Duration) -> std::io::Result<bool> {
        let stream: BorrowedFd = match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        };
        let patience = Timespec::try_from(patience).map_err(|_| ErrorKind::InvalidInput)?;
        Ok(poll(&mut [PollFd::from_borrowed_fd(stream, PollFlags::IN)], Some(&patience))? > 0)
    }

    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(bytes),
            Stream::Tcp(stream) => stream.read(bytes),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tcp(stream) => stream.write_all(bytes),
        }
    }
}

/// An export that is open.
pub struct LoadConnection {
    client: Client,
    stream: Stream,
    size: u64,
    cookie: u64,
    /// Requests without an answer, and when they were sent.
    open: HashMap<u64, (NbdCommand, Instant)>,
    chunk: Vec<u8>,
    /// What writes send: bytes that do not compress.
    payload: Vec<u8>,
    out: Vec<u8>,
}

impl LoadConnection {
    /// Errors: nothing listens at the address, or it has no such export.
    pub fn open(address: &ListenAddress, export: &str) -> Result<LoadConnection, String> {
        let words = |error: std::io::Error| error.to_string();
        let settings =
            ClientSettings { export: export.to_owned(), structured: true, ..Default::default() };
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        let mut connection = LoadConnection {
            client: Client::new(settings),
            stream: Stream::connect(address).map_err(words)?,
            size: 0,
            cookie: 0,
            open: HashMap::new(),
            chunk: vec![0; CHUNK],
            payload: (0..PIECE).map(|_| byte()).collect(),
            out: Vec::new(),
        };
        while connection.size == 0 {
            connection.take(None, &mut ExportMeter::default())?;
        }
        Ok(connection)
    }

    /// Bytes of the export.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Requests without an answer.
    pub fn under_way(&self) -> usize {
        self.open.len()
    }

    /// Sends a request. Errors: the connection ends.
    pub fn send(&mut self, command: NbdCommand, offset: u64) -> Result<(), String> {
        self.cookie += 1;
        let request = NbdRequest { cookie: self.cookie, offset, command, fua: false };
        self.out.clear();
        self.client.send(&request, &mut self.out);
        if let NbdCommand::Write(range) = command {
            self.out.extend_from_slice(&self.payload[..range.length as usize]);
        }
        self.open.insert(self.cookie, (command, Instant::now()));
        self.stream.write(&self.out).map_err(|error| error.to_string())
    }

    /// Takes what the server has sent, waiting for something, but no longer than `patience`.
    /// Answers go to `meter`. Errors: the connection ends, or is none of the protocol.
    pub fn take(
        &mut self,
        patience: Option<Duration>,
        meter: &mut ExportMeter,
    ) -> Result<(), String> {
        let read = match patience.map_or(Ok(true), |patience| self.stream.wait(patience)) {
            Ok(true) => self.stream.read(&mut self.chunk),
            Ok(false) => return Ok(()),
            Err(error) => Err(error),
        };
        let count = match read {
            Ok(0) => return Err("the server has closed the connection".to_owned()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        self.out.clear();
        let mut input = &self.chunk[..count];
        while let Some(event) = self.client.next(&mut input, &mut self.out) {
            match event {
                ClientEvent::Opened(opened) => self.size = opened.size,
                ClientEvent::Data { .. } | ClientEvent::Hole { .. } => {}
                ClientEvent::Done { cookie, result } => {
                    if let Some((command, sent)) = self.open.remove(&cookie)
                        && let Some((kind, bytes)) = request_kind(command)
                    {
                        let response_ns = sent.elapsed().as_nanos() as u64;
                        meter.note(kind, bytes, response_ns, result.is_err());
                    }
                }
                event => return Err(format!("found {event:?}, expected answers")),
            }
        }
        self.stream.write(&self.out).map_err(|error| error.to_string())
    }

    /// Ends the connection in order.
    pub fn leave(mut self) {
        self.out.clear();
        self.client.disconnect(&mut self.out);
        let _left = self.stream.write(&self.out);
    }
}
