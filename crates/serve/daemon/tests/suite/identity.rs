//! Backing devices and caches that are not those of before, and such that are.

use crate::setup::{BLOCK, Guest, MIB, STACK, Setup, formatted, pattern};
use cachewright_daemon::offline::{self, Overwrite};
use cachewright_daemon::{Accepted, LiveError, LivePlan, Server, ServerCommand};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The file outside the cache.
const STATE: &str = ".stack.cachewright-state";

/// The sentence with which a start is refused.
fn refused(plan: LivePlan) -> String {
    let error = Server::start(&plan, None).map(drop).expect_err("it is refused");
    assert_eq!(error.status(), 2, "{error}");
    error.to_string()
}

/// A server that starts and ends in order; what it has said.
fn served(plan: &LivePlan) -> Vec<String> {
    let server = Server::start(plan, None).unwrap();
    let lines: Vec<String> = server.lines().iter().map(|line| line.text.clone()).collect();
    let stopped = server.run(&mut || ServerCommand::Stop, &mut |_| {}).unwrap();
    lines.into_iter().chain(stopped.lines).collect()
}

/// What an operator accepts.
fn accepted(names: &[&str], discard_dirty: bool) -> Accepted {
    let changed = names.iter().map(|name| (*name).to_owned()).collect();
    Accepted { changed, discard_dirty }
}

fn accepting(setup: &Setup, names: &[&str], discard_dirty: bool) -> LivePlan {
    setup.plan().unwrap().accepting(accepted(names, discard_dirty))
}

/// What a volume has in the cache: clean and dirty bytes.
fn cached(setup: &Setup, name: &str) -> (u64, u64) {
    let found = offline::dump(&setup.plan().unwrap(), false).unwrap().volumes;
    let own = found.iter().find(|volume| volume.name == name).unwrap();
    (own.clean_bytes, own.dirty_bytes)
}

/// A cache with dirty blocks of both volumes, and its server at an end in order.
fn with_dirty_blocks() -> Setup {
    let setup = formatted(&[]);
    let running = setup.start();
    for (seed, export) in [(1, "a"), (2, "second")] {
        running.connect(export).write(3 * MIB, &pattern(seed, 10 * BLOCK));
    }
    assert_eq!(running.stop().dirty_bytes, 20 * BLOCK);
    setup
}

/// The same with clean blocks.
fn with_clean_blocks() -> Setup {
    let setup = with_dirty_blocks();
    offline::writeback(&setup.plan().unwrap()).unwrap();
    assert_eq!((cached(&setup, "a"), cached(&setup, "b")), ((10 * BLOCK, 0), (10 * BLOCK, 0)));
    setup
}

fn exchange(setup: &Setup) {
    let [a, b, other] = ["a.img", "b.img", "other.img"].map(|name| setup.path(name));
    fs::rename(&a, &other).unwrap();
    fs::rename(&b, &a).unwrap();
    fs::rename(&other, &b).unwrap();
}

/// Puts another file with the same content in the place of one.
fn copy_over(setup: &Setup, name: &str) {
    let [path, copy] = [setup.path(name), setup.path("copy.img")];
    fs::copy(&path, &copy).unwrap();
    fs::rename(&copy, &path).unwrap();
}

fn contents(setup: &Setup) -> Vec<Vec<u8>> {
    ["one.img", "two.img", "a.img", "b.img"].map(|name| setup.content(name)).into()
}

#[test]
fn an_end_in_order_is_gone_on_from_with_all_that_was_cached() {
    for setup in [with_dirty_blocks(), with_clean_blocks()] {
        let before = cached(&setup, "a");
        for _ in 0..3 {
            let lines = served(&setup.plan().unwrap());
            assert!(!lines.iter().any(|line| line.contains("changed")), "{lines:?}");
            assert_eq!(cached(&setup, "a"), before);
        }
        let running = setup.start();
        assert_eq!(running.connect("a").read(3 * MIB, 10 * BLOCK), pattern(1, 10 * BLOCK));
        running.stop();
    }
}

