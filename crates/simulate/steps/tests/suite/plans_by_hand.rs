//! Plans by hand: which commands they become, in which order they may begin.
//!
//! For: the rules of plans and of their commands. Must never know: time, devices.

use crate::support::{Done, SHIFT, TENANT, World, block, fetches, rules};
use cachewright_cache::{Move, Plan};
use cachewright_steps::{Decision, Rules};
use cachewright_types::{Bytes, Nanos, Op, Request};

#[test]
fn neighbours_are_written_by_one_command_and_read_by_one_where_they_lie_side_by_side() {
    let mut world = World::new(rules(), 8);
    // Blocks 5, 6, 9 and 7 lie in slots 0 to 3.
    for number in [5, 6, 9, 7] {
        let bytes = u64::from(number) << SHIFT..(u64::from(number) + 1) << SHIFT;
        world.request(Op::Write, bytes, vec![Move::Serve(block(number))]);
    }
    world.carry_out();
    let moves = [5, 6, 9, 7].map(|number| Move::WriteBack(block(number))).to_vec();
    world.steps.background(TENANT, &Plan { moves, all_hit: true });
    let read = |slot, blocks: u64| Done::Cache(Op::Read, slot, blocks << SHIFT);
    let write = |number, blocks: u64| Done::Backing(Op::Write, number, blocks << SHIFT);
    assert_eq!(world.carry_out(), [read(0, 2), read(3, 1), read(2, 1)]);
    assert_eq!(world.carry_out(), [write(5, 3), write(9, 1)]);
    assert_eq!(world.steps.audit(0, true), Ok(()));
}

#[test]
fn a_block_that_stays_is_cleaned_and_counted_meanwhile() {
    let mut world = World::new(rules(), 1);
    world.request(Op::Write, 0..4096, vec![Move::Serve(block(0))]);
    let mut dirty = std::collections::VecDeque::new();
    let plan = Plan { moves: vec![Move::Serve(block(0))], all_hit: true };
    world.steps.note_served(&plan, &mut dirty);
    assert!(world.steps.stays(&dirty[0]));
    world.carry_out();
    world.steps.clean(&dirty[0]);
    assert_eq!((world.steps.cleaning(), world.carry_out().len()), (1, 1));
    assert_eq!(world.carry_out(), [Done::Backing(Op::Write, 0, 4096)]);
    assert_eq!((world.steps.cleaning(), world.steps.audit(1, true)), (0, Ok(())));
    world.steps.background(TENANT, &Plan { moves: vec![Move::Drop(block(0))], all_hit: true });
    assert!(!world.steps.stays(&dirty[0]));
}

#[test]
fn blocks_in_a_row_are_one_command_and_are_served_while_they_are_filled() {
    let mut world = World::new(rules(), 4);
    world.request(Op::Read, 0..8192, fetches(0..2));
    assert_eq!(world.steps.in_flight_blocks(), 0);
    world.request(Op::Read, 0..8192, vec![Move::Serve(block(0)), Move::Serve(block(1))]);
    assert_eq!(world.steps.in_flight_blocks(), 2, "they are still being read");
    assert_eq!(world.carry_out(), [Done::Backing(Op::Read, 0, 8192)]);
    let served = [Done::Cache(Op::Write, 0, 8192), Done::Pass, Done::Pass];
    assert_eq!(world.carry_out(), served, "no read of the cache device is needed");
    world.request(Op::Read, 512..4608, vec![Move::Serve(block(0)), Move::Serve(block(1))]);
    assert_eq!(world.carry_out(), [Done::Cache(Op::Read, 0, 4096)], "the bytes asked for");
    assert_eq!(world.steps.state().graph.open(), 0);
}

#[test]
fn an_evicted_dirty_block_is_written_back_before_it_is_read_again() {
    let mut world = World::new(rules(), 1);
    world.request(Op::Write, 0..4096, vec![Move::Serve(block(0))]);
    world.carry_out();
    let mut moves = vec![Move::WriteBack(block(0))];
    moves.extend(fetches(1..2));
    world.request(Op::Read, 4096..8192, moves);
    let begun = [Done::Cache(Op::Read, 0, 4096), Done::Backing(Op::Read, 1, 4096)];
    assert_eq!(world.carry_out(), begun, "the fetch waits for no slot");
    world.request(Op::Read, 0..4096, vec![Move::Bypass { tenant: TENANT, number: 0 }]);
    assert_eq!(world.carry_out(), [Done::Backing(Op::Write, 0, 4096)], "the slot comes free");
    let rest = world.carry_out();
    assert!(rest.contains(&Done::Backing(Op::Read, 0, 4096)), "{rest:?}");
    assert_eq!(world.carry_out(), [Done::Cache(Op::Write, 0, 4096)], "then the fill begins");
    assert_eq!(world.steps.audit(1, true), Ok(()));
}

