//! Malformed input, for every format in the table: a clear error or a counted skip, never a panic.
//!
//! For: truncation at every byte, garbage, flipped bits, empty files, negative numbers, times out
//! of order, far offsets, mixed line ends, damaged compression. Must never know: readers' insides.
#![allow(clippy::expect_used, clippy::panic)]

use crate::samples;

use cachewright_trace::OnBadRecord::{Fail, Skip};
use cachewright_trace::{FORMATS, OpenOptions, open, open_bytes};
use cachewright_types::Seed;
use samples::{
    MISLEADING_NAME, Outcome, columns_read, has_addresses, has_times, holds_records, is_recognised,
    read, read_with, record_bytes, sample, text_formats,
};
use std::io::Write;
use std::path::Path;

/// That what was read is what a valid trace may say, and that an error says where.
fn check(format: &str, outcome: &Outcome) {
    for record in &outcome.records {
        let end = record.offset_bytes.checked_add(record.length_bytes);
        assert!(end.is_some_and(|end| end <= 1 << 63), "{format}: {record:?}");
        assert!((record.volume as usize) < outcome.volumes.len(), "{format}: {record:?}");
    }
    if let Some(error) = &outcome.error {
        // A CSV whose first line is damaged lacks its column map, which is an option's error.
        let names_it = error.starts_with(MISLEADING_NAME) || format == "csv";
        assert!(names_it, "{format}: {error}");
        let says_what = error.contains("expected") || error.contains("name it with `format`");
        assert!(says_what, "{format}: {error}");
        // Advice has lines of its own; what comes from the file is never shown with its own.
        let is_hidden = |c: char| c.is_control() && c != '\n';
        assert!(error.len() < 3_000 && !error.contains(is_hidden), "{format}: {error}");
    }
    assert_eq!(outcome.examples.len() as u64, outcome.bad.min(5), "{format}");
}

#[test]
fn samples_are_valid_and_reach_beyond_10_gb() {
    for entry in FORMATS {
        let outcome = read(Some(entry.name), &sample(entry.name), Fail);
        assert_eq!(outcome.error, None, "{}", entry.name);
        check(entry.name, &outcome);
        assert!(outcome.records.len() >= 5, "{}", entry.name);
        let far = outcome.records.iter().any(|record| record.offset_bytes > 10_000_000_000);
        assert!(far || !has_addresses(entry.name), "{}", entry.name);
    }
}

#[test]
fn formats_are_recognised_by_content_alone() {
    for entry in FORMATS.iter().filter(|entry| is_recognised(entry.name)) {
        let bytes = sample(entry.name);
        let recognised = read(None, &bytes, Fail);
        assert_eq!(recognised, read(Some(entry.name), &bytes, Fail), "{}", entry.name);
        for other in FORMATS {
            let confidence = (other.recognise)(&bytes);
            let is_self = other.name == entry.name;
            assert!(
                is_self || confidence + 5 < (entry.recognise)(&bytes),
                "`{}` looks like `{}` ({confidence})",
                entry.name,
                other.name
            );
        }
    }
}

#[test]
fn cut_at_any_byte() {
    for entry in FORMATS {
        let bytes = sample(entry.name);
        let all = read(Some(entry.name), &bytes, Fail).records;
        for length in 0..bytes.len() {
            let failing = read(Some(entry.name), &bytes[..length], Fail);
            check(entry.name, &failing);
            let skipping = read(Some(entry.name), &bytes[..length], Skip);
            check(entry.name, &skipping);
            assert!(skipping.records.len() >= failing.records.len(), "{} {length}", entry.name);
            check(entry.name, &read(None, &bytes[..length], Skip));
            if !holds_records(entry.name) {
                continue;
            }
            // Nothing is made up: only the record that was cut may differ.
            let whole = skipping.records.len().saturating_sub(1);
            assert_eq!(skipping.records[..whole], all[..whole], "{} {length}", entry.name);
        }
    }
}

