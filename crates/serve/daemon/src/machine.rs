//! Times of a machine, for rehearsals: what its processor takes for requests, and what a device
//! takes for commands.
//!
//! For: [`crate::rehearsal`]. They are measured here (`cachewrightd calibrate FOLDER`) and written
//! as a file of two tables, `[processor]` and `[device]`. The device is a file below the folder,
//! read and written by the server's own input and output. The processor is timed while a server
//! serves a small cache from such files to a client in this process: nothing else has all that a
//! request costs. Both files are removed. Must never know: how a rehearsal goes. Units: bytes,
//! nanoseconds.

use crate::error::LiveError;
use crate::load::LoadConnection;
use crate::offline::{Overwrite, format};
use crate::plan::LivePlan;
use crate::server::{Server, ServerCommand};
use cachewright_device::served::{MEASURED_SHARES, MeasuredSettings, check_measured};
use cachewright_live::front::{ExportMeter, RequestKind};
use cachewright_live::io::lookout::LOOK_NS;
use cachewright_live::io::open::{FileAccess, open_file};
use cachewright_live::io::system::{EngineChoice, SystemIo};
use cachewright_live::io::{Buffer, FileId, Io, IoOp, Token};
use cachewright_nbd::{NbdCommand, Range};
use cachewright_result::status::LiveStatus;
use cachewright_stack::{ListenAddress, document};
use cachewright_types::declare::Declared;
use cachewright_types::{Nanos, Op, Rng, Seed, SettingError, Value, declare};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

declare! {
    /// What one processor takes while a server serves.
    ///
    /// The defaults are those of the machine in `benches/live.md`, run of 2026-11-29: a read hit at
    /// depth 32 took 9.4 us of processor time, a cold write 7.5 us with a small share of an
    /// operation, and a write with a flush, of 32 clients, 20.1 us for both. That leaves 7.0 us for
    /// a request without operations, which is halved between its arrival and its answer.
    pub struct Processor {
        "processor" {
            /// from the arrival of a request until it is decided
            request: Nanos = Nanos(3_500), "time", 0 ..= 1_000_000_000; "measured at depth 32";
            /// to begin an operation on a device and to take what it brought
            operation: Nanos = Nanos(2_400), "time", 0 ..= 1_000_000_000; "measured at depth 32";
            /// to send an answer
            answer: Nanos = Nanos(3_500), "time", 0 ..= 1_000_000_000; "measured at depth 32";
            /// rate of what a read has beyond 4 KiB: it is checked, copied and sent; 0 is not given
            read_mb_per_s: f64 = 0.0, "MB/s", 0.0 ..= 10_000_000.0; "not measured";
            /// the same of writes
            write_mb_per_s: f64 = 0.0, "MB/s", 0.0 ..= 10_000_000.0; "not measured";
            /// times from the end of an operation until a server that sleeps runs, which 0, 5, 25,
            /// 50, 75, 90, 95, 99, 99.9 and 100 of 100 do not exceed, or one time of all
            wake: Vec<Nanos> = vec![Nanos(0)], "times"; "not measured";
            /// the same from a time until the timer of a server that sleeps ends
            timer: Vec<Nanos> = vec![Nanos(0)], "times"; "not measured";
            /// what a server takes longer that has slept for 0.25, 1, 4 and 16 ms, or one time for
            /// all sleeps
            cold: Vec<Nanos> = vec![Nanos(0)], "times"; "not measured";
        }
    }
}

/// The sleeps after which a server's times are known.
const SLEEPS: [Duration; 4] = [
    Duration::from_micros(250),
    Duration::from_millis(1),
    Duration::from_millis(4),
    Duration::from_millis(16),
];

impl Processor {
    /// What the bytes of a read or a write take, in nanoseconds, beyond those of 4 KiB.
    pub(crate) fn bytes_ns(&self, op: Op, bytes: u64) -> u64 {
        let mb_per_s = match op {
            Op::Read => self.read_mb_per_s,
            Op::Write => self.write_mb_per_s,
            Op::Trim | Op::Flush => 0.0,
        };
        let more = bytes.saturating_sub(BLOCK) as f64 * 1e3 / mb_per_s;
        if mb_per_s > 0.0 { more.round() as u64 } else { 0 }
    }