#[test]
fn exchanged_files_are_refused_by_name_and_nothing_is_written() {
    for setup in [with_dirty_blocks(), with_clean_blocks()] {
        exchange(&setup);
        let before = contents(&setup);
        let plan = || setup.plan().unwrap();
        for sentence in [refused(plan()), offline::writeback(&plan()).unwrap_err().to_string()] {
            assert!(sentence.contains("`tenant[1].backing`: found `"), "{sentence}");
            assert!(sentence.contains("a.img`, which is not the device whose"), "{sentence}");
            assert!(sentence.contains("it is that of `b`"), "{sentence}");
            assert!(sentence.contains("--accept-changed a`"), "{sentence}");
        }
        let sentence = refused(accepting(&setup, &["c"], false));
        assert!(sentence.contains("found `--accept-changed c`, expected the name"), "{sentence}");
        assert!(contents(&setup) == before, "nothing is written");
        exchange(&setup);
        // Their names have changed, and with them a time of theirs.
        let running = setup.start_accepting(accepted(&["a", "b"], false));
        assert_eq!(running.connect("a").read(3 * MIB, 10 * BLOCK), pattern(1, 10 * BLOCK));
        running.stop();
    }
}

#[test]
fn another_device_is_accepted_when_none_of_its_blocks_is_dirty() {
    let setup = with_clean_blocks();
    copy_over(&setup, "a.img");
    let sentence = refused(setup.plan().unwrap());
    assert!(sentence.contains("or `--accept-changed a`, which drops"), "{sentence}");
    let lines = served(&accepting(&setup, &["a"], false));
    let line = lines.iter().find(|line| line.starts_with("export `a`: ")).unwrap();
    assert!(lines.iter().any(|line| line.contains("40KiB clean dropped")), "{line}");
    assert_eq!((cached(&setup, "a"), cached(&setup, "b")), ((0, 0), (10 * BLOCK, 0)));
    let running = setup.start();
    assert_eq!(running.connect("a").read(3 * MIB, 10 * BLOCK), pattern(1, 10 * BLOCK));
    running.stop();
}

#[test]
fn dirty_blocks_of_another_device_are_dealt_with_first() {
    for discards in [false, true] {
        let setup = with_dirty_blocks();
        copy_over(&setup, "a.img");
        let sentence = refused(accepting(&setup, &["a"], false));
        let tool = "`cachewright live writeback --accept-changed a`, which writes the 40KiB";
        assert!(sentence.contains(tool), "{sentence}");
        let written = offline::writeback(&accepting(&setup, &["a"], discards)).unwrap();
        let change = |name: &str| written.volumes.iter().find(|known| known.name == name).unwrap();
        let bytes = if discards { (0, 10 * BLOCK) } else { (10 * BLOCK, 0) };
        assert_eq!((change("a").written_back_bytes, change("a").dropped_bytes), bytes);
        assert_eq!(change("b").written_back_bytes, 10 * BLOCK);
        let running = setup.start();
        let expected = if discards { vec![0; 10 * BLOCK as usize] } else { pattern(1, 10 * BLOCK) };
        assert_eq!(running.connect("a").read(3 * MIB, 10 * BLOCK), expected);
        running.stop();
    }
}

/// A restore over the same file.
#[test]
fn a_device_that_was_written_to_loses_its_clean_blocks() {
    let setup = with_clean_blocks();
    setup.damage("a.img", 3 * MIB, &pattern(9, BLOCK));
    let lines = served(&setup.plan().unwrap());
    let said = |part: &str| lines.iter().any(|line| line.contains(part));
    assert!(said("was changed while no server ran (its time of modification"), "{lines:?}");
    assert!(said("40KiB clean dropped"), "{lines:?}");
    assert_eq!((cached(&setup, "a"), cached(&setup, "b")), ((0, 0), (10 * BLOCK, 0)));
    let running = setup.start();
    assert_eq!(running.connect("a").read(3 * MIB, BLOCK), pattern(9, BLOCK));
    running.stop();
}

#[test]
fn a_device_that_was_written_to_is_refused_with_dirty_blocks_until_that_is_accepted() {
    let setup = with_dirty_blocks();
    setup.damage("a.img", 0, &pattern(9, BLOCK));
    let before = contents(&setup);
    let plan = || setup.plan().unwrap();
    for sentence in [refused(plan()), offline::writeback(&plan()).unwrap_err().to_string()] {
        assert!(sentence.contains("a.img` written to while no server ran"), "{sentence}");
        assert!(sentence.contains("40KiB of `a` that only the cache has"), "{sentence}");
    }
    assert!(contents(&setup) == before, "nothing is written");
    let running = setup.start_accepting(accepted(&["a"], false));
    assert!(running.lines.iter().any(|line| line.contains("40KiB dirty go over what it has now")));
    let mut a = running.connect("a");
    assert_eq!(a.read(3 * MIB, 10 * BLOCK), pattern(1, 10 * BLOCK));
    assert_eq!(a.read(0, BLOCK), pattern(9, BLOCK));
    running.stop();
    served(&setup.plan().unwrap());
}

