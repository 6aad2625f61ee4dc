//! What is shipped beside the binary: the commands that its man page, its unit and its image name.

use crate::setup::{STACK, Setup, formatted, pattern};
use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DAEMON: &str = env!("CARGO_BIN_EXE_cachewrightd");

fn shipped(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Runs a line of a shell in the folder of a stack until it serves, and stops it in order.
fn serves(setup: &Setup, line: &str, surroundings: &[(&str, &Path)]) {
    let binaries = Path::new(DAEMON).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut server = Command::new("sh")
        .args(["-c", &format!("exec {line}")])
        .current_dir(setup.folder.path())
        .env("PATH", format!("{}:{path}", binaries.display()))
        .envs(surroundings.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(server.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("cache: ") {
        said.clear();
        assert!(out.read_line(&mut said).unwrap() > 0, "`{line}` has ended");
    }
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    while out.read_line(&mut said).unwrap() > 0 {}
    assert_eq!(server.wait().unwrap().code(), Some(0), "`{line}`");
}

/// Commands as they run here: other folders, and the binary that was built.
fn here(line: &str) -> String {
    ["/usr/bin/", "/etc/cachewright/", "/stack/"]
        .iter()
        .fold(line.replace("%i", "main"), |line, folder| line.replace(folder, ""))
}

fn main_stack() -> Setup {
    let setup = formatted(&[]);
    std::fs::write(setup.path("main.toml"), STACK).unwrap();
    setup
}

#[test]
fn every_example_of_the_man_page_serves() {
    let page = shipped("cachewrightd.8");
    let examples = page.split(".SH EXAMPLES").nth(1).unwrap();
    let examples = examples.split(".nf\n").nth(1).unwrap().split(".fi").next().unwrap();
    let plain = examples.replace("\\-", "-").replace("\\(aq", "'");
    assert!(plain.lines().count() > 1, "{plain}");
    for line in plain.lines() {
        // Any free port stands for the one that is named, which may be taken here.
        serves(&main_stack(), &here(line).replace("9464", "0"), &[]);
    }
}

#[test]
fn the_commands_of_the_unit_and_of_the_image_serve() {
    let unit = shipped("cachewrightd@.service");
    let started = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    serves(&main_stack(), &here(started), &[]);
    let image = shipped("Containerfile");
    let run = image.lines().find(|line| line.contains("podman run")).unwrap();
    let arguments = run.rsplit_once(" cachewrightd ").unwrap().1;
    let setup = main_stack();
    std::fs::write(setup.path("stack.toml"), STACK).unwrap();
    assert!(image.contains("ENTRYPOINT [\"/cachewrightd\"]"));
    serves(&setup, &here(&format!("cachewrightd {arguments}")), &[]);
}

#[test]
fn the_unit_keeps_no_core_file_of_keys_and_data() {
    assert!(shipped("cachewrightd@.service").lines().any(|line| line == "LimitCORE=0"));
}

/// A compressed recording is read at any place, through a file without a name.
fn compressed_history(setup: &Setup) -> PathBuf {
    let running = setup.start_recording("before.parquet");
    let mut guest = running.connect("a");
    guest.write(0, &pattern(3, 64 * 4096));
    guest.read(0, 64 * 4096);
    running.stop();
    let path = setup.path("before.parquet.gz");
    let mut packed = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
    packed.write_all(&setup.content("before.parquet")).unwrap();
    packed.finish().unwrap();
    path
}

#[test]
fn long_histories_are_read_without_a_folder_for_temporary_files() {
    let setup = formatted(&[]);
    compressed_history(&setup);
    let text = STACK
        .replace("\"static\"", "{ name = \"hull\", ahead = true }")
        .replace("[[tenant]]", "[[tenant]]\nhistory = \"before.parquet.gz\"\nvolume = \"a\"");
    std::fs::write(setup.path("stack.toml"), text).unwrap();
    let (missing, state) = (setup.path("missing"), setup.path("state"));
    std::fs::create_dir(&state).unwrap();
    serves(&setup, "cachewrightd stack.toml", &[("TMPDIR", &missing)]);
    let given = [("TMPDIR", missing.as_path()), ("STATE_DIRECTORY", state.as_path())];
    serves(&setup, "cachewrightd stack.toml", &given);
}
