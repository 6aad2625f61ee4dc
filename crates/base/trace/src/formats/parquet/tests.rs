//! Tests of the native format: round trips, foreign files, damage.

use super::*;
use crate::binary::testing::{bad_bytes, read_bytes};
use crate::formats::testing::{options, record};
use crate::write::{ColumnEncoding, Compression, ParquetWriter, TraceWriter};
use crate::{open, open_bytes};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use std::sync::Arc;

fn written(batch: &Batch, volumes: &[String], choice: (Compression, ColumnEncoding)) -> Vec<u8> {
    let directory = crate::binary::testing::directory();
    let path = directory.path().join("trace.parquet");
    let mut writer = Box::new(ParquetWriter::with(&path, choice.0, choice.1).unwrap());
    writer.write(batch, volumes).unwrap();
    assert_eq!(writer.finish().unwrap().requests, batch.len() as u64);
    std::fs::read(&path).unwrap()
}

fn sample() -> (Batch, Vec<String>) {
    let mut batch = Batch::default();
    batch.push(record(1_000_000_007, Op::Read, 0, 4096, 0));
    batch.push(record(5, Op::Write, (1 << 63) - 1, 1, 1));
    batch.push(record(u64::MAX, Op::Trim, 512, 1 << 40, 1));
    batch.push(record(u64::MAX, Op::Flush, 0, 0, 0));
    (batch, vec!["web, \"3\"".to_owned(), "ü".to_owned()])
}