    /// What a server takes longer that has slept for so long, in nanoseconds: in proportion between
    /// the sleeps that are known, and as after the longest beyond that.
    pub(crate) fn cold_ns(&self, slept_ns: u64) -> u64 {
        if let [one] = self.cold[..] {
            return one.0;
        }
        let (mut before, slept) = ((0.0, 0.0), slept_ns as f64);
        for (sleep, cold) in SLEEPS.into_iter().zip(&self.cold) {
            let known = (sleep.as_nanos() as f64, cold.0 as f64);
            if slept < known.0 {
                let part = (slept - before.0) / (known.0 - before.0);
                return (before.1 + part * (known.1 - before.1)).round() as u64;
            }
            before = known;
        }
        before.1 as u64
    }

    /// Errors: lists of another length or order.
    fn checked(self) -> Result<Processor, SettingError> {
        check_measured("wake", &self.wake)?;
        check_measured("timer", &self.timer)?;
        let (found, sleeps) = (self.cold.len(), SLEEPS.len());
        if found == 1 || found == sleeps {
            return Ok(self);
        }
        Err(SettingError {
            key: "cold".to_owned(),
            found: format!("{found} times"),
            expected: format!("one, or one for each of {sleeps} sleeps"),
        })
    }

    /// The value of an option: a file of [`MachineTimes`], or parts such as
    /// `request=3us,wake=20us`; what is not named keeps its default. Errors: no such file, a part
    /// that is refused.
    pub(crate) fn read(option: &str, text: &str) -> Result<Processor, LiveError> {
        let refused = |error: SettingError| LiveError::Refused(format!("{option}: {error}"));
        if is_file(text) {
            let (path, pairs) = (Path::new(text), table_of(Path::new(text), "processor")?);
            return Processor::from_pairs(&pairs)
                .and_then(Processor::checked)
                .map_err(|error| LiveError::Refused(format!("{}: {error}", path.display())));
        }
        let mut processor = Processor::default();
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                return Err(LiveError::Refused(format!(
                    "{option}: found `{part}`, expected `KEY=TIME`, or a file such as \
                     `machine.toml`"
                )));
            };
            let (key, value) = (key.trim(), value.trim());
            // One time for all needs no brackets here.
            let one = Value::List(vec![Value::Text(value.to_owned())]);
            let set = processor.set_text(key, value);
            set.or_else(|error| processor.set(key, &one).map_err(|_| error)).map_err(refused)?;
        }
        processor.checked().map_err(refused)
    }
}

/// Whether the value of an option names a file.
pub(crate) fn is_file(text: &str) -> bool {
    text.ends_with(".toml")
}

/// The model of a file's device and its parameters. Errors: no such file, or no device in it.
pub(crate) fn device_of(path: &Path) -> Result<(String, Vec<(String, Value)>), LiveError> {
    let mut pairs = table_of(path, "device")?;
    let at = pairs.iter().position(|(key, _)| key == "model");
    match at.map(|at| pairs.remove(at).1) {
        Some(Value::Text(model)) => Ok((model, pairs)),
        _ => Err(LiveError::Refused(format!(
            "{}: found no `device.model`, expected the name of a model",
            path.display()
        ))),
    }
}

/// A table of a file. Errors: it cannot be read, is no TOML, or has no such table.
fn table_of(path: &Path, name: &str) -> Result<Vec<(String, Value)>, LiveError> {
    let refused = |why: String| LiveError::Refused(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let tables = document::parse(&text).map_err(refused)?;
    match tables.get(name) {
        Some(Value::Table(pairs)) => Ok(pairs.clone()),
        _ => Err(refused(format!(
            "found no table `[{name}]`, expected a file of `cachewrightd calibrate`"
        ))),
    }
}

/// What was measured of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineTimes {
    /// Its processor, under a server.
    pub processor: Processor,
    /// The device below a folder.
    pub device: MeasuredSettings,
}

