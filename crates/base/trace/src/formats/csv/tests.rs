//! CSV files by hand.
//!
//! For: headers, columns, bad records. Must never know: other formats.

use super::*;
use crate::formats::testing::{bad_with, options, read_all, read_with, record};

const MAP: (&str, &str) = ("columns", "time=1,op=2,offset=3,length=4,volume=5");

#[test]
fn columns_by_number() {
    let options = options(
        "csv",
        &[MAP, ("time_unit", "ms"), ("offset_unit", "4KiB"), ("length_unit", "sector")],
    );
    let text = "t,o,a,b,v\n1.5,READ,3,8,a\n2,ws,0x10,1,\"b, c\"\n3,unmap,1,8,a\n4,S,,,a\n";
    let (records, volumes) = read_with(&options, text);
    let expected = [
        record(1_500_000, Op::Read, 12_288, 4096, 0),
        record(2_000_000, Op::Write, 65_536, 512, 1),
        record(3_000_000, Op::Trim, 4096, 4096, 0),
        record(4_000_000, Op::Flush, 0, 0, 0),
    ];
    assert_eq!(records, expected);
    assert_eq!(volumes, ["a", "b, c"]);
}

#[test]
fn a_header_with_units_describes_itself() {
    let text = "ts_us,vol,op,offset_bytes,size_bytes\n0.000,0,W,845975552,131072\n\
                35.081,1,r,0,4096\n";
    let (records, volumes) = read_with(&OpenOptions::default(), text);
    let expected =
        [record(0, Op::Write, 845_975_552, 131_072, 0), record(35_081, Op::Read, 0, 4096, 1)];
    assert_eq!(records, expected, "recognised, with no option at all");
    assert_eq!(volumes, ["0", "1"]);
    let semicolons = "size (KiB); type ;LBA sectors;time_ns\n4;w;16;7\n";
    let (records, volumes) = read_all("csv", semicolons);
    assert_eq!(records, [record(7, Op::Write, 8192, 4096, 0)]);
    assert_eq!(volumes, ["0"]);
}

#[test]
fn page_numbers_need_defaults() {
    let pairs = [
        ("columns", "offset=1"),
        ("offset_unit", "4KiB"),
        ("default_op", "read"),
        ("default_length", "4KiB"),
    ];
    let (records, _) = read_with(&options("csv", &pairs), "7\n0\n7\n");
    let expected = [(0, 28_672), (1, 0), (2, 28_672)]
        .map(|(time, offset)| record(time, Op::Read, offset, 4096, 0));
    assert_eq!(records, expected);
    let pairs = [
        ("columns", "offset=1,length=2"),
        ("offset_unit", "sector"),
        ("length_unit", "sector"),
        ("default_op", "write"),
    ];
    let (records, _) = read_with(&options("csv", &pairs), "8  16 0 1\n");
    assert_eq!(records, [record(0, Op::Write, 4096, 8192, 0)], "runs of blanks");
}

#[test]
fn words_and_header_are_options() {
    let pairs = [
        ("columns", "op=kind, offset=where, length=2"),
        ("offset_unit", "B"),
        ("length_unit", "B"),
        ("delimiter", "|"),
        ("header", "yes"),
        ("read_words", "0"),
        ("write_words", "1,write"),
    ];
    let (records, _) = read_with(&options("csv", &pairs), "where|n|kind|3\n5|1|0\n6|2|WRITE\n");
    assert_eq!(records, [record(0, Op::Read, 5, 1, 0), record(1, Op::Write, 6, 2, 0)]);
    let refused = bad_with(&options("csv", &pairs), "where|n|kind|3\n5|1|r\n");
    assert!(refused.contains("line 2, column 3: found `r`, expected one of the words"));
}

