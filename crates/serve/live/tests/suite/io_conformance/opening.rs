//! Opening: what is in use, of another kind, or stale, in one sentence.

use cachewright_live::io::open::{FileAccess, open_file, tcp_listener, unix_listener};
use cachewright_live::io::system::{EngineChoice, SystemIo};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn file(path: &Path, bytes: u64) {
    File::create(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn a_file_is_open_once_and_free_again_when_dropped() {
    let folder = folder();
    let path = folder.path().join("device");
    file(&path, 10_000);
    let opened = open_file(&path, FileAccess::Write).unwrap();
    assert_eq!(opened.bytes(), 10_000);
    for access in [FileAccess::Write, FileAccess::Read] {
        let error = open_file(&path, access).unwrap_err();
        let said = "found it in use (locked, claimed or mounted), expected it free";
        assert_eq!(error.to_string(), format!("{}: {said}", path.display()));
    }
    let mut io = SystemIo::new(EngineChoice::Auto).unwrap();
    io.add_file(opened);
    assert!(open_file(&path, FileAccess::Write).is_err(), "it is in use by a sibling");
    drop(io);
    let readers = [FileAccess::Read; 2].map(|access| open_file(&path, access).unwrap());
    assert!(open_file(&path, FileAccess::Write).is_err(), "it is being read");
    drop(readers);
    assert!(open_file(&path, FileAccess::Write).is_ok());
}

/// A loop device over a file, which goes with the value.
struct LoopDevice(String);

impl LoopDevice {
    /// Nothing where this process may not make one.
    fn over(file: &Path) -> Option<LoopDevice> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        let name = String::from_utf8(made.stdout).ok()?.trim().to_owned();
        made.status.success().then_some(LoopDevice(name))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _gone = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_file_and_a_loop_device_over_it_are_not_open_both() {
    let folder = folder();
    let path = folder.path().join("device");
    file(&path, 1 << 20);
    let Some(device) = LoopDevice::over(&path) else {
        println!("skipped: no loop device can be made here");
        return;
    };
    let above = Path::new(&device.0);
    let opened = open_file(&path, FileAccess::Write).unwrap();
    let error = open_file(above, FileAccess::Write).unwrap_err().to_string();
    let said = format!("found its file `{}` in use (locked), expected it free", path.display());
    assert_eq!(error, format!("{}: {said}", above.display()));
    drop(opened);
    let opened = open_file(above, FileAccess::Write).unwrap();
    assert!(opened.notices().is_empty(), "{:?}", opened.notices());
    let error = open_file(&path, FileAccess::Write).unwrap_err().to_string();
    assert!(error.contains("found it in use"), "{error}");
    drop(opened);
    let _readers = [above, &path].map(|path| open_file(path, FileAccess::Read).unwrap());
}

#[test]
fn what_is_no_file_or_device_is_named() {
    let folder = folder();
    let path = folder.path();
    let said = |path: &Path| open_file(path, FileAccess::Write).unwrap_err().to_string();
    let expected = "expected a file or block device that can be read and written";
    assert_eq!(said(path), format!("{}: found a directory, {expected}", path.display()));
    assert_eq!(
        said(Path::new("/dev/null")),
        format!("/dev/null: found a character device, {expected}")
    );
    let missing = path.join("missing");
    let text = "No such file or directory (os error 2)";
    assert_eq!(said(&missing), format!("{}: found {text}, {expected}", missing.display()));
    let socket = path.join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    assert_eq!(said(&socket), format!("{}: found a socket, {expected}", socket.display()));
}

#[test]
fn files_that_refuse_direct_access_go_through_the_page_cache_and_say_so() {
    // Files of the kernel's settings are regular ones, and refuse it.
    let path = Path::new("/sys/class/net/lo/mtu");
    match open_file(path, FileAccess::Read) {
        Ok(opened) => {
            let [notice] = opened.notices() else { panic!("{:?}", opened.notices()) };
            assert!(notice.starts_with("/sys/class/net/lo/mtu: ") && notice.contains("page cache"));
        }
        Err(error) => println!("skipped: {error}"),
    }
    let folder = folder();
    let path = folder.path().join("device");
    file(&path, 8192);
    for notice in open_file(&path, FileAccess::Write).unwrap().notices() {
        println!("skipped: {notice}");
    }
}

#[test]
fn a_unix_socket_is_of_its_user_only_and_goes_with_its_listener() {
    let folder = folder();
    let path = folder.path().join("socket");
    let listener = unix_listener(&path).unwrap();
    assert_eq!(listener.address(), path.to_str().unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    UnixStream::connect(&path).unwrap();
    let error = unix_listener(&path).unwrap_err().to_string();
    let said = "found it in use by a process that listens there, expected a path that nothing \
                listens at";
    assert_eq!(error, format!("{}: {said}", path.display()));
    UnixStream::connect(&path).expect("the first listener still listens");
    drop(listener);
    assert!(!path.exists());
    unix_listener(&path).unwrap();
}

#[test]
fn a_listener_that_ends_at_this_moment_is_waited_for() {
    let folder = folder();
    let path = folder.path().join("socket");
    let before = UnixListener::bind(&path).unwrap();
    // As the sockets of a process that was killed: they end behind the first look at them.
    let ending = std::thread::spawn(move || drop(before.accept().unwrap()));
    let listener = unix_listener(&path).unwrap();
    ending.join().unwrap();
    UnixStream::connect(listener.address()).unwrap();
}

#[test]
fn a_folder_that_another_process_keeps_locked_is_refused() {
    let folder = folder();
    // Reading is enough to lock.
    let held = File::open(folder.path()).unwrap();
    held.lock().unwrap();
    let path = folder.path().join("socket");
    let error = unix_listener(&path).unwrap_err().to_string();
    let said = "found its folder locked by another process, expected a folder that only processes \
                of this user can open, so that none keeps it locked";
    assert_eq!(error, format!("{}: {said}", path.display()));
    drop(held);
    unix_listener(&path).unwrap();
}

#[test]
fn a_listener_removes_only_its_own_socket() {
    let folder = folder();
    let path = folder.path().join("socket");
    let first = unix_listener(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let second = unix_listener(&path).unwrap();
    drop(first);
    UnixStream::connect(&path).expect("the second listener's file stays");
    drop(second);
    assert!(!path.exists());
}

#[test]
fn a_stale_socket_is_replaced_and_anything_else_stays() {
    let folder = folder();
    let path = folder.path().join("socket");
    drop(UnixListener::bind(&path).unwrap());
    let refused = UnixStream::connect(&path).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "it is stale");
    drop(unix_listener(&path).unwrap());
    fs::write(&path, "precious").unwrap();
    let error = unix_listener(&path).unwrap_err().to_string();
    assert!(error.contains("found a file that is no socket"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    let nowhere = folder.path().join("missing/socket");
    let error = unix_listener(&nowhere).unwrap_err().to_string();
    assert!(error.starts_with(nowhere.to_str().unwrap()) && error.contains("No such file"));
    let long = folder.path().join("x".repeat(120));
    let error = unix_listener(&long).unwrap_err().to_string();
    assert!(error.contains("at most 107 bytes"), "{error}");
}

#[test]
fn a_port_alone_is_of_this_machine_only() {
    let listener = tcp_listener("0").unwrap();
    assert!(listener.address().starts_with("127.0.0.1:"), "{}", listener.address());
    TcpStream::connect(listener.address()).unwrap();
    let error = tcp_listener(listener.address()).unwrap_err().to_string();
    assert!(error.starts_with(listener.address()) && error.contains("in use"), "{error}");
    assert!(tcp_listener("127.0.0.1:0").unwrap().address().starts_with("127.0.0.1:"));
    for text in ["", "host", "1.2.3.4", "70000", "1.2.3.4:70000"] {
        let error = tcp_listener(text).unwrap_err().to_string();
        let expected = "expected `PORT`, or `ADDRESS:PORT` with an IP address";
        assert!(error.contains(&format!("`{text}`")) && error.contains(expected), "{error}");
    }
}