/// Bytes of each file that is made, of the cache that is served, and of its parts that requests go
/// to.
const FILE_BYTES: u64 = 256 << 20;
const CAPACITY: &str = "64MiB";
const HIT_BYTES: u64 = 32 << 20;
const WRITTEN: std::ops::Range<u64> = 32 << 20..48 << 20;
const BLOCK: u64 = 4096;
/// Commands whose rate tells how long a byte takes.
const LARGE: u64 = 256 << 10;
/// Requests whose processor time tells the same.
const LARGE_REQUEST: u64 = 64 << 10;
/// Commands at one time whose rate tells how many a device serves at once.
const DEPTH: usize = 16;
/// Requests under way where processor time is measured: the server never sleeps.
const SERVED_DEPTH: usize = 32;
/// How long each part is measured, so that chances even out.
const MEASURED_FOR: Duration = Duration::from_secs(2);
/// Operations on devices of a write at that depth: writes share groups of the log.
const OPERATIONS_OF_WRITE: f64 = 1.0 / 16.0;
/// Parts of each list of times, one behind the other. What is said of the list is the median of
/// what its parts say: a machine that others share stops for some milliseconds now and then, and
/// one such stop is in one part.
const TURNS: usize = 5;
/// Ends of sleeps that are timed at most, and how long each sleep is where that does not matter.
const MOST_SLEEPS: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(2);

/// How long each part of a machine is measured at most; it can be interrupted.
#[derive(Clone)]
pub struct MeasuredSpan {
    length: Duration,
    interrupted: Arc<AtomicBool>,
}

impl MeasuredSpan {
    /// As long as chances need to even out, unless `interrupted` is set.
    pub fn usual(interrupted: Arc<AtomicBool>) -> MeasuredSpan {
        MeasuredSpan { length: MEASURED_FOR, interrupted }
    }

    /// The same, so long.
    pub fn lasting(self, length: Duration) -> MeasuredSpan {
        MeasuredSpan { length, ..self }
    }

    /// Whether a part that began then has been measured for long enough, or is no longer wanted.
    fn is_over(&self, begun: Instant) -> bool {
        begun.elapsed() >= self.length || self.interrupted.load(Ordering::Relaxed)
    }

    /// Errors: what was measured is cut short.
    fn check(&self) -> Result<(), LiveError> {
        match self.interrupted.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(LiveError::Failed("interrupted; nothing of it is left".to_owned())),
        }
    }

    /// How many sleeps are timed.
    fn sleeps(&self) -> u32 {
        (self.length.as_nanos() / PAUSE.as_nanos()).clamp(10, MOST_SLEEPS.into()) as u32
    }
}

impl MachineTimes {
    /// Measures the device below `folder`, and this machine's processor, each part for so long at
    /// most; `say` gets a line for some parts. It takes some twelve times as long, and half a GiB.
    /// Errors: files cannot be made or used there, or the system does not tell how long a thread
    /// has run; it was interrupted.
    pub fn measure(
        folder: &Path,
        span: &MeasuredSpan,
        say: &mut dyn FnMut(&str),
    ) -> Result<MachineTimes, LiveError> {
        let failed =
            |error: std::io::Error| LiveError::Failed(format!("{}: {error}", folder.display()));
        let scratch = tempfile::Builder::new().prefix("cachewright-calibrate-").tempdir_in(folder);
        let scratch = scratch.map_err(failed)?;
        say("writing two files of 256 MiB");
        for name in ["cache.img", "data.img"] {
            write_file(&scratch.path().join(name), span).map_err(failed)?;
            span.check()?;
        }
        say("timing reads, writes and flushes");
        let device = measured_device(&scratch.path().join("data.img"), span)?;
        span.check()?;
        say("timing how a thread wakes up");
        let (wakes, timers) = (wakes(span)?, timers(span)?);
        span.check()?;
        say("serving a small cache");
        let server = CalibratedServer::start(scratch.path(), span)?;
        let processor = server.processor(&device, &wakes, &timers);
        server.stop()?;
        span.check()?;
        Ok(MachineTimes { processor: processor?, device })
    }

    /// As a file.
    pub fn text(&self) -> String {
        let mut text = String::from(
            "# Times of a machine and of a device, measured by `cachewrightd calibrate`, for\n\
             # `cachewrightd rehearse --processor FILE --drive FILE`. Commands that take no\n\
             # longer than the times of a list, in their order: ",
        );
        let shares: Vec<String> = MEASURED_SHARES.iter().map(f64::to_string).collect();
        text.push_str(&format!("{} of 100.\n", shares.join(", ")));
        let mut add = |table: &str, values: Vec<(&'static str, Option<Value>)>| {
            text.push_str(&format!("\n[{table}]\n"));
            for (key, value) in values.into_iter().filter(|(key, _)| *key != "capacity") {
                text.extend(value.map(|value| format!("{key} = {value}\n")));
            }
        };
        add("processor", self.processor.values());
        let model = Value::Text("measured-latency".to_owned());
        add("device", [vec![("model", Some(model))], self.device.values()].concat());
        text
    }
}

