//! Recordings in a file of their own whose servers are killed.

use crate::setup::{BLOCK, Guest, STACK, Setup, formatted, pattern};
use cachewright_trace::{
    Batch, Divisions, OpenOptions, Record, divisions_path, open, recover_abandoned, state_path,
};
use cachewright_types::Op;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A server as a process of its own, and its lines.
struct Daemon {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Daemon {
    fn start(setup: &Setup, record: &Path) -> Daemon {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cachewrightd"));
        command.arg(setup.path("stack.toml")).arg("--record").arg(record);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut daemon = Daemon { process, lines };
        daemon.line("recording what is decided in ");
        daemon
    }

    /// The next line that begins so.
    fn line(&mut self, wanted: &str) -> String {
        let mut line = String::new();
        while !line.starts_with(wanted) {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it has ended");
        }
        line
    }

    fn end(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        self.process.wait().unwrap();
    }
}

/// What killed servers of a recording would leave now: its hidden files.
fn hidden(record: &Path) -> Vec<PathBuf> {
    let prefix = format!(".{}.", record.file_name().unwrap().to_str().unwrap());
    let entries = std::fs::read_dir(record.parent().unwrap()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&prefix)).collect()
}

/// Requests that a kill would leave now.
fn kept(record: &Path) -> u64 {
    let other = tempfile::tempdir().unwrap();
    for path in hidden(record) {
        std::fs::copy(&path, other.path().join(path.file_name().unwrap())).unwrap();
    }
    let found = recover_abandoned(&other.path().join(record.file_name().unwrap())).unwrap();
    found.requests.unwrap_or(0)
}

fn requests(path: &Path) -> Vec<Record> {
    let mut reader = open(path, &OpenOptions::default()).unwrap();
    let mut batch = Batch::default();
    while reader.read(&mut batch, 1000).unwrap() > 0 {}
    batch.iter().collect()
}

/// A stack that keeps what it records often, and divides while it serves.
fn setup() -> Setup {
    let stack = STACK.replace("\"static\"", "\"hull\"\n[replay]\ninterval = \"5ms\"");
    let stack = stack.replace("[serve]", "[serve]\nrecord_keep = \"10ms\"");
    let setup = formatted(&[]).with_stack(&stack);
    std::fs::write(setup.path("stack.toml"), stack).unwrap();
    setup
}

fn write(setup: &Setup, blocks: std::ops::Range<u64>) {
    let mut guest = Guest::connect(&setup.path("live.sock"), "a");
    blocks.for_each(|block| guest.write(block * BLOCK, &pattern(block as u8, BLOCK)));
}

#[test]
fn a_killed_server_leaves_what_it_kept_and_the_next_takes_the_same_file_again() {
    let setup = setup();
    let record = setup.path("served.parquet");
    let daemon = Daemon::start(&setup, &record);
    write(&setup, 0..300);
    // A recording begins with a flush.
    while kept(&record) < 301 {}
    write(&setup, 300..303);
    daemon.end(Signal::KILL);
    assert!(!record.exists());
    let beside = hidden(&divisions_path(&record));
    let left = std::fs::read(&beside[0]).unwrap();
    let state = std::fs::read(state_path(&record)).unwrap();
    let mut daemon = Daemon::start(&setup, &record);
    let line = daemon.line("recording: ");
    let first = setup.path("served-1.parquet");
    assert!(std::fs::read(state_path(&first)).unwrap() == state, "it goes with its recording");
    assert!(std::fs::read(state_path(&record)).unwrap() != state, "the cache is not empty now");
    assert!(line.contains(" requests of a server that was killed are in "), "{line}");
    assert!(line.trim_end().ends_with(first.to_str().unwrap()), "{line}");
    let found = requests(&first);
    assert!((301..=304).contains(&found.len()), "{}", found.len());
    assert!(line.starts_with(&format!("recording: {} ", found.len())), "{line}");
    assert!(found.windows(2).all(|pair| pair[0].time_ns < pair[1].time_ns));
    for (number, record) in found[1..].iter().enumerate() {
        assert_eq!((record.op, record.offset_bytes), (Op::Write, number as u64 * BLOCK));
    }
    let divisions = Divisions::read(&divisions_path(&first)).unwrap();
    assert_eq!(divisions.head.partition, "hull");
    assert_eq!(Some(&divisions), Divisions::parse_cut(&left).as_ref());
    write(&setup, 0..5);
    daemon.end(Signal::TERM);
    // A flush at the end as well.
    assert_eq!(requests(&record).len(), 7);
    assert!(Divisions::read(&divisions_path(&record)).is_ok());
}

