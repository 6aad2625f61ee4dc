//! What must hold of a trace reader on any bytes, and of any error.
//!
//! For: the fuzz targets beside it: one per family of trace readers, and one each for stack files,
//! model files, kept answers, the NBD protocol and devices of a live cache. Must never know: a
//! reader's insides.
//! `cargo fuzz run -s none TARGET fuzz/corpus/TARGET fuzz/seeds/TARGET` works on stable Rust. No
//! sanitizer: the house has no `unsafe`; what is sought is panics, endless loops, wasted memory.

use cachewright_trace::{Batch, OnBadRecord, OpenOptions, open_bytes};

/// More requests than this are not read, because a description of synthetic ones may be endless.
const MOST_REQUESTS: usize = 20_000;
const NAME: &str = "fuzzed-input";

/// The options `pairs` for `format` (recognised when nothing), skipping bad records or not.
pub fn options(format: Option<&str>, pairs: &[(&str, &str)], skip: bool) -> OpenOptions {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    OpenOptions {
        format: format.map(str::to_owned),
        on_bad_record: if skip { OnBadRecord::Skip } else { OnBadRecord::Fail },
        format_options: pairs.iter().map(pair).collect(),
        ..OpenOptions::default()
    }
}

/// Reads `bytes` in two ways and panics unless both agree and all is as promised. Where a format
/// decodes whole columns, damage may show earlier when more is read at once: then the requests
/// before an error are not compared.
pub fn check(bytes: &[u8], options: &OpenOptions) {
    let many = read(bytes, options, 1_000);
    if bytes.len() < 2_000 {
        let single = read(bytes, options, 1);
        let by_columns = options.format.as_deref() == Some("parquet");
        if by_columns && many.1.is_some() && single.1.is_some() {
            return;
        }
        assert_eq!(many, single, "reading by many or by one");
    }
}

/// Reads to the end or the first error, which is returned in words.
fn read(bytes: &[u8], options: &OpenOptions, at_once: usize) -> (Batch, Option<String>) {
    let mut batch = Batch::default();
    let mut reader = match open_bytes(NAME, bytes, options) {
        Ok(reader) => reader,
        Err(error) => return (batch, Some(checked(error.to_string()))),
    };
    let mut error = None;
    while error.is_none() && batch.len() < MOST_REQUESTS {
        let before = batch.len();
        match reader.read(&mut batch, at_once) {
            Ok(0) => break,
            Ok(count) => assert!(count <= at_once && batch.len() == before + count),
            Err(refusal) => error = Some(checked(refusal.to_string())),
        }
    }
    let (volumes, skipped) = (reader.volumes(), reader.skipped());
    for record in batch.iter() {
        let end = record.offset_bytes.checked_add(record.length_bytes);
        assert!(end.is_some_and(|end| end <= 1 << 63), "{record:?}");
        assert!((record.volume as usize) < volumes.len(), "{record:?}");
    }
    assert!(skipped.examples.len() as u64 <= skipped.bad);
    skipped.examples.iter().for_each(|example| drop(checked(example.to_string())));
    (batch, error)
}

/// `message`, if it can be shown.
pub fn checked(message: String) -> String {
    let is_hidden = |c: char| c.is_control() && c != '\n';
    assert!(!message.chars().any(is_hidden), "{message:?}");
    assert!(message.chars().count() < 4_000, "{message}");
    message
}
