//! Formatting, checking, listing, writing back and repairing.

use crate::setup::{BLOCK, MIB, Setup, formatted, pattern, unformatted};
use cachewright_daemon::offline::{self, Overwrite};
use cachewright_live::log::format::Superblock;
use cachewright_result::live::{CachedBlock, CachedVolume};

/// A cache with 10 dirty blocks of `a` and 5 clean blocks of `b`.
fn filled() -> Setup {
    let setup = formatted(&[]);
    setup.damage("b.img", 0, &pattern(6, 5 * BLOCK));
    let running = setup.start();
    running.connect("a").write(2 * BLOCK, &pattern(5, 10 * BLOCK));
    assert_eq!(running.connect("second").read(0, 5 * BLOCK), pattern(6, 5 * BLOCK));
    running.stop();
    setup
}

fn volume(name: &str, clean: u64, dirty: u64, damaged: Option<(u64, u64)>) -> CachedVolume {
    CachedVolume {
        name: name.to_owned(),
        bytes: Some(8 * MIB),
        out_of_date: false,
        clean_bytes: clean * BLOCK,
        dirty_bytes: dirty * BLOCK,
        damaged_clean_bytes: damaged.map(|(clean, _)| clean * BLOCK),
        damaged_dirty_bytes: damaged.map(|(_, dirty)| dirty * BLOCK),
    }
}

fn blocks(setup: &Setup) -> Vec<CachedBlock> {
    offline::dump(&setup.plan().unwrap(), true).unwrap().blocks.unwrap()
}

/// Damages the content of a block where it lies on a device of the cache.
fn damage(setup: &Setup, block: &CachedBlock) {
    let name = block.device.rsplit('/').next().unwrap();
    setup.damage(name, block.device_offset + 100, b"damaged");
}

#[test]
fn a_format_says_what_it_made_and_never_throws_dirty_content_away_unsaid() {
    let setup = unformatted(&[]);
    let made = offline::format(&setup.plan().unwrap(), Overwrite::default()).unwrap();
    assert_eq!((made.segments, made.segment_bytes, made.discarded_bytes), (112, 256 << 10, 0));
    assert!(made.max_cache_bytes > 16 * MIB && made.volumes.len() == 2, "{made:?}");
    let id = Superblock::decode(&setup.content("one.img")).unwrap().set;
    assert_eq!((made.set.len(), &made.set), (16, &id.name()), "half of the id is shown to none");
    let setup = filled();
    let before = setup.content("one.img");
    let refused = offline::format(&setup.plan().unwrap(), Overwrite::default()).unwrap_err();
    assert_eq!(refused.status(), 2);
    let sentence = refused.to_string();
    assert!(sentence.contains("found 40KiB of `a` that only the devices have"), "{sentence}");
    assert!(sentence.contains("`cachewright live writeback` first"), "{sentence}");
    let alone = setup.plan_with("serve.devices", "[\"two.img\"]").unwrap();
    let sentence = offline::format(&alone, Overwrite::default()).unwrap_err().to_string();
    assert!(sentence.contains("may hold content that no other device has"), "{sentence}");
    let large = setup.plan_with("cache.capacity", "1GiB").unwrap();
    assert!(
        offline::format(&large, Overwrite { dirty: true, foreign: false })
            .unwrap_err()
            .to_string()
            .contains("at most")
    );
    assert_eq!(setup.content("one.img"), before, "nothing was written");
    let made =
        offline::format(&setup.plan().unwrap(), Overwrite { dirty: true, foreign: false }).unwrap();
    assert_eq!(made.discarded_bytes, 10 * BLOCK);
    let running = setup.start();
    assert_eq!(running.connect("a").read(2 * BLOCK, BLOCK), vec![0; BLOCK as usize]);
    running.stop();
}

/// Open-CAS/open-cas-linux#1160: a cache was started with `--force` after a stop that was no end,
/// which threw away what only the cache had. Here that takes a word of its own, and says how much.
#[test]
fn open_cas_1160_force_throws_no_dirty_content_away() {
    let setup = filled();
    let before = setup.content("one.img");
    let forced = Overwrite { dirty: false, foreign: true };
    let refused = offline::format(&setup.plan().unwrap(), forced).unwrap_err();
    assert_eq!(refused.status(), 2);
    assert!(refused.to_string().contains("found 40KiB of `a` that only the devices have"));
    assert_eq!(setup.content("one.img"), before, "nothing was written");
    let answer = offline::writeback(&setup.plan().unwrap()).unwrap();
    assert!(answer.sound, "it can be written back all the same: {answer:?}");
    assert_eq!(offline::format(&setup.plan().unwrap(), forced).unwrap().discarded_bytes, 0);
}

