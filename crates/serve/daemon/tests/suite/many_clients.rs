//! Ten thousand connections on real sockets: no descriptor and little memory is left of them.

use crate::setup::engines;
use crate::setup::{BLOCK, formatted, pattern};
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

const CLIENTS: usize = 10_000;
/// Memory that may stay, in KiB: buffers that are used again, fragments.
const MOST_KIB: u64 = 64 << 10;

/// Descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Memory of this process that is in use, in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn ten_thousand_connects_leave_nothing_behind() {
    for engine in engines() {
        let setup = formatted(&[("serve.engine", engine)]);
        let running = setup.start();
        let mut quiet = running.connect("a");
        quiet.write(0, &pattern(1, BLOCK));
        let (before, before_kib) = (descriptors(), resident_kib());
        for client in 0..CLIENTS {
            let mut stream = UnixStream::connect(setup.path("live.sock")).unwrap();
            let sent: &[u8] = match client % 4 {
                0 => b"",
                1 => b"GET / HTTP/1.1\r\n\r\n",
                2 => b"\0\0\0\x03IHAVEOPT\0\0\0\x07\xff\xff\xff\xff",
                _ => b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x01a\x25\x60\x95\x13\0\0\0\x01",
            };
            // The server may have closed it already.
            let _closed = stream.write_all(sent);
            if client % 3 == 0 {
                let _closed = stream.shutdown(Shutdown::Write);
            }
            if client % 100 == 0 {
                assert_eq!(quiet.read(0, BLOCK), pattern(1, BLOCK), "others are served");
            }
        }
        // Other tests of this process open descriptors, too: the bound is loose.
        let mut last = running.connect("a");
        assert_eq!(last.read(0, BLOCK), pattern(1, BLOCK));
        let grown = resident_kib().saturating_sub(before_kib);
        assert!(grown < MOST_KIB, "{engine}: {grown} KiB more than before");
        assert!(descriptors() < before + 500, "{engine}: {} descriptors", descriptors());
        running.stop();
    }
}
