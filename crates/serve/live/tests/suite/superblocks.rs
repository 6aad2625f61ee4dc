//! Superblocks that are written again while power is lost, with one copy damaged before.

use crate::format::resealed;
use crate::log_world::formatted;
use cachewright_live::io::sim::{Fate, Sim};
use cachewright_live::io::{Buffer, FileId, batch};
use cachewright_live::log::format::{
    PAGE, SUPERBLOCK_BYTES, Superblock, SuperblockError, Volume, VolumeId,
};
use cachewright_live::log::{OpenSetError, open, rewrite, rewrite_both};
use cachewright_types::Seed;

const DEVICES: usize = 2;

/// Formatted devices; the superblock was written so many times more, and one copy is damaged.
fn damaged(changes: u64, device: usize, copy: u64) -> (Sim, Vec<FileId>) {
    let (mut sim, files) = formatted(Seed(changes), DEVICES, 4);
    let mut found = open(&mut sim, &files).unwrap();
    for change in 0..changes {
        let (id, name) = (VolumeId(10 + change as u32), format!("added-{change}"));
        found.superblock.volumes.push(Volume { id, name, bytes: 4096 });
        rewrite(&mut sim, &mut found).unwrap();
    }
    let piece = (files[device], Superblock::offset(copy), Buffer::zeroed(PAGE));
    batch::write(&mut sim, [piece]).unwrap();
    (sim, files)
}

/// Valid copies of all devices.
fn valid(sim: &mut Sim, files: &[FileId]) -> usize {
    let place = |file: &FileId| [0, 1].map(|copy| (*file, Superblock::offset(copy)));
    let ranges = files.iter().flat_map(place).map(|(file, start)| (file, start, SUPERBLOCK_BYTES));
    let copies = batch::read(sim, ranges);
    copies.iter().filter(|copy| Superblock::decode(copy.as_ref().unwrap()).is_ok()).count()
}

/// A change wrote the copy that its edition's parity named: with the other copy damaged that was
/// the only valid one.
#[test]
fn a_repair_that_is_cut_short_leaves_a_valid_copy_on_each_device() {
    let torn = Fate::Torn((0..2048).map(|sector| sector == 1).collect());
    let fates = [Fate::Lost, torn, Fate::Whole];
    let mut cut_short = 0;
    for (changes, device, copy) in
        (0..3).flat_map(|changes| (0..4).map(move |at| (changes, at / 2, at as u64 % 2)))
    {
        // A repair is 4 writes and 4 syncs, behind the reads of its start.
        for operations in 0..16 {
            for fate in &fates {
                let (mut sim, files) = damaged(changes, device, copy);
                let mut found = open(&mut sim, &files).unwrap();
                assert_eq!(valid(&mut sim, &files), 3);
                sim.stop_after(operations);
                let whole = rewrite_both(&mut sim, &mut found).is_ok();
                cut_short += usize::from(!whole);
                let mut left = sim.crash(Seed(operations), std::iter::repeat(fate.clone()));
                let mut found = open(&mut left, &files).unwrap();
                assert!(!whole || valid(&mut left, &files) == 4);
                rewrite_both(&mut left, &mut found).unwrap();
                assert_eq!(valid(&mut left, &files), 4);
            }
        }
    }
    assert!(cut_short > 100, "{cut_short}");
}

/// A newer version may have written one copy: what its flags say must not be overlooked.
#[test]
fn flags_that_are_not_known_are_refused_though_the_other_copy_is_valid() {
    // The flags of the set, and those of its first volume.
    let cases = [
        (40, SuperblockError::Flags { found: 8 }),
        (85, SuperblockError::VolumeFlags { found: 8 }),
    ];
    for ((place, error), edition) in
        cases.into_iter().flat_map(|case| [1, 3].map(|edition| (case.clone(), edition)))
    {
        let (mut sim, files) = formatted(Seed(1), DEVICES, 4);
        let found = open(&mut sim, &files).unwrap();
        let mut copy = Superblock { device: 1, edition, ..found.superblock }.encode().unwrap();
        copy[place] |= 8;
        resealed(&mut copy);
        let piece = (files[1], Superblock::offset(1), Buffer::padded(&copy));
        batch::write(&mut sim, [piece]).unwrap();
        let refused = open(&mut sim, &files).unwrap_err();
        assert_eq!(refused, OpenSetError::Superblock { device: 1, error });
    }
}
