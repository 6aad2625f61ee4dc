//! Numbers, dates, quotes, comments and headers as programs write them, in every text format.
//!
//! For: what holds of all text readers alike. Must never know: a reader's insides. Each file is
//! the format's sample, written another way; it must give the sample's requests.
#![allow(clippy::expect_used, clippy::panic)]

use crate::samples;

use cachewright_trace::OnBadRecord::{Fail, Skip};
use cachewright_trace::{Batch, OpenOptions, PassedOver, Record, open_bytes};
use samples::{Outcome, has_times, read, read_with, sample, text_formats};

fn lines(format: &str) -> Vec<String> {
    let text = String::from_utf8(sample(format)).expect("is text");
    text.lines().map(str::to_owned).collect()
}

fn options(format: &str, pairs: &[(&str, &str)]) -> OpenOptions {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let format_options = pairs.iter().map(pair).collect();
    OpenOptions { format: Some(format.to_owned()), format_options, ..OpenOptions::default() }
}

/// What a whole read passed over, by reason, and its notes.
fn told(options: &OpenOptions, text: &str) -> (Vec<PassedOver>, Vec<String>) {
    let mut reader = open_bytes("trace", text.as_bytes(), options).expect("must open");
    let mut batch = Batch::default();
    while reader.read(&mut batch, 2).expect("must be valid") > 0 {}
    (reader.skipped().reasons.clone(), reader.notes())
}

/// Line `index` of a sample with each of its fields that `fits` written anew by `write`.
fn rewritten(line: &str, separators: &str, write: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut field = String::new();
    for c in line.chars() {
        if separators.contains(c) {
            out.push_str(&write(&field));
            field.clear();
            out.push(c);
        } else {
            field.push(c);
        }
    }
    out.push_str(&write(&field));
    out
}

fn is_whole(field: &str) -> bool {
    !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit())
}

/// Formats separated by commas; `msr` has a host and a disk that make a name together.
fn separated() -> impl Iterator<Item = &'static str> {
    ["alibaba", "tencent", "msr", "systor17", "spc", "syscall", "csv"].into_iter()
}

#[test]
fn whole_numbers_may_have_a_point_and_zeroes_or_an_exponent() {
    for format in separated() {
        let expected = read(Some(format), &sample(format), Fail);
        let name_columns: &[usize] = match format {
            "msr" => &[1, 2],
            "csv" => &[1],
            _ => &[],
        };
        for write in [|n: &str| format!("{n}.0"), |n: &str| format!("{n}e+00")] {
            let rewrite = |line: &String| {
                let fields = line.split(',').enumerate();
                let field = |(index, field): (usize, &str)| {
                    let is_name = name_columns.contains(&index);
                    if is_whole(field) && !is_name { write(field) } else { field.to_owned() }
                };
                fields.map(field).collect::<Vec<_>>().join(",")
            };
            let text: Vec<String> = lines(format).iter().map(rewrite).collect();
            let found = read(Some(format), text.join("\n").as_bytes(), Fail);
            assert_eq!(found, expected, "{format}: {}", write("7"));
        }
    }
}

#[test]
fn a_fraction_of_a_whole_number_is_refused() {
    let refused = |format: &str, line: &str| {
        read(Some(format), line.as_bytes(), Fail).error.expect("must be refused")
    };
    assert!(refused("alibaba", "3,R,4096.5,512,1\n").contains("column 3: found `4096.5`"));
    assert!(refused("alibaba", "3,R,4096,512e-1,1\n").contains("column 4: found `512e-1`"));
    assert!(refused("mqsim", "0 0 8.5 8 1\n").contains("column 3: found `8.5`"));
    assert!(refused("ids", "7.25\n").contains("column 1: found `7.25`"));
    let fraction = refused("mqsim", "0.5 0 8 8 1\n");
    assert!(fraction.contains("column 1: found `0.5`, expected a whole number of nanoseconds"));
    assert!(fraction.contains("`time_unit=ms`"), "{fraction}");
}

#[test]
fn every_field_may_be_quoted_in_every_separated_format() {
    for format in separated() {
        let expected = read(Some(format), &sample(format), Fail);
        let quote = |field: &str| format!("\"{field}\"");
        let text: Vec<String> =
            lines(format).iter().map(|line| rewritten(line, ",", quote)).collect();
        let text = text.join("\r\n");
        assert_eq!(read(Some(format), text.as_bytes(), Fail), expected, "{format}");
        assert_eq!(read(None, text.as_bytes(), Fail), expected, "{format}: recognised");
        let broken = text.replacen('"', "", 1);
        let skipping = read(Some(format), broken.as_bytes(), Skip);
        assert!(skipping.records.len() + 1 >= expected.records.len(), "{format}");
    }
}

