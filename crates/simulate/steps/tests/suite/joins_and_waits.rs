//! By hand: which blocks become one command, what each command waits for, and what a request needs.
//!
//! For: the rules of commands at their edges. Must never know: time, devices.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Done, SHIFT, TENANT, World, block, fetches, rules};
use cachewright_cache::{Move, Plan};
use cachewright_steps::{Damage, Fill, Outcome, Rules};
use cachewright_types::Op;
use std::collections::VecDeque;

/// Bytes of a block.
const BLOCK: u64 = 1 << SHIFT;

fn serves(ids: &[u32]) -> Vec<Move> {
    ids.iter().map(|id| Move::Serve(block(*id))).collect()
}

fn read(slot: u32, blocks: u64) -> Done {
    Done::Cache(Op::Read, slot, blocks * BLOCK)
}

fn write(slot: u32, blocks: u64) -> Done {
    Done::Cache(Op::Write, slot, blocks * BLOCK)
}

/// Blocks written one after the other: they lie in slots 0, 1, 2 and so on.
fn world_of(ids: &[u32], slots: u32) -> World {
    let mut world = World::new(rules(), slots);
    for id in ids {
        let start = u64::from(*id) * BLOCK;
        world.request(Op::Write, start..start + BLOCK, serves(&[*id]));
    }
    finish(&mut world, |_| Outcome::Done);
    world.answers();
    world
}

/// Ends all steps, and all that come behind them.
fn finish(world: &mut World, outcome: impl Fn(Done) -> Outcome) -> Vec<Done> {
    let rounds = std::iter::from_fn(|| Some(world.carry_out_with(&outcome)));
    rounds.take(99).take_while(|done| !done.is_empty()).flatten().collect()
}

fn background(world: &mut World, moves: Vec<Move>) {
    world.steps.background(TENANT, &Plan { moves, all_hit: true });
}

#[test]
fn three_blocks_in_a_row_are_one_command() {
    let mut world = World::new(rules(), 3);
    world.request(Op::Read, 0..3 * BLOCK, fetches(0..3));
    assert_eq!(world.carry_out(), [Done::Backing(Op::Read, 0, 3 * BLOCK)]);
    assert_eq!(world.carry_out(), [write(0, 3)]);
    world.request(Op::Write, 0..3 * BLOCK, serves(&[0, 1, 2]));
    world.request(Op::Read, 0..3 * BLOCK, serves(&[0, 1, 2]));
    assert_eq!(world.carry_out(), [write(0, 3)]);
    assert_eq!(world.carry_out(), [read(0, 1), read(1, 1), read(2, 1)], "each waited by itself");
    world.request(Op::Read, 0..3 * BLOCK, serves(&[0, 1, 2]));
    assert_eq!(world.carry_out(), [read(0, 3)]);
}

/// Blocks 5, 6, 8, 7 and 9 lie in slots 0 to 4.
#[test]
fn a_run_ends_at_another_number_another_slot_and_another_kind() {
    let mut world = world_of(&[5, 6, 8, 7, 9], 6);
    world.request(Op::Read, 5 * BLOCK..10 * BLOCK, serves(&[5, 6, 7, 8, 9]));
    assert_eq!(world.carry_out(), [read(0, 2), read(3, 1), read(2, 1), read(4, 1)]);
    world.request(Op::Read, 5 * BLOCK..9 * BLOCK, serves(&[6, 8]));
    assert_eq!(world.carry_out(), [read(1, 1), read(2, 1)], "side by side, and no neighbours");
    // Block 10 is missing, and gets the slot behind block 9.
    world.request(Op::Read, 9 * BLOCK..11 * BLOCK, [serves(&[9]), fetches(10..11)].concat());
    assert_eq!(world.carry_out(), [read(4, 1), Done::Backing(Op::Read, 10, BLOCK)]);
    assert_eq!(world.carry_out(), [write(5, 1)]);
}

#[test]
fn a_block_that_is_being_written_is_read_by_itself() {
    for written in [0, 1] {
        let mut world = world_of(&[0, 1], 2);
        let start = u64::from(written) * BLOCK;
        world.request(Op::Write, start..start + BLOCK, serves(&[written]));
        world.request(Op::Read, 0..2 * BLOCK, serves(&[0, 1]));
        assert_eq!(world.carry_out(), [write(written, 1), read(1 - written, 1)]);
        assert_eq!(world.carry_out(), [read(written, 1)]);
    }
}