#[test]
fn a_decision_holds_up_the_request_or_only_its_filling() {
    let rules = |decision| Rules { decision: Some(decision), ..rules() };
    let mut whole = World::new(rules(Decision::BeforeRequest), 1);
    whole.request(Op::Read, 0..4096, fetches(0..1));
    assert_eq!(whole.carry_out(), [Done::Decide]);
    assert_eq!(whole.carry_out(), [Done::Backing(Op::Read, 0, 4096)]);
    let mut filling = World::new(rules(Decision::BeforeFill), 1);
    filling.request(Op::Read, 0..4096, fetches(0..1));
    assert_eq!(filling.carry_out(), [Done::Decide, Done::Backing(Op::Read, 0, 4096)]);
    assert_eq!(filling.carry_out(), [Done::Cache(Op::Write, 0, 4096)]);
}

#[test]
fn what_goes_around_the_cache_is_joined_by_number_and_ordered_by_block() {
    let mut world = World::new(rules(), 1);
    let around = |number| Move::Bypass { tenant: TENANT, number };
    world.request(Op::Write, 5 << SHIFT..10 << SHIFT, [5, 6, 9].map(around).to_vec());
    world.request(Op::Read, 6 << SHIFT..7 << SHIFT, vec![around(6)]);
    let writes = [Done::Backing(Op::Write, 5, 8192), Done::Backing(Op::Write, 9, 4096)];
    assert_eq!(world.carry_out(), writes);
    assert_eq!(world.carry_out(), [Done::Backing(Op::Read, 6, 4096)]);
    let length = 1 << SHIFT;
    world.request(Op::Trim, 0..length, vec![Move::Trim]);
    world.request(Op::Trim, 0..0, vec![Move::Trim]);
    assert_eq!(world.carry_out(), [Done::Backing(Op::Trim, 0, length)], "an empty trim is none");
}

#[test]
fn a_trim_waits_for_a_write_back_and_a_later_write_for_the_trim() {
    let mut world = World::new(rules(), 2);
    world.request(Op::Write, 0..4096, vec![Move::Serve(block(0))]);
    world.carry_out();
    world.steps.background(TENANT, &Plan { moves: vec![Move::WriteBack(block(0))], all_hit: true });
    world.request(Op::Trim, 0..1 << 40, vec![Move::Trim]);
    let around = |number| Move::Bypass { tenant: TENANT, number };
    world.request(Op::Write, 0..4096, vec![around(0)]);
    world.request(Op::Read, 1 << 41..(1 << 41) + 4096, vec![around(1 << 29)]);
    let begun = [Done::Cache(Op::Read, 0, 4096), Done::Backing(Op::Read, 1 << 29, 4096)];
    assert_eq!(world.carry_out(), begun, "a read beyond the trim waits for nothing");
    assert_eq!(world.carry_out(), [Done::Backing(Op::Write, 0, 4096)], "the write-back");
    assert_eq!(world.carry_out(), [Done::Backing(Op::Trim, 0, 1 << 40)]);
    assert_eq!(world.carry_out(), [Done::Backing(Op::Write, 0, 4096)], "the later write");
    assert_eq!(world.steps.audit(0, true), Ok(()));
}

#[test]
fn a_block_that_leaves_while_it_is_fetched_is_written_back_from_the_cache() {
    let mut world = World::new(rules(), 2);
    world.request(Op::Read, 0..4096, fetches(0..1));
    world.steps.background(TENANT, &Plan { moves: vec![Move::WriteBack(block(0))], all_hit: true });
    assert_eq!(world.carry_out(), [Done::Backing(Op::Read, 0, 4096)]);
    assert_eq!(world.carry_out(), [Done::Cache(Op::Write, 0, 4096)], "the write-back reads it");
    assert_eq!(world.carry_out(), [Done::Cache(Op::Read, 0, 4096)]);
    assert_eq!(world.carry_out(), [Done::Backing(Op::Write, 0, 4096)]);
    assert_eq!(world.steps.audit(0, true), Ok(()));
}

#[test]
fn steps_carry_the_number_of_their_decision_and_ranges_end_at_the_last_address() {
    let mut world = World::new(rules(), 2);
    world.request(Op::Read, 0..4096, fetches(0..1));
    let around = Move::Bypass { tenant: TENANT, number: (1 << 52) - 1 };
    let request = Request {
        time: Nanos(0),
        offset: Bytes(u64::MAX - 4095),
        length: Bytes(1 << 20),
        op: Op::Write,
        tenant: TENANT,
    };
    world.steps.request(9, &request, &Plan { moves: vec![around], all_hit: false }, ());
    let ready: Vec<_> = std::iter::from_fn(|| world.steps.next_step()).collect();
    let numbers: Vec<u64> = ready.iter().map(|step| step.decision).collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(world.place(&ready[1]), Done::Backing(Op::Write, (1 << 52) - 1, 4095));
}
