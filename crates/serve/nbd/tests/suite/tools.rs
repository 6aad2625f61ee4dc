//! Other people's clients against our server over a socket, where they are installed.
//!
//! For: interoperability with libnbd's `nbdinfo` and `nbdcopy`. Without them the test says so and
//! passes.

use crate::memory::{Memory, export};
use cachewright_nbd::Settings;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

const SIZE: usize = 1 << 20;

/// Serves connections one after the other until `count` have ended; all share the bytes.
fn serve(listener: UnixListener, count: usize, disk: Arc<Mutex<Vec<u8>>>) {
    for _ in 0..count {
        let (stream, _) = listener.accept().unwrap();
        connection(stream, &disk);
    }
}

fn connection(mut stream: UnixStream, disk: &Mutex<Vec<u8>>) {
    let mut one = export("one", SIZE as u64);
    one.multi_conn = false;
    let (mut memory, greeting) = Memory::new(Settings::default(), vec![one]);
    memory.disk = disk.lock().unwrap().clone();
    if stream.write_all(&greeting).is_err() {
        return; // The tool is not installed.
    }
    let mut buffer = vec![0; 1 << 16];
    while memory.ended.is_none() {
        let count = stream.read(&mut buffer).unwrap_or(0);
        if count == 0 {
            break;
        }
        let mut out = Vec::new();
        memory.receive(&buffer[..count], &mut out);
        if stream.write_all(&out).is_err() {
            break;
        }
    }
    *disk.lock().unwrap() = memory.disk;
}

/// Output of a tool that is given the server's address; `None` where it is not installed.
fn tool(name: &str, arguments: impl Fn(&str) -> Vec<String>) -> Option<(bool, String)> {
    let folder = tempfile(name);
    let socket = folder.join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let disk: Vec<u8> = (0..SIZE).map(|at| if at < SIZE / 2 { at as u8 | 1 } else { 0 }).collect();
    let address = format!("nbd+unix:///one?socket={}", socket.display());
    let server = std::thread::spawn(move || serve(listener, 1, Arc::new(Mutex::new(disk))));
    let output = Command::new(name).args(arguments(&address)).output();
    let Ok(output) = output else {
        eprintln!("skipped: {name} is not installed");
        drop(UnixStream::connect(&socket));
        server.join().unwrap();
        return None;
    };
    server.join().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Some((output.status.success(), text + &errors))
}

/// An empty folder of this test below the target's.
fn tempfile(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nbd-{name}"));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn nbdinfo_reads_what_is_offered() {
    let Some((done, text)) = tool("nbdinfo", |address| vec![address.to_owned()]) else { return };
    assert!(done, "{text}");
    for line in [
        "protocol: newstyle-fixed without TLS, using structured packets",
        "export-size: 1048576 (1M)",
        "\tbase:allocation",
        "is_read_only: false",
        "can_fua: true",
        "can_fast_zero: true",
        "block_size_preferred: 4096",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn nbdcopy_copies_what_is_there() {
    let target = tempfile("copy").join("copied");
    let to = target.display().to_string();
    let arguments = |address: &str| vec![address.to_owned(), to.clone()];
    let Some((done, text)) = tool("nbdcopy", arguments) else { return };
    assert!(done, "{text}");
    let found = std::fs::read(&target).unwrap();
    let same = |(at, byte): (usize, &u8)| *byte == if at < SIZE / 2 { at as u8 | 1 } else { 0 };
    assert!(found.len() == SIZE && found.iter().enumerate().all(same));
}
