//! Recordings that follow each other while a server runs.

use crate::setup::{BLOCK, MIB, Running, STACK, Setup, formatted, pattern};
use cachewright_daemon::explain::explain;
use cachewright_daemon::{LivePlan, Server};
use cachewright_result::live::BlockEvent;
use cachewright_trace::{
    Batch, Divisions, OpenOptions, Record, RecordedState, RecordingName, divisions_path, open,
    state_path,
};
use cachewright_types::Op;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The finished recordings, oldest first.
fn finished(setup: &Setup) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(setup.path("kept")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries
        .filter(|path| RecordingName::parse(path.file_name().unwrap().to_str().unwrap()).is_some())
        .collect();
    found.sort();
    found
}

/// Waits until so many recordings are there.
fn wait_for(setup: &Setup, count: usize) -> Vec<PathBuf> {
    loop {
        let found = finished(setup);
        if found.len() >= count {
            return found;
        }
        std::thread::yield_now();
    }
}

/// The requests of a recording, and the names of its volumes.
fn requests(path: &Path) -> (Vec<Record>, Vec<String>) {
    let mut reader = open(path, &OpenOptions::default()).unwrap();
    let mut batch = Batch::default();
    let mut found = Vec::new();
    while reader.read(&mut batch, 1000).unwrap() > 0 {
        found.extend(batch.iter());
        batch.clear();
    }
    (found, reader.volumes().to_vec())
}

/// Times, operations and offsets between the flushes at the beginning and the end.
fn decided(path: &Path) -> Vec<(Op, u64)> {
    let (found, _) = requests(path);
    assert_eq!((found[0].op, found[0].time_ns), (Op::Flush, 0), "it begins at its own time 0");
    assert_eq!(found.last().unwrap().op, Op::Flush, "it says when it ends");
    assert!(found.windows(2).all(|pair| pair[0].time_ns < pair[1].time_ns));
    found[1..found.len() - 1].iter().map(|found| (found.op, found.offset_bytes)).collect()
}

fn recorded(settings: &[(&str, &str)]) -> Setup {
    formatted(&[&[("serve.record", "kept")], settings].concat())
}

fn roll(running: &Running, setup: &Setup, count: usize) -> Vec<PathBuf> {
    running.roll();
    wait_for(setup, count)
}

#[test]
fn each_recording_has_what_was_decided_in_its_time_and_none_is_lost() {
    let setup = recorded(&[]);
    let running = setup.start();
    let mut guest = running.connect("a");
    guest.write(0, &pattern(1, BLOCK));
    let first = roll(&running, &setup, 1);
    guest.read(BLOCK, BLOCK);
    guest.write(4 * BLOCK, &pattern(2, BLOCK));
    roll(&running, &setup, 2);
    guest.trim(0, BLOCK);
    let stopped = running.stop();
    let found = finished(&setup);
    assert_eq!((found.len(), &found[..1]), (3, &first[..]));
    assert_eq!(decided(&found[0]), [(Op::Write, 0)]);
    assert_eq!(decided(&found[1]), [(Op::Read, BLOCK), (Op::Write, 4 * BLOCK)]);
    assert_eq!(decided(&found[2]), [(Op::Trim, 0)]);
    let line = stopped.lines.iter().find(|line| line.starts_with("recorded ")).unwrap();
    assert!(line.starts_with("recorded 10 requests in 3 files in "), "{line}");
    assert!(!stopped.lines.iter().any(|line| line.contains("not recorded")));
}

#[test]
fn the_oldest_recordings_are_removed_and_a_restart_goes_on_behind_the_last() {
    let setup = recorded(&[("serve.record_files", "2")]);
    let running = setup.start();
    let first = roll(&running, &setup, 1);
    roll(&running, &setup, 2);
    running.stop();
    let before = finished(&setup);
    assert_eq!(before.len(), 2);
    assert!(!before.contains(&first[0]), "it was the oldest of three");
    let running = setup.start();
    running.stop();
    let after = finished(&setup);
    assert_eq!((after.len(), &after[0]), (2, &before[1]));
}

#[test]
fn a_span_that_is_over_begins_another_recording_by_itself() {
    let setup = recorded(&[("serve.record_span", "1s")]);
    let running = setup.start();
    wait_for(&setup, 2);
    running.stop();
}

