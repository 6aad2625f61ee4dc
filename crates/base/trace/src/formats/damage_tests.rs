//! Damaged and senseless bytes for every binary format: an error or a count, never a panic.

use crate::binary::testing::directory;
use crate::formats::registry::{FORMATS, open_bytes};
use crate::formats::testing::{options, record};
use crate::write::create_writer;
use crate::{Batch, OnBadRecord, OpenOptions};
use cachewright_types::{Op, Seed};
use std::collections::BTreeMap;

/// Reads to the end or the first error; returns the requests read and whether all went well.
fn survive(bytes: &[u8], options: &OpenOptions) -> (usize, bool) {
    let Ok(mut reader) = open_bytes("sample", bytes, options) else { return (0, false) };
    let mut batch = Batch::default();
    loop {
        match reader.read(&mut batch, 64) {
            Ok(0) => return (batch.len(), true),
            Ok(_) if batch.len() > 100_000 => return (batch.len(), true),
            Ok(_) => {}
            Err(_) => return (batch.len(), false),
        }
    }
}

fn both(format: &str) -> [OpenOptions; 2] {
    let fail = options(format, &[]);
    let skip = OpenOptions { on_bad_record: OnBadRecord::Skip, ..fail.clone() };
    [fail, skip]
}

fn oracle_general() -> Vec<u8> {
    let directory = directory();
    let path = directory.path().join("trace");
    let mut writer = create_writer("oracle-general", &path, &BTreeMap::new()).unwrap();
    let mut batch = Batch::default();
    (0..6).for_each(|n| batch.push(record(n << 30, Op::Read, n % 3 * 512, 4096, 0)));
    writer.write(&batch, &["0".to_owned()]).unwrap();
    writer.finish().unwrap();
    std::fs::read(&path).unwrap()
}

fn vscsi() -> Vec<u8> {
    let record = |n: u8| {
        let mut record = [0_u8; 32];
        (record[5], record[12], record[15], record[16], record[24]) = (2, 0x28, 1, n, n);
        record
    };
    (0..6).flat_map(record).collect()
}

fn blktrace() -> Vec<u8> {
    let event = |n: u8| {
        let mut event = [0_u8; 50];
        event[..4].copy_from_slice(&0x6561_7407_u32.to_le_bytes());
        (event[8], event[16], event[25], event[28], event[30], event[46]) = (n, n, 2, 1, 1, 2);
        event
    };
    (0..6).flat_map(event).collect()
}

#[test]
fn a_trace_cut_anywhere_gives_its_whole_records_and_an_error() {
    for (format, bytes) in
        [("oracle-general", oracle_general()), ("vscsi", vscsi()), ("blktrace", blktrace())]
    {
        let size = bytes.len() / 6;
        for end in 1..=bytes.len() {
            let [fail, skip] = both(format);
            let whole = end / size;
            let cut = end % size != 0;
            assert_eq!(survive(&bytes[..end], &skip), (whole, whole > 0), "{format} {end}");
            assert_eq!(survive(&bytes[..end], &fail).1, !cut && whole > 0, "{format} {end}");
        }
    }
}

#[test]
fn any_bytes_changed_are_survived() {
    for (format, bytes) in
        [("oracle-general", oracle_general()), ("vscsi", vscsi()), ("blktrace", blktrace())]
    {
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                both(format).iter().for_each(|options| {
                    survive(&damaged, options);
                });
            }
        }
    }
}

#[test]
fn garbage_is_survived_by_every_format() {
    let mut rng = Seed(99).rng();
    for round in 0..40 {
        let len = rng.below(3000) as usize;
        let mut bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        let heads: [&[u8]; 5] = [b"", b"PAR1", &[7, 0x74, 0x61, 0x65], b"[synth]\n", b"1,R,"];
        let head = heads[round % heads.len()];
        bytes.splice(0..0, head.iter().copied());
        if round % heads.len() == 1 {
            bytes.extend(rng.below(4000).to_le_bytes()[..4].to_vec());
            bytes.extend(b"PAR1");
        }
        survive(&bytes, &OpenOptions::default());
        for entry in FORMATS {
            both(entry.name).iter().for_each(|options| {
                survive(&bytes, options);
            });
        }
    }
}