#[test]
fn comments_stand_anywhere_and_are_counted() {
    for entry in text_formats().filter(|entry| !["fio-iolog", "iotrace"].contains(&entry.name)) {
        let expected = read(Some(entry.name), &sample(entry.name), Fail);
        let mut text = vec!["# made by my script".to_owned(), "// units: see below".to_owned()];
        for line in lines(entry.name) {
            text.extend([line, "  # a note, of words".to_owned()]);
        }
        let text = text.join("\n");
        assert_eq!(read(Some(entry.name), text.as_bytes(), Fail), expected, "{}", entry.name);
        assert_eq!(read(None, text.as_bytes(), Fail), expected, "{}: recognised", entry.name);
        let comments = lines(entry.name).len() as u64 + 2;
        let (reasons, _) = told(&options(entry.name, &[]), &text);
        let found = reasons.iter().find(|reason| reason.what == "comment");
        assert_eq!(found.map(|reason| reason.records), Some(comments), "{}", entry.name);
    }
}

#[test]
fn a_header_that_comes_again_is_passed_over() {
    for (format, header) in [
        ("alibaba", "device,opcode,offset,length,time"),
        ("msr", "\u{feff}Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"),
        ("mqsim", "time device lba sectors type"),
    ] {
        let part = lines(format).join("\n");
        let text = format!("{header}\n{part}\n{header}\r\n{part}\n");
        let twice = read(Some(format), text.as_bytes(), Fail);
        let once = read(Some(format), part.as_bytes(), Fail);
        assert_eq!(twice.records.len(), 2 * once.records.len(), "{format}: {:?}", twice.error);
        assert_eq!(twice.records[once.records.len()..], once.records, "{format}");
        let (reasons, _) = told(&options(format, &[]), &text);
        assert_eq!(reasons, [PassedOver { what: "repeated header", records: 1 }], "{format}");
    }
    for format in ["systor17", "csv"] {
        let part = lines(format).join("\n");
        let twice = read(Some(format), format!("{part}\n{part}\n").as_bytes(), Fail);
        let once = read(Some(format), part.as_bytes(), Fail);
        assert_eq!(twice.records.len(), 2 * once.records.len(), "{format}: {:?}", twice.error);
    }
    let other = "a,b,c,d,e\n3,R,0,4096,1\nb,a,c,d,e\n";
    assert_eq!(read(Some("alibaba"), other.as_bytes(), Skip).bad, 1, "another header");
}

/// A line of each format whose time is `T`, in the unit that the format has.
const TIMED: [(&str, &str, u64); 16] = [
    ("alibaba", "3,R,0,512,T", 1_000),
    ("tencent", "T,0,8,0,7", 1_000_000_000),
    ("msr", "T,web,3,Read,0,512,1", 100),
    ("systor17", "T,0.1,R,0,0,512", 1_000_000_000),
    ("spc", "0,0,512,r,T", 1_000_000_000),
    ("fiu", "T 7 sh 8 8 W 6 0 0", 1),
    ("blkparse", "8,0 0 1 T 7 Q R 8 + 8 [sh]", 1_000_000_000),
    ("mqsim", "T 0 8 8 1", 1),
    ("syscall", "T,1,5,0,512,R", 1_000),
    ("disksim", "T 0 8 8 1", 1_000_000),
    ("biosnoop", "T sh 7 sda R 8 512 0.1", 1_000_000_000),
    ("ftrace", "x-7 [000] T: block_rq_issue: 8,0 R 8 + 8 [x]", 1_000_000_000),
    ("k5cloud", "7,T,R,0,512", 1_000_000_000),
    ("biotracer", "0 1 512 4 T 1 1 1", 1_000_000_000),
    ("tectonic", "7 0 512 T 1 1 9 0 1 77", 1_000_000_000),
    ("etw", "DiskRead, T, p, 1, 1, 0, 512, 1, 0", 1_000),
];

fn timed(format: &str, pairs: &[(&str, &str)], times: &[&str]) -> Outcome {
    let line = TIMED.iter().find(|(name, ..)| *name == format).map(|(_, line, _)| *line);
    let line = line.expect("is listed");
    let text: Vec<String> = times.iter().map(|time| line.replace('T', time)).collect();
    read_with(&options(format, pairs), text.join("\n").as_bytes())
}

fn times_of(outcome: &Outcome) -> Vec<u64> {
    assert_eq!(outcome.error, None);
    outcome.records.iter().map(|record| record.time_ns).collect()
}

#[test]
fn every_reader_with_a_clock_takes_units_fractions_exponents_and_dates() {
    let all: Vec<&str> = text_formats().map(|entry| entry.name).collect();
    let known: Vec<&str> = TIMED.iter().map(|(name, ..)| *name).collect();
    let other = ["fio-iolog", "csv", "iotrace", "thesios", "mooncake"];
    for name in all.into_iter().filter(|name| has_times(name)) {
        assert!(known.contains(&name) || other.contains(&name), "`{name}` has no line here");
    }
    for (format, _, unit_ns) in TIMED {
        assert_eq!(
            times_of(&timed(format, &[], &["7", "8.0", "9e3"])),
            [7 * unit_ns, 8 * unit_ns, 9_000 * unit_ns]
        );
        for (unit, ns) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("100ns", 100)] {
            let found = timed(format, &[("time_unit", unit)], &["7", "1.25", "2.5e-1", "3E+2"]);
            let expected = [7 * ns, ns + ns / 4, ns / 4, 300 * ns];
            assert_eq!(times_of(&found), expected, "{format} in {unit}");
        }
        if ["fiu", "blkparse", "mqsim", "disksim", "biosnoop", "ftrace", "biotracer", "tectonic"]
            .contains(&format)
        {
            let date = "1970-01-02T00:00:00.5Z";
            assert_eq!(times_of(&timed(format, &[], &[date])), [86_400_500_000_000], "{format}");
            continue;
        }
        let dates = ["1970-01-02 00:00:00.5", "1970-01-02T03:00:00+03:00", "1/2/1970 00:00:01"];
        let found = timed(format, &[], &dates);
        let expected = [86_400_500_000_000, 86_400_000_000_000, 86_401_000_000_000];
        assert_eq!(times_of(&found), expected, "{format}");
    }
}

