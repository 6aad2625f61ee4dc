//! Devices whose structures are whole and say anything: each has its checksum, as one that was made
//! to do harm has. A start begins or refuses, places lie inside, a second start finds the same.

use crate::block_world::{Setting, formatted, served};
use cachewright_cache::WriteMode;
use cachewright_live::io::{Buffer, batch};
use cachewright_live::log::format::{
    Footer, FooterRecord, GroupHeader, Home, LogRecord, LogRecordKind, PAGE, SegmentHeader,
    SegmentState, SetId, Version, VolumeId,
};
use cachewright_live::log::{
    FormatSettings, OpenSetError, format as format_set, open, read_log, recover,
};
use cachewright_types::{Rng, Seed};
use std::collections::BTreeSet;

const SEGMENTS: u64 = 11;

/// A number: often small, at times one of the largest.
fn any_number(rng: &mut Rng, small: u64) -> u64 {
    match rng.below(8) {
        0 => rng.next_u64() >> rng.below(64),
        1 => [u64::MAX, 1 << 62, (1 << 62) - 1, 1 << 52, (1 << 52) - 1][rng.below(5) as usize],
        _ => rng.below(small),
    }
}

fn any_record(rng: &mut Rng) -> LogRecord {
    let value = any_number(rng, 9) as u32;
    let kind = match rng.below(5) {
        0 => LogRecordKind::Clean { checksum: value },
        1 => LogRecordKind::Dirty { checksum: value },
        2 => LogRecordKind::Damaged { checksum: value },
        3 => LogRecordKind::Gone { blocks: value },
        _ => LogRecordKind::Cleaned { blocks: value },
    };
    let volume = VolumeId(any_number(rng, 4) as u32);
    LogRecord { volume, number: any_number(rng, 12), version: Version(any_number(rng, 60)), kind }
}

/// A structure for some page of a segment, and the page.
fn any_structure(rng: &mut Rng, segment: u64) -> (u64, Vec<u8>) {
    let segment = if rng.below(9) == 0 { any_number(rng, 12) } else { segment };
    let generation = any_number(rng, 3);
    let home = Home { set: SetId(9), device: 0, segment: segment as u32, generation };
    let records: Vec<LogRecord> = (0..rng.below(20)).map(|_| any_record(rng)).collect();
    match rng.below(3) {
        0 => {
            let states = [SegmentState::Free, SegmentState::Begun, SegmentState::Doubtful];
            let state = states[rng.below(3) as usize];
            (0, {
                let emptied = any_number(rng, 40);
                SegmentHeader { home, state, stream: 0, emptied }.encode()
            })
        }
        1 => {
            let placed = |record| FooterRecord { record, page: any_number(rng, 20) as u32 };
            let records = records.into_iter().map(placed).collect();
            let groups: BTreeSet<u64> =
                (0..1 + rng.below(3)).map(|_| any_number(rng, 40)).collect();
            let groups = groups.into_iter().collect();
            (15, Footer { home, groups, records }.encode())
        }
        _ => {
            let page = 1 + rng.below(14);
            let header = GroupHeader {
                home,
                page: if rng.below(9) == 0 { any_number(rng, 16) as u32 } else { page as u32 },
                records: records.len() as u32,
                number: any_number(rng, 40),
                durable: any_number(rng, 40),
                block_pages: if rng.below(9) == 0 { any_number(rng, 4) as u32 } else { 1 },
            };
            (page, header.encode(&records))
        }
    }
}

#[test]
fn structures_that_say_anything_do_no_harm() {
    let (mut refused, mut began, mut blocks) = (0, 0, 0);
    for seed in 0..1500 {
        let mut rng = Seed(seed).derive("hostile").rng();
        let setting =
            Setting::of("lru", [WriteMode::WriteBack, WriteMode::WriteThrough][seed as usize % 2]);
        let (mut sim, files) = formatted(&setting, Seed(seed));
        if rng.below(4) > 0 {
            assert!(served(&mut sim, &setting, &files).unwrap().is_ok());
        }
        for _ in 0..1 + rng.below(24) {
            let segment = rng.below(SEGMENTS);
            let (page, bytes) = any_structure(&mut rng, segment);
            let offset = (2 << 20) + segment * u64::from(setting.segment) + page * PAGE as u64;
            let bytes = Buffer::copy_of(&bytes[..PAGE]);
            batch::write(&mut sim, [(files.0[0], offset, bytes)]).unwrap();
        }
        let set = open(&mut sim, &files.0).unwrap();
        let first = match read_log(&mut sim, &set) {
            Ok(first) => first,
            Err(error) => {
                assert!(matches!(error, OpenSetError::Count { .. }), "seed {seed}: {error}");
                refused += 1;
                continue;
            }
        };
        for block in &first.blocks {
            let (segment, page) = set.set.locate(block.place);
            assert!(segment.index() < SEGMENTS as usize && (1..15).contains(&page), "seed {seed}");
        }
        blocks += first.blocks.len();
        let settled = recover(&mut sim, &set).unwrap();
        let again = recover(&mut sim, &set).unwrap();
        assert_eq!(settled.blocks, again.blocks, "seed {seed}");
        assert_eq!(first.blocks, again.blocks, "seed {seed}");
        match served(&mut sim, &setting, &files).unwrap() {
            Ok(_) => began += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 50 && began > 50 && blocks > 100, "{refused} {began} {blocks}");
}

/// Where a descriptor is damaged, the pages behind it are looked through for others. A client may
/// know how a set is called, and write a block that is one but for the half of the id that is shown
/// to none.
#[test]
fn a_block_that_a_client_writes_is_never_taken_for_a_group() {
    let own = SetId(0x1234_5678_9abc_def0_u128 << 64 | 0xfedc_ba98);
    let guessed = SetId(own.0 >> 64 << 64);
    assert_eq!((own.name(), guessed.name()), (own.name(), own.name()));
    for (id, damaged) in [(own, 1), (guessed, 0)] {
        let setting = Setting::of("lru", WriteMode::WriteBack);
        let (mut sim, files) = formatted(&setting, Seed(3));
        let format = FormatSettings {
            set: own,
            block_bytes: PAGE as u32,
            segment_bytes: setting.segment,
            volumes: open(&mut sim, &files.0).unwrap().superblock.volumes,
        };
        format_set(&mut sim, &files.0, &format).unwrap();
        assert!(served(&mut sim, &setting, &files).unwrap().is_ok());
        let home = Home { set: id, device: 0, segment: 7, generation: 1 };
        let kind = LogRecordKind::Dirty { checksum: 5 };
        let record = LogRecord { volume: VolumeId(1), number: 2, version: Version(9), kind };
        let forged =
            GroupHeader { home, page: 4, records: 1, number: 2, durable: 1, block_pages: 1 };
        let start = (2 << 20) + 7 * u64::from(setting.segment);
        let pages = [(0, vec![0xff; PAGE]), (4, forged.encode(&[record]))];
        for (page, bytes) in pages {
            let piece = (files.0[0], start + page * PAGE as u64, Buffer::copy_of(&bytes));
            batch::write(&mut sim, [piece]).unwrap();
        }
        let set = open(&mut sim, &files.0).unwrap();
        assert_eq!(read_log(&mut sim, &set).unwrap().damaged_headers, damaged);
    }
}