#[test]
fn a_tenant_that_comes_is_named_in_a_recording_of_its_own() {
    let setup = recorded(&[]);
    File::create_new(setup.path("c.img")).unwrap().set_len(8 * MIB).unwrap();
    let running = setup.start();
    running.connect("a").write(0, &pattern(1, BLOCK));
    running.reload(&format!("{STACK}\n[[tenant]]\nname = \"c\"\nbacking = \"c.img\"\n"));
    running.connect("c").write(BLOCK, &pattern(1, BLOCK));
    running.stop();
    let found = finished(&setup);
    let volumes = |path: &Path| requests(path).1;
    assert!(!volumes(&found[0]).contains(&"c".to_owned()));
    assert!(volumes(&found[1]).contains(&"c".to_owned()));
    assert_eq!(decided(&found[0]), [(Op::Write, 0)]);
    assert_eq!(decided(&found[1]), [(Op::Write, BLOCK)]);
}

#[test]
fn what_a_killed_server_left_unfinished_goes_and_finished_ones_stay() {
    let setup = recorded(&[]);
    let running = setup.start();
    running.stop();
    let (before, name) = (finished(&setup), "2025-11-25T21-17-15.123Z.parquet");
    // A killed process: its file is there, its lock is not.
    let hidden = setup.path("kept").join(format!(".{name}.4000000000.0.tmp"));
    std::fs::write(&hidden, "half").unwrap();
    let running = setup.start();
    running.stop();
    assert!(!hidden.exists());
    assert_eq!((finished(&setup).len(), &finished(&setup)[0]), (2, &before[0]));
}

#[test]
fn a_folder_that_cannot_be_is_refused_and_so_are_two_kinds_of_recordings() {
    let setup = formatted(&[("serve.record", "none/kept")]);
    let error = Server::start(&setup.plan().unwrap(), None).err().unwrap();
    assert!(error.to_string().contains("`serve.record`: found no folder for it"), "{error}");
    let setup = recorded(&[]);
    let file = setup.path("served.parquet");
    let error = Server::start(&setup.plan().unwrap(), Some(&file)).err().unwrap();
    assert!(error.to_string().contains("found a folder beside `--record`"), "{error}");
}

/// All files of the folder, hidden ones among them.
fn files(setup: &Setup) -> usize {
    std::fs::read_dir(setup.path("kept")).unwrap().count()
}

/// The state beside a recording, which may be written behind it.
fn state_of(recording: &Path) -> RecordedState {
    let path = state_path(recording);
    while !path.exists() {
        std::thread::yield_now();
    }
    RecordedState::read(&path).unwrap()
}

