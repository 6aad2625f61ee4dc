//! Groups of the log that were durable and are gone: a device did not keep what it had synced, or
//! a descriptor was damaged. What survives proves it, and what is whole is found all the same.

use crate::log_world::{
    BLOCK, Block, SEGMENT, State, World, any_block, formatted, recovered, state_of,
};
use cachewright_live::io::sim::{Fate, Fault, Sim};
use cachewright_live::io::{Buffer, FileId, IoOp, batch};
use cachewright_live::log::format::GroupHeader;
use cachewright_live::log::{SegmentId, SegmentUse, open, read_log};
use cachewright_types::{Rng, Seed};

/// A world on two devices; from the start on, syncs of those that `lies` names do nothing.
fn world(seed: u64, lies: Vec<FileId>) -> (World, Vec<FileId>) {
    let (mut sim, files) = formatted(Seed(seed), 2, 16);
    let (set, found) = recovered(&mut sim, &files).unwrap();
    let state = state_of(&mut sim, &set, &found);
    sim.set_faults(Box::new(move |_, op| match op {
        IoOp::Sync { file } if lies.contains(file) => Some(Fault::Lie),
        _ => None,
    }));
    (World::new(sim, &set, found, state), files)
}

/// Writes blocks and syncs them, and has all of it done at the end.
fn work(world: &mut World, rng: &mut Rng) {
    for value in 0..rng.below(60) + 20 {
        world.write(any_block(rng, 24), value, true);
        if rng.below(3) == 0 {
            world.sync();
        }
        for _ in 0..rng.below(12) {
            world.step();
        }
        world.clean();
    }
    world.sync();
    while world.step() {}
}

/// A loss of power that takes from one device what it has not made durable; the other keeps all.
fn loss(sim: &Sim, files: &[FileId], from: FileId) -> Sim {
    let fate = |file: &FileId| if *file == from { Fate::Lost } else { Fate::Whole };
    let fates = files.iter().flat_map(|file| sim.file(*file).volatile().map(move |_| fate(file)));
    sim.crash(Seed(3), fates)
}

/// Groups that are proven to be lost, and what a start would find.
fn found(mut sim: Sim, files: &[FileId]) -> (u64, State) {
    let set = open(&mut sim, files).unwrap();
    let log = read_log(&mut sim, &set).unwrap();
    let lost_groups = log.lost_groups;
    let found = log.settle(&mut sim).unwrap();
    let again = read_log(&mut sim, &set).unwrap();
    assert_eq!(again.lost_groups, 0, "a start has looked for all of them");
    (lost_groups, state_of(&mut sim, &set, &found))
}

#[test]
fn a_sync_that_did_nothing_is_proven_by_what_the_other_device_has() {
    let (mut proven, mut older, mut unproven) = (0, 0, 0);
    for seed in 0..60 {
        let mut rng = Seed(seed).derive("lies").rng();
        let (mut world, files) = world(seed, vec![FileId(1)]);
        work(&mut world, &mut rng);
        let (lost_groups, state) = found(loss(&world.sim, &files, files[1]), &files);
        let is_older = !world.allows(&state);
        proven += u32::from(lost_groups > 0);
        older += u32::from(is_older);
        unproven += u32::from(is_older && lost_groups == 0);
    }
    assert!(older > 40 && unproven == 0, "{proven} proven, {older} older, {unproven} unproven");
}

#[test]
fn nothing_is_lost_where_devices_keep_what_they_have_synced() {
    for seed in 0..60 {
        let mut rng = Seed(seed).derive("lies").rng();
        let (mut world, files) = world(seed, Vec::new());
        work(&mut world, &mut rng);
        let (lost_groups, state) = found(loss(&world.sim, &files, files[1]), &files);
        assert_eq!(lost_groups, 0);
        assert_eq!(&state, world.state());
    }
}

/// A group in a segment without a footer: where its descriptor stands, its number, and its blocks.
struct Descriptor {
    file: FileId,
    offset: u64,
    number: u64,
    blocks: Vec<Block>,
}

/// All groups of segments without a footer, and up to which number groups are known as durable.
fn descriptors(sim: &mut Sim, files: &[FileId]) -> (Vec<Descriptor>, u64) {
    let set = open(sim, files).unwrap();
    let log = read_log(sim, &set).unwrap();
    let sealed = log.segments.iter().filter(|segment| segment.usage == SegmentUse::Sealed);
    let mut durable = sealed.map(|segment| segment.last_group).max().unwrap_or_default();
    let mut found = Vec::new();
    for (index, segment) in log.segments.iter().enumerate() {
        if segment.usage != SegmentUse::Begun {
            continue;
        }
        for page in 1..SEGMENT / BLOCK as u32 - 1 {
            let start = set.set.page(SegmentId::new(index), page);
            let bytes = batch::read(sim, [(start.file, start.offset, BLOCK)]).remove(0).unwrap();
            let Some((header, records)) = GroupHeader::decode(&bytes) else { continue };
            if header.home.generation == segment.generation {
                durable = durable.max(header.durable);
                let blocks = records
                    .iter()
                    .flat_map(|record| record.blocks().map(|number| (record.volume, number)));
                let (file, offset) = (start.file, start.offset);
                let blocks = blocks.collect();
                found.push(Descriptor { file, offset, number: header.number, blocks });
            }
        }
    }
    (found, durable)
}

/// The reading of a segment ended at the first descriptor that was damaged: durable groups behind
/// it were not found, and older content was.
#[test]
fn groups_behind_a_damaged_descriptor_are_found_and_it_is_counted() {
    let mut damaged = 0;
    for seed in 0..20 {
        let mut rng = Seed(seed).derive("lies").rng();
        let (mut world, files) = world(seed, Vec::new());
        work(&mut world, &mut rng);
        let (groups, durable) = descriptors(&mut loss(&world.sim, &files, files[1]), &files);
        for group in groups.iter().filter(|group| group.number <= durable) {
            let mut left = loss(&world.sim, &files, files[1]);
            let piece = (group.file, group.offset, Buffer::zeroed(BLOCK));
            batch::write(&mut left, [piece]).unwrap();
            let (lost_groups, state) = found(left, &files);
            assert_eq!(lost_groups, 1, "seed {seed}, group {}", group.number);
            let last = world.state();
            for block in last.keys().chain(state.keys()).filter(|b| !group.blocks.contains(b)) {
                assert_eq!(state.get(block), last.get(block), "seed {seed}, {block:?}");
            }
            damaged += 1;
        }
    }
    assert!(damaged > 20, "{damaged}");
}
