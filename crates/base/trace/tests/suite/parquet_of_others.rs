//! Parquet as pandas, polars, pyarrow and fastparquet write it by default and by their options.
//!
//! For: files of other programs in `tests/written`, each of the same six requests, which are listed
//! here by hand. Must never know: the reader's insides.
#![allow(clippy::expect_used, clippy::panic)]

use cachewright_trace::{Batch, OnBadRecord, OpenOptions, Record, TraceReader, open};
use cachewright_types::Op;
use std::path::PathBuf;

const START_S: u64 = 1_700_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const SECONDS: [u64; 6] = [0, 1, 2, 3, 4, 600];
const OFFSETS: [u64; 6] = [0, 4096, 8192, 0, 4096, 12288];
const LENGTHS: [u64; 6] = [4096, 8192, 4096, 4096, 512, 4096];
const OPS: [Op; 6] = [Op::Read, Op::Write, Op::Read, Op::Trim, Op::Read, Op::Write];
const VOLUMES: [u32; 6] = [0, 0, 1, 1, 0, 1];

/// The six requests with these times.
fn requests(time_ns: [u64; 6]) -> Vec<Record> {
    let record = |index: usize| Record {
        time_ns: time_ns[index],
        offset_bytes: OFFSETS[index],
        length_bytes: LENGTHS[index],
        op: OPS[index],
        volume: VOLUMES[index],
    };
    (0..6).map(record).collect()
}

fn since_1970() -> Vec<Record> {
    requests(SECONDS.map(|second| (START_S + second) * SECOND_NS))
}

fn opened(name: &str, options: &OpenOptions) -> Result<Box<dyn TraceReader>, String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/written");
    open(&folder.join(format!("{name}.parquet")), options).map_err(|error| error.to_string())
}

fn read(name: &str, options: &OpenOptions) -> (Vec<Record>, Box<dyn TraceReader>) {
    let mut reader = opened(name, options).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut batch = Batch::default();
    while reader.read(&mut batch, 4).unwrap_or_else(|error| panic!("{name}: {error}")) > 0 {}
    (batch.iter().collect(), reader)
}

fn refusal(name: &str, options: &OpenOptions) -> String {
    let mut reader = match opened(name, options) {
        Err(error) => return error,
        Ok(reader) => reader,
    };
    let mut batch = Batch::default();
    loop {
        match reader.read(&mut batch, 4) {
            Err(error) => return error.to_string(),
            Ok(0) => panic!("{name}: read to its end"),
            Ok(_) => {}
        }
    }
}

fn with(pairs: &[(&str, &str)]) -> OpenOptions {
    let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    OpenOptions { format_options: pairs.collect(), ..OpenOptions::default() }
}

#[test]
fn every_codec_page_version_and_encoding_is_read() {
    for name in [
        "pandas-gzip",
        "pandas-brotli",
        "pandas-lz4",
        "polars-zstd",
        "fastparquet-GZIP",
        "arrow-v2",
        "arrow-v2-brotli",
        "arrow-delta",
        "arrow-split",
        "arrow-struct",
    ] {
        let (found, reader) = read(name, &OpenOptions::default());
        assert_eq!(
            (found, reader.volumes()),
            (since_1970(), ["a", "b"].map(String::from).as_slice()),
            "{name}"
        );
    }
}

#[test]
fn whole_numbers_are_read_from_whatever_type_holds_them() {
    for name in ["pandas-float", "pandas-decimal"] {
        assert_eq!(read(name, &OpenOptions::default()).0, since_1970(), "{name}");
    }
    let (found, reader) = read("pandas-ints", &OpenOptions::default());
    assert_eq!((found, reader.volumes()), (since_1970(), ["3", "7"].map(String::from).as_slice()));
}

#[test]
fn typed_times_become_nanoseconds() {
    for name in ["pandas-tstz-us", "arrow-int96", "polars-cat"] {
        assert_eq!(read(name, &OpenOptions::default()).0, since_1970(), "{name}");
    }
    // Durations have no type in Parquet: the Arrow schema beside it says what the integers are.
    for name in ["pandas-dur-us", "polars-dur-us", "fastparquet-dur"] {
        let from_zero = requests(SECONDS.map(|second| second * SECOND_NS));
        assert_eq!(read(name, &OpenOptions::default()).0, from_zero, "{name}");
    }
    let day = |index: u64| (20_089 + index) * 86_400 * SECOND_NS;
    let days = requests([0, 1, 2, 3, 4, 5].map(day));
    assert_eq!(read("arrow-date", &OpenOptions::default()).0, days);
    let clock = SECONDS.map(|second| (START_S + second) % 86_400 * SECOND_NS);
    assert_eq!(read("polars-time", &OpenOptions::default()).0, requests(clock));
}

