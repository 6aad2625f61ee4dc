//! What is written is read again, and nothing that was changed is taken for valid.

use cachewright_live::log::format::{
    Bypassed, Footer, FooterRecord, GROUP_RECORDS, GroupHeader, Home, LogRecord, LogRecordKind,
    MAX_BLOCKS, MAX_NAME, PAGE, SUPERBLOCK_BYTES, SegmentHeader, SegmentState, SetGeometry, SetId,
    Superblock, SuperblockError, Version, Volume, VolumeId,
};
use proptest::prelude::*;

/// Counts of the format are smaller.
const COUNTS: u64 = 1 << 62;

fn home() -> impl Strategy<Value = Home> {
    (any::<u128>(), any::<u32>(), any::<u32>(), 0..COUNTS).prop_map(
        |(set, device, segment, generation)| Home { set: SetId(set), device, segment, generation },
    )
}

fn record() -> impl Strategy<Value = LogRecord> {
    (any::<u32>(), 0..MAX_BLOCKS, 0..COUNTS, any::<u32>(), 0..4).prop_map(
        |(volume, number, version, value, kind)| LogRecord {
            volume: VolumeId(volume),
            number,
            version: Version(version),
            kind: match kind {
                0 => LogRecordKind::Clean { checksum: value },
                1 => LogRecordKind::Dirty { checksum: value },
                2 => LogRecordKind::Gone { blocks: value },
                _ => LogRecordKind::Cleaned { blocks: value },
            },
        },
    )
}

/// Flips one bit of `bytes`.
fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    changed[bit / 8 % bytes.len()] ^= 1 << (bit % 8);
    changed
}

proptest! {
    #[test]
    fn groups_are_read_as_written(
        home in home(),
        numbers in (any::<u32>(), 0..COUNTS, 0..COUNTS),
        records in prop::collection::vec(record(), 0..=GROUP_RECORDS),
        bit in any::<usize>(),
    ) {
        let (page, number, durable) = numbers;
        let records_count = records.len() as u32;
        let header =
            GroupHeader { home, page, records: records_count, number, durable, block_pages: 1 };
        let bytes = header.encode(&records);
        let blocks = records.iter().filter(|record| record.kind.has_data()).count();
        prop_assert_eq!((bytes.len(), header.pages(&records)), (PAGE, 1 + blocks as u32));
        prop_assert_eq!(GroupHeader::decode(&flipped(&bytes, bit)), None);
        prop_assert_eq!(GroupHeader::decode(&bytes), Some((header, records)));
    }

    #[test]
    fn footers_are_read_as_written_with_anything_behind_them(
        home in home(),
        groups in prop::collection::btree_set(0..COUNTS, 1..60),
        records in prop::collection::vec((record(), any::<u32>()), 0..400),
        bit in any::<usize>(),
    ) {
        let placed = |(record, page)| FooterRecord { record, page };
        let records = records.into_iter().map(placed).collect();
        let footer = Footer { home, groups: groups.into_iter().collect(), records };
        let mut bytes = footer.encode();
        let footer_pages = Footer::pages(footer.groups.len(), footer.records.len());
        prop_assert_eq!(bytes.len(), footer_pages * PAGE);
        prop_assert_eq!(Footer::decode(&flipped(&bytes, bit)), None);
        bytes.extend_from_slice(&[0xff; PAGE]);
        prop_assert_eq!(Footer::decode(&bytes), Some(footer));
    }

    #[test]
    fn segment_headers_are_read_as_written(
        home in home(),
        stream in any::<u32>(),
        emptied in 0..COUNTS,
        bit: usize,
    ) {
        for state in [SegmentState::Free, SegmentState::Begun, SegmentState::Doubtful] {
            let header = SegmentHeader { home, state, stream, emptied };
            let bytes = header.encode();
            prop_assert_eq!(bytes.len(), PAGE);
            prop_assert_eq!(SegmentHeader::decode(&flipped(&bytes, bit)), None);
            prop_assert_eq!(SegmentHeader::decode(&bytes), Some(header));
        }
    }

    #[test]
    fn superblocks_are_read_as_written(
        numbers in any::<(u128, u32, u32, u64)>(),
        cut in any::<(u32, u32, u32)>(),
        has_lost: bool,
        names in prop::collection::vec(("[a-z/äé]{0,80}", any::<u64>()), 0..40),
        bypass in any::<Option<(u16, u64)>>(),
        notes in prop::collection::vec(any::<u8>(), 0..300),
        bit in any::<usize>(),
    ) {
        let (set, device, devices, edition) = numbers;
        let (block_bytes, segment_bytes, segments) = cut;
        let volume = |(id, (name, bytes)): (usize, (String, u64))| Volume {
            id: VolumeId(id as u32), name, bytes,
        };
        let bypassed = bypass.map(|(error, chosen)| {
            let ids = (0..names.len() as u32).filter(|id| chosen >> id & 1 == 1);
            Bypassed { error, passed: ids.map(VolumeId).collect() }
        });
        let superblock = Superblock {
            set: SetId(set), device, devices, edition, has_lost,
            geometry: SetGeometry { block_bytes, segment_bytes, segments },
            volumes: names.into_iter().enumerate().map(volume).collect(),
            bypassed,
            notes,
        };
        let bytes = superblock.encode().unwrap();
        prop_assert!(Superblock::decode(&flipped(&bytes, bit)).is_err());
        let mut copy = bytes;
        copy.resize(SUPERBLOCK_BYTES, 0xff);
        prop_assert_eq!(Superblock::decode(&copy), Ok(superblock));
    }

    /// Bytes of anything: no panic, no reading beyond the end.
    #[test]
    fn hostile_bytes_are_no_structures(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
        prop_assert_eq!(GroupHeader::decode(&bytes), None);
        prop_assert_eq!(Footer::decode(&bytes), None);
        prop_assert_eq!(SegmentHeader::decode(&bytes), None);
        prop_assert!(Superblock::decode(&bytes).is_err());
    }
}

