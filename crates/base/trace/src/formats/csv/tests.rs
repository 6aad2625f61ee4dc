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
    assert!(beyond.contains("no request (0 bad and 5 irrelevant"), "{beyond}");
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
    assert!(
        error.starts_with("sample: `time_unit`: found `nothing`, expected one of ps"),
        "{error}"
    );
    let error = refused(&[], line);
    assert!(error.starts_with("sample: `columns`: found `nothing`, expected"), "{error}");
    let with = |columns| refused(&[&[("columns", columns)], &units[..]].concat(), line);
    assert!(with("tme=1,op=2,offset=3,length=4").contains("nearest is `time`"));
    assert!(with("time=1,op=2,length=4").contains("offset"), "{}", with("time=1,op=2"));
    assert!(with("time=0,op=2,offset=3,length=4").contains("found `time=0`"));
    assert!(with("time=1,op=1,offset=3,length=4").contains("column 1 twice"));
    assert!(with("time=1,offset=3,length=4").contains("`default_op`: found `nothing`"));
    assert!(with("time=1,op=2,offset=3").contains("`default_length`: found `nothing`"));
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

#[test]
fn rows_that_are_not_kept_need_no_further_columns() {
    let text = "event,time_us,op,offset_bytes,length_bytes\ninit,1\nio,2,R,0,4096\n\nend\n\
                io,3,W,4096,4096\nio,4\n";
    let keep = options("csv", &[("keep", "event=io")]);
    let error = bad_with(&keep, text);
    assert!(error.contains("line 7, column 3: found `end of line`, expected a field"), "{error}");
    let (records, _) = read_with(&keep, &text[..text.len() - 5]);
    assert_eq!(records.len(), 2);
    let at_the_end = options("csv", &[("keep", "kind=io"), ("default_op", "read")]);
    let (records, _) = read_with(&at_the_end, "offset_bytes,length_bytes,kind\n1,2\n0,512,io\n");
    assert_eq!(records, [record(0, Op::Read, 0, 512, 0)], "short of the column that decides");
}

#[test]
fn dates_need_no_unit_and_the_first_word_of_an_operation_counts() {
    let text = "timestamp,command,sector,operation,size_bytes\n\
                2025-03-04 10:00:00.000001,app,2048,write|sync,4096\n\
                2025-03-04T12:00:00.500001+02:00,\"my, app\",4096,read|ahead,8192\n\
                2025-03-04 10:00:01,app,0,FWS,512\n";
    let start_ns = 1_741_082_400_000_000_000;
    let expected = [
        record(start_ns + 1_000, Op::Write, 1_048_576, 4096, 0),
        record(start_ns + 500_001_000, Op::Read, 2_097_152, 8192, 0),
        record(start_ns + 1_000_000_000, Op::Write, 0, 512, 0),
    ];
    assert_eq!(read_with(&OpenOptions::default(), text).0, expected, "recognised");
    let error = bad_with(&options("csv", &[]), &text.replace("2025-03-04 10:00:01", "17"));
    assert!(error.contains("line 4, column 1: found `17`, expected a date such as"), "{error}");
}

#[test]
fn comments_may_stand_before_a_header_or_hold_it() {
    let body = "1000,R,0,4096\n// half\n2000,W,4096,4096\n";
    let expected =
        [record(1_000_000, Op::Read, 0, 4096, 0), record(2_000_000, Op::Write, 4096, 4096, 0)];
    let header = "time_us,op,offset_bytes,length_bytes\n";
    for before in ["# made by my script\n# units: us, bytes\n\n", "", "//\n"] {
        let text = format!("{before}{header}{body}{header}");
        assert_eq!(read_with(&OpenOptions::default(), &text).0, expected, "`{before}`");
        let yes = options("csv", &[("header", "yes")]);
        assert_eq!(read_with(&yes, &text).0, expected, "`{before}`, said");
    }
    let text = format!("# one, two\n# {header}{body}");
    assert_eq!(read_with(&OpenOptions::default(), &text).0, expected, "the header is a comment");
    assert_eq!(read_with(&options("csv", &[("header", "yes")]), &text).0, expected);
}