/// Content can be written and the time of modification put back.
#[test]
fn a_file_whose_attributes_alone_have_changed_may_have_been_written_to() {
    let setup = with_clean_blocks();
    fs::set_permissions(setup.path("b.img"), PermissionsExt::from_mode(0o640)).unwrap();
    let lines = served(&setup.plan().unwrap());
    assert!(
        lines.iter().any(|line| line.contains("(its time of change has changed)")),
        "{lines:?}"
    );
    assert_eq!((cached(&setup, "a"), cached(&setup, "b")), ((10 * BLOCK, 0), (0, 0)));
}

#[test]
fn a_device_that_has_grown_is_the_same_one() {
    for setup in [with_dirty_blocks(), with_clean_blocks()] {
        let before = cached(&setup, "a");
        let grow = |mib: u64| {
            let file = File::options().write(true).open(setup.path("a.img")).unwrap();
            file.set_len(mib * MIB).unwrap();
        };
        grow(12);
        served(&setup.plan().unwrap());
        assert_eq!(cached(&setup, "a"), before);
        grow(16);
        setup.damage("a.img", 12 * MIB - BLOCK, &pattern(5, BLOCK));
        match before.1 {
            0 => {
                let lines = served(&setup.plan().unwrap());
                assert!(lines.iter().any(|line| line.contains("its last MiB has")), "{lines:?}");
                assert_eq!(cached(&setup, "a"), (0, 0));
            }
            _ => assert!(refused(setup.plan().unwrap()).contains("its last MiB has other")),
        }
    }
}

#[test]
fn a_smaller_device_is_accepted_when_none_of_its_blocks_is_dirty() {
    for dirty in [true, false] {
        let setup = if dirty { with_dirty_blocks() } else { with_clean_blocks() };
        let file = File::options().write(true).open(setup.path("a.img")).unwrap();
        file.set_len(3 * MIB + 4 * BLOCK).unwrap();
        let sentence = refused(setup.plan().unwrap());
        assert!(sentence.contains("expected at least `8MiB`, the size of the volume `a`"));
        if dirty {
            let plan = || accepting(&setup, &["a"], false);
            let tool = offline::writeback(&plan()).unwrap_err().to_string();
            for sentence in [refused(plan()), tool] {
                assert!(sentence.contains("smaller than it was"), "{sentence}");
                assert!(sentence.contains("with `--discard-dirty`, which drops"), "{sentence}");
            }
            offline::writeback(&accepting(&setup, &["a"], true)).unwrap();
        } else {
            served(&accepting(&setup, &["a"], false));
        }
        assert_eq!(cached(&setup, "a"), (0, 0));
        let running = setup.start();
        assert_eq!(running.connect("a").size, 3 * MIB + 4 * BLOCK);
        running.stop();
    }
}

/// A server as a process of its own.
struct Daemon {
    process: Child,
    lines: BufReader<ChildStdout>,
    said: Vec<String>,
}

impl Daemon {
    /// Errors: what it says when it does not start.
    fn try_start(setup: &Setup, state: &str) -> Result<Daemon, String> {
        fs::write(setup.path("stack.toml"), &setup.stack).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cachewrightd"));
        for (key, value) in &setup.settings {
            command.args(["--set", &format!("{key}={value}")]);
        }
        command.arg(setup.path("stack.toml")).env("STATE_DIRECTORY", state);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut daemon = Daemon { process, lines, said: Vec::new() };
        while !daemon.said.last().is_some_and(|line| line.starts_with("cache: ")) {
            let mut line = String::new();
            if daemon.lines.read_line(&mut line).unwrap() == 0 {
                let output = daemon.process.wait_with_output().unwrap();
                return Err(String::from_utf8(output.stderr).unwrap());
            }
            daemon.said.push(line);
        }
        Ok(daemon)
    }

    fn start(setup: &Setup) -> Daemon {
        Daemon::try_start(setup, "").unwrap()
    }

    fn end(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        self.process.wait().unwrap();
    }
}