/// Puts in the checksum of a structure that was changed.
pub fn resealed(bytes: &mut [u8]) {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..8]), &bytes[12..]);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn a_superblock_of_another_version_is_named_and_too_many_volumes_are_refused() {
    let volume = |id| Volume { id: VolumeId(id), name: "v".repeat(200), bytes: 1 };
    let mut superblock = Superblock {
        set: SetId(1),
        device: 0,
        devices: 1,
        edition: 3,
        has_lost: false,
        geometry: SetGeometry { block_bytes: 4096, segment_bytes: 1 << 20, segments: 4 },
        volumes: (0..4000).map(volume).collect(),
        bypassed: None,
        notes: Vec::new(),
    };
    assert_eq!(Superblock::offset(3), SUPERBLOCK_BYTES as u64);
    let mut bytes = superblock.encode().unwrap();
    bytes[12] = 9;
    assert_eq!(Superblock::decode(&bytes), Err(SuperblockError::Version { found: 9 }));
    bytes = superblock.encode().unwrap();
    bytes[40] = 8;
    resealed(&mut bytes);
    assert_eq!(Superblock::decode(&bytes), Err(SuperblockError::Flags { found: 8 }));
    superblock.volumes = (0..6000).map(volume).collect();
    let error = superblock.encode().unwrap_err().to_string();
    assert_eq!(error, "6000 volumes need 1286144 bytes, a superblock has 1044480");
    const { assert!(GROUP_RECORDS > 140) };
}

#[test]
fn a_name_that_no_superblock_holds_is_refused() {
    let volume = |name: String| Volume { id: VolumeId(1), name, bytes: 4096 };
    let superblock = |name: String| Superblock {
        set: SetId(5),
        device: 0,
        devices: 1,
        edition: 1,
        has_lost: false,
        geometry: SetGeometry { block_bytes: 4096, segment_bytes: 1 << 20, segments: 4 },
        volumes: vec![volume(name)],
        bypassed: None,
        notes: Vec::new(),
    };
    let longest = superblock("n".repeat(MAX_NAME));
    assert_eq!(Superblock::decode(&longest.encode().unwrap()), Ok(longest));
    for bytes in [MAX_NAME + 1, (1 << 16) + 1] {
        let error = superblock("n".repeat(bytes)).encode().unwrap_err();
        let expected = format!(
            "found a volume's name of {bytes} bytes, expected at most 255: `{}...`",
            "n".repeat(32)
        );
        assert_eq!(error.to_string(), expected);
    }
}