#[test]
fn a_server_that_is_killed_before_it_kept_anything_leaves_nothing() {
    let setup = setup();
    let stack = setup.stack.replace("\"10ms\"", "\"1h\"");
    std::fs::write(setup.path("stack.toml"), stack).unwrap();
    let record = setup.path("served.parquet");
    let daemon = Daemon::start(&setup, &record);
    write(&setup, 0..9);
    daemon.end(Signal::KILL);
    assert_eq!((hidden(&record).len(), kept(&record)), (2, 0));
    let mut daemon = Daemon::start(&setup, &record);
    daemon.line("recording: a server that was killed had kept nothing of its own");
    daemon.end(Signal::TERM);
    assert!(record.exists() && hidden(&record).is_empty());
    let first = setup.path("served-1.parquet");
    assert!(!first.exists() && !state_path(&first).exists());
}

#[test]
fn a_reload_that_divides_otherwise_sets_the_recording_aside_and_a_kill_is_as_ever() {
    let setup = setup();
    let record = setup.path("served.parquet");
    let mut daemon = Daemon::start(&setup, &record);
    write(&setup, 0..20);
    let smaller = setup.stack.replace("\"4MiB\"", "\"2MiB\"");
    std::fs::write(setup.path("stack.toml"), smaller).unwrap();
    kill_process(Pid::from_child(&daemon.process), Signal::HUP).unwrap();
    let first = setup.path("served-1.parquet");
    let line = daemon.line("recorded ");
    // A flush at the beginning, and one at the end.
    let expected = format!("recorded 22 requests in {}: the stack", first.display());
    assert!(line.starts_with(&expected), "{line}");
    daemon.line("recording what is decided in ");
    assert_eq!(requests(&first).len(), 22);
    write(&setup, 20..60);
    while kept(&record) < 41 {}
    daemon.end(Signal::KILL);
    let mut daemon = Daemon::start(&setup, &record);
    daemon.line("recording: 41 requests of a server that was killed are in ");
    daemon.end(Signal::TERM);
    let second = setup.path("served-2.parquet");
    assert_eq!(requests(&second).len(), 41);
    let capacity = |path: &Path| {
        let divisions = Divisions::read(&divisions_path(path)).unwrap();
        let (head, rows) = (divisions.head, divisions.rows);
        assert!(rows.iter().all(|row| row.quotas.iter().sum::<u32>() == head.capacity_blocks));
        assert_eq!(rows[0].time_ns, 0);
        head.capacity_blocks
    };
    assert_eq!([&first, &second, &record].map(|path| capacity(path)), [1024, 512, 512]);
}

#[test]
fn a_recording_begins_again_when_a_removed_tenant_has_gone() {
    let setup = setup();
    let record = setup.path("served.parquet");
    let mut daemon = Daemon::start(&setup, &record);
    write(&setup, 0..20);
    let one = setup.stack.split("[[tenant]]\nname = \"b\"").next().unwrap();
    std::fs::write(setup.path("stack.toml"), one).unwrap();
    kill_process(Pid::from_child(&daemon.process), Signal::HUP).unwrap();
    for (name, why) in [
        ("served-1.parquet", "the stack changes what decides"),
        ("served-2.parquet", "a tenant that was removed has gone, and a state can stand beside"),
    ] {
        let line = daemon.line("recorded ");
        assert!(line.contains(&format!("{}: {why}", setup.path(name).display())), "{line}");
    }
    daemon.line("recording what is decided in ");
    write(&setup, 20..60);
    daemon.end(Signal::TERM);
    let names = ["served-1.parquet", "served-2.parquet", "served.parquet"];
    let has_state = names.map(|name| state_path(&setup.path(name)).exists());
    assert_eq!(has_state, [true, false, true]);
    assert_eq!(requests(&record).len(), 42);
}
