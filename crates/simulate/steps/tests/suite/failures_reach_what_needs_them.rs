//! A step that fails: what needs it is told, what only comes after it goes on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use crate::support::{Done, TENANT, World, block, fetches, rules};
use cachewright_cache::{Move, Plan};
use cachewright_steps::{Damage, Failure, Outcome};
use cachewright_testkit::slots::Never;
use cachewright_types::Op;

/// Backing commands of a kind fail.
fn failing(op: Op) -> impl Fn(Done) -> Outcome {
    move |done| match done {
        Done::Backing(kind, ..) if kind == op => Outcome::Failed,
        _ => Outcome::Done,
    }
}

fn run(world: &mut World, outcome: impl Fn(Done) -> Outcome) -> Vec<Done> {
    let mut all = Vec::new();
    loop {
        let done = world.carry_out_with(&outcome);
        if done.is_empty() {
            return all;
        }
        all.extend(done);
    }
}

fn background(world: &mut World, step: Move) {
    world.steps.background(TENANT, &Plan { moves: vec![step], all_hit: true });
}

#[test]
fn a_failed_fetch_fails_its_requests_and_loses_the_block_until_it_is_written_whole() {
    let mut world = World::new(rules(), 2);
    let fetch = world.request(Op::Read, 0..4096, fetches(0..1));
    let hit = world.request(Op::Read, 0..4096, vec![Move::Serve(block(0))]);
    let other =
        world.request(Op::Read, 4096..8192, vec![Move::Bypass { tenant: TENANT, number: 1 }]);
    let outcome = |done| match done {
        Done::Backing(Op::Read, 0, _) => Outcome::Failed,
        _ => Outcome::Done,
    };
    assert_eq!(run(&mut world, outcome).len(), 2, "neither a fill nor the hit begins");
    let mut answers = world.answers();
    answers.sort_unstable();
    assert_eq!(answers, [(fetch, true), (hit, true), (other, false)]);
    let failures = world.steps.take_failures();
    assert_eq!(failures.len(), 3, "fetch, fill and hit");
    assert!(failures[..1].iter().all(|failure| failure.damage == Damage::Lost));
    assert_eq!(failures[0].blocks[0].number, Some(0));
    let late = world.request(Op::Read, 0..4096, vec![Move::Serve(block(0))]);
    let part = world.request(Op::Write, 0..512, vec![Move::Serve(block(0))]);
    assert_eq!(run(&mut world, |_| Outcome::Done), [], "the slot holds nothing to read");
    let whole = world.request(Op::Write, 0..4096, vec![Move::Serve(block(0))]);
    let read = world.request(Op::Read, 0..4096, vec![Move::Serve(block(0))]);
    assert_eq!(run(&mut world, |_| Outcome::Done).len(), 2);
    assert_eq!(world.answers(), [(late, true), (part, true), (whole, false), (read, false)]);
    assert_eq!(world.steps.audit(1, true), Ok(()));
}

/// A block that is written, evicted, and whose write-back fails.
fn held(world: &mut World) -> Failure<Never> {
    world.request(Op::Write, 0..4096, vec![Move::Serve(block(0))]);
    run(world, |_| Outcome::Done);
    background(world, Move::WriteBack(block(0)));
    run(world, failing(Op::Write));
    world.answers();
    let held = world.steps.take_failures().remove(0);
    assert_eq!((held.damage, held.blocks[0].number), (Damage::Held, Some(0)));
    assert!(world.steps.audit(0, true).is_err(), "it is held");
    held
}

fn around(number: u64) -> Vec<Move> {
    vec![Move::Bypass { tenant: TENANT, number }]
}

#[test]
fn a_failed_write_back_holds_its_slot_until_it_is_given_up() {
    let mut world = World::new(rules(), 1);
    let held = held(&mut world);
    let next = world.request(Op::Write, 8192..12288, vec![Move::Serve(block(2))]);
    assert_eq!(run(&mut world, |_| Outcome::Done), [], "the slot is in use");
    world.steps.release(held);
    let written = run(&mut world, |_| Outcome::Done);
    assert!(written.contains(&Done::Cache(Op::Write, 0, 4096)), "{written:?}");
    assert_eq!(world.answers(), [(next, false)]);
    assert_eq!(world.steps.audit(1, true), Ok(()));
}