#[test]
fn names_are_objects_and_a_row_may_stand_for_many_requests() {
    let text = "0,q:q:1:aaa,17,213,4,get,0\n0,y:3q:bbb,27,2700000,5,set,86400\n\
                1,q:q:1:aaa,17,213,4,get,0\n";
    let pairs = [
        ("columns", "time=1,offset=2,length=4,op=6"),
        ("time_unit", "s"),
        ("length_unit", "B"),
        ("ids", "words"),
        ("read_words", "get"),
        ("write_words", "set"),
    ];
    let (records, _) = read_with(&options("csv", &pairs), text);
    let gib = 1 << 30;
    let expected = [
        record(0, Op::Read, 0, 213, 0),
        record(0, Op::Write, gib, 2_700_000, 0),
        record(1_000_000_000, Op::Read, 0, 213, 0),
    ];
    assert_eq!(records, expected);
    let near = [&pairs[..], &[("offset_unit", "1MiB")]].concat();
    let error = bad_with(&options("csv", &near), text);
    assert!(error.contains("line 2, column 4: found `2700000`, expected at most `offset_unit`"));

    let text = "key,op,size,op_count,key_size\n7,SET,82,1,40\n7,GET,82,3,40\n8,GET_LEASE,208,2,63\n\
                9,GET,1,0,1\n";
    let map = [
        ("columns", "offset=key,op=op,length=size,count=op_count"),
        ("offset_unit", "4KiB"),
        ("length_unit", "B"),
        ("read_words", "get,get_lease"),
        ("write_words", "set"),
    ];
    let (records, _) = read_with(&options("csv", &map), text);
    let at = |time, op, key: u64, length| record(time, op, key * 4096, length, 0);
    let expected = [
        at(0, Op::Write, 7, 82),
        at(1, Op::Read, 7, 82),
        at(2, Op::Read, 7, 82),
        at(3, Op::Read, 7, 82),
        at(4, Op::Read, 8, 208),
        at(5, Op::Read, 8, 208),
    ];
    assert_eq!(records, expected, "in batches of three");
    let error = bad_with(&options("csv", &map), &text.replace(",3,40", ",16777217,40"));
    assert!(error.contains("line 3, column 4: found `16777217`, expected how often"), "{error}");
}

#[test]
fn numbers_may_be_floats_and_times_before_zero() {
    let text = "timestamp_us,op,offset_bytes,length_bytes\n-2e3,R,0.0,4096.0\n-1000,W,8192.0,4096\n\
                0,R,1e+04,4096.\n";
    let (records, _) = read_all("csv", text);
    let expected = [
        record(0, Op::Read, 0, 4096, 0),
        record(1_000_000, Op::Write, 8192, 4096, 0),
        record(2_000_000, Op::Read, 10_000, 4096, 0),
    ];
    assert_eq!(records, expected);
    let error = bad_with(&options("csv", &[]), &text.replace("8192.0", "8192.5"));
    assert!(error.contains("line 3, column 3: found `8192.5`, expected an offset"), "{error}");
}

/// The options that a message proposes.
fn proposed(message: &str) -> Vec<(&str, &str)> {
    let line = message.lines().find(|line| line.contains("--format csv")).expect("has a proposal");
    line.split(" --option ")
        .skip(1)
        .filter_map(|part| part.trim_matches('\'').split_once('='))
        .collect()
}