#[test]
fn each_recording_has_the_state_beside_it_that_it_began_with() {
    let setup = recorded(&[("serve.record_state", "true"), ("serve.record_files", "2")]);
    let running = setup.start();
    let mut guest = running.connect("a");
    guest.write(0, &pattern(1, 4 * BLOCK));
    roll(&running, &setup, 1);
    guest.read(0, BLOCK);
    roll(&running, &setup, 2);
    let two = finished(&setup);
    let states: Vec<RecordedState> = two.iter().map(|path| state_of(path)).collect();
    assert_eq!((states[0].origin_ns, states[0].decided), (0, Some(0)), "nothing was decided yet");
    assert!(states[1].origin_ns > 0 && states[1].decided != Some(0));
    let key = |key: &str| {
        let found = states[1].settings.iter().find(|(own, _)| own == key);
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(key("cache.capacity"), Some("1024 blocks"));
    assert!(key("cache.policy").unwrap().starts_with("{ name = \"s3-fifo\""));
    assert_eq!((key("tenant[1].name"), key("tenant[2].name")), (Some("a"), Some("b")));
    assert!(states[1].state.len() > states[0].state.len() / 2 && !states[1].state.is_empty());

    // A reload that divides otherwise begins another one, by the other stack.
    running.reload(&STACK.replace("\"static\"", "\"hull\""));
    let three = wait_for(&setup, 2);
    guest.read(0, BLOCK);
    running.stop();
    let last = finished(&setup);
    assert_eq!((last.len(), files(&setup)), (2, 5), "the oldest states go with their recordings");
    assert!(!state_path(&two[0]).exists() && !three.is_empty());
    let state = RecordedState::read(&state_path(&last[1])).unwrap();
    let divisions = Divisions::read(&divisions_path(&last[1])).unwrap();
    assert_eq!(divisions.head.origin_ns, state.origin_ns, "it is divided from then on");
    assert!(!divisions_path(&two[1]).exists());
    let divided = state.settings.iter().find(|(key, _)| key == "cache.partition").unwrap();
    assert!(divided.1.starts_with("{ name = \"hull\""), "{divided:?}");
}

#[test]
fn a_block_is_explained_from_the_state_beside_the_first_recording_and_behind_a_restart() {
    let setup = recorded(&[("serve.record_state", "true")]);
    let running = setup.start();
    let mut guest = running.connect("a");
    guest.write(0, &pattern(1, BLOCK));
    let first = roll(&running, &setup, 1);
    guest.read(0, BLOCK);
    let two = roll(&running, &setup, 2);
    guest.read(0, BLOCK);
    drop(guest);
    running.stop();
    // Its cache is found again.
    let running = setup.start();
    running.connect("a").read(0, BLOCK);
    running.stop();
    let all = finished(&setup);
    let plan = setup.plan().unwrap();
    let events = |recordings: &[PathBuf]| {
        let answer = explain(&plan, recordings, "a", 17).unwrap();
        assert_eq!((answer.is_cached, answer.events_left_out), (true, 0));
        let counted = |event: &BlockEvent| (event.event.clone(), event.recording, event.count);
        (answer.states, answer.events.iter().map(counted).collect::<Vec<_>>())
    };
    let event = |name: &str, recording, count| (name.to_owned(), recording, count);
    // A start is another life of the cache; what rolls goes on.
    let hits = |from: u64| (from..from + 3).map(|place| event("read hit", place, 1));
    let whole = [event("admitted by a write", 0, 1)].into_iter().chain(hits(1));
    assert_eq!((all.len(), events(&all)), (4, (2, whole.collect())));
    assert_eq!(first[0], all[0]);
    let warm = [event("held", 0, 1)].into_iter().chain(hits(0));
    assert_eq!(events(&all[1..]), (2, warm.collect()));
    // Without its state the cache is empty at first.
    std::fs::remove_file(state_path(&two[1])).unwrap();
    let empty = [event("admitted by a read", 0, 1), event("read hit", 1, 1)];
    assert_eq!(events(&all[1..3]), (1, [&empty[..1], &empty[1..]].concat()));
}

#[test]
fn a_recording_begins_with_a_state_when_a_removed_tenant_has_gone() {
    let divided = [("cache.partition", "hull"), ("replay.interval", "1h")];
    let setup = recorded(&[&divided[..], &[("serve.record_state", "true")]].concat());
    let running = setup.start();
    let (mut guest, mut other) = (running.connect("a"), running.connect("second"));
    guest.write(0, &pattern(1, BLOCK));
    other.write(0, &pattern(2, BLOCK));
    drop(other);
    let one = STACK.split("[[tenant]]\nname = \"b\"").next().unwrap();
    running.begin_reload(one);
    let found = wait_for(&setup, 2);
    guest.read(0, BLOCK);
    let found = [&found[..], &roll(&running, &setup, 3)[2..]].concat();
    guest.read(0, BLOCK);
    drop(guest);
    running.stop();
    let all = finished(&setup);
    assert_eq!((all.len(), &all[..3]), (4, &found[..]));
    let has_state: Vec<bool> = all.iter().map(|path| state_path(path).exists()).collect();
    assert_eq!(has_state, [true, false, true, true], "blocks of the second tenant leave");
    let tenants = |path: &Path| {
        let mut settings = state_of(path).settings;
        settings.retain(|(key, _)| key.ends_with(".name") || key.ends_with(".removed"));
        settings
    };
    let key = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let names = [key("tenant[1].name", "a"), key("tenant[2].name", "b")];
    assert_eq!(tenants(&all[0]), names);
    assert_eq!(tenants(&all[2]), [&names[..], &[key("tenant[2].removed", "true")]].concat());
    // The stack has one of the tenants of the first recording, whose state is not its own.
    let plan = LivePlan::read(one, &setup.path("stack.toml"), &setup.settings).unwrap();
    let explained = |recordings: &[PathBuf]| {
        let answer = explain(&plan, recordings, "a", 17).unwrap();
        assert!(answer.is_cached);
        let events = answer.events.into_iter().map(|event| (event.event, event.recording));
        (answer.states, answer.requests_left_out, events.collect::<Vec<_>>())
    };
    let event = |name: &str, recording| (name.to_owned(), recording);
    let hits = [event("read hit", 2), event("read hit", 3)];
    let whole = [&[event("admitted by a write", 0)][..], &hits].concat();
    assert_eq!(explained(&all), (1, 1, whole));
    let warm = [event("held", 0), event("read hit", 0), event("read hit", 1)];
    assert_eq!(explained(&all[2..]), (1, 0, warm.to_vec()));
}

#[test]
fn states_whose_recordings_never_appeared_go_at_the_next_start() {
    let setup = recorded(&[("serve.record_state", "true")]);
    setup.start().stop();
    let (before, name) = (files(&setup), "2025-11-25T21-17-15.123Z.parquet");
    let other = "2025-11-25T22-17-15.123Z.parquet";
    for left in [
        format!("{name}.state"),
        format!(".{name}.4000000000.0.tmp"),
        format!("{other}.state"),
        format!(".{other}.state.4000000000.0.tmp"),
    ] {
        std::fs::write(setup.path("kept").join(left), "half").unwrap();
    }
    setup.start().stop();
    assert_eq!((before, files(&setup)), (2, 4), "two recordings with their states");
}
