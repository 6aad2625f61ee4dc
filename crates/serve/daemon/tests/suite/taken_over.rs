//! Devices that another server takes past all locks: from another host, or by another name.

use crate::setup::{Setup, formatted, pattern};
use cachewright_daemon::LiveError;
use cachewright_daemon::offline::{self, Overwrite};
use cachewright_live::log::format::{HOLDER_OFFSET, Holder, Superblock};

/// A server of another host takes the devices of this name.
fn take(setup: &Setup, names: &[&str]) -> Vec<u8> {
    let set = Superblock::decode(&setup.content("one.img")).unwrap().set;
    let page = Holder { set, start: 77, host: 5, file_system: 6, file: 7 }.encode();
    names.iter().for_each(|name| setup.damage(name, HOLDER_OFFSET, &page));
    page
}

/// The cache's devices behind the pages of superblocks and holders.
fn logs(setup: &Setup) -> Vec<Vec<u8>> {
    let log = |name: &str| setup.content(name).split_off(2 << 20);
    ["one.img", "two.img"].map(log).into()
}

#[test]
fn a_server_whose_devices_another_one_takes_ends_without_another_write() {
    for names in [&["one.img", "two.img"][..], &["two.img"]] {
        let setup = formatted(&[]);
        let running = setup.start();
        let mut guest = running.connect("a");
        guest.write(0, &pattern(3, 40_960));
        guest.flush();
        take(&setup, names);
        let before = logs(&setup);
        // Whether a look comes first or the end: neither writes.
        let error = running.outcome().unwrap_err();
        assert!(matches!(error, LiveError::TakenOver(_)), "{error}");
        assert_eq!(error.status(), 3);
        assert!(error.to_string().contains("another server has taken the devices over"));
        assert_eq!(logs(&setup), before);
        let again = setup.start();
        assert_eq!(again.connect("a").read(0, 40_960), pattern(3, 40_960), "it was flushed");
        again.stop();
    }
}

#[test]
fn a_server_that_only_looks_ends_by_itself() {
    let setup = formatted(&[]);
    let running = setup.start();
    take(&setup, &["one.img"]);
    // It is not told to stop.
    let error = running.ended().unwrap_err();
    assert!(matches!(error, LiveError::TakenOver(_)), "{error}");
}

#[test]
fn a_start_takes_devices_from_a_server_of_another_host() {
    let setup = formatted(&[]);
    let others = take(&setup, &["one.img", "two.img"]);
    let page = |name: &str| {
        let (from, to) = (HOLDER_OFFSET as usize, HOLDER_OFFSET as usize + others.len());
        setup.content(name)[from..to].to_vec()
    };
    let running = setup.start();
    let own = page("one.img");
    assert_ne!(own, others);
    assert_eq!(page("two.img"), own);
    running.stop();
    // A page of another set, and one that is damaged, say nothing.
    let set = cachewright_live::log::format::SetId(1);
    let foreign = Holder { set, start: 78, host: 5, file_system: 6, file: 7 }.encode();
    for page in [foreign, vec![0xff; others.len()]] {
        let running = setup.start();
        setup.damage("one.img", HOLDER_OFFSET, &page);
        running.stop();
    }
}

/// The number of the start that holds the devices.
fn start_of(setup: &Setup, name: &str) -> u128 {
    let from = HOLDER_OFFSET as usize;
    Holder::decode(&setup.content(name)[from..from + 4096]).unwrap().start
}

/// A tool wrote to devices that a server of another host had, which went on over what the tool had
/// done.
#[test]
fn tools_that_write_take_devices_from_a_server_of_another_host() {
    type Tool = fn(&Setup);
    let repair: Tool = |setup| drop(offline::repair(&setup.plan().unwrap(), false).unwrap());
    let write_back: Tool = |setup| drop(offline::writeback(&setup.plan().unwrap()).unwrap());
    let format: Tool = |setup| {
        let overwrite = Overwrite { dirty: true, foreign: false };
        offline::format(&setup.plan().unwrap(), overwrite).unwrap();
    };
    for tool in [repair, write_back, format] {
        let setup = formatted(&[]);
        take(&setup, &["one.img", "two.img"]);
        tool(&setup);
        assert_ne!((start_of(&setup, "one.img"), start_of(&setup, "two.img")), (77, 77));
        assert_eq!(start_of(&setup, "one.img"), start_of(&setup, "two.img"));
        let taken = start_of(&setup, "one.img");
        tool(&setup);
        assert_eq!(start_of(&setup, "one.img"), taken, "it has the lock of the one before");
    }
}

#[test]
fn a_check_says_that_a_server_of_another_host_had_the_devices() {
    let setup = formatted(&[]);
    setup.start().stop();
    assert!(!offline::check(&setup.plan().unwrap()).unwrap().held_elsewhere);
    let page = take(&setup, &["two.img"]);
    let checked = offline::check(&setup.plan().unwrap()).unwrap();
    assert!(checked.held_elsewhere && checked.sound, "{checked:?}");
    let from = HOLDER_OFFSET as usize;
    assert_eq!(setup.content("two.img")[from..from + page.len()], page, "nothing is written");
}