#[test]
fn garbage_is_an_error_for_every_format() {
    let mut rng = Seed(11).derive("garbage").rng();
    for length in [1, 7, 100, 5_000, 200_000] {
        let garbage: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
        for entry in FORMATS {
            // Records of plain integers accept many bytes; there, no panic is all one can ask.
            let integers = record_bytes(entry.name).is_some();
            for on_bad_record in [Fail, Skip] {
                let outcome = read(Some(entry.name), &garbage, on_bad_record);
                check(entry.name, &outcome);
                assert!(integers || outcome.error.is_some(), "{} {length}", entry.name);
            }
        }
        let recognised = read(None, &garbage, Fail);
        assert!(recognised.error.is_some_and(|error| error.contains("not recognised")));
    }
}

#[test]
fn flipped_bits_never_panic() {
    for entry in FORMATS {
        let bytes = sample(entry.name);
        let step = (bytes.len() / 400).max(1);
        for index in (0..bytes.len()).step_by(step) {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[index] ^= 1 << bit;
                check(entry.name, &read(Some(entry.name), &flipped, Fail));
                check(entry.name, &read(Some(entry.name), &flipped, Skip));
            }
        }
    }
}

#[test]
fn an_empty_file_is_named_as_such() {
    let message = format!("{MISLEADING_NAME}: found an empty file, expected a trace");
    for entry in FORMATS {
        for on_bad_record in [Fail, Skip] {
            let outcome = read(Some(entry.name), b"", on_bad_record);
            assert_eq!(outcome.error.as_deref(), Some(message.as_str()), "{}", entry.name);
        }
    }
    assert_eq!(read(None, b"", Fail).error, Some(message.clone()));
    let empty_gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let bytes = empty_gzip.finish().expect("in memory");
    assert_eq!(read(None, &bytes, Fail).error, Some(message), "empty once decompressed");
}

#[test]
fn any_negative_number_is_refused_with_its_line_and_column() {
    for entry in text_formats() {
        let text = String::from_utf8(sample(entry.name)).expect("is text");
        let valid = read(Some(entry.name), text.as_bytes(), Fail).records;
        let (before, last) = text.trim_end().rsplit_once('\n').expect("has lines");
        let line = before.lines().count() + 1;
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let mut numbers = 0;
        for (at, c) in last.char_indices() {
            if !c.is_ascii_digit() || is_digit(last[..at].chars().last()) {
                continue;
            }
            if let Some((separator, columns)) = columns_read(entry.name) {
                let fields = last[..at].split(separator).collect::<Vec<_>>();
                let is_blank = |field: &&&str| separator != ' ' || !field.is_empty();
                let column = fields[..fields.len() - 1].iter().filter(is_blank).count();
                if !columns.contains(&column) {
                    continue;
                }
            }
            numbers += 1;
            let text = format!("{before}\n{}-{}\n", &last[..at], &last[at..]);
            let failing = read(Some(entry.name), text.as_bytes(), Fail);
            let error = failing.error.expect("a negative number is refused");
            let place = format!("{MISLEADING_NAME}: line {line}, column ");
            assert!(error.starts_with(&place), "{}: {error}", entry.name);
            let skipping = read(Some(entry.name), text.as_bytes(), Skip);
            assert_eq!(skipping.error, None, "{}", entry.name);
            assert_eq!(skipping.bad, 1, "{}", entry.name);
            assert_eq!(skipping.records, valid[..valid.len() - 1], "{}", entry.name);
        }
        let expected = match entry.name {
            "ids" => 1,
            "mooncake" => 2,
            _ => 3,
        };
        assert!(numbers >= expected, "{}", entry.name);
    }
}

