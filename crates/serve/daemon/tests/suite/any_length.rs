//! Volumes of any length: the last block may be only a part of one.

use crate::setup::{BLOCK, MIB, STACK, Setup, engines, pattern, unformatted};
use cachewright_daemon::offline::{self, Overwrite};
use cachewright_nbd::Errno;

/// A formatted cache in front of a first volume of so many bytes.
fn with_volume(bytes: u64, settings: &[(&str, &str)]) -> Setup {
    let setup = unformatted(settings);
    setup.resize("a.img", bytes);
    offline::format(&setup.plan().unwrap(), Overwrite::default()).unwrap();
    setup
}

/// The end of a volume is served to the byte, comes back after a restart, and is written back;
/// nothing behind it is touched.
#[test]
fn a_volume_that_ends_within_a_block_is_served_to_its_last_byte() {
    for engine in engines() {
        for (block, mode) in
            [("4KiB", "write-back"), ("64KiB", "write-back"), ("4KiB", "write-through")]
        {
            for end in [1, 512, 4095, BLOCK + 100] {
                let name = format!("{engine}, {block}, {mode}, {end}");
                let settings = [
                    ("serve.engine", engine),
                    ("serve.segment", "1MiB"),
                    ("cache.block", block),
                    ("cache.write", mode),
                ];
                let bytes = 4 * MIB + end;
                let setup = with_volume(bytes, &settings);
                setup.damage("a.img", 0, &pattern(7, bytes));
                let mut known = setup.content("a.img");
                let running = setup.start();
                let mut a = running.connect("a");
                assert_eq!(a.size, bytes, "{name}");
                let last = (3 * MIB + 100) as usize;
                assert_eq!(a.read(last as u64, bytes - last as u64), known[last..], "{name}");
                for length in [end, 1, 5000] {
                    let data = pattern(length as u8, length);
                    a.write(bytes - length, &data);
                    known[(bytes - length) as usize..].copy_from_slice(&data);
                    assert_eq!(a.read(last as u64, bytes - last as u64), known[last..], "{name}");
                }
                assert_eq!(a.failing_write(bytes - 1, &[1, 2]), Errno::NoSpace, "{name}");
                assert_eq!(a.failing_read(bytes - 1, 2), Errno::Inval, "{name}");
                a.zero(bytes - end, end);
                known[(bytes - end) as usize..].fill(0);
                assert_eq!(a.read(last as u64, bytes - last as u64), known[last..], "{name}");
                a.write(bytes - 1, &[9]);
                known[bytes as usize - 1] = 9;
                a.provision(bytes - end.min(3), end.min(2));
                known[(bytes - end.min(3)) as usize..][..end.min(2) as usize].fill(0);
                a.flush();
                running.stop();
                let running = setup.start();
                let mut a = running.connect("a");
                assert_eq!(a.read(last as u64, bytes - last as u64), known[last..], "{name}");
                running.stop();
                assert!(offline::writeback(&setup.plan().unwrap()).unwrap().sound);
                assert!(setup.content("a.img") == known, "{name}");
                let running = setup.start();
                let mut a = running.connect("a");
                a.trim(0, bytes);
                a.write(bytes - end, &pattern(5, end));
                assert_eq!(a.read(bytes - end, end), pattern(5, end), "{name}");
                running.stop();
                assert_eq!(setup.content("a.img").len() as u64, bytes, "{name}");
            }
        }
    }
}

#[test]
fn a_volume_smaller_than_a_block_is_served() {
    let setup = with_volume(700, &[("cache.block", "64KiB"), ("serve.segment", "1MiB")]);
    let running = setup.start();
    let mut a = running.connect_for_status("a");
    assert_eq!((a.size, a.holes(0, 700)), (700, vec![(700, true)]));
    a.write(0, &pattern(1, 700));
    assert_eq!((a.read(0, 700), a.holes(10, 690)), (pattern(1, 700), vec![(690, false)]));
    running.stop();
    assert!(offline::writeback(&setup.plan().unwrap()).unwrap().sound);
    assert_eq!(setup.content("a.img"), pattern(1, 700));
}

/// Behind the old end lies what the backing device has there, also in the block that was cached
/// before with zeroes behind the end.
#[test]
fn a_volume_that_ended_within_a_block_grows_at_a_start() {
    for mode in ["write-back", "write-through"] {
        for writes_back in [false, true] {
            let before = 4 * MIB + 512;
            let settings =
                [("cache.block", "64KiB"), ("serve.segment", "1MiB"), ("cache.write", mode)];
            let setup = with_volume(before, &settings);
            let running = setup.start();
            let mut a = running.connect("a");
            a.write(4 * MIB - 100, &pattern(1, 612));
            assert_eq!(a.read(4 * MIB, 512), pattern(1, 612)[100..]);
            running.stop();
            let behind = pattern(8, 2 * MIB);
            setup.damage("a.img", before, &behind);
            if writes_back {
                assert!(offline::writeback(&setup.plan().unwrap()).unwrap().sound);
            }
            for _ in 0..2 {
                let running = setup.start();
                let mut a = running.connect("a");
                assert_eq!(a.size, before + 2 * MIB);
                assert_eq!(a.read(4 * MIB - 100, 612), pattern(1, 612), "{mode}");
                assert!(a.read(before, 2 * MIB) == behind, "{mode}, {writes_back}");
                running.stop();
            }
            assert!(setup.content("a.img")[before as usize..] == behind, "{mode}");
        }
    }
}

#[test]
fn a_reload_says_that_a_volume_which_ends_within_a_block_grows_later() {
    let setup = with_volume(4 * MIB + 512, &[]);
    let running = setup.start();
    running.connect("a").write(4 * MIB, &pattern(1, 512));
    setup.resize("a.img", 5 * MIB);
    let line = running.reload(STACK);
    assert!(line.contains("`a`: its backing device has grown to 5MiB"), "{line}");
    assert!(line.contains("until the next start"), "{line}");
    let mut a = running.connect("a");
    assert_eq!((a.size, a.read(4 * MIB, 512)), (4 * MIB + 512, pattern(1, 512)));
    a.write(4 * MIB + 500, &pattern(2, 12));
    running.stop();
    let running = setup.start();
    let mut a = running.connect("a");
    assert_eq!((a.size, a.read(4 * MIB + 500, 12)), (5 * MIB, pattern(2, 12)));
    assert_eq!(a.read(4 * MIB + 512, MIB - 512), vec![0; MIB as usize - 512]);
    running.stop();
}