/// Makes a file without holes and without zeroes, and makes it durable.
fn write_file(path: &Path, span: &MeasuredSpan) -> std::io::Result<()> {
    let mut file = std::fs::File::create_new(path)?;
    let piece = vec![0x5a; 1 << 20];
    for _ in 0..FILE_BYTES / piece.len() as u64 {
        if span.check().is_err() {
            return Ok(());
        }
        file.write_all(&piece)?;
    }
    file.sync_all()
}

/// Input and output as a server has it.
fn system_io() -> Result<SystemIo, LiveError> {
    Ok(SystemIo::new(EngineChoice::Auto)?)
}

/// Commands to one file, one by one or some at a time.
struct CommandTimes {
    io: SystemIo,
    file: FileId,
    path: PathBuf,
    rng: Rng,
    /// How long each kind is timed at most.
    span: MeasuredSpan,
}

impl CommandTimes {
    fn read(&mut self, bytes: u64) -> IoOp {
        let offset = self.rng.below(FILE_BYTES / bytes) * bytes;
        IoOp::Read { file: self.file, offset, buffer: Buffer::zeroed(bytes as usize) }
    }

    fn write(&mut self, bytes: u64) -> IoOp {
        let offset = self.rng.below(FILE_BYTES / bytes) * bytes;
        let buffer = Arc::new(Buffer::zeroed(bytes as usize));
        IoOp::Write { file: self.file, offset, buffer }
    }

    /// The time of an operation. Errors: the device's.
    fn time(&mut self, op: IoOp) -> Result<u64, LiveError> {
        let begun_ns = self.io.now_ns();
        self.io.submit(Token(0), op);
        self.take()?;
        Ok(self.io.now_ns() - begun_ns)
    }

    /// Waits for operations; returns how many have ended. Errors: the device's.
    fn take(&mut self) -> Result<usize, LiveError> {
        let mut done = Vec::new();
        self.io.wait(&mut done);
        match done.iter().find_map(|done| done.error) {
            Some(error) => Err(LiveError::Failed(format!("{}: {error}", self.path.display()))),
            None => Ok(done.len()),
        }
    }

    /// Times of at most `count` operations. Errors: the device's.
    fn times(
        &mut self,
        count: usize,
        op: impl Fn(&mut CommandTimes) -> Result<u64, LiveError>,
    ) -> Result<Times, LiveError> {
        // The first ones find nothing in place.
        for _ in 0..count / 20 {
            op(self)?;
        }
        let (begun, mut times) = (Instant::now(), Vec::new());
        while times.len() < count && (!self.span.is_over(begun) || times.is_empty()) {
            times.push(op(self)?);
        }
        Ok(Times::of(times))
    }
}

/// Times of one kind, in turns.
struct Times {
    /// At least one, each sorted.
    turns: Vec<Vec<u64>>,
}

impl Times {
    /// In the order in which they were found; there are some.
    fn of(times: Vec<u64>) -> Times {
        let turns = times.chunks(times.len().div_ceil(TURNS).max(1)).map(|turn| {
            let mut turn = turn.to_vec();
            turn.sort_unstable();
            turn
        });
        Times { turns: turns.collect() }
    }

    /// The time that a share of 100 of them does not exceed.
    fn quantile_ns(&self, share: f64) -> f64 {
        median(self.turns.iter().map(|turn| {
            let place = (share / 100.0 * (turn.len() - 1) as f64).round();
            turn[place as usize] as f64
        }))
    }

    fn mean_ns(&self) -> f64 {
        median(self.turns.iter().map(|turn| turn.iter().sum::<u64>() as f64 / turn.len() as f64))
    }

    /// The times that the [shares](MEASURED_SHARES) of commands do not exceed.
    fn quantiles(&self) -> Vec<Nanos> {
        MEASURED_SHARES.iter().map(|share| rounded(self.quantile_ns(*share))).collect()
    }
}

/// The middle one; of two, the lower one. 0 of none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