/// A file system, a partition table, another cache, or bytes of unknown meaning are in the way.
#[test]
fn a_format_overwrites_nothing_that_is_no_cache_unless_told_to() {
    let cases: [(u64, &[u8], &str); 8] = [
        (1080, &[0x53, 0xef], "found an ext2, ext3 or ext4 file system"),
        (0, b"XFSB", "found an XFS file system"),
        (512, b"EFI PART", "found a GUID partition table"),
        (510, &[0x55, 0xaa], "found a partition table or a boot sector"),
        (512, b"LABELONE", "found an LVM physical volume"),
        (
            4120,
            b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
            "found a bcache",
        ),
        (700_000, b"x", "found content in its first MiB"),
        (u64::MAX, b"x", "found content in its last MiB"),
    ];
    for (offset, bytes, expected) in cases {
        let setup = unformatted(&[]);
        let end = setup.content("two.img").len() as u64 - 1;
        setup.damage("two.img", offset.min(end), bytes);
        let before = [setup.content("one.img"), setup.content("two.img")];
        let plan = setup.plan().unwrap();
        let refused = offline::format(&plan, Overwrite { dirty: true, foreign: false });
        let refused = refused.unwrap_err();
        let sentence = refused.to_string();
        assert!(refused.status() == 2 && sentence.contains(expected), "{sentence}");
        assert!(sentence.contains("two.img") && sentence.contains("`--force`"), "{sentence}");
        assert!([setup.content("one.img"), setup.content("two.img")] == before, "{expected}");
        offline::format(&plan, Overwrite { dirty: false, foreign: true }).unwrap();
        offline::format(&plan, Overwrite::default()).unwrap();
    }
}

#[test]
fn a_check_and_a_list_count_what_is_there_and_write_nothing() {
    let setup = filled();
    let before = setup.content("one.img");
    let plan = setup.plan().unwrap();
    let checked = offline::check(&plan).unwrap();
    assert!(checked.sound, "{checked:?}");
    let whole = Some((0, 0));
    assert_eq!(checked.volumes, [volume("a", 0, 10, whole), volume("b", 5, 0, whole)]);
    assert!(checked.devices.iter().all(|device| device.superblocks == 2));
    let listed = offline::dump(&plan, true).unwrap();
    assert_eq!(listed.volumes, [volume("a", 0, 10, None), volume("b", 5, 0, None)]);
    let blocks = listed.blocks.unwrap();
    assert_eq!(blocks.len(), 15);
    assert!(blocks.is_sorted_by_key(|block| block.decision));
    let dirty = blocks.iter().filter(|block| block.dirty);
    let offsets: Vec<u64> = dirty.map(|block| block.offset / BLOCK).collect();
    assert_eq!(offsets, (2..12).collect::<Vec<_>>());
    assert_eq!(setup.content("one.img"), before, "nothing was written");
}

#[test]
fn damage_is_found_and_repaired_but_for_dirty_content() {
    let setup = filled();
    let plan = setup.plan().unwrap();
    let all = blocks(&setup);
    let of = |dirty: bool| all.iter().find(|block| block.dirty == dirty).unwrap();
    damage(&setup, of(true));
    damage(&setup, of(false));
    setup.damage("two.img", 0, &[0; 4096]);
    let checked = offline::check(&plan).unwrap();
    assert!(!checked.sound);
    let found = [volume("a", 0, 10, Some((0, 1))), volume("b", 5, 0, Some((1, 0)))];
    assert_eq!(checked.volumes, found);
    assert_eq!(checked.devices[1].superblocks, 1);
    let repaired = offline::repair(&plan, false).unwrap();
    assert_eq!((repaired.sound, repaired.rewritten), (false, 1));
    let changes: Vec<(u64, u64)> =
        repaired.volumes.iter().map(|one| (one.dropped_bytes, one.damaged_bytes)).collect();
    assert_eq!(changes, [(0, BLOCK), (BLOCK, 0)]);
    let checked = offline::check(&plan).unwrap();
    let left = [volume("a", 0, 10, Some((0, 1))), volume("b", 4, 0, Some((0, 0)))];
    assert_eq!((checked.volumes.as_slice(), checked.devices[1].superblocks), (&left[..], 2));
    let written = offline::writeback(&plan).unwrap();
    assert_eq!((written.sound, written.volumes[0].written_back_bytes), (false, 9 * BLOCK));
    let repaired = offline::repair(&plan, true).unwrap();
    assert!(repaired.sound && repaired.volumes[0].dropped_bytes == BLOCK, "{repaired:?}");
    assert!(offline::check(&plan).unwrap().sound);
    let running = setup.start();
    let lost = of(true).offset;
    assert_eq!(running.connect("a").read(lost, BLOCK), vec![0; BLOCK as usize], "the older state");
    running.stop();
}

#[test]
fn what_is_written_back_is_clean_and_on_the_backing_devices() {
    let setup = filled();
    let plan = setup.plan().unwrap();
    let written = offline::writeback(&plan).unwrap();
    assert!(written.sound);
    let back: Vec<(&str, u64)> =
        written.volumes.iter().map(|one| (one.name.as_str(), one.written_back_bytes)).collect();
    assert_eq!(back, [("a", 10 * BLOCK)]);
    let range = 2 * BLOCK as usize..12 * BLOCK as usize;
    assert_eq!(setup.content("a.img")[range], pattern(5, 10 * BLOCK));
    let checked = offline::check(&plan).unwrap();
    let whole = Some((0, 0));
    assert_eq!(checked.volumes, [volume("a", 10, 0, whole), volume("b", 5, 0, whole)]);
    assert_eq!(offline::writeback(&plan).unwrap().volumes, []);
    let running = setup.start();
    assert_eq!(running.stop().dirty_bytes, 0, "a server finds it clean");
    let made = offline::format(&plan, Overwrite::default()).unwrap();
    assert_eq!(made.discarded_bytes, 0);
}
