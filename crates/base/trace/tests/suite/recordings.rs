//! One recording in several files is read as one trace.

use cachewright_trace::{Batch, OpenOptions, TraceReader, open, recognise};
use cachewright_types::{Op, Seed};
use std::fs;
use std::path::{Path, PathBuf};

/// A request as these tests see it: time in microseconds, volume, offset.
type Row = (u64, String, u64);

fn write(folder: &Path, name: &str, rows: &[Row]) -> PathBuf {
    let line = |(time, volume, offset): &Row| format!("{volume},R,{offset},4096,{time}\n");
    let path = folder.join(name);
    fs::write(&path, rows.iter().map(line).collect::<String>()).unwrap();
    path
}

fn read(path: &Path, parts: &[PathBuf], at_once: usize) -> (Vec<Row>, Box<dyn TraceReader>) {
    let options = OpenOptions { parts: parts.to_vec(), ..OpenOptions::default() };
    let mut reader = open(path, &options).unwrap();
    let mut rows = Vec::new();
    loop {
        let mut batch = Batch::default();
        if reader.read(&mut batch, at_once).unwrap() == 0 {
            return (rows, reader);
        }
        assert!(batch.len() <= at_once && batch.op.iter().all(|op| *op == Op::Read));
        let volume = |index: u32| reader.volumes()[index as usize].clone();
        let row =
            |r: cachewright_trace::Record| (r.time_ns / 1000, volume(r.volume), r.offset_bytes);
        rows.extend(batch.iter().map(row));
    }
}

/// The slow way: the earliest next row of all files, the first file's at equal times.
fn merged(files: &[Vec<Row>]) -> Vec<Row> {
    let mut next = vec![0; files.len()];
    let mut rows = Vec::new();
    loop {
        let heads = (0..files.len()).filter(|file| next[*file] < files[*file].len());
        let Some(file) = heads.min_by_key(|file| (files[*file][next[*file]].0, *file)) else {
            return rows;
        };
        rows.push(files[file][next[file]].clone());
        next[file] += 1;
    }
}

#[test]
fn files_of_one_recording_come_by_time_with_volumes_of_one_name_joined() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Seed(7).rng();
    for round in 0..20 {
        let files: Vec<Vec<Row>> = (0..1 + round % 5)
            .map(|_| {
                let mut time = rng.below(50);
                let row = |_| {
                    // Times run backwards now and then, as in real files.
                    time = (time + rng.below(9)).saturating_sub(2);
                    (time, rng.below(4).to_string(), rng.below(64) * 4096)
                };
                (0..1 + round * 7).map(row).collect()
            })
            .collect();
        let paths: Vec<PathBuf> = files
            .iter()
            .enumerate()
            .map(|(cpu, rows)| write(folder.path(), &format!("r{round}.{cpu}"), rows))
            .collect();
        for at_once in [1, 3, 10_000] {
            assert_eq!(read(&paths[0], &paths[1..], at_once).0, merged(&files));
        }
        let pattern = folder.path().join(format!("r{round}.*"));
        let (rows, reader) = read(&pattern, &[], 64);
        assert_eq!(rows, merged(&files));
        let mut volumes = reader.volumes().to_vec();
        volumes.sort_unstable();
        volumes.dedup();
        assert_eq!(volumes.len(), reader.volumes().len(), "a volume of each name");
        assert_eq!(recognise(&pattern).unwrap().name, "alibaba");
    }
}

#[test]
fn files_without_times_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a.2", "7\n8\n"), ("a.10", "9\n"), ("a.1", "5\n6\n7\n")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let options = OpenOptions { format: Some("ids".to_owned()), ..OpenOptions::default() };
    let mut reader = open(&folder.path().join("a.*"), &options).unwrap();
    let mut batch = Batch::default();
    while reader.read(&mut batch, 2).unwrap() > 0 {}
    assert!(!reader.has_times());
    assert_eq!(batch.time_ns, [0, 1, 2, 3, 4, 5]);
    let block = batch.length_bytes[0];
    let ids: Vec<u64> = batch.offset_bytes.iter().map(|offset| offset / block).collect();
    assert_eq!(ids, [5, 6, 7, 7, 8, 9]);
}

#[test]
fn files_without_a_request_are_passed_over_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let first = write(folder.path(), "x.0", &[]);
    let second = write(folder.path(), "x.1", &[(5, "1".to_owned(), 0)]);
    let (rows, reader) = read(&first, std::slice::from_ref(&second), 9);
    assert_eq!(rows.len(), 1);
    assert_eq!(reader.notes(), ["1 of 2 files hold no request"]);
    let options = OpenOptions { parts: vec![second.clone()], ..OpenOptions::default() };
    let error = open(&second, &options).err().unwrap().to_string();
    assert!(error.ends_with("x.1: found the same file twice, expected each part once"), "{error}");
}

#[test]
fn a_file_of_another_kind_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let first = write(folder.path(), "x.0", &[(5, "1".to_owned(), 0)]);
    let other = folder.path().join("x.1");
    fs::write(&other, "0.5,0,R,0,1\n").unwrap();
    let options = OpenOptions { parts: vec![other], ..OpenOptions::default() };
    let error = open(&first, &options).err().unwrap().to_string();
    assert!(error.contains("x.1: line 1, column 1"), "{error}");
}

#[test]
fn files_that_begin_before_zero_are_shifted_by_as_much_as_all_need() {
    let folder = tempfile::tempdir().unwrap();
    let part = |name: &str, times: &[i64]| {
        let path = folder.path().join(name);
        let lines: String =
            times.iter().map(|time| format!("7,R,0,4096,{time}\n# a note\n")).collect();
        fs::write(&path, lines).unwrap();
        path
    };
    let first = part("a.csv", &[10, 20]);
    let rest = [part("b.csv", &[-2000, 0, 50]), part("c.csv", &[-1500, 15])];
    let (rows, reader) = read(&first, &rest, 2);
    let times: Vec<u64> = rows.iter().map(|row| row.0).collect();
    assert_eq!(times, [0, 500, 2000, 2010, 2015, 2020, 2050]);
    let expected = [
        "passed over: 7 comments",
        "times begin 2ms before zero: the trace is shifted to begin at zero",
    ];
    assert_eq!(reader.notes(), expected);
}
