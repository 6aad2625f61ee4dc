//! Clients on real sockets, over both engines, and what a stop leaves behind.

use crate::setup::{BLOCK, MIB, formatted, pattern};
use cachewright_live::io::system::{Engine, SystemIo};

/// The engines of this machine: containers may refuse io_uring.
fn engines() -> Vec<&'static str> {
    match SystemIo::new(Engine::Uring) {
        Ok(_) => vec!["threads", "uring"],
        Err(refusal) => {
            eprintln!("skipped for uring: {refusal}");
            vec!["threads"]
        }
    }
}

#[test]
fn what_was_written_is_there_after_a_stop_and_a_start() {
    for engine in engines() {
        let setup = formatted(&[("serve.engine", engine)]);
        let running = setup.start();
        assert!(running.lines[0].starts_with("export `a`: 8MiB of "), "{:?}", running.lines);
        assert!(running.lines[1].starts_with("export `second`: 8MiB of "), "{:?}", running.lines);
        let (mut a, mut b) = (running.connect("a"), running.connect("second"));
        assert_eq!((a.size, b.size), (8 * MIB, 8 * MIB));
        let (first, second) = (pattern(1, 300 << 10), pattern(2, 10_000));
        a.write(5000, &first);
        b.write(0, &second);
        a.flush();
        assert_eq!(a.read(5000, first.len() as u64), first);
        let stopped = running.stop();
        assert!(stopped.dirty_bytes >= 300 << 10, "write-back keeps it in the cache");
        assert_eq!(stopped.cut_off, 0);
        assert!(!setup.path("live.sock").exists(), "the socket is gone");
        let running = setup.start();
        let summary = running.lines.last().unwrap();
        assert!(summary.contains(&format!("by {engine}")), "{summary}");
        let (mut a, mut b) = (running.connect("a"), running.connect("second"));
        assert_eq!(a.read(5000, first.len() as u64), first, "{engine}");
        assert_eq!(b.read(0, second.len() as u64), second, "{engine}");
        running.stop();
    }
}

#[test]
fn every_write_mode_keeps_what_was_written() {
    for mode in ["write-back", "write-through", "write-around", "read-only"] {
        let setup = formatted(&[("cache.write", mode)]);
        let running = setup.start();
        let mut a = running.connect("a");
        // Twice the cache, so that blocks leave.
        for part in 0..16 {
            a.write(part * MIB / 2, &pattern(part as u8, MIB / 2));
        }
        let stopped = running.stop();
        assert_eq!(stopped.dirty_bytes > 0, mode == "write-back", "{mode}");
        let running = setup.start();
        let mut a = running.connect("a");
        for part in 0..16 {
            assert_eq!(a.read(part * MIB / 2, MIB / 2), pattern(part as u8, MIB / 2), "{mode}");
        }
        running.stop();
    }
}

#[test]
fn a_write_mode_without_dirty_blocks_takes_over_from_write_back() {
    let setup = formatted(&[]);
    let running = setup.start();
    let data = pattern(9, 20 * BLOCK);
    running.connect("a").write(BLOCK, &data);
    assert_eq!(running.stop().dirty_bytes, 20 * BLOCK);
    let mut through = setup;
    through.settings.push(("cache.write".to_owned(), "write-through".to_owned()));
    let running = through.start();
    assert_eq!(running.connect("a").read(BLOCK, 20 * BLOCK), data);
    assert_eq!(running.stop().dirty_bytes, 0);
    let range = BLOCK as usize..21 * BLOCK as usize;
    assert_eq!(through.content("a.img")[range], data);
}

#[test]
fn a_stop_answers_what_has_arrived() {
    let setup = formatted(&[]);
    let running = setup.start();
    let mut clients: Vec<_> = (0..8).map(|_| running.connect("a")).collect();
    for (index, client) in (0..).zip(&mut clients) {
        client.write(index * MIB, &pattern(index as u8, MIB));
    }
    let stopped = running.stop();
    assert_eq!(stopped.cut_off, 0);
    let running = setup.start();
    let mut client = running.connect("");
    for index in 0..8 {
        assert_eq!(client.read(index * MIB, MIB), pattern(index as u8, MIB));
    }
    running.stop();
}

#[test]
fn a_new_tenant_is_added_and_a_dirty_one_must_stay() {
    use cachewright_daemon::{LivePlan, Server};
    let mut setup = formatted(&[]);
    let running = setup.start();
    running.connect("second").write(0, &pattern(3, BLOCK));
    running.stop();
    let without = crate::setup::STACK.split("\n[[tenant]]\nname = \"b\"").next().unwrap();
    let plan = LivePlan::read(without, &setup.path("stack.toml"), &[]).unwrap();
    let sentence = Server::start(&plan).err().unwrap().to_string();
    assert!(sentence.contains("found 4KiB of the volume `b`"), "{sentence}");
    setup.settings.push(("tenant.a.name".to_owned(), "c".to_owned()));
    let running = setup.start();
    let mut c = running.connect("c");
    c.write(BLOCK, &pattern(4, BLOCK));
    running.stop();
    let found = cachewright_daemon::offline::dump(&setup.plan().unwrap(), false).unwrap();
    let dirty: Vec<(String, u64)> =
        found.volumes.into_iter().map(|volume| (volume.name, volume.dirty_bytes)).collect();
    let named = |name: &str, bytes| (name.to_owned(), bytes);
    assert_eq!(dirty, [named("a", 0), named("b", BLOCK), named("c", BLOCK)]);
}
