//! Writing back a cache that is full of dirty blocks, where the log has little space left.

use crate::setup::{BLOCK, MIB, Setup, pattern, unformatted};
use cachewright_daemon::offline;
use cachewright_types::Seed;
use std::fs::File;

/// Each block of both volumes is dirty in the cache, which is nearly as large as the log allows.
/// Blocks were overwritten one by one in no order, so that no segment is dead and only the spare
/// ones are free.
fn full_of_dirty_blocks() -> Setup {
    let setup = unformatted(&[("serve.segment", "64KiB"), ("cache.capacity", "16MiB")]);
    for device in ["one.img", "two.img"] {
        let file = File::options().write(true).open(setup.path(device)).unwrap();
        file.set_len(33 * MIB / 2).unwrap();
    }
    offline::format(&setup.plan().unwrap(), offline::Overwrite::default()).unwrap();
    let running = setup.start();
    let mut clients = ["a", "second"].map(|export| running.connect(export));
    let part = pattern(3, MIB);
    let mut rng = Seed(1).rng();
    for client in &mut clients {
        (0..8).for_each(|place| client.write(place * MIB, &part));
    }
    for write in 0..6000 {
        let block = rng.below(8 * MIB / BLOCK) * BLOCK;
        let within = (block % MIB) as usize;
        clients[write % 2].write(block, &part[within..within + BLOCK as usize]);
    }
    assert_eq!(running.stop().dirty_bytes, 16 * MIB);
    setup
}

/// A server takes writes of everything, keeps them, and gives them.
fn serves(setup: &Setup) {
    for seed in [11, 12] {
        let running = setup.start();
        for export in ["a", "second"] {
            let mut client = running.connect(export);
            for part in 0..8 {
                client.write(part * MIB, &pattern(seed, MIB));
                assert_eq!(client.read(part * MIB, MIB), pattern(seed, MIB));
            }
        }
        running.stop();
    }
}

fn holds(setup: &Setup, volume: &str, seed: u8) -> bool {
    setup.content(volume).chunks(MIB as usize).all(|part| part == pattern(seed, MIB))
}

/// One record per dirty block filled the log: neither the tool nor a server could go on.
#[test]
fn a_full_cache_is_written_back_and_served_on() {
    let setup = full_of_dirty_blocks();
    let plan = setup.plan().unwrap();
    for seed in [3, 12] {
        let written = offline::writeback(&plan).unwrap();
        let bytes: Vec<u64> = written.volumes.iter().map(|one| one.written_back_bytes).collect();
        assert!(written.sound && bytes == [8 * MIB, 8 * MIB], "{written:?}");
        assert!(holds(&setup, "a.img", seed) && holds(&setup, "b.img", seed));
        let found = offline::dump(&plan, false).unwrap().volumes;
        let kinds: Vec<(u64, u64)> =
            found.iter().map(|one| (one.clean_bytes, one.dirty_bytes)).collect();
        assert_eq!(kinds, [(8 * MIB, 0), (8 * MIB, 0)]);
        assert_eq!(offline::writeback(&plan).unwrap().volumes, [], "there is nothing to do");
        serves(&setup);
    }
}

#[test]
fn a_write_mode_without_dirty_blocks_takes_over_a_full_cache() {
    let mut setup = full_of_dirty_blocks();
    setup.settings.push(("cache.write".to_owned(), "write-through".to_owned()));
    let running = setup.start();
    let summary = running.lines.last().unwrap();
    assert!(summary.contains("found 16MiB clean, 0B dirty, 16MiB written back"), "{summary}");
    assert_eq!(running.stop().dirty_bytes, 0);
    assert!(holds(&setup, "a.img", 3) && holds(&setup, "b.img", 3));
    serves(&setup);
    assert!(holds(&setup, "a.img", 12) && holds(&setup, "b.img", 12));
}

/// Damaged dirty blocks cut the records of what is clean, and stay dirty.
#[test]
fn damaged_dirty_blocks_stay_dirty_among_those_that_are_written_back() {
    let setup = full_of_dirty_blocks();
    let plan = setup.plan().unwrap();
    let blocks = offline::dump(&plan, true).unwrap().blocks.unwrap();
    let damaged = |number: u64| {
        let block = blocks.iter().find(|one| one.volume == "a" && one.offset == number * BLOCK);
        block.unwrap()
    };
    for number in [0, 7, 8, 1000, 2047] {
        let name = damaged(number).device.rsplit('/').next().unwrap();
        setup.damage(name, damaged(number).device_offset, b"damaged");
    }
    let written = offline::writeback(&plan).unwrap();
    let counts = |one: &cachewright_result::live::ChangedVolume| {
        (one.written_back_bytes / BLOCK, one.damaged_bytes / BLOCK)
    };
    assert_eq!(written.volumes.iter().map(counts).collect::<Vec<_>>(), [(2043, 5), (2048, 0)]);
    let checked = offline::check(&plan).unwrap();
    let a = &checked.volumes[0];
    assert_eq!((a.dirty_bytes, a.damaged_dirty_bytes), (5 * BLOCK, Some(5 * BLOCK)));
    let again = offline::writeback(&plan).unwrap();
    assert_eq!(again.volumes.iter().map(counts).collect::<Vec<_>>(), [(0, 5)]);
    let repaired = offline::repair(&plan, true).unwrap();
    assert_eq!(repaired.volumes[0].dropped_bytes, 5 * BLOCK);
    let checked = offline::check(&plan).unwrap();
    assert!(checked.sound, "{checked:?}");
    assert_eq!(checked.volumes[0].clean_bytes, 2043 * BLOCK);
    serves(&setup);
}
