//! Devices of a live cache: structures that say anything, with right checksums, stand anywhere.
//! A start refuses them or finds content inside the segments; a second start finds the same.
#![no_main]

use cachewright_fuzz::checked;
use cachewright_live::io::sim::{Sim, SimFile};
use cachewright_live::io::{Buffer, FileId, batch};
use cachewright_live::log::format::{
    Footer, GroupHeader, PAGE, SegmentHeader, SetId, Superblock, Volume, VolumeId,
};
use cachewright_live::log::{FormatSettings, OpenSetError, format, open, read_log};
use cachewright_types::Seed;
use libfuzzer_sys::fuzz_target;

const SEGMENT: u32 = 64 << 10;
const DEVICE: usize = (2 << 20) + 11 * SEGMENT as usize;
/// Structures of one input that are looked at.
const MAX_STRUCTURES: usize = 64;

/// A formatted device. Errors: none, for the sizes fit.
fn formatted() -> Result<(Sim, FileId), OpenSetError> {
    let mut sim = Sim::new(Seed(1));
    let file = sim.add_file(SimFile::new(DEVICE as u64));
    let volume = |id: u32| Volume { id: VolumeId(id), name: format!("v{id}"), bytes: 1 << 20 };
    let volumes = vec![volume(1), volume(2)];
    let settings =
        FormatSettings { set: SetId(9), block_bytes: 4096, segment_bytes: SEGMENT, volumes };
    format(&mut sim, &[file], &settings)?;
    Ok((sim, file))
}

/// A structure with the checksum that it should have: behind its magic of eight bytes.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut page = bytes.to_vec();
    page.resize(page.len().next_multiple_of(PAGE), 0);
    let sum = crc32c::crc32c_append(crc32c::crc32c(&page[..8]), &page[12..]);
    page[8..12].copy_from_slice(&sum.to_le_bytes());
    page
}

/// What decodes is encoded as it was read.
fn check_decoding(bytes: &[u8]) {
    if let Some(header) = SegmentHeader::decode(bytes) {
        assert_eq!(SegmentHeader::decode(&header.encode()), Some(header));
    }
    if let Some((header, records)) = GroupHeader::decode(bytes) {
        assert_eq!(GroupHeader::decode(&header.encode(&records)), Some((header, records)));
    }
    if let Some(footer) = Footer::decode(bytes) {
        assert_eq!(Footer::decode(&footer.encode()), Some(footer));
    }
    match Superblock::decode(bytes) {
        Ok(superblock) => {
            if let Ok(again) = superblock.encode() {
                assert_eq!(Superblock::decode(&again), Ok(superblock));
            }
        }
        Err(error) => drop(checked(error.to_string())),
    }
}

/// Opens the device, and looks at what is found twice.
fn check_start(sim: &mut Sim, file: FileId) -> Result<(), OpenSetError> {
    let set = open(sim, &[file])?;
    let first = read_log(sim, &set)?;
    let blocks = first.blocks.clone();
    for block in &blocks {
        let (segment, page) = set.set.locate(block.place);
        assert!(segment.index() < set.set.segments() && page > 0);
        assert!(page + set.set.block_pages() <= set.set.footer_page());
    }
    first.settle(sim)?;
    let again = read_log(sim, &set)?;
    assert_eq!((&again.blocks, again.void_groups, again.lost_groups), (&blocks, 0, 0));
    Ok(())
}

// An input is a row of structures: the page of the device, the length, the bytes.
fuzz_target!(|input: &[u8]| {
    let device = formatted();
    assert!(device.is_ok(), "the sizes fit");
    let Ok((mut sim, file)) = device else { return };
    let mut rest = input;
    for _ in 0..MAX_STRUCTURES {
        let Some((head, behind)) = rest.split_first_chunk::<4>() else { break };
        let [page, length] = [[head[0], head[1]], [head[2], head[3]]]
            .map(|word| usize::from(u16::from_le_bytes(word)));
        let Some(bytes) = behind.get(..length) else { break };
        rest = &behind[length..];
        if bytes.len() < 12 {
            continue;
        }
        let bytes = sealed(bytes);
        check_decoding(&bytes);
        let offset = page % (DEVICE / PAGE) * PAGE;
        if offset + bytes.len() <= DEVICE {
            let piece = (file, offset as u64, Buffer::copy_of(&bytes));
            assert_eq!(batch::write(&mut sim, [piece]), Ok(()), "it lies inside the device");
        }
    }
    if let Err(error) = check_start(&mut sim, file) {
        checked(error.to_string());
    }
});
