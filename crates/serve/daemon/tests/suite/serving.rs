//! Clients on real sockets, over both engines, and what a stop leaves behind.

use crate::setup::{BLOCK, MIB, engines, formatted, pattern};
use cachewright_daemon::{Server, Severity, offline};
use cachewright_nbd::Errno;
use cachewright_nbd::protocol::Format;
use std::fs::File;
use std::sync::atomic::Ordering;

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

/// Lengths beyond 32 bits, which only extended headers can say.
#[test]
fn ranges_beyond_four_gibibytes_are_zeroed_and_trimmed() {
    let long = 5 << 30;
    for engine in engines() {
        let setup = formatted(&[("serve.engine", engine), ("serve.extended_headers", "true")]);
        File::options().write(true).open(setup.path("a.img")).unwrap().set_len(2 * long).unwrap();
        let running = setup.start();
        let mut a = running.connect_extended("a");
        assert_eq!((a.size, a.format), (2 * long, Format::Extended));
        let places = [0, 4 << 30, long - BLOCK, long];
        places.iter().for_each(|place| a.write(*place, &pattern(3, BLOCK)));
        a.flush();
        a.zero(0, long);
        a.flush();
        let read = places.map(|place| a.read(place, BLOCK));
        let zeroes = vec![0; BLOCK as usize];
        let expected = [&zeroes, &zeroes, &zeroes, &pattern(3, BLOCK)].map(Vec::clone);
        assert_eq!(read, expected);
        a.trim(long, long);
        a.trim(0, 2 * long);
        a.write(long, &pattern(4, BLOCK));
        running.stop();
        let running = setup.start();
        assert_eq!(running.connect("a").read(long, BLOCK), pattern(4, BLOCK));
        running.stop();
    }
    let setup = formatted(&[]);
    let running = setup.start();
    assert_eq!(running.connect_extended("a").format, Format::Structured, "behind a setting");
    running.stop();
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

/// Clients send many requests and take one answer each before the stop: what comes then is whole
/// answers, and the connection ends.
#[test]
fn a_stop_answers_the_requests_that_it_has_begun() {
    let setup = formatted(&[]);
    let running = setup.start();
    let mut clients: Vec<_> = (0..8).map(|_| running.connect("a")).collect();
    for (index, client) in (0..).zip(&mut clients) {
        client.write(index * MIB, &pattern(index as u8, MIB));
        for part in 0..16 {
            client.begin_read(index * MIB + part * (64 << 10), 64 << 10);
        }
        client.take_first();
    }
    running.stop.store(true, Ordering::Relaxed);
    for (index, client) in (0..).zip(clients) {
        let whole = pattern(index, MIB);
        let answers = client.rest();
        assert!((1..=16).contains(&answers.len()), "{}", answers.len());
        for (offset, data) in answers {
            let within = offset as usize - usize::from(index) * MIB as usize;
            assert!(data == whole[within..within + (64 << 10)], "client {index}, {offset}");
        }
    }
    running.stop();
    let running = setup.start();
    let mut client = running.connect("");
    for index in 0..8 {
        assert_eq!(client.read(index * MIB, MIB), pattern(index as u8, MIB));
    }
    running.stop();
}

/// A volume that had failed kept the log from its end, and nothing named it.
#[test]
fn a_failed_volume_is_named_and_the_log_is_ended_all_the_same() {
    for engine in engines() {
        let setup = formatted(&[("serve.engine", engine)]);
        let running = setup.start();
        running.connect("second").write(0, &pattern(3, 4 * BLOCK));
        let backing = File::options().write(true).open(setup.path("a.img")).unwrap();
        backing.set_len(0).unwrap();
        assert_eq!(running.connect("a").failing_read(0, BLOCK), Errno::Io);
        let said = running.said.recv().unwrap();
        assert!(said[0].starts_with("export `a`: its backing device has failed"), "{said:?}");
        let error = running.outcome().unwrap_err();
        let sentence = error.to_string();
        assert_eq!(error.status(), 1, "{sentence}");
        assert!(sentence.contains("export `a`: ") && !sentence.contains("second"), "{sentence}");
        backing.set_len(8 * MIB).unwrap();
        let checked = offline::check(&setup.plan().unwrap()).unwrap();
        assert!(checked.sound, "{checked:?}");
        assert!(checked.devices.iter().all(|device| device.open_segments == 0), "{checked:?}");
        assert!(checked.devices.iter().any(|device| device.sealed_segments > 0), "{checked:?}");
        let running = setup.start();
        assert_eq!(running.connect("second").read(0, 4 * BLOCK), pattern(3, 4 * BLOCK));
        running.stop();
    }
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
    let sentence = Server::start(&plan, None).err().unwrap().to_string();
    assert!(sentence.contains("found 4KiB of the volume `b`"), "{sentence}");
    setup.settings.push(("tenant.a.name".to_owned(), "c".to_owned()));
    let running = setup.start();
    let mut c = running.connect("c");
    c.write(BLOCK, &pattern(4, BLOCK));
    running.stop();
    let found = offline::dump(&setup.plan().unwrap(), false).unwrap();
    let dirty: Vec<(String, u64)> =
        found.volumes.into_iter().map(|volume| (volume.name, volume.dirty_bytes)).collect();
    let named = |name: &str, bytes| (name.to_owned(), bytes);
    assert_eq!(dirty, [named("a", 0), named("b", BLOCK), named("c", BLOCK)]);
}

#[test]
fn a_volume_that_has_grown_is_served_in_its_new_size() {
    let setup = formatted(&[]);
    let running = setup.start();
    running.connect("second").write(7 * MIB, &pattern(3, BLOCK));
    running.stop();
    let resize = |mib: u64| {
        let file = std::fs::File::options().write(true).open(setup.path("b.img")).unwrap();
        file.set_len(mib * MIB).unwrap();
    };
    resize(12);
    for start in 0..2 {
        let running = setup.start();
        let mut second = running.connect("second");
        assert_eq!(second.size, 12 * MIB);
        assert_eq!(second.read(7 * MIB, BLOCK), pattern(3, BLOCK));
        if start == 0 {
            second.write(12 * MIB - BLOCK, &pattern(4, BLOCK));
        }
        assert_eq!(second.read(12 * MIB - BLOCK, BLOCK), pattern(4, BLOCK));
        running.stop();
    }
    resize(8);
    let sentence = cachewright_daemon::Server::start(&setup.plan().unwrap(), None).err().unwrap();
    assert!(sentence.to_string().contains("expected at least `12MiB`"), "{sentence}");
}

#[test]
fn a_tenant_that_goes_without_dirty_blocks_frees_what_it_had() {
    use cachewright_daemon::{LivePlan, Server, offline};
    let setup = formatted(&[("cache.write", "write-through")]);
    let running = setup.start();
    for export in ["a", "second"] {
        running.connect(export).write(0, &pattern(3, 10 * BLOCK));
    }
    running.stop();
    let clean = || {
        let found = offline::dump(&setup.plan().unwrap(), false).unwrap();
        found.volumes.into_iter().map(|volume| volume.clean_bytes).collect::<Vec<u64>>()
    };
    assert_eq!(clean(), [10 * BLOCK, 10 * BLOCK]);
    let without = crate::setup::STACK.split("\n[[tenant]]\nname = \"b\"").next().unwrap();
    let settings = [crate::setup::set("cache.write", "write-through")];
    let plan = LivePlan::read(without, &setup.path("stack.toml"), &settings).unwrap();
    Server::start(&plan, None)
        .unwrap()
        .run(&mut || cachewright_daemon::ServerCommand::Stop, &mut |_| {})
        .unwrap();
    assert_eq!(clean(), [10 * BLOCK, 0]);
}

#[test]
fn an_address_that_others_reach_without_tls_is_served_with_a_warning() {
    let listen = "[\"unix:live.sock\", \"tcp:127.0.0.1:0\", \"tcp:0.0.0.0:0\"]";
    let setup = formatted(&[("serve.listen", listen)]);
    let server = Server::start(&setup.plan().unwrap(), None).unwrap();
    let warned = server.lines().iter().filter(|line| line.severity == Severity::Warning);
    let warned: Vec<&str> = warned.map(|line| line.text.as_str()).collect();
    let [warned] = warned[..] else { panic!("{warned:?}") };
    assert!(warned.starts_with("`serve.listen`: other machines reach 0.0.0.0:"), "{warned}");
    assert!(warned.contains("expected `serve.tls = \"required\"`, or a loopback"), "{warned}");
}
