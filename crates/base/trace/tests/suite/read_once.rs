//! Content that comes only once: pipes with and without names.
//!
//! For: what `cachewright trace info <(zcat trace.gz)` needs. Must never know: readers' insides.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
use crate::samples;

use cachewright_trace::{Batch, OpenOptions, Record, open, recognise};
use samples::sample;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

fn all(path: &Path) -> Vec<Record> {
    let mut reader = open(path, &OpenOptions::default()).expect("opens");
    let mut batch = Batch::default();
    while reader.read(&mut batch, 100).expect("is valid") > 0 {}
    batch.iter().collect()
}

/// A pipe that holds `bytes`, and the path under which a shell hands it over.
fn pipe(bytes: &[u8]) -> (OwnedFd, PathBuf) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let bytes = bytes.to_vec();
    // Longer content waits for the reader.
    std::thread::spawn(move || writer.write_all(&bytes));
    let reader = OwnedFd::from(reader);
    let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
    (reader, path)
}

/// Named pipes made the program hang; `<(zcat t)` was read as empty.
#[test]
fn a_pipe_is_recognised_and_read_as_often_as_a_file() {
    for format in ["alibaba", "parquet", "oracle-general"] {
        let bytes = sample(format);
        let (_open, path) = pipe(&bytes);
        assert_eq!(recognise(&path).expect("is known").name, format);
        let first = all(&path);
        assert!(first.len() >= 5, "{format}");
        assert_eq!(all(&path), first, "{format}, again");
    }
}

#[test]
fn a_long_pipe_is_read_to_its_end() {
    let lines: String = (0..200_000).map(|n| format!("3,R,{},4096,{n}\n", n * 512)).collect();
    let compressed = zstd::encode_all(lines.as_bytes(), 1).expect("in memory");
    for bytes in [lines.as_bytes(), &compressed] {
        let (_open, path) = pipe(bytes);
        assert_eq!(all(&path).len(), 200_000);
        assert_eq!(all(&path).len(), 200_000, "again");
    }
}

#[test]
fn a_pipe_that_nothing_writes_to_is_refused_and_not_waited_for() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(writer);
    let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
    let error = open(&path, &OpenOptions::default()).err().expect("is empty").to_string();
    let expected = "found a pipe that nothing writes to, expected a trace (start the program that \
                    writes to the pipe first)";
    assert_eq!(error, format!("{}: {expected}", path.display()));
}

#[test]
fn a_device_is_no_trace() {
    for device in ["/dev/zero", "/dev/null"] {
        let error = open(Path::new(device), &OpenOptions::default()).err().expect("is none");
        assert!(error.to_string().contains("found a device or terminal, expected a trace file"));
    }
}
