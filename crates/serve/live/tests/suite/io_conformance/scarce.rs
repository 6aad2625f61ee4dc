//! Full disks and block devices: what needs more than a folder. Where the machine does not give
//! them, the tests say that they are skipped.

use super::rigs::{HostRig, Rig, run, run_one, with_threads, with_uring};
use cachewright_live::io::open::{FileAccess, open_file};
use cachewright_live::io::{Buffer, IoError, IoOp, Output};
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// Names the full file system to the process that runs inside its mount namespace.
const FOLDER: &str = "CACHEWRIGHT_TEST_SMALL_FOLDER";

/// A file of 4 MiB on a file system of 1 MiB takes some of the writes.
fn writes_until_full(rig: &mut HostRig, folder: PathBuf) {
    let path = folder.join(format!("file-{}", rig.io.name()));
    File::create(&path).unwrap().set_len(4 << 20).unwrap();
    let file = rig.open(path.clone());
    let writes = (0..64_u64).map(|number| {
        let mut buffer = Buffer::zeroed(64 << 10);
        buffer.fill(number as u8 + 1);
        IoOp::Write { file, offset: number * (64 << 10), buffer: Arc::new(buffer) }
    });
    let done = run(rig, writes.collect());
    let (mut written, mut refused) = (0, 0);
    let content = rig.content(file);
    for (number, (done, content)) in done.iter().zip(content.chunks(64 << 10)).enumerate() {
        match done.error {
            None => {
                assert!(content.iter().all(|byte| *byte == number as u8 + 1));
                written += 1;
            }
            Some(error) => {
                assert_eq!(error, IoError::NO_SPACE);
                refused += 1;
            }
        }
    }
    assert!(written > 0 && refused > 0 && written + refused == 64, "{written}, {refused}");
    let whole = IoOp::Discard { file, offset: 0, length: 4 << 20 };
    assert_eq!(run_one(rig, whole).error, None);
    let again = IoOp::Write { file, offset: 0, buffer: Arc::new(Buffer::zeroed(64 << 10)) };
    assert_eq!(run_one(rig, again).error, None, "there is space again");
    // This file system has no zeroes but those of holes.
    let mut buffer = Buffer::zeroed(64 << 10);
    buffer.fill(9);
    run_one(rig, IoOp::Write { file, offset: 0, buffer: Arc::new(buffer) });
    assert_eq!(run_one(rig, IoOp::Zero { file, offset: 4096, length: 8192 }).error, None);
    let content = rig.content(file);
    assert!(content[4096..3 * 4096].iter().all(|byte| *byte == 0));
    assert!(content[..4096].iter().chain(&content[3 * 4096..64 << 10]).all(|byte| *byte == 9));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_full_file_system_refuses_writes_with_no_space() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        with_uring(|rig| writes_until_full(rig, PathBuf::from(&folder)));
        with_threads(|rig| writes_until_full(rig, PathBuf::from(&folder)));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "io_conformance::scarce::a_full_file_system_refuses_writes_with_no_space";
    let script = "mount -t tmpfs -o size=1m small \"$1\" || exit 77; exec \"$2\" --exact \"$3\"";
    let run = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(FOLDER, folder.path())
        .output();
    let output = match run {
        Ok(output) => output,
        Err(error) => return println!("skipped: unshare: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("running 1 test") {
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    } else {
        println!("skipped: no mount namespace: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A block device that lies on a file, until it is dropped.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn new(rig: &HostRig, bytes: u64) -> Option<LoopDevice> {
        let path = rig.folder.path().join("device");
        File::create(&path).unwrap().set_len(bytes).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&path).output();
        match made {
            Ok(output) if output.status.success() => {
                let name = String::from_utf8(output.stdout).unwrap();
                Some(LoopDevice(PathBuf::from(name.trim())))
            }
            Ok(output) => {
                println!("skipped: losetup: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                println!("skipped: losetup: {error}");
                None
            }
        }
    }
}

impl LoopDevice {
    /// The same device under another name.
    fn other_node(&self, rig: &HostRig) -> Option<PathBuf> {
        let path = rig.folder.path().join("node");
        let script = "mknod \"$1\" b $(stat -c '%Hr %Lr' \"$2\") && dd if=\"$1\" count=1";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(&path).arg(&self.0);
        match command.output() {
            Ok(output) if output.status.success() => Some(path),
            Ok(output) => {
                println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                println!("skipped: {error}");
                None
            }
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let removed = Command::new("losetup").arg("--detach").arg(&self.0).status();
        assert!(removed.unwrap().success());
    }
}

fn a_block_device_does_what_a_file_does(rig: &mut HostRig) {
    let Some(device) = LoopDevice::new(rig, 1 << 20) else {
        return;
    };
    let file = rig.open(device.0.clone());
    assert_eq!(rig.io().file_bytes(file), 1 << 20);
    let again = open_file(&device.0, FileAccess::Write).unwrap_err().to_string();
    assert!(again.contains(&device.0.display().to_string()) && again.contains("in use"), "{again}");
    if let Some(other) = device.other_node(rig) {
        let again = open_file(&other, FileAccess::Write).unwrap_err().to_string();
        assert!(again.contains("in use"), "one device under two names: {again}");
    }
    let mut buffer = Buffer::zeroed(1 << 20);
    buffer.fill(5);
    let range = (256 << 10, 64 << 10);
    for (op, is_needed) in [
        (IoOp::Write { file, offset: 0, buffer: Arc::new(buffer) }, true),
        (IoOp::Sync { file }, true),
        (IoOp::Zero { file, offset: range.0, length: range.1 }, true),
        (IoOp::Discard { file, offset: 0, length: 4096 }, false),
    ] {
        let error = run_one(rig, op).error;
        assert!(error.is_none() || !is_needed && error == Some(IoError::NOT_SUPPORTED));
    }
    let beyond = IoOp::Read { file, offset: 1 << 20, buffer: Buffer::zeroed(4096) };
    assert_eq!(run_one(rig, beyond).error, Some(IoError::INVALID));
    let done = run_one(rig, IoOp::Read { file, offset: 0, buffer: Buffer::zeroed(1 << 20) });
    let Output::Buffer(buffer, count) = done.output else {
        panic!("found {:?}", done.output);
    };
    assert_eq!((count, done.error), (1 << 20, None));
    let (start, end) = (range.0 as usize, (range.0 + range.1) as usize);
    assert!(buffer[start..end].iter().all(|byte| *byte == 0));
    assert!(buffer[4096..start].iter().chain(&buffer[end..]).all(|byte| *byte == 5));
    rig.drop_io();
}

#[test]
fn uring_takes_block_devices() {
    with_uring(a_block_device_does_what_a_file_does);
}

#[test]
fn threads_take_block_devices() {
    with_threads(a_block_device_does_what_a_file_does);
}
