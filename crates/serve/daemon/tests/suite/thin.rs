//! Volumes on thin images: they stay as thin as clients leave them, and clients see their holes.

use crate::setup::{BLOCK, Guest, MIB, Running, Setup, engines, formatted, pattern};
use cachewright_daemon::offline;

/// Copies a volume to another as tools for backups do: only what has space is read.
fn copy(from: &mut Guest, to: &mut Guest) {
    let mut at = 0;
    for (length, is_hole) in from.holes(0, from.size) {
        match is_hole {
            true => to.zero(at, length),
            false => {
                for offset in (at..at + length).step_by(MIB as usize) {
                    let length = MIB.min(at + length - offset);
                    let data = from.read(offset, length);
                    to.write(offset, &data);
                }
            }
        }
        at += length;
    }
    to.flush();
}

fn written_back(running: Running, setup: &Setup) {
    running.stop();
    assert!(offline::writeback(&setup.plan().unwrap()).unwrap().sound);
}

#[test]
fn zeroes_make_holes_and_those_that_keep_their_space_do_not() {
    for engine in engines() {
        let setup = formatted(&[("serve.engine", engine), ("cache.write", "write-through")]);
        let running = setup.start();
        let mut a = running.connect("a");
        a.write(0, &pattern(1, 4 * MIB));
        a.flush();
        let full = setup.space_of("a.img");
        assert!(full >= 4 * MIB, "{engine}: {full}");
        a.zero(MIB, MIB);
        a.flush();
        let thin = setup.space_of("a.img");
        assert!(thin <= full - MIB / 8 * 7, "{engine}: {full} and then {thin}");
        a.provision(5 * MIB, MIB);
        a.flush();
        let provisioned = setup.space_of("a.img");
        assert!(provisioned >= thin + MIB / 8 * 7, "{engine}: {thin} and then {provisioned}");
        a.trim(2 * MIB, MIB);
        a.flush();
        assert!(setup.space_of("a.img") < provisioned, "{engine}");
        assert_eq!(a.read(MIB, MIB), vec![0; MIB as usize]);
        assert_eq!(a.read(5 * MIB, MIB), vec![0; MIB as usize]);
        assert_eq!(a.read(3 * MIB, MIB), pattern(1, 4 * MIB)[3 * MIB as usize..]);
        running.stop();
    }
}

/// Zeroes of parts of blocks are cached, and more of them than the cache holds are written back.
#[test]
fn zeroes_of_parts_of_blocks_are_written_back_as_holes_of_a_thin_image() {
    for mode in ["write-back", "write-through"] {
        let setup = formatted(&[
            ("cache.block", "64KiB"),
            ("serve.segment", "1MiB"),
            ("cache.write", mode),
        ]);
        let running = setup.start();
        let mut a = running.connect("a");
        for offset in (0..8 * MIB).step_by(64 << 10) {
            a.zero(offset + 4 * BLOCK, 8 * BLOCK);
        }
        a.flush();
        assert_eq!(a.read(0, 8 * MIB), vec![0; 8 * MIB as usize]);
        let thin = setup.space_of("a.img");
        assert!(thin < 64 << 10, "{mode}: {thin}");
        let mut b = running.connect("second");
        for offset in (0..8 * MIB).step_by(64 << 10) {
            b.provision(offset + 4 * BLOCK, 8 * BLOCK);
        }
        b.flush();
        let provisioned = setup.space_of("b.img");
        assert!(provisioned > MIB, "{mode}: {provisioned}");
        running.stop();
    }
}

#[test]
fn block_status_shows_holes_and_counts_what_only_the_cache_has_as_data() {
    for engine in engines() {
        let setup = formatted(&[("serve.engine", engine)]);
        setup.damage("a.img", 6 * MIB, &pattern(1, 64 << 10));
        let running = setup.start();
        let mut a = running.connect_for_status("a");
        let part = 64 << 10;
        let before = [(6 * MIB, true), (part, false), (2 * MIB - part, true)];
        assert_eq!(a.holes(0, 8 * MIB), before, "{engine}");
        a.write(MIB, &pattern(2, part));
        let dirty = [(MIB, true), (part, false), (5 * MIB - part, true), before[1], before[2]];
        assert_eq!(a.holes(0, 8 * MIB), dirty, "{engine}: what is dirty is data");
        // What was read is cached, and stays a hole.
        assert_eq!(a.read(2 * MIB, MIB), vec![0; MIB as usize]);
        assert_eq!(a.holes(0, 8 * MIB), dirty, "{engine}");
        // Parts of blocks.
        assert_eq!(a.holes(MIB - 10, 20), [(10, true), (10, false)]);
        assert_eq!(a.holes(MIB + 7, 5), [(5, false)]);
        a.zero(MIB, part);
        assert_eq!(a.holes(0, 8 * MIB), before, "{engine}");
        running.stop();
    }
}

#[test]
fn a_copy_of_a_thin_image_is_as_thin() {
    for engine in engines() {
        let setup = formatted(&[("serve.engine", engine)]);
        let running = setup.start();
        let mut a = running.connect_for_status("a");
        a.write(0, &pattern(1, 100 << 10));
        a.write(3 * MIB + BLOCK, &pattern(2, 200 << 10));
        a.write(7 * MIB, &pattern(3, MIB));
        a.zero(7 * MIB + (256 << 10), 256 << 10);
        let mut b = running.connect("second");
        copy(&mut a, &mut b);
        assert_eq!(b.read(0, 8 * MIB), a.read(0, 8 * MIB));
        written_back(running, &setup);
        assert_eq!(setup.content("a.img"), setup.content("b.img"));
        let [from, to] = ["a.img", "b.img"].map(|name| setup.space_of(name));
        assert!(from < 2 * MIB && to <= from, "{engine}: {from} and {to}");
        // From the image alone, and into one that was full.
        setup.damage("b.img", 0, &pattern(9, 8 * MIB));
        let running = setup.start();
        let mut a = running.connect_for_status("a");
        copy(&mut a, &mut running.connect("second"));
        written_back(running, &setup);
        assert_eq!(setup.content("a.img"), setup.content("b.img"));
        let again = setup.space_of("b.img");
        assert!(again < 2 * MIB, "{engine}: {again}");
    }
}