/// One record of 4 EiB made every command run without bound in time and memory.
#[test]
fn a_request_longer_than_the_bound_is_refused_with_its_place_or_counted() {
    let bounded = |format: &str, on_bad_record, bound: &str| {
        let format_options = [("max_request".to_owned(), bound.to_owned())].into_iter().collect();
        let format = Some(format.to_owned());
        OpenOptions { format, on_bad_record, format_options, ..OpenOptions::default() }
    };
    let expected = "expected at most 2KiB in one request (`max_request`)";
    for entry in FORMATS {
        let bytes = sample(entry.name);
        let all = read(Some(entry.name), &bytes, Fail).records;
        let failing = read_with(&bounded(entry.name, Fail, "2KiB"), &bytes);
        let error = failing.error.unwrap_or_default();
        assert!(error.ends_with(expected), "{}: {error}", entry.name);
        if ["raw", "ids", "synth", "mooncake"].contains(&entry.name) {
            continue;
        }
        let has_rows = entry.name == "parquet" || text_formats().any(|t| t.name == entry.name);
        let kind = if has_rows { "line" } else { "record" };
        assert!(error.starts_with(&format!("{MISLEADING_NAME}: {kind} ")), "{error}");
        let skipping = read_with(&bounded(entry.name, Skip, "2KiB"), &bytes);
        let is_long = |record: &cachewright_trace::Record| {
            record.length_bytes > 2048 && record.op != cachewright_types::Op::Trim
        };
        let long = all.iter().filter(|record| is_long(record)).count();
        assert!(long > 0, "{}", entry.name);
        if long < all.len() {
            assert_eq!((skipping.bad, skipping.error), (long as u64, None), "{}", entry.name);
            let offset = |record: &cachewright_trace::Record| record.offset_bytes;
            let rest: Vec<u64> = all.iter().filter(|r| !is_long(r)).map(offset).collect();
            let found: Vec<u64> = skipping.records.iter().map(offset).collect();
            assert_eq!(found, rest, "{}", entry.name);
        }
        let enough = read_with(&bounded(entry.name, Fail, "1TiB"), &bytes);
        assert_eq!((enough.error, enough.records), (None, all), "{}", entry.name);
    }
    for wrong in ["511B", "2TiB", "4096", ""] {
        let outcome = read_with(&bounded("alibaba", Fail, wrong), &sample("alibaba"));
        let error = outcome.error.unwrap_or_default();
        assert!(error.starts_with(&format!("`max_request`: found `{wrong}`")), "{error}");
    }
}

#[test]
fn a_request_of_4_eib_is_refused_unless_it_is_a_trim() {
    let line = |op: &str| format!("3,{op},0,4611686018427387904,1\n");
    let refused = read(Some("alibaba"), line("W").as_bytes(), Fail);
    let expected = format!(
        "{MISLEADING_NAME}: line 1, column 4: found `4611686018427387904`, expected at most 1GiB \
         in one request (`max_request`)"
    );
    assert_eq!(refused.error, Some(expected));
    let trim = read(Some("alibaba"), line("T").as_bytes(), Fail);
    assert_eq!((trim.records[0].length_bytes, trim.error), (1 << 62, None));
}

#[test]
fn nothing_after_a_bad_line_is_lost() {
    for entry in text_formats() {
        let text = String::from_utf8(sample(entry.name)).expect("is text");
        let valid = read(Some(entry.name), text.as_bytes(), Fail);
        let lines: Vec<&str> = text.lines().collect();
        let long = "x".repeat(300_000);
        for bad in ["\u{1}\u{2}garbage", "- - - - - -,-,-,-,-,-", long.as_str()] {
            for at in 1..=lines.len() {
                let text = [&lines[..at], &[bad], &lines[at..]].concat().join("\n");
                let skipping = read(Some(entry.name), text.as_bytes(), Skip);
                assert_eq!(skipping.records, valid.records, "{} {at}", entry.name);
                assert_eq!((skipping.bad, skipping.error), (1, None), "{} {at}", entry.name);
                assert_eq!(skipping.examples[0].position, at as u64 + 1, "{} {at}", entry.name);
                assert!(skipping.examples[0].found.chars().count() <= 60);
            }
        }
    }
}

/// The seeds of the fuzz target, among them what fuzzing found (`found-...`).
#[test]
fn damaged_parquet_found_by_fuzzing_is_refused_in_harmless_words() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/trace_parquet");
    let mut found = 0;
    for file in std::fs::read_dir(seeds).expect("is in the repository") {
        let path = file.expect("can be listed").path();
        let bytes = std::fs::read(&path).expect("can be read");
        let outcome = read(Some("parquet"), &bytes, Skip);
        check("parquet", &outcome);
        let is_damaged = path.to_string_lossy().contains("found-");
        assert_eq!(outcome.error.is_some(), is_damaged, "{}", path.display());
        found += u32::from(is_damaged);
    }
    assert!(found > 0);
}