#[test]
fn an_unknown_table_is_read_with_the_one_line_that_its_message_proposes() {
    for (text, expected, rows) in [
        (
            "timestamp,op,sector,nr_sectors\n1000,R,2048,8\n2000,W,4096,16\n",
            "columns=time=timestamp,op=op,offset=sector,length=nr_sectors time_unit=us",
            "read of 4096 B at byte 1048576, at 0.001 s",
        ),
        (
            "timestamp,pid,command,sector,operation,size,dev\n\
             2025-03-04 10:00:00.000001,100,app,2048,write|sync,4096,8:0\n",
            "columns=time=timestamp,op=operation,offset=sector,length=size,volume=dev \
             length_unit=B",
            "write of 4096 B at byte 1048576 of volume `8:0`, at 1741082400.000001 s",
        ),
        (
            "key,op,size,op_count,key_size\n7,SET,82,1,40\n7,GET,82,3,40\n8,GET_LEASE,208,2,63\n",
            "columns=op=op,offset=key,length=size,count=op_count offset_unit=4KiB \
             length_unit=B read_words=get,get_lease write_words=set",
            "write of 82 B at byte 28672",
        ),
        (
            "1700000000.25;0;81920;4096\n1700000001.5;1;0;8192\n",
            "columns=time=1,op=2,offset=3,length=4 time_unit=s offset_unit=B length_unit=B \
             read_words=0 write_words=1",
            "read of 4096 B at byte 81920, at 1700000000.25 s",
        ),
        (
            "0,q:q:1:aaa,17,213,4,get,0\n0,y:3q:bbb,27,27,5,set,86400\n\
             1,q:q:1:aaa,17,213,4,get,0\n",
            "columns=time=1,op=6,offset=2,length=4 time_unit=us ids=words length_unit=B \
             read_words=get write_words=set",
            "read of 213 B at byte 0, at 0.000001 s",
        ),
        ("when,who,what,where\n5,a,load,k:1\n6,b,store,k:2\n", "", ""),
    ] {
        let message = bad_with(&OpenOptions::default(), text);
        if expected.is_empty() {
            assert!(!message.contains("--format csv"), "no offset to be seen: {message}");
            continue;
        }
        let pairs = proposed(&message);
        let found: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(found.join(" "), expected, "{message}");
        assert!(message.contains(rows), "{message}");
        let (records, _) = read_with(&options("csv", &pairs), text);
        assert!(records.len() >= 2 || text.lines().count() == 2, "{message}");
        let named = bad_with(&options("csv", &[]), text);
        assert!(named.contains(rows), "the same where the format is named: {named}");
    }
}

#[test]
fn what_was_given_is_kept_in_a_proposal() {
    let text = "when,kind,where,much\n5,R,8,16\n";
    let given =
        [("columns", "time=when,op=kind,offset=where,length=much"), ("offset_unit", "4KiB")];
    let message = bad_with(&options("csv", &given), text);
    assert!(message.starts_with("sample: `time_unit`: found `nothing`"), "{message}");
    let pairs = proposed(&message);
    assert!(given.iter().all(|pair| pairs.contains(pair)), "{message}");
    let (records, _) = read_with(&options("csv", &pairs), text);
    assert_eq!((records[0].offset_bytes, records.len()), (32_768, 1));
    let wrong = bad_with(&options("csv", &[("columns", "time=wen,offset=where")]), text);
    assert!(wrong.contains("nearest is `when`") && !wrong.contains("--format csv"), "{wrong}");
}

#[test]
fn a_bad_line_names_the_nearest_format_and_its_reason() {
    let message = bad_with(&OpenOptions::default(), "1,R,nan,4096,5\n");
    assert!(
        message.contains(
            "nearest is `alibaba`, but line 1, column 3: found `nan`, expected an offset"
        ),
        "{message}"
    );
    let message =
        bad_with(&OpenOptions::default(), "time_us,op,offset_bytes,size_bytes\n1,R,x,1\n");
    assert!(message.contains("nearest is `csv`, but line 2, column 3: found `x`"), "{message}");
    let mut text = "128166372003061629,usr,0,Read,7014609920,24576,41286\n".repeat(3);
    text.push_str("128166372003061629,usr,0,Flush,0,0,41286\n128166372003061629,usr,x,,,,\n");
    let message = bad_with(&OpenOptions::default(), &text);
    assert!(message.contains("nearest is `msr`, but line 4, column 4: found `Flush`"), "{message}");
}