fn measured_device(path: &Path, span: &MeasuredSpan) -> Result<MeasuredSettings, LiveError> {
    let mut io = system_io()?;
    let file = io.add_file(open_file(path, FileAccess::Write)?);
    let rng = Seed(1).derive("calibrate").rng();
    let mut commands = CommandTimes { io, file, path: path.to_owned(), rng, span: span.clone() };
    let read = |bytes| {
        move |own: &mut CommandTimes| {
            let op = own.read(bytes);
            own.time(op)
        }
    };
    let write = |bytes| {
        move |own: &mut CommandTimes| {
            let op = own.write(bytes);
            own.time(op)
        }
    };
    let reads = commands.times(4000, read(BLOCK))?;
    let writes = commands.times(4000, write(BLOCK))?;
    let flushes = commands.times(1000, |own| {
        let op = own.write(BLOCK);
        own.time(op)?;
        own.time(IoOp::Sync { file })
    })?;
    let large_reads = commands.times(400, read(LARGE))?;
    let large_writes = commands.times(400, write(LARGE))?;
    let (begun, mut ended, mut under_way) = (Instant::now(), 0, 0);
    while !span.is_over(begun) || ended == 0 {
        while under_way < DEPTH {
            let op = match (ended + under_way) % 2 {
                0 => commands.read(BLOCK),
                _ => commands.write(BLOCK),
            };
            commands.io.submit(Token(0), op);
            under_way += 1;
        }
        let done = commands.take()?;
        (ended, under_way) = (ended + done, under_way - done);
    }
    let command_ns = begun.elapsed().as_nanos() as f64 / ended as f64;
    while under_way > 0 {
        under_way -= commands.take()?;
    }
    let at_once = (reads.mean_ns() + writes.mean_ns()) / 2.0 / command_ns;
    Ok(MeasuredSettings {
        read: reads.quantiles(),
        write: writes.quantiles(),
        flush: flushes.quantiles(),
        read_mb_per_s: rate(&reads, &large_reads),
        write_mb_per_s: rate(&writes, &large_writes),
        parallelism: (at_once.round() as u32).clamp(1, DEPTH as u32),
        ..MeasuredSettings::default()
    })
}

/// MB per second of what large commands have more than small ones, by medians; 0 where they take no
/// longer.
fn rate(small: &Times, large: &Times) -> f64 {
    bytes_rate(LARGE - BLOCK, large.quantile_ns(50.0) - small.quantile_ns(50.0))
}

/// MB per second; 0 where bytes take no time.
fn bytes_rate(bytes: u64, ns: f64) -> f64 {
    if ns > 0.0 { (bytes as f64 / ns * 1e4).round() / 10.0 } else { 0.0 }
}

/// A time in hundredths of a microsecond: the rest is noise.
fn rounded(ns: f64) -> Nanos {
    Nanos((ns / 10.0).round() as u64 * 10)
}

/// How late timers end, where nothing else happens. Errors: no input and output.
fn timers(span: &MeasuredSpan) -> Result<Times, LiveError> {
    let (mut io, mut done) = (system_io()?, Vec::new());
    let mut late = Vec::new();
    for _ in 0..span.sleeps() {
        let at_ns = io.now_ns() + PAUSE.as_nanos() as u64;
        io.submit(Token(0), IoOp::Timer { at_ns });
        io.wait(&mut done);
        late.push(io.now_ns() - at_ns);
        done.clear();
    }
    Ok(Times::of(late))
}

/// How long after an event a thread runs that sleeps. Errors: no input and output, no pipe.
fn wakes(span: &MeasuredSpan) -> Result<Times, LiveError> {
    let failed = |error: std::io::Error| LiveError::Failed(format!("a pipe: {error}"));
    let (mut reader, mut writer) = std::io::pipe().map_err(failed)?;
    let source = Arc::new(reader.try_clone().map_err(failed)?.into());
    let (sender, sent) = channel();
    let sleeps = span.sleeps();
    let writing = thread::spawn(move || {
        for _ in 0..sleeps {
            thread::sleep(PAUSE);
            let _gone = sender.send(Instant::now());
            writer.write_all(&[1])?;
        }
        Ok(())
    });
    let (mut io, mut done, mut late) = (system_io()?, Vec::new(), Vec::new());
    while late.len() < sleeps as usize {
        io.submit(Token(0), IoOp::Await { source: Arc::clone(&source) });
        io.wait(&mut done);
        done.clear();
        let now = Instant::now();
        reader.read_exact(&mut [0]).map_err(failed)?;
        late.extend(sent.try_recv().map(|sent| now.duration_since(sent).as_nanos() as u64));
    }
    match writing.join() {
        Ok(written) => written.map(|()| Times::of(late)).map_err(failed),
        Err(_) => Err(LiveError::Failed("a defect ended a thread; please report it".to_owned())),
    }
}