#[test]
fn a_miss_before_a_hit_hides_no_hit() {
    let mut world = world_of(&[1], 2);
    world.request(Op::Read, 0..2 * BLOCK, [fetches(0..1), serves(&[1])].concat());
    assert_eq!(world.carry_out(), [Done::Backing(Op::Read, 0, BLOCK), read(0, 1)]);
}

#[test]
fn a_read_miss_is_answered_before_or_after_it_is_put_into_the_cache() {
    for fill in [Fill::AfterAnswer, Fill::BeforeAnswer] {
        let mut world = World::new(Rules { fill, ..rules() }, 2);
        world.request(Op::Read, 0..BLOCK, fetches(0..1));
        assert_eq!(world.carry_out(), [Done::Backing(Op::Read, 0, BLOCK)]);
        let at_once = if fill == Fill::AfterAnswer { vec![(1, false)] } else { vec![] };
        assert_eq!(world.answers(), at_once);
        assert_eq!(world.carry_out(), [write(0, 1)]);
        assert_eq!(world.answers().len(), 1 - at_once.len());
    }
}

/// A request has hit a block that is still being read: neither a block that is there, nor one that
/// is being written, nor what no request asks for.
#[test]
fn only_blocks_that_are_being_read_are_in_flight() {
    let mut world = world_of(&[0], 3);
    let mut in_flight = |op, bytes, moves| {
        world.request(op, bytes, moves);
        world.steps.in_flight_blocks()
    };
    assert_eq!(in_flight(Op::Read, 0..BLOCK, serves(&[0])), 0);
    assert_eq!(in_flight(Op::Write, 0..BLOCK, serves(&[0])), 0);
    assert_eq!(in_flight(Op::Read, 0..BLOCK, serves(&[0])), 0, "it is being written");
    assert_eq!(in_flight(Op::Read, BLOCK..3 * BLOCK, fetches(1..3)), 0);
    assert_eq!(in_flight(Op::Write, BLOCK..BLOCK + 512, serves(&[1])), 0);
    assert_eq!(in_flight(Op::Read, BLOCK..2 * BLOCK, serves(&[1])), 0, "it is written in part");
    assert_eq!(in_flight(Op::Read, 2 * BLOCK..3 * BLOCK, serves(&[2])), 1);
    background(&mut world, serves(&[2]));
    assert_eq!(world.steps.in_flight_blocks(), 1, "of the last request");
}

#[test]
fn a_lost_block_fails_what_touches_it_and_nothing_else() {
    let mut world = world_of(&[1], 2);
    world.request(Op::Read, 0..BLOCK, fetches(0..1));
    let fails = |done| {
        if done == Done::Backing(Op::Read, 0, BLOCK) { Outcome::Failed } else { Outcome::Done }
    };
    finish(&mut world, fails);
    world.answers();
    let requests = [
        (Op::Read, BLOCK..2 * BLOCK, vec![1], false),
        (Op::Write, BLOCK..BLOCK + 512, vec![1], false),
        (Op::Read, 0..2 * BLOCK, vec![0, 1], true),
        (Op::Write, 0..512, vec![0], true),
    ];
    for (op, bytes, ids, failed) in requests {
        let tag = world.request(op, bytes.clone(), serves(&ids));
        finish(&mut world, |_| Outcome::Done);
        assert_eq!(world.answers(), [(tag, failed)], "{op:?} {bytes:?}");
    }
}

/// Block 2 is held: its write-back has failed. A run that ends or begins within it fails; one that
/// covers it does not, and the block is then on its device.
#[test]
fn a_write_round_the_cache_needs_the_blocks_that_it_covers_in_part() {
    let around = |numbers: &[u64]| {
        numbers.iter().map(|number| Move::Bypass { tenant: TENANT, number: *number }).collect()
    };
    let write_fails = |done| match done {
        Done::Backing(Op::Write, ..) => Outcome::Failed,
        _ => Outcome::Done,
    };
    let mut world = world_of(&[2], 1);
    background(&mut world, vec![Move::WriteBack(block(2))]);
    finish(&mut world, write_fails);
    let requests = [
        (BLOCK..2 * BLOCK + 512, vec![1, 2], true),
        (2 * BLOCK + 512..5 * BLOCK, vec![2, 3, 4], true),
        (BLOCK..3 * BLOCK, vec![1, 2], false),
        (2 * BLOCK..2 * BLOCK + 512, vec![2], false),
    ];
    for (bytes, numbers, failed) in requests {
        let tag = world.request(Op::Write, bytes.clone(), around(&numbers));
        finish(&mut world, |_| Outcome::Done);
        assert_eq!(world.answers(), [(tag, failed)], "{bytes:?}");
    }
}