/// A file of another writer: one value per column, as `schema` says.
fn foreign(schema: &str, values: &[i64], null: bool) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for value in values {
        let mut column = group.next_column().unwrap().unwrap();
        let levels = if null { vec![1, 0] } else { vec![1, 1] };
        let wide = vec![*value; if null { 1 } else { 2 }];
        let narrow: Vec<i32> = wide.iter().map(|value| *value as i32).collect();
        match column.untyped() {
            parquet::column::writer::ColumnWriter::Int32ColumnWriter(_) => {
                column.typed::<Int32Type>().write_batch(&narrow, Some(&levels), None).unwrap()
            }
            _ => column.typed::<Int64Type>().write_batch(&wide, Some(&levels), None).unwrap(),
        };
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn every_choice_reads_back_what_was_written() {
    let (batch, volumes) = sample();
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        for encoding in [ColumnEncoding::Delta, ColumnEncoding::Plain] {
            let bytes = written(&batch, &volumes, (compression, encoding));
            let mut reader = open_bytes("sample", &bytes, &OpenOptions::default()).unwrap();
            assert_eq!(reader.requests_hint(), Some(4));
            let mut read = Batch::default();
            while reader.read(&mut read, 3).unwrap() > 0 {}
            assert_eq!((&read, reader.volumes()), (&batch, volumes.as_slice()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_trace_reads_back(
        records in prop::collection::vec(
            (any::<u64>(), 0_u64..1 << 62, 1_u64..1 << 30, 0_u8..3, 0_u32..3), 1..3000
        ),
        step in 1_usize..2000
    ) {
        let mut batch = Batch::default();
        for (time_ns, offset, length, op, volume) in records {
            batch.push(record(time_ns, Op::ALL[usize::from(op)], offset, length, volume));
        }
        let names: Vec<String> = (0..3).map(|n| n.to_string()).collect();
        let bytes = written(&batch, &names, (Compression::Lz4, ColumnEncoding::Delta));
        let mut reader = open_bytes("sample", &bytes, &options("parquet", &[])).unwrap();
        let mut read = Batch::default();
        while reader.read(&mut read, step).unwrap() > 0 {}
        prop_assert_eq!(read, batch);
    }
}

#[test]
fn files_of_other_writers_are_read() {
    let schema = "message m { optional int64 volume; optional double x; optional int32 op;
        optional int32 length_bytes (UINT_32); optional int64 offset_bytes;
        optional int64 time_ns (INTEGER(64,true)); }";
    let without_x = schema.replace("optional double x;", "");
    let bytes = foreign(&without_x, &[77, 1, -1, 4096, 9], false);
    let long = OpenOptions { max_request: cachewright_types::Bytes(1 << 32), ..Default::default() };
    let (records, volumes) = read_bytes(&long, &bytes);
    let expected = record(9, Op::Write, 4096, u64::from(u32::MAX), 0);
    assert_eq!(records, [expected, expected]);
    assert_eq!(volumes, ["77"]);

    let error = bad_bytes(&options("parquet", &[]), &foreign(&without_x, &[0, 1, 1, 1, 1], true));
    assert!(error.starts_with("sample: line 2, column 2: found `op null`"), "{error}");
    let error = bad_bytes(&options("parquet", &[]), &foreign(&without_x, &[0, 1, 1, -1, 1], false));
    assert!(error.contains("found `offset_bytes -1`, expected a whole number from 0"), "{error}");
    let error = bad_bytes(&options("parquet", &[]), &foreign(&without_x, &[0, 4, 1, 1, 1], false));
    assert!(error.contains("found `op 4`, expected 0 read, 1 write"), "{error}");
}

#[test]
fn missing_and_mistyped_columns_are_named() {
    let base = "message m { required int64 time_ns; required int64 offset_bytes;
        required int64 length_bytes; ";
    let no_op = foreign(&format!("{base} }}"), &[1, 1, 1], false);
    let error = bad_bytes(&options("parquet", &[]), &no_op);
    assert!(error.contains("`default_op`: found `nothing, and columns `time_ns`"), "{error}");
    let no_volume = foreign(&format!("{base} required int32 op; }}"), &[1, 1, 1, 0], false);
    assert_eq!(read_bytes(&options("parquet", &[]), &no_volume).1, ["0"]);
    let dates = foreign(&format!("{base} required int32 op (DATE); }}"), &[1, 1, 1, 0], false);
    let error = bad_bytes(&options("parquet", &[]), &dates);
    assert!(error.contains("found column `op` of type DATE, expected words such as"), "{error}");
}

/// Reads to the end or the first error; what matters is that it returns.
fn survive(bytes: &[u8]) -> bool {
    let Ok(mut reader) = open_bytes("sample", bytes, &options("parquet", &[])) else {
        return false;
    };
    let mut batch = Batch::default();
    for _ in 0..100 {
        match reader.read(&mut batch, 1 << 16) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    true
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let (batch, volumes) = sample();
    for choice in
        [(Compression::Lz4, ColumnEncoding::Delta), (Compression::Zstd, ColumnEncoding::Plain)]
    {
        let bytes = written(&batch, &volumes, choice);
        assert!(survive(&bytes));
        for end in 0..bytes.len() {
            assert!(!survive(&bytes[..end]), "cut at {end}");
        }
    }
}

#[test]
fn a_file_with_any_byte_changed_does_not_panic() {
    let (batch, volumes) = sample();
    let bytes = written(&batch, &volumes, (Compression::Lz4, ColumnEncoding::Delta));
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            survive(&damaged);
        }
    }
}

#[test]
fn an_aborted_or_failed_writer_leaves_the_old_file() {
    let directory = crate::binary::testing::directory();
    let path = directory.path().join("trace.parquet");
    std::fs::write(&path, b"old").unwrap();
    let (batch, volumes) = sample();
    let mut writer = ParquetWriter::with(&path, Compression::None, ColumnEncoding::Plain).unwrap();
    writer.write(&batch, &volumes).unwrap();
    drop(writer);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file");
    assert!(open(&path, &options("parquet", &[])).is_err());
}

/// Of 30 files with a flipped bit, 10 were read as other requests.
#[test]
fn a_flipped_bit_anywhere_is_refused_or_changes_no_request() {
    let mut batch = Batch::default();
    (0..300).for_each(|n| batch.push(record(n * n, Op::ALL[n as usize % 3], n << 12, 512, 0)));
    let volumes = ["a".to_owned()];
    for choice in
        [(Compression::None, ColumnEncoding::Plain), (Compression::Lz4, ColumnEncoding::Delta)]
    {
        let bytes = written(&batch, &volumes, choice);
        let expected: Vec<Record> = batch.iter().collect();
        let mut refused = 0;
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            let Ok(mut reader) = open_bytes("sample", &flipped, &options("parquet", &[])) else {
                refused += 1;
                continue;
            };
            let mut found = Batch::default();
            while let Ok(1..) = reader.read(&mut found, 1 << 10) {}
            match reader.read(&mut found, 1) {
                Ok(_) => assert!(
                    found.iter().eq(expected.iter().copied()) && reader.volumes() == volumes,
                    "byte {at} of {}",
                    bytes.len()
                ),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > bytes.len() / 2, "{refused} of {}", bytes.len());
    }
}

#[test]
fn a_damaged_row_group_is_named_before_a_request_of_it_is_read() {
    let (batch, volumes) = sample();
    let mut bytes = written(&batch, &volumes, (Compression::None, ColumnEncoding::Plain));
    // The first value of the first column lies behind the magic number and a page header.
    let at = bytes.windows(8).position(|eight| eight == 1_000_000_007_u64.to_le_bytes()).unwrap();
    bytes[at] ^= 1;
    let error = bad_bytes(&options("parquet", &[]), &bytes);
    assert!(error.starts_with("sample: found damaged Parquet (row group 1: checksum "), "{error}");
}

#[test]
fn a_trace_without_times_stays_one() {
    let directory = crate::binary::testing::directory();
    let path = directory.path().join("trace.parquet");
    let (batch, volumes) = sample();
    for (times, expected) in [("recorded", true), ("none", false)] {
        let choice = [("times".to_owned(), times.to_owned())].into_iter().collect();
        let mut writer = crate::create_writer("parquet", &path, &choice).unwrap();
        writer.write(&batch, &volumes).unwrap();
        writer.finish().unwrap();
        let reader = open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(reader.has_times(), expected, "{times}");
    }
    let wrong = [("times".to_owned(), "no".to_owned())].into_iter().collect();
    let error = crate::create_writer("parquet", &path, &wrong).err().unwrap().to_string();
    assert_eq!(error, "`times`: found `no`, expected one of recorded, none; nearest is `none`");
}

/// A gzip whose content begins with `PAR1` was unpacked into memory, up to 4 GiB.
#[test]
fn compressed_parquet_is_unpacked_into_a_file() {
    let (batch, volumes) = sample();
    let bytes = written(&batch, &volumes, (Compression::Lz4, ColumnEncoding::Delta));
    let frame = zstd::encode_all(bytes.as_slice(), 1).unwrap();
    let source = crate::ByteSource::from_bytes("sample", &frame).unwrap();
    assert!(matches!(source.into_random_access().unwrap(), RandomAccess::Kept(_)));
    let (records, _) = read_bytes(&options("parquet", &[]), &frame);
    assert_eq!(records, batch.iter().collect::<Vec<_>>());
}