/// What the thread of a server tells when it serves.
struct ServingThread {
    monitor: Option<SocketAddr>,
    /// Where the system tells how long it has run.
    run_time: PathBuf,
}

/// A server of a small cache, on a thread of its own, and a client.
struct CalibratedServer {
    thread: JoinHandle<Result<(), LiveError>>,
    stop: Arc<AtomicBool>,
    serving: ServingThread,
    address: ListenAddress,
    /// How long each kind of request is sent at most.
    span: MeasuredSpan,
    /// The folder of its socket: paths of sockets are short.
    _socket: tempfile::TempDir,
}

impl CalibratedServer {
    /// Starts it on the files of a folder. Errors: as of a start.
    fn start(folder: &Path, span: &MeasuredSpan) -> Result<CalibratedServer, LiveError> {
        let socket = tempfile::tempdir();
        let socket = socket.map_err(|error| LiveError::Failed(format!("a socket: {error}")))?;
        let path = socket.path().join("s.sock");
        let text = format!(
            "[cache]\ncapacity = \"{CAPACITY}\"\npolicy = \"lru\"\nwrite = \"write-back\"\n\
             [serve]\ndevices = [\"cache.img\"]\nlisten = [\"unix:{}\"]\n\
             monitor = \"127.0.0.1:0\"\n[[tenant]]\nname = \"data\"\nbacking = \"data.img\"\n",
            path.display()
        );
        let origin = folder.join("calibrate.toml");
        let plan = LivePlan::read(&text, &origin, &[])?;
        format(&plan, Overwrite { dirty: true, foreign: true })?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let (sender, begun) = channel();
        let thread = thread::spawn(move || {
            let plan = LivePlan::read(&text, &origin, &[])?;
            let server = Server::start(&plan, None)?;
            let own = std::fs::read_link("/proc/thread-self").unwrap_or_default();
            let run_time = Path::new("/proc").join(own).join("schedstat");
            let monitor = server.monitor_address();
            let _gone = sender.send(ServingThread { monitor, run_time });
            let mut wish = || match stopping.load(Ordering::Relaxed) {
                true => ServerCommand::Stop,
                false => ServerCommand::GoOn,
            };
            server.run(&mut wish, &mut |_| {}).map(drop)
        });
        match begun.recv() {
            Ok(serving) => Ok(CalibratedServer {
                thread,
                stop,
                serving,
                address: ListenAddress::Unix(path),
                span: span.clone(),
                _socket: socket,
            }),
            Err(_) => Err(ended(thread)),
        }
    }