/// Blocks that were written to and are clean, beside dirty ones, zeroes and trims; then a kill.
#[test]
fn a_server_that_was_killed_accuses_no_device() {
    for write in ["write-back", "write-through", "write-around"] {
        let setup = formatted(&[("cache.write", write), ("cache.capacity", "1MiB")]);
        for turn in 0..6_u8 {
            let daemon = Daemon::start(&setup);
            let said = daemon.said.concat();
            assert!(!said.contains("changed"), "{said}");
            let mut guest = Guest::connect(&setup.path("live.sock"), "a");
            for step in 0..40_u64 {
                let place = (step * 37 + u64::from(turn) * 11) % 2000 * BLOCK;
                match step % 8 {
                    0..4 => guest.write(place, &pattern(turn, 4 * BLOCK)),
                    4 => guest.zero(place, 8 * BLOCK),
                    5 => guest.trim(place, 8 * BLOCK),
                    6 if turn % 2 == 0 => guest.flush(),
                    _ => drop(guest.read(place, 8 * BLOCK)),
                }
            }
            daemon.end(if turn == 3 { Signal::TERM } else { Signal::KILL });
        }
        let lines = served(&setup.plan().unwrap());
        assert!(!lines.iter().any(|line| line.contains("changed")), "{lines:?}");
    }
}

/// Behind a kill only the sample of clean blocks tells.
#[test]
fn one_clean_block_of_other_content_is_noticed_behind_a_kill() {
    let setup = with_clean_blocks();
    let killed = || Daemon::start(&setup).end(Signal::KILL);
    killed();
    served(&setup.plan().unwrap());
    assert_eq!(cached(&setup, "a"), (10 * BLOCK, 0), "nothing was written");
    killed();
    // What a trim under way may have left.
    setup.damage("a.img", 3 * MIB + 4 * BLOCK, &vec![0; 512]);
    served(&setup.plan().unwrap());
    assert_eq!(cached(&setup, "a"), (10 * BLOCK, 0), "zeroes prove nothing");
    killed();
    setup.damage("a.img", 3 * MIB + 5 * BLOCK + 1024, &[1, 2, 3]);
    let lines = served(&setup.plan().unwrap());
    let part = "1 of 10 clean blocks that were compared have other content";
    assert!(lines.iter().any(|line| line.contains(part)), "{lines:?}");
    assert_eq!((cached(&setup, "a"), cached(&setup, "b")), ((0, 0), (10 * BLOCK, 0)));
}

#[test]
fn exchanged_files_are_refused_behind_a_kill_too() {
    let setup = with_dirty_blocks();
    Daemon::start(&setup).end(Signal::KILL);
    exchange(&setup);
    assert!(refused(setup.plan().unwrap()).contains("it is that of `b`"));
}

/// Takes the cache's devices away and puts blank ones in their place.
fn lose_cache(setup: &Setup) {
    for name in ["one.img", "two.img"] {
        fs::rename(setup.path(name), setup.path(&format!("lost-{name}"))).unwrap();
        File::create_new(setup.path(name)).unwrap().set_len(16 * MIB).unwrap();
    }
}

fn bring_cache_back(setup: &Setup) {
    for name in ["one.img", "two.img"] {
        fs::rename(setup.path(&format!("lost-{name}")), setup.path(name)).unwrap();
    }
}

fn format(setup: &Setup, dirty: bool) -> Result<(), LiveError> {
    let overwrite = Overwrite { dirty, foreign: false };
    offline::format(&setup.plan().unwrap(), overwrite).map(drop)
}

/// Formats without the file outside the cache, as a tool does that does not find it.
fn format_unknowing(setup: &Setup) {
    let (state, aside) = (setup.path(STATE), setup.path("aside"));
    fs::rename(&state, &aside).unwrap();
    format(setup, false).unwrap();
    fs::rename(&aside, &state).unwrap();
}

#[test]
fn a_lost_cache_with_dirty_blocks_is_not_replaced_unsaid() {
    let setup = with_dirty_blocks();
    lose_cache(&setup);
    let sentence = format(&setup, false).unwrap_err().to_string();
    assert!(sentence.contains("with which `a` was last served"), "{sentence}");
    assert!(sentence.contains(STATE), "{sentence}");
    let stack = setup.path("stack.toml");
    let command = format!("`cachewright live format --discard-dirty {}`", stack.display());
    assert!(sentence.contains(&command), "what goes on: {sentence}");
    format_unknowing(&setup);
    let sentence = refused(setup.plan().unwrap());
    assert!(sentence.contains("`serve.devices`: found the set "), "{sentence}");
    assert!(sentence.contains("with which `a`, `b` were last served"), "{sentence}");
    let lines = served(&accepting(&setup, &[], true));
    assert!(lines.iter().any(|line| line.contains("is given up")), "{lines:?}");
    served(&setup.plan().unwrap());
    // The devices of before hold what is older than the volumes now.
    bring_cache_back(&setup);
    let sentence = refused(setup.plan().unwrap());
    assert!(sentence.contains("it was served with the set "), "{sentence}");
}

