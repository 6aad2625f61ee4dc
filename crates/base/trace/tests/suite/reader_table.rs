//! The table of `docs/formats.md` holds: the units of every row, what is to be said, and that the
//! rest is recognised.
#![allow(clippy::expect_used, clippy::panic)]

use crate::samples::{is_recognised, sample};
use cachewright_trace::{
    Batch, FORMATS, OpenOptions, Record, Unit, create_writer, open_bytes, recognise_bytes,
};
use cachewright_types::Op;
use std::collections::BTreeMap;

/// What stands in the row's columns: 3 units of time, 5 of the offset, 7 of the length.
const TIME: u64 = 3;
const OFFSET: u64 = 5;
const LENGTH: u64 = 7;

/// A file of one request.
fn one_request(format: &str) -> Option<Vec<u8>> {
    let text = match format {
        "alibaba" => "3,R,5,7,3",
        "tencent" => "3,5,7,0,9",
        "msr" => "3,web,3,Read,5,7,1",
        "systor17" => "Timestamp,Response,IOType,LUN,Offset,Size\n3,0.1,R,0,5,7",
        "spc" => "0,5,7,r,3",
        "fiu" => "3 7 sh 5 7 W 6 0 0",
        "blkparse" => "8,0 0 1 3 7 Q R 5 + 7 [sh]",
        "fio-iolog" => "fio version 3 iolog\n0 /dev/a open\n3 /dev/a read 5 7",
        "mqsim" | "disksim" => "3 0 5 7 1",
        "biosnoop" => "3 sh 7 sda R 5 7 0.1",
        "ftrace" => "x-7 [000] 3: block_rq_issue: 8,0 R 8 () 5 + 7 [x]",
        "etw" => "DiskRead, 3, p, 1, 1, 5, 7, 1, 0",
        "iotrace" => "header.timestamp,io.lba,io.len,io.operation\n3,5,7,Read",
        "k5cloud" => "12,3,R,5,7",
        "biotracer" => "5 7 3584 4 3 4 4 4",
        "tectonic" => "77 5 7 3 1 1 9 0 1 5",
        "thesios" => "filename,file_offset,request_io_size_bytes,op_type,start_time\nf,5,7,READ,3",
        "mooncake" => "{\"timestamp\": 3, \"hash_ids\": [5]}",
        "syscall" => "3,1,5,5,7,R",
        "arc" => "5 7 0 0",
        "ids" => "5",
        _ => return one_binary_request(format),
    };
    Some(text.as_bytes().to_vec())
}

fn one_binary_request(format: &str) -> Option<Vec<u8>> {
    let object = |tail: &[u8]| {
        let mut bytes = Vec::new();
        bytes.extend((TIME as u32).to_le_bytes());
        bytes.extend(OFFSET.to_le_bytes());
        bytes.extend((LENGTH as u32).to_le_bytes());
        bytes.extend(tail);
        bytes.extend((-1_i64).to_le_bytes());
        bytes
    };
    let patched = |size: usize, places: [usize; 3], wide: [usize; 3]| {
        let mut bytes = sample(format)[..size].to_vec();
        for (at, (value, width)) in places.iter().zip([TIME, OFFSET, LENGTH].iter().zip(wide)) {
            bytes[*at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        bytes
    };
    Some(match format {
        "oracle-general" => object(&[]),
        "oracle-general-op-ns" => object(&[1, 3, 0]),
        "lcs" => patched(8192 + 36, [8192, 8196, 8204], [4, 8, 8]),
        "blktrace" => patched(48, [8, 16, 24], [8, 8, 4]),
        "vscsi" => patched(32, [24, 16, 4], [8, 8, 4]),
        "raw" => OFFSET.to_le_bytes().to_vec(),
        "parquet" => {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("t.parquet");
            let mut writer = create_writer("parquet", &path, &BTreeMap::new()).expect("opens");
            let mut batch = Batch::default();
            let (time_ns, offset_bytes, length_bytes) = (TIME, OFFSET, LENGTH);
            batch.push(Record { time_ns, offset_bytes, length_bytes, op: Op::Read, volume: 0 });
            writer.write(&batch, &["0".to_owned()]).expect("writes");
            writer.finish().expect("ends");
            std::fs::read(&path).expect("is there")
        }
        _ => return None,
    })
}

#[test]
fn every_row_has_the_units_that_the_table_says() {
    for entry in FORMATS {
        let Some(bytes) = one_request(entry.name) else {
            let units = [entry.time, entry.offset, entry.length];
            assert_eq!(units, [Unit::Stated; 3], "`{}` has no request here", entry.name);
            continue;
        };
        let format = Some(entry.name.to_owned());
        let options = OpenOptions { format, ..OpenOptions::default() };
        let mut reader = open_bytes("one", &bytes, &options).expect("opens");
        let mut batch = Batch::default();
        while reader.read(&mut batch, 9).unwrap_or_else(|error| panic!("{error}")) > 0 {}
        assert_eq!(batch.len(), 1, "{}", entry.name);
        let size = |unit: Unit, count: u64, absent: u64| match unit {
            Unit::Of(size) => size * count,
            Unit::Absent => absent,
            Unit::Stated => panic!("`{}` has no unit", entry.name),
        };
        let offset_bytes = size(entry.offset, OFFSET, 0);
        // Without lengths a request is one unit of addresses.
        let length_bytes = size(entry.length, LENGTH, offset_bytes / OFFSET);
        let found = (batch.time_ns[0], batch.offset_bytes[0], batch.length_bytes[0]);
        assert_eq!(
            found,
            (size(entry.time, TIME, 0), offset_bytes, length_bytes),
            "{}",
            entry.name
        );
        assert_eq!(reader.has_times(), entry.time != Unit::Absent, "{}", entry.name);
    }
}

#[test]
fn what_is_to_be_said_are_options_and_the_rest_is_recognised() {
    for entry in FORMATS {
        let keys: Vec<&str> = (entry.options)().iter().map(|key| key.name).collect();
        for option in entry.to_say {
            let is_one = keys.contains(option) || *option == "format";
            assert!(is_one, "`{}` has no option `{option}`: {keys:?}", entry.name);
        }
        let is_found = recognise_bytes(&sample(entry.name)).is_ok_and(|f| f.name == entry.name);
        assert_eq!(is_found, !entry.to_say.contains(&"format"), "{}", entry.name);
        assert_eq!(is_found, is_recognised(entry.name), "{}", entry.name);
    }
}