#[test]
fn nulls_and_fractions_are_bad_records_of_their_row() {
    let error = refusal("pandas-null", &OpenOptions::default());
    assert!(error.contains("line 2, column 2: found `offset_bytes null`"), "{error}");
    let error = refusal("pandas-fraction", &OpenOptions::default());
    assert!(error.contains("line 2, column 2: found `offset_bytes 4096.5`"), "{error}");
    let skip = OpenOptions { on_bad_record: OnBadRecord::Skip, ..OpenOptions::default() };
    for (name, rows) in [("pandas-null", &[1, 3][..]), ("pandas-fraction", &[1])] {
        let (found, reader) = read(name, &skip);
        let good = since_1970().into_iter().enumerate().filter(|(row, _)| !rows.contains(row));
        assert_eq!(found, good.map(|(_, record)| record).collect::<Vec<_>>(), "{name}");
        assert_eq!(reader.skipped().bad, rows.len() as u64, "{name}");
    }
}

#[test]
fn columns_of_other_names_are_mapped_as_those_of_a_csv() {
    let map = [
        ("columns", "time=timestamp,op=io,offset=lba,length=bytes,volume=disk"),
        ("offset_unit", "sector"),
        ("length_unit", "B"),
    ];
    let in_seconds = [&map[..], &[("time_unit", "s")]].concat();
    assert_eq!(read("pandas-othernames", &with(&in_seconds)).0, since_1970());
    assert_eq!(read("pandas-othernames-ts", &with(&map)).0, since_1970());
    let quarter = SECONDS.map(|second| (START_S + second) * SECOND_NS + SECOND_NS / 4);
    assert_eq!(read("pandas-othernames-float", &with(&in_seconds)).0, requests(quarter));

    let kept = with(&[&in_seconds[..], &[("keep", "event=D")]].concat());
    let (found, reader) = read("pandas-othernames", &kept);
    assert_eq!((found.len(), reader.skipped().irrelevant), (5, 1));
    // Native numbers mean nothing in a map: the words say what each of them is.
    let words = [
        ("columns", "time=1,op=4,offset=2,length=3"),
        ("time_unit", "ns"),
        ("offset_unit", "B"),
        ("length_unit", "B"),
    ];
    let error = refusal("pandas-ints", &with(&words));
    assert!(error.contains("line 1, column 4: found `op 0`"), "{error}");
    let told = [&words[..], &[("read_words", "1"), ("write_words", "0"), ("trim_words", "2")]];
    let ops: Vec<Op> = read("pandas-ints", &with(&told.concat())).0.iter().map(|r| r.op).collect();
    assert_eq!(ops, [Op::Write, Op::Read, Op::Write, Op::Trim, Op::Write, Op::Read]);
    let alone = [
        ("columns", "offset=2"),
        ("offset_unit", "B"),
        ("default_op", "read"),
        ("default_length", "4KiB"),
    ];
    let (found, reader) = read("pandas-ints", &with(&alone));
    assert!(!reader.has_times() && found.iter().all(|record| record.length_bytes == 4096));
}

#[test]
fn what_is_missing_or_of_another_type_is_named_and_not_called_damaged() {
    for (name, options, expected) in [
        ("pandas-bool", with(&[]), "column `length_bytes` of type BOOLEAN, expected whole numbers"),
        ("pandas-othernames", with(&[]), "`timestamp`, `io`, `lba`, `bytes`, `disk`, `event`"),
        (
            "pandas-othernames-ts",
            with(&[
                ("columns", "time=1,op=2,offset=3,length=4"),
                ("time_unit", "s"),
                ("offset_unit", "B"),
                ("length_unit", "B"),
            ]),
            "expected nothing, because the column is of type TIMESTAMP(",
        ),
        (
            "pandas-othernames",
            with(&[
                ("columns", "op=2,offset=9,length=4"),
                ("offset_unit", "B"),
                ("length_unit", "B"),
            ]),
            "`columns`: found `9`, expected a column from 1 to 6",
        ),
    ] {
        let error = refusal(name, &options);
        assert!(error.contains(expected), "{name}: {error}");
        assert!(!error.contains("damaged"), "{name}: {error}");
    }
}