/// Found by fuzzing: words after the first record were taken for a header if one read saw both.
#[test]
fn only_the_first_line_can_be_a_header() {
    let text = b"3,R,0,4096,1\nnames,of,columns\n3,R,0,4096,2\n";
    let outcome = read(Some("alibaba"), text, Skip);
    assert_eq!((outcome.records.len(), outcome.bad), (2, 1));
    let headed = [b"names,of,the,columns\n", text.as_slice()].concat();
    let outcome = read(Some("alibaba"), &headed, Skip);
    assert_eq!((outcome.records.len(), outcome.bad), (2, 1));
}

#[test]
fn a_file_without_a_single_request_is_an_error_even_when_skipping() {
    for entry in text_formats() {
        let text = sample(entry.name);
        let first = text.split(|byte| *byte == b'\n').next().expect("has lines");
        let keeps_first =
            ["fio-iolog", "csv", "iotrace", "tectonic", "thesios"].contains(&entry.name);
        let head = if keeps_first { [first, b"\n"].concat() } else { Vec::new() };
        let bytes = [&head, b"- - - - -,-,-,-,-\n".repeat(20).as_slice()].concat();
        let outcome = read(Some(entry.name), &bytes, Skip);
        assert_eq!(outcome.bad, 20, "{}", entry.name);
        let error = outcome.error.expect("nothing was valid");
        assert!(error.contains("found no request (20 bad and "), "{}: {error}", entry.name);
        assert!(error.contains("; the first: line "), "{}: {error}", entry.name);
    }
}

#[test]
fn times_may_run_backwards() {
    for entry in FORMATS.iter().filter(|entry| has_times(entry.name)) {
        let bytes = sample(entry.name);
        let forward = read(Some(entry.name), &bytes, Fail).records;
        let reversed = match record_bytes(entry.name) {
            Some(length) => bytes.chunks(length).rev().collect::<Vec<_>>().concat(),
            None if text_formats().any(|text| text.name == entry.name) => {
                let is_first = |line: &&[u8]| {
                    [&b"fio"[..], b"time", b"device.name", b"op_time", b"filename", b"ID"]
                        .iter()
                        .any(|b| line.starts_with(b))
                };
                let lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
                let kept = usize::from(is_first(&lines[0]) || lines[0].starts_with(b"Timestamp"));
                let body = lines[kept..].iter().rev().copied();
                let all: Vec<&[u8]> = lines[..kept].iter().copied().chain(body).collect();
                all.join(&b'\n')
            }
            None => continue,
        };
        let backward = read(Some(entry.name), &reversed, Fail);
        assert_eq!(backward.error, None, "{}", entry.name);
        let plain = |record: &cachewright_trace::Record| {
            // Objects get their addresses in the order of first sight.
            let offset_bytes = if has_addresses(entry.name) { record.offset_bytes } else { 0 };
            (record.time_ns, offset_bytes, record.length_bytes, record.op)
        };
        let expected: Vec<_> = forward.iter().rev().map(plain).collect();
        let found: Vec<_> = backward.records.iter().map(plain).collect();
        assert_eq!(found, expected, "{}: in the order of the file", entry.name);
    }
}

