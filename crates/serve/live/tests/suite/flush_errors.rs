//! Answered writes that are lost before a flush: each client that may count on them is told.

use crate::block_world::BLOCK;
use crate::bypass::{Failing, fail_device};
use crate::guests::{Guest, Served, node_with};
use cachewright_live::io::sim::Fault;
use cachewright_live::io::{IoError, IoOp};
use cachewright_nbd::{Errno, NbdCommand, Range};

fn served() -> Served {
    node_with(|settings| settings.max_connections = 12)
}

fn write(served: &mut Served, guest: &mut Guest, cookie: u64, block: u64) -> Result<(), Errno> {
    let range = Range { offset: block * BLOCK, length: BLOCK };
    served.request(guest, cookie, NbdCommand::Write(range), &[7; BLOCK as usize]);
    guest.done[&cookie]
}

/// What a flush of the client, and the next one, are answered with.
fn flush_twice(served: &mut Served, guest: &mut Guest, cookie: u64) -> [Result<(), Errno>; 2] {
    [cookie, cookie + 1].map(|cookie| {
        served.request(guest, cookie, NbdCommand::Flush, &[]);
        guest.done[&cookie]
    })
}

const TOLD_ONCE: [Result<(), Errno>; 2] = [Err(Errno::Io), Ok(())];
const NOT_TOLD: [Result<(), Errno>; 2] = [Ok(()), Ok(())];

/// The segments of the cache's device are gone from now on, and the server finds out.
fn lose_cache(served: &mut Served) {
    let device = served.device;
    fail_device(&mut served.sim, device, Failing::SegmentsGone, 0);
    let mut other = served.connect("volume-1");
    assert_eq!(write(served, &mut other, 1, 0), Ok(()), "it was under way");
    assert_eq!(flush_twice(served, &mut other, 2), NOT_TOLD, "nothing answered was lost");
}

#[test]
fn each_connection_that_was_open_at_a_loss_is_told_by_its_next_flush_once() {
    let mut served = served();
    let [mut one, mut two, mut three] = [(); 3].map(|()| served.connect("volume-0"));
    assert_eq!(write(&mut served, &mut one, 1, 3), Ok(()));
    lose_cache(&mut served);
    assert_eq!(write(&mut served, &mut two, 1, 5), Ok(()), "it goes past the cache");
    assert_eq!(flush_twice(&mut served, &mut two, 2), TOLD_ONCE);
    assert_eq!(flush_twice(&mut served, &mut one, 2), TOLD_ONCE);
    // A change that is to be durable makes the same promise.
    for (cookie, expected) in [(1, Err(Errno::Io)), (2, Ok(()))] {
        served.write_durably(&mut three, cookie, 6 * BLOCK, &[8; BLOCK as usize]);
        assert_eq!(three.done[&cookie], expected);
    }
    assert_eq!(flush_twice(&mut served, &mut three, 3), NOT_TOLD);
}

#[test]
fn a_client_that_comes_back_is_told_until_what_was_lost_is_overwritten() {
    let mut served = served();
    let mut one = served.connect("volume-0");
    let mut patient = served.connect("volume-0");
    assert_eq!(write(&mut served, &mut one, 1, 3), Ok(()));
    lose_cache(&mut served);
    served.sim.sockets().client_closes(one.socket);
    served.settle();
    let mut again = served.connect("volume-0");
    assert_eq!(flush_twice(&mut served, &mut again, 1), TOLD_ONCE);
    let mut restoring = served.connect("volume-0");
    assert_eq!(write(&mut served, &mut restoring, 1, 3), Ok(()));
    assert_eq!(flush_twice(&mut served, &mut restoring, 2), NOT_TOLD);
    let mut late = served.connect("volume-0");
    assert_eq!(flush_twice(&mut served, &mut late, 1), NOT_TOLD);
    assert_eq!(flush_twice(&mut served, &mut patient, 1), TOLD_ONCE, "it was open");
}

#[test]
fn a_loss_that_none_was_told_of_is_told_to_those_that_come_later() {
    let mut served = served();
    let mut one = served.connect("volume-0");
    assert_eq!(write(&mut served, &mut one, 1, 3), Ok(()));
    lose_cache(&mut served);
    assert_eq!(write(&mut served, &mut one, 2, 3), Ok(()));
    served.sim.sockets().client_closes(one.socket);
    served.settle();
    let mut late = served.connect("volume-0");
    assert_eq!(flush_twice(&mut served, &mut late, 1), TOLD_ONCE);
    let mut later = served.connect("volume-0");
    assert_eq!(flush_twice(&mut served, &mut later, 1), NOT_TOLD, "another was told");
}

#[test]
fn content_that_was_durable_or_written_back_fails_no_flush() {
    let mut served = served();
    let [mut one, mut two] = [(); 2].map(|()| served.connect("volume-0"));
    assert_eq!(write(&mut served, &mut one, 1, 3), Ok(()));
    let device = served.device;
    // It can be read, so that all of it is brought to the backing device.
    fail_device(&mut served.sim, device, Failing::Segments, 0);
    assert_eq!(write(&mut served, &mut two, 1, 4), Ok(()), "it was under way");
    for guest in [&mut one, &mut two] {
        assert_eq!(flush_twice(&mut served, guest, 2), NOT_TOLD);
    }
}

/// A flush that fails by itself tells its client, too, and the others are told by theirs.
#[test]
fn an_error_of_a_backing_device_is_told_to_all() {
    let mut served = served();
    let [mut one, mut two] = [(); 2].map(|()| served.connect("volume-0"));
    assert_eq!(write(&mut served, &mut one, 1, 3), Ok(()));
    lose_cache(&mut served);
    assert_eq!(write(&mut served, &mut one, 2, 5), Ok(()));
    served.sim.set_faults(Box::new(|_, op| {
        matches!(op, IoOp::Sync { .. }).then_some(Fault::Error(IoError::IO))
    }));
    for guest in [&mut two, &mut one] {
        assert_eq!(
            flush_twice(&mut served, guest, 10),
            [Err(Errno::Io); 2],
            "it is served no more"
        );
    }
}