#[test]
fn a_format_that_discards_dirty_blocks_is_enough_for_the_next_start() {
    let setup = with_dirty_blocks();
    lose_cache(&setup);
    format(&setup, true).unwrap();
    served(&setup.plan().unwrap());
    // It counts for one start.
    lose_again(&setup);
    let running = setup.start_accepting(accepted(&[], true));
    running.connect("a").write(0, &pattern(1, BLOCK));
    running.stop();
    for name in ["one.img", "two.img"] {
        fs::rename(setup.path(&format!("first-{name}")), setup.path(name)).unwrap();
    }
    assert!(refused(setup.plan().unwrap()).contains("`serve.devices`: found the set "));
}

/// Keeps the set that was made last as `first-`, and makes another one that knows of none.
fn lose_again(setup: &Setup) {
    for name in ["one.img", "two.img"] {
        fs::rename(setup.path(name), setup.path(&format!("first-{name}"))).unwrap();
        File::create_new(setup.path(name)).unwrap().set_len(16 * MIB).unwrap();
    }
    format_unknowing(setup);
}

#[test]
fn a_lost_cache_without_dirty_blocks_is_replaced_by_any_other() {
    for killed in [false, true] {
        let setup = with_clean_blocks();
        if killed {
            Daemon::start(&setup).end(Signal::KILL);
        }
        lose_cache(&setup);
        match killed {
            // A server that was killed may have left some.
            true => assert!(format(&setup, false).is_err()),
            false => {
                format(&setup, false).unwrap();
                served(&setup.plan().unwrap());
            }
        }
    }
}

/// A service manager's folder is not known to tools; the devices themselves say what was on them.
#[test]
fn a_cache_that_was_written_back_may_be_formatted_where_the_file_is_not_known() {
    let setup = with_dirty_blocks();
    let folder = setup.path("state");
    fs::create_dir(&folder).unwrap();
    let start = || Daemon::try_start(&setup, folder.to_str().unwrap());
    start().unwrap().end(Signal::TERM);
    let state = folder.join("stack.cachewright-state");
    assert!(fs::read_to_string(&state).unwrap().contains("\"dirty\": true"));
    fs::remove_file(setup.path(STATE)).unwrap();
    offline::writeback(&setup.plan().unwrap()).unwrap();
    format(&setup, false).unwrap();
    format(&setup, false).unwrap();
    start().unwrap().end(Signal::TERM);
    assert!(!fs::read_to_string(&state).unwrap().contains("\"dirty\": true"));
    lose_cache(&setup);
    format(&setup, false).unwrap();
    start().unwrap().end(Signal::KILL);
    lose_again_unseen(&setup);
    let said = start().err().unwrap();
    assert!(said.contains("state/stack.cachewright-state"), "{said}");
}

fn lose_again_unseen(setup: &Setup) {
    for name in ["one.img", "two.img"] {
        fs::remove_file(setup.path(name)).unwrap();
        File::create_new(setup.path(name)).unwrap().set_len(16 * MIB).unwrap();
    }
    format(setup, false).unwrap();
}

#[test]
fn a_file_that_cannot_be_read_stops_a_blank_cache_and_no_other() {
    let setup = with_dirty_blocks();
    fs::write(setup.path(STATE), "{").unwrap();
    let lines = served(&setup.plan().unwrap());
    assert!(lines.iter().any(|line| line.contains("it is written anew")), "{lines:?}");
    fs::write(setup.path(STATE), "{").unwrap();
    lose_cache(&setup);
    assert!(format(&setup, false).unwrap_err().to_string().contains("found no state of a server"));
    format_unknowing(&setup);
    assert!(refused(setup.plan().unwrap()).contains("the cache is an empty one"));
    served(&accepting(&setup, &[], true));
    fs::remove_file(setup.path(STATE)).unwrap();
    let lines = served(&setup.plan().unwrap());
    assert!(lines.iter().any(|line| line.contains("found no such file")), "{lines:?}");
}

