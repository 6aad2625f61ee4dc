//! The binary: signals, exit statuses, sentences.

use crate::setup::{Guest, STACK, formatted, pattern, unformatted};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};

const DAEMON: &str = env!("CARGO_BIN_EXE_cachewrightd");

fn outcome(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = Command::new(DAEMON).args(arguments).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_signal_ends_the_daemon_in_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let setup = formatted(&[]);
        let stack = setup.path("stack.toml");
        std::fs::write(&stack, STACK).unwrap();
        let mut daemon = Command::new(DAEMON).arg(&stack).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(daemon.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("cache: ") {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "it has ended");
        }
        let data = pattern(7, 100_000);
        Guest::connect(&setup.path("live.sock"), "a").write(1, &data);
        kill_process(Pid::from_child(&daemon), signal).unwrap();
        assert_eq!(daemon.wait().unwrap().code(), Some(0));
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("\nstopped; "), "{rest}");
        let written = "`a`: 0 of 0 blocks read were in the cache, 0 of 25 written; 25 admitted, 0";
        assert!(rest.starts_with(written), "{rest}");
        let running = setup.start();
        assert_eq!(running.connect("a").read(1, data.len() as u64), data);
        running.stop();
    }
}

#[test]
fn a_signal_ends_a_daemon_that_still_starts() {
    for signal in [Signal::TERM, Signal::INT] {
        let setup = formatted(&[]);
        let (stack, pipe) = (setup.path("stack.toml"), setup.path("pipe.pem"));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let (tls, key) = ("tls = \"required\"", "tls_key = \"pipe.pem\"");
        let keys = format!("{tls}\n{key}\ntls_certificate = \"pipe.pem\"\n[[tenant]]");
        std::fs::write(&stack, STACK.replacen("[[tenant]]", &keys, 1)).unwrap();
        let mut daemon = Command::new(DAEMON).arg(&stack).spawn().unwrap();
        // This waits until the daemon reads, which then waits for what never comes.
        let _pipe = File::options().write(true).open(&pipe).unwrap();
        kill_process(Pid::from_child(&daemon), signal).unwrap();
        assert_eq!(daemon.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_wrong_stack_is_one_sentence_and_status_2() {
    let setup = unformatted(&[]);
    let stack = setup.path("stack.toml");
    std::fs::write(&stack, STACK).unwrap();
    let stack = stack.to_str().unwrap();
    std::fs::write(setup.path("new.parquet.divisions"), "").unwrap();
    let taken = setup.path("new.parquet");
    let taken = taken.to_str().unwrap();
    let cases = [
        (vec![stack], "one.img: found no superblock"),
        (vec![stack, "--set", "policy=belady"], "`cache.policy`: found `belady`"),
        (vec!["missing.toml"], "missing.toml: "),
        (vec![], "found no stack file"),
        (vec![stack, "--record", stack], "found an existing file"),
        (vec![stack, "--record", "missing/here"], "found no such folder"),
        (vec![stack, "--record", taken], "new.parquet.divisions: found an existing file"),
        (vec![stack, "--fast"], "found unknown option `--fast`"),
    ];
    for (arguments, expected) in cases {
        let (status, said) = outcome(&arguments);
        assert!(status == Some(2) && said.contains(expected), "{status:?} {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn an_argument_that_is_no_text_is_one_sentence_and_status_2() {
    let argument = std::ffi::OsStr::from_bytes(b"stack-\xff.toml");
    let Output { status, stderr, .. } = Command::new(DAEMON).arg(argument).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(2) && said.contains("expected UTF-8"), "{status:?} {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn logs_are_objects_with_a_level_and_a_changed_stack_is_taken_over_at_a_signal() {
    let setup = formatted(&[]);
    let stack = setup.path("stack.toml");
    std::fs::write(&stack, STACK).unwrap();
    let words = [std::ffi::OsStr::new("--log=json"), stack.as_os_str()];
    let mut daemon = Command::new(DAEMON).args(words).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(daemon.stdout.take().unwrap());
    let mut next = |wanted: &str| loop {
        let mut line = String::new();
        assert!(out.read_line(&mut line).unwrap() > 0, "it has ended");
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(object["timestamp"].is_string(), "{line}");
        if object["message"].as_str().unwrap().starts_with(wanted) {
            return object["level"].as_str().unwrap().to_owned();
        }
    };
    assert_eq!(next("cache: "), "INFO");
    std::fs::write(&stack, STACK.replace("\"256KiB\"", "\"512KiB\"")).unwrap();
    kill_process(Pid::from_child(&daemon), Signal::HUP).unwrap();
    assert_eq!(next("not reloaded, and nothing has changed"), "WARN");
    std::fs::write(&stack, STACK.replace("\"4MiB\"", "\"2MiB\"")).unwrap();
    kill_process(Pid::from_child(&daemon), Signal::HUP).unwrap();
    assert_eq!(next("cache: 2MiB, divided anew"), "INFO");
    kill_process(Pid::from_child(&daemon), Signal::TERM).unwrap();
    assert_eq!(next("stopped; "), "INFO");
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
}