#[test]
fn a_trace_that_begins_before_zero_is_shifted_as_a_whole() {
    for (format, _, unit_ns) in TIMED {
        let found = timed(format, &[], &["-2000", "-2001", "-1e3", "0", "5"]);
        let expected = [1, 0, 1_001, 2_001, 2_006].map(|ticks| ticks * unit_ns);
        assert_eq!(times_of(&found), expected, "{format}");
        let found = timed(format, &[("time_shift", "1h")], &["-2000", "5"]);
        let hour = 3_600_000_000_000;
        assert_eq!(times_of(&found), [hour - 2_000 * unit_ns, hour + 5 * unit_ns], "{format}");
        let error = timed(format, &[], &["0", "-5"]).error.expect("has no place");
        assert!(
            error.contains("found `-5") && error.contains("expected a time from 0 on"),
            "{format}: {error}"
        );
        assert!(error.contains("time_shift=1h"), "{format}: {error}");
    }
    let text = "3,R,0,512,-2000\n3,R,0,512,0\n";
    let (_, notes) = told(&options("alibaba", &[]), text);
    assert_eq!(notes, ["times begin 2ms before zero: the trace is shifted to begin at zero"]);
    assert!(told(&options("alibaba", &[("time_shift", "1h")]), text).1.is_empty());
    assert!(told(&options("alibaba", &[]), "3,R,0,512,7\n").1.is_empty());
}

/// The requests of the samples do not depend on a clock's options that change nothing.
#[test]
fn a_unit_that_is_the_formats_own_changes_nothing() {
    for (format, unit) in
        [("alibaba", "us"), ("tencent", "s"), ("msr", "100ns"), ("blkparse", "s"), ("mqsim", "ns")]
    {
        let expected = read(Some(format), &sample(format), Fail);
        let found = read_with(&options(format, &[("time_unit", unit)]), &sample(format));
        assert_eq!(found, expected, "{format}");
    }
}

#[test]
fn zone_commands_are_passed_over_and_counted() {
    let mqsim = "// zns\n0 0 8 8 1\n5 0 16 0 2\n7 0 16 8 0\n";
    let found = read(Some("mqsim"), mqsim.as_bytes(), Fail);
    assert_eq!((found.records.len(), found.error), (2, None));
    let (reasons, _) = told(&options("mqsim", &[]), mqsim);
    let expected = [("comment", 1), ("zone reset", 1)];
    let expected = expected.map(|(what, records)| PassedOver { what, records });
    assert_eq!(reasons, expected);
    let line = |letters: &str| format!("8,0 0 1 0.5 7 Q {letters} 8 + 8 [sh]\n");
    let blkparse: String = ["R", "ZR", "ZF", "ZO", "ZC", "ZA", "WZ"].map(line).concat();
    let found = read(Some("blkparse"), blkparse.as_bytes(), Fail);
    let ops: Vec<&str> = found.records.iter().map(|record: &Record| record.op.word()).collect();
    assert_eq!(ops, ["read", "write", "trim"]);
    let (reasons, _) = told(&options("blkparse", &[]), &blkparse);
    assert_eq!(reasons, [PassedOver { what: "zone command", records: 4 }]);
}

#[test]
fn what_blkparse_prints_around_its_rows_is_passed_over() {
    let part = "Input file sda.blktrace.0 added\nInput file sda.blktrace.1 added\n\
                \x20 8,0    0   1  0.000000000  100  Q   R 0 + 8 [app]\n\
                \x20 8,0    1   2  0.001000000  100  Q WSU 8 + 8 [app]\n\
                CPU0 (sda):\n Reads Queued:  1,  4KiB\t Writes Queued:  1,  4KiB\n\n\
                Total (sda):\n Reads Queued:  1,  4KiB\nThroughput (R/W): 1KiB/s / 2KiB/s\n\
                Events (sda): 2 entries\nSkips: 0 forward (0 -   0.0%)\n";
    let once = read(None, part.as_bytes(), Fail);
    assert_eq!((once.records.len(), &once.error), (2, &None));
    let twice = read(None, part.repeat(2).as_bytes(), Fail);
    assert_eq!((twice.records.len(), twice.error), (4, None), "events follow the first totals");
}