    /// Ends it. Errors: its own.
    fn stop(self) -> Result<(), LiveError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err(defect()))
    }

    /// What the processor takes, on a device of these times. Errors: the server's answers.
    fn processor(
        &self,
        device: &MeasuredSettings,
        wakes: &Times,
        timers: &Times,
    ) -> Result<Processor, LiveError> {
        let mut client = LoadConnection::open(&self.address, "data").map_err(unserved)?;
        let mut rng = Seed(2).derive("calibrate").rng();
        for block in 0..HIT_BYTES / BLOCK {
            one(&mut client, read(block * BLOCK, BLOCK)).map_err(unserved)?;
        }
        let mut hits = |length: u64| {
            let offset = rng.below(HIT_BYTES / length) * length;
            read(offset, length)
        };
        let hit_ns = self.processor_ns(&mut client, || hits(BLOCK))?;
        let large_hit_ns = self.processor_ns(&mut client, || hits(LARGE_REQUEST))?;
        let mut responses = Vec::new();
        for sleep in SLEEPS {
            responses.push(self.response_ns(&mut client, sleep, || hits(BLOCK))?);
        }
        let mut writes = |length: u64| {
            let offset = WRITTEN.start + rng.below((WRITTEN.end - WRITTEN.start) / length) * length;
            NbdCommand::Write(Range { offset, length })
        };
        let write_ns = self.processor_ns(&mut client, || writes(BLOCK))?;
        let large_write_ns = self.processor_ns(&mut client, || writes(LARGE_REQUEST))?;
        client.leave();
        let operation = ((hit_ns - write_ns) / (1.0 - OPERATIONS_OF_WRITE)).clamp(0.0, hit_ns);
        let both = hit_ns - operation;
        // A read that takes longer than a server looks for is slept for, too.
        let woken_ns = wakes.mean_ns() * device.read_share_above(Nanos(LOOK_NS));
        let known_ns = both + operation + device.mean_read_ns() + woken_ns;
        let mut cold_ns = 0.0_f64;
        let cold = responses.into_iter().map(|response_ns| {
            // What is longer after a shorter sleep is noise.
            cold_ns = cold_ns.max(response_ns - known_ns);
            rounded(cold_ns)
        });
        let cold = cold.collect();
        Ok(Processor {
            request: rounded(both / 2.0),
            operation: rounded(operation),
            answer: rounded(both / 2.0),
            wake: wakes.quantiles(),
            timer: timers.quantiles(),
            read_mb_per_s: bytes_rate(LARGE_REQUEST - BLOCK, large_hit_ns - hit_ns),
            write_mb_per_s: bytes_rate(LARGE_REQUEST - BLOCK, large_write_ns - write_ns),
            cold,
        })
    }

    /// How long the server's thread has run. Errors: the system does not tell.
    fn run_ns(&self) -> Result<u64, LiveError> {
        let path = &self.serving.run_time;
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let found = text.split_whitespace().next().and_then(|word| word.parse().ok());
        found.ok_or_else(|| {
            LiveError::Failed(format!(
                "{}: found no time that the thread has run, expected a system that counts it",
                path.display()
            ))
        })
    }

    /// Processor time of the server for a request, where it never sleeps. Errors: its answers.
    fn processor_ns(
        &self,
        client: &mut LoadConnection,
        mut next: impl FnMut() -> NbdCommand,
    ) -> Result<f64, LiveError> {
        let mut send_for = |span: &MeasuredSpan| {
            let (begun, mut sent, mut meter) = (Instant::now(), 0_u64, ExportMeter::default());
            while !span.is_over(begun) {
                while client.under_way() < SERVED_DEPTH {
                    send(client, next())?;
                    sent += 1;
                }
                client.take(None, &mut meter)?;
            }
            while client.under_way() > 0 {
                client.take(None, &mut meter)?;
            }
            Ok(sent)
        };
        send_for(&self.span.clone().lasting(self.span.length / 4)).map_err(unserved)?;
        let before = self.run_ns()?;
        let sent = send_for(&self.span).map_err(unserved)?;
        Ok((self.run_ns()? - before) as f64 / sent.max(1) as f64)
    }

    /// The mean response to one request after another, as the server counts it, before each of
    /// which it sleeps for about so long: as long in the mean, as pauses between clients' requests
    /// are. Errors: its answers.
    fn response_ns(
        &self,
        client: &mut LoadConnection,
        sleep: Duration,
        mut next: impl FnMut() -> NbdCommand,
    ) -> Result<f64, LiveError> {
        let mut rng = Seed(3).derive("calibrate").rng();
        let turn = self.span.clone().lasting(self.span.length / TURNS as u32);
        let mut means = Vec::new();
        for _ in 0..TURNS {
            let (begun, mut times) = (Instant::now(), 0);
            let (count, seconds) = self.reads()?;
            while times < MOST_SLEEPS && (!turn.is_over(begun) || times == 0) {
                thread::sleep(sleep.mul_f64(0.5 + rng.unit()));
                one(client, next()).map_err(unserved)?;
                times += 1;
            }
            let (count_after, seconds_after) = self.reads()?;
            means.push((seconds_after - seconds) * 1e9 / (count_after - count).max(1) as f64);
        }
        Ok(median(means.into_iter()))
    }

    /// Reads that were answered, and the sum of their times. Errors: the monitor does not answer.
    fn reads(&self) -> Result<(u64, f64), LiveError> {
        let found = self.status().map_err(|error| LiveError::Failed(format!("a monitor: {error}")));
        let status = found?;
        let word = RequestKind::Read.word();
        let requests = status.tenants.iter().flat_map(|tenant| &tenant.requests);
        let mut reads = requests.filter(|requests| requests.kind == word);
        Ok(reads.next().map_or((0, 0.0), |reads| (reads.count, reads.seconds)))
    }

    fn status(&self) -> std::io::Result<LiveStatus> {
        let address = self.serving.monitor.ok_or(std::io::ErrorKind::NotConnected)?;
        let mut stream = TcpStream::connect(address)?;
        let request =
            format!("GET /status HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::InvalidData)?;
        Ok(serde_json::from_str(body)?)
    }
}