#[test]
fn a_cache_of_dirty_blocks_is_served_only_where_that_can_be_remembered() {
    let setup = formatted(&[]);
    let sentence = refused(setup.plan_with("serve.state", "missing/state").unwrap());
    assert!(
        sentence.contains("missing/state: ") && sentence.contains("`serve.state`"),
        "{sentence}"
    );
    served(&setup.plan_with("serve.state", "named").unwrap());
    assert!(setup.path("named").exists() && !setup.path(STATE).exists());
    let setup = formatted(&[("cache.write", "write-through"), ("serve.state", "missing/state")]);
    let lines = served(&setup.plan().unwrap());
    assert!(lines.iter().any(|line| line.contains("missing/state: ")), "{lines:?}");
}

#[test]
fn a_tenant_that_was_taken_out_comes_back_with_any_device() {
    let setup = formatted(&[]);
    let running = setup.start();
    running.connect("second").write(0, &pattern(1, 4 * BLOCK));
    let without = STACK.split("[[tenant]]\nname = \"b\"").next().unwrap();
    assert!(running.reload(without).contains("`second`: closed"));
    running.next_line();
    assert!(running.next_line().contains("`second`: removed"));
    let state = fs::read_to_string(setup.path(STATE)).unwrap();
    assert!(state.contains("\"a\"") && !state.contains("\"b\""), "{state}");
    copy_over(&setup, "b.img");
    setup.damage("b.img", 0, &pattern(7, BLOCK));
    assert!(running.reload(STACK).starts_with("export `second`: 8MiB"));
    running.next_line();
    let mut second = running.connect("second");
    assert_eq!(second.read(0, BLOCK), pattern(7, BLOCK));
    assert_eq!(second.read(BLOCK, 3 * BLOCK), pattern(1, 4 * BLOCK)[BLOCK as usize..]);
    second.write(MIB, &pattern(8, BLOCK));
    running.stop();
    served(&setup.plan().unwrap());
    copy_over(&setup, "b.img");
    assert!(refused(setup.plan().unwrap()).contains("`tenant[2].backing`"));
}

#[test]
fn a_volume_that_another_set_may_have_dirty_blocks_of_is_refused_by_a_reload() {
    let setup = with_dirty_blocks();
    lose_cache(&setup);
    let state = fs::read_to_string(setup.path(STATE)).unwrap();
    let without = STACK.split("[[tenant]]\nname = \"b\"").next().unwrap();
    // The file knows `b` alone, with the set that is lost.
    let file = state.replace("\"a\"", "\"z\"");
    fs::remove_file(setup.path(STATE)).unwrap();
    format(&setup, false).unwrap();
    fs::write(setup.path(STATE), file).unwrap();
    let setup = setup.with_stack(without);
    let running = setup.start();
    let line = running.reload(STACK);
    assert!(line.starts_with("not reloaded") && line.contains("the volume `b`"), "{line}");
    running.stop();
}

/// A device that is restored to what it held before, also by its time, is another one by its inode
/// or the time of its change.
#[test]
fn a_restored_image_is_noticed_whatever_its_time_of_modification() {
    let setup = with_clean_blocks();
    let modified = fs::metadata(setup.path("a.img")).unwrap().modified().unwrap();
    let file = File::options().write(true).open(setup.path("a.img")).unwrap();
    file.write_all_at(&pattern(4, BLOCK), 3 * MIB).unwrap();
    file.set_modified(modified).unwrap();
    drop(file);
    served(&setup.plan().unwrap());
    assert_eq!(cached(&setup, "a"), (0, 0));
}

#[test]
fn a_check_names_backing_devices_that_have_changed() {
    let changed = |setup: &Setup| {
        let checked = offline::check(&setup.plan().unwrap()).unwrap();
        assert!(checked.sound, "nothing of the cache is damaged");
        checked.changed_backings
    };
    let setup = with_dirty_blocks();
    assert_eq!(changed(&setup), []);
    let before = contents(&setup);
    exchange(&setup);
    let found = changed(&setup);
    let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(found[0].why.contains("another device"), "{found:?}");
    assert!(found[0].path.ends_with("a.img"), "{found:?}");
    let exchanged = [0, 1, 3, 2].map(|place: usize| before[place].clone());
    assert_eq!(contents(&setup), exchanged, "nothing is written");
    let setup = with_dirty_blocks();
    setup.damage("a.img", 5 * MIB, &pattern(9, BLOCK));
    let found = changed(&setup);
    assert_eq!(found.len(), 1);
    assert!(found[0].why.contains("written to while no server ran"), "{found:?}");
    fs::remove_file(setup.path("a.img")).unwrap();
    let found = changed(&setup);
    assert_eq!((found.len(), found[0].name.as_str()), (1, "a"));
    assert!(found[0].why.contains("a.img"), "{found:?}");
}