#[test]
fn line_ends_may_be_mixed_and_blank_lines_follow() {
    for entry in text_formats() {
        let text = String::from_utf8(sample(entry.name)).expect("is text");
        let valid = read(Some(entry.name), text.as_bytes(), Fail);
        let ends = ["\r\n", "\n", "\n\n", "\r\n \r\n"].iter().cycle();
        let mut mixed: String =
            text.lines().zip(ends).flat_map(|(line, end)| [line, end]).collect();
        mixed.push_str("\n\r\n\n");
        assert_eq!(read(Some(entry.name), mixed.as_bytes(), Fail), valid, "{}", entry.name);
        assert_eq!(read(None, mixed.as_bytes(), Fail), valid, "{}", entry.name);
        let unended = text.trim_end();
        assert_eq!(read(Some(entry.name), unended.as_bytes(), Fail), valid, "{}", entry.name);
        let marked = format!("\u{feff}{text}");
        assert_eq!(read(None, marked.as_bytes(), Fail), valid, "{}: byte order mark", entry.name);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    // Two members, as from `cat a.gz b.gz`.
    let member = |part: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(part).expect("in memory");
        encoder.finish().expect("in memory")
    };
    let (one, two) = bytes.split_at(bytes.len() / 2);
    [member(one), member(two)].concat()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    let frame = |part: &[u8]| zstd::encode_all(part, 3).expect("in memory");
    let (one, two) = bytes.split_at(bytes.len() / 2);
    [frame(one), frame(two)].concat()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

fn bzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

/// A way to compress and the word that messages use for it.
type Compressor = (fn(&[u8]) -> Vec<u8>, &'static str);

const COMPRESSORS: [Compressor; 4] =
    [(gzip, "gzip"), (zstandard, "zstd"), (xz, "xz"), (bzip, "bzip2")];

#[test]
fn compression_is_transparent_for_every_format() {
    for entry in FORMATS {
        let bytes = sample(entry.name);
        let plain = read(None, &bytes, Fail);
        for (compress, word) in COMPRESSORS {
            assert_eq!(read(None, &compress(&bytes), Fail), plain, "{} in {word}", entry.name);
        }
    }
}

#[test]
fn damaged_compression_is_named() {
    let bytes = sample("alibaba").repeat(3_000);
    for (compress, word) in COMPRESSORS {
        let compressed = compress(&bytes);
        for length in (1..compressed.len()).step_by(compressed.len() / 50 + 1) {
            // The end of a first member is the end of a shorter file, not a damage.
            let outcome = read(Some("alibaba"), &compressed[..length], Skip);
            check("alibaba", &outcome);
            let error = outcome.error.unwrap_or_default();
            assert!(!error.is_empty() || outcome.bad <= 1, "{word} {length}");
            if length > 100 && !error.is_empty() {
                assert!(error.contains(&format!("damaged {word} stream")), "{length}: {error}");
            }
            let mut flipped = compressed.clone();
            flipped[length] ^= 0x55;
            check("alibaba", &read(Some("alibaba"), &flipped, Skip));
        }
    }
}

#[test]
fn names_and_keys_that_do_not_exist_are_refused_with_the_nearest() {
    let bytes = sample("alibaba");
    let message = |format: &str, key: Option<&str>| {
        let format_options = key.map(|key| (key.to_owned(), "Q".to_owned())).into_iter().collect();
        let format = Some(format.to_owned());
        let options = OpenOptions { format, format_options, ..OpenOptions::default() };
        open_bytes("a", &bytes, &options).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let near = message("alibabba", None);
    assert!(near.starts_with("`format`: found `alibabba`, expected one of alibaba, "), "{near}");
    assert!(near.ends_with("; nearest is `alibaba`"), "{near}");
    assert!(message("zzzzzzzzz", None).contains("expected one of alibaba, tencent"));
    let strange = "`format`: found `a\\u{1b}[0m\\u{202e}`, expected one of";
    assert!(message("a\u{1b}[0m\u{202e}", None).starts_with(strange), "harmless to a terminal");
    let strange = message("csv", Some("a\u{7}"));
    assert!(strange.starts_with("`a\\u{7}`: found `Q`"), "found by fuzzing: {strange}");
    assert!(message("blkparse", Some("events")).ends_with("nearest is `event`"));
    let expected = "`event`: found `Q`, expected an option of format `alibaba`: \
                    time_unit, time_shift, max_request";
    assert_eq!(message("alibaba", Some("event")), expected);
}

#[test]
fn what_cannot_be_opened_is_named() {
    let missing = Path::new("no/such/trace");
    let error = open(missing, &OpenOptions::default()).err().expect("does not exist");
    assert_eq!(error.to_string(), "no/such/trace: found no such file, expected a trace");
    let error = open(&std::env::temp_dir(), &OpenOptions::default()).err().expect("a directory");
    assert!(error.to_string().ends_with(": found a folder, expected a trace"), "{error}");
}
