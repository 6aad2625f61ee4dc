//! Notes that go along the steps of a request: what each adds reaches the answer.
//!
//! For: a simulator's path of latencies. Must never know: time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{SHIFT, TENANT, block, fetches, rules};
use cachewright_cache::{Move, Plan};
use cachewright_steps::{Action, Fill, Outcome, Ready, Rules, Steps};
use cachewright_testkit::slots::{Never, SlotList};
use cachewright_types::{Bytes, Nanos, Op, Request};

type Noted = Steps<SlotList, u64>;

fn request(steps: &mut Noted, tag: u64, op: Op, bytes: std::ops::Range<u64>, moves: Vec<Move>) {
    let (offset, length) = (Bytes(bytes.start), Bytes(bytes.end - bytes.start));
    let request = Request { time: Nanos(0), offset, length, op, tenant: TENANT };
    steps.request(tag, &request, &Plan { moves, all_hit: false }, 100);
}

/// Ends the next step, which adds to its note if it has one; returns it, and the note before.
fn end_next(steps: &mut Noted, add: u64) -> Option<(Ready<Never>, Option<u64>)> {
    let ready = steps.next_step()?;
    let before = steps.note_mut(ready.id).map(|note| {
        *note += add;
        *note - add
    });
    steps.finish(ready.id, Outcome::Done);
    Some((ready, before))
}

/// The notes at the begin of the steps of a kind, until none is ready.
fn notes_of(steps: &mut Noted, kind: fn(&Action<Never>) -> bool) -> Vec<Option<u64>> {
    let ended = std::iter::from_fn(|| end_next(steps, 1));
    ended.filter(|(ready, _)| kind(&ready.action)).map(|(_, note)| note).collect()
}

#[test]
fn every_step_adds_to_the_note_of_the_one_before_it() {
    let rules = Rules { fill: Fill::BeforeAnswer, ..rules() };
    let mut steps = Noted::new(SlotList::new(1), &[1], rules);
    request(&mut steps, 7, Op::Read, 0..4096, fetches(0..1));
    let (fetch, note) = end_next(&mut steps, 20).unwrap();
    assert_eq!(
        (matches!(fetch.action, Action::Device { op: Op::Read, .. }), note),
        (true, Some(100))
    );
    let (fill, note) = end_next(&mut steps, 3).unwrap();
    assert_eq!((matches!(fill.action, Action::Fill { .. }), note), (true, Some(120)));
    let answers: Vec<_> = steps.drain_answers().map(|answer| (answer.tag, answer.note)).collect();
    assert_eq!(answers, [(7, 123)]);
}

/// Block 0 fills the only slot and leaves for block 1. A write waits for the slot, and so does a
/// read that is answered after its filling; any other read is answered before.
#[test]
fn the_wait_for_a_slot_is_of_a_request_that_is_answered_behind_it() {
    let whole = |number: u64| number << SHIFT..(number + 1) << SHIFT;
    let cases = [
        (Op::Write, Fill::AfterAnswer, Some(100)),
        (Op::Write, Fill::BeforeAnswer, Some(100)),
        (Op::Read, Fill::AfterAnswer, None),
        (Op::Read, Fill::BeforeAnswer, Some(100)),
    ];
    for (op, fill, expected) in cases {
        let mut steps = Noted::new(SlotList::new(1), &[1], Rules { fill, ..rules() });
        request(&mut steps, 1, Op::Write, whole(0), vec![Move::Serve(block(0))]);
        notes_of(&mut steps, |_| true);
        let comes = if op == Op::Read { fetches(1..2) } else { vec![Move::Serve(block(1))] };
        request(&mut steps, 2, op, whole(1), [vec![Move::WriteBack(block(0))], comes].concat());
        let waits = notes_of(&mut steps, |action| matches!(action, Action::WaitForSlot));
        assert_eq!(waits, [expected], "{op:?}, {fill:?}");
    }
}

/// A part of block 0 is written behind a filling that is no step of the request.
#[test]
fn the_filling_for_a_write_has_no_note() {
    let rules = Rules { fill: Fill::BeforeAnswer, ..rules() };
    let mut steps = Noted::new(SlotList::new(1), &[1], rules);
    request(&mut steps, 1, Op::Write, 0..512, fetches(0..1));
    assert_eq!(notes_of(&mut steps, |action| matches!(action, Action::Fill { .. })), [None]);
}

#[test]
fn a_resident_that_is_given_a_slot_from_outside_goes_on() {
    let mut steps = Noted::new(SlotList::new(1), &[1], rules());
    request(&mut steps, 1, Op::Write, 0..4096, vec![Move::Serve(block(0))]);
    request(&mut steps, 2, Op::Write, 4096..8192, vec![Move::Serve(block(1))]);
    let waits: fn(&Action<Never>) -> bool = |action| matches!(action, Action::WaitForSlot);
    assert_eq!(notes_of(&mut steps, waits), []);
    let resident = steps.state().residents.find(&block(1)).unwrap();
    steps.state_mut().on_granted(&[resident]);
    let (granted, note) = end_next(&mut steps, 5).unwrap();
    assert!(waits(&granted.action) && note == Some(100));
    let (write, note) = end_next(&mut steps, 0).unwrap();
    assert!(matches!(write.action, Action::Cache { op: Op::Write, .. }));
    assert_eq!(note, Some(105));
}