#[test]
fn a_read_of_a_block_that_leaves_waits_for_its_write_back_and_fails_with_it() {
    let mut world = World::new(rules(), 2);
    world.request(Op::Write, 0..4096, vec![Move::Serve(block(0))]);
    run(&mut world, |_| Outcome::Done);
    background(&mut world, Move::WriteBack(block(0)));
    world.request(Op::Read, 512..1024, around(0));
    world.request(Op::Read, 0..4096, fetches(0..1));
    let done = run(&mut world, failing(Op::Write));
    let mut answers = world.answers();
    answers.retain(|answer| answer.0 > 1);
    assert!(answers.iter().all(|answer| answer.1) && answers.len() == 2, "{answers:?}");
    assert!(!done.iter().any(|done| matches!(done, Done::Backing(Op::Read, ..))), "{done:?}");
    let late = world.request(Op::Read, 0..4096, around(0));
    run(&mut world, |_| Outcome::Done);
    assert_eq!(world.answers(), [(late, true)], "the device has older content");
}

#[test]
fn what_is_written_whole_or_trimmed_after_a_failed_write_back_is_read_again() {
    for trims in [false, true] {
        let mut world = World::new(rules(), 1);
        let failure = held(&mut world);
        let part = world.request(Op::Write, 0..512, around(0));
        assert_eq!(run(&mut world, |_| Outcome::Done), [], "the rest of the block is elsewhere");
        let (op, moves) = if trims { (Op::Trim, vec![Move::Trim]) } else { (Op::Write, around(0)) };
        let later = world.request(op, 0..4096, moves);
        let read = world.request(Op::Read, 0..4096, around(0));
        let done = run(&mut world, |_| Outcome::Done);
        assert_eq!(done, [Done::Backing(op, 0, 4096), Done::Backing(Op::Read, 0, 4096)]);
        assert_eq!(world.answers(), [(part, true), (later, false), (read, false)]);
        world.steps.release(failure);
        assert_eq!(world.steps.audit(0, true), Ok(()));
    }
}

#[test]
fn a_block_without_content_holds_nothing_up() {
    let mut world = World::new(rules(), 2);
    // Its rest is fetched for a write of a part, and it is evicted before the fetch fails.
    let moves = [Move::Fetch(block(0)), Move::Fill(block(0)), Move::Serve(block(0))];
    let part = world.request(Op::Write, 0..512, moves.to_vec());
    background(&mut world, Move::WriteBack(block(0)));
    run(&mut world, failing(Op::Read));
    assert_eq!(world.answers(), [(part, true)]);
    for failure in world.steps.take_failures() {
        world.steps.release(failure);
    }
    let read = world.request(Op::Read, 0..4096, around(0));
    assert_eq!(run(&mut world, |_| Outcome::Done), [Done::Backing(Op::Read, 0, 4096)]);
    assert_eq!((world.answers(), world.steps.audit(0, true)), (vec![(read, false)], Ok(())));
}

#[test]
fn a_write_that_fails_too_leaves_the_block_held() {
    let mut world = World::new(rules(), 1);
    let failure = held(&mut world);
    world.request(Op::Write, 0..4096, around(0));
    run(&mut world, failing(Op::Write));
    assert!(world.steps.audit(0, true).is_err(), "it is held");
    world.steps.release(failure);
    assert_eq!((world.answers().len(), world.steps.audit(0, true)), (1, Ok(())));
}

#[test]
fn a_failed_cleaning_leaves_the_block_dirty_and_a_failed_read_of_it_fails_its_write() {
    for failed in [Op::Write, Op::Read] {
        let mut world = World::new(rules(), 1);
        world.request(Op::Write, 0..4096, vec![Move::Serve(block(0))]);
        run(&mut world, |_| Outcome::Done);
        background(&mut world, Move::Clean(block(0)));
        let outcome = |done| match done {
            Done::Backing(Op::Write, ..) if failed == Op::Write => Outcome::Failed,
            Done::Cache(Op::Read, ..) if failed == Op::Read => Outcome::Failed,
            _ => Outcome::Done,
        };
        let begun = run(&mut world, outcome).len();
        assert_eq!(begun, if failed == Op::Write { 2 } else { 1 });
        let failures = world.steps.take_failures();
        assert_eq!(failures.last().map(|failure| failure.damage), Some(Damage::StillDirty));
        assert_eq!((world.steps.cleaning(), world.steps.audit(1, true)), (0, Ok(())));
    }
}

#[test]
fn a_failed_trim_fails_its_request_and_later_reads_of_its_range() {
    let mut world = World::new(rules(), 1);
    let trim = world.request(Op::Trim, 0..1 << 20, vec![Move::Trim]);
    let read = world.request(Op::Read, 3 << 12..4 << 12, around(3));
    let write = world.request(Op::Write, 3 << 12..4 << 12, around(3));
    run(&mut world, failing(Op::Trim));
    let mut answers = world.answers();
    answers.sort_unstable();
    assert_eq!(answers, [(trim, true), (read, true), (write, false)]);
    assert_eq!(world.steps.audit(0, true), Ok(()));
}