/// The write-back is under way: a write of a part waits for it and fails with it.
#[test]
fn a_write_of_a_part_fails_with_the_write_back_that_it_waits_for() {
    let mut world = world_of(&[2], 1);
    background(&mut world, vec![Move::WriteBack(block(2))]);
    let around = vec![Move::Bypass { tenant: TENANT, number: 2 }];
    let tag = world.request(Op::Write, 2 * BLOCK..2 * BLOCK + 512, around);
    let fails = |done| {
        if done == Done::Backing(Op::Write, 2, BLOCK) { Outcome::Failed } else { Outcome::Done }
    };
    assert_eq!(finish(&mut world, fails), [read(0, 1), Done::Backing(Op::Write, 2, BLOCK)]);
    assert_eq!(world.answers(), [(tag, true)]);
}

/// A cache of one block: block 0 is written and leaves within one request.
#[test]
fn a_block_that_a_plan_writes_and_evicts_is_written_before_it_is_written_back() {
    let mut world = World::new(rules(), 1);
    let moves = [serves(&[0]), vec![Move::WriteBack(block(0))], serves(&[1])].concat();
    world.request(Op::Write, 0..2 * BLOCK, moves);
    assert_eq!(world.carry_out(), [write(0, 1)]);
    assert_eq!(world.carry_out(), [read(0, 1)]);
    assert_eq!(world.carry_out(), [Done::Backing(Op::Write, 0, BLOCK)]);
    assert_eq!(world.carry_out(), [Done::Pass], "the slot is there");
    assert_eq!((world.carry_out(), world.answers()), (vec![write(0, 1)], vec![(1, false)]));
    assert_eq!(world.steps.audit(1, true), Ok(()));
}

/// The fetch is of the plan that evicts the block: its end puts nothing on the device.
#[test]
fn a_fetch_that_ends_leaves_its_block_among_those_that_leave() {
    let mut world = World::new(rules(), 1);
    let moves = [fetches(0..1), vec![Move::WriteBack(block(0))], serves(&[1])].concat();
    world.request(Op::Write, 512..2 * BLOCK, moves);
    let write_fails = |done| match done {
        Done::Backing(Op::Write, ..) => Outcome::Failed,
        _ => Outcome::Done,
    };
    finish(&mut world, write_fails);
    assert_eq!(world.steps.take_failures()[0].damage, Damage::Held);
    world.answers();
    let late = world.request(Op::Read, 0..BLOCK, vec![Move::Bypass { tenant: TENANT, number: 0 }]);
    finish(&mut world, |_| Outcome::Done);
    assert_eq!(world.answers(), [(late, true)], "the device has older content");
}

/// A read or write round the cache that fails harms no cached block.
#[test]
fn what_fails_beside_the_cache_loses_and_holds_nothing() {
    for op in [Op::Read, Op::Write] {
        let mut world = world_of(&[0], 1);
        let around = vec![Move::Bypass { tenant: TENANT, number: 7 }];
        world.request(op, 7 * BLOCK..8 * BLOCK, around);
        finish(&mut world, |_| Outcome::Failed);
        let failures = world.steps.take_failures();
        assert_eq!(failures.iter().map(|found| found.damage).collect::<Vec<_>>(), [Damage::None]);
        assert_eq!((failures[0].blocks.len(), world.steps.audit(1, true)), (0, Ok(())));
    }
}

#[test]
fn a_cleaning_is_of_the_last_decision_and_what_is_open_is_counted() {
    let mut world = world_of(&[0, 1, 2], 4);
    let mut dirty = VecDeque::new();
    world.steps.note_served(&Plan { moves: serves(&[1]), all_hit: true }, &mut dirty);
    world.steps.clean(&dirty[0]);
    assert_eq!(
        world.steps.audit(3, true),
        Err("0 requests, 2 steps, 1 writes, 1 cleanings open".to_owned())
    );
    assert_eq!(world.steps.audit(3, false), Ok(()));
    let ready = world.steps.next_step().unwrap();
    assert_eq!(ready.decision, 3, "three plans until now");
    world.steps.finish(ready.id, Outcome::Done);
    finish(&mut world, |_| Outcome::Done);
    assert_eq!(world.steps.audit(3, true), Ok(()));
    background(&mut world, fetches(3..4)[..2].to_vec());
    assert_eq!(
        world.steps.audit(4, true),
        Err("0 requests, 2 steps, 0 writes, 0 cleanings open".to_owned())
    );
    assert_eq!(world.steps.audit(3, true), Err("4 stay, the cache holds 3".to_owned()));
}
