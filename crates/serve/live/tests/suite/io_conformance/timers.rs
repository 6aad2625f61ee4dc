//! Timers: order, and the clock.

use super::conformance;
use super::rigs::{Rig, run, run_one};
use cachewright_live::io::{Buffer, Done, IoOp, Output, Token};
use std::sync::Arc;

fn timers_end_in_their_order_and_not_early(rig: &mut (impl Rig + ?Sized)) {
    let start_ns = rig.io().now_ns();
    let delays_ms = [4, 0, 3, 1, 2];
    for (number, delay_ms) in delays_ms.into_iter().enumerate() {
        let at_ns = start_ns + 20_000_000 + delay_ms * 20_000_000;
        rig.io().submit(Token(number as u64), IoOp::Timer { at_ns });
    }
    let mut order = Vec::new();
    while order.len() < delays_ms.len() {
        let mut done = Vec::new();
        rig.io().wait(&mut done);
        let now_ns = rig.io().now_ns();
        for ended in done {
            assert!(matches!((ended.output, ended.error), (Output::Nothing, None)));
            let number = ended.token.0 as usize;
            assert!(now_ns >= start_ns + 20_000_000 + delays_ms[number] * 20_000_000);
            order.push(number);
        }
    }
    assert_eq!(order, [1, 3, 4, 2, 0]);
}

fn a_timer_in_the_past_ends_at_once(rig: &mut (impl Rig + ?Sized)) {
    let now_ns = rig.io().now_ns();
    assert_eq!(run_one(rig, IoOp::Timer { at_ns: 0 }).error, None);
    assert_eq!(run_one(rig, IoOp::Timer { at_ns: now_ns }).error, None);
}

fn timers_end_beside_what_never_ends(rig: &mut (impl Rig + ?Sized)) {
    let listener = rig.listener();
    rig.io().submit(Token(0), IoOp::Accept { listener });
    for number in 1..20 {
        let at_ns = rig.io().now_ns() + 100_000;
        rig.io().submit(Token(number), IoOp::Timer { at_ns });
        let mut done = Vec::new();
        rig.io().wait(&mut done);
        assert_eq!(done.iter().map(|done| done.token).collect::<Vec<_>>(), [Token(number)]);
    }
    let client = rig.connect(listener);
    let mut done = Vec::new();
    rig.io().wait(&mut done);
    assert!(matches!(done[..], [ref done] if matches!(done.output, Output::Socket(_))));
    rig.client_closes(client);
}

fn files_go_on_while_a_timer_waits(rig: &mut (impl Rig + ?Sized)) {
    let file = rig.file(4096);
    let at_ns = rig.io().now_ns() + 5_000_000;
    let ops = vec![
        IoOp::Timer { at_ns },
        IoOp::Write { file, offset: 0, buffer: Arc::new(Buffer::zeroed(4096)) },
        IoOp::Sync { file },
    ];
    assert!(run(rig, ops).iter().all(|done| done.error.is_none()));
    assert!(rig.io().now_ns() >= at_ns);
}

fn timers_that_are_due_do_not_keep_files_waiting(rig: &mut (impl Rig + ?Sized)) {
    let file = rig.file(4096);
    rig.io().submit(Token(0), IoOp::Read { file, offset: 0, buffer: Buffer::zeroed(4096) });
    let mut done: Vec<Done> = Vec::new();
    let mut number = 0;
    // It ends because the read does.
    while !done.iter().any(|done| done.token == Token(0)) {
        number += 1;
        rig.io().submit(Token(number), IoOp::Timer { at_ns: 0 });
        rig.io().wait(&mut done);
    }
    while done.len() as u64 <= number {
        rig.io().wait(&mut done);
    }
    assert!(done.iter().all(|done| done.error.is_none()));
}

fn the_clock_never_goes_back_and_waiting_for_nothing_returns(rig: &mut (impl Rig + ?Sized)) {
    let mut before_ns = rig.io().now_ns();
    for _ in 0..1000 {
        let mut done = Vec::new();
        rig.io().wait(&mut done);
        assert!(done.is_empty());
        let now_ns = rig.io().now_ns();
        assert!(now_ns >= before_ns);
        before_ns = now_ns;
    }
}

conformance!(
    timers_end_in_their_order_and_not_early,
    a_timer_in_the_past_ends_at_once,
    timers_end_beside_what_never_ends,
    files_go_on_while_a_timer_waits,
    timers_that_are_due_do_not_keep_files_waiting,
    the_clock_never_goes_back_and_waiting_for_nothing_returns,
);