fn read(offset: u64, length: u64) -> NbdCommand {
    NbdCommand::Read { range: Range { offset, length }, whole: false }
}

/// What a client says of a server that does not answer.
fn unserved(error: String) -> LiveError {
    LiveError::Failed(format!("a served cache: {error}"))
}

fn send(client: &mut LoadConnection, command: NbdCommand) -> Result<(), String> {
    let offset = match command {
        NbdCommand::Read { range, .. } | NbdCommand::Write(range) => range.offset,
        _ => 0,
    };
    client.send(command, offset)
}

/// Sends a request and waits for its answer.
fn one(client: &mut LoadConnection, command: NbdCommand) -> Result<(), String> {
    send(client, command)?;
    while client.under_way() > 0 {
        client.take(None, &mut ExportMeter::default())?;
    }
    Ok(())
}

fn defect() -> LiveError {
    LiveError::Failed("a defect ended the server; please report it".to_owned())
}

/// Why a server has ended before it served.
fn ended(thread: JoinHandle<Result<(), LiveError>>) -> LiveError {
    match thread.join() {
        Ok(Err(error)) => error,
        _ => defect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: a sleep of 0.5 ms is a third of the way from 0.25 to 1 ms, and one of 0.1 ms two
    /// fifths of the way to 0.25 ms.
    #[test]
    fn what_is_cold_grows_in_proportion_between_the_sleeps_that_are_known() {
        let cold = [10, 40, 80, 200].map(|us| Nanos(us * 1000)).to_vec();
        let processor = Processor { cold, ..Processor::default() };
        let found = [0, 100, 250, 500, 4_000, 100_000].map(|us| processor.cold_ns(us * 1000));
        assert_eq!(found, [0, 4_000, 10_000, 20_000, 80_000, 200_000]);
        let one = Processor::read("--processor", "request=1us,cold=7us,wake=3us").unwrap();
        assert_eq!([0, 9_000_000].map(|ns| one.cold_ns(ns)), [7_000, 7_000]);
        assert_eq!((one.request, one.wake), (Nanos(1_000), vec![Nanos(3_000)]));
        let refused = Processor::read("--processor", "cold=[\"7us\"").unwrap_err().to_string();
        assert!(refused.starts_with("--processor: `cold`: found"), "{refused}");
    }

    /// By hand: at 1,000 MB/s the 61,440 bytes that 64 KiB have beyond 4 KiB take 61.44 us.
    #[test]
    fn bytes_beyond_a_block_take_their_time() {
        let processor = Processor { write_mb_per_s: 1000.0, ..Processor::default() };
        let found = [Op::Write, Op::Read].map(|op| processor.bytes_ns(op, 65_536));
        assert_eq!((found, processor.bytes_ns(Op::Write, 512)), ([61_440, 0], 0));
        assert_eq!(bytes_rate(61_440, 61_440.0), 1000.0);
        assert_eq!(bytes_rate(61_440, -3.0), 0.0);
    }

    /// By hand: five turns of 0 to 100 us each, in steps of 0.1 us. In one of them the machine
    /// stops for 30 ms, which no list tells; in three of five turns, it does.
    #[test]
    fn what_happens_in_one_turn_only_is_not_told() {
        let turn: Vec<u64> = (0..=1000).map(|number| number * 100).collect();
        let expected = [0, 5_000, 25_000, 50_000, 75_000, 90_000, 95_000, 99_000, 99_900, 100_000];
        let with_stops = |stops: usize| {
            let mut times = turn.repeat(TURNS);
            (0..stops).for_each(|stopped| times[stopped * 1001] = 30_000_000);
            Times::of(times)
        };
        for times in [with_stops(0), with_stops(1)] {
            assert_eq!(times.quantiles(), expected.map(Nanos));
            assert_eq!(times.mean_ns(), 50_000.0);
        }
        assert_eq!(with_stops(3).quantiles()[9], Nanos(30_000_000));
        assert_eq!(Times::of(vec![77_777]).quantiles(), [Nanos(77_780); 10]);
    }
}
