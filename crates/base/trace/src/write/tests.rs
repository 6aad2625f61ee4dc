//! Tests of all writers: round trips, refusals, and that errors lose nothing.

use super::*;
use crate::binary::testing::directory;
use crate::formats::testing::record;
use crate::{OpenOptions, Record, open};
use cachewright_types::Op;

fn batch(records: &[Record]) -> Batch {
    let mut batch = Batch::default();
    records.iter().for_each(|record| batch.push(*record));
    batch
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What comes back of a trace written in two pieces, and what the writer said.
fn there_and_back(
    format: &str,
    records: &[Record],
    volumes: &[&str],
) -> Result<(Vec<Record>, Vec<String>, WriteSummary), TraceError> {
    let directory = directory();
    let path = directory.path().join("trace");
    std::fs::write(&path, "old").unwrap();
    let mut writer = create_writer(format, &path, &BTreeMap::new())?;
    let (first, second) = records.split_at(records.len() / 2);
    let volumes = names(volumes);
    for part in [first, second] {
        if let Err(error) = writer.write(&batch(part), &volumes) {
            drop(writer);
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
            return Err(error);
        }
    }
    let written = writer.finish()?;
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file");
    let mut reader = open(&path, &OpenOptions::default())?;
    let mut read = Batch::default();
    while reader.read(&mut read, 2)? > 0 {}
    Ok((read.iter().collect(), reader.volumes().to_vec(), written))
}

fn all_kinds() -> Vec<Record> {
    vec![
        record(1_000, Op::Read, 4096, 512, 0),
        record(2_000, Op::Write, 0, 8192, 1),
        record(2_000, Op::Trim, 1 << 40, 1 << 30, 1),
        record(3_000, Op::Flush, 0, 0, 0),
    ]
}

#[test]
fn parquet_and_csv_keep_every_request() {
    for format in ["parquet", "alibaba", "csv"] {
        let (read, volumes, written) = there_and_back(format, &all_kinds(), &["7", "300"]).unwrap();
        assert_eq!(read, all_kinds(), "{format}");
        assert_eq!(volumes, ["7", "300"]);
        assert_eq!(written, WriteSummary { requests: 4, left_out: 0, moved_s: 0 });
    }
}

#[test]
fn csv_numbers_volumes_that_have_names() {
    let (_, volumes, _) = there_and_back("csv", &all_kinds(), &["web.3", "hm.0"]).unwrap();
    assert_eq!(volumes, ["0", "1"]);
    let error = there_and_back("csv", &all_kinds(), &["7", "hm.0"]).unwrap_err().to_string();
    assert!(error.contains("`hm.0`") && error.contains("`parquet`"), "{error}");
}

#[test]
fn oracle_general_knows_the_next_access() {
    let directory = directory();
    let path = directory.path().join("trace");
    let mut writer = create_writer("oracle-general", &path, &BTreeMap::new()).unwrap();
    let at =
        |time_s: u64, op, sector: u64| record(time_s * 1_000_000_000, op, sector * 512, 512, 0);
    let records =
        [at(5, Op::Read, 7), at(5, Op::Write, 9), at(6, Op::Flush, 0), at(7, Op::Read, 7)];
    writer.write(&batch(&records), &names(&["a"])).unwrap();
    assert_eq!(writer.finish().unwrap(), WriteSummary { requests: 3, left_out: 1, moved_s: 0 });
    let bytes = std::fs::read(&path).unwrap();
    let next: Vec<i64> = bytes
        .chunks_exact(24)
        .map(|record| i64::from_le_bytes(record[16..].try_into().unwrap()))
        .collect();
    assert_eq!(next, [3, -1, -1], "1-based numbers");

    let bad = [
        (
            vec![at(1, Op::Read, 1), record(1, Op::Read, 512, 512, 1)],
            "a second volume in request 2",
        ),
        (vec![record(1, Op::Read, 513, 512, 0)], "offset 513 B"),
        (vec![record(1, Op::Read, 512, 1 << 32, 0)], "length 4294967296 B"),
        (vec![at(1, Op::Read, 1), at(1 << 32, Op::Read, 1)], "time 4294967296 s in request 2"),
    ];
    for (records, expected) in bad {
        let error = there_and_back("oracle-general", &records, &["a", "b"]).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    let path = Path::new("unused");
    let error = create_writer("parqet", path, &BTreeMap::new()).err().unwrap().to_string();
    assert!(error.contains("nearest is `parquet`"), "{error}");
    let option = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let error = create_writer("parquet", path, &option("compresion", "lz4")).err().unwrap();
    assert!(error.to_string().contains("nearest is `compression`"), "{error}");
    let error = create_writer("parquet", path, &option("compression", "gzip")).err().unwrap();
    assert!(error.to_string().contains("one of none, lz4, zstd"), "{error}");
    assert!(create_writer("csv", path, &option("x", "1")).is_err());
    let missing = Path::new("/nonexistent-directory/trace");
    assert!(create_writer("csv", missing, &BTreeMap::new()).is_err());
}

#[test]
fn a_suffix_of_compression_compresses() {
    let magics: [(&str, &[u8]); 4] =
        [("gz", b"\x1f\x8b"), ("zst", b"\x28\xb5\x2f\xfd"), ("xz", b"\xfd7zXZ"), ("bz2", b"BZh")];
    let records: Vec<Record> =
        (0..5_000).map(|n| record(n * 1_000, Op::Read, n % 97 * 4096, 4096, 0)).collect();
    for format in ["alibaba", "oracle-general"] {
        let directory = directory();
        for (suffix, magic) in magics {
            let path = directory.path().join(format!("t.{suffix}"));
            let mut writer = create_writer(format, &path, &BTreeMap::new()).unwrap();
            writer.write(&batch(&records), &names(&["1"])).unwrap();
            assert_eq!(
                writer.finish().unwrap(),
                WriteSummary { requests: 5_000, left_out: 0, moved_s: 0 }
            );
            assert!(std::fs::read(&path).unwrap().starts_with(magic), "{format} {suffix}");
            let mut reader = open(&path, &OpenOptions::default()).unwrap();
            let mut read = Batch::default();
            while reader.read(&mut read, 1_000).unwrap() > 0 {}
            assert_eq!(read.offset_bytes, batch(&records).offset_bytes, "{format} {suffix}");
        }
    }
    let error = create_writer("parquet", Path::new("t.parquet.gz"), &BTreeMap::new()).err();
    let error = error.unwrap().to_string();
    assert!(error.starts_with("t.parquet.gz: found a suffix of gzip"), "{error}");
}

#[test]
fn a_trace_without_a_request_is_not_written() {
    for format in ["parquet", "alibaba", "oracle-general"] {
        let directory = directory();
        let path = directory.path().join("trace");
        let writer = create_writer(format, &path, &BTreeMap::new()).unwrap();
        let error = writer.finish().unwrap_err().to_string();
        assert!(error.contains("no request"), "{format}: {error}");
        let mut writer = create_writer("oracle-general", &path, &BTreeMap::new()).unwrap();
        writer.write(&batch(&[record(1, Op::Flush, 0, 0, 0)]), &names(&["1"])).unwrap();
        let error = writer.finish().unwrap_err().to_string();
        assert!(error.contains("no request that the format can hold (1 left out)"), "{error}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "{format}");
    }
}
