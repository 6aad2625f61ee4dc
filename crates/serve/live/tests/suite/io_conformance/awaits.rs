//! Descriptors of others that are waited for: signals, and sockets that are read elsewhere.

use super::conformance;
use super::rigs::{Rig, run_one, step, step_until_done};
use cachewright_live::io::{IoOp, Token};
use rustix::event::{EventfdFlags, eventfd};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

fn signal() -> Arc<OwnedFd> {
    Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap())
}

fn raise(source: &Arc<OwnedFd>) {
    rustix::io::write(source, &1_u64.to_ne_bytes()).unwrap();
}

fn a_signal_ends_the_wait_for_it_and_no_other(rig: &mut (impl Rig + ?Sized)) {
    let [one, other] = [(); 2].map(|()| signal());
    rig.io().submit(Token(1), IoOp::Await { source: one.clone() });
    rig.io().submit(Token(2), IoOp::Await { source: other.clone() });
    assert!(step(rig).is_empty(), "nothing is raised");
    raise(&other);
    let done = step_until_done(rig);
    assert_eq!((done.len(), done[0].token, done[0].error), (1, Token(2), None));
    // It is not taken back by the wait: another one ends at once.
    assert_eq!(run_one(rig, IoOp::Await { source: other }).error, None);
    raise(&one);
    assert_eq!(step_until_done(rig)[0].token, Token(1));
}

fn bytes_and_the_end_of_a_socket_end_the_wait(rig: &mut (impl Rig + ?Sized)) {
    let (own, mut peer) = UnixStream::pair().unwrap();
    let source = Arc::new(OwnedFd::from(own.try_clone().unwrap()));
    rig.io().submit(Token(1), IoOp::Await { source: source.clone() });
    assert!(step(rig).is_empty());
    peer.write_all(b"a").unwrap();
    assert_eq!(step_until_done(rig)[0].token, Token(1));
    (&own).read_exact(&mut [0]).unwrap();
    rig.io().submit(Token(2), IoOp::Await { source });
    assert!(step(rig).is_empty());
    drop(peer);
    assert_eq!(step_until_done(rig)[0].token, Token(2));
}

fn what_is_awaited_when_all_ends_ends_with_it(rig: &mut (impl Rig + ?Sized)) {
    let source = signal();
    let weak = Arc::downgrade(&source);
    rig.io().submit(Token(1), IoOp::Await { source });
    assert!(step(rig).is_empty());
    assert!(weak.upgrade().is_some(), "it stays open as long as it is waited for");
}

conformance!(
    a_signal_ends_the_wait_for_it_and_no_other,
    bytes_and_the_end_of_a_socket_end_the_wait,
    what_is_awaited_when_all_ends_ends_with_it,
);