#[test]
fn rows_may_be_kept_by_a_column() {
    let text = "t,event,op,a,n\n1,Q,R,0,512\n2,D,R,0,512\n3,C,R,0,512\n4,D,x,8,512\n";
    let map = ("columns", "time=1,op=3,offset=4,length=5");
    let units = [("time_unit", "us"), ("offset_unit", "B"), ("length_unit", "B")];
    let with = |keep| options("csv", &[&[map, ("keep", keep)], &units[..]].concat());
    let (records, _) = read_with(&with("event=Q|C"), text);
    assert_eq!(records.iter().map(|r| r.time_ns).collect::<Vec<_>>(), [1_000, 3_000]);
    assert_eq!(read_with(&with("2=C"), text).0.len(), 1);
    assert_eq!(read_with(&with("op = R"), text).0.len(), 3, "a column with a role");
    assert!(bad_with(&with("2=D"), text).contains("line 5, column 3: found `x`"));
    let error = bad_with(&with("evnt=D"), text);
    assert!(error.starts_with("`keep`: found `evnt=D`"), "{error}");
    assert!(error.ends_with("nearest is `event`"), "{error}");
    for wrong in ["event", "event=", "0=D", "=D"] {
        assert!(bad_with(&with(wrong), text).starts_with("`keep`: found"), "{wrong}");
    }
    let beyond = bad_with(&with("7=D"), text);
    assert!(beyond.contains("column 6: found `end of line`, expected a field"), "{beyond}");
    assert!(bad_with(&with("event=X"), text).contains("no request (0 bad and 5 irrelevant"));
}

#[test]
fn a_default_length_is_bounded_as_a_length_is() {
    let pairs = [
        ("columns", "offset=1"),
        ("offset_unit", "4KiB"),
        ("default_op", "read"),
        ("default_length", "2GiB"),
    ];
    let error = bad_with(&options("csv", &pairs), "7\n");
    let expected = "at most 1GiB in one request (`max_request`)";
    assert_eq!(error, format!("`default_length`: found `2147483648B`, expected {expected}"));
}

#[test]
fn incomplete_maps_are_refused() {
    let units = [("time_unit", "us"), ("offset_unit", "B"), ("length_unit", "B")];
    let refused = |pairs: &[(&str, &str)], text: &str| bad_with(&options("csv", pairs), text);
    let line = "1,r,0,512,v\n";
    let error = refused(&[MAP], line);
    assert!(error.starts_with("`time_unit`: found `nothing`, expected one of ps"), "{error}");
    let error = refused(&[], line);
    assert!(error.starts_with("`columns`: found `nothing`, expected"), "{error}");
    let with = |columns| refused(&[&[("columns", columns)], &units[..]].concat(), line);
    assert!(with("tme=1,op=2,offset=3,length=4").contains("nearest is `time`"));
    assert!(with("time=1,op=2,length=4").contains("offset"), "{}", with("time=1,op=2"));
    assert!(with("time=0,op=2,offset=3,length=4").contains("found `time=0`"));
    assert!(with("time=1,op=1,offset=3,length=4").contains("column 1 twice"));
    assert!(with("time=1,offset=3,length=4").starts_with("`default_op`: found `nothing`"));
    assert!(with("time=1,op=2,offset=3").starts_with("`default_length`: found `nothing`"));
    let error = refused(&[("columns", "offset=ofset")], "offset,length\n1,2\n");
    assert!(error.contains("nearest is `offset`"), "{error}");
}

#[test]
fn bad_lines_are_named() {
    let pairs = [MAP, ("time_unit", "us"), ("offset_unit", "B"), ("length_unit", "B")];
    let line = |line: &str| bad_with(&options("csv", &pairs), line);
    assert!(line("x,r,0,512,v\n").contains("line 1, column 1: found `x`, expected a time"));
    assert!(line("1,r,-5,512,v\n").contains("column 3: found `-5`, expected an offset"));
    assert!(line("1,r,0,0,v\n").contains("column 4: found `0`, expected a length above 0"));
    assert!(line("1,r,0,512\n").contains("column 5: found `end of line`, expected a field"));
    assert!(line("1,r,0,512,\n").contains("column 5: found ``, expected the name of a volume"));
    assert!(line("1,r,0x,512,v\n").contains("column 3: found `0x`"));
}
